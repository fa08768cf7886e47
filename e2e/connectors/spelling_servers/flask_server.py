from flask import Flask
from werkzeug.serving import make_server

app = Flask(__name__)
app.url_map.strict_slashes = False
app.post("/v1/refunds")(lambda: "refund")
app.post("/v1/things:batchDelete", endpoint="batch")(lambda: "batch")
app.post("/users/@me", endpoint="me")(lambda: "me")
app.post("/repos/<owner>/<repo>/merge", endpoint="merge")(lambda owner, repo: "merge")
app.post("/v1/<thing>", endpoint="thing")(lambda thing: "thing")
server = make_server("127.0.0.1", 0, app, threaded=True)
print(f"port {server.port}", flush=True)
server.serve_forever()

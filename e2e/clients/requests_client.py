# Python requests, configured by the environment alone. Its arguments: the URL. Prints the reply as JSON.
import json
import sys

import requests

with requests.Session() as session:
    got = session.get(sys.argv[1], params={"page": "1"}, timeout=30)
    posted = session.post(sys.argv[1], json={"title": "a"}, timeout=30)
print(json.dumps({"statuses": [got.status_code, posted.status_code], "body": posted.text}))

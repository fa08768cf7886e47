# Python httpx, configured by the environment alone. Its arguments: the URL of the items, and "http2" to offer it.
import sys

import httpx

with httpx.Client(timeout=30, http2=sys.argv[2:] == ["http2"]) as client:
    got = client.get(sys.argv[1], params={"page": "1"})
    made = client.post(sys.argv[1], json={"title": "a"})
print(got.status_code, made.status_code, made.text)

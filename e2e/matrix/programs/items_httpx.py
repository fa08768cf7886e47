# Python httpx, configured by the environment alone. Its argument: the URL of the items.
import sys

import httpx

with httpx.Client(timeout=30) as client:
    got = client.get(sys.argv[1], params={"page": "1"})
    made = client.post(sys.argv[1], json={"title": "a"})
print(got.status_code, made.status_code, made.text)

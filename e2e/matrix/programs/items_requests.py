# Python requests, configured by the environment alone. Its argument: the URL of the items.
import sys

import requests

with requests.Session() as session:
    got = session.get(sys.argv[1], params={"page": "1"}, timeout=30)
    made = session.post(sys.argv[1], json={"title": "a"}, timeout=30)
print(got.status_code, made.status_code, made.text)

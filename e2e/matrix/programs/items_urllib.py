# Python's own urllib, configured by the environment alone. Its argument: the URL of the items.
import sys
from urllib.request import Request, urlopen

url = sys.argv[1]
with urlopen(url + "?page=1", timeout=30) as got:
    status = got.status
request = Request(url, data=b'{"title":"a"}', headers={"content-type": "application/json"})
with urlopen(request, timeout=30) as made:
    print(status, made.status, made.read().decode())

# google-auth with its application default credentials. Its argument: the URL of the items. It finds the metadata server by the
# environment alone.
import sys

import google.auth
from google.auth.transport.requests import AuthorizedSession

credentials, _project = google.auth.default()
session = AuthorizedSession(credentials)
url = sys.argv[1]
print(type(credentials).__module__, session.get(url).status_code, session.post(url, json={"title": "a"}).status_code)

from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from django.conf import settings

settings.configure(
    ROOT_URLCONF=__name__,
    REST_FRAMEWORK={"UNAUTHENTICATED_USER": None},
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="none",
    USE_TZ=True,
)
django.setup()

from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path, re_path
from rest_framework.decorators import api_view, authentication_classes, permission_classes
from rest_framework.urlpatterns import format_suffix_patterns


def answering(name):
    def view(request, format=None, **values):
        return HttpResponse(name)

    return authentication_classes([])(permission_classes([])(api_view(["POST"])(view)))


urlpatterns = format_suffix_patterns(
    [
        path("v1/refunds", answering("refund")),
        re_path(r"^v1/things:batchDelete/?$", answering("batch")),
        re_path(r"(?i)^users/@me$", answering("me")),
        path("repos/<owner>/<repo>/merge", answering("merge")),
        path("v1/<thing>", answering("thing")),
    ]
)


class Quiet(WSGIRequestHandler):
    def log_message(self, *values):
        pass


class Threaded(ThreadingMixIn, WSGIServer):
    request_queue_size = 128
    daemon_threads = True


server = make_server("127.0.0.1", 0, get_wsgi_application(), Threaded, Quiet)
print(f"port {server.server_port}", flush=True)
server.serve_forever()

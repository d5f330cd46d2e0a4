"""The service's own configuration of gunicorn, with shorter deadlines and smaller limits, for tests."""

import runpy

from webapp import limits

limits.WEB_HEAD_SECONDS = 2.0
limits.WEB_BODY_WINDOW_SECONDS = 2.0
limits.WEB_BODY_WINDOW_BYTES = 1_000
limits.WEB_SEND_WINDOW_SECONDS = 2.0
limits.WEB_UNFINISHED_PER_ADDRESS = 16
limits.WEB_UNFINISHED_GRACE_SECONDS = 0.5
limits.WEB_SLOT_SECONDS = 2.0
limits.WEB_BODY_SLOTS_PER_ADDRESS = 2
limits.WEB_CONNECTIONS = 60
limits.WEB_LINGER_SECONDS = 1.0

globals().update(runpy.run_path("gunicorn.conf.py"))


def post_worker_init(worker):
    """Two addresses that fail outside the application."""
    application = worker.wsgi

    def failing(environ, start_response):
        if environ["PATH_INFO"] == "/fails":
            raise RuntimeError("outside the application")
        if environ["PATH_INFO"] == "/fails-later":
            start_response("200 OK", [("Content-Type", "text/plain")])
            return (b"part" if number == 0 else 1 / 0 for number in range(2))
        if environ["PATH_INFO"] == "/header":
            start_response("200 OK", [("X-Split", "a\r\nb: c")])
        return application(environ, start_response)

    worker.wsgi = failing

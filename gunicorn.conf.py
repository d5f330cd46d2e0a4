"""How gunicorn serves `wsgi:app`. Numbers and addresses come from the settings; the choices below are explained."""

import gc
import os
import resource
import sys

from webapp import limits, memory
from webapp.cli import assets
from webapp.config import Settings
from webapp.monitoring import process_log
from webapp.paths import static_folder

memory.settle()  # before the application, and with it Arrow, is imported
_settings = Settings.from_env(os.environ)
process_log.configure(_settings)
if _missing := assets.missing(static_folder()):
    sys.exit(f"rowsmith: {_missing}")

bind = [
    f"[{_settings.host}]:{_settings.port}" if ":" in _settings.host else f"{_settings.host}:{_settings.port}"
]
# Threads, because streams and followers wait more than they work; two processes, for the second core.
# What gunicorn refuses by itself is refused in the service's own shape.
worker_class = "webapp.serving.Worker"
workers = _settings.web_workers
threads = _settings.web_threads
# Half of the files that the process may open are left for the rest. Idle connections take no thread.
worker_connections = max(
    min(limits.WEB_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2), threads + 1
)
# The application is built once and forked: a wrong setting stops the start with one message instead of a loop of
# dying workers, the engine's vocabularies are in memory once, and a worker that is replaced is there at once. It
# holds because building the application opens nothing; what a fork must not share is let go in `post_fork`.
preload_app = True
certfile = _settings.tls_cert or None
keyfile = _settings.tls_key or None

# A stop lets streams finish, and is over within STOP_SECONDS.
graceful_timeout = int(limits.STOP_SECONDS) - 5
timeout = 60  # a worker whose main loop says nothing for so long is replaced; threads may take longer
keepalive = 15  # seconds; programs that call again and again keep their connection
# The heartbeat is a file whose times are touched every second; on a disk that can stall a worker.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None
control_socket_disable = True  # nobody asks it, and its default place is the user's home

# The application judges X-Forwarded-* by TRUSTED_PROXIES itself; gunicorn shall believe nobody.
forwarded_allow_ips = ""
secure_scheme_headers = {}
limit_request_line = limits.MAX_REQUEST_LINE_BYTES
accesslog = None
errorlog = "-"
logger_class = "webapp.serving.Logger"
loglevel = _settings.log_level.lower()


def when_ready(server):
    """Before the workers are forked: what is built stays, so the collector of cycles need not look at it ever again.

    A request leaves hardly a cycle behind; looking for them after every 700 objects took 6 % of a small call.
    """
    from webapp.connectors import KINDS

    tuple(KINDS.values())  # imported once, not by the first request of each worker
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def post_fork(server, worker):
    """In each new worker: die with the master, so that a killed one leaves no stray worker on the port."""
    from jobs.process import die_with
    from webapp.extensions import after_fork
    from webapp.web.stream_slots import STOPPING

    app = server.app.wsgi()
    die_with(server.pid)
    after_fork(app)
    worker.ending = lambda: _hand_over(app)
    # A worker that is asked to end lets its followers go at once; they come again, to its successor.
    app.extensions[STOPPING] = lambda: not worker.alive


def worker_exit(_server, worker):
    """In a worker that ends: what it has counted for /metrics goes to the others' sums."""
    if hasattr(worker, "ending"):
        worker.ending()


def _hand_over(app):
    from webapp.monitoring import metrics

    with app.app_context():
        metrics.hand_over_now()

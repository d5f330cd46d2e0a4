"""gunicorn configuration for `wsgi:app`. Addresses and process counts come from the settings."""

import gc
import os
import resource
import sys

from webapp import limits, memory
from webapp.cli import assets
from webapp.config import Settings
from webapp.monitoring import process_log
from webapp.paths import static_folder

memory.configure_malloc()  # before the application, and with it Arrow, is imported
_settings = Settings.from_env(os.environ)
process_log.configure(_settings)
if _missing := assets.missing_message(static_folder()):
    sys.exit(f"rowsmith: {_missing}")

bind = [
    f"[{_settings.host}]:{_settings.port}" if ":" in _settings.host else f"{_settings.host}:{_settings.port}"
]
# Use threads, because streams and log followers mostly wait, and two processes to use a second core.
# The worker class formats errors that gunicorn raises itself in the same way as API errors.
worker_class = "webapp.serving.Worker"
workers = _settings.web_workers
threads = _settings.web_threads
# Use at most half of the process's file descriptors for connections. Idle connections take no thread.
worker_connections = max(
    min(limits.WEB_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2), threads + 1
)
# Create the application once, before forking: an invalid setting stops the start with one message instead of a loop
# of failing workers, all workers share the memory of the engine's vocabularies, and a replacement worker starts
# immediately. This is safe because creating the application opens no connections; `post_fork` resets everything that
# processes must not share.
preload_app = True
certfile = _settings.tls_cert or None
keyfile = _settings.tls_key or None

# Let streams finish, but stop within STOP_SECONDS.
graceful_timeout = int(limits.STOP_SECONDS) - 5
timeout = 60  # seconds without a heartbeat before a worker is replaced; request threads may take longer
keepalive = 15  # seconds; lets clients with frequent requests reuse their connection
# The heartbeat updates the timestamps of a file every second. A slow disk could block the worker.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None
control_socket_disable = True  # it is not used, and gunicorn would create it in the user's home directory

# The application evaluates X-Forwarded-* headers itself (TRUSTED_PROXIES), so gunicorn must not trust any proxy.
forwarded_allow_ips = ""
secure_scheme_headers = {}
limit_request_line = limits.MAX_REQUEST_LINE_BYTES
accesslog = None
errorlog = "-"
logger_class = "webapp.serving.Logger"
loglevel = _settings.log_level.lower()


def when_ready(server):
    """Exclude existing objects from garbage collection before the workers are forked.

    These objects live as long as the process. Requests create few reference cycles, and with Python's default threshold
    of 700 objects the garbage collector took 6 % of a small request.
    """
    from webapp.connectors import KINDS

    tuple(KINDS.values())  # import all connectors now, not during the first request of each worker
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def post_fork(server, worker):
    """Prepare a new worker: it exits with the master process, so that no orphan keeps the port open."""
    from jobs.process import exit_with_parent
    from webapp.extensions import after_fork
    from webapp.web.events import STOPPING_KEY

    app = server.app.wsgi()
    exit_with_parent(server.pid)
    after_fork(app)
    worker.ending = lambda: _hand_over(app)
    # A worker that is stopping closes the streams of its followers, which then reconnect to another worker.
    app.extensions[STOPPING_KEY] = lambda: not worker.alive


def worker_exit(_server, worker):
    """Pass the counts of a stopping worker for /metrics on to the remaining processes."""
    if hasattr(worker, "ending"):
        worker.ending()


def _hand_over(app):
    from webapp.monitoring import metrics

    with app.app_context():
        metrics.flush()

"""The application behind a real socket, for tests that come by browser, SDK or another program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flask import Flask
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.conftest import SECRET_KEY
from tests.jobs.waiting import eventually

ROOT = Path(__file__).resolve().parents[1]


class Quiet(WSGIRequestHandler):
    """Keeps connections, and says nothing of requests."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def served(app: Flask) -> Iterator[str]:
    """The address of a server that runs `app`."""
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    server.daemon_threads = True
    server.block_on_close = False  # an open event stream does not hold the test up
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def by_gunicorn(
    folder: Path, redis_url: str, config: str = "gunicorn.conf.py", **settings: str
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The web server as it is served, of one process and with its files in `folder` (`log` among them): its process and
    port."""
    env = {
        "PATH": os.environ["PATH"],
        "SECRET_KEY": SECRET_KEY,
        "DATABASE_URL": f"sqlite:///{folder}/rowsmith.db",
        "REDIS_URL": redis_url,
        "ROWSMITH_DATA_DIR": str(folder),
        "ROWSMITH_PORT": "0",
        "ROWSMITH_WEB_WORKERS": "1",
        **settings,
    }
    log = folder / "log"
    command = [sys.executable, "-m", "gunicorn", "--config", config, "wsgi:app"]
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=out)
    try:
        found = eventually(
            lambda: process.poll() is not None or re.search(r"https?://127\.0\.0\.1:(\d+)", log.read_text()),
            60,
        )
        assert process.poll() is None, log.read_text()
        yield process, int(found[1])
    finally:
        process.terminate()
        process.wait(30)

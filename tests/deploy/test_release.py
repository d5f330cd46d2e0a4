"""A fresh clone, served only by the commands of the Procfile: `release` fetches the browser code and migrates, `web`
serves it, and does not start without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import SECRET_KEY, VAULT_KEY
from tests.deploy.conftest import free_port, procfile
from tests.jobs.waiting import eventually
from webapp.cli import assets
from webapp.paths import ROOT

OFFLINE = "the package registry cannot be reached"
NEEDED = ("webapp", "jobs", "templates", "static", "docs", "sdk", "gunicorn.conf.py", "wsgi.py", "package.json",
          "package-lock.json", "requirements-assets.lock", "requirements-scenarios.lock", "CHANGELOG.md")  # fmt: skip


class Clone:
    """A copy of the program without what is fetched, and the commands of its Procfile."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.folder, self.port = folder / "clone", free_port()
        self.folder.mkdir()
        ignored = shutil.ignore_patterns("vendor", ".vendor-*", "__pycache__", "node_modules")
        for name in NEEDED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self.folder / name, ignore=ignored)
            else:
                shutil.copy(source, self.folder)
        self.env = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "HOME": os.environ.get("HOME", str(folder)),
            "SECRET_KEY": SECRET_KEY,
            "VAULT_KEYS": VAULT_KEY,
            "REDIS_URL": redis_url,
            "ROWSMITH_DATA_DIR": str(folder / "data"),
            "ROWSMITH_WEB_WORKERS": "1",
            "PORT": str(self.port),
        }

    def start(self, part: str) -> subprocess.Popen[str]:
        """Start a process by its Procfile command in a shell; the tests listen only on loopback."""
        command = procfile()[part].replace("0.0.0.0", "127.0.0.1")
        return subprocess.Popen(
            ["sh", "-c", f"exec {command}"], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def get(self, path: str) -> str:
        """What an address answers with 200."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", headers={"Accept": "text/html"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read().decode()

    def answers(self) -> bool:
        try:
            return bool(self.get("/health/live"))
        except OSError:
            return False


@pytest.fixture
def clone(tmp_path: Path, shared_redis: str) -> Iterator[Clone]:
    return Clone(tmp_path, shared_redis)


def test_web_without_the_browser_code_stops_with_the_command_that_fetches_it(clone):
    web = clone.start("web")
    text, _ = web.communicate(timeout=60)
    assert web.returncode == 1
    assert text.splitlines()[-1].startswith("rowsmith: The browser code is not in ")
    assert "htmx.min.js" in text
    assert text.endswith("Run `python -m webapp.cli assets`.\n")
    assert "Traceback" not in text


def test_release_and_web_of_the_procfile_serve_pages_with_their_browser_code(clone):
    release = clone.start("release")
    text, _ = release.communicate(timeout=300)
    if OFFLINE in text:
        pytest.skip(text)
    assert release.returncode == 0, text
    assert assets.is_current(clone.folder / "static")
    web = clone.start("web")
    try:
        eventually(lambda: clone.answers() or web.poll() is not None, 120)
        assert web.poll() is None, web.communicate()[0]
        page = clone.get("/sign-in")
        scripts = re.findall(r'<script defer src="([^"]*htmx[^"]*)"', page)
        assert [re.sub(r"^.*/|\?.*$", "", script) for script in scripts] == [
            "htmx.min.js",
            "htmx-ext-sse.min.js",
        ]
        fetched = {Path(script.partition("?")[0]).name: clone.get(script) for script in scripts}
        assert "htmx" in fetched["htmx.min.js"]
        stored = {name: (clone.folder / "static" / "vendor" / name).read_text() for name in fetched}
        assert fetched == stored
    finally:
        web.terminate()
        web.communicate(timeout=60)

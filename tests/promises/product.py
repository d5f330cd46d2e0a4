"""The whole product, started as a person starts it, on each of the two stacks that the promises are made for.

`sqlite+valkey` is `./rowsmith up` with nothing set: its own SQLite file and embedded Valkey. `postgresql+redis` is the
same command with DATABASE_URL and REDIS_URL: an empty database on the PostgreSQL of the tests and a `redis-server` of
the test's own, which it may empty, stop and start.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import redis
import requests

from jobs.scenarios.environments import CHILD_SCRIPT
from tests.cli.conftest import ROOT, clean_environment, descendants, part_of, processes, rowsmith
from tests.conftest import _database
from tests.jobs.waiting import eventually
from webapp.cli import valkey

STACKS: Final = ("sqlite+valkey", "postgresql+redis")
# Part of the product -> the names that its process can have.
PARTS: Final = {
    "web": ("web",),
    "worker": ("worker-1",),
    "runner": ("runner-1",),
    "sweeper": ("sweeper",),
    "valkey": ("valkey-server", "redis-server"),
}


def bound() -> list[str]:
    """Return the prefix of a command whose process must exit when the tests are killed."""
    return [sys.executable, "-I", str(CHILD_SCRIPT), str(os.getpid())]


class OwnRedis:
    """A redis-server on a free port of loopback, that keeps nothing on disk."""

    def __init__(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("no redis-server on the PATH: the stack of PostgreSQL and Redis needs one")
        self.port = valkey.free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = [
            program,
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Returns when it answers."""
        self.process = subprocess.Popen(
            [*bound(), *self._command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        eventually(lambda: answers(self.url))

    def stop(self) -> None:
        """As if its machine had lost its power."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def answers(url: str) -> bool:
    """Whether a Redis speaks at an address."""
    with redis.Redis.from_url(url) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False


class Product:
    """One running product. `settings` are environment variables of its parts; `within` a command that runs it."""

    within: tuple[str, ...] = ()

    def __init__(self, stack: str, folder: Path, *options: str, **settings: str) -> None:
        self.stack, self.folder, self.data = stack, folder, folder / "data"
        self.options = list(options)
        self.settings = settings
        self.redis_server: OwnRedis | None = None
        self.output = folder / "output"
        self.process: subprocess.Popen[str] | None = None
        self.key = ""
        self._open: list[Api] = []

    def start(self) -> None:
        """Returns when it is ready; the first time it also reads the key that is printed then."""
        command = [
            *bound(),
            *self.within,
            sys.executable,
            "-m",
            "webapp.cli",
            "up",
            "--port",
            "0",
            "--data-dir",
            str(self.data),
            *self.options,
        ]
        with self.output.open("w") as out:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=clean_environment(**self.settings), stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
        eventually(lambda: "Ctrl-C" in self.text or self.process.poll() is not None, within=240)
        assert self.process.poll() is None, self.text
        if found := re.search(r"rws_\w+", self.text):
            self.key = found[0]

    def stop(self) -> int:
        """Ask it to end, and wait; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)

    def close(self) -> None:
        """Stop the product, even if it does not respond."""
        for item in self._open:
            item.session.close()
        if self.process is not None and self.process.poll() is None:
            below = descendants(self.process.pid)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            eventually(lambda: not below & processes().keys())

    @property
    def text(self) -> str:
        """What it printed."""
        return self.output.read_text()

    def _told(self, name: str) -> str:
        return str(json.loads((self.data / "up.json").read_text())[name])

    @property
    def url(self) -> str:
        return self._told("url")

    @property
    def redis_url(self) -> str:
        return self._told("redis_url")

    @property
    def database_url(self) -> str:
        return self.settings.get("DATABASE_URL", f"sqlite:///{self.data / 'rowsmith.db'}")

    def logs(self) -> str:
        """All that its parts logged."""
        return "".join(
            path.read_text(errors="replace") for path in sorted((self.data / "logs").glob("*.log*"))
        )

    def part(self, name: str) -> set[int]:
        """The processes of a part that `up` itself started."""
        return {pid for item in PARTS[name] for pid in part_of(self.process.pid, item)}

    def command(self, *words: str) -> str:
        """What a command of `./rowsmith` prints about this product."""
        done = rowsmith(*words, "--data-dir", str(self.data), **self.settings)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def plan(self, **numbers: int) -> None:
        """Numbers of the demo workspace: requests_per_minute, rows_per_hour, rows_per_generation."""
        words = [
            word for name, value in numbers.items() for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        self.command("plan", "My workspace", "enterprise", *words)

    def api(self, key: str | None = None) -> Api:
        """Return an API client with a key and a separate connection."""
        result = Api(self.url, self.key if key is None else key)
        self._open.append(result)
        return result

    def browser(self) -> Api:
        """A person of the demo, signed in by a one-time link."""
        link = self.command("sign-in").strip()
        result = self.api("")
        result.session.headers["Accept"] = "text/html"
        form = result.session.get(link, timeout=30).text
        token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', form)
        assert token, form
        entered = result.session.post(
            link, {"csrf_token": token[1]}, headers={"Origin": self.url}, timeout=30
        )
        assert entered.status_code == 200, entered.text[:500]
        return result

    def redis(self) -> redis.Redis:
        """Its Redis."""
        return redis.Redis.from_url(self.redis_url)

    def ready(self) -> bool:
        """Whether /health/ready says so."""
        try:
            return requests.get(f"{self.url}/health/ready", timeout=5).status_code == 200
        except (OSError, requests.RequestException):
            return False


class Api:
    """Requests to a product."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.session.trust_env = False
        if key:
            self.session.headers["Authorization"] = f"Bearer {key}"

    def call(self, method: str, path: str, **how: Any) -> requests.Response:
        """Return the response with any status."""
        return self.session.request(method, f"{self.url}{path}", timeout=how.pop("timeout", 90), **how)

    def get(self, path: str, **how: Any) -> requests.Response:
        return self.call("GET", path, **how)

    def post(self, path: str, body: Any = None, **how: Any) -> requests.Response:
        return self.call("POST", path, json={} if body is None else body, **how)

    def made(self, path: str, body: Any = None, **how: Any) -> dict[str, Any]:
        """What a POST made."""
        answer = self.post(path, body, **how)
        assert answer.status_code in (200, 201), f"POST {path}: {answer.status_code} {answer.text[:500]}"
        return answer.json()

    def read(self, path: str, **how: Any) -> dict[str, Any]:
        """Return the JSON at a URL."""
        answer = self.get(path, **how)
        assert answer.status_code == 200, f"GET {path}: {answer.status_code} {answer.text[:500]}"
        return answer.json()

    def named(self, path: str, name: str) -> dict[str, Any]:
        """The one object of a list that has this name."""
        (found,) = [item for item in self.read(f"{path}?limit=100")["items"] if item["name"] == name]
        return found

    def ended(self, path: str, within: float = 120) -> dict[str, Any]:
        """A run, push or export, once it has ended."""

        def look() -> dict[str, Any] | None:
            found = self.read(path)
            return found if found["status"] not in ("queued", "running") else None

        return eventually(look, within)


@contextmanager
def running(stack: str, *options: str, within: tuple[str, ...] = (), **settings: str) -> Iterator[Product]:
    """Start a product in a new folder, and remove everything at the end."""
    folder = Path(tempfile.mkdtemp(prefix="rowsmith-promise-"))
    with ExitStack() as stored:
        stored.callback(shutil.rmtree, folder, ignore_errors=True)
        own = None
        if stack == "postgresql+redis":
            own = OwnRedis()
            stored.callback(own.stop)
            settings = {"DATABASE_URL": stored.enter_context(_database()), "REDIS_URL": own.url, **settings}
        product = Product(stack, folder, *options, **settings)
        product.redis_server, product.within = own, within
        stored.callback(product.close)
        product.start()
        yield product

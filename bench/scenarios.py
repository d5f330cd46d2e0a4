"""Measure the speed of scenario runs: time to the first line compared with plain Python, 200 followers, and
10,000 lines per second.

.venv/bin/python bench/scenarios.py [--runs 15] [--followers 200] [--lines 100000] [--sandbox auto]

Starts a separate service on loopback with web processes, a runner and the embedded Valkey, and stops it at
the end. Prints the following figures, with medians over the runs:

- seconds from `POST /scenarios/{id}/run` to the first line at a follower, with an existing environment;
- the overhead of the sandbox for a program that does nothing, compared with the same command without sandbox,
in turns;
- milliseconds of `GET /health/live` without other load, and while the followers read a growing log;
- log lines per second, each delivered as a separate line, and how many are missing.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.serve import free_port

GROWS = "import time\nfor n in range(100_000):\n    print('line', n)\n    time.sleep(0.02)\n"
# Paced: this many lines every hundredth of a second, so that the program sets the rate and not the machine.
PACED = """
import os, sys, time
lines, rate = int(os.environ["LINES"]), int(os.environ["RATE"])
begin = time.monotonic()
for n in range(0, lines, rate // 100):
    sys.stdout.write("".join(f"line {m} of a program that prints a lot\\n" for m in range(n, n + rate // 100)))
    sys.stdout.flush()
    ahead = (n + rate // 100) / rate - (time.monotonic() - begin)
    if ahead > 0: time.sleep(ahead)
"""


class Service:
    """`./rowsmith up` in a separate folder."""

    def __init__(self, folder: Path, sandbox: str) -> None:
        self.port = free_port()
        env = {**os.environ, "SANDBOX": sandbox, "PYTHONPATH": str(ROOT)}
        for name in ("REDIS_URL", "DATABASE_URL", "SECRET_KEY", "VAULT_KEYS", "STORAGE_URL", "PUBLIC_URL"):
            env.pop(name, None)
        command = [
            sys.executable,
            "-m",
            "webapp.cli",
            "up",
            "--port",
            str(self.port),
            "--data-dir",
            str(folder),
        ]
        self.process = subprocess.Popen(
            [*command, "--workers", "1", "--runners", "1"],
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.key = ""
        assert self.process.stdout
        for line in self.process.stdout:
            words = line.split()
            if words[:2] == ["API", "key"]:
                self.key = words[2]
            if words[:1] == ["stop"]:
                break
        assert self.key, "the service did not start"

    def call(self, method: str, path: str, body: object = None) -> dict:
        """Return the response of a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=330)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:500]!r}")
        return json.loads(text)

    def scenario(self, code: str) -> str:
        """Return a saved program."""
        return self.call("POST", "/scenarios", {"name": "bench", "code": code, "network": "api"})["id"]

    def follow(self, path: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """A follower of a log."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", f"{path}/logs?follow=true", headers={"Authorization": f"Bearer {self.key}"})
        answer = connection.getresponse()
        if answer.status != 200:
            connection.close()
            raise RuntimeError(str(answer.status))
        return connection, answer

    def stop(self) -> None:
        """Stop the service as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(120)


def first_lines(service: Service, runs: int) -> list[float]:
    """Return the seconds to the first line at a follower."""
    scenario = service.scenario("print('first')")
    service.call("POST", f"/scenarios/{scenario}/run", {"wait": True})  # prepares the environment
    found = []
    for _ in range(runs):
        begin = time.perf_counter()
        run = service.call("POST", f"/scenarios/{scenario}/run", {})
        connection, answer = service.follow(f"/scenarios/{scenario}/runs/{run['id']}")
        while not answer.readline().startswith(b"data: first"):
            pass
        found.append(time.perf_counter() - begin)
        connection.close()
    return found


def overhead(sandbox: str, runs: int) -> tuple[list[float], list[float], str]:
    """Return the seconds of a program that does nothing, with and without the sandbox."""
    from jobs.sandbox import Caps, SandboxSpec, mode, start

    way = mode(sandbox)
    caps = Caps(60, 60, 512 << 20, 64, 1 << 20, 1 << 20, 1 << 20)
    inside, bare = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as name, open(os.devnull, "wb") as null:
            os.chmod(name, 0o755)
            folders = {item: Path(name, item) for item in ("code", "uploads", "outputs")}
            for folder in folders.values():
                folder.mkdir()
            (folders["code"] / "main.py").write_text("")
            box = SandboxSpec(
                command=("python3", "main.py"), environment=Path(sys.prefix), read_only=(Path(sys.base_prefix),),
                env={}, network="api", api=("127.0.0.1", 1), caps=caps, **folders,
            )  # fmt: skip
            begin = time.perf_counter()
            with start(box, way, null.fileno()) as boxed:
                code = boxed.wait(30)
            inside.append(time.perf_counter() - begin)
            assert code == 0, code
            begin = time.perf_counter()
            subprocess.run([sys.executable, str(folders["code"] / "main.py")], check=True, env={})
            bare.append(time.perf_counter() - begin)
    return inside, bare, way.name


def health(service: Service, seconds: float) -> list[float]:
    """Return the seconds of consecutive GET /health/live requests, each over a new connection."""
    found, until = [], time.perf_counter() + seconds
    while time.perf_counter() < until:
        begin = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
        connection.request("GET", "/health/live")
        assert connection.getresponse().read()
        connection.close()
        found.append(time.perf_counter() - begin)
        time.sleep(0.02)
    return found


@contextmanager
def followers(service: Service, path: str, count: int) -> Iterator[dict[str, int]]:
    """A number of followers of a log; a separate process reads for all of them."""
    command = [sys.executable, __file__, "--follow", path, str(service.port), service.key, str(count)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    output = json.loads(process.stdout.readline())
    yield output
    process.stdin.close()
    output |= json.loads(process.stdout.readline())
    process.wait(30)


def follow_many(path: str, port: int, key: str, count: int) -> None:
    """Run the separate process: open all followers, report that, read until its input is closed, and report
    what arrived."""
    import selectors

    selector, refused = selectors.DefaultSelector(), 0
    for _ in range(count):
        for _ in range(50):
            one = socket.create_connection(("127.0.0.1", port), 10)
            one.sendall(
                f"GET {path}/logs?follow=true HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {key}\r\n\r\n".encode()
            )
            if one.recv(4096).startswith(b"HTTP/1.1 200"):
                break
            refused += 1
            one.close()
            time.sleep(0.1)
        one.setblocking(False)
        selector.register(one, selectors.EVENT_READ)
    print(json.dumps({"followers": count, "asked_again": refused}), flush=True)
    selector.register(sys.stdin, selectors.EVENT_READ)
    received, heard = 0, set()
    while True:
        for item, _ in selector.select():
            if item.fileobj is sys.stdin:
                print(json.dumps({"bytes": received, "heard": len(heard)}), flush=True)
                return
            data = item.fileobj.recv(65536)
            received += len(data)
            heard.add(item.fd)
            if not data:
                selector.unregister(item.fileobj)


def lines(service: Service, count: int, rate: int) -> tuple[float, int]:
    """Return log lines per second, and how many are missing or out of order."""
    scenario = service.scenario(PACED)
    params = {"LINES": str(count), "RATE": str(rate)}
    run = service.call("POST", f"/scenarios/{scenario}/run", {"params": params})
    path = f"/scenarios/{scenario}/runs/{run['id']}"
    connection, answer = service.follow(path)
    expected, missing, begin, ended = 0, 0, None, False
    for line in answer:
        if line.startswith(b"data: line "):
            begin = begin or time.perf_counter()
            number = int(line.split()[2])
            missing += number != expected
            expected = number + 1
        ended = ended or line.startswith(b"event: end")
        if ended and line.startswith(b"data: "):
            break
    seconds = time.perf_counter() - (begin or 0)
    connection.close()
    data = service.call("GET", path)
    assert data["status"] == "completed", data
    return count / seconds, missing + abs(count - expected) + abs(data["line_count"] - count)


def shown(name: str, values: list[float], unit: str = "ms") -> None:
    """Print a line with the median and the 99th percentile."""
    scale = 1000 if unit == "ms" else 1
    ordered = sorted(values)
    worst = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    print(f"{name:<58}{statistics.median(values) * scale:8.1f} {unit}   p99 {worst * scale:8.1f}", flush=True)


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--followers", type=int, default=200)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--follow", nargs=4, help=argparse.SUPPRESS)
    value = parser.parse_args()
    if value.follow:
        path, port, key, count = value.follow
        follow_many(urlsplit(path).path, int(port), key, int(count))
        return
    inside, bare, way = overhead(value.sandbox, value.runs)
    shown(f"a program that does nothing, in {way}", inside)
    shown("the same command, without sandbox", bare)
    extra = [item - other for item, other in zip(inside, bare, strict=True)]
    shown("overhead of the sandbox (target: below 50)", extra)
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder), value.sandbox)
        try:
            shown("from the request to the first line (target: below 1000)", first_lines(service, value.runs))
            shown("GET /health/live, no followers", health(service, 3))
            scenario = service.scenario(GROWS)
            run = service.call("POST", f"/scenarios/{scenario}/run", {})
            path = f"/scenarios/{scenario}/runs/{run['id']}"
            with followers(service, path, value.followers) as result:
                threading.Event().wait(1)
                shown(
                    f"GET /health/live, {value.followers} followers (target: below 50)", health(service, 10)
                )
            print(f"{'':4}{result}")
            service.call("DELETE", path)
            rate, missing = lines(service, value.lines, value.rate)
            print(f"{'log lines per second, delivered to a follower':<58}{rate:8,.0f}   {missing} missing")
        finally:
            service.stop()


if __name__ == "__main__":
    main()

"""Measure the response time of the server, compared with a minimal Flask route under the same gunicorn, in
one run.

.venv/bin/python bench/serve.py [--seconds 5] [--connections 16]

Prints: requests per second of a generate call for ten rows (including key check, limits and audit) and of a
route that only returns ``[]``, in turns, with their ratio; the time to the first byte of a 1,000,000-row
stream; and requests per second of a route that only calls Faker for ten rows. Everything runs on loopback and
stops by itself.

Next to each rate is the processor time that the servers spent per request (web processes, Valkey and workers,
without the client), from /proc. It depends less on other load and on the cost of the client. The client is
one thread with a selector: sixteen threads would use a quarter of the minimal route's time and make the ratio
look better. The minimal route runs under gunicorn's own worker. Ratios are medians over adjacent rounds.
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import re
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.sample import FIELDS

BARE = """
from flask import Flask, jsonify
from faker import Faker
app, fake = Flask(__name__), Faker()

@app.post("/bare")
def bare():
    return jsonify([])

@app.post("/faker")
def faker():
    return jsonify([
        {"id": i, "name": fake.name(), "email": fake.email(), "street": fake.street_address(), "city": fake.city(),
         "country": fake.country(), "phone": fake.phone_number(), "quantity": fake.random_int(0, 1000),
         "amount": fake.pyfloat(min_value=0, max_value=1000, right_digits=2), "day": fake.date(),
         "key": fake.uuid4()} for i in range(10)])
"""


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def bare_server() -> Iterator[tuple[int, int]]:
    """Start the minimal Flask application under gunicorn's own worker, with as many processes as Rowsmith.
    Return its port and process."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bare.py").write_text(BARE)
        port = free_port()
        command = [
            sys.executable,
            "-m",
            "gunicorn",
            "--bind",
            f"127.0.0.1:{port}",
            "--worker-class",
            "gthread",
        ]
        command += [
            "--workers",
            "2",
            "--threads",
            "64",
            "--chdir",
            folder,
            "--log-level",
            "error",
            "bare:app",
        ]
        process = subprocess.Popen(command, cwd=folder)  # not in the folder of Rowsmith's gunicorn.conf.py
        try:
            wait_for(port)
            yield port, process.pid
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def rowsmith_server(*more: str) -> Iterator[tuple[int, int, str]]:
    """Start a separate Rowsmith in a separate folder. Return its port, its process and an API key. `more` are
    options of `up`."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        command = [str(ROOT / "rowsmith"), "up", "--port", str(port), "--data-dir", folder, *more]
        log = Path(folder) / "up.out"
        with log.open("w") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            deadline = time.monotonic() + 300
            while not (found := re.search(r"rws_\w+", log.read_text())):
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit("rowsmith did not start:\n" + log.read_text())
                time.sleep(0.2)
            wait_for(port)
            raise_limits(folder)
            settle(process.pid)
            yield port, process.pid, found.group(0)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def settle(pid: int) -> None:
    """Wait for the background work of a first start, which prepares common libraries for programs."""
    deadline, before, idle = time.monotonic() + 300, processor_seconds(pid), 0
    while idle < 5 and time.monotonic() < deadline:
        time.sleep(1)
        now = processor_seconds(pid)
        idle, before = (idle + 1 if now - before < 0.1 else 0), now


def raise_limits(folder: str) -> None:
    """Remove the request limit of the demo workspace, so that the speed is measured and not the limit."""
    command = [str(ROOT / "rowsmith"), "plan", "My workspace", "enterprise", "--data-dir", folder]
    command += ["--requests-per-minute", "60000", "--rows-per-hour", "100000000000"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def wait_for(port: int) -> None:
    """Wait until ``port`` accepts connections."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens on {port}")


def request(path: str, body: object, key: str = "") -> bytes:
    """Return an HTTP/1.1 POST request as bytes."""
    raw = json.dumps(body).encode()
    auth = f"Authorization: Bearer {key}\r\n" if key else ""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{auth}"
    return f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw


def exchange(sock: socket.socket, message: bytes, buffer: bytearray) -> int:
    """Send a request, read the whole response, and return the status."""
    sock.sendall(message)
    del buffer[:]
    while (end := buffer.find(b"\r\n\r\n")) < 0:
        buffer += _some(sock)
    head = bytes(buffer[:end]).lower()
    if b"transfer-encoding: chunked" in head:
        while not buffer.endswith(b"\r\n0\r\n\r\n"):
            buffer += _some(sock)
    else:
        length = int(re.search(rb"content-length: (\d+)", head).group(1))
        while len(buffer) < end + 4 + length:
            buffer += _some(sock)
    return int(head[9:12])


def _some(sock: socket.socket) -> bytes:
    data = sock.recv(65536)
    if not data:
        raise ConnectionError("the server closed the connection")
    return data


def load(port: int, message: bytes, seconds: float, connections: int) -> float:
    """Return the number of requests per second that ``connections`` concurrent clients get answered with 200."""
    selector = selectors.DefaultSelector()
    for _ in range(connections):
        sock = socket.create_connection(("127.0.0.1", port), 10)
        selector.register(sock, selectors.EVENT_READ, bytearray())
    count, begun = 0, time.monotonic()
    for key in selector.get_map().values():
        key.fileobj.sendall(message)
    while open_ones := selector.get_map():
        ready = selector.select(30)
        if not ready:
            sys.exit(f"{len(open_ones)} requests got no response")
        for key, _ in ready:
            key.data.extend(_some(key.fileobj))
            if not _is_whole(key.data):
                continue
            if key.data[9:12] != b"200":
                raise RuntimeError(bytes(key.data[-500:]))
            count += 1
            key.data.clear()
            if time.monotonic() - begun < seconds:
                key.fileobj.sendall(message)
            else:
                selector.unregister(key.fileobj)
                key.fileobj.close()
    return count / (time.monotonic() - begun)


def _is_whole(answer: bytearray) -> bool:
    end = answer.find(b"\r\n\r\n")
    found = re.search(rb"(?i)content-length: (\d+)", answer[: max(end, 0)])
    return found is not None and len(answer) >= end + 4 + int(found[1])


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process and its children so far."""
    spent = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        spent += int((task / "schedstat").read_text().split()[0])
        for child in (task / "children").read_text().split():
            spent += round(processor_seconds(int(child)) * 1e9)
    return spent / 1e9


def first_byte(port: int, message: bytes) -> float:
    """Return the milliseconds from the request to the first byte of the body. The stream is then closed."""
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        start = time.perf_counter()
        sock.sendall(message)
        data = b""
        while not data.partition(b"\r\n\r\n")[2]:
            data += _some(sock)
        took = (time.perf_counter() - start) * 1000
    if b" 200 " not in data[:20]:
        sys.exit(data.decode(errors="replace")[:1000])
    return took


def main() -> None:
    """Run all measurements and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    value = parser.parse_args()
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    with rowsmith_server() as (port, pid, key), bare_server() as (bare, bare_pid):
        ten = request("/generate", {"name": "bench", "fields": FIELDS, "count": 10, "seed": "s"}, key)
        create = {"name": "bench", "fields": FIELDS}
        template = _created(port, request("/templates", create, key))
        saved = request(f"/templates/{template}/generate", {"count": 10, "seed": "s"}, key)
        stream = request(f"/templates/{template}/generate", {"count": 1_000_000, "format": "csv"}, key)
        jobs = {
            "minimal Flask route": (bare, bare_pid, request("/bare", {})),
            "generate 10 rows, saved template": (port, pid, saved),
            "generate 10 rows, template in the body": (port, pid, ten),
            "Flask route that calls Faker for 10 rows": (bare, bare_pid, request("/faker", {})),
        }
        compare(jobs, value)
        times = []
        for _ in range(30):
            time.sleep(0.5)  # a closed stream is still generating its last block
            times.append(first_byte(port, stream))
        print(
            f"first byte of 1,000,000 rows: median {statistics.median(times):.1f} ms, maximum {max(times):.1f} ms"
        )


def compare(jobs: dict[str, tuple[int, int, bytes]], given: argparse.Namespace) -> None:
    """Print rate and processor time of every job (port, process, request), in turns, compared with the first."""
    rates: dict[str, list[float]] = {name: [] for name in jobs}
    costs: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(given.rounds):
        for name, (port, pid, message) in jobs.items():
            time.sleep(0.5)
            before, begun = processor_seconds(pid), time.monotonic()
            rate = load(port, message, given.seconds, given.connections)
            rates[name].append(rate)
            answered = rate * (time.monotonic() - begun)
            costs[name].append((processor_seconds(pid) - before) / answered * 1000)
    first = next(iter(jobs))
    for name in jobs:
        rate, cost = statistics.median(rates[name]), statistics.median(costs[name])
        ratio = statistics.median(map(operator.truediv, rates[name], rates[first]))
        times = statistics.median(map(operator.truediv, costs[name], costs[first]))
        print(
            f"{name:42s} {rate:6.0f} requests/s  {ratio:5.3f} of minimal  {cost:6.2f} ms each  {times:5.2f} x minimal"
        )


def _created(port: int, message: bytes) -> str:
    buffer = bytearray()
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        exchange(sock, message, buffer)
    return re.search(rb"tpl_\w+", bytes(buffer)).group(0).decode()


if __name__ == "__main__":
    main()

"""Measure how long Rowsmith takes to start and how much memory it uses while idle, next to a bare Flask application.

.venv/bin/python bench/start.py [--rounds 3] [--idle 20]

Prints: seconds from `./rowsmith up` to its address, for a new data folder (with migrations and the demo) and for an
existing one; the proportional set size (PSS) of all its processes after `--idle` seconds without requests; and the
seconds in which Python imports a worker. The peer, measured in the same rounds, is what a service of this kind cannot
do without: gunicorn with a Flask route in two processes, and one RQ worker that has imported Flask, SQLAlchemy, numpy
and pyarrow, without a queue. Ratios are medians over the rounds. Everything runs on loopback and stops by itself.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BARE = """
from flask import Flask
app = Flask(__name__)

@app.get("/")
def bare():
    return "ready"
"""
WORKER = (
    "import flask, flask_sqlalchemy, numpy, pyarrow, rq, time; print('ready', flush=True); time.sleep(600)"
)


def pss_megabytes(pid: int) -> float:
    """Return the proportional set size of a process and all below it."""
    total = 0.0
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has just ended
        return 0.0
    total += int(re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)[1]) / 1024
    return total + sum(pss_megabytes(int(child)) for child in children)


def rowsmith(data: Path, idle: float) -> tuple[float, float]:
    """Start Rowsmith on a data folder. Return the seconds until it is ready, and its idle memory in MB."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [ROOT / "rowsmith", "up", "--port", "0", "--data-dir", data], stdout=subprocess.PIPE, text=True
    )
    try:
        for line in process.stdout:
            if line.startswith("Rowsmith is running"):
                break
        else:
            sys.exit("rowsmith did not start")
        seconds = time.perf_counter() - begun
        time.sleep(idle)
        return seconds, pss_megabytes(process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def bare(folder: Path, idle: float) -> tuple[float, float]:
    """The same of the peer."""
    (folder / "bare.py").write_text(BARE)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    begun = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", "2", "bare:app"],
        cwd=folder,
        stderr=subprocess.DEVNULL,
    )
    worker = subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE, text=True)
    try:
        worker.stdout.readline()
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).read()
                break
            except OSError:
                time.sleep(0.02)
        seconds = time.perf_counter() - begun
        time.sleep(idle)
        return seconds, pss_megabytes(server.pid) + pss_megabytes(worker.pid)
    finally:
        for process in (server, worker):
            process.terminate()
            process.communicate(timeout=30)


def import_seconds() -> float:
    """Return how long a process takes that only imports a worker."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import jobs.worker"], cwd=ROOT, check=True)
    return time.perf_counter() - begun


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--idle", type=float, default=20.0)
    arguments = parser.parse_args()
    first, warm, memory, imports, peer, peer_memory = ([] for _ in range(6))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.rounds):
            data = Path(folder) / str(number)
            first.append(rowsmith(data, 0)[0])
            for found, values in zip((warm, memory), rowsmith(data, arguments.idle), strict=True):
                found.append(values)
            for found, values in zip((peer, peer_memory), bare(Path(folder), arguments.idle), strict=True):
                found.append(values)
            imports.append(import_seconds())
    middle = statistics.median
    print(f"load of the machine: {os.getloadavg()[0]:.1f}; processors: {os.cpu_count()}")
    print(f"first start: {middle(first):.2f} s")
    ratio = middle(mine / theirs for mine, theirs in zip(warm, peer, strict=True))
    print(
        f"warm start:  {middle(warm):.2f} s (bare Flask and a worker: {middle(peer):.2f} s, ratio {ratio:.1f})"
    )
    ratio = middle(mine / theirs for mine, theirs in zip(memory, peer_memory, strict=True))
    print(f"idle memory: {middle(memory):.0f} MB PSS (bare: {middle(peer_memory):.0f} MB, ratio {ratio:.1f})")
    print(f"import of a worker: {middle(imports):.2f} s")


if __name__ == "__main__":
    main()

"""Measure how long pushes wait to be accepted when many are requested at the same time.

python bench/accept_pushes.py [--pushes 30] [--tables 200] [--rounds 3] [--url postgresql://...]

Starts its own service and creates a database with `--tables` tables on the PostgreSQL server of `--url`.
Prints the seconds from the request to the 201 response of a single push, of `--pushes` concurrent pushes
(median, maximum), and the ratio of that median to the single push: for known tables, for the first pushes of
a connection, whose tables must be read, and for pushes that create their tables.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from secrets import token_hex

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import psycopg
import requests

URL = "postgresql://postgres@127.0.0.1:5432/postgres"
COLUMNS = ["id bigint PRIMARY KEY", "name varchar(60) NOT NULL", "email varchar(120)", "city varchar(60)",
           *(f"c{number} varchar(40)" for number in range(16))]  # fmt: skip
FIELDS = [{"name": "id", "type": "row_number"}, {"name": "name", "type": "name"}, {"name": "email", "type": "email"},
          {"name": "city", "type": "city"}, *({"name": f"c{n}", "type": "word"} for n in range(16))]  # fmt: skip


class Service:
    """A Rowsmith in a separate folder."""

    def __init__(self, folder: str) -> None:
        self._log = open(f"{folder}/log", "w")  # noqa: SIM115 - closed with the service
        self._process = subprocess.Popen(
            [sys.executable, "-m", "webapp.cli", "up", "--port", "0", "--data-dir", f"{folder}/data"],
            cwd=ROOT, stdout=self._log, stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        while "Ctrl-C" not in (text := Path(f"{folder}/log").read_text()):
            if self._process.poll() is not None:
                raise SystemExit(text)
            time.sleep(0.1)
        self.url = re.findall(r"http://127\.0\.0\.1:\d+", text)[0]
        self.key = re.findall(r"rws_\w+", text)[0]

    def post(self, path: str, body: object) -> tuple[dict[str, object], float]:
        """Return the object that a POST created, and the seconds it took."""
        began = time.perf_counter()
        answer = requests.post(
            self.url + path, json=body, headers={"Authorization": f"Bearer {self.key}"}, timeout=120
        )
        took = time.perf_counter() - began
        if answer.status_code not in (200, 201):
            raise SystemExit(f"POST {path}: {answer.status_code} {answer.text[:500]}")
        return answer.json(), took

    def close(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)
        self._log.close()


def together(work: list[tuple[Service, str, dict[str, object]]]) -> list[float]:
    """Return the seconds of concurrent requests."""
    found: list[float] = []
    start = threading.Barrier(len(work))

    def one(service: Service, path: str, body: dict[str, object]) -> None:
        start.wait()
        found.append(service.post(path, body)[1])

    threads = [threading.Thread(target=one, args=args) for args in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def main() -> None:
    """Measure."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pushes", type=int, default=30)
    options.add_argument("--tables", type=int, default=200)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--url", default=URL)
    request = options.parse_args()
    name = f"bench_{token_hex(4)}"
    with psycopg.connect(request.url, autocommit=True) as server, tempfile.TemporaryDirectory() as folder:
        server.execute(f"CREATE DATABASE {name}")
        try:
            own = request.url.rpartition("/")[0] + f"/{name}"
            with psycopg.connect(own, autocommit=True) as target:
                for number in range(request.tables):
                    target.execute(f"CREATE TABLE table_{number} ({', '.join(COLUMNS)})")
            service = Service(folder)
            try:
                measure(service, own, request.pushes, request.rounds)
            finally:
                service.close()
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def measure(service: Service, url: str, pushes: int, rounds: int) -> None:
    """Print the figures: pushes to known tables, the first pushes of a connection, and pushes that create
    tables."""
    template = service.post("/templates", {"name": "Bench", "fields": FIELDS})[0]["id"]
    path, place = f"/templates/{template}/push", 0

    def connection() -> str:
        settings = {"connection_string": url}
        return str(
            service.post("/connections", {"name": "Bench", "type": "postgresql", "settings": settings})[0][
                "id"
            ]
        )

    def body(connection_id: str, creates: bool = False) -> dict[str, object]:
        nonlocal place
        place += 1
        target = f"new_{place}" if creates else f"table_{place % 150}"
        offset = {"count": 5, "offset": 5 * place}
        return {"connection_id": connection_id, "target": target, "create_table": creates, **offset}

    known = connection()
    service.post(path, body(known))  # reads the tables
    cases = (("known tables", False, False), ("first pushes", True, False), ("new tables", False, True))
    for name, fresh, creates in cases:
        medians, longest = [], []
        alone = [
            service.post(path, body(connection() if fresh else known, creates))[1]
            for _ in range(max(rounds, 3))
        ]
        for _ in range(rounds):
            to = connection() if fresh else known
            found = together([(service, path, body(to, creates)) for _ in range(pushes)])
            medians.append(statistics.median(found))
            longest.append(max(found))
            time.sleep(2)
        one, median = statistics.median(alone), statistics.median(medians)
        message = f"{pushes} together {median:6.3f} s median, {max(longest):6.3f} s maximum"
        print(f"{name:<13} one {one:6.3f} s, {message}, ratio {median / one:5.1f}", flush=True)


if __name__ == "__main__":
    main()

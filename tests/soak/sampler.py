"""Measure the resources of a running product every few seconds as lines of a CSV file, and calculate their growth in a
way that single peaks do not matter.

Memory is the proportional set size of all processes of a part (pages that several share are counted once among them);
descriptors are counted in /proc. The same file is what `charts` draws.

A worker forks a process for each piece of work, which ends with it. Whether a measurement meets one, young or old, says
how busy the worker is: on a machine that slows down it meets more of them, and their 60 MB look like growth although
none is left. What can grow is the process that stays, so of workers and runners that one is measured by itself as well,
and growth is judged by it: by its resident set, since its proportional one halves while it has a fork.
"""

from __future__ import annotations

import csv
import statistics
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, Final

import redis
import requests

from tests.cli.conftest import descendants
from tests.promises.product import Product
from webapp.work.jobs_queue import KINDS

GROUPS: Final = ("web", "worker", "runner", "sweeper", "valkey")
FORKING: Final = ("worker", "runner")
QUEUES: Final = tuple(dict.fromkeys(kind.queue for kind in KINDS.values()))
COLUMNS: Final = (
    "seconds", *(f"{group}_mb" for group in GROUPS), *(f"{group}_fds" for group in GROUPS), "live_ms", "median_ms",
    "slow_ms", "requests", "rings", "redis_mb", *(f"{group}_own_mb" for group in FORKING),
)  # fmt: skip
MOST_POINTS: Final = 400  # of a slope: the number of pairs is its square


class Sampler:
    """Measures a product until it is stopped."""

    def __init__(self, product: Product, path: Path, times: deque[float], every: float = 5.0) -> None:
        self.product, self.path, self.every = product, path, every
        self._times, self._end = times, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.rows: list[dict[str, float]] = []
        self.troubles: list[str] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join(60)

    def _run(self) -> None:
        begun = time.monotonic()
        with self.path.open("w", newline="") as file:
            out = csv.DictWriter(file, COLUMNS)
            out.writeheader()
            while not self._end.wait(self.every):
                try:
                    row = self.sample()
                except (OSError, requests.RequestException, redis.RedisError) as error:
                    self.troubles.append(
                        f"after {time.monotonic() - begun:.0f} s: {type(error).__name__}: {error}"
                    )
                    continue
                row["seconds"] = round(time.monotonic() - begun, 1)
                self.rows.append(row)
                out.writerow(row)
                file.flush()

    def sample(self) -> dict[str, float]:
        """One line."""
        row: dict[str, float] = {}
        for group in GROUPS:
            top = self.product.part(group)
            if group == "valkey" and not top and self.product.redis_server is not None:
                top = {self.product.redis_server.process.pid}
            pids = top.union(*(descendants(pid) for pid in top))
            row[f"{group}_mb"] = round(sum(map(memory, pids)), 1)
            if group in FORKING:
                row[f"{group}_own_mb"] = round(sum(memory(pid, "Rss:") for pid in top), 1)
            row[f"{group}_fds"] = sum(map(descriptors, pids))
        begun = time.perf_counter()
        requests.get(f"{self.product.url}/health/live", timeout=30).raise_for_status()
        row["live_ms"] = round(1000 * (time.perf_counter() - begun), 1)
        taken = sorted(self._times.popleft() for _ in range(len(self._times)))
        row["requests"] = len(taken)
        row["median_ms"] = round(1000 * taken[len(taken) // 2], 1) if taken else 0
        row["slow_ms"] = round(1000 * taken[min(len(taken) - 1, 95 * len(taken) // 100)], 1) if taken else 0
        with self.product.redis() as client:
            row["rings"] = sum(client.llen(f"rq:queue:{name}") for name in QUEUES)
            row["redis_mb"] = round(client.info("memory")["used_memory"] / 2**20, 2)
        return row


def memory(pid: int, kind: str = "Pss:") -> float:
    """Megabytes of a process, its share of what it shares or what `kind` says; 0 when it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith(kind)), 0) / 1024


def descriptors(pid: int) -> int:
    """How many files, sockets and pipes a process holds open; 0 when it has ended."""
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return 0


def warmed(rows: list[dict[str, float]], share: float = 0.5) -> list[dict[str, float]]:
    """The second half: in the first, caches and pools of threads fill and libraries are loaded."""
    return rows[int(len(rows) * share) :]


def growth(rows: list[dict[str, float]], column: str) -> float:
    """By how much a column grew over the rows: the median of the slopes of all pairs (Theil and Sen), which up to 29
    of a hundred wild values do not move, times the time they took. In the column's own unit."""
    step = max(1, len(rows) // MOST_POINTS)
    points = [(row["seconds"], row[column]) for row in rows[::step]]
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for number, earlier in enumerate(points)
        for later in points[number + 1 :]
    ]
    return statistics.median(slopes) * (points[-1][0] - points[0][0]) if slopes else 0.0


def judged(group: str) -> str:
    """The column that shows whether a part's memory grows."""
    return f"{group}_own_mb" if group in FORKING else f"{group}_mb"


def usual(rows: list[dict[str, float]], column: str) -> float:
    """The median of a column."""
    return statistics.median(row[column] for row in rows)


def read(path: Path) -> list[dict[str, float]]:
    """The lines of a file that a sampler wrote."""
    with path.open(newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def summary(rows: list[dict[str, float]]) -> list[dict[str, Any]]:
    """Summarize each process after the warm-up: typical and maximum memory, its growth, and the same for
    descriptors."""
    late = warmed(rows)
    return [
        {
            "part": group,
            "usual_mb": round(usual(late, f"{group}_mb"), 1),
            "most_mb": max(row[f"{group}_mb"] for row in late),
            "growth_mb": round(growth(late, judged(group)), 1),
            "usual_fds": int(usual(late, f"{group}_fds")),
            "growth_fds": round(growth(late, f"{group}_fds"), 1),
        }
        for group in GROUPS
    ]

"""What the processes of the service count for /metrics.

Each process sums up in its own memory, which costs a request a few microseconds, and adds that to a hash in Redis
every METRICS_FLUSH_SECONDS; a job's process does so at its end. So several web processes, workers and machines add up,
the numbers of a process outlive it, and whichever web process is scraped tells those of all. Emptying Redis begins them
at nought, which Prometheus takes for what it is: a restart. Without ROWSMITH_METRICS nothing is counted.

Labels are of small closed sets: route templates, methods, statuses, formats, kinds, outcomes. Names of workspaces and
of people, ids and addresses are none of them.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

import orjson
import redis
from flask import Flask, current_app, has_app_context

from webapp import limits
from webapp.extensions import db, redis_client
from webapp.services import heartbeat

log = logging.getLogger(__name__)

TOTALS: Final = "rowsmith:metrics"
POOLS: Final = "rowsmith:metrics:pools"
_METER: Final = "rowsmith.meter"
_making = threading.Lock()


@dataclass(frozen=True, slots=True)
class Told:
    """One metric: its help text, its labels, and for a histogram the upper ends of its buckets."""

    kind: Literal["counter", "histogram"]
    help: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...] = ()


COUNTED: Final[Mapping[str, Told]] = MappingProxyType(
    {
        "requests": Told("counter", "Requests answered, by route template.", ("route", "method", "status")),
        "request_seconds": Told(
            "histogram",
            "Seconds until an answer begins; a stream goes on after that.",
            ("route", "method"),
            limits.METRICS_REQUEST_BUCKETS,
        ),
        "rows_generated": Told(
            "counter", "Rows of generates as asked for, and of exports as made.", ("format",)
        ),
        "push_rows": Told("counter", "Rows of ended pushes, by what became of them.", ("outcome",)),
        "work_ended": Told("counter", "Work that a worker or the sweeper ended.", ("kind", "status")),
        "work_seconds": Told(
            "histogram",
            "Seconds from the moment a worker took a piece of work to its end.",
            ("kind",),
            limits.METRICS_WORK_BUCKETS,
        ),
        "rung_again": Told(
            "counter", "Work that waited without a ring or a worker, and was rung for again.", ("kind",)
        ),
    }
)


class Meter:
    """The sums of one process since they were last handed over. Safe over threads; a forked child begins anew."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._sums: dict[tuple[str, ...], float] = {}
        self._thread: threading.Thread | None = None

    def add(self, key: tuple[str, ...], amount: float = 1) -> None:
        """Add to one sum: the metric's name and its labels' values."""
        if self._pid != os.getpid():
            self._begin()
        with self._lock:
            self._sums[key] = self._sums.get(key, 0) + amount

    def request(self, route: str, method: str, status: str, seconds: float) -> None:
        """Count one request. The hot path: one lock, three sums."""
        if self._pid != os.getpid():
            self._begin()
        buckets = limits.METRICS_REQUEST_BUCKETS
        place = bisect_left(buckets, seconds)
        counted = ("requests", route, method, status)
        within = ("request_seconds", str(place), route, method)
        summed = ("request_seconds", "sum", route, method)
        with self._lock:
            sums = self._sums
            sums[counted] = sums.get(counted, 0) + 1
            sums[within] = sums.get(within, 0) + 1
            sums[summed] = sums.get(summed, 0) + seconds
        if self._thread is None:
            self._keep_handing_over()

    def observe(self, name: str, labels: tuple[str, ...], seconds: float) -> None:
        """Count one measure of a histogram."""
        place = bisect_left(COUNTED[name].buckets, seconds)
        self.add((name, str(place), *labels))
        self.add((name, "sum", *labels), seconds)

    def hand_over(self) -> bool:
        """Add what was counted to the sums in Redis. False when Redis cannot be reached: then it waits here."""
        if self._pid != os.getpid():
            self._begin()
        with self._lock:
            sums, self._sums = self._sums, {}
        if not sums:
            return True
        try:
            with redis_client().pipeline(transaction=False) as pipe:
                for key, amount in sums.items():
                    pipe.hincrbyfloat(TOTALS, orjson.dumps(key).decode(), amount)
                pipe.execute()
        except redis.RedisError as error:
            log.debug("what was counted waits: %s", type(error).__name__)
            with self._lock:
                for key, amount in sums.items():
                    self._sums[key] = self._sums.get(key, 0) + amount
            return False
        return True

    def _keep_handing_over(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._hand_over_again, name="metrics", daemon=True)
        self._thread.start()

    def _hand_over_again(self) -> None:
        name = heartbeat.process_name()
        while True:
            time.sleep(limits.METRICS_FLUSH_SECONDS)
            with self._app.app_context():
                if self.hand_over():
                    self._tell_pool(name)

    def _tell_pool(self, name: str) -> None:
        """Say how many connections this process has to the database, and that it is there."""
        pool: Any = db.engine.pool
        size = getattr(pool, "size", lambda: 0)()
        told = orjson.dumps([time.time(), pool.checkedout(), max(size, 0)])
        try:
            redis_client().hset(POOLS, name, told)
            heartbeat.beat(redis_client(), heartbeat.WEB, name, time.time())
        except redis.RedisError as error:
            log.debug("the pool is not told: %s", type(error).__name__)


def meter() -> Meter | None:
    """This process's meter; None where nothing is counted."""
    if not has_app_context():
        return None
    app = current_app._get_current_object()  # type: ignore[attr-defined]
    found: Meter | None = app.extensions.get(_METER)
    if found is None and app.config["SETTINGS"].metrics:
        with _making:
            found = app.extensions.setdefault(_METER, Meter(app))
    return found


def count(name: str, amount: float = 1, **labels: str) -> None:
    """Add to a counter of `COUNTED`, where anything is counted."""
    if (found := meter()) is not None and amount:
        found.add((name, *(labels[label] for label in COUNTED[name].labels)), amount)


def ended(kind: str, status: str, seconds: float | None) -> None:
    """Count a piece of work that has ended, and how long it took, where it had begun."""
    if (found := meter()) is None:
        return
    found.add(("work_ended", kind, status))
    if seconds is not None:
        found.observe("work_seconds", (kind,), max(0.0, seconds))


def hand_over_now() -> None:
    """Hand over what this process has counted: at its end, at that of a job or a sweep, before a scrape."""
    if (found := meter()) is not None:
        found.hand_over()

"""Counters of the processes of the service for /metrics.

Each process counts in its own memory, which costs a few microseconds per request, and adds its counts to a hash in
Redis every METRICS_FLUSH_SECONDS; the process of a job does so when it exits. So the counts of all web processes,
workers and machines are added up, they outlive their process, and any web process can return the totals. If Redis is
emptied, the counters restart at zero, which Prometheus detects as a restart. Without ROWSMITH_METRICS nothing is
counted.

Labels have small, fixed sets of values: route templates, methods, statuses, formats, kinds, outcomes. They never
contain names of workspaces or users, ids or addresses.
"""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

import orjson
import redis
from flask import Flask, has_app_context
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from webapp import clock, limits
from webapp.engine import ENGINE
from webapp.extensions import application, db, redis_client
from webapp.monitoring import health

log = logging.getLogger(__name__)

TOTALS_KEY: Final = "rowsmith:metrics"
POOLS_KEY: Final = "rowsmith:metrics:pools"
_METER_KEY: Final = "rowsmith.meter"
_creation_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """One metric: its help text, its labels, and for a histogram the upper bounds of its buckets."""

    kind: Literal["counter", "histogram"]
    help: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...] = ()


METRICS: Final[Mapping[str, MetricInfo]] = MappingProxyType(
    {
        "requests": MetricInfo(
            "counter", "Requests answered, by route template.", ("route", "method", "status")
        ),
        "request_seconds": MetricInfo(
            "histogram",
            "Seconds until the response starts; streams continue after that.",
            ("route", "method"),
            limits.METRICS_REQUEST_BUCKETS,
        ),
        "rows_generated": MetricInfo(
            "counter", "Rows of generate requests as requested, and of exports as generated.", ("format",)
        ),
        "push_rows": MetricInfo("counter", "Rows of finished pushes, by outcome.", ("outcome",)),
        "work_ended": MetricInfo("counter", "Jobs finished by a worker or the sweeper.", ("kind", "status")),
        "work_seconds": MetricInfo(
            "histogram",
            "Seconds from the start of a job to its end.",
            ("kind",),
            limits.METRICS_WORK_BUCKETS,
        ),
        "rung_again": MetricInfo(
            "counter",
            "Work that waited without a notification or a worker, and was enqueued again.",
            ("kind",),
        ),
    }
)


class Meter:
    """The sums of a process since they were last merged. Thread-safe; a forked child starts at zero."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._sums: dict[tuple[str, ...], float] = {}
        self._thread: threading.Thread | None = None

    def add(self, key: tuple[str, ...], amount: float = 1) -> None:
        """Add to one sum: the metric's name and its labels' values."""
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            self._sums[key] = self._sums.get(key, 0) + amount

    def count_request(self, route: str, method: str, status: str, seconds: float) -> None:
        """Count one request. The hot path: one lock, three sums."""
        if self._pid != os.getpid():
            self._reset()
        buckets = limits.METRICS_REQUEST_BUCKETS
        bucket = bisect_left(buckets, seconds)
        count_key = ("requests", route, method, status)
        bucket_key = ("request_seconds", str(bucket), route, method)
        sum_key = ("request_seconds", "sum", route, method)
        with self._lock:
            sums = self._sums
            sums[count_key] = sums.get(count_key, 0) + 1
            sums[bucket_key] = sums.get(bucket_key, 0) + 1
            sums[sum_key] = sums.get(sum_key, 0) + seconds
        if self._thread is None:
            self._start_thread()

    def observe(self, name: str, labels: tuple[str, ...], seconds: float) -> None:
        """Count one measure of a histogram."""
        place = bisect_left(METRICS[name].buckets, seconds)
        self.add((name, str(place), *labels))
        self.add((name, "sum", *labels), seconds)

    def flush(self) -> bool:
        """Add the counts to the sums in Redis. Return False if Redis is unavailable; the counts are kept then."""
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            sums, self._sums = self._sums, {}
        if not sums:
            return True
        try:
            with redis_client().pipeline(transaction=False) as pipe:
                for key, amount in sums.items():
                    pipe.hincrbyfloat(TOTALS_KEY, orjson.dumps(key).decode(), amount)
                pipe.execute()
        except redis.RedisError as error:
            log.debug("metrics are kept until Redis is available: %s", type(error).__name__)
            with self._lock:
                for key, amount in sums.items():
                    self._sums[key] = self._sums.get(key, 0) + amount
            return False
        return True

    def _start_thread(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._flush_periodically, name="metrics", daemon=True)
        self._thread.start()

    def _flush_periodically(self) -> None:
        name = health.process_name()
        while True:
            time.sleep(limits.METRICS_FLUSH_SECONDS)
            with self._app.app_context():
                if not self.flush():
                    continue
                # How many connections this process has to the database, and that it is there.
                pool: Any = db.engine.pool
                size = getattr(pool, "size", lambda: 0)()
                report = orjson.dumps([time.time(), pool.checkedout(), max(size, 0)])
                try:
                    redis_client().hset(POOLS_KEY, name, report)
                    health.record_heartbeat(redis_client(), health.WEB, name, time.time())
                except redis.RedisError as error:
                    log.debug("the connection pool could not be reported: %s", type(error).__name__)


def meter() -> Meter | None:
    """Return this process's meter, or None if metrics are disabled."""
    if not has_app_context():
        return None
    app = application()
    found: Meter | None = app.extensions.get(_METER_KEY)
    if found is None and app.config["SETTINGS"].metrics:
        with _creation_lock:
            found = app.extensions.setdefault(_METER_KEY, Meter(app))
    return found


def count(name: str, amount: float = 1, **labels: str) -> None:
    """Add to a counter of `METRICS`, where anything is counted."""
    if (found := meter()) is not None and amount:
        found.add((name, *(labels[label] for label in METRICS[name].labels)), amount)


def count_finished_job(kind: str, status: str, seconds: float | None) -> None:
    """Count a finished job, and its duration if it was started."""
    if (found := meter()) is None:
        return
    found.add(("work_ended", kind, status))
    if seconds is not None:
        found.observe("work_seconds", (kind,), max(0.0, seconds))


def flush() -> None:
    """Send this process's counts to Redis: at its end, after a job or a sweep, and before a scrape."""
    if (found := meter()) is not None:
        found.flush()


# /metrics for Prometheus: the counters of the processes, and gauges of the current state.

PREFIX: Final = "rowsmith_"
_PROCESSES: Final = (health.WEB, health.WORKER, health.RUNNER, health.SWEEPER)


def render() -> bytes:
    """Return the text exposition format 0.0.4. Unavailable values are left out; see `rowsmith_part_up`."""
    flush()
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Scrape())
    return generate_latest(registry)


class _Scrape(Collector):
    """One scrape."""

    def describe(self) -> Iterable[Metric]:
        """Return nothing: names are registered when they are collected."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        found = health.check_all()
        up = GaugeMetricFamily(
            f"{PREFIX}part_up",
            "Whether a component of the service is available, as reported by /health/ready.",
            labels=["part"],
        )
        for name, part in found.items():
            up.add_metric([name], float(part.state == "ok"))
        yield up
        facts = found["database"].facts
        build = {
            "version": health.service_version(),
            "engine": str(ENGINE),
            "python": platform.python_version(),
            "database": str(facts.get("kind", "")),
            "revision": str(facts.get("revision") or ""),
        }
        info = GaugeMetricFamily(
            f"{PREFIX}build_info", "Versions of the running service; always 1.", labels=list(build)
        )
        info.add_metric(list(build.values()), 1)
        yield info
        if found["redis"].state == "ok":
            try:
                yield from _redis_metrics()
            except redis.RedisError as error:
                log.warning("metrics without Redis: %s", type(error).__name__)
        if found["database"].state == "ok":
            try:
                yield from _database_metrics()
            except SQLAlchemyError as error:
                log.warning("metrics without the database: %s", type(error).__name__)


def _redis_metrics() -> Iterator[Metric]:
    client = redis_client()
    sums = {tuple(orjson.loads(key)): float(value) for key, value in client.hgetall(TOTALS_KEY).items()}
    for name, info in METRICS.items():
        own_sums = {key[1:]: value for key, value in sums.items() if key[0] == name}
        yield _histogram(name, info, own_sums) if info.kind == "histogram" else _counter(name, info, own_sums)
    rings = GaugeMetricFamily(
        f"{PREFIX}queue_rings", "Notifications that wait for a worker, by queue.", labels=["queue"]
    )
    for queue, number in health.redis_queue_lengths().items():
        rings.add_metric([queue], number)
    yield rings
    alive = GaugeMetricFamily(f"{PREFIX}processes", "Processes with a recent heartbeat.", labels=["part"])
    for part in _PROCESSES:
        alive.add_metric([part], health.count_alive(client, part, health.heartbeat_cutoff()))
    yield alive
    # Connections of the web processes to the database; those of ended processes are removed.
    earliest = clock.epoch() - limits.METRICS_MAX_AGE_SECONDS
    in_use_total = pool_size = 0
    for process, raw in client.hgetall(POOLS_KEY).items():
        at, in_use, size = orjson.loads(raw)
        if at < earliest:
            client.hdel(POOLS_KEY, process)
            continue
        in_use_total, pool_size = in_use_total + in_use, pool_size + size
    yield GaugeMetricFamily(
        f"{PREFIX}db_pool_in_use",
        "Database connections that web processes currently use.",
        value=in_use_total,
    )
    yield GaugeMetricFamily(
        f"{PREFIX}db_pool_size",
        "Database connections that the pools of web processes keep open.",
        value=pool_size,
    )


def _counter(name: str, info: MetricInfo, sums: dict[tuple[str, ...], float]) -> Metric:
    family = CounterMetricFamily(PREFIX + name, info.help, labels=list(info.labels))
    for labels, value in sorted(sums.items()):
        if len(labels) == len(
            info.labels
        ):  # counts of another release with different labels are not reported
            family.add_metric(list(labels), value)
    return family


def _histogram(name: str, info: MetricInfo, sums: dict[tuple[str, ...], float]) -> Metric:
    family = HistogramMetricFamily(PREFIX + name, info.help, labels=list(info.labels))
    for labels in sorted({key[1:] for key in sums if len(key) == len(info.labels) + 1}):
        running, buckets = 0.0, []
        for place, end in enumerate((*info.buckets, float("inf"))):
            running += sums.get((str(place), *labels), 0)
            buckets.append(("+Inf" if end == float("inf") else str(end), running))
        family.add_metric(list(labels), buckets=buckets, sum_value=sums.get(("sum", *labels), 0.0))
    return family


def _database_metrics() -> Iterator[Metric]:
    work = GaugeMetricFamily(f"{PREFIX}work", "Jobs that have not finished.", labels=["queue", "state"])
    oldest = GaugeMetricFamily(
        f"{PREFIX}work_oldest_queued_seconds", "How long the oldest queued work has waited.", labels=["queue"]
    )
    for queue in health.queues():
        work.add_metric([queue.name, "queued"], queue.waiting)
        work.add_metric([queue.name, "running"], queue.running)
        oldest.add_metric([queue.name], queue.oldest_seconds or 0)
    yield work
    yield oldest
    yield GaugeMetricFamily(
        f"{PREFIX}lease_silent_seconds",
        f"Seconds since the oldest heartbeat of a worker with work; considered lost above {limits.LEASE_SECONDS}.",
        value=health.oldest_lease_seconds() or 0,
    )
    yield GaugeMetricFamily(
        f"{PREFIX}lease_ahead_seconds",
        "Clock offset of a busy worker relative to the web server; its jobs are considered lost that much later.",
        value=health.lease_clock_skew_seconds(),
    )

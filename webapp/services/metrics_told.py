"""/metrics as Prometheus reads it: what the processes have counted, and how things stand at this moment."""

from __future__ import annotations

import logging
import platform
from collections.abc import Iterable, Iterator
from typing import Final

import orjson
import redis
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from webapp import clock, limits
from webapp.engine.plan import ENGINE
from webapp.extensions import redis_client
from webapp.services import heartbeat, metrics, parts
from webapp.services.metrics import COUNTED, Told

log = logging.getLogger(__name__)

PREFIX: Final = "rowsmith_"
_PROCESSES: Final = (heartbeat.WEB, heartbeat.WORKER, heartbeat.RUNNER, heartbeat.SWEEPER)


def text() -> bytes:
    """The text exposition format 0.0.4. What cannot be asked just now is left out, and `rowsmith_part_up` says so."""
    metrics.hand_over_now()
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Telling())
    return generate_latest(registry)


class _Telling(Collector):
    """One scrape."""

    def describe(self) -> Iterable[Metric]:
        """Nothing: names are not to be claimed before they are told."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Every metric."""
        found = parts.ask()
        up = GaugeMetricFamily(
            f"{PREFIX}part_up",
            "Whether a part of the service is there, as /health/ready says.",
            labels=["part"],
        )
        for name, part in found.items():
            up.add_metric([name], float(part.state == "ok"))
        yield up
        yield _build(found)
        if found["redis"].state == "ok":
            try:
                yield from _of_redis()
            except redis.RedisError as error:
                log.warning("metrics without Redis: %s", type(error).__name__)
        if found["database"].state == "ok":
            try:
                yield from _of_database()
            except SQLAlchemyError as error:
                log.warning("metrics without the database: %s", type(error).__name__)


def _build(found: dict[str, parts.Part]) -> Metric:
    facts = found["database"].facts
    told = {
        "version": parts.service_version(),
        "engine": str(ENGINE),
        "python": platform.python_version(),
        "database": str(facts.get("kind", "")),
        "revision": str(facts.get("revision") or ""),
    }
    info = GaugeMetricFamily(f"{PREFIX}build_info", "What runs here; always 1.", labels=list(told))
    info.add_metric(list(told.values()), 1)
    return info


def _of_redis() -> Iterator[Metric]:
    client = redis_client()
    sums = {tuple(orjson.loads(key)): float(value) for key, value in client.hgetall(metrics.TOTALS).items()}
    for name, told in COUNTED.items():
        mine = {key[1:]: value for key, value in sums.items() if key[0] == name}
        yield _histogram(name, told, mine) if told.kind == "histogram" else _counter(name, told, mine)
    ringing = GaugeMetricFamily(
        f"{PREFIX}queue_rings", "Rings that wait for a worker, by queue.", labels=["queue"]
    )
    for queue, number in parts.rings().items():
        ringing.add_metric([queue], number)
    yield ringing
    alive = GaugeMetricFamily(f"{PREFIX}processes", "Processes that were heard of lately.", labels=["part"])
    for part in _PROCESSES:
        alive.add_metric([part], heartbeat.alive(client, part, parts.since()))
    yield alive
    yield from _pools(client)


def _counter(name: str, told: Told, sums: dict[tuple[str, ...], float]) -> Metric:
    family = CounterMetricFamily(PREFIX + name, told.help, labels=list(told.labels))
    for labels, value in sorted(sums.items()):
        if len(labels) == len(told.labels):  # what another release counted under other labels is not told
            family.add_metric(list(labels), value)
    return family


def _histogram(name: str, told: Told, sums: dict[tuple[str, ...], float]) -> Metric:
    family = HistogramMetricFamily(PREFIX + name, told.help, labels=list(told.labels))
    for labels in sorted({key[1:] for key in sums if len(key) == len(told.labels) + 1}):
        running, buckets = 0.0, []
        for place, end in enumerate((*told.buckets, float("inf"))):
            running += sums.get((str(place), *labels), 0)
            buckets.append(("+Inf" if end == float("inf") else str(end), running))
        family.add_metric(list(labels), buckets=buckets, sum_value=sums.get(("sum", *labels), 0.0))
    return family


def _pools(client: redis.Redis) -> Iterator[Metric]:
    """Connections of the web processes to the database; those of processes that are gone are forgotten."""
    young = clock.epoch() - limits.METRICS_SEEN_SECONDS
    used = kept = 0
    for name, raw in client.hgetall(metrics.POOLS).items():
        at, in_use, size = orjson.loads(raw)
        if at < young:
            client.hdel(metrics.POOLS, name)
            continue
        used, kept = used + in_use, kept + size
    yield GaugeMetricFamily(
        f"{PREFIX}db_pool_in_use", "Database connections that web processes use just now.", value=used
    )
    yield GaugeMetricFamily(f"{PREFIX}db_pool_size", "Connections that their pools keep open.", value=kept)


def _of_database() -> Iterator[Metric]:
    work = GaugeMetricFamily(f"{PREFIX}work", "Work that has not ended.", labels=["queue", "state"])
    oldest = GaugeMetricFamily(
        f"{PREFIX}work_oldest_queued_seconds", "How long the oldest queued work has waited.", labels=["queue"]
    )
    for queue in parts.queues():
        work.add_metric([queue.name, "queued"], queue.waiting)
        work.add_metric([queue.name, "running"], queue.running)
        oldest.add_metric([queue.name], queue.oldest_seconds or 0)
    yield work
    yield oldest
    yield GaugeMetricFamily(
        f"{PREFIX}lease_silent_seconds",
        f"How long the most silent worker that holds work has not been heard of; lost above {limits.LEASE_SECONDS}.",
        value=parts.oldest_lease_seconds() or 0,
    )
    yield GaugeMetricFamily(
        f"{PREFIX}lease_ahead_seconds",
        "By how much a working worker's clock is before the web server's; its work is taken for lost so much later.",
        value=parts.lease_ahead_seconds(),
    )

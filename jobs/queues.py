"""Which queues there are, and which a worker listens to, in which order."""

from __future__ import annotations

from collections.abc import Iterable

from webapp.services import heartbeat
from webapp.services.enqueue import KINDS

RUNS = "runs"  # of runners: a program that runs for an hour must not keep a push or an export waiting


def names() -> list[str]:
    """Every queue once, in the order of the table of kinds: a worker takes from the first that has a ring."""
    return list(dict.fromkeys(kind.queue for kind in KINDS.values()))


def ordinary() -> list[str]:
    """What a worker listens to that is not told otherwise."""
    return [name for name in names() if name != RUNS]


def chosen(text: str) -> list[str]:
    """Queues named with commas between. ValueError for one that is not there, or for none."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in names()]
    if unknown or not wanted:
        told = f"There is no queue {unknown[0]!r}." if unknown else "No queue is named."
        raise ValueError(f"{told} There are: {', '.join(names())}.")
    return list(dict.fromkeys(wanted))


def parts(listened: Iterable[str]) -> list[str]:
    """As what a process that listens to some queues beats."""
    held = set(listened)
    found = [heartbeat.WORKER] if held - {RUNS} else []
    return [*found, heartbeat.RUNNER] if RUNS in held else found


def kinds(listened: Iterable[str]) -> list[str]:
    """The kinds of work whose rings come by some queues."""
    held = set(listened)
    return [name for name, kind in KINDS.items() if kind.queue in held]

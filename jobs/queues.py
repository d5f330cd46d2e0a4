"""Which queues there are, and in which order a worker listens to them."""

from __future__ import annotations

from webapp.services.enqueue import KINDS


def names() -> list[str]:
    """Every queue once, in the order of the table of kinds: a worker takes from the first that has a ring."""
    return list(dict.fromkeys(kind.queue for kind in KINDS.values()))

"""A cache of parsed or compiled templates, limited by their number and by their memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from webapp import limits

T = TypeVar("T")


class PlanMemory(Generic[T]):
    """An LRU cache. Thread-safe: two threads may compile the same plan, of which one is cached."""

    def __init__(
        self, entries: int = limits.PLAN_CACHE_ENTRIES, weight: int = limits.PLAN_CACHE_BYTES
    ) -> None:
        self._entries, self._weight = entries, weight
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._held = 0

    def get(self, key: Hashable) -> T | None:
        """Return the cached plan for `key`."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, plan: T, weight: int) -> None:
        """Keep `plan`; `weight` is its memory in bytes, divided by `limits.COMPILED_TIMES`."""
        with self._lock:
            _, old = self._kept.pop(key, (None, 0))
            self._kept[key] = (plan, weight)
            self._held += weight - old
            while self._kept and (len(self._kept) > self._entries or self._held > self._weight):
                _, (_, gone) = self._kept.popitem(last=False)
                self._held -= gone

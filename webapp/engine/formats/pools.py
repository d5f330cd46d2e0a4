"""Pools escaped once: what a dictionary's values look like in a file, kept for as long as the process likes.

A pool is known by the addresses of its buffers, and held, so that no other can come to lie there. Writing a pool out
pays only when enough of it is used: until as many rows have been asked for as half its length, the rows are decoded
and treated one by one instead.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.engine.formats import views

_EAGER_FACTOR = 4  # a pool so many times as long as the block is written out at once
_ENTRY_BYTES = 512  # what an entry costs beside its buffers


@dataclass(frozen=True, slots=True)
class Pool:
    """``views[m]`` of a pool's texts; the long ones lie in ``data``, as buffer 0. ``longest`` is in bytes."""

    views: np.ndarray
    data: pa.Buffer | None
    longest: int


class _Entry:
    __slots__ = ("dictionary", "held", "pool", "seen", "size", "unfit")

    def __init__(self, dictionary: pa.Array) -> None:
        self.dictionary = dictionary
        self.pool: Pool | None = None
        self.seen = 0
        self.held = True
        self.unfit = dictionary.null_count > 0
        self.size = dictionary.nbytes + _ENTRY_BYTES


def identity(dictionary: pa.Array) -> tuple[Hashable, ...]:
    """Equal for two arrays that share buffers, type and range; meaningful only while one of them lives."""
    addresses = tuple(buffer.address if buffer else 0 for buffer in dictionary.buffers())
    return (addresses, dictionary.offset, len(dictionary), dictionary.type)


class PoolCache:
    """Least recently used pools, at most ``limits.FORMAT_POOL_BYTES`` in all. Safe to share between threads."""

    def __init__(self, capacity: int = limits.FORMAT_POOL_BYTES) -> None:
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = Lock()
        self._capacity = capacity
        self.bytes = 0

    def get(
        self, key: Hashable, dictionary: pa.Array, rows: int, write: Callable[[pa.Array], pa.Array | None]
    ) -> Pool | None:
        """The pool of ``dictionary`` under ``key``, where it pays for ``rows`` more rows; else None: decode.

        ``key`` says how ``write`` spells the values; ``write`` may answer None for values it cannot pool.
        """
        with self._lock:
            entry = self._entry((key, *identity(dictionary)), dictionary)
            entry.seen += rows
            if entry.pool or entry.unfit:
                return entry.pool
            if len(dictionary) > max(_EAGER_FACTOR * rows, 2 * entry.seen):
                return None
        texts = write(dictionary)
        pool = None
        if texts is not None:
            found, data = views.of_strings(texts)
            pool = Pool(found, data, int(views.lengths(found).max(initial=0)))
        with self._lock:
            self._keep(entry, pool)
        return pool

    def _entry(self, key: Hashable, dictionary: pa.Array) -> _Entry:
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(dictionary)
            self.bytes += entry.size
            self._shrink()
        else:
            self._entries.move_to_end(key)
        return entry

    def _keep(self, entry: _Entry, pool: Pool | None) -> None:
        if pool is None or entry.pool is not None:
            entry.unfit = pool is None
            return
        entry.pool = pool
        added = pool.views.nbytes + (pool.data.size if pool.data else 0)
        entry.size += added
        if entry.held:
            self.bytes += added
            self._shrink()

    def _shrink(self) -> None:
        while self.bytes > self._capacity and len(self._entries) > 1:
            _, dropped = self._entries.popitem(last=False)
            dropped.held = False
            self.bytes -= dropped.size


POOLS = PoolCache()

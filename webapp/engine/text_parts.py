"""Texts made of parts of pools: as a column, or still in parts for formats that copy each part into the row."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

FEW_ROWS = 32
"""Up to this many rows, reading texts one by one is faster than Arrow's kernels."""

PoolPart = tuple[pa.StringArray, np.ndarray]
"""Texts by their places in a pool, which has no blanks: ``uint64[n]`` or ``int64[n]``."""

_TAKE = pc.get_function("array_take")

_UNCHECKED = pc.TakeOptions(boundscheck=False)


@dataclass(frozen=True, slots=True)
class TextParts:
    """A column of texts without blanks that are not put together yet: a format copies each part straight into the row.

    ``size`` is at least the bytes of all texts.
    """

    parts: tuple[PoolPart, ...]
    size: int

    def __len__(self) -> int:
        return int(self.parts[0][1].size)

    def slice(self, start: int, count: int) -> TextParts:
        """Return ``count`` rows from ``start`` on."""
        return TextParts(tuple((pool, index[start : start + count]) for pool, index in self.parts), self.size)

    def to_array(self) -> pa.StringArray:
        """Return the texts, put together."""
        return join_parts(*self.parts)


def max_text_bytes(parts: Sequence[PoolPart]) -> int:
    """Return at least the bytes of the longest text that the parts can form."""
    return sum(_longest_text(pool) for pool, _ in parts)


def _longest_text(pool: pa.StringArray) -> int:
    found = _MAX_TEXT_BYTES.get(id(pool))
    if found is None:
        ends = np.frombuffer(pool.buffers()[1], np.int32)[pool.offset : pool.offset + len(pool) + 1]
        key = id(pool)
        alive = weakref.ref(pool, lambda _: _MAX_TEXT_BYTES.pop(key, None))
        found = _MAX_TEXT_BYTES[key] = int(np.diff(ends).max(initial=0)), alive
    return found[0]


_MAX_TEXT_BYTES: dict[int, tuple[int, weakref.ref[pa.StringArray]]] = {}
"""The bytes of the longest text of a pool, by its identity and for as long as it lives."""


def take(pool: pa.Array, index: np.ndarray) -> pa.Array:
    """``pool[index]`` copied out; every index is known to be valid."""
    if index.size <= FEW_ROWS and pa.types.is_string(pool.type) and not pool.null_count:
        return string_array(_texts_at(pool, index))
    return _TAKE.call([pool, pa.array(index)], _UNCHECKED)


def join_parts(*parts: PoolPart) -> pa.StringArray:
    """Texts joined row by row. Text between them belongs to the pools: a constant part costs four times as
    much as a pool."""
    if parts[0][1].size <= FEW_ROWS:
        columns = [_texts_at(pool, index) for pool, index in parts]
        return string_array(list(map(b"".join, zip(*columns, strict=True))))
    return pc.binary_join_element_wise(*(take(pool, index) for pool, index in parts), "")


def string_array(texts: Sequence[bytes | memoryview]) -> pa.StringArray:
    """A column of a few texts in UTF-8; `pa.array` costs three times as much."""
    ends = np.fromiter(accumulate(map(len, texts), initial=0), np.int32, len(texts) + 1)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(b"".join(texts)))


def _texts_at(pool: pa.StringArray, index: np.ndarray) -> list[memoryview]:
    """The texts at a few places, in UTF-8 and read in place: a pool of the vocabulary as Python's own texts
    takes ten times its memory, in each process and for every template that was compiled."""
    ends, octets, _ = _POOL_BUFFERS.get(id(pool)) or _read_buffers(pool)
    return [octets[ends[i] : ends[i + 1]] for i in index.tolist()]


_PoolBuffers = tuple[memoryview, memoryview, "weakref.ref[pa.StringArray]"]

_POOL_BUFFERS: dict[int, _PoolBuffers] = {}
"""Where the texts of a pool end, and its octets, by the pool's identity and for as long as it lives."""


def _read_buffers(pool: pa.StringArray) -> _PoolBuffers:
    _, offsets, data = pool.buffers()
    key = id(pool)
    alive = weakref.ref(pool, lambda _: _POOL_BUFFERS.pop(key, None))
    ends = memoryview(offsets).cast("i")[pool.offset :]
    buffers = _POOL_BUFFERS[key] = ends, memoryview(data or b""), alive
    return buffers

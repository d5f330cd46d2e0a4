"""Sets of values as 64-bit digests: test membership among millions of values in bounded memory.

A digest is Python's own hash of a text, keyed by a secret of the process and never stored, so it cannot be used to look
values up later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine.source_data import SourceTable, to_texts

_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


def hash_texts(values: pa.Array) -> np.ndarray:
    """``uint64[n]``: digests of texts; blank ones have that of the empty text."""
    found = np.fromiter(map(hash, pc.fill_null(values, "").to_pylist()), np.int64, len(values)).view(
        np.uint64
    )
    found ^= found >> np.uint64(32)
    found *= _SPREAD
    return found ^ (found >> np.uint64(29))


def normalize_texts(values: pa.Array) -> pa.Array:
    """Values as texts that differ neither in case nor in the blanks around them."""
    return pc.utf8_trim_whitespace(pc.utf8_lower(to_texts(values)))


@dataclass(frozen=True, slots=True)
class DigestSet:
    """The distinct values of a column, as sorted digests."""

    sorted_digests: np.ndarray
    value_count: int
    """Values that say anything, doubles among them."""
    sampling_bits: int = 0
    """Only digests that end in this many zero bits are kept if there are too many values to keep all."""
    has_duplicates: bool = False
    """Whether a value occurs twice."""

    @property
    def distinct_count(self) -> int:
        """Return the number of values; estimated if not all digests are kept."""
        return self.sorted_digests.size << self.sampling_bits

    @property
    def sampled_share(self) -> float:
        """Return the share of all digests that are kept, from 0 to 1."""
        return 1.0 / (1 << self.sampling_bits)

    def contains(self, digests: np.ndarray) -> np.ndarray:
        """``bool[n]``: which digests are among them."""
        if not self.sorted_digests.size:
            return np.zeros(digests.size, np.bool_)
        positions = np.searchsorted(self.sorted_digests, digests)
        positions[positions == self.sorted_digests.size] = 0
        return self.sorted_digests[positions] == digests


def column_digests(real: SourceTable, name: str) -> DigestSet:
    """The distinct values of a source's column, ignoring case, calculated once."""
    return real.cached(("digests", name), lambda: _collect_digests(real, name, normalize_texts))


def all_distinct(real: SourceTable, name: str) -> bool:
    """Return whether every value of a source's column occurs only once."""
    return real.cached(
        ("distinct", name),
        lambda: not _collect_digests(real, name, to_texts, limits.SOURCE_ROWS).has_duplicates,
    )


def _collect_digests(
    source: SourceTable,
    name: str,
    to_texts: Callable[[pa.Array], pa.Array],
    maximum: int = limits.LEAK_DIGESTS,
) -> DigestSet:
    digests, bits, values, doubled = np.zeros(0, np.uint64), 0, 0, False
    pending: list[np.ndarray] = []
    pending_size = 0

    def merged() -> np.ndarray:
        nonlocal doubled
        everything = np.concatenate([digests, *pending])
        everything.sort()
        first = np.ones(everything.size, np.bool_)
        np.not_equal(everything[1:], everything[:-1], out=first[1:])
        unique = everything[first]
        doubled |= unique.size < everything.size
        return unique

    for piece in source.chunks(name):
        texts = to_texts(piece)
        has_content = pc.and_(pc.is_valid(texts), pc.not_equal(pc.utf8_length(texts), 0))
        found = hash_texts(texts.filter(has_content))
        values += found.size
        pending.append(_sampled(found, bits))
        pending_size += pending[-1].size
        if pending_size > max(maximum // 4, limits.SOURCE_BLOCK_ROWS):
            digests, pending, pending_size = merged(), [], 0
            while digests.size > maximum:
                bits += 1
                digests = _sampled(digests, bits)
    return DigestSet(merged(), values, bits, doubled)


def _sampled(digests: np.ndarray, bits: int) -> np.ndarray:
    return digests[(digests & np.uint64((1 << bits) - 1)) == 0] if bits else digests

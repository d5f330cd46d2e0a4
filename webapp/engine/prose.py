"""Running text made of words: a text's words are looked up end to end in one pool, so rows cost what their words do.

The pool holds every word in each form it can take: in the middle, first of a sentence, last before each separator.
A block is one look-up of all words of all its rows; only where a row ends is then ours to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import cells

_LOW_32 = np.uint64(0xFFFFFFFF)
_U32 = np.uint64(32)
_CHUNK_WORDS = 1 << 16  # measured: what they need then stays in the cache
UNIQUE_DOMAIN = 1 << 62


class WordPool:
    """``words`` (all of letters, no two folding alike) with a blank behind them, as they are, and in the forms of
    sentences for each of ``separators``."""

    def __init__(self, words: pa.Array, separators: tuple[str, ...] = ()) -> None:
        plain = words.to_pylist()
        forms = [word + " " for word in plain] + plain
        if separators:
            forms += [word[:1].upper() + word[1:] + " " for word in plain]
            forms += [word + "." + separator for separator in separators for word in plain]
        self.size = len(plain)
        self.longest: int = pc.max(pc.utf8_length(words)).as_py()
        self._forms = pa.array(forms)

    def text(self, forms: np.ndarray, ends: np.ndarray) -> pa.Array:
        """``string[n]``: forms (``int32[w]``, numbers in the pool) end to end, row i ending before ``ends[i]``."""
        spelled = self._forms.take(pa.array(forms))
        _, starts, data = spelled.buffers()
        offsets = np.zeros(ends.size + 1, np.int32)
        offsets[1:] = np.frombuffer(starts, np.int32)[ends]
        return pa.StringArray.from_buffers(ends.size, pa.py_buffer(offsets), data)


def drawn(key: np.uint64, addresses: np.ndarray, places: int, size: int) -> np.ndarray:
    """``int32[n, places]``: even draws below ``size`` (under 2**20) for each of ``addresses`` (``uint64[n]``)."""
    halves = (places + 1) // 2
    at = addresses[:, None] * np.uint64(halves) + np.arange(halves, dtype=np.uint64)
    random = cells.bits(key, at)
    out = np.empty((addresses.size, 2 * halves), np.int32)
    out[:, ::2] = ((random >> _U32) * np.uint64(size)) >> _U32
    out[:, 1::2] = ((random & _LOW_32) * np.uint64(size)) >> _U32
    return out[:, :places]


def digits(index: np.ndarray, places: int, size: int) -> np.ndarray:
    """``int32[n, p]``: the first digits of ``index`` to base ``size``, as many of ``places`` as it can have."""
    used = carried(places, size)
    out = np.empty((index.size, used), np.int32)
    for place in range(used):
        index, out[:, place] = np.divmod(index, np.uint64(size))
    return out


def carried(places: int, size: int) -> int:
    """How many of ``places`` digits to base ``size`` fit the numbers that uniqueness permutes."""
    used = 1
    while used < places and size ** (used + 1) <= UNIQUE_DOMAIN:
        used += 1
    return used


def words(
    pool: WordPool, key: np.uint64, rows: np.ndarray, count: int, index: np.ndarray | None = None
) -> pa.Array:
    """``string[n]``: ``count`` words with blanks between; ``index`` spells the first ones where it is given."""
    forms = drawn(key, rows, count, pool.size)
    if index is not None:
        leading = digits(index, count, pool.size)
        forms[:, : leading.shape[1]] = leading
    forms[:, -1] += pool.size
    return pool.text(forms.reshape(-1), np.arange(1, rows.size + 1) * count)


@dataclass(frozen=True, slots=True)
class Layout:
    """How sentences make a text: ``paragraphs`` of ``low`` to ``high`` sentences, each of ``short`` to ``long``
    words; ``separators`` stand between sentences, between paragraphs, and at the end."""

    paragraphs: int
    low: int
    high: int
    short: int
    long: int
    separators: tuple[str, str, str]

    def longest(self, word: int) -> int:
        """Characters of the longest text when words have at most ``word``."""
        sentences = self.paragraphs * self.high
        return sentences * (self.long * (word + 1) + 1) + self.paragraphs * len(self.separators[1])


def sentences(
    pool: WordPool, key: np.uint64, rows: np.ndarray, layout: Layout, index: np.ndarray | None = None
) -> pa.Array:
    """``string[n]``: sentences laid out; ``index`` spells the first words of each text where it is given."""
    step = max(1, _CHUNK_WORDS // (layout.paragraphs * layout.high * layout.long))
    if rows.size <= step:
        return _sentences(pool, key, rows, layout, index)
    parts = [slice(start, start + step) for start in range(0, rows.size, step)]
    made = [_sentences(pool, key, rows[p], layout, None if index is None else index[p]) for p in parts]
    return pa.concat_arrays(made)


def _sentences(
    pool: WordPool, key: np.uint64, rows: np.ndarray, layout: Layout, index: np.ndarray | None
) -> pa.Array:
    owner, slot, last = _laid_out(cells.derive(key, 1), rows, layout)
    addresses = (rows * np.uint64(layout.paragraphs * layout.high))[owner]
    addresses += slot.view(np.uint64)
    forms = drawn(key, addresses, layout.long, pool.size)
    if index is not None:
        leading = digits(index, layout.short, pool.size)
        forms[slot == 0, : leading.shape[1]] = leading
    span = layout.long - layout.short + 1
    length = cells.below(cells.bits(cells.derive(key, 2), addresses), span).view(np.int64)
    length += layout.short
    forms[:, 0] += 2 * pool.size
    forms.reshape(-1)[np.arange(0, forms.size, layout.long) + (length - 1)] += (3 + last) * pool.size
    ends = np.zeros(length.size + 1, np.int64)
    np.cumsum(length, out=ends[1:])
    used = forms[_shapes(layout.long)[length]]
    return pool.text(used, ends[np.cumsum(np.bincount(owner, minlength=rows.size))])


@lru_cache(maxsize=16)
def _shapes(long: int) -> np.ndarray:
    """``bool[long + 1, long]``: which words of a sentence of so many are used."""
    return np.arange(long) < np.arange(long + 1)[:, None]


def _laid_out(key: np.uint64, rows: np.ndarray, layout: Layout) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every sentence of a block: its row in the block, its place in the text, and which separator follows."""
    n, paragraphs = rows.size, layout.paragraphs
    counts = np.full(n * paragraphs, layout.low)
    if layout.low < layout.high:
        at = rows[:, None] * np.uint64(paragraphs) + np.arange(paragraphs, dtype=np.uint64)
        counts += cells.below(cells.bits(key, at.reshape(-1)), layout.high - layout.low + 1).view(np.int64)
    ends = np.cumsum(counts)
    paragraph = np.repeat(np.arange(n * paragraphs), counts)
    sentence = np.arange(paragraph.size) - (ends - counts)[paragraph]
    last = np.zeros(paragraph.size, np.int32)
    last[ends - 1] = 1
    last[ends[paragraphs - 1 :: paragraphs] - 1] = 2
    if paragraphs == 1:
        return paragraph, sentence, last
    owner, place = np.divmod(paragraph, paragraphs)
    return owner, place * layout.high + sentence, last

"""Write the rows of a block: views of values and literals, copied to the output in one call.

A row is a fixed sequence of pieces: a gap, the value of the first column, a gap, the value of the second, and so on.
A value takes as many pieces as its codec needs; a gap is the end of the column before it and the start of the next.
Most gaps are the same in every row and stay in place from block to block.

The values of a dictionary (a pool) are escaped once and kept for the life of the process. A pool is identified by the
addresses of its buffers and kept alive, so that no other can get the same addresses. Escaping a whole pool only pays
if enough of it is used: until as many rows have been written as half its length, its values are escaped row by row.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle, product
from threading import Lock
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.engine.budget import MemoryBudgetError, check
from webapp.engine.formats import views
from webapp.engine.formats.base import (
    MARKED,
    NULL,
    PLAIN,
    STATES,
    Codec,
    Column,
    Format,
    Piece,
    RowLiterals,
    null_mask,
    numbers,
    value_error,
)
from webapp.engine.formats.escape import Escape, EscapedTooLargeError, UnrepresentableTextError
from webapp.engine.text_parts import TextParts

_EAGER_FACTOR = 4  # a pool at most this many times as long as the block is written completely
_ENTRY_BYTES = 512  # the memory of an entry in addition to its buffers


_FIRST_POOL = views.LITERAL_BUFFER + 1
_POOL_NUMBERS = 48


@dataclass(frozen=True, slots=True)
class Pool:
    """``views[m]`` of a pool's texts; the long ones are in ``data``, as buffer ``number``. ``longest`` and ``shortest``
    are in bytes.

    Numbers repeat after ``_POOL_NUMBERS`` pools. A layout uses the views as they are, apart from those of pools whose
    number is taken.
    """

    views: np.ndarray
    data: pa.Buffer | None
    number: int
    longest: int
    shortest: int


class _Entry:
    __slots__ = ("dictionary", "is_cached", "pool", "seen", "shared", "size", "unfit")

    def __init__(self, dictionary: pa.Array) -> None:
        self.dictionary = dictionary
        self.pool: Pool | None = None
        self.seen = 0
        self.is_cached = True
        self.shared = False
        """Whether the pool belongs to the entry of the unescaped texts."""
        self.unfit = dictionary.null_count > 0
        self.size = dictionary.nbytes + _ENTRY_BYTES


def buffer_identity(dictionary: pa.Array) -> tuple[Hashable, ...]:
    """Equal for two arrays that share buffers, type and range; meaningful only while one of them lives."""
    addresses = tuple(buffer.address if buffer else 0 for buffer in dictionary.buffers())
    return (addresses, dictionary.offset, len(dictionary), dictionary.type)


_PLAIN = object()  # the key of unescaped pools


class PoolCache:
    """Least recently used pools, at most ``limits.FORMAT_POOL_BYTES`` in all. Safe to share between threads.

    Most pools need no escaping, so that all formats share one entry. Each use by a format also counts as a use of the
    shared entry, which is therefore dropped last.
    """

    def __init__(self, capacity: int = limits.FORMAT_POOL_BYTES) -> None:
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = Lock()
        self._capacity = capacity
        self._numbers = cycle(range(_FIRST_POOL, _FIRST_POOL + _POOL_NUMBERS))
        self.bytes = 0

    def get(
        self, key: Hashable, dictionary: pa.Array, rows: int, write: Callable[[pa.Array], pa.Array | None]
    ) -> Pool | None:
        """Return the pool of ``dictionary`` under ``key`` if it pays off for ``rows`` more rows; else None: decode.

        ``key`` identifies how ``write`` converts the values; ``write`` may return None for values that it cannot pool.
        """
        identifier = buffer_identity(dictionary)
        with self._lock:
            entry = self._entries.get((key, *identifier))
            if entry is None:
                entry = self._entries[key, *identifier] = _Entry(dictionary)
                self.bytes += entry.size
                self._shrink()
            else:
                self._entries.move_to_end((key, *identifier))
            entry.seen += rows
            if entry.shared and (_PLAIN, *identifier) in self._entries:
                self._entries.move_to_end((_PLAIN, *identifier))
            if entry.pool or entry.unfit:
                return entry.pool
            if len(dictionary) > max(_EAGER_FACTOR * rows, 2 * entry.seen):
                return None
        texts = write(dictionary)
        if key != _PLAIN and texts is not None and texts.equals(dictionary):
            pool = self.get(_PLAIN, dictionary, len(dictionary), lambda plain: plain)
            with self._lock:
                self._share(entry, pool)
            return pool
        pool = None
        if texts is not None:
            pool = self._pool(texts)
        with self._lock:
            self._keep(entry, pool)
        return pool

    def _pool(self, texts: pa.Array) -> Pool:
        found, data = views.of_strings(texts)
        sizes = views.lengths(found)
        longest = int(sizes.max(initial=0))
        number = views.TEXT_BUFFER
        if data is not None:
            with self._lock:
                number = next(self._numbers)
            found = views.with_buffer(found, number)
        return Pool(found, data, number, longest, int(sizes.min(initial=longest)))

    def _keep(self, entry: _Entry, pool: Pool | None) -> None:
        if pool is None or entry.pool is not None:
            entry.unfit = pool is None
            return
        entry.pool = pool
        added = pool.views.nbytes + (pool.data.size if pool.data else 0)
        entry.size += added
        if entry.is_cached:
            self.bytes += added
            self._shrink()

    def _share(self, entry: _Entry, pool: Pool | None) -> None:
        """Use the pool of the unescaped texts. Its entry accounts for the size of the pool and the dictionary."""
        if entry.pool is not None:
            return
        entry.pool, entry.shared = pool, True
        if entry.is_cached:
            self.bytes -= entry.size - _ENTRY_BYTES
        entry.size = _ENTRY_BYTES

    def _shrink(self) -> None:
        while self.bytes > self._capacity and len(self._entries) > 1:
            _, dropped = self._entries.popitem(last=False)
            dropped.is_cached = False
            self.bytes -= dropped.size


POOLS = PoolCache()


_BINARY_VIEW = pa.binary_view()
_LARGE_BINARY = pa.large_binary()
_EMPTY_VIEW = np.zeros(1, views.VIEW)
_EMPTY = pa.py_buffer(b"")


class Literals:
    """The texts between values, each stored once; the long ones in one buffer."""

    def __init__(self) -> None:
        self._views: dict[str, np.ndarray] = {}
        self._data = bytearray()
        self._buffer: pa.Buffer | None = None

    def view(self, text: str) -> np.ndarray:
        """``view[1]`` of ``text``."""
        found = self._views.get(text)
        if found is None:
            encoded = text.encode()
            if len(encoded) <= views.INLINE_BYTES:
                found = _short_literal(encoded)
            else:
                found = views.outline_view(encoded, views.LITERAL_BUFFER, len(self._data))
                self._data += encoded
                self._buffer = None
            self._views[text] = found
        return found

    def table(self, texts: Sequence[str]) -> np.ndarray:
        """``view[len(texts)]``."""
        return np.concatenate([self.view(text) for text in texts])

    @property
    def buffer(self) -> pa.Buffer:
        """All long literals."""
        if self._buffer is None:
            self._buffer = pa.py_buffer(bytes(self._data))
        return self._buffer


@lru_cache(maxsize=4096)
def _short_literal(text: bytes) -> np.ndarray:
    return views.inline_views((text,))


class PieceMatrix:
    """``view[n, width]``, reused from block to block so that what stays the same is written once."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._flat = np.zeros(1, views.VIEW)
        self._all = np.zeros((0, width), views.VIEW)
        self._fixed: list[np.ndarray | None] = [None] * width
        self.current = self._all

    def begin(self, rows: int) -> None:
        """Reserve space for ``rows`` rows."""
        if rows > len(self._all):
            self._flat = np.zeros(rows * self.width + 1, views.VIEW)
            self._all = self._flat[:-1].reshape(rows, self.width)
            self._fixed = [_EMPTY_VIEW] * self.width
        self.current = self._all[:rows]

    def put(self, piece: int, found: np.ndarray) -> None:
        """``view[n]`` into ``piece`` of each row."""
        self.current[:, piece] = found
        self._fixed[piece] = None

    def put_constant(self, piece: int, found: np.ndarray) -> None:
        """``view[1]`` into ``piece`` of each row, until something else is put there."""
        if self._fixed[piece] is not found:
            self._all[:, piece] = found
            self._fixed[piece] = found

    def clear_rows(self, piece: int, rows: np.ndarray) -> None:
        """Nothing into ``piece`` of the rows where ``rows`` (``bool[n]``) holds."""
        if self._fixed[piece] is not _EMPTY_VIEW:
            self.current[rows, piece] = 0
            self._fixed[piece] = None

    def clear(self, piece: int) -> None:
        """Nothing into ``piece`` of each row."""
        self.put_constant(piece, _EMPTY_VIEW)

    def join(self, buffers: list[pa.Buffer], last: np.ndarray | None) -> pa.Array:
        """All pieces, and behind the last row one more, as a large binary array."""
        count = len(self.current) * self.width + (last is not None)
        replaced = self._flat[count - 1 : count].copy()
        if last is not None:
            self._flat[count - 1 : count] = last
        used_views = pa.py_buffer(self._flat[:count])
        text = join_views(
            pa.Array.from_buffers(_BINARY_VIEW, count, [None, used_views, *buffers], null_count=0)
        )
        self._flat[count - 1 : count] = replaced  # it may be the first piece of a row not used this time
        return text


def join_views(pieces: pa.Array) -> pa.Array:
    """A binary view array as large binary: all texts in one buffer. Views must be right: nothing checks them."""
    return pieces.cast(_LARGE_BINARY)


_NEGLIGIBLE = 1024 * 1024
_SMALL = 256 * 1024  # texts of a column that take at most this many bytes are not measured exactly
_POOLS_PER_COLUMN = 2  # with more, the dictionaries are plainly not shared between blocks


class BlockMustBeSplit(Exception):
    """The block's texts are too long to be written together: write it in parts."""


class Slot:
    """The position of one column's values in the current block."""

    __slots__ = ("_first", "_index", "_layout")

    def __init__(self, layout: Layout, index: int, first: int) -> None:
        self._layout, self._index, self._first = layout, index, first

    def put(self, piece: int, found: np.ndarray) -> None:
        """``view[n]`` into the value's piece number ``piece``; short texts only."""
        self._layout.pieces.put(self._first + piece, found)

    def clear(self, *pieces: int) -> None:
        """Nothing into these pieces of the value."""
        for piece in pieces:
            self._layout.pieces.clear(self._first + piece)

    def clear_rows(self, piece: int, rows: np.ndarray) -> None:
        """Nothing into the value's piece number ``piece`` where ``rows`` (``bool[n]``) holds."""
        self._layout.pieces.clear_rows(self._first + piece, rows)

    def put_text(self, piece: int, texts: pa.Array, escape: Escape | None) -> None:
        """A string array into the value's piece number ``piece``, treated by ``escape``."""
        self._layout.texts.setdefault(escape, []).append((self._first + piece, self._index, texts))


class _PoolInUse(NamedTuple):
    """A pool, the dictionary that identifies it, and the difference between the buffer's number and the pool's."""

    pool: Pool
    origin: pa.Array
    shift: int

    def take(self, indices: np.ndarray) -> np.ndarray:
        """``view[n]`` of these texts."""
        found = self.pool.views.take(indices, mode="clip")
        return views.with_buffer(found, self.shift) if self.shift else found


class Layout:
    """Writes blocks of columns as rows of text. One instance serves one stream, in one thread.

    With ``joint`` rows, `render` gives a block as one text; else `texts_of` gives them one by one.
    """

    def __init__(self, columns: Sequence[Column], frame: RowLiterals, *, joint: bool) -> None:
        self.columns, self._frame, self._joint = columns, frame, joint
        self._literals = Literals()
        self._widths = [column.codec.piece_count for column in columns]
        fixed_texts = [(frame.opening,), frame.closings, frame.separators]
        fixed_texts += [part for item in columns for part in (item.wrapping.before, item.wrapping.after)]
        self._fixed_bytes = sum(map(_max_bytes, fixed_texts))
        """The most bytes of a row in addition to its values: names of members, quotes, separators."""
        self._arrange()
        self.texts: dict[Escape | None, list[tuple[int, int, pa.Array]]] = {}
        self._pools: dict[Hashable, _PoolInUse] = {}
        self._pool_buffers: list[pa.Buffer] = []
        self._text_bytes = 0  # bytes of the texts laid out for the block so far

    def _arrange(self) -> None:
        """Give each column as many pieces of a row as it needs, with a gap before it."""
        self._tables: dict[int, np.ndarray] = {}
        self._gaps: list[int] = []
        width = 0
        for own in self._widths:
            self._gaps.append(width)
            width += 1 + own
        self.pieces = PieceMatrix(width + (not self._joint))
        self._fixed: list[np.ndarray | None] = [None] * self.pieces.width

    def render(
        self, block: Sequence[pa.Array | TextParts], first: str, edges: np.ndarray | None = None
    ) -> memoryview:
        """Return a block of at least one row as one text, for joint layouts; ``first`` takes the place of the first
        row's separator.

        ``edges``: ``uint8[n]``, which separator precedes each row; None: the first always.
        Raises `BlockMustBeSplit` if the text would be too large, and `FormatError`.
        """
        count = len(block[0])
        wider = False
        for index, values in enumerate(block):
            # Texts may have more parts than those of the blocks before.
            if isinstance(values, TextParts) and len(values.parts) > self._widths[index]:
                self._widths[index] = len(values.parts)
                wider = True
        if wider:
            self._arrange()
        if count > 1 and count * self.pieces.width > limits.FORMAT_PART_PIECES:
            raise BlockMustBeSplit
        states, data = self._fill_columns(block)
        frame, start, end = self._frame, self.columns[0].wrapping, self.columns[-1].wrapping
        last = states[-1]
        above = None if last is None else np.concatenate((last[:1], last[:-1]))
        chosen = _combine_states(_combine_states(above, edges, len(frame.separators)), states[0])
        self._write_gap(
            0, chosen, end.after, frame.closings[:1], frame.separators, (frame.opening,), start.before
        )
        head = first + frame.opening + start.before[_state(states[0], 0)]
        tail = self._literals.view(end.after[_state(last, -1)] + frame.closings[0])
        self.pieces.current[0, 0] = self._literals.view(head)[0]
        joined = self.pieces.join(self._buffers(data), tail)
        _, offsets, text = joined.buffers()
        return memoryview(text).cast("B")[: int(np.frombuffer(offsets, np.int64)[len(joined)])]

    def texts_of(
        self,
        block: Sequence[pa.Array],
        edges: np.ndarray | None = None,
        ends: np.ndarray | None = None,
    ) -> pa.Array:
        """Return ``string[n]``: the rows of a non-empty block, with separators, for layouts that are not joint;
        ``ends``: the closing text of each."""
        count = len(block[0])
        step = max(1, limits.FORMAT_PART_PIECES // self.pieces.width)
        if count <= step:
            return self._texts_of(block, edges, ends)
        parts = [
            self._texts_of(
                [column.slice(at, step) for column in block],
                None if edges is None else edges[at : at + step],
                None if ends is None else ends[at : at + step],
            )
            for at in range(0, count, step)
        ]
        return pa.concat_arrays(parts)

    def _texts_of(
        self, block: Sequence[pa.Array], edges: np.ndarray | None, ends: np.ndarray | None
    ) -> pa.Array:
        states, data = self._fill_columns(block)
        frame, start, end = self._frame, self.columns[0].wrapping, self.columns[-1].wrapping
        self._write_gap(
            0, _combine_states(edges, states[0]), frame.separators, (frame.opening,), start.before
        )
        closing = _combine_states(states[-1], ends, len(frame.closings))
        self._write_gap(self.pieces.width - 1, closing, end.after, frame.closings)
        joined = self.pieces.join(self._buffers(data), None)
        _, offsets, text = joined.buffers()
        bounds = np.frombuffer(offsets, np.int64)[: len(joined) + 1 : self.pieces.width].astype(np.int32)
        return pa.Array.from_buffers(
            pa.string(), bounds.size - 1, [None, pa.py_buffer(bounds), text], null_count=0
        )

    # --- the values ---

    def _fill_columns(
        self, block: Sequence[pa.Array | TextParts]
    ) -> tuple[list[np.ndarray | None], pa.Buffer | None]:
        count = len(block[0])
        self.pieces.begin(count)
        self.texts.clear()
        self._text_bytes = 0
        if len(self._pools) > _POOLS_PER_COLUMN * sum(self._widths):
            self._pools.clear()
            self._pool_buffers.clear()
        nulls: list[np.ndarray | None] = []
        states: list[np.ndarray | None] = []
        for index, values in enumerate(block):
            plain, marks = self._fill_column(index, values)
            nulls.append(None if plain is None else null_mask(plain))
            states.append(None if marks is None else marks.astype(np.uint8) * np.uint8(MARKED))
        if count * self._fixed_bytes > _NEGLIGIBLE:
            self._count_bytes(count, count * self._fixed_bytes)
        data = self._arrange_texts(states, count)
        for index, mask in enumerate(nulls):
            if mask is None:
                continue
            column = self.columns[index]
            first = self._gaps[index] + 1
            for piece in range(first, first + column.codec.piece_count):
                self.pieces.clear_rows(piece, mask)
            state = states[index]
            if state is None:
                if column.wrapping.is_null_plain:
                    continue
                state = states[index] = np.zeros(mask.size, np.uint8)
            state[mask] = NULL
        for index in range(1, len(self.columns)):
            left, right = self.columns[index - 1].wrapping, self.columns[index].wrapping
            self._write_gap(
                self._gaps[index], _combine_states(states[index - 1], states[index]), left.after, right.before
            )
        return states, data

    def _fill_column(
        self, index: int, values: pa.Array | TextParts
    ) -> tuple[pa.Array | None, np.ndarray | None]:
        # Created each time: a stored one would keep the layout and its megabytes alive until the cycle collector runs.
        codec, slot = self.columns[index].codec, Slot(self, index, self._gaps[index] + 1)
        if isinstance(values, TextParts):
            if self._fill_parts(index, values, slot):
                return None, None
            values = values.to_array()
        slot.clear(*range(codec.piece_count, self._widths[index]))
        if pa.types.is_dictionary(values.type):
            indices, dictionary = values.indices, values.dictionary
            used = self._pool(codec, dictionary, len(values)) if len(dictionary) else None
            if used is not None:
                found = used.take(numbers(indices, indices.type.to_pandas_dtype()))
                maximum = used.pool.longest * len(values)
                self._count_bytes(
                    len(values),
                    maximum if maximum <= _SMALL else int(views.lengths(found).sum(dtype=np.int64)),
                )
                slot.put(0, found)
                slot.clear(*range(1, codec.piece_count))
                return indices, None
            values = values.dictionary_decode()
        try:
            return values, codec.fill(values, slot)
        except OverflowError as problem:
            raise value_error(self.columns[index], problem) from problem

    def _fill_parts(self, index: int, values: TextParts, slot: Slot) -> bool:
        """Write each part of the texts as one piece. Return False if the texts have to be put together first."""
        codec = self.columns[index].codec
        # Every pool is asked for, so that the rows are counted for each of them.
        found = [self._pool(codec, dictionary, len(values), part=True) for dictionary, _ in values.parts]
        used = [use for use in found if use is not None]
        # Without a part that always has text, a whole text may be empty, which is written differently.
        if len(used) < len(found) or not any(use.pool.shortest for use in used):
            return False
        size = 0
        for piece, (use, (_, indices)) in enumerate(zip(used, values.parts, strict=True)):
            part_views = use.take(indices.view(np.int64))
            maximum = use.pool.longest * len(values)
            size += maximum if maximum <= _SMALL else int(views.lengths(part_views).sum(dtype=np.int64))
            slot.put(piece, part_views)
        self._count_bytes(len(values), size)
        slot.clear(*range(len(used), self._widths[index]))
        return True

    def _pool(
        self, codec: Codec, dictionary: pa.Array, rows: int, *, part: bool = False
    ) -> _PoolInUse | None:
        if not codec.piece_count:
            return None
        kind: Hashable = ("part", codec.key) if part else codec.key
        key = (kind, *buffer_identity(dictionary))
        used = self._pools.get(key)
        if used is None:
            pool = POOLS.get(kind, dictionary, rows, codec.encode_part if part else codec.encode_pool)
            if pool is None:
                return None
            used = self._pools[key] = _PoolInUse(pool, dictionary, self._add_pool_buffer(pool) - pool.number)
        return used

    def _add_pool_buffer(self, pool: Pool) -> int:
        """Put the texts of a pool among the buffers. Return their number: that of the pool if no other one has it."""
        if pool.data is None:
            return pool.number
        buffers, index = self._pool_buffers, pool.number - _FIRST_POOL
        current = buffers[index] if index < len(buffers) else _EMPTY
        if current is not _EMPTY and current is not pool.data:
            index = max(len(buffers), _POOL_NUMBERS)
        buffers += [_EMPTY] * (index + 1 - len(buffers))
        buffers[index] = pool.data
        return _FIRST_POOL + index

    def _count_bytes(self, rows: int, size: int) -> None:
        """Add ``size`` bytes to the block's total. Whole blocks are written in parts. A text inside a row cannot be
        split: raises `MemoryBudgetError` if it exceeds the budget."""
        self._text_bytes += size
        if self._joint and rows > 1 and self._text_bytes > limits.FORMAT_PART_BYTES:
            raise BlockMustBeSplit
        if not self._joint:
            check(self._text_bytes)

    def _arrange_texts(self, states: list[np.ndarray | None], count: int) -> pa.Buffer | None:
        """Escape, gather and arrange all texts of the block; return the buffer of the long ones."""
        if not self.texts:
            return None
        parts: list[pa.Array] = []
        fixes: list[tuple[np.ndarray, int]] = []
        late: list[pa.Array] = []
        for escape, group in self.texts.items():
            texts = pa.concat_arrays([texts for _, _, texts in group])
            self._count_bytes(count, texts.nbytes)
            if escape is not None:
                self._escape_group(escape, texts, group, (states, sum(map(len, parts)), count), fixes, late)
            parts.append(texts)
        found, data = views.of_strings(pa.concat_arrays(parts + late))
        at = sum(map(len, parts))
        for rows, length in fixes:
            found = found.copy() if not found.flags.writeable else found
            found[rows] = found[at : at + length]
            at += length
        at = 0
        for group in self.texts.values():
            for piece, _, _ in group:
                self.pieces.put(piece, found[at : at + count])
                at += count
        return data

    def _escape_group(
        self,
        escape: Escape,
        texts: pa.Array,
        group: list[tuple[int, int, pa.Array]],
        where: tuple[list[np.ndarray | None], int, int],
        fixes: list[tuple[np.ndarray, int]],
        late: list[pa.Array],
    ) -> None:
        states, base, count = where
        replaced_bytes = sum(item.nbytes for item in late)
        # The budget of a row counts only its escaped texts: the others were counted as columns.
        maximum = limits.FORMAT_PART_BYTES - (
            replaced_bytes if self._joint and count == 1 else self._text_bytes
        )
        try:
            treated = escape.escape_column(texts, maximum)
        except EscapedTooLargeError as problem:
            self._count_bytes(count, problem.size)
            raise MemoryBudgetError(replaced_bytes + problem.size) from None
        except UnrepresentableTextError as problem:
            raise value_error(self.columns[group[problem.row // count][1]], problem) from problem
        if treated.rows is not None and treated.values is not None and treated.rows.size:
            fixes.append((treated.rows + base, treated.rows.size))
            late.append(treated.values)
            self._text_bytes += treated.values.nbytes
        if treated.marked is not None and treated.marked.size:
            bounds = np.searchsorted(treated.marked, np.arange(len(group) + 1) * count)
            for number, (_, index, _) in enumerate(group):
                rows = treated.marked[bounds[number] : bounds[number + 1]] - number * count
                if rows.size:
                    state = states[index]
                    if state is None:
                        state = states[index] = np.zeros(count, np.uint8)
                    state[rows] = MARKED

    # --- the gaps ---

    def _write_gap(self, piece: int, chosen: np.ndarray | None, *parts: Sequence[str]) -> None:
        """One text of each of ``parts`` into the gap ``piece``; ``chosen`` numbers their product, None the first."""
        if chosen is None:
            fixed = self._fixed[piece]
            if fixed is None:
                fixed = self._fixed[piece] = self._literals.view("".join(part[0] for part in parts))
            self.pieces.put_constant(piece, fixed)
            return
        table = self._tables.get(piece)
        if table is None:
            table = self._tables[piece] = self._literals.table(["".join(texts) for texts in product(*parts)])
        self.pieces.put(piece, table.take(chosen, mode="clip"))

    def _buffers(self, data: pa.Buffer | None) -> list[pa.Buffer]:
        """The buffers that the views point into; call it after the last literal was added."""
        return [_EMPTY if data is None else data, self._literals.buffer, *self._pool_buffers]


@lru_cache(maxsize=4096)
def _max_bytes(texts: tuple[str, ...]) -> int:
    return max(len(text.encode()) for text in texts)


def _combine_states(
    left: np.ndarray | None, right: np.ndarray | None, size: int = STATES
) -> np.ndarray | None:
    """Return ``left * size + right``; None means all zero."""
    if left is None:
        return right
    scaled = left.astype(np.uint16) * np.uint16(size)
    return scaled if right is None else scaled + right


def _state(states: np.ndarray | None, row: int) -> int:
    return PLAIN if states is None else int(states[row])


# Shared by the text formats: blocks are written with `Layout`, and split if their texts are long.


class TextFormat(Format):
    """A format whose rows are laid out by `layout.Layout`."""

    accepts_text_parts: ClassVar[bool] = True

    def __init__(self, schema: pa.Schema, options: Format.Options, *, title: str) -> None:
        super().__init__(schema, options, title=title)
        self._max_rows = sys.maxsize

    def write_block(self, columns: Sequence[pa.Array | TextParts]) -> Iterator[Piece]:
        """The next rows, in as few parts as memory allows; a number of rows that was too large is not tried again."""
        count, at = len(columns[0]), 0
        while at < count:
            size = min(self._max_rows, count - at)
            part = columns if size == count else [column.slice(at, size) for column in columns]
            try:
                text = self._render_rows(part, size)
            except BlockMustBeSplit:
                self._max_rows = size // 2
                continue
            except MemoryBudgetError:
                if size == 1:
                    raise
                self._max_rows = size // 2
                continue
            yield text
            at += size

    @abstractmethod
    def _render_rows(self, columns: Sequence[pa.Array | TextParts], count: int) -> Piece:
        """The text of ``count`` >= 1 rows. Counts nothing unless it succeeds. May raise `BlockMustBeSplit` or
        `MemoryBudgetError`."""

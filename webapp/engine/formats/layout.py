"""Many rows at once: values and literals side by side as views, copied out in one go.

A row is a fixed run of pieces: a gap, the value of the first column, a gap, the value of the second, and so on. A
value takes as many pieces as its codec says; a gap is what the column before it still needs, and what the one after
it begins with. Most gaps are the same in every row and stay in place from block to block.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import product

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.engine.budget import TooLarge, check
from webapp.engine.formats import views
from webapp.engine.formats.column import (
    MARKED,
    NULL,
    PLAIN,
    STATES,
    Codec,
    Column,
    Frame,
    does_not_fit,
    null_mask,
    numbers,
)
from webapp.engine.formats.escape import Escape, Grown, Unfit
from webapp.engine.formats.pieces import Literals, Pieces
from webapp.engine.formats.pools import POOLS, Pool, identity

_NEGLIGIBLE = 1024 * 1024
_SMALL = 256 * 1024  # texts of a column that take at most so many bytes are not measured exactly
_POOLS_PER_COLUMN = 2  # with more, the dictionaries are plainly not shared between blocks


class Oversize(Exception):
    """The block's texts are too long to be written at once: write it in parts."""


class Slot:
    """Where one column's values go in the block being laid out."""

    __slots__ = ("_first", "_index", "_layout")

    def __init__(self, layout: Layout, index: int, first: int) -> None:
        self._layout, self._index, self._first = layout, index, first

    def put(self, piece: int, found: np.ndarray) -> None:
        """``view[n]`` into the value's piece number ``piece``; short texts only."""
        self._layout.pieces.put(self._first + piece, found)

    def blank(self, *pieces: int) -> None:
        """Nothing into these pieces of the value."""
        for piece in pieces:
            self._layout.pieces.blank(self._first + piece)

    def punch(self, piece: int, rows: np.ndarray) -> None:
        """Nothing into the value's piece number ``piece`` where ``rows`` (``bool[n]``) holds."""
        self._layout.pieces.punch(self._first + piece, rows)

    def text(self, piece: int, texts: pa.Array, escape: Escape | None) -> None:
        """A string array into the value's piece number ``piece``, treated by ``escape``."""
        self._layout.texts.setdefault(escape, []).append((self._first + piece, self._index, texts))


class _PoolInUse:
    """A pool among a layout's buffers; its views are copied to point there once enough rows have used it."""

    __slots__ = ("_buffer", "_moved", "_pool", "_seen", "longest", "origin")

    def __init__(self, pool: Pool, origin: pa.Array, buffer: int) -> None:
        self._pool, self.origin, self._buffer = pool, origin, buffer
        self._seen = 0
        self._moved = pool.views if pool.data is None else None
        self.longest = pool.longest

    def take(self, indices: np.ndarray) -> np.ndarray:
        if self._moved is None:
            self._seen += indices.size
            if self._seen * 2 < self._pool.views.size:
                return views.moved(self._pool.views.take(indices, mode="clip"), self._buffer)
            self._moved = views.moved(self._pool.views, self._buffer)
        return self._moved.take(indices, mode="clip")


class Layout:
    """The columns of one stream, laid out block by block. See `rows.Rows`, whose large blocks it makes."""

    def __init__(self, columns: Sequence[Column], frame: Frame, *, joint: bool) -> None:
        self.columns, self._frame, self._joint = columns, frame, joint
        self._literals = Literals()
        self._tables: dict[int, np.ndarray] = {}
        self._gaps: list[int] = []
        width = 0
        for column in columns:
            self._gaps.append(width)
            width += 1 + column.codec.width
        self.pieces = Pieces(width + (not joint))
        self._around = _longest_frame(columns, frame)
        self._fixed: list[np.ndarray | None] = [None] * self.pieces.width
        self.texts: dict[Escape | None, list[tuple[int, int, pa.Array]]] = {}
        self._pools: dict[Hashable, _PoolInUse] = {}
        self._pool_buffers: list[pa.Buffer] = []
        self._written = 0  # bytes of the texts laid out for the block so far

    def render(self, block: Sequence[pa.Array], first: str, edges: np.ndarray | None) -> memoryview:
        """The whole block as one text, where the layout is joint. Raises `Oversize` where it would be too much."""
        count = len(block[0])
        if count > 1 and count * self.pieces.width > limits.FORMAT_PART_PIECES:
            raise Oversize
        states, data = self._fill(block)
        frame, start, end = self._frame, self.columns[0].wrapping, self.columns[-1].wrapping
        chosen = _combined(_combined(_row_above(states[-1]), edges, len(frame.separators)), states[0])
        self._gap(0, chosen, end.after, frame.closings[:1], frame.separators, (frame.opening,), start.before)
        head = first + frame.opening + start.before[_state(states[0], 0)]
        tail = self._literals.view(end.after[_state(states[-1], -1)] + frame.closings[0])
        self.pieces.now[0, 0] = self._literals.view(head)[0]
        joined = self.pieces.joined(self._buffers(data), tail)
        _, offsets, text = joined.buffers()
        return memoryview(text)[: int(np.frombuffer(offsets, np.int64)[len(joined)])]

    def texts_of(
        self, block: Sequence[pa.Array], edges: np.ndarray | None, ends: np.ndarray | None
    ) -> pa.Array:
        """``string[n]``: the rows one by one, where the layout is not joint."""
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
        states, data = self._fill(block)
        frame, start, end = self._frame, self.columns[0].wrapping, self.columns[-1].wrapping
        self._gap(0, _combined(edges, states[0]), frame.separators, (frame.opening,), start.before)
        closing = _combined(states[-1], ends, len(frame.closings))
        self._gap(self.pieces.width - 1, closing, end.after, frame.closings)
        joined = self.pieces.joined(self._buffers(data), None)
        _, offsets, text = joined.buffers()
        bounds = np.frombuffer(offsets, np.int64)[: len(joined) + 1 : self.pieces.width].astype(np.int32)
        return pa.Array.from_buffers(
            pa.string(), bounds.size - 1, [None, pa.py_buffer(bounds), text], null_count=0
        )

    # --- the values ---

    def _fill(self, block: Sequence[pa.Array]) -> tuple[list[np.ndarray | None], pa.Buffer | None]:
        count = len(block[0])
        self.pieces.begin(count)
        self.texts.clear()
        self._written = 0
        if len(self._pools) > _POOLS_PER_COLUMN * len(self.columns):
            self._pools.clear()
            self._pool_buffers.clear()
        nulls: list[np.ndarray | None] = []
        states: list[np.ndarray | None] = []
        for index, values in enumerate(block):
            plain, marks = self._fill_column(index, values)
            nulls.append(null_mask(plain))
            states.append(None if marks is None else marks.astype(np.uint8) * np.uint8(MARKED))
        if count * self._around > _NEGLIGIBLE:
            self._add(count, count * self._around)
        data = self._lay_texts(states, count)
        for index, mask in enumerate(nulls):
            if mask is not None:
                self._lay_nulls(index, mask, states)
        self._lay_gaps(states)
        return states, data

    def _fill_column(self, index: int, values: pa.Array) -> tuple[pa.Array, np.ndarray | None]:
        # Made anew, since a slot that were kept would keep the layout and its megabytes for the collector of cycles.
        codec, slot = self.columns[index].codec, Slot(self, index, self._gaps[index] + 1)
        if pa.types.is_dictionary(values.type):
            indices, dictionary = values.indices, values.dictionary
            pool = self._pool(codec, dictionary, len(values)) if len(dictionary) else None
            if pool is not None:
                found = pool.take(numbers(indices, indices.type.to_pandas_dtype()))
                most = pool.longest * len(values)
                self._add(
                    len(values), most if most <= _SMALL else int(views.lengths(found).sum(dtype=np.int64))
                )
                slot.put(0, found)
                slot.blank(*range(1, codec.width))
                return indices, None
            values = values.dictionary_decode()
        try:
            return values, codec.fill(values, slot)
        except OverflowError as problem:
            raise does_not_fit(self.columns[index], problem) from problem

    def _pool(self, codec: Codec, dictionary: pa.Array, rows: int) -> _PoolInUse | None:
        if not codec.width:
            return None
        key = (codec.key, *identity(dictionary))
        used = self._pools.get(key)
        if used is None:
            pool = POOLS.get(codec.key, dictionary, rows, codec.pool)
            if pool is None:
                return None
            buffer = 0
            if pool.data is not None:
                buffer = views.LITERAL_BUFFER + 1 + len(self._pool_buffers)
                self._pool_buffers.append(pool.data)
            used = self._pools[key] = _PoolInUse(pool, dictionary, buffer)
        return used

    def _add(self, rows: int, size: int) -> None:
        """Count ``size`` bytes more of the block. Whole blocks are written in parts. A text inside a row cannot be:
        `TooLarge` where it exceeds the budget."""
        self._written += size
        if self._joint and rows > 1 and self._written > limits.FORMAT_PART_BYTES:
            raise Oversize
        if not self._joint:
            check(self._written)

    def _lay_texts(self, states: list[np.ndarray | None], count: int) -> pa.Buffer | None:
        """Treat, gather and lay out all texts of the block; the buffer that the long ones lie in."""
        if not self.texts:
            return None
        parts: list[pa.Array] = []
        fixes: list[tuple[np.ndarray, int]] = []
        late: list[pa.Array] = []
        for escape, group in self.texts.items():
            texts = pa.concat_arrays([texts for _, _, texts in group])
            self._add(count, texts.nbytes)
            if escape is not None:
                self._treat(escape, texts, group, (states, sum(map(len, parts)), count), fixes, late)
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

    def _treat(
        self,
        escape: Escape,
        texts: pa.Array,
        group: list[tuple[int, int, pa.Array]],
        where: tuple[list[np.ndarray | None], int, int],
        fixes: list[tuple[np.ndarray, int]],
        late: list[pa.Array],
    ) -> None:
        states, base, count = where
        grown = sum(one.nbytes for one in late)
        # One row has the budget for its escaped texts alone: the others were counted as columns.
        most = limits.FORMAT_PART_BYTES - (grown if self._joint and count == 1 else self._written)
        try:
            treated = escape.treat(texts, most)
        except Grown as problem:
            self._add(count, problem.size)
            raise TooLarge(grown + problem.size) from None
        except Unfit as problem:
            raise does_not_fit(self.columns[group[problem.row // count][1]], problem) from problem
        if treated.rows is not None and treated.rows.size:
            fixes.append((treated.rows + base, treated.rows.size))
            late.append(treated.values)
            self._written += treated.values.nbytes
        if treated.marked is not None and treated.marked.size:
            bounds = np.searchsorted(treated.marked, np.arange(len(group) + 1) * count)
            for number, (_, index, _) in enumerate(group):
                rows = treated.marked[bounds[number] : bounds[number + 1]] - number * count
                if rows.size:
                    state = states[index]
                    if state is None:
                        state = states[index] = np.zeros(count, np.uint8)
                    state[rows] = MARKED

    def _lay_nulls(self, index: int, mask: np.ndarray, states: list[np.ndarray | None]) -> None:
        column = self.columns[index]
        first = self._gaps[index] + 1
        for piece in range(first, first + column.codec.width):
            self.pieces.punch(piece, mask)
        state = states[index]
        if state is None:
            if column.wrapping.null_is_plain:
                return
            state = states[index] = np.zeros(mask.size, np.uint8)
        state[mask] = NULL

    # --- the gaps ---

    def _lay_gaps(self, states: list[np.ndarray | None]) -> None:
        """All gaps between two columns."""
        for index in range(1, len(self.columns)):
            left, right = self.columns[index - 1].wrapping, self.columns[index].wrapping
            self._gap(
                self._gaps[index], _combined(states[index - 1], states[index]), left.after, right.before
            )

    def _gap(self, piece: int, chosen: np.ndarray | None, *parts: Sequence[str]) -> None:
        """One text of each of ``parts`` into the gap ``piece``; ``chosen`` numbers their product, None the first."""
        if chosen is None:
            fixed = self._fixed[piece]
            if fixed is None:
                fixed = self._fixed[piece] = self._literals.view("".join(part[0] for part in parts))
            self.pieces.fix(piece, fixed)
            return
        table = self._tables.get(piece)
        if table is None:
            table = self._tables[piece] = self._literals.table(["".join(texts) for texts in product(*parts)])
        self.pieces.put(piece, table.take(chosen, mode="clip"))

    def _buffers(self, data: pa.Buffer | None) -> list[pa.Buffer]:
        """What the views point into; to be asked for once the last literal is known."""
        return [_EMPTY if data is None else data, self._literals.buffer, *self._pool_buffers]


_EMPTY = pa.py_buffer(b"")


def _longest_frame(columns: Sequence[Column], frame: Frame) -> int:
    """The bytes of a row beside its values, at most: names of members, quotes, separators."""
    around: list[tuple[str, ...]] = [(frame.opening,), frame.closings, frame.separators]
    around += [part for one in columns for part in (one.wrapping.before, one.wrapping.after)]
    return sum(max(len(text.encode()) for text in texts) for texts in around)


def _combined(left: np.ndarray | None, right: np.ndarray | None, size: int = STATES) -> np.ndarray | None:
    """``left * size + right``, where None is all zero."""
    if left is None:
        return right
    scaled = left.astype(np.uint16) * np.uint16(size)
    return scaled if right is None else scaled + right


def _row_above(states: np.ndarray | None) -> np.ndarray | None:
    return None if states is None else np.concatenate((states[:1], states[:-1]))


def _state(states: np.ndarray | None, row: int) -> int:
    return PLAIN if states is None else int(states[row])

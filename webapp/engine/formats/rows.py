"""Rows of text out of columns. Two methods write the same bytes: row by row, and all rows of a block together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from webapp.engine import budget
from webapp.engine.formats.column import MARKED, NULL, PLAIN, Column, Frame, does_not_fit, null_mask
from webapp.engine.formats.escape import Unfit
from webapp.engine.formats.layout import Layout

_FEW_ROWS = 48  # measured: about here both ways take as long
_WIDE_BYTES = 1024 * 1024  # chosen: as Python's texts, rows that are larger would take many times that


class Rows:
    """Writes blocks of columns as rows of text. One instance serves one stream, in one thread.

    With ``joint`` rows, `render` gives a block as one text; else `texts_of` gives them one by one.
    """

    def __init__(self, columns: Sequence[Column], frame: Frame, *, joint: bool) -> None:
        self._columns, self._frame, self._joint = columns, frame, joint
        self._made: Layout | None = None

    @property
    def _layout(self) -> Layout:
        if self._made is None:
            self._made = Layout(self._columns, self._frame, joint=self._joint)
        return self._made

    def render(
        self, block: Sequence[pa.Array], first: str, edges: np.ndarray | None = None
    ) -> bytes | memoryview:
        """The text of a block of at least one row; ``first`` takes the place of the first row's separator.

        ``edges``: ``uint8[n]``, which separator precedes each row; None: the first always.
        Raises `layout.Oversize`, `FormatError`.
        """
        if len(block[0]) > _FEW_ROWS or sum(map(budget.size_of, block)) > _WIDE_BYTES:
            return self._layout.render(block, first, edges)
        words = self.words_of(block)
        between = self._frame.separators
        if edges is None:
            return (first + between[0].join(words)).encode()
        following = zip(edges[1:].tolist(), words[1:], strict=True)
        return (first + words[0] + "".join(between[edge] + word for edge, word in following)).encode()

    def texts_of(
        self, block: Sequence[pa.Array], edges: np.ndarray | None = None, ends: np.ndarray | None = None
    ) -> pa.Array:
        """Return ``string[n]``: the rows of a non-empty block, with separators; ``ends``: the closing text of each."""
        return self._layout.texts_of(block, edges, ends)

    def words_of(self, block: Sequence[pa.Array]) -> list[str]:
        """A few rows one by one, without separators, all with the first closing."""
        cells = [_spelled(column, values) for column, values in zip(self._columns, block, strict=True)]
        opening, closing = self._frame.opening, self._frame.closings[0]
        return [f"{opening}{''.join(row)}{closing}" for row in zip(*cells, strict=True)]


def _spelled(column: Column, values: pa.Array) -> list[str]:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        words, marks = column.codec.words(values)
    except (Unfit, OverflowError) as problem:
        raise does_not_fit(column, problem) from problem
    before, after = column.wrapping.before, column.wrapping.after
    nulls = null_mask(values)
    if nulls is None and not (marks and any(marks)):
        start, end = before[PLAIN], after[PLAIN]
        return [f"{start}{word}{end}" for word in words]
    states = [MARKED if mark else PLAIN for mark in marks] if marks else [PLAIN] * len(words)
    if nulls is not None:
        states = [NULL if null else state for null, state in zip(nulls.tolist(), states, strict=True)]
    return [
        f"{before[state]}{'' if state == NULL else word}{after[state]}"
        for state, word in zip(states, words, strict=True)
    ]

"""The rows of another template beside a block's own rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.engine import budget, postprocess

if TYPE_CHECKING:
    from webapp.engine.block import Bound
    from webapp.engine.budget import Meter


class Kinsfolk:
    """The rows of another template that a block's rows belong to, each row of it made once."""

    __slots__ = ("_block", "_take", "_valid")

    def __init__(
        self,
        bound: Bound,
        rows: np.ndarray,
        valid: np.ndarray | None,
        among: int = 0,
        meter: Meter | None = None,
    ) -> None:
        scattered = among * limits.DRAWN_REPEATS > rows.size
        distinct, self._take = (rows, None) if scattered else distinct_of(rows)
        self._block, self._valid = bound.at(distinct, meter), valid

    def column(self, name: str) -> pa.Array:
        """The other template's column ``name``, a value for each row of the block; blank where there is no row."""
        column = self._block.column(name)
        if self._take is None:
            return column if self._valid is None else postprocess.blanked(column, ~self._valid)
        return budget.taken(column, pa.array(self._take, mask=None if self._valid is None else ~self._valid))


def distinct_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The rows that occur, and where each of ``rows`` is among them; None for the rows themselves, where they hardly
    repeat or finding that out costs more than it saves."""
    if rows.size < 2:
        return rows, None
    low, high = int(rows.min()), int(rows.max())
    span = high - low + 1
    if span * limits.DISTINCT_REPEATS > rows.size:
        return rows, None
    places = (rows - np.uint64(low)).view(np.int64)
    occurs = np.zeros(span, np.bool_)
    occurs[places] = True
    distinct = np.flatnonzero(occurs)
    order = np.empty(span, np.int32)
    order[distinct] = np.arange(distinct.size, dtype=np.int32)
    return distinct.view(np.uint64) + np.uint64(low), order.take(places)

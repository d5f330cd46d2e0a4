"""The answer key: for some rows, every invalid cell with its kind and its original value, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine.budget import MemoryBudgetError
from webapp.engine.formats.nested import json_texts
from webapp.engine.invalid_data.settings import KINDS
from webapp.engine.text import decode_dictionary

if TYPE_CHECKING:
    from webapp.engine.blocks import BoundPlan

_JSON: Final = {b"json": b"1"}
_LEADING_FIELDS: Final = (
    pa.field("row", pa.int64()),
    pa.field("field", pa.dictionary(pa.int32(), pa.string())),
    pa.field("kind", pa.dictionary(pa.int32(), pa.string())),
)


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """The bad cells of rows ``offset`` to ``offset + count - 1`` of a bound template.

    Its columns: ``row``, counted from 1 for row ``offset``; ``table``, where one is named; ``field``; ``kind``;
    ``good``, the value that the invalid one replaces. Ordered by row, then by field. Without bad values it is empty.
    """

    bound: BoundPlan
    offset: int
    count: int
    table: str | None = None

    def schema(self, *, json: bool) -> pa.Schema:
        """Yield the answer key of the blocks. With ``json``, an original value is JSON text for embedding; else it is
        text as in CSV."""
        good = pa.field("good", pa.string(), metadata=_JSON if json else None)
        table = [] if self.table is None else [pa.field("table", pa.string())]
        return pa.schema([*table, *_LEADING_FIELDS, good])

    def blocks(self, *, json: bool) -> Iterator[list[pa.Array]]:
        """The key, piece by piece; none of them is empty."""
        if self.bound.invalid_data_injector is None:
            return
        for start in range(self.offset, self.offset + self.count, limits.ANSWER_BLOCK_ROWS):
            size = min(limits.ANSWER_BLOCK_ROWS, self.offset + self.count - start)
            yield from self._pieces(start, size, json)

    def _pieces(self, start: int, size: int, json: bool) -> Iterator[list[pa.Array]]:
        try:
            block = self._block(start, size, json)
        except MemoryBudgetError:
            if size < 2:
                raise
            half = size // 2
            yield from self._pieces(start, half, json)
            yield from self._pieces(start + half, size - half, json)
        else:
            if block is not None:
                yield block

    def _block(self, start: int, size: int, json: bool) -> list[pa.Array] | None:
        names = self.bound.plan.layer.visible
        assert self.bound.invalid_data_injector is not None
        found = self.bound.invalid_data_injector.invalid_cells(
            np.arange(start, start + size, dtype=np.uint64)
        )
        if not found:
            return None
        rows = np.concatenate([cells.positions for _, cells, _ in found])
        fields = np.concatenate(
            [np.full(cells.positions.size, names.index(name)) for name, cells, _ in found]
        )
        kinds = np.concatenate([cells.kinds for _, cells, _ in found])
        good = pa.concat_arrays([_as_text(values, json) for _, _, values in found])
        order = np.lexsort((fields, rows))
        columns = [
            pa.array(rows[order] + (start - self.offset + 1)),
            _dictionary(fields[order], list(names)),
            _dictionary(kinds[order], list(KINDS)),
            good.take(pa.array(order)),
        ]
        return columns if self.table is None else [pa.repeat(pa.scalar(self.table), order.size), *columns]


def _dictionary(numbers: np.ndarray, names: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), pa.array(names, pa.string()))


def _as_text(values: pa.Array, json: bool) -> pa.Array:
    values = decode_dictionary(values)
    if not json and pa.types.is_string(values.type):
        return values
    texts = json_texts(values)
    as_json = json or pa.types.is_nested(values.type)
    return texts if as_json else pc.utf8_trim(texts, '"')

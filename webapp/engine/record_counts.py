"""Count the records in arrays of rows, which count towards limits in addition to the rows.

A record is an object in an array: an element of a nested or JSON array, or a row of a template inside a row. Arrays
directly in a row are counted exactly, which only needs their lengths. Arrays inside arrays count with their maximum
length. Scalar values in arrays are not records; as many of them as a template may have fields count as one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from webapp import limits
from webapp.engine import random

if TYPE_CHECKING:
    from webapp.engine.blocks import BoundPlan
    from webapp.engine.layers import Layer

Counts = Callable[["BoundPlan", np.uint64, np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """The contents of a value of a column. ``max_elements``: its maximum number of elements. ``is_record``: whether
    each one is a record, and not a scalar. ``layer``: the fields of each, or ``address`` of the template whose rows
    they are. ``counts``: the number of elements in some rows, by the column's key; None if each row has exactly one."""

    max_elements: int
    is_record: bool
    layer: Layer | None = None
    address: str = ""
    counts: Counts | None = None

    def fields(self, bound: BoundPlan) -> Layer:
        """The fields of each element."""
        return self.layer if self.layer is not None else bound.related_plans[self.address].layer


def count_records(bound: BoundPlan, offset: int, count: int, names: Collection[str] | None = None) -> int:
    """Return how many records ``count`` rows after ``offset`` contain. ``names``: in these fields only."""
    layer = bound.layer
    if not any(column.type.record_counts() is not None for column in layer.columns.values()):
        return 0
    records = values = 0
    for start in range(offset, offset + count, limits.BLOCK_LEAVES):
        rows = np.arange(start, min(start + limits.BLOCK_LEAVES, offset + count), dtype=np.uint64)
        more_records, more_values = _count_in_rows(bound, layer, "", rows, names)
        records, values = records + more_records, values + more_values
    return records + values // limits.MAX_FIELDS


def _count_in_rows(
    bound: BoundPlan, layer: Layer, prefix: str, rows: np.ndarray, names: Collection[str] | None
) -> tuple[int, int]:
    """Records and single values in arrays of some rows."""
    records = values = 0
    for name, column in layer.columns.items():
        contents, path = column.type.record_counts(), prefix + name
        if contents is None or path in bound.overrides or (names is not None and name not in names):
            continue
        if contents.counts is None and contents.layer is not None:
            more = _count_in_rows(bound, contents.layer, f"{path}.", rows, None)
        else:
            elements = rows.size
            if contents.counts is not None:
                counts = contents.counts(bound, bound.keys[path], rows)
                if column.blank_share is not None:
                    key = random.derive(bound.keys[path], random.BLANK_SALT)
                    counts = counts[~random.blank_mask(key, rows, *column.blank_share)]
                elements = int(counts.sum())
            inner = _max_counts(bound, contents.fields(bound))
            more = (
                elements * (contents.is_record + inner[0]),
                elements * (not contents.is_record) + elements * inner[1],
            )
        records, values = records + more[0], values + more[1]
    return records, values


def _max_counts(bound: BoundPlan, layer: Layer) -> tuple[int, int]:
    """Records and single values in arrays of one element, at most."""
    records = values = 0
    for column in layer.columns.values():
        contents = column.type.record_counts()
        if contents is not None:
            inner = _max_counts(bound, contents.fields(bound))
            plain = contents.counts is not None and not contents.is_record
            records += contents.max_elements * (contents.is_record + inner[0])
            values += contents.max_elements * (plain + inner[1])
    return records, values

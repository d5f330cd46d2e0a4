"""Times of day: by default Spark has no type for them, so they are returned as text, as in JSON."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def times_as_text(rows: pa.Table) -> pa.Table:
    """Return `rows` with every time, including those in objects and arrays, as `HH:MM:SS`, plus six digits of
    a second if they are not all zero."""
    for at, kind in enumerate(rows.schema.types):
        if _has_times(kind):
            rows = rows.set_column(at, rows.schema.names[at], _column_as_text(rows.column(at).combine_chunks()))
    return rows


def _has_times(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        return _has_times(kind.value_type)
    if pa.types.is_struct(kind):
        return any(_has_times(child.type) for child in kind)
    return bool(pa.types.is_time(kind))


def _column_as_text(column: Any) -> Any:
    kind = column.type
    if not _has_times(kind):
        return column
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(column.offsets, _column_as_text(column.values), mask=column.is_null())
    if pa.types.is_struct(kind):
        children = [_column_as_text(column.field(at)) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, [child.name for child in kind], mask=column.is_null())
    return pc.replace_substring(column.cast(pa.string()), ".000000", "")

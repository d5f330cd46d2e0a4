"""Shared by all kinds of sources: column names, and types that the engine supports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any, Final

import orjson
import pyarrow as pa

from webapp import limits
from webapp.engine import external_values


class NotReadable(Exception):
    """The content does not match the file's format. The text is for users."""


def named(names: Sequence[Any]) -> list[str]:
    """Return the column names of a header row. Raises `NotReadable`."""
    found = ["" if name is None else str(name).strip() for name in names]
    while found and not found[-1]:
        found.pop()
    if not found:
        raise NotReadable("it has no header row with column names")
    if len(found) > limits.SOURCE_COLUMNS:
        raise NotReadable(f"it has more than {limits.SOURCE_COLUMNS:,} columns")
    for place, name in enumerate(found):
        if not name:
            raise NotReadable(f"column {place + 1} has no name")
        if name in found[:place]:
            raise NotReadable(f'two columns are called "{name}"')
    return found


def again(file: IO[bytes]) -> IO[bytes]:
    """Rewind a file."""
    file.seek(0)
    return file


_SINGLE: Final = {"truth": pa.bool_(), "whole": pa.int64(), "number": pa.float64()}
JSON_TEXT: Final = {b"json": b"1"}
"""Metadata of Arrow fields that contain JSON text."""


def column_kind(kinds: set[str]) -> tuple[pa.DataType, bool]:
    """Return the type of a column by the kinds of its values, and whether its text is JSON."""
    if kinds == {"whole", "number"}:
        return pa.float64(), False
    if len(kinds) == 1 and (single := _SINGLE.get(next(iter(kinds)))) is not None:
        return single, False
    return pa.string(), bool(kinds) and kinds <= {"nested", "list", "empty"}


class Kinds:
    """Convert batches of a schema to types that the engine supports. Other types become text."""

    def __init__(self, schema: pa.Schema) -> None:
        self._found = [(field.name, *_settled(field.type)) for field in schema]
        self.schema = pa.schema(
            [
                pa.field(name, kind, metadata=JSON_TEXT if nested else None)
                for name, kind, nested in self._found
            ]
        )

    def settled(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert one batch."""
        arrays = [
            _as_settled(column, kind) for column, (_, kind, _) in zip(batch.columns, self._found, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _settled(kind: pa.DataType) -> tuple[pa.DataType, bool]:
    if pa.types.is_dictionary(kind):
        return _settled(kind.value_type)
    if pa.types.is_boolean(kind):
        return kind, False
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return pa.int64(), False
    if pa.types.is_floating(kind):
        return pa.float64(), False
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= limits.MAX_DECIMALS and kind.precision <= 18:
        return pa.decimal128(38, kind.scale), False
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None), False
    if pa.types.is_date(kind):
        return pa.date32(), False
    return pa.string(), pa.types.is_nested(kind)


def _as_settled(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type == kind:
        return column
    if pa.types.is_string(kind):
        if pa.types.is_large_string(column.type):
            return column.cast(kind)
        return pa.array([external_values.spelled(value) for value in column.to_pylist()], kind)
    return column.cast(kind, safe=not pa.types.is_timestamp(kind))


_WHOLE: Final = range(-(2**63), 2**63)


def kind_of_value(value: Any) -> str:
    """Return the kind of a JSON value: truth, whole, long, number, text, list, empty (a list of nulls),
    nested."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int):
        return "whole" if value in _WHOLE else "long" if abs(value) < 10**38 else "text"
    if isinstance(value, float):
        return "number"
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return "list" if any(item is not None for item in value) else "empty"
    return "text" if isinstance(value, str) else "nested"


def text_of(value: Any) -> str:
    """Return a JSON value as text; objects and arrays as JSON."""
    if isinstance(value, str):
        return value
    return (
        str(value) if isinstance(value, int) and not isinstance(value, bool) else orjson.dumps(value).decode()
    )

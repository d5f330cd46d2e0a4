"""What MySQL answers, as Arrow columns: its texts, read by the types that the answer's fields declare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from pymysql.constants import FIELD_TYPE, FLAG

from webapp.connectors.shape import ColumnType
from webapp.connectors.sql_values import read

_BINARY: Final = 63  # the character set "binary"
_TYPES: Final[dict[int, ColumnType]] = {
    **dict.fromkeys(
        (
            FIELD_TYPE.TINY,
            FIELD_TYPE.SHORT,
            FIELD_TYPE.INT24,
            FIELD_TYPE.LONG,
            FIELD_TYPE.LONGLONG,
            FIELD_TYPE.YEAR,
        ),
        "integer",
    ),
    FIELD_TYPE.FLOAT: "float",
    FIELD_TYPE.DOUBLE: "float",
    FIELD_TYPE.DECIMAL: "decimal",
    FIELD_TYPE.NEWDECIMAL: "decimal",
    FIELD_TYPE.DATE: "date",
    FIELD_TYPE.NEWDATE: "date",
    FIELD_TYPE.TIME: "time",
    FIELD_TYPE.DATETIME: "timestamp",
    FIELD_TYPE.TIMESTAMP: "timestamptz",
}
_BYTES: Final = (
    FIELD_TYPE.BLOB, FIELD_TYPE.TINY_BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB, FIELD_TYPE.STRING,
    FIELD_TYPE.VAR_STRING, FIELD_TYPE.VARCHAR, FIELD_TYPE.GEOMETRY,
)  # fmt: skip


def batch_of(fields: Sequence[Any], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Rows of the server's texts; `fields` are the driver's descriptions of their columns."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
    arrays = [_array(field, list(values)) for field, values in zip(fields, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [field.name for field in fields])


def _array(field: Any, values: list[Any]) -> pa.Array:
    kind = field.type_code
    if kind == FIELD_TYPE.BIT:
        return _whole([None if one is None else str(int.from_bytes(one, "big")) for one in values], field)
    if kind in _BYTES and field.charsetnr == _BINARY:
        return pa.array([one.encode() if isinstance(one, str) else one for one in values], pa.binary())
    found = _TYPES.get(kind, "text")
    if found == "integer":
        return _whole(values, field)
    if found == "timestamptz":
        # The session's zone is UTC.
        values = [None if one is None else f"{one}Z" for one in values]
    return read(values, found, field.scale if found == "decimal" else None)


def _whole(values: list[str | None], field: Any) -> pa.Array:
    """Whole numbers; as booleans those of a column of one digit or one bit that holds nothing but 0 and 1."""
    if field.length == 1 and set(values) <= {"0", "1", None}:
        return read(values, "boolean")
    if field.flags & FLAG.UNSIGNED and field.type_code == FIELD_TYPE.LONGLONG:
        return pa.array(values, pa.string()).cast(pa.uint64())
    return read(values, "integer")

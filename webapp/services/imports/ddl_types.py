"""Types of SQL's dialects, as columns have them here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import exp

from webapp.connectors.shape import ColumnType

_T: Final = exp.DataType.Type
_INTEGERS: Final[Mapping[Any, tuple[int, bool]]] = {
    _T.TINYINT: (8, False), _T.UTINYINT: (8, True), _T.SMALLINT: (16, False), _T.USMALLINT: (16, True),
    _T.MEDIUMINT: (24, False), _T.UMEDIUMINT: (24, True), _T.INT: (32, False), _T.UINT: (32, True),
    _T.BIGINT: (64, False), _T.UBIGINT: (64, True), _T.INT128: (64, False), _T.INT256: (64, False),
}  # fmt: skip
_COUNTED: Final = {_T.SERIAL: 32, _T.BIGSERIAL: 64, _T.SMALLSERIAL: 16}


def _each(kind: ColumnType, *sorts: Any) -> dict[Any, ColumnType]:
    return dict.fromkeys(sorts, kind)


_KINDS: Final[Mapping[Any, ColumnType]] = {
    **_each("text", _T.CHAR, _T.NCHAR, _T.VARCHAR, _T.NVARCHAR, _T.TEXT, _T.TINYTEXT, _T.MEDIUMTEXT, _T.LONGTEXT),
    **_each("decimal", _T.DECIMAL, _T.UDECIMAL, _T.BIGDECIMAL, _T.MONEY, _T.SMALLMONEY),
    **_each("float", _T.FLOAT, _T.DOUBLE, _T.UDOUBLE, _T.DECFLOAT),
    **_each("boolean", _T.BOOLEAN, _T.BIT),
    **_each("date", _T.DATE, _T.DATE32),
    **_each("time", _T.TIME, _T.TIMETZ),
    **_each("timestamp", _T.DATETIME, _T.DATETIME2, _T.DATETIME64, _T.SMALLDATETIME, _T.TIMESTAMP, _T.TIMESTAMPNTZ),
    **_each("timestamptz", _T.TIMESTAMPTZ, _T.TIMESTAMPLTZ),
    **_each("binary", _T.BINARY, _T.VARBINARY, _T.BLOB, _T.TINYBLOB, _T.MEDIUMBLOB, _T.LONGBLOB, _T.IMAGE),
    **_each("json", _T.JSON, _T.JSONB),
    _T.UUID: "uuid", _T.INTERVAL: "interval", _T.ARRAY: "array", _T.ENUM: "enum", _T.NAME: "text",
}  # fmt: skip
# By the words of a dialect that the parser leaves as they are.
_WORDS: Final[Mapping[str, ColumnType]] = {
    "datetime": "timestamp", "bool": "boolean", "boolean": "boolean", "string": "text", "clob": "text",
    "nclob": "text", "long": "text", "ntext": "text", "sysname": "text", "citext": "text", "bpchar": "text",
    "integer": "integer", "int": "integer", "number": "decimal", "numeric": "decimal", "currency": "decimal",
    "raw": "binary", "longraw": "binary", "bfile": "binary", "uniqueidentifier": "uuid", "hierarchyid": "other",
    "binary_float": "float", "binary_double": "float", "real": "float",
}  # fmt: skip


@dataclass(slots=True)
class Shape:
    """What a type says of a column: the fields of `Column`."""

    type: ColumnType
    declared: str
    max_length: int | None = None
    precision: int | None = None
    scale: int | None = None
    bits: int | None = None
    unsigned: bool = False
    generated: str = ""
    choices: tuple[str, ...] = ()
    items: ColumnType | None = None


def shape_of(kind: Any, types: Mapping[str, Shape], dialect: str) -> Shape:
    """The shape of a declared type. `types` are the script's own, by name in small letters."""
    if not isinstance(kind, exp.DataType):
        return Shape("other", "" if kind is None else kind.sql(dialect=dialect)[:100])
    declared = kind.sql(dialect=dialect)[:100]
    sort = kind.this
    if sort is _T.USERDEFINED:
        return _own(kind, declared, types)
    if sort in _INTEGERS:
        bits, unsigned = _INTEGERS[sort]
        if sort is _T.TINYINT and dialect == "mysql" and _numbers(kind)[:1] == [1]:
            return Shape("boolean", declared)
        return Shape("integer", declared, bits=bits, unsigned=unsigned or (bits == 8 and dialect == "tsql"))
    if sort in _COUNTED:
        return Shape("integer", declared, bits=_COUNTED[sort], generated="identity")
    if sort is _T.YEAR:
        return Shape("other", "year")
    found = _KINDS.get(sort, "other")
    made = Shape(found, declared)
    numbers = _numbers(kind)
    if found in ("text", "binary"):
        made.max_length = numbers[0] if numbers else 1 if sort in (_T.CHAR, _T.NCHAR) else None
    elif sort is _T.MONEY or sort is _T.SMALLMONEY:
        made.precision, made.scale = (10, 2)
    elif found == "decimal" and numbers:
        made.precision, made.scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
        if not made.scale and made.precision <= 18:
            made.type, made.bits = "integer", 64 if made.precision > 9 else 32 if made.precision > 4 else 16
    elif found == "enum":
        made.choices = tuple(one.name for one in kind.expressions)
    elif found == "timestamptz" and dialect == "mysql":
        made.type = "timestamp"  # MySQL's TIMESTAMP is written without a zone
    elif found == "array":
        inner = kind.expressions[0] if kind.expressions else None
        made.items = shape_of(inner, types, dialect).type
    elif sort is _T.SET:
        made.type, made.choices = "enum", tuple(one.name for one in kind.expressions)
    return made


def _own(kind: exp.DataType, declared: str, types: Mapping[str, Shape]) -> Shape:
    inner = kind.args.get("kind")
    name = (
        (inner.name if isinstance(inner, exp.Expression) else str(inner or declared)).strip('"[]`').casefold()
    )
    name = name.rpartition(".")[2]
    if name in types:
        return types[name]
    return Shape(_WORDS.get(name.partition("(")[0].replace(" ", ""), "other"), declared)


def _numbers(kind: exp.DataType) -> list[int]:
    found = []
    for one in kind.expressions:
        text = one.this.name if isinstance(one, exp.DataTypeParam) else one.name
        if text.isdigit() and len(text) < 10:
            found.append(int(text))
    return found

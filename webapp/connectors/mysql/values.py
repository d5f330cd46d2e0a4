"""Convert Arrow columns to MySQL literals.

Values that MySQL would change silently even in strict mode (a fraction in an integer column, trailing spaces
of a text), or does not accept (a time with a time zone), are handled here. All other checks are left to the
server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.connectors.base import RowError
from webapp.connectors.column_values import convert_to_column, to_hex
from webapp.connectors.schema import Column
from webapp.engine.formats import codecs
from webapp.engine.formats.base import Codec, RowLiterals, ValueLiterals
from webapp.engine.formats.base import Column as FormattedColumn
from webapp.engine.formats.layout import Layout, Slot
from webapp.engine.formats.nested import scalar_codec
from webapp.engine.formats.sql_dialects import DIALECTS, SqlEscape

DIALECT: Final = DIALECTS["mysql"]

_ESCAPE: Final = SqlEscape(DIALECT)
_TEXT_TYPES: Final = ("text", "enum", "json", "uuid", "other")
_UNQUOTED: Final = ("integer", "decimal", "float", "boolean")
_INTEGER: Final = r"^\s*[+-]?[0-9]+\s*$"
_NUMBER: Final = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
_ZONED: Final = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})$"
_TRUE: Final = pa.array(["true", "t", "yes", "y", "on", "1"])
_FALSE: Final = pa.array(["false", "f", "no", "n", "off", "0"])
_MEASURED_IN_BYTES: Final = ("tinytext", "text", "mediumtext", "longtext")
_FIRST_DAY: Final = -719_162  # 0001-01-01
_LAST_DAY: Final = 2_932_896  # 9999-12-31, where DATE ends

Mismatch = tuple[pa.Array, str, str]
"""Which rows (booleans) do not fit, the reason, and the message."""


@dataclass(frozen=True, slots=True)
class Literals:
    """Rows as ``,(1,'a')`` one after another. Row ``i`` is between ``bounds[i]`` and the next bound."""

    text: memoryview
    bounds: np.ndarray

    def slice_rows(self, start: int, end: int) -> memoryview:
        """Return the rows from ``start`` up to ``end``, without the first comma."""
        return self.text[int(self.bounds[start]) + 1 : int(self.bounds[end])]

    def size(self, start: int, end: int) -> int:
        """Return the number of bytes of these rows."""
        return int(self.bounds[end]) - int(self.bounds[start])

    def end_within(self, start: int, end: int, max_bytes: int) -> int:
        """Return the end of the rows from ``start`` that fit in ``max_bytes`` bytes; at least one row."""
        fitting = int(np.searchsorted(self.bounds, int(self.bounds[start]) + max_bytes, side="right")) - 1
        return max(start + 1, min(end, fitting))


class LiteralWriter:
    """Converts batches for a table's columns. May be used by any thread, one at a time."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = tuple(columns)
        self._rows: dict[tuple[pa.DataType, ...], Layout] = {}
        self._writing = threading.Lock()

    def convert(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], list[RowError]]:
        """Return the batch's converted arrays, and the first error of each row that does not fit."""
        failures: dict[int, RowError] = {}
        arrays = []
        for column, values in zip(self._columns, batch.columns, strict=True):
            array, mismatches = convert_array(column, values)
            arrays.append(array)
            for where, reason, message in mismatches:
                rows = np.flatnonzero(pc.fill_null(where, False).to_numpy(zero_copy_only=False))
                for index in rows.tolist():
                    failures.setdefault(index, RowError(index, reason, message, column=column.name))
        return arrays, [failures[index] for index in sorted(failures)]

    def literals(self, arrays: Sequence[pa.Array]) -> Literals:
        """Return rows of literals from converted arrays of the same length, at least one."""
        with self._writing:
            kinds = tuple(array.type for array in arrays)
            rows = self._rows.get(kinds)
            if rows is None:
                columns = [
                    _output_column(column, kind, "," if index else "")
                    for index, (column, kind) in enumerate(zip(self._columns, kinds, strict=True))
                ]
                rows = self._rows[kinds] = Layout(columns, RowLiterals("(", (")",), (",",)), joint=False)
            texts = rows.texts_of(arrays, np.zeros(len(arrays[0]), np.uint8))
            _, offsets, data = texts.buffers()
            bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
            return Literals(memoryview(data), bounds)


def texts(column: Column, array: pa.Array) -> list[str]:
    """Return a fitted array as literals, one by one."""
    rows = Layout([_output_column(column, array.type, "")], RowLiterals(), joint=False)
    result: list[str] = rows.texts_of([array]).to_pylist()
    return result


def convert_array(column: Column, values: pa.Array) -> tuple[pa.Array, list[Mismatch]]:
    """Return ``values`` converted for ``column``. Values in rows that do not fit are unspecified."""
    values = convert_to_column(values, column)
    if pa.types.is_dictionary(values.type) and column.type not in _TEXT_TYPES:
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        return values, []
    mismatches: list[Mismatch] = []
    if pa.types.is_float64(values.type):
        infinite = pc.invert(pc.is_finite(values))
        if pc.any(infinite).as_py():
            mismatches.append((infinite, "out_of_range", "MySQL cannot store NaN or infinity."))
            values = pc.if_else(infinite, 0.0, values)
    values, more = _CONVERTERS.get(column.type, _as_text)(column, values)
    mismatches += more
    if pa.types.is_date32(values.type):
        numbers, first, last = values.cast(pa.int32()), _FIRST_DAY, _LAST_DAY
    elif pa.types.is_timestamp(values.type):
        numbers = values.cast(pa.int64())
        first, last = _FIRST_DAY * codecs.DAY_MICROS, (_LAST_DAY + 1) * codecs.DAY_MICROS - 1
    else:
        return values, mismatches
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and (bounds["min"] < first or bounds["max"] > last):
        is_outside = pc.or_(pc.less(numbers, first), pc.greater(numbers, last))
        mismatches.append((is_outside, "out_of_range", "The year must be from 1 to 9999."))
        values = pc.if_else(is_outside, None, values)
    return values, mismatches


# --- Conversions by column type
# --------------------------------------------------------------------------------


def _as_text(column: Column, values: pa.Array) -> tuple[pa.Array, list[Mismatch]]:
    """Find texts whose trailing spaces the server would remove, or for which its error is misleading.

    MariaDB reports a text that is cut before a non-ASCII letter as an incorrect string.
    """
    kind, limit = values.type, column.max_length
    if pa.types.is_boolean(kind):
        return values.cast(pa.string()), []
    is_dictionary = pa.types.is_dictionary(kind)
    is_text = column.type not in ("binary", "enum") and (pa.types.is_string(kind) or is_dictionary)
    if not is_text or limit is None:
        return values, []
    in_bytes = column.declared in _MEASURED_IN_BYTES
    length = pc.binary_length if in_bytes else pc.utf8_length
    longest = pc.max(length(values.dictionary if is_dictionary else values)).as_py()
    if longest is None or longest <= limit:
        return values, []
    plain = values.dictionary_decode() if is_dictionary else values
    too_long = pc.greater(length(plain), limit)
    if not in_bytes:
        too_long = pc.and_(too_long, pc.less_equal(length(pc.utf8_rtrim(plain, " ")), limit))
    unit = "bytes" if in_bytes else "characters, including trailing spaces"
    return values, [(too_long, "too_long", f"{column.name} stores at most {limit:,} {unit}.")]


def _as_integer(column: Column, values: pa.Array) -> tuple[pa.Array, list[Mismatch]]:
    if pa.types.is_integer(values.type):
        return values, []
    return _check_pattern(column, values, _INTEGER, "accepts only integers")


def _as_number(column: Column, values: pa.Array) -> tuple[pa.Array, list[Mismatch]]:
    if _numeric(values.type):
        return values, []
    return _check_pattern(column, values, _NUMBER, "accepts only numbers")


def _check_pattern(
    column: Column, values: pa.Array, pattern: str, rule: str
) -> tuple[pa.Array, list[Mismatch]]:
    strings = values if pa.types.is_string(values.type) else values.cast(pa.string())
    is_wrong = pc.invert(pc.match_substring_regex(strings, pattern))
    return strings, [(is_wrong, "wrong_type", f"{column.name} {rule}.")]


def _as_boolean(column: Column, values: pa.Array) -> tuple[pa.Array, list[Mismatch]]:
    if pa.types.is_boolean(values.type) or pa.types.is_integer(values.type):
        return values, []
    strings = pc.utf8_lower(pc.utf8_trim_whitespace(values.cast(pa.string())))
    is_true, is_valid = pc.is_in(strings, _TRUE), pc.is_valid(values)
    is_wrong = pc.and_(is_valid, pc.invert(pc.or_(is_true, pc.is_in(strings, _FALSE))))
    return pc.if_else(is_valid, is_true, None), [
        (is_wrong, "wrong_type", f"{column.name} accepts only true and false.")
    ]


def _as_date(column: Column, values: pa.Array) -> tuple[pa.Array, list[Mismatch]]:
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us")).cast(pa.date32(), safe=False), []
    return values, []


def _as_moment(column: Column, values: pa.Array) -> tuple[pa.Array, list[Mismatch]]:
    if not pa.types.is_string(values.type):
        return values, []
    has_zone = pc.fill_null(pc.match_substring_regex(values, _ZONED), False)
    if not pc.any(has_zone).as_py():
        return values, []
    try:
        moments = values.filter(has_zone).cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # the server names the row
        return values, []
    return pc.replace_with_mask(values, has_zone, moments.cast(pa.string())), []


def _as_time(column: Column, values: pa.Array) -> tuple[pa.Array, list[Mismatch]]:
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us")).cast(pa.time64("us")), []
    return values, []


_CONVERTERS: Final[dict[str, Callable[[Column, pa.Array], tuple[pa.Array, list[Mismatch]]]]] = {
    "integer": _as_integer,
    "decimal": _as_number,
    "float": _as_number,
    "boolean": _as_boolean,
    "date": _as_date,
    "timestamp": _as_moment,
    "timestamptz": _as_moment,
    "time": _as_time,
}


# --- Literals
# --------------------------------------------------------------------------------------------------


class HexCodec(codecs.BaseCodec):
    """Bytes as pairs of hexadecimal digits."""

    piece_count = 1
    key = "hex"

    def fill(self, column: pa.Array, slot: Slot) -> None:
        """See `codecs.BaseCodec`."""
        slot.put_text(0, to_hex(column), None)


def _numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind))


def _output_column(column: Column, kind: pa.DataType, prefix: str) -> FormattedColumn:
    """Return how values of an Arrow type are written for a column. Texts are compared as texts: 5 as '5'."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_text = column.type in _TEXT_TYPES
    start, end = "'", "'"
    codec: Codec
    if pa.types.is_binary(value):
        codec, start = HexCodec(), "x'"
    elif pa.types.is_boolean(value):
        codec, start, end = codecs.BoolCodec(b"FALSE", b"TRUE"), "", ""
    elif pa.types.is_timestamp(value):
        codec, end = codecs.TimestampCodec(b"T" if is_text else b" "), "Z'" if value.tz and is_text else "'"
    else:
        codec = scalar_codec(value, _ESCAPE)
        if _numeric(value) and column.type in _UNQUOTED:
            start = end = ""
    return FormattedColumn(
        column.name, codec, ValueLiterals((prefix + start, prefix + "NULL", prefix), (end, "", ""))
    )

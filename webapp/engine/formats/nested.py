"""JSON text of any column, objects and arrays included (RFC 8259)."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine.formats import codecs
from webapp.engine.formats.base import PLAIN, Codec, Column, RowLiterals, ValueLiterals
from webapp.engine.formats.codecs import mixed_column, mixed_to_text
from webapp.engine.formats.escape import Escape, JsonEscape, LineEscape
from webapp.engine.formats.layout import Layout, Slot
from webapp.engine.mixed_columns import clean_type, is_mixed

_encode = json.JSONEncoder(ensure_ascii=False).encode
_UTC = "Z"
# One of each for all columns, so that a block's texts are treated together.
_JSON, _LINE = JsonEscape(), LineEscape()


def value_type(field: pa.Field) -> pa.DataType:
    """The type of a field's values, whether or not they come as a dictionary."""
    return field.type.value_type if pa.types.is_dictionary(field.type) else field.type


def is_json_text(field: pa.Field) -> bool:
    """Return whether a string field contains JSON text, which is embedded unchanged."""
    return (field.metadata or {}).get(b"json") == b"1"


def json_key(name: str) -> str:
    """``name`` as a JSON string."""
    return _encode(name)


def json_column(field: pa.Field, lead: str, *, one_line: bool) -> Column:
    """A column of JSON values after ``lead`` (the text before the value in each row)."""
    kind = value_type(field)
    if is_mixed(kind):
        inner = json_column(field.with_type(clean_type(kind)), lead, one_line=one_line)
        return mixed_column(inner, json_column(field.with_type(pa.string()), lead, one_line=one_line))
    quote, after = "", ""
    if (
        (pa.types.is_string(kind) and not is_json_text(field))
        or pa.types.is_date32(kind)
        or pa.types.is_time64(kind)
    ):
        quote = after = '"'
    elif pa.types.is_timestamp(kind):
        quote, after = '"', (_UTC if kind.tz else "") + '"'
    wrapping = ValueLiterals((lead + quote, lead + "null", lead + quote), (after, "", after))
    return Column(field.name, json_codec(field, one_line=one_line), wrapping)


def json_codec(field: pa.Field, *, one_line: bool) -> Codec:
    """Return the function that writes values of ``field`` in JSON, without quotes."""
    kind = value_type(field)
    if pa.types.is_struct(kind) or pa.types.is_list(kind):
        return NestedCodec(field, None, one_line=one_line)
    if pa.types.is_string(kind) and is_json_text(field):
        return codecs.TextCodec(_LINE if one_line else None)
    return scalar_codec(kind, _JSON)


def scalar_codec(kind: pa.DataType, escape: Escape | None) -> Codec:
    """The usual spelling of a scalar type; text is treated by ``escape``. Raises TypeError for any other type."""
    if pa.types.is_string(kind):
        return codecs.TextCodec(escape)
    if pa.types.is_int64(kind) or pa.types.is_uint64(kind):
        return codecs.IntegerCodec()
    if pa.types.is_decimal128(kind):
        return codecs.DecimalCodec(kind.scale)
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return codecs.TimestampCodec()
    for test, codec in _SIMPLE:
        if test(kind):
            return codec()
    raise TypeError(f"no format writes columns of type {kind}")


_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], Callable[[], Codec]], ...] = (
    (pa.types.is_float64, codecs.FloatCodec),
    (pa.types.is_boolean, codecs.BoolCodec),
    (pa.types.is_date32, codecs.DateCodec),
    (pa.types.is_time64, codecs.TimeCodec),
    (pa.types.is_null, codecs.NullCodec),
)


class NestedCodec(codecs.BaseCodec):
    """Objects and arrays as JSON text, which ``escape`` then treats as any text of the file."""

    piece_count = 1

    def __init__(self, field: pa.Field, escape: Escape | None, *, one_line: bool) -> None:
        self._text = create_json_writer(field, one_line=one_line)
        self._escape = escape
        self.key = ("nested", str(field.type), escape.key if escape else None)

    def fill(self, column: pa.Array, slot: Slot) -> None:
        slot.put_text(0, self._text.convert(column), self._escape)


def create_json_writer(field: pa.Field, *, one_line: bool) -> JsonWriter:
    """Writes a struct or list column."""
    return (_ListWriter if pa.types.is_list(field.type) else _ObjectWriter)(field.type, one_line=one_line)


class JsonWriter(ABC):
    """The JSON text of a struct or list column."""

    @abstractmethod
    def convert(self, column: pa.Array) -> pa.Array:
        """``string[n]`` of ``column``; the text at a null does not matter."""


class _ObjectWriter(JsonWriter):
    """The JSON text of a struct column."""

    def __init__(self, kind: pa.DataType, *, one_line: bool) -> None:
        columns = [
            json_column(child, ("," if index else "{") + json_key(child.name) + ":", one_line=one_line)
            for index, child in enumerate(kind)
        ]
        self._rows = Layout(columns, RowLiterals(closings=("}",)), joint=False) if columns else None

    def convert(self, column: pa.Array) -> pa.Array:
        if self._rows is None:
            return pa.repeat(pa.scalar("{}"), len(column))
        return self._rows.texts_of(column.flatten())


class _ListWriter(JsonWriter):
    """The JSON text of a list column."""

    def __init__(self, kind: pa.DataType, *, one_line: bool) -> None:
        element = json_column(kind.value_field, "", one_line=one_line)
        self._rows = Layout([element], RowLiterals(separators=(",", "["), closings=("", "]")), joint=False)

    def convert(self, column: pa.Array) -> pa.Array:
        ends = np.cumsum(
            pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False), dtype=np.int64
        )
        count = int(ends[-1])
        if not count:
            return pa.repeat(pa.scalar("[]"), len(column))
        bounds = np.concatenate((np.zeros(1, np.int64), ends))
        filled = np.flatnonzero(bounds[1:] > bounds[:-1])
        first, last = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
        first[bounds[filled]] = 1
        last[bounds[filled + 1] - 1] = 1
        elements = self._rows.texts_of([column.flatten()], first, last)
        offsets = np.frombuffer(elements.buffers()[1], np.int32)[bounds]
        texts = pa.Array.from_buffers(
            pa.string(),
            len(column),
            [None, pa.py_buffer(np.ascontiguousarray(offsets)), elements.buffers()[2]],
        )
        if filled.size == len(column):
            return texts
        return pc.if_else(pa.array(bounds[1:] > bounds[:-1]), texts, "[]")


def json_texts(column: pa.Array) -> pa.Array:
    """``string[n]``: each value of ``column`` as JSON on one line, ``null`` for blank ones."""
    if not len(column):
        return pa.array([], pa.string())
    element = json_column(pa.field("value", column.type), "", one_line=True)
    return Layout([element], RowLiterals(), joint=False).texts_of([column])


def mixed_texts(column: pa.Array) -> pa.Array:
    """``string[n]``: a mixed column as text, its values spelled as in JSON but without quotes."""
    kind = clean_type(column.type)
    json_texts_column = json_column(pa.field("value", kind), "", one_line=True)
    end = json_texts_column.wrapping.after[PLAIN].removesuffix('"')
    bare = ValueLiterals(("", "", ""), (end, "", end))
    return mixed_to_text(column, Column("value", json_texts_column.codec, bare))

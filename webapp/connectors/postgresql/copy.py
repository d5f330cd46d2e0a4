"""Convert rows to the text and binary formats of COPY (PostgreSQL, "COPY").

In the text format, columns are rendered one by one. A line break inside a value is escaped, so each line is one row,
and rows can be removed by cutting lines.

The server reads the binary format in three quarters of the time. It is used only for pairs of an Arrow type
and a column type that represent the same values. Anything else (a number as text, a value out of the column's
range, U+0000) uses the text format, so that the server's error messages do not depend on the format.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.connectors.base import RowError
from webapp.connectors.column_values import convert_to_column, to_hex, to_plain
from webapp.connectors.schema import Column
from webapp.engine.formats import FormatError, views
from webapp.engine.formats.base import Codec, RowLiterals, ValueLiterals
from webapp.engine.formats.base import Column as FormattedColumn
from webapp.engine.formats.codecs import BoolCodec, TextCodec, TimestampCodec
from webapp.engine.formats.escape import ByteScan, Escape, UnrepresentableTextError
from webapp.engine.formats.layout import BlockMustBeSplit, Layout, join_views
from webapp.engine.formats.nested import scalar_codec

_ESCAPES: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
# Days that the writers support. PostgreSQL itself supports more.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
DAY_MICROS = 86_400_000_000


class CopyEscape(Escape):
    """Escapes values for COPY's text format. Raises `UnrepresentableTextError` for U+0000, which PostgreSQL's text
    cannot contain."""

    key = "copy"
    _special = re.compile("[\\\\\t\n\r\0]")

    def escape_text(self, text: str) -> str:
        """See `Escape.escape_text`."""
        return self._special.sub(self._replacement, text)

    @staticmethod
    def _replacement(match: re.Match[str]) -> str:
        if match[0] == "\0":
            raise UnrepresentableTextError(0, "The text contains U+0000, which PostgreSQL cannot store.")
        return _ESCAPES[match[0]]

    def rows_to_escape(self, scan: ByteScan) -> np.ndarray | None:
        """See `Escape.rows_to_escape`."""
        masks = [scan.byte_mask(b"\\")] if scan.has(b"\\") else []
        if scan.has_control():
            masks += [scan.byte_mask(char) for char in (b"\t", b"\n", b"\r", b"\0")]
        return scan.rows_where(np.logical_or.reduce(masks)) if masks else None


_ESCAPE: Final = CopyEscape()


def array_texts(array: pa.Array) -> pa.Array:
    """Return lists as array literals, `string[n]` (`{"a",NULL,{...}}`; PostgreSQL, "Array Input and Output
    Syntax")."""
    inner = to_plain(array.flatten())
    if pa.types.is_list(inner.type):
        items = array_texts(inner)
    else:
        if pa.types.is_dictionary(inner.type):
            inner = inner.dictionary_decode()
        if pa.types.is_binary(inner.type):
            inner = pc.binary_join_element_wise("\\x", to_hex(inner), "")
        texts = inner.cast(pa.string())
        texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
        items = pc.binary_join_element_wise('"', texts, '"', "")
    items = pc.fill_null(items, "NULL")
    sizes = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate((np.zeros(1, np.int32), np.cumsum(sizes, dtype=np.int32)))
    lists = pa.ListArray.from_arrays(pa.array(offsets), items)
    texts = pc.binary_join_element_wise("{", pc.binary_join(lists, ","), "}", "")
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string())) if array.null_count else texts


def _convert(array: pa.Array, column: Column) -> pa.Array:
    array = to_plain(array)
    if column.type == "array" and pa.types.is_list(array.type):
        return array_texts(array)
    return convert_to_column(array, column)


def _output_column(column: Column, kind: pa.DataType, prefix: str) -> FormattedColumn:
    before, after = "", ""
    codec: Codec
    if pa.types.is_binary(kind):
        codec, before = TextCodec(None), "\\\\x"
    elif pa.types.is_timestamp(kind):
        codec, after = TimestampCodec(b" "), "+00" if kind.tz else ""
    elif pa.types.is_boolean(kind):
        codec = BoolCodec(b"f", b"t") if column.type == "boolean" else BoolCodec()
    else:
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        codec = scalar_codec(value, _ESCAPE)
    wrapping = ValueLiterals((prefix + before, prefix + "\\N", prefix + before), (after, "", after))
    return FormattedColumn(column.name, codec, wrapping)


class CopyText:
    """Converts batches to lines. May be used by any thread, one at a time."""

    def __init__(self, columns: Sequence[Column], *, numbered: bool = False) -> None:
        """`numbered`: each line starts with the row's position in the batch."""
        self._columns = (Column("row", "integer", "bigint"), *columns) if numbered else tuple(columns)
        self._numbered = numbered
        self._layouts: dict[tuple[str, ...], Layout] = {}
        self._writing = threading.Lock()

    def lines(self, batch: pa.RecordBatch) -> tuple[Lines, list[RowError]]:
        """Return the rows that can be converted, and errors for the others."""
        with self._writing:
            rows = np.arange(batch.num_rows)
            columns = [pa.array(rows), *batch.columns] if self._numbered else batch.columns
            arrays = [_convert(array, column) for array, column in zip(columns, self._columns, strict=True)]
            try:
                return cut_lines(b"".join(self._text(arrays)), rows), []
            except FormatError:
                failures = self._unsupported_rows(arrays)
                rows = np.delete(rows, [error.index for error in failures])
                selected = pa.array(rows)
                text = b"".join(self._text([array.take(selected) for array in arrays])) if rows.size else b""
                return cut_lines(text, rows), failures

    def _text(self, arrays: list[pa.Array]) -> list[bytes]:
        count = len(arrays[0])
        kinds = tuple(str(array.type) for array in arrays)
        rows = self._layouts.get(kinds)
        if rows is None:
            columns = [
                _output_column(column, array.type, "\t" if index else "")
                for index, (column, array) in enumerate(zip(self._columns, arrays, strict=True))
            ]
            rows = self._layouts[kinds] = Layout(columns, RowLiterals(closings=("\n",)), joint=True)
        block = [to_hex(array) if pa.types.is_binary(array.type) else array for array in arrays]
        if not count:
            return []
        try:
            return [bytes(rows.render(block, ""))]
        except BlockMustBeSplit:
            half = count // 2
            return [
                *self._text([array.slice(0, half) for array in arrays]),
                *self._text([array.slice(half) for array in arrays]),
            ]

    def _unsupported_rows(self, arrays: list[pa.Array]) -> list[RowError]:
        """Return errors for all rows with values that COPY's text format cannot represent."""
        errors: dict[int, RowError] = {}
        for column, array in zip(self._columns, arrays, strict=True):
            values = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
            if pa.types.is_string(values.type):
                mask = pc.match_substring(values, "\0")
                reason, message = "wrong_type", "The text contains U+0000, which PostgreSQL cannot store."
            elif pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
                unit = 1 if pa.types.is_date(values.type) else DAY_MICROS
                numbers = values.cast(pa.int32() if unit == 1 else pa.int64())
                mask = pc.or_(
                    pc.less(numbers, FIRST_DAY * unit), pc.greater_equal(numbers, (LAST_DAY + 1) * unit)
                )
                reason, message = "out_of_range", "The date is outside the years 1 to 9999."
            else:
                continue
            for row in pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist():
                errors.setdefault(row, RowError(row, reason, message, column=column.name))
        return list(errors.values())


class Lines:
    """Converted rows, from which some can be selected.

    Row `rows[i]` of the batch is between `bounds[i]` and the next bound; `head` and `tail` surround the rows
    of each COPY. `rows` are sorted.
    """

    def __init__(
        self,
        text: bytes | memoryview,
        bounds: np.ndarray,
        rows: np.ndarray,
        head: bytes = b"",
        tail: bytes = b"",
    ) -> None:
        self._text, self._bounds, self.rows, self._envelope = memoryview(text), bounds, rows, (head, tail)

    @property
    def binary(self) -> bool:
        """Whether they are in binary format."""
        return bool(self._envelope[0])

    def select(self, rows: np.ndarray) -> bytes:
        """Return the data of some rows for COPY, in order."""
        positions = np.searchsorted(self.rows, rows)
        cuts = np.flatnonzero(np.diff(positions) != 1) + 1
        starts, ends = positions[np.r_[0, cuts]], positions[np.r_[cuts - 1, positions.size - 1]] + 1
        bounds = self._bounds
        parts = [
            self._text[bounds[a] : bounds[b]] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        return b"".join((self._envelope[0], *parts, self._envelope[1]))


def cut_lines(text: bytes, rows: np.ndarray) -> Lines:
    """Split text format into lines, one for each row."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
    return Lines(text, np.concatenate((np.zeros(1, np.int64), ends)), rows)


COPY_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER: Final = b"\xff\xff"
_EPOCH: Final = 10_957  # 2000-01-01, the day from which PostgreSQL counts
_DIGIT: Final = 10_000  # numeric's digits (PostgreSQL, numeric_recv)
_NEGATIVE: Final = 0x4000
_MODIFIER: Final = re.compile(r"\(\d+(,-?\d+)?\)")
_UUID_CHARS: Final = 36
_DASHES: Final = (8, 13, 18, 23)
_GROUPS: Final = ((0, 8), (9, 13), (14, 18), (19, 23), (24, 36))
_NO_PAIR: Final = 256

Field = Callable[[pa.Array], np.ndarray | None]
"""Converts values without nulls to bytes, `uint8[n, width]`; None if this format does not support them."""


def _to_bytes(values: np.ndarray, kind: str) -> np.ndarray:
    return np.ascontiguousarray(values, kind).view(np.uint8).reshape(len(values), -1)


def _in_range(values: np.ndarray, low: int, high: int) -> bool:
    return low <= int(values.min()) and int(values.max()) <= high


def _integer(size: int, array: pa.Array) -> np.ndarray | None:
    if not pa.types.is_int64(array.type):
        return None
    numbers, limit = array.to_numpy(), 1 << (8 * size - 1)
    return _to_bytes(numbers, f">i{size}") if _in_range(numbers, -limit, limit - 1) else None


def _float(array: pa.Array) -> np.ndarray | None:
    return _to_bytes(array.to_numpy(), ">f8") if pa.types.is_float64(array.type) else None


def _boolean(array: pa.Array) -> np.ndarray | None:
    return _to_bytes(array.cast(pa.uint8()).to_numpy(), "u1") if pa.types.is_boolean(array.type) else None


def _date(array: pa.Array) -> np.ndarray | None:
    if not pa.types.is_date32(array.type):
        return None
    days = array.cast(pa.int32()).to_numpy()
    return _to_bytes(days - _EPOCH, ">i4") if _in_range(days, FIRST_DAY, LAST_DAY) else None


def _moment(array: pa.Array) -> np.ndarray | None:
    if not pa.types.is_timestamp(array.type):
        return None
    micros = array.cast(pa.int64()).to_numpy()
    if not _in_range(micros, FIRST_DAY * DAY_MICROS, (LAST_DAY + 1) * DAY_MICROS - 1):
        return None
    return _to_bytes(micros - _EPOCH * DAY_MICROS, ">i8")


def _numeric(array: pa.Array) -> np.ndarray | None:
    """Each digit of numeric has four decimal digits. The server removes leading zeros."""
    if pa.types.is_int64(array.type):
        numbers, scale = array.to_numpy(), 0
    elif pa.types.is_decimal128(array.type):
        halves = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[
            array.offset : array.offset + len(array)
        ]
        numbers, scale = halves[:, 0], array.type.scale
        if not np.array_equal(halves[:, 1], numbers >> 63):
            return None  # beyond 64 bits
    else:
        return None
    factor = 10 ** (-scale % 4)
    limit = np.iinfo(np.int64).max // factor
    if not _in_range(numbers, -limit, limit):
        return None
    remaining = np.abs(numbers) * factor
    fraction_digits = -(-scale // 4)
    count = fraction_digits + 1
    while int(remaining.max()) >= _DIGIT**count:
        count += 1
    words = np.zeros((len(numbers), 4 + count), np.int64)
    words[:, 0], words[:, 1], words[:, 3] = count, count - fraction_digits - 1, scale
    words[:, 2] = (numbers < 0) * _NEGATIVE
    for index in range(3 + count, 3, -1):
        remaining, words[:, index] = np.divmod(remaining, _DIGIT)
    return _to_bytes(words, ">i2")


def _uuid(array: pa.Array) -> np.ndarray | None:
    """Supports only the canonical format."""
    if not pa.types.is_string(array.type):
        return None
    starts, data = _bytes_of(array)
    if data.size != _UUID_CHARS * len(array) or (np.diff(starts) != _UUID_CHARS).any():
        return None
    chars = data.reshape(-1, _UUID_CHARS)
    if any((chars[:, dash] != ord("-")).any() for dash in _DASHES):
        return None
    digits = _concatenate([chars[:, start:end] for start, end in _GROUPS])
    values = _pairs().take(digits.view(np.uint16))
    return None if (values == _NO_PAIR).any() else values.astype(np.uint8)


@cache
def _pairs() -> np.ndarray:
    """Return a table, `uint16[65536]`, of the values of two hexadecimal digits that are read as one number,
    or `_NO_PAIR`."""
    chars = np.frombuffer(b"0123456789abcdefABCDEF", np.uint8)
    digit_values = np.array([int(chr(char), 16) for char in chars])
    pairs = np.stack([np.repeat(chars, chars.size), np.tile(chars, chars.size)], axis=1)
    table = np.full(1 << 16, _NO_PAIR, np.uint16)
    table[pairs.view(np.uint16)[:, 0]] = np.add.outer(digit_values * 16, digit_values).ravel()
    return table


_FIELDS: Final[Mapping[str, Field]] = {
    "smallint": partial(_integer, 2),
    "integer": partial(_integer, 4),
    "bigint": partial(_integer, 8),
    "numeric": _numeric,
    "double precision": _float,
    "boolean": _boolean,
    "date": _date,
    "timestamp without time zone": _moment,
    "timestamp with time zone": _moment,
    "uuid": _uuid,
}
_TEXTS: Final = ("text", "character varying", "character")


def _bytes_of(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets and the bytes of all texts."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bounds - bounds[0], np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]]


class CopyBinary:
    """Converts batches in any thread."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = [(column, _MODIFIER.sub("", column.declared, count=1)) for column in columns]
        self._able = all(name in _FIELDS or name in _TEXTS for _, name in self._columns)

    def lines(self, batch: pa.RecordBatch) -> Lines | None:
        """Convert all rows; None if a column or a value requires the text format."""
        count = batch.num_rows
        if not count or not self._able:
            return None
        pieces = _BatchPieces(count, len(self._columns))
        for (column, name), values in zip(self._columns, batch.columns, strict=True):
            array = convert_to_column(values, column)
            if pa.types.is_dictionary(array.type):
                array = array.dictionary_decode()
            if not (pieces.text(array) if name in _TEXTS else pieces.field(array, _FIELDS[name])):
                return None
        return Lines(*pieces.joined(), rows=np.arange(count), head=COPY_HEADER, tail=COPY_TRAILER)


class _BatchPieces:
    """The rows of a batch as pieces (see `engine.formats.views`).

    Bytes of fixed width are collected in `run` until a piece of variable length follows.
    """

    def __init__(self, count: int, columns: int) -> None:
        self._count = count
        self._pieces: list[np.ndarray] = []
        self._buffers: list[pa.Buffer] = []
        self._run = [self._repeated(columns, ">i2")]

    def _repeated(self, number: int, kind: str) -> np.ndarray:
        return np.broadcast_to(
            np.array([number], kind).view(np.uint8), (self._count, np.dtype(kind).itemsize)
        )

    def field(self, array: pa.Array, write: Field) -> bool:
        """Add a column of fixed width. Returns False if this format does not support it."""
        is_valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
        if array.null_count == len(array):
            self._run.append(self._repeated(-1, ">i4"))
            return True
        octets = write(array if is_valid is None else pc.fill_null(array, array.drop_null()[0]))
        if octets is None:
            return False
        width = octets.shape[1]
        if is_valid is None:
            self._run += [self._repeated(width, ">i4"), octets]
            return True
        self._run += [_to_bytes(np.where(is_valid, width, -1), ">i4"), octets]
        self._end_run(np.where(is_valid, 0, width))
        return True

    def text(self, array: pa.Array) -> bool:
        """Add a column of texts. Returns False if this format does not support it."""
        if array.null_count == len(array):
            self._run.append(self._repeated(-1, ">i4"))
            return True
        if not pa.types.is_string(array.type):
            return False
        is_valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
        array = array if is_valid is None else pc.fill_null(array, "")
        starts, data = _bytes_of(array)
        if not data.all():
            return False  # U+0000
        lengths = np.diff(starts)
        self._run.append(_to_bytes(lengths if is_valid is None else np.where(is_valid, lengths, -1), ">i4"))
        self._end_run()
        string_views, buffer = views.of_strings(array)
        if buffer is not None:
            string_views = views.with_buffer(string_views, len(self._buffers))
            self._buffers.append(buffer)
        self._pieces.append(string_views)
        return True

    def _end_run(self, less: np.ndarray | int = 0) -> None:
        """Add a piece with the collected bytes, except for the last `less` bytes of each row."""
        if len(self._run) == 1 and not np.any(less):  # the length of a text after another text: four bytes
            words = np.zeros((self._count, 4), np.int32)
            words[:, 0], words[:, 1:2] = self._run[0].shape[1], self._run[0].view(np.int32)
            self._pieces.append(words.reshape(-1).view(views.VIEW))
            self._run = []
            return
        octets = _concatenate(self._run)
        width = octets.shape[1]
        view_bytes = np.zeros((self._count, 16), np.uint8)
        words = view_bytes.view(np.int32)
        inline = octets[:, : views.INLINE_BYTES]
        view_bytes[:, 4 : 4 + inline.shape[1]] = inline
        words[:, 0] = width - less
        long_rows = np.flatnonzero(words[:, 0] > views.INLINE_BYTES)
        words[long_rows, 2], words[long_rows, 3] = len(self._buffers), long_rows * width
        self._pieces.append(view_bytes.reshape(-1).view(views.VIEW))
        self._buffers.append(pa.py_buffer(octets))
        self._run = []

    def joined(self) -> tuple[memoryview, np.ndarray]:
        """Return the data of all rows, and their offsets."""
        if self._run:
            self._end_run()
        width = len(self._pieces)
        table = np.ascontiguousarray(np.stack(self._pieces, axis=1))
        buffers = [None, pa.py_buffer(table), *self._buffers]
        _, offsets, text = join_views(
            pa.Array.from_buffers(pa.binary_view(), table.size, buffers, null_count=0)
        ).buffers()
        return memoryview(text), np.frombuffer(offsets, np.int64)[: table.size + 1 : width]


def _concatenate(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate parts in row-major order. numpy may choose another order for repeated values."""
    return np.ascontiguousarray(np.concatenate(parts, axis=1))

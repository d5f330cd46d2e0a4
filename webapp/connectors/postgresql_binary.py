"""Rows as COPY's binary format (PostgreSQL, "COPY", "Binary Format"), which the server reads in three quarters of the
time that text takes it.

Only for pairs of an Arrow type and a column's type of which both sides hold the same values. Whatever is more than
that (a number as text, one beyond its column's range, U+0000) is left to the text format, so that what the server
says of a value does not depend on how it was sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.connectors.postgresql_copy import DAY_MICROS, FIRST_DAY, LAST_DAY, Lines
from webapp.connectors.shape import Column
from webapp.connectors.sql_values import fitted
from webapp.engine.formats import views
from webapp.engine.formats.pieces import copied

HEAD: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TAIL: Final = b"\xff\xff"
_EPOCH: Final = 10_957  # 2000-01-01, from where PostgreSQL counts days
_DIGIT: Final = 10_000  # numeric's digits (PostgreSQL, numeric_recv)
_NEGATIVE: Final = 0x4000
_MODIFIER: Final = re.compile(r"\(\d+(,-?\d+)?\)")
_UUID_CHARS: Final = 36
_DASHES: Final = (8, 13, 18, 23)
_GROUPS: Final = ((0, 8), (9, 13), (14, 18), (19, 23), (24, 36))
_NO_PAIR: Final = 256

Field = Callable[[pa.Array], np.ndarray | None]
"""Values without nulls as bytes, `uint8[n, width]`; None where they are not for this format."""


def _octets(values: np.ndarray, kind: str) -> np.ndarray:
    return np.ascontiguousarray(values, kind).view(np.uint8).reshape(len(values), -1)


def _within(values: np.ndarray, low: int, high: int) -> bool:
    return low <= int(values.min()) and int(values.max()) <= high


def _integer(size: int, array: pa.Array) -> np.ndarray | None:
    if not pa.types.is_int64(array.type):
        return None
    numbers, most = array.to_numpy(), 1 << (8 * size - 1)
    return _octets(numbers, f">i{size}") if _within(numbers, -most, most - 1) else None


def _float(array: pa.Array) -> np.ndarray | None:
    return _octets(array.to_numpy(), ">f8") if pa.types.is_float64(array.type) else None


def _boolean(array: pa.Array) -> np.ndarray | None:
    return _octets(array.cast(pa.uint8()).to_numpy(), "u1") if pa.types.is_boolean(array.type) else None


def _date(array: pa.Array) -> np.ndarray | None:
    if not pa.types.is_date32(array.type):
        return None
    days = array.cast(pa.int32()).to_numpy()
    return _octets(days - _EPOCH, ">i4") if _within(days, FIRST_DAY, LAST_DAY) else None


def _moment(array: pa.Array) -> np.ndarray | None:
    if not pa.types.is_timestamp(array.type):
        return None
    micros = array.cast(pa.int64()).to_numpy()
    if not _within(micros, FIRST_DAY * DAY_MICROS, (LAST_DAY + 1) * DAY_MICROS - 1):
        return None
    return _octets(micros - _EPOCH * DAY_MICROS, ">i8")


def _numeric(array: pa.Array) -> np.ndarray | None:
    """Four decimal digits in each of numeric's; leading zeros are cut off by the server."""
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
    more = 10 ** (-scale % 4)
    most = np.iinfo(np.int64).max // more
    if not _within(numbers, -most, most):
        return None
    left = np.abs(numbers) * more
    behind = -(-scale // 4)
    count = behind + 1
    while int(left.max()) >= _DIGIT**count:
        count += 1
    words = np.zeros((len(numbers), 4 + count), np.int64)
    words[:, 0], words[:, 1], words[:, 3] = count, count - behind - 1, scale
    words[:, 2] = (numbers < 0) * _NEGATIVE
    for place in range(3 + count, 3, -1):
        left, words[:, place] = np.divmod(left, _DIGIT)
    return _octets(words, ">i2")


def _uuid(array: pa.Array) -> np.ndarray | None:
    """Of the usual spelling only."""
    if not pa.types.is_string(array.type):
        return None
    starts, data = _bytes_of(array)
    if data.size != _UUID_CHARS * len(array) or (np.diff(starts) != _UUID_CHARS).any():
        return None
    signs = data.reshape(-1, _UUID_CHARS)
    if any((signs[:, dash] != ord("-")).any() for dash in _DASHES):
        return None
    digits = _joined([signs[:, start:end] for start, end in _GROUPS])
    found = _pairs().take(digits.view(np.uint16))
    return None if (found == _NO_PAIR).any() else found.astype(np.uint8)


@cache
def _pairs() -> np.ndarray:
    """`uint16[65536]`: what two hexadecimal digits in memory, read as one number, are worth; else `_NO_PAIR`."""
    signs = np.frombuffer(b"0123456789abcdefABCDEF", np.uint8)
    worth = np.array([int(chr(sign), 16) for sign in signs])
    both = np.stack([np.repeat(signs, signs.size), np.tile(signs, signs.size)], axis=1)
    found = np.full(1 << 16, _NO_PAIR, np.uint16)
    found[both.view(np.uint16)[:, 0]] = np.add.outer(worth * 16, worth).ravel()
    return found


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
    """Where each text begins and the last ends, and the bytes of all of them."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bounds - bounds[0], np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]]


class CopyBinary:
    """Writes batches of some columns, in any thread."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = [(column, _MODIFIER.sub("", column.declared, count=1)) for column in columns]
        self._able = all(name in _FIELDS or name in _TEXTS for _, name in self._columns)

    def lines(self, batch: pa.RecordBatch) -> Lines | None:
        """All rows; None where a column or a value is for the text format."""
        count = batch.num_rows
        if not count or not self._able:
            return None
        laid = _Laid(count, len(self._columns))
        for (column, name), given in zip(self._columns, batch.columns, strict=True):
            array = fitted(given, column)
            if pa.types.is_dictionary(array.type):
                array = array.dictionary_decode()
            if not (laid.text(array) if name in _TEXTS else laid.field(array, _FIELDS[name])):
                return None
        return Lines(*laid.joined(), rows=np.arange(count), head=HEAD, tail=TAIL)


class _Laid:
    """The rows of a batch as pieces, see `engine.formats.views`. Bytes of known width are gathered in `run` until a
    piece whose length differs from row to row."""

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
        """One column of a fixed width; False where it is not for this format."""
        there = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
        if array.null_count == len(array):
            self._run.append(self._repeated(-1, ">i4"))
            return True
        octets = write(array if there is None else pc.fill_null(array, array.drop_null()[0]))
        if octets is None:
            return False
        width = octets.shape[1]
        if there is None:
            self._run += [self._repeated(width, ">i4"), octets]
            return True
        self._run += [_octets(np.where(there, width, -1), ">i4"), octets]
        self._end_run(np.where(there, 0, width))
        return True

    def text(self, array: pa.Array) -> bool:
        """One column of texts; False where it is not for this format."""
        if array.null_count == len(array):
            self._run.append(self._repeated(-1, ">i4"))
            return True
        if not pa.types.is_string(array.type):
            return False
        there = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
        array = array if there is None else pc.fill_null(array, "")
        starts, data = _bytes_of(array)
        if not data.all():
            return False  # U+0000
        lengths = np.diff(starts)
        self._run.append(_octets(lengths if there is None else np.where(there, lengths, -1), ">i4"))
        self._end_run()
        found, buffer = views.of_strings(array)
        if buffer is not None:
            found = views.moved(found, len(self._buffers))
            self._buffers.append(buffer)
        self._pieces.append(found)
        return True

    def _end_run(self, less: np.ndarray | int = 0) -> None:
        """A piece of the bytes gathered, but for the last `less` of each row."""
        if len(self._run) == 1 and not np.any(less):  # the length of a text behind another text: four bytes
            words = np.zeros((self._count, 4), np.int32)
            words[:, 0], words[:, 1:2] = self._run[0].shape[1], self._run[0].view(np.int32)
            self._pieces.append(words.reshape(-1).view(views.VIEW))
            self._run = []
            return
        octets = _joined(self._run)
        width = octets.shape[1]
        found = np.zeros((self._count, 16), np.uint8)
        words = found.view(np.int32)
        found[:, 4 : 4 + views.INLINE_BYTES] = _first(octets, views.INLINE_BYTES)
        words[:, 0] = width - less
        long = np.flatnonzero(words[:, 0] > views.INLINE_BYTES)
        words[long, 2], words[long, 3] = len(self._buffers), long * width
        self._pieces.append(found.reshape(-1).view(views.VIEW))
        self._buffers.append(pa.py_buffer(octets))
        self._run = []

    def joined(self) -> tuple[memoryview, np.ndarray]:
        """All rows, and where each begins and the last ends."""
        if self._run:
            self._end_run()
        width = len(self._pieces)
        table = np.ascontiguousarray(np.stack(self._pieces, axis=1))
        laid = [None, pa.py_buffer(table), *self._buffers]
        _, offsets, text = copied(
            pa.Array.from_buffers(pa.binary_view(), table.size, laid, null_count=0)
        ).buffers()
        return memoryview(text), np.frombuffer(offsets, np.int64)[: table.size + 1 : width]


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Side by side, row after row in memory: numpy may choose otherwise where parts are repeated values."""
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _first(octets: np.ndarray, width: int) -> np.ndarray:
    """The first bytes of each row, zeros behind them where there are fewer."""
    short = width - octets.shape[1]
    return np.pad(octets, ((0, 0), (0, short))) if short > 0 else octets[:, :width]

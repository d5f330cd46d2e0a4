"""Convert values of each type to text: with lookup tables for small ranges, else with Arrow's casts.

Both methods produce the same text: integers in decimal, decimals with all their declared digits, dates and times in ISO
8601 with a fraction of a second only if it is not zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from datetime import date
from decimal import Decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import mixed_columns
from webapp.engine.formats import views
from webapp.engine.formats.base import (
    NULL,
    PLAIN,
    Codec,
    Column,
    RowLiterals,
    ValueLiterals,
    null_mask,
    numbers,
)
from webapp.engine.formats.escape import Escape, EscapedTooLargeError, UnrepresentableTextError
from webapp.engine.formats.layout import Layout, Slot

_SMALL = 10_000  # one table look-up
_MEDIUM = _SMALL**2  # two
_BARE = ValueLiterals(("", "", ""), ("", "", ""))
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()

MICROS = 1_000_000
DAY_MICROS = 86_400 * MICROS


class BaseCodec(ABC):
    """A codec whose pools are spelled by itself."""

    key: Hashable
    piece_count: int

    @abstractmethod
    def fill(self, column: pa.Array, slot: Slot) -> np.ndarray | None:
        """See `column.Codec`."""

    def encode_pool(self, values: pa.Array) -> pa.Array | None:
        """See `column.Codec`."""
        if not len(values):
            return values.cast(pa.string())
        bare = _MarkingCodec(self)
        texts = Layout([Column("", bare, _BARE)], RowLiterals(), joint=False).texts_of([values], None, None)
        return None if bare.marked else texts

    def encode_part(self, values: pa.Array) -> pa.Array | None:
        """See `column.Codec`."""
        return None


class _MarkingCodec:
    """A codec that notes whether anything was marked."""

    def __init__(self, codec: BaseCodec) -> None:
        self._codec, self.key, self.piece_count = codec, codec.key, codec.piece_count
        self.marked = False

    def fill(self, column: pa.Array, slot: Slot) -> np.ndarray | None:
        marks = self._codec.fill(column, slot)
        self.marked = marks is not None and bool(marks.any())
        return None

    def encode_pool(self, values: pa.Array) -> pa.Array | None:
        return None

    def encode_part(self, values: pa.Array) -> pa.Array | None:
        return None


class TextCodec(BaseCodec):
    """Text, processed by ``escape``; unchanged if it is None."""

    piece_count = 1

    def __init__(self, escape: Escape | None) -> None:
        self._escape = escape
        self.key = ("text", escape.key if escape else None)

    def fill(self, column: pa.Array, slot: Slot) -> None:
        slot.put_text(0, column, self._escape)

    def encode_pool(self, values: pa.Array) -> pa.Array | None:
        try:
            return self._escape.escape_pool(values) if self._escape else values
        except (UnrepresentableTextError, EscapedTooLargeError):
            return None

    def encode_part(self, values: pa.Array) -> pa.Array | None:
        return self._escape.escape_part(values) if self._escape else values


class NullCodec(BaseCodec):
    """Only nulls."""

    piece_count = 0
    key = "null"

    def fill(self, column: pa.Array, slot: Slot) -> None:
        return None


class BoolCodec(BaseCodec):
    """Booleans as two given words of at most 12 bytes."""

    piece_count = 1

    def __init__(self, false: bytes = b"false", true: bytes = b"true") -> None:
        self.key = ("bool", false, true)
        self._views = views.booleans(false, true)

    def fill(self, column: pa.Array, slot: Slot) -> None:
        end = column.offset + len(column)
        bits = np.frombuffer(column.buffers()[1], np.uint8, (end + 7) // 8)
        slot.put(
            0,
            self._views.take(np.unpackbits(bits, count=end, bitorder="little")[column.offset :], mode="clip"),
        )


class FloatCodec(BaseCodec):
    """The shortest decimal that reads back as the same double; with ``exponents``, those that have one are marked."""

    piece_count = 1

    def __init__(self, *, exponents: bool = False) -> None:
        self._exponents = exponents
        self.key = ("float", exponents)

    def fill(self, column: pa.Array, slot: Slot) -> np.ndarray | None:
        """See `column.Codec`."""
        texts = column.cast(pa.string())
        slot.put_text(0, texts, None)
        if not self._exponents:
            return None
        return pc.fill_null(pc.match_substring(texts, "e"), False).to_numpy(zero_copy_only=False)


class IntegerCodec(BaseCodec):
    """Integers; those beyond ``exact`` on either side of zero are marked."""

    piece_count = 2

    def __init__(self, exact: int | None = None) -> None:
        self._exact = exact
        self.key = ("integer", exact)

    def fill(self, column: pa.Array, slot: Slot) -> np.ndarray | None:
        values = numbers(column, np.uint64 if pa.types.is_uint64(column.type) else np.int64)
        low, high = int(values.min()), int(values.max())
        if low > -_MEDIUM and high < _MEDIUM:
            if low >= 0:
                put_integers(slot, 0, values.astype(np.uint32), low, high)
            else:
                put_integers(slot, 0, np.abs(values).astype(np.uint32), 0, max(high, -low), values < 0)
            return None
        slot.put_text(0, column.cast(pa.string()), None)
        slot.clear(1)
        if self._exact is None or (-self._exact <= low and high <= self._exact):
            return None
        if low >= 0:
            return values > values.dtype.type(self._exact)
        return (values > self._exact) | (values < -self._exact)


def put_integers(
    slot: Slot, piece: int, size: np.ndarray, low: int, high: int, negative: np.ndarray | None = None
) -> None:
    """Unsigned integers below 10**8, between ``low`` and ``high``, into two pieces; ``negative`` ones with a sign."""
    if high < _SMALL:
        head = size
        slot.clear(piece + 1)
    else:
        small = size.dtype.type(_SMALL)
        head = size // small
        rest = size - head * small + size.dtype.type(1)
        if low < _SMALL:
            long = head > 0
            head, rest = np.where(long, head, size), rest * long
        slot.put(piece + 1, views.padded_numbers(4).take(rest, mode="clip"))
    if negative is not None:
        head = head + negative * size.dtype.type(_SMALL)
    slot.put(piece, views.whole_numbers().take(head, mode="clip"))


class DecimalCodec(BaseCodec):
    """Decimals with ``places`` digits behind the point; those over ``exact`` units of the last place are marked."""

    def __init__(self, places: int, exact: int | None = None) -> None:
        self.key = ("decimal", places, exact)
        self._places, self._exact = places, exact
        self._chunks = [min(4, places - at) for at in range(0, places, 4)]
        self.piece_count = 2 + len(self._chunks)

    def fill(self, column: pa.Array, slot: Slot) -> np.ndarray | None:
        start, count = 16 * column.offset, len(column)
        words = np.frombuffer(column.buffers()[1], np.int64, 2 * count, start).reshape(count, 2)
        units = words[:, 0]
        low, high = int(units.min()), int(units.max())
        scale = 10**self._places
        top = max(high, -low)
        if scale >= 2**63 or top >= min(_MEDIUM * scale, 2**63) or not (words[:, 1] == units >> 63).all():
            return self._fill_wide(column, slot)
        size = (units if low >= 0 else np.abs(units)).astype(np.uint64)
        integer_part = size // np.uint64(scale)
        remaining_digits, rest = self._places, size - integer_part * np.uint64(scale)
        for number, digits in enumerate(self._chunks):
            remaining_digits -= digits
            head = rest // np.uint64(10**remaining_digits)
            rest = rest - head * np.uint64(10**remaining_digits)
            table = views.padded_numbers(digits, b"" if number else b".")
            slot.put(2 + number, table.take(head + np.uint64(1), mode="clip"))
        small = integer_part.astype(np.uint32)
        if low >= 0:
            put_integers(slot, 0, small, low // scale, high // scale)
        else:
            put_integers(slot, 0, small, 0, top // scale, units < 0)
        return None if self._exact is None or top <= self._exact else size > np.uint64(self._exact)

    def _fill_wide(self, column: pa.Array, slot: Slot) -> np.ndarray | None:
        slot.clear(*range(1, self.piece_count))
        values = column.to_pylist()
        slot.put_text(
            0, pa.array([value if value is None else f"{value:f}" for value in values], pa.string()), None
        )
        if self._exact is None:
            return None
        exact = Decimal(self._exact).scaleb(-self._places)
        return np.array([value is not None and abs(value) > exact for value in values])


class DateCodec(BaseCodec):
    """``YYYY-MM-DD``."""

    piece_count = 1
    key = "date"

    def fill(self, column: pa.Array, slot: Slot) -> None:
        slot.put(0, views.dates(numbers_or_zero(column, np.int32)))


class TimestampCodec(BaseCodec):
    """``YYYY-MM-DD``, ``separator``, ``HH:MM:SS`` and six digits of a second unless they are all zero."""

    piece_count = 5

    def __init__(self, separator: bytes = b"T") -> None:
        self.key = ("timestamp", separator)
        self._between = separator

    def fill(self, column: pa.Array, slot: Slot) -> None:
        micros = numbers_or_zero(column, np.int64)
        days = micros // DAY_MICROS
        slot.put(0, views.dates(days))
        put_clock(slot, 1, micros - days * DAY_MICROS, self._between)


class TimeCodec(BaseCodec):
    """``HH:MM:SS`` and six digits of a second unless they are all zero."""

    piece_count = 4
    key = "time"

    def fill(self, column: pa.Array, slot: Slot) -> None:
        put_clock(slot, 0, numbers_or_zero(column, np.int64), b"")


@lru_cache(maxsize=8192)  # twenty years
def format_date(days: int) -> str:
    """``YYYY-MM-DD`` of days since 1970-01-01."""
    return date.fromordinal(views.checked_days(days, days) + _EPOCH_ORDINAL).isoformat()


def format_clock(micros: int) -> str:
    """``HH:MM:SS[.ffffff]`` of microseconds of a day."""
    seconds, fraction = divmod(micros, MICROS)
    minutes, second = divmod(seconds, 60)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
    return f"{text}.{fraction:06d}" if fraction else text


def put_clock(slot: Slot, piece: int, micros: np.ndarray, lead: bytes) -> None:
    """Microseconds of a day (``int64[n]``) as a time of day after ``lead``, into four pieces."""
    seconds = micros // MICROS
    fraction = (micros - seconds * MICROS).astype(np.uint32)
    seconds = seconds.astype(np.uint32)
    minutes = seconds // np.uint32(60)
    slot.put(piece, views.clock_minutes(lead).take(minutes, mode="clip"))
    slot.put(piece + 1, views.clock_seconds().take(seconds - minutes * np.uint32(60), mode="clip"))
    if not fraction.any():
        slot.clear(piece + 2, piece + 3)
        return
    has_fraction = fraction > 0
    thousands = fraction // np.uint32(1000)
    rest = fraction - thousands * np.uint32(1000)
    slot.put(
        piece + 2, views.padded_numbers(3, b".").take((thousands + np.uint32(1)) * has_fraction, mode="clip")
    )
    slot.put(piece + 3, views.padded_numbers(3).take((rest + np.uint32(1)) * has_fraction, mode="clip"))


def numbers_or_zero(column: pa.Array, dtype: type) -> np.ndarray:
    """``int64[n]``: the numbers of a date or time column, zero where null."""
    values = numbers(column, dtype).astype(np.int64)
    mask = null_mask(column)
    if mask is not None:
        values[mask] = 0
    return values


# Write mixed columns (`engine.mixed_columns`) in text formats: values by their type, the other cells as text.


def mixed_column(value: Column, text: Column, *, marks: bool = False, escape: Escape | None = None) -> Column:
    """The column that writes values as ``value`` does and texts as ``text`` does. ``marks``: what ``value`` marks is
    written as text too. ``escape`` treats the texts."""
    before, after = value.wrapping.before, value.wrapping.after
    wrapping = ValueLiterals(
        (before[PLAIN], before[NULL], text.wrapping.before[PLAIN]),
        (after[PLAIN], after[NULL], text.wrapping.after[PLAIN]),
    )
    return Column(value.name, MixedCodec(value.codec, marks, escape), wrapping)


class MixedCodec(BaseCodec):
    """Values by another codec and, one piece behind them, texts, treated by ``escape``. Texts are marked."""

    def __init__(self, codec: Codec, marks: bool, escape: Escape | None) -> None:
        self._codec, self._marks, self._escape = codec, marks, escape
        self.piece_count = codec.piece_count + 1
        self.key = ("mixed", codec.key, marks, escape.key if escape else None)

    def fill(self, column: pa.Array, slot: Slot) -> np.ndarray:
        """See `column.Codec`."""
        values, texts = mixed_columns.split(column)
        inner = self._codec.fill(values, slot)
        marked = mixed_columns.text_mask(column)
        if marked.any():
            for piece in range(self._codec.piece_count):
                slot.clear_rows(piece, marked)
            slot.put_text(self._codec.piece_count, texts, self._escape)
        else:
            slot.clear(self._codec.piece_count)
        return marked if inner is None or not self._marks else marked | inner


def mixed_to_text(column: pa.Array, writer: Column) -> pa.Array:
    """Return a mixed column as text; ``writer`` writes its values, without quotes."""
    if not len(column):
        return pa.array([], pa.string())
    values, texts = mixed_columns.split(column)
    written = Layout([writer], RowLiterals(), joint=False).texts_of([values])
    return pc.coalesce(texts, pc.if_else(values.is_valid(), written, pa.scalar(None, pa.string())))

"""Dates and times as a spreadsheet counts them: days since 1899-12-30, and twelve digits of a day.

Excel takes 1900 for a leap year, so days before 1900-03-01 count one less. It knows no day before 1900 and none
after 9999: those are marked, and spelled as text. A sheet shows milliseconds at most, so the rest is cut off: rounded,
a reader would take the last microsecond of a day for the next day.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from webapp.engine.formats import views
from webapp.engine.formats.codecs import (
    DAY_MICROS,
    BaseCodec,
    put_whole,
    settled,
    spelled_clock,
    spelled_date,
)
from webapp.engine.formats.column import Words
from webapp.engine.formats.layout import Slot

_FIRST_DAY = -25_567  # 1900-01-01
_LEAP_DAY = -25_508  # 1900-03-01
_LAST_DAY = 2_932_896  # 9999-12-31
_BEFORE_1970 = 25_569
_DIGITS = 12
_CHUNKS = 3


def _serial(days: int) -> int:
    return days + _BEFORE_1970 - (days < _LEAP_DAY)


def _fraction(micros: int | np.ndarray) -> int | np.ndarray:
    """Microseconds of a day in 10**-12 days: whole milliseconds times ``10**12 / 86,400,000``, rounded."""
    return (micros // 1000 * 312_500 + 13) // 27


def _put_days(slot: Slot, days: np.ndarray) -> None:
    serials = (days + _BEFORE_1970 - (days < _LEAP_DAY)).astype(np.uint32)
    put_whole(slot, 0, serials, int(serials.min()), int(serials.max()))


def _put_fraction(slot: Slot, piece: int, micros: np.ndarray) -> None:
    rest = _fraction(micros)
    for number in range(_CHUNKS):
        unit = 10 ** (_DIGITS - 4 * (number + 1))
        head = rest // unit
        rest = rest - head * unit
        slot.put(piece + number, views.padded_numbers(4, b"" if number else b".").take(head + 1, mode="clip"))


def _known(days: np.ndarray) -> bool:
    return int(days.min()) >= _FIRST_DAY and int(days.max()) <= _LAST_DAY


class SerialDateCodec(BaseCodec):
    """A date as a whole number of days."""

    width = 2
    key = "serial date"

    def fill(self, column: pa.Array, slot: Slot) -> np.ndarray | None:
        """See `column.Codec`."""
        days = settled(column, np.int32)
        if _known(days):
            _put_days(slot, days)
            return None
        return self._spell(column, slot)

    def words(self, column: pa.Array) -> Words:
        """See `column.Codec`."""
        days = settled(column, np.int32).tolist()
        marks = [day < _FIRST_DAY for day in days]
        words = [
            spelled_date(day) if mark else str(_serial(day)) for day, mark in zip(days, marks, strict=True)
        ]
        return words, marks

    def _spell(self, column: pa.Array, slot: Slot) -> np.ndarray:
        words, marks = self.words(column)
        slot.text(0, pa.array(words, pa.string()), None)
        slot.blank(*range(1, self.width))
        return np.array(marks)


class SerialTimestampCodec(SerialDateCodec):
    """A timestamp as days with a fraction; what its zone was is lost."""

    width = 2 + _CHUNKS
    key = "serial timestamp"

    def fill(self, column: pa.Array, slot: Slot) -> np.ndarray | None:
        """See `column.Codec`."""
        micros = settled(column, np.int64)
        days = micros // DAY_MICROS
        if not _known(days):
            return self._spell(column, slot)
        _put_days(slot, days)
        _put_fraction(slot, 2, micros - days * DAY_MICROS)
        return None

    def words(self, column: pa.Array) -> Words:
        """See `column.Codec`."""
        parts = [divmod(micros, DAY_MICROS) for micros in settled(column, np.int64).tolist()]
        marks = [day < _FIRST_DAY for day, _ in parts]
        words = [
            f"{spelled_date(day)} {spelled_clock(rest)}" if mark else f"{_serial(day)}.{_fraction(rest):012d}"
            for (day, rest), mark in zip(parts, marks, strict=True)
        ]
        return words, marks


class SerialTimeCodec(BaseCodec):
    """A time of day as the fraction behind a nought that the column's wrapping gives."""

    width = _CHUNKS
    key = "serial time"

    def fill(self, column: pa.Array, slot: Slot) -> None:
        """See `column.Codec`."""
        _put_fraction(slot, 0, settled(column, np.int64))

    def words(self, column: pa.Array) -> Words:
        """See `column.Codec`."""
        return [f".{_fraction(micros):012d}" for micros in settled(column, np.int64).tolist()], None

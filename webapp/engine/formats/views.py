"""Pieces of text as 16-byte Arrow views, the unit in which rows are put together.

An Arrow view (Arrow columnar format, "Variable-size Binary View Layout") is ``int32 length`` and then either the
text itself, up to 12 bytes, or ``4 bytes of prefix, int32 buffer, int32 offset``. A row is a run of views; Arrow's
own cast from views to plain binary then copies all pieces of a block in one go, and its output is the file. Here a
view is held in one ``complex128``, the only 16-byte element that numpy gathers at full speed; no arithmetic is
ever done on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
import pyarrow as pa

VIEW = np.dtype(np.complex128)
INLINE_BYTES = 12  # Arrow columnar format: longer texts are in a separate buffer
TEXT_BUFFER = 0  # number of the buffer with the block's own texts
LITERAL_BUFFER = 1  # number of the buffer with the literals between the values

_STRING_VIEW = pa.string_view()
_CHUNK = 10_000  # four digits at a time
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31: four digits by ISO 8601


def inline_views(texts: Iterable[bytes]) -> np.ndarray:
    """``view[n]`` of texts of at most 12 bytes each."""
    return np.frombuffer(
        b"".join(len(text).to_bytes(4, "little") + text.ljust(INLINE_BYTES, b"\0") for text in texts), VIEW
    )


def outline_view(text: bytes, buffer: int, offset: int) -> np.ndarray:
    """Return ``view[1]`` of a longer text at ``offset`` in buffer ``buffer``."""
    words = (len(text), buffer, offset)
    length, number, start = (number_of_4_bytes.to_bytes(4, "little") for number_of_4_bytes in words)
    return np.frombuffer(length + text[:4] + number + start, VIEW)


def of_strings(texts: pa.Array) -> tuple[np.ndarray, pa.Buffer | None]:
    """``(view[n], data)`` of a string array; buffer 0 is meant, ``data`` is None if no text is over 12 bytes.

    The text is not copied. A null becomes the empty text.
    """
    cast = texts.cast(_STRING_VIEW)
    buffers = cast.buffers()
    found = np.frombuffer(buffers[1], VIEW)[cast.offset : cast.offset + len(cast)]
    return found, buffers[2] if len(buffers) > 2 else None


def with_buffer(views: np.ndarray, buffer: int) -> np.ndarray:
    """Return a copy of ``views`` whose long texts are in buffer ``buffer`` instead of buffer 0."""
    words = views.view(np.uint32).reshape(-1, 4).copy()
    words[:, 2] += (words[:, 0] > INLINE_BYTES) * np.uint32(buffer)
    return words.reshape(-1).view(VIEW)


def lengths(views: np.ndarray) -> np.ndarray:
    """``int32[n]``: the bytes of each text."""
    return views.view(np.int32).reshape(-1, 4)[:, 0]


@cache
def whole_numbers() -> np.ndarray:
    """``view[20000]``: the texts of 0..9999, then of -0..-9999."""
    return inline_views([b"%d" % i for i in range(_CHUNK)] + [b"-%d" % i for i in range(_CHUNK)])


@cache
def padded_numbers(width: int, lead: bytes = b"") -> np.ndarray:
    """``view[10**width + 1]``: the empty text, then 0..10**width - 1 padded to ``width`` <= 4 digits after ``lead``."""
    return inline_views([b"", *(lead + b"%0*d" % (width, i) for i in range(10**width))])


@cache
def clock_minutes(lead: bytes) -> np.ndarray:
    """``view[1440]``: ``HH:MM`` of each minute of the day after ``lead``."""
    return inline_views(lead + b"%02d:%02d" % divmod(i, 60) for i in range(1440))


@cache
def clock_seconds() -> np.ndarray:
    """``view[60]``: ``:SS``."""
    return inline_views(b":%02d" % i for i in range(60))


@cache
def booleans(false: bytes, true: bytes) -> np.ndarray:
    """``view[2]``."""
    return inline_views((false, true))


@cache
def _calendar() -> tuple[int, np.ndarray]:
    first, last = (int(np.datetime64(day, "D").astype(np.int64)) for day in ("1900-01-01", "2100-01-01"))
    return first, _date_views(np.arange(first, last))


def dates(days: np.ndarray) -> np.ndarray:
    """``view[n]``: ``YYYY-MM-DD`` of ``days`` (``int64[n]`` since 1970-01-01), from a table for 1900 to 2099.

    Raises OverflowError for days outside the years 1 to 9999.
    """
    first, table = _calendar()
    if days.size == 0 or (int(days.min()) >= first and int(days.max()) < first + table.size):
        return table.take(days - first, mode="clip")
    return _date_views(days)


def checked_days(low: int, high: int) -> int:
    """``low``, if both are days of the years 1 to 9999; else OverflowError."""
    if low < _FIRST_DAY or high > _LAST_DAY:
        raise OverflowError("A date outside the years 1 to 9999.")
    return low


def _date_views(days: np.ndarray) -> np.ndarray:
    checked_days(int(days.min()), int(days.max()))
    day = days.astype("M8[D]")
    month, year = day.astype("M8[M]"), day.astype("M8[Y]")
    characters = np.empty((days.size, 16), np.uint8)
    characters[:, :4] = np.frombuffer(b"\x0a\0\0\0", np.uint8)
    characters[:, 14:] = 0
    _write_digits(characters[:, 4:8], year.astype(np.int64) + 1970)
    _write_digits(characters[:, 9:11], (month - year).astype(np.int64) + 1)
    _write_digits(characters[:, 12:14], (day - month).astype(np.int64) + 1)
    characters[:, 8] = characters[:, 11] = ord("-")
    return characters.reshape(-1).view(VIEW)


def _write_digits(target: np.ndarray, numbers: np.ndarray) -> None:
    for column in range(target.shape[1] - 1, -1, -1):
        numbers, digit = np.divmod(numbers, 10)
        target[:, column] = digit + ord("0")

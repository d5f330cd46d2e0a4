"""Format dates and times as text, by ``YYYY-MM-DD`` tokens or by strftime's ``%Y-%m-%d``.

A format is parsed once and applied to columns through tables: every directive writes its bytes at its place in a
matrix whose rows are as wide as the longest text. Shorter values (``-d``, month names) leave zero bytes, which are
dropped at the end. Years are 0 to 9999. Month and weekday names are English: they belong to the engine, so that no
locale of a machine can change a byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

FormatPart = tuple[str, str]
"""("text", literal) or ("day" | "clock", directive)."""

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

SECOND_MICROS = 1_000_000
DAY_MICROS = 86_400 * SECOND_MICROS
"""Microseconds."""

_EPOCH_BYTES = 13  # a sign and the twelve digits of the year 9999
_CALENDAR = (np.datetime64("1900-01-01", "D").astype(int), np.datetime64("2100-01-01", "D").astype(int))

Table = np.ndarray
"""A fixed number of bytes for each of 0, 1, 2 ...: ``V<width>[n]``."""


class DateFormatter:
    """The parts of a format laid out."""

    def __init__(self, parts: Sequence[FormatPart]) -> None:
        self._slots: list[tuple[int, int, str]] = []
        template = b""
        self.has_variable_width = False
        for kind, value in parts:
            if kind == "text":
                template += value.encode()
                continue
            width = DIRECTIVE_WIDTHS[value]
            self._slots.append((len(template), width, value))
            self.has_variable_width |= value in VARIABLE_WIDTH_DIRECTIVES
            template += bytes(width)
        self._template = np.frombuffer(template, np.uint8)

    def format(self, days: np.ndarray, clock: np.ndarray | None) -> pa.Array:
        """``string[n]`` of ``int64[n]`` days since 1970 and microseconds of the day (None: midnight).

        Raises `OverflowError` for days outside the years 0 to 9999.
        """
        out = np.empty((days.size, self._template.size), np.uint8)
        out[:] = self._template
        source = _DateParts(days, clock)
        for start, width, directive in self._slots:
            table, index = _DIRECTIVES[directive](source)
            out[:, start : start + width].view(table.dtype)[:, 0] = table.take(index)
        if not self.has_variable_width:
            return _strings(out.reshape(-1), np.arange(0, out.size + 1, out.shape[1], dtype=np.int32))
        used = out != 0
        offsets = np.zeros(days.size + 1, np.int32)
        np.cumsum(used.sum(axis=1, dtype=np.int32), out=offsets[1:])
        return _strings(out[used], offsets)


def _strings(data: np.ndarray, offsets: np.ndarray) -> pa.Array:
    return pa.StringArray.from_buffers(offsets.size - 1, pa.py_buffer(offsets), pa.py_buffer(data))


class _DateParts:
    """The parts of some points in time; each part is calculated at most once."""

    def __init__(self, days: np.ndarray, clock: np.ndarray | None) -> None:
        self.days = days
        self.clock = np.zeros(days.size, np.int64) if clock is None else clock
        self._fields: np.ndarray | None = None
        self._seconds: np.ndarray | None = None

    @property
    def fields(self) -> np.ndarray:
        """``int32[n, 4]``: year, month, day, day of the year."""
        if self._fields is None:
            first, last = _CALENDAR
            if self.days.size and (self.days.min() < first or self.days.max() >= last):
                self._fields = _calendar(self.days)
            else:
                self._fields = _usual_calendar().take(self.days - first, axis=0)
        return self._fields

    @property
    def seconds(self) -> np.ndarray:
        """``int64[n]``: seconds of the day."""
        if self._seconds is None:
            self._seconds = self.clock // SECOND_MICROS
        return self._seconds


@cache
def _usual_calendar() -> np.ndarray:
    return _calendar(np.arange(*_CALENDAR))


def _calendar(days: np.ndarray) -> np.ndarray:
    if days.size and (days.min() < -719_528 or days.max() > 2_932_896):
        raise OverflowError("a date outside the years 0 to 9999")
    day = days.astype("M8[D]")
    month, year = day.astype("M8[M]"), day.astype("M8[Y]")
    fields = np.empty((days.size, 4), np.int32)
    fields[:, 0] = year.astype(np.int64) + 1970
    fields[:, 1] = (month - year).astype(np.int64) + 1
    fields[:, 2] = (day - month).astype(np.int64) + 1
    fields[:, 3] = (day - year).astype(np.int64) + 1
    return fields


@cache
def _numbers(size: int, width: int, zeros: bool = True) -> Table:
    """0 to ``size`` - 1, with leading zeros or with nothing before them."""
    before = b"0" if zeros else b"\0"
    return _table([(b"%d" % i).rjust(width, before) for i in range(size)], width)


@cache
def _names(names: tuple[str, ...], short: bool = False) -> Table:
    texts = [name[:3] if short else name for name in names]
    width = max(map(len, texts))
    return _table([name.encode().ljust(width, b"\0") for name in texts], width)


def _table(texts: list[bytes], width: int) -> Table:
    kind = np.dtype(f"u{width}") if width in (1, 2, 4, 8) else np.dtype(f"V{width}")
    return np.frombuffer(b"".join(texts), kind)


def _weekday(source: _DateParts) -> np.ndarray:
    return (source.days + 3) % 7


def _iso_week(source: _DateParts) -> np.ndarray:
    # ISO 8601: a week belongs to the year of its Thursday.
    thursday = source.days - _weekday(source) + 3
    return (_DateParts(thursday, None).fields[:, 3] - 1) // 7 + 1


def _half_day_hour(source: _DateParts) -> np.ndarray:
    return (source.seconds // 3600 + 11) % 12 + 1


def _epoch(source: _DateParts) -> tuple[Table, np.ndarray]:
    seconds = source.days * 86_400 + source.seconds
    digits = np.zeros((seconds.size, _EPOCH_BYTES), np.uint8)
    remaining = np.abs(seconds)
    for position in range(_EPOCH_BYTES - 1, 0, -1):
        remaining, digit = np.divmod(remaining, 10)
        digits[:, position] = digit + ord("0")
    leading = np.maximum.accumulate(digits[:, 1:-1] != ord("0"), axis=1)
    digits[:, 1:-1] *= leading
    digits[seconds < 0, 0] = ord("-")
    return digits.view(f"V{_EPOCH_BYTES}")[:, 0], np.arange(seconds.size)


_DIRECTIVES: dict[str, Callable[[_DateParts], tuple[Table, np.ndarray]]] = {
    "Y": lambda s: (_numbers(10_000, 4), s.fields[:, 0]),
    "y": lambda s: (_numbers(100, 2), s.fields[:, 0] % 100),
    "m": lambda s: (_numbers(13, 2), s.fields[:, 1]),
    "-m": lambda s: (_numbers(13, 2, False), s.fields[:, 1]),
    "d": lambda s: (_numbers(32, 2), s.fields[:, 2]),
    "-d": lambda s: (_numbers(32, 2, False), s.fields[:, 2]),
    "j": lambda s: (_numbers(367, 3), s.fields[:, 3]),
    "q": lambda s: (_numbers(5, 1), (s.fields[:, 1] + 2) // 3),
    "V": lambda s: (_numbers(54, 2), _iso_week(s)),
    "B": lambda s: (_names(MONTHS), s.fields[:, 1] - 1),
    "b": lambda s: (_names(MONTHS, True), s.fields[:, 1] - 1),
    "A": lambda s: (_names(WEEKDAYS), _weekday(s)),
    "a": lambda s: (_names(WEEKDAYS, True), _weekday(s)),
    "H": lambda s: (_numbers(24, 2), s.seconds // 3600),
    "-H": lambda s: (_numbers(24, 2, False), s.seconds // 3600),
    "I": lambda s: (_numbers(13, 2), _half_day_hour(s)),
    "-I": lambda s: (_numbers(13, 2, False), _half_day_hour(s)),
    "M": lambda s: (_numbers(60, 2), s.seconds // 60 % 60),
    "-M": lambda s: (_numbers(60, 2, False), s.seconds // 60 % 60),
    "S": lambda s: (_numbers(60, 2), s.seconds % 60),
    "-S": lambda s: (_numbers(60, 2, False), s.seconds % 60),
    "p": lambda s: (_names(("AM", "PM")), s.seconds // 43_200),
    "P": lambda s: (_names(("am", "pm")), s.seconds // 43_200),
    "L": lambda s: (_numbers(1000, 3), s.clock // 1000 % 1000),
    "f": lambda s: (_microseconds(s.clock % SECOND_MICROS), np.arange(s.clock.size)),
    "z": lambda s: (_names(("+0000",)), np.zeros(s.days.size, np.int8)),
    "s": _epoch,
}


def _microseconds(clock: np.ndarray) -> Table:
    thousands = _numbers(1000, 3)
    pair = np.empty((clock.size, 2), thousands.dtype)
    pair[:, 0], pair[:, 1] = thousands.take(clock // 1000), thousands.take(clock % 1000)
    return pair.view("V6")[:, 0]


DIRECTIVE_WIDTHS = {
    "Y": 4, "y": 2, "m": 2, "-m": 2, "d": 2, "-d": 2, "j": 3, "q": 1, "V": 2, "B": 9, "b": 3, "A": 9, "a": 3,
    "H": 2, "-H": 2, "I": 2, "-I": 2, "M": 2, "-M": 2, "S": 2, "-S": 2, "p": 2, "P": 2, "L": 3, "f": 6, "z": 5,
    "s": _EPOCH_BYTES,
}  # fmt: skip
"""Most characters of each directive."""

VARIABLE_WIDTH_DIRECTIVES = frozenset(
    {"B", "A", "s"} | {directive for directive in DIRECTIVE_WIDTHS if directive.startswith("-")}
)
"""Directives whose values differ in length."""


__all__ = [
    "DAY_MICROS",
    "MONTHS",
    "SECOND_MICROS",
    "WEEKDAYS",
    "DateFormatError",
    "FormatPart",
    "create_formatter",
    "format_days",
    "format_timestamps",
    "has_time",
    "is_injective",
    "max_length",
    "parse",
]  # fmt: skip

_DAY_TOKENS = {
    "YYYY": "Y", "YY": "y", "MMMM": "B", "MMM": "b", "MM": "m", "M": "-m", "DDDD": "j", "DD": "d", "D": "-d",
    "dddd": "A", "ddd": "a", "Q": "q", "WW": "V",
}  # fmt: skip
_CLOCK_TOKENS = {
    "HH": "H", "H": "-H", "hh": "I", "h": "-I", "mm": "M", "m": "-M", "ss": "S", "s": "-S", "SSSSSS": "f",
    "SSS": "L", "A": "p", "a": "P", "Z": "z", "ZZ": "z", "X": "s",
}  # fmt: skip
_TOKENS = {**_DAY_TOKENS, **_CLOCK_TOKENS}
_TOKEN = re.compile(r"\[[^\]]*\]|" + "|".join(sorted(_TOKENS, key=len, reverse=True)))
_DIRECTIVE = re.compile(r"%(-?[A-Za-z%])")
_KNOWN = frozenset(_TOKENS.values()) | {"%", "F", "T"}
_DAY_DIRECTIVES = frozenset(_DAY_TOKENS.values())


class DateFormatError(ValueError):
    """A date format that cannot be read."""


@lru_cache(maxsize=1024)
def parse(source: str) -> tuple[FormatPart, ...]:
    """A format as its parts. Raises `DateFormatError`."""
    parts = list(_strftime(source) if "%" in source else _tokens(source))
    if not any(kind != "text" for kind, _ in parts):
        raise DateFormatError(
            f'"{source}" does not contain any part of a date. Use a format such as YYYY-MM-DD or %Y-%m-%d.'
        )
    return tuple(parts)


def has_time(source: str) -> bool:
    """Return whether the format shows anything smaller than a day."""
    return any(kind == "clock" for kind, _ in parse(source))


def _strftime(source: str) -> Iterator[FormatPart]:
    source = source.replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S")
    end = 0
    for match in _DIRECTIVE.finditer(source):
        yield "text", source[end : match.start()]
        end = match.end()
        directive = match.group(1)
        if directive not in _KNOWN:
            raise DateFormatError(f"There is no date directive %{directive}.")
        yield ("text", "%") if directive == "%" else _part(directive)
    if "%" in source[end:]:
        raise DateFormatError(f'"{source}" ends with an incomplete % directive.')
    yield "text", source[end:]


def _tokens(source: str) -> Iterator[FormatPart]:
    end = 0
    for match in _TOKEN.finditer(source):
        yield "text", source[end : match.start()]
        end = match.end()
        token = match.group(0)
        yield ("text", token[1:-1]) if token.startswith("[") else _part(_TOKENS[token])
    yield "text", source[end:]


def _part(directive: str) -> FormatPart:
    return ("day" if directive in _DAY_DIRECTIVES else "clock"), directive


def max_length(source: str) -> int:
    """Return the length of the longest text that a format produces."""
    return sum(len(value) if kind == "text" else DIRECTIVE_WIDTHS[value] for kind, value in parse(source))


def is_injective(source: str, *, day: bool, clock: bool) -> bool:
    """Return whether any two days (``day``) and any two seconds (``clock``) are written differently."""
    parts = [part for part in parse(source) if part[1]]
    for (_, before), (kind, after) in pairwise(parts):
        # 1-11 and 11-1 must not both become 111.
        if (
            before in VARIABLE_WIDTH_DIRECTIVES - {"A", "B"}
            and not (kind == "text" and not after[0].isdigit())
            and after not in _LETTERS
        ):
            return False
    directives = {value.removeprefix("-") for kind, value in parts if kind != "text"}
    if "s" in directives:
        return True
    has_day = "Y" in directives and (
        "j" in directives or ("d" in directives and bool(directives & {"m", "b", "B"}))
    )
    has_hour = "H" in directives or ("I" in directives and bool(directives & {"p", "P"}))
    return (not day or has_day) and (not clock or (has_hour and {"M", "S"} <= directives))


_LETTERS = frozenset({"A", "a", "B", "b", "p", "P"})


@lru_cache(maxsize=1024)
def _cached_formatter(parts: tuple[FormatPart, ...]) -> DateFormatter:
    return DateFormatter(parts)


def create_formatter(source: str) -> Callable[[pa.Array], pa.Array]:
    """A function from a column of dates, timestamps or ISO texts to a column of texts in this format.

    Raises `DateFormatError` immediately if ``source`` is not a valid format.
    """
    writer = _cached_formatter(parse(source))

    def spell(column: pa.Array) -> pa.Array:
        if pa.types.is_dictionary(column.type):
            return pa.DictionaryArray.from_arrays(column.indices, spell(column.dictionary), safe=False)
        if pa.types.is_date32(column.type):
            days, clock = _integers(column, np.int32).astype(np.int64), None
        else:
            if column.type not in _MOMENTS:
                column = column.cast(_MOMENTS[0])
            days, clock = np.divmod(_integers(column, np.int64), DAY_MICROS)
        texts = writer.format(days, clock)
        if column.null_count:
            texts = pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.string()))
        return texts

    return spell


_MOMENTS = (pa.timestamp("us"), pa.timestamp("us", "UTC"))


def _integers(column: pa.Array, kind: type) -> np.ndarray:
    """Return the integers of a column of dates or timestamps; 0 for nulls."""
    numbers: np.ndarray = np.frombuffer(column.buffers()[1], kind)[
        column.offset : column.offset + len(column)
    ]
    return np.where(column.is_valid().to_numpy(False), numbers, 0) if column.null_count else numbers


def format_timestamps(moments: np.ndarray, parts: tuple[FormatPart, ...]) -> pa.Array:
    """``int64[n]`` of microseconds since 1970 as texts."""
    return _cached_formatter(parts).format(*np.divmod(moments, DAY_MICROS))


def format_days(low: int, high: int, parts: tuple[FormatPart, ...]) -> pa.Array:
    """The texts of the days ``low`` to ``high`` (days since 1970)."""
    return _cached_formatter(parts).format(np.arange(low, high + 1), None)

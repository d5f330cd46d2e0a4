"""Dates as text: formats in both spellings, read once, applied to columns through tables.

A format is written in ``YYYY-MM-DD`` tokens or in strftime's ``%Y-%m-%d``. Month and weekday names are English:
they belong to the engine, so that no processor's locale can change a byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

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

SECOND = 1_000_000
DAY = 86_400 * SECOND
"""Microseconds."""

Part = tuple[str, str]
"""("text", literal) or ("day" | "clock", directive)."""


class DateFormatError(ValueError):
    """A date format that cannot be read."""


@lru_cache(maxsize=1024)
def parse(source: str) -> tuple[Part, ...]:
    """A format as its parts. Raises `DateFormatError`."""
    parts = list(_strftime(source) if "%" in source else _tokens(source))
    if not any(kind != "text" for kind, _ in parts):
        raise DateFormatError(f'"{source}" names no part of a date; write YYYY-MM-DD or %Y-%m-%d.')
    return tuple(parts)


def needs_clock(source: str) -> bool:
    """Whether the format shows anything finer than a day."""
    return any(kind == "clock" for kind, _ in parse(source))


def _strftime(source: str):
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
        raise DateFormatError(f'"{source}" ends in a % that names nothing.')
    yield "text", source[end:]


def _tokens(source: str):
    end = 0
    for match in _TOKEN.finditer(source):
        yield "text", source[end : match.start()]
        end = match.end()
        token = match.group(0)
        yield ("text", token[1:-1]) if token.startswith("[") else _part(_TOKENS[token])
    yield "text", source[end:]


def _part(directive: str) -> Part:
    return ("day" if directive in _DAY_DIRECTIVES else "clock"), directive


def formatter(source: str) -> Callable[[pa.Array], pa.Array]:
    """A function from a column of dates, timestamps or ISO texts to a column of texts in this format.

    Raises `DateFormatError` at once where ``source`` cannot be read.
    """
    parts = parse(source)

    def spell(column: pa.Array) -> pa.Array:
        if pa.types.is_dictionary(column.type):
            return pa.DictionaryArray.from_arrays(column.indices, spell(column.dictionary), safe=False)
        moments = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None))).cast(pa.timestamp("us"))
        spelled = spell_moments(moments.cast(pa.int64()).fill_null(0).to_numpy(), parts)
        if column.null_count:
            spelled = pc.if_else(column.is_valid(), spelled, pa.scalar(None, pa.string()))
        return spelled

    return spell


def spell_moments(moments: np.ndarray, parts: tuple[Part, ...]) -> pa.Array:
    """``int64[n]`` of microseconds since 1970 as texts: each run of day parts by one table over the days that
    occur, each clock part by a table of its own."""
    days, clock = np.divmod(moments, DAY)
    pieces: list[pa.Array | str] = []
    run: list[Part] = []
    for kind, value in (*parts, ("end", "")):
        if kind in ("day", "text"):
            run.append((kind, value))
            continue
        pieces.extend(_day_run(days, run))
        run = []
        if kind == "clock":
            pieces.append(_clock(moments, clock, value))
    if len(pieces) == 1 and not isinstance(pieces[0], str):
        return pieces[0]
    return pc.binary_join_element_wise(*pieces, "")


def _day_run(days: np.ndarray, run: list[Part]) -> list[pa.Array | str]:
    if not any(kind == "day" for kind, _ in run):
        literal = "".join(value for _, value in run)
        return [literal] if literal else []
    low, high = (int(days.min()), int(days.max())) if days.size else (0, 0)
    if high - low <= max(4 * days.size, 1024):
        table = day_table(low, high, tuple(run))
        return [table.take(pa.array(days - low))]
    distinct, which = np.unique(days, return_inverse=True)
    return [_day_texts(distinct, tuple(run)).take(pa.array(which))]


def day_table(low: int, high: int, parts: tuple[Part, ...]) -> pa.Array:
    """The texts of the days ``low`` to ``high`` (days since 1970)."""
    return _day_texts(np.arange(low, high + 1), parts)


def _day_texts(days: np.ndarray, parts: tuple[Part, ...]) -> pa.Array:
    dates = pa.array(days.astype(np.int32)).cast(pa.date32())
    pieces = [value if kind == "text" else _day(dates, value) for kind, value in parts if value]
    return pc.binary_join_element_wise(*pieces, "") if len(pieces) > 1 else pieces[0]


def _day(dates: pa.Array, directive: str) -> pa.Array:
    match directive:
        case "Y":
            return _digits(pc.year(dates), 4)
        case "y":
            years = pc.year(dates)
            return _digits(pc.subtract(years, pc.multiply(pc.floor(pc.divide(years, 100)), 100)), 2)
        case "m" | "-m":
            return _digits(pc.month(dates), 2 if directive == "m" else 0)
        case "d" | "-d":
            return _digits(pc.day(dates), 2 if directive == "d" else 0)
        case "j":
            return _digits(pc.day_of_year(dates), 3)
        case "q":
            return _digits(pc.quarter(dates), 0)
        case "V":
            return _digits(pc.iso_week(dates), 2)
        case "B" | "b":
            names = [name if directive == "B" else name[:3] for name in MONTHS]
            return pa.array(names).take(pc.subtract(pc.month(dates), 1))
        case _:
            names = [name if directive == "A" else name[:3] for name in WEEKDAYS]
            return pa.array(names).take(pc.day_of_week(dates))


def _digits(numbers: pa.Array, width: int) -> pa.Array:
    spelled = numbers.cast(pa.int64()).cast(pa.string())
    return pc.utf8_lpad(spelled, width, "0") if width else spelled


def _clock(moments: np.ndarray, clock: np.ndarray, directive: str) -> pa.Array:
    seconds = clock // SECOND
    hours = seconds // 3600
    match directive:
        case "H" | "-H":
            return _numbered(24, directive == "H", hours)
        case "I" | "-I":
            return _numbered(13, directive == "I", (hours + 11) % 12 + 1)
        case "M" | "-M":
            return _numbered(60, directive == "M", seconds // 60 % 60)
        case "S" | "-S":
            return _numbered(60, directive == "S", seconds % 60)
        case "p" | "P":
            names = ["AM", "PM"] if directive == "p" else ["am", "pm"]
            return pa.array(names).take(pa.array(hours // 12))
        case "L":
            return pc.utf8_lpad(pa.array(clock % SECOND // 1000).cast(pa.string()), 3, "0")
        case "f":
            return pc.utf8_lpad(pa.array(clock % SECOND).cast(pa.string()), 6, "0")
        case "s":
            return pa.array(moments // SECOND).cast(pa.string())
        case _:
            return pa.array(["+0000"]).take(pa.array(np.zeros(moments.size, np.int8)))


def _numbered(size: int, zeros: bool, index: np.ndarray) -> pa.Array:
    return pa.array([f"{i:02d}" if zeros else str(i) for i in range(size)]).take(pa.array(index))

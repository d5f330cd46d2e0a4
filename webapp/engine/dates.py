"""Dates as text: formats in both spellings, read once, applied to columns through tables.

A format is written in ``YYYY-MM-DD`` tokens or in strftime's ``%Y-%m-%d``. Month and weekday names are English:
they belong to the engine, so that no processor's locale can change a byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine.date_spelling import DAY, MONTHS, RAGGED, SECOND, WEEKDAYS, WIDTHS, Part, Writer

__all__ = ["DAY", "MONTHS", "SECOND", "WEEKDAYS", "DateFormatError", "Part", "day_table", "formatter", "longest",
           "needs_clock", "parse", "spell_moments", "tells_apart"]  # fmt: skip

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
def parse(source: str) -> tuple[Part, ...]:
    """A format as its parts. Raises `DateFormatError`."""
    parts = list(_strftime(source) if "%" in source else _tokens(source))
    if not any(kind != "text" for kind, _ in parts):
        raise DateFormatError(f'"{source}" names no part of a date; write YYYY-MM-DD or %Y-%m-%d.')
    return tuple(parts)


def needs_clock(source: str) -> bool:
    """Whether the format shows anything finer than a day."""
    return any(kind == "clock" for kind, _ in parse(source))


def _strftime(source: str) -> Iterator[Part]:
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


def _tokens(source: str) -> Iterator[Part]:
    end = 0
    for match in _TOKEN.finditer(source):
        yield "text", source[end : match.start()]
        end = match.end()
        token = match.group(0)
        yield ("text", token[1:-1]) if token.startswith("[") else _part(_TOKENS[token])
    yield "text", source[end:]


def _part(directive: str) -> Part:
    return ("day" if directive in _DAY_DIRECTIVES else "clock"), directive


def longest(source: str) -> int:
    """Characters of the longest text a format makes."""
    return sum(len(value) if kind == "text" else WIDTHS[value] for kind, value in parse(source))


def tells_apart(source: str, *, day: bool, clock: bool) -> bool:
    """Whether the format writes different days (``day``) and seconds (``clock``) differently, whatever they are."""
    parts = [part for part in parse(source) if part[1]]
    for (_, before), (kind, after) in pairwise(parts):
        # 1-11 and 11-1 must not both become 111.
        if (
            before in RAGGED - {"A", "B"}
            and not (kind == "text" and not after[0].isdigit())
            and after not in _LETTERS
        ):
            return False
    shown = {value.removeprefix("-") for kind, value in parts if kind != "text"}
    if "s" in shown:
        return True
    knows_day = "Y" in shown and ("j" in shown or ("d" in shown and bool(shown & {"m", "b", "B"})))
    knows_hour = "H" in shown or ("I" in shown and bool(shown & {"p", "P"}))
    return (not day or knows_day) and (not clock or (knows_hour and {"M", "S"} <= shown))


_LETTERS = frozenset({"A", "a", "B", "b", "p", "P"})


@lru_cache(maxsize=1024)
def _writer(parts: tuple[Part, ...]) -> Writer:
    return Writer(parts)


def formatter(source: str) -> Callable[[pa.Array], pa.Array]:
    """A function from a column of dates, timestamps or ISO texts to a column of texts in this format.

    Raises `DateFormatError` at once where ``source`` cannot be read.
    """
    writer = _writer(parse(source))

    def spell(column: pa.Array) -> pa.Array:
        if pa.types.is_dictionary(column.type):
            return pa.DictionaryArray.from_arrays(column.indices, spell(column.dictionary), safe=False)
        if pa.types.is_date32(column.type):
            days, clock = _numbers(column, np.int32).astype(np.int64), None
        else:
            if column.type not in _MOMENTS:
                column = column.cast(_MOMENTS[0])
            days, clock = np.divmod(_numbers(column, np.int64), DAY)
        spelled = writer.spell(days, clock)
        if column.null_count:
            spelled = pc.if_else(column.is_valid(), spelled, pa.scalar(None, pa.string()))
        return spelled

    return spell


_MOMENTS = (pa.timestamp("us"), pa.timestamp("us", "UTC"))


def _numbers(column: pa.Array, kind: type) -> np.ndarray:
    """The integers a column of dates or timestamps is made of; 0 at nulls."""
    numbers: np.ndarray = np.frombuffer(column.buffers()[1], kind)[
        column.offset : column.offset + len(column)
    ]
    return np.where(column.is_valid().to_numpy(False), numbers, 0) if column.null_count else numbers


def spell_moments(moments: np.ndarray, parts: tuple[Part, ...]) -> pa.Array:
    """``int64[n]`` of microseconds since 1970 as texts."""
    return _writer(parts).spell(*np.divmod(moments, DAY))


def day_table(low: int, high: int, parts: tuple[Part, ...]) -> pa.Array:
    """The texts of the days ``low`` to ``high`` (days since 1970)."""
    return _writer(parts).spell(np.arange(low, high + 1), None)

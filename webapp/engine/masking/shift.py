"""`shift`: dates moved by whole days, as many for all dates of one person."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import dates, text
from webapp.engine.masking import columns
from webapp.engine.masking.keys import Aes

_MOST_DAYS: Final = 365
_FIRST, _LAST = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, in days since 1970
_NANOSECONDS: Final = 106_000  # days either way that fit
_UNITS: Final = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_READ: Final = {"Y": "Y", "y": "y", "m": "m", "-m": "m", "d": "d", "-d": "d", "B": "B", "b": "b", "j": "j", "H": "H",
                "-H": "H", "I": "I", "-I": "I", "M": "M", "-M": "M", "S": "S", "-S": "S", "p": "p", "f": "f",
                "a": "a", "A": "A"}  # fmt: skip
_ISO_DAY: Final = 10


class NoDate(ValueError):
    """Texts that are no dates; the first argument is how many."""


def readable(source: str) -> bool:
    """Whether texts in a format can be read, so that they can be shifted."""
    parts = dates.parse(source)
    named = {directive for kind, directive in parts if kind != "text"}
    whole = {"Y", "y"} & named and (({"m", "-m", "B", "b"} & named and {"d", "-d"} & named) or "j" in named)
    return bool(whole) and named <= _READ.keys()


def shifted(aes: Aes, column: pa.Array, person: pa.Array, source: str | None) -> pa.Array:
    """Dates, timestamps, or texts in the format ``source`` (ISO 8601, if None). Raises `NoDate`."""
    days = _days_of(aes, person)
    kind = column.type
    if pa.types.is_date32(kind):
        made = _moved(column.cast(pa.int32()), days, _FIRST, _LAST, 1, np.int32)
        return made.cast(pa.date32())
    if pa.types.is_timestamp(kind):
        unit = _UNITS[kind.unit]
        low, high = (-_NANOSECONDS, _NANOSECONDS) if kind.unit == "ns" else (_FIRST, _LAST)
        return _moved(column.cast(pa.int64()), days, low * unit, high * unit, unit, np.int64).cast(kind)
    if pa.types.is_string(kind):
        return _texts(column, days, source)
    raise NoDate(len(column) - column.null_count)


def _days_of(aes: Aes, person: pa.Array) -> np.ndarray:
    """``int64[n]``: -365 to 365 without 0. Rows without a person are one person."""
    names = text.decode(text.to_text(person)).fill_null("")
    coded = names.dictionary_encode()
    bits = columns.mac(aes, coded.dictionary)[:, 0]
    days = (bits % np.uint64(2 * _MOST_DAYS)).astype(np.int64) - _MOST_DAYS
    days += days >= 0
    return days[coded.indices.to_numpy()] if len(coded) else np.zeros(0, np.int64)


def _moved(column: pa.Array, days: np.ndarray, low: int, high: int, unit: int, kind: type) -> pa.Array:
    values = column.fill_null(0).to_numpy().astype(np.int64)
    steps = days * unit
    steps = np.where(
        (values + steps < low) | (values + steps > high), -steps, steps
    )  # the calendar has an end
    return pa.array((values + steps).astype(kind), mask=column.is_null().to_numpy(zero_copy_only=False))


def _texts(column: pa.Array, days: np.ndarray, source: str | None) -> pa.Array:
    blank = pc.equal(column, "").fill_null(False)
    column = pc.if_else(blank, pa.scalar(None, pa.string()), column)
    if source is None:
        made = _iso(column, days)
    else:
        parts = dates.parse(source)
        moments = columns.over_distinct(column, lambda some: _read(some, parts))
        steps = _UNITS["us"]
        moved = _moved(moments, days, _FIRST * steps, (_LAST + 1) * steps - 1, steps, np.int64)
        spelled = dates.spell_moments(moved.fill_null(0).to_numpy(), parts)
        made = pc.if_else(column.is_valid(), text.decode(spelled), pa.scalar(None, pa.string()))
    return pc.if_else(blank, "", made)


def _iso(column: pa.Array, days: np.ndarray) -> pa.Array:
    front, rest = pc.utf8_slice_codeunits(column, 0, _ISO_DAY), pc.utf8_slice_codeunits(column, _ISO_DAY)
    try:
        day = front.cast(pa.date32())
    except pa.ArrowInvalid:
        raise NoDate(sum(not _is_day(one) for one in front.to_pylist())) from None
    moved = _moved(day.cast(pa.int32()), days, _FIRST, _LAST, 1, np.int32).cast(pa.date32())
    return pc.binary_join_element_wise(moved.cast(pa.string()), rest, "")


def _is_day(front: str | None) -> bool:
    try:
        return front is None or bool(datetime.fromisoformat(front))
    except ValueError:
        return False


def _read(column: pa.Array, parts: tuple[dates.Part, ...]) -> pa.Array:
    """``int64[n]``: microseconds since 1970."""
    pattern = "".join(
        part.replace("%", "%%") if kind == "text" else f"%{_READ[part]}" for kind, part in parts
    )
    made, wrong = [], 0
    for one in column.to_pylist():
        try:
            read = datetime.strptime(one, pattern).replace(tzinfo=UTC)
        except ValueError:
            wrong += 1
            continue
        since = read - _EPOCH
        made.append((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)
    if wrong:
        raise NoDate(wrong)
    return pa.array(made, pa.int64())


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

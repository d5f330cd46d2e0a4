"""One value of an Edm type: checked, then as JSON or as a literal in a URL, in the writing of V2 or V4.

Sources: OData V2 "JSON Format" and "URI Conventions" (literals of primitive types); OData 4.01 JSON Format, section
7.1, and ABNF; MS-ODATA 2.2.2 (abstract types) for what V2 leaves open.
"""

from __future__ import annotations

import base64
import datetime as dt
import re
import uuid
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import quote

import orjson

from webapp.connectors import scalars
from webapp.connectors.odata_model import Enumeration, Version
from webapp.connectors.scalars import Misfit, shown
from webapp.connectors.shape import Column

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND: Final = dt.timedelta(milliseconds=1)
_DURATION: Final = re.compile(
    r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,12})?)S)?)?", re.ASCII
)  # fmt: skip
_SAFE: Final = 2**53 - 1  # RFC 8259, section 6


class NeedsStrings(Exception):
    """A number that a reader of doubles would change: the body is written again, with IEEE754Compatible strings."""


# --- Checked ------------------------------------------------------------------------------------------------


def checked(value: Any, column: Column, precision: int | None = None) -> Any:
    """A value as Python has it, of the Edm type in `column.declared`; fractions of a second cut to `precision` digits.
    Raises `Misfit`."""
    found = _CHECKS.get(column.declared, _other)(value, column)
    if precision is not None and isinstance(found, dt.datetime | dt.time):
        unit = 10 ** max(0, 6 - precision)
        return found.replace(microsecond=found.microsecond // unit * unit)
    return found


def _text(value: Any, column: Column) -> str:
    found = scalars.text(value, column)
    if column.max_length is not None and len(found) > column.max_length:
        raise Misfit(
            "too_long", f"there are {len(found):,} characters, at most {column.max_length:,} are taken"
        )
    return found


def _decimal(value: Any, column: Column) -> Decimal:
    """Rounded to the scale, as a database does it."""
    found = scalars.number(value, column)
    if column.scale is not None and -int(found.as_tuple().exponent) > column.scale:
        try:
            found = found.quantize(Decimal(1).scaleb(-column.scale), ROUND_HALF_UP)
        except InvalidOperation:
            raise Misfit("out_of_range", f"{shown(value)} has too many digits") from None
    return scalars.number(found, column)


def _whole(value: Any, column: Column) -> int:
    return scalars.integer(int(value) if isinstance(value, bool) else value, column)


def _duration(value: Any, column: Column) -> dt.timedelta:
    if isinstance(value, dt.timedelta):
        return value
    if isinstance(value, dt.time):
        return dt.timedelta(
            hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
        )
    try:
        if isinstance(value, str) and "P" in value:
            found = _DURATION.fullmatch(value.strip())
            if found is None or value.strip()[-1] in "PT":
                raise ValueError
            sign, days, hours, minutes, seconds = found.groups()
            length = dt.timedelta(
                int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0), seconds=float(seconds or 0)
            )
            return -length if sign else length
        return dt.timedelta(seconds=float(value))
    except (ValueError, TypeError, OverflowError):
        raise Misfit("wrong_type", f"{shown(value)} is not a duration, like PT1H30M") from None


def _time(value: Any, column: Column) -> dt.time:
    if isinstance(value, dt.timedelta) or (isinstance(value, str) and value.strip().startswith("PT")):
        length = _duration(value, column)
        if not dt.timedelta() <= length < dt.timedelta(1):
            raise Misfit("out_of_range", f"{shown(value)} is not a time of day")
        return (_EPOCH + length).time()
    return scalars.time(value, column)


def _other(value: Any, column: Column) -> Any:
    return value


_CHECKS: Final[Mapping[str, Callable[[Any, Column], Any]]] = {
    "Edm.String": _text, "Edm.Guid": scalars.identifier, "Edm.Boolean": scalars.boolean,
    "Edm.Binary": scalars.octets, "Edm.Byte": _whole, "Edm.SByte": _whole, "Edm.Int16": _whole,
    "Edm.Int32": _whole, "Edm.Int64": _whole, "Edm.Decimal": _decimal, "Edm.Double": scalars.real,
    "Edm.Single": scalars.real, "Edm.Date": scalars.day, "Edm.DateTime": scalars.local,
    "Edm.DateTimeOffset": scalars.instant, "Edm.Time": _time, "Edm.TimeOfDay": _time, "Edm.Duration": _duration,
}  # fmt: skip


def member(value: Any, enumeration: Enumeration) -> str:
    """A member's name, from its name or its value; of flags, several joined by a comma. Raises `Misfit`."""
    if isinstance(value, str) and not value.strip().lstrip("-").isdecimal():
        words = [one.strip() for one in value.split(",")] if enumeration.flags else [value.strip()]
        if all(one in enumeration.members for one in words):
            return ",".join(words)
    else:
        number = scalars.integer(value, Column("", "integer", ""))
        for name, one in enumeration.members.items():
            if one == number:
                return name
        names = [name for name, one in enumeration.members.items() if one and one & number == one]
        if enumeration.flags and names and sum({enumeration.members[one] for one in names}) == number:
            return ",".join(names)
    some = ", ".join(list(enumeration.members)[:10])
    raise Misfit("wrong_type", f"{shown(value)} is none of {some}")


# --- JSON ---------------------------------------------------------------------------------------------------


def as_json(value: Any, edm: str, version: Version, strings: bool = False) -> Any:
    """What `checked` gave, as JSON says it. `strings`: Int64 and Decimal of V4 as IEEE754Compatible asks. Raises
    `NeedsStrings`."""
    if version == "v2":
        return _v2(value, edm)
    if isinstance(value, Decimal):
        return _v4_decimal(value, strings)
    if isinstance(value, int) and not isinstance(value, bool):
        if edm == "Edm.Int64" and strings:
            return str(value)
        if abs(value) > _SAFE:
            raise NeedsStrings
        return value
    if isinstance(value, bytes):
        return base64.urlsafe_b64encode(value).decode()
    return _iso(value)


def _v4_decimal(value: Decimal, strings: bool) -> Any:
    if strings:
        return f"{value:f}"
    if Decimal(repr(float(value))) != value:
        raise NeedsStrings
    return orjson.Fragment(f"{value:f}")


def _v2(value: Any, edm: str) -> Any:
    if isinstance(value, dt.datetime):
        moment = value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value
        return f"/Date({(moment - _EPOCH) // _MILLISECOND}{'+0000' if edm == 'Edm.DateTimeOffset' else ''})/"
    if isinstance(value, dt.date):
        return _v2(dt.datetime.combine(value, dt.time()), edm)
    if isinstance(value, dt.time):
        return lasting(_duration(value, Column("", "time", edm)))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return _float(value)
    if edm == "Edm.Int64":
        return str(value)
    return _iso(value)


def _iso(value: Any) -> Any:
    """What both versions write alike."""
    if isinstance(value, dt.datetime):
        return instant(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return lasting(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return _float(value)
    return value


def _float(value: float) -> str:
    return {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(repr(value), repr(value))


def instant(value: dt.datetime) -> str:
    """2026-01-02T03:04:05Z, with a fraction only where there is one."""
    text = value.replace(tzinfo=None).isoformat()
    return (text.rstrip("0") if "." in text else text) + ("Z" if value.tzinfo is not None else "")


def lasting(value: dt.timedelta) -> str:
    """PT01H30M00.5S: two digits each, since some services of V2 read times in no other way."""
    sign, length = ("-", -value) if value < dt.timedelta() else ("", value)
    minutes, seconds = divmod(length.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{length.microseconds:06d}".rstrip("0") if length.microseconds else ""
    days = f"{length.days}D" if length.days else ""
    return f"{sign}P{days}T{hours:02d}H{minutes:02d}M{seconds:02d}{fraction}S"


# --- Literals in URLs ----------------------------------------------------------------------------------------


def literal(value: Any, edm: str, version: Version) -> str:
    """What `checked` gave, as a URL says it in a key predicate, percent-encoded."""
    return quote((_v2_literal if version == "v2" else _v4_literal)(value, edm), safe="'-._~:,")


def quoted(text: str) -> str:
    """A string literal: apostrophes are doubled."""
    return "'" + text.replace("'", "''") + "'"


def _v2_literal(value: Any, edm: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, uuid.UUID):
        return f"guid'{value}'"
    if isinstance(value, dt.datetime):
        return (
            f"datetimeoffset'{instant(value)}'"
            if edm == "Edm.DateTimeOffset"
            else f"datetime'{instant(value)}'"
        )
    if isinstance(value, dt.date):
        return f"datetime'{value.isoformat()}T00:00:00'"
    if isinstance(value, dt.time):
        return f"time'{lasting(_duration(value, Column('', 'time', edm)))}'"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, Decimal):
        return f"{value:f}M"
    if isinstance(value, float):
        return _float(value) + ("f" if edm == "Edm.Single" else "d")
    if isinstance(value, int):
        return f"{value}L" if edm == "Edm.Int64" else str(value)
    return quoted(str(value))


def _v4_literal(value: Any, edm: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.timedelta):
        return f"duration'{lasting(value)}'"
    if isinstance(value, bytes):
        return f"binary'{base64.urlsafe_b64encode(value).decode()}'"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, str):
        return quoted(value) if edm.startswith("Edm.") else f"{edm}{quoted(value)}"
    found = _iso(value)
    return found if isinstance(found, str) else str(found)

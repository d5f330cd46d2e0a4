"""Dates, times and moments among texts: how they are written, and where they lie."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.services.column_asked import definition
from webapp.services.inference import Found

_ISO: Final = r"^[0-9]{4}-[01][0-9]-[0-3][0-9]$"
_MOMENT: Final = (
    r"^[0-9]{4}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
    r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$"
)
_TIME: Final = r"^[0-2]?[0-9]:[0-5][0-9](:[0-5][0-9])?$"
_D: Final = r"[0-3]?[0-9]"
_Y: Final = r"[12][0-9]{3}"
# How dates are written, by what they look like: the pattern, then the ways to read it, first the likelier.
_WAYS: Final = (
    (rf"^{_D}\.{_D}\.{_Y}$", (("%d.%m.%Y", "DD.MM.YYYY"),)),
    (rf"^{_D}/{_D}/{_Y}$", (("%m/%d/%Y", "MM/DD/YYYY"), ("%d/%m/%Y", "DD/MM/YYYY"))),
    (rf"^{_D}-{_D}-{_Y}$", (("%d-%m-%Y", "DD-MM-YYYY"), ("%m-%d-%Y", "MM-DD-YYYY"))),
    (rf"^{_Y}/{_D}/{_D}$", (("%Y/%m/%d", "YYYY/MM/DD"),)),
    (rf"^{_D} [A-Za-z]{{3}} {_Y}$", (("%d %b %Y", "DD MMM YYYY"),)),
)
_CLOCK: Final = r"[ T,]+[0-2]?[0-9]:[0-5][0-9](:[0-5][0-9])?( ?[AaPp][Mm])?$"
_BIRTH: Final = re.compile(r"birth|born|\bdob\b")


def read(name: str, texts: pa.Array, words: str) -> Found | None:
    """A field for texts that are all dates, moments or times; None where they are not."""
    first = texts[0].as_py()
    if len(first) > 40 or not re.search(r"[0-9]", first):
        return None
    if _all(texts, _ISO):
        return _found(name, "date", texts, "%Y-%m-%d", None, words)
    if _all(texts, _MOMENT):
        return _moment(name, texts, first)
    if _all(texts, _TIME):
        form = "HH:mm:ss" if first.count(":") == 2 else "HH:mm"
        return Found(name, definition(name, "time", {"format": form}), "green", f"Times, written {form}.")
    for pattern, ways in _WAYS:
        if _all(texts, pattern):
            return _way(name, "date", texts, ways, "", words)
        if _all(texts, pattern.removesuffix("$") + _CLOCK):
            days = pc.struct_field(
                pc.extract_regex(texts, r"^(?P<day>[^ T,]+|[0-9]+ [A-Za-z]+ [0-9]+)"), "day"
            )
            clock = " hh:mm A" if first[-1:] in "mM" else " HH:mm:ss" if first.count(":") == 2 else " HH:mm"
            return _way(name, "datetime", days, ways, clock, words)
    return None


def digits(name: str, texts: pa.Array) -> Found | None:
    """A date of eight digits."""
    if not _all(texts, rf"^{_Y}[01][0-9][0-3][0-9]$"):
        return None
    return _found(name, "date", texts, "%Y%m%d", "YYYYMMDD", name.lower())


def _all(texts: pa.Array, pattern: str) -> bool:
    if not pc.all(pc.match_substring_regex(texts.slice(0, 100), pattern)).as_py():
        return False
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _way(name: str, kind: str, texts: pa.Array, ways: Any, clock: str, words: str) -> Found | None:
    fit = []
    for way, form in ways:
        days = pc.strptime(texts, format=way, unit="s", error_is_null=True)
        if not days.null_count:
            fit.append((way, form))
    if not fit:
        return None
    found = _found(name, kind, texts, fit[0][0], fit[0][1] + clock, words)
    if found is not None and len(fit) > 1:
        found.state = "yellow"
        found.reason = f"It may as well be written {fit[1][1]}; taken as {fit[0][1]}."
    return found


def _moment(name: str, texts: pa.Array, first: str) -> Found | None:
    days = pc.utf8_slice_codeunits(texts, 0, 10)
    clock = first[10:]
    form = "YYYY-MM-DD" + clock[0] + ("HH:mm:ss" if clock.count(":") >= 2 and len(clock) > 8 else "HH:mm")
    zone = re.search(r"(Z|[+-][0-9]{2}:?[0-9]{2})$", clock)
    part = re.search(r"\.([0-9]+)", clock)
    if part is not None:
        form += "." + ("SSS" if len(part[1]) <= 3 else "SSSSSS")
    form = form if zone is None else form + "Z"
    return _found(name, "datetime", days, "%Y-%m-%d", form, "")


def _found(name: str, kind: str, texts: pa.Array, way: str, form: str | None, words: str) -> Found | None:
    days = pc.strptime(texts, format=way, unit="s", error_is_null=True)
    if days.null_count:
        return None
    options: dict[str, Any] = {} if form is None else {"format": form}
    told = f", written {form}" if form else ""
    ends = pc.min_max(days).as_py()
    if len(texts) >= limits.INFER_FEW:
        low, high = around(ends["min"].date(), ends["max"].date())
        options = {"min": low, "max": high, **options}
        return Found(name, definition(name, kind, options), "green", f"From {low} to {high}{told}.")
    if _BIRTH.search(words):
        options = {"min": "-32000d", "max": "-6600d", **options}
    return Found(name, definition(name, kind, options), "green", f"{kind.capitalize()}s{told}.")


def around(first: date, last: date) -> tuple[str, str]:
    """The first day of the month of one date, and the last of that of another: no value itself."""
    after = (last.replace(day=28) + timedelta(days=4)).replace(day=1) if last < date(9999, 12, 1) else None
    end = date(9999, 12, 31) if after is None else after - timedelta(days=1)
    return first.replace(day=1).isoformat(), end.isoformat()

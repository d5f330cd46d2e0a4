"""Fields for columns of numbers: within what the type and the checks allow, in the range of the sample."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import Final

from webapp import limits
from webapp.engine import guess
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.imports.inference import checks, domains, texts
from webapp.imports.inference.evidence import ColumnEvidence, Field, definition, jsonable
from webapp.pushes.services.value_checks import limit_of

_BITS: Final = 32
_BYTE: Final = 8
_WIDE_BITS: Final = 64
_DIGITS: Final = (
    1_000  # PostgreSQL's NUMERIC has at most that many; a power of ten beyond some 10^6 overflows
)
_USUAL: Final = (Decimal(1), Decimal(1000))


def integer_(asked: ColumnEvidence) -> Field | None:
    """For a column of whole numbers; None where its checks leave no value."""
    column = asked.column
    limit = limit_of(replace(column, bits=column.bits or _BITS))
    assert limit is not None
    least, most = int(limit[0]), int(limit[1])
    edge = min(most, limits.MAX_INTEGER)
    ends = _range(asked, Decimal(max(least, -limits.MAX_INTEGER)), Decimal(edge), Decimal(1))
    if ends is None:
        return None
    low, high = int(ends[0]), int(ends[1])
    if asked.values or asked.rule.low is not None or asked.rule.high is not None or asked.unique:
        return _ranged(asked, low, high, least, most)
    words = domains.words_of(asked)
    told = [int(one) for one in domains.commented(asked) if one.lstrip("-").isdigit()]
    if told and all(least <= one <= most for one in told):
        return definition(column.name, "enum", {"values": told})
    if domains.is_flag(words, small=(column.bits or _BITS) <= _BYTE) and least <= 0:
        options = {"truthy": 1, "falsy": 0, "probability": domains.flag_share(words)}
        return definition(column.name, "boolean", options)
    if _MOMENT.search(words) and not _DURATION.search(words) and (column.bits or _BITS) >= _BITS:
        # MySQL's `int(11)` and `bigint(10)` hold seconds.
        wide = column.bits == _WIDE_BITS and not re.search(r"\(1?\d\)", column.declared)
        return definition(column.name, "epoch", {"unit": "milliseconds"} if wide else {})
    if _CODED.search(words):
        default = column.default or ""
        first = int(default) if re.fullmatch(r"\d", default) else 1
        asked.notes.append("The name says that numbers stand for something; which ones, it does not say.")
        return definition(column.name, "enum", {"values": sorted({first, 1, 2, 3})})
    if re.search(r"(^|_)(gender|sex)(_code|_id)?$", words) and least <= 1:
        asked.notes.append("The name says that numbers stand for something; which ones, it does not say.")
        return definition(column.name, "enum", {"values": [1, 2]})
    if re.search(r"(^|_)(status|state|type|kind)(_code)?$", words) and not _HTTP.search(words):
        asked.notes.append("The name says that numbers stand for something; which ones, it does not say.")
        return definition(column.name, "enum", {"values": [1, 2, 3]})
    named = domains.numbers(asked, float(max(least, -limits.MAX_INTEGER)), float(edge), 0)
    if named is None and re.search(r"(^|_)(class|category|group|grade|tier|phase|stage)(_code)?$", words):
        asked.notes.append("The name says that numbers stand for something; which ones, it does not say.")
        return definition(column.name, "enum", {"values": [1, 2, 3]})
    return named or _ranged(asked, low, high, least, most)


_HTTP: Final = re.compile(r"(^|_)(http|response)_(status|code)$")
_MOMENT: Final = re.compile(
    r"_at$|(^|_)(timestamp|created|updated|modified|clock)$|_timestamp$"
    r"|(^|_)(time|date)_(created|modified|updated|added)$|_(time|date|since|until|deadline|expires?|expiry|last_change)$|^expires$|^timestamp_"
    r"|(^|_)(last|next|first)_?(check|access|login|seen|run|update|visit|active|activity|change|clock)$"
)
_DURATION: Final = re.compile(
    r"(^|_)(response|run|running|processing|elapsed|wait|load|execution|cpu|total|idle|lead|cook|cooking|prep|delay|avg"
    r"|average|up|down|over|ping|query|spent|flight|travel|play|trip|life|live|grace|hold|work|half|full|part|real"
    r"|setup|expiry|cache|refresh|retry|check|max|min|mean)_time$"
)
_CODED: Final = re.compile(
    r"(^|_)(method|location|operator|v?align|valign|halign|format|policy|action|style|severity|scope|visibility|option"
    r"|eval_?type|algorithm|protocol|theme|layout)(_code)?$"
)


def _ranged(asked: ColumnEvidence, low: int, high: int, least: int, most: int) -> Field:
    """A number in a range, or the type of the name where that fits into it."""
    column = asked.column
    if not asked.unique and not asked.rule.excluded:
        meant = guess.type_of(column.name)
        if meant in ("age", "year", "http_status", "epoch") and not asked.values:
            named = definition(column.name, meant)
            if _fits_numbers(asked, named, max(least, low), min(most, high)):
                return named
    asked.guessed = _is_guess(asked)
    return definition(column.name, "number", {"min": low, "max": high}, unique=asked.unique)


def _is_guess(asked: ColumnEvidence) -> bool:
    """Whether neither values nor checks nor a key decide about a range."""
    rule = asked.rule
    return not (
        asked.values or asked.unique or asked.column.key or rule.low is not None or rule.high is not None
    )


def decimal_(asked: ColumnEvidence) -> Field | None:
    """For a column of decimals; None where its checks leave no value."""
    column = asked.column
    scale = 2 if column.scale is None else column.scale
    places = max(0, min(scale, limits.MAX_DECIMALS))
    step = Decimal(1).scaleb(-places)
    most = Decimal(limits.MAX_UNITS).scaleb(-places)
    if column.precision is not None:
        digits = min(column.precision - scale, _DIGITS)
        most = min(most, Decimal(10) ** digits - max(step, Decimal(10) ** -scale))
    ends = _range(asked, -most, most, step)
    if ends is None:
        return None
    if _is_guess(asked):
        named = domains.numbers(asked, float(-most), float(most), places)
        if named is not None:
            return named
        asked.guessed = True
    low, high = (jsonable(one) for one in ends)
    return definition(
        column.name, "number", {"min": low, "max": high, "decimals": places}, unique=asked.unique
    )


def float_(asked: ColumnEvidence) -> Field | None:
    """For a column of floating point numbers; None where its checks leave no value."""
    ends = _range(asked, Decimal(-(10**9)), Decimal(10**9), Decimal("0.01"))
    if ends is None:
        return None
    if _is_guess(asked):
        named = domains.numbers(asked, -1e9, 1e9, 6)
        if named is not None:
            return named
        asked.guessed = True
    low, high = (jsonable(one) for one in ends)
    return definition(
        asked.column.name, "number", {"min": low, "max": high, "decimals": 2}, unique=asked.unique
    )


def _range(
    asked: ColumnEvidence, least: Decimal, most: Decimal, step: Decimal
) -> tuple[Decimal, Decimal] | None:
    """Least and largest number: of the checks; within these, of the sample; else the usual ones."""
    rule = asked.rule
    low, high = least, most
    if (bound := checks.number(rule.low)) is not None:
        low = max(low, _onto(bound + (step if rule.low_open else 0), step, up=True))
    if (bound := checks.number(rule.high)) is not None:
        high = min(high, _onto(bound - (step if rule.high_open else 0), step, up=False))
    if low > high:
        asked.notes.append("Its checks leave no value.")
        return None
    numbers = [one for one in map(checks.number, asked.values) if one is not None]
    if asked.unique:
        first, last = (max(numbers, default=Decimal(0)) + step, high)
    elif len(numbers) >= limits.INFER_FEW:
        first, last = (
            texts.rounded(min(numbers), down=True),
            texts.rounded(max(numbers), down=False),
        )
    else:
        first, last = _USUAL
        if rule.low is not None and high >= low + _USUAL[1]:
            first, last = low, low + _USUAL[1]
    first, last = max(low, _onto(first, step, up=True)), min(high, _onto(last, step, up=False))
    if first > last:
        first, last = low, high
    if Decimal(0) in map(checks.number, rule.excluded) and first <= 0 <= last:
        first, last = (step, last) if last >= step else (first, -step)
    for number in filter(None, map(checks.number, rule.excluded)):
        if first <= number <= last:  # the longer part beside it
            if number - first > last - number:
                last = _onto(number - step, step, up=False)
            else:
                first = _onto(number + step, step, up=True)
    if first > last:
        asked.notes.append("Its checks leave no value.")
        return None
    return first, last


def _onto(value: Decimal, step: Decimal, up: bool) -> Decimal:
    units = value / step
    whole = units.to_integral_value("ROUND_CEILING" if up else "ROUND_FLOOR")
    return whole * step


def _fits_numbers(asked: ColumnEvidence, made: Field, low: int, high: int) -> bool:
    try:
        plan = compile_plan(parse([made]), asked.vocabulary)
    except SpecError:
        return False
    bounds = plan.layer.columns[asked.column.name].bounds(limits.DEFAULT_QUANTITY)
    return bounds is not None and low <= bounds[0] and bounds[1] <= high

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

_DEFAULT_BITS: Final = 32
_BYTE_BITS: Final = 8
_WIDE_BITS: Final = 64
_MAX_DIGITS: Final = (
    1_000  # PostgreSQL's NUMERIC has at most that many; a power of ten beyond some 10^6 overflows
)
_DEFAULT_RANGE: Final = (Decimal(1), Decimal(1000))


def integer_(evidence: ColumnEvidence) -> Field | None:
    """Return a field for a column of integers; None if its checks allow no value."""
    column = evidence.column
    limit = limit_of(replace(column, bits=column.bits or _DEFAULT_BITS))
    assert limit is not None
    minimum, maximum = int(limit[0]), int(limit[1])
    upper = min(maximum, limits.MAX_INTEGER)
    bounds = _range(evidence, Decimal(max(minimum, -limits.MAX_INTEGER)), Decimal(upper), Decimal(1))
    if bounds is None:
        return None
    low, high = int(bounds[0]), int(bounds[1])
    if evidence.values or evidence.rule.low is not None or evidence.rule.high is not None or evidence.unique:
        return _number_field(evidence, low, high, minimum, maximum)
    words = domains.words_of(evidence)
    codes = [int(code) for code in domains.comment_codes(evidence) if code.lstrip("-").isdigit()]
    if codes and all(minimum <= code <= maximum for code in codes):
        return definition(column.name, "enum", {"values": codes})
    if domains.is_flag(words, small=(column.bits or _DEFAULT_BITS) <= _BYTE_BITS) and minimum <= 0:
        options = {"truthy": 1, "falsy": 0, "probability": domains.flag_share(words)}
        return definition(column.name, "boolean", options)
    if (
        _EPOCH_NAMES.search(words)
        and not _DURATION_NAMES.search(words)
        and (column.bits or _DEFAULT_BITS) >= _DEFAULT_BITS
    ):
        # MySQL's `int(11)` and `bigint(10)` hold seconds.
        is_wide = column.bits == _WIDE_BITS and not re.search(r"\(1?\d\)", column.declared)
        return definition(column.name, "epoch", {"unit": "milliseconds"} if is_wide else {})
    if _CODE_NAMES.search(words):
        default = column.default or ""
        first = int(default) if re.fullmatch(r"\d", default) else 1
        evidence.notes.append("The name says that numbers stand for something; which ones, it does not say.")
        return definition(column.name, "enum", {"values": sorted({first, 1, 2, 3})})
    if re.search(r"(^|_)(gender|sex)(_code|_id)?$", words) and minimum <= 1:
        evidence.notes.append("The name says that numbers stand for something; which ones, it does not say.")
        return definition(column.name, "enum", {"values": [1, 2]})
    if re.search(r"(^|_)(status|state|type|kind)(_code)?$", words) and not _HTTP.search(words):
        evidence.notes.append("The name says that numbers stand for something; which ones, it does not say.")
        return definition(column.name, "enum", {"values": [1, 2, 3]})
    named = domains.numbers(evidence, float(max(minimum, -limits.MAX_INTEGER)), float(upper), 0)
    if named is None and re.search(r"(^|_)(class|category|group|grade|tier|phase|stage)(_code)?$", words):
        evidence.notes.append("The name says that numbers stand for something; which ones, it does not say.")
        return definition(column.name, "enum", {"values": [1, 2, 3]})
    return named or _number_field(evidence, low, high, minimum, maximum)


_HTTP: Final = re.compile(r"(^|_)(http|response)_(status|code)$")
_EPOCH_NAMES: Final = re.compile(
    r"_at$|(^|_)(timestamp|created|updated|modified|clock)$|_timestamp$"
    r"|(^|_)(time|date)_(created|modified|updated|added)$|_(time|date|since|until|deadline|expires?|expiry|last_change)$|^expires$|^timestamp_"
    r"|(^|_)(last|next|first)_?(check|access|login|seen|run|update|visit|active|activity|change|clock)$"
)
_DURATION_NAMES: Final = re.compile(
    r"(^|_)(response|run|running|processing|elapsed|wait|load|execution|cpu|total|idle|lead|cook|cooking|prep|delay|avg"
    r"|average|up|down|over|ping|query|spent|flight|travel|play|trip|life|live|grace|hold|work|half|full|part|real"
    r"|setup|expiry|cache|refresh|retry|check|max|min|mean)_time$"
)
_CODE_NAMES: Final = re.compile(
    r"(^|_)(method|location|operator|v?align|valign|halign|format|policy|action|style|severity|scope|visibility|option"
    r"|eval_?type|algorithm|protocol|theme|layout)(_code)?$"
)


def _number_field(evidence: ColumnEvidence, low: int, high: int, minimum: int, maximum: int) -> Field:
    """Return a number in a range, or a field of the type that the name suggests if its values are in the range."""
    column = evidence.column
    if not evidence.unique and not evidence.rule.excluded:
        named_type = guess.type_of(column.name)
        if named_type in ("age", "year", "http_status", "epoch") and not evidence.values:
            named = definition(column.name, named_type)
            if _is_within(evidence, named, max(minimum, low), min(maximum, high)):
                return named
    evidence.guessed = _is_guess(evidence)
    return definition(column.name, "number", {"min": low, "max": high}, unique=evidence.unique)


def _is_guess(evidence: ColumnEvidence) -> bool:
    """Return whether a range is a guess: no values, checks or key determine it."""
    rule = evidence.rule
    return not (
        evidence.values
        or evidence.unique
        or evidence.column.key
        or rule.low is not None
        or rule.high is not None
    )


def decimal_(evidence: ColumnEvidence) -> Field | None:
    """Return a field for a column of decimals; None if its checks allow no value."""
    column = evidence.column
    scale = 2 if column.scale is None else column.scale
    places = max(0, min(scale, limits.MAX_DECIMALS))
    step = Decimal(1).scaleb(-places)
    maximum = Decimal(limits.MAX_UNITS).scaleb(-places)
    if column.precision is not None:
        digits = min(column.precision - scale, _MAX_DIGITS)
        maximum = min(maximum, Decimal(10) ** digits - max(step, Decimal(10) ** -scale))
    bounds = _range(evidence, -maximum, maximum, step)
    if bounds is None:
        return None
    if _is_guess(evidence):
        named = domains.numbers(evidence, float(-maximum), float(maximum), places)
        if named is not None:
            return named
        evidence.guessed = True
    low, high = (jsonable(bound) for bound in bounds)
    return definition(
        column.name, "number", {"min": low, "max": high, "decimals": places}, unique=evidence.unique
    )


def float_(evidence: ColumnEvidence) -> Field | None:
    """Return a field for a column of floating point numbers; None if its checks allow no value."""
    bounds = _range(evidence, Decimal(-(10**9)), Decimal(10**9), Decimal("0.01"))
    if bounds is None:
        return None
    if _is_guess(evidence):
        named = domains.numbers(evidence, -1e9, 1e9, 6)
        if named is not None:
            return named
        evidence.guessed = True
    low, high = (jsonable(bound) for bound in bounds)
    return definition(
        evidence.column.name, "number", {"min": low, "max": high, "decimals": 2}, unique=evidence.unique
    )


def _range(
    evidence: ColumnEvidence, minimum: Decimal, maximum: Decimal, step: Decimal
) -> tuple[Decimal, Decimal] | None:
    """Return the minimum and maximum: those of the checks; within these, those of the sample; else the default ones."""
    rule = evidence.rule
    low, high = minimum, maximum
    if (bound := checks.number(rule.low)) is not None:
        low = max(low, _round_to_step(bound + (step if rule.low_open else 0), step, up=True))
    if (bound := checks.number(rule.high)) is not None:
        high = min(high, _round_to_step(bound - (step if rule.high_open else 0), step, up=False))
    if low > high:
        evidence.notes.append("Its checks leave no value.")
        return None
    numbers = [decimal for decimal in map(checks.number, evidence.values) if decimal is not None]
    if evidence.unique:
        first, last = (max(numbers, default=Decimal(0)) + step, high)
    elif len(numbers) >= limits.INFER_FEW:
        first, last = (
            texts.rounded(min(numbers), down=True),
            texts.rounded(max(numbers), down=False),
        )
    else:
        first, last = _DEFAULT_RANGE
        if rule.low is not None and high >= low + _DEFAULT_RANGE[1]:
            first, last = low, low + _DEFAULT_RANGE[1]
    first, last = (
        max(low, _round_to_step(first, step, up=True)),
        min(high, _round_to_step(last, step, up=False)),
    )
    if first > last:
        first, last = low, high
    if Decimal(0) in map(checks.number, rule.excluded) and first <= 0 <= last:
        first, last = (step, last) if last >= step else (first, -step)
    for number in filter(None, map(checks.number, rule.excluded)):
        if first <= number <= last:  # keep the longer part next to it
            if number - first > last - number:
                last = _round_to_step(number - step, step, up=False)
            else:
                first = _round_to_step(number + step, step, up=True)
    if first > last:
        evidence.notes.append("Its checks leave no value.")
        return None
    return first, last


def _round_to_step(value: Decimal, step: Decimal, up: bool) -> Decimal:
    units = value / step
    count = units.to_integral_value("ROUND_CEILING" if up else "ROUND_FLOOR")
    return count * step


def _is_within(evidence: ColumnEvidence, field: Field, low: int, high: int) -> bool:
    try:
        plan = compile_plan(parse([field]), evidence.vocabulary)
    except SpecError:
        return False
    bounds = plan.layer.columns[evidence.column.name].bounds(limits.DEFAULT_QUANTITY)
    return bounds is not None and low <= bounds[0] and bounds[1] <= high

"""Fields for columns of numbers: inside what the type and the checks allow, about where the sample lies."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Final

from webapp import limits
from webapp.engine import guess
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.imports.inference import checks, texts
from webapp.imports.inference.evidence import Asked, Field, definition, jsonable
from webapp.pushes.services.value_checks import limit_of

_BITS: Final = 32
_USUAL: Final = (Decimal(1), Decimal(1000))


def integer_(asked: Asked) -> Field | None:
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
    if not asked.unique and not asked.rule.excluded:
        meant = guess.type_of(column.name)
        if meant in ("age", "year", "http_status", "epoch") and not asked.values:
            named = definition(column.name, meant)
            if _fits_numbers(asked, named, max(least, low), min(most, high)):
                return named
    return definition(column.name, "number", {"min": low, "max": high}, unique=asked.unique)


def decimal_(asked: Asked) -> Field | None:
    """For a column of decimals; None where its checks leave no value."""
    column = asked.column
    scale = 2 if column.scale is None else column.scale
    places = max(0, min(scale, limits.MAX_DECIMALS))
    step = Decimal(1).scaleb(-places)
    most = Decimal(limits.MAX_UNITS).scaleb(-places)
    if column.precision is not None:
        most = min(most, Decimal(10) ** (column.precision - scale) - max(step, Decimal(10) ** -scale))
    ends = _range(asked, -most, most, step)
    if ends is None:
        return None
    low, high = (jsonable(one) for one in ends)
    return definition(
        column.name, "number", {"min": low, "max": high, "decimals": places}, unique=asked.unique
    )


def float_(asked: Asked) -> Field | None:
    """For a column of floating point numbers; None where its checks leave no value."""
    ends = _range(asked, Decimal(-(10**9)), Decimal(10**9), Decimal("0.01"))
    if ends is None:
        return None
    low, high = (jsonable(one) for one in ends)
    return definition(
        asked.column.name, "number", {"min": low, "max": high, "decimals": 2}, unique=asked.unique
    )


def _range(asked: Asked, least: Decimal, most: Decimal, step: Decimal) -> tuple[Decimal, Decimal] | None:
    """Least and largest number: as the checks say, inside them as the sample lies, else what is usual."""
    rule = asked.rule
    low, high = least, most
    if (bound := checks.number(rule.low)) is not None:
        low = max(low, _onto(bound + (step if rule.low_open else 0), step, up=True))
    if (bound := checks.number(rule.high)) is not None:
        high = min(high, _onto(bound - (step if rule.high_open else 0), step, up=False))
    if low > high:
        asked.notes.append("Its checks leave no value.")
        return None
    numbers = [one for one in map(checks.number, asked.values) if one is not None and one.is_finite()]
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


def _fits_numbers(asked: Asked, made: Field, low: int, high: int) -> bool:
    try:
        plan = compile_plan(parse([made]), asked.vocabulary)
    except SpecError:
        return False
    bounds = plan.layer.columns[asked.column.name].bounds(limits.DEFAULT_QUANTITY)
    return bounds is not None and low <= bounds[0] and bounds[1] <= high

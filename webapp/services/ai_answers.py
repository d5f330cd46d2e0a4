"""Reading what a model wrote: values by the numbers of their rows, whatever stands around them.

Models fence JSON, think aloud before it, break off in its middle, leave rows out, add some, and mix up their order.
Each row counts by itself: one that is there and fits is taken, whatever is wrong with the rest.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from webapp import limits

_THOUGHT: Final = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.S | re.I)
_BEGINS: Final = re.compile(r"[{\[]")
_DECODER: Final = json.JSONDecoder(strict=False)
_TRUE, _FALSE = frozenset({"true", "yes"}), frozenset({"false", "no"})
_INT64: Final = range(-(1 << 63), 1 << 63)


class Unfit(ValueError):
    """A value does not fit what was asked for; says why, without the value."""


def documents(text: str) -> Iterator[Any]:
    """Every JSON object and array in a text, outermost ones first to last. Of one that breaks off, those inside it."""
    text = _THOUGHT.sub(" ", text)
    place, broken = 0, 0
    while (found := _BEGINS.search(text, place)) and broken < limits.AI_BROKEN:
        try:
            value, place = _DECODER.raw_decode(text, found.start())
            yield value
        except (ValueError, RecursionError):
            broken += 1
            place = found.start() + 1


def rows_of(text: str, count: int) -> dict[int, Any]:
    """The values of rows 1 to `count` by their numbers; those that are missing are left out. The first of two with one
    number counts. Without numbers, a list of exactly so many values is taken in its order."""
    found: dict[int, Any] = {}
    plain: list[Any] | None = None
    for document in documents(text):
        pending = [document]
        while pending:
            one = pending.pop()
            if isinstance(one, Mapping):
                number = _number(one.get("id"))
                if number is not None and "value" in one:
                    if 1 <= number <= count:
                        found.setdefault(number, one["value"])
                else:
                    pending.extend(reversed(list(one.values())))
            elif isinstance(one, list):
                if len(one) == count and not any(isinstance(item, dict | list) for item in one):
                    plain = plain or one
                pending.extend(item for item in reversed(one) if isinstance(item, dict | list))
    if not found and plain is not None:
        return dict(enumerate(plain, 1))
    return found


def _number(given: Any) -> int | None:
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    if isinstance(given, str) and re.fullmatch(r"\d{1,9}", given.strip()):
        return int(given)
    return None


def checked(value: Any, said: Mapping[str, Any]) -> str:
    """A value as text, where it fits what a field says of its answer (`Question.said`). Raises `Unfit`."""
    if value is None or isinstance(value, dict | list):
        raise Unfit("it is no single value")
    return _CHECKS[said["answer"]](value, said)


def _text(value: Any, said: Mapping[str, Any]) -> str:
    made = _plain(value)
    most = said["max_length"] or limits.AI_TEXT_CHARS
    if not made:
        raise Unfit("it is empty")
    if len(made) > most:
        raise Unfit(f"it is longer than {most:,} characters")
    return made


def _plain(value: Any) -> str:
    """A text without control characters and lone surrogates, of which databases and files take none."""
    spelled = str(value).lower() if isinstance(value, bool) else str(value)
    kept = "".join(sign for sign in spelled if sign in "\n\t" or (ord(sign) >= 32 and ord(sign) != 127))
    return kept.encode("utf-8", "ignore").decode().strip()


def _choice(value: Any, said: Mapping[str, Any]) -> str:
    wanted = _plain(value)
    if wanted in said["choices"]:
        return wanted
    alike = [one for one in said["choices"] if one.casefold().strip() == wanted.casefold().rstrip(".")]
    if len(alike) != 1:
        raise Unfit("it is none of the choices")
    return str(alike[0])


def _integer(value: Any, said: Mapping[str, Any]) -> str:
    number = _decimal_of(value, "a whole number")
    if number != number.to_integral_value() or int(number) not in _INT64:
        raise Unfit("it is no whole number")
    return str(int(number))


def _decimal(value: Any, said: Mapping[str, Any]) -> str:
    number = _decimal_of(value, "a number")
    places = said["decimals"]
    if abs(number).scaleb(places) > limits.MAX_UNITS:
        raise Unfit("it is too large")
    return format(number.quantize(Decimal(1).scaleb(-places)), "f")


def _decimal_of(value: Any, what: str) -> Decimal:
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise Unfit(f"it is not {what}")
    try:
        number = Decimal(str(value).strip()[:100])
    except InvalidOperation:
        raise Unfit(f"it is not {what}") from None
    if not number.is_finite() or number.adjusted() > limits.AI_DIGITS:
        raise Unfit(f"it is not {what} of ours")
    return number


def _boolean(value: Any, said: Mapping[str, Any]) -> str:
    word = str(value).strip().casefold()
    if word in _TRUE:
        return "true"
    if word in _FALSE:
        return "false"
    raise Unfit("it is neither true nor false")


def _date(value: Any, said: Mapping[str, Any]) -> str:
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)([T ].*)?", str(value).strip())
    try:
        return date.fromisoformat(found[1] if found else "").isoformat()
    except ValueError:
        raise Unfit("it is no date as YYYY-MM-DD") from None


_CHECKS: Final = {
    "text": _text,
    "choice": _choice,
    "integer": _integer,
    "decimal": _decimal,
    "boolean": _boolean,
    "date": _date,
}

"""Every option does what it says or is refused; none is taken and left lying."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any

import orjson
import pytest

from tests.engine.catalogue_cases import REQUIRED, TOGETHER, _named, bound, window
from webapp.engine.errors import SpecError
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import REGISTRY

every_type = pytest.mark.parametrize("kind", REGISTRY, ids=lambda kind: kind.name)

TRIED: tuple[Any, ...] = (
    *(
        3,
        40,
        2001,
        0.25,
        250,
        "2min",
        "3h",
        "10:00",
        "2021-02-03",
        "2023-04-05T06:07:08Z",
        "x#",
        "amount",
        "EU",
    ),
    *({"min": 2, "max": 4}, ["lower", "digits"], [0, 10, 100]),
)
"""What is written where an option's schema names no value."""

BESIDE: dict[str, dict[str, Any]] = {
    "mean": {"distribution": "normal"},
    "stddev": {"distribution": "normal"},
    "alpha": {"distribution": "pareto"},
    "lambda": {"distribution": "exponential"},
    "halflife_days": {"distribution": "recent_bias"},
    "edges": {"distribution": "histogram", "weights": [3, 1]},
    "weights": {"distribution": "histogram", "edges": [0, 10]},
    "count": {"array": True},
    "exponent": {"distribution": "zipf"},
    "roots": {"template_id": "self", "field": "source"},
    "decimals": {"function": "avg"},
}
"""Options that only apply to certain values of other options."""

CHOSEN: dict[tuple[str, str], Any] = {
    ("number", "weights"): [1],
    ("float", "weights"): [1],
    ("enum", "weights"): [5, 3, 2],
    ("counter", "end"): 30,
    ("date_relative", "min"): "8d",
    ("date_relative", "max"): "9d",
    ("date_relative", "unit"): "weeks",
    ("nested", "count"): 5,
    ("nato_phonetic", "count"): 5,
    ("slug", "field"): "moment",
    ("random_string", "max"): 40,
    ("mapped", "field"): "source",
    ("ai", "prompt"): "Who is {{source}}?",
    ("mapped", "map"): {"open": "yes", "paid": "no"},
    **{(kind, "lambda"): 0.25 for kind in ("number", "float", "exponential")},
    **{(kind, "halflife_days"): 400 for kind in ("date", "datetime")},
    ("time_series", "format"): "YYYY-MM-DD HH:mm:ss",
}

LOCALES = {"romanized": "ru_RU"}
"""Options that only apply to locales that are not written in Latin letters."""

ELSEWHERE = {
    "reference": {"differs_from"},  # wants a second reference to the same template (test_differing.py)
    "uuid": {
        "primaryKey"
    },  # rows are the same: it forbids blanks and fixed values (test_blocks.py, test_identity.py)
    "template": {
        "foreign_key",
        "max_depth",
    },  # both want templates that reach themselves (test_templates_inside.py)
    "date_relative": {"offset"},  # instead of min and max (test_offsets.py)
    "case": {"else_formula"},  # instead of else
    "null": {"value"},  # may be written, as nothing
    # What these do shows only with an answer from outside (test_outside.py, tests/services/test_fetched.py).
    "foreign_key": {"connection_id", "table", "column", "filter", "kind", "on_empty", "default", "decimals"},
    "api_response": {
        "connection_id",
        "path",
        "extract",
        "kind",
        "on_error",
        "on_empty",
        "default",
        "decimals",
    },
    "ai": {
        "connection_id",
        "prompt",
        "max_length",
        "examples",
        "temperature",
        "same_for_equal_prompts",
        "allow_sensitive",
        "on_error",
        "default",
        "decimals",
    },  # (fields/test_ai.py, tests/services/test_ai_values.py)
    "dataset_column": {
        "file",
        "column",
        "mode",
        "key",
        "key_column",
        "sheet",
        "kind",
        "on_empty",
        "default",
        "decimals",
    },
    "db_response": {"connection_id", "query", "column", "kind", "on_empty", "default", "decimals"},
}
"""Options that other tests show to be honoured."""


def digest(kind: type[FieldType], options: dict[str, Any], locale: str | None = None) -> bytes | None:
    """Return what 300 rows and their schema come to; None where the options are rejected."""
    try:
        source = bound({"name": "it", "type": kind.name, "options": options, "locale": locale})
    except SpecError:
        return None
    declared = source.schema.field("it")
    values = window(source, 0, 300).to_pylist()
    return orjson.dumps([str(declared.type), values], default=str)


def tried(kind: type[FieldType], option: str) -> Iterator[Any]:
    """Values for an option: those that its schema names first."""
    if (kind.name, option) in CHOSEN:
        yield CHOSEN[kind.name, option]
        return
    schema = kind.Options.model_json_schema(by_alias=True)
    yield from _named(schema["properties"][option], schema)
    yield from TRIED


def beside(kind: type[FieldType], option: str, value: Any) -> dict[str, Any]:
    """What the option needs of the others."""
    if (kind.name, option) in TOGETHER:
        return TOGETHER[kind.name, option]
    known = kind.Options.model_json_schema(by_alias=True).get("properties", {})
    found = TOGETHER.get((kind.name, f"{option}={value}"), BESIDE.get(option, {}))
    return {name: values for name, values in found.items() if name in known}


@cache
def telling(kind: type[FieldType]) -> dict[str, tuple[Any, dict[str, Any]]]:
    """For each option, return a value that changes the rows, and the other options that it needs."""
    plain, found = REQUIRED.get(kind.name, {}), {}
    for option in kind.Options.model_json_schema(by_alias=True).get("properties", {}):
        for value in tried(kind, option):
            others = {**plain, **beside(kind, option, value)}
            locale = LOCALES.get(option)
            result = digest(kind, {**others, option: value}, locale)
            if result is not None and result != digest(kind, others, locale):
                found[option] = (value, beside(kind, option, value))
                break
    return found


@every_type
def test_every_option_changes_something(kind: type[FieldType]):
    options = set(kind.Options.model_json_schema(by_alias=True).get("properties", {}))
    silent = options - set(telling(kind)) - set(REQUIRED.get(kind.name, {}))
    assert silent - ELSEWHERE.get(kind.name, set()) == set()


@every_type
def test_two_options_are_both_supported_or_rejected(kind: type[FieldType]):
    plain, ignored = REQUIRED.get(kind.name, {}), []
    for (item, (first, near)), (other, (second, far)) in combinations(telling(kind).items(), 2):
        both = {**plain, **near, **far, item: first, other: second}
        locale = LOCALES.get(item) or LOCALES.get(other)
        result = digest(kind, both, locale)
        if result is None:
            continue
        for option in (item, other):
            without = {name: value for name, value in both.items() if name != option}
            without |= {option: plain[option]} if option in plain else {}
            if result == digest(kind, without, locale):
                ignored.append((option, both))
    assert ignored == []

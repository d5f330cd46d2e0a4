"""One template for every field type and every choice its options offer, and what its rows are in short.

Run as a program it prints the digests of all of them as JSON, for comparison with another process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from webapp.engine import external_values, groups, masking, text
from webapp.engine.blocks import Block, BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.plan import compile_plan
from webapp.engine.relations.related_plans import RelatedTemplate, TemplateLibrary
from webapp.engine.source_data import SourceTable
from webapp.engine.spec import parse
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import REGISTRY

NOW = datetime(2026, 2, 28, 21, 5, 9, 120_000, tzinfo=UTC)

REQUIRED: dict[str, dict[str, Any]] = {
    "constant": {"value": "x"},
    "derived": {"value": "{{source}}-{{source | upper}}"},
    "formula": {"expression": "upper(source) + text(row % 7)"},
    "case": {
        "cases": [
            {"when": "source == 'open'", "then": "a"},
            {"when": "row % 2 == 0", "then_formula": "source"},
        ],
        "else": "rest",
    },
    "nested": {"fields": [{"name": "n", "type": "number"}, {"name": "s", "type": "uuid"}]},
    "json": {"fields": [{"name": "n", "type": "number"}, {"name": "s", "type": "uuid"}]},
    "array": {"of": {"type": "number"}},
    "template_string": {"value": "{{source}}, {{source | upper}}"},
    "weighted_list": {"values": ["a", "b", "c"], "weights": [5, 3, 2]},
    "custom": {"values": ["a", "b", "c"]},
    "enum": {"values": ["a", "b", "c"]},
    "list_sequential": {"values": ["a", "b", "c"]},
    "mapped": {"field": "source", "map": {"open": 1, "paid": 2}, "default": 3},
    "regexp": {"string": r"[A-Z]{2}\d{4}"},
    "cartesian": {"lists": [["red", "blue"], ["small", "medium", "large"]]},
    "previous": {"field": "source", "default": "none"},
    "running_total": {"field": "amount"},
    "date_relative": {"field": "moment", "min": "1w", "max": "3w"},
    "reference": {"template_id": "parents", "field": "id"},
    "aggregate": {"template_id": "children", "field": "amount"},
    "template": {"template_id": "parents"},
    "foreign_key": {"connection_id": "con", "table": "customers", "column": "id"},
    "dataset_column": {"file": "people.csv", "column": "name"},
    "db_response": {"connection_id": "con", "query": "select name from customers"},
    "api_response": {"connection_id": "con", "path": "/customers/{{source}}", "extract": "$.name"},
    "ai": {"prompt": "What becomes of {{source}}?", "same_for_equal_prompts": True},
    "faker": {"method": "sentence"},
}
"""Options without which a type says nothing."""

_OUTSIDE = ("foreign_key", "db_response", "dataset_column")
TOGETHER: dict[tuple[str, str], dict[str, Any]] = {
    ("enum", "weights"): {"values": ["open", "paid", "cancelled"]},
    ("weighted_list", "values"): {"weights": [70, 25, 5]},
    ("weighted_list", "weights"): {"values": ["open", "paid", "cancelled"]},
    ("date_relative", "unit=months"): {"min": "1mo", "max": "3mo"},
    ("date_relative", "unit=years"): {"min": "1y", "max": "3y"},
    ("reference", "layout"): {"cardinality": {"min": 0, "max": 4}, "template_id": "many"},
    ("aggregate", "function=any"): {"field": "open"},
    **{(kind, "default"): {"on_empty": "default", "column": "open"} for kind in _OUTSIDE},
    ("api_response", "default"): {"on_empty": "default", "extract": "$.open"},
    **{("api_response", f"kind={kind}"): {"extract": f"$.{kind}"} for kind in external_values.KINDS},
    ("ai", "kind=choice"): {"choices": ["gold", "tin"]},
    ("ai", "on_error=default"): {"default": "none"},
    ("ai", "default"): {"on_error": "default", "kind": "boolean"},
    **{("db_response", f"kind={kind}"): {"column": kind} for kind in external_values.KINDS},
    **{("foreign_key", f"kind={kind}"): {"column": kind} for kind in external_values.KINDS},
    **{("dataset_column", f"kind={kind}"): {"column": kind} for kind in external_values.KINDS},
    ("dataset_column", "mode=lookup"): {"key": "source", "key_column": "text"},
    ("dataset_column", "key"): {"mode": "lookup", "key": "source", "key_column": "text"},
    ("dataset_column", "key_column"): {"mode": "lookup", "key": "source"},
    **{(kind, "bins"): {"distribution": "histogram"} for kind in ("number", "float")},
    **{
        (kind, "distribution=histogram"): {"edges": [0, 10, 100], "weights": [3, 1]}
        for kind in ("number", "float")
    },
}
"""What an option's examples, or one value of it, go with."""

SOURCE = {"name": "source", "type": "enum", "options": {"values": ["open", "paid", "lost"]}, "hidden": True}
MORE = (
    {"name": "amount", "type": "number", "options": {"decimals": 2}, "percent_blank": 12.5, "hidden": True},
    {"name": "moment", "type": "datetime", "hidden": True},
)
"""What types that read another field read."""
OWNED = [
    {
        "name": "owner",
        "type": "reference",
        "options": {"template_id": "many", "field": "id", "cardinality": {"min": 0, "max": 4}},
        "hidden": True,
    }
]
BESIDE: dict[str, list[dict[str, Any]]] = {"position_in_parent": OWNED}
"""Fields without which a type says nothing."""

_ID = {"name": "id", "type": "row_number"}
AROUND: dict[str, tuple[int, list[dict[str, Any]]]] = {
    "parents": (10**6, [_ID, {"name": "name", "type": "name"}]),
    "many": (2**45, [_ID]),
    "children": (
        1,
        [
            {
                "name": "parent",
                "type": "reference",
                "options": {"template_id": "own", "field": "source", "cardinality": {"min": 0, "max": 4}},
            },
            {"name": "amount", "type": "number", "options": {"decimals": 2}, "percent_blank": 30},
            {"name": "open", "type": "boolean"},
        ],
    ),
}
"""Rows and fields of the templates that relations reach."""
OWN_ROWS = 2**45
_KEYS = 5_000
ANSWER = external_values.ExternalResponse(
    pa.table(
        {
            "name": [f"Customer {number}" for number in range(_KEYS)],
            "id": range(1, _KEYS + 1),
            "open": [number % 2 == 0 for number in range(_KEYS)],
            "text": [f"C-{number}" for number in range(_KEYS)],
            "integer": range(_KEYS),
            "decimal": pa.array([Decimal(number) / 4 for number in range(_KEYS)], pa.decimal128(9, 2)),
            "float": [number / 8 for number in range(_KEYS)],
            "boolean": [number % 3 == 0 for number in range(_KEYS)],
            "date": [NOW.date() + timedelta(days=number) for number in range(_KEYS)],
            "datetime": [NOW.replace(tzinfo=None) + timedelta(hours=number) for number in range(_KEYS)],
        }
    ),
    "a snapshot",
)
"""What every question to a database is answered with."""
FILED = external_values.ExternalResponse(
    pa.table({}),
    "a snapshot",
    loaded_source=external_values.LoadedSource(
        SourceTable(ANSWER.table, "a snapshot"), masking.KeyRing(0, {}), "a place"
    ),
)
"""What every question for a file is answered with."""
_PATHS = ("/customers/lost", "/customers/open", "/customers/paid")
_BODIES = [
    json.dumps({name: table[name][0].as_py() for name in table.column_names}, default=str)
    for table in (ANSWER.table.slice(number) for number in range(len(_PATHS)))
]
CALLED = external_values.ExternalResponse(
    pa.table({"body": _BODIES, "trouble": [""] * len(_PATHS)}),
    "a snapshot",
    pa.array(_PATHS),
    np.arange(len(_PATHS) + 1),
)
"""What every question to an API is answered with."""
_SAID = {
    "integer": ("1", "2", "3", "4"),
    "decimal": ("1.25", "2.50", "3.75"),
    "boolean": ("true", "false", "true"),
    "date": ("2026-01-31", "2026-02-28", "2026-03-31"),
    "text": ("It stays.", "It goes.", "It turns blue.", "Nobody knows."),
}
_PROMPTS = [
    f"{front} {word}?" for front in ("What becomes of", "Who is") for word in ("lost", "open", "paid")
]
_SETS = [
    (prompt, "conformance", *row) for prompt in _PROMPTS for row in [(), *((str(n),) for n in range(300))]
]


def _prompted(question: external_values.ExternalQuery) -> external_values.ExternalResponse:
    """What a model answers to each prompt, and to each in the first rows, under the seed of `bound`."""
    choices = question["choices"] or _SAID[question["answer"]]
    result = {"\x1f".join(item): choices[place % len(choices)] for place, item in enumerate(_SETS)}
    keys = sorted(result)
    table = pa.table({"value": [result[key] for key in keys], "trouble": [""] * len(keys)})
    return external_values.ExternalResponse(table, "a snapshot", pa.array(keys), np.arange(len(keys) + 1))


def answer_to(question: external_values.ExternalQuery) -> external_values.ExternalResponse:
    """What a question to the outside is answered with."""
    if question.kind == "ai":
        return _prompted(question)
    return {"http": CALLED, "file": FILED}.get(question.kind, ANSWER)


@dataclass(frozen=True)
class Case:
    """A field of one type; ``label`` says which choice is tried."""

    kind: type[FieldType]
    label: str
    options: dict[str, Any]

    def field(self, **common: Any) -> dict[str, Any]:
        """The field's definition."""
        return {"name": "it", "type": self.kind.name, "options": self.options, **common}


def cases(kind: type[FieldType]) -> Iterator[Case]:
    """The type as it comes, then each value that an option's schema names."""
    plain = REQUIRED.get(kind.name, {})
    yield Case(kind, "plain", plain)
    schema = kind.Options.model_json_schema(by_alias=True)
    for option, described in schema.get("properties", {}).items():
        for value in _named(described, schema):
            together = TOGETHER.get((kind.name, option), TOGETHER.get((kind.name, f"{option}={value}"), {}))
            yield Case(kind, f"{option}={value}", {**plain, **together, option: value})


def _named(described: dict[str, Any], schema: dict[str, Any]) -> list[Any]:
    values = list(described.get("examples", []))
    pending = [described]
    while pending:
        part = pending.pop()
        if "$ref" in part:
            part = schema["$defs"][part["$ref"].rpartition("/")[2]]
        pending.extend(part.get("anyOf", []))
        values.extend(part.get("enum", []))
        values.extend([part["const"]] if "const" in part else [])
        values.extend([True, False] if part.get("type") == "boolean" else [])
    return values


def bound(*fields: dict[str, Any], seed: str = "conformance") -> BoundPlan:
    """``fields`` and what they may read, bound to a fixed seed and now."""
    children = [field for field in fields if (field.get("options") or {}).get("within") == "parent"]
    beside = [other for field in fields for other in BESIDE.get(field["type"], ())] or OWNED[: len(children)]
    parsed = groups.assign(parse([*fields, SOURCE, *MORE, *beside]))
    plan = compile_plan(parsed, vocabulary.open_default(), library=library())
    answers = {request.query.key: answer_to(request.query) for request in plan.external_requests}
    return BoundPlan(plan.with_responses(answers), GenerationContext(seed, NOW))


@cache
def library() -> TemplateLibrary:
    """The templates that relations reach."""
    known = {
        name: RelatedTemplate(name, groups.assign(parse(fields, name=name)), rows, vocabulary.open_default())
        for name, (rows, fields) in AROUND.items()
    }
    return TemplateLibrary(known, "own", OWN_ROWS)


@cache
def made(kind: type[FieldType], label: str) -> BoundPlan:
    """The bound template of one case."""
    return bound(next(case for case in cases(kind) if case.label == label).field())


def column(source: BoundPlan, rows: np.ndarray, name: str = "it") -> pa.Array:
    """The column of any rows, in any order."""
    return Block(source, source.plan.layer, rows.astype(np.uint64)).column(name)


def last_row(source: BoundPlan) -> int | None:
    """How many rows the field has values for, where there is an end to them."""
    return source.plan.layer.columns["it"].type.available_rows(source.states["it"])


def window(source: BoundPlan, start: int, count: int) -> pa.Array:
    """The visible column of ``count`` rows from ``start`` on, decoded."""
    return text.decode_dictionary(source.block(start, count)[0])


def digests() -> dict[str, str]:
    """A digest of 300 rows of every case."""
    found = {}
    for kind in REGISTRY:
        for case in cases(kind):
            values = window(made(kind, case.label), 0, 300).to_pylist()
            raw = json.dumps(values, default=str, ensure_ascii=False).encode()
            found[f"{kind.name} {case.label}"] = blake2b(raw, digest_size=8).hexdigest()
    return found


if __name__ == "__main__":
    json.dump(digests(), sys.stdout)

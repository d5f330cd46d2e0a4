"""What the golden hashes are of: each field type by itself, and whole templates in every format.

Nothing here may change without the hashes: a template's field ids are part of what it makes. Add, do not edit.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import openpyxl
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from webapp.engine import external_values
from webapp.engine.data import build, vocab_lock, vocabulary
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.external_values import ExternalResponse
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import REGISTRY
from webapp.generation.services import rows
from webapp.operations import demo_workspace
from webapp.row_templates.schemas import GenerateInput
from webapp.row_templates.services import compilation, compiled_plans

SEED = "golden"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TYPE_ROWS = 300
ASKS: dict[str, dict[str, int]] = {
    "rows 0 to 999": {"offset": 0, "count": 1_000},
    "rows 8000 to 9299": {"offset": 8_000, "count": 1_300},
    "3 rows at 10^12": {"offset": 10**12, "count": 3},
}
FORMATS: dict[str, dict[str, Any]] = {
    "json": {"format": "json"},
    "ndjson": {"format": "ndjson"},
    "csv": {"format": "csv"},
    "csv, columns": {"format": "csv", "csv": {"delimiter": ";", "quote": "all"}, "arrays": "columns"},
    "sql, ansi": {"format": "sql"},
    "sql, mysql": {"format": "sql", "sql": {"dialect": "mysql", "create_table": True}},
    "xlsx": {"format": "xlsx"},
    "parquet": {"format": "parquet"},
}

# Options of the types that need some. A type without an entry is made with none.
_OTHER = {"name": "other", "type": "list_sequential", "options": {"values": ["a", "b", "c"]}}
OPTIONS: dict[str, dict[str, Any]] = {
    "constant": {"value": 'x "y", z'},
    "custom": {"values": ["red", "green", "blue"]},
    "derived": {"value": "{{other | upper}}-{{other}}"},
    "formula": {"expression": "round(row * 100 / 7, 2) + random_int(1, 6) * length(other)"},
    "case": {
        "cases": [
            {"when": "other == 'a'", "then": "first"},
            {"when": "row % 2 == 0", "then_formula": "upper(other)"},
        ],
        "else": "rest",
    },
    "enum": {"values": ["a", "b", "c"], "weights": [5, 3, 2]},
    "list_sequential": {"values": ["x", "y", "z"]},
    "mapped": {"field": "other", "map": {"a": "Alpha", "b": "Beta"}, "default": "none"},
    "nested": {"array": True, "count": {"min": 0, "max": 3}, "fields": [{"name": "n", "type": "number"}]},
    "array": {"of": {"type": "number"}, "count": {"min": 0, "max": 3}},
    "json": {"array": True, "count": {"min": 0, "max": 3}, "fields": [{"name": "n", "type": "number"}]},
    "template_string": {"value": "{{other | upper}}-{{other}}"},
    "weighted_list": {"values": ["a", "b", "c"], "weights": [5, 3, 2]},
    "regexp": {"string": "[A-Z]{2}-[0-9]{4}(a|bc)?"},
    "cartesian": {"lists": [["red", "blue"], ["small", "medium", "large"]]},
    "previous": {"field": "other"},
    "running_total": {"field": "amount"},
    "date_relative": {"field": "moment", "min": "1d", "max": "14d"},
    "reference": {"template_id": "tpl_parents", "field": "name"},
    "aggregate": {"template_id": "tpl_children", "field": "amount"},
    "template": {"template_id": "tpl_children"},
    "foreign_key": {"connection_id": "con_1", "table": "customers", "column": "id"},
    "dataset_column": {"file": "people.csv", "column": "name"},
    "db_response": {"connection_id": "con_1", "query": "SELECT name FROM customers"},
    "api_response": {"connection_id": "con_1", "path": "/customers/{{other}}", "extract": "$.name"},
    "ai": {"prompt": "What becomes of {{other}}?", "same_for_equal_prompts": True},
    "faker": {"method": "catch_phrase"},
}
BESIDE: dict[str, dict[str, Any]] = {
    "running_total": {"name": "amount", "type": "number", "options": {"decimals": 2}, "percent_blank": 12.5},
    "date_relative": {"name": "moment", "type": "datetime"},
    "position_in_parent": {
        "name": "parent",
        "type": "reference",
        "options": {"template_id": "tpl_parents", "field": "id", "cardinality": {"min": 0, "max": 6}},
    },
}
_ID = {"name": "id", "type": "row_number"}
_PARENT = {"template_id": "tpl_own", "field": "other", "cardinality": {"min": 0, "max": 4}}
RELATED: dict[str, list[dict[str, Any]]] = {
    "tpl_parents": [_ID, {"name": "name", "type": "name"}, {"name": "email", "type": "email"}],
    "tpl_children": [
        {"name": "parent", "type": "reference", "options": _PARENT},
        {"name": "position", "type": "position_in_parent"},
        {"name": "amount", "type": "number", "options": {"decimals": 2}, "percent_blank": 30},
    ],
}
"""The templates that relations reach: as many rows each as `TYPE_ROWS`, or as those bear."""
RELATING = ("reference", "position_in_parent", "aggregate", "template")

AWKWARD: dict[str, Any] = {
    "name": "Awkward values",
    "locale": "de_DE",
    "fields": [
        {"name": "Größe; \"x\", 'y'", "type": "number", "options": {"min": -5, "max": 5, "decimals": 3}},
        {"name": "big", "type": "number", "options": {"min": -(2**53 - 1), "max": 2**53 - 1}},
        {
            "name": "text",
            "type": "enum",
            "options": {"values": ["=1+1", "a,b", 'q"q', "l\nl", "", "🙂", "ä"]},
        },
        {"name": "blank", "type": "datetime", "percent_blank": 33.3},
        {"name": "one", "type": "boolean"},
        {"name": "person", "type": "name", "text_case": "upper", "prefix": "<", "suffix": ">"},
        {"name": "key", "type": "number", "options": {"min": 1, "max": 10**6}, "unique": True},
    ],
}
ORDERS: dict[str, Any] = {
    "name": "Orders",
    "description": "Money, dates and states. The order number is derived from two other fields.",
    "quantity": 100,
    "fields": [
        demo_workspace._field("id", "uuid"),
        demo_workspace._field("serial", "sequence", start=1, pad=6, hidden=True),
        demo_workspace._field("ordered_at", "datetime", min="-90d", max="now"),
        demo_workspace._field("order_number", "derived", value="{{ordered_at | date('YYYYMM')}}-{{serial}}"),
        demo_workspace._field("customer", "name"),
        demo_workspace._field("email", "email"),
        demo_workspace._field("product", "product_name"),
        demo_workspace._field("sku", "sku"),
        demo_workspace._field("quantity", "number", min=1, max=12),
        demo_workspace._field(
            "unit_price", "number", min=3, max=900, decimals=2, distribution="lognormal", mean=60, stddev=55
        ),
        demo_workspace._field("currency", "enum", values=["EUR", "USD", "GBP"], weights=[5, 3, 2]),
        demo_workspace._field(
            "status", "enum", values=["paid", "shipped", "open", "returned"], weights=[50, 30, 15, 5]
        ),
        demo_workspace._field("note", "sentences", count=1, percent_blank=80),
    ],
}

WIDE_OFFSET = "3 rows at 10^12"


ENGINES: dict[int, str] = {
    1: "4f165fff80fd87a5e70a24e014b4df54",
    2: "ec48bdb33bee17d0e5c88e0f059d819c",
    3: "",
}
"""The vocabulary of each engine's hashes, by its id; the present one for the newest."""


@cache
def vocabulary_of(engine: int) -> Vocabulary:
    """The vocabulary that an engine's hashes are of; an earlier one is built where it is missing."""
    expected = ENGINES[engine]
    if not expected:
        return compilation.vocabulary()
    folder = vocab_lock.REPOSITORY_ROOT / "var" / "vocab"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{expected}.lock").open("w") as building:
        fcntl.flock(
            building, fcntl.LOCK_EX
        )  # the other processes of the tests wait instead of building it too
        if not (folder / f"{expected}.arrow").exists():
            build.build(folder, vocabulary_id=expected)
    return vocabulary.open_in(folder, expected)


@contextmanager
def under(engine: int) -> Iterator[Vocabulary]:
    """Compile templates as if an engine's vocabulary were the present one."""
    words = vocabulary_of(engine)
    with mock.patch.object(compilation, "vocabulary", return_value=words):
        yield words


def with_ids(fields: list[dict[str, Any]], start: int) -> tuple[list[dict[str, Any]], int]:
    """The same fields, each with an id that follows from its place."""
    made = []
    for field in fields:
        field = {**field, "id": f"fld_{start:026d}"}
        start += 1
        options = field.get("options") or {}
        if isinstance(options.get("fields"), list):
            inner, start = with_ids(options["fields"], start)
            field["options"] = {**options, "fields": inner}
        made.append(field)
    return made, start


def template_source(template: dict[str, Any]) -> compiled_plans.CompiledTemplate:
    """A template, compiled."""
    fields, _ = with_ids(template["fields"], 1)
    return compiled_plans.compile_draft(template["name"], fields, 10, NOW, template.get("locale"))


def made(source: compiled_plans.CompiledTemplate, **ask: Any) -> bytes:
    """The bytes of one request."""
    expected = GenerateInput(seed=SEED, now=NOW, **ask)
    return rows.build_recipe(source, expected, current_time=NOW).open().read()


def digest(data: bytes, format: str) -> str:
    """SHA-256 of the bytes; of the content where the bytes depend on what packed them."""
    if format == "xlsx":
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True)
        content: Any = [[sheet.title, list(sheet.iter_rows(values_only=True))] for sheet in book]
        data = orjson.dumps(content, default=str)
    elif format == "parquet":
        table = pq.read_table(io.BytesIO(data))
        data = orjson.dumps([str(table.schema.remove_metadata()), table.to_pylist()], default=str)
    return hashlib.sha256(data).hexdigest()


def templates() -> dict[str, dict[str, Any]]:
    """The whole templates, by the name of their file."""
    return {
        "customers": demo_workspace.CUSTOMERS,
        "orders": ORDERS,
        "documents": demo_workspace.DOCUMENTS,
        "awkward": AWKWARD,
    }


def template_hashes(name: str) -> Iterator[tuple[str, str]]:
    """Every hash of one template: `format: which rows`."""
    template = templates()[name]
    source = template_source(template)
    unique = any(field.get("unique") for field in template["fields"])
    for label, how in FORMATS.items():
        for rows_label, which in ASKS.items():
            if unique and rows_label == WIDE_OFFSET:
                continue  # there are not so many distinct values
            yield f"{label}: {rows_label}", digest(made(source, **how, **which), how["format"])


def type_source(kind: type[FieldType]) -> compiled_plans.CompiledTemplate:
    """A template of one field type, with what it reads beside it, compiled."""
    field = {"name": "value", "type": kind.name, "options": OPTIONS.get(kind.name, {})}
    beside = [BESIDE[kind.name]] if kind.name in BESIDE else []
    fields, _ = with_ids([_OTHER, field, *beside], 1)
    around = _gathered() if kind.name in RELATING else {}
    source = compiled_plans.compile_draft("types", fields, TYPE_ROWS, NOW, None, "tpl_own", around)
    result = {"http": CALLED, "ai": PROMPTED}
    answers = {
        request.query.key: result.get(request.query.kind, ANSWER) for request in source.plan.external_requests
    }
    return replace(source, plan=source.plan.with_responses(answers))


def type_hash(kind: type[FieldType]) -> str:
    """The hash of one field type's own column, by itself."""
    return digest(made(type_source(kind), format="ndjson", count=TYPE_ROWS), "ndjson")


ANSWER = ExternalResponse(pa.table({"name": ["Ann", "Bob", "Cid"], "id": [7, 11, 13]}), "a snapshot")
"""What every question to a database is answered with."""
CALLED = ExternalResponse(
    pa.table({"body": ['{"name": "Ann"}', '{"name": "Bob"}', '{"name": null}'], "trouble": [""] * 3}),
    "a snapshot",
    pa.array(["/customers/a", "/customers/b", "/customers/c"]),
    np.arange(4),
)
"""What every question to an API is answered with."""
PROMPTED = ExternalResponse(
    pa.table({"value": ["It stays.", "It goes.", "It turns blue."], "trouble": [""] * 3}),
    "a snapshot",
    external_values.value_set_keys(
        [
            pa.array([f"What becomes of {letter}?" for letter in "abc"]),
            pa.array(["golden"] * 3),
        ]
    ),
    np.arange(4),
)
"""What every prompt is answered with."""


def _gathered() -> dict[str, Any]:
    """The related templates as they would be read from the database."""
    found = {}
    for start, (name, fields) in enumerate(RELATED.items(), 1):
        spec = {"name": name, "fields": with_ids(fields, start * 1_000)[0], "locale": None, "anchor": None}
        found[name] = (1, {**spec, "quantity": TYPE_ROWS}, {})
    return found


def type_hashes() -> dict[str, str]:
    """The hashes of all field types."""
    return {kind.name: type_hash(kind) for kind in REGISTRY}

"""What the golden hashes are of: each field type by itself, and whole templates in every format.

Nothing here may change without the hashes: a template's field ids are part of what it makes. Add, do not edit.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import openpyxl
import orjson
import pyarrow.parquet as pq

from webapp.engine.fields import REGISTRY
from webapp.engine.fields.base import FieldType
from webapp.services import demo, plans, rows
from webapp.services.row_requests import GenerateInput

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
    "enum": {"values": ["a", "b", "c"], "weights": [5, 3, 2]},
    "list_sequential": {"values": ["x", "y", "z"]},
    "mapped": {"field": "other", "map": {"a": "Alpha", "b": "Beta"}, "default": "none"},
    "nested": {"array": True, "count": {"min": 0, "max": 3}, "fields": [{"name": "n", "type": "number"}]},
    "array": {"of": {"type": "number"}, "count": {"min": 0, "max": 3}},
    "regexp": {"string": "[A-Z]{2}-[0-9]{4}(a|bc)?"},
}

AWKWARD: dict[str, Any] = {
    "name": "Awkward values",
    "locale": "de_DE",
    "fields": [
        {"name": "Größe; \"x\", 'y'", "type": "number", "options": {"min": -5, "max": 5, "decimals": 3}},
        {"name": "big", "type": "number", "options": {"min": -(2**53 - 1), "max": 2**53 - 1}},
        {"name": "text", "type": "enum", "options": {"values": ["=1+1", "a,b", 'q"q', "l\nl", "", "🙂", "ä"]}},
        {"name": "blank", "type": "datetime", "percent_blank": 33.3},
        {"name": "one", "type": "boolean"},
        {"name": "person", "type": "name", "text_case": "upper", "prefix": "<", "suffix": ">"},
        {"name": "key", "type": "number", "options": {"min": 1, "max": 10**6}, "unique": True},
    ],
}
WIDE_OFFSET = "3 rows at 10^12"


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


def template_source(template: dict[str, Any]) -> plans.Source:
    """A template, compiled."""
    fields, _ = with_ids(template["fields"], 1)
    return plans.of_draft(template["name"], fields, 10, NOW, template.get("locale"))


def made(source: plans.Source, **ask: Any) -> bytes:
    """The bytes of one request."""
    wanted = GenerateInput(seed=SEED, now=NOW, **ask)
    return rows.recipe(source, wanted, present=NOW).open().whole()


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
        "customers": demo.CUSTOMERS,
        "orders": demo.ORDERS,
        "documents": demo.DOCUMENTS,
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


def type_hash(kind: type[FieldType]) -> str:
    """The hash of one field type's own column, by itself."""
    field = {"name": "value", "type": kind.name, "options": OPTIONS.get(kind.name, {})}
    fields, _ = with_ids([_OTHER, field], 1)
    source = plans.of_draft("types", fields, 10, NOW, None)
    return digest(made(source, format="ndjson", count=TYPE_ROWS), "ndjson")


def type_hashes() -> dict[str, str]:
    """The hashes of all field types."""
    return {kind.name: type_hash(kind) for kind in REGISTRY}

"""The reference of field types: the catalogue by family, each type with its options and generated sample rows.

Options are the keys of a model in words: name, type, default, meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import orjson
from pydantic import BaseModel

from webapp.documentation.reference import code, table, text
from webapp.engine.spec import field_schema
from webapp.engine.types import agreement
from webapp.engine.types.registry import find, normalize_name
from webapp.generation.services import generate
from webapp.row_templates.schemas import DraftInput
from webapp.row_templates.services import catalogue
from webapp.web import row_tables
from webapp.web.forms.from_model import label_of

Schema = Mapping[str, Any]
_TYPE_NAMES = {"integer": "whole number", "boolean": "true or false", "string": "text", "null": "null"}


def model_keys(model: type[BaseModel]) -> list[dict[str, Any]]:
    """Return `{name, kind, default, text, required}` of every key of a model."""
    return schema_keys(model.model_json_schema(by_alias=True))


def schema_keys(schema: Schema) -> list[dict[str, Any]]:
    """Return the same for an object's JSON Schema."""
    required = schema.get("required", ())
    found = []
    for name, part in schema.get("properties", {}).items():
        default = part.get("default")
        found.append(
            {
                "name": name,
                "kind": schema_text(part, schema.get("$defs", {})),
                "default": "" if default is None else json.dumps(default, ensure_ascii=False),
                "text": part.get("description", ""),
                "required": name in required,
            }
        )
    return found


def schema_text(schema: Schema, defs: Schema) -> str:
    """Return a schema in a few words: `whole number, 0 to 10`, `a, b or c`, `list of text`."""
    if "$ref" in schema:
        return schema_text(defs[schema["$ref"].rsplit("/", 1)[1]], defs)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            parts = [schema_text(choice, defs) for choice in schema[key] if choice.get("type") != "null"]
            return " or ".join(dict.fromkeys(parts))
    if "enum" in schema or "const" in schema:
        return " or ".join(
            json.dumps(one, ensure_ascii=False) for one in schema.get("enum", [schema.get("const")])
        )
    name: str = schema.get("type", "any")
    if name == "array":
        return f"list of {schema_text(schema.get('items', {}), defs)}" + _size_text(
            schema, "minItems", "maxItems", " values"
        )
    if name == "object":
        inner = schema.get("properties")
        return "object with " + ", ".join(inner) if inner else "object"
    return _TYPE_NAMES.get(name, name) + _bounds_text(schema)


def _bounds_text(schema: Schema) -> str:
    if schema.get("type") == "string":
        return _size_text(schema, "minLength", "maxLength", " characters")
    low, high, above = (_bound_text(schema.get(key)) for key in ("minimum", "maximum", "exclusiveMinimum"))
    if above:
        return f", more than {above}" + (f", at most {high}" if high else "")
    if low and high:
        return f", {low} to {high}"
    if low:
        return f", at least {low}"
    return f", at most {high}" if high else ""


def _bound_text(bound: float | None) -> str:
    """Return a bound in digits; "" without a bound, and for bounds that are meaningless for users, such as those of 64
    bits."""
    if bound is None or abs(bound) >= 1e9:
        return ""
    return f"{int(bound):,}" if bound == int(bound) else f"{bound:,}"


def _size_text(schema: Schema, minimum_key: str, maximum_key: str, unit: str = "") -> str:
    low, high = schema.get(minimum_key), schema.get(maximum_key)
    if low and high:
        return f", {low:,}{unit}" if low == high else f", {low:,} to {high:,}{unit}"
    if high:
        return f", at most {high:,}{unit}"
    return f", at least {low:,}{unit}" if low else ""


# --- Field types --------------------------------------------------------------------------------------------

_STATUS: Final = {
    "name": "status",
    "type": "list_sequential",
    "options": {"values": ["open", "paid", "lost"]},
}
_AMOUNT: Final = {"name": "amount", "type": "number", "options": {"min": 5, "max": 50, "decimals": 2}}
_MOMENT: Final = {"name": "ordered", "type": "date"}

OPTIONS: Final[MappingProxyType[str, dict[str, Any]]] = MappingProxyType(
    {
        "constant": {"value": "EUR"},
        "derived": {"value": "{{status | upper}} / {{amount}}"},
        "formula": {"expression": "round(amount * 0.19, 2)"},
        "case": {"cases": [{"when": "status == 'open'", "then": "remind"}], "else": "nothing to do"},
        "nested": {"fields": [{"name": "city", "type": "city"}, {"name": "zip", "type": "zip_code"}]},
        "array": {"of": {"type": "number", "options": {"min": 1, "max": 9}}},
        "json": {"fields": [{"name": "city", "type": "city"}, {"name": "zip", "type": "zip_code"}]},
        "template_string": {"value": "{{amount}} EUR, {{status}}"},
        "weighted_list": {"values": ["open", "paid", "lost"], "weights": [60, 35, 5]},
        "custom": {"values": ["red", "green", "blue"]},
        "enum": {"values": ["open", "paid", "lost"]},
        "list_sequential": {"values": ["open", "paid", "lost"]},
        "mapped": {"field": "status", "map": {"open": 1, "paid": 2}, "default": 3},
        "regexp": {"string": r"[A-Z]{2}-\d{4}"},
        "cartesian": {"lists": [["red", "blue"], ["small", "large"]]},
        "previous": {"field": "status", "default": "none"},
        "running_total": {"field": "amount"},
        "faker": {"method": "color_name"},
        "date_relative": {"field": "ordered", "min": "1w", "max": "3w"},
    }
)
"""Sample options for types with required options."""

SIBLING_FIELDS: Final[MappingProxyType[str, tuple[dict[str, Any], ...]]] = MappingProxyType(
    {
        "derived": (_STATUS, _AMOUNT),
        "template_string": (_STATUS, _AMOUNT),
        "formula": (_AMOUNT,),
        "case": (_STATUS,),
        "mapped": (_STATUS,),
        "previous": (_STATUS,),
        "running_total": (_AMOUNT,),
        "date_relative": (_MOMENT,),
    }
)
"""Other fields of the sample row that a type reads, shown next to it."""

EXTERNAL_SOURCES: Final = MappingProxyType(
    {
        "reference": "another template",
        "position_in_parent": "a reference with cardinality in the same template",
        "aggregate": "a child template",
        "template": "another template",
        "dataset_column": "a workspace file",
        "foreign_key": "a connection to a database",
        "db_response": "a connection to a database",
        "api_response": "a connection to an API",
        "ai": "a connection to a model",
    }
)
"""Types whose values come from another object, and which one. Their example is in the catalogue."""


SEED: Final = "docs"
NOW: Final = "2026-01-01T00:00:00Z"
COMMON_KEYS: Final = MappingProxyType(
    {
        "id": "The field's ID, which Rowsmith assigns and which seeds the column. Send it back to keep the column's"
        " values when other keys change.",
        "name": "The column's name. Must be unique within its level.",
        "type": "Name or alias of a type in this reference.",
        "options": "Options of the type.",
        "sensitive": "Marks personal data: real values are [masked](/docs/guide/masking) before they are output, and"
        " are not sent to an AI model unless its field allows it.",
        "masking": "How source values are masked: [strategies](/docs/guide/masking). Without it, the values of a"
        " sensitive field are replaced by other values of the same kind.",
        "percent_blank": "Percentage of rows without a value.",
        "unique": "All values are different. With a label instead of `true`: fields with the same label are unique in"
        " combination.",
        "hidden": "Usable in formulas and by other fields, but not part of the output.",
        "locale": "Language and country of this column, such as `de_DE`, for types that support it.",
        "group": "Fields in the same group describe the same person, place, company, card or product. If you leave it"
        " out, Rowsmith groups fields that belong together. Fields that follow another field get the group `row`.",
        "formula": "Replaces the value with the result of a [formula](/docs/reference/formulas); `this` is the"
        " generated value.",
        "prefix": "Text before the value.",
        "suffix": "Text after the value.",
        "text_case": "Upper or lower case of the letters.",
        "description": "Notes for your team.",
        "column": "Column of the template's [source](/docs/guide/real-data) with the values. Default: the column with"
        " the field's name.",
        "invalid": "[Invalid data](/docs/guide/bad-data): the share of invalid cells and their kinds.",
    }
)
"""Descriptions of the common field keys, in Markdown. `engine.spec.CommonKeys` defines the keys."""
_GROUPS: Final = MappingProxyType(
    {
        "parent": "parent row",
        "existing": "table row",
        "answer": "query result",
    }
)


@lru_cache(maxsize=1)
def families() -> list[dict[str, Any]]:
    """Return the catalogue by family, in the registry's order. The result is cached: do not modify it."""
    found: dict[str, dict[str, Any]] = {}
    for entry in catalogue.entries():
        name = entry["category"]
        family = found.setdefault(name, {"name": name, "label": label_of(name), "types": []})
        # The picker ranks by whole aliases, so words that the description contains are kept.
        own_names = {normalize_name(entry["name"]), normalize_name(entry["label"])}
        others = {
            normalize_name(alias): alias.lower()
            for alias in entry["aliases"]
            if normalize_name(alias) not in own_names
        }
        family["types"].append({**entry, "find": ",".join(others.values())})
    return list(found.values())


def types_page(q: str = "") -> str:
    """Return the list of all types by family as Markdown, or with `q` the matching types, best match first."""
    types = catalogue.search(q)
    if q.strip():
        listed = (
            _type_list(types)
            if types
            else "No matching type. Use `custom` for a list of values or `regexp` for a pattern.\n"
        )
        count = f"{len(types):,} of {len(catalogue.entries()):,} types match, best match first."
        return f"# Field types\n\n{count}\n\n{listed}"
    parts = [
        f"# Field types\n\nThere are {len(types):,} types. Names are compared by letters and digits only: `E-Mail`,"
        " `email` and `e_mail` are the same type. `GET /field-types` returns the same catalogue.\n\n"
        "[Every field](/docs/field-types/every-field) also has keys that do not depend on its type. The same"
        " pages are in the source repository, in `docs/reference/types`.\n\n",
        *(
            f"## [{family['label']}](/docs/field-types/{family['name']})\n\n{_type_list(family['types'])}\n"
            for family in families()
        ),
    ]
    return "".join(parts)


def common_keys_page() -> str:
    """Return the page of the common field keys as Markdown."""
    rows = [
        (
            code(key["name"]) + (" (required)" if key["required"] else ""),
            text(key["kind"]),
            code(key["default"]),
            COMMON_KEYS[key["name"]],
        )
        for key in schema_keys(field_schema())
    ]
    return (
        "# Every field\n\nIn addition to the options of its type, every field has these keys. Only `name` and"
        " `type` are required.\n\n" + table(("Key", "Value", "Default", "Meaning"), rows)
    )


def _type_list(types: list[dict[str, Any]]) -> str:
    lines = (
        f"- [{code(entry['name'])}](/docs/field-types/{entry['category']}#{entry['name']}): "
        f"{text(entry['description'])}"
        for entry in types
    )
    return "\n".join(lines) + "\n"


def family_page(family_entry: dict[str, Any]) -> str:
    """Return the page of a family as Markdown: one section per type, with the type's name as anchor."""
    parts = [
        f"# {family_entry['label']}\n\nEvery field also has the"
        f" [common keys](/docs/field-types/every-field). The sample rows use the seed `{SEED}` and the time"
        f" `{NOW}`.\n"
    ]
    return "".join([*parts, *(_type_section(entry) for entry in family_entry["types"])])


def _type_section(entry: dict[str, Any]) -> str:
    name = entry["name"]
    kind = find(name)
    assert kind is not None  # from the catalogue
    facts = []
    if entry["aliases"]:
        facts.append(f"Aliases: {', '.join(text(alias) for alias in entry['aliases'])}.")
    if entry["capacity"]:
        facts.append(f"{entry['capacity']:,} distinct values with default options.")
    if kind.localised:
        facts.append("Depends on `locale`.")
    if kind.group_kind and not kind.requires_named_group:
        facts.append(f"Consistent with fields of the same {_GROUPS.get(kind.group_kind, kind.group_kind)}.")
    if rules := agreement.RULES.get(kind.name):
        followed = (" or ".join(map(code, rule.types)) or rule.kind for rule in rules)
        facts.append(f"Consistent with the row's {' and '.join(followed)} (engine 3).")
    parts = [f"\n## {text(entry['label'])} {code(name)}\n\n{text(entry['description'])}"]
    if facts:
        parts.append("\n\n" + " ".join(facts))
    parts.append("\n\n")
    options = model_keys(kind.Options)
    if options:
        rows = [
            (
                code(option["name"]) + (" (required)" if option["required"] else ""),
                text(option["kind"]),
                code(option["default"]),
                text(option["text"]),
            )
            for option in options
        ]
        parts.append(table(("Option", "Value", "Default", "Meaning"), rows) + "\n")
    parts.append(_sample_rows(entry))
    return "".join(parts)


def _sample_rows(entry: dict[str, Any]) -> str:
    """Return sample rows of a type with default options, or with `OPTIONS` if some are required."""
    name = entry["name"]
    if name in EXTERNAL_SOURCES:
        example = code(row_tables.cell(entry["example"])["text"])
        return f"The values come from {EXTERNAL_SOURCES[name]}, for example {example}.\n"
    options = OPTIONS.get(name)
    read_fields = SIBLING_FIELDS.get(name, ())
    columns = [*(one["name"] for one in read_fields), "value"]
    rows = [
        (str(number), *(code(row_tables.cell(row[column])["text"]) for column in columns))
        for number, row in enumerate(sample_rows(name), 1)
    ]
    introduction = f"With `{json.dumps(options, ensure_ascii=False)}`:\n\n" if options else ""
    return introduction + table(("Row", *(code(one) if read_fields else "Value" for one in columns)), rows)


@lru_cache(maxsize=1024)
def sample_rows(name: str) -> list[dict[str, Any]]:
    """Return the first rows of a type in `value`, with the fields it reads. The result is cached: do not modify it."""
    field = {"name": "value", "type": name, "options": OPTIONS.get(name, {})}
    draft = DraftInput(
        fields=[*SIBLING_FIELDS.get(name, ()), field], seed=SEED, now=datetime.fromisoformat(NOW)
    )
    found: list[dict[str, Any]] = orjson.loads(generate.preview_draft(None, draft).rows)
    return found

"""The reference of field types: the catalogue by family, each type with its options and rows made just now."""

from __future__ import annotations

import json
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import orjson

from webapp.documentation.markdown import code, table, text
from webapp.engine.fields import find
from webapp.engine.spec import field_schema
from webapp.generation.services import generate
from webapp.row_templates.schemas import DraftInput
from webapp.row_templates.services import catalogue
from webapp.web import row_tables
from webapp.web.forms import schema_text
from webapp.web.forms.from_model import label_of

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
"""Options of types that have none by default; made-up, as a person would write them."""

BESIDE: Final[MappingProxyType[str, tuple[dict[str, Any], ...]]] = MappingProxyType(
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
"""Fields of the same row that a type reads, shown beside it."""

ELSEWHERE: Final = MappingProxyType(
    {
        "reference": "another template",
        "position_in_parent": "a reference with a cardinality beside it",
        "aggregate": "a template whose rows refer to this one",
        "template": "another template",
        "dataset_column": "a workspace file",
        "foreign_key": "a connection to a database",
        "db_response": "a connection to a database",
        "api_response": "a connection to an API",
        "ai": "a connection to a model",
    }
)
"""Types whose values come from elsewhere, and from where; their example stands in the catalogue."""


SEED: Final = "docs"
NOW: Final = "2026-01-01T00:00:00Z"
COMMON: Final = MappingProxyType(
    {
        "id": "The field's own id, which the service gives and which seeds its column. Send it back and the column"
        " keeps its values, whatever else changes.",
        "name": "The column's name. No two fields of one level share it.",
        "type": "A type of this reference, by its name or an alias.",
        "options": "What the type takes.",
        "sensitive": "Marks personal data: real values of it are [masked](/docs/guide/masking) before they leave, and a"
        " model is not sent them unless its field allows it.",
        "masking": "How real values become others: [strategies](/docs/guide/masking). Without it a sensitive field's"
        " values are replaced by others of the same kind.",
        "percent_blank": "How many rows in a hundred have no value here.",
        "unique": "No two rows alike. A word in place of `true`: no two rows alike in all fields with that word.",
        "hidden": "Made, and read by other fields, but not given out.",
        "locale": "Language and country of this column, such as `de_DE`, where the type knows any.",
        "group": "Fields of one group share one person, place, company, card or product a row. Without a word of yours"
        " the service puts together what fits.",
        "formula": "Replaces the value by what a [formula](/docs/reference/formulas) says; `this` is the one that the"
        " type made.",
        "prefix": "Put before the value.",
        "suffix": "Put behind the value.",
        "text_case": "The letters' case.",
        "description": "For people.",
        "column": "The column of the template's [source](/docs/guide/real-data) that the values are taken from, where"
        " it is not called like the field.",
        "invalid": "[Bad values on purpose](/docs/guide/bad-data): which share of the cells, and of which kinds.",
    }
)
"""What the keys of every field mean, in Markdown; `engine.spec.CommonKeys` has the keys themselves."""
_GROUPS: Final = MappingProxyType(
    {
        "parent": "row of another template",
        "existing": "row of a table",
        "answer": "answer of a query",
    }
)


@lru_cache(maxsize=1)
def families() -> list[dict[str, Any]]:
    """The catalogue by family, in the registry's order. Shared: do not change it."""
    found: dict[str, dict[str, Any]] = {}
    for one in catalogue.entries():
        name = one["category"]
        made = found.setdefault(name, {"name": name, "label": label_of(name), "types": []})
        made["types"].append({**one, "find": _beside(one)})
    return list(found.values())


def _beside(one: dict[str, Any]) -> str:
    """Words that find a type beside those that the picker shows of it: its other names, without a word that is a part
    of another one, since who types it finds the type by that."""
    kept = f"{one['name']} {one['label']} {one['description']} {one['category']}".lower()
    found = []
    words = {word for alias in one["aliases"] for word in alias.lower().split()}
    for word in sorted(words, key=lambda word: (-len(word), word)):
        if word not in kept:
            found.append(word)
            kept += f" {word}"
    return " ".join(found)


def index(q: str = "") -> str:
    """The list of all types, by family; with `q` those that fit it, best first. Markdown."""
    types = catalogue.search(q)
    if q.strip():
        listed = (
            _listed(types)
            if types
            else "No type fits. `custom` takes values of your own, `regexp` any pattern.\n"
        )
        return f"# Field types\n\n{len(types):,} of {len(catalogue.entries()):,} types fit, best first.\n\n{listed}"
    parts = [
        f"# Field types\n\nThere are {len(types):,} types. Names are matched on letters and digits only: `E-Mail`,"
        " `email` and `e_mail` are the same type. Programs read the same catalogue from `GET /field-types`.\n\n"
        "[Every field](/docs/field-types/every-field) also takes keys that belong to no type. The same pages lie beside"
        " the source, in `docs/reference/types`.\n\n",
        *(
            f"## [{one['label']}](/docs/field-types/{one['name']})\n\n{_listed(one['types'])}\n"
            for one in families()
        ),
    ]
    return "".join(parts)


def every_field() -> str:
    """The keys that every field has. Markdown."""
    return (
        "# Every field\n\nBeside the options of its type every field takes these keys. All but `name` and `type` may be"
        " left out.\n\n" + table(("Key", "Value", "Default", "Meaning"), _common_rows())
    )


def _listed(types: list[dict[str, Any]]) -> str:
    lines = (
        f"- [{code(one['name'])}](/docs/field-types/{one['category']}#{one['name']}): {text(one['description'])}"
        for one in types
    )
    return "\n".join(lines) + "\n"


def _common_rows() -> list[tuple[str, str, str, str]]:
    schema = field_schema()
    return [
        (
            code(one["name"]) + (" (required)" if one["required"] else ""),
            text(one["kind"]),
            code(one["default"]),
            COMMON[one["name"]],
        )
        for one in schema_text.keys(schema)
    ]


def family(one: dict[str, Any]) -> str:
    """The page of one family as Markdown: a section for each of its types, the type's name as anchor."""
    parts = [
        f"# {one['label']}\n\nEvery field also takes the keys that"
        f" [all fields take](/docs/field-types/every-field). Rows are made by this service with the seed"
        f" `{SEED}`, at `{NOW}`.\n"
    ]
    return "".join([*parts, *(_type(entry) for entry in one["types"])])


def _type(entry: dict[str, Any]) -> str:
    name = entry["name"]
    parts = [f"\n## {text(entry['label'])} {code(name)}\n\n{text(entry['description'])}{_facts(entry)}\n\n"]
    options = schema_text.options(find(name).Options)  # type: ignore[union-attr]
    if options:
        rows = [
            (
                code(one["name"]) + (" (required)" if one["required"] else ""),
                text(one["kind"]),
                code(one["default"]),
                text(one["text"]),
            )
            for one in options
        ]
        parts.append(table(("Option", "Value", "Default", "Meaning"), rows) + "\n")
    parts.append(_live(entry))
    return "".join(parts)


def _facts(entry: dict[str, Any]) -> str:
    """What is known of a type beside its description, in sentences."""
    kind = find(entry["name"])
    assert kind is not None  # it is an entry of the catalogue
    said = []
    if entry["aliases"]:
        said.append(f"Also called {', '.join(text(alias) for alias in entry['aliases'])}.")
    if entry["capacity"]:
        said.append(f"{entry['capacity']:,} distinct values with default options.")
    if kind.localised:
        said.append("Follows `locale`.")
    if kind.group_kind and not kind.solitary:
        said.append(f"Agrees with fields of the same {_GROUPS.get(kind.group_kind, kind.group_kind)}.")
    return "\n\n" + " ".join(said) if said else ""


def _live(entry: dict[str, Any]) -> str:
    """Rows of a type with default options, or with those of `examples` where it has none."""
    name = entry["name"]
    if name in ELSEWHERE:
        shown = code(row_tables.cell(entry["example"])["text"])
        return f"Takes its values from {ELSEWHERE[name]}, for example {shown}.\n"
    options = OPTIONS.get(name)
    beside = BESIDE.get(name, ())
    columns = [*(one["name"] for one in beside), "value"]
    rows = [
        (str(number), *(code(row_tables.cell(row[column])["text"]) for column in columns))
        for number, row in enumerate(rows_of(name), 1)
    ]
    asked = f"With `{json.dumps(options, ensure_ascii=False)}`:\n\n" if options else ""
    return asked + table(("Row", *(code(one) if beside else "Value" for one in columns)), rows)


@lru_cache(maxsize=1024)
def rows_of(name: str) -> list[dict[str, Any]]:
    """The first rows that a type makes, in `value`, with what it reads. Shared: do not change them."""
    field = {"name": "value", "type": name, "options": OPTIONS.get(name, {})}
    ask = DraftInput(fields=[*BESIDE.get(name, ()), field], seed=SEED, now=NOW)
    found: list[dict[str, Any]] = orjson.loads(generate.preview_draft(None, ask).rows)
    return found

"""What a column of a database suggests as a field: a type whose every value fits the column.

In order: what the column's type and its checks dictate, what its name means beside its table's, what a small sample
looks like. Of the
sample only shapes and ranges are taken over, and values only of columns that hold a few plain words and whose name
means nothing about a person. Each suggestion is compiled before it is believed: its values must be of the column's
type and no longer than it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final, Literal

import pyarrow as pa

from webapp import limits
from webapp.connectors.shape import Column, Entity
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.fields import find
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.imports.inference import checks, texts
from webapp.imports.inference import numbers as imports_numbers
from webapp.imports.inference.checks import Rules
from webapp.imports.inference.evidence import Asked, Field, definition, jsonable

State = Literal["green", "yellow", "red"]


@dataclass(slots=True)
class Found:
    """What one column came to. Without a `field` nothing is made for it, and `reason` says why."""

    column: str
    field: Field | None
    state: State
    reason: str


def columns(
    entity: Entity, sample: pa.RecordBatch | None, vocabulary: Vocabulary, rows: int = limits.DEFAULT_QUANTITY
) -> list[Found]:
    """A field for each column of a table that rows bring; foreign keys apart, which `table_templates` sees to.
    ``rows``: as many values a unique column needs at least."""
    rules = checks.read(entity.checks, [one.name for one in entity.fields])
    alone = {names[0] for names in (*entity.uniques, entity.keys) if len(names) == 1}
    found = []
    for column in entity.fields:
        values = _sampled(sample, column.name)
        plain = [value for value in values if value is not None]
        unique = column.unique or column.name in alone
        rule = rules.of(column.name)
        nulls = len(values) - len(plain)
        joined = any(len(names) > 1 and column.name in names for names in (*entity.uniques, entity.keys))
        asked = Asked(entity, column, rule, plain, nulls, unique, joined, vocabulary, rows)
        found.append(_column(asked, rules, {one.name: one for one in entity.fields}))
    _agree(found, vocabulary)
    return found


def _agree(found: list[Found], vocabulary: Vocabulary) -> None:
    """Unique fields that cannot be so beside each other: of one place, one alone decides, and a department goes with a
    job. A country and its code follow from each other; others get a group of their own, at last a random text."""
    made = [one for one in found if one.field is not None]
    groups: Counter[str] = Counter()
    for attempt in range(2):
        clashing = _clashing(made, vocabulary)
        settled = [one for one in made if one not in clashing]
        for one in clashing:
            field, kind = one.field, find(one.field["type"] if one.field else "")
            assert field is not None
            assert kind is not None
            country = next((other.field for other in settled if _decides(other)), None)
            if field["type"] in _OF_COUNTRY and country is not None:
                del field["unique"]
                field |= {key: country[key] for key in ("group",) if key in country}
            elif attempt == 0 and kind.group_kind is not None:
                groups[kind.group_kind] += 1
                field["group"] = f"{kind.group_kind}_{groups[kind.group_kind] + 1}"
            else:
                one.field = definition(one.column, "regexp", {"string": "[A-Z0-9]{8}"}, unique=True)
                one.state, one.reason = (
                    "yellow",
                    "It is unique, and no type beside the others can be: random text.",
                )
            settled.append(one)


_OF_COUNTRY: Final = ("country", "country_code")


def _decides(one: Found) -> bool:
    return one.field is not None and one.field["type"] in _OF_COUNTRY and bool(one.field.get("unique"))


def _clashing(made: Sequence[Found], vocabulary: Vocabulary) -> list[Found]:
    """The columns whose fields cannot be unique beside the others."""
    try:
        compile_plan(parse([one.field for one in made]), vocabulary)
    except SpecError as error:
        places = [re.fullmatch(r"fields\[(\d+)\]\.unique", fault.path) for fault in error.faults]
        return [made[int(place[1])] for place in places if place]
    return []


def _sampled(sample: pa.RecordBatch | None, name: str) -> list[Any]:
    if sample is None or name not in sample.schema.names:
        return []
    return sample.column(name).to_pylist()


def _column(asked: Asked, rules: Rules, beside: Mapping[str, Column]) -> Found:
    column = asked.column
    if column.generated == "computed":
        return Found(column.name, None, "green", "The target computes it.")
    if column.generated == "identity":
        if column.name in asked.entity.keys:
            made = definition(column.name, "row_number")
            told = "The target counts it: a push leaves it out, and rows that refer to it get its real value."
            return Found(column.name, made, "green", told)
        return Found(column.name, None, "green", "The target counts it.")
    nested = column.declared.startswith(
        "Navigation("
    )  # rows inside this one: a person decides whether to make them
    made = _later(asked, rules, beside) or (None if nested else _by_type(asked))
    if made is None:
        if column.nullable or column.default is not None:
            word = "may be blank" if column.nullable else "has a default"
            return Found(
                column.name, None, "yellow", f"Nothing is made for {column.declared}; the column {word}."
            )
        return Found(
            column.name, None, "red", f"Nothing is made for {column.declared}, and the column needs a value."
        )
    _blanks(asked, made)
    unread = rules.unread.get(column.name, [])
    if unread:
        return Found(
            column.name, made, "yellow", f"Its check was not understood, rows may be refused: {unread[0]}"
        )
    if asked.notes:
        return Found(column.name, made, "yellow", " ".join(asked.notes))
    return Found(column.name, made, "green", _told(made))


def _told(made: Field) -> str:
    kind = find(made["type"])
    cut = ", cut to the column's length" if "formula" in made else ""
    return f"Made as {kind.label if kind else made['type']}{cut}."


def _blanks(asked: Asked, made: Field) -> None:
    total = asked.nulls + len(asked.values)
    if asked.column.nullable and asked.nulls and not asked.unique and total >= limits.INFER_FEW:
        made["percent_blank"] = min(95, round(100 * asked.nulls / total / 5) * 5)


# --- By type ------------------------------------------------------------------------------------------------


def _later(asked: Asked, rules: Rules, beside: Mapping[str, Column]) -> Field | None:
    """A date that is not before another one of its row."""
    other = beside.get(rules.later.get(asked.column.name, ""))
    if other is None:
        return None
    pairs = {("date", "date"), ("timestamp", "timestamp"), ("timestamptz", "timestamptz")}
    if (asked.column.type, other.type) in pairs and not asked.unique:
        return definition(
            asked.column.name, "date_relative", {"field": other.name, "min": "1d", "max": "30d"}
        )
    asked.notes.append(f"A check compares it with {other.name}, which is not kept: rows may be refused.")
    return None


def _by_type(asked: Asked) -> Field | None:
    column, rule = asked.column, asked.rule
    if rule.choices is not None and column.type != "enum":
        return _chosen(asked, rule.choices)
    makers = {
        "text": texts.text, "integer": imports_numbers.integer_, "decimal": imports_numbers.decimal_,
        "float": imports_numbers.float_, "boolean": _boolean,
        "date": _moment, "timestamp": _moment, "timestamptz": _moment, "time": _plain("time"),
        "interval": _plain("duration"), "uuid": _plain("uuid"), "json": _json, "enum": _enum, "binary": _binary,
        "array": _array, "objectid": _plain("mongodb_objectid"), "other": _other,
    }  # fmt: skip
    return makers[column.type](asked)


def _plain(kind: str) -> Any:
    def make(asked: Asked) -> Field:
        return definition(asked.column.name, kind, unique=asked.unique and kind != "uuid")

    return make


def _chosen(asked: Asked, choices: Sequence[Any]) -> Field | None:
    values = [one for one in choices if one not in asked.rule.excluded]
    if asked.column.type in ("integer", "decimal", "float"):
        numbers = [checks.number(one) for one in values]
        values = [jsonable(one) for one in numbers if one is not None]
    elif asked.longest is not None:
        values = [one for one in values if not isinstance(one, str) or len(one) <= asked.longest]
    if not values:
        return None
    if asked.unique:
        asked.notes.append(f"It is unique and has {len(values)} values: no more rows than that.")
    return definition(asked.column.name, "enum", {"values": values}, unique=asked.unique)


def _enum(asked: Asked) -> Field | None:
    choices = [one for one in asked.column.choices if asked.rule.choices is None or one in asked.rule.choices]
    return _chosen(asked, choices)


def _boolean(asked: Asked) -> Field:
    if asked.unique:
        asked.notes.append("It is unique: no more than two rows.")
        return definition(asked.column.name, "enum", {"values": [True, False]}, unique=True)
    return definition(asked.column.name, "boolean")


def _json(asked: Asked) -> Field:
    asked.notes.append("Any JSON is as good as another: a small object is made; say what belongs into it.")
    inner = [{"name": "value", "type": "words", "options": {}}]
    return definition(asked.column.name, "nested", {"fields": inner})


def _binary(asked: Asked) -> Field:
    length = min(asked.longest or 16, 16)
    asked.notes.append("Random letters stand for its bytes.")
    return definition(asked.column.name, "regexp", {"string": f"[a-f0-9]{{{length}}}"}, unique=asked.unique)


def _array(asked: Asked) -> Field | None:
    if asked.column.nullable or asked.column.default is not None:
        return None
    asked.notes.append("It is made as an empty array.")
    return definition(asked.column.name, "constant", {"value": "{}"})


# Types that other kinds of target have, by how they are declared.
_DECLARED: Final[Sequence[tuple[str, str, dict[str, Any]]]] = (
    (r"^(inet|cidr)\b", "ipv4", {}),
    (r"^macaddr$", "mac_address", {}),
    (r"^macaddr8$", "regexp", {"string": "([0-9a-f]{2}:){7}[0-9a-f]{2}"}),
    (r"^(small)?money$", "number", {"min": 1, "max": 1000, "decimals": 2}),
    (r"^time with time zone|^timetz", "time", {}),
    (r"^year\b", "year", {"min": 1990, "max": 2030}),
    (r"^xml$", "constant", {"value": "<none/>"}),
    (r"^tsvector$", "words", {}),
    (r"range$", "constant", {"value": "empty"}),
    (r"^point$", "regexp", {"string": r"\([0-9]{1,2},[0-9]{1,2}\)"}),
)


def _other(asked: Asked) -> Field | None:
    declared = asked.column.declared.lower()
    bits = re.match(r"^bit(?: varying)?(?:\((\d+)\))?$", declared)
    if bits:
        return definition(
            asked.column.name, "regexp", {"string": f"[01]{{{bits[1] or 1}}}"}, unique=asked.unique
        )
    for pattern, kind, options in _DECLARED:
        if re.search(pattern, declared):
            if kind == "constant" and asked.unique:
                return None
            asked.notes.append(f"{asked.column.declared} is made as {kind}.")
            return definition(asked.column.name, kind, options, unique=asked.unique)
    return None


# --- Dates --------------------------------------------------------------------------------------------------


def _moment(asked: Asked) -> Field | None:
    column, rule = asked.column, asked.rule
    kind = "date" if column.type == "date" else "datetime"
    low, high = _day(rule.low, rule.low_open), _day(rule.high, -1 if rule.high_open else 0)
    options: dict[str, Any] = {}
    if low is not None:
        options = {"min": "+1d", "max": "+365d"} if low == "now" else {"min": low, "max": _years_after(low)}
    if high is not None:
        options |= {"max": "-1d" if high == "now" else high}
        options.setdefault("min", "-3650d" if high == "now" else _years_after(high, -10))
    if (rule.low is not None and low is None) or (rule.high is not None and high is None):
        asked.notes.append("A bound of its checks was not understood: rows may be refused.")
    if kind == "date" and low is None and high in (None, "now") and _BIRTH.search(column.name.lower()):
        options = {"min": "-32000d", "max": "-6600d"}
    return definition(column.name, kind, options, unique=asked.unique)


_BIRTH: Final = re.compile(r"birth|born|\bdob\b")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


def _day(value: Any, further: int = 0) -> str | None:
    """A bound as a day, moved on by so many days; `now` stays."""
    if value == "now":
        return "now"
    if not isinstance(value, str) or not (match := _DAY.match(value)):
        return None
    return (date.fromisoformat(match[0]) + timedelta(days=int(further))).isoformat()


def _years_after(day: str, years: int = 10) -> str:
    return (date.fromisoformat(day) + timedelta(days=365 * years)).isoformat()


def countable(made: Field, vocabulary: Vocabulary) -> bool:
    """Whether a field's values can be dealt out in combinations with those of others."""
    if made["type"] in ("reference", "foreign_key"):
        return made["options"].get("template_id") != "self"
    try:
        column = compile_plan(parse([made]), vocabulary).layer.columns[made["name"]]
    except SpecError:
        return False
    return column.type.primary or (column.type.space() is not None and column.type.group_kind is None)

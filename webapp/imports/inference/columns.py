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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final, Literal

import pyarrow as pa

from webapp import limits
from webapp.connectors.schema import Column, Entity
from webapp.engine import groups
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.engine.types.registry import find
from webapp.imports.inference import checks, domains, lexicon, names, texts
from webapp.imports.inference import numbers as imports_numbers
from webapp.imports.inference.checks import Rules
from webapp.imports.inference.evidence import ColumnEvidence, Field, definition, jsonable

State = Literal["green", "yellow", "red"]
Confidence = Literal["high", "check", "unknown"]


@dataclass(slots=True)
class ColumnResult:
    """What one column came to. Without a `field` nothing is made for it, and `reason` says why."""

    column: str
    field: Field | None
    state: State
    reason: str
    guessed: bool = False
    """Whether nothing says what the column contains, so that the field is only one of the column's type."""

    @property
    def confidence(self) -> Confidence:
        """How sure the choice is: high only for what was recognized."""
        if self.state == "red" or self.guessed:
            return "unknown"
        return "high" if self.state == "green" else "check"


def columns(
    entity: Entity, sample: pa.RecordBatch | None, vocabulary: Vocabulary, rows: int = limits.DEFAULT_QUANTITY
) -> list[ColumnResult]:
    """A field for each column of a table that rows bring; foreign keys apart, which `table_templates` sees to.
    ``rows``: as many values a unique column needs at least."""
    rules = checks.read(entity.checks, [one.name for one in entity.fields])
    alone = {names[0] for names in (*entity.uniques, entity.keys) if len(names) == 1}
    locale = lexicon.locale_of(
        [
            names.split(one)
            for one in ((entity.parts or (entity.name,))[-1], *(one.name for one in entity.fields))
        ]
    )
    found = []
    for column in entity.fields:
        values: list[Any] = []
        if sample is not None and column.name in sample.schema.names:
            values = sample.column(column.name).to_pylist()
        plain = [value for value in values if value is not None]
        unique = column.unique or column.name in alone
        rule = rules.of(column.name)
        nulls = len(values) - len(plain)
        joined = any(len(names) > 1 and column.name in names for names in (*entity.uniques, entity.keys))
        asked = ColumnEvidence(
            entity, column, rule, plain, nulls, unique, joined, vocabulary, rows, locale=locale
        )
        found.append(_column(asked, rules, {one.name: one for one in entity.fields}))
    _agree(found, vocabulary)
    _totals(entity, rules, found)
    _ordered_numbers(rules, found)
    return found


_NUMBERS: Final = ("integer", "decimal", "float")


def _ordered_numbers(rules: Rules, found: Sequence[ColumnResult]) -> None:
    """Give numbers of which one is never below the other ranges that do not overlap."""
    fields = {
        one.column: one
        for one in found
        if one.field is not None
        and one.field["type"] == "number"
        and "formula" not in one.field
        and {"min", "max"} <= one.field["options"].keys()
    }
    later = {**_named_pairs(fields), **rules.later}
    pairs = [(first, last) for last, first in later.items() if first in fields and last in fields]
    pairs.sort(key=lambda pair: _depth(pair[0], later))
    for first, last in pairs:
        low, high = fields[first].field, fields[last].field
        assert low is not None
        assert high is not None
        least, most = Decimal(str(low["options"]["min"])), Decimal(str(high["options"]["max"]))
        decimals = min(one["options"].get("decimals", 0) for one in (low, high))
        step = Decimal(1).scaleb(-decimals)
        shared = (
            max(least, Decimal(str(high["options"]["min"]))),
            min(most, Decimal(str(low["options"]["max"]))),
        )
        middle = ((shared[0] + shared[1]) / 2).quantize(step, "ROUND_FLOOR")
        end = min(middle, Decimal(str(low["options"]["max"])))
        start = max(middle + step, Decimal(str(high["options"]["min"])))
        if least > end or start > most:
            continue
        low["options"] = {**low["options"], "max": jsonable(end)}
        high["options"] = {**high["options"], "min": jsonable(start)}
        why = "as a check demands" if last in rules.later else "as their names say"
        fields[last].reason = f"{fields[last].reason} Above {first}, {why}."


_PAIRED: Final = (
    ("max", "min"),
    ("maximum", "minimum"),
    ("high", "low"),
    ("upper", "lower"),
    ("highest", "lowest"),
)


def _named_pairs(columns: Iterable[str]) -> dict[str, str]:
    """Return the numbers whose name differs from another one's only in `max` for `min` and the like, with that one."""
    by_words = {tuple(lexicon.english(names.split(one))): one for one in columns}
    found = {}
    for words, column in by_words.items():
        for high, low in _PAIRED:
            other = by_words.get(tuple(low if one == high else one for one in words))
            if other is not None and other != column:
                found[column] = other
    return found


def _depth(column: str, later: Mapping[str, str]) -> int:
    """How many columns are below a column in checks."""
    depth = 0
    while column in later and depth < len(later):
        column, depth = later[column], depth + 1
    return depth


_PARTS: Final = (
    (r"(^|_)(total|line_total|total_price|line_amount|extended_price|total_amount|amount)$", "quantity",
     "unit_price|price", "*"),
    (r"(^|_)(total|total_amount|grand_total|gross_amount|amount_total)$", "subtotal|sub_total|net_amount",
     "tax|tax_amount|vat_amount", "+"),
)  # fmt: skip
"""Totals: the name in English, the names of their two parts, and how these are combined."""


def _totals(entity: Entity, rules: Rules, found: list[ColumnResult]) -> None:
    """Derive totals from their parts, where the table has both and the result fits into the column."""
    fields = {one.column: one for one in found if one.field is not None and one.field["type"] == "number"}
    columns = {"_".join(lexicon.english(names.split(name))): entity.column(name) for name in fields}
    for words, column in columns.items():
        if (
            column is None
            or column.type not in ("decimal", "float")
            or column.unique
            or column.name in rules.unread
        ):
            continue
        for pattern, first, second, sign in _PARTS:
            parts = [
                next((columns[one] for one in part.split("|") if one in columns and one != words), None)
                for part in (first, second)
            ]
            if re.search(pattern, words) and _combines(column, parts, rules, fields, sign):
                made = fields[column.name].field
                assert made is not None
                made["formula"] = f" {sign} ".join(part.name for part in parts if part is not None)
                fields[column.name].reason = f"Calculated from other columns: {made['formula']}."
                fields[column.name].state, fields[column.name].guessed = "green", False
                break


def _combines(
    column: Column,
    parts: Sequence[Column | None],
    rules: Rules,
    fields: Mapping[str, ColumnResult],
    sign: str,
) -> bool:
    most, decimals = Decimal(1 if sign == "*" else 0), 0
    rule = rules.of(column.name)
    if rule.low is not None or rule.high is not None or rule.choices is not None:
        return False
    for part in parts:
        if part is None or not re.fullmatch(r"[A-Za-z_]\w*", part.name):
            return False
        made = fields[part.name].field
        if (
            made is None
            or "formula" in made
            or made.get("percent_blank")
            or made["options"].get("max") is None
        ):
            return False
        largest, places = Decimal(str(made["options"]["max"])), int(made["options"].get("decimals", 0))
        most = most * largest if sign == "*" else most + largest
        decimals = decimals + places if sign == "*" else max(decimals, places)
    if column.type == "float":
        return True
    scale = 2 if column.scale is None else column.scale
    return decimals <= scale and (column.precision is None or most.adjusted() < column.precision - scale)


def _agree(found: list[ColumnResult], vocabulary: Vocabulary) -> None:
    """Unique fields that cannot be so beside each other: of one place, one alone decides, and a department goes with a
    job. A country and its code follow from each other; others get a group of their own, at last a random text."""
    made = [one for one in found if one.field is not None]
    used: Counter[str] = Counter()
    for attempt in range(2):
        try:
            compile_plan(groups.assign(parse([one.field for one in made])), vocabulary)
            break
        except SpecError as error:
            places = [re.fullmatch(r"fields\[(\d+)\]\.unique", fault.path) for fault in error.faults]
        clashing = [made[int(place[1])] for place in places if place]
        if not clashing:
            break
        settled = [one for one in made if one not in clashing]
        for one in clashing:
            field, kind = one.field, find(one.field["type"] if one.field else "")
            assert field is not None
            assert kind is not None
            deciding = (
                other.field
                for other in settled
                if other.field is not None
                and other.field["type"] in _OF_COUNTRY
                and other.field.get("unique")
            )
            country = next(deciding, None)
            if field["type"] in _OF_COUNTRY and country is not None:
                del field["unique"]
                field |= {key: country[key] for key in ("group",) if key in country}
            elif attempt == 0 and kind.group_kind is not None:
                used[kind.group_kind] += 1
                field["group"] = f"{kind.group_kind}_{used[kind.group_kind] + 1}"
            else:
                one.field = definition(one.column, "regexp", {"string": "[A-Z0-9]{8}"}, unique=True)
                one.state, one.reason = (
                    "yellow",
                    "It is unique, and no type beside the others can be: random text.",
                )
            settled.append(one)


_OF_COUNTRY: Final = ("country", "country_code")


def _column(asked: ColumnEvidence, rules: Rules, beside: Mapping[str, Column]) -> ColumnResult:
    column = asked.column
    made: Field | None
    if column.generated == "computed":
        return ColumnResult(column.name, None, "green", "The target computes it.")
    if column.generated == "identity":
        if column.name in asked.entity.keys or asked.unique:  # other tables may refer to it
            made = definition(column.name, "row_number")
            told = "The target counts it: a push leaves it out, and rows that refer to it get its real value."
            return ColumnResult(column.name, made, "green", told)
        return ColumnResult(column.name, None, "green", "The target counts it.")
    nested = column.declared.startswith(
        "Navigation("
    )  # rows inside this one: a person decides whether to make them
    made = _later(asked, rules, beside) or (None if nested else _by_type(asked))
    if made is None:
        if column.nullable or column.default is not None:
            word = "may be blank" if column.nullable else "has a default"
            return ColumnResult(
                column.name, None, "yellow", f"Nothing is made for {column.declared}; the column {word}."
            )
        return ColumnResult(
            column.name, None, "red", f"Nothing is made for {column.declared}, and the column needs a value."
        )
    total = asked.nulls + len(asked.values)
    if column.nullable and asked.nulls and not asked.unique and total >= limits.INFER_FEW:
        made["percent_blank"] = min(95, round(100 * asked.nulls / total / 5) * 5)
    elif column.nullable and not asked.values and not asked.unique and made["type"] != "boolean":
        seldom = ("date", "timestamp", "timestamptz", "text", "integer")
        if _RARELY.search(domains.words_of(asked)) and column.type in seldom:
            made["percent_blank"] = _RARE
    unread = rules.unread.get(column.name, [])
    if unread:
        return ColumnResult(
            column.name, made, "yellow", f"Its check was not understood, rows may be refused: {unread[0]}"
        )
    if asked.notes:
        return ColumnResult(column.name, made, "yellow", " ".join(asked.notes), asked.guessed)
    kind = find(made["type"])
    label = kind.label if kind else made["type"]
    if asked.guessed:
        told = f"Neither the name nor the values say what it contains: {label}. Choose a type for it."
        return ColumnResult(column.name, made, "yellow", told, True)
    return ColumnResult(column.name, made, "green", f"Recognized as {label}.")


_RARE: Final = 95  # chosen: percent of rows without a date of deletion
_RARELY: Final = re.compile(
    r"(^|_)(deleted|archived|cancell?ed|banned|suspended|locked|blocked|discarded|trashed|terminated|removed|revoked"
    r"|voided|retired|withdrawn|deactivated|purged|deceased|death|deletion_mark)(_at|_on|_by|_date|_time|_timestamp|_reason)?$"
    r"|(^|_)date_(deleted|removed|voided|retired|withdrawn|cancell?ed|archived|revoked)$"
)


# --- By type ------------------------------------------------------------------------------------------------


def _later(asked: ColumnEvidence, rules: Rules, beside: Mapping[str, Column]) -> Field | None:
    """A date that is not before another one of its row, as a check says, or by its name: an end after its start, an
    update after a creation."""
    column, rule = asked.column, asked.rule
    checked = beside.get(rules.later.get(column.name, ""))
    if checked is not None:
        pairs = {("date", "date"), ("timestamp", "timestamp"), ("timestamptz", "timestamptz")}
        if (column.type, checked.type) in pairs and not asked.unique:
            options = {"field": checked.name, "min": "1d", "max": "30d"}
            return definition(column.name, "date_relative", options)
        if column.type not in _NUMBERS or checked.type not in _NUMBERS:
            text = f"A check compares it with {checked.name}, which is not kept: rows may be refused."
            asked.notes.append(text)
        return None
    if column.type not in ("date", "timestamp", "timestamptz") or asked.unique or asked.values:
        return None
    if rule.low is not None or rule.high is not None or rule.choices is not None or column.generated:
        return None
    words = domains.words_of(asked)
    for later, earlier, least, most in _ORDERED:
        if not re.search(later, words):
            continue
        others = [
            (len(set(words.split("_")) & set(said.split("_"))), other)
            for other in beside.values()
            if other.type == column.type
            and other.name != column.name
            and re.search(earlier, said := "_".join(lexicon.english(names.split(other.name))))
            and not any(re.search(one[0], said) for one in _ORDERED)
            and not _RARELY.search(said)
        ]
        if others:  # the one whose name shares the most words
            _, other = max(others, key=lambda one: one[0])
            least = "1d" if column.type == "date" and least == "0d" else least
            most = "2d" if column.type == "date" and most.endswith("h") else most
            least = "1d" if column.type == "date" and least.endswith("h") else least
            return definition(column.name, "date_relative", {"field": other.name, "min": least, "max": most})
    return None


# Dates of which one is never before the other, in English: the later one, those before it, and the usual distance.
_ORDERED: Final = (
    (r"(^|_)(updated|modified|changed|last_update|last_updated|last_modified|edited)", r"(^|_)(created|creation"
     r"|inserted|added|registered)", "0d", "60d"),
    (r"(^|_)(end|ends|ended|to|until|till|finish|finished|stop)(_|$)", r"(^|_)(start|starts|started|from|begin"
     r"|begins|began|since)(_|$)", "1d", "60d"),
    (r"(^|_)(arrival|arrives|arrived|landed)", r"(^|_)(departure|departs|departed)", "1h", "12h"),
    (r"(^|_)(check_?out|return|returned)(_|$)", r"(^|_)(check_?in|rental|rented|borrowed|loan|issued)(_|$)",
     "1d", "14d"),
    (r"(^|_)(due|expires|expired|expiry|expiration|maturity)(_|$)", r"(^|_)(issued|issue|invoice|start|started"
     r"|open|opened|effective|created|rental|order|document|posting)(_|$)", "7d", "60d"),
    (r"(^|_)(ship|shipped|delivered|delivery|required|paid|payment|fulfilled|dispatched|approved)(_|$)",
     r"(^|_)(order|ordered|invoice|invoiced|issued|placed|requested|created|submitted)(_|$)", "1d", "14d"),
    (r"(^|_)(close|closed|completed|resolved|cancell?ed|deleted|archived|terminated|termination|leave|left"
     r"|disabled|revoked|published|confirmed|processed)(_|$)", r"(^|_)(open|opened|started|start|hire|hired|order"
      r"|ordered|requested|created|registered|posted)(_|$)", "1d", "60d"),
)  # fmt: skip


def _by_type(asked: ColumnEvidence) -> Field | None:
    column, rule = asked.column, asked.rule
    if rule.choices is not None and column.type != "enum":
        return _chosen(asked, rule.choices)
    makers: dict[str, Callable[[ColumnEvidence], Field | None]] = {
        "text": texts.text, "integer": imports_numbers.integer_, "decimal": imports_numbers.decimal_,
        "float": imports_numbers.float_, "boolean": _boolean,
        "date": _moment, "timestamp": _moment, "timestamptz": _moment, "time": _plain("time"),
        "interval": _plain("duration"), "uuid": _plain("uuid"), "json": _json, "enum": _enum, "binary": _binary,
        "array": _array, "objectid": _plain("mongodb_objectid"), "other": _other,
    }  # fmt: skip
    return makers[column.type](asked)


def _plain(kind: str) -> Callable[[ColumnEvidence], Field]:
    def make(asked: ColumnEvidence) -> Field:
        return definition(asked.column.name, kind, unique=asked.unique and kind != "uuid")

    return make


def _chosen(asked: ColumnEvidence, choices: Sequence[Any]) -> Field | None:
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
    if asked.column.type == "text" and not asked.unique and domains.is_flag(words := domains.words_of(asked)):
        folded = {str(one).upper(): one for one in values}
        yes, no = (
            next((folded[one] for one in pair if one in folded), None)
            for pair in (("Y", "T", "1"), ("N", "F", "0"))
        )
        if yes is not None and no is not None and len(values) == len(("yes", "no")):
            options = {"truthy": yes, "falsy": no, "probability": domains.flag_share(words)}
            return definition(asked.column.name, "boolean", options)
    return definition(asked.column.name, "enum", {"values": values}, unique=asked.unique)


def _enum(asked: ColumnEvidence) -> Field | None:
    choices = [one for one in asked.column.choices if asked.rule.choices is None or one in asked.rule.choices]
    return _chosen(asked, choices)


def _boolean(asked: ColumnEvidence) -> Field:
    if asked.unique:
        asked.notes.append("It is unique: no more than two rows.")
        return definition(asked.column.name, "enum", {"values": [True, False]}, unique=True)
    words = domains.words_of(asked)
    share = domains.flag_share(words)
    if len(asked.values) >= limits.INFER_FEW:
        share = round(sum(map(bool, asked.values)) / len(asked.values), 2)
    options = {} if share == 0.5 else {"probability": share}
    return definition(asked.column.name, "boolean", options)


def _json(asked: ColumnEvidence) -> Field:
    asked.notes.append("Any JSON is as good as another: a small object is made; say what belongs into it.")
    inner = [{"name": "value", "type": "words", "options": {}}]
    return definition(asked.column.name, "nested", {"fields": inner})


def _binary(asked: ColumnEvidence) -> Field:
    length = max(asked.rule.shortest, min(asked.longest or 16, 16))
    asked.notes.append("Random letters stand for its bytes.")
    return definition(asked.column.name, "regexp", {"string": f"[a-f0-9]{{{length}}}"}, unique=asked.unique)


def _array(asked: ColumnEvidence) -> Field | None:
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
    (r"^ltree\b", "regexp", {"string": r"[a-z]{5}\.[a-z]{6}(\.[a-z]{4})?"}),
    (r"^hstore\b", "regexp", {"string": r"\"[a-z]{4}\"=>\"[a-z]{6}\""}),
    (
        r"^(geometry|geography)\(point,4326\)",
        "regexp",
        {"string": r"SRID=4326;POINT\([1-8][0-9]\.[0-9]{4} [1-8][0-9]\.[0-9]{4}\)"},
    ),
    (r"^point$", "regexp", {"string": r"\([0-9]{1,2},[0-9]{1,2}\)"}),
)


def _other(asked: ColumnEvidence) -> Field | None:
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


def _moment(asked: ColumnEvidence) -> Field | None:
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
    if kind == "date" and low is None and high in (None, "now") and _BIRTH.search(domains.words_of(asked)):
        options = {"min": "-27000d", "max": "-6600d"}
    return definition(column.name, kind, options, unique=asked.unique)


_BIRTH: Final = re.compile(r"birth|born|\bdob\b")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


def _day(value: Any, further: int = 0) -> str | None:
    """A bound as a day, moved on by so many days; `now` stays."""
    if value == "now":
        return "now"
    if not isinstance(value, str) or not (match := _DAY.match(value)):
        return None
    try:
        return (date.fromisoformat(match[0]) + timedelta(days=int(further))).isoformat()
    except (ValueError, OverflowError):  # 2021-02-30, and the day after the last one
        return None


def _years_after(day: str, years: int = 10) -> str:
    """A day moved on by so many years, as far as the calendar goes."""
    first, last = date.min.toordinal(), date.max.toordinal()
    moved = date.fromisoformat(day).toordinal() + 365 * years
    return date.fromordinal(min(max(moved, first), last)).isoformat()


def countable(made: Field, vocabulary: Vocabulary) -> bool:
    """Return whether a field's values can be combined freely with those of others."""
    if made["type"] in ("reference", "foreign_key"):
        return bool(made["options"].get("template_id") != "self")
    try:
        column = compile_plan(parse([made]), vocabulary).layer.columns[made["name"]]
    except SpecError:
        return False
    return column.type.primary or (column.type.space() is not None and column.type.group_kind is None)

"""Mockaroo's schema files: types are found by the names that they have there, options where they mean the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.connectors.schema import Column, Entity
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.engine.types.registry import find
from webapp.imports.inference.columns import Found
from webapp.imports.inference.evidence import Field, definition
from webapp.imports.readers import csv, json_rows
from webapp.imports.readers.base import Read, Source, Table, Unreadable, clean, fallback, named

_TYPES: Final[Mapping[str, str]] = {
    "custom list": "enum", "blank": "null", "row number": "row_number", "datetime": "datetime", "date": "date",
    "regular expression": "regexp", "character sequence": "character_sequence", "digit sequence": "digit_sequence",
    "sentences": "sentences", "paragraphs": "paragraphs", "words": "words", "number": "number", "boolean": "boolean",
    "email address": "email", "ip address v4": "ipv4", "ip address v6": "ipv6", "guid": "uuid", "full name": "name",
    "phone": "phone_number", "postal code": "zip_code", "state (abbrev)": "state_abbr",
    "gender (abbrev)": "sex", "country code": "country_code", "currency code": "currency_code",
    "credit card #": "credit_card_number", "credit card type": "credit_card_type", "job title": "job_title",
    "company name": "company_name", "street address": "street_address", "url": "url", "domain name": "domain_name",
    "hex color": "hex_color", "isbn": "isbn", "ssn": "ssn", "time": "time", "mac address": "mac_address",
    "mongodb objectid": "mongodb_objectid", "buzzword": "words", "title": "title", "money": "money",
}  # fmt: skip
_TAKEN: Final = {
    "number": {"min": "min", "max": "max", "decimals": "decimals"},
    "enum": {"values": "values"},
    "regexp": {"value": "string"},
    "character_sequence": {"format": "format"}, "digit_sequence": {"format": "format"},
    "money": {"min": "min", "max": "max"},
}  # fmt: skip
"""Options that mean the same, by our type: Mockaroo's name, ours."""


def is_one(value: Any) -> bool:
    """Whether a JSON document is such a file."""
    inner = value.get("columns") if isinstance(value, dict) else None
    return (
        isinstance(inner, list)
        and bool(inner)
        and all(isinstance(one, dict) and "type" in one for one in inner)
    )


def read(source: Source, words: Vocabulary) -> Read:
    """One table. Raises `Unreadable`."""
    value = json_rows.parsed(source)
    if not is_one(value):
        raise Unreadable(
            "This is no schema file of Mockaroo.", 'It needs {"name": ..., "columns": [{"name", "type"}]}.'
        )
    found = Read("mockaroo")
    given = value["columns"]
    names, told = named(one.get("name", "") for one in given)
    title = clean(value.get("name") or source.stem) or "rows"
    kept = list(zip(names, given, strict=True))[: limits.MAX_FIELDS]
    table = Table(
        Entity(title, (title,), tuple(Column(name, "text", str(one["type"])[:100]) for name, one in kept))
    )
    table.ready = {name: _found(name, one, words) for name, one in kept}
    for name, text in told.items():
        table.note(name, text)
    csv.beyond(title, names, found)
    found.tables.append(table)
    return found


def _found(name: str, given: Mapping[str, Any], words: Vocabulary) -> Found:
    called = str(given["type"])
    kind = find(_TYPES.get(called.casefold(), called))
    if kind is None:
        return fallback(name, f'there is no type "{clean(called)[:80]}" here. Pick one that is like it.')
    made: Field = definition(name, kind.name, _options(kind.name, given))
    lost = []
    share = given.get("null_percentage")
    if isinstance(share, int | float) and 0 < share <= 100 and kind.name != "null":
        made["percent_blank"] = round(float(share), 2)
    if given.get("formula"):
        lost.append(f"Its formula is Ruby and was left out: {clean(given['formula'])[:120]}")
    if not _fits(made, words):
        blank = {key: made[key] for key in ("percent_blank",) if key in made}
        made = {**definition(name, kind.name), **blank}
        lost.append("Its options did not fit, and were left out.")
        if not _fits(made, words):
            return fallback(name, f"{kind.label} needs options that the file does not have.")
    if lost:
        return Found(name, made, "yellow", " ".join(lost))
    return Found(name, made, "green", f'"{clean(called)[:80]}" is {kind.label} here.')


def _options(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        ours: given[theirs] for theirs, ours in _TAKEN.get(kind, {}).items() if given.get(theirs) is not None
    }
    if kind == "enum" and isinstance(given.get("values"), str):
        found["values"] = [one.strip() for one in given["values"].split(",")]
    if kind in ("date", "datetime"):
        found |= _days(given)
    if kind in ("words", "sentences", "paragraphs") and isinstance(given.get("max"), int):
        found["count"] = max(1, min(given["max"], limits.MAX_WORDS))
    return found


def _days(given: Mapping[str, Any]) -> dict[str, Any]:
    """Bounds, which are written as in the United States, and the format, which is strftime's."""
    found: dict[str, Any] = {}
    ends = [str(given.get(end) or "") for end in ("min", "max")]
    if all(ends):
        days = pc.strptime(pa.array(ends), format="%m/%d/%Y", unit="s", error_is_null=True).to_pylist()
        if None not in days and days[0] <= days[1]:
            found |= {"min": days[0].date().isoformat(), "max": days[1].date().isoformat()}
    if isinstance(given.get("format"), str) and "%" in given["format"]:
        found["format"] = given["format"]
    return found


def _fits(made: Field, words: Vocabulary) -> bool:
    try:
        compile_plan(parse([made]), words)
    except SpecError:
        return False
    return True

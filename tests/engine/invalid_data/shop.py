"""A shop with bad data in every way there is, read back by validators that are not ours.

`KINDS` maps fields to kinds. Every field has exactly one kind, so that the validators' errors can be assigned.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

import jsonschema_rs
import openpyxl
import phonenumbers
import pyarrow.parquet as pq
from stdnum import ean, iban, luhn
from stdnum.fr import siret
from stdnum.gb import nhs

from tests.engine.relating import World
from webapp.engine.blocks import BoundPlan
from webapp.engine.formats import FORMATS, write
from webapp.engine.invalid_data.answer_key import AnswerKey

RATE = 0.05
CUSTOMERS, ORDERS = 50, 1_200
NOW = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)
_AGE = {"min": 18, "max": 99}
_PRICE = {"min": 1, "max": 500, "decimals": 2}
_BORN = {"min": "1950-01-01", "max": "2005-12-31"}
_SEEN = {"min": "2020-01-01T00:00:00Z", "max": "2024-12-31T23:59:59Z"}
_HOURS = {"min": "08:00", "max": "18:00"}

FIELDS: dict[str, tuple[str, dict[str, Any], str]] = {
    "email_format": ("email", {}, "bad_format"),
    "email_long": ("email", {}, "too_long"),
    "email_missing": ("email", {}, "missing"),
    "email_injected": ("email", {}, "injection"),
    "email_edge": ("email", {}, "unicode_edge"),
    "name_edge": ("regexp", {"string": "[A-Z][a-z]{4,9}"}, "unicode_edge"),
    "city_injected": ("regexp", {"string": "[A-Z][a-z]{4,9}"}, "injection"),
    "code_long": ("regexp", {"string": "[A-Z]{4,8}"}, "too_long"),
    "phone": ("phone_number", {}, "bad_format"),
    "url": ("url", {}, "bad_format"),
    "uuid": ("uuid", {}, "bad_format"),
    "ip": ("ipv4", {}, "bad_format"),
    "card": ("credit_card_number", {}, "bad_checksum"),
    "card_format": ("credit_card_number", {}, "bad_format"),
    "iban": ("iban", {"countryCode": "DE"}, "bad_checksum"),
    "iban_grouped": ("iban", {"countryCode": "FR", "formatted": True}, "bad_checksum"),
    "ean": ("ean13", {}, "bad_checksum"),
    "nhs": ("nhs_number", {}, "bad_checksum"),
    "siret": ("siret", {}, "bad_checksum"),
    "age_type": ("number", _AGE, "wrong_type"),
    "age_range": ("number", _AGE, "out_of_range"),
    "age_missing": ("number", _AGE, "missing"),
    "price_type": ("number", _PRICE, "wrong_type"),
    "price_range": ("number", _PRICE, "out_of_range"),
    "open_type": ("boolean", {}, "wrong_type"),
    "born_type": ("date", _BORN, "wrong_type"),
    "born_format": ("date", _BORN, "bad_format"),
    "born_range": ("date", _BORN, "out_of_range"),
    "seen_format": ("datetime", _SEEN, "bad_format"),
    "seen_range": ("datetime", _SEEN, "out_of_range"),
    "hour_format": ("time", _HOURS, "bad_format"),
    "hour_range": ("time", _HOURS, "out_of_range"),
    "number": ("row_number", {}, "duplicate"),
    "token": ("uuid", {}, "duplicate"),
    "customer": ("reference", {"template_id": "customers", "field": "id"}, "orphan"),
}


def world(rate: float = RATE) -> World:
    """Customers, and orders with a bad field of every kind."""
    orders = [
        {"name": name, "type": kind, "options": options, "invalid": {"rate": rate, "kinds": [bad]}}
        for name, (kind, options, bad) in FIELDS.items()
    ]
    for order in orders:
        if order["name"] == "token":
            order["unique"] = True
    customers = [{"name": "id", "type": "sequence", "options": {"start": 100, "step": 7}}]
    return World(customers=(CUSTOMERS, customers), orders=(ORDERS, orders))


def file_of(bound: BoundPlan, kind: str, count: int, offset: int = 0) -> bytes:
    """Rows as a file."""
    writer = FORMATS[kind]
    options = writer.Options(table="orders") if kind == "sql" else writer.Options()
    return b"".join(write(writer(bound.schema, options, title="orders"), bound.blocks(offset, count)))


def answers(bound: BoundPlan, count: int, offset: int = 0) -> list[dict[str, Any]]:
    """The answer key, as NDJSON has it."""
    key, writer = AnswerKey(bound, offset, count), FORMATS["ndjson"]
    lines = b"".join(
        write(writer(key.schema(json=True), writer.Options(), title="key"), key.blocks(json=True))
    )
    return [json.loads(line) for line in lines.splitlines()]


# --- Reading files ------------------------------------------------------------------------------------------------


def read(kind: str, data: bytes) -> list[dict[str, Any]]:
    """The rows of a file, by readers that know nothing of us."""
    return list(_READERS[kind](data))


def _csv(data: bytes) -> Iterator[dict[str, Any]]:
    for row in csv.DictReader(io.StringIO(data.decode(), newline="")):
        yield {name: value if value != "" else None for name, value in row.items()}


def _sql(data: bytes) -> list[dict[str, Any]]:
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    # Columns without a type keep what they are given: a number stays a number, text stays text.
    database.execute(f"CREATE TABLE orders ({', '.join(FIELDS)})")
    database.executescript(data.decode())
    return [dict(row) for row in database.execute("SELECT * FROM orders ORDER BY rowid")]


def _xlsx(data: bytes) -> Iterator[dict[str, Any]]:
    sheet = openpyxl.load_workbook(io.BytesIO(data), read_only=True).worksheets[0]
    lines = sheet.iter_rows(values_only=True)
    names = next(lines)
    for line in lines:
        yield dict(zip(names, line, strict=True))


_READERS: dict[str, Callable[[bytes], Any]] = {
    "json": json.loads,
    "ndjson": lambda data: [json.loads(line) for line in data.splitlines()],
    "csv": _csv,
    "sql": _sql,
    "xlsx": _xlsx,
    "parquet": lambda data: pq.read_table(io.BytesIO(data)).to_pylist(),
}

# --- Validating ---------------------------------------------------------------------------------------------------

_EMAIL = re.compile(r"[A-Za-z0-9._%+'-]+@([A-Za-z0-9-]+\.)+[A-Za-z]{2,}")
_WORD = re.compile(r"[A-Z][a-z]{4,9}")
_URL = jsonschema_rs.validator_for({"type": "string", "format": "uri"}, validate_formats=True)
_HTTP = re.compile(r"https?://[a-z0-9]")
_UUID = jsonschema_rs.validator_for({"type": "string", "format": "uuid"}, validate_formats=True)
_IPV4 = jsonschema_rs.validator_for({"type": "string", "format": "ipv4"}, validate_formats=True)
_WHOLE = jsonschema_rs.validator_for({"type": "integer", "minimum": 18, "maximum": 99})
_TRUTH = jsonschema_rs.validator_for({"type": "boolean"})


def _email(value: Any, kind: str, longest: int) -> bool:
    return isinstance(value, str) and _EMAIL.fullmatch(value) is not None and len(value) <= longest


def _text(check: Callable[[str], bool]) -> Callable[..., bool]:
    return lambda value, kind: isinstance(value, str) and check(value)


def _phone(text: str) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(text))
    except phonenumbers.NumberParseException:
        return False


def _age(value: Any, kind: str) -> bool:
    if kind in ("csv", "parquet"):  # where the column is text
        return value is not None and re.fullmatch(r"-?\d+", str(value)) is not None and 18 <= int(value) <= 99
    return _WHOLE.is_valid(value)


def _price(value: Any, kind: str) -> bool:
    if kind not in ("csv", "parquet") and not isinstance(value, int | float):
        return False
    try:
        return Decimal(1) <= Decimal(str(value)) <= Decimal(500)
    except InvalidOperation:
        return False


def _truth(value: Any, kind: str) -> bool:
    if kind in ("csv", "parquet"):
        return value in ("true", "false")
    return value in (0, 1) if kind == "sql" else _TRUTH.is_valid(value)


def _date(value: Any, kind: str) -> bool:
    if isinstance(value, datetime):
        value = value.date().isoformat()
    try:
        return date(1950, 1, 1) <= date.fromisoformat(str(value)) <= date(2005, 12, 31)
    except ValueError:
        return False


def _moment(value: Any, kind: str) -> bool:
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        return False
    found = found.replace(tzinfo=UTC)
    return datetime(2020, 1, 1, tzinfo=UTC) <= found <= datetime(2024, 12, 31, 23, 59, 59, tzinfo=UTC)


def _time(value: Any, kind: str) -> bool:
    try:
        found = value if isinstance(value, time) else time.fromisoformat(str(value))
    except ValueError:
        return False
    return time(8) <= found <= time(18)


def validators(longest: dict[str, int]) -> dict[str, Callable[..., bool]]:
    """Of each field: whether a value of a file of some kind is right. ``longest``: the declared lengths."""
    found: dict[str, Callable[..., bool]] = {
        name: lambda value, kind, name=name: _email(value, kind, longest[name])
        for name, (kind, _, _) in FIELDS.items()
        if kind == "email"
    }
    return found | {
        "name_edge": _text(lambda text: _WORD.fullmatch(text) is not None),
        "city_injected": _text(lambda text: _WORD.fullmatch(text) is not None),
        "code_long": _text(lambda text: len(text) <= longest["code_long"]),
        "phone": _text(_phone),
        "url": _text(lambda text: _URL.is_valid(text) and _HTTP.match(text) is not None),
        "uuid": _text(_UUID.is_valid),
        "ip": _text(_IPV4.is_valid),
        "card": _text(luhn.is_valid),
        "card_format": _text(luhn.is_valid),
        "iban": _text(iban.is_valid),
        "iban_grouped": _text(iban.is_valid),
        "ean": _text(ean.is_valid),
        "nhs": _text(nhs.is_valid),
        "siret": _text(siret.is_valid),
        **dict.fromkeys(("age_type", "age_range", "age_missing"), _age),
        **dict.fromkeys(("price_type", "price_range"), _price),
        "open_type": _truth,
        **dict.fromkeys(("born_type", "born_format", "born_range"), _date),
        **dict.fromkeys(("seen_format", "seen_range"), _moment),
        **dict.fromkeys(("hour_format", "hour_range"), _time),
    }


def found_in(
    rows: list[dict[str, Any]], kind: str, parents: set[int], longest: dict[str, int]
) -> dict[str, set[int]]:
    """Of each field: the rows, counted from 1, whose value a validator refuses."""
    checks = validators(longest)
    bad: dict[str, set[int]] = {name: set() for name in FIELDS}
    seen: dict[str, set[Any]] = {"number": set(), "token": set()}
    for number, row in enumerate(rows, 1):
        for name, check in checks.items():
            if not check(row[name], kind):
                bad[name].add(number)
        for name, before in seen.items():
            if row[name] in before:
                bad[name].add(number)
            before.add(row[name])
        if int(row["customer"]) not in parents:
            bad["customer"].add(number)
    return bad

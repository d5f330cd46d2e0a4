"""Columns become what a person would put into them: in several languages, whole, in order, and honestly rated."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from webapp.connectors.schema import Column, Entity
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.imports.inference import columns
from webapp.imports.inference.lexicon import detect_locale, translate_to_english
from webapp.imports.inference.names import split_words
from webapp.row_templates.services import compilation

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def text(name: str, size: int | None, **more: Any) -> Column:
    return Column(name, "text", "text", max_length=size, **more)


def table(name: str, *fields: Column, **more: Any) -> dict[str, columns.ColumnResult]:
    entity = Entity(name, (name,), fields, **more)
    return {column.column: column for column in columns.infer_columns(entity, None, compilation.vocabulary())}


def rows(found: dict[str, columns.ColumnResult], count: int = 500) -> dict[str, list[Any]]:
    plan = compile_plan(
        parse([result.field for result in found.values() if result.field]), compilation.vocabulary()
    )
    block = BoundPlan(plan, GenerationContext("meanings", NOW)).block(0, count)
    plain = (item.dictionary_decode() if hasattr(item, "dictionary_decode") else item for item in block)
    return dict(zip(plan.layer.schema.names, (item.to_pylist() for item in plain), strict=True))


@pytest.fixture(autouse=True)
def _context(app):
    with app.app_context():
        yield


@pytest.mark.parametrize(
    ("name", "size", "kind", "options"),
    [
        ("country", 2, "country_code", {}),
        ("country", 3, "country_code", {"format": "alpha3"}),
        ("currency", 3, "currency_code", {}),
        ("state", 2, "state_abbr", {}),
    ],
)
def test_short_columns_get_the_code_and_not_a_part_of_the_name(name, size, kind, options):
    field = table("person", text(name, size))[name].field
    assert (field["type"], field["options"]) == (kind, options)
    assert max(map(len, rows({name: table("person", text(name, size))[name]})[name])) == size


@pytest.mark.parametrize(
    ("name", "size"),
    [("country", 15), ("city", 12), ("job_title", 20), ("job_title", 10), ("department", 14)],
)
def test_values_of_a_vocabulary_are_never_cut(name, size):
    kind = table("person", text(name, None))[name]
    whole = set(rows({name: kind}, 200_000)[name])
    result = set(rows(table("person", text(name, size)))[name])
    assert result <= whole
    assert max(map(len, result)) <= size


@pytest.mark.parametrize(("name", "size"), [("title", 20), ("description", 30), ("notes", 16)])
def test_prose_in_short_columns_has_fewer_words(name, size):
    field = table("books", text("isbn", 20), text(name, size))[name].field
    assert field["type"] == "words"
    assert "formula" not in field


@pytest.mark.parametrize(
    ("kind", "name", "size", "expected"),
    [
        ("orders", "status", 20, {"pending", "shipped"}),
        ("invoices", "status", 16, {"draft", "paid"}),
        ("tickets", "priority", 10, {"low", "high"}),
        ("tickets", "status_code", 1, {"O", "C"}),
        ("payments", "payment_method", 20, {"card", "cash"}),
    ],
)
def test_statuses_and_priorities_have_values_of_their_domain(kind, name, size, expected):
    field = table(kind, text(name, size))[name].field
    assert field["type"] == "enum"
    assert expected <= set(field["options"]["values"])


def test_a_comment_or_default_decides_about_the_values():
    commented = table("x", Column("mode", "integer", "integer", bits=16, comment="0=off, 1=on, 2=auto"))[
        "mode"
    ]
    assert commented.field["options"]["values"] == [0, 1, 2]
    listed = table("x", text("zone", 9, comment="A = inner city, B = suburb, C = country"))["zone"]
    assert listed.field["options"]["values"] == ["A", "B", "C"]
    default = table("subscriptions", text("status", 20, default="'trial'::text"))["status"]
    assert default.field["options"]["values"][0] == "trial"


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("kunden", "nachname", "last_name"), ("kunden", "rechnungsnummer", "invoice_number"),
        ("clients", "prenom", "first_name"), ("clients", "ville", "city"), ("clientes", "apellidos", "last_name"),
        ("clientes", "correo_electronico", "email"),
        ("tb_cliente", "nm_cidade", "city"), ("clienti", "cognome", "last_name"),
        ("klanten", "woonplaats", "city"), ("klienci", "nazwisko", "last_name"), ("KNA1", "ORT01", "city"),
        ("KNA1", "LAND1", "country_code"), ("BKPF", "WAERS", "currency_code"), ("CUST", "ADDR_LN_1", "street_address"),
        ("CUST", "CNTRY_CD", "country_code"), ("CUST", "POSTL_CD", "zip_code"), ("tKunde", "cVorname", "first_name"),
    ],
)  # fmt: skip
def test_names_of_other_languages_and_abbreviations_are_understood(kind, name, expected):
    assert table(kind, text(name, 60))[name].field["type"] == expected


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("Bruttogehalt", "gross_amount_salary"), ("Urlaubstage", "vacation_days"), ("Telefon2", "phone_2"),
        ("GeaendertVon", "updated_by"), ("tva_tx", "tax_rate"), ("nome_mae", "mother_name"),
        ("aliquota_iva", "tax_rate"), ("data_zatrudnienia", "hire_date"), ("codigo_postal", "zip_code"),
        ("Vertragsnummer", "contract_number"), ("forma_pago", "payment_method"), ("lugar_nacimiento", "birth_place"),
        ("OFCR_NM", "officer_name"), ("lastip", "last_ip"), ("timecreated", "time_created"), ("tag", "tag"),
        ("code_client", "client_code"), ("BRNCH_CD", "branch_code"),
    ],
)  # fmt: skip
def test_compounds_and_joined_or_shortened_words_are_read(name, meaning):
    assert "_".join(translate_to_english(split_words(name))) == meaning


@pytest.mark.parametrize(
    "name", ["username", "timezone", "first_name", "lastname", "endpoint", "datetime", "student"]
)
def test_english_words_are_not_taken_apart(name):
    assert translate_to_english(split_words(name)) == name.split("_")


@pytest.mark.parametrize(
    ("name", "size", "pattern"),
    [
        ("BEDAT", 8, r"20[12]\d[01]\d[0-3]\d"), ("order_date", 10, r"20[12]\d-[01]\d-[0-3]\d"),
        ("created_at", 14, r"20\d{12}"), ("ERZET", 6, r"[0-2]\d[0-5]\d[0-5]\d"),
        ("account_number", 20, r"[A-Z0-9]+"), ("provider_uid", 40, r"[A-Z0-9]+"),
    ],
)  # fmt: skip
def test_texts_that_are_no_words_have_their_usual_spelling(name, size, pattern):
    values = rows(table("EKKO", text(name, size)))[name]
    assert len(values) == 500
    assert all(re.fullmatch(pattern, value) for value in values), values[:3]


def test_english_names_are_unchanged():
    assert translate_to_english(["data", "source"]) == ["data", "source"]
    assert translate_to_english(split_words("fecha_de_nacimiento")) == ["birth", "date"]


def test_values_are_in_the_language_of_the_tables_names():
    assert detect_locale([["kunden"], ["vorname"], ["nachname"]]) == "de_DE"
    assert detect_locale([["users"], ["email"], ["note"]]) is None
    found = table("kunden", text("vorname", 40), text("plz", 5))
    assert {result.field["locale"] for result in found.values()} == {"de_DE"}
    assert all(len(item) == 5 for item in rows(found)["plz"])


def test_amounts_in_cents_are_a_hundred_times_as_large():
    field = table("plans", Column("amount_cents", "integer", "bigint", bits=64))["amount_cents"].field
    assert field["options"] == {"min": 500, "max": 200_000}


def test_dates_that_follow_others_are_never_before_them():
    names = ("created_at", "updated_at", "start_time", "end_time")
    result = rows(table("events", *(Column(name, "timestamp", "timestamp") for name in names)))
    assert all(a <= b for a, b in zip(result["created_at"], result["updated_at"], strict=True))
    assert all(a < b for a, b in zip(result["start_time"], result["end_time"], strict=True))


def test_a_total_agrees_with_its_parts():
    def money(name: str) -> Column:
        return Column(name, "decimal", "numeric(12,2)", precision=12, scale=2)

    result = rows(
        table(
            "order_items",
            Column("quantity", "integer", "integer", bits=32),
            money("unit_price"),
            money("total"),
        )
    )
    assert all(
        q * p == t for q, p, t in zip(result["quantity"], result["unit_price"], result["total"], strict=True)
    )
    result = rows(table("invoices", money("subtotal"), money("tax"), money("total")))
    assert all(s + x == t for s, x, t in zip(result["subtotal"], result["tax"], result["total"], strict=True))
    narrow = Column("total", "decimal", "numeric(4,2)", precision=4, scale=2)
    small = table(
        "order_items", Column("quantity", "integer", "integer", bits=32), money("unit_price"), narrow
    )
    assert "formula" not in small["total"].field


def test_deleted_rows_are_rare_and_births_are_those_of_adults():
    result = rows(
        table(
            "users", Column("is_deleted", "boolean", "boolean"), Column("deleted_at", "timestamp", "timestamp"),
            Column("is_active", "boolean", "boolean"), Column("birth_date", "date", "date", nullable=False),
        )
    )  # fmt: skip
    assert sum(result["is_deleted"]) < 50
    assert sum(result["is_active"]) > 400
    assert sum(item is not None for item in result["deleted_at"]) < 50
    assert all(18 * 365 < (NOW.date() - item).days < 75 * 365 for item in result["birth_date"])


@pytest.mark.parametrize(
    ("column", "confidence", "state"),
    [
        (text("email", 80), "high", "green"),
        (text("status", 20), "high", "green"),
        (text("zq_xx", 40), "unknown", "yellow"),
        (Column("zq_xx", "integer", "integer", bits=32), "unknown", "yellow"),
        (Column("data", "json", "json"), "check", "yellow"),
    ],
)
def test_only_recognized_columns_are_green(column, confidence, state):
    found = table("things", column)[column.name]
    assert (found.confidence, found.state) == (confidence, state)


def test_no_suggested_type_lacks_a_required_option():
    names = (
        "formula",
        "reference",
        "custom",
        "regexp",
        "enum",
        "template",
        "previous",
        "ai",
        "case",
        "mapped",
        "faker",
    )
    found = table("things", *(text(name, 40) for name in names))
    rows(found, 3)
    assert {result.confidence for result in found.values()} == {"unknown"}

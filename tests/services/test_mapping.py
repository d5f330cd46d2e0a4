"""Fields are mapped to columns by similar names, meaning and type; all errors are reported together."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from webapp.connectors.schema import Column, Entity
from webapp.generation.services.row_makers import Field
from webapp.pushes.services.mapping import (
    RequestedMapping,
    map_columns,
    normalized_name,
    split_words,
    to_singular,
)


def table(*columns: Column, name: str = "customers", **more) -> Entity:
    return Entity(name, (name,), columns, **more)


def text(name: str, **more) -> Column:
    return Column(name, "text", "text", **more)


def fields(*names: str | Field) -> dict[str, Field]:
    result = [name if isinstance(name, Field) else Field(name, pa.string()) for name in names]
    return {field.name: field for field in result}


def found(given: dict[str, Field], entity: Entity, **asked) -> dict[str, str | None]:
    """Field by column, of those that get one."""
    result = map_columns(given, entity, RequestedMapping(**{"mapping": {}, "computed": {}, **asked}))
    assert result.faults == []
    return {cell.column.name: cell.field for cell in result.column_mappings if cell.is_mapped}


def codes(given: dict[str, Field], entity: Entity, **asked) -> list[tuple[str, str]]:
    result = map_columns(given, entity, RequestedMapping(**{"mapping": {}, "computed": {}, **asked}))
    return [(fault.path, fault.code) for fault in result.faults]


@pytest.mark.parametrize(
    ("field", "column"),
    [
        ("email", "email"),
        ("firstName", "first_name"),
        ("FIRST NAME", "firstname"),
        ("e-mail", "E_Mail"),
        ("mail", "email_address"),
        ("zip", "postal_code"),
        ("surname", "last_name"),
        ("dob", "date_of_birth"),
        ("email", "customer_email"),
        ("customer_email", "email"),
        ("CustomerEmail", "EMAIL"),
        ("address.city", "city"),
        ("address.city", "address_city"),
        ("straße", "STRASSE"),
    ],
)
def test_a_field_finds_the_column_that_means_the_same(field, column):
    assert found(fields(field), table(text(column))) == {column: field}


@pytest.mark.parametrize(
    ("field", "column"), [("name", "frame"), ("order_id", "customer_age"), ("age", "page")]
)
def test_names_that_only_look_similar_are_not_matched(field, column):
    assert codes(fields(field), table(text(column))) == [("mapping", "nothing_mapped")]


def test_the_surest_name_wins():
    value = fields("mail", "email", "E-Mail")
    assert found(value, table(text("email"), text("e_mail"), text("mail_address"))) == {
        "email": "email", "e_mail": "E-Mail", "mail_address": "mail",
    }  # fmt: skip


def test_a_label_helps_where_a_name_says_nothing():
    value = fields(Field("f1", pa.string(), label="Email address"))
    assert found(value, table(text("email"))) == {"email": "f1"}


def test_a_required_column_takes_the_only_field_of_its_type():
    value = fields(Field("wibble", pa.date32()), Field("other", pa.string()))
    column = Column("hired", "date", "date", nullable=False)
    assert found(value, table(column, text("other"))) == {"hired": "wibble", "other": "other"}


def test_a_field_is_not_mapped_by_meaning_if_its_type_does_not_fit():
    value = fields(Field("mail", pa.bool_()))
    column = Column("email", "date", "date")
    assert codes(value, table(column)) == [("mapping", "nothing_mapped")]


def test_hidden_fields_are_not_sent():
    value = fields(replace(Field("email", pa.string()), hidden=True))
    assert codes(value, table(text("email"))) == [("mapping", "nothing_mapped")]


def test_every_column_without_a_field_has_a_reason():
    columns = (
        Column("id", "integer", "bigint", nullable=False, key=True, generated="identity"),
        Column("full", "text", "text", generated="computed"),
        Column("made", "timestamp", "timestamp", nullable=False, default="now()"),
        text("note"),
        text("email"),
    )
    result = map_columns(fields("id", "full", "email"), table(*columns), RequestedMapping({}, {}))
    assert {cell.column.name: cell.skipped for cell in result.column_mappings} == {
        "id": "identity", "full": "computed", "made": "default", "note": "nullable", "email": "",
    }  # fmt: skip
    assert result.unused == ["id", "full"]


def test_an_identity_is_written_on_request_or_if_it_matches_rows():
    column = Column("id", "integer", "bigint", nullable=False, key=True, generated="identity")
    entity = table(column, text("email"))
    assert found(fields("nr", "email"), entity, mapping={"nr": "id"}) == {"id": "nr", "email": "email"}
    upsert = found(fields("id", "email"), entity, mode="upsert", key_columns=["id"])
    assert upsert == {"id": "id", "email": "email"}


def test_an_update_needs_no_more_than_its_keys():
    entity = table(text("id", nullable=False), text("email", nullable=False), text("age"))
    assert found(fields("id", "age"), entity, mode="update", key_columns=["id"]) == {"id": "id", "age": "age"}
    assert codes(fields("id", "age"), entity) == [("mapping", "missing_column")]


def test_null_leaves_a_field_out_and_a_name_wins_over_what_is_suggested():
    value = fields("email", "second")
    assert found(value, table(text("email"), text("other")), mapping={"second": "email"}) == {
        "email": "second"
    }
    assert codes(value, table(text("email")), mapping={"email": None}) == [("mapping", "nothing_mapped")]


def test_all_errors_of_a_mapping_are_reported_together():
    entity = table(
        text("email", nullable=False), Column("full", "text", "text", generated="computed"), text("age")
    )
    value = fields("email", "mail", "years")
    wrong = {"emial": "email", "email": "age", "mail": "age", "years": "full"}
    assert codes(value, entity, mapping=wrong, computed={"nope": "1"}) == [
        ("mapping.emial", "unknown_field"),
        ("mapping.mail", "mapped_twice"),
        ("mapping.years", "generated_column"),
        ("computed.nope", "unknown_column"),
        ("mapping", "missing_column"),
    ]


def test_columns_are_named_without_regard_to_case_where_that_is_plain():
    assert found(fields("x"), table(text("Email")), mapping={"x": "EMAIL"}) == {"Email": "x"}
    twins = table(text("Email"), text("EMAIL"))
    assert codes(fields("x"), twins, mapping={"x": "email"})[0] == ("mapping.x", "unknown_column")


def test_a_collection_takes_fields_that_no_document_has_yet():
    entity = table(text("_id"), text("email"), kind="collection")
    assert found(fields("email", "fresh"), entity) == {"email": "email", "fresh": "fresh"}
    assert found(fields("email"), entity, mapping={"email": "contact"}) == {"contact": "email"}


def test_words_are_found_in_any_notation():
    assert split_words("customerIDNumber2") == ["customer", "id", "number", "2"]
    assert split_words("Customer-first_name") == ["customer", "first", "name"]
    assert [to_singular(item) for item in ("addresses", "companies", "status", "orders")] == [
        "address", "company", "statu", "order",
    ]  # fmt: skip
    assert normalized_name("Ünï-Code 9") == "unicode9"

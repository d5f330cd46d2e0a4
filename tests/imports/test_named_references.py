"""Tests for references that only the names of columns declare."""

from __future__ import annotations

import pytest

from webapp.connectors.schema import Column, Entity, Relation
from webapp.imports.inference.named_references import named_references
from webapp.imports.readers import formats
from webapp.imports.readers.base import Source
from webapp.imports.services import drafts
from webapp.imports.services.tables import sample_rows
from webapp.row_templates.services import compilation


def table(name: str, *columns: str, keys: tuple[str, ...] = ("id",), **more: object) -> Entity:
    """A table; a column is given as `name type`, with `?` where it may be null."""
    fields = []
    for item in columns:
        column, _, kind = item.partition(" ")
        plain = (kind or "integer").removesuffix("?")
        bits = 32 if plain == "integer" else None
        fields.append(
            Column(column, plain, plain, nullable=kind.endswith("?"), bits=bits, key=column in keys)  # type: ignore[arg-type]
        )
    return Entity(name, (name,), tuple(fields), keys=keys, **more)  # type: ignore[arg-type]


def referred(*tables: Entity) -> dict[str, str]:
    """The table that each column refers to, by `table.column`."""
    return {
        f"{name}.{relation.columns[0]}": relation.entity
        for name, found in named_references(tables).items()
        for relation in found
    }


def test_column_named_as_the_key_of_a_single_table_refers_to_it() -> None:
    parameters = table("stretchy_parameter", "parameter_id", keys=("parameter_id",))
    uses = table("report_use", "report_id", "parameter_id", keys=("report_id", "parameter_id"))
    assert referred(parameters, uses) == {"report_use.parameter_id": "stretchy_parameter"}
    other = table("other_parameter", "parameter_id", keys=("parameter_id",))
    assert referred(parameters, uses, other) == {}


@pytest.mark.parametrize(
    ("parent", "column"),
    [
        (table("customers", "id"), "customer_id"),
        (table("customers", "id"), "customerId"),
        (table("Customer", "CustomerID", keys=("CustomerID",)), "CustomerID"),
        (table("customer", "id_customer", keys=("id_customer",)), "id_customer"),
        (table("tbl_customers", "id"), "customer_id"),
        (table("customers", "id"), "billing_customer_id"),
        (table("order_lines", "id"), "order_line_id"),
    ],
)
def test_column_named_as_a_table_refers_to_it(parent: Entity, column: str) -> None:
    invoices = table("invoices", "id", column)
    assert referred(parent, invoices) == {f"invoices.{column}": parent.name}


def test_prefix_of_all_tables_is_ignored() -> None:
    found = referred(
        table("oc_customer", "customer_id", keys=("customer_id",)), table("oc_order", "id", "customer_id")
    )
    assert found == {"oc_order.customer_id": "oc_customer"}


@pytest.mark.parametrize(
    "column",
    ["customer_id text", "customer_id uuid", "customer integer", "client_id integer"],
)
def test_column_of_another_type_or_name_is_no_reference(column: str) -> None:
    assert referred(table("customers", "id"), table("invoices", "id", column)) == {}


def test_key_of_another_meaning_is_no_reference() -> None:
    assert (
        referred(table("customers", "code_id", keys=("code_id",)), table("invoices", "id", "customer_id"))
        == {}
    )


def test_column_whose_table_differs_by_row_is_no_reference() -> None:
    items = table("notes", "id", "customer_id", "customer_type text")
    assert referred(table("customers", "id"), items) == {}


def test_foreign_key_decides_over_a_name() -> None:
    real = Relation("fk", ("customer_id",), "people", ("id",))
    invoices = table("invoices", "id", "customer_id", relations=(real,))
    assert referred(table("customers", "id"), table("people", "id"), invoices) == {}


def test_name_never_closes_a_circle_of_tables() -> None:
    found = referred(table("stores", "id", "employee_id"), table("employees", "id", "store_id"))
    assert found == {"stores.employee_id": "employees"}


def test_two_tables_of_the_same_name_are_no_parents() -> None:
    found = referred(
        table("customer", "id"),
        table("customers", "id"),
        table("invoices", "id", "customer_id"),
        table("x", "id"),
    )
    assert found == {}


def test_parent_may_be_null_and_refers_to_the_same_table() -> None:
    assert referred(table("nodes", "id", "parent_id integer?")) == {"nodes.parent_id": "nodes"}
    assert referred(table("nodes", "id", "parent_id integer")) == {}


def test_imported_script_links_tables_without_foreign_keys_and_says_so() -> None:
    script = b"CREATE TABLE users (id int PRIMARY KEY, name text); CREATE TABLE posts (id int PRIMARY KEY, user_id int)"
    words = compilation.vocabulary()
    users, posts = drafts.draft_tables(formats.read(Source(script, "a.sql"), "auto", words), words, 10)
    link = posts.columns[1]
    assert link.field == {
        "name": "user_id", "type": "reference", "options": {"template_id": "entity:users", "field": "id"},
        "group": "parent",
    }  # fmt: skip
    assert (link.confidence, link.reason) == (
        "check",
        "A row of users, based on the column name: there is no foreign key.",
    )
    assert users.dependencies == {}
    assert posts.dependencies == {"users": True}


def test_key_of_a_number_and_a_language_never_repeats() -> None:
    script = b"CREATE TABLE links (page int NOT NULL, lang text NOT NULL, PRIMARY KEY (page, lang))"
    words = compilation.vocabulary()
    (links,) = drafts.draft_tables(formats.read(Source(script, "a.sql"), "auto", words), words, 10)
    rows = sample_rows(links, words, True)
    assert len(rows) == 64
    assert len({tuple(row.values()) for row in rows}) == 64
    assert {column.field["unique"] for column in links.columns if column.field} == {"key"}

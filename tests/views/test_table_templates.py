"""Templates from tables: linked as the tables are, and every row they make fits its table."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pyarrow as pa
import pytest

from tests.views.speak import refused
from tests.views.tricky_schema import DDL, SAFE_ORDER
from webapp.connections.models import Connection
from webapp.connections.services import access
from webapp.connectors.base import WriteSpec
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.extensions import db
from webapp.generation.services import generate

NOW = datetime.now(UTC)


@pytest.fixture
def connected(app, cast):
    """Makes a connection of Acme's to a target."""

    def make(kind: str, **settings: Any) -> str:
        place = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
        with app.app_context():
            row = Connection(name="Shop", type=kind, settings=settings, **place)
            db.session.add(row)
            db.session.commit()
            return row.id

    return make


@pytest.fixture
def shop(connected, app):
    """A SQLite connection, and a way to carry statements out in it."""
    result = connected("sqlite", file="shop.db")

    def does(*statements: str) -> str:
        with app.app_context(), access.open_session(db.session.get_one(Connection, result)) as session:
            for statement in statements:
                session.execute(statement)
        return result

    return does


@pytest.fixture
def tricky(connected, postgres_url):
    """A PostgreSQL connection to a schema that is hard to fill."""
    parts = urlsplit(postgres_url)
    server = {
        "host": parts.hostname,
        "port": parts.port or 5432,
        "user": parts.username,
        "password": parts.password,
    }
    server = {name: value for name, value in server.items() if value}
    name = f"tricky_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(dbname="postgres", autocommit=True, **server) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        try:
            with psycopg.connect(dbname=name, autocommit=True, **server) as own:
                own.execute(DDL)
            told = {"host": server["host"], "port": server["port"], "username": server["user"]}
            yield connected("postgresql", **told, database=name)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


def made_from(program, connection: str, *tables: str, **more: Any) -> dict[str, Any]:
    answer = program.post(f"/connections/{connection}/templates", json={"entities": list(tables), **more})
    assert answer.status_code == 201, answer.json
    return answer.json


def fields_of(made: dict[str, Any], table: str) -> dict[str, dict[str, Any]]:
    (template,) = [item for item in made["templates"] if item["name"] == table]
    return {field["name"]: field for field in template["fields"]}


def told(made: dict[str, Any], table: str, column: str) -> tuple[str | None, str]:
    (row,) = [item for item in made["report"] if (item["table"], item["column"]) == (table, column)]
    return row["type"], row["state"]


def pushed(
    app, connection: str, template: dict[str, Any], count: int, without: tuple[str, ...] = ()
) -> list[str]:
    """Sends the first rows of a template into its table; answers what the target said of those it refused."""
    with app.app_context():
        head = generate.TemplateRef(template["id"], template["version"], "", "")
        bound = BoundPlan(generate.saved_source(head, None).plan, GenerationContext("fit", NOW))
        bound.check(0, count)
        with access.open_session(db.session.get_one(Connection, connection)) as session:
            entity = session.entity(template["name"])
            columns = [entity.column(name) for name in bound.schema.names]
            sent = [
                at
                for at, column in enumerate(columns)
                if column.generated != "identity" and column.name not in without
            ]
            arrays = bound.block(0, count)
            names = [columns[at].name for at in sent]
            batch = pa.RecordBatch.from_arrays([arrays[at] for at in sent], names)
            target = session.target(WriteSpec(entity, tuple(columns[at] for at in sent)))
            target.begin()
            answer = target.send(batch)
            target.commit()
    return sorted({f"{failure.column}: {failure.message}" for failure in answer.failures})


def test_every_row_of_every_template_fits_its_table(edith, tricky, app):
    result = made_from(edith, tricky, *SAFE_ORDER, quantity=400)
    templates = {template["name"]: template for template in result["templates"]}
    found = {
        table: refusals
        for table in SAFE_ORDER
        if (
            refusals := pushed(
                app, tricky, templates[table], templates[table]["quantity"], without=("egg_id",)
            )
        )
    }
    assert {template["quantity"] for template in result["templates"]} == {106, 400}, (
        "there are not 400 countries"
    )
    assert found == {}
    assert [row for row in result["report"] if row["state"] == "red"] == []


def test_a_second_time_the_sample_shapes_rows_that_fit_as_well(edith, tricky, app):
    first = made_from(edith, tricky, *SAFE_ORDER, quantity=100)
    templates = {template["name"]: template for template in first["templates"]}
    for table in SAFE_ORDER:
        assert pushed(app, tricky, templates[table], 100, without=("egg_id",)) == []
    again = made_from(edith, tricky, "customers", quantity=100)
    (customers,) = again["templates"]
    assert [
        item for item in pushed(app, tricky, customers, 100) if "unique" not in item and "foreign" not in item
    ] == []


def test_foreign_keys_become_references_and_rings_and_trees_are_closed(edith, tricky):
    result = made_from(edith, tricky, *SAFE_ORDER)
    ids = {template["name"]: template["id"] for template in result["templates"]}
    assert fields_of(result, "orders")["customer_id"]["options"] == {
        "template_id": ids["customers"],
        "field": "id",
    }
    lines = fields_of(result, "lines")
    assert lines["region"]["group"] == lines["order_no"]["group"]
    assert {lines[name]["unique"] for name in ("region", "order_no", "line")} == {"key"}
    assert fields_of(result, "customers")["manager_id"]["options"]["template_id"] == "self"
    assert fields_of(result, "passports")["customer_id"]["unique"] is True
    assert fields_of(result, "chickens")["egg_id"]["options"]["template_id"] == ids["eggs"]
    assert fields_of(result, "eggs")["chicken_id"]["options"]["template_id"] == ids["chickens"]
    assert told(result, "customers", "full_name") == (None, "green")
    assert told(result, "customers", "id") == ("row_number", "green")


def test_a_table_that_was_not_chosen_is_read_from_or_its_template_of_before_is_used(edith, shop):
    connection = shop(
        "CREATE TABLE parents (a INTEGER, b TEXT, PRIMARY KEY (a, b))",
        "CREATE TABLE children (id INTEGER PRIMARY KEY, a INTEGER, b TEXT,"
        " FOREIGN KEY (a, b) REFERENCES parents (a, b))",
        "INSERT INTO parents VALUES (1, 'x'), (2, 'y')",
    )
    alone = made_from(edith, connection, "children")
    fields = fields_of(alone, "children")
    assert {fields[name]["type"] for name in "ab"} == {"foreign_key"}
    assert fields["a"]["group"] == fields["b"]["group"]
    rows = edith.post(f"/templates/{alone['templates'][0]['id']}/generate", json={"count": 20}).json
    assert {(row["a"], row["b"]) for row in rows} == {(1, "x"), (2, "y")}
    parents = made_from(edith, connection, "parents")["templates"][0]["id"]
    linked = fields_of(made_from(edith, connection, "children"), "children")
    assert {linked[name]["options"]["template_id"] for name in "ab"} == {parents}


def test_an_existing_template_is_found_after_a_rename(edith, shop):
    connection = shop(
        "CREATE TABLE parents (id INTEGER PRIMARY KEY, n INTEGER)",
        "CREATE TABLE children (id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES parents (id))",
    )
    parents = made_from(edith, connection, "parents")["templates"][0]
    assert connection not in parents["description"]
    edited = {"name": "Elders", "description": f"Not of a table (connection {connection})"}
    assert edith.patch(f"/templates/{parents['id']}", json=edited).status_code == 200
    own = {
        "name": "parents",
        "description": f"(connection {connection})",
        "fields": [{"name": "id", "type": "uuid"}],
    }
    assert edith.post("/templates", json=own).status_code == 201
    reference = fields_of(made_from(edith, connection, "children"), "children")["parent_id"]
    assert reference["options"] == {"template_id": parents["id"], "field": "id"}
    assert edith.delete(f"/templates/{parents['id']}").status_code == 200
    alone = fields_of(made_from(edith, connection, "children"), "children")["parent_id"]
    assert alone["type"] in ("foreign_key", "null")  # null where the table of the parents is empty


def test_tables_of_standards_and_of_people_make_what_they_are_called(edith, shop):
    connection = shop(
        "CREATE TABLE countries (code VARCHAR(2) PRIMARY KEY, name VARCHAR(60) NOT NULL UNIQUE)",
        "CREATE TABLE depts (id INTEGER PRIMARY KEY, title VARCHAR(60) NOT NULL)",
    )
    result = made_from(edith, connection, "countries", "depts")
    countries = next(template for template in result["templates"] if template["name"] == "countries")
    assert [field["type"] for field in countries["fields"]] == ["country_code", "country"]
    assert told(result, "depts", "title") == ("department", "green")
    rows = edith.post(f"/templates/{countries['id']}/generate", json={"count": 50}).json
    assert len({row["code"] for row in rows}) == len({row["name"] for row in rows}) == 50


def test_names_that_cannot_be_unique_in_a_group_are_unique_separately(edith, shop):
    connection = shop(
        "CREATE TABLE depts (id INTEGER PRIMARY KEY, name VARCHAR(60) UNIQUE, job_title VARCHAR(60) UNIQUE)",
        "CREATE TABLE places (city VARCHAR(80) UNIQUE, country_code CHAR(2) UNIQUE, country VARCHAR(80) UNIQUE)",
    )
    result = made_from(edith, connection, "depts", "places")
    for template in result["templates"]:
        rows = edith.post(f"/templates/{template['id']}/generate", json={"count": 15}).json
        assert all(len({row[name] for row in rows}) == 15 for name in rows[0]), template["fields"]


def test_values_of_people_are_never_copied_out_of_the_sample(edith, shop):
    connection = shop(
        "CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT, manager TEXT, ssn TEXT, status TEXT, badge TEXT,"
        " salary INTEGER)",
        *(
            f"INSERT INTO staff VALUES ({n}, '{('Ann', 'Bob')[n % 2]} Smith', '{('Carla', 'Dora')[n % 2]}',"
            f" '123-45-{6780 + n}', '{('open', 'closed')[n % 2]}', 'XK-{1000 + n}', {41_237 + n})"
            for n in range(40)
        ),
    )
    answer = edith.post(f"/connections/{connection}/templates", json={"entities": ["staff"]})
    text = re.sub(rb"_[0-9A-Z]{26}", b"", answer.data)  # an id may hold any few letters
    for secret in (b"Smith", b"Carla", b"6789", b"XK", b"41237", b"41276"):
        assert secret not in text
    fields = fields_of(answer.json, "staff")
    assert fields["status"]["options"]["values"] == ["closed", "open"]
    assert fields["badge"]["options"]["string"] == "[A-Z]{2}\\-[0-9]{4}"
    assert (fields["salary"]["options"]["min"], fields["salary"]["options"]["max"]) == (41_000, 42_000)


def test_missing_tables_are_all_listed_and_nothing_is_created(edith, shop):
    connection = shop("CREATE TABLE orders (id INTEGER PRIMARY KEY, n INTEGER)")
    body = {"entities": ["orders", "order", "nothing"]}
    details = refused(edith.post(f"/connections/{connection}/templates", json=body), 422, "validation_error")
    assert [(field["path"], field["code"]) for field in details["fields"]] == [
        ("entities[1]", "unknown_entity"),
        ("entities[2]", "unknown_entity"),
    ]
    assert details["fields"][0]["hint"] == "Did you mean `orders`?"
    assert edith.get("/templates").json["total"] == 0


def test_a_table_listed_twice_is_created_once(edith, shop):
    connection = shop("CREATE TABLE orders (id INTEGER PRIMARY KEY, n INTEGER)")
    assert len(made_from(edith, connection, "orders", "orders")["templates"]) == 1


def test_a_connection_of_others_is_not_there(api, cast, shop):
    connection = shop("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    answer = api(cast.mallory).post(f"/connections/{connection}/templates", json={"entities": ["orders"]})
    refused(answer, 404, "not_found")

"""Pushes as a tester lives them: tables become templates, templates a dataset, the dataset rows; and what goes wrong on
the way says what to do."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.views.speak import make, refused
from tests.views.targets import CUSTOMERS, connection, postgres_target, sqlite_target, work  # noqa: F401
from webapp import limits

COMPANY = """
CREATE TYPE state AS ENUM ('new', 'paid', 'it''s gone');
CREATE TABLE countries (code char(2) PRIMARY KEY, name varchar(60) NOT NULL UNIQUE);
CREATE TABLE customers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email varchar(40) NOT NULL UNIQUE,
    first_name varchar(8) NOT NULL, full_name text GENERATED ALWAYS AS (first_name || '!') STORED,
    country char(2) REFERENCES countries, born date CHECK (born < '2010-01-01'), uid uuid UNIQUE,
    credit numeric(8, 2) NOT NULL CHECK (credit >= 0), luck smallint NOT NULL CHECK (luck BETWEEN 1 AND 8 AND luck <> 7)
);
CREATE TABLE orders (
    id serial PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customers, state state NOT NULL,
    ordered_on date NOT NULL, shipped_on date, CHECK (shipped_on >= ordered_on)
);
CREATE TABLE lines (
    order_id integer REFERENCES orders, line smallint, qty integer NOT NULL CHECK (qty BETWEEN 1 AND 99),
    PRIMARY KEY (order_id, line)
);
CREATE TABLE staff (id serial PRIMARY KEY, name text NOT NULL, dept_id integer, boss_id integer REFERENCES staff);
CREATE TABLE depts (id serial PRIMARY KEY, title text NOT NULL, head_id integer REFERENCES staff);
ALTER TABLE staff ADD FOREIGN KEY (dept_id) REFERENCES depts;
CREATE TABLE "Select" ("Order" integer PRIMARY KEY, "from" text NOT NULL,
    "a column, ""quoted"", of nearly sixty characters" integer);
CREATE TABLE "a_table_with_a_name_of_sixty_characters_that_is_really_long_x" (
    "group" serial PRIMARY KEY, "user" varchar(9));
"""
COUNTS = {"countries": 40, "customers": 700, "orders": 1_500, "lines": 3_000, "staff": 80, "depts": 9}
KEY = {"name": "id", "type": "row_number"}


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


def told(answer) -> list[dict[str, str]]:
    return refused(answer, 422, "validation_error")["fields"]


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def relay(postgres_url):
    """A way to PostgreSQL that can be frozen: its port and the switch."""
    there, frozen = urlsplit(postgres_url), threading.Event()

    def carry(one: socket.socket, other: socket.socket) -> None:
        with one, other, contextlib.suppress(OSError):  # the other way has closed them
            while data := one.recv(65_536):
                if frozen.is_set():
                    frozen.lost.wait()  # type: ignore[attr-defined]
                    return
                other.sendall(data)

    def serve() -> None:
        while True:
            try:
                near, _ = server.accept()
            except OSError:
                return
            far = socket.create_connection((there.hostname, there.port or 5432))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=carry, args=pair, daemon=True).start()

    frozen.lost = threading.Event()  # type: ignore[attr-defined]
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        port = server.getsockname()[1]
        yield postgres_url.replace(f":{there.port}" if there.port else there.netloc, f":{port}", 1), frozen
        frozen.lost.set()  # type: ignore[attr-defined]


def test_a_dataset_of_templates_created_from_tables_is_pushed_without_rejected_rows(
    app, cast, edith, postgres_url, work
):
    with postgres_target(app, cast, postgres_url, COMPANY) as target:
        known = edith.get(f"/connections/{target.connection_id}/metadata").json["entities"]
        names = [item["name"] for item in known]
        assert len(names) == 8
        created = edith.post(f"/connections/{target.connection_id}/templates", json={"entities": names})
        assert created.status_code == 201, created.json
        members = [
            {
                "template_id": template["id"],
                "name": template["name"],
                "count": COUNTS.get(template["name"], 30),
            }
            for template in created.json["templates"]
        ]
        body = {"name": "Company", "templates": members, "seed": "s"}
        dataset = edith.post("/datasets", json=body).json["id"]
        ask = {"connection_id": target.connection_id}
        dry = edith.post(f"/datasets/{dataset}/push", json={**ask, "dry_run": True})
        assert dry.status_code == 200, dry.json
        assert dry.json["misfits"] == []
        push = edith.post(f"/datasets/{dataset}/push", json=ask).json
        work(push["id"])
        push = edith.get(f"/pushes/{push['id']}").json
        total = sum(member["count"] for member in members)
        assert (push["status"], push["error"], push["counts"]["delivered"]) == ("completed", None, total)
        there = {name: target.execute(f'SELECT count(*) FROM "{name}"')[0][0] for name in names}
        assert there == {member["name"]: member["count"] for member in members}
        work(edith.post(f"/pushes/{push['id']}/undo", json={}).json["id"])
        assert all(target.execute(f'SELECT count(*) FROM "{name}"') == [(0,)] for name in names)


def test_values_from_outside_are_pushed_as_generate_shows_them(app, cast, edith, work):
    script = (
        "CREATE TABLE colours (name TEXT PRIMARY KEY);"
        "INSERT INTO colours VALUES ('red'), ('green'), ('blue');"
        "CREATE TABLE cars (id INTEGER PRIMARY KEY, colour TEXT REFERENCES colours (name), wheels INTEGER);"
    )
    target = sqlite_target(app, cast, script)
    here = {"connection_id": target.connection_id}
    fields = [
        KEY,
        {"name": "colour", "type": "foreign_key", "options": {**here, "table": "colours", "column": "name"}},
        {"name": "wheels", "type": "db_response", "options": {**here, "query": "SELECT 3 UNION SELECT 4"}},
    ]
    path = f"/templates/{make(edith, name='Cars', fields=fields)['id']}"
    ask = {"count": 50, "seed": "s"}
    push = edith.post(
        f"{path}/push", json={**here, **ask}
    )  # the first to ask the target: nothing is stored yet
    assert push.status_code == 201, push.json
    work(push.json["id"])
    rows = edith.post(f"{path}/generate", json=ask).json
    assert target.execute("SELECT * FROM cars ORDER BY id") == [tuple(row.values()) for row in rows]


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
@pytest.mark.parametrize("path", ["push/plan", "push"])
def test_a_target_that_never_answers_holds_a_plan_and_a_dry_run_no_longer_than_its_time(
    app, cast, edith, monkeypatch, silent, kind, path
):
    monkeypatch.setattr(limits, "METADATA_SECONDS", 2.0)
    here = connection(
        app, cast, kind, {"host": "127.0.0.1", "port": silent, "database": "d", "username": "u"}
    )
    template = make(edith, name="Customers", fields=CUSTOMERS)["id"]
    began = time.monotonic()
    answer = edith.post(f"/templates/{template}/{path}", json={"connection_id": here, "dry_run": True})
    assert (answer.status_code, answer.json["error"]["code"]) == (504, "target_timeout"), answer.json
    assert time.monotonic() - began < 6


def test_a_target_that_freezes_in_the_middle_of_a_dry_run_is_given_up_in_time(
    app, cast, edith, monkeypatch, postgres_url, relay
):
    url, frozen = relay
    monkeypatch.setattr(limits, "DRY_RUN_READ_SECONDS", 1.0)
    table = "CREATE TABLE customers (id integer PRIMARY KEY, email text)"
    with postgres_target(app, cast, postgres_url, table) as target:
        template = make(edith, name="Customers", fields=[KEY, {"name": "email", "type": "email"}])["id"]
        here = connection(app, cast, "postgresql", {"connection_string": url})
        ask = {"connection_id": here, "dry_run": True}
        assert edith.post(f"/templates/{template}/push", json=ask).status_code == 200
        target.execute("BEGIN")
        target.execute(
            "LOCK TABLE customers IN ACCESS EXCLUSIVE MODE"
        )  # it waits there, and then the wire is silent
        threading.Timer(0.5, frozen.set).start()
        began = time.monotonic()
        answer = edith.post(f"/templates/{template}/push", json=ask)
        assert (answer.status_code, answer.json["error"]["code"]) == (504, "target_timeout"), answer.json
        assert "waiting for a lock" in answer.json["error"]["details"]["hint"]
        assert time.monotonic() - began < 15
        target.execute("ROLLBACK")


def test_children_of_a_failed_parent_chunk_are_rejected(app, cast, edith, work):
    script = (
        "CREATE TABLE parents (id INTEGER PRIMARY KEY, a INTEGER NOT NULL CHECK (a > 9), b INTEGER UNIQUE);"
        "CREATE TABLE children (id INTEGER PRIMARY KEY, parent_id INTEGER NOT NULL REFERENCES parents (id));"
    )
    target = sqlite_target(app, cast, script)
    small = {"name": "a", "type": "number", "options": {"min": 1, "max": 3}}
    parent = [KEY, small, {"name": "b", "type": "row_number"}]
    parents = make(edith, name="parents", fields=parent)["id"]
    link = {"name": "parent_id", "type": "reference", "options": {"template_id": parents, "field": "id"}}
    children = make(edith, name="children", fields=[KEY, link])["id"]
    body = {"name": "Both", "templates": [{"template_id": item, "count": 20} for item in (parents, children)]}
    dataset = edith.post("/datasets", json=body).json["id"]
    ask = {"connection_id": target.connection_id}
    push = edith.post(f"/datasets/{dataset}/push", json=ask).json
    work(push["id"])
    push = edith.get(f"/pushes/{push['id']}").json
    assert (push["status"], push["error"], push["counts"]["failed"]) == ("completed", None, 40)


def test_an_undo_does_not_need_a_table_of_which_nothing_arrived(app, cast, edith, work):
    script = "CREATE TABLE here (id INT PRIMARY KEY); CREATE TABLE away (id INT PRIMARY KEY CHECK (id < 0));"
    target = sqlite_target(app, cast, script)
    members = [
        {"template_id": make(edith, name=name, fields=[KEY])["id"], "count": 5} for name in ("here", "away")
    ]
    dataset = edith.post("/datasets", json={"name": "Both", "templates": members}).json["id"]
    push = edith.post(f"/datasets/{dataset}/push", json={"connection_id": target.connection_id}).json
    work(push["id"])
    target.execute("DROP TABLE away")
    undo = edith.post(f"/pushes/{push['id']}/undo", json={}).json
    work(undo["id"])
    assert edith.get(f"/pushes/{undo['id']}").json["status"] == "completed"
    assert target.count("here") == 0


def test_create_table_makes_a_table_that_was_dropped_since_it_was_last_seen(app, cast, edith, work):
    target = sqlite_target(app, cast, "CREATE TABLE fresh (id INT PRIMARY KEY)")
    edith.get(f"/connections/{target.connection_id}/metadata")
    target.execute("DROP TABLE fresh")
    path = f"/templates/{make(edith, name='fresh', fields=[KEY])['id']}"
    ask = {"connection_id": target.connection_id, "count": 7, "create_table": True}
    work(edith.post(f"{path}/push", json=ask).json["id"])
    assert target.count("fresh") == 7


def test_errors_of_a_push_are_shown_where_they_are(app, api, cast, edith, work):
    target = sqlite_target(app, cast)
    path = f"/templates/{make(edith, name='Customers', fields=CUSTOMERS)['id']}"
    ask = {"connection_id": target.connection_id, "count": 3}
    wrong = edith.post(f"{path}/push", json={**ask, "canary": 0})
    assert [(item["path"], item["message"]) for item in told(wrong)] == [
        ("canary", "Must be a number of rows from 1 to 10,000, or true.")
    ]
    rows = [{"id": 1, "mail": "a@example.com"}]
    wrong = edith.post(
        "/export/db", json={"connection_id": target.connection_id, "table": "orders", "rows": rows}
    )
    assert '"mail".' in told(wrong)[0]["hint"]
    push = api(cast.adam).post(f"{path}/push", json={**ask, "before_sql": ["SELEC 1"]}).json
    work(push["id"])
    assert edith.get(f"/pushes/{push['id']}").json["error"]["message"].startswith("before_sql, statement 1: ")

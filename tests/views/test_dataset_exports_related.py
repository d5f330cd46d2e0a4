"""Exports of datasets whose tables refer to each other: parents first, with keys that databases hold."""

from __future__ import annotations

import io
import sqlite3
import zipfile

import openpyxl
import pytest

from tests.views.speak import make, own, reference


@pytest.fixture
def related(edith):
    """Lines, orders and staff, children first: a dataset whose tables need another order."""
    key = {"name": "id", "type": "row_number"}
    people = make(edith, name="Staff", quantity=40, fields=[key, reference("boss", "self", "id")])["id"]
    orders = make(
        edith,
        name="Orders",
        quantity=90,
        fields=[{"name": "id", "type": "uuid"}, reference("by", people, "id")],
    )["id"]
    lines = make(
        edith,
        name="Lines",
        fields=[key, reference("order_id", orders, "id", cardinality={"min": 1, "max": 3})],
    )["id"]
    tables = [{"template_id": item} for item in (lines, orders, people)]
    return edith.post("/datasets", json={"name": "Related", "templates": tables, "seed": "s"}).json


@pytest.fixture
def script(edith, related, work):
    def made(dialect):
        ask = {"format": "sql", "sql": {"create_table": True, "dialect": dialect}}
        export = edith.post(f"/datasets/{related['id']}/exports", json=ask).json
        work(export["id"])
        return edith.get(f"/exports/{export['id']}/download").text

    return made


def test_sqlite_loads_related_tables_with_its_foreign_keys_on(script):
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA foreign_keys = ON")
    database.executescript(script("ansi"))
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    parents = {
        item: [row[2] for row in database.execute(f"PRAGMA foreign_key_list({item})")]
        for item in ("lines", "orders", "staff")
    }
    assert parents == {"lines": ["orders"], "orders": ["staff"], "staff": ["staff"]}
    joined = (
        "SELECT count(*) FROM lines JOIN orders ON orders.id = order_id JOIN staff ON staff.id = orders.by"
    )
    assert database.execute(joined).fetchone() == database.execute("SELECT count(*) FROM lines").fetchone()
    (fewest, most) = database.execute(
        "SELECT min(n), max(n) FROM (SELECT count(*) AS n FROM lines GROUP BY order_id)"
    ).fetchone()
    assert (fewest, most) == (1, 3)
    assert database.execute("SELECT count(DISTINCT order_id) FROM lines").fetchone() == (90,)
    database.close()


def test_postgresql_loads_related_tables_with_their_foreign_keys(script, postgres_url):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_url) as connection:
        connection.execute(script("postgresql").encode())
        keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'f'"
        assert connection.execute(keys).fetchone() == (3,)
        assert connection.execute("SELECT count(*) FROM staff WHERE boss IS NOT NULL").fetchone() == (39,)


def test_tables_are_sorted_parents_first_and_equal_their_templates(edith, related, work):
    export = edith.post(f"/datasets/{related['id']}/exports", json={"format": "csv"}).json
    work(export["id"])
    with zipfile.ZipFile(io.BytesIO(edith.get(f"/exports/{export['id']}/download").data)) as archive:
        assert archive.namelist() == ["Staff.csv", "Orders.csv", "Lines.csv"]
        tables = edith.post(f"/datasets/{related['id']}/preview").json["tables"]
        assert [table["name"] for table in tables] == ["Lines", "Orders", "Staff"]
        for table in tables:
            alone = own(edith, table["template_id"], format="csv", count=table["count"])
            assert archive.read(f"{table['name']}.csv") == alone
    assert [table["count"] for table in tables[1:]] == [90, 40]
    assert 90 <= tables[0]["count"] <= 270


def test_a_count_holds_for_what_refers_to_the_table(edith, related):
    lines, orders, staff = ({"template_id": template["template_id"]} for template in related["templates"])
    edith.patch(f"/datasets/{related['id']}", json={"templates": [lines, {**orders, "count": 2}, staff]})
    tables = edith.post(f"/datasets/{related['id']}/preview").json["tables"]
    assert [table["count"] for table in tables[1:]] == [2, 40]
    assert 2 <= tables[0]["count"] <= 6
    known = {row["id"] for row in tables[1]["rows"]}
    assert {row["order_id"] for row in tables[0]["rows"]} <= known


def test_a_reference_to_a_template_outside_is_warned_of(edith, related):
    lines = {"template_id": related["templates"][0]["template_id"]}
    found = edith.patch(f"/datasets/{related['id']}", json={"templates": [lines]}).json["warnings"]
    assert [(item["path"], item["code"]) for item in found] == [("templates[0]", "outside_reference")]


@pytest.mark.parametrize("kind", ["csv", "json", "ndjson", "xlsx", "sql", "parquet"])
def test_a_table_whose_parents_have_no_children_is_empty(edith, work, kind):
    key = {"name": "id", "type": "row_number"}
    parent = make(edith, name="Parent", quantity=1, fields=[key])["id"]
    few = {"min": 0, "max": 1, "distribution": "weights", "weights": [1, 0]}
    child = make(edith, name="Child", fields=[key, reference("p", parent, "id", cardinality=few)])["id"]
    tables = [{"template_id": child}, {"template_id": parent}]
    dataset = edith.post("/datasets", json={"name": "D", "templates": tables, "seed": "s"}).json
    seen = edith.post(f"/datasets/{dataset['id']}/preview").json["tables"]
    assert [(item["count"], item["rows"]) for item in seen] == [(0, []), (1, [{"id": 1}])]
    ask = {"format": kind, **({"sql": {"create_table": True}} if kind == "sql" else {})}
    export = edith.post(f"/datasets/{dataset['id']}/exports", json=ask).json
    work(export["id"])
    done = edith.get(f"/exports/{export['id']}").json
    assert (done["status"], done["count"], done["rows_done"]) == ("completed", 1, 1)
    data = edith.get(f"/exports/{export['id']}/download").data
    if kind == "csv":
        assert zipfile.ZipFile(io.BytesIO(data)).read("Child.csv") == b"id,p\r\n"
    elif kind == "xlsx":
        assert [sheet.max_row for sheet in openpyxl.load_workbook(io.BytesIO(data))] == [2, 1]
    elif kind == "sql":
        database = sqlite3.connect(":memory:")
        database.executescript(data.decode())
        database.close()

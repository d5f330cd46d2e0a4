"""Exports of datasets: a worker makes one file of all tables, the rows are those of each template's own generate."""

from __future__ import annotations

import hashlib
import io
import sqlite3
import zipfile
from datetime import timedelta

import openpyxl
import pytest

from jobs.lease import Lease
from tests.views.speak import FIELDS, faults, make, own, refused, rows_used
from webapp import clock, limits
from webapp.access import actors
from webapp.accounts.services import workspaces
from webapp.exports.models import Export
from webapp.extensions import db, write_session

PEOPLE = [
    {"name": "id", "type": "row_number"},
    {"name": "name", "type": "name"},
    {"name": "paid", "type": "number", "options": {"min": 0, "max": 9, "decimals": 2}},
]


@pytest.fixture
def ids(edith):
    """People with a quantity of 300, and things."""
    return [
        make(edith, name="People", fields=PEOPLE, quantity=300)["id"],
        make(edith, name="Things: a/b")["id"],
    ]


@pytest.fixture
def shop(edith, ids):
    tables = [{"template_id": ids[0]}, {"template_id": ids[1], "count": 500}]
    return edith.post("/datasets", json={"name": "My shop", "templates": tables, "seed": "s"}).json


@pytest.fixture
def done(edith, shop, work):
    """The finished export of a request, and its bytes."""

    def make_it(**body):
        answer = edith.post(f"/datasets/{shop['id']}/exports", json=body)
        assert answer.status_code == 201, answer.json
        work(answer.json["id"])
        export = edith.get(f"/exports/{answer.json['id']}").json
        assert (export["status"], export["error"]) == ("completed", None)
        return export, edith.get(f"/exports/{export['id']}/download")

    return make_it


@pytest.fixture
def limited(app, cast):
    """Give the workspace custom limits."""

    def set_to(**numbers):
        with app.app_context():
            workspaces.change_workspace(actors.system_actor(cast.acme), {"own_limits": numbers})
            db.session.remove()

    return set_to


@pytest.mark.parametrize("kind", ["csv", "json", "ndjson"])
def test_an_archive_holds_what_each_template_generates_with_that_seed(edith, ids, done, kind):
    export, answer = done(format=kind)
    assert export["file_name"] == "My shop.zip"
    assert answer.headers["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.data)) as archive:
        assert archive.namelist() == [f"People.{kind}", f"Things_ a_b.{kind}"]
        assert archive.read(archive.namelist()[0]) == own(edith, ids[0], format=kind)
        assert archive.read(archive.namelist()[1]) == own(edith, ids[1], format=kind, count=500)


def test_an_export_shows_its_source_and_how_to_reproduce_it(edith, shop, done):
    export, answer = done(format="csv", seed="other", csv={"delimiter": ";"})
    assert (export["dataset_id"], export["dataset_version"]) == (shop["id"], 1)
    assert (export["template_id"], export["template_version"], export["offset"]) == (None, None, 0)
    assert (export["seed"], export["now"], export["count"], export["rows_done"]) == ("other", None, 800, 800)
    assert hashlib.sha256(answer.data).hexdigest() == export["sha256"]
    assert (answer.headers["X-Seed"], answer.headers["X-Dataset-Version"]) == ("other", "1")
    assert "X-Now" not in answer.headers
    with zipfile.ZipFile(io.BytesIO(answer.data)) as archive:
        assert archive.read("People.csv").startswith(b"id;name;paid")
    again, _ = done(format="csv", seed="other", csv={"delimiter": ";"})
    assert again["sha256"] == export["sha256"]
    listed = edith.get(f"/exports?dataset_id={shop['id']}").json["items"]
    assert [item["id"] for item in listed] == [again["id"], export["id"]]


def test_a_now_holds_for_all_tables(done):
    export, answer = done(now="2031-05-06T07:08:09Z")
    assert export["now"] == answer.headers["X-Now"] == "2031-05-06T07:08:09Z"


def test_a_workbook_has_a_sheet_for_each_table(edith, done):
    export, answer = done(format="xlsx")
    assert export["file_name"] == "My shop.xlsx"
    book = openpyxl.load_workbook(io.BytesIO(answer.data))
    assert book.sheetnames == ["People", "Things  a b"]
    people, things = (list(sheet.iter_rows(values_only=True)) for sheet in book)
    assert (len(people), len(things)) == (301, 501)
    assert people[0] == ("id", "name", "paid")
    assert [row[0] for row in people[1:]] == list(range(1, 301))


def test_a_script_makes_and_fills_all_tables(edith, ids, done):
    export, answer = done(format="sql", sql={"create_table": True})
    assert (export["file_name"], answer.headers["Content-Type"]) == (
        "My shop.sql",
        "application/sql; charset=utf-8",
    )
    database = sqlite3.connect(":memory:")
    database.executescript(answer.data.decode())
    assert database.execute("SELECT count(*), max(id) FROM people").fetchone() == (300, 300)
    assert database.execute("SELECT count(*), max(id) FROM things_a_b").fetchone() == (500, 500)
    with pytest.raises(sqlite3.IntegrityError):  # a row number is the key of its table
        database.execute("INSERT INTO people VALUES (1, 'x', 1)")
    database.close()


def test_without_create_table_a_script_holds_each_templates_own_rows(edith, ids, done):
    _, answer = done(format="sql", sql={"dialect": "mysql"})
    first = own(edith, ids[0], format="sql", sql={"dialect": "mysql"})
    second = own(edith, ids[1], format="sql", count=500, sql={"dialect": "mysql"})
    preamble = b"SET NAMES utf8mb4;\n"
    assert answer.data == first + second.removeprefix(preamble)


def test_tables_of_one_name_have_files_of_their_own(edith, work):
    one, other = (make(edith, name=name, fields=PEOPLE, quantity=2)["id"] for name in ("Same", "same"))
    tables = [{"template_id": one}, {"template_id": other}]
    dataset = edith.post("/datasets", json={"name": "D", "templates": tables, "seed": "s"}).json
    export = edith.post(f"/datasets/{dataset['id']}/exports", json={"format": "csv"}).json
    work(export["id"])
    data = edith.get(f"/exports/{export['id']}/download").data
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == ["Same.csv", "same_2.csv"]


def test_an_export_uses_the_pinned_versions_after_changes(edith, ids, shop, work, done):
    before, _ = done(format="csv")
    export = edith.post(f"/datasets/{shop['id']}/exports", json={"format": "csv"}).json
    edith.patch(f"/templates/{ids[0]}", json={"fields": FIELDS, "quantity": 5, "name": "Other"})
    edith.delete(f"/templates/{ids[1]}")
    edith.patch(f"/datasets/{shop['id']}", json={"templates": [{"template_id": ids[0]}]})
    edith.delete(f"/datasets/{shop['id']}")
    work(export["id"])
    assert edith.get(f"/exports/{export['id']}").json["sha256"] == before["sha256"]


def test_a_lost_export_is_taken_up_again_and_makes_the_same_bytes(edith, shop, app, done, work):
    before, _ = done(format="xlsx")
    export = edith.post(f"/datasets/{shop['id']}/exports", json={"format": "xlsx"}).json
    with app.app_context(), write_session() as session:
        lost = session.get_one(Export, export["id"])
        lost.status, lost.attempt, lost.epoch, lost.lease_owner = "running", 1, 1, "dead:1"
        lost.lease_until = clock.now() - timedelta(seconds=1)
    work(export["id"])
    found = edith.get(f"/exports/{export['id']}").json
    assert (found["status"], found["attempt"], found["sha256"]) == ("completed", 2, before["sha256"])


def test_progress_counts_the_rows_of_all_tables(edith, shop, work, monkeypatch):
    result = []
    real = Lease.save
    monkeypatch.setattr(
        Lease, "save", lambda self, **values: result.append(values["rows_done"]) or real(self, **values)
    )
    monkeypatch.setattr(limits, "EXPORT_PROGRESS_SECONDS", 0)
    export = edith.post(f"/datasets/{shop['id']}/exports", json={"format": "csv"}).json
    work(export["id"])
    assert result == sorted(result)
    assert result[-1] == 800
    events = edith.get(f"/exports/{export['id']}/events").text
    assert events.startswith("id: 1-completed-800\nevent: end\n")


def test_a_range_of_the_file_can_be_downloaded(edith, done):
    export, answer = done(format="json")
    part = edith.get(f"/exports/{export['id']}/download", headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.data) == (206, answer.data[10:20])


def test_rows_of_all_tables_are_spent_once_and_given_back_when_it_is_cancelled(edith, shop, api, cast):
    export = edith.post(f"/datasets/{shop['id']}/exports").json
    assert rows_used(edith) == 800
    assert edith.delete(f"/exports/{export['id']}").json["status"] == "cancelled"
    assert rows_used(edith) == 0
    items = api(cast.adam).get(f"/audit?object_id={shop['id']}").json["items"]
    assert (items[0]["action"], items[0]["rows"], items[0]["details"]["seed"]) == ("dataset.export", 800, "s")


def test_the_hourly_quota_applies_to_the_sum_and_a_rejected_export_does_not_count(edith, shop, limited):
    limited(rows_per_hour=799)
    details = refused(edith.post(f"/datasets/{shop['id']}/exports"), 429, "quota_exceeded")
    assert (details["limit"], details["requested"]) == (799, 800)
    assert rows_used(edith) == 0
    assert edith.get("/exports").json["total"] == 0


def test_the_limit_of_one_call_holds_for_each_table_and_not_for_the_sum(edith, shop, limited):
    limited(rows_per_generation=500)
    assert edith.post(f"/datasets/{shop['id']}/exports").status_code == 201
    edith.patch(
        f"/datasets/{shop['id']}",
        json={"templates": [{"template_id": shop["templates"][1]["template_id"], "count": 501}]},
    )
    details = refused(edith.post(f"/datasets/{shop['id']}/exports"), 422, "row_limit_exceeded")
    assert details == {"limit": 500, "requested": 501}


def test_the_same_idempotency_key_makes_one_export(edith, shop):
    path = f"/datasets/{shop['id']}/exports"
    first, again = (
        edith.post(path, json={"format": "csv"}, headers={"Idempotency-Key": "k"}) for _ in range(2)
    )
    assert first.json == again.json
    assert edith.get("/exports").json["total"] == 1
    assert rows_used(edith) == 800


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"format": "xml"}, {"format": "not_allowed"}),
        ({"count": 5}, {"count": "unknown_key"}),
        ({"seed": ""}, {"seed": "too_short"}),
        ({"sql": {"table": "x"}}, {"sql.table": "unknown_key"}),
        ({"sql": {"dialect": "oracle", "rows_per_statement": 5}}, {"sql": "invalid"}),
        ({"csv": {"delimiter": "::"}}, {"csv": "invalid"}),
        ({"now": "soon"}, {"now": "invalid"}),
    ],
)
def test_an_invalid_request_is_rejected_with_its_path(edith, shop, body, found):
    path = f"/datasets/{shop['id']}/exports"
    got = faults(edith.post(path, json=body))
    assert {key.split(".delimiter")[0]: code for key, code in got.items()}.keys() == found.keys()
    assert edith.get("/exports").json["total"] == 0


def test_data_that_a_format_does_not_support_are_rejected_before_anything_is_queued(edith, shop, monkeypatch):
    monkeypatch.setattr(limits, "XLSX_SHEET_COLUMNS", 2)
    got = faults(edith.post(f"/datasets/{shop['id']}/exports", json={"format": "xlsx"}))
    assert list(got.values()) == ["too_many_columns"]
    assert edith.get("/exports").json["total"] == 0


def test_a_viewer_makes_no_export(api, cast, shop):
    refused(api(cast.victor).post(f"/datasets/{shop['id']}/exports"), 403, "forbidden")

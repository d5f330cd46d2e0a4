"""Fields that take their values from a column of a workspace file: drawn, in turn, looked up."""

from __future__ import annotations

import pytest

from tests.views.speak import faults, make
from tests.views.targets import work  # noqa: F401
from tests.views.uploading import send
from webapp.sources.services import files

CITIES = b"name,country\nUlm,DE\nLyon,FR\nBari,IT\n"
CITY = {"name": "city", "type": "dataset_column", "options": {"file": "cities.csv", "column": "name"}}
COUNTRY = {
    "name": "country",
    "type": "dataset_column",
    "options": {
        "file": "cities.csv",
        "column": "country",
        "mode": "lookup",
        "key": "city",
        "key_column": "name",
    },
}
KNOWN = dict(line.split(",") for line in CITIES.decode().splitlines()[1:])


@pytest.fixture
def edith(api, cast):
    program = api(cast.edith)
    send(program, "cities.csv", CITIES)
    yield program
    files.SOURCE_CACHE.clear()


def rows_of(edith, *fields, count=60):
    answer = edith.post("/generate", json={"fields": fields, "count": count, "seed": "s"})
    assert answer.status_code == 200, answer.json
    return answer.json


def test_rows_are_drawn_and_looked_up(edith):
    rows = rows_of(edith, CITY, COUNTRY)
    assert {row["city"] for row in rows} == set(KNOWN)
    assert all(row["country"] == KNOWN[row["city"]] for row in rows)


def test_a_file_is_gone_through_in_turn(edith):
    one = {**CITY, "options": {**CITY["options"], "mode": "sequential"}}
    assert [row["city"] for row in rows_of(edith, one, count=5)] == ["Ulm", "Lyon", "Bari", "Ulm", "Lyon"]


def test_unique_draws_each_value_once_and_rejects_more(edith):
    one = {**CITY, "unique": True}
    assert sorted(row["city"] for row in rows_of(edith, one, count=3)) == sorted(KNOWN)
    found = faults(edith.post("/generate", json={"fields": [one], "count": 4}))
    assert found == {"fields[0].unique": "not_enough_values"}


def test_missing_values_are_null_or_the_default(edith):
    who = {"name": "city", "type": "enum", "options": {"values": ["Ulm", "Rome"]}}
    default = {**COUNTRY, "options": {**COUNTRY["options"], "on_empty": "default", "default": "??"}}
    assert {row["country"] for row in rows_of(edith, who, COUNTRY)} == {"DE", None}
    assert {row["country"] for row in rows_of(edith, who, default)} == {"DE", "??"}


def test_a_sensitive_column_does_not_leave(edith):
    rows = rows_of(edith, {**CITY, "sensitive": True})
    assert {row["city"] for row in rows} == {"[redacted]"}


def test_errors_are_shown_at_their_options(edith):
    def told(**options):
        one = {**CITY, "options": {**CITY["options"], **options}}
        return next(iter(faults(edith.post("/generate", json={"fields": [one], "count": 1}))))

    assert told(file="none.csv") == "fields[0].options.file"
    assert told(column="town") == "fields[0].options.column"
    assert told(mode="lookup").startswith("fields[0].options")


def test_a_worker_makes_the_same_rows_and_notices_another_file(app, edith):
    from jobs import exports
    from webapp.extensions import db

    path = f"/templates/{make(edith, name='Cities', fields=[CITY, COUNTRY])['id']}"
    before = edith.post(f"{path}/generate", json={"seed": "s", "count": 30}).data

    def done():
        with app.app_context():
            exports.run(export["id"])
            db.session.remove()
        return edith.get(f"/exports/{export['id']}").json

    export = edith.post(f"{path}/exports", json={"seed": "s", "count": 30}).json
    files.SOURCE_CACHE.clear()
    assert done()["status"] == "completed"
    assert edith.get(f"/exports/{export['id']}/download").data == before
    export = edith.post(f"{path}/exports", json={"seed": "s", "count": 30}).json
    send(edith, "cities.csv", CITIES + b"Rome,IT\n")
    files.SOURCE_CACHE.clear()
    assert done()["status"] == "failed"

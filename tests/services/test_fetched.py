"""External values are fetched once, before the first row; later requests get the stored values."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import select, update

from tests.views.speak import make, refused
from webapp import clock, limits, storage
from webapp.connections.models import Connection, Fetched
from webapp.connections.services import access
from webapp.connectors.base import ConnectorError
from webapp.errors import ApiError
from webapp.exports import services as exports
from webapp.exports.models import Export
from webapp.extensions import db, write_session
from webapp.operations.purge import pinned_files
from webapp.sources.services import fetched_files, kept_answers


@pytest.fixture
def target(app, cast):
    """A SQLite connection of Acme's, and a way to speak to its file."""
    place = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
    with app.app_context():
        row = Connection(name="Target", type="sqlite", settings={"file": "target.db"}, **place)
        db.session.add(row)
        db.session.commit()
        db.session.expunge(row)
    return Target(app, row)


class Target:
    """The connection's file, from behind."""

    def __init__(self, app: Any, row: Connection) -> None:
        self.id, self._app, self._row = row.id, app, row

    def does(self, *statements: str) -> None:
        with self._app.app_context(), access.open_session(self._row) as session:
            for statement in statements:
                session.execute(statement)

    def kept(self) -> list[Fetched]:
        with self._app.app_context():
            return list(db.session.scalars(select(Fetched).where(Fetched.expires_at > clock.now())))


@pytest.fixture
def customers(target):
    """Forty customers in the target."""
    target.does(
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, tier TEXT)",
        *(
            f"INSERT INTO customers VALUES ({n}, 'Customer {n}', '{'gold' if n % 2 else 'tin'}')"
            for n in range(1, 41)
        ),
    )
    return target


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


def key(target: Target, **more: Any) -> dict[str, Any]:
    common = {name: more.pop(name) for name in ("unique", "name", "sensitive") if name in more}
    options = {"connection_id": target.id, "table": "customers", "column": "id", **more}
    return {"name": "customer_id", "type": "foreign_key", "options": options, **common}


def asks(target: Target, query: str, **more: Any) -> dict[str, Any]:
    return {
        "name": "value",
        "type": "db_response",
        "options": {"connection_id": target.id, "query": query, **more},
    }


CODE = {"name": "code", "type": "list_sequential", "options": {"values": [3, 5, 3]}}


def path_of(edith, *fields) -> str:
    return f"/templates/{make(edith, fields=list(fields))['id']}"


def generated(edith, path, **body):
    answer = edith.post(f"{path}/generate", json={"count": 50, "seed": "s", **body})
    assert answer.status_code == 200, answer.json
    return answer


def test_keys_of_the_target_come_out_the_same_in_preview_generate_and_export(edith, customers, app):
    path = path_of(edith, key(customers))
    preview = edith.post(f"{path}/preview", json={"seed": "s"})
    result = generated(edith, path)
    assert result.json[:3] == preview.json["rows"]
    assert {row["customer_id"] for row in result.json} <= set(range(1, 41))
    snapshot = result.headers["X-Snapshot"]
    assert preview.headers["X-Snapshot"] == snapshot
    customers.does("DELETE FROM customers WHERE id < 30")
    assert generated(edith, path).data == result.data
    export = edith.post(f"{path}/exports", json={"count": 50, "seed": "s"}).json
    with app.app_context():
        assert exports.load_job(export["id"]).recipe.open().read() == result.data


def test_each_key_is_used_once_or_rejected_before_row_1(edith, customers):
    path = path_of(edith, key(customers, unique=True, filter="tier = 'gold'"))
    result = generated(edith, path, count=20).json
    assert sorted(row["customer_id"] for row in result) == list(range(1, 41, 2))
    details = refused(edith.post(f"{path}/generate", json={"count": 21}), 422, "validation_error")
    assert details["fields"][0]["code"] == "not_enough_values"


def test_a_question_with_a_field_is_asked_once_for_each_value(edith, customers, monkeypatch):
    requests = []
    opened = access.open_reader

    def counting(row, *rest, **more):
        session = opened(row, *rest, **more)
        query = session.query
        session.query = lambda text, values, limit: requests.append(values) or query(text, values, limit)
        return session

    monkeypatch.setattr(access, "open_reader", counting)
    path = path_of(edith, CODE, asks(customers, "SELECT name FROM customers WHERE id = {{code}}"))
    result = generated(edith, path).json
    assert {(row["code"], row["value"]) for row in result} == {(3, "Customer 3"), (5, "Customer 5")}
    assert sorted(values["p0"] for values in requests) == [3, 5]
    generated(edith, path, count=70)
    assert len(requests) == 2


def test_responses_are_requested_again_after_a_refresh_and_an_open_export_keeps_its_own(
    edith, customers, app
):
    path = path_of(edith, key(customers))
    before = generated(edith, path)
    export = edith.post(f"{path}/exports", json={"count": 50, "seed": "s"}).json
    customers.does("DELETE FROM customers WHERE id < 30")
    assert edith.post(f"/connections/{customers.id}/fetched/refresh").json["forgotten"] >= 1
    after = generated(edith, path)
    assert {row["customer_id"] for row in after.json} <= set(range(30, 41))
    assert after.headers["X-Snapshot"] != before.headers["X-Snapshot"]
    with app.app_context():
        kept_answers.purge(clock.now() + timedelta(days=1), pinned_files)
        assert exports.load_job(export["id"]).recipe.open().read() == before.data


def test_expired_responses_are_requested_again_and_purged_once_nothing_pins_them(edith, customers, app):
    path = path_of(edith, key(customers))
    generated(edith, path)
    export = edith.post(f"{path}/exports", json={"count": 5, "seed": "s"}).json
    with app.app_context():
        with write_session() as session:
            session.execute(update(Fetched).values(expires_at=clock.now() - timedelta(seconds=1)))
        kept_answers.purge(clock.now(), pinned_files)
        store = storage.get_storage(app)
        assert len(store.listing(fetched_files.FOLDER)) == 1
        with write_session() as session:
            session.execute(update(Export).where(Export.id == export["id"]).values(status="completed"))
        kept_answers.purge(clock.now(), pinned_files)
        assert store.listing(fetched_files.FOLDER) == []
        assert db.session.scalars(select(Fetched)).all() == []
    customers.does("DELETE FROM customers WHERE id < 30")
    assert {row["customer_id"] for row in generated(edith, path).json} <= set(range(30, 41))


def test_a_draft_makes_no_external_calls_unless_requested(edith, customers):
    fields = [key(customers)]
    look = edith.post("/preview", json={"fields": fields, "seed": "s"}).json
    assert [row["customer_id"] for row in look["rows"]] == [4711] * 3
    assert [(warning["path"], warning["code"]) for warning in look["warnings"]] == [
        ("fields[0]", "placeholder_values")
    ]
    assert customers.kept() == []
    fetched = edith.post("/preview", json={"fields": fields, "seed": "s", "fetch": True}).json
    assert {row["customer_id"] for row in fetched["rows"]} <= set(range(1, 41))
    assert fetched["warnings"] == []
    again = edith.post("/preview", json={"fields": fields, "seed": "s"}).json  # what is stored is shown
    assert again["rows"] == fetched["rows"]


def test_a_viewer_sees_a_saved_preview_but_asks_nothing_of_his_own(api, cast, edith, customers):
    path = path_of(edith, key(customers))
    victor = api(cast.victor)
    assert victor.post(f"{path}/preview", json={}).status_code == 200
    query = [asks(customers, "SELECT name FROM customers")]
    refused(victor.post("/preview", json={"fields": query, "fetch": True}), 403, "forbidden")
    refused(victor.post(f"{path}/preview", json={"fields": query, "fetch": True}), 403, "forbidden")


def test_a_connection_of_others_is_not_there(api, cast, customers):
    mallory = api(cast.mallory)
    answer = mallory.post("/generate", json={"fields": [key(customers)], "count": 3})
    details = refused(answer, 422, "validation_error")
    assert details["fields"][0]["path"] == "fields[0].options.connection_id"
    assert details["fields"][0]["code"] == "unknown_connection"


def test_failures_of_the_target_name_the_field(edith, target):
    answer = edith.post("/generate", json={"fields": [CODE, key(target)], "count": 3})
    details = refused(answer, 502, "target_failed")
    assert (details["path"], details["reason"]) == ("fields[1]", "no_table")
    answer = edith.post("/generate", json={"fields": [asks(target, "SELEC 1")], "count": 3})
    assert refused(answer, 502, "target_failed")["path"] == "fields[0]"


def test_a_missing_column_is_reported_with_the_existing_ones(edith, customers):
    answer = edith.post("/generate", json={"fields": [key(customers, column="nam")], "count": 3})
    assert refused(answer, 502, "target_failed")["hint"] == "Its columns: id, name, tier."


def test_an_empty_table_is_reported_at_the_field(edith, target):
    target.does("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    answer = edith.post("/generate", json={"fields": [key(target)], "count": 3})
    assert refused(answer, 422, "validation_error")["fields"][0]["code"] == "empty_answer"
    blank = edith.post("/generate", json={"fields": [key(target, on_empty="blank")], "count": 3})
    assert blank.json == [{"customer_id": None}] * 3


def test_more_rows_than_a_list_may_have_are_rejected(edith, customers, monkeypatch):
    monkeypatch.setattr(limits, "FETCHED_KEYS", 39)
    monkeypatch.setattr(limits, "FETCHED_ROWS", 39)
    for field in (key(customers), asks(customers, "SELECT name FROM customers")):
        answer = edith.post("/generate", json={"fields": [field], "count": 3})
        assert refused(answer, 502, "target_failed")["reason"] == "too_large"


def test_more_external_requests_than_allowed_are_rejected_before_the_first(edith, customers, monkeypatch):
    monkeypatch.setattr(limits, "FETCHED_PARAMETER_SETS", 5)
    rows = {"name": "code", "type": "row_number"}
    field = asks(customers, "SELECT name FROM customers WHERE id = {{code}}")
    answer = edith.post("/generate", json={"fields": [rows, field], "count": 6})
    assert refused(answer, 422, "validation_error")["fields"][0]["code"] == "too_many_questions"
    assert customers.kept() == []


def test_a_query_that_does_not_end_is_stopped(edith, target, monkeypatch):
    monkeypatch.setattr(limits, "FETCH_SECONDS", 0.3)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    answer = edith.post("/generate", json={"fields": [asks(target, endless)], "count": 1})
    assert refused(answer, 504, "target_timeout")["path"] == "fields[0]"


def test_an_answer_that_came_before_a_failure_is_kept(edith, customers, monkeypatch):
    opened = access.open_reader

    def breaking(row, *rest, **more):
        session = opened(row, *rest, **more)
        query = session.query

        def once(text, values, limit):
            if values["p0"] == 5:
                raise ConnectorError("It broke.", reason="lost")
            return query(text, values, limit)

        session.query = once
        return session

    monkeypatch.setattr(access, "open_reader", breaking)
    field = asks(customers, "SELECT name FROM customers WHERE id = {{code}}")
    refused(edith.post("/generate", json={"fields": [CODE, field], "count": 3}), 502, "target_failed")
    assert len(customers.kept()) == 1


def test_two_concurrent_requests_both_get_the_first_response(app, cast, target):
    with app.app_context():
        first = kept_answers.save(cast.acme, target.id, {"q": pa.table({"a": [1]})})
        second = kept_answers.save(cast.acme, target.id, {"q": pa.table({"a": [2]})})
        assert second["q"].table.to_pylist() == first["q"].table.to_pylist() == [{"a": 1}]


def test_of_many_answers_each_is_kept_once_and_those_that_are_there_stay(app, cast, target, monkeypatch):
    monkeypatch.setattr(limits, "FETCHED_BATCH", 4)
    with app.app_context():
        first = kept_answers.save(cast.acme, target.id, {f"q{n}": pa.table({"a": [n]}) for n in range(5)})
        db.session.query(Fetched).filter_by(question="q1").update({"expires_at": clock.now()})
        db.session.commit()
        again = kept_answers.save(
            cast.acme, target.id, {f"q{n}": pa.table({"a": [n + 100]}) for n in range(10)}
        )
        result = {name: stored.table.to_pylist()[0]["a"] for name, stored in again.items()}
        assert result == {
            "q0": 0,
            "q1": 101,
            "q2": 2,
            "q3": 3,
            "q4": 4,
            **{f"q{n}": n + 100 for n in range(5, 10)},
        }
        assert kept_answers.find_stored(cast.acme, target.id, list(result)) == again
        assert len(first) == 5
        assert sorted(item.question for item in target.kept()) == sorted(result)


def test_answers_of_a_connection_that_is_gone_are_not_kept(app, cast):
    with app.app_context(), pytest.raises(ApiError) as result:
        kept_answers.save(cast.acme, "con_gone", {f"q{n}": pa.table({"a": [n]}) for n in range(3)})
    assert result.value.code == "unavailable"


def test_sensitive_values_of_the_target_are_not_exposed(edith, customers):
    field = {**asks(customers, "SELECT name FROM customers"), "sensitive": True}
    created = edith.post("/generate", json={"fields": [field], "count": 20})
    assert {row["value"] for row in created.json} == {"[redacted]"}
    assert b"Customer" not in created.data


def test_tables_of_a_dataset_draw_from_the_same_answers(edith, customers):
    template = make(edith, fields=[key(customers)])
    tables = [{"template_id": template["id"], "count": 5}]
    dataset = edith.post("/datasets", json={"name": "D", "templates": tables, "seed": "s"}).json
    look = edith.post(f"/datasets/{dataset['id']}/preview", json={})
    assert look.status_code == 200, look.json
    rows = look.json["tables"][0]["rows"]
    assert {row["customer_id"] for row in rows} <= set(range(1, 41))
    created = edith.post(f"/datasets/{dataset['id']}/exports", json={"format": "csv"})
    assert created.status_code == 201, created.json

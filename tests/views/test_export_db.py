"""`/export/db`: rows that are given, or of a template, into a table; small ones are there when it answers."""

from __future__ import annotations

import threading

import pytest

from jobs.pushes import push as job
from tests.jobs.waiting import eventually
from tests.views.speak import faults, make
from tests.views.targets import CUSTOMERS, postgres_target, shop, work  # noqa: F401
from webapp import limits
from webapp.extensions import db, redis_client
from webapp.work.jobs_queue import queued_ids


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def worker(app):
    """Runs the first enqueued push in a thread, as a worker process would."""

    def run() -> None:
        with app.app_context():
            found = eventually(lambda: queued_ids(redis_client(), "push"))
            job.run(found.pop())
            db.session.remove()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()


def test_few_rows_are_there_when_it_answers(edith, shop, worker):
    rows = [{"email": f"{n}@example.org", "age": n} for n in range(20)]
    answer = edith.post(
        "/export/db", json={"connection_id": shop.connection_id, "table": "customers", "rows": rows}
    )
    assert answer.status_code == 201, answer.json
    assert (answer.json["status"], answer.json["counts"]["delivered"]) == ("completed", 20)
    assert shop.execute("SELECT email, age FROM customers ORDER BY age") == [
        (row["email"], row["age"]) for row in rows
    ]


def test_rows_sent_under_an_idempotency_key_are_sent_once_and_answered_twice(edith, shop, worker):
    body = {"connection_id": shop.connection_id, "table": "customers", "rows": [{"email": "a@example.org"}]}
    key = {"Idempotency-Key": "nightly-1"}
    first, again = (edith.post("/export/db", json=body, headers=key) for _ in range(2))
    assert (first.status_code, first.json["status"]) == (201, "completed")
    assert again.json == first.json
    assert again.headers["Idempotent-Replayed"] == "true"
    assert shop.execute("SELECT count(*) FROM customers") == [(1,)]


def test_many_rows_are_answered_in_one_response(edith, shop):
    rows = [{"email": f"{n}@example.org"} for n in range(limits.EXPORT_DB_WAIT_ROWS + 1)]
    body = {"connection_id": shop.connection_id, "table": "customers", "rows": rows}
    answer = edith.post("/export/db", json=body)
    assert (answer.status_code, answer.json["status"]) == (201, "queued")


def test_an_answer_is_not_waited_for_without_end(edith, shop, monkeypatch):
    monkeypatch.setattr(limits, "EXPORT_DB_WAIT_SECONDS", 0.01)
    body = {"connection_id": shop.connection_id, "table": "customers", "rows": [{"email": "a@example.org"}]}
    assert edith.post("/export/db", json=body).json["status"] == "queued"


def test_rows_of_a_template_are_sent_by_its_id(edith, shop, worker):
    template = make(edith, name="Anything", fields=CUSTOMERS)["id"]
    body = {"connection_id": shop.connection_id, "table": "customers", "template_id": template, "count": 7}
    answer = edith.post("/export/db", json=body)
    assert answer.json["template_id"] == template, answer.json
    assert shop.count("customers") == 7


def test_nested_and_mixed_values_arrive_in_postgresql(app, cast, edith, postgres_url, work):
    script = (
        "CREATE TABLE things (n numeric, tags int[], doc jsonb, ok boolean, at timestamptz, huge numeric(30))"
    )
    rows = [
        {
            "n": 1,
            "tags": [1, 2],
            "doc": {"a": [1]},
            "ok": True,
            "at": "2026-11-21T12:00:00Z",
            "huge": str(2**70),
        },
        {"n": 2.5, "tags": None, "doc": [None], "ok": False, "huge": "1"},
    ]
    with postgres_target(app, cast, postgres_url, script) as target:
        body = {"connection_id": target.connection_id, "table": "things", "rows": rows, "on_error": "stop"}
        old, limits.EXPORT_DB_WAIT_SECONDS = limits.EXPORT_DB_WAIT_SECONDS, 0.0
        try:
            push = edith.post("/export/db", json=body)
        finally:
            limits.EXPORT_DB_WAIT_SECONDS = old
        assert push.status_code == 201, push.json
        work(push.json["id"])
        ends = edith.get(f"/pushes/{push.json['id']}/rows").json["items"]
        assert [item["state"] for item in ends] == ["delivered"] * 2, ends
        found = target.execute("SELECT n::text, tags, doc::text, ok, huge::text FROM things ORDER BY n")
        assert found == [("1", [1, 2], '{"a": [1]}', True, str(2**70)), ("2.5", None, "[null]", False, "1")]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"table": "customers"}, {"rows": "missing"}),
        (
            {"table": "customers", "rows": [{"a": 1}], "template_id": "tpl_1"},
            {"rows": "missing", "template_id": "unknown_template"},
        ),
        ({"rows": [{"a": 1}]}, {"table": "missing"}),
        ({"table": "customers", "rows": []}, {"rows": "too_short"}),
        ({"table": "nowhere", "rows": [{"a": 1}]}, {"target": "unknown_table"}),
        ({"table": "customers", "rows": [{"age": 1}]}, {"mapping": "missing_column"}),
    ],
)
def test_invalid_requests_are_reported(edith, shop, body, expected):
    assert faults(edith.post("/export/db", json={"connection_id": shop.connection_id, **body})) == expected

"""Rows of a push once more: retried, repaired, undone; and what a follower sees."""

from __future__ import annotations

import orjson
import pytest

from tests.views.speak import faults, make, refused
from tests.views.targets import CUSTOMERS, ORDERS, connection, postgres_target, shop, work  # noqa: F401
from webapp import limits
from webapp.access import actors
from webapp.connectors.base import ConnectionLost, ConnectorError
from webapp.connectors.sqlite.session import SqliteSession, SqliteTarget
from webapp.operations import work as operations_work
from webapp.pushes.services import planning

IDENTITY = """
CREATE TABLE people (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email varchar(60) NOT NULL, age int CHECK (age < 200),
    boss bigint REFERENCES people (id)
);
"""


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def half(edith, shop, work):
    """A push of 20 orders, of which those of customers above 5 were refused."""
    for number in range(1, 6):
        shop.execute(f"INSERT INTO customers (id, email) VALUES ({number}, 'c{number}')")
    path = f"/templates/{make(edith, name='Orders', fields=ORDERS)['id']}"
    push = edith.post(
        f"{path}/push", json={"connection_id": shop.connection_id, "count": 20, "seed": "s"}
    ).json
    work(push["id"])
    return edith.get(f"/pushes/{push['id']}").json


def test_a_retry_sends_only_the_rows_that_failed(edith, half, shop, work):
    failed = half["counts"]["failed"]
    assert 0 < failed < 20
    for number in range(6, 11):
        shop.execute(f"INSERT INTO customers (id, email) VALUES ({number}, 'c{number}')")
    used = edith.get("/usage").json["rows"]["used"]
    answer = edith.post(f"/pushes/{half['id']}/retry", json={})
    assert answer.status_code == 201, answer.json
    again = answer.json
    assert (again["kind"], again["of_id"], again["counts"]["total"]) == ("retry", half["id"], failed)
    work(again["id"])
    assert shop.count("orders") == 20
    assert edith.get(f"/pushes/{half['id']}").json["counts"] == {
        "total": 20, "delivered": 20, "failed": 0, "unknown": 0, "pending": 0, "undone": 0,
    }  # fmt: skip
    assert edith.get(f"/pushes?of_id={half['id']}").json["total"] == 1
    assert edith.get("/usage").json["rows"]["used"] == used


def test_a_retry_that_was_pressed_twice_sends_no_row_twice(edith, half):
    assert edith.post(f"/pushes/{half['id']}/retry", json={}).status_code == 201
    again = edith.post(f"/pushes/{half['id']}/retry", json={})
    assert faults(again) == {"states": "nothing_to_send"}


def test_a_fixed_value_repairs_the_rows_that_failed(edith, half, shop, work):
    again = edith.post(f"/pushes/{half['id']}/retry", json={"overrides": {"customer_id": 1}})
    assert again.status_code == 201, again.json
    work(again.json["id"])
    assert edith.get(f"/pushes/{half['id']}").json["counts"]["delivered"] == 20
    assert shop.execute("SELECT count(*) FROM orders WHERE customer_id = 1")[0][0] >= half["counts"]["failed"]


def test_a_formula_repairs_the_rows_that_failed(edith, half, shop, work):
    repair = {
        "mapping": {"customer_id": None},
        "computed": {"customer_id": "customer_id - 5"},
        "states": ["failed"],
    }
    again = edith.post(f"/pushes/{half['id']}/retry", json=repair)
    assert again.status_code == 201, again.json
    work(again.json["id"])
    assert shop.count("orders") == 20


def test_an_invalid_repair_sends_nothing(edith, half):
    answer = edith.post(f"/pushes/{half['id']}/retry", json={"mapping": {"amuont": "amount"}})
    assert faults(answer) == {"mapping.amuont": "unknown_field"}
    answer = edith.post(f"/pushes/{half['id']}/retry", json={"table": "Order"})
    assert faults(answer) == {"table": "unknown_table"}
    assert edith.get(f"/pushes?of_id={half['id']}").json["total"] == 0


def test_rows_to_retry_can_be_named(edith, half, shop, work):
    row = edith.get(f"/pushes/{half['id']}/rows?state=failed&limit=1").json["items"][0]["row"]
    again = edith.post(f"/pushes/{half['id']}/retry", json={"rows": [row], "overrides": {"customer_id": 2}})
    assert again.json["counts"]["total"] == 1
    work(again.json["id"])
    assert edith.get(f"/pushes/{half['id']}").json["counts"]["failed"] == half["counts"]["failed"] - 1


def test_an_undo_takes_out_what_was_brought_and_nothing_else(edith, half, shop, work):
    shop.execute("INSERT INTO orders (id, customer_id, amount) VALUES (999, 1, 1)")
    answer = edith.post(f"/pushes/{half['id']}/undo", json={})
    assert answer.status_code == 201, answer.json
    undo = answer.json
    assert (undo["kind"], undo["of_id"]) == ("undo", half["id"])
    work(undo["id"])
    assert edith.get(f"/pushes/{undo['id']}").json["counts"]["delivered"] == half["counts"]["delivered"]
    assert shop.execute("SELECT id FROM orders") == [(999,)]
    assert faults(edith.post(f"/pushes/{half['id']}/undo", json={})) == {"": "nothing_to_send"}


def test_keys_that_the_target_made_are_captured_and_undone(app, cast, edith, postgres_url, work):
    fields = [
        {"name": "email", "type": "email"},
        {"name": "age", "type": "number", "options": {"min": 1, "max": 90}},
    ]
    path = f"/templates/{make(edith, name='People', fields=fields)['id']}"
    with postgres_target(app, cast, postgres_url, IDENTITY) as target:
        push = edith.post(f"{path}/push", json={"connection_id": target.connection_id, "count": 1_500}).json
        assert push["tables"][0]["key_columns"] == ["id"]
        work(push["id"])
        assert target.count("people") == 1_500
        work(edith.post(f"/pushes/{push['id']}/undo", json={}).json["id"])
        assert target.count("people") == 0


# --- Cancelling and following ------------------------------------------------------------------------------------


@pytest.fixture
def queued(edith, shop):
    path = f"/templates/{make(edith, name='Customers', fields=CUSTOMERS)['id']}"
    return edith.post(f"{path}/push", json={"connection_id": shop.connection_id, "count": 30}).json


def test_a_queued_push_that_is_cancelled_sends_and_spends_nothing(edith, queued, shop):
    answer = edith.delete(f"/pushes/{queued['id']}")
    assert (answer.status_code, answer.json["status"]) == (200, "cancelled")
    assert shop.count("customers") == 0
    assert edith.get("/usage").json["rows"]["used"] == 0
    refused(edith.delete(f"/pushes/{queued['id']}"), 409, "run_finished")


def test_a_running_push_cannot_be_retried_or_undone(edith, queued):
    assert refused(edith.post(f"/pushes/{queued['id']}/retry", json={}), 409, "conflict") == {
        "status": "queued"
    }
    refused(edith.post(f"/pushes/{queued['id']}/undo", json={}), 409, "conflict")


def test_rows_of_a_cancelled_push_are_resumed_counted_and_undone(edith, queued, shop, work):
    path = f"/pushes/{queued['id']}"
    edith.delete(path)
    answer = edith.post(f"{path}/retry", json={})
    assert faults(answer) == {"states": "nothing_to_send"}
    hint = answer.json["error"]["details"]["fields"][0]["hint"]
    assert hint == '30 rows were never sent. To send them, use states ["pending"].'
    assert edith.get("/usage").json["rows"]["used"] == 0
    some = edith.post(f"{path}/retry", json={"states": ["pending"], "rows": [3, 4, 30]})
    assert (some.status_code, some.json["counts"]["total"]) == (201, 3), some.json
    again = edith.post(f"{path}/retry", json={"states": ["pending"]})
    assert (again.status_code, again.json["counts"]["total"]) == (201, 27), "those in hand are left out"
    assert faults(edith.post(f"{path}/retry", json={"states": ["pending"]})) == {"states": "nothing_to_send"}
    assert edith.get("/usage").json["rows"]["used"] == 30
    work(again.json["id"])
    work(some.json["id"])
    assert shop.count("customers") == 30
    assert edith.get(path).json["counts"] == {
        "total": 30, "delivered": 30, "failed": 0, "unknown": 0, "pending": 0, "undone": 0,
    }  # fmt: skip
    undo = edith.post(f"{path}/undo", json={}).json
    refused(edith.post(f"{path}/retry", json={"states": ["pending"]}), 409, "conflict")
    work(undo["id"])
    assert edith.get(path).json["counts"] == {
        "total": 30, "delivered": 0, "failed": 0, "unknown": 0, "pending": 0, "undone": 30,
    }  # fmt: skip
    assert edith.get(f"{path}/rows?state=undone").json["total"] == 30
    assert edith.get(f"{path}/rows?state=delivered").json["total"] == 0
    assert edith.get(f"/pushes/{some.json['id']}").json["counts"]["undone"] == 3
    text = edith.get(f"/pushes/{undo['id']}/logs").get_data(as_text=True)
    assert "completed (30 deleted, 0 failed" in text
    assert "delivered" not in text
    events = edith.get(f"{path}/events").get_data(as_text=True)
    assert orjson.loads(events.rpartition("data: ")[2])["counts"]["undone"] == 30


def test_going_on_may_be_repaired_and_gives_back_what_it_does_not_send(edith, queued, shop, work):
    path = f"/pushes/{queued['id']}"
    edith.delete(path)
    again = edith.post(f"{path}/retry", json={"states": ["pending"], "overrides": {"age": 44}}).json
    edith.delete(f"/pushes/{again['id']}")
    assert edith.get("/usage").json["rows"]["used"] == 0
    third = edith.post(f"/pushes/{again['id']}/retry", json={"states": ["pending"], "overrides": {"age": 45}})
    assert third.status_code == 201, third.json
    work(third.json["id"])
    assert shop.execute("SELECT count(*), min(age), max(age) FROM customers") == [(30, 45, 45)]
    assert edith.get(path).json["counts"]["delivered"] == 30


def test_a_cancelled_retry_can_be_resumed_from_its_own_page(edith, half, shop, work):
    again = edith.post(f"/pushes/{half['id']}/retry", json={}).json
    edith.delete(f"/pushes/{again['id']}")
    third = edith.post(
        f"/pushes/{again['id']}/retry", json={"states": ["pending"], "overrides": {"customer_id": 1}}
    )
    assert third.json["counts"]["total"] == half["counts"]["failed"]
    work(third.json["id"])
    assert edith.get(f"/pushes/{half['id']}").json["counts"]["delivered"] == 20


def test_an_entry_of_the_log_is_one_line(edith, shop, work):
    path = f"/templates/{make(edith, name='Made', fields=CUSTOMERS)['id']}"
    ask = {"connection_id": shop.connection_id, "count": 3, "target": "made", "create_table": True}
    push = edith.post(f"{path}/push", json=ask).json
    work(push["id"])
    lines = edith.get(f"/pushes/{push['id']}/logs").get_data(as_text=True).splitlines()
    assert all(line[:2] == "20" for line in lines), lines
    assert any('CREATE TABLE "made" ( "id"' in line for line in lines), lines


def test_the_log_is_text_and_a_follower_gets_each_line_under_its_number(edith, queued, work, monkeypatch):
    monkeypatch.setattr(limits, "SSE_POLL_SECONDS", 0.01)
    work(queued["id"])
    text = edith.get(f"/pushes/{queued['id']}/logs")
    assert text.mimetype == "text/plain"
    lines = text.get_data(as_text=True).splitlines()
    assert lines[-1].endswith("completed (30 delivered, 0 failed, 0 unknown, 0 pending)")
    reported = edith.get(f"/pushes/{queued['id']}/logs?follow=true").get_data(as_text=True).split("\n\n")[:-1]
    assert [item.split("\n")[0] for item in reported[:-1]] == [f"id: {n}" for n in range(1, len(lines) + 1)]
    assert all("event: log" in item for item in reported[:-1])
    assert "event: end" in reported[-1]
    assert orjson.loads(reported[-1].rpartition("data: ")[2])["status"] == "completed"
    later = edith.get(
        f"/pushes/{queued['id']}/logs?follow=true", headers={"Last-Event-ID": str(len(lines) - 1)}
    )
    assert later.get_data(as_text=True).startswith(f"id: {len(lines)}\nevent: log")


def test_a_follower_of_the_counts_gets_an_end(edith, queued, work):
    work(queued["id"])
    text = edith.get(f"/pushes/{queued['id']}/events").get_data(as_text=True)
    assert "event: end" in text
    assert orjson.loads(text.rpartition("data: ")[2])["counts"]["delivered"] == 30


def test_pushes_are_found_by_what_they_belong_to(edith, queued, shop):
    template = queued["template_id"]
    for query in (
        f"template_id={template}",
        f"connection_id={shop.connection_id}",
        "status=queued",
        "q=CUSTOM",
    ):
        assert edith.get(f"/pushes?{query}").json["total"] == 1, query
    for query in ("template_id=tpl_x", "connection_id=con_x", "status=completed", "q=order"):
        assert edith.get(f"/pushes?{query}").json["total"] == 0, query


# --- A commit in doubt ----------------------------------------------------------------------------------------


@pytest.fixture
def in_doubt(edith, shop, work, monkeypatch):
    """A failed push of 30 rows: 10 delivered, 10 whose commit is in doubt, 10 never sent. `arrived` says whether the
    target has committed them before it went away."""

    def do(arrived: bool) -> dict:
        monkeypatch.setattr(limits, "PUSH_FIRST_ROWS", 10)
        monkeypatch.setattr(limits, "PUSH_CHUNK_ROWS", 10)
        path = f"/templates/{make(edith, name='Customers', fields=CUSTOMERS)['id']}/push"
        ask = {"connection_id": shop.connection_id, "count": 30, "target_wait_seconds": 0}
        push = edith.post(path, json=ask)
        assert push.status_code == 201, push.json
        real_commit, real_open, commits = SqliteTarget.commit, planning._open_link, []

        def commit(target):
            commits.append(1)
            if len(commits) == 2 and not arrived:
                target.rollback()
                raise ConnectionLost("The connection was lost.")
            real_commit(target)
            if len(commits) == 2:
                raise ConnectionLost("The connection was lost.")

        def opened(*args):
            if commits:
                raise ConnectorError("Nobody listens there.", reason="refused", transient=True)
            return real_open(*args)

        with monkeypatch.context() as away:
            away.setattr(SqliteTarget, "commit", commit)
            away.setattr(planning, "_open_link", opened)
            work(push.json["id"])
        failed = edith.get(f"/pushes/{push.json['id']}").json
        assert (failed["status"], failed["error"]["code"]) == ("failed", "target_failed")
        assert {name: failed["counts"][name] for name in ("delivered", "unknown", "pending")} == {
            "delivered": 10, "unknown": 10, "pending": 10,
        }  # fmt: skip
        return failed

    return do


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize("states", [["pending"], ["pending", "failed", "unknown"]])
def test_resuming_settles_a_commit_in_doubt_before_it_sends_rows(
    edith, shop, work, in_doubt, arrived, states
):
    failed = in_doubt(arrived)
    again = edith.post(f"/pushes/{failed['id']}/retry", json={"states": states})
    assert (again.status_code, again.json["counts"]["total"]) == (201, 20)
    work(again.json["id"])
    done = edith.get(f"/pushes/{again.json['id']}").json
    sent = 10 if arrived else 20
    assert (done["status"], done["counts"]["total"], done["counts"]["delivered"]) == ("completed", sent, sent)
    assert edith.get(f"/pushes/{failed['id']}").json["counts"] == {
        "total": 30, "delivered": 30, "failed": 0, "unknown": 0, "pending": 0, "undone": 0,
    }  # fmt: skip
    assert shop.execute("SELECT count(*), count(DISTINCT id) FROM customers") == [(30, 30)]
    log = edith.get(f"/pushes/{done['id']}/logs").text
    assert f"10 rows in doubt {'were' if arrived else 'were not'} delivered" in log
    undo = edith.post(f"/pushes/{failed['id']}/undo", json={})
    assert undo.status_code == 201, undo.json
    work(undo.json["id"])
    assert shop.count("customers") == 0


def test_rows_in_doubt_that_the_target_cannot_tell_about_stay_unknown(
    edith, shop, work, in_doubt, monkeypatch
):
    failed = in_doubt(True)
    monkeypatch.setattr(SqliteSession, "commit_outcome", lambda *_: None)
    again = edith.post(f"/pushes/{failed['id']}/retry", json={"states": ["pending"]})
    work(again.json["id"])
    counts = edith.get(f"/pushes/{failed['id']}").json["counts"]
    assert (counts["delivered"], counts["unknown"], counts["failed"]) == (20, 10, 0)
    assert shop.count("customers") == 30


# --- Waiting for the target -----------------------------------------------------------------------------------


@pytest.fixture
def waiting(edith, shop, work, monkeypatch):
    """A push whose target cannot be reached, and that has released its worker."""

    def refused_by_target(*_args):
        raise ConnectorError("Nobody listens there.", reason="refused", transient=True)

    path = f"/templates/{make(edith, name='Customers', fields=CUSTOMERS)['id']}/push"
    push = edith.post(path, json={"connection_id": shop.connection_id, "count": 30}).json
    monkeypatch.setattr(limits, "PUSH_TARGET_RETRY_SECONDS", (20.0,))
    with monkeypatch.context() as away:
        away.setattr(planning, "_open_link", refused_by_target)
        work(push["id"])
    return edith.get(f"/pushes/{push['id']}").json


def test_a_waiting_push_says_when_the_next_try_is(browser, cast, edith, waiting):
    assert (waiting["status"], waiting["attempt"], waiting["error"]) == ("running", 1, None)
    result = waiting["waiting"]
    assert (result["reason"], result["message"], result["tries"]) == ("refused", "Nobody listens there.", 1)
    assert 10 <= result["next_try_in_seconds"] <= 20
    page = browser(cast.edith).get(f"/pushes/{waiting['id']}").text
    assert "Waiting for the target" in page
    assert "next try in" in page
    log = edith.get(f"/pushes/{waiting['id']}/logs").text
    assert "Waiting for the target, next try in 20 s." in log


def test_a_waiting_push_is_cancelled_immediately(edith, waiting, shop):
    answer = edith.delete(f"/pushes/{waiting['id']}")
    assert (answer.status_code, answer.json["status"], answer.json["waiting"]) == (200, "cancelled", None)
    assert answer.json["counts"]["pending"] == 30


def test_releasing_a_waiting_push_tries_the_target_immediately(app, cast, edith, waiting, shop, work):
    with app.app_context():
        operations_work.release(actors.system_actor(cast.acme), waiting["id"], 1)
    work(waiting["id"])
    done = edith.get(f"/pushes/{waiting['id']}").json
    assert (done["status"], done["counts"]["delivered"], done["waiting"]) == ("completed", 30, None)


def test_a_push_over_http_waits_for_its_target(app, cast, edith, work):
    to = connection(app, cast, "rest", {"base_url": "http://127.0.0.1:9", "retry": {"retries": 0}})
    path = f"/templates/{make(edith, name='Customers', fields=CUSTOMERS)['id']}/push"
    answer = edith.post(path, json={"connection_id": to, "target": "x", "count": 5, "target_wait_seconds": 1})
    assert answer.status_code == 201, answer.json
    work(answer.json["id"])
    push = edith.get(f"/pushes/{answer.json['id']}").json
    assert (push["status"], push["counts"]["pending"], push["counts"]["failed"]) == ("failed", 5, 0)
    assert "Waiting for the target, next try in" in edith.get(f"/pushes/{push['id']}/logs").text

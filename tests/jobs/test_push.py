"""A push from its first row to its end, into real tables of SQLite and PostgreSQL."""

from __future__ import annotations

import sqlalchemy as sa

from jobs import lease
from jobs.pushes import push, wait
from tests.jobs.pushing import rows, table_spec
from webapp import limits
from webapp.audit.models import AuditEntry
from webapp.connectors.base import ConnectionLost, ConnectorError
from webapp.extensions import read_session
from webapp.pushes.models import PushRow
from webapp.pushes.services.ledger import read


def people(count: int, table: str = "people", **columns):
    value = rows(count, **{"age": lambda i: 30, **columns})
    return [(table_spec(table, value), value)]


def counts(push_row) -> tuple[int, int, int]:
    return push_row.delivered, push_row.failed, push_row.unknown


def bad(pushing, push_id, state="failed"):
    return [(row.row, row.code) for row in read.rows(push_id, state=state, limit=1000)]


def test_a_clean_push_is_one_range_and_no_rows(pushing, ask, small_chunks):
    push_id = pushing.push(people(1_030))
    done = pushing.do(push_id)
    assert (done.status, counts(done), done.intent) == ("completed", (1_030, 0, 0), None)
    assert pushing.ranges(push_id) == [(0, 1, 1_030)]
    assert ask("SELECT count(*), min(id), max(id) FROM people") == [(1_030, 1, 1_030)]
    with read_session() as session:
        assert session.query(PushRow).count() == 0


def test_rejected_rows_have_their_reason_and_key_and_the_others_are_written(pushing, ask, small_chunks):
    push_id = pushing.push(people(300, age=lambda i: 95 if i % 100 == 7 else 30))
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (297, 3, 0))
    assert bad(pushing, push_id) == [(7, "check"), (107, "check"), (207, "check")]
    assert read.rows(push_id, state="failed")[0].key == {"id": 7}
    assert ask("SELECT count(*) FROM people") == [(297,)]
    states = [row.state for row in read.rows(push_id, limit=8)]
    assert states == ["delivered"] * 6 + ["failed", "delivered"]


def test_values_of_sensitive_columns_are_in_no_message_and_no_key(pushing, ask, monkeypatch, target):
    value = rows(5, name=lambda i: "topsecret-value", age=lambda i: 95)
    monkeypatch.setattr("webapp.pushes.services.rows.TableRows.sensitive", frozenset({"id", "name"}))
    push_id = pushing.push([(table_spec("people", value), value)])
    pushing.do(push_id)
    with read_session() as session:
        reported = [(row.message, row.key) for row in session.query(PushRow)]
    assert len(reported) == 5
    assert "topsecret" not in str(reported)
    assert {row[1]["id"] for row in reported} == {"********"}


def test_every_row_is_tried_although_all_are_rejected(pushing, ask, monkeypatch):
    monkeypatch.setattr(limits, "PUSH_CHUNK_ROWS", 1_000)
    push_id = pushing.push(people(2_400, age=lambda i: 95, name=lambda i: None if i % 2 else "x"))
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (0, 2_400, 0))
    with read_session() as session:
        found = session.query(PushRow.row, PushRow.code, PushRow.column).order_by(PushRow.row).all()
    assert [row for row, _, _ in found] == list(range(1, 2_401))
    odd, even = {row[1] for row in found[::2]}, {row[1] for row in found[1::2]}
    assert (odd, even) == ({"not_null"}, {"check"})


def test_stop_when_all_fail_ends_a_push_whose_first_rows_fail_for_one_reason(pushing, ask, monkeypatch):
    monkeypatch.setattr(limits, "PUSH_CHUNK_ROWS", 100)
    push_id = pushing.push(people(5_000, age=lambda i: 95), ask={"on_error": "stop_when_all_fail"})
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("failed", (0, 1_000, 0))
    assert done.error["code"] == "target_failed"
    assert "first 1,000 rows of people all failed" in done.error["message"]


def test_stop_keeps_the_rows_before_the_first_rejected_one_and_sends_no_other(pushing, ask, small_chunks):
    push_id = pushing.push(people(500, age=lambda i: 95 if i in (130, 140) else 30), ask={"on_error": "stop"})
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("failed", (129, 1, 0))
    assert "Row 130 of people" in done.error["message"]
    assert ask("SELECT count(*), max(id) FROM people") == [(129, 129)]


def test_a_rejected_canary_ends_the_push_before_the_others_are_sent(pushing, ask):
    push_id = pushing.push(people(500, age=lambda i: 95 if i == 3 else 30), ask={"canary": 5})
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("failed", (4, 1, 0))
    assert ask("SELECT count(*) FROM people") == [(4,)]


def test_a_good_canary_is_followed_by_the_others(pushing, ask):
    done = pushing.do(pushing.push(people(500, age=lambda i: 95 if i == 6 else 30), ask={"canary": 5}))
    assert (done.status, counts(done)) == ("completed", (499, 1, 0))


def test_a_table_that_is_not_there_ends_the_push_with_a_hint(pushing):
    done = pushing.do(pushing.push(people(5, "nobody")))
    assert (done.status, counts(done)) == ("failed", (0, 0, 0))
    assert done.error["code"] == "target_failed"
    assert "nobody" in done.error["message"]


def test_a_missing_table_is_created_on_request(pushing, ask):
    value = rows(20)
    columns = [
        {"name": "id", "type": "integer", "declared": "", "bits": 64, "nullable": False, "key": True},
        {"name": "name", "type": "text", "declared": "", "max_length": 60},
    ]
    spec = table_spec("made", value, create=True, definition=columns)
    assert pushing.do(pushing.push([(spec, value)])).status == "completed"
    assert pushing.do(pushing.push([({**spec, "offset": 0}, value)])).failed == 20, "made once, and kept"
    assert ask("SELECT count(*) FROM made") == [(20,)]


def test_statements_before_and_after_are_carried_out_once(pushing, ask, monkeypatch):
    before = ["CREATE TABLE marks (n int)", "INSERT INTO marks VALUES (1)"]
    push_id = pushing.push(
        people(20), ask={"before_sql": before, "after_sql": ["INSERT INTO marks SELECT count(*) FROM people"]}
    )
    real = push.DatabaseSender
    monkeypatch.setattr(wait, "wait", lambda *_: None)
    broken = []

    def once(*arguments, **options):
        if not broken:
            broken.append(1)
            raise ConnectionLost("away")
        return real(*arguments, **options)

    monkeypatch.setattr(push, "DatabaseSender", once)
    assert pushing.do(push_id).status == "completed"
    assert ask("SELECT n FROM marks ORDER BY n") == [(1,), (20,)]


def test_a_statement_that_fails_ends_the_push_before_any_row(pushing, ask):
    done = pushing.do(pushing.push(people(20), ask={"before_sql": ["DROP TABLE nobody"]}))
    assert done.status == "failed"
    assert done.error["details"]["statement"] == "before_sql, statement 1"
    assert ask("SELECT count(*) FROM people") == [(0,)]


# --- Keys -----------------------------------------------------------------------------------------------------


def test_children_take_the_keys_that_the_target_made_for_their_parents(pushing, ask, small_chunks):
    parents, children = rows(230).drop_columns(["id"]), rows(700, boss=lambda i: i % 230).drop_columns(["id"])
    refer = {"boss": {"table": 0, "column": "id", "field": "boss"}}
    tables = [
        (table_spec("staff", parents, capture=["id"]), parents),
        (table_spec("staff", children, capture=["id"], from_parent=refer), children),
    ]
    push_id = pushing.push(tables, parents={"boss": "boss"})
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (930, 0, 0))
    wrong = ask(
        "SELECT count(*) FROM staff c JOIN staff p ON c.boss = p.id"
        " WHERE p.boss IS NULL AND c.name = 'name 5' AND p.name <> 'name 6'"
    )
    assert wrong == [(0,)]
    assert ask("SELECT count(*), count(DISTINCT boss) FROM staff WHERE boss IS NOT NULL") == [(700, 230)]


def test_keys_of_a_cycle_are_sent_null_and_set_afterwards(pushing, ask, small_chunks):
    value = rows(330, boss=lambda i: 330 - i).drop_columns(["id"])
    refer = {"boss": {"table": 0, "column": "id", "field": "boss"}}
    spec = table_spec("staff", value, capture=["id"], from_parent=refer, later=["boss"])
    push_id = pushing.push([(spec, value)], parents={"boss": "boss"})
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (330, 0, 0))
    pairs = ask("SELECT c.name, p.name FROM staff c JOIN staff p ON c.boss = p.id")
    assert len(pairs) == 330
    assert {(int(c[5:]), int(p[5:])) for c, p in pairs} == {(i, 331 - i) for i in range(1, 331)}
    undone = pushing.do(pushing.undo(push_id))
    assert (undone.status, counts(undone)) == ("completed", (330, 0, 0))
    assert ask("SELECT count(*) FROM staff") == [(0,)]


def test_children_whose_parent_has_no_key_are_not_sent(pushing, ask):
    parents = rows(20, name=lambda i: "bad" if i == 3 else "good").drop_columns(["id"])
    children = rows(40, boss=lambda i: i % 20).drop_columns(["id"])
    refer = {"boss": {"table": 0, "column": "id", "field": "boss"}}
    tables = [
        (table_spec("staff", parents, capture=["id"]), parents),
        (table_spec("staff", children, capture=["id"], from_parent=refer), children),
    ]
    push_id = pushing.push(tables, parents={"boss": "boss"})
    done = pushing.do(push_id)
    assert (done.status, done.delivered, done.failed) == ("completed", 19 + 38, 1 + 2)
    assert bad(pushing, push_id) == [(3, "check"), (2, "foreign_key"), (22, "foreign_key")]
    assert ask("SELECT count(*) FROM staff") == [(57,)]


# --- Retry and undo -------------------------------------------------------------------------------------------


def test_a_retry_sends_only_the_failed_rows_and_updates_the_first_pushs_counts(pushing, ask, small_chunks):
    push_id = pushing.push(people(300, age=lambda i: 95 if i % 50 == 7 else 30))
    pushing.do(push_id)
    again = pushing.retry(push_id)
    repaired = rows(300, age=lambda i: 95 if i == 157 else 31)
    pushing.makers[again] = [type(pushing.makers[push_id][0])(repaired, {})]
    done = pushing.do(again)
    assert (done.status, counts(done)) == ("completed", (5, 1, 0))
    assert counts(pushing.read(push_id)) == (299, 1, 0)
    assert bad(pushing, push_id) == [(157, "check")]
    assert ask("SELECT count(*) FROM people WHERE age = 31") == [(5,)]
    assert [row.row for row in read.rows(again)] == [7, 57, 107, 157, 207, 257]


def test_an_undo_deletes_delivered_rows_and_reports_the_others(pushing, ask, small_chunks):
    push_id = pushing.push(people(300, age=lambda i: 95 if i == 7 else 30))
    pushing.do(push_id)
    ask("INSERT INTO people (id, name) VALUES (100000, 'a stranger') RETURNING id")
    ask("DELETE FROM people WHERE id = 20 RETURNING id")
    undone = pushing.do(pushing.undo(push_id))
    assert (undone.status, counts(undone)) == ("completed", (298, 1, 0))
    assert bad(pushing, undone.id) == [(20, "missing_row")]
    assert ask("SELECT id FROM people") == [(100000,)]
    assert {row.state for row in read.rows(push_id, limit=6)} == {"undone"}
    second = pushing.do(pushing.undo(push_id, total=1))
    assert counts(second) == (0, 1, 0), "only what the first undo left is tried again"


# --- The end --------------------------------------------------------------------------------------------------


def test_the_end_is_recorded_once_in_the_log_and_in_the_audit_log(pushing):
    push_id = pushing.push(people(20))
    pushing.do(push_id)
    push.completion.settle(push_id)
    lines = read.log_lines(push_id)
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1].text == "completed (20 delivered, 0 failed, 0 unknown, 0 pending)"
    with read_session() as session:
        entries = session.query(AuditEntry).where(AuditEntry.action == "push.end").all()
        assert [(entry.object_id, entry.details["delivered"]) for entry in entries] == [(push_id, 20)]
    assert read.log_lines(push_id, after=lines[-2].number) == lines[-1:]


def test_rows_that_were_never_sent_are_given_back(pushing, monkeypatch):
    value = []
    monkeypatch.setattr(
        push.completion.quotas, "return_rows", lambda stored, count: value.append((stored.rows, count))
    )
    push_id = pushing.push(people(500, age=lambda i: 95 if i == 6 else 30), ask={"canary": 10})
    with read_session() as session:
        request = {"ask": {"canary": 10}, "quota": {"rows": 500, "second": 1}}
        session.execute(sa.update(push.completion.Push).values(request=request))
        session.commit()
    pushing.do(push_id)
    push.completion.settle(push_id)
    assert value == [(500, 490)]


def test_a_stopping_worker_releases_its_work_with_correct_counts_and_the_next_continues(
    pushing, ask, small_chunks, monkeypatch
):
    push_id = pushing.push(people(500))
    real = push.DatabaseSender._send

    def stopped(sender, part):
        real(sender, part)
        if part.numbers[0] > 150:
            lease.stopping.set()

    monkeypatch.setattr(push.DatabaseSender, "_send", stopped)
    freed = pushing.do(push_id)
    lease.stopping.clear()
    assert (freed.status, freed.lease_owner) == ("running", None)
    assert ask("SELECT count(*) FROM people") == [(freed.delivered,)]
    monkeypatch.undo()
    assert freed.delivered < 500


def test_a_cancelled_push_stops_with_true_counts(pushing, ask, small_chunks, monkeypatch):
    push_id = pushing.push(people(500))
    real = push.DatabaseSender._send

    def cancelled(sender, part):
        real(sender, part)
        sender.work._cancelled = True

    monkeypatch.setattr(push.DatabaseSender, "_send", cancelled)
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("cancelled", (50, 0, 0))
    assert ask("SELECT count(*) FROM people") == [(50,)]


def test_an_error_contains_the_connectors_message(pushing, monkeypatch):
    def refuse():
        raise ConnectorError("No way in.", reason="auth_failed", hint="Check the password.")

    pushing.connect = refuse
    done = pushing.do(pushing.push(people(5)))
    assert (done.status, done.error["message"]) == ("failed", "No way in.")
    assert done.error["details"] == {"reason": "auth_failed", "hint": "Check the password."}
    assert read.log_lines(done.id)[-1].text.startswith("failed: No way in. Check the password. (0 delivered")

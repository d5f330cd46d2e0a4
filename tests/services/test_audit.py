"""The trail: one entry an action, committed before the answer, together with others or with the change itself."""

from __future__ import annotations

import json
import threading

import pytest
import sqlalchemy as sa

from tests.conftest import ON_POSTGRES, close_app, settings_for
from webapp import create_app
from webapp.access import actors
from webapp.access.models import Team, Workspace
from webapp.audit.models import AuditEntry
from webapp.audit.services import audit_log
from webapp.errors import ApiError
from webapp.extensions import db, read_session, redis_client, write_session


def entries(action=None):
    with read_session() as session:
        statement = sa.select(AuditEntry).order_by(AuditEntry.id)
        return list(
            session.scalars(statement if action is None else statement.where(AuditEntry.action == action))
        )


def test_an_entry_contains_actor_action_object_and_address(api, app, cast):
    api(cast.adam, **{"X-Request-Id": "req-7"}).post("/teams", json={"name": "T"})
    with app.app_context():
        (entry,) = [e for e in entries("team.create") if e.request_id == "req-7"]
        assert (entry.user_id, entry.key_id) == (cast.adam.user_id, cast.adam.key_id)
        assert (entry.object_type, entry.object_id[:5]) == ("team", "team_")
        assert (entry.workspace_id, entry.project_id) == (cast.acme, cast.main)
        assert (entry.address, entry.request_id) == ("127.0.0.1", "req-7")
        assert entry.details == {"name": "T"}


def test_a_joined_entry_is_there_only_if_the_change_is(app, cast):
    with app.app_context():
        before = len(entries())
        audit_log.record(actors.system_actor(cast.acme), "test.joined", join=True)
        db.session.rollback()
        assert len(entries()) == before
        audit_log.record(actors.system_actor(cast.acme), "test.joined", join=True)
        db.session.commit()
        assert len(entries()) == before + 1


def test_a_separate_entry_is_committed_when_record_returns(app, cast):
    with app.app_context():
        result = audit_log.record(
            actors.system_actor(cast.acme), "test.own", ("template", "tpl_1"), rows=7, seed="s", version=3
        )
        (entry,) = entries("test.own")
        assert (entry.id, entry.rows, entry.details) == (result, 7, {"seed": "s", "version": 3})


def many(app, cast, threads=24, each=5):
    errors = []

    def work(number):
        try:
            with app.app_context():
                for turn in range(each):
                    audit_log.record(actors.system_actor(cast.acme), "test.many", rows=number, turn=turn)
        except Exception as error:  # shown by the caller
            errors.append(error)

    running = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert errors == []
    with app.app_context():
        assert sorted((e.rows, e.details["turn"]) for e in entries("test.many")) == [
            (n, t) for n in range(threads) for t in range(each)
        ]


def test_entries_of_many_threads_are_all_there(app, cast):
    many(app, cast)


def test_entries_of_many_threads_are_all_there_on_postgresql(postgres_url, shared_redis, tmp_path):
    from tests.cast import gather

    app = create_app(settings_for(postgres_url, shared_redis, tmp_path))
    with app.app_context():
        redis_client().flushdb()
        db.create_all()
        cast = gather()
        db.session.remove()
    many(app, cast)
    close_app(app)


def test_entries_of_waiting_threads_share_one_transaction(app, cast, monkeypatch):
    with app.app_context():
        writer = audit_log.group_writer()
    batches, real = [], writer._insert
    monkeypatch.setattr(writer, "_insert", lambda rows: (batches.append(len(rows)), real(rows)))
    writer._lock.acquire()  # another thread is writing
    waiting = [threading.Thread(target=_record, args=(app, cast)) for _ in range(10)]
    for thread in waiting:
        thread.start()
    from tests.jobs.waiting import eventually

    eventually(lambda: len(writer._queue) == 10)
    writer._lock.release()
    for thread in waiting:
        thread.join()
    assert batches == [10]


def _record(app, cast):
    with app.app_context():
        audit_log.record(actors.system_actor(cast.acme), "test.batch")


def test_an_invalid_entry_fails_without_affecting_others(app, cast):
    with app.app_context():
        writer = audit_log.group_writer()
        outcome = {}

        def write(name, workspace_id):
            try:
                with app.app_context():
                    audit_log.record(actors.system_actor(workspace_id), f"test.{name}")
                    outcome[name] = "written"
            except ApiError as error:
                outcome[name] = error.code

        writer._lock.acquire()
        threads = [
            threading.Thread(target=write, args=("good", cast.acme)),
            threading.Thread(target=write, args=("bad", "ws_there_is_none")),
        ]
        for thread in threads:
            thread.start()
        from tests.jobs.waiting import eventually

        eventually(lambda: len(writer._queue) == 2)
        writer._lock.release()
        for thread in threads:
            thread.join()
        assert outcome == {"good": "written", "bad": "unavailable"}
        assert len(entries("test.good")) == 1


def test_a_connection_closed_by_the_database_is_opened_again(app, cast):
    with app.app_context():
        audit_log.record(actors.system_actor(cast.acme), "test.cut")
        audit_log.group_writer()._connection.driver_connection.close()
        audit_log.record(actors.system_actor(cast.acme), "test.cut")
        assert len(entries("test.cut")) == 2


def test_an_entry_that_cannot_be_written_fails_its_request(app, cast, monkeypatch):
    with app.app_context():
        with pytest.raises(ApiError) as caught:
            audit_log.record(actors.system_actor("ws_there_is_none"), "test.none")
        assert caught.value.code == "unavailable"


def test_the_names_of_kinds_are_snake_case():
    assert audit_log.object_type(Team()) == "team"
    assert audit_log.object_type(AuditEntry()) == "audit_entry"


def test_admins_read_the_trail_by_page_and_as_lines(app, api, cast):
    with app.app_context():
        for number in range(5):
            audit_log.record(
                actors.system_actor(cast.acme), "test.read", ("thing", f"x{number}"), rows=number
            )
    page = api(cast.adam).get("/audit?action=test.read&limit=2").json
    assert page["total"] == 5
    assert [e["rows"] for e in page["items"]] == [4, 3]
    following = api(cast.adam).get(f"/audit?action=test.read&limit=2&cursor={page['next_cursor']}").json
    assert [e["rows"] for e in following["items"]] == [2, 1]
    assert api(cast.adam).get("/audit?object_id=x3").json["total"] == 1
    lines = api(cast.adam).get("/audit?action=test.read&format=jsonl")
    assert lines.mimetype == "application/x-ndjson"
    assert [json.loads(line)["rows"] for line in lines.text.splitlines()] == [0, 1, 2, 3, 4]


def test_lines_are_read_in_batches_without_gap(app, api, cast, monkeypatch):
    from webapp.audit.services import search

    monkeypatch.setattr(search, "_BATCH", 3)
    with app.app_context():
        for number in range(8):
            audit_log.record(actors.system_actor(cast.acme), "test.lines", rows=number)
    lines = api(cast.adam).get("/audit?action=test.lines&format=jsonl").text.splitlines()
    assert [json.loads(line)["rows"] for line in lines] == list(range(8))


def test_a_cursor_of_another_filter_is_400(api, cast):
    cursor = api(cast.adam).get("/audit?limit=1").json["next_cursor"]
    assert api(cast.adam).get(f"/audit?action=x&cursor={cursor}").status_code == 400


def test_the_trail_of_times_is_cut_where_asked(api, cast):
    assert api(cast.adam).get("/audit?since=2099-01-01T00:00:00Z").json["total"] == 0
    assert api(cast.adam).get("/audit?until=2099-01-01T00:00:00Z").json["total"] > 0
    assert api(cast.adam).get("/audit?since=2026-01-01T00:00:00").status_code == 400


@pytest.mark.skipif(ON_POSTGRES, reason="speaks of SQLite")
def test_a_writer_inside_another_transaction_waits_and_does_not_fail(app, cast):
    """SQLite has one writer: the group's transaction queues behind a view's, not the other way round for ever."""
    done = threading.Event()

    def other():
        _record(app, cast)
        done.set()

    with app.app_context(), write_session() as session:
        session.get_one(Workspace, cast.acme).name = "Renamed"
        session.flush()
        thread = threading.Thread(target=other)
        thread.start()
        assert not done.wait(0.1)
    thread.join()
    assert done.is_set()


def test_the_writers_connection_is_returned_as_it_was(app, cast):
    if app.config["SQLALCHEMY_DATABASE_URI"].startswith("postgresql"):
        pytest.skip("a setting of SQLite")
    with app.app_context():
        writer = audit_log.group_writer()
        audit_log.record(actors.system_actor(cast.acme), "template.generate")
        borrowed = writer._connection.dbapi_connection
        assert borrowed.execute("PRAGMA temp_store").fetchone() == (2,), "in memory"
        borrowed.execute("BEGIN IMMEDIATE")
        writer.close()
        assert borrowed.execute("PRAGMA temp_store").fetchone() == (0,)
        assert not borrowed.in_transaction

"""The hash chain of the audit log detects all changes to sealed entries that bypass the service."""

from __future__ import annotations

import json
import threading
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.conftest import ON_POSTGRES
from tests.services.trails import both, first_misfit, sealed_ids, unguarded
from webapp import clock, limits, storage
from webapp.access import actors
from webapp.audit.models import AuditEntry, AuditPending, AuditSeal
from webapp.audit.services import audit_log
from webapp.audit.services import seals as audit_seals
from webapp.audit.services.seals import verify
from webapp.extensions import db, read_session, write_session


def test_an_unmodified_audit_log_is_verified(trail):
    _, workspace = trail
    report = verify(workspace)
    assert (report.mismatches, report.seals, report.unsealed) == ([], 2, 0)
    audit_log.record(actors.system_actor(workspace), "test.later")
    report = verify(workspace)
    assert (report.mismatches, report.unsealed) == ([], 1)


@both
def test_the_chain_is_what_its_description_says(trail):
    """Calculate the hash with the documented rule only."""
    import hashlib

    _, workspace = trail
    digest = bytes(32)
    with read_session() as session:
        seals = session.scalars(
            sa.select(AuditSeal).where(AuditSeal.workspace_id == workspace).order_by(AuditSeal.number)
        ).all()
        for seal in seals:
            assert seal.previous == digest.hex()
            for name, result in audit_seals.unpack_links(seal.links):
                row = session.get_one(AuditEntry, name)
                said = {field: getattr(row, field) for field in audit_seals.FIELDS}
                said["at"] = row.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                text = json.dumps(said, sort_keys=True, separators=(",", ":"))
                digest = hashlib.sha256(digest + text.encode("ascii")).digest()
                assert digest == result
            digest = bytes.fromhex(seal.hash)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("rows", 999),
        ("action", "'test.other'"),
        ("address", "'10.9.8.7'"),
        ("details", "'{\"turn\": 7}'"),
        ("at", "'2026-01-01 00:00:00'"),
    ],
)
def test_a_changed_entry_is_named(trail, column, value):
    _, workspace = trail
    victim = sealed_ids(workspace)[2]
    unguarded(f"UPDATE audit_entries SET {column} = {value} WHERE id = :id", id=victim)
    seal, entry, message = first_misfit(workspace)
    assert (seal, entry) == (2, victim)
    assert "does not match its seal" in message


@both
def test_an_entry_deleted_in_the_middle_is_named(trail):
    _, workspace = trail
    victim = sealed_ids(workspace)[1]
    unguarded("DELETE FROM audit_entries WHERE id = :id", id=victim)
    assert first_misfit(workspace) == (2, victim, "This entry is missing: it was deleted.")


def test_an_entry_put_in_behind_the_triggers_is_named(trail):
    _, workspace = trail
    new = "aud_01ARZ3NDEKTSV4RRFFQ69G5FAV"
    columns = "workspace_id, at, action, object_type, object_id, address, request_id, details"
    unguarded(
        f"INSERT INTO audit_entries (id, {columns}) SELECT :new, {columns} FROM audit_entries WHERE id = :id",
        new=new,
        id=sealed_ids(workspace)[0],
    )
    assert first_misfit(workspace)[1:] == (
        new,
        "This entry is not in any seal: it was not written by the service.",
    )


def test_an_entry_added_later_with_an_old_time_is_named(trail):
    _, workspace = trail
    long_ago = clock.now() - timedelta(seconds=limits.AUDIT_LATE_SECONDS + 60)
    with write_session() as session:
        entry = AuditEntry(workspace_id=workspace, at=long_ago, action="test.late", details={})
        session.add(entry)
    audit_seals.seal_all(clock.now())
    seal, name, message = first_misfit(workspace)
    assert (seal, name) == (3, entry.id)
    assert "was added after" in message


def test_two_entries_that_changed_places_are_named(trail):
    _, workspace = trail
    first, second = sealed_ids(workspace)[1:3]
    unguarded(
        "UPDATE audit_entries SET id = 'x' WHERE id = :a",
        "UPDATE audit_entries SET id = :a WHERE id = :b",
        "UPDATE audit_entries SET id = :b WHERE id = 'x'",
        a=first,
        b=second,
    )
    assert first_misfit(workspace)[:2] == (2, first)


def test_a_seal_whose_links_changed_places_does_not_fit(trail):
    _, workspace = trail
    with read_session() as session:
        links = session.get_one(AuditSeal, (workspace, 2)).links
    unguarded(
        "UPDATE audit_seals SET links = :links WHERE workspace_id = :w AND number = 2",
        links=links[48:96] + links[:48] + links[96:],
        w=workspace,
    )
    assert first_misfit(workspace)[0] == 2


def cut_last_seal(workspace):
    """The last seal and its entries go, and the head in the database is set back."""
    with read_session() as session:
        first = session.get_one(AuditSeal, (workspace, 1))
    for name in sealed_ids(workspace):
        unguarded("DELETE FROM audit_entries WHERE id = :id", id=name)
    unguarded(
        "DELETE FROM audit_seals WHERE workspace_id = :w AND number = 2",
        "UPDATE audit_heads SET number = 1, hash = :h WHERE workspace_id = :w",
        w=workspace,
        h=first.hash,
    )


def test_an_audit_log_cut_off_at_the_end_is_detected_by_the_stored_head(trail):
    _, workspace = trail
    cut_last_seal(workspace)
    assert first_misfit(workspace) == (1, "", "The chain does not contain the saved head, seal 2.")


def test_an_audit_log_cut_off_at_the_end_is_detected_by_an_external_head(trail):
    app, workspace = trail
    number, hash = verify(workspace).head.split(":")
    cut_last_seal(workspace)
    storage.get_storage(app).delete(audit_seals.anchor_key(workspace))
    assert first_misfit(workspace) is None
    assert first_misfit(workspace, {"number": int(number), "hash": hash})[2].endswith("seal 2.")


def test_seals_deleted_at_the_end_are_detected_by_the_separate_head(trail):
    app, workspace = trail
    storage.get_storage(app).delete(audit_seals.anchor_key(workspace))
    unguarded("DELETE FROM audit_seals WHERE workspace_id = :w AND number = 2", w=workspace)
    assert first_misfit(workspace)[2] == "The chain ends at seal 1; its head is seal 2."


def test_the_sweeper_does_not_write_over_a_head_that_the_chain_does_not_hold(trail):
    _, workspace = trail
    before = audit_seals.stored_head(workspace)
    cut_last_seal(workspace)
    unguarded("DELETE FROM audit_pending")
    audit_log.record(actors.system_actor(workspace), "test.after")
    with db.engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM audit_pending"))
        entry = connection.execute(
            sa.text("SELECT id FROM audit_entries WHERE action = 'test.after'")
        ).scalar()
        connection.execute(
            sa.text("INSERT INTO audit_pending (workspace_id, entry_id) VALUES (:w, :e)"),
            {"w": workspace, "e": entry},
        )
    audit_seals.seal_all(clock.now())
    assert audit_seals.stored_head(workspace) == before
    assert first_misfit(workspace)[2].endswith("seal 2.")
    audit_seals.accept_chain(workspace, clock.now())
    assert audit_seals.stored_head(workspace)["hash"] != before["hash"]


def test_an_unsealed_entry_that_is_deleted_is_named(trail):
    _, workspace = trail
    name = audit_log.record(actors.system_actor(workspace), "test.gone")
    unguarded("DELETE FROM audit_entries WHERE id = :id", id=name)
    audit_seals.seal_all(clock.now())
    assert first_misfit(workspace)[1:] == (
        name,
        "This entry is missing: it was deleted before it was sealed.",
    )


@both
def test_an_entry_that_commits_late_is_sealed_and_fits(trail):
    """Its id is older than ids that are sealed already."""
    _, workspace = trail
    with write_session() as session:
        old = AuditEntry(workspace_id=workspace, action="test.slow", details={})
        session.add(old)
        session.flush()
        name = old.id
        session.expunge(old)
        session.rollback()
    audit_log.record(actors.system_actor(workspace), "test.quick")
    audit_seals.seal_all(clock.now())
    with write_session() as session:
        session.add(AuditEntry(id=name, at=old.at, workspace_id=workspace, action="test.slow", details={}))
    assert audit_seals.seal_all(clock.now()) == 1
    assert sealed_ids(workspace, 4) == [name]
    assert verify(workspace).mismatches == []


def test_entries_that_are_noted_as_pending_again_are_not_sealed_twice(trail):
    _, workspace = trail
    with write_session() as session:
        session.add_all(
            [AuditPending(workspace_id=workspace, entry_id=name) for name in sealed_ids(workspace)]
        )
    assert audit_seals.seal_all(clock.now()) == 0
    report = verify(workspace)
    assert (report.mismatches, report.seals, report.unsealed) == ([], 2, 0)


@both
def test_many_writers_and_two_sweepers_make_one_chain(trail):
    app, workspace = trail
    errors, done = [], threading.Event()

    def write():
        try:
            with app.app_context():
                for _ in range(20):
                    audit_log.record(actors.system_actor(workspace), "test.many", rows=1)
        except Exception as error:  # shown below
            errors.append(error)

    def sweep():
        try:
            while not done.is_set():
                with app.app_context():
                    audit_seals.seal_all(clock.now())
        except Exception as error:  # shown below
            errors.append(error)

    writers = [threading.Thread(target=write) for _ in range(6)]
    sweepers = [threading.Thread(target=sweep) for _ in range(2)]
    for thread in writers + sweepers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in sweepers:
        thread.join()
    assert errors == []
    audit_seals.seal_all(clock.now())
    report = verify(workspace)
    assert (report.mismatches, report.unsealed) == ([], 0)
    with read_session() as session:
        own = AuditEntry.workspace_id == workspace
        assert report.entries == session.scalar(sa.select(sa.func.count()).select_from(AuditEntry).where(own))


@pytest.mark.skipif(ON_POSTGRES, reason="speaks of SQLite")
def test_entries_are_read_by_their_ids_in_a_workspace_of_any_size(trail):
    """SQLite would go through all of them, a million for each seal of a thousand."""
    _, workspace = trail
    expected = sa.select(AuditEntry.id).where(audit_seals.entries_condition(workspace, sealed_ids(workspace)))
    text = str(expected.compile(db.engine, compile_kwargs={"literal_binds": True}))
    with db.engine.connect() as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}")]
    assert plan == ["SEARCH audit_entries USING INDEX sqlite_autoindex_audit_entries_1 (id=?)"]


@pytest.mark.parametrize("kind", ["postgresql"])
def test_more_may_wait_for_a_seal_than_a_statement_has_parameters(trail):
    """PostgreSQL takes 65,535; the sweeper may have been away for a day."""
    _, workspace = trail
    numbers = sa.select(sa.literal(1).label("n")).cte(recursive=True)
    numbers = numbers.union_all(sa.select(numbers.c.n + 1).where(numbers.c.n < 70_000))
    entries = sa.select(
        sa.literal("aud_") + sa.cast(numbers.c.n, sa.String),
        sa.literal(workspace),
        sa.literal(clock.now(), AuditEntry.at.type),
        sa.literal("test.many"),
    )
    with db.engine.begin() as connection:
        columns = ["id", "workspace_id", "at", "action"]
        connection.execute(sa.insert(AuditEntry).from_select(columns, entries))
    report = verify(workspace)
    assert (report.mismatches, report.unsealed) == ([], 70_000)

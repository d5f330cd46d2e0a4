"""Changes to audit entries that the database rejects, and deletion by retention, which is allowed."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from jobs.sweeper import Sweeper
from tests.services.trails import both, first_misfit, sealed_ids, unguarded
from webapp import clock, limits
from webapp.access import actors
from webapp.access.models import Workspace
from webapp.audit.models import AuditEntry, AuditHead, AuditPending, AuditSeal
from webapp.audit.services import audit_log, seals
from webapp.audit.services.seals import verify
from webapp.extensions import db, read_session, write_session

# --- What the database itself refuses -----------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entries SET rows = 1",
        "DELETE FROM audit_entries",
        "UPDATE audit_seals SET hash = 'x'",
        "DELETE FROM audit_seals",
    ],
)
def test_the_database_prevents_changes_and_deletions_of_entries(trail, statement):
    with pytest.raises(sa.exc.DBAPIError, match="audit"), db.engine.begin() as connection:
        connection.execute(sa.text(statement))


@pytest.mark.parametrize("kind", ["postgresql"])
def test_postgresql_does_not_allow_truncating_the_table_either(trail):
    with pytest.raises(sa.exc.DBAPIError, match="retention"), db.engine.begin() as connection:
        connection.execute(sa.text("TRUNCATE audit_entries CASCADE"))


@both
def test_a_workspace_that_goes_for_good_takes_its_trail_along(trail):
    _, workspace = trail
    with write_session() as session:
        session.get_one(Workspace, workspace).deleted_at = clock.now() - timedelta(
            days=limits.RESTORE_DAYS + 1
        )
    with write_session() as session:
        seals.allow_deletion(session, workspace, clock.now())
        session.execute(sa.delete(Workspace).where(Workspace.id == workspace))
    with write_session() as session:
        seals.delete_orphans(session)
    with read_session() as session:
        for model in (AuditEntry, AuditSeal, AuditPending, AuditHead):
            assert not session.scalars(sa.select(model).where(model.workspace_id == workspace)).all()
    assert seals.stored_head(workspace) is None


# --- Retention ----------------------------------------------------------------------------------------------


@both
def test_retention_removes_whole_seals_from_the_beginning_and_the_chain_still_fits(trail):
    _, workspace = trail
    old, young = sealed_ids(workspace, 1), sealed_ids(workspace, 2)
    with read_session() as session:
        days = seals.retention_days(session.get_one(Workspace, workspace))
        border = session.get_one(AuditSeal, (workspace, 1)).last_at
    now = border + timedelta(days=days, microseconds=1)
    assert seals.remove_expired(now) >= 1
    own = (AuditEntry.workspace_id == workspace, AuditEntry.action == "audit.remove")
    with read_session() as session:
        there = set(session.scalars(sa.select(AuditEntry.id).where(AuditEntry.id.in_(old + young))))
        (result,) = session.scalars(sa.select(AuditEntry).where(*own)).all()
    assert there == set(young)
    assert (result.details["seals"], result.details["entries"]) == ([1, 1], len(old))
    report = verify(workspace)
    assert (report.mismatches, report.removed, report.seals) == ([], len(old), 2)


def test_entries_removed_as_if_by_retention_are_detected(trail):
    _, workspace = trail
    for name in sealed_ids(workspace, 1):
        unguarded("DELETE FROM audit_entries WHERE id = :id", id=name)
    unguarded(
        "UPDATE audit_seals SET links = NULL, removed_at = sealed_at WHERE workspace_id = :w AND number = 1",
        w=workspace,
    )
    assert first_misfit(workspace)[2] == "The entries of seal 1 were removed, but not by retention."
    unguarded("UPDATE audit_heads SET removed = 1 WHERE workspace_id = :w", w=workspace)
    assert "no entry records their removal by retention" in first_misfit(workspace)[2]


def test_days_of_retention_lie_within_the_plan():
    stored = seals.retention_days
    assert stored(Workspace(plan="free", settings={})) == 90
    assert stored(Workspace(plan="free", settings={"audit_retention_days": 3_000})) == 90
    assert stored(Workspace(plan="pro", settings={"audit_retention_days": 31})) == 31


def test_the_sweeper_seals_now_and_then(trail):
    app, workspace = trail
    moment = [clock.now()]
    sweeper = Sweeper(app, lambda _seconds: True, lambda: moment[0])
    audit_log.record(actors.system_actor(workspace), "test.swept")
    sweeper.run_once()
    assert verify(workspace).unsealed == 0
    audit_log.record(actors.system_actor(workspace), "test.swept")
    sweeper.run_once()
    assert verify(workspace).unsealed == 1
    moment[0] += timedelta(seconds=limits.AUDIT_SEAL_SECONDS)
    sweeper.run_once()
    assert verify(workspace).unsealed == 0

"""Removing what has run out: deletions past their restore time, used-up tokens, old answers. Called by the sweeper."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from flask import current_app
from sqlalchemy import and_, delete, or_, select
from sqlalchemy.orm import Session

from webapp import limits, storage
from webapp.extensions import reading, writing
from webapp.models import (
    BrowserSession,
    Connection,
    Dataset,
    Export,
    ExportPart,
    Fetched,
    IdempotencyRecord,
    Invitation,
    Project,
    Push,
    Scenario,
    SignInLink,
    Team,
    Template,
    WorkspaceFile,
)
from webapp.services import answers, workspace_files_kept

# Soft-deleted rows go after RESTORE_DAYS; children before parents, whose removal takes what is left in them along.
_SOFT: Final[tuple[Any, ...]] = (
    Push,
    Export,
    Dataset,
    Template,
    Connection,
    Scenario,
    WorkspaceFile,
    Project,
    Team,
)


def purge(now: datetime) -> int:
    """Remove what nobody can reach any more, with the files of exports, pushes and connections, the
    workspace's files, and bytes that none of these names any more. Returns the number of rows.

    A file goes before its row, so that a purge cut short leaves no file that nothing names.
    """
    gone = now - timedelta(days=limits.RESTORE_DAYS)
    _remove_files(gone)
    workspace_files_kept.sweep(now)
    done = answers.purge(now)
    for model, condition in (
        *((model, _ended(model, gone)) for model in _SOFT),
        (IdempotencyRecord, IdempotencyRecord.expires_at < now),
        (SignInLink, SignInLink.expires_at < gone),
        (Invitation, Invitation.expires_at < gone),
        (BrowserSession, or_(BrowserSession.expires_at < gone, BrowserSession.ended_at < gone)),
    ):
        with writing() as session:
            statement = delete(model).where(condition).execution_options(synchronize_session=False)
            done += session.execute(statement).rowcount
    return done


def _remove_files(gone: datetime) -> None:
    """Files of what is about to go: by its own deletion, or with its project or team."""
    store = storage.of(current_app)
    with reading() as session:
        keys = session.scalars(
            select(Export.storage_key).where(Export.storage_key.is_not(None), _going(Export, gone))
        ).all()
        cached = select(Connection.metadata_key).where(
            Connection.metadata_key.is_not(None), _going(Connection, gone)
        )
        keys = [*keys, *session.scalars(cached)]
        # Workspace files lie in no project, so nothing but their own deletion takes them along.
        files = select(WorkspaceFile.storage_key).where(_ended(WorkspaceFile, gone))
        keys = [*keys, *session.scalars(files)]
        keys = [*keys, *_parts(session, gone)]
        folders = session.execute(select(Push.workspace_id, Push.id).where(_going(Push, gone))).all()
    for key in keys:
        store.delete(key)
    for workspace_id, push_id in folders:
        for stored in store.listing(f"pushes/{workspace_id}/{push_id}"):
            store.delete(stored.key)


def _parts(session: Session, gone: datetime) -> list[str]:
    """Files of the parts of exports that are about to go, less those that a retry which stays has taken over."""
    going = select(Export.id).where(_going(Export, gone))
    stays = select(ExportPart.storage_key).where(
        ExportPart.storage_key.is_not(None), ExportPart.export_id.not_in(going)
    )
    mine = select(ExportPart.storage_key).where(
        ExportPart.storage_key.is_not(None), ExportPart.export_id.in_(going)
    )
    return list(session.scalars(mine.where(ExportPart.storage_key.not_in(stays)).distinct()))


def _ended(model: Any, gone: datetime) -> Any:
    """Deleted long enough ago. A connection stays while answers of it do, whose files their rows name."""
    ended = model.deleted_at < gone
    return and_(ended, Connection.id.not_in(select(Fetched.connection_id))) if model is Connection else ended


def _going(model: Any, gone: datetime) -> Any:
    with_project = model.project_id.in_(select(Project.id).where(Project.deleted_at < gone))
    with_team = model.team_id.in_(select(Team.id).where(Team.deleted_at < gone))
    return or_(_ended(model, gone), with_project, with_team)

"""Secrets that a run is given, and those that are cut out of what it prints where its workspace has turned that on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import func, or_, select

from webapp.errors import ApiError
from webapp.extensions import reading
from webapp.models import Secret, Workspace
from webapp.services import secrets


class Missing(Exception):
    """A secret of this name is not there."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


def granted(workspace_id: str, project_id: str, names: Iterable[str]) -> dict[str, str]:
    """The secrets of these names as they are now, by name. `Missing` for one that is not there, or is of another
    project; ApiError `unavailable` for one whose key is missing."""
    wanted = list(dict.fromkeys(names))
    statement = select(Secret).where(
        Secret.workspace_id == workspace_id,
        Secret.name.in_(wanted),
        or_(Secret.project_id.is_(None), Secret.project_id == project_id),
    )
    with reading() as session:
        found = {secret.name: secret for secret in session.scalars(statement)}
    for name in wanted:
        if name not in found:
            raise Missing(name)
    return {name: secrets.opened(found[name]) for name in wanted}


def is_cut(workspace_id: str) -> bool:
    """Whether secrets are to be cut out of what runs of a workspace print."""
    with reading() as session:
        settings = session.scalar(select(Workspace.settings).where(Workspace.id == workspace_id))
    return bool((settings or {}).get("redact_run_logs"))


def mark(workspace_id: str) -> tuple[int, datetime | None]:
    """What tells the present secrets of a workspace from those before."""
    statement = select(func.count(), func.max(Secret.updated_at)).where(Secret.workspace_id == workspace_id)
    with reading() as session:
        number, newest = session.execute(statement).one()
    return number, newest


def stored(workspace_id: str) -> list[str]:
    """Every secret of a workspace, those of its connections too. One that cannot be opened is left out: nobody could
    have given it to a program either."""
    with reading() as session:
        rows = session.scalars(select(Secret).where(Secret.workspace_id == workspace_id)).all()
    found = []
    for row in rows:
        try:
            found.append(secrets.opened(row))
        except ApiError:
            continue
    return found

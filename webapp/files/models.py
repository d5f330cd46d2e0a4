"""Workspace files: what scenarios read, and what they leave behind; and bytes on their way into the storage."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import BigInteger, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import Base, InWorkspace, SoftDeleted, Updated, identity, reference

_SHARED: Final = text("deleted_at IS NULL AND project_id IS NULL")
_OWNED: Final = text("deleted_at IS NULL AND project_id IS NOT NULL")


class WorkspaceFile(Updated, SoftDeleted, InWorkspace, Base):
    """A file under its name, which may hold folders. Its bytes lie in the storage under `storage_key`, which is new
    with every upload: whoever reads the old bytes reads them to their end.

    A file belongs to a project, or, with `project_id` None, is shared with the whole workspace. Live files have unique
    names in their project, and a shared file has a name that no project uses; deleted files keep theirs.
    """

    __tablename__ = "workspace_files"
    __table_args__ = (
        Index(
            "ix_workspace_files_live_name",
            "workspace_id",
            "name",
            unique=True,
            sqlite_where=_SHARED,
            postgresql_where=_SHARED,
        ),
        Index(
            "ix_workspace_files_project_name",
            "workspace_id",
            "project_id",
            "name",
            unique=True,
            sqlite_where=_OWNED,
            postgresql_where=_OWNED,
        ),
    )

    id: Mapped[str] = identity("fil")
    name: Mapped[str] = mapped_column(String(limits.MAX_FILE_NAME_CHARS))
    size: Mapped[int] = mapped_column(BigInteger)
    content_type: Mapped[str] = mapped_column(String(200))
    sha256: Mapped[str] = mapped_column(String(64))
    storage_key: Mapped[str] = mapped_column(String(300))
    run_id: Mapped[str | None] = reference("runs.id", nullable=True, ondelete="SET NULL")
    """The run that stored it: as an output, or with its key through the API."""
    project_id: Mapped[str | None] = reference("projects.id", nullable=True, ondelete="CASCADE")
    team_id: Mapped[str | None] = reference("teams.id", nullable=True, ondelete="CASCADE", index=False)
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)


class StorageHold(InWorkspace, Base):
    """Bytes in the storage that count towards a quota of the workspace. `key` is the storage's.

    Of files and exports: those that are being stored and that no row names yet, so that uploads at the same time cannot
    exceed the quota together. Of what was read from outside: all that is kept.
    """

    __tablename__ = "storage_holds"

    key: Mapped[str] = mapped_column(String(300), primary_key=True)
    area: Mapped[str] = mapped_column(String(8))
    """`files`, `exports` or `fetched`: the quota that it counts towards."""
    bytes: Mapped[int] = mapped_column(BigInteger)
    updated_at: Mapped[datetime]

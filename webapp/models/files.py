"""Workspace files: what scenarios read, and what they leave behind."""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.models.base import Base, InWorkspace, SoftDeleted, Updated, identity, reference

_LIVE: Final = text("deleted_at IS NULL")


class WorkspaceFile(Updated, SoftDeleted, InWorkspace, Base):
    """A file under its name, which may hold folders. Its bytes lie in the storage under `storage_key`, which is new
    with every upload: whoever reads the old bytes reads them to their end. One live file has a name; deleted ones
    keep theirs beside it."""

    __tablename__ = "workspace_files"
    __table_args__ = (
        Index(
            "ix_workspace_files_live_name",
            "workspace_id",
            "name",
            unique=True,
            sqlite_where=_LIVE,
            postgresql_where=_LIVE,
        ),
    )

    id: Mapped[str] = identity("fil")
    name: Mapped[str] = mapped_column(String(limits.MAX_FILE_NAME_CHARS))
    size: Mapped[int] = mapped_column(BigInteger)
    content_type: Mapped[str] = mapped_column(String(200))
    sha256: Mapped[str] = mapped_column(String(64))
    storage_key: Mapped[str] = mapped_column(String(300))
    run_id: Mapped[str | None] = reference("runs.id", nullable=True, ondelete="SET NULL")
    """The run that left it behind."""
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)

"""Connections, the secrets of a workspace, and what was fetched from outside."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, Index, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import (
    JSON_DOC,
    Base,
    Created,
    InProject,
    InWorkspace,
    SoftDeleted,
    Updated,
    identity,
    reference,
)


class Connection(Updated, SoftDeleted, InProject, Base):
    """A way to a target. `settings` holds no secret: where one belongs stands `{"secret": "sec_..."}`.

    `verification` is the last one's answer, None before the first. `metadata_key` names the cached metadata in the
    storage.
    """

    __tablename__ = "connections"

    id: Mapped[str] = identity("con")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS), index=True)
    type: Mapped[str] = mapped_column(String(20))
    settings: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    environment: Mapped[str] = mapped_column(String(8), default="dev")
    read_only: Mapped[bool] = mapped_column(Boolean, default=False)
    verification: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    metadata_key: Mapped[str | None] = mapped_column(String(300))
    metadata_at: Mapped[datetime | None]
    of_endpoint: Mapped[bool] = mapped_column(Boolean, default=False)
    """Made for one endpoint that has an address of its own; goes with it and is not listed."""
    document_key: Mapped[str | None] = mapped_column(String(300))
    """The storage's key of a metadata document that was uploaded."""
    file_folder: Mapped[str | None] = mapped_column(String(40))
    """Of a SQLite connection: the folder, inside the workspace's own, that its file is in. None: the workspace's own
    folder, for connections from before files belonged to projects."""
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)


class Secret(Updated, InWorkspace, Base):
    """A sealed text of a workspace. One with a `connection_id` belongs to that connection's settings and is not
    listed; the others have a name, by which `${name}` finds them.

    Connections may send a named secret to its `allowed_hosts` only (None: to any host), and where it has a
    `project_id` only connections and scenarios of that project may use it.
    """

    __tablename__ = "secrets"
    __table_args__ = (UniqueConstraint("workspace_id", "name"),)

    id: Mapped[str] = identity("sec")
    name: Mapped[str | None] = mapped_column(String(limits.MAX_NAME_CHARS))
    connection_id: Mapped[str | None] = reference("connections.id", nullable=True, ondelete="CASCADE")
    allowed_hosts: Mapped[list[Any] | None] = mapped_column(JSON_DOC)
    project_id: Mapped[str | None] = reference("projects.id", nullable=True, ondelete="CASCADE")
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)


class MaskingKey(Created, InWorkspace, Base):
    """A sealed key that real values of a workspace are masked by. The newest version masks; the others are kept, so
    that what they masked can be masked so again."""

    __tablename__ = "masking_keys"
    __table_args__ = (UniqueConstraint("workspace_id", "version"),)

    id: Mapped[str] = identity("mky")
    version: Mapped[int]
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)


class Fetched(InWorkspace, Base):
    """What a field read from outside: one answer for one question to one connection, kept until `expires_at`, and
    longer while work in hand pins it. Small answers lie in `value`, key lists in the storage under `storage_key`."""

    __tablename__ = "fetched"
    __table_args__ = (
        UniqueConstraint("workspace_id", "connection_id", "question"),
        Index("ix_fetched_expires_at", "expires_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    connection_id: Mapped[str] = reference("connections.id", ondelete="CASCADE")
    question: Mapped[str] = mapped_column(String(64))
    """Hash of what was asked."""
    value: Mapped[Any] = mapped_column(JSON_DOC, nullable=True)
    storage_key: Mapped[str | None] = mapped_column(String(300))
    snapshot: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the answer."""
    rows: Mapped[int] = mapped_column(default=1)
    fetched_at: Mapped[datetime]
    expires_at: Mapped[datetime]

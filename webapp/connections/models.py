"""Tables of connections, endpoints, secrets, masking keys and fetched values."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, Index, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import (
    JSON_DOC,
    Base,
    CreatedAtMixin,
    ProjectMixin,
    SoftDeleteMixin,
    UpdatedAtMixin,
    WorkspaceMixin,
    foreign_key_column,
    id_column,
)


class Connection(UpdatedAtMixin, SoftDeleteMixin, ProjectMixin, Base):
    """A connection to a target. `settings` contains no secrets, but `{"secret": "sec_..."}` in their places.

    `verification` is the last result, None before the first. `metadata_key` is the storage key of the cached metadata.
    """

    __tablename__ = "connections"

    id: Mapped[str] = id_column("con")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS), index=True)
    type: Mapped[str] = mapped_column(String(20))
    settings: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    environment: Mapped[str] = mapped_column(String(8), default="dev")
    read_only: Mapped[bool] = mapped_column(Boolean, default=False)
    verification: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    metadata_key: Mapped[str | None] = mapped_column(String(300))
    metadata_at: Mapped[datetime | None]
    of_endpoint: Mapped[bool] = mapped_column(Boolean, default=False)
    """Created for one endpoint with its own URL; deleted with it, and not listed."""
    document_key: Mapped[str | None] = mapped_column(String(300))
    """The storage's key of a metadata document that was uploaded."""
    file_folder: Mapped[str | None] = mapped_column(String(40))
    """Of a SQLite connection: the folder, inside the workspace's own, that its file is in. None: the workspace's own
    folder, for connections from before files belonged to projects."""
    created_by: Mapped[str | None] = foreign_key_column(
        "users.id", nullable=True, ondelete="SET NULL", index=False
    )


class Secret(UpdatedAtMixin, WorkspaceMixin, Base):
    """An encrypted text. With a `connection_id`, it belongs to that connection's settings and is not listed. Others
    have a name, and are used as `${name}`.

    Connections may send a named secret only to its `allowed_hosts` (None: any host). With a `project_id`, only
    connections and scenarios of that project may use it.
    """

    __tablename__ = "secrets"
    __table_args__ = (UniqueConstraint("workspace_id", "name"),)

    id: Mapped[str] = id_column("sec")
    name: Mapped[str | None] = mapped_column(String(limits.MAX_NAME_CHARS))
    connection_id: Mapped[str | None] = foreign_key_column(
        "connections.id", nullable=True, ondelete="CASCADE"
    )
    allowed_hosts: Mapped[list[Any] | None] = mapped_column(JSON_DOC)
    project_id: Mapped[str | None] = foreign_key_column("projects.id", nullable=True, ondelete="CASCADE")
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    created_by: Mapped[str | None] = foreign_key_column(
        "users.id", nullable=True, ondelete="SET NULL", index=False
    )


class MaskingKey(CreatedAtMixin, WorkspaceMixin, Base):
    """An encrypted key for masking real values of a workspace. The newest version is used for new templates; older
    versions are kept, so that they can produce the same values again."""

    __tablename__ = "masking_keys"
    __table_args__ = (UniqueConstraint("workspace_id", "version"),)

    id: Mapped[str] = id_column("mky")
    version: Mapped[int]
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    created_by: Mapped[str | None] = foreign_key_column(
        "users.id", nullable=True, ondelete="SET NULL", index=False
    )


class Fetched(WorkspaceMixin, Base):
    """An external value: the response of a connection to one request, kept until `expires_at`, or longer while running
    work uses it. Small responses are in `value`, lists of keys in the storage under `storage_key`."""

    __tablename__ = "fetched"
    __table_args__ = (
        UniqueConstraint("workspace_id", "connection_id", "question"),
        Index("ix_fetched_expires_at", "expires_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    connection_id: Mapped[str] = foreign_key_column("connections.id", ondelete="CASCADE")
    question: Mapped[str] = mapped_column(String(64))
    """Hash of the request."""
    value: Mapped[Any] = mapped_column(JSON_DOC, nullable=True)
    storage_key: Mapped[str | None] = mapped_column(String(300))
    snapshot: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the response."""
    rows: Mapped[int] = mapped_column(default=1)
    fetched_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class Endpoint(UpdatedAtMixin, SoftDeleteMixin, ProjectMixin, Base):
    """A saved request on a connection, which is shared, or created for an endpoint with its own URL
    (`Connection.of_endpoint`). `settings` override those of the connection: method, path, headers, body, and how rows
    are sent. Only the connection has secrets."""

    __tablename__ = "endpoints"

    id: Mapped[str] = id_column("end")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS), index=True)
    connection_id: Mapped[str] = foreign_key_column("connections.id", ondelete="CASCADE")
    settings: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    created_by: Mapped[str | None] = foreign_key_column(
        "users.id", nullable=True, ondelete="SET NULL", index=False
    )

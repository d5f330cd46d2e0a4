"""Define workspace files, which scenarios read and create, and reservations for content being stored."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Final

from sqlalchemy import BigInteger, Index, Integer, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from webapp import clock, limits
from webapp.model_base import (
    JSON_DOC,
    Base,
    ProjectMixin,
    SoftDeleteMixin,
    UpdatedAtMixin,
    WorkspaceMixin,
    foreign_key_column,
    id_column,
)

_SHARED: Final = text("deleted_at IS NULL AND project_id IS NULL")
_OWNED: Final = text("deleted_at IS NULL AND project_id IS NOT NULL")


class WorkspaceFile(UpdatedAtMixin, SoftDeleteMixin, WorkspaceMixin, Base):
    """A workspace file. Its name may include folders. Its content is stored under `storage_key`, which is new for every
    upload, so that downloads of the previous content can finish.

    A file belongs to a project, or, with `project_id` None, is shared with the whole workspace. Names of live files are
    unique in their project, and a shared file has a name that no project uses; deleted files keep their names.
    """

    shared_without_project: ClassVar[bool] = True
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

    id: Mapped[str] = id_column("fil")
    name: Mapped[str] = mapped_column(String(limits.MAX_FILE_NAME_CHARS))
    size: Mapped[int] = mapped_column(BigInteger)
    content_type: Mapped[str] = mapped_column(String(200))
    sha256: Mapped[str] = mapped_column(String(64))
    storage_key: Mapped[str] = mapped_column(String(300))
    run_id: Mapped[str | None] = foreign_key_column("runs.id", nullable=True, ondelete="SET NULL")
    """The run that stored the file, as an output or through the API with its key."""
    project_id: Mapped[str | None] = foreign_key_column("projects.id", nullable=True, ondelete="CASCADE")
    team_id: Mapped[str | None] = foreign_key_column(
        "teams.id", nullable=True, ondelete="CASCADE", index=False
    )
    created_by: Mapped[str | None] = foreign_key_column(
        "users.id", nullable=True, ondelete="SET NULL", index=False
    )


class StorageHold(WorkspaceMixin, Base):
    """Bytes in the storage that count towards a quota of the workspace. `key` is the storage key.

    For files and exports, these are uploads that no row references yet, so that concurrent uploads cannot exceed the
    quota together. For data fetched from external sources, these are all stored bytes.
    """

    __tablename__ = "storage_holds"

    key: Mapped[str] = mapped_column(String(300), primary_key=True)
    area: Mapped[str] = mapped_column(String(8))
    """The quota that the bytes count towards: `files`, `exports` or `fetched`."""
    bytes: Mapped[int] = mapped_column(BigInteger)
    updated_at: Mapped[datetime]


class CompatObject(UpdatedAtMixin, ProjectMixin, Base):
    """A saved set, a custom data type, a masking policy, a plan, or a folder of templates or endpoints.

    `document` contains the attributes that are specific to its `kind`. `rows` are the rows of a set, loaded only when
    needed, and `size` is their size as JSON in bytes.
    """

    __tablename__ = "compat_objects"

    id: Mapped[str] = id_column("cmp")
    kind: Mapped[str] = mapped_column(String(24))
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    document: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    rows: Mapped[Any | None] = mapped_column(JSON_DOC, deferred=True)
    size: Mapped[int] = mapped_column(Integer, default=0)
    created_by: Mapped[str | None] = foreign_key_column(
        "users.id", nullable=True, ondelete="SET NULL", index=False
    )


class KeyMapEntry(ProjectMixin, Base):
    """Maps the key of a record in a source system to its key in a target system. The newest entry for a source key is
    valid. `size` is what the entry takes in the database, in bytes."""

    __tablename__ = "key_map_entries"
    __table_args__ = (
        UniqueConstraint("project_id", "map_name", "object_name", "old_key"),
        Index("ix_key_map_entries_workspace_size", "workspace_id", "size"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    map_name: Mapped[str] = mapped_column(String(limits.KEY_MAP_NAME_CHARS))
    object_name: Mapped[str] = mapped_column(String(limits.KEY_MAP_NAME_CHARS))
    old_key: Mapped[str] = mapped_column(String(limits.KEY_MAP_KEY_CHARS))
    new_key: Mapped[str] = mapped_column(String(limits.KEY_MAP_KEY_CHARS))
    run_id: Mapped[str | None] = mapped_column(String(limits.KEY_MAP_NAME_CHARS))
    """A description of the run that created the key, in any format that the program chooses."""
    size: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    updated_at: Mapped[datetime] = mapped_column(default=clock.now)

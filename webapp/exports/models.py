"""Exports: files that a worker creates, whole or in parts."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import BigInteger, ColumnElement, Integer, String, UniqueConstraint, select
from sqlalchemy.orm import Mapped, declared_attr, mapped_column

from webapp.access.models import HASH_CHARS
from webapp.model_base import JSON_DOC, Base, ProjectMixin, SoftDeleteMixin, foreign_key_column, id_column
from webapp.work.models import Notifiable, Work


class Export(Work, Notifiable, SoftDeleteMixin, ProjectMixin, Base):
    """One file to be created from one template version, or from all tables of one dataset version.

    `request` is the body as accepted (format, overrides, options); `pins` is everything needed to generate the same
    bytes again: seed, now, version, vocabulary, engine; for a dataset those of each table, with its name and count.

    An export with `part_rows` is split into parts of this many rows, which contain the files. Its own row has no file
    and no worker, and is updated when its parts change.
    """

    __tablename__ = "exports"
    work_kind: ClassVar[str] = "export"
    quota_columns: ClassVar[tuple[str, ...]] = ("request", "pins")

    id: Mapped[str] = id_column("exp")
    template_id: Mapped[str | None] = foreign_key_column("templates.id", nullable=True, ondelete="SET NULL")
    template_version: Mapped[int | None] = mapped_column(Integer)
    dataset_id: Mapped[str | None] = foreign_key_column("datasets.id", nullable=True, ondelete="SET NULL")
    dataset_version: Mapped[int | None] = mapped_column(Integer)
    format: Mapped[str] = mapped_column(String(16))
    count: Mapped[int] = mapped_column(BigInteger)
    rows_done: Mapped[int] = mapped_column(BigInteger, default=0)
    bytes: Mapped[int | None] = mapped_column(BigInteger)
    sha256: Mapped[str | None] = mapped_column(String(HASH_CHARS))
    leaks: Mapped[list[Any] | None] = mapped_column(JSON_DOC)
    """Results of the leak check for rows from real data, table by table; for an export in parts, the parts have
    them."""
    storage_key: Mapped[str | None] = mapped_column(String(300))
    file_removed_at: Mapped[datetime | None]
    """When its file or those of its parts were removed at the end of the plan's retention period."""
    file_name: Mapped[str | None] = mapped_column(String(300))
    request: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    pins: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    created_by: Mapped[str | None] = foreign_key_column(
        "users.id", nullable=True, ondelete="SET NULL", index=False
    )
    key_id: Mapped[str | None] = mapped_column(String(40))
    part_rows: Mapped[int | None] = mapped_column(BigInteger)
    parts_done: Mapped[int] = mapped_column(Integer, default=0)
    of_id: Mapped[str | None] = foreign_key_column("exports.id", nullable=True, ondelete="SET NULL")

    @classmethod
    def worker_conditions(cls) -> list[ColumnElement[bool]]:
        """Return the condition that leaves out exports in parts."""
        return [cls.part_rows.is_(None)]

    @property
    def parts(self) -> int | None:
        """The number of parts; None for a single file."""
        return -(-self.count // self.part_rows) if self.part_rows else None


class ExportPart(Work, Base):
    """Rows of an export that one worker generates, and their file: `count` rows from row `offset` of the template on.

    `number` counts from 1. A part that was reused by a retry shares its file with the part of the earlier export.
    """

    __tablename__ = "export_parts"
    work_kind: ClassVar[str] = "part"

    id: Mapped[str] = id_column("prt")
    export_id: Mapped[str] = foreign_key_column("exports.id", ondelete="CASCADE", index=False)
    number: Mapped[int] = mapped_column(Integer)
    offset: Mapped[int] = mapped_column(BigInteger)
    count: Mapped[int] = mapped_column(BigInteger)
    rows_done: Mapped[int] = mapped_column(BigInteger, default=0)
    bytes: Mapped[int | None] = mapped_column(BigInteger)
    sha256: Mapped[str | None] = mapped_column(String(HASH_CHARS))
    leaks: Mapped[list[Any] | None] = mapped_column(JSON_DOC)
    storage_key: Mapped[str | None] = mapped_column(String(300), index=True)

    @classmethod
    def in_workspace(cls, workspace_id: str) -> ColumnElement[bool]:
        """Return the condition for the parts of a workspace's exports."""
        return cls.export_id.in_(select(Export.id).where(Export.workspace_id == workspace_id))

    @declared_attr.directive
    def __table_args__(cls) -> tuple[Any, ...]:
        return (*super().__table_args__, UniqueConstraint("export_id", "number"))

"""Define pushes and their ledger, which stores the outcome of every row: ranges for delivered rows, a record for each
other row."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import (
    ID_CHARS,
    JSON_DOC,
    Base,
    ProjectMixin,
    SoftDeleteMixin,
    foreign_key_column,
    id_column,
)
from webapp.work.models import Notifiable, Work


class Push(Work, Notifiable, SoftDeleteMixin, ProjectMixin, Base):
    """Rows sent to a connection: from one template version, from the tables of a dataset version, or from the request
    itself.

    `kind` is `push`, `retry` (of rows of the push `of_id`) or `undo` (of its delivered rows). `tables` contains one
    object for each table, in the order of sending: `{name, template_id, version, target, count, ...}`. `request` is the
    accepted body, and `pins` contains what is needed to generate the same rows again. `intent` is the current chunk. It
    is written in the same transaction as the outcome of the previous chunk, so that a crash leaves at most one chunk in
    doubt.
    """

    __tablename__ = "pushes"
    work_kind: ClassVar[str] = "push"
    quota_columns: ClassVar[tuple[str, ...]] = ("request", "pins")

    id: Mapped[str] = id_column("psh")
    kind: Mapped[str] = mapped_column(String(8), default="push")
    of_id: Mapped[str | None] = foreign_key_column("pushes.id", nullable=True, ondelete="SET NULL")
    connection_id: Mapped[str | None] = foreign_key_column(
        "connections.id", nullable=True, ondelete="SET NULL"
    )
    endpoint_id: Mapped[str | None] = foreign_key_column("endpoints.id", nullable=True, ondelete="SET NULL")
    template_id: Mapped[str | None] = foreign_key_column("templates.id", nullable=True, ondelete="SET NULL")
    template_version: Mapped[int | None] = mapped_column(Integer)
    dataset_id: Mapped[str | None] = foreign_key_column("datasets.id", nullable=True, ondelete="SET NULL")
    dataset_version: Mapped[int | None] = mapped_column(Integer)
    target: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    """For display and search: the table's or the dataset's name."""
    total: Mapped[int] = mapped_column(BigInteger)
    delivered: Mapped[int] = mapped_column(BigInteger, default=0)
    failed: Mapped[int] = mapped_column(BigInteger, default=0)
    unknown: Mapped[int] = mapped_column(BigInteger, default=0)
    undone: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    """Rows that an undo deleted from the target; they no longer count as delivered."""
    tables: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    request: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    pins: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    status_code: Mapped[int | None] = mapped_column(Integer)
    """For HTTP targets: the response status of delivered rows that have no `PushRow`."""
    intent: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    retry_at: Mapped[datetime | None]
    """While the push waits for its target: no worker takes it before this time."""
    waiting: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    """How long the target has been unavailable and the number of attempts: `{since, tries, connected, reason,
    message}`."""
    unsettled: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    """For a push that has ended: the chunk whose commit was in doubt. A retry first queries the target for its outcome.
    """
    progress: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    """Points of the rate chart, downsampled: [seconds since the start, rows processed]."""
    leaks: Mapped[list[Any] | None] = mapped_column(JSON_DOC)
    """For rows from real data: the results of the leak check for each table."""
    created_by: Mapped[str | None] = foreign_key_column(
        "users.id", nullable=True, ondelete="SET NULL", index=False
    )
    key_id: Mapped[str | None] = mapped_column(String(40))
    log_removed_at: Mapped[datetime | None]
    """When the log lines were deleted at the end of the plan's retention period; a single line records this."""


class PushRange(Base):
    """A range of processed rows of one table of a push, from `first` to `last`, counted from 1. All of them are
    delivered except those that have a `PushRow`. A table has one range, unless a retry selected individual rows that
    had never been sent."""

    __tablename__ = "push_ranges"

    push_id: Mapped[str] = mapped_column(
        String(ID_CHARS), ForeignKey("pushes.id", ondelete="CASCADE"), primary_key=True
    )
    table: Mapped[int] = mapped_column("table_no", Integer, primary_key=True)
    first: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    last: Mapped[int] = mapped_column(BigInteger)


class PushRow(Base):
    """A row that was not simply delivered."""

    __tablename__ = "push_rows"
    __table_args__ = (
        Index("ix_push_rows_of", "push_id", "table_no", "row_no", unique=True),
        Index("ix_push_rows_state", "push_id", "state", "table_no", "row_no"),
        Index("ix_push_rows_retried_by", "retried_by"),
    )

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    push_id: Mapped[str] = mapped_column(String(ID_CHARS), ForeignKey("pushes.id", ondelete="CASCADE"))
    table: Mapped[int] = mapped_column("table_no", Integer, default=0)
    row: Mapped[int] = mapped_column("row_no", BigInteger)
    """Counted from 1."""
    state: Mapped[str] = mapped_column(String(12))
    """failed or unknown; delivered after a successful retry, undone after an undo."""
    attempts: Mapped[int] = mapped_column(Integer, default=1)
    status_code: Mapped[int | None] = mapped_column(Integer)
    code: Mapped[str] = mapped_column(String(40), default="")
    """A Rowsmith reason code: unique, not_null ..."""
    native: Mapped[str] = mapped_column(String(40), default="")
    column: Mapped[str | None] = mapped_column("column_name", String(200))
    message: Mapped[str] = mapped_column(Text, default="")
    key: Mapped[Any] = mapped_column(JSON_DOC, nullable=True)
    """The values of the target's key columns, if they were sent."""
    ms: Mapped[int | None] = mapped_column(Integer)
    retried_by: Mapped[str | None] = mapped_column(String(ID_CHARS))
    """The retry that is sending or has delivered this row."""


class PushLine(Base):
    """A line of a push's log, numbered from 1."""

    __tablename__ = "push_lines"

    push_id: Mapped[str] = mapped_column(
        String(ID_CHARS), ForeignKey("pushes.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    at: Mapped[datetime]
    text: Mapped[str] = mapped_column(Text)

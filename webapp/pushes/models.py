"""Pushes and their ledger: what became of every row, delivered ones as ranges, all others one by one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import ID_CHARS, JSON_DOC, Base, InProject, SoftDeleted, identity, reference
from webapp.notifications.models import Noticed
from webapp.operations.models import Work


class Push(Work, Noticed, SoftDeleted, InProject, Base):
    """Rows sent to a connection: of one template version, of a dataset version's tables, or given with the request.

    `kind` is `push`, `retry` (of rows of the push `of_id`) or `undo` (of its delivered rows). `tables` is one object
    for each table, in the order of sending: `{name, template_id, version, target, count, ...}`; `request` the body as
    accepted, `pins` what it takes to make the same rows again. `intent` is the chunk in hand: written in the same
    transaction as the outcome of the one before it, so that a crash leaves at most one chunk in doubt.
    """

    __tablename__ = "pushes"

    id: Mapped[str] = identity("psh")
    kind: Mapped[str] = mapped_column(String(8), default="push")
    of_id: Mapped[str | None] = reference("pushes.id", nullable=True, ondelete="SET NULL")
    connection_id: Mapped[str | None] = reference("connections.id", nullable=True, ondelete="SET NULL")
    endpoint_id: Mapped[str | None] = reference("endpoints.id", nullable=True, ondelete="SET NULL")
    template_id: Mapped[str | None] = reference("templates.id", nullable=True, ondelete="SET NULL")
    template_version: Mapped[int | None] = mapped_column(Integer)
    dataset_id: Mapped[str | None] = reference("datasets.id", nullable=True, ondelete="SET NULL")
    dataset_version: Mapped[int | None] = mapped_column(Integer)
    target: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    """For people and search: the table, or the dataset's name."""
    total: Mapped[int] = mapped_column(BigInteger)
    delivered: Mapped[int] = mapped_column(BigInteger, default=0)
    failed: Mapped[int] = mapped_column(BigInteger, default=0)
    unknown: Mapped[int] = mapped_column(BigInteger, default=0)
    undone: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    """Rows that an undo took out again; they are no longer among the delivered ones."""
    tables: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    request: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    pins: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    status_code: Mapped[int | None] = mapped_column(Integer)
    """Over HTTP: what the target answered to delivered rows that have no `PushRow`."""
    intent: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    retry_at: Mapped[datetime | None]
    """While it waits for its target: the time before which no worker takes it."""
    waiting: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    """Since when its target has been away, and how often it was tried: `{since, tries, connected, reason, message}`."""
    unsettled: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    """Of an ended push: the chunk whose commit was in doubt. A retry asks the target about it first."""
    progress: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    """Points of the rate chart: [seconds since the start, rows that have their end], thinned out."""
    leaks: Mapped[list[Any] | None] = mapped_column(JSON_DOC)
    """Of rows taken from real data: what the leak check saw, table by table."""
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)
    key_id: Mapped[str | None] = mapped_column(String(40))
    log_removed_at: Mapped[datetime | None]
    """When its lines went because the plan keeps them no longer; one line says so."""


class PushRange(Base):
    """Rows of one table of a push that have their end: from `first` to `last`, counted from 1. All of them are
    delivered but those that have a `PushRow`. A table has one, unless a retry was of single rows that were never
    sent."""

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
    """failed, unknown; delivered once a retry has brought it there, undone after an undo."""
    attempts: Mapped[int] = mapped_column(Integer, default=1)
    status_code: Mapped[int | None] = mapped_column(Integer)
    code: Mapped[str] = mapped_column(String(40), default="")
    """A reason of ours: unique, not_null ..."""
    native: Mapped[str] = mapped_column(String(40), default="")
    column: Mapped[str | None] = mapped_column("column_name", String(200))
    message: Mapped[str] = mapped_column(Text, default="")
    key: Mapped[Any] = mapped_column(JSON_DOC, nullable=True)
    """The row's values of the target's key columns, where they were sent."""
    ms: Mapped[int | None] = mapped_column(Integer)
    retried_by: Mapped[str | None] = mapped_column(String(ID_CHARS))
    """The retry that has this row in hand, or brought it there."""


class PushLine(Base):
    """A line of a push's log, numbered from 1."""

    __tablename__ = "push_lines"

    push_id: Mapped[str] = mapped_column(
        String(ID_CHARS), ForeignKey("pushes.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    at: Mapped[datetime]
    text: Mapped[str] = mapped_column(Text)

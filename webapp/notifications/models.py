"""Webhooks and their deliveries, for notifications about finished work."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
)
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import (
    JSON_DOC,
    Base,
    CreatedAtMixin,
    SoftDeleteMixin,
    UpdatedAtMixin,
    WorkspaceMixin,
    foreign_key_column,
    id_column,
)

WARNED = ("requests", "rows")
DELIVERY_STATES = ("pending", "delivered", "failed")


class Webhook(UpdatedAtMixin, SoftDeleteMixin, WorkspaceMixin, Base):
    """A URL that is notified about finished work: in one project, or without one in the whole workspace.

    `sealed` is the encrypted signing secret; after a rotation, the previous one also signs until `before_until`.
    `failures` counts consecutive failed attempts since `failing_since`.
    """

    __tablename__ = "webhooks"

    id: Mapped[str] = id_column("whk")
    project_id: Mapped[str | None] = foreign_key_column("projects.id", nullable=True, ondelete="CASCADE")
    team_id: Mapped[str | None] = foreign_key_column(
        "teams.id", nullable=True, ondelete="CASCADE", index=False
    )
    description: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS), default="")
    url: Mapped[str] = mapped_column(Text)
    events: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    sealed_before: Mapped[bytes | None] = mapped_column(LargeBinary)
    before_until: Mapped[datetime | None]
    active: Mapped[bool] = mapped_column(Boolean, default=True)
    off_reason: Mapped[str | None] = mapped_column(String(16))
    """Why the service disabled it: gone (the receiver responded so) or failing."""
    failures: Mapped[int] = mapped_column(Integer, default=0)
    failing_since: Mapped[datetime | None]
    created_by: Mapped[str | None] = foreign_key_column(
        "users.id", nullable=True, ondelete="SET NULL", index=False
    )


class LimitWarning(CreatedAtMixin, WorkspaceMixin, Base):
    """A warning that 80 % of a limit of a workspace was used, sent at `created_at`."""

    __tablename__ = "limit_warnings"
    __table_args__ = (
        CheckConstraint(f"limit_name IN ({', '.join(repr(item) for item in WARNED)})", name="limit_name"),
        Index("ix_limit_warnings_workspace_id_created_at", "workspace_id", "created_at"),
    )

    id: Mapped[str] = id_column("lim")
    limit_name: Mapped[str] = mapped_column(String(12))
    used: Mapped[int] = mapped_column(BigInteger)
    most: Mapped[int] = mapped_column(BigInteger)
    crossed_at: Mapped[datetime]


class Delivery(CreatedAtMixin, Base):
    """One event on its way to one webhook. Its id is the `webhook-id`, the same at every attempt, as `body` is."""

    __tablename__ = "deliveries"
    __table_args__ = (
        CheckConstraint(f"status IN ({', '.join(repr(state) for state in DELIVERY_STATES)})", name="status"),
        Index("ix_deliveries_status_next_at", "status", "next_at"),
        Index("ix_deliveries_webhook_id_id", "webhook_id", "id"),
    )

    id: Mapped[str] = id_column("dlv")
    webhook_id: Mapped[str] = foreign_key_column("webhooks.id", ondelete="CASCADE", index=False)
    event: Mapped[str] = mapped_column(String(40))
    object_id: Mapped[str | None] = mapped_column(String(40))
    body: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(12), default="pending")
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    tries: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    """The last attempts: [{at, response_status, ms, reason}]."""
    response_status: Mapped[int | None] = mapped_column(Integer)
    ms: Mapped[int | None] = mapped_column(Integer)
    reason: Mapped[str] = mapped_column(String(500), default="")
    head: Mapped[str] = mapped_column(String(limits.WEBHOOK_STORED_CHARS), default="")
    """The beginning of the response to the last attempt, with the secret redacted."""
    next_at: Mapped[datetime | None]
    claimed_until: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]

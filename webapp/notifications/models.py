"""What tells people and programs of work that ended: mails on their way, webhooks and their deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
)
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import (
    ID_CHARS,
    JSON_DOC,
    Base,
    Created,
    InWorkspace,
    SoftDeleted,
    Updated,
    identity,
    reference,
)

MAIL_STATES = ("queued", "sent", "failed")
MAIL_CHOICES = ("never", "failed", "always")
WARNED = ("requests", "rows")
DELIVERY_STATES = ("pending", "delivered", "failed")


class Noticed:
    """Work whose end is told. A row that has ended and is not yet noticed is the note that its end is to be told: it is
    written by whatever ends the work, in the same transaction, whoever that is."""

    noticed_at: Mapped[datetime | None] = mapped_column(index=True)


class Mail(Created, Base):
    """A mail on its way, or what is left of it: `sealed` is its text, which is removed when it has ended.

    `claimed_until`: a sender has it in hand. `about` is the id of what it tells of (an invitation, a run).
    """

    __tablename__ = "mails"
    __table_args__ = (
        CheckConstraint(f"status IN ({', '.join(repr(one) for one in MAIL_STATES)})", name="status"),
        Index("ix_mails_status_next_at", "status", "next_at"),
        Index("ix_mails_user_id_created_at", "user_id", "created_at"),
    )

    id: Mapped[str] = identity("mai")
    workspace_id: Mapped[str | None] = reference("workspaces.id", nullable=True, ondelete="CASCADE")
    user_id: Mapped[str | None] = reference("users.id", nullable=True, ondelete="CASCADE", index=False)
    kind: Mapped[str] = mapped_column(String(40))
    about: Mapped[str | None] = mapped_column(String(40), index=True)
    recipient: Mapped[str] = mapped_column(String(320))
    subject: Mapped[str] = mapped_column(String(limits.MAIL_SUBJECT_CHARS))
    sealed: Mapped[bytes | None] = mapped_column(LargeBinary)
    status: Mapped[str] = mapped_column(String(8), default="queued")
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    next_at: Mapped[datetime]
    claimed_until: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    reason: Mapped[str] = mapped_column(String(500), default="")
    """Why the last attempt failed."""


class NoticeChoice(Base):
    """When a person wants mail about work that they started. Who has none here has said nothing."""

    __tablename__ = "notice_choices"
    __table_args__ = (
        CheckConstraint(f"mail IN ({', '.join(repr(one) for one in MAIL_CHOICES)})", name="mail"),
    )

    user_id: Mapped[str] = mapped_column(
        String(ID_CHARS), ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    mail: Mapped[str] = mapped_column(String(8))
    minutes: Mapped[int] = mapped_column(Integer)
    """Only of work that took longer."""


class Webhook(Updated, SoftDeleted, InWorkspace, Base):
    """An address that is told of work that ended: in one project, or with none in the whole workspace.

    `sealed` is the secret that signs; after a change the one before signs too until `before_until`. `failures` counts
    attempts in a row that failed, since `failing_since`.
    """

    __tablename__ = "webhooks"

    id: Mapped[str] = identity("whk")
    project_id: Mapped[str | None] = reference("projects.id", nullable=True, ondelete="CASCADE")
    team_id: Mapped[str | None] = reference("teams.id", nullable=True, ondelete="CASCADE", index=False)
    description: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS), default="")
    url: Mapped[str] = mapped_column(Text)
    events: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    sealed_before: Mapped[bytes | None] = mapped_column(LargeBinary)
    before_until: Mapped[datetime | None]
    active: Mapped[bool] = mapped_column(Boolean, default=True)
    off_reason: Mapped[str | None] = mapped_column(String(16))
    """Why the service turned it off: gone (the receiver said so) or failing."""
    failures: Mapped[int] = mapped_column(Integer, default=0)
    failing_since: Mapped[datetime | None]
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)


class LimitWarning(Created, InWorkspace, Base):
    """Four fifths of a limit of a workspace were used: what its people were told, and when (`created_at`)."""

    __tablename__ = "limit_warnings"
    __table_args__ = (
        CheckConstraint(f"limit_name IN ({', '.join(repr(one) for one in WARNED)})", name="limit_name"),
        Index("ix_limit_warnings_workspace_id_created_at", "workspace_id", "created_at"),
    )

    id: Mapped[str] = identity("lim")
    limit_name: Mapped[str] = mapped_column(String(12))
    used: Mapped[int] = mapped_column(BigInteger)
    most: Mapped[int] = mapped_column(BigInteger)
    crossed_at: Mapped[datetime]


class Delivery(Created, Base):
    """One event on its way to one webhook. Its id is the `webhook-id`, the same at every attempt, as `body` is."""

    __tablename__ = "deliveries"
    __table_args__ = (
        CheckConstraint(f"status IN ({', '.join(repr(one) for one in DELIVERY_STATES)})", name="status"),
        Index("ix_deliveries_status_next_at", "status", "next_at"),
        Index("ix_deliveries_webhook_id_id", "webhook_id", "id"),
    )

    id: Mapped[str] = identity("dlv")
    webhook_id: Mapped[str] = reference("webhooks.id", ondelete="CASCADE", index=False)
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
    head: Mapped[str] = mapped_column(String(limits.WEBHOOK_HEAD_CHARS), default="")
    """How the answer to the last attempt begins, without the secret."""
    next_at: Mapped[datetime | None]
    claimed_until: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]

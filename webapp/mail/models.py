"""The outbox of e-mails, and users' notification settings."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import ID_CHARS, Base, CreatedAtMixin, foreign_key_column, id_column

MAIL_STATES = ("queued", "sent", "failed")


MAIL_CHOICES = ("never", "failed", "always")


class Mail(CreatedAtMixin, Base):
    """An e-mail in the outbox: `sealed` is its encrypted text, which is deleted when it was sent or has failed.

    `claimed_until`: a sender is processing it. `about` is the id of its subject (an invitation, a run).
    """

    __tablename__ = "mails"
    __table_args__ = (
        CheckConstraint(f"status IN ({', '.join(repr(state) for state in MAIL_STATES)})", name="status"),
        Index("ix_mails_status_next_at", "status", "next_at"),
        Index("ix_mails_user_id_created_at", "user_id", "created_at"),
    )

    id: Mapped[str] = id_column("mai")
    workspace_id: Mapped[str | None] = foreign_key_column("workspaces.id", nullable=True, ondelete="CASCADE")
    user_id: Mapped[str | None] = foreign_key_column(
        "users.id", nullable=True, ondelete="CASCADE", index=False
    )
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
    """The error of the last attempt."""


class NoticeChoice(Base):
    """A user's setting for e-mails about jobs that they started. Users without a row use the default."""

    __tablename__ = "notice_choices"
    __table_args__ = (
        CheckConstraint(f"mail IN ({', '.join(repr(choice) for choice in MAIL_CHOICES)})", name="mail"),
    )

    user_id: Mapped[str] = mapped_column(
        String(ID_CHARS), ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    mail: Mapped[str] = mapped_column(String(8))
    minutes: Mapped[int] = mapped_column(Integer)
    """Only of work that took longer."""

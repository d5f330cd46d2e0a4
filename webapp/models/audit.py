"""The audit trail: who did what to which object, when, from where. Never secrets, never rows of data."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from webapp import clock
from webapp.models.base import ID_CHARS, JSON_DOC, Base, InWorkspace, identity


class AuditEntry(InWorkspace, Base):
    """One action. Ids are kept as text without foreign keys: the trail outlives what it speaks of."""

    __tablename__ = "audit_entries"
    __table_args__ = (Index("ix_audit_entries_workspace_id_at", "workspace_id", "at", "id"),)

    id: Mapped[str] = identity("aud")
    at: Mapped[datetime] = mapped_column(default=clock.now)
    action: Mapped[str] = mapped_column(String(64))  # "template.create", "template.generate", "session.start"
    object_type: Mapped[str] = mapped_column(String(32), default="")
    object_id: Mapped[str] = mapped_column(String(ID_CHARS), default="")
    project_id: Mapped[str | None] = mapped_column(String(ID_CHARS))
    user_id: Mapped[str | None] = mapped_column(String(ID_CHARS))
    key_id: Mapped[str | None] = mapped_column(String(ID_CHARS))
    address: Mapped[str] = mapped_column(String(64), default="")
    request_id: Mapped[str] = mapped_column(String(128), default="")
    rows: Mapped[int | None] = mapped_column(BigInteger)
    details: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)

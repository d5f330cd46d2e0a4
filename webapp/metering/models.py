"""Usage by the hour."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from webapp.model_base import ID_CHARS, Base


class UsageHour(Base):
    """Usage in one hour (its start, in UTC) of one workspace, by project, template or dataset, key and user; "" for
    usage without one. `rows` are summed up from the audit log when its entries are sealed, `requests` from Redis.
    """

    __tablename__ = "usage_hours"
    __table_args__ = (Index("ix_usage_hours_hour", "hour"),)

    workspace_id: Mapped[str] = mapped_column(
        String(ID_CHARS), ForeignKey("workspaces.id", ondelete="CASCADE"), primary_key=True
    )
    hour: Mapped[datetime] = mapped_column(primary_key=True)
    project_id: Mapped[str] = mapped_column(String(ID_CHARS), primary_key=True)
    template_id: Mapped[str] = mapped_column(String(ID_CHARS), primary_key=True)
    key_id: Mapped[str] = mapped_column(String(ID_CHARS), primary_key=True)
    user_id: Mapped[str] = mapped_column(String(ID_CHARS), primary_key=True)
    rows: Mapped[int] = mapped_column(BigInteger, default=0)
    requests: Mapped[int] = mapped_column(BigInteger, default=0)


class UsageFold(Base):
    """The last move of a workspace's counts from Redis, so that no count is added twice."""

    __tablename__ = "usage_folds"

    workspace_id: Mapped[str] = mapped_column(
        String(ID_CHARS), ForeignKey("workspaces.id", ondelete="CASCADE"), primary_key=True
    )
    fold: Mapped[str] = mapped_column(String(ID_CHARS))

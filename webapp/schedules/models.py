"""Schedules of exports and pushes. A scenario has its schedule among its own settings."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import Boolean, CheckConstraint, String, false
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import (
    ID_CHARS,
    JSON_DOC,
    Base,
    ProjectMixin,
    UpdatedAtMixin,
    foreign_key_column,
    id_column,
)


class Schedule(UpdatedAtMixin, ProjectMixin, Base):
    """A request for an export or a push that is repeated.

    `request` is the body of the request as the API accepts it. `next_run_at` is when the sweeper starts the next job;
    NULL while the schedule is off. Jobs start with the rights of the user who last saved the schedule.
    """

    __tablename__ = "schedules"
    __table_args__ = (CheckConstraint("kind IN ('export', 'push')", name="kind"),)
    quota_columns: ClassVar[tuple[str, ...]] = ("request",)

    id: Mapped[str] = id_column("sch")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    kind: Mapped[str] = mapped_column(String(8))
    template_id: Mapped[str | None] = foreign_key_column("templates.id", nullable=True, ondelete="CASCADE")
    dataset_id: Mapped[str | None] = foreign_key_column("datasets.id", nullable=True, ondelete="CASCADE")
    request: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    cron: Mapped[str] = mapped_column(String(limits.MAX_CRON_CHARS))
    timezone: Mapped[str] = mapped_column(String(limits.MAX_TIMEZONE_CHARS))
    enabled: Mapped[bool] = mapped_column(Boolean, default=True)
    new_seed: Mapped[bool] = mapped_column(Boolean, default=False)
    """Whether each job uses a new seed; otherwise all jobs have the same rows."""
    undo_previous: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    """Of a push: whether the rows of the previous push are deleted first."""
    next_run_at: Mapped[datetime | None] = mapped_column(index=True)
    last_job_id: Mapped[str | None] = mapped_column(String(ID_CHARS))
    last_run_at: Mapped[datetime | None]
    problem: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    """Why the last due time did not start a job: {code, message, at}; NULL if it did."""
    saved_by: Mapped[str | None] = foreign_key_column(
        "users.id", nullable=True, ondelete="SET NULL", index=False
    )

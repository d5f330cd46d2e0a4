"""Define scenarios, their versions, their runs and run logs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import BigInteger, ForeignKey, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from webapp.model_base import ID_CHARS, JSON_DOC, Base, ProjectMixin, foreign_key_column, id_column
from webapp.versioning.models import Version, Versioned
from webapp.work.models import Notifiable, Work


class Scenario(Versioned):
    """A scenario: the settings for running its program. The program itself is stored in its versions.

    `schedule`: {cron, timezone, enabled, params} or NULL; `next_run_at` is when the sweeper queues the next
    run.
    """

    __tablename__ = "scenarios"
    quota_columns: ClassVar[tuple[str, ...]] = ("env", "schedule")

    id: Mapped[str] = id_column("scn")
    timeout_seconds: Mapped[int] = mapped_column(Integer)
    network: Mapped[str] = mapped_column(String(8))
    """full, api or none."""
    env: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    secrets: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    """Names of the secrets that a run receives as variables."""
    writable_secrets: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    """Names of the secrets that a run may set."""
    schedule: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    next_run_at: Mapped[datetime | None] = mapped_column(index=True)
    schedule_problem: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    """Why the last due time did not start a run: {code, message, at}; NULL if it did."""


class ScenarioVersion(Version):
    """One version of a program, never changed.

    `spec`: name, description, code. `pins`: the requirements as resolved when the version was saved:
    {requirements, lock, environment (the lock's hash)}.
    """

    __tablename__ = "scenario_versions"
    __table_args__ = (UniqueConstraint("scenario_id", "number"),)

    scenario_id: Mapped[str] = foreign_key_column("scenarios.id", ondelete="CASCADE")


class Run(Work, Notifiable, ProjectMixin, Base):
    """One run of a scenario's version. `settings` is a copy of the scenario's settings at the time of the request."""

    __tablename__ = "runs"
    work_kind: ClassVar[str] = "run"
    quota_columns: ClassVar[tuple[str, ...]] = ("params", "settings")

    id: Mapped[str] = id_column("run")
    scenario_id: Mapped[str] = foreign_key_column("scenarios.id", ondelete="CASCADE")
    scenario_version: Mapped[int] = mapped_column(Integer)
    of_id: Mapped[str | None] = foreign_key_column("runs.id", nullable=True, ondelete="SET NULL")
    """The run that this one repeats."""
    parent_id: Mapped[str | None] = foreign_key_column("runs.id", nullable=True, ondelete="SET NULL")
    """The run whose program started this one."""
    depth: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    """The number of ancestor runs: 0 for a run that no program started."""
    params: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    trigger: Mapped[str] = mapped_column(String(16))
    """api, browser, schedule, rerun, or scenario (another run's program)."""
    settings: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    exit_code: Mapped[int | None] = mapped_column(Integer)
    max_rss_bytes: Mapped[int | None] = mapped_column(BigInteger)
    cpu_ms: Mapped[int | None] = mapped_column(BigInteger)
    rows_generated: Mapped[int] = mapped_column(BigInteger, default=0)
    line_count: Mapped[int] = mapped_column(BigInteger, default=0)
    log_bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    outputs: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    """The stored outputs: [{name, size, file_id}]."""
    usage: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    """Points of the resource chart, downsampled: [seconds since the start, memory in bytes, processor time in ms]."""
    created_by: Mapped[str | None] = foreign_key_column(
        "users.id", nullable=True, ondelete="SET NULL", index=False
    )
    key_id: Mapped[str | None] = mapped_column(String(ID_CHARS))
    """The API key that requested the run."""
    closed_at: Mapped[datetime | None] = mapped_column(index=True)
    """When its end was processed: last log line written, its API key revoked."""
    log_removed_at: Mapped[datetime | None]
    """When the log lines were deleted at the end of the plan's retention period; a single line records this."""


class RunChunk(Base):
    """Lines of a run's log in the order in which they were printed, from number `first` to `last`, counted from 1,
    joined by line feeds. A single line contains no line feed."""

    __tablename__ = "run_chunks"

    run_id: Mapped[str] = mapped_column(
        String(ID_CHARS), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True
    )
    first: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    last: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[datetime]
    text: Mapped[str] = mapped_column(Text)

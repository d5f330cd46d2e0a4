"""Scenarios, their versions, their runs, and what a run printed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from webapp.model_base import ID_CHARS, JSON_DOC, Base, InProject, identity, reference
from webapp.notifications.models import Noticed
from webapp.objects.models import Version, Versioned
from webapp.operations.models import Work


class Scenario(Versioned):
    """A scenario's head: how its program is run. What the program is lies in its versions.

    `schedule`: {cron, timezone, enabled, params} or NULL; `next_run_at` is when the sweeper queues the next run.
    """

    __tablename__ = "scenarios"

    id: Mapped[str] = identity("scn")
    timeout_seconds: Mapped[int] = mapped_column(Integer)
    network: Mapped[str] = mapped_column(String(8))
    """full, api or none."""
    env: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    secrets: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    """Names of the secrets that a run gets as variables."""
    writable_secrets: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    """Names of the secrets that a run may set."""
    schedule: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    next_run_at: Mapped[datetime | None] = mapped_column(index=True)
    schedule_problem: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    """Why the last time that was due brought no run: {code, message, at}; NULL when it did."""


class ScenarioVersion(Version):
    """A program as of one version; never changed.

    `spec`: name, description, code. `pins`: what its requirements were resolved to when it was saved:
    {requirements, lock, environment (the lock's hash)}.
    """

    __tablename__ = "scenario_versions"
    __table_args__ = (UniqueConstraint("scenario_id", "number"),)

    scenario_id: Mapped[str] = reference("scenarios.id", ondelete="CASCADE")


class Run(Work, Noticed, InProject, Base):
    """One run of a scenario's version. `settings` is the scenario's head as it was when the run was asked for."""

    __tablename__ = "runs"

    id: Mapped[str] = identity("run")
    scenario_id: Mapped[str] = reference("scenarios.id", ondelete="CASCADE")
    scenario_version: Mapped[int] = mapped_column(Integer)
    of_id: Mapped[str | None] = reference("runs.id", nullable=True, ondelete="SET NULL")
    """The run that this one repeats."""
    parent_id: Mapped[str | None] = reference("runs.id", nullable=True, ondelete="SET NULL")
    """The run whose program started this one."""
    depth: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    """How many runs are above this one: 0 for a run that no program started."""
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
    """Points of the resource chart: [seconds since the start, memory in bytes, processor time in ms], thinned out."""
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)
    key_id: Mapped[str | None] = mapped_column(String(ID_CHARS))
    """The key that asked for the run."""
    closed_at: Mapped[datetime | None] = mapped_column(index=True)
    """When its end was told: last line written, its own key revoked."""
    log_removed_at: Mapped[datetime | None]
    """When its lines went because the plan keeps them no longer; one line says so."""


class RunChunk(Base):
    """Lines of a run's log in the order they were printed: from number `first` to `last`, counted from 1, in one
    text with a line feed between each two. A line itself holds none."""

    __tablename__ = "run_chunks"

    run_id: Mapped[str] = mapped_column(
        String(ID_CHARS), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True
    )
    first: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    last: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[datetime]
    text: Mapped[str] = mapped_column(Text)

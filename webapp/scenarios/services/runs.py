"""Runs of scenarios: create, list, cancel, repeat. A runner executes them (`jobs.scenarios.run`).

A run stores its version, its parameters, and the scenario's settings at that time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from sqlalchemy import func, select

from webapp import clock, limits, pagination
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.access.models import Workspace
from webapp.audit.services import audit_log
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db, read_session, redis_client
from webapp.metering import stored_json
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.services import environment_variables, run_completion
from webapp.work import jobs_queue
from webapp.work.models import END_STATES

KIND: Final = "run"
Trigger = Literal["api", "browser", "schedule", "rerun", "scenario"]
_SORT_COLUMNS: Final = {"lines": Run.line_count, "rows": Run.rows_generated}
_SNAPSHOT: Final = ("timeout_seconds", "network", "env", "secrets", "writable_secrets")


def as_json(run: Run) -> dict[str, Any]:
    """A run for the API. `usage` contains the points of the resource chart: seconds, bytes, milliseconds."""
    return {
        "id": run.id,
        "run_id": run.id,
        "scenario_id": run.scenario_id,
        "scenario_version": run.scenario_version,
        "of_id": run.of_id,
        "status": run.status,
        "params": run.params,
        "trigger": run.trigger,
        "exit_code": run.exit_code,
        "error": run.error,
        "created_at": clock.to_text(run.created_at),
        "started_at": clock.to_text(run.started_at),
        "finished_at": clock.to_text(run.finished_at),
        "cancel_requested_at": clock.to_text(run.cancel_requested_at),
        "duration_ms": _duration(run.started_at, run.finished_at),
        "max_rss_bytes": run.max_rss_bytes,
        "cpu_ms": run.cpu_ms,
        "rows_generated": run.rows_generated,
        "line_count": run.line_count,
        "log_bytes": run.log_bytes,
        "usage": run.usage,
        "outputs": run.outputs,
        "timeout_seconds": run.settings["timeout_seconds"],
        "network": run.settings["network"],
        "project_id": run.project_id,
        "team_id": run.team_id,
        "created_by": run.created_by,
    }


def _duration(started: datetime | None, finished: datetime | None) -> int | None:
    """Return the milliseconds from start to end, or None if either is missing."""
    if started is None or finished is None:
        return None
    return max(0, round((finished - started).total_seconds() * 1000))


# --- Creating runs ---


def params_faults(scenario: Scenario, params: Mapping[str, str]) -> list[Fault]:
    """Return the faults of a run's parameters, which become environment variables."""
    return environment_variables.env_faults(dict(params), "params", scenario.secrets)


def queue(
    actor: Actor,
    scenario: Scenario,
    params: Mapping[str, str] | None,
    *,
    trigger: Trigger | None = None,
    of: Run | None = None,
    version: int | None = None,
) -> Run:
    """Create a run with its audit entry, commit and notify a runner. `trigger` None: how the actor
    authenticated; `version` None: the newest.

    Raises forbidden (also for runs nested deeper than MAX_RUN_DEPTH), validation_error (parameters, each at
    `params.<name>`), quota_exceeded with Retry-After if too many runs of the workspace, or of the run that
    requests it, are queued.
    """
    require_scope(actor, "run", scenario.team_id)
    parameters = dict(params or {})
    if faults := params_faults(scenario, parameters):
        raise validation_error(faults)
    _check_queue_limit(scenario.workspace_id)
    parent = db.session.get_one(Run, actor.run_id) if actor.run_id is not None else None
    if parent is not None:
        _check_parent(parent)
    settings = {name: getattr(scenario, name) for name in _SNAPSHOT}
    stored_json.reserve(actor, parameters, settings)
    run = Run(
        workspace_id=scenario.workspace_id,
        project_id=scenario.project_id,
        team_id=scenario.team_id,
        scenario_id=scenario.id,
        scenario_version=version or scenario.version,
        of_id=of.id if of else None,
        parent_id=parent.id if parent else None,
        depth=parent.depth + 1 if parent else 0,
        params=parameters,
        trigger=trigger or _trigger_of(actor),
        settings=settings,
        created_by=actor.user_id or scenario.created_by,
        key_id=actor.key_id,
        created_at=clock.now(),
    )
    db.session.add(run)
    db.session.flush()
    details: dict[str, Any] = {
        "run": run.id,
        "version": run.scenario_version,
        "trigger": run.trigger,
        "params": sorted(parameters),
    }
    if parent is not None:
        details["parent"] = parent.id
    audit_log.record(
        actor, "scenario.run", scenario, join=True, workspace_id=scenario.workspace_id, **details
    )
    jobs_queue.enqueue_after_commit(db.session, redis_client(), KIND, run.id)
    db.session.commit()
    return run


def _trigger_of(actor: Actor) -> Trigger:
    if actor.run_id is not None:
        return "scenario"
    return "browser" if actor.kind == "session" else "api"


def _check_queue_limit(workspace_id: str) -> None:
    """Raise `quota_exceeded` if no more runs of a workspace may be queued. Locks its row, so that the limit
    is exact."""
    workspace = db.session.get_one(
        Workspace, workspace_id, with_for_update={"key_share": True}, populate_existing=True
    )
    limit = limits.RUNS_QUEUED[workspace.plan]
    statement = select(func.count()).where(Run.workspace_id == workspace_id, Run.status == "queued")
    queued = db.session.scalar(statement) or 0
    if queued < limit:
        return
    wait = limits.RUN_QUEUE_RETRY_SECONDS
    raise ApiError(
        "quota_exceeded",
        f"{queued:,} runs of this workspace are queued already, which is the maximum.",
        {"limit": limit, "used": queued, "retry_after": wait},
        headers={"Retry-After": str(wait)},
    )


def _check_parent(parent: Run) -> None:
    """Raise forbidden for a run that is nested too deeply, quota_exceeded if its parent has started too many
    unfinished ones. Exact, because the workspace's row is locked."""
    if parent.depth >= limits.MAX_RUN_DEPTH:
        raise ApiError(
            "forbidden",
            f"Runs can start other runs up to {limits.MAX_RUN_DEPTH} levels deep, and this run is at level "
            f"{parent.depth}. Use a loop in one program, or a schedule.",
            {"needs": "depth", "limit": limits.MAX_RUN_DEPTH},
        )
    statement = select(func.count()).where(Run.parent_id == parent.id, Run.status.in_(("queued", "running")))
    unfinished = db.session.scalar(statement) or 0
    if unfinished < limits.MAX_RUNS_OF_RUN:
        return
    wait = limits.RUN_QUEUE_RETRY_SECONDS
    raise ApiError(
        "quota_exceeded",
        f"This run has started {unfinished} runs that are not finished; it can have at most "
        f"{limits.MAX_RUNS_OF_RUN}. Wait for some of them.",
        {"limit": limits.MAX_RUNS_OF_RUN, "used": unfinished, "retry_after": wait},
        headers={"Retry-After": str(wait)},
    )


def rerun(
    actor: Actor,
    run: Run,
    *,
    version: Literal["same", "newest"] = "same",
    params: Mapping[str, str] | None = None,
) -> Run:
    """Run again: with the same version or the newest, the same parameters or others, and the scenario's
    present settings. Raises the errors of `queue`, not_found for a deleted scenario."""
    scenario = tenancy.get(actor, Scenario, run.scenario_id, "run")
    number = run.scenario_version if version == "same" else None
    parameters = run.params if params is None else params
    return queue(actor, scenario, parameters, trigger="rerun", of=run, version=number)


# --- Reading runs ---


def get(actor: Actor, scenario_id: str, run_id: str, scope: str = "read", *, lock: bool = False) -> Run:
    """Return one run of a scenario, which may be deleted. Raises not_found, forbidden."""
    run = tenancy.get(actor, Run, run_id, scope, lock=lock)
    if run.scenario_id != scenario_id:
        raise tenancy.not_found("run", run_id)
    return run


def listing(
    actor: Actor,
    *,
    scenario_id: str | None = None,
    status: str | None = None,
    trigger: str | None = None,
    of_id: str | None = None,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    q: str | None = None,
    sort: str | None = None,
) -> pagination.Page[Run]:
    """Return a page of the project's runs, newest first, optionally of one scenario. `q` searches scenario
    names; `sort`: `created`, `lines` or `rows`, descending with `-`."""
    narrowed = {"scenario_id": scenario_id, "status": status, "trigger": trigger, "of_id": of_id}
    statement = tenancy.listing(actor, Run, project=scenario_id is None)
    statement = statement.join(Scenario, Scenario.id == Run.scenario_id)
    for name, value in narrowed.items():
        if value is not None:
            statement = statement.where(getattr(Run, name) == value)
    return pagination.paginate(
        statement,
        name="runs",
        id_column=Run.id,
        cursor=cursor,
        limit=limit,
        search=(q, Scenario.name),
        order_column=_SORT_COLUMNS.get((sort or "").removeprefix("-")),
        descending=sort is None or sort.startswith("-"),
        context=f"{actor.project_id} {sorted(narrowed.items(), key=str)}",
        sizes=(Run.params, Run.settings, Run.outputs),
    )


def cancel(actor: Actor, run: Run) -> Run:
    """Cancel a locked run and commit. A queued one ends immediately, a running one when its runner checks,
    twice per second. Raises run_finished if it has ended."""
    if run.has_ended:
        raise ApiError("run_finished", "This run has already finished.", {"status": run.status})
    if run.cancel_requested_at is None:
        run.cancel_requested_at = clock.now()
        audit_log.record(actor, "run.cancel", run, join=True, scenario=run.scenario_id)
    if run.status == "queued":
        run.status, run.finished_at = "cancelled", clock.now()
        run_completion.record_end(db.session(), run.id)
    db.session.commit()
    run_completion.notify_followers(run.id)
    return run


# --- Progress ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a run that followers receive."""

    status: str
    exit_code: int | None
    error: dict[str, Any] | None
    line_count: int
    rows_generated: int
    max_rss_bytes: int | None
    cpu_ms: int | None
    finished_at: datetime | None
    closed_at: datetime | None

    @property
    def is_final(self) -> bool:
        """Return whether the state is final: the last line of the log is written, or never will be."""
        if self.status not in END_STATES:
            return False
        late = self.finished_at is not None and (
            (clock.now() - self.finished_at).total_seconds() > limits.RUN_CLOSING_SECONDS
        )
        return self.closed_at is not None or late

    @property
    def event_id(self) -> str:
        """The event id, which identifies this state."""
        return f"{self.status}-{self.line_count}-{self.rows_generated}-{self.cpu_ms or 0}"

    def progress_data(self) -> dict[str, Any]:
        """Return the data of a `progress` event."""
        return {
            "status": self.status,
            "line_count": self.line_count,
            "rows_generated": self.rows_generated,
            "max_rss_bytes": self.max_rss_bytes,
            "cpu_ms": self.cpu_ms,
        }

    def end_data(self) -> dict[str, Any]:
        """Return the data of the `end` event."""
        return {"status": self.status, "exit_code": self.exit_code, "error": self.error}


_STATE_COLUMNS: Final = (
    Run.status,
    Run.exit_code,
    Run.error,
    Run.line_count,
    Run.rows_generated,
    Run.max_rss_bytes,
    Run.cpu_ms,
    Run.finished_at,
    Run.closed_at,
)


def state(run_id: str) -> RunState | None:
    """Return the state of a run in a separate short read; None if it was deleted."""
    with read_session() as session:
        row = session.execute(select(*_STATE_COLUMNS).where(Run.id == run_id)).one_or_none()
    return RunState(*row) if row is not None else None

"""Work of a workspace: running and failed work, and releasing work from a worker that is stuck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import Select, select

from webapp import clock, limits
from webapp.access.actors import Actor, require_scope
from webapp.access.tenancy import not_found
from webapp.audit.services import audit_log
from webapp.errors import ApiError
from webapp.exports.models import Export, ExportPart
from webapp.extensions import db, redis_client
from webapp.imports.models import ImportJob
from webapp.monitoring import health
from webapp.monitoring.health import Process
from webapp.pushes.models import Push
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.services import run_completion
from webapp.work import jobs_queue

# The kind of work that an id is of, by its prefix.
KIND_BY_PREFIX: Final[Mapping[str, str]] = MappingProxyType(
    {"exp": "export", "imp": "import", "prt": "part", "psh": "push", "run": "run"}
)
_COMPONENTS: Final = (health.WORKER, health.RUNNER, health.SWEEPER)


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One piece of work. `of` is the id of the object whose page it is on: of a part its export, of a run its scenario.
    `silent`: seconds since the last heartbeat of its worker; None without a worker."""

    kind: str
    id: str
    of: str
    name: str
    status: str
    attempt: int
    epoch: int
    owner: str | None
    silent: float | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: Mapping[str, Any] | None

    @property
    def lost(self) -> bool:
        """Return whether the sweeper would take it from its worker now."""
        return self.silent is not None and self.silent > limits.LEASE_SECONDS


def processes(actor: Actor) -> list[Process]:
    """Return the active workers, runners and sweepers. Their work is named if it is of the actor's workspace, else only
    its kind. Error: RedisError."""
    require_scope(actor, "admin")
    found = [
        process
        for part in _COMPONENTS
        for process in health.processes(redis_client(), part, health.heartbeat_cutoff())
    ]
    return [_visible(actor, process) for process in found]


def _visible(actor: Actor, process: Process) -> Process:
    about = dict(process.about)
    if "id" in about and _work_row(actor, about["kind"], about["id"]) is None:
        about["id"] = None
    return Process(process.part, process.host, process.pid, process.last_seen, about)


def _statement(actor: Actor, kind: str) -> Select[*tuple[Any, ...]]:
    """Return a select of the jobs of one kind in the workspace: row, id for the URL of the page, and name."""
    if kind == "part":
        parts = select(ExportPart, ExportPart.export_id, Export.file_name).join(
            Export, Export.id == ExportPart.export_id
        )
        return parts.where(Export.workspace_id == actor.workspace_id)
    if kind == "run":
        statement = select(Run, Run.scenario_id, Scenario.name).join(Scenario, Scenario.id == Run.scenario_id)
        return statement.where(Run.workspace_id == actor.workspace_id)
    if kind == "push":
        return select(Push, Push.id, Push.target).where(Push.workspace_id == actor.workspace_id)
    if kind == "import":
        statement = select(ImportJob, ImportJob.id, ImportJob.request["name"].as_string())
        return statement.where(ImportJob.workspace_id == actor.workspace_id)
    exports = select(Export, Export.id, Export.file_name).where(Export.part_rows.is_(None))
    return exports.where(Export.workspace_id == actor.workspace_id)


def _work_row(actor: Actor, kind: str, work_id: str) -> Any:
    model = jobs_queue.KINDS[kind].model
    return db.session.execute(_statement(actor, kind).where(model.id == work_id)).first()


def _work_item(kind: str, row: Any, now: datetime) -> WorkItem:
    work, of, name = row
    until = work.lease_until
    silent = (
        limits.LEASE_SECONDS - (until - now).total_seconds() if until and work.status == "running" else None
    )
    return WorkItem(
        kind=kind,
        id=work.id,
        of=of,
        name=name or "",
        status=work.status,
        attempt=work.attempt,
        epoch=work.epoch,
        owner=work.lease_owner,
        silent=None if silent is None else round(max(0.0, silent), 1),
        created_at=work.created_at,
        started_at=work.started_at,
        finished_at=work.finished_at,
        error=work.error,
    )


def unfinished_work(actor: Actor) -> list[WorkItem]:
    """Return the running jobs of the workspace, longest without a heartbeat first, then the queued ones, oldest first;
    at most STATUS_WORK. Error: forbidden."""
    require_scope(actor, "admin")
    now, found = clock.now(), []
    for kind, about in jobs_queue.KINDS.items():
        model = about.model
        unfinished = _statement(actor, kind).where(model.status.in_(("running", "queued")))
        rows = db.session.execute(
            unfinished.order_by(model.status.desc(), model.created_at).limit(limits.STATUS_WORK)
        )
        found += [_work_item(kind, row, now) for row in rows]
    found.sort(key=lambda item: (item.status != "running", -(item.silent or 0), item.created_at))
    return found[: limits.STATUS_WORK]


def failed_work(actor: Actor) -> list[WorkItem]:
    """Return jobs that failed or timed out in the last days, newest first; at most STATUS_FAILED. Error: forbidden."""
    require_scope(actor, "admin")
    now, found = clock.now(), []
    since = now - timedelta(days=limits.STATUS_FAILED_DAYS)
    for kind, about in jobs_queue.KINDS.items():
        model = about.model
        statement = _statement(actor, kind).where(
            model.status.in_(("failed", "timed_out")), model.finished_at >= since
        )
        rows = db.session.execute(statement.order_by(model.finished_at.desc()).limit(limits.STATUS_FAILED))
        found += [_work_item(kind, row, now) for row in rows]
    found.sort(key=lambda item: item.finished_at or now, reverse=True)
    return found[: limits.STATUS_FAILED]


def release(actor: Actor, work_id: str, epoch: int) -> WorkItem:
    """Take running work from its worker; commits. The epoch is incremented, so the worker cannot write any more, and
    sends at most its current request. An export, part or push is queued for the next worker; a run is marked as failed,
    because its program may have made changes.

    `epoch` is the one that the user saw: work that another worker has taken since is not changed. Errors: not_found,
    forbidden, conflict (another epoch, or it is no longer running).
    """
    require_scope(actor, "admin")
    kind = KIND_BY_PREFIX.get(work_id.partition("_")[0])
    if kind is None or "\0" in work_id or _work_row(actor, kind, work_id) is None:
        raise not_found("work", work_id)
    model = jobs_queue.KINDS[kind].model
    locked = (
        select(model).where(model.id == work_id).with_for_update().execution_options(populate_existing=True)
    )
    work = db.session.scalars(locked).one()
    if work.status != "running" or work.epoch != epoch:
        text = "This job has finished or was taken by another worker in the meantime. Reload the page."
        raise ApiError("conflict", text, {"id": work_id, "status": work.status, "epoch": work.epoch})
    old_owner, moment = work.lease_owner or "", clock.now()
    work.epoch, work.lease_owner, work.lease_until = epoch + 1, None, None
    if isinstance(work, Push):
        work.retry_at = None  # one that waits for its target tries it now
    if kind == "run":
        text = "An admin released this run from its runner. It is not repeated."
        work.status, work.finished_at = "failed", moment
        work.error = run_completion.run_error("worker_lost", text, released=True)
    audit_log.record(
        actor,
        f"{kind}.release",
        (kind, work_id),
        join=True,
        owner=old_owner,
        epoch=epoch,
        attempt=work.attempt,
    )
    found = replace(_work_item(kind, _work_row(actor, kind, work_id), moment), owner=old_owner)
    db.session.commit()
    if kind == "run":
        run_completion.settle(work_id)
    else:
        jobs_queue.enqueue(redis_client(), kind, work_id)
    return found

"""The events of webhooks and their payloads: names, statuses and counts of the work, never rows,
parameters, messages of a target or anything else that could hold data or a secret."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson

from webapp import clock
from webapp.exports.models import Export
from webapp.notifications.models import Delivery
from webapp.pushes.models import Push
from webapp.pushes.services.ledger import read
from webapp.scenarios.models import Run
from webapp.work.models import END_STATES, Work

MODELS: Final[Mapping[str, Any]] = MappingProxyType({"export": Export, "push": Push, "run": Run})
# Exports and pushes have no time limit.
ENDS: Final = tuple(
    f"{kind}.{end}" for kind in MODELS for end in END_STATES if end != "timed_out" or kind == "run"
)
LIMIT: Final = "limit.warning"  # four fifths of a plan's limit are used
EVENTS: Final = (*ENDS, LIMIT)
WILD: Final = ("*", *(f"{kind}.*" for kind in MODELS))
TEST: Final = "webhook.test"  # sent by the test of a webhook; cannot be subscribed to


def wanted(events: Iterable[str], event: str) -> bool:
    """Return whether a webhook subscribed to these events gets this one."""
    return not {"*", event, f"{event.partition('.')[0]}.*"}.isdisjoint(events)


def body(
    delivery: Delivery, workspace_id: str, project_id: str | None, told: Mapping[str, Any] | None
) -> str:
    """Return the payload, which is the same for every attempt."""
    return orjson.dumps(
        {
            "id": delivery.id,
            "event": delivery.event,
            "created_at": clock.to_text(delivery.created_at),
            "workspace_id": workspace_id,
            "project_id": project_id,
            "object": told,
        }
    ).decode()


def shown(kind: str, work: Work) -> dict[str, Any]:
    """Return a job as it appears in events."""
    own = _OWN[kind](work)
    took = (work.finished_at - work.started_at) if work.finished_at and work.started_at else None
    return {
        "type": kind,
        "id": work.id,
        "status": work.status,
        **own,
        "attempt": work.attempt,
        "error": {"code": work.error.get("code")} if work.error else None,
        "created_by": work.created_by,  # type: ignore[attr-defined]  # a column of every kind of work
        "created_at": clock.to_text(work.created_at),
        "started_at": clock.to_text(work.started_at),
        "finished_at": clock.to_text(work.finished_at),
        "duration_ms": max(0, round(took.total_seconds() * 1000)) if took is not None else None,
    }


def _export(row: Any) -> dict[str, Any]:
    return {
        "template_id": row.template_id,
        "template_version": row.template_version,
        "dataset_id": row.dataset_id,
        "dataset_version": row.dataset_version,
        "format": row.format,
        "file_name": row.file_name,
        "count": row.count,
        "rows_done": row.rows_done,
        "bytes": row.bytes,
        "sha256": row.sha256,
    }


def _push(row: Any) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "of_id": row.of_id,
        "connection_id": row.connection_id,
        "endpoint_id": row.endpoint_id,
        "template_id": row.template_id,
        "template_version": row.template_version,
        "dataset_id": row.dataset_id,
        "dataset_version": row.dataset_version,
        "target": row.target,
        "counts": read.counts(row),
    }


def _run(row: Any) -> dict[str, Any]:
    return {
        "scenario_id": row.scenario_id,
        "scenario_version": row.scenario_version,
        "trigger": row.trigger,
        "exit_code": row.exit_code,
        "rows_generated": row.rows_generated,
    }


_OWN: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = MappingProxyType(
    {"export": _export, "push": _push, "run": _run}
)

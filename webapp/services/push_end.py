"""The end of a push, whoever brought it about: rows in doubt, rows to give back, the trail."""

from __future__ import annotations

import logging
from typing import Any, Final

import redis
from sqlalchemy import Select, func, insert, or_, select
from sqlalchemy.orm import Session

from webapp import clock, ids
from webapp.extensions import writing
from webapp.models import AuditEntry, Push, PushLine
from webapp.services import ledger, ledger_entries, ledger_rows, metrics, quotas
from webapp.services.ledger_book import IN_DOUBT
from webapp.services.ledger_entries import Chunk
from webapp.services.quotas import Reservation

log = logging.getLogger(__name__)

SETTLED: Final = "settled"  # a word in `Push.request` of a push whose end was told
_ENDS: Final = ("delivered", "failed", "unknown", "pending")


def is_due(session: Session, push_id: str) -> bool:
    """Whether a push may be taken now: it does not wait for its target."""
    retry_at = session.scalar(select(Push.retry_at).where(Push.id == push_id))
    return retry_at is None or retry_at <= clock.now()


def due(statement: Select[Any]) -> Select[Any]:
    """Narrow a statement over pushes to those that may be taken now."""
    return statement.where(or_(Push.retry_at.is_(None), Push.retry_at <= clock.now()))


def settle(push_id: str) -> None:
    """See to the end of a push: it is told, if it was not, and rows that were never sent are given back. Does it once,
    however often it is called, and nothing for a push that goes on.
    """
    with writing() as session:
        push = session.get(Push, push_id, with_for_update=True)
        if push is None or not push.ended:
            return
        close(session, push_id)
        held = push.request.get("quota")
        push.request = {name: value for name, value in push.request.items() if name != "quota"}
        workspace_id, pending = push.workspace_id, _never_sent(session, push)
        inside = push.request.get("records", 0)
    if not held:
        return
    try:
        unused = pending + inside * pending // max(1, held["rows"] - inside)
        quotas.give_back(Reservation(workspace_id, held["rows"], held["second"]), unused)
    except redis.RedisError as error:
        log.warning("the rows of %s were not given back: %s", push_id, error)


def _never_sent(session: Session, push: Push) -> int:
    """Rows that were spent for this push and not sent. Of a retry's rows those that had been sent before were not."""
    if push.kind != "retry":
        return ledger.counts(push)["pending"]
    left = 0
    for place in range(len(push.tables)):
        reached = ledger_rows.spans_of(session, push.id, place)
        left += ledger_rows.size(ledger_rows.without(ledger_rows.pending_of(push, place), reached))
    return left


def close(session: Session, push_id: str) -> None:
    """Tell the end of a push that has one, in the transaction that wrote it: a chunk that nobody can ask about any more
    is in doubt, the log and the audit trail say how it ended. Does it once."""
    push = session.get_one(Push, push_id)
    if push.request.get(SETTLED):
        return
    chunk = (push.intent or {}).get("chunk")
    if chunk:
        ledger_entries.close_unknown(session, push, Chunk(**chunk), IN_DOUBT)
        if ledger_entries.can_settle(push, Chunk(**chunk)):
            push.unsettled = chunk
    push.intent, push.retry_at, push.waiting = None, None, None
    push.request = {**push.request, SETTLED: True}
    counts = ledger.counts(push)
    for outcome in _ENDS:
        metrics.count("push_rows", counts[outcome], outcome=outcome if push.kind != "undo" else f"undo_{outcome}")
    _tell(session, push, counts)
    session.add(_entry(push, counts, _never_sent(session, push) if push.request.get("quota") else 0))


def _tell(session: Session, push: Push, counts: dict[str, int]) -> None:
    """The last line of the log."""
    error = push.error or {"message": "", "details": {}}
    why = f": {error['message']} {error['details'].get('hint', '')}".rstrip(" :")
    words = {"delivered": "deleted"} if push.kind == "undo" else {}
    done = ", ".join(f"{counts[name]:,} {words.get(name, name)}" for name in _ENDS)
    text = ledger_entries.line(f"{push.status}{why} ({done})")
    last = session.scalar(select(func.max(PushLine.number)).where(PushLine.push_id == push.id)) or 0
    session.execute(insert(PushLine).values(push_id=push.id, number=last + 1, at=clock.now(), text=text))


def _entry(push: Push, counts: dict[str, int], given_back: int) -> AuditEntry:
    """How it ended, in the trail. It counts no rows: those of the push's beginning do, less those given back here."""
    details: dict[str, Any] = {
        "kind": push.kind,
        "status": push.status,
        "target": push.target,
        "attempt": push.attempt,
        **{name: counts[name] for name in _ENDS},
        "given_back": given_back,
        "template_id": push.template_id or push.dataset_id,
    }
    return AuditEntry(
        id=ids.new("aud"),
        at=clock.now(),
        workspace_id=push.workspace_id,
        action="push.end",
        object_type="push",
        object_id=push.id,
        project_id=push.project_id,
        user_id=push.created_by,
        key_id=push.key_id,
        details=details,
    )

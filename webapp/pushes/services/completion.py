"""Complete a push after any kind of end: record rows in doubt, refund unsent rows, and write the audit trail."""

from __future__ import annotations

import logging
from typing import Any, Final

import numpy as np
import redis
from sqlalchemy import Select, func, insert, or_, select
from sqlalchemy.orm import Session

from webapp import clock, ids, limits, quotas
from webapp.audit.models import AuditEntry
from webapp.errors import ApiError
from webapp.extensions import db, write_session
from webapp.monitoring import metrics
from webapp.pushes.models import Push, PushLine, PushRow
from webapp.pushes.services import rows
from webapp.pushes.services.ledger import read, write
from webapp.pushes.services.ledger.write import IN_DOUBT_MESSAGE, Chunk
from webapp.quotas import Reservation

log = logging.getLogger(__name__)

END_RECORDED: Final = "settled"  # Set in `Push.request` once the end of a push has been recorded
INVALID_ROWS_REPORT: Final = "verdict"  # In `Push.request`: the outcome of invalid rows at the first attempt
_OUTCOMES: Final = ("delivered", "failed", "unknown", "pending")


def is_due(session: Session, push_id: str) -> bool:
    """Return whether a push may be started now, because it does not wait for its target."""
    retry_at = session.scalar(select(Push.retry_at).where(Push.id == push_id))
    return retry_at is None or retry_at <= clock.now()


def due(statement: Select[Any]) -> Select[Any]:
    """Restrict a statement over pushes to those that may be started now."""
    return statement.where(or_(Push.retry_at.is_(None), Push.retry_at <= clock.now()))


def settle(push_id: str) -> None:
    """Complete a push that has ended: record its end, unless that was done, and refund rows that were never sent. Does
    nothing if the push is running or already complete."""
    with write_session() as session:
        push = session.get(Push, push_id, with_for_update=True)
        if push is None or not push.has_ended:
            return
        record_end(session, push_id)
        quota = push.request.get("quota")
        push.request = {name: value for name, value in push.request.items() if name != "quota"}
        workspace_id, pending = push.workspace_id, _unsent_count(session, push)
        nested_records = push.request.get("records", 0)
    if not quota:
        return
    try:
        unused = pending + nested_records * pending // max(1, quota["rows"] - nested_records)
        quotas.return_rows(Reservation(workspace_id, quota["rows"], quota["second"]), unused)
    except redis.RedisError as error:
        log.warning("the rows of %s were not given back: %s", push_id, error)


def _unsent_count(session: Session, push: Push) -> int:
    """Return the number of rows that were counted towards the quota for this push and not sent. For a retry, this
    excludes rows that had been sent before it."""
    if push.kind != "retry":
        return read.counts(push)["pending"]
    unsent = 0
    for table_index in range(len(push.tables)):
        reached = read.processed_spans(session, push.id, table_index)
        unsent += read.count_in_spans(read.subtract_spans(read.pending_spans(push, table_index), reached))
    return unsent


def record_end(session: Session, push_id: str) -> None:
    """Record the end of a push in the transaction that wrote it: mark a chunk whose outcome can no longer be queried as
    in doubt, and write the log line and the audit entry. Repeated calls have no effect."""
    push = session.get_one(Push, push_id)
    if push.request.get(END_RECORDED):
        return
    chunk = (push.intent or {}).get("chunk")
    if chunk:
        write.write_unknown_outcome(session, push, Chunk(**chunk), IN_DOUBT_MESSAGE)
        if write.can_resolve_later(push, Chunk(**chunk)):
            push.unsettled = chunk
    push.intent, push.retry_at, push.waiting = None, None, None
    push.request = {**push.request, END_RECORDED: True}
    counts = read.counts(push)
    for outcome in _OUTCOMES:
        metrics.count(
            "push_rows", counts[outcome], outcome=outcome if push.kind != "undo" else f"undo_{outcome}"
        )
    error = push.error or {"message": "", "details": {}}
    why = f": {error['message']} {error['details'].get('hint', '')}".rstrip(" :")
    words = {"delivered": "deleted"} if push.kind == "undo" else {}
    done = ", ".join(f"{counts[name]:,} {words.get(name, name)}" for name in _OUTCOMES)
    text = write.single_line(f"{push.status}{why} ({done})")
    last = session.scalar(select(func.max(PushLine.number)).where(PushLine.push_id == push.id)) or 0
    session.execute(insert(PushLine).values(push_id=push.id, number=last + 1, at=clock.now(), text=text))
    # The audit entry for the end counts no rows: the entry for the start does, less those refunded here.
    details: dict[str, Any] = {
        "kind": push.kind,
        "status": push.status,
        "target": push.target,
        "attempt": push.attempt,
        **{name: counts[name] for name in _OUTCOMES},
        "given_back": _unsent_count(session, push) if push.request.get("quota") else 0,
        "template_id": push.template_id or push.dataset_id,
    }
    entry = AuditEntry(
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
    session.add(entry)


# The outcome of rows with injected invalid data: rejected as expected, or accepted.

_REPORT_KEYS: Final = ("bad", "refused", "taken", "unknown", "good_refused")


def has_invalid_rows(push: Push) -> bool:
    """Return whether some of the rows to be sent contain injected invalid data."""
    return push.kind != "undo" and any(table.get("bad") for table in push.tables)


def invalid_rows_report(push: Push) -> dict[str, int]:
    """Return `{bad, refused, taken, unknown, good_refused}` for the processed rows: how many contained injected invalid
    data, how many of these the target rejected, how many it accepted and how many have an unknown outcome; and how many
    valid rows it rejected.

    The result belongs to the first attempt: `store_invalid_rows_report` stores it before rows are sent again or
    deleted.

    Raises the errors of `rows.row_generators`.
    """
    if (verdict := push.request.get(INVALID_ROWS_REPORT)) is not None:
        return dict(verdict)
    if not has_invalid_rows(push):
        return dict.fromkeys(_REPORT_KEYS, 0) | {"good_refused": push.failed if push.kind != "undo" else 0}
    makers = rows.row_generators(push)
    found = np.zeros(len(_REPORT_KEYS), np.int64)
    for table_index, table in enumerate(push.tables):
        names = {each["field"] for each in table["columns"] if each.get("field")}
        maker = makers[table.get("recipe", 0)]
        for first in range(1, table["count"] + 1, limits.ANSWER_BLOCK_ROWS):
            last = min(first + limits.ANSWER_BLOCK_ROWS - 1, table["count"])
            numbers = read.processed_row_numbers(db.session(), push, table_index, first, last)
            if not numbers.size:
                continue
            invalid = maker.invalid_rows((numbers - 1 + table["offset"]).astype(np.uint64), names)
            rejected, unknown = (
                np.isin(numbers, _rows_in_state(push.id, table_index, state, first, last))
                for state in ("failed", "unknown")
            )
            masks = (
                invalid,
                invalid & rejected,
                invalid & ~rejected & ~unknown,
                invalid & unknown,
                ~invalid & rejected,
            )
            found += [int(mask.sum()) for mask in masks]
    return dict(zip(_REPORT_KEYS, found.tolist(), strict=True))


def store_invalid_rows_report(push: Push) -> None:
    """Store the result of the first attempt in a push that has ended and is about to be repaired, so that retries do
    not change it. Nothing is stored if its pinned versions no longer exist."""
    if push.kind != "push" or INVALID_ROWS_REPORT in push.request:
        return
    try:
        push.request = {**push.request, INVALID_ROWS_REPORT: invalid_rows_report(push)}
    except ApiError:
        log.warning("the result of the invalid rows of %s can no longer be calculated", push.id)


def _rows_in_state(push_id: str, table: int, state: str, first: int, last: int) -> list[int]:
    found = select(PushRow.row).where(
        PushRow.push_id == push_id,
        PushRow.table == table,
        PushRow.state == state,
        PushRow.row >= first,
        PushRow.row <= last,
    )
    return list(db.session.scalars(found))

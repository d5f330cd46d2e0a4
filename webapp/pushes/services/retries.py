"""Rows of a push once more: a retry of those that did not arrive or were never sent, and an undo of those that did.

Both are pushes of their own with the same rows under the same numbers; the ledger of the first push tells which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from sqlalchemy import and_, exists, func, or_, select, update
from sqlalchemy.orm import aliased

from webapp.accounts.actors import Actor
from webapp.audit.services import audit_log
from webapp.connections.models import Connection
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db, may_write, only_reads, redis_client
from webapp.generation.services.row_makers import Maker
from webapp.operations import jobs_queue
from webapp.operations.models import END_STATES
from webapp.pushes.models import Push, PushRange, PushRow
from webapp.pushes.schemas import RetryInput, UndoInput
from webapp.pushes.services import planning, pushes, request_faults, targets
from webapp.pushes.services import rows as pushes_rows
from webapp.pushes.services.ledger import read
from webapp.pushes.services.mapping import Asked
from webapp.pushes.services.planning import Wanted
from webapp.usage.services import quotas

_OURS: Final = ("push", "retry")


def retry(actor: Actor, push_id: str, ask: RetryInput) -> Push:
    """Rows of a push that has ended, sent once more; commits, and rings for a worker. A mapping, formulas and
    overrides repair them. Failed and unknown rows were spent when they were first asked for; pending ones were given
    back when the push ended, and are spent now.

    Errors: not_found, forbidden, validation_error (nothing to send again, faults of the repair, `confirm`), conflict
    (it has not ended, or is being undone), read_only_connection, row_limit_exceeded, quota_exceeded.
    """
    tables = _tables(actor, push_id, ask)
    push = pushes.get(actor, push_id, "push")
    home = _home(push)
    undone = select(Push.id).where(Push.of_id == home.id, Push.kind == "undo", Push.status.not_in(END_STATES))
    if db.session.scalar(undone.limit(1)) is not None:
        raise ApiError("conflict", "This push is being undone right now.", {"id": home.id})
    wanted = _wanted(push, home, ask)
    marked = db.session.scalar(select(func.count()).select_from(PushRow).where(wanted)) or 0
    pending = _pending(push, home, ask) if "pending" in ask.states else [[] for _ in tables]
    spent = [read.size(spans) for spans in pending]
    if not marked + sum(spent):
        raise _nothing(push, home, ask)
    again = _made(actor, home, "retry", marked + sum(spent))
    again.tables = [{**one, "pending": spans} for one, spans in zip(tables, pending, strict=True)]
    again.request = {"ask": _asked_again(home, ask), "records": 0}
    inside = home.request.get("records", 0) * sum(spent) // max(1, home.total)
    rows = sum(spent) + inside
    reservation = quotas.reserve_rows(actor, rows, largest=max(spent)) if any(spent) else None
    try:
        if reservation is not None:
            held = {"rows": reservation.rows, "second": reservation.second}
            again.request = {**again.request, "records": inside, "quota": held}
        db.session.add(again)
        db.session.flush()
        db.session.execute(
            update(PushRow).where(wanted).values(retried_by=again.id),
            execution_options={"synchronize_session": False},
        )
        return _rung(actor, again, "push.retry", home, rows=sum(spent), states=ask.states)
    except BaseException:
        db.session.rollback()
        if reservation is not None:
            quotas.give_back(reservation, reservation.rows)
        raise


def _asked_again(home: Push, ask: RetryInput) -> dict[str, Any]:
    """The request of a retry: the first push's, apart from what is done once."""
    kept = home.request["ask"]
    return {
        **kept,
        "overrides": {**(kept.get("overrides") or {}), **ask.overrides},
        "on_error": ask.on_error,
        "canary": None,
        "before_sql": [],
        "after_sql": [],
        "again": ask.model_dump(mode="json", exclude_defaults=True, exclude={"confirm"}),
    }


def _nothing(push: Push, home: Push, ask: RetryInput) -> ApiError:
    text = f"No row of this push is {' or '.join(ask.states)}, or they are being sent again already."
    if ask.rows is not None:
        text = f"None of these rows is {' or '.join(ask.states)}, or they are being sent again already."
    path = "states" if ask.rows is None else "rows"
    hint = f"GET /pushes/{push.id}/rows?state={ask.states[0]} lists them."
    if "pending" in ask.states:
        hint = f"GET /pushes/{push.id} has the counts."
    else:
        left = sum(map(read.size, _pending(push, home, ask)))
        if left:
            hint = f'{left:,} rows were never sent: ask with states ["pending"] to go on with them.'
    return validation_error([Fault(path, "nothing_to_send", text, hint)])


def _tables(actor: Actor, push_id: str, ask: RetryInput) -> list[dict[str, Any]]:
    """What is written, repaired where that was asked for. The target may be asked, so nothing is locked yet."""
    db.session.remove()
    only_reads()
    try:
        push = pushes.get(actor, push_id, "push")
        connection = _connection(actor, push, ask.confirm)
        if push.kind not in _OURS:
            raise validation_error([Fault("", "not_for_this_type", "An undo cannot be sent again.")])
        home = read.first_of(db.session(), push)
        tables = _repaired(actor, home, connection, ask)
        _check_requests(home, connection, tables, ask)
        return tables
    finally:
        db.session.remove()
        may_write()


def undo(actor: Actor, push: Push, ask: UndoInput) -> Push:
    """Delete the rows that a push, which has ended, brought to its target: by their keys, children first; commits, and
    rings for a worker. Errors: validation_error (no keys, nothing delivered), conflict (it has not ended, or is being
    undone), read_only_connection."""
    _connection(actor, push, ask.confirm)
    if push.kind not in _OURS:
        raise validation_error(
            [Fault("", "not_for_this_type", "An undo cannot be undone; push the rows again.")]
        )
    home = _home(push)
    keyless = [one["name"] for one in home.tables if not one["key_columns"]]
    if keyless:
        text = f"Rows of {', '.join(keyless)} cannot be found again: no key of them was sent."
        raise validation_error([Fault("", "missing_keys", text)])
    changed = [one["name"] for one in home.tables if one["mode"] != "insert"]
    if changed:
        text = f"What {', '.join(changed)} held before was not kept: only inserted rows can be deleted again."
        raise validation_error([Fault("mode", "not_allowed", text)])
    going = select(Push.id).where(Push.of_id == home.id, Push.status.not_in(END_STATES))
    if db.session.scalar(going.limit(1)) is not None:
        raise ApiError("conflict", "This push is being sent again or undone right now.", {"id": home.id})
    total = home.delivered
    if not total:
        raise validation_error([Fault("", "nothing_to_send", "No row of this push is at the target.")])
    again = _made(actor, home, "undo", total)
    again.tables, again.request = home.tables, {"ask": {"overrides": home.request["ask"].get("overrides")}}
    db.session.add(again)
    db.session.flush()
    return _rung(actor, again, "push.undo", home)


def _connection(actor: Actor, push: Push, confirm: str | None) -> Connection:
    if not push.ended:
        raise ApiError("conflict", "This push has not ended.", {"status": push.status})
    if push.connection_id is None:
        raise validation_error([Fault("connection_id", "missing", "The connection of this push is gone.")])
    connection = targets.named(actor, push.connection_id)
    targets.usable(connection)
    targets.confirmed(connection, confirm)
    return connection


def _home(push: Push) -> Push:
    """The push whose rows these are, locked: of two who ask at once one comes after the other."""
    home = read.first_of(db.session(), push)
    db.session.refresh(home, with_for_update=True)
    return home


def _wanted(push: Push, home: Push, ask: RetryInput) -> Any:
    """Which rows of the first push's ledger. Error: validation_error."""
    other = aliased(Push)
    in_hand = exists().where(other.id == PushRow.retried_by, other.status.not_in(END_STATES))
    states: Any = PushRow.state.in_([one for one in ask.states if one != "pending"])
    parts = [PushRow.push_id == home.id, ~in_hand]
    if push.id != home.id:
        parts.append(PushRow.retried_by == push.id)
        if "pending" in ask.states:  # what this retry had not come to has the state that it had before
            states = or_(states, and_(PushRow.state.in_(("failed", "unknown")), _beyond(push)))
    if (
        "pending" in ask.states
    ):  # what an ended push left in doubt is settled before the rows that were never sent
        for one in read.unsettled(db.session(), push) + ([push] if push.unsettled else []):
            chunk = one.unsettled or {}
            in_doubt = (
                PushRow.table == chunk["table"],
                PushRow.row >= chunk["first"],
                PushRow.row <= chunk["last"],
            )
            states = or_(states, and_(PushRow.state == "unknown", *in_doubt))
    parts.append(states)
    place = _narrowed(home, ask)
    if place is not None:
        parts.append(PushRow.table == place)
    if ask.rows is not None:
        parts.append(PushRow.row.in_(ask.rows))
    return and_(*parts)


def _beyond(retry: Push) -> Any:
    """Rows above those that a retry came to."""
    reached = exists().where(
        PushRange.push_id == retry.id, PushRange.table == PushRow.table, PushRange.last >= PushRow.row
    )
    return ~reached


def _pending(push: Push, home: Push, ask: RetryInput) -> list[list[read.Span]]:
    """Rows of each table that were never sent, and that no other retry has in hand. Error: validation_error."""
    session, only = db.session(), _narrowed(home, ask)
    going = [one for one in read.retries(session, home) if not one.ended]
    found = []
    for place, table in enumerate(home.tables):
        mine = [(1, int(table["count"]))] if push.id == home.id else read.pending_of(push, place)
        held = read.spans_of(session, home.id, place)
        for other in going:
            held += read.pending_of(other, place)
        left = read.without(mine, held)
        if only is not None and place != only:
            left = []
        elif ask.rows is not None:
            named = read.spans(np.unique(np.array(ask.rows, np.int64)))
            left = read.without(named, read.without(named, left))
        found.append(left)
    return found


def _narrowed(home: Push, ask: RetryInput) -> int | None:
    """The only table whose rows are wanted; None: those of all. Error: validation_error."""
    place = _place(home, ask.table)
    if ask.rows is not None and place is None:
        if len(home.tables) > 1:
            raise validation_error([Fault("table", "missing", "Of which table the rows are is needed.")])
        place = 0
    return place


def _repaired(actor: Actor, home: Push, connection: Connection, ask: RetryInput) -> list[dict[str, Any]]:
    """The push's tables, with another mapping where one is given. Error: validation_error."""
    if not (ask.mapping or ask.computed or ask.overrides):
        return list(home.tables)
    place = _place(home, ask.table)
    if place is None:
        if len(home.tables) > 1:
            raise validation_error([Fault("table", "missing", "Which table is repaired is needed.")])
        place = 0
    if ask.overrides and (home.dataset_id is not None or home.template_id is None):
        text = "Values can be fixed in rows of a template; these are of a dataset, or came with the request."
        raise validation_error([Fault("overrides", "not_allowed", text, "Write a formula in computed.")])
    before = home.tables[place]
    asked = {
        **home.request["ask"],
        "overrides": {**(home.request["ask"].get("overrides") or {}), **ask.overrides},
    }
    makers = pushes_rows.makers_of(home.pins, asked, [one.get("given") for one in home.tables])
    maker = makers[before.get("recipe", 0)]
    catalogue = targets.catalogue_of(actor, targets.again(connection, home))
    entity = catalogue.entity(before["target"])
    if entity is None:
        raise validation_error([catalogue.unknown("", before["target"])])
    # Keys of inserted rows may be made by the target, and are then no columns to be filled.
    keys = [] if before["mode"] == "insert" else before["key_columns"]
    wanted = Wanted(
        before["name"],
        before["target"],
        maker,
        before["count"],
        Asked(_mapping(before, ask, maker), _formulas(before, ask), before["mode"], keys),
        entity,
        before["offset"],
    )
    planned = planning.table(wanted, targets.capabilities(connection), home.id, place)
    # Keys that the target made stand in no field.
    made = {"missing_column"} if before["capture"] or before["from_parent"] else set()
    faults = [one for one in planned.faults if one.code not in made]
    if faults:
        raise validation_error(faults)
    told = [one for one in before["columns"] if "object_id" in one]
    columns = [*told, *(one for one in planned.spec["columns"] if "object_id" not in one)]
    return [{**one, "columns": columns} if at == place else one for at, one in enumerate(home.tables)]


def _check_requests(
    home: Push, connection: Connection, tables: list[dict[str, Any]], ask: RetryInput
) -> None:
    """Error: validation_error with every fault of the requests that the repaired rows would be sent with."""
    if not targets.capabilities(connection).by_row:
        return
    destination = targets.again(connection, home)
    makers = pushes_rows.makers_of(
        home.pins, _asked_again(home, ask), [one.get("given") for one in home.tables]
    )
    with targets.channel_of(destination) as channel:
        made = [pushes_rows.TableRows(at, one, makers[one.get("recipe", 0)]) for at, one in enumerate(tables)]
        faults = [fault for rows in made for fault in request_faults.of_table(channel, rows)]
    if faults:
        raise validation_error(faults)


def _place(home: Push, name: str | None) -> int | None:
    """The place of a table by its name. Error: validation_error."""
    names = [one["name"] for one in home.tables]
    if name is None:
        return None
    if name not in names:
        text = f'This push has no table "{name}".'
        hint = did_you_mean(name, names) or f"It has {', '.join(names)}."
        raise validation_error([Fault("table", "unknown_table", text, hint)])
    return names.index(name)


def _mapping(before: Mapping[str, Any], ask: RetryInput, maker: Maker) -> dict[str, str | None]:
    """As it was sent, apart from what is said anew: a column that another field takes leaves its field, and what was
    left out stays out."""
    taken = {*ask.mapping.values(), *ask.computed}
    kept: dict[str, str | None] = {name: None for name, one in maker.fields.items() if not one.hidden}
    for one in before["columns"]:
        if "field" in one and one["column"] not in taken:
            kept[one["field"]] = one["column"]
    return {**kept, **ask.mapping}


def _formulas(before: Mapping[str, Any], ask: RetryInput) -> dict[str, str]:
    taken = set(ask.mapping.values())
    kept = {one["column"]: one["formula"] for one in before["columns"] if "formula" in one}
    return {**{name: text for name, text in kept.items() if name not in taken}, **ask.computed}


def _made(actor: Actor, home: Push, kind: str, total: int) -> Push:
    return Push(
        kind=kind,
        of_id=home.id,
        connection_id=home.connection_id,
        endpoint_id=home.endpoint_id,
        template_id=home.template_id,
        template_version=home.template_version,
        dataset_id=home.dataset_id,
        dataset_version=home.dataset_version,
        target=home.target,
        total=total,
        pins=home.pins,
        created_by=actor.user_id,
        key_id=actor.key_id,
        workspace_id=home.workspace_id,
        project_id=home.project_id,
        team_id=home.team_id,
    )


def _rung(actor: Actor, made: Push, action: str, home: Push, *, rows: int = 0, **told: Any) -> Push:
    template_id = home.template_id or home.dataset_id
    told = {"of": home.id, "count": made.total, "target": made.target, "template_id": template_id, **told}
    audit_log.record(actor, action, made, join=True, rows=rows, **told)
    jobs_queue.after_commit(db.session, redis_client(), pushes.KIND, made.id)
    db.session.commit()
    return made

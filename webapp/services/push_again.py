"""Rows of a push once more: a retry of those that did not arrive, and an undo of those that did.

Both are pushes of their own with the same rows under the same numbers; the ledger of the first push tells which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import and_, exists, func, select, update
from sqlalchemy.orm import aliased

from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db, may_write, only_reads, redis_client
from webapp.models import END_STATES, Connection, Push, PushRow
from webapp.services import (
    audit,
    enqueue,
    ledger_rows,
    push_plan,
    push_rows,
    push_targets,
    pushes,
)
from webapp.services.actors import Actor
from webapp.services.mapping import Asked
from webapp.services.push_plan import Wanted
from webapp.services.push_requests import RetryInput, UndoInput
from webapp.services.push_targets import Catalogue
from webapp.services.row_makers import Maker

_OURS: Final = ("push", "retry")


def retry(actor: Actor, push_id: str, ask: RetryInput) -> Push:
    """Rows of a push that has ended, sent once more; commits, and rings for a worker. They were spent when they were
    first asked for. A mapping, formulas and overrides repair them.

    Errors: not_found, forbidden, validation_error (nothing to send again, faults of the repair, `confirm`), conflict
    (it has not ended), read_only_connection.
    """
    tables = _tables(actor, push_id, ask)
    push = pushes.get(actor, push_id, "push", lock=True)
    home = _home(push)
    wanted = _wanted(push, home, ask)
    total = db.session.scalar(select(func.count()).select_from(PushRow).where(wanted)) or 0
    if not total:
        text = f"No row of this push is {' or '.join(ask.states)}, or they are being sent again already."
        if ask.rows is not None:
            text = f"None of these rows is {' or '.join(ask.states)}, or they are being sent again already."
        path = "states" if ask.rows is None else "rows"
        hint = f"GET /pushes/{push.id}/rows?state={ask.states[0]} lists them."
        raise validation_error([Fault(path, "nothing_to_send", text, hint)])
    kept = dict(home.request["ask"])
    told = ask.model_dump(mode="json", exclude_defaults=True, exclude={"confirm"})
    again = _made(actor, home, "retry", total)
    again.tables = tables
    again.request = {
        "ask": {
            **kept,
            "overrides": {**(kept.get("overrides") or {}), **ask.overrides},
            "on_error": ask.on_error,
            "canary": None,
            "before_sql": [],
            "after_sql": [],
            "retry": told,
        }
    }
    db.session.add(again)
    db.session.flush()
    db.session.execute(
        update(PushRow).where(wanted).values(retried_by=again.id),
        execution_options={"synchronize_session": False},
    )
    return _rung(actor, again, "push.retry", home, states=ask.states)


def _tables(actor: Actor, push_id: str, ask: RetryInput) -> list[dict[str, Any]]:
    """What is written, repaired where that was asked for. The target may be asked, so nothing is locked yet."""
    db.session.remove()
    only_reads()
    try:
        push = pushes.get(actor, push_id, "push")
        connection = _connection(actor, push, ask.confirm)
        if push.kind not in _OURS:
            raise validation_error([Fault("", "not_for_this_type", "An undo cannot be sent again.")])
        return _repaired(actor, ledger_rows.first_of(db.session(), push), connection, ask)
    finally:
        db.session.remove()
        may_write()


def undo(actor: Actor, push: Push, ask: UndoInput) -> Push:
    """Delete the rows that a locked push, which has ended, brought to its target: by their keys, children first;
    commits, and rings for a worker. Errors: validation_error (no keys, nothing delivered), conflict (it has not
    ended, or is being undone), read_only_connection."""
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
    total = _there(home)
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
    connection = push_targets.named(actor, push.connection_id)
    push_targets.usable(connection)
    push_targets.confirmed(connection, confirm)
    return connection


def _home(push: Push) -> Push:
    """The push whose rows these are, locked: of two who ask at once one comes after the other."""
    home = ledger_rows.first_of(db.session(), push)
    db.session.refresh(home, with_for_update=True)
    return home


def _wanted(push: Push, home: Push, ask: RetryInput) -> Any:
    """Which rows of the first push's ledger. Error: validation_error."""
    other = aliased(Push)
    in_hand = exists().where(other.id == PushRow.retried_by, other.status.not_in(END_STATES))
    parts = [PushRow.push_id == home.id, PushRow.state.in_(ask.states), ~in_hand]
    if push.id != home.id:
        parts.append(PushRow.retried_by == push.id)
    place = _place(home, ask.table)
    if ask.rows is not None and place is None:
        if len(home.tables) > 1:
            raise validation_error([Fault("table", "missing", "Of which table the rows are is needed.")])
        place = 0
    if place is not None:
        parts.append(PushRow.table == place)
    if ask.rows is not None:
        parts.append(PushRow.row.in_(ask.rows))
    return and_(*parts)


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
    makers = push_rows.makers_of(home.pins, asked, [one.get("given") for one in home.tables])
    maker = makers[before.get("recipe", 0)]
    catalogue = Catalogue(actor, connection)
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
    planned = push_plan.table(wanted, push_targets.capabilities(connection), home.id, place)
    # Keys that the target made stand in no field.
    made = {"missing_column"} if before["capture"] or before["from_parent"] else set()
    faults = [one for one in planned.faults if one.code not in made]
    if faults:
        raise validation_error(faults)
    told = [one for one in before["columns"] if "object_id" in one]
    columns = [*told, *(one for one in planned.spec["columns"] if "object_id" not in one)]
    return [{**one, "columns": columns} if at == place else one for at, one in enumerate(home.tables)]


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


def _there(home: Push) -> int:
    """Rows of a push that are at its target: delivered by it or by a retry, and not undone since."""
    undone = select(func.coalesce(func.sum(Push.delivered), 0)).where(
        Push.of_id == home.id, Push.kind == "undo"
    )
    return home.delivered - int(db.session.scalar(undone) or 0)


def _made(actor: Actor, home: Push, kind: str, total: int) -> Push:
    return Push(
        kind=kind,
        of_id=home.id,
        connection_id=home.connection_id,
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


def _rung(actor: Actor, made: Push, action: str, home: Push, **told: Any) -> Push:
    told = {"of": home.id, "count": made.total, "target": made.target, **told}
    audit.record(actor, action, made, join=True, **told)
    enqueue.after_commit(db.session, redis_client(), pushes.KIND, made.id)
    db.session.commit()
    return made

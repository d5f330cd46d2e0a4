"""Templates from the tables of a connection: one for each, linked as the tables' foreign keys link them.

A foreign key becomes references to the template of the other table, where that is made in the same call or was made
before from the same connection; else fields of type foreign_key, which draw from the rows that exist. Keys of several
columns become one group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from webapp import limits
from webapp.connectors.openapi import request_of
from webapp.connectors.shape import Entity
from webapp.errors import Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.models import Connection, Template
from webapp.services import connection_looks, endpoints, plans, templates, tenancy
from webapp.services.actors import Actor
from webapp.services.table_drafts import HERE, Draft, Field, drafted, report


@dataclass(frozen=True, slots=True)
class Made:
    """The templates as the API shows them, and what each column came to."""

    templates: list[dict[str, Any]]
    report: list[dict[str, Any]]
    endpoints: list[dict[str, Any]]
    """Of operations: one each, by which their rows are sent."""


def create(actor: Actor, connection_id: str, wanted: Sequence[str], quantity: int) -> Made:
    """One template for each table named in `wanted`, saved; commits.

    Errors: not_found, forbidden; validation_error for tables that are not there (`entities[1]`); those of
    connections.
    """
    connection = tenancy.get(actor, Connection, connection_id, "write")
    metadata = connection_looks.metadata(actor, connection)
    entities = chosen(metadata.entities, wanted)
    known = made_before(actor, connection)
    name = connection.name
    names = [one.name for one in entities]
    samples = connection_looks.samples(connection, names, limits.INFER_SAMPLE_ROWS, limits.FETCH_SECONDS)
    words = plans.vocabulary()
    drafts = [
        drafted(one, samples.get(one.name), entities, known, connection_id, words, quantity) for one in entities
    ]
    _check_has_fields(drafts)
    save(actor, drafts, lambda one: f'Rows for the table "{one.name}" of {name}', quantity, connection_id)
    ends = endpoints.of_operations(
        actor,
        connection,
        {
            one.name: (one.comment, request_of(one).model_dump(mode="json"))
            for one in entities
            if one.kind == "operation"
        },
    )
    db.session.commit()
    return Made(
        [one.made for one in drafts if one.made is not None],
        [row for one in drafts for row in report(one)],
        [endpoints.as_json(one) for one in ends],
    )


def chosen(entities: Iterable[Entity], wanted: Sequence[str]) -> list[Entity]:
    """The tables of these names, each once. Error: validation_error, naming every one that is not there."""
    known = {one.name: one for one in entities}
    folded = {name.casefold(): one for name, one in known.items()}
    found, faults = {}, []
    for place, name in enumerate(wanted):
        entity = known.get(name) or folded.get(name.casefold())
        if entity is None:
            text = f'There is no table "{name}" in this connection.'
            hint = did_you_mean(name, known) or "GET the connection's metadata with refresh=true for what is new."
            faults.append(Fault(f"entities[{place}]", "unknown_entity", text, hint))
        else:
            found[entity.name] = entity
    if faults:
        raise validation_error(faults)
    return list(found.values())


def made_before(actor: Actor, connection: Connection) -> dict[str, str]:
    """The templates of the project that were made from tables of this connection: ids by table, the newest win."""
    statement = (
        select(Template.id, Template.made_from_entity)
        .where(
            Template.workspace_id == actor.workspace_id,
            Template.project_id == actor.project_id,
            Template.deleted_at.is_(None),
            Template.made_from_id == connection.id,
        )
        .order_by(Template.created_at, Template.id)
    )
    return {table: template_id for template_id, table in db.session.execute(statement) if table is not None}


# --- Saving -------------------------------------------------------------------------------------------------


def save(
    actor: Actor,
    drafts: Sequence[Draft],
    describe: Callable[[Entity], str],
    quantity: int,
    connection_id: str | None = None,
) -> None:
    """Saves the templates, those first that others refer to. Where tables refer to each other in a ring, one is made
    without its reference at first and completed at the end. Nothing stays where one cannot be made."""
    ready: dict[str, str] = {}
    unfinished: list[Draft] = []
    waiting = list(drafts)
    try:
        while waiting:
            free = next((one for one in waiting if set(one.waits) <= set(ready)), None)
            one = free or min(waiting, key=lambda draft: (not _loose(draft, ready), len(set(draft.waits) - set(ready))))
            waiting.remove(one)
            if free is None:
                unfinished.append(one)
            one.made = templates.create(
                actor,
                name=one.entity.name[: limits.MAX_NAME_CHARS],
                fields=linked(one, ready),
                description=describe(one.entity),
                quantity=quantity,
                made_from=(connection_id, one.entity.name if connection_id else None),
            )
            ready[one.entity.name] = one.made["id"]
        for one in unfinished:
            assert one.made is not None
            template = templates.get(actor, one.made["id"], "write", lock=True)
            one.made = templates.change(actor, template, {"fields": linked(one, ready)})
    except BaseException:
        db.session.rollback()
        for template_id in ready.values():
            templates.delete(actor, templates.get(actor, template_id, "write", lock=True))
        raise


def _loose(draft: Draft, ready: Mapping[str, str]) -> bool:
    return all(loose for name, loose in draft.waits.items() if name not in ready)


def linked(draft: Draft, ready: Mapping[str, str]) -> list[Field]:
    """The fields, with the ids of templates where tables are named; references to tables that have no template yet are
    left out."""
    found = []
    for one in draft.fields:
        asked = one["options"].get("template_id", "")
        if not asked.startswith(HERE):
            found.append(one)
        elif (name := asked.removeprefix(HERE)) in ready:
            found.append({**one, "options": {**one["options"], "template_id": ready[name]}})
    return found or [{"name": "id", "type": "row_number", "options": {}}]


def _check_has_fields(drafts: Sequence[Draft]) -> None:
    """`validation_error` for tables of which nothing can be made."""
    faults = [
        Fault(f"entities[{place}]", "nothing_to_make", f'No column of "{one.entity.name}" can be made.', "")
        for place, one in enumerate(drafts)
        if not one.fields
    ]
    if faults:
        raise validation_error(faults)

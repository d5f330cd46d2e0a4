"""Templates from the tables of a connection: one for each, linked as the tables' foreign keys link them.

A foreign key becomes references to the template of the other table, where that is made in the same call or was made
before from the same connection; else fields of type foreign_key, which draw from the rows that exist. Keys of several
columns become one group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from sqlalchemy import select

from webapp import limits
from webapp.accounts.actors import Actor
from webapp.accounts.services import tenancy
from webapp.connections.models import Connection
from webapp.connections.services import inspection
from webapp.connectors.openapi import request_of
from webapp.connectors.shape import Entity, Relation
from webapp.endpoints.services import endpoints as endpoints_endpoints
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.fields.base import EXISTING, RELATION
from webapp.errors import Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.imports.inference import columns as imports_columns
from webapp.imports.inference import json_schema
from webapp.imports.inference.columns import Found
from webapp.row_templates.models import Template
from webapp.row_templates.services import compilation
from webapp.row_templates.services import templates as row_templates_templates

Field = dict[str, Any]
HERE: Final = "entity:"
"""What stands before a table's name where the id of its template will stand."""


@dataclass(slots=True)
class Draft:
    """The template of one table on its way. `waits` are tables of the same call that it refers to."""

    entity: Entity
    found: list[Found]
    waits: dict[str, bool] = field(default_factory=dict)
    """By table: whether the reference may be left out at first."""
    made: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """What saving needs, for another process; `from_json` takes it back."""
        found = [[one.column, one.field, one.state, one.reason] for one in self.found]
        return {"name": self.entity.name, "comment": self.entity.comment, "found": found, "waits": self.waits}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Draft:
        """A draft from `to_json`. Its entity has no columns."""
        entity = Entity(stored["name"], (stored["name"],), (), comment=stored["comment"])
        return cls(entity, [Found(*one) for one in stored["found"]], dict(stored["waits"]))

    @property
    def fields(self) -> list[Field]:
        """The field definitions, in the order of the columns."""
        return [one.field for one in self.found if one.field is not None]


def drafted(
    entity: Entity,
    sample: pa.RecordBatch | None,
    together: Sequence[Entity],
    known: Mapping[str, str],
    connection_id: str | None,
    words: Vocabulary,
    rows: int = limits.DEFAULT_QUANTITY,
    ready: Mapping[str, Found] | None = None,
) -> Draft:
    """The fields for one table. `together` are the tables of the same call, `known` the templates made before, `rows`
    how many the template makes when none are asked for; `ready` are columns that are settled already, foreign keys
    apart."""
    if entity.kind == "operation":
        return Draft(entity, json_schema.columns(entity, words, rows))
    draft = Draft(entity, imports_columns.columns(entity, sample, words, rows))
    if ready:
        draft.found = [ready.get(one.column, one) for one in draft.found]
    links = _Links(draft, {one.name: one for one in together}, known, connection_id)
    for relation in _by_weight(entity.relations):
        links.take(relation)
    _composite_keys(draft, words)
    return draft


def _by_weight(relations: Sequence[Relation]) -> list[Relation]:
    """Keys of several columns first: a column that is part of two keys belongs to the longer one."""
    return sorted(relations, key=lambda one: -len(one.columns))


class _Links:
    """The foreign keys of one table."""

    def __init__(
        self,
        draft: Draft,
        together: Mapping[str, Entity],
        known: Mapping[str, str],
        connection_id: str | None,
    ) -> None:
        self._draft, self._together, self._known, self._connection = draft, together, known, connection_id
        self._places = {one.column: place for place, one in enumerate(draft.found)}
        self._taken: set[str] = set()
        self._groups: Counter[str] = Counter()

    def take(self, relation: Relation) -> None:
        """Makes the columns of one foreign key fields that take the same row."""
        entity, columns = self._draft.entity, relation.columns
        twice = [one for one in columns if one in self._taken]
        if twice:
            for name in columns:
                text = f"It is part of two foreign keys; the one to {relation.entity} is not kept."
                self._note(name, "yellow", text)
            return
        self._taken.update(columns)
        loose = all(one is not None and one.nullable for one in map(entity.column, columns))
        itself = relation.entity == entity.name
        # The first row has nobody above it: a column that may not be blank takes a row that is there already.
        if itself and loose:
            self._refer(relation, "self", "An earlier row of the table; the first has none.")
        elif relation.entity in self._together and not itself:
            self._draft.waits[relation.entity] = loose and self._draft.waits.get(relation.entity, True)
            self._refer(relation, HERE + relation.entity, f"A row of {relation.entity}.")
        elif relation.entity in self._known and not itself:
            template = self._known[relation.entity]
            self._refer(relation, template, f"A row of the template made from {relation.entity} before.")
        else:
            self._existing(relation)

    def _group(self, kind: str) -> str:
        """A group of its own for each key."""
        self._groups[kind] += 1
        return kind if self._groups[kind] == 1 else f"{kind}_{self._groups[kind]}"

    def _refer(self, relation: Relation, template: str, reason: str) -> None:
        group = self._group(RELATION)
        for name, shown in zip(relation.columns, relation.entity_columns, strict=True):
            options = {"template_id": template, "field": shown}
            self._put(name, {"type": "reference", "options": options, "group": group}, "green", reason)

    def _existing(self, relation: Relation) -> None:
        if self._connection is None:
            itself = relation.entity == self._draft.entity.name
            why = "whose first row has nobody above it" if itself else "which is not here"
            text = f"It refers to {relation.entity}, {why}: made as what it is by itself."
            for name in relation.columns:
                self._note(name, "yellow", text)
            return
        group = self._group(EXISTING)
        for name, shown in zip(relation.columns, relation.entity_columns, strict=True):
            options = {"connection_id": self._connection, "table": relation.entity, "column": shown}
            reason = f"A key that {relation.entity} has already: the table must hold rows."
            self._put(name, {"type": "foreign_key", "options": options, "group": group}, "yellow", reason)

    def _put(self, name: str, made: Field, state: imports_columns.State, reason: str) -> None:
        before = self._draft.found[self._places[name]]
        kept = before.field or {}
        common = {key: kept[key] for key in ("percent_blank",) if key in kept}
        column = self._draft.entity.column(name)
        if column is not None and column.unique and made["options"].get("template_id") != "self":
            common["unique"] = True
        before.field, before.state, before.reason = {"name": name, **made, **common}, state, reason

    def _note(self, name: str, state: imports_columns.State, reason: str) -> None:
        found = self._draft.found[self._places[name]]
        found.state, found.reason = state, reason


def _composite_keys(draft: Draft, words: Vocabulary) -> None:
    """Fields that are unique together, where the table has such keys and the fields can be."""
    by_name = {one.column: one for one in draft.found}
    taken: set[str] = set()
    number = 0
    for names in (draft.entity.keys, *draft.entity.uniques):
        members = [by_name[name] for name in names if name in by_name]
        if len(names) < 2 or any(one.field is None or one.field.get("unique") is True for one in members):
            continue
        fit = all(one.field is not None and imports_columns.countable(one.field, words) for one in members)
        if taken & set(names) or not fit:
            told = f"The key ({', '.join(names)}) is not kept: combinations may repeat, and such rows are refused."
            members[0].state, members[0].reason = "yellow", told
            continue
        number += 1
        taken.update(names)
        for one in members:
            assert one.field is not None
            one.field.pop("percent_blank", None)
            one.field["unique"] = "key" if number == 1 else f"key_{number}"


def report(draft: Draft) -> list[dict[str, Any]]:
    """What each column came to, as the API shows it."""
    return [
        {
            "table": draft.entity.name,
            "column": one.column,
            "type": None if one.field is None else one.field["type"],
            "state": one.state,
            "reason": one.reason,
        }
        for one in draft.found
    ]


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
    metadata = inspection.metadata(actor, connection)
    entities = chosen(metadata.entities, wanted)
    known = made_before(actor, connection)
    name = connection.name
    names = [one.name for one in entities]
    samples = inspection.samples(connection, names, limits.INFER_SAMPLE_ROWS, limits.FETCH_SECONDS)
    words = compilation.vocabulary()
    drafts = [
        drafted(one, samples.get(one.name), entities, known, connection_id, words, quantity)
        for one in entities
    ]
    _check_has_fields(drafts)
    save(actor, drafts, lambda one: f'Rows for the table "{one.name}" of {name}', quantity, connection_id)
    ends = endpoints_endpoints.of_operations(
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
        [endpoints_endpoints.as_json(one) for one in ends],
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
            hint = (
                did_you_mean(name, known)
                or "GET the connection's metadata with refresh=true for what is new."
            )
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
            one = free or min(
                waiting, key=lambda draft: (not _loose(draft, ready), len(set(draft.waits) - set(ready)))
            )
            waiting.remove(one)
            if free is None:
                unfinished.append(one)
            one.made = row_templates_templates.create(
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
            template = row_templates_templates.get(actor, one.made["id"], "write", lock=True)
            one.made = row_templates_templates.change(actor, template, {"fields": linked(one, ready)})
    except BaseException:
        db.session.rollback()
        for template_id in ready.values():
            row_templates_templates.delete(
                actor, row_templates_templates.get(actor, template_id, "write", lock=True)
            )
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

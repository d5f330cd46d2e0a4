"""Fill the tables of a database: draft templates and a dataset, plan the push, send it.

A fill consists of the objects that a person would create one by one, so that each of them can be looked at, changed
and used again: a template for each table, a dataset of them with the number of rows of each, and a push of the dataset
that leaves out the tables that cannot be filled. Undoing the push removes the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.connections.models import Connection
from webapp.connections.services import inspection
from webapp.connectors import KINDS
from webapp.connectors.schema import Entity
from webapp.datasets.services import datasets, rows
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.fill.schemas import FillInput
from webapp.imports.services import tables
from webapp.pushes.models import Push
from webapp.pushes.schemas import DatasetPushInput
from webapp.pushes.services import preparation, pushes
from webapp.pushes.services.preparation import PreparedPush
from webapp.row_templates.services import templates

FILLABLE_KINDS: Final = frozenset({"table", "collection"})
"""Kinds of entities that are filled; views and operations are not."""


@dataclass(frozen=True, slots=True)
class FillResult:
    """The templates and the dataset of a fill. `skipped` are tables without a template."""

    connection_id: str
    dataset: Mapping[str, Any]
    tables: list[dict[str, Any]]
    """`{table, template_id, rows, note}` in the order of the dataset."""
    report: list[dict[str, Any]]
    skipped: list[dict[str, str]]


def create_dataset(actor: Actor, connection_id: str, body: FillInput) -> FillResult:
    """Create a template for each table, and a dataset of them; commits.

    Errors: not_found, forbidden, validation_error (`unknown_entity`, `not_allowed` for a connection that is not a
    database), those of connections.
    """
    connection = tenancy.get(actor, Connection, connection_id, "write")
    entities = _tables_to_fill(actor, connection, body)
    require_scope(actor, "push")
    name = f"All tables of {connection.name}"[: limits.MAX_NAME_CHARS]
    requested = _row_counts(connection, entities, body)
    limited = _limited_by_identity(connection, entities, requested)
    requested |= {table: number for table, (number, _) in limited.items()}
    created = tables.create(
        actor, connection_id, [*requested], max(requested.values(), default=body.rows), body.existing
    )
    listed = [
        {"template_id": item["id"], "count": requested[table], "name": table}
        for table, item in created.by_table.items()
    ]
    dataset = datasets.create(actor, name=name, templates=listed, seed=body.seed)
    counts = rows.possible_counts(actor, datasets.get(actor, dataset["id"]))
    if any(counts[item["template_id"]][0] < item["count"] for item in listed):
        listed = [{**item, "count": max(1, counts[item["template_id"]][0])} for item in listed]
        locked = datasets.get(actor, dataset["id"], "write", lock=True)
        dataset = datasets.change(actor, locked, {"templates": listed})
    results = [
        {
            "table": item["name"],
            "template_id": item["template_id"],
            "rows": item["count"],
            "note": counts[item["template_id"]][1] or limited.get(item["name"], (0, ""))[1],
        }
        for item in listed
    ]
    empty = [
        {
            "table": item.name,
            "code": "no_rows",
            "message": "It has no rows, so it gets none with `existing`.",
            "hint": "",
        }
        for item in entities
        if item.name not in requested
    ]
    return FillResult(connection_id, dataset, results, created.report, [*empty, *created.skipped])


_ROWS_PER_PARENT: Final = (
    3  # chosen: how many rows a table without rows has for each row of a table that it refers to
)


def _row_counts(connection: Connection, entities: list[Entity], body: FillInput) -> dict[str, int]:
    """Return how many rows each table gets, by name, without the tables that get none.

    Errors: validation_error (`nothing_to_fill`), those of connections.
    """
    if body.row_counts == "equal":
        return {entity.name: body.rows for entity in entities}
    existing = inspection.count_rows(connection, [entity.name for entity in entities], limits.FETCH_SECONDS)
    maximum = limits.ENTERPRISE_MAX.rows_per_generation
    if body.row_counts == "existing":
        found = {
            entity.name: min(maximum, existing[entity.name])
            for entity in entities
            if existing.get(entity.name)
        }
        if not found:
            text = "No table has rows, so `existing` would not generate any."
            hint = "Specify the number of rows per table."
            raise validation_error([Fault("row_counts", "nothing_to_fill", text, hint)])
        return found
    largest = max(existing.values(), default=0)
    levels = _levels(entities)
    return {
        entity.name: max(1, round(body.rows * existing[entity.name] / largest))
        if existing.get(entity.name)
        else max(1, body.rows // _ROWS_PER_PARENT ** levels[entity.name])
        for entity in entities
    }


_SMALL_BITS: Final = 16


def _limited_by_identity(
    connection: Connection, entities: Sequence[Entity], requested: Mapping[str, int]
) -> dict[str, tuple[int, str]]:
    """Return how many rows tables can get whose identity column is too small for the requested number, and why.
    Errors: those of connections."""
    limits_by_table: dict[str, tuple[int, str]] = {}
    for entity in entities:
        for column in entity.fields:
            if column.generated != "identity" or not column.bits or column.bits > _SMALL_BITS:
                continue
            maximum: int = 2 ** (column.bits if column.unsigned else column.bits - 1) - 1
            if requested.get(entity.name, 0) * _IDENTITY_HEADROOM > maximum:
                limits_by_table[entity.name] = maximum, column.name
    if not limits_by_table:
        return {}
    existing = inspection.count_rows(connection, [*limits_by_table], limits.FETCH_SECONDS)
    found = {}
    for table, (maximum, name) in limits_by_table.items():
        available = max(1, maximum - existing.get(table, 0))
        if available < requested[table]:
            found[table] = available, f'Its column "{name}" has a maximum of {maximum:,}.'
    return found


_IDENTITY_HEADROOM: Final = (
    10  # chosen: rows are counted if the requested number is more than a tenth of the possible one
)


def _levels(entities: Sequence[Entity]) -> dict[str, int]:
    """Return how many levels of tables reference each table. In a circular reference each table counts as a level."""
    children: dict[str, set[str]] = {entity.name: set() for entity in entities}
    for entity in entities:
        for relation in entity.relations:
            if relation.entity in children and relation.entity != entity.name:
                children[relation.entity].add(entity.name)
    levels = dict.fromkeys(children, 0)
    for _ in range(_MAX_LEVELS):
        higher = {
            name: max((levels[item] + 1 for item in below), default=0) for name, below in children.items()
        }
        if higher == levels:
            break
        levels = higher
    return levels


_MAX_LEVELS: Final = 6  # chosen: more levels would leave a single row


def _tables_to_fill(actor: Actor, connection: Connection, body: FillInput) -> list[Entity]:
    if not KINDS[connection.type].can.sql:
        text = f"A connection of the type {connection.type} cannot be filled in one action."
        hint = "Create templates from its tables or operations, and push them."
        raise validation_error([Fault("connection_id", "not_allowed", text, hint)])
    entities = inspection.metadata(actor, connection, refresh=True).entities
    if body.tables is not None:
        return tables.find_entities(entities, body.tables, "tables")
    found = [entity for entity in entities if entity.kind in FILLABLE_KINDS]
    if not found:
        text = "This database has no tables."
        raise validation_error([Fault("tables", "nothing_to_fill", text, "Create its tables first.")])
    if len(found) > limits.MAX_DATASET_TABLES:
        text = f"This database has {len(found):,} tables; the maximum is {limits.MAX_DATASET_TABLES:,}."
        raise validation_error([Fault("tables", "too_many", text, "Specify the tables to fill.")])
    return found


def prepare(actor: Actor, fill: FillResult, body: FillInput) -> PreparedPush:
    """Return the planned push of a drafted fill. Errors: those of `preparation.prepare_dataset`."""
    return _prepare_push(actor, fill.connection_id, fill.dataset, body)


def queue_planned_push(actor: Actor, connection_id: str, dataset_id: str, body: FillInput) -> Push:
    """Queue the push of a fill that was planned before; commits. Errors: as of `queue_push`, not_found."""
    dataset = datasets.show(datasets.get(actor, dataset_id, "push"))
    return pushes.queue(actor, _prepare_push(actor, connection_id, dataset, body), "dataset.push")


def _prepare_push(
    actor: Actor, connection_id: str, dataset: Mapping[str, Any], body: FillInput
) -> PreparedPush:
    names = [template["name"] for template in dataset["templates"] if template["name"]]
    push_input = DatasetPushInput(
        connection_id=connection_id,
        targets={name: name for name in names},
        on_error=body.on_error,
        target_wait_seconds=body.target_wait_seconds,
        confirm=body.confirm,
        dry_run=body.dry_run,
        skip_faulty_tables=True,
    )
    return preparation.prepare_dataset(actor, dataset["id"], push_input)


def queue_push(actor: Actor, fill: FillResult, body: FillInput) -> Push:
    """Queue the push of a drafted fill; commits. Errors: those of `preparation.prepare_dataset` and `pushes.queue`."""
    return pushes.queue(actor, prepare(actor, fill, body), "dataset.push")


def discard(actor: Actor, dataset_id: str) -> None:
    """Move the dataset and the templates of a fill that was planned and not sent to the trash; commits.

    Nothing happens if a push used the dataset. Templates that were changed since are kept.
    """
    try:
        dataset = datasets.get(actor, dataset_id, "write", lock=True)
    except ApiError:
        return
    used = db.session.scalar(select(Push.id).where(Push.dataset_id == dataset.id).limit(1))
    listed = datasets.show(dataset)["templates"]
    if used is not None:
        return
    datasets.delete(actor, dataset)
    for table in listed:
        try:
            template = templates.get(actor, table["template_id"], "write", lock=True)
        except ApiError:
            continue  # deleted in the meantime
        if template.version == table["version"] and template.made_from_id is not None:
            templates.delete(actor, template)


def as_json(fill: FillResult, prepared_or_push: PreparedPush | Push) -> dict[str, Any]:
    """Return a fill as the API shows it: with `push`, or with `plan` for a dry run."""
    push = pushes.as_json(prepared_or_push) if isinstance(prepared_or_push, Push) else None
    plan = pushes.plan(prepared_or_push) if isinstance(prepared_or_push, PreparedPush) else None
    skipped_by_push = (push or plan or {}).get("skipped", [])
    skipped = fill.skipped + [
        {"table": item["name"], **{key: item[key] for key in ("code", "message", "hint")}}
        for item in skipped_by_push
    ]
    return {
        "dataset_id": fill.dataset["id"],
        "seed": fill.dataset["seed"],
        "tables": fill.tables,
        "skipped": skipped,
        "report": fill.report,
        "push": push,
        "plan": plan,
    }

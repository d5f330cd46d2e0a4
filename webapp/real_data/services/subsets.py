"""Subsets of a database with their related rows: a dataset of templates, each of which reads its own part of a table.

The rows stay in the database: a template stores the condition that selects its rows, and reads them when rows are
requested. Columns with personal data are marked as sensitive, and keys are masked in the same way everywhere, so that
references stay valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.models import Connection
from webapp.connections.services import access, inspection
from webapp.connections.services.access import limited
from webapp.connectors import subset_query
from webapp.connectors.base import ConnectorError, TableReader
from webapp.connectors.schema import Entity
from webapp.connectors.subset_query import Ways, refused
from webapp.datasets.services import datasets
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.imports.services import tables
from webapp.real_data.services import detection
from webapp.real_data.services.detection import Found
from webapp.row_templates.services import compilation
from webapp.row_templates.services import templates as row_templates_templates


@dataclass(frozen=True, slots=True)
class Made:
    """A subset: its dataset and templates as the API shows them, and what each table holds of it."""

    dataset: dict[str, Any]
    templates: list[dict[str, Any]]
    report: list[dict[str, Any]]


def create(
    actor: Actor,
    connection_id: str,
    *,
    table: str,
    where: str = "",
    limit: int | None = None,
    children: Sequence[str] | None = None,
    depth: int = 1,
    name: str | None = None,
) -> Made:
    """Create and save a subset from some rows of `table`; commits. `children` are the tables whose rows are included if
    they refer to such rows (None: all; []: none), `depth` the number of levels.

    Errors: not_found, forbidden; validation_error with the reason why the subset is not possible; those of connections.
    """
    connection = tenancy.get(actor, Connection, connection_id, "write")
    kind = connection.type
    if kind not in subset_query.KINDS:
        text = (
            f'"{connection.name}" is a connection of type {kind}, which does not support foreign keys or SQL.'
        )
        raise refused("not_for_this_type", text, "Choose a SQL database.", "connection_id")
    entities = {entity.name: entity for entity in inspection.metadata(actor, connection).entities}
    start = _named(entities, [table], "table")[0]
    known = [item.name for item in _named(entities, children or [], "children")]
    ways = subset_query.begun(entities, kind, start, where, limit)
    subset_query.follow(ways, None if children is None else known, depth)
    if len(ways.found) > limits.MAX_DATASET_TABLES:
        text = (
            f"The subset reaches {len(ways.found)} tables; a dataset has at most {limits.MAX_DATASET_TABLES}."
        )
        raise refused("too_many", text, "Name the children that are to come along.", "children")
    counts = _counted(connection, ways)
    samples = inspection.samples(connection, list(ways.found), limits.INFER_SAMPLE_ROWS, limits.FETCH_SECONDS)
    return _save(actor, connection_id, ways, counts, samples, name or f"{start.name} subset")


def _named(entities: Mapping[str, Entity], wanted: Sequence[str], path: str) -> list[Entity]:
    try:
        return tables.chosen(entities.values(), wanted)
    except ApiError as error:
        for fault in error.details["fields"]:
            fault["path"] = path
        raise


def _counted(connection: Connection, ways: Ways) -> dict[str, int]:
    """Rows of each table; nothing may be missing. Error: validation_error."""
    try:
        with access.open_reader(connection, limits.FETCH_SECONDS) as session:
            db.session.commit()  # release our database while the target is queried
            with limited(session, limits.SOURCE_SECONDS, limits.SOURCE_SECONDS):
                counts = {name: _number(session, subset_query.counting(ways, name)) for name in ways.found}
                lost = [
                    (table, relation, number)
                    for table, relation, query in subset_query.missing(ways)
                    if (number := _number(session, query))
                ]
    except ConnectorError as error:
        raise access.told(error) from None
    faults = [
        Fault(
            "table",
            "open_ring",
            f'{number:,} rows of "{table}" refer to rows of "{relation.entity}" that {limits.SUBSET_ROUNDS} rounds of '
            "a ring of foreign keys do not reach.",
            "Begin with rows further up, or with fewer of them.",
        )
        for table, relation, number in lost
    ]
    faults += [
        Fault(
            "limit",
            "too_many_rows",
            f'The subset has {count:,} rows of "{name}".',
            "Request fewer starting rows.",
        )
        for name, count in counts.items()
        if count > limits.SOURCE_ROWS
    ]
    if faults:
        raise validation_error(faults)
    return counts


def _number(session: TableReader, query: str) -> int:
    return int(session.query(query, {}, 1).column(0)[0].as_py())


# --- Templates ----------------------------------------------------------------------------------------------


def _save(
    actor: Actor,
    connection_id: str,
    ways: Ways,
    counts: Mapping[str, int],
    samples: Mapping[str, pa.RecordBatch],
    name: str,
) -> Made:
    words = compilation.vocabulary()
    found = {
        table: {
            item.name: item
            for item in detection.classify(table, _sample(ways.tables[table], samples.get(table)), words)
        }
        for table in ways.found
    }
    made: list[dict[str, Any]] = []
    try:
        for table in subset_query.parents_first(ways):
            entity = ways.tables[table]
            source = {"connection_id": connection_id, "query": subset_query.rows_of(ways, table)}
            made.append(
                row_templates_templates.create(
                    actor,
                    name=table,
                    fields=[_field(ways, entity, column.name, found) for column in entity.fields],
                    description=f"{name}: {' '.join(ways.why[table][:3])}",
                    quantity=min(max(counts[table], 1), limits.ENTERPRISE_MAX.rows_per_generation),
                    source=source,
                )
            )
        members = [{"template_id": item["id"], "name": item["name"]} for item in made]
        dataset = datasets.create(actor, name=name, templates=members)
    except BaseException:
        db.session.rollback()
        for item in made:
            row_templates_templates.delete(
                actor, row_templates_templates.get(actor, item["id"], "write", lock=True)
            )
        raise
    return Made(dataset, made, [_told(ways, item, counts) for item in made])


def _told(ways: Ways, template: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, Any]:
    table = template["name"]
    return {
        "table": table,
        "template_id": template["id"],
        "rows": counts[table],
        "ways": ways.why[table],
        "sensitive": [field["name"] for field in template["fields"] if field["sensitive"]],
    }


def _sample(entity: Entity, batch: pa.RecordBatch | None) -> dict[str, list[Any]]:
    """A table's sample, column by column."""
    known = batch.schema.names if batch is not None else []
    return {
        field.name: batch.column(field.name).to_pylist() if batch is not None and field.name in known else []
        for field in entity.fields
    }


def _field(
    ways: Ways, entity: Entity, column: str, found: Mapping[str, Mapping[str, Found]]
) -> dict[str, Any]:
    """Return a field that copies a column. Foreign key columns use the definition of the key that they refer to."""
    table, name = _root(ways, entity.name, column)
    guess = found.get(table, {}).get(name)
    if guess is None or not guess.sensitive:
        return {"name": column, "type": "source_column"}
    made: dict[str, Any] = {"name": column, "type": guess.type or "source_column", "sensitive": True}
    if _is_key(ways, table, name):
        made["masking"] = {
            "strategy": "format_preserve",
            "domain": f"{table}.{name}"[: limits.MAX_NAME_CHARS],
        }
    elif guess.masking is not None:
        made["masking"] = dict(guess.masking)
    return made


def _root(ways: Ways, table: str, column: str) -> tuple[str, str]:
    """Return the column that a foreign key finally refers to; the column itself if it is not a foreign key."""
    seen = set()
    while (table, column) not in seen:
        seen.add((table, column))
        for relation in ways.tables[table].relations:
            if column in relation.columns and relation.entity in ways.tables:
                table, column = relation.entity, relation.entity_columns[relation.columns.index(column)]
                break
    return table, column


def _is_key(ways: Ways, table: str, column: str) -> bool:
    entity = ways.tables[table]
    led = any(
        relation.entity == table and column in relation.entity_columns
        for other in ways.tables.values()
        for relation in other.relations
    )
    return led or column in entity.keys

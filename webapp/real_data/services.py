"""Real data: create masked copies, and subsets of a database.

**A masked copy** of a file, a table or a query: `propose_masking` analyzes a sample and proposes a masking for each
column; users can change it; `fields` creates the field definitions.

**A subset** of a database with its related rows is a dataset of templates, each of which reads its own part of a table.
The rows stay in the database: a template stores the condition that selects its rows, and reads them when rows are
requested. Columns with personal data are marked as sensitive, and keys are masked in the same way everywhere, so that
references stay valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.connections.models import Connection
from webapp.connections.services import access, inspection
from webapp.connections.services.access import time_limited
from webapp.connectors import subset_query
from webapp.connectors.base import ConnectorError, TableReader
from webapp.connectors.schema import Entity
from webapp.connectors.subset_query import SubsetSteps, subset_error
from webapp.datasets.services import datasets
from webapp.engine.masking import STRATEGIES, supported_strategies
from webapp.engine.source_data import SourceSpec
from webapp.engine.types.registry import find
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.imports.services import tables
from webapp.real_data.detection import KINDS, DetectedColumn, classify, classify_sample
from webapp.row_templates.services import compilation
from webapp.row_templates.services import templates as row_templates_templates
from webapp.sources.services import sources

UNCHANGED_TYPE: Final = "source_column"
"""The field type that copies a column unchanged."""
_DATE_TYPE: Final = "date_of_birth"
_DEFAULT_STRATEGY: Final = "redact"
"""The masking strategy for columns of unknown kind."""


@dataclass(frozen=True, slots=True)
class MaskingChoice:
    """The masking of one column: `strategy` applies if it is `sensitive`, `person` (a column) if the strategy is
    shift."""

    name: str
    is_included: bool = True
    sensitive: bool = False
    type: str = UNCHANGED_TYPE
    strategy: str = _DEFAULT_STRATEGY
    person: str = ""
    format: str = ""
    """The format of the dates of the column, if they are not ISO 8601."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A column, its classification, and its proposed masking."""

    choice: MaskingChoice
    confidence: float
    reason: str
    kind_label: str
    """The kind of personal data as text: `e-mail addresses`; "" if none was detected."""


def propose_masking(actor: Actor, spec: SourceSpec) -> list[Proposal]:
    """Return a proposal for each column of a source.

    Errors: validation_error, payload_too_large, those of connections.
    """
    require_scope(actor, "write")
    sample = sources.sample(actor, spec, limits.CLASSIFY_ROWS)
    if len(sample.column_names) > limits.MAX_FIELDS:
        text = f"The source has {len(sample.column_names):,} columns; a template has at most {limits.MAX_FIELDS}."
        raise validation_error(
            [Fault("source", "too_many", text, "Use a query or a file with fewer columns.")]
        )
    name = spec.table or (spec.file or "").rpartition("/")[2].partition(".")[0]
    return [_build_proposal(item) for item in classify_sample(name, sample)]


def _build_proposal(found: DetectedColumn) -> Proposal:
    masking = found.masking or {}
    kind = found.type if found.sensitive and found.type else UNCHANGED_TYPE
    choice = MaskingChoice(
        found.name,
        sensitive=found.sensitive,
        type=kind,
        strategy=str(masking.get("strategy", _DEFAULT_STRATEGY)),
        person=str(masking.get("person", "")),
        format=str((found.options or {}).get("format", "")),
    )
    description = KINDS[found.kind].label if found.kind else ""
    return Proposal(choice, found.confidence, found.reason, description)


def default_quantity(actor: Actor, spec: SourceSpec) -> int:
    """Return the number of rows that a copy has by default: all of the source, as far as they are counted."""
    return (
        sources.count_rows(actor, spec, limits.ENTERPRISE_MAX.rows_per_generation) or limits.DEFAULT_QUANTITY
    )


def maskable_types() -> list[tuple[str, str]]:
    """Return the field types for columns with personal data, and their labels."""
    known = dict.fromkeys([UNCHANGED_TYPE, *(kind.type for kind in KINDS.values())])
    return [(name, kind.label) for name in known if (kind := find(name)) is not None]


def strategies(type_name: str) -> tuple[str, ...]:
    """Return the masking strategies of a field type."""
    kind = find(type_name)
    return STRATEGIES if kind is None else supported_strategies(kind)


def build_fields(choices: Sequence[MaskingChoice]) -> list[dict[str, Any]]:
    """Return the field definitions of the selected columns. Error: validation_error if none is selected."""
    included = [item for item in choices if item.is_included]
    if not included:
        text = "No column is selected."
        raise validation_error([Fault("fields", "too_few", text, "Select the columns to copy.")])
    return [_masked_field(item) for item in included]


def _masked_field(choice: MaskingChoice) -> dict[str, Any]:
    if not choice.sensitive:
        return {"name": choice.name, "type": UNCHANGED_TYPE}
    masking: Mapping[str, Any] = {"strategy": choice.strategy}
    if choice.strategy == "shift":
        masking = {**masking, "person": choice.person or None}
    field = {"name": choice.name, "type": choice.type, "sensitive": True, "masking": dict(masking)}
    return field | (
        {"options": {"format": choice.format}} if choice.format and choice.type == _DATE_TYPE else {}
    )


# --- Subsets ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SubsetResult:
    """A subset: its dataset and templates as the API shows them, and a report of the rows in each table."""

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
) -> SubsetResult:
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
        raise subset_error("not_for_this_type", text, "Choose a SQL database.", "connection_id")
    entities = {entity.name: entity for entity in inspection.metadata(actor, connection).entities}
    start = _entities_named(entities, [table], "table")[0]
    child_names = [item.name for item in _entities_named(entities, children or [], "children")]
    steps = subset_query.start_subset(entities, kind, start, where, limit)
    subset_query.follow(steps, None if children is None else child_names, depth)
    if len(steps.final) > limits.MAX_DATASET_TABLES:
        text = f"The subset reaches {len(steps.final)} tables; a dataset has at most {limits.MAX_DATASET_TABLES}."
        raise subset_error("too_many", text, "Set `children` to the tables to include.", "children")
    counts = _count_rows(connection, steps)
    samples = inspection.read_samples(
        connection, list(steps.final), limits.INFER_SAMPLE_ROWS, limits.FETCH_SECONDS
    )
    return _save_subset(actor, connection_id, steps, counts, samples, name or f"{start.name} subset")


def _entities_named(entities: Mapping[str, Entity], names: Sequence[str], path: str) -> list[Entity]:
    try:
        return tables.find_entities(entities.values(), names)
    except ApiError as error:
        for fault in error.details["fields"]:
            fault["path"] = path
        raise


def _count_rows(connection: Connection, steps: SubsetSteps) -> dict[str, int]:
    """Return the number of rows by table. Error: validation_error, also if referenced rows are missing."""
    try:
        with access.open_reader(connection, limits.FETCH_SECONDS) as session:
            db.session.commit()  # release our database while the target is queried
            with time_limited(session, limits.SOURCE_SECONDS, limits.SOURCE_SECONDS):
                counts = {
                    name: _query_number(session, subset_query.count_query(steps, name))
                    for name in steps.final
                }
                missing = [
                    (table, relation, number)
                    for table, relation, query in subset_query.missing_parent_queries(steps)
                    if (number := _query_number(session, query))
                ]
    except ConnectorError as error:
        raise access.api_error(error) from None
    faults = [
        Fault(
            "table",
            "open_ring",
            f'{number:,} rows of "{table}" reference rows of "{relation.entity}" that were not found in '
            f"{limits.SUBSET_ROUNDS} rounds along circular foreign keys.",
            "Start from a table further up, or from fewer rows.",
        )
        for table, relation, number in missing
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


def _query_number(session: TableReader, query: str) -> int:
    return int(session.query(query, {}, 1).column(0)[0].as_py())


# --- Templates ----------------------------------------------------------------------------------------------


def _save_subset(
    actor: Actor,
    connection_id: str,
    steps: SubsetSteps,
    counts: Mapping[str, int],
    samples: Mapping[str, pa.RecordBatch],
    name: str,
) -> SubsetResult:
    vocabulary = compilation.vocabulary()
    columns = {
        table: {
            item.name: item
            for item in classify(
                table, _values_by_column(steps.tables[table], samples.get(table)), vocabulary
            )
        }
        for table in steps.final
    }
    templates: list[dict[str, Any]] = []
    try:
        for table in subset_query.parents_first(steps):
            entity = steps.tables[table]
            source = {"connection_id": connection_id, "query": subset_query.rows_query(steps, table)}
            templates.append(
                row_templates_templates.create(
                    actor,
                    name=table,
                    fields=[_subset_field(steps, entity, column.name, columns) for column in entity.fields],
                    description=f"{name}: {' '.join(steps.reasons[table][:3])}",
                    quantity=min(max(counts[table], 1), limits.ENTERPRISE_MAX.rows_per_generation),
                    source=source,
                )
            )
        members = [{"template_id": item["id"], "name": item["name"]} for item in templates]
        dataset = datasets.create(actor, name=name, templates=members)
    except BaseException:
        db.session.rollback()
        for item in templates:
            row_templates_templates.delete(
                actor, row_templates_templates.get(actor, item["id"], "write", lock=True)
            )
        raise
    report = [
        {
            "table": item["name"],
            "template_id": item["id"],
            "rows": counts[item["name"]],
            "ways": steps.reasons[item["name"]],
            "sensitive": [field["name"] for field in item["fields"] if field["sensitive"]],
        }
        for item in templates
    ]
    return SubsetResult(dataset, templates, report)


def _values_by_column(entity: Entity, batch: pa.RecordBatch | None) -> dict[str, list[Any]]:
    """Return the sample of a table by column; [] for columns without a sample."""
    known = batch.schema.names if batch is not None else []
    return {
        field.name: batch.column(field.name).to_pylist() if batch is not None and field.name in known else []
        for field in entity.fields
    }


def _subset_field(
    steps: SubsetSteps, entity: Entity, column: str, columns: Mapping[str, Mapping[str, DetectedColumn]]
) -> dict[str, Any]:
    """Return a field that copies a column. Foreign key columns use the definition of the key that they refer to."""
    table, name = _referenced_column(steps, entity.name, column)
    detected = columns.get(table, {}).get(name)
    if detected is None or not detected.sensitive:
        return {"name": column, "type": "source_column"}
    field: dict[str, Any] = {"name": column, "type": detected.type or "source_column", "sensitive": True}
    referenced = any(
        relation.entity == table and name in relation.entity_columns
        for other in steps.tables.values()
        for relation in other.relations
    )
    if referenced or name in steps.tables[table].keys:
        field["masking"] = {
            "strategy": "format_preserve",
            "domain": f"{table}.{name}"[: limits.MAX_NAME_CHARS],
        }
    elif detected.masking is not None:
        field["masking"] = dict(detected.masking)
    return field


def _referenced_column(steps: SubsetSteps, table: str, column: str) -> tuple[str, str]:
    """Return the column that a foreign key finally refers to; the column itself if it is not a foreign key."""
    seen = set()
    while (table, column) not in seen:
        seen.add((table, column))
        for relation in steps.tables[table].relations:
            if column in relation.columns and relation.entity in steps.tables:
                table, column = relation.entity, relation.entity_columns[relation.columns.index(column)]
                break
    return table, column

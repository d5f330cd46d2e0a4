"""Create templates from the tables of a connection: one for each, linked like the tables by foreign keys.

A foreign key becomes references to the template of the other table, if that is created in the same call or was created
before from the same connection; else fields of type foreign_key, which take values of existing rows, if the connection
can read them; else the columns are generated independently. Keys of several columns become one group.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final, Literal

import pyarrow as pa
from sqlalchemy import select

from webapp import clock, limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.models import Connection
from webapp.connections.services import inspection
from webapp.connectors import KINDS
from webapp.connectors.openapi.connector import request_template_of
from webapp.connectors.schema import Column, Entity, Relation
from webapp.endpoints import services as endpoint_services
from webapp.engine import groups, processor_time
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.relations import EXISTING, RELATION
from webapp.engine.spec import parse
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.imports.inference import check_search, checks, json_schema
from webapp.imports.inference import columns as imports_columns
from webapp.imports.inference.columns import ColumnResult
from webapp.imports.inference.evidence import definition, to_json_number
from webapp.imports.inference.named_references import named_references
from webapp.imports.readers.base import fallback
from webapp.pushes.services import value_checks
from webapp.row_templates.models import Template
from webapp.row_templates.services import compilation, field_ids
from webapp.row_templates.services import templates as row_templates_templates

Field = dict[str, Any]
_PLAIN_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*")
ENTITY_PREFIX: Final = "entity:"
"""Prefix of the name of a table, as a placeholder for the id of its template."""


@dataclass(slots=True)
class Draft:
    """A template of one table before it is saved. `dependencies` are tables of the same call that it refers to."""

    entity: Entity
    columns: list[ColumnResult]
    dependencies: dict[str, bool] = field(default_factory=dict)
    """By table: whether the template can be saved first without the reference."""
    created_template: dict[str, Any] | None = None
    rows: int | None = None
    """The number of rows, if the unique fields have fewer values than the requested number; else None."""

    def to_json(self) -> dict[str, Any]:
        """Return what another process needs to save the draft; see `from_json`."""
        found = [
            [column.column, column.field, column.state, column.reason, column.is_guessed]
            for column in self.columns
        ]
        return {
            "name": self.entity.name,
            "comment": self.entity.comment,
            "found": found,
            "waits": self.dependencies,
            "rows": self.rows,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Draft:
        """Create a draft from the result of `to_json`. Its entity has no columns."""
        entity = Entity(stored["name"], (stored["name"],), (), comment=stored["comment"])
        found = [ColumnResult(*item) for item in stored["found"]]
        return cls(entity, found, dict(stored["waits"]), rows=stored["rows"])

    @property
    def fields(self) -> list[Field]:
        """Return the field definitions, in the order of the columns."""
        return [column.field for column in self.columns if column.field is not None]


def draft_table(
    entity: Entity,
    sample: pa.RecordBatch | None,
    entities: Sequence[Entity],
    template_ids_by_table: Mapping[str, str],
    connection_id: str | None,
    vocabulary: Vocabulary,
    rows: int = limits.DEFAULT_QUANTITY,
    known_results: Mapping[str, ColumnResult] | None = None,
    samples: Mapping[str, pa.RecordBatch] | None = None,
    named_relations: Sequence[Relation] = (),
) -> Draft:
    """Return the draft for one table.

    `entities` are the tables of the same call, `template_ids_by_table` the existing templates by table, `rows` the
    default number of rows; `template_ids` are columns with a known result, except foreign keys; `samples` are rows of
    the tables by name, if they were read. `connection_id` is the connection from which fields of type foreign_key take
    existing keys, or None. `named_relations` are references without a foreign key, to tables of the same call or with a
    template.
    """
    if entity.kind == "operation":
        return Draft(entity, json_schema.infer_columns(entity, vocabulary, rows))
    entity, flags = _apply_unique_indexes(entity)
    draft = Draft(entity, imports_columns.infer_columns(entity, sample, vocabulary, rows))
    if known_results:
        draft.columns = [known_results.get(column.column, column) for column in draft.columns]
    foreign_keys = _ForeignKeys(
        draft, {item.name: item for item in entities}, template_ids_by_table, connection_id, samples or {}
    )
    # Keys of several columns first: a column that is part of two keys belongs to the longer one.
    for relation in sorted(entity.relations, key=lambda item: -len(item.columns)):
        foreign_keys.convert(relation)
    for relation in named_relations:
        foreign_keys.convert_named(relation)
    _apply_composite_keys(draft, vocabulary)
    _separate_references(draft)
    for column in draft.columns:
        if column.column in flags and column.field is not None:
            column.field = definition(column.column, "enum", {"values": [False]})
            key_columns = ", ".join(flags[column.column])
            column.state, column.reason = (
                "yellow",
                f"A unique index allows one true value for each {key_columns}: always false.",
            )
    _remove_incomplete_keys(draft)
    return draft


def _separate_references(draft: Draft) -> None:
    """Let two references to the same table take different rows, where a check demands that they differ."""
    by_name = {column.column.casefold(): column for column in draft.columns}
    for check in draft.entity.checks:
        for pair in check_search.differing_columns(check):
            first, second = (by_name.get(name) for name in pair)
            if first is None or second is None or first.field is None or second.field is None:
                continue
            options = [
                result.field["options"].get("template_id") for result in (first, second) if result.field
            ]
            if options[0] is None or options[0] != options[1] or options[0] == "self":
                continue
            if second.field.get("unique") is True:
                first, second = second, first
            assert second.field is not None
            other = first.field or {}
            if second.field.get("unique") is True or "differs_from" in other.get("options", {}):
                continue
            second.field["options"] = {**second.field["options"], "differs_from": first.column}
            second.state, second.reason = "green", f"{second.reason} Never the same row as {first.column}."


def _remove_incomplete_keys(draft: Draft) -> None:
    """A field that is unique together with fields that are no longer there may repeat."""
    counts = Counter(item.get("unique") for item in draft.fields if isinstance(item.get("unique"), str))
    for item in draft.fields:
        if counts.get(item.get("unique")) == 1:
            del item["unique"]


def _apply_unique_indexes(entity: Entity) -> tuple[Entity, dict[str, tuple[str, ...]]]:
    """Return the table with its unique indexes over expressions or with a condition as plain constraints, which demand
    more; and, by flag, the columns of indexes that allow one true flag for each combination of their values, such as
    those with `WHERE is_default`."""
    uniques: list[tuple[str, ...]] = []
    flags: dict[str, tuple[str, ...]] = {}
    boolean_columns = {item.name.casefold(): item.name for item in entity.fields if item.type == "boolean"}
    for index in entity.unique_indexes:
        flag = next(
            (
                boolean_columns[column]
                for column in check_search.true_columns(index.condition)
                if column in boolean_columns
            ),
            None,
        )
        if flag is None:
            uniques.append(index.columns)
        else:
            flags[flag] = tuple(column for column in index.columns if column != flag) or ("table",)
    return replace(entity, uniques=tuple(dict.fromkeys((*entity.uniques, *uniques)))), flags


class _ForeignKeys:
    """The foreign keys of one table."""

    def __init__(
        self,
        draft: Draft,
        entities: Mapping[str, Entity],
        templates: Mapping[str, str],
        connection_id: str | None,
        samples: Mapping[str, pa.RecordBatch],
    ) -> None:
        self._draft, self._entities, self._templates, self._connection_id = (
            draft,
            entities,
            templates,
            connection_id,
        )
        self._samples = samples
        self._rules = checks.read(draft.entity.checks, [item.name for item in draft.entity.fields])
        self._positions = {column.column: index for index, column in enumerate(draft.columns)}
        self._used_columns: set[str] = set()
        self._groups: Counter[str] = Counter()

    def convert(self, relation: Relation) -> None:
        """Convert the columns of one foreign key to fields that use the same row."""
        entity, columns = self._draft.entity, relation.columns
        shared = [column for column in columns if column in self._used_columns]
        if shared:
            for name in columns:
                text = f"It is part of two foreign keys; the one to {relation.entity} was not imported."
                self._set_reason(name, "yellow", text)
            return
        self._used_columns.update(columns)
        is_nullable = all(column is not None and column.nullable for column in map(entity.column, columns))
        is_self_reference = relation.entity == entity.name
        sample = self._samples.get(relation.entity)
        is_empty = sample is None or sample.num_rows == 0
        row_filter = self._allowed_filter(relation)
        if is_self_reference and is_nullable:
            self._set_references(relation, "self", "An earlier row of the table; the first has none.")
        elif (
            is_self_reference
            and is_empty
            and len(columns) == 1
            and relation.entity_columns == entity.keys
            and entity.keys[0].isidentifier()
        ):
            field = definition(columns[0], "formula", {"expression": entity.keys[0]})
            text = "The row itself: the column cannot be null, and there is no earlier row."
            self._set_field(columns[0], field, "yellow", text)
        elif row_filter:
            self._use_existing_keys(relation, row_filter)
        elif relation.entity in self._entities and not is_self_reference:
            self._draft.dependencies[relation.entity] = is_nullable and self._draft.dependencies.get(
                relation.entity, True
            )
            self._set_references(relation, ENTITY_PREFIX + relation.entity, f"A row of {relation.entity}.")
        elif relation.entity in self._templates and not is_self_reference:
            template = self._templates[relation.entity]
            self._set_references(
                relation, template, f"A row of the template created earlier from {relation.entity}."
            )
        else:
            self._use_existing_keys(relation)

    def convert_named(self, relation: Relation) -> None:
        """Make a column a reference because of its name, unless its values are known otherwise."""
        (name,) = relation.columns
        found = self._draft.columns[self._positions[name]]
        rule = self._rules.rule_of(name)
        if found.field is None or rule.choices is not None or rule.high is not None:
            return
        entity, is_self_reference = self._draft.entity, relation.entity == self._draft.entity.name
        if is_self_reference and any(name in names for names in (*entity.uniques, entity.keys)):
            return  # an earlier row cannot be part of a key
        reason = f"A row of {relation.entity}, based on the column name: there is no foreign key."
        if is_self_reference:
            self._set_references(
                relation, "self", "An earlier row of the table, based on the column name.", "yellow"
            )
        elif relation.entity in self._entities:
            self._draft.dependencies.setdefault(relation.entity, True)
            self._set_references(relation, ENTITY_PREFIX + relation.entity, reason, "yellow")
        elif relation.entity in self._templates:
            self._set_references(relation, self._templates[relation.entity], reason, "yellow")

    def _next_group(self, kind: str) -> str:
        """Return a separate group for each key."""
        self._groups[kind] += 1
        return kind if self._groups[kind] == 1 else f"{kind}_{self._groups[kind]}"

    def _set_references(
        self, relation: Relation, template: str, reason: str, state: imports_columns.State = "green"
    ) -> None:
        group = self._next_group(RELATION)
        for name, target_column in zip(relation.columns, relation.entity_columns, strict=True):
            options = {"template_id": template, "field": target_column}
            self._set_field(name, {"type": "reference", "options": options, "group": group}, state, reason)

    def _allowed_filter(self, relation: Relation) -> str:
        """Return a condition for the rows that a check allows a foreign key to refer to; "" without such rows."""
        if len(relation.columns) != 1 or self._connection_id is None:
            return ""
        choices, target_column = self._rules.rule_of(relation.columns[0]).choices, relation.entity_columns[0]
        sample = self._samples.get(relation.entity)
        if (
            not choices
            or sample is None
            or target_column not in sample.schema.names
            or not _PLAIN_NAME.fullmatch(target_column)
        ):
            return ""
        existing = {str(value) for value in sample.column(target_column).to_pylist()}
        allowed = [choice for choice in choices if str(choice) in existing]
        literals = [
            str(item) if isinstance(item, int | Decimal) else "'" + str(item).replace("'", "''") + "'"
            for item in allowed
        ]
        return f"{target_column} IN ({', '.join(literals)})" if allowed else ""

    def _use_existing_keys(self, relation: Relation, row_filter: str = "") -> None:
        if self._connection_id is None:
            is_self_reference = relation.entity == self._draft.entity.name
            cause = (
                "whose first row has no parent" if is_self_reference else "which is not part of this import"
            )
            for name in relation.columns:
                is_generated = self._draft.columns[self._positions[name]].field is not None
                consequence = (
                    "its values are generated on their own" if is_generated else "nothing is generated for it"
                )
                self._set_reason(name, "yellow", f"It refers to {relation.entity}, {cause}: {consequence}.")
            return
        sample = self._samples.get(relation.entity)
        columns = [self._draft.entity.column(name) for name in relation.columns]
        nullable = [column.name for column in columns if column is not None and column.nullable]
        if sample is not None and not sample.num_rows and nullable:
            for name in nullable:
                reason = f"It stays null, because {relation.entity} has no rows."
                self._set_field(name, {"type": "null", "options": {}}, "yellow", reason)
            return
        group = self._next_group(EXISTING)
        for name, target_column in zip(relation.columns, relation.entity_columns, strict=True):
            options = {
                "connection_id": self._connection_id,
                "table": relation.entity,
                "column": target_column,
            }
            if row_filter:
                options["filter"] = row_filter
            reason = f"An existing key of {relation.entity}: the table must contain rows."
            self._set_field(
                name, {"type": "foreign_key", "options": options, "group": group}, "yellow", reason
            )

    def _set_field(self, name: str, field: Field, state: imports_columns.State, reason: str) -> None:
        result = self._draft.columns[self._positions[name]]
        previous = result.field or {}
        common = {key: previous[key] for key in ("percent_blank",) if key in previous}
        column = self._draft.entity.column(name)
        is_unique = column is not None and (column.unique or (name,) in self._draft.entity.uniques)
        if is_unique and field["options"].get("template_id") != "self":
            common["unique"] = True
        result.field, result.state, result.reason = {"name": name, **field, **common}, state, reason
        result.is_guessed = False

    def _set_reason(self, name: str, state: imports_columns.State, reason: str) -> None:
        result = self._draft.columns[self._positions[name]]
        result.state, result.reason = state, reason


def _apply_composite_keys(draft: Draft, vocabulary: Vocabulary) -> None:
    """Make the fields of composite keys unique together if that is possible; else make only one of them unique."""
    by_name = {item.column: item for item in draft.columns}
    used_columns: set[str] = set()
    number = 0
    for names in sorted((draft.entity.keys, *draft.entity.uniques), key=len):
        members = [by_name[name] for name in names if name in by_name]
        if len(names) < 2 or any(
            member.field is None or member.field.get("unique") is True for member in members
        ):
            continue
        own = [
            member
            for member in members
            if member.field is not None and member.field["type"] not in _REFERENCE_TYPES
        ]
        column = draft.entity.column(own[0].column) if len(own) == 1 else None
        if (
            column is not None
            and column.type == "integer"
            and (column.bits or 0) >= _WIDE_BITS
            and column.name.casefold().endswith("id")
            and own[0].field is not None
            and own[0].field["type"] == "number"
        ):
            # The other columns are references, and the number of the row never repeats: other tables can then take each
            # row by it. Their columns may be narrower.
            own[0].field = definition(column.name, "number", {"min": 1, "max": 2**31 - 1}, unique=True)
            own[0].is_guessed = False
            continue
        can_combine = all(
            member.field is not None and imports_columns.is_combinable(member.field, vocabulary)
            for member in members
        )
        if used_columns & set(names) or not can_combine:
            _make_one_unique(draft, members, used_columns, vocabulary, names)
            continue
        number += 1
        used_columns.update(names)
        for member in members:
            assert member.field is not None
            member.field.pop("percent_blank", None)
            member.field["unique"] = "key" if number == 1 else f"key_{number}"


_WIDE_BITS: Final = 32


def _make_one_unique(
    draft: Draft,
    members: Sequence[ColumnResult],
    used_columns: set[str],
    vocabulary: Vocabulary,
    names: Sequence[str],
) -> None:
    """Keep a key of several columns by one of them that never repeats: a reference takes each row once."""
    for member in members:
        assert member.field is not None
        options = member.field["options"]
        is_reference = member.field["type"] == "reference" and options.get("template_id") != "self"
        relation = next(
            (candidate for candidate in draft.entity.relations if member.column in candidate.columns), None
        )
        if is_reference and relation is not None and len(relation.columns) > 1:
            # One column of the other table's key may repeat there; all of them never do.
            if set(relation.columns) <= set(names) and not used_columns & set(relation.columns):
                for other in draft.columns:
                    if other.column in relation.columns and other.field is not None:
                        other.field.pop("percent_blank", None)
                        other.field["unique"] = f"row_of_{relation.entity}"
                used_columns.update(relation.columns)
                return
            continue
        if (
            member.column not in used_columns
            and is_reference
            and imports_columns.is_combinable(member.field, vocabulary)
        ):
            member.field.pop("percent_blank", None)
            member.field["unique"] = True
            member.reason += f" Each parent row is used once, so that the key ({', '.join(names)}) is unique."
            used_columns.add(member.column)
            return
    for member in members:  # part of another key: each row once satisfies both
        assert member.field is not None
        shared, options = member.field.get("unique"), member.field["options"]
        if (
            isinstance(shared, str)
            and member.field["type"] == "reference"
            and options.get("template_id") != "self"
        ):
            for other in draft.columns:
                if other.field is not None and other.field.get("unique") == shared:
                    del other.field["unique"]
            member.field["unique"] = True
            member.reason += f" Each parent row is used once, so that the key ({', '.join(names)}) is unique."
            return
    for member in members:
        if (
            member.column not in used_columns
            and not isinstance((member.field or {}).get("unique"), str)
            and _make_unique(draft, member, vocabulary)
        ):
            member.reason += f" It is unique, so that the key ({', '.join(names)}) is unique as well."
            used_columns.add(member.column)
            return
    reason = f"The key ({', '.join(names)}) is not enforced: combinations may repeat, and the target rejects such rows."
    members[0].state, members[0].reason = "yellow", reason


_MANY_VALUES: Final = 100_000  # chosen: a column with that many values may be unique alone


def _make_unique(draft: Draft, result: ColumnResult, vocabulary: Vocabulary) -> bool:
    """Make a field unique if it has enough values."""
    assert result.field is not None
    field = {key: value for key, value in result.field.items() if key != "percent_blank"} | {"unique": True}
    column = draft.entity.column(result.column)
    is_wide = column is not None and column.type == "integer" and (column.bits or 0) >= _WIDE_BITS
    if is_wide and result.is_guessed and field["type"] == "number":
        field["options"] = {"min": 1, "max": 2**31 - 1}
    elif is_wide and field["type"] == "number":
        rule = checks.read(draft.entity.checks, [item.name for item in draft.entity.fields]).rule_of(
            result.column
        )
        if rule.low is None and rule.high is None and rule.choices is None and not rule.excluded:
            field["options"] = {"min": 1, "max": _MANY_VALUES}
    if field["type"] in (*_REFERENCE_TYPES, "enum", "constant", "boolean", "null", "nested", "date_relative"):
        return False
    try:
        value_count = (
            compile_plan(parse([field]), vocabulary).layer.columns[result.column].type.distinct_count()
        )
    except SpecError:
        return False
    if value_count is None or value_count < _MANY_VALUES:
        return False
    result.field = field
    return True


def report(draft: Draft) -> list[dict[str, Any]]:
    """Return the result for each column, for the API."""
    return [
        {
            "table": draft.entity.name,
            "column": column.column,
            "type": None if column.field is None else column.field["type"],
            "state": column.state,
            "confidence": column.confidence,
            "reason": column.reason,
        }
        for column in draft.columns
    ]


@dataclass(frozen=True, slots=True)
class ImportedTables:
    """The templates as the API shows them, by table, and what each column came to."""

    by_table: dict[str, dict[str, Any]]
    report: list[dict[str, Any]]
    endpoints: list[dict[str, Any]]
    """Of operations: one each, by which their rows are sent."""
    skipped: list[dict[str, str]]
    """Tables without a template, with the reason: `{table, code, message, hint}`."""

    @property
    def templates(self) -> list[dict[str, Any]]:
        """The templates, in the order of the tables."""
        return list(self.by_table.values())


def create(
    actor: Actor,
    connection_id: str,
    table_names: Sequence[str],
    quantity: int,
    existing: Literal["add", "use"] | None = None,
) -> ImportedTables:
    """Create one template for each table named in `table_names`; commits.

    `existing` is given where the tables are filled: tables that need no rows are skipped (with `use`, those that have
    rows), and foreign keys to tables that are not filled take existing rows, not those of templates made before.

    Errors: not_found, forbidden; validation_error for tables that are not there (`entities[1]`); those of
    connections.
    """
    connection = tenancy.get(actor, Connection, connection_id, "write")
    metadata = inspection.metadata(actor, connection)
    entities = find_entities(metadata.entities, table_names)
    template_ids_by_table = existing_templates(actor, connection) if existing is None else {}
    name = connection.name
    parents = (relation.entity for entity in entities for relation in entity.relations)
    names = list(dict.fromkeys([*(entity.name for entity in entities), *parents]))
    samples = inspection.read_samples(connection, names, limits.INFER_SAMPLE_ROWS, limits.FETCH_SECONDS)
    vocabulary = compilation.vocabulary()
    keys_connection_id = connection_id if KINDS[connection.type].can.tables else None

    def create_drafts(tables: Sequence[Entity]) -> list[Draft]:
        reachable = {table.name for table in tables} | template_ids_by_table.keys()
        named_relations = named_references(
            tables, [entity for entity in metadata.entities if entity.name in reachable]
        )
        return [
            draft_table(
                table,
                samples.get(table.name),
                tables,
                template_ids_by_table,
                keys_connection_id,
                vocabulary,
                quantity,
                samples=samples,
                named_relations=named_relations.get(table.name, ()),
            )
            for table in tables
        ]

    drafts = create_drafts(entities)
    unneeded: list[dict[str, str]] = []
    existing_values = _read_existing(connection, drafts, samples, vocabulary) if existing is not None else {}
    exhausted_tables = _exclude_existing_values(drafts, existing_values, vocabulary, quantity)
    if existing is not None and (unneeded := _unneeded_tables(drafts, samples, existing, exhausted_tables)):
        unneeded_names = {item["table"] for item in unneeded}
        entities = [
            _redirect_triggers(entity, entities, unneeded_names)
            for entity in entities
            if entity.name not in unneeded_names
        ]
        if not entities:
            text = "No table needs rows: " + unneeded[0]["message"]
            raise validation_error([Fault("tables", "nothing_to_fill", text, "Choose other tables.")])
        drafts = create_drafts(entities)
        _exclude_existing_values(drafts, existing_values, vocabulary, quantity)
    if any(entity.kind == "operation" for entity in entities):
        _check_has_fields(drafts)
    else:
        make_valid(drafts, vocabulary)
        for item in drafts:
            limit_rows(item, vocabulary, quantity)
    skipped = save(
        actor, drafts, lambda entity: f'Rows for the table "{entity.name}" of {name}', quantity, connection_id
    )
    endpoints = endpoint_services.create_for_operations(
        actor,
        connection,
        {
            entity.name: (entity.comment, request_template_of(entity).model_dump(mode="json"))
            for entity in entities
            if entity.kind == "operation"
        },
    )
    db.session.commit()
    return ImportedTables(
        {item.entity.name: item.created_template for item in drafts if item.created_template is not None},
        [row for item in drafts for row in report(item)],
        [endpoint_services.as_json(endpoint) for endpoint in endpoints],
        unneeded + skipped,
    )


def limit_rows(draft: Draft, vocabulary: Vocabulary, rows: int) -> None:
    """Let a template make as many rows as its unique fields have values, if that is fewer than `rows`."""
    for column in draft.columns:
        if (
            column.field is None
            or column.field["type"] in _REFERENCE_TYPES
            or column.field.get("unique") is not True
        ):
            continue
        value_count = _value_count(column.field, vocabulary)
        if value_count is not None and 0 < value_count < min(rows, draft.rows or rows):
            draft.rows = value_count


def _value_count(field: Field, vocabulary: Vocabulary) -> int | None:
    """Return how many values a field has by itself; None if that is unknown or unlimited."""
    ungrouped = {key: value for key, value in field.items() if key not in ("group", "percent_blank")}
    try:
        return compile_plan(parse([ungrouped]), vocabulary).layer.columns[field["name"]].type.distinct_count()
    except (SpecError, KeyError):
        return None


_FEW_VALUES: Final = (
    2_000  # chosen: unique fields with at most so many values leave out those that a table has
)


@dataclass(frozen=True, slots=True)
class _ExistingData:
    """What the columns of a table contain. Columns of which nothing is known are left out."""

    has_rows: bool
    """Whether the table has rows."""
    max_values: Mapping[str, int]
    values: Mapping[str, frozenset[str]]
    """In lower case, of unique columns with few possible values."""


_MAX_VALUES: Final = 20_000  # chosen: values of a column that are read, more than fields with few values have


def _read_existing(
    connection: Connection,
    drafts: Sequence[Draft],
    samples: Mapping[str, pa.RecordBatch],
    vocabulary: Vocabulary,
) -> dict[str, _ExistingData]:
    """Read what the unique columns of tables contain. Samples are sufficient where they are all rows of their table.
    Errors: those of connections."""
    numbers: dict[str, list[str]] = {}
    texts: dict[str, list[str]] = {}
    for draft in drafts:
        name, sample = draft.entity.name, samples.get(draft.entity.name)
        if sample is None:
            continue
        unique = [
            column for column in draft.columns if column.field is not None and column.field.get("unique")
        ]
        unique = [result for result in unique if result.column in sample.schema.names]
        numbers[name] = [result.column for result in unique if _is_counter(draft, result)]
        texts[name] = [
            result.column
            for result in unique
            if sample.num_rows and result.field is not None and result.field["unique"] is True
            if result.field["type"] not in _REFERENCE_TYPES and _has_few_values(result.field, vocabulary)
        ]
    requests = {
        name: {"highest": numbers[name], "values": texts[name]}
        for name in numbers
        if samples[name].num_rows >= limits.INFER_SAMPLE_ROWS and (numbers[name] or texts[name])
    }
    read = (
        inspection.read_existing_values(connection, requests, _MAX_VALUES, limits.FETCH_SECONDS)
        if requests
        else {}
    )
    found = {}
    for name in numbers:
        sampled = {item: samples[name].column(item).to_pylist() for item in (*numbers[name], *texts[name])}
        known = read.get(name, {"highest": {}, "values": sampled})
        highest = {
            item: max((int(value) for value in sampled[item] if value is not None), default=None)
            for item in numbers[name]
        }
        found[name] = _ExistingData(
            samples[name].num_rows > 0,
            {key: number for key, number in {**highest, **known["highest"]}.items() if number is not None},
            {
                item: frozenset(str(value).casefold() for value in known["values"][item])
                for item in texts[name]
            },
        )
    return found


def _is_counter(draft: Draft, result: ColumnResult) -> bool:
    """Return whether a field generates integers that can begin after those that its column has."""
    column = draft.entity.column(result.column)
    return (
        column is not None
        and column.type == "integer"
        and result.field is not None
        and result.field["type"] == "number"
        and {"min", "max"} <= result.field["options"].keys()
    )


def _exclude_existing_values(
    drafts: Sequence[Draft], existing_by_table: Mapping[str, _ExistingData], vocabulary: Vocabulary, rows: int
) -> dict[str, int]:
    """Leave out the values that a table already has: where a unique field has few, so that the rest of a half-filled
    lookup table can be filled, and numbers up to the highest one. Return the tables that have all values of such a
    field, with their number."""
    exhausted_tables: dict[str, int] = {}
    for draft in drafts:
        existing = existing_by_table.get(draft.entity.name)
        if existing is None:
            continue
        for column in draft.columns:
            if column.column in existing.values and column.field is not None:
                values, known = _all_values(column.field, vocabulary), existing.values[column.column]
                unused_values = [value for value in values if str(value).casefold() not in known]
                if not values or len(unused_values) == len(values):
                    continue
                if not unused_values:
                    exhausted_tables[draft.entity.name] = len(values)
                    continue
                column.field = definition(column.column, "enum", {"values": unused_values}, unique=True)
                column.reason = f"{column.reason} Values that are already in the table are not used."
        _continue_numbering(draft, existing, rows)
    return exhausted_tables


_SHARE_OF_NUMBERS: Final = 200  # chosen: each fill takes so small a part of the numbers that are left
_MAX_NUMBERS: Final = 10_000_000  # chosen: more than a template generates at once


def _continue_numbering(draft: Draft, existing: _ExistingData, rows: int) -> None:
    """Let unique numbers begin after those that the table has, and leave room for the next fill. In a key of several
    columns, one number is sufficient, and none if a column refers to a new row of another table."""
    rules = checks.read(draft.entity.checks, [item.name for item in draft.entity.fields])
    unique_groups = {
        item.field["unique"]
        for item in draft.columns
        if item.field is not None
        and isinstance(item.field.get("unique"), str)
        and item.field["type"] == "reference"
        and item.field["options"].get("template_id") != "self"
    }
    for item in draft.columns:
        unique = None if item.field is None else item.field.get("unique")
        if item.field is None or not unique or unique in unique_groups or not _is_counter(draft, item):
            continue
        column, options = draft.entity.column(item.column), item.field["options"]
        if column is None or rules.rule_of(item.column).high is not None:
            continue
        highest, limit = existing.max_values.get(item.column), value_checks.number_range(column)
        minimum = options["min"] if highest is None else max(options["min"], highest + 1)
        maximum = options["max"]
        if minimum + rows > maximum and limit is not None:
            maximum = min(limits.MAX_INTEGER, int(limit[1]))
        if unique is True:
            room = max(rows, min((maximum - minimum) // _SHARE_OF_NUMBERS, _MAX_NUMBERS))
            maximum = min(maximum, minimum + room)
        elif existing.has_rows and highest is not None:
            maximum = min(maximum, minimum + options["max"] - options["min"])
            unique_groups.add(unique)
        if minimum + (rows if unique is True else 0) <= maximum:
            item.field["options"] = {**options, "min": minimum, "max": maximum}


def _has_few_values(field: Field, vocabulary: Vocabulary) -> bool:
    """Return whether a unique field has at most `_FEW_VALUES` values."""
    space = _value_count(field, vocabulary)
    return space is not None and space <= _FEW_VALUES


def _all_values(field: Field, vocabulary: Vocabulary) -> list[str | int]:
    """Return all texts or integers of a unique field that has few; else none."""
    ungrouped = {key: value for key, value in field.items() if key not in ("group", "percent_blank")}
    try:
        plan = compile_plan(parse([ungrouped]), vocabulary)
        space = plan.layer.columns[field["name"]].type.distinct_count()
        if space is None or space > _FEW_VALUES:
            return []
        (column,) = BoundPlan(plan, GenerationContext("values", clock.now())).block(0, space)
    except (SpecError, KeyError):
        return []
    values = column.to_pylist()
    return values if all(isinstance(value, str) or type(value) is int for value in values) else []


def _unneeded_tables(
    drafts: Sequence[Draft],
    samples: Mapping[str, pa.RecordBatch],
    existing: Literal["add", "use"],
    exhausted_tables: Mapping[str, int],
) -> list[dict[str, str]]:
    """Return the tables that need no generated rows: `{table, code, message, hint}`. `exhausted_tables` are those that
    have all values of a unique column, with their number."""
    filled = {item.entity.name for item in drafts}
    found = []
    for draft in drafts:
        entity, sample = draft.entity, samples.get(draft.entity.name)
        rows = 0 if sample is None else sample.num_rows
        if entity.obstacle:
            code, text = "takes_no_rows", entity.obstacle
        elif entity.filled_by in filled:
            code, text = "filled_by_trigger", f"A trigger of {entity.filled_by} fills it."
        elif rows and existing == "use":
            code, text = "has_rows", "It has rows, and these are used."
        elif entity.name in exhausted_tables:
            code, text = (
                "has_rows",
                f"It already has rows for all {exhausted_tables[entity.name]} possible values.",
            )
        else:
            continue
        found.append({"table": entity.name, "code": code, "message": text, "hint": ""})
    return found


def _redirect_triggers(entity: Entity, entities: Sequence[Entity], unneeded: Collection[str]) -> Entity:
    """Let foreign keys to a table that triggers fill refer to the table of the trigger, which has the same keys."""
    by_name = {item.name: item for item in entities}

    def redirected(relation: Relation) -> Relation:
        parent = by_name.get(relation.entity)
        if parent is None or parent.name not in unneeded or not parent.filled_by:
            return relation
        (own,) = [
            item
            for item in parent.relations
            if item.entity == parent.filled_by and item.columns == parent.keys
        ][:1]
        if relation.entity_columns != parent.keys:
            return relation
        return replace(relation, entity=parent.filled_by, entity_columns=own.entity_columns)

    return replace(entity, relations=tuple(map(redirected, entity.relations)))


def find_entities(entities: Iterable[Entity], names: Sequence[str], path: str = "entities") -> list[Entity]:
    """Return the tables with these names, each once. Error: validation_error with every unknown name."""
    known = {item.name: item for item in entities}
    folded = {name.casefold(): item for name, item in known.items()}
    found, faults = {}, []
    for index, name in enumerate(names):
        entity = known.get(name) or folded.get(name.casefold())
        if entity is None:
            text = f'There is no table "{name}" in this connection.'
            hint = (
                did_you_mean(name, known)
                or "To include new tables, request the connection's metadata with refresh=true."
            )
            faults.append(Fault(f"{path}[{index}]", "unknown_entity", text, hint))
        else:
            found[entity.name] = entity
    if faults:
        raise validation_error(faults)
    return list(found.values())


def existing_templates(actor: Actor, connection: Connection) -> dict[str, str]:
    """Return the newest templates of the project that were created from tables of this connection: ids by table."""
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


# --- Simplifying until it can be saved ----------------------------------------------------------------------

_MAX_ROUNDS: Final = 8  # chosen: a field takes two steps at most, and faults come to light together
_FIELD_INDEX: Final = re.compile(r"fields\[(\d+)\]")


def make_valid(drafts: list[Draft], vocabulary: Vocabulary) -> list[Draft]:
    """Return the drafts so that each of them can be saved: what does not fit is simplified in steps and reported."""
    by_table = {item.entity.name: item for item in drafts}
    for draft in drafts:  # references to columns that are not made become what plain text can be
        for column in draft.columns:
            if column.field is None or column.field["type"] != "reference":
                continue
            template_id, target_column = (
                column.field["options"]["template_id"],
                column.field["options"]["field"],
            )
            if template_id != "self" and not template_id.startswith(ENTITY_PREFIX):
                continue  # a template that was made before
            parent = draft if template_id == "self" else by_table.get(template_id.removeprefix(ENTITY_PREFIX))
            others = () if parent is None else parent.columns
            if any(other.column == target_column and other.field is not None for other in others):
                continue
            text = (
                f"it refers to {target_column} of {template_id.removeprefix(ENTITY_PREFIX)}, for which "
                f"nothing is generated."
            )
            replacement = fallback(column.column, text)
            column.field, column.state, column.reason = (
                replacement.field,
                replacement.state,
                replacement.reason,
            )
            if template_id.startswith(ENTITY_PREFIX) and not any(
                refers_to(other, template_id) for other in draft.columns
            ):
                draft.dependencies.pop(template_id.removeprefix(ENTITY_PREFIX), None)
    for draft in drafts:
        if not draft.fields:
            name = draft.entity.fields[0].name if draft.entity.fields else "id"
            draft.columns.append(fallback(name, "no other column of the table can be generated."))
        for _ in range(_MAX_ROUNDS):
            found = _faults(draft, vocabulary)
            if not found:
                break
            generated = [column for column in draft.columns if column.field is not None]
            for index, fault in found.items():
                _simplify(draft, generated[index], fault)
        else:
            for column in draft.columns:
                if column.field is not None and column.field["type"] != "reference":
                    column.field, column.state = definition(column.column, "words"), "red"
                    column.reason = "Imported as text: the fields were not compatible with each other."
            continue
        with processor_time.table_budget():
            _apply_letter_cases(draft, vocabulary)
            _satisfy_checks(draft, vocabulary)
    return drafts


def _apply_letter_cases(draft: Draft, vocabulary: Vocabulary) -> None:
    """Convert texts to the case that a check demands, such as `name = lower(name)`, where their type allows it."""
    cases = {
        name: case for check in draft.entity.checks for name, case in check_search.letter_cases(check).items()
    }
    for column in draft.columns:
        case = cases.get(column.column.casefold())
        if case is None or column.field is None or column.field["type"] in _REFERENCE_TYPES:
            continue
        previous = column.field
        column.field = {**previous, "text_case": case}
        if _faults(draft, vocabulary):
            column.field = previous


_REFERENCE_TYPES: Final = ("reference", "foreign_key")
_SAMPLE_ROWS: Final = 64  # chosen: rows that check constraints are tried with


def _satisfy_checks(draft: Draft, vocabulary: Vocabulary) -> None:
    """Leave columns null, or fix them to one value, where generated rows would fail a check constraint."""
    if not draft.entity.checks:
        return
    rows, filled, options = sample_rows(draft, vocabulary, True), sample_rows(draft, vocabulary, False), {}
    if not rows or not filled:
        return
    for item in draft.columns:
        column = draft.entity.column(item.column)
        if column is None or item.field is None:
            continue
        is_key = item.column in draft.entity.keys
        is_reference = item.field["type"] in _REFERENCE_TYPES
        options[item.column.casefold()] = check_search.ColumnOptions(
            can_be_null=column.nullable and not is_key,
            can_be_fixed=not is_key
            and not item.field.get("unique")
            and not is_reference
            and not column.generated,
            values=_candidate_constants(column),
        )
    changes = check_search.search(draft.entity.checks, rows, filled, options)
    for item in draft.columns:
        change = changes.get(item.column.casefold())
        if change is None or item.field is None:
            continue
        kind, value = change
        if kind == "filled":
            item.field.pop("percent_blank", None)
            continue
        template_id = item.field["options"].get("template_id", "")
        if kind == "null":
            item.field, item.reason = (
                definition(item.column, "null"),
                "It stays null, because a check of the table requires it.",
            )
        else:
            constant = to_json_number(value) if isinstance(value, Decimal) else value
            if (
                isinstance(value, tuple)
                and (definition_column := draft.entity.column(item.column))
                and definition_column.type == "json"
            ):
                item.field = definition(item.column, "array", {"of": {"type": "words"}, "count": 1})
                constant = "an array"
            elif isinstance(value, tuple):
                constant = f"{{{','.join(value)}}}"
                item.field = definition(item.column, "constant", {"value": constant})
            else:
                item.field = definition(item.column, "enum", {"values": [constant]})
            item.reason = f"Always {constant}, so that the checks of the table are satisfied."
        item.state = "yellow"
        if (
            isinstance(template_id, str)
            and template_id.startswith(ENTITY_PREFIX)
            and not any(refers_to(other, template_id) for other in draft.columns)
        ):
            draft.dependencies.pop(template_id.removeprefix(ENTITY_PREFIX), None)
    _remove_incomplete_keys(draft)
    if _faults(draft, vocabulary):  # the constants did not fit after all
        for index, fault in _faults(draft, vocabulary).items():
            _simplify(draft, [item for item in draft.columns if item.field is not None][index], fault)


_EXAMPLE_ITEMS: Final = {"integer": "1", "decimal": "1", "float": "1", "text": "example", "boolean": "true"}
"""An item of an array by its type."""


def _candidate_constants(column: Column) -> tuple[Any, ...]:
    """Values of a column that are tried where a check rejects rows; arrays are tuples."""
    if column.type == "boolean":
        return True, False
    if column.type == "json":
        return (("example",),)
    if column.type == "array":
        item = _EXAMPLE_ITEMS.get(column.items or "")
        return ((), (item,)) if item else ((),)
    value = None if column.default is None else check_search.parse_constant(column.default)
    return () if value is None else (value,)


def sample_rows(draft: Draft, vocabulary: Vocabulary, blanks: bool) -> list[dict[str, Any]]:
    """Generated rows by column in lower case, without `blanks` none of them null where a field generates values;
    references are numbers. Columns without a field have their default, which is left out if it is no constant, or are
    null."""
    fields = []
    for item in draft.fields:
        field = {key: value for key, value in item.items() if key != "unique" or value is True}
        if item["type"] in _REFERENCE_TYPES:
            field = definition(item["name"], "row_number", percent_blank=item.get("percent_blank", False))
        if not blanks:
            field.pop("percent_blank", None)
        fields.append(field)
    try:
        plan = compile_plan(groups.assign(parse(fields)), vocabulary)
        bound = BoundPlan(plan, GenerationContext("checks", clock.now()))
        count = next(rows for rows in (_SAMPLE_ROWS, 8, 2, 1, 0) if not bound.row_faults(rows))
        block = bound.block(0, count)
    except (SpecError, ApiError, StopIteration):
        return []
    columns = {
        name.casefold(): values.to_pylist() for name, values in zip(bound.schema.names, block, strict=True)
    }
    for column in draft.entity.fields:
        name = column.name.casefold()
        if name in columns and column.type == "array":  # the only one that is generated is empty
            columns[name] = [() if item == "{}" else item for item in columns[name]]
        if name in columns or column.generated:
            continue
        if column.default is None:
            columns[name] = [None] * count
        elif (value := check_search.parse_constant(column.default, column.type == "array")) is not None:
            columns[name] = [value] * count
    return [{name: values[row] for name, values in columns.items()} for row in range(count)]


def refers_to(result: ColumnResult, template_id: str) -> bool:
    """Return whether a column refers to a template, or to the table of one that is not saved yet."""
    return result.field is not None and result.field["options"].get("template_id") == template_id


def _faults(draft: Draft, vocabulary: Vocabulary) -> dict[int, Fault]:
    """Return the first fault of each invalid field, by the index of the field. References are treated as numbers."""
    fields = []
    for item in draft.fields:
        if item["type"] == "reference":
            common = {key: item[key] for key in ("unique", "percent_blank") if key in item}
            fields.append(definition(item["name"], "number", {"min": 1, "max": limits.MAX_INTEGER}, **common))
        else:
            fields.append(item)
    try:
        compile_plan(field_ids.assign_ids_and_groups(parse(fields)), vocabulary)
    except SpecError as error:
        found: dict[int, Fault] = {}
        for fault in error.faults:
            match = _FIELD_INDEX.match(fault.path)
            if match is not None:
                found.setdefault(int(match[1]), fault)
        return found or {0: error.faults[0]}
    return {}


def _simplify(draft: Draft, result: ColumnResult, fault: Fault) -> None:
    """Simplify an invalid field: give it its own group, then let it repeat, then use a fixed value or text."""
    assert result.field is not None
    column = draft.entity.column(result.column)
    unique = fault.path.endswith(".unique") and result.field.get("unique")
    if unique and not result.field.get("group"):
        result.field = {**result.field, "group": result.column}
        result.reason = (
            f"{result.reason} It must be unique, so it is not consistent with the other columns of its row."
        )
    elif unique or fault.path.endswith(".group"):
        result.field = {key: value for key, value in result.field.items() if key not in ("unique", "group")}
        result.state, result.reason = "yellow", f"It may repeat: {fault.message} {result.reason}"
    elif result.field["type"] != "reference":
        nested = result.field["type"] in ("nested", "array")
        valid = json_schema.constant_field(column, fault.message) if column is not None and nested else None
        simpler = valid or fallback(result.column, fault.message)
        result.field, result.state, result.reason = simpler.field, simpler.state, simpler.reason


# --- Saving -------------------------------------------------------------------------------------------------


def save(
    actor: Actor,
    drafts: Sequence[Draft],
    describe: Callable[[Entity], str],
    quantity: int,
    connection_id: str | None = None,
    seconds: float | None = None,
) -> list[dict[str, str]]:
    """Save the templates, parents first, within `seconds` of processor time (None: the limit of a request). Return the
    tables whose template cannot be saved, with the reason, `{table, code, message, hint}`; `made` of their drafts
    stays None, and no template refers to them.

    If tables refer to each other in a circle, one is saved first without its reference and completed at the end.
    Errors other than of one template (a quota, say) undo everything, also `too_slow`: a template is compiled with
    those that it refers to, so many wide tables in a chain could take hours.
    """
    start = time.thread_time()
    seconds = limits.TABLES_SECONDS if seconds is None else seconds
    template_ids: dict[str, str] = {}
    unfinished: list[Draft] = []
    skipped: list[dict[str, str]] = []
    failed: set[str] = set()
    waiting = {item.entity.name: item for item in drafts}
    try:
        while waiting:
            if time.thread_time() - start > seconds:
                text = f"Creating the templates takes more than {seconds:,.0f} s of processor time."
                raise validation_error([Fault("tables", "too_slow", text, "Select fewer tables.")])
            independent_draft = next(
                (
                    item
                    for item in waiting.values()
                    if item.dependencies.keys() <= template_ids.keys() | failed
                ),
                None,
            )
            current_draft = independent_draft or min(
                waiting.values(),
                key=lambda draft: (
                    not all(
                        is_optional
                        for name, is_optional in draft.dependencies.items()
                        if name not in template_ids
                    ),
                    len(draft.dependencies.keys() - template_ids.keys()),
                ),
            )
            del waiting[current_draft.entity.name]
            try:
                current_draft.created_template = row_templates_templates.create(
                    actor,
                    name=current_draft.entity.name[: limits.MAX_NAME_CHARS],
                    fields=linked_fields(current_draft, template_ids),
                    description=describe(current_draft.entity),
                    quantity=quantity if current_draft.rows is None else min(quantity, current_draft.rows),
                    made_from=(connection_id, current_draft.entity.name if connection_id else None),
                )
            except ApiError as error:
                if error.code != "validation_error":
                    raise
                db.session.rollback()
                failed.add(current_draft.entity.name)
                skipped.append(_skipped_entry(current_draft.entity.name, error))
                continue
            if independent_draft is None:
                unfinished.append(current_draft)
            template_ids[current_draft.entity.name] = current_draft.created_template["id"]
        for current_draft in unfinished:
            assert current_draft.created_template is not None
            template = row_templates_templates.get(
                actor, current_draft.created_template["id"], "write", lock=True
            )
            current_draft.created_template = row_templates_templates.change(
                actor, template, {"fields": linked_fields(current_draft, template_ids)}
            )
    except BaseException:
        db.session.rollback()
        for template_id in template_ids.values():
            row_templates_templates.delete(
                actor, row_templates_templates.get(actor, template_id, "write", lock=True)
            )
        raise
    if not template_ids:
        raise validation_error(
            [
                Fault(f"entities.{item['table']}", item["code"], item["message"], item["hint"])
                for item in skipped
            ]
        )
    return skipped


def _skipped_entry(table: str, error: ApiError) -> dict[str, str]:
    """Return why a table has no template: the first fault of its fields."""
    faults = error.details.get("fields") or [{"code": error.code, "message": error.message}]
    suffix = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    first = faults[0]
    return {
        "table": table,
        "code": first["code"],
        "message": f"{first['message']}{suffix}",
        "hint": first.get("hint") or "",
    }


def linked_fields(draft: Draft, template_ids: Mapping[str, str]) -> list[Field]:
    """Return the fields, with the ids of templates instead of the names of tables. References to tables without a
    template are left out, as are options of other fields that depend on them."""
    found: list[Field] = []
    for item in draft.fields:
        template_id = item["options"].get("template_id", "")
        if not template_id.startswith(ENTITY_PREFIX):
            found.append(item)
        elif (name := template_id.removeprefix(ENTITY_PREFIX)) in template_ids:
            found.append({**item, "options": {**item["options"], "template_id": template_ids[name]}})
    counts = Counter(item["unique"] for item in found if isinstance(item.get("unique"), str))
    found = [
        {key: value for key, value in item.items() if key != "unique"}
        if counts.get(item.get("unique")) == 1  # the other part of the key was left out
        else item
        for item in found
    ]
    templates = {item["name"]: item["options"].get("template_id") for item in found}
    for index, item in enumerate(found):
        other = item["options"].get("differs_from")
        if other is not None and templates.get(other) != templates[item["name"]]:
            options = {key: value for key, value in item["options"].items() if key != "differs_from"}
            found[index] = {**item, "options": options}
    return found or [{"name": "id", "type": "row_number", "options": {}}]


def _check_has_fields(drafts: Sequence[Draft]) -> None:
    """Raise `validation_error` for tables without any field."""
    faults = [
        Fault(
            f"entities[{index}]",
            "nothing_to_make",
            f'No column of "{draft.entity.name}" can be generated.',
            "",
        )
        for index, draft in enumerate(drafts)
        if not draft.fields
    ]
    if faults:
        raise validation_error(faults)

"""Create drafts of templates from the tables of a document.

Nothing is rejected: a column that cannot be generated becomes plain text, marked red with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from webapp import clock, limits
from webapp.connectors.openapi.document import omission_reason
from webapp.connectors.schema import Column, Relation
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.engine.types.registry import find
from webapp.errors import Fault
from webapp.imports.inference.columns import ColumnResult
from webapp.imports.inference.evidence import definition
from webapp.imports.inference.named_references import named_references
from webapp.imports.readers.base import ParsedFile, Problem, Table, clean_name, fallback
from webapp.imports.services import tables
from webapp.imports.services.tables import Draft
from webapp.row_templates.services import compilation

Report = list[dict[str, Any]]


def draft_tables(
    read: ParsedFile,
    vocabulary: Vocabulary,
    rows: int,
    report_progress: Callable[[int], None] = lambda done: None,
) -> list[Draft]:
    """Return a draft for each table, linked with the drafts that it refers to. `rows`: of each template.
    `report_progress` is called with the number of finished tables."""
    entities = [table.entity for table in read.tables]
    named_relations = named_references(entities)
    drafts: list[Draft] = []
    for table in read.tables:
        report_progress(len(drafts))
        drafts.append(
            draft_parsed_table(table, entities, vocabulary, rows, named_relations.get(table.entity.name, ()))
        )
    report_progress(len(drafts))
    tables.make_valid(drafts, vocabulary)
    for draft in drafts:
        tables.limit_rows(draft, vocabulary, rows)
    return drafts


def draft_parsed_table(
    table: Table,
    entities: Sequence[Any],
    vocabulary: Vocabulary,
    rows: int,
    named_relations: Sequence[Relation] = (),
) -> Draft:
    """Return the draft of one table; see `tables.make_valid` and `tables.draft_tables`. A column without a field is
    blank if that is allowed, else text."""
    unresolved_relations = [
        relation for relation in named_relations if not {*relation.columns} & table.known_results.keys()
    ]
    draft = tables.draft_table(
        table.entity,
        table.sample,
        entities,
        {},
        None,
        vocabulary,
        rows,
        table.known_results,
        named_relations=unresolved_relations,
    )
    for result in draft.columns:
        column = table.entity.column(result.column)
        if column is not None and omission_reason(column):
            continue  # null would not be valid
        if result.column in table.rejected_columns:
            replacement = fallback(result.column, table.rejected_columns[result.column])
            result.field, result.state, result.reason = (
                replacement.field,
                replacement.state,
                replacement.reason,
            )
        elif result.field is None and result.state == "red":
            replacement = fallback(result.column, result.reason)
            result.field, result.state, result.reason = (
                replacement.field,
                replacement.state,
                replacement.reason,
            )
        elif column is not None and _is_key(column, result, table):
            result.field = definition(result.column, "row_number")
            result.state, result.reason, result.is_guessed = (
                "green",
                "The key of the row, numbered from 1.",
                False,
            )
        elif result.field is None and result.state == "yellow":
            result.field = definition(result.column, "null")
            declared = column.declared if column is not None else ""
            result.reason = (
                f"No values can be generated for {declared or 'its contents'}: it stays blank. Choose a type."
            )
        notes = table.notes.get(result.column)
        if notes:
            result.state = "yellow" if result.state == "green" else result.state
            result.reason = f"{' '.join(notes)} {result.reason}"
    return draft


def _is_key(column: Column, result: ColumnResult, table: Table) -> bool:
    """Return whether a column is an integer called `id` without further restrictions in its schema."""
    schema = column.schema or {}
    plain = not {"enum", "maximum", "multipleOf"} & schema.keys() and schema.get("minimum", 0) in (0, 1)
    is_integer_id = (
        table.entity.kind == "operation" and column.type == "integer" and column.name.casefold() == "id"
    )
    return is_integer_id and plain and result.field is not None


_EXAMPLES: Final = 3  # chosen: values of each column that a review shows
_EXAMPLE_CHARS: Final = 60


def apply_types(drafts: Sequence[Draft], types: Sequence[str], vocabulary: Vocabulary) -> list[Fault]:
    """Give columns the types that a person chose, by their place in the report; empty ones stay as they are. Return
    what is wrong with the choices."""
    faults: list[Fault] = []
    targets = [(draft, column) for draft in drafts for column in draft.columns]
    for index, (type_name, (draft, result)) in enumerate(zip(types, targets, strict=False)):
        field_type = find(type_name) if type_name.strip() else None
        if field_type is None and type_name.strip():
            text = f'"{type_name[: limits.MAX_NAME_CHARS]}" is not a field type.'
            faults.append(Fault(f"types[{index}]", "unknown_type", text, "Choose a type from the list."))
        if field_type is None or (result.field is not None and result.field["type"] == field_type.name):
            continue
        unique = result.field is not None and result.field.get("unique") is True
        field, fault = field_of_type(result.column, field_type.name, unique, vocabulary)
        if field is None:
            hint = "Keep the suggested type and change it later in the template."
            faults.append(Fault(f"types[{index}]", "not_possible", f"{result.column}: {fault}", hint))
            continue
        result.field, result.state, result.is_guessed, result.reason = (
            field,
            "green",
            False,
            "You chose this type.",
        )
        for table in list(draft.dependencies):
            if not any(tables.refers_to(other, tables.ENTITY_PREFIX + table) for other in draft.columns):
                del draft.dependencies[table]
    return faults


def field_of_type(
    column: str, kind: str, unique: bool, vocabulary: Vocabulary
) -> tuple[dict[str, Any] | None, str]:
    """Return a field of a type with its default options, unique if it can be, or None and the reason."""
    fault = ""
    for item in dict.fromkeys((unique, False)):
        field = definition(column, kind, unique=item)
        try:
            compile_plan(parse([field]), vocabulary)
        except SpecError as error:
            fault = error.faults[0].message
        else:
            return field, ""
    return None, fault


def example_values(column: str, kind: str) -> tuple[list[str], str]:
    """Return values of a field of this type with its default options, or the reason why there are none."""
    vocabulary = compilation.vocabulary()
    field, fault = field_of_type(column, kind, False, vocabulary)
    if field is None:
        return [], fault
    bound = BoundPlan(compile_plan(parse([field]), vocabulary), GenerationContext("review", clock.now()))
    if faults := bound.row_faults(_EXAMPLES):
        return [], faults[0].message
    (values,) = bound.block(0, _EXAMPLES)
    return [_as_line(value) for value in values.to_pylist()], ""


def column_values(drafts: Sequence[Draft], read: ParsedFile, vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """Return for each column of the report, in its order: the declared type, values of the source, generated values."""
    found = []
    for draft, table in zip(drafts, read.tables, strict=True):
        rows = tables.sample_rows(draft, vocabulary, True)[:_EXAMPLES]
        for item in draft.columns:
            column = table.entity.column(item.column)
            source: list[Any] = []
            if table.sample is not None and item.column in table.sample.schema.names:
                source = [
                    value for value in table.sample.column(item.column).to_pylist() if value is not None
                ][:_EXAMPLES]
            generated = [row.get(item.column.casefold()) for row in rows] if item.field is not None else []
            found.append(
                {
                    "declared": column.declared if column is not None else "",
                    "source": [_as_line(value) for value in source],
                    "generated": [_as_line(value) for value in generated],
                }
            )
    return found


def _as_line(value: Any) -> str:
    """Return a value as one short line."""
    if value is None:
        return ""
    if isinstance(value, dict | list):
        value = orjson.dumps(value, default=str).decode()
    return clean_name(value)[:_EXAMPLE_CHARS]


def report(drafts: Sequence[Draft], problems: Sequence[Problem]) -> Report:
    """Return the result for each column, and what was left out, for the API."""
    rows = [row for draft in drafts for row in tables.report(draft)]
    problem_rows = [
        {
            "table": problem.table,
            "column": problem.column,
            "type": None,
            "state": problem.state,
            "confidence": "unknown",
            "reason": problem.reason,
        }
        for problem in problems[: limits.IMPORT_PROBLEMS]
    ]
    if len(problems) > len(problem_rows):
        text = f"{len(problems) - len(problem_rows):,} more tables and columns were not imported."
        problem_rows.append(
            {"table": "", "column": "", "type": None, "state": "red", "confidence": "unknown", "reason": text}
        )
    return rows + problem_rows


def rows_of_table(report: Report, table: str) -> Report:
    """Return the rows of one table."""
    return [row for row in report if row["table"] == table]

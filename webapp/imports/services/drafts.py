"""Tables that were read from a document, as drafts of templates that can be saved.

Nothing here is rejected: a column that cannot be made becomes plain text, marked red with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webapp import limits
from webapp.connectors.openapi.metadata import left_out
from webapp.connectors.schema import Column
from webapp.engine.data.vocabulary import Vocabulary
from webapp.imports.inference.columns import Found
from webapp.imports.inference.evidence import definition
from webapp.imports.readers.base import Problem, Read, Table, fallback
from webapp.imports.services import tables
from webapp.imports.services.tables import Draft

Report = list[dict[str, Any]]


def drafted(read: Read, words: Vocabulary, rows: int) -> list[Draft]:
    """A draft for each table, those that refer to others linked with them. `rows`: of each template."""
    together = [one.entity for one in read.tables]
    return tables.settled([of_table(one, together, words, rows) for one in read.tables], words)


def of_table(table: Table, together: Sequence[Any], words: Vocabulary, rows: int) -> Draft:
    """The draft of one table; see `tables.settled`."""
    draft = tables.drafted(table.entity, table.sample, together, {}, None, words, rows, table.ready)
    for one in draft.found:
        _filled(one, table)
    return draft


def _filled(one: Found, table: Table) -> None:
    """A column for which nothing was made is blank where it may be, else text."""
    column = table.entity.column(one.column)
    if column is not None and left_out(column):
        return  # null would not be valid
    if one.column in table.reds:
        red = fallback(one.column, table.reds[one.column])
        one.field, one.state, one.reason = red.field, red.state, red.reason
    elif one.field is None and one.state == "red":
        red = fallback(one.column, one.reason)
        one.field, one.state, one.reason = red.field, red.state, red.reason
    elif column is not None and _is_key(column, one, table):
        one.field = definition(one.column, "row_number")
        one.state, one.reason, one.guessed = "green", "The key of the row, counted from 1.", False
    elif one.field is None and one.state == "yellow":
        one.field = definition(one.column, "null")
        declared = column.declared if column is not None else ""
        one.reason = f"Nothing is made for {declared or 'what it holds'}: it stays blank. Pick a type for it."
    notes = table.notes.get(one.column)
    if notes:
        one.state = "yellow" if one.state == "green" else one.state
        one.reason = f"{' '.join(notes)} {one.reason}"


def _is_key(column: Column, one: Found, table: Table) -> bool:
    """A whole number called id, of which a schema says no more than that."""
    said = column.schema or {}
    plain = not {"enum", "maximum", "minimum", "multipleOf"} & said.keys() or said.get("minimum") in (0, 1)
    plain = plain and not {"enum", "maximum", "multipleOf"} & said.keys()
    whole = table.entity.kind == "operation" and column.type == "integer" and column.name.casefold() == "id"
    return whole and plain and one.field is not None


def report(drafts: Sequence[Draft], problems: Sequence[Problem]) -> Report:
    """What each column came to, and what was left out, as the API shows it."""
    rows = [row for one in drafts for row in tables.report(one)]
    told = [
        {
            "table": one.table,
            "column": one.column,
            "type": None,
            "state": one.state,
            "confidence": "unknown",
            "reason": one.reason,
        }
        for one in problems[: limits.IMPORT_PROBLEMS]
    ]
    if len(problems) > len(told):
        text = f"{len(problems) - len(told):,} more tables and columns were left out."
        told.append(
            {"table": "", "column": "", "type": None, "state": "red", "confidence": "unknown", "reason": text}
        )
    return rows + told


def told_of(report: Report, table: str) -> Report:
    """The rows of one table."""
    return [row for row in report if row["table"] == table]

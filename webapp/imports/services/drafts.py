"""Tables that were read as drafts of templates: inferred, linked, and mended until they can be saved.

Nothing here refuses: a column that cannot be made becomes one of plain text, red, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from webapp import limits
from webapp.connectors.shape import Column
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.errors import Fault
from webapp.imports.inference.columns import Found
from webapp.imports.inference.evidence import definition
from webapp.imports.readers.base import Problem, Read, Table, fallback
from webapp.imports.services import tables
from webapp.imports.services.tables import HERE, Draft

Report = list[dict[str, Any]]
_ROUNDS: Final = 8  # chosen: a field takes two steps at most, and faults come to light together
_PLACE: Final = re.compile(r"fields\[(\d+)\]")


def drafted(read: Read, words: Vocabulary, rows: int) -> list[Draft]:
    """A draft for each table, those that refer to others linked with them. `rows`: of each template."""
    together = [one.entity for one in read.tables]
    return settled([of_table(one, together, words, rows) for one in read.tables], words)


def of_table(table: Table, together: Sequence[Any], words: Vocabulary, rows: int) -> Draft:
    """The draft of one table; see `settled`."""
    draft = tables.drafted(table.entity, table.sample, together, {}, None, words, rows, table.ready)
    for one in draft.found:
        _filled(one, table)
    return draft


def _filled(one: Found, table: Table) -> None:
    """A column for which nothing was made is blank where it may be, else text."""
    column = table.entity.column(one.column)
    if one.column in table.reds:
        red = fallback(one.column, table.reds[one.column])
        one.field, one.state, one.reason = red.field, red.state, red.reason
    elif one.field is None and one.state == "red":
        red = fallback(one.column, one.reason)
        one.field, one.state, one.reason = red.field, red.state, red.reason
    elif column is not None and _is_key(column, one, table):
        one.field = definition(one.column, "row_number")
        one.state, one.reason = "green", "The key of the row, counted from 1."
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
    plain = not {"enum", "const", "maximum", "exclusiveMaximum"} & said.keys()
    whole = table.entity.kind == "operation" and column.type == "integer" and column.name.casefold() == "id"
    return whole and plain and one.field is not None


def settled(drafts: list[Draft], words: Vocabulary) -> list[Draft]:
    """Drafts each of which can be saved: what does not fit is mended in steps, and told."""
    by_table = {one.entity.name: one for one in drafts}
    for draft in drafts:
        _check_parents(draft, by_table)
    for draft in drafts:
        if not draft.fields:
            name = draft.entity.fields[0].name if draft.entity.fields else "id"
            draft.found.append(fallback(name, "nothing else of the table can be made."))
        for _ in range(_ROUNDS):
            found = _faults(draft, words)
            if not found:
                break
            made = [one for one in draft.found if one.field is not None]
            for place, fault in found.items():
                _step(made[place], fault)
        else:
            for one in draft.found:
                if one.field is not None and one.field["type"] != "reference":
                    one.field, one.state = definition(one.column, "words"), "red"
                    one.reason = "Plain text stands for it: the fields did not fit together."
    return drafts


def _check_parents(draft: Draft, by_table: Mapping[str, Draft]) -> None:
    """References to columns that are not made become what plain text can be."""
    for one in draft.found:
        if one.field is None or one.field["type"] != "reference":
            continue
        asked, shown = one.field["options"]["template_id"], one.field["options"]["field"]
        parent = draft if asked == "self" else by_table.get(asked.removeprefix(HERE))
        there = parent is not None and any(
            other.column == shown and other.field is not None for other in parent.found
        )
        if parent is not None and there:
            continue
        red = fallback(
            one.column, f"it refers to {shown} of {asked.removeprefix(HERE)}, of which nothing is made."
        )
        one.field, one.state, one.reason = red.field, red.state, red.reason
        if asked.startswith(HERE) and not any(_refers(other, asked) for other in draft.found):
            draft.waits.pop(asked.removeprefix(HERE), None)


def _refers(one: Found, asked: str) -> bool:
    return one.field is not None and one.field["options"].get("template_id") == asked


def _faults(draft: Draft, words: Vocabulary) -> dict[int, Fault]:
    """The first fault of each field that has one, by its place; references stand for what they show."""
    alone = [_stub(one) for one in draft.fields]
    try:
        compile_plan(parse(alone), words)
    except SpecError as error:
        found: dict[int, Fault] = {}
        for fault in error.faults:
            place = _PLACE.match(fault.path)
            if place is not None:
                found.setdefault(int(place[1]), fault)
        return found or {0: error.faults[0]}
    return {}


def _stub(one: dict[str, Any]) -> dict[str, Any]:
    if one["type"] != "reference":
        return one
    kept = {key: one[key] for key in ("unique", "percent_blank") if key in one}
    return definition(one["name"], "number", {"min": 1, "max": limits.MAX_INTEGER}, **kept)


def _step(one: Found, fault: Fault) -> None:
    """First without what makes it unique, then as text."""
    assert one.field is not None
    if fault.path.endswith(".unique") and one.field.get("unique"):
        one.field = {key: value for key, value in one.field.items() if key != "unique"}
        one.state, one.reason = "yellow", f"It may repeat: {fault.message} {one.reason}"
    elif one.field["type"] != "reference":
        red = fallback(one.column, fault.message)
        one.field, one.state, one.reason = red.field, red.state, red.reason


def report(drafts: Sequence[Draft], problems: Sequence[Problem]) -> Report:
    """What each column came to, and what was left out, as the API shows it."""
    rows = [row for one in drafts for row in tables.report(one)]
    told = [
        {"table": one.table, "column": one.column, "type": None, "state": one.state, "reason": one.reason}
        for one in problems[: limits.IMPORT_PROBLEMS]
    ]
    if len(problems) > len(told):
        text = f"{len(problems) - len(told):,} more tables and columns were left out."
        told.append({"table": "", "column": "", "type": None, "state": "red", "reason": text})
    return rows + told


def told_of(report: Report, table: str) -> Report:
    """The rows of one table."""
    return [row for row in report if row["table"] == table]

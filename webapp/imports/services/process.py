"""The part of an import that runs in a document process: from the bytes of a file to drafts of templates.

Each function gets the document as a file and returns JSON. Error of all: validation_error (`unreadable`) if the file
cannot be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from webapp.engine.data import vocabulary
from webapp.engine.data.vocabulary import Vocabulary
from webapp.errors import Fault, did_you_mean, validation_error
from webapp.imports.inference.named_references import named_references
from webapp.imports.readers import formats
from webapp.imports.readers.base import Read, Source, Unreadable
from webapp.imports.services import drafts, tables


def drafted(
    file: IO[bytes],
    name: str,
    form: str,
    vocabulary_folder: str,
    rows: int,
    types: Sequence[str] = (),
    samples: bool = False,
    progress: str = "",
) -> dict[str, Any]:
    """Return a draft for each table: `format`, `drafts`, `report`, with `samples` also `shown`
    (see `drafts.column_values`).

    `rows`: of each template. `types`: those that a person chose, by the place of the column in the report.
    `progress`: a file in which the number of finished tables and of all tables are written. Error: validation_error.
    """
    words = vocabulary.default(Path(vocabulary_folder))
    read = _read_document(file, name, form, words)

    def tell(done: int) -> None:
        if progress:
            Path(progress).write_text(f"{done} {len(read.tables)}")

    template_drafts = drafts.draft_tables(read, words, rows, tell)
    if any(types):
        if faults := drafts.apply_types(template_drafts, types, words):
            raise validation_error(faults)
        tables.make_valid(template_drafts, words)
    return {
        "format": read.format,
        "drafts": [draft.to_json() for draft in template_drafts],
        "report": drafts.report(template_drafts, read.problems),
        "shown": drafts.column_values(template_drafts, read, words) if samples else [],
    }


def compared(
    file: IO[bytes],
    name: str,
    form: str,
    vocabulary_folder: str,
    rows: int,
    table: str | None,
    likely: Sequence[str],
    known: Sequence[str],
) -> dict[str, Any]:
    """Return the draft of one table, linked with tables that it refers to: `format`, `draft`, `report`.

    `table` is the requested table; None: the first of `likely` that is in the file, else the only one.
    `known` are tables that have templates. Error: validation_error, also where the table is not in the file.
    """
    words = vocabulary.default(Path(vocabulary_folder))
    read = _read_document(file, name, form, words)
    folded = {item.entity.name.casefold(): item for item in read.tables}
    candidates = [table] if table else list(likely)
    selected = next(
        (folded[candidate.casefold()] for candidate in candidates if candidate.casefold() in folded), None
    )
    if selected is None and len(read.tables) == 1 and not table:
        selected = read.tables[0]
    if selected is None:
        names = [item.entity.name for item in read.tables]
        text = f'There is no table "{candidates[0]}" in the file.'
        hint = (
            did_you_mean(candidates[0], names)
            or f"It has: {', '.join(names[:20])}. Set `table` to one of them."
        )
        raise validation_error([Fault("table", "unknown_entity", text, hint)])
    entities = [item.entity for item in read.tables if item.entity.name in known or item is selected]
    named = named_references([item.entity for item in read.tables]).get(selected.entity.name, ())
    draft = drafts.of_table(selected, entities, words, rows, named)
    parents = [wait for wait in draft.waits if wait in known]
    others = [drafts.of_table(item, [], words, 1) for item in read.tables if item.entity.name in parents]
    tables.make_valid([draft, *others], words)
    report = drafts.rows_of_table(drafts.report([draft], read.problems), selected.entity.name)
    return {"format": read.format, "draft": draft.to_json(), "report": report}


def _read_document(file: IO[bytes], name: str, form: str, vocabulary: Vocabulary) -> Read:
    try:
        return formats.read(Source(file.read(), name), form, vocabulary)
    except Unreadable as error:
        raise unreadable(name, str(error), error.hint) from None


def unreadable(name: str, message: str, hint: str) -> Exception:
    """Return the error for a document that cannot be read; `name` is that of the file, "" for a text."""
    return validation_error([Fault("file" if name else "content", "unreadable", message, hint)])

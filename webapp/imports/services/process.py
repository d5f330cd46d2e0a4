"""The part of an import that runs in a document process: from the bytes of a file to drafts of templates.

Each function gets the document as a file and returns JSON. Error of all: validation_error (`unreadable_error`) if the
file cannot be read.
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
from webapp.imports.readers.base import ParsedFile, Source, UnreadableFileError
from webapp.imports.services import drafts, tables


def draft_document(
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
    default_vocabulary = vocabulary.open_default(Path(vocabulary_folder))
    read = _read_document(file, name, form, default_vocabulary)

    def write_progress(done: int) -> None:
        if progress:
            Path(progress).write_text(f"{done} {len(read.tables)}")

    template_drafts = drafts.draft_tables(read, default_vocabulary, rows, write_progress)
    if any(types):
        if faults := drafts.apply_types(template_drafts, types, default_vocabulary):
            raise validation_error(faults)
        tables.make_valid(template_drafts, default_vocabulary)
    return {
        "format": read.format,
        "drafts": [draft.to_json() for draft in template_drafts],
        "report": drafts.report(template_drafts, read.problems),
        "shown": drafts.column_values(template_drafts, read, default_vocabulary) if samples else [],
    }


def compare_document(
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
    default_vocabulary = vocabulary.open_default(Path(vocabulary_folder))
    read = _read_document(file, name, form, default_vocabulary)
    tables_by_name = {item.entity.name.casefold(): item for item in read.tables}
    candidates = [table] if table else list(likely)
    selected = next(
        (
            tables_by_name[candidate.casefold()]
            for candidate in candidates
            if candidate.casefold() in tables_by_name
        ),
        None,
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
    named_relations = named_references([item.entity for item in read.tables]).get(selected.entity.name, ())
    draft = drafts.draft_parsed_table(selected, entities, default_vocabulary, rows, named_relations)
    parents = [table_name for table_name in draft.dependencies if table_name in known]
    parent_drafts = [
        drafts.draft_parsed_table(item, [], default_vocabulary, 1)
        for item in read.tables
        if item.entity.name in parents
    ]
    tables.make_valid([draft, *parent_drafts], default_vocabulary)
    report = drafts.rows_of_table(drafts.report([draft], read.problems), selected.entity.name)
    return {"format": read.format, "draft": draft.to_json(), "report": report}


def _read_document(file: IO[bytes], name: str, form: str, vocabulary: Vocabulary) -> ParsedFile:
    try:
        return formats.read(Source(file.read(), name), form, vocabulary)
    except UnreadableFileError as error:
        raise unreadable_error(name, str(error), error.hint) from None


def unreadable_error(name: str, message: str, hint: str) -> Exception:
    """Return the error for a document that cannot be read; `name` is that of the file, "" for a text."""
    return validation_error([Fault("file" if name else "content", "unreadable", message, hint)])

"""Samples for `personal`: rows that a caller sends, the head of a workspace file, the first rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import IO, Any

import orjson
import pyarrow as pa

from webapp import document_process, limits, storage
from webapp.engine.data import vocabulary
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.models import Connection
from webapp.services import (
    connection_looks,
    personal,
    plans,
    real_files,
    real_spool,
    tenancy,
    vocabularies,
    workspace_files,
)
from webapp.services import workspace_files_kept as kept
from webapp.services.actors import Actor
from webapp.services.personal import Found

Sample = dict[str, list[Any]]


def of_rows(rows: Sequence[Mapping[str, Any]], table: str = "") -> list[Found]:
    """Of rows as JSON has them. Error: validation_error, for more columns than a template may have."""
    columns: Sample = {name: [] for row in rows for name in row}
    if len(columns) > limits.MAX_FIELDS:
        told = f"These rows have {len(columns):,} columns; {limits.MAX_FIELDS:,} is the most."
        raise validation_error([Fault("rows", "too_many", told)])
    for row in rows:
        for name, values in columns.items():
            values.append(_plain(row.get(name)))
    return _classified(table, columns)


def of_sample(table: str, rows: pa.Table) -> list[Found]:
    """Of rows that have been read; ``table`` may be empty."""
    few = rows.slice(0, limits.CLASSIFY_ROWS)
    return _classified(table, {name: _values(few.column(name)) for name in few.column_names})


def of_file(actor: Actor, name: str, sheet: str | None = None) -> list[Found]:
    """Of the first rows of a workspace file. Errors: not_found, validation_error for what holds no rows."""
    file = workspace_files.find(actor, name)
    called, key = file.name, file.storage_key
    plans.vocabulary()  # so that it is on the disk, where the process opens it
    db.session.rollback()  # nothing is held while the file is read
    arguments = {"name": called, "sheet": sheet, "vocabulary_folder": str(vocabularies.home())}
    try:
        with real_spool.unnamed() as copy:
            for piece in kept.pieces(key):
                copy.write(piece)
            found = document_process.run("webapp.services.classify:in_process", copy, arguments)
    except storage.MissingError:
        raise ApiError("conflict", f'The file "{called}" was just replaced. Ask again.') from None
    except document_process.DocumentError as error:
        raise validation_error([Fault("file", "not_readable", error.message, error.hint)]) from None
    return [Found(**one) for one in found]


def in_process(file: IO[bytes], name: str, sheet: str | None, vocabulary_folder: str) -> list[dict[str, Any]]:
    """The columns of a file's first rows. Runs in a document process. Error: validation_error."""
    found = _of_batches(real_files.batches(file, name, sheet))
    table = name.rpartition("/")[2].partition(".")[0]
    words = vocabulary.default(Path(vocabulary_folder))
    return [asdict(one) for one in personal.classify(table, found, words)]


def of_table(actor: Actor, connection_id: str, table: str) -> list[Found]:
    """Of the first rows of a connection's table. Errors: not_found, validation_error, those of connections."""
    connection = tenancy.get(actor, Connection, connection_id, "write")
    known = connection_looks.metadata(actor, connection)
    entity = next((one for one in known.entities if one.name == table), None)
    if entity is None:
        told = f'There is no table "{table}" behind this connection.'
        hint = (
            did_you_mean(table, [one.name for one in known.entities])
            or "GET /connections/{id}/metadata lists them."
        )
        raise validation_error([Fault("table", "unknown_table", told, hint)])
    db.session.commit()
    rows = min(limits.CLASSIFY_ROWS, limits.INFER_SAMPLE_ROWS)
    batch = connection_looks.samples(connection, [entity.name], rows, limits.FETCH_SECONDS).get(entity.name)
    names = [one.name for one in entity.fields]
    found: Sample = {name: [] for name in names}
    if batch is not None:
        found |= {name: _values(batch.column(name)) for name in names if name in batch.schema.names}
    return _classified(entity.name, found)


def as_json(found: Found) -> dict[str, Any]:
    """A column as the API tells of it."""
    return {
        "name": found.name,
        "kind": found.kind,
        "sensitive": found.sensitive,
        "confidence": found.confidence,
        "reason": found.reason,
        "type": found.type,
        "masking": found.masking,
    }


def _of_batches(batches: Any) -> Sample:
    found: Sample = {}
    left = limits.CLASSIFY_ROWS
    for batch in islice(batches, limits.CLASSIFY_ROWS):
        some = batch.slice(0, left)
        for name, column in zip(some.schema.names, some.columns, strict=True):
            found.setdefault(name, []).extend(_values(column))
        left -= some.num_rows
        if left <= 0:
            break
    return found


def _values(column: pa.Array) -> list[Any]:
    return [_plain(value) for value in column.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, dict | list):
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    return value.hex() if isinstance(value, bytes) else value


def _classified(table: str, columns: Sample) -> list[Found]:
    return personal.classify(table, columns, plans.vocabulary())

"""Upload a file as the source of rows: stored as a workspace file, without replacing another one."""

from __future__ import annotations

import hashlib
from typing import IO, Any, Final

import flask

from webapp import limits
from webapp.access.actors import Actor
from webapp.errors import ApiError, Fault, validation_error
from webapp.files import names
from webapp.files.models import WorkspaceFile
from webapp.files.services import files as files_files
from webapp.sources.services import files

_KNOWN: Final = "CSV, TSV, JSON, NDJSON, XLSX or Parquet, detected by the file extension."


def kept_apart(actor: Actor, request: flask.Request) -> WorkspaceFile:
    """Save the uploaded file of a form. If a file with the same name and content exists, it is used. If the content
    differs, the upload gets the next unused name (`customers (2).csv`), so that templates keep their source unchanged.

    Errors: validation_error if there is no file or it has no rows, payload_too_large, those of `upload`.
    """
    sent = next((one for one in request.files.getlist("file") if one.filename), None)
    if sent is None:
        raise validation_error(
            [Fault("file", "missing", "There is no file in the form.", "Choose one, or drop it.")]
        )
    name = (sent.filename or "").replace("\\", "/").rpartition("/")[2]
    if files.kind_of(name) is None:
        text = f'The name of "{name}" does not have a known file extension.'
        raise validation_error([Fault("file", "not_readable", text, f"Rows are read from {_KNOWN}")])
    sha256 = _digest(sent.stream)
    for number in range(1, limits.MAX_NAME_TRIES + 1):
        wanted = names.normal(name if number == 1 else _numbered(name, number))
        present = _present(actor, wanted)
        if present is not None and present.sha256 == sha256:
            return present
        if present is None:
            return files_files.upload(actor, wanted, sent.stream, content_type=sent.mimetype, check=_new)[0]
    text = f'There are {limits.MAX_NAME_TRIES} files called like "{name}" already.'
    raise ApiError("conflict", text, {"hint": "Rename yours."})


def _present(actor: Actor, name: str) -> WorkspaceFile | None:
    try:
        return files_files.find(actor, name)
    except ApiError as error:
        if error.code != "not_found":
            raise
        return None


def _new(file: WorkspaceFile | None) -> None:
    """Another one came in between: it is not replaced."""
    if file is not None:
        raise ApiError("conflict", "A file of this name has just been stored. Try again.")


def _numbered(name: str, number: int) -> str:
    stem, dot, ending = name.rpartition(".")
    return f"{stem} ({number}){dot}{ending}"


def _digest(stream: IO[Any]) -> str:
    stream.seek(0)
    found = hashlib.sha256()
    while piece := stream.read(limits.STORAGE_CHUNK_BYTES):
        found.update(piece)
    stream.seek(0)
    return found.hexdigest()

"""Source of a template's rows: the form (generated, a file, a table or a query) and the upload of a file for it.

The builder shows it as a card next to the fields, and the page of masked copies as its first step. The pages show only
the column names of a source, and query a target for them only after the user has requested it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any, Final

import flask
from pydantic import ValidationError

from webapp import limits
from webapp.access.actors import Actor
from webapp.builder.forms import draft
from webapp.builder.views.builder_context import Choice, Tables
from webapp.engine.source_data import SourceSpec
from webapp.errors import ApiError, Fault, validation_error
from webapp.files import names
from webapp.files.models import WorkspaceFile
from webapp.files.services import files as files_files
from webapp.sources.services import files, sources
from webapp.sources.services import files as real_data_files

# Upload a file as the source of rows: stored as a workspace file, without replacing another one.

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


WAYS: Final = (
    ("", "Generated"),
    ("file", "File"),
    ("table", "Database table"),
    ("query", "Query"),
)


@dataclass
class SourceCard:
    """Context of the template `templates/draft.html`. `given`: a source as sent, None without one. `asks`: targets may
    be queried. `way`: the selection if there is no other value yet."""

    actor: Actor
    given: Mapping[str, Any] | None
    asks: bool = False
    way: str = ""
    error: ApiError | None = None

    @property
    def chosen(self) -> str:
        """The way that is chosen."""
        return draft.way_of(self.given) or self.way

    def said(self, name: str) -> Any:
        """Return the value of a control of the form."""
        value = (self.given or {}).get(name)
        return "" if value is None else value

    @property
    def title(self) -> str:
        """The source in a few words; "" for none."""
        if not self.given:
            return ""
        if self.given.get("file"):
            return str(self.given["file"])
        where = self.tables.connection(str(self.given.get("connection_id") or ""))
        return f"{self.given.get('table') or 'a query'}, {where}"

    @cached_property
    def tables(self) -> Tables:
        """The connections and what they hold."""
        return Tables(self.actor, self.asks)

    @property
    def connections(self) -> list[Choice]:
        """The connections that rows can be read from."""
        found = self.tables.connections("tables")
        wanted = str(self.said("connection_id"))
        known = [one for one, _ in found]
        return [*found, (wanted, self.tables.connection(wanted))] if wanted and wanted not in known else found

    @cached_property
    def files(self) -> list[str]:
        """Files of the workspace that hold rows, those of late first."""
        page = files_files.listing(self.actor, limit=limits.PAGE_LIMIT_MAX)
        return [one.name for one in page.items if real_data_files.kind_of(one.name) is not None]

    @property
    def table_names(self) -> list[str]:
        """Return the tables of the selected connection, if they are known."""
        return self.tables.tables(str(self.said("connection_id")))[: limits.PICKED_TABLES]

    @cached_property
    def columns(self) -> list[str]:
        """Return the names of the source's columns; empty if they are not known."""
        if not self.given:
            return []
        try:
            spec = SourceSpec.model_validate(dict(self.given))
            if spec.table is not None:
                return self.tables.columns(spec.connection_id or "", spec.table)
            if spec.query is not None and not self.asks:
                return []
            names: list[str] = sources.sample(self.actor, spec, 1).column_names
            return names
        except ValidationError:  # incomplete input; the error is shown when the user saves
            return []
        except ApiError as error:
            self.error = error
            return []

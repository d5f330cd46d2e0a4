"""Open the sources of templates: for a request, and again from pins.

    source = sources.open_source(actor, source, keep=True) # before its rows are counted
    answer = sources.load(place)                           # in a worker, from the pins

A workspace file is pinned by its id and SHA-256: the same bytes are read again, or the work fails with a
clear error. The rows of a connection are read once, on request. For an export or a push they are stored until
they are no longer needed (`limits.SOURCE_RETENTION_HOURS`), because the rows of a database may change between two
reads.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import pyarrow as pa
import pyarrow.compute as pc
from flask import current_app
from sqlalchemy import select

from webapp import clock, limits, storage
from webapp.access.actors import Actor
from webapp.connections.models import Connection
from webapp.connections.services import access
from webapp.connections.services.access import time_limited
from webapp.connectors.base import ConnectorError, TableReader
from webapp.engine.errors import SpecError
from webapp.engine.external_values import ExternalRequest, ExternalResponse, LoadedSource
from webapp.engine.masking import KeyRing
from webapp.engine.source_data import SourceSpec, SourceTable
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db, read_session
from webapp.files import services as files_services
from webapp.files.models import WorkspaceFile
from webapp.row_templates.models import Template
from webapp.row_templates.services.compiled_plans import CompiledTemplate
from webapp.sources.services import fetched_files, files, masking_keys
from webapp.sources.services.files import BatchConverter, too_large


def convert_batches(batches: Iterable[pa.RecordBatch], limit: int | None = None) -> Iterator[pa.RecordBatch]:
    """Convert batches to types that the engine supports and that fit all values. All batches are written to
    disk before the first one is returned. Raises `ConnectorError`; payload_too_large."""
    with tempfile.TemporaryFile() as file:
        widest = _WidestTypes()
        rows = 0
        for batch in batches:
            widest.add(batch)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            raw = sink.getvalue()
            file.write(len(raw).to_bytes(8, "little"))
            file.write(raw)
            rows += batch.num_rows
            if limit is not None and rows >= limit:
                break
            if rows > limits.SOURCE_ROWS or file.tell() > limits.SOURCE_BYTES:
                raise too_large()
        if not widest.columns:
            raise ConnectorError(
                "The query returns no columns.", reason="no_column", hint="Use a SELECT statement."
            )
        schema = widest.schema()
        kinds = BatchConverter(schema)
        file.seek(0)
        while size := file.read(8):
            for batch in pa.ipc.open_stream(pa.py_buffer(file.read(int.from_bytes(size, "little")))):
                yield kinds.convert(_cast_batch(batch, schema))


def _cast_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the widest types. Numbers are cast; `BatchConverter` converts values that become text."""
    arrays, fields = [], []
    for column, field in zip(batch.columns, schema, strict=True):
        kind = field.type
        if pa.types.is_null(column.type) or (pa.types.is_decimal(kind) or pa.types.is_floating(kind)):
            column = column.cast(kind)
        arrays.append(column)
        fields.append(pa.field(field.name, column.type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


class _WidestTypes:
    """Collects the types of columns, and finds a type for each column that fits the values of all batches."""

    def __init__(self) -> None:
        self.columns: list[str] = []
        self._kinds: list[set[pa.DataType]] = []
        self._large: set[int] = set()

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the types of a batch."""
        if not self.columns:
            found = [str(name) for name in batch.schema.names]
            duplicate = next((name for index, name in enumerate(found) if name in found[:index]), None)
            if duplicate is not None:
                message = f'Two columns are named "{duplicate}".'
                raise ConnectorError(message, reason="no_column", hint="Give each its own name with AS.")
            if len(found) > limits.SOURCE_COLUMNS:
                text = f"There are more than {limits.SOURCE_COLUMNS:,} columns."
                raise ConnectorError(text, reason="too_large")
            self.columns = found
            self._kinds = [set() for _ in self.columns]
        for index, column in enumerate(batch.columns):
            if column.null_count < len(column):
                self._kinds[index].add(column.type)
            if pa.types.is_decimal(column.type):
                # Calculations need decimals that are small with the most decimal places of any block.
                largest = max(abs(Decimal(end.as_py() or 0)) for end in pc.min_max(column).values())
                if largest.scaleb(max(column.type.scale, 0)) >= 10**15:
                    self._large.add(index)

    def schema(self) -> pa.Schema:
        """Return the schema with the widest types."""
        return pa.schema(
            [
                pa.field(name, self._common_type(index, kinds))
                for index, (name, kinds) in enumerate(zip(self.columns, self._kinds, strict=True))
            ]
        )

    def _common_type(self, index: int, kinds: set[pa.DataType]) -> pa.DataType:
        if not kinds:
            return pa.string()
        are_exact = all(pa.types.is_integer(kind) or pa.types.is_decimal(kind) for kind in kinds)
        scales = [kind.scale for kind in kinds if pa.types.is_decimal(kind)]
        if are_exact and scales:
            is_small = index not in self._large and min(scales) >= 0 and max(scales) <= limits.MAX_DECIMALS
            has_no_integers = not any(pa.types.is_integer(kind) for kind in kinds)
            return pa.decimal128(18, max(scales)) if is_small and has_no_integers else pa.string()
        if len(kinds) == 1:
            return next(iter(kinds))
        if all(pa.types.is_integer(kind) for kind in kinds):
            return pa.int64()
        if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
            return pa.float64()
        return pa.string()


LOCATION_PREFIX: Final = "source:"
"""Return the prefix of the location of a source among the stored responses."""
FOLDER: Final = "sources"
"""Storage folder of rows from connections: by workspace and SHA-256."""
_UNORDERED_TYPES: Final = frozenset({"json", "array", "binary", "other"})
"""Types of columns that not every target can order rows by."""
_SPELLING_HINT: Final = "Check its spelling: the connection's metadata lists its tables."


def open_source(
    actor: Actor | None, source: CompiledTemplate, *, for_worker: bool = False, is_complete: bool = True
) -> CompiledTemplate:
    """Return a template with its source loaded; templates without a source are returned unchanged. `for_worker`: a
    worker will open it again. `is_complete`: otherwise a connection is only read up to the number of rows of a preview.

    Errors: validation_error for a source that does not exist or lacks columns that fields name; payload_too_large;
    those of connections.
    """
    spec = source.plan.spec.source
    if spec is None or actor is None or source.plan.loaded_source is not None:
        return source
    if spec.file is not None:
        source_rows = _open_file(
            actor, spec, _masking_keys(actor.workspace_id, source), _project_of(actor, source)
        )
    else:
        source_rows = _open_connection(
            actor, spec, _masking_keys(actor.workspace_id, source), for_worker, is_complete
        )
    answer = ExternalResponse(pa.table({}), source_rows.table.snapshot, loaded_source=source_rows)
    try:
        return replace(source, plan=source.plan.with_responses({spec.external_query().key: answer}))
    except SpecError as error:
        raise validation_error(error.faults) from None


def _project_of(actor: Actor, source: CompiledTemplate) -> str | None:
    """Return the project whose files a template reads: its own, or for a draft that of the actor."""
    if source.template_id is None:
        return actor.project_id
    return db.session.scalar(select(Template.project_id).where(Template.id == source.template_id))


def sample(actor: Actor, spec: SourceSpec, rows: int) -> pa.Table:
    """Return the first rows of a source, with real values: of a file up to its end, of a connection no more
    than a preview shows. Raises what `open_source` raises."""
    no_keys = KeyRing(0, {})
    if spec.file is not None:
        source_rows = _open_file(actor, spec, no_keys)
    else:
        limit = min(spec.limit or rows, rows)
        source_rows = _open_connection(actor, spec.model_copy(update={"limit": limit}), no_keys, False, False)
    return source_rows.table.table.slice(0, rows)


def count_rows(actor: Actor, spec: SourceSpec, limit: int) -> int:
    """Return the number of rows of a source, at most `limit`. Those of a connection are counted for FETCH_SECONDS; of a
    larger source the number is what was counted by then. Raises what `open_source` raises."""
    limit = min(limit, spec.limit or limit)
    if spec.file is not None:
        found: int = _open_file(actor, spec, KeyRing(0, {})).table.table.num_rows
        return min(found, limit)
    connection, rows = _find_connection(actor, spec), 0
    try:
        with access.open_reader(connection, limits.FETCH_SECONDS) as session:
            db.session.remove()  # release the database connection while the target is read
            with time_limited(session, limits.FETCH_SECONDS, limits.FETCH_SECONDS):
                for batch in _batches(session, spec, is_counting=True):
                    rows += batch.num_rows
                    if rows >= limit:
                        break
    except ConnectorError as error:
        if error.code != "target_timeout":
            raise _api_error(error) from None
    return min(rows, limit)


def open_field_file(actor: Actor, request: ExternalRequest, source: CompiledTemplate) -> ExternalResponse:
    """Return the rows of a workspace file that a field reads.

    Errors: validation_error at its option, those of `open_source`.
    """
    spec = SourceSpec(file=request.query["file"], sheet=request.query["sheet"])
    try:
        source_rows = _open_file(actor, spec, KeyRing(0, {}), _project_of(actor, source))
    except ApiError as error:
        if error.code != "validation_error":
            raise
        faults = [
            Fault(f"{request.path}.options.file", field["code"], field["message"], field.get("hint"))
            for field in error.details["fields"]
        ]
        raise validation_error(faults) from None
    return ExternalResponse(pa.table({}), source_rows.table.snapshot, loaded_source=source_rows)


def load(location_text: str) -> ExternalResponse:
    """Return the pinned source. Errors: conflict if its file has changed since, unavailable if it no longer exists."""
    location = _SourceLocation.parse(location_text)
    table = files.SOURCE_CACHE.get(
        location.key, lambda: _reopen_file(location) if location.file else _reopen_rows(location)
    )
    if not location.version:
        return ExternalResponse(
            pa.table({}), table.snapshot, loaded_source=LoadedSource(table, KeyRing(0, {}), location_text)
        )
    keys = masking_keys.load_keys(location.workspace)
    if location.version not in keys.keys:
        raise ApiError("unavailable", f"Masking key {location.version} of this job no longer exists.")
    return ExternalResponse(
        pa.table({}),
        table.snapshot,
        loaded_source=LoadedSource(table, KeyRing(location.version, keys.keys), location_text),
    )


def find_storage_key(text: str) -> str | None:
    """Return the storage key of a connection's rows; None for other sources."""
    if not text.startswith(LOCATION_PREFIX):
        return None
    location = _SourceLocation.parse(text)
    return None if location.file else location.storage_key


@dataclass(frozen=True, slots=True)
class _SourceLocation:
    """The location of a source, as it is stored in pins."""

    workspace: str
    sha256: str
    version: int
    """The version of the masking key."""
    file: str = ""
    """The id of a workspace file; "" for the rows of a connection."""
    name: str = ""
    sheet: str = ""
    limit: int = 0

    @property
    def key(self) -> str:
        """Return the cache key of an open source."""
        return f"{self.workspace} {self.sha256} {self.file} {self.sheet} {self.limit}"

    @property
    def storage_key(self) -> str:
        """The storage key of a connection's rows."""
        return f"{FOLDER}/{self.workspace}/{self.sha256}.arrow"

    def to_text(self) -> str:
        """Return the form in the pins."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return LOCATION_PREFIX + urlencode({name: value for name, value in values.items() if value})

    @classmethod
    def parse(cls, text: str) -> _SourceLocation:
        """Parse the form in the pins."""
        values: dict[str, Any] = dict(parse_qsl(text.removeprefix(LOCATION_PREFIX)))
        return cls(
            **{**values, "version": int(values.get("version", 0)), "limit": int(values.get("limit", 0))}
        )


def _masking_keys(workspace_id: str, source: CompiledTemplate) -> KeyRing:
    """Return the masking keys of the workspace; no keys if the template masks nothing."""
    if not any(field.common.sensitive for field in source.plan.spec.walk()):
        return KeyRing(0, {})
    db.session.remove()  # the first key is written in a separate transaction, which would wait for this one
    return masking_keys.load_keys(workspace_id)


# --- Files --------------------------------------------------------------------------------------------------


def _open_file(actor: Actor, spec: SourceSpec, keys: KeyRing, project_id: str | None = None) -> LoadedSource:
    assert spec.file is not None
    try:
        file = files_services.find(actor, spec.file, project_id=project_id)
    except ApiError as error:
        if error.code != "not_found":
            raise
        text = f'There is no file "{spec.file}" in this project.'
        hint = "Upload it, or specify another one. GET /workspace/files lists the files."
        raise validation_error([Fault("source.file", "unknown_file", text, hint)]) from None
    location = _SourceLocation(
        actor.workspace_id, file.sha256, keys.current, file.id, file.name, spec.sheet or "", spec.limit or 0
    )
    return LoadedSource(
        files.SOURCE_CACHE.get(location.key, lambda: _read_file(file, location)), keys, location.to_text()
    )


def _reopen_file(location: _SourceLocation) -> SourceTable:
    with read_session() as session:
        file = session.scalar(
            select(WorkspaceFile).where(
                WorkspaceFile.id == location.file,
                WorkspaceFile.workspace_id == location.workspace,
                WorkspaceFile.deleted_at.is_(None),
            )
        )
    details = {"file": location.name, "sha256": location.sha256}
    if file is None:
        text = f'The file "{location.name}" that these rows are taken from was deleted.'
        raise ApiError("conflict", text, {**details, "hint": "Restore it, or request the rows again."})
    if file.sha256 != location.sha256:
        text = f'The file "{location.name}" has changed since these rows were requested.'
        raise ApiError(
            "conflict", text, {**details, "present": file.sha256, "hint": "Request the rows again."}
        )
    return _read_file(file, location)


def _read_file(file: WorkspaceFile, location: _SourceLocation) -> SourceTable:
    try:
        with files.temporary_file() as copy, files.Spool() as spool:
            for piece in files_services.read_chunks(file.storage_key):
                copy.write(piece)
            copy.seek(0)
            limit = location.limit or None
            spool.write(files.read_batches(copy, location.name, location.sheet or None), limit)
            return spool.open_table(location.sha256)
    except storage.MissingError:
        raise ApiError("conflict", f'The file "{location.name}" was just replaced. Try again.') from None


# --- Connections --------------------------------------------------------------------------------------------


def _find_connection(actor: Actor, spec: SourceSpec) -> Connection:
    conditions = (Connection.id == spec.connection_id, Connection.workspace_id == actor.workspace_id)
    found = db.session.scalar(select(Connection).where(*conditions, Connection.deleted_at.is_(None)))
    if found is None or actor.role_in(found.team_id) is None:
        text = f'There is no connection "{(spec.connection_id or "")[:100]}" here.'
        hint = "It may have been deleted: restore it, or choose another one."
        raise validation_error([Fault("source.connection_id", "unknown_connection", text, hint)])
    return found


def _open_connection(
    actor: Actor, spec: SourceSpec, keys: KeyRing, for_worker: bool, is_complete: bool
) -> LoadedSource:
    connection = _find_connection(actor, spec)
    limit = (
        spec.limit
        if is_complete
        else min(spec.limit or limits.PREVIEW_SOURCE_ROWS, limits.PREVIEW_SOURCE_ROWS)
    )
    deadline = time.monotonic() + limits.SOURCE_SECONDS
    try:
        with (
            access.open_reader(connection, limits.SOURCE_SECONDS) as session,
            files.Spool() as spool,
        ):
            db.session.remove()  # release the database connection while the target is read
            with time_limited(session, deadline - time.monotonic(), limits.SOURCE_SECONDS):
                spool.write(convert_batches(_batches(session, spec), limit), limit)
            sha256 = spool.sha256()
            location = _SourceLocation(actor.workspace_id, sha256, keys.current)
            if for_worker:
                # Store the rows for a worker.
                fetched_files.put_file(
                    location.workspace, location.storage_key, spool.size(), spool.read_bytes()
                )
                expires_at = clock.now() + timedelta(hours=limits.SOURCE_RETENTION_HOURS)
                fetched_files.track_file(
                    location.workspace, connection.id, location.sha256, location.storage_key, expires_at
                )
            return LoadedSource(spool.open_table(sha256), keys, location.to_text())
    except ConnectorError as error:
        raise _api_error(error) from None


def _api_error(error: ConnectorError) -> ApiError:
    path = "source.table" if error.reason in ("no_table", "no_column") else "source"
    api_error = access.api_error(error)
    api_error.details.setdefault("path", path)
    return api_error


def _batches(
    session: TableReader, spec: SourceSpec, *, is_counting: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a source. `is_counting`: with as few columns as possible."""
    if spec.query is not None:
        yield from session.stream(spec.query)
        return
    assert spec.table is not None
    entity = session.entity(spec.table)
    if entity is None:
        raise ConnectorError(f'There is no table "{spec.table}".', reason="no_table", hint=_SPELLING_HINT)
    names = [field.name for field in entity.fields]
    if not names:
        raise ConnectorError(f'"{entity.name}" has no columns.', reason="no_column")
    order = entity.keys or [field.name for field in entity.fields if field.type not in _UNORDERED_TYPES]
    if is_counting:
        names = list(order or names)[:1]
        order = names
    empty = True
    for batch in session.keys(entity, names, spec.where or "", order):
        empty = False
        yield batch.select(names)
    if empty:
        yield pa.RecordBatch.from_arrays([pa.array([], pa.string())] * len(names), names)


def _reopen_rows(location: _SourceLocation) -> SourceTable:
    try:
        with files.Spool() as spool:
            spool.write_bytes(storage.get_storage(current_app).get(location.storage_key))
            return spool.open_table(location.sha256)
    except storage.MissingError:
        text = "The source rows of this job are no longer stored."
        raise ApiError("unavailable", text, {"snapshot": location.sha256}) from None

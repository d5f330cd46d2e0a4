"""Store responses of external sources: small ones in the database, key lists in the storage.

One response is stored per question and connection, for 30 days or as long as work in progress pins it. The
same question within that time gets the same response. The values of exports and pushes are in the storage by
their content.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
from flask import current_app
from sqlalchemy import delete, select, update

from webapp import clock, limits, storage
from webapp.access.actors import Actor
from webapp.audit.services import audit_log
from webapp.connections.models import Connection, Fetched
from webapp.engine.external_values import ExternalQuery, ExternalResponse
from webapp.errors import ApiError
from webapp.extensions import db, read_session, write_session
from webapp.files.models import StorageHold
from webapp.sources.services import sources
from webapp.sources.services.fetched_files import FOLDER, fetched_row, insert_rows, put_file, retired_question

_SETS_KEY: Final = b"rowsmith.sets"


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A stored response."""

    table: pa.Table
    snapshot: str
    rows: int


def question_hash(question: ExternalQuery, values: Iterable[Any] = ()) -> str:
    """Return the key of a question with its values. Names of fields do not matter."""
    identity = [item for item in question.settings if item[0] != "of"]
    typed_values = [[type(value).__name__, str(value)] for value in values]
    return hashlib.sha256(orjson.dumps([question.kind, identity, typed_values])).hexdigest()


def find_stored(workspace_id: str, connection_id: str, hashes: Collection[str]) -> dict[str, StoredAnswer]:
    """Return unexpired responses by the hash of their question."""
    if not hashes:
        return {}
    statement = select(
        Fetched.question, Fetched.value, Fetched.storage_key, Fetched.snapshot, Fetched.rows
    ).where(
        Fetched.workspace_id == workspace_id,
        Fetched.connection_id == connection_id,
        Fetched.question.in_(hashes),
        Fetched.expires_at > clock.now(),
    )
    with read_session() as session:
        found = session.execute(statement).all()
    answers: dict[str, StoredAnswer] = {}
    for row in found:
        if row.value is not None:
            table = _deserialize_table(base64.b64decode(row.value["arrow"]))
        else:
            assert row.storage_key is not None
            table = load(row.storage_key.removeprefix(f"{FOLDER}/").removesuffix(".arrow")).table
        answers[row.question] = StoredAnswer(table, row.snapshot, row.rows)
    return answers


def save(workspace_id: str, connection_id: str, tables: Mapping[str, pa.Table]) -> dict[str, StoredAnswer]:
    """Store responses by the hash of their question, many per transaction. Return what is stored now: of two
    concurrent requests, both get the response that was stored first."""
    answers, rows = dict[str, StoredAnswer](), list[dict[str, Any]]()
    for question, table in tables.items():
        raw = serialize_table(table)
        snapshot = hashlib.sha256(raw).hexdigest()
        row = fetched_row(workspace_id, connection_id, question, snapshot, table.num_rows)
        if len(raw) > limits.FETCHED_INLINE_BYTES:
            row["storage_key"] = _store(workspace_id, snapshot, raw)
        else:
            row["value"] = {"arrow": base64.b64encode(raw).decode()}
        answers[question] = StoredAnswer(table, snapshot, table.num_rows)
        rows.append(row)
    for start in range(0, len(rows), limits.FETCHED_BATCH):
        rejected = insert_rows(rows[start : start + limits.FETCHED_BATCH])
        existing = find_stored(workspace_id, connection_id, rejected)
        if len(existing) < len(rejected):
            raise ApiError("unavailable", "The connection or its stored responses were just deleted.")
        answers |= existing
    return answers


def forget(actor: Actor, connection: Connection) -> int:
    """Stop using responses of a connection, except for work that pins them, and commit. Return their number."""
    now = clock.now()
    conditions = (Fetched.workspace_id == actor.workspace_id, Fetched.connection_id == connection.id)
    found = db.session.scalars(select(Fetched).where(*conditions, Fetched.expires_at > now)).all()
    for row in found:
        row.question, row.expires_at = retired_question(row), now
    audit_log.record(actor, "connection.refresh_fetched", connection, join=True, forgotten=len(found))
    db.session.commit()
    return len(found)


# --- Files --------------------------------------------------------------------------------------------------


def serialize_table(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    serialized: bytes = sink.getvalue().to_pybytes()
    return serialized


def _deserialize_table(raw: bytes) -> pa.Table:
    return pa.ipc.open_file(pa.BufferReader(raw)).read_all()


def answer_of(entry: StoredAnswer) -> ExternalResponse:
    """Return the response to a question without parameters."""
    return ExternalResponse(entry.table, entry.snapshot)


def combine_answers(sets: Mapping[str, StoredAnswer]) -> ExternalResponse:
    """Combine the responses to a question's sets of values. Raises `pa.ArrowInvalid` if their types differ."""
    keys = sorted(sets)
    tables = [sets[key].table for key in keys]
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    starts = np.concatenate([[0], np.cumsum([item.num_rows for item in tables])]).astype(np.int64)
    digest = hashlib.sha256("\n".join(f"{key}\0{sets[key].snapshot}" for key in keys).encode())
    return ExternalResponse(table, digest.hexdigest(), pa.array(keys, pa.string()), starts)


def store_answer(workspace_id: str, connection_id: str, answer: ExternalResponse) -> str:
    """Make sure that a response is in the storage, and return its location for `load`."""
    table = answer.table
    if answer.keys is not None:
        sets = {
            "snapshot": answer.snapshot,
            "keys": answer.keys.to_pylist(),
            "starts": answer.starts.tolist(),
        }
        table = table.replace_schema_metadata({_SETS_KEY: orjson.dumps(sets)})
    raw = serialize_table(table)
    name = hashlib.sha256(raw).hexdigest()
    key = _store(workspace_id, name, raw)
    row = fetched_row(workspace_id, connection_id, name, answer.snapshot, table.num_rows)
    row["storage_key"] = key
    if insert_rows([row]):
        columns = Fetched.__table__.c
        with write_session() as session:
            session.execute(
                update(Fetched)
                .where(columns.workspace_id == workspace_id, columns.connection_id == connection_id)
                .where(columns.question == name)
                .values(expires_at=row["expires_at"])
            )
    return f"{workspace_id}/{name}"


def _store(workspace_id: str, name: str, raw: bytes) -> str:
    key = f"{FOLDER}/{workspace_id}/{name}.arrow"
    try:
        storage.get_storage(current_app).head(key)
    except storage.MissingError:
        put_file(workspace_id, key, len(raw), [raw])
    return key


def load(location: str) -> ExternalResponse:
    """Load what `store_answer` stored, or a source. Raises unavailable if it was deleted, and what `sources.load`
    raises."""
    if location.startswith(sources.LOCATION_PREFIX):
        return sources.load(location)
    found = _CACHE.get(location)
    if found is not None:
        return found
    try:
        raw = b"".join(storage.get_storage(current_app).get(f"{FOLDER}/{location}.arrow"))
    except storage.MissingError:
        text = "The external values of this job are no longer stored."
        raise ApiError("unavailable", text, {"snapshot": location.rpartition("/")[2]}) from None
    table = _deserialize_table(raw)
    metadata = (table.schema.metadata or {}).get(_SETS_KEY)
    if metadata is None:
        found = ExternalResponse(table, location.rpartition("/")[2])
    else:
        sets = orjson.loads(metadata)
        keys, starts = pa.array(sets["keys"], pa.string()), np.array(sets["starts"], np.int64)
        found = ExternalResponse(table, sets["snapshot"], keys, starts)
    _CACHE.put(location, found)
    return found


class _AnswerCache:
    """Responses from the storage, cached in this process; the least recently used are dropped first.
    Thread-safe."""

    def __init__(self, max_bytes: int = limits.FETCHED_MEMORY_BYTES) -> None:
        self._max_bytes, self._size = max_bytes, 0
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, ExternalResponse] = OrderedDict()

    def get(self, location: str) -> ExternalResponse | None:
        with self._lock:
            if location in self._answers:
                self._answers.move_to_end(location)
            return self._answers.get(location)

    def put(self, location: str, answer: ExternalResponse) -> None:
        with self._lock:
            if location in self._answers or answer.table.nbytes > self._max_bytes:
                return
            self._answers[location] = answer
            self._size += answer.table.nbytes
            while self._size > self._max_bytes:
                self._size -= self._answers.popitem(last=False)[1].table.nbytes


_CACHE: Final = _AnswerCache()


# --- Expiry ---


def purge(now: datetime, find_pinned_files: Callable[[Any], set[str]]) -> int:
    """Remove responses that have expired and that no job needs, files before their rows. Returns their number.

    `find_pinned_files` returns the files that exports and pushes still need, read with the given session.
    """
    columns = (Fetched.id, Fetched.storage_key)
    with read_session() as session:
        expired = session.execute(select(*columns).where(Fetched.expires_at <= now)).all()
        files = {row.storage_key for row in expired if row.storage_key}
        used = set()
        if files:
            used = find_pinned_files(session) & files
            live = select(Fetched.storage_key).where(Fetched.storage_key.in_(files), Fetched.expires_at > now)
            shared = set(session.scalars(live))
    if not expired:
        return 0
    store = storage.get_storage(current_app)
    unused = files - used - (shared if files else set())
    for key in unused:
        store.delete(key)
    row_ids = [row.id for row in expired if row.storage_key not in used]
    with write_session() as session:
        session.execute(delete(StorageHold).where(StorageHold.area == FOLDER, StorageHold.key.in_(unused)))
        for start in range(0, len(row_ids), limits.SWEEP_BATCH):
            session.execute(
                delete(Fetched).where(Fetched.id.in_(row_ids[start : start + limits.SWEEP_BATCH]))
            )
    return len(row_ids)

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
from webapp.engine.external_values import Answer, Question
from webapp.errors import ApiError
from webapp.extensions import db, reading, writing
from webapp.files.models import StorageHold
from webapp.sources.services import sources
from webapp.sources.services.fetched_files import FOLDER, _forgotten, _insert, _row, put_file

_SETS: Final = b"rowsmith.sets"


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A stored response."""

    table: pa.Table
    snapshot: str
    rows: int


def hash_of(question: Question, values: Iterable[Any] = ()) -> str:
    """Return the key of a question with its values. Names of fields do not matter."""
    said = [item for item in question.said if item[0] != "of"]
    spelled = [[type(value).__name__, str(value)] for value in values]
    return hashlib.sha256(orjson.dumps([question.kind, said, spelled])).hexdigest()


def stored(workspace_id: str, connection_id: str, hashes: Collection[str]) -> dict[str, StoredAnswer]:
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
    with reading() as session:
        found = session.execute(statement).all()
    kept: dict[str, StoredAnswer] = {}
    for row in found:
        if row.value is not None:
            table = _read(base64.b64decode(row.value["arrow"]))
        else:
            assert row.storage_key is not None
            table = load(row.storage_key.removeprefix(f"{FOLDER}/").removesuffix(".arrow")).table
        kept[row.question] = StoredAnswer(table, row.snapshot, row.rows)
    return kept


def save(workspace_id: str, connection_id: str, fresh: Mapping[str, pa.Table]) -> dict[str, StoredAnswer]:
    """Store responses by the hash of their question, many per transaction. Return what is stored now: of two
    concurrent requests, both get the response that was stored first."""
    made, found = dict[str, StoredAnswer](), list[dict[str, Any]]()
    for question, table in fresh.items():
        raw = packed(table)
        snapshot = hashlib.sha256(raw).hexdigest()
        row = _row(workspace_id, connection_id, question, snapshot, table.num_rows)
        if len(raw) > limits.FETCHED_INLINE_BYTES:
            row["storage_key"] = _put(workspace_id, snapshot, raw)
        else:
            row["value"] = {"arrow": base64.b64encode(raw).decode()}
        made[question] = StoredAnswer(table, snapshot, table.num_rows)
        found.append(row)
    for start in range(0, len(found), limits.FETCHED_SAVED):
        lost = _insert(found[start : start + limits.FETCHED_SAVED])
        theirs = stored(workspace_id, connection_id, lost)
        if len(theirs) < len(lost):
            raise ApiError("unavailable", "The connection or its answers were just removed.")
        made |= theirs
    return made


def forget(actor: Actor, connection: Connection) -> int:
    """Stop using responses of a connection, except for work that pins them, and commit. Return their number."""
    moment = clock.now()
    mine = (Fetched.workspace_id == actor.workspace_id, Fetched.connection_id == connection.id)
    found = db.session.scalars(select(Fetched).where(*mine, Fetched.expires_at > moment)).all()
    for row in found:
        row.question, row.expires_at = _forgotten(row), moment
    audit_log.record(actor, "connection.refresh_fetched", connection, join=True, forgotten=len(found))
    db.session.commit()
    return len(found)


# --- Files --------------------------------------------------------------------------------------------------


def packed(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _read(raw: bytes) -> pa.Table:
    return pa.ipc.open_file(pa.BufferReader(raw)).read_all()


def answer_of(kept: StoredAnswer) -> Answer:
    """Return the response to a question without parameters."""
    return Answer(kept.table, kept.snapshot)


def joined(sets: Mapping[str, StoredAnswer]) -> Answer:
    """Combine the responses to a question's sets of values. Raises `pa.ArrowInvalid` if their types differ."""
    keys = sorted(sets)
    tables = [sets[key].table for key in keys]
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    starts = np.concatenate([[0], np.cumsum([item.num_rows for item in tables])]).astype(np.int64)
    told = hashlib.sha256("\n".join(f"{key}\0{sets[key].snapshot}" for key in keys).encode())
    return Answer(table, told.hexdigest(), pa.array(keys, pa.string()), starts)


def keep(workspace_id: str, connection_id: str, answer: Answer) -> str:
    """Make sure that a response is in the storage, and return its location for `load`."""
    table = answer.table
    if answer.keys is not None:
        sets = {
            "snapshot": answer.snapshot,
            "keys": answer.keys.to_pylist(),
            "starts": answer.starts.tolist(),
        }
        table = table.replace_schema_metadata({_SETS: orjson.dumps(sets)})
    raw = packed(table)
    name = hashlib.sha256(raw).hexdigest()
    key = _put(workspace_id, name, raw)
    row = _row(workspace_id, connection_id, name, answer.snapshot, table.num_rows)
    row["storage_key"] = key
    if _insert([row]):
        again = Fetched.__table__.c
        with writing() as session:
            session.execute(
                update(Fetched)
                .where(again.workspace_id == workspace_id, again.connection_id == connection_id)
                .where(again.question == name)
                .values(expires_at=row["expires_at"])
            )
    return f"{workspace_id}/{name}"


def _put(workspace_id: str, name: str, raw: bytes) -> str:
    key = f"{FOLDER}/{workspace_id}/{name}.arrow"
    try:
        storage.of(current_app).head(key)
    except storage.MissingError:
        put_file(workspace_id, key, len(raw), [raw])
    return key


def load(where: str) -> Answer:
    """Load what `keep` stored, or a source. Raises unavailable if it was deleted, and what `sources.load`
    raises."""
    if where.startswith(sources.PREFIX):
        return sources.load(where)
    found = _MEMORY.get(where)
    if found is not None:
        return found
    try:
        raw = b"".join(storage.of(current_app).get(f"{FOLDER}/{where}.arrow"))
    except storage.MissingError:
        text = "The external values of this work are no longer stored."
        raise ApiError("unavailable", text, {"snapshot": where.rpartition("/")[2]}) from None
    table = _read(raw)
    told = (table.schema.metadata or {}).get(_SETS)
    if told is None:
        found = Answer(table, where.rpartition("/")[2])
    else:
        sets = orjson.loads(told)
        keys, starts = pa.array(sets["keys"], pa.string()), np.array(sets["starts"], np.int64)
        found = Answer(table, sets["snapshot"], keys, starts)
    _MEMORY.put(where, found)
    return found


class _Memory:
    """Responses from the storage, cached in this process; the least recently used are dropped first.
    Thread-safe."""

    def __init__(self, most: int = limits.FETCHED_MEMORY_BYTES) -> None:
        self._most, self._held = most, 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Answer] = OrderedDict()

    def get(self, where: str) -> Answer | None:
        with self._lock:
            if where in self._kept:
                self._kept.move_to_end(where)
            return self._kept.get(where)

    def put(self, where: str, answer: Answer) -> None:
        with self._lock:
            if where in self._kept or answer.table.nbytes > self._most:
                return
            self._kept[where] = answer
            self._held += answer.table.nbytes
            while self._held > self._most:
                self._held -= self._kept.popitem(last=False)[1].table.nbytes


_MEMORY: Final = _Memory()


# --- Expiry ---


def purge(now: datetime, pinned: Callable[[Any], set[str]]) -> int:
    """Remove answers that have expired and that no work needs, files before their rows. Returns how many.

    `pinned` reads from a session the files that exports and pushes still need.
    """
    columns = (Fetched.id, Fetched.storage_key)
    with reading() as session:
        ended = session.execute(select(*columns).where(Fetched.expires_at <= now)).all()
        files = {row.storage_key for row in ended if row.storage_key}
        used = set()
        if files:
            used = pinned(session) & files
            live = select(Fetched.storage_key).where(Fetched.storage_key.in_(files), Fetched.expires_at > now)
            shared = set(session.scalars(live))
    if not ended:
        return 0
    store = storage.of(current_app)
    unused = files - used - (shared if files else set())
    for key in unused:
        store.delete(key)
    gone = [row.id for row in ended if row.storage_key not in used]
    with writing() as session:
        session.execute(delete(StorageHold).where(StorageHold.area == FOLDER, StorageHold.key.in_(unused)))
        for start in range(0, len(gone), limits.SWEEP_BATCH):
            session.execute(delete(Fetched).where(Fetched.id.in_(gone[start : start + limits.SWEEP_BATCH])))
    return len(gone)

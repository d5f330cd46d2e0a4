"""Answers that were fetched from outside, as they are kept: small ones in the database, key lists in the storage.

One answer is kept for one question to one connection, for 30 days or as long as work in hand pins it. Whoever asks
the same within that time is given the same. What an export or a push was made of lies in the storage by its content.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
from flask import current_app
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from webapp import clock, limits, storage
from webapp.accounts.actors import Actor
from webapp.accounts.models import Workspace
from webapp.audit.services import audit_log
from webapp.connections.models import Connection, Fetched
from webapp.engine.outside import Answer, Question
from webapp.errors import ApiError
from webapp.extensions import db, reading, writing
from webapp.files.models import StorageHold
from webapp.generation.models import Export
from webapp.operations.models import END_STATES
from webapp.pushes.models import Push
from webapp.real_data.services import sources

FOLDER: Final = "fetched"
"""Where files of answers lie in the storage: by workspace and SHA-256."""


_SETS: Final = b"rowsmith.sets"


@dataclass(frozen=True, slots=True)
class Kept:
    """One answer as it is kept."""

    table: pa.Table
    snapshot: str
    rows: int


def hash_of(question: Question, values: Iterable[Any] = ()) -> str:
    """What a question is kept under, with the values that stand in it: the names of fields do not matter."""
    said = [one for one in question.said if one[0] != "of"]
    spelled = [[type(value).__name__, str(value)] for value in values]
    return hashlib.sha256(orjson.dumps([question.kind, said, spelled])).hexdigest()


def stored(workspace_id: str, connection_id: str, hashes: Collection[str]) -> dict[str, Kept]:
    """The answers that are there and have not run out, by the hash of their question."""
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
    return {row.question: Kept(_table(row.value, row.storage_key), row.snapshot, row.rows) for row in found}


def _table(value: Any, key: str | None) -> pa.Table:
    if value is not None:
        return _read(base64.b64decode(value["arrow"]))
    assert key is not None
    return load(key.removeprefix(f"{FOLDER}/").removesuffix(".arrow")).table


def save(workspace_id: str, connection_id: str, fresh: Mapping[str, pa.Table]) -> dict[str, Kept]:
    """Keep answers by the hash of their question, many a transaction; answers what is kept now: of two who ask at once
    both are given the answer of the one who came first."""
    made, found = dict[str, Kept](), list[dict[str, Any]]()
    for question, table in fresh.items():
        raw = packed(table)
        snapshot = hashlib.sha256(raw).hexdigest()
        row = _row(workspace_id, connection_id, question, snapshot, table.num_rows)
        if len(raw) > limits.FETCHED_INLINE_BYTES:
            row["storage_key"] = _put(workspace_id, snapshot, raw)
        else:
            row["value"] = {"arrow": base64.b64encode(raw).decode()}
        made[question] = Kept(table, snapshot, table.num_rows)
        found.append(row)
    for start in range(0, len(found), limits.FETCHED_SAVED):
        made |= _theirs(workspace_id, connection_id, _insert(found[start : start + limits.FETCHED_SAVED]))
    return made


def _row(workspace_id: str, connection_id: str, question: str, snapshot: str, rows: int) -> dict[str, Any]:
    moment = clock.now()
    return {
        "workspace_id": workspace_id,
        "connection_id": connection_id,
        "question": question,
        "snapshot": snapshot,
        "rows": rows,
        "fetched_at": moment,
        "expires_at": moment + timedelta(days=limits.FETCHED_DAYS),
    }


def _insert(rows: list[dict[str, Any]]) -> list[str]:
    """Adds rows of one connection in one transaction, in place of those that have run out; the questions of those that
    were not added, because another's is there or the connection is gone."""
    known = Fetched.__table__.c
    mine = (
        known.workspace_id == rows[0]["workspace_id"],
        known.connection_id == rows[0]["connection_id"],
        known.question.in_([one["question"] for one in rows]),
    )
    try:
        with writing() as session:
            for gone in session.scalars(
                select(Fetched).where(*mine, known.expires_at <= rows[0]["fetched_at"])
            ):
                gone.question = _forgotten(gone)
            session.flush()
            there = set(session.scalars(select(known.question).where(*mine)))
            fresh = [one for one in rows if one["question"] not in there]
            if fresh:
                session.execute(insert(Fetched), fresh)
    except IntegrityError:
        pass
    else:
        return [one["question"] for one in rows if one["question"] in there]
    # Somebody was quicker, between the look and the commit: which of them it was, each finds out for itself.
    return [rows[0]["question"]] if len(rows) == 1 else [lost for one in rows for lost in _insert([one])]


def _theirs(workspace_id: str, connection_id: str, questions: list[str]) -> dict[str, Kept]:
    found = stored(workspace_id, connection_id, questions)
    if len(found) < len(questions):
        raise ApiError("unavailable", "The connection or its answers were just removed.")
    return found


def _forgotten(row: Fetched) -> str:
    """A question that nobody asks: the answer stays for those who pin it."""
    return hashlib.sha256(f"forgotten {row.id} {row.question}".encode()).hexdigest()


def forget(actor: Actor, connection: Connection) -> int:
    """Answers of a connection are not used any more, except by work that pins them; commits. Returns how many there
    were."""
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
    """A table as an Arrow IPC file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _read(raw: bytes) -> pa.Table:
    return pa.ipc.open_file(pa.BufferReader(raw)).read_all()


def answer_of(kept: Kept) -> Answer:
    """The answer to a question that hangs on nothing."""
    return Answer(kept.table, kept.snapshot)


def joined(sets: Mapping[str, Kept]) -> Answer:
    """One answer of those to a question's sets of values. Raises `pa.ArrowInvalid` where they do not fit together."""
    keys = sorted(sets)
    tables = [sets[key].table for key in keys]
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    starts = np.concatenate([[0], np.cumsum([one.num_rows for one in tables])]).astype(np.int64)
    told = hashlib.sha256("\n".join(f"{key}\0{sets[key].snapshot}" for key in keys).encode())
    return Answer(table, told.hexdigest(), pa.array(keys, pa.string()), starts)


def keep(workspace_id: str, connection_id: str, answer: Answer) -> str:
    """Sees to it that an answer lies in the storage; returns what `load` finds it by."""
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


def keep_file(workspace_id: str, connection_id: str, name: str, storage_key: str, ends: datetime) -> None:
    """Remember a file in the storage until it has run out and no work pins it; asked for again, until then."""
    row = _row(workspace_id, connection_id, name, name, 0)
    row |= {"storage_key": storage_key, "expires_at": ends}
    if _insert([row]):
        again = Fetched.__table__.c
        with writing() as session:
            session.execute(
                update(Fetched)
                .where(again.workspace_id == workspace_id, again.connection_id == connection_id)
                .where(again.question == name)
                .values(expires_at=ends)
            )


def _put(workspace_id: str, name: str, raw: bytes) -> str:
    key = f"{FOLDER}/{workspace_id}/{name}.arrow"
    try:
        storage.of(current_app).head(key)
    except storage.MissingError:
        put_file(workspace_id, key, len(raw), [raw])
    return key


def put_file(workspace_id: str, key: str, size: int, pieces: Iterable[bytes]) -> None:
    """Put what was read from outside into the storage; its bytes count towards FETCHED_FILES_BYTES until it is purged.
    Error: quota_exceeded."""
    with writing() as session:
        session.execute(
            select(Workspace.id).where(Workspace.id == workspace_id).with_for_update(key_share=True)
        )
        mine = (StorageHold.workspace_id == workspace_id, StorageHold.area == FOLDER, StorageHold.key != key)
        used = int(session.scalar(select(func.coalesce(func.sum(StorageHold.bytes), 0)).where(*mine)) or 0)
        most = limits.FETCHED_FILES_BYTES
        if used + size > most:
            text = (
                f"What is kept of rows and values from connections may take {most:,} bytes. {used:,} are used, and "
                f"{size:,} more are needed. Read fewer rows, or try again later: rows are kept for "
                f"{limits.SOURCE_KEPT_HOURS} hours, and longer for exports and pushes that need them."
            )
            raise ApiError(
                "quota_exceeded", text, {"limit_bytes": most, "used_bytes": used, "file_bytes": size}
            )
        session.merge(
            StorageHold(key=key, workspace_id=workspace_id, area=FOLDER, bytes=size, updated_at=clock.now())
        )
    try:
        storage.of(current_app).put(key, pieces)
    except BaseException:
        with writing() as session:
            session.execute(delete(StorageHold).where(StorageHold.key == key))
        raise


def load(where: str) -> Answer:
    """What `keep` put into the storage, or a source. Errors: unavailable, where it is not there any more; those of
    `real_data.load`."""
    if where.startswith(sources.PREFIX):
        return sources.load(where)
    found = _MEMORY.get(where)
    if found is not None:
        return found
    try:
        raw = b"".join(storage.of(current_app).get(f"{FOLDER}/{where}.arrow"))
    except storage.MissingError:
        text = "The values that were fetched from outside for this are not kept any more."
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
    """Answers of the storage kept in the process, the least recently used go first. Safe over threads."""

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


# --- Running out --------------------------------------------------------------------------------------------


def purge(now: datetime) -> int:
    """Remove answers that have run out and that no work pins, files before their rows. Returns how many."""
    columns = (Fetched.id, Fetched.storage_key)
    with reading() as session:
        ended = session.execute(select(*columns).where(Fetched.expires_at <= now)).all()
        files = {row.storage_key for row in ended if row.storage_key}
        used = set()
        if files:
            used = _pinned(session) & files
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


def _pinned(session: Any) -> set[str]:
    """The files that open exports, and pushes as long as there are any, are made of."""
    exports = select(Export.pins).where(Export.status.not_in(END_STATES))
    pushes = select(Push.pins).where(Push.pins["snapshot"].as_string().is_not(None))
    places: set[str] = set()
    for pins in (*session.scalars(exports), *session.scalars(pushes)):
        for one in (pins, *pins.get("tables", ())):
            places.update(one.get("outside", {}).values())
    return {sources.stored_at(where) or f"{FOLDER}/{where}.arrow" for where in places}

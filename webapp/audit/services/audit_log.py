"""The audit log: every change and every data action is recorded as one entry.

With `join=True` (ordinary writes), `record` adds the entry to the caller's own transaction: both are committed or
neither. Otherwise (data actions such as generate, which write nothing else), the entries of concurrent requests are
committed together, and each request waits until its own is committed: a request with a response is in the log.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson
from flask import Flask, current_app
from sqlalchemy import Engine, PoolProxiedConnection, Table, insert

from webapp import clock, ids, limits
from webapp.access.actors import Actor
from webapp.audit.models import AuditEntry
from webapp.errors import ApiError
from webapp.extensions import application, db
from webapp.model_base import Base

_KEY: Final = "rowsmith.audit"
_THREADS: Final = "rowsmith.touches"
_creation_lock = threading.Lock()


def record(
    actor: Actor,
    action: str,
    obj: Base | tuple[str, str] | None = None,
    *,
    join: bool = False,
    rows: int | None = None,
    workspace_id: str | None = None,
    **details: Any,
) -> str:
    """Record an entry: `record(actor, "template.generate", template, rows=10, seed="s", version=3)`; returns its id.

    `obj` is a model instance or `(type, id)`. `rows` is the number of rows charged to the hourly quota. `details` is
    small JSON and never contains secrets or generated data. Without `join`, it blocks until the entry is committed
    (`unavailable` if the database does not accept it in time).
    """
    if obj is None:
        kind, object_id = "", ""
    elif isinstance(obj, tuple):
        kind, object_id = obj
    else:
        kind, object_id = object_type(obj), str(obj.id)  # type: ignore[attr-defined]  # all named tables have one
    entry_id = ids.new("aud")
    entry = {
        "id": entry_id,
        "at": clock.now(),
        "workspace_id": workspace_id or actor.workspace_id,
        "action": action,
        "object_type": kind,
        "object_id": object_id,
        "project_id": actor.project_id,
        "user_id": actor.user_id,
        "key_id": actor.key_id,
        "address": actor.address,
        "request_id": actor.request_id,
        "rows": rows,
        "details": details,
    }
    if join:
        db.session.add(AuditEntry(**entry))
    else:
        group_writer().write(entry)
    return entry_id


def object_type(obj: Base) -> str:
    """Return the type of an object in audit entries: ApiKey -> `api_key`."""
    name = type(obj).__name__
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


class _Pending:
    """An entry that is not committed yet."""

    __slots__ = ("committed", "entry", "error")

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.entry = entry
        self.committed = False
        self.error: Exception | None = None


class GroupWriter:
    """Group commit: the entries of many threads are committed together, without a separate thread.

    Each thread appends its entry to a queue and waits for a lock. The one that gets it commits all queued entries in
    one transaction; the others find theirs committed when they get the lock.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._queue: deque[_Pending] = deque()
        columns = [column.name for column in AuditEntry.__table__.columns]
        table = AuditEntry.__table__
        assert isinstance(table, Table)
        statement = insert(table).compile(dialect=engine.dialect, column_keys=columns)
        self._sql = str(statement)
        self._row = _row_converter(engine, list(statement.positiontup or columns), statement.positional)
        self._connection: PoolProxiedConnection | None = None

    @property
    def is_usable(self) -> bool:
        """Return whether this process created it: in a forked child process, the lock may never be released."""
        return self._pid == os.getpid()

    def write(self, entry: Mapping[str, Any]) -> None:
        """Commit an entry. Raises `unavailable` if it cannot be committed in time."""
        pending = _Pending(entry)
        self._queue.append(pending)
        if not self._lock.acquire(timeout=limits.AUDIT_WAIT_SECONDS):
            raise ApiError("unavailable", "The audit log could not be written in time.")
        try:
            if not pending.committed and pending.error is None:
                batch = [self._queue.popleft() for _ in range(min(len(self._queue), limits.AUDIT_BATCH))]
                self._commit(batch)
        finally:
            self._lock.release()
        if pending.error is not None:
            raise ApiError("unavailable", "The audit log could not be written.") from pending.error

    def close(self) -> None:
        """Return the connection to the pool."""
        with self._lock:
            self._disconnect()

    def _commit(self, batch: list[_Pending]) -> None:
        rows = [self._row(pending.entry) for pending in batch]
        reused = self._connection is not None
        try:
            try:
                self._insert(rows)
            except Exception:
                self._disconnect()
                if not reused:
                    raise
                self._insert(rows)  # the database was restarted, or cut an idle connection
        except Exception as error:
            self._disconnect()
            if len(batch) > 1:  # one invalid entry must not make the others fail
                for pending in batch:
                    self._commit([pending])
            else:
                batch[0].error = error
            return
        for pending in batch:
            pending.committed = True

    def _insert(self, rows: list[Any]) -> None:
        """Insert all rows in one transaction with the driver's own connection, which takes a third of the time that
        SQLAlchemy takes."""
        sqlite = self._engine.dialect.name == "sqlite"
        if self._connection is None:
            self._connection = self._engine.raw_connection()
            if sqlite:
                # An entry changes a page of each index, and because of its trigger SQLite keeps a copy of each page
                # until the end of the statement. In memory, this needs no temporary file.
                self._connection.execute("PRAGMA temp_store = MEMORY")
        cursor = self._connection.cursor()
        try:
            if sqlite:
                cursor.execute("BEGIN IMMEDIATE")  # see extensions: the driver leaves BEGIN to us
            cursor.executemany(self._sql, rows)
            self._connection.commit()
        finally:
            cursor.close()

    def _disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with contextlib.suppress(Exception):  # it may be broken already
                connection.rollback()
                if self._engine.dialect.name == "sqlite":
                    connection.execute("PRAGMA temp_store = DEFAULT")
            with contextlib.suppress(Exception):  # it may be broken already
                connection.close()


def _row_converter(engine: Engine, names: list[str], positional: bool) -> Callable[[Mapping[str, Any]], Any]:
    """Return a function that converts an entry for the database driver: times and JSON have bind processors."""
    table = AuditEntry.__table__
    processors: dict[str, Callable[[Any], Any]] = {}
    for name in names:
        processor = table.c[name].type.dialect_impl(engine.dialect).bind_processor(engine.dialect)
        if processor is not None:
            processors[name] = processor
    if (slow := processors.get("details")) is not None:  # orjson, except for integers of more than 64 bits

        def details(value: Any) -> Any:
            try:
                return orjson.dumps(value).decode()
            except TypeError:
                return slow(value)

        processors["details"] = details
    converters = [(name, processors.get(name)) for name in names]

    def row(entry: Mapping[str, Any]) -> Any:
        values = [
            entry[name] if processor is None else processor(entry[name]) for name, processor in converters
        ]
        return tuple(values) if positional else dict(zip(names, values, strict=True))

    return row


def write_later(write: Callable[..., None], *values: Any) -> None:
    """Call `write(app, *values)` in another thread. The request does not wait for it; `close` does."""
    app = application()
    thread = threading.Thread(target=write, args=(app, *values), name="last-use", daemon=True)
    running: list[threading.Thread] = app.extensions.setdefault(_THREADS, [])
    running[:] = [other for other in running if other.is_alive()] + [thread]
    thread.start()


def group_writer() -> GroupWriter:
    """Return the writer of this process for the current application."""
    app = current_app
    found: GroupWriter | None = app.extensions.get(_KEY)
    if found is None or not found.is_usable:
        with _creation_lock:
            found = app.extensions.get(_KEY)
            if found is None or not found.is_usable:
                found = app.extensions[_KEY] = GroupWriter(db.engine)
    return found


def close(app: Flask) -> None:
    """Wait for pending writes, and release the resources of this application's writer."""
    for thread in app.extensions.pop(_THREADS, []):
        if thread.ident is not None:
            thread.join(limits.AUDIT_WAIT_SECONDS)
    found: GroupWriter | None = app.extensions.pop(_KEY, None)
    if found is not None and found.is_usable:
        found.close()


# The changes in an audit entry: shortened old and new values of changed attributes, without secrets.
#
# `{key: {"from": old, "to": new}}` for plain values; of documents within (fields, headers, variables) only which of
# their keys or names changed, because those may contain anything.

MASK: Final = "********"
_NAME_KEYS: Final = ("name", "template_id", "id")  # the name of a list item is the first of these keys
_IDENTITY: Final = ("id", "template_id", "name")  # and these keys identify it
_IGNORED: Final = frozenset({"warnings", "updated_at", "version", "created_at"})


def changes_between(
    before: Mapping[str, Any], after: Mapping[str, Any], sent: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the changes between two states as they are shown: secrets are masked in both. `sent`: the requested
    change; a secret in it that differs from the mask was replaced."""
    result: dict[str, Any] = {}
    for key in dict.fromkeys([*before, *after]):
        if key in _IGNORED:
            continue
        old, new = before.get(key), after.get(key)
        requested = sent.get(key) if sent is not None else None
        if old != new:
            result[key] = _difference(key, old, new, requested)
        elif secrets := _new_secrets(new, requested):
            result[key] = {"from": MASK, "to": MASK} if secrets == [""] else {"changed": secrets}
        if len(result) >= limits.AUDIT_CHANGES:
            break
    return result


def _difference(key: str, old: Any, new: Any, requested: Any) -> Any:
    if key == "code":
        return {"lines": {"from": _line_count(old), "to": _line_count(new)}}
    if _is_list_of_objects(old) and _is_list_of_objects(new) and (old or new):
        return _compare_parts(old or [], new or [])
    if isinstance(old, Mapping) or isinstance(new, Mapping):
        old, new = (item if isinstance(item, Mapping) else {} for item in (old, new))
        changed = {name for name in {*old, *new} if old.get(name) != new.get(name)} | set(
            _new_secrets(new, requested)
        )
        return {"changed": sorted(str(name) for name in changed)[: limits.AUDIT_CHANGES]}
    return {"from": _shortened(old), "to": _shortened(new)}


def _new_secrets(masked: Any, requested: Any, path: str = "") -> list[str]:
    """Return the paths of new secrets below a value; [""] if the value itself is one."""
    if isinstance(masked, str) and MASK in masked:  # also within a connection string
        return [path] if requested is not None and MASK not in str(requested) else []
    if isinstance(masked, Mapping) and isinstance(requested, Mapping):
        return [
            found
            for name in masked
            for found in _new_secrets(
                masked[name], requested.get(name), f"{path}.{name}" if path else str(name)
            )
        ]
    return []


def _line_count(text: Any) -> int:
    return len(str(text or "").splitlines())


def _is_list_of_objects(value: Any) -> bool:
    return value is None or (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(item, Mapping) for item in value)
    )


def _compare_parts(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> dict[str, list[str]]:
    """Return the names of the fields (or tables) that were added, removed, changed, or only moved."""
    identity = next((key for key in _IDENTITY if all(key in item for item in [*old, *new])), None)
    if identity is None:
        return {"changed": []}
    before, after = {item[identity]: item for item in old}, {item[identity]: item for item in new}
    result = {
        "added": [_part_name(after[key]) for key in after if key not in before],
        "removed": [_part_name(before[key]) for key in before if key not in after],
        "changed": [_part_name(after[key]) for key in after if key in before and after[key] != before[key]],
    }
    order_after = [key for key in after if key in before]
    order_before = [key for key in before if key in after]
    result["moved"] = [
        _part_name(after[current])
        for current, previous in zip(order_after, order_before, strict=True)
        if current != previous
    ]
    return {key: names[: limits.AUDIT_CHANGES] for key, names in result.items() if names}


def _part_name(part: Mapping[str, Any]) -> str:
    return _truncated(str(next((part[key] for key in _NAME_KEYS if part.get(key)), "")))


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return _truncated(value)
    if isinstance(value, list | tuple):
        return [_shortened(item) for item in value[: limits.AUDIT_CHANGES]]
    return value


def _truncated(text: str) -> str:
    return text if len(text) <= limits.AUDIT_VALUE_CHARS else text[: limits.AUDIT_VALUE_CHARS - 1] + "…"

"""Looking at what a connection leads to: verified in stages, its metadata read, a sample of its rows taken."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final
from weakref import WeakValueDictionary

import orjson
import pyarrow as pa
from flask import current_app

from webapp import clock, limits, storage
from webapp.accounts.actors import Actor
from webapp.audit.services import audit_log
from webapp.connections.models import Connection
from webapp.connections.services.access import cached, hushing, known_metadata, told
from webapp.connectors import apart, documents, wire
from webapp.connectors.base import ConnectorError
from webapp.connectors.channel import HttpConnector
from webapp.connectors.shape import Metadata
from webapp.errors import ApiError
from webapp.extensions import db

# --- Verification -------------------------------------------------------------------------------------------


def verify(actor: Actor, connection: Connection, ours: bool = False) -> dict[str, Any]:
    """Verify a connection again, and keep the answer: `{status, stages, response, checked_at}`; commits. `ours`: its
    target is known to answer and to harm nobody, so no process of its own is started for it."""
    audit_log.record(actor, "connection.verify", connection, join=True)
    db.session.commit()
    return verified(connection, ours)


def verified(connection: Connection, ours: bool = False) -> dict[str, Any]:
    """The same for a connection that was just made or changed."""
    asked_with = connection.settings
    try:
        connector, hush = hushing(connection)
        db.session.commit()  # nothing is held open while the target is asked
        if ours:
            stages = [wire.stage_to_json(one) for one in connector.stages()]
        else:
            stages = apart.stages(connector, limits.VERIFY_SECONDS)
        response = _hushed(next((one["response"] for one in stages if one["response"]), None), hush)
        stages = [{**_plain_stage(one), "message": hush(one["message"])} for one in stages]
    except ApiError as error:  # its secrets or its settings as they are now
        stages, response = [_unasked(error)], None
    good = bool(stages) and all(one["ok"] for one in stages)
    answer = {
        "status": "verified" if good else "failed",
        "stages": stages,
        "response": response,
        "checked_at": clock.to_text(clock.now()),
    }
    if _still(connection, asked_with):
        connection.verification = answer
    db.session.commit()
    return answer


def _plain_stage(stage: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in stage.items() if name != "response"}


def _hushed(response: Mapping[str, Any] | None, hush: Callable[[str], str]) -> dict[str, Any] | None:
    """What a target answered, without the secrets that it repeats."""
    if response is None:
        return None
    return {name: hush(value) if isinstance(value, str) else value for name, value in response.items()}


def _unasked(error: ApiError) -> dict[str, Any]:
    """The stage that stands for a target which could not even be asked."""
    code, hint = error.details.get("reason", error.code), error.details.get("hint", "")
    return {"name": "resolve", "ok": False, "code": code, "message": error.message, "hint": hint, "ms": 0}


def _still(connection: Connection, settings: Mapping[str, Any]) -> bool:
    """Whether a connection, locked now, has the settings that its target was asked with."""
    db.session.refresh(connection, with_for_update=True)
    return bool(connection.settings == settings)


# --- Metadata and samples -----------------------------------------------------------------------------------


def metadata(actor: Actor, connection: Connection, refresh: bool = False) -> Metadata:
    """What the target holds: as it was last read, or read now. The actor is one who was given the connection, to
    whatever end (`get`, `tenancy.get`). Errors: those of the target."""
    found = None if refresh else known_metadata(connection)
    return found if found is not None else wire.from_json(metadata_json(actor, connection, refresh))


def metadata_json(_actor: Actor, connection: Connection, refresh: bool = False) -> dict[str, Any]:
    """The same as `wire.to_json` makes it, which takes a fifth of the time where there are thousands of tables."""
    found = None if refresh else cached(connection)
    return found if found is not None else _read_once(connection, refresh)


class _Reading:
    """One read of a connection's metadata, for every thread that asks at the same time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.began = self.ended = -math.inf  # time.monotonic
        self.settings: Any = None
        self.found: dict[str, Any] | None = None
        self.error: ApiError | None = None


_readings: Final[WeakValueDictionary[str, _Reading]] = WeakValueDictionary()
_readings_lock: Final = threading.Lock()


def _read_once(connection: Connection, refresh: bool) -> dict[str, Any]:
    """Read the metadata; requests that come at the same time share one read, and its error. With `refresh` the read
    must have begun after the request; otherwise one that was under way will do."""
    asked, settings = time.monotonic(), connection.settings
    with _readings_lock:
        reading = _readings.get(connection.id)
        if reading is None:
            reading = _readings[connection.id] = _Reading()
    db.session.commit()  # nothing is held open while another thread's read is waited for
    with reading.lock:
        if (reading.began if refresh else reading.ended) < asked or reading.settings != settings:
            reading.began, reading.settings = time.monotonic(), settings
            reading.found, reading.error = None, None
            try:
                reading.found = _read(connection)
            except ApiError as error:
                reading.error = error
                raise
            finally:
                reading.ended = time.monotonic()
        elif reading.error is not None:
            raise ApiError(reading.error.code, reading.error.message, dict(reading.error.details))
        if reading.found is None:
            raise ApiError("unavailable", "The tables of this connection could not be read. Try again.")
        return reading.found


def _read(connection: Connection) -> dict[str, Any]:
    """Ask the target in a process of its own, and keep the answer."""
    connector, hush = hushing(connection)
    asked_with = connection.settings
    db.session.commit()
    with _told(hush):
        if isinstance(connector, HttpConnector) and connector.document is not None:
            found = orjson.loads(documents.metadata(connector.kind, connector.document)[0])
        else:
            found = apart.metadata(connector, limits.METADATA_SECONDS)
    moment: datetime = clock.now()
    key = f"connections/{connection.workspace_id}/{connection.id}/metadata.json"
    storage.of(current_app).put(key, [orjson.dumps(found)])
    if _still(connection, asked_with):
        connection.metadata_key, connection.metadata_at = key, moment
    db.session.commit()
    return found


def samples(
    connection: Connection, tables: Sequence[str], rows: int, seconds: float
) -> dict[str, pa.RecordBatch]:
    """The first rows of some tables, of as many as the time reaches and the account may read. Errors: those of the
    target, where there is not even a way to it."""
    connector, hush = hushing(connection)
    db.session.commit()
    with _told(hush):
        return apart.samples(connector, tables, rows, seconds)


@contextmanager
def _told(hush: Callable[[str], str]) -> Iterator[None]:
    try:
        yield
    except ConnectorError as error:
        error.message = hush(error.message)
        raise told(error) from None

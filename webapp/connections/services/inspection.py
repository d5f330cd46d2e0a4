"""Inspect targets: verify connections in stages, read metadata, and read sample rows."""

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
from webapp.access.actors import Actor
from webapp.audit.services import audit_log
from webapp.connections.models import Connection
from webapp.connections.services.access import (
    api_error,
    cached_metadata_json,
    create_connector_and_redactor,
    known_metadata,
)
from webapp.connectors import driver_process, metadata_documents
from webapp.connectors import metadata_json as connectors_metadata_json
from webapp.connectors.base import ConnectorError
from webapp.connectors.http.channel import HttpConnector
from webapp.connectors.schema import Metadata
from webapp.errors import ApiError
from webapp.extensions import db

# --- Verification -------------------------------------------------------------------------------------------


def verify(actor: Actor, connection: Connection, is_trusted: bool = False) -> dict[str, Any]:
    """Verify a connection, save the result and commit. Returns `{status, stages, response, checked_at}`.

    `is_trusted`: the target is trusted and known to respond, so no separate process is started."""
    audit_log.record(actor, "connection.verify", connection, join=True)
    db.session.commit()
    return verify_unaudited(connection, is_trusted)


def verify_unaudited(connection: Connection, is_trusted: bool = False) -> dict[str, Any]:
    """Verify a connection that was just created or changed, without an audit entry."""
    tested_settings = connection.settings
    result = verification_result(connection, db.session.commit, is_trusted)
    if _has_settings(connection, tested_settings):
        connection.verification = result
    db.session.commit()
    return result


def verification_result(
    connection: Connection, release: Callable[[], None], is_trusted: bool = False
) -> dict[str, Any]:
    """Return the result of a verification without saving it. `release` ends the transaction before the target is
    reached, which can take long."""
    try:
        connector, redact = create_connector_and_redactor(connection)
        release()
        if is_trusted:
            stages = [connectors_metadata_json.stage_to_json(stage) for stage in connector.stages()]
        else:
            stages = driver_process.stages(connector, limits.VERIFY_SECONDS)
        response = next((stage["response"] for stage in stages if stage["response"]), None)
        if response is not None:
            response = {
                name: redact(value) if isinstance(value, str) else value for name, value in response.items()
            }
        stages = [
            {name: value for name, value in stage.items() if name != "response"}
            | {"message": redact(stage["message"])}
            for stage in stages
        ]
    except ApiError as error:  # the secrets or the settings are not usable
        code, hint = error.details.get("reason", error.code), error.details.get("hint", "")
        failed = {
            "name": "resolve",
            "ok": False,
            "code": code,
            "message": error.message,
            "hint": hint,
            "ms": 0,
        }
        stages, response = [failed], None
    is_verified = bool(stages) and all(stage["ok"] for stage in stages)
    return {
        "status": "verified" if is_verified else "failed",
        "stages": stages,
        "response": response,
        "checked_at": clock.to_text(clock.now()),
    }


def _has_settings(connection: Connection, settings: Mapping[str, Any]) -> bool:
    """Lock a connection, and return whether its settings are still those that were verified."""
    db.session.refresh(connection, with_for_update=True)
    return bool(connection.settings == settings)


# --- Metadata and samples -----------------------------------------------------------------------------------


def metadata(actor: Actor, connection: Connection, refresh: bool = False) -> Metadata:
    """Return the metadata of a target, as last read or read now. The caller has checked the actor's access to the
    connection. Errors: those of the target."""
    found = None if refresh else known_metadata(connection)
    return (
        found
        if found is not None
        else connectors_metadata_json.from_json(metadata_json(actor, connection, refresh))
    )


class _Reading:
    """A read of a connection's metadata that all threads share which need it at the same time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.began = self.ended = -math.inf  # time.monotonic
        self.settings: Any = None
        self.result: dict[str, Any] | None = None
        self.error: ApiError | None = None


_readings: Final[WeakValueDictionary[str, _Reading]] = WeakValueDictionary()
_readings_lock: Final = threading.Lock()


def metadata_json(_actor: Actor, connection: Connection, refresh: bool = False) -> dict[str, Any]:
    """Return the metadata as JSON. Takes a fifth of the time of `metadata` for thousands of tables.

    Simultaneous requests share one read and its error. With `refresh`, the read must have started after the request;
    otherwise a read in progress is sufficient."""
    found = None if refresh else cached_metadata_json(connection)
    if found is not None:
        return found
    requested_at, settings = time.monotonic(), connection.settings
    with _readings_lock:
        reading = _readings.get(connection.id)
        if reading is None:
            reading = _readings[connection.id] = _Reading()
    db.session.commit()  # release the database while waiting for another thread's read
    with reading.lock:
        if (reading.began if refresh else reading.ended) < requested_at or reading.settings != settings:
            reading.began, reading.settings = time.monotonic(), settings
            reading.result, reading.error = None, None
            try:
                reading.result = _read(connection)
            except ApiError as error:
                reading.error = error
                raise
            finally:
                reading.ended = time.monotonic()
        elif reading.error is not None:
            raise ApiError(reading.error.code, reading.error.message, dict(reading.error.details))
        if reading.result is None:
            raise ApiError("unavailable", "The tables of this connection could not be read. Try again.")
        return reading.result


def _read(connection: Connection) -> dict[str, Any]:
    """Read the metadata in a separate process, and save it."""
    connector, redact = create_connector_and_redactor(connection)
    read_settings = connection.settings
    db.session.commit()
    with _converting_errors(redact):
        if isinstance(connector, HttpConnector) and connector.document is not None:
            document = metadata_documents.metadata(connector.kind, connector.document)
            found: dict[str, Any] = orjson.loads(document[0])
        else:
            found = driver_process.metadata(connector, limits.METADATA_SECONDS)
    read_at: datetime = clock.now()
    key = f"connections/{connection.workspace_id}/{connection.id}/metadata.json"
    storage.get_storage(current_app).put(key, [orjson.dumps(found)])
    if _has_settings(connection, read_settings):
        connection.metadata_key, connection.metadata_at = key, read_at
    db.session.commit()
    return found


def read_samples(
    connection: Connection, tables: Sequence[str], rows: int, seconds: float
) -> dict[str, pa.RecordBatch]:
    """Return the first rows of tables, for those that the account can read within the time limit. Errors: those of the
    target, if it cannot be reached."""
    connector, redact = create_connector_and_redactor(connection)
    db.session.commit()
    with _converting_errors(redact):
        return driver_process.samples(connector, tables, rows, seconds)


def count_rows(connection: Connection, tables: Sequence[str], seconds: float) -> dict[str, int]:
    """Return the numbers of rows of tables, for those that could be counted within the time limit. Errors: those of the
    target, if it cannot be reached."""
    connector, redact = create_connector_and_redactor(connection)
    db.session.commit()
    with _converting_errors(redact):
        return driver_process.counts(connector, tables, seconds)


def read_existing_values(
    connection: Connection,
    columns: Mapping[str, Mapping[str, Sequence[str]]],
    maximum: int,
    seconds: float,
) -> dict[str, dict[str, Any]]:
    """Return what columns of tables contain, see `driver_process.existing_values`. Errors: those of the target, if it
    cannot be reached."""
    connector, redact = create_connector_and_redactor(connection)
    db.session.commit()
    with _converting_errors(redact):
        return driver_process.existing_values(connector, columns, maximum, seconds)


@contextmanager
def _converting_errors(redact: Callable[[str], str]) -> Iterator[None]:
    try:
        yield
    except ConnectorError as error:
        error.message = redact(error.message)
        raise api_error(error) from None

"""Metadata documents that were uploaded for a connection: used for what the target would tell, never fetched."""

from __future__ import annotations

import hashlib
from typing import Any

from flask import current_app
from sqlalchemy import func, select

from webapp import clock, limits, storage
from webapp.connectors import KINDS, documents
from webapp.connectors.base import ConnectorError
from webapp.connectors.channel import HttpConnector
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.models import Connection
from webapp.services import audit, holding, workspace_files_kept
from webapp.services.actors import Actor


def read(connection: Connection, document: bytes) -> tuple[bytes, int]:
    """The metadata that a document describes, as JSON of `wire.to_json`, and the number of its entities.

    Takes seconds: call it before the connection is locked. Error: validation_error (a kind that reads none, a
    document that cannot be read), unavailable."""
    kind = _kind(connection).kind
    db.session.rollback()  # nothing is held while the document is read
    try:
        return documents.metadata(kind, document, seconds=limits.DOCUMENT_CPU_SECONDS)
    except ConnectorError as error:
        if error.transient:
            raise ApiError("unavailable", error.message, headers={"Retry-After": "5"}) from None
        raise validation_error([Fault("document", "bad_document", error.message, error.hint)]) from None


def put(
    actor: Actor, connection: Connection, document: bytes, metadata: bytes, entities: int
) -> dict[str, Any]:
    """Keep a document for a locked connection, in place of the one before, with what `read` found in it; commits.
    Answers `as_json`."""
    _check_number(connection)
    before = connection.document_key
    store, folder = storage.of(current_app), f"connections/{connection.workspace_id}/{connection.id}"
    digest = hashlib.sha256(document).hexdigest()
    keys = f"{folder}/document-{digest[:32]}", f"{folder}/metadata.json"
    store.put(keys[0], [document])
    store.put(keys[1], [metadata])
    connection.document_key, connection.metadata_key = keys
    connection.metadata_at = connection.updated_at = clock.now()
    told = {"bytes": len(document), "sha256": digest, "entities": entities}
    audit.record(actor, "connection.document", connection, join=True, **told)
    db.session.commit()
    _drop(before, keys[0])
    return told


def _check_number(connection: Connection) -> None:
    """Error: quota_exceeded, where the workspace has as many documents as it may have. Deleted connections count: they
    can be restored with theirs."""
    workspace_files_kept.lock(connection.workspace_id)
    others = select(func.count()).where(
        Connection.workspace_id == connection.workspace_id,
        Connection.document_key.is_not(None),
        Connection.id != connection.id,
    )
    if (db.session.scalar(others) or 0) >= limits.MAX_DOCUMENTS:
        most = limits.MAX_DOCUMENTS
        text = f"A workspace may have {most} metadata documents. Remove one from another connection first."
        raise ApiError("quota_exceeded", text, {"limit_documents": limits.MAX_DOCUMENTS})


def _drop(before: str | None, now: str | None = None) -> None:
    """Remove a document that was replaced or removed, unless a backup may still need it."""
    if before is not None and before != now and not holding.held():
        workspace_files_kept.drop(before)


def delete(actor: Actor, connection: Connection) -> None:
    """Forget the document of a locked connection; commits. What the target tells counts again."""
    _kind(connection)
    if connection.document_key is None:
        return
    before = connection.document_key
    connection.document_key = connection.metadata_key = connection.metadata_at = None
    connection.updated_at = clock.now()
    audit.record(actor, "connection.document", connection, join=True, bytes=0)
    db.session.commit()
    _drop(before)




def _kind(connection: Connection) -> type[HttpConnector]:
    kind = KINDS[connection.type]
    if issubclass(kind, HttpConnector) and kind.reads_document:
        return kind
    text = f"A connection of type {connection.type} takes no metadata document."
    raise validation_error([Fault("type", "not_for_this_type", text)])

"""Metadata documents that users upload for a connection, which are used instead of fetching them from the target."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import urljoin

import orjson
from flask import current_app
from sqlalchemy import func, select

from webapp import clock, limits, storage
from webapp.access.actors import Actor
from webapp.audit.services import audit_log
from webapp.connections.models import Connection, Endpoint
from webapp.connections.services import access, settings
from webapp.connectors import KINDS, metadata_documents
from webapp.connectors.base import ConnectorError
from webapp.connectors.http.channel import HttpConnector
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.files import services as files
from webapp.net.session import NetError, check_url
from webapp.net.urls import origin
from webapp.work import batch_delete


def read(connection: Connection, document: bytes) -> tuple[bytes, int]:
    """Return the metadata in a document as JSON (see `metadata_json.to_json`), and the number of its entities.

    Takes seconds, so call it before locking the connection. Errors: validation_error (the kind does not support
    documents, or the document is invalid), unavailable."""
    kind = _document_kind(connection).kind
    db.session.rollback()  # release the database while the document is read
    return _read(kind, document)


def _read(kind: str, document: bytes) -> tuple[bytes, int]:
    try:
        return metadata_documents.metadata(kind, document, seconds=limits.DOCUMENT_CPU_SECONDS)
    except ConnectorError as error:
        if error.transient:
            raise ApiError("unavailable", error.message, headers={"Retry-After": "5"}) from None
        raise validation_error([Fault("document", "bad_document", error.message, error.hint)]) from None


def put(
    actor: Actor, connection: Connection, document: bytes, metadata: bytes, entities: int
) -> dict[str, Any]:
    """Save a document of a locked connection with the metadata that `read` returned, replace any previous one, and
    commit.

    Errors: validation_error (`needed_again`) if the document would send a stored secret to another server;
    quota_exceeded.
    """
    _check_server(connection, orjson.loads(metadata))
    files.lock(connection.workspace_id)
    # Deleted connections count, because they can be restored with their documents.
    others = select(func.count()).where(
        Connection.workspace_id == connection.workspace_id,
        Connection.document_key.is_not(None),
        Connection.id != connection.id,
    )
    if (db.session.scalar(others) or 0) >= limits.MAX_DOCUMENTS:
        limit = limits.MAX_DOCUMENTS
        text = f"A workspace can have at most {limit} metadata documents. Remove one from another connection first."
        raise ApiError("quota_exceeded", text, {"limit_documents": limit})
    before = connection.document_key
    store, folder = storage.get_storage(current_app), f"connections/{connection.workspace_id}/{connection.id}"
    digest = hashlib.sha256(document).hexdigest()
    keys = f"{folder}/document-{digest[:32]}", f"{folder}/metadata.json"
    store.put(keys[0], [document])
    store.put(keys[1], [metadata])
    connection.document_key, connection.metadata_key = keys
    connection.metadata_at = connection.updated_at = clock.now()
    details: dict[str, Any] = {"bytes": len(document), "sha256": digest, "entities": entities}
    audit_log.record(actor, "connection.document", connection, join=True, **details)
    db.session.commit()
    _remove_document(before, keys[0])
    return details


def _check_server(connection: Connection, metadata: dict[str, Any]) -> None:
    """Check that a new document does not lead the secrets of a connection to another server.

    Editors may upload documents and cannot read the secrets. Without `base_url` the document decides where requests
    go, so it is treated as that setting: stored secrets are only sent to the same server (ADR 13). The first document
    of a connection without `document_url` names the server; nothing could be sent before.
    """
    if not _follows_document(connection):
        return
    document_url = str(connection.settings.get("document_url") or "")
    after = _server_url(metadata, document_url)
    if connection.document_key is None and connection.metadata_key is None:
        if not document_url:
            return
        before: str | None = document_url
    else:
        before = _server_url(_current_metadata(connection), document_url)
    if after is None and before is None:
        return
    if after is None or before is None or origin(after) != origin(before):
        text = "This document names a different server, so the connection's secrets would be sent elsewhere."
        hint = "Set base_url in the connection's settings, and enter its secrets again."
        raise validation_error([Fault("document", "needed_again", text, hint)])


def _follows_document(connection: Connection) -> bool:
    """Return whether a connection has secrets, and its document determines the server that they are sent to."""
    kind = KINDS[connection.type]
    if "base_url" not in kind.Settings.model_fields or connection.settings.get("base_url"):
        return False
    statement = select(Endpoint.settings).where(Endpoint.connection_id == connection.id)
    endpoint_settings = list(db.session.scalars(statement))
    return settings.has_secrets(connection, kind, endpoint_settings)


def _current_metadata(connection: Connection) -> dict[str, Any]:
    """Return the known metadata of a connection, from its document if that has not been read yet; otherwise {}."""
    known = access.cached_metadata_json(connection)
    document = access.load_document(connection)
    if known is None and document is not None:
        known = orjson.loads(_read(connection.type, document)[0])
    return known or {}


def _server_url(metadata: dict[str, Any], document_url: str) -> str | None:
    """Return the server that a document names, or None if its URL is not usable."""
    try:
        return check_url(urljoin(document_url, str(metadata.get("base_url") or "")))
    except (NetError, ValueError):
        return None


def _remove_document(before: str | None, after: str | None = None) -> None:
    """Remove a document that was replaced or removed, unless a backup may still need it."""
    if before is not None and before != after and not batch_delete.is_suspended():
        files.delete_content(before)


def delete(actor: Actor, connection: Connection) -> None:
    """Delete the document of a locked connection, and commit. Metadata is then fetched from the target again.

    If the document determined the server that the connection's secrets are sent to, that server becomes the
    `base_url`. Otherwise the next document could send them to any other server.
    """
    _document_kind(connection)
    if connection.document_key is None:
        return
    before = connection.document_key
    if not connection.settings.get("document_url") and _follows_document(connection):
        server = _server_url(_current_metadata(connection), "")
        if server is not None:
            connection.settings = {**connection.settings, "base_url": server}
    connection.document_key = connection.metadata_key = connection.metadata_at = None
    connection.updated_at = clock.now()
    audit_log.record(actor, "connection.document", connection, join=True, bytes=0)
    db.session.commit()
    _remove_document(before)


def _document_kind(connection: Connection) -> type[HttpConnector]:
    kind = KINDS[connection.type]
    if issubclass(kind, HttpConnector) and kind.reads_document:
        return kind
    text = f"Connections of type {connection.type} do not support metadata documents."
    raise validation_error([Fault("type", "not_for_this_type", text)])

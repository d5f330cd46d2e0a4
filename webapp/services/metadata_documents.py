"""Metadata documents that were uploaded for a connection: used for what the target would tell, never fetched."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from flask import current_app

from webapp import clock, storage
from webapp.connectors import KINDS, wire
from webapp.connectors.base import ConnectorError
from webapp.connectors.channel import HttpConnector
from webapp.errors import Fault, validation_error
from webapp.extensions import db
from webapp.models import Connection
from webapp.services import audit
from webapp.services.actors import Actor


def put(actor: Actor, connection: Connection, document: bytes) -> dict[str, Any]:
    """Keep a document for a locked connection, in place of the one before; commits. Answers `as_json`.

    Error: validation_error (a kind that reads none, one that cannot be read).
    """
    kind = _kind(connection)
    try:
        metadata = kind.read_document(document)
    except ConnectorError as error:
        raise validation_error([Fault("document", "bad_document", error.message, error.hint)]) from None
    store, folder = storage.of(current_app), f"connections/{connection.workspace_id}/{connection.id}"
    digest = hashlib.sha256(document).hexdigest()
    keys = f"{folder}/document-{digest[:32]}", f"{folder}/metadata.json"
    store.put(keys[0], [document])
    store.put(keys[1], [orjson.dumps(wire.to_json(metadata))])
    connection.document_key, connection.metadata_key = keys
    connection.metadata_at = connection.updated_at = clock.now()
    told = {"bytes": len(document), "sha256": digest, "entities": len(metadata.entities)}
    audit.record(actor, "connection.document", connection, join=True, **told)
    db.session.commit()
    return told


def delete(actor: Actor, connection: Connection) -> None:
    """Forget the document of a locked connection; commits. What the target tells counts again."""
    _kind(connection)
    if connection.document_key is None:
        return
    connection.document_key = connection.metadata_key = connection.metadata_at = None
    connection.updated_at = clock.now()
    audit.record(actor, "connection.document", connection, join=True, bytes=0)
    db.session.commit()




def _kind(connection: Connection) -> type[HttpConnector]:
    kind = KINDS[connection.type]
    if issubclass(kind, HttpConnector) and kind.reads_document:
        return kind
    text = f"A connection of type {connection.type} takes no metadata document."
    raise validation_error([Fault("type", "not_for_this_type", text)])

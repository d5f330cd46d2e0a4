"""Routes of metadata documents: upload, download, delete."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, g, make_response, render_template, request, url_for

from webapp.access.actors import Actor
from webapp.connections.services import connections, inspection, metadata_documents
from webapp.connections.services.access import load_document
from webapp.connections.views.connections import ConnectionOut
from webapp.errors import ApiError, Fault, validation_error
from webapp.versioning import services as versioning
from webapp.web.responses import Output, reply
from webapp.web.routing import route

bp = Blueprint("metadata_documents", __name__)
ONE = "/connections/<connection_id>/metadata-document"


class DocumentOut(Output):
    """The imported document."""

    bytes: int
    sha256: str
    entities: int


@route(bp, ONE, ["PUT"], scope="write", returns=DocumentOut, errors=("validation_error", "quota_exceeded"))
def put(actor: Actor, connection_id: str) -> Response:
    """Upload a metadata document as the body: `$metadata` of an OData service, or an OpenAPI document as JSON or YAML.

    It is used from now on, and no metadata is fetched from the target.
    """
    return reply(_save(actor, connection_id, request.get_data()))


def _save(actor: Actor, connection_id: str, document: bytes) -> dict[str, Any]:
    connection = connections.get(actor, connection_id, "write")
    if not document:
        text, hint = "The request body is empty.", "Send the file itself as the body, not wrapped in JSON."
        raise validation_error([Fault("document", "missing", text, hint)])
    found = metadata_documents.read(connection, document)
    connection = connections.get(actor, connection_id, "write", lock=True)
    return metadata_documents.put(actor, connection, document, *found)


def _page_with_errors(actor: Actor, error: ApiError, connection_id: str) -> str:
    """Show the page of the connection with the errors of the document."""
    found = connections.get(actor, connection_id)
    data, used_by = (
        connections.as_json(found),
        versioning.usages_as_json(actor, versioning.find_dependents(actor, found)),
    )
    return render_template("connections/show.html", data=data, used_by=used_by, refused=error)


@route(bp, ONE, ["POST"], scope="write", allows_api_keys=False, hidden=True, on_fault=_page_with_errors)
def upload(actor: Actor, connection_id: str) -> Response:
    """Upload a document from a form, with the file in `document`."""
    file = request.files.get("document")
    details = _save(actor, connection_id, file.read() if file else b"")
    inspection.verify_unaudited(
        connections.get(actor, connection_id)
    )  # the cached metadata of the target are no longer valid
    see = url_for("connections.show", connection_id=connection_id)
    return reply(redirect_to=see, flash_message=f"Metadata document saved ({details['entities']:,} entities)")


@route(bp, ONE, scope="read", produces=("application/octet-stream",))
def show(actor: Actor, connection_id: str) -> Response:
    """Download the document unchanged."""
    document = load_document(connections.get(actor, connection_id))
    if document is None:
        raise ApiError("not_found", "This connection has no metadata document.")
    response = make_response(document)
    response.headers["Content-Type"] = "application/octet-stream"
    response.headers["Content-Disposition"] = "attachment; filename=metadata-document"
    return response


@route(bp, ONE, ["DELETE"], scope="write", returns=ConnectionOut, errors=("validation_error",))
def delete(actor: Actor, connection_id: str) -> Response:
    """Remove the document, so that the target's own metadata is used again."""
    found = connections.get(actor, connection_id, "write", lock=True)
    metadata_documents.delete(actor, found)
    see = url_for("connections.show", connection_id=connection_id) if g.face == "person" else None
    return reply(connections.as_json(found), redirect_to=see)

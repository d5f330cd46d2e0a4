"""Who may do what with endpoints, and with the metadata documents of connections."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.connectors.odata_documents import V2
from tests.security.matrix import Case
from webapp.access import actors
from webapp.connections.services import connections, metadata_documents
from webapp.endpoints import services as endpoints
from webapp.extensions import db

URL = "http://127.0.0.1:9/rows/{{id}}"


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    stored, trashed = (endpoints.create(acme, {"name": name, "url": URL}).id for name in ("Kept", "Trashed"))
    endpoints.delete(acme, connections.get_endpoint(acme, trashed, "write", lock=True))
    settings = {"service_url": "http://127.0.0.1:9/odata"}
    service = connections.create(acme, name="Service", type="odata", settings=settings, verifies=False).id
    found = metadata_documents.read(connections.get(acme, service, "write"), V2)
    metadata_documents.put(acme, connections.get(acme, service, "write", lock=True), V2, *found)
    db.session.remove()
    return {"endpoint": stored, "trashed_endpoint": trashed, "odata_service": service}


ONE, DOCUMENT = "/endpoints/{endpoint}", "/connections/{odata_service}/metadata-document"
NEW = {"name": "New", "url": "http://127.0.0.1:9/new"}
ROWS = {"endpoint_id": "{endpoint}", "rows": [{"id": 1}], "dry_run": True}  # a dry run waits for no worker

CASES = [
    Case("GET", "/endpoints", "viewer", scope="read"),
    Case("POST", "/endpoints", "editor", body=NEW, ok=201, scope="write"),
    Case("GET", "/endpoints/<endpoint_id>", "viewer", url=ONE, scope="read"),
    Case("PATCH", "/endpoints/<endpoint_id>", "editor", url=ONE, body={"name": "Other"}, scope="write"),
    Case("DELETE", "/endpoints/<endpoint_id>", "editor", url=ONE, scope="write"),
    Case(
        "POST", "/endpoints/<endpoint_id>/restore", "editor", url="/endpoints/{trashed_endpoint}/restore",
        scope="write",
    ),
    Case("POST", "/export/rest", "editor", body=ROWS, scope="push"),
    # The test application has the prepared database but not its storage: users with permission get an error.
    Case("GET", "/connections/<connection_id>/metadata-document", "viewer", url=DOCUMENT, ok=503, scope="read"),
    Case("DELETE", "/connections/<connection_id>/metadata-document", "editor", url=DOCUMENT, scope="write"),
    # Its body is the document itself, which no case sends: users with permission get an error about it.
    Case("PUT", "/connections/<connection_id>/metadata-document", "editor", url=DOCUMENT, ok=422, scope="write"),
    # Pages
    Case(
        "POST", "/connections/<connection_id>/metadata-document", "editor", url=DOCUMENT, body={}, ok=422, person=True,
    ),
    Case("GET", "/endpoints/new", "editor", person=True),
    Case("POST", "/endpoints/new", "editor", body=NEW, ok=303, person=True),
    Case("GET", "/endpoints/<endpoint_id>/edit", "editor", url=f"{ONE}/edit", person=True),
    Case("POST", "/endpoints/<endpoint_id>/edit", "editor", url=f"{ONE}/edit", body=NEW, ok=303, person=True),
    Case("POST", "/endpoints/example", "editor", body=NEW, person=True),
]  # fmt: skip

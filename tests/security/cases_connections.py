"""Who may do what with connections and secrets."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.access import actors
from webapp.connections.services import connections, secrets
from webapp.extensions import db


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)

    def made(name: str) -> str:
        stored = {"type": "sqlite", "settings": {"file": f"{name}.db"}, "verifies": False}
        return connections.create(acme, name=name, **stored).id

    box, trashed = made("matrix"), made("trashed")
    connections.delete(acme, connections.get(acme, trashed, "write", lock=True))
    secrets.put(acme, "matrix", "value")
    db.session.remove()
    return {"connection": box, "trashed_connection": trashed}


ONE = "/connections/{connection}"
FORM = {"type": "sqlite", "name": "By form", "settings.file": "form.db", "environment": "dev"}
NEW = {"name": "New", "type": "sqlite", "settings": {"file": "new.db"}}

CASES = [
    Case("GET", "/connections", "viewer", scope="read"),
    Case("POST", "/connections", "editor", body=NEW, ok=201, scope="write"),
    Case("GET", "/connections/<connection_id>", "viewer", url=ONE, scope="read"),
    Case("PATCH", "/connections/<connection_id>", "editor", url=ONE, body={"name": "Other"}, scope="write"),
    Case("DELETE", "/connections/<connection_id>", "editor", url=ONE, scope="write"),
    Case(
        "POST", "/connections/<connection_id>/restore", "editor",
        url="/connections/{trashed_connection}/restore", scope="write",
    ),
    Case("POST", "/connections/<connection_id>/verify", "editor", url=f"{ONE}/verify", scope="write"),
    Case("GET", "/connections/<connection_id>/metadata", "viewer", url=f"{ONE}/metadata", scope="read"),
    Case("GET", "/secrets", "admin", scope="secrets"),
    Case("PUT", "/secrets/<name>", "admin", url="/secrets/fresh", body={"value": "v"}, ok=201, scope="secrets"),
    Case(
        "PUT", "/secrets/<name>", "admin", url="/secrets/matrix",
        body={"allowed_hosts": ["api.example.com"], "project_id": None}, scope="secrets",
    ),
    Case("DELETE", "/secrets/<name>", "admin", url="/secrets/matrix", scope="secrets"),
    # Pages
    Case("GET", "/connections/new", "editor", person=True),
    Case("POST", "/connections/new", "editor", body=FORM, ok=303, person=True),
    Case("GET", "/connections/<connection_id>/edit", "editor", url=f"{ONE}/edit", person=True),
    Case("POST", "/connections/<connection_id>/edit", "editor", url=f"{ONE}/edit", body=FORM, ok=303, person=True),
    Case("GET", "/connections/<connection_id>/tables", "viewer", url=f"{ONE}/tables", person=True),
    Case("POST", "/connections/<connection_id>/tables", "editor", url=f"{ONE}/tables", person=True),
    Case("POST", "/secrets", "admin", body={"name": "by_form", "value": "v"}, ok=303, person=True),
]  # fmt: skip

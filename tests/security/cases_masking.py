"""Who may look for personal columns and change the masking key."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.connections.models import Connection
from webapp.extensions import db


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    place = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
    result = Connection(name="Looked at", type="sqlite", settings={"file": "looked.db"}, **place)
    db.session.add(result)
    db.session.commit()
    return {"looked_at": result.id}


CASES = [
    Case("POST", "/classify", "editor", body={"rows": [{"email": "a@example.org"}]}, scope="write"),
    Case(
        "POST",
        "/classify",
        "editor",
        body={"connection_id": "{looked_at}", "table": "none"},
        ok=422,  # past every check of rights: the database has no such table
    ),
    Case("GET", "/masking/keys", "admin", scope="secrets"),
    Case("POST", "/masking/keys/rotate", "admin", ok=201, scope="secrets"),
]

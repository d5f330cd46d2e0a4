"""Who may have a model draft templates and suggest types."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.connections.models import Connection
from webapp.extensions import db


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    place = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
    result = Connection(name="No model", type="sqlite", settings={"file": "none.db"}, **place)
    db.session.add(result)
    db.session.commit()
    return {"no_model": result.id}


CASES = [
    Case("GET", "/describe", "editor", person=True),
    Case(
        "POST",
        "/describe",
        "editor",
        body={"description": "Customers", "connection_id": "{no_model}"},
        ok=422,  # it answers no prompts: all permission checks pass, and the model is not called
        scope="write",
    ),
    Case("POST", "/builder/suggest", "editor", person=True),
    Case("POST", "/fields/suggest", "editor", body={"name": "email"}, scope="write"),
]

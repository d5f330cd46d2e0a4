"""Who may make subsets of a connection's rows."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.connections.models import Connection
from webapp.extensions import db


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    place = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
    result = Connection(name="With rows", type="sqlite", settings={"file": "rows.db"}, **place)
    db.session.add(result)
    db.session.commit()
    return {"connection_with_rows": result.id}


CASES = [
    Case(
        "POST",
        "/connections/<connection_id>/subsets",
        "editor",
        url="/connections/{connection_with_rows}/subsets",
        body={"table": "no_such_table"},  # the target's file is not copied for each test
        ok=422,
        scope="write",
    ),
]

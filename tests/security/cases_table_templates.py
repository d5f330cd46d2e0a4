"""Permissions for creating templates from tables, and for fetching values again."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.connections.models import Connection
from webapp.extensions import db


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    place = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
    result = Connection(name="With tables", type="sqlite", settings={"file": "tables.db"}, **place)
    db.session.add(result)
    db.session.commit()
    return {"connection_with_tables": result.id}


ONE = "/connections/{connection_with_tables}"

CASES = [
    Case(
        "POST",
        "/connections/<connection_id>/templates",
        "editor",
        url=f"{ONE}/templates",
        body={"entities": ["no_such_table"]},  # the target's file is not copied for each test
        ok=422,
        scope="write",
    ),
    Case(
        "POST",
        "/connections/<connection_id>/fill",
        "editor",
        url=f"{ONE}/fill",
        body={"tables": ["no_such_table"]},
        ok=422,
        scope="write",
    ),
    Case("GET", "/connections/<connection_id>/fill", "editor", url=f"{ONE}/fill", person=True),
    Case(
        "POST",
        "/connections/<connection_id>/fill/plan",
        "editor",
        url=f"{ONE}/fill/plan",
        body={"rows": "0"},
        ok=422,
        person=True,
    ),
    Case(
        "POST",
        "/connections/<connection_id>/fill/<dataset_id>",
        "editor",
        url=f"{ONE}/fill/dst_none",
        ok=404,
        person=True,
    ),
    Case(
        "POST",
        "/connections/<connection_id>/fetched/refresh",
        "editor",
        url=f"{ONE}/fetched/refresh",
        scope="generate",
    ),
]

"""Who may do what with templates, rows and exports."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.access import actors
from webapp.exports import services as exports
from webapp.exports.models import Export
from webapp.extensions import db, write_session
from webapp.row_templates.schemas import GenerateInput
from webapp.row_templates.services import templates

FIELDS = [{"name": "id", "type": "row_number"}, {"name": "n", "type": "number"}]


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    created = templates.create(acme, name="Matrix", fields=FIELDS)
    templates.change(acme, templates.get(acme, created["id"], "write", lock=True), {"quantity": 3})
    trashed = templates.create(acme, name="Trashed", fields=FIELDS)
    templates.delete(acme, templates.get(acme, trashed["id"], "write", lock=True))
    waiting = exports.create(acme, created["id"], GenerateInput(count=2)).id
    ended, parted = (exports.create(acme, created["id"], GenerateInput(count=2)).id for _ in range(2))
    db.session.remove()
    with write_session() as session:
        session.get_one(Export, ended).status = "failed"
        in_parts = session.get_one(Export, parted)
        in_parts.status, in_parts.part_rows = "failed", 1
    found = {"template": created["id"], "trashed": trashed["id"], "export": waiting}
    return {**found, "ended": ended, "parted": parted}


ONE = "/templates/{template}"
NEW = {"name": "New", "fields": FIELDS}
ROWS = {"count": 2, "seed": "s"}
DRAFT = {"fields": FIELDS, "count": 2}

CASES = [
    Case("GET", "/templates", "viewer", scope="read"),
    Case("POST", "/templates", "editor", body=NEW, ok=201, scope="write"),
    Case("GET", "/templates/<template_id>", "viewer", url=ONE, scope="read"),
    Case("PATCH", "/templates/<template_id>", "editor", url=ONE, body={"quantity": 7}, scope="write"),
    Case("PUT", "/templates/<template_id>", "editor", url=ONE, body={"quantity": 7}, scope="write"),
    Case("DELETE", "/templates/<template_id>", "editor", url=ONE, scope="write"),
    Case(
        "POST",
        "/templates/<template_id>/restore",
        "editor",
        url="/templates/{trashed}/restore",
        scope="write",
    ),
    Case("GET", "/templates/<template_id>/versions", "viewer", url=f"{ONE}/versions", scope="read"),
    Case("GET", "/templates/<template_id>@v<int:number>", "viewer", url=f"{ONE}@v1", scope="read"),
    Case(
        "GET",
        "/templates/<template_id>@v<int:number>/diff",
        "viewer",
        url=f"{ONE}@v1/diff?to=2&seed=s",
        scope="read",
    ),
    Case(
        "POST",
        "/templates/<template_id>/versions/<int:number>/restore",
        "editor",
        url=f"{ONE}/versions/1/restore",
        scope="write",
    ),
    Case(
        "POST",
        "/templates/<template_id>/refresh-references",
        "editor",
        url=f"{ONE}/refresh-references",
        scope="write",
    ),
    # Rows
    Case(
        "POST",
        "/templates/<template_id>/generate",
        "editor",
        url=f"{ONE}/generate",
        body=ROWS,
        scope="generate",
    ),
    Case("POST", "/templates/<template_id>/preview", "viewer", url=f"{ONE}/preview", body={}, scope="read"),
    Case("POST", "/generate", "editor", body=DRAFT, scope="generate"),
    Case("POST", "/preview", "viewer", body=DRAFT, scope="read"),
    Case("GET", "/field-types", "viewer", scope="read"),
    Case("GET", "/fields", "viewer", scope="read"),
    # Exports
    Case(
        "POST",
        "/templates/<template_id>/exports",
        "editor",
        url=f"{ONE}/exports",
        body=ROWS,
        ok=201,
        scope="generate",
    ),
    Case("GET", "/exports", "viewer", scope="read"),
    Case("GET", "/exports/<export_id>", "viewer", url="/exports/{export}", scope="read"),
    Case("GET", "/exports/<export_id>/events", "viewer", url="/exports/{ended}/events", scope="read"),
    Case("DELETE", "/exports/<export_id>", "editor", url="/exports/{export}", scope="generate"),
    # Nothing is made here, so there is no file; tests/views/test_exports.py downloads one.
    Case(
        "GET",
        "/exports/<export_id>/download",
        "viewer",
        url="/exports/{export}/download",
        ok=404,
        scope="read",
    ),
    Case("GET", "/exports/<export_id>/manifest", "viewer", url="/exports/{parted}/manifest", scope="read"),
    Case("GET", "/exports/<export_id>/parts", "viewer", url="/exports/{parted}/parts", person=True),
    Case(
        "GET",
        "/exports/<export_id>/parts/<int:number>",
        "viewer",
        url="/exports/{parted}/parts/1",
        ok=404,
        scope="read",
    ),
    Case(
        "POST",
        "/exports/<export_id>/retry",
        "editor",
        url="/exports/{parted}/retry",
        ok=201,
        scope="generate",
    ),
]

"""Who may do what with datasets."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.access import actors
from webapp.datasets.services import datasets
from webapp.row_templates.services import templates

FIELDS = [{"name": "id", "type": "row_number"}, {"name": "n", "type": "number"}]


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    template = templates.create(acme, name="In a dataset", fields=FIELDS)["id"]
    tables = [{"template_id": template, "count": 2}]
    created = datasets.create(acme, name="Matrix", templates=tables, seed="s")["id"]
    datasets.change(acme, datasets.get(acme, created, "write", lock=True), {"seed": "t"})
    trashed = datasets.create(acme, name="Trashed", templates=tables)["id"]
    datasets.delete(acme, datasets.get(acme, trashed, "write", lock=True))
    return {"dataset": created, "trashed_dataset": trashed, "dataset_template": template}


ONE = "/datasets/{dataset}"
NEW = {"name": "New", "templates": [{"template_id": "{dataset_template}", "count": 2}]}

CASES = [
    Case("GET", "/datasets", "viewer", scope="read"),
    Case("POST", "/datasets", "editor", body=NEW, ok=201, scope="write"),
    Case("GET", "/datasets/<dataset_id>", "viewer", url=ONE, scope="read"),
    Case("PATCH", "/datasets/<dataset_id>", "editor", url=ONE, body={"seed": "u"}, scope="write"),
    Case("PUT", "/datasets/<dataset_id>", "editor", url=ONE, body={"seed": "u"}, scope="write"),
    Case("DELETE", "/datasets/<dataset_id>", "editor", url=ONE, scope="write"),
    Case(
        "POST",
        "/datasets/<dataset_id>/restore",
        "editor",
        url="/datasets/{trashed_dataset}/restore",
        scope="write",
    ),
    Case("GET", "/datasets/<dataset_id>/versions", "viewer", url=f"{ONE}/versions", scope="read"),
    Case("GET", "/datasets/<dataset_id>@v<int:number>", "viewer", url=f"{ONE}@v1", scope="read"),
    Case(
        "GET", "/datasets/<dataset_id>@v<int:number>/diff", "viewer", url=f"{ONE}@v1/diff?to=2", scope="read"
    ),
    Case(
        "POST",
        "/datasets/<dataset_id>/versions/<int:number>/restore",
        "editor",
        url=f"{ONE}/versions/1/restore",
        scope="write",
    ),
    Case(
        "POST",
        "/datasets/<dataset_id>/refresh-references",
        "editor",
        url=f"{ONE}/refresh-references",
        scope="write",
    ),
    Case("POST", "/datasets/<dataset_id>/preview", "viewer", url=f"{ONE}/preview", body={}, scope="read"),
    Case(
        "POST",
        "/datasets/<dataset_id>/exports",
        "editor",
        url=f"{ONE}/exports",
        body={"format": "csv"},
        ok=201,
        scope="generate",
    ),
    # Pages
    Case("GET", "/datasets/new", "editor", person=True),
    Case("POST", "/datasets/new", "editor", body={"name": "N", "do": "find"}, person=True),
    Case("GET", "/datasets/<dataset_id>/choices", "editor", url=f"{ONE}/choices", person=True),
    Case("GET", "/datasets/<dataset_id>/destination", "viewer", url=f"{ONE}/destination", person=True),
    Case(
        "GET",
        "/datasets/<dataset_id>/fill",
        "editor",
        url=f"{ONE}/fill?connection_id=con_none",
        ok=404,
        person=True,
    ),
    Case(
        "POST",
        "/datasets/<dataset_id>/fill",
        "editor",
        url=f"{ONE}/fill",
        body={"connection_id": "con_none"},
        ok=404,
        person=True,
    ),
    Case(
        "POST",
        "/datasets/<dataset_id>/edit",
        "editor",
        url=f"{ONE}/edit",
        body={"name": "N", "version": "2"},
        ok=303,
        person=True,
    ),
]

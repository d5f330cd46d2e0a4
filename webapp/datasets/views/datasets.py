"""Datasets: templates that are generated together; their versions, previews and exports."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from flask import Blueprint, Response, g, url_for
from pydantic import Field

from webapp import limits
from webapp.accounts.actors import Actor
from webapp.datasets.schemas import DatasetExportInput, DatasetPreviewInput, Tables
from webapp.datasets.services import datasets
from webapp.datasets.services import rows as datasets_rows
from webapp.errors import Fault
from webapp.generation.services import exports
from webapp.generation.views.exports import ExportOut, as_dict
from webapp.row_templates.schemas import READ_ONLY, Name, Seed
from webapp.timestamps import Moment
from webapp.web import versioned_routes
from webapp.web.inputs import Input
from webapp.web.responses import Output, reply
from webapp.web.routing import route
from webapp.web.versioned_routes import Description, OtherQuery

bp = Blueprint("datasets", __name__)


class DatasetInput(Input):
    """Reports faults of the tables together with those of the other keys."""

    read_only = READ_ONLY

    @classmethod
    def more_faults(cls, body: dict[str, Any]) -> list[Fault]:
        """Return a fault for each template that is missing or named twice."""
        tables = body.get("templates")
        if not isinstance(tables, list) or len(tables) > limits.MAX_DATASET_TABLES:
            return []
        wanted = [table.get("template_id") if isinstance(table, dict) else None for table in tables]
        return datasets.look_up_templates(g.actor, wanted)[1]


class DatasetIn(DatasetInput):
    """A new dataset."""

    name: Name
    templates: Tables
    description: Description = ""
    seed: Seed | None = Field(None, description="One is made where none is sent.")
    anchor: Moment | None = Field(
        None, description="What relative dates hang on; null: each template's own anchor."
    )


class DatasetPatch(DatasetInput):
    """What of a dataset can change; what is left out stays."""

    name: Name = ""
    templates: Tables = Field(default_factory=list)
    description: Description = ""
    seed: Seed | None = None
    anchor: Moment | None = None


class DatasetTableOut(Output):
    """One table of a dataset, and the version of its template that is pinned."""

    template_id: str
    count: int | None
    name: str | None
    version: int


class DatasetOut(Output):
    """A dataset as of one version."""

    id: str
    name: str
    description: str
    templates: list[DatasetTableOut]
    seed: str
    version: int
    anchor: str | None
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    updated_at: str
    deleted_at: str | None
    warnings: list[dict[str, str]]


class DatasetDiffOut(Output):
    """What changed from one version to another."""

    dataset_id: str
    from_: Annotated[int, Field(alias="from")]
    to: int
    dataset: dict[str, Any]
    templates: dict[str, list[dict[str, Any]]]
    order: dict[str, list[str]] | None


class TablePreview(Output):
    """The first rows of one table, and how many it has."""

    name: str
    template_id: str
    rows: list[dict[str, Any]]
    count: int


class DatasetPreviewOut(Output):
    """The first three rows of each table, and the seed that makes them again."""

    tables: list[TablePreview]
    seed: str
    warnings: list[dict[str, str]]


versioned_routes.declare_list(bp, datasets.KIND, DatasetOut)
versioned_routes.declare_deletion(bp, datasets.KIND, DatasetOut)
versioned_routes.declare_versions(
    bp, datasets.KIND, DatasetOut,
    restores="Make an earlier version the newest: a new version that says the same and pins the same templates.",
)  # fmt: skip
versioned_routes.declare_refresh(
    bp, datasets.KIND, DatasetOut, datasets.refresh_references,
    does="Pin the newest versions of the dataset's templates; where they are pinned already nothing changes.",
)  # fmt: skip


@route(
    bp, "/datasets", ["POST"], scope="write", body=DatasetIn, returns=DatasetOut, status=201, idempotent=True
)
def create(actor: Actor, body: DatasetIn) -> Response:
    """Make a dataset."""
    made = datasets.create(actor, **_given(body))
    where = url_for("datasets.show", dataset_id=made["id"])
    return reply(made, status=201, see=where, tag=True, headers={"Location": where})


def _given(body: DatasetIn | DatasetPatch, *, unset: bool = True) -> dict[str, Any]:
    given = body.model_dump(exclude_unset=not unset)
    if "templates" in given:
        given["templates"] = [table.model_dump() for table in body.templates]
    return given


@route(bp, "/datasets/<dataset_id>", scope="read", returns=DatasetOut)
def show(actor: Actor, dataset_id: str) -> Response:
    """Read a dataset."""
    dataset = datasets.get(actor, dataset_id)
    if g.face == "person":
        from webapp.datasets.views import pages  # which reads this module's inputs

        return pages.page(actor, dataset)
    return reply(datasets.show(dataset), tag=True)


@route(
    bp,
    "/datasets/<dataset_id>",
    ["PATCH", "PUT"],
    scope="write",
    body=DatasetPatch,
    returns=DatasetOut,
    errors=versioned_routes.CONFLICTS,
)
def change(actor: Actor, dataset_id: str, body: DatasetPatch) -> Response:
    """Change any part of a dataset, which makes its next version, on the newest versions of its templates."""
    dataset = versioned_routes.matched(actor, datasets.KIND, dataset_id)
    changed = datasets.change(actor, dataset, _given(body, unset=False))
    return reply(changed, see=url_for("datasets.show", dataset_id=dataset_id), tag=True)


@route(bp, "/datasets/<dataset_id>@v<int:number>", scope="read", returns=DatasetOut)
def show_version(actor: Actor, dataset_id: str, number: int) -> Response:
    """Read one version of a dataset."""
    return reply(datasets.show(datasets.get(actor, dataset_id), number), tag=True)


@route(
    bp,
    "/datasets/<dataset_id>@v<int:number>/diff",
    scope="read",
    query=OtherQuery,
    returns=DatasetDiffOut,
)
def diff(actor: Actor, dataset_id: str, number: int, query: OtherQuery) -> Response:
    """What changed from one version to another (default: the newest)."""
    dataset = datasets.get(actor, dataset_id)
    found = datasets.between(dataset, number, query.to or dataset.version)
    shown = {"name": dataset.name, "names": datasets.names(found)} if g.face == "person" else {}
    return reply(found, template="datasets/diff.html", block="diff", **shown)


@route(
    bp,
    "/datasets/<dataset_id>/preview",
    ["POST"],
    scope="read",
    body=DatasetPreviewInput,
    returns=DatasetPreviewOut,
    reads=True,
)
def preview(actor: Actor, dataset_id: str, body: DatasetPreviewInput) -> Response:
    """Make the first three rows of each table; no rows are spent."""
    version = datasets.version_of(datasets.get(actor, dataset_id))
    datasets.known_templates(actor, version.spec)
    members = datasets_rows.members(version.spec, version.pins["templates"])
    made = datasets_rows.preview(version.spec, members, body, actor, fetch=True)
    program = g.face == "program"
    tables = [
        {
            "name": look.member.name,
            "template_id": look.member.template_id,
            "rows": orjson.Fragment(look.rows) if program else orjson.loads(look.rows),
            "count": look.count,
        }
        for look in made.looks
    ]
    return reply({"tables": tables, "seed": made.seed, "warnings": made.warnings[: limits.MAX_FAULTS]})


@route(
    bp,
    "/datasets/<dataset_id>/exports",
    ["POST"],
    scope="generate",
    body=DatasetExportInput,
    returns=ExportOut,
    status=201,
    idempotent=True,
    errors=("row_limit_exceeded", "quota_exceeded", "leak_found"),
)
def export(actor: Actor, dataset_id: str, body: DatasetExportInput) -> Response:
    """Have a worker make one file of all tables: XLSX a workbook, SQL a script, every other format a ZIP archive.

    Tables stand in an order in which parents come before their children.
    """
    made = exports.create_of_dataset(actor, dataset_id, body)
    where = url_for("exports.show", export_id=made.id)
    return reply(as_dict(made), status=201, see=where, headers={"Location": where})

"""Datasets: templates that are generated together; their versions, previews and exports."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from flask import Blueprint, Response, flash, g, url_for
from pydantic import Field

from webapp import limits
from webapp.services import dataset_diff, dataset_rows, datasets, exports, usage
from webapp.services.actors import Actor
from webapp.services.dataset_requests import DatasetExportInput, DatasetPreviewInput, Tables
from webapp.services.moments import Moment
from webapp.services.row_requests import READ_ONLY, Name, Seed
from webapp.views.exports import ExportOut, as_dict
from webapp.views.inputs import Input, ListQuery, Query
from webapp.views.outputs import Listed, Output
from webapp.views.reply import matching, reply
from webapp.views.routes import route
from webapp.views.templates import Description, PageQuery

bp = Blueprint("datasets", __name__)


class DatasetIn(Input):
    """A new dataset."""

    read_only = READ_ONLY

    name: Name
    templates: Tables
    description: Description = ""
    seed: Seed | None = Field(None, description="One is made where none is sent.")
    anchor: Moment | None = Field(
        None, description="What relative dates hang on; null: each template's own anchor."
    )


class DatasetPatch(Input):
    """What of a dataset can change; what is left out stays."""

    read_only = READ_ONLY

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


class DatasetsQuery(ListQuery):
    """`sort`: `name` or `updated`, backwards with `-`; newest first without."""

    sort: Literal["name", "-name", "updated", "-updated"] | None = None


class DatasetDiffQuery(Query):
    """The other version (default: the newest)."""

    to: Annotated[int, Field(ge=1)] | None = None


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


@route(bp, "/datasets", scope="read", query=DatasetsQuery, returns=Listed(DatasetOut))
def index(actor: Actor, query: DatasetsQuery) -> Response:
    """List the datasets of the project, newest first."""
    page = datasets.listing(actor, cursor=query.cursor, limit=query.limit, q=query.q, sort=query.sort)
    shown = {"runs": usage.last_runs(actor, [one["id"] for one in page.items])} if g.face == "person" else {}
    return reply(page.as_dict(dict), template="datasets/list.html", block="list", query=query, **shown)


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
        from webapp.views import dataset_pages  # which reads this module's inputs

        return dataset_pages.page(actor, dataset)
    return reply(datasets.show(dataset), tag=True)


@route(
    bp,
    "/datasets/<dataset_id>",
    ["PATCH", "PUT"],
    scope="write",
    body=DatasetPatch,
    returns=DatasetOut,
    errors=["version_conflict"],
)
def change(actor: Actor, dataset_id: str, body: DatasetPatch) -> Response:
    """Change any part of a dataset, which makes its next version, on the newest versions of its templates."""
    dataset = datasets.get(actor, dataset_id, "write", lock=True)
    matching(datasets.show(dataset))
    changed = datasets.change(actor, dataset, _given(body, unset=False))
    return reply(changed, see=url_for("datasets.show", dataset_id=dataset_id), tag=True)


@route(
    bp, "/datasets/<dataset_id>", ["DELETE"], scope="write", returns=DatasetOut, errors=["version_conflict"]
)
def delete(actor: Actor, dataset_id: str) -> Response:
    """Soft-delete a dataset; it can be restored for 30 days."""
    dataset = datasets.get(actor, dataset_id, "write", lock=True)
    matching(datasets.show(dataset))
    gone = datasets.delete(actor, dataset)
    if g.face == "person":  # the category of a message is where its Undo goes
        flash(f"Dataset {gone['name']} deleted", url_for("datasets.restore", dataset_id=dataset_id))
    return reply(gone, see=url_for("datasets.index"))


@route(bp, "/datasets/<dataset_id>/restore", ["POST"], scope="write", returns=DatasetOut)
def restore(actor: Actor, dataset_id: str) -> Response:
    """Take a dataset's deletion back."""
    dataset = datasets.get(actor, dataset_id, "write", lock=True, deleted=True)
    back = datasets.restore(actor, dataset)
    return reply(back, see=url_for("datasets.show", dataset_id=dataset_id), tag=True)


@route(bp, "/datasets/<dataset_id>/versions", scope="read", query=PageQuery, returns=Listed(DatasetOut))
def versions(actor: Actor, dataset_id: str, query: PageQuery) -> Response:
    """List a dataset's versions, newest first, each the whole dataset as of then."""
    page = datasets.versions(datasets.get(actor, dataset_id), cursor=query.cursor, limit=query.limit)
    return reply(page.as_dict(dict))


@route(bp, "/datasets/<dataset_id>@v<int:number>", scope="read", returns=DatasetOut)
def show_version(actor: Actor, dataset_id: str, number: int) -> Response:
    """Read one version of a dataset."""
    return reply(datasets.show(datasets.get(actor, dataset_id), number), tag=True)


@route(
    bp,
    "/datasets/<dataset_id>/versions/<int:number>/restore",
    ["POST"],
    scope="write",
    returns=DatasetOut,
    idempotent=True,
    errors=["version_conflict"],
)
def restore_version(actor: Actor, dataset_id: str, number: int) -> Response:
    """Make an earlier version the newest: a new version that says the same and pins the same templates."""
    dataset = datasets.get(actor, dataset_id, "write", lock=True)
    matching(datasets.show(dataset))
    back = datasets.restore_version(actor, dataset, number)
    return reply(back, see=url_for("datasets.show", dataset_id=dataset_id), tag=True)


@route(
    bp,
    "/datasets/<dataset_id>/refresh-references",
    ["POST"],
    scope="write",
    returns=DatasetOut,
    errors=("validation_error",),
)
def refresh_references(actor: Actor, dataset_id: str) -> Response:
    """Pin the newest versions of the dataset's templates; where they are pinned already nothing changes."""
    dataset = datasets.get(actor, dataset_id, "write", lock=True)
    current = datasets.refresh_references(actor, dataset)
    return reply(current, see=url_for("datasets.show", dataset_id=dataset_id), tag=True)


@route(
    bp,
    "/datasets/<dataset_id>@v<int:number>/diff",
    scope="read",
    query=DatasetDiffQuery,
    returns=DatasetDiffOut,
)
def diff(actor: Actor, dataset_id: str, number: int, query: DatasetDiffQuery) -> Response:
    """What changed from one version to another (default: the newest)."""
    dataset = datasets.get(actor, dataset_id)
    found = dataset_diff.between(dataset, number, query.to or dataset.version)
    shown = {"name": dataset.name, "names": dataset_diff.names(found)} if g.face == "person" else {}
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
    members = dataset_rows.members(version.spec, version.pins["templates"])
    made = dataset_rows.preview(version.spec, members, body)
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
    errors=("row_limit_exceeded", "quota_exceeded"),
)
def export(actor: Actor, dataset_id: str, body: DatasetExportInput) -> Response:
    """Have a worker make one file of all tables: XLSX a workbook, SQL a script, every other format a ZIP archive.

    Tables stand in an order in which parents come before their children.
    """
    made = exports.create_of_dataset(actor, dataset_id, body)
    where = url_for("exports.show", export_id=made.id)
    return reply(as_dict(made), status=201, see=where, headers={"Location": where})

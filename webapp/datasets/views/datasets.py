"""Datasets: templates that are generated together; their versions, previews and exports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

import orjson
from flask import Blueprint, Flask, Response, current_app, g, url_for
from pydantic import Field

from webapp import limits
from webapp.access.actors import Actor
from webapp.datasets.inputs import DatasetIn, DatasetPatch
from webapp.datasets.models import Dataset
from webapp.datasets.schemas import DatasetPreviewInput
from webapp.datasets.services import datasets
from webapp.datasets.services import rows as datasets_rows
from webapp.generation.views import PREVIEW_ERRORS
from webapp.versioning import views as versioned_routes
from webapp.versioning.views import OtherQuery
from webapp.web.responses import Output, reply
from webapp.web.routing import route

bp = Blueprint("datasets", __name__)
PAGE: Final = "dataset_page"  # in `app.extensions`


def init_app(app: Flask, page: Callable[[Actor, Dataset], Response]) -> None:
    """Set what browsers get instead of a dataset as JSON: its page, which knows domains above this one."""
    app.extensions[PAGE] = page


def show_page(actor: Actor, dataset: Dataset) -> Response:
    """Return the page of a dataset."""
    page: Callable[[Actor, Dataset], Response] = current_app.extensions[PAGE]
    return page(actor, dataset)


class DatasetTableOut(Output):
    """One table of a dataset, and the version of its template."""

    template_id: str
    count: int | None
    name: str | None
    version: int


class DatasetOut(Output):
    """A version of a dataset."""

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
    """The changes from one version to another."""

    dataset_id: str
    from_: Annotated[int, Field(alias="from")]
    to: int
    dataset: dict[str, Any]
    templates: dict[str, list[dict[str, Any]]]
    order: dict[str, list[str]] | None


class TablePreview(Output):
    """The first rows of a table, and its number of rows."""

    name: str
    template_id: str
    rows: list[dict[str, Any]]
    count: int


class DatasetPreviewOut(Output):
    """The first three rows of each table, and the seed that reproduces them."""

    tables: list[TablePreview]
    seed: str
    warnings: list[dict[str, str]]


versioned_routes.declare_list(bp, datasets.KIND, DatasetOut)
versioned_routes.declare_deletion(bp, datasets.KIND, DatasetOut)
versioned_routes.declare_versions(
    bp, datasets.KIND, DatasetOut,
    summary=("Make an earlier version the newest: creates a version with the same contents and "
             "template versions."),
)  # fmt: skip
versioned_routes.declare_refresh(
    bp, datasets.KIND, DatasetOut, datasets.refresh_references,
    summary="Use the newest versions of the dataset's templates. If they are used already, nothing changes.",
)  # fmt: skip


@route(
    bp, "/datasets", ["POST"], scope="write", body=DatasetIn, returns=DatasetOut, status=201, idempotent=True,
    errors=versioned_routes.SAVE_ERRORS,
)  # fmt: skip
def create(actor: Actor, body: DatasetIn) -> Response:
    """Create a dataset."""
    dataset = datasets.create(actor, **_values(body))
    address = url_for("datasets.show", dataset_id=dataset["id"])
    return reply(dataset, status=201, redirect_to=address, send_etag=True, headers={"Location": address})


def _values(body: DatasetIn | DatasetPatch, *, unset: bool = True) -> dict[str, Any]:
    values = body.model_dump(exclude_unset=not unset)
    if "templates" in values:
        values["templates"] = [table.model_dump() for table in body.templates]
    return values


@route(bp, "/datasets/<dataset_id>", scope="read", returns=DatasetOut)
def show(actor: Actor, dataset_id: str) -> Response:
    """Get a dataset."""
    dataset = datasets.get(actor, dataset_id)
    if g.face == "person":
        return show_page(actor, dataset)
    return reply(datasets.show(dataset), send_etag=True)


@route(
    bp,
    "/datasets/<dataset_id>",
    ["PATCH", "PUT"],
    scope="write",
    body=DatasetPatch,
    returns=DatasetOut,
    errors=versioned_routes.CHANGE_ERRORS,
)
def change(actor: Actor, dataset_id: str, body: DatasetPatch) -> Response:
    """Change a dataset, which creates a new version with the newest versions of its templates."""
    dataset = versioned_routes.get_matching_head(actor, datasets.KIND, dataset_id)
    changed = datasets.change(actor, dataset, _values(body, unset=False))
    return reply(changed, redirect_to=url_for("datasets.show", dataset_id=dataset_id), send_etag=True)


@route(bp, "/datasets/<dataset_id>@v<int:number>", scope="read", returns=DatasetOut)
def show_version(actor: Actor, dataset_id: str, number: int) -> Response:
    """Get a version of a dataset."""
    return reply(datasets.show(datasets.get(actor, dataset_id), number), send_etag=True)


@route(
    bp,
    "/datasets/<dataset_id>@v<int:number>/diff",
    scope="read",
    query=OtherQuery,
    returns=DatasetDiffOut,
)
def diff(actor: Actor, dataset_id: str, number: int, query: OtherQuery) -> Response:
    """Get the changes from one version to another (default: the newest)."""
    dataset = datasets.get(actor, dataset_id)
    found = datasets.diff_versions(dataset, number, query.to or dataset.version)
    context: dict[str, Any] = {}
    if g.face == "person":
        context = {"name": dataset.name, "names": datasets.template_names(found)}
    return reply(found, template="datasets/diff.html", block="diff", **context)


@route(
    bp,
    "/datasets/<dataset_id>/preview",
    ["POST"],
    scope="read",
    body=DatasetPreviewInput,
    returns=DatasetPreviewOut,
    reads=True,
    errors=PREVIEW_ERRORS,
)
def preview(actor: Actor, dataset_id: str, body: DatasetPreviewInput) -> Response:
    """Generate the first three rows of each table. They do not count toward the quota."""
    version = datasets.version_of(datasets.get(actor, dataset_id))
    datasets.require_templates(actor, version.spec)
    members = datasets_rows.read_table_specs(version.spec, version.pins["templates"])
    result = datasets_rows.preview(version.spec, members, body, actor, fetch=True)
    program = g.face == "program"
    tables = [
        {
            "name": look.member.name,
            "template_id": look.member.template_id,
            "rows": orjson.Fragment(look.rows) if program else orjson.loads(look.rows),
            "count": look.count,
        }
        for look in result.tables
    ]
    return reply({"tables": tables, "seed": result.seed, "warnings": result.warnings[: limits.MAX_FAULTS]})

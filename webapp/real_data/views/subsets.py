"""Subsets of a connection's rows, with the rows that they are related to."""

from __future__ import annotations

from typing import Annotated

from flask import Blueprint, Response, url_for
from pydantic import Field

from webapp import limits
from webapp.access.actors import Actor
from webapp.builder.views.templates import TemplateOut
from webapp.datasets.views.datasets import DatasetOut
from webapp.imports.views.tables import TARGET_ERRORS, EntityName
from webapp.real_data.services import subsets
from webapp.row_templates.schemas import Name
from webapp.web.inputs import Input
from webapp.web.responses import Output, reply
from webapp.web.routing import route

bp = Blueprint("subsets", __name__)


class SubsetIn(Input):
    """The start rows and the depth of a subset."""

    table: EntityName
    where: str = Field(
        "",
        max_length=limits.MAX_FORMULA_CHARS,
        description="Optional filter: a condition in the target's query language (the part after WHERE).",
    )
    limit: Annotated[int, Field(ge=1, le=limits.SOURCE_ROWS)] | None = Field(
        None, description="Maximum number of rows, the first by primary key."
    )
    children: Annotated[list[EntityName], Field(max_length=limits.MAX_DATASET_TABLES)] | None = Field(
        None,
        description=("Tables whose rows are included if they refer to included rows; null: all, []: none."),
    )
    depth: Annotated[int, Field(ge=0, le=limits.SUBSET_DEPTH)] = Field(1, description="Depth of child rows.")
    name: Name | None = Field(None, description="Name of the dataset.")


class SubsetTable(Output):
    """The rows of one table in the subset, the relations they were found by, and its masked columns."""

    table: str
    template_id: str
    rows: int
    ways: list[str]
    sensitive: list[str]


class SubsetOut(Output):
    """The created dataset, its templates, and the contents of each table."""

    dataset: DatasetOut
    templates: list[TemplateOut]
    report: list[SubsetTable]


@route(
    bp,
    "/connections/<connection_id>/subsets",
    ["POST"],
    scope="write",
    body=SubsetIn,
    returns=SubsetOut,
    status=201,
    idempotent=True,
    errors=TARGET_ERRORS,
)
def create(actor: Actor, connection_id: str, body: SubsetIn) -> Response:
    """Create a dataset from some rows of a table and all related rows.

    Foreign keys are followed in both directions; parents are always included. Each template reads its part of
    a table when rows are requested, and columns with personal data are masked.
    """
    made = subsets.create(actor, connection_id, **body.model_dump())
    message = ", ".join(f"{one['table']} {one['rows']:,}" for one in made.report)
    return reply(
        {"dataset": made.dataset, "templates": made.templates, "report": made.report},
        status=201,
        see=url_for("datasets.show", dataset_id=made.dataset["id"]),
        flashed=f"A subset of {len(made.report)} tables. Rows: {message}"[: limits.MAX_DESCRIPTION_CHARS],
    )

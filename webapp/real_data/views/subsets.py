"""Subsets of a connection's rows, with the rows that they are related to."""

from __future__ import annotations

from typing import Annotated

from flask import Blueprint, Response, url_for
from pydantic import Field

from webapp import limits
from webapp.accounts.actors import Actor
from webapp.datasets.views.datasets import DatasetOut
from webapp.imports.views.tables import TARGET_ERRORS, EntityName
from webapp.real_data.services import subsets
from webapp.row_templates.schemas import Name
from webapp.row_templates.views.templates import TemplateOut
from webapp.web.inputs import Input
from webapp.web.responses import Output, reply
from webapp.web.routing import route

bp = Blueprint("subsets", __name__)


class SubsetIn(Input):
    """From which rows of which table, and how far."""

    table: EntityName
    where: str = Field(
        "",
        max_length=limits.MAX_FORMULA_CHARS,
        description="Which rows of it: a condition in the target's own language, as after WHERE.",
    )
    limit: Annotated[int, Field(ge=1, le=limits.SOURCE_ROWS)] | None = Field(
        None, description="No more rows of it than these, the first by its primary key."
    )
    children: Annotated[list[EntityName], Field(max_length=limits.MAX_DATASET_TABLES)] | None = Field(
        None, description="Tables whose rows come along where they refer to such rows; null: all, []: none."
    )
    depth: Annotated[int, Field(ge=0, le=limits.SUBSET_DEPTH)] = Field(
        1, description="Steps down to children."
    )
    name: Name | None = Field(None, description="Of the dataset.")


class SubsetTable(Output):
    """What one table holds of the subset, over which ways, and which of its columns are masked."""

    table: str
    template_id: str
    rows: int
    ways: list[str]
    sensitive: list[str]


class SubsetOut(Output):
    """The dataset that was made, its templates, and what each table holds."""

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
    """Make a dataset of some rows of a table and of all rows that they are related to.

    Foreign keys are followed both ways; parents always come along. Each template reads its part of a table when rows
    are asked for, and what looks personal is masked.
    """
    made = subsets.create(actor, connection_id, **body.model_dump())
    told = ", ".join(f"{one['table']} {one['rows']:,}" for one in made.report)
    return reply(
        {"dataset": made.dataset, "templates": made.templates, "report": made.report},
        status=201,
        see=url_for("datasets.show", dataset_id=made.dataset["id"]),
        flashed=f"A subset of {len(made.report)} tables. Rows: {told}"[: limits.MAX_DESCRIPTION_CHARS],
    )

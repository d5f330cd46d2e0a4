"""Templates created from the tables of a connection, and stored responses of external fields."""

from __future__ import annotations

from typing import Annotated, Literal

from flask import Blueprint, Response, request
from pydantic import Field

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.builder.inputs import Quantity
from webapp.builder.views.templates import TemplateOut
from webapp.connections.models import Connection
from webapp.connections.services import connections
from webapp.connections.views import pages as connection_pages
from webapp.endpoints.views.endpoints import EndpointOut
from webapp.errors import TARGET_ERRORS, ApiError
from webapp.imports.services import tables
from webapp.sources.services import kept_answers
from webapp.web.inputs import Input
from webapp.web.responses import Output, reply
from webapp.web.routing import route

bp = Blueprint("table_templates", __name__)

EntityName = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]


class TablesIn(Input):
    """Names of tables in the connection's metadata."""

    entities: Annotated[list[EntityName], Field(min_length=1, max_length=limits.TEMPLATES_OF_TABLES)]
    quantity: Quantity = limits.DEFAULT_QUANTITY


class ColumnReport(Output):
    """The result for one column.

    `state`: green, every value fits; yellow, needs a check; red, the column needs a value and gets none.
    `confidence`: high, the content was recognized; check, recognized with a reservation; unknown, neither the name nor
    the values say what the column contains, so the field is only one that fits. `type` is None
    if no field was created.
    """

    table: str
    column: str
    type: str | None
    state: Literal["green", "yellow", "red"]
    confidence: Literal["high", "check", "unknown"] = "check"
    reason: str


class SkippedEntity(Output):
    """A table that is left out, and the reason."""

    table: str
    code: str
    message: str
    hint: str


class TablesOut(Output):
    """The created templates, the result for each column, and for operations of an API their endpoints.

    `skipped`: tables whose template cannot be saved. The others do not refer to them.
    """

    templates: list[TemplateOut]
    report: list[ColumnReport]
    endpoints: list[EndpointOut]
    skipped: list[SkippedEntity]


class RefreshedOut(Output):
    """Number of values that were removed from the cache."""

    forgotten: int


@route(
    bp,
    "/connections/<connection_id>/templates",
    ["POST"],
    scope="write",
    body=TablesIn,
    returns=TablesOut,
    status=201,
    idempotent=True,
    errors=(*TARGET_ERRORS, "quota_exceeded"),
)
def create(actor: Actor, connection_id: str, body: TablesIn) -> Response:
    """Create related templates from tables.

    Types are derived from names, declared types, constraints and a small sample; foreign keys become
    references.
    """
    result = tables.create(actor, connection_id, body.entities, body.quantity)
    data = {
        "templates": result.templates,
        "report": result.report,
        "endpoints": result.endpoints,
        "skipped": result.skipped,
    }
    return reply(data, status=201)


@route(bp, "/connections/<connection_id>/fetched/refresh", ["POST"], scope="generate", returns=RefreshedOut)
def refresh(actor: Actor, connection_id: str) -> Response:
    """Clear the values that fields have fetched from a connection. They are fetched again when needed.

    Running exports and pushes keep the values that were fixed when they were created.
    """
    connection = tenancy.get(actor, Connection, connection_id, "generate")
    return reply({"forgotten": kept_answers.forget(actor, connection)})


@route(
    connection_pages.bp,
    "/connections/<connection_id>/tables",
    ["POST"],
    scope="write",
    allows_api_keys=False,
    hidden=True,
)
def templates_of(actor: Actor, connection_id: str) -> Response:
    """Create templates from the selected tables."""
    found = connections.get(actor, connection_id, "write")
    table_names = request.form.getlist("entities")
    result, error = None, None
    try:
        if table_names:
            result = tables.create(actor, connection_id, table_names, limits.DEFAULT_QUANTITY)
    except ApiError as trouble:
        error = trouble
    return connection_pages.tables_page(actor, found, connection_pages.TablesQuery(), result, error)

"""Templates made from the tables of a connection, and the answers that fields have fetched from one."""

from __future__ import annotations

from typing import Annotated, Literal

from flask import Blueprint, Response
from pydantic import Field

from webapp import limits
from webapp.accounts.actors import Actor
from webapp.accounts.services import tenancy
from webapp.connections.models import Connection
from webapp.endpoints.views.endpoints import EndpointOut
from webapp.generation.services import kept_answers
from webapp.imports.services import tables
from webapp.row_templates.views.templates import Quantity, TemplateOut
from webapp.web.inputs import Input
from webapp.web.responses import Output, reply
from webapp.web.routing import route

bp = Blueprint("table_templates", __name__)

TARGET_ERRORS = (
    "target_failed",
    "target_timeout",
    "target_not_allowed",
    "token_request_failed",
    "csrf_failed",
    "driver_missing",
)
EntityName = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]


class TablesIn(Input):
    """Which tables, by the names that the connection's metadata has."""

    entities: Annotated[list[EntityName], Field(min_length=1, max_length=limits.TEMPLATES_OF_TABLES)]
    quantity: Quantity = limits.DEFAULT_QUANTITY


class ColumnReport(Output):
    """What one column came to. `state`: green, every value fits; yellow, look at it; red, the column needs a value
    and gets none. `type` is None where no field was made."""

    table: str
    column: str
    type: str | None
    state: Literal["green", "yellow", "red"]
    reason: str


class TablesOut(Output):
    """The templates that were made, what each column came to, and for operations of an API their endpoints."""

    templates: list[TemplateOut]
    report: list[ColumnReport]
    endpoints: list[EndpointOut]


class RefreshedOut(Output):
    """How many answers are not used any more."""

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
    errors=TARGET_ERRORS,
)
def create(actor: Actor, connection_id: str, body: TablesIn) -> Response:
    """Make one linked template for each of some tables.

    Types follow from names, declared types, constraints and a small sample; foreign keys become references.
    """
    made = tables.create(actor, connection_id, body.entities, body.quantity)
    told = {"templates": made.templates, "report": made.report, "endpoints": made.endpoints}
    return reply(told, status=201)


@route(bp, "/connections/<connection_id>/fetched/refresh", ["POST"], scope="generate", returns=RefreshedOut)
def refresh(actor: Actor, connection_id: str) -> Response:
    """Forget what fields have fetched from a connection: who needs it next asks anew.

    Exports and pushes that are under way keep what they were asked for with.
    """
    connection = tenancy.get(actor, Connection, connection_id, "generate")
    return reply({"forgotten": kept_answers.forget(actor, connection)})

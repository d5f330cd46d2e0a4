"""The catalogue of field types."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Blueprint, Response, url_for
from pydantic import Field

from webapp import limits, pagination
from webapp.row_templates.services import catalogue
from webapp.web.inputs import Query
from webapp.web.responses import Output, reply
from webapp.web.routing import route

bp = Blueprint("field_types", __name__)


class CatalogueQuery(Query):
    """`q` searches names, labels and aliases, letters and digits only. `locale`, such as de_DE, sets `lacks`. Without
    `limit` all are listed."""

    q: Annotated[str, Field(max_length=limits.MAX_QUERY_TEXT)] = ""
    locale: Annotated[str, Field(max_length=limits.MAX_LOCALE_CHARS)] = ""
    limit: Annotated[int, Field(ge=1, le=limits.PAGE_LIMIT_MAX)] | None = None
    cursor: str | None = None


class FieldTypeOut(Output):
    """A field type. `capacity`: number of distinct values with default options; null if it is unlimited or unknown.
    `lacks`: what the requested locale has no values for; null if it has them, and without `locale`."""

    name: str
    label: str
    category: str
    description: str
    aliases: list[str]
    options_schema: dict[str, Any]
    example: Any
    capacity: int | None
    lacks: str | None


class FunctionOut(Output):
    """A function of the formula language. `result` is the result of `example` in row 1."""

    name: str
    family: str
    signature: str
    description: str
    example: str
    result: Any
    aliases: list[str]


class CatalogueOut(Output):
    """The field types, and the functions of formulas that match `q`."""

    items: list[FieldTypeOut]
    next_cursor: str | None
    total: int
    functions: list[FunctionOut]


@route(bp, "/field-types", scope="member", query=CatalogueQuery, returns=CatalogueOut)
def index(query: CatalogueQuery) -> Response:
    """List the field types and the functions of formulas."""
    return _listed(query)


@route(bp, "/fields", scope="member", query=CatalogueQuery, returns=CatalogueOut)
def fields(query: CatalogueQuery) -> Response:
    """List the field types: the same as /field-types."""
    return _listed(query)


def _listed(query: CatalogueQuery) -> Response:
    found = catalogue.search(query.q)
    page = pagination.of_list(
        found, name="field-types", cursor=query.cursor, limit=query.limit, context=query.q
    )
    answer = {**page.as_dict(dict), "functions": catalogue.functions(query.q)}
    if query.locale:
        answer["items"] = catalogue.of_locale(answer["items"], query.locale)
    return reply(answer, see=url_for("docs.field_types", q=query.q or None))

"""Templates, their versions, and the catalogue of field types."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Blueprint, Response, g, url_for
from pydantic import Field, WithJsonSchema

from webapp import limits, pagination
from webapp.access.actors import Actor
from webapp.builder import services
from webapp.builder.inputs import TemplateIn, TemplatePatch
from webapp.builder.views import builder
from webapp.errors import ApiError
from webapp.row_templates.schemas import FIELD_SCHEMA, Seed
from webapp.row_templates.services import catalogue, templates
from webapp.versioning import views as versioned_routes
from webapp.versioning.views import OtherQuery
from webapp.web.inputs import Query, merge_faults
from webapp.web.responses import Output, reply
from webapp.web.routing import route

bp = Blueprint("templates", __name__)


class TemplateReference(Output):
    """A template that fields refer to, directly or indirectly, as it was when the version was saved."""

    template_id: str
    version: int
    rows: int


class TemplateOut(Output):
    """A version of a template."""

    id: str
    name: str
    description: str
    quantity: int
    fields: Annotated[list[dict[str, Any]], WithJsonSchema({"type": "array", "items": FIELD_SCHEMA})]
    version: int
    locale: str | None
    anchor: str | None
    source: dict[str, Any] | None
    invalid: dict[str, Any] | None
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    updated_at: str
    deleted_at: str | None
    warnings: list[dict[str, str]]
    references: list[TemplateReference]


class DiffQuery(OtherQuery):
    """The other version (default: the newest), and the seed of a preview of both."""

    seed: Seed | None = None


class DiffOut(Output):
    """The changes from one version to another."""

    template_id: str
    from_: Annotated[int, Field(alias="from")]
    to: int
    template: dict[str, Any]
    fields: dict[str, list[dict[str, Any]]]
    preview: dict[str, Any] | None


versioned_routes.declare_list(bp, templates.KIND, TemplateOut)
versioned_routes.declare_deletion(bp, templates.KIND, TemplateOut)
versioned_routes.declare_versions(
    bp,
    templates.KIND,
    TemplateOut,
    summary="Make an earlier version the newest: creates a version with the same contents.",
)
versioned_routes.declare_refresh(
    bp, templates.KIND, TemplateOut, templates.refresh_references,
    summary="Use the newest versions of related templates. If there are none, nothing changes.",
)  # fmt: skip


def more_faults_of_template(actor: Actor, error: ApiError, submitted: Any, template_id: str = "") -> ApiError:
    """Return the error of a new or changed template, with what else is wrong with it."""

    def check(changes: TemplatePatch) -> None:
        templates.check(actor, changes.model_dump(exclude_unset=True), template_id)

    return merge_faults(error, submitted, TemplatePatch, check)


@route(
    bp,
    "/templates",
    ["POST"],
    scope="write",
    body=TemplateIn,
    returns=TemplateOut,
    status=201,
    idempotent=True,
    errors=versioned_routes.SAVE_ERRORS,
    more_faults=more_faults_of_template,
)
def create(actor: Actor, body: TemplateIn) -> Response:
    """Create a template."""
    template = templates.create(actor, **body.model_dump())
    address = url_for("templates.show", template_id=template["id"])
    return reply(template, status=201, redirect_to=address, send_etag=True, headers={"Location": address})


@route(bp, "/templates/<template_id>", scope="read", returns=TemplateOut)
def show(actor: Actor, template_id: str) -> Response:
    """Get a template."""
    template = templates.get(actor, template_id)
    if g.face == "person":
        return builder.render_page(actor, template)
    return reply(templates.show(template), send_etag=True)


@route(
    bp,
    "/templates/<template_id>",
    ["PATCH", "PUT"],
    scope="write",
    body=TemplatePatch,
    returns=TemplateOut,
    errors=versioned_routes.CHANGE_ERRORS,
    more_faults=more_faults_of_template,
)
def change(actor: Actor, template_id: str, body: TemplatePatch) -> Response:
    """Change a template, which creates a new version.

    Fields are matched by ID, otherwise by name, and keep their IDs. Fields that are not in `fields` are
    removed.
    """
    template = versioned_routes.get_matching_head(actor, templates.KIND, template_id)
    changed = templates.change(actor, template, body.model_dump(exclude_unset=True))
    return reply(changed, redirect_to=url_for("templates.show", template_id=template_id), send_etag=True)


@route(bp, "/templates/<template_id>@v<int:number>", scope="read", returns=TemplateOut)
def show_version(actor: Actor, template_id: str, number: int) -> Response:
    """Get a version of a template."""
    template = templates.get(actor, template_id)
    found = templates.show(template, number)
    if g.face == "person":
        return builder.render_version(actor, template, found)
    return reply(found, send_etag=True)


@route(bp, "/templates/<template_id>@v<int:number>/diff", scope="read", query=DiffQuery, returns=DiffOut)
def diff(actor: Actor, template_id: str, number: int, query: DiffQuery) -> Response:
    """Get the changes from one version to another (default: the newest); with `seed`, cell by cell in a preview."""
    template = templates.get(actor, template_id)
    other = template.version if query.to is None else query.to
    if g.face == "person":
        return builder.render_diff(template, number, other, query.seed or "sample")
    return reply(services.diff_versions(template, number, other, query.seed))


# --- Catalogue of field types -------------------------------------------------------------------------------

field_types_bp = Blueprint("field_types", __name__)


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


@route(
    field_types_bp,
    "/field-types",
    scope="member",
    query=CatalogueQuery,
    returns=CatalogueOut,
    errors=("validation_error",),
)
def index(query: CatalogueQuery) -> Response:
    """List the field types and the functions of formulas."""
    return _list_types(query)


@route(
    field_types_bp,
    "/fields",
    scope="member",
    query=CatalogueQuery,
    returns=CatalogueOut,
    errors=("validation_error",),
)
def fields(query: CatalogueQuery) -> Response:
    """List the field types: the same as /field-types."""
    return _list_types(query)


def _list_types(query: CatalogueQuery) -> Response:
    found = catalogue.search(query.q)
    page = pagination.paginate_list(
        found, name="field-types", cursor=query.cursor, limit=query.limit, context=query.q
    )
    data = {**page.as_dict(dict), "functions": catalogue.functions(query.q)}
    if query.locale:
        data["items"] = catalogue.with_missing_values(data["items"], query.locale)
    return reply(data, redirect_to=url_for("docs.field_types", q=query.q or None))

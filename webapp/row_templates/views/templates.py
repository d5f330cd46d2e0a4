"""Templates and their versions."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Blueprint, Response, g, url_for
from pydantic import Field, ValidationError, WithJsonSchema

from webapp import limits
from webapp.accounts.actors import Actor
from webapp.engine import plan as engine_plan
from webapp.engine import spec as engine_spec
from webapp.engine.bad.invalid import Invalid
from webapp.engine.errors import SpecError
from webapp.engine.real import SourceSpec
from webapp.errors import Fault
from webapp.row_templates.schemas import FIELD_SCHEMA, READ_ONLY, Fields, Locale, Name, Seed
from webapp.row_templates.services import compilation, templates
from webapp.row_templates.services import diff as row_templates_diff
from webapp.timestamps import Moment
from webapp.web import versioned_routes
from webapp.web.inputs import Input
from webapp.web.responses import Output, reply
from webapp.web.routing import route
from webapp.web.versioned_routes import Description, OtherQuery

bp = Blueprint("templates", __name__)

Quantity = Annotated[int, Field(ge=limits.MIN_ROWS, le=limits.ENTERPRISE_MAX.rows_per_generation)]


class TemplateInput(Input):
    """What is said of the fields stands beside what is said of the rest: all faults at once."""

    read_only = READ_ONLY

    @classmethod
    def more_faults(cls, body: dict[str, Any]) -> list[Fault]:
        """The faults of the fields, for an answer that already names others."""
        fields = body.get("fields")
        if not isinstance(fields, list):
            return []
        try:
            given = (
                SourceSpec.model_validate(source) if isinstance(source := body.get("source"), dict) else None
            )
            wrong = (
                Invalid.model_validate(invalid) if isinstance(invalid := body.get("invalid"), dict) else None
            )
            locale = body.get("locale") if isinstance(body.get("locale"), str) else None
            parsed = engine_spec.parse(fields, locale=locale, source=given, invalid=wrong)
            return engine_plan.value_faults(parsed, compilation.vocabulary())
        except ValidationError:  # these have faults of their own, which stand in the answer already
            return []
        except SpecError as error:
            return engine_plan.all_faults(error, compilation.vocabulary())


class TemplateIn(TemplateInput):
    """A new template."""

    name: Name
    fields: Fields
    description: Description = ""
    quantity: Quantity = limits.DEFAULT_QUANTITY
    locale: Locale | None = None
    anchor: Moment | None = None
    source: SourceSpec | None = None
    invalid: Invalid | None = None


class TemplatePatch(TemplateInput):
    """What of a template can change; what is left out stays."""

    name: Name = ""
    fields: Fields = Field(default_factory=list)
    description: Description = ""
    quantity: Quantity = limits.DEFAULT_QUANTITY
    locale: Locale | None = None
    anchor: Moment | None = None
    source: SourceSpec | None = None
    invalid: Invalid | None = None


class TemplateReference(Output):
    """A template that fields reach, directly or through others, as it was when the version was saved."""

    template_id: str
    version: int
    rows: int


class TemplateOut(Output):
    """A template as of one version."""

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
    """What changed from one version to another."""

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
    restores="Make an earlier version the newest: a new version that says the same.",
)
versioned_routes.declare_refresh(
    bp, templates.KIND, TemplateOut, templates.refresh_references,
    does="Pin the newest versions of the templates this one refers to; without a newer one nothing changes.",
)  # fmt: skip


@route(
    bp,
    "/templates",
    ["POST"],
    scope="write",
    body=TemplateIn,
    returns=TemplateOut,
    status=201,
    idempotent=True,
)
def create(actor: Actor, body: TemplateIn) -> Response:
    """Make a template."""
    made = templates.create(actor, **body.model_dump())
    where = url_for("templates.show", template_id=made["id"])
    return reply(made, status=201, see=where, tag=True, headers={"Location": where})


@route(bp, "/templates/<template_id>", scope="read", returns=TemplateOut)
def show(actor: Actor, template_id: str) -> Response:
    """Read a template."""
    template = templates.get(actor, template_id)
    if g.face == "person":
        from webapp.row_templates.views import builder  # which reads this module's inputs

        return builder.page(actor, template)
    return reply(templates.show(template), tag=True)


@route(
    bp,
    "/templates/<template_id>",
    ["PATCH", "PUT"],
    scope="write",
    body=TemplatePatch,
    returns=TemplateOut,
    errors=versioned_routes.CONFLICTS,
)
def change(actor: Actor, template_id: str, body: TemplatePatch) -> Response:
    """Change any part of a template, which makes its next version.

    Fields are matched by id, else by name, and keep their ids; fields left out of `fields` are gone.
    """
    template = versioned_routes.matched(actor, templates.KIND, template_id)
    changed = templates.change(actor, template, body.model_dump(exclude_unset=True))
    return reply(changed, see=url_for("templates.show", template_id=template_id), tag=True)


@route(bp, "/templates/<template_id>@v<int:number>", scope="read", returns=TemplateOut)
def show_version(actor: Actor, template_id: str, number: int) -> Response:
    """Read one version of a template."""
    template = templates.get(actor, template_id)
    found = templates.show(template, number)
    if g.face == "person":
        from webapp.row_templates.views import version_pages

        return version_pages.page(actor, template, found)
    return reply(found, tag=True)


@route(bp, "/templates/<template_id>@v<int:number>/diff", scope="read", query=DiffQuery, returns=DiffOut)
def diff(actor: Actor, template_id: str, number: int, query: DiffQuery) -> Response:
    """What changed from one version to another (default: the newest); with `seed`, cell by cell in a preview."""
    template = templates.get(actor, template_id)
    other = template.version if query.to is None else query.to
    if g.face == "person":
        from webapp.row_templates.views import version_pages

        return version_pages.diff_page(template, number, other, query.seed or "sample")
    return reply(row_templates_diff.between(template, number, other, query.seed))

"""Templates: made, read, changed, deleted, and every version of them.

A template is a head (what lists and searches need) and one row for each version, which never changes. Every
change makes a version (specification, section 9). Saving compiles the template, so that nothing is stored that
could not make rows; what merely runs out of distinct values is told as a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Select, select

from webapp import clock, ids, limits
from webapp.engine.block import Bound, Env
from webapp.engine.errors import SpecError
from webapp.engine.plan import ENGINE, Plan
from webapp.extensions import db
from webapp.models import Template, TemplateVersion
from webapp.services import audit, kin, paging, plans, template_fields, tenancy, vocabularies
from webapp.services.actors import Actor

CHANGEABLE: Final = ("name", "description", "quantity", "fields", "locale", "anchor")
"""The attributes that a caller sets; together they are a version's stored spec, with `warnings` beside them."""


def as_json(template: Template, version: TemplateVersion) -> dict[str, Any]:
    """A template as of one version, as the API shows it."""
    spec = version.spec
    return {
        "id": template.id,
        "name": spec["name"],
        "description": spec["description"],
        "quantity": spec["quantity"],
        "fields": spec["fields"],
        "version": version.number,
        "locale": spec["locale"],
        "anchor": spec["anchor"],
        "project_id": template.project_id,
        "team_id": template.team_id,
        "created_by": template.created_by,
        "created_at": clock.to_text(template.created_at),
        "updated_at": clock.to_text(version.created_at),
        "deleted_at": clock.to_text(template.deleted_at),
        "warnings": spec["warnings"],
        "references": [{"template_id": one, **pinned} for one, pinned in version.pins.get("templates", {}).items()],
    }


def listing(
    actor: Actor,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    q: str | None = None,
    sort: str | None = None,
) -> paging.Page[dict[str, Any]]:
    """A page of the project's templates, each whole: newest first, or by `name` or `updated` (`-`: backwards)."""
    order = {"name": Template.name, "updated": Template.updated_at}.get((sort or "").removeprefix("-"))
    page = paging.page(
        tenancy.listing(actor, Template),
        name="templates",
        identity=Template.id,
        cursor=cursor,
        limit=limit,
        search=(q, Template.name),
        order=order,
        descending=sort is None or sort.startswith("-"),
        context=actor.project_id or "",
    )
    newest = {version.template_id: version for version in db.session.scalars(_newest_of(page.items))}
    items = [as_json(template, newest[template.id]) for template in page.items]
    return paging.Page(items, page.next_cursor, page.total)


def _newest_of(templates: Sequence[Template]) -> Select[tuple[TemplateVersion]]:
    return (
        select(TemplateVersion)
        .join(Template, Template.id == TemplateVersion.template_id)
        .where(Template.id.in_([template.id for template in templates]), TemplateVersion.number == Template.version)
    )


def get(
    actor: Actor, template_id: str, scope: str = "read", *, lock: bool = False, deleted: bool = False
) -> Template:
    """A template's head. Errors: not_found, forbidden."""
    return tenancy.get(actor, Template, template_id, scope, lock=lock, deleted=deleted)


def version_of(template: Template, number: int | None = None) -> TemplateVersion:
    """One version of a template; its newest for None. Error: not_found."""
    wanted = template.version if number is None else number
    found = None
    if 1 <= wanted <= template.version:
        statement = select(TemplateVersion).where(
            TemplateVersion.template_id == template.id, TemplateVersion.number == wanted
        )
        found = db.session.scalar(statement)
    if found is None:
        raise tenancy.not_found("template version", f"{template.id}@v{wanted}")
    return found


def show(template: Template, number: int | None = None) -> dict[str, Any]:
    """A template as of a version (default: the newest), as the API shows it. Error: not_found."""
    return as_json(template, version_of(template, number))


def versions(
    template: Template, *, cursor: str | None = None, limit: int = limits.PAGE_LIMIT_DEFAULT
) -> paging.Page[dict[str, Any]]:
    """A page of a template's versions, newest first, each the whole template as of then."""
    page = paging.page(
        select(TemplateVersion).where(TemplateVersion.template_id == template.id),
        name="template_versions",
        identity=TemplateVersion.number,
        cursor=cursor,
        limit=limit,
        context=template.id,
    )
    return paging.Page([as_json(template, one) for one in page.items], page.next_cursor, page.total)


def create(
    actor: Actor,
    *,
    name: str,
    fields: Any,
    description: str = "",
    quantity: int = limits.DEFAULT_QUANTITY,
    locale: str | None = None,
    anchor: datetime | None = None,
) -> dict[str, Any]:
    """A new template in the actor's project, with its first version; commits. Returns it as the API shows it.

    `fields` are field definitions as sent; `anchor` (aware) is the present when none is given. Errors:
    validation_error with every fault of the fields.
    """
    moment = clock.now()
    spec = {
        "name": name,
        "description": description,
        "quantity": quantity,
        "fields": fields,
        "locale": locale,
        "anchor": clock.to_text(anchor or moment.replace(microsecond=0)),
    }
    template = Template(id=ids.new("tpl"), **tenancy.here(actor), created_by=actor.user_id, created_at=moment)
    ready, pins = _checked(actor, template, spec, before=())
    db.session.add(template)
    return _save(actor, template, ready, pins, "template.create", moment)


def change(actor: Actor, template: Template, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The next version of a locked template, with `changes` (any of `CHANGEABLE`, as sent; `anchor` aware or
    None, which sets it to the present); commits. Returns the template as the API shows it.

    Fields keep their ids, and the groups they were in. Error: validation_error.
    """
    moment = clock.now()
    before = version_of(template).spec
    spec = {key: changes.get(key, before[key]) for key in CHANGEABLE}
    if "anchor" in changes:
        spec["anchor"] = clock.to_text(changes["anchor"] or moment.replace(microsecond=0))
    ready, pins = _checked(actor, template, spec, before["fields"])
    return _save(actor, template, ready, pins, "template.change", moment)


def restore_version(actor: Actor, template: Template, number: int) -> dict[str, Any]:
    """Make version `number` of a locked template the newest: a new version that says the same and, since it
    keeps that version's vocabulary, makes the same rows; commits. Error: not_found."""
    old = version_of(template, number)
    return _save(actor, template, old.spec, old.pins, "template.restore_version", clock.now(), restored=number)


def refresh_references(actor: Actor, template: Template) -> dict[str, Any]:
    """Pin the newest versions of the templates that a locked one refers to; commits.

    A template whose pins are the newest already, or that refers to none, keeps its version. Error: validation_error
    where what it refers to has changed so that it no longer fits.
    """
    newest = version_of(template)
    versions = kin.gather(newest.spec["fields"], template.id, lambda wanted: kin.newest(actor, wanted))
    if kin.pins_of(versions) == newest.pins.get("templates", {}):
        db.session.commit()
        return show(template)
    spec = {key: newest.spec[key] for key in CHANGEABLE}
    ready, pins = _checked(actor, template, spec, newest.spec["fields"])
    return _save(actor, template, ready, pins, "template.refresh_references", clock.now())


def delete(actor: Actor, template: Template) -> dict[str, Any]:
    """Soft-delete a locked template; commits. Returns it as the API shows it."""
    tenancy.soft_delete(actor, template)
    return show(template)


def restore(actor: Actor, template: Template) -> dict[str, Any]:
    """Take a deletion back within 30 days; commits. Returns the template as the API shows it. Error: not_found."""
    tenancy.restore(actor, template)
    return show(template)


def _checked(
    actor: Actor, template: Template, spec: dict[str, Any], before: Sequence[template_fields.Stored]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A spec as it is stored, and its pins. `validation_error` with every fault."""
    parsed = plans.parsed_fields(spec["fields"], name=spec["name"], locale=spec["locale"])
    versions = kin.gather(spec["fields"], template.id, lambda wanted: kin.newest(actor, wanted))
    finished = template_fields.finished(parsed, before)
    library = kin.library(versions, template.id, spec["quantity"], {})
    words = plans.vocabulary()
    plan = plans.compiled(finished, words, None, library)
    vocabularies.keep(words.id)
    ready = {**spec, "fields": kin.spelled([field.to_json() for field in finished.fields], finished, library)}
    ready["warnings"] = warnings_of(plan, spec["quantity"])
    return ready, {"vocabulary": words.id, "engine": ENGINE, "templates": kin.pins_of(versions)}


def warnings_of(plan: Plan, quantity: int) -> list[dict[str, str]]:
    """What will surprise in `quantity` rows of a plan: what the engine says of it, and fields that must be unique
    but have too few values. Rows are refused only when they are asked for."""
    found = list(plan.warnings)
    try:
        Bound(plan, Env("", clock.now())).check(0, quantity)
    except SpecError as error:
        found += error.faults
    return [fault.as_dict() for fault in found]


def _save(
    actor: Actor,
    template: Template,
    spec: dict[str, Any],
    pins: dict[str, Any],
    action: str,
    moment: datetime,
    **details: Any,
) -> dict[str, Any]:
    template.version = 1 if action == "template.create" else template.version + 1
    template.name, template.description = spec["name"], spec["description"]
    template.field_count = len(spec["fields"])
    template.updated_at = moment
    db.session.flush()
    version = TemplateVersion(
        template_id=template.id,
        number=template.version,
        spec=spec,
        pins=pins,
        created_by=actor.user_id,
        created_at=moment,
    )
    db.session.add(version)
    audit.record(actor, action, template, join=True, name=template.name, version=template.version, **details)
    db.session.commit()
    return as_json(template, version)


def loader(template_id: str, number: int) -> Callable[[], tuple[dict[str, Any], dict[str, Any]]]:
    """Reads one version's stored spec and pins, when it is called."""

    def load() -> tuple[dict[str, Any], dict[str, Any]]:
        statement = select(TemplateVersion.spec, TemplateVersion.pins).where(
            TemplateVersion.template_id == template_id, TemplateVersion.number == number
        )
        row = db.session.execute(statement).one_or_none()
        if row is None:
            raise tenancy.not_found("template version", f"{template_id}@v{number}")
        return row.spec, row.pins

    return load

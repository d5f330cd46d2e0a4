"""Templates and their versions: create, read, change and delete them.

A template consists of a head (attributes for lists and searches) and one immutable row per version. Every change
creates a version (specification, section 9). Saving compiles the template, so that every stored template can generate
rows. A possible lack of distinct values is reported as a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select

from webapp import clock, ids, limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.models import Connection
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.errors import SpecError
from webapp.engine.invalid_data.settings import Invalid
from webapp.engine.plan import Plan
from webapp.engine.spec import ELEMENT
from webapp.errors import ErrorCollector, Fault, validation_error
from webapp.extensions import db
from webapp.row_templates.models import Template, TemplateVersion
from webapp.row_templates.services import compilation, field_ids, related_templates, vocabularies
from webapp.versioning import services as versioning

CHANGEABLE: Final = ("name", "description", "quantity", "fields", "locale", "anchor", "source", "invalid")
"""The attributes that clients can set; together with `warnings` they are the stored spec of a version."""


def as_json(template: Template, version: TemplateVersion) -> dict[str, Any]:
    """Return a version of a template as the API shows it."""
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
        "source": spec.get("source"),
        "invalid": spec.get("invalid"),
        "project_id": template.project_id,
        "team_id": template.team_id,
        "created_by": template.created_by,
        "created_at": clock.to_text(template.created_at),
        "updated_at": clock.to_text(version.created_at),
        "deleted_at": clock.to_text(template.deleted_at),
        "warnings": spec["warnings"],
        "references": [
            {"template_id": item, **pinned} for item, pinned in version.pins.get("templates", {}).items()
        ],
    }


def _set_field_count(template: Template, spec: versioning.Spec) -> None:
    template.field_count = len(spec["fields"])


KIND: Final = versioning.VersionedKind(Template, TemplateVersion, as_json, _set_field_count)
listing, get, show, versions, version_of = KIND.listing, KIND.get, KIND.show, KIND.versions, KIND.version_of
restore_version, delete, restore = KIND.restore_version, KIND.delete, KIND.restore


def create(
    actor: Actor,
    *,
    name: str,
    fields: Any,
    description: str = "",
    quantity: int = limits.DEFAULT_QUANTITY,
    locale: str | None = None,
    anchor: datetime | None = None,
    source: Mapping[str, Any] | None = None,
    invalid: Mapping[str, Any] | None = None,
    made_from: tuple[str | None, str | None] = (None, None),
) -> dict[str, Any]:
    """Create a template in the actor's project with its first version; commits. Returns it as the API shows it.

    `fields` are field definitions of the request; `anchor` (timezone-aware) is the reference date, default now;
    `made_from` is the connection's id and the name of its table, if the template represents one. Errors:
    validation_error with all errors of the fields.
    """
    moment = clock.now()
    spec = {
        "name": name,
        "description": description,
        "quantity": quantity,
        "fields": fields,
        "locale": locale,
        "anchor": clock.to_text(anchor or moment.replace(microsecond=0)),
        "source": _stored_source(source),
        "invalid": _stored_invalid(invalid),
    }
    template = Template(
        id=ids.new("tpl"), **tenancy.current_scope(actor), created_by=actor.user_id, created_at=moment
    )
    template.made_from_id, template.made_from_entity = made_from
    ready, pins = _validate(actor, template, spec, before={"fields": ()})
    return KIND.save(actor, template, ready, pins, "create", moment)


def change(actor: Actor, template: Template, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Save the next version of a locked template, with `changes` (any of `CHANGEABLE`, as sent; `anchor` aware or
    None, which sets it to the current time); commits. Returns the template as the API shows it.

    Fields keep their ids, and the groups they were in. Error: validation_error.
    """
    moment = clock.now()
    before = version_of(template).spec
    spec = {key: changes.get(key, before.get(key)) for key in CHANGEABLE}
    if "anchor" in changes:
        spec["anchor"] = clock.to_text(changes["anchor"] or moment.replace(microsecond=0))
    spec["source"], spec["invalid"] = _stored_source(spec["source"]), _stored_invalid(spec["invalid"])
    ready, pins = _validate(actor, template, spec, before)
    return KIND.save(actor, template, ready, pins, "change", moment)


def refresh_references(actor: Actor, template: Template) -> dict[str, Any]:
    """Pin the newest versions of the templates that a locked one references; commits.

    A template without references, or whose pins are up to date, keeps its version. Error: validation_error if a
    reference is no longer valid.
    """
    newest = version_of(template)
    versions = related_templates.collect_related(
        newest.spec["fields"], template.id, lambda ids: related_templates.newest_versions(actor, ids)
    )
    if related_templates.pins_of(versions) == newest.pins.get("templates", {}):
        db.session.commit()
        return show(template)
    spec = {key: newest.spec.get(key) for key in CHANGEABLE}
    ready, pins = _validate(actor, template, spec, newest.spec)
    return KIND.save(actor, template, ready, pins, "refresh_references", clock.now())


def _stored_source(source: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a source in its stored form, without defaults."""
    return None if source is None else {name: value for name, value in source.items() if value is not None}


def _stored_invalid(settings: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the settings for invalid data in their stored form."""
    return None if settings is None else Invalid.model_validate(settings).to_json()


def _validate(
    actor: Actor, template: Template, spec: dict[str, Any], before: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a spec in its stored form, and its pins. `before` is the spec of the previous version. Error:
    validation_error with all errors."""
    errors = ErrorCollector()
    vocabulary = compilation.vocabulary()
    if spec["source"] is not None:
        with errors.check():
            related_templates.reject_self_references(spec["fields"], template.id)
    with errors.check():
        versions = related_templates.collect_related(
            spec["fields"],
            template.id,
            lambda ids: related_templates.newest_versions(actor, ids),
            spec["locale"],
        )
        parsed = compilation.parse_fields(
            spec["fields"],
            name=spec["name"],
            locale=spec["locale"],
            source=spec["source"],
            invalid=spec["invalid"],
        )
        final_spec = field_ids.assign_ids_and_groups(parsed, before["fields"])
        library = related_templates.build_library(versions, template.id, spec["quantity"], {})
        plan = compilation.compile_template(final_spec, vocabulary, None, library)
    with errors.check():
        _check_connections(actor, spec, before)
    errors.raise_all()
    vocabularies.ensure_stored(vocabulary.id)
    ready = {
        **spec,
        "fields": related_templates.with_reference_fields(
            [field.to_json() for field in final_spec.fields], final_spec, library
        ),
    }
    ready["warnings"] = warnings_of(plan, spec["quantity"])
    return ready, {
        "vocabulary": vocabulary.id,
        "engine": vocabulary.engine,
        "templates": related_templates.pins_of(versions),
    }


def check(actor: Actor, changes: Mapping[str, Any], template_id: str = "") -> None:
    """Check the attributes of a new template, or changes of an existing one, without saving them.

    Errors: validation_error with all errors; not_found, forbidden.
    """
    before: Mapping[str, Any] = {"name": "", "fields": (), "quantity": limits.DEFAULT_QUANTITY}
    template = Template(id=template_id)
    if template_id:
        template = get(actor, template_id, "write")
        before = version_of(template).spec
    spec = {key: changes.get(key, before.get(key)) for key in CHANGEABLE}
    spec["source"], spec["invalid"] = _stored_source(spec["source"]), _stored_invalid(spec["invalid"])
    if spec["fields"]:
        _validate(actor, template, spec, before)


def _check_connections(actor: Actor, spec: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Reject references to connections that do not exist or that the actor cannot see. References of the previous
    version are allowed. Error: validation_error with all of them."""
    allowed = versioning.ids_in([before["fields"], before.get("source")])
    source = (spec["source"] or {}).get("connection_id")
    references = [("source.connection_id", source), *_connections_in(spec["fields"], "fields")]
    new_ids = {item for _, item in references if isinstance(item, str) and item.startswith("con_")} - allowed
    if not new_ids:
        return
    conditions = (
        Connection.id.in_(new_ids),
        Connection.workspace_id == actor.workspace_id,
        Connection.deleted_at.is_(None),
    )
    rows = db.session.execute(select(Connection.id, Connection.team_id).where(*conditions))
    unseen = new_ids - {row.id for row in rows if actor.role_in(row.team_id) is not None}
    hint = "It may have been deleted: restore it, or choose another one."
    found = [
        Fault(path, "unknown_connection", f'There is no connection "{item}" in this project.', hint)
        for path, item in references
        if item in unseen
    ]
    if found:
        raise validation_error(found)


def _connections_in(fields: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Return path and id of each connection that fields of all levels name."""
    for place, field in enumerate(fields) if isinstance(fields, list) else ():
        yield from _connections_of(field, f"{path}[{place}].options")


def _connections_of(field: Any, path: str) -> Iterator[tuple[str, Any]]:
    options = field.get("options") if isinstance(field, Mapping) else None
    if isinstance(options, Mapping):
        yield f"{path}.connection_id", options.get("connection_id")
        yield from _connections_in(options.get("fields"), f"{path}.fields")
        yield from _connections_of(options.get(ELEMENT), f"{path}.{ELEMENT}.options")


def warnings_of(plan: Plan, quantity: int) -> list[dict[str, str]]:
    """Return warnings about `quantity` rows of a plan: warnings of the engine, and fields that must be unique but have
    too few values. Such rows are only rejected when they are requested."""
    found = list(plan.warnings)
    try:
        BoundPlan(plan, GenerationContext("", clock.now())).check(0, quantity)
    except SpecError as error:
        found += error.faults
    return [fault.as_dict() for fault in found]


def loader(template_id: str, number: int) -> Callable[[], tuple[dict[str, Any], dict[str, Any]]]:
    """Return a function that reads the stored spec and pins of a version."""

    def load() -> tuple[dict[str, Any], dict[str, Any]]:
        statement = select(TemplateVersion.spec, TemplateVersion.pins).where(
            TemplateVersion.template_id == template_id, TemplateVersion.number == number
        )
        row = db.session.execute(statement).one_or_none()
        if row is None:
            raise KIND.version_not_found(template_id, number)
        return row.spec, row.pins

    return load

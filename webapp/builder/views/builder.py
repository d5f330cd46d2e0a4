"""The template builder's page: open, save, compare versions, and read one version. For browsers only; API clients use
/templates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import orjson
from flask import Blueprint, Response, flash, render_template, request, url_for
from pydantic import Field

from webapp import limits
from webapp.access.actors import Actor
from webapp.access.models import User
from webapp.builder import forms, services
from webapp.builder.forms import assign_faults, draft_fields, fault_text
from webapp.builder.inputs import TemplateIn
from webapp.builder.services import faults_of
from webapp.builder.views import draft_page
from webapp.builder.views.draft_page import PAGE, OpenDraft, ViewState
from webapp.builder.views.drafts import parse_button
from webapp.engine.types.registry import find
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.generation import views as generation_views
from webapp.pushes.views import pages
from webapp.row_templates.models import Template
from webapp.row_templates.services import compilation, field_ids, relations, templates
from webapp.starters import services as starters
from webapp.web import row_tables
from webapp.web.forms.controls import as_text
from webapp.web.inputs import Query, parse
from webapp.web.responses import render_block, see_other
from webapp.web.routing import route

_SHOWN_ELSEWHERE: Final = frozenset({"id", "name", "type", "label", "options", "description"})


def render_version(actor: Actor, template: Template, version: Mapping[str, Any]) -> Response:
    """Show a version, which can be restored."""
    related = relations.names_of(actor, [template_id["template_id"] for template_id in version["references"]])
    names = {template_id: name for template_id, (name, _) in related.items()}
    text = {key: version[key] for key in ("name", "description", "quantity", "locale", "anchor", "fields")}
    html = render_template(
        "templates/version.html",
        data=version,
        newest=template.version,
        names=names,
        fields=list(_field_rows(version["fields"], names)),
        json_text=orjson.dumps(text, option=orjson.OPT_INDENT_2).decode(),
        can_write=actor.can("write", template.team_id),
    )
    return Response(html, mimetype="text/html")


def _field_rows(fields: Any, names: Mapping[str, str], depth: int = 0) -> Iterator[dict[str, Any]]:
    for field in fields:
        kind = find(field["type"])
        settings = [(key, value) for key, value in field["options"].items() if key != "fields"]
        settings += [
            (key, field[key])
            for key in field
            if key not in _SHOWN_ELSEWHERE and field[key] not in (None, "", False, 0)
        ]
        yield {
            "name": field["name"],
            "depth": depth,
            "label": kind.label if kind else field["type"],
            "description": field["description"],
            "options": [
                (key.replace("_", " "), "" if value is True else names.get(str(value)) or as_text(value))
                for key, value in settings
            ],
        }
        yield from _field_rows(field_ids.children(field), names, depth + 1)


def render_diff(template: Template, number: int, other: int, seed: str) -> Response:
    """Show the differences between two versions."""
    context = diff_context(template, number, other, seed)
    return Response(render_template("templates/version_diff.html", **context), mimetype="text/html")


def diff_context(template: Template, number: int, other: int, seed: str) -> dict[str, Any]:
    """Return the context of templates/diff.html: the differences, and the previews of both cell by cell. Error:
    not_found."""
    try:
        found = services.diff_versions(template, number, other, seed)
    except ApiError as error:
        if error.status >= 500 or error.code == "not_found":
            raise
        found = {**services.diff_versions(template, number, other), "problem": error.message}
    grids = row_tables.compared(found["preview"]) if found["preview"] else None
    return {"diff": found, "grids": grids, "seed": seed, "template": template}


bp = Blueprint("builder", __name__)

# --- The builder --------------------------------------------------------------------------------------------


def render_page(actor: Actor, template: Template) -> Response:
    """Render the builder for a saved template, with the user's draft of it."""
    draft, state = draft_page.draft_of_template(actor, template), ViewState.from_request(request.args)
    if request.args.get("view") != "versions":
        return draft_page.render_page(draft, state)
    versions = [
        {
            "number": version.number,
            "at": version.created_at,
            "who": who,
            "fields": len(version.spec["fields"]),
            "diff_href": url_for("builder.diff", template_id=template.id, number=version.number),
            "href": url_for("templates.show_version", template_id=template.id, number=version.number),
            "restore_href": url_for(
                "templates.restore_version", template_id=template.id, number=version.number
            ),
        }
        for version, who in templates.KIND.history(template)
    ]
    return draft_page.render_page(draft, state, versions=versions)


class NewQuery(Query):
    """Initial values of a new template: names of fields, separated by commas, and its name; a table of a starter; or an
    unsaved draft."""

    names: str = ""
    name: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] = ""
    starter: str = ""
    draft: str = ""


@route(bp, "/templates/new", scope="write", query=NewQuery, hidden=True, allows_api_keys=False)
def new(actor: Actor, query: NewQuery) -> Response:
    """Show the builder with a template that is not saved."""
    state = ViewState.from_request(request.args)
    if query.draft:
        row = services.get(actor, query.draft)
        if row.template_id is not None:
            return see_other(url_for("templates.show", template_id=row.template_id))
        return draft_page.render_page(draft_page.open_draft(actor, None, row, services.spec_of(row)), state)
    started = starters.table_draft(query.starter) if query.starter else None
    if started is not None:
        draft = draft_page.open_draft(actor, None, None, {**draft_page.new_spec([]), **started})
        return draft_page.render_page(draft, state, starters=(), left=None)
    fields = forms.parse_names(query.names or "id, name, email")
    draft = draft_page.open_draft(actor, None, None, draft_page.new_spec(fields, query.name))
    earlier = None if query.names or query.name else services.newest_unsaved_draft(actor)
    left = (services.spec_of(earlier), earlier) if earlier is not None else None
    return draft_page.render_page(
        draft, state, starters=() if query.names else starters.standalone_tables(), left=left
    )


@route(bp, "/templates/new", ["POST"], scope="write", hidden=True, allows_api_keys=False)
def make(actor: Actor) -> Response:
    """Save a new template."""
    return _save(actor, draft_page.draft_of_form(actor, lock=True, create=True))


@route(bp, "/templates/<template_id>/edit", ["POST"], scope="write", hidden=True, allows_api_keys=False)
def save(actor: Actor, template_id: str) -> Response:
    """Save a draft as the next version, unless another one was saved since it was loaded."""
    template = templates.get(actor, template_id, "write", lock=True)
    if parse_button("save")[0] == "delete":
        deleted = templates.delete(actor, template)
        flash(f"Template {deleted['name']} deleted", url_for("templates.restore", template_id=template_id))
        return _redirect(url_for("templates.index"))
    draft = draft_page.draft_of_form(actor, lock=True, create=True)
    if draft.template_id != template_id:
        raise ApiError("invalid_request", "The form belongs to another template.")
    return _save(actor, draft)


def _save(actor: Actor, draft: OpenDraft) -> Response:
    """Store the values of the form in the draft, and save the draft as a template or as its next version."""
    row, state = draft.row, ViewState.from_request(request.form)
    assert row is not None  # `begin`
    before, after = draft.spec, forms.read_form(request.form, draft.spec)
    forms.check_size(after)
    services.change(actor, row, after, "change the template")
    db.session.commit()
    draft.spec = {**after, "fields": forms.with_ids(after.get("fields"))}
    verb, loaded_text, _ = parse_button("save")
    loaded = loaded_text if verb == "save-over" else str(row.loaded_version or "")
    try:
        changes = parse(TemplateIn, after, strict=False).model_dump()
        if verb == "copy":
            name = f"{changes['name'] or before.get('name')} (copy)"
            copy = templates.create(actor, **{**changes, "name": name[: limits.MAX_NAME_CHARS]})
            services.discard(row)
            db.session.commit()
            return _redirect(url_for("templates.show", template_id=copy["id"]))
        if draft.template is None:
            saved = templates.create(actor, **changes)
        elif loaded != str(draft.template.version):
            return _conflict_response(draft, state, loaded)
        else:
            template = templates.get(actor, draft.template_id, "write", lock=True)
            saved = templates.change(actor, template, changes)
    except ApiError as error:
        return _error_response(draft, state, error)
    template = templates.get(actor, saved["id"])
    row = services.get(actor, row.id)
    services.mark_saved(row, saved["id"], saved["version"], services.submitted_spec(template))
    db.session.commit()
    address = url_for("templates.show", template_id=saved["id"], field=state.field or None)
    if "HX-Request" not in request.headers or draft.template is None or verb != "save":
        return _redirect(address)
    draft = draft_page.open_draft(actor, template, row, services.spec_of(row))
    # Render the inspector with what saving adds, such as groups: otherwise its next change would remove it.
    return draft_page.render_fragments(draft, state, inspector=True, just_saved=True)


def _redirect(address: str) -> Response:
    if "HX-Request" in request.headers:
        return Response(status=204, headers={"HX-Redirect": address})
    return see_other(address)


def _error_response(draft: OpenDraft, state: ViewState, error: ApiError) -> Response:
    """Show what needs attention: the field with the first error is opened."""
    if error.status >= 500 or error.code != "validation_error":
        raise error
    db.session.rollback()
    draft = draft_page.open_draft(draft.actor, draft.template, draft.row, draft.spec)
    found = assign_faults(draft_fields(draft.spec["fields"]), faults_of(error))
    first = next((place for place, _ in found if place is not None), None)
    faulty_ids = {place.top.id for place, _ in found if place is not None}
    state.field = first.key if first is not None else state.field
    state.first = None
    text = (
        f"{len(faulty_ids)} {'field needs' if len(faulty_ids) == 1 else 'fields need'} attention"
        if faulty_ids
        else ""
    )
    head = [fault for place, fault in found if place is None]
    if head:
        text = "Enter a name for the template." if head[0].path == "name" else fault_text(head[0])
    if "HX-Request" not in request.headers:
        return draft_page.render_page(draft, state, status=error.status, refused=text)
    response = draft_page.render_fragments(draft, state, inspector=True, status=error.status, refused=text)
    response.headers["HX-Trigger-After-Settle"] = orjson.dumps(
        {"refused": {"name": bool(head and head[0].path == "name")}}
    ).decode()
    return response


def _conflict_response(draft: OpenDraft, state: ViewState, loaded: str) -> Response:
    template = draft.template
    assert template is not None
    newest = templates.version_of(template)
    number = int(loaded) if loaded.isdecimal() else template.version
    base = templates.version_of(template, number).spec
    parsed = compilation.parse_fields(
        draft.spec["fields"], name=draft.spec.get("name") or "rows", locale=draft.spec.get("locale")
    )
    spec = {"invalid": None, "source": None, **draft.spec}
    merged = field_ids.assign_ids_and_groups(parsed, base["fields"])
    own_spec = {**base, **spec, "fields": [field.to_json() for field in merged.fields]}
    who = db.session.get(User, newest.created_by) if newest.created_by else None
    clash = {
        "theirs": templates.as_json(template, newest),
        "loaded": number,
        "who": who.name or who.email if who else "",
        "their_changes": services.compare(base, newest.spec),
        "your_changes": services.compare(base, own_spec),
    }
    db.session.rollback()
    draft = draft_page.open_draft(draft.actor, template, draft.row, draft.spec)
    if "HX-Request" not in request.headers:
        return draft_page.render_page(draft, state, status=412, clash=clash)
    headers = {"HX-Retarget": "#clash", "HX-Reswap": "innerHTML"}
    html = render_block(PAGE, "clash", clash=clash, at=draft)
    return Response(html, 412, headers=headers)


class ExportQuery(Query):
    """The seed that the builder shows, and the connection whose page was open before in the same tab."""

    seed: Annotated[str, Field(max_length=limits.MAX_SEED_CHARS)] = ""
    to: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] = ""


@route(
    bp,
    "/builder/<template_id>/export",
    scope="generate",
    query=ExportQuery,
    hidden=True,
    allows_api_keys=False,
)
def export_dialog(actor: Actor, template_id: str, query: ExportQuery) -> Response:
    """Show the export dialog: the options of generate and exports as a form."""
    template = templates.get(actor, template_id, "generate")
    table = pages.origin_table(actor, template)
    place = table if not query.to or table.startswith(f"{query.to}/") else query.to
    return Response(
        render_template(
            "templates/export.html",
            **generation_views.export_context(actor, template, {"seed": query.seed}),
            dialog=True,
            destinations=pages.destinations(actor, chosen=place),
        ),
        mimetype="text/html",
    )


# --- Versions ---------------------------------------------------------------------------------------------


class DiffQuery(Query):
    """The other version (default: the one before), and the seed of both previews."""

    to: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[str, Field(min_length=1, max_length=limits.MAX_SEED_CHARS)] = "sample"


@route(
    bp,
    "/builder/<template_id>/diff/<int:number>",
    scope="read",
    query=DiffQuery,
    hidden=True,
    allows_api_keys=False,
)
def diff(actor: Actor, template_id: str, number: int, query: DiffQuery) -> Response:
    """Return the differences between a version and the newest, or its previous one: fields, and previews cell by
    cell."""
    template = templates.get(actor, template_id)
    other = query.to or (template.version if number != template.version else max(1, number - 1))
    old, new_ = sorted((number, other))
    context = diff_context(template, old, new_, query.seed)
    return Response(render_template("templates/diff.html", **context), mimetype="text/html")

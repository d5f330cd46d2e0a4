"""The template builder's page: opened, saved, its versions compared. For people only; programs use /templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from flask import Blueprint, Response, flash, render_template, request, url_for
from pydantic import Field

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.access.models import User
from webapp.builder.forms import draft, field_rows
from webapp.builder.inputs import TemplateIn
from webapp.builder.services import diff as row_templates_diff
from webapp.builder.views import draft_sources, drafts, version_pages
from webapp.builder.views.builder_context import Around
from webapp.builder.views.draft_sources import PAGE
from webapp.errors import ApiError, Fault
from webapp.extensions import db
from webapp.generation.views import export_form
from webapp.pushes.views import pages
from webapp.row_templates.models import Template
from webapp.row_templates.services import compilation, field_ids, templates
from webapp.starters import services as starters
from webapp.web.inputs import Query, parse
from webapp.web.responses import render_block, see_other
from webapp.web.routing import route

bp = Blueprint("builder", __name__)
TABS: Final[Sequence[tuple[str, str]]] = (
    ("fields", "Fields"),
    ("json", "JSON"),
    ("versions", "Versions"),
    ("use", "Use it"),
)


# --- Pages ------------------------------------------------------------------------------------------------


def page(
    actor: Actor,
    template: Template | None,
    given: dict[str, Any] | None = None,
    *,
    status: int = 200,
    opened: set[str] | None = None,
    found: list[Fault] | None = None,
    clash: dict[str, Any] | None = None,
) -> Response:
    """Render the builder for a saved template, a new one (`template` None), or the contents of a form (`given`)."""
    saved = templates.show(template) if template is not None else None
    shown = given or saved or _fresh()
    opened = opened if opened is not None else set(request.args.getlist("open"))
    seed = request.form.get("seed") or "sample"
    return Response(
        render_template(
            PAGE,
            data=saved,
            draft=shown,
            rows=field_rows.rows(
                shown["fields"], drafts.new_id, opened=opened, faults=found or (), most=limits.BUILDER_ROWS
            ),
            around=Around(actor, shown, saved["id"] if saved else ""),
            preview=drafts.preview_of(actor, shown, saved["id"] if saved else "", seed),
            seed=seed,
            loaded=request.form.get("version") or (saved["version"] if saved else ""),
            action=url_for("builder.save", template_id=saved["id"]) if saved else url_for("builder.make"),
            versions_href=url_for("builder.versions", template_id=saved["id"]) if saved else "",
            tabs=[tab for tab in TABS if saved or tab[0] != "versions"],
            can_write=actor.can("write"),
            can_generate=actor.can("generate"),
            common_hints=drafts.HINTS,
            **draft_sources.about(actor, shown),
            clash=clash,
            found=found,
        ),
        status,
        mimetype="text/html",
    )


def _fresh() -> dict[str, Any]:
    now = clock.to_text(clock.now().replace(microsecond=0))
    return {
        "name": "",
        "anchor": now,
        "fields": [draft.blank(drafts.new_id, name) for name in ("id", "name", "email")],
    }


class NewQuery(Query):
    """Initial values of a new template: names of fields, separated by commas, or a table of a starter."""

    names: str = ""
    starter: str = ""


@route(bp, "/templates/new", scope="write", query=NewQuery, hidden=True, programs=False)
def new(actor: Actor, query: NewQuery) -> Response:
    """The builder with a template that is not saved."""
    given = _fresh()
    started = starters.draft(query.starter) if query.starter else None
    if started is not None:
        given |= {**started, "fields": [{"id": drafts.new_id(), **field} for field in started["fields"]]}
    elif query.names:
        given["fields"] = drafts.pasted(query.names)
    return page(actor, None, given)


@route(bp, "/templates/new", ["POST"], scope="write", hidden=True, programs=False)
def make(actor: Actor) -> Response:
    """Save a new template; or, for browsers without script, one edit of its form."""
    given = draft.read(request.form)
    verb = drafts.pressed("save")
    if verb != "save":
        return _edited(actor, None, given, verb)
    try:
        made = templates.create(actor, **_checked(given))
    except ApiError as error:
        return _refused(actor, None, given, error)
    return _sent(url_for("templates.show", template_id=made["id"]))


@route(bp, "/templates/<template_id>/edit", ["POST"], scope="write", hidden=True, programs=False)
def save(actor: Actor, template_id: str) -> Response:
    """Save a draft as the next version, unless another one was saved since it was loaded."""
    given = draft.read(request.form)
    verb = drafts.pressed("save")
    template = templates.get(actor, template_id, "write", lock=True)
    if verb == "delete":
        gone = templates.delete(actor, template)
        flash(f"Template {gone['name']} deleted", url_for("templates.restore", template_id=template_id))
        return _sent(url_for("templates.index"))
    word, _, over = verb.partition(":")
    if word not in ("save", "save-over", "copy"):
        return _edited(actor, template, given, verb)
    loaded = over or request.form.get("version", "")
    try:
        changes = _checked(given)
        if word == "copy":
            return _copied(actor, template, changes)
        if loaded != str(template.version):
            return _clashed(actor, template, given, loaded)
        saved = templates.change(actor, template, changes)
    except ApiError as error:
        return _refused(actor, template, given, error)
    if "HX-Request" not in request.headers or over:
        return _sent(url_for("templates.show", template_id=template_id))
    return Response(
        render_block(PAGE, "saved", data=saved) + render_block(PAGE, "after_save", data=saved, saved=True),
        headers={"HX-Trigger": "saved"},
    )


def _copied(actor: Actor, template: Template, changes: dict[str, Any]) -> Response:
    name = f"{changes['name'] or template.name} (copy)"
    made = templates.create(actor, **{**changes, "name": name[: limits.MAX_NAME_CHARS]})
    return _sent(url_for("templates.show", template_id=made["id"]))


def _sent(where: str) -> Response:
    if "HX-Request" in request.headers:
        return Response(status=204, headers={"HX-Redirect": where})
    return see_other(where)


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """Return the draft as arguments of `templates.create` and `change`. Error: `validation_error` with all errors."""
    return parse(TemplateIn, given, strict=False).model_dump()


def _edited(actor: Actor, template: Template | None, given: dict[str, Any], verb: str) -> Response:
    given["fields"], opened = draft.edit(given["fields"], verb, drafts.new_id)
    return page(actor, template, given, opened=opened | drafts.open_rows())


def _refused(actor: Actor, template: Template | None, given: dict[str, Any], error: ApiError) -> Response:
    if error.status >= 500 or error.code not in ("validation_error",):
        raise error
    db.session.rollback()
    found = drafts.faults_of(error)
    if "HX-Request" not in request.headers:
        return page(actor, template, given, status=error.status, opened=drafts.open_rows(), found=found)
    shown = drafts.faulty(given, found)
    headers = {"HX-Retarget": "#preview", "HX-Reswap": "innerHTML"}
    html = render_block(PAGE, "preview", preview=shown) + render_block(PAGE, "refused", found=found)
    return Response(html, error.status, headers=headers)


def _clashed(actor: Actor, template: Template, given: dict[str, Any], loaded: str) -> Response:
    newest = templates.version_of(template)
    number = int(loaded) if loaded.isdecimal() else template.version
    base = templates.version_of(template, number).spec
    parsed = compilation.parsed_fields(
        given["fields"], name=given.get("name") or "rows", locale=given.get("locale")
    )
    given = {"invalid": None, "source": None, **given}
    mine = field_ids.finished(parsed, base["fields"])
    yours = {**base, **given, "fields": [field.to_json() for field in mine.fields]}
    who = db.session.get(User, newest.created_by) if newest.created_by else None
    clash = {
        "theirs": templates.as_json(template, newest),
        "loaded": number,
        "who": who.name or who.email if who else "",
        "their_changes": row_templates_diff.compare(base, newest.spec),
        "your_changes": row_templates_diff.compare(base, yours),
        "href": url_for("templates.show", template_id=template.id),
    }
    db.session.rollback()
    if "HX-Request" not in request.headers:
        return page(actor, template, given, status=412, clash=clash)
    headers = {"HX-Retarget": "#clash", "HX-Reswap": "innerHTML"}
    return Response(render_block(PAGE, "clash", clash=clash), 412, headers=headers)


class ExportQuery(Query):
    """The seed that the builder shows."""

    seed: Annotated[str, Field(max_length=limits.MAX_SEED_CHARS)] = ""


@route(bp, "/builder/<template_id>/export", scope="generate", query=ExportQuery, hidden=True, programs=False)
def export_dialog(actor: Actor, template_id: str, query: ExportQuery) -> Response:
    """The export dialog: what generate and exports take, as a form."""
    return Response(
        render_template(
            "templates/export.html",
            **export_form.context(actor, templates.get(actor, template_id, "generate"), {"seed": query.seed}),
            dialog=True,
            destinations=pages.destinations(actor),
        ),
        mimetype="text/html",
    )


# --- Versions ---------------------------------------------------------------------------------------------


@route(bp, "/builder/<template_id>/versions", scope="read", hidden=True, programs=False)
def versions(actor: Actor, template_id: str) -> Response:
    """The versions of a template, newest first."""
    template = templates.get(actor, template_id)
    return Response(
        render_block(
            PAGE,
            "versions",
            versions=_versions(template),
            data=templates.show(template),
            can_write=actor.can("write", template.team_id),
        )
    )


def _versions(template: Template) -> list[dict[str, Any]]:
    return [
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


class DiffQuery(Query):
    """The other version (default: the one before), and the seed of both previews."""

    to: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[str, Field(min_length=1, max_length=limits.MAX_SEED_CHARS)] = "sample"


@route(
    bp, "/builder/<template_id>/diff/<int:number>", scope="read", query=DiffQuery, hidden=True, programs=False
)
def diff(actor: Actor, template_id: str, number: int, query: DiffQuery) -> Response:
    """Return the differences between a version and the newest, or its previous one: fields, and previews cell by
    cell."""
    template = templates.get(actor, template_id)
    other = query.to or (template.version if number != template.version else max(1, number - 1))
    old, new_ = sorted((number, other))
    context = version_pages.compared(template, old, new_, query.seed)
    return Response(render_template("templates/diff.html", **context), mimetype="text/html")

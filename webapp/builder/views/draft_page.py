"""The builder's page and its parts: what is shown of a draft, as a whole page or as fragments after a change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from flask import Response, render_template, request, url_for

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.builder.forms import draft as forms
from webapp.builder.forms.fields import TABS, FieldForm, Place, place_faults, places
from webapp.builder.models import TemplateDraft
from webapp.builder.services import draft_rows, drafts
from webapp.builder.services.draft_rows import Sample
from webapp.builder.views import columns
from webapp.builder.views.builder_context import Around
from webapp.builder.views.source_form import WAYS, SourceCard
from webapp.engine.formats import FORMATS
from webapp.engine.invalid_data.settings import Invalid
from webapp.errors import ApiError, Fault
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import DraftInput
from webapp.row_templates.services import compilation, templates
from webapp.web import snippets
from webapp.web.forms.from_model import bound
from webapp.web.inputs import parse

PAGE: Final = "templates/builder.html"
_WITHOUT_ROWS: Final = ("json", "versions", "api")
VIEWS: Final = ("grid", "list", *_WITHOUT_ROWS)
SETTINGS: Final = "settings"
"""The name of the inspector that shows the template's settings instead of a field."""
HINTS: Final = {
    "hidden": "Usable in formulas, hidden from output.",
    "locale": "Overrides the default locale, e.g. de_DE.",
    "invalid": "Share of cells with invalid data, e.g. 0.01. If no kind is selected, all kinds that apply are used.",
    "group": "Fields of one group share one person, place, company, card or row of another template.",
    "unique_together": "Fields with the same label must be unique in combination.",
    "text_case": "Applied to the final text.",
    "formula": "Transforms the generated value, which is available as `this`.",
    "description": "Notes for your team.",
    "column": "The source column of this field. Default: the column with the field's name.",
    "masking": "How source values are masked. Also marks the field as sensitive.",
}


def parsed(body: Any) -> DraftInput:
    """Parse the input of a generate call from a draft."""
    return parse(DraftInput, body, strict=False)


@dataclass(slots=True)
class Opened:
    """A draft as a page or a form shows it. Without `row` nothing was changed yet: the draft is the saved template, or
    the beginning of a new one, which the page then contains."""

    actor: Actor
    spec: dict[str, Any]
    template: Template | None = None
    row: TemplateDraft | None = None
    saved: dict[str, Any] | None = None
    found: list[Fault] = field(default_factory=list)

    @property
    def own(self) -> str:
        """The id of the saved template; "" for a new one."""
        return self.template.id if self.template is not None else ""

    @property
    def loaded(self) -> int | None:
        """The version that the draft was started from."""
        if self.row is not None:
            return self.row.loaded_version
        return self.template.version if self.template is not None else None

    @property
    def start(self) -> str:
        """The beginning of a new template as JSON, until it is a draft on the server."""
        return "" if self.row is not None or self.template is not None else orjson.dumps(self.spec).decode()

    def address(self, **more: str) -> str:
        """The address of the page."""
        args: dict[str, Any] = {key: value for key, value in more.items() if value}
        if self.template is not None:
            return url_for("templates.show", template_id=self.template.id, **args)
        if self.row is not None:
            return url_for("builder.new", draft=self.row.id, **args)
        known: dict[str, Any] = {
            key: request.args[key] for key in ("names", "name", "starter") if request.args.get(key)
        }
        return url_for("builder.new", **known, **args)

    def link(self, place: Place, view: str) -> str:
        """The address of the page with a field in the inspector. Fields of a template that is not a draft yet get their
        keys when the page is rendered, so they are called by name."""
        return self.address(view=view, field=place.name if self.start else place.key)


def opened(
    actor: Actor, template: Template | None, row: TemplateDraft | None, spec: dict[str, Any]
) -> Opened:
    """Return a draft for a page; fields without an id get one. Error: validation_error for too many fields."""
    forms.check_size(spec)
    spec = {**spec, "fields": forms.with_ids(spec.get("fields"))}
    saved = templates.show(template) if template is not None else None
    return Opened(actor, spec, template, row, saved)


def of_page(actor: Actor, template: Template) -> Opened:
    """Return the actor's draft of a saved template. A draft without changes gives way to a newer version."""
    row = drafts.of_template(actor, template)
    if row is not None and row.loaded_version != template.version and not drafts.is_dirty(row):
        row = None
    return opened(actor, template, row, drafts.spec_of(row) if row is not None else drafts.as_sent(template))


@dataclass(slots=True)
class Shown:
    """What a page shows of a draft: which view, which rows, and which field is in the inspector."""

    view: str = ""
    seed: str = "sample"
    field: str = ""  # key of the field in the inspector, or `settings`
    tab: str = "values"
    offset: int = 0
    first: int | None = None  # number of the first column, if the page does not show all
    query: str = ""

    @staticmethod
    def of_request(values: Any) -> Shown:
        """Read it from the parameters of a page, or from its form."""
        view, tab = values.get("view", ""), values.get("tab", "")
        numbers = {name: values.get(name, "") for name in ("offset", "first")}
        whole = {name: int(text) for name, text in numbers.items() if text.isdecimal() and len(text) < 16}
        return Shown(
            view=view if view in VIEWS else "",
            seed=values.get("seed", "")[: limits.MAX_SEED_CHARS] or "sample",
            field=values.get("field", ""),
            tab=tab if tab in dict(TABS) else "values",
            offset=whole.get("offset", 0),
            first=whole.get("first"),
            query=values.get("q", ""),
        )


def context(at: Opened, shown: Shown, *, rows: bool = True, fetch: bool = False) -> dict[str, Any]:
    """Return the context of the page's templates."""
    actor, spec = at.actor, at.spec
    around = Around(actor, spec, at.own)
    shown.field = next((one.key for one in places(spec["fields"]) if shown.field == one.name), shown.field)
    total = len(spec["fields"])
    if not shown.view:
        shown.view = "list" if total >= limits.BUILDER_LIST_FROM else "grid"
    if shown.offset and not actor.can("generate"):
        shown.offset = 0
    count = limits.BUILDER_ROWS if shown.view == "grid" else 3
    quantity = spec.get("quantity")
    if isinstance(quantity, int) and 0 < quantity - shown.offset < count:
        count = quantity - shown.offset
    sample = (
        draft_rows.sample(
            actor, parsed, spec, at.own, seed=shown.seed, offset=shown.offset, count=count, fetch=fetch
        )
        if rows and total
        else Sample()
    )
    known = at.saved if at.template is not None else None
    made = columns.lines(spec, sample, known, around, nested=shown.view == "list")
    place = next((one for one in made if one.place.key == shown.field), None)
    first, last = _window(made, shown, place)
    faulty = [one for one in made if one.faults]
    return {
        "data": at.saved,
        "draft": spec,
        "at": at,
        "shown": shown,
        "state": drafts.state(at.row),
        "sample": sample,
        "lines": made,
        "columns": made[first:last] if shown.view == "grid" else made,
        "first": first,
        "last": last,
        "strips": columns.strips(made[first:last]),
        "most": max((len(one.cells) for one in made), default=0) or (limits.BUILDER_ROWS if total else 0),
        "faulty": faulty,
        "head_faults": [fault for fault in sample.faults if not fault.path.startswith("fields[")],
        "around": around,
        "open_field": inspected(at, shown, sample),
        "tabs": TABS,
        "can_write": actor.can("write", at.template.team_id if at.template is not None else None),
        "can_generate": actor.can("generate"),
        "formats": FORMATS,
        "quantity": spec.get("quantity") or limits.BUILDER_QUANTITY,
        "hints": HINTS,
        "look": columns.icon_of,
        "key_for": lambda field_id: forms.key_for(spec, field_id),
        **(_texts(at, shown) if shown.view in ("json", "api") else {}),
        **(settings_context(at) if shown.field == SETTINGS else {}),
    }


def _texts(at: Opened, shown: Shown) -> dict[str, Any]:
    """Return the context of the views JSON and API."""
    if shown.view == "json":
        return {"json_text": orjson.dumps(at.spec, option=orjson.OPT_INDENT_2).decode()}
    return {"use": snippets.of_template(snippets.origin(), at.own, at.spec, shown.seed)}


def _window(made: list[Any], shown: Shown, place: Any) -> tuple[int, int]:
    """The numbers of the first column shown, and of the one after the last."""
    most = limits.BUILDER_COLUMNS
    if len(made) <= most:
        return 0, len(made)
    wanted = shown.first if shown.first is not None else made.index(place) if place is not None else 0
    first = min(max(0, wanted // most * most), (len(made) - 1) // most * most)
    return first, min(len(made), first + most)


def inspected(at: Opened, shown: Shown, sample: Sample) -> FieldForm | None:
    """Return the form of the field in the inspector; None if there is none."""
    found = places(at.spec["fields"])
    one = next((one for one in found if one.key == shown.field), None)
    if one is None:
        return None
    place_faults(found, sample.faults)
    return FieldForm(one, at.spec["fields"])


def settings_context(at: Opened, card: SourceCard | None = None) -> dict[str, Any]:
    """Return the context of the template's settings: invalid data, the source, the locales."""
    bad, said = (
        one if isinstance(one, dict) else None for one in (at.spec.get("invalid"), at.spec.get("source"))
    )
    return {
        "invalid": bound(Invalid, bad, prefix=forms.INVALID),
        "source": card or SourceCard(at.actor, said),
        "source_ways": WAYS,
        "locales": compilation.vocabulary().locales,
    }


def page(at: Opened, shown: Shown, *, status: int = 200, **more: Any) -> Response:
    """Render the whole page."""
    html = render_template(PAGE, **{**context(at, shown, rows=shown.view not in _WITHOUT_ROWS), **more})
    return Response(html, status, mimetype="text/html")


def fragments(at: Opened, shown: Shown, *, inspector: bool, status: int = 200, **more: Any) -> Response:
    """Render what changes on the page after an edit: the table, the state, and with `inspector` the inspector."""
    shows = context(at, shown, rows=shown.view not in _WITHOUT_ROWS)
    html = render_template(
        "templates/changed.html", **{**shows, "with_inspector": inspector, "oob": True, **more}
    )
    response = Response(html, status, mimetype="text/html")
    if at.template is None and at.row is not None:
        response.headers["HX-Replace-Url"] = at.address(
            **({"view": shown.view} if shown.view != "grid" else {})
        )
    return response


def fresh(fields: list[dict[str, Any]], name: str = "") -> dict[str, Any]:
    """The beginning of a new template."""
    return {
        "name": name,
        "anchor": clock.to_text(clock.now().replace(microsecond=0)),
        "quantity": limits.BUILDER_QUANTITY,
        "fields": fields,
    }


def of_form(actor: Actor, *, lock: bool = False, begin: bool = False) -> Opened:
    """Return the draft that a form of the page was sent for, with what its inputs say. `begin`: it becomes a draft on
    the server, if it is not one yet. Raises not_found, forbidden."""
    form = request.form
    template, row = None, None
    if form.get("template_id"):
        scope = "write" if begin else "read"
        template = templates.get(actor, form["template_id"], scope)
        row = drafts.of_template(actor, template, lock=lock)
        if row is not None and form.get("loaded", "") != str(row.loaded_version) and not drafts.is_dirty(row):
            drafts.discard(row)
            row = None
        spec = (
            drafts.spec_of(row) if row is not None else drafts.as_sent(template, _number(form.get("loaded")))
        )
    elif form.get("draft"):
        row = drafts.get(actor, form["draft"], lock=lock)
        if row.template_id is not None:
            template = templates.get(actor, row.template_id)
        spec = drafts.spec_of(row)
    else:
        spec = start_of(form.get("start", ""))
    at = opened(actor, template, row, spec)
    if begin and at.row is None:
        at.row = drafts.begin(actor, at.spec, template)
        if template is not None and (number := _number(form.get("loaded"))) is not None:
            at.row.loaded_version = number
    return at


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 9 else None


def start_of(text: str) -> dict[str, Any]:
    """Read the beginning of a new template from the page's form. Raises invalid_request."""
    try:
        found = orjson.loads(text) if text else fresh([])
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("fields"), list):
        raise ApiError("invalid_request", "The form does not contain the template.")
    return {key: value for key, value in found.items() if key in templates.CHANGEABLE}

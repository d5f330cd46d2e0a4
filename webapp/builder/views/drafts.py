"""Requests of the builder's page while a draft is edited.

Every change is one request: the form says what was entered and which button was pressed. The draft with the change is
stored as a revision, and the answer is what the change makes different on the page; without htmx, the page itself. The
source of the rows has its own card, which is loaded and changed in the same way.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from flask import Blueprint, Response, flash, render_template, request, url_for
from werkzeug.datastructures import MultiDict

from webapp import limits
from webapp.access.actors import Actor, require_scope
from webapp.builder import forms, services
from webapp.builder.forms import assign_faults, draft_fields, fault_text, mark_position, value_at_path
from webapp.builder.services import faults_of
from webapp.builder.views import draft_page
from webapp.builder.views.draft_page import (
    PAGE,
    SOURCE_KINDS,
    OpenDraft,
    PageData,
    SourceCard,
    ViewState,
    icon_of,
)
from webapp.documentation.field_types import families
from webapp.engine import guess
from webapp.engine.formulas.compiler import BUILT_IN
from webapp.engine.formulas.functions import FAMILIES
from webapp.engine.types.registry import find
from webapp.errors import ApiError, Fault
from webapp.exports import services as exports
from webapp.extensions import db
from webapp.generation import views as generation_views
from webapp.generation.services import generate
from webapp.generation.views import stream_response
from webapp.row_templates.schemas import GenerateInput
from webapp.row_templates.services import catalogue, templates
from webapp.web import row_tables
from webapp.web.forms import controls
from webapp.web.forms.from_model import control_names, convert_form_values
from webapp.web.inputs import form_values, parse
from webapp.web.responses import render_block, see_other
from webapp.web.routing import route
from webapp.web.row_tables import cell

HISTOGRAM_BARS: Final = 24
MAX_TOP_VALUES: Final = 6
MIN_REPEATS: Final = 4  # how often the most common value comes, at least
MAX_BAR_HEIGHT: Final = 94  # of the tallest bar

bp = Blueprint("drafts", __name__, url_prefix="/builder")

# What a change is called in the tips of undo and redo. `{name}` is the field.
_LABELS: Final[Mapping[str, str]] = {
    "set": "change {name}",
    "add": "add {name}",
    "paste": "add fields",
    "insert": "insert a field",
    "inside": "add a field to {name}",
    "remove": "delete {name}",
    "duplicate": "duplicate {name}",
    "left": "move {name}",
    "right": "move {name}",
    "first": "move {name}",
    "last": "move {name}",
    "type": "change the type of {name}",
    "again": "change {name}",
    "json": "edit the JSON",
    "bulk-remove": "delete fields",
    "bulk-set": "change fields",
}
_KEEPS_INSPECTOR: Final = frozenset({"set"})


def parse_button(default: str = "") -> tuple[str, str, str]:
    """Return the three parts of the button that was pressed: `<verb>:<key of a field>:<more>`."""
    verb, _, rest = request.form.get("do", default).partition(":")
    key, _, more = rest.partition(":")
    return verb, key, more


# --- Changes ----------------------------------------------------------------------------------------------


@route(bp, "/change", ["POST"], scope="write", hidden=True, allows_api_keys=False)
def change(actor: Actor) -> Response:
    """Change a draft: store the values of the form, then perform the action of its button."""
    verb, key, more = parse_button("set")
    draft = draft_page.draft_of_form(actor, lock=True, create=True)
    row = draft.row
    assert row is not None  # `begin`
    state = ViewState.from_request(request.form)
    before = draft.spec
    if verb in ("undo", "redo"):
        services.change(
            actor, row, forms.read_form(request.form, before), _change_label("set", before, state.field)
        )
        services.undo_or_redo(row, -1 if verb == "undo" else 1)
        after = services.spec_of(row)
    elif verb == "discard":
        services.discard(row)
        db.session.commit()
        address = draft.address() if draft.template is not None else url_for("templates.index")
        if "HX-Request" in request.headers:
            return Response(status=204, headers={"HX-Redirect": address})
        return see_other(address)
    else:
        try:
            after, focus = _apply_edit(actor, forms.read_form(request.form, before), verb, key, more)
        except ApiError as error:
            if verb != "json" or error.code != "validation_error":
                raise
            db.session.rollback()
            text = render_block(PAGE, "json_state", json_error=error.message)
            return Response(text, headers={"HX-Retarget": "#json-state", "HX-Reswap": "innerHTML"})
        forms.check_size(after)
        after["fields"] = forms.with_ids(after["fields"])
        labelled = after if verb in ("add", "insert", "duplicate") else before
        revision_key = (
            f"set:{request.form.get('changed', '')}" if verb == "set" and request.form.get("changed") else ""
        )
        services.change(
            actor, row, after, _change_label(verb, labelled, key or state.field, focus), revision_key
        )
        if verb not in ("set", "json", "bulk-remove", "bulk-set", "paste"):
            state.field = forms.find_key(after, focus) or (state.field if verb != "remove" else "")
        if verb in ("add", "paste", "insert", "duplicate"):
            state.first = None
    db.session.commit()
    draft = draft_page.open_draft(actor, draft.template, row, after)
    if "HX-Request" not in request.headers:
        if verb in ("add", "paste") and not more:
            state.field = ""
        return see_other(draft.address(view=state.view, seed=state.seed, field=state.field, tab=state.tab))
    return draft_page.render_fragments(
        draft,
        state,
        inspector=verb not in _KEEPS_INSPECTOR,
        title=verb in ("undo", "redo", "json"),
        verb=verb,
    )


def _apply_edit(
    actor: Actor, draft: dict[str, Any], verb: str, key: str, more: str
) -> tuple[dict[str, Any], str]:
    """Return the draft after a button, and the id of the field that the user then works on."""
    fields: list[Any] = draft["fields"]
    focus = forms.find_field_id(draft, key)
    if verb == "json":
        return _from_json(draft, request.form.get("json", "")), ""
    if verb == "bulk-remove":
        removed = {forms.find_field_id(draft, item) for item in request.form.getlist("pick")}
        return {**draft, "fields": forms.remove_fields(fields, removed)}, ""
    if verb == "bulk-set":
        return _set_selected(draft), ""
    if verb == "paste":
        added = forms.parse_names(request.form.get("names", ""))[: max(0, limits.MAX_FIELDS - len(fields))]
        return {**draft, "fields": [*fields, *added]}, added[-1]["id"] if added else ""
    if verb == "add":
        fields, focus = forms.apply_button(fields, "add", "", _added_name())
        if more:  # with a type that was chosen for it
            fields, focus = forms.apply_button(fields, "type", focus, more)
    elif verb == "again":
        PageData(actor, draft, "", reads_target=True).remove_unknown_names(focus)
    elif verb != "set":
        fields, focus = forms.apply_button(fields, verb, focus, more)
    return {**draft, "fields": fields}, focus


def _added_name() -> str:
    """Return the name of a new field. Types are guessed from it, so a long one would occupy the process."""
    return request.form.get("add_name", "").strip()[: limits.MAX_NAME_CHARS]


def _set_selected(draft: dict[str, Any]) -> dict[str, Any]:
    """Set or clear one key of the fields that are selected in the list: `do` is `bulk-set:<key>:<value>`."""
    _, name, value = parse_button()
    chosen = {forms.find_field_id(draft, field_id) for field_id in request.form.getlist("pick")}

    def changed(field: Mapping[str, Any]) -> list[dict[str, Any]]:
        rest = {key: item for key, item in field.items() if key != name}
        return [{**rest, name: True} if value == "on" else rest]

    if name not in ("unique", "sensitive", "hidden"):
        return draft
    fields = draft["fields"]
    for field_id in chosen:
        fields = forms.replace_field(fields, field_id, changed)
    return {**draft, "fields": fields}


def _change_label(verb: str, draft: Mapping[str, Any], key: str, focus: str = "") -> str:
    found = draft_fields(draft.get("fields"))
    place = next((place for place in found if focus and place.id == focus), None) or next(
        (place for place in found if place.key == key), None
    )
    name = (place.name or "a field") if place is not None else "the template"
    return _LABELS.get(verb, "change {name}").replace("{name}", name)


def _from_json(draft: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the template that a text says. Raises validation_error with the position of a syntax error."""
    try:
        template = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _json_error(f"Line {error.lineno}, column {error.colno}: {error.msg}.") from None
    if isinstance(template, list):
        template = {"fields": template}
    if not isinstance(template, dict) or not isinstance(template.get("fields"), list):
        raise _json_error("A template must be an object with `fields`, an array of field definitions.")
    if not all(isinstance(field, dict) for field in template["fields"]):
        raise _json_error("Every field definition must be an object.")
    changes = {key: template[key] for key in templates.CHANGEABLE if key in template}
    forms.check_size(changes)
    return {"anchor": draft.get("anchor"), "name": draft.get("name", ""), **changes}


def _json_error(message: str) -> ApiError:
    return ApiError(
        "validation_error", message, {"fields": [Fault("json", "wrong_value", message).as_dict()]}
    )


# --- Parts of the page ------------------------------------------------------------------------------------


@route(bp, "/rows", ["POST"], scope="read", reads=True, hidden=True, allows_api_keys=False)
def rows(actor: Actor) -> Response:
    """Render the table again: other rows, another seed, other columns."""
    draft = _submitted_draft(actor)
    state, fetch = ViewState.from_request(request.form), bool(request.form.get("read"))
    if fetch:
        require_scope(actor, "generate")
    html = render_template(
        "templates/changed.html", **draft_page.page_context(draft, state, fetch=fetch), oob=True
    )
    return Response(html, mimetype="text/html")


@route(bp, "/inspector", ["POST"], scope="read", reads=True, hidden=True, allows_api_keys=False)
def inspector(actor: Actor) -> Response:
    """Render the inspector: of a field, or of the template's settings."""
    draft, state = _submitted_draft(actor), ViewState.from_request(request.form)
    state.field = request.form.get("open", state.field)
    return Response(
        render_template("templates/inspector.html", **draft_page.page_context(draft, state)),
        mimetype="text/html",
    )


def _submitted_draft(actor: Actor) -> OpenDraft:
    """Return the draft with the values of the form, which may not be stored yet."""
    draft = draft_page.draft_of_form(actor)
    forms.check_size(read := forms.read_form(request.form, draft.spec))
    draft.spec = {**read, "fields": forms.with_ids(read.get("fields"))}
    return draft


@route(bp, "/suggestions", ["POST"], scope="read", reads=True, hidden=True, allows_api_keys=False)
def suggestions(actor: Actor) -> Response:
    """Suggest types for the name of a new field: the guessed one, and others that match."""
    name = _added_name()
    found = {entry["name"]: entry for entry in catalogue.entries()}
    guessed = forms.new_field(forms.new_id, name)["type"]
    listed = (
        [found[guessed], *(item for item in catalogue.search(name) if item["name"] != guessed)][:3]
        if name
        else []
    )
    return Response(
        render_template("templates/suggestions.html", types=listed, name=name), mimetype="text/html"
    )


@route(bp, "/tables", ["POST"], scope="read", reads=True, hidden=True, allows_api_keys=False)
def tables(actor: Actor) -> Response:
    """Search tables: those of the field's connection whose names contain the text."""
    draft = _submitted_draft(actor)
    found = next(
        (place for place in draft_fields(draft.spec["fields"]) if place.key == parse_button()[1]), None
    )
    connection_id, text = (
        str(found.options_value(name) or "") if found else "" for name in ("connection_id", "table")
    )
    names = PageData(actor, draft.spec).tables.tables(connection_id, text)[: limits.SELECT_TABLES]
    return Response(render_template("pushes/targets.html", entities=names), mimetype="text/html")


@route(bp, "/types", scope="read", hidden=True, allows_api_keys=False)
def types(actor: Actor) -> Response:
    """Show the list of the type picker: all types by family, with an example."""
    return _cacheable(
        render_template("templates/types.html", families=families(), look=lambda name: icon_of(find(name)))
    )


@route(bp, "/type", ["POST"], scope="read", reads=True, hidden=True, allows_api_keys=False)
def about_type(actor: Actor) -> Response:
    """Render what is known of a type, with rows of the draft in which a field has it: `do` is `about:<field>:<type>`,
    where the field is empty for a new one."""
    draft = _submitted_draft(actor)
    _, key, type_name = parse_button()
    kind = find(type_name)
    if kind is None:
        raise ApiError("not_found", "There is no such field type.")
    fields = [dict(item) for item in draft.spec["fields"]]
    place = next((item for item in draft_fields(fields) if item.key == key), None)
    if place is not None:
        fields, _ = forms.apply_button(fields, "type", place.id, kind.name)
        field_name = place.names[0]
    else:
        field_name = request.form.get("add_name", "").strip() or kind.name
        fields.append(
            {
                "name": field_name,
                "type": kind.name,
                "options": dict(guess.STARTER_OPTIONS.get(kind.name, {})),
            }
        )
    related = [
        item["name"]
        for item in fields
        if item.get("name") not in (None, "", field_name)
        and kind.group_kind
        and _group_kind(item) == kind.group_kind
    ]
    columns = [field_name, *related[:1]]
    sample = services.sample(
        actor,
        draft_page.parse_draft,
        {**draft.spec, "fields": show_hidden_fields(fields)},
        draft.template_id,
        seed=request.form.get("seed", "") or "sample",
        count=limits.TYPE_SAMPLES,
    )
    rows = [
        [cell(row.get(name)) for name in columns] for row in sample.rows if row.get(field_name) is not None
    ]
    return Response(
        render_template(
            "templates/about_type.html",
            kind=kind,
            look=icon_of,
            category=next((item["label"] for item in families() if item["name"] == kind.category), ""),
            columns=columns,
            rows=rows,
            needs="" if rows else "Values appear when its options are set.",
            options=[name.replace("_", " ") for name in control_names(kind.Options)][:6],
            group={"person": "One person", "place": "One address"}.get(kind.group_kind or "", ""),
            capacity=next(
                (item["capacity"] for item in catalogue.entries() if item["name"] == kind.name), None
            ),
        ),
        mimetype="text/html",
    )


def _group_kind(field: Mapping[str, Any]) -> str | None:
    kind = find(str(field.get("type") or ""))
    return kind.group_kind if kind is not None else None


@route(bp, "/functions", scope="read", hidden=True, allows_api_keys=False)
def functions(actor: Actor) -> Response:
    """Show the functions of formulas, by family; without htmx as a page."""
    found = {
        label: [function for function in catalogue.functions() if function["family"] == name]
        for name, label in FAMILIES.items()
    }
    context = {"families": found, "built_in": BUILT_IN}
    if "HX-Request" in request.headers:
        return _cacheable(render_block("templates/functions.html", "functions", **context))
    return Response(render_template("templates/functions.html", **context), mimetype="text/html")


def _cacheable(html: str) -> Response:
    response = Response(html, mimetype="text/html")
    response.vary.add("HX-Request")
    response.add_etag()
    response.make_conditional(request)
    return response


# --- Files ------------------------------------------------------------------------------------------------


@route(bp, "/download", ["POST"], scope="generate", reads=True, hidden=True, allows_api_keys=False)
def download(actor: Actor) -> Response:
    """Download rows of the draft as it is on the screen; fields with errors are empty."""
    open_draft = _submitted_draft(actor)
    count, name = request.form.get("count", "").strip(), request.form.get("file_name", "").strip()
    more: dict[str, Any] = {"format": request.form.get("format", "csv")}
    if count:
        more["count"] = controls.parse_integer(count)
    draft = {**open_draft.spec, "name": name or open_draft.spec.get("name") or "rows"}
    try:
        file = services.generate_file(
            actor,
            draft_page.parse_draft,
            draft,
            open_draft.template_id,
            seed=request.form.get("seed", ""),
            more=more,
        )
    except ApiError as error:
        if error.status >= 500:
            raise
        db.session.rollback()
        first = error.details.get("fields", [{}])[0] if error.code == "validation_error" else {}
        flash(f"No file was created. {first.get('message') or error.message}")
        return see_other(open_draft.address())
    return stream_response(file)


@route(bp, "/estimate", ["POST"], scope="generate", reads=True, hidden=True, allows_api_keys=False)
def estimate(actor: Actor) -> Response:
    """Estimate the size of an export's file and the time it takes, from its first rows."""
    template_id = request.form.get("template_id", "")
    values = {key: text for key, text in request.form.items() if key not in ("template_id", "csrf_token")}
    try:
        requested = parse(
            GenerateInput, convert_form_values(GenerateInput, form_values(MultiDict(values))), strict=False
        )
        found = generate.estimate(actor, template_id, requested)
    except ApiError as error:
        if error.status >= 500:
            raise
        if error.code == "not_found":
            return Response(render_template("templates/estimate.html", places=[], texts=[error.message]))
        template = templates.get(actor, template_id, "generate")
        page_context = generation_views.export_context(actor, template, sent=request.form, error=error)
        return Response(render_template("templates/estimate.html", **page_context))
    export_href = url_for("exports.create", template_id=template_id)
    context = {"many": found.count > limits.EXPORT_ROWS, "part_rows": exports.suggest_part_rows(found.count)}
    return Response(render_template("templates/estimate.html", found=found, where=export_href, **context))


# --- The distribution of a field's values -------------------------------------------------------------------


@route(bp, "/explain", ["POST"], scope="read", reads=True, hidden=True, allows_api_keys=False)
def explain(actor: Actor) -> Response:
    """Render the distribution of a field's values in a sample of rows."""
    draft = _submitted_draft(actor)
    key = parse_button()[1] or request.form.get("field", "")
    place = next((place for place in draft_fields(draft.spec["fields"]) if place.key == key), None)
    try:
        if place is None:
            raise ApiError("not_found", "This field does not exist.")
        unhidden_spec = {**draft.spec, "fields": show_hidden_fields(draft.spec["fields"])}
        recipe, raw = services.call_with_placeholders(
            unhidden_spec,
            request.form.get("seed", "") or "sample",
            lambda body: generate.sample_draft(
                actor, draft_page.parse_draft(body), limits.EXPLAIN_ROWS, draft.template_id
            ),
            sample := services.DraftSample(),
        )
        if place.top.id in sample.empty:
            raise ApiError("validation_error", "This field has no values until its errors are fixed.")
        cost = generate.measure_cost(recipe, place.names[0])
    except ApiError as error:
        if error.status >= 500:
            raise
        return Response(render_template("templates/explain.html", error=error.message))
    context = {
        "found": summarize_values(list(values_at(orjson.loads(raw), place.names))),
        "capacity": generate.capacity(recipe, place.names[0]) if place.parent is None else None,
        "cost": cost,
        "rows": limits.EXPLAIN_COST_ROWS,
        "whole": place.names[0] if place.parent is not None else "",
    }
    return Response(render_template("templates/explain.html", **context))


def values_at(rows: Iterable[Any], path: Sequence[str]) -> Iterator[Any]:
    """Yield the values under a path of names, through objects and into the elements of arrays."""
    for row in rows:
        if isinstance(row, list):
            yield from values_at(row, path)
        elif not path:
            yield row
        elif isinstance(row, Mapping) and path[0] in row:
            yield from values_at([row[path[0]]], path[1:])


def show_hidden_fields(fields: Sequence[Any]) -> list[Any]:
    """Return field definitions with hidden fields shown, because the page shows the values of hidden fields, too."""
    found = []
    for field in fields:
        options = field.get("options", {})
        if isinstance(options.get("fields"), list):
            options = {**options, "fields": show_hidden_fields(options["fields"])}
        found.append({**{key: value for key, value in field.items() if key != "hidden"}, "options": options})
    return found


def summarize_values(values: Sequence[Any]) -> dict[str, Any]:
    """Return `{count, blank, distinct, example, numbers, bars, top}`.

    Numbers have `numbers` (minimum, mean, maximum) and a histogram in `bars`; values that repeat are in `top`, the most
    common first. Bars are `{height, title}`, heights 0 to `MAX_BAR_HEIGHT`.
    """
    present = [value for value in values if value is not None]
    counts = Counter(cell(value)["text"] for value in present)
    found: dict[str, Any] = {
        "count": len(values),
        "blank": len(values) - len(present),
        "distinct": len(counts),
        "example": cell(present[0])["text"] if present else "",
        "numbers": None,
        "bars": [],
        "top": [],
    }
    numbers = [value for value in present if isinstance(value, int | float) and not isinstance(value, bool)]
    if numbers and len(numbers) == len(present):
        low, high = min(numbers), max(numbers)
        found["numbers"] = (low, sum(numbers) / len(numbers), high)
        width = (high - low) / HISTOGRAM_BARS or 1
        places = Counter(min(HISTOGRAM_BARS - 1, int((number - low) / width)) for number in numbers)
        tallest = max(places.values())
        found["bars"] = [
            {
                "height": round(MAX_BAR_HEIGHT * places[place] / tallest),
                "title": f"{low + place * width:,.6g} to {low + (place + 1) * width:,.6g}: {places[place]}",
            }
            for place in range(HISTOGRAM_BARS)
        ]
    highest = counts.most_common(1)[0][1] if counts else 0
    if highest >= MIN_REPEATS:
        found["top"] = [
            {"text": text, "count": number, "width": round(100 * number / highest)}
            for text, number in counts.most_common(MAX_TOP_VALUES)
        ]
    return found


# --- For other pages --------------------------------------------------------------------------------------


def preview_draft(actor: Actor, draft: dict[str, Any], seed: str, fetch: bool = False) -> dict[str, Any]:
    """Generate three rows of an unsaved template for the `preview` macro of templates/parts.html. `fetch`: query
    connections for values."""
    started = time.perf_counter()
    body = {"name": "rows", **{key: value for key, value in draft.items() if value not in (None, "")}}
    try:
        preview = generate.preview_draft(actor, draft_page.parse_draft({**body, "seed": seed}), fetch)
    except ApiError as error:
        if error.code == "validation_error":
            return fault_lines(draft, faults_of(error))
        if error.status >= 500:
            raise
        return {"error": error.message}
    milliseconds = (time.perf_counter() - started) * 1000
    return {
        **row_tables.transposed_table(orjson.loads(preview.rows), preview.invalid_cells or ()),
        "warnings": [
            " ".join(filter(None, (w["path"], w["message"], w.get("hint")))) for w in preview.warnings
        ],
        "note": f"3 rows in {milliseconds:.0f} ms. The seed {preview.seed} always produces the same rows.",
    }


def fault_lines(draft: dict[str, Any], found: list[Fault]) -> dict[str, Any]:
    """Return errors as the `preview` macro lists them."""
    lines = []
    for place, fault in assign_faults(draft_fields(draft["fields"]), found):
        option_path = (
            fault.path.removeprefix(place.path).removeprefix(".options.").lstrip(".") if place else fault.path
        )
        mark = mark_position(value_at_path(draft, fault.path), fault.position)
        location = " ".join(filter(None, ((place.name or "unnamed field") if place else "", option_path)))
        lines.append({"target": "", "where": location, "text": fault_text(fault), "marked": mark})
    return {"faults": lines}


# --- Source of the rows -------------------------------------------------------------------------------------

sources_bp = Blueprint("draft_sources", __name__, url_prefix="/builder")


@route(sources_bp, "/source", ["POST"], scope="read", reads=True, hidden=True, allows_api_keys=False)
def show(actor: Actor) -> Response:
    """Render the source card again, with the tables of the connection and the names of the columns. Queries the target
    if the user requested it, or selected a connection whose tables have never been read."""
    source = {"source": forms.read_source(request.form)}
    refresh = request.form.get("do") == "read"
    if refresh:
        require_scope(actor, "generate")
    card = SourceCard(actor, source.get("source"), refresh, request.form.get(forms.SOURCE_KIND_INPUT, ""))
    card.tables.reads_target = True
    return _card_response(card)


@route(
    sources_bp, "/source/upload", ["POST"], scope="write", hidden=True, allows_api_keys=False,
    max_body=limits.MAX_UPLOAD_BYTES + limits.UPLOAD_FORM_BYTES,
)  # fmt: skip
def upload(actor: Actor) -> Response:
    """Save an uploaded file in the workspace, use it as the source of the draft, and render the source card."""
    try:
        stored = draft_page.save_upload(actor, request)
    except ApiError as error:
        if error.status >= 500:
            raise
        return _card_response(SourceCard(actor, None, default_kind="file", error=error))
    response = _card_response(SourceCard(actor, {"file": stored.name}))
    response.headers["HX-Trigger-After-Settle"] = "changed"
    return response


def _card_response(card: SourceCard) -> Response:
    return Response(
        render_block("templates/settings.html", "source_card", source=card, source_ways=SOURCE_KINDS),
        mimetype="text/html",
    )

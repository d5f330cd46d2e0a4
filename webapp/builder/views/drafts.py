"""Requests of the builder page while a draft is edited: rows of its form, generated rows, JSON, commands.

A draft exists only in the browser. Each of these routes receives the whole form, converts it to a template
(`forms.draft`), and returns one block of the builder page.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import orjson
from flask import Blueprint, Response, render_template, request, url_for
from pydantic import Field, ValidationError
from werkzeug.datastructures import MultiDict

from webapp import ids, limits
from webapp.access.actors import Actor
from webapp.builder.forms import draft, field_rows
from webapp.builder.views.builder_context import Around
from webapp.builder.views.draft_sources import PAGE, about
from webapp.documentation.field_types import families
from webapp.engine.formats import FORMATS
from webapp.engine.formulas.compiler import BUILT_IN
from webapp.engine.formulas.functions import FAMILIES
from webapp.errors import ApiError, Fault
from webapp.exports.services import export_parts
from webapp.generation.services import generate
from webapp.generation.views import export_form
from webapp.generation.views.generate import streamed
from webapp.row_templates.schemas import DraftInput, GenerateInput, PreviewInput
from webapp.row_templates.services import catalogue, templates
from webapp.web import row_tables, snippets
from webapp.web.forms.from_model import filled
from webapp.web.inputs import Query, faults, form_values, parse
from webapp.web.responses import render_block
from webapp.web.routing import route
from webapp.web.row_tables import cell

BARS: Final = 16
TOP: Final = 8
WORTH_TELLING: Final = 4  # how often the most common value comes, at least
HEIGHT: Final = 48  # of the tallest bar


def values_at(rows: Iterable[Any], path: Sequence[str]) -> Iterator[Any]:
    """The values under a path of names, through objects and into the elements of arrays."""
    for row in rows:
        if isinstance(row, list):
            yield from values_at(row, path)
        elif not path:
            yield row
        elif isinstance(row, Mapping) and path[0] in row:
            yield from values_at([row[path[0]]], path[1:])


def unhidden(fields: Sequence[Any]) -> list[Any]:
    """Return field definitions with hidden fields shown, because a preview shows the values of hidden fields, too."""
    found = []
    for field in fields:
        options = field.get("options", {})
        if isinstance(options.get("fields"), list):
            options = {**options, "fields": unhidden(options["fields"])}
        found.append({**{key: value for key, value in field.items() if key != "hidden"}, "options": options})
    return found


def summary(values: Sequence[Any]) -> dict[str, Any]:
    """`{count, blank, distinct, example, numbers, bars, top}`.

    Numbers have `numbers` (least, mean, most) and a histogram in `bars`; values that repeat are in `top`, the most
    common first. Bars are `{height, title}`, heights 0 to `HEIGHT`.
    """
    held = [value for value in values if value is not None]
    counted = Counter(cell(value)["text"] for value in held)
    found: dict[str, Any] = {
        "count": len(values),
        "blank": len(values) - len(held),
        "distinct": len(counted),
        "example": cell(held[0])["text"] if held else "",
        "numbers": None,
        "bars": [],
        "top": [],
    }
    numbers = [value for value in held if isinstance(value, int | float) and not isinstance(value, bool)]
    if numbers and len(numbers) == len(held):
        found["numbers"] = (min(numbers), sum(numbers) / len(numbers), max(numbers))
        found["bars"] = _histogram(numbers)
    most = counted.most_common(1)[0][1] if counted else 0
    if most >= WORTH_TELLING:
        found["top"] = [
            {"text": text, "count": number, "width": round(100 * number / most)}
            for text, number in counted.most_common(TOP)
        ]
    return found


def _histogram(numbers: Sequence[float]) -> list[dict[str, Any]]:
    low, high = min(numbers), max(numbers)
    width = (high - low) / BARS or 1
    places = Counter(min(BARS - 1, int((number - low) / width)) for number in numbers)
    most = max(places.values())
    return [
        {
            "height": round(HEIGHT * places[place] / most),
            "title": f"{low + place * width:,.6g} to {low + (place + 1) * width:,.6g}: {places[place]}",
        }
        for place in range(BARS)
    ]


bp = Blueprint("drafts", __name__, url_prefix="/builder")
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


def new_id() -> str:
    """A field's id; it is kept when the draft is saved, and the field's values with it."""
    return ids.new("fld")


def template_id() -> str:
    """The saved template that the form edits; "" for a new one."""
    return request.form.get("template_id", "")


def pressed(default: str = "") -> str:
    """The button that was pressed, `<verb>:<field id>` or `<verb>`."""
    verb, colon, rest = request.form.get("do", default).partition(":")
    key, more, word = rest.partition(":")
    return f"{verb}{colon}{draft.field_id(request.form, key)}{more}{word}"


def open_rows() -> set[str]:
    """The fields whose rows show all they have, but one that is being closed."""
    keys = [name.removesuffix(".open") for name in request.form if name.endswith(".open")]
    return {draft.field_id(request.form, key) for key in keys} - {pressed().removeprefix("close:")}


# --- Rows of the form -------------------------------------------------------------------------------------


@route(bp, "/rows", ["POST"], scope="read", reads=True, hidden=True, programs=False)
def edit_rows(actor: Actor) -> Response:
    """Render the rows that a button of the form adds or changes."""
    given = draft.read(request.form)["fields"]
    do = pressed()
    verb, _, field_id = do.partition(":")
    field_id = field_id.partition(":")[0]
    before = {mark.id for mark in draft.marks(request.form)}
    if verb == "paste":
        fields = pasted(request.form.get("names", ""))
        made = [field_rows.row(one, new_id) for one in fields]
        return _rows(made, Around(actor, {"fields": [*given, *fields]}, template_id()))
    if verb == "guess":
        given = [_guessed(one, field_id) for one in given]
    edited, opened = draft.edit(given, do, new_id)
    given_now = {**draft.read(request.form), "fields": edited}
    around = Around(actor, given_now, template_id(), whole=True, asks=verb == "again")
    if verb == "again":
        around.forget_strangers(field_id)
    made = field_rows.rows(edited, new_id, opened=opened | open_rows())
    wanted = [one for one in made if one.id not in before] or [one for one in made if one.id == field_id]
    for one in wanted:
        one.fresh = verb in ("add", "insert", "inside")
    return _rows(wanted, around)


def _rows(made: list[field_rows.Row], around: Around) -> Response:
    html = render_template("templates/row_list.html", rows=made, common_hints=HINTS, around=around)
    return Response(html, mimetype="text/html")


@route(bp, "/rest", ["POST"], scope="read", reads=True, hidden=True, programs=False)
def rest(actor: Actor) -> Response:
    """Render what the page loads later to be small: choices that its select elements share, and folded rows in full."""
    given = draft.read(request.form)
    around = Around(actor, given, template_id())
    folded = {mark.id for mark in draft.marks(request.form) if mark.folded}
    made = [one for one in field_rows.rows(given["fields"], new_id) if one.id in folded]
    context = {"lists": around.lists, "rows": made, "around": around, "common_hints": HINTS}
    return Response(render_template("templates/rest.html", **context), mimetype="text/html")


def _guessed(one: dict[str, Any], field_id: str) -> dict[str, Any]:
    if one["id"] == field_id:
        return {**draft.blank(new_id, one["name"]), "id": field_id}
    inner = one["options"].get("fields")
    if isinstance(inner, list):
        one["options"]["fields"] = [_guessed(child, field_id) for child in inner]
    return one


def pasted(text: str) -> list[dict[str, Any]]:
    """New fields from a list of names, each `name` or `name: type`."""
    found = []
    for line in re.split(r"[\n,;\t]+", text)[: limits.MAX_FIELDS]:
        name, _, kind = (part.strip().strip('"`') for part in line.partition(":"))
        if name:
            made = draft.blank(new_id, name[: limits.MAX_NAME_CHARS])
            found.append({**made, "type": kind or made["type"]})
    return found


@route(bp, "/tables", ["POST"], scope="read", reads=True, hidden=True, programs=False)
def tables(actor: Actor) -> Response:
    """Tables for the box of a row that searches: those of its connection whose names hold what was typed."""
    wanted = pressed().partition(":")[2]
    given = draft.read(request.form)
    found = next((one for one in field_rows.rows(given["fields"], new_id) if one.id == wanted), None)
    asked, text = (
        str(found.options_value(name) or "") if found else "" for name in ("connection_id", "table")
    )
    names = Around(actor, given).tables.tables(asked, text)[: limits.PICKED_TABLES]
    return Response(render_template("pushes/targets.html", entities=names), mimetype="text/html")


@route(bp, "/types", scope="read", hidden=True, programs=False)
def types(actor: Actor) -> Response:
    """The type picker's list: every type by family, with an example."""
    return _kept(render_template("templates/types.html", families=families()))


@route(bp, "/functions", scope="read", hidden=True, programs=False)
def functions(actor: Actor) -> Response:
    """The functions of formulas, by family; without htmx as a page."""
    found = {
        label: [one for one in catalogue.functions() if one["family"] == name]
        for name, label in FAMILIES.items()
    }
    context = {"families": found, "built_in": BUILT_IN}
    if "HX-Request" in request.headers:
        return _kept(render_block("templates/functions.html", "functions", **context))
    return Response(render_template("templates/functions.html", **context), mimetype="text/html")


def _kept(html: str) -> Response:
    response = Response(html, mimetype="text/html")
    response.vary.add("HX-Request")
    response.add_etag()
    response.make_conditional(request)
    return response


# --- Rows of data -----------------------------------------------------------------------------------------


@route(bp, "/preview", ["POST"], scope="read", reads=True, hidden=True, programs=False)
def preview(actor: Actor) -> Response:
    """Three rows of the draft, or what is wrong with it."""
    given = draft.read(request.form)
    made = preview_of(
        actor, given, template_id(), request.form.get("seed", ""), bool(request.form.get("read"))
    )
    around = Around(actor, given, template_id())
    again = field_rows.rows(given["fields"], new_id)
    return Response(
        render_block(PAGE, "preview", preview=made) + render_block(PAGE, "told", rows=again, around=around)
    )


def preview_of(
    actor: Actor, given: dict[str, Any], saved_id: str, seed: str, fetch: bool = False
) -> dict[str, Any]:
    """Generate three rows for the `preview` macro of templates/parts.html. `fetch`: query connections for values."""
    started = time.perf_counter()
    try:
        if saved_id:
            head = {"fields": given["fields"], "seed": seed or None, "locale": given.get("locale")}
            said = {**_said(head), **{key: given.get(key) for key in ("invalid", "source")}, "fetch": fetch}
            made = generate.preview(actor, saved_id, parse(PreviewInput, said, strict=False))
        else:
            ask = parse(DraftInput, _draft_of(given, seed), strict=False)
            made = generate.preview_draft(actor, ask, fetch)
    except ApiError as error:
        if error.code == "validation_error":
            return faulty(given, faults_of(error))
        if error.status >= 500:
            raise
        return {"error": error.message}
    took = (time.perf_counter() - started) * 1000
    return {
        **row_tables.side_on(orjson.loads(made.rows), made.bad or ()),
        "warnings": [" ".join(filter(None, (w["path"], w["message"], w.get("hint")))) for w in made.warnings],
        "note": f"3 rows in {took:.0f} ms. The seed {made.seed} always produces the same rows.",
    }


def _said(ask: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in ask.items() if value not in (None, "")}


def _draft_of(given: dict[str, Any], seed: str) -> dict[str, Any]:
    return _said(
        {"name": "rows", **{key: value for key, value in given.items() if value != ""}, "seed": seed}
    )


def faulty(given: dict[str, Any], found: list[Fault]) -> dict[str, Any]:
    """Faults as the preview lists them, each with the input it belongs to."""
    made = field_rows.rows(given["fields"], new_id, opened=open_rows())
    named = {one.key: one for one in made}
    shown = []
    for target, fault in field_rows.place_faults(made, found):
        row = named.get(target.partition(".")[0])
        where = fault.path
        if row is not None:
            rest = "" if "." in target else fault.path.removeprefix(row.path).removeprefix(".options.")
            where = " ".join(filter(None, (row.name or "field without a name", rest)))
        mark = field_rows.marked(field_rows.at_path(given, fault.path), fault.position)
        shown.append({"target": target, "where": where, "text": field_rows.sentence(fault), "marked": mark})
    return {"faults": shown}


def faults_of(error: ApiError) -> list[Fault]:
    """Return the errors in a `validation_error`."""
    return [
        Fault(one["path"], one["code"], one["message"], one.get("hint"), one.get("position"))
        for one in error.details["fields"]
    ]


class GridForm(Query):
    """Which page of how many rows."""

    count: Annotated[int, Field(ge=1)] = limits.DEFAULT_QUANTITY
    offset: Annotated[int, Field(ge=0)] = 0
    goto: Annotated[int, Field(ge=1)] | None = None


@route(bp, "/grid", ["POST"], scope="generate", reads=True, hidden=True, programs=False)
def grid(actor: Actor) -> Response:
    """Render one page of the requested number of rows. Only the rows of the page are generated and counted."""
    given = draft.read(request.form)
    try:
        asked = GridForm.model_validate(
            {key: request.form[key] for key in GridForm.model_fields if request.form.get(key)}, strict=False
        )
    except ValidationError as error:
        shown: dict[str, Any] = {
            "error": "; ".join(f"{one.path}: {one.message}" for one in faults(GridForm, error))
        }
        return Response(render_block(PAGE, "grid", grid=shown))
    return Response(render_block(PAGE, "grid", grid=_grid(actor, given, asked)))


def _grid(actor: Actor, given: dict[str, Any], asked: GridForm) -> dict[str, Any]:
    size = limits.GRID_PAGE_ROWS
    offset = (asked.goto - 1) // size * size if asked.goto else asked.offset
    offset = min(offset, (asked.count - 1) // size * size)
    started = time.perf_counter()
    body = _draft_of(given, request.form.get("seed", ""))
    body |= {"offset": offset, "count": min(size, asked.count - offset), "format": "json"}
    try:
        generation = generate.draft(actor, parse(DraftInput, body, strict=False), own=template_id())
    except ApiError as error:
        if error.code == "validation_error":
            return faulty(given, faults_of(error))
        if error.status >= 500:
            raise
        return {"error": error.message}
    made = generation.body
    try:
        data = made if isinstance(made, bytes) else generation.output.whole()
    except ApiError as error:
        return {"error": error.message}
    finally:
        if not isinstance(made, bytes):
            made.close()
    return {
        **row_tables.upright(orjson.loads(data), offset + 1, generation.recipe.bad_cells()),
        "definition": orjson.dumps(
            {**body, "seed": generation.recipe.pins.seed, "offset": 0, "count": asked.count}
        ).decode(),
        "formats": list(FORMATS),
        "leaks": generation.leaks,
        "count": asked.count,
        "before": offset - size if offset else None,
        "after": offset + size if offset + size < asked.count else None,
        "ms": f"{(time.perf_counter() - started) * 1000:.0f}",
    }


@route(bp, "/grid/export", ["POST"], scope="generate", reads=True, hidden=True, programs=False)
def export_grid(actor: Actor) -> Response:
    """Download all rows of the grid: the definition and seed that its page was generated with."""
    try:
        definition = orjson.loads(request.form.get("definition", ""))
    except orjson.JSONDecodeError:
        raise ApiError("invalid_request", "The form does not contain the definition of the rows.") from None
    if not isinstance(definition, dict):
        raise ApiError("invalid_request", "The form does not contain the definition of the rows.")
    wanted = parse(DraftInput, {**definition, "format": request.form.get("format", "csv")}, strict=False)
    return streamed(generate.draft(actor, wanted, own=template_id()))


@route(bp, "/explain", ["POST"], scope="read", reads=True, hidden=True, programs=False)
def explain(actor: Actor) -> Response:
    """Render the distribution of a field's values in a sample of rows."""
    given = draft.read(request.form)
    made = field_rows.rows(given["fields"], new_id)
    field_id = pressed().partition(":")[2]
    row = next((one for one in made if one.id == field_id), None)
    try:
        if row is None:
            raise ApiError("not_found", "There is no such field here.")
        shown = {**given, "fields": unhidden(given["fields"])}
        ask = parse(DraftInput, _draft_of(shown, request.form.get("seed", "")), strict=False)
        recipe, raw = generate.sample(actor, ask, limits.EXPLAIN_ROWS, template_id())
        path = field_rows.names_to(row, made)
        cost = generate.cost(recipe, path[0])
    except ApiError as error:
        if error.status >= 500:
            raise
        return Response(render_template("templates/explain.html", error=error.message))
    context = {
        "found": summary(list(values_at(orjson.loads(raw), path))),
        "capacity": generate.capacity(recipe, path[0]) if len(path) == 1 else None,
        "cost": cost,
        "rows": limits.EXPLAIN_COST_ROWS,
        "whole": path[0] if len(path) > 1 else "",
    }
    return Response(render_template("templates/explain.html", **context))


@route(bp, "/estimate", ["POST"], scope="generate", reads=True, hidden=True, programs=False)
def estimate(actor: Actor) -> Response:
    """Estimate the size of an export's file and the time it takes, from its first rows."""
    values = {key: text for key, text in request.form.items() if key not in ("template_id", "csrf_token")}
    try:
        ask = parse(GenerateInput, filled(GenerateInput, form_values(MultiDict(values))), strict=False)
        found = generate.estimate(actor, template_id(), ask)
    except ApiError as error:
        if error.status >= 500:
            raise
        if error.code == "not_found":
            return Response(render_template("templates/estimate.html", places=[], texts=[error.message]))
        template = templates.get(actor, template_id(), "generate")
        told = export_form.context(actor, template, sent=request.form, error=error)
        return Response(render_template("templates/estimate.html", **told))
    where = url_for("exports.create", template_id=template_id())
    context = {"many": found.count > limits.EXPORT_ROWS, "part_rows": export_parts.fitting(found.count)}
    return Response(render_template("templates/estimate.html", found=found, where=where, **context))


# --- JSON, both ways --------------------------------------------------------------------------------------


@route(bp, "/json", ["POST"], scope="read", reads=True, hidden=True, programs=False)
def to_json(actor: Actor) -> Response:
    """Return the draft in the format of the API."""
    text = orjson.dumps(draft.read(request.form), option=orjson.OPT_INDENT_2).decode()
    return Response(render_block(PAGE, "json", json_text=text))


@route(bp, "/from-json", ["POST"], scope="read", reads=True, hidden=True, programs=False)
def from_json(actor: Actor) -> Response:
    """Render the fields of a template in JSON, or the position of a syntax error."""
    text = request.form.get("json", "")
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return _json_state(f"Line {error.lineno}, column {error.colno}: {error.msg}.", bad=True)
    if isinstance(given, list):
        given = {"fields": given}
    if not isinstance(given, dict) or not isinstance(given.get("fields"), list):
        return _json_state("A template is an object with fields, an array of field definitions.", bad=True)
    if not all(isinstance(one, dict) for one in given["fields"]):
        return _json_state("Every field definition is an object.", bad=True)
    made = field_rows.rows(given["fields"], new_id)
    around = Around(actor, given, template_id())
    table = render_block(
        PAGE, "field_table", rows=made, common_hints=HINTS, draft=given, oob=True, around=around
    )
    state = render_block(PAGE, "json_state", state=f"Updated {len(made)} fields.", bad=False)
    cards = render_block(PAGE, "about_cards", draft=given, oob=True, **about(actor, given))
    return Response(state + table + cards, headers={"HX-Trigger-After-Settle": "preview"})


def _json_state(text: str, *, bad: bool) -> Response:
    return Response(render_block(PAGE, "json_state", state=text, bad=bad))


@route(bp, "/use", ["POST"], scope="read", reads=True, hidden=True, programs=False)
def use(actor: Actor) -> Response:
    """Render the API equivalent of the page as code samples."""
    given = draft.read(request.form)
    return Response(
        render_block(
            PAGE,
            "use",
            use=snippets.of_template(snippets.origin(), template_id(), given, request.form.get("seed", "")),
        )
    )

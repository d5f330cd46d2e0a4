"""Create a masked copy of real data: detect personal data in a file or a table, choose the masking, create the
template.

For browsers only. API clients use `/classify` and `/templates`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from flask import Blueprint, Response, render_template, request, url_for

from webapp import limits
from webapp.access.actors import Actor
from webapp.builder.forms import draft
from webapp.builder.inputs import TemplateIn
from webapp.builder.views import drafts, source_form
from webapp.builder.views.source_form import WAYS, SourceCard
from webapp.engine.source_data import SourceSpec
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.real_data.services import masked_copies
from webapp.real_data.services.masked_copies import Choice, Proposal
from webapp.row_templates.services import templates
from webapp.web.inputs import Query, parse
from webapp.web.responses import render_block, see_other
from webapp.web.routing import route

bp = Blueprint("masked", __name__, url_prefix="/templates")
PAGE: Final = "templates/masked.html"
_FILE: Final = "file"
_COLUMN: Final = re.compile(r"fields\[(\d+)\]")


class MaskedQuery(Query):
    """The source, if a page links here: a workspace file, or the table of a connection."""

    file: str = ""
    connection_id: str = ""
    table: str = ""


@route(bp, "/masked", scope="write", query=MaskedQuery, hidden=True, programs=False)
def ask(actor: Actor, query: MaskedQuery) -> Response:
    """The form that a file is dropped on, or a table is named in; of a file that is named already, its columns."""
    given = {name: value for name, value in query.model_dump().items() if value}
    if given.keys() != {"file"}:
        return _page(actor, given or None)
    return _looked(actor, given)


@route(
    bp, "/masked/look", ["POST"], scope="write", hidden=True, programs=False,
    max_body=limits.MAX_UPLOAD_BYTES + limits.UPLOAD_FORM_BYTES,
)  # fmt: skip
def look(actor: Actor) -> Response:
    """Save the uploaded file, analyze the source, and propose a masking for each column."""
    given = draft.read_source(request.form)
    if any(one.filename for one in request.files.getlist("file")):
        try:
            stored = source_form.kept_apart(actor, request)
        except ApiError as error:
            return _refused(actor, given, error)
        given = {**(given if given and draft.way_of(given) == _FILE else {}), "file": stored.name}
    return _looked(actor, given)


def _looked(actor: Actor, given: dict[str, Any] | None) -> Response:
    try:
        spec = _spec(given)
        found = masked_copies.proposed(actor, spec)
    except ApiError as error:
        return _refused(actor, given, error)
    return _page(actor, given, found, [one.choice for one in found], _name(spec))


def _spec(given: dict[str, Any] | None) -> SourceSpec:
    if not given:
        text = "There is nothing to copy yet."
        raise validation_error([Fault("source", "missing", text, "Drop a file, or choose a table.")])
    return parse(SourceSpec, given, strict=False)


def _name(spec: SourceSpec) -> str:
    what = spec.table or (spec.file or "query").rpartition("/")[2].rpartition(".")[0] or "query"
    return f"{what} (masked)"[: limits.MAX_NAME_CHARS]


def _refused(actor: Actor, given: dict[str, Any] | None, error: ApiError) -> Response:
    if error.status >= 500 and error.status != 502:
        raise error
    db.session.rollback()
    return _page(actor, given, error=error)


# --- What becomes of the columns ----------------------------------------------------------------------------


@route(bp, "/masked", ["POST"], scope="write", hidden=True, programs=False)
def make(actor: Actor) -> Response:
    """Create the template from the user's choices, or render the columns and their preview again."""
    given, chosen, name = draft.read_source(request.form), _chosen(), request.form.get("name", "").strip()
    if request.form.get("do") == "again":
        return _page(actor, given, _told(), chosen, name)
    try:
        spec = _spec(given)
        source, rows = spec.model_dump(exclude_none=True), masked_copies.quantity(actor, spec)
        body = {"name": name, "fields": masked_copies.fields(chosen), "source": source, "quantity": rows}
        made = templates.create(actor, **parse(TemplateIn, body, strict=False).model_dump())
    except ApiError as error:
        if error.code != "validation_error":
            raise
        db.session.rollback()
        return _page(actor, given, _told(), chosen, name, error)
    where = url_for("templates.show", template_id=made["id"])
    if "HX-Request" in request.headers:
        return Response(status=204, headers={"HX-Redirect": where})
    return see_other(where)


def _preview(actor: Actor, given: dict[str, Any] | None, chosen: list[Choice]) -> dict[str, Any]:
    try:
        fields = masked_copies.fields(chosen)
    except ApiError as error:
        return {"error": " ".join(one["message"] for one in error.details["fields"])}
    return drafts.preview_of(actor, {"fields": fields, "source": given}, "sample", fetch=True)


def _before(actor: Actor, given: dict[str, Any] | None, chosen: list[Choice]) -> dict[str, Any]:
    """Return the cells of the source's first rows by column."""
    made = _preview(actor, given, [replace(one, sensitive=False) for one in chosen])
    return {column["path"]: column["cells"] for column in made.get("columns", ())}


def _columns() -> list[str]:
    return request.form.getlist("column")[: limits.MAX_FIELDS]


def _chosen() -> list[Choice]:
    """Parse the choices for each column; a column that is not marked gets no strategy."""
    form, found = request.form, []
    for number, name in enumerate(_columns()):
        kind = form.get(f"c{number}.type") or masked_copies.AS_IT_IS
        known = masked_copies.strategies(kind)
        strategy = form.get(f"c{number}.strategy", "")
        found.append(
            Choice(
                name,
                f"c{number}.taken" in form,
                f"c{number}.sensitive" in form,
                kind,
                strategy if strategy in known else known[0],
                form.get(f"c{number}.person", ""),
                form.get(f"c{number}.format", "")[: limits.MAX_AFFIX_CHARS],
            )
        )
    return found


def _told() -> list[Proposal]:
    """Read the proposal from the form, so that the sample is not analyzed again."""
    found = []
    for number, name in enumerate(_columns()):
        sure, why, what = (
            request.form.get(f"c{number}.{key}", "") for key in ("confidence", "reason", "told")
        )
        found.append(Proposal(Choice(name), _share(sure), why, what))
    return found


def _share(text: str) -> float:
    return min(1.0, float(text)) if re.fullmatch(r"\d(\.\d{1,4})?", text) else 0.0


def _page(
    actor: Actor,
    given: dict[str, Any] | None,
    found: list[Proposal] | None = None,
    chosen: list[Choice] | None = None,
    name: str = "",
    error: ApiError | None = None,
) -> Response:
    """The page, or for htmx its result."""
    chosen = chosen or []
    preview = _preview(actor, given, chosen) if found and not error else None
    context = {
        "proposals": list(zip(found or (), chosen, strict=False)),
        "given": given or {},
        "way": draft.way_of(given),
        "name": name,
        "error": error,
        "faults": _by_column(error, chosen),
        "types": masked_copies.types(),
        "strategies": masked_copies.strategies,
        "preview": preview,
        "before": _before(actor, given, chosen) if preview and preview.get("columns") else {},
    }
    status = 200 if error is None or "HX-Request" in request.headers else error.status
    if "HX-Request" in request.headers:
        return Response(render_block(PAGE, "result", **context), status, mimetype="text/html")
    card = SourceCard(actor, given, way=_FILE)
    html = render_template(PAGE, source=card, source_ways=WAYS[1:], **context)
    return Response(html, status, mimetype="text/html")


def _by_column(error: ApiError | None, chosen: list[Choice]) -> dict[str, str]:
    """Return the errors by column; "" for all others."""
    taken = [one.name for one in chosen if one.taken]
    found: dict[str, str] = {}
    for fault in (error.details.get("fields") or ()) if error is not None else ():
        at = _COLUMN.match(fault["path"])
        name = taken[int(at[1])] if at and int(at[1]) < len(taken) else ""
        message = " ".join(filter(None, (fault["message"], fault.get("hint"))))
        found[name] = f"{found[name]} {message}" if name in found else message
    return found

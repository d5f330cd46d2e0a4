"""The pages of a dataset: show, edit table by table, save. For browsers only; API clients use /datasets.

A draft exists only in its form. Each button submits the whole form, and the response is the changed form with the
diagram and three rows of each table next to it. So it works without JavaScript; with JavaScript only the changed part
is replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson
from flask import Blueprint, Response, flash, render_template, request, url_for
from sqlalchemy import func, select

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.datasets.inputs import DatasetIn
from webapp.datasets.models import Dataset
from webapp.datasets.schemas import DatasetPreviewInput, SqlScriptSection
from webapp.datasets.services import datasets
from webapp.datasets.services import rows as datasets_rows
from webapp.datasets.services.rows import Member
from webapp.datasets.views import diagram
from webapp.errors import ApiError, Fault
from webapp.extensions import db
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import CsvSection
from webapp.web import row_tables, snippets
from webapp.web.forms.from_model import bound, filled
from webapp.web.inputs import form_values, parse
from webapp.web.responses import render_block, see_other
from webapp.web.routing import route

bp = Blueprint("dataset_pages", __name__)
PAGE: Final = "datasets/show.html"
FORMAT_NOTES: Final = (
    ("xlsx", "a sheet each"),
    ("sql", "one script"),
    ("csv", "files, zipped"),
    ("json", "files, zipped"),
    ("ndjson", "files, zipped"),
    ("parquet", "files, zipped"),
)
_SECTIONS: Final = (("csv", CsvSection), ("sql", SqlScriptSection))
_KEYS: Final = ("name", "description", "seed", "anchor", "templates")


def page(
    actor: Actor,
    dataset: Dataset | None,
    given: dict[str, Any] | None = None,
    *,
    status: int = 200,
    found: Sequence[Fault] = (),
    clash: int | None = None,
) -> Response:
    """The page of a saved dataset, of a new one (`dataset` None), or of what its form holds (`given`)."""
    saved = datasets.show(dataset) if dataset is not None else None
    shown = given or saved or {"name": "", "description": "", "seed": "", "anchor": None, "templates": []}
    context = {
        "data": saved,
        "draft": shown,
        "changed": given is not None,
        "loaded": request.form.get("version") or (saved["version"] if saved else ""),
        "action": url_for("dataset_pages.save", dataset_id=saved["id"])
        if saved
        else url_for("dataset_pages.make"),
        "can_write": actor.can("write"),
        "can_generate": actor.can("generate"),
        "found": found,
        "bad": {fault.path: fault.message for fault in found},
        "clash": clash,
        "most": limits.MAX_DATASET_TABLES,
        **_tables(actor, shown, saved),
    }
    if "HX-Request" in request.headers:
        return Response(render_block(PAGE, "bench", **context), status)
    if saved is not None and dataset is not None:
        context |= {
            "versions": _versions(dataset),
            "formats": FORMAT_NOTES,
            "format_forms": [(name, bound(section, prefix=f"{name}.")) for name, section in _SECTIONS],
            "use": snippets.of_dataset(snippets.origin(), saved["id"], saved),
        }
    return Response(render_template(PAGE, **context), status, mimetype="text/html")


@route(bp, "/datasets/new", scope="write", hidden=True, programs=False)
def new(actor: Actor) -> Response:
    """The form of a dataset that is not saved."""
    return page(actor, None)


@route(bp, "/datasets/new", ["POST"], scope="write", hidden=True, programs=False)
def make(actor: Actor) -> Response:
    """Save a new dataset, or edit its form."""
    given = _read()
    verb = request.form.get("do", "save")
    if verb != "save":
        return page(actor, None, _edited(given, verb))
    try:
        made = datasets.create(actor, **_checked(given))
    except ApiError as error:
        return _refused(actor, None, given, error)
    return see_other(url_for("datasets.show", dataset_id=made["id"]))


@route(bp, "/datasets/<dataset_id>/edit", ["POST"], scope="write", hidden=True, programs=False)
def save(actor: Actor, dataset_id: str) -> Response:
    """Save a draft as the next version, unless another one was saved since it was loaded; or edit its form."""
    given = _read()
    word, _, over = request.form.get("do", "save").partition(":")
    dataset = datasets.get(actor, dataset_id, "write", lock=True)
    if word == "delete":
        gone = datasets.delete(actor, dataset)
        flash(f"Dataset {gone['name']} deleted", url_for("datasets.restore", dataset_id=dataset_id))
        return see_other(url_for("datasets.index"))
    if word not in ("save", "save-over"):
        db.session.rollback()
        return page(actor, datasets.get(actor, dataset_id), _edited(given, request.form["do"]))
    if (over or request.form.get("version", "")) != str(dataset.version):
        db.session.rollback()
        dataset = datasets.get(actor, dataset_id)
        return page(actor, dataset, given, status=412, clash=dataset.version)
    try:
        saved = datasets.change(actor, dataset, _checked(given))
    except ApiError as error:
        return _refused(actor, dataset_id, given, error)
    flash(f"Saved as version {saved['version']}", "")
    return see_other(url_for("datasets.show", dataset_id=dataset_id))


# --- The form -----------------------------------------------------------------------------------------------


def _read() -> dict[str, Any]:
    """Return the values of the form as text; `templates` is a list of `{template_id, count, name}`."""
    values = form_values(request.form)
    tables = values.get("templates")
    given = {key: values[key] for key in _KEYS if isinstance(values.get(key), str)}
    given["templates"] = [one for one in tables if isinstance(one, dict)] if isinstance(tables, list) else []
    return given


def _edited(given: dict[str, Any], verb: str) -> dict[str, Any]:
    """Return the form after one button: `add`, `remove:2`, `up:2`, `down:2`; any other renders it again."""
    word, _, rest = verb.partition(":")
    tables = given["templates"]
    at = int(rest) if rest.isdecimal() and int(rest) < len(tables) else -1
    wanted = request.form.get("add", "")
    if word == "add" and wanted and len(tables) < limits.MAX_DATASET_TABLES:
        tables.append({"template_id": wanted})
    elif word == "remove" and at >= 0:
        del tables[at]
    elif word == "up" and at > 0:
        tables[at - 1], tables[at] = tables[at], tables[at - 1]
    elif word == "down" and 0 <= at < len(tables) - 1:
        tables[at + 1], tables[at] = tables[at], tables[at + 1]
    return given


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """Return the draft as arguments of `datasets.create` and `change`. Error: `validation_error` with all errors."""
    body = parse(DatasetIn, filled(DatasetIn, orjson.loads(orjson.dumps(given))), strict=False)
    made = {**body.model_dump(), "templates": [table.model_dump() for table in body.templates]}
    return {**made, "name": made["name"].strip() or made["name"]}


def _refused(actor: Actor, dataset: str | None, given: dict[str, Any], error: ApiError) -> Response:
    if error.code != "validation_error":
        raise error
    db.session.rollback()
    found = [
        Fault(one["path"], one["code"], one["message"], one.get("hint")) for one in error.details["fields"]
    ]
    back = datasets.get(actor, dataset) if dataset is not None else None
    return page(actor, back, given, status=error.status, found=found)


# --- Next to the form ---------------------------------------------------------------------------------------


def _tables(actor: Actor, shown: dict[str, Any], saved: dict[str, Any] | None) -> dict[str, Any]:
    """The tables with their templates, those that could be added, three rows of each, and the diagram."""
    wanted = [str(one.get("template_id", "")) for one in shown["templates"]]
    statement = select(Template).where(
        Template.id.in_(wanted), Template.workspace_id == actor.workspace_id, Template.deleted_at.is_(None)
    )
    there = {one.id: one for one in db.session.scalars(statement) if actor.can("read", one.team_id)}
    pinned = {one["template_id"]: one["version"] for one in saved["templates"]} if saved else {}
    members = []
    for place, one in enumerate(shown["templates"]):
        head = there.get(wanted[place])
        if head is not None and wanted.index(head.id) == place:
            version = pinned.get(head.id, head.version)
            members.append(
                Member(place, head.id, version, one.get("name") or head.name, _number(one.get("count")))
            )
    looks, problem, warnings = _looks(actor, shown, members)
    fields = datasets.fields_of({one.template_id: one.version for one in members})
    counts = {member.template_id: count for member, _, count in looks}
    drawn = [
        diagram.Table(
            one.template_id, one.name, fields.get(one.template_id, ()), counts.get(one.template_id, one.count)
        )
        for one in members
    ]
    others = tenancy.listing(actor, Template).where(Template.id.not_in(wanted))
    find = request.form.get("find", "").strip()
    fitting = others.where(Template.name.icontains(find, autoescape=True)) if find else others
    choice = db.session.scalars(
        fitting.order_by(func.lower(Template.name)).limit(limits.DATASET_CHOICES + 1)
    ).all()
    return {
        "there": there,
        "pinned": pinned,
        "counts": counts,
        "total": sum(counts.values()) if len(counts) == len(wanted) else None,
        "choice": choice[: limits.DATASET_CHOICES],
        "find": find,
        "many": bool(find) or len(choice) > limits.DATASET_CHOICES,
        "looks": [(member, row_tables.upright(rows, 1), count) for member, rows, count in looks],
        "problem": problem,
        "warnings": warnings,
        "diagram": diagram.of(drawn),
        "newer": [one.name for one in there.values() if pinned.get(one.id, one.version) < one.version],
    }


def _looks(
    actor: Actor, shown: dict[str, Any], members: Sequence[Member]
) -> tuple[list[tuple[Member, list[dict[str, Any]], int]], str, list[str]]:
    """Three rows of each table with its count; or what is wrong; and what is to be warned of."""
    if not members:
        return [], "", []
    spec = {"seed": shown.get("seed") or "sample", "anchor": None, "warnings": shown.get("warnings", [])}
    try:
        ask = DatasetPreviewInput.model_validate({"now": shown.get("anchor") or None}, strict=False)
        made = datasets_rows.preview(spec, members, ask, actor)
    except ApiError as error:
        if error.status >= 500:
            raise
        return [], error.message, []
    except ValueError:
        return [], "The anchor is not a time such as 2026-11-21T12:00:00Z.", []
    looks = [(look.member, orjson.loads(look.rows), look.count) for look in made.looks]
    return looks, "", [one["message"] for one in made.warnings]


def _number(value: Any) -> int | None:
    """Return a count from a form or the API as text; None for an invalid one."""
    text = str(value if value is not None else "")
    if not text.isdecimal() or len(text) > len(str(limits.ENTERPRISE_MAX.rows_per_generation)):
        return None
    return int(text) or None


def _versions(dataset: Dataset) -> list[dict[str, Any]]:
    return [
        {
            "number": version.number,
            "at": version.created_at,
            "who": who,
            "tables": len(version.spec["templates"]),
        }
        for version, who in datasets.KIND.history(dataset)
    ]

"""The destination of a dataset: a file format, a database or an API. A database is filled after its plan was shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from flask import Blueprint, Response, render_template, request, url_for
from pydantic import Field
from sqlalchemy import func, select

from webapp import limits
from webapp.access.actors import Actor
from webapp.datasets.models import Dataset
from webapp.datasets.schemas import SqlScriptSection
from webapp.datasets.services import datasets
from webapp.errors import ApiError
from webapp.exports.models import Export
from webapp.extensions import db
from webapp.pushes.models import Push
from webapp.pushes.schemas import DatasetPushInput
from webapp.pushes.services import preparation, pushes
from webapp.pushes.views import form
from webapp.pushes.views import pages as push_pages
from webapp.row_templates.schemas import CsvSection
from webapp.web.forms.from_model import bind_form
from webapp.web.inputs import Query, parse
from webapp.web.responses import render_block, see_other
from webapp.web.routing import route

bp = Blueprint("dataset_destinations", __name__)
FILE_FORMATS: Final = (
    ("xlsx", "Excel", "One workbook, one sheet per table"),
    ("sql", "SQL", "One script with INSERT statements"),
    ("csv", "CSV", "One file per table, in a ZIP archive"),
    ("json", "JSON", "One file per table, in a ZIP archive"),
    ("ndjson", "NDJSON", "One file per table, in a ZIP archive"),
    ("parquet", "Parquet", "One file per table, in a ZIP archive"),
)
_SECTIONS: Final = (("csv", CsvSection), ("sql", SqlScriptSection))
_FILL: Final = "datasets/fill.html"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the rows of a dataset go. `kind`: `file`, `database`, or `api`, whose paths are chosen on the push page."""

    kind: str
    id: str
    name: str
    detail: str = ""
    production: bool = False


def choose_destination(actor: Actor, dataset: Dataset, requested: str) -> Destination:
    """Return a destination: the requested one, else the one that the dataset was last sent to, else the first
    connection that accepts rows, else a file."""
    requested = requested.partition("/")[0]
    files = {name: Destination("file", name, title, text) for name, title, text in FILE_FORMATS}
    if requested in files:
        return files[requested]
    if not actor.can("push", dataset.team_id):
        return files.get(_last_format(dataset) or "", files["xlsx"])
    try:
        connections = form.destinations(actor, requested if requested.startswith(("con_", "end_")) else "")
    except ApiError:
        connections = form.destinations(actor, "")
    writable = {connection["id"]: connection for connection in connections if not connection["read_only"]}
    if requested in writable:
        return _destination_of(writable[requested])
    target_id = func.coalesce(Push.endpoint_id, Push.connection_id)
    newest = select(target_id).where(Push.dataset_id == dataset.id).order_by(Push.id.desc()).limit(1)
    last = db.session.scalar(newest)
    if last is not None and last in writable:
        return _destination_of(writable[last])
    if last is None and (name := _last_format(dataset)) in files:
        return files[str(name)]
    databases = [item for item in writable.values() if not item["http"]]
    return _destination_of(databases[0]) if databases else files["xlsx"]


def _destination_of(connection: dict[str, Any]) -> Destination:
    kind = "api" if connection["http"] or connection["endpoint"] else "database"
    return Destination(
        kind,
        connection["id"],
        connection["name"],
        _KINDS.get(connection["type"], ""),
        connection["environment"] == "prod",
    )


_KINDS: Final = {
    "postgresql": "PostgreSQL", "mysql": "MySQL", "sqlite": "SQLite", "mssql": "SQL Server", "oracle": "Oracle",
    "db2": "Db2", "mongodb": "MongoDB", "rest": "REST", "odata": "OData", "openapi": "OpenAPI", "endpoint": "Endpoint",
}  # fmt: skip


def _last_format(dataset: Dataset) -> str | None:
    newest = select(Export.format).where(Export.dataset_id == dataset.id).order_by(Export.id.desc()).limit(1)
    return db.session.scalar(newest)


@route(bp, "/datasets/<dataset_id>/destination", scope="read", hidden=True, allows_api_keys=False)
def choose(actor: Actor, dataset_id: str) -> Response:
    """Show the destinations of a dataset, with the options of files."""
    dataset = datasets.get(actor, dataset_id)
    destination = choose_destination(actor, dataset, request.args.get("to", ""))
    context = {
        "data": datasets.show(dataset),
        "now": destination,
        "files": FILE_FORMATS,
        "format_forms": [(name, bind_form(section, prefix=f"{name}.")) for name, section in _SECTIONS],
        "destinations": push_pages.destinations(
            actor, "", "" if destination.kind == "file" else destination.id
        ),
        "can_generate": actor.can("generate", dataset.team_id),
    }
    if "HX-Request" in request.headers:
        return Response(render_block("datasets/destination.html", "choice", **context))
    return Response(render_template("datasets/destination.html", **context), mimetype="text/html")


class FillQuery(Query):
    """Which database."""

    connection_id: Annotated[str, Field(max_length=2 * limits.MAX_NAME_CHARS)] = ""


@route(
    bp,
    "/datasets/<dataset_id>/fill",
    scope="push",
    query=FillQuery,
    hidden=True,
    allows_api_keys=False,
    reads=False,
)
def plan(actor: Actor, dataset_id: str, query: FillQuery) -> Response:
    """Check the columns of a database, and show what would be written."""
    return _render_plan(actor, dataset_id, query.connection_id, None)


@route(bp, "/datasets/<dataset_id>/fill", ["POST"], scope="push", hidden=True, allows_api_keys=False)
def fill(actor: Actor, dataset_id: str) -> Response:
    """Send the rows of a dataset to a database."""
    connection_id = request.form.get("connection_id", "")
    try:
        body = _push_input(
            connection_id, dry_run=False, confirm=request.form.get("confirm", "").strip() or None
        )
        push = pushes.queue(actor, preparation.prepare_dataset(actor, dataset_id, body), "dataset.push")
    except ApiError as error:
        if error.code in ("not_found", "forbidden"):
            raise
        db.session.rollback()
        return _render_plan(actor, dataset_id, connection_id, error)
    address = url_for("pushes.show", push_id=push.id)
    if "HX-Request" in request.headers:
        return Response(status=204, headers={"HX-Redirect": address})
    return see_other(address)


def _push_input(connection_id: str, *, dry_run: bool, confirm: str | None = None) -> DatasetPushInput:
    connection_id = connection_id.partition("/")[0]
    values = {
        "connection_id": connection_id, "create_table": True, "skip_faulty_tables": True, "dry_run": dry_run,
        "confirm": confirm,
    }  # fmt: skip
    return parse(DatasetPushInput, values, strict=False)


def _render_plan(actor: Actor, dataset_id: str, connection_id: str, push_error: ApiError | None) -> Response:
    dataset = datasets.get(actor, dataset_id, "push")
    destination = choose_destination(actor, dataset, connection_id)
    push_plan, error = None, push_error
    try:
        push_plan = pushes.plan(
            preparation.prepare_dataset(actor, dataset_id, _push_input(connection_id, dry_run=True))
        )
    except ApiError as plan_error:
        if plan_error.code in ("not_found", "forbidden"):
            raise
        db.session.rollback()
        error = error or plan_error
    tables = [  # what happens to each, and what may not fit
        {
            "name": item["name"],
            "target": item["target"],
            "count": item["count"],
            "create": item["create"],
            "columns": sum(cell["state"] == "field" for cell in item["columns"]),
            "doubts": [
                f"{cell['column']}: {cell['misfits'][0]['message']}"
                for cell in item["columns"]
                if cell["misfits"]
            ],
            "faults": [fault["message"] for fault in item["faults"]],
        }
        for item in (push_plan["tables"] if push_plan else ())
    ]
    confirm_fault = next(
        (
            item
            for item in (push_error.details.get("fields", ()) if push_error else ())
            if item["path"] == "confirm"
        ),
        None,
    )
    context = {
        "data": datasets.show(datasets.get(actor, dataset_id)),
        "where": destination,
        "plan": push_plan,
        "planned": tables,
        "most": limits.DATASET_LINES,
        "error": None if confirm_fault else error,
        "wrong": confirm_fault,
    }
    status = push_error.status if push_error is not None else 200
    if "HX-Request" in request.headers:
        return Response(render_block(_FILL, "plan", **context))
    return Response(render_template(_FILL, **context), status, mimetype="text/html")

"""Fill a database: for programs in one call, for people as a form, its plan, and a button that sends it."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, flash, redirect, render_template, request, url_for

from webapp.access.actors import Actor
from webapp.connections.services import connections
from webapp.datasets.services import datasets
from webapp.errors import ApiError
from webapp.fill import services
from webapp.fill.schemas import FillInput
from webapp.imports.views.tables import ColumnReport, SkippedEntity
from webapp.pushes.responses import PlanOut, PushOut
from webapp.pushes.views.pushes import ERRORS
from webapp.web.forms.page_form import Control, FormSpec
from webapp.web.inputs import Query, parse
from webapp.web.responses import Output, reply
from webapp.web.routing import route

bp = Blueprint("fill", __name__)

FORM: Final = FormSpec(
    FillInput,
    {
        "rows": Control("Rows per table", hint="Tables with fewer possible rows get fewer rows."),
        "row_counts": Control(
            "Numbers of rows",
            type="radios",
            choices=[
                ("equal", "The same for each table"),
                ("proportional", "In proportion: the largest table gets this number"),
                ("existing", "The number of rows each table already has"),
            ],
        ),
        "existing": Control(
            "Tables that have rows",
            type="radios",
            choices=[("add", "Add rows"), ("use", "Keep the rows and use them as parents")],
        ),
        "seed": Control(
            "Seed",
            placeholder="a new one",
            hint="The same seed produces the same rows.",
            attributes={"spellcheck": "false"},
        ),
    },
    codes={"row_limit_exceeded": "rows", "quota_exceeded": "rows"},
)


UNCHECKED_NOTE: Final = (
    "Foreign key checks are disabled while its rows are written, because tables refer to each other."
)
NO_UNDO_NOTE: Final = (
    "No key of this table is sent, so an undo can find the rows only if the table is currently empty."
)


class FilledTable(Output):
    """A table that is filled: its template, its number of rows, and why that is fewer than requested, or ""."""

    table: str
    template_id: str
    rows: int
    note: str


class FillOut(Output):
    """A fill: its dataset, its tables, and the push that sends their rows (a dry run has a plan instead).

    `report`: the field type of each column, and how certain it is.
    """

    dataset_id: str
    seed: str
    tables: list[FilledTable]
    skipped: list[SkippedEntity]
    report: list[ColumnReport]
    push: PushOut | None
    plan: PlanOut | None


@route(
    bp,
    "/connections/<connection_id>/fill",
    ["POST"],
    scope="write",  # for the templates; the service asks for `push` as well
    body=FillInput,
    returns=FillOut,
    status=201,
    idempotent=True,
    errors=ERRORS,
)
def create(actor: Actor, connection_id: str, body: FillInput) -> Response:
    """Fill the tables of a database: templates and a dataset are created, and a push sends the rows.

    Tables that cannot be filled are listed in `skipped`; the others are filled. Undo the push to remove the rows. To
    fill the database again, push the dataset.
    """
    drafted = services.create_dataset(actor, connection_id, body)
    if body.dry_run:
        return reply(services.as_json(drafted, services.prepare(actor, drafted, body)), status=201)
    push = services.queue_push(actor, drafted, body)
    address = url_for("pushes.show", push_id=push.id)
    return reply(services.as_json(drafted, push), status=201, headers={"Location": address})


class FormQuery(Query):
    """The dataset of a plan that is changed."""

    instead_of: str = ""


@route(
    bp, "/connections/<connection_id>/fill", scope="push", query=FormQuery, allows_api_keys=False, hidden=True
)
def form(actor: Actor, connection_id: str, query: FormQuery) -> Response:
    """Return the form with the number of rows."""
    return _page(
        actor,
        connection_id,
        FORM.render({"rows": 1_000, "row_counts": "equal", "existing": "add"}),
        instead_of=query.instead_of,
    )


@route(
    bp, "/connections/<connection_id>/fill/plan", ["POST"], scope="write", allows_api_keys=False, hidden=True
)
def plan(actor: Actor, connection_id: str) -> Response:
    """Create the templates and the dataset, and show what would be written."""
    instead_of = request.form.get("instead_of", "")
    values: dict[str, Any] = {
        "rows": request.form.get("rows") or None,
        "row_counts": request.form.get("row_counts", "equal"),
        "existing": request.form.get("existing", "add"),
        "seed": request.form.get("seed") or None,
    }
    try:
        FORM.check(request.form)
        body = parse(FillInput, {**values, "dry_run": True}, strict=False)
        drafted = services.create_dataset(actor, connection_id, body)
        result = services.as_json(drafted, services.prepare(actor, drafted, body))
    except ApiError as error:
        if error.code in ("not_found", "forbidden"):
            raise
        sent = FORM.render(sent=request.form, error=error)
        return _page(actor, connection_id, sent, instead_of=instead_of, status=error.status)
    if instead_of:
        services.discard(actor, instead_of)
    return _page(actor, connection_id, None, planned=result)


@route(
    bp,
    "/connections/<connection_id>/fill/<dataset_id>",
    ["POST"],
    scope="push",
    allows_api_keys=False,
    hidden=True,
)
def start(actor: Actor, connection_id: str, dataset_id: str) -> Response:
    """Send the rows of a planned fill."""
    body = FillInput(confirm=request.form.get("confirm") or None)
    try:
        push = services.queue_planned_push(actor, connection_id, dataset_id, body)
    except ApiError as error:
        if error.code in ("not_found", "forbidden"):
            raise
        flash(
            " ".join([error.message, *(field["message"] for field in error.details.get("fields", ())[:3])]),
            "bad",
        )
        return redirect(url_for("fill.form", connection_id=connection_id), 303)  # type: ignore[return-value]
    return redirect(url_for("pushes.show", push_id=push.id), 303)  # type: ignore[return-value]


def _page(
    actor: Actor,
    connection_id: str,
    form: Any,
    *,
    planned: dict[str, Any] | None = None,
    instead_of: str = "",
    status: int = 200,
) -> Response:
    connection = connections.as_json(connections.get(actor, connection_id, "push"))
    dataset = datasets.show(datasets.get(actor, planned["dataset_id"])) if planned else None
    notes = {table["table"]: table["note"] for table in planned["tables"]} if planned else {}
    for table in planned["plan"]["tables"] if planned else ():
        if table["unchecked"]:
            notes[table["name"]] = f"{notes[table['name']]} {UNCHECKED_NOTE}".strip()
        if not table["key_columns"]:
            notes[table["name"]] = f"{notes[table['name']]} {NO_UNDO_NOTE}".strip()
    text = render_template(
        "fill/show.html",
        connection=connection,
        form=form,
        planned=planned,
        notes=notes,
        dataset=dataset,
        instead_of=instead_of,
    )
    return Response(text, status, mimetype="text/html")

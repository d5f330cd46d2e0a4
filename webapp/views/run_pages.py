"""The pages of runs: one with its log, as it goes on and afterwards; asking for one. For people only; programs use
/scenarios/{id}/run."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from flask import Blueprint, Response, redirect, render_template, request, url_for
from pydantic import Field

from webapp import limits
from webapp.errors import validation_error
from webapp.extensions import db
from webapp.forms import scenario as forms
from webapp.models import Run, Scenario
from webapp.services import runs, tenancy
from webapp.services.actors import Actor
from webapp.views import log_lines
from webapp.views import runs_shown as shown
from webapp.views.inputs import Query, form_values
from webapp.views.reply import render_block
from webapp.views.routes import route

bp = Blueprint("run_pages", __name__)
PAGE: Final = "runs/show.html"
ONE: Final = "/scenarios/<scenario_id>/runs/<run_id>"
_MOST_LINES: Final = 10**12


def page(actor: Actor, run: Run) -> Response:
    """The page of a run; `?line=` shows the log around a line, `?q=` lines that hold a text."""
    data = runs.as_json(run)
    scenario = db.session.get(Scenario, run.scenario_id)
    line = request.args.get("line", "")
    at = int(line) if line.isdecimal() and len(line) <= len(str(_MOST_LINES)) else 0
    q = request.args.get("q", "").strip()[: limits.MAX_QUERY_TEXT]
    context = {
        **_state(data),
        "scenario": scenario,
        "newest": scenario.version if scenario is not None else 0,
        "there": scenario is not None and scenario.deleted_at is None,
        "who": shown.people([run.created_by] if run.created_by else []).get(run.created_by or "", ""),
        "of": db.session.get(Run, run.of_id) if run.of_id else None,
        "repeats": shown.repeats(actor, run),
        "params": forms.padded(forms.rows_of(run.params)),
        "lines": shown.around(run.id, at) if at else shown.tail(run.id),
        "at": at,
        "found": shown.search(run.id, q) if q else None,
        "code": shown.code(data),
    }
    return Response(render_template(PAGE, **context), mimetype="text/html")


def _state(data: dict[str, Any]) -> dict[str, Any]:
    error = data["error"]
    return {
        "data": data,
        "open": data["status"] in ("queued", "running"),
        "charts": shown.charts(data["usage"]),
        "advice": shown.ADVICE.get(error["code"], "") if error else "",
    }


@route(bp, f"{ONE}/state", scope="read", hidden=True, programs=False)
def state(actor: Actor, scenario_id: str, run_id: str) -> Response:
    """The state of a run, for a page that looks at it as it goes on."""
    data = runs.as_json(runs.get(actor, scenario_id, run_id))
    return Response(render_block(PAGE, "work", **_state(data)))


class LogQuery(Query):
    """Which lines: from a number on, or the last ones; or those that hold a text."""

    first: Annotated[int, Field(ge=1, le=_MOST_LINES)] | None = None
    most: Annotated[int, Field(ge=1, le=limits.LOG_PIECE_LINES)] = limits.LOG_PIECE_LINES
    q: Annotated[str, Field(max_length=limits.MAX_QUERY_TEXT)] = ""


@route(bp, f"{ONE}/log", scope="read", query=LogQuery, hidden=True, programs=False)
def log(actor: Actor, scenario_id: str, run_id: str, query: LogQuery) -> Response:
    """Lines of a log as a part of a page."""
    run = runs.get(actor, scenario_id, run_id)
    data = runs.as_json(run)
    q = query.q.strip()
    if q:
        return Response(render_block(PAGE, "hits", data=data, found=shown.search(run.id, q)))
    if "q" in request.args:
        return Response(render_block(PAGE, "hits", data=data, found=None))
    lines = shown.piece(run.id, query.first, query.most) if query.first else shown.tail(run.id)
    return Response(render_block(PAGE, "lines", data=data, lines=lines, at=0))


class AfterQuery(Query):
    """The number of the last line that is there already."""

    after: Annotated[int, Field(ge=0, le=_MOST_LINES)] = 0


@route(
    bp,
    f"{ONE}/log/follow",
    scope="read",
    query=AfterQuery,
    hidden=True,
    programs=False,
    errors=("unavailable",),
)
def follow(actor: Actor, scenario_id: str, run_id: str, query: AfterQuery) -> Response:
    """Follow a log from a line on, as server-sent events."""
    from webapp.views.runs import Followed  # which declares the routes around this page

    runs.get(actor, scenario_id, run_id)
    return log_lines.follow(Followed(run_id), query.after)


# --- Asking for one ---------------------------------------------------------------------------------------------


def _params() -> dict[str, str]:
    params, faults = forms.variables(forms.rows(form_values(request.form), "params"), "params")
    if faults:
        raise validation_error(faults)
    return params


@route(bp, "/scenarios/<scenario_id>/start", ["POST"], scope="run", hidden=True, programs=False)
def start(actor: Actor, scenario_id: str) -> Response:
    """Run a scenario's newest version with the parameters of a form."""
    scenario = tenancy.get(actor, Scenario, scenario_id, "run")
    return _see(runs.queue(actor, scenario, _params()))


@route(bp, f"{ONE}/again", ["POST"], scope="run", hidden=True, programs=False)
def again(actor: Actor, scenario_id: str, run_id: str) -> Response:
    """Run it once more with other parameters, the same version or the newest."""
    run = runs.get(actor, scenario_id, run_id, "run")
    version: Literal["same", "newest"] = "same" if request.form.get("version") == "same" else "newest"
    return _see(runs.rerun(actor, run, version=version, params=_params()))


def _see(run: Run) -> Response:
    return redirect(url_for("runs.show", scenario_id=run.scenario_id, run_id=run.id), 303)  # type: ignore[return-value]

"""Runs of scenarios: started, listed, followed, cancelled, repeated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from flask import Blueprint, Response, g, url_for
from pydantic import BeforeValidator, Field, WithJsonSchema

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.errors import ApiError
from webapp.extensions import application, db
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.services import run_completion, runs
from webapp.scenarios.views import run_pages
from webapp.scenarios.views.run_pages import FollowedRun
from webapp.web import events
from webapp.web.inputs import Input, ListQuery, Query, merge_faults
from webapp.web.responses import ListOf, Output, check_if_match, reply, see_other
from webapp.web.routing import route

bp = Blueprint("runs", __name__)


def _parse_switch(value: Any) -> Any:
    """Convert the texts "true" and "false", which the specification uses, to booleans."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


Switch = Annotated[
    bool,
    BeforeValidator(_parse_switch),
    WithJsonSchema({"enum": [True, False, "true", "false"], "default": False}),
]
Params = dict[str, str]


class RunIn(Input):
    """How to run a scenario.

    `params` become environment variables of its program. `wait`: respond when it has finished, or after 5 minutes with
    its current state.
    """

    params: Params = Field(default_factory=dict)
    wait: Switch = False


class RerunIn(Input):
    """How to run it again: the version, and the parameters (default: those of the run)."""

    version: Literal["same", "newest"] = "same"
    params: Params | None = None
    wait: Switch = False


class OutputFile(Output):
    """A file that a run stored."""

    name: str
    size: int
    file_id: str


class RunOut(Output):
    """A run.

    For codes of `error`, see docs/reference/runs.md. `usage` is a list of [seconds, bytes of memory, CPU time in ms].
    Times of events that have not happened are null.
    """

    id: str
    run_id: str
    scenario_id: str
    scenario_version: int
    of_id: str | None
    status: str
    params: dict[str, str]
    trigger: str
    exit_code: int | None
    error: dict[str, Any] | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None
    duration_ms: int | None
    max_rss_bytes: int | None
    cpu_ms: int | None
    rows_generated: int
    line_count: int
    log_bytes: int
    usage: list[list[float]]
    outputs: list[OutputFile]
    timeout_seconds: int
    network: str
    project_id: str
    team_id: str
    created_by: str | None


class RunQuery(ListQuery):
    """Which runs. `q` searches the names of scenarios; `of_id` finds the repetitions of a run. `sort`: `created`,
    `lines` or `rows`, backwards with `-`; newest first without."""

    status: Literal["queued", "running", "completed", "failed", "cancelled", "timed_out"] | None = None
    trigger: Literal["api", "browser", "schedule", "rerun", "scenario"] | None = None
    of_id: str | None = None
    sort: Literal["created", "-created", "lines", "-lines", "rows", "-rows"] | None = None


class LogQuery(Query):
    """Whether to keep the response open for further lines, as server-sent events."""

    follow: bool = False


def _more_faults(
    actor: Actor, error: ApiError, submitted: Any, scenario_id: str, run_id: str = ""
) -> ApiError:
    scenario = tenancy.get(actor, Scenario, scenario_id, "run")
    model = RerunIn if run_id else RunIn
    return merge_faults(error, submitted, model, lambda body: runs.params_faults(scenario, body.params or {}))


@route(
    bp,
    "/scenarios/<scenario_id>/run",
    ["POST"],
    scope="run",
    body=RunIn,
    returns=RunOut,
    status=201,
    other_responses={200: RunOut},
    idempotent=True,
    errors=("quota_exceeded",),
    more_faults=_more_faults,
)
def create(actor: Actor, scenario_id: str, body: RunIn) -> Response:
    """Run a scenario's newest version; with `wait` respond when it has finished.

    201 with the queued run. With `wait`: 200 with the finished run, or with its current state after 5
    minutes, or immediately if the maximum number of callers are waiting. If the caller disconnects, the run
    continues.
    """
    scenario = tenancy.get(actor, Scenario, scenario_id, "run")
    return _respond(actor, runs.queue(actor, scenario, body.params), wait=body.wait)


def _respond(actor: Actor, run: Run, *, wait: bool) -> Response:
    url = url_for("runs.show", scenario_id=run.scenario_id, run_id=run.id)
    if wait and g.face == "program":
        run_id = run.id
        events.wait_until_finished(FollowedRun(run_id), limits.WAIT_SECONDS)
        run = tenancy.get(actor, Run, run_id)
        return reply(runs.as_json(run), headers={"Location": url})
    return reply(runs.as_json(run), status=201, redirect_to=url, headers={"Location": url})


@route(bp, "/runs", scope="read", query=RunQuery, returns=ListOf(RunOut))
def index(actor: Actor, query: RunQuery) -> Response:
    """List the runs of the project, newest first."""
    if g.face == "person":
        return see_other(url_for("activity.index", kind="run", q=query.q, of=query.of_id, days=0))
    page = runs.listing(actor, **query.model_dump())
    return reply(page.as_dict(runs.as_json))


@route(bp, "/scenarios/<scenario_id>/runs", scope="read", query=RunQuery, returns=ListOf(RunOut))
def of_scenario(actor: Actor, scenario_id: str, query: RunQuery) -> Response:
    """List the runs of a scenario, newest first."""
    scenario = tenancy.get(actor, Scenario, scenario_id)
    page = runs.listing(actor, scenario_id=scenario.id, **query.model_dump())
    context: dict[str, Any] = {"scenario": scenario, "query": query}
    if g.face == "person":
        context |= {**run_pages.list_context(page.items), "params": run_pages.params_rows(page.items)}
    return reply(page.as_dict(runs.as_json), template="runs/list.html", block="list", **context)


@route(bp, "/scenarios/<scenario_id>/runs/<run_id>", scope="read", returns=RunOut)
def show(actor: Actor, scenario_id: str, run_id: str) -> Response:
    """Read a run."""
    run = runs.get(actor, scenario_id, run_id)
    if g.face == "person":
        return run_pages.page(actor, run)
    return reply(runs.as_json(run), send_etag=True)


@route(
    bp,
    "/scenarios/<scenario_id>/runs/<run_id>",
    ["DELETE"],
    scope="run",
    returns=RunOut,
    errors=("run_finished", "version_conflict"),
)
def cancel(actor: Actor, scenario_id: str, run_id: str) -> Response:
    """Cancel a run that has not finished: its program gets SIGTERM, and 5 seconds later SIGKILL."""
    run = runs.get(actor, scenario_id, run_id, "run", lock=True)
    check_if_match(runs.as_json(run))
    url = url_for("runs.show", scenario_id=scenario_id, run_id=run_id)
    return reply(runs.as_json(runs.cancel(actor, run)), redirect_to=url)


@route(
    bp,
    "/scenarios/<scenario_id>/runs/<run_id>/rerun",
    ["POST"],
    scope="run",
    body=RerunIn,
    returns=RunOut,
    status=201,
    other_responses={200: RunOut},
    idempotent=True,
    errors=("quota_exceeded",),
    more_faults=_more_faults,
)
def rerun(actor: Actor, scenario_id: str, run_id: str, body: RerunIn) -> Response:
    """Run the same version again, or the newest, with the same or other parameters."""
    run = runs.get(actor, scenario_id, run_id, "run")
    new_run = runs.rerun(actor, run, version=body.version, params=body.params)
    return _respond(actor, new_run, wait=body.wait)


@route(
    bp,
    "/scenarios/<scenario_id>/runs/<run_id>/logs",
    scope="read",
    query=LogQuery,
    produces=("text/plain", "text/event-stream"),
    errors=("unavailable",),
)
def logs(actor: Actor, scenario_id: str, run_id: str, query: LogQuery) -> Response:
    """Get the output of the program as text, or with `follow` as server-sent events with the line numbers as IDs."""
    runs.get(actor, scenario_id, run_id)
    db.session.remove()
    if query.follow:
        return events.follow_log(FollowedRun(run_id))
    app = application()

    def text() -> Iterator[bytes]:
        # Each piece is read in an application context, and no session stays open between them.
        pieces = run_completion.read_log(run_id)
        while True:
            with app.app_context():
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece.encode("utf-8", "replace")

    return Response(text(), mimetype="text/plain")


@route(
    bp,
    "/scenarios/<scenario_id>/runs/<run_id>/events",
    scope="read",
    produces=("text/event-stream",),
    errors=("unavailable",),
)
def follow(actor: Actor, scenario_id: str, run_id: str) -> Response:
    """Follow a run's status, lines, rows and resources as server-sent events, until it finishes."""
    runs.get(actor, scenario_id, run_id)
    return events.log_progress(FollowedRun(run_id))

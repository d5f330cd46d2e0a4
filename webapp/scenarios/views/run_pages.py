"""The pages of runs: one with its log, as it goes on and afterwards; asking for one. For people only; programs use
/scenarios/{id}/run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from flask import Blueprint, Response, redirect, render_template, request, url_for
from pydantic import Field
from sqlalchemy import select

from webapp import limits
from webapp.accounts.actors import Actor
from webapp.accounts.models import User
from webapp.accounts.services import tenancy
from webapp.errors import validation_error
from webapp.extensions import db
from webapp.scenarios import forms as scenarios_forms
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.services import run_logs, runs
from webapp.scenarios.views import presentation
from webapp.web import log_events, snippets
from webapp.web.inputs import Query, form_values
from webapp.web.responses import render_block
from webapp.web.routing import route

WIDTH, HEIGHT = 300, 40
ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "program_failed": "The last lines of the log say where: read them from the end.",
        "time_limit": "Give it more time under Settings, or less to do: fewer rows, several runs.",
        "memory_limit": "Work through rows in pieces instead of holding all of them at once.",
        "process_limit": "Start fewer processes or threads at once.",
        "disk_limit": "Write less at once, and remove temporary files.",
        "cpu_limit": "Look for a loop that does not end, or split the work over several runs.",
        "log_limit": "Print less: a line for a hundred rows, not for each. Data belongs into a file among the outputs.",
        "uploads_failed": "The storage of files did not answer: run it again, and tell the operator if it stays so.",
        "outputs_failed": "Write fewer and smaller files among the outputs, under plain names, then run it again.",
        "environment_failed": "The log says which package could not be had. Save the program again to resolve it anew.",
        "secret_missing": "Store it under Settings, Secrets, or take it from the scenario's settings.",
        "maker_missing": "Somebody who may run it saves it again, or runs it.",
        "program_missing": "Run the newest version instead.",
        "sandbox_missing": "The operator of this service finds the reason under Status and in the service's log.",
        "worker_stopped": "Look at what the program had done, then run it again.",
        "worker_lost": "Look at what the program had done, then run it again.",
        "internal_error": "Run it again. If it comes back, tell the operator the run's id.",
    }
)


# --- The log ----------------------------------------------------------------------------------------------------

Line = tuple[int, str]


def plain(line: str) -> str:
    """A line without colours and other commands to a terminal."""
    return run_logs.COMMANDS.sub("", line)


def _shown(line: str) -> str:
    text = plain(line)
    if len(text) <= limits.LOG_LINE_CHARS:
        return text
    return f"{text[: limits.LOG_LINE_CHARS]} … and {len(text) - limits.LOG_LINE_CHARS:,} characters more"


def tail(run_id: str) -> list[Line]:
    """The last lines of a log, as many as a page begins with."""
    found: list[Line] = []
    size = 0
    for number, line in reversed(run_logs.last_lines(run_id, limits.LOG_TAIL_LINES)):
        text = _shown(line)
        size += len(text)
        if found and size > limits.LOG_TAIL_CHARS:
            break
        found.append((number, text))
    return found[::-1]


def piece(run_id: str, first: int, most: int = limits.LOG_PIECE_LINES) -> list[Line]:
    """Lines of a log from a number on, at most so many."""
    found: list[Line] = []
    after, size = max(0, first - 1), 0
    while len(found) < most and (pieces := run_logs.pieces(run_id, after)):
        for one in pieces:
            for number, line in enumerate(one.lines, one.first):
                text = _shown(line)
                size += len(text)
                if len(found) >= most or (found and size > limits.LOG_PIECE_CHARS):
                    return found
                found.append((number, text))
        after = pieces[-1].last
    return found


def around(run_id: str, number: int) -> list[Line]:
    """The lines around one, as many as a page begins with."""
    found = piece(run_id, max(1, number - limits.LOG_TAIL_LINES // 4), limits.LOG_TAIL_LINES)
    size, kept = 0, []
    for one in found:
        size += len(one[1])
        if size > limits.LOG_TAIL_CHARS and one[0] > number:
            break
        kept.append(one)
    return kept


def search(run_id: str, text: str) -> dict[str, Any]:
    """The lines of a log that hold a text, without regard to case: `{q, total, hits}`, the first LOG_HITS of them."""
    wanted = text.casefold()
    hits: list[Line] = []
    total = after = 0
    while pieces := run_logs.pieces(run_id, after):
        for one in pieces:
            for number, line in enumerate(one.lines, one.first):
                told = plain(line)
                at = told.casefold().find(wanted)
                if at < 0:
                    continue
                total += 1
                if len(hits) < limits.LOG_HITS:
                    hits.append((number, _cut(told, at)))
        after = pieces[-1].last
    return {"q": text, "total": total, "hits": hits}


def _cut(line: str, at: int) -> str:
    """A long line around a place in it."""
    if len(line) <= limits.LOG_HIT_CHARS:
        return line
    start = max(0, at - limits.LOG_HIT_CHARS // 4)
    end = start + limits.LOG_HIT_CHARS
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"


# --- Resources --------------------------------------------------------------------------------------------------


def charts(points: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """Memory and processor over time: `[{name, most, line, area, seconds}]`; [] where there are too few points."""
    steps = [(float(at), float(memory), float(cpu)) for at, memory, cpu in points]
    busy = [
        (after[0], max(0.0, (after[2] - before[2]) / 10 / (after[0] - before[0])))
        for before, after in pairwise(steps)
        if after[0] > before[0]
    ]
    memory = _drawn("memory", [(at, value) for at, value, _ in steps])
    percent = _drawn("processor", busy)
    return [one for one in (memory, percent) if one]


def _drawn(name: str, points: Sequence[tuple[float, float]]) -> dict[str, Any] | None:
    if len(points) < 2 or points[-1][0] <= 0:
        return None
    last, most = points[-1][0], max(value for _, value in points)
    scale = most or 1.0
    spots = [
        f"{at / last * WIDTH:.1f},{HEIGHT - 1 - value / scale * (HEIGHT - 3):.1f}" for at, value in points
    ]
    line = "M" + " L".join(spots)
    start = spots[0].partition(",")[0]
    area = f"{line} L{WIDTH},{HEIGHT} L{start},{HEIGHT} Z"
    return {"name": name, "most": most, "line": line, "area": area, "seconds": last}


# --- Beside the run ---------------------------------------------------------------------------------------------


def beside(items: Iterable[Run]) -> dict[str, Any]:
    """Names of the scenarios and the people of some runs, and bars of how long those took."""
    found = list(items)
    wanted = {one.scenario_id for one in found}
    rows = (
        db.session.execute(select(Scenario.id, Scenario.name).where(Scenario.id.in_(wanted)))
        if wanted
        else ()
    )
    took = [
        (one.status, (one.finished_at - one.started_at).total_seconds())
        if one.started_at and one.finished_at
        else (one.status, None)
        for one in reversed(found)
    ]
    return {
        "names": {row[0]: row[1] for row in rows},
        "people": people({one.created_by for one in found if one.created_by}),
        "spark": presentation.spark(took),
    }


def params_rows(items: Sequence[Run]) -> scenarios_forms.Rows:
    """The parameters of the newest of some runs, as rows of a form."""
    newest = max(items, key=lambda one: one.id, default=None)
    return scenarios_forms.padded(scenarios_forms.rows_of(newest.params if newest is not None else {}))


def people(ids: Iterable[str]) -> dict[str, str]:
    """Names of some people, by id."""
    wanted = list(ids)
    if not wanted:
        return {}
    rows = db.session.execute(select(User.id, User.name, User.email).where(User.id.in_(wanted)))
    return {row[0]: row[1] or row[2] for row in rows}


def repeats(actor: Actor, run: Run) -> list[Run]:
    """The runs that repeat one, newest first."""
    mine = select(Run).where(Run.of_id == run.id, Run.workspace_id == actor.workspace_id)
    return list(db.session.scalars(mine.order_by(Run.id.desc()).limit(limits.PAGE_LIMIT_DEFAULT)))


def code(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The same by program: (title, text)."""
    url = f"{snippets.origin()}/scenarios/{data['scenario_id']}"
    here = f"{url}/runs/{data['id']}"
    ask: dict[str, Any] = {"wait": "true", **({"params": data["params"]} if data["params"] else {})}
    made = [("Run it as here, and wait for its end", snippets.curl("POST", f"{url}/run", ask))]
    if data["finished_at"] is None:
        made += [
            ("Follow the log", snippets.curl("GET", f"{here}/logs?follow=true", more="-N")),
            ("Cancel it", snippets.curl("DELETE", here)),
        ]
    else:
        then = 'run = answer.json()\nprint(run["status"], run["exit_code"])'
        made += [
            ("The log as a text", snippets.curl("GET", f"{here}/logs", more="-o run.log")),
            ("The same version again", snippets.python("POST", f"{here}/rerun", {"wait": True}, then=then)),
        ]
    return made


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
        "who": people([run.created_by] if run.created_by else []).get(run.created_by or "", ""),
        "of": db.session.get(Run, run.of_id) if run.of_id else None,
        "repeats": repeats(actor, run),
        "params": scenarios_forms.padded(scenarios_forms.rows_of(run.params)),
        "lines": around(run.id, at) if at else tail(run.id),
        "at": at,
        "found": search(run.id, q) if q else None,
        "code": code(data),
    }
    return Response(render_template(PAGE, **context), mimetype="text/html")


def _state(data: dict[str, Any]) -> dict[str, Any]:
    error = data["error"]
    return {
        "data": data,
        "open": data["status"] in ("queued", "running"),
        "charts": charts(data["usage"]),
        "advice": ADVICE.get(error["code"], "") if error else "",
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
        return Response(render_block(PAGE, "hits", data=data, found=search(run.id, q)))
    if "q" in request.args:
        return Response(render_block(PAGE, "hits", data=data, found=None))
    lines = piece(run.id, query.first, query.most) if query.first else tail(run.id)
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
    from webapp.scenarios.views.runs import Followed  # which declares the routes around this page

    runs.get(actor, scenario_id, run_id)
    return log_events.follow(Followed(run_id), query.after)


# --- Asking for one ---------------------------------------------------------------------------------------------


def _params() -> dict[str, str]:
    params, faults = scenarios_forms.variables(
        scenarios_forms.rows(form_values(request.form), "params"), "params"
    )
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

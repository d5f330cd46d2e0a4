"""The pages of runs: start a run, follow its log, and read it afterwards. For browsers only; API clients use
/scenarios/{id}/run.

The pages of scenarios share what is shown of runs: the latest ones, the next scheduled times, positions of errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo

from croniter import CroniterError
from flask import Blueprint, Response, render_template, request, url_for
from pydantic import Field
from sqlalchemy import func, select

from webapp import clock, limits
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.access.models import User
from webapp.connections.models import Secret
from webapp.errors import ApiError, validation_error
from webapp.extensions import db
from webapp.scenarios import forms
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.services import environment_variables, requirements, run_completion, runs, schedules
from webapp.web import events, snippets
from webapp.web.forms.page_form import Control, FormSpec, PageForm
from webapp.web.inputs import Input, Query, form_values
from webapp.web.responses import render_block, see_other
from webapp.web.routing import route
from webapp.work import log_lines
from webapp.work.log_lines import LogLines
from webapp.work.models import END_STATES

SPARK_WIDTH, SPARK_HEIGHT = 96, 20
_BAR: Final = 6  # units from one bar to the next
ZONES: Final = (
    "UTC Europe/London Europe/Berlin Europe/Paris Europe/Madrid Europe/Athens Africa/Cairo Africa/Johannesburg "
    "Asia/Dubai Asia/Kolkata Asia/Singapore Asia/Shanghai Asia/Tokyo Australia/Sydney Pacific/Auckland "
    "America/Sao_Paulo America/New_York America/Chicago America/Denver America/Los_Angeles"
).split()
"""Offered first; every name of the IANA database is taken."""


@dataclass(frozen=True, slots=True)
class LastRuns:
    """The last runs of one scenario: the newest one, and how long those took, oldest first."""

    id: str
    status: str
    at: datetime
    spark: list[dict[str, Any]]


def last_runs(actor: Actor, ids: Sequence[str]) -> dict[str, LastRuns]:
    """Return the last runs of some scenarios of the actor's workspace, by scenario."""
    require_scope(actor, "read")
    if not ids:
        return {}
    place = func.row_number().over(partition_by=Run.scenario_id, order_by=Run.id.desc()).label("place")
    inner = (
        select(Run.id, place)
        .where(Run.scenario_id.in_(ids), Run.workspace_id == actor.workspace_id)
        .subquery()
    )
    statement = (
        select(Run.id, Run.scenario_id, Run.status, Run.created_at, Run.started_at, Run.finished_at)
        .join(inner, inner.c.id == Run.id)
        .where(inner.c.place <= limits.SPARK_RUNS)
        .order_by(Run.id.desc())
    )
    found: dict[str, list[Any]] = {}
    for row in db.session.execute(statement):
        found.setdefault(row.scenario_id, []).append(row)
    return {
        key: LastRuns(
            rows[0].id,
            rows[0].status,
            rows[0].created_at,
            duration_bars([_duration(row) for row in reversed(rows)]),
        )
        for key, rows in found.items()
    }


def _duration(row: Any) -> tuple[str, float | None]:
    if row.started_at is None or row.finished_at is None:
        return row.status, None
    return row.status, max(0.0, (row.finished_at - row.started_at).total_seconds())


def duration_bars(runs: Iterable[tuple[str, float | None]]) -> list[dict[str, Any]]:
    """Return bars for the durations of runs, oldest first: `{x, y, height, status, seconds}` in a box of SPARK_WIDTH by
    SPARK_HEIGHT. Unfinished runs have no bar."""
    ended = [(status, seconds) for status, seconds in runs if seconds is not None and status in END_STATES]
    ended = ended[-(SPARK_WIDTH // _BAR) :]
    maximum = max((seconds for _, seconds in ended), default=0.0) or 1.0
    bars = []
    for index, (status, seconds) in enumerate(ended):
        height = max(2.0, round(seconds / maximum * SPARK_HEIGHT, 1))
        bars.append(
            {
                "x": index * _BAR,
                "y": round(SPARK_HEIGHT - height, 1),
                "height": height,
                "status": status,
                "seconds": seconds,
            }
        )
    return bars


# --- A program and its check results ----------------------------------------------------------------------------

_LINE: Final = re.compile(r"(?i)\bline (\d+)\b")


def add_source_lines(found: Iterable[Mapping[str, Any]], code: str) -> list[dict[str, Any]]:
    """Return the check results of a program with their lines: `{path, code, message, hint, line, text}`."""
    lines = code.split("\n")
    results = []
    for item in found:
        line = None
        if item.get("position"):
            line = code.count("\n", 0, max(0, int(item["position"]) - 1)) + 1
        elif item["path"] == "code" and (match := _LINE.search(item["message"])):
            line = int(match[1])
        line = line if line and line <= len(lines) else None
        results.append({"hint": None, **item, "line": line, "text": lines[line - 1].strip() if line else ""})
    return results


def package_table(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the packages of a version: its requirements, their dependencies, and the common packages."""
    locked = data["lock"]["packages"] if data["lock"] else {}
    common = requirements.packages_in(requirements.common_lock())
    declared = {
        requirements.normalized_name(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0])
        for requirement in data["requirements"]
    }
    return {
        "asked": data["requirements"],
        "own": {name: version for name, version in locked.items() if name in declared},
        "along": {
            name: version for name, version in locked.items() if name not in declared and name not in common
        },
        "common": {
            name: (locked or common).get(requirements.normalized_name(name), "")
            for name in requirements.COMMON
        },
    }


def difference_context(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a difference for display, without the common packages, which are part of every lock."""
    common = requirements.packages_in(requirements.common_lock())
    packages = {
        package: change
        for package, change in found["packages"].items()
        if None not in change.values() or common.get(package, "") not in change.values()
    }
    return {"name": name, "packages": packages, "lines": parse_diff(found["code"])}


def parse_diff(text: str) -> list[dict[str, Any]]:
    """Return the lines of a unified difference: `{kind: head|add|del|same, old, new, text}`, with their numbers."""
    lines: list[dict[str, Any]] = []
    old = new = 0
    for line in text.split("\n")[2:]:
        match = re.match(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@", line)
        if match:
            old, new = int(match[1]), int(match[2])
            lines.append({"kind": "head", "old": None, "new": None, "text": line})
        elif line.startswith("+"):
            lines.append({"kind": "add", "old": None, "new": new, "text": line[1:]})
            new += 1
        elif line.startswith("-"):
            lines.append({"kind": "del", "old": old, "new": None, "text": line[1:]})
            old += 1
        elif line.startswith(" "):
            lines.append({"kind": "same", "old": old, "new": new, "text": line[1:]})
            old, new = old + 1, new + 1
    return lines


# --- Settings ---------------------------------------------------------------------------------------------------


def next_times(schedule: Mapping[str, Any] | None, many: int = 3) -> list[dict[str, Any]]:
    """Return the next due times of a schedule, enabled or not: `{at, text}`, the text in its own time zone; [] for a
    schedule that cannot be parsed."""
    if not schedule or not schedule.get("cron"):
        return []
    try:
        zone = ZoneInfo(schedule["timezone"])
        moment, found = clock.now(), []
        for _ in range(many):
            moment = schedules.next_due(schedule["cron"], zone, moment)
            found.append({"at": moment, "text": f"{moment.astimezone(zone):%A, %-d %B %Y, %H:%M}"})
    except (CroniterError, ValueError, KeyError, OSError, IndexError):
        return []
    return found


def secret_names(actor: Actor, scenario: Scenario | None) -> list[str]:
    """Return the secrets that can be granted to a program: all of the workspace if the user may grant them, else those
    that it already has."""
    names = {*scenario.secrets, *scenario.writable_secrets} if scenario is not None else set()
    if actor.can("secrets"):
        statement = select(Secret.name).where(
            Secret.workspace_id == actor.workspace_id, Secret.name.is_not(None)
        )
        names |= {name for name in db.session.scalars(statement) if name}
    return sorted(names)


# --- API examples -----------------------------------------------------------------------------------------------


def scenario_snippets(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return examples that run a scenario through the API: (title, text)."""
    url = f"{snippets.origin()}/scenarios/{data['id']}"
    ask = {"wait": "true", "params": {"CUSTOMERS": "20"}}
    then = 'run = answer.json()\nprint(run["status"], run["exit_code"])\nraise SystemExit(run["status"] != "completed")'
    fails = "| python3 -c 'import json, sys; run = json.load(sys.stdin); "
    fails += 'print(run["run_id"], run["status"]); sys.exit(run["status"] != "completed")\''
    curl = f"{snippets.curl('POST', f'{url}/run', ask)} \\\n  {fails}"
    return [
        ("In a pipeline: run it, wait up to 5 minutes, fail when it fails", curl),
        ("Python", snippets.python("POST", f"{url}/run", ask, then=then)),
    ]


WIDTH, HEIGHT = 300, 40
# --- Pages --------------------------------------------------------------------------------------------------

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "program_failed": "See the last lines of the log for the error.",
        "time_limit": "Raise the time limit under Settings, or generate fewer rows per run.",
        "memory_limit": "Process rows in batches instead of loading all of them into memory.",
        "process_limit": "Start fewer parallel processes or threads.",
        "disk_limit": "Write smaller files, and remove temporary files.",
        "cpu_limit": "Check for an infinite loop, or split the work into several runs.",
        "log_limit": "Print less, for example one line for every hundred rows. Write data to an output file.",
        "uploads_failed": "The file storage did not respond. Run again, and contact the operator if it happens again.",
        "outputs_failed": "Write fewer and smaller output files with plain names, then run again.",
        "environment_failed": "The log names the package that could not be installed. Save the program to try again.",
        "secret_missing": "Create the secret under Settings, Secrets, or remove it from the scenario's settings.",
        "maker_missing": "Someone with permission to run the scenario must save it again or start the run.",
        "program_missing": "Run the newest version instead.",
        "sandbox_missing": "The operator can find the reason on the Status page and in the service's log.",
        "worker_stopped": "Check what the program has already done, then run it again.",
        "worker_lost": "Check what the program has already done, then run it again.",
        "internal_error": "Run again. If it happens again, send the operator the ID of the run.",
    }
)


# --- The log ----------------------------------------------------------------------------------------------------

Line = tuple[int, str]


def without_escape_codes(line: str) -> str:
    """Return a line without colours and other terminal commands."""
    return log_lines.CONTROL_SEQUENCES.sub("", line)


def _visible(line: str) -> str:
    text = without_escape_codes(line)
    if len(text) <= limits.LOG_LINE_CHARS:
        return text
    return f"{text[: limits.LOG_LINE_CHARS]} … and {len(text) - limits.LOG_LINE_CHARS:,} characters more"


def last_log_lines(run_id: str) -> list[Line]:
    """Return the last lines of a log, as many as a page first shows."""
    found: list[Line] = []
    size = 0
    for number, line in reversed(run_completion.last_lines(run_id, limits.LOG_TAIL_LINES)):
        text = _visible(line)
        size += len(text)
        if found and size > limits.LOG_TAIL_CHARS:
            break
        found.append((number, text))
    return found[::-1]


def log_section(run_id: str, first: int, limit: int = limits.LOG_PIECE_LINES) -> list[Line]:
    """Return up to `limit` lines of a log, starting at a line number."""
    found: list[Line] = []
    after, size = max(0, first - 1), 0
    while len(found) < limit and (pieces := run_completion.read_chunks(run_id, after)):
        for item in pieces:
            for number, line in enumerate(item.lines, item.first):
                text = _visible(line)
                size += len(text)
                if len(found) >= limit or (found and size > limits.LOG_PIECE_CHARS):
                    return found
                found.append((number, text))
        after = pieces[-1].last
    return found


def lines_around(run_id: str, number: int) -> list[Line]:
    """Return the lines before and after a line, as many as a page first shows."""
    found = log_section(run_id, max(1, number - limits.LOG_TAIL_LINES // 4), limits.LOG_TAIL_LINES)
    size, lines = 0, []
    for line in found:
        size += len(line[1])
        if size > limits.LOG_TAIL_CHARS and line[0] > number:
            break
        lines.append(line)
    return lines


def search_log(run_id: str, text: str) -> dict[str, Any]:
    """Return the lines of a log that contain a text, ignoring case: `{q, total, hits}`, at most LOG_HITS hits."""
    folded = text.casefold()
    hits: list[Line] = []
    total = after = 0
    while pieces := run_completion.read_chunks(run_id, after):
        for item in pieces:
            for number, line in enumerate(item.lines, item.first):
                visible = without_escape_codes(line)
                position = visible.casefold().find(folded)
                if position < 0:
                    continue
                total += 1
                if len(hits) < limits.LOG_HITS:
                    hits.append((number, _excerpt(visible, position)))
        after = pieces[-1].last
    return {"q": text, "total": total, "hits": hits}


def _excerpt(line: str, position: int) -> str:
    """Return a long line shortened to an excerpt around a position."""
    if len(line) <= limits.LOG_HIT_CHARS:
        return line
    start = max(0, position - limits.LOG_HIT_CHARS // 4)
    end = start + limits.LOG_HIT_CHARS
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"


# --- Resources --------------------------------------------------------------------------------------------------


def charts(points: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """Return charts of memory and processor time: `[{name, most, line, area, seconds}]`; [] with too few points."""
    steps = [(float(seconds), float(memory), float(cpu)) for seconds, memory, cpu in points]
    busy = [
        (after[0], max(0.0, (after[2] - before[2]) / 10 / (after[0] - before[0])))
        for before, after in pairwise(steps)
        if after[0] > before[0]
    ]
    memory = _chart("memory", [(at, value) for at, value, _ in steps])
    percent = _chart("processor", busy)
    return [item for item in (memory, percent) if item]


def _chart(name: str, points: Sequence[tuple[float, float]]) -> dict[str, Any] | None:
    if len(points) < 2 or points[-1][0] <= 0:
        return None
    last, maximum = points[-1][0], max(value for _, value in points)
    scale = maximum or 1.0
    spots = [
        f"{at / last * WIDTH:.1f},{HEIGHT - 1 - value / scale * (HEIGHT - 3):.1f}" for at, value in points
    ]
    line = "M" + " L".join(spots)
    start = spots[0].partition(",")[0]
    area = f"{line} L{WIDTH},{HEIGHT} L{start},{HEIGHT} Z"
    return {"name": name, "most": maximum, "line": line, "area": area, "seconds": last}


# --- Next to the run --------------------------------------------------------------------------------------------


def list_context(items: Iterable[Run]) -> dict[str, Any]:
    """Return the names of the scenarios and users of some runs, and bars for their durations."""
    found = list(items)
    ids = {run.scenario_id for run in found}
    rows = db.session.execute(select(Scenario.id, Scenario.name).where(Scenario.id.in_(ids))) if ids else ()
    durations = [
        (run.status, (run.finished_at - run.started_at).total_seconds())
        if run.started_at and run.finished_at
        else (run.status, None)
        for run in reversed(found)
    ]
    return {
        "names": {row[0]: row[1] for row in rows},
        "people": user_names({run.created_by for run in found if run.created_by}),
        "spark": duration_bars(durations),
    }


def params_rows(items: Sequence[Run]) -> forms.Rows:
    """Return the parameters of the newest of some runs, as rows of a form."""
    newest = max(items, key=lambda item: item.id, default=None)
    return forms.pad_rows(forms.variables_to_rows(newest.params if newest is not None else {}))


def user_names(ids: Iterable[str]) -> dict[str, str]:
    """Return the names of some users, by id."""
    user_ids = list(ids)
    if not user_ids:
        return {}
    rows = db.session.execute(select(User.id, User.name, User.email).where(User.id.in_(user_ids)))
    return {row[0]: row[1] or row[2] for row in rows}


def repeats(actor: Actor, run: Run) -> list[Run]:
    """Return the runs that repeat a run, newest first."""
    statement = select(Run).where(Run.of_id == run.id, Run.workspace_id == actor.workspace_id)
    return list(db.session.scalars(statement.order_by(Run.id.desc()).limit(limits.PAGE_LIMIT_DEFAULT)))


def run_snippets(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return examples for the API: (title, text)."""
    url = f"{snippets.origin()}/scenarios/{data['scenario_id']}"
    run_url = f"{url}/runs/{data['id']}"
    ask: dict[str, Any] = {"wait": "true", **({"params": data["params"]} if data["params"] else {})}
    examples = [
        (
            "Run with these parameters, and wait until it has finished",
            snippets.curl("POST", f"{url}/run", ask),
        )
    ]
    if data["finished_at"] is None:
        examples += [
            ("Follow the log", snippets.curl("GET", f"{run_url}/logs?follow=true", more="-N")),
            ("Cancel it", snippets.curl("DELETE", run_url)),
        ]
    else:
        then = 'run = answer.json()\nprint(run["status"], run["exit_code"])'
        examples += [
            ("The log as a text", snippets.curl("GET", f"{run_url}/logs", more="-o run.log")),
            (
                "The same version again",
                snippets.python("POST", f"{run_url}/rerun", {"wait": True}, then=then),
            ),
        ]
    return examples


bp = Blueprint("run_pages", __name__)
PAGE: Final = "runs/show.html"
ONE: Final = "/scenarios/<scenario_id>/runs/<run_id>"
_MAX_LINE: Final = 10**12


def page(actor: Actor, run: Run) -> Response:
    """Render the page of a run; `?line=` shows the log around a line, `?q=` the lines that contain a text."""
    data = runs.as_json(run)
    scenario = db.session.get(Scenario, run.scenario_id)
    line = request.args.get("line", "")
    at = int(line) if line.isdecimal() and len(line) <= len(str(_MAX_LINE)) else 0
    q = request.args.get("q", "").strip()[: limits.MAX_QUERY_TEXT]
    context = {
        **_state_context(data),
        "scenario": scenario,
        "newest": scenario.version if scenario is not None else 0,
        "there": scenario is not None and scenario.deleted_at is None,
        "who": user_names([run.created_by] if run.created_by else []).get(run.created_by or "", ""),
        "of": db.session.get(Run, run.of_id) if run.of_id else None,
        "repeats": repeats(actor, run),
        "params": forms.pad_rows(forms.variables_to_rows(run.params)),
        "form": version_form(run, scenario) if scenario is not None else None,
        "lines": lines_around(run.id, at) if at else last_log_lines(run.id),
        "at": at,
        "found": search_log(run.id, q) if q else None,
        "code": run_snippets(data),
    }
    return Response(render_template(PAGE, **context), mimetype="text/html")


def _state_context(data: dict[str, Any]) -> dict[str, Any]:
    error = data["error"]
    return {
        "data": data,
        "open": data["status"] in ("queued", "running"),
        "charts": charts(data["usage"]),
        "advice": ADVICE.get(error["code"], "") if error else "",
    }


@route(bp, f"{ONE}/state", scope="read", hidden=True, allows_api_keys=False)
def state(actor: Actor, scenario_id: str, run_id: str) -> Response:
    """Return the state of a run for a page that follows it."""
    data = runs.as_json(runs.get(actor, scenario_id, run_id))
    return Response(render_block(PAGE, "work", **_state_context(data)))


class LogQuery(Query):
    """Which lines: from a number on, or the last ones; or those that contain a text."""

    first: Annotated[int, Field(ge=1, le=_MAX_LINE)] | None = None
    most: Annotated[int, Field(ge=1, le=limits.LOG_PIECE_LINES)] = limits.LOG_PIECE_LINES
    q: Annotated[str, Field(max_length=limits.MAX_QUERY_TEXT)] = ""


@route(bp, f"{ONE}/log", scope="read", query=LogQuery, hidden=True, allows_api_keys=False)
def log(actor: Actor, scenario_id: str, run_id: str, query: LogQuery) -> Response:
    """Lines of a log as a part of a page."""
    run = runs.get(actor, scenario_id, run_id)
    data = runs.as_json(run)
    q = query.q.strip()
    if q:
        return Response(render_block(PAGE, "hits", data=data, found=search_log(run.id, q)))
    if "q" in request.args:
        return Response(render_block(PAGE, "hits", data=data, found=None))
    lines = log_section(run.id, query.first, query.most) if query.first else last_log_lines(run.id)
    return Response(render_block(PAGE, "lines", data=data, lines=lines, at=0))


class AfterQuery(Query):
    """The number of the last line that the client already has."""

    after: Annotated[int, Field(ge=0, le=_MAX_LINE)] = 0


@route(
    bp,
    f"{ONE}/log/follow",
    scope="read",
    query=AfterQuery,
    hidden=True,
    allows_api_keys=False,
    errors=("unavailable",),
)
def follow(actor: Actor, scenario_id: str, run_id: str, query: AfterQuery) -> Response:
    """Follow a log from a line on, as server-sent events."""
    runs.get(actor, scenario_id, run_id)
    return events.follow_log(FollowedRun(run_id), query.after)


# --- Starting a run ---------------------------------------------------------------------------------------------


class RunForm(Input):
    """Options of the run form in addition to its parameters."""

    version: Literal["same", "newest"] = "newest"


RUN: Final = FormSpec(RunForm, {"version": Control("Version")})


def version_form(run: Run, scenario: Scenario, error: ApiError | None = None) -> PageForm:
    """Return the form for choosing between a run's version and the newest one."""
    choices = [("newest", f"{scenario.version}, the newest"), ("same", f"{run.scenario_version}, as here")]
    sent = request.form if request.method == "POST" else None
    return RUN.render(
        {"version": "newest"}, sent=sent, error=error, id="again-", choices={"version": choices}
    )


def _show_start_form(actor: Actor, error: ApiError, scenario_id: str, run_id: str = "") -> Response:
    """Render the submitted form of a run with its errors."""
    if error.code in ("not_found", "forbidden"):
        raise error
    scenario = tenancy.get(actor, Scenario, scenario_id, "run")
    run = runs.get(actor, scenario_id, run_id, "run") if run_id else None
    faults = error.details.get("fields", ())
    rows = forms.submitted_rows(form_values(request.form), "params")
    faulty = {fault["path"]: fault["message"] for fault in faults}
    controls = forms.variable_controls(rows, "params", "parameter", faulty, "params")
    places = [
        (row["name"].id, row["name"].label.text, row["name"].errors[0])
        for row in controls
        if row["name"].errors
    ]
    placed_texts = {text for _, _, text in places}
    context = {
        "scenario": scenario,
        "run": run,
        "form": version_form(run, scenario, error)
        if run and run.scenario_version < scenario.version
        else None,
        "action": url_for(request.endpoint or "", **(request.view_args or {})),
        "params": forms.pad_rows(rows),
        "bad": faulty,
        "places": places,
        "texts": [text for text in faulty.values() if text not in placed_texts]
        if faults
        else [error.message],
    }
    return Response(render_template("runs/start.html", **context), mimetype="text/html")


def submitted_params(scenario: Scenario) -> dict[str, str]:
    """Return the parameters of a form. Error: validation_error with all of their faults."""
    rows = forms.submitted_rows(form_values(request.form), "params")
    params, faults = forms.rows_to_variables(rows, "params")
    faults += environment_variables.env_faults(params, "params", scenario.secrets)
    if faults:
        raise validation_error(faults)
    return params


@bp.app_context_processor
def helpers() -> dict[str, Any]:
    """Return the functions that templates of scenarios and runs use."""
    return {"variable_controls": forms.variable_controls}


@route(
    bp, "/scenarios/<scenario_id>/start", ["POST"], scope="run", hidden=True, allows_api_keys=False,
    on_fault=_show_start_form
)  # fmt: skip
def start(actor: Actor, scenario_id: str) -> Response:
    """Run a scenario's newest version with the parameters of a form."""
    scenario = tenancy.get(actor, Scenario, scenario_id, "run")
    return _redirect(runs.queue(actor, scenario, submitted_params(scenario)))


@route(
    bp, f"{ONE}/again", ["POST"], scope="run", hidden=True, allows_api_keys=False, on_fault=_show_start_form
)
def again(actor: Actor, scenario_id: str, run_id: str) -> Response:
    """Run it once more with other parameters, the same version or the newest."""
    run = runs.get(actor, scenario_id, run_id, "run")
    version: Literal["same", "newest"] = "same" if request.form.get("version") == "same" else "newest"
    scenario = tenancy.get(actor, Scenario, scenario_id, "run")
    return _redirect(runs.rerun(actor, run, version=version, params=submitted_params(scenario)))


def _redirect(run: Run) -> Response:
    return see_other(url_for("runs.show", scenario_id=run.scenario_id, run_id=run.id))


class FollowedRun:
    """A run as `log_hub` reads it."""

    def __init__(self, run_id: str) -> None:
        self.key = run_id
        self.channel = run_completion.channel(run_id)

    def read_lines(self, after: int) -> Sequence[LogLines]:
        """The next lines above a number."""
        return run_completion.read_chunks(self.key, after)

    def read_state(self) -> runs.RunState | None:
        """Its state."""
        return runs.state(self.key)

    def last_line_number(self, state: events.JobState) -> int:
        """All lines up to this one are written."""
        return state.line_count if isinstance(state, runs.RunState) else 0

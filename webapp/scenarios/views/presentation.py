"""Additional data for the pages of scenarios: latest runs, positions of errors, next scheduled times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from croniter import CroniterError
from sqlalchemy import func, select

from webapp import clock, limits
from webapp.access.actors import Actor, require
from webapp.connections.models import Secret
from webapp.extensions import db
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.services import requirement_text, requirements, schedules
from webapp.web import snippets
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
class Last:
    """The last runs of one scenario: the newest one, and how long those took, oldest first."""

    id: str
    status: str
    at: datetime
    spark: list[dict[str, Any]]


def last_runs(actor: Actor, ids: Sequence[str]) -> dict[str, Last]:
    """The last runs of some scenarios of the actor's workspace, by scenario."""
    require(actor, "read")
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
        one: Last(
            rows[0].id, rows[0].status, rows[0].created_at, spark([_took(row) for row in reversed(rows)])
        )
        for one, rows in found.items()
    }


def _took(row: Any) -> tuple[str, float | None]:
    if row.started_at is None or row.finished_at is None:
        return row.status, None
    return row.status, max(0.0, (row.finished_at - row.started_at).total_seconds())


def spark(runs: Iterable[tuple[str, float | None]]) -> list[dict[str, Any]]:
    """Return bars for the durations of runs, oldest first: `{x, y, height, status, seconds}` in a box of SPARK_WIDTH by
    SPARK_HEIGHT. Unfinished runs have no bar."""
    ended = [(status, seconds) for status, seconds in runs if seconds is not None and status in END_STATES]
    ended = ended[-(SPARK_WIDTH // _BAR) :]
    most = max((seconds for _, seconds in ended), default=0.0) or 1.0
    made = []
    for place, (status, seconds) in enumerate(ended):
        height = max(2.0, round(seconds / most * SPARK_HEIGHT, 1))
        made.append(
            {
                "x": place * _BAR,
                "y": round(SPARK_HEIGHT - height, 1),
                "height": height,
                "status": status,
                "seconds": seconds,
            }
        )
    return made


# --- A program and its check results ----------------------------------------------------------------------------

_LINE: Final = re.compile(r"(?i)\bline (\d+)\b")


def placed(found: Iterable[Mapping[str, Any]], code: str) -> list[dict[str, Any]]:
    """Return the check results of a program with their lines: `{path, code, message, hint, line, text}`."""
    lines = code.split("\n")
    made = []
    for one in found:
        line = None
        if one.get("position"):
            line = code.count("\n", 0, max(0, int(one["position"]) - 1)) + 1
        elif one["path"] == "code" and (told := _LINE.search(one["message"])):
            line = int(told[1])
        line = line if line and line <= len(lines) else None
        made.append({"hint": None, **one, "line": line, "text": lines[line - 1].strip() if line else ""})
    return made


def required(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the packages of a version: its requirements, their dependencies, and the common packages."""
    locked = data["lock"]["packages"] if data["lock"] else {}
    common = requirements.packages(requirements.common_lock())
    named = {
        requirement_text.normal(re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0])
        for one in data["requirements"]
    }
    return {
        "asked": data["requirements"],
        "own": {name: version for name, version in locked.items() if name in named},
        "along": {
            name: version for name, version in locked.items() if name not in named and name not in common
        },
        "common": {
            name: (locked or common).get(requirement_text.normal(name), "") for name in requirements.COMMON
        },
    }


def of_difference(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a difference for display, without the common packages, which are part of every lock."""
    common = requirements.packages(requirements.common_lock())
    told = {
        package: change
        for package, change in found["packages"].items()
        if None not in change.values() or common.get(package, "") not in change.values()
    }
    return {"name": name, "packages": told, "lines": diff_lines(found["code"])}


def diff_lines(text: str) -> list[dict[str, Any]]:
    """The lines of a unified difference: `{kind: head|add|del|same, old, new, text}`, with their numbers."""
    made: list[dict[str, Any]] = []
    old = new = 0
    for line in text.split("\n")[2:]:
        told = re.match(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@", line)
        if told:
            old, new = int(told[1]), int(told[2])
            made.append({"kind": "head", "old": None, "new": None, "text": line})
        elif line.startswith("+"):
            made.append({"kind": "add", "old": None, "new": new, "text": line[1:]})
            new += 1
        elif line.startswith("-"):
            made.append({"kind": "del", "old": old, "new": None, "text": line[1:]})
            old += 1
        elif line.startswith(" "):
            made.append({"kind": "same", "old": old, "new": new, "text": line[1:]})
            old, new = old + 1, new + 1
    return made


# --- Settings ---------------------------------------------------------------------------------------------------


def next_times(schedule: Mapping[str, Any] | None, many: int = 3) -> list[dict[str, Any]]:
    """When a schedule, on or off, would be due next: `{at, text}`, the text in its own zone; [] for one that cannot be
    read."""
    if not schedule or not schedule.get("cron"):
        return []
    try:
        zone = ZoneInfo(schedule["timezone"])
        moment, found = clock.now(), []
        for _ in range(many):
            moment = schedules.following(schedule["cron"], zone, moment)
            found.append({"at": moment, "text": f"{moment.astimezone(zone):%A, %-d %B %Y, %H:%M}"})
    except (CroniterError, ValueError, KeyError, OSError, IndexError):
        return []
    return found


def secret_names(actor: Actor, scenario: Scenario | None) -> list[str]:
    """The secrets that could be given to a program: all of the workspace for those who may give them, else those that
    it has."""
    held = {*scenario.secrets, *scenario.writable_secrets} if scenario is not None else set()
    if actor.can("secrets"):
        mine = select(Secret.name).where(Secret.workspace_id == actor.workspace_id, Secret.name.is_not(None))
        held |= {name for name in db.session.scalars(mine) if name}
    return sorted(held)


# --- The same by program ----------------------------------------------------------------------------------------


def code(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Running a scenario by program, as an integration would: (title, text)."""
    url = f"{snippets.origin()}/scenarios/{data['id']}"
    ask = {"wait": "true", "params": {"CUSTOMERS": "20"}}
    then = 'run = answer.json()\nprint(run["status"], run["exit_code"])\nraise SystemExit(run["status"] != "completed")'
    fails = "| python3 -c 'import json, sys; run = json.load(sys.stdin); "
    fails += 'print(run["run_id"], run["status"]); sys.exit(run["status"] != "completed")\''
    return [
        ("In a pipeline: run it, wait up to 5 minutes, fail when it fails", _curl_run(url, ask, fails)),
        ("Python", snippets.python("POST", f"{url}/run", ask, then=then)),
    ]


def _curl_run(url: str, ask: Mapping[str, Any], more: str) -> str:
    return f"{snippets.curl('POST', f'{url}/run', ask)} \\\n  {more}"

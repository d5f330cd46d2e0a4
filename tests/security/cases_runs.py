"""Who may do what with runs of scenarios."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp import clock
from webapp.extensions import db
from webapp.scenarios.models import Run, RunChunk, Scenario, ScenarioVersion

SETTINGS = {"timeout_seconds": 60, "network": "api", "env": {}, "secrets": [], "writable_secrets": []}


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    place = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
    scenario = Scenario(name="Run me", created_by=cast.edith.user_id, **SETTINGS, **place)
    db.session.add(scenario)
    db.session.flush()
    spec = {"name": "Run me", "description": "", "code": "print(1)", "warnings": []}
    pins = {"requirements": [], "lock": "", "environment": ""}
    db.session.add(ScenarioVersion(scenario_id=scenario.id, number=1, spec=spec, pins=pins))
    result = []
    for status in ("queued", "completed"):
        run = Run(
            scenario_id=scenario.id,
            scenario_version=1,
            trigger="api",
            settings=SETTINGS,
            status=status,
            **place,
        )
        run.closed_at = run.finished_at = clock.now() if status == "completed" else None
        db.session.add(run)
        db.session.flush()
        result.append(run.id)
    db.session.add(RunChunk(run_id=result[1], first=1, last=1, at=clock.now(), text="done"))
    db.session.commit()
    db.session.remove()
    return {"run_scenario": scenario.id, "queued_run": result[0], "ended_run": result[1]}


BASE = "/scenarios/{run_scenario}"
ENDED, QUEUED = BASE + "/runs/{ended_run}", BASE + "/runs/{queued_run}"
RULE = "/scenarios/<scenario_id>/runs/<run_id>"

CASES = [
    Case("POST", "/scenarios/<scenario_id>/run", "editor", url=f"{BASE}/run", body={}, ok=201, scope="run"),
    Case("GET", "/scenarios/<scenario_id>/runs", "viewer", url=f"{BASE}/runs", scope="read"),
    Case("GET", "/runs", "viewer", scope="read"),
    Case("GET", RULE, "viewer", url=ENDED, scope="read"),
    Case("GET", f"{RULE}/logs", "viewer", url=f"{ENDED}/logs?follow=true", scope="read"),
    Case("GET", f"{RULE}/events", "viewer", url=f"{ENDED}/events", scope="read"),
    Case("POST", f"{RULE}/rerun", "editor", url=f"{ENDED}/rerun", body={}, ok=201, scope="run"),
    Case("DELETE", RULE, "editor", url=QUEUED, scope="run"),
]

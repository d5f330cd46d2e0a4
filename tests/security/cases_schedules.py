"""Permissions of schedules."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp import clock, ids
from webapp.access import actors
from webapp.engine import ENGINE
from webapp.exports.models import Export
from webapp.extensions import db
from webapp.row_templates.services import compilation, templates
from webapp.schedules.models import Schedule


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    fields = [{"name": "id", "type": "row_number"}]
    template = templates.create(acme, name="Repeated", fields=fields)["id"]
    place = {
        "workspace_id": cast.acme,
        "project_id": cast.main,
        "team_id": cast.blue,
        "template_id": template,
    }
    pins = {
        "seed": "s", "now": None, "vocabulary": compilation.vocabulary().id, "template_id": template,
        "version": 1, "locale": None, "engine": ENGINE, "related": {},
    }  # fmt: skip
    export = Export(
        id=ids.new("exp"), template_version=1, format="csv", count=1, file_name="r.csv", status="completed",
        request={"ask": {"count": 1, "format": "csv"}}, pins=pins, finished_at=clock.now(), **place,
    )  # fmt: skip
    result = [
        Schedule(
            id=ids.new("sch"), name="Nightly", kind="export", request={"count": 1, "format": "csv", "seed": "s"},
            cron="0 2 * * *", timezone="UTC", enabled=False, **place,
        )
        for _ in range(2)
    ]  # fmt: skip
    db.session.add_all([export, *result])
    db.session.commit()
    found = {
        "repeated_template": template,
        "repeated": export.id,
        "schedule": result[0].id,
        "old_schedule": result[1].id,
    }
    db.session.remove()
    return found


FORM = {"name": "Nightly", "every": "day", "at": "03:00", "timezone": "UTC"}
ONE = "/schedules/{schedule}"

CASES = [
    Case("GET", "/schedules", "viewer", scope="read"),
    Case(
        "POST",
        "/schedules",
        "editor",
        body={
            "name": "Weekly",
            "cron": "0 3 * * 1",
            "kind": "export",
            "template_id": "{repeated_template}",
            "request": {"format": "csv"},
        },
        ok=201,
        scope="generate",
    ),
    Case("PATCH", "/schedules/<schedule_id>", "editor", url=ONE, body={"name": "Daily"}, scope="generate"),
    Case("GET", "/schedules/new", "editor", person=True),
    Case("GET", "/schedules/new", "editor", url="/schedules/new?of={repeated}", person=True),
    Case(
        "POST", "/schedules/new", "editor", url="/schedules/new?of={repeated}", body=FORM, ok=303, person=True
    ),
    Case("POST", "/schedules/times", "viewer", body=FORM, person=True),
    Case("GET", "/schedules/<schedule_id>", "viewer", url=ONE, scope="read"),
    Case("POST", "/schedules/<schedule_id>", "editor", url=ONE, body=FORM, ok=303, person=True),
    Case("POST", "/schedules/<schedule_id>/switch", "editor", url=f"{ONE}/switch", ok=303, person=True),
    Case("POST", "/schedules/<schedule_id>/start", "editor", url=f"{ONE}/start", ok=201, scope="generate"),
    Case("DELETE", "/schedules/<schedule_id>", "editor", url="/schedules/{old_schedule}", scope="generate"),
]

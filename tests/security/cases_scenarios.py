"""Who may do what with scenarios."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.access import actors
from webapp.connections.services import secrets
from webapp.scenarios.services import scenarios


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    secrets.put(acme, "MATRIX_TOKEN", "hidden")
    created = scenarios.create(acme, name="Matrix", code="print(1)\n")["id"]
    for code in ("print(2)\n", "print(3)\n"):
        found = scenarios.get(acme, created, "write", lock=True)
        program = scenarios.prepare_change(acme, found, {"code": code})
        scenarios.change(acme, scenarios.get(acme, created, "write", lock=True), {"code": code}, program)
    trashed = scenarios.create(acme, name="Trashed", code="print(1)\n")["id"]
    scenarios.delete(acme, scenarios.get(acme, trashed, "write", lock=True))
    return {"scenario": created, "trashed_scenario": trashed}


ONE = "/scenarios/{scenario}"
NEW = {"name": "New", "code": "print(1)\n"}

CASES = [
    Case("GET", "/scenarios", "viewer", scope="read"),
    Case("POST", "/scenarios", "editor", body=NEW, ok=201, scope="write"),
    # Only users with permission for secrets can grant a secret.
    Case("POST", "/scenarios", "admin", body={**NEW, "secrets": ["MATRIX_TOKEN"]}, ok=201),
    Case("POST", "/scenarios", "admin", body={**NEW, "writable_secrets": ["MATRIX_TOKEN"]}, ok=201),
    Case("POST", "/scenarios/check", "editor", body={"code": "print(1)\n"}, scope="write"),
    Case("GET", "/scenarios/<scenario_id>", "viewer", url=ONE, scope="read"),
    Case("PUT", "/scenarios/<scenario_id>", "editor", url=ONE, body={"code": "print(4)\n"}, scope="write"),
    Case("PATCH", "/scenarios/<scenario_id>", "editor", url=ONE, body={"network": "none"}, scope="write"),
    Case("PATCH", "/scenarios/<scenario_id>", "admin", url=ONE, body={"secrets": ["MATRIX_TOKEN"]}),
    Case("DELETE", "/scenarios/<scenario_id>", "editor", url=ONE, scope="write"),
    Case(
        "POST",
        "/scenarios/<scenario_id>/restore",
        "editor",
        url="/scenarios/{trashed_scenario}/restore",
        scope="write",
    ),
    Case("GET", "/scenarios/<scenario_id>/versions", "viewer", url=f"{ONE}/versions", scope="read"),
    Case("GET", "/scenarios/<scenario_id>@v<int:number>", "viewer", url=f"{ONE}@v1", scope="read"),
    Case(
        "GET",
        "/scenarios/<scenario_id>@v<int:number>/diff",
        "viewer",
        url=f"{ONE}@v1/diff?to=2",
        scope="read",
    ),
    Case(
        "POST",
        "/scenarios/<scenario_id>/versions/<int:number>/restore",
        "editor",
        url=f"{ONE}/versions/1/restore",
        scope="write",
    ),
    Case(
        "POST",
        "/scenarios/<scenario_id>/refresh-requirements",
        "editor",
        url=f"{ONE}/refresh-requirements",
        scope="write",
    ),
]

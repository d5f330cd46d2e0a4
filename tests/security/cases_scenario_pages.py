"""Who may do what on the pages of scenarios and runs; the objects are those of cases_scenarios and cases_runs."""

from __future__ import annotations

from tests.security.matrix import Case

ONE, RULE = "/scenarios/{scenario}", "/scenarios/<scenario_id>"
RUN, RUN_RULE = "/scenarios/{run_scenario}/runs/{ended_run}", "/scenarios/<scenario_id>/runs/<run_id>"
NEW = {"name": "New", "code": "print(1)\n", "do": "save"}
SETTINGS = {"timeout_seconds": "60", "network": "api"}

CASES = [
    Case("GET", "/scenarios/new", "editor", person=True),
    Case("POST", "/scenarios/new", "editor", body=NEW, ok=303, person=True),
    Case("POST", f"{RULE}/edit", "editor", url=f"{ONE}/edit", body={"do": "save"}, ok=303, person=True),
    Case("POST", "/scenarios/said", "editor", body={"code": "print(1)\n"}, person=True),
    Case("GET", "/scenarios/names", "viewer", person=True),
    Case("GET", f"{RULE}/settings", "viewer", url=f"{ONE}/settings", person=True),
    Case("POST", f"{RULE}/settings", "editor", url=f"{ONE}/settings", body=SETTINGS, ok=303, person=True),
    # Only users with permission for secrets can grant a secret.
    Case(
        "POST", f"{RULE}/settings", "admin", url=f"{ONE}/settings", body={**SETTINGS, "secrets": "MATRIX_TOKEN"},
        ok=303, person=True,
    ),
    Case("POST", "/scenarios/times", "viewer", body={"cron": "0 2 * * *"}, person=True),
    Case("GET", f"{RULE}/history", "viewer", url=f"{ONE}/history", person=True),
    Case("POST", f"{RULE}/start", "editor", url="/scenarios/{run_scenario}/start", body={}, ok=303, person=True),
    Case("GET", f"{RUN_RULE}/state", "viewer", url=f"{RUN}/state", person=True),
    Case("GET", f"{RUN_RULE}/log", "viewer", url=f"{RUN}/log", person=True),
    Case("GET", f"{RUN_RULE}/log/follow", "viewer", url=f"{RUN}/log/follow?after=0", person=True),
    Case("POST", f"{RUN_RULE}/again", "editor", url=f"{RUN}/again", body={}, ok=303, person=True),
]  # fmt: skip

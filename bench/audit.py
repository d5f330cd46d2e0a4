"""Measure the cost of the audit log's hash chain: generate calls of ten rows per second with and without it.

Two applications with separate databases take turns, so that both run under the same machine load: one
unchanged, one without the triggers, the search indexes and the sealing. Prints the calls of each turn, and
the ratio of the medians of calls per second and of processor time per call, which is less affected by other
load.

python -m bench.audit [--turns N] [--seconds S]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from flask import Flask

from webapp import clock, create_app, ids, limits
from webapp.access import actors
from webapp.accounts.services import api_keys, people, workspaces
from webapp.audit.services import seals
from webapp.cli import probe, valkey
from webapp.config import Settings
from webapp.engine.data import vocab_lock
from webapp.extensions import db
from webapp.row_templates.services import vocabularies

THREADS = 8
FIELDS = [
    {"name": "id", "type": "row_number"},
    {"name": "name", "type": "full_name"},
    {"name": "mail", "type": "email"},
]
PLAIN = (
    "action_at",
    "object_type_at",
    "address_at",
    "object_id_at",
    "project_id_at",
    "user_id_at",
    "key_id_at",
)
TRIGGERS = ("audit_entries_pending", "audit_entries_fixed", "audit_entries_kept")


def application(folder: Path, redis_url: str, *, chained: bool) -> tuple[Flask, str, str]:
    """An application with a workspace, its key and a template."""
    secret = ids.new("req") * 2
    app = create_app(
        Settings(
            database_url=f"sqlite:///{folder}/bench.db",
            redis_url=redis_url,
            secret_key=secret,
            data_dir=folder,
        )
    )
    with app.app_context():
        db.create_all()
        system = actors.system_actor()
        user = people.create_user(system, "bench@example.org")
        workspace = workspaces.create_workspace(system, "Bench", plan="enterprise", owner=user)
        here = actors.system_actor(workspace.id)
        own = {"requests_per_minute": limits.ENTERPRISE_MAX.requests_per_minute}
        workspaces.change_workspace(here, {"own_limits": own})
        project = workspaces.create_project(here, "Main", team_id=workspaces.create_team(here, "All").id)
        key = api_keys.create(
            here, "bench", api_version="2026-11-21", project_id=project.id, user_id=user.id
        )[1]
        vocabularies.record_stored(vocab_lock.current_entry().id)
        db.session.remove()
        if not chained:
            with db.engine.begin() as connection:
                for name in TRIGGERS:
                    connection.exec_driver_sql(f"DROP TRIGGER {name}")
                for name in PLAIN:
                    connection.exec_driver_sql(f"DROP INDEX ix_audit_entries_{name}")
    created = app.test_client(use_cookies=False).post(
        "/templates", json={"name": "B", "fields": FIELDS}, headers={"Authorization": f"Bearer {key}"}
    )
    return app, key, created.json["id"]


def turn(app: Flask, key: str, template: str, seconds: float, *, chained: bool) -> tuple[float, float]:
    """Return calls per second over some seconds, and processor milliseconds per call. Sealing runs in the
    meantime if there is a chain."""
    done, stop = [0] * THREADS, threading.Event()

    def call(place: int) -> None:
        client = app.test_client(use_cookies=False)
        how: dict[str, Any] = {"json": {"count": 10}, "headers": {"Authorization": f"Bearer {key}"}}
        while not stop.is_set():
            answer = client.post(f"/templates/{template}/generate", **how)
            if answer.status_code == 200:
                done[place] += 1
            elif answer.status_code != 429:
                raise RuntimeError(answer.text)

    def seal() -> None:
        while not stop.wait(1.0):
            with app.app_context():
                seals.seal_all(clock.now())

    threads = [threading.Thread(target=call, args=(place,)) for place in range(THREADS)]
    threads += [threading.Thread(target=seal)] if chained else []
    began, worked = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    calls = max(1, sum(done))
    return calls / (time.perf_counter() - began), 1_000 * (time.process_time() - worked) / calls


def main() -> None:
    """Measure in turns and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    request = parser.parse_args()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        server = valkey.prepare(Path(one))
        process = subprocess.Popen(server.command, stdout=subprocess.DEVNULL)
        try:
            while not probe.redis_check(server.url)():
                time.sleep(0.05)
            both = {True: application(Path(one), server.url, chained=True)}
            both[False] = application(Path(two), server.url, chained=False)
            found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
            for number in range(request.turns):
                for chained in (True, False) if number % 2 else (False, True):
                    found[chained].append(turn(*both[chained], request.seconds, chained=chained))
                result = [
                    f"{found[item][-1][0]:,.0f} ({found[item][-1][1]:.2f} ms)" for item in (True, False)
                ]
                print(f"turn {number + 1}: {result[0]} with, {result[1]} without", flush=True)
        finally:
            process.kill()
            process.wait()
    for place, what in enumerate(("calls/s", "ms of processor time per call")):
        with_it, without = (
            statistics.median(item[place] for item in found[chained]) for chained in (True, False)
        )
        print(f"{with_it:,.2f} {what} with the chain, {without:,.2f} without: {with_it / without:.2f}")


if __name__ == "__main__":
    main()

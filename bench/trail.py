"""Measure the cost of a long audit log: verifying it, and reading a page with each kind of filter.

Writes entries to a separate database, seals them as the sweeper does, and prints how long each step takes:
the median of several, in one process and without a network.

python -m bench.trail [--entries N]
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import sqlalchemy as sa
from flask import Flask

from bench.audit import application
from webapp import clock, ids
from webapp.access.models import Workspace
from webapp.audit.models import AuditEntry
from webapp.audit.services import seals
from webapp.audit.services.seals import verify
from webapp.cli import probe, valkey
from webapp.extensions import db

ACTIONS = (
    "template.generate",
    "template.change",
    "push.create",
    "run.create",
    "session.start",
    "secret.write",
)
BATCH = 20_000
TIMES = 5


def write(workspace_id: str, entries: int) -> None:
    """Write entries of ten users and five hundred objects, a millisecond apart, because the chain rejects
    entries that are older than existing ones."""
    draw, now = random.Random(1), clock.now()
    people = [ids.new("usr") for _ in range(10)]
    objects = [ids.new("tpl") for _ in range(500)]
    for first in range(0, entries, BATCH):
        result = []
        for number in range(first, min(first + BATCH, entries)):
            action = draw.choice(ACTIONS)
            result.append(
                {
                    "id": ids.new("aud"),
                    "workspace_id": workspace_id,
                    "at": now + timedelta(milliseconds=number),
                    "action": action,
                    "object_type": action.partition(".")[0],
                    "object_id": draw.choice(objects),
                    "user_id": draw.choice(people),
                    "address": f"10.0.{draw.randrange(16)}.{draw.randrange(256)}",
                    "request_id": ids.new("req"),
                    "rows": draw.randrange(1_000_000) if action == "template.generate" else None,
                    "details": {"version": draw.randrange(1, 40), "seed": f"seed {number}"},
                }
            )
        with db.engine.begin() as connection:
            connection.execute(sa.insert(AuditEntry), result)


def median(what: Callable[[], object]) -> float:
    """Milliseconds."""
    took = []
    for _ in range(TIMES):
        began = time.perf_counter()
        what()
        took.append(1_000 * (time.perf_counter() - began))
    return statistics.median(took)


def searches(app: Flask) -> dict[str, str]:
    """Requests for a page, by their filter."""
    with app.app_context():
        middle = db.session.scalars(
            sa.select(AuditEntry).order_by(AuditEntry.at).offset(1_000).limit(1)
        ).one()
        latest = db.session.scalars(sa.select(sa.func.max(AuditEntry.at))).one()
        since = clock.to_text(latest - timedelta(minutes=5))
        found = {
            "the newest": "",
            "one action": "action=push.create",
            "part of an action": "q=secret",
            "a kind of object": "kind=template",
            "one object": f"object_id={middle.object_id}",
            "one user": f"user_id={middle.user_id}",
            "one address": f"address={middle.address}",
            "many rows of a period": f"rows_min=900000&since={since}",
            "a word in the details": "text=seed+123456",
            "a word that does not occur": "text=nowheretobefound",
        }
        db.session.remove()
    return found


def measure(app: Flask, key: str, entries: int) -> None:
    """Write, seal, verify and search; print one line each."""
    with app.app_context():
        workspace_id = db.session.scalars(sa.select(Workspace.id)).one()
        db.session.remove()
        began = time.perf_counter()
        write(workspace_id, entries)
        written = time.perf_counter()
        while seals.seal_all(clock.now()):
            pass
        print(
            f"written in {written - began:,.1f} s, sealed in {time.perf_counter() - written:,.1f} s",
            flush=True,
        )
        began = time.perf_counter()
        report = verify(workspace_id, None)
        took = time.perf_counter() - began
        assert not report.mismatches, report.mismatches[:3]
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
        print(
            f"verify: {report.entries:,} entries in {report.seals:,} seals, {took:,.1f} s; process {largest:,.0f} MB"
        )
    client, auth = app.test_client(use_cookies=False), {"Authorization": f"Bearer {key}"}
    for name, query in searches(app).items():

        def page(query: str = query) -> None:
            answer = client.get(f"/audit?limit=50&{query}", headers=auth)
            assert answer.status_code == 200, answer.text

        print(f"{name:24} {median(page):8.1f} ms", flush=True)


def main() -> None:
    """Start a Redis and a database, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    request = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = valkey.prepare(Path(folder))
        process = subprocess.Popen(server.command, stdout=subprocess.DEVNULL)
        try:
            while not probe.redis_check(server.url)():
                time.sleep(0.05)
            app, key, _ = application(Path(folder), server.url, chained=True)
            measure(app, key, request.entries)
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()

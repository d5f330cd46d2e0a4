"""Measure the response time and size of pages with a full database, compared with the same pages with an
almost empty one.

.venv/bin/python bench/pages.py [--rounds 5] [--database postgresql://...]

Every page is requested with one object of each kind in the database, then again with 1,000 templates, 200
connections, 10,000 runs, 1,000,000 rows in a push's ledger, and a matching number of related objects. Prints
the slowest pages (milliseconds of the median round, full and empty, and their ratio), the largest ones (kB of
compressed HTML), and how many exceed 100 ms and 60 kB. Requests are handled in this process: the figures
include the database and the embedded Valkey, but not the network and HTTP parsing. An empty database is
created in a temporary folder; `--database` names an existing empty one.
"""

from __future__ import annotations

import argparse
import gzip
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import sqlalchemy as sa
from flask import Flask

from tests.cast import Browser, gather
from tests.conftest import close_app, settings_for
from tests.promises.world import World
from webapp import clock, create_app, ids, models
from webapp.audit.services import seals
from webapp.cli import probe, valkey
from webapp.documentation import pages as documents
from webapp.extensions import db

MOST_MS: Final = 100
MOST_BYTES: Final = 60_000
BATCH: Final = 10_000
# Total numbers of objects. Objects that belong to another object are distributed evenly.
FULL: Final = (
    (models.Template, "tpl", 1_000),
    (models.TemplateVersion, None, 3_000),
    (models.Dataset, "dst", 200),
    (models.DatasetVersion, None, 400),
    (models.Connection, "con", 200),
    (models.Scenario, "scn", 100),
    (models.ScenarioVersion, None, 300),
    (models.Run, "run", 10_000),
    (models.Export, "exp", 5_000),
    (models.Push, "psh", 2_000),
    (models.AuditEntry, "aud", 100_000),
)
VERSIONED: Final = (
    (models.Template, models.TemplateVersion.number, models.TemplateVersion.template_id),
    (models.Dataset, models.DatasetVersion.number, models.DatasetVersion.dataset_id),
    (models.Scenario, models.ScenarioVersion.number, models.ScenarioVersion.scenario_id),
)
LEDGER: Final = 1_000_000
SKIPPED: Final = ("text/event-stream",)


@dataclass
class Seen:
    """A page: milliseconds of its rounds, bytes of its HTML."""

    took: list[float]
    size: int

    @property
    def ms(self) -> float:
        """Return the median of the rounds."""
        return statistics.median(self.took)


@contextmanager
def world(database: str | None) -> Iterator[World]:
    """An application with its own database, which contains all test users and one object of every kind."""
    with ExitStack() as stored:
        folder = Path(stored.enter_context(tempfile.TemporaryDirectory()))
        server = valkey.prepare(folder)
        process = subprocess.Popen(server.command, stdout=subprocess.DEVNULL)
        stored.callback(process.wait)
        stored.callback(process.kill)
        while not probe.redis_check(server.url)():
            time.sleep(0.05)
        app = create_app(settings_for(database or f"sqlite:///{folder}/pages.db", server.url, folder))
        stored.callback(close_app, app)
        with app.app_context():
            db.create_all()
            cast = gather()
            db.session.remove()
        yield World(app, cast)


def fill(app: Flask) -> None:
    """Copy existing rows until there are this many, with times distributed over the previous days."""
    with app.app_context(), db.engine.begin() as connection:
        heads: dict[str, list[str]] = {}
        for model, prefix, count in FULL:
            _copies(connection, model.__table__, prefix, count, heads)
        for model, number, owner in VERSIONED:
            newest = sa.select(sa.func.max(number)).where(owner == model.id).scalar_subquery()
            connection.execute(sa.update(model).values(version=newest))
        push = connection.scalar(sa.select(models.Push.id).limit(1))
        rows = (
            {"push_id": push, "table_no": 0, "row_no": n, "state": "failed", "attempts": 1, "code": "unique",
             "native": "23505", "message": "There is such a key already.", "status_code": None}
            for n in range(2, LEDGER + 2)
        )  # fmt: skip
        _insert(connection, models.PushRow.__table__, rows, LEDGER)
        connection.execute(
            sa.update(models.Push).where(models.Push.id == push).values(total=LEDGER + 1, failed=LEDGER)
        )
        db.session.remove()
    with app.app_context():
        while seals.seal_all(clock.now()):  # as the sweeper does every few seconds
            pass
        db.session.remove()
        with db.engine.connect() as connection:
            connection.exec_driver_sql("ANALYZE")


def _copies(
    connection: sa.Connection, table: sa.Table, prefix: str | None, count: int, heads: dict[str, list[str]]
) -> None:
    found = [dict(row) for row in connection.execute(sa.select(table)).mappings()]
    if (
        table.name == "exports"
    ):  # an entry that a test case wrote directly has no request that a page could show
        found = [row for row in found if "ask" in row["request"]]
    if "status" in table.c:  # open work stays unchanged, because a queue of thousands is not a typical day
        found = [row for row in found if row["status"] not in ("queued", "running")] or found
    if not found:
        raise SystemExit(f"There is no {table.name} to copy.")
    result = [str(row["id"]) for row in found]
    owner = next(
        (
            column.name
            for column in table.columns
            for key in column.foreign_keys
            if key.column.table.name in heads and not column.nullable
        ),
        None,
    )
    target = next(iter(table.c[owner].foreign_keys)).column.table.name if owner else ""

    def rows() -> Iterator[dict[str, Any]]:
        now = clock.now()
        for n in range(len(found), count):
            row = dict(found[n % len(found)])
            back = timedelta(minutes=n)
            for name, value in row.items():
                if name.endswith("_at") and value is not None and name != "expires_at":
                    row[name] = now - back
            if prefix:
                row["id"] = ids.new(prefix)
                result.append(row["id"])
            else:
                row.pop("id")
            if row.get("name"):
                row["name"] = f"{row['name'][:150]} {n}"
            if "number" in row:
                row["number"] = n + 100
            if owner:
                row[owner] = heads[target][n % len(heads[target])]
            yield row

    _insert(connection, table, rows(), count - len(found))
    heads[table.name] = result


def _insert(connection: sa.Connection, table: sa.Table, rows: Iterator[dict[str, Any]], count: int) -> None:
    for begin in range(0, count, BATCH):
        batch = [row for row, _ in zip(rows, range(min(BATCH, count - begin)), strict=False)]
        if batch:
            connection.execute(sa.insert(table), batch)


def look(made: World, rounds: int) -> dict[str, Seen]:
    """Measure every page by its rule, and each documentation page by its address, after one warm-up request
    each."""
    browser, out = made.person(), {}
    for case in made.reading():
        address = case.address(made.names)
        answer = browser.get(address, buffered=False)
        kind, status = answer.mimetype, answer.status_code
        answer.close()
        if status == 500:
            raise SystemExit(f"{address} answered {status}.")
        if kind != "text/html" or status != 200:
            continue
        out[case.rule] = _page(browser, address, rounds)
    listed = re.findall(r'href="(/docs/api/[^"#]+)"', browser.get("/docs/api").text)
    for address in (*(page.href for page in documents.all_pages().values()), *listed):
        out[address] = _page(browser, address, rounds)
    return out


def _page(browser: Browser, address: str, rounds: int) -> Seen:
    took, size = [], len(gzip.compress(browser.get(address).data))
    for _ in range(rounds):
        begin = time.perf_counter()
        size = len(gzip.compress(browser.get(address).data))
        took.append((time.perf_counter() - begin) * 1000)
    return Seen(took, size)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--database", help="an empty database (default: SQLite in a temporary folder)")
    value = parser.parse_args()
    with world(value.database) as result:
        empty = look(result, value.rounds)
        begin = time.perf_counter()
        fill(result.app)
        print(f"filled in {time.perf_counter() - begin:.0f} s")
        full = look(result, value.rounds)
    print(f"{'page':60} {'full':>8} {'empty':>8}  ratio")
    for rule, seen in sorted(full.items(), key=lambda item: -item[1].ms)[:20]:
        print(f"{rule[:60]:60} {seen.ms:5.1f} ms {empty[rule].ms:5.1f} ms {seen.ms / empty[rule].ms:5.1f} x")
    print(f"\n{'page':60} {'HTML':>8}")
    for rule, seen in sorted(full.items(), key=lambda item: -item[1].size)[:12]:
        print(f"{rule[:60]:60} {seen.size / 1000:5.1f} kB")
    slow = sum(seen.ms > MOST_MS for seen in full.values())
    large = sum(seen.size > MOST_BYTES for seen in full.values())
    print(f"\n{len(full)} pages: {slow} over {MOST_MS} ms, {large} over {MOST_BYTES // 1000} kB")


if __name__ == "__main__":
    main()

"""Fill every schema of a folder without an edit, and print how many of its tables are full.

.venv/bin/python bench/fill.py FOLDER [--rows 1000] [--postgresql postgresql://postgres@127.0.0.1:5432]
[--mysql mysql://root@127.0.0.1:3306] [--reasons]

FOLDER holds SQL files with CREATE statements: those in its folder `postgresql` are loaded with `psql`, those in
`mysql` with `mysql`, each into a new database that is dropped at the end. `--database NAME` takes a database of the
server as it is instead, and leaves the rows there. A table counts as full if all rows that the plan
gives it arrived; unique columns and parents may limit them. A table that a trigger fills, and a lookup table that has
all its values, count as full if they have rows. Prints a line for each schema and a total; with
`--reasons`, why each other table is not full.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from sqlalchemy import select

from bench import push_job
from jobs.pushes import push as job
from webapp import limits
from webapp.connections.models import Connection
from webapp.connections.services import inspection
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.fill import services as fill
from webapp.fill.schemas import FillInput
from webapp.pushes.models import Push, PushRow
from webapp.pushes.services.ledger import read


@dataclass(slots=True)
class Result:
    """What became of one schema."""

    name: str
    tables: int
    full: int
    rows: int
    drafted: float
    planned: float
    sent: float
    cpu: float
    """Seconds of processor time of this process and its children, which other load on the machine does not change."""
    reasons: dict[str, str]

    @property
    def line(self) -> str:
        """The result as one line."""
        times = f"{self.drafted:6.1f} s drafted {self.planned:6.1f} s planned {self.sent:7.1f} s sent"
        times += f" ({self.cpu:.1f} s CPU)"
        return f"{self.name:28} {self.full:4} of {self.tables:4} tables full {self.rows:9,} rows {times}"


@contextmanager
def loaded(kind: str, server: str, file: Path) -> Iterator[str]:
    """A new database with the tables of a file; dropped at the end."""
    name = f"rowsmith_fill_{uuid.uuid4().hex[:8]}"
    if kind == "postgresql":
        admin = ["psql", "-q", f"{server}/postgres", "-c"]
        load = ["psql", "-q", f"{server}/{name}", "-f", str(file)]
    else:
        at = urlsplit(server)
        admin = ["mysql", "-h", at.hostname or "", "-P", str(at.port or 3306), "-u", at.username or "root"]
        admin += [f"--password={at.password}"] if at.password else []
        load, admin = [*admin, "--force", name], [*admin, "-e"]
    subprocess.run([*admin, f"CREATE DATABASE {name}"], check=True)
    try:
        with file.open("rb") as text:
            subprocess.run(load, stdin=text, capture_output=True, check=False)
        yield name
    finally:
        subprocess.run([*admin, f"DROP DATABASE {name}"], check=True)


def filled(kind: str, server: str, database: str, name: str, rows: int) -> Result:
    """Fill all tables of a database."""
    with push_job.service(kind, {"connection_string": f"{server}/{database}"}) as service:
        ask = FillInput(rows=rows)
        start, used = time.perf_counter(), sum(os.times()[:4])
        drafted = fill.create_dataset(service.actor, service.connection, ask)
        planned = time.perf_counter()
        push_id = fill.queue_push(service.actor, drafted, ask).id
        queued = time.perf_counter()
        job.run(push_id)
        done = time.perf_counter()
        db.session.expire_all()
        push = db.session.get_one(Push, push_id)
        others = [
            item["table"] for item in drafted.skipped if item["code"] in ("has_rows", "filled_by_trigger")
        ]
        connection = db.session.get_one(Connection, service.connection)
        there = inspection.count_rows(connection, others, limits.FETCH_SECONDS) if others else {}
        reasons = {item["table"]: item["message"] for item in drafted.skipped if not there.get(item["table"])}
        reasons |= {item["name"]: item["message"] for item in push.request.get("skipped", ())}
        failed, full = _failed(push), sum(map(bool, there.values()))
        outcomes = read.counts_by_table(db.session(), push)
        for place, (item, outcome) in enumerate(zip(push.tables, outcomes, strict=True)):
            if place not in failed or outcome.delivered >= item.get("asked", item["count"]):
                full += 1
            else:
                number, why = failed[place]
                reasons[item["name"]] = f"{number:,} of {item['count']:,} rows failed: {why}"
        if push.error is not None:
            reasons["(the push)"] = push.error["message"]
            full = 0
        return Result(
            name,
            len(drafted.tables) + len(drafted.skipped),
            full,
            push.delivered,
            planned - start,
            queued - planned,
            done - queued,
            sum(os.times()[:4]) - used,
            reasons,
        )


def _failed(push: Push) -> dict[int, tuple[int, str]]:
    """How many rows of each table were not delivered, and the first reason, by the table's place."""
    found: dict[int, tuple[int, str]] = {}
    statement = select(PushRow.table, PushRow.message).where(PushRow.push_id == push.id)
    for table, reason in db.session.execute(statement.order_by(PushRow.table, PushRow.row)):
        number, first = found.get(table, (0, str(reason)))
        found[table] = (number + 1, first)
    return found


def main() -> int:
    """Parse the command line and run. Return 1 if fewer tables are full than asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--postgresql", default="postgresql://postgres@127.0.0.1:5432")
    parser.add_argument("--mysql", default="mysql://root@127.0.0.1:3306")
    parser.add_argument("--database", action="append", default=[], help="KIND:NAME of an existing database")
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("--share", type=float, default=0.95, help="the share of tables that must be full")
    value = parser.parse_args()
    servers = {"postgresql": value.postgresql, "mysql": value.mysql}
    results: list[Result] = []
    for one in value.database:
        kind, _, database = one.partition(":")
        results.append(_told(filled(kind, servers[kind], database, database, value.rows), value.reasons))
    for kind, server in servers.items() if value.folder else ():
        for file in sorted((value.folder / kind).glob("*.sql")):
            with loaded(kind, server, file) as database:
                try:
                    one = filled(kind, server, database, f"{kind} {file.stem}", value.rows)
                except ApiError as error:
                    print(f"{kind} {file.stem}: {error}", flush=True)
                    continue
                results.append(_told(one, value.reasons))
    tables, full = sum(result.tables for result in results), sum(result.full for result in results)
    share = full / max(1, tables)
    print(f"{full} of {tables} tables full: {share:.1%} (target {value.share:.0%})")
    return 0 if share >= value.share else 1


def _told(one: Result, reasons: bool) -> Result:
    print(one.line, flush=True)
    for table, why in one.reasons.items() if reasons else ():
        print(f"    {table}: {why[:230]}")
    return one


if __name__ == "__main__":
    sys.exit(main())

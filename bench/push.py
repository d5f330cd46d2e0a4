"""Measure the speed of pushes to databases, compared with the drivers' executemany of existing tuples, in one
run.

.venv/bin/python bench/push.py [--rows 100000] [--rounds 5] [--url
postgresql://postgres@127.0.0.1:5432/postgres]

Rowsmith generates the rows of the benchmark template while sending. The driver gets existing tuples, in its
fastest mode (psycopg's executemany uses pipeline mode), over a connection that is already open. Both commit
every `limits.PUSH_CHUNK_ROWS` rows. An invalid row repeats the key of the previous row. Figures are the
minimum wall-clock time of alternating rounds, because other load on the machine only adds time. Prints the
ratios and their targets; exits with status 1 if a target is missed. `push_mysql` contains the part for
MariaDB, and `push_job` the part that uses the job with its ledger.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import psycopg

from bench.generate import HEADER, resident
from bench.push_sending import Figures, Sending, judged_bad
from webapp.connectors.postgresql.connector import PostgresqlConnector
from webapp.net.gate import Gate

URL = "postgresql://postgres@127.0.0.1:5432/postgres"
CREATE = """CREATE TABLE orders (
  id bigint PRIMARY KEY, name varchar(100) NOT NULL, email varchar(200), street varchar(200), city varchar(100),
  country varchar(100), phone varchar(50), quantity int NOT NULL CHECK (quantity >= 0), amount numeric(12, 2),
  day date, key uuid
)"""
# Targets: the ratio of Rowsmith to the driver, and the time with invalid rows compared with none.
FASTER, SLOWER, GROWTH_MB = 2.5, {0.001: 2.0, 0.01: 6.0}, 64.0
_LARGE_ROWS = 1_000_000


class Bench(Sending):
    """A separate schema, dropped at the end."""

    def __init__(self, url: str, rows: int) -> None:
        super().__init__(rows)
        self.name = f"rowsmith_bench_{uuid.uuid4().hex[:8]}"
        settings = PostgresqlConnector.Settings(connection_string=url, schema=self.name)
        self.session = PostgresqlConnector(settings, Gate(["127.0.0.0/8", "::1/128"])).open()
        self.session.execute(f"CREATE SCHEMA {self.name}")
        self.session.schema = self.name
        self.session.execute(CREATE)
        self._other = psycopg.connect(url)

    def close(self) -> None:
        """Drop the schema."""
        self._other.close()
        self.session.execute(f"DROP SCHEMA {self.name} CASCADE")
        self.session.close()

    def executemany(self) -> int:
        """psycopg's executemany of existing tuples."""
        statement = f"INSERT INTO {self.name}.orders VALUES ({', '.join(['%s'] * len(HEADER))})"
        with self._other.cursor() as cursor:
            return self.in_chunks(lambda rows: cursor.executemany(statement, rows), self._other.commit)

    def clear(self) -> None:
        """Empty the table, and leave no background work to the server."""
        self.session.execute(f"TRUNCATE {self.name}.orders")
        self.session.execute("CHECKPOINT")


def figures(url: str, rows: int, rounds: int) -> Figures:
    """Return the seconds of each variant (the minimum of the rounds) and the number of rows it reported as
    invalid. `the job` is the whole push, with its plan, its ledger and the work around it."""
    from bench import push_job

    bench = Bench(url, rows)
    bench.ready()
    ways = bench.ways(SLOWER)
    taken: dict[str, list[tuple[float, int]]] = {name: [] for name in ("the job", *ways)}
    try:
        with push_job.service("postgresql", {"connection_string": url, "schema": bench.name}) as service:
            for turn in range(rounds + 1):
                bench.clear()
                found = {"the job": service.push("orders", rows)}
                found |= {name: bench.timed(way) for name, way in ways.items()}
                for name in found if turn else ():  # the first turn is a warm-up
                    taken[name].append(found[name])
    finally:
        bench.close()
    return {name: (min(item for item, _ in found), found[0][1]) for name, found in taken.items()}


def judged(found: Figures, rows: int) -> Iterator[tuple[str, float, float, bool]]:
    """Return each ratio: its name, its value, its target, and whether it reaches the target."""
    ratio = found["executemany"][0] / found["the job"][0]
    yield (
        "PostgreSQL, the job with its ledger, compared with executemany's rate",
        ratio,
        FASTER,
        ratio >= FASTER,
    )
    yield from judged_bad(found, rows, SLOWER, "PostgreSQL")


def grow(url: str, rows: int) -> None:
    """Print the megabytes by which this process grows between its first 50,000 rows and `rows`."""
    bench = Bench(url, 50_000)
    try:
        bench.timed(bench.ours)
        before, bench.count = resident(), rows
        bench.timed(bench.ours)
        print(resident() - before)
    finally:
        bench.close()


def growth(url: str) -> tuple[str, float, float, bool]:
    """Return the memory for a million rows."""
    command = [sys.executable, __file__, "--grow", "--url", url, "--rows", str(_LARGE_ROWS)]
    found = float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)
    return f"PostgreSQL, memory growth over {_LARGE_ROWS:,} rows, MB", found, GROWTH_MB, found <= GROWTH_MB


def main() -> int:
    """Parse the command line and run. Return 1 if a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--url", default=URL)
    parser.add_argument("--mysql", help="also measure MariaDB or MySQL, at this URL")
    parser.add_argument("--grow", action="store_true", help=argparse.SUPPRESS)
    values = parser.parse_args()
    if values.grow:
        grow(values.url, values.rows)
        return 0
    found = figures(values.url, values.rows, values.rounds)
    report = [*judged(found, values.rows), growth(values.url)]
    for name, (seconds, failed) in found.items():
        print(
            f"PostgreSQL {name:<14}{seconds:7.2f} s {values.rows / seconds:10,.0f} rows/s {failed:6,} rejected"
        )
    if values.mysql:
        from bench import push_mysql

        other = push_mysql.figures(values.mysql, values.rows, values.rounds)
        report += push_mysql.judged(other, values.rows)
        for name, (seconds, failed) in other.items():
            print(
                f"MariaDB {name:<14}{seconds:7.2f} s {values.rows / seconds:10,.0f} rows/s {failed:6,} rejected"
            )
    for name, value, expected, good in report:
        print(f"{name:<62} {value:6.2f}  target {expected:g}{'' if good else '  MISSED'}", flush=True)
    return 0 if all(good for *_, good in report) else 1


if __name__ == "__main__":
    sys.exit(main())

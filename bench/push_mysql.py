"""Measure the speed of pushes to MariaDB or MySQL, compared with PyMySQL's executemany of existing tuples, in
one run.

.venv/bin/python bench/push_mysql.py [--rows 100000] [--rounds 3] [--url mysql://root@127.0.0.1:3306]

Rowsmith generates the rows of the benchmark template while sending. The driver gets existing tuples, over a
connection that is already open. Both commit every `limits.PUSH_CHUNK_ROWS` rows. The table has a primary key,
a unique index and a check that reject invalid rows: each invalid row repeats the key of an earlier one.
Figures are medians of wall-clock time, measured in turns. Exits with status 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pymysql

from bench import push_job
from bench.generate import HEADER
from bench.push_sending import Figures, Sending, judged_bad
from webapp.connectors.mysql.connector import MysqlConnector
from webapp.net.gate import Gate

URL = "mysql://root@127.0.0.1:3306"
CREATE = """CREATE TABLE orders (
  id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL, email VARCHAR(200), street VARCHAR(200),
  city VARCHAR(100), country VARCHAR(100), phone VARCHAR(50), quantity INT NOT NULL CHECK (quantity >= 0),
  amount DECIMAL(12, 2), day DATE, `key` CHAR(36)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4"""
# Targets: the ratio of Rowsmith to the driver, and the time with invalid rows compared with none.
FASTER, SLOWER = 1.8, {0.001: 2.0, 0.01: 6.0}


class Bench(Sending):
    """A separate database, dropped at the end."""

    def __init__(self, url: str, rows: int) -> None:
        super().__init__(rows)
        self.name = f"rowsmith_bench_{uuid.uuid4().hex[:8]}"
        gate = Gate(["127.0.0.0/8", "::1/128"])
        self._server = MysqlConnector(MysqlConnector.Settings(connection_string=url), gate).open()
        self._server.execute(f"CREATE DATABASE {self.name}")
        self.session = MysqlConnector(
            MysqlConnector.Settings(connection_string=url, database=self.name), gate
        ).open()
        self.session.execute(CREATE)
        link = self.session.link
        self._other = pymysql.connect(
            host=link.host,
            port=link.port,
            user=link.user.decode(),
            password=link.password.decode(),
            database=self.name,
        )

    def close(self) -> None:
        """Drop the database."""
        self._other.close()
        self.session.close()
        self._server.execute(f"DROP DATABASE {self.name}")
        self._server.close()

    def executemany(self) -> int:
        """PyMySQL's executemany of existing tuples, which it sends as long INSERT statements."""
        marks = ", ".join(["%s"] * len(HEADER))
        names = ", ".join(f"`{name}`" for name in HEADER)
        statement = f"INSERT INTO orders ({names}) VALUES ({marks})"
        with self._other.cursor() as cursor:
            return self.in_chunks(lambda rows: cursor.executemany(statement, rows), self._other.commit)

    def clear(self) -> None:
        """Empty the table."""
        self.session.execute("TRUNCATE TABLE orders")


def figures(url: str, rows: int, rounds: int) -> Figures:
    """Return the seconds of each variant (the median of the rounds) and the number of rows it reported as
    invalid. `the job` is the whole push."""
    bench = Bench(url, rows)
    bench.ready()
    ways = bench.ways(SLOWER)
    taken: dict[str, list[tuple[float, int]]] = {name: [] for name in ("the job", *ways)}
    try:
        with push_job.service("mysql", {"connection_string": url, "database": bench.name}) as service:
            for turn in range(rounds + 1):
                bench.clear()
                found = {"the job": service.push("orders", rows)}
                found |= {name: bench.timed(way) for name, way in ways.items()}
                for name in found if turn else ():  # the first turn is a warm-up
                    taken[name].append(found[name])
    finally:
        bench.close()
    return {
        name: (statistics.median(item for item, _ in found), found[0][1]) for name, found in taken.items()
    }


def judged(found: Figures, rows: int) -> Iterator[tuple[str, float, float, bool]]:
    """Return each ratio: its name, its value, its target, and whether it reaches the target."""
    for name, way in (("MariaDB, the job with its ledger", "the job"), ("MariaDB, the connector", "ours")):
        ratio = found["executemany"][0] / found[way][0]
        yield f"{name}, compared with executemany's rate", ratio, FASTER, ratio >= FASTER
    yield from judged_bad(found, rows, SLOWER, "MariaDB")


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--url", default=URL)
    options = parser.parse_args()
    found = figures(options.url, options.rows, options.rounds)
    for name, (seconds, failed) in found.items():
        print(f"{name:<14} {seconds:7.2f} s {options.rows / seconds:10,.0f} rows/s {failed:6,} rejected")
    missed = False
    for name, value, expected, good in judged(found, options.rows):
        missed |= not good
        print(f"{name:<62} {value:5.2f}  target {expected:g}{'' if good else '  MISSED'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

"""How fast rows get into MariaDB or MySQL, beside PyMySQL's executemany of ready tuples, in one run.

    .venv/bin/python bench/push_mysql.py [--rows 100000] [--rounds 3] [--url mysql://root@127.0.0.1:3306]

Ours makes the rows of the bench template on the way; the driver is given tuples that lie ready. Both commit every
`limits.PUSH_CHUNK_ROWS` rows. The table has a primary key, a unique index and a check, which bad rows run into: each
bad row repeats the key of an earlier one. Figures are medians of wall-clock time, taken in turns. Exit code 1 where a
target is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyarrow as pa

from bench.generate import ENV, HEADER, plan
from bench.push import spoilt
from webapp import limits
from webapp.connectors.base import Writing
from webapp.connectors.mysql import MysqlConnector
from webapp.engine.block import Bound
from webapp.net.gate import Gate

URL = "mysql://root@127.0.0.1:3306"
CREATE = """CREATE TABLE orders (
  id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL, email VARCHAR(200), street VARCHAR(200),
  city VARCHAR(100), country VARCHAR(100), phone VARCHAR(50), quantity INT NOT NULL CHECK (quantity >= 0),
  amount DECIMAL(12, 2), day DATE, `key` CHAR(36)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4"""
# What is wanted: ours against the driver's, and the time with bad rows against that without.
FASTER, SLOWER = 1.8, {0.001: 2.0, 0.01: 6.0}


class Bench:
    """A database of its own, dropped at the end."""

    def __init__(self, url: str, rows: int) -> None:
        self.name, self.count = f"rowsmith_bench_{uuid.uuid4().hex[:8]}", rows
        self._plan = plan()
        gate = Gate(["127.0.0.0/8", "::1/128"])
        self._server = MysqlConnector(MysqlConnector.Settings(connection_string=url), gate).open()
        self._server.execute(f"CREATE DATABASE {self.name}")
        self.session = MysqlConnector(
            MysqlConnector.Settings(connection_string=url, database=self.name), gate
        ).open()
        self.session.execute(CREATE)
        self._ready: list[tuple[Any, ...]] = []

    def close(self) -> None:
        """Drop the database."""
        self.session.close()
        self._server.execute(f"DROP DATABASE {self.name}")
        self._server.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The template's rows, made now."""
        bound = Bound(self._plan, ENV)
        for at in range(0, self.count, limits.PUSH_CHUNK_ROWS):
            arrays = bound.block(at, min(limits.PUSH_CHUNK_ROWS, self.count - at))
            yield pa.RecordBatch.from_arrays(arrays, HEADER)

    def ready(self) -> list[tuple[Any, ...]]:
        """The same rows as tuples."""
        if not self._ready:
            for batch in self.batches():
                self._ready += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return self._ready

    def ours(self, bad: float = 0.0) -> int:
        """Generate and send; `bad` is the share of rows whose key is an earlier row's. Returns how many failed."""
        entity = self.session.entity("orders")
        assert entity is not None
        target = self.session.target(Writing(entity, entity.fields))
        failed = 0
        for batch in self.batches():
            target.begin()
            failed += len(target.send(spoilt(batch, bad) if bad else batch).failures)
            target.proof()
            target.commit()
        return failed

    def executemany(self) -> int:
        """PyMySQL's executemany of ready tuples."""
        import pymysql

        link = self.session.link
        other = pymysql.connect(
            host=link.host,
            port=link.port,
            user=link.user.decode(),
            password=link.password.decode(),
            database=self.name,
        )
        marks = ", ".join(["%s"] * len(HEADER))
        names = ", ".join(f"`{name}`" for name in HEADER)
        statement = f"INSERT INTO orders ({names}) VALUES ({marks})"
        with other, other.cursor() as cursor:
            for at in range(0, self.count, limits.PUSH_CHUNK_ROWS):
                cursor.executemany(statement, self.ready()[at : at + limits.PUSH_CHUNK_ROWS])
                other.commit()
        return 0

    def timed(self, action: Callable[[], int]) -> tuple[float, int]:
        """Seconds that an action takes from an empty table, and what it returns."""
        self.session.execute("TRUNCATE TABLE orders")
        start = time.perf_counter()
        answer = action()
        return time.perf_counter() - start, answer


def figures(url: str, rows: int, rounds: int) -> dict[str, tuple[float, int]]:
    """Seconds of each way (the median of the rounds) and the rows it reported bad."""
    bench = Bench(url, rows)
    bench.ready()
    ways: dict[str, Callable[[], int]] = {
        "ours": bench.ours,
        "executemany": bench.executemany,
        **{f"{share:.1%} bad": lambda share=share: bench.ours(share) for share in SLOWER},
    }
    taken: dict[str, list[tuple[float, int]]] = {name: [] for name in ways}
    try:
        bench.timed(bench.ours)
        for _ in range(rounds):
            for name, way in ways.items():
                taken[name].append(bench.timed(way))
    finally:
        bench.close()
    return {name: (statistics.median(one for one, _ in found), found[0][1]) for name, found in taken.items()}


def judged(found: dict[str, tuple[float, int]], rows: int) -> Iterator[tuple[str, float, float, bool]]:
    """Each ratio: what it is of, its value, what it ought to be, whether it is."""
    clean = found["ours"][0]
    ratio = found["executemany"][0] / clean
    yield "MariaDB, times executemany's rate", ratio, FASTER, ratio >= FASTER
    for share, most in SLOWER.items():
        seconds, failed = found[f"{share:.1%} bad"]
        right = failed == int(rows * share)
        yield (
            f"MariaDB, {share:.1%} bad rows: time of clean",
            seconds / clean,
            most,
            seconds / clean <= most and right,
        )


def main() -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--url", default=URL)
    options = parser.parse_args()
    found = figures(options.url, options.rows, options.rounds)
    for name, (seconds, failed) in found.items():
        print(f"{name:<14} {seconds:7.2f} s {options.rows / seconds:10,.0f} rows/s {failed:6,} refused")
    missed = False
    for name, value, wanted, good in judged(found, options.rows):
        missed |= not good
        print(f"{name:<46} {value:5.2f}  wanted {wanted:g}{'' if good else '  MISSED'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

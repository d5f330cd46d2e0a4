"""Measure how long imports take: a file with a million rows, a table with 500 columns, and three well-known
schemas.

python bench/imports.py [rows]

The comparison is hand-written code: the standard library's `csv`, and each value tried as a number, a date
and a text. Figures are informative: the best of three, in one process, without the web server.
"""

from __future__ import annotations

import csv
import io
import random
import sys
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from webapp.imports.readers import formats
from webapp.imports.readers.base import Source
from webapp.imports.services import drafts
from webapp.row_templates.services import compilation

SCHEMAS = Path(__file__).resolve().parents[1] / "tests" / "imports" / "schemas"
ROWS = 1_000_000
TRIES = 3


def sample(rows: int) -> bytes:
    """Return a CSV with six columns: a key, an e-mail address, a word, a price, a date, an occasional blank."""
    dice = random.Random(1)
    first = date(2020, 1, 1)
    days = [(first + timedelta(days=item)).isoformat() for item in range(1_500)]
    lines = ["id,email,status,price,joined,note"]
    for item in range(1, rows + 1):
        word = ("open", "paid", "sent")[item % 3]
        note = "" if item % 4 else "later"
        lines.append(
            f"{item},u{item}@ex.org,{word},{dice.randrange(99999) / 100:.2f},{days[item % 1_500]},{note}"
        )
    return "\n".join(lines).encode()


def wide(columns: int = 500) -> bytes:
    """Return a CREATE TABLE with many columns."""
    kinds = ("VARCHAR(40)", "INT", "DECIMAL(10,2)", "DATE", "BOOLEAN")
    names = (
        "first_name",
        "amount",
        "price",
        "created_on",
        "active",
        "email",
        "city",
        "status",
        "notes",
        "code",
    )
    parts = [f"{names[item % 10]}_{item} {kinds[item % 5]}" for item in range(columns)]
    return f"CREATE TABLE wide ({', '.join(parts)});".encode()


def imported(raw: bytes, name: str) -> list[Any]:
    """Return the drafts of a file, ready to be saved."""
    words = compilation.vocabulary()
    return drafts.draft_tables(formats.read(Source(raw, name), "auto", words), words, 10)


def by_hand(raw: bytes) -> list[str]:
    """Run the comparison: try every value of every column."""
    rows = csv.reader(io.StringIO(raw.decode()))
    names = next(rows)
    kinds = ["integer"] * len(names)
    for row in rows:
        for place, value in enumerate(row):
            kinds[place] = _kind(value, kinds[place])
    return kinds


def _kind(value: str, kind: str) -> str:
    tries: dict[str, Callable[[str], Any]] = {"integer": int, "float": float, "date": date.fromisoformat}
    order = ["integer", "float", "date", "text"]
    while kind != "text" and value:
        try:
            tries[kind](value)
        except ValueError:
            kind = order[order.index(kind) + 1]
        else:
            break
    return kind


def best(act: Callable[[], Any], tries: int = TRIES) -> float:
    """Return the seconds of the fastest of several calls."""
    found = []
    for _ in range(tries):
        start = time.perf_counter()
        act()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    """Print the figures."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    raw = sample(rows)
    imported(sample(100), "warm.csv")
    print(f"{rows:,} rows of CSV, {len(raw) / 1e6:.0f} MB: {best(lambda: imported(raw, 'rows.csv')):.2f} s")
    print(f"  by hand, value by value: {best(lambda: by_hand(raw), 1):.2f} s")
    print(f"500 columns of SQL: {best(lambda: imported(wide(), 'wide.sql')):.2f} s")
    for path in sorted(SCHEMAS.glob("*.sql")):
        text = path.read_bytes()
        print(f"{path.stem}: {best(lambda: imported(text, path.name)):.2f} s")  # noqa: B023 - called immediately


if __name__ == "__main__":
    main()

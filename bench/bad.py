"""Measure the cost of 1 % invalid cells: rows with and without them, and an answer key.

.venv/bin/python bench/bad.py [--rows 400000] [--format csv]

Both templates are the one of `bench/sample.py`. In one of them, every field has 1 % invalid cells of all
applicable kinds. Figures are the best of three.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.sample import FIELDS
from webapp.engine import groups
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.formats import FORMATS, write
from webapp.engine.invalid_data.answer_key import AnswerKey
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RATE = 0.01
TRIES = 3


def bound(fields: list[dict[str, Any]]) -> BoundPlan:
    """Compile the fields."""
    plan = compile_plan(groups.assign(parse(fields)), vocabulary.open_default())
    return BoundPlan(plan, GenerationContext("bench", NOW))


def best(run: Callable[[], int]) -> tuple[float, int]:
    """Return the seconds of the fastest run, and its result."""
    found = []
    for _ in range(TRIES):
        began = time.perf_counter()
        result = run()
        found.append((time.perf_counter() - began, result))
    return min(found)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--format", choices=sorted(FORMATS), default="csv")
    request = parser.parse_args()
    kind = FORMATS[request.format]

    def size(source: BoundPlan) -> int:
        pieces = write(kind(source.schema, kind.Options(), title="rows"), source.blocks(0, request.rows))
        return sum(map(len, pieces))

    good = bound(FIELDS)
    bad = bound([{**field, "invalid": {"rate": RATE}} for field in FIELDS])
    for source in (good, bad):
        size(source)  # loads word lists and renders pools
    plain, _ = best(lambda: size(good))
    spoilt, _ = best(lambda: size(bad))
    key, cells = best(
        lambda: sum(len(block[0]) for block in AnswerKey(bad, 0, request.rows).blocks(json=True))
    )
    print(f"{request.rows:,} rows of {len(FIELDS)} fields as {request.format}")
    print(f"without invalid cells   {request.rows / plain:12,.0f} rows/s")
    print(
        f"with 1 % invalid cells  {request.rows / spoilt:12,.0f} rows/s, {spoilt / plain:.2f} times the time"
    )
    print(f"their answer key        {request.rows / key:12,.0f} rows/s, {cells:,} cells")


if __name__ == "__main__":
    main()

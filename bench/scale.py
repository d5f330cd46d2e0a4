"""Measure an export in one file on one processor and on all, an export in parts with one worker and with two in
parallel, and calculate the requirements for a billion rows per minute.

.venv/bin/python bench/scale.py [--rows 2000000] [--part-rows 250000] [--format csv]

First, one file is generated in this process as the worker of an export does: by one process, and by as many as there
are processors, in turns. The ratio is the median of three.

Starts `./rowsmith up` twice in a separate folder, with SQLite, local files and Valkey: with one worker, then
with two. Both generate the same number of rows of the template in `bench/sample.py`. The time is measured by
the service's clock, from the start of the first part to the storage of the last one. Other load on the
machine counts, so the load average is printed next to each figure: two workers on two processors share them
with everything else, including the web server.

The last lines are calculated from the rate of one worker, not measured.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import statistics
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.sample import FIELDS
from bench.serve import rowsmith_server
from webapp import clock, limits, timestamps
from webapp.generation.services import rows as generation_rows
from webapp.row_templates.schemas import GenerateInput
from webapp.row_templates.services import compiled_plans

WARM_ROWS = 20_000
GIVE_UP_SECONDS = 200.0
BILLION_A_MINUTE = 1_000_000_000 / 60


def asked(url: str, key: str, body: object = None) -> dict[str, Any]:
    """Return the response of the service as JSON."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return json.load(answer)


def done(origin: str, key: str, template: str, ask: dict[str, Any]) -> dict[str, Any]:
    """Return an export after it has finished."""
    export = asked(f"{origin}/templates/{template}/exports", key, ask)
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while not export["finished_at"]:
        if time.monotonic() > deadline:
            sys.exit(f"not finished after {GIVE_UP_SECONDS:.0f} s: use fewer --rows")
        time.sleep(0.2)
        export = asked(f"{origin}/exports/{export['id']}", key)
    if export["status"] != "completed":
        sys.exit(f"the export is {export['status']}: {export['error']}")
    return export


def measured(workers: int, ask: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """Return the rows per second of the export, and its manifest."""
    with rowsmith_server("--workers", str(workers), "--runners", "1") as (port, _, key):
        origin = f"http://127.0.0.1:{port}"
        template = asked(f"{origin}/templates", key, {"name": "Orders", "fields": FIELDS})["id"]
        for _ in range(workers):
            done(origin, key, template, {"count": WARM_ROWS, "format": ask["format"]})
        export = done(origin, key, template, ask)
        began, ended = (timestamps.parse(export[name]) for name in ("started_at", "finished_at"))
        manifest = asked(export["manifest_url"], key)
    return export["count"] / (ended - began).total_seconds(), manifest


def one_file(rows: int, format: str) -> None:
    """Print the rows per second of one file, on one processor and on all of them."""
    source = compiled_plans.compile_draft("Orders", FIELDS, 10, None, None)
    ask = GenerateInput(count=rows, format=format, seed="scale")
    recipe = generation_rows.build_recipe(source, ask, current_time=clock.now())
    if recipe.count < limits.PARALLEL_FROM_ROWS or not recipe.format.is_resumable:
        return
    rates: dict[int, list[float]] = {1: [], os.cpu_count() or 1: []}
    for _ in range(3):
        for processes, found in rates.items():
            began, digest = time.perf_counter(), hashlib.sha256()
            for piece in recipe.open(processes):
                digest.update(piece)
            found.append(rows / (time.perf_counter() - began))
    (alone, every) = rates.values()
    ratio = statistics.median(more / item for item, more in zip(alone, every, strict=True))
    print(
        f"one file: {statistics.median(alone):,.0f} rows/s on one processor, {statistics.median(every):,.0f} on "
        f"{os.cpu_count()}: {ratio:.2f} x; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--part-rows", type=int, default=250_000)
    parser.add_argument("--format", default="csv", choices=["csv", "json", "ndjson", "sql", "parquet"])
    value = parser.parse_args()
    one_file(value.rows, value.format)
    now = clock.to_text(clock.now().replace(microsecond=0))
    ask = {
        "count": value.rows,
        "part_rows": value.part_rows,
        "format": value.format,
        "seed": "scale",
        "now": now,
    }
    rates = {}
    for workers in (1, 2):
        rates[workers], manifest = measured(workers, ask)
        parts, load = len(manifest["parts"]), os.getloadavg()[0]
        print(
            f"{workers} worker(s): {rates[workers]:,.0f} rows/s in {parts} parts; load {load:.1f}",
            flush=True,
        )
    print(f"two workers compared with one: {rates[2] / rates[1]:.2f} x, {os.cpu_count()} processors")
    a_row = manifest["bytes"] / value.rows
    print("\nCalculated, not measured: a billion rows per minute, without shared bottlenecks")
    print(
        f"  {BILLION_A_MINUTE:,.0f} rows/s: {math.ceil(BILLION_A_MINUTE / rates[1]):,} workers with one processor each"
    )
    print(f"  {a_row:.0f} bytes per row: {BILLION_A_MINUTE * a_row / 1e9:.1f} GB/s into the storage")


if __name__ == "__main__":
    main()

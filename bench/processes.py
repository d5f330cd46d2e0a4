"""Measure how much faster two processes are than one, and whether memory stays constant over ten million
rows.

.venv/bin/python bench/processes.py [--rows 400000] [--rounds 5] [--memory 10000000]

The template of ``bench/sample.py`` is written as CSV: all rows in one process, then half of the rows in each
of two processes that start together. The figure is the best of the rounds in wall-clock time, because it
measures waiting; no other load should run on the machine. A second figure shows how much processor time the
two processes got. Then a separate process generates ``--memory`` rows and prints by how many megabytes its
peak memory exceeds that after its first 20,000 rows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pyarrow as pa

from bench import generate
from webapp.engine.blocks import BoundPlan
from webapp.engine.formats import FORMATS, write

FORMAT = "csv"


def make(offset: int, count: int) -> None:
    """Generate ``count`` rows from ``offset`` on as text, which is discarded."""
    bound, kind = BoundPlan(generate.plan(), generate.ENV), FORMATS[FORMAT]
    for _ in write(kind(bound.schema, kind.Options(), title="orders"), bound.blocks(offset, count)):
        pass


def part(start: Barrier, end: Barrier, offset: int, count: int, used: multiprocessing.Queue) -> None:
    """Warm up, wait for the other processes, and generate rows."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    make(offset, 20_000)
    start.wait()
    before = time.process_time()
    make(offset, count)
    used.put(time.process_time() - before)
    end.wait()


def taken(processes: int, rows: int) -> tuple[float, float]:
    """Return the seconds from the common start to the last end, and the seconds of processor time, with the
    rows split evenly."""
    context = multiprocessing.get_context("spawn")
    start, end, used = context.Barrier(processes + 1), context.Barrier(processes + 1), context.Queue()
    share = rows // processes
    workers = [
        context.Process(target=part, args=(start, end, number * share, share, used))
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    start.wait()
    began = time.perf_counter()
    end.wait()
    passed = time.perf_counter() - began
    busy = sum(used.get() for _ in workers)
    for worker in workers:
        worker.join()
    return passed, busy


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--memory", type=int, default=10_000_000, help="rows of the memory measurement; 0: none"
    )
    value = parser.parse_args()
    best = {1: (float("inf"), 0.0), 2: (float("inf"), 0.0)}
    for _ in range(value.rounds):
        for processes in best:
            best[processes] = min(best[processes], taken(processes, value.rows))
    for processes, (passed, busy) in best.items():
        share = busy / passed / processes
        speed = f"{value.rows / passed:,.0f} rows/s"
        print(f"{processes} in parallel: {speed}, each had {share:.0%} of a core")
    print(
        f"two processes compared with one: {best[1][0] / best[2][0]:.2f} x in wall-clock time (target: 1.8)"
    )
    print(f"                                 {2 * best[1][1] / best[2][1]:.2f} x in processor time")
    if value.memory:
        grown = generate.growth(FORMAT, value.memory)
        print(f"memory growth over {value.memory:,} rows of {FORMAT}: {grown:.1f} MB")


if __name__ == "__main__":
    main()

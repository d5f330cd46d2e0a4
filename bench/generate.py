"""Measure the speed of writing templates to files, compared with Faker, mimesis and `random` with `csv`, in
one run on one core.

.venv/bin/python bench/generate.py [--rows 100000] [--rounds 5] [--report]

The template: row number, name, e-mail from the name, street, city, country, phone, integer, decimal, date,
uuid. All contenders write the same columns to a file on disk, in turns. Each figure is the median of the
rounds in processor time (all threads, including the kernel), so that other load does not count. Faker and
mimesis generate fewer rows, and their time is scaled. Prints the ratios and their targets; with ``--report``
as a table for the documentation. Exits with status 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pyarrow as pa

from bench.sample import FIELDS
from webapp.engine import groups
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.formats import FORMATS, write
from webapp.engine.plan import Plan, compile_plan
from webapp.engine.spec import parse

HEADER = [field["name"] for field in FIELDS]
FIRST_DAY, DAYS = date(2016, 1, 1), 3653
ENV = GenerationContext("benchmark", datetime(2026, 1, 1, tzinfo=UTC))

_FAKER_ROWS, _MIMESIS_ROWS, _OPENPYXL_ROWS = 1_000, 5_000, 2_000
_TINY_ROWS, _TINY_CALLS = 10, 300
_LARGE_ROWS = 1_000_000
_MB = 1024 * 1024


def one_core() -> None:
    """Limit this process and Arrow to one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def plan(fields: list[dict] | None = None) -> Plan:
    """Return the compiled template."""
    return compile_plan(groups.assign(parse(fields or FIELDS)), vocabulary.open_default())


def rowsmith(compiled: Plan, rows: int, format: str, path: Path) -> None:
    """Write ``rows`` rows of the template to a file."""
    bound = BoundPlan(compiled, ENV)
    kind = FORMATS[format]
    writer = kind(bound.schema, kind.Options(), title="orders")
    with path.open("wb") as file:
        for piece in write(writer, bound.blocks_for(writer, 0, rows)):
            file.write(piece)


def write_rows(path: Path, rows: Iterable[tuple]) -> None:
    """Write a CSV file in the usual way around a generator."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(rows)


def by_faker(rows: int, path: Path) -> None:
    """Faker in its usual form: one call per cell."""
    from faker import Faker

    fake = Faker("en_US")

    def row(number: int) -> tuple:
        name = fake.name()
        return (
            number, name, name.lower().replace(" ", ".") + "@example.com", fake.street_address(), fake.city(),
            fake.country(), fake.phone_number(), fake.random_int(0, 1000),
            fake.pydecimal(right_digits=2, min_value=0, max_value=1000),
            fake.date_between(FIRST_DAY, FIRST_DAY + timedelta(days=DAYS - 1)), fake.uuid4(),
        )  # fmt: skip

    write_rows(path, (row(number) for number in range(1, rows + 1)))


def by_mimesis(rows: int, path: Path) -> None:
    """mimesis with providers that are created once."""
    from mimesis import Address, Cryptographic, Datetime, Numeric, Person
    from mimesis.locales import Locale

    person, address, moment = Person(Locale.EN), Address(Locale.EN), Datetime(Locale.EN)
    numeric, cryptographic = Numeric(), Cryptographic()

    def row(number: int) -> tuple:
        name = person.full_name()
        return (
            number, name, name.lower().replace(" ", ".") + "@example.com", address.address(), address.city(),
            address.country(), person.phone_number(), numeric.integer_number(0, 1000),
            numeric.float_number(0, 1000, 2), moment.date(2016, 2025), cryptographic.uuid(),
        )  # fmt: skip

    write_rows(path, (row(number) for number in range(1, rows + 1)))


def by_hand(rows: int, path: Path) -> None:
    """Hand-written code with `random` and word lists, optimized for speed."""
    words = vocabulary.open_default().words
    firsts = words("first_name_female", "en_US").to_pylist() + words("first_name_male", "en_US").to_pylist()
    lasts = words("last_name_male", "en_US").to_pylist()
    streets = [f"{last} Street" for last in lasts]
    cities = [f"{last}ville" for last in lasts]
    countries = [f"Country {number}" for number in range(240)]
    choice, randint, uniform = random.choice, random.randint, random.uniform

    def row(number: int) -> tuple:
        first, last = choice(firsts), choice(lasts)
        return (
            number, f"{first} {last}", f"{first}.{last}@example.com".lower(), f"{randint(1, 9999)} {choice(streets)}",
            choice(cities), choice(countries), f"+1-{randint(200, 999)}-{randint(200, 999)}-{randint(0, 9999):04d}",
            randint(0, 1000), round(uniform(0, 1000), 2), FIRST_DAY + timedelta(days=randint(0, DAYS - 1)),
            uuid.uuid4(),
        )  # fmt: skip

    write_rows(path, (row(number) for number in range(1, rows + 1)))


def by_openpyxl(table: list[tuple], path: Path) -> None:
    """openpyxl's write-only mode with existing rows."""
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in table:
        sheet.append(row)
    book.save(path)


def ready_rows(compiled: Plan, rows: int) -> list[tuple]:
    """Return the template's rows in the format for openpyxl."""
    columns = [column.to_pylist() for column in BoundPlan(compiled, ENV).block(0, rows)]
    return list(zip(*columns, strict=True))


def turns(contenders: dict[str, tuple[int, Callable[[], None]]], rounds: int, path: Path) -> dict[str, float]:
    """Return the seconds per row of each contender: the median over rounds in which all take part. Each writes
    ``path`` anew: deleting the file of the one before it is not timed."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, (rows, run) in contenders.items():
            path.unlink(missing_ok=True)
            start = time.process_time()
            run()
            if turn:  # the first turn is a warm-up
                taken[name].append((time.process_time() - start) / rows)
    return {name: statistics.median(times) for name, times in taken.items()}


def tiny_call(compiled: Plan, rounds: int) -> dict[str, float]:
    """Return the milliseconds of one call for ten rows of a compiled template: bound, checked, generated and
    written as JSON; and the same including compilation. The minimum of the rounds, each of which is the
    median of many calls."""
    kind = FORMATS["json"]

    def call(with_plan: Plan) -> bytes:
        bound = BoundPlan(with_plan, ENV)
        bound.check(0, _TINY_ROWS)
        return b"".join(
            write(kind(bound.schema, kind.Options(), title="orders"), bound.blocks(0, _TINY_ROWS))
        )

    def median(run: Callable[[], object]) -> float:
        times = []
        for _ in range(_TINY_CALLS):
            start = time.process_time()
            run()
            times.append(time.process_time() - start)
        return statistics.median(times) * 1000

    ways = {"compiled": lambda: call(compiled), "with compilation": lambda: call(plan())}
    return {name: min(median(run) for _ in range(rounds)) for name, run in ways.items()}


def growth(format: str, rows: int) -> float:
    """Return the megabytes by which a separate process grows between its first 20,000 rows and ``rows``."""
    command = [sys.executable, __file__, "--grow", format, "--rows", str(rows)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)


def resident() -> float:
    """Return the current memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / _MB


def grow(format: str, rows: int) -> None:
    """Run as child of `growth`: print how much the peak memory exceeds that after the first 20,000 rows."""
    bound, kind = BoundPlan(plan(), ENV), FORMATS[format]

    def largest(count: int) -> float:
        found = 0.0
        for place, _ in enumerate(
            write(kind(bound.schema, kind.Options(), title="orders"), bound.blocks(0, count))
        ):
            if place % 10 == 0:
                found = max(found, resident())
        return max(found, resident())

    largest(20_000)
    before = resident()
    print(largest(rows) - before)


def measure(rows: int, rounds: int) -> list[tuple[str, float, str, float, str]]:
    """Return (name, figure, unit, target, ``>=`` or ``<=``) of every promise."""
    compiled = plan()
    table = ready_rows(compiled, min(_OPENPYXL_ROWS, rows))
    blocks = list(BoundPlan(compiled, ENV).blocks(0, rows))
    schema = BoundPlan(compiled, ENV).schema
    xlsx = FORMATS["xlsx"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"

        def ready_xlsx() -> None:
            path.write_bytes(b"".join(write(xlsx(schema, xlsx.Options(), title="orders"), blocks)))

        contenders = {
            **{f"Rowsmith {f}": (rows, lambda f=f: rowsmith(compiled, rows, f, path)) for f in FORMATS},
            "Rowsmith xlsx, existing rows": (rows, ready_xlsx),
            "random + csv": (rows // 4, lambda: by_hand(rows // 4, path)),
            "mimesis": (_MIMESIS_ROWS, lambda: by_mimesis(_MIMESIS_ROWS, path)),
            "Faker": (_FAKER_ROWS, lambda: by_faker(_FAKER_ROWS, path)),
            "openpyxl, existing rows": (len(table), lambda: by_openpyxl(table, path)),
        }
        seconds = turns(contenders, rounds, path)
    for name, figure in seconds.items():
        print(f"  {name:<28}{figure * 1e9:>12,.0f} ns/row{1 / figure:>14,.0f} rows/s", flush=True)
    own = seconds["Rowsmith csv"]
    tiny = tiny_call(compiled, rounds)
    print(
        f"  one call of 10 rows to JSON: {tiny['compiled']:.2f} ms, {tiny['with compilation']:.2f} ms with compilation"
    )
    return [
        ("CSV compared with Faker", seconds["Faker"] / own, "x", 200, ">="),
        ("CSV compared with mimesis", seconds["mimesis"] / own, "x", 20, ">="),
        ("CSV compared with random + csv", seconds["random + csv"] / own, "x", 8, ">="),
        ("JSON, time compared with CSV", seconds["Rowsmith json"] / own, "x", 1.5, "<="),
        ("SQL, time compared with CSV", seconds["Rowsmith sql"] / own, "x", 2, "<="),
        ("XLSX compared with openpyxl", seconds["openpyxl, existing rows"] / seconds["Rowsmith xlsx"], "x", 25, ">="),
        (
            "XLSX of existing rows compared with openpyxl",
            seconds["openpyxl, existing rows"] / seconds["Rowsmith xlsx, existing rows"], "x", 25, ">=",
        ),
        ("One call of 10 rows to JSON, template compiled", tiny["compiled"], "ms", 0.8, "<="),
        *((f"Memory growth, 1,000,000 rows of {f}", growth(f, _LARGE_ROWS), "MB", 64, "<=") for f in FORMATS),
    ]  # fmt: skip


def main() -> int:
    """Parse the command line and run. Return 1 if a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--report", action="store_true", help="print the figures as a Markdown table")
    parser.add_argument("--grow", choices=list(FORMATS), help=argparse.SUPPRESS)
    value = parser.parse_args()
    one_core()
    if value.grow:
        grow(value.grow, value.rows)
        return 0
    libraries = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "pyarrow", "faker", "mimesis", "openpyxl")
    )
    print(
        f"{value.rows:,} rows, {value.rounds} rounds, one core of {platform.processor() or platform.machine()}"
    )
    print(f"Python {platform.python_version()}, {libraries}")
    figures = measure(value.rows, value.rounds)
    if value.report:
        print("\n| what | figure | target | |\n|---|---:|---:|---|")
    missed = 0
    for what, figure, unit, target, relation in figures:
        met = figure >= target if relation == ">=" else figure <= target
        missed += not met
        verdict = "" if met else "missed"
        if value.report:
            print(f"| {what} | {figure:,.2f} {unit} | {relation} {target:g} {unit} | {verdict} |")
        else:
            print(
                f"  {what:<44}{figure:>10,.2f} {unit:<3} (target {relation} {target:g}) {verdict}", flush=True
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

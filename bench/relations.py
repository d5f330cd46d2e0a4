"""What it costs to find one's parent, one's children, or their sum.

    .venv/bin/python bench/relations.py [--rounds 3] [--children 10000000]

First the arithmetic by itself, then whole columns of templates that relate to each other. Rows are asked for in blocks
of 8,192, as the engine does. Each figure is the least of the rounds, on one core, in time
of the processor; every round begins with nothing remembered, unless the line says "warm".
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.generate import one_core
from webapp import limits
from webapp.engine import cells, folding, groups, parents
from webapp.engine.block import Bound, Env
from webapp.engine.cardinality import Cardinality, Counts, Spread
from webapp.engine.data import vocabulary
from webapp.engine.kinship import Known, Library
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse

KEY = cells.key("benchmark", "fld_1")
_BLOCK = limits.BLOCK_ROWS
_FAR = 10**12


def least(rounds: int, run: Callable[[], object]) -> float:
    """Seconds of the processor."""
    found = []
    for _ in range(rounds):
        before = time.process_time()
        run()
        found.append(time.process_time() - before)
    return min(found)


def blocks(total: int, rows: int = _BLOCK) -> Iterator[np.ndarray]:
    """Rows 0 to ``total`` - 1."""
    for at in range(0, total, rows):
        yield np.arange(at, min(at + rows, total), dtype=np.uint64)


def show(name: str, figure: float, unit: str) -> None:
    """One line of the table."""
    print(f"{name:<58}{figure:>10.1f} {unit}", flush=True)


def owners(bound: Cardinality, total: int) -> None:
    """The parents of all children."""
    for rows in blocks(total):
        bound.owners(rows)


def total_of(bound: Cardinality, number: int) -> None:
    """A sum over each parent's children, of values that cost as much as any."""
    for rows in blocks(number):
        starts, sizes = bound.spans(rows)
        fold = folding.Fold("sum", sizes)
        first = int(starts[0])
        for at in range(first, first + fold.total, limits.FOLD_ROWS):
            end = min(at + limits.FOLD_ROWS, first + fold.total)
            children = bound.slots_to_children(np.arange(at, end, dtype=np.uint64))
            fold.add(cells.between(cells.bits(KEY, children), 1, 100_000))
        fold.result()


def cardinality(children: int, rounds: int) -> None:
    """Children that are counted out to parents."""
    number = children // 3
    plans = {
        "1..5": Counts(number, Spread(1, 5)),
        "1..5, stated": Counts(number, Spread(1, 5), children + 19),
    }
    for name, plan in plans.items():
        show(f"owners of {plan.total:,} ({name})", cost(rounds, plan, owners, plan.total), "ns a child")
    small = Counts(10_000, Spread(1, 5))
    show("owners of 30,000", cost(rounds, small, owners, small.total), "ns a child")
    far = Counts(_FAR, Spread(1, 5))
    rows = np.arange(_FAR, _FAR + 3, dtype=np.uint64)
    show("owners of 3 rows at 10**12", least(rounds, lambda: again(far, rows)) / 1_000 * 1e6, "us")
    plan = plans["1..5"]
    for mixed in (False, True):
        name = "mixed" if mixed else "scattered"
        bound = plan.bind(KEY, mixed)
        asked = [cells.below(cells.bits(KEY, rows), plan.total) for rows in blocks(100 * _BLOCK)]
        for rows in asked:
            bound.owners(rows)
        seconds = least(rounds, lambda b=bound, a=asked: [b.owners(rows) for rows in a])
        show(f"owners of {plan.total:,}, {name}, warm", seconds / (100 * _BLOCK) * 1e9, "ns a child")
    show("sums of 10,000 parents", cost(rounds, small, total_of, 10_000), "ns a parent")
    show(f"sums of {number:,} parents", cost(rounds, plan, total_of, number), "ns a parent")
    show("sums of 100,000 parents, mixed", cost(rounds, plan, total_of, 100_000, mixed=True), "ns a parent")


def cost(rounds: int, plan: Counts, run: Callable[..., None], rows: int, mixed: bool = False) -> float:
    """ns a row of ``run`` over so many rows."""
    return least(rounds, lambda: run(plan.bind(KEY, mixed), rows)) / rows * 1e9


def again(plan: Counts, rows: np.ndarray) -> None:
    """A thousand times the owners of a few rows, with nothing remembered."""
    for _ in range(1_000):
        plan.bind(KEY).owners(rows)


def references(rounds: int) -> None:
    """Parents that are drawn."""
    number = 1_000_000
    for shape, many in (
        ("uniform", 10**4),
        ("uniform", 10**9),
        ("zipf", 10**4),
        ("zipf", 10**9),
        ("normal", 10**6),
    ):
        picker = parents.picker(shape, many, Fraction(1))
        seconds = least(rounds, lambda p=picker: [p.draw(KEY, rows) for rows in blocks(number)])
        show(f"{shape}, {many:,} parents", seconds / number * 1e9, "ns a row")
    positions = np.arange(_BLOCK, dtype=np.int64) % 5
    runs = {
        "manager": lambda rows: parents.manager(KEY, rows),
        "one to one": lambda rows: parents.match(KEY, rows, 2 * number),
        "rank among rows not blank": lambda rows: cells.filled_rank(KEY, rows, 30, 1),
        "pair": lambda rows: parents.pair(KEY, rows, 10**4, 10**5),
        "partner, 5": lambda rows: parents.partner(KEY, rows, positions[: rows.size], 5),
        "partner, 100": lambda rows: parents.partner(KEY, rows, positions[: rows.size], 100),
        "partner, 100,000": lambda rows: parents.partner(KEY, rows, positions[: rows.size], 10**5),
    }
    for name, run in runs.items():
        seconds = least(rounds, lambda f=run: [f(rows) for rows in blocks(number)])
        show(name, seconds / number * 1e9, "ns a row")


# --- Through the engine ----------------------------------------------------------------------------------------

_ENV = Env("benchmark", datetime(2026, 1, 1, tzinfo=UTC))
_ID, _NAME = {"name": "id", "type": "row_number"}, {"name": "name", "type": "name"}
_AMOUNT = {"name": "amount", "type": "number", "options": {"min": 1, "max": 100, "decimals": 2}}
_PERSON = ("name", "email", "date_of_birth", "phone_number")
_PEOPLE = [_ID, *({"name": kind, "type": kind} for kind in _PERSON)]
Templates = dict[str, tuple[int, list[dict[str, Any]]]]


def related(own: str, templates: Templates) -> Bound:
    """The template ``own`` among others: rows and fields by their ids."""
    words = vocabulary.default()
    known = {
        name: Known(name, groups.assign(parse(fields, name=name)), rows, words)
        for name, (rows, fields) in templates.items()
    }
    mine = known.pop(own)
    return Bound(compile_plan(mine.spec, words, library=Library(known, own, mine.rows)), _ENV)


def reference(name: str, to: str, field: str, **options: Any) -> dict[str, Any]:
    """A field of type reference."""
    return {"name": name, "type": "reference", "options": {"template_id": to, "field": field, **options}}


def made(rounds: int, bound: Bound, rows: int, first: int = 0) -> float:
    """ns a row of the visible columns."""
    return (
        least(rounds, lambda: [bound.block(first + at, _BLOCK) for at in range(0, rows, _BLOCK)]) / rows * 1e9
    )


def references_made(rounds: int) -> None:
    """A reference beside the same column in its own template."""
    rows = 64 * _BLOCK
    for many in (10_000, 10**9):
        for names in (("id",), ("name",), _PERSON):
            plain = related("p", {"p": (many, [field for field in _PEOPLE if field["name"] in names])})
            fields = [reference(f"x_{name}", "p", name) for name in names]
            child = related("c", {"p": (many, _PEOPLE), "c": (1, fields)})
            alone, there = made(rounds, plain, rows), made(rounds, child, rows)
            what = names[0] if len(names) == 1 else f"{len(names)} fields of a person"
            show(f"{what}, plain", alone, "ns a row")
            show(f"{what}, of {many:,} parents", there, f"ns a row, {there / alone:.2f} times")


def shop(customers: int) -> Templates:
    """Customers, ten orders each, five lines each; totals all the way up."""
    return {
        "customers": (customers, [_ID, _NAME, total("spent", "orders", "total")]),
        "orders": (
            1,
            [
                _ID,
                reference("customer_id", "customers", "id", cardinality={"min": 1, "max": 19}),
                reference("customer", "customers", "name"),
                total("total", "lines", "amount"),
            ],
        ),
        "lines": (
            1,
            [
                reference("order_id", "orders", "id", cardinality={"min": 1, "max": 9}),
                {"name": "position", "type": "position_in_parent"},
                _AMOUNT,
                reference("order_total", "orders", "total"),
                reference("customer", "orders", "customer"),
            ],
        ),
    }


def total(name: str, of: str, field: str) -> dict[str, Any]:
    """A field of type aggregate."""
    return {"name": name, "type": "aggregate", "options": {"template_id": of, "field": field}}


def levels_made(rounds: int) -> None:
    """Customers, orders and lines."""
    for customers in (1_000, 100_000):
        templates = shop(customers)
        lines = {"order_id", "position", "amount"}
        plain = [field for field in templates["lines"][1] if field["name"] in lines]
        only = {**templates, "lines": (1, plain)}
        name = f"{customers * 50:,} lines"
        rows = min(customers * 50, 64 * _BLOCK) // _BLOCK * _BLOCK
        show(f"{name}: order, position, amount", made(rounds, related("lines", only), rows), "ns a line")
        show(
            f"{name}: order's total, customer's name too",
            made(rounds, related("lines", templates), rows),
            "ns a line",
        )
        rows = min(customers * 10, 32 * _BLOCK) // _BLOCK * _BLOCK
        sums = {**templates, "orders": (1, [templates["orders"][1][1], templates["orders"][1][3]])}
        show(
            f"{customers * 10:,} orders: sum over 5 lines",
            made(rounds, related("orders", sums), rows),
            "ns an order",
        )
    rows = 4 * _BLOCK
    show(
        "100,000 customers: sum over 50 lines",
        made(rounds, related("customers", shop(100_000)), rows),
        "ns each",
    )
    far = related("lines", shop(10**9))
    show("lines of 10**10 orders, from 10**10 on", made(rounds, far, 8 * _BLOCK, 10**10), "ns a line")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--children", type=int, default=10_000_000)
    given = parser.parse_args()
    one_core()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cardinality(given.children, given.rounds)
    references(given.rounds)
    references_made(given.rounds)
    levels_made(given.rounds)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    show("memory gained (on Linux)", grown / 1024, "MB")


if __name__ == "__main__":
    main()

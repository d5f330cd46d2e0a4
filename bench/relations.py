"""Measure the cost of finding a row's parent, its children, or their sum.

.venv/bin/python bench/relations.py [--rounds 3] [--children 10000000]

First the arithmetic, then whole columns of related templates. Rows are requested in blocks of 8,192, as the
engine does. Each figure is the minimum of the rounds, on one core, in processor time. Every round starts with
empty caches unless the line says "warm".
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
from webapp.engine import groups, random
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.plan import compile_plan
from webapp.engine.relations import totals
from webapp.engine.relations.cardinality import ChildCounts, ChildDistribution
from webapp.engine.relations.related_plans import RelatedTemplate, TemplateLibrary
from webapp.engine.spec import parse
from webapp.engine.types import relations
from webapp.engine.types.relations import Cardinality

KEY = random.key("benchmark", "fld_1")
_BLOCK = limits.BLOCK_ROWS
_FAR = 10**12


def least(rounds: int, run: Callable[[], object]) -> float:
    """Return the processor time in seconds."""
    found = []
    for _ in range(rounds):
        before = time.process_time()
        run()
        found.append(time.process_time() - before)
    return min(found)


def blocks(total: int, rows: int = _BLOCK) -> Iterator[np.ndarray]:
    """Yield rows 0 to ``total`` - 1 in blocks."""
    for at in range(0, total, rows):
        yield np.arange(at, min(at + rows, total), dtype=np.uint64)


def show(name: str, figure: float, unit: str) -> None:
    """Print one line of the table."""
    print(f"{name:<58}{figure:>10.1f} {unit}", flush=True)


def owners(bound: Cardinality, total: int) -> None:
    """Return the parents of all children."""
    for rows in blocks(total):
        bound.owners(rows)


def total_of(bound: Cardinality, number: int) -> None:
    """Return a sum over each parent's children, of values with typical cost."""
    for rows in blocks(number):
        starts, sizes = bound.spans(rows)
        fold = totals.Reduction("sum", sizes)
        first = int(starts[0])
        for at in range(first, first + fold.total, limits.FOLD_ROWS):
            end = min(at + limits.FOLD_ROWS, first + fold.total)
            children = bound.slots_to_children(np.arange(at, end, dtype=np.uint64))
            fold.add(random.between(random.bits(KEY, children), 1, 100_000))
        fold.result()


def cardinality(children: int, rounds: int) -> None:
    """Measure children that are assigned to parents."""
    number = children // 3
    plans = {
        "1..5": ChildCounts(number, ChildDistribution(1, 5)),
        "1..5, stated": ChildCounts(number, ChildDistribution(1, 5), children + 19),
    }
    for name, plan in plans.items():
        show(f"parents of {plan.total:,} ({name})", cost(rounds, plan, owners, plan.total), "ns per child")
    small = ChildCounts(10_000, ChildDistribution(1, 5))
    show("parents of 30,000", cost(rounds, small, owners, small.total), "ns per child")
    far = ChildCounts(_FAR, ChildDistribution(1, 5))
    rows = np.arange(_FAR, _FAR + 3, dtype=np.uint64)
    show("parents of 3 rows at 10**12", least(rounds, lambda: again(far, rows)) / 1_000 * 1e6, "us")
    plan = plans["1..5"]
    for mixed in (False, True):
        name = "mixed" if mixed else "scattered"
        bound = plan.bind(KEY, mixed)
        requests = [random.below(random.bits(KEY, rows), plan.total) for rows in blocks(100 * _BLOCK)]
        for rows in requests:
            bound.owners(rows)
        seconds = least(rounds, lambda b=bound, a=requests: [b.owners(rows) for rows in a])
        show(f"parents of {plan.total:,}, {name}, warm", seconds / (100 * _BLOCK) * 1e9, "ns per child")
    show("sums of 10,000 parents", cost(rounds, small, total_of, 10_000), "ns per parent")
    show(f"sums of {number:,} parents", cost(rounds, plan, total_of, number), "ns per parent")
    show("sums of 100,000 parents, mixed", cost(rounds, plan, total_of, 100_000, mixed=True), "ns per parent")


def cost(rounds: int, plan: ChildCounts, run: Callable[..., None], rows: int, mixed: bool = False) -> float:
    """Return ns per row of ``run`` over this number of rows."""
    return least(rounds, lambda: run(plan.bind(KEY, mixed), rows)) / rows * 1e9


def again(plan: ChildCounts, rows: np.ndarray) -> None:
    """Return a thousand times the parents of a few rows, with empty caches."""
    for _ in range(1_000):
        plan.bind(KEY).owners(rows)


def references(rounds: int) -> None:
    """Measure parents that are drawn at random."""
    number = 1_000_000
    for shape, many in (
        ("uniform", 10**4),
        ("uniform", 10**9),
        ("zipf", 10**4),
        ("zipf", 10**9),
        ("normal", 10**6),
    ):
        picker = relations.create_picker(shape, many, Fraction(1))
        seconds = least(rounds, lambda p=picker: [p.draw(KEY, rows) for rows in blocks(number)])
        show(f"{shape}, {many:,} parents", seconds / number * 1e9, "ns per row")
    positions = np.arange(_BLOCK, dtype=np.int64) % 5
    runs = {
        "manager": lambda rows: relations.self_reference_parents(KEY, rows),
        "one to one": lambda rows: relations.one_to_one_parents(KEY, rows, 2 * number),
        "rank among rows not blank": lambda rows: random.filled_rank(KEY, rows, 30, 1),
        "pair": lambda rows: relations.unique_pairs(KEY, rows, 10**4, 10**5),
        "partner, 5": lambda rows: relations.distinct_partners(KEY, rows, positions[: rows.size], 5),
        "partner, 100": lambda rows: relations.distinct_partners(KEY, rows, positions[: rows.size], 100),
        "partner, 100,000": lambda rows: relations.distinct_partners(
            KEY, rows, positions[: rows.size], 10**5
        ),
    }
    for name, run in runs.items():
        seconds = least(rounds, lambda f=run: [f(rows) for rows in blocks(number)])
        show(name, seconds / number * 1e9, "ns per row")


# --- Through the engine ----------------------------------------------------------------------------------------

_ENV = GenerationContext("benchmark", datetime(2026, 1, 1, tzinfo=UTC))
_ID, _NAME = {"name": "id", "type": "row_number"}, {"name": "name", "type": "name"}
_AMOUNT = {"name": "amount", "type": "number", "options": {"min": 1, "max": 100, "decimals": 2}}
_PERSON = ("name", "email", "date_of_birth", "phone_number")
_PEOPLE = [_ID, *({"name": kind, "type": kind} for kind in _PERSON)]
Templates = dict[str, tuple[int, list[dict[str, Any]]]]


def related(own: str, templates: Templates) -> BoundPlan:
    """Return the template ``own`` together with others: rows and fields by ID."""
    words = vocabulary.open_default()
    known = {
        name: RelatedTemplate(name, groups.assign(parse(fields, name=name)), rows, words)
        for name, (rows, fields) in templates.items()
    }
    mine = known.pop(own)
    return BoundPlan(compile_plan(mine.spec, words, library=TemplateLibrary(known, own, mine.rows)), _ENV)


def reference(name: str, to: str, field: str, **options: Any) -> dict[str, Any]:
    """Return a field of type reference."""
    return {"name": name, "type": "reference", "options": {"template_id": to, "field": field, **options}}


def made(rounds: int, bound: BoundPlan, rows: int, first: int = 0) -> float:
    """Return ns per row of the visible columns."""
    return (
        least(rounds, lambda: [bound.block(first + at, _BLOCK) for at in range(0, rows, _BLOCK)]) / rows * 1e9
    )


def references_made(rounds: int) -> None:
    """Compare a reference with the same column in its own template."""
    rows = 64 * _BLOCK
    for many in (10_000, 10**9):
        for names in (("id",), ("name",), _PERSON):
            plain = related("p", {"p": (many, [field for field in _PEOPLE if field["name"] in names])})
            fields = [reference(f"x_{name}", "p", name) for name in names]
            child = related("c", {"p": (many, _PEOPLE), "c": (1, fields)})
            alone, there = made(rounds, plain, rows), made(rounds, child, rows)
            what = names[0] if len(names) == 1 else f"{len(names)} fields of a person"
            show(f"{what}, plain", alone, "ns per row")
            show(f"{what}, of {many:,} parents", there, f"ns per row, {there / alone:.2f} times")


def shop(customers: int) -> Templates:
    """Customers, ten orders each, five lines each; totals on all levels."""
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
    """Return a field of type aggregate."""
    return {"name": name, "type": "aggregate", "options": {"template_id": of, "field": field}}


def levels_made(rounds: int) -> None:
    """Measure customers, orders and lines."""
    for customers in (1_000, 100_000):
        templates = shop(customers)
        lines = {"order_id", "position", "amount"}
        plain = [field for field in templates["lines"][1] if field["name"] in lines]
        only = {**templates, "lines": (1, plain)}
        name = f"{customers * 50:,} lines"
        rows = min(customers * 50, 64 * _BLOCK) // _BLOCK * _BLOCK
        show(f"{name}: order, position, amount", made(rounds, related("lines", only), rows), "ns per line")
        show(
            f"{name}: order's total, customer's name also",
            made(rounds, related("lines", templates), rows),
            "ns per line",
        )
        rows = min(customers * 10, 32 * _BLOCK) // _BLOCK * _BLOCK
        sums = {**templates, "orders": (1, [templates["orders"][1][1], templates["orders"][1][3]])}
        show(
            f"{customers * 10:,} orders: sum over 5 lines",
            made(rounds, related("orders", sums), rows),
            "ns per order",
        )
    rows = 4 * _BLOCK
    show(
        "100,000 customers: sum over 50 lines",
        made(rounds, related("customers", shop(100_000)), rows),
        "ns each",
    )
    far = related("lines", shop(10**9))
    show("lines of 10**10 orders, from 10**10 on", made(rounds, far, 8 * _BLOCK, 10**10), "ns per line")


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--children", type=int, default=10_000_000)
    value = parser.parse_args()
    one_core()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cardinality(value.children, value.rounds)
    references(value.rounds)
    references_made(value.rounds)
    levels_made(value.rounds)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    show("memory growth (on Linux)", grown / 1024, "MB")


if __name__ == "__main__":
    main()

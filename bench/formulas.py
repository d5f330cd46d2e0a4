"""Measure the cost of formulas in nanoseconds per row, compared with Python evaluating the same compiled
expression row by row.

.venv/bin/python bench/formulas.py [--rounds 7]

Each formula runs over full blocks of a template whose other columns exist already, so that only the formula
is measured. Then the time to reject hostile formulas is measured in milliseconds. Each figure is the minimum
of the rounds, on one core, in processor time.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.generate import one_core
from webapp import limits
from webapp.engine import groups
from webapp.engine.blocks import Block, BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse

ENV = GenerationContext("benchmark", datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
TABLE = [
    {"name": "id", "type": "row_number"},
    {"name": "first", "type": "first_name"},
    {"name": "last", "type": "last_name"},
    {"name": "price", "type": "number", "options": {"min": 1, "max": 500, "decimals": 2}},
    {"name": "quantity", "type": "number", "options": {"min": 1, "max": 9}},
    {"name": "status", "type": "enum", "options": {"values": ["open", "paid", "lost"]}},
    {"name": "born", "type": "date"},
    {
        "name": "lines",
        "type": "nested",
        "options": {
            "array": True,
            "count": {"min": 1, "max": 5},
            "fields": [{"name": "amount", "type": "number", "options": {"decimals": 2}}],
        },
    },
]

# Formula, and the same in Python; None if there is no short equivalent.
FORMULAS: dict[str, tuple[str, str | None]] = {
    "sum": ("id + quantity", "id + quantity"),
    "product": ("price * quantity", "price * quantity"),
    "rounded": ("round(price * 1.19, 2)", "round(price * D('1.19'), 2)"),
    "quotient": ("price / quantity", "round(price / quantity, 6)"),
    "condition": ("'dear' if price > 250 else 'fair'", "'dear' if price > 250 else 'fair'"),
    "membership": ("status in ['open', 'lost']", "status in ('open', 'lost')"),
    "texts": ("upper(last) + ', ' + first", "last.upper() + ', ' + first"),
    "padded": ("'INV-' + pad_left(id, 8, '0')", "'INV-' + str(id).rjust(8, '0')"),
    "replaced": ("replace(last, 'e', '3')", "last.replace('e', '3')"),
    "slug": ("slug(concat(first, ' ', last))", None),
    "age": ("age(born, today)", "(today - born).days // 365"),
    "spelled": ("format_date(born, 'DD.MM.YYYY')", "born.strftime('%d.%m.%Y')"),
    "array": ("sum(lines[*].amount)", "sum(line['amount'] for line in lines)"),
    "array, weighted": (
        "sum(lines[*].amount * quantity)",
        "quantity * sum(line['amount'] for line in lines)",
    ),
    "chance": ("random_int(1, 6)", None),
}
HOSTILE = {
    "9**9**9": "9**9**9",
    "texts times 10^9": "'a' * 1000000000",
    "1,900 brackets": "(" * 1900 + "1" + ")" * 1900,
    "3,999 signs": "-" * 3998 + "1",
    "replacement bomb": "replace(replace('aaaaaaaaaa', 'a', '" + "b" * 900 + "'), 'b', '" + "c" * 900 + "')",
    "dunder": "().__class__.__mro__",
    "long sum": "+".join(["1"] * 1900),
}


def bound(expression: str) -> BoundPlan:
    """A template with the formula and the columns that it uses."""
    fields = [*TABLE, {"name": "r", "type": "formula", "options": {"expression": expression}}]
    return BoundPlan(compile_plan(groups.assign(parse(fields)), vocabulary.open_default()), ENV)


def cost(expression: str, rows: int, rounds: int) -> float:
    """Return nanoseconds per row of the formula only."""
    import numpy as np

    source = bound(expression)
    best = float("inf")
    for turn in range(rounds):
        block = Block(source, source.plan.layer, np.arange(turn * rows, (turn + 1) * rows, dtype=np.uint64))
        for field in TABLE:
            block.column(field["name"])
        began = time.process_time_ns()
        block.column("r")
        best = min(best, time.process_time_ns() - began)
    return best / rows


def python_cost(expression: str, rows: int, rounds: int) -> float:
    """Return nanoseconds per row of Python's own compiled expression over existing dictionaries."""
    import pyarrow as pa

    source = bound("1")
    columns = source.block(0, rows)
    records = pa.table(columns, names=source.schema.names).to_pylist()
    code = compile(expression, "formula", "eval")
    known = {"D": decimal.Decimal, "today": ENV.now.date()}
    best = float("inf")
    for _ in range(min(rounds, 3)):
        began = time.process_time_ns()
        for record in records:
            eval(code, known, record)
        best = min(best, time.process_time_ns() - began)
    return best / rows


def refusal(expression: str, rounds: int) -> tuple[float, str]:
    """Return milliseconds until a formula is rejected, and the error."""
    best, reported = float("inf"), ""
    for _ in range(rounds):
        began = time.process_time_ns()
        try:
            bound(expression)
        except SpecError as error:
            reported = f"{error.faults[0].code} at {error.faults[0].position}"
        best = min(best, time.process_time_ns() - began)
    return best / 1e6, reported


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    one_core()
    print(f"{'formula':<18}{'ns/row':>8}{'10 rows, us':>13}{'Python, ns/row':>16}")
    for name, (formula, python) in FORMULAS.items():
        slow = f"{python_cost(python, limits.BLOCK_ROWS, rounds):16.0f}" if python else f"{'':>16}"
        small = cost(formula, 10, 5 * rounds) / 100
        print(f"{name:<18}{cost(formula, limits.BLOCK_ROWS, rounds):8.1f}{small:13.1f}{slow}")
    print()
    print(f"{'hostile':<18}{'ms':>8}  refused as")
    for name, formula in HOSTILE.items():
        spent, result = refusal(formula, rounds)
        print(f"{name:<18}{spent:8.2f}  {result}")


if __name__ == "__main__":
    main()

"""What a cell of every field type costs, and what the keys that every field has add to it.

    .venv/bin/python bench/engine.py [name ...] [--rounds 7]

For each registered type with its default options: nanoseconds a row in full blocks, microseconds for a block of ten
rows, milliseconds to compile a template of that field alone (the second time: pools are made once a process), and
nanoseconds a row when the field is unique. Then the same for features. Each figure is the least of the rounds, on one
core, in time of the processor.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.generate import one_core  # noqa: E402
from webapp import limits  # noqa: E402
from webapp.engine import groups  # noqa: E402
from webapp.engine.block import Bound, Env  # noqa: E402
from webapp.engine.data import vocabulary  # noqa: E402
from webapp.engine.fields import REGISTRY, FieldType  # noqa: E402
from webapp.engine.plan import compile_plan  # noqa: E402
from webapp.engine.spec import parse  # noqa: E402

ENV = Env("benchmark", datetime(2026, 1, 1, tzinfo=UTC))
_TINY, _FULL = 10, limits.BLOCK_ROWS

# Options that a type cannot do without.
NEEDS: dict[str, dict] = {
    "constant": {"value": "x"},
    "custom": {"values": ["red", "green", "blue"]},
    "derived": {"value": "{{name}}-{{id}}"},
    "enum": {"values": ["red", "green", "blue"], "weights": [5, 3, 2]},
    "list_sequential": {"values": ["red", "green", "blue"]},
    "mapped": {"field": "colour", "map": {"red": 1, "green": 2, "blue": 3}},
    "nested": {"fields": [{"name": "sku", "type": "sku"}, {"name": "quantity", "type": "number"}]},
    "regexp": {"string": "[A-Z]{2}-[0-9]{4}"},
}
BESIDE: dict[str, list[dict]] = {
    "derived": [{"name": "id", "type": "row_number"}, {"name": "name", "type": "last_name"}],
    "mapped": [{"name": "colour", "type": "custom", "options": {"values": ["red", "green", "blue"]}}],
}

FEATURES: dict[str, list[dict]] = {
    "number": [{"name": "x", "type": "number"}],
    "number, unique": [{"name": "x", "type": "number", "unique": True, "options": {"max": 10**12}}],
    "number, 30 % blank": [{"name": "x", "type": "number", "percent_blank": 30}],
    "number, prefix": [{"name": "x", "type": "number", "prefix": "no. "}],
    "number, normal": [{"name": "x", "type": "number", "options": {"distribution": "normal"}}],
    "number, 2 decimals": [{"name": "x", "type": "number", "options": {"decimals": 2}}],
    "city (pool)": [{"name": "x", "type": "city"}],
    "city, 30 % blank": [{"name": "x", "type": "city", "percent_blank": 30}],
    "city, upper and suffix": [{"name": "x", "type": "city", "text_case": "upper", "suffix": "!"}],
    "uuid": [{"name": "x", "type": "uuid"}],
    "uuid, upper": [{"name": "x", "type": "uuid", "text_case": "upper"}],
    "date": [{"name": "x", "type": "date"}],
    "date, MM/DD/YYYY": [{"name": "x", "type": "date", "options": {"format": "MM/DD/YYYY"}}],
    "array of 1 to 3": [
        {
            "name": "x",
            "type": "nested",
            "options": {"array": True, "fields": [{"name": "n", "type": "number"}]},
        }
    ],
}


def least(run: Callable[[], object], rounds: int, times: int) -> float:
    """Seconds of one call."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(times):
            run()
        best = min(best, (time.process_time() - start) / times)
    return best


def template(kind: type[FieldType], unique: bool = False) -> list[dict]:
    """A template of one visible field of this type."""
    field = {"name": "x", "type": kind.name, "options": NEEDS.get(kind.name, {}), "unique": unique}
    return [*({**other, "hidden": True} for other in BESIDE.get(kind.name, [])), field]


def compiled(fields: list[dict]) -> Bound:
    """``fields`` bound to a seed."""
    return Bound(compile_plan(groups.assign(parse(fields)), vocabulary.default()), ENV)


def costs(fields: list[dict], rounds: int) -> tuple[float, float, float]:
    """(ns a row, us for ten rows, ms to compile)."""
    bound = compiled(fields)
    rows = min(_FULL, bound.block_rows)
    whole = least(lambda: bound.block(0, rows), rounds, 3) / rows * 1e9
    tiny = least(lambda: bound.block(0, _TINY), rounds, 50) * 1e6
    return whole, tiny, least(lambda: compiled(fields), 3, 3) * 1e3


def unique_cost(kind: type[FieldType], rounds: int) -> float | None:
    """ns a row when the field is unique; None where it cannot be for a whole block."""
    column = compiled(template(kind)).plan.layer.columns["x"].type
    space = column.space()
    if space is None or space < _FULL:
        return None
    bound = compiled(template(kind, unique=True))
    return least(lambda: bound.block(0, _FULL), rounds, 3) / _FULL * 1e9


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="types to measure; all and the features if not given")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    one_core()
    kinds = [kind for kind in REGISTRY if not given.names or kind.name in given.names]
    print(f"{'type':<22}{'ns/row':>9}{'10 rows, us':>13}{'compile, ms':>13}{'unique, ns/row':>16}")
    for kind in kinds:
        whole, tiny, making = costs(template(kind), given.rounds)
        unique = unique_cost(kind, given.rounds)
        shown = f"{unique:>16.1f}" if unique is not None else f"{'-':>16}"
        print(f"{kind.name:<22}{whole:>9.1f}{tiny:>13.1f}{making:>13.2f}{shown}", flush=True)
    if given.names:
        return
    print(f"\n{'feature':<26}{'ns/row':>9}{'10 rows, us':>13}")
    for name, fields in FEATURES.items():
        whole, tiny, _ = costs(fields, given.rounds)
        print(f"{name:<26}{whole:>9.1f}{tiny:>13.1f}", flush=True)


if __name__ == "__main__":
    main()

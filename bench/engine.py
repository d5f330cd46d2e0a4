"""Measure the cost of a cell of every field type, and of the common field keys.

.venv/bin/python bench/engine.py [name ...] [--rounds 7]

For each registered type with default options: nanoseconds per row in full blocks and rows per second;
microseconds for a block of ten rows; milliseconds to compile a template with only that field (the second
time, because pools are created once per process); nanoseconds per row if the field is unique, and the
difference. Types above 1,000 ns are marked. Then the same for common keys, for fields that share a group
compared with independent fields, and for regular expressions compared with rstr, if it is installed. Each
figure is the minimum of the rounds, on one core, in processor time.
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

from bench.generate import one_core
from webapp import limits
from webapp.engine import groups
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.relations.related_plans import RelatedTemplate, TemplateLibrary
from webapp.engine.spec import parse
from webapp.engine.types.registry import REGISTRY, FieldType

ENV = GenerationContext("benchmark", datetime(2026, 1, 1, tzinfo=UTC))
_TINY, _FULL = 10, limits.BLOCK_ROWS

# Required options of types.
NEEDS: dict[str, dict] = {
    "constant": {"value": "x"},
    "custom": {"values": ["red", "green", "blue"]},
    "derived": {"value": "{{name}}-{{id}}"},
    "formula": {"expression": "round(id * 1.19, 2)"},
    "case": {"cases": [{"when": "id % 2 == 0", "then": "even"}], "else": "odd"},
    "enum": {"values": ["red", "green", "blue"], "weights": [5, 3, 2]},
    "list_sequential": {"values": ["red", "green", "blue"]},
    "mapped": {"field": "colour", "map": {"red": 1, "green": 2, "blue": 3}},
    "nested": {"fields": [{"name": "sku", "type": "sku"}, {"name": "quantity", "type": "number"}]},
    "json": {"fields": [{"name": "sku", "type": "sku"}, {"name": "quantity", "type": "number"}]},
    "array": {"of": {"type": "number"}},
    "template_string": {"value": "{{name}}-{{id}}"},
    "weighted_list": {"values": ["red", "green", "blue"], "weights": [5, 3, 2]},
    "regexp": {"string": "[A-Z]{2}-[0-9]{4}"},
    "cartesian": {"lists": [["red", "green", "blue"], ["small", "large"]]},
    "previous": {"field": "amount"},
    "running_total": {"field": "amount"},
    "date_relative": {"field": "moment", "min": "1d", "max": "14d"},
    "reference": {"template_id": "parents", "field": "id"},
    "aggregate": {"template_id": "children", "field": "amount"},
    "template": {"template_id": "parents"},
    "faker": {"method": "catch_phrase"},
}
BESIDE: dict[str, list[dict]] = {
    "derived": [{"name": "id", "type": "row_number"}, {"name": "name", "type": "last_name"}],
    "template_string": [{"name": "id", "type": "row_number"}, {"name": "name", "type": "last_name"}],
    "formula": [{"name": "id", "type": "row_number"}],
    "case": [{"name": "id", "type": "row_number"}],
    "previous": [{"name": "amount", "type": "number"}],
    "running_total": [{"name": "amount", "type": "number"}],
    "date_relative": [{"name": "moment", "type": "date"}],
    "mapped": [{"name": "colour", "type": "custom", "options": {"values": ["red", "green", "blue"]}}],
    "position_in_parent": [
        {
            "name": "parent",
            "type": "reference",
            "options": {"template_id": "parents", "field": "id", "cardinality": 3},
        }
    ],
}

# Templates for relations: a million parents, and three children for each row of the measured template.
ROWS = 1_000_000
AROUND: dict[str, list[dict]] = {
    "parents": [{"name": "id", "type": "row_number"}, {"name": "name", "type": "name"}],
    "children": [
        {
            "name": "parent",
            "type": "reference",
            "options": {"template_id": "own", "field": "x", "cardinality": 3},
        },
        {"name": "amount", "type": "number", "options": {"decimals": 2}},
    ],
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

# Fields of one group, each type once.
GROUPS: dict[str, tuple[str, ...]] = {
    "person": ("first_name", "last_name", "title", "sex", "email", "age", "date_of_birth"),
    "place": ("city", "state", "zip_code", "country", "time_zone", "latitude", "phone_number", "language"),
    "place, money": ("country", "currency_code", "currency_name", "currency_symbol"),
    "company": ("company_name", "url", "domain_name"),
    "card": ("credit_card_number", "credit_card_type", "cvv", "card_expiry"),
    "product": ("product", "product_name", "product_category", "sku"),
}
EXPRESSIONS = (
    "[A-Z]{2}-[0-9]{4}",
    r"[A-Z]{3}\d{2}(a|bc)?",
    r"(\+49|0)[1-9]\d{6,9}",
    r"[a-z]{5,12}@[a-z]{4}\.(com|org)",
)
"""Typical regular expressions."""
_PLAIN = [
    {"name": "x", "type": "enum", "options": {"values": [f"value {number}" for number in range(1_000)]}}
]
"""A text column without a group."""
_SHARED = ("first_name", "city", "currency_code", "product", "credit_card_type")
_SLOW_NS = 1_000
_EXPRESSION_ROWS, _RSTR_ROWS = 100_000, 5_000


def least(run: Callable[[], object], rounds: int, times: int) -> float:
    """Return the seconds of one call."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(times):
            run()
        best = min(best, (time.process_time() - start) / times)
    return best


def template(kind: type[FieldType], unique: bool = False) -> list[dict]:
    """Return a template with one visible field of this type."""
    field = {"name": "x", "type": kind.name, "options": NEEDS.get(kind.name, {}), "unique": unique}
    return [*({**other, "hidden": True} for other in BESIDE.get(kind.name, [])), field]


def compiled(fields: list[dict]) -> BoundPlan:
    """Return ``fields`` bound to a seed."""
    words = vocabulary.open_default()
    around = {
        name: RelatedTemplate(name, groups.assign(parse(of)), ROWS, words) for name, of in AROUND.items()
    }
    return BoundPlan(
        compile_plan(groups.assign(parse(fields)), words, library=TemplateLibrary(around, "own", ROWS)), ENV
    )


def costs(fields: list[dict], rounds: int) -> tuple[float, float, float]:
    """Return (ns per row, us for ten rows, ms to compile)."""
    bound = compiled(fields)
    rows = min(_FULL, bound.block_rows)
    whole = least(lambda: bound.block(0, rows), rounds, 3) / rows * 1e9
    tiny = least(lambda: bound.block(0, _TINY), rounds, 50) * 1e6
    return whole, tiny, least(lambda: compiled(fields), 3, 3) * 1e3


def unique_cost(kind: type[FieldType], rounds: int) -> float | None:
    """Return ns per row if the field is unique, or None if it cannot be unique for a whole block."""
    bound = compiled(template(kind))
    space = bound.plan.layer.columns["x"].type.distinct_count_for(bound.states["x"])
    if space is None or space < _FULL:
        return None
    bound = compiled(template(kind, unique=True))
    return least(lambda: bound.block(0, _FULL), rounds, 3) / _FULL * 1e9


def print_types(kinds: list[type[FieldType]], rounds: int) -> None:
    """Print the table of types."""
    head = ("ns/row", "rows/s", "10 rows, us", "compile, ms", "unique, ns/row", "added, ns")
    print(f"{'type':<22}" + "".join(f"{name:>{max(len(name) + 2, 9)}}" for name in head))
    slow = []
    for kind in kinds:
        try:
            whole, tiny, making = costs(template(kind), rounds)
        except SpecError as error:
            print(f"{kind.name:<22}  {error.faults[0].message}", flush=True)
            continue
        unique = unique_cost(kind, rounds)
        shown = f"{unique:>16.1f}{unique - whole:>10.1f}" if unique is not None else f"{'-':>16}{'-':>10}"
        rows = f"{1e9 / max(whole, 0.01):,.0f}"
        mark = "  above 1,000 ns" if whole > _SLOW_NS else ""
        print(f"{kind.name:<22}{whole:>9.1f}{rows:>15}{tiny:>9.1f}{making:>13.2f}{shown}{mark}", flush=True)
        slow += [kind.name] if mark else []
    print(f"above {_SLOW_NS:,} ns per value: {', '.join(slow) or 'none'}")


def print_groups(rounds: int) -> None:
    """Print the cost of a row whose fields share a group, compared with independent fields."""
    print(f"\n{'group':<16}{'fields':>8}{'together, ns/row':>18}{'apart, ns/row':>15}{'ratio':>8}")
    for name, types in GROUPS.items():
        fields = [{"name": kind, "type": kind} for kind in types]
        together, apart = compiled(fields), [compiled([field]) for field in fields]
        one = least(lambda bound=together: bound.block(0, _FULL), rounds, 3) / _FULL * 1e9
        each = least(lambda those=apart: [b.block(0, _FULL) for b in those], rounds, 3) / _FULL * 1e9
        print(f"{name:<16}{len(types):>8}{one:>18.1f}{each:>15.1f}{one / each:>8.2f}", flush=True)
    plain = compiled(_PLAIN)
    base = least(lambda: plain.block(0, _FULL), rounds, 3) / _FULL * 1e9
    print(f"\nan enum of 1,000 texts: {base:.1f} ns/row; compared with it, a single field in a group:")
    for name in _SHARED:
        bound = compiled([{"name": "x", "type": name}])
        own = least(lambda b=bound: b.block(0, _FULL), rounds, 3) / _FULL * 1e9
        print(f"  {name:<20}{own:>8.1f} ns/row{own / base:>8.2f} x", flush=True)


def print_expressions(rounds: int) -> None:
    """Compare regular expressions with rstr."""
    try:
        import rstr
    except ImportError:
        rstr = None
        print(
            "\nrstr is not installed, so regular expressions are shown without comparison (pip install rstr)"
        )
    print(f"\n{'regular expression':<40}{'ns/row':>9}{'rstr, ns/row':>14}{'ratio':>8}")
    for source in EXPRESSIONS:
        bound = compiled([{"name": "x", "type": "regexp", "options": {"string": source}}])
        starts = range(0, _EXPRESSION_ROWS, _FULL)
        ours = (
            least(lambda b=bound, s=starts: [b.block(at, _FULL) for at in s], rounds, 1)
            / (len(starts) * _FULL)
            * 1e9
        )
        line = f"{source:<40}{ours:>9.1f}"
        if rstr is not None:
            result = rstr.Rstr()
            theirs = (
                least(lambda m=result, s=source: [m.xeger(s) for _ in range(_RSTR_ROWS)], 3, 1)
                / _RSTR_ROWS
                * 1e9
            )
            line += f"{theirs:>14,.0f}{theirs / ours:>7.0f}x"
        print(line, flush=True)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", help=("types to measure (default: all types and the common keys)")
    )
    parser.add_argument("--rounds", type=int, default=7)
    value = parser.parse_args()
    one_core()
    kinds = [kind for kind in REGISTRY if not value.names or kind.name in value.names]
    print_types(kinds, value.rounds)
    if value.names:
        return
    print(f"\n{'feature':<26}{'ns/row':>9}{'10 rows, us':>13}")
    for name, fields in FEATURES.items():
        whole, tiny, _ = costs(fields, value.rounds)
        print(f"{name:<26}{whole:>9.1f}{tiny:>13.1f}", flush=True)
    print_groups(value.rounds)
    print_expressions(value.rounds)


if __name__ == "__main__":
    main()

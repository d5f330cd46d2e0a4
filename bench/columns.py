"""Measure for how many columns of public schemas the suggested fields have values that a person would accept.

python bench/columns.py [LIST ...]

Without arguments four lists are measured: `bench/data/columns.txt`, `bench/data/columns_sample.txt` (columns drawn at
random from public schemas) and `bench/data/columns_languages.txt` (eight languages, SAP, Oracle and mainframes), from
which no rule was written, and `bench/data/columns_rules.txt`, from which rules may be written.

A list has one column per line; consecutive lines with the same table are one table, so that
neighbors count. A column is accepted if the field's type is one of the listed ones (or its values match the listed
expression or range), no value is too long, and no value is cut.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from webapp.connectors.schema import Column, Entity
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.imports.inference import columns
from webapp.imports.inference.columns import ColumnResult
from webapp.row_templates.services import compilation

DATA: Final = Path(__file__).with_name("data")
ROWS: Final = 400
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
PLAIN: Final = {
    "t": "text", "b": "integer", "i": "integer", "s": "integer", "tiny": "integer", "f": "float", "bool": "boolean",
    "date": "date", "ts": "timestamp", "time": "time", "json": "json", "uuid": "uuid",
}  # fmt: skip
BITS: Final = {"b": 64, "i": 32, "s": 16, "tiny": 8}


@dataclass(frozen=True)
class Case:
    """A column, and what a person would accept for it."""

    table: str
    column: Column
    accepted: str


def read(path: Path) -> list[list[Case]]:
    """Return the columns of a list by table."""
    cases = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            # An expression may contain |, so the four first parts are taken, then comment and default.
            table, name, declared, rest = line.split("|", 3)
            accepted, comment, default = [*rest.split("|"), "", ""][:3] if "/" not in rest else _parts(rest)
            cases.append(Case(table, _column(name, declared, comment, default), accepted))
    return [list(group) for _, group in groupby(cases, key=lambda case: case.table)]


def _parts(rest: str) -> list[str]:
    end = rest.rindex("/") + 1
    tail = rest[end:].split("|", 2)
    return [rest[:end] + tail[0], *[*tail[1:], "", ""][:2]]


def _column(name: str, declared: str, comment: str, default: str) -> Column:
    nullable = declared.endswith("?")
    kind = declared.removesuffix("?")
    shared: dict[str, Any] = {"nullable": nullable, "comment": comment, "default": default or None}
    if kind in PLAIN:
        return Column(name, PLAIN[kind], kind, bits=BITS.get(kind), **shared)  # type: ignore[arg-type]
    size = re.fullmatch(r"([vcd])(\d+)(?:\.(\d+))?", kind)
    assert size, declared
    if size[1] == "d":
        return Column(name, "decimal", kind, precision=int(size[2]), scale=int(size[3]), **shared)
    return Column(
        name,
        "text",
        f"{'char' if size[1] == 'c' else 'varchar'}({size[2]})",
        max_length=int(size[2]),
        **shared,
    )


def judge(cases: list[Case]) -> list[tuple[Case, ColumnResult, str]]:
    """Return each column of a table with its field, and what is wrong with it ("" if nothing is)."""
    fields = tuple(case.column for case in cases)
    entity = Entity(cases[0].table, (cases[0].table,), fields)
    words = compilation.vocabulary()
    found = {column.column: column for column in columns.infer_columns(entity, None, words)}
    outcome = [result.field for result in found.values() if result.field is not None]
    plan = compile_plan(parse(outcome), words)
    block = BoundPlan(plan, GenerationContext("columns", NOW)).block(0, ROWS)
    values = {
        name: (array.dictionary_decode() if hasattr(array, "dictionary_decode") else array).to_pylist()
        for name, array in zip(plan.layer.schema.names, block, strict=True)
    }
    return [(case, found[case.column.name], _fault(case, found[case.column.name], values.get(case.column.name, [])))
            for case in cases]  # fmt: skip


def _fault(case: Case, found: ColumnResult, values: list[Any]) -> str:
    field = found.field
    if field is None:
        return "no field"
    plain = [value for value in values if value is not None]
    longest = case.column.max_length
    if longest is not None and any(len(str(value)) > longest for value in plain):
        return f"{field['type']}: too long"
    if (
        str(field.get("formula", "")).startswith("left(this,")
        and field["type"] != "username"
        and _cut(field, longest or 0)
    ):
        return f"{field['type']}: cut"
    if _accepted(case.accepted, field, values, plain):
        return ""
    return f"{field['type']} {str(field['options'])[:60]} e.g. {', '.join(map(str, plain[:3]))[:70]}"


def _cut(field: dict[str, Any], longest: int) -> bool:
    """Whether values are longer than the column before its formula cuts them."""
    plan = compile_plan(
        parse([{key: value for key, value in field.items() if key != "formula"}]), compilation.vocabulary()
    )
    array = BoundPlan(plan, GenerationContext("columns", NOW)).block(0, ROWS)[0]
    array = array.dictionary_decode() if hasattr(array, "dictionary_decode") else array
    return any(len(str(value)) > longest for value in array.to_pylist())


def _accepted(accepted: str, field: dict[str, Any], values: list[Any], plain: list[Any]) -> bool:
    for item in re.findall(r"/.*/|[^,]+", accepted):
        if item.startswith("/"):
            if plain and all(re.fullmatch(item[1:-1], str(value)) for value in plain):
                return True
        elif re.fullmatch(r"-?[\d.]+?\.\.-?[\d.]+", item):
            low, high = (float(end) for end in item.split("..", 1))
            if plain and all(
                isinstance(value, bool) is False and low <= float(value) <= high for value in plain
            ):
                return True
        elif item == "null60":
            if len(plain) <= 0.4 * len(values):
                return True
        elif item in ("mostlyfalse", "flag"):
            true = sum(value in (True, 1, "1", "Y") for value in plain)
            if set(map(str, plain)) <= {"True", "False", "0", "1", "Y", "N"} and (
                item == "flag" or true < 0.2 * len(plain)
            ):
                return True
        elif field["type"] == item:
            return True
    return False


def main(paths: list[Path]) -> None:
    """Print the share of accepted columns of each list, its misses, and how confidence and acceptance agree."""
    for path in paths:
        results = [result for cases in read(path) for result in judge(cases)]
        missed = [result for result in results if result[2]]
        confidence: dict[str, list[bool]] = defaultdict(list)
        for case, found, fault in results:
            confidence[found.confidence].append(not fault)
            if fault:
                print(
                    f"  {case.table}.{case.column.name} {case.column.declared}: {fault}; wanted {case.accepted}"
                )
        good = len(results) - len(missed)
        print(f"{path.name}: {good} of {len(results)} columns accepted ({100 * good / len(results):.1f} %)")
        for level, fine in sorted(confidence.items()):
            print(f"  {level}: {sum(fine)} of {len(fine)} accepted")


if __name__ == "__main__":
    named = [Path(item) for item in sys.argv[1:]]
    lists = ("columns_rules", "columns", "columns_sample", "columns_languages")
    main(named or [DATA / f"{item}.txt" for item in lists])

"""Formulas made by chance over columns of every type: each gives what it announced, or says why it cannot."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tests.engine.formulas.reckon import Given, compiled
from webapp.engine import random as engine_random
from webapp.engine.blocks import GenerationContext
from webapp.engine.errors import SpecError
from webapp.engine.formulas.expression import Expression
from webapp.engine.formulas.functions import FUNCTIONS
from webapp.engine.formulas.types import FormulaErrors

LINES = pa.list_(pa.struct([("sku", pa.string()), ("n", pa.int64()), ("d", pa.date32())]))
ATOMS = (
    "a", "m", "t", "k", "b", "d", "ts", "ll", "l", "l[*].n", "l.sku", "l[*].d", "l[0].n", "tm", "z", "1", "2.50", "-3",
    "0", "'x'", "'e'", "' '", "'2024-01-01'", "'DD.MM.YYYY'", "true", "null", "row", "now", "today", "[1, 2]",
    "['x', t]", "[a, m]", "3", "[b, b]", "l[*].n > 1",
)  # fmt: skip
_POINTS = ("2024-02-29T23:59:59.999999", "0001-01-01T00:00:00", "9999-12-31T23:00:00")
SIGNS = ("+", "-", "*", "/", "//", "%", "==", "!=", "<", ">=", "and", "or", "in", "not in")


class Rows(Given):
    """Given columns from row ``start`` on."""

    def __init__(self, columns: dict[str, pa.Array], n: int, start: int) -> None:
        super().__init__(columns, n)
        self.rows = np.arange(start, start + n, dtype=np.uint64)
        self.env = GenerationContext("seed", datetime(2026, 1, 1, tzinfo=UTC))

    def bits(self, salt: int = 0) -> np.ndarray:
        return engine_random.bits(engine_random.derive(np.uint64(5), salt), self.rows)


def columns(pick: random.Random, n: int) -> dict[str, pa.Array]:
    """Columns of every type, a quarter blank."""

    def some(make: object) -> list:
        return [None if pick.random() < 0.25 else make() for _ in range(n)]

    def line() -> dict:
        return {
            "sku": pick.choice(["x", "yé", None, ""]),
            "n": pick.choice([1, -5, None, 2**40]),
            "d": pick.choice([date(2020, 2, 29), None]),
        }

    index = pa.array(some(lambda: pick.randrange(3)), pa.int32())
    days = [date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1969, 7, 20)]
    points = [datetime.fromisoformat(f"{text}+00:00") for text in _POINTS]
    texts = ["", "Ann Lee", "Zoë ß 🙂", "12.5", "-3", "2026-02-28"]
    return {
        "a": pa.array(some(lambda: pick.choice([0, 1, -7, 10**6, 2**62])), pa.int64()),
        "m": pa.array(some(lambda: Decimal(pick.randrange(-(10**5), 10**5)) / 100), pa.decimal128(38, 2)),
        "t": pa.array(some(lambda: pick.choice(texts)), pa.string()),
        "k": pa.DictionaryArray.from_arrays(index, pa.array(["open", "Paid é", "lost"])),
        "b": pa.array(some(lambda: pick.random() < 0.5), pa.bool_()),
        "d": pa.array(some(lambda: pick.choice(days)), pa.date32()),
        "ts": pa.array(some(lambda: pick.choice(points)), pa.timestamp("us", "UTC")),
        "l": pa.array(some(lambda: [line() for _ in range(pick.randrange(4))]), LINES),
        "ll": pa.array(
            some(lambda: [pick.choice([1, 2, None]) for _ in range(pick.randrange(4))]), pa.list_(pa.int64())
        ),
        "tm": pa.array(some(lambda: pick.randrange(86_400 * 10**6)), pa.time64("us")),
        "z": pa.nulls(n),
    }


def source(pick: random.Random, depth: int) -> str:
    """Return a random formula with up to ``depth`` levels."""
    if depth == 0 or pick.random() < 0.2:
        return pick.choice(ATOMS)
    kind, parts = pick.random(), [source(pick, depth - 1) for _ in range(3)]
    if kind < 0.3:
        return f"({parts[0]} {pick.choice(SIGNS)} {parts[1]})"
    if kind < 0.35:
        return "({} if {} else {})".format(*parts)
    if kind < 0.4:
        return f"({pick.choice(['-', 'not '])}{parts[0]})"
    if kind < 0.45:
        return f"{parts[0]}[{pick.choice(['0', '-1', '1:3', '2'])}]"
    function = pick.choice(FUNCTIONS)
    most = function.min_arguments + 2 if function.max_arguments is None else function.max_arguments
    count = pick.randint(function.min_arguments, most)
    return f"{function.name}({', '.join(source(pick, depth - 1) for _ in range(count))})"


def keeps_its_word(made: Expression, given: dict[str, pa.Array], n: int, pick: random.Random) -> bool:
    """Checks type, length and bounds, and that part of the rows is part of the whole; False where a row is refused."""
    try:
        whole = made.column(Rows(given, n, 0))
    except SpecError:
        return False
    whole.validate(full=True)
    assert (whole.type, len(whole)) == (made.dtype, n)
    values = [value for value in whole.to_pylist() if value is not None]
    if made.max_length is not None:
        assert all(len(value) <= made.max_length for value in values)
    if made.bounds is not None:
        low, high = made.bounds
        assert all(low <= Decimal(value).scaleb(made.kind.places) <= high for value in values)
    start = pick.randint(0, n)
    count = pick.randint(0, n - start)
    part = made.column(
        Rows({name: column.slice(start, count) for name, column in given.items()}, count, start)
    )
    assert part.equals(whole.slice(start, count))
    return True


@pytest.mark.parametrize("seed", range(12))
def test_a_formula_returns_its_announced_type_or_an_error(seed):
    pick, stored = random.Random(seed), 0
    for _ in range(400):
        n = pick.choice([0, 1, 2, 7, 40])
        value, text = columns(pick, n), source(pick, pick.randint(1, 3))
        try:
            result = compiled(text, value)
        except FormulaErrors as refused:
            reported = refused.errors
        else:
            stored += keeps_its_word(result, value, n, pick)
            continue
        assert all(error.message and 1 <= error.position <= len(text) for error in reported), text
    assert stored > 80

"""Formulas over given columns, and faults of formulas in templates."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.engine.types.made import bound, table
from webapp.engine.errors import SpecError
from webapp.engine.formulas import types as formulas_types
from webapp.engine.formulas.expression import ColumnResolver, Expression, compile_with
from webapp.errors import Fault


class Given:
    """Stands for the rows of a block: columns as they are given."""

    def __init__(self, columns: dict[str, pa.Array], n: int) -> None:
        self._columns, self.n = columns, n

    def column(self, name: str) -> pa.Array:
        return self._columns[name]


def compiled(source: str, columns: dict[str, pa.Array]) -> Expression:
    """A formula over columns of these types."""
    kinds = {name: formulas_types.from_arrow(column.type, origin=name) for name, column in columns.items()}
    return compile_with(ColumnResolver(kinds), source, path="formula")


def reckoned(source: str, **columns: Any) -> list:
    """What a formula gives over ``columns``, lists of values or arrays, as Python values."""
    arrays = {name: pa.array(column) for name, column in columns.items()}
    n = len(next(iter(arrays.values()))) if arrays else 1
    made = compiled(source, arrays).column(Given(arrays, n))
    made.validate(full=True)
    assert len(made) == n
    return made.to_pylist()


def made(fields: list[dict], name: str, count: int = 5, start: int = 0, **more: Any) -> list:
    """Rows of one field of a template."""
    return table(bound(fields, **more), start, count)[name]


def formula(expression: str, name: str = "r", **common: Any) -> dict:
    """A field of type formula."""
    return {"name": name, "type": "formula", "options": {"expression": expression}, **common}


def fault(expression: str, *fields: dict) -> Fault:
    """The one fault of a formula field."""
    (found,) = faults(expression, *fields)
    return found


def faults(expression: str, *fields: dict) -> list[Fault]:
    """Return all errors of a formula field that is used together with ``fields``."""
    try:
        bound([*fields, formula(expression)])
    except SpecError as error:
        return error.faults
    return []

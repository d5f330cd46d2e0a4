"""Where the rows of a push come from: a template under its pins, or rows that were given with the request.

Both answer any list of row numbers, in any order, however often: what was made once is made again, never kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine import cells, records
from webapp.engine.block import Block, Bound, Draws, Env
from webapp.engine.expressions import types
from webapp.engine.expressions.errors import FormulaError, FormulaErrors
from webapp.engine.expressions.expression import Columns, Expression, compile_with, kind_of
from webapp.engine.expressions.types import Kind
from webapp.engine.fields.base import RELATION
from webapp.engine.formats.nested import is_json_text
from webapp.engine.layers import Column
from webapp.engine.leaks import Watch
from webapp.engine.mixed import clean_type, is_mixed
from webapp.errors import Fault, did_you_mean


class View(ABC):
    """Some rows: their columns are made as they are asked for, and once."""

    rows: np.ndarray
    """``uint64[n]``, from 0."""

    @abstractmethod
    def column(self, name: str) -> pa.Array:
        """A field of the rows, or a member of an object by its path (`address.city`)."""

    def shown(self, name: str) -> pa.Array:
        """The same as it leaves: with the values that are bad on purpose."""
        return self.column(name)

    def parents(self, field: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Which rows of the other template a reference shows (``uint64[n]``), and where it shows any (None:
        everywhere)."""
        raise KeyError(field)


@dataclass(frozen=True, slots=True)
class Field:
    """What may be sent of a row. `name` is a path; `column` the engine's own, where there is one."""

    name: str
    dtype: pa.DataType
    label: str = ""
    column: Column | None = None
    sensitive: bool = False
    hidden: bool = False
    longest: int | None = None
    """Characters of the longest text, where that is known."""
    json: bool = False
    """Texts are JSON, to be embedded as it is."""
    mixed: bool = False
    """Some cells are text, bad on purpose, where values of another type belong."""


class Maker(ABC):
    """Rows by their numbers."""

    env: Env
    fields: Mapping[str, Field]
    """By path: the visible ones, the members of objects after the object; those that are hidden last."""
    block_rows: int
    """The most rows that are worth making at once."""
    watch: Watch | None = None
    """Who looks for real values in what leaves, and what was found so far."""

    @abstractmethod
    def at(self, rows: np.ndarray) -> View:
        """Any rows (``uint64[n]``, from 0)."""

    def spoils(self, names: Iterable[str]) -> bool:
        """Whether any of these fields has values that are bad on purpose."""
        return False

    def records(self, offset: int, count: int, names: Collection[str]) -> int:
        """The objects in arrays of these fields in ``count`` rows after ``offset``: they count as rows."""
        return 0

    def bad_rows(self, rows: np.ndarray, names: Collection[str]) -> np.ndarray:
        """``bool[n]``: the rows that are bad on purpose in one of these fields."""
        return np.zeros(rows.size, np.bool_)

    @abstractmethod
    def kinds(self) -> dict[str, Kind]:
        """The columns that formulas may read."""

    def formula(self, source: str, path: str) -> Expression:
        """A formula over the fields. Raises `Faulty` with every fault of it."""
        try:
            return compile_with(Columns(self.kinds()), source, path=path)
        except FormulaErrors as errors:
            raise Faulty(
                [Fault(path, one.code, one.message, one.hint, position=one.position) for one in errors.errors]
            ) from None


class Faulty(Exception):
    """Faults of a request."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = list(faults)
        super().__init__(str(faults))


class Reckoned(Draws):
    """What a formula sees of some rows: `webapp.engine.block.Cells` for columns that no template has."""

    __slots__ = ("_view", "env")

    def __init__(self, view: View, env: Env, name: str) -> None:
        super().__init__(cells.key(env.seed, "computed", name), view.rows)
        self._view, self.env = view, env

    def column(self, name: str) -> pa.Array:
        """A field of the rows."""
        return self._view.column(name)


# --- Of a template ----------------------------------------------------------------------------------------------


class TemplateRows(Maker):
    """The rows of a bound plan."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self.env, self.watch = bound.env, bound.watch
        self.block_rows = max(1, limits.BLOCK_LEAVES // bound.plan.leaves)
        self.fields = {one.name: one for one in _fields_of(bound)}

    def at(self, rows: np.ndarray) -> View:
        return _TemplateView(self._bound.at(rows), self._bound.watch)

    def spoils(self, names: Iterable[str]) -> bool:
        return self._bound.bad is not None and any(map(self._bound.bad.has, names))

    def records(self, offset: int, count: int, names: Collection[str]) -> int:
        return records.charged(
            self._bound, offset, count, {name.partition(".")[0] for name in names} | {*names}
        )

    def bad_rows(self, rows: np.ndarray, names: Collection[str]) -> np.ndarray:
        bad = self._bound.bad
        return np.zeros(rows.size, np.bool_) if bad is None else bad.bad_rows(rows, names)

    def kinds(self) -> dict[str, Kind]:
        found = {}
        for name, column in self._bound.layer.columns.items():
            try:
                found[name] = kind_of(column, name)
            except FormulaError:  # of a type that formulas cannot read
                continue
        return found


class _TemplateView(View):
    def __init__(self, block: Block, watch: Watch | None) -> None:
        self._block, self.rows, self._watch = block, block.rows, watch
        self._looked: set[str] = set()
        self._real: dict[str, Any] = {}

    def column(self, name: str) -> pa.Array:
        first, _, inner = name.partition(".")
        if not inner or name in self._block.layer.columns:
            return self._column(name)
        return pc.struct_field(self._column(first), inner.split("."))

    def shown(self, name: str) -> pa.Array:
        made, bad = self.column(name), self._block.bound.bad
        return made if bad is None or not bad.has(name) else bad.column(self._block, name, made)

    def _column(self, name: str) -> pa.Array:
        made = self._block.column(name)
        if self._watch is not None and name not in self._looked:
            self._watch.check(self.rows, {name: made}, self._real)
            self._looked.add(name)
        return made

    def parents(self, field: str) -> tuple[np.ndarray, np.ndarray | None]:
        spec = self._block.layer.columns[field].spec
        things = self._block.group(spec.group or RELATION, RELATION)
        return things.rows, things.valid


def _fields_of(bound: Bound) -> Iterable[Field]:
    layer = bound.layer
    for field in bound.schema:
        column = layer.columns[field.name]
        yield _field(field, column, column.spec.type.label)
        yield from _members(field.name, field.type, column)
    for name, column in layer.columns.items():
        if name not in layer.visible:
            yield _field(column.arrow_field(), column, column.spec.type.label, hidden=True)


def _field(field: pa.Field, column: Column, label: str, *, hidden: bool = False) -> Field:
    told = (field.metadata or {}).get(b"max_length")
    longest = int(told) if told else None
    sensitive = bool(column.spec.common.sensitive)
    dtype, mixed = clean_type(plain(field.type)), is_mixed(field.type)
    return Field(field.name, dtype, label, column, sensitive, hidden, longest, is_json_text(field), mixed)


def _members(path: str, dtype: pa.DataType, column: Column) -> Iterable[Field]:
    if not pa.types.is_struct(dtype):
        return
    sensitive = bool(column.spec.common.sensitive)
    for child in dtype:
        told = (child.metadata or {}).get(b"max_length")
        name = f"{path}.{child.name}"
        longest = int(told) if told else None
        yield Field(name, plain(child.type), "", None, sensitive, False, longest, is_json_text(child))
        yield from _members(name, child.type, column)


def plain(dtype: pa.DataType) -> pa.DataType:
    """A type without its dictionary."""
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


# --- Given with the request -------------------------------------------------------------------------------------


class GivenRows(Maker):
    """Rows that came with the request. `table` has a column for each key."""

    def __init__(self, table: pa.Table, seed: str, now: datetime) -> None:
        self._table = table.combine_chunks()
        self.env = Env(seed, now)
        self.block_rows = limits.PUSH_CHUNK_ROWS
        self.fields = {}
        for field in table.schema:
            self.fields[field.name] = Field(field.name, field.type, json=is_json_text(field))

    def at(self, rows: np.ndarray) -> View:
        return _GivenView(self._table, rows)

    def kinds(self) -> dict[str, Kind]:
        found = {}
        for field in self._table.schema:
            try:
                found[field.name] = types.of_arrow(field.type, origin=field.name)
            except TypeError:
                continue
        return found


class _GivenView(View):
    def __init__(self, table: pa.Table, rows: np.ndarray) -> None:
        self._table, self.rows = table, rows
        self._places = pa.array(rows)

    def column(self, name: str) -> pa.Array:
        taken = self._table.column(name).take(self._places)
        return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken


_WHOLE: Final = range(-(2**63), 2**63)
JSON_TEXT: Final = {b"json": b"1"}
"""What Arrow's fields say of JSON text (`engine.formats.nested.is_json_text`)."""


def given_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of JSON as columns, one for each key in the order of their coming; a key that a row has not is null.

    Numbers with a point come as doubles, whole ones beyond 64 bits as decimals, objects and arrays as JSON text,
    lists of single values as lists; values of several kinds in one column as text. Columns of JSON text alone say so.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    made = [_column([row.get(name) for row in rows]) for name in names]
    fields = [
        pa.field(name, column.type, metadata=JSON_TEXT if _is_json([row.get(name) for row in rows]) else None)
        for name, column in zip(names, made, strict=True)
    ]
    return pa.table(made, schema=pa.schema(fields))


def _is_json(values: Sequence[Any]) -> bool:
    kinds = {kind_of_value(value) for value in values if value is not None}
    return "nested" in kinds and kinds <= {"nested", "list", "empty"}


def _column(values: list[Any]) -> pa.Array:
    kinds = {kind_of_value(value) for value in values if value is not None}
    if not kinds:
        return pa.array(values, pa.string())
    if kinds <= {"whole", "number"} and "number" in kinds:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if kinds == {"whole"}:
        return pa.array(values, pa.int64())
    if kinds <= {"whole", "long"}:
        return pa.array([None if value is None else Decimal(value) for value in values], pa.decimal128(38, 0))
    if kinds == {"truth"}:
        return pa.array(values, pa.bool_())
    if kinds <= {"list", "empty"}:
        try:
            return pa.array(values) if "list" in kinds else pa.array(values, pa.list_(pa.string()))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            pass
    return pa.array([None if value is None else text_of(value) for value in values], pa.string())


def kind_of_value(value: Any) -> str:
    """What a value of JSON is: truth, whole, long, number, text, list, empty (a list of nulls), nested."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int):
        return "whole" if value in _WHOLE else "long" if abs(value) < 10**38 else "text"
    if isinstance(value, float):
        return "number"
    if isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
        return "list" if any(one is not None for one in value) else "empty"
    return "text" if isinstance(value, str) else "nested"


def text_of(value: Any) -> str:
    """A value of JSON as a text; objects and arrays as JSON."""
    if isinstance(value, str):
        return value
    return (
        str(value) if isinstance(value, int) and not isinstance(value, bool) else orjson.dumps(value).decode()
    )


def unknown_field(path: str, name: str, fields: Iterable[str]) -> Fault:
    """The fault of a field that is not there."""
    text = f'There is no field "{name}" here.'
    return Fault(path, "unknown_field", text, did_you_mean(name, fields))

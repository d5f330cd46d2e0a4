"""The rows of a push: generated from a template with its pins, or sent with the request.

Both can return any row numbers in any order, repeatedly: rows are generated again, never stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine import random, record_counts
from webapp.engine.blocks import Block, BoundPlan, GenerationContext
from webapp.engine.errors import SpecError
from webapp.engine.formats.nested import is_json_text
from webapp.engine.formulas import types as formulas_types
from webapp.engine.formulas.expression import ColumnResolver, Expression, compile_with, kind_of
from webapp.engine.formulas.types import FormulaError, FormulaErrors, Kind
from webapp.engine.layers import Column
from webapp.engine.leaks import LeakChecker
from webapp.engine.mixed_columns import clean_type, is_mixed
from webapp.engine.random import RandomStream
from webapp.engine.relations import RELATION
from webapp.errors import Fault, did_you_mean
from webapp.sources.services.files import kind_of_value, text_of


class RowBatch(ABC):
    """Some rows. Columns are generated on first use."""

    rows: np.ndarray
    """``uint64[n]``, from 0."""

    @abstractmethod
    def column(self, name: str) -> pa.Array:
        """Return a field of the rows, or a member of an object by its path (`address.city`)."""

    def output_column(self, name: str) -> pa.Array:
        """Return the column as it is sent: with injected invalid values."""
        return self.column(name)

    def parent_rows(self, field: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Return which rows of the other template a reference points to (``uint64[n]``), and where it is not
        null (None: everywhere)."""
        raise KeyError(field)


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the rows. `name` is a path; `column` is the engine's column, if there is one."""

    name: str
    dtype: pa.DataType
    label: str = ""
    column: Column | None = None
    sensitive: bool = False
    hidden: bool = False
    max_length: int | None = None
    """Length of the longest text in characters, if known."""
    json: bool = False
    """Texts contain JSON, to be embedded unquoted."""
    mixed: bool = False
    """Some cells are injected invalid text in a column of another type."""


class RowGenerator(ABC):
    """Rows by their numbers."""

    env: GenerationContext
    fields: Mapping[str, Field]
    """By path: visible ones, with the members of an object after it; hidden ones last."""
    block_rows: int
    """The most rows that should be generated together."""
    watch: LeakChecker | None = None
    """The leak check of the output, with its findings so far."""

    @abstractmethod
    def batch_at(self, rows: np.ndarray) -> RowBatch:
        """Return any rows (``uint64[n]``, from 0)."""

    def has_invalid_values(self, names: Iterable[str]) -> bool:
        """Return whether any of these fields has injected invalid values."""
        return False

    def can_generate(self, offset: int, count: int) -> bool:
        """Return whether there are ``count`` rows after ``offset``: unique fields may have fewer values."""
        return False

    def count_records(self, offset: int, count: int, names: Collection[str]) -> int:
        """Count the objects in arrays of these fields in ``count`` rows after ``offset``: they count as rows."""
        return 0

    def invalid_rows(self, rows: np.ndarray, names: Collection[str]) -> np.ndarray:
        """Return ``bool[n]``: the rows with an injected invalid value in one of these fields."""
        return np.zeros(rows.size, np.bool_)

    @abstractmethod
    def formula_columns(self) -> dict[str, Kind]:
        """Return the columns that formulas may read."""

    def compile_formula(self, source: str, path: str) -> Expression:
        """Compile a formula over the fields. Raises `InvalidRowsError` with all faults."""
        try:
            return compile_with(ColumnResolver(self.formula_columns()), source, path=path)
        except FormulaErrors as errors:
            raise InvalidRowsError(
                [
                    Fault(path, error.code, error.message, error.hint, position=error.position)
                    for error in errors.errors
                ]
            ) from None


class InvalidRowsError(Exception):
    """Faults of a request."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = list(faults)
        super().__init__(str(faults))


class FormulaContext(RandomStream):
    """Provides rows to formulas for columns that no template has."""

    __slots__ = ("_view", "env")

    def __init__(self, view: RowBatch, env: GenerationContext, name: str) -> None:
        super().__init__(random.key(env.seed, "computed", name), view.rows)
        self._view, self.env = view, env

    def column(self, name: str) -> pa.Array:
        """Return a field of the rows."""
        return self._view.column(name)


# --- From a template ---


class TemplateRows(RowGenerator):
    """The rows of a bound plan."""

    def __init__(self, bound: BoundPlan) -> None:
        self._bound = bound
        self.env, self.watch = bound.env, bound.leak_checker
        self.block_rows = max(1, limits.BLOCK_LEAVES // bound.plan.max_cells_per_row)
        self.fields = {item.name: item for item in _fields_of(bound)}

    def batch_at(self, rows: np.ndarray) -> RowBatch:
        return _TemplateBatch(self._bound.block_at(rows), self._bound.leak_checker)

    def has_invalid_values(self, names: Iterable[str]) -> bool:
        return self._bound.invalid_data_injector is not None and any(
            map(self._bound.invalid_data_injector.has_field, names)
        )

    def can_generate(self, offset: int, count: int) -> bool:
        try:
            self._bound.check(offset, count)
        except SpecError:
            return False
        return True

    def count_records(self, offset: int, count: int, names: Collection[str]) -> int:
        return record_counts.count_records(
            self._bound, offset, count, {name.partition(".")[0] for name in names} | {*names}
        )

    def invalid_rows(self, rows: np.ndarray, names: Collection[str]) -> np.ndarray:
        bad = self._bound.invalid_data_injector
        return np.zeros(rows.size, np.bool_) if bad is None else bad.bad_rows(rows, names)

    def formula_columns(self) -> dict[str, Kind]:
        found = {}
        for name, column in self._bound.layer.columns.items():
            try:
                found[name] = kind_of(column, name)
            except FormulaError:  # a type that formulas cannot read
                continue
        return found


class _TemplateBatch(RowBatch):
    def __init__(self, block: Block, watch: LeakChecker | None) -> None:
        self._block, self.rows, self._watch = block, block.rows, watch
        self._checked: set[str] = set()
        self._source_values: dict[str, Any] = {}

    def column(self, name: str) -> pa.Array:
        first, _, inner = name.partition(".")
        if not inner or name in self._block.layer.columns:
            return self._column(name)
        return pc.struct_field(self._column(first), inner.split("."))

    def output_column(self, name: str) -> pa.Array:
        values, bad = self.column(name), self._block.bound.invalid_data_injector
        return (
            values if bad is None or not bad.has_field(name) else bad.inject_column(self._block, name, values)
        )

    def _column(self, name: str) -> pa.Array:
        values = self._block.column(name)
        if self._watch is not None and name not in self._checked:
            self._watch.check(self.rows, {name: values}, self._source_values)
            self._checked.add(name)
        return values

    def parent_rows(self, field: str) -> tuple[np.ndarray, np.ndarray | None]:
        spec = self._block.layer.columns[field].spec
        parent_rows = self._block.group(spec.group or RELATION, RELATION)
        return parent_rows.rows, parent_rows.valid


def _fields_of(bound: BoundPlan) -> Iterable[Field]:
    layer = bound.layer
    for field in bound.schema:
        column = layer.columns[field.name]
        yield _build_field(field, column, column.spec.type.label)
        yield from _nested_fields(field.name, field.type, column)
    for name, column in layer.columns.items():
        if name not in layer.visible:
            yield _build_field(column.arrow_field(), column, column.spec.type.label, hidden=True)


def _build_field(field: pa.Field, column: Column, label: str, *, hidden: bool = False) -> Field:
    max_length = (field.metadata or {}).get(b"max_length")
    longest = int(max_length) if max_length else None
    sensitive = bool(column.spec.common.sensitive)
    dtype, mixed = clean_type(decoded_type(field.type)), is_mixed(field.type)
    return Field(field.name, dtype, label, column, sensitive, hidden, longest, is_json_text(field), mixed)


def _nested_fields(path: str, dtype: pa.DataType, column: Column) -> Iterable[Field]:
    if not pa.types.is_struct(dtype):
        return
    sensitive = bool(column.spec.common.sensitive)
    for child in dtype:
        max_length = (child.metadata or {}).get(b"max_length")
        name = f"{path}.{child.name}"
        longest = int(max_length) if max_length else None
        yield Field(name, decoded_type(child.type), "", None, sensitive, False, longest, is_json_text(child))
        yield from _nested_fields(name, child.type, column)


def decoded_type(dtype: pa.DataType) -> pa.DataType:
    """Return a type without its dictionary encoding."""
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


# --- From the request ---


class SubmittedRows(RowGenerator):
    """Rows that were sent with the request. `table` has a column for each key."""

    def __init__(self, table: pa.Table, seed: str, now: datetime) -> None:
        self._table = table.combine_chunks()
        self.env = GenerationContext(seed, now)
        self.block_rows = limits.PUSH_CHUNK_ROWS
        self.fields = {}
        for field in table.schema:
            self.fields[field.name] = Field(field.name, field.type, json=is_json_text(field))

    def batch_at(self, rows: np.ndarray) -> RowBatch:
        return _SubmittedBatch(self._table, rows)

    def formula_columns(self) -> dict[str, Kind]:
        found = {}
        for field in self._table.schema:
            try:
                found[field.name] = formulas_types.from_arrow(field.type, origin=field.name)
            except TypeError:
                continue
        return found


class _SubmittedBatch(RowBatch):
    def __init__(self, table: pa.Table, rows: np.ndarray) -> None:
        self._table, self.rows = table, rows
        self._indices = pa.array(rows)

    def column(self, name: str) -> pa.Array:
        taken = self._table.column(name).take(self._indices)
        return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken


JSON_TEXT: Final = {b"json": b"1"}
"""Whether the field's metadata marks JSON text (`engine.formats.nested.is_json_text`)."""


def table_of_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Convert JSON rows to columns, one per key in order of first occurrence. Missing keys are null.

    Numbers with a decimal point become doubles, integers beyond 64 bits decimals, objects and arrays JSON
    text, lists of scalars lists, mixed types in one column text. Only columns of JSON text are marked as
    such.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    arrays = [_build_array([row.get(name) for row in rows]) for name in names]
    fields = [
        pa.field(name, column.type, metadata=JSON_TEXT if _is_json([row.get(name) for row in rows]) else None)
        for name, column in zip(names, arrays, strict=True)
    ]
    return pa.table(arrays, schema=pa.schema(fields))


def _is_json(values: Sequence[Any]) -> bool:
    kinds = {kind_of_value(value) for value in values if value is not None}
    return "nested" in kinds and kinds <= {"nested", "list", "empty"}


def _build_array(values: list[Any]) -> pa.Array:
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


def unknown_field_fault(path: str, name: str, fields: Iterable[str]) -> Fault:
    """Return the fault for an unknown field."""
    text = f'There is no field "{name}".'
    return Fault(path, "unknown_field", text, did_you_mean(name, fields))

"""Values that hang on rows before their own: the one some rows back, and the sum so far."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine import budget, postprocess, text, totals
from webapp.engine.fields.base import RELATION, FieldType, OptionsModel
from webapp.engine.fields.children import cut, dealt_in
from webapp.engine.kinship import Unrelated

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.layers import Column
    from webapp.engine.spec import FieldSpec

_LARGEST = 2**63 - 1
_SOURCES = AliasChoices("field", "source", "source_field")


class Reading(OptionsModel):
    """Which field is read."""

    field: str


class Backwards(FieldType):
    """A column that reads another one at earlier rows. Reaching itself is a cycle, which the compiler refuses."""

    category = "logic"
    options: Reading
    _read_as: pa.DataType

    def __init__(self, field: FieldSpec, options: Reading, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.null()
        if compiler.in_array:
            message = f"{self.label} goes by rows; the elements of an array have none of their own."
            hint = "Put the field beside the array, or use a dataset with a template of its own for the elements."
            compiler.fault(field, "", "not_for_this_type", message, hint)
        source = compiler.require(field, "options.field", options.field)
        self.needs = (options.field,)
        if source is not None:
            self.dtype = source.dtype
            self.read(source, compiler)

    @abstractmethod
    def read(self, source: Column, compiler: Compiler) -> None:
        """Takes what it needs to know of the column it reads."""

    def refuses(self, name: str, fixed: pa.Array) -> str:
        if name == self.options.field and fixed.type != self._read_as:
            return f'"{self.field.name}" reads it as {_spoken(self._read_as)}.'
        return ""

    def unique_hint(self) -> str:
        return "Make the field it reads unique instead."


def _spoken(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "whole numbers"
    if pa.types.is_decimal(kind):
        return f"numbers with {kind.scale} decimals"
    return "objects or arrays" if pa.types.is_nested(kind) else f"values of type {kind}"


class Previous(Backwards):
    """Another field of the row ``step`` rows before; ``default`` in the first rows, which have none."""

    name = "previous"
    label = "Previous row"
    description = "Another field's value in the row before, or some rows before."
    aliases = ("previous value", "prev", "lag", "previous row value", "row before")
    example = 417

    class Options(Reading):
        field: str = Field(
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            validation_alias=_SOURCES,
            description="Name of the field to read.",
        )
        step: int = Field(1, ge=1, le=limits.MAX_INTEGER, description="How many rows back.")
        default: Any = Field(
            None, description="Written in the first rows, which have none so far back; blank if left out."
        )

    options: Options

    def read(self, source: Column, compiler: Compiler) -> None:
        self._source, self._read_as = source, source.dtype
        told = source.arrow_field().metadata or {}
        self.json_text = b"json" in told
        default = self.options.default
        self._default = postprocess.fixed(default, self.dtype)
        if default is not None and self._default.type != self.dtype:
            message = f'"{self.options.field}" holds {_spoken(self.dtype)}, and this is something else.'
            compiler.fault(
                self.field, "options.default", "wrong_type", message, "Write a value of the same kind."
            )
        if b"max_length" in told:
            self.max_length = max(int(told[b"max_length"]), len(default) if isinstance(default, str) else 0)
        self._count(compiler)

    def _count(self, compiler: Compiler) -> None:
        """Refuses templates whose blocks would make too many columns at earlier rows."""
        pending = [(self.options.field, self.options.step)]
        while pending and len(compiler.lookbacks) <= limits.MAX_LOOKBACKS:
            name, back = pending.pop()
            place = (f"{self.field.path.rpartition('[')[0]}.{name}", back)
            column = (
                None if place in compiler.lookbacks else compiler.require(self.field, "options.field", name)
            )
            if column is not None:
                compiler.lookbacks.add(place)
                further = back + (column.type.options.step if isinstance(column.type, Previous) else 0)
                own = () if column.formula is None else column.formula.needs
                pending.extend((needed, further) for needed in (*column.type.needs, *own))
        if len(compiler.lookbacks) > limits.MAX_LOOKBACKS:
            message = (
                f"Fields that read earlier rows need more than {limits.MAX_LOOKBACKS:,} further columns."
            )
            compiler.fault(
                self.field, "options.step", "too_many_cells", message, "Let them read fewer rows back."
            )

    def fill(self, cells: Cells) -> pa.Array:
        step = np.uint64(self.options.step)
        missing = cells.rows < step
        if not missing.any():
            return cells.at_rows(cells.rows - step).column(self.options.field)
        there = np.where(missing, np.uint64(0), cells.rows - step)
        found = cells.at_rows(there).column(self.options.field)
        if self.options.default is None:
            return postprocess.blanked(found, missing)
        if pa.types.is_nested(self.dtype):
            both = pa.concat_arrays([found, self._default])
            return both.take(pa.array(np.where(missing, len(found), np.arange(len(found)))))
        return pc.if_else(pa.array(missing), self._default[0], text.decode(found))

    def bounds(self, rows: int) -> tuple[int, int] | None:
        found = self._source.bounds(rows)
        units = _units(self._default)
        if found is None or units is None:
            return found
        return min(found[0], int(units[0])), max(found[1], int(units[0]))


class RunningTotal(Backwards):
    """The sum of another field from row 0 to this row, exact; blanks count as nothing."""

    name = "running_total"
    label = "Running total"
    description = "The sum of another field from the first row up to this one."
    aliases = ("cumulative sum", "cumulative total", "running sum", "balance")
    example = 1042

    class Options(Reading):
        field: str = Field(
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            validation_alias=_SOURCES,
            description="Name of the field to add up: whole numbers, or decimals with a fixed number of places.",
        )
        within: Literal["table", "parent"] = Field(
            "table",
            description="Where it begins: with the first row, or with the first child of each parent.",
        )

    options: Options

    def read(self, source: Column, compiler: Compiler) -> None:
        self._read_as = source.dtype
        self._bounds: tuple[int, int] | None = None
        self._length = limits.TOTAL_ROWS
        self._owner: str | None = None
        if self.options.within == "parent":
            self._owned(compiler)
        name = self.options.field
        if not (pa.types.is_integer(source.dtype) or pa.types.is_decimal(source.dtype)):
            message = f'"{name}" holds {_spoken(source.dtype)}, which cannot be added up exactly.'
            hint = "Name a number without stringify, prefix, suffix and text_case."
            compiler.fault(self.field, "options.field", "wrong_type", message, hint)
            return
        found = source.bounds(limits.TOTAL_ROWS)
        if found is None:
            message = (
                f'How large the values of "{name}" can be is not known, so that their sum might pass 64 bits.'
            )
            hint = "Name a field of type number, or another one with a least and a largest value."
            compiler.fault(self.field, "options.field", "unbounded", message, hint)
            return
        self._bounds = min(0, found[0]) * self._length, max(0, found[1]) * self._length
        if max(map(abs, self._bounds)) > _LARGEST:
            message = f'The sum of "{name}" over {self._length:,} rows can pass what 64 bits hold.'
            compiler.fault(
                self.field, "options.field", "out_of_range", message, "Lower its max, or its decimals."
            )
        self.dtype = (
            pa.decimal128(38, source.dtype.scale) if pa.types.is_decimal(source.dtype) else pa.int64()
        )

    def prepare(self, env: Env) -> list[totals.Totals]:
        return []

    def _owned(self, compiler: Compiler) -> None:
        """Whose children the rows are."""
        owner = compiler.kin.owner(compiler.address)
        try:
            counts = compiler.kin.counts(compiler.address)
        except Unrelated:
            return  # the reference says so
        if owner is None or counts is None:
            text_ = "Only rows that are children by cardinality have a total within their parent."
            compiler.fault(
                self.field, "options.within", "no_parent", text_, "Add a reference with cardinality."
            )
            return
        self._owner = owner[0].group or RELATION
        self._length = self.expansion = max(1, counts.max)
        compiler.relation_of(compiler.address, self._owner)

    def rows_in(self, state: Any) -> int | None:
        return limits.TOTAL_ROWS if self._owner is None else None

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return self._bounds

    def _within(self, cells: Cells, owner: str) -> np.ndarray:
        """``int64[n]``: what the siblings up to each row have together."""
        things = cells.thing(owner, RELATION)
        dealt = dealt_in(cells.bound, owner)
        parents, which = np.unique(things.rows, return_inverse=True)
        counts = dealt.counts(parents)
        made = np.empty(cells.n, np.int64)
        for piece in cut(counts):
            here = np.flatnonzero((which >= piece.start) & (which < piece.stop))
            rows, sizes = dealt.children(parents[piece])
            values = _numbers(_column(cells, self.options.field, rows))
            running = np.cumsum(values)  # may wrap round; the differences below do not
            first = (np.cumsum(sizes) - sizes)[which[here] - piece.start]
            made[here] = running[first + things.position[here]] - running[first] + values[first]
        return made

    def refuses(self, name: str, fixed: pa.Array) -> str:
        units = _units(fixed)
        if units is not None and abs(int(units[0])) > _LARGEST // self._length:
            return f'"{self.field.name}" adds it up, and the sum can pass what 64 bits hold.'
        return super().refuses(name, fixed)

    def fill(self, cells: Cells) -> pa.Array:
        if self._owner is not None:
            return self._typed(self._within(cells, self._owner))
        # The request's own list holds what it found, so that the key is put together once.
        known = cells.state or _found(cells)
        name = self.options.field

        def units(start: int, count: int) -> np.ndarray:
            end = start + count
            return np.concatenate(
                [
                    _numbers(
                        _column(cells, name, np.arange(at, min(at + limits.BLOCK_ROWS, end), dtype=np.uint64))
                    )
                    for at in range(start, end, limits.BLOCK_ROWS)
                ]
            )

        sums = known[0].through(cells.rows, lambda: _numbers(cells.column(name)), units)
        return self._typed(sums)

    def _typed(self, sums: np.ndarray) -> pa.Array:
        return text.decimals(sums, self.dtype.scale) if pa.types.is_decimal(self.dtype) else pa.array(sums)


def _found(cells: Cells) -> list[totals.Totals]:
    bound = cells.bound
    fixed = tuple(
        sorted((name, str(pool.type), repr(pool[0].as_py())) for name, pool in bound.overrides.items())
    )
    cells.state.append(totals.kept((id(bound.layer), bound.env, fixed, cells.path), bound.layer))
    return cells.state


def _column(cells: Cells, name: str, rows: np.ndarray) -> pa.Array:
    return budget.in_parts(lambda part: cells.at_rows(part, keep=False).column(name), rows)


def _numbers(column: pa.Array) -> np.ndarray:
    found = _units(column)
    assert found is not None  # `read` rejects what is no number
    return found


def _units(column: pa.Array) -> np.ndarray | None:
    """``int64[n]`` of units of the last decimal, 0 where blank; None for what is no number."""
    plain = text.decode(column)
    kind = plain.type
    if pa.types.is_decimal(kind):
        units = text.decimal_units(plain)
        return np.where(plain.is_valid().to_numpy(False), units, 0) if plain.null_count else units
    if not pa.types.is_integer(kind):
        return None
    plain = pc.fill_null(plain, 0) if plain.null_count else plain
    return plain.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)

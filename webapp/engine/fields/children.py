"""Fields of a parent that follow from its children: totals of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp import limits
from webapp.engine import budget, folding, picks, postprocess, text
from webapp.engine.cardinality import Cardinality, Counts
from webapp.engine.errors import SpecError
from webapp.engine.fields.base import RELATION, FieldType, OptionsModel
from webapp.engine.fields.relation_group import Relation
from webapp.engine.kinship import Unrelated
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Block, Bound, Cells
    from webapp.engine.budget import Meter
    from webapp.engine.compiler import Compiler
    from webapp.engine.layers import Column
    from webapp.engine.spec import FieldSpec

Function = Literal["sum", "count", "min", "max", "avg", "first", "any", "span"]
_LARGEST = 2**63 - 1


def child_of(field: FieldSpec, asked: str, compiler: Compiler) -> tuple[str, FieldSpec] | None:
    """Address of the template ``asked``, which ``field`` names, and its field that makes its rows children of this
    template's; None after a fault."""
    address = compiler.kin.address(asked, compiler.address)
    if address is None:
        text = f'There is no template "{asked}".'
        compiler.fault(field, "options.template_id", "unknown_template", text, "Name one by its id.")
        return None
    owner = compiler.kin.children(address, compiler.address)
    if owner is None:
        text = f'"{compiler.kin.known(address).name}" has no reference with cardinality to this template.'
        hint = "Give its reference a cardinality: over a free reference every row would have to be looked at."
        compiler.fault(field, "options.template_id", "no_cardinality", text, hint)
        return None
    return address, owner


def first_children(counts: Counts, mixed: bool, parents: int) -> int:
    """How many of the first rows of a child the first ``parents`` rows of its parent may have."""
    if mixed:
        return counts.total
    begun = -(-parents // limits.PARENT_BLOCK)
    whole = counts.begin(begun) if begun <= counts.full else counts.total
    return min(whole, parents * counts.max)


class Aggregate(FieldType):
    """The children of a row, added up or counted."""

    name = "aggregate"
    label = "Total of children"
    category = "logic"
    description = "A sum, count, least, largest, average or first value over the rows of a child template."
    aliases = ("rollup", "roll up", "sum of children", "child total", "children total", "summary")
    example = 3

    class Options(OptionsModel):
        template_id: str = Field(
            max_length=limits.MAX_NAME_CHARS,
            description="The child template: one with a reference with cardinality to this one.",
            json_schema_extra=picks.template("child"),
        )
        function: Function = Field("sum", description="What is made of the children's values.")
        field: str | None = Field(
            None, max_length=limits.MAX_NAME_CHARS, description="Which of the child's fields; count needs none.",
            json_schema_extra=picks.field_of("template_id", "none"),
        )  # fmt: skip
        decimals: int | None = Field(
            None, ge=0, le=18, description="Places of an average; two more than its values."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.int64()
        self._rows = limits.MAX_PARENTS
        self._ends: tuple[int, int] | None = None
        if compiler.nested_here:
            text = "Elements of an array have no children of their own."
            compiler.fault(field, "type", "not_for_this_type", text, "Move the field outside.")
            return
        found = child_of(field, options.template_id, compiler)
        if found is None:
            return
        self._address, owner = found
        self._group = owner.group or RELATION
        try:
            self._rows = compiler.kin.rows(compiler.address)
            counts = compiler.kin.counts(self._address)
        except Unrelated as error:
            compiler.fault(field, "options.template_id", "unrelated", str(error), "Change that cardinality.")
            return
        assert counts is not None  # the child has an owner
        self._counts, self._mixed = counts, compiler.relation_of(self._address, self._group).layout == "mixed"
        if options.function != "avg" and options.decimals is not None:
            text = "decimals is for averages."
            compiler.fault(field, "options.decimals", "not_for_this_type", text, "Remove decimals.")
        column = self._child(compiler)
        self.expansion = max(1, counts.max)
        if column is not None:
            self._types(column, counts.max, compiler)

    def _child(self, compiler: Compiler) -> Column | None:
        name = self.options.field
        if name is not None:
            return compiler.related(self.field, "options.field", self._address, name)
        if self.options.function != "count":
            text = f"Which field of the child is {self.options.function} made of?"
            compiler.fault(self.field, "options.field", "required", text, "Name one of the child's fields.")
        return None

    def _types(self, column: Column, most: int, compiler: Compiler) -> None:
        """The type of the result; refuses what cannot be made of the child's values."""
        made, function = column.dtype, self.options.function
        if function == "count":
            return
        number = pa.types.is_integer(made) or pa.types.is_decimal(made)
        timed = pa.types.is_date(made) or pa.types.is_timestamp(made)
        fits = {"sum": number, "avg": number, "min": number or timed, "max": number or timed}
        fits |= {"span": number or pa.types.is_date(made), "any": pa.types.is_boolean(made), "first": True}
        if not fits[function]:
            text = f'"{column.name}" holds {spoken(made)}: no {function} can be made of it.'
            hint = "Name another field: sum and avg take numbers, min and max dates too, any true and false, first all."
            if pa.types.is_floating(made):
                hint = "Floating point is never added: state decimals there."
            compiler.fault(self.field, "options.field", "wrong_type", text, hint)
        self._scale = made.scale if pa.types.is_decimal(made) else 0
        self.dtype = made
        if function == "avg":
            places = self.options.decimals if self.options.decimals is not None else min(18, self._scale + 2)
            self.dtype = pa.decimal128(38, places)
        elif function == "span" and pa.types.is_date(made):
            self.dtype = pa.int64()
        if function in ("sum", "avg"):
            self._bound(column, most, compiler)

    def _bound(self, column: Column, most: int, compiler: Compiler) -> None:
        """Refuses sums that may pass 64 bits, where it is known how large the values are."""
        known = None if column.formula is not None else column.type.bounds(self._counts.total)
        if known is None:
            return
        shift = max(0, self.dtype.scale - self._scale) if self.options.function == "avg" else 0
        self._ends = min(0, known[0] * most), max(0, known[1] * most)
        if max(-self._ends[0], self._ends[1]) * 10**shift > (_LARGEST if shift == 0 else 2**62 - 1):
            text = f'The {self.options.function} of "{column.name}" over {most:,} children can pass what 64 bits hold.'
            compiler.fault(self.field, "options.field", "overflow", text, "Lower its max or the cardinality.")

    def bounds(self, rows: int) -> tuple[int, int] | None:
        if self.options.function == "count":
            return 0, self._counts.max
        return self._ends if self.options.function == "sum" else None

    def rows_in(self, state: Any) -> int | None:
        return self._rows

    def reaches(self, rows: int) -> tuple[str, int] | None:
        return self._address, first_children(self._counts, self._mixed, rows)

    def far_hint(self) -> str:
        return "Ask for earlier rows, or raise the template's quantity: children are dealt out to so many parents."

    def fill(self, cells: Cells) -> pa.Array:
        children = Brood(cells, self._address, self._group)
        if self.options.function == "count" and self.options.field is None:
            return pa.array(children.counts)
        if self.options.function == "first":
            return children.first(self._child_field, self.dtype)
        pieces = [self._folded(*piece) for piece in children.pieces(self._child_field)]
        return pa.concat_arrays(pieces) if len(pieces) > 1 else pieces[0]

    @property
    def _child_field(self) -> str:
        assert self.options.field is not None  # only count does without
        return self.options.field

    def _folded(self, column: pa.Array, starts: np.ndarray, counts: np.ndarray) -> pa.Array:
        """One value for each parent whose children lie in ``column`` at ``starts``."""
        column = text.decode(column)
        valid = None if not column.null_count else column.is_valid().to_numpy(zero_copy_only=False)
        function = self.options.function
        if function == "count":
            return pa.array(folding.counts(valid, starts, counts))
        children = (units(column), valid, starts, counts)
        try:
            made, having = self._span(*children) if function == "span" else _FOLDS[function](*children)
            if function == "avg":
                made = self._average(made, folding.counts(valid, starts, counts))
        except folding.Overflow:
            told = f'The {function} of "{self.options.field}" passes what 64 bits hold.'
            raise SpecError([Fault(self.field.path, "overflow", told, "Use smaller values.")]) from None
        ready = pa.array(made.astype(np.bool_)) if function == "any" else as_type(made, self.dtype)
        return ready if function == "sum" or having.all() else postprocess.blanked(ready, ~having)

    def _span(self, *children: Any) -> folding.Folded:
        largest, having = folding.maxima(*children)
        return np.where(having, largest - folding.minima(*children)[0], 0), having

    def _average(self, totals: np.ndarray, having: np.ndarray) -> np.ndarray:
        shift = self.dtype.scale - self._scale
        if shift > 0 and totals.size and int(np.abs(totals).max()) >= 2**62 // 10**shift:
            raise folding.Overflow
        return folding.half_even(totals * 10 ** max(0, shift), np.maximum(having, 1) * 10 ** max(0, -shift))


_FOLDS = {
    "sum": folding.sums,
    "avg": folding.sums,
    "min": folding.minima,
    "max": folding.maxima,
    "any": folding.anys,
}


def dealt_in(bound: Bound, group: str) -> Cardinality:
    """Who has which child, where the rows of ``bound`` are children by the group of references ``group``."""
    relation = bound.layer.groups[group, RELATION].kind
    assert isinstance(relation, Relation)
    return relation.dealt(bound.keys[f"group:{group}:{RELATION}"])


class Brood:
    """The children of a block's rows."""

    def __init__(self, cells: Cells, address: str, group: str) -> None:
        self._bound = cells.relative(address)
        self._dealt = dealt_in(self._bound, group)
        self._rows = cells.rows
        self.counts = self._dealt.counts(cells.rows)

    def block(self, meter: Meter) -> Block:
        """The children of the rows, parent by parent, counted with the block that keeps them."""
        return self._bound.at(self._dealt.children(self._rows)[0], meter)

    def _at(self, rows: np.ndarray) -> Block:
        return self._bound.at(rows)

    def pieces(self, name: str) -> Iterator[tuple[pa.Array, np.ndarray, np.ndarray]]:
        """The children's column ``name``, with the places at which each parent's begin in it and their numbers: of
        all rows, in pieces of bounded length."""
        for piece in cut(self.counts):
            counts = self.counts[piece]
            children = self._dealt.children(self._rows[piece])[0]
            column = budget.in_parts(lambda rows: self._at(rows).column(name), children)
            yield column, np.cumsum(counts) - counts, counts

    def first(self, name: str, dtype: pa.DataType) -> pa.Array:
        """The children's column ``name`` of each row's first child; blank where it has none."""
        none = self.counts == 0
        if none.all():
            return pa.nulls(none.size, dtype)
        slots = np.where(none, 0, self._dealt.starts(self._rows))
        column = self._at(self._dealt.slots_to_children(slots)).column(name)
        return postprocess.blanked(column, none) if none.any() else column


def cut(counts: np.ndarray) -> list[slice]:
    """Slices of the parents whose children are at most `limits.BLOCK_LEAVES` together (or those of one parent)."""
    ends = np.cumsum(counts)
    found, first, done = [], 0, 0
    while first < counts.size:
        last = max(first + 1, int(np.searchsorted(ends, done + limits.BLOCK_LEAVES, side="right")))
        found.append(slice(first, last))
        first, done = last, int(ends[last - 1])
    return found or [slice(0, 0)]


def units(column: pa.Array) -> np.ndarray:
    """``int64[n]`` of a column of whole numbers, decimals (in units of the last place), truths, days or moments;
    anything where it is blank."""
    if pa.types.is_decimal(column.type):
        return text.decimal_units(column)
    if pa.types.is_boolean(column.type):
        return column.fill_null(False).to_numpy(zero_copy_only=False).astype(np.int64)
    stored = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    plain = column if pa.types.is_integer(column.type) else column.view(stored)
    return plain.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)


def as_type(made: np.ndarray, dtype: pa.DataType) -> pa.Array:
    """The reverse of `units`."""
    if pa.types.is_decimal(dtype):
        return text.decimals(made.astype(np.int64), dtype.scale)
    if pa.types.is_date32(dtype):
        return pa.array(made.astype(np.int32)).view(dtype)
    plain = pa.array(made.astype(np.int64))
    return plain.view(dtype) if pa.types.is_timestamp(dtype) else plain.cast(dtype)


def spoken(made: pa.DataType) -> str:
    """A type as a person calls it."""
    names = {"is_string": "text", "is_boolean": "true and false", "is_floating": "floating point numbers"}
    names |= {"is_date": "dates", "is_timestamp": "moments", "is_struct": "objects", "is_list": "arrays"}
    return next((name for test, name in names.items() if getattr(pa.types, test)(made)), str(made))

"""Rows of another template inside a row: its children, or as many as are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp import limits
from webapp.engine import cells as cellular
from webapp.engine import picks, text
from webapp.engine.cardinality import Cardinality, Counts, Spread
from webapp.engine.fields.base import RELATION, FieldType, OptionsModel
from webapp.engine.fields.children import Brood, dealt_in, first_children
from webapp.engine.fields.structure import Count
from webapp.engine.kinship import Unrelated
from webapp.engine.records import Held
from webapp.errors import did_you_mean

if TYPE_CHECKING:
    from webapp.engine.block import Block, Bound, Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_DEAL_SALT = -110


class Template(FieldType):
    """Rows of another template inside this one's."""

    name = "template"
    label = "Rows of a template"
    category = "structure"
    description = (
        "Rows of another template inside each row: its children, where it refers to this one by cardinality."
    )
    aliases = ("child template", "nested template", "sub template", "children")
    example: ClassVar[Any] = [{"sku": "A-17", "quantity": 2}]

    class Options(OptionsModel):
        template_id: str = Field(
            max_length=limits.MAX_NAME_CHARS, description="The template; self for its own.",
            json_schema_extra=picks.template("inside"),
        )  # fmt: skip
        foreign_key: str | None = Field(
            None, max_length=limits.MAX_NAME_CHARS, description="Its reference to this template, which is left out.",
            json_schema_extra=picks.field_of("template_id", "none"),
        )  # fmt: skip
        array: bool = Field(True, description="An array of rows, or one row.")
        quantity: int | None = Field(
            None, ge=0, le=limits.MAX_ARRAY_PRODUCT, description="Rows of the array."
        )
        count: Count | None = Field(None, description="Rows of the array, where that differs: min and max.")
        max_depth: int = Field(
            3, ge=1, le=limits.MAX_NESTING, description="How deep templates stand in one another."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.null()
        self._shown: tuple[str, ...] = ()
        self._counts: Counts | None = None
        self._bound: dict[int, Cardinality] = {}
        self._group: str | None = None
        self._mixed = False
        kin = compiler.kin
        address = kin.address(options.template_id, compiler.address)
        if address is None:
            text_ = f'There is no template "{options.template_id}".'
            compiler.fault(field, "options.template_id", "unknown_template", text_, "Name one by its id.")
            return
        level = kin.level(compiler.address) + 1
        if level > options.max_depth:
            return  # blank: the nesting ends here
        owner = None if compiler.nested_here else kin.children(address, compiler.address)
        self._group = None if owner is None else owner.group or RELATION
        self._address = kin.inside(address, level, compiler.address, field.id or field.path)
        if kin.nested_fields > limits.MAX_NESTED_FIELDS:
            text_ = f"Templates inside templates have more than {limits.MAX_NESTED_FIELDS:,} fields together."
            compiler.fault(field, "options.max_depth", "too_many_cells", text_, "Lower max_depth.")
            return
        most = self._most(field, options, compiler, owner)
        compiler.widen(self._address, most)
        left_out = options.foreign_key or (owner.name if owner else None)
        columns = [
            c for c in compiler.visible_of(field, "options.template_id", self._address) if c.name != left_out
        ]
        if options.foreign_key and options.foreign_key not in kin.known(address).spec_names():
            text_ = f'"{kin.known(address).name}" has no field "{options.foreign_key}".'
            hint = did_you_mean(options.foreign_key, kin.known(address).spec_names())
            compiler.fault(field, "options.foreign_key", "unknown_field", text_, hint)
        if self._group is not None:
            self._mixed = compiler.relation_of(self._address, self._group).layout == "mixed"
        if not columns:
            text_ = f'"{kin.known(address).name}" has no other field to be shown.'
            compiler.fault(
                field, "options.template_id", "all_hidden", text_, "Add a field to it that is visible."
            )
        self._shown = tuple(column.name for column in columns)
        self._struct = pa.struct([column.arrow_field() for column in columns])
        element = pa.field("item", self._struct, metadata={b"max_items": str(most).encode()})
        self.dtype = pa.list_(element) if options.array else self._struct

    def _most(self, field: FieldSpec, options: Options, compiler: Compiler, owner: FieldSpec | None) -> int:
        """The largest number of elements."""
        stated = (
            "quantity" if options.quantity is not None else "count" if options.count is not None else None
        )
        if stated and not options.array:
            text_ = f"{stated} is for arrays."
            compiler.fault(
                field, f"options.{stated}", "not_for_this_type", text_, "Set array to true, or remove it."
            )
        if options.quantity is not None and options.count is not None:
            compiler.fault(
                field, "options.count", "contradiction", "quantity says it already.", "Remove one."
            )
        if owner is not None:
            if stated or not options.array:
                text_ = f'"{owner.name}" of the child says how many rows belong to each of this template\'s.'
                hint = "Remove quantity and count, and leave array on."
                compiler.fault(field, f"options.{stated or 'array'}", "contradiction", text_, hint)
            try:
                self._rows = compiler.kin.rows(compiler.address)
                self._counts = compiler.kin.counts(self._address)
                return max(1, self._counted_by.max)
            except Unrelated as error:
                compiler.fault(
                    field, "options.template_id", "unrelated", str(error), "Change that cardinality."
                )
                return 1
        if not options.array:
            return 1
        count = options.count or Count()
        low, high = (options.quantity,) * 2 if options.quantity is not None else (count.min, count.max)
        self._counts = Counts(limits.MAX_PARENTS // max(1, high), Spread(low, high))
        return max(1, high)

    @property
    def _counted_by(self) -> Counts:
        assert self._counts is not None  # an array has them
        return self._counts

    def rows_in(self, state: Any) -> int | None:
        return self._rows if self._group is not None else None

    def reaches(self, rows: int) -> tuple[str, int] | None:
        if not self._shown:
            return None
        return self._address, rows if self._counts is None else first_children(
            self._counts, self._mixed, rows
        )

    def holds(self) -> Held | None:
        if not self._shown:
            return None
        if not self.options.array:
            return Held(1, False, address=self._address)
        return Held(self._counted_by.max, True, address=self._address, counts=self._counted)

    def _counted(self, bound: Bound, key: np.uint64, rows: np.ndarray) -> np.ndarray:
        if self._group is None:
            return self._dealt(key).counts(rows)
        other = bound.relatives[self._address]
        return dealt_in(other, self._group).counts(rows)

    def fill(self, cells: Cells) -> pa.Array:
        if not self._shown:
            return pa.nulls(cells.n)
        bound = cells.relative(self._address)
        if not self.options.array:
            return self._objects(bound.at(cells.rows, cells.meter))
        if self._group is not None:
            brood = Brood(cells, self._address, self._group)
            counts, block = brood.counts, brood.block(cells.meter)
        else:
            children, counts = self._dealt(cells.key).children(cells.rows)
            block = bound.at(children, cells.meter)
        offsets = np.zeros(cells.n + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        return pa.ListArray.from_arrays(pa.array(offsets), self._objects(block), type=self.dtype)

    def _dealt(self, key: np.uint64) -> Cardinality:
        found = self._bound.get(int(key))
        if found is None:
            if len(self._bound) >= limits.KEYS_KEPT:
                self._bound.clear()
            found = self._bound[int(key)] = self._counted_by.bind(cellular.derive(key, _DEAL_SALT))
        return found

    def _objects(self, block: Block) -> pa.Array:
        columns = [text.decode(block.column(name)) for name in self._shown]
        return pa.StructArray.from_arrays(columns, fields=list(self._struct))

"""Fields that hold other fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from webapp import limits
from webapp.engine import cells as cellular
from webapp.engine.fields.base import FieldType, Options

if TYPE_CHECKING:
    from webapp.engine.block import Block, Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


class Count(Options):
    """How many elements an array has."""

    min: int = Field(1, ge=0, le=limits.MAX_ARRAY_PRODUCT)
    max: int = Field(3, ge=0, le=limits.MAX_ARRAY_PRODUCT)

    @model_validator(mode="after")
    def _in_order(self) -> Count:
        if self.min > self.max:
            raise ValueError("min is larger than max")
        return self


class Nested(FieldType):
    """An object with fields of its own, or an array of such objects.

    Element e of row r has the address r x max + e at its level, so an element's values depend neither on how many
    elements other rows have nor on how many rows are asked for.
    """

    name = "nested"
    label = "Nested"
    category = "structure"
    description = "An object, or an array of objects, with fields of its own."
    aliases = ("object", "nested object", "json object", "sub document", "embedded")
    example: ClassVar[Any] = {"sku": "A-17", "quantity": 2}

    class Options(Options):
        fields: tuple[Any, ...] = Field((), description="Field definitions, as in a template.")
        array: bool = Field(False, description="Makes an array of objects.")
        count: Count | int = Field(Count(), description="Elements of the array: a number, or min and max.")

    def __init__(self, field: FieldSpec, options: Any, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        count = options.count
        self._low, self._high = (count, count) if isinstance(count, int) else (count.min, count.max)
        if self._low < 0 or self._high > limits.MAX_ARRAY_PRODUCT:
            text = f"An array has 0 to {limits.MAX_ARRAY_PRODUCT:,} elements."
            compiler.fault(field, "options.count", "out_of_range", text)
            self._low = self._high = 1
        if "count" in options.model_fields_set and not options.array:
            text = "count is for arrays."
            compiler.fault(
                field, "options.count", "not_for_this_type", text, "Set array to true, or remove count."
            )
        self.layer = compiler.nested(field.children, max(1, self._high) if options.array else 1, options.array)
        inner = [self.layer.columns[name] for name in self.layer.visible if name in self.layer.columns]
        if not self.layer.visible:
            compiler.fault(field, "options.fields", "all_hidden", "At least one field must be visible.")
        self._struct = pa.struct([column.arrow_field() for column in inner])
        element = pa.field("item", self._struct, metadata={b"max_items": str(self._high).encode()})
        self.dtype = pa.list_(element) if options.array else self._struct

    def fill(self, cells: Cells) -> pa.Array:
        if not self.options.array:
            return self._objects(cells.inner(self.layer, cells.rows, None))
        counts = cellular.between(cells.bits(), self._low, self._high)
        offsets = np.zeros(cells.n + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        owner = np.repeat(np.arange(cells.n), counts)
        place = np.arange(owner.size) - offsets[owner]
        address = cells.rows[owner] * np.uint64(max(1, self._high)) + place.astype(np.uint64)
        elements = self._objects(cells.inner(self.layer, address, owner))
        return pa.ListArray.from_arrays(pa.array(offsets), elements, type=self.dtype)

    def _objects(self, block: Block) -> pa.Array:
        columns = [block.column(name) for name in self.layer.visible]
        plain = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in columns]
        return pa.StructArray.from_arrays(plain, fields=list(self._struct))

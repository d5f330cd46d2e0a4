"""Fields that hold other fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from webapp import limits
from webapp.engine import random as engine_random
from webapp.engine.formats.nested import json_texts
from webapp.engine.record_counts import RecordCounts
from webapp.engine.text import decode_dictionary
from webapp.engine.types.base import FieldType, OptionsModel

if TYPE_CHECKING:
    from webapp.engine.blocks import Block, ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.layers import Layer
    from webapp.engine.spec import FieldSpec


class Count(OptionsModel):
    "Number of elements of an array."

    min: int = Field(1, ge=0, le=limits.MAX_ARRAY_PRODUCT)
    max: int = Field(3, ge=0, le=limits.MAX_ARRAY_PRODUCT)

    @model_validator(mode="after")
    def _in_order(self) -> Count:
        if self.min > self.max:
            raise ValueError("min is larger than max")
        return self


class Nested(FieldType):
    """An object with fields, or an array of such objects.

    Element e of row r has the address r x max + e at its level, so an element's values depend neither on how many
    elements other rows have nor on how many rows are requested.
    """

    name = "nested"
    label = "Nested"
    category = "structure"
    description = "An object, or an array of objects, with nested fields."
    aliases: ClassVar[tuple[str, ...]] = (
        "object",
        "nested object",
        "json object",
        "sub document",
        "embedded",
    )
    example: ClassVar[Any] = {"sku": "A-17", "quantity": 2}

    class Options(OptionsModel):
        fields: tuple[Any, ...] = Field((), description="Field definitions, as in a template.")
        array: bool = Field(False, description="Generates an array of objects.")
        count: Count | int = Field(Count(), description="Number of elements: a number, or min and max.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._low, self._high = _element_limits(field, options.count, compiler)
        if "count" in options.model_fields_set and not options.array:
            text = "count is only available for arrays."
            compiler.fault(
                field, "options.count", "not_for_this_type", text, "Set array to true, or remove count."
            )
        self.layer = compiler.compile_nested(
            field.children, max(1, self._high) if options.array else 1, options.array
        )
        columns = [self.layer.columns[name] for name in self.layer.visible if name in self.layer.columns]
        if not self.layer.visible:
            compiler.fault(field, "options.fields", "all_hidden", "At least one field must be visible.")
        self._struct = pa.struct([column.arrow_field() for column in columns])
        element = pa.field("item", self._struct, metadata={b"max_items": str(self._high).encode()})
        self._arrow = self.dtype = pa.list_(element) if options.array else self._struct

    def record_counts(self) -> RecordCounts:
        return (
            _record_counts(self._low, self._high, True, self.layer)
            if self.options.array
            else RecordCounts(1, False, self.layer)
        )

    def fill(self, context: ColumnContext) -> pa.Array:
        return self.build(context)

    def build(self, context: ColumnContext) -> pa.Array:
        """The objects, or the arrays of them."""
        if not self.options.array:
            return self._objects(context.nested_block(self.layer, context.rows, None))
        offsets, block = create_elements(context, self.layer, self._low, self._high)
        return pa.ListArray.from_arrays(offsets, self._objects(block), type=self._arrow)

    def _objects(self, block: Block) -> pa.Array:
        columns = [block.column(name) for name in self.layer.visible]
        plain = [decode_dictionary(column) for column in columns]
        return pa.StructArray.from_arrays(plain, fields=list(self._struct))


class Json(Nested):
    """The value of `Nested` as JSON text, for table columns that contain documents. In JSON output it is the
    object that it is."""

    name = "json"
    label = "JSON"
    description = "An object, or an array of objects, as JSON text."
    aliases = (
        "json bytes",
        "jsonb",
        "json text",
        "json document",
        "json column",
        "json array",
        "json string",
    )
    example: ClassVar[Any] = {"sku": "A-17", "quantity": 2}
    is_json_text = True

    def __init__(self, field: FieldSpec, options: Nested.Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.string()

    def fill(self, context: ColumnContext) -> pa.Array:
        return json_texts(self.build(context))


class Array(FieldType):
    """Several values of one field: numbers, texts, objects, or arrays again. Elements have addresses as those of
    `Nested` do."""

    name = "array"
    label = "Array"
    category = "structure"
    description = "An array of values generated by one field: tags, scores, readings."
    aliases = ("list of values", "array of", "repeated field", "repeating element", "set of", "multi value")
    example: ClassVar[Any] = [4, 8, 1]

    class Options(OptionsModel):
        of: dict[str, Any] | None = Field(
            None,
            description="Definition of the elements: a field with type and options, without a name.",
            examples=[{"type": "number", "options": {"max": 9}}],
        )
        count: Count | int = Field(Count(), description="Number of elements: a number, or min and max.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._low, self._high = _element_limits(field, options.count, compiler)
        self._element = field.children[0]
        if self._element.common.hidden:
            text = "The elements of an array cannot be hidden."
            compiler.fault(field, "options.of.hidden", "all_hidden", text, "Remove hidden.")
        self.layer = compiler.compile_nested(field.children, max(1, self._high))
        column = self.layer.columns.get(self._element.name)
        item = pa.field("item", pa.null()) if column is None else column.arrow_field().with_name("item")
        metadata = {b"max_items": str(self._high).encode(), **(item.metadata or {})}
        self.dtype = pa.list_(item.with_metadata(metadata))

    def record_counts(self) -> RecordCounts:
        column = self.layer.columns[self._element.name]
        return _record_counts(self._low, self._high, isinstance(column.type, Nested), self.layer)

    def fill(self, context: ColumnContext) -> pa.Array:
        offsets, block = create_elements(context, self.layer, self._low, self._high)
        values = decode_dictionary(block.column(self._element.name))
        return pa.ListArray.from_arrays(offsets, values, type=self.dtype)


def _element_limits(field: FieldSpec, count: Count | int, compiler: Compiler) -> tuple[int, int]:
    low, high = (count, count) if isinstance(count, int) else (count.min, count.max)
    if low >= 0 and high <= limits.MAX_ARRAY_PRODUCT:
        return low, high
    text = f"An array can have 0 to {limits.MAX_ARRAY_PRODUCT:,} elements."
    compiler.fault(field, "options.count", "out_of_range", text)
    return 1, 1


def _record_counts(low: int, high: int, record: bool, layer: Layer) -> RecordCounts:
    return RecordCounts(
        high,
        record,
        layer,
        counts=lambda _, key, rows: engine_random.between(engine_random.bits(key, rows), low, high),
    )


def create_elements(context: ColumnContext, layer: Layer, low: int, high: int) -> tuple[pa.Array, Block]:
    """``low`` to ``high`` elements for each row: where each row's begin (``int32[n + 1]``), and all of them."""
    counts = engine_random.between(context.bits(), low, high)
    offsets = np.zeros(context.n + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    owner = np.repeat(np.arange(context.n), counts)
    place = np.arange(owner.size) - offsets[owner]
    address = context.rows[owner] * np.uint64(max(1, high)) + place.astype(np.uint64)
    return pa.array(offsets), context.nested_block(layer, address, owner)

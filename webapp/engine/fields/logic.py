"""Values that follow from other fields, or from nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp import limits
from webapp.engine import placeholders, postprocess
from webapp.engine.fields.base import FieldType, Options

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.plan import Compiler
    from webapp.engine.spec import FieldSpec


class Constant(FieldType):
    """The same value in every row."""

    name = "constant"
    label = "Constant"
    category = "logic"
    description = "The same value in every row."
    aliases = ("fixed", "static", "literal", "fixed value")
    example = "EU"

    class Options(Options):
        value: Any = Field(description="Any JSON value.")

    def __init__(self, field: FieldSpec, options: Any, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = postprocess.fixed(options.value, pa.null() if options.value is None else pa.int64())
        self.dtype = self._pool.type
        if pa.types.is_string(self.dtype):
            self.max_length = len(self._pool[0].as_py() or "")

    def fill(self, cells: Cells) -> pa.Array:
        if pa.types.is_nested(self.dtype) or pa.types.is_null(self.dtype):
            return self._pool.take(pa.array(np.zeros(cells.n, np.int32)))
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(cells.n, np.int32)), self._pool)


class Null(FieldType):
    """Nothing in any row; ``value`` is written instead where it is set."""

    name = "null"
    label = "Null"
    category = "logic"
    description = "Blank in every row."
    aliases = ("blank", "empty", "none", "nil")
    example = None
    dtype = pa.null()

    class Options(Options):
        value: None = Field(None, description="Always null.")

    def fill(self, cells: Cells) -> pa.Array:
        return pa.nulls(cells.n)


class Derived(FieldType):
    """Text with other fields of the row put into it."""

    name = "derived"
    label = "Derived"
    category = "logic"
    description = "Text built from other fields of the row, such as {{first}}.{{last}}."
    aliases = ("derived value", "concatenate", "concat", "template string")
    example = "ann.lee"
    dtype = pa.string()

    class Options(Options):
        value: str = Field(
            max_length=limits.MAX_FORMULA_CHARS,
            description="Text with {{field}} in it; filters: json, upper, lower, date('YYYY-MM-DD').",
        )

    def __init__(self, field: FieldSpec, options: Any, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        try:
            self._pattern = placeholders.parse(options.value)
        except placeholders.PlaceholderError as error:
            where = f"At character {error.position + 1}."
            compiler.fault(field, "options.value", "bad_placeholder", str(error), where)
            return
        if not self._pattern.holes:
            text = "A derived value names at least one other field."
            compiler.fault(
                field, "options.value", "no_placeholder", text, "Write {{field}}, or use type constant."
            )
        for hole in self._pattern.holes:
            compiler.require(field, "options.value", hole.name)
        self.needs = tuple(hole.name for hole in self._pattern.holes)

    def fill(self, cells: Cells) -> pa.Array:
        return self._pattern.fill(cells.column, cells.n)

    def unique_hint(self) -> str:
        return "Make the field it is derived from unique instead."

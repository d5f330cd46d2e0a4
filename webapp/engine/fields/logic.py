"""Values that follow from other fields, or from nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine import picks, placeholders, postprocess
from webapp.engine.expressions import types, unique
from webapp.engine.expressions.build import BUILT_IN
from webapp.engine.expressions.expression import Expression, compile_formula
from webapp.engine.fields.base import FieldType, OptionsModel
from webapp.engine.fields.formulas import Reckoned
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.layers import Column
    from webapp.engine.spec import FieldSpec


class Constant(FieldType):
    """The same value in every row."""

    name = "constant"
    label = "Constant"
    category = "logic"
    description = "The same value in every row."
    aliases = ("fixed", "static", "literal", "fixed value")
    example = "EU"

    class Options(OptionsModel):
        value: Any = Field(description="Any JSON value.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
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

    class Options(OptionsModel):
        value: None = Field(None, description="Always null.")

    options: Options

    def fill(self, cells: Cells) -> pa.Array:
        return pa.nulls(cells.n)


class Derived(Reckoned):
    """Text with other fields of the row put into it, or the value of an expression."""

    name = "derived"
    label = "Derived"
    category = "logic"
    description = "Text built from other fields of the row, such as {{first}}.{{last}}."
    aliases: ClassVar[tuple[str, ...]] = ("derived value", "concatenate", "concat")
    example = "ann.lee"
    dtype = pa.string()

    class Options(OptionsModel):
        value: str = Field(
            max_length=limits.MAX_FORMULA_CHARS,
            description="Text with {{field}} or {{formula}} in it; filters: json, upper, lower, date('YYYY-MM-DD'). "
            "Without braces: a formula.",
            json_schema_extra=picks.PATTERN,
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pattern: placeholders.Pattern | None = None
        self._made: dict[str, Expression] = {}
        self._proof: unique.Proof | None = None
        if self._is_formula(options.value):
            self._reckon(options.value, compiler)
            return
        try:
            self._pattern = placeholders.parse(options.value)
        except placeholders.PlaceholderError as error:
            where = f"At character {error.position + 1}."
            fault = Fault(
                f"{field.path}.options.value", "bad_placeholder", str(error), where, error.position + 1
            )
            compiler.faults.append(fault)
            return
        self._fill_holes(self._pattern, compiler)

    def _is_formula(self, source: str) -> bool:
        return "{{" not in source

    def _reckon(self, source: str, compiler: Compiler) -> None:
        before = len(compiler.faults)
        self.use(compile_formula(compiler, self.field, "options.value", source))
        for place in range(before, len(compiler.faults)):
            fault = compiler.faults[place]
            hint = " ".join(filter(None, (fault.hint, _NO_BRACES)))
            compiler.faults[place] = replace(fault, hint=hint)

    def _fill_holes(self, pattern: placeholders.Pattern, compiler: Compiler) -> None:
        needs: list[str] = []
        parts: list[unique.Part] = []
        salts: list[int] = []
        for part in pattern.parts:
            if isinstance(part, str):
                parts.append((part, None))
            elif part.quoted or _names_field(part.name, compiler):
                column = compiler.require(self.field, "options.value", part.name)
                needs.append(part.name)
                own = compiler.level_of(part.name) == 0 and not part.filters
                parts.append((None, _spelled(column) if column is not None and own else None))
            else:
                made = self._made.get(part.name) or self._expression(part, salts, compiler)
                if made is not None:
                    self._made[part.name] = made
                    needs.extend(made.needs)
                    proof = made.proof.as_text(made.kind) if made.proof and not part.filters else None
                    parts.append((None, proof))
        self.needs = tuple(dict.fromkeys(needs))
        self._proof = unique.of_parts(parts)

    def _expression(self, hole: placeholders.Hole, salts: list[int], compiler: Compiler) -> Expression | None:
        return compile_formula(
            compiler, self.field, "options.value", hole.name, salts=salts, offset=hole.start, single=False
        )

    @property
    def compiled(self) -> list[Expression]:
        return [*super().compiled, *self._made.values()]

    def fill(self, cells: Cells) -> pa.Array:
        if self._pattern is None:
            return super().fill(cells)

        def column(name: str) -> pa.Array:
            made = self._made.get(name)
            return cells.column(name) if made is None else made.column(cells)

        return self._pattern.fill(column, cells.n)

    def space(self) -> int | None:
        if self._pattern is None:
            return super().space()
        return self._proof.space if self._proof else None

    def unique_hint(self) -> str:
        return f"Make the field it is derived from unique instead. {unique.ADVICE}"


class TemplateString(Derived):
    """Text with other fields of the row put into it; without braces it is the same in every row."""

    name = "template_string"
    label = "Template string"
    description = "A text with other fields of the row in it, such as Dear {{first}} {{last}}."
    aliases = (
        "string template",
        "text template",
        "interpolated string",
        "f string",
        "pystr format",
        "mail merge",
    )
    example = "Dear Ann Lee"

    class Options(Derived.Options):
        value: str = Field(
            min_length=1,
            max_length=limits.MAX_FORMULA_CHARS,
            validation_alias=AliasChoices("value", "template", "text"),
            description="Text with {{field}} or {{formula}} in it; filters: json, upper, lower, date('YYYY-MM-DD').",
            json_schema_extra=picks.PATTERN,
        )

    options: Options

    def _is_formula(self, source: str) -> bool:
        return False


_NO_BRACES = (
    "A text names fields in braces: {{field}}; without braces it is a formula; for a fixed text use constant."
)
_PLAIN_NAME = re.compile(r"\w+(?: +\w+)*")
_WORDS = frozenset({"and", "or", "not", "in", "is", "if", "else"})


def _names_field(name: str, compiler: Compiler) -> bool:
    """Whether what stands in a hole is the name of a field, rather than a formula."""
    if compiler.level_of(name) is not None:
        return True
    bare = name.removeprefix("parent.")
    return (
        bool(_PLAIN_NAME.fullmatch(bare)) and not _WORDS.intersection(bare.split()) and bare not in BUILT_IN
    )


def _spelled(column: Column) -> unique.Proof | None:
    proof = unique.of_column(column)
    return proof and proof.as_text(types.of_arrow(column.dtype))

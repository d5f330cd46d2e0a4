"""Values from formulas: one expression, the first case whose condition is true, or a text with placeholders."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import AliasChoices, Field, model_validator

from webapp import limits
from webapp.engine import form_hints, placeholders, postprocess
from webapp.engine.formulas import operators, uniqueness, vectors
from webapp.engine.formulas import types as formulas_types
from webapp.engine.formulas.compiler import BUILT_IN
from webapp.engine.formulas.expression import Expression, compile_formula
from webapp.engine.formulas.nodes import Node, literal, load_column
from webapp.engine.formulas.types import FormulaError, FormulaValueError
from webapp.engine.types.base import FieldType, OptionsModel
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


class FormulaColumn(FieldType):
    """A column that is calculated by an expression."""

    category = "logic"
    checks_memory_budget = True
    expression: Expression | None = None

    def use_expression(self, expression: Expression | None) -> None:
        """Use ``expression`` (None after a fault) to fill the column."""
        self.expression = expression
        self.dtype = pa.null() if expression is None else expression.dtype
        if expression is not None:
            self.max_length, self.required_fields = expression.max_length, expression.required_fields

    def fill(self, context: ColumnContext) -> pa.Array:
        assert self.expression is not None  # a column with a fault is never filled
        return self.expression.column(context)

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return None if self.expression is None else self.expression.bounds

    def override_error(self, name: str, fixed: pa.Array) -> str:
        return refusal_reason(self.expressions, name, fixed)

    @property
    def expressions(self) -> list[Expression]:
        """The expressions that read other fields."""
        return [] if self.expression is None else [self.expression]

    def distinct_count(self) -> int | None:
        proof = self.expression and self.expression.proof
        return proof.distinct_count if proof else None

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)  # one-to-one with what is unique already

    def unique_hint(self) -> str:
        return uniqueness.UNIQUE_HINT


def refusal_reason(expressions: list[Expression], name: str, fixed: pa.Array) -> str:
    """Return why formulas cannot read the value that ``name`` is fixed to; empty if they can."""
    for expression in expressions:
        kind = expression.kinds.get(name)
        if kind is not None:
            try:
                load_column(fixed, kind, name)
            except FormulaValueError as fault:
                return fault.message
    return ""


class Formula(FormulaColumn):
    """The value of an expression over other fields."""

    name = "formula"
    label = "Formula"
    description = "A value calculated from other fields, such as price * quantity or upper(name)."
    aliases = ("expression", "calculated", "computed", "calculation", "calculated field")
    example = 41.97

    class Options(OptionsModel):
        expression: str = Field(
            max_length=limits.MAX_FORMULA_CHARS,
            description="A formula with field names, numbers, texts, + - * / // %, comparisons, and, or, "
            "not, and functions: round(price * 1.19, 2).",
            json_schema_extra=form_hints.FORMULA,
        )

        @model_validator(mode="before")
        @classmethod
        def _accept_value(cls, options: Any) -> Any:
            """Accept `value`, the option of type derived, in place of `expression`."""
            if isinstance(options, dict) and "value" in options and "expression" not in options:
                return {"expression" if key == "value" else key: value for key, value in options.items()}
            return options

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use_expression(compile_formula(compiler, field, "options.expression", options.expression))


class One(OptionsModel):
    "A condition, and the value or formula to use if it is true."

    when: str = Field(max_length=limits.MAX_FORMULA_CHARS, description="A condition, such as amount > 100.")
    then: Any = Field(None, description="Value if the condition is true. Any single JSON value.")
    then_formula: str | None = Field(
        None,
        max_length=limits.MAX_FORMULA_CHARS,
        description=("Formula for the value, as an alternative to then."),
    )


class Case(FormulaColumn):
    """The value of the first case whose condition is true, otherwise the default."""

    name = "case"
    label = "Case"
    description = "A value that depends on conditions on other fields."
    aliases = ("case when", "conditional", "if then else", "if else", "switch")
    example = "gold"

    class Options(OptionsModel):
        cases: list[One] = Field(
            min_length=1, max_length=limits.MAX_CASES,
            description="Conditions with values, checked in order: {when, then} or {when, then_formula}.",
            json_schema_extra=form_hints.FORMULA,
        )  # fmt: skip
        otherwise: Any = Field(
            None, alias="else", description="Value if no condition is true. Default: blank."
        )
        otherwise_formula: str | None = Field(
            None, alias="else_formula", max_length=limits.MAX_FORMULA_CHARS,
            description="Formula for the value, as an alternative to else.", json_schema_extra=form_hints.FORMULA,
        )  # fmt: skip

        @model_validator(mode="before")
        @classmethod
        def _accept_single_case(cls, options: Any) -> Any:
            """A single case may be written without a list: when, then, else."""
            if not isinstance(options, dict) or "cases" in options or "when" not in options:
                return options
            if isinstance(options["when"], list):
                return {"cases" if key == "when" else key: value for key, value in options.items()}
            case = {key: options[key] for key in ("when", "then", "then_formula") if key in options}
            return {"cases": [case], **{key: value for key, value in options.items() if key not in case}}

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._compiler = compiler
        self._salts: list[int] = []
        tests: list[Expression | None] = []
        values: list[Expression | Node | None] = []
        for place, case in enumerate(options.cases):
            path = f"options.cases[{place}]"
            tests.append(self._formula(f"{path}.when", case.when))
            values.append(self._value(f"{path}.then", case.then, case.then_formula))
        values.append(self._value("options.else", options.otherwise, options.otherwise_formula))
        self._expressions = [test for test in (*tests, *values) if isinstance(test, Expression)]
        valid_tests = [test for test in tests if test is not None]
        valid_values = [value for value in values if value is not None]
        is_complete = len(valid_tests) == len(tests) and len(valid_values) == len(values)
        self.use_expression(self._combine(valid_tests, valid_values) if is_complete else None)
        del self._compiler

    @property
    def expressions(self) -> list[Expression]:
        return self._expressions

    def _formula(self, option: str, source: str) -> Expression | None:
        return compile_formula(self._compiler, self.field, option, source, salts=self._salts)

    def _value(self, option: str, value: Any, formula: str | None) -> Expression | Node | None:
        if formula is not None:
            if value is not None:
                text = "Set either a value or a formula, not both."
                self._compiler.fault(
                    self.field, f"{option}_formula", "ambiguous", text, "Remove one of them."
                )
                return None
            return self._formula(f"{option}_formula", formula)
        if value is None:
            return literal(formulas_types.NULL, None, 1)
        pool = postprocess.override_pool(value, pa.int64())
        if pa.types.is_nested(pool.type) or isinstance(value, dict | list):
            text = "Cases support only single values: texts, numbers, true, false or null."
            self._compiler.fault(self.field, option, "wrong_type", text, "Write JSON as a text.")
            return None
        if isinstance(value, float):
            places = len(repr(value).partition(".")[2]) if "e" not in repr(value) else limits.MAX_DECIMALS
            units = vectors.units_of(value, places) if places <= limits.MAX_DECIMALS else None
            if units is None:
                text = f"{value} has too many digits."
                self._compiler.fault(self.field, option, "out_of_range", text, "Use fewer digits.")
                return None
            return literal(formulas_types.number(places), units, 1)
        kind = formulas_types.from_arrow(pool.type)
        return literal(kind, vectors.single_value(kind, vectors.load(pool, kind)), 1)

    def _combine(self, tests: list[Expression], values: list[Expression | Node]) -> Expression | None:
        nodes = [value.node if isinstance(value, Expression) else value for value in values]
        try:
            node = nodes[-1]
            for place in reversed(range(len(tests))):
                test = operators.as_condition(tests[place].node)
                node = operators.conditional(test, nodes[place], node, 1)
        except FormulaError as error:
            path = f"{self.field.path}.options.cases"
            self._compiler.faults.append(Fault(path, error.code, error.message, error.hint))
            return None
        kinds = {name: kind for expression in self._expressions for name, kind in expression.kinds.items()}
        return Expression(node, kinds, f"{self.field.path}.options.cases")


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
        self._pool = postprocess.override_pool(
            options.value, pa.null() if options.value is None else pa.int64()
        )
        self.dtype = self._pool.type
        if pa.types.is_string(self.dtype):
            self.max_length = len(self._pool[0].as_py() or "")

    def fill(self, context: ColumnContext) -> pa.Array:
        if pa.types.is_nested(self.dtype) or pa.types.is_null(self.dtype):
            return self._pool.take(pa.array(np.zeros(context.n, np.int32)))
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(context.n, np.int32)), self._pool)


class Null(FieldType):
    """Null in every row."""

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

    def fill(self, context: ColumnContext) -> pa.Array:
        return pa.nulls(context.n)


class Derived(FormulaColumn):
    """Text with other fields of the row put into it, or the value of an expression."""

    name = "derived"
    label = "Derived"
    category = "logic"
    description = "Text derived from other fields of the row, such as {{first}}.{{last}}."
    aliases: ClassVar[tuple[str, ...]] = ("derived value", "concatenate", "concat")
    example = "ann.lee"
    dtype = pa.string()

    class Options(OptionsModel):
        value: str = Field(
            max_length=limits.MAX_FORMULA_CHARS,
            description="Text with {{field}} or {{formula}} placeholders. Filters: json, upper, lower, "
            "date('YYYY-MM-DD'). Without braces: a formula.",
            json_schema_extra=form_hints.PATTERN,
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pattern: placeholders.PlaceholderText | None = None
        self._placeholders: dict[str, Expression] = {}
        self._proof: uniqueness.UniquenessProof | None = None
        if self._is_formula(options.value):
            fault_count = len(compiler.faults)
            self.use_expression(compile_formula(compiler, field, "options.value", options.value))
            for place in range(fault_count, len(compiler.faults)):
                fault = compiler.faults[place]
                hint = " ".join(filter(None, (fault.hint, _NO_BRACES)))
                compiler.faults[place] = replace(fault, hint=hint)
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
        self._compile_placeholders(self._pattern, compiler)

    def _is_formula(self, source: str) -> bool:
        return "{{" not in source

    def _compile_placeholders(self, pattern: placeholders.PlaceholderText, compiler: Compiler) -> None:
        needs: list[str] = []
        parts: list[uniqueness.Part] = []
        salts: list[int] = []
        for part in pattern.parts:
            if isinstance(part, str):
                parts.append((part, None))
            elif part.is_quoted or _is_field_name(part.name, compiler):
                column = compiler.require_column(self.field, "options.value", part.name)
                needs.append(part.name)
                proof = None
                if column is not None and compiler.level_of(part.name) == 0 and not part.filters:
                    proof = uniqueness.prove_column(column)
                    proof = proof and proof.as_text(formulas_types.from_arrow(column.dtype))
                parts.append((None, proof))
            else:
                expression = self._placeholders.get(part.name) or compile_formula(
                    compiler,
                    self.field,
                    "options.value",
                    part.name,
                    salts=salts,
                    offset=part.start,
                    single=False,
                )
                if expression is not None:
                    self._placeholders[part.name] = expression
                    needs.extend(expression.required_fields)
                    proof = (
                        expression.proof.as_text(expression.kind)
                        if expression.proof and not part.filters
                        else None
                    )
                    parts.append((None, proof))
        self.required_fields = tuple(dict.fromkeys(needs))
        self._proof = uniqueness.prove_parts(parts)

    @property
    def expressions(self) -> list[Expression]:
        return [*super().expressions, *self._placeholders.values()]

    def fill(self, context: ColumnContext) -> pa.Array:
        if self._pattern is None:
            return super().fill(context)

        def column(name: str) -> pa.Array:
            expression = self._placeholders.get(name)
            return context.column(name) if expression is None else expression.column(context)

        return self._pattern.fill(column, context.n)

    def distinct_count(self) -> int | None:
        if self._pattern is None:
            return super().distinct_count()
        return self._proof.distinct_count if self._proof else None

    def unique_hint(self) -> str:
        return f"Make the field it is derived from unique instead. {uniqueness.UNIQUE_HINT}"


class TemplateString(Derived):
    """Text with other fields of the row put into it; without braces it is the same in every row."""

    name = "template_string"
    label = "Template string"
    description = "Text with placeholders for other fields of the row, such as Dear {{first}} {{last}}."
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
            description=(
                "Text with {{field}} or {{formula}} placeholders. Filters: json, upper, lower, "
                "date('YYYY-MM-DD')."
            ),
            json_schema_extra=form_hints.PATTERN,
        )

    options: Options

    def _is_formula(self, source: str) -> bool:
        return False


_NO_BRACES = (
    "Use {{field}} for a field in a text. A value without braces is a formula. For a fixed "
    "text, use type constant."
)
_PLAIN_NAME = re.compile(r"\w+(?: +\w+)*")
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "if", "else"})


def _is_field_name(name: str, compiler: Compiler) -> bool:
    """Return whether the text of a placeholder is the name of a field, not a formula."""
    if compiler.level_of(name) is not None:
        return True
    field_name = name.removeprefix("parent.")
    return (
        bool(_PLAIN_NAME.fullmatch(field_name))
        and not _KEYWORDS.intersection(field_name.split())
        and field_name not in BUILT_IN
    )

"""Values that a formula gives: one expression, or the first case whose condition holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import Field, model_validator

from webapp import limits
from webapp.engine import picks, postprocess
from webapp.engine.expressions import operators, types, unique, vectors
from webapp.engine.expressions.errors import FormulaError, ValueFault
from webapp.engine.expressions.expression import Expression, compile_formula
from webapp.engine.expressions.nodes import Node, literal, read
from webapp.engine.fields.base import FieldType, OptionsModel
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


class Reckoned(FieldType):
    """A column that an expression makes."""

    category = "logic"
    measures = True
    expression: Expression | None = None

    def use(self, expression: Expression | None) -> None:
        """Takes ``expression`` (None after a fault) as what fills the column."""
        self.expression = expression
        self.dtype = pa.null() if expression is None else expression.dtype
        if expression is not None:
            self.max_length, self.needs = expression.longest, expression.needs

    def fill(self, cells: Cells) -> pa.Array:
        assert self.expression is not None  # a column with a fault is never filled
        return self.expression.column(cells)

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return None if self.expression is None else self.expression.bounds

    def refuses(self, name: str, fixed: pa.Array) -> str:
        return refuses(self.compiled, name, fixed)

    @property
    def compiled(self) -> list[Expression]:
        """The expressions that read other fields."""
        return [] if self.expression is None else [self.expression]

    def space(self) -> int | None:
        proof = self.expression and self.expression.proof
        return proof.space if proof else None

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)  # one-to-one with what is unique already

    def unique_hint(self) -> str:
        return unique.ADVICE


def refuses(expressions: list[Expression], name: str, fixed: pa.Array) -> str:
    """Why formulas cannot read the value that ``name`` is fixed to; empty where they can."""
    for expression in expressions:
        kind = expression.kinds.get(name)
        if kind is not None:
            try:
                read(fixed, kind, name)
            except ValueFault as fault:
                return fault.message
    return ""


class Formula(Reckoned):
    """The value of an expression over other fields."""

    name = "formula"
    label = "Formula"
    description = "A value reckoned from other fields, such as price * quantity or upper(name)."
    aliases = ("expression", "calculated", "computed", "calculation", "calculated field")
    example = 41.97

    class Options(OptionsModel):
        expression: str = Field(
            max_length=limits.MAX_FORMULA_CHARS,
            description="Field names, numbers, texts, + - * / // %, comparisons, and, or, not, functions: "
            "round(price * 1.19, 2).",
            json_schema_extra=picks.FORMULA,
        )

        @model_validator(mode="before")
        @classmethod
        def _other_name(cls, given: Any) -> Any:
            """`value`, as type derived has it, does as well."""
            if isinstance(given, dict) and "value" in given and "expression" not in given:
                return {"expression" if key == "value" else key: value for key, value in given.items()}
            return given

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(compile_formula(compiler, field, "options.expression", options.expression))


class One(OptionsModel):
    """A condition, and the value or formula that holds where it is true."""

    when: str = Field(max_length=limits.MAX_FORMULA_CHARS, description="A condition, such as amount > 100.")
    then: Any = Field(None, description="The value where the condition holds: any single JSON value.")
    then_formula: str | None = Field(
        None, max_length=limits.MAX_FORMULA_CHARS, description="Instead of then: a formula for the value."
    )


class Case(Reckoned):
    """The value of the first case whose condition holds, else the last resort."""

    name = "case"
    label = "Case"
    description = "One value or another, by conditions on other fields."
    aliases = ("case when", "conditional", "if then else", "if else", "switch")
    example = "gold"

    class Options(OptionsModel):
        cases: list[One] = Field(
            min_length=1, max_length=limits.MAX_CASES,
            description="Conditions with their values, tried in order: {when, then} or {when, then_formula}.",
            json_schema_extra=picks.FORMULA,
        )  # fmt: skip
        otherwise: Any = Field(
            None, alias="else", description="The value where no condition holds; blank if left out."
        )
        otherwise_formula: str | None = Field(
            None, alias="else_formula", max_length=limits.MAX_FORMULA_CHARS,
            description="Instead of else: a formula for the value.", json_schema_extra=picks.FORMULA,
        )  # fmt: skip

        @model_validator(mode="before")
        @classmethod
        def _one_case(cls, given: Any) -> Any:
            """A single case may stand without a list: when, then, else."""
            if not isinstance(given, dict) or "cases" in given or "when" not in given:
                return given
            if isinstance(given["when"], list):
                return {"cases" if key == "when" else key: value for key, value in given.items()}
            one = {key: given[key] for key in ("when", "then", "then_formula") if key in given}
            return {"cases": [one], **{key: value for key, value in given.items() if key not in one}}

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._compiler = compiler
        self._salts: list[int] = []
        tests: list[Expression | None] = []
        values: list[Expression | Node | None] = []
        for place, one in enumerate(options.cases):
            path = f"options.cases[{place}]"
            tests.append(self._formula(f"{path}.when", one.when))
            values.append(self._value(f"{path}.then", one.then, one.then_formula))
        values.append(self._value("options.else", options.otherwise, options.otherwise_formula))
        self._read = [one for one in (*tests, *values) if isinstance(one, Expression)]
        sound_tests = [one for one in tests if one is not None]
        sound_values = [one for one in values if one is not None]
        complete = len(sound_tests) == len(tests) and len(sound_values) == len(values)
        self.use(self._together(sound_tests, sound_values) if complete else None)
        del self._compiler

    @property
    def compiled(self) -> list[Expression]:
        return self._read

    def _formula(self, option: str, source: str) -> Expression | None:
        return compile_formula(self._compiler, self.field, option, source, salts=self._salts)

    def _value(self, option: str, value: Any, formula: str | None) -> Expression | Node | None:
        if formula is None:
            return self._literal(option, value)
        if value is not None:
            text = "Here is a value and a formula; one of them can hold."
            self._compiler.fault(self.field, f"{option}_formula", "ambiguous", text, "Take one of them away.")
            return None
        return self._formula(f"{option}_formula", formula)

    def _literal(self, option: str, value: Any) -> Node | None:
        if value is None:
            return literal(types.NULL, None, 1)
        pool = postprocess.fixed(value, pa.int64())
        if pa.types.is_nested(pool.type) or isinstance(value, dict | list):
            text = "A case gives single values: texts, numbers, true, false or null."
            self._compiler.fault(self.field, option, "wrong_type", text, "Write JSON as a text.")
            return None
        if isinstance(value, float):
            return self._decimal(option, value)
        kind = types.of_arrow(pool.type)
        return literal(kind, vectors.single(kind, vectors.load(pool, kind)), 1)

    def _decimal(self, option: str, value: float) -> Node | None:
        places = len(repr(value).partition(".")[2]) if "e" not in repr(value) else limits.MAX_DECIMALS
        units = vectors.units_of(value, places) if places <= limits.MAX_DECIMALS else None
        if units is None:
            text = f"{value} has more digits than a number may have here."
            self._compiler.fault(self.field, option, "out_of_range", text, "Write fewer digits.")
            return None
        return literal(types.number(places), units, 1)

    def _together(self, tests: list[Expression], values: list[Expression | Node]) -> Expression | None:
        nodes = [one.node if isinstance(one, Expression) else one for one in values]
        try:
            made = nodes[-1]
            for place in reversed(range(len(tests))):
                test = operators.truth_of(tests[place].node)
                made = operators.either(test, nodes[place], made, 1)
        except FormulaError as error:
            path = f"{self.field.path}.options.cases"
            self._compiler.faults.append(Fault(path, error.code, error.message, error.hint))
            return None
        kinds = {name: kind for one in self._read for name, kind in one.kinds.items()}
        return Expression(made, kinds, f"{self.field.path}.options.cases")

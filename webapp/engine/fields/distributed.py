"""Numbers by one named distribution each, for those who look for it by its name; `number` has most of them too."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from pydantic import Field

from webapp import limits
from webapp.engine import distributions
from webapp.engine.fields.amounts import Amount
from webapp.engine.fields.base import FieldType, OptionsModel
from webapp.engine.fields.number import Number, Numeric, Places

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_HINT = "Unique numbers are drawn evenly: use type number, or take unique away."


class Cut(OptionsModel):
    """Where values are cut off; the distribution keeps its shape between."""

    min: Amount | None = Field(None, description="Least value.")
    max: Amount | None = Field(None, description="Largest value.")


class _Shaped(Numeric):
    """A `Number` whose distribution is the type's."""

    shape: ClassVar[str]

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        given = options.model_dump(by_alias=True, exclude_unset=True)
        super().__init__(
            field, Number.Options.model_validate({"distribution": self.shape, **given}), compiler
        )

    def unique_hint(self) -> str:
        return _HINT


class Normal(_Shaped):
    """The bell curve."""

    name = "normal"
    label = "Normal distribution"
    description = "Numbers by the normal distribution."
    aliases = ("gaussian", "gauss", "bell curve")
    example = 512
    shape = "normal"

    class Options(Places, Cut):
        mean: Amount | None = Field(
            None, description="Mean before the cut; halfway between min and max, or 500."
        )
        stddev: Amount | None = Field(
            None, description="Standard deviation; a sixth of max - min, or 166.67."
        )

    options: Options


class Lognormal(_Shaped):
    """Its logarithm is normal: incomes, durations, sizes."""

    name = "lognormal"
    label = "Lognormal distribution"
    description = "Numbers whose logarithm is normal, such as incomes or durations."
    aliases = ("log normal",)
    example = 431
    shape = "lognormal"

    class Options(Places, Cut):
        mean: Amount | None = Field(None, description="Mean of the values, not of their logarithm; 500.")
        stddev: Amount | None = Field(
            None, description="Standard deviation of the values; a sixth of max - min, or 166.67."
        )

    options: Options


class Exponential(_Shaped):
    """Waiting times."""

    name = "exponential"
    label = "Exponential distribution"
    description = "Numbers by the exponential distribution, such as waiting times."
    example = 73
    shape = "exponential"

    class Options(Places, Cut):
        mean: Amount | None = Field(None, description="Mean; 100.")
        lambda_: Amount | None = Field(None, alias="lambda", description="Rate, in place of mean: 1 / mean.")

    options: Options


class Pareto(_Shaped):
    """Few large ones: wealth, cities, files."""

    name = "pareto"
    label = "Pareto distribution"
    description = "Numbers of which few are very large, such as wealth."
    aliases = ("power law", "80 20")
    example = 2
    shape = "pareto"

    class Options(Places, Cut):
        alpha: Amount | None = Field(None, description="Exponent; 2.5. The smaller, the heavier the tail.")

    options: Options


class Zipf(_Shaped):
    """Ranks: the k-th is k ** alpha times rarer than the first."""

    name = "zipf"
    label = "Zipf distribution"
    description = "Ranks of which the first are the most common, such as of words or products."
    aliases = ("zipfian", "rank")
    example = 3
    shape = "zipf"

    class Options(Cut):
        alpha: Amount | None = Field(None, description="Exponent; 1.")

    options: Options

    @property
    def places(self) -> int:
        return 0


class Poisson(_Shaped):
    """How many events fall into a span."""

    name = "poisson"
    label = "Poisson distribution"
    description = "How many events fall into a span, such as calls in an hour."
    example = 9
    shape = "poisson"

    class Options(Cut):
        lambda_: Amount | None = Field(None, alias="lambda", description="Events on average; 10.")

    options: Options

    @property
    def places(self) -> int:
        return 0


class _Counted(FieldType):
    """Whole numbers of a distribution that a subclass makes."""

    category = "number"
    dtype = pa.int64()
    _draw: distributions.Draw

    def fill(self, cells: Cells) -> pa.Array:
        return pa.array(self._draw.draw(cells.bits()))

    def bounds(self, rows: int) -> tuple[int, int]:
        return self._draw.bounds()

    def unique_hint(self) -> str:
        return _HINT

    def _share(self, given: Decimal, compiler: Compiler) -> Fraction:
        """``given``, the option ``probability``; a half after a fault."""
        if 0 < given < 1:
            return Fraction(given)
        message = f"A probability here lies between 0 and 1, not {given}."
        compiler.fault(
            self.field, "options.probability", "out_of_range", message, "Write 0.25 for a quarter."
        )
        return Fraction(1, 2)


class Binomial(_Counted):
    """How many of so many tries succeed."""

    name = "binomial"
    label = "Binomial distribution"
    description = "How many of a number of tries succeed."
    aliases = ("successes",)
    example = 5

    class Options(OptionsModel):
        trials: int = Field(10, ge=1, le=limits.MAX_TRIALS, description="Tries.")
        probability: Amount = Field(Decimal("0.5"), description="Chance of each, between 0 and 1.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._draw = distributions.binomial(options.trials, self._share(options.probability, compiler))


class Geometric(_Counted):
    """Failures before the first success."""

    name = "geometric"
    label = "Geometric distribution"
    description = "How many tries fail before the first one that succeeds."
    aliases = ("failures",)
    example = 1

    class Options(OptionsModel):
        probability: Amount = Field(Decimal("0.5"), description="Chance of each try, between 0 and 1.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        try:
            self._draw = distributions.geometric(self._share(options.probability, compiler))
        except distributions.TooWide:
            message = "So small a probability leads beyond 64 bits."
            compiler.fault(field, "options.probability", "out_of_range", message, "Raise it.")

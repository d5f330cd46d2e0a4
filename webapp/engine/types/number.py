"""Numbers: random ones, even or by a distribution; truth values; and numbers that count rows.

A `NumberDistribution` is the distribution of numbers between a minimum and a maximum: even on a lattice, a named
distribution, or a histogram of bins. Each named distribution is also a field type, so that a search by its name finds
it.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine import distributions, text
from webapp.engine import random as engine_random
from webapp.engine.distributions import Sampler
from webapp.engine.random import AliasSampler, Rows, below_each, mix
from webapp.engine.types import amounts, values
from webapp.engine.types.amounts import Amount, UnitConverter, integer_weights
from webapp.engine.types.base import FieldType, OptionsModel

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


_BIN_SALT = np.uint64(0xD6E8FEB86659FD93)
_Read = tuple[str, Decimal, Decimal, Decimal]


class Histogram(Sampler):
    """Bins with integer weights: bin i has ``widths[i]`` whole numbers from ``starts[i]`` on, each as likely."""

    def __init__(self, weights: list[int], starts: list[int], widths: list[int]) -> None:
        weighted_bins = [i for i, weight in enumerate(weights) if weight]
        self._bounds = (
            min(starts[i] for i in weighted_bins),
            max(starts[i] + widths[i] - 1 for i in weighted_bins),
        )
        self._weighted = AliasSampler(weights)
        self._starts, self._widths = np.array(starts, np.int64), np.array(widths, np.uint64)

    def draw(self, random: Rows) -> np.ndarray:
        bins = self._weighted.draw(random)
        numbers = below_each(mix(random ^ _BIN_SALT), self._widths[bins]).view(np.int64)
        numbers += self._starts[bins]
        return numbers

    def bounds(self) -> tuple[int, int]:
        return self._bounds


def compile_histogram(options: Any, units: UnitConverter, fault: Callable[..., None]) -> Histogram | None:
    """Return the histogram of the options bins, or edges and weights; None after faults.

    ``fault(option, code, message, hint)`` reports an error.
    """
    fault_options: list[str] = []

    def report(option: str, code: str, message: str, hint: str = "") -> None:
        fault_options.append(option)
        fault(option, code, message, hint)

    for option in ("min", "max"):
        if getattr(options, option) is not None:
            text = "The bins of a histogram determine its minimum and maximum."
            report(option, "not_for_this_distribution", text, f"Remove {option}.")
    bins = _read_bins(options, report)
    read_starts = [units.convert(where, least) for where, least, *_ in bins]
    read_ends = [units.convert(where, end) for where, _, end, _ in bins]
    starts = [start for start in read_starts if start is not None]
    ends = [end for end in read_ends if end is not None]
    if fault_options or not bins or len(starts) < len(bins) or len(ends) < len(bins):
        return None
    last = max(ends)
    for (where, *_), start, end in zip(bins, starts, ends, strict=True):
        if start > end or start == end != last:
            report(
                where, "min_above_max", "The end of a bin must be larger than its start.", "Swap from and to."
            )
    in_order = (
        [] if fault_options else sorted(range(len(bins)), key=lambda place: (starts[place], ends[place]))
    )
    for item, other in pairwise(in_order):
        if starts[other] < ends[item]:
            report(
                bins[other][0],
                "conflict",
                "Two bins overlap.",
                "Each bin must end where the next one begins.",
            )
    if not any(weight for *_, weight in bins):
        report(bins[0][0], "wrong_value", "At least one weight must be more than 0.")
    if fault_options:
        return None
    widths = [end - start + (end == last) for start, end in zip(starts, ends, strict=True)]
    return Histogram(integer_weights([weight for *_, weight in bins]), starts, widths)


def _read_bins(options: Any, report: Callable[..., None]) -> list[_Read]:
    """Return option, minimum, end and weight of each bin; an empty list after a fault."""
    if (not options.bins) == (options.edges is None):
        report(
            "bins", "required", "A histogram needs either bins, or edges and weights.", "Set one of the two."
        )
        return []
    if options.bins:
        if options.weights is not None:
            report(
                "weights", "conflict", "weights is only available with edges.", "Set the weights in the bins."
            )
        for i, bin_ in enumerate(options.bins):
            if bin_.weight < 0:
                report(f"bins[{i}].weight", "wrong_value", "A weight must be 0 or more.")
        return [(f"bins[{i}]", bin_.from_, bin_.to, bin_.weight) for i, bin_ in enumerate(options.bins)]
    edges, weights = options.edges, options.weights or ()
    if len(edges) < 2 or len(weights) != len(edges) - 1:
        text = f"{len(edges)} edges define {len(edges) - 1} bins, but there are {len(weights)} weights."
        report("weights", "wrong_length", text, "Set one weight for each bin.")
        return []
    for i, weight in enumerate(weights):
        if weight < 0:
            report(f"weights[{i}]", "wrong_value", "A weight must be 0 or more.")
    ends = zip(pairwise(edges), weights, strict=True)
    return [(f"edges[{i}]", start, end, weight) for i, ((start, end), weight) in enumerate(ends)]


Distribution = Literal[
    "uniform", "normal", "lognormal", "pareto", "zipf", "poisson", "exponential", "histogram"
]

_DISTRIBUTION_PARAMETERS: dict[str, tuple[str, ...]] = {
    "uniform": ("step",),
    "normal": ("step", "mean", "stddev"),
    "lognormal": ("mean", "stddev"),
    "exponential": ("step", "mean", "lambda"),
    "pareto": ("alpha",),
    "zipf": ("step", "alpha"),
    "poisson": ("mean", "lambda"),
    "histogram": ("bins", "edges", "weights"),
}
_PARAMETERS = ("step", "mean", "stddev", "alpha", "lambda", "bins", "edges", "weights")
DEFAULT_LOW, DEFAULT_WIDTH = 0, 1000
_DEFAULT_MEAN, _DEFAULT_EVENTS = 100, 10
_DEFAULT_ALPHA = {"pareto": Decimal("2.5"), "zipf": Decimal(1)}
_MAX_EXPONENT = 50
_MAX_ITEMS = Field(max_length=limits.MAX_LIST_VALUES)


class BoundsOptions(OptionsModel):
    """Minimum, maximum and step of the numbers."""

    min: Amount | None = Field(None, description="Minimum. Default: 0 if max is not set either.")
    max: Amount | None = Field(None, description="Maximum. Default: min + 1,000.")
    step: Amount | None = Field(None, description="Distance between possible values, starting at min.")


class Bin(OptionsModel):
    "A bin of a histogram."

    from_: Amount = Field(alias="from", description="Minimum.")
    to: Amount = Field(description="Maximum, exclusive except for the last bin.")
    weight: Amount = Field(Decimal(1), description="Relative weight.")


class DistributionParameters(OptionsModel):
    """The distribution and its parameters."""

    parameters: ClassVar[dict[str, dict[str, tuple[str, ...]]]] = {
        "distribution": {
            name: taken if name == "histogram" else ("min", "max", *taken)
            for name, taken in _DISTRIBUTION_PARAMETERS.items()
        }
    }

    distribution: Distribution = Field(
        "uniform",
        description="Distribution of the values. With min or max the distribution is truncated; values "
        "do not accumulate at the ends.",
    )
    mean: Amount | None = Field(
        None,
        description="Mean before min/max are applied. Defaults: midpoint (normal, lognormal), 100 "
        "(exponential), 10 (poisson).",
    )
    stddev: Amount | None = Field(
        None,
        description=(
            "Standard deviation before min/max are applied (normal, lognormal). Default: (max - min) / 6."
        ),
    )
    alpha: Amount | None = Field(
        None,
        description=(
            "Exponent. Defaults: 2.5 (pareto, where min is the scale, default 1), 1 (zipf, "
            "where min is rank 1)."
        ),
    )
    lambda_: Amount | None = Field(
        None,
        alias="lambda",
        description=(
            "Rate (exponential, default 1 / mean) or average number of events (poisson, default 10)."
        ),
    )
    bins: Annotated[tuple[Bin, ...], _MAX_ITEMS] | None = Field(
        None,
        description="Bins of a histogram with weights; values are uniform within a bin. The upper edge "
        "is exclusive, except for the last bin.",
        examples=[[{"from": 0, "to": 10, "weight": 3}, {"from": 10, "to": 100, "weight": 1}]],
    )
    edges: Annotated[tuple[Amount, ...], _MAX_ITEMS] | None = Field(
        None, description="Histogram edges: the start of each bin and the end of the last bin."
    )
    weights: Annotated[tuple[Amount, ...], _MAX_ITEMS] | None = Field(
        None, description="Histogram weights: one for each bin between two edges."
    )


class NumberDistribution:
    """The compiled form of `BoundsOptions` and `DistributionParameters`; values are whole units of the last decimal.

    ``size`` is the number of values if they are uniform, else None. ``low`` and ``high`` are the bounds. After a
    fault the object must not be used.
    """

    size: int | None = None
    low: int
    high: int

    def __init__(
        self, field: FieldSpec, options: Any, compiler: Compiler, places: int, decimals: str
    ) -> None:
        self._field, self._compiler, self._options = field, compiler, options
        self._units = UnitConverter(field, compiler, places, decimals)
        self._base, self._step = 0, 1
        self._draw: distributions.Sampler | None = None
        fault_count = len(compiler.faults)
        low, high = self._units.convert("min", options.min), self._units.convert("max", options.max)
        if low is not None and high is not None and low > high:
            text = f"min ({options.min}) is larger than max ({options.max})."
            self._fault("min", "min_above_max", text, "Swap them.")
        step = self._units.convert("step", getattr(options, "step", None))
        if step is not None:
            self._step = step
            if step <= 0:
                self._fault(
                    "step", "wrong_value", "The step must be larger than 0.", "Remove it to allow all values."
                )
        self._check_parameters()
        if len(compiler.faults) > fault_count:
            return
        try:
            getattr(self, f"_{options.distribution}")(low, high)
        except distributions.TooNarrowError:
            text = f"Almost no values of the {options.distribution} distribution are between min and max."
            self._fault("min" if options.min is not None else "max", "too_narrow", text, "Widen min and max.")
        except distributions.TooWideError:
            text = "These numbers do not fit in 64 bits."
            self._fault("distribution", "out_of_range", text, "Lower mean, stddev or decimals.")
        if len(compiler.faults) == fault_count and self._draw is not None:
            bounds = self._draw.bounds()
            self.low, self.high = (self._base + self._step * end for end in bounds)

    def draw(self, random: np.ndarray) -> np.ndarray:
        """``int64[n]`` of units for random bits."""
        if self._draw is None:
            assert self.size is not None  # even values are counted
            return self.uniform_values(engine_random.below(random, self.size))
        return self._scale(self._draw.draw(random))

    def uniform_values(self, index: np.ndarray) -> np.ndarray:
        """``int64[n]``: the uniform values number ``index`` (``uint64[n]``, overwritten)."""
        return self._scale(index.view(np.int64))

    def _scale(self, numbers: np.ndarray) -> np.ndarray:
        if self._step != 1:
            numbers *= self._step
        if self._base:
            numbers += self._base
        return numbers

    def _fault(self, option: str, code: str, message: str, hint: str = "") -> None:
        self._compiler.fault(self._field, f"options.{option}", code, message, hint)

    def _check_parameters(self) -> None:
        options = self._options
        accepted = _DISTRIBUTION_PARAMETERS[options.distribution]
        for option in _PARAMETERS:
            value = getattr(options, "lambda_" if option == "lambda" else option, None)
            if value is None:
                continue
            if option not in accepted:
                distributions_ = ", ".join(
                    name for name, known in _DISTRIBUTION_PARAMETERS.items() if option in known
                )
                text = f"{option} is not available for the {options.distribution} distribution."
                self._fault(
                    option, "not_for_this_distribution", text, f"It is available for {distributions_}."
                )
            elif option in ("step", "stddev", "alpha", "lambda") and value <= 0:
                self._fault(option, "wrong_value", f"{option} must be larger than 0.")
        if "lambda" in accepted and options.mean is not None and options.lambda_ is not None:
            self._fault("lambda", "conflict", "mean and lambda cannot be combined.", "Set one of them.")

    # Each of these sets what `draw` needs for one distribution.

    def _uniform(self, low: int | None, high: int | None) -> None:
        low, high = self._with_defaults(low, high)
        self._base = low
        self.size = (high - low) // self._step + 1
        self.low, self.high = low, low + (self.size - 1) * self._step

    def _with_defaults(self, low: int | None, high: int | None) -> tuple[int, int]:
        width = DEFAULT_WIDTH * 10**self._units.places
        if low is None:
            low = 0 if high is None or high >= 0 else high - width
        return low, low + width if high is None else high

    def _normal(self, low: int | None, high: int | None) -> None:
        mean, stddev = self._mean_and_stddev(low, high)
        if stddev == 0:
            self._fault("stddev", "required", "min and max are equal, so stddev must be given.")
            return
        self._set_base(low)
        distribution = distributions.normal((mean - self._base) / self._step, stddev / self._step)
        self._draw = self._truncated(distribution, low, high)

    def _mean_and_stddev(self, low: int | None, high: int | None) -> tuple[Fraction, Fraction]:
        lowest, highest = self._with_defaults(low, high)
        mean, stddev = self._options.mean, self._options.stddev
        return (
            Fraction(lowest + highest, 2) if mean is None else self._units.to_fraction(mean),
            Fraction(highest - lowest, 6) if stddev is None else self._units.to_fraction(stddev),
        )

    def _set_base(self, low: int | None) -> None:
        if self._options.step is not None:
            self._base = low or 0

    def _truncated(
        self, draw: distributions.Quantile | distributions.Discrete, low: int | None, high: int | None
    ) -> distributions.Sampler:
        minimum = None if low is None else -(-(low - self._base) // self._step)
        maximum = None if high is None else (high - self._base) // self._step
        return draw if (minimum, maximum) == (None, None) else draw.within(minimum, maximum)

    def _lognormal(self, low: int | None, high: int | None) -> None:
        mean, stddev = self._mean_and_stddev(low, high)
        if mean <= 0 or stddev == 0:
            option = "mean" if mean <= 0 else "stddev"
            self._fault(
                option,
                "wrong_value",
                f"The {option} of a lognormal distribution must be larger than 0.",
                f"Set {option}.",
            )
            return
        self._draw = self._truncated(distributions.lognormal(mean, stddev), low, self._tail_limit(high))

    def _tail_limit(self, high: int | None) -> int:
        """Return the largest value of a heavy tail."""
        largest = min(limits.MAX_UNITS, limits.MAX_INTEGER * 10**self._units.places)
        return largest if high is None else min(high, largest)

    def _exponential(self, low: int | None, high: int | None) -> None:
        rate, mean = self._options.lambda_, self._options.mean
        if mean is not None and mean <= 0:
            self._fault(
                "mean", "wrong_value", "The mean of an exponential distribution must be larger than 0."
            )
            return
        scale = Fraction(10) ** self._units.places
        expected = scale / Fraction(rate) if rate is not None else scale * Fraction(mean or _DEFAULT_MEAN)
        self._set_base(low)
        distribution = distributions.exponential(expected / self._step, Fraction(-self._base, self._step))
        self._draw = self._truncated(distribution, low, high)

    def _pareto(self, low: int | None, high: int | None) -> None:
        scale = 10**self._units.places if low is None else low
        if scale <= 0:
            self._fault(
                "min",
                "wrong_value",
                "The min of a pareto distribution must be larger than 0, because values are multiples of it.",
            )
            return
        alpha = Fraction(self._options.alpha or _DEFAULT_ALPHA["pareto"])
        self._draw = self._truncated(
            distributions.pareto(alpha, Fraction(scale)), low, self._tail_limit(high)
        )

    def _zipf(self, low: int | None, high: int | None) -> None:
        unit = 10**self._units.places
        low = unit if low is None else low
        high = low + (DEFAULT_WIDTH - 1) * unit if high is None else high
        if self._options.step is None:
            self._step = unit
        ranks = (high - low) // self._step + 1
        alpha = self._options.alpha or _DEFAULT_ALPHA["zipf"]
        if low > high:
            self._fault(
                "max",
                "min_above_max",
                "The min of a zipf distribution is 1 by default, which is larger than max.",
            )
        elif ranks > limits.MAX_RANKS:
            text = f"There are {ranks:,} ranks; the maximum is {limits.MAX_RANKS:,}."
            self._fault("max", "out_of_range", text, "Use a smaller range, or a larger step.")
        elif alpha > _MAX_EXPONENT:
            self._fault(
                "alpha", "out_of_range", f"The alpha of a zipf distribution must be at most {_MAX_EXPONENT}."
            )
        else:
            self._base = low
            self._draw = distributions.zipf(Fraction(alpha), ranks)

    def _histogram(self, low: int | None, high: int | None) -> None:
        histogram = compile_histogram(self._options, self._units, self._fault)
        if histogram is not None:
            self._draw = histogram

    def _poisson(self, low: int | None, high: int | None) -> None:
        mean = self._options.lambda_ if self._options.lambda_ is not None else self._options.mean
        events = Fraction(_DEFAULT_EVENTS if mean is None else mean)
        if not 0 < events <= limits.MAX_POISSON_MEAN:
            option = "lambda" if self._options.lambda_ is not None else "mean"
            text = (
                f"The {option} of a poisson distribution must be larger than 0 and at most "
                f"{limits.MAX_POISSON_MEAN:,}."
            )
            self._fault(option, "out_of_range", text, "Use the normal distribution for larger numbers.")
            return
        self._step = 10**self._units.places
        self._draw = self._truncated(distributions.poisson(events), low, high)


class Numeric(FieldType):
    """A number drawn from a `NumberDistribution`: integers without places, else exact decimals. Subclasses say how
    many."""

    category = "number"
    stringify = False
    places_option = "decimals"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._places = self.places
        self._spread = NumberDistribution(field, options, compiler, self._places, self.places_option)
        self.dtype = pa.string() if self.stringify else amounts.arrow_type(self._places)
        if self.stringify and hasattr(self._spread, "low"):
            self.max_length = amounts.max_number_length(self._spread.low, self._spread.high, self._places)

    @property
    def places(self) -> int:
        "Decimal places."
        return getattr(self.options, "decimals", None) or 0

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._column(self._spread.draw(context.bits()))

    def distinct_count(self) -> int | None:
        return self._spread.size

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        assert self._spread.size is not None
        return self._column(self._spread.uniform_values(context.permuted(self._spread.size)))

    def _column(self, units: np.ndarray) -> pa.Array:
        column = amounts.to_column(units, self._places)
        return text.to_text(column) if self.stringify else column

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return None if self.stringify else (self._spread.low, self._spread.high)

    def unique_hint(self) -> str:
        return "Unique numbers are drawn evenly: remove the distribution, or remove unique."


class DecimalsOptions(OptionsModel):
    """Digits after the point, and whether the number is written as text."""

    decimals: int | None = Field(
        None, ge=0, le=limits.MAX_DECIMALS, description="Decimal places. Default: integers."
    )


class StringifyOptions(OptionsModel):
    """Whether the number is written as text."""

    stringify: bool = Field(False, description="Outputs the number as text.")


class Number(Numeric):
    """Whole numbers unless ``decimals`` is set; even unless ``distribution`` is."""

    name = "number"
    label = "Number"
    description = "An integer or decimal, uniformly distributed or with another distribution."
    aliases = (
        "integer", "int", "bigint", "smallint", "tinyint", "long integer", "numeric", "random number", "random int",
        "pyint", "random integer", "number int", "random digit",
    )  # fmt: skip
    example = 417

    class Options(StringifyOptions, DistributionParameters, DecimalsOptions, BoundsOptions):
        pass

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        self.stringify = options.stringify
        super().__init__(field, options, compiler)

    @classmethod
    def capacity(cls) -> int:
        return 1001


class Float(Numeric):
    """Decimals with a fixed number of places; exact, never binary."""

    name = "float"
    label = "Float"
    description = "A decimal with a fixed number of decimal places."
    aliases = (
        "decimal",
        "double",
        "real",
        "decimal number",
        "pyfloat",
        "pydecimal",
        "random float",
        "double precision",
    )
    example = 417.25
    places_option = "precision"

    class Precision(OptionsModel):
        "Decimal places."

        precision: Annotated[int, Field(ge=0, le=limits.MAX_DECIMALS)] = Field(
            2, validation_alias=AliasChoices("precision", "decimals"), description="Decimal places."
        )

    class Options(DistributionParameters, Precision, BoundsOptions):
        pass

    options: Options

    @property
    def places(self) -> int:
        return self.options.precision

    @classmethod
    def capacity(cls) -> int:
        return 100_001


class Boolean(FieldType):
    """True or false, or two other values that represent them."""

    name = "boolean"
    label = "Boolean"
    category = "number"
    description = "True or false, or two custom values."
    aliases = ("null boolean", "bool", "bit", "flag", "true false", "yes no", "pybool", "is active")
    example = True

    class Options(OptionsModel):
        truthy: Any = Field(True, description="Output for true. Any value.")
        falsy: Any = Field(False, description="Output for false. Any value.")
        probability: amounts.Amount | None = Field(
            None, description="Share of true values, from 0 to 1. Default: 0.5."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = values.pool_of([options.falsy, options.truthy])
        self.dtype, self.is_json_text = self._pool.values.type, self._pool.json_text
        self._is_plain = options.truthy is True and options.falsy is False
        if pa.types.is_string(self.dtype):
            self.max_length = values.max_text_length(self._pool)
        if options.probability is not None and not 0 <= options.probability <= 1:
            text = f"The probability must be from 0 to 1, not {options.probability}."
            compiler.fault(field, "options.probability", "out_of_range", text, "Write 0.25 for a quarter.")
        elif self._pool.indices[0] == self._pool.indices[1]:
            compiler.fault(field, "options.falsy", "duplicate", "truthy and falsy are the same value.")
        share = Fraction(1, 2) if options.probability is None else Fraction(options.probability)
        self._probability = (share.numerator, share.denominator)

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._column(engine_random.chance(context.bits(), *self._probability))

    def _column(self, true: np.ndarray) -> pa.Array:
        return pa.array(true) if self._is_plain else self._pool.at(true.view(np.int8))

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return None if self._is_plain else self._pool.bounds

    def distinct_count(self) -> int | None:
        is_uniform = self.options.probability is None
        return 2 if is_uniform and self._pool.distinct.size == 2 else None

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self._column(context.permuted(2).astype(bool))

    def unique_hint(self) -> str:
        if self.options.probability is None:
            return "Use two values that differ in more than case and accents and are not null."
        return "Unique values are drawn evenly: remove the probability, or remove unique."

    @classmethod
    def capacity(cls) -> int:
        return 2


class RowNumber(FieldType):
    """1 for the first row of the template, for any offset of a request."""

    name = "row_number"
    label = "Row number"
    category = "number"
    description = "Counts the rows: 1, 2, 3 ..."
    aliases = ("row", "auto increment", "autoincrement", "index", "serial")
    example = 1
    dtype = pa.int64()

    def fill(self, context: ColumnContext) -> pa.Array:
        return pa.array((context.rows + np.uint64(1)).view(np.int64))

    def distinct_count(self) -> int:
        return 1 << 62

    def bounds(self, rows: int) -> tuple[int, int]:
        return 1, rows

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)


class StepOptions(OptionsModel):
    """The start and the step of a count."""

    start: int = Field(1, ge=-limits.MAX_INTEGER, le=limits.MAX_INTEGER, description="First value.")
    step: int = Field(
        1,
        ge=-limits.MAX_INTEGER,
        le=limits.MAX_INTEGER,
        description=("Difference between consecutive values."),
    )


class StepType(FieldType):
    """start + step times the number of steps from the start to the row."""

    category = "number"
    options: StepOptions
    _repeat: int = 1
    _pad: int = 0

    def __init__(self, field: FieldSpec, options: StepOptions, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.int64()
        if options.step == 0:
            compiler.fault(
                field,
                "options.step",
                "wrong_value",
                "The step must not be 0.",
                "For equal values, use type constant.",
            )

    def fill(self, context: ColumnContext) -> pa.Array:
        numbers = pa.array(
            self.step_numbers(context.rows).view(np.int64) * self.options.step + self.options.start
        )
        return pad_numbers(numbers, self._pad) if self._pad else numbers

    def step_numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of steps from the start to each row."""
        return rows if self._repeat == 1 else rows // np.uint64(self._repeat)

    def available_rows(self, state: Any) -> int | None:
        return (1 << 62) // abs(self.options.step) * self._repeat

    def bounds(self, rows: int) -> tuple[int, int] | None:
        last = self.options.start + self.options.step * ((rows - 1) // self._repeat)
        return None if self._pad else (min(self.options.start, last), max(self.options.start, last))

    def distinct_count(self) -> int | None:
        return (1 << 62) // abs(self.options.step or 1) if self._repeat == 1 else None

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)


class Sequence(StepType):
    """start + step x row, each value ``repeat`` times, with leading zeros up to ``pad`` digits."""

    name = "sequence"
    label = "Sequence"
    description = "An arithmetic sequence with a start and a step."
    aliases = ("series", "increment", "number sequence")
    example = 1

    class Options(StepOptions):
        repeat: int = Field(1, ge=1, le=limits.MAX_INTEGER, description="Number of rows with the same value.")
        pad: int = Field(
            0,
            ge=0,
            le=limits.MAX_PAD_DIGITS,
            description=("Pads with leading zeros to this many digits; outputs text."),
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._repeat, self._pad = options.repeat, options.pad
        if self._pad:
            self.dtype = pa.string()

    def unique_hint(self) -> str:
        return "Set repeat to 1."


def pad_numbers(numbers: pa.Array, width: int) -> pa.Array:
    """Integers as text with leading zeros; a minus sign precedes the zeros."""
    digits = pc.utf8_lpad(pc.abs(numbers).cast(pa.string()), width, "0")
    negative = pc.less(numbers, 0)
    if not pc.any(negative).as_py():
        return digits
    return pc.if_else(negative, pc.binary_join_element_wise("-", digits, ""), digits)


_HINT = "Unique numbers are drawn evenly: use type number, or remove unique."


class TruncationOptions(OptionsModel):
    """The range to which the distribution is truncated."""

    min: Amount | None = Field(None, description="Minimum.")
    max: Amount | None = Field(None, description="Maximum.")


class _DistributionType(Numeric):
    """A `Number` whose distribution is the type's."""

    distribution: ClassVar[str]

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        own_options = options.model_dump(by_alias=True, exclude_unset=True)
        super().__init__(
            field, Number.Options.model_validate({"distribution": self.distribution, **own_options}), compiler
        )

    def unique_hint(self) -> str:
        return _HINT


class Normal(_DistributionType):
    """The bell curve."""

    name = "normal"
    label = "Normal distribution"
    description = "Numbers with a normal distribution."
    aliases = ("gaussian", "gauss", "bell curve")
    example = 512
    distribution = "normal"

    class Options(DecimalsOptions, TruncationOptions):
        mean: Amount | None = Field(
            None, description="Mean before min/max are applied. Default: midpoint of min and max, or 500."
        )
        stddev: Amount | None = Field(
            None, description="Standard deviation. Default: (max - min) / 6, or 166.67."
        )

    options: Options


class Lognormal(_DistributionType):
    """Its logarithm is normal: incomes, durations, sizes."""

    name = "lognormal"
    label = "Lognormal distribution"
    description = "Numbers whose logarithm is normally distributed, such as incomes or durations."
    aliases = ("log normal",)
    example = 431
    distribution = "lognormal"

    class Options(DecimalsOptions, TruncationOptions):
        mean: Amount | None = Field(
            None, description=("Mean of the values, not of their logarithm. Default: 500.")
        )
        stddev: Amount | None = Field(
            None, description="Standard deviation of the values. Default: (max - min) / 6, or 166.67."
        )

    options: Options


class Exponential(_DistributionType):
    """Waiting times."""

    name = "exponential"
    label = "Exponential distribution"
    description = "Numbers with an exponential distribution, such as waiting times."
    example = 73
    distribution = "exponential"

    class Options(DecimalsOptions, TruncationOptions):
        mean: Amount | None = Field(None, description="Mean. Default: 100.")
        lambda_: Amount | None = Field(
            None, alias="lambda", description=("Rate, as an alternative to mean: 1 / mean.")
        )

    options: Options


class Pareto(_DistributionType):
    """Few large ones: wealth, cities, files."""

    name = "pareto"
    label = "Pareto distribution"
    description = "Numbers with a Pareto distribution: a few are very large, as with wealth."
    aliases = ("power law", "80 20")
    example = 2
    distribution = "pareto"

    class Options(DecimalsOptions, TruncationOptions):
        alpha: Amount | None = Field(
            None, description=("Exponent. Default: 2.5. Smaller exponents have heavier tails.")
        )

    options: Options


class Zipf(_DistributionType):
    """Ranks: the k-th is k ** alpha times rarer than the first."""

    name = "zipf"
    label = "Zipf distribution"
    description = "Ranks with a Zipf distribution: low ranks are most common, as with words or products."
    aliases = ("zipfian", "rank")
    example = 3
    distribution = "zipf"

    class Options(TruncationOptions):
        alpha: Amount | None = Field(None, description="Exponent. Default: 1.")

    options: Options

    @property
    def places(self) -> int:
        return 0


class Poisson(_DistributionType):
    """Number of events in an interval."""

    name = "poisson"
    label = "Poisson distribution"
    description = "Number of events in an interval (Poisson distribution), such as calls per hour."
    example = 9
    distribution = "poisson"

    class Options(TruncationOptions):
        lambda_: Amount | None = Field(
            None, alias="lambda", description=("Average number of events. Default: 10.")
        )

    options: Options

    @property
    def places(self) -> int:
        return 0


class _CountType(FieldType):
    """Integers from a distribution that a subclass sets."""

    category = "number"
    dtype = pa.int64()
    _draw: distributions.Sampler

    def fill(self, context: ColumnContext) -> pa.Array:
        return pa.array(self._draw.draw(context.bits()))

    def bounds(self, rows: int) -> tuple[int, int]:
        return self._draw.bounds()

    def unique_hint(self) -> str:
        return _HINT

    def _probability(self, probability: Decimal, compiler: Compiler) -> Fraction:
        """Return the option ``probability`` as a fraction; one half after a fault."""
        if 0 < probability < 1:
            return Fraction(probability)
        message = f"The probability must be between 0 and 1, not {probability}."
        compiler.fault(
            self.field, "options.probability", "out_of_range", message, "Write 0.25 for a quarter."
        )
        return Fraction(1, 2)


class Binomial(_CountType):
    """The number of successes in a fixed number of trials."""

    name = "binomial"
    label = "Binomial distribution"
    description = "Number of successes in a number of trials (binomial distribution)."
    aliases = ("successes",)
    example = 5

    class Options(OptionsModel):
        trials: int = Field(10, ge=1, le=limits.MAX_TRIALS, description="Number of trials.")
        probability: Amount = Field(
            Decimal("0.5"), description=("Probability of success of each trial, between 0 and 1.")
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._draw = distributions.binomial(options.trials, self._probability(options.probability, compiler))


class Geometric(_CountType):
    """Failures before the first success."""

    name = "geometric"
    label = "Geometric distribution"
    description = "Number of failures before the first success (geometric distribution)."
    aliases = ("failures",)
    example = 1

    class Options(OptionsModel):
        probability: Amount = Field(
            Decimal("0.5"), description=("Probability of success of each trial, from 0 to 1.")
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        try:
            self._draw = distributions.geometric(self._probability(options.probability, compiler))
        except distributions.TooWideError:
            message = "The probability is so small that values do not fit in 64 bits."
            compiler.fault(field, "options.probability", "out_of_range", message, "Use a larger probability.")

"""How numbers are spread between a least and a largest one: evenly on a lattice, or by a distribution."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from webapp import limits
from webapp.engine import cells as cellular
from webapp.engine import distributions
from webapp.engine.fields import histogram
from webapp.engine.fields.amounts import Amount, Units
from webapp.engine.fields.base import OptionsModel

if TYPE_CHECKING:
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

Distribution = Literal[
    "uniform", "normal", "lognormal", "pareto", "zipf", "poisson", "exponential", "histogram"
]

_TAKES: dict[str, tuple[str, ...]] = {
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
_MANY = Field(max_length=limits.MAX_LIST_VALUES)


class Bounds(OptionsModel):
    """Least and largest number, and the step between neighbours."""

    min: Amount | None = Field(None, description="Least value; 0 if neither this nor max is given.")
    max: Amount | None = Field(None, description="Largest value; 1,000 above min if not given.")
    step: Amount | None = Field(None, description="Distance between neighbouring values, counted from min.")


class Bin(OptionsModel):
    """A stretch of a histogram."""

    from_: Amount = Field(alias="from", description="Least value.")
    to: Amount = Field(description="The next bin's least value; the last bin has it too.")
    weight: Amount = Field(Decimal(1), description="Share of the values, on any scale.")


class Shape(OptionsModel):
    """Which distribution, and its parameters."""

    distribution: Distribution = Field(
        "uniform",
        description="How values are spread. With min or max the others are cut there and keep their shape; "
        "nothing piles up at the ends.",
    )
    mean: Amount | None = Field(
        None,
        description="Mean of the values before they are cut: normal, lognormal (halfway between min and max), "
        "exponential (100), poisson (10).",
    )
    stddev: Amount | None = Field(
        None, description="Standard deviation before the cut: normal, lognormal (a sixth of max - min)."
    )
    alpha: Amount | None = Field(
        None, description="Exponent: pareto (2.5; min is its scale, 1), zipf (1; min is rank 1)."
    )
    lambda_: Amount | None = Field(
        None, alias="lambda", description="Rate: exponential (1 / mean); events on average: poisson (10)."
    )
    bins: Annotated[tuple[Bin, ...], _MANY] | None = Field(
        None,
        description="Histogram: stretches of values with their weights, even inside. Values of a bin lie below its "
        "end; the last value of all is drawn too.",
        examples=[[{"from": 0, "to": 10, "weight": 3}, {"from": 10, "to": 100, "weight": 1}]],
    )
    edges: Annotated[tuple[Amount, ...], _MANY] | None = Field(
        None, description="Histogram: the same, where each bin begins and, at the end, the last one ends."
    )
    weights: Annotated[tuple[Amount, ...], _MANY] | None = Field(
        None, description="Histogram: a weight for each stretch between two edges."
    )


class Spread:
    """The compiled form of `Bounds` and `Shape`; values are whole units of the last decimal.

    ``size`` counts the values where they are even, else it is None. ``low`` and ``high`` bound them. After a fault
    nothing of it may be used.
    """

    size: int | None = None
    low: int
    high: int

    def __init__(
        self, field: FieldSpec, options: Any, compiler: Compiler, places: int, decimals: str
    ) -> None:
        self._field, self._compiler, self._options = field, compiler, options
        self._units = Units(field, compiler, places, decimals)
        self._base, self._step = 0, 1
        self._draw: distributions.Draw | None = None
        before = len(compiler.faults)
        low, high = self._range()
        self._check_parameters()
        if len(compiler.faults) > before:
            return
        try:
            getattr(self, f"_{options.distribution}")(low, high)
        except distributions.TooNarrow:
            text = f"Hardly anything of the {options.distribution} distribution lies between min and max."
            self._fault("min" if options.min is not None else "max", "too_narrow", text, "Widen min and max.")
        except distributions.TooWide:
            text = "These numbers reach beyond 64 bits."
            self._fault("distribution", "out_of_range", text, "Lower mean, stddev or the decimals.")
        if len(compiler.faults) == before and self._draw is not None:
            ends = self._draw.bounds()
            self.low, self.high = (self._base + self._step * end for end in ends)

    def draw(self, random: np.ndarray) -> np.ndarray:
        """``int64[n]`` of units for random bits."""
        if self._draw is None:
            assert self.size is not None  # even values are counted
            return self.at(cellular.below(random, self.size))
        return self._placed(self._draw.draw(random))

    def at(self, index: np.ndarray) -> np.ndarray:
        """``int64[n]``: the even values number ``index`` (``uint64[n]``, overwritten)."""
        return self._placed(index.view(np.int64))

    def _placed(self, numbers: np.ndarray) -> np.ndarray:
        if self._step != 1:
            numbers *= self._step
        if self._base:
            numbers += self._base
        return numbers

    def _fault(self, option: str, code: str, message: str, hint: str = "") -> None:
        self._compiler.fault(self._field, f"options.{option}", code, message, hint)

    def _range(self) -> tuple[int | None, int | None]:
        options = self._options
        low, high = self._units.of("min", options.min), self._units.of("max", options.max)
        if low is not None and high is not None and low > high:
            text = f"min ({options.min}) is larger than max ({options.max})."
            self._fault("min", "min_above_max", text, "Swap them.")
        step = self._units.of("step", getattr(options, "step", None))
        if step is not None:
            self._step = step
            if step <= 0:
                self._fault(
                    "step", "wrong_value", "A step is larger than 0.", "Leave it out for every value."
                )
        return low, high

    def _check_parameters(self) -> None:
        options = self._options
        takes = _TAKES[options.distribution]
        for option in _PARAMETERS:
            value = self._given(option)
            if value is None:
                continue
            if option not in takes:
                fitting = ", ".join(name for name, known in _TAKES.items() if option in known)
                text = f"{option} is not for the {options.distribution} distribution."
                self._fault(option, "not_for_this_distribution", text, f"It is for {fitting}.")
            elif option in ("step", "stddev", "alpha", "lambda") and value <= 0:
                self._fault(option, "wrong_value", f"{option} is larger than 0.")
        if "lambda" in takes and options.mean is not None and options.lambda_ is not None:
            self._fault("lambda", "conflict", "mean and lambda say the same thing.", "Give one of them.")

    def _given(self, option: str) -> Decimal | None:
        return getattr(self._options, "lambda_" if option == "lambda" else option, None)

    # Each of these sets what `draw` needs for one distribution.

    def _uniform(self, low: int | None, high: int | None) -> None:
        low, high = self._filled(low, high)
        self._base = low
        self.size = (high - low) // self._step + 1
        self.low, self.high = low, low + (self.size - 1) * self._step

    def _filled(self, low: int | None, high: int | None) -> tuple[int, int]:
        width = DEFAULT_WIDTH * 10**self._units.places
        if low is None:
            low = 0 if high is None or high >= 0 else high - width
        return low, low + width if high is None else high

    def _normal(self, low: int | None, high: int | None) -> None:
        mean, stddev = self._moments(low, high)
        if stddev == 0:
            self._fault("stddev", "required", "min and max are equal, so stddev must be given.")
            return
        self._on_lattice(low)
        line = distributions.normal((mean - self._base) / self._step, stddev / self._step)
        self._draw = self._cut(line, low, high)

    def _moments(self, low: int | None, high: int | None) -> tuple[Fraction, Fraction]:
        least, largest = self._filled(low, high)
        mean, stddev = self._options.mean, self._options.stddev
        return (
            Fraction(least + largest, 2) if mean is None else self._units.share(mean),
            Fraction(largest - least, 6) if stddev is None else self._units.share(stddev),
        )

    def _on_lattice(self, low: int | None) -> None:
        if self._options.step is not None:
            self._base = low or 0

    def _cut(
        self, draw: distributions.Quantile | distributions.Discrete, low: int | None, high: int | None
    ) -> distributions.Draw:
        least = None if low is None else -(-(low - self._base) // self._step)
        largest = None if high is None else (high - self._base) // self._step
        return draw if (least, largest) == (None, None) else draw.within(least, largest)

    def _lognormal(self, low: int | None, high: int | None) -> None:
        mean, stddev = self._moments(low, high)
        if mean <= 0 or stddev == 0:
            option = "mean" if mean <= 0 else "stddev"
            self._fault(option, "wrong_value", f"A lognormal {option} is larger than 0.", f"Give {option}.")
            return
        self._draw = self._cut(distributions.lognormal(mean, stddev), low, self._cap(high))

    def _cap(self, high: int | None) -> int:
        """Where a heavy tail ends at the latest."""
        cap = min(limits.MAX_UNITS, limits.MAX_INTEGER * 10**self._units.places)
        return cap if high is None else min(high, cap)

    def _exponential(self, low: int | None, high: int | None) -> None:
        rate, mean = self._options.lambda_, self._options.mean
        if mean is not None and mean <= 0:
            self._fault("mean", "wrong_value", "An exponential mean is larger than 0.")
            return
        scale = Fraction(10) ** self._units.places
        expected = scale / Fraction(rate) if rate is not None else scale * Fraction(mean or _DEFAULT_MEAN)
        self._on_lattice(low)
        line = distributions.exponential(expected / self._step, Fraction(-self._base, self._step))
        self._draw = self._cut(line, low, high)

    def _pareto(self, low: int | None, high: int | None) -> None:
        least = 10**self._units.places if low is None else low
        if least <= 0:
            self._fault("min", "wrong_value", "A pareto min is larger than 0: values are multiples of it.")
            return
        alpha = Fraction(self._options.alpha or _DEFAULT_ALPHA["pareto"])
        self._draw = self._cut(distributions.pareto(alpha, Fraction(least)), low, self._cap(high))

    def _zipf(self, low: int | None, high: int | None) -> None:
        unit = 10**self._units.places
        low = unit if low is None else low
        high = low + (DEFAULT_WIDTH - 1) * unit if high is None else high
        if self._options.step is None:
            self._step = unit
        ranks = (high - low) // self._step + 1
        alpha = self._options.alpha or _DEFAULT_ALPHA["zipf"]
        if low > high:
            self._fault("max", "min_above_max", "A zipf min is 1 if not given, which is larger than max.")
        elif ranks > limits.MAX_RANKS:
            text = f"{ranks:,} ranks; {limits.MAX_RANKS:,} is the most."
            self._fault("max", "out_of_range", text, "Narrow min and max, or widen the step.")
        elif alpha > _MAX_EXPONENT:
            self._fault("alpha", "out_of_range", f"A zipf alpha is at most {_MAX_EXPONENT}.")
        else:
            self._base = low
            self._draw = distributions.zipf(Fraction(alpha), ranks)

    def _histogram(self, low: int | None, high: int | None) -> None:
        made = histogram.compiled(self._options, self._units, self._fault)
        if made is not None:
            self._draw = made

    def _poisson(self, low: int | None, high: int | None) -> None:
        given = self._options.lambda_ if self._options.lambda_ is not None else self._options.mean
        events = Fraction(_DEFAULT_EVENTS if given is None else given)
        if not 0 < events <= limits.MAX_POISSON_MEAN:
            option = "lambda" if self._options.lambda_ is not None else "mean"
            text = f"A poisson {option} is larger than 0 and at most {limits.MAX_POISSON_MEAN:,}."
            self._fault(option, "out_of_range", text, "Use the normal distribution for larger numbers.")
            return
        self._step = 10**self._units.places
        self._draw = self._cut(distributions.poisson(events), low, high)

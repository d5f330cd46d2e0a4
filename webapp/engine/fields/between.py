"""What dates and times have in common: two ends, which may hang on ``now``, and how values lie between them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp import limits
from webapp.engine import cells as cellular
from webapp.engine import dates, distributions, fixed_point, moments
from webapp.engine.errors import SpecError
from webapp.engine.fields.amounts import Amount
from webapp.engine.fields.base import FieldType, OptionsModel
from webapp.errors import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from webapp.engine.block import Cells, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

DEFAULT_SPAN = "10y"
DAY_SECONDS = 86_400
_HALF_LIFE = 90
_WHEN = f"such as {moments.EXAMPLES}"
_DISTRIBUTION = "How values are spread; recent_bias halves their number every halflife_days back from max."


class Between(OptionsModel):
    """Two points in time and how values are spread between them."""

    min: str | None = Field(
        None, max_length=limits.MAX_NAME_CHARS, description=f"Earliest, {_WHEN}; 10 years before max."
    )
    max: str | None = Field(
        None, max_length=limits.MAX_NAME_CHARS, description="Latest, in the same ways; now."
    )


class Lying(OptionsModel):
    """How values are spread between min and max."""

    distribution: Literal["uniform", "normal", "recent_bias"] = Field("uniform", description=_DISTRIBUTION)
    halflife_days: Amount | None = Field(None, description=f"Half-life of recent_bias in days; {_HALF_LIFE}.")


class Spelled(OptionsModel):
    """How a value is written."""

    format: str | None = Field(
        None,
        min_length=1,
        max_length=limits.MAX_AFFIX_CHARS,
        description="How it is written, in YYYY-MM-DD HH:mm:ss tokens or strftime's %Y-%m-%d; ISO 8601 if left out.",
        examples=["DD.MM.YYYY", "%d %b %Y"],
    )


@dataclass(frozen=True, slots=True)
class Span:
    """A resolved range: ``size`` units (days or seconds since 1970) from ``low`` on, and how they are drawn."""

    low: int
    size: int
    draw: distributions.Draw | None

    def at(self, random: np.ndarray) -> np.ndarray:
        """``int64[n]`` of units for random bits."""
        drawn = (
            cellular.below(random, self.size).view(np.int64) if self.draw is None else self.draw.draw(random)
        )
        drawn += self.low
        return drawn


class Point(FieldType):
    """A day or a second between ``min`` and ``max``."""

    category = "time"
    unit: ClassVar[int]
    """Seconds."""
    options: Between

    def __init__(self, field: FieldSpec, options: Between, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        before = len(compiler.faults)
        self._low, self._high = (self._moment(name, compiler) for name in ("min", "max"))
        self._fixed: Span | None = None
        self._check_spread(compiler)
        if len(compiler.faults) == before:
            self._check_order(compiler)

    def _moment(self, name: str, compiler: Compiler) -> moments.Moment | None:
        source = getattr(self.options, name)
        if source is None:
            return None
        try:
            return moments.parse(source)
        except moments.MomentError as error:
            compiler.fault(
                self.field, f"options.{name}", "bad_date", str(error), f"Write one of {moments.EXAMPLES}."
            )
            return _BROKEN

    def _check_order(self, compiler: Compiler) -> None:
        """Finds what is wrong whatever ``now`` is. Where it matters what it is, `prepare` finds it."""
        absolute = self._low is not None and self._high is not None and self._low.at and self._high.at
        relative = not (self._low and self._low.at) and not (self._high and self._high.at)
        if absolute or relative:
            try:
                spans = [self._span(now) for now in _SAMPLE_NOWS]
                self._fixed = spans[0] if absolute else None
            except SpecError as error:
                compiler.faults.extend(error.faults)

    def _check_spread(self, compiler: Compiler) -> None:
        options = self.options
        if not isinstance(options, Lying) or options.halflife_days is None:
            return
        if options.distribution != "recent_bias":
            message = f"halflife_days is not for the {options.distribution} distribution."
            hint = "It is for recent_bias."
            compiler.fault(self.field, "options.halflife_days", "not_for_this_distribution", message, hint)
        elif options.halflife_days <= 0:
            compiler.fault(
                self.field, "options.halflife_days", "wrong_value", "A half-life is larger than 0."
            )

    def prepare(self, env: Env) -> Span:
        return self._fixed or self._span(env.now)

    def _span(self, now: datetime) -> Span:
        low, high = self._ends(now)
        if low > high:
            message = f"min ({self.options.min}) is later than max ({self.options.max or 'now'})."
            raise SpecError([Fault(f"{self.field.path}.options.min", "min_above_max", message, "Swap them.")])
        return Span(low, high - low + 1, self._draw(high - low + 1))

    def _ends(self, now: datetime) -> tuple[int, int]:
        try:
            high = (self._high or _NOW).resolve(now)
            low = self._low.resolve(now) if self._low else moments.parse(f"-{DEFAULT_SPAN}").resolve(high)
        except moments.MomentError as error:
            raise SpecError(
                [Fault(f"{self.field.path}.options.min", "out_of_range", str(error), "")]
            ) from None
        last = moments.seconds(high)
        if self._high is not None and self._high.at is not None and self._high.midnight:
            last += DAY_SECONDS - 1  # a date alone means the whole day
        return moments.seconds(low) // self.unit, last // self.unit

    def _draw(self, size: int) -> distributions.Draw | None:
        options = self.options
        if not isinstance(options, Lying) or options.distribution == "uniform" or size == 1:
            return None
        if options.distribution == "normal":
            return _middle(size)
        half_life = Fraction(options.halflife_days or _HALF_LIFE) * DAY_SECONDS / self.unit
        try:
            return _recent(half_life, size)
        except (distributions.TooNarrow, distributions.TooWide):
            return None  # over a billionth of its half-life nothing can be told from even

    def space(self) -> int | None:
        return limits.MAX_INTEGER if self._even and self._tells_apart() else None

    @property
    def _even(self) -> bool:
        """Whether each value is as likely as the others."""
        return not isinstance(self.options, Lying) or self.options.distribution == "uniform"

    def _tells_apart(self) -> bool:
        """Whether no two units are written alike."""
        return True

    def space_in(self, state: Span) -> int | None:
        return state.size

    def fill(self, cells: Cells) -> pa.Array:
        return self.column(cells.state.at(cells.bits()), cells)

    def fill_unique(self, cells: Cells) -> pa.Array:
        span = cells.state
        return self.column(cells.permuted(span.size).view(np.int64) + span.low, cells)

    @abstractmethod
    def column(self, units: np.ndarray, cells: Cells) -> pa.Array:
        """The column for ``int64[n]`` of days or seconds since 1970."""

    def unique_hint(self) -> str:
        if not self._even:
            return "Unique values are drawn evenly: take the distribution away, or take unique away."
        return "The format leaves a part of the value out: write all of it."


def spelling(
    field: FieldSpec, source: str | None, compiler: Compiler, clock: bool
) -> Callable[[pa.Array], pa.Array] | None:
    """The option ``format``, checked, as a function from dates or moments to texts; None where there is none, or a
    fault. ``clock``: whether there is a time of day to write."""
    if source is None:
        return None
    try:
        spell = dates.formatter(source)
        if not clock and dates.needs_clock(source):
            message = "A date has no time of day to write."
            compiler.fault(field, "options.format", "not_for_this_type", message, "Use type datetime.")
        return spell
    except dates.DateFormatError as error:
        compiler.fault(field, "options.format", "bad_format", str(error))
        return None


_NOW = moments.parse("now")
_BROKEN = moments.parse("now")
_SAMPLE_NOWS = (datetime(2024, 3, 31, tzinfo=UTC), datetime(2025, 7, 15, 12, tzinfo=UTC))


@lru_cache(maxsize=256)
def _middle(size: int) -> distributions.Draw:
    """Most in the middle, the ends three standard deviations away."""
    return distributions.normal(Fraction(size - 1, 2), Fraction(size, 6)).within(0, size - 1)


class _Backwards(distributions.Draw):
    """Counts ``draw`` back from the end of ``size`` units."""

    def __init__(self, draw: distributions.Draw, size: int) -> None:
        self._draw, self._last = draw, size - 1

    def draw(self, random: np.ndarray) -> np.ndarray:
        return self._last - self._draw.draw(random)


@lru_cache(maxsize=256)
def _recent(half_life: Fraction, size: int) -> distributions.Draw:
    """The number of units back is geometric: each ``half_life`` of them halves it."""
    mean = half_life / fixed_point.ln(Fraction(2))
    return _Backwards(distributions.exponential(mean, Fraction(-1, 2)).within(0, size - 1), size)

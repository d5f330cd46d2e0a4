"""Fields of the category number, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class BinaryNumberField(Field):
    """Eight binary digits."""

    type_name = "binary_number"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class BinomialField(Field):
    """Number of successes in a number of trials (binomial distribution).

    trials: Number of trials.
    probability: Probability of success of each trial, between 0 and 1.
    """

    type_name = "binomial"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        trials: int = UNSET,
        probability: float = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"trials": trials, "probability": probability})


class BooleanField(Field):
    """True or false, or two custom values.

    truthy: Output for true. Any value.
    falsy: Output for false. Any value.
    probability: Share of true values, from 0 to 1. Default: 0.5.
    """

    type_name = "boolean"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        truthy: Any = UNSET,
        falsy: Any = UNSET,
        probability: float | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"truthy": truthy, "falsy": falsy, "probability": probability})


class CounterField(Field):
    """Counts up from a start value; with an end, starts over.

    start: First value.
    step: Difference between consecutive rows.
    end: Last value before the counter starts over. Default: never starts over.
    """

    type_name = "counter"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        start: int = UNSET,
        step: int = UNSET,
        end: int | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"start": start, "step": step, "end": end})


class ExponentialField(Field):
    """Numbers with an exponential distribution, such as waiting times.

    min: Minimum.
    max: Maximum.
    decimals: Decimal places. Default: integers.
    mean: Mean. Default: 100.
    lambda_: Rate, as an alternative to mean: 1 / mean.
    """

    type_name = "exponential"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: float | None = UNSET,
        max: float | None = UNSET,
        decimals: int | None = UNSET,
        mean: float | None = UNSET,
        lambda_: float | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {"min": min, "max": max, "decimals": decimals, "mean": mean, "lambda": lambda_},
        )


class FloatField(Field):
    """A decimal with a fixed number of decimal places.

    min: Minimum. Default: 0 if max is not set either.
    max: Maximum. Default: min + 1,000.
    step: Distance between possible values, starting at min.
    precision: Decimal places.
    distribution: Distribution of the values. With min or max the distribution is truncated; values do not
        accumulate at the ends.
    mean: Mean before min/max are applied. Defaults: midpoint (normal, lognormal), 100 (exponential), 10
        (poisson).
    stddev: Standard deviation before min/max are applied (normal, lognormal). Default: (max - min) / 6.
    alpha: Exponent. Defaults: 2.5 (pareto, where min is the scale, default 1), 1 (zipf, where min is rank
        1).
    lambda_: Rate (exponential, default 1 / mean) or average number of events (poisson, default 10).
    bins: Bins of a histogram with weights; values are uniform within a bin. The upper edge is exclusive,
        except for the last bin.
    edges: Histogram edges: the start of each bin and the end of the last bin.
    weights: Histogram weights: one for each bin between two edges.
    """

    type_name = "float"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: float | None = UNSET,
        max: float | None = UNSET,
        step: float | None = UNSET,
        precision: int = UNSET,
        distribution: Literal[
            "uniform", "normal", "lognormal", "pareto", "zipf", "poisson", "exponential", "histogram"
        ] = UNSET,
        mean: float | None = UNSET,
        stddev: float | None = UNSET,
        alpha: float | None = UNSET,
        lambda_: float | None = UNSET,
        bins: list[dict[str, Any]] | None = UNSET,
        edges: list[float] | None = UNSET,
        weights: list[float] | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {
                "min": min,
                "max": max,
                "step": step,
                "precision": precision,
                "distribution": distribution,
                "mean": mean,
                "stddev": stddev,
                "alpha": alpha,
                "lambda": lambda_,
                "bins": bins,
                "edges": edges,
                "weights": weights,
            },
        )


class GeometricField(Field):
    """Number of failures before the first success (geometric distribution).

    probability: Probability of success of each trial, from 0 to 1.
    """

    type_name = "geometric"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        probability: float = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"probability": probability})


class HexNumberField(Field):
    """Eight hexadecimal digits."""

    type_name = "hex_number"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class LognormalField(Field):
    """Numbers whose logarithm is normally distributed, such as incomes or durations.

    min: Minimum.
    max: Maximum.
    decimals: Decimal places. Default: integers.
    mean: Mean of the values, not of their logarithm. Default: 500.
    stddev: Standard deviation of the values. Default: (max - min) / 6, or 166.67.
    """

    type_name = "lognormal"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: float | None = UNSET,
        max: float | None = UNSET,
        decimals: int | None = UNSET,
        mean: float | None = UNSET,
        stddev: float | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {"min": min, "max": max, "decimals": decimals, "mean": mean, "stddev": stddev},
        )


class MoneyField(Field):
    """An amount of money with its symbol, such as $12.50.

    min: Minimum amount.
    max: Maximum amount.
    symbol: Symbol before the amount. Leave empty for the number only.
    decimals: Decimal places.
    """

    type_name = "money"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: float = UNSET,
        max: float = UNSET,
        symbol: str = UNSET,
        decimals: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max, "symbol": symbol, "decimals": decimals})


class NormalField(Field):
    """Numbers with a normal distribution.

    min: Minimum.
    max: Maximum.
    decimals: Decimal places. Default: integers.
    mean: Mean before min/max are applied. Default: midpoint of min and max, or 500.
    stddev: Standard deviation. Default: (max - min) / 6, or 166.67.
    """

    type_name = "normal"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: float | None = UNSET,
        max: float | None = UNSET,
        decimals: int | None = UNSET,
        mean: float | None = UNSET,
        stddev: float | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {"min": min, "max": max, "decimals": decimals, "mean": mean, "stddev": stddev},
        )


class NumberField(Field):
    """An integer or decimal, uniformly distributed or with another distribution.

    min: Minimum. Default: 0 if max is not set either.
    max: Maximum. Default: min + 1,000.
    step: Distance between possible values, starting at min.
    decimals: Decimal places. Default: integers.
    distribution: Distribution of the values. With min or max the distribution is truncated; values do not
        accumulate at the ends.
    mean: Mean before min/max are applied. Defaults: midpoint (normal, lognormal), 100 (exponential), 10
        (poisson).
    stddev: Standard deviation before min/max are applied (normal, lognormal). Default: (max - min) / 6.
    alpha: Exponent. Defaults: 2.5 (pareto, where min is the scale, default 1), 1 (zipf, where min is rank
        1).
    lambda_: Rate (exponential, default 1 / mean) or average number of events (poisson, default 10).
    bins: Bins of a histogram with weights; values are uniform within a bin. The upper edge is exclusive,
        except for the last bin.
    edges: Histogram edges: the start of each bin and the end of the last bin.
    weights: Histogram weights: one for each bin between two edges.
    stringify: Outputs the number as text.
    """

    type_name = "number"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: float | None = UNSET,
        max: float | None = UNSET,
        step: float | None = UNSET,
        decimals: int | None = UNSET,
        distribution: Literal[
            "uniform", "normal", "lognormal", "pareto", "zipf", "poisson", "exponential", "histogram"
        ] = UNSET,
        mean: float | None = UNSET,
        stddev: float | None = UNSET,
        alpha: float | None = UNSET,
        lambda_: float | None = UNSET,
        bins: list[dict[str, Any]] | None = UNSET,
        edges: list[float] | None = UNSET,
        weights: list[float] | None = UNSET,
        stringify: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {
                "min": min,
                "max": max,
                "step": step,
                "decimals": decimals,
                "distribution": distribution,
                "mean": mean,
                "stddev": stddev,
                "alpha": alpha,
                "lambda": lambda_,
                "bins": bins,
                "edges": edges,
                "weights": weights,
                "stringify": stringify,
            },
        )


class OctalNumberField(Field):
    """Six octal digits."""

    type_name = "octal_number"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ParetoField(Field):
    """Numbers with a Pareto distribution: a few are very large, as with wealth.

    min: Minimum.
    max: Maximum.
    decimals: Decimal places. Default: integers.
    alpha: Exponent. Default: 2.5. Smaller exponents have heavier tails.
    """

    type_name = "pareto"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: float | None = UNSET,
        max: float | None = UNSET,
        decimals: int | None = UNSET,
        alpha: float | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max, "decimals": decimals, "alpha": alpha})


class PercentageField(Field):
    """A number from 0 to 100, or in another range, with or without a percent sign.

    min: Minimum.
    max: Maximum.
    decimals: Decimal places.
    symbol: Appends a % sign; outputs text.
    """

    type_name = "percentage"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: float = UNSET,
        max: float = UNSET,
        decimals: int = UNSET,
        symbol: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max, "decimals": decimals, "symbol": symbol})


class PoissonField(Field):
    """Number of events in an interval (Poisson distribution), such as calls per hour.

    min: Minimum.
    max: Maximum.
    lambda_: Average number of events. Default: 10.
    """

    type_name = "poisson"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: float | None = UNSET,
        max: float | None = UNSET,
        lambda_: float | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max, "lambda": lambda_})


class RomanNumeralField(Field):
    """A number from 1 to 12 in Roman numerals."""

    type_name = "roman_numeral"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class RowNumberField(Field):
    """Counts the rows: 1, 2, 3 ..."""

    type_name = "row_number"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SequenceField(Field):
    """An arithmetic sequence with a start and a step.

    start: First value.
    step: Difference between consecutive values.
    repeat: Number of rows with the same value.
    pad: Pads with leading zeros to this many digits; outputs text.
    """

    type_name = "sequence"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        start: int = UNSET,
        step: int = UNSET,
        repeat: int = UNSET,
        pad: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"start": start, "step": step, "repeat": repeat, "pad": pad})


class ZipfField(Field):
    """Ranks with a Zipf distribution: low ranks are most common, as with words or products.

    min: Minimum.
    max: Maximum.
    alpha: Exponent. Default: 1.
    """

    type_name = "zipf"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: float | None = UNSET,
        max: float | None = UNSET,
        alpha: float | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max, "alpha": alpha})

"""Fields of the category number, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class BinomialField(Field):
    """How many of a number of tries succeed.

    trials: Tries.
    probability: Chance of each, between 0 and 1.
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
    """True or false, or two values of your own.

    truthy: Written for true: any value.
    falsy: Written for false: any value.
    probability: Share of true, from 0 to 1; a half if left out.
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
    """Counts from a start; with an end, over and over.

    start: First value.
    step: Added from one row to the next.
    end: Not passed: the count then begins again at start. It never does if left out.
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
    """Numbers by the exponential distribution, such as waiting times.

    min: Least value.
    max: Largest value.
    decimals: Digits after the point; whole numbers if left out.
    mean: Mean; 100.
    lambda_: Rate, in place of mean: 1 / mean.
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
    """A decimal number with a fixed number of digits after the point.

    min: Least value; 0 if neither this nor max is given.
    max: Largest value; 1,000 above min if not given.
    step: Distance between neighbouring values, counted from min.
    precision: Digits after the point.
    distribution: How values are spread. With min or max the others are cut there and keep their shape;
        nothing piles up at the ends.
    mean: Mean of the values before they are cut: normal, lognormal (halfway between min and max),
        exponential (100), poisson (10).
    stddev: Standard deviation before the cut: normal, lognormal (a sixth of max - min).
    alpha: Exponent: pareto (2.5; min is its scale, 1), zipf (1; min is rank 1).
    lambda_: Rate: exponential (1 / mean); events on average: poisson (10).
    bins: Histogram: stretches of values with their weights, even inside. Values of a bin lie below its
        end; the last value of all is drawn too.
    edges: Histogram: the same, where each bin begins and, at the end, the last one ends.
    weights: Histogram: a weight for each stretch between two edges.
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
    """How many tries fail before the first one that succeeds.

    probability: Chance of each try, between 0 and 1.
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


class LognormalField(Field):
    """Numbers whose logarithm is normal, such as incomes or durations.

    min: Least value.
    max: Largest value.
    decimals: Digits after the point; whole numbers if left out.
    mean: Mean of the values, not of their logarithm; 500.
    stddev: Standard deviation of the values; a sixth of max - min, or 166.67.
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

    min: Least amount.
    max: Largest amount.
    symbol: Written in front; empty for the number alone.
    decimals: Digits after the point.
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

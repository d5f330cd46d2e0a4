"""Fields of the category number, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class NormalField(Field):
    """Numbers by the normal distribution.

    min: Least value.
    max: Largest value.
    decimals: Digits after the point; whole numbers if left out.
    mean: Mean before the cut; halfway between min and max, or 500.
    stddev: Standard deviation; a sixth of max - min, or 166.67.
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
    """A whole or decimal number, evenly spread or by a distribution.

    min: Least value; 0 if neither this nor max is given.
    max: Largest value; 1,000 above min if not given.
    step: Distance between neighbouring values, counted from min.
    decimals: Digits after the point; whole numbers if left out.
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
    stringify: Writes the number as text.
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


class ParetoField(Field):
    """Numbers of which few are very large, such as wealth.

    min: Least value.
    max: Largest value.
    decimals: Digits after the point; whole numbers if left out.
    alpha: Exponent; 2.5. The smaller, the heavier the tail.
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
    """A number from 0 to 100, or between other ends, with or without its sign.

    min: Least value.
    max: Largest value.
    decimals: Digits after the point.
    symbol: Writes % behind the number; makes text.
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
    """How many events fall into a span, such as calls in an hour.

    min: Least value.
    max: Largest value.
    lambda_: Events on average; 10.
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


class RowNumberField(Field):
    """Counts the rows: 1, 2, 3 ..."""

    type_name = "row_number"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SequenceField(Field):
    """An arithmetic sequence with a start and a step.

    start: First value.
    step: Added from one value to the next.
    repeat: How many rows share a value.
    pad: Leading zeros up to so many digits; makes text.
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
    """Ranks of which the first are the most common, such as of words or products.

    min: Least value.
    max: Largest value.
    alpha: Exponent; 1.
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

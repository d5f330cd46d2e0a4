"""Histograms in options: bins, or edges and weights, read and checked."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np

from webapp.engine.cells import Rows, Weighted, below_each, mix
from webapp.engine.distributions import Draw
from webapp.engine.fields.amounts import Units, whole

_INSIDE = np.uint64(0xD6E8FEB86659FD93)
_Read = tuple[str, Decimal, Decimal, Decimal]


class Histogram(Draw):
    """Bins with integer weights: bin i has ``widths[i]`` whole numbers from ``starts[i]`` on, each as likely."""

    def __init__(self, weights: list[int], starts: list[int], widths: list[int]) -> None:
        drawn = [i for i, weight in enumerate(weights) if weight]
        self._ends = min(starts[i] for i in drawn), max(starts[i] + widths[i] - 1 for i in drawn)
        self._weighted = Weighted(weights)
        self._starts, self._widths = np.array(starts, np.int64), np.array(widths, np.uint64)

    def draw(self, random: Rows) -> np.ndarray:
        which = self._weighted.draw(random)
        inside = below_each(mix(random ^ _INSIDE), self._widths[which]).view(np.int64)
        inside += self._starts[which]
        return inside

    def bounds(self) -> tuple[int, int]:
        return self._ends


def compiled(options: Any, units: Units, fault: Callable[..., None]) -> Histogram | None:
    """The histogram that ``options`` has under bins, or edges and weights; None after faults.

    ``fault(option, code, message, hint)`` takes down what is wrong.
    """
    told: list[str] = []

    def refuse(option: str, code: str, message: str, hint: str = "") -> None:
        told.append(option)
        fault(option, code, message, hint)

    for option in ("min", "max"):
        if getattr(options, option) is not None:
            text = "A histogram's bins say what its least and its largest value are."
            refuse(option, "not_for_this_distribution", text, f"Take {option} away.")
    bins = _read(options, refuse)
    read_starts = [units.of(where, least) for where, least, *_ in bins]
    read_ends = [units.of(where, end) for where, _, end, _ in bins]
    starts = [start for start in read_starts if start is not None]
    ends = [end for end in read_ends if end is not None]
    if told or not bins or len(starts) < len(bins) or len(ends) < len(bins):
        return None
    last = max(ends)
    for (where, *_), start, end in zip(bins, starts, ends, strict=True):
        if start > end or start == end != last:
            refuse(where, "min_above_max", "A bin ends above where it begins.", "Swap from and to.")
    in_order = [] if told else sorted(range(len(bins)), key=lambda place: (starts[place], ends[place]))
    for one, other in pairwise(in_order):
        if starts[other] < ends[one]:
            refuse(
                bins[other][0],
                "conflict",
                "Two bins hold the same values.",
                "Let each end where the next begins.",
            )
    if not any(weight for *_, weight in bins):
        refuse(bins[0][0], "wrong_value", "At least one weight is more than 0.")
    if told:
        return None
    widths = [end - start + (end == last) for start, end in zip(starts, ends, strict=True)]
    return Histogram(whole([weight for *_, weight in bins]), starts, widths)


def _read(options: Any, refuse: Callable[..., None]) -> list[_Read]:
    """Option, least value, end and weight of each bin; none after a fault."""
    if (not options.bins) == (options.edges is None):
        refuse("bins", "required", "A histogram has bins, or edges and weights.", "Give one of the two.")
        return []
    if options.bins:
        if options.weights is not None:
            refuse("weights", "conflict", "Bins have weights of their own.", "Put the weights there.")
        for i, one in enumerate(options.bins):
            if one.weight < 0:
                refuse(f"bins[{i}].weight", "wrong_value", "A weight is 0 or more.")
        return [(f"bins[{i}]", one.from_, one.to, one.weight) for i, one in enumerate(options.bins)]
    edges, weights = options.edges, options.weights or ()
    if len(edges) < 2 or len(weights) != len(edges) - 1:
        text = f"{len(edges)} edges make {len(edges) - 1} bins; there are {len(weights)} weights."
        refuse("weights", "wrong_length", text, "Give one weight for each bin.")
        return []
    for i, weight in enumerate(weights):
        if weight < 0:
            refuse(f"weights[{i}]", "wrong_value", "A weight is 0 or more.")
    ends = zip(pairwise(edges), weights, strict=True)
    return [(f"edges[{i}]", least, end, weight) for i, ((least, end), weight) in enumerate(ends)]

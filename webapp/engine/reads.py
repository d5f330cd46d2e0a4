"""Which columns read which, and what one of them costs: a column of another row is made in a block of its own.

Two columns of one row are made once, whoever reads them. Rows of another template, or other rows of this one, are a
block of their own for each group of references that leads there: where every row reads two others, which each read
two, the blocks double at every step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field

from webapp import limits

Spot = Hashable
"""A column: its level and its name."""


@dataclass(slots=True)
class _Step:
    """Other rows that are read over one group of references, or by one field."""

    factor: int = 1
    columns: set[Spot] = field(default_factory=set)


class Reads:
    """Who reads whom. Columns never read each other in a circle."""

    def __init__(self) -> None:
        self._beside: defaultdict[Spot, set[Spot]] = defaultdict(set)
        self._steps: defaultdict[Spot, dict[Spot, set[Spot]]] = defaultdict(dict)
        self._factors: dict[Spot, int] = {}
        self._known: dict[frozenset[Spot], tuple[int, int]] = {}

    def note(self, reader: Spot, column: Spot, over: Spot | None) -> None:
        """``reader`` reads ``column``: of its own row, or of others, reached ``over`` a group or a field."""
        if over is None:
            self._beside[reader].add(column)
        else:
            self._steps[reader].setdefault(over, set()).add(column)

    def children(self, reader: Spot, most: int) -> None:
        """``reader`` reads up to ``most`` other rows for one of its own."""
        self._factors[reader] = most

    def reached(self, column: Spot) -> set[Spot]:
        """Every column that one is made of, in whatever row or template; itself among them."""
        found, waiting = {column}, [column]
        while waiting:
            spot = waiting.pop()
            further = self._beside[spot].union(*self._steps[spot].values()) - found
            found |= further
            waiting.extend(further)
        return found

    def cost(self, column: Spot) -> tuple[int, int]:
        """Blocks that have to be made for a column, and rows in them for one of its own."""
        return self._of(frozenset([column]))

    def _of(self, columns: frozenset[Spot]) -> tuple[int, int]:
        found = self._known.get(columns)
        if found is not None:
            return found
        if len(self._known) > limits.MAX_LOOKBACKS:  # so many different blocks are too many anyhow
            return limits.MAX_LOOKBACKS, limits.MAX_CELL_COST
        together, waiting = set(columns), list(columns)
        while waiting:
            further = self._beside[waiting.pop()] - together
            together |= further
            waiting.extend(further)
        steps: defaultdict[Spot, _Step] = defaultdict(_Step)
        for reader in together:
            for over, read in self._steps[reader].items():
                step = steps[over]
                step.columns |= read
                step.factor = max(step.factor, self._factors.get(reader, 1))
        blocks, rows = 1, 1
        for step in steps.values():
            more, each = self._of(frozenset(step.columns))
            blocks, rows = blocks + more, rows + step.factor * each
        self._known[columns] = blocks, rows
        return blocks, rows

"""Choosing a parent row for a child: free references, one to one, unique pairs, and rows that refer to their own table.

``key`` is the key of the reference (`random.key`), ``rows`` the children's rows as ``uint64[n]`` in any order, and the
number of parents a plan constant. The choice depends on that number: another one gives nearly every child another
parent. Children that are counted out to their parents are in `webapp.engine.relations.cardinality`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from webapp import limits
from webapp.engine import distributions, random
from webapp.engine.random import Rows

Distribution = Literal["uniform", "zipf", "normal"]

_RANK_SALT, _MANAGER_SALT, _PARTNER_SALT = 11, 12, 13


class Picker(ABC):
    """A way to draw one of ``parents`` rows; holds for every key."""

    parents: int

    @abstractmethod
    def draw(self, key: np.uint64, rows: Rows, salt: int = 0) -> Rows:
        """``uint64[n]`` below ``parents``. Draws with another ``salt`` have nothing to do with each other, except
        that zipf's popular parents are the same."""


def picker(distribution: Distribution, parents: int, exponent: Fraction = Fraction(1)) -> Picker:
    """How parents are chosen.

    - ``uniform``: all with the same probability.
    - ``zipf``: the k-th most popular with weight k ** -``exponent``; which ones are popular is up to the key.
    - ``normal``: a bell around the middle row, with a sixth of the number of parents as standard deviation, cut to
      the rows there are: the outer sixths on both sides get 2.2 % each.

    Raises `ValueError` unless 1 <= parents <= `limits.MAX_PARENTS` (zipf: `limits.MAX_RANKS`).
    """
    most = limits.MAX_RANKS if distribution == "zipf" else limits.MAX_PARENTS
    if not 1 <= parents <= most:
        raise ValueError(f"from 1 to {most} parents")
    if distribution == "zipf":
        return _Zipf(parents, distributions.zipf(exponent, parents))
    return _uniform(parents) if distribution == "uniform" else _normal(parents)


@dataclass(frozen=True, slots=True)
class _Uniform(Picker):
    parents: int

    def draw(self, key: np.uint64, rows: Rows, salt: int = 0) -> Rows:
        return random.below(_bits(key, rows, salt), self.parents)


@dataclass(frozen=True, slots=True)
class _Zipf(Picker):
    parents: int
    ranks: distributions.Discrete

    def draw(self, key: np.uint64, rows: Rows, salt: int = 0) -> Rows:
        ranks = self.ranks.draw(_bits(key, rows, salt)).view(np.uint64)
        return random.permutation(random.derive(key, _RANK_SALT), ranks, self.parents)


@dataclass(frozen=True, slots=True)
class _Normal(Picker):
    parents: int
    bell: distributions.Draw

    def draw(self, key: np.uint64, rows: Rows, salt: int = 0) -> Rows:
        return self.bell.draw(_bits(key, rows, salt)).view(np.uint64)


@lru_cache(maxsize=256)
def _uniform(parents: int) -> Picker:
    return _Uniform(parents)


@lru_cache(maxsize=256)
def _normal(parents: int) -> Picker:
    # Values are rounded, so row r represents everything within half a row of it: the middle is (N - 1) / 2.
    bell = distributions.normal(Fraction(parents - 1, 2), Fraction(parents, 6))
    return _Normal(parents, bell.within(0, parents - 1))


def _bits(key: np.uint64, rows: Rows, salt: int) -> Rows:
    return random.bits(random.derive(key, salt) if salt else key, rows)


def manager(key: np.uint64, rows: Rows, roots: int = 1) -> tuple[Rows, np.ndarray]:
    """For a table that refers to itself: each row's parent, any earlier row with the same probability (``uint64[n]``),
    and whether it has one (``bool[n]``): the first ``roots`` rows have none (and 0 in the first answer). ``roots`` is
    at least 1.

    Parents come before their children, so there are no cycles, and rows can be inserted in order.
    """
    having = rows >= np.uint64(roots)
    drawn = random.below_each(random.bits(random.derive(key, _MANAGER_SALT), rows), rows)
    drawn[~having] = 0
    return drawn, having


def match(key: np.uint64, rows: Rows, parents: int) -> Rows:
    """One to one: child row r has parent perm(r). All ``rows`` are below ``parents``.

    With a share of blanks, hand in `random.filled_rank` of the rows that are not blank instead of the rows.
    """
    return random.permutation(key, rows, parents)


def matched(key: np.uint64, parent_rows: Rows, parents: int) -> Rows:
    """The child row (or rank among the rows that are not blank) of each parent; the inverse of `match`. It may be
    beyond the last child: that parent has none."""
    return random.permutation_inverse(key, parent_rows, parents)


def pair(key: np.uint64, rows: Rows, na: int, nb: int) -> tuple[Rows, Rows]:
    """Rows of two parents, no pair twice; all ``rows`` are below ``na`` * ``nb``, which is below 2**63."""
    a, b = np.divmod(random.permutation(key, rows, na * nb), np.uint64(nb))
    return a, b


def partner(key: np.uint64, parents: Rows, positions: np.ndarray, nb: int) -> Rows:
    """The other end (below ``nb``) of a child that is the ``positions``-th of its parent
    (`BoundCardinality.owners`): no parent has the same partner twice. All positions are below ``nb``."""
    keys = random.bits(random.derive(key, _PARTNER_SALT), parents)
    return random.permutation_by(keys, positions.astype(np.uint64, copy=False), nb)

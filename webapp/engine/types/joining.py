"""Text joined from two or more pools, and numbers that are written with a fixed number of digits."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import random as engine_random
from webapp.engine.text_parts import FEW_ROWS, PoolPart, join_parts, take
from webapp.engine.types.base import dictionary_array

if TYPE_CHECKING:
    from webapp.engine.random import RandomStream

DICTIONARY_SHARE = 16
"""A pool is kept as a dictionary while it has at most this many values per row; beyond that, escaping the whole pool
costs a format more than it saves."""


MIN_SALTED_FIELDS = 3
"""With this many fields in a group, it is faster to compute the bits of all salts together."""

SUFFIX_SPACE = 1 << 53
"""Rows for which `unique_suffixes` gives numbers that differ."""

MAX_UNIQUE_DIGITS = 18
"""Digits of a unique pattern: a permutation's domain is below 2**63."""

_SUFFIX_SALT = -200


class LazyProperty:
    """`functools.cached_property` without its lock, which costs more than most of the values that are cached here: two
    threads may both compute a value, and the results are equal."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self
        value = owner.__dict__[self._name] = self._make(owner)
        return value


class SaltedBits:
    """A group's random bits under several salts: for a few rows all of them are computed together, since then the calls
    cost more than the arithmetic."""

    def __init__(self, draws: RandomStream, salts: int) -> None:
        """``salts`` is the number of salts, or 0 if so few are used that none is computed in advance."""
        self._draws, self._salts = draws, salts

    def bits(self, salt: int) -> np.ndarray:
        """``uint64[n]``: the same as `RandomStream.bits`."""
        return self._few[salt] if salt < self._salts and self._draws.n <= FEW_ROWS else self._draws.bits(salt)

    @LazyProperty
    def _few(self) -> np.ndarray:
        return engine_random.bits(salted_keys(int(self._draws.key), self._salts), self._draws.rows)


@lru_cache(maxsize=1024)
def salted_keys(key: int, salts: int) -> np.ndarray:
    """``uint64[salts, 1]``: a key under each salt, as `RandomStream.bits` derives them."""
    first = np.uint64(key)
    return np.array(
        [[engine_random.derive(first, salt) if salt else first] for salt in range(salts)], np.uint64
    )


def take_values(pool: pa.Array, index: np.ndarray) -> pa.Array:
    """``pool[index]``, as a dictionary array where that is the cheaper."""
    return dictionary_array(pool, index) if len(pool) <= DICTIONARY_SHARE * index.size else take(pool, index)


def unique_suffixes(draws: RandomStream) -> np.ndarray:
    """``uint64[n]``: a different number of four digits or more for each row, short for the first rows.

    The numbers of d digits are assigned to the rows from 10**(d-1) - 1000 on by a keyed permutation, so that a row's
    number does not depend on how many rows are requested.
    """
    shifted = draws.rows + np.uint64(1000)
    if not shifted.size:
        return shifted
    fewest_digits, most_digits = (len(str(int(shifted[at]))) for at in (shifted.argmin(), shifted.argmax()))
    if fewest_digits == most_digits:
        return _permuted(draws.key, shifted, fewest_digits)
    numbers = np.empty(shifted.size, np.uint64)
    for digits in range(fewest_digits, most_digits + 1):
        with_digits = (shifted >= np.uint64(10 ** (digits - 1))) & (shifted < np.uint64(10**digits))
        numbers[with_digits] = _permuted(draws.key, shifted[with_digits], digits)
    return numbers


def suffix_parts(numbers: np.ndarray, ending: str) -> tuple[PoolPart, ...]:
    """Numbers that `unique_suffixes` gave, and ``ending``, as parts of a text."""
    high, low = np.divmod(numbers, np.uint64(10_000))
    if int(high.max(initial=0)) >= 10_000:
        texts = pc.binary_join_element_wise(pa.array(numbers).cast(pa.string()), ending, "")
        return ((texts, np.arange(numbers.size)),)
    # No number is below 1000, so that what is left of four digits or fewer is four digits.
    return (_leading(), high), (digit_table(4, "", ending), low)


@lru_cache(maxsize=1)
def _leading() -> pa.StringArray:
    return pa.array([str(number) if number else "" for number in range(10_000)])


def _permuted(key: np.uint64, numbers: np.ndarray, digits: int) -> np.ndarray:
    low = 10 ** (digits - 1)
    permuted = engine_random.permutation(
        engine_random.derive(key, _SUFFIX_SALT - digits), numbers - np.uint64(low), 9 * low
    )
    return permuted + np.uint64(low)


def fill_pattern(pattern: str, draws: RandomStream) -> pa.StringArray:
    """Return ``pattern`` with a random digit for each ``#``; it has at least one."""
    pieces = _pieces(pattern)
    return join_parts(*((pool, draws.below(len(pool), salt)) for salt, pool in enumerate(pieces, 1)))


def pattern_space(pattern: str) -> int | None:
    """Return how many texts a pattern has; None if there are too many to assign them without repetition."""
    digits = pattern.count("#")
    return 10**digits if digits <= MAX_UNIQUE_DIGITS else None


def pattern_texts_at(pattern: str, number: np.ndarray) -> pa.StringArray:
    """Text number ``number`` of a pattern, ``uint64[n]`` below its `pattern_space`."""
    parts: list[PoolPart] = []
    for pool in reversed(_pieces(pattern)):
        number, digits = np.divmod(number, np.uint64(len(pool)))
        parts.append((pool, digits))
    return join_parts(*reversed(parts))


@lru_cache(maxsize=32)
def _pieces(pattern: str) -> tuple[pa.StringArray, ...]:
    """Pools of the numbers of at most four digits that the pattern's signs stand for, with the text before (and at
    the end behind) them."""
    matches = list(re.finditer(r"([^#]*)(#{1,4})", pattern))
    ending = pattern[matches[-1].end() :]
    tables = [
        digit_table(len(match[2]), match[1], ending if match is matches[-1] else "") for match in matches
    ]
    return tuple(tables)


@lru_cache(maxsize=32)
def digit_table(digits: int, before: str = "", after: str = "") -> pa.StringArray:
    """All numbers of ``digits`` digits (at most four) as text, with leading zeros, between two texts."""
    return pa.array([f"{before}{number:0{digits}d}{after}" for number in range(10**digits)])


def find_ignoring_case(pool: pa.Array, text: str) -> np.ndarray:
    """``int64[k]``: positions of ``text`` in ``pool``, ignoring case."""
    found = pc.equal(pc.utf8_lower(pool), text.lower())
    return np.flatnonzero(found.to_numpy(zero_copy_only=False))


def find_exact(pool: pa.Array, text: str) -> list[int]:
    """Return the positions of exactly ``text`` in ``pool``."""
    return np.flatnonzero(pc.equal(pool, text).to_numpy(zero_copy_only=False)).tolist()

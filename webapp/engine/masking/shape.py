"""The permutation of texts inside their shape: as many characters of each alphabet, at the same places.

The symbols of each alphabet in a value are cut into numbers of at most 62 bits. Each number is permuted, with all the
others of the value as a tweak, so that the whole is a permutation too: undone from the last number to the first, every
tweak is known. No number stays what it is, so neither the letters nor the digits of a value do.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from webapp.engine.masking.keys import Aes
from webapp.engine.masking.permutation import Permutation
from webapp.engine.masking.symbols import Spelled, alphabet

_BITS = 62
_PART = np.uint64(1 << 63)


def permute(aes: Aes, spelled: Spelled) -> None:
    """Changes the symbols of every value in place."""
    parts = [part for number in spelled.present() for part in _parts(spelled, number)]
    count = spelled.ends.size - 1
    shares = np.zeros(count, np.int16)
    for part in parts:
        shares[part.rows] += 1
    several = bool((shares > 1).any())
    states = np.zeros(count, np.uint64)
    if several:
        for part in parts:
            states[part.rows] ^= part.told(aes)
    for part in parts:
        if several:
            others = states[part.rows] ^ part.told(aes)
            others[shares[part.rows] == 1] = 0
            part.permute(aes, others)
            states[part.rows] = others ^ part.told(aes)
        else:
            part.permute(aes, None)
        part.put_back(spelled)


class _Part:
    """Number ``turn`` of the symbols of one alphabet, in all values that have so many."""

    def __init__(
        self, radix: int, number: int, turn: int, rows: np.ndarray, first: np.ndarray, sizes: np.ndarray
    ) -> None:
        self.radix, self.number, self.turn, self.rows = radix, number, turn, rows
        self._first, self._sizes = first, sizes
        self._places: np.ndarray = np.zeros(0, np.int64)
        self.numbers = np.zeros(rows.size, np.uint64)

    def read(self, places: np.ndarray, symbols: np.ndarray) -> None:
        """``places``: of all symbols of the alphabet, in order; the part's begin at ``first``."""
        self._places = places
        for place in range(int(self._sizes.max(initial=0))):
            which = self._having(place)
            self.numbers[which] *= np.uint64(self.radix)
            self.numbers[which] += symbols[places[self._first[which] + place]]

    def _having(self, place: int) -> np.ndarray | slice:
        there = self._sizes > place
        return slice(None) if there.all() else np.flatnonzero(there)

    def told(self, aes: Aes) -> np.ndarray:
        """64 bits of each number and its place."""
        blocks = np.empty((self.numbers.size, 2), np.uint64)
        blocks[:, 0] = _PART | np.uint64(self.number << 32 | self.turn)
        blocks[:, 1] = self.numbers
        return aes(blocks)[:, 0]

    def permute(self, aes: Aes, tweaks: np.ndarray | None) -> None:
        for size in np.unique(self._sizes).tolist():
            which = np.flatnonzero(self._sizes == size)
            n, b = _power(self.radix, size)
            made = Permutation(aes, n, self.number << 8 | size, b)
            self.numbers[which] = made.moved(self.numbers[which], None if tweaks is None else tweaks[which])

    def put_back(self, spelled: Spelled) -> None:
        rest, radix = self.numbers.copy(), np.uint64(self.radix)
        longest = int(self._sizes.max(initial=0))
        for place in range(longest):  # from the last symbol on
            which = self._having(place)
            some = rest[which]
            above = some // radix
            places = self._places[self._first[which] + (self._sizes[which] - 1 - place)]
            spelled.symbols[places] = some - above * radix
            rest[which] = above


def _parts(spelled: Spelled, number: int) -> list[_Part]:
    radix = alphabet(number).size
    most = _longest(radix)
    there = spelled.sorts == number
    places = np.flatnonzero(there)
    inside = np.searchsorted(places, spelled.ends)
    first, counts = inside[:-1], np.diff(inside)
    made = []
    for turn in range(-(-int(counts.max(initial=0)) // most)):
        rows = np.flatnonzero(counts > turn * most)
        sizes = np.minimum(counts[rows] - turn * most, most)
        part = _Part(radix, number, turn, rows, first[rows] + turn * most, sizes)
        part.read(places, spelled.symbols)
        made.append(part)
    return made


@lru_cache(maxsize=256)
def _longest(radix: int) -> int:
    size = 1
    while radix ** (size + 1) < 1 << _BITS:
        size += 1
    return size


def _power(radix: int, size: int) -> tuple[int, int]:
    return radix**size, radix ** (size // 2) if size > 1 else 0

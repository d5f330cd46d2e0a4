"""A keyed permutation of 0 .. N - 1 that leaves no number where it is.

A Feistel network whose rounds are AES, over Z_a x Z_b with a about the root of N; what lands at N or beyond walks on.
Of the network s is made x -> s^-1(s(x) + 1 mod N): conjugate to a step of one, so it has no fixed point.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

import numpy as np

from webapp.engine.masking.keys import Aes

MOST = 1 << 63
"""The largest N."""
_ROUNDS = 8
_ROUND_BIT = np.uint64(56)  # halves are below 2**33
_ONE = np.zeros(1, np.uint64)


class Permutation:
    """The permutation of 0 .. ``n`` - 1 (2 <= n <= `MOST`) that ``context`` (below 2**63) and the key of ``aes``
    choose. ``b`` divides ``n`` where the caller knows such a number near its root: nothing has to walk then."""

    def __init__(self, aes: Aes, n: int, context: int, b: int = 0) -> None:
        self.n, self._aes, self._context = n, aes, np.uint64(context)
        self._b = b or isqrt(n)
        self._a = -(-n // self._b)

    def moved(self, numbers: np.ndarray, tweaks: np.ndarray | None = None) -> np.ndarray:
        """``uint64[k]``: where each of ``numbers`` (``uint64[k]``, below n) goes. ``tweaks`` (``uint64[k]``) choose a
        permutation for each."""
        start = _ONE if tweaks is None else tweaks
        out = self._walked(self._forward, numbers, start)
        out += np.uint64(1)
        out[out == np.uint64(self.n)] = 0
        return self._walked(self._back, out, start)

    def _walked(
        self, network: Callable[..., np.ndarray], numbers: np.ndarray, tweaks: np.ndarray
    ) -> np.ndarray:
        out = network(numbers, tweaks)
        if self._a * self._b == self.n:
            return out
        limit = np.uint64(self.n)
        outside = np.flatnonzero(out >= limit)
        while outside.size:
            again = network(out[outside], tweaks if tweaks.size == 1 else tweaks[outside])
            out[outside] = again
            outside = outside[again >= limit]
        return out

    def _forward(self, x: np.ndarray, tweaks: np.ndarray) -> np.ndarray:
        a, b = np.uint64(self._a), np.uint64(self._b)
        left, right = self._halves(x)
        blocks = self._blocks(x.size, tweaks)
        for i in range(_ROUNDS):
            if i % 2 == 0:
                left += self._shift(blocks, right, i, a)
                np.minimum(left, left - a, out=left)
            else:
                right += self._shift(blocks, left, i, b)
                np.minimum(right, right - b, out=right)
        left *= b
        left += right
        return left

    def _back(self, x: np.ndarray, tweaks: np.ndarray) -> np.ndarray:
        a, b = np.uint64(self._a), np.uint64(self._b)
        left, right = self._halves(x)
        blocks = self._blocks(x.size, tweaks)
        for i in reversed(range(_ROUNDS)):
            if i % 2 == 0:
                left -= self._shift(blocks, right, i, a)
                np.minimum(left, left + a, out=left)
            else:
                right -= self._shift(blocks, left, i, b)
                np.minimum(right, right + b, out=right)
        left *= b
        left += right
        return left

    def _halves(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b = np.uint64(self._b)
        left = x // b
        return left, x - left * b

    def _blocks(self, size: int, tweaks: np.ndarray) -> np.ndarray:
        blocks = np.empty((size, 2), np.uint64)
        blocks[:, 0] = tweaks ^ self._context
        return blocks

    def _shift(self, blocks: np.ndarray, half: np.ndarray, turn: int, size: np.uint64) -> np.ndarray:
        """AES of a half, modulo the other's size: of 64 bits for at most 33, so that no remainder is favoured."""
        np.bitwise_or(half, np.uint64(turn) << _ROUND_BIT, out=blocks[:, 1])
        return self._aes(blocks)[:, 0] % size

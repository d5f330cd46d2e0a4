"""The only source of randomness: integers that depend on a key and a row number, and nothing else.

Every function takes numpy ``uint64`` vectors of any row numbers, in any order, and answers a vector of the
same length. There is no generator state, so a cell can be had again from any process, offset or chunk. All
arithmetic is on integers, which come out the same on every processor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from math import isqrt

import numpy as np

Rows = np.ndarray
"""A vector of row numbers or hashes: ``uint64[n]``."""

# Arrays without dimensions: as operands they cost a short vector half of what numpy's scalars cost.
_GOLDEN = np.array(0x9E3779B97F4A7C15, np.uint64)
_MIX_1 = np.array(0xBF58476D1CE4E5B9, np.uint64)
_MIX_2 = np.array(0x94D049BB133111EB, np.uint64)
_LOW_32 = np.array(0xFFFFFFFF, np.uint64)
_U27, _U30, _U31, _U32 = (np.array(n, np.uint64) for n in (27, 30, 31, 32))

NARROW = 1 << 20
"""Up to this many outcomes 32 random bits are even enough; beyond it the bias would show."""

_FEW = 16
"""Up to so many rows Python's own integers are faster than fifteen calls of numpy."""

_Network = Callable[[tuple[np.uint64, ...], Rows, int, int], Rows]

_SMALL_PERMUTATION = 1024
_FEISTEL_ROUNDS = 6


@lru_cache(maxsize=8192)  # builders and pipelines ask with the same seed again and again
def key(seed: str, *path: str) -> np.uint64:
    """The key of one column: a 64-bit digest of the seed and of what names the column (its field id)."""
    parts = [part.encode() for part in (seed, *path)]
    framed = b"".join([piece for raw in parts for piece in (len(raw).to_bytes(4, "little"), raw)])
    return np.uint64(int.from_bytes(blake2b(framed, digest_size=8).digest(), "little"))


@lru_cache(maxsize=4096)
def derive(parent: np.uint64, salt: int) -> np.uint64:
    """A further key from a key, for columns that need more than one draw a cell."""
    raw = int(parent).to_bytes(8, "little") + salt.to_bytes(8, "little", signed=True)
    return np.uint64(int.from_bytes(blake2b(raw, digest_size=8).digest(), "little"))


def mix(z: Rows) -> Rows:
    """splitmix64's finaliser, a bijection on 64 bits; works in place on ``z`` and answers it.

    Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
    """
    z ^= z >> _U30
    z *= _MIX_1
    z ^= z >> _U27
    z *= _MIX_2
    z ^= z >> _U31
    return z


def bits(column: np.uint64 | Rows, rows: Rows) -> Rows:
    """64 random bits for each row; ``column`` is a key, or a vector of keys as long as ``rows``."""
    z = rows * _GOLDEN
    z += column
    return mix(z)


def below(random: Rows, n: int) -> Rows:
    """Even draws from 0 to n - 1, as the high word of ``random`` times ``n``; 1 <= n <= 2**64."""
    if n <= NARROW:
        return ((random >> _U32) * np.uint64(n)) >> _U32
    if n == 1 << 64:
        return random.copy()
    if random.size <= _FEW and random.ndim == 1:
        whole = int(n)
        return np.array([bits_of_row * whole >> 64 for bits_of_row in random.tolist()], np.uint64)
    return _high_word(random, np.uint64(n))


def between(random: Rows, low: int, high: int) -> np.ndarray:
    """Even draws from ``low`` to ``high``, both included, as ``int64[n]``."""
    return (below(random, high - low + 1) + np.uint64(low & 0xFFFFFFFFFFFFFFFF)).view(np.int64)


def _high_word(a: Rows, n: np.uint64) -> Rows:
    n_low, n_high = n & _LOW_32, n >> _U32
    a_low, a_high = a & _LOW_32, a >> _U32
    carry = (a_low * n_low >> _U32) + (a_high * n_low & _LOW_32) + (a_low * n_high & _LOW_32)
    return a_high * n_high + (a_high * n_low >> _U32) + (a_low * n_high >> _U32) + (carry >> _U32)


def chance(random: Rows, numerator: int, denominator: int) -> np.ndarray:
    """``bool[n]``: true with probability numerator / denominator, exact to 2**-32."""
    return (random >> _U32) < np.uint64((numerator << 32) // denominator)


class Weighted:
    """Draws of 0..k-1 by integer weights, two table look-ups a draw (Walker's alias method, in integers).

    Probabilities are exact to 2**-32 of a slot.
    """

    def __init__(self, weights: list[int]) -> None:
        if not weights or min(weights) < 0 or sum(weights) == 0:
            raise ValueError("weights are non-negative and at least one is positive")
        self.size = len(weights)
        slots = 1 << max(1, (self.size - 1).bit_length())
        total = sum(weights)
        share = [w * slots for w in weights] + [0] * (slots - self.size)
        first = next(i for i, w in enumerate(weights) if w)
        alias = [first] * slots
        threshold = [total] * slots
        small = [i for i, s in enumerate(share) if s < total]
        large = [i for i, s in enumerate(share) if s >= total]
        while small and large:
            low, high = small.pop(), large[-1]
            threshold[low], alias[low] = share[low], high
            share[high] -= total - share[low]
            if share[high] < total:
                small.append(large.pop())
        self._shift = np.uint64(64 - (slots.bit_length() - 1))
        self._threshold = np.array([min((t << 32) // total, 1 << 32) for t in threshold], np.uint64)
        self._alias = np.array(alias, np.uint64)

    def draw(self, random: Rows) -> Rows:
        """``uint64[n]`` of indices below ``size``."""
        slot = random >> self._shift
        low = random & _LOW_32
        return np.where(low < self._threshold[slot], slot, self._alias[slot])


def permutation(column: np.uint64, rows: Rows, n: int) -> Rows:
    """Where a keyed permutation of 0..n-1 sends each of ``rows`` (all below ``n``); n < 2**63.

    A Feistel network on Z_a x Z_b with a about the root of n, which walks on while it lands at n or beyond.
    Six rounds: four fail a uniformity test at n = 100.
    """
    if n <= _SMALL_PERMUTATION:
        return _small_permutation(int(column), n)[rows]
    return _walk(_feistel, _round_keys(int(column)), rows, n)


def permutation_inverse(column: np.uint64, values: Rows, n: int) -> Rows:
    """Which row ``permutation`` sends to each of ``values``."""
    if n <= _SMALL_PERMUTATION:
        return np.argsort(_small_permutation(int(column), n)).astype(np.uint64)[values]
    return _walk(_feistel_inverse, _round_keys(int(column)), values, n)


@lru_cache(maxsize=4096)
def _small_permutation(column: int, n: int) -> Rows:
    hashes = bits(np.uint64(column), np.arange(n, dtype=np.uint64))
    low = np.uint64(_SMALL_PERMUTATION - 1)
    packed = (hashes & ~low) | np.arange(n, dtype=np.uint64)
    packed.sort()
    return packed & low


@lru_cache(maxsize=4096)
def _round_keys(column: int) -> tuple[np.uint64, ...]:
    return tuple(derive(np.uint64(column), -1 - i) for i in range(_FEISTEL_ROUNDS))


def _walk(network: _Network, keys: tuple[np.uint64, ...], rows: Rows, n: int) -> Rows:
    a = isqrt(n - 1) + 1
    b = -(-n // a)
    limit = np.uint64(n)
    out = network(keys, rows, a, b)
    outside = np.flatnonzero(out >= limit)
    while outside.size:
        again = network(keys, out[outside], a, b)
        out[outside] = again
        outside = outside[again >= limit]
    return out


def _shift(column: np.uint64, half: Rows, size: int) -> Rows:
    return ((bits(column, half) >> _U32) * np.uint64(size)) >> _U32


def _feistel(keys: tuple[np.uint64, ...], x: Rows, a: int, b: int) -> Rows:
    left, right = np.divmod(x, np.uint64(b))
    for i, column in enumerate(keys):
        if i % 2 == 0:
            left += _shift(column, right, a)
            np.subtract(left, np.uint64(a), out=left, where=left >= np.uint64(a))
        else:
            right += _shift(column, left, b)
            np.subtract(right, np.uint64(b), out=right, where=right >= np.uint64(b))
    return left * np.uint64(b) + right


def _feistel_inverse(keys: tuple[np.uint64, ...], x: Rows, a: int, b: int) -> Rows:
    left, right = np.divmod(x, np.uint64(b))
    for i in reversed(range(len(keys))):
        if i % 2 == 0:
            left += np.uint64(a) - _shift(keys[i], right, a)
            np.subtract(left, np.uint64(a), out=left, where=left >= np.uint64(a))
        else:
            right += np.uint64(b) - _shift(keys[i], left, b)
            np.subtract(right, np.uint64(b), out=right, where=right >= np.uint64(b))
    return left * np.uint64(b) + right


def blanks(column: np.uint64, rows: Rows, numerator: int, denominator: int) -> np.ndarray:
    """``bool[n]``: which rows are blank when ``numerator / denominator`` of every 100 rows are to be.

    Exact in every full hundred: hundred b has floor((b+1)p) - floor(b p) blanks, at places found by sorting
    hashes with the place packed into their low bits, so that nothing ties.
    """
    hundred = rows // np.uint64(100)
    first, last = (hundred.min(), hundred.max()) if rows.size else (np.uint64(0), np.uint64(0))
    if int(last - first) <= rows.size // 50 + 1:
        blocks = np.arange(first, last + np.uint64(1), dtype=np.uint64)
        which = hundred - first
    else:
        blocks, which = np.unique(hundred, return_inverse=True)
    place = np.arange(100, dtype=np.uint64)
    packed = bits(column, blocks[:, None] * np.uint64(100) + place)
    packed &= ~np.uint64(127)
    packed |= place
    p, d = np.uint64(numerator), np.uint64(denominator)
    quota = (_floor_share(blocks + np.uint64(1), p, d) - _floor_share(blocks, p, d)).astype(np.int64)
    order = np.sort(packed, axis=1)
    latest = order[np.arange(blocks.size), np.maximum(quota - 1, 0)]
    chosen = packed[which, (rows - hundred * np.uint64(100)).astype(np.int64)]
    return (chosen <= latest[which]) & (quota[which] > 0)


def _floor_share(n: Rows, p: np.uint64, d: np.uint64) -> Rows:
    # n * p overflows for rows near 2**63; whole multiples of d apart it does not.
    whole, rest = np.divmod(n, d)
    return whole * p + rest * p // d

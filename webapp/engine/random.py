"""The only source of randomness: integers that depend only on a key and a row number.

Every function takes numpy ``uint64`` vectors of any row numbers, in any order, and returns a vector of the same length.
There is no generator state, so a cell can be generated again in any process, at any offset or in any chunk. All
calculations use integers, so the results are the same on every processor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import permutations
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

BLANK_SALT = -100
"""Salt of the draws that decide which of a column's cells are blank."""

_PERMUTATION_SALT = -101

_FEW_ROWS = 16
"""Up to this many rows, Python's integers are faster than fifteen calls of numpy."""

_Network = Callable[[tuple[np.uint64, ...], Rows, int, int], Rows]

_SMALL_PERMUTATION = 1024
_FEISTEL_ROUNDS = 6
_MAX_TABLE_DOMAIN = 7  # so few can be put in order by a table of all orders
_MIN_LARGE_DOMAIN = 128  # below, permutations of short domains need twice the rounds to be even


@lru_cache(maxsize=8192)  # builders and pipelines repeat requests with the same seed
def key(seed: str, *path: str) -> np.uint64:
    """The key of one column: a 64-bit digest of the seed and of what names the column (its field id)."""
    digest = _seeded(seed).copy()
    for part in path:
        digest.update(_length_prefixed(part))
    return np.uint64(int.from_bytes(digest.digest(), "little"))


@lru_cache(maxsize=64)
def _seeded(seed: str) -> blake2b:
    """A digest that has taken in the seed, which all columns begin with."""
    return blake2b(_length_prefixed(seed), digest_size=8)


def _length_prefixed(part: str) -> bytes:
    raw = part.encode()
    return len(raw).to_bytes(4, "little") + raw


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


def lookup(table: np.ndarray, indices: Rows | np.ndarray) -> np.ndarray:
    """``table[places]`` for ``indices`` of 64 bits. Indexing takes half as long again, with unsigned places three times
    as long."""
    return table.take(indices.view(np.int64))


def bits(column_key: np.uint64 | Rows, rows: Rows) -> Rows:
    """64 random bits for each row; ``column_key`` is a key, a vector of keys as long as ``rows``, or a column of k keys
    (``uint64[k, 1]``), which answers ``uint64[k, n]``."""
    return mix(rows * _GOLDEN + column_key)


def below(random: Rows, n: int) -> Rows:
    """Even draws from 0 to n - 1, as the high word of ``random`` times ``n``; 1 <= n <= 2**64."""
    if n <= NARROW:
        return ((random >> _U32) * np.uint64(n)) >> _U32
    if n == 1 << 64:
        return random.copy()
    if random.size <= _FEW_ROWS and random.ndim == 1:
        limit = int(n)
        return np.array([bits_of_row * limit >> 64 for bits_of_row in random.tolist()], np.uint64)
    return _high_word_of_short(random, np.uint64(n)) if n < 1 << 32 else _high_word(random, np.uint64(n))


def _high_word_of_short(a: Rows, n: np.uint64) -> Rows:
    """`_high_word` for n below 2**32, where no carry can be lost: half the work."""
    low = a & _LOW_32
    low *= n
    low >>= _U32
    high = a >> _U32
    high *= n
    high += low
    high >>= _U32
    return high


def below_each(random: Rows, limits: Rows) -> Rows:
    """Even draws from 0 to ``limits[i]`` - 1, a limit for each draw (0 if that is 0)."""
    return _high_word(random, limits)


def between(random: Rows, low: int, high: int) -> np.ndarray:
    """Even draws from ``low`` to ``high``, both included, as ``int64[n]``."""
    return (below(random, high - low + 1) + np.uint64(low & 0xFFFFFFFFFFFFFFFF)).view(np.int64)


def _high_word(a: Rows, n: np.uint64 | Rows) -> Rows:
    n_low, n_high = n & _LOW_32, n >> _U32
    a_low, a_high = a & _LOW_32, a >> _U32
    carry = (a_low * n_low >> _U32) + (a_high * n_low & _LOW_32) + (a_low * n_high & _LOW_32)
    return a_high * n_high + (a_high * n_low >> _U32) + (a_low * n_high >> _U32) + (carry >> _U32)


def chance(random: Rows, numerator: int, denominator: int) -> np.ndarray:
    """``bool[n]``: true with probability numerator / denominator, exact to 2**-32."""
    return (random >> _U32) < np.uint64((numerator << 32) // denominator)


class AliasSampler:
    """Draws of 0..k-1 by integer weights, two table look-ups a draw (Walker's alias method, in integers).

    Probabilities are exact to 2**-32 of a slot.
    """

    def __init__(self, weights: list[int]) -> None:
        if not weights or min(weights) < 0 or sum(weights) == 0:
            raise ValueError("weights must not be negative, and at least one must be positive")
        self.size = len(weights)
        slots = 1 << max(1, (self.size - 1).bit_length())
        total = sum(weights)
        weight_of_slot = [w * slots for w in weights] + [0] * (slots - self.size)
        first = next(i for i, w in enumerate(weights) if w)
        alias = [first] * slots
        threshold = [total] * slots
        small = [i for i, s in enumerate(weight_of_slot) if s < total]
        large = [i for i, s in enumerate(weight_of_slot) if s >= total]
        while small and large:
            low, high = small.pop(), large[-1]
            threshold[low], alias[low] = weight_of_slot[low], high
            weight_of_slot[high] -= total - weight_of_slot[low]
            if weight_of_slot[high] < total:
                small.append(large.pop())
        self._slot_shift = np.uint64(64 - (slots.bit_length() - 1))
        self._threshold = np.array([min((t << 32) // total, 1 << 32) for t in threshold], np.uint64)
        self._alias = np.array(alias, np.uint64)

    def draw(self, random: Rows) -> Rows:
        """``uint64[n]`` of indices below ``size``."""
        slot = random >> self._slot_shift
        low = random & _LOW_32
        return np.where(low < self._threshold[slot], slot, self._alias[slot])


def permutation(column_key: np.uint64, rows: Rows, n: int) -> Rows:
    """Apply a keyed permutation of 0..n-1 to each of ``rows`` (all below ``n``); n < 2**63.

    A Feistel network on Z_a x Z_b with a about the root of n, which is repeated while the result is n or more. Six
    rounds: with four, a uniformity test fails at n = 100.
    """
    if n <= _SMALL_PERMUTATION:
        return _small_permutation(int(column_key), n)[rows]
    return _cycle_walk(_feistel, _round_keys(int(column_key)), rows, n)


def permutation_inverse(column_key: np.uint64, values: Rows, n: int) -> Rows:
    """Which row ``permutation`` sends to each of ``values``."""
    if n <= _SMALL_PERMUTATION:
        return np.argsort(_small_permutation(int(column_key), n)).astype(np.uint64)[values]
    return _cycle_walk(_feistel_inverse, _round_keys(int(column_key)), values, n)


def permutation_by(row_keys: Rows, rows: Rows, n: int) -> Rows:
    """Return where each row's own permutation of 0..n-1 maps it (all rows below ``n``); n < 2**63.

    ``row_keys`` is a vector of keys as long as ``rows``; equal keys mean the same permutation, which is not the one
    that `permutation` makes of that key.
    """
    if n <= _MAX_TABLE_DOMAIN:
        table = _all_permutations(n)
        return table.take(below(mix(row_keys.copy()), table.shape[0]) * np.uint64(n) + rows)
    a = isqrt(n - 1) + 1
    b = -(-n // a)
    steps = _steps(_FEISTEL_ROUNDS if n >= _MIN_LARGE_DOMAIN else 2 * _FEISTEL_ROUNDS)
    out = _feistel([row_keys + step for step in steps], rows, a, b)
    outside = np.flatnonzero(out >= np.uint64(n))
    while outside.size:
        permuted = _feistel([row_keys[outside] + step for step in steps], out[outside], a, b)
        out[outside] = permuted
        outside = outside[permuted >= np.uint64(n)]
    return out


@lru_cache(maxsize=2)
def _steps(rounds: int) -> tuple[np.uint64, ...]:
    """A value that distinguishes the rounds of `permutation_by`; its keys are random, so adding is enough."""
    return tuple(derive(np.uint64(0), i) for i in range(rounds))


@lru_cache(maxsize=8)
def _all_permutations(n: int) -> Rows:
    return np.array(list(permutations(range(n))), np.uint64)


@lru_cache(maxsize=4096)
def _small_permutation(column_key: int, n: int) -> Rows:
    hashes = bits(np.uint64(column_key), np.arange(n, dtype=np.uint64))
    low = np.uint64(_SMALL_PERMUTATION - 1)
    packed = (hashes & ~low) | np.arange(n, dtype=np.uint64)
    packed.sort()
    return packed & low


@lru_cache(maxsize=4096)
def _round_keys(column_key: int) -> tuple[np.uint64, ...]:
    return tuple(derive(np.uint64(column_key), -1 - i) for i in range(_FEISTEL_ROUNDS))


def _cycle_walk(network: _Network, keys: tuple[np.uint64, ...], rows: Rows, n: int) -> Rows:
    a = isqrt(n - 1) + 1
    b = -(-n // a)
    limit = np.uint64(n)
    out = network(keys, rows, a, b)
    outside = np.flatnonzero(out >= limit)
    while outside.size:
        permuted = network(keys, out[outside], a, b)
        out[outside] = permuted
        outside = outside[permuted >= limit]
    return out


def _round_function(round_key: np.uint64 | Rows, half: Rows, size: int) -> Rows:
    return ((bits(round_key, half) >> _U32) * np.uint64(size)) >> _U32


def _feistel(keys: Sequence[np.uint64 | Rows], x: Rows, a: int, b: int) -> Rows:
    left, right = _halves(x, np.uint64(b))
    for i, column in enumerate(keys):
        if i % 2 == 0:
            left += _round_function(column, right, a)
            left = _reduced(left, a)
        else:
            right += _round_function(column, left, b)
            right = _reduced(right, b)
    left *= np.uint64(b)
    left += right
    return left


def _feistel_inverse(keys: Sequence[np.uint64 | Rows], x: Rows, a: int, b: int) -> Rows:
    left, right = _halves(x, np.uint64(b))
    for i in reversed(range(len(keys))):
        if i % 2 == 0:
            left += np.uint64(a) - _round_function(keys[i], right, a)
            left = _reduced(left, a)
        else:
            right += np.uint64(b) - _round_function(keys[i], left, b)
            right = _reduced(right, b)
    left *= np.uint64(b)
    left += right
    return left


def _halves(x: Rows, b: np.uint64) -> tuple[Rows, Rows]:
    left = x // b
    return left, x - left * b


def _reduced(half: Rows, size: int) -> Rows:
    """``half`` modulo ``size``; ``half`` is less than twice as large. If it is smaller, the difference wraps around."""
    return np.minimum(half, half - np.uint64(size))


def blank_mask(column_key: np.uint64, rows: Rows, numerator: int, denominator: int) -> np.ndarray:
    """``bool[n]``: which rows are blank when ``numerator / denominator`` of every 100 rows are to be.

    Exact in every full hundred: hundred b has floor((b+1)p) - floor(b p) blanks, at places found by sorting
    hashes with the place packed into their low bits, so that nothing ties.
    """
    _, which, place, packed, latest = _hundred_blocks(column_key, rows, numerator, denominator)
    return packed[which, place] <= latest[which]


def filled_rank(column_key: np.uint64, rows: Rows, numerator: int, denominator: int) -> np.ndarray:
    """``int64[n]``: the number of rows before each one that are not null, or -1 for a row that is null.

    Null values are those that `blank_mask` returns with the same arguments.
    """
    blocks, which, place, packed, latest = _hundred_blocks(column_key, rows, numerator, denominator)
    full = packed > latest[:, None]
    rank = np.cumsum(full, axis=1, dtype=np.int16)[which, place].astype(np.int64)
    rank += _filled_before(blocks, numerator, denominator)[which]
    rank -= 1
    rank[~full[which, place]] = -1
    return rank


def filled_before(column_key: np.uint64, rows: Rows, numerator: int, denominator: int) -> np.ndarray:
    """``int64[n]``: how many rows before each one are not blank, itself blank or not."""
    blocks, which, place, packed, latest = _hundred_blocks(column_key, rows, numerator, denominator)
    full = packed > latest[:, None]
    inside = np.cumsum(full, axis=1, dtype=np.int16)[which, place].astype(np.int64)
    return inside - full[which, place] + _filled_before(blocks, numerator, denominator)[which]


def filled_row(column_key: np.uint64, ranks: Rows, numerator: int, denominator: int) -> Rows:
    """The row that `filled_rank` gives each of ``ranks``; the share of blanks is below 100."""
    before = ranks.view(np.int64)
    hundred = (ranks / (100 - numerator / denominator)).astype(
        np.uint64
    )  # the next one at most; integers decide
    while (over := _filled_before(hundred, numerator, denominator) > before).any():
        hundred -= over
    while (under := _filled_before(hundred + np.uint64(1), numerator, denominator) <= before).any():
        hundred += under
    _, which, _, packed, latest = _hundred_blocks(
        column_key, hundred * np.uint64(100), numerator, denominator
    )
    full = packed > latest[:, None]
    order = np.argsort(
        ~full, axis=1, kind="stable"
    )  # places that are not blank, in order, then the blank ones
    inside = before - _filled_before(hundred, numerator, denominator)
    return hundred * np.uint64(100) + order[which, inside].view(np.uint64)


def filled_count(count: int, numerator: int, denominator: int) -> int:
    """Return how many of the first ``count`` rows are not null: exact for full hundreds; for a last partial hundred the
    maximum, because its nulls may all come later."""
    blocks, rest = divmod(count, 100)
    sure, following = (100 * b - b * numerator // denominator for b in (blocks, blocks + 1))
    return sure + min(rest, following - sure)


def _filled_before(blocks: Rows, numerator: int, denominator: int) -> np.ndarray:
    shares = _floor_share(blocks, np.uint64(numerator), np.uint64(denominator))
    return (blocks * np.uint64(100) - shares).view(np.int64)


def _hundred_blocks(
    column_key: np.uint64, rows: Rows, numerator: int, denominator: int
) -> tuple[np.ndarray, ...]:
    """The hundreds of ``rows`` in rising order, which of them and which place each row has, a hash for every place
    (``uint64[k, 100]``) and the hash of each hundred up to which its places are blank."""
    hundred = rows // np.uint64(100)
    first, last = (hundred.min(), hundred.max()) if rows.size else (np.uint64(0), np.uint64(0))
    if int(last - first) <= rows.size // 50 + 1:
        blocks = np.arange(first, last + np.uint64(1), dtype=np.uint64)
        block_index = (hundred - first).view(np.int64)
    else:
        blocks, block_index = np.unique(hundred, return_inverse=True)
    place = np.arange(100, dtype=np.uint64)
    packed = bits(column_key, blocks[:, None] * np.uint64(100) + place)
    packed &= ~np.uint64(127)
    packed |= place
    p, d = np.uint64(numerator), np.uint64(denominator)
    quota = (_floor_share(blocks + np.uint64(1), p, d) - _floor_share(blocks, p, d)).astype(np.int64)
    order = np.sort(packed, axis=1)
    blank_threshold = order[np.arange(blocks.size), np.maximum(quota - 1, 0)]
    packed[quota == 0] = ~np.uint64(0)
    return blocks, block_index, (rows - hundred * np.uint64(100)).view(np.int64), packed, blank_threshold


def _floor_share(n: Rows, p: np.uint64, d: np.uint64) -> Rows:
    # n * p overflows for rows near 2**63; whole multiples of d apart it does not.
    multiples, rest = np.divmod(n, d)
    return multiples * p + rest * p // d


class RandomStream:
    """Random bits with one key for the rows of a block; ``salt`` distinguishes several values for a cell."""

    __slots__ = ("key", "rows")

    def __init__(self, key: np.uint64, rows: np.ndarray) -> None:
        self.key, self.rows = key, rows

    @property
    def n(self) -> int:
        """Rows in the block."""
        return self.rows.size

    def bits(self, salt: int = 0) -> np.ndarray:
        """``uint64[n]`` of random bits."""
        return bits(derive(self.key, salt) if salt else self.key, self.rows)

    def below(self, n: int, salt: int = 0) -> np.ndarray:
        """Even draws from 0 to n - 1."""
        return below(self.bits(salt), n)

    def permuted(self, n: int, salt: int = 0) -> np.ndarray:
        """The rows under a keyed permutation of 0..n-1; every row is below ``n``."""
        return permutation(derive(self.key, _PERMUTATION_SALT - salt), self.rows, n)

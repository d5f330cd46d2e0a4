"""`format_preserve`: a keyed permutation of values that keeps their format.

Digits are one alphabet, the letters a to z another, whose case is kept. In other scripts, the letters of a block of 128
characters are one alphabet, upper and lower case together, and its digits another; all Chinese and all Korean
characters are one each. Other characters (a space, a hyphen, a sign) are not masked.

A text keeps the number of characters of each alphabet at the same places. The symbols of each alphabet in a value are
cut into numbers of at most 62 bits. Each number is permuted, with all the others of the value as a tweak, so the whole
is a permutation too: undone from the last number to the first, every tweak is known. No number stays the same, so
neither the letters nor the digits of a value do. Some field types keep more, such as the prefix of a card number.

`Permutation` is a keyed permutation of 0 .. N - 1 without fixed points: a Feistel network whose rounds are AES, over
Z_a x Z_b with a about the root of N; numbers from N on are encrypted again. The network s gives x -> s^-1(s(x) + 1 mod
N), which is conjugate to a step of one and therefore has no fixed point.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import isqrt
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import text
from webapp.engine.masking import keys
from webapp.engine.masking.keys import Aes

DIGITS, LETTERS = 1, 2
_CHINESE, _KOREAN = 3, 4
_FIRST_BLOCK = 8
_SCRIPT_RANGES = {
    _CHINESE: (0x4E00, 0x9FA5),
    _KOREAN: (0xAC00, 0xD7A3),
}  # Unicode 1.1 and 2.0: nothing was added inside
_BLOCK_BITS = 7
_CASED, _UNCASED, _NUMERAL, _ALPHABETS_PER_BLOCK = 0, 1, 2, 3
_CAPITALS_IN_OTHER_BLOCKS = {"ß": "ẞ"}  # its capital is in another block


@dataclass(frozen=True, slots=True)
class Alphabet:
    """``small[k]`` is symbol k; ``large[k]`` its upper case (the same without one)."""

    number: int
    lower: np.ndarray
    upper: np.ndarray

    @property
    def size(self) -> int:
        return len(self.lower)


@lru_cache(maxsize=256)
def get_alphabet(number: int) -> Alphabet:
    """The alphabet of that number, as `classify_character` gives it."""
    if number == DIGITS:
        return _new_alphabet(number, "0123456789", "0123456789")
    if number == LETTERS:
        return _new_alphabet(number, "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    if number in _SCRIPT_RANGES:
        low, high = _SCRIPT_RANGES[number]
        codes = np.arange(low, high + 1, dtype=np.uint32)
        return Alphabet(number, codes, codes)
    block, kind = divmod(number - _FIRST_BLOCK, _ALPHABETS_PER_BLOCK)
    members = [chr(code) for code in range(block << _BLOCK_BITS, (block + 1) << _BLOCK_BITS)]
    if kind != _CASED:
        category = "L" if kind == _UNCASED else "N"
        letters = "".join(
            member
            for member in members
            if unicodedata.category(member)[0] == category and not _case_pair(member)
        )
        return _new_alphabet(number, letters, letters)
    pairs = dict.fromkeys(
        pair for member in members if (pair := _case_pair(member)) and ord(pair[0]) >> _BLOCK_BITS == block
    )
    return _new_alphabet(number, "".join(a for a, _ in pairs), "".join(b for _, b in pairs))


def _new_alphabet(number: int, lower: str, upper: str) -> Alphabet:
    return Alphabet(number, np.array([*map(ord, lower)], np.uint32), np.array([*map(ord, upper)], np.uint32))


def _is_maskable(character: str) -> bool:
    return unicodedata.category(character)[0] in "LN"


def _case_pair(character: str) -> tuple[str, str] | None:
    """The small and the capital letter of a character that is one of such a pair, and of no other."""
    small = character.lower()
    large = _CAPITALS_IN_OTHER_BLOCKS.get(small, small.upper())
    if len(small) != 1 or len(large) != 1 or large.lower() != small or character not in (small, large):
        return None
    is_reversible = small in _CAPITALS_IN_OTHER_BLOCKS or small.casefold() == small
    return (small, large) if small != large and is_reversible and _is_maskable(small) else None


@lru_cache(maxsize=65_536)
def classify_character(code: int) -> tuple[int, int, bool]:
    """Number of a character's alphabet (0: it stays), which symbol it is there, and whether a capital."""
    character = chr(code)
    if code < 128:
        if character.isdigit():
            return DIGITS, code - ord("0"), False
        return (
            (LETTERS, ord(character.lower()) - ord("a"), character.isupper())
            if character.isalpha()
            else (0, 0, False)
        )
    for number, (low, high) in _SCRIPT_RANGES.items():
        if low <= code <= high:
            return number, code - low, False
    if not _is_maskable(character):
        return 0, 0, False
    pair = _case_pair(character)
    block = ord(pair[0] if pair else character) >> _BLOCK_BITS
    kind = _CASED if pair else _UNCASED if unicodedata.category(character)[0] == "L" else _NUMERAL
    number = _FIRST_BLOCK + _ALPHABETS_PER_BLOCK * block + kind
    if pair and pair[0].isascii():
        return 0, 0, False
    letters = get_alphabet(number)
    if letters.size < 2:
        return 0, 0, False
    symbol = int(np.flatnonzero(letters.lower == ord(pair[0] if pair else character))[0])
    return number, symbol, pair is not None and character == pair[1]


_ASCII = [classify_character(code) for code in range(128)]
_ASCII_ALPHABETS = np.array([item[0] for item in _ASCII], np.uint8)
_ASCII_SYMBOLS = np.array([item[1] for item in _ASCII], np.uint8)
_ASCII_CAPITALS = np.array([item[2] for item in _ASCII], np.bool_)


@dataclass(slots=True)
class SplitTexts:
    """A column of texts, split into characters: value i is ``ends[i]`` to ``ends[i + 1]``."""

    codes: np.ndarray
    offsets: np.ndarray
    alphabets: np.ndarray
    """Alphabet of each character; 0 for characters that are kept. Strategies set more of them to 0."""
    symbols: np.ndarray
    is_upper: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """Which value each character belongs to."""
        return np.repeat(np.arange(self.offsets.size - 1, dtype=np.int32), np.diff(self.offsets))

    def present_alphabets(self) -> list[int]:
        """The alphabets that occur."""
        highest = int(self.alphabets.max(initial=0))
        if highest <= LETTERS:
            return [number for number in range(1, highest + 1) if (self.alphabets == number).any()]
        return [number for number in np.unique(self.alphabets).tolist() if number]

    def to_strings(self) -> pa.Array:
        """Return ``string[n]``: the current symbols, in their alphabets and cases."""
        codes = self.codes.copy()
        for number in self.present_alphabets():
            places = np.flatnonzero(self.alphabets == number)
            letters, symbols = get_alphabet(number), self.symbols[places]
            characters = letters.lower[symbols]
            if number != DIGITS:
                characters = np.where(self.is_upper[places], letters.upper[symbols], characters)
            codes[places] = characters
        if codes.dtype == np.uint8:
            return keys.strings_from_bytes(codes, self.offsets)
        lengths = np.ones(codes.size, np.int64)
        for limit in (0x80, 0x800, 0x10000):
            lengths += codes >= limit
        before = np.concatenate([[0], np.cumsum(lengths)])
        return keys.strings_from_bytes(
            codes.astype("<u4").tobytes().decode("utf-32-le").encode(), before[self.offsets]
        )


def split_texts(column: pa.Array) -> SplitTexts:
    """Split a string column without nulls into characters."""
    data, ends = keys.bytes_and_offsets(column)
    if not data.size or data.max() < 128:
        return SplitTexts(data, ends, _ASCII_ALPHABETS[data], _ASCII_SYMBOLS[data], _ASCII_CAPITALS[data])
    begins = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])
    codes = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), "<u4")
    distinct, index = np.unique(codes, return_inverse=True)
    sorts = [classify_character(code) for code in distinct.tolist()]
    alphabets, symbols, capitals = zip(*sorts, strict=True)
    return SplitTexts(
        codes,
        begins[ends],
        np.array(alphabets, np.uint16)[index],
        np.array(symbols, np.uint16)[index],
        np.array(capitals, np.bool_)[index],
    )


def has_content(column: pa.Array) -> np.ndarray:
    """``bool[n]``: values that say anything: not blank, and with a letter or a digit."""
    if pa.types.is_dictionary(column.type):
        pool = has_content(column.dictionary)
        if not len(pool):
            return np.zeros(len(column), np.bool_)
        index = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return pool[index] & column.is_valid().to_numpy(zero_copy_only=False)
    values = text.to_text(column).fill_null("")
    split = split_texts(values)
    return np.bincount(split.rows[split.alphabets > 0], minlength=len(values)) > 0


# --- Permutations -------------------------------------------------------------------------------------------

MAX_DOMAIN_SIZE = 1 << 63
"""The largest N."""
_ROUNDS = 8
_ROUND_BIT = np.uint64(56)  # halves are below 2**33
_ONE = np.zeros(1, np.uint64)


class Permutation:
    """The permutation of 0 .. ``n`` - 1 (2 <= n <= `MAX_DOMAIN_SIZE`) that ``context`` (below 2**63) and the key of
    ``aes`` select. ``b`` divides ``n`` if the caller knows such a number near its root, which avoids cycle walking."""

    def __init__(self, aes: Aes, n: int, context: int, b: int = 0) -> None:
        self.n, self._aes, self._context = n, aes, np.uint64(context)
        self._b = b or isqrt(n)
        self._a = -(-n // self._b)

    def apply(self, numbers: np.ndarray, tweaks: np.ndarray | None = None) -> np.ndarray:
        """Return ``uint64[k]``: the image of each of ``numbers`` (``uint64[k]``, below n). ``tweaks`` (``uint64[k]``)
        select a permutation for each."""
        start = _ONE if tweaks is None else tweaks
        out = self._cycle_walk(self._forward, numbers, start)
        out += np.uint64(1)
        out[out == np.uint64(self.n)] = 0
        return self._cycle_walk(self._backward, out, start)

    def _cycle_walk(
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
                left += self._round_function(blocks, right, i, a)
                np.minimum(left, left - a, out=left)
            else:
                right += self._round_function(blocks, left, i, b)
                np.minimum(right, right - b, out=right)
        left *= b
        left += right
        return left

    def _backward(self, x: np.ndarray, tweaks: np.ndarray) -> np.ndarray:
        a, b = np.uint64(self._a), np.uint64(self._b)
        left, right = self._halves(x)
        blocks = self._blocks(x.size, tweaks)
        for i in reversed(range(_ROUNDS)):
            if i % 2 == 0:
                left -= self._round_function(blocks, right, i, a)
                np.minimum(left, left + a, out=left)
            else:
                right -= self._round_function(blocks, left, i, b)
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

    def _round_function(
        self, blocks: np.ndarray, half: np.ndarray, number: int, size: np.uint64
    ) -> np.ndarray:
        """AES of a half, modulo the other's size: of 64 bits for at most 33, so that no remainder is favoured."""
        np.bitwise_or(half, np.uint64(number) << _ROUND_BIT, out=blocks[:, 1])
        return self._aes(blocks)[:, 0] % size


_BITS = 62
_CHUNK_TAG = np.uint64(1 << 63)


def permute(aes: Aes, split: SplitTexts) -> None:
    """Permute the symbols of every value in place."""
    chunks = [part for number in split.present_alphabets() for part in _split_into_chunks(split, number)]
    count = split.offsets.size - 1
    chunk_counts = np.zeros(count, np.int16)
    for part in chunks:
        chunk_counts[part.rows] += 1
    has_several_chunks = bool((chunk_counts > 1).any())
    states = np.zeros(count, np.uint64)
    if has_several_chunks:
        for part in chunks:
            states[part.rows] ^= part.keyed_hash(aes)
    for part in chunks:
        if has_several_chunks:
            others = states[part.rows] ^ part.keyed_hash(aes)
            others[chunk_counts[part.rows] == 1] = 0
            part.permute(aes, others)
            states[part.rows] = others ^ part.keyed_hash(aes)
        else:
            part.permute(aes, None)
        part.write_back(split)


class _SymbolChunk:
    """Part ``index`` of the symbols of one alphabet, in all values that have that many parts."""

    def __init__(
        self, radix: int, number: int, index: int, rows: np.ndarray, first: np.ndarray, sizes: np.ndarray
    ) -> None:
        self.radix, self.number, self.index, self.rows = radix, number, index, rows
        self._first, self._sizes = first, sizes
        self._places: np.ndarray = np.zeros(0, np.int64)
        self.numbers = np.zeros(rows.size, np.uint64)

    def read_numbers(self, places: np.ndarray, symbols: np.ndarray) -> None:
        """``places``: of all symbols of the alphabet, in order; the part's begin at ``first``."""
        self._places = places
        for place in range(int(self._sizes.max(initial=0))):
            which = self._values_longer_than(place)
            self.numbers[which] *= np.uint64(self.radix)
            self.numbers[which] += symbols[places[self._first[which] + place]]

    def _values_longer_than(self, place: int) -> np.ndarray | slice:
        has_place = self._sizes > place
        return slice(None) if has_place.all() else np.flatnonzero(has_place)

    def keyed_hash(self, aes: Aes) -> np.ndarray:
        """Return 64 keyed bits of each number and its place."""
        blocks = np.empty((self.numbers.size, 2), np.uint64)
        blocks[:, 0] = _CHUNK_TAG | np.uint64(self.number << 32 | self.index)
        blocks[:, 1] = self.numbers
        return aes(blocks)[:, 0]

    def permute(self, aes: Aes, tweaks: np.ndarray | None) -> None:
        for size in np.unique(self._sizes).tolist():
            which = np.flatnonzero(self._sizes == size)
            n, b = self.radix**size, self.radix ** (size // 2) if size > 1 else 0
            permutation = Permutation(aes, n, self.number << 8 | size, b)
            self.numbers[which] = permutation.apply(
                self.numbers[which], None if tweaks is None else tweaks[which]
            )

    def write_back(self, split: SplitTexts) -> None:
        rest, radix = self.numbers.copy(), np.uint64(self.radix)
        longest = int(self._sizes.max(initial=0))
        for place in range(longest):  # from the last symbol on
            which = self._values_longer_than(place)
            remaining = rest[which]
            quotients = remaining // radix
            places = self._places[self._first[which] + (self._sizes[which] - 1 - place)]
            split.symbols[places] = remaining - quotients * radix
            rest[which] = quotients


def _split_into_chunks(split: SplitTexts, number: int) -> list[_SymbolChunk]:
    radix = get_alphabet(number).size
    limit = _max_symbols(radix)
    matches = split.alphabets == number
    places = np.flatnonzero(matches)
    inside = np.searchsorted(places, split.offsets)
    first, counts = inside[:-1], np.diff(inside)
    parts = []
    for part_index in range(-(-int(counts.max(initial=0)) // limit)):
        rows = np.flatnonzero(counts > part_index * limit)
        sizes = np.minimum(counts[rows] - part_index * limit, limit)
        part = _SymbolChunk(radix, number, part_index, rows, first[rows] + part_index * limit, sizes)
        part.read_numbers(places, split.symbols)
        parts.append(part)
    return parts


@lru_cache(maxsize=256)
def _max_symbols(radix: int) -> int:
    size = 1
    while radix ** (size + 1) < 1 << _BITS:
        size += 1
    return size


_SLICE: Final = 16_384  # texts processed together; small enough for the processor's cache
_POSITIVES, _NEGATIVES = 1 << 40, 1 << 41  # contexts of numbers are larger than those of texts
_CARD_DIGITS: Final = (13, 19)  # ISO/IEC 7812-1
_CARD_PREFIX: Final = 6
_LUHN: Final = np.array([*range(10), 0, 2, 4, 6, 8, 1, 3, 5, 7, 9], np.int16)
"""A digit's part in the sum, then that of one whose double counts."""
_PHONE_DIGITS: Final = 7
_IBAN_SYMBOLS: Final = (15, 34)  # ISO 13616-1
# ITU-T E.164, list of assigned codes: those of one and of two digits; every other one has three.
_ONE_DIGIT: Final = ("1", "7")
_TWO_DIGITS: Final = (
    "20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 "
    "81 82 84 86 90 91 92 93 94 95 98"
).split()

KeepRule = Callable[[SplitTexts], Callable[[], None] | None]
"""Set the alphabets of the characters to keep to 0; return a function to call after the permutation, or None."""


def permute_texts(aes: Aes, column: pa.Array, keep: KeepRule | None = None) -> pa.Array:
    """Return a string column without nulls with each value permuted inside its shape."""
    parts = [
        _permute_slice(aes, column.slice(low, _SLICE), keep) for low in range(0, max(len(column), 1), _SLICE)
    ]
    return pa.concat_arrays(parts) if len(parts) != 1 else parts[0]


def _permute_slice(aes: Aes, column: pa.Array, keep: KeepRule | None) -> pa.Array:
    split = split_texts(column)
    after = keep(split) if keep is not None else None
    permute(aes, split)
    if after is not None:
        after()
    return split.to_strings()


def _ordinals_and_counts(split: SplitTexts, selected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how many characters of ``selected`` precede each one in its value, and how many each value has."""
    before = np.concatenate([np.zeros(1, np.int32), np.cumsum(selected, dtype=np.int32)])
    first = before[split.offsets[:-1]]
    return before[:-1] - np.repeat(first, np.diff(split.offsets)), before[split.offsets[1:]] - first


# --- E-mail -------------------------------------------------------------------------------------------------


def permute_email(aes: Aes, column: pa.Array) -> pa.Array:
    """Keep the part after the last @, if there is anything to mask before it."""
    data, ends = keys.bytes_and_offsets(column)
    signs = np.flatnonzero(data == ord("@"))
    rows = np.searchsorted(ends, signs, side="right") - 1
    cut = ends[1:].copy()
    cut[rows] = signs  # of several signs the last one stays
    local = _slices(data, ends[:-1], cut)
    is_masked_whole = _lacks_content(local)
    if is_masked_whole.any():
        local = pc.if_else(pa.array(is_masked_whole), column, local)
        cut = np.where(is_masked_whole, ends[1:], cut)
    return pc.binary_join_element_wise(permute_texts(aes, local), _slices(data, cut, ends[1:]), "")


def _lacks_content(column: pa.Array) -> np.ndarray:
    """Return the negation of `has_content`; fast if nearly all values have an ASCII letter or digit."""
    data, ends = keys.bytes_and_offsets(column)
    meaningless = np.diff(np.searchsorted(np.flatnonzero(_IS_ALPHANUMERIC[data]), ends)) == 0
    if meaningless.any():
        places = np.flatnonzero(meaningless)
        meaningless[places] = ~has_content(column.take(pa.array(places)))
    return meaningless


_IS_ALPHANUMERIC: Final = np.array([code < 128 and chr(code).isalnum() for code in range(256)])


def _slices(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> pa.Array:
    sizes = stops - starts
    ends = np.concatenate([[0], np.cumsum(sizes)])
    inside = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], sizes)
    return keys.strings_from_bytes(data[inside], ends)


# --- Cards --------------------------------------------------------------------------------------------------


def keep_card_prefix(split: SplitTexts) -> Callable[[], None]:
    """Keep the first six digits of 13 to 19; the check digit is valid if it was valid before (Luhn)."""
    digits = split.alphabets == DIGITS
    ordinal, counts = _ordinals_and_counts(split, digits)
    rows = split.rows
    cards = (counts >= _CARD_DIGITS[0]) & (counts <= _CARD_DIGITS[1])
    card_digits = digits & cards[rows]
    last = card_digits & (ordinal == counts[rows] - 1)
    doubled = (counts[rows] - ordinal) % 2 == 0
    split.alphabets[(card_digits & (ordinal < _CARD_PREFIX)) | last] = 0
    places = np.flatnonzero(card_digits)
    weights = doubled[places] * np.uint8(10)
    firsts = np.concatenate([[0], np.cumsum(counts[cards])])[:-1].astype(np.int64)
    check = np.flatnonzero(last)

    def total() -> np.ndarray:
        if not places.size:
            return np.zeros(0, np.int64)
        return np.add.reduceat(_LUHN[split.symbols[places] + weights], firsts, dtype=np.int64)

    original_total = total()

    def correct_check_digit() -> None:
        # The sum moves by as much as the check digit does: what it was off by before, it is off by again.
        split.symbols[check] = (split.symbols[check].astype(np.int64) - total() + original_total) % 10
        split.alphabets[check] = DIGITS

    return correct_check_digit


# --- Phone numbers ------------------------------------------------------------------------------------------


def keep_phone_prefix(split: SplitTexts) -> None:
    """Keeps +49, 0049, the first digit (trunk 0 with the one after it) of values with enough digits."""
    digits = split.alphabets == DIGITS
    ordinal, counts = _ordinals_and_counts(split, digits)
    rows = split.rows
    places = np.flatnonzero(digits & (ordinal < 5))
    first = np.full((counts.size, 5), 10, np.int64)
    first[rows[places], ordinal[places]] = split.symbols[places]
    starts = np.zeros(counts.size, np.int64)
    begins = places[ordinal[places] == 0]
    starts[rows[begins]] = begins
    marked = np.zeros(counts.size, np.bool_)
    marked[rows[begins]] = (begins > split.offsets[rows[begins]]) & (split.codes[begins - 1] == ord("+"))
    zeros = (first[:, 0] == 0) & (first[:, 1] == 0)
    kept_digits = np.where(first[:, 0] == 0, 2, 1)
    kept_digits = np.where(zeros, 2 + _country_code_lengths(first[:, 2], first[:, 3]), kept_digits)
    kept_digits = np.where(marked, _country_code_lengths(first[:, 0], first[:, 1]), kept_digits)
    kept_digits[counts < _PHONE_DIGITS] = 0  # too short for a number: all of it is masked
    split.alphabets[digits & (ordinal < kept_digits[rows])] = 0


_COUNTRY_CODE_LENGTHS: Final = np.full((11, 11), 3, np.int64)
for _code in _ONE_DIGIT:
    _COUNTRY_CODE_LENGTHS[int(_code)] = 1
for _code in _TWO_DIGITS:
    _COUNTRY_CODE_LENGTHS[int(_code[0]), int(_code[1])] = 2


def _country_code_lengths(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return _COUNTRY_CODE_LENGTHS[first, second]


# --- IBAN ---------------------------------------------------------------------------------------------------


def keep_iban_country(split: SplitTexts) -> Callable[[], None]:
    """Keep the country; the check digits are valid if they were valid before (ISO 7064, MOD 97-10)."""
    is_symbol = split.alphabets > 0
    ordinal, counts = _ordinals_and_counts(split, is_symbol)
    rows = split.rows
    expected = np.where(ordinal < 2, LETTERS, DIGITS)
    is_misplaced = is_symbol & (((ordinal < 4) & (split.alphabets != expected)) | (split.alphabets > LETTERS))
    is_iban = (counts >= _IBAN_SYMBOLS[0]) & (counts <= _IBAN_SYMBOLS[1])
    is_iban &= np.bincount(rows[is_misplaced], minlength=counts.size) == 0
    iban_symbols = is_symbol & is_iban[rows]
    sizes = counts[is_iban]
    table = np.full((sizes.size, int(sizes.max(initial=4))), -1, np.int64)
    line = np.cumsum(is_iban) - 1
    table[line[rows[iban_symbols]], ordinal[iban_symbols]] = np.flatnonzero(iban_symbols)
    letters = split.alphabets == LETTERS
    split.alphabets[iban_symbols & (ordinal < 4)] = 0

    def valid_check_digits() -> np.ndarray:
        """Return the valid check digits of these values."""
        rest = np.zeros(sizes.size, np.int64)
        for column in [*range(4, table.shape[1]), 0, 1]:
            place = table[:, column]
            symbol = split.symbols[place].astype(np.int64)
            letter = letters[place]
            step = np.where(letter, rest * 100 + symbol + 10, rest * 10 + symbol) % 97
            rest = np.where(place < 0, rest, step)
        return 98 - rest * 100 % 97

    tens, ones = table[:, 2], table[:, 3]
    difference = split.symbols[tens].astype(np.int64) * 10 + split.symbols[ones] - valid_check_digits()

    def correct_check_digits() -> None:
        check = (valid_check_digits() + difference) % 100
        split.symbols[tens], split.symbols[ones] = check // 10, check % 10
        split.alphabets[tens] = split.alphabets[ones] = DIGITS

    return correct_check_digits


KEEP_RULES: Final[Mapping[str, KeepRule]] = {
    "credit_card_number": keep_card_prefix,
    "phone_number": keep_phone_prefix, "mobile": keep_phone_prefix, "iban": keep_iban_country,
}  # fmt: skip
"""The parts that are kept, by field type."""


# --- Numbers ------------------------------------------------------------------------------------------------


def permute_integers(aes: Aes, column: pa.Array) -> pa.Array:
    """Return integers with the same signs and numbers of digits. OverflowError if one exceeds 64 bits."""
    values = column.cast(pa.int64()).to_numpy()
    maximum = np.iinfo(column.type.to_pandas_dtype()).max
    return pa.array(_permuted_numbers(aes, values, min(maximum, MAX_DOMAIN_SIZE - 1))).cast(column.type)


def permute_decimals(aes: Aes, column: pa.Array) -> pa.Array:
    """Return decimals with the same numbers of digits before and after the point. Raises as `permute_integers` does."""
    scale = column.type.scale
    values = np.array([int(value.scaleb(scale)) for value in column.to_pylist()], np.int64)
    masked = _permuted_numbers(aes, values, min(10**column.type.precision - 1, MAX_DOMAIN_SIZE - 1))
    return pa.array([Decimal(item).scaleb(-scale) for item in masked.tolist()], column.type)


def _permuted_numbers(aes: Aes, values: np.ndarray, maximum: int) -> np.ndarray:
    magnitudes = np.where(values < 0, np.negative(values), values).view(np.uint64)
    permuted = magnitudes.copy()
    digits = np.maximum(np.searchsorted(_POWERS, magnitudes, side="right"), 1)
    for negative in (False, True):
        for length in range(1, 20):
            which = np.flatnonzero((digits == length) & ((values < 0) == negative))
            if not which.size:
                continue
            low = 10 ** (length - 1) if length > 1 else int(negative)
            high = min(10**length, maximum + 1 + negative)
            context = (_NEGATIVES if negative else _POSITIVES) | length
            permuted[which] = Permutation(aes, high - low, context).apply(
                magnitudes[which] - np.uint64(low)
            ) + np.uint64(low)
    return np.where(values < 0, np.negative(permuted.view(np.int64)), permuted.view(np.int64))


_POWERS: Final = np.array([10**k for k in range(20)], np.uint64)

"""Texts as symbols: the characters of a value that are masked, and their alphabets.

Digits are one alphabet, the letters a to z another, whose case is kept. In other scripts, the letters of a block of 128
characters are one alphabet, upper and lower case together, and its digits another; all Chinese and all Korean
characters are one each. Other characters (a space, a hyphen, a sign) are not masked.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from webapp.engine import text
from webapp.engine.masking import columns

DIGITS, LETTERS = 1, 2
_CHINESE, _KOREAN = 3, 4
_FIRST_BLOCK = 8
_WIDE = {
    _CHINESE: (0x4E00, 0x9FA5),
    _KOREAN: (0xAC00, 0xD7A3),
}  # Unicode 1.1 and 2.0: nothing was added inside
_BLOCK_BITS = 7
_PAIRED, _LONE, _NUMERAL, _SORTS_OF_BLOCK = 0, 1, 2, 3
_STRAYS = {"ß": "ẞ"}  # its capital is in another block


@dataclass(frozen=True, slots=True)
class Alphabet:
    """``small[k]`` is symbol k; ``large[k]`` its upper case (the same without one)."""

    number: int
    small: np.ndarray
    large: np.ndarray

    @property
    def size(self) -> int:
        return len(self.small)


@lru_cache(maxsize=256)
def alphabet(number: int) -> Alphabet:
    """The alphabet of that number, as `sort_of` gives it."""
    if number == DIGITS:
        return _alphabet(number, "0123456789", "0123456789")
    if number == LETTERS:
        return _alphabet(number, "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    if number in _WIDE:
        low, high = _WIDE[number]
        all_of_them = np.arange(low, high + 1, dtype=np.uint32)
        return Alphabet(number, all_of_them, all_of_them)
    block, sort = divmod(number - _FIRST_BLOCK, _SORTS_OF_BLOCK)
    members = [chr(code) for code in range(block << _BLOCK_BITS, (block + 1) << _BLOCK_BITS)]
    if sort != _PAIRED:
        wanted = "L" if sort == _LONE else "N"
        lone = "".join(one for one in members if unicodedata.category(one)[0] == wanted and not _pair(one))
        return _alphabet(number, lone, lone)
    pairs = dict.fromkeys(
        pair for one in members if (pair := _pair(one)) and ord(pair[0]) >> _BLOCK_BITS == block
    )
    return _alphabet(number, "".join(a for a, _ in pairs), "".join(b for _, b in pairs))


def _alphabet(number: int, small: str, large: str) -> Alphabet:
    return Alphabet(number, np.array([*map(ord, small)], np.uint32), np.array([*map(ord, large)], np.uint32))


def _masked(character: str) -> bool:
    return unicodedata.category(character)[0] in "LN"


def _pair(character: str) -> tuple[str, str] | None:
    """The small and the capital letter of a character that is one of such a pair, and of no other."""
    small = character.lower()
    large = _STRAYS.get(small, small.upper())
    if len(small) != 1 or len(large) != 1 or large.lower() != small or character not in (small, large):
        return None
    stays = small in _STRAYS or small.casefold() == small
    return (small, large) if small != large and stays and _masked(small) else None


@lru_cache(maxsize=65_536)
def sort_of(code: int) -> tuple[int, int, bool]:
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
    for number, (low, high) in _WIDE.items():
        if low <= code <= high:
            return number, code - low, False
    if not _masked(character):
        return 0, 0, False
    pair = _pair(character)
    block = ord(pair[0] if pair else character) >> _BLOCK_BITS
    sort = _PAIRED if pair else _LONE if unicodedata.category(character)[0] == "L" else _NUMERAL
    number = _FIRST_BLOCK + _SORTS_OF_BLOCK * block + sort
    if pair and pair[0].isascii():
        return 0, 0, False
    made = alphabet(number)
    if made.size < 2:
        return 0, 0, False
    symbol = int(np.flatnonzero(made.small == ord(pair[0] if pair else character))[0])
    return number, symbol, pair is not None and character == pair[1]


_ASCII = [sort_of(code) for code in range(128)]
_SORTS = np.array([one[0] for one in _ASCII], np.uint8)
_SYMBOLS = np.array([one[1] for one in _ASCII], np.uint8)
_CAPITALS = np.array([one[2] for one in _ASCII], np.bool_)


@dataclass(slots=True)
class Spelled:
    """A column of texts, split into characters: value i is ``ends[i]`` to ``ends[i + 1]``."""

    codes: np.ndarray
    ends: np.ndarray
    sorts: np.ndarray
    """Alphabet of each character; 0 for characters that are kept. Strategies set more of them to 0."""
    symbols: np.ndarray
    capitals: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """Which value each character belongs to."""
        return np.repeat(np.arange(self.ends.size - 1, dtype=np.int32), np.diff(self.ends))

    def present(self) -> list[int]:
        """The alphabets that occur."""
        most = int(self.sorts.max(initial=0))
        if most <= LETTERS:
            return [number for number in range(1, most + 1) if (self.sorts == number).any()]
        return [number for number in np.unique(self.sorts).tolist() if number]

    def written(self) -> pa.Array:
        """Return ``string[n]``: the current symbols, in their alphabets and cases."""
        codes = self.codes.copy()
        for number in self.present():
            places = np.flatnonzero(self.sorts == number)
            letters, symbols = alphabet(number), self.symbols[places]
            made = letters.small[symbols]
            if number != DIGITS:
                made = np.where(self.capitals[places], letters.large[symbols], made)
            codes[places] = made
        if codes.dtype == np.uint8:
            return columns.strings(codes, self.ends)
        lengths = np.ones(codes.size, np.int64)
        for limit in (0x80, 0x800, 0x10000):
            lengths += codes >= limit
        before = np.concatenate([[0], np.cumsum(lengths)])
        return columns.strings(codes.astype("<u4").tobytes().decode("utf-32-le").encode(), before[self.ends])


def spelled(column: pa.Array) -> Spelled:
    """A string column without nulls, taken apart."""
    data, ends = columns.spans(column)
    if not data.size or data.max() < 128:
        return Spelled(data, ends, _SORTS[data], _SYMBOLS[data], _CAPITALS[data])
    begins = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])
    codes = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), "<u4")
    found, which = np.unique(codes, return_inverse=True)
    sorts = [sort_of(code) for code in found.tolist()]
    alphabets, symbols, capitals = zip(*sorts, strict=True)
    return Spelled(
        codes,
        begins[ends],
        np.array(alphabets, np.uint16)[which],
        np.array(symbols, np.uint16)[which],
        np.array(capitals, np.bool_)[which],
    )


def telling(column: pa.Array) -> np.ndarray:
    """``bool[n]``: values that say anything: not blank, and with a letter or a digit."""
    if pa.types.is_dictionary(column.type):
        pool = telling(column.dictionary)
        if not len(pool):
            return np.zeros(len(column), np.bool_)
        index = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return pool[index] & column.is_valid().to_numpy(zero_copy_only=False)
    values = text.to_text(column).fill_null("")
    taken = spelled(values)
    return np.bincount(taken.rows[taken.sorts > 0], minlength=len(values)) > 0

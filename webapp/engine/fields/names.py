"""The names and titles that people are made of, as pools that field types index; made once for a locale."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.fields.base import longest
from webapp.engine.fields.joining import Lazy

DEFAULT_LOCALE = "en_US"
FEMALE, MALE = 0, 1
SEXES = ("female", "male")

_U32 = np.uint64(32)

_FAMILY_FIRST = ("hu", "ja", "ko", "zh")
_UNSPACED = ("ja", "ko", "zh")


# How handles begin, out of eight: {first}. {first} {f} {first}_ {f}.
_STYLES = np.array([0, 0, 0, 1, 2, 2, 3, 4], np.uint64)
HANDLE_NUMBERS = 100
_NUMBER_BITS = 10
# What the lowest bits of a handle's draw mean: half of the handles have no number (0), the rest one of 1 to 99.
NUMBER_OF = np.array(
    [(n // 2 % (HANDLE_NUMBERS - 1) + 1) * (n % 2) for n in range(1 << _NUMBER_BITS)], np.uint64
)


@dataclass(frozen=True)
class Names:
    """The names of one locale. Female names come first in each pool; ``*_counts`` and ``*_starts`` are ``uint64[2]``
    by sex. What is not among the constructor's arguments is made when first asked for."""

    locale: str
    first: pa.StringArray
    first_counts: np.ndarray
    last: pa.StringArray
    last_counts: np.ndarray
    first_ascii: pa.StringArray
    last_ascii: pa.StringArray
    first_folded: pa.StringArray
    last_folded: pa.StringArray

    @Lazy
    def first_starts(self) -> np.ndarray:
        return np.array([0, self.first_counts[FEMALE]], np.uint64)

    @Lazy
    def last_starts(self) -> np.ndarray:
        return np.array([0, self.last_counts[FEMALE]], np.uint64)

    @Lazy
    def family_first(self) -> bool:
        """Whether the family name stands before the given name."""
        return self.locale.partition("_")[0] in _FAMILY_FIRST

    @Lazy
    def whole_parts(self) -> tuple[pa.StringArray, pa.StringArray]:
        """The pools of first and last names as they stand in a whole name: the one that comes first with the blank
        behind it."""
        parts = [self.first, self.last]
        ahead = 1 if self.family_first else 0
        parts[ahead] = pc.binary_join_element_wise(parts[ahead], self.between, "")
        return parts[0], parts[1]

    @Lazy
    def between(self) -> str:
        """What stands between the two names."""
        return "" if self.locale.partition("_")[0] in _UNSPACED else " "

    @Lazy
    def handle_heads(self) -> pa.StringArray:
        """What a handle of each first name begins with, style by style."""
        initial = pc.utf8_slice_codeunits(self.first_ascii, 0, 1)
        styles = (
            pc.binary_join_element_wise(self.first_ascii, ".", ""),
            self.first_ascii,
            initial,
            pc.binary_join_element_wise(self.first_ascii, "_", ""),
            pc.binary_join_element_wise(initial, ".", ""),
        )
        return pa.concat_arrays(styles)

    @Lazy
    def style_starts(self) -> np.ndarray:
        """``uint64[8]``: where each style's heads begin."""
        return _STYLES * np.uint64(len(self.first))

    @Lazy
    def longest_handle(self) -> int:
        return longest(self.handle_heads) + longest(self.last_ascii)

    @Lazy
    def longest_first(self) -> int:
        return longest(self.first)

    @Lazy
    def longest_last(self) -> int:
        return longest(self.last)


def names_of(vocabulary: Vocabulary, locale: str) -> Names:
    """The names of ``locale``, made once a process."""
    return vocabulary.shared(("names", locale), lambda: _names_of(vocabulary, locale))


def _names_of(vocabulary: Vocabulary, locale: str) -> Names:
    first = [vocabulary.words(f"first_name_{sex}", locale) for sex in SEXES]
    last = [vocabulary.words(f"last_name_{sex}", locale) for sex in SEXES]
    table = vocabulary.table("romanized")
    table = table.filter(pc.equal(table.column("locale"), locale)).combine_chunks()
    words, ascii_, folded = (table.column(name).chunk(0) for name in ("word", "ascii", "folded"))
    pools = [pa.concat_arrays(halves) for halves in (first, last)]
    rows = [pc.index_in(pool, value_set=words) for pool in pools]
    return Names(
        locale=locale,
        first=pools[0],
        first_counts=np.array([len(half) for half in first], np.uint64),
        last=pools[1],
        last_counts=np.array([len(half) for half in last], np.uint64),
        first_ascii=ascii_.take(rows[0]),
        last_ascii=ascii_.take(rows[1]),
        first_folded=folded.take(rows[0]),
        last_folded=folded.take(rows[1]),
    )


@dataclass(frozen=True)
class Jobs:
    """English titles, department by department; ``starts`` and ``counts`` are ``uint64[departments]``."""

    titles: pa.StringArray
    departments: pa.StringArray
    department_of: np.ndarray
    starts: np.ndarray
    counts: np.ndarray


def jobs_of(vocabulary: Vocabulary) -> Jobs:
    """Departments and their titles, made once a process."""
    return vocabulary.shared(("jobs",), lambda: _jobs_of(vocabulary))


def _jobs_of(vocabulary: Vocabulary) -> Jobs:
    table = vocabulary.table("english_title")
    of = table.column("department").to_numpy()
    departments = vocabulary.words("department")
    places = np.arange(len(departments))
    starts, ends = np.searchsorted(of, places), np.searchsorted(of, places, side="right")
    titles = table.column("title").chunk(0)
    return Jobs(titles, departments, of, starts.astype(np.uint64), (ends - starts).astype(np.uint64))


@dataclass(frozen=True)
class Candidates:
    """Which names a row may take: places in a pool, those for women first; None where all of the pool is meant."""

    places: np.ndarray | None
    starts: np.ndarray
    counts: np.ndarray

    def pick(self, sex: np.ndarray, random32: np.ndarray) -> np.ndarray:
        """``uint64[n]`` of places in the pool, for 32 random bits each."""
        place = (random32 * self.counts[sex] >> _U32) + self.starts[sex]
        return place if self.places is None else self.places[place]


@lru_cache(maxsize=256)
def handle_tails(ending: str) -> pa.StringArray:
    """``["" + ending, "1" + ending, ... "99" + ending]``, the same array each time."""
    return pa.array([(str(number) if number else "") + ending for number in range(HANDLE_NUMBERS)])

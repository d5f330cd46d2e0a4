"""People: names, titles, sex, birth, family, work, body and picture, which agree within a group ``person``.

Names and titles come from pools of a locale, which are built once. Day of birth and age follow from one draw, and from
the ``now`` of the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp import limits
from webapp.engine import dates, text_parts
from webapp.engine import random as engine_random
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.random import lookup
from webapp.engine.text import decimal_array
from webapp.engine.types import joining
from webapp.engine.types.base import (
    FieldType,
    GroupKind,
    OptionsModel,
    PoolType,
    dictionary_array,
    max_text_length,
)
from webapp.engine.types.joining import LazyProperty, SaltedBits
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.random import RandomStream
    from webapp.engine.spec import FieldSpec


DEFAULT_LOCALE, JAPANESE = "en_US", "ja_JP"
FEMALE, MALE = 0, 1
SEXES = ("female", "male")

_U32 = np.uint64(32)

_FAMILY_FIRST = ("hu", "ja", "ko", "vi", "zh")
_UNSPACED = ("ja", "ko", "zh")


# How handles begin, out of eight: {first}. {first} {f} {first}_ {f}.
_STYLES = np.array([0, 0, 0, 1, 2, 2, 3, 4], np.uint64)
HANDLE_NUMBERS = 100
_NUMBER_BITS = 10
# What the lowest bits of a handle's draw mean: half of the handles have no number (0), the rest one of 1 to 99.
HANDLE_NUMBER_BY_BITS = np.array(
    [(n // 2 % (HANDLE_NUMBERS - 1) + 1) * (n % 2) for n in range(1 << _NUMBER_BITS)], np.uint64
)


@dataclass(frozen=True)
class PersonNames:
    """The names of one locale. Female names come first in each pool; ``*_counts`` and ``*_starts`` are ``uint64[2]``
    by sex. Everything that is not an argument of the constructor is computed on first use."""

    locale: str
    first: pa.StringArray
    first_counts: np.ndarray
    last: pa.StringArray
    last_counts: np.ndarray
    first_ascii: pa.StringArray
    last_ascii: pa.StringArray
    first_folded: pa.StringArray
    last_folded: pa.StringArray
    first_roman: pa.StringArray
    """The pools in Latin letters, with a capital; the pools themselves where the locale is written in those."""
    last_roman: pa.StringArray

    @LazyProperty
    def romanized_parts(self) -> tuple[pa.StringArray, pa.StringArray]:
        """Return first and last names in Latin letters, with a blank between the names."""
        parts = [self.first_roman, self.last_roman]
        ahead = 1 if self.is_family_first else 0
        parts[ahead] = pc.binary_join_element_wise(parts[ahead], " ", "")
        return parts[0], parts[1]

    @LazyProperty
    def first_starts(self) -> np.ndarray:
        return np.array([0, self.first_counts[FEMALE]], np.uint64)

    @LazyProperty
    def last_starts(self) -> np.ndarray:
        return np.array([0, self.last_counts[FEMALE]], np.uint64)

    @LazyProperty
    def is_family_first(self) -> bool:
        """Whether the family name precedes the given name."""
        return self.locale.partition("_")[0] in _FAMILY_FIRST

    @LazyProperty
    def full_name_parts(self) -> tuple[pa.StringArray, pa.StringArray]:
        """The pools of first and last names as they are written in a full name: the one that comes first with the blank
        behind it."""
        parts = [self.first, self.last]
        ahead = 1 if self.is_family_first else 0
        parts[ahead] = pc.binary_join_element_wise(parts[ahead], self.separator, "")
        return parts[0], parts[1]

    @LazyProperty
    def separator(self) -> str:
        """The text between the two names."""
        return "" if self.locale.partition("_")[0] in _UNSPACED else " "

    @LazyProperty
    def handle_prefixes(self) -> pa.StringArray:
        """The beginning of a handle for each first name, style by style."""
        initial = pc.utf8_slice_codeunits(self.first_ascii, 0, 1)
        styles = (
            pc.binary_join_element_wise(self.first_ascii, ".", ""),
            self.first_ascii,
            initial,
            pc.binary_join_element_wise(self.first_ascii, "_", ""),
            pc.binary_join_element_wise(initial, ".", ""),
        )
        return pa.concat_arrays(styles)

    @LazyProperty
    def style_starts(self) -> np.ndarray:
        """``uint64[8]``: where each style's heads begin."""
        return _STYLES * np.uint64(len(self.first))

    @LazyProperty
    def longest_handle(self) -> int:
        return max_text_length(self.handle_prefixes) + max_text_length(self.last_ascii)

    @LazyProperty
    def longest_first(self) -> int:
        return max_text_length(self.first)

    @LazyProperty
    def longest_last(self) -> int:
        return max_text_length(self.last)


def names_of(vocabulary: Vocabulary, locale: str) -> PersonNames:
    """Return the names of ``locale``, created once per process."""
    return vocabulary.cached(("names", locale), lambda: _names_of(vocabulary, locale))


def _names_of(vocabulary: Vocabulary, locale: str) -> PersonNames:
    first = [vocabulary.words(f"first_name_{sex}", locale) for sex in SEXES]
    last = [vocabulary.words(f"last_name_{sex}", locale) for sex in SEXES]
    table = vocabulary.table("romanized")
    table = table.filter(pc.equal(table.column("locale"), locale)).combine_chunks()
    words, ascii_, folded = (table.column(name).chunk(0) for name in ("word", "ascii", "folded"))
    roman = table.column("roman").chunk(0) if "roman" in table.column_names else pc.utf8_capitalize(ascii_)
    pools = [pa.concat_arrays(halves) for halves in (first, last)]
    rows = [pc.index_in(pool, value_set=words) for pool in pools]
    return PersonNames(
        locale=locale,
        first=pools[0],
        first_counts=np.array([len(half) for half in first], np.uint64),
        last=pools[1],
        last_counts=np.array([len(half) for half in last], np.uint64),
        first_ascii=ascii_.take(rows[0]),
        last_ascii=ascii_.take(rows[1]),
        first_folded=folded.take(rows[0]),
        last_folded=folded.take(rows[1]),
        first_roman=roman.take(rows[0]),
        last_roman=roman.take(rows[1]),
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
    """Return the departments and their titles, created once per process."""

    def make() -> Jobs:
        table = vocabulary.table("english_title")
        of = table.column("department").to_numpy()
        departments = vocabulary.words("department")
        places = np.arange(len(departments))
        starts, ends = np.searchsorted(of, places), np.searchsorted(of, places, side="right")
        titles = table.column("title").chunk(0)
        return Jobs(titles, departments, of, starts.astype(np.uint64), (ends - starts).astype(np.uint64))

    return vocabulary.cached(("jobs",), make)


@dataclass(frozen=True)
class NameChoices:
    """Which names a row may take: places in a pool, those for women first; None for the whole pool."""

    places: np.ndarray | None
    starts: np.ndarray
    counts: np.ndarray

    def pick(self, sex: np.ndarray, random32: np.ndarray) -> np.ndarray:
        """``uint64[n]`` of places in the pool, for 32 random bits each."""
        place = (random32 * lookup(self.counts, sex) >> _U32) + lookup(self.starts, sex)
        return place if self.places is None else lookup(self.places, place)


@lru_cache(maxsize=256)
def handle_tails(ending: str) -> pa.StringArray:
    """``["" + ending, "1" + ending, ... "99" + ending]``, the same array each time."""
    return pa.array([(str(number) if number else "") + ending for number in range(HANDLE_NUMBERS)])


_ENGLISH = ("Ms.", "Mr.")
# For a woman and for a man; languages with one form for both repeat it.
_TITLES = {
    "bg": ("г-жа", "г-н"), "cs": ("paní", "pan"), "da": ("Fru", "Hr."), "de": ("Frau", "Herr"), "el": ("Κα", "Κ."),
    "en": _ENGLISH, "es": ("Sra.", "Sr."), "et": ("Pr", "Hr"), "fi": ("Rouva", "Herra"), "fr": ("Mme", "M."),
    "hr": ("Gđa", "G."), "hu": ("Asszony", "Úr"), "it": ("Sig.ra", "Sig."), "ja": ("様", "様"), "ko": ("씨", "씨"),
    "lv": ("Kundze", "Kungs"), "nb": ("Fru", "Herr"), "nl": ("Mevr.", "Dhr."), "pl": ("Pani", "Pan"),
    "pt": ("Sra.", "Sr."), "ro": ("Dna.", "Dl."), "ru": ("г-жа", "г-н"), "sk": ("pani", "pán"), "sl": ("ga.", "g."),
    "sv": ("Fru", "Herr"), "tr": ("Bayan", "Bay"), "uk": ("пані", "пан"), "zh": ("女士", "先生"),
    "am": ("ወይዘሮ", "አቶ"), "ar": ("السيدة", "السيد"), "az": ("Xanım", "Cənab"), "bn": ("জনাবা", "জনাব"),
    "bs": ("Gđa", "G."),
    "ca": ("Sra.", "Sr."), "fa": ("خانم", "آقای"), "fil": ("Gng.", "G."), "ga": ("Iníon", "An tUasal"),
    "gu": ("શ્રીમતી", "શ્રી"),
    "ha": ("Malama", "Malam"), "he": ("גב'", "מר"), "hi": ("श्रीमती", "श्री"), "hy": ("Տիկին", "Պարոն"),
    "id": ("Ibu", "Bapak"),
    "ig": ("Oriaku", "Mazi"), "is": ("Frú", "Herra"), "ka": ("ქალბატონი", "ბატონი"), "kk": ("Ханым", "Мырза"),
    "lt": ("Ponia", "Ponas"),
    "mk": ("г-ѓа", "г-дин"), "mr": ("श्रीमती", "श्री"), "mt": ("Sinjura", "Sinjur"), "ne": ("श्रीमती", "श्री"),
    "or": ("ଶ୍ରୀମତୀ", "ଶ୍ରୀ"),
    "si": ("මහත්මිය", "මහතා"), "sq": ("Znj.", "Z."), "sr": ("гђа", "г."), "sw": ("Bi.", "Bw."), "ta": ("திருமதி", "திரு"),
    "th": ("นางสาว", "นาย"), "tw": ("Awuraa", "Owura"), "ur": ("محترمہ", "جناب"), "uz": ("Xonim", "Janob"),
    "vi": ("Bà", "Ông"),
    "yo": ("Arábìnrin", "Ọ̀gbẹ́ni"), "zu": ("Nkk.", "Mnu."),
}  # fmt: skip
SUFFIXES = ("MD", "PhD", "DDS", "DVM", "Esq.", "Jr.", "Sr.", "II", "III", "IV")
UNISEX_SUFFIX_COUNT = 5
"""This many first suffixes are used by women and men; the others distinguish fathers and sons."""


@cache
def titles(locale: str) -> pa.Array:
    """The forms of ``locale``'s language, by sex; English ones where none are known."""
    return pa.array(_TITLES.get(locale.partition("_")[0], _ENGLISH))


@cache
def suffixes() -> pa.Array:
    """`SUFFIXES`, the same array at every call."""
    return pa.array(SUFFIXES)


def sexes_of_title(kind: str, text: str, locale: str) -> tuple[int, ...]:
    """Return the sexes that a title or a suffix can have; none if it is unknown."""
    name = text.lower().rstrip(".")
    if kind == "title":
        forms = titles(locale).to_pylist()
        return tuple(sex for sex in (FEMALE, MALE) if forms[sex].lower().rstrip(".") == name)
    positions = [place for place, suffix in enumerate(SUFFIXES) if suffix.lower().rstrip(".") == name]
    if not positions:
        return ()
    return (FEMALE, MALE) if positions[0] < UNISEX_SUFFIX_COUNT else (MALE,)


DEFAULT_AGES = (18, 80)
"""Minimum and maximum age in years, if no field sets them."""
BIRTH_TYPES = ("age", "date_of_birth", "marital_status")
"""Types that need a day of birth."""

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, eq=False)
class BirthDays:
    """Days of birth to choose from: ``size`` days since 1970-01-01 from ``low`` on."""

    low: int
    size: int
    latest: np.ndarray
    """``int64[k]``, ascending: the latest day of birth of a person aged k, k - 1, ... 1 years or more."""
    numbers: int = 0
    """How many people of a day have different numbers, if a unique number has the day of birth in it."""

    def ages(self, days: np.ndarray) -> np.ndarray:
        """``int64[n]``: whole years of those who were born on ``days``."""
        return self.latest.size - np.searchsorted(self.latest, days)


def requested_ages(fields: Sequence[FieldSpec], compiler: Compiler) -> tuple[int, int] | None:
    """Return the (minimum, maximum) age in years of a group's people; None if no field needs it. Reports fields with
    different options."""
    if not any(field.type.name in BIRTH_TYPES for field in fields):
        return None
    limits_by_option: dict[str, int] = {}
    for field in fields:
        if field.type.name not in BIRTH_TYPES[:2]:
            continue
        for option in field.options.model_fields_set & {"min", "max"}:
            value = getattr(field.options, option)
            if limits_by_option.setdefault(option, value) != value:
                text = f"All fields of a person must have the same {option} age."
                compiler.fault(
                    field, f"options.{option}", "conflict", text, "Set a separate group for one of them."
                )
    low, high = limits_by_option.get("min", DEFAULT_AGES[0]), limits_by_option.get("max", DEFAULT_AGES[1])
    if low > high and len(limits_by_option) == 1:
        low, high = (low, limits.MAX_AGE) if "min" in limits_by_option else (0, high)
    if low > high:
        field_with_min = next(field for field in fields if "min" in field.options.model_fields_set)
        compiler.fault(
            field_with_min,
            "options.min",
            "min_above_max",
            f"min ({low}) is larger than max ({high}).",
            "Swap them.",
        )
        return DEFAULT_AGES
    return low, high


def allowed_birth_days(
    ages: tuple[int, int] | None, now: datetime, fixed: dict[str, Any], fields: Sequence[FieldSpec]
) -> tuple[BirthDays | None, list[str]]:
    """Return the days of birth that ages and overrides allow, and the names of overrides that no day matches."""
    if ages is None:
        return None, []
    low, high = _birth_range(now.date(), *ages)
    unmet, is_first = [], True
    for field in fields:
        if field.type.name not in BIRTH_TYPES[:2] or fixed.get(field.name) is None:
            continue
        days = _days_of_value(field.type.name, fixed[field.name], now.date())
        # A value fixed by one field applies even outside the requested ages; two must agree.
        if days is None or (not is_first and (days[1] < low or days[0] > high)):
            unmet.append(field.name)
        else:
            low, high = days if is_first else (max(low, days[0]), min(high, days[1]))
            is_first = False
    return BirthDays(low, high - low + 1, _latest_birth_days(now.date())), unmet


def _days_of_value(kind: str, value: Any, today: date) -> tuple[int, int] | None:
    if kind == "age":
        return _birth_range(today, value, value) if 0 <= value <= limits.MAX_AGE else None
    try:
        day = value if isinstance(value, date) else date.fromisoformat(str(value).strip())
    except ValueError:
        return None
    number = (day - _EPOCH).days
    return (number, number) if day <= today else None


def _birth_range(today: date, minimum: int, maximum: int) -> tuple[int, int]:
    """First and last day of birth of people of ``minimum`` to ``maximum`` whole years."""
    return _number(_latest_birth_day(today, maximum + 1)) + 1, _number(_latest_birth_day(today, minimum))


def _latest_birth_day(today: date, years: int) -> date:
    """Return the latest day of birth of a person aged ``years`` years or more."""
    try:
        return today.replace(year=today.year - years)
    except ValueError:
        # People born on 29 February have their birthday on 1 March in other years.
        return date(today.year - years, 3, 1) - timedelta(days=1)


def _number(day: date) -> int:
    return (day - _EPOCH).days


@lru_cache(maxsize=64)
def _latest_birth_days(today: date) -> np.ndarray:
    return np.array(
        [_number(_latest_birth_day(today, years)) for years in range(limits.MAX_AGE + 1, 0, -1)], np.int64
    )


_MIDDLE_SALT, _HANDLE_SALT, _WORK_SALT, _GENDER_SALT = 1, 2, 3, 4
_SALTS = 5
_BIRTH_SALT, _MARITAL_SALT, _SUFFIX_SALT = 5, 6, 7
_LOW_32 = np.uint64(0xFFFFFFFF)
_STYLE_SHIFT = np.uint64(61)


class People(SaltedBits):
    """The people of a block's rows, each part computed on first use."""

    def __init__(
        self, draws: RandomStream, salts: int, names: PersonNames, jobs: Jobs, narrowed: PersonChoices
    ) -> None:
        super().__init__(draws, salts)
        self.names, self._jobs, self._narrowed = names, jobs, narrowed

    @LazyProperty
    def _names_bits(self) -> np.ndarray:
        return self.bits(0)

    @LazyProperty
    def sex(self) -> np.ndarray:
        """``int64[n]``: FEMALE or MALE."""
        if self._narrowed.sex is not None:
            return np.full(self._draws.n, self._narrowed.sex, np.int64)
        return (self._names_bits & np.uint64(1)).view(np.int64)

    @LazyProperty
    def gender(self) -> np.ndarray:
        """``uint64[n]``: random bits that decide whether a person is neither."""
        return self.bits(_GENDER_SALT)

    @LazyProperty
    def first(self) -> np.ndarray:
        """``uint64[n]``: rows of ``names.first``."""
        return self._narrowed.first.pick(self.sex, self._names_bits >> _U32)

    @LazyProperty
    def last(self) -> np.ndarray:
        """``uint64[n]``: rows of ``names.last``."""
        # The lowest bit is the sex; 31 others decide the name.
        return self._narrowed.last.pick(self.sex, self._names_bits & _LOW_32)

    @LazyProperty
    def middle(self) -> np.ndarray:
        """``uint64[n]``: rows of ``names.first``, for a second given name of the same sex."""
        names = NameChoices(None, self.names.first_starts, self.names.first_counts)
        return names.pick(self.sex, self.bits(_MIDDLE_SALT) >> _U32)

    @LazyProperty
    def handle_bits(self) -> np.ndarray:
        """``uint64[n]``: random bits of a person's handle: style, then from below number and mail domain."""
        return self.bits(_HANDLE_SALT)

    @LazyProperty
    def handle_head(self) -> np.ndarray:
        """``uint64[n]``: rows of ``names.handle_prefixes``."""
        return self.names.style_starts[self.handle_bits >> _STYLE_SHIFT] + self.first

    def handle_tail(self, table: np.ndarray) -> np.ndarray:
        """``table`` by the low bits of the handle's draw; it has a power of two of entries."""
        return table[self.handle_bits & np.uint64(table.size - 1)]

    @LazyProperty
    def suffix(self) -> np.ndarray:
        """``uint64[n]``: a number that no other row of the group has."""
        return joining.unique_suffixes(self._draws)

    @LazyProperty
    def department(self) -> np.ndarray:
        """``uint64[n]``: rows of the list of departments."""
        if self._narrowed.department is not None:
            return np.full(self._draws.n, self._narrowed.department, np.uint64)
        return (self.bits(_WORK_SALT) >> _U32) * np.uint64(len(self._jobs.departments)) >> _U32

    @LazyProperty
    def title(self) -> np.ndarray:
        """``uint64[n]``: rows of the English titles, each out of the row's department."""
        counts, starts = self._jobs.counts[self.department], self._jobs.starts[self.department]
        return ((self.bits(_WORK_SALT) & _LOW_32) * counts >> _U32) + starts

    @property
    def born(self) -> BirthDays | None:
        """The days of birth there are to choose from; only where a field of `BIRTH_TYPES` is in the group."""
        return self._narrowed.born

    @LazyProperty
    def birth(self) -> np.ndarray:
        """``int64[n]``: days since 1970-01-01."""
        born = self._narrowed.born
        assert born is not None
        if born.numbers:
            return born.low + (self._number // np.uint64(born.numbers)).view(np.int64)
        return born.low + engine_random.below(self.bits(_BIRTH_SALT), born.size).view(np.int64)

    @LazyProperty
    def _number(self) -> np.ndarray:
        born = self._narrowed.born
        assert born is not None
        return self._draws.permuted(born.size * born.numbers)

    @property
    def number_of_day(self) -> np.ndarray:
        """``uint64[n]``: a number below ``born.numbers`` that nobody else has who was born on the same day."""
        born = self._narrowed.born
        assert born is not None
        return self._number % np.uint64(born.numbers)

    @LazyProperty
    def age(self) -> np.ndarray:
        """``int64[n]``: whole years at the request's now."""
        born = self._narrowed.born
        assert born is not None
        return born.ages(self.birth)

    @property
    def marital_bits(self) -> np.ndarray:
        """``uint64[n]``: random bits that decide whether a person is married."""
        return self.bits(_MARITAL_SALT)

    @property
    def suffix_bits(self) -> np.ndarray:
        """``uint64[n]``: random bits that decide what follows a person's name."""
        return self.bits(_SUFFIX_SALT)


@dataclass(frozen=True)
class PersonChoices:
    """The choices that overrides leave."""

    first: NameChoices
    last: NameChoices
    sex: int | None = None
    department: int | None = None
    born: BirthDays | None = None
    """Set if a field of the group needs it."""


class PersonKind(GroupKind):
    """One human being a row."""

    kind = "person"

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        check_locales(fields, compiler)
        self.locale = locale_of_group(fields, compiler, default_locale(fields))
        self.names = names_of(compiler.vocabulary, self.locale)
        self.jobs = jobs_of(compiler.vocabulary)
        self._vocabulary = compiler.vocabulary
        requested = [(field, sex) for field in fields if (sex := getattr(field.options, "sex", None))]
        if len({sex for _, sex in requested}) > 1:
            text = "All fields of a person must have the same sex."
            compiler.fault(
                requested[-1][0], "options.sex", "conflict", text, "Set a separate group for one of them."
            )
        self._sex = SEXES.index(requested[0][1]) if requested else None
        self._ages = requested_ages(fields, compiler)
        self._number_days: tuple[int, int, int] | None = None
        self._salts = _SALTS if len(fields) >= joining.MIN_SALTED_FIELDS else 0
        unrestricted = self._narrow(None, None, self._sex, None)
        assert unrestricted is not None  # each sex has names
        self._unrestricted = unrestricted

    def number_uniquely(self, numbers: int, low: int, size: int) -> bool:
        """Let a unique number determine the days of birth. It has ``numbers`` values for each of ``size`` days from
        ``low`` on (since 1970-01-01). Return False if another number determines them already."""
        if self._number_days is not None:
            return False
        self._number_days = numbers, low, size
        return True

    def born(self, now: datetime, fixed: dict[str, Any]) -> tuple[BirthDays | None, list[str]]:
        """See `allowed_birth_days`."""
        ages = self._ages
        if ages is None and any(reader.type.needs_birth_date for reader in self.readers):
            ages = DEFAULT_AGES
        if self._number_days is None:
            return allowed_birth_days(ages, now, fixed, self.fields)
        born, _ = allowed_birth_days(ages or DEFAULT_AGES, now, {}, ())
        assert born is not None
        numbers, low, size = self._number_days
        first, end = max(born.low, low), min(born.low + born.size, low + size)
        if end <= first:  # no number has such a day
            return allowed_birth_days(ages, now, fixed, self.fields)
        unmet = [
            field.name for field in self.fields if field.type.name in BIRTH_TYPES[:2] and field.name in fixed
        ]
        return replace(born, low=first, size=end - first, numbers=numbers), unmet

    def prepare(self, env: GenerationContext, fixed: dict[str, Any]) -> tuple[PersonChoices, list[Fault]]:
        born, unmet_births = self.born(env.now, fixed)
        unrestricted = self._unrestricted if born is None else replace(self._unrestricted, born=born)
        if not fixed:
            return unrestricted, []
        sex, department = self._sex, None
        first = last = None
        unmet = unmet_births
        types = {field.name: field.type.name for field in self.fields}
        for name, value in fixed.items():
            text = str(value).strip()
            candidates: Any = None
            match types[name]:
                case "sex" | "gender":
                    sexes_by_name = {"female": FEMALE, "f": FEMALE, "male": MALE, "m": MALE}
                    sex = candidates = sexes_by_name.get(text.lower())
                case "first_name":
                    first = candidates = joining.find_ignoring_case(self.names.first, text)
                case "last_name":
                    last = candidates = joining.find_ignoring_case(self.names.last, text)
                case "name":
                    first, last = self._split_name(text)
                    candidates = last if first.size else first
                case "title" | "suffix":
                    sexes = sexes_of_title(types[name], text, self.locale)
                    candidates = sexes or None
                    sex = sexes[0] if len(sexes) == 1 else sex
                case "email" | "username" | "safe_email" | "company_email":
                    first, last = self._split_handle(text.partition("@")[0].lower())
                    candidates = last if first.size else first
                case "department":
                    candidates = joining.find_ignoring_case(self.jobs.departments, text)
                    local = self._vocabulary.localized_names("local_department", self.locale)
                    if not candidates.size and local is not None:
                        candidates = joining.find_ignoring_case(local, text)
                    department = int(candidates[0]) if candidates.size else None
                case "job_title":
                    candidates = joining.find_ignoring_case(self.jobs.titles, text)
                    department = int(self.jobs.department_of[candidates[0]]) if candidates.size else None
                case _:
                    continue
            if candidates is None or (isinstance(candidates, np.ndarray) and not candidates.size):
                unmet.append(name)
        narrowed = self._narrow(first, last, sex, department)
        if narrowed is None:
            unmet.extend(fixed)
            narrowed = unrestricted
        return replace(narrowed, born=born), [
            Fault(
                f"overrides.{name}",
                "no_match",
                f'No person of {self.locale} matches "{fixed[name]}"; the other fields of the group ignore it.',
                "",
            )
            for name in dict.fromkeys(unmet)
        ]

    def draw(self, draws: RandomStream, state: PersonChoices) -> People:
        return People(draws, self._salts, self.names, self.jobs, state)

    def _narrow(
        self, first: np.ndarray | None, last: np.ndarray | None, sex: int | None, department: int | None
    ) -> PersonChoices | None:
        """Return the choices left when names are narrowed to places of the pools (an empty vector narrows nothing);
        None if no sex has both a first and a last name left."""
        names = self.names
        firsts = _candidates(first, names.first_starts, names.first_counts)
        lasts = _candidates(last, names.last_starts, names.last_counts)
        possible = [s for s in (FEMALE, MALE) if sex in (None, s) and firsts.counts[s] and lasts.counts[s]]
        if not possible:
            return None
        return PersonChoices(firsts, lasts, possible[0] if len(possible) == 1 else None, department)

    def _split_name(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the first and the last name that make up ``name``; empty arrays if there are none."""
        names = self.names
        for cut in range(1, len(name)):
            left, right = name[:cut], name[cut:]
            if names.separator:
                if name[cut] != names.separator:
                    continue
                right = name[cut + 1 :]
            given, family = (right, left) if names.is_family_first else (left, right)
            first, last = (
                joining.find_ignoring_case(names.first, given),
                joining.find_ignoring_case(names.last, family),
            )
            if first.size and last.size:
                return first, last
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def _split_handle(self, handle: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the names that make up a handle such as ``ann.lee7``."""
        handle = handle.rstrip("0123456789")
        for cut in range(1, len(handle)):
            first = joining.find_ignoring_case(self.names.first_ascii, handle[:cut].rstrip("._-"))
            if first.size:
                last = joining.find_ignoring_case(self.names.last_ascii, handle[cut:].lstrip("._-"))
                if last.size:
                    return first, last
        return np.empty(0, np.int64), np.empty(0, np.int64)


@overload
def locale_of_group(fields: Sequence[FieldSpec], compiler: Compiler, default: str) -> str: ...
@overload
def locale_of_group(fields: Sequence[FieldSpec], compiler: Compiler, default: None) -> str | None: ...
def locale_of_group(fields: Sequence[FieldSpec], compiler: Compiler, default: str | None) -> str | None:
    """The one locale of a group: the one that fields of it name, else the template's, else ``default``."""
    named = _locales(fields, compiler)
    return min(named) if named else compiler.locale_of(fields[0]) or default


def default_locale(fields: Sequence[FieldSpec]) -> str:
    """The locale of a group's people where none is set: Japanese if a field shows the reading of a Japanese name."""
    return JAPANESE if any(issubclass(field.type, _Kana) for field in fields) else DEFAULT_LOCALE


def check_locales(fields: Sequence[FieldSpec], compiler: Compiler) -> None:
    """Reports two fields of one group that name different locales."""
    named = _locales(fields, compiler)
    if len(named) > 1:
        text = (
            f"All fields of a {fields[0].type.group_kind} must have the same locale, not "
            f"{' and '.join(sorted(named))}."
        )
        compiler.fault(
            list(named.values())[-1], "locale", "conflict", text, "Set a separate group for one of them."
        )


def _locales(fields: Sequence[FieldSpec], compiler: Compiler) -> dict[str, FieldSpec]:
    named = {
        compiler.locale_of(field): field for field in fields if field.common.locale and field.type.localised
    }
    return {locale: field for locale, field in named.items() if locale is not None}


def _candidates(places: np.ndarray | None, starts: np.ndarray, counts: np.ndarray) -> NameChoices:
    if places is None or not places.size:
        return NameChoices(None, starts, counts)
    female = int(np.searchsorted(places, int(starts[MALE])))
    counts_by_sex = np.array([female, places.size - female], np.uint64)
    return NameChoices(places.astype(np.uint64), np.array([0, female], np.uint64), counts_by_sex)


SUFFIX_DIGITS = 16
"""Digits of the longest number that `joining.unique_suffixes` gives."""


class PersonField(FieldType):
    """What the types of the group have in common."""

    category = "person"
    group_kind = "person"
    localised = True
    dtype = pa.string()

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.group = compiler.fields_of_same_group(field)
        self.alone = len(self.group) == 1
        self.locale = locale_of_group(self.group, compiler, default_locale(self.group))
        self.names = names_of(compiler.vocabulary, self.locale)

    def localized_list(self, table: str, english: pa.Array, compiler: Compiler) -> pa.Array:
        """A list whose order has a meaning, in the language of the locale; in English, with a warning, if the
        language has none."""
        if compiler.vocabulary.engine < 2 or self.locale.startswith("en"):
            return english
        local = compiler.vocabulary.localized_names(table, self.locale)
        if local is None or len(local) != len(english):
            compiler.warn_english(self.field, self.locale)
            return english
        return local

    def unique_hint(self) -> str:
        if not self.alone:
            others = ", ".join(other.name for other in self.group if other.name != self.field.name)
            return (
                f"The value must match {others}: set a separate group for the field, or make the e-mail "
                "or username unique."
            )
        return super().unique_hint()


class Romanized(OptionsModel):
    """The option of names that a locale may write in another script."""

    romanized: bool = Field(False, description="Latin letters instead of the locale's own script.")


class _NamePool(PersonField):
    """First or last names: one pool, of which `fill_unique` uses each name that reads differently once."""

    which: ClassVar[Literal["first", "last"]]

    @classmethod
    def group_attribute(cls, options: Any) -> str:
        return f"{cls.name}:romanized" if options.romanized else cls.name

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        roman = getattr(options, "romanized", False)
        self.pool = getattr(self.names, f"{self.which}_roman" if roman else self.which)
        self.max_length = (
            max_text_length(self.pool) if roman else getattr(self.names, f"longest_{self.which}")
        )
        requested = getattr(options, "sex", None)  # only given names have the option
        self._sex_index = SEXES.index(requested) if requested else None
        self._distinct: np.ndarray | None = None
        if field.common.unique and self.alone:
            key = ("distinct", self.which, self.locale, self._sex_index, roman)
            pool = f"{self.which}_ascii" if roman else f"{self.which}_folded"
            self._distinct = compiler.vocabulary.cached(
                key, lambda: _distinct_names(self.names, pool, self._sex_index)
            )

    def fill(self, context: ColumnContext) -> pa.Array:
        return joining.take_values(self.pool, getattr(context.group(People), self.which))

    def distinct_count(self) -> int | None:
        return None if self._distinct is None else self._distinct.size

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        distinct = self._distinct
        assert distinct is not None  # else the field could not be unique
        return joining.take_values(self.pool, distinct[context.permuted(distinct.size)])


class FirstName(_NamePool):
    """A given name that fits the person's sex."""

    name = "first_name"
    label = "First name"
    description = "A given name, such as Anna."
    aliases = (
        "given name", "forename", "fname", "firstname female", "firstname male", "prename", "first name nonbinary",
    )  # fmt: skip
    example = "Anna"
    which = "first"

    class Options(Romanized):
        sex: Literal["female", "male"] | None = Field(None, description="Only female or only male names.")

    options: Options


class LastName(_NamePool):
    """A family name, in the form that fits the person's sex."""

    name = "last_name"
    label = "Last name"
    description = "A family name, such as Lee."
    aliases = ("last name nonbinary", "surname", "family name", "lname", "last name female", "last name male")
    example = "Lee"
    which = "last"

    class Options(Romanized):
        pass

    options: Options


class MiddleName(PersonField):
    """A second given name of the same sex."""

    name = "middle_name"
    label = "Middle name"
    description = "A middle name that matches the person's sex."
    aliases = ("second name", "mname")
    example = "Grace"

    class Options(Romanized):
        pass

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = self.names.first_roman if options.romanized else self.names.first
        self.max_length = max_text_length(self._pool) if options.romanized else self.names.longest_first

    def fill(self, context: ColumnContext) -> pa.Array:
        return joining.take_values(self._pool, context.group(People).middle)

    def unique_hint(self) -> str:
        return "Make the first name unique instead."


class Name(PersonField):
    """Given and family name, in the order of the locale."""

    name = "name"
    label = "Full name"
    description = "A full name, such as Anna Lee."
    aliases = (
        "person name", "person", "contact name", "customer name", "display name", "fullname", "name female",
        "name male", "name nonbinary",
    )  # fmt: skip
    example = "Anna Lee"

    class Options(Romanized):
        pass

    options: Options

    @classmethod
    def group_attribute(cls, options: Options) -> str:
        return f"{cls.name}:romanized" if options.romanized else cls.name

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = self.names.longest_first + self.names.longest_last + len(self.names.separator)
        if options.romanized:
            self.max_length = sum(map(max_text_length, self.names.romanized_parts))
        self._pairs = None
        if field.common.unique and self.alone and not options.romanized:
            key = ("pairs", self.locale)
            self._pairs = compiler.vocabulary.cached(key, lambda: _distinct_name_pairs(self.names))

    def fill_parts(self, context: ColumnContext) -> tuple[text_parts.PoolPart, ...]:
        people = context.group(People)
        return self._parts(people.first, people.last)

    def fill(self, context: ColumnContext) -> pa.Array:
        return text_parts.join_parts(*self.fill_parts(context))

    def _parts(self, first: np.ndarray, last: np.ndarray) -> tuple[text_parts.PoolPart, ...]:
        pools = self.names.romanized_parts if self.options.romanized else self.names.full_name_parts
        given, family = (pools[0], first), (pools[1], last)
        return (family, given) if self.names.is_family_first else (given, family)

    def distinct_count(self) -> int | None:
        return None if self._pairs is None else sum(first.size * last.size for first, last in self._pairs)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        space = self.distinct_count()
        assert self._pairs is not None  # else the field could not be unique
        assert space is not None
        index = context.permuted(space)
        women, men = self._pairs
        split = np.uint64(women[0].size * women[1].size)
        first, last = np.empty(index.size, np.uint64), np.empty(index.size, np.uint64)
        for half, in_half, base in ((women, index < split, np.uint64(0)), (men, index >= split, split)):
            if in_half.any():
                f, rest = np.divmod(index[in_half] - base, np.uint64(half[1].size))
                first[in_half], last[in_half] = half[0][f], half[1][rest]
        return text_parts.join_parts(*self._parts(first, last))


class _Kana(PersonField):
    """The reading of a Japanese name; blank, with a warning, in other locales."""

    parts: ClassVar[tuple[Literal["first", "last"], ...]]
    default: ClassVar[str] = "katakana"

    class Options(OptionsModel):
        script: Literal["katakana", "hiragana"] = Field("katakana", description="サクラ or さくら.")

    options: Options

    @classmethod
    def group_attribute(cls, options: Options) -> str:
        return f"{cls.name}:{options.script}"

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.string()
        self._pools: list[pa.StringArray] = []
        vocabulary = compiler.vocabulary
        if not self.locale.startswith("ja") or not vocabulary.has_table("kana"):
            text = f"{self.label}: only Japanese names have a kana reading, so the column is blank."
            compiler.warn(field, "no_values", text, "Set locale to ja_JP.")
            self.max_length = 0
            return
        for which in self.parts:
            key = ("kana", which, options.script)
            self._pools.append(vocabulary.cached(key, partial(self._readings, vocabulary, which)))
        self.max_length = sum(map(max_text_length, self._pools)) + len(self._pools) - 1

    def _readings(self, vocabulary: Vocabulary, which: str) -> pa.StringArray:
        table = vocabulary.table("kana")
        rows = pc.index_in(getattr(self.names, which), value_set=table.column("word").chunk(0))
        return table.column(self.options.script).chunk(0).take(rows)

    def fill(self, context: ColumnContext) -> pa.Array:
        people = context.group(People)
        if not self._pools:
            return pa.nulls(context.n, pa.string())
        parts = [(pool, getattr(people, which)) for pool, which in zip(self._pools, self.parts, strict=True)]
        if len(parts) == 1:
            return joining.take_values(*parts[0])
        gap = (_BLANK, np.zeros(context.n, np.int64))
        return text_parts.join_parts(parts[0], gap, parts[1])


_BLANK = pa.array([" "])


class FirstNameKana(_Kana):
    """The reading of the row's first name."""

    name = "first_name_kana"
    label = "First name (kana)"
    description = "The reading of a Japanese first name in kana, such as サクラ."
    aliases = ("first name furigana", "given name kana", "first kana name", "first kana name female",
    "first kana name male",
               "mei kana")  # fmt: skip
    example = "サクラ"
    parts = ("first",)


class LastNameKana(_Kana):
    """The reading of the row's last name."""

    name = "last_name_kana"
    label = "Last name (kana)"
    description = "The reading of a Japanese last name in kana, such as サトウ."
    aliases = ("last name furigana", "family name kana", "last kana name", "sei kana")
    example = "サトウ"
    parts = ("last",)


class NameKana(_Kana):
    """The reading of the row's name, family name first."""

    name = "name_kana"
    label = "Full name (kana)"
    description = "The reading of a Japanese name in kana, such as サトウ サクラ."
    aliases = ("furigana", "kana name", "full name kana", "kana", "name furigana")
    example = "サトウ サクラ"
    parts = ("last", "first")


class Username(PersonField):
    """A user name derived from the person's names: the part before the @ of the person's e-mail address."""

    name = "username"
    label = "Username"
    description = "A user name derived from the person's names, such as ann.lee7."
    aliases = ("user name", "user", "login", "nickname", "handle", "screen name", "user id name")
    example = "ann.lee7"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = self.names.longest_handle + (SUFFIX_DIGITS if field.common.unique else 2)

    def fill_parts(self, context: ColumnContext) -> tuple[text_parts.PoolPart, ...]:
        return handle_parts(context.group(People), handle_tails(""))

    def fill(self, context: ColumnContext) -> pa.Array:
        return text_parts.join_parts(*self.fill_parts(context))

    def distinct_count(self) -> int:
        return joining.SUFFIX_SPACE

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return unique_handles(context.group(People))


class Sex(PersonField):
    """``female`` or ``male``, as the first name says."""

    name = "sex"
    label = "Sex"
    description = "female or male, consistent with the first name."
    aliases = ("sex type", "biological sex", "gender binary")
    example = "female"
    max_length = len("female")
    localised = False
    _pool = pa.array(SEXES)

    def fill(self, context: ColumnContext) -> pa.Array:
        return dictionary_array(self._pool, context.group(People).sex)


class Gender(PersonField):
    """``Female`` or ``Male``, as the first name says; or, for a share of people, ``Non-binary``."""

    name = "gender"
    label = "Gender"
    description = "Female or Male, consistent with the first name; optionally Non-binary for a share of rows."
    aliases = ("gender identity",)
    example = "Female"
    max_length = len("Non-binary")
    _pool = pa.array(["Female", "Male", "Non-binary"])

    class Options(OptionsModel):
        nonbinary: int = Field(0, ge=0, le=100, description="Percentage of people who are non-binary.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = self.localized_list("gender", self._pool, compiler)
        self.max_length = max_text_length(self._pool)

    def fill(self, context: ColumnContext) -> pa.Array:
        people = context.group(People)
        kind = people.sex
        if self.options.nonbinary:
            kind = np.where(engine_random.chance(people.gender, self.options.nonbinary, 100), 2, kind)
        return dictionary_array(self._pool, kind)


class JobTitle(PersonField):
    """A job title; English titles match the person's department."""

    name = "job_title"
    label = "Job title"
    description = "A job title, such as Software Engineer; English titles match the department."
    aliases = (
        "job female",
        "job male",
        "job",
        "occupation",
        "profession",
        "job name",
        "position",
        "job role",
    )
    example = "Software Engineer"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._jobs = jobs_of(compiler.vocabulary)
        english = self.locale.startswith("en") or not compiler.vocabulary.has_words("job_title", self.locale)
        self._pool = self._jobs.titles if english else compiler.vocabulary.words("job_title", self.locale)
        self._english = english
        if english and not self.locale.startswith("en") and compiler.vocabulary.engine >= 2:
            compiler.warn_english(field, self.locale)
        self.max_length = compiler.vocabulary.cached(
            ("longest title", self.locale), lambda: max_text_length(self._pool)
        )

    def fill(self, context: ColumnContext) -> pa.Array:
        if self._english:
            return joining.take_values(self._pool, context.group(People).title)
        return joining.take_values(self._pool, context.below(len(self._pool)))

    def distinct_count(self) -> int | None:
        return len(self._pool) if self.alone else None

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return joining.take_values(self._pool, context.permuted(len(self._pool)))


class Department(PersonField):
    """A department, in the language of the locale where it is known."""

    name = "department"
    label = "Department"
    description = "A department of a company, such as Engineering."
    aliases = ("department name", "corporate department", "dept", "department corporate")
    example = "Engineering"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = self.localized_list(
            "local_department", jobs_of(compiler.vocabulary).departments, compiler
        )
        self.max_length = max_text_length(self._pool)

    def fill(self, context: ColumnContext) -> pa.Array:
        return dictionary_array(self._pool, context.group(People).department)

    def distinct_count(self) -> int | None:
        return len(self._pool) if self.alone else None

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return dictionary_array(self._pool, context.permuted(len(self._pool)))


class Avatar(PersonField):
    """The address of a picture drawn from the person's names."""

    name = "avatar"
    label = "Avatar"
    description = "The URL of an avatar image drawn from the person's names."
    aliases = ("avatar url", "profile picture", "profile image", "photo", "user image", "picture")
    example = "https://api.dicebear.com/9.x/initials/svg?seed=anna.lee7"

    class Options(OptionsModel):
        style: Literal["initials", "identicon", "shapes", "bottts"] = Field(
            "initials", description="Style of the image: initials, a pattern, shapes or a robot."
        )
        format: Literal["svg", "png"] = Field("svg", description="Image format.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        start = f"https://api.dicebear.com/9.x/{options.style}/{options.format}?seed="
        self.max_length = len(start) + self.names.longest_handle + SUFFIX_DIGITS
        key = ("avatar", start, self.locale)
        # A pool for each style, format and locale: a small number of them.
        self._heads = compiler.vocabulary.cached(
            key, lambda: pc.binary_join_element_wise(start, self.names.handle_prefixes, "")
        )

    def fill_parts(self, context: ColumnContext) -> tuple[text_parts.PoolPart, ...]:
        return handle_parts(context.group(People), handle_tails(""), heads=self._heads)

    def fill(self, context: ColumnContext) -> pa.Array:
        return text_parts.join_parts(*self.fill_parts(context))

    def distinct_count(self) -> int:
        return joining.SUFFIX_SPACE

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return unique_handles(context.group(People), heads=self._heads)


def handle_parts(
    people: People,
    tails: pa.StringArray,
    table: np.ndarray = HANDLE_NUMBER_BY_BITS,
    heads: pa.StringArray | None = None,
) -> tuple[text_parts.PoolPart, ...]:
    """The person's handle, as parts of a text. ``table`` says which of ``tails`` the low bits of its draw mean;
    ``heads`` stands for the heads of handles."""
    names = people.names
    head = (names.handle_prefixes if heads is None else heads, people.handle_head)
    return head, (names.last_ascii, people.last), (tails, people.handle_tail(table))


def unique_handles(people: People, ending: str = "", heads: pa.StringArray | None = None) -> pa.StringArray:
    """Return the texts of `handle_parts` with a number that no other row has. No name contains a digit, so the digits
    at the end identify the row."""
    names = people.names
    head = (names.handle_prefixes if heads is None else heads, people.handle_head)
    return text_parts.join_parts(
        head, (names.last_ascii, people.last), *joining.suffix_parts(people.suffix, ending)
    )


def _distinct_names(names: PersonNames, pool: str, sex: int | None) -> np.ndarray:
    """Places of the names of a pool that read differently, case and accents ignored."""
    folded, which = getattr(names, pool), pool.partition("_")[0]
    counts = getattr(names, f"{which}_counts")
    starts = getattr(names, f"{which}_starts")
    first, end = 0, len(folded)
    if sex is not None:
        first, end = int(starts[sex]), int(starts[sex] + counts[sex])
    seen = folded.slice(first, end - first).dictionary_encode().indices.to_numpy()
    # The first place of each text
    return np.unique(seen, return_index=True)[1].astype(np.uint64) + np.uint64(first)


def _distinct_name_pairs(
    names: PersonNames,
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """(first, last) places for women and for men, no pair of which reads like another.

    Given names on both sides count for women. If names are separated by a blank, those with a blank in
    the first part are left out; otherwise family names of unusual length are left out.
    """
    folded = names.first_folded.to_pylist()
    family = names.last_folded.to_pylist()
    women = int(names.first_counts[FEMALE])
    seen_names: set[str] = set()
    firsts: list[list[int]] = [[], []]
    for place, name in enumerate(folded):
        given_first = names.separator and not names.is_family_first
        if name not in seen_names and not (given_first and " " in name):
            seen_names.add(name)
            firsts[FEMALE if place < women else MALE].append(place)
    usual_length = None
    if not names.separator:
        lengths = [len(text) for text in family]
        usual_length = max(sorted(set(lengths)), key=lengths.count)
    pairs = []
    for sex in (FEMALE, MALE):
        start, count = int(names.last_starts[sex]), int(names.last_counts[sex])
        seen: dict[str, int] = {}
        for place in range(start, start + count):
            text = family[place]
            if (usual_length is None or len(text) == usual_length) and not (
                names.separator and names.is_family_first and " " in text
            ):
                seen.setdefault(text, place)
        pairs.append((np.array(firsts[sex], np.uint64), np.array(list(seen.values()), np.uint64)))
    return pairs[FEMALE], pairs[MALE]


_MARITAL = ("Single", "Married", "Divorced", "Widowed")
# Percentages of adults.
_STATUS_BY_PERCENT = np.repeat(np.arange(4), (34, 48, 12, 6))
_ADULT_AGE = 18
_SMALL_BLOCK = 256
_SMALL_POOL = 8192


class Title(PersonField):
    """Ms. or Mr., in the language of the locale."""

    name = "title"
    label = "Title"
    description = "A form of address, such as Ms. or Mr., consistent with the first name."
    aliases = (
        "prefix",
        "prefix nonbinary",
        "honorific",
        "salutation",
        "name prefix",
        "form of address",
        "courtesy title",
        "prefix male",
        "prefix female",
    )
    example = "Ms."

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = titles(self.locale)
        self.max_length = max_text_length(self._pool)

    def fill(self, context: ColumnContext) -> pa.Array:
        return dictionary_array(self._pool, context.group(People).sex)


class Suffix(PersonField):
    """A degree; for men also a suffix that distinguishes fathers and sons."""

    name = "suffix"
    label = "Name suffix"
    description = "A name suffix, such as PhD or, for a man, Jr."
    aliases = (
        "suffix nonbinary",
        "name suffix",
        "generational suffix",
        "post nominal",
        "suffix name",
        "suffix female",
        "suffix male",
    )
    example = "PhD"
    localised = False
    max_length = max(map(len, SUFFIXES))

    def fill(self, context: ColumnContext) -> pa.Array:
        people = context.group(People)
        count = np.where(people.sex == MALE, np.uint64(len(SUFFIXES)), np.uint64(UNISEX_SUFFIX_COUNT))
        return dictionary_array(suffixes(), ((people.suffix_bits >> _U32) * count >> _U32).view(np.int64))


class AgeOptions(OptionsModel):
    """How old people are."""

    min: int = Field(DEFAULT_AGES[0], ge=0, le=limits.MAX_AGE, description="Minimum age in years.")
    max: int = Field(DEFAULT_AGES[1], ge=0, le=limits.MAX_AGE, description="Maximum age in years.")


class Age(PersonField):
    """Whole years at the request's now, of the row's date of birth."""

    name = "age"
    label = "Age"
    description = "Age in years, consistent with the date of birth."
    aliases = ("years old", "age in years")
    example = 34
    localised = False
    dtype = pa.int64()

    class Options(AgeOptions):
        pass

    options: Options

    def fill(self, context: ColumnContext) -> pa.Array:
        return pa.array(context.group(People).age)


class DateOfBirth(PersonField):
    """A day, with equal probability for all days on which people of the requested ages were born."""

    name = "date_of_birth"
    label = "Date of birth"
    description = "Date of birth, consistent with the age."
    aliases = ("passport dob", "birth date", "birthday", "dob", "born", "birth day")
    example = "1991-07-23"
    localised = False

    class Options(AgeOptions):
        format: str | None = Field(
            None,
            min_length=1,
            max_length=limits.MAX_AFFIX_CHARS,
            description="Format, as YYYY-MM-DD tokens or strftime's %Y-%m-%d. Default: ISO 8601.",
            examples=["MM/DD/YYYY", "%d.%m.%Y"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.date32() if options.format is None else pa.string()
        if options.format is None:
            return
        try:
            has_time = dates.has_time(options.format)
        except dates.DateFormatError as error:
            compiler.fault(field, "options.format", "bad_format", str(error))
            return
        if has_time:
            text = "A date of birth has no time of day."
            compiler.fault(
                field, "options.format", "bad_format", text, "Use a format such as YYYY-MM-DD or MM/DD/YYYY."
            )
            return
        self._formatter = dates.create_formatter(options.format)
        self.max_length = dates.max_length(options.format)

    def fill(self, context: ColumnContext) -> pa.Array:
        people = context.group(People)
        days = people.birth
        column = pa.Array.from_buffers(pa.date32(), days.size, [None, pa.py_buffer(days.astype(np.int32))])
        if self.options.format is None:
            return column
        born = people.born
        assert born is not None  # this field is in the group
        if context.n < _SMALL_BLOCK and born.size > _SMALL_POOL:
            return self._formatter(column)
        return dictionary_array(_days(born.low, born.size, self.options.format), days - born.low)


@lru_cache(maxsize=16)
def _days(low: int, size: int, source: str) -> pa.Array:
    """The texts of ``size`` days from ``low`` on."""
    return dates.format_days(low, low + size - 1, dates.parse(source))


class MaritalStatus(PersonField):
    """One of four statuses; people under 18 are single."""

    name = "marital_status"
    label = "Marital status"
    description = "Single, Married, Divorced or Widowed, consistent with the age."
    aliases = ("civil status", "family status", "relationship status")
    example = "Married"
    _pool = pa.array(_MARITAL)

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = self.localized_list("marital_status", self._pool, compiler)
        self.max_length = max_text_length(self._pool)

    def fill(self, context: ColumnContext) -> pa.Array:
        people = context.group(People)
        status = _STATUS_BY_PERCENT[(people.marital_bits >> _U32) * np.uint64(100) >> _U32]
        return dictionary_array(self._pool, np.where(people.age < _ADULT_AGE, 0, status))


_BLOOD = {"O+": 38, "A+": 34, "B+": 9, "O-": 7, "A-": 6, "AB+": 3, "B-": 2, "AB-": 1}
"""Of a hundred people in the United States (American Red Cross)."""


class BloodType(PoolType):
    """One of the eight groups of ABO and Rh, as common as in the United States."""

    name = "blood_type"
    label = "Blood type"
    category = "person"
    description = "A blood type, such as O+."
    aliases = ("blood group", "abo", "bloodtype", "rh factor")
    example = "O+"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.set_pool(
            _blood_groups(),
            None if field.common.unique else engine_random.AliasSampler(list(_BLOOD.values())),
        )

    @classmethod
    def capacity(cls) -> int:
        return len(_BLOOD)


@cache
def _blood_groups() -> pa.StringArray:
    return pa.array(list(_BLOOD))


_MIDDLE = {FEMALE: 1630, MALE: 1765}
"""Mean height of adults in millimetres."""
_DEVIATION = {FEMALE: 66, MALE: 71}
_SUM_DEVIATION = 37_837
"""Standard deviation of the sum of four numbers of 16 bits, whose mean is 131,070."""
# Hundredths of an adult's height by whole years of age, and tenths of an adult's body mass index.
_GROWTH = np.array([37, 45, 51, 56, 60, 64, 68, 71, 75, 78, 81, 84, 87, 91, 94, 97, 98, 99, 100], np.int64)
_MASS = np.array([68, 68, 66, 64, 62, 62, 62, 63, 64, 66, 68, 71, 74, 77, 81, 85, 89, 93, 100], np.int64)
_MIDDLE_INDEX, _INDEX_DEVIATION, _LEAST_INDEX = 252, 38, 165
_HEIGHT_SALT, _WEIGHT_SALT = 8, 9
_LOW_16 = np.uint64(0xFFFF)


def _normal(bits: np.ndarray) -> np.ndarray:
    """``int64[n]``: the sum of the four parts of 64 random bits less its mean: nearly normal, within 3.5 deviations."""
    total = bits & _LOW_16
    for shift in (16, 32, 48):
        total += bits >> np.uint64(shift) & _LOW_16
    return total.view(np.int64) - 131_070


def _share_of_age(people: People, table: np.ndarray) -> np.ndarray | None:
    """``int64[n]``: shares for the ages, where the group has any."""
    return None if people.born is None else table.take(np.minimum(people.age, table.size - 1))


def _millimetres(people: People) -> np.ndarray:
    """``int64[n]``: height of each person, by sex and, where the group knows it, age."""
    middle = np.array([_MIDDLE[FEMALE], _MIDDLE[MALE]]).take(people.sex)
    deviation = np.array([_DEVIATION[FEMALE], _DEVIATION[MALE]]).take(people.sex)
    height = middle + _normal(people.bits(_HEIGHT_SALT)) * deviation // _SUM_DEVIATION
    share = _share_of_age(people, _GROWTH)
    return height if share is None else height * share // 100


def _grams(people: People) -> np.ndarray:
    """``int64[n]``: weight of each person, by height and a body mass index."""
    index = _MIDDLE_INDEX + _normal(people.bits(_WEIGHT_SALT)) * _INDEX_DEVIATION // _SUM_DEVIATION
    index = np.maximum(index, _LEAST_INDEX)
    share = _share_of_age(people, _MASS)
    if share is not None:
        index = index * share // 100
    height = _millimetres(people)
    return index * height * height // 10_000


class _Body(PersonField):
    localised = False

    def unique_hint(self) -> str:
        return "Several people have the same value: make the username or the e-mail unique."


class Height(_Body):
    """Body height: normal around the mean of adult women or men; smaller for children if the group has an age."""

    name = "height"
    label = "Height"
    description = "Body height, consistent with sex and age."
    aliases = ("body height", "stature", "height cm", "person height", "height in cm")
    example = 172

    class Options(OptionsModel):
        unit: Literal["cm", "m", "in", "ft"] = Field(
            "cm", description="Centimetres, metres with two decimals, inches, or feet and inches as 5'8\"."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = {"m": pa.decimal128(38, 2), "ft": pa.string()}.get(options.unit, pa.int64())
        self.max_length = len("5'11\"") if options.unit == "ft" else None

    def fill(self, context: ColumnContext) -> pa.Array:
        height = _millimetres(context.group(People))
        if self.options.unit in ("cm", "m"):
            centimetres = (height + 5) // 10
            return pa.array(centimetres) if self.options.unit == "cm" else decimal_array(centimetres, 2)
        inches = (height * 10 + 127) // 254
        return pa.array(inches) if self.options.unit == "in" else dictionary_array(_feet(), inches)

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return None if self.options.unit == "ft" else (0, 300)


@cache
def _feet() -> pa.StringArray:
    return pa.array([f"{inches // 12}'{inches % 12}\"" for inches in range(120)])


class Weight(_Body):
    """Body weight from the height and a body mass index, which is lower for children if the group has an age."""

    name = "weight"
    label = "Weight"
    description = "Body weight, consistent with height, sex and age."
    aliases = ("body weight", "body mass", "weight kg", "person weight", "weight in kg")
    example = 74.5
    dtype = pa.decimal128(38, 1)

    class Options(OptionsModel):
        unit: Literal["kg", "lb"] = Field("kg", description="Kilograms or pounds, with one decimal.")

    options: Options

    def fill(self, context: ColumnContext) -> pa.Array:
        grams = _grams(context.group(People))
        if self.options.unit == "lb":
            return decimal_array((grams * 100_000 + 2_267_962) // 4_535_924, 1)
        return decimal_array((grams + 50) // 100, 1)

    def bounds(self, rows: int) -> tuple[int, int]:
        return 0, 10_000


_SIZES = ("XS", "S", "M", "L", "XL", "2XL", "3XL")
_SIZE_LIMITS = np.array([52_000, 62_000, 74_000, 87_000, 101_000, 117_000])
"""Maximum weight of each size in grams."""


class ShirtSize(_Body):
    """A shirt size, from the person's weight."""

    name = "shirt_size"
    label = "Shirt size"
    description = "A clothing size from XS to 3XL, consistent with the weight."
    aliases = ("t shirt size", "tshirt size", "clothing size", "shirt", "apparel size", "garment size")
    example = "M"
    max_length = 3

    def fill(self, context: ColumnContext) -> pa.Array:
        return dictionary_array(_sizes(), np.searchsorted(_SIZE_LIMITS, _grams(context.group(People))))


@cache
def _sizes() -> pa.StringArray:
    return pa.array(_SIZES)

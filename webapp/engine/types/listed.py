"""Field types that are a list or a pattern: a line of ``listed.txt``, or of `CODES` where they have check digits.

A line becomes a class, so that the catalogue, the forms and the tests treat it as any other type. Patterns are read
when a column is compiled, not when the module is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from math import prod
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from webapp.engine import text_parts
from webapp.engine.types import codes, joining, values
from webapp.engine.types.base import FieldType, IndexedType, OptionsModel, max_text_length
from webapp.engine.types.codes import DIGITS, UPPER, Check, Code, CodePart, CodeType, Gap, Pick, Run

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_GROUP = re.compile(r"\[\[(.*?)\]\]")
_NUMBERS = re.compile(r"(-?\d+)-(-?\d+)")
_LETTERS = {"A-Z": ascii_uppercase, "a-z": ascii_lowercase}
_MAX_SIZE = 1 << 62


@dataclass(frozen=True)
class ListedType:
    """A type of ``listed.txt``."""

    name: str
    category: str
    label: str
    description: str
    aliases: tuple[str, ...]
    pattern: str


@cache
def load_listed_types() -> tuple[ListedType, ...]:
    """The types of ``listed.txt``, in their order."""
    text = files(__package__).joinpath("listed.txt").read_text("utf-8").splitlines()
    content = [line for line in text if line and not line.startswith("# ") and not line.startswith("#  ")]
    types = []
    for head, pattern in zip(content[::2], content[1::2], strict=True):
        name, category, label, description, aliases = (part.strip() for part in head.split(" | "))
        others = tuple(alias.strip() for alias in aliases.split(","))
        types.append(ListedType(name, category, label, description, others, pattern))
    return tuple(types)


@dataclass(frozen=True)
class Pattern:
    """The texts of each group, with the fixed text before them; the last group also with the text after it."""

    pools: tuple[pa.StringArray, ...]
    size: int
    max_length: int
    is_distinct: bool
    """Whether no two values read the same."""


@lru_cache(maxsize=512)
def parse_pattern(pattern: str) -> Pattern:
    """Read a pattern of ``listed.txt``."""
    parts = _GROUP.split(pattern)
    fixed, groups = parts[::2], [_texts(group) for group in parts[1::2]]
    pools = []
    for place, texts in enumerate(groups):
        end = fixed[-1] if place == len(groups) - 1 else ""
        pools.append(pa.array([f"{fixed[place]}{text}{end}" for text in texts], pa.string()))
    size, distinct = measure_pattern(pattern)
    return Pattern(tuple(pools), size, sum(map(max_text_length, pools)), distinct)


@lru_cache(maxsize=512)
def measure_pattern(pattern: str) -> tuple[int, bool]:
    """Return how many values a pattern has, and whether all differ, without generating them: the catalogue needs this
    for all types."""
    parts = _GROUP.split(pattern)
    fixed, groups = parts[::2], [_parse_group(group) for group in parts[1::2]]
    size = prod(group.size for group in groups)
    # A group of texts of several lengths ends where the fixed text behind it begins, which no text of it may have.
    is_ambiguous = any(
        group.has_several_lengths and (not fixed[place + 1] or fixed[place + 1][0] in group.characters)
        for place, group in enumerate(groups[:-1])
    )
    return size, not any(group.has_duplicates for group in groups) and not is_ambiguous and size < _MAX_SIZE


@dataclass(frozen=True)
class _Group:
    """A group of a pattern: how many texts it has, the one in the middle, and whether two of them read the same."""

    size: int
    middle: str
    has_duplicates: bool
    has_several_lengths: bool
    characters: frozenset[str]


@lru_cache(maxsize=512)
def _parse_group(group: str) -> _Group:
    texts = _texts(group)
    numbers = group == "x4" or _NUMBERS.fullmatch(group)  # they never read the same
    alike = not numbers and len({values.fold_text(text.upper()) for text in texts}) < len(texts)
    lengths = {len(text) for text in texts}
    return _Group(len(texts), texts[len(texts) // 2], alike, len(lengths) > 1, frozenset("".join(texts)))


def _texts(group: str) -> list[str]:
    if group in _LETTERS:
        return list(_LETTERS[group])
    if group == "x4":
        return [f"{number:04x}" for number in range(1 << 16)]
    numbers = _NUMBERS.fullmatch(group)
    if numbers is not None:
        first, last = numbers.groups()
        width = len(first) if first.startswith("0") and len(first) > 1 else 0
        return [f"{number:0{width}d}" for number in range(int(first), int(last) + 1)]
    return group.split("|")


class PatternType(IndexedType):
    """The values of a pattern, each as likely as any other."""

    dtype = pa.string()
    line: ClassVar[ListedType]

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pattern = parse_pattern(self.line.pattern)
        self.size = self._pattern.size
        self.max_length = self._pattern.max_length

    @classmethod
    def capacity(cls) -> int | None:
        size, distinct = measure_pattern(cls.line.pattern)
        return size if distinct else None

    def distinct_count(self) -> int | None:
        return self._pattern.size if self._pattern.is_distinct else None

    def fill(self, context: ColumnContext) -> pa.Array:
        pools = self._pattern.pools
        if len(pools) == 1:
            return joining.take_values(pools[0], context.below(len(pools[0])))
        parts = [(pool, context.below(len(pool), salt)) for salt, pool in enumerate(pools)]
        return text_parts.join_parts(*parts)

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        parts: list[text_parts.PoolPart] = []
        for pool in reversed(self._pattern.pools):
            index, rest = np.divmod(index, np.uint64(len(pool)))
            parts.insert(0, (pool, rest))
        return text_parts.join_parts(*parts) if len(parts) > 1 else joining.take_values(*parts[0])


class _Example:
    """The example of a listed type, created on access."""

    def __get__(self, owner: object, kind: type[PatternType]) -> str:
        # The value in the middle of each group
        parts = _GROUP.split(kind.line.pattern)
        return "".join(_parse_group(part).middle if place % 2 else part for place, part in enumerate(parts))


def _pattern_type(line: ListedType) -> type[FieldType]:
    members = {
        "__doc__": line.description,
        "__module__": __name__,
        "line": line,
        "name": line.name,
        "label": line.label,
        "category": line.category,
        "description": line.description,
        "aliases": line.aliases,
        "example": _Example(),
    }
    return type(line.name.title().replace("_", ""), (PatternType,), members)


# --- Numbers with check digits -------------------------------------------------------------------------------


def _brazilian(weights: tuple[int, ...]) -> Check:
    return codes.weighted(weights, 11, lambda rest: "0" if rest < 2 else str(11 - rest))


def _expanded_luhn(letters: int, width: int) -> Check:
    """ISO 6166: the Luhn check of ``width`` characters of which the first ``letters`` are letters, which count as the
    two digits of their worth."""
    digits = width + letters

    def value(position: int, character: str) -> int:
        if position >= width:
            return 0
        text = str(codes.character_value(character)) if position < letters else character
        first = 2 * position if position < letters else position + letters
        total = 0
        for shift, digit in enumerate(text):
            doubled = (digits - 1 - (first + shift)) % 2 == 0
            number = int(digit) * (2 if doubled else 1)
            total += number // 10 + number % 10
        return total

    return Check(10, value, tuple(str(-rest % 10) for rest in range(10)))


def _cusip() -> Check:
    def value(position: int, character: str) -> int:
        if position >= 8:
            return 0
        number = codes.character_value(character) * (2 if position % 2 else 1)
        return number // 10 + number % 10

    return Check(10, value, tuple(str(-rest % 10) for rest in range(10)))


def _npi() -> Check:
    """Luhn with 80840 before the number, which adds 24."""
    luhn = codes.luhn(9)
    return Check(10, luhn.value, tuple(str((-rest - 24) % 10) for rest in range(10)))


def _lei() -> tuple[CodePart, ...]:
    """ISO 17442: four digits, two zeros, twelve characters, and ISO 7064 MOD 97-10."""
    kinds = "nnnnnnaannnnnnnnaa"
    weights, power = [0] * len(kinds), 100
    for place in range(len(kinds) - 1, -1, -1):
        weights[place] = power % 97
        power *= 100 if kinds[place] == "a" else 10
    check = codes.weighted(weights, 97, lambda rest: f"{98 - rest:02d}")
    return Run(DIGITS, 4), "00", Run(UPPER, 2), Run(DIGITS, 8), Run(UPPER, 2), check


_ISO_CODES = ("AU", "BE", "CA", "CH", "DE", "ES", "FR", "GB", "IE", "IT", "JP", "NL", "SE", "US")
_ITIN_GROUPS = tuple(str(number) for number in (*range(70, 89), *range(90, 93), *range(94, 100)))


@dataclass(frozen=True)
class Coded:
    """A type with check digits."""

    name: str
    category: str
    label: str
    description: str
    aliases: tuple[str, ...]
    example: str
    parts: Callable[[], tuple[CodePart, ...]]


CODES = (
    Coded("cnpj", "government", "CNPJ", "A Brazilian company number (CNPJ) with valid check digits.",
          ("cadastro nacional da pessoa juridica", "brazilian company number"), "62.487.130/0001-92",
          lambda: (Run(DIGITS, 2), Gap("."), Run(DIGITS, 3), Gap("."), Run(DIGITS, 3), Gap("/"), "0001", Gap("-"),
                   _brazilian((5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)),
                   _brazilian((6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)))),
    Coded("rg_number", "government", "RG",
    "A Brazilian identity card number (RG of São Paulo) with a valid check digit.",
          ("rg", "registro geral", "brazilian identity card"), "24.678.131-4",
          lambda: (Run(DIGITS, 2), Gap("."), Run(DIGITS, 3), Gap("."), Run(DIGITS, 3), Gap("-"),
                   codes.weighted((2, 3, 4, 5, 6, 7, 8, 9), 11, "0X987654321"))),
    Coded("isin", "finance", "ISIN", "An International Securities Identification Number with a valid check digit.",
          ("isin code", "security isin", "isin number"), "US0378331005",
          lambda: (Pick(_ISO_CODES), Run(DIGITS, 9), _expanded_luhn(2, 11))),
    Coded("cusip", "finance", "CUSIP", "A CUSIP number of a security with a valid check digit.",
          ("cusip number", "cusip code"), "037833100", lambda: (Run(DIGITS, 3), Run(DIGITS, 5), _cusip())),
    Coded("lei", "finance", "LEI", "A Legal Entity Identifier with valid check digits.",
          ("legal entity identifier", "lei code"), "529900W1824796KQ63", _lei),
    Coded("imei", "identity", "IMEI", "An International Mobile Equipment Identity with a valid check digit.",
          ("phone imei", "imei number", "mobile equipment identity"), "490154203237518",
          lambda: (Pick(("01", "35", "86", "99")), Run(DIGITS, 12), codes.luhn(14))),
    Coded("itin", "government", "ITIN", "A taxpayer number of the United States for people without an SSN.",
          ("individual taxpayer identification number", "itin number"), "912-78-4830",
          lambda: ("9", Run(DIGITS, 2), Gap("-"), Pick(_ITIN_GROUPS), Gap("-"), Run(DIGITS, 4))),
    Coded("invalid_ssn", "government", "Invalid SSN", "A number like an SSN that is never issued.",
          ("fake ssn", "unissued ssn"), "666-45-6789",
          lambda: (Pick(("000", "666", "900", "950")), Gap("-"), Run(DIGITS, 2), Gap("-"), Run(DIGITS, 4))),
    Coded("isbn_10", "company", "ISBN-10", "A book number (ISBN-10) with a valid check digit.",
          ("isbn10", "isbn ten", "commerce isbn 10"), "0306406152",
          lambda: (Run("01"), Run(DIGITS, 8), codes.weighted((10, 9, 8, 7, 6, 5, 4, 3, 2), 11, "0X987654321"))),
    Coded("sbn9", "company", "SBN", "A Standard Book Number of nine characters with a valid check digit.",
          ("sbn", "standard book number"), "306406152",
          lambda: (Run(DIGITS, 8), codes.weighted((9, 8, 7, 6, 5, 4, 3, 2), 11, "0X987654321"))),
    Coded("npi", "misc", "NPI", "A National Provider Identifier of the United States with a valid check digit.",
          ("hospital npi", "national provider identifier", "provider id"), "1487613924",
          lambda: (Run("12"), Run(DIGITS, 8), _npi())),
    Coded("dea_number", "misc", "DEA Number", "A prescriber number of the United States with a valid check digit.",
          ("dea", "prescriber number"), "BS1234563",
          lambda: (Run("ABFGM"), Run(UPPER), Run(DIGITS, 6),
                   codes.weighted((0, 0, 1, 2, 1, 2, 1, 2), 10, DIGITS))),
    Coded("customer_number", "finance", "Customer Number", "A customer number with a Luhn check digit.",
          ("client number", "member number"), "10483726455",
          lambda: (Run(DIGITS[1:]), Run(DIGITS, 9), codes.luhn(10))),
)  # fmt: skip


class CodedType(CodeType):
    """A number of `CODES`."""

    entry: ClassVar[Coded]

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(_compiled_code(self.entry.name))

    @classmethod
    def capacity(cls) -> int:
        return _compiled_code(cls.entry.name).capacity


@cache
def _compiled_code(name: str) -> Code:
    return Code(*next(entry for entry in CODES if entry.name == name).parts())


def _coded_type(entry: Coded) -> type[FieldType]:
    members = {
        "__doc__": entry.description,
        "__module__": __name__,
        "entry": entry,
        "name": entry.name,
        "label": entry.label,
        "category": entry.category,
        "description": entry.description,
        "aliases": entry.aliases,
        "example": entry.example,
    }
    return type(entry.name.title().replace("_", ""), (CodedType,), members)


TYPES: tuple[type[FieldType], ...] = (*map(_pattern_type, load_listed_types()), *map(_coded_type, CODES))
"""The types of this module, in the order of their lines."""

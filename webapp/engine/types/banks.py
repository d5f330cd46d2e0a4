"""Bank accounts: the group ``bank``, and the IBAN structures of each country with national check digits.

The fields of a group show name, IBAN and BIC of the same bank. An IBAN or a BIC without a group is independent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.types import codes, joining, values
from webapp.engine.types.base import FieldType, GroupKind, OptionsModel, dictionary_array, max_text_length
from webapp.engine.types.codes import DIGITS, UPPER, Check, Code, CodePart, Gap, Pick, RowInput, Run, width_of
from webapp.engine.types.countries import country_of_locale, validate_countries
from webapp.engine.types.geography import Range, geography_of
from webapp.engine.types.joining import LazyProperty
from webapp.engine.types.papers import find_place_group, groups_of_kind
from webapp.engine.types.person import check_locales
from webapp.engine.types.place import Places, country_of_group
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.random import RandomStream
    from webapp.engine.spec import FieldSpec


STRUCTURE_PART = re.compile(r"(\d+)!([nac])")
"""A part of the structure of an IBAN: its length, and n (digits), a (letters) or c (both)."""

DEFAULT_COUNTRIES = ("DE", "ES", "FR", "GB", "IT", "NL")
"""Countries of accounts if neither a country nor a locale is set."""

_OTHER_BIC_COUNTRIES = ("AU", "CA", "CN", "HK", "IN", "JP", "KR", "MX", "NZ", "SG", "US", "ZA")


def iban_countries(vocabulary: Vocabulary) -> tuple[str, ...]:
    """ISO codes of the countries that have IBANs, in alphabetical order."""
    return vocabulary.cached("iban countries", lambda: tuple(vocabulary.table("iban")["country"].to_pylist()))


def all_countries(vocabulary: Vocabulary) -> tuple[str, ...]:
    """ISO codes of all countries, in alphabetical order."""
    return vocabulary.cached(
        "all countries", lambda: tuple(vocabulary.table("countries")["alpha2"].to_pylist())
    )


def bic_countries(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the ISO codes of the countries with bank identifiers: those with IBANs, and some large ones."""
    return tuple(sorted({*iban_countries(vocabulary), *_OTHER_BIC_COUNTRIES}))


_PAIRS = np.array([[ord(first), ord(second)] for first in UPPER for second in UPPER], np.uint8)
BANK_LETTERS: tuple[CodePart, ...] = (RowInput("head", _PAIRS), RowInput("tail", _PAIRS))
"""The four letters of the row's bank, which begin its BIC and, in many countries, the account in its IBANs."""


def iban_code(vocabulary: Vocabulary, country: str, formatted: bool, of_bank: bool = False) -> Code:
    """The IBANs of one country, in groups of four where ``formatted``, with the letters of the row's bank if
    ``of_bank``. Positions that the registry opens to digits and letters get digits, as banks do."""
    return vocabulary.cached(
        ("iban", country, formatted, of_bank), lambda: _iban(vocabulary, country, formatted, of_bank)
    )


def _iban(vocabulary: Vocabulary, country: str, formatted: bool, of_bank: bool = False) -> Code:
    table = vocabulary.table("iban")
    structure = dict(zip(table["country"].to_pylist(), table["structure"].to_pylist(), strict=True))[country]
    kinds = "".join(
        ("a" if kind == "a" else "n") * int(count) for count, kind in STRUCTURE_PART.findall(structure)
    )
    parts: list[CodePart] = [country, codes.iban(kinds)]
    # The fixed parts of the country's numbers, by position in the IBAN
    fixed_parts = _schemes().get(country, {})
    if country == "BE":
        fixed_parts = {4: Pick(tuple(vocabulary.words("belgian_bank").to_pylist())), **fixed_parts}
    if of_bank and kinds.startswith("aaaa"):
        fixed_parts = {4: BANK_LETTERS[0], 6: BANK_LETTERS[1], **fixed_parts}
    at = 4
    while at < len(kinds) + 4:
        part = fixed_parts.get(at)
        if part is None:
            end = min((place for place in fixed_parts if place > at), default=len(kinds) + 4)
            run = len(kinds[at - 4 : end - 4]) - len(kinds[at - 4 : end - 4].lstrip(kinds[at - 4]))
            part = Run(UPPER if kinds[at - 4] == "a" else DIGITS, run)
        parts.append(part)
        at += width_of(part)
    return Code(*parts, group_size=4 if formatted else 0)


def _weights_from(first: int, *weights: int) -> list[int]:
    return [0] * first + list(weights)


def _spanish(rest: int) -> str:
    # 11 less the remainder; 10 is printed as 1 and 11 as 0.
    return str(rest if rest < 2 else 11 - rest)


def _icelandic_days() -> Pick:
    days = [f"{day:02d}{month:02d}" for month in range(1, 13) for day in range(1, 29)]
    return Pick(tuple(f"{day}{year:02d}" for year in range(30, 100) for day in days))


_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def _italian(position: int, character: str) -> int:
    # The letter before bank, branch and account: odd characters by a table, even ones as they are.
    if position < 5:
        return 0
    number = int(character) if character.isdigit() else ord(character) - 65
    return _ODD[number] if position % 2 else number


_POWERS = [pow(2, place, 11) for place in range(10)]
_CZECH = (6, 3, 7, 9, 10, 5, 8, 4, 2)
_PAYMENT = (9, 7, 3, 1)


@cache
def _schemes() -> dict[str, dict[int, CodePart]]:
    return {
        "AL": {11: codes.weighted(_weights_from(4, *_PAYMENT, *_PAYMENT[:3]), 10, codes.complement(10))},
        "BE": {14: codes.remainder_97(10, 4)},
        **{country: {13: codes.weighted(_weights_from(8, *_CZECH[4:]), 11, codes.complement(11)),
                     23: codes.weighted(_weights_from(14, *_CZECH), 11, codes.complement(11))}
           for country in ("CZ", "SK")},
        "EE": {19: codes.weighted(_weights_from(6, 7, *(1, 3, 7) * 4), 10, codes.complement(10))},
        "ES": {12: codes.weighted(_weights_from(4, *_POWERS[2:]), 11, _spanish),
               13: codes.weighted(_weights_from(14, *_POWERS), 11, _spanish)},
        "FI": {17: codes.luhn(13, 4)},
        "HU": {11: codes.weighted(_weights_from(4, *_PAYMENT, *_PAYMENT[:3]), 10, codes.complement(10)),
               27: codes.weighted(_weights_from(12, *(_PAYMENT * 4)[:15]), 10, codes.complement(10))},
        "IS": {16: _icelandic_days(), 25: "9",
               24: codes.weighted(_weights_from(16, 3, 2, 7, 6, 5, 4, 3, 2), 11, codes.complement(11))},
        **{country: {4: Check(26, _italian, tuple(UPPER))} for country in ("IT", "SM")},
        "MU": {27: "MUR"},
        # Numbers with 0000 or 00 in front of the account have another check.
        "NO": {4: Run(DIGITS[1:]), 8: Pick(tuple(f"{pair:02d}" for pair in range(1, 100))),
               14: codes.weighted(_weights_from(4, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11, codes.complement(11))},
        "PL": {11: codes.weighted(_weights_from(4, 3, 9, 7, 1, 3, 9, 7), 10, codes.complement(10))},
        "SC": {28: "SCR"},
        # The key of a French RIB: bank, branch, account and key together are a multiple of 97.
        **{country: {width + 2: codes.mod_97_10(width - 2, 4, 97)} for country, width in
           {"BI": 23, "DJ": 23, "FR": 23, "MC": 23, "MR": 23, "TN": 20}.items()},
        # ISO 7064 MOD 97-10 over the whole account number.
        **{country: {width + 2: codes.mod_97_10(width - 2, 4)} for country, width in
           {"BA": 16, "ME": 18, "MK": 15, "PT": 21, "RS": 18, "SI": 15, "ST": 21, "TL": 19, "XK": 16}.items()},
    }  # fmt: skip


_ROUTING = tuple(f"{number:02d}" for number in (*range(1, 13), *range(21, 33), *range(61, 73), 80))
"""First two digits of a US routing number: Federal Reserve districts, thrifts, electronic and traveller's cheques."""


ROUTING_HEADS = len(_ROUTING)


def routing_number() -> tuple[CodePart, ...]:
    """A US routing number (American Bankers Association): weights 3, 7 and 1 in turn make a multiple of 10."""
    return Pick(_ROUTING), Run(DIGITS, 6), codes.weighted((3, 7, 1, 3, 7, 1, 3, 7), 10, codes.complement(10))


def _mask(mask: str) -> tuple[CodePart, ...]:
    kinds = {"#": DIGITS, "@": UPPER}
    pieces = re.findall(r"#+|@+|[^#@]+", mask)
    return tuple(Run(kinds[piece[0]], len(piece)) if piece[0] in kinds else Gap(piece) for piece in pieces)


_INDIAN_BANKS = (
    "BARB",
    "CNRB",
    "HDFC",
    "ICIC",
    "IDIB",
    "IOBA",
    "KKBK",
    "PUNB",
    "SBIN",
    "UBIN",
    "UTIB",
    "YESB",
)
_DOMESTIC: dict[str, tuple[str, tuple[CodePart, ...]]] = {
    "AR": ("CBU", (*_mask("#######"), codes.weighted((7, 1, 3, 9, 7, 1, 3), 10, codes.complement(10)), *_mask("#" * 13),
                   codes.weighted((0,) * 8 + (3, 9, 7, 1, 3, 9, 7, 1, 3, 9, 7, 1, 3), 10, codes.complement(10)))),
    "AU": ("BSB and account number", _mask("###-### #########")),
    "CA": ("transit, institution and account number", (Run(DIGITS, 5), Gap("-"), Pick(
        ("001", "002", "003", "004", "006", "010", "016", "030", "039", "815")), Gap(" "), Run(DIGITS, 7))),
    "CN": ("account number", ("62", Run(DIGITS, 16), codes.luhn(18))),
    "DZ": ("RIB", _mask("### ##### ########## ##")),
    "HK": ("bank code and account number", _mask("###-######-###")),
    "IN": ("IFSC and account number", (Pick(_INDIAN_BANKS), "0", *_mask("###### ############"))),
    "JP": ("bank, branch and account number", _mask("####-###-#######")),
    "KR": ("account number", _mask("###-######-##-###")),
    "MX": ("CLABE", (Run(DIGITS, 17), codes.weighted((3, 7, 1) * 6, 10, codes.complement(10)))),
    "NG": ("NUBAN", _mask("##########")),
    "NZ": ("bank account number", (Pick(("01", "02", "03", "06", "11", "12", "38")), *_mask("-####-#######-"), "00")),
    "TH": ("account number", _mask("###-#-#####-#")),
    "US": ("routing number and account number", (*routing_number(), Gap(" "), Run(DIGITS[1:]), Run(DIGITS, 9))),
    "ZA": ("branch code and account number", _mask("###### ##########")),
}  # fmt: skip
"""Country without IBANs: (what identifies an account there, its parts)."""
_OTHER_ACCOUNT = ("account number", _mask("############"))


def domestic_account_name(country: str) -> str:
    """What identifies an account in a country without IBANs."""
    return _DOMESTIC.get(country, _OTHER_ACCOUNT)[0]


def account_code(vocabulary: Vocabulary, country: str, formatted: bool, of_bank: bool = False) -> Code:
    """Return the IBANs of a country, or its domestic account numbers if it has no IBANs."""
    if country in iban_countries(vocabulary):
        return iban_code(vocabulary, country, formatted, of_bank)
    parts = _DOMESTIC.get(country, _OTHER_ACCOUNT)[1]
    return vocabulary.cached(("domestic account", country), lambda: Code(*parts))


_NAME_SALT, _LETTERS_SALT = 1, 2
_U32 = np.uint64(32)
_COUNTRY_OPTIONS = ("countryCode", "country")
_COUNTRY_POSITION = {"iban": slice(0, 2), "bic": slice(4, 6)}
"""The position of the country in a code."""


@dataclass(frozen=True)
class BankNames:
    """Banks by country: ``ranges`` are the ranges of ``countries`` in ``names``."""

    countries: tuple[str, ...]
    names: pa.StringArray
    ranges: Range


def names_of(vocabulary: Vocabulary) -> BankNames:
    """Return the banks of a vocabulary, created once."""
    return vocabulary.cached(("banks",), lambda: _names(vocabulary))


def _names(vocabulary: Vocabulary) -> BankNames:
    table = vocabulary.table("bank")
    encoded = table["country"].combine_chunks().dictionary_encode()
    counts = np.bincount(encoded.indices.to_numpy()).astype(np.uint64)
    return BankNames(
        tuple(encoded.dictionary.to_pylist()),
        table["name"].chunk(0),
        Range(np.cumsum(counts) - counts, counts),
    )


@dataclass(frozen=True)
class BankChoices:
    """What overrides leave: rows of the kind's countries, and a row of the banks if that is fixed."""

    countries: np.ndarray
    bank: int | None = None


class Banks:
    """The banks of a block's rows."""

    def __init__(self, draws: RandomStream, kind: BankKind, candidates: BankChoices) -> None:
        self._draws, self._kind, self._candidates = draws, kind, candidates

    @LazyProperty
    def country(self) -> np.ndarray:
        """``int64[n]``: rows of the kind's countries."""
        if self._kind.by_name is not None:
            return self._kind.country_of[self.name]
        rows = self._candidates.countries
        return rows[self._draws.below(rows.size).view(np.int64)]

    @LazyProperty
    def name(self) -> np.ndarray:
        """``int64[n]``: rows of the banks."""
        if self._kind.by_name is not None:
            return self._kind.by_name[self._draws.permuted(self._kind.by_name.size).view(np.int64)]
        if self._candidates.bank is not None:
            return np.full(self._draws.n, self._candidates.bank)
        return self.named_in(self.country)

    @LazyProperty
    def letters(self) -> dict[str, np.ndarray]:
        """What `BANK_LETTERS` need: ``int64[n]`` for the first two and the last two."""
        head, tail = np.divmod(self._draws.below(len(_PAIRS) ** 2, _LETTERS_SALT), np.uint64(len(_PAIRS)))
        return {"head": head.view(np.int64), "tail": tail.view(np.int64)}

    def named_in(self, country: np.ndarray) -> np.ndarray:
        """``int64[n]``: rows of the banks, each one of a country (a row of the kind's); -1 where none is known."""
        owner = self._kind.of_names[country]
        rows = self._kind.names.ranges.pick(owner, self._draws.bits(_NAME_SALT) >> _U32).view(np.int64)
        return np.where(owner < 0, -1, rows)


class BankKind(GroupKind):
    """One bank a row, in one of the countries that all fields of the group can have."""

    kind = "bank"

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        check_locales(fields, compiler)
        self.names = names_of(compiler.vocabulary)
        self.placed: tuple[str, str] | None = None
        """The group of places whose countries the banks have; None where the bank decides its country."""
        self.countries = self._common_countries(fields, compiler)
        if compiler.vocabulary.engine >= 2 and not any(
            _requested_countries(field, compiler) for field in fields
        ):
            # The countries of the group's places, if there are any
            place = find_place_group(fields[0], compiler)
            if place is not None:
                own = [field for field in compiler.group_members(*place) if field.type.group_kind == "place"]
                country = country_of_group(own, compiler)
                if country is not None:
                    self.countries = (country,)
                else:
                    self.placed = place
                    self.countries = tuple(geography_of(compiler.vocabulary).countries["alpha2"].to_pylist())
        known = {country: row for row, country in enumerate(self.names.countries)}
        self.of_names = np.array([known.get(country, -1) for country in self.countries], np.int64)
        country_places = {row: place for place, row in enumerate(self.of_names.tolist())}
        counts = self.names.ranges.count.astype(np.int64)
        self.country_of = np.repeat(
            np.array([country_places.get(row, -1) for row in range(counts.size)], np.int64), counts
        )
        """``int64[banks]``: row of the kind's countries, -1 for a bank of another one."""
        unique = any(field.common.unique for field in fields if field.type is BankName)
        self.by_name = self.distinct_banks() if unique else None
        """If names are unique: the banks that may be drawn, each with a different name."""

    def country_rows(self, context: ColumnContext) -> np.ndarray:
        """``int64[n]``: the country of each row, a row of `countries`."""
        if self.placed is not None:
            return context.group_value(Places, *self.placed).country
        return context.group(Banks).country

    def _common_countries(self, fields: Sequence[FieldSpec], compiler: Compiler) -> tuple[str, ...]:
        # The countries that every type among the fields supports
        first, *others = {field.type: _known_countries(field.type, compiler) for field in fields}.values()
        possible = [country for country in first if all(country in known for known in others)]
        for field in fields:
            requested = _requested_countries(field, compiler)
            remaining = [country for country in possible if not requested or country in requested]
            if not remaining:
                text = "All fields of a bank must have the same country."
                compiler.fault(field, "", "conflict", text, "Set a separate group for one of them.")
                return tuple(possible[:1]) or ("DE",)
            possible = remaining
        is_free = not any(_requested_countries(field, compiler) for field in fields)
        common = [country for country in possible if country in DEFAULT_COUNTRIES]
        has_iban = any(field.type.name == "iban" for field in fields)
        if is_free and not has_iban and compiler.vocabulary.engine >= 2:
            has_name = any(field.type is BankName for field in fields)
            usual = self.names.countries if has_name else bic_countries(compiler.vocabulary)
            possible = [country for country in possible if country in usual] or possible
        return tuple(common if is_free and has_iban else possible)

    def distinct_banks(self) -> np.ndarray:
        """Return ``int64[k]``: the banks of the countries, each with a different name."""
        rows = np.flatnonzero(self.country_of >= 0)
        names = self.names.names.take(pa.array(rows))
        return rows[values.ValuePool(names, np.arange(rows.size)).distinct]

    def prepare(self, env: GenerationContext, fixed: dict[str, Any]) -> tuple[BankChoices, list[Fault]]:
        candidates, unmet = BankChoices(np.arange(len(self.countries))), []
        types = {field.name: field.type.name for field in self.fields}
        for name, value in fixed.items():
            if value is None:
                continue
            narrowed = (
                None
                if self.by_name is not None
                else self._narrow(candidates, types[name], str(value).strip())
            )
            if narrowed is None:
                text = f'No bank matches "{value}" here; the other fields of the group ignore it.'
                unmet.append(Fault(f"overrides.{name}", "no_match", text, ""))
            else:
                candidates = narrowed
        return candidates, unmet

    def _narrow(self, candidates: BankChoices, kind: str, text: str) -> BankChoices | None:
        if kind in _COUNTRY_POSITION:
            code = text.replace(" ", "").upper()[_COUNTRY_POSITION[kind]]
            rows = [row for row in candidates.countries.tolist() if self.countries[row] == code]
            return BankChoices(np.array(rows), candidates.bank) if rows else None
        for bank in joining.find_ignoring_case(self.names.names, text).tolist():
            country = int(self.country_of[bank])
            if country in candidates.countries:
                return BankChoices(np.array([country]), bank)
        return None

    def draw(self, draws: RandomStream, state: BankChoices) -> Banks:
        return Banks(draws, self, state)


def _known_countries(kind: type[FieldType], compiler: Compiler) -> tuple[str, ...]:
    """The countries that a type of the group has values for. From engine 2 on, accounts of every country have some."""
    if compiler.vocabulary.engine >= 2:
        return all_countries(compiler.vocabulary)
    if kind is BankName:
        return names_of(compiler.vocabulary).countries
    return (iban_countries if kind.name == "iban" else bic_countries)(compiler.vocabulary)


def _requested_countries(field: FieldSpec, compiler: Compiler) -> tuple[str, ...]:
    """The countries of a field's option, otherwise of its locale; none if neither is set. Unknown countries are
    left out; the column reports them."""
    value = next(
        (option for name in _COUNTRY_OPTIONS if (option := getattr(field.options, name, None))), None
    )
    if value is None:
        locale = compiler.locale_of(field)
        value = locale.partition("_")[2] if locale else ()
    codes_ = [value] if isinstance(value, str) else value
    known = _known_countries(field.type, compiler)
    return tuple(code.strip().upper() for code in codes_ if code.strip().upper() in known)


class BankName(FieldType):
    """Banks that have customers in a country: that of the row's IBAN and BIC where they share a group."""

    name = "bank_name"
    label = "Bank Name"
    category = "finance"
    description = "The name of a bank, such as Commerzbank, consistent with the row's IBAN and BIC."
    aliases = ("bank", "name of bank", "financial institution", "banking institution", "bank title")
    example = "Commerzbank"
    group_kind = "bank"
    localised = True
    dtype = pa.string()

    @classmethod
    def referenced_groups(cls, group: str) -> tuple[tuple[str, str], ...]:
        return groups_of_kind(group, "place")

    class Options(OptionsModel):
        country: str | None = Field(
            None,
            description="Two-letter code of the bank's country.",
            examples=["CH"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._names = names_of(compiler.vocabulary)
        known = self._names.countries
        if options.country is not None:
            validate_countries(field, options.country, known, "country", "known banks", compiler)
        elif (locale := compiler.locale_of(field)) and not country_of_locale(locale, known):
            text = f"No banks are available for {locale}"
            if compiler.vocabulary.engine >= 2:
                compiler.warn(field, "no_values", f"{self.label}: {text}, so the column is blank.")
            else:
                compiler.fault(field, "locale", "unknown_country", f"{text}.", f"Known: {', '.join(known)}.")
        self._kind: BankKind = compiler.group_kind_of(field)
        self.max_length = compiler.vocabulary.cached(
            "longest bank", lambda: max_text_length(self._names.names)
        )

    @classmethod
    def capacity(cls) -> int:
        return 308

    def fill(self, context: ColumnContext) -> pa.Array:
        if self._kind.placed is None:
            rows = context.group(Banks).name
        else:
            rows = context.group(Banks).named_in(self._kind.country_rows(context))
        if rows.min(initial=0) >= 0:
            return dictionary_array(self._names.names, rows)
        return self._names.names.take(pa.array(rows, mask=rows < 0))

    def distinct_count(self) -> int:
        kind = self._kind
        return (kind.by_name if kind.by_name is not None else kind.distinct_banks()).size

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)  # the group has seen that the name is unique

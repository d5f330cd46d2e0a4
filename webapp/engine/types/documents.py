"""Papers of people: national numbers, passports, driving licences, health insurance."""

from __future__ import annotations

from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices, Field

from webapp.engine.types import government, national_ids
from webapp.engine.types.base import OptionsModel
from webapp.engine.types.codes import DIGITS, UPPER, Code, CodeType, Gap, Run, texts_by_code
from webapp.engine.types.papers import DOCUMENT_KIND, CountryDependentType, find_place_group, groups_of_kind
from webapp.engine.types.person import DEFAULT_AGES, SEXES, People, allowed_birth_days
from webapp.engine.types.place import Places
from webapp.engine.types.vehicles import code_from_mask
from webapp.errors import did_you_mean

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


from collections.abc import Callable
from typing import Final

from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.types import codes
from webapp.engine.types.codes import Check, Pick, weighted
from webapp.engine.types.government import Parts, digits, like

# Tax and VAT numbers of the countries that engine 2 supports in addition to those of ``government.py``.

_FIRST = Run("123456789")
_BASE_36 = DIGITS + UPPER


def _zero_for_ten(rest: int) -> str:
    return str(-rest % 11 % 10)


def _base_36(position: int, character: str) -> int:
    value = _BASE_36.index(character) * (2 if position % 2 else 1)
    return value // 36 + value % 36


def _taiwanese(position: int, character: str) -> int:
    product = int(character) * (1, 2, 1, 2, 1, 2, 4, 1)[position]
    return product // 10 + product % 10


CNPJ: Final[Parts] = (
    *like("##.###.###"), Gap("/"), "0001", Gap("-"),
    weighted((5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2), 11, _zero_for_ten),
    weighted((6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2), 11, _zero_for_ten),
)  # fmt: skip
_ABN = (
    weighted((0, 0, 3, 5, 7, 9, 11, 13, 15, 17, 19)[:11], 89, lambda rest: f"{11 + (-rest - 1) % 89:02d}"),
    *like(" ### ### ###"),
)
_PAN = (Run(UPPER, 3), Pick(("P", "C", "F", "H")), Run(UPPER), digits(3), Run("123456789"), Run(UPPER))
_GSTIN = (
    Pick(("01", "03", "06", "07", "08", "09", "10", "19", "21", "22", "23", "24", "27", "29", "32", "33", "36", "37")),
    *_PAN, Run("123456789"), "Z",
    Check(36, _base_36, tuple(_BASE_36[-rest % 36] for rest in range(36))),
)  # fmt: skip
_MACEDONIAN = ("40", digits(10), weighted((7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11, _zero_for_ten))
_SERBIAN = (_FIRST, digits(7), codes.mod_11_10())
_THAI = (
    "0", Gap("-"), digits(4), Gap("-"), digits(5), Gap("-"), digits(2), Gap("-"),
    Check(11, government.thai_weight, tuple(str((1 - rest) % 10) for rest in range(11))),
)  # fmt: skip
_VIETNAMESE = (
    Pick(("01", "02", "03", "04", "05", "08", "10", "20", "30", "31", "36", "37", "40")), _FIRST, digits(6),
    weighted((31, 29, 23, 19, 17, 13, 7, 5, 3), 11, lambda rest: str(10 - rest) if rest else None),
)  # fmt: skip
_INDONESIAN = (
    Pick(("01", "02", "03")), *like(".###.###."), codes.luhn(8), Gap("-"), digits(3), Gap("."), "000",
)  # fmt: skip
_TAIWAN = (digits(7), Check(10, _taiwanese, tuple(str(-rest % 10) for rest in range(10))))
_AZERI = (_FIRST, digits(7), weighted((4, 1, 8, 6, 2, 7, 5, 3), 11, codes.remainder), Run("12"))
_ISRAELI = ("5", digits(7), codes.luhn(8))
_GHANAIAN = (
    Pick(("P", "C")), "00", digits(7),
    weighted((0, 1, 2, 3, 4, 5, 6, 7, 8, 9), 11, lambda rest: "X" if rest == 10 else str(rest)),
)  # fmt: skip
_JAPANESE = (weighted((0, *(2, 1) * 6), 9, lambda rest: str(9 - rest)), digits(12))
_CYPRIOT_BODY = (Run("03459"), digits(7), Check(26, government.cypriot_weight, tuple(UPPER)))
_MALTESE_BODY = (_FIRST, digits(5), weighted((3, 4, 6, 7, 8, 9), 37, lambda rest: f"{-rest % 37:02d}"))
_RUSSIAN = (
    _FIRST, digits(8), weighted((2, 4, 10, 3, 5, 9, 4, 6, 8), 11, lambda rest: str(rest % 10)),
)  # fmt: skip

TAX: dict[str, tuple[str, Callable[[], Parts]]] = {
    "AE": ("TRN", lambda: ("100", digits(12))),
    "AL": ("NIPT", lambda: (Run("JKLM"), digits(8), Run(UPPER))),
    "AM": ("TIN", lambda: (Run("0123456789"), digits(7))),
    "AZ": ("VÖEN", lambda: _AZERI),
    "BA": ("JIB", lambda: ("4", digits(12))),
    "BD": ("TIN", lambda: (_FIRST, digits(11))),
    "BH": ("VAT account number", lambda: ("2", digits(14))),
    "CY": ("TIC", lambda: _CYPRIOT_BODY),
    "DZ": ("NIF", lambda: ("0", digits(14))),
    "EG": ("Tax registration number", lambda: like("###-###-###")),
    "ET": ("TIN", lambda: ("00", digits(8))),
    "GE": ("TIN", lambda: (Run("245"), digits(8))),
    "GH": ("TIN", lambda: _GHANAIAN),
    "ID": ("NPWP", lambda: _INDONESIAN),
    "IL": ("Company number", lambda: _ISRAELI),
    "IR": ("Economic code", lambda: ("10", digits(9))),
    "IS": ("Kennitala", lambda: (Pick(("41", "42", "45", "46", "50", "52", "55", "61", "63", "70")),
                                 Pick(("01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12")),
                                 Pick(("85", "90", "95", "98", "99")), Gap("-"), Run("23456789"), digits(1),
                                 weighted((3, 2, 7, 6, 5, 4, 3, 2), 11, codes.complement(11)), "9")),
    "JO": ("Tax number", lambda: (_FIRST, digits(7))),
    "KE": ("KRA PIN", lambda: (Run("AP"), digits(9), Run(UPPER))),
    "LI": ("PEID", lambda: (_FIRST, digits(7))),
    "LK": ("TIN", lambda: (Run("147"), digits(8))),
    "LU": ("Matricule", lambda: (Pick(("1998", "2003", "2008", "2011", "2014", "2017", "2019", "2021")), digits(7))),
    "MK": ("EDB", lambda: _MACEDONIAN),
    "MT": ("Tax number", lambda: _MALTESE_BODY),
    "MY": ("TIN", lambda: ("C", digits(10))),
    "NG": ("TIN", lambda: (_FIRST, digits(7), Gap("-"), "0001")),
    "NP": ("PAN", lambda: (Run("36"), digits(8))),
    "PH": ("TIN", lambda: (*like("###-###-###-"), "00000")),
    "PK": ("NTN", lambda: (_FIRST, digits(6), Gap("-"), digits(1))),
    "PS": ("Tax number", lambda: ("56", digits(7))),
    "RS": ("PIB", lambda: _SERBIAN),
    "SA": ("TIN", lambda: ("3", digits(9))),
    "TH": ("TIN", lambda: _THAI),
    "TW": ("UBN", lambda: _TAIWAN),
    "UZ": ("STIR", lambda: (Run("2345"), digits(8))),
    "VN": ("MST", lambda: _VIETNAMESE),
    "ZA": ("Tax reference number", lambda: ("9", digits(8), codes.luhn(9))),
}  # fmt: skip
"""Country: (the name of its number, its parts)."""

VAT: dict[str, tuple[str, Callable[[Vocabulary], Parts]]] = {
    "AE": ("TRN", lambda _: ("100", digits(12))),
    "AL": ("NIPT", lambda _: (Run("JKLM"), digits(8), Run(UPPER))),
    "AM": ("VAT number", lambda _: (Run("0123456789"), digits(7), Gap("/"), "1")),
    "AR": ("CUIT", lambda words: government.TAX["AR"][1](words)),
    "AU": ("ABN (GST)", lambda _: _ABN),
    "AZ": ("VÖEN", lambda _: _AZERI),
    "BA": ("PDV number", lambda _: ("4", digits(11))),
    "BD": ("BIN", lambda _: ("00", digits(7), Gap("-"), "0", digits(3))),
    "BH": ("VAT account number", lambda _: ("2", digits(14))),
    "BR": ("CNPJ", lambda _: CNPJ),
    "CA": ("GST/HST account", lambda _: (_FIRST, digits(7), codes.luhn(8), "RT0001")),
    "CL": ("RUT", lambda words: government.TAX["CL"][1](words)),
    "CN": ("USCC", lambda words: government.TAX["CN"][1](words)),
    "CO": ("NIT", lambda words: government.TAX["CO"][1](words)),
    "DZ": ("NIF", lambda _: ("0", digits(14))),
    "EG": ("Tax registration number", lambda _: like("###-###-###")),
    "ET": ("VAT registration number", lambda _: (_FIRST, digits(9))),
    "GE": ("VAT number", lambda _: (Run("245"), digits(8))),
    "GH": ("TIN", lambda _: _GHANAIAN),
    "ID": ("NPWP", lambda _: _INDONESIAN),
    "IL": ("Osek murshe", lambda _: _ISRAELI),
    "IN": ("GSTIN", lambda _: _GSTIN),
    "IR": ("Economic code", lambda _: ("10", digits(9))),
    "IS": ("VSK", lambda _: (_FIRST, digits(5))),
    "JO": ("Tax number", lambda _: (_FIRST, digits(7))),
    "JP": ("Qualified invoice issuer number", lambda _: (Gap("T"), *_JAPANESE)),
    "KE": ("KRA PIN", lambda _: ("P", digits(9), Run(UPPER))),
    "KR": ("BRN", lambda words: government.TAX["KR"][1](words)),
    "LI": ("UID", lambda words: government.VAT["CH"]()),
    "LK": ("VAT number", lambda _: (Run("147"), digits(8), Gap("-"), "7000")),
    "MK": ("EDB", lambda _: (Gap("MK"), *_MACEDONIAN)),
    "MX": ("RFC", lambda words: government.TAX["MX"][1](words)),
    "MY": ("SST number", lambda _: (Run("WBJ"), digits(2), Gap("-"), digits(4), Gap("-"), digits(8))),
    "NG": ("TIN", lambda _: (_FIRST, digits(7), Gap("-"), "0001")),
    "NP": ("PAN", lambda _: (Run("36"), digits(8))),
    "NZ": ("GST number", lambda words: government.TAX["NZ"][1](words)),
    "PH": ("TIN", lambda _: (*like("###-###-###-"), "00000")),
    "PK": ("STRN", lambda _: ("32", digits(11))),
    "PS": ("Tax number", lambda _: ("56", digits(7))),
    "RS": ("PIB", lambda _: _SERBIAN),
    "RU": ("INN", lambda _: _RUSSIAN),
    "SA": ("VAT number", lambda _: ("3", digits(13), "3")),
    "TH": ("TIN", lambda _: _THAI),
    "TR": ("VKN", lambda words: government.TAX["TR"][1](words)),
    "TW": ("UBN", lambda _: _TAIWAN),
    "UA": ("IPN", lambda _: (_FIRST, digits(11))),
    "UZ": ("VAT number", lambda _: ("3", digits(11))),
    "VN": ("MST", lambda _: _VIETNAMESE),
    "ZA": ("VAT number", lambda _: ("4", digits(8), codes.luhn(9))),
}  # fmt: skip
"""Country: (the name of its number, its parts)."""

TAX_COUNTRIES: Final = tuple(sorted({*government.TAX_COUNTRIES, *TAX}))
VAT_COUNTRIES: Final = tuple(sorted({*government.VAT_COUNTRIES, *VAT}))


def tax_name(country: str) -> str:
    """What ``country`` (of `TAX_COUNTRIES`) calls its number."""
    return TAX[country][0] if country in TAX else government.tax_name(country)


def tax_number(vocabulary: Vocabulary, country: str) -> Code:
    """The tax numbers of ``country`` (of `TAX_COUNTRIES`)."""
    if country in TAX:
        return vocabulary.cached(("tax", country), lambda: Code(*TAX[country][1]()))
    return government.tax_number(vocabulary, country)


def vat_number(vocabulary: Vocabulary, country: str) -> Code:
    """The VAT numbers of ``country`` (of `VAT_COUNTRIES`)."""
    if country in VAT:
        return vocabulary.cached(("vat", country), lambda: Code(*VAT[country][1](vocabulary)))
    return government.vat_number(vocabulary, country)


_IDS = ", ".join(f"{country}: {national_ids.number_name(country)}" for country in national_ids.COUNTRIES)


def _country_option(known: str) -> Any:
    return Field(
        None,
        validation_alias=AliasChoices("country", "countryCode", "country_code"),
        description=f"Two-letter code. Default: the locale's country. {known}.",
        examples=["PL"],
    )


_SEX_SALT, _BIRTH_SALT = 60, 61


class NationalId(CountryDependentType):
    """What a country calls its number for people, check digits included. A date of birth, a sex or letters of the name
    in the number are those of the row's person; where the row has none, the number has its own. If numbers are unique,
    they decide when people were born."""

    name = "national_id"
    label = "National ID"
    description = "A national identification number of the row's person, with valid check digits."
    aliases = ("national identification number", "national id number", "identity number", "personal number", "id card",
               "citizen id", "identity card number", "pesel", "aadhaar", "personnummer", "codice fiscale", "cpf",
               "snils", "id number", "national insurance number")  # fmt: skip
    example = "523-47-8190"
    needs_birth_date = True
    joins_groups_if_unique = True
    _person_group: tuple[str, str] | None = None
    _unique_person_kind: Any = None
    """The kind of the group of people whose days of birth unique numbers decide."""
    _numbers_per_day = 0
    """How many unique numbers each day of birth has."""
    _day_positions: np.ndarray | None = None
    """The position of each day among those with the same text; see `national_ids.equal_day_counts`."""
    _name_vocabulary: Vocabulary | None = None
    """Where the numbers have letters of the row's name: the vocabulary of the names."""

    class Options(OptionsModel):
        country: str | None = _country_option(_IDS)

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        vocabulary = compiler.vocabulary
        if vocabulary.engine < 2:
            make = partial(government.national_id, vocabulary)
            self.select_country(
                options.country,
                government.COUNTRIES,
                "a national identification number",
                "US",
                compiler,
                make,
            )
            return
        make = partial(national_ids.national_id, vocabulary)
        country = options.country
        if field.common.unique and vocabulary.engine >= 3 and not (country or compiler.locale_of(field)):
            country = "US"  # the numbers of several countries may be the same
            if find_place_group(field, compiler) is not None:
                text = f"{self.label}: unique numbers need a single country; US is used."
                compiler.warn(field, "independent", text, "Set options.country or a locale.")
        self.select_country(
            country, national_ids.COUNTRIES, "a national identification number", "US", compiler, make
        )
        unique = field.common.unique
        if field.group is not None and (not unique or vocabulary.engine >= 3):
            person_groups = groups_of_kind(field.group, "person")
            self._person_group = next((key for key in person_groups if compiler.group_members(*key)), None)
        if self._person_group and self._country in national_ids.NAME_CODES and vocabulary.engine >= 3:
            self._name_vocabulary = vocabulary
            self.use(national_ids.code_with_name(vocabulary, self._country, unique))
        if not unique or not self.code.inputs or self._country is None:
            return
        # Which of the unique numbers each day of birth has
        self._numbers_per_day = self.code.capacity
        if vocabulary.engine < 3:
            return
        same_days, self._day_positions = national_ids.equal_day_counts(vocabulary, self._country, self.code)
        self._numbers_per_day //= same_days
        if self._person_group is not None:
            people = compiler.require_group(self._person_group)
            first = national_ids.UNIQUE_DAYS.start + (national_ids.FIRST_DAY - date(1970, 1, 1)).days
            if people.number_uniquely(self._numbers_per_day, first, len(national_ids.UNIQUE_DAYS)):
                self._unique_person_kind = people

    @classmethod
    def referenced_groups(cls, group: str) -> tuple[tuple[str, str], ...]:
        return (*super().referenced_groups(group), *groups_of_kind(group, "person"))

    def prepare(self, env: GenerationContext) -> Any:
        if not self.code.inputs and self.place_group is None:
            return None
        if self._unique_person_kind is not None:
            return self._unique_person_kind.born(env.now, {})[0]
        return allowed_birth_days(DEFAULT_AGES, env.now, {}, ())[0]

    def code_inputs(self, context: ColumnContext) -> dict[str, np.ndarray]:
        if self._person_group is not None:
            people = context.group_value(People, *self._person_group)
            inputs = national_ids.person_inputs(national_ids.day_number(people.birth), people.sex)
            if self._name_vocabulary is not None and self._country is not None:
                inputs |= national_ids.name_letter_inputs(self._name_vocabulary, self._country, people)
            return inputs
        born = context.state
        sex = context.below(len(SEXES), _SEX_SALT).view(np.int64)
        days = born.low + context.below(born.size, _BIRTH_SALT).view(np.int64)
        return national_ids.person_inputs(national_ids.day_number(days), sex)

    def distinct_count(self) -> int | None:
        if self.place_group is not None or not self.code.inputs:
            return super().distinct_count()
        # The numbers of a day are distinct, whatever the sex.
        days = _UNIQUE_DAYS if self._unique_person_kind is None else national_ids.UNIQUE_DAYS
        return (self._numbers_per_day or self.code.capacity) * len(days)

    def distinct_count_for(self, state: Any) -> int | None:
        if self._unique_person_kind is None or not state.numbers:
            return self.distinct_count()
        return self._numbers_per_day * int(state.size)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        if not self.code.inputs:
            return super().fill_unique(context)
        if self._unique_person_kind is not None and context.state.numbers:
            assert self._person_group is not None  # else no group was numbered
            people = context.group_value(People, *self._person_group)
            day, number, inputs = (
                national_ids.day_number(people.birth),
                people.number_of_day,
                self.code_inputs(context),
            )
        else:
            index, number = np.divmod(
                context.permuted(self._numbers_per_day * len(_UNIQUE_DAYS)), np.uint64(self._numbers_per_day)
            )
            day = _UNIQUE_DAYS.start + index.view(np.int64)
            sex = context.below(len(SEXES), _SEX_SALT).view(np.int64)
            inputs = national_ids.person_inputs(day, sex)
        if self._day_positions is not None:
            place = self._day_positions[day - national_ids.UNIQUE_DAYS.start]
            number = number * np.uint64(self.code.capacity // self._numbers_per_day) + place
        draws = [number, *(context.below(size, salt) for salt, size in enumerate(self.code.sizes[1:], 1))]
        return self.code.text(draws, inputs)


_UNIQUE_DAYS = range(*((day - national_ids.FIRST_DAY).days for day in (date(1954, 1, 1), date(2000, 1, 1))))
"""Days of birth of unique numbers that no person has: those that every scheme writes in its usual way."""

_TAX_NAMES = ", ".join(f"{country}: {tax_name(country)}" for country in TAX_COUNTRIES)


SHARED_NUMBER_COUNTRIES: Final = ("AU", "BR", "CL", "DE", "ES", "HR", "IE", "NL", "NZ", "UA")
"""Countries whose tax number of a person is the number that `NationalId` has."""


def _is_unchanged(field: FieldSpec) -> bool:
    """Whether the values of a field are printed as its type makes them."""
    common = field.common
    return not (common.formula or common.prefix or common.suffix or common.text_case or common.invalid)


class TaxId(CountryDependentType):
    """What a country calls its tax number, check digits included: EIN, Steuer-ID, NIF, BSN, CPF ... Where people have
    one number for everything (Brazil, Germany, Spain, the Netherlands and others), it is the row's national ID."""

    name = "tax_id"
    label = "Tax ID"
    description = "A tax number of a country, with valid check digits."
    aliases = ("tin", "tax number", "tax identification number", "taxpayer id", "steuer id", "tax identifier")
    example = "71-2501911"

    class Options(OptionsModel):
        country: str | None = _country_option(_TAX_NAMES)

    options: Options
    _national_id: str | None = None

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        vocabulary = compiler.vocabulary
        known = government.TAX_COUNTRIES if vocabulary.engine < 2 else TAX_COUNTRIES
        make = government.tax_number if vocabulary.engine < 2 else tax_number
        self.select_country(options.country, known, "a tax number", "US", compiler, partial(make, vocabulary))
        if vocabulary.engine >= 3 and not field.common.unique and field.group is not None:
            self._national_id = self._national_id_field(compiler)

    def _national_id_field(self, compiler: Compiler) -> str | None:
        """Return the name of the field with the national ID of the same people, if there is one."""
        field, locale = self.field, compiler.locale_of(self.field)
        for other in compiler.fields_of_same_group(field):
            if other.type is NationalId and _is_unchanged(other) and compiler.locale_of(other) == locale:
                requested = [getattr(spec.options, "country", None) for spec in (field, other)]
                if requested[0] == requested[1]:
                    return other.name
        return None

    def fill(self, context: ColumnContext) -> pa.Array:
        tax_ids = super().fill(context)
        if self._national_id is None:
            return tax_ids
        if self.place_group is None:
            uses_national_id = np.full(context.n, self._country in SHARED_NUMBER_COUNTRIES)
        else:
            rows = self.country_indices(context)
            has_one_number = np.array([country in SHARED_NUMBER_COUNTRIES for country in self._countries])
            uses_national_id = (rows >= 0) & has_one_number[rows]
        if not uses_national_id.any():
            return tax_ids
        number = context.column(self._national_id)
        return pc.if_else(pc.and_(pa.array(uses_national_id), number.is_valid()), number, tax_ids)


class VatId(CountryDependentType):
    """VAT numbers, check digits included; in countries with another sales tax, the number for that tax."""

    name = "vat_id"
    label = "VAT ID"
    description = "A VAT number of a country, with valid check digits."
    aliases = ("vat", "vat number", "vatin", "ust id", "vat registration number", "gst number", "gstin")
    example = "DE742471958"

    class Options(OptionsModel):
        country: str | None = _country_option(", ".join(VAT_COUNTRIES))

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        vocabulary = compiler.vocabulary
        known = government.VAT_COUNTRIES if vocabulary.engine < 2 else VAT_COUNTRIES
        make = government.vat_number if vocabulary.engine < 2 else vat_number
        self.select_country(options.country, known, "a VAT number", "DE", compiler, partial(make, vocabulary))


_PASSPORTS = {
    "AR": "@@@######", "AT": "@#######", "AU": "@@#######", "BE": "@@######", "BG": "#########", "BR": "@@######",
    "CA": "@@######", "CH": "@#######", "CL": "@########", "CN": "E########", "CO": "@@######", "CZ": "########",
    "DE": "C********", "DK": "#########", "EE": "@@#######", "ES": "@@@######", "FI": "@@#######", "FR": "##@@#####",
    "GB": "#########", "GR": "@@#######", "HR": "#########", "HU": "@@#######", "IE": "@@#######", "IL": "########",
    "IN": "@#######", "IT": "@@#######", "JP": "@@#######", "KR": "M########", "LT": "########", "LV": "@@#######",
    "MX": "@########", "NL": "@@******#", "NO": "########", "NZ": "@@######", "PL": "@@#######", "PT": "@@######",
    "RO": "########", "RU": "#########", "SE": "########", "SG": "@#######@", "SI": "@@#######", "SK": "@@#######",
    "TR": "U########", "UA": "@@######", "US": "@########", "ZA": "@########",
}  # fmt: skip
"""How the numbers of a country's passports look: # is a digit, @ a letter, * either, other characters are literal."""
_PASSPORT_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"
_GERMAN = "CFGHJKLMNPRTVWXYZ"
"""No vowels, so that no words come about, and no B, D, O, Q and S."""
_FIRST_PASSPORTS = tuple(sorted(_PASSPORTS))
"""Those of engine 1."""
_PASSPORTS.update(
    {
        "AE": "@########",
        "AL": "@@#######",
        "AM": "@@#######",
        "AZ": "C########",
        "BA": "@#######",
        "BD": "@@#######",
        "BH": "#######",
        "CY": "K########",
        "DZ": "#########",
        "EG": "A########",
        "ET": "EP#######",
        "GE": "##@@#####",
        "GH": "G#######",
        "ID": "@#######",
        "IR": "@########",
        "IS": "A#######",
        "JO": "@#######",
        "KE": "A#######",
        "LI": "R#####",
        "LK": "N#######",
        "LU": "J@@#####",
        "MK": "A#######",
        "MT": "#######",
        "MY": "A########",
        "NG": "A########",
        "NP": "########",
        "PH": "P#######@",
        "PK": "@@#######",
        "PS": "#######",
        "RS": "#########",
        "SA": "@########",
        "TH": "@@#######",
        "TW": "#########",
        "UZ": "FA#######",
        "VN": "@########",
    }
)
PASSPORT_COUNTRIES = tuple(sorted(_PASSPORTS))


def _passport(country: str) -> Code:
    letters = _GERMAN if country == "DE" else _PASSPORT_LETTERS
    mask = _PASSPORTS[country]
    if "*" not in mask:
        return code_from_mask(mask, letters)
    either, parts = DIGITS + letters, []
    for sign in mask:
        alphabet = {"#": DIGITS, "@": letters, "*": either}.get(sign)
        parts.append(sign if alphabet is None else Run(alphabet))
    return Code(*parts)


class PassportNumber(CountryDependentType):
    """A number in the form of the country's passports, without the check digit of the machine-readable line."""

    name = "passport_number"
    label = "Passport number"
    description = "A passport number in the format of a country."
    aliases = ("passport", "passport no", "travel document number")
    example = "C48152617"

    class Options(OptionsModel):
        country: str | None = _country_option(f"Supported: {', '.join(PASSPORT_COUNTRIES)}")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        vocabulary = compiler.vocabulary
        known = _FIRST_PASSPORTS if vocabulary.engine < 2 else PASSPORT_COUNTRIES

        def make(country: str) -> Code:
            return vocabulary.cached(("passport", country), lambda: _passport(country))

        self.select_country(options.country, known, "passports", "US", compiler, make)


_LICENSES = {
    "AK": "#######", "AL": "#######", "AR": "#########", "AZ": "@########", "CA": "@#######", "CO": "##-###-####",
    "CT": "#########", "DC": "#######", "DE": "#######", "FL": "@###-###-##-###-#", "GA": "#########",
    "HI": "H########",
    "IA": "###@@####", "ID": "@@######@", "IL": "@###-####-####", "IN": "####-##-####", "KS": "K##-##-####",
    "KY": "@##-###-###", "LA": "#########", "MA": "S########", "MD": "@-###-###-###-###", "ME": "#######",
    "MI": "@ ### ### ### ###", "MN": "@############", "MO": "@#########", "MS": "#########", "MT": "#############",
    "NC": "############", "ND": "@@@-##-####", "NE": "@########", "NH": "NH@######", "NJ": "@#### ##### #####",
    "NM": "#########", "NV": "##########", "NY": "### ### ###", "OH": "@@######", "OK": "@#########", "OR": "#######",
    "PA": "## ### ###", "RI": "########", "SC": "#########", "SD": "########", "TN": "#########", "TX": "########",
    "UT": "#########", "VA": "@########", "VT": "########", "WA": "WDL############", "WI": "@###-####-####-##",
    "WV": "@######", "WY": "######-###",
}  # fmt: skip
"""How the numbers of each state of the United States look, and of the District of Columbia."""
_STATE_SALT = 50


class DriverLicense(CodeType):
    """A number in the form of a state of the United States: the option's, else that of the row's place, else any."""

    name = "driver_license"
    label = "Driver's license"
    category = "government"
    group_kind = DOCUMENT_KIND
    grouped_since_engine = 3
    requires_named_group = True
    joins_existing_groups_only = True
    companion_group_kind = ("place",)
    description = (
        "The number of a US driver's license in the format of its state, which is that of the row's place."
    )
    aliases = ("drivers license", "driving licence", "driver license number", "drivers licence", "license number",
               "dl number", "driver's license number")  # fmt: skip
    example = "D4815261"

    class Options(OptionsModel):
        state: str | None = Field(
            None,
            min_length=2,
            max_length=2,
            description="Two-letter code of a state. Default: all states.",
            examples=["NY"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        state = (options.state or "").upper()
        if state and state not in _LICENSES:
            text = f'There is no state "{options.state}".'
            compiler.fault(field, "options.state", "unknown_state", text, did_you_mean(state, _LICENSES))
            return
        masks = [_LICENSES[state]] if state else list(dict.fromkeys(_LICENSES.values()))
        shared = compiler.vocabulary.cached
        self._codes = [shared(("license", mask), partial(code_from_mask, mask, UPPER)) for mask in masks]
        self.use(self._codes[0])
        self.max_length = max(code.width for code in self._codes)
        places = {mask: place for place, mask in enumerate(masks)}
        self._code_of_state = (
            np.array([places[mask] for mask in _LICENSES.values()]) if not state else np.zeros(1, np.int64)
        )
        self._place = None if state or compiler.vocabulary.engine < 3 else find_place_group(field, compiler)
        if self._place is not None:
            number = {code: number_ for number_, code in enumerate(_LICENSES)}
            states = compiler.vocabulary.table("states").to_pylist()
            of_place = [number.get(item["code"], -1) if item["country"] == "US" else -1 for item in states]
            self._state_of_place = np.array([*of_place, -1])  # the last is for places without a state

    @classmethod
    def referenced_groups(cls, group: str) -> tuple[tuple[str, str], ...]:
        return groups_of_kind(group, "place")

    def fill(self, context: ColumnContext) -> pa.Array:
        if len(self._codes) == 1:
            return super().fill(context)
        state = context.below(self._code_of_state.size, _STATE_SALT).view(np.int64)
        if self._place is not None:
            own = self._state_of_place[context.group_value(Places, *self._place).state]
            state = np.where(own < 0, state, own)
        return texts_by_code(self._codes, self._code_of_state[state], context)

    def distinct_count(self) -> int | None:
        return super().distinct_count() if len(self._codes) == 1 else None

    def unique_hint(self) -> str:
        return "Set options.state: two states may use the same number."


_MEDICARE_LETTERS = "ACDEFGHJKMNPQRTUVWXY"


class MedicareId(CodeType):
    """A Medicare Beneficiary Identifier: eleven characters without S, L, O, I, B and Z (CMS, Understanding the MBI)."""

    name = "medicare_id"
    label = "Medicare ID"
    category = "government"
    description = "A US Medicare Beneficiary Identifier."
    aliases = (
        "medicare beneficiary id",
        "mbi",
        "medicare number",
        "medicare beneficiary identifier",
        "medicare",
    )
    example = "1EG4-TE5-MK73"

    class Options(OptionsModel):
        formatted: bool = Field(True, description="With hyphens: 1EG4-TE5-MK73.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        letter, either, digit = Run(_MEDICARE_LETTERS), Run(DIGITS + _MEDICARE_LETTERS), Run(DIGITS)
        separator = [Gap("-")] if options.formatted else []
        middle = (letter, either, digit)
        self.use(
            compiler.vocabulary.cached(
                ("mbi", options.formatted),
                lambda: Code(
                    Run(DIGITS[1:]), *middle, *separator, *middle, *separator, letter, letter, digit, digit
                ),
            )
        )

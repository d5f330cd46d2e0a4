"""Papers of people: national numbers, passports, driving licences, health insurance."""

from __future__ import annotations

from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import AliasChoices, Field

from webapp.engine.types import business_numbers, government, national_ids
from webapp.engine.types.base import OptionsModel
from webapp.engine.types.codes import DIGITS, UPPER, Code, CodeType, Gap, Run, mixed
from webapp.engine.types.papers import ByCountry, groups_named
from webapp.engine.types.person import AGES, SEXES, birth_dates
from webapp.engine.types.vehicles import masked
from webapp.errors import did_you_mean

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_IDS = ", ".join(f"{country}: {national_ids.number_name(country)}" for country in national_ids.COUNTRIES)


def _country_option(known: str) -> Any:
    return Field(
        None,
        validation_alias=AliasChoices("country", "countryCode", "country_code"),
        description=f"Two-letter code. Default: the locale's country. {known}.",
        examples=["PL"],
    )


_SEX_SALT, _BIRTH_SALT = 60, 61


class NationalId(ByCountry):
    """What a country calls its number for people, check digits included. A date of birth or a sex in the number is that
    of the row's person; where the row has none, or the numbers are unique, the number has its own."""

    name = "national_id"
    label = "National ID"
    description = "A national identification number of the row's person, with valid check digits."
    aliases = ("national identification number", "national id number", "identity number", "personal number", "id card",
               "citizen id", "identity card number", "pesel", "aadhaar", "personnummer", "codice fiscale", "cpf",
               "snils", "id number", "national insurance number")  # fmt: skip
    example = "523-47-8190"
    needs_birth = True
    _person: tuple[str, str] | None = None

    class Options(OptionsModel):
        country: str | None = _country_option(_IDS)

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        words = compiler.vocabulary
        if words.engine < 2:
            make = partial(government.national_id, words)
            self.take(options.country, government.COUNTRIES, "a number for people", "US", compiler, make)
            return
        make = partial(national_ids.national_id, words)
        self.take(options.country, national_ids.COUNTRIES, "a number for people", "US", compiler, make)
        if field.group is not None and not field.common.unique:
            named = groups_named(field.group, "person")
            self._person = next((key for key in named if compiler.members(*key)), None)

    @classmethod
    def reads_all(cls, group: str) -> tuple[tuple[str, str], ...]:
        return (*super().reads_all(group), *groups_named(group, "person"))

    def prepare(self, env: GenerationContext) -> Any:
        if not self.code.given and self.placed is None:
            return None
        return birth_dates(AGES, env.now, {}, ())[0]

    def given(self, context: ColumnContext) -> dict[str, np.ndarray]:
        if self._person is not None:
            people = context.thing(*self._person)
            return national_ids.given_of(national_ids.day_number(people.birth), people.sex)
        born = context.state
        sex = context.below(len(SEXES), _SEX_SALT).view(np.int64)
        days = born.low + context.below(born.size, _BIRTH_SALT).view(np.int64)
        return national_ids.given_of(national_ids.day_number(days), sex)

    def space(self) -> int | None:
        if self.placed is not None or not self.code.given:
            return super().space()
        # A day for each person: the numbers of a day are then distinct, whatever the sex.
        return self.code.capacity * _UNIQUE_DAYS

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        if not self.code.given:
            return super().fill_unique(context)
        day, number = np.divmod(
            context.permuted(self.code.capacity * _UNIQUE_DAYS), np.uint64(self.code.capacity)
        )
        sex = context.below(len(SEXES), _SEX_SALT).view(np.int64)
        draws = [number, *(context.below(size, salt) for salt, size in enumerate(self.code.sizes[1:], 1))]
        return self.code.text(draws, national_ids.given_of(_FIRST_UNIQUE_DAY + day.view(np.int64), sex))


_FIRST_UNIQUE_DAY = (date(1954, 1, 1) - national_ids.FIRST_DAY).days
_UNIQUE_DAYS = (date(2000, 1, 1) - date(1954, 1, 1)).days
"""Days of birth of unique numbers: those that every scheme writes in its usual way."""

_TAX_NAMES = ", ".join(
    f"{country}: {business_numbers.tax_name(country)}" for country in business_numbers.TAX_COUNTRIES
)


class TaxId(ByCountry):
    """What a country calls its tax number, check digits included: EIN, Steuer-ID, NIF, BSN, CPF ..."""

    name = "tax_id"
    label = "Tax ID"
    description = "A tax number of a country, with valid check digits."
    aliases = ("tin", "tax number", "tax identification number", "taxpayer id", "steuer id", "tax identifier")
    example = "71-2501911"

    class Options(OptionsModel):
        country: str | None = _country_option(_TAX_NAMES)

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        words = compiler.vocabulary
        known = government.TAX_COUNTRIES if words.engine < 2 else business_numbers.TAX_COUNTRIES
        make = government.tax_number if words.engine < 2 else business_numbers.tax_number
        self.take(options.country, known, "a tax number", "US", compiler, partial(make, words))


class VatId(ByCountry):
    """VAT numbers, check digits included; where a country taxes sales otherwise, the number for that tax."""

    name = "vat_id"
    label = "VAT ID"
    description = "A VAT number of a country, with valid check digits."
    aliases = ("vat", "vat number", "vatin", "ust id", "vat registration number", "gst number", "gstin")
    example = "DE742471958"

    class Options(OptionsModel):
        country: str | None = _country_option(", ".join(business_numbers.VAT_COUNTRIES))

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        words = compiler.vocabulary
        known = government.VAT_COUNTRIES if words.engine < 2 else business_numbers.VAT_COUNTRIES
        make = government.vat_number if words.engine < 2 else business_numbers.vat_number
        self.take(options.country, known, "a VAT number", "DE", compiler, partial(make, words))


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
        return masked(mask, letters)
    either, parts = DIGITS + letters, []
    for sign in mask:
        alphabet = {"#": DIGITS, "@": letters, "*": either}.get(sign)
        parts.append(sign if alphabet is None else Run(alphabet))
    return Code(*parts)


class PassportNumber(ByCountry):
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
        words = compiler.vocabulary
        known = _FIRST_PASSPORTS if words.engine < 2 else PASSPORT_COUNTRIES

        def make(country: str) -> Code:
            return words.shared(("passport", country), lambda: _passport(country))

        self.take(options.country, known, "passports", "US", compiler, make)


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
    """A number in the form of a state of the United States; of any of them where none is named."""

    name = "driver_license"
    label = "Driver's license"
    category = "government"
    description = "The number of a US driver's license in the format of its state."
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
        make = compiler.vocabulary.shared
        self._codes = [make(("license", mask), partial(masked, mask, UPPER)) for mask in masks]
        self.use(self._codes[0])
        self.max_length = max(code.width for code in self._codes)
        places = {mask: place for place, mask in enumerate(masks)}
        self._of_state = (
            np.array([places[mask] for mask in _LICENSES.values()]) if not state else np.zeros(1, np.int64)
        )

    def fill(self, context: ColumnContext) -> pa.Array:
        if len(self._codes) == 1:
            return super().fill(context)
        which = self._of_state[context.below(self._of_state.size, _STATE_SALT).view(np.int64)]
        return mixed(self._codes, which, context)

    def space(self) -> int | None:
        return super().space() if len(self._codes) == 1 else None

    def unique_hint(self) -> str:
        return "Set options.state: two states may write the same number."


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
        self.use(compiler.vocabulary.shared(("mbi", options.formatted), lambda: _medicare(options.formatted)))


def _medicare(formatted: bool) -> Code:
    letter, either = Run(_MEDICARE_LETTERS), Run(DIGITS + _MEDICARE_LETTERS)
    digit = Run(DIGITS)
    between = [Gap("-")] if formatted else []
    middle = (letter, either, digit)
    return Code(Run(DIGITS[1:]), *middle, *between, *middle, *between, letter, letter, digit, digit)

"""Papers of people: national numbers, passports, driving licences, health insurance."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import AliasChoices, Field

from webapp.engine.types import government
from webapp.engine.types.base import OptionsModel
from webapp.engine.types.codes import DIGITS, UPPER, Code, CodeType, Gap, Run, mixed
from webapp.engine.types.government import ByCountry
from webapp.engine.types.vehicles import masked
from webapp.errors import did_you_mean

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_IDS = ", ".join(f"{country}: {government.number_name(country)}" for country in government.COUNTRIES)


def _country_option(known: str) -> Any:
    return Field(
        None,
        validation_alias=AliasChoices("country", "countryCode", "country_code"),
        description=f"Two-letter code. Default: the locale's country. {known}.",
        examples=["PL"],
    )


class NationalId(ByCountry):
    """What a country calls its number for people, check digits included. A date of birth or a sex inside the number
    is its own, not that of other fields."""

    name = "national_id"
    label = "National ID"
    description = "A national identification number, with valid check digits."
    aliases = ("national identification number", "national id number", "identity number", "personal number", "id card",
               "citizen id", "identity card number", "pesel", "aadhaar", "personnummer", "codice fiscale")  # fmt: skip
    example = "523-47-8190"

    class Options(OptionsModel):
        country: str | None = _country_option(_IDS)

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        country = self.country(options.country, government.COUNTRIES, "a number for people", "US", compiler)
        self.use(government.national_id(compiler.vocabulary, country))


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
        country = self.country(options.country, PASSPORT_COUNTRIES, "passports", "US", compiler)
        self.use(compiler.vocabulary.shared(("passport", country), lambda: _passport(country)))


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

"""Numbers that states and tax offices give."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pydantic import AliasChoices, Field

from webapp.engine.fields import checksums, national
from webapp.engine.fields.base import OptionsModel
from webapp.engine.fields.code_parts import DIGITS, Gap, Pick, Run
from webapp.engine.fields.codes import Code, CodeType
from webapp.engine.fields.countries import listed, of_locale

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_TAX_NAMES = ", ".join(f"{country}: {national.tax_name(country)}" for country in national.TAX_COUNTRIES)

_AREAS = tuple(f"{area:03d}" for area in range(1, 900) if area != 666)
# Printed in advertisements and on sample cards; the Social Security Administration voided them.
_VOID = ("078-05-1120", "219-09-9999", "457-55-5462")


class Ssn(CodeType):
    """US social security numbers: no area 000, 666 or 900 and above, no group 00, no serial 0000, none of the three
    that were voided after being printed (Social Security Administration, POMS RM 10201.035)."""

    name = "ssn"
    label = "SSN"
    category = "government"
    description = "A US social security number of a valid form."
    aliases = ("social security number", "social security", "us ssn", "ssn number")
    example = "523-47-8190"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(compiler.vocabulary.shared("ssn", _ssn))
        self._size = self.code.capacity - len(_VOID)
        self._void = compiler.vocabulary.shared("ssn void", _void_numbers)

    def fill(self, cells: Cells) -> pa.Array:
        return self._text(cells.below(self._size))

    def space(self) -> int:
        return self._size

    @classmethod
    def capacity(cls) -> int:
        return len(_AREAS) * 99 * 9_999 - len(_VOID)

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self._text(cells.permuted(self._size))

    def _text(self, index: np.ndarray) -> pa.Array:
        for number in self._void:
            index = index + (index >= number)
        return self.code.text([index])


def _ssn() -> Code:
    groups = tuple(f"{group:02d}" for group in range(1, 100))
    serials = tuple(f"{serial:04d}" for serial in range(1, 10_000))
    return Code(Pick(_AREAS), Gap("-"), Pick(groups), Gap("-"), Pick(serials))


def _void_numbers() -> tuple[np.uint64, ...]:
    """Places of the voided numbers among all, in rising order."""
    parts = [number.split("-") for number in _VOID]
    places = [
        (_AREAS.index(area) * 99 + int(group) - 1) * 9_999 + int(serial) - 1 for area, group, serial in parts
    ]
    return tuple(np.uint64(place) for place in sorted(places))


class Ein(CodeType):
    """US employer identification numbers with a prefix that is in use."""

    name = "ein"
    label = "EIN"
    category = "government"
    description = "A US employer identification number."
    aliases = ("employer identification number", "fein", "federal tax id", "us tax id")
    example = "71-2501911"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(national.tax_number(compiler.vocabulary, "US"))


class ByCountry(CodeType):
    """A type whose code is that of the option ``country``, else of the locale's country."""

    category = "government"
    localised = True

    def country(
        self, asked: str | None, known: tuple[str, ...], what: str, default: str, compiler: Compiler
    ) -> str:
        """``asked``, the option, as ``known`` spells it, else the locale's, else ``default``."""
        if asked is not None:
            found = listed(self.field, asked, known, "country", what, compiler)
            return found[0] if found else default
        locale = compiler.locale_of(self.field)
        found = of_locale(locale, known)
        if locale and not found:
            text = f"{self.label}: nothing is known for locale {locale}, so these are of {default}."
            compiler.warn(self.field, "other_country", text, "Set options.country.")
        return found[0] if found else default


class TaxId(ByCountry):
    """What a country calls its tax number, check digits included: EIN, Steuer-ID, NIF, BSN, CPF ..."""

    name = "tax_id"
    label = "Tax ID"
    description = "The tax number of a country, with right check digits."
    aliases = ("tin", "tax number", "tax identification number", "taxpayer id", "steuer id", "tax identifier")
    example = "71-2501911"

    class Options(OptionsModel):
        country: str | None = Field(
            None,
            validation_alias=AliasChoices("country", "countryCode", "country_code"),
            description=f"Two-letter code; the locale's country if not given. {_TAX_NAMES}.",
            examples=["DE"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        country = self.country(options.country, national.TAX_COUNTRIES, "a tax number", "US", compiler)
        self.use(national.tax_number(compiler.vocabulary, country))


class VatId(ByCountry):
    """VAT numbers of the European Union, Norway, Switzerland and the United Kingdom, check digits included."""

    name = "vat_id"
    label = "VAT ID"
    description = "A European VAT number, with right check digits."
    aliases = ("vat", "vat number", "vatin", "ust id", "vat registration number")
    example = "DE742471958"

    class Options(OptionsModel):
        country: str | None = Field(
            None,
            validation_alias=AliasChoices("country", "countryCode", "country_code"),
            description=f"Two-letter code: {', '.join(national.VAT_COUNTRIES)}. The locale's country if not given.",
            examples=["FR"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        country = self.country(options.country, national.VAT_COUNTRIES, "a VAT number", "DE", compiler)
        self.use(national.vat_number(compiler.vocabulary, country))


class _Fixed(CodeType):
    category = "government"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(compiler.vocabulary.shared(self.name, self.scheme))

    @staticmethod
    @abstractmethod
    def scheme() -> Code:
        """The code of the type."""


class NhsNumber(_Fixed):
    """Numbers of the National Health Service that begin with 999: those are set aside for tests."""

    name = "nhs_number"
    label = "NHS Number"
    description = "A number of the British National Health Service, from the range for tests."
    aliases = ("nhs", "nhs no")
    example = "999 713 8573"

    @staticmethod
    def scheme() -> Code:
        check = checksums.weighted((10, 9, 8, 7, 6, 5, 4, 3, 2), 11, checksums.complement(11))
        return Code("999", Gap(" "), Run(DIGITS, 3), Gap(" "), Run(DIGITS, 3), check)


class Siren(_Fixed):
    """French company numbers."""

    name = "siren"
    label = "SIREN"
    description = "A French company number, with a right check digit."
    aliases = ("siren number",)
    example = "742471956"

    @staticmethod
    def scheme() -> Code:
        return Code(*national.FRENCH_COMPANY)


class Siret(_Fixed):
    """French numbers of establishments: a SIREN, the establishment, and one more check digit."""

    name = "siret"
    label = "SIRET"
    description = "A French establishment number, with right check digits."
    aliases = ("siret number",)
    example = "74247195600017"

    @staticmethod
    def scheme() -> Code:
        return Code(*national.FRENCH_COMPANY, "00", Run(DIGITS, 2), checksums.luhn(13))

"""Fields of the category government, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from typing_extensions import Unpack


class EINField(Field):
    """A US employer identification number."""

    type_name = "ein"

    def __init__(self, name: str, **common: Unpack[Common]) -> None:
        self._set(name, common, {})


class NhsNumberField(Field):
    """A number of the British National Health Service, from the range for tests."""

    type_name = "nhs_number"

    def __init__(self, name: str, **common: Unpack[Common]) -> None:
        self._set(name, common, {})


class SirenField(Field):
    """A French company number, with a right check digit."""

    type_name = "siren"

    def __init__(self, name: str, **common: Unpack[Common]) -> None:
        self._set(name, common, {})


class SiretField(Field):
    """A French establishment number, with right check digits."""

    type_name = "siret"

    def __init__(self, name: str, **common: Unpack[Common]) -> None:
        self._set(name, common, {})


class SSNField(Field):
    """A US social security number of a valid form."""

    type_name = "ssn"

    def __init__(self, name: str, **common: Unpack[Common]) -> None:
        self._set(name, common, {})


class TaxIdField(Field):
    """The tax number of a country, with right check digits.

    country: Two-letter code; the locale's country if not given. AR: CUIT, AT: Abgabenkontonummer, AU:
        TFN, BE: Enterprise number, BG: EIK, BR: CPF, CA: Business number, CH: UID, CL: RUT, CN: USCC, CO:
        NIT, CZ: DIČ, DE: Steuer-ID, DK: CVR, EE: Registrikood, ES: NIF, FI: Y-tunnus, FR: SPI, GB: UTR,
        GR: AFM, HR: OIB, HU: Adószám, IE: PPS, IN: PAN, IT: Partita IVA, JP: Corporate number, KR: BRN,
        LT: Įmonės kodas, LV: PVN, MX: RFC, NL: BSN, NO: Organisasjonsnummer, NZ: IRD, PL: NIP, PT: NIF,
        RO: CUI, RU: INN, SE: Organisationsnummer, SI: Davčna številka, SK: DIČ, TR: VKN, UA: RNTRC, US:
        EIN.
    """

    type_name = "tax_id"

    def __init__(self, name: str, *, country: str | None = UNSET, **common: Unpack[Common]) -> None:
        self._set(name, common, {"country": country})


class VatIdField(Field):
    """A European VAT number, with right check digits.

    country: Two-letter code: AT, BE, BG, CH, CY, CZ, DE, DK, EE, ES, FI, FR, GB, GR, HR, HU, IE, IT, LT,
        LU, LV, MT, NL, NO, PL, PT, RO, SE, SI, SK. The locale's country if not given.
    """

    type_name = "vat_id"

    def __init__(self, name: str, *, country: str | None = UNSET, **common: Unpack[Common]) -> None:
        self._set(name, common, {"country": country})

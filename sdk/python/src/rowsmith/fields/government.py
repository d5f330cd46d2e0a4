"""Fields of the category government, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class DriverLicenseField(Field):
    """The number of a US driver's license in the format of its state.

    state: Two-letter code of a state. Default: all states.
    """

    type_name = "driver_license"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        state: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"state": state})


class EINField(Field):
    """A US employer identification number."""

    type_name = "ein"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MedicareIdField(Field):
    """A US Medicare Beneficiary Identifier.

    formatted: With hyphens: 1EG4-TE5-MK73.
    """

    type_name = "medicare_id"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        formatted: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"formatted": formatted})


class NationalIdField(Field):
    """A national identification number, with valid check digits.

    country: Two-letter code. Default: the locale's country. AR: DNI, AT: VNR, BE: NN, BG: EGN, BR: CPF,
        CA: SIN, CH: AHV, CL: RUT, CN: RIC, CR: Cédula, CZ: Rodné číslo, DE: Steuer-ID, DK: CPR, DO:
        Cédula, EC: CI, EE: Isikukood, ES: DNI, FI: HETU, FR: NIR, GB: NHS number, GR: AMKA, HR: OIB, ID:
        NIK, IE: PPS, IL: Mispar Zehut, IN: Aadhaar, IS: Kennitala, IT: Codice fiscale, JP: My Number, KR:
        RRN, LT: Asmens kodas, LV: Personas kods, MX: CURP, MY: NRIC, NL: BSN, NO: Fødselsnummer, PE: CUI,
        PK: CNIC, PL: PESEL, PT: CC, RO: CNP, SE: Personnummer, SI: EMŠO, SK: Rodné číslo, TH: PIN, TR:
        T.C. Kimlik, UA: RNTRC, US: SSN, ZA: ID number.
    """

    type_name = "national_id"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        country: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"country": country})


class NhsNumberField(Field):
    """A number of the British National Health Service (NHS), from the range for tests."""

    type_name = "nhs_number"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class PassportNumberField(Field):
    """A passport number in the format of a country.

    country: Two-letter code. Default: the locale's country. Supported: AR, AT, AU, BE, BG, BR, CA, CH,
        CL, CN, CO, CZ, DE, DK, EE, ES, FI, FR, GB, GR, HR, HU, IE, IL, IN, IT, JP, KR, LT, LV, MX, NL,
        NO, NZ, PL, PT, RO, RU, SE, SG, SI, SK, TR, UA, US, ZA.
    """

    type_name = "passport_number"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        country: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"country": country})


class SirenField(Field):
    """A French company number (SIREN), with a valid check digit."""

    type_name = "siren"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SiretField(Field):
    """A French establishment number (SIRET), with valid check digits."""

    type_name = "siret"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SSNField(Field):
    """A US social security number in a valid format."""

    type_name = "ssn"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class TaxIdField(Field):
    """A tax number of a country, with valid check digits.

    country: Two-letter code. Default: the locale's country. AR: CUIT, AT: Abgabenkontonummer, AU: TFN,
        BE: Enterprise number, BG: EIK, BR: CPF, CA: Business number, CH: UID, CL: RUT, CN: USCC, CO: NIT,
        CZ: DIČ, DE: Steuer-ID, DK: CVR, EE: Registrikood, ES: NIF, FI: Y-tunnus, FR: SPI, GB: UTR, GR:
        AFM, HR: OIB, HU: Adószám, IE: PPS, IN: PAN, IT: Partita IVA, JP: Corporate number, KR: BRN, LT:
        Įmonės kodas, LV: PVN, MX: RFC, NL: BSN, NO: Organisasjonsnummer, NZ: IRD, PL: NIP, PT: NIF, RO:
        CUI, RU: INN, SE: Organisationsnummer, SI: Davčna številka, SK: DIČ, TR: VKN, UA: RNTRC, US: EIN.
    """

    type_name = "tax_id"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        country: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"country": country})


class VatIdField(Field):
    """A European VAT number, with valid check digits.

    country: Two-letter code: AT, BE, BG, CH, CY, CZ, DE, DK, EE, ES, FI, FR, GB, GR, HR, HU, IE, IT, LT,
        LU, LV, MT, NL, NO, PL, PT, RO, SE, SI, SK. Default: the locale's country.
    """

    type_name = "vat_id"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        country: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"country": country})

"""Fields of the category government, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class CnpjField(Field):
    """A Brazilian company number (CNPJ) with valid check digits."""

    type_name = "cnpj"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DriverLicenseField(Field):
    """The number of a US driver's license in the format of its state, which is that of the row's place.

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


class InvalidSsnField(Field):
    """A number like an SSN that is never issued."""

    type_name = "invalid_ssn"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ItinField(Field):
    """A taxpayer number of the United States for people without an SSN."""

    type_name = "itin"

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
    """A national identification number of the row's person, with valid check digits.

    country: Two-letter code. Default: the locale's country. AE: Emirates ID, AL: NID, AM: PSN, AR: DNI,
        AT: VNR, AU: TFN, AZ: FIN, BA: JMBG, BD: NID, BE: NN, BG: EGN, BH: CPR, BR: CPF, CA: SIN, CH: AHV,
        CL: RUT, CN: RIC, CO: NUIP, CR: Cédula, CY: ID number, CZ: Rodné číslo, DE: Steuer-ID, DK: CPR,
        DO: Cédula, DZ: NIN, EC: CI, EE: Isikukood, EG: National ID, ES: DNI, ET: FIN, FI: HETU, FR: NIR,
        GB: NHS number, GE: Personal number, GH: Ghana Card, GR: AMKA, HR: OIB, HU: Személyi azonosító,
        ID: NIK, IE: PPS, IL: Mispar Zehut, IN: Aadhaar, IR: Code melli, IS: Kennitala, IT: Codice
        fiscale, JO: National number, JP: My Number, KE: ID number, KR: RRN, LI: AHV, LK: NIC, LT: Asmens
        kodas, LU: Matricule, LV: Personas kods, MK: JMBG, MT: ID card, MX: CURP, MY: NRIC, NG: NIN, NL:
        BSN, NO: Fødselsnummer, NP: Citizenship number, NZ: IRD, PE: CUI, PH: PhilSys number, PK: CNIC,
        PL: PESEL, PS: ID number, PT: CC, RO: CNP, RS: JMBG, RU: SNILS, SA: National ID, SE: Personnummer,
        SI: EMŠO, SK: Rodné číslo, TH: PIN, TR: T.C. Kimlik, TW: ID number, UA: RNTRC, US: SSN, UZ: PINFL,
        VN: CCCD, ZA: ID number.
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

    country: Two-letter code. Default: the locale's country. Supported: AE, AL, AM, AR, AT, AU, AZ, BA,
        BD, BE, BG, BH, BR, CA, CH, CL, CN, CO, CY, CZ, DE, DK, DZ, EE, EG, ES, ET, FI, FR, GB, GE, GH,
        GR, HR, HU, ID, IE, IL, IN, IR, IS, IT, JO, JP, KE, KR, LI, LK, LT, LU, LV, MK, MT, MX, MY, NG,
        NL, NO, NP, NZ, PH, PK, PL, PS, PT, RO, RS, RU, SA, SE, SG, SI, SK, TH, TR, TW, UA, US, UZ, VN,
        ZA.
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


class PassportOwnerField(Field):
    """A name as a passport prints it, made up: SMITH<<ANNA."""

    type_name = "passport_owner"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class RgNumberField(Field):
    """A Brazilian identity card number (RG of São Paulo) with a valid check digit."""

    type_name = "rg_number"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


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

    country: Two-letter code. Default: the locale's country. AE: TRN, AL: NIPT, AM: TIN, AR: CUIT, AT:
        Abgabenkontonummer, AU: TFN, AZ: VÖEN, BA: JIB, BD: TIN, BE: Enterprise number, BG: EIK, BH: VAT
        account number, BR: CPF, CA: Business number, CH: UID, CL: RUT, CN: USCC, CO: NIT, CY: TIC, CZ:
        DIČ, DE: Steuer-ID, DK: CVR, DZ: NIF, EE: Registrikood, EG: Tax registration number, ES: NIF, ET:
        TIN, FI: Y-tunnus, FR: SPI, GB: UTR, GE: TIN, GH: TIN, GR: AFM, HR: OIB, HU: Adószám, ID: NPWP,
        IE: PPS, IL: Company number, IN: PAN, IR: Economic code, IS: Kennitala, IT: Partita IVA, JO: Tax
        number, JP: Corporate number, KE: KRA PIN, KR: BRN, LI: PEID, LK: TIN, LT: Įmonės kodas, LU:
        Matricule, LV: PVN, MK: EDB, MT: Tax number, MX: RFC, MY: TIN, NG: TIN, NL: BSN, NO:
        Organisasjonsnummer, NP: PAN, NZ: IRD, PH: TIN, PK: NTN, PL: NIP, PS: Tax number, PT: NIF, RO:
        CUI, RS: PIB, RU: INN, SA: TIN, SE: Organisationsnummer, SI: Davčna številka, SK: DIČ, TH: TIN,
        TR: VKN, TW: UBN, UA: RNTRC, US: EIN, UZ: STIR, VN: MST, ZA: Tax reference number.
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
    """A VAT number of a country, with valid check digits.

    country: Two-letter code. Default: the locale's country. AE, AL, AM, AR, AT, AU, AZ, BA, BD, BE, BG,
        BH, BR, CA, CH, CL, CN, CO, CY, CZ, DE, DK, DZ, EE, EG, ES, ET, FI, FR, GB, GE, GH, GR, HR, HU,
        ID, IE, IL, IN, IR, IS, IT, JO, JP, KE, KR, LI, LK, LT, LU, LV, MK, MT, MX, MY, NG, NL, NO, NP,
        NZ, PH, PK, PL, PS, PT, RO, RS, RU, SA, SE, SI, SK, TH, TR, TW, UA, UZ, VN, ZA.
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

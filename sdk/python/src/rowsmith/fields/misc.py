"""Fields of the category misc, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class AirlineField(Field):
    """The name of an airline, such as Lufthansa, or its code.

    format: Lufthansa, LH or DLH.
    """

    type_name = "airline"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: Literal["name", "iata", "icao"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format})


class AnimalField(Field):
    """The common name of an animal, such as Snow Leopard."""

    type_name = "animal"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CarMakeField(Field):
    """The make of a car, such as Toyota, consistent with its model."""

    type_name = "car_make"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CarModelField(Field):
    """The model of a car, such as Corolla, consistent with its make."""

    type_name = "car_model"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CarYearField(Field):
    """The model year of a car.

    min: First year. Default: max - 25.
    max: Last year. Default: the year of now.
    """

    type_name = "car_year"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: int | None = UNSET,
        max: int | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max})


class ColorField(Field):
    """The name of a color."""

    type_name = "color"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DrugNameField(Field):
    """The generic name of a drug, such as Amoxicillin."""

    type_name = "drug_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class FakerField(Field):
    """Any method of Faker's providers, from a pool of 10,000 generated values.

    method: The name of the method, such as company_suffix or bothify.
    arguments: Arguments of the method as a JSON object: {"nb_words": 3}.
    """

    type_name = "faker"

    def __init__(
        self,
        name: str,
        method: str,
        *,
        options: Mapping[str, Any] | None = None,
        arguments: dict[str, Any] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"method": method, "arguments": arguments})


class FlightNumberField(Field):
    """A flight number, such as LH454, consistent with the airline.

    separator: Separator between airline and number.
    """

    type_name = "flight_number"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        separator: str = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"separator": separator})


class HexColorField(Field):
    """A color as six hexadecimal digits, such as #1f77b4.

    case: Case of the digits a to f.
    """

    type_name = "hex_color"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        case: Literal["lower", "upper"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"case": case})


class Icd10CodeField(Field):
    """The ICD-10 code of a diagnosis, such as J45.9, or its description.

    format: Code, such as J45.9, or description.
    """

    type_name = "icd10_code"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: Literal["code", "name"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format})


class LicensePlateField(Field):
    """A license plate in the format of a country, consistent with the row's region.

    country: Two-letter code: AE, AL, AM, AR, AT, AU, AZ, BA, BD, BE, BG, BH, BR, CA, CH, CL, CN, CO, CY,
        CZ, DE, DK, DZ, EE, EG, ES, ET, FI, FR, GB, GE, GH, GR, HR, HU, ID, IE, IL, IN, IR, IS, IT, JO,
        JP, KE, KR, LI, LK, LT, LU, LV, MK, MT, MX, MY, NG, NL, NO, NP, NZ, PH, PK, PL, PS, PT, RO, RS,
        RU, SA, SE, SI, SK, TH, TR, TW, UA, US, UZ, VN, ZA. Default: the locale's country.
    """

    type_name = "license_plate"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        country: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"country": country})


class MovieTitleField(Field):
    """An invented movie title, such as The Last Lighthouse."""

    type_name = "movie_title"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class PlantField(Field):
    """The common name of a plant, such as Silver Birch."""

    type_name = "plant"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class RgbColorField(Field):
    """A color as red, green and blue values."""

    type_name = "rgb_color"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class UnitField(Field):
    """A unit of measure: its name, such as kilogram, its symbol, or its quantity.

    format: kilogram, kg or mass.
    """

    type_name = "unit"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: Literal["name", "symbol", "quantity"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format})


class VinField(Field):
    """A vehicle identification number (VIN) with a valid check digit.

    year: Model year in the tenth character. Default: any year from 2010 on.
    """

    type_name = "vin"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        year: int | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"year": year})

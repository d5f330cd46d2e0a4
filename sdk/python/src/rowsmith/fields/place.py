"""Fields of the category place, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class AddressField(Field):
    """A full postal address on one line, in the format of the row's country.

    romanized: Latin letters instead of the locale's own script, for all fields of the group.
    use_full_address: Includes postal code, city and country. Otherwise only street and number.
    """

    type_name = "address"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        romanized: bool = UNSET,
        use_full_address: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"romanized": romanized, "useFullAddress": use_full_address})


class AddressLine2Field(Field):
    """The second line of an address, such as Apt. 12 or Suite 340."""

    type_name = "address_line_2"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class AirportCodeField(Field):
    """The code of an airport near the row's city, such as LYS.

    format: LYS or LFLL.
    """

    type_name = "airport_code"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: Literal["iata", "icao"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format})


class AirportElevationField(Field):
    """The height of an airport in feet."""

    type_name = "airport_elevation"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class AirportNameField(Field):
    """The name of an airport near the row's city, such as Lyon Saint-Exupery Airport."""

    type_name = "airport_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CityField(Field):
    """A city, such as Lyon, consistent with country, state, postal code and time zone.

    romanized: Latin letters instead of the locale's own script, for all fields of the group.
    """

    type_name = "city"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        romanized: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"romanized": romanized})


class CityPrefixField(Field):
    """The beginning of a city's name, such as North."""

    type_name = "city_prefix"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CitySuffixField(Field):
    """The end of a city's name, such as ton."""

    type_name = "city_suffix"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ContinentField(Field):
    """The continent of the row's country, such as Europe."""

    type_name = "continent"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CoordinatesField(Field):
    """Latitude and longitude in degrees, in the row's city."""

    type_name = "coordinates"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CountryField(Field):
    """The name of a country, such as France, in the language of the locale.

    romanized: Latin letters instead of the locale's own script, for all fields of the group.
    """

    type_name = "country"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        romanized: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"romanized": romanized})


class CountryCodeField(Field):
    """The ISO 3166-1 code of a country, such as FR.

    format: FR, FRA or 250.
    """

    type_name = "country_code"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: Literal["alpha2", "alpha3", "numeric"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format})


class DistrictField(Field):
    """A district of a city in the language of its country, such as Vieille Ville.

    romanized: Latin letters instead of the locale's own script, for all fields of the group.
    """

    type_name = "district"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        romanized: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"romanized": romanized})


class GeohashField(Field):
    """The geohash of the row's latitude and longitude.

    precision: Number of characters: 5 is about 5 km, 9 about 5 m.
    """

    type_name = "geohash"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        precision: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"precision": precision})


class LanguageField(Field):
    """A language of the row's country, such as French.

    format: French, or its ISO 639 code: fr.
    """

    type_name = "language"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: Literal["name", "code"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format})


class LatitudeField(Field):
    """Latitude in degrees, in the row's city."""

    type_name = "latitude"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class LongitudeField(Field):
    """Longitude in degrees, in the row's city."""

    type_name = "longitude"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MilitaryAddressField(Field):
    """A unit, box and ship or post office of the armed forces of the United States."""

    type_name = "military_address"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MilitaryStateField(Field):
    """The state code of the armed forces: AA, AE or AP."""

    type_name = "military_state"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class NationalityField(Field):
    """The nationality of people from the row's country, such as French."""

    type_name = "nationality"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class StateField(Field):
    """A state, province or region, such as Auvergne-Rhône-Alpes.

    romanized: Latin letters instead of the locale's own script, for all fields of the group.
    """

    type_name = "state"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        romanized: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"romanized": romanized})


class StateAbbrField(Field):
    """The ISO 3166-2 code of a state, province or region, such as CA."""

    type_name = "state_abbr"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class StreetAddressField(Field):
    """Street name and number, such as 12 rue Lesage.

    romanized: Latin letters instead of the locale's own script, for all fields of the group.
    """

    type_name = "street_address"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        romanized: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"romanized": romanized})


class StreetNameField(Field):
    """A street name in the language of the row's country, such as rue Lesage.

    romanized: Latin letters instead of the locale's own script, for all fields of the group.
    """

    type_name = "street_name"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        romanized: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"romanized": romanized})


class StreetNumberField(Field):
    """The house number, the same as in the row's street address."""

    type_name = "street_number"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class TimeZoneField(Field):
    """The time zone of the place, such as Europe/Paris."""

    type_name = "time_zone"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ZipCodeField(Field):
    """A postal code of the row's city.

    format: A pattern in which each # is a random digit, used instead of the city's postal code.
        #####-#### adds four digits to a US ZIP code.
    """

    type_name = "zip_code"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format})

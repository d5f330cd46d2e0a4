"""Fields of the category misc, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class AircraftField(Field):
    """A type of aircraft, such as Airbus A320."""

    type_name = "aircraft"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


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


class AlbumTitleField(Field):
    """The title of a music album, made up."""

    type_name = "album_title"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class AnimalField(Field):
    """The common name of an animal, such as Snow Leopard."""

    type_name = "animal"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class AnimalScientificNameField(Field):
    """The scientific name of an animal, such as Vulpes vulpes."""

    type_name = "animal_scientific_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class BandNameField(Field):
    """The name of a music band, made up."""

    type_name = "band_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class BeerStyleField(Field):
    """A style of beer, such as Porter."""

    type_name = "beer_style"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class BicycleTypeField(Field):
    """A kind of bicycle, such as Touring Bicycle."""

    type_name = "bicycle_type"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class BirdField(Field):
    """A bird, such as Kingfisher."""

    type_name = "bird"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class BookFormatField(Field):
    """The format of a book, such as Paperback."""

    type_name = "book_format"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class BookGenreField(Field):
    """A genre of books, such as Biography."""

    type_name = "book_genre"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class BookTitleField(Field):
    """The title of a book, made up."""

    type_name = "book_title"

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


class CatBreedField(Field):
    """A breed of cats, such as Siamese."""

    type_name = "cat_breed"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ChemicalElementField(Field):
    """The name of a chemical element, such as Iron."""

    type_name = "chemical_element"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ChemicalSymbolField(Field):
    """The symbol of a chemical element, such as Fe."""

    type_name = "chemical_symbol"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CmykColorField(Field):
    """A color as cyan, magenta, yellow and black."""

    type_name = "cmyk_color"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ColorField(Field):
    """The name of a color."""

    type_name = "color"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ColorSpaceField(Field):
    """A color space, such as Adobe RGB."""

    type_name = "color_space"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CompassDirectionField(Field):
    """A direction by its name, such as north-east."""

    type_name = "compass_direction"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ConstructionContractField(Field):
    """A category of building subcontracts, such as HVAC."""

    type_name = "construction_contract"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ConstructionMaterialField(Field):
    """A building material, such as Plywood."""

    type_name = "construction_material"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ConstructionRoleField(Field):
    """A role on a building site, such as Site Manager."""

    type_name = "construction_role"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ConstructionTradeField(Field):
    """A building trade, such as Plumber."""

    type_name = "construction_trade"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CostCodeField(Field):
    """A code of the standard cost breakdown of building works."""

    type_name = "cost_code"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CuisineField(Field):
    """The cooking of a country, such as Thai."""

    type_name = "cuisine"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DeaNumberField(Field):
    """A prescriber number of the United States with a valid check digit."""

    type_name = "dea_number"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DeviceBrandField(Field):
    """The maker of a mobile device."""

    type_name = "device_brand"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DeviceModelField(Field):
    """The model of a mobile device, made up."""

    type_name = "device_model"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DeviceOsField(Field):
    """The operating system of a mobile device, with its version."""

    type_name = "device_os"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DeviceSerialField(Field):
    """A serial number of a device."""

    type_name = "device_serial"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DiagnosisNameField(Field):
    """A diagnosis in the words of ICD-9, such as Essential hypertension."""

    type_name = "diagnosis_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DishField(Field):
    """The name of a dish, such as Lentil Soup."""

    type_name = "dish"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DogBreedField(Field):
    """A breed of dogs, such as Beagle."""

    type_name = "dog_breed"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DrinkField(Field):
    """A drink, such as Lemonade."""

    type_name = "drink"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DrugCompanyField(Field):
    """The name of a maker of medicines, made up."""

    type_name = "drug_company"

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


class FishField(Field):
    """A fish, such as Perch."""

    type_name = "fish"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class FlightDurationField(Field):
    """A duration of a flight in hours, with one decimal."""

    type_name = "flight_duration"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


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


class FlightStatusField(Field):
    """The state of a flight, such as Boarding."""

    type_name = "flight_status"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class FlightTimeField(Field):
    """A time of departure or arrival with hours and minutes."""

    type_name = "flight_time"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class FrequencyField(Field):
    """How often something happens, such as Weekly."""

    type_name = "frequency"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class FruitField(Field):
    """A fruit, such as Mango."""

    type_name = "fruit"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class FuelTypeField(Field):
    """What a vehicle runs on, such as Diesel."""

    type_name = "fuel_type"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class HcpcsCodeField(Field):
    """A code of the Healthcare Common Procedure Coding System."""

    type_name = "hcpcs_code"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class HeavyEquipmentField(Field):
    """A construction machine, such as Excavator."""

    type_name = "heavy_equipment"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


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


class HorseBreedField(Field):
    """A breed of horses, such as Haflinger."""

    type_name = "horse_breed"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class HospitalField(Field):
    """The name of a hospital, made up."""

    type_name = "hospital"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class HslColorField(Field):
    """A color as hue, saturation and lightness."""

    type_name = "hsl_color"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class HwbColorField(Field):
    """A color as hue, whiteness and blackness."""

    type_name = "hwb_color"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


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


class Icd10ProcedureCodeField(Field):
    """A procedure code of ICD-10-PCS, such as 0DTJ4ZZ."""

    type_name = "icd10_procedure_code"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class Icd9CodeField(Field):
    """A diagnosis code of ICD-9-CM, such as 401.9."""

    type_name = "icd9_code"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class Icd9ProcedureCodeField(Field):
    """A procedure code of ICD-9-CM, such as 47.09."""

    type_name = "icd9_procedure_code"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class IngredientField(Field):
    """An ingredient of a recipe, such as Flour."""

    type_name = "ingredient"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class InsectField(Field):
    """An insect, such as Dragonfly."""

    type_name = "insect"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class LabColorField(Field):
    """A color as lightness and two axes."""

    type_name = "lab_color"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


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


class LocaleCodeField(Field):
    """A code of a language and a country, such as pt_BR."""

    type_name = "locale_code"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MeatField(Field):
    """Meat or fish, such as Trout."""

    type_name = "meat"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MovieGenreField(Field):
    """A genre of films, such as Comedy."""

    type_name = "movie_genre"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MovieTitleField(Field):
    """An invented movie title, such as The Last Lighthouse."""

    type_name = "movie_title"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MusicGenreField(Field):
    """A genre of music, such as Jazz."""

    type_name = "music_genre"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MusicalInstrumentField(Field):
    """A musical instrument, such as Cello."""

    type_name = "musical_instrument"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class NdcCodeField(Field):
    """A National Drug Code of the FDA, such as 0409-1234-05."""

    type_name = "ndc_code"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class NdcLotField(Field):
    """A number of a production lot, such as L24-08213."""

    type_name = "ndc_lot"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class NpiField(Field):
    """A National Provider Identifier of the United States with a valid check digit."""

    type_name = "npi"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class PetNameField(Field):
    """A name of a pet, such as Biscuit."""

    type_name = "pet_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class PlantField(Field):
    """The common name of a plant, such as Silver Birch."""

    type_name = "plant"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class PlantFamilyField(Field):
    """A family of plants, such as Rosaceae."""

    type_name = "plant_family"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class PlantScientificNameField(Field):
    """The scientific name of a plant, such as Quercus robur."""

    type_name = "plant_scientific_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ProcedureNameField(Field):
    """A medical procedure, such as Resection of Appendix."""

    type_name = "procedure_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class PublisherField(Field):
    """The name of a publishing house, made up."""

    type_name = "publisher"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class RecordLocatorField(Field):
    """A booking code of an airline, such as KQ4ZTM."""

    type_name = "record_locator"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class RgbColorField(Field):
    """A color as red, green and blue values."""

    type_name = "rgb_color"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class RgbFloatColorField(Field):
    """A color as three decimals from 0 to 1."""

    type_name = "rgb_float_color"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SeatNumberField(Field):
    """A seat in an aircraft, such as 14C."""

    type_name = "seat_number"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ShortHexColorField(Field):
    """A color as three hexadecimal digits."""

    type_name = "short_hex_color"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SnakeField(Field):
    """A snake, such as King Cobra."""

    type_name = "snake"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SongTitleField(Field):
    """The title of a song, made up."""

    type_name = "song_title"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SpiceField(Field):
    """A spice or herb, such as Cumin."""

    type_name = "spice"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class TemperatureField(Field):
    """A temperature in degrees Celsius."""

    type_name = "temperature"

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


class VegetableField(Field):
    """A vegetable, such as Leek."""

    type_name = "vegetable"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class VehicleTypeField(Field):
    """A kind of vehicle, such as Minivan."""

    type_name = "vehicle_type"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


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


class WeatherField(Field):
    """A weather condition, such as Light Rain."""

    type_name = "weather"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class WindDirectionField(Field):
    """A point of the compass, such as NNE."""

    type_name = "wind_direction"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ZodiacSignField(Field):
    """A sign of the zodiac, such as Libra."""

    type_name = "zodiac_sign"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})

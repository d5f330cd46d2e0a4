"""Fields of the category person, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class AgeField(Field):
    """Age in years, consistent with the date of birth.

    min: Minimum age in years.
    max: Maximum age in years.
    """

    type_name = "age"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: int = UNSET,
        max: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max})


class AvatarField(Field):
    """The URL of an avatar image drawn from the person's names.

    style: Style of the image: initials, a pattern, shapes or a robot.
    format: Image format.
    """

    type_name = "avatar"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        style: Literal["initials", "identicon", "shapes", "bottts"] = UNSET,
        format: Literal["svg", "png"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"style": style, "format": format})


class BioField(Field):
    """A short text about a person."""

    type_name = "bio"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class BloodTypeField(Field):
    """A blood type, such as O+."""

    type_name = "blood_type"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DateOfBirthField(Field):
    """Date of birth, consistent with the age.

    min: Minimum age in years.
    max: Maximum age in years.
    format: Format, as YYYY-MM-DD tokens or strftime's %Y-%m-%d. Default: ISO 8601.
    """

    type_name = "date_of_birth"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: int = UNSET,
        max: int = UNSET,
        format: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max, "format": format})


class DegreeField(Field):
    """An academic degree, such as Bachelor of Science in Physics, or its abbreviation or level.

    format: Bachelor of Science in Physics, B.Sc. or Bachelor.
    """

    type_name = "degree"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: Literal["name", "abbreviation", "level"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format})


class DepartmentField(Field):
    """A department of a company, such as Engineering."""

    type_name = "department"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class FirstNameField(Field):
    """A given name, such as Anna.

    romanized: Latin letters instead of the locale's own script.
    sex: Only female or only male names.
    """

    type_name = "first_name"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        romanized: bool = UNSET,
        sex: Literal["female", "male"] | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"romanized": romanized, "sex": sex})


class FirstNameKanaField(Field):
    """The reading of a Japanese first name in kana, such as サクラ.

    script: サクラ or さくら.
    """

    type_name = "first_name_kana"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        script: Literal["katakana", "hiragana"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"script": script})


class GenderField(Field):
    """Female or Male, consistent with the first name; optionally Non-binary for a share of rows.

    nonbinary: Percentage of people who are non-binary.
    """

    type_name = "gender"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        nonbinary: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"nonbinary": nonbinary})


class GenderAbbreviationField(Field):
    """A gender by one letter: F, M or X."""

    type_name = "gender_abbreviation"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class HeightField(Field):
    """Body height, consistent with sex and age.

    unit: Centimetres, metres with two decimals, inches, or feet and inches as 5'8".
    """

    type_name = "height"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        unit: Literal["cm", "m", "in", "ft"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"unit": unit})


class HobbyField(Field):
    """A pastime, such as Pottery."""

    type_name = "hobby"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class JobAreaField(Field):
    """An area of work, such as Accounts."""

    type_name = "job_area"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class JobTitleField(Field):
    """A job title, such as Software Engineer; English titles match the department."""

    type_name = "job_title"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class JobTypeField(Field):
    """A kind of job, such as Consultant."""

    type_name = "job_type"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class LastNameField(Field):
    """A family name, such as Lee.

    romanized: Latin letters instead of the locale's own script.
    """

    type_name = "last_name"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        romanized: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"romanized": romanized})


class LastNameKanaField(Field):
    """The reading of a Japanese last name in kana, such as サトウ.

    script: サクラ or さくら.
    """

    type_name = "last_name_kana"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        script: Literal["katakana", "hiragana"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"script": script})


class MaritalStatusField(Field):
    """Single, Married, Divorced or Widowed, consistent with the age."""

    type_name = "marital_status"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MiddleNameField(Field):
    """A middle name that matches the person's sex.

    romanized: Latin letters instead of the locale's own script.
    """

    type_name = "middle_name"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        romanized: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"romanized": romanized})


class NameField(Field):
    """A full name, such as Anna Lee.

    romanized: Latin letters instead of the locale's own script.
    """

    type_name = "name"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        romanized: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"romanized": romanized})


class NameKanaField(Field):
    """The reading of a Japanese name in kana, such as サトウ サクラ.

    script: サクラ or さくら.
    """

    type_name = "name_kana"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        script: Literal["katakana", "hiragana"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"script": script})


class RaceField(Field):
    """A category of the United States census."""

    type_name = "race"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SexField(Field):
    """female or male, consistent with the first name."""

    type_name = "sex"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ShirtSizeField(Field):
    """A clothing size from XS to 3XL, consistent with the weight."""

    type_name = "shirt_size"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SkillField(Field):
    """A professional skill, such as Data Analysis."""

    type_name = "skill"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SportField(Field):
    """A sport, such as Rowing."""

    type_name = "sport"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SuffixField(Field):
    """A name suffix, such as PhD or, for a man, Jr."""

    type_name = "suffix"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class TitleField(Field):
    """A form of address, such as Ms. or Mr., consistent with the first name."""

    type_name = "title"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class UniversityField(Field):
    """The name of a university or college, such as Leeds Institute of Technology."""

    type_name = "university"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class UsernameField(Field):
    """A user name derived from the person's names, such as ann.lee7."""

    type_name = "username"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class WeightField(Field):
    """Body weight, consistent with height, sex and age.

    unit: Kilograms or pounds, with one decimal.
    """

    type_name = "weight"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        unit: Literal["kg", "lb"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"unit": unit})

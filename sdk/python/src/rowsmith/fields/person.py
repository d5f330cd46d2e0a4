"""Fields of the category person, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class AgeField(Field):
    """Age in whole years, in agreement with the date of birth.

    min: Age in whole years, at the least.
    max: Age in whole years, at the most.
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
    """The web address of a small picture drawn from the person's names.

    style: How the picture is drawn: initials, a pattern, shapes or a robot.
    format: Format of the picture.
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


class BloodTypeField(Field):
    """A blood group, such as O+."""

    type_name = "blood_type"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DateOfBirthField(Field):
    """The day a person was born, in agreement with the age.

    min: Age in whole years, at the least.
    max: Age in whole years, at the most.
    format: How it is written, in YYYY-MM-DD tokens or strftime's %Y-%m-%d; ISO 8601 if left out.
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
    """A department of a company, such as Engineering, in English."""

    type_name = "department"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class FirstNameField(Field):
    """A given name, such as Anna.

    sex: Names of women or of men only.
    """

    type_name = "first_name"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        sex: Literal["female", "male"] | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"sex": sex})


class GenderField(Field):
    """Female or Male, in agreement with the first name; Non-binary for a share of rows if you like.

    nonbinary: How many people in a hundred are non-binary.
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


class HeightField(Field):
    """How tall the person is, in agreement with sex and age.

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


class JobTitleField(Field):
    """A job title, such as Software Engineer; in English it fits the department."""

    type_name = "job_title"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class LastNameField(Field):
    """A family name, such as Lee."""

    type_name = "last_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MaritalStatusField(Field):
    """Single, Married, Divorced or Widowed, in agreement with the age."""

    type_name = "marital_status"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MiddleNameField(Field):
    """A second given name that fits the person's sex."""

    type_name = "middle_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class NameField(Field):
    """A whole name, such as Anna Lee."""

    type_name = "name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SexField(Field):
    """female or male, in agreement with the first name."""

    type_name = "sex"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ShirtSizeField(Field):
    """A clothing size from XS to 3XL, in agreement with the weight."""

    type_name = "shirt_size"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SkillField(Field):
    """Something that a person can do at work, such as Data Analysis."""

    type_name = "skill"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SuffixField(Field):
    """What follows a name, such as PhD or, for a man, Jr."""

    type_name = "suffix"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class TitleField(Field):
    """How the person is addressed, such as Ms. or Mr., in agreement with the first name."""

    type_name = "title"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class UniversityField(Field):
    """The name of a university or college, such as Leeds Institute of Technology."""

    type_name = "university"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class UsernameField(Field):
    """A user name made of the person's names, such as ann.lee7."""

    type_name = "username"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class WeightField(Field):
    """How heavy the person is, in agreement with height, sex and age.

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

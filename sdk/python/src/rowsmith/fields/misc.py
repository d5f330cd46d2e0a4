"""Fields of the category misc, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ColorField(Field):
    """The name of a color."""

    type_name = "color"

    def __init__(self, name: str, **common: Unpack[Common]) -> None:
        self._set(name, common, {})


class HexColorField(Field):
    """A color as six hexadecimal digits.

    case: How the digits a to f are written.
    """

    type_name = "hex_color"

    def __init__(
        self, name: str, *, case: Literal["lower", "upper"] = UNSET, **common: Unpack[Common]
    ) -> None:
        self._set(name, common, {"case": case})


class RgbColorField(Field):
    """A color as shares of red, green and blue."""

    type_name = "rgb_color"

    def __init__(self, name: str, **common: Unpack[Common]) -> None:
        self._set(name, common, {})

"""Colours."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp.engine.text_parts import FEW_ROWS, join_parts
from webapp.engine.types.base import IndexedType, OptionsModel, PoolType
from webapp.engine.types.codes import HEX, Code, CodeType, Run

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_EIGHT, _LOW = np.uint64(8), np.uint64(0xFF)


class Color(PoolType):
    """Names of colours, in the language of the locale if they are known, else in English."""

    name = "color"
    label = "Color"
    category = "misc"
    description = "The name of a color."
    aliases = ("colour", "color name", "colour name", "safe color name")
    example = "Dark Turquoise"
    localised = True

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        locale = compiler.locale_of(field)
        if compiler.vocabulary.engine >= 2 and not compiler.vocabulary.is_in_language("color", locale):
            compiler.warn_english(field, locale)
        self.set_pool(compiler.vocabulary.words("color", locale))


class HexColor(CodeType):
    """# and six hexadecimal digits."""

    name = "hex_color"
    label = "Hex Color"
    category = "misc"
    description = "A color as six hexadecimal digits, such as #1f77b4."
    aliases = ("color hex", "hex colour", "html color", "color code", "hex color code", "safe hex color")
    example = "#4e9f2c"

    class Options(OptionsModel):
        case: Literal["lower", "upper"] = Field("lower", description="Case of the digits a to f.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        digits = HEX if options.case == "lower" else HEX.upper()
        self.use(compiler.vocabulary.cached(("hex color", digits), lambda: Code("#", Run(digits, 6))))

    @classmethod
    def capacity(cls) -> int:
        return 1 << 24


class RgbColor(IndexedType):
    """``rgb(78, 159, 44)``, as in CSS."""

    name = "rgb_color"
    label = "RGB Color"
    category = "misc"
    description = "A color as red, green and blue values."
    aliases = ("rgb", "color rgb", "rgb colour", "rgb css color")
    example = "rgb(78, 159, 44)"
    dtype = pa.string()
    max_length = 18
    size = 1 << 24

    @classmethod
    def capacity(cls) -> int:
        return cls.size

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        if index.size <= FEW_ROWS:
            texts = [f"rgb({n >> 16}, {n >> 8 & 255}, {n & 255})" for n in index.tolist()]
            return pa.array(texts, pa.string())
        return join_parts((_heads(), index >> _EIGHT), (_tails(), index & _LOW))


@cache
def _heads() -> pa.Array:
    numbers = pa.array(np.arange(256)).cast(pa.string())
    red = numbers.take(pa.array(np.repeat(np.arange(256), 256)))
    green = numbers.take(pa.array(np.tile(np.arange(256), 256)))
    return pc.binary_join_element_wise("rgb(", red, ", ", green, "")


@cache
def _tails() -> pa.Array:
    return pa.array([f", {blue})" for blue in range(256)])

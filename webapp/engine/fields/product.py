"""Goods: one product in every row, with its name, category and stock number; numbers of articles."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp.engine.fields import checksums
from webapp.engine.fields.base import FieldType, GroupKind, OptionsModel, longest, pooled
from webapp.engine.fields.code_parts import DIGITS, UPPER, Gap, Pick, Run
from webapp.engine.fields.codes import Code, CodeType
from webapp.engine.fields.joining import joined
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Draws, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec


class Catalogue:
    """The vocabulary's goods. ``category[i]`` is the number of the category that thing i belongs to."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        table = vocabulary.table("product")
        self.things = pa.array(table["product"].to_pylist())
        names = table["category"].to_pylist()
        found = list(dict.fromkeys(names))
        self.categories = pa.array(found)
        self.category = np.array([found.index(name) for name in names])
        self.codes = tuple(dict(zip(names, table["code"].to_pylist(), strict=True))[name] for name in found)
        adjectives, styles = (
            vocabulary.words(f"product_{part}").to_pylist() for part in ("adjective", "style")
        )
        self.epithets = pa.array([f"{adjective} {style} " for adjective in adjectives for style in styles])
        self.size = len(self.things) * len(self.epithets)


def catalogue(compiler: Compiler) -> Catalogue:
    """The goods of the compiler's vocabulary, made once."""
    return compiler.vocabulary.shared("catalogue", lambda: Catalogue(compiler.vocabulary))


class Goods:
    """The products of one block: which thing, and which epithet its name has."""

    def __init__(self, thing: np.ndarray, epithet: np.ndarray) -> None:
        self.thing, self.epithet = thing, epithet


class ProductKind(GroupKind):
    """One product a row. A unique name walks through all pairs of thing and epithet."""

    kind = "product"

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        self._goods = catalogue(compiler)
        unique = {field.type for field in fields if field.common.unique}
        self._size = next((size for kind, size in self._sizes() if kind in unique), None)

    def _sizes(self) -> list[tuple[type[FieldType], int]]:
        goods = self._goods
        return [
            (ProductCategory, len(goods.categories)),
            (Product, len(goods.things)),
            (ProductName, goods.size),
        ]

    def prepare(self, env: Env, fixed: dict[str, Any]) -> tuple[Any, list[Fault]]:
        goods, things, unmet = self._goods, np.arange(len(self._goods.things)), []
        by_name = {field.name: field.type for field in self.fields}
        for name, value in fixed.items():
            kind = by_name[name]
            if value is None:
                continue
            assert issubclass(kind, _ProductField)
            fits = np.array([kind.is_of(goods, thing, str(value)) for thing in things])
            if fits.any() and self._size is None:
                things = things[fits]
            else:
                reason = "one of them is unique" if fits.any() else f'none is "{value}"'
                text = f"The other fields of the product do not follow this value: {reason}."
                unmet.append(Fault(f"overrides.{name}", "no_match", text, ""))
        return things, unmet

    def draw(self, draws: Draws, state: Any) -> Goods:
        goods = self._goods
        things = np.uint64(len(goods.things))
        if self._size is None:
            index = draws.below(state.size * len(goods.epithets))
            # Two divisions by a constant are faster than one divmod.
            epithet = index // np.uint64(state.size)
            place = index - epithet * np.uint64(state.size)
            return Goods(state[place.view(np.int64)], epithet.view(np.int64))
        index = draws.permuted(self._size)
        if self._size == goods.size:
            epithet, thing = np.divmod(index, things)
            return Goods(thing.view(np.int64), epithet.view(np.int64))
        if self._size == len(goods.categories):
            index = np.searchsorted(goods.category, index.view(np.int64)).astype(np.uint64)
        return Goods(index.view(np.int64), draws.below(len(goods.epithets), 1).view(np.int64))


class _ProductField(FieldType):
    category = "company"
    group_kind = "product"
    dtype = pa.string()

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._goods = catalogue(compiler)

    def fill_unique(self, cells: Cells) -> pa.Array:
        # The group has seen that the field is unique.
        return self.fill(cells)

    @staticmethod
    @abstractmethod
    def is_of(goods: Catalogue, thing: np.integer, value: str) -> bool:
        """Whether ``value`` of this field may stand beside a thing."""


class Product(_ProductField):
    """What the row's product is, in a word or two."""

    name = "product"
    label = "Product"
    description = "A kind of product, such as Desk Lamp."
    aliases = ("product type", "item", "merchandise", "commerce product", "product grocery")
    example = "Desk Lamp"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = longest(self._goods.things)

    def fill(self, cells: Cells) -> pa.Array:
        return pooled(self._goods.things, cells.group().thing)

    def space(self) -> int:
        return len(self._goods.things)

    @staticmethod
    def is_of(goods: Catalogue, thing: np.integer, value: str) -> bool:
        return goods.things[thing].as_py() == value


class ProductName(_ProductField):
    """An adjective, a colour or material, and the row's product."""

    name = "product_name"
    label = "Product Name"
    description = "The name of a product, such as Rustic Walnut Desk Lamp."
    aliases = ("product title", "item name", "commerce product name")
    example = "Rustic Walnut Desk Lamp"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = longest(self._goods.things) + longest(self._goods.epithets)

    def fill(self, cells: Cells) -> pa.Array:
        group = cells.group()
        return joined((self._goods.epithets, group.epithet), (self._goods.things, group.thing))

    def space(self) -> int:
        return self._goods.size

    @staticmethod
    def is_of(goods: Catalogue, thing: np.integer, value: str) -> bool:
        return value.endswith(f" {goods.things[thing].as_py()}")


class ProductCategory(_ProductField):
    """Where a shop files the row's product."""

    name = "product_category"
    label = "Product Category"
    description = "The department of a shop that sells the row's product."
    aliases = (
        "category",
        "commerce department",
        "product department",
        "item category",
        "department retail",
        "category name",
    )
    example = "Furniture"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = longest(self._goods.categories)

    def fill(self, cells: Cells) -> pa.Array:
        return pooled(self._goods.categories, self._goods.category[cells.group().thing])

    def space(self) -> int:
        return len(self._goods.categories)

    @staticmethod
    def is_of(goods: Catalogue, thing: np.integer, value: str) -> bool:
        return goods.categories[int(goods.category[thing])].as_py() == value


class Sku(_ProductField):
    """Three letters of the product's category, a hyphen, and characters that identify the item alone."""

    name = "sku"
    label = "SKU"
    description = "A stock number that begins with its product's category, such as FUR-7K2M9X."
    aliases = (
        "stock keeping unit",
        "product code",
        "article number",
        "item number",
        "part number",
        "product sku",
    )
    example = "FUR-7K2M9X"

    class Options(OptionsModel):
        length: int = Field(6, ge=1, le=11, description="Characters after the hyphen.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        length = options.length
        # Without I, O, 0 and 1, which people mix up.
        tail = Run(DIGITS[2:] + UPPER.replace("I", "").replace("O", ""), length)
        self._code = compiler.vocabulary.shared(
            ("sku", length), lambda: Code(Pick(self._goods.codes), "-", tail)
        )
        self._tails = self._code.space // len(self._goods.codes)
        self.max_length = self._code.width

    def fill(self, cells: Cells) -> pa.Array:
        return self._text(cells, cells.below(self._tails))

    def space(self) -> int:
        return self._tails

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self._text(cells, cells.permuted(self._tails))

    @staticmethod
    def is_of(goods: Catalogue, thing: np.integer, value: str) -> bool:
        return value.startswith(f"{goods.codes[int(goods.category[thing])]}-")

    def _text(self, cells: Cells, tail: np.ndarray) -> pa.Array:
        category = self._goods.category[cells.group().thing].astype(np.uint64)
        return self._code.text([category * np.uint64(self._tails) + tail])


class _ArticleNumber(CodeType):
    category = "company"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(compiler.vocabulary.shared(self.name, lambda: Code(*self.parts())))

    @staticmethod
    @abstractmethod
    def parts() -> tuple[Any, ...]:
        """What the number is made of."""


class Ean13(_ArticleNumber):
    """GTIN-13 with a prefix from 200 to 299, which GS1 leaves to shops for their own use."""

    name = "ean13"
    label = "EAN-13"
    description = (
        "An article number (GTIN-13) with a right check digit, from the range for use inside a shop."
    )
    aliases = ("ean", "gtin", "gtin 13", "barcode", "international article number", "localized ean13")
    example = "2713857724736"

    @staticmethod
    def parts() -> tuple[Any, ...]:
        return "2", Run(DIGITS, 11), checksums.gs1(12)


class Ean8(_ArticleNumber):
    """GTIN-8 with prefix 2, which GS1 leaves to shops for their own use."""

    name = "ean8"
    label = "EAN-8"
    description = (
        "A short article number (GTIN-8) with a right check digit, from the range for use inside a shop."
    )
    aliases = ("gtin 8",)
    example = "27138576"

    @staticmethod
    def parts() -> tuple[Any, ...]:
        return "2", Run(DIGITS, 6), checksums.gs1(7)


class Upc(_ArticleNumber):
    """UPC-A with number system 4, which GS1 leaves to shops for their own use."""

    name = "upc"
    label = "UPC"
    description = (
        "A US article number (UPC-A) with a right check digit, from the range for use inside a shop."
    )
    aliases = ("upc a", "gtin 12", "universal product code")
    example = "471385772479"

    @staticmethod
    def parts() -> tuple[Any, ...]:
        return "4", Run(DIGITS, 10), checksums.gs1(11)


class Isbn(_ArticleNumber):
    """ISBN-13 of the English-language group, without hyphens."""

    name = "isbn"
    label = "ISBN"
    description = "The number of a book (ISBN-13) with a right check digit, without hyphens."
    aliases = ("isbn 13", "isbn13", "book number")
    example = "9780713857726"

    @staticmethod
    def parts() -> tuple[Any, ...]:
        return "978", Run("01"), Run(DIGITS, 8), checksums.gs1(12)


class Issn(_ArticleNumber):
    """ISSN (ISO 3297), with its hyphen."""

    name = "issn"
    label = "ISSN"
    description = "The number of a periodical, with a right check digit."
    aliases = ("periodical number",)
    example = "7138-5770"

    @staticmethod
    def parts() -> tuple[Any, ...]:
        return (
            Run(DIGITS, 4),
            Gap("-"),
            Run(DIGITS, 3),
            checksums.weighted((8, 7, 6, 5, 4, 3, 2), 11, "0X987654321"),
        )

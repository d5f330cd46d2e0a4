"""Commerce: prices, shares, numbers of orders and invoices, and products.

The fields of a group ``product`` show name, category and stock number of one product per row.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from math import ceil, floor
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp import limits
from webapp.engine import text
from webapp.engine.text_parts import join_parts
from webapp.engine.types import codes, person
from webapp.engine.types.amounts import Amount
from webapp.engine.types.base import (
    FieldType,
    GroupKind,
    IndexedType,
    OptionsModel,
    dictionary_array,
    max_text_length,
)
from webapp.engine.types.codes import DIGITS, UPPER, Code, CodeType, Gap, Pick, Run
from webapp.engine.types.text import MaskType
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.random import RandomStream
    from webapp.engine.spec import FieldSpec


_CENT = 100


class Price(IndexedType):
    """An amount as shops write it: any whole number with one of the endings."""

    name = "price"
    label = "Price"
    category = "finance"
    description = "A retail price, such as 24.99."
    aliases = ("price tag", "pricetag", "retail price", "unit price", "list price", "selling price")
    example = 24.99
    dtype = pa.decimal128(38, 2)

    class Options(OptionsModel):
        min: Amount = Field(Decimal(1), description="Minimum price.")
        max: Amount = Field(Decimal(500), description="Maximum price.")
        endings: tuple[Annotated[int, Field(ge=0, le=_CENT - 1)], ...] = Field(
            (99, 95, 49, 0),
            min_length=1,
            max_length=_CENT,
            description="Cent endings of the prices.",
            examples=[[99]],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        endings = sorted(set(options.endings))
        self._endings = np.array(endings, np.int64)
        low, high = ceil(options.min * _CENT), floor(options.max * _CENT)
        self._first_index = self._count_in_smaller(low) + self._count_endings(low, inside=False)
        self.size = self._count_in_smaller(high) + self._count_endings(high, inside=True) - self._first_index
        self._low, self._high = low, high
        if options.min < 0:
            text = "A price must be 0 or more."
            compiler.fault(field, "options.min", "out_of_range", text, "Raise min, or use type money.")
        elif options.min > options.max:
            text = f"min ({options.min}) is larger than max ({options.max})."
            compiler.fault(field, "options.min", "min_above_max", text, "Swap them.")
        elif self.size < 1:
            text = f"No price from {options.min} to {options.max} has one of these endings."
            compiler.fault(field, "options.endings", "too_narrow", text, "Widen min and max, or add endings.")

    def _count_in_smaller(self, units: int) -> int:
        """Return how many prices have a smaller whole number than ``units``."""
        return units // _CENT * self._endings.size

    def _count_endings(self, units: int, inside: bool) -> int:
        """Return how many endings are smaller than that of ``units`` (or, if ``inside``, not larger)."""
        return int(np.searchsorted(self._endings, units % _CENT, "right" if inside else "left"))

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        whole, ending = np.divmod(index.view(np.int64) + self._first_index, self._endings.size)
        return text.decimal_array(whole * _CENT + self._endings.take(ending), 2)

    def bounds(self, rows: int) -> tuple[int, int]:
        return self._low, self._high

    @classmethod
    def capacity(cls) -> int:
        return 1997


class StockSymbol(IndexedType):
    """Three or four letters; some of them may be of a share that is traded."""

    name = "stock_symbol"
    label = "Stock symbol"
    category = "finance"
    description = "A stock symbol, such as QRTX."
    aliases = ("ticker", "ticker symbol", "stock ticker", "share symbol", "stock code")
    example = "QRTX"
    dtype = pa.string()
    max_length = 4
    size = 26**2 * (26 + 26**2)

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._heads, self._tails = _symbol_parts()

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        head, tail = np.divmod(index, np.uint64(len(self._tails)))
        return join_parts((self._heads, head), (self._tails, tail))

    @classmethod
    def capacity(cls) -> int:
        return cls.size


@cache
def _symbol_parts() -> tuple[pa.StringArray, pa.StringArray]:
    pairs = [item + other for item in UPPER for other in UPPER]
    return pa.array(pairs), pa.array([*UPPER, *pairs])


class OrderNumber(MaskType):
    """A mask of random characters: order numbers that do not reveal how many there are."""

    name = "order_number"
    label = "Order number"
    category = "company"
    description = "An order number, such as ORD-40718265."
    aliases = ("order no", "order code", "purchase order", "po number", "booking number", "ticket number",
               "tracking number", "confirmation number")  # fmt: skip
    example = "ORD-40718265"
    option = "format"

    class Options(OptionsModel):
        format: str = Field(
            "ORD-########",
            min_length=1,
            max_length=limits.MAX_PATTERN_CHARS,
            description="# is a digit, @ a lowercase letter, ^ an uppercase letter, * any of these. Use "
            "a backslash for a literal character.",
            examples=["^^-######"],
        )

    options: Options

    @property
    def mask(self) -> str:
        return self.options.format

    @classmethod
    def capacity(cls) -> int:
        return 10**8


_TOKEN = re.compile(r"YYYY|YY|MM|#+")


class InvoiceNumber(FieldType):
    """Numbers that count up from row to row without a gap, as the law requires of invoices; the date is that of now."""

    name = "invoice_number"
    label = "Invoice number"
    category = "company"
    description = "A consecutive invoice number without gaps, such as INV-2026-000001."
    aliases = ("invoice no", "bill number", "receipt number", "document number")
    example = "INV-2026-000001"
    dtype = pa.string()

    class Options(OptionsModel):
        format: str = Field(
            "INV-YYYY-######",
            min_length=1,
            max_length=limits.MAX_AFFIX_CHARS,
            description=(
                "# characters are replaced by the number with leading zeros; YYYY, YY and MM by "
                "the year and month of now."
            ),
            examples=["RE########"],
        )
        start: int = Field(1, ge=0, le=limits.MAX_INTEGER, description="Number of the first row.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        runs = re.findall("#+", options.format)
        if len(runs) != 1:
            text = "The format must contain the number exactly once."
            compiler.fault(
                field, "options.format", "wrong_format", text, "Use one sequence of #, as in INV-####."
            )
        self._digits = len(runs[0]) if runs else 1
        self.max_length = len(options.format) + max(0, 19 - self._digits)

    def prepare(self, env: GenerationContext) -> tuple[str, str]:
        date_texts = {
            "YYYY": f"{env.now.year:04d}",
            "YY": f"{env.now.year % 100:02d}",
            "MM": f"{env.now.month:02d}",
        }
        text = _TOKEN.sub(lambda match: date_texts.get(match[0], "\0"), self.options.format)
        before, _, after = text.partition("\0")
        return before, after

    def fill(self, context: ColumnContext) -> pa.Array:
        before, after = context.state
        numbers = pa.array(context.rows.view(np.int64) + self.options.start).cast(pa.string())
        return pc.binary_join_element_wise(before, pc.utf8_lpad(numbers, self._digits, "0"), after, "")

    def available_rows(self, state: Any) -> int:
        return 1 << 62

    def distinct_count(self) -> int:
        return 1 << 62

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)


class Duns(CodeType):
    """Nine digits, without a check digit since 2006."""

    name = "duns"
    label = "D-U-N-S number"
    category = "company"
    description = "A nine-digit company number in the Dun & Bradstreet register."
    aliases = ("duns number", "dun and bradstreet", "d u n s")
    example = "15-048-3782"

    class Options(OptionsModel):
        formatted: bool = Field(True, description="With hyphens: 15-048-3782.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        separator = [Gap("-")] if options.formatted else []
        make = lambda: Code(Run(DIGITS, 2), *separator, Run(DIGITS, 3), *separator, Run(DIGITS, 4))  # noqa: E731
        self.use(compiler.vocabulary.cached(("duns", options.formatted), make))

    @classmethod
    def capacity(cls) -> int:
        return 10**9


class Catalogue:
    """The vocabulary's products. ``category[i]`` is the number of the category of product i."""

    def __init__(self, table: pa.Table) -> None:
        self.products = pa.array(table["product"].to_pylist())
        names = table["category"].to_pylist()
        categories = list(dict.fromkeys(names))
        self.categories = pa.array(categories)
        self.category = np.array([categories.index(name) for name in names])
        self.codes = tuple(
            dict(zip(names, table["code"].to_pylist(), strict=True))[name] for name in categories
        )
        self.size = 0
        self.longest_name = 0

    @abstractmethod
    def name_count(self, products: np.ndarray) -> int:
        """Return how many names some products have."""

    @abstractmethod
    def pick(self, index: np.ndarray, products: np.ndarray) -> ProductSelection:
        """Return the names at places among all names of some products."""

    @abstractmethod
    def draw_epithets(self, products: np.ndarray, draws: RandomStream) -> np.ndarray:
        """Draw an epithet for each of some products."""

    @abstractmethod
    def names(self, goods: ProductSelection) -> pa.Array:
        """Return the names of products."""

    @abstractmethod
    def is_name_of(self, product: np.integer, value: str) -> bool:
        """Return whether a text is a name of a product."""


class EnglishCatalogue(Catalogue):
    """Products whose names can be combined with every adjective."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary.table("product"))
        adjectives, styles = (
            vocabulary.words(f"product_{part}").to_pylist() for part in ("adjective", "style")
        )
        self.epithets = pa.array([f"{adjective} {style} " for adjective in adjectives for style in styles])
        self.size = len(self.products) * len(self.epithets)
        self.longest_name = max_text_length(self.products) + max_text_length(self.epithets)

    def name_count(self, products: np.ndarray) -> int:
        return products.size * len(self.epithets)

    def pick(self, index: np.ndarray, products: np.ndarray) -> ProductSelection:
        # Two divisions by a constant are faster than one divmod.
        epithet = index // np.uint64(products.size)
        place = index - epithet * np.uint64(products.size)
        return ProductSelection(products[place.view(np.int64)], epithet.view(np.int64))

    def draw_epithets(self, products: np.ndarray, draws: RandomStream) -> np.ndarray:
        return draws.below(len(self.epithets), 1).view(np.int64)

    def names(self, goods: ProductSelection) -> pa.Array:
        return join_parts((self.epithets, goods.epithet), (self.products, goods.product))

    def is_name_of(self, product: np.integer, value: str) -> bool:
        return value.endswith(f" {self.products[product].as_py()}")


class LocalCatalogue(Catalogue):
    """Goods of another language: the epithets of a product agree with it."""

    def __init__(self, vocabulary: Vocabulary, language: str) -> None:
        table = vocabulary.table(f"product@{language}")
        super().__init__(table)
        epithets = vocabulary.table(f"product_epithet@{language}")
        before, after = (epithets[name].to_pylist() for name in ("before", "after"))
        # After an adjective a product begins with a lowercase letter, except in German.
        self._product_texts = pa.array([*self.products.to_pylist(), *table["inner"].to_pylist()])
        self._inner_offset = np.array([len(self.products) if text else 0 for text in before])
        self._before, self._after = pa.array(before), pa.array(after)
        self._start, self._count = (table[name].to_numpy().astype(np.int64) for name in ("start", "count"))
        self.size = int(self._count.sum())
        self.longest_name = (
            max_text_length(self._before)
            + max_text_length(self._product_texts)
            + max_text_length(self._after)
        )

    def name_count(self, products: np.ndarray) -> int:
        return int(self._count[products].sum())

    def pick(self, index: np.ndarray, products: np.ndarray) -> ProductSelection:
        ends, place = np.cumsum(self._count[products]), index.view(np.int64)
        at = np.searchsorted(ends, place, side="right")
        product = products[at]
        return ProductSelection(product, place - (ends[at] - self._count[product]))

    def draw_epithets(self, products: np.ndarray, draws: RandomStream) -> np.ndarray:
        return (draws.below(1 << 32, 1) % self._count[products].astype(np.uint64)).view(np.int64)

    def names(self, goods: ProductSelection) -> pa.Array:
        epithet = self._start[goods.product] + goods.epithet
        product = goods.product + self._inner_offset[epithet]
        return join_parts((self._before, epithet), (self._product_texts, product), (self._after, epithet))

    def is_name_of(self, product: np.integer, value: str) -> bool:
        count = int(self._count[product])
        goods = ProductSelection(np.full(count, product), np.arange(count))
        return value in self.names(goods).to_pylist()


def catalogue(compiler: Compiler, fields: Sequence[FieldSpec]) -> Catalogue:
    """Return the goods of a group in the language of its locale (default: English), created once."""
    vocabulary, language = compiler.vocabulary, product_language(compiler, fields)
    if language is None:
        return vocabulary.cached("catalogue", lambda: EnglishCatalogue(vocabulary))
    return vocabulary.cached(("catalogue", language), lambda: LocalCatalogue(vocabulary, language))


def product_language(compiler: Compiler, fields: Sequence[FieldSpec]) -> str | None:
    """Return the vocabulary's name of the language of a group's goods; None for English."""
    language = compiler.vocabulary.localized_names(
        "product_language", person.locale_of_group(fields, compiler, None)
    )
    return None if language is None else language[0].as_py()


class ProductSelection:
    """The products of one block: which product, and which epithet its name has."""

    def __init__(self, product: np.ndarray, epithet: np.ndarray) -> None:
        self.product, self.epithet = product, epithet


class ProductKind(GroupKind):
    """One product a row. A unique name walks through all pairs of product and epithet."""

    kind = "product"

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        person.check_locales(fields, compiler)
        goods = self._goods = catalogue(compiler, fields)
        unique = {field.type for field in fields if field.common.unique}
        sizes: list[tuple[type[FieldType], int]] = [
            (ProductCategory, len(goods.categories)),
            (Product, len(goods.products)),
            (ProductName, goods.size),
        ]
        self._size = next((size for kind, size in sizes if kind in unique), None)

    def prepare(self, env: GenerationContext, fixed: dict[str, Any]) -> tuple[Any, list[Fault]]:
        goods, products, unmet = self._goods, np.arange(len(self._goods.products)), []
        by_name = {field.name: field.type for field in self.fields}
        for name, value in fixed.items():
            kind = by_name[name]
            if value is None:
                continue
            assert issubclass(kind, _ProductField)
            matches = np.array([kind.matches(goods, product, str(value)) for product in products])
            if matches.any() and self._size is None:
                products = products[matches]
            else:
                reason = "one of them is unique" if matches.any() else f'there is no "{value}"'
                text = f"The other fields of the product ignore this value: {reason}."
                unmet.append(Fault(f"overrides.{name}", "no_match", text, ""))
        return products, unmet

    def draw(self, draws: RandomStream, state: Any) -> ProductSelection:
        goods = self._goods
        if self._size is None:
            return goods.pick(draws.below(goods.name_count(state)), state)
        index = draws.permuted(self._size)
        if self._size == goods.size:
            return goods.pick(index, np.arange(len(goods.products)))
        product = index.view(np.int64)
        if self._size == len(goods.categories):
            product = np.searchsorted(goods.category, product)
        return ProductSelection(product, goods.draw_epithets(product, draws))


class _ProductField(FieldType):
    category = "company"
    group_kind = "product"
    localised = True
    dtype = pa.string()

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        group = compiler.fields_of_same_group(field)
        self._goods = catalogue(compiler, group)
        locale = person.locale_of_group(group, compiler, None)
        in_language = locale is None or locale.startswith("en") or isinstance(self._goods, LocalCatalogue)
        if self.localised and compiler.vocabulary.engine >= 2 and not in_language:
            compiler.warn_english(field, locale)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        # The group has seen that the field is unique.
        return self.fill(context)

    @staticmethod
    @abstractmethod
    def matches(goods: Catalogue, product: np.integer, value: str) -> bool:
        """Return whether ``value`` of this field is consistent with a product."""


class Product(_ProductField):
    """What the row's product is, in a word or two."""

    name = "product"
    label = "Product"
    description = "A type of product, such as Desk Lamp."
    aliases = ("product type", "item", "merchandise", "commerce product", "product grocery")
    example = "Desk Lamp"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = max_text_length(self._goods.products)

    def fill(self, context: ColumnContext) -> pa.Array:
        return dictionary_array(self._goods.products, context.group(ProductSelection).product)

    def distinct_count(self) -> int:
        return len(self._goods.products)

    @staticmethod
    def matches(goods: Catalogue, product: np.integer, value: str) -> bool:
        return goods.products[product].as_py() == value


class ProductName(_ProductField):
    """An adjective, a colour or material, and the row's product."""

    name = "product_name"
    label = "Product Name"
    description = "The name of a product, such as Rustic Walnut Desk Lamp."
    aliases = ("product title", "item name", "commerce product name")
    example = "Rustic Walnut Desk Lamp"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = self._goods.longest_name

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._goods.names(context.group(ProductSelection))

    def distinct_count(self) -> int:
        return self._goods.size

    @staticmethod
    def matches(goods: Catalogue, product: np.integer, value: str) -> bool:
        return goods.is_name_of(product, value)


class ProductCategory(_ProductField):
    """Where a shop files the row's product."""

    name = "product_category"
    label = "Product Category"
    description = "The store department of the row's product."
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
        self.max_length = max_text_length(self._goods.categories)

    def fill(self, context: ColumnContext) -> pa.Array:
        return dictionary_array(
            self._goods.categories, self._goods.category[context.group(ProductSelection).product]
        )

    def distinct_count(self) -> int:
        return len(self._goods.categories)

    @staticmethod
    def matches(goods: Catalogue, product: np.integer, value: str) -> bool:
        return goods.categories[int(goods.category[product])].as_py() == value


class Sku(_ProductField):
    """Three letters of the product's category, a hyphen, and characters that identify the item."""

    name = "sku"
    label = "SKU"
    description = "A stock keeping unit with the category as prefix, such as FUR-7K2M9X."
    aliases = (
        "stock keeping unit",
        "product code",
        "article number",
        "item number",
        "part number",
        "product sku",
    )
    example = "FUR-7K2M9X"
    localised = False

    class Options(OptionsModel):
        length: int = Field(6, ge=1, le=11, description="Number of characters after the hyphen.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        length = options.length
        # Without I, O, 0 and 1, which people mix up.
        tail = Run(DIGITS[2:] + UPPER.replace("I", "").replace("O", ""), length)
        self._code = compiler.vocabulary.cached(
            ("sku", length, self._goods.codes), lambda: Code(Pick(self._goods.codes), "-", tail)
        )
        self._tails = self._code.space // len(self._goods.codes)
        self.max_length = self._code.width

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._text(context, context.below(self._tails))

    def distinct_count(self) -> int:
        return self._tails

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self._text(context, context.permuted(self._tails))

    @staticmethod
    def matches(goods: Catalogue, product: np.integer, value: str) -> bool:
        return value.startswith(f"{goods.codes[int(goods.category[product])]}-")

    def _text(self, context: ColumnContext, tail: np.ndarray) -> pa.Array:
        category = self._goods.category[context.group(ProductSelection).product].astype(np.uint64)
        return self._code.text([category * np.uint64(self._tails) + tail])


class _ArticleNumber(CodeType):
    category = "company"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(compiler.vocabulary.cached(self.name, lambda: Code(*self.parts())))

    @staticmethod
    @abstractmethod
    def parts() -> tuple[Any, ...]:
        """The parts of the number."""


class Ean13(_ArticleNumber):
    """GTIN-13 with a prefix from 200 to 299, which GS1 leaves to shops for their own use."""

    name = "ean13"
    label = "EAN-13"
    description = "An article number (EAN-13, GTIN-13) with a valid check digit, from the in-store range."
    aliases = (
        "localized ean",
        "ean",
        "gtin",
        "gtin 13",
        "barcode",
        "international article number",
        "localized ean13",
    )
    example = "2713857724736"

    @staticmethod
    def parts() -> tuple[Any, ...]:
        return "2", Run(DIGITS, 11), codes.gs1(12)


class Ean8(_ArticleNumber):
    """GTIN-8 with prefix 2, which GS1 leaves to shops for their own use."""

    name = "ean8"
    label = "EAN-8"
    description = "A short article number (EAN-8, GTIN-8) with a valid check digit, from the in-store range."
    aliases = (
        "localized ean8",
        "gtin 8",
    )
    example = "27138576"

    @staticmethod
    def parts() -> tuple[Any, ...]:
        return "2", Run(DIGITS, 6), codes.gs1(7)


class Upc(_ArticleNumber):
    """UPC-A with number system 4, which GS1 leaves to shops for their own use."""

    name = "upc"
    label = "UPC"
    description = "A US article number (UPC-A) with a valid check digit, from the in-store range."
    aliases = ("upc a", "gtin 12", "universal product code")
    example = "471385772479"

    @staticmethod
    def parts() -> tuple[Any, ...]:
        return "4", Run(DIGITS, 10), codes.gs1(11)


class Isbn(_ArticleNumber):
    """ISBN-13 of the English-language group, without hyphens."""

    name = "isbn"
    label = "ISBN"
    description = "A book number (ISBN-13) with a valid check digit, without hyphens."
    aliases = ("isbn 13", "isbn13", "book number")
    example = "9780713857726"

    @staticmethod
    def parts() -> tuple[Any, ...]:
        return "978", Run("01"), Run(DIGITS, 8), codes.gs1(12)


class Issn(_ArticleNumber):
    """ISSN (ISO 3297), with its hyphen."""

    name = "issn"
    label = "ISSN"
    description = "The number of a periodical (ISSN), with a valid check digit."
    aliases = ("periodical number",)
    example = "7138-5770"

    @staticmethod
    def parts() -> tuple[Any, ...]:
        return (
            Run(DIGITS, 4),
            Gap("-"),
            Run(DIGITS, 3),
            codes.weighted((8, 7, 6, 5, 4, 3, 2), 11, "0X987654321"),
        )

"""Prices and shares; numbers of orders, invoices and companies."""

from __future__ import annotations

import re
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
from webapp.engine.fields.amounts import Amount
from webapp.engine.fields.base import FieldType, IndexedType, OptionsModel
from webapp.engine.fields.code_parts import DIGITS, UPPER, Gap, Run
from webapp.engine.fields.codes import Code, CodeType
from webapp.engine.fields.joining import joined
from webapp.engine.fields.text_types import Masked

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_CENT = 100


class Price(IndexedType):
    """An amount as shops write it: any whole number with one of the endings."""

    name = "price"
    label = "Price"
    category = "finance"
    description = "A price as shops write it, such as 24.99."
    aliases = ("price tag", "pricetag", "retail price", "unit price", "list price", "selling price")
    example = 24.99
    dtype = pa.decimal128(38, 2)

    class Options(OptionsModel):
        min: Amount = Field(Decimal(1), description="Smallest price.")
        max: Amount = Field(Decimal(500), description="Largest price.")
        endings: tuple[Annotated[int, Field(ge=0, le=_CENT - 1)], ...] = Field(
            (99, 95, 49, 0),
            min_length=1,
            max_length=_CENT,
            description="Hundredths that prices end in.",
            examples=[[99]],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        endings = sorted(set(options.endings))
        self._endings = np.array(endings, np.int64)
        low, high = ceil(options.min * _CENT), floor(options.max * _CENT)
        self._first = self._before(low) + self._below(low, inside=False)
        self.size = self._before(high) + self._below(high, inside=True) - self._first
        self._low, self._high = low, high
        if options.min < 0:
            text = "A price is 0 or more."
            compiler.fault(field, "options.min", "out_of_range", text, "Raise min, or use type money.")
        elif options.min > options.max:
            text = f"min ({options.min}) is larger than max ({options.max})."
            compiler.fault(field, "options.min", "min_above_max", text, "Swap them.")
        elif self.size < 1:
            text = f"No price from {options.min} to {options.max} ends so."
            compiler.fault(field, "options.endings", "too_narrow", text, "Widen min and max, or add endings.")

    def _before(self, units: int) -> int:
        """How many prices have a smaller whole number than ``units`` has."""
        return units // _CENT * self._endings.size

    def _below(self, units: int, inside: bool) -> int:
        """How many endings are smaller than that of ``units`` (or, ``inside``, no larger)."""
        return int(np.searchsorted(self._endings, units % _CENT, "right" if inside else "left"))

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        whole, ending = np.divmod(index.view(np.int64) + self._first, self._endings.size)
        return text.decimals(whole * _CENT + self._endings.take(ending), 2)

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
    description = "The symbol of a share, such as QRTX."
    aliases = ("ticker", "ticker symbol", "stock ticker", "share symbol", "stock code")
    example = "QRTX"
    dtype = pa.string()
    max_length = 4
    size = 26**2 * (26 + 26**2)

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._heads, self._tails = _symbol_parts()

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        head, tail = np.divmod(index, np.uint64(len(self._tails)))
        return joined((self._heads, head), (self._tails, tail))

    @classmethod
    def capacity(cls) -> int:
        return cls.size


@cache
def _symbol_parts() -> tuple[pa.StringArray, pa.StringArray]:
    pairs = [one + other for one in UPPER for other in UPPER]
    return pa.array(pairs), pa.array([*UPPER, *pairs])


class OrderNumber(Masked):
    """A mask of random characters: order numbers that tell nobody how many there are."""

    name = "order_number"
    label = "Order number"
    category = "company"
    description = "The number of an order, such as ORD-40718265."
    aliases = ("order no", "order code", "purchase order", "po number", "booking number", "ticket number",
               "tracking number", "confirmation number")  # fmt: skip
    example = "ORD-40718265"
    option = "format"

    class Options(OptionsModel):
        format: str = Field(
            "ORD-########",
            min_length=1,
            max_length=limits.MAX_PATTERN_CHARS,
            description="# is a digit, @ a lower-case letter, ^ an upper-case letter, * any of them; a backslash "
            "before a mark keeps it as it is.",
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
    """Numbers that count up from row to row without a gap, as the law wants of invoices; the date is that of now."""

    name = "invoice_number"
    label = "Invoice number"
    category = "company"
    description = "The number of an invoice, counting up without a gap, such as INV-2026-000001."
    aliases = ("invoice no", "bill number", "receipt number", "document number")
    example = "INV-2026-000001"
    dtype = pa.string()

    class Options(OptionsModel):
        format: str = Field(
            "INV-YYYY-######",
            min_length=1,
            max_length=limits.MAX_AFFIX_CHARS,
            description="# stand for the number, with leading zeros; YYYY, YY and MM for year and month of now.",
            examples=["RE########"],
        )
        start: int = Field(1, ge=0, le=limits.MAX_INTEGER, description="Number of the first row.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        runs = re.findall("#+", options.format)
        if len(runs) != 1:
            text = "The number stands in one place of the format."
            compiler.fault(
                field, "options.format", "wrong_format", text, "Write one run of #, as in INV-####."
            )
        self._digits = len(runs[0]) if runs else 1
        self.max_length = len(options.format) + max(0, 19 - self._digits)

    def prepare(self, env: Env) -> tuple[str, str]:
        dated = {
            "YYYY": f"{env.now.year:04d}",
            "YY": f"{env.now.year % 100:02d}",
            "MM": f"{env.now.month:02d}",
        }
        spelled = _TOKEN.sub(lambda found: dated.get(found[0], "\0"), self.options.format)
        before, _, after = spelled.partition("\0")
        return before, after

    def fill(self, cells: Cells) -> pa.Array:
        before, after = cells.state
        numbers = pa.array(cells.rows.view(np.int64) + self.options.start).cast(pa.string())
        return pc.binary_join_element_wise(before, pc.utf8_lpad(numbers, self._digits, "0"), after, "")

    def rows_in(self, state: Any) -> int:
        return 1 << 62

    def space(self) -> int:
        return 1 << 62

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)


class Duns(CodeType):
    """Nine digits; since 2006 no check digit is among them."""

    name = "duns"
    label = "D-U-N-S number"
    category = "company"
    description = "The number of a company in Dun & Bradstreet's register: nine digits."
    aliases = ("duns number", "dun and bradstreet", "d u n s")
    example = "15-048-3782"

    class Options(OptionsModel):
        formatted: bool = Field(True, description="With hyphens: 15-048-3782.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        between = [Gap("-")] if options.formatted else []
        make = lambda: Code(Run(DIGITS, 2), *between, Run(DIGITS, 3), *between, Run(DIGITS, 4))  # noqa: E731
        self.use(compiler.vocabulary.shared(("duns", options.formatted), make))

    @classmethod
    def capacity(cls) -> int:
        return 10**9

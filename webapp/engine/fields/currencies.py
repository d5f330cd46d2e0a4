"""Money: amounts, and the currencies of a row."""

from __future__ import annotations

from abc import abstractmethod
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp.engine.fields import amounts, nations
from webapp.engine.fields.amounts import Amount
from webapp.engine.fields.base import FieldType, GroupKind, OptionsModel, longest, pooled
from webapp.engine.fields.geography import geography_of
from webapp.engine.fields.spread import Spread
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Draws, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_PLACES = 2
_DEFAULT_LOW, _DEFAULT_HIGH = Decimal(1), Decimal(1000)


class Currency(FieldType):
    """An amount of money with two decimals: even between min and max, or by a normal distribution."""

    name = "currency"
    label = "Currency"
    category = "finance"
    description = "An amount of money with two decimals."
    aliases = ("currency amount", "money amount", "amount", "currency value", "salary")
    example = 482.17

    class Options(OptionsModel):
        min: Amount | None = Field(
            None, description="Least amount; 1 if neither this nor max is given, else 0."
        )
        max: Amount | None = Field(None, description="Largest amount; 1,000 if nothing else is given.")
        mean: Amount | None = Field(None, description="Mean of a normal distribution, cut at min and max.")
        stddev: Amount | None = Field(
            None, description="Its standard deviation; a quarter of the mean if not given."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        before = len(compiler.faults)
        self._spread = Spread(field, _spread_of(options), compiler, _PLACES, "decimals")
        self.dtype = pa.decimal128(38, _PLACES)
        if len(compiler.faults) == before:
            self.max_length = amounts.longest(self._spread.low, self._spread.high, _PLACES)

    def fill(self, cells: Cells) -> pa.Array:
        return amounts.column(self._spread.draw(cells.bits()), _PLACES)

    def bounds(self, rows: int) -> tuple[int, int]:
        return self._spread.low, self._spread.high

    def space(self) -> int | None:
        return self._spread.size

    def fill_unique(self, cells: Cells) -> pa.Array:
        assert self._spread.size is not None
        return amounts.column(self._spread.at(cells.permuted(self._spread.size)), _PLACES)

    def unique_hint(self) -> str:
        return "Unique amounts are drawn evenly: take mean and stddev away, or take unique away."


def _spread_of(options: Any) -> SimpleNamespace:
    """What `Spread` reads, with the defaults of money: no amount is below 0 unless asked for."""
    low, high, mean, stddev = options.min, options.max, options.mean, options.stddev
    normal = mean is not None or stddev is not None
    if low is None and high is None and not normal:
        low, high = _DEFAULT_LOW, _DEFAULT_HIGH
    if low is None and (high is None or high >= 0) and (mean is None or mean >= 0):
        low = Decimal(0)
    if high is None and mean is None:
        high = (low or Decimal(0)) + _DEFAULT_HIGH
    if mean is not None and stddev is None:
        stddev = max((abs(mean) / 4).quantize(Decimal("0.01")), Decimal("0.01"))
    return SimpleNamespace(
        min=low, max=high, step=None, distribution="normal" if normal else "uniform", mean=mean, stddev=stddev,
        alpha=None, lambda_=None,
    )  # fmt: skip


class CurrencyKind(GroupKind):
    """One currency a row: its code, name and symbol belong together. In a group that has a place too, the place's
    country decides instead."""

    kind = "currency"

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        self._unique = any(field.common.unique for field in fields)
        self._columns = {
            field.name: field.type.values(compiler, field)
            for field in fields
            if issubclass(field.type, _CurrencyField)
        }
        self.size = len(next(iter(self._columns.values())))
        self._placed = bool(compiler.members(fields[0].group or self.kind, "place"))

    def prepare(self, env: Env, fixed: dict[str, Any]) -> tuple[Any, list[Fault]]:
        kept, unmet = np.arange(self.size), []
        for name, value in fixed.items():
            if self._placed:
                break  # the place answers for it
            fitting = [i for i in kept.tolist() if self._columns[name][i].as_py() == value]
            if fitting and not self._unique:
                kept = np.array(fitting)
            elif value is not None:
                reason = "one of them is unique" if self._unique else f'no currency is "{value}"'
                text = f"The other fields of the currency do not follow this value: {reason}."
                unmet.append(Fault(f"overrides.{name}", "no_match", text, ""))
        return kept, unmet

    def draw(self, draws: Draws, state: Any) -> np.ndarray:
        if self._unique:
            return draws.permuted(self.size).view(np.int64)
        return state[draws.below(state.size).view(np.int64)]


class _CurrencyField(FieldType):
    category = "finance"
    group_kind = "currency"
    beside = "place"
    dtype = pa.string()

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = self.values(compiler, field)
        self.max_length = longest(self._pool)
        self._place = self.reads(field.group or self.group_kind)
        self._of_country = None
        if compiler.members(*self._place):
            geography = geography_of(compiler.vocabulary)
            self._of_country = nations.currency_rows(compiler.vocabulary, geography)

    @classmethod
    def reads(cls, group: str) -> tuple[str, str]:
        return group, "place"

    @classmethod
    @abstractmethod
    def values(cls, compiler: Compiler, field: FieldSpec) -> pa.Array:
        """One text for each currency, in the vocabulary's order."""

    def fill(self, cells: Cells) -> pa.Array:
        if self._of_country is None:
            return pooled(self._pool, cells.group())
        rows = self._of_country[cells.thing(*self._place).country]
        if rows.min(initial=0) >= 0:
            return pooled(self._pool, rows)
        return self._pool.take(pa.array(rows, mask=rows < 0))

    def space(self) -> int | None:
        return len(self._pool) if self._of_country is None else None

    def unique_hint(self) -> str:
        return "It is the currency of the row's country; give it a group of its own."

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)


class CurrencyCode(_CurrencyField):
    """ISO 4217 codes of the currencies that are tender somewhere."""

    name = "currency_code"
    label = "Currency Code"
    description = "The three letters of a currency, such as EUR."
    aliases = ("iso currency", "iso 4217", "currency iso code")
    example = "EUR"

    @classmethod
    def values(cls, compiler: Compiler, field: FieldSpec) -> pa.Array:
        return column(compiler, "code")


class CurrencySymbol(_CurrencyField):
    """Signs of currencies; the code where there is no sign of its own."""

    name = "currency_symbol"
    label = "Currency Symbol"
    description = "The sign of a currency, such as €; its code where it has none."
    aliases = ("currency sign",)
    example = "€"

    @classmethod
    def values(cls, compiler: Compiler, field: FieldSpec) -> pa.Array:
        return column(compiler, "symbol")


class CurrencyName(_CurrencyField):
    """Names of currencies in the language of the locale."""

    name = "currency_name"
    label = "Currency Name"
    description = "The name of a currency, such as Swiss Franc."
    aliases = ("name of currency",)
    example = "Swiss Franc"
    localised = True

    @classmethod
    def values(cls, compiler: Compiler, field: FieldSpec) -> pa.Array:
        vocabulary = compiler.vocabulary
        locale = vocabulary.resolve(compiler.locale_of(field) or "en_US") or "en_US"
        return vocabulary.shared(("currency names", locale), lambda: _names(vocabulary, locale))


def column(compiler: Compiler, name: str) -> pa.Array:
    """A column of the table of currencies; the same buffers at every call."""
    vocabulary = compiler.vocabulary
    return vocabulary.shared(
        ("currencies", name), lambda: vocabulary.table("currency")[name].combine_chunks()
    )


def _names(vocabulary: Any, locale: str) -> pa.Array:
    table = vocabulary.table("currency_name")
    size = vocabulary.table("currency").num_rows
    first = table["locale"].index(locale).as_py()
    return pa.array(table["name"].slice(first, size).to_pylist())

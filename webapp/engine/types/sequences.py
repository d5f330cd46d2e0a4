"""Numbers and lists that are used in order, and numbers with a currency or percent sign."""

from __future__ import annotations

from decimal import Decimal
from math import prod
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp import limits
from webapp.engine import text
from webapp.engine.types import amounts, values
from webapp.engine.types.amounts import Amount
from webapp.engine.types.base import FieldType, OptionsModel
from webapp.engine.types.number import Number, Numeric, StepOptions, StepType

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_SYMBOL_CHARS = 10


class Counter(StepType):
    """start, start + step ... up to ``end``, and over again."""

    name = "counter"
    label = "Counter"
    description = "Counts up from a start value; with an end, starts over."
    aliases = ("count", "cyclic counter", "loop counter")
    example = 1

    class Options(StepOptions):
        step: int = Field(
            1,
            ge=-limits.MAX_INTEGER,
            le=limits.MAX_INTEGER,
            description=("Difference between consecutive rows."),
        )
        end: int | None = Field(
            None,
            ge=-limits.MAX_INTEGER,
            le=limits.MAX_INTEGER,
            description="Last value before the counter starts over. Default: never starts over.",
        )

    options: Options

    _period: int | None = None

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.end is not None and options.step:
            self._period = (options.end - options.start) // options.step + 1
            if self._period < 1:
                message = (
                    f"With a step of {options.step}, {options.end} cannot be reached from {options.start}."
                )
                compiler.fault(field, "options.end", "wrong_value", message, "Change the sign of the step.")

    def step_numbers(self, rows: np.ndarray) -> np.ndarray:
        return rows if self._period is None else rows % np.uint64(self._period)

    def available_rows(self, state: Any) -> int | None:
        return None if self._period else super().available_rows(state)

    def distinct_count(self) -> int | None:
        return self._period or super().distinct_count()

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return super().bounds(min(rows, self._period or rows))


class Cartesian(FieldType):
    """Row r has combination r of the lists, the last list changing fastest; after the last one over again."""

    name = "cartesian"
    label = "All combinations"
    category = "choice"
    description = "All combinations of several lists, in order."
    aliases = ("cartesian product", "combinations", "cross product", "all combinations")
    example = "red small"
    dtype = pa.string()

    class Options(OptionsModel):
        lists: Annotated[
            tuple[Annotated[tuple[Any, ...], Field(min_length=1, max_length=limits.MAX_LIST_VALUES)], ...],
            Field(min_length=1, max_length=limits.MAX_NESTING),
        ] = Field(description="The lists.", examples=[[["red", "blue"], ["small", "large"]]])
        separator: str = Field(
            " ", max_length=limits.MAX_AFFIX_CHARS, description="Separator between the parts."
        )
        part: int | None = Field(
            None,
            ge=1,
            le=limits.MAX_NESTING,
            description="Outputs only the value from this list (1 is the first), so that several fields "
            "with the same lists form the combinations.",
            examples=[2],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._sizes = [len(listed) for listed in options.lists]
        self._pools = [values.pool_of(listed) for listed in options.lists]
        for number, pool in enumerate(self._pools):
            if pool.has_null:
                message = "A list must not contain null."
                compiler.fault(
                    field, f"options.lists[{number}]", "wrong_value", message, 'Use "" for an empty value.'
                )
        if prod(self._sizes) > limits.MAX_COMBINATIONS:
            message = (
                f"There are {prod(self._sizes):,} combinations; the maximum is {limits.MAX_COMBINATIONS:,}."
            )
            compiler.fault(field, "options.lists", "out_of_range", message, "Use shorter lists.")
        if options.part is not None:
            if options.part > len(self._pools):
                message = f"There are {len(self._pools)} lists."
                hint = "Use the number of a list, starting at 1."
                compiler.fault(field, "options.part", "out_of_range", message, hint)
                return
            if "separator" in options.model_fields_set:
                message = "part and separator cannot be combined."
                compiler.fault(field, "options.separator", "conflict", message, "Set part or separator.")
            pool = self._pools[options.part - 1]
            self.dtype, self.is_json_text = pool.values.type, pool.json_text
            if pa.types.is_string(self.dtype):
                self.max_length = values.max_text_length(pool)
            return
        self._texts = [text.to_text(pool.values) for pool in self._pools]
        lengths = [pc.max(pc.utf8_length(texts)).as_py() or 0 for texts in self._texts]
        self.max_length = sum(lengths) + len(options.separator) * (len(lengths) - 1)

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._column(context.rows, [pool.indices for pool in self._pools])

    def _column(self, rows: np.ndarray, places: list[np.ndarray]) -> pa.Array:
        parts, rest = [], rows % np.uint64(prod(place.size for place in places))
        for number in reversed(range(len(places))):
            rest, index = np.divmod(rest, np.uint64(places[number].size))
            if self.options.part == number + 1:
                chosen = pa.array(places[number][index])
                return pa.DictionaryArray.from_arrays(chosen, self._pools[number].values, safe=False)
            if self.options.part is None:
                parts.append(self._texts[number].take(pa.array(places[number][index])))
        return pc.binary_join_element_wise(*reversed(parts), self.options.separator)

    def distinct_count(self) -> int | None:
        if self.options.part is not None:
            return None
        if len(self._pools) > 1:
            # Two combinations might be written the same way.
            separator = values.fold_text(f"x{self.options.separator}x")[1:-1]
            folded = [values.fold_text(value) for texts in self._texts for value in texts.to_pylist()]
            if not separator or "" in folded or any(separator in value for value in folded):
                return None
        return prod(pool.distinct.size for pool in self._pools)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        places = [pool.distinct for pool in self._pools]
        together = self.field.common.unique_together is not None
        rows = context.permuted(prod(place.size for place in places)) if together else context.rows
        return self._column(rows, places)

    def unique_hint(self) -> str:
        if self.options.part is not None:
            return "A single part repeats its values: remove part."
        return "Use a separator that no value contains, and no empty values."


class Percentage(Numeric):
    """A share of a hundred."""

    name = "percentage"
    label = "Percentage"
    description = "A number from 0 to 100, or in another range, with or without a percent sign."
    aliases = ("percent", "pct", "ratio percent")
    example = 42

    class Options(OptionsModel):
        min: Amount = Field(Decimal(0), description="Minimum.")
        max: Amount = Field(Decimal(100), description="Maximum.")
        decimals: int = Field(0, ge=0, le=limits.MAX_DECIMALS, description="Decimal places.")
        symbol: bool = Field(False, description="Appends a % sign; outputs text.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        self.stringify = options.symbol
        number_options = {"min": options.min, "max": options.max, "decimals": options.decimals}
        super().__init__(field, Number.Options.model_validate(number_options), compiler)
        if self.max_length is not None:
            self.max_length += 1

    def _column(self, units: np.ndarray) -> pa.Array:
        numbers = super()._column(units)
        return pc.binary_join_element_wise(numbers, "%", "") if self.stringify else numbers

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return None if self.stringify else super().bounds(rows)

    @classmethod
    def capacity(cls) -> int:
        return 101


class Money(Numeric):
    """An amount with its symbol in front."""

    name = "money"
    label = "Money"
    category = "number"
    description = "An amount of money with its symbol, such as $12.50."
    aliases = ("money with symbol", "amount with symbol", "formatted money")
    example = "$417.25"
    stringify = True

    class Options(OptionsModel):
        min: Amount = Field(Decimal(0), description="Minimum amount.")
        max: Amount = Field(Decimal(1000), description="Maximum amount.")
        symbol: str = Field(
            "$",
            max_length=_SYMBOL_CHARS,
            description="Symbol before the amount. Leave empty for the number only.",
            examples=["€"],
        )
        decimals: int = Field(2, ge=0, le=limits.MAX_DECIMALS, description="Decimal places.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        self.stringify, self._symbol = bool(options.symbol), options.symbol
        given = {"min": options.min, "max": options.max, "decimals": options.decimals}
        super().__init__(field, Number.Options.model_validate(given), compiler)
        if self.max_length is not None:
            self.max_length += len(self._symbol)

    def _column(self, units: np.ndarray) -> pa.Array:
        if not self.stringify:
            return super()._column(units)
        digits = text.to_text(amounts.to_column(np.abs(units), self._places))
        if not (units < 0).any():
            return pc.binary_join_element_wise(self._symbol, digits, "")
        sign = pa.array(["", "-"]).take(pa.array((units < 0).astype(np.int8)))
        return pc.binary_join_element_wise(sign, self._symbol, digits, "")

    @classmethod
    def capacity(cls) -> int:
        return 100_001

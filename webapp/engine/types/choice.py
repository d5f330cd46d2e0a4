"""Choices from a user's values: uniform, weighted, in turn, or looked up from another field."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine import random as engine_random
from webapp.engine import text
from webapp.engine.types import values
from webapp.engine.types.amounts import Amount, integer_weights
from webapp.engine.types.base import FieldType, OptionsModel

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_CACHED_POOLS = 8

Values = Annotated[tuple[Any, ...], Field(min_length=1, max_length=limits.MAX_LIST_VALUES)]


class Listed(OptionsModel):
    """The values to choose from."""

    values: Values


class _Listed(FieldType):
    """Values out of ``options.values``; null among them makes blank cells."""

    category = "choice"
    options: Listed

    def __init__(self, field: FieldSpec, options: Listed, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = values.pool_of(options.values)
        self.dtype, self.is_json_text = self._pool.values.type, self._pool.json_text
        if not len(self._pool.values):
            compiler.fault(field, "options.values", "too_few", "All values are null.", "Use type null.")
        elif pa.types.is_string(self.dtype):
            self.max_length = values.max_text_length(self._pool)

    def distinct_count(self) -> int | None:
        return None if self._pool.has_null else len(self._pool.distinct)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        chosen = self._pool.distinct[context.permuted(len(self._pool.distinct))]
        return pa.DictionaryArray.from_arrays(pa.array(chosen), self._pool.values, safe=False)

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return self._pool.bounds

    def unique_hint(self) -> str:
        return "Remove null from the values: blank cells are not unique."


class Custom(_Listed):
    """One of the values, each as likely; a value written twice is twice as likely."""

    name = "custom"
    label = "Custom list"
    description = "A random value from a custom list, with equal probability."
    aliases = ("custom values", "list", "random element", "one of", "random choice", "list values")
    example = "silver"

    class Options(Listed):
        values: Values = Field(
            description="The values: texts, numbers, booleans, null or JSON values. If all have one "
            "type, it is kept; mixed types become text.",
            examples=[["bronze", "silver", "gold"]],
        )

    options: Options

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._pool.at(context.below(len(self.options.values)))


class Enum(_Listed):
    """One of the values, with optional weights."""

    name = "enum"
    label = "Enum"
    description = "A random value from a list, with optional weights."
    aliases = ("enumeration", "weighted", "set of values", "pick list", "status")
    example = "paid"

    class Options(Listed):
        values: Values = Field(
            description="The values, as for a custom list.", examples=[["open", "paid", "cancelled"]]
        )
        weights: tuple[Amount, ...] | None = Field(
            None,
            description="A relative weight for each value, in the same order. Default: equal weights.",
            examples=[[70, 25, 5]],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._weighted: engine_random.AliasSampler | None = None
        if options.weights is None:
            return
        weights, count = options.weights, len(options.values)
        if len(weights) != count:
            message = f"There are {count} values and {len(weights)} weights."
            hint = "Set one weight for each value."
            compiler.fault(field, "options.weights", "wrong_length", message, hint)
            return
        for i, weight in enumerate(weights):
            if weight < 0:
                compiler.fault(field, f"options.weights[{i}]", "wrong_value", "A weight must be 0 or more.")
        if min(weights) >= 0 and not any(weights):
            compiler.fault(
                field, "options.weights", "wrong_value", "At least one weight must be more than 0."
            )
        elif min(weights) >= 0:
            self._weighted = engine_random.AliasSampler(integer_weights(weights))

    def fill(self, context: ColumnContext) -> pa.Array:
        if self._weighted is None:
            return self._pool.at(context.below(len(self.options.values)))
        return self._pool.at(self._weighted.draw(context.bits()))

    def distinct_count(self) -> int | None:
        return None if self.options.weights is not None else super().distinct_count()

    def unique_hint(self) -> str:
        if self.options.weights is not None:
            return "Unique values are drawn evenly: remove the weights, or remove unique."
        return super().unique_hint()


class WeightedList(Enum):
    """One of the values, with required weights."""

    name = "weighted_list"
    label = "Weighted list"
    description = "A random value from a list with weights."
    aliases = (
        "weighted choice",
        "custom distribution",
        "random elements",
        "weighted values",
        "weighted random",
    )
    example = "paid"

    class Options(Enum.Options):
        weights: tuple[Amount, ...] = Field(
            description="A relative weight for each value, in the same order.", examples=[[70, 25, 5]]
        )

    options: Options


class ListSequential(_Listed):
    """The values in turn, from the first again after the last."""

    name = "list_sequential"
    label = "List in turn"
    description = "Custom values in order, repeated."
    aliases = ("sequential list", "cycle", "round robin", "custom list sequential")
    example = "Monday"

    class Options(Listed):
        values: Values = Field(
            description="The values, as for a custom list.", examples=[["north", "east", "south"]]
        )

    options: Options

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._pool.at(context.rows % np.uint64(len(self.options.values)))


class Mapped(FieldType):
    """The value that a map assigns to another field's value."""

    name = "mapped"
    label = "Mapped"
    category = "choice"
    description = "Another field's value, translated with a lookup map."
    aliases = ("map", "lookup", "mapping", "translate", "case map")
    example = "Germany"

    class Options(OptionsModel):
        field: str = Field(
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            validation_alias=AliasChoices("field", "source", "source_field"),
            description="Name of the field to look up.",
        )
        map: dict[str, Any] = Field(
            min_length=1,
            max_length=limits.MAX_LIST_VALUES,
            validation_alias=AliasChoices("map", "mapping", "mappings"),
            description="Output for each value of the field. Values are compared as text.",
            examples=[{"DE": "Germany", "FR": "France"}],
        )
        default: Any = Field(None, description="Output for values that are not in the map, including blanks.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = values.pool_of([*options.map.values(), options.default])
        self.dtype, self.is_json_text = self._pool.values.type, self._pool.json_text
        if pa.types.is_string(self.dtype):
            self.max_length = values.max_text_length(self._pool)
        if not len(self._pool.values):
            compiler.fault(field, "options.map", "too_few", "All values are null.", "Use type null.")
        self._keys = pa.array(list(options.map), pa.string())
        self._pool_places: OrderedDict[tuple[int, ...], tuple[pa.Array, np.ndarray]] = OrderedDict()
        source = compiler.require_column(field, "options.field", options.field)
        self.required_fields = (options.field,)
        if source is not None and pa.types.is_nested(source.dtype):
            message = f'"{options.field}" contains objects or arrays, which cannot be keys of a map.'
            compiler.fault(
                field, "options.field", "wrong_type", message, "Choose a field with single values."
            )

    def fill(self, context: ColumnContext) -> pa.Array:
        source = context.column(self.options.field)
        if not pa.types.is_dictionary(source.type):
            return self._pool.at(self._places(source))
        # The places of a pool's values, followed by the default's, are looked up once while the pool is cached.
        pool = source.dictionary
        address = (*(buffer.address if buffer else 0 for buffer in pool.buffers()), pool.offset, len(pool))
        cached = self._pool_places.get(address)
        if cached is None:
            cached = self._pool_places[address] = (pool, np.append(self._places(pool), len(self._keys)))
            while len(self._pool_places) > _CACHED_POOLS:
                self._pool_places.popitem(last=False)
        places = cached[1]
        indices = source.indices
        if indices.null_count:
            indices = pc.fill_null(indices, len(places) - 1)
        return self._pool.at(places[indices.to_numpy()])

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return self._pool.bounds

    def _places(self, column: pa.Array) -> np.ndarray:
        """Return the number of each value's map entry; the last number, of the default, for values without one."""
        found = pc.index_in(text.to_text(column), value_set=self._keys)
        return pc.fill_null(found, len(self._keys)).to_numpy()

"""Values entered by a user, as one Arrow pool: lists to choose from, truthy and falsy values, maps."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from webapp import limits
from webapp.engine import text
from webapp.engine.types import amounts, base

_INT64 = range(-(2**63), 2**63)


_CACHED_VALUES = 1000


@dataclass(frozen=True)
class ValuePool:
    """``values`` without duplicates and without null; ``place[i]`` is the position of the i-th input value, -1 for
    null."""

    values: pa.Array
    indices: np.ndarray
    json_text: bool = False

    @property
    def has_null(self) -> bool:
        """Whether the values include null."""
        return bool((self.indices < 0).any())

    @cached_property
    def distinct(self) -> np.ndarray:
        """``int32[k]``: places of the values that differ as databases compare them, in case and accents too."""
        if not pa.types.is_string(self.values.type):
            return np.arange(len(self.values), dtype=np.int32)
        first: dict[str, int] = {}
        for i, value in enumerate(self.values.to_pylist()):
            # Upper case also merges letters: a dotless i differs from i until both are I.
            first.setdefault(fold_text(value.upper()), i)
        return np.array(list(first.values()), np.int32)

    @cached_property
    def bounds(self) -> tuple[int, int] | None:
        """Return the minimum and maximum in units of the last decimal; None if they are not numbers."""
        if not len(self.values) or not (
            pa.types.is_integer(self.values.type) or pa.types.is_decimal(self.values.type)
        ):
            return None
        scale = getattr(self.values.type, "scale", 0)
        units = [int(value * 10**scale) for value in self.values.to_pylist()]
        return min(units), max(units)

    def at(self, index: np.ndarray) -> pa.DictionaryArray:
        """Return the input values number ``index``, as a dictionary array over the pool."""
        places = self.indices[index]
        indices = pa.array(places, mask=places < 0) if self.has_null else pa.array(places)
        return pa.DictionaryArray.from_arrays(indices, self.values, safe=False)


def fold_text(value: str) -> str:
    """``value`` without case, accents and outer blanks."""
    bare = unicodedata.normalize("NFKD", value.casefold())
    return "".join(char for char in bare if not unicodedata.combining(char)).strip()


def pool_of(values: Sequence[Any]) -> ValuePool:
    """Return a pool with one type for all values: booleans, integers, decimals, texts, or JSON for objects and arrays.
    Values of mixed types become text, written as in JSON. Equal lists share one pool."""
    if len(values) > _CACHED_VALUES:
        return _pool(values)
    return _cached_pool(text.json_text(list(values)))


@lru_cache(maxsize=256)
def _cached_pool(source: str) -> ValuePool:
    return _pool(orjson.loads(source))


def _pool(values: Sequence[Any]) -> ValuePool:
    present = [value for value in values if value is not None]
    kind, convert = _type_and_converter(present)
    converted = [None if value is None else convert(value) for value in values]
    order: dict[Any, int] = {}
    for value in converted:
        if value is not None:
            order.setdefault(value, len(order))
    positions = np.array([-1 if value is None else order[value] for value in converted], np.int32)
    nested = bool(present) and all(isinstance(value, dict | list) for value in present)
    return ValuePool(pa.array(list(order), kind), positions, nested)


def max_text_length(pool: ValuePool) -> int:
    """Characters of the longest text of a pool of texts."""
    return base.max_text_length(pool.values)


def _type_and_converter(values: list[Any]) -> tuple[pa.DataType, Callable[[Any], Any]]:
    if all(isinstance(value, bool) for value in values):
        return pa.bool_(), bool
    if not any(isinstance(value, bool) for value in values):
        if all(isinstance(value, int) and value in _INT64 for value in values):
            return pa.int64(), int
        if all(isinstance(value, int | float) for value in values):
            numbers = [Decimal(repr(value)) for value in values]
            places = max(map(amounts.decimal_places, numbers))
            if places > limits.MAX_DECIMALS or max(map(abs, numbers)).scaleb(places) > limits.MAX_UNITS:
                return pa.float64(), float
            last = Decimal(1).scaleb(-places)
            return pa.decimal128(38, places), lambda value: Decimal(repr(value)).quantize(last)
    return pa.string(), lambda value: value if isinstance(value, str) else text.json_text(value)

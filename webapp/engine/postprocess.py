"""Transform a column after its type has generated it: case, prefix, suffix, nulls and fixed values."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import text

if TYPE_CHECKING:
    from webapp.engine.spec import CommonKeys

_MAX_POOLS = 8


@dataclass(frozen=True, slots=True)
class TextTransform:
    """Case, prefix and suffix of one field. Pools are changed once, not once a block."""

    case: str | None
    prefix: str
    suffix: str
    _pools: OrderedDict[tuple[int, int], tuple[pa.Array, pa.Array]] = field(
        default_factory=OrderedDict, compare=False, repr=False
    )

    def longest(self, before: int) -> int:
        """Longest text after these steps, in characters; upper-casing may double a letter (ß)."""
        return (before * 2 if self.case else before) + len(self.prefix) + len(self.suffix)

    def apply(self, column: pa.Array) -> pa.Array:
        """The column as text with the steps applied; blanks stay blank."""
        if not pa.types.is_dictionary(column.type):
            return self._plain(text.to_text(column))
        pool = column.dictionary
        last = pool.buffers()[-1]
        address = (last.address if last is not None else 0, pool.offset)
        cached = self._pools.get(address)
        if cached is None:
            cached = self._pools[address] = (pool, self._plain(text.to_text(pool)))
            if len(self._pools) > _MAX_POOLS:
                self._pools.popitem(last=False)
        return pa.DictionaryArray.from_arrays(column.indices, cached[1], safe=False)

    def _plain(self, values: pa.Array) -> pa.Array:
        if self.case == "upper":
            values = pc.utf8_upper(values)
        elif self.case == "lower":
            values = pc.utf8_lower(values)
        elif self.case == "title":
            values = pc.utf8_title(values)
        elif self.case == "sentence":
            values = pc.utf8_capitalize(values)
        if self.prefix or self.suffix:
            values = pc.binary_join_element_wise(self.prefix, values, self.suffix, "")
        return values


def text_transform(common: CommonKeys) -> TextTransform | None:
    """Return the text transformations of a field, or None."""
    if not (common.text_case or common.prefix or common.suffix):
        return None
    return TextTransform(common.text_case, common.prefix, common.suffix)


def merges_letters(common: CommonKeys, locale: str | None) -> bool:
    """Return whether the field's case makes two letters equal that are distinct in the lists of ``locale``."""
    return common.text_case in ("upper", "title", "sentence") and (locale or "")[:2] in ("tr", "az")


def apply_blanks(column: pa.Array, blank: np.ndarray) -> pa.Array:
    """``column`` with null where ``blank`` is true."""
    mask = pa.array(blank)
    if pa.types.is_dictionary(column.type):
        indices = pc.if_else(mask, pa.scalar(None, column.indices.type), column.indices)
        return pa.DictionaryArray.from_arrays(indices, column.dictionary, safe=False)
    if pa.types.is_struct(column.type) or pa.types.is_list(column.type):
        keep = pc.if_else(mask, pa.scalar(None, pa.int64()), pa.array(np.arange(len(column))))
        return column.take(keep)
    return pc.if_else(mask, pa.scalar(None, column.type), column)


def override_pool(value: Any, dtype: pa.DataType) -> pa.Array:
    """Return a pool with one value for an override: of the column's own type if the value fits it, else of the
    value's."""
    for candidate in (dtype, _natural_type(value)):
        try:
            return pa.array([_as_python(value, candidate)], type=candidate)
        except (pa.ArrowException, ValueError, TypeError, ArithmeticError):
            continue
    return pa.array([text.json_text(value)])


def _as_python(value: Any, dtype: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_decimal(dtype) and isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(repr(value))
    if pa.types.is_date(dtype):
        return date.fromisoformat(value)
    if pa.types.is_timestamp(dtype):
        return datetime.fromisoformat(value)
    if pa.types.is_boolean(dtype) and not isinstance(value, bool):
        raise ValueError(value)
    if pa.types.is_string(dtype) and not isinstance(value, str):
        raise ValueError(value)
    if pa.types.is_integer(dtype) and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(value)
    return value


def _natural_type(value: Any) -> pa.DataType:
    match value:
        case bool():
            return pa.bool_()
        case int():
            return pa.int64()
        case float():
            return pa.float64()
        case str() | None:
            return pa.string()
        case _:
            return pa.infer_type([value])

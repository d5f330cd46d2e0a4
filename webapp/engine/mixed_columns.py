"""Columns of numbers, dates or booleans in which some cells are text, for files with invalid data.

A mixed column is an Arrow extension array over ``struct<value, text>``: a cell has one of the two, or neither if it is
null. Formats write ``value`` like its type, and ``text`` as text. Texts only contain characters in `SAFE_TEXT`, so that
no format has to escape or quote them.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SAFE_TEXT: Final = re.compile(r"[A-Za-z0-9 :./#!-]*[A-Za-z0-9:./#!-]")
"""The characters in texts of a mixed column: no format escapes, quotes or trims them."""

_NAME: Final = "rowsmith.mixed"


class _Cell(pa.ExtensionScalar):  # type: ignore[misc]  # pyarrow has no types
    def as_py(self, **how: Any) -> Any:
        """The text, else the value."""
        cell = self.value
        if cell is None:
            return None
        parts = cell.as_py(**how)
        return parts["value"] if parts["text"] is None else parts["text"]


class MixedType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """The type of a mixed column; ``clean`` is that of its values."""

    def __init__(self, clean: pa.DataType) -> None:
        self.clean = clean
        super().__init__(pa.struct([("value", clean), ("text", pa.string())]), _NAME)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> MixedType:
        return cls(storage.field(0).type)

    def __arrow_ext_scalar_class__(self) -> type[pa.ExtensionScalar]:
        return _Cell


pa.register_extension_type(MixedType(pa.int64()))  # rows cross processes as Arrow streams


def is_mixed(dtype: pa.DataType) -> bool:
    """Return whether columns of this type contain texts in addition to their values."""
    return isinstance(dtype, MixedType)


def clean_type(dtype: pa.DataType) -> pa.DataType:
    """The type of a column's values, texts apart."""
    return dtype.clean if isinstance(dtype, MixedType) else dtype


def create(values: pa.Array, texts: pa.Array | None = None) -> pa.Array:
    """A mixed column of ``values`` (no dictionary), null where ``texts`` has a text."""
    if texts is None:
        texts = pa.nulls(len(values), pa.string())
    empty = pc.and_(pc.is_null(values), pc.is_null(texts))
    storage = pa.StructArray.from_arrays([values, texts], ["value", "text"], mask=empty)
    return pa.ExtensionArray.from_storage(MixedType(values.type), storage)


def split(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return values and texts of a mixed column, both with its length."""
    value, text = column.storage.flatten()
    return value, text


def text_mask(column: pa.Array) -> np.ndarray:
    """``bool[n]``: the cells that are text."""
    return split(column)[1].is_valid().to_numpy(zero_copy_only=False)

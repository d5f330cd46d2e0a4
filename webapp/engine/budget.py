"""The budget of memory for one block of rows, in bytes.

Rows, fields, elements and characters are limited one by one; this limits their product. A block whose columns exceed
`limits.BLOCK_BYTES` raises `MemoryBudgetError`. The caller that chose the number of rows catches it and generates fewer
rows at a time: no value depends on how many rows are made together. Only a single row that exceeds the budget is an
error for the user.

Sizes are those of the decoded values: a text that is stored once for all rows counts once for each row, because
every format writes it that often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine.errors import SpecError
from webapp.engine.text_parts import TextParts
from webapp.errors import Fault

_NEGLIGIBLE = (
    64 * 1024
)  # sizes up to this may be overestimated: measuring them exactly costs more than it is worth
_SMALL = 1024 * 1024


class MemoryBudgetError(SpecError):
    """Raised if a block exceeds its memory budget. ``size``: its minimum size in bytes; ``rows``: its row count."""

    def __init__(self, size: int, path: str = "", rows: int = 1) -> None:
        self.size, self.path, self.rows = size, path, rows
        which = "A row of this template takes" if rows == 1 else f"{rows:,} rows of this template take"
        text = (
            f"{which} at least {format_megabytes(size)}; the limit is {format_megabytes(limits.BLOCK_BYTES)}."
        )
        hint = "Use shorter texts, fewer fields, or arrays with fewer elements."
        super().__init__([Fault(path, "row_too_large", text, hint)])


class MemoryMeter:
    """Counts the bytes of the columns that one block keeps."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = 0

    def add(self, size: int) -> None:
        """Add ``size`` bytes. Raises `MemoryBudgetError` if the total exceeds the budget."""
        self.used += size
        if self.used > limits.BLOCK_BYTES:
            raise MemoryBudgetError(self.used)


def check(size: int) -> None:
    """Raise `MemoryBudgetError` if an array of ``size`` bytes exceeds the budget by itself; call this before creating
    it."""
    if size > limits.BLOCK_BYTES:
        raise MemoryBudgetError(int(size))


def format_megabytes(size: int) -> str:
    """A size in a message: ``450 MB``, and with one decimal below 100 MB."""
    amount = size / limits.MB
    return f"{amount:,.0f} MB" if amount >= 100 or amount == int(amount) else f"{amount:,.1f} MB"


def size_of(column: pa.Array | pa.Scalar | TextParts) -> int:
    """Return the bytes of the decoded values of ``column``; small arrays may be overestimated."""
    if isinstance(column, TextParts):
        return column.size
    if isinstance(column, pa.Scalar):
        return len(column.as_buffer()) if column.is_valid else 0
    if pa.types.is_dictionary(column.type):
        return _dictionary_size(column)
    size = column.get_total_buffer_size()
    # The buffers of a slice are those of the whole array.
    return size if size <= _SMALL else column.nbytes


def _dictionary_size(column: pa.DictionaryArray) -> int:
    pool, n = column.dictionary, len(column)
    if not pa.types.is_string(pool.type):
        return n * 16 if pool.type.num_fields == 0 else column.dictionary_decode().nbytes
    if n * pool.get_total_buffer_size() <= _NEGLIGIBLE or not len(pool):
        return n * pool.get_total_buffer_size()
    ends = np.frombuffer(pool.buffers()[1], np.int32)[pool.offset : pool.offset + len(pool) + 1]
    if len(pool) <= 4 * n:
        maximum = n * int(np.diff(ends).max())
        if maximum <= _SMALL:
            return maximum
    indices = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return int((ends[1:].take(indices) - ends.take(indices)).sum(dtype=np.int64)) + 4 * n


def text_bytes(texts: pa.Array) -> np.ndarray:
    """``int64[n]``: the bytes of each text of a plain string array, 0 if it is blank."""
    if not len(texts):
        return np.zeros(0, np.int64)
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.diff(ends).astype(np.int64)


def row_bytes(column: pa.Array) -> np.ndarray:
    """Return the approximate size of each row of ``column`` in bytes: ``int64[n]``."""
    kind = column.type
    if pa.types.is_string(kind):
        return text_bytes(column)
    if pa.types.is_struct(kind):
        return sum(map(row_bytes, column.flatten()), np.zeros(len(column), np.int64))
    if pa.types.is_list(kind):
        ends = column.offsets.to_numpy()
        return np.diff(np.concatenate((np.zeros(1, np.int64), np.cumsum(row_bytes(column.values))))[ends])
    return np.full(len(column), 16, np.int64)


def take_within_budget(column: pa.Array, indices: pa.Array) -> pa.Array:
    """Return ``column.take(places)``. Raises `MemoryBudgetError` before allocating more than the budget."""
    small = column.get_total_buffer_size() * len(indices) <= limits.BLOCK_BYTES
    if not small and len(column) and not pa.types.is_dictionary(column.type):
        found = indices.fill_null(0).to_numpy(zero_copy_only=False)
        check(int(row_bytes(column).take(found).sum()))
    return column.take(indices)


def join_texts(pieces: Sequence[pa.Array | pa.Scalar | str], n: int) -> pa.Array:
    """Concatenate texts row by row. Raises `MemoryBudgetError` before allocating more than the budget."""
    check(sum(size_of(piece) if isinstance(piece, pa.Array) else n * _length(piece) for piece in pieces))
    return pc.binary_join_element_wise(*pieces, "")


def _length(text: pa.Scalar | str) -> int:
    return len(text.encode()) if isinstance(text, str) else size_of(text)


def generate_in_chunks(generate: Callable[[np.ndarray], pa.Array], rows: np.ndarray) -> pa.Array:
    """Return ``make(rows)``, or concatenate its results for fewer rows at a time if they exceed the budget.

    For values that are aggregated or counted and not kept; ``generate`` must not depend on which rows are generated
    together.
    """
    try:
        return generate(rows)
    except MemoryBudgetError:
        if rows.size < 2:
            raise
    half = rows.size // 2
    parts = [generate_in_chunks(generate, part) for part in (rows[:half], rows[half:])]
    return pa.concat_arrays(
        [part.dictionary_decode() if pa.types.is_dictionary(part.type) else part for part in parts]
    )

"""Rows from real data: the source that a template declares, and its contents once they have been read.

The engine itself reads no file and makes no call. A template with a `source` has one external request (see
``external_values.py``), whose response is a table on disk, of which only the current rows are read. Sensitive values
are masked before any other column can read them (``types/sourced.py``), and searched for in the output (``leaks.py``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ConfigDict, Field, model_validator

from webapp import json_input, limits
from webapp.engine import budget, text
from webapp.engine.external_values import ExternalQuery

T = TypeVar("T")


class SourceSpec(json_input.Model):
    """Source of the rows of a template: a workspace file, or a table or query of a connection."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    file: str | None = Field(
        None,
        min_length=1,
        max_length=limits.MAX_FILE_NAME_CHARS,
        description=(
            "A workspace file: CSV, JSON, NDJSON, XLSX or Parquet, detected by the file name extension."
        ),
    )
    sheet: str | None = Field(
        None,
        min_length=1,
        max_length=limits.MAX_NAME_CHARS,
        description="For XLSX: the sheet. Default: the first.",
    )
    connection_id: str | None = Field(
        None, min_length=1, max_length=limits.MAX_NAME_CHARS, description="A connection to a database."
    )
    table: str | None = Field(
        None,
        min_length=1,
        max_length=limits.MAX_NAME_CHARS,
        description="A table of the connection, read by its primary key.",
    )
    where: str | None = Field(
        None,
        min_length=1,
        max_length=limits.SOURCE_QUERY_CHARS,
        description=(
            "Optional filter for the table: a condition in the target's query language (the "
            "part after WHERE)."
        ),
    )
    query: str | None = Field(
        None,
        min_length=1,
        max_length=limits.SOURCE_QUERY_CHARS,
        description="A query in the target's query language, with an ORDER BY clause.",
    )
    limit: int | None = Field(None, ge=1, le=limits.SOURCE_ROWS, description="Maximum number of rows.")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.file is None) == (self.connection_id is None):
            raise ValueError("Set either file, or connection_id with table or query")
        if self.file is not None and (self.table or self.query or self.where):
            raise ValueError("table, query and where require a connection_id")
        if self.connection_id is not None and (self.table is None) == (self.query is None):
            raise ValueError("With connection_id, set either table or query")
        if self.connection_id is not None and self.sheet is not None:
            raise ValueError("sheet requires file")
        if self.where is not None and self.table is None:
            raise ValueError("where is only available with table; include the condition in the query")
        return self

    def external_query(self) -> ExternalQuery:
        """Return the question that fetches its rows."""
        settings = self.model_dump(exclude={"connection_id"}, exclude_none=True)
        return ExternalQuery(self.connection_id or "", "source", tuple(sorted(settings.items())))


def parse_stored(raw: Mapping[str, Any] | None) -> SourceSpec | None:
    """Return the source as stored in a template."""
    return None if raw is None else SourceSpec.model_validate(dict(raw))


# --- What has been read -------------------------------------------------------------------------------------

_INTEGER: Final = r"^-?(0|[1-9][0-9]{0,17})$"
_NUMBER: Final = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_BOOLEAN: Final = r"^(true|false)$"
_DAY: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_MOMENT: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?Z?$"


class SourceTable:
    """A loaded source: an Arrow table whose columns have types that the engine supports. Thread-safe.

    `snapshot` identifies its contents: the same snapshot produces the same rows. Derived data about a column are cached
    with it.
    """

    def __init__(self, table: pa.Table, snapshot: str) -> None:
        self.table, self.snapshot = table, snapshot
        self._lock = threading.Lock()
        self._cache: dict[Any, Any] = {}
        lengths = [len(batch) for batch in table.to_batches()]
        self._starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self.table.num_rows

    @property
    def column_names(self) -> list[str]:
        """Their names, in their order."""
        return self.table.column_names

    def take(self, name: str, rows: np.ndarray) -> pa.Array:
        """A column at any rows (``uint64[n]``, in any order)."""
        column = self.table.column(name)
        if not rows.size:
            return pa.array([], column.type)
        first, last = int(rows[0]), int(rows[-1])
        if last - first == rows.size - 1 and (rows.size < 3 or bool(np.all(np.diff(rows) == 1))):
            found = column.slice(first, rows.size)
            budget.check(sum(map(budget.size_of, found.chunks)))
            return combine_chunks(found)
        if pa.types.is_string(column.type):
            budget.check(self._bytes_of_rows(column, rows))
        return combine_chunks(column.take(pa.array(rows)))

    def _bytes_of_rows(self, column: pa.ChunkedArray, rows: np.ndarray) -> int:
        """The bytes of the texts at some rows."""
        indices = rows.astype(np.int64)
        chunk = np.searchsorted(self._starts, indices, side="right") - 1
        total = 0
        for number in np.unique(chunk).tolist():
            in_chunk = indices[chunk == number] - self._starts[number]
            total += int(budget.text_bytes(column.chunk(number)).take(in_chunk).sum())
        return total

    def cached(self, key: Any, find: Callable[[], T]) -> T:
        """Return the cached result of ``find``."""
        with self._lock:
            if key in self._cache:
                return self._cache[key]
        found = find()
        with self._lock:
            return self._cache.setdefault(key, found)

    def chunks(self, name: str) -> list[pa.Array]:
        """A column as its chunks."""
        return list(self.table.column(name).chunks)

    def max_text_length(self, name: str) -> int:
        """Characters of the longest text of a column of texts."""

        def find() -> int:
            return max((pc.max(pc.utf8_length(piece)).as_py() or 0 for piece in self.chunks(name)), default=0)

        return self.cached(("longest", name), find)

    def can_parse_as(self, name: str, dtype: pa.DataType) -> bool:
        """Return whether every text of a column is the canonical text of a value of a type."""
        pattern = _pattern(dtype)
        if pattern is None:
            return False

        def find() -> bool:
            for piece in self.chunks(name):
                if pc.all(pc.match_substring_regex(piece, pattern), min_count=0).as_py() is False:
                    return False
                try:
                    parse_texts(piece, dtype)
                except (pa.ArrowException, ValueError):
                    return False
            return True

        return self.cached(("fits", name, str(dtype)), find)


def _pattern(dtype: pa.DataType) -> str | None:
    if pa.types.is_int64(dtype):
        return _INTEGER
    if pa.types.is_floating(dtype) or pa.types.is_decimal(dtype):
        return _NUMBER
    if pa.types.is_boolean(dtype):
        return _BOOLEAN
    if pa.types.is_date32(dtype):
        return _DAY
    return _MOMENT if pa.types.is_timestamp(dtype) else None


def parse_texts(texts: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Texts as values of a type. Raises `pa.ArrowException`."""
    if pa.types.is_decimal(dtype):
        return texts.cast(pa.decimal128(38, dtype.scale))
    if pa.types.is_timestamp(dtype):
        plain = pc.replace_substring_regex(texts, "Z$", "")
        return plain.cast(pa.timestamp("us")).cast(dtype)
    return texts.cast(dtype)


def combine_chunks(column: pa.ChunkedArray) -> pa.Array:
    """One array of a column in pieces."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    return array


def to_texts(column: pa.Array) -> pa.Array:
    """Values as texts, the way the engine writes them."""
    return text.decode_dictionary(text.to_text(text.decode_dictionary(column)))

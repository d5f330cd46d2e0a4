"""Parquet: plain columns, nested objects and arrays, row groups of limited size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import pyarrow as pa

from webapp import limits
from webapp.engine.formats.base import Format, Piece
from webapp.engine.formats.nested import mixed_texts
from webapp.engine.mixed_columns import is_mixed


class _ChunkBuffer:
    """A file object that collects the written bytes."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        part = bytes(data)
        self._parts.append(part)
        return len(part)

    def flush(self) -> None:
        """Nothing is held back."""

    def drain(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


class ParquetFormat(Format):
    """Apache Parquet 2.6, compressed with Snappy, readable by any tool: pools are written as plain columns.

    A column has one type here: one that has texts among its values is a column of texts.
    """

    name: ClassVar[str] = "parquet"
    media_type: ClassVar[str] = "application/vnd.apache.parquet"
    extension: ClassVar[str] = "parquet"

    class Options(Format.Options):
        """Parquet has no options."""

    def __init__(self, schema: pa.Schema, options: Format.Options, *, title: str) -> None:
        from pyarrow.parquet import ParquetWriter  # 8 MB of file systems in a process

        super().__init__(schema, options, title=title)
        self._schema = pa.schema([_plain(field) for field in schema])
        self._buffer = _ChunkBuffer()
        self._buffered: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._writer = ParquetWriter(pa.PythonFile(self._buffer, "w"), self._schema, version="2.6")

    def start(self) -> bytes:
        """The magic number."""
        return self._buffer.drain()

    def write_block(self, columns: Sequence[pa.Array]) -> Iterator[Piece]:
        """Return the row groups that the rows complete."""
        batch = pa.RecordBatch.from_arrays(
            [_decoded(column, field.type) for column, field in zip(columns, self._schema, strict=True)],
            schema=self._schema,
        )
        at = 0
        while at < batch.num_rows:
            part = batch.slice(at, limits.PARQUET_GROUP_ROWS - self._rows)
            self._buffered.append(part)
            self._rows += part.num_rows
            self._bytes += part.nbytes
            at += part.num_rows
            if self._rows >= limits.PARQUET_GROUP_ROWS or self._bytes >= limits.PARQUET_GROUP_BYTES:
                yield self._write_row_group()

    def _write_row_group(self) -> bytes:
        # The rows are let go before what they were written as is put together: never both, and that twice.
        self._writer.write_table(
            pa.Table.from_batches(self._buffered, self._schema), row_group_size=self._rows
        )
        self._buffered.clear()
        self._rows = self._bytes = 0
        return self._buffer.drain()

    def finish(self) -> Iterator[Piece]:
        """The last row group and the footer."""
        if self._buffered:
            yield self._write_row_group()
        self._writer.close()
        yield self._buffer.drain()


def _plain(field: pa.Field) -> pa.Field:
    """``field`` without pools, notes and the null type, which few readers know."""
    return pa.field(field.name, _plain_type(field.type))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_null(kind) or is_mixed(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_field))
    if pa.types.is_struct(kind):
        return pa.struct([_plain(child) for child in kind])
    return kind


def _decoded(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if is_mixed(column.type):
        return mixed_texts(column)
    return column if column.type == kind else column.cast(kind)

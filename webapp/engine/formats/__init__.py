"""File formats, each one class: the visible registry, and the one way to write a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from webapp.engine.formats.base import Format, FormatError, Piece
from webapp.engine.formats.parquet_format import ParquetFormat
from webapp.engine.formats.sql_format import SqlFormat
from webapp.engine.formats.text_formats import CsvFormat, JsonFormat, NdjsonFormat
from webapp.engine.formats.xlsx_format import XlsxFormat

__all__ = ["FORMATS", "Format", "FormatError", "Piece", "write"]

FORMATS: dict[str, type[Format]] = {
    "json": JsonFormat,
    "ndjson": NdjsonFormat,
    "csv": CsvFormat,
    "sql": SqlFormat,
    "xlsx": XlsxFormat,
    "parquet": ParquetFormat,
}


def write(format: Format, blocks: Iterable[list[pa.Array]]) -> Iterator[Piece]:
    """Yield the whole file in pieces, from blocks that are requested one at a time. No piece is empty."""
    if head := format.start():
        yield head
    for block in blocks:
        yield from filter(None, format.write_block(block))
    yield from filter(None, format.finish())

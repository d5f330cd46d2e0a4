"""XLSX (ECMA-376): a workbook whose sheets are streamed, with as many sheets as the rows need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

import pyarrow as pa

from webapp import limits
from webapp.engine.formats import codecs, xlsx_codecs, xlsx_parts
from webapp.engine.formats.base import Arrays, Format, FormatError
from webapp.engine.formats.column import Codec, Column, Frame, Wrapping
from webapp.engine.formats.escape import Unfit, XmlEscape
from webapp.engine.formats.flat import Leaf, flatten
from webapp.engine.formats.mixed_codec import mixed_column
from webapp.engine.formats.nested import NestedCodec, value_type
from webapp.engine.formats.rows import Rows
from webapp.engine.formats.text import TextFormat
from webapp.engine.formats.xlsx_book import Workbook
from webapp.engine.mixed import clean_type, is_mixed
from webapp.errors import Fault

_TEXT = '<c t="inlineStr"><is><t>'
_KEPT_TEXT = '<c t="inlineStr"><is><t xml:space="preserve">'
_TEXT_END, _NUMBER_END = "</t></is></c>", "</v></c>"
_WIDTHS = {xlsx_parts.DATE: 11.5, xlsx_parts.TIMESTAMP: 20.0}  # in digits; a narrower column shows hashes


class XlsxFormat(TextFormat):
    """One sheet after another, each with the column names in a frozen first row.

    Text is text, also where it begins with ``=``. A number that a double does not hold exactly is text too. Objects
    become dotted columns, arrays JSON text or numbered columns.
    """

    name: ClassVar[str] = "xlsx"
    media_type: ClassVar[str] = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    extension: ClassVar[str] = "xlsx"

    class Options(Format.Options):
        """``arrays`` as for CSV."""

        arrays: Arrays = "json"

    options: Options

    def __init__(
        self, schema: pa.Schema, options: Options, *, title: str, book: Workbook | None = None
    ) -> None:
        """``book`` is a workbook that is shared with other tables; who made it starts and finishes it."""
        super().__init__(schema, options, title=title)
        self._leaves = self._flat(schema, options)
        if len(self._leaves) > limits.XLSX_SHEET_COLUMNS:
            text = f"{len(self._leaves):,} columns: a sheet holds at most {limits.XLSX_SHEET_COLUMNS:,}."
            raise FormatError([Fault("fields", "too_many_columns", text)])
        self._escape = XmlEscape()
        fields = [leaf.field for leaf in self._leaves]
        kinds = [value_type(field) for field in fields]
        clean = [clean_type(kind) for kind in kinds]
        self._own_book = book is None
        self._book = book or Workbook(self.places([(schema, options)]))
        self._widths = [_WIDTHS.get(self._style(kind)) for kind in clean]
        self._header = [self._name(field.name) for field in fields]
        columns = [self._column(field, kind) for field, kind in zip(fields, kinds, strict=True)]
        self._rows = Rows(columns, Frame("<row>", ("</row>",)), joint=True)
        self._sheets = 0
        self._left = 0

    @staticmethod
    def _flat(schema: pa.Schema, options: Options) -> list[Leaf]:
        return flatten(schema, objects=True, arrays=options.arrays == "columns")

    @classmethod
    def places(cls, tables: Iterable[tuple[pa.Schema, Options]]) -> list[int]:
        """The counts of decimal places in the columns of some tables: a workbook has a style for each."""
        kinds = [clean_type(value_type(leaf.field)) for table in tables for leaf in cls._flat(*table)]
        return sorted({kind.scale for kind in kinds if pa.types.is_decimal(kind)})

    def _name(self, name: str) -> str:
        try:
            return self._escape.one(name)
        except Unfit as problem:
            raise FormatError([Fault(name, "name_does_not_fit", str(problem))]) from problem

    # --- cells ---

    def _style(self, kind: pa.DataType) -> int:
        if pa.types.is_decimal(kind):
            return xlsx_parts.FIRST_DECIMAL + self._book.places.index(kind.scale)
        if pa.types.is_date(kind):
            return xlsx_parts.DATE
        if pa.types.is_timestamp(kind):
            return xlsx_parts.TIMESTAMP
        return xlsx_parts.TIME if pa.types.is_time(kind) else xlsx_parts.GENERAL

    def _column(self, field: pa.Field, kind: pa.DataType) -> Column:
        if is_mixed(kind):
            value, text = (self._column(field, each) for each in (clean_type(kind), pa.string()))
            return mixed_column(value, text, marks=True)
        style = self._style(kind)
        number = f'<c s="{style}"><v>' if style else "<c><v>"
        if pa.types.is_boolean(kind):
            number = '<c t="b"><v>'
        elif pa.types.is_time(kind):
            number += "0"
        before, after = (number, "<c/>", _TEXT), (_NUMBER_END, "", _TEXT_END)
        if pa.types.is_string(kind) or pa.types.is_nested(kind):
            before, after = (_TEXT, "<c/>", _KEPT_TEXT), (_TEXT_END, "", _TEXT_END)
        return Column(field.name, self._codec(field, kind), Wrapping(before, after))

    def _codec(self, field: pa.Field, kind: pa.DataType) -> Codec:
        if pa.types.is_nested(kind):
            return NestedCodec(field, self._escape, one_line=True)
        if pa.types.is_string(kind):
            return codecs.TextCodec(self._escape)
        if pa.types.is_integer(kind):
            return codecs.IntegerCodec(limits.XLSX_EXACT_INTEGER)
        if pa.types.is_decimal(kind):
            return codecs.DecimalCodec(kind.scale, limits.XLSX_EXACT_INTEGER)
        if pa.types.is_boolean(kind):
            return codecs.BoolCodec(b"0", b"1")
        if pa.types.is_date(kind):
            return xlsx_codecs.SerialDateCodec()
        if pa.types.is_timestamp(kind):
            return xlsx_codecs.SerialTimestampCodec()
        if pa.types.is_time(kind):
            return xlsx_codecs.SerialTimeCodec()
        return codecs.FloatCodec() if pa.types.is_floating(kind) else codecs.NullCodec()

    # --- the stream ---

    def start(self) -> bytes:
        """The parts of a workbook of its own that do not depend on the rows, and the first sheet's head."""
        return (self._book.start() if self._own_book else b"") + self._open_sheet()

    def _open_sheet(self) -> bytes:
        self._sheets += 1
        self._left = limits.XLSX_SHEET_ROWS - 1
        return self._book.open(self.title, self._sheets, self._widths, self._header)

    def block(self, columns: list[pa.Array]) -> Iterator[bytes]:
        """The next rows; a new sheet where the one at hand is full."""
        count = len(columns[0])
        at = 0
        while at < count:
            if not self._left:
                yield self._book.close() + self._open_sheet()
            size = min(self._left, count - at)
            for text in self._texts([column.slice(at, size) for column in columns]):
                if packed := self._book.write(text):
                    yield packed
            at += size
            self._left -= size

    def _text(self, columns: list[pa.Array], count: int) -> bytes | memoryview:
        return self._rows.render([leaf.of(columns) for leaf in self._leaves], "")

    def finish(self) -> Iterator[bytes]:
        """The last sheet's end, and that of a workbook of its own."""
        yield self._book.close() + (self._book.finish() if self._own_book else b"")

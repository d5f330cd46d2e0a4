"""XLSX (ECMA-376): a workbook whose sheets are streamed, with as many sheets as the rows need.

A spreadsheet counts dates as days since 1899-12-30, and times as fractions of a day. Excel treats 1900 as a leap year,
so days before 1900-03-01 count one less. Days before 1900 and after 9999 do not exist there: those are marked and
written as text. A sheet shows milliseconds at most, so the rest is cut off: if it were rounded, a reader would take
the last microsecond of a day for the next day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar
from xml.sax.saxutils import quoteattr

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.engine.formats import codecs, views
from webapp.engine.formats.base import (
    Arrays,
    Codec,
    Column,
    Format,
    FormatError,
    Piece,
    RowLiterals,
    ValueLiterals,
)
from webapp.engine.formats.codecs import (
    DAY_MICROS,
    BaseCodec,
    format_clock,
    format_date,
    mixed_column,
    numbers_or_zero,
    put_integers,
)
from webapp.engine.formats.escape import UnrepresentableTextError, XmlEscape
from webapp.engine.formats.layout import Layout, Slot, TextFormat
from webapp.engine.formats.nested import NestedCodec, value_type
from webapp.engine.formats.text_formats import FlatColumn, flatten
from webapp.engine.formats.zipstream import ZipStream
from webapp.engine.mixed_columns import clean_type, is_mixed
from webapp.engine.text_parts import TextParts
from webapp.errors import Fault

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"

GENERAL, HEADER, DATE, TIMESTAMP, TIME, FIRST_DECIMAL = range(6)
_FORMATS = ("yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss", "hh:mm:ss")
_FIRST_OWN_FORMAT = 164  # ECMA-376, numFmts: smaller numbers are built in


def relations() -> bytes:
    """``_rels/.rels``."""
    return _relationships([("rId1", f"{_OFFICE}/officeDocument", "xl/workbook.xml")])


def workbook_relations(sheets: int) -> bytes:
    """``xl/_rels/workbook.xml.rels`` for this many sheets."""
    links = [(f"rId{n}", f"{_OFFICE}/worksheet", f"worksheets/sheet{n}.xml") for n in range(1, sheets + 1)]
    return _relationships([*links, (f"rId{sheets + 1}", f"{_OFFICE}/styles", "styles.xml")])


def _relationships(links: Sequence[tuple[str, str, str]]) -> bytes:
    items = "".join(
        f'<Relationship Id="{key}" Type="{kind}" Target="{target}"/>' for key, kind, target in links
    )
    return f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{items}</Relationships>'.encode()


def content_types(sheets: int) -> bytes:
    """``[Content_Types].xml`` for this many sheets."""
    parts = [(f"/xl/worksheets/sheet{n}.xml", "worksheet") for n in range(1, sheets + 1)]
    parts += [("/xl/workbook.xml", "sheet.main"), ("/xl/styles.xml", "styles")]
    overrides = "".join(
        f'<Override PartName="{name}" ContentType="{_TYPE}.{kind}+xml"/>' for name, kind in parts
    )
    return (
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{overrides}</Types>'
    ).encode()


def workbook(names: Sequence[str]) -> bytes:
    """``xl/workbook.xml`` with sheets of these names."""
    sheets = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(names, 1)
    )
    return (
        f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><bookViews><workbookView/></bookViews>'
        f"<sheets>{sheets}</sheets></workbook>"
    ).encode()


def styles(places: Sequence[int]) -> bytes:
    """``xl/styles.xml``: the fixed styles, and one from ``FIRST_DECIMAL`` on for each count of decimal places."""
    codes = [*_FORMATS, *("0." + "0" * count if count else "0" for count in places)]
    formats = "".join(
        f'<numFmt numFmtId="{n}" formatCode="{code}"/>' for n, code in enumerate(codes, _FIRST_OWN_FORMAT)
    )
    cells = "".join(
        f'<xf numFmtId="{n}" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
        for n in range(_FIRST_OWN_FORMAT, _FIRST_OWN_FORMAT + len(codes))
    )
    font = '<sz val="11"/><name val="Calibri"/><family val="2"/>'
    return (
        f'{_HEAD}<styleSheet xmlns="{_MAIN}"><numFmts count="{len(codes)}">{formats}</numFmts>'
        f'<fonts count="2"><font>{font}</font><font><b/>{font}</font></fonts>'
        '<fills count="2"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill></fills>'
        '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
        '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
        f'<cellXfs count="{len(codes) + 2}"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
        f'<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>{cells}</cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
    ).encode()


def sheet_head(widths: Sequence[float | None], header: Sequence[str], *, first: bool) -> bytes:
    """A sheet up to its first row of data. ``header``: the column names, escaped; None is the default width."""
    columns = "".join(
        f'<col min="{n}" max="{n}" width="{width}" customWidth="1"/>'
        for n, width in enumerate(widths, 1)
        if width
    )
    cells = "".join(
        f'<c s="{HEADER}" t="inlineStr"><is><t xml:space="preserve">{name}</t></is></c>' for name in header
    )
    selected = ' tabSelected="1"' if first else ""
    return (
        f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetViews><sheetView{selected} workbookViewId="0">'
        '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
        f"{f'<cols>{columns}</cols>' if columns else ''}<sheetData><row>{cells}</row>"
    ).encode()


SHEET_TAIL = b"</sheetData></worksheet>"


def sheet_name(title: str, number: int) -> str:
    """A sheet's name out of a title: no ``[]:*?/\\``, no quote at an end, at most 31 characters (Excel's rules)."""
    plain = "".join(" " if sign in "[]:*?/\\" or sign < " " else sign for sign in title)
    suffix = f" ({number})" if number > 1 else ""
    max_length = limits.XLSX_SHEET_NAME_CHARS - len(suffix)
    while len(plain.encode("utf-16-le")) // 2 > max_length:
        plain = plain[:-1]
    plain = plain.strip(" '")
    if not plain or plain.casefold() == "history":  # Excel keeps that name for itself
        plain = f"{plain or 'Sheet'}1"
    return plain + suffix


_FIRST_DAY = -25_567  # 1900-01-01
_LEAP_DAY = -25_508  # 1900-03-01
_LAST_DAY = 2_932_896  # 9999-12-31
_BEFORE_1970 = 25_569
_DIGITS = 12
_CHUNKS = 3


def _serial(days: int) -> int:
    return days + _BEFORE_1970 - (days < _LEAP_DAY)


def _fraction(micros: int | np.ndarray) -> int | np.ndarray:
    """Microseconds of a day in 10**-12 days: whole milliseconds times ``10**12 / 86,400,000``, rounded."""
    return (micros // 1000 * 312_500 + 13) // 27


def _put_days(slot: Slot, days: np.ndarray) -> None:
    serials = (days + _BEFORE_1970 - (days < _LEAP_DAY)).astype(np.uint32)
    put_integers(slot, 0, serials, int(serials.min()), int(serials.max()))


def _put_fraction(slot: Slot, piece: int, micros: np.ndarray) -> None:
    rest = _fraction(micros)
    for number in range(_CHUNKS):
        unit = 10 ** (_DIGITS - 4 * (number + 1))
        head = rest // unit
        rest = rest - head * unit
        slot.put(piece + number, views.padded_numbers(4, b"" if number else b".").take(head + 1, mode="clip"))


def _is_in_calendar(days: np.ndarray) -> bool:
    return int(days.min()) >= _FIRST_DAY and int(days.max()) <= _LAST_DAY


class SerialDateCodec(BaseCodec):
    """A date as a whole number of days."""

    piece_count = 2
    key = "serial date"

    def fill(self, column: pa.Array, slot: Slot) -> np.ndarray | None:
        """See `column.Codec`."""
        days = numbers_or_zero(column, np.int32)
        if _is_in_calendar(days):
            _put_days(slot, days)
            return None
        return self._write_one_by_one(column, slot)

    def _write_one_by_one(self, column: pa.Array, slot: Slot) -> np.ndarray:
        """Write days beyond the calendar of Excel one by one; those before it are marked, and written as text."""
        words, marks = self._spelled(column)
        slot.put_text(0, pa.array(words, pa.string()), None)
        slot.clear(*range(1, self.piece_count))
        return np.array(marks)

    def _spelled(self, column: pa.Array) -> tuple[list[str], list[bool]]:
        days = numbers_or_zero(column, np.int32).tolist()
        marks = [day < _FIRST_DAY for day in days]
        words = [
            format_date(day) if mark else str(_serial(day)) for day, mark in zip(days, marks, strict=True)
        ]
        return words, marks


class SerialTimestampCodec(SerialDateCodec):
    """A timestamp as days with a fraction; what its zone was is lost."""

    piece_count = 2 + _CHUNKS
    key = "serial timestamp"

    def fill(self, column: pa.Array, slot: Slot) -> np.ndarray | None:
        """See `column.Codec`."""
        micros = numbers_or_zero(column, np.int64)
        days = micros // DAY_MICROS
        if not _is_in_calendar(days):
            return self._write_one_by_one(column, slot)
        _put_days(slot, days)
        _put_fraction(slot, 2, micros - days * DAY_MICROS)
        return None

    def _spelled(self, column: pa.Array) -> tuple[list[str], list[bool]]:
        parts = [divmod(micros, DAY_MICROS) for micros in numbers_or_zero(column, np.int64).tolist()]
        marks = [day < _FIRST_DAY for day, _ in parts]
        words = [
            f"{format_date(day)} {format_clock(rest)}" if mark else f"{_serial(day)}.{_fraction(rest):012d}"
            for (day, rest), mark in zip(parts, marks, strict=True)
        ]
        return words, marks


class SerialTimeCodec(BaseCodec):
    """A time of day as the fraction behind a nought that the column's wrapping gives."""

    piece_count = _CHUNKS
    key = "serial time"

    def fill(self, column: pa.Array, slot: Slot) -> None:
        """See `column.Codec`."""
        _put_fraction(slot, 0, numbers_or_zero(column, np.int64))


class Workbook:
    """``start``; then for each sheet ``open``, ``write`` ... ``close``; then ``finish``. Each gives bytes to send.

    ``places`` are the counts of decimal places of all its columns, ascending: styles precede the first sheet.
    """

    def __init__(self, places: Sequence[int]) -> None:
        self.decimal_places = list(places)
        self._zip = ZipStream()
        self._names: dict[str, str] = {}

    def start(self) -> bytes:
        """The parts that do not depend on the sheets."""
        parts = self._zip.add_entry("_rels/.rels", relations())
        return parts + self._zip.add_entry("xl/styles.xml", styles(self.decimal_places))

    def open(self, title: str, number: int, widths: Sequence[float | None], header: Sequence[str]) -> bytes:
        """The head of a new sheet: the ``number``-th of a table called ``title``, with escaped column names."""
        while (name := sheet_name(title, number)).casefold() in self._names:  # Excel compares without case
            number += 1
        first = not self._names
        self._names[name.casefold()] = name
        head = sheet_head(widths, header, first=first)
        return self._zip.open(f"xl/worksheets/sheet{len(self._names)}.xml") + self._zip.write(head)

    def write(self, text: bytes | memoryview) -> bytes:
        """Add to the sheet; return what the compressor has ready."""
        return self._zip.write(text)

    def close(self) -> bytes:
        """The end of the sheet."""
        return self._zip.write(SHEET_TAIL) + self._zip.close()

    def finish(self) -> bytes:
        """The list of sheets, and the archive's directory."""
        names = list(self._names.values())
        return (
            self._zip.add_entry("xl/workbook.xml", workbook(names))
            + self._zip.add_entry("xl/_rels/workbook.xml.rels", workbook_relations(len(names)))
            + self._zip.add_entry("[Content_Types].xml", content_types(len(names)))
            + self._zip.finish()
        )


_TEXT = '<c t="inlineStr"><is><t>'
_SPACE_PRESERVING_TEXT = '<c t="inlineStr"><is><t xml:space="preserve">'
_TEXT_END, _NUMBER_END = "</t></is></c>", "</v></c>"
_WIDTHS = {DATE: 11.5, TIMESTAMP: 20.0}  # in digits; a narrower column shows hashes


class XlsxFormat(TextFormat):
    """One sheet after another, each with the column names in a frozen first row.

    Text is text, also where it begins with ``=``. A number that a double does not hold exactly is text too. Objects
    become dotted columns, arrays JSON text or numbered columns.
    """

    name: ClassVar[str] = "xlsx"
    media_type: ClassVar[str] = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    extension: ClassVar[str] = "xlsx"
    accepts_text_parts: ClassVar[bool] = False  # a cell that begins or ends with a space is marked

    class Options(Format.Options):
        """``arrays`` as for CSV."""

        arrays: Arrays = "json"

    options: Options

    def __init__(
        self, schema: pa.Schema, options: Options, *, title: str, book: Workbook | None = None
    ) -> None:
        """``book`` is a workbook that is shared with other tables; its creator starts and finishes it."""
        super().__init__(schema, options, title=title)
        self._leaves = self._flat_columns(schema, options)
        if len(self._leaves) > limits.XLSX_SHEET_COLUMNS:
            text = (
                f"There are {len(self._leaves):,} columns; a sheet can contain at most "
                f"{limits.XLSX_SHEET_COLUMNS:,}."
            )
            raise FormatError([Fault("fields", "too_many_columns", text)])
        self._escape = XmlEscape()
        fields = [leaf.field for leaf in self._leaves]
        kinds = [value_type(field) for field in fields]
        clean = [clean_type(kind) for kind in kinds]
        self._own_book = book is None
        self._book = book or Workbook(self.decimal_places([(schema, options)]))
        self._widths = [_WIDTHS.get(self._style(kind)) for kind in clean]
        self._header = [self._name(field.name) for field in fields]
        columns = [self._column(field, kind) for field, kind in zip(fields, kinds, strict=True)]
        self._rows = Layout(columns, RowLiterals("<row>", ("</row>",)), joint=True)
        self._sheets = 0
        self._rows_left = 0

    @staticmethod
    def _flat_columns(schema: pa.Schema, options: Options) -> list[FlatColumn]:
        return flatten(schema, objects=True, arrays=options.arrays == "columns")

    @classmethod
    def decimal_places(cls, tables: Iterable[tuple[pa.Schema, Options]]) -> list[int]:
        """The counts of decimal places in the columns of some tables: a workbook has a style for each."""
        kinds = [clean_type(value_type(leaf.field)) for table in tables for leaf in cls._flat_columns(*table)]
        return sorted({kind.scale for kind in kinds if pa.types.is_decimal(kind)})

    def _name(self, name: str) -> str:
        try:
            return self._escape.escape_text(name)
        except UnrepresentableTextError as problem:
            raise FormatError([Fault(name, "name_does_not_fit", str(problem))]) from problem

    # --- cells ---

    def _style(self, kind: pa.DataType) -> int:
        if pa.types.is_decimal(kind):
            return FIRST_DECIMAL + self._book.decimal_places.index(kind.scale)
        if pa.types.is_date(kind):
            return DATE
        if pa.types.is_timestamp(kind):
            return TIMESTAMP
        return TIME if pa.types.is_time(kind) else GENERAL

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
            before, after = (_TEXT, "<c/>", _SPACE_PRESERVING_TEXT), (_TEXT_END, "", _TEXT_END)
        return Column(field.name, self._codec(field, kind), ValueLiterals(before, after))

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
            return SerialDateCodec()
        if pa.types.is_timestamp(kind):
            return SerialTimestampCodec()
        if pa.types.is_time(kind):
            return SerialTimeCodec()
        return codecs.FloatCodec() if pa.types.is_floating(kind) else codecs.NullCodec()

    # --- the stream ---

    def start(self) -> bytes:
        """Return the parts of the workbook that do not depend on the rows, and the head of the first sheet."""
        return (self._book.start() if self._own_book else b"") + self._open_sheet()

    def _open_sheet(self) -> bytes:
        self._sheets += 1
        self._rows_left = limits.XLSX_SHEET_ROWS - 1
        return self._book.open(self.title, self._sheets, self._widths, self._header)

    def write_block(self, columns: Sequence[pa.Array | TextParts]) -> Iterator[Piece]:
        """Yield the next rows, with a new sheet when the current one is full."""
        count = len(columns[0])
        at = 0
        while at < count:
            if not self._rows_left:
                yield self._book.close() + self._open_sheet()
            size = min(self._rows_left, count - at)
            for text in super().write_block([column.slice(at, size) for column in columns]):
                if packed := self._book.write(text):
                    yield packed
            at += size
            self._rows_left -= size

    def _render_rows(self, columns: Sequence[pa.Array | TextParts], count: int) -> Piece:
        return self._rows.render([leaf.values_in(columns) for leaf in self._leaves], "")

    def finish(self) -> Iterator[Piece]:
        """Return the end of the last sheet and of the workbook."""
        yield self._book.close() + (self._book.finish() if self._own_book else b"")

"""Read untrusted XLSX workbooks. A workbook is a ZIP archive whose members can unpack to any size, so each is unpacked
only up to a limit. Formulas yield their cached results; links and macros are ignored."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from webapp import limits

_CELL_CHARS = limits.FILE_PREVIEW_CHARS


class MemberTooLargeError(Exception):
    """A member of a workbook unpacks to more than the limit."""


@contextmanager
def open_workbook(file: IO[bytes], sheet_bytes: int, strings_bytes: int) -> Iterator[Any]:
    """Open a workbook with openpyxl for reading row by row. At most `sheet_bytes` of each sheet and `strings_bytes` of
    the shared strings are unpacked.

    Raise `MemberTooLargeError`, here or while rows are read, and any exception that openpyxl raises for a damaged
    workbook.
    """
    from openpyxl.reader.excel import ExcelReader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns about features it ignores
        reader = ExcelReader(file, read_only=True, data_only=True, keep_links=False)
        reader.archive.close()
        with _LimitedArchive(file, sheet_bytes, strings_bytes) as guarded:
            reader.archive = guarded
            reader.read()
            yield reader.wb


def first_rows(file: IO[bytes]) -> dict[str, Any]:
    """Return the first rows of a workbook's first sheet as `rows` of short texts, or a `note` with the reason why it
    cannot be shown. Runs in a document process."""
    try:
        with open_workbook(file, limits.FILE_PREVIEW_SHEET_BYTES, limits.FILE_PREVIEW_STRINGS_BYTES) as book:
            sheet = next(iter(book.worksheets))
            bounds = {"max_row": limits.FILE_PREVIEW_ROWS + 2, "max_col": limits.FILE_PREVIEW_COLUMNS + 1}
            rows = [
                [cell_text(value) for value in row] for row in sheet.iter_rows(**bounds, values_only=True)
            ]
    except MemberTooLargeError:
        return {"note": "The unpacked workbook is too large for a preview."}
    except MemoryError:
        raise
    except Exception:  # A damaged workbook can raise any exception
        return {"note": "The workbook cannot be read: it is damaged, protected, or not an XLSX file."}
    while rows and not any(rows[-1]):
        rows.pop()
    width = max((index + 1 for row in rows for index, text in enumerate(row) if text), default=0)
    return {"rows": [row[:width] for row in rows]}


def cell_text(value: Any) -> str:
    """Return a value as a short text on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        try:
            return shorten(json.dumps(value, ensure_ascii=False))
        except (ValueError, RecursionError):
            return "…"
    try:
        return shorten(str(value))
    except ValueError:  # An integer with more digits than Python converts to text
        return "…"


def shorten(text: str) -> str:
    """Return the beginning of a text. Surrogates and control characters, which are invalid in a page, become U+FFFD."""
    printable = "".join(
        char if char.isprintable() or char in "\t\n\r" or char == "\u00a0" else "\N{REPLACEMENT CHARACTER}"
        for char in text[: _CELL_CHARS + 1]
    )
    return printable if len(text) <= _CELL_CHARS else printable[: _CELL_CHARS - 1] + "…"


class _LimitedArchive(zipfile.ZipFile):
    """An archive that unpacks each member only up to its limit, independent of the sizes in the archive's directory."""

    def __init__(self, file: IO[bytes], sheet: int, strings: int) -> None:
        self._sheet, self._strings = sheet, strings
        super().__init__(file)

    def open(self, name: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
        """Open a member as a file that raises `MemberTooLargeError` beyond its limit."""
        path = name if isinstance(name, str) else name.filename
        limit = limits.FILE_PREVIEW_PART_BYTES
        if "sharedstrings" in path.casefold():
            limit = self._strings
        elif "worksheets/" in path.casefold():
            limit = self._sheet
        return _LimitedStream(super().open(name, "r"), limit)


class _LimitedStream(io.RawIOBase):
    """A stream that raises `MemberTooLargeError` beyond its limit."""

    def __init__(self, source: Any, limit: int) -> None:
        self._source, self._remaining = source, limit

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes."""
        data = self._source.read(min(len(buffer), self._remaining + 1))
        self._remaining -= len(data)
        if self._remaining < 0:
            raise MemberTooLargeError
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the underlying stream."""
        self._source.close()
        super().close()

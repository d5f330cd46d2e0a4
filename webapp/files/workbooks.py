"""Open XLSX workbooks that come from anywhere. A workbook is a ZIP archive whose parts may unpack to any size: each is
unpacked only as far as the limits allow. Formulas are their last results; links and macros are ignored."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from webapp import limits

_CELL = limits.FILE_PREVIEW_CHARS


class TooMuchError(Exception):
    """A part of a workbook unpacks to more than the limit."""


@contextmanager
def opened(file: IO[bytes], sheet_bytes: int, strings_bytes: int) -> Iterator[Any]:
    """The workbook of a file as openpyxl reads it, row by row. Of each sheet at most `sheet_bytes` are unpacked, of
    the shared texts `strings_bytes`.

    Raises `TooMuchError`, there or while rows are read, and whatever a damaged workbook makes of its reader.
    """
    from openpyxl.reader.excel import ExcelReader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the reader leaves out: styles, extensions
        reader = ExcelReader(file, read_only=True, data_only=True, keep_links=False)
        reader.archive.close()
        with _Guarded(file, sheet_bytes, strings_bytes) as guarded:
            reader.archive = guarded
            reader.read()
            yield reader.wb


def first_rows(file: IO[bytes]) -> dict[str, Any]:
    """The first rows of a workbook's first sheet as `rows` of short texts, or a `note` that says why there are none.
    Runs in a document process."""
    try:
        with opened(file, limits.FILE_PREVIEW_SHEET_BYTES, limits.FILE_PREVIEW_STRINGS_BYTES) as book:
            sheet = next(iter(book.worksheets))
            most = {"max_row": limits.FILE_PREVIEW_ROWS + 2, "max_col": limits.FILE_PREVIEW_COLUMNS + 1}
            rows = [[cell(value) for value in row] for row in sheet.iter_rows(**most, values_only=True)]
    except TooMuchError:
        return {"note": "The workbook unpacks to too much for a preview."}
    except MemoryError:
        raise
    except Exception:  # whatever a damaged workbook makes of its reader
        return {"note": "The workbook cannot be read: it is damaged, protected, or no XLSX."}
    while rows and not any(rows[-1]):
        rows.pop()
    wide = max((place + 1 for row in rows for place, text in enumerate(row) if text), default=0)
    return {"rows": [row[:wide] for row in rows]}


def cell(value: Any) -> str:
    """A value as a short text of one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        try:
            return brief(json.dumps(value, ensure_ascii=False))
        except (ValueError, RecursionError):
            return "…"
    try:
        return brief(str(value))
    except ValueError:  # a whole number with more digits than Python turns into text
        return "…"


def brief(text: str) -> str:
    """The beginning of a text, in characters that a page may hold."""
    kept_text = "".join(_visible(text[: _CELL + 1]))
    return kept_text if len(text) <= _CELL else kept_text[: _CELL - 1] + "…"


def _visible(text: str) -> Iterator[str]:
    """Characters that a page may hold; surrogates and control characters as U+FFFD."""
    for char in text:
        yield (
            char
            if char.isprintable() or char in "\t\n\r" or char == "\u00a0"
            else "\N{REPLACEMENT CHARACTER}"
        )


class _Guarded(zipfile.ZipFile):
    """An archive each of whose parts gives no more than its limit, whatever its directory claims."""

    def __init__(self, file: IO[bytes], sheet: int, strings: int) -> None:
        self._sheet, self._strings = sheet, strings
        super().__init__(file)

    def open(self, name: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
        """The part as a file that raises `TooMuchError` past its limit."""
        path = name if isinstance(name, str) else name.filename
        most = limits.FILE_PREVIEW_PART_BYTES
        if "sharedstrings" in path.casefold():
            most = self._strings
        elif "worksheets/" in path.casefold():
            most = self._sheet
        return _Bounded(super().open(name, "r"), most)


class _Bounded(io.RawIOBase):
    """A stream that ends in `TooMuchError`."""

    def __init__(self, source: Any, most: int) -> None:
        self._source, self._left = source, most

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes."""
        data = self._source.read(min(len(buffer), self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise TooMuchError
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close what it reads."""
        self._source.close()
        super().close()

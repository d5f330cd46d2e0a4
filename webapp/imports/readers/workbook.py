"""Read XLSX: each sheet with a row of names is a table. A workbook is a ZIP archive whose parts may unpack to any size;
each is unpacked only up to the limits. Formulas are read as their last results; links and macros are ignored."""

from __future__ import annotations

import io
import zipfile
from datetime import date, datetime, time
from typing import Any, Final

import pyarrow as pa

from webapp import limits
from webapp.files import workbooks
from webapp.imports.readers import csv
from webapp.imports.readers.base import ParsedFile, Problem, Source, UnreadableFileError, clean_name

_TOO_LARGE: Final = "Its unpacked size exceeds the limit."


def read(source: Source) -> ParsedFile:
    """Read a table for each sheet that has rows. Raises `UnreadableFileError`."""
    result = ParsedFile("xlsx")
    try:
        file = io.BytesIO(source.content)
        with workbooks.open_workbook(file, limits.IMPORT_SHEET_BYTES, limits.IMPORT_STRINGS_BYTES) as book:
            for sheet in book.worksheets[: limits.IMPORT_TABLES]:
                _read_sheet(sheet, result)
    except workbooks.MemberTooLargeError:
        raise UnreadableFileError(
            "The unpacked workbook exceeds the size limit.", "Send its sheets as CSV."
        ) from None
    except (UnreadableFileError, MemoryError):
        raise
    except Exception:  # a damaged workbook can raise any exception
        message = "The workbook cannot be read: it is damaged, protected, or not an XLSX file."
        raise UnreadableFileError(message, "Save it as XLSX again, or send CSV.") from None
    if not result.tables and not result.problems:
        raise UnreadableFileError(
            "The workbook contains no rows.", "The first row must contain the column names."
        )
    if (
        len(result.tables) == 1
        and source.stem
        and result.tables[0].entity.name.casefold().startswith("sheet")
    ):
        one = result.tables[0]
        name = clean_name(source.stem)
        one.entity = one.entity.__class__(name, (name,), one.entity.fields)
    return result


def _read_sheet(sheet: Any, result: ParsedFile) -> None:
    name = clean_name(sheet.title) or "sheet"
    rows: list[list[Any]] = []
    cells = 0
    try:
        sheet.reset_dimensions()  # else each row is filled up to what the sheet claims
        for row in sheet.iter_rows(max_row=limits.IMPORT_ROWS + 1, values_only=True):
            row = row[: limits.IMPORT_COLUMNS + 1]
            if rows or any(cell not in (None, "") for cell in row):
                rows.append(list(row))
            cells += len(row)
            if cells > limits.IMPORT_SHEET_CELLS:
                break
    except (workbooks.MemberTooLargeError, zipfile.BadZipFile, ValueError, KeyError) as error:
        reason = _TOO_LARGE if isinstance(error, workbooks.MemberTooLargeError) else "It is damaged."
        result.problems.append(Problem(name, "", f"The sheet cannot be read: {reason}"))
        return
    width = max(
        (index + 1 for row in rows for index, cell in enumerate(row) if cell not in (None, "")), default=0
    )
    if not width:
        return
    headers = [_text(cell) or "" for cell in (rows[0] + [None] * width)[:width]]
    body = rows[1:]
    arrays = [
        pa.array([_text(row[index]) if index < len(row) else None for row in body], pa.string())
        for index in range(width)
    ]
    result.tables.append(csv.build_table(name, headers, arrays, result))


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return (
            value.date().isoformat()
            if value.time() == time()
            else value.isoformat(sep=" ", timespec="seconds")
        )
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) <= limits.MAX_INTEGER:
        return str(int(value))
    return clean_cell(str(value))


def clean_cell(text: str) -> str:
    """Return the text of a cell without invalid characters."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()

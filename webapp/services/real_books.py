"""Sheets of workbooks as rows: XLSX, read cell by cell and never unpacked beyond the limits."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

import pyarrow as pa

from webapp import limits
from webapp.services import row_makers, workbooks
from webapp.services.real_columns import NotReadable, again, column_kind, named
from webapp.services.real_spool import too_large


def workbook(file: IO[bytes], sheet: str | None) -> Iterator[pa.RecordBatch]:
    """The rows under the first one of a sheet; cells that are empty are blank."""

    def read() -> Iterator[Any]:
        yield from _records(again(file), sheet)

    first = next(_cells(again(file), sheet), None)
    if first is None:
        raise NotReadable("the sheet is empty")
    names = named(first)
    kinds: dict[str, set[str]] = {name: set() for name in names}
    for row in read():
        for name, value in row.items():
            if value is not None:
                kinds[name].add(_cell_kind(value))
    columns = {name: _cell_column(found) for name, found in kinds.items()}
    schema = pa.schema(list(columns.items()))
    rows, empty = read(), True
    while some := list(islice(rows, limits.SOURCE_BLOCK_ROWS)):
        empty = False
        arrays = [_cell_array([row.get(name) for row in some], kind) for name, kind in columns.items()]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    if empty:
        yield pa.RecordBatch.from_pylist([], schema)


def _records(file: IO[bytes], sheet: str | None) -> Iterator[dict[str, Any]]:
    rows = _cells(file, sheet)
    names = named(next(rows))
    for number, row in enumerate(rows, 2):
        if number > limits.SOURCE_ROWS:
            raise too_large()
        values = [None if value == "" else value for value in row[: len(names)]]
        if any(value is not None for value in row[len(names) :]):
            raise NotReadable(f"row {number:,} has more cells than the head")
        if any(value is not None for value in values):
            yield dict(zip(names, values, strict=False))


def _cells(file: IO[bytes], sheet: str | None) -> Iterator[tuple[Any, ...]]:
    try:
        with workbooks.opened(file, limits.SOURCE_SHEET_BYTES, limits.SOURCE_STRINGS_BYTES) as book:
            found = book.worksheets
            chosen = next((one for one in found if sheet is None or one.title == sheet), None)
            if chosen is None:
                known = ", ".join(one.title for one in found[:20])
                raise NotReadable(f'it has no sheet "{sheet}"; it has {known}')
            yield from chosen.iter_rows(values_only=True)
    except workbooks.TooMuchError:
        raise NotReadable("the workbook unpacks to too much") from None
    except (NotReadable, GeneratorExit, MemoryError):
        raise
    except Exception as error:  # whatever a broken workbook makes of its reader
        raise NotReadable(f"the workbook is damaged, protected, or no XLSX ({type(error).__name__})") from None


def _cell_kind(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return "moment"
    if isinstance(value, datetime.date):
        return "day"
    return row_makers.kind_of_value(value) if isinstance(value, bool | int | float | str) else "text"


def _cell_column(kinds: set[str]) -> pa.DataType:
    if kinds == {"moment"} or kinds == {"day", "moment"}:
        return pa.timestamp("us")
    return pa.date32() if kinds == {"day"} else column_kind(kinds)[0]


def _cell_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        return pa.array([None if value is None else _cell_text(value) for value in values], kind)
    if pa.types.is_floating(kind):
        return pa.array([None if value is None else float(value) for value in values], kind)
    return pa.array(values, kind)


def _cell_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    isoformat = getattr(value, "isoformat", None)
    return isoformat() if isoformat is not None else str(value)

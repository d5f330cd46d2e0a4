"""Workspace files as rows: CSV, JSON, NDJSON, XLSX and Parquet, read block by block.

CSV contains only texts: `007` is not 7 unless the type of the field says so. The other formats have types; a column
with several types of values, which JSON and workbooks allow, becomes text. Files are untrusted: the unpacked size of
workbooks is limited, and errors contain the position.

Column names and supported types are the same for all kinds of sources. Rows are spooled to unnamed Arrow files on the
disk of the process while they are read, so a source takes no more memory than one block. A spool is unlinked when it is
opened, so the real data are deleted when the process exits for any reason. The latest sources stay open for the next
request, within `limits.SOURCE_CACHE_BYTES`.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import hashlib
import io
import json
import os
import tempfile
import threading
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import IO, Any, Final

import orjson
import pyarrow as pa

from webapp import limits
from webapp.engine import budget, external_values
from webapp.engine.source_data import SourceTable
from webapp.errors import ApiError, Fault, validation_error
from webapp.files import workbooks


def too_large() -> ApiError:
    """Return the error for a source that exceeds the limits."""
    text = (
        f"A source can have at most {limits.SOURCE_ROWS:,} rows and {limits.SOURCE_BYTES // 2**30} GB; "
        "this one is larger."
    )
    hint = "Select fewer rows with a condition, a query, or limit."
    return ApiError("payload_too_large", text, {"max_rows": limits.SOURCE_ROWS, "hint": hint})


@contextmanager
def temporary_file() -> Iterator[IO[bytes]]:
    """Create a temporary file that no other process can open."""
    with tempfile.TemporaryFile() as file:
        yield file


class Spool:
    """A temporary Arrow file that the rows of a source are written to. It exists until this is closed."""

    def __init__(self) -> None:
        self._file = tempfile.NamedTemporaryFile(prefix="rowsmith-source-")  # noqa: SIM115

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()  # which deletes it; mapped pages stay valid

    def write(self, batches: Iterable[pa.RecordBatch], limit: int | None = None) -> None:
        """Write batches, which share a schema. More than `limit` rows are cut off. Error: payload_too_large."""
        max_rows, is_strict = min(limit or limits.SOURCE_ROWS, limits.SOURCE_ROWS), limit is None
        rows, writer = 0, None
        try:
            for batch in batches:
                if writer is None:
                    writer = pa.ipc.new_file(pa.PythonFile(self._file, "w"), batch.schema)
                if rows + batch.num_rows > max_rows and is_strict:
                    raise too_large()
                for start in range(0, batch.num_rows, limits.SOURCE_BLOCK_ROWS):
                    piece = batch.slice(start, min(limits.SOURCE_BLOCK_ROWS, max_rows - rows))
                    if piece.num_rows:
                        writer.write_batch(piece)
                    rows += piece.num_rows
                if self._file.tell() > limits.SOURCE_BYTES:
                    raise too_large()
                if rows >= max_rows and not is_strict:
                    break
            if writer is None:
                raise ApiError("validation_error", "The source has no columns.", {"fields": []})
        finally:
            if writer is not None:
                writer.close()
        self._file.flush()

    def write_bytes(self, pieces: Iterable[bytes]) -> None:
        """Write the bytes of an Arrow file."""
        for piece in pieces:
            self._file.write(piece)
        self._file.flush()

    def read_bytes(self) -> Iterator[bytes]:
        """Yield the bytes of the file."""
        self._file.seek(0)
        while piece := self._file.read(limits.STORAGE_CHUNK_BYTES):
            yield piece

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self._file.seek(0, os.SEEK_END)

    def sha256(self) -> str:
        """Return the SHA-256 of the file, in hexadecimal."""
        digest = hashlib.sha256()
        for piece in self.read_bytes():
            digest.update(piece)
        return digest.hexdigest()

    def open_table(self, snapshot: str) -> SourceTable:
        """Return the source, mapped into memory. It is valid as long as it is referenced."""
        return SourceTable(pa.ipc.open_file(pa.memory_map(self._file.name)).read_all(), snapshot)


class _SourceCache:
    """Sources that are open in this process; the least recently used are closed first. Thread-safe:
    concurrent requests for one source read it once."""

    def __init__(self, max_bytes: int = limits.SOURCE_CACHE_BYTES) -> None:
        self._max_bytes, self._size = max_bytes, 0
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[SourceTable, int]] = OrderedDict()
        self._locks: dict[str, threading.Lock] = {}

    def get(self, key: str, create: Callable[[], SourceTable]) -> SourceTable:
        """Return the source with the key `key`, created by `create` if it is not open."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key][0]
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            with self._lock:
                if key in self._entries:
                    return self._entries[key][0]
            try:
                source = create()
            finally:
                with self._lock:
                    self._locks.pop(key, None)
            size = source.table.nbytes
            with self._lock:
                if key not in self._entries and size <= self._max_bytes:
                    self._entries[key] = (source, size)
                    self._size += size
                    while self._size > self._max_bytes:
                        self._size -= self._entries.popitem(last=False)[1][1]
            return source

    def clear(self) -> None:
        """Close all sources."""
        with self._lock:
            self._entries.clear()
            self._size = 0


SOURCE_CACHE: Final = _SourceCache()


# --- Columns ------------------------------------------------------------------------------------------------


class UnreadableFileError(Exception):
    """The content does not match the file's format. The text is for users."""


def parse_header(names: Sequence[Any]) -> list[str]:
    """Return the column names of a header row. Raises `UnreadableFileError`."""
    found = ["" if name is None else str(name).strip() for name in names]
    while found and not found[-1]:
        found.pop()
    if not found:
        raise UnreadableFileError("it has no header row with column names")
    if len(found) > limits.SOURCE_COLUMNS:
        raise UnreadableFileError(f"it has more than {limits.SOURCE_COLUMNS:,} columns")
    for index, name in enumerate(found):
        if not name:
            raise UnreadableFileError(f"column {index + 1} has no name")
        if name in found[:index]:
            raise UnreadableFileError(f'two columns are named "{name}"')
    return found


def rewind(file: IO[bytes]) -> IO[bytes]:
    """Rewind a file."""
    file.seek(0)
    return file


_SIMPLE_TYPES: Final = {"truth": pa.bool_(), "whole": pa.int64(), "number": pa.float64()}
JSON_TEXT: Final = {b"json": b"1"}
"""Metadata of Arrow fields that contain JSON text."""


def column_type(kinds: set[str]) -> tuple[pa.DataType, bool]:
    """Return the type of a column by the kinds of its values, and whether its text is JSON."""
    if kinds == {"whole", "number"}:
        return pa.float64(), False
    if len(kinds) == 1 and (single := _SIMPLE_TYPES.get(next(iter(kinds)))) is not None:
        return single, False
    return pa.string(), bool(kinds) and kinds <= {"nested", "list", "empty"}


class BatchConverter:
    """Convert batches of a schema to types that the engine supports. Other types become text."""

    def __init__(self, schema: pa.Schema) -> None:
        self._fields = [(field.name, *_supported_type(field.type)) for field in schema]
        self.schema = pa.schema(
            [
                pa.field(name, kind, metadata=JSON_TEXT if nested else None)
                for name, kind, nested in self._fields
            ]
        )

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert one batch."""
        arrays = []
        for column, (_, kind, _) in zip(batch.columns, self._fields, strict=True):
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            if pa.types.is_string(kind) and not (
                pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
            ):
                column = pa.array(
                    [external_values.value_to_text(value) for value in column.to_pylist()], kind
                )
            elif column.type != kind:
                column = column.cast(kind, safe=not pa.types.is_timestamp(kind))
            arrays.append(column)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _supported_type(kind: pa.DataType) -> tuple[pa.DataType, bool]:
    if pa.types.is_dictionary(kind):
        return _supported_type(kind.value_type)
    if pa.types.is_boolean(kind):
        return kind, False
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return pa.int64(), False
    if pa.types.is_floating(kind):
        return pa.float64(), False
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= limits.MAX_DECIMALS and kind.precision <= 18:
        return pa.decimal128(38, kind.scale), False
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None), False
    if pa.types.is_date(kind):
        return pa.date32(), False
    return pa.string(), pa.types.is_nested(kind)


_INT64: Final = range(-(2**63), 2**63)


def kind_of_value(value: Any) -> str:
    """Return the kind of a JSON value: truth, whole, long, number, text, list, empty (a list of nulls),
    nested."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int):
        return "whole" if value in _INT64 else "long" if abs(value) < 10**38 else "text"
    if isinstance(value, float):
        return "number"
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return "list" if any(item is not None for item in value) else "empty"
    return "text" if isinstance(value, str) else "nested"


def text_of(value: Any) -> str:
    """Return a JSON value as text; objects and arrays as JSON."""
    if isinstance(value, str):
        return value
    return (
        str(value) if isinstance(value, int) and not isinstance(value, bool) else orjson.dumps(value).decode()
    )


# --- Files --------------------------------------------------------------------------------------------------


def read_workbook(file: IO[bytes], sheet: str | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows below the header row of a sheet. Empty cells are null."""
    first = next(_cells(rewind(file), sheet), None)
    if first is None:
        raise UnreadableFileError("the sheet is empty")
    names = parse_header(first)
    kinds: dict[str, set[str]] = {name: set() for name in names}
    for row in _records(rewind(file), sheet):
        for name, value in row.items():
            if value is not None:
                kinds[name].add(_cell_kind(value))
    columns = {name: _cell_column(found) for name, found in kinds.items()}
    schema = pa.schema(list(columns.items()))
    rows, empty = _records(rewind(file), sheet), True
    while block := list(islice(rows, limits.SOURCE_BLOCK_ROWS)):
        empty = False
        arrays = [_cell_array([row.get(name) for row in block], kind) for name, kind in columns.items()]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    if empty:
        yield pa.RecordBatch.from_pylist([], schema)


def _records(file: IO[bytes], sheet: str | None) -> Iterator[dict[str, Any]]:
    rows = _cells(file, sheet)
    names = parse_header(next(rows))
    for number, row in enumerate(rows, 2):
        if number > limits.SOURCE_ROWS:
            raise too_large()
        values = [None if value == "" else value for value in row[: len(names)]]
        if any(value is not None for value in row[len(names) :]):
            raise UnreadableFileError(f"row {number:,} has more cells than the header row")
        if any(value is not None for value in values):
            yield dict(zip(names, values, strict=False))


def _cells(file: IO[bytes], sheet: str | None) -> Iterator[tuple[Any, ...]]:
    try:
        with workbooks.open_workbook(file, limits.SOURCE_SHEET_BYTES, limits.SOURCE_STRINGS_BYTES) as book:
            found = book.worksheets
            worksheet = next((item for item in found if sheet is None or item.title == sheet), None)
            if worksheet is None:
                known = ", ".join(item.title for item in found[:20])
                raise UnreadableFileError(f'it has no sheet "{sheet}"; its sheets are {known}')
            yield from worksheet.iter_rows(values_only=True)
    except workbooks.MemberTooLargeError:
        raise UnreadableFileError("the workbook is too large when unpacked") from None
    except (UnreadableFileError, GeneratorExit, MemoryError):
        raise
    except Exception as error:  # any error of the reader on a damaged workbook
        raise UnreadableFileError(
            f"the workbook is damaged or protected, or is not an XLSX file ({type(error).__name__})"
        ) from None


def _cell_kind(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return "moment"
    if isinstance(value, datetime.date):
        return "day"
    return kind_of_value(value) if isinstance(value, bool | int | float | str) else "text"


def _cell_column(kinds: set[str]) -> pa.DataType:
    if kinds == {"moment"} or kinds == {"day", "moment"}:
        return pa.timestamp("us")
    return pa.date32() if kinds == {"day"} else column_type(kinds)[0]


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


_HEAD_BYTES: Final = 64 * 1024
_DELIMITERS: Final = ",;\t|"
_FORMATS: Final = {
    "csv": "csv", "tsv": "csv", "txt": "csv", "json": "json", "ndjson": "ndjson", "jsonl": "ndjson", "xlsx": "xlsx",
    "parquet": "parquet",
}  # fmt: skip


def file_format(name: str) -> str | None:
    """Return the format of a file by its name; None if it contains no rows."""
    return _FORMATS.get(name.rpartition(".")[2].casefold()) if "." in name else None


def read_batches(file: IO[bytes], name: str, sheet: str | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches of one schema; at least one batch, which may have no rows.

    Errors: validation_error, with the position in the file; payload_too_large.
    """
    kind = file_format(name)
    if kind is None:
        known = ", ".join(sorted(set(_FORMATS) - {"txt"}))
        raise unreadable_file_error(
            f'The name of "{name}" does not have a known file extension.',
            f"Supported file extensions: {known}.",
        )
    if sheet is not None and kind != "xlsx":
        raise unreadable_file_error("Only workbooks have sheets.", "Remove sheet.")
    max_bytes = max(limits.SOURCE_MIN_EXPANDED_BYTES, limits.SOURCE_EXPANSION * file.seek(0, io.SEEK_END))
    file.seek(0)
    try:
        reader = {"csv": _read_csv, "json": _read_json, "ndjson": _read_ndjson, "parquet": _read_parquet}.get(
            kind
        )
        size = 0
        for batch in read_workbook(file, sheet) if reader is None else reader(file):
            size += batch.nbytes
            if size > max_bytes:
                megabytes = f"{max_bytes // limits.MB:,} MB"
                text = f'The rows of "{name}" need more than {megabytes}, which is too much for the size of the file.'
                raise unreadable_file_error(
                    text, f"Rows can need at most {limits.SOURCE_EXPANSION} times the size of their file."
                )
            yield batch
    except (UnreadableFileError, pa.ArrowException, UnicodeError, zipfile.BadZipFile) as error:
        message = str(error).partition("\n")[0][:300]
        raise unreadable_file_error(
            f'"{name}" cannot be read: {message}', "Correct the file and upload it again."
        ) from None


def unreadable_file_error(text: str, hint: str) -> Exception:
    """Return a `validation_error` for a source."""
    return validation_error([Fault("source.file", "not_readable", text, hint)])


# --- CSV ----------------------------------------------------------------------------------------------------


def _read_csv(file: IO[bytes]) -> Iterator[pa.RecordBatch]:
    from pyarrow import csv as arrow_csv

    head = file.read(_HEAD_BYTES)
    file.seek(0)
    encoding, mark_bytes = _encoding(file, head)
    text = head.decode(encoding, "replace").removeprefix("\ufeff")
    if not text.strip():
        raise UnreadableFileError("it is empty")
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    names = parse_header(next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)))
    file.seek(mark_bytes)
    invalid_rows: list[Any] = []

    def record_invalid_row(row: Any) -> str:
        invalid_rows.append(row)
        return "error"

    try:
        with arrow_csv.open_csv(
            file,
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                block_size=limits.SOURCE_CELL_BYTES,
                encoding=encoding,
                column_names=names,
                skip_rows=0,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=record_invalid_row
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        ) as reader:
            skipped = 1  # the header is read as a row, so that the reader counts rows as users do
            for batch in reader:
                if skipped and batch.num_rows:
                    batch, skipped = batch.slice(1), 0
                yield batch
    except pa.ArrowInvalid:
        if invalid_rows:
            invalid_row = invalid_rows[0]
            position = f"row {invalid_row.number}" if invalid_row.number else "a row"
            raise UnreadableFileError(
                f"{position} has {invalid_row.actual_columns} columns, but the header row has "
                f"{invalid_row.expected_columns}"
            ) from None
        raise


def _encoding(file: IO[bytes], head: bytes) -> tuple[str, int]:
    """Return the encoding of a text by its byte order mark, else UTF-8, else Windows-1252; and the mark's length."""
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf8")):
        if head.startswith(mark):
            return encoding, len(mark)
    if b"\0" in head:
        raise UnreadableFileError("it is not a text file")
    decoder, is_utf8 = codecs.getincrementaldecoder("utf-8")(), True
    try:
        while piece := file.read(limits.SOURCE_CELL_BYTES):
            decoder.decode(piece)
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        is_utf8 = False
    file.seek(0)
    return ("utf8" if is_utf8 else "cp1252"), 0


# --- JSON ---------------------------------------------------------------------------------------------------

_READ_BYTES: Final = 1024 * 1024


def _elements(file: IO[bytes]) -> Iterator[Any]:
    """Yield the elements of an array, or consecutive values, while reading."""
    decoder, reader = json.JSONDecoder(), io.TextIOWrapper(io.BufferedReader(_SharedFile(file)), "utf-8-sig")
    text, position, at_end, first, array = "", 0, False, True, False
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        if position < len(text) and first:
            first, array = False, text[position] == "["
            position += array
            continue
        if position < len(text) and array and text[position] == "]":
            return
        try:
            if position >= len(text):
                raise ValueError
            value, end = decoder.raw_decode(text, position)
            if end == len(text) and not at_end:
                raise ValueError  # the number may continue
        except (ValueError, RecursionError) as error:
            if at_end and position >= len(text):
                if array:
                    raise UnreadableFileError("its array is not closed") from None
                return
            if at_end or len(text) - position > limits.SOURCE_CELL_BYTES:
                raise UnreadableFileError(f"it is not valid JSON: {error}") from None
            more = reader.read(_READ_BYTES)
            at_end = not more
            text, position = text[position:] + more, 0
            continue
        yield value
        position = end


class _SharedFile(io.RawIOBase):
    """A file that stays open when its reader is closed."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into a buffer, and return their number."""
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _read_json(file: IO[bytes]) -> Iterator[pa.RecordBatch]:
    yield from _batches_of_objects(lambda: _elements(rewind(file)), "element")


def _read_ndjson(file: IO[bytes]) -> Iterator[pa.RecordBatch]:
    yield from _batches_of_objects(lambda: _lines(rewind(file)), "line")


def _lines(file: IO[bytes]) -> Iterator[Any]:
    for number, line in enumerate(file, 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line.strip():
            continue
        if len(line) > limits.SOURCE_CELL_BYTES:
            raise UnreadableFileError(f"line {number:,} is too long")
        try:
            item = orjson.loads(line)
        except orjson.JSONDecodeError:
            try:
                item = json.loads(line)  # numbers beyond 64 bits, which the faster parser rejects
            except (ValueError, RecursionError) as error:
                raise UnreadableFileError(f"line {number:,} is not valid JSON: {error}") from None
        yield item


def _batches_of_objects(read: Callable[[], Iterator[Any]], item_name: str) -> Iterator[pa.RecordBatch]:
    """Yield objects as batches. Reads them twice: first the types of their values, then the values."""
    kinds: dict[str, set[str]] = {}
    for number, item in enumerate(read(), 1):
        if not isinstance(item, Mapping):
            raise UnreadableFileError(f"{item_name} {number:,} is not an object")
        if number > limits.SOURCE_ROWS:
            raise too_large()
        for name, value in item.items():
            found = kinds.get(name)
            if found is None:
                found = kinds[name] = set()
            if value is not None:
                found.add(kind_of_value(value))
    if not kinds:
        raise UnreadableFileError("it contains no rows")
    if len(kinds) > limits.SOURCE_COLUMNS:
        raise UnreadableFileError(f"it has more than {limits.SOURCE_COLUMNS:,} columns")
    columns = {name: column_type(found) for name, found in kinds.items()}
    rows = read()
    schema = pa.schema(
        [
            pa.field(name, kind, metadata=JSON_TEXT if nested else None)
            for name, (kind, nested) in columns.items()
        ]
    )
    empty = True
    while block := list(islice(rows, limits.SOURCE_BLOCK_ROWS)):
        empty = False
        arrays = []
        for name, (kind, _) in columns.items():
            values = [row.get(name) for row in block]
            if pa.types.is_string(kind):
                values = [None if value is None else text_of(value) for value in values]
            elif pa.types.is_floating(kind):
                values = [None if value is None else float(value) for value in values]
            arrays.append(pa.array(values, kind))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    if empty:
        yield pa.RecordBatch.from_pylist([], schema)


# --- Parquet, and other typed formats ---


def _read_parquet(file: IO[bytes]) -> Iterator[pa.RecordBatch]:
    from pyarrow import parquet  # brings 8 MB of file systems into a process, as does `pyarrow.csv`

    try:
        schema = parquet.read_schema(file)
        parse_header(schema.names)
        # Texts stay in the dictionaries that the file has them in until a few rows at a time are decoded.
        texts = [
            field.name
            for field in schema
            if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        ]
        reader = parquet.ParquetFile(rewind(file), memory_map=False, read_dictionary=texts)
        # How many rows to read per batch, by the size that the file states for its row groups.
        groups = [reader.metadata.row_group(place) for place in range(reader.metadata.num_row_groups)]
        width = max((group.total_byte_size / max(1, group.num_rows) for group in groups), default=0)
        rows = max(1, min(limits.SOURCE_BLOCK_ROWS, int(limits.SOURCE_PIECE_BYTES / max(1, width))))
        found = reader.iter_batches(rows, use_threads=False)
    except OSError as error:  # exceptions that pyarrow raises for damaged files
        raise UnreadableFileError(str(error)) from None
    kinds = BatchConverter(schema)
    empty = True
    while True:
        try:
            batch = next(found, None)
        except OSError as error:
            raise UnreadableFileError(str(error)) from None
        if batch is None:
            break
        for piece in _slices(batch):
            empty = False
            yield kinds.convert(piece)
    if empty:
        yield kinds.convert(pa.RecordBatch.from_pylist([], schema))


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield slices of a batch that take at most SOURCE_PIECE_BYTES when decoded, or have one row."""
    size = sum(map(budget.size_of, batch.columns))
    if size <= limits.SOURCE_PIECE_BYTES or batch.num_rows < 2:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _slices(batch.slice(0, half))
    yield from _slices(batch.slice(half))

"""CSV and similar formats: any delimiter, quotes as in RFC 4180, rows of different lengths.

Arrow reads the file, every cell as text. If a row is longer or shorter than the first one, the standard library
reads the first rows instead, and pads or truncates them.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv as arrow_csv

from webapp import limits
from webapp.connectors.schema import Entity
from webapp.imports.readers.base import (
    ParsedFile,
    Problem,
    Source,
    Table,
    UnreadableFileError,
    clean_name,
    decode,
    unique_names,
)
from webapp.imports.readers.values import ObservedColumn, observe_column


def build_table(name: str, headers: Sequence[Any], columns: Iterable[pa.Array], read: ParsedFile) -> Table:
    """Return a table of texts, one array per column; exceeded limits are reported in `read`."""
    names, notes = unique_names(headers)
    used_names = names[: limits.MAX_FIELDS]
    report_excess_columns(name, names, read)
    observed = [observe_column(item, texts) for item, texts in zip(used_names, columns, strict=False)]
    result = build_table_from_columns(name, observed)
    for column, text in notes.items():
        if column in used_names:
            result.note(column, text)
    return result


def report_excess_columns(name: str, names: Sequence[str], read: ParsedFile) -> None:
    """Report columns beyond the maximum of a template."""
    text = f"Not imported: a template can have at most {limits.MAX_FIELDS} fields."
    excess = names[limits.MAX_FIELDS : limits.IMPORT_COLUMNS]
    read.problems += [Problem(name, item, text) for item in excess]
    if len(names) > limits.IMPORT_COLUMNS:
        read.problems.append(
            Problem(name, "", f"It has {len(names):,} columns; the remaining ones are not listed.")
        )


def build_table_from_columns(name: str, observed: Sequence[ObservedColumn]) -> Table:
    """Return a table of observed columns."""
    table_name = clean_name(name) or "rows"
    result = Table(Entity(table_name, (table_name,), tuple(column.column for column in observed)))
    sampled = [column for column in observed if column.sample and column.result is None]
    if sampled:
        size = max(len(column.sample) for column in sampled)
        result.sample = pa.RecordBatch.from_arrays(
            [
                pa.array(column.sample + [None] * (size - len(column.sample)), pa.string())
                for column in sampled
            ],
            names=[column.column.name for column in sampled],
        )
    for column in observed:
        if column.result is not None:
            result.known_results[column.column.name] = column.result
        elif not column.sample:
            result.note(column.column.name, "It has no values in the file; the type is based on its name.")
    return result


DELIMITERS: Final = ",;\t|"
_SNIFFED_ROWS: Final = 50  # chosen: rows that are used to detect the delimiter
_SNIFFED_CHARS: Final = limits.MB  # chosen: characters that are searched for these rows
_BLOCK_BYTES: Final = 8 * limits.MB  # chosen: size of Arrow's blocks, and maximum size of a row
_VALUE_PATTERN: Final = re.compile(r"[+-]?[0-9][0-9.,:/ -]*|true|false|null|\S+@\S+\.\S+", re.I)


def read(source: Source) -> ParsedFile:
    """Read the file as one table. Raises `UnreadableFileError` for a file without a row."""
    text, encoding_note = decode(source.content)
    if not text or text.isspace():
        raise UnreadableFileError("The file is empty.", "Send at least a header row.")
    delimiter = ""
    if (separator := re.match(r"sep=(.)\r?(?:\n|$)", text)) is not None:  # a line of Excel's
        text, delimiter = text[separator.end() :], separator[1]
    headers, delimiter, header = _read_header(text, delimiter)
    found = ParsedFile("csv")
    arrays = _read_with_arrow(text, delimiter, len(headers), header)
    ragged = arrays is None
    if arrays is None:
        rows = _read_rows(text, delimiter, limits.IMPORT_ROWS + 1)[int(header) :]
        width = min(len(headers), limits.MAX_FIELDS)
        padded = [(row[:width] + [""] * width)[:width] for row in rows]
        arrays = [pa.array([row[index] for row in padded], pa.string()) for index in range(width)]
    result = build_table(source.stem, headers if header else [""] * len(headers), arrays, found)
    names = [field.name for field in result.entity.fields]
    if not header:
        for name in names:
            result.notes[name] = ["The first row contains values, so the columns are numbered."]
    if ragged and names:
        result.note(
            names[-1],
            "Rows have different lengths: missing cells are treated as blank, extra cells are ignored.",
        )
    if encoding_note and names:
        result.note(names[0], encoding_note)
    found.tables.append(result)
    return found


def _read_header(text: str, delimiter: str) -> tuple[list[str], str, bool]:
    """Return the cells of the first row, the delimiter, and whether the cells are names."""
    csv.field_size_limit(limits.MAX_UPLOAD_BYTES)
    best: tuple[tuple[int, int], str, list[list[str]]] | None = None
    for item in delimiter or DELIMITERS:
        rows = _read_rows(text[:_SNIFFED_CHARS], item, _SNIFFED_ROWS)
        widths = Counter(len(row) for row in rows)
        width, frequency = widths.most_common(1)[0] if widths else (0, 0)
        score = (frequency if width > 1 else 0, width)
        if best is None or score > best[0]:
            best = (score, item, rows)
    assert best is not None
    _, delimiter, rows = best
    if not rows:
        raise UnreadableFileError("The file contains no rows.", "Send at least a header row.")
    first = [cell.strip() for cell in rows[0]]
    while (
        len(first) > 1
        and not first[-1]
        and all(len(row) < len(first) or not row[len(first) - 1] for row in rows)
    ):
        first.pop()  # every line ends with a delimiter
    names = [cell for cell in first if cell]
    header = bool(names) and not any(_VALUE_PATTERN.fullmatch(cell) for cell in names)
    if not header and len(rows) > 1 and len(names) == len(set(names)):
        second = rows[1]  # a year as a name above texts is still a name
        values = [bool(_VALUE_PATTERN.fullmatch(cell.strip())) for cell in second]
        header = sum(values) > sum(bool(_VALUE_PATTERN.fullmatch(cell)) for cell in names)
    return first, delimiter, header


def _read_rows(text: str, delimiter: str, limit: int) -> list[list[str]]:
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    found: list[list[str]] = []
    with suppress(csv.Error):  # the rows that were read before are used
        found.extend(row for row in islice(lines, limit) if row)
    return found


def _read_with_arrow(text: str, delimiter: str, width: int, header: bool) -> list[pa.Array] | None:
    """Return the columns, or None if the rows have different lengths."""
    names = [str(index) for index in range(width)]
    data = text.encode()
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(
                column_names=names, skip_rows_after_names=int(header), block_size=_BLOCK_BYTES
            ),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in data),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names[: limits.MAX_FIELDS], pa.string()),
                include_columns=names[: limits.MAX_FIELDS],
                strings_can_be_null=False,
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid:  # rows of unequal length, a quote that does not end, a row longer than a block
        return None
    return [column.combine_chunks() for column in table.columns]

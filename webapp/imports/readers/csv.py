"""CSV and similar formats: any delimiter, quotes as in RFC 4180, rows of different lengths.

Arrow reads the whole file, every cell as text. If a row is longer or shorter than the first one, the standard library
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
from webapp.imports.readers.base import Problem, Read, Source, Table, Unreadable, clean, decoded, named
from webapp.imports.readers.values import ObservedColumn, seen


def table(name: str, heads: Sequence[Any], columns: Iterable[pa.Array], read: Read) -> Table:
    """Return a table of texts, one array per column; exceeded limits are reported in `read`."""
    names, told = named(heads)
    kept = names[: limits.MAX_FIELDS]
    beyond(name, names, read)
    found = [seen(one, texts) for one, texts in zip(kept, columns, strict=False)]
    made = of_seen(name, found)
    for column, text in told.items():
        if column in kept:
            made.note(column, text)
    return made


def beyond(name: str, names: Sequence[str], read: Read) -> None:
    """Report columns beyond the maximum of a template."""
    text = f"A template has at most {limits.MAX_FIELDS} fields: left out."
    over = names[limits.MAX_FIELDS : limits.IMPORT_COLUMNS]
    read.problems += [Problem(name, one, text) for one in over]
    if len(names) > limits.IMPORT_COLUMNS:
        read.problems.append(
            Problem(name, "", f"It has {len(names):,} columns; the others are not named here.")
        )


def of_seen(name: str, found: Sequence[ObservedColumn]) -> Table:
    """A table of columns that were read."""
    called = clean(name) or "rows"
    made = Table(Entity(called, (called,), tuple(one.column for one in found)))
    sampled = [one for one in found if one.sample and one.ready is None]
    if sampled:
        size = max(len(one.sample) for one in sampled)
        made.sample = pa.RecordBatch.from_arrays(
            [pa.array(one.sample + [None] * (size - len(one.sample)), pa.string()) for one in sampled],
            names=[one.column.name for one in sampled],
        )
    for one in found:
        if one.ready is not None:
            made.ready[one.column.name] = one.ready
        elif not one.sample:
            made.note(one.column.name, "It has no value in the file; its name decided.")
    return made


DELIMITERS: Final = ",;\t|"
_SNIFFED: Final = 50  # chosen: rows that are used to detect the delimiter
_HEAD: Final = limits.MB  # chosen: characters that are searched for these rows
_BLOCK: Final = 8 * limits.MB  # chosen: size of Arrow's blocks, and maximum size of a row
_VALUE: Final = re.compile(r"[+-]?[0-9][0-9.,:/ -]*|true|false|null|\S+@\S+\.\S+", re.I)


def read(source: Source) -> Read:
    """One table. Raises `Unreadable` for a file without a row."""
    text, told = decoded(source.raw)
    if not text or text.isspace():
        raise Unreadable("The file is empty.", "Send at least a row of column names.")
    delimiter = ""
    if (said := re.match(r"sep=(.)\r?(?:\n|$)", text)) is not None:  # a line of Excel's
        text, delimiter = text[said.end() :], said[1]
    heads, delimiter, header = _head(text, delimiter)
    found = Read("csv")
    arrays = _arrow(text, delimiter, len(heads), header)
    ragged = arrays is None
    if arrays is None:
        rows = _rows(text, delimiter, limits.IMPORT_ROWS + 1)[int(header) :]
        wide = min(len(heads), limits.MAX_FIELDS)
        even = [(row[:wide] + [""] * wide)[:wide] for row in rows]
        arrays = [pa.array([row[place] for row in even], pa.string()) for place in range(wide)]
    made = table(source.stem, heads if header else [""] * len(heads), arrays, found)
    names = [one.name for one in made.entity.fields]
    if not header:
        for name in names:
            made.notes[name] = ["The first row holds values: the columns are counted."]
    if ragged and names:
        made.note(
            names[-1], "Rows are of unequal length: missing cells count as blank, surplus ones are left out."
        )
    if told and names:
        made.note(names[0], told)
    found.tables.append(made)
    return found


def _head(text: str, delimiter: str) -> tuple[list[str], str, bool]:
    """The cells of the first row, the delimiter, and whether they are names."""
    csv.field_size_limit(limits.MAX_UPLOAD_BYTES)
    best: tuple[tuple[int, int], str, list[list[str]]] | None = None
    for one in delimiter or DELIMITERS:
        rows = _rows(text[:_HEAD], one, _SNIFFED)
        widths = Counter(len(row) for row in rows)
        wide, often = widths.most_common(1)[0] if widths else (0, 0)
        score = (often if wide > 1 else 0, wide)
        if best is None or score > best[0]:
            best = (score, one, rows)
    assert best is not None
    _, delimiter, rows = best
    if not rows:
        raise Unreadable("The file has no row.", "Send at least a row of column names.")
    first = [cell.strip() for cell in rows[0]]
    while (
        len(first) > 1
        and not first[-1]
        and all(len(row) < len(first) or not row[len(first) - 1] for row in rows)
    ):
        first.pop()  # every line ends with a delimiter
    said = [cell for cell in first if cell]
    header = bool(said) and not any(_VALUE.fullmatch(cell) for cell in said)
    if not header and len(rows) > 1 and len(said) == len(set(said)):
        below = rows[1]  # a year as a name above texts is still a name
        values = [bool(_VALUE.fullmatch(cell.strip())) for cell in below]
        header = sum(values) > sum(bool(_VALUE.fullmatch(cell)) for cell in said)
    return first, delimiter, header


def _rows(text: str, delimiter: str, most: int) -> list[list[str]]:
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    found: list[list[str]] = []
    with suppress(csv.Error):  # the rows that were read before are used
        found.extend(row for row in islice(lines, most) if row)
    return found


def _arrow(text: str, delimiter: str, wide: int, header: bool) -> list[pa.Array] | None:
    """Return the columns, or None if the rows have different lengths."""
    names = [str(place) for place in range(wide)]
    data = text.encode()
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(column_names=names, skip_rows_after_names=int(header), block_size=_BLOCK),
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

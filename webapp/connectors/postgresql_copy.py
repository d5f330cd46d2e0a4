"""Rows as COPY's text format (PostgreSQL, "COPY", "Text Format"), rendered column by column.

A line end inside a value is written `\\n`, so each line is one row, and rows are taken out by cutting lines out.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.connectors.base import Failure
from webapp.connectors.shape import Column
from webapp.connectors.sql_values import fitted, hexed, plain
from webapp.engine.formats import FormatError
from webapp.engine.formats.codecs import BoolCodec, TextCodec, TimestampCodec
from webapp.engine.formats.column import Column as Spelled
from webapp.engine.formats.column import Frame, Wrapping
from webapp.engine.formats.escape import Escape, Scan, Unfit
from webapp.engine.formats.layout import Oversize
from webapp.engine.formats.nested import scalar_codec
from webapp.engine.formats.rows import Rows

_SIGNS: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
# Days that the writers can spell; PostgreSQL itself goes further.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
DAY_MICROS = 86_400_000_000


class CopyEscape(Escape):
    """A value of COPY's text format. Raises `Unfit` for U+0000, which PostgreSQL's text cannot hold."""

    key = "copy"
    _special = re.compile("[\\\\\t\n\r\0]")

    def one(self, text: str) -> str:
        """See `Escape.one`."""
        return self._special.sub(self._replacement, text)

    @staticmethod
    def _replacement(match: re.Match[str]) -> str:
        if match[0] == "\0":
            raise Unfit(0, "A text holds U+0000, which PostgreSQL cannot hold.")
        return _SIGNS[match[0]]

    def rows(self, scan: Scan) -> np.ndarray | None:
        """See `Escape.rows`."""
        found = [scan.is_(b"\\")] if scan.has(b"\\") else []
        if scan.has_control():
            found += [scan.is_(sign) for sign in (b"\t", b"\n", b"\r", b"\0")]
        return scan.rows(np.logical_or.reduce(found)) if found else None


_ESCAPE: Final = CopyEscape()


def array_texts(array: pa.Array) -> pa.Array:
    """`string[n]`: lists as array literals (`{"a",NULL,{...}}`; PostgreSQL, "Array Input and Output Syntax")."""
    inner = plain(array.flatten())
    if pa.types.is_list(inner.type):
        words = array_texts(inner)
    else:
        if pa.types.is_dictionary(inner.type):
            inner = inner.dictionary_decode()
        if pa.types.is_binary(inner.type):
            inner = pc.binary_join_element_wise("\\x", hexed(inner), "")
        texts = inner.cast(pa.string())
        texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
        words = pc.binary_join_element_wise('"', texts, '"', "")
    words = pc.fill_null(words, "NULL")
    sizes = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate((np.zeros(1, np.int32), np.cumsum(sizes, dtype=np.int32)))
    lists = pa.ListArray.from_arrays(pa.array(offsets), words)
    texts = pc.binary_join_element_wise("{", pc.binary_join(lists, ","), "}", "")
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string())) if array.null_count else texts


def _prepared(array: pa.Array, column: Column) -> pa.Array:
    array = plain(array)
    if column.type == "array" and pa.types.is_list(array.type):
        return array_texts(array)
    return fitted(array, column)


def _spelled(column: Column, kind: pa.DataType, lead: str) -> Spelled:
    before, after = "", ""
    if pa.types.is_binary(kind):
        codec, before = TextCodec(None), "\\\\x"
    elif pa.types.is_timestamp(kind):
        codec, after = TimestampCodec(b" "), "+00" if kind.tz else ""
    elif pa.types.is_boolean(kind):
        codec = BoolCodec(b"f", b"t") if column.type == "boolean" else BoolCodec()
    else:
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        codec = scalar_codec(value, _ESCAPE)
    wrapping = Wrapping((lead + before, lead + "\\N", lead + before), (after, "", after))
    return Spelled(column.name, codec, wrapping)


class CopyText:
    """Writes batches of some columns as lines. Any thread may, one at a time."""

    def __init__(self, columns: Sequence[Column], *, numbered: bool = False) -> None:
        """`numbered`: each line begins with its row's place in the batch."""
        self._columns = (Column("row", "integer", "bigint"), *columns) if numbered else tuple(columns)
        self._numbered = numbered
        self._made: dict[tuple[str, ...], Rows] = {}
        self._writing = threading.Lock()

    def lines(self, batch: pa.RecordBatch) -> tuple[Lines, list[Failure]]:
        """The rows that can be written, and those that cannot."""
        with self._writing:
            return self._lines(batch)

    def _lines(self, batch: pa.RecordBatch) -> tuple[Lines, list[Failure]]:
        kept = np.arange(batch.num_rows)
        given = [pa.array(kept), *batch.columns] if self._numbered else batch.columns
        arrays = [_prepared(array, column) for array, column in zip(given, self._columns, strict=True)]
        try:
            return cut_lines(b"".join(self._text(arrays)), kept), []
        except FormatError:
            failures = self._unfit(arrays)
            kept = np.delete(kept, [one.index for one in failures])
            chosen = pa.array(kept)
            text = b"".join(self._text([array.take(chosen) for array in arrays])) if kept.size else b""
            return cut_lines(text, kept), failures

    def _text(self, arrays: list[pa.Array]) -> list[bytes]:
        count = len(arrays[0])
        kinds = tuple(str(array.type) for array in arrays)
        rows = self._made.get(kinds)
        if rows is None:
            columns = [
                _spelled(column, array.type, "\t" if place else "")
                for place, (column, array) in enumerate(zip(self._columns, arrays, strict=True))
            ]
            rows = self._made[kinds] = Rows(columns, Frame(closings=("\n",)), joint=True)
        block = [hexed(array) if pa.types.is_binary(array.type) else array for array in arrays]
        if not count:
            return []
        try:
            return [bytes(rows.render(block, ""))]
        except Oversize:
            half = count // 2
            return [
                *self._text([array.slice(0, half) for array in arrays]),
                *self._text([array.slice(half) for array in arrays]),
            ]

    def _unfit(self, arrays: list[pa.Array]) -> list[Failure]:
        """Every row that holds what COPY's text cannot."""
        found: dict[int, Failure] = {}
        for column, array in zip(self._columns, arrays, strict=True):
            values = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
            if pa.types.is_string(values.type):
                mask = pc.match_substring(values, "\0")
                reason, message = "wrong_type", "The text holds U+0000, which PostgreSQL cannot hold."
            elif pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
                unit = 1 if pa.types.is_date(values.type) else DAY_MICROS
                numbers = values.cast(pa.int32() if unit == 1 else pa.int64())
                mask = pc.or_(
                    pc.less(numbers, FIRST_DAY * unit), pc.greater_equal(numbers, (LAST_DAY + 1) * unit)
                )
                reason, message = "out_of_range", "The date lies outside the years 1 to 9999."
            else:
                continue
            for place in pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist():
                found.setdefault(place, Failure(place, reason, message, column=column.name))
        return list(found.values())


class Lines:
    """Rows that were written, which can be picked. Row `rows[i]` of the batch lies between `bounds[i]` and the next
    bound; `head` and `tail` stand around those of one COPY. `rows` are sorted."""

    def __init__(
        self,
        text: bytes | memoryview,
        bounds: np.ndarray,
        rows: np.ndarray,
        head: bytes = b"",
        tail: bytes = b"",
    ) -> None:
        self._text, self._bounds, self.rows, self._around = memoryview(text), bounds, rows, (head, tail)

    @property
    def binary(self) -> bool:
        """Whether they are of COPY's binary format."""
        return bool(self._around[0])

    def of(self, rows: np.ndarray) -> bytes:
        """What COPY is given to write some of the rows, in order."""
        places = np.searchsorted(self.rows, rows)
        cuts = np.flatnonzero(np.diff(places) != 1) + 1
        starts, ends = places[np.r_[0, cuts]], places[np.r_[cuts - 1, places.size - 1]] + 1
        bounds = self._bounds
        parts = [
            self._text[bounds[a] : bounds[b]] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        return b"".join((self._around[0], *parts, self._around[1]))


def cut_lines(text: bytes, rows: np.ndarray) -> Lines:
    """Lines of the text format; each row ends with its line."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
    return Lines(text, np.concatenate((np.zeros(1, np.int64), ends)), rows)

"""Escape texts for a file: JSON, CSV and XML. The rules of SQL are in `sql_dialects`.

A block's texts are in one buffer, and most need no escaping, which one pass over the bytes determines. Only rows with
special characters are rewritten.
"""

from __future__ import annotations

import json
import re
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits

_FIRST_PRINTABLE = 0x20
_TREATED_BYTES = (
    1024 * 1024
)  # bytes of texts rewritten at a time: as Python strings they take up to 24 times as much
_SLICE_CHARS = (
    65_536  # longer texts are rewritten in slices if their characters are independent of one another
)


class UnrepresentableTextError(ValueError):
    """This format cannot represent text number ``row``; the message says why."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


class EscapedTooLargeError(Exception):
    """The escaped texts take more bytes than the caller allows: at least ``size``."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


@dataclass(frozen=True, slots=True)
class Replacements:
    """The changes: ``values[i]`` replaces text ``rows[i]``; ``marked`` texts use the column's alternative quotes.

    ``rows`` and ``marked`` are sorted ``int64`` vectors, or None.
    """

    rows: np.ndarray | None = None
    values: pa.Array | None = None
    marked: np.ndarray | None = None


class ByteScan:
    """The bytes of a string array, searched as one: finding nothing costs next to nothing."""

    def __init__(self, texts: pa.Array) -> None:
        _, offsets, data = texts.buffers()
        span = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        self.starts, self.ends = span[:-1], span[1:]
        self._base = int(span[0])
        self.octets = np.frombuffer(data or b"", np.uint8)[self._base : int(span[-1])]
        self._bytes: bytes | None = None

    def has(self, needle: bytes) -> bool:
        """Return whether ``needle`` occurs anywhere."""
        if self._bytes is None:
            self._bytes = self.octets.tobytes()
        return needle in self._bytes

    def byte_mask(self, sign: bytes) -> np.ndarray:
        """Return ``bool`` for each byte: whether it is ``sign``."""
        return self.octets == sign[0]

    def control_mask(self) -> np.ndarray:
        """Return ``bool`` for each byte: whether it is below 0x20."""
        return self.octets < _FIRST_PRINTABLE

    def has_control(self) -> bool:
        """Return whether any byte below 0x20 occurs."""
        return self.octets.size > 0 and int(self.octets.min()) < _FIRST_PRINTABLE

    def rows_where(self, at: np.ndarray) -> np.ndarray:
        """The texts in which ``at`` (``bool`` for each byte) is true anywhere, sorted and distinct."""
        parts = [
            self._rows(at[start : start + _TREATED_BYTES], start)
            for start in range(0, at.size, _TREATED_BYTES)
        ]
        if len(parts) < 2:
            return parts[0] if parts else np.empty(0, np.int64)
        found = np.concatenate(parts)
        return found[np.flatnonzero(np.diff(found, prepend=-1))]

    def _rows(self, at: np.ndarray, start: int) -> np.ndarray:
        found = np.searchsorted(self.ends, np.flatnonzero(at) + (self._base + start), side="right")
        return found[np.flatnonzero(np.diff(found, prepend=-1))]

    def rows_beginning_with(self, signs: bytes) -> np.ndarray:
        """The texts whose first byte is one of ``signs``."""
        if not self.octets.size:
            return np.empty(0, np.int64)
        first = self.octets.take(self.starts - self._base, mode="clip")
        return np.flatnonzero(np.isin(first, np.frombuffer(signs, np.uint8)) & (self.ends > self.starts))

    def rows_longer_than(self, size: int) -> np.ndarray:
        """The texts of more than ``size`` bytes."""
        if self.octets.size <= size:
            return np.empty(0, np.int64)
        return np.flatnonzero(self.ends - self.starts > size)

    def rows_equal_to(self, text: bytes) -> np.ndarray:
        """The texts that are ``text``."""
        found = np.flatnonzero(self.ends - self.starts == len(text))
        for index, byte in enumerate(text):
            found = found[self.octets[self.starts[found] - self._base + index] == byte]
        return found

    def rows_with_outer_space(self) -> np.ndarray:
        """The texts whose first or last byte is white space or a control."""
        if not self.octets.size:
            return np.empty(0, np.int64)
        first = self.octets.take(self.starts - self._base, mode="clip") <= _FIRST_PRINTABLE
        last = self.octets.take(self.ends - (self._base + 1), mode="clip") <= _FIRST_PRINTABLE
        return np.flatnonzero((first | last) & (self.ends > self.starts))


class Escape(ABC):
    """The escaping rules of one format. ``key`` identifies everything that the result depends on; pools are cached
    under it."""

    key: str
    _escapes_per_character: bool = False
    """Whether `escape_text` handles each character independently, and never raises."""

    @abstractmethod
    def escape_text(self, text: str) -> str:
        """Return ``text`` as written to the file. Raises `UnrepresentableTextError` with row 0."""

    @abstractmethod
    def rows_to_escape(self, scan: ByteScan) -> np.ndarray | None:
        """The texts that `escape_text` changes, and perhaps others; None for none."""

    def rows_to_mark(self, scan: ByteScan) -> np.ndarray | None:
        """The texts that are marked; None for none."""
        return None

    def escape_column(self, texts: pa.Array, most: int = sys.maxsize) -> Replacements:
        """Return the changes to ``texts`` (string array; nulls are ignored).

        ``most``: the maximum size of the changed texts in bytes. A control character becomes six or seven characters,
        so this is checked while they are written. Raises `UnrepresentableTextError`, `EscapedTooLargeError`.
        """
        scan = ByteScan(texts)
        rows, marked = self.rows_to_escape(scan), self.rows_to_mark(scan)
        if rows is None or not rows.size:
            return Replacements(marked=marked)
        total_bytes = np.cumsum((scan.ends - scan.starts).take(rows), dtype=np.int64)
        cuts = np.searchsorted(
            total_bytes, np.arange(_TREATED_BYTES, int(total_bytes[-1]), _TREATED_BYTES), side="right"
        )
        parts: list[pa.Array] = []
        size = 0
        for batch in np.split(rows, np.unique(cuts)):
            if batch.size:
                parts.append(self._escape_rows(texts.take(pa.array(batch)).to_pylist(), batch))
                size += parts[-1].nbytes
                if size > most:
                    raise EscapedTooLargeError(size)
        return Replacements(rows, pa.concat_arrays(parts) if len(parts) > 1 else parts[0], marked)

    def _escape_rows(self, texts: list[str | None], rows: np.ndarray) -> pa.Array:
        if self._escapes_per_character and max(len(text or "") for text in texts) > _SLICE_CHARS:
            long = [None if text is None else self._escape_in_slices(text) for text in texts]
            return pa.array(long, pa.binary()).cast(pa.string())
        found = []
        for number, text in zip(rows.tolist(), texts, strict=True):
            try:
                found.append(text and self.escape_text(text))
            except UnrepresentableTextError as problem:
                raise UnrepresentableTextError(number, str(problem)) from problem
        return pa.array(found, pa.string())

    def _escape_in_slices(self, text: str) -> bytes:
        """`escape_text` in UTF-8, slice by slice."""
        starts = range(0, len(text), _SLICE_CHARS)
        return b"".join(self.escape_text(text[at : at + _SLICE_CHARS]).encode() for at in starts)

    def escape_pool(self, texts: pa.Array) -> pa.Array | None:
        """Return ``texts``, without nulls, as written to the file; None if they need other quotes.

        Raises `UnrepresentableTextError`, `EscapedTooLargeError`."""
        treated = self.escape_column(texts, limits.FORMAT_POOL_BYTES)
        if treated.marked is not None and treated.marked.size:
            return None
        return apply_replacements(texts, treated)

    def escape_part(self, texts: pa.Array) -> pa.Array | None:
        """Return ``texts``, without nulls, as written to the file inside longer texts; None if that depends on the
        other parts."""
        if not self._can_escape_parts():
            return None
        try:
            treated = self.escape_column(texts, limits.FORMAT_POOL_BYTES)
        except (UnrepresentableTextError, EscapedTooLargeError):
            return None
        return apply_replacements(texts, treated) if self._keeps_unmarked(texts, treated) else None

    def _can_escape_parts(self) -> bool:
        """Whether the parts of a text can be escaped one by one."""
        return self._escapes_per_character

    def _keeps_unmarked(self, texts: pa.Array, treated: Replacements) -> bool:
        """Whether none of ``texts`` makes a text that contains it marked."""
        return treated.marked is None or not treated.marked.size


def apply_replacements(texts: pa.Array, treated: Replacements) -> pa.Array:
    """``texts`` with the treated rows in place."""
    if treated.rows is None:
        return texts
    order = np.arange(len(texts))
    order[treated.rows] = np.arange(len(texts), len(texts) + treated.rows.size)
    return pa.concat_arrays([texts, treated.values]).take(pa.array(order))


class JsonEscape(Escape):
    """The inside of a JSON string (RFC 8259, section 7): only what must be escaped is."""

    key = "json"
    _escapes_per_character = True
    _encode = staticmethod(json.JSONEncoder(ensure_ascii=False).encode)

    def escape_text(self, text: str) -> str:
        return self._encode(text)[1:-1]

    def rows_to_escape(self, scan: ByteScan) -> np.ndarray | None:
        if not (scan.has(b'"') or scan.has(b"\\") or scan.has_control()):
            return None
        return scan.rows_where(scan.control_mask() | scan.byte_mask(b'"') | scan.byte_mask(b"\\"))


class LineEscape(Escape):
    """JSON text on one line: line ends can only occur outside of strings, where they are white space."""

    key = "line"
    _line_end = re.compile(r"[\r\n]")

    def escape_text(self, text: str) -> str:
        return self._line_end.sub(" ", text)

    def rows_to_escape(self, scan: ByteScan) -> np.ndarray | None:
        return scan.rows_where(scan.byte_mask(b"\n") | scan.byte_mask(b"\r")) if scan.has_control() else None


class FormulaEscape(Escape):
    """Add a ``'`` before texts that a spreadsheet would run as a formula.

    These begin with ``=``, ``+``, ``-``, ``@``, a tab or a line end, also in full width (OWASP, "CSV Injection"). Texts
    that are plain numbers, such as ``-5`` or ``+1.5e3``, are not changed.
    """

    key = "formula"
    _signs: ClassVar = "=+-@\t\r\n＝＋－＠"
    _first_bytes: ClassVar = b"=+-@\t\r\n\xef"  # the last one begins those of full width in UTF-8
    _number = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

    def escape_text(self, text: str) -> str:
        return "'" + text if text[0] in self._signs and not self._number.fullmatch(text) else text

    def rows_to_escape(self, scan: ByteScan) -> np.ndarray:
        return scan.rows_beginning_with(self._first_bytes)


class CsvEscape(Escape):
    """CSV quoting (RFC 4180, section 2): a marked field is quoted, and inside quotes a quote is doubled.

    The empty text is quoted too, because an empty unquoted field is NULL. With ``only_column``, for files with one
    column, so is ``\\.``, which on a separate line ends the data for PostgreSQL's COPY. ``always`` leaves the quotes to
    the column's wrapping. ``formulas`` escapes texts that spreadsheets would run.
    """

    def __init__(
        self, delimiter: str, *, always: bool, only_column: bool, formulas: FormulaEscape | None = None
    ) -> None:
        self.key = f"csv{delimiter}{always:d}{only_column:d}{formulas is not None:d}"
        self._formulas = formulas
        self._escapes_per_character = formulas is None
        self._delimiter = delimiter.encode()
        self._always, self._only_column = always, only_column

    def escape_text(self, text: str) -> str:
        quoted = text.replace('"', '""')
        return self._formulas.escape_text(quoted) if self._formulas is not None else quoted

    def rows_to_escape(self, scan: ByteScan) -> np.ndarray | None:
        rows = scan.rows_where(scan.byte_mask(b'"')) if scan.has(b'"') else None
        if self._formulas is None:
            return rows
        formulas = self._formulas.rows_to_escape(scan)
        return formulas if rows is None else np.union1d(rows, formulas)

    def rows_to_mark(self, scan: ByteScan) -> np.ndarray | None:
        if self._always:
            return None
        found = [scan.byte_mask(sign) for sign in (b'"', self._delimiter) if scan.has(sign)]
        if scan.has_control():
            found.append(scan.byte_mask(b"\n") | scan.byte_mask(b"\r"))
        parts = [scan.rows_where(np.logical_or.reduce(found))] if found else []
        bare = scan.ends == scan.starts
        if self._only_column and scan.has(b"\\."):
            bare[scan.rows_equal_to(b"\\.")] = True
        if bare.any():
            parts.append(np.flatnonzero(bare))
        return np.unique(np.concatenate(parts)) if parts else None

    def _keeps_unmarked(self, texts: pa.Array, treated: Replacements) -> bool:
        if self._only_column or treated.marked is None:
            return not self._only_column
        scan = ByteScan(texts)
        return bool((scan.ends == scan.starts).take(treated.marked).all())  # empty parts need no quotes

    def escape_pool(self, texts: pa.Array) -> pa.Array:
        treated = self.escape_column(texts, limits.FORMAT_POOL_BYTES)
        inner = apply_replacements(texts, treated)
        if treated.marked is None:
            return inner
        mask = np.zeros(len(texts), bool)
        mask[treated.marked] = True
        return pc.if_else(pa.array(mask), pc.binary_join_element_wise('"', inner, '"', ""), inner)


class XmlEscape(Escape):
    """Text of a cell: XML 1.0 escapes for markup, ``_xHHHH_`` (ECMA-376, ST_Xstring) for characters that XML does not
    support.

    Texts that begin or end with white space are marked, because readers only keep it with an attribute. Raises
    `UnrepresentableTextError` beyond the 32,767 UTF-16 code units of a cell.
    """

    key = "xml"
    _MARKUP: ClassVar = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
    _underscore = re.compile("_(?=x[0-9A-Fa-f]{4}_)")  # otherwise a reader would interpret it as an escape
    _escapes: ClassVar = _MARKUP | {
        chr(code): f"_x{code:04X}_" for code in (*range(9), *range(11, 32), 0xFFFE, 0xFFFF)
    }
    _NONCHARACTER = b"\xef\xbf"  # the first bytes of U+FFFE and U+FFFF in UTF-8

    def escape_text(self, text: str) -> str:
        if len(text) > limits.XLSX_CELL_CHARS // 2:
            size = len(text.encode("utf-16-le")) // 2
            if size > limits.XLSX_CELL_CHARS:
                raise UnrepresentableTextError(
                    0,
                    f"A text has {size:,} characters; a cell can contain at most {limits.XLSX_CELL_CHARS:,}.",
                )
        # First the underscores: the escapes that follow begin with one. And `&` before the marks that contain it.
        if "_x" in text:
            text = self._underscore.sub("_x005F_", text)
        # Sign by sign is faster than `str.translate`, which looks every character up: three times for texts of control
        # characters only, twenty times for ordinary ones.
        for sign, escaped in self._escapes.items():
            if sign in text:
                text = text.replace(sign, escaped)
        return text

    def rows_to_escape(self, scan: ByteScan) -> np.ndarray | None:
        found = [scan.byte_mask(sign.encode()) for sign in self._MARKUP if scan.has(sign.encode())]
        if scan.has_control():
            found.append(scan.control_mask() & ~scan.byte_mask(b"\t") & ~scan.byte_mask(b"\n"))
        if scan.has(b"_x"):
            found.append(scan.byte_mask(b"_"))
        if scan.has(self._NONCHARACTER):
            found.append(scan.byte_mask(self._NONCHARACTER[:1]))
        long = scan.rows_longer_than(limits.XLSX_CELL_CHARS)
        if not found:
            return long
        rows = scan.rows_where(np.logical_or.reduce(found))
        return np.union1d(rows, long) if long.size else rows

    def rows_to_mark(self, scan: ByteScan) -> np.ndarray:
        return scan.rows_with_outer_space()

"""The result of a reader: tables with their columns, and problems."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from webapp import limits
from webapp.connectors.schema import Entity
from webapp.imports.inference.columns import ColumnResult, State
from webapp.imports.inference.evidence import definition


@dataclass(frozen=True, slots=True)
class Source:
    """The input: its bytes, and the name of the file, or "" for a text."""

    content: bytes
    name: str = ""

    @property
    def stem(self) -> str:
        """The name without folders and ending."""
        last = self.name.replace("\\", "/").rpartition("/")[2]
        return last.rpartition(".")[0] or last

    @property
    def extension(self) -> str:
        """`csv`, in small letters; "" for a text."""
        return self.name.rpartition(".")[2].casefold() if "." in self.name else ""


@dataclass(slots=True)
class Table:
    """One table. `known_results` are columns whose type the reader has determined, by name; `notes` are further notes
    on columns; `sample` has values of the columns, independent of each other."""

    entity: Entity
    sample: pa.RecordBatch | None = None
    known_results: dict[str, ColumnResult] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    rejected_columns: dict[str, str] = field(default_factory=dict)
    """Columns that could not be read, with the reason."""

    def note(self, column: str, text: str) -> None:
        """Add a note to a column, which makes it yellow."""
        self.notes.setdefault(column, []).append(text)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was left out: a table, or a column beyond the limits ("" for all columns)."""

    table: str
    column: str
    reason: str
    state: State = "red"


@dataclass(slots=True)
class ParsedFile:
    """A file as tables."""

    format: str
    tables: list[Table] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class UnreadableFileError(Exception):
    """A file cannot be read. The message says why, `hint` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


FALLBACK: Final = "words"
"""The type for columns that cannot be converted: it needs no options and is compatible with everything."""


def fallback(name: str, reason: str) -> ColumnResult:
    """Return a red column, which is replaced by text and keeps its position and name."""
    return ColumnResult(name, definition(name, FALLBACK, {"count": 2}), "red", f"Imported as text: {reason}")


_INVISIBLE: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]+"
)


def clean_name(name: Any) -> str:
    """Return a name as one line of visible characters, within the maximum length of names."""
    text = str(name)[: limits.IMPORT_NAME_BYTES]
    return " ".join(_INVISIBLE.sub(" ", text).split())[: limits.MAX_NAME_CHARS].strip()


def unique_names(names: Iterable[Any], default_name: str = "column") -> tuple[list[str], Mapping[str, str]]:
    """Return valid and unique column names in their order, and notes on the changed ones by name: empty names are
    numbered (`column_3`), duplicates get a suffix."""
    found: list[str] = []
    notes: dict[str, str] = {}
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        cleaned = clean_name(name)
        unique = cleaned or f"{default_name}_{number}"
        base = (cleaned or default_name)[: limits.MAX_NAME_CHARS - 6]
        while unique in taken:
            numbers[base] = numbers.get(base, 1) + 1
            unique = f"{base}_{numbers[base]}"
        if not cleaned:
            notes[unique] = "This column has no name in the file."
        elif unique != cleaned:
            notes[unique] = f'The name "{cleaned}" occurs more than once in the file.'
        taken.add(unique)
        found.append(unique)
    return found, notes


# Bytes of unknown encoding as text.

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_UTF16_SAMPLE_BYTES: Final = 4_096  # chosen: bytes that are searched for UTF-16 without a byte order mark


def decode(raw: bytes) -> tuple[str, str]:
    """Return the text, and a note on its encoding ("" for UTF-8).

    Detected by its byte order mark; else UTF-8; else UTF-16 if every second byte is zero; else Windows-1252, in which
    all bytes except five are valid. Raises `UnreadableFileError` for data that is not text.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return _without_nulls(raw.decode(encoding, "replace")), ""
    beginning = raw[:_UTF16_SAMPLE_BYTES]
    for offset, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros = beginning[offset::2].count(0)
        if zeros > len(beginning) // 3 and not beginning[1 - offset :: 2].count(0):
            return _without_nulls(raw.decode(encoding, "replace")), ""
    if beginning.count(0) > len(beginning) // 10:
        raise UnreadableFileError(
            "The file is not a text file.", "Send CSV, JSON, SQL or a schema as text, or an XLSX workbook."
        )
    try:
        return _without_nulls(raw.decode()), ""
    except UnicodeDecodeError:
        text = _without_nulls(raw.decode("cp1252", "replace"))
        return text, "The file is not UTF-8; it was read as Windows-1252."


def _without_nulls(text: str) -> str:
    return text.replace("\0", "") if "\0" in text else text

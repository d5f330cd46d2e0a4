"""The head of a workspace file, for people: a table of CSV, JSON, NDJSON and XLSX, the first lines of a text.

Files come from anywhere. Of a text only the first FILE_PREVIEW_BYTES are looked at. A workbook is read in a document
process. A preview that cannot be made says why, and never fails the page.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from webapp import document_process, limits
from webapp.errors import ApiError
from webapp.files.models import WorkspaceFile
from webapp.files.services import file_store
from webapp.files.workbooks import brief, cell
from webapp.storage import MissingError

_XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_BINARY: Final = ("image/", "audio/", "video/", "font/")
_DELIMITERS: Final = ",;\t|"


@dataclass(frozen=True, slots=True)
class Head:
    """What is shown: a table (`columns`, `rows` of texts), or `text`, or neither with a `note` that says why."""

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    text: str = ""
    note: str = ""
    more: bool = field(default=False)


def head(file: WorkspaceFile) -> Head:
    """The head of a file; never raises for what the file holds or for a storage that fails."""
    if file.size == 0:
        return Head(note="The file is empty.")
    kind, ending = file.content_type, file.name.rpartition(".")[2].casefold()
    try:
        if kind == _XLSX or ending == "xlsx":
            return _workbook(file)
        if kind.startswith(_BINARY):
            return Head(note="There is no preview of this kind of file.")
        raw = b"".join(file_store.pieces(file.storage_key, 0, limits.FILE_PREVIEW_BYTES))
    except (ApiError, MissingError):
        return Head(note="The storage does not give the file just now.")
    text = _decoded(raw)
    if text is None:
        return Head(note="There is no preview of this kind of file.")
    cut = file.size > len(raw)
    if cut:
        text = text.rpartition("\n")[0] or text
    if kind == "text/csv" or ending in ("csv", "tsv"):
        return _csv(text, cut) or _text(text, cut)
    if kind in ("application/json", "application/x-ndjson") or ending in ("json", "ndjson", "jsonl"):
        return _json(text, cut) or _text(text, cut)
    return _text(text, cut)


def _decoded(raw: bytes) -> str | None:
    """Bytes as text, by their mark, else UTF-8, else Windows-1252; None for what is no text."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    if b"\0" in raw:
        return None
    for dropped in range(4):  # the cut may have gone through a character
        try:
            return raw[: len(raw) - dropped].decode()
        except UnicodeDecodeError:
            continue
    return raw.decode("cp1252", "replace")


def _text(text: str, cut: bool) -> Head:
    lines = text.splitlines()
    shown = [brief(line) for line in lines[: limits.FILE_PREVIEW_LINES]]
    return Head(text="\n".join(shown), more=cut or len(lines) > len(shown))


def _csv(text: str, cut: bool) -> Head | None:
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    rows = []
    try:
        for row in csv.reader(io.StringIO(text), delimiter=delimiter):
            if row:
                rows.append(row)
            if len(rows) > limits.FILE_PREVIEW_ROWS + 1:
                break
    except csv.Error:
        return None
    return _table(rows[0], rows[1:], cut) if rows else None


def _json(text: str, cut: bool) -> Head | None:
    try:
        found, more = _elements(text.lstrip("\ufeff \t\r\n"))
    except (ValueError, RecursionError):
        return None
    if not found:
        return None
    if not all(isinstance(one, Mapping) for one in found):
        return _table(["value"], [[cell(one)] for one in found], cut or more)
    columns = list(dict.fromkeys(str(key) for one in found for key in one))
    return _table(columns, [[cell(one.get(key)) for key in columns] for one in found], cut or more)


def _elements(text: str) -> tuple[list[Any], bool]:
    """The first elements of an array, or values that follow one another, and whether there are more of them."""
    decoder, found, array = json.JSONDecoder(), [], text.startswith("[")
    place = 1 if array else 0
    while len(found) <= limits.FILE_PREVIEW_ROWS:
        while place < len(text) and text[place] in " \t\r\n,":
            place += 1
        if place >= len(text) or (array and text[place] == "]"):
            break
        try:
            value, place = decoder.raw_decode(text, place)
        except ValueError:
            if found:  # the cut went through this one, or what comes is no JSON any more
                break
            raise
        found.append(value)
    if len(found) == 1 and isinstance(found[0], list):
        return found[0][: limits.FILE_PREVIEW_ROWS], len(found[0]) > limits.FILE_PREVIEW_ROWS
    return found[: limits.FILE_PREVIEW_ROWS], len(found) > limits.FILE_PREVIEW_ROWS


def _workbook(file: WorkspaceFile) -> Head:
    with tempfile.TemporaryFile() as copy:
        for piece in file_store.pieces(file.storage_key):
            copy.write(piece)
        try:
            found = document_process.run("webapp.files.workbooks:first_rows", copy)
        except document_process.DocumentError as error:
            return Head(note=f"There is no preview. {error.message}")
    if "note" in found:
        return Head(note=found["note"])
    rows = found["rows"]
    return _table(rows[0], rows[1:], False) if rows else Head(note="The first sheet is empty.")


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], more: bool) -> Head:
    most = limits.FILE_PREVIEW_COLUMNS
    note = f"The first {most} columns are shown." if max(map(len, [columns, *rows])) > most else ""
    shown = [[brief(cell) for cell in row[:most]] for row in rows[: limits.FILE_PREVIEW_ROWS]]
    wide = min(most, max(map(len, [columns, *rows])))
    heads = [brief(cell) for cell in columns[:most]]
    return Head(
        columns=[*heads, *[""] * (wide - len(heads))],
        rows=[[*row, *[""] * (wide - len(row))] for row in shown],
        note=note,
        more=more or len(rows) > len(shown),
    )

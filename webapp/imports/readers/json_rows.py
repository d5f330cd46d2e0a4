"""JSON, NDJSON and an example row: objects as rows, objects inside them as nested fields."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
import pyarrow as pa

from webapp import limits
from webapp.document_process import check_depth, too_deep
from webapp.engine.data.vocabulary import Vocabulary
from webapp.imports.inference import columns
from webapp.imports.inference import names as imports_names
from webapp.imports.inference.columns import ColumnResult
from webapp.imports.inference.evidence import Field, definition
from webapp.imports.readers import csv
from webapp.imports.readers.base import Read, Source, Table, Unreadable, decoded, fallback, named
from webapp.imports.readers.values import ObservedColumn, seen

Row = Mapping[str, Any]
_MOST_ELEMENTS: Final = 10  # chosen: of an array in a row; the template's own count can be raised by hand


def parsed(source: Source) -> Any:
    """Parse JSON. Raises `Unreadable` with the position of a syntax error."""
    text, _ = decoded(source.raw)
    if not text.strip():
        raise Unreadable("The file is empty.", "Send an object, or an array of objects.")
    try:
        value = orjson.loads(text)
        check_depth(value)
        return value
    except orjson.JSONDecodeError as error:
        if "limit" in error.msg:
            raise too_deep() from None
        message = f"This is no JSON: {error.msg} (line {error.lineno}, column {error.colno})."
        raise Unreadable(message, "Check it at that place.") from None


def read(source: Source, words: Vocabulary) -> Read:
    """An array of objects is a table, an object an example row; an object of arrays has a table for each."""
    return of_value(parsed(source), source, words)


def of_value(value: Any, source: Source, words: Vocabulary) -> Read:
    """See `read`."""
    found = Read("json")
    if isinstance(value, dict) and value and all(_are_rows(one) for one in value.values()):
        for name, rows in list(value.items())[: limits.IMPORT_TABLES]:
            found.tables.append(_table(str(name), rows, found, words))
        return found
    if isinstance(value, dict):  # the envelope of an API's answer
        held = [one for one in value.values() if _are_rows(one)]
        plain = all(
            one is None or isinstance(one, str | int | float | bool)
            for one in value.values()
            if not _are_rows(one)
        )
        if (
            len(held) == 1
            and plain
            and {"total", "count", "next", "next_cursor", "page", "items", "data"} & value.keys()
        ):
            value = held[0]
    rows = [value] if isinstance(value, dict) else value
    if not _are_rows(rows):
        raise Unreadable("This JSON holds no rows.", "Send an object, or an array of objects.")
    found.tables.append(_table(source.stem, rows, found, words))
    return found


def lines(source: Source, words: Vocabulary) -> Read:
    """Read NDJSON: one object per line. Invalid lines are skipped and reported."""
    text, _ = decoded(source.raw)
    rows: list[Any] = []
    bad, first = 0, 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if len(rows) >= limits.IMPORT_ROWS:
            break
        try:
            one = orjson.loads(line)
        except orjson.JSONDecodeError:
            one = None
        if isinstance(one, dict):
            rows.append(one)
        else:
            bad, first = bad + 1, first or number
    if not rows:
        raise Unreadable("No line of the file is a JSON object.", "Send one object a line.")
    found = Read("ndjson")
    found.tables.append(_table(source.stem, rows, found, words))
    names = [one.name for one in found.tables[0].entity.fields]
    if bad and names:
        message = f"{bad:,} lines are no JSON objects, the first of them line {first:,}: left out."
        found.tables[0].note(names[0], message)
    return found


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value[:100])


def _table(name: str, rows: Sequence[Any], read: Read, words: Vocabulary) -> Table:
    found, told, over = _columns(
        [one for one in rows[: limits.IMPORT_ROWS] if isinstance(one, dict)], words, 1
    )
    made = csv.of_seen(name, found)
    for column, text in told.items():
        made.note(column, text)
    csv.beyond(made.entity.name, over, read)
    return made


def _columns(
    rows: Sequence[Row], words: Vocabulary, depth: int
) -> tuple[list[ObservedColumn], dict[str, str], list[str]]:
    """Return the columns of objects, notes on their names, and all names."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    names, told = named(keys)
    found = []
    for key, name in list(zip(keys, names, strict=True))[: limits.MAX_FIELDS]:
        found.append(_column(name, [row.get(key) for row in rows], words, depth))
    return found, {one: text for one, text in told.items() if one in names[: limits.MAX_FIELDS]}, names


def _column(name: str, values: Sequence[Any], words: Vocabulary, depth: int) -> ObservedColumn:
    plain = [one for one in values if one is not None]
    kinds = {bool if isinstance(one, bool) else type(one) for one in plain}
    if kinds == {dict}:
        return _nested(name, plain, None, words, depth)
    if kinds == {list}:
        inner = [one for part in plain for one in part]
        if inner and all(isinstance(one, dict) for one in inner):
            counts = [len(part) for part in plain]
            low, high = min(counts), min(max(counts), _MOST_ELEMENTS)
            count = {"min": min(low, high), "max": high}
            return _nested(name, inner, count, words, depth)
        return _listed(name, inner, [len(part) for part in plain], words, depth)
    texts = pa.array([_text(one) for one in values], pa.string())
    one = seen(name, texts, strict=kinds == {str})
    if kinds == {bool, int} or (len(kinds) > 1 and kinds != {int, float}):
        one.ready = ColumnResult(
            name,
            definition(name, "words", {"count": 2}),
            "yellow",
            "It has values of several types: imported as text.",
        )
    return one


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(value, default=str)[: limits.IMPORT_CELL_CHARS]


def _nested(
    name: str, rows: Sequence[Row], count: dict[str, int] | None, words: Vocabulary, depth: int
) -> ObservedColumn:
    one = seen(name, pa.nulls(0, pa.string()))
    if depth >= limits.MAX_NESTING:
        one.ready = fallback(name, f"objects nest at most {limits.MAX_NESTING} levels deep.")
        return one
    found, _, _ = _columns(rows[: limits.IMPORT_ROWS], words, depth + 1)
    table = csv.of_seen(name, found)
    fields: list[Field] = []
    for made in columns.columns(table.entity, table.sample, words):
        ready = table.ready.get(made.column, made)
        if ready.field is not None:
            fields.append({**ready.field, "unique": False} if ready.field.get("unique") else ready.field)
    if not fields:
        one.ready = ColumnResult(
            name, definition(name, "constant", {"value": {}}), "yellow", "An object without keys."
        )
        return one
    options: dict[str, Any] = {"fields": fields}
    if count is not None:
        options |= {"array": True, "count": count}
    message = "Arrays of objects" if count is not None else "Objects"
    one.ready = ColumnResult(
        name, definition(name, "nested", options), "green", f"{message} with {len(fields)} nested fields."
    )
    return one


def _listed(
    name: str, inner: Sequence[Any], counts: Sequence[int], words: Vocabulary, depth: int
) -> ObservedColumn:
    """An array of single values: its elements are read as a column is."""
    one = seen(name, pa.nulls(0, pa.string()))
    plain = [value for value in inner if value is not None]
    if not plain or any(isinstance(value, dict | list) for value in plain) or depth >= limits.MAX_NESTING:
        made = definition(name, "constant", {"value": []})
        one.ready = ColumnResult(
            name, made, "yellow", "Of what the arrays hold nothing is known: an empty one in every row."
        )
        return one
    called = imports_names.singular(name.casefold()) or name
    table = csv.of_seen("rows", [_column(called, plain[: limits.IMPORT_ROWS], words, depth + 1)])
    found = columns.columns(table.entity, table.sample, words)[0]
    field = table.ready.get(found.column, found).field or definition(called, "words")
    element = {"type": field["type"], "options": field["options"]}
    if element["type"] in ("row_number", "sequence"):  # values in one array are not a sequence
        element = {"type": "number", "options": {"min": min(plain), "max": max(plain)}}
    low, high = min(counts), max(1, min(max(counts), _MOST_ELEMENTS))
    made = definition(name, "array", {"of": element, "count": {"min": min(low, high), "max": high}})
    one.ready = ColumnResult(name, made, "green", f"Arrays of up to {high} values of type {element['type']}.")
    return one

"""JSON, NDJSON and an example row: objects as rows, objects inside them as nested fields."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
import pyarrow as pa

from webapp import limits
from webapp.document_process import check_depth, nesting_error
from webapp.engine.data.vocabulary import Vocabulary
from webapp.imports.inference import columns
from webapp.imports.inference import names as imports_names
from webapp.imports.inference.columns import ColumnResult
from webapp.imports.inference.evidence import Field, definition
from webapp.imports.readers import csv
from webapp.imports.readers.base import (
    ParsedFile,
    Source,
    Table,
    UnreadableFileError,
    decode,
    fallback,
    unique_names,
)
from webapp.imports.readers.values import ObservedColumn, observe_column

Row = Mapping[str, Any]
_MAX_ELEMENTS: Final = 10  # chosen: of an array in a row; the template's own count can be raised by hand


def parse_json(source: Source) -> Any:
    """Parse JSON. Raises `UnreadableFileError` with the position of a syntax error."""
    text, _ = decode(source.content)
    if not text.strip():
        raise UnreadableFileError("The file is empty.", "Send an object, or an array of objects.")
    try:
        value = orjson.loads(text)
        check_depth(value)
        return value
    except orjson.JSONDecodeError as error:
        if "limit" in error.msg:
            raise nesting_error() from None
        message = f"The file is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})."
        raise UnreadableFileError(message, "Correct the JSON at this position.") from None


def read(source: Source, vocabulary: Vocabulary) -> ParsedFile:
    """Read an array of objects as a table, an object as an example row, and an object of arrays as several tables."""
    return read_value(parse_json(source), source, vocabulary)


def read_value(value: Any, source: Source, vocabulary: Vocabulary) -> ParsedFile:
    """See `read`."""
    result = ParsedFile("json")
    if isinstance(value, dict) and value and all(_is_row_list(item) for item in value.values()):
        for name, rows in list(value.items())[: limits.IMPORT_TABLES]:
            result.tables.append(_build_table(str(name), rows, result, vocabulary))
        return result
    if isinstance(value, dict):  # the envelope of an API's answer
        row_lists = [item for item in value.values() if _is_row_list(item)]
        plain = all(
            item is None or isinstance(item, str | int | float | bool)
            for item in value.values()
            if not _is_row_list(item)
        )
        if (
            len(row_lists) == 1
            and plain
            and {"total", "count", "next", "next_cursor", "page", "items", "data"} & value.keys()
        ):
            value = row_lists[0]
    rows = [value] if isinstance(value, dict) else value
    if not _is_row_list(rows):
        raise UnreadableFileError("The JSON contains no rows.", "Send an object, or an array of objects.")
    result.tables.append(_build_table(source.stem, rows, result, vocabulary))
    return result


def read_lines(source: Source, vocabulary: Vocabulary) -> ParsedFile:
    """Read NDJSON: one object per line. Invalid lines are skipped and reported."""
    text, _ = decode(source.content)
    rows: list[Any] = []
    invalid, first = 0, 0
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
            invalid, first = invalid + 1, first or number
    if not rows:
        raise UnreadableFileError("No line of the file is a JSON object.", "Send one object per line.")
    result = ParsedFile("ndjson")
    result.tables.append(_build_table(source.stem, rows, result, vocabulary))
    names = [field.name for field in result.tables[0].entity.fields]
    if invalid and names:
        message = f"{invalid:,} lines are not JSON objects and were skipped, the first is line {first:,}."
        result.tables[0].note(names[0], message)
    return result


def _is_row_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value[:100])


def _build_table(name: str, rows: Sequence[Any], read: ParsedFile, vocabulary: Vocabulary) -> Table:
    found, notes, names = _build_columns(
        [row for row in rows[: limits.IMPORT_ROWS] if isinstance(row, dict)], vocabulary, 1
    )
    result = csv.build_table_from_columns(name, found)
    for column, text in notes.items():
        result.note(column, text)
    csv.report_excess_columns(result.entity.name, names, read)
    return result


def _build_columns(
    rows: Sequence[Row], vocabulary: Vocabulary, depth: int
) -> tuple[list[ObservedColumn], dict[str, str], list[str]]:
    """Return the columns of objects, notes on their names, and all names."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    names, notes = unique_names(keys)
    found = []
    for key, name in list(zip(keys, names, strict=True))[: limits.MAX_FIELDS]:
        found.append(_build_column(name, [row.get(key) for row in rows], vocabulary, depth))
    return found, {item: text for item, text in notes.items() if item in names[: limits.MAX_FIELDS]}, names


def _build_column(name: str, values: Sequence[Any], vocabulary: Vocabulary, depth: int) -> ObservedColumn:
    plain = [value for value in values if value is not None]
    kinds = {bool if isinstance(item, bool) else type(item) for item in plain}
    if kinds == {dict}:
        return _build_object_column(name, plain, None, vocabulary, depth)
    if kinds == {list}:
        inner = [item for part in plain for item in part]
        if inner and all(isinstance(item, dict) for item in inner):
            counts = [len(part) for part in plain]
            low, high = min(counts), min(max(counts), _MAX_ELEMENTS)
            count = {"min": min(low, high), "max": high}
            return _build_object_column(name, inner, count, vocabulary, depth)
        return _build_array_column(name, inner, [len(part) for part in plain], vocabulary, depth)
    texts = pa.array([_text(value) for value in values], pa.string())
    one = observe_column(name, texts, strict=kinds == {str})
    if kinds == {bool, int} or (len(kinds) > 1 and kinds != {int, float}):
        one.result = ColumnResult(
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


def _build_object_column(
    name: str, rows: Sequence[Row], count: dict[str, int] | None, vocabulary: Vocabulary, depth: int
) -> ObservedColumn:
    column = observe_column(name, pa.nulls(0, pa.string()))
    if depth >= limits.MAX_NESTING:
        column.result = fallback(name, f"objects nest at most {limits.MAX_NESTING} levels deep.")
        return column
    found, _, _ = _build_columns(rows[: limits.IMPORT_ROWS], vocabulary, depth + 1)
    table = csv.build_table_from_columns(name, found)
    fields: list[Field] = []
    for result in columns.infer_columns(table.entity, table.sample, vocabulary):
        ready = table.known_results.get(result.column, result)
        if ready.field is not None:
            fields.append({**ready.field, "unique": False} if ready.field.get("unique") else ready.field)
    if not fields:
        column.result = ColumnResult(
            name, definition(name, "constant", {"value": {}}), "yellow", "An object without keys."
        )
        return column
    options: dict[str, Any] = {"fields": fields}
    if count is not None:
        options |= {"array": True, "count": count}
    message = "Arrays of objects" if count is not None else "Objects"
    column.result = ColumnResult(
        name, definition(name, "nested", options), "green", f"{message} with {len(fields)} nested fields."
    )
    return column


def _build_array_column(
    name: str, inner: Sequence[Any], counts: Sequence[int], vocabulary: Vocabulary, depth: int
) -> ObservedColumn:
    """Return a column of arrays of single values. The elements are read like a column."""
    column = observe_column(name, pa.nulls(0, pa.string()))
    plain = [value for value in inner if value is not None]
    if not plain or any(isinstance(value, dict | list) for value in plain) or depth >= limits.MAX_NESTING:
        field = definition(name, "constant", {"value": []})
        column.result = ColumnResult(
            name, field, "yellow", "The contents of the arrays are not known: each row gets an empty array."
        )
        return column
    item_name = imports_names.singular(name.casefold()) or name
    table = csv.build_table_from_columns(
        "rows", [_build_column(item_name, plain[: limits.IMPORT_ROWS], vocabulary, depth + 1)]
    )
    result = columns.infer_columns(table.entity, table.sample, vocabulary)[0]
    item = table.known_results.get(result.column, result).field or definition(item_name, "words")
    element = {"type": item["type"], "options": item["options"]}
    if element["type"] in ("row_number", "sequence"):  # values in one array are not a sequence
        element = {"type": "number", "options": {"min": min(plain), "max": max(plain)}}
    low, high = min(counts), max(1, min(max(counts), _MAX_ELEMENTS))
    field = definition(name, "array", {"of": element, "count": {"min": min(low, high), "max": high}})
    column.result = ColumnResult(
        name, field, "green", f"Arrays of up to {high} values of type {element['type']}."
    )
    return column

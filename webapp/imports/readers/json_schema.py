"""Read JSON Schemas and the components of OpenAPI documents: each defined object is a table, each property a column
with its schema. If a reference cannot be resolved, only its column is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.json_schema.shapes import OMISSION_KEYWORD, Shape, Shaper
from webapp.connectors.json_schema.validation import Document
from webapp.connectors.openapi import document
from webapp.connectors.schema import Column, Entity
from webapp.imports.readers import csv
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

_DEFINITION_KEYS: Final = ("definitions", "$defs")


def read(source: Source) -> ParsedFile:
    """Read a JSON Schema. Raises `UnreadableFileError`."""
    schema = parse_document(source)
    title = str(schema.get("title") or source.stem or "rows")
    objects: dict[str, Any] = {}
    if schema.keys() - {
        *_DEFINITION_KEYS,
        "$schema",
        "$id",
        "id",
        "title",
        "description",
        "$comment",
        "type",
    }:
        objects[title] = schema
    else:  # it only defines parts
        for key in _DEFINITION_KEYS:
            inner = schema.get(key)
            if isinstance(inner, dict):
                objects.update(inner)
    result = build_tables(schema, objects, "json_schema")
    if not result.tables and result.problems:
        error = document.missing_reference_error(result.problems[0].reason)
        raise UnreadableFileError(error.message, error.hint or "")
    if not result.tables:
        raise UnreadableFileError(
            "The schema defines no object with properties.",
            'It needs {"type": "object", "properties": {...}}.',
        )
    return result


def read_openapi(source: Source) -> ParsedFile:
    """Read the components of an OpenAPI document; without components, the request bodies of its operations. Raises
    `UnreadableFileError`."""
    schema = parse_document(source)
    components = schema.get("components")
    schemas = (components.get("schemas") if isinstance(components, dict) else None) or schema.get(
        "definitions"
    )
    result = build_tables(schema, schemas if isinstance(schemas, dict) else {}, "openapi")
    if result.tables:
        return result
    try:
        entities = document.metadata(document.read(source.content), "").entities
    except ConnectorError as error:
        raise UnreadableFileError(error.message, error.hint or "") from None
    result.tables = [Table(entity) for entity in entities[: limits.IMPORT_TABLES]]
    if not result.tables:
        raise UnreadableFileError("The document has neither components nor operations that accept rows.", "")
    return result


def parse_document(source: Source) -> Mapping[str, Any]:
    """Parse JSON or YAML to an object. Raises `UnreadableFileError`."""
    text, _ = decode(source.content)
    try:
        return document.parse(text.encode("utf-8", "replace"))
    except ConnectorError as error:
        raise UnreadableFileError(
            error.message.replace("OpenAPI document", "schema"), error.hint or ""
        ) from None


def build_tables(schema_document: Mapping[str, Any], objects: Mapping[str, Any], form: str) -> ParsedFile:
    """Return a table for each of these schemas that is an object; the others are parts of them."""
    result = ParsedFile(form)
    names, _ = unique_names(objects, "schema")
    version = str(schema_document.get("openapi") or schema_document.get("swagger") or "")
    shaper = Shaper(Document(schema_document, legacy=bool(version) and version < "3.1"))
    shaper.document.visits_left = limits.IMPORT_VISITS
    for name, schema in zip(names, objects.values(), strict=True):
        if len(result.tables) >= limits.IMPORT_TABLES:
            reason = f"Not imported: an import can contain at most {limits.IMPORT_TABLES} schemas."
            result.problems.append(Problem(name, "", reason))
            continue
        shape = shaper.shape(schema)
        if shape is None and shaper.document.visits_left <= 0:
            reason = document.too_many_schemas_error().message
            result.problems.append(Problem(name, "", reason))
            continue
        if shape is None:
            result.problems.append(Problem(name, "", "No value was found that satisfies the schema."))
        elif OMISSION_KEYWORD in shape:
            result.problems.append(Problem(name, "", shape[OMISSION_KEYWORD]))
        elif (row := _row_schema(shape)) is not None:
            result.tables.append(_build_table(name, row, result))
    return result


def _row_schema(shape: Shape) -> Shape | None:
    """Return the object that is a row: the value itself, or the elements of an array; None if there is none."""
    if shape.get("type") == "array" and "items" in shape:
        shape = shape["items"]
    if shape.get("type") != "object":
        return None
    if "enum" in shape:  # objects that fields cannot express: those with the names of the first
        names = [name for name in shape["enum"][0] if all(name in item for item in shape["enum"])]
        same_shape = [item for item in shape["enum"] if len(item) == len(names)]
        return (
            {"properties": {name: {"enum": [same_shape[0][name]]} for name in names}}
            if same_shape and names
            else None
        )
    return shape if document.has_columns(shape) else None


def _build_table(name: str, shape: Shape, read: ParsedFile) -> Table:
    names, notes = unique_names(shape["properties"])
    required = set(shape.get("required") or ())
    columns: list[Column] = []
    for valid_name, (key, inner) in list(zip(names, shape["properties"].items(), strict=True))[
        : limits.MAX_FIELDS
    ]:
        column = document.create_column(valid_name, inner, key in required)
        length = column.max_length
        is_valid_length = isinstance(length, int) and not isinstance(length, bool) and length > 0
        if length is not None and not is_valid_length:  # a schema may say what no column can be
            column = replace(column, max_length=None)
        columns.append(column)
    csv.report_excess_columns(name, names, read)
    parts = (clean_name(name),)
    table = Table(Entity(parts[0], parts, tuple(columns), "operation"))
    for column_name, text in notes.items():
        table.note(column_name, text)
    return table

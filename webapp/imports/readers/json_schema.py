"""JSON Schema and the components of OpenAPI documents: each object that is defined is a table, each property a column
that carries its schema. Of what a reference leads to nowhere, that column alone is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.json_schema.shapes import LEFT_OUT, Shape, Shaper
from webapp.connectors.json_schema.validation import Document
from webapp.connectors.openapi import document
from webapp.connectors.schema import Column, Entity
from webapp.imports.readers import csv
from webapp.imports.readers.base import Problem, Read, Source, Table, Unreadable, clean, decoded, named

_DEFINED: Final = ("definitions", "$defs")


def read(source: Source) -> Read:
    """A JSON Schema. Raises `Unreadable`."""
    whole = loaded(source)
    title = str(whole.get("title") or source.stem or "rows")
    objects: dict[str, Any] = {}
    if whole.keys() - {*_DEFINED, "$schema", "$id", "id", "title", "description", "$comment", "type"}:
        objects[title] = whole
    else:  # it defines parts alone
        for key in _DEFINED:
            inner = whole.get(key)
            if isinstance(inner, dict):
                objects.update(inner)
    found = tables(whole, objects, "json_schema")
    if not found.tables and found.problems:
        error = document.lost_reference(found.problems[0].reason)
        raise Unreadable(error.message, error.hint or "")
    if not found.tables:
        raise Unreadable(
            "The schema defines no object with properties.",
            'It needs {"type": "object", "properties": {...}}.',
        )
    return found


def of_openapi(source: Source) -> Read:
    """The components of an OpenAPI document; where it has none, what its operations take. Raises `Unreadable`."""
    whole = loaded(source)
    components = whole.get("components")
    named_ = (components.get("schemas") if isinstance(components, dict) else None) or whole.get("definitions")
    found = tables(whole, named_ if isinstance(named_, dict) else {}, "openapi")
    if found.tables:
        return found
    try:
        entities = document.metadata(document.read(source.raw), "").entities
    except ConnectorError as error:
        raise Unreadable(error.message, error.hint or "") from None
    found.tables = [Table(one) for one in entities[: limits.IMPORT_TABLES]]
    if not found.tables:
        raise Unreadable("The document has neither components nor operations that take rows.", "")
    return found


def loaded(source: Source) -> Mapping[str, Any]:
    """JSON or YAML as an object. Raises `Unreadable`."""
    text, _ = decoded(source.raw)
    try:
        return document.loaded(text.encode("utf-8", "replace"))
    except ConnectorError as error:
        raise Unreadable(error.message.replace("OpenAPI document", "schema"), error.hint or "") from None


def tables(whole: Mapping[str, Any], objects: Mapping[str, Any], form: str) -> Read:
    """A table for each of some schemas, by their names, that is an object; the others are parts of them."""
    found = Read(form)
    names, _ = named(objects, "schema")
    version = str(whole.get("openapi") or whole.get("swagger") or "")
    shaper = Shaper(Document(whole, legacy=bool(version) and version < "3.1"))
    shaper.document.left = limits.IMPORT_VISITS
    for name, schema in zip(names, objects.values(), strict=True):
        if len(found.tables) >= limits.IMPORT_TABLES:
            told = f"At most {limits.IMPORT_TABLES} schemas are imported at once: left out."
            found.problems.append(Problem(name, "", told))
            continue
        shape = shaper.shape(schema)
        if shape is None and shaper.document.left <= 0:
            told = document.too_many_schemas().message
            found.problems.append(Problem(name, "", told))
            continue
        if shape is None:
            found.problems.append(Problem(name, "", "No value was found that satisfies the schema."))
        elif LEFT_OUT in shape:
            found.problems.append(Problem(name, "", shape[LEFT_OUT]))
        elif (row := _row(shape)) is not None:
            found.tables.append(_table(name, row, found))
    return found


def _row(shape: Shape) -> Shape | None:
    """The object that is a row: the value itself, or the elements of an array."""
    if shape.get("type") == "array" and "items" in shape:
        shape = shape["items"]
    if shape.get("type") != "object":
        return None
    if "enum" in shape:  # objects that fields cannot express: those with the names of the first
        names = [name for name in shape["enum"][0] if all(name in one for one in shape["enum"])]
        alike = [one for one in shape["enum"] if len(one) == len(names)]
        return (
            {"properties": {name: {"enum": [alike[0][name]]} for name in names}} if alike and names else None
        )
    return shape if document.has_columns(shape) else None


def _table(name: str, shape: Shape, read: Read) -> Table:
    names, told = named(shape["properties"])
    required = set(shape.get("required") or ())
    made: list[Column] = []
    for called, (key, inner) in list(zip(names, shape["properties"].items(), strict=True))[
        : limits.MAX_FIELDS
    ]:
        column = document.column_of(called, inner, key in required)
        length = column.max_length
        whole = isinstance(length, int) and not isinstance(length, bool) and length > 0
        if length is not None and not whole:  # a schema may say what no column can be
            column = replace(column, max_length=None)
        made.append(column)
    csv.beyond(name, names, read)
    parts = (clean(name),)
    table = Table(Entity(parts[0], parts, tuple(made), "operation"))
    for column_name, text in told.items():
        table.note(column_name, text)
    return table

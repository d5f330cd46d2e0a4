"""Convert an OpenAPI document to metadata: an entity for each operation, a column for each of its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any, Final

from webapp import limits
from webapp.connectors import metadata_documents
from webapp.connectors.json_schema.shapes import LEFT_OUT
from webapp.connectors.openapi.document import Document, Operation, Schema, base_url, read
from webapp.connectors.schema import Column, ColumnType, Entity, Metadata

_TYPES: Final[Mapping[str, ColumnType]] = {
    "integer": "integer", "number": "decimal", "boolean": "boolean", "object": "json", "array": "array",
}  # fmt: skip
_FORMATS: Final[Mapping[str, ColumnType]] = {
    "date": "date", "date-time": "timestamptz", "uuid": "uuid", "byte": "binary", "time": "time",
    "float": "float", "double": "float",
}  # fmt: skip


BODY_PARTS: Final[Mapping[str, str]] = {
    "array": "=[]", "value": "=value", "form": "=form", "brackets": "=brackets",
}  # fmt: skip
"""Parts of an entity's name for bodies that are not a JSON object: an array with the row, the value of its only column,
and form data (see `document.Body`)."""


def metadata(document: Document, found_at: str) -> Metadata:
    """Return the metadata of a document.

    The `parts` of an entity are the method, the path, the names of required parameters in the query
    (`?name`) and in headers (`name:`), those that the body has too (`+name`), and how the body is made (`BODY_PARTS`).
    """
    entities = tuple(_entity(operation) for operation in document.operations)
    base = base_url(document, found_at)
    return Metadata("openapi", f"{document.title} {document.version}".strip(), entities, base)


def metadata_in_process(file: IO[bytes], found_at: str) -> bytes | dict[str, Any]:
    """Read an OpenAPI document: see `metadata_documents.metadata`."""
    return metadata_documents.answer(lambda: metadata_documents.dump(metadata(read(file.read()), found_at)))


def _entity(one: Operation) -> Entity:
    parameters = {**one.in_path, **one.in_query, **one.in_header}
    columns = [column_of(name, schema, True) for name, schema in parameters.items()]
    required = set(one.body.shape.get("required") or ())
    columns += [
        column_of(name, schema, name in required)
        for name, schema in one.body.shape["properties"].items()
        if name not in parameters
    ]
    others = [*(f"?{name}" for name in one.in_query), *(f"{name}:" for name in one.in_header)]
    others += [
        f"+{name}"
        for name, schema in one.body.shape["properties"].items()
        if name in parameters and not schema.get("readOnly") and LEFT_OUT not in schema
    ]
    others += [part for part in (BODY_PARTS.get(one.body.form), BODY_PARTS.get(one.body.encoding)) if part]
    return Entity(
        one.name, (one.method.upper(), one.path, *others), tuple(columns), "operation", comment=one.title
    )


def column_of(name: str, schema: Schema, required: bool) -> Column:
    """Return the column for a property of a body or a parameter."""
    kind = _kind(schema)
    choices = schema.get("enum") or ()
    declared = " ".join(str(schema[key]) for key in ("type", "format") if schema.get(key))
    items = _kind(schema.get("items") or {}) if kind == "array" else None
    return Column(
        name,
        "enum" if choices and kind == "text" else kind,
        declared or "any",
        nullable=not required or bool(schema.get("nullable")),
        max_length=schema.get("maxLength") if kind in ("text", "binary") else None,
        bits={"int32": 32, "int64": 64}.get(schema.get("format", "")) if kind == "integer" else None,
        generated="computed" if schema.get("readOnly") else "",
        choices=tuple(str(choice) for choice in choices if choice is not None),
        items=items,
        comment=" ".join(str(schema.get("description", "")).split())[: limits.MAX_NAME_CHARS],
        schema=schema or None,
    )


def left_out(column: Column) -> str:
    """Return why a column is not generated; empty if it is."""
    return str((column.schema or {}).get(LEFT_OUT, ""))


def _kind(schema: Schema) -> ColumnType:
    told = schema.get("format")
    if isinstance(told, str) and told in _FORMATS:
        return _FORMATS[told]
    kind = schema.get("type", "string")
    return _TYPES.get(kind, "text" if kind == "string" else "other") if isinstance(kind, str) else "other"

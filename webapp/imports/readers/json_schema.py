"""JSON Schema and the components of OpenAPI documents: each object that is defined is a table, each property a column
that carries its schema. Of what a reference leads to nowhere, that column alone is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.openapi import document as openapi_document
from webapp.connectors.openapi import metadata as openapi_metadata
from webapp.connectors.openapi.document import Reader
from webapp.connectors.schema import Column, Entity
from webapp.imports.readers import csv
from webapp.imports.readers.base import Problem, Read, Source, Table, Unreadable, clean, decoded, named

Schema = Mapping[str, Any]
T = TypeVar("T")


class _Tolerant(Reader):
    """A reader to which what a reference leads nowhere from is empty; `lost` tells of those."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        super().__init__(whole, False)
        self.lost: list[str] = []
        self._total = limits.IMPORT_NODES

    def take(self, most: int, read: Callable[[], T]) -> tuple[T, int]:
        """What `read` makes with at most so many schemas, and how many it took. Raises `ConnectorError`."""
        self.left = before = min(most, self._total)
        self.lost.clear()
        try:
            found = read()
        finally:
            self._total -= before - self.left
        return found, before - self.left

    def target(self, reference: str) -> Any:
        """See `Reader.target`; never raises."""
        try:
            return super().target(reference)
        except ConnectorError as error:
            self.lost.append(error.message)
            return {}


_TURNS: Final = 20  # chosen: references followed one after another
_DEFINED: Final = ("definitions", "$defs")


def read(source: Source) -> Read:
    """A JSON Schema. Raises `Unreadable`."""
    whole = loaded(source)
    title = str(whole.get("title") or source.stem or "rows")
    found = tables(whole, dict(_roots(whole, title)), "json_schema")
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
        entities = openapi_metadata.metadata(openapi_document.read(source.raw), "").entities
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
        return openapi_document.loaded(text.encode("utf-8", "replace"))
    except ConnectorError as error:
        raise Unreadable(error.message.replace("OpenAPI document", "schema"), error.hint or "") from None


def tables(whole: Mapping[str, Any], objects: Mapping[str, Any], form: str) -> Read:
    """A table for each of some schemas, by their names, that is an object; the others are parts of them."""
    found = Read(form)
    names, _ = named(objects, "schema")
    reader = _Tolerant(whole)
    for name, schema in zip(names, objects.values(), strict=True):
        if len(found.tables) >= limits.IMPORT_TABLES:
            told = f"At most {limits.IMPORT_TABLES} schemas are imported at once: left out."
            found.problems.append(Problem(name, "", told))
            continue
        try:
            made = _table(reader, name, schema, found)
        except ConnectorError as error:
            found.problems.append(Problem(name, "", error.message))
            continue
        if made is not None:
            found.tables.append(made)
    return found


def _roots(whole: Mapping[str, Any], title: str) -> Iterator[tuple[str, Any]]:
    """What a schema is about: itself; where it defines parts alone, those."""
    kinds = ("properties", "items", "$ref", "allOf", "anyOf", "oneOf", "prefixItems")
    if any(one in whole for one in kinds):
        yield title, whole.get("items") if whole.get("type") == "array" else whole
        return
    for key in _DEFINED:
        inner = whole.get(key)
        if isinstance(inner, dict):
            yield from inner.items()


def _table(reader: _Tolerant, name: str, schema: Any, read: Read) -> Table | None:
    budget = limits.IMPORT_TABLE_NODES
    (properties, required), _ = reader.take(budget, lambda: _members(reader, schema, 0))
    if not properties:
        return None
    names, told = named(properties)
    made: list[Column] = []
    reds: dict[str, str] = {}
    notes: dict[str, str] = {}
    kept = list(zip(names, properties.items(), strict=True))[: limits.MAX_FIELDS]
    for place, (called, (key, one)) in enumerate(kept):
        share = budget // (len(kept) - place)  # what one column leaves is for those after it
        resolved: Schema
        try:
            resolved, used = reader.take(share, partial(reader.resolved, one))
        except ConnectorError as error:
            resolved, used, reader.lost = {}, share, [error.message]
        budget -= used
        made.append(_sane(openapi_metadata.column_of(called, resolved, key in required)))
        if reader.lost and not resolved:
            reds[called] = reader.lost[0]
        elif reader.lost:
            notes[called] = f"A part of it is left out: {reader.lost[0]}"
    csv.beyond(name, names, read)
    parts = (clean(name),)
    table = Table(Entity(parts[0], parts, tuple(made), "operation"), reds=reds)
    for column_name, text in (*told.items(), *notes.items()):
        table.note(column_name, text)
    return table


def _members(reader: _Tolerant, schema: Any, turns: int) -> tuple[dict[str, Any], set[str]]:
    """The properties of an object, not yet resolved, so that one that cannot be does not spoil the others."""
    reader.count()
    if not isinstance(schema, dict) or turns > _TURNS:
        return {}, set()
    found: dict[str, Any] = {}
    required: set[str] = set()
    parts = [one for one in _list(schema.get("allOf")) if isinstance(one, dict)]
    for key in ("oneOf", "anyOf"):
        parts += [
            one for one in _list(schema.get(key)) if isinstance(one, dict) and one.get("type") != "null"
        ][:1]
    if isinstance(schema.get("$ref"), str):
        parts.append(reader.target(schema["$ref"]))
    for part in parts:
        inner, needed = _members(reader, part, turns + 1)
        found |= inner
        required |= needed
    own = schema.get("properties")
    if isinstance(own, dict):
        found |= own
    named_ = schema.get("required")
    if isinstance(named_, list):
        required |= {one for one in named_ if isinstance(one, str)}
    return found, required


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _sane(column: Column) -> Column:
    """A column without what a schema may say and no column can be."""
    length = column.max_length
    whole = isinstance(length, int) and not isinstance(length, bool) and length > 0
    return column if length is None or whole else replace(column, max_length=None)

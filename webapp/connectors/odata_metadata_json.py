"""`$metadata` of V4 as JSON (OData 4.01 CSDL JSON), which some services give and people upload."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from webapp.connectors.base import ConnectorError
from webapp.connectors.odata_model import (
    EntitySet,
    Enumeration,
    Navigation,
    Property,
    Service,
    Structured,
    Terms,
)
from webapp.connectors.odata_terms import term

_Json = Mapping[str, Any]


def read(document: bytes) -> Service:
    """The service of a document. Raises `ConnectorError` (reason `bad_document`)."""
    from webapp.connectors.odata_metadata import bad_document  # which asks this module for what is JSON

    try:
        found = json.loads(document)
    except json.JSONDecodeError as error:
        raise bad_document(f"The document is not JSON: {error.msg}", (error.lineno, error.colno)) from None
    except (UnicodeDecodeError, RecursionError):
        raise bad_document("The document is not JSON in UTF-8, or too deep", (1, 1)) from None
    if not isinstance(found, dict) or "$Version" not in found:
        raise bad_document("The document is JSON without $Version, so it is no OData metadata", (1, 1))
    try:
        return _Reader(found).service()
    except ConnectorError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise bad_document(
            "The document is JSON, and its parts are not those of OData 4.01 CSDL", (1, 1)
        ) from None


class _Reader:
    """One document."""

    def __init__(self, found: _Json) -> None:
        self.schemas = {name: one for name, one in found.items() if isinstance(one, dict) and name[0] != "$"}
        self.aliases = {one["$Alias"]: name for name, one in self.schemas.items() if "$Alias" in one}
        for reference in found.get("$Reference", {}).values():
            for one in reference.get("$Include", ()):
                self.aliases[one.get("$Alias", "")] = one["$Namespace"]
        self.found = Service("v4")

    def service(self) -> Service:
        """All that the schemas say."""
        containers = set()
        for namespace, schema in self.schemas.items():
            for word, one in _members(schema):
                name, kind = f"{namespace}.{word}", one.get("$Kind")
                if kind in ("EntityType", "ComplexType"):
                    self.found.types[name] = self._structured(one, name, kind == "EntityType")
                elif kind == "EnumType":
                    members = {
                        key: value for key, value in one.items() if isinstance(value, int) and key[0] != "$"
                    }
                    self.found.enums[name] = Enumeration(name, members, bool(one.get("$IsFlags")))
                elif kind == "TypeDefinition":
                    self.found.definitions[name] = self._property(
                        word, one, one.get("$UnderlyingType", "Edm.String")
                    )
                elif kind == "EntityContainer":
                    containers.add(name)
                    self._container(one)
        for schema in self.schemas.values():
            for target, notes in schema.get("$Annotations", {}).items():
                self._annotated(target, notes, containers)
        return self.found

    def _qualified(self, name: str) -> str:
        prefix, dot, word = name.rpartition(".")
        return f"{self.aliases.get(prefix, prefix)}{dot}{word}"

    def _structured(self, one: _Json, name: str, entity: bool) -> Structured:
        base = one.get("$BaseType", "")
        key = tuple(part if isinstance(part, str) else next(iter(part)) for part in one.get("$Key", ()))
        made = Structured(
            name, entity, self._qualified(base) if base else "", bool(one.get("$Abstract")),
            bool(one.get("$OpenType")), key, terms=self._terms(one),
        )  # fmt: skip
        for word, part in _members(one):
            if part.get("$Kind") == "NavigationProperty":
                made.navigations[word] = Navigation(
                    word, self._qualified(part["$Type"]), bool(part.get("$Collection")),
                    bool(part.get("$Nullable")), str(part.get("$Partner", "")), bool(part.get("$ContainsTarget")),
                    pairs=tuple(
                        (own, other) for own, other in part.get("$ReferentialConstraint", {}).items()
                        if isinstance(other, str) and own[0] not in "@$"
                    ),
                    terms=self._terms(part),
                )  # fmt: skip
            else:
                made.properties[word] = self._property(word, part, part.get("$Type", "Edm.String"))
        return made

    def _property(self, name: str, one: _Json, declared: str) -> Property:
        precision, scale = _whole(one.get("$Precision")), one.get("$Scale")
        default = one.get("$DefaultValue")
        return Property(
            name, self._qualified(declared), bool(one.get("$Collection")), bool(one.get("$Nullable")),
            _whole(one.get("$MaxLength")), precision,
            0 if scale is None and precision is not None else _whole(scale),
            None if default is None else str(default), self._terms(one),
        )  # fmt: skip

    def _container(self, container: _Json) -> None:
        for name, one in _members(container):
            if one.get("$Collection") and "$Type" in one:
                bindings = {
                    path: target.rpartition("/")[2]
                    for path, target in one.get("$NavigationPropertyBinding", {}).items()
                }
                made = EntitySet(name, self._qualified(one["$Type"]), bindings, self._terms(one))
                self.found.sets[name] = made

    def _terms(self, one: _Json) -> Terms:
        """Annotations stand beside the members as `@Term`."""
        found: Terms = {}
        for name, value in one.items():
            if name[:1] == "@" and (word := term(name[1:], self.aliases)):
                found[word] = value
        return found

    def _annotated(self, target: str, notes: _Json, containers: set[str]) -> None:
        owner, _, path = target.partition("/")
        owner = self._qualified(owner)
        holder: Any = self.found.sets.get(path) if owner in containers else None
        if (kind := self.found.types.get(owner)) is not None:
            holder = kind if not path else kind.properties.get(path) or kind.navigations.get(path)
        if holder is not None:
            holder.terms |= self._terms(notes)


def _members(one: _Json) -> Iterator[tuple[str, _Json]]:
    for name, part in one.items():
        if name[:1] not in ("$", "@") and "@" not in name and isinstance(part, dict):
            yield name, part


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else None

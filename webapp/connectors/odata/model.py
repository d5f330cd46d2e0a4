"""The content of a `$metadata` document of any version: types, navigation and entity sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Version = Literal["v2", "v4"]
Terms = dict[str, Any]
"""Annotations by the last part of their term: `{"Label": "Order", "Computed": True}`."""

DEPTH: Final = 32  # maximum depth of base types; a longer chain is circular


@dataclass(slots=True)
class Property:
    """A property. `type` is a qualified name without Collection(), such as `Edm.String` or `Shop.Address`."""

    name: str
    type: str
    collection: bool = False
    nullable: bool = True
    max_length: int | None = None
    precision: int | None = None
    scale: int | None = None
    default: str | None = None
    terms: Terms = field(default_factory=dict)


@dataclass(slots=True)
class Navigation:
    """A navigation property. `pairs` are own and target property of its referential constraint."""

    name: str
    type: str
    collection: bool = False
    nullable: bool = True
    partner: str = ""
    contains: bool = False
    relationship: str = ""
    """For V2: the association's qualified name, and the role of the target."""
    role: str = ""
    pairs: tuple[tuple[str, str], ...] = ()
    terms: Terms = field(default_factory=dict)


@dataclass(slots=True)
class Structured:
    """An entity type or a complex type, without inherited members."""

    name: str
    entity: bool
    base: str = ""
    abstract: bool = False
    open: bool = False
    key: tuple[str, ...] = ()
    properties: dict[str, Property] = field(default_factory=dict)
    navigations: dict[str, Navigation] = field(default_factory=dict)
    terms: Terms = field(default_factory=dict)


@dataclass(slots=True)
class Enumeration:
    """An enumeration: names and values of its members."""

    name: str
    members: dict[str, int]
    flags: bool = False


@dataclass(slots=True)
class EntitySet:
    """An entity set. `bindings` are the entity sets that navigation properties lead to, by path."""

    name: str
    type: str
    bindings: dict[str, str] = field(default_factory=dict)
    terms: Terms = field(default_factory=dict)


@dataclass(slots=True)
class Service:
    """A service. Type names are qualified with their namespace, and aliases are resolved."""

    version: Version
    types: dict[str, Structured] = field(default_factory=dict)
    enums: dict[str, Enumeration] = field(default_factory=dict)
    definitions: dict[str, Property] = field(default_factory=dict)
    """Type definitions of V4: the Edm type with its facets."""
    sets: dict[str, EntitySet] = field(default_factory=dict)
    _flat: dict[str, Structured] = field(default_factory=dict)
    _derived: frozenset[str] | None = None
    _sets_of: dict[str, list[str]] | None = None

    def structured(self, name: str) -> Structured | None:
        """Return a type including everything that it inherits; None if the document does not define it."""
        if name not in self._flat:
            own = self.types.get(name)
            if own is None:
                return None
            self._flat[name] = self._flattened(own)
        return self._flat[name]

    def _flattened(self, own: Structured) -> Structured:
        chain = list(self.lineage(own))
        if len(chain) == 1:
            return own
        flat = Structured(own.name, own.entity, own.base, own.abstract, any(one.open for one in chain))
        for one in reversed(chain):
            flat.key = one.key or flat.key
            flat.properties |= one.properties
            flat.navigations |= one.navigations
            flat.terms |= one.terms
        return flat

    def lineage(self, own: Structured) -> Iterator[Structured]:
        """Yield a type and its base types."""
        current: Structured | None = own
        for _ in range(DEPTH):
            if current is None:
                return
            yield current
            current = self.types.get(current.base) if current.base else None

    def has_derived(self, name: str) -> bool:
        """Return whether the type has derived types or a base type: a row must then declare its type."""
        if self._derived is None:
            bases = {type_.base for type_ in self.types.values() if type_.base}
            self._derived = frozenset(
                bases | {type_.name for type_ in self.types.values() if type_.base in self.types}
            )
        return name in self._derived

    def facets(self, one: Property) -> Property:
        """Return a property with its type definition, if any, replaced by the underlying type."""
        found = self.definitions.get(one.type)
        if found is None:
            return one
        return Property(
            one.name, found.type, one.collection, one.nullable,
            found.max_length if one.max_length is None else one.max_length,
            found.precision if one.precision is None else one.precision,
            found.scale if one.scale is None else one.scale,
            one.default, found.terms | one.terms,
        )  # fmt: skip

    def set_of(self, source: EntitySet | None, navigation: Navigation) -> str:
        """Return the entity set of a navigation: the bound one, or the only one of its type; otherwise ""."""
        if source is not None and (bound := source.bindings.get(navigation.name)):
            return bound if bound in self.sets else ""
        if navigation.contains:
            return ""
        if self._sets_of is None:
            self._sets_of = {}
            for one in self.sets.values():
                self._sets_of.setdefault(one.type, []).append(one.name)
        found = self._sets_of.get(navigation.type, [])
        return found[0] if len(found) == 1 else ""

    def entity_type(self, name: str) -> Structured | None:
        """Return the type of an entity set's rows."""
        found = self.sets.get(name)
        return self.structured(found.type) if found else None


def creatable(terms: Mapping[str, Any]) -> bool:
    """Return whether clients may send this. Computed, read-only and not creatable values are not sent."""
    if terms.get("Computed") or terms.get("creatable") is False:
        return False
    if str(terms.get("Permissions", "")).rpartition("/")[2] == "Read":
        return False
    return str(terms.get("FieldControl", "")).rpartition("/")[2] not in ("ReadOnly", "Hidden")

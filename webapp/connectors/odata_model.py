"""What a `$metadata` document says, whatever its version: types, navigation, entity sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Version = Literal["v2", "v4"]
Terms = dict[str, Any]
"""Annotations by the last word of their term: `{"Label": "Order", "Computed": True}`."""

DEPTH: Final = 32  # chosen: base types above one another; a longer chain is a circle


@dataclass(slots=True)
class Property:
    """A property. `type` is a qualified name without Collection(): `Edm.String`, `Shop.Address`."""

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
    """A navigation property. `pairs` are those of its referential constraint: own property, property there."""

    name: str
    type: str
    collection: bool = False
    nullable: bool = True
    partner: str = ""
    contains: bool = False
    relationship: str = ""
    """Of V2: the association's qualified name, and the role at the far end."""
    role: str = ""
    pairs: tuple[tuple[str, str], ...] = ()
    terms: Terms = field(default_factory=dict)


@dataclass(slots=True)
class Structured:
    """An entity type or a complex type, without what it inherits."""

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
    """What rows are posted to. `bindings`: the entity set that a navigation leads to, by its path."""

    name: str
    type: str
    bindings: dict[str, str] = field(default_factory=dict)
    terms: Terms = field(default_factory=dict)


@dataclass(slots=True)
class Service:
    """One service. Names of types are qualified by namespace, aliases resolved."""

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
        """A type with all that it inherits; None where the document has none of that name."""
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
        """A type and those it is built on, itself first."""
        current: Structured | None = own
        for _ in range(DEPTH):
            if current is None:
                return
            yield current
            current = self.types.get(current.base) if current.base else None

    def has_derived(self, name: str) -> bool:
        """Whether other types are built on this one, or it on another: a row then says which of them it is."""
        if self._derived is None:
            bases = {one.base for one in self.types.values() if one.base}
            self._derived = frozenset(
                bases | {one.name for one in self.types.values() if one.base in self.types}
            )
        return name in self._derived

    def facets(self, one: Property) -> Property:
        """A property whose type definition, if it has one, is put in for its name."""
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
        """The entity set that a navigation leads to: the bound one, else the only one of that type; else empty."""
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
        """The type of an entity set's rows."""
        found = self.sets.get(name)
        return self.structured(found.type) if found else None


def creatable(terms: Mapping[str, Any]) -> bool:
    """Whether the annotations let a client send this. What is computed, read-only or not creatable is not sent."""
    if terms.get("Computed") or terms.get("creatable") is False:
        return False
    if str(terms.get("Permissions", "")).rpartition("/")[2] == "Read":
        return False
    return str(terms.get("FieldControl", "")).rpartition("/")[2] not in ("ReadOnly", "Hidden")

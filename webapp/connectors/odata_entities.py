"""A service's entity sets as every kind of connection tells its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webapp.connectors.odata_model import EntitySet, Navigation, Property, Service, Structured, creatable
from webapp.connectors.shape import Column, ColumnType, Entity, Metadata, Relation

# Edm types as columns; integers with bits and whether they are unsigned.
_TYPES: Final[Mapping[str, ColumnType]] = {
    "Edm.String": "text", "Edm.Guid": "uuid", "Edm.Boolean": "boolean", "Edm.Binary": "binary",
    "Edm.Byte": "integer", "Edm.SByte": "integer", "Edm.Int16": "integer", "Edm.Int32": "integer",
    "Edm.Int64": "integer", "Edm.Decimal": "decimal", "Edm.Double": "float", "Edm.Single": "float",
    "Edm.Date": "date", "Edm.DateTime": "timestamp", "Edm.DateTimeOffset": "timestamptz", "Edm.Time": "time",
    "Edm.TimeOfDay": "time", "Edm.Duration": "interval",
}  # fmt: skip
_BITS: Final = {"Edm.Byte": 8, "Edm.SByte": 8, "Edm.Int16": 16, "Edm.Int32": 32, "Edm.Int64": 64}
NAVIGATION: Final = "Navigation("
"""`Column.declared` begins so where a navigation property can be inserted with its row."""


def metadata(service: Service) -> Metadata:
    """Every entity set of a service."""
    entities = tuple(entity(service, one) for one in service.sets.values())
    return Metadata("odata", f"OData {service.version.upper()}", tuple(one for one in entities if one.fields))


def entity(service: Service, source: EntitySet) -> Entity:
    """One entity set; without fields where its type is not in the document."""
    kind = service.structured(source.type)
    if kind is None:
        return Entity(source.name, (source.name,), (), "entity_set")
    believed = _believed(kind, source)
    columns = [
        column(service, one, kind, believed) for one in kind.properties.values() if one.type != "Edm.Stream"
    ]
    ways = [one for one in kind.navigations.values() if _insertable(one, source)]
    columns += [_navigation(service, source, one) for one in ways]
    return Entity(
        source.name, (source.name,), tuple(columns), "entity_set", kind.key,
        relations=tuple(_relations(service, source, kind)), comment=_label(source.terms) or _label(kind.terms),
    )  # fmt: skip


def _believed(kind: Structured, source: EntitySet) -> bool:
    """Whether what is said not to be creatable is believed. SAP's service builder says it of every property unless a
    box is ticked for each, so a type of which no property could be sent says nothing."""
    names = _named(source.terms.get("InsertRestrictions"), "NonInsertableProperties")
    return any(creatable(one.terms) and one.name not in names for one in kind.properties.values())


def _named(record: Any, key: str) -> frozenset[str]:
    paths = record.get(key) if isinstance(record, dict) else None
    return frozenset(one for one in paths if isinstance(one, str)) if isinstance(paths, list) else frozenset()


def column(service: Service, one: Property, kind: Structured, believed: bool = True) -> Column:
    """A property as a column."""
    one = service.facets(one)
    found = "array" if one.collection else _type(service, one)
    key = one.name in kind.key
    return Column(
        one.name, found, f"Collection({one.type})" if one.collection else one.type,
        nullable=one.nullable and not key and not _mandatory(one),
        max_length=one.max_length, precision=one.precision if found == "decimal" else None,
        scale=one.scale, bits=_BITS.get(one.type), unsigned=one.type == "Edm.Byte",
        key=key, unique=kind.key == (one.name,), generated=_generated(one, key, believed),
        default=_default(one, key), choices=_choices(service, one),
        items=_type(service, one) if one.collection else None, comment=_label(one.terms),
    )  # fmt: skip


def _type(service: Service, one: Property) -> ColumnType:
    if one.type in service.enums or (one.type == "Edm.String" and _choices(service, one)):
        return "enum"
    if one.type in service.types or one.type.startswith(("Edm.Geo", "Edm.Untyped", "Edm.ComplexType")):
        return "json"
    if one.type == "Edm.DateTime" and one.terms.get("display-format") == "Date":
        return "date"
    return _TYPES.get(one.type, "other")


def _mandatory(one: Property) -> bool:
    return str(one.terms.get("FieldControl", "")).rpartition("/")[2] == "Mandatory"


def _generated(one: Property, key: bool, believed: bool) -> str:
    """A key that the server may make is left out or given, as the row likes; what it computes is never sent."""
    if key and (one.terms.get("ComputedDefaultValue") or not creatable(one.terms)):
        return "identity"
    return "computed" if not key and believed and not creatable(one.terms) else ""


def _default(one: Property, key: bool) -> str | None:
    if one.default is None and one.terms.get("ComputedDefaultValue") and not key:
        return "made by the service"
    return one.default


def _choices(service: Service, one: Property) -> tuple[str, ...]:
    if enumeration := service.enums.get(one.type):
        return tuple(enumeration.members)
    allowed = one.terms.get("AllowedValues")
    values = (
        [item.get("Value") for item in allowed if isinstance(item, dict)] if isinstance(allowed, list) else []
    )
    return tuple(str(value) for value in values if isinstance(value, str | int))


def _label(terms: Mapping[str, Any]) -> str:
    found = terms.get("Label") or terms.get("Description") or terms.get("LongDescription")
    return found if isinstance(found, str) else ""


def _insertable(way: Navigation, source: EntitySet) -> bool:
    refused = _named(source.terms.get("InsertRestrictions"), "NonInsertableNavigationProperties")
    return creatable(way.terms) and way.name not in refused


def _navigation(service: Service, source: EntitySet, way: Navigation) -> Column:
    target = service.set_of(source, way) or way.type
    return Column(
        way.name, "array" if way.collection else "json", f"{NAVIGATION}{target})",
        items="json" if way.collection else None, comment=_label(way.terms),
    )  # fmt: skip


def _relations(service: Service, source: EntitySet, kind: Structured) -> list[Relation]:
    """What is told by referential constraints; without one, a way to a single row there is a relation by itself: the
    key that it is given becomes a reference."""
    found = []
    for way in kind.navigations.values():
        target = service.set_of(source, way)
        there = service.structured(way.type)
        if way.collection or not target or there is None:
            continue
        back = there.navigations.get(way.partner)
        if way.pairs and all(own in kind.properties for own, _ in way.pairs):
            own, other = zip(*way.pairs, strict=True)
            found.append(Relation(way.name, own, target, other))
        elif not way.pairs and len(there.key) == 1 and _insertable(way, source) and not (back and back.pairs):
            found.append(Relation(way.name, (way.name,), target, there.key))
    return found + _value_lists(service, kind, {name for one in found for name in one.columns})


def _value_lists(service: Service, kind: Structured, taken: set[str]) -> list[Relation]:
    """Properties whose values are listed by another entity set, where nothing else leads there."""
    found = []
    for one in kind.properties.values():
        listed = one.terms.get("ValueList")
        if one.name in taken or not isinstance(listed, dict) or not creatable(one.terms):
            continue
        target = str(listed.get("CollectionPath", "")).rpartition("/")[2]
        there = service.entity_type(target)
        value = _outward(listed, one.name)
        if there is not None and value in there.properties:
            found.append(Relation(f"{one.name} (value list)", (one.name,), target, (value,)))
    return found


def _outward(listed: Mapping[str, Any], name: str) -> str:
    """The property there whose value this one takes (Common.ValueListParameterInOut and -Out)."""
    parameters = listed.get("Parameters")
    for item in parameters if isinstance(parameters, list) else ():
        if isinstance(item, dict) and item.get("LocalDataProperty") == name:
            return str(item.get("ValueListProperty", ""))
    return ""

"""Convert a service's entity sets to metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any, Final

from webapp.connectors import metadata_documents
from webapp.connectors.odata import metadata as odata_metadata
from webapp.connectors.odata.model import EntitySet, Navigation, Property, Service, Structured, creatable
from webapp.connectors.schema import Column, ColumnType, Entity, Metadata, Relation

# Column types for Edm types; below, integers with their bits.
_TYPES: Final[Mapping[str, ColumnType]] = {
    "Edm.String": "text", "Edm.Guid": "uuid", "Edm.Boolean": "boolean", "Edm.Binary": "binary",
    "Edm.Byte": "integer", "Edm.SByte": "integer", "Edm.Int16": "integer", "Edm.Int32": "integer",
    "Edm.Int64": "integer", "Edm.Decimal": "decimal", "Edm.Double": "float", "Edm.Single": "float",
    "Edm.Date": "date", "Edm.DateTime": "timestamp", "Edm.DateTimeOffset": "timestamptz", "Edm.Time": "time",
    "Edm.TimeOfDay": "time", "Edm.Duration": "interval",
}  # fmt: skip
_BITS: Final = {"Edm.Byte": 8, "Edm.SByte": 8, "Edm.Int16": 16, "Edm.Int32": 32, "Edm.Int64": 64}
NAVIGATION: Final = "Navigation("
"""Prefix of `Column.declared` for navigation properties that can be inserted with their row."""


def metadata(service: Service) -> Metadata:
    """Return the metadata of all entity sets."""
    entities = tuple(entity(service, one) for one in service.sets.values())
    return Metadata("odata", f"OData {service.version.upper()}", tuple(one for one in entities if one.fields))


def metadata_in_process(file: IO[bytes], found_at: str) -> bytes | dict[str, Any]:
    """Read a `$metadata` document: see `metadata_documents.metadata`."""
    return metadata_documents.answer(
        lambda: metadata_documents.dump(metadata(odata_metadata.read(file.read())))
    )


def entity(service: Service, source: EntitySet) -> Entity:
    """Return one entity set, without fields if its type is not in the document."""
    kind = service.structured(source.type)
    if kind is None:
        return Entity(source.name, (source.name,), (), "entity_set")
    believed = _believed(kind, source)
    columns = [
        column(service, property_, kind, believed)
        for property_ in kind.properties.values()
        if property_.type != "Edm.Stream"
    ]
    navigations = [navigation for navigation in kind.navigations.values() if _insertable(navigation, source)]
    columns += [_navigation(service, source, navigation) for navigation in navigations]
    return Entity(
        source.name, (source.name,), tuple(columns), "entity_set", kind.key,
        relations=tuple(_relations(service, source, kind)), comment=_label(source.terms) or _label(kind.terms),
    )  # fmt: skip


def _believed(kind: Structured, source: EntitySet) -> bool:
    """Return whether annotations about creatable properties are reliable.

    SAP's service builder marks every property as not creatable unless a box is ticked, so a type without any
    creatable property says nothing.
    """
    names = _named(source.terms.get("InsertRestrictions"), "NonInsertableProperties")
    return any(
        creatable(property_.terms) and property_.name not in names for property_ in kind.properties.values()
    )


def _named(record: Any, key: str) -> frozenset[str]:
    paths = record.get(key) if isinstance(record, dict) else None
    return (
        frozenset(path for path in paths if isinstance(path, str)) if isinstance(paths, list) else frozenset()
    )


def column(service: Service, one: Property, kind: Structured, believed: bool = True) -> Column:
    """Return the column for a property."""
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
    """A key that the server may generate can be omitted or sent; a computed property is never sent."""
    if key and (one.terms.get("ComputedDefaultValue") or not creatable(one.terms)):
        return "identity"
    return "computed" if not key and believed and not creatable(one.terms) else ""


def _default(one: Property, key: bool) -> str | None:
    if one.default is None and one.terms.get("ComputedDefaultValue") and not key:
        return "generated by the service"
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


def _insertable(navigation: Navigation, source: EntitySet) -> bool:
    refused = _named(source.terms.get("InsertRestrictions"), "NonInsertableNavigationProperties")
    return creatable(navigation.terms) and navigation.name not in refused


def _navigation(service: Service, source: EntitySet, navigation: Navigation) -> Column:
    target = service.set_of(source, navigation) or navigation.type
    return Column(
        navigation.name, "array" if navigation.collection else "json", f"{NAVIGATION}{target})",
        items="json" if navigation.collection else None, comment=_label(navigation.terms),
    )  # fmt: skip


def _relations(service: Service, source: EntitySet, kind: Structured) -> list[Relation]:
    """Return relations for referential constraints.

    Without a constraint, navigation to a single entity is a relation too: the given key becomes a reference.
    """
    found = []
    for navigation in kind.navigations.values():
        target = service.set_of(source, navigation)
        there = service.structured(navigation.type)
        if navigation.collection or not target or there is None:
            continue
        back = there.navigations.get(navigation.partner)
        if navigation.pairs and all(own in kind.properties for own, _ in navigation.pairs):
            own, other = zip(*navigation.pairs, strict=True)
            found.append(Relation(navigation.name, own, target, other))
        elif (
            not navigation.pairs
            and len(there.key) == 1
            and _insertable(navigation, source)
            and not (back and back.pairs)
        ):
            found.append(Relation(navigation.name, (navigation.name,), target, there.key))
    return found + _value_lists(service, kind, {name for one in found for name in one.columns})


def _value_lists(service: Service, kind: Structured, taken: set[str]) -> list[Relation]:
    """Return relations for properties whose values another entity set lists, unless they have another
    relation."""
    found = []
    for property_ in kind.properties.values():
        listed = property_.terms.get("ValueList")
        if property_.name in taken or not isinstance(listed, dict) or not creatable(property_.terms):
            continue
        target = str(listed.get("CollectionPath", "")).rpartition("/")[2]
        there = service.entity_type(target)
        value = _outward(listed, property_.name)
        if there is not None and value in there.properties:
            found.append(Relation(f"{property_.name} (value list)", (property_.name,), target, (value,)))
    return found


def _outward(listed: Mapping[str, Any], name: str) -> str:
    """Return the property of the value list that supplies the value (Common.ValueListParameterInOut and
    -Out)."""
    parameters = listed.get("Parameters")
    for item in parameters if isinstance(parameters, list) else ():
        if isinstance(item, dict) and item.get("LocalDataProperty") == name:
            return str(item.get("ValueListProperty", ""))
    return ""

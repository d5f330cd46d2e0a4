"""Rows as JSON bodies of OData, key predicates, and keys read from what a service answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import orjson

from webapp.connectors import odata_entities, odata_scalars
from webapp.connectors.odata_model import EntitySet, Navigation, Property, Service, Structured, Version
from webapp.connectors.odata_scalars import NeedsStrings
from webapp.connectors.scalars import Misfit, shown
from webapp.connectors.shape import Column, Entity

BIND: Final = "@odata.bind"
# V4: seconds without a Precision have no fraction (OData 4.01 CSDL, "Precision"). V2 writes milliseconds.
_NO_FRACTION: Final = ("Edm.DateTimeOffset", "Edm.TimeOfDay", "Edm.Duration")


class _Inner(Misfit):
    """A misfit whose message begins with the name it concerns."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body. `strings`: with numbers as strings (IEEE754Compatible), for it holds one that doubles cannot."""

    data: dict[str, Any]
    strings: bool = False

    def text(self) -> bytes:
        """As JSON."""
        return orjson.dumps(self.data)


class Shaper:
    """Rows of one entity set as bodies and keys. `root` is the service's URL, with its slash."""

    def __init__(self, service: Service, source: EntitySet, root: str, strings: bool = False) -> None:
        """`strings`: always as IEEE754Compatible asks. A type that the service does not tell takes every name."""
        self.service, self.source, self.root, self.always = service, source, root, strings
        self.version: Version = service.version
        self.kind = service.structured(source.type) or Structured(source.type, True, open=True)
        self._columns: dict[tuple[str, str], Column] = {}
        self._strings = strings

    def body(self, values: Mapping[str, Any], updating: bool = False) -> Body:
        """A row's body. Nothing is said of what is null where the service fills it in itself; `updating` says all, but
        not the key. Raises `Misfit`, whose message begins with the name."""
        if updating:
            values = {name: value for name, value in values.items() if name not in self.kind.key}
        self._strings = self.always
        try:
            data = self._object(values, self.kind, self.source, updating)
        except NeedsStrings:
            self._strings = True
            data = self._object(values, self.kind, self.source, updating)
        if self.version == "v2" and self.service.has_derived(self.kind.name):
            data = {"__metadata": {"type": self.kind.name}, **data}
        return Body(data, self._strings)

    def path(self, values: Mapping[str, Any]) -> str:
        """`Orders(ID=1,Item=2)`: where the row of a key is, relative to the root. Raises `Misfit`."""
        return self._path(self.source, self.kind, values)

    # --- objects and properties

    def _object(
        self, values: Mapping[str, Any], kind: Structured, source: EntitySet | None, updating: bool = False
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in values.items():
            try:
                if (one := kind.properties.get(name)) is not None:
                    if value is not None or updating or self._says_null(one, kind):
                        found[name] = None if value is None else self._property(one, kind, value)
                elif (way := kind.navigations.get(name.removesuffix(BIND))) is not None:
                    found |= {} if value is None else self._way(way, kind, source, value, name.endswith(BIND))
                elif kind.open:
                    found[name] = self._natural(value)
                else:
                    raise Misfit("wrong_type", f"{kind.name} has no property of that name")
            except _Inner as error:
                raise _Inner(error.reason, f"{name}.{error}") from None
            except Misfit as error:
                raise _Inner(error.reason, f"{name}: {error}") from None
        return found

    def _says_null(self, one: Property, kind: Structured) -> bool:
        column = self._column(one, kind)
        return one.nullable and column.default is None and not column.generated

    def _column(self, one: Property, kind: Structured) -> Column:
        place = (kind.name, one.name)
        if place not in self._columns:
            self._columns[place] = odata_entities.column(self.service, one, kind)
        return self._columns[place]

    def _property(self, one: Property, kind: Structured, value: Any) -> Any:
        if not one.collection:
            return self._single(one, kind, value)
        items = _opened(value)
        if not isinstance(items, Sequence) or isinstance(items, str | bytes):
            raise Misfit("wrong_type", f"{shown(value)} is not a list")
        found = [None if item is None else self._single(one, kind, item) for item in items]
        return {"results": found} if self.version == "v2" else found

    def _single(self, one: Property, kind: Structured, value: Any) -> Any:
        facets = self.service.facets(one)
        edm = facets.type
        if (enumeration := self.service.enums.get(edm)) is not None:
            return odata_scalars.member(value, enumeration)
        if (inner := self.service.structured(edm)) is not None:
            return self._object(_record(value), inner, None)
        if not edm.startswith("Edm.") or edm.startswith(("Edm.Geo", "Edm.Untyped")):
            return self._natural(_opened(value))
        column = self._column(one, kind)
        if one.collection:
            column = odata_entities.column(self.service, _one_of(one), kind)
        return odata_scalars.as_json(
            odata_scalars.checked(value, column, self._fraction(facets)), edm, self.version, self._strings
        )

    def _fraction(self, one: Property) -> int | None:
        if one.precision is not None and one.type != "Edm.Decimal":
            return one.precision
        return 0 if self.version == "v4" and one.type in _NO_FRACTION else None

    def _natural(self, value: Any) -> Any:
        """A value of which the service tells no type."""
        if isinstance(value, Mapping):
            return {str(name): self._natural(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._natural(one) for one in value]
        edm = "Edm.Int64" if isinstance(value, int) and abs(value) > 2**31 and self.version == "v2" else ""
        return odata_scalars.as_json(value, edm, self.version, self._strings)

    # --- navigation

    def _way(
        self, way: Navigation, kind: Structured, source: EntitySet | None, value: Any, binds: bool
    ) -> dict[str, Any]:
        """Rows to be inserted with this one, or references to rows that are there."""
        target = self.service.sets.get(self.service.set_of(source, way))
        there = self.service.structured(way.type)
        value = _opened(value)
        if way.collection:
            items = list(value) if isinstance(value, list | tuple) else [value]
            if any(not isinstance(item, Mapping) for item in items) or binds:
                uris = [self._uri(way, target, there, item) for item in items]
                return self._bound(way, uris)
            rows = [self._inner(item, there, target) for item in items]
            return {way.name: {"results": rows} if self.version == "v2" else rows}
        keyed = isinstance(value, Mapping) and there is not None and set(value) == set(there.key)
        if isinstance(value, Mapping) and not binds and (not keyed or target is None or way.contains):
            return {way.name: self._inner(value, there, target)}
        owned = way.pairs and all(own in kind.properties for own, _ in way.pairs)
        if owned and not binds and there is not None:
            return self._by_columns(way, there, value)
        return self._bound(way, [self._uri(way, target, there, value)])

    def _by_columns(self, way: Navigation, there: Structured, value: Any) -> dict[str, Any]:
        given = value if isinstance(value, Mapping) else {way.pairs[0][1]: value}
        if set(given) != {other for _, other in way.pairs}:
            names = ", ".join(other for _, other in way.pairs)
            raise Misfit("wrong_type", f"a reference gives {names}")
        return {own: self._property(there.properties[other], there, given[other]) for own, other in way.pairs}

    def _inner(self, value: Any, there: Structured | None, target: EntitySet | None) -> Any:
        row = _record(value)
        if there is None:
            return self._natural(row)
        made = self._object(row, there, target)
        if self.version == "v2" and self.service.has_derived(there.name):
            return {"__metadata": {"type": there.name}, **made}
        return made

    def _uri(self, way: Navigation, target: EntitySet | None, there: Structured | None, value: Any) -> str:
        if isinstance(value, str) and value.endswith(")") and "(" in value:
            return value
        if target is None or there is None:
            raise Misfit(
                "wrong_type", f"no entity set is known for {way.name}; give a path, like Things('1')"
            )
        given = value if isinstance(value, Mapping) else {there.key[0]: value} if len(there.key) == 1 else {}
        return self._path(target, there, given)

    def _bound(self, way: Navigation, uris: list[str]) -> dict[str, Any]:
        if self.version == "v4":
            return {f"{way.name}{BIND}": uris if way.collection else uris[0]}
        links = [
            {"__metadata": {"uri": uri if "://" in uri else f"{self.root}{uri.lstrip('/')}"}} for uri in uris
        ]
        return {way.name: {"results": links} if way.collection else links[0]}

    def _path(self, source: EntitySet, kind: Structured, values: Mapping[str, Any]) -> str:
        if not kind.key:
            raise Misfit("wrong_type", f"{source.name} has no key")
        parts = {}
        for name in kind.key:
            if values.get(name) is None:
                raise Misfit("wrong_type", f"{name}: a row is found by its key, and this part of it is empty")
            parts[name] = self._literal(kind.properties[name], kind, values[name])
        said = (
            next(iter(parts.values())) if len(parts) == 1 else ",".join(f"{a}={b}" for a, b in parts.items())
        )
        return f"{source.name}({said})"

    def _literal(self, one: Property, kind: Structured, value: Any) -> str:
        facets = self.service.facets(one)
        if (enumeration := self.service.enums.get(facets.type)) is not None:
            return odata_scalars.literal(odata_scalars.member(value, enumeration), facets.type, self.version)
        found = odata_scalars.checked(value, self._column(one, kind))
        return odata_scalars.literal(found, facets.type, self.version)


def _one_of(one: Property) -> Property:
    return Property(one.name, one.type, False, True, one.max_length, one.precision, one.scale)


def _opened(value: Any) -> Any:
    """JSON text, opened; every other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value, parse_float=Decimal)
        except (ValueError, RecursionError):
            return value
    return value


def _record(value: Any) -> Mapping[str, Any]:
    found = _opened(value)
    if not isinstance(found, Mapping):
        raise Misfit("wrong_type", f"{shown(value)} is not an object with names and values")
    return found


def service_of(entity: Entity, version: Version) -> Service:
    """What is known of a service by one entity set's columns alone: for a push to a service whose metadata could not be
    read. What is nested goes as it is."""
    name = f"known.{entity.name}"
    kind = Structured(name, True, key=entity.keys, open=True)
    for one in entity.fields:
        if one.declared.startswith(odata_entities.NAVIGATION):
            continue
        many = one.declared.startswith("Collection(")
        edm = one.declared[11:-1] if many else one.declared
        kind.properties[one.name] = Property(
            one.name, edm, many, one.nullable, one.max_length, one.precision, one.scale, one.default,
            {"ComputedDefaultValue": True} if one.generated == "identity" else {},
        )  # fmt: skip
    return Service(version, types={name: kind}, sets={entity.name: EntitySet(entity.name, name)})

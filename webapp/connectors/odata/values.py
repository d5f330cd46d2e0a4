"""Convert rows to OData's JSON bodies and key predicates.

A value of an Edm type is checked, then formatted as JSON or as a URL literal, for V2 or V4.

Sources: OData V2 "JSON Format" and "URI Conventions" (literals of primitive types); OData 4.01 JSON Format,
section 7.1, and ABNF; MS-ODATA 2.2.2 (abstract types) for what V2 leaves open.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import quote

import orjson

from webapp.connectors import column_values
from webapp.connectors.column_values import ConversionError, shorten_value
from webapp.connectors.odata import metadata
from webapp.connectors.odata.metadata import (
    EntitySet,
    Enumeration,
    Navigation,
    Property,
    Service,
    StructuredType,
    Version,
)
from webapp.connectors.schema import Column, Entity

BIND: Final = "@odata.bind"
# V4: without a Precision, seconds have no fraction (OData 4.01 CSDL, "Precision"). V2 writes milliseconds.
_NO_FRACTION: Final = ("Edm.DateTimeOffset", "Edm.TimeOfDay", "Edm.Duration")


class _PropertyError(ConversionError):
    """A misfit whose message starts with the name of the property."""


@dataclass(frozen=True, slots=True)
class Body:
    """A request body. `strings`: numbers are strings (IEEE754Compatible), because a double would lose precision."""

    data: dict[str, Any]
    strings: bool = False

    def text(self) -> bytes:
        """Return the body as JSON."""
        return orjson.dumps(self.data)


class BodyBuilder:
    """Converts rows of an entity set to bodies and keys. `root` is the service's URL with its slash."""

    def __init__(self, service: Service, source: EntitySet, root: str, strings: bool = False) -> None:
        """`strings`: always send numbers as IEEE754Compatible requires. A type without metadata accepts any
        property."""
        self.service, self.source, self.root, self.always = service, source, root, strings
        self.version: Version = service.version
        self.kind = service.structured(source.type) or StructuredType(source.type, True, open=True)
        self._columns: dict[tuple[str, str], Column] = {}
        self._strings = strings

    def body(self, values: Mapping[str, Any], updating: bool = False) -> Body:
        """Return a row's body.

        Nulls are omitted if the service supplies a value itself. `updating` includes all values except the
        key. Raises `ConversionError`, whose message starts with the name.
        """
        if updating:
            values = {name: value for name, value in values.items() if name not in self.kind.key}
        self._strings = self.always
        try:
            data = self._object(values, self.kind, self.source, updating)
        except StringNumbersRequired:
            self._strings = True
            data = self._object(values, self.kind, self.source, updating)
        if self.version == "v2" and self.service.has_derived(self.kind.name):
            data = {"__metadata": {"type": self.kind.name}, **data}
        return Body(data, self._strings)

    def path(self, values: Mapping[str, Any]) -> str:
        """Return the path of a row relative to the root, such as `Orders(ID=1,Item=2)`. Raises `ConversionError`."""
        return self._path(self.source, self.kind, values)

    # --- objects and properties

    def _object(
        self,
        values: Mapping[str, Any],
        kind: StructuredType,
        source: EntitySet | None,
        updating: bool = False,
    ) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name, value in values.items():
            try:
                if (property_ := kind.properties.get(name)) is not None:
                    if value is not None or updating or self._sends_null(property_, kind):
                        result[name] = None if value is None else self._property(property_, kind, value)
                elif (navigation := kind.navigations.get(name.removesuffix(BIND))) is not None:
                    result |= (
                        {}
                        if value is None
                        else self._navigation(navigation, kind, source, value, name.endswith(BIND))
                    )
                elif kind.open:
                    result[name] = self._untyped(value)
                else:
                    raise ConversionError("wrong_type", f"{kind.name} has no property with this name")
            except _PropertyError as error:
                raise _PropertyError(error.reason, f"{name}.{error}") from None
            except ConversionError as error:
                raise _PropertyError(error.reason, f"{name}: {error}") from None
        return result

    def _sends_null(self, property_: Property, kind: StructuredType) -> bool:
        column = self._column(property_, kind)
        return property_.nullable and column.default is None and not column.generated

    def _column(self, property_: Property, kind: StructuredType) -> Column:
        key = (kind.name, property_.name)
        if key not in self._columns:
            self._columns[key] = metadata.column(self.service, property_, kind)
        return self._columns[key]

    def _property(self, property_: Property, kind: StructuredType, value: Any) -> Any:
        if not property_.collection:
            return self._single(property_, kind, value)
        items = _parse_json(value)
        if not isinstance(items, Sequence) or isinstance(items, str | bytes):
            raise ConversionError("wrong_type", f"{shorten_value(value)} is not a list")
        converted = [None if item is None else self._single(property_, kind, item) for item in items]
        return {"results": converted} if self.version == "v2" else converted

    def _single(self, property_: Property, kind: StructuredType, value: Any) -> Any:
        facets = self.service.facets(property_)
        edm = facets.type
        if (enumeration := self.service.enums.get(edm)) is not None:
            return enum_member(value, enumeration)
        if (inner := self.service.structured(edm)) is not None:
            return self._object(_record(value), inner, None)
        if not edm.startswith("Edm.") or edm.startswith(("Edm.Geo", "Edm.Untyped")):
            return self._untyped(_parse_json(value))
        column = self._column(property_, kind)
        if property_.collection:
            item = Property(
                property_.name,
                property_.type,
                False,
                True,
                property_.max_length,
                property_.precision,
                property_.scale,
            )
            column = metadata.column(self.service, item, kind)
        precision = facets.precision if edm != "Edm.Decimal" else None
        if precision is None and self.version == "v4" and edm in _NO_FRACTION:
            precision = 0
        return format_json(to_edm_value(value, column, precision), edm, self.version, self._strings)

    def _untyped(self, value: Any) -> Any:
        """Convert a value whose type is unknown."""
        if isinstance(value, Mapping):
            return {str(name): self._untyped(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._untyped(item) for item in value]
        edm = "Edm.Int64" if isinstance(value, int) and abs(value) > 2**31 and self.version == "v2" else ""
        return format_json(value, edm, self.version, self._strings)

    # --- navigation

    def _navigation(
        self, navigation: Navigation, kind: StructuredType, source: EntitySet | None, value: Any, binds: bool
    ) -> dict[str, Any]:
        """Return nested rows to insert with this one, or references to existing rows."""
        target = self.service.sets.get(self.service.set_of(source, navigation))
        target_type = self.service.structured(navigation.type)
        value = _parse_json(value)
        if navigation.collection:
            items = list(value) if isinstance(value, list | tuple) else [value]
            if any(not isinstance(item, Mapping) for item in items) or binds:
                uris = [self._uri(navigation, target, target_type, item) for item in items]
                return self._references(navigation, uris)
            rows = [self._nested_row(item, target_type, target) for item in items]
            return {navigation.name: {"results": rows} if self.version == "v2" else rows}
        has_only_key = (
            isinstance(value, Mapping) and target_type is not None and set(value) == set(target_type.key)
        )
        if (
            isinstance(value, Mapping)
            and not binds
            and (not has_only_key or target is None or navigation.contains)
        ):
            return {navigation.name: self._nested_row(value, target_type, target)}
        has_own_properties = navigation.pairs and all(own in kind.properties for own, _ in navigation.pairs)
        if has_own_properties and not binds and target_type is not None:
            reference = value if isinstance(value, Mapping) else {navigation.pairs[0][1]: value}
            if set(reference) != {other for _, other in navigation.pairs}:
                names = ", ".join(other for _, other in navigation.pairs)
                raise ConversionError("wrong_type", f"a reference must contain {names}")
            return {
                own: self._property(target_type.properties[other], target_type, reference[other])
                for own, other in navigation.pairs
            }
        return self._references(navigation, [self._uri(navigation, target, target_type, value)])

    def _nested_row(self, value: Any, target_type: StructuredType | None, target: EntitySet | None) -> Any:
        row = _record(value)
        if target_type is None:
            return self._untyped(row)
        result = self._object(row, target_type, target)
        if self.version == "v2" and self.service.has_derived(target_type.name):
            return {"__metadata": {"type": target_type.name}, **result}
        return result

    def _uri(
        self, navigation: Navigation, target: EntitySet | None, target_type: StructuredType | None, value: Any
    ) -> str:
        if isinstance(value, str) and value.endswith(")") and "(" in value:
            return value
        if target is None or target_type is None:
            raise ConversionError(
                "wrong_type",
                f"the entity set of {navigation.name} is unknown; use a path such as Things('1')",
            )
        key_values = (
            value
            if isinstance(value, Mapping)
            else {target_type.key[0]: value}
            if len(target_type.key) == 1
            else {}
        )
        return self._path(target, target_type, key_values)

    def _references(self, navigation: Navigation, uris: list[str]) -> dict[str, Any]:
        if self.version == "v4":
            return {f"{navigation.name}{BIND}": uris if navigation.collection else uris[0]}
        links = [
            {"__metadata": {"uri": uri if "://" in uri else f"{self.root}{uri.lstrip('/')}"}} for uri in uris
        ]
        return {navigation.name: {"results": links} if navigation.collection else links[0]}

    def _path(self, source: EntitySet, kind: StructuredType, values: Mapping[str, Any]) -> str:
        if not kind.key:
            raise ConversionError("wrong_type", f"{source.name} has no key")
        parts = {}
        for name in kind.key:
            if values.get(name) is None:
                raise ConversionError(
                    "wrong_type", f"{name}: this part of the key is empty, but the whole key is required"
                )
            property_ = kind.properties[name]
            edm = self.service.facets(property_).type
            enumeration = self.service.enums.get(edm)
            if enumeration is not None:
                converted = enum_member(values[name], enumeration)
            else:
                converted = to_edm_value(values[name], self._column(property_, kind))
            parts[name] = format_literal(converted, edm, self.version)
        predicate = (
            next(iter(parts.values())) if len(parts) == 1 else ",".join(f"{a}={b}" for a, b in parts.items())
        )
        return f"{source.name}({predicate})"


def _parse_json(value: Any) -> Any:
    """Parse JSON text. Other values are returned unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value, parse_float=Decimal)
        except (ValueError, RecursionError):
            return value
    return value


def _record(value: Any) -> Mapping[str, Any]:
    parsed = _parse_json(value)
    if not isinstance(parsed, Mapping):
        raise ConversionError("wrong_type", f"{shorten_value(value)} is not an object with names and values")
    return parsed


def service_of(entity: Entity, version: Version) -> Service:
    """Return a service that is derived from the columns of one entity set, if the metadata cannot be read.

    Nested values are sent unchanged.
    """
    name = f"known.{entity.name}"
    kind = StructuredType(name, True, key=entity.keys, open=True)
    for column in entity.fields:
        if column.declared.startswith(metadata.NAVIGATION):
            continue
        is_list = column.declared.startswith("Collection(")
        edm = column.declared[11:-1] if is_list else column.declared
        kind.properties[column.name] = Property(
            column.name, edm, is_list, column.nullable, column.max_length, column.precision, column.scale,
            column.default,
            {"ComputedDefaultValue": True} if column.generated == "identity" else {},
        )  # fmt: skip
    return Service(version, types={name: kind}, sets={entity.name: EntitySet(entity.name, name)})


_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND: Final = dt.timedelta(milliseconds=1)
_DURATION: Final = re.compile(
    r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,12})?)S)?)?", re.ASCII
)  # fmt: skip
_MAX_EXACT: Final = 2**53 - 1  # RFC 8259, section 6


class StringNumbersRequired(Exception):
    """A number would lose precision as a double: the body is created again with IEEE754Compatible strings."""


# --- Checks -------------------------------------------------------------------------------------------------


def to_edm_value(value: Any, column: Column, precision: int | None = None) -> Any:
    """Convert to the Python value of the Edm type in `column.declared`, with seconds truncated to `precision`
    digits.

    Raises `ConversionError`.
    """
    converted = _CHECKS.get(column.declared, _unchanged)(value, column)
    if precision is not None and isinstance(converted, dt.datetime | dt.time):
        unit = 10 ** max(0, 6 - precision)
        return converted.replace(microsecond=converted.microsecond // unit * unit)
    return converted


def _text(value: Any, column: Column) -> str:
    text = column_values.to_text(value, column)
    if column.max_length is not None and len(text) > column.max_length:
        raise ConversionError(
            "too_long", f"the value has {len(text):,} characters, but at most {column.max_length:,} fit"
        )
    return text


def _decimal(value: Any, column: Column) -> Decimal:
    """Round to the scale as a database does."""
    number = column_values.to_decimal(value, column)
    if column.scale is not None and -int(number.as_tuple().exponent) > column.scale:
        try:
            number = number.quantize(Decimal(1).scaleb(-column.scale), ROUND_HALF_UP)
        except InvalidOperation:
            raise ConversionError("out_of_range", f"{shorten_value(value)} has too many digits") from None
    return column_values.to_decimal(number, column)


def _integer(value: Any, column: Column) -> int:
    return column_values.to_integer(int(value) if isinstance(value, bool) else value, column)


def _duration(value: Any, column: Column) -> dt.timedelta:
    if isinstance(value, dt.timedelta):
        return value
    if isinstance(value, dt.time):
        return dt.timedelta(
            hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
        )
    try:
        if isinstance(value, str) and "P" in value:
            match = _DURATION.fullmatch(value.strip())
            if match is None or value.strip()[-1] in "PT":
                raise ValueError
            sign, days, hours, minutes, seconds = match.groups()
            length = dt.timedelta(
                int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0), seconds=float(seconds or 0)
            )
            return -length if sign else length
        return dt.timedelta(seconds=float(value))
    except (ValueError, TypeError, OverflowError):
        raise ConversionError(
            "wrong_type", f"{shorten_value(value)} is not a duration such as PT1H30M"
        ) from None


def _time(value: Any, column: Column) -> dt.time:
    if isinstance(value, dt.timedelta) or (isinstance(value, str) and value.strip().startswith("PT")):
        length = _duration(value, column)
        if not dt.timedelta() <= length < dt.timedelta(1):
            raise ConversionError("out_of_range", f"{shorten_value(value)} is not a time of day")
        return (_EPOCH + length).time()
    return column_values.to_time(value, column)


def _unchanged(value: Any, column: Column) -> Any:
    return value


_CHECKS: Final[Mapping[str, Callable[[Any, Column], Any]]] = {
    "Edm.String": _text, "Edm.Guid": column_values.to_uuid, "Edm.Boolean": column_values.to_boolean,
    "Edm.Binary": column_values.to_bytes, "Edm.Byte": _integer, "Edm.SByte": _integer, "Edm.Int16": _integer,
    "Edm.Int32": _integer, "Edm.Int64": _integer, "Edm.Decimal": _decimal, "Edm.Double": column_values.to_float,
    "Edm.Single": column_values.to_float, "Edm.Date": column_values.to_date,
    "Edm.DateTime": column_values.to_naive_datetime,
    "Edm.DateTimeOffset": column_values.to_utc_datetime, "Edm.Time": _time, "Edm.TimeOfDay": _time,
    "Edm.Duration": _duration,
}  # fmt: skip


def enum_member(value: Any, enumeration: Enumeration) -> str:
    """Return a member's name for its name or value; for flags, several names joined by commas. Raises
    `ConversionError`."""
    if isinstance(value, str) and not value.strip().lstrip("-").isdecimal():
        words = [part.strip() for part in value.split(",")] if enumeration.flags else [value.strip()]
        if all(word in enumeration.members for word in words):
            return ",".join(words)
    else:
        number = column_values.to_integer(value, Column("", "integer", ""))
        for name, item in enumeration.members.items():
            if item == number:
                return name
        names = [name for name, item in enumeration.members.items() if item and item & number == item]
        if enumeration.flags and names and sum({enumeration.members[name] for name in names}) == number:
            return ",".join(names)
    examples = ", ".join(list(enumeration.members)[:10])
    raise ConversionError("wrong_type", f"{shorten_value(value)} is not one of {examples}")


# --- JSON ---------------------------------------------------------------------------------------------------


def format_json(value: Any, edm: str, version: Version, strings: bool = False) -> Any:
    """Format a result of `to_edm_value` as JSON. `strings`: Int64 and Decimal of V4 as IEEE754Compatible requires.

    Raises `StringNumbersRequired`.
    """
    if version == "v2":
        return _v2(value, edm)
    if isinstance(value, Decimal):
        if strings:
            return f"{value:f}"
        if Decimal(repr(float(value))) != value:
            raise StringNumbersRequired
        return orjson.Fragment(f"{value:f}")
    if isinstance(value, int) and not isinstance(value, bool):
        if edm == "Edm.Int64" and strings:
            return str(value)
        if abs(value) > _MAX_EXACT:
            raise StringNumbersRequired
        return value
    if isinstance(value, bytes):
        return base64.urlsafe_b64encode(value).decode()
    return _iso(value)


def _v2(value: Any, edm: str) -> Any:
    if isinstance(value, dt.datetime):
        moment = value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value
        return f"/Date({(moment - _EPOCH) // _MILLISECOND}{'+0000' if edm == 'Edm.DateTimeOffset' else ''})/"
    if isinstance(value, dt.date):
        return _v2(dt.datetime.combine(value, dt.time()), edm)
    if isinstance(value, dt.time):
        return format_duration(_duration(value, Column("", "time", edm)))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return _float(value)
    if edm == "Edm.Int64":
        return str(value)
    return _iso(value)


def _iso(value: Any) -> Any:
    """Format values that are the same in both versions."""
    if isinstance(value, dt.datetime):
        return format_instant(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return format_duration(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return _float(value)
    return value


def _float(value: float) -> str:
    return {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(repr(value), repr(value))


def format_instant(value: dt.datetime) -> str:
    """Return 2026-01-02T03:04:05Z, with a fraction only if it is not zero."""
    text = value.replace(tzinfo=None).isoformat()
    return (text.rstrip("0") if "." in text else text) + ("Z" if value.tzinfo is not None else "")


def format_duration(value: dt.timedelta) -> str:
    """Return PT01H30M00.5S, with two digits each, because some V2 services accept no other format."""
    sign, length = ("-", -value) if value < dt.timedelta() else ("", value)
    minutes, seconds = divmod(length.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{length.microseconds:06d}".rstrip("0") if length.microseconds else ""
    days = f"{length.days}D" if length.days else ""
    return f"{sign}P{days}T{hours:02d}H{minutes:02d}M{seconds:02d}{fraction}S"


# --- Literals in URLs ----------------------------------------------------------------------------------------


def format_literal(value: Any, edm: str, version: Version) -> str:
    """Format a result of `to_edm_value` as a percent-encoded literal of a key predicate."""
    return quote((_v2_literal if version == "v2" else _v4_literal)(value, edm), safe="'-._~:,")


def quote_string(text: str) -> str:
    """Return a string literal with doubled apostrophes."""
    return "'" + text.replace("'", "''") + "'"


def _v2_literal(value: Any, edm: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, uuid.UUID):
        return f"guid'{value}'"
    if isinstance(value, dt.datetime):
        return (
            f"datetimeoffset'{format_instant(value)}'"
            if edm == "Edm.DateTimeOffset"
            else f"datetime'{format_instant(value)}'"
        )
    if isinstance(value, dt.date):
        return f"datetime'{value.isoformat()}T00:00:00'"
    if isinstance(value, dt.time):
        return f"time'{format_duration(_duration(value, Column('', 'time', edm)))}'"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, Decimal):
        return f"{value:f}M"
    if isinstance(value, float):
        return _float(value) + ("f" if edm == "Edm.Single" else "d")
    if isinstance(value, int):
        return f"{value}L" if edm == "Edm.Int64" else str(value)
    return quote_string(str(value))


def _v4_literal(value: Any, edm: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.timedelta):
        return f"duration'{format_duration(value)}'"
    if isinstance(value, bytes):
        return f"binary'{base64.urlsafe_b64encode(value).decode()}'"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, str):
        return quote_string(value) if edm.startswith("Edm.") else f"{edm}{quote_string(value)}"
    formatted = _iso(value)
    return formatted if isinstance(formatted, str) else str(formatted)

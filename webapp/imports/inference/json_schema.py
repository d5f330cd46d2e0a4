"""Fields for what an API takes, by its JSON Schema: formats, enums, patterns, bounds; objects and arrays nested.

What a schema says beats what a name suggests; where it says nothing but "a text", the name decides, as for columns of
tables (``inference``).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from webapp import limits
from webapp.connectors.openapi.metadata import column_of
from webapp.connectors.schema import Column, Entity
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.imports.inference import columns as imports_columns
from webapp.imports.inference import names
from webapp.imports.inference.columns import Found
from webapp.imports.inference.evidence import Field, definition, jsonable

_FORMATS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "email": ("email", {}), "idn-email": ("email", {}), "uuid": ("uuid", {}), "uri": ("url", {}),
    "url": ("url", {}), "uri-reference": ("url", {}), "hostname": ("domain_name", {}), "ipv4": ("ipv4", {}),
    "ipv6": ("ipv6", {}), "date": ("date", {"format": "YYYY-MM-DD"}), "time": ("time", {}),
    "date-time": ("datetime", {"format": "YYYY-MM-DDTHH:mm:ssZ"}), "password": ("password", {}),
    "phone": ("phone_number", {}), "byte": ("regexp", {"string": "[A-Za-z0-9]{8}"}),
}  # fmt: skip
_EXAMPLES: Final[Mapping[str, Any]] = {"integer": 1, "number": 1.5, "boolean": True}
_WIDEST: Final = {"int32": 2**31 - 1, "int64": 2**53 - 1}  # what every reader of JSON takes exactly


def columns(entity: Entity, vocabulary: Vocabulary, rows: int) -> list[Found]:
    """A field for each column of an operation."""
    named = {one.column: one for one in imports_columns.columns(entity, None, vocabulary, rows)}
    found = []
    for column in entity.fields:
        if column.generated == "computed":
            found.append(Found(column.name, None, "green", "The target makes it; it is not sent."))
            continue
        made = _of_schema(column, vocabulary, rows, 1)
        one = made if made is not None and _fits(made.field, vocabulary) else named.get(column.name)
        found.append(one or Found(column.name, None, "yellow", "Nothing is known of it; it is not sent."))
    return found


def _fits(field: Field | None, vocabulary: Vocabulary) -> bool:
    if field is None:
        return True
    try:
        compile_plan(parse([field]), vocabulary)
    except SpecError:
        return False
    return True


def _of_schema(column: Column, vocabulary: Vocabulary, rows: int, depth: int) -> Found | None:
    """What the schema says; None where it leaves it to the name."""
    schema, name = column.schema or {}, column.name

    def green(kind: str, options: Mapping[str, Any], reason: str) -> Found:
        return Found(name, definition(name, kind, options), "green", reason)

    if "const" in schema:
        return green("constant", {"value": schema["const"]}, "The only value that is taken.")
    choices = [one for one in schema.get("enum") or () if isinstance(one, str | int | float | bool)]
    if choices:
        return green("enum", {"values": choices}, "One of the values that are taken.")
    kind = schema.get("type")
    if kind in ("object", "array"):
        return _nested(column, schema, vocabulary, rows, depth)
    if kind in ("integer", "number"):
        return _number(column, schema)
    if kind == "boolean":
        return green("boolean", {}, "True or false.")
    told = schema.get("format")
    if kind == "string" and isinstance(told, str) and told in _FORMATS:
        made, options = _FORMATS[told]
        return green(made, options, f"Texts of the format {told}.")
    pattern = schema.get("pattern")
    if kind == "string" and isinstance(pattern, str):
        plain = pattern.removeprefix("^").removesuffix("$")
        return green("regexp", {"string": plain}, f"Texts of the pattern {pattern[:80]}.")
    return None


def _number(column: Column, schema: Mapping[str, Any]) -> Found | None:
    bounds = _bounds(schema)
    if bounds is None:
        return None
    low, high = bounds
    decimals = 0 if schema["type"] == "integer" else _places(schema.get("multipleOf"))
    options: dict[str, Any] = {"min": jsonable(low), "max": jsonable(high)}
    if decimals:
        options["decimals"] = decimals
    made = definition(column.name, "number", options)
    return Found(column.name, made, "green", f"Numbers from {low:f} to {high:f}.")


def _bounds(schema: Mapping[str, Any]) -> tuple[Decimal, Decimal] | None:
    """Where numbers lie; None where the schema says neither end."""
    step = Decimal(1) if schema["type"] == "integer" else Decimal("0.01")
    low, high = schema.get("minimum"), schema.get("maximum")
    over, under = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    least = _decimal(over, step) if _is_number(over) else _decimal(low, step if over is True else Decimal(0))
    most = (
        _decimal(under, -step)
        if _is_number(under)
        else _decimal(high, -step if under is True else Decimal(0))
    )
    if least is None and most is None:
        return None
    widest = Decimal(_WIDEST.get(schema.get("format", ""), _WIDEST["int32"]))
    least = least if least is not None else min(Decimal(0), most or Decimal(0))
    most = most if most is not None else max(least + 1_000, min(widest, least * 10))
    return (least, most) if least <= most else None


def _places(step: Any) -> int:
    """Digits after the point of numbers that are multiples of a step."""
    if not _is_number(step) or step <= 0:
        return 2
    exponent = Decimal(str(step)).normalize().as_tuple().exponent
    return min(max(0, -int(exponent)), limits.MAX_DECIMALS)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _decimal(value: Any, more: Decimal) -> Decimal | None:
    return Decimal(str(value)) + more if _is_number(value) else None


def _nested(
    column: Column, schema: Mapping[str, Any], vocabulary: Vocabulary, rows: int, depth: int
) -> Found | None:
    name, array = column.name, schema.get("type") == "array"
    inner = (schema.get("items") or {}) if array else schema
    properties = inner.get("properties") or {}
    if not properties and array:
        return _single_values(column, schema, inner, vocabulary, rows, depth)
    if not properties or depth >= limits.MAX_NESTING:
        return Found(name, None, "yellow", "An object of which nothing is known; it is not sent.")
    required = set(inner.get("required") or ())
    members = Entity(
        name, (name,), tuple(column_of(one, sub, one in required) for one, sub in properties.items())
    )
    named = {one.column: one for one in imports_columns.columns(members, None, vocabulary, rows)}
    fields: list[Field] = []
    for member in members.fields:
        if member.generated == "computed":
            continue
        made = _of_schema(member, vocabulary, rows, depth + 1)
        one = made if made is not None and _fits(made.field, vocabulary) else named.get(member.name)
        if one is not None and one.field is not None:
            fields.append(one.field)
    if not fields:
        return Found(name, None, "yellow", "An object of which nothing is known; it is not sent.")
    options: dict[str, Any] = {"fields": fields}
    if array:
        options |= {"array": True, "count": _count(schema)}
    reason = "Objects with fields of their own." if array else "An object with fields of its own."
    return Found(name, definition(name, "nested", options), "green", reason)


def _count(schema: Mapping[str, Any]) -> dict[str, int]:
    least = schema.get("minItems")
    low = min(least, limits.MAX_ARRAY_PRODUCT) if isinstance(least, int) and least >= 0 else 1
    most = schema.get("maxItems")
    high = most if isinstance(most, int) and low <= most < low + 3 else low + 2
    return {"min": low, "max": min(high, limits.MAX_ARRAY_PRODUCT)}


def _single_values(
    column: Column,
    schema: Mapping[str, Any],
    inner: Mapping[str, Any],
    vocabulary: Vocabulary,
    rows: int,
    depth: int,
) -> Found:
    """Arrays of texts or numbers: each value as a column of the array's name, in the singular, would be."""
    called = names.singular(column.name.casefold()) or column.name
    member = column_of(called, inner, True)
    one = _of_schema(member, vocabulary, rows, depth + 1) if depth < limits.MAX_NESTING else None
    if one is None or not _fits(one.field, vocabulary):
        (one,) = imports_columns.columns(Entity("rows", ("rows",), (member,)), None, vocabulary, rows)
    if inner and one.field is not None:
        element = {"type": one.field["type"], "options": one.field["options"]}
        made = definition(column.name, "array", {"of": element, "count": _count(schema)})
        if _fits(made, vocabulary):
            return Found(column.name, made, "green", f"An array of values, each made as {element['type']}.")
    made = definition(column.name, "constant", {"value": [_EXAMPLES.get(str(inner.get("type")), "sample")]})
    return Found(
        column.name,
        made,
        "yellow",
        "An array of which nothing is known: the same one in every row. Change it.",
    )

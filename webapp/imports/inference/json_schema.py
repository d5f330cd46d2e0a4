"""Fields for what an API takes, by the shapes of its JSON Schemas (see `connectors.json_schema.shapes`): formats,
enumerations, expressions, bounds; objects and arrays nested.

What a schema says has priority over what a name suggests; where it says nothing but "a text", the name decides, as for
columns of tables (`inference.columns`). Each plain field is generated and its values are compared with the shape before
it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from webapp import limits
from webapp.connectors.json_schema import shapes
from webapp.connectors.json_schema.validation import Document
from webapp.connectors.openapi.document import create_column, omission_reason
from webapp.connectors.schema import Column, Entity
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.imports.inference import columns, names
from webapp.imports.inference.columns import ColumnResult
from webapp.imports.inference.evidence import Field, definition, to_json_number

Shape = Mapping[str, Any]
_FORMATS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "email": ("email", {}), "idn-email": ("email", {}), "uuid": ("uuid", {}), "uri": ("url", {}), "iri": ("url", {}),
    "url": ("url", {}), "uri-reference": ("url", {}), "iri-reference": ("url", {}), "uri-template": ("url", {}),
    "hostname": ("domain_name", {}), "idn-hostname": ("domain_name", {}), "ipv4": ("ipv4", {}), "ipv6": ("ipv6", {}),
    "date": ("date", {"format": "YYYY-MM-DD"}), "time": ("time", {"format": "HH:mm:ss[Z]"}),
    "date-time": ("datetime", {"format": "YYYY-MM-DDTHH:mm:ss[Z]"}),
    "duration": ("regexp", {"string": "P[1-9]D|PT[1-9]H|PT[1-5][0-9]M"}), "password": ("password", {}),
    "phone": ("phone_number", {}), "byte": ("regexp", {"string": "[A-Za-z0-9]{8}"}),
    "json-pointer": ("regexp", {"string": "/[a-z]{3,8}"}), "relative-json-pointer": ("regexp", {"string": "[0-9]"}),
    "regex": ("enum", {"values": ["^[a-z]+$", "^[0-9]{3}$", "[A-Z]{2}"]}),
}  # fmt: skip
_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_CHECKED_ROWS: Final = 40  # chosen: values that are compared with the shape


def infer_columns(entity: Entity, vocabulary: Vocabulary, rows: int) -> list[ColumnResult]:
    """A field for each column of an operation."""
    return _FieldBuilder(vocabulary, rows).build_fields(entity, 1)


class _FieldBuilder:
    """Create the fields of one template."""

    def __init__(self, vocabulary: Vocabulary, rows: int) -> None:
        self._vocabulary, self._rows = vocabulary, rows

    def build_fields(self, entity: Entity, depth: int) -> list[ColumnResult]:
        """Return a field for each column of an object."""
        vague = replace(entity, fields=tuple(field for field in entity.fields if _is_untyped(field)))
        named = {
            item.column: item for item in columns.infer_columns(vague, None, self._vocabulary, self._rows)
        }
        return [self._infer_column(column, named.get(column.name), depth) for column in entity.fields]

    def _infer_column(self, column: Column, named: ColumnResult | None, depth: int) -> ColumnResult:
        name, shape = column.name, column.schema or {}
        if column.generated == "computed":
            return ColumnResult(name, None, "green", "The target sets it; it is not sent.")
        if reason := omission_reason(column):
            return ColumnResult(
                name,
                None,
                "red" if shapes.UNREADABLE_KEYWORD in shape else "yellow",
                f"Not generated: {reason}",
            )
        if shapes.UNREADABLE_KEYWORD in shape:
            text_reason = f"Imported as text: {shape[shapes.UNREADABLE_KEYWORD]}"
            return ColumnResult(name, definition(name, "words", {"count": 2}), "red", text_reason)
        for candidate in self._candidates(column, shape, named, depth):
            if candidate.field is not None and self._is_valid(candidate.field, shape):
                return candidate
        value = shapes.without_locked(shapes.sample(shape, 0))
        return ColumnResult(
            name,
            _fixed_value(name, value),
            "yellow",
            "A fixed value: the schema is too restrictive to generate others.",
        )

    def _candidates(
        self, column: Column, shape: Shape, named: ColumnResult | None, depth: int
    ) -> Iterator[ColumnResult]:
        """Yield what a column may become, the best first."""
        name, kind = column.name, shape.get("type")
        if "enum" in shape:
            values = shape["enum"]
            choice = definition(name, "enum", {"values": values})
            if len(values) == 1:
                yield ColumnResult(name, _fixed_value(name, values[0]), "green", "The only accepted value.")
            elif isinstance(values[0], dict | list):
                reason = "One of several valid examples: fields cannot express the whole schema."
                yield ColumnResult(name, choice, "yellow", reason)
            else:
                yield ColumnResult(name, choice, "green", "One of the accepted values.")
        elif kind == "object":
            yield self._infer_object(column, shape, depth)
        elif kind == "array":
            yield self._infer_array(column, shape, depth)
        elif kind in ("integer", "number"):
            if {"minimum", "maximum", "multipleOf"} & shape.keys():
                yield _number_field(name, shape)
            yield from self._field_by_name(named, shape)
            yield _number_field(name, shape)
        elif kind == "boolean":
            yield from self._field_by_name(named, shape)
            yield ColumnResult(name, definition(name, "boolean"), "green", "True or false.")
        elif kind == "null":
            yield ColumnResult(name, definition(name, "null"), "green", "Always null.")
        else:
            yield from self._text_candidates(name, shape, named)

    def _field_by_name(self, named: ColumnResult | None, shape: Shape) -> Iterator[ColumnResult]:
        if named is not None and named.field is not None:
            field = {
                key: value
                for key, value in named.field.items()
                if key != "percent_blank" or shape.get("nullable")
            }
            yield replace(named, field=field)

    def _text_candidates(self, name: str, shape: Shape, named: ColumnResult | None) -> Iterator[ColumnResult]:
        format_name, min_length, max_length = (
            shape.get("format"),
            shape.get("minLength", 0),
            shape.get("maxLength"),
        )
        if "pattern" in shape:
            field = definition(name, "regexp", {"string": shape["pattern"]})
            yield ColumnResult(name, field, "green", f"Texts that match {shape['pattern'][:80]}.")
        if shape.get("contentEncoding") == "base64":
            format_name = format_name or "byte"
        if isinstance(format_name, str) and format_name in _FORMATS:
            kind, options = _FORMATS[format_name]
            yield ColumnResult(
                name, definition(name, kind, options), "green", f"Texts in the format {format_name}."
            )
        yield from self._field_by_name(named, shape)
        high = min(max_length if max_length is not None else max(min_length, 16), limits.MAX_PATTERN_PLACES)
        low = min(max(min_length, 1 if high else 0, min(high, 8)), high)
        yield ColumnResult(
            name, definition(name, "random_string", {"min": low, "max": high}), "yellow",
            f"Random letters and digits, from {low} to {high} characters.", True,
        )  # fmt: skip
        examples = list(dict.fromkeys(shapes.sample(shape, k) for k in range(20)))
        yield ColumnResult(
            name, definition(name, "enum", {"values": examples}), "yellow", "One of several valid texts."
        )

    # --- Objects and arrays -----------------------------------------------------------------------------------

    def _infer_object(self, column: Column, shape: Shape, depth: int) -> ColumnResult:
        name, properties = column.name, shape.get("properties") or {}
        required = set(shape.get("required") or ())
        members = Entity(
            name,
            (name,),
            tuple(create_column(key, inner, key in required) for key, inner in properties.items()),
            "operation",
        )
        if depth < limits.MAX_NESTING:
            fields = [
                result.field for result in self.build_fields(members, depth + 1) if result.field is not None
            ]
            if fields:
                field = definition(name, "nested", {"fields": fields})
                return ColumnResult(name, field, "green", "An object with fields of its own.")
        plain = shapes.without_locked(shapes.sample({**shape, "readOnly": False}, 0))
        reason = (
            "A fixed object: it is nested too deeply."
            if plain
            else "An empty object: the schema defines no properties."
        )
        return ColumnResult(name, _fixed_value(name, plain), "yellow", reason)

    def _infer_array(self, column: Column, shape: Shape, depth: int) -> ColumnResult:
        name, inner = column.name, shape["items"]
        low = min(shape["minItems"], limits.MAX_ARRAY_PRODUCT)
        count = {"min": low, "max": min(shape["maxItems"], limits.MAX_ARRAY_PRODUCT)}
        singular = names.singular(name.casefold()) or name
        member = create_column(singular, inner, True)
        (result,) = self.build_fields(
            Entity("rows", ("rows",), (member,), "operation"),
            depth if inner.get("type") == "object" else depth + 1,
        )
        element = result.field or definition(singular, "words", {"count": 2})
        if element["type"] == "nested" and not element["options"].get("array"):
            options = {**element["options"], "array": True, "count": count}
            return ColumnResult(
                name, definition(name, "nested", options), result.state, "Objects with fields of their own."
            )
        item = {
            key: value
            for key, value in element.items()
            if key not in ("name", "percent_blank", "unique", "group")
        }
        field = definition(name, "array", {"of": item, "count": count})
        if depth < limits.MAX_NESTING and self._can_compile(field):
            reason = f"An array of values of type {element['type']}."
            return ColumnResult(name, field, result.state, reason, result.is_guessed)
        value = shapes.without_locked(shapes.sample(shape, 0))
        return ColumnResult(name, _fixed_value(name, value), "yellow", "The same array in every row.")

    # --- Verification -----------------------------------------------------------------------------------------

    def _can_compile(self, field: Field) -> bool:
        try:
            compile_plan(parse([field]), self._vocabulary)
        except SpecError:
            return False
        return True

    def _is_valid(self, field: Field, shape: Shape) -> bool:
        """Return whether a field can be generated and its values are valid. Expressions were verified before."""
        try:
            plan = compile_plan(
                parse([{key: item for key, item in field.items() if key != "group"}]), self._vocabulary
            )
        except SpecError:
            return bool(field.get("group") and field["type"] != "formula")
        is_fixed_choice = field["type"] == "enum" and shape.get("type") in ("object", "array")
        if field["type"] in ("nested", "array", "constant") or is_fixed_choice or "pattern" in shape:
            return True
        bound = BoundPlan(plan, GenerationContext("schema", _NOW))
        if bound.row_faults(_CHECKED_ROWS):
            return bool(field["type"] == "enum")
        (values,) = bound.block(0, _CHECKED_ROWS)
        plain = {key: item for key, item in shape.items() if key != "pattern"}
        validator = Document({})  # a new one each time: it counts what it visits
        return all(validator.is_valid(_as_json(value), plain) for value in values.to_pylist())


def constant_field(column: Column, reason: str) -> ColumnResult | None:
    """Return a field of one valid value for a column of a schema; None if its shape is not known."""
    shape = column.schema or {}
    if "type" not in shape or shapes.UNREADABLE_KEYWORD in shape:
        return None
    value = shapes.without_locked(shapes.sample({**shape, "readOnly": False}, 0))
    return ColumnResult(column.name, _fixed_value(column.name, value), "yellow", f"A fixed value: {reason}")


def _fixed_value(name: str, value: Any) -> Field:
    """Return a field of one value. A list keeps an object or an array as it is."""
    nested = isinstance(value, dict | list)
    return (
        definition(name, "enum", {"values": [value]})
        if nested
        else definition(name, "constant", {"value": value})
    )


def _is_untyped(column: Column) -> bool:
    """Return whether the schema leaves the type open, so that the name of the column is considered."""
    shape = column.schema or {}
    kind = shape.get("type", "string")
    plain = not {"enum", "pattern", "minimum", "maximum", "multipleOf"} & shape.keys()
    return (
        kind in ("string", "integer", "number", "boolean") and plain and shape.get("format") not in _FORMATS
    )


def _as_json(value: Any) -> Any:
    """Return a generated value as JSON has it."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def _number_field(name: str, shape: Shape) -> ColumnResult:
    """Return numbers between the bounds, or near the only one."""
    step = Decimal(str(shape["multipleOf"])) if "multipleOf" in shape else None
    low, high = (None if key not in shape else Decimal(str(shape[key])) for key in ("minimum", "maximum"))
    unit = step or Decimal(1)
    if low is None:
        low = Decimal(0) if high is None or high >= 0 else high - 1_000 * unit
    if high is None:
        high = max(low + 1_000 * unit, min(Decimal(2**31 - 1), low * 10))
    is_integer = shape["type"] == "integer" or (step is not None and step == step.to_integral_value())
    options: dict[str, Any] = {}
    decimals = 0
    if step is not None:
        low = (low / step).to_integral_value("ROUND_CEILING") * step
        high = (high / step).to_integral_value("ROUND_FLOOR") * step
        options["step"] = to_json_number(step)
        decimals = _decimal_places(step)
    elif not is_integer:
        decimals = max(2 if high - low >= Decimal("0.1") else 6, _decimal_places(low), _decimal_places(high))
    options = {"min": to_json_number(low), "max": to_json_number(high), **options}
    if decimals:
        options["decimals"] = min(decimals, limits.MAX_DECIMALS)
    reason = f"Numbers from {low:f} to {high:f}" + (f", multiples of {step:f}." if step is not None else ".")
    return ColumnResult(name, definition(name, "number", options), "green", reason)


def _decimal_places(value: Decimal) -> int:
    """Return the number of digits after the decimal point."""
    exponent = value.normalize().as_tuple().exponent
    return max(0, -int(exponent))

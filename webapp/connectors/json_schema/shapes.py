"""Convert a JSON Schema to a shape: a plain schema whose every value is valid by the schema.

A shape has no references and no alternatives: `$ref` and `allOf` are merged, of `oneOf`, `anyOf` and `if` one branch is
chosen, expressions are such that texts can be generated from them, and an object has all its properties, with only
those that may occur together. What cannot be solved by reading is solved by trying: sample values of a shape are
validated against the schema as it is written, and properties that make them invalid are left out, alternatives that
do are not chosen, and as a last resort a list of valid values stands for the schema. So `dependentRequired`,
`not`, `contains`, `unevaluatedProperties` and their like need no rules of their own.

Keywords of shapes: `type`, `enum`, `properties` (with `readOnly` ones, which are not sent, and `OMISSION_KEYWORD`
ones), `required`, `items`, `minItems`, `maxItems`, `minLength`, `maxLength`, `pattern` (of whole texts), `format`,
`minimum`, `maximum`, `multipleOf`, `description`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any, Final

from webapp import limits
from webapp.connectors.json_schema import validation
from webapp.connectors.json_schema.validation import (
    LOCKED,
    BudgetExceededError,
    Document,
    UnresolvedReferenceError,
    as_list,
    as_mapping,
    canonical,
    deduplicate,
    has_format,
    is_number,
    is_type,
    string_items,
)

Shape = dict[str, Any]
SchemaPart = tuple[Any, frozenset[str]]
"""A schema, and the references that led to it: one that occurs again is recursive."""
OMISSION_KEYWORD: Final = "x-left-out"
"""Keyword of properties that are not generated: the reason."""
UNREADABLE_KEYWORD: Final = "x-lost"
"""Keyword of properties whose schema cannot be read: the reason."""
_TOO_LARGE: Final = "Its schema is too large when its references are followed."
_SAMPLES: Final = 8  # chosen: values by which a shape is verified
_MORE_SAMPLES: Final = 24  # chosen: values among which valid ones are searched
_BRANCHES: Final = (40, 16, 8)  # chosen: combinations of alternatives that are tried at each depth
_OPTIONAL: Final = (
    limits.MAX_FIELDS,
    40,
    20,
)  # chosen: optional properties at each depth; deeper only plain values
_DEEPER: Final = 8
_WEIGHTS: Final = (
    1_000,
    300,
    100,
    30,
)  # chosen: schemas within an object at each depth, beyond required ones
_MIN_VISITS: Final = 2_000  # chosen: those of one property, however many there are
_SHARE: Final = 4
_MIN_VISITS_OF_SCHEMA: Final = 500  # chosen: those of one schema, however many came before it
_CHOICES: Final = 500  # chosen: values of an enumeration that are kept
_MAX_DEPTH: Final = 40  # chosen: levels after which a schema that requires ever more levels is impossible
_PLAIN_DEPTH: Final = 3
_MAX_BY_FORMAT: Final = {"int32": 2**31 - 1, "int64": 2**53 - 1}  # what every reader of JSON takes exactly
_KINDS: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
_HINTS: Final = (
    ("object", ("properties", "additionalProperties", "patternProperties", "required", "propertyNames",
                "minProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains")),
    ("string", ("pattern", "minLength", "maxLength", "format")),
    ("number", ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum")),
)  # fmt: skip
_COUNTS: Final = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_DESCRIPTIVE: Final = ("title", "description", "format", "contentEncoding")
_KEPT_KEYWORDS: Final = ("description", "title", "format", "readOnly")


@dataclass
class FlatSchema:
    """The keywords of a schema, with references and `allOf` merged."""

    kinds: frozenset[str] | None = None
    enum: list[Any] | None = None
    keywords: dict[str, Any] = field(default_factory=dict)
    """Bounds, format, description and the like."""
    patterns: tuple[str, ...] = ()
    properties: dict[str, tuple[SchemaPart, ...]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    additional_properties: tuple[tuple[frozenset[str], tuple[str, ...], SchemaPart], ...] = ()
    """`additionalProperties` with the names and expressions that they do not apply to."""
    pattern_properties: tuple[tuple[str, SchemaPart], ...] = ()
    """`patternProperties`."""
    property_names: tuple[SchemaPart, ...] = ()
    """`propertyNames`."""
    items: tuple[SchemaPart, ...] = ()
    prefix_items: tuple[SchemaPart, ...] = ()
    """`prefixItems`."""
    choices: tuple[tuple[SchemaPart, ...], ...] = ()
    """Alternatives that are still to be chosen from."""
    is_locked: bool = False
    unreadable_reason: str = ""


class Shaper:
    """Converts the schemas of one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._cache: dict[tuple[str, int, bool, bool], Shape | None] = {}
        self._required_only = False
        """Whether optional properties are left out."""
        self.exhausted = False
        """Whether a schema needed more visits than it was given, even without its optional properties."""

    def shape(self, schema: Any, visits: int = limits.SCHEMA_VISITS) -> Shape | None:
        """Return the shape of a schema; None if no value is found. If more than `visits` schemas are visited, only
        required properties are generated. If no value satisfies exactly one schema of each `oneOf`, several may be
        satisfied. One schema takes a quarter of what the document has left at most, so that those after it have a
        share; each can visit a few. `document.left` is 0 when the document as a whole has too many."""
        for required_only, lenient in ((False, False), (True, False), (False, True)):
            self._required_only, before = required_only, self.document.visits_left
            self.document.lenient = lenient
            self.document.visits_left = budget = max(min(before // _SHARE, visits), _MIN_VISITS_OF_SCHEMA)
            try:
                result = self._solve(((schema, frozenset()),), 0)
            except (BudgetExceededError, RecursionError):
                continue
            finally:
                self.document.visits_left = max(0, before - budget + max(0, self.document.visits_left))
                self.document.lenient = False
            if result is not None or lenient:
                return result
        self.exhausted = True
        return None

    # --- Merging ----------------------------------------------------------------------------------------------

    def _merge(self, parts: Iterable[SchemaPart], depth: int = 0) -> FlatSchema | None:
        """Return the merged keywords of schemas; None if they exclude each other."""
        merged: FlatSchema | None = FlatSchema()
        for part in parts:
            merged = self._merge_part(part, merged, depth) if merged is not None else None
        return merged

    def _merge_part(self, part: SchemaPart, into: FlatSchema, depth: int) -> FlatSchema | None:
        schema, references = part
        self.document.count_visit()
        if schema is False or depth > _MAX_DEPTH:
            return None
        if not isinstance(schema, dict):
            return into
        merged: FlatSchema | None = into
        reference = schema.get("$ref", schema.get("$dynamicRef"))
        if isinstance(reference, str):
            if reference in references:
                return None
            try:
                target = self.document.target(reference), references | {reference}
            except UnresolvedReferenceError as error:
                merged = _intersection(into, FlatSchema(unreadable_reason=str(error)))
            else:
                merged = self._merge_part(target, into, depth + 1)
            if merged is None:
                return None
            if self.document.legacy and not merged.unreadable_reason:
                merged.is_locked = merged.is_locked or schema.get("readOnly") is True
                return merged
        merged = _intersection(merged, _keywords_of(schema, references)) if merged is not None else None
        for item in as_list(schema.get("allOf")):
            merged = self._merge_part((item, references), merged, depth + 1) if merged is not None else None
        if merged is None:
            return None
        for key in ("oneOf", "anyOf"):
            branches = as_list(schema.get(key))
            if branches:
                merged.choices += (tuple((branch, references) for branch in branches),)
        if isinstance(schema.get("if"), dict):
            then = {"allOf": [schema["if"], schema.get("then", True)]}
            merged.choices += (
                ((True, references), (then, references), (schema.get("else", True), references)),
            )
        return merged

    def _attempts(self, flat: FlatSchema, depth: int = 0) -> Iterator[FlatSchema]:
        """Yield the keywords for each combination of alternatives, the likely ones first."""
        if not flat.choices or depth > _MAX_DEPTH:
            yield flat
            return
        first, *rest = flat.choices
        remaining = _copy(flat, choices=tuple(rest))
        for branch in sorted(first, key=self._rank):
            merged = self._merge_part(branch, _copy(remaining), depth)
            if merged is not None:
                yield from self._attempts(merged, depth + 1)

    def _rank(self, part: SchemaPart) -> int:
        schema = part[0]
        for _ in range(5):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                break
            try:
                schema = self.document.target(schema["$ref"])
            except UnresolvedReferenceError:
                return 3
        if not isinstance(schema, dict):
            return 0
        empty = schema.get("type") == "null" or schema.get("const", 0) is None or schema.get("enum") == [None]
        return 2 if empty else int(schema.get("deprecated") is True)

    # --- Solving ----------------------------------------------------------------------------------------------

    def _solve(self, parts: tuple[SchemaPart, ...], depth: int) -> Shape | None:
        raw = parts[0][0] if len(parts) == 1 else {"allOf": [item for item, _ in parts]}
        reference = raw.get("$ref") if isinstance(raw, dict) and len(raw) == 1 else None
        is_reference = isinstance(reference, str) and reference not in parts[0][1]
        key = (str(reference), depth, self._required_only, self.document.lenient)
        if is_reference and key in self._cache:
            return self._cache[key]
        result = self._first_valid(parts, raw, depth)
        if is_reference:
            self._cache[key] = result
        return result

    def _first_valid(self, parts: tuple[SchemaPart, ...], raw: Any, depth: int) -> Shape | None:
        if depth > _MAX_DEPTH:
            return None
        flat = self._merge(parts)
        if flat is None:
            return None
        fallback: Shape | None = None
        branches = _BRANCHES[min(depth, len(_BRANCHES) - 1)]
        for attempt in islice(self._attempts(flat), branches):
            shape = self._shape_of(attempt, raw, depth)
            if shape is None:
                continue
            if attempt.is_locked:
                shape["readOnly"] = True
            if OMISSION_KEYWORD not in shape and self.document.is_valid(None, raw):
                shape["nullable"] = True
            if OMISSION_KEYWORD in shape or self._is_valid(shape, raw):
                return shape
            pinned = self._with_fixed_values(shape, raw)
            if pinned is not None:
                return pinned
            if fallback is None:
                values = [
                    value
                    for k in range(_MORE_SAMPLES)
                    if self.document.is_valid(value := sample(shape, k), raw)
                ]
                usable = [
                    item
                    for item in deduplicate([without_locked(value) for value in values])
                    if item is not None
                ]
                if usable:
                    fallback = {
                        **{key: shape[key] for key in _KEPT_KEYWORDS if key in shape},
                        "type": shape.get("type", ""),
                        "enum": usable,
                    }
        return fallback

    def _is_valid(self, shape: Shape, raw: Any) -> bool:
        return all(self.document.is_valid(sample(shape, k), raw) for k in range(_SAMPLES))

    def _with_fixed_values(self, shape: Shape, raw: Any) -> Shape | None:
        """Return an object with fixed values of its enumerations, where only some of them fit together."""
        properties = as_mapping(shape.get("properties"))
        if not properties:
            return None
        for k in range(_MORE_SAMPLES):
            value = sample(shape, k)
            if self.document.is_valid(value, raw):
                fixed = {
                    name: {**item, "enum": [value[name]]}
                    if ("enum" in item or item.get("type") == "boolean")
                    and value.get(name, LOCKED) is not LOCKED
                    else item
                    for name, item in properties.items()
                }
                result = {**shape, "properties": fixed}
                if self._is_valid(result, raw):
                    return result
        return None

    def _shape_of(self, flat: FlatSchema, raw: Any, depth: int) -> Shape | None:
        base = {key: flat.keywords[key] for key in _DESCRIPTIVE if isinstance(flat.keywords.get(key), str)}
        if flat.unreadable_reason and flat.kinds is None and flat.enum is None and not flat.properties:
            return {
                **base,
                OMISSION_KEYWORD: flat.unreadable_reason,
                UNREADABLE_KEYWORD: flat.unreadable_reason,
            }
        if flat.enum is not None:
            fitting = [
                item
                for item in deduplicate(flat.enum[:_CHOICES])
                if flat.kinds is None or any(is_type(item, kind) for kind in flat.kinds) or item is None
            ]
            valid = [item for item in fitting if flat.choices or self.document.is_valid(item, raw)]
            values = [item for item in valid if item is not None]
            if not values:
                return {**base, "type": "null"} if valid else None
            common = Counter(map(_type_name, values)).most_common(1)[0][0]
            return {
                **base,
                "type": common,
                "enum": [value for value in values if _type_name(value) == common],
            }
        kind = _kind_of(flat)
        match kind:
            case "object":
                return self._object(flat, raw, depth, base)
            case "array":
                return self._array(flat, raw, depth, base)
            case "string":
                return _text(flat, base)
            case "number" | "integer":
                return _number(flat, kind, base)
            case "boolean" | "null":
                return {**base, "type": kind}
        return base

    # --- Objects ----------------------------------------------------------------------------------------------

    def _object(self, flat: FlatSchema, raw: Any, depth: int, base: Shape) -> Shape | None:
        shapes: dict[str, Shape] = {}
        left_out: dict[str, Shape] = {}
        for name in dict.fromkeys(flat.required):
            parts = self._parts(flat, name)
            shape = None if parts is None else self._solve(parts, depth + 1)
            if shape is None:
                return None
            shapes[name] = (
                {"type": "string", UNREADABLE_KEYWORD: shape[OMISSION_KEYWORD]}
                if OMISSION_KEYWORD in shape
                else shape
            )
        optional = [name for name in flat.properties if name not in shapes]
        if self._required_only or depth > _PLAIN_DEPTH + 2:
            optional = []
        candidates: list[str] = []
        limit = _OPTIONAL[depth] if depth < len(_OPTIONAL) else _DEEPER
        reserve = self.document.visits_left // 2
        room = _WEIGHTS[min(depth, len(_WEIGHTS) - 1)] - sum(
            _weight(shape, _WEIGHTS[0]) for shape in shapes.values()
        )
        for index, name in enumerate(optional):
            if len(candidates) >= limit:
                left_out[name] = {OMISSION_KEYWORD: "The object has too many properties."}
                continue
            parts = self._parts(flat, name)
            if parts is not None and depth >= _PLAIN_DEPTH and self._is_nested(parts):
                continue
            share = max(0, self.document.visits_left - reserve) // (len(optional) - index)
            if depth == 0 and self.document.visits_left < reserve:
                left_out[name] = {
                    OMISSION_KEYWORD: "The schema is too large, so only its first properties are generated."
                }
                continue
            shape = None if parts is None else self._solve_within(parts, depth + 1, max(share, _MIN_VISITS))
            if shape is None:
                left_out[name] = {
                    OMISSION_KEYWORD: "No value ends the recursion of its schema or satisfies all of its keywords."
                }
            elif OMISSION_KEYWORD in shape:
                left_out[name] = shape
            elif (weight := _weight(shape, room + 1)) <= room or shape.get("readOnly"):
                room -= weight
                candidates.append(name)
                shapes[name] = shape
            else:
                left_out[name] = {OMISSION_KEYWORD: "Including it would make the object too large."}
        required = [name for name in shapes if name not in candidates]
        accepted = self._compatible(shapes, required, candidates, raw) if candidates else required
        if not any(not shapes[name].get("readOnly") for name in accepted):
            accepted = self._map_names(flat, shapes, accepted, depth) or accepted
        order = [name for name in flat.properties if name in accepted] + [
            shape for shape in accepted if shape not in flat.properties
        ]
        for name in candidates:
            if name not in accepted:
                left_out[name] = {OMISSION_KEYWORD: "It is not accepted together with the other properties."}
        result: Shape = {**base, "type": "object", "properties": {name: shapes[name] for name in order}}
        if depth == 0:
            result["properties"] |= {
                name: shape for name, shape in left_out.items() if name not in result["properties"]
            }
        result["required"] = [shape for shape in dict.fromkeys(flat.required) if shape in shapes]
        return result

    def _solve_within(self, parts: tuple[SchemaPart, ...], depth: int, visits: int) -> Shape | None:
        """Return the shape of an optional property, if no more than so many schemas are visited for it."""
        if depth > 1:
            return self._solve(parts, depth)
        before = self.document.visits_left
        self.document.visits_left = budget = min(before, visits)
        try:
            return self._solve(parts, depth)
        except BudgetExceededError:
            return {OMISSION_KEYWORD: _TOO_LARGE, UNREADABLE_KEYWORD: _TOO_LARGE}
        finally:
            self.document.visits_left = before - budget + max(0, self.document.visits_left)

    def _is_nested(self, parts: tuple[SchemaPart, ...]) -> bool:
        flat = self._merge(parts)
        return (
            flat is not None
            and flat.enum is None
            and not flat.is_locked
            and _kind_of(flat) in ("object", "array", "")
        )

    def _parts(self, flat: FlatSchema, name: str) -> tuple[SchemaPart, ...] | None:
        """Return the schemas of a property; None if it is not accepted."""
        parts = flat.properties.get(name, ())
        parts += tuple(part for pattern, part in flat.pattern_properties if validation.matches(pattern, name))
        for known, named, part in flat.additional_properties:
            if name not in known and not any(validation.matches(item, name) for item in named):
                if part[0] is False:
                    return None
                parts += (part,)
        return parts or ((True, frozenset()),)

    def _compatible(
        self, shapes: Mapping[str, Shape], required: list[str], candidates: list[str], raw: Any
    ) -> list[str]:
        """Return the properties that are valid together: those that are needed, and as many others as possible."""

        def fits(names: Sequence[str]) -> bool:
            object_shape = {"type": "object", "properties": {name: shapes[name] for name in names}}
            return any(self.document.is_valid(sample(object_shape, k), raw) for k in range(2))

        if fits([*required, *candidates]):
            return [*required, *candidates]
        accepted = required
        if not fits(accepted):  # such as anyOf of required, and minProperties
            accepted = next(
                ([*required, candidate] for candidate in candidates if fits([*required, candidate])), []
            )
            if not accepted:
                prefixes = (candidates[: len(candidates) // n] for n in (2, 3, 4))
                accepted = next(([*required, *group] for group in prefixes if fits([*required, *group])), [])
            if not accepted:
                return required
        rest = [candidate for candidate in candidates if candidate not in accepted]
        stack = [rest]
        while stack:
            group = stack.pop()
            if not group:
                continue
            if fits([*accepted, *group]):
                accepted = [*accepted, *group]
            elif len(group) > 1:
                middle = len(group) // 2
                stack += [group[middle:], group[:middle]]
        return accepted

    def _map_names(
        self, flat: FlatSchema, shapes: dict[str, Shape], accepted: list[str], depth: int
    ) -> list[str]:
        """Return names for properties of a map, after adding their shapes; empty if it has none."""
        low, high = flat.keywords.get("minProperties"), flat.keywords.get("maxProperties")
        count = max(low if is_number(low) else 0, 2)
        count = int(min(count, high if is_number(high) else count, limits.MAX_FIELDS))
        is_free = not flat.pattern_properties and not any(
            part[0] is not False and part[0] not in (True, {}) for _, _, part in flat.additional_properties
        )
        if is_free and not (is_number(low) and low > 0):
            return []
        candidates: list[str] = []
        for pattern, part in flat.pattern_properties:
            if part[0] is not False:
                source, values = validation.build_text_generator((pattern,), 1, 40)
                candidates += validation.generate_texts(source, count) if source else values[:count]
        if not candidates and any(part[0] is False for _, _, part in flat.additional_properties):
            return []
        if flat.property_names:
            shape = self._solve(
                tuple(({"allOf": [item, {"type": "string"}]}, at) for item, at in flat.property_names),
                depth + 1,
            )
            samples = [sample(shape, k) for k in range(count * 4)] if shape else []
            names_schema = {"allOf": [item for item, _ in flat.property_names]}
            candidates = [
                candidate
                for candidate in (*candidates, *samples)
                if isinstance(candidate, str) and self.document.is_valid(candidate, names_schema)
            ]
        names = list(dict.fromkeys(candidate for candidate in candidates if candidate))[:count]
        if not names and not flat.property_names:
            words = ("first", "second", "third", "fourth", "fifth")
            names = [words[k] if k < len(words) else f"key{k + 1}" for k in range(count)]
        added = []
        for name in names:
            parts = self._parts(flat, name)
            one = None if parts is None else self._solve(parts, depth + 1)
            if one is not None and OMISSION_KEYWORD not in one:
                if not one:
                    one = {"type": "string"}
                shapes[name] = one
                added.append(name)
        return [*accepted, *added] if added else []

    # --- Arrays -----------------------------------------------------------------------------------------------

    def _array(self, flat: FlatSchema, raw: Any, depth: int, base: Shape) -> Shape | None:
        low, high = flat.keywords.get("minItems"), flat.keywords.get("maxItems")
        minimum = int(low) if is_number(low) and low > 0 else 0
        maximum = int(high) if is_number(high) and high >= 0 else None
        if maximum is not None and minimum > maximum:
            return None
        if flat.prefix_items:
            shapes = [self._solve((part,), depth + 1) for part in flat.prefix_items]
            usable = [shape for shape in shapes if shape is not None and OMISSION_KEYWORD not in shape]
            if len(usable) < len(shapes):
                usable = usable[
                    : next(k for k, shape in enumerate(shapes) if shape is None or OMISSION_KEYWORD in shape)
                ]
            if len(usable) < minimum:
                more = self._solve(flat.items, depth + 1) if flat.items else {"type": "string"}
                if more is None or len(usable) < len(shapes):
                    return None
                usable += [more or {"type": "string"}] * (min(minimum, limits.MAX_FIELDS) - len(usable))
            tuples = [[without_locked(sample(shape, k)) for shape in usable] for k in range(_MORE_SAMPLES)]
            return {**base, "type": "array", "enum": list(deduplicate(tuples))}
        items = self._solve(flat.items, depth + 1) if flat.items else {}
        accepts_any = items is not None and not items
        if items is None or OMISSION_KEYWORD in items or items.get("readOnly") or maximum == 0:
            return None if minimum else {**base, "type": "array", "enum": [[]]}
        if accepts_any:
            items = {"type": "string"}
        result: Shape = {**base, "type": "array", "items": items}
        if flat.keywords.get("uniqueItems") is True:
            return self._distinct_array(result, minimum, maximum)
        result["minItems"] = max(minimum, 1) if maximum is None or maximum else minimum
        result["maxItems"] = max(
            result["minItems"], min(maximum if maximum is not None else minimum + 2, minimum + 2)
        )
        return result

    def _distinct_array(self, array_shape: Shape, minimum: int, maximum: int | None) -> Shape | None:
        """Return a shape for arrays without duplicates: of one element, or a list of arrays."""
        choices = array_shape["items"].get("enum")
        if minimum <= 1 and choices is None:
            return {**array_shape, "minItems": 1, "maxItems": 1}
        pool = list(
            deduplicate(
                choices
                or [without_locked(sample(array_shape["items"], k)) for k in range(max(60, minimum * 4))]
            )
        )
        size = max(minimum, min(3, len(pool), maximum if maximum is not None else 3))
        if len(pool) < minimum:
            return None
        arrays = [
            [pool[(start + step) % len(pool)] for step in range(count)]
            for count in range(max(minimum, 1), size + 1)
            for start in range(min(len(pool), 12))
        ]
        return {
            **{key: array_shape[key] for key in _KEPT_KEYWORDS if key in array_shape},
            "type": "array",
            "enum": list(deduplicate(arrays)),
        }


# --- Keywords -----------------------------------------------------------------------------------------------


def _keywords_of(schema: Mapping[str, Any], references: frozenset[str]) -> FlatSchema:
    """Return the keywords of one schema."""
    result = FlatSchema(is_locked=schema.get("readOnly") is True)
    kinds = schema.get("type")
    if isinstance(kinds, str):
        kinds = [kinds]
    if isinstance(kinds, list) and kinds:
        known = {"string" if text == "file" else text for text in string_items(kinds)}
        if schema.get("nullable") is True:
            known.add("null")
        result.kinds = frozenset(known & set(_KINDS)) or None
        if result.kinds is None:
            result.unreadable_reason = f'JSON Schema has no type "{str(kinds[0])[:_TYPE_CHARS]}".'
    if "const" in schema:
        result.enum = [schema["const"]]
    elif isinstance(schema.get("enum"), list):
        result.enum = schema["enum"]
    for key in ("title", "description", "format", "contentEncoding"):
        if isinstance(schema.get(key), str):
            result.keywords[key] = schema[key]
    for key in ("minimum", "maximum", "multipleOf", *_COUNTS):
        if is_number(schema.get(key)):
            result.keywords[key] = schema[key]
    for key, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if is_number(schema.get(key)):
            result.keywords[key] = schema[key]
        elif schema.get(key) is True and limit in result.keywords:
            result.keywords[key] = result.keywords.pop(limit)
    if schema.get("uniqueItems") is True:
        result.keywords["uniqueItems"] = True
    if isinstance(schema.get("pattern"), str):
        result.patterns = (schema["pattern"],)
    properties = as_mapping(schema.get("properties"))
    result.properties = {str(name): ((item, references),) for name, item in properties.items()}
    result.required = tuple(string_items(schema.get("required")))
    named = as_mapping(schema.get("patternProperties"))
    result.pattern_properties = tuple((pattern, (item, references)) for pattern, item in named.items())
    others = schema.get("additionalProperties")
    if others is not None and others is not True:
        result.additional_properties = ((frozenset(properties), tuple(named), (others, references)),)
    if schema.get("propertyNames") is not None:
        result.property_names = ((schema["propertyNames"], references),)
    first, items = schema.get("prefixItems"), schema.get("items")
    if isinstance(items, list):
        first, items = items, schema.get("additionalItems")
    if isinstance(first, list):
        result.prefix_items = tuple((item, references) for item in first)
    if items is not None:
        result.items = ((items, references),)
    return result


_TYPE_CHARS: Final = 40  # chosen: characters of an unknown type that are quoted
_LARGER: Final = ("minLength", "minItems", "minProperties", "minimum", "exclusiveMinimum")
_SMALLER: Final = ("maxLength", "maxItems", "maxProperties", "maximum", "exclusiveMaximum")


def _intersection(one: FlatSchema, other: FlatSchema) -> FlatSchema | None:
    """Return the keywords of both; None if they exclude each other."""
    result = _copy(one)
    if one.kinds is not None and other.kinds is not None:
        kinds = one.kinds & other.kinds
        if ("integer" in one.kinds and "number" in other.kinds) or (
            "number" in one.kinds and "integer" in other.kinds
        ):
            kinds |= {"integer"}
        if not kinds:
            return None
        result.kinds = kinds
    else:
        result.kinds = one.kinds if one.kinds is not None else other.kinds
    if one.enum is not None and other.enum is not None:
        allowed = set(map(canonical, other.enum))
        result.enum = [value for value in one.enum if canonical(value) in allowed]
        if not result.enum:
            return None
    else:
        result.enum = one.enum if one.enum is not None else other.enum
    for key, value in other.keywords.items():
        current = result.keywords.get(key)
        if current is None:
            result.keywords[key] = value
        elif key in _LARGER:
            result.keywords[key] = max(current, value)
        elif key in _SMALLER:
            result.keywords[key] = min(current, value)
        elif key == "multipleOf":
            result.keywords[key] = _common_multiple(current, value)
        elif key == "format":
            result.keywords[key] = value
    result.patterns = tuple(dict.fromkeys((*one.patterns, *other.patterns)))
    for name, parts in other.properties.items():
        result.properties[name] = result.properties.get(name, ()) + parts
    result.required = tuple(dict.fromkeys((*one.required, *other.required)))
    result.additional_properties, result.pattern_properties = (
        one.additional_properties + other.additional_properties,
        one.pattern_properties + other.pattern_properties,
    )
    result.property_names, result.items = one.property_names + other.property_names, one.items + other.items
    result.prefix_items = one.prefix_items or other.prefix_items
    result.choices = one.choices + other.choices
    result.is_locked, result.unreadable_reason = (
        one.is_locked or other.is_locked,
        one.unreadable_reason or other.unreadable_reason,
    )
    return result


def _copy(flat: FlatSchema, choices: tuple[tuple[SchemaPart, ...], ...] | None = None) -> FlatSchema:
    return FlatSchema(
        flat.kinds, flat.enum, dict(flat.keywords), flat.patterns, dict(flat.properties), flat.required,
        flat.additional_properties,
        flat.pattern_properties, flat.property_names, flat.items, flat.prefix_items,
        flat.choices if choices is None else choices, flat.is_locked,
        flat.unreadable_reason,
    )  # fmt: skip


def _common_multiple(first: float, second: float) -> float:
    a, b = Fraction(str(first)), Fraction(str(second))
    if a <= 0 or b <= 0:
        return first if a > 0 else second
    scale = a.denominator * b.denominator
    multiple = Fraction(math.lcm(int(a * scale), int(b * scale)), scale)
    return int(multiple) if multiple.denominator == 1 else float(multiple)


def _kind_of(flat: FlatSchema) -> str:
    """Return the type that is generated; empty if any value is accepted."""
    if flat.kinds is not None:
        hinted = [kind for kind, keys in _HINTS if kind in flat.kinds and _mentions(flat, keys)]
        return next(iter(hinted), "") or next((kind for kind in _KINDS if kind in flat.kinds), "")
    return next((kind for kind, keys in _HINTS if _mentions(flat, keys)), "")


def _mentions(flat: FlatSchema, keys: Sequence[str]) -> bool:
    keywords = {
        "properties": flat.properties, "additionalProperties": flat.additional_properties,
        "patternProperties": flat.pattern_properties,
        "required": flat.required, "propertyNames": flat.property_names, "items": flat.items,
        "prefixItems": flat.prefix_items,
        "pattern": flat.patterns,
    }  # fmt: skip
    return any(keywords.get(key) or key in flat.keywords for key in keys)


def _weight(shape: Shape, limit: int) -> int:
    """Return the number of schemas within a shape, counted up to `limit`."""
    count, stack = 0, [shape]
    while stack and count <= limit:
        one = stack.pop()
        count += 1
        stack += as_mapping(one.get("properties")).values()
        if "items" in one and "enum" not in one:
            stack.append(one["items"])
    return count


def _type_name(value: Any) -> str:
    """Return the type of a value as lists of values keep it."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict | list):
        return "object" if isinstance(value, dict) else "array"
    return "number" if isinstance(value, float) else "integer"


_FORMAT_LENGTHS: Final = {"uuid": (36, 36), "date": (10, 10), "date-time": (20, 20)}


def _text(flat: FlatSchema, base: Shape) -> Shape | None:
    words = flat.keywords
    minimum = int(max(0, words.get("minLength", 0)))
    maximum = int(words["maxLength"]) if "maxLength" in words else None
    if maximum is not None and maximum < minimum:
        return None
    result: Shape = {**base, "type": "string"}
    shortest, longest = _FORMAT_LENGTHS.get(words.get("format", ""), (0, 0))
    if longest and (longest < minimum or (maximum is not None and shortest > maximum)):
        result.pop("format", None)
    if flat.patterns:
        source, values = validation.build_text_generator(flat.patterns, minimum, maximum)
        format_name = words.get("format", "")
        if values:
            values = tuple(value for value in values if has_format(value, format_name))
        if (
            source
            and format_name
            and not all(has_format(text, format_name) for text in validation.generate_texts(source, 20))
        ):
            values = tuple(
                item
                for item in _EXAMPLES.get(format_name, ())
                if all(validation.matches(pattern, item) for pattern in flat.patterns)
            )
            source = ""
        if source:
            result["pattern"] = source
            return result
        return {**result, "enum": list(values)} if values else None
    if minimum:
        result["minLength"] = minimum
    if maximum is not None:
        result["maxLength"] = maximum
    return result


def _number(flat: FlatSchema, kind: str, base: Shape) -> Shape | None:
    words = flat.keywords
    step = Decimal(str(words["multipleOf"])) if words.get("multipleOf", 0) > 0 else None
    unit = Decimal(1) if kind == "integer" else Decimal("0.01")
    if kind == "integer" and step is not None and step != step.to_integral_value():
        step = Decimal(str(_common_multiple(words["multipleOf"], 1)))
    bounds: dict[str, Decimal | None] = {}
    for key, over, sign in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        inclusive = Decimal(str(words[key])) if key in words else None
        exclusive = Decimal(str(words[over])) if over in words else None
        adjusted = None if exclusive is None else exclusive + sign * (step or unit)
        candidates = [decimal for decimal in (inclusive, adjusted) if decimal is not None]
        bounds[key] = (max(candidates) if sign == 1 else min(candidates)) if candidates else None
    low, high = bounds["minimum"], bounds["maximum"]
    if low is not None and high is not None and low > high:
        low, high = (
            Decimal(str(words.get("minimum", words.get("exclusiveMinimum")))),
            Decimal(str(words.get("maximum", words.get("exclusiveMaximum")))),
        )
        if kind == "integer" or low >= high:
            return None if low != high or "exclusiveMinimum" in words or "exclusiveMaximum" in words else {
                **base, "type": kind, "minimum": _json(low), "maximum": _json(low)}  # fmt: skip
        low, high = low + (high - low) / 4, high - (high - low) / 4
    if kind == "integer":
        low = None if low is None else low.to_integral_value("ROUND_CEILING")
        high = None if high is None else high.to_integral_value("ROUND_FLOOR")
    widest = Decimal(_MAX_BY_FORMAT.get(str(words.get("format", "")), _MAX_BY_FORMAT["int64"]))
    result: Shape = {**base, "type": kind}
    if low is not None:
        result["minimum"] = _json(max(low, -widest))
    if high is not None:
        result["maximum"] = _json(min(high, widest))
    if low is not None and high is not None and result["minimum"] > result["maximum"]:
        return None
    if step is not None:
        result["multipleOf"] = _json(step)
    return result


def _json(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


# --- Sample values ------------------------------------------------------------------------------------------

_EXAMPLES: Final[Mapping[str, Sequence[str]]] = {
    "date-time": ("2026-01-31T12:00:00Z", "2025-06-01T08:30:00Z"), "date": ("2026-01-31", "2025-06-01"),
    "time": ("12:00:00Z", "08:30:00Z"), "duration": ("P1D", "PT2H"), "email": ("ann@example.com", "ben@example.org"),
    "idn-email": ("ann@example.com",), "hostname": ("www.example.com", "example.org"),
    "ipv4": ("192.0.2.1", "198.51.100.7"),
    "ipv6": ("2001:db8::1", "2001:db8::2"), "uri": ("https://example.com/a", "https://example.org/b"),
    "iri": ("https://example.com/a",), "uri-reference": ("/a", "/b"), "uri-template": ("/a/{id}",),
    "uuid": ("9b2f3c1e-5d4a-4e6f-8a7b-1c2d3e4f5a6b", "1c2d3e4f-5a6b-4e6f-8a7b-9b2f3c1e5d4a"), "regex": ("^[a-z]+$",),
    "json-pointer": ("/a/b",), "relative-json-pointer": ("1",), "byte": ("cm93cw==",),
}  # fmt: skip
"""Texts of the standard formats."""


def sample(shape: Mapping[str, Any], k: int) -> Any:
    """Return the k-th sample value of a shape; `LOCKED` for values that are not sent."""
    if shape.get("readOnly") is True:
        return LOCKED
    if "enum" in shape:
        return shape["enum"][k % len(shape["enum"])]
    match shape.get("type"):
        case "object":
            return {
                name: sample(item, _mix(k, index))
                for index, (name, item) in enumerate(as_mapping(shape.get("properties")).items())
                if OMISSION_KEYWORD not in item
            }
        case "array":
            low = shape.get("minItems", 1)
            count = low + (k // 2 + k) % (shape.get("maxItems", low) - low + 1)
            return [sample(shape["items"], _mix(k, index) if k else index) for index in range(count)]
        case "boolean":
            return k % 2 == 0
        case "null":
            return None
        case "number" | "integer":
            return _sample_number(shape, k)
    if "pattern" in shape:
        return validation.generate_texts(shape["pattern"], 64)[k % 64]
    examples = _EXAMPLES.get(str(shape.get("format", "")))
    minimum, maximum = shape.get("minLength", 0), shape.get("maxLength")
    if examples:
        fitting = [
            example
            for example in examples
            if len(example) >= minimum and (maximum is None or len(example) <= maximum)
        ]
        if fitting:
            return fitting[k % len(fitting)]
    text = f"text {chr(97 + k % 26)}{k // 26 or ''}"
    text += "a" * (minimum - len(text))
    return text if maximum is None else text[-maximum:] if maximum else ""


def _mix(k: int, index: int) -> int:
    """Return a number by which neighboring properties do not vary together."""
    return 0 if k == 0 else (k * 2654435761 + index * 40503 * k >> 7) % 10_007


def _sample_number(shape: Mapping[str, Any], k: int) -> int | float:
    step = Decimal(str(shape.get("multipleOf", 1)))
    low, high = shape.get("minimum"), shape.get("maximum")
    start = (
        Decimal(str(low))
        if low is not None
        else min(Decimal(0), Decimal(str(high)) if high is not None else Decimal(0))
    )
    first = (start / step).to_integral_value("ROUND_CEILING") * step
    value = first + step * (k % 1_000)
    if high is not None and value > Decimal(str(high)):
        value = first if first <= Decimal(str(high)) else start
    return _json(value)


def without_locked(value: Any) -> Any:
    """Return a value without what is not sent."""
    if isinstance(value, dict):
        return {name: without_locked(item) for name, item in value.items() if item is not LOCKED}
    if isinstance(value, list):
        return [without_locked(item) for item in value if item is not LOCKED]
    return None if value is LOCKED else value

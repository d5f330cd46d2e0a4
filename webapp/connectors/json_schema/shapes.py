"""Convert a JSON Schema to a shape: a plain schema whose every value is valid by the schema.

A shape has no references and no alternatives: `$ref` and `allOf` are merged, of `oneOf`, `anyOf` and `if` one branch is
chosen, expressions are such that texts can be generated from them, and an object has all its properties, with only
those that may occur together. What cannot be solved by reading is solved by trying: sample values of a shape are
validated against the schema as it is written, and properties that make them invalid are left out, alternatives that
do are not chosen, and as a last resort a list of valid values stands for the schema. So `dependentRequired`,
`not`, `contains`, `unevaluatedProperties` and their like need no rules of their own.

Keywords of shapes: `type`, `enum`, `properties` (with `readOnly` ones, which are not sent, and `LEFT_OUT` ones),
`required`, `items`, `minItems`, `maxItems`, `minLength`, `maxLength`, `pattern` (of whole texts), `format`, `minimum`,
`maximum`, `multipleOf`, `description`.
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
    Budget,
    Document,
    UnresolvedReference,
    canonical,
    has_format,
    is_number,
    is_of,
    listed,
    mapping,
    strings,
    unique,
)

Shape = dict[str, Any]
Part = tuple[Any, frozenset[str]]
"""A schema, and the references that led to it: one that occurs again is recursive."""
LEFT_OUT: Final = "x-left-out"
"""Keyword of properties that are not generated: the reason."""
LOST: Final = "x-lost"
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
_FEWEST_VISITS: Final = 2_000  # chosen: those of one property, however many there are
_SHARE: Final = 4
_FEWEST_OF_SCHEMA: Final = 500  # chosen: those of one schema, however many came before it
_CHOICES: Final = 500  # chosen: values of an enumeration that are kept
_DEEPEST: Final = 40  # chosen: levels after which a schema that requires ever more levels is impossible
_PLAIN_DEPTH: Final = 3
_WIDEST: Final = {"int32": 2**31 - 1, "int64": 2**53 - 1}  # what every reader of JSON takes exactly
_KINDS: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
_HINTS: Final = (
    ("object", ("properties", "additionalProperties", "patternProperties", "required", "propertyNames",
                "minProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains")),
    ("string", ("pattern", "minLength", "maxLength", "format")),
    ("number", ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum")),
)  # fmt: skip
_COUNTS: Final = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_TOLD: Final = ("title", "description", "format", "contentEncoding")
_KEPT: Final = ("description", "title", "format", "readOnly")


@dataclass
class FlatSchema:
    """The keywords of a schema, with references and `allOf` merged."""

    kinds: frozenset[str] | None = None
    enum: list[Any] | None = None
    words: dict[str, Any] = field(default_factory=dict)
    """Bounds, format, description and the like."""
    patterns: tuple[str, ...] = ()
    properties: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    others: tuple[tuple[frozenset[str], tuple[str, ...], Part], ...] = ()
    """`additionalProperties` with the names and expressions that they do not apply to."""
    named: tuple[tuple[str, Part], ...] = ()
    """`patternProperties`."""
    names: tuple[Part, ...] = ()
    """`propertyNames`."""
    items: tuple[Part, ...] = ()
    first: tuple[Part, ...] = ()
    """`prefixItems`."""
    choices: tuple[tuple[Part, ...], ...] = ()
    """Alternatives that are still to be chosen from."""
    locked: bool = False
    lost: str = ""


class Shaper:
    """Converts the schemas of one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._known: dict[tuple[str, int, bool, bool], Shape | None] = {}
        self._plain = False
        """Whether optional properties are left out."""
        self.exhausted = False
        """Whether a schema needed more visits than it was given, even without its optional properties."""

    def shape(self, schema: Any, visits: int = limits.SCHEMA_VISITS) -> Shape | None:
        """Return the shape of a schema; None if no value is found. If more than `visits` schemas are visited, only
        required properties are generated. If no value satisfies exactly one schema of each `oneOf`, several may be
        satisfied. One schema takes a quarter of what the document has left at most, so that those after it have a
        share; each can visit a few. `document.left` is 0 when the document as a whole has too many."""
        for plain, lenient in ((False, False), (True, False), (False, True)):
            self._plain, before = plain, self.document.left
            self.document.lenient = lenient
            self.document.left = given = max(min(before // _SHARE, visits), _FEWEST_OF_SCHEMA)
            try:
                found = self._solved(((schema, frozenset()),), 0)
            except (Budget, RecursionError):
                continue
            finally:
                self.document.left = max(0, before - given + max(0, self.document.left))
                self.document.lenient = False
            if found is not None or lenient:
                return found
        self.exhausted = True
        return None

    # --- Merging ----------------------------------------------------------------------------------------------

    def _flat(self, parts: Iterable[Part], turns: int = 0) -> FlatSchema | None:
        """Return the merged keywords of schemas; None if they exclude each other."""
        found: FlatSchema | None = FlatSchema()
        for part in parts:
            found = self._one(part, found, turns) if found is not None else None
        return found

    def _one(self, part: Part, into: FlatSchema, turns: int) -> FlatSchema | None:
        schema, above = part
        self.document.visit()
        if schema is False or turns > _DEEPEST:
            return None
        if not isinstance(schema, dict):
            return into
        found: FlatSchema | None = into
        reference = schema.get("$ref", schema.get("$dynamicRef"))
        if isinstance(reference, str):
            if reference in above:
                return None
            try:
                there = self.document.target(reference), above | {reference}
            except UnresolvedReference as error:
                found = _joined(into, FlatSchema(lost=str(error)))
            else:
                found = self._one(there, into, turns + 1)
            if found is None:
                return None
            if self.document.legacy and not found.lost:
                found.locked = found.locked or schema.get("readOnly") is True
                return found
        found = _joined(found, _own(schema, above)) if found is not None else None
        for one in listed(schema.get("allOf")):
            found = self._one((one, above), found, turns + 1) if found is not None else None
        if found is None:
            return None
        for key in ("oneOf", "anyOf"):
            branches = listed(schema.get(key))
            if branches:
                found.choices += (tuple((one, above) for one in branches),)
        if isinstance(schema.get("if"), dict):
            then = {"allOf": [schema["if"], schema.get("then", True)]}
            found.choices += (((True, above), (then, above), (schema.get("else", True), above)),)
        return found

    def _attempts(self, flat: FlatSchema, turns: int = 0) -> Iterator[FlatSchema]:
        """Yield the keywords for each combination of alternatives, the likely ones first."""
        if not flat.choices or turns > _DEEPEST:
            yield flat
            return
        first, *rest = flat.choices
        held = _copied(flat, choices=tuple(rest))
        for branch in sorted(first, key=self._unlikely):
            merged = self._one(branch, _copied(held), turns)
            if merged is not None:
                yield from self._attempts(merged, turns + 1)

    def _unlikely(self, part: Part) -> int:
        schema = part[0]
        for _ in range(5):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                break
            try:
                schema = self.document.target(schema["$ref"])
            except UnresolvedReference:
                return 3
        if not isinstance(schema, dict):
            return 0
        empty = schema.get("type") == "null" or schema.get("const", 0) is None or schema.get("enum") == [None]
        return 2 if empty else int(schema.get("deprecated") is True)

    # --- Solving ----------------------------------------------------------------------------------------------

    def _solved(self, parts: tuple[Part, ...], depth: int) -> Shape | None:
        raw = parts[0][0] if len(parts) == 1 else {"allOf": [one for one, _ in parts]}
        reference = raw.get("$ref") if isinstance(raw, dict) and len(raw) == 1 else None
        alone = isinstance(reference, str) and reference not in parts[0][1]
        key = (str(reference), depth, self._plain, self.document.lenient)
        if alone and key in self._known:
            return self._known[key]
        found = self._chosen(parts, raw, depth)
        if alone:
            self._known[key] = found
        return found

    def _chosen(self, parts: tuple[Part, ...], raw: Any, depth: int) -> Shape | None:
        if depth > _DEEPEST:
            return None
        flat = self._flat(parts)
        if flat is None:
            return None
        listed_: Shape | None = None
        branches = _BRANCHES[min(depth, len(_BRANCHES) - 1)]
        for attempt in islice(self._attempts(flat), branches):
            shape = self._typed(attempt, raw, depth)
            if shape is None:
                continue
            if attempt.locked:
                shape["readOnly"] = True
            if LEFT_OUT not in shape and self.document.valid(None, raw):
                shape["nullable"] = True
            if LEFT_OUT in shape or self._sound(shape, raw):
                return shape
            pinned = self._pinned(shape, raw)
            if pinned is not None:
                return pinned
            if listed_ is None:
                values = [
                    value for k in range(_MORE_SAMPLES) if self.document.valid(value := sample(shape, k), raw)
                ]
                kept = [one for one in unique([sent(value) for value in values]) if one is not None]
                if kept:
                    listed_ = {
                        **{key: shape[key] for key in _KEPT if key in shape},
                        "type": shape.get("type", ""),
                        "enum": kept,
                    }
        return listed_

    def _sound(self, shape: Shape, raw: Any) -> bool:
        return all(self.document.valid(sample(shape, k), raw) for k in range(_SAMPLES))

    def _pinned(self, shape: Shape, raw: Any) -> Shape | None:
        """Return an object with fixed values of its enumerations, where only some of them fit together."""
        properties = mapping(shape.get("properties"))
        if not properties:
            return None
        for k in range(_MORE_SAMPLES):
            value = sample(shape, k)
            if self.document.valid(value, raw):
                fixed = {
                    name: {**one, "enum": [value[name]]}
                    if ("enum" in one or one.get("type") == "boolean")
                    and value.get(name, LOCKED) is not LOCKED
                    else one
                    for name, one in properties.items()
                }
                made = {**shape, "properties": fixed}
                if self._sound(made, raw):
                    return made
        return None

    def _typed(self, flat: FlatSchema, raw: Any, depth: int) -> Shape | None:
        told = {key: flat.words[key] for key in _TOLD if isinstance(flat.words.get(key), str)}
        if flat.lost and flat.kinds is None and flat.enum is None and not flat.properties:
            return {**told, LEFT_OUT: flat.lost, LOST: flat.lost}
        if flat.enum is not None:
            fitting = [
                one
                for one in unique(flat.enum[:_CHOICES])
                if flat.kinds is None or any(is_of(one, kind) for kind in flat.kinds) or one is None
            ]
            valid = [one for one in fitting if flat.choices or self.document.valid(one, raw)]
            values = [one for one in valid if one is not None]
            if not values:
                return {**told, "type": "null"} if valid else None
            common = Counter(map(_sort, values)).most_common(1)[0][0]
            return {**told, "type": common, "enum": [one for one in values if _sort(one) == common]}
        kind = _kind_of(flat)
        match kind:
            case "object":
                return self._object(flat, raw, depth, told)
            case "array":
                return self._array(flat, raw, depth, told)
            case "string":
                return _text(flat, told)
            case "number" | "integer":
                return _number(flat, kind, told)
            case "boolean" | "null":
                return {**told, "type": kind}
        return told

    # --- Objects ----------------------------------------------------------------------------------------------

    def _object(self, flat: FlatSchema, raw: Any, depth: int, told: Shape) -> Shape | None:
        shapes: dict[str, Shape] = {}
        left_out: dict[str, Shape] = {}
        for name in dict.fromkeys(flat.required):
            parts = self._parts(flat, name)
            one = None if parts is None else self._solved(parts, depth + 1)
            if one is None:
                return None
            shapes[name] = {"type": "string", LOST: one[LEFT_OUT]} if LEFT_OUT in one else one
        optional = [name for name in flat.properties if name not in shapes]
        if self._plain or depth > _PLAIN_DEPTH + 2:
            optional = []
        candidates: list[str] = []
        most = _OPTIONAL[depth] if depth < len(_OPTIONAL) else _DEEPER
        reserve = self.document.left // 2
        room = _WEIGHTS[min(depth, len(_WEIGHTS) - 1)] - sum(
            _weight(one, _WEIGHTS[0]) for one in shapes.values()
        )
        for place, name in enumerate(optional):
            if len(candidates) >= most:
                left_out[name] = {LEFT_OUT: "The object has too many properties."}
                continue
            parts = self._parts(flat, name)
            if parts is not None and depth >= _PLAIN_DEPTH and self._is_nested(parts):
                continue
            share = max(0, self.document.left - reserve) // (len(optional) - place)
            if depth == 0 and self.document.left < reserve:
                left_out[name] = {LEFT_OUT: "The schema is too large: its first properties are generated."}
                continue
            one = None if parts is None else self._within(parts, depth + 1, max(share, _FEWEST_VISITS))
            if one is None:
                left_out[name] = {
                    LEFT_OUT: "No value for it ends its recursion, or satisfies all its keywords."
                }
            elif LEFT_OUT in one:
                left_out[name] = one
            elif (weight := _weight(one, room + 1)) <= room or one.get("readOnly"):
                room -= weight
                candidates.append(name)
                shapes[name] = one
            else:
                left_out[name] = {LEFT_OUT: "The object would be too large with it."}
        needed = [name for name in shapes if name not in candidates]
        kept = self._together(shapes, needed, candidates, raw) if candidates else needed
        if not any(not shapes[name].get("readOnly") for name in kept):
            kept = self._as_map(flat, shapes, kept, depth) or kept
        order = [name for name in flat.properties if name in kept] + [
            one for one in kept if one not in flat.properties
        ]
        for name in candidates:
            if name not in kept:
                left_out[name] = {LEFT_OUT: "It is not accepted together with the other properties."}
        made: Shape = {**told, "type": "object", "properties": {name: shapes[name] for name in order}}
        if depth == 0:
            made["properties"] |= {
                name: one for name, one in left_out.items() if name not in made["properties"]
            }
        made["required"] = [one for one in dict.fromkeys(flat.required) if one in shapes]
        return made

    def _within(self, parts: tuple[Part, ...], depth: int, visits: int) -> Shape | None:
        """Return the shape of an optional property, if no more than so many schemas are visited for it."""
        if depth > 1:
            return self._solved(parts, depth)
        before = self.document.left
        self.document.left = given = min(before, visits)
        try:
            return self._solved(parts, depth)
        except Budget:
            return {LEFT_OUT: _TOO_LARGE, LOST: _TOO_LARGE}
        finally:
            self.document.left = before - given + max(0, self.document.left)

    def _is_nested(self, parts: tuple[Part, ...]) -> bool:
        flat = self._flat(parts)
        return (
            flat is not None
            and flat.enum is None
            and not flat.locked
            and _kind_of(flat) in ("object", "array", "")
        )

    def _parts(self, flat: FlatSchema, name: str) -> tuple[Part, ...] | None:
        """Return the schemas of a property; None if it is not accepted."""
        parts = flat.properties.get(name, ())
        parts += tuple(part for pattern, part in flat.named if validation.matches(pattern, name))
        for known, named, part in flat.others:
            if name not in known and not any(validation.matches(one, name) for one in named):
                if part[0] is False:
                    return None
                parts += (part,)
        return parts or ((True, frozenset()),)

    def _together(
        self, shapes: Mapping[str, Shape], needed: list[str], candidates: list[str], raw: Any
    ) -> list[str]:
        """Return the properties that are valid together: those that are needed, and as many others as possible."""

        def fits(names: Sequence[str]) -> bool:
            own = {"type": "object", "properties": {name: shapes[name] for name in names}}
            return any(self.document.valid(sample(own, k), raw) for k in range(2))

        if fits([*needed, *candidates]):
            return [*needed, *candidates]
        kept = needed
        if not fits(kept):  # such as anyOf of required, and minProperties
            kept = next(([*needed, one] for one in candidates if fits([*needed, one])), [])
            if not kept:
                half = (candidates[: len(candidates) // n] for n in (2, 3, 4))
                kept = next(([*needed, *some] for some in half if fits([*needed, *some])), [])
            if not kept:
                return needed
        rest = [one for one in candidates if one not in kept]
        stack = [rest]
        while stack:
            some = stack.pop()
            if not some:
                continue
            if fits([*kept, *some]):
                kept = [*kept, *some]
            elif len(some) > 1:
                middle = len(some) // 2
                stack += [some[middle:], some[:middle]]
        return kept

    def _as_map(self, flat: FlatSchema, shapes: dict[str, Shape], kept: list[str], depth: int) -> list[str]:
        """Return names for properties of a map, after adding their shapes; empty if it has none."""
        low, high = flat.words.get("minProperties"), flat.words.get("maxProperties")
        count = max(low if is_number(low) else 0, 2)
        count = int(min(count, high if is_number(high) else count, limits.MAX_FIELDS))
        free = not flat.named and not any(
            part[0] is not False and part[0] not in (True, {}) for _, _, part in flat.others
        )
        if free and not (is_number(low) and low > 0):
            return []
        found: list[str] = []
        for pattern, part in flat.named:
            if part[0] is not False:
                source, values = validation.generated((pattern,), 1, 40)
                found += validation.texts(source, count) if source else values[:count]
        if not found and any(part[0] is False for _, _, part in flat.others):
            return []
        if flat.names:
            shape = self._solved(
                tuple(({"allOf": [one, {"type": "string"}]}, at) for one, at in flat.names), depth + 1
            )
            samples = [sample(shape, k) for k in range(count * 4)] if shape else []
            own = {"allOf": [one for one, _ in flat.names]}
            found = [
                one for one in (*found, *samples) if isinstance(one, str) and self.document.valid(one, own)
            ]
        names = list(dict.fromkeys(one for one in found if one))[:count]
        if not names and not flat.names:
            words = ("first", "second", "third", "fourth", "fifth")
            names = [words[k] if k < len(words) else f"key{k + 1}" for k in range(count)]
        made = []
        for name in names:
            parts = self._parts(flat, name)
            one = None if parts is None else self._solved(parts, depth + 1)
            if one is not None and LEFT_OUT not in one:
                if not one:
                    one = {"type": "string"}
                shapes[name] = one
                made.append(name)
        return [*kept, *made] if made else []

    # --- Arrays -----------------------------------------------------------------------------------------------

    def _array(self, flat: FlatSchema, raw: Any, depth: int, told: Shape) -> Shape | None:
        low, high = flat.words.get("minItems"), flat.words.get("maxItems")
        least = int(low) if is_number(low) and low > 0 else 0
        most = int(high) if is_number(high) and high >= 0 else None
        if most is not None and least > most:
            return None
        if flat.first:
            shapes = [self._solved((part,), depth + 1) for part in flat.first]
            usable = [one for one in shapes if one is not None and LEFT_OUT not in one]
            if len(usable) < len(shapes):
                usable = usable[: next(k for k, one in enumerate(shapes) if one is None or LEFT_OUT in one)]
            if len(usable) < least:
                more = self._solved(flat.items, depth + 1) if flat.items else {"type": "string"}
                if more is None or len(usable) < len(shapes):
                    return None
                usable += [more or {"type": "string"}] * (min(least, limits.MAX_FIELDS) - len(usable))
            tuples = [[sent(sample(one, k)) for one in usable] for k in range(_MORE_SAMPLES)]
            return {**told, "type": "array", "enum": list(unique(tuples))}
        items = self._solved(flat.items, depth + 1) if flat.items else {}
        bare = items is not None and not items
        if items is None or LEFT_OUT in items or items.get("readOnly") or most == 0:
            return None if least else {**told, "type": "array", "enum": [[]]}
        if bare:
            items = {"type": "string"}
        made: Shape = {**told, "type": "array", "items": items}
        if flat.words.get("uniqueItems") is True:
            return self._distinct(made, least, most)
        made["minItems"] = max(least, 1) if most is None or most else least
        made["maxItems"] = max(made["minItems"], min(most if most is not None else least + 2, least + 2))
        return made

    def _distinct(self, made: Shape, least: int, most: int | None) -> Shape | None:
        """Return a shape for arrays without duplicates: of one element, or a list of arrays."""
        choices = made["items"].get("enum")
        if least <= 1 and choices is None:
            return {**made, "minItems": 1, "maxItems": 1}
        pool = list(unique(choices or [sent(sample(made["items"], k)) for k in range(max(60, least * 4))]))
        size = max(least, min(3, len(pool), most if most is not None else 3))
        if len(pool) < least:
            return None
        arrays = [
            [pool[(start + step) % len(pool)] for step in range(count)]
            for count in range(max(least, 1), size + 1)
            for start in range(min(len(pool), 12))
        ]
        return {
            **{key: made[key] for key in _KEPT if key in made},
            "type": "array",
            "enum": list(unique(arrays)),
        }


# --- Keywords -----------------------------------------------------------------------------------------------


def _own(schema: Mapping[str, Any], above: frozenset[str]) -> FlatSchema:
    """Return the keywords of one schema."""
    found = FlatSchema(locked=schema.get("readOnly") is True)
    kinds = schema.get("type")
    if isinstance(kinds, str):
        kinds = [kinds]
    if isinstance(kinds, list) and kinds:
        known = {"string" if one == "file" else one for one in strings(kinds)}
        if schema.get("nullable") is True:
            known.add("null")
        found.kinds = frozenset(known & set(_KINDS)) or None
        if found.kinds is None:
            found.lost = f'JSON Schema has no type "{str(kinds[0])[:_TYPE_CHARS]}".'
    if "const" in schema:
        found.enum = [schema["const"]]
    elif isinstance(schema.get("enum"), list):
        found.enum = schema["enum"]
    for key in ("title", "description", "format", "contentEncoding"):
        if isinstance(schema.get(key), str):
            found.words[key] = schema[key]
    for key in ("minimum", "maximum", "multipleOf", *_COUNTS):
        if is_number(schema.get(key)):
            found.words[key] = schema[key]
    for key, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if is_number(schema.get(key)):
            found.words[key] = schema[key]
        elif schema.get(key) is True and limit in found.words:
            found.words[key] = found.words.pop(limit)
    if schema.get("uniqueItems") is True:
        found.words["uniqueItems"] = True
    if isinstance(schema.get("pattern"), str):
        found.patterns = (schema["pattern"],)
    properties = mapping(schema.get("properties"))
    found.properties = {str(name): ((one, above),) for name, one in properties.items()}
    found.required = tuple(strings(schema.get("required")))
    named = mapping(schema.get("patternProperties"))
    found.named = tuple((pattern, (one, above)) for pattern, one in named.items())
    others = schema.get("additionalProperties")
    if others is not None and others is not True:
        found.others = ((frozenset(properties), tuple(named), (others, above)),)
    if schema.get("propertyNames") is not None:
        found.names = ((schema["propertyNames"], above),)
    first, items = schema.get("prefixItems"), schema.get("items")
    if isinstance(items, list):
        first, items = items, schema.get("additionalItems")
    if isinstance(first, list):
        found.first = tuple((one, above) for one in first)
    if items is not None:
        found.items = ((items, above),)
    return found


_TYPE_CHARS: Final = 40  # chosen: characters of an unknown type that are quoted
_LARGER: Final = ("minLength", "minItems", "minProperties", "minimum", "exclusiveMinimum")
_SMALLER: Final = ("maxLength", "maxItems", "maxProperties", "maximum", "exclusiveMaximum")


def _joined(one: FlatSchema, other: FlatSchema) -> FlatSchema | None:
    """Return the keywords of both; None if they exclude each other."""
    made = _copied(one)
    if one.kinds is not None and other.kinds is not None:
        kinds = one.kinds & other.kinds
        if ("integer" in one.kinds and "number" in other.kinds) or (
            "number" in one.kinds and "integer" in other.kinds
        ):
            kinds |= {"integer"}
        if not kinds:
            return None
        made.kinds = kinds
    else:
        made.kinds = one.kinds if one.kinds is not None else other.kinds
    if one.enum is not None and other.enum is not None:
        there = set(map(canonical, other.enum))
        made.enum = [value for value in one.enum if canonical(value) in there]
        if not made.enum:
            return None
    else:
        made.enum = one.enum if one.enum is not None else other.enum
    for key, value in other.words.items():
        before = made.words.get(key)
        if before is None:
            made.words[key] = value
        elif key in _LARGER:
            made.words[key] = max(before, value)
        elif key in _SMALLER:
            made.words[key] = min(before, value)
        elif key == "multipleOf":
            made.words[key] = _common_multiple(before, value)
        elif key == "format":
            made.words[key] = value
    made.patterns = tuple(dict.fromkeys((*one.patterns, *other.patterns)))
    for name, parts in other.properties.items():
        made.properties[name] = made.properties.get(name, ()) + parts
    made.required = tuple(dict.fromkeys((*one.required, *other.required)))
    made.others, made.named = one.others + other.others, one.named + other.named
    made.names, made.items = one.names + other.names, one.items + other.items
    made.first = one.first or other.first
    made.choices = one.choices + other.choices
    made.locked, made.lost = one.locked or other.locked, one.lost or other.lost
    return made


def _copied(flat: FlatSchema, choices: tuple[tuple[Part, ...], ...] | None = None) -> FlatSchema:
    return FlatSchema(
        flat.kinds, flat.enum, dict(flat.words), flat.patterns, dict(flat.properties), flat.required, flat.others,
        flat.named, flat.names, flat.items, flat.first, flat.choices if choices is None else choices, flat.locked,
        flat.lost,
    )  # fmt: skip


def _common_multiple(one: float, other: float) -> float:
    a, b = Fraction(str(one)), Fraction(str(other))
    if a <= 0 or b <= 0:
        return one if a > 0 else other
    scale = a.denominator * b.denominator
    found = Fraction(math.lcm(int(a * scale), int(b * scale)), scale)
    return int(found) if found.denominator == 1 else float(found)


def _kind_of(flat: FlatSchema) -> str:
    """Return the type that is generated; empty if any value is accepted."""
    if flat.kinds is not None:
        hinted = [kind for kind, keys in _HINTS if kind in flat.kinds and _mentions(flat, keys)]
        return next(iter(hinted), "") or next((kind for kind in _KINDS if kind in flat.kinds), "")
    return next((kind for kind, keys in _HINTS if _mentions(flat, keys)), "")


def _mentions(flat: FlatSchema, keys: Sequence[str]) -> bool:
    own = {
        "properties": flat.properties, "additionalProperties": flat.others, "patternProperties": flat.named,
        "required": flat.required, "propertyNames": flat.names, "items": flat.items, "prefixItems": flat.first,
        "pattern": flat.patterns,
    }  # fmt: skip
    return any(own.get(key) or key in flat.words for key in keys)


def _weight(shape: Shape, most: int) -> int:
    """Return the number of schemas within a shape, counted up to `most`."""
    found, stack = 0, [shape]
    while stack and found <= most:
        one = stack.pop()
        found += 1
        stack += mapping(one.get("properties")).values()
        if "items" in one and "enum" not in one:
            stack.append(one["items"])
    return found


def _sort(value: Any) -> str:
    """Return the type of a value as lists of values keep it."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict | list):
        return "object" if isinstance(value, dict) else "array"
    return "number" if isinstance(value, float) else "integer"


_FORMAT_LENGTHS: Final = {"uuid": (36, 36), "date": (10, 10), "date-time": (20, 20)}


def _text(flat: FlatSchema, told: Shape) -> Shape | None:
    words = flat.words
    least = int(max(0, words.get("minLength", 0)))
    most = int(words["maxLength"]) if "maxLength" in words else None
    if most is not None and most < least:
        return None
    made: Shape = {**told, "type": "string"}
    shortest, longest = _FORMAT_LENGTHS.get(words.get("format", ""), (0, 0))
    if longest and (longest < least or (most is not None and shortest > most)):
        made.pop("format", None)
    if flat.patterns:
        source, values = validation.generated(flat.patterns, least, most)
        told_format = words.get("format", "")
        if values:
            values = tuple(one for one in values if has_format(one, told_format))
        if (
            source
            and told_format
            and not all(has_format(one, told_format) for one in validation.texts(source, 20))
        ):
            values = tuple(
                one
                for one in _EXAMPLES.get(told_format, ())
                if all(validation.matches(pattern, one) for pattern in flat.patterns)
            )
            source = ""
        if source:
            made["pattern"] = source
            return made
        return {**made, "enum": list(values)} if values else None
    if least:
        made["minLength"] = least
    if most is not None:
        made["maxLength"] = most
    return made


def _number(flat: FlatSchema, kind: str, told: Shape) -> Shape | None:
    words = flat.words
    step = Decimal(str(words["multipleOf"])) if words.get("multipleOf", 0) > 0 else None
    unit = Decimal(1) if kind == "integer" else Decimal("0.01")
    if kind == "integer" and step is not None and step != step.to_integral_value():
        step = Decimal(str(_common_multiple(words["multipleOf"], 1)))
    ends: dict[str, Decimal | None] = {}
    for key, over, sign in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        plain = Decimal(str(words[key])) if key in words else None
        open_ = Decimal(str(words[over])) if over in words else None
        inner = None if open_ is None else open_ + sign * (step or unit)
        both = [one for one in (plain, inner) if one is not None]
        ends[key] = (max(both) if sign == 1 else min(both)) if both else None
    low, high = ends["minimum"], ends["maximum"]
    if low is not None and high is not None and low > high:
        low, high = (
            Decimal(str(words.get("minimum", words.get("exclusiveMinimum")))),
            Decimal(str(words.get("maximum", words.get("exclusiveMaximum")))),
        )
        if kind == "integer" or low >= high:
            return None if low != high or "exclusiveMinimum" in words or "exclusiveMaximum" in words else {
                **told, "type": kind, "minimum": _json(low), "maximum": _json(low)}  # fmt: skip
        low, high = low + (high - low) / 4, high - (high - low) / 4
    if kind == "integer":
        low = None if low is None else low.to_integral_value("ROUND_CEILING")
        high = None if high is None else high.to_integral_value("ROUND_FLOOR")
    widest = Decimal(_WIDEST.get(str(words.get("format", "")), _WIDEST["int64"]))
    made: Shape = {**told, "type": kind}
    if low is not None:
        made["minimum"] = _json(max(low, -widest))
    if high is not None:
        made["maximum"] = _json(min(high, widest))
    if low is not None and high is not None and made["minimum"] > made["maximum"]:
        return None
    if step is not None:
        made["multipleOf"] = _json(step)
    return made


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
                name: sample(one, _mixed(k, place))
                for place, (name, one) in enumerate(mapping(shape.get("properties")).items())
                if LEFT_OUT not in one
            }
        case "array":
            low = shape.get("minItems", 1)
            count = low + (k // 2 + k) % (shape.get("maxItems", low) - low + 1)
            return [sample(shape["items"], _mixed(k, place) if k else place) for place in range(count)]
        case "boolean":
            return k % 2 == 0
        case "null":
            return None
        case "number" | "integer":
            return _sample_number(shape, k)
    if "pattern" in shape:
        return validation.texts(shape["pattern"], 64)[k % 64]
    known = _EXAMPLES.get(str(shape.get("format", "")))
    least, most = shape.get("minLength", 0), shape.get("maxLength")
    if known:
        fitting = [one for one in known if len(one) >= least and (most is None or len(one) <= most)]
        if fitting:
            return fitting[k % len(fitting)]
    text = f"text {chr(97 + k % 26)}{k // 26 or ''}"
    text += "a" * (least - len(text))
    return text if most is None else text[-most:] if most else ""


def _mixed(k: int, place: int) -> int:
    """Return a number by which neighboring properties do not vary together."""
    return 0 if k == 0 else (k * 2654435761 + place * 40503 * k >> 7) % 10_007


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


def sent(value: Any) -> Any:
    """Return a value without what is not sent."""
    if isinstance(value, dict):
        return {name: sent(one) for name, one in value.items() if one is not LOCKED}
    if isinstance(value, list):
        return [sent(one) for one in value if one is not LOCKED]
    return None if value is LOCKED else value

"""Decide whether a value is valid by a JSON Schema: drafts 4 to 2020-12, and the dialect of OpenAPI.

Keywords of all drafts are recognized together, because documents mix them: a boolean `exclusiveMinimum` is that of
draft 4, a list of `items` that of the drafts before 2020-12, `nullable` that of OpenAPI 3.0. References outside the
document accept every value. Formats are checked if the value can be decided without a network.

Regular expressions (ECMA-262) match anywhere in a text (JSON Schema, 6.3.3), and texts that match are generated.
Lookarounds cannot be generated: such an expression is generated without them, and texts that do not match the whole
expression are left out.
"""

from __future__ import annotations

import ipaddress
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, TypeGuard
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from uuid import UUID

import numpy as np
import orjson

from webapp import limits
from webapp.engine.regex import patterns
from webapp.engine.regex.patterns import RegexError

_DRAWS: Final = 64  # chosen: texts by which an expression is verified
_TRIES: Final = 4_000  # chosen: texts among which those that match are searched
_MAX_TEXTS: Final = 50  # chosen: texts of a list that stands for an expression
_KEY: Final = np.uint64(0x5C6E3A)
_CLASSES: Final = {
    "L": "A-Za-zÀ-ÖØ-öø-ʯΑ-ωА-я", "Lu": "A-ZÀ-ÖØ-Þ", "Ll": "a-zß-öø-ÿ", "N": "0-9", "Nd": "0-9", "P": "!-/:-@\\[-`{-~",
    "S": "$+<=>^`|~", "Z": " ", "Zs": " ", "M": "\u0300-\u036f", "Letter": "A-Za-zÀ-ÖØ-öø-ʯ",
    "Alphabetic": "A-Za-zÀ-ÖØ-öø-ʯ",
}  # fmt: skip
"""Character classes of Unicode (`\\p{L}`), approximately."""


@lru_cache(maxsize=2_000)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(_python(pattern), re.ASCII if "\\p" not in pattern else 0)
    except (re.error, OverflowError, RecursionError):
        return None


def _python(pattern: str) -> str:
    """Return an ECMA-262 expression in Python's syntax."""
    source = re.sub(r"\(\?<([A-Za-z_]\w*)>", r"(?P<\1>", pattern)
    source = re.sub(r"\\k<([A-Za-z_]\w*)>", r"(?P=\1)", source)
    parts, position, inside = [], 0, False
    while position < len(source):
        char = source[position]
        if char == "\\" and position + 1 < len(source):
            named = re.match(r"\\([pP])\{(?:\w+=)?(\w+)\}", source[position:])
            if named:
                char_class = _CLASSES.get(named[2], _CLASSES.get(named[2][:1], "A-Za-z"))
                parts.append(char_class if inside else f"[{'^' if named[1] == 'P' else ''}{char_class}]")
                position += named.end()
                continue
            code_point = re.match(r"\\u\{([0-9A-Fa-f]+)\}", source[position:])
            if code_point:
                parts.append(re.escape(chr(min(int(code_point[1], 16), 0x10FFFF))))
                position += code_point.end()
                continue
            after = source[position + 1]
            is_escape = after in "dDwWsSbBnrtfv0123456789ux" or not (after.isalnum() or after == "_")
            parts.append("\\" + after if is_escape else after)
            position += 2
            continue
        if inside:
            inside = char != "]"
            parts.append("\\[" if char == "[" else char)
        elif char == "[":
            inside = True
            parts.append(char)
            if source.startswith("[^]", position):
                parts[-1], position, inside = r"[\s\S]", position + 2, False
            elif source.startswith("[]", position):
                parts[-1], position, inside = r"(?!)", position + 1, False
        else:
            parts.append(r"\Z" if char == "$" else char)
        position += 1
    return "".join(parts)


def is_supported_pattern(pattern: str) -> bool:
    """Return whether an expression can be read."""
    return _compiled(pattern) is not None


def matches(pattern: str, text: str) -> bool:
    """Return whether an expression matches in a text. One that cannot be read matches nothing."""
    compiled = _compiled(pattern)
    return compiled is not None and compiled.search(text) is not None


_PLAIN_CLASSES: Final = {
    "Lu": "A-Z", "Ll": "a-z", "N": "0-9", "Nd": "0-9", "P": "!-/", "Z": " ", "Zs": " ",
}  # fmt: skip
"""Character classes of Unicode as the engine generates them; those that are not listed are letters."""
_LOOKAROUND: Final = re.compile(r"\(\?(=|!|<=|<!)")


def _without_lookarounds(pattern: str) -> str:
    while match := _LOOKAROUND.search(pattern):
        depth, position, inside = 0, match.start(), False
        while position < len(pattern):
            char = pattern[position]
            if char == "\\":
                position += 2
                continue
            if inside:
                inside = char != "]"
            elif char == "[":
                inside = True
            elif char in "()":
                depth += 1 if char == "(" else -1
                if depth == 0:
                    break
            position += 1
        pattern = pattern[: match.start()] + pattern[position + 1 :]
    return pattern


def _generator_source(pattern: str) -> str:
    """Return an expression of which the engine generates whole texts."""
    source = _without_lookarounds(pattern)
    source = re.sub(r"\(\?<[A-Za-z_]\w*>", "(?:", source)
    source = re.sub(
        r"\\p\{(?:\w+=)?(\w+)\}", lambda match: f"[{_PLAIN_CLASSES.get(match[1], 'A-Za-z')}]", source
    )
    source = re.sub(r"\[((?:\[\w|[^\[\]])*?)\[([A-Za-z0-9-]+)\]", r"[\1\2", source)  # a class within a class
    source = source.replace(r"\/", "/").replace(r"\-", "-" if "[" not in source else r"\-")
    source = re.sub(r"\\[bB]", "", source)
    return source.replace(r"[\s\S]", ".").replace(r"[\S\s]", ".").replace("[^]", ".")


_REPEATED: Final = re.compile(r"(\^?)(\[(?:\\.|[^\]\\])+\]|\\[dw]|\.)([*+]|\{(\d+),\})(\$?)")


def _with_length(pattern: str, minimum: int, maximum: int | None) -> str:
    """Return a repeated class with the wanted number of repetitions."""
    match = _REPEATED.fullmatch(pattern)
    if not match:
        return pattern
    low = max(minimum, int(match[4]) if match[4] else (1 if match[3] == "+" else 0))
    high = maximum if maximum is not None else low + 12
    return f"{match[2]}{{{low},{max(low, min(high, low + 12))}}}"


@lru_cache(maxsize=2_000)
def build_text_generator(
    all_of: tuple[str, ...], minimum: int, maximum: int | None
) -> tuple[str, tuple[str, ...]]:
    """Return how texts that match all of some expressions, and have some length, are generated.

    Either an expression of the engine whose every text fits, or ("" and) a list of texts that fit; if there
    are none, both are empty.
    """

    def fits(text: str) -> bool:
        has_length = len(text) >= minimum and (maximum is None or len(text) <= maximum)
        return has_length and all(matches(item, text) for item in all_of)

    known = all(map(is_supported_pattern, all_of))
    matching: list[str] = []
    for pattern in all_of:
        for source in dict.fromkeys(
            (_with_length(_generator_source(pattern), minimum, maximum), _generator_source(pattern))
        ):
            try:
                compiled = patterns.compile_pattern(source)
                samples = compiled.draw(_KEY, np.arange(_DRAWS, dtype=np.uint64)).to_pylist()
            except (RegexError, ValueError, OverflowError, RecursionError):
                continue
            if not known:
                if all(
                    minimum <= len(sample) <= (maximum if maximum is not None else len(sample))
                    for sample in samples
                ):
                    return source, ()
                continue
            if all(map(fits, samples)):
                return source, ()
            more = compiled.draw(_KEY, np.arange(_DRAWS, _TRIES, dtype=np.uint64)).to_pylist()
            matching += [sample for sample in (*samples, *more) if fits(sample)]
            if not matching:  # texts may fit after their last character is repeated, or their end is left out
                adjusted = [
                    sample + sample[-1] * (minimum - len(sample))
                    for sample in samples
                    if sample and len(sample) < minimum
                ]
                adjusted += [
                    sample[:maximum] for sample in samples if maximum is not None and len(sample) > maximum
                ]
                matching += [item for item in adjusted if fits(item)]
            if len(set(matching)) >= _MAX_TEXTS:
                break
    return "", tuple(list(dict.fromkeys(matching))[:_MAX_TEXTS])


@lru_cache(maxsize=500)
def generate_texts(source: str, count: int) -> tuple[str, ...]:
    """Return texts that the engine generates for an expression."""
    result = patterns.compile_pattern(source).draw(_KEY, np.arange(count, dtype=np.uint64))
    return tuple(result.to_pylist())


# --- Validation ---------------------------------------------------------------------------------------------

Schema = Mapping[str, Any] | bool
_INDEX: Final = re.compile(r"[0-9]{1,9}")
_MAX_REFERENCES: Final = 60  # chosen: references that are followed one after another
_LITERAL: Final = ("enum", "const", "default", "example", "examples")


class _Locked:
    """The value of a property that the target sets itself: valid by every schema, and not sent."""


LOCKED: Final = _Locked()


OUTSIDE: Final = "is in another document."
"""The end of the message of references that lead out of the document."""


class UnresolvedReferenceError(Exception):
    """A reference that does not lead to a schema of the document."""


class BudgetExceededError(Exception):
    """More schemas than the limit were visited."""


class Document:
    """A document with its schemas: follows references, and validates."""

    def __init__(self, content: Any, legacy: bool = False) -> None:
        self.root = content
        self.legacy = legacy or "draft-0" in str(
            content.get("$schema", "") if isinstance(content, dict) else ""
        )
        """Whether `$ref` hides the keywords next to it, as in drafts up to 7 and in OpenAPI 3.0."""
        self.visits_left = limits.DOCUMENT_VISITS
        """The number of schemas that may still be visited."""
        self.lenient = False
        """Whether a value may satisfy several schemas of `oneOf`. Documents with discriminators often mean that."""
        self._by_id: dict[str, Any] | None = None
        self._targets: dict[str, Any] = {}

    # --- References -------------------------------------------------------------------------------------------

    def target(self, reference: str) -> Any:
        """Return the schema that a reference leads to. Raises `UnresolvedReferenceError`."""
        if reference not in self._targets:
            self._targets[reference] = self._target(reference)
        return self._targets[reference]

    def _target(self, reference: str) -> Any:
        schema: Any = self.root
        address, fragment = urldefrag(reference) if not reference.startswith("#") else ("", reference[1:])
        if address:
            by_id = self._names()
            candidates = [item for item in (address, address.rstrip("#")) if item in by_id]
            if not candidates:
                candidates = [item for item in by_id if item.rpartition("/")[2] == address and address]
            if not candidates:
                raise UnresolvedReferenceError(f'"{reference[:200]}" {OUTSIDE}')
            schema = by_id[candidates[0]]
        if fragment and not fragment.startswith("/"):
            anchor = self._names().get("#" + fragment)
            if anchor is None:
                raise UnresolvedReferenceError(f'"{reference[:200]}" does not exist in the document.')
            return anchor
        for part in fragment.split("/")[1:]:
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(schema, list) and _INDEX.fullmatch(name) and int(name) < len(schema):
                schema = schema[int(name)]
            elif isinstance(schema, dict) and name in schema:
                schema = schema[name]
            else:
                raise UnresolvedReferenceError(f'"{reference[:200]}" does not exist in the document.')
        return schema

    def _names(self) -> dict[str, Any]:
        """Return schemas by `$id` (as written, and as an absolute address) and by `$anchor`."""
        if self._by_id is None:
            self._by_id = {}
            stack: list[tuple[Any, str]] = [(self.root, "")]
            while stack:
                value, base = stack.pop()
                if isinstance(value, list):
                    stack.extend((item, base) for item in value)
                elif isinstance(value, dict):
                    for key in ("$id", "id"):
                        one = value.get(key)
                        if isinstance(one, str) and one:
                            if one.startswith("#"):
                                self._by_id.setdefault(one, value)
                                continue
                            base = _join_url(base, one)
                            self._by_id.setdefault(base.rstrip("#"), value)
                            self._by_id.setdefault(one.rstrip("#"), value)
                    for key in ("$anchor", "$dynamicAnchor"):
                        if isinstance(value.get(key), str):
                            self._by_id.setdefault("#" + value[key], value)
                    stack.extend((item, base) for key, item in value.items() if key not in _LITERAL)
        return self._by_id

    def count_visit(self) -> None:
        """Count a schema. Raises `BudgetExceededError`."""
        self.visits_left -= 1
        if self.visits_left < 0:
            raise BudgetExceededError

    # --- Validation -------------------------------------------------------------------------------------------

    def is_valid(self, value: Any, schema: Any, depth: int = 0) -> bool:
        """Return whether a value is valid by a schema. Raises `BudgetExceededError`."""
        self.count_visit()
        if value is LOCKED or schema is True or not isinstance(schema, dict):
            return schema is not False or value is LOCKED
        reference = schema.get("$ref", schema.get("$dynamicRef"))
        if isinstance(reference, str):
            if depth > _MAX_REFERENCES:
                return True
            try:
                target = self.target(reference)
            except UnresolvedReferenceError:
                target = True
            if not self.is_valid(value, target, depth + 1):
                return False
            if self.legacy:
                return True
        if value is None and schema.get("nullable") is True:
            return True
        kinds = schema.get("type")
        if isinstance(kinds, str | list) and not any(
            is_type(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)
        ):
            return False
        if "const" in schema and not is_equal(value, schema["const"]):
            return False
        choices = schema.get("enum")
        if isinstance(choices, list) and not any(is_equal(value, choice) for choice in choices):
            return False
        if isinstance(value, str) and not _text(value, schema):
            return False
        if is_number(value) and not _number(value, schema):
            return False
        return (
            self._check_combinations(value, schema, depth)
            and (not isinstance(value, dict) or self._object(value, schema, depth))
            and (not isinstance(value, list) or self._array(value, schema, depth))
        )

    def _check_combinations(self, value: Any, schema: Mapping[str, Any], depth: int) -> bool:
        if not all(self.is_valid(value, item, depth + 1) for item in as_list(schema.get("allOf"))):
            return False
        choices = schema.get("anyOf")
        if isinstance(choices, list) and not any(
            self.is_valid(value, choice, depth + 1) for choice in choices
        ):
            return False
        choices = schema.get("oneOf")
        if isinstance(choices, list):
            count = 0
            for choice in choices:
                count += self.is_valid(value, choice, depth + 1)
                if count > 1 and not self.lenient:
                    return False
            if not count:
                return False
        if "not" in schema and self.is_valid(value, schema["not"], depth + 1):
            return False
        if "if" in schema:
            branch = "then" if self.is_valid(value, schema["if"], depth + 1) else "else"
            return branch not in schema or self.is_valid(value, schema[branch], depth + 1)
        return True

    def _object(self, value: dict[str, Any], schema: Mapping[str, Any], depth: int) -> bool:
        present = {name for name, item in value.items() if item is not LOCKED}
        if not set(string_items(schema.get("required"))) <= value.keys():
            return False
        minimum, maximum = schema.get("minProperties"), schema.get("maxProperties")
        if (is_number(minimum) and len(present) < minimum) or (is_number(maximum) and len(present) > maximum):
            return False
        properties, patterns = (
            as_mapping(schema.get("properties")),
            as_mapping(schema.get("patternProperties")),
        )
        others, names = schema.get("additionalProperties"), schema.get("propertyNames")
        for name, item in value.items():
            known = name in properties
            if known and not self.is_valid(item, properties[name], depth + 1):
                return False
            for pattern, subschema in patterns.items():
                if matches(pattern, name):
                    known = True
                    if not self.is_valid(item, subschema, depth + 1):
                        return False
            if not known and others is not None and not self.is_valid(item, others, depth + 1):
                return False
            if names is not None and name in present and not self.is_valid(name, names, depth + 1):
                return False
        for key in ("dependencies", "dependentRequired", "dependentSchemas"):
            for name, required in as_mapping(schema.get(key)).items():
                if name not in present:
                    continue
                if isinstance(required, list):
                    if not set(string_items(required)) <= value.keys():
                        return False
                elif not self.is_valid(value, required, depth + 1):
                    return False
        if "unevaluatedProperties" in schema:
            rest = present - self._evaluated(value, schema, depth)
            subschema = schema["unevaluatedProperties"]
            return all(self.is_valid(value[name], subschema, depth + 1) for name in rest)
        return True

    def _evaluated(self, value: dict[str, Any], schema: Any, depth: int) -> set[str]:
        """Return the names of properties that a schema has evaluated (JSON Schema 2020-12, 11.3)."""
        self.count_visit()
        if not isinstance(schema, dict) or depth > _MAX_REFERENCES:
            return set()
        properties, patterns = (
            as_mapping(schema.get("properties")),
            as_mapping(schema.get("patternProperties")),
        )
        names = {name for name in value if name in properties}
        names |= {name for name in value if any(matches(pattern, name) for pattern in patterns)}
        if "additionalProperties" in schema:
            return set(value)
        parts = as_list(schema.get("allOf"))
        if isinstance(schema.get("$ref"), str):
            try:
                parts = [*parts, self.target(schema["$ref"])]
            except UnresolvedReferenceError:
                return set(value)
        for key in ("anyOf", "oneOf"):
            parts = [
                *parts,
                *(item for item in as_list(schema.get(key)) if self.is_valid(value, item, depth + 1)),
            ]
        if "if" in schema:
            condition_holds = self.is_valid(value, schema["if"], depth + 1)
            parts = [
                *parts,
                *([schema["if"]] if condition_holds else []),
                schema.get("then" if condition_holds else "else"),
            ]
        parts += [item for name, item in as_mapping(schema.get("dependentSchemas")).items() if name in value]
        return names.union(*(self._evaluated(value, part, depth + 1) for part in parts))

    def _array(self, value: list[Any], schema: Mapping[str, Any], depth: int) -> bool:
        minimum, maximum = schema.get("minItems"), schema.get("maxItems")
        if (is_number(minimum) and len(value) < minimum) or (is_number(maximum) and len(value) > maximum):
            return False
        if schema.get("uniqueItems") is True and len({canonical(item) for item in value}) < len(value):
            return False
        first, items = schema.get("prefixItems"), schema.get("items")
        if isinstance(items, list):
            first, items = items, schema.get("additionalItems")
        first = first if isinstance(first, list) else []
        if not all(
            self.is_valid(item, subschema, depth + 1) for item, subschema in zip(value, first, strict=False)
        ):
            return False
        if items is not None and not all(
            self.is_valid(item, items, depth + 1) for item in value[len(first) :]
        ):
            return False
        if "contains" in schema:
            count = sum(self.is_valid(item, schema["contains"], depth + 1) for item in value)
            low, high = schema.get("minContains", 1), schema.get("maxContains")
            return not ((is_number(low) and count < low) or (is_number(high) and count > high))
        return True


def _join_url(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:
        return address


# --- Values -------------------------------------------------------------------------------------------------


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return an object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a list, or an empty one for anything else."""
    return value if isinstance(value, list) else []


def string_items(value: Any) -> list[str]:
    """Return the texts of a list."""
    return [item for item in as_list(value) if isinstance(item, str)]


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether a value is a number of JSON."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_type(value: Any, kind: Any) -> bool:
    """Return whether a value has a type of JSON Schema."""
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string" | "file":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "number":
            return is_number(value)
        case "integer":
            return is_number(value) and (isinstance(value, int) or value.is_integer())
    return True


def canonical(value: Any) -> bytes:
    """Return a text that equal values share: 1 and 1.0 are equal, 1 and true are not."""
    return orjson.dumps(
        _normalized(value), option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str
    )


def _normalized(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _normalized(item) for key, item in value.items()}
    return [_normalized(item) for item in value] if isinstance(value, list) else value


def is_equal(value: Any, other: Any) -> bool:
    """Return whether two values are equal in JSON."""
    if isinstance(value, str) or isinstance(other, str):
        return type(value) is type(other) and value == other
    return canonical(value) == canonical(other)


def _text(value: str, schema: Mapping[str, Any]) -> bool:
    minimum, maximum = schema.get("minLength"), schema.get("maxLength")
    if (is_number(minimum) and len(value) < minimum) or (is_number(maximum) and len(value) > maximum):
        return False
    pattern, format_name = schema.get("pattern"), schema.get("format")
    if isinstance(pattern, str) and not matches(pattern, value):
        return False
    return not isinstance(format_name, str) or has_format(value, format_name)


def _number(value: Any, schema: Mapping[str, Any]) -> bool:
    low, high = schema.get("minimum"), schema.get("maximum")
    over, under, step = (
        schema.get("exclusiveMinimum"),
        schema.get("exclusiveMaximum"),
        schema.get("multipleOf"),
    )
    if is_number(low) and (value < low or (over is True and value == low)):
        return False
    if is_number(high) and (value > high or (under is True and value == high)):
        return False
    if (is_number(over) and value <= over) or (is_number(under) and value >= under):
        return False
    if is_number(step) and step > 0:
        return Decimal(str(value)) % Decimal(str(step)) == 0
    return True


_HOST: Final = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*\.?")
_EMAIL: Final = re.compile(r"[^@\s\"(),:;<>\[\]\\]+@[A-Za-z0-9.-]+")
_DURATION: Final = re.compile(
    r"P(?!$)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?)"
)  # RFC 3339, appendix A
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_TIME: Final = re.compile(r"(\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def has_format(value: str, name: str) -> bool:
    """Return whether a text has a format; those that are not known accept every text."""
    try:
        match name:
            case "date-time":
                match = _MOMENT.fullmatch(value)
                return match is not None and bool(datetime.fromisoformat(f"{match[1]}T{match[2]}"))
            case "date":
                return len(value) == 10 and bool(date.fromisoformat(value))
            case "time":
                match = _TIME.fullmatch(value)
                return match is not None and time.fromisoformat(match[1]) is not None
            case "duration":
                return _DURATION.fullmatch(value) is not None
            case "email" | "idn-email":
                return _EMAIL.fullmatch(value) is not None
            case "hostname":
                return len(value) <= 253 and _HOST.fullmatch(value) is not None
            case "ipv4":
                return bool(ipaddress.IPv4Address(value))
            case "ipv6":
                return bool(ipaddress.IPv6Address(value))
            case "uuid":
                return len(value) == 36 and bool(UUID(value))
            case "uri" | "iri":
                return bool(urlsplit(value).scheme) and re.search(r"[\s<>\"{}|\\^`]", value) is None
            case "uri-reference" | "iri-reference":
                return re.search(r"[\s<>\"{}|\\^`]", value) is None
            case "uri-template":
                return value.count("{") == value.count("}")
            case "json-pointer":
                return value == "" or value.startswith("/")
            case "regex":
                return is_supported_pattern(value)
    except ValueError:
        return False
    return True


def deduplicate(values: Sequence[Any]) -> Iterator[Any]:
    """Yield each value once, in their order."""
    seen: set[bytes] = set()
    for value in values:
        key = canonical(value)
        if key not in seen:
            seen.add(key)
            yield value

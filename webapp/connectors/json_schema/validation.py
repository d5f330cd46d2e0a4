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
_KEPT: Final = 50  # chosen: texts of a list that stands for an expression
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
    found = re.sub(r"\(\?<([A-Za-z_]\w*)>", r"(?P<\1>", pattern)
    found = re.sub(r"\\k<([A-Za-z_]\w*)>", r"(?P=\1)", found)
    out, at, inside = [], 0, False
    while at < len(found):
        char = found[at]
        if char == "\\" and at + 1 < len(found):
            named = re.match(r"\\([pP])\{(?:\w+=)?(\w+)\}", found[at:])
            if named:
                told = _CLASSES.get(named[2], _CLASSES.get(named[2][:1], "A-Za-z"))
                out.append(told if inside else f"[{'^' if named[1] == 'P' else ''}{told}]")
                at += named.end()
                continue
            wide = re.match(r"\\u\{([0-9A-Fa-f]+)\}", found[at:])
            if wide:
                out.append(re.escape(chr(min(int(wide[1], 16), 0x10FFFF))))
                at += wide.end()
                continue
            after = found[at + 1]
            kept = after in "dDwWsSbBnrtfv0123456789ux" or not (after.isalnum() or after == "_")
            out.append("\\" + after if kept else after)
            at += 2
            continue
        if inside:
            inside = char != "]"
            out.append("\\[" if char == "[" else char)
        elif char == "[":
            inside = True
            out.append(char)
            if found.startswith("[^]", at):
                out[-1], at, inside = r"[\s\S]", at + 2, False
            elif found.startswith("[]", at):
                out[-1], at, inside = r"(?!)", at + 1, False
        else:
            out.append(r"\Z" if char == "$" else char)
        at += 1
    return "".join(out)


def readable(pattern: str) -> bool:
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
    while found := _LOOKAROUND.search(pattern):
        depth, at, inside = 0, found.start(), False
        while at < len(pattern):
            char = pattern[at]
            if char == "\\":
                at += 2
                continue
            if inside:
                inside = char != "]"
            elif char == "[":
                inside = True
            elif char in "()":
                depth += 1 if char == "(" else -1
                if depth == 0:
                    break
            at += 1
        pattern = pattern[: found.start()] + pattern[at + 1 :]
    return pattern


def _generating(pattern: str) -> str:
    """Return an expression of which the engine generates whole texts."""
    found = _without_lookarounds(pattern)
    found = re.sub(r"\(\?<[A-Za-z_]\w*>", "(?:", found)
    found = re.sub(r"\\p\{(?:\w+=)?(\w+)\}", lambda one: f"[{_PLAIN_CLASSES.get(one[1], 'A-Za-z')}]", found)
    found = re.sub(r"\[((?:\[\w|[^\[\]])*?)\[([A-Za-z0-9-]+)\]", r"[\1\2", found)  # a class within a class
    found = found.replace(r"\/", "/").replace(r"\-", "-" if "[" not in found else r"\-")
    found = re.sub(r"\\[bB]", "", found)
    return found.replace(r"[\s\S]", ".").replace(r"[\S\s]", ".").replace("[^]", ".")


_REPEATED: Final = re.compile(r"(\^?)(\[(?:\\.|[^\]\\])+\]|\\[dw]|\.)([*+]|\{(\d+),\})(\$?)")


def _of_length(pattern: str, least: int, most: int | None) -> str:
    """Return a repeated class with the wanted number of repetitions."""
    found = _REPEATED.fullmatch(pattern)
    if not found:
        return pattern
    low = max(least, int(found[4]) if found[4] else (1 if found[3] == "+" else 0))
    high = most if most is not None else low + 12
    return f"{found[2]}{{{low},{max(low, min(high, low + 12))}}}"


@lru_cache(maxsize=2_000)
def generated(all_of: tuple[str, ...], least: int, most: int | None) -> tuple[str, tuple[str, ...]]:
    """Return how texts that match all of some expressions, and have some length, are generated.

    Either an expression of the engine whose every text fits, or ("" and) a list of texts that fit; if there
    are none, both are empty.
    """

    def fits(text: str) -> bool:
        long = len(text) >= least and (most is None or len(text) <= most)
        return long and all(matches(one, text) for one in all_of)

    known = all(map(readable, all_of))
    found: list[str] = []
    for pattern in all_of:
        for source in dict.fromkeys((_of_length(_generating(pattern), least, most), _generating(pattern))):
            try:
                compiled = patterns.compile_pattern(source)
                drawn = compiled.draw(_KEY, np.arange(_DRAWS, dtype=np.uint64)).to_pylist()
            except (RegexError, ValueError, OverflowError, RecursionError):
                continue
            if not known:
                if all(least <= len(one) <= (most if most is not None else len(one)) for one in drawn):
                    return source, ()
                continue
            if all(map(fits, drawn)):
                return source, ()
            more = compiled.draw(_KEY, np.arange(_DRAWS, _TRIES, dtype=np.uint64)).to_pylist()
            found += [one for one in (*drawn, *more) if fits(one)]
            if not found:  # texts may fit after their last character is repeated, or their end is left out
                changed = [one + one[-1] * (least - len(one)) for one in drawn if one and len(one) < least]
                changed += [one[:most] for one in drawn if most is not None and len(one) > most]
                found += [one for one in changed if fits(one)]
            if len(set(found)) >= _KEPT:
                break
    return "", tuple(list(dict.fromkeys(found))[:_KEPT])


@lru_cache(maxsize=500)
def texts(source: str, count: int) -> tuple[str, ...]:
    """Return texts that the engine generates for an expression."""
    drawn = patterns.compile_pattern(source).draw(_KEY, np.arange(count, dtype=np.uint64))
    return tuple(drawn.to_pylist())


# --- Validation ---------------------------------------------------------------------------------------------

Schema = Mapping[str, Any] | bool
_PLACE: Final = re.compile(r"[0-9]{1,9}")
_TURNS: Final = 60  # chosen: references that are followed one after another
_LITERAL: Final = ("enum", "const", "default", "example", "examples")


class _Locked:
    """The value of a property that the target sets itself: valid by every schema, and not sent."""


LOCKED: Final = _Locked()


OUTSIDE: Final = "is in another document."
"""The end of the message of references that lead out of the document."""


class UnresolvedReference(Exception):
    """A reference that does not lead to a schema of the document."""


class Budget(Exception):
    """More schemas than the limit were visited."""


class Document:
    """A document with its schemas: follows references, and validates."""

    def __init__(self, whole: Any, legacy: bool = False) -> None:
        self.whole = whole
        self.legacy = legacy or "draft-0" in str(whole.get("$schema", "") if isinstance(whole, dict) else "")
        """Whether `$ref` hides the keywords next to it, as in drafts up to 7 and in OpenAPI 3.0."""
        self.left = limits.DOCUMENT_VISITS
        """The number of schemas that may still be visited."""
        self.lenient = False
        """Whether a value may satisfy several schemas of `oneOf`. Documents with discriminators often mean that."""
        self._named: dict[str, Any] | None = None
        self._found: dict[str, Any] = {}

    # --- References -------------------------------------------------------------------------------------------

    def target(self, reference: str) -> Any:
        """Return the schema that a reference leads to. Raises `UnresolvedReference`."""
        if reference not in self._found:
            self._found[reference] = self._target(reference)
        return self._found[reference]

    def _target(self, reference: str) -> Any:
        found: Any = self.whole
        address, fragment = urldefrag(reference) if not reference.startswith("#") else ("", reference[1:])
        if address:
            named = self._names()
            known = [one for one in (address, address.rstrip("#")) if one in named]
            if not known:
                known = [one for one in named if one.rpartition("/")[2] == address and address]
            if not known:
                raise UnresolvedReference(f'"{reference[:200]}" {OUTSIDE}')
            found = named[known[0]]
        if fragment and not fragment.startswith("/"):
            anchor = self._names().get("#" + fragment)
            if anchor is None:
                raise UnresolvedReference(f'"{reference[:200]}" does not exist in the document.')
            return anchor
        for part in fragment.split("/")[1:]:
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and _PLACE.fullmatch(name) and int(name) < len(found):
                found = found[int(name)]
            elif isinstance(found, dict) and name in found:
                found = found[name]
            else:
                raise UnresolvedReference(f'"{reference[:200]}" does not exist in the document.')
        return found

    def _names(self) -> dict[str, Any]:
        """Return schemas by `$id` (as written, and as an absolute address) and by `$anchor`."""
        if self._named is None:
            self._named = {}
            stack: list[tuple[Any, str]] = [(self.whole, "")]
            while stack:
                value, base = stack.pop()
                if isinstance(value, list):
                    stack.extend((one, base) for one in value)
                elif isinstance(value, dict):
                    for key in ("$id", "id"):
                        one = value.get(key)
                        if isinstance(one, str) and one:
                            if one.startswith("#"):
                                self._named.setdefault(one, value)
                                continue
                            base = _joined(base, one)
                            self._named.setdefault(base.rstrip("#"), value)
                            self._named.setdefault(one.rstrip("#"), value)
                    for key in ("$anchor", "$dynamicAnchor"):
                        if isinstance(value.get(key), str):
                            self._named.setdefault("#" + value[key], value)
                    stack.extend((one, base) for key, one in value.items() if key not in _LITERAL)
        return self._named

    def visit(self) -> None:
        """Count a schema. Raises `Budget`."""
        self.left -= 1
        if self.left < 0:
            raise Budget

    # --- Validation -------------------------------------------------------------------------------------------

    def valid(self, value: Any, schema: Any, turns: int = 0) -> bool:
        """Return whether a value is valid by a schema. Raises `Budget`."""
        self.visit()
        if value is LOCKED or schema is True or not isinstance(schema, dict):
            return schema is not False or value is LOCKED
        reference = schema.get("$ref", schema.get("$dynamicRef"))
        if isinstance(reference, str):
            if turns > _TURNS:
                return True
            try:
                there = self.target(reference)
            except UnresolvedReference:
                there = True
            if not self.valid(value, there, turns + 1):
                return False
            if self.legacy:
                return True
        if value is None and schema.get("nullable") is True:
            return True
        kinds = schema.get("type")
        if isinstance(kinds, str | list) and not any(
            is_of(value, one) for one in ([kinds] if isinstance(kinds, str) else kinds)
        ):
            return False
        if "const" in schema and not same(value, schema["const"]):
            return False
        choices = schema.get("enum")
        if isinstance(choices, list) and not any(same(value, one) for one in choices):
            return False
        if isinstance(value, str) and not _text(value, schema):
            return False
        if is_number(value) and not _number(value, schema):
            return False
        return (
            self._combined(value, schema, turns)
            and (not isinstance(value, dict) or self._object(value, schema, turns))
            and (not isinstance(value, list) or self._array(value, schema, turns))
        )

    def _combined(self, value: Any, schema: Mapping[str, Any], turns: int) -> bool:
        if not all(self.valid(value, one, turns + 1) for one in listed(schema.get("allOf"))):
            return False
        choices = schema.get("anyOf")
        if isinstance(choices, list) and not any(self.valid(value, one, turns + 1) for one in choices):
            return False
        choices = schema.get("oneOf")
        if isinstance(choices, list):
            hits = 0
            for one in choices:
                hits += self.valid(value, one, turns + 1)
                if hits > 1 and not self.lenient:
                    return False
            if not hits:
                return False
        if "not" in schema and self.valid(value, schema["not"], turns + 1):
            return False
        if "if" in schema:
            branch = "then" if self.valid(value, schema["if"], turns + 1) else "else"
            return branch not in schema or self.valid(value, schema[branch], turns + 1)
        return True

    def _object(self, value: dict[str, Any], schema: Mapping[str, Any], turns: int) -> bool:
        own = {name for name, one in value.items() if one is not LOCKED}
        if not set(strings(schema.get("required"))) <= value.keys():
            return False
        least, most = schema.get("minProperties"), schema.get("maxProperties")
        if (is_number(least) and len(own) < least) or (is_number(most) and len(own) > most):
            return False
        properties, patterns = mapping(schema.get("properties")), mapping(schema.get("patternProperties"))
        others, names = schema.get("additionalProperties"), schema.get("propertyNames")
        for name, one in value.items():
            known = name in properties
            if known and not self.valid(one, properties[name], turns + 1):
                return False
            for pattern, inner in patterns.items():
                if matches(pattern, name):
                    known = True
                    if not self.valid(one, inner, turns + 1):
                        return False
            if not known and others is not None and not self.valid(one, others, turns + 1):
                return False
            if names is not None and name in own and not self.valid(name, names, turns + 1):
                return False
        for key in ("dependencies", "dependentRequired", "dependentSchemas"):
            for name, needed in mapping(schema.get(key)).items():
                if name not in own:
                    continue
                if isinstance(needed, list):
                    if not set(strings(needed)) <= value.keys():
                        return False
                elif not self.valid(value, needed, turns + 1):
                    return False
        if "unevaluatedProperties" in schema:
            rest = own - self._evaluated(value, schema, turns)
            inner = schema["unevaluatedProperties"]
            return all(self.valid(value[name], inner, turns + 1) for name in rest)
        return True

    def _evaluated(self, value: dict[str, Any], schema: Any, turns: int) -> set[str]:
        """Return the names of properties that a schema has evaluated (JSON Schema 2020-12, 11.3)."""
        self.visit()
        if not isinstance(schema, dict) or turns > _TURNS:
            return set()
        properties, patterns = mapping(schema.get("properties")), mapping(schema.get("patternProperties"))
        found = {name for name in value if name in properties}
        found |= {name for name in value if any(matches(one, name) for one in patterns)}
        if "additionalProperties" in schema:
            return set(value)
        parts = listed(schema.get("allOf"))
        if isinstance(schema.get("$ref"), str):
            try:
                parts = [*parts, self.target(schema["$ref"])]
            except UnresolvedReference:
                return set(value)
        for key in ("anyOf", "oneOf"):
            parts = [*parts, *(one for one in listed(schema.get(key)) if self.valid(value, one, turns + 1))]
        if "if" in schema:
            holds = self.valid(value, schema["if"], turns + 1)
            parts = [*parts, *([schema["if"]] if holds else []), schema.get("then" if holds else "else")]
        parts += [one for name, one in mapping(schema.get("dependentSchemas")).items() if name in value]
        return found.union(*(self._evaluated(value, one, turns + 1) for one in parts))

    def _array(self, value: list[Any], schema: Mapping[str, Any], turns: int) -> bool:
        least, most = schema.get("minItems"), schema.get("maxItems")
        if (is_number(least) and len(value) < least) or (is_number(most) and len(value) > most):
            return False
        if schema.get("uniqueItems") is True and len({canonical(one) for one in value}) < len(value):
            return False
        first, items = schema.get("prefixItems"), schema.get("items")
        if isinstance(items, list):
            first, items = items, schema.get("additionalItems")
        first = first if isinstance(first, list) else []
        if not all(self.valid(one, inner, turns + 1) for one, inner in zip(value, first, strict=False)):
            return False
        if items is not None and not all(self.valid(one, items, turns + 1) for one in value[len(first) :]):
            return False
        if "contains" in schema:
            hits = sum(self.valid(one, schema["contains"], turns + 1) for one in value)
            low, high = schema.get("minContains", 1), schema.get("maxContains")
            return not ((is_number(low) and hits < low) or (is_number(high) and hits > high))
        return True


def _joined(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:
        return address


# --- Values -------------------------------------------------------------------------------------------------


def mapping(value: Any) -> Mapping[str, Any]:
    """Return an object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """Return a list, or an empty one for anything else."""
    return value if isinstance(value, list) else []


def strings(value: Any) -> list[str]:
    """Return the texts of a list."""
    return [one for one in listed(value) if isinstance(one, str)]


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether a value is a number of JSON."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_of(value: Any, kind: Any) -> bool:
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
    return orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def same(value: Any, other: Any) -> bool:
    """Return whether two values are equal in JSON."""
    if isinstance(value, str) or isinstance(other, str):
        return type(value) is type(other) and value == other
    return canonical(value) == canonical(other)


def _text(value: str, schema: Mapping[str, Any]) -> bool:
    least, most = schema.get("minLength"), schema.get("maxLength")
    if (is_number(least) and len(value) < least) or (is_number(most) and len(value) > most):
        return False
    pattern, told = schema.get("pattern"), schema.get("format")
    if isinstance(pattern, str) and not matches(pattern, value):
        return False
    return not isinstance(told, str) or has_format(value, told)


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
                found = _MOMENT.fullmatch(value)
                return found is not None and bool(datetime.fromisoformat(f"{found[1]}T{found[2]}"))
            case "date":
                return len(value) == 10 and bool(date.fromisoformat(value))
            case "time":
                found = _TIME.fullmatch(value)
                return found is not None and time.fromisoformat(found[1]) is not None
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
                return readable(value)
    except ValueError:
        return False
    return True


def unique(values: Sequence[Any]) -> Iterator[Any]:
    """Yield each value once, in their order."""
    seen: set[bytes] = set()
    for value in values:
        key = canonical(value)
        if key not in seen:
            seen.add(key)
            yield value

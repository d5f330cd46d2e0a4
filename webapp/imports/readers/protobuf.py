"""Protocol Buffers definitions (proto2 and proto3) as JSON Schema: each message at the top is a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from webapp import limits
from webapp.imports.readers import json_schema
from webapp.imports.readers.base import ParsedFile, Source, UnreadableFileError, decode

_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?|(?P<text>"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\\\n]++|\\.)*+')"""
    r"|(?P<word>[A-Za-z_.][\w.]*)|(?P<number>[+-]?[\w.]+)|(?P<sign>.)",
    re.S,
)
_INTEGER32: Final = {"type": "integer", "format": "int32"}
_INTEGER64: Final = {"type": "integer", "format": "int64"}
_NATURAL32: Final = {**_INTEGER32, "minimum": 0}
_NATURAL64: Final = {**_INTEGER64, "minimum": 0}
_SCALARS: Final[Mapping[str, Mapping[str, Any]]] = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), _INTEGER32),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), _INTEGER64),
    "uint32": _NATURAL32, "fixed32": _NATURAL32, "uint64": _NATURAL64, "fixed64": _NATURAL64,
    "float": {"type": "number", "format": "float"}, "double": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"}, "string": {"type": "string"}, "bytes": {"type": "string", "format": "byte"},
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": "[1-9][0-9]{0,3}s"},
    "google.type.Date": {"type": "string", "format": "date"},
    "google.protobuf.StringValue": {"type": "string"}, "google.protobuf.BoolValue": {"type": "boolean"},
    "google.protobuf.Int32Value": _INTEGER32, "google.protobuf.Int64Value": _INTEGER64,
    "google.protobuf.DoubleValue": {"type": "number"}, "google.protobuf.FloatValue": {"type": "number"},
}  # fmt: skip
_SKIPPED_STATEMENTS: Final = frozenset("option reserved extensions".split())
_SKIPPED_BLOCKS: Final = frozenset("extend service rpc".split())


def read(source: Source) -> ParsedFile:
    """Read a table for each top-level message. Raises `UnreadableFileError`."""
    text, _ = decode(source.content)
    parser = _Parser(text)
    parser.file()
    tops = {name: {"$ref": f"#/$defs/{name}"} for name in parser.tops}
    if not tops:
        raise UnreadableFileError(
            "The file does not contain a message.",
            "Send a .proto file, such as message Order { int64 id = 1; }.",
        )
    parser.link()
    result = json_schema.build_tables({"$defs": parser.named}, tops, "protobuf")
    if not result.tables:
        reason = result.problems[0].reason if result.problems else "No message in the file has fields."
        raise UnreadableFileError(reason, "")
    return result


class _Parser:
    """Parses one file. Unknown statements are skipped up to their semicolon or the end of their block."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self.named: dict[str, Any] = {}
        """Messages and enums by their full names inside the file."""
        self.tops: list[str] = []
        self._references: list[tuple[dict[str, Any], str, str]] = []

    def file(self) -> None:
        """Parse the top level."""
        while self._at < len(self._tokens):
            word = self._next()
            if word == "message":
                name = self._next()
                self.tops.append(name)
                self._message(name, 0)
            elif word == "enum":
                self._enum(self._next())
            elif word in _SKIPPED_BLOCKS:
                self._skip_past("{")
                self._skip_block()
            else:
                self._skip_past(";")

    def link(self) -> None:
        """Resolve the names of types to references, searching from the innermost message outwards."""
        for schema, kind, scope in self._references:
            parts = scope.split(".")
            short = kind.lstrip(".")
            names = [".".join((*parts[:size], short)) for size in range(len(parts), -1, -1)]
            names += [".".join(short.split(".")[index:]) for index in range(1, short.count(".") + 1)]
            known = next((name for name in names if name in self.named), None)
            schema["$ref"] = f"#/$defs/{known or short}"

    def _message(self, name: str, depth: int) -> None:
        schema: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        self.named[name] = schema
        if depth > limits.DOCUMENT_DEPTH or not self._skip_past("{"):
            self._skip_block()
            return
        while self._at < len(self._tokens):
            word = self._next()
            if word == "}":
                return
            if word == "message":
                self._message(f"{name}.{self._next()}", depth + 1)
            elif word == "enum":
                self._enum(f"{name}.{self._next()}")
            elif word == "oneof":
                self._skip_past("{")
                while self._at < len(self._tokens) and (inner := self._next()) != "}":
                    if inner == "option":
                        self._skip_past(";")
                    elif inner != ";":
                        self._field(schema, inner, name)
            elif word in _SKIPPED_BLOCKS:
                self._skip_past("{")
                self._skip_block()
            elif word in _SKIPPED_STATEMENTS:
                self._skip_past(";")
            elif word != ";":
                self._field(schema, word, name)

    def _field(self, message: dict[str, Any], word: str, scope: str) -> None:
        label = word if word in ("optional", "required", "repeated") else ""
        kind = self._next() if label else word
        if kind == "map":
            self._skip_past(">")
            schema: dict[str, Any] = {"type": "object"}
        elif kind == "group":
            self._skip_past(";")
            return
        elif kind in _SCALARS:
            schema = dict(_SCALARS[kind])
        else:
            schema = {}
            self._references.append((schema, kind, scope))
        name = self._next()
        self._skip_past(";")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            return
        message["properties"][name] = {"type": "array", "items": schema} if label == "repeated" else schema
        if label == "required":
            message["required"].append(name)

    def _enum(self, name: str) -> None:
        values: list[str] = []
        self._skip_past("{")
        while self._at < len(self._tokens) and (word := self._next()) != "}":
            if word not in (*_SKIPPED_STATEMENTS, ";"):
                values.append(word)
            self._skip_past(";")
        self.named[name] = {"type": "string", "enum": values}

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            return ""
        self._at += 1
        return self._tokens[self._at - 1]

    def _skip_past(self, sign: str) -> bool:
        """Skip to the position after the next such token; an option in braces before a semicolon is part of it."""
        depth = 0
        while self._at < len(self._tokens):
            word = self._next()
            if word == sign and depth == 0:
                return True
            if word == "}" and depth == 0:
                self._at -= 1
                return False
            depth += {"{": 1, "}": -1, "[": 1, "]": -1}.get(word, 0) if sign != "{" else 0
        return False

    def _skip_block(self) -> None:
        """Skip to the end of the current block."""
        depth = 1
        while self._at < len(self._tokens) and depth:
            depth += {"{": 1, "}": -1}.get(self._next(), 0)


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup is not None:
            yield match[match.lastgroup]

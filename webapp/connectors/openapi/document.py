"""Read OpenAPI documents (3.0, 3.1 and Swagger 2, JSON or YAML) into operations with resolved schemas.

`$ref` inside the document is resolved, `allOf` is merged, and of `oneOf` and `anyOf` the first non-null
schema is used. Nothing is fetched: a reference to another document is an error that names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import unquote, urljoin

import orjson
import yaml

from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.openapi import yaml_document
from webapp.document_process import DocumentError, check_depth, too_deep

Schema = Mapping[str, Any]
_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
_PLACE: Final = re.compile(r"[0-9]{1,9}")
METHODS: Final = ("post", "put", "patch")
"""Methods that create or change a resource."""
_JSON: Final = ("application/json", "text/json", "*/*")


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that accepts a row, such as `POST /orders`.

    `schema` is the resolved schema of its body. `in_path`, `in_query` and `in_header` are schemas of its
    required parameters by name.
    """

    method: str
    path: str
    title: str
    schema: Schema
    in_path: Mapping[str, Schema]
    in_query: Mapping[str, Schema]
    in_header: Mapping[str, Schema]
    answer: Schema
    """The schema of the success response; empty if the document does not define it."""

    @property
    def name(self) -> str:
        """The name that users see."""
        return f"{self.method.upper()} {self.path}"


@dataclass(frozen=True, slots=True)
class Document:
    """The part of an OpenAPI document that is used."""

    title: str
    version: str
    servers: tuple[str, ...]
    """Base URLs. Relative ones are relative to the document's URL."""
    operations: tuple[Operation, ...]


def read(raw: bytes) -> Document:
    """Read a document. Raises `ConnectorError` (reason `bad_document`)."""
    whole = loaded(raw)
    version = str(whole.get("openapi") or whole.get("swagger") or "")
    if not version.startswith(("2.", "3.0", "3.1", "3.2")):
        raise _bad(
            "This is not an OpenAPI document: it contains neither openapi: 3.x nor swagger: 2.0.",
            "Upload the OpenAPI document of the API, as JSON or YAML.",
        )
    reader = Reader(whole, version.startswith("2."))
    info = _dict(whole.get("info"))
    operations = tuple(reader.operations())
    return Document(str(info.get("title", "")), version, tuple(reader.servers()), operations)


def base_url(document: Document, found_at: str) -> str:
    """Return the first server's URL, relative to the document's URL."""
    first = document.servers[0] if document.servers else ""
    try:
        return urljoin(found_at, first).rstrip("/")
    except ValueError:  # such as an unclosed bracket
        return ""


def loaded(raw: bytes) -> Mapping[str, Any]:
    """Parse a document from JSON or YAML. Raises `ConnectorError` (reason `bad_document`)."""
    if len(raw) > limits.DOCUMENT_BYTES:
        raise _bad(f"The document is larger than {limits.DOCUMENT_BYTES // limits.MB} MB.", "")
    try:
        if raw.lstrip()[:1] in (b"{", b"["):
            whole = orjson.loads(raw)
            check_depth(whole)
        else:
            whole = yaml_document.load(raw)
    except DocumentError as error:
        raise _bad(error.message, error.hint) from None
    except orjson.JSONDecodeError as error:
        if "limit" in str(error):
            raise _bad(too_deep().message, too_deep().hint) from None
        raise _bad(f"This is not valid JSON: {str(error)[:200]}", "") from None
    except (yaml.YAMLError, ValueError) as error:
        raise _bad(f"This is not valid YAML: {' '.join(str(error).split())[:200]}", "") from None
    if not isinstance(whole, dict):
        raise _bad("This is not an OpenAPI document: it is not an object.", "")
    return whole


def _bad(message: str, hint: str) -> ConnectorError:
    return ConnectorError(message, reason="bad_document", hint=hint)


class Reader:
    """Reads the operations of a document, and resolves its schemas."""

    def __init__(self, whole: Mapping[str, Any], swagger: bool) -> None:
        self._whole, self._swagger = whole, swagger
        self.left = limits.DOCUMENT_NODES
        """The number of schemas that may still be read. Those behind references count each time."""

    def servers(self) -> Iterator[str]:
        """Yield base URLs, with variables replaced by their defaults."""
        if self._swagger:
            host, path = self._whole.get("host"), str(self._whole.get("basePath", "/"))
            schemes = _list(self._whole.get("schemes")) or ["https"]
            yield f"{schemes[0]}://{host}{path}" if host else path
            return
        for server in _list(self._whole.get("servers"))[: limits.DOCUMENT_SERVERS]:
            url = str(_dict(server).get("url", ""))
            variables = _dict(_dict(server).get("variables"))
            # Each once, from left to right: what a default says is not expanded again.
            made = _VARIABLE.sub(partial(_default, variables), url[: limits.HTTP_URL_CHARS])
            yield made[: limits.HTTP_URL_CHARS]

    def operations(self) -> Iterator[Operation]:
        """Yield the operations that accept a JSON body."""
        for path, item in _dict(self._whole.get("paths")).items():
            item = self._followed(item)
            for method in METHODS:
                operation = _dict(item.get(method))
                schema = self._body(operation, item) if operation else None
                if schema is not None:
                    yield self._operation(method, str(path), operation, item, schema)

    def _operation(
        self, method: str, path: str, operation: Mapping[str, Any], item: Mapping[str, Any], schema: Schema
    ) -> Operation:
        places: dict[str, dict[str, Schema]] = {"path": {}, "query": {}, "header": {}}
        for parameter in self._parameters(operation, item):
            place, name = parameter.get("in"), str(parameter.get("name", ""))
            if place in places and name and (parameter.get("required") or place == "path"):
                places[place][name] = self.resolved(parameter.get("schema") or parameter)
        title = str(operation.get("summary") or operation.get("operationId") or "")
        answer = self._answer(operation)
        return Operation(
            method, path, title, schema, places["path"], places["query"], places["header"], answer
        )

    def _parameters(
        self, operation: Mapping[str, Any], item: Mapping[str, Any]
    ) -> Iterator[Mapping[str, Any]]:
        found = {}
        for one in (*_list(item.get("parameters")), *_list(operation.get("parameters"))):
            parameter = self._followed(one)
            found[parameter.get("in"), parameter.get("name")] = parameter
        yield from found.values()

    def _body(self, operation: Mapping[str, Any], item: Mapping[str, Any]) -> Schema | None:
        if self._swagger:
            bodies = [
                parameter for parameter in self._parameters(operation, item) if parameter.get("in") == "body"
            ]
            return self._row(bodies[0].get("schema")) if bodies else None
        content = _dict(self._followed(operation.get("requestBody")).get("content"))
        return self._row(_json_of(content))

    def _row(self, schema: Any) -> Schema | None:
        """Return the schema of one row: the items if the body is an array."""
        if schema is None:
            return None
        found = self.resolved(schema)
        if found.get("type") == "array":
            found = _dict(found.get("items"))
        return found if found.get("properties") else None

    def _answer(self, operation: Mapping[str, Any]) -> Schema:
        responses = _dict(operation.get("responses"))
        for status in ("201", "200", "default"):
            told = self._followed(responses.get(status))
            schema = told.get("schema") if self._swagger else _json_of(_dict(told.get("content")))
            if schema is not None:
                return self.resolved(schema)
        return {}

    def count(self) -> None:
        """Count one schema. Raises `ConnectorError` if there are too many."""
        self.left -= 1
        if self.left < 0:
            raise _bad("The document's schemas are too large when their references are followed.", "")

    # --- Schemas ----------------------------------------------------------------------------------------------

    def resolved(self, schema: Any, seen: tuple[str, ...] = (), depth: int = 0) -> Schema:
        """Return a schema without `$ref`, `allOf`, `oneOf` and `anyOf`. Recursive references end with an
        empty schema."""
        self.count()
        if not isinstance(schema, dict) or depth > limits.DOCUMENT_DEPTH:
            return {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference in seen or len(seen) >= limits.DOCUMENT_LEVELS:
                return {}
            there = self.resolved(self.target(reference), (*seen, reference), depth)
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return {**there, **self.resolved(beside, seen, depth)} if beside else there
        found = {key: value for key, value in schema.items() if key not in ("allOf", "oneOf", "anyOf")}
        for part in _list(schema.get("allOf")):
            found = _merged(found, self.resolved(part, seen, depth + 1))
        for word in ("oneOf", "anyOf"):
            choices = [self.resolved(one, seen, depth + 1) for one in _list(schema.get(word))]
            if any(choice.get("type") == "null" for choice in choices):
                found["nullable"] = True
            first = next((choice for choice in choices if choice and choice.get("type") != "null"), None)
            if first is not None:
                found = _merged(found, first)
        return self._deep(_plain(_typed(found)), seen, depth)

    def _deep(self, schema: dict[str, Any], seen: tuple[str, ...], depth: int) -> dict[str, Any]:
        properties = _dict(schema.get("properties"))
        if properties:
            schema["properties"] = {
                str(name): self.resolved(one, seen, depth + 1) for name, one in properties.items()
            }
        if "items" in schema:
            schema["items"] = self.resolved(schema["items"], seen, depth + 1)
        return schema

    def _followed(self, value: Any) -> Mapping[str, Any]:
        """Return an object, or the one that its `$ref` points to."""
        for _ in range(limits.DOCUMENT_DEPTH):
            if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
                break
            value = self.target(value["$ref"])
        return _dict(value)

    def target(self, reference: str) -> Any:
        """Return the target of a reference. Raises `ConnectorError` if it does not exist or is in another
        document."""
        if not reference.startswith("#"):
            raise _bad(
                f'The document references another one: "{reference[:200]}".',
                "Bundle the documents into one, and upload that.",
            )
        found: Any = self._whole
        for part in reference[1:].split("/")[1:]:
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and _PLACE.fullmatch(name) and int(name) < len(found):
                found = found[int(name)]
            elif isinstance(found, dict) and name in found:
                found = found[name]
            else:
                raise _bad(f'"{reference[:200]}" does not exist in the document.', "")
        return found


def _default(variables: Mapping[str, Any], found: re.Match[str]) -> str:
    """Return the default of a variable in a server URL; the variable itself if it has none."""
    if found[1] not in variables:
        return found[0]
    return str(_dict(variables[found[1]]).get("default", ""))[: limits.HTTP_URL_CHARS]


def _json_of(content: Mapping[str, Any]) -> Any:
    """Return the schema of the JSON body among several media types."""
    for kind, media in content.items():
        plain = str(kind).partition(";")[0].strip().lower()
        if plain in _JSON or plain.endswith("+json"):
            return _dict(media).get("schema")
    return None


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    made = {**one, **other}
    if "properties" in one and "properties" in other:
        made["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one or "required" in other:
        made["required"] = list(dict.fromkeys([*_list(one.get("required")), *_list(other.get("required"))]))
    return made


_KINDS: Final[Mapping[str, type]] = {
    "type": str, "format": str, "pattern": str, "description": str, "enum": list, "required": list, "properties": dict,
    "maxLength": int, "minItems": int, "maxItems": int,
}  # fmt: skip


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without keywords whose values have the wrong type."""
    found = {key: one for key, one in schema.items() if key not in _KINDS or isinstance(one, _KINDS[key])}
    if "required" in found:
        found["required"] = [one for one in found["required"] if isinstance(one, str)]
    return found


def _typed(schema: dict[str, Any]) -> dict[str, Any]:
    """Convert `type: [string, "null"]` of 3.1 to `nullable: true` of 3.0."""
    kinds = schema.get("type")
    if isinstance(kinds, list):
        plain = [kind for kind in kinds if kind != "null"]
        schema = {**schema, "type": plain[0] if plain else "null"}
        if "null" in kinds:
            schema["nullable"] = True
    elif kinds is None and "properties" in schema:
        schema = {**schema, "type": "object"}
    return dict(schema)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

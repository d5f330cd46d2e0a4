"""Read OpenAPI documents (3.0, 3.1 and Swagger 2, JSON or YAML) into operations with resolved schemas.

Schemas become shapes (see `json_schema.shapes`), of which every value is valid. Nothing is fetched: what a reference to
another document describes is left out, and the document is an error if nothing else remains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal
from urllib.parse import urljoin

import orjson
import yaml

from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.json_schema.shapes import LEFT_OUT, Shaper
from webapp.connectors.json_schema.validation import OUTSIDE, Unresolved
from webapp.connectors.json_schema.validation import Document as JsonSchemas
from webapp.connectors.openapi import yaml_document
from webapp.document_process import DocumentError, check_depth, too_deep

Schema = Mapping[str, Any]
Encoding = Literal["json", "form", "brackets"]
FORM_TYPE: Final = "application/x-www-form-urlencoded"
_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
METHODS: Final = ("post", "put", "patch")
"""Methods that create or change a resource."""
_IGNORED_HEADERS: Final = ("accept", "content-type", "authorization")  # OpenAPI 3.0, 4.7.12.2.1: `name`
_JSON: Final = ("application/json", "text/json", "*/*")


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request. `shape` is that of an object, whose properties are the columns of a row."""

    shape: Schema
    form: Literal["object", "array", "value"]
    """Whether the body is this object, an array with it, or the value of its only property."""
    encoding: Encoding
    """`form`: as form data, arrays by repeated names; `brackets`: with names such as `items[0][price]`."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that accepts a row, such as `POST /orders`.

    `in_path`, `in_query` and `in_header` are shapes of its required parameters by name.
    """

    method: str
    path: str
    title: str
    body: Body
    in_path: Mapping[str, Schema]
    in_query: Mapping[str, Schema]
    in_header: Mapping[str, Schema]

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
    reader = Reader(whole, version.startswith("2."), version < "3.1")
    info = _dict(whole.get("info"))
    operations = tuple(reader.operations())
    if not operations and reader.lost:
        raise lost_reference(reader.lost[0])
    if not operations and reader.shaper.exhausted:
        raise too_many_schemas()
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


def lost_reference(message: str) -> ConnectorError:
    """Return the error for a document of which nothing remains without what its references lead to."""
    if message.endswith(OUTSIDE):
        named = message.removesuffix(OUTSIDE).strip()
        text = f"The document references another one: {named}."
        return _bad(text, "Bundle the documents into one, and upload that.")
    return _bad(message, "")


def _bad(message: str, hint: str) -> ConnectorError:
    return ConnectorError(message, reason="bad_document", hint=hint)


class Reader:
    """Reads the operations of a document, and converts its schemas to shapes."""

    def __init__(self, whole: Mapping[str, Any], swagger: bool, legacy: bool = True) -> None:
        self._whole, self._swagger = whole, swagger
        self.document = JsonSchemas(whole, legacy)
        self.shaper = Shaper(self.document)
        self.lost: list[str] = []
        """References that lead nowhere."""

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
        """Yield the operations that accept a JSON or form body. One that cannot be read is left out."""
        for path, item in _dict(self._whole.get("paths")).items():
            item = self._followed(item)
            for method in METHODS:
                operation = _dict(item.get(method))
                body = self._body(operation, item) if operation else None
                if body is not None:
                    yield self._operation(method, str(path), operation, item, body)

    def _operation(
        self, method: str, path: str, operation: Mapping[str, Any], item: Mapping[str, Any], body: Body
    ) -> Operation:
        places: dict[str, dict[str, Schema]] = {"path": {}, "query": {}, "header": {}}
        for parameter in self._parameters(operation, item):
            place, name = parameter.get("in"), str(parameter.get("name", ""))
            if place == "header" and name.lower() in _IGNORED_HEADERS:
                continue
            if place in places and name and (parameter.get("required") or place == "path"):
                plain = {key: one for key, one in parameter.items() if key not in ("required", "readOnly")}
                content: Any = next(iter(_dict(parameter.get("content")).values()), {})
                schema = parameter.get("schema") or _dict(content).get("schema") or plain
                places[place][name] = self._shape(schema) or {"type": "string"}
        title = str(operation.get("summary") or operation.get("operationId") or "")
        return Operation(method, path, title, body, places["path"], places["query"], places["header"])

    def _parameters(
        self, operation: Mapping[str, Any], item: Mapping[str, Any]
    ) -> Iterator[Mapping[str, Any]]:
        found = {}
        for one in (*_list(item.get("parameters")), *_list(operation.get("parameters"))):
            parameter = self._followed(one)
            found[parameter.get("in"), parameter.get("name")] = parameter
        yield from found.values()

    def _body(self, operation: Mapping[str, Any], item: Mapping[str, Any]) -> Body | None:
        if self._swagger:
            return self._swagger_body(operation, item)
        content = _dict(self._followed(operation.get("requestBody")).get("content"))
        schema = _json_of(content)
        if schema is not None:
            return self._made(schema, "json")
        for kind, media in content.items():
            if str(kind).partition(";")[0].strip().lower() == FORM_TYPE and _dict(media).get("schema"):
                encodings = [_dict(one) for one in _dict(_dict(media).get("encoding")).values()]
                deep = any(one.get("style") == "deepObject" for one in encodings)
                return self._made(media["schema"], "brackets" if deep else "form")
        return None

    def _swagger_body(self, operation: Mapping[str, Any], item: Mapping[str, Any]) -> Body | None:
        parameters = list(self._parameters(operation, item))
        for one in parameters:
            if one.get("in") == "body":
                return self._made(one.get("schema") or {}, "json")
        fields = [one for one in parameters if one.get("in") == "formData"]
        consumed = operation.get("consumes") or self._whole.get("consumes") or [FORM_TYPE]
        if not fields or FORM_TYPE not in _list(consumed) or any(one.get("type") == "file" for one in fields):
            return None
        properties = {
            str(one.get("name")): {key: value for key, value in one.items() if key != "required"}
            for one in fields
        }
        required = [str(one.get("name")) for one in fields if one.get("required") is True]
        return self._made({"type": "object", "properties": properties, "required": required}, "form")

    def _made(self, schema: Any, encoding: Encoding) -> Body | None:
        """Return the body for a schema: its columns are the properties of an object or of an array's items. Other
        bodies are one column."""
        shape = self._shape(schema)
        if shape is None:
            return None
        if shape.get("type") == "object" and has_columns(shape):
            return Body(shape, "object", encoding)
        items = _dict(shape.get("items"))
        if items.get("type") == "object" and has_columns(items) and shape.get("minItems", 1) <= 1:
            return Body(items, "array", encoding)
        if encoding != "json" or not shape:
            return None
        return Body(
            {"type": "object", "properties": {"body": shape}, "required": ["body"]}, "value", encoding
        )

    def _shape(self, schema: Any) -> Schema | None:
        """Return the shape of a schema; None if there is none. Raises `ConnectorError` if the document is too large."""
        shape = self.shaper.shape(schema)
        if shape is None and self.document.left <= 0:
            raise too_many_schemas()
        if shape is not None and LEFT_OUT in shape:
            self.lost.append(shape[LEFT_OUT])
            return None
        return shape

    def _followed(self, value: Any) -> Mapping[str, Any]:
        """Return an object, or the one that its `$ref` points to; empty if it leads nowhere."""
        for _ in range(limits.DOCUMENT_DEPTH):
            if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
                break
            try:
                value = self.document.target(value["$ref"])
            except Unresolved as error:
                self.lost.append(str(error))
                return {}
        return _dict(value)


def too_many_schemas() -> ConnectorError:
    """Return the error for a document whose schemas refer to each other too often."""
    return _bad("The document's schemas are too large when their references are followed.", "")


def has_columns(shape: Schema) -> bool:
    """Return whether an object has a property that is sent."""
    return any(
        LEFT_OUT not in one and not one.get("readOnly") for one in _dict(shape.get("properties")).values()
    )


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


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

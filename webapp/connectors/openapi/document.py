"""Read OpenAPI documents (3.0, 3.1 and Swagger 2, JSON or YAML): operations with resolved schemas, and metadata.

Schemas become shapes (see `json_schema.shapes`), of which every value is valid. Nothing is fetched: what a reference to
another document describes is left out, and the document is an error if nothing else remains. Metadata has an entity for
each operation, and a column for each of its values.

YAML 1.1 is read as plain JSON values, event by event. PyYAML's own loaders compose recursively (deep nesting ends the
process), follow aliases and merge keys without a limit, and create types that JSON does not have. Here, nesting,
aliases and merged keys are counted while the document is read. Dates remain text, keys become text, and application
tags are rejected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, Final, Literal
from urllib.parse import urljoin

import orjson
import yaml

from webapp import limits
from webapp.connectors import metadata_documents
from webapp.connectors.base import ConnectorError
from webapp.connectors.json_schema.shapes import OMISSION_KEYWORD, Shaper
from webapp.connectors.json_schema.validation import OUTSIDE, UnresolvedReferenceError
from webapp.connectors.json_schema.validation import Document as JsonSchemas
from webapp.connectors.schema import Column, ColumnType, Entity, Metadata
from webapp.document_process import DocumentError, check_depth, nesting_error

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final = tuple(_TAG + item for item in ("bool", "int", "float"))
_KNOWN_TAGS: Final = frozenset(
    _TAG + item
    for item in ("null", "bool", "int", "float", "str", "binary", "timestamp", "merge", "value", "map", "seq")
) | {"!"}
_MERGE: Final = "<<"
_NUMBER_CHARS: Final = 400  # more characters than any number that fits in a double


def load(raw: bytes) -> Any:
    """Return the value of the only document in `raw`.

    Raises `yaml.YAMLError` or `ValueError` if it is not valid YAML, and `DocumentError` if it exceeds a
    limit.
    """
    loader = _Loader(raw)
    try:
        return _Builder(loader).document()
    finally:
        loader.dispose()


class _Builder:
    """Builds values from the events of a parser."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._anchors: dict[str, tuple[Any, int]] = {}
        """Values by anchor name, with the number of values inside them. Those of aliases count each time."""

    def document(self) -> Any:
        """Return the value of the document. See `load`."""
        result: Any = None
        documents = 0
        # Open containers: the value, the key that waits for its value, the anchor, and the size so far.
        stack: list[list[Any]] = []
        while self._loader.check_event():
            event = self._loader.get_event()
            if getattr(event, "tag", None) is not None and event.tag not in _KNOWN_TAGS:
                raise ValueError(f'it has the tag "{event.tag[:80]}", which is not plain YAML')
            if isinstance(event, yaml.ScalarEvent):
                value, size = self._scalar(event), 1
                if event.anchor is not None:
                    self._anchors[event.anchor] = value, size
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                if len(stack) >= limits.DOCUMENT_LEVELS:
                    raise nesting_error()
                container: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
                stack.append([container, _NO_KEY, event.anchor, 1, []])
                if event.anchor is not None:
                    self._anchors.pop(event.anchor, None)  # an anchor cannot be used inside itself
                continue
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                value, _, anchor, size, merged = stack.pop()
                if merged:
                    value = _merged(merged, value)
                if anchor is not None:
                    self._anchors[anchor] = value, size
            elif isinstance(event, yaml.AliasEvent):
                assert event.anchor is not None  # an alias has a name
                if event.anchor not in self._anchors:
                    raise ValueError(f'the alias "{event.anchor[:80]}" has no value before it')
                value, size = self._anchors[event.anchor]
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise ValueError("it contains more than one document")
                continue
            else:
                continue
            if stack:
                self._add(stack[-1], value, size)
            else:
                result = value
        return result

    def _add(self, container: list[Any], value: Any, size: int) -> None:
        """Add a value to an open container, or keep it as the key of the next value."""
        target, key, _, _, merged = container
        container[3] += size
        if container[3] > limits.DOCUMENT_YAML_VALUES:
            text = f"With its aliases expanded, the YAML document has more than {limits.DOCUMENT_YAML_VALUES:,} values."
            raise DocumentError(text, "Use fewer aliases, or JSON.")
        if isinstance(target, list):
            target.append(value)
        elif key is _NO_KEY:
            container[1] = _key(value)
        else:
            container[1] = _NO_KEY
            if key != _MERGE:
                target[key] = value
                return
            sources = value if isinstance(value, list) else [value]
            if not all(isinstance(source, dict) for source in sources):
                raise ValueError("a merge key (<<) needs a mapping, or a list of mappings")
            merged.extend(sources)

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text: str = event.value
        tag = event.tag
        if tag is None or tag == "!":
            tag = self._loader.resolve(yaml.ScalarNode, text, event.implicit)
        if tag == _TAG + "null":
            return None
        if tag not in _SCALARS or len(text) > _NUMBER_CHARS:
            return text
        try:
            value = self._loader.construct_object(yaml.ScalarNode(tag, text))
            if type(value) is int and abs(value) >= 2**63:
                value = float(value)  # as in JSON
        except (ValueError, LookupError, AttributeError, OverflowError):  # the tag of another kind of text
            return text
        return text if isinstance(value, float) and not math.isfinite(value) else value


_NO_KEY: Final = object()


def _merged(sources: list[dict[str, Any]], own: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of merged mappings, of which the first has priority, and the mapping's own keys, which
    override them."""
    result: dict[str, Any] = {}
    for source in sources:
        for key, value in source.items():
            result.setdefault(key, value)
    return result | own


def _key(value: Any) -> str:
    if isinstance(value, dict | list):
        raise ValueError("a key is a mapping or a list")
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


# --- OpenAPI ------------------------------------------------------------------------------------------------

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
    content = parse(raw)
    version = str(content.get("openapi") or content.get("swagger") or "")
    if not version.startswith(("2.", "3.0", "3.1", "3.2")):
        raise _document_error(
            "This is not an OpenAPI document: it contains neither openapi: 3.x nor swagger: 2.0.",
            "Upload the OpenAPI document of the API, as JSON or YAML.",
        )
    reader = Reader(content, version.startswith("2."), version < "3.1")
    info = _dict(content.get("info"))
    operations = tuple(reader.operations())
    if not operations and reader.lost:
        raise missing_reference_error(reader.lost[0])
    if not operations and reader.shaper.exhausted:
        raise too_many_schemas_error()
    return Document(str(info.get("title", "")), version, tuple(reader.servers()), operations)


def base_url(document: Document, found_at: str) -> str:
    """Return the first server's URL, relative to the document's URL."""
    first = document.servers[0] if document.servers else ""
    try:
        return urljoin(found_at, first).rstrip("/")
    except ValueError:  # such as an unclosed bracket
        return ""


def parse(raw: bytes) -> Mapping[str, Any]:
    """Parse a document from JSON or YAML. Raises `ConnectorError` (reason `bad_document`)."""
    if len(raw) > limits.DOCUMENT_BYTES:
        raise _document_error(f"The document is larger than {limits.DOCUMENT_BYTES // limits.MB} MB.", "")
    try:
        if raw.lstrip()[:1] in (b"{", b"["):
            content = orjson.loads(raw)
            check_depth(content)
        else:
            content = load(raw)
    except DocumentError as error:
        raise _document_error(error.message, error.hint) from None
    except orjson.JSONDecodeError as error:
        if "limit" in str(error):
            raise _document_error(nesting_error().message, nesting_error().hint) from None
        raise _document_error(f"This is not valid JSON: {str(error)[:200]}", "") from None
    except (yaml.YAMLError, ValueError) as error:
        raise _document_error(f"This is not valid YAML: {' '.join(str(error).split())[:200]}", "") from None
    if not isinstance(content, dict):
        raise _document_error("This is not an OpenAPI document: it is not an object.", "")
    return content


def missing_reference_error(message: str) -> ConnectorError:
    """Return the error for a document of which nothing remains without what its references lead to."""
    if message.endswith(OUTSIDE):
        target = message.removesuffix(OUTSIDE).strip()
        text = f"The document references another one: {target}."
        return _document_error(text, "Bundle the documents into one, and upload that.")
    return _document_error(message, "")


def _document_error(message: str, hint: str) -> ConnectorError:
    return ConnectorError(message, reason="bad_document", hint=hint)


class Reader:
    """Reads the operations of a document, and converts its schemas to shapes."""

    def __init__(self, content: Mapping[str, Any], swagger: bool, legacy: bool = True) -> None:
        self._content, self._swagger = content, swagger
        self.document = JsonSchemas(content, legacy)
        self.shaper = Shaper(self.document)
        self.lost: list[str] = []
        """References to locations that do not exist."""

    def servers(self) -> Iterator[str]:
        """Yield base URLs, with variables replaced by their defaults."""
        if self._swagger:
            host, path = self._content.get("host"), str(self._content.get("basePath", "/"))
            schemes = _list(self._content.get("schemes")) or ["https"]
            yield f"{schemes[0]}://{host}{path}" if host else path
            return
        for server in _list(self._content.get("servers"))[: limits.DOCUMENT_SERVERS]:
            url = str(_dict(server).get("url", ""))
            variables = _dict(_dict(server).get("variables"))
            # Each once, from left to right: what a default says is not expanded again.
            expanded = _VARIABLE.sub(partial(_default, variables), url[: limits.HTTP_URL_CHARS])
            yield expanded[: limits.HTTP_URL_CHARS]

    def operations(self) -> Iterator[Operation]:
        """Yield the operations that accept a JSON or form body. One that cannot be read is left out."""
        for path, item in _dict(self._content.get("paths")).items():
            item = self._resolve(item)
            for method in METHODS:
                operation = _dict(item.get(method))
                body = self._body(operation, item) if operation else None
                if body is not None:
                    yield self._operation(method, str(path), operation, item, body)

    def _operation(
        self, method: str, path: str, operation: Mapping[str, Any], item: Mapping[str, Any], body: Body
    ) -> Operation:
        by_location: dict[str, dict[str, Schema]] = {"path": {}, "query": {}, "header": {}}
        for parameter in self._parameters(operation, item):
            location, name = parameter.get("in"), str(parameter.get("name", ""))
            if location == "header" and name.lower() in _IGNORED_HEADERS:
                continue
            if location in by_location and name and (parameter.get("required") or location == "path"):
                inline = {
                    key: entry for key, entry in parameter.items() if key not in ("required", "readOnly")
                }
                content: Any = next(iter(_dict(parameter.get("content")).values()), {})
                schema = parameter.get("schema") or _dict(content).get("schema") or inline
                by_location[location][name] = self._shape(schema) or {"type": "string"}
        title = str(operation.get("summary") or operation.get("operationId") or "")
        return Operation(
            method, path, title, body, by_location["path"], by_location["query"], by_location["header"]
        )

    def _parameters(
        self, operation: Mapping[str, Any], item: Mapping[str, Any]
    ) -> Iterator[Mapping[str, Any]]:
        parameters = {}
        for entry in (*_list(item.get("parameters")), *_list(operation.get("parameters"))):
            parameter = self._resolve(entry)
            parameters[parameter.get("in"), parameter.get("name")] = parameter
        yield from parameters.values()

    def _body(self, operation: Mapping[str, Any], item: Mapping[str, Any]) -> Body | None:
        if self._swagger:
            return self._swagger_body(operation, item)
        content = _dict(self._resolve(operation.get("requestBody")).get("content"))
        schema = _json_of(content)
        if schema is not None:
            return self._create_body(schema, "json")
        for kind, media in content.items():
            if str(kind).partition(";")[0].strip().lower() == FORM_TYPE and _dict(media).get("schema"):
                encodings = [_dict(entry) for entry in _dict(_dict(media).get("encoding")).values()]
                is_nested = any(encoding.get("style") == "deepObject" for encoding in encodings)
                return self._create_body(media["schema"], "brackets" if is_nested else "form")
        return None

    def _swagger_body(self, operation: Mapping[str, Any], item: Mapping[str, Any]) -> Body | None:
        parameters = list(self._parameters(operation, item))
        for parameter in parameters:
            if parameter.get("in") == "body":
                return self._create_body(parameter.get("schema") or {}, "json")
        fields = [parameter for parameter in parameters if parameter.get("in") == "formData"]
        media_types = operation.get("consumes") or self._content.get("consumes") or [FORM_TYPE]
        if (
            not fields
            or FORM_TYPE not in _list(media_types)
            or any(field.get("type") == "file" for field in fields)
        ):
            return None
        properties = {
            str(field.get("name")): {key: value for key, value in field.items() if key != "required"}
            for field in fields
        }
        required = [str(field.get("name")) for field in fields if field.get("required") is True]
        return self._create_body({"type": "object", "properties": properties, "required": required}, "form")

    def _create_body(self, schema: Any, encoding: Encoding) -> Body | None:
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
        if shape is None and self.document.visits_left <= 0:
            raise too_many_schemas_error()
        if shape is not None and OMISSION_KEYWORD in shape:
            self.lost.append(shape[OMISSION_KEYWORD])
            return None
        return shape

    def _resolve(self, value: Any) -> Mapping[str, Any]:
        """Return an object, or the one that its `$ref` points to; empty if it leads nowhere."""
        for _ in range(limits.DOCUMENT_DEPTH):
            if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
                break
            try:
                value = self.document.target(value["$ref"])
            except UnresolvedReferenceError as error:
                self.lost.append(str(error))
                return {}
        return _dict(value)


def too_many_schemas_error() -> ConnectorError:
    """Return the error for a document whose schemas refer to each other too often."""
    return _document_error("The document's schemas are too large when their references are followed.", "")


def has_columns(shape: Schema) -> bool:
    """Return whether an object has a property that is sent."""
    return any(
        OMISSION_KEYWORD not in item and not item.get("readOnly")
        for item in _dict(shape.get("properties")).values()
    )


def _default(variables: Mapping[str, Any], match: re.Match[str]) -> str:
    """Return the default of a variable in a server URL; the variable itself if it has none."""
    if match[1] not in variables:
        return match[0]
    return str(_dict(variables[match[1]]).get("default", ""))[: limits.HTTP_URL_CHARS]


def _json_of(content: Mapping[str, Any]) -> Any:
    """Return the schema of the JSON body among several media types."""
    for kind, media in content.items():
        media_type = str(kind).partition(";")[0].strip().lower()
        if media_type in _JSON or media_type.endswith("+json"):
            return _dict(media).get("schema")
    return None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# --- Metadata -----------------------------------------------------------------------------------------------

_TYPES: Final[Mapping[str, ColumnType]] = {
    "integer": "integer", "number": "decimal", "boolean": "boolean", "object": "json", "array": "array",
}  # fmt: skip
_FORMATS: Final[Mapping[str, ColumnType]] = {
    "date": "date", "date-time": "timestamptz", "uuid": "uuid", "byte": "binary", "time": "time",
    "float": "float", "double": "float",
}  # fmt: skip


BODY_PARTS: Final[Mapping[str, str]] = {
    "array": "=[]", "value": "=value", "form": "=form", "brackets": "=brackets",
}  # fmt: skip
"""Parts of an entity's name for bodies that are not a JSON object: an array with the row, the value of its only column,
and form data (see `document.Body`)."""


def metadata(document: Document, found_at: str) -> Metadata:
    """Return the metadata of a document.

    The `parts` of an entity are the method, the path, the names of required parameters in the query
    (`?name`) and in headers (`name:`), those that the body has too (`+name`), and how the body is built (`BODY_PARTS`).
    """
    entities = tuple(_entity(operation) for operation in document.operations)
    base = base_url(document, found_at)
    return Metadata("openapi", f"{document.title} {document.version}".strip(), entities, base)


def metadata_in_process(file: IO[bytes], found_at: str) -> bytes | dict[str, Any]:
    """Read an OpenAPI document: see `metadata_documents.metadata`."""
    return metadata_documents.result_or_error(
        lambda: metadata_documents.dump(metadata(read(file.read()), found_at))
    )


def _entity(operation: Operation) -> Entity:
    parameters = {**operation.in_path, **operation.in_query, **operation.in_header}
    columns = [create_column(name, schema, True) for name, schema in parameters.items()]
    required = set(operation.body.shape.get("required") or ())
    columns += [
        create_column(name, schema, name in required)
        for name, schema in operation.body.shape["properties"].items()
        if name not in parameters
    ]
    others = [*(f"?{name}" for name in operation.in_query), *(f"{name}:" for name in operation.in_header)]
    others += [
        f"+{name}"
        for name, schema in operation.body.shape["properties"].items()
        if name in parameters and not schema.get("readOnly") and OMISSION_KEYWORD not in schema
    ]
    others += [
        part
        for part in (BODY_PARTS.get(operation.body.form), BODY_PARTS.get(operation.body.encoding))
        if part
    ]
    return Entity(
        operation.name,
        (operation.method.upper(), operation.path, *others),
        tuple(columns),
        "operation",
        comment=operation.title,
    )


def create_column(name: str, schema: Schema, required: bool) -> Column:
    """Return the column for a property of a body or a parameter."""
    kind = _kind(schema)
    choices = schema.get("enum") or ()
    declared = " ".join(str(schema[key]) for key in ("type", "format") if schema.get(key))
    items = _kind(schema.get("items") or {}) if kind == "array" else None
    return Column(
        name,
        "enum" if choices and kind == "text" else kind,
        declared or "any",
        nullable=not required or bool(schema.get("nullable")),
        max_length=schema.get("maxLength") if kind in ("text", "binary") else None,
        bits={"int32": 32, "int64": 64}.get(schema.get("format", "")) if kind == "integer" else None,
        generated="computed" if schema.get("readOnly") else "",
        choices=tuple(str(choice) for choice in choices if choice is not None),
        items=items,
        comment=" ".join(str(schema.get("description", "")).split())[: limits.MAX_NAME_CHARS],
        schema=schema or None,
    )


def omission_reason(column: Column) -> str:
    """Return why a column is not generated; empty if it is."""
    return str((column.schema or {}).get(OMISSION_KEYWORD, ""))


def _kind(schema: Schema) -> ColumnType:
    format_name = schema.get("format")
    if isinstance(format_name, str) and format_name in _FORMATS:
        return _FORMATS[format_name]
    kind = schema.get("type", "string")
    return _TYPES.get(kind, "text" if kind == "string" else "other") if isinstance(kind, str) else "other"

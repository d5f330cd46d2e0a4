"""The OpenAPI document as shown on pages: groups of operations, rows of fields, errors by status.

Everything is read from the document, so pages always match the service.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from webapp.web.forms.from_model import label_of

Schema = Mapping[str, Any]
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
JSON: Final = "application/json"
_CODE: Final = re.compile(r"`(\w+)`: ")
_PARTS: Final = re.compile(r"[a-z0-9.]+")
_TITLES: Final = {
    "ai": "AI",
    "api_keys": "API keys",
    "documents": "OpenAPI document",
    "exports_at_once": "Sending immediately",
    "generate": "Rows",
    "projects": "Projects and teams",
    "session": "Who is calling",
    "table_templates": "Templates of tables",
    "members": "Members and invitations",
    "trash": "Trash, uses and moves",
}
"""Names of groups whose tags are not clear."""
_TYPE_NAMES: Final = {
    "integer": "whole number",
    "boolean": "true or false",
    "string": "text",
    "array": "list",
    "null": "null",
}
_FORMATS: Final = {"date-time": "time (RFC 3339)", "binary": "file"}
_MAX_DEPTH: Final = 6
"""Documented levels of nested objects; recursive schemas end here."""


@dataclass(frozen=True, slots=True)
class Row:
    """A key of a body, a parameter, or a key of a response. `default` is JSON, "" for none; `limits` in words."""

    name: str
    kind: str
    required: bool
    default: str
    limits: str
    text: str


@dataclass(frozen=True, slots=True)
class Response:
    """A successful response: its content types, and the model of its JSON, or (`is_list`) of each item of
    a page. `paged`: it has a `next_cursor`."""

    status: int
    text: str
    kinds: tuple[str, ...]
    model: str
    is_list: bool
    paged: bool
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    key: str
    method: str
    path: str
    id: str
    summary: str
    description: tuple[str, ...]
    scope: str
    parameters: tuple[tuple[str, Row], ...]
    body: str
    body_kind: str
    body_required: bool
    body_rows: tuple[Row, ...]
    answers: tuple[Response, ...]
    errors: tuple[tuple[int, tuple[str, ...]], ...]
    headers: tuple[str, ...]
    idempotent: bool
    if_match: bool

    @property
    def slug(self) -> str:
        """The last part of its page's address."""
        return slug_of(self.method, self.path)

    @property
    def paged(self) -> bool:
        """Return whether it returns a page of a list."""
        return any(answer.paged for answer in self.answers)


@dataclass(slots=True)
class Group:
    """The operations of one tag, and the objects that they return: their keys, by the objects' names."""

    tag: str
    title: str
    operations: list[Operation] = field(default_factory=list)
    objects: dict[str, tuple[str, tuple[Row, ...]]] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """Its part of an address."""
        return self.tag.replace("_", "-")

    def objects_of(self, operation: Operation) -> dict[str, tuple[str, tuple[Row, ...]]]:
        """Return the objects that an operation returns."""
        models = {answer.model for answer in operation.answers}
        return {name: description for name, description in self.objects.items() if name in models}


def slug_of(method: str, path: str) -> str:
    """Return `get-templates-template-id` for GET /templates/{template_id}."""
    return "-".join([method.lower(), *_PARTS.findall(path.lower())])


def groups(document: Mapping[str, Any]) -> dict[str, Group]:
    """Return all groups by slug, ordered by title; their operations are ordered by path, then by `METHODS`."""
    schemas = document["components"]["schemas"]
    found: dict[str, Group] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method.lower() not in methods:
                continue
            described = methods[method.lower()]
            tag = described["tags"][0]
            group = found.setdefault(tag, Group(tag, _TITLES.get(tag) or label_of(tag)))
            operation = _operation(method, path, described, schemas)
            group.operations.append(operation)
            for answer in operation.answers:
                if answer.model and answer.model not in group.objects:
                    schema = schemas[answer.model]
                    group.objects[answer.model] = _description(schema), tuple(schema_rows(schema, schemas))
    for group in found.values():
        group.objects = dict(sorted(group.objects.items()))
    return {item.slug: item for item in sorted(found.values(), key=lambda entry: entry.title.lower())}


def _operation(method: str, path: str, described: Schema, schemas: Schema) -> Operation:
    content: dict[str, Schema] = described.get("requestBody", {}).get("content", {})
    nothing: tuple[str, Schema] = ("", {})
    kind, inner = next(iter(content.items()), nothing)
    schema = inner.get("schema", {})
    successes = {
        int(status): response for status, response in described["responses"].items() if int(status) < 400
    }
    failures = {
        int(status): response for status, response in described["responses"].items() if int(status) >= 400
    }
    header_names = {
        name for response in described["responses"].values() for name in response.get("headers", {})
    }
    # The two request headers are flags; their description is on the first page.
    paragraphs = [
        item for item in described.get("description", "").split("\n\n") if not item.startswith("Header `")
    ]
    return Operation(
        key=f"{method} {path}",
        method=method,
        path=path,
        id=described["operationId"],
        summary=described["summary"],
        description=tuple(filter(None, paragraphs)),
        scope=described["x-scope"],
        parameters=tuple(
            (
                parameter["in"],
                _schema_row(parameter["name"], parameter["schema"], parameter["required"], schemas),
            )
            for parameter in described["parameters"]
        ),
        body=_schema_name(schema),
        body_kind=kind,
        body_required=bool(described.get("requestBody", {}).get("required")),
        body_rows=tuple(schema_rows(_resolve(schema, schemas), schemas)) if schema else (),
        answers=tuple(_response(status, item, schemas) for status, item in sorted(successes.items())),
        errors=tuple(
            (status, tuple(_CODE.findall(item["description"]))) for status, item in sorted(failures.items())
        ),
        headers=tuple(sorted(header_names)),
        idempotent=bool(described.get("x-idempotency-key")),
        if_match=bool(described.get("x-if-match")),
    )


def _response(status: int, response: Schema, schemas: Schema) -> Response:
    content = response.get("content", {})
    schema = content.get(JSON, {}).get("schema", {})
    inner = schema.get("properties", {}).get("items", {}).get("items", {})
    is_list = bool(inner)
    model = _schema_name(inner if is_list else schema)
    paged = "next_cursor" in _resolve(schema, schemas).get("properties", {})
    unnamed_rows = () if model else tuple(schema_rows(schema, schemas))
    return Response(status, response["description"], tuple(content), model, is_list, paged, unnamed_rows)


def schema_rows(schema: Schema, schemas: Schema, prefix: str = "", depth: int = 0) -> Iterator[Row]:
    """Yield the keys of an object, each followed by those of nested objects, as `csv.delimiter` and `fields[].name`."""
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        yield _schema_row(prefix + name, part, name in required, schemas)
        if depth >= _MAX_DEPTH:
            continue
        for inner, mark in _objects(part, schemas):
            yield from schema_rows(inner, schemas, f"{prefix}{name}{mark}.", depth + 1)


def _objects(part: Schema, schemas: Schema, mark: str = "") -> Iterator[tuple[Schema, str]]:
    """Return the objects that a schema can be, each with `[]` for every enclosing list."""
    part = _resolve(part, schemas)
    for item in (*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())):
        yield from _objects(item, schemas, mark)
    if part.get("type") == "array":
        yield from _objects(part.get("items", {}), schemas, f"{mark}[]")
    elif "properties" in part:
        yield part, mark


def _schema_row(name: str, part: Schema, required: bool, schemas: Schema) -> Row:
    default = part.get("default")
    default_text = "" if required or default is None else json.dumps(default, ensure_ascii=False)
    limits = "; ".join(dict.fromkeys(_limits(part, schemas)))
    return Row(name, schema_text(part, schemas), required, default_text, limits, _description(part))


def schema_text(part: Schema, schemas: Schema) -> str:
    """Return a schema in a few words: `whole number or null`, `list of text`."""
    part = _resolve(part, schemas)
    choices = [*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())]
    if choices:
        return " or ".join(dict.fromkeys(schema_text(choice, schemas) for choice in choices))
    values = part.get("enum", [part["const"]] if "const" in part else [])
    if values:
        return " or ".join(dict.fromkeys(_value_type(value) for value in values))
    type_name: str | list[str] = part.get("type", "any")
    if isinstance(type_name, list):
        return " or ".join(_TYPE_NAMES.get(item, item) for item in type_name)
    if type_name == "array":
        items = part.get("items")
        return f"list of {schema_text(items, schemas)}" if items else "list"
    if type_name == "object" and isinstance(part.get("additionalProperties"), dict):
        return f"object of {schema_text(part['additionalProperties'], schemas)}"
    return _FORMATS.get(part.get("format", ""), "") or _TYPE_NAMES.get(type_name, type_name)


def _value_type(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "text" if isinstance(value, str) else "null" if value is None else "number"


def _limits(part: Schema, schemas: Schema) -> Iterator[str]:
    part = _resolve(part, schemas)
    for item in (*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())):
        yield from _limits(item, schemas)
    values = part.get("enum", [part["const"]] if "const" in part else [])
    if values:
        yield ", ".join(f"`{value if isinstance(value, str) else json.dumps(value)}`" for value in values)
    yield from _range_text(part, "minimum", "maximum", "")
    yield from _range_text(part, "minLength", "maxLength", " characters")
    yield from _range_text(part, "minItems", "maxItems", " items")
    yield from _range_text(part, "minProperties", "maxProperties", " keys")
    if "pattern" in part:
        yield "not blank" if part["pattern"] == r"\S" else f"as `{part['pattern']}`"
    if isinstance(part.get("items"), dict) and not _resolve(part["items"], schemas).get("properties"):
        yield from (f"each {limit}" for limit in _limits(part["items"], schemas))


def _range_text(part: Schema, minimum_key: str, maximum_key: str, unit: str) -> Iterator[str]:
    minimum, maximum = part.get(minimum_key), part.get(maximum_key)
    if minimum is not None and maximum is not None:
        yield f"{minimum:,} to {maximum:,}{unit}"
    elif maximum is not None:
        yield f"at most {maximum:,}{unit}"
    elif minimum is not None:
        yield f"at least {minimum:,}{unit}"


def _resolve(part: Schema, schemas: Schema) -> Schema:
    """Return the schema that a reference points to."""
    name = _schema_name(part)
    return {**schemas[name], **{k: v for k, v in part.items() if k != "$ref"}} if name else part


def _schema_name(part: Schema) -> str:
    return str(part.get("$ref", "")).rpartition("/")[2]


def _description(part: Schema) -> str:
    return " ".join(str(part.get("description", "")).split())

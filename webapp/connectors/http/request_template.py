"""Request templates: method, path, headers, query and body with `{{field}}` placeholders, rendered for many
rows.

A string in the body that consists of a single `{{field}}` is replaced by the value itself: a number stays a
number, and a nested field becomes an object. With other text around it, it becomes text. Values in a path are
percent-encoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, Field, JsonValue

from webapp import limits
from webapp.connectors.base import ConnectorError, Settings
from webapp.connectors.http.authentication import HeaderName
from webapp.engine.formats.nested import is_json_text, json_texts
from webapp.engine.placeholders import Placeholder, PlaceholderError, PlaceholderText, parse

HeaderEncoding = Literal["none", "rfc8187", "percent"]
UNFIT_CHARACTERS: Final = r"[^\t -~\x{80}-\x{ff}]"
"""Characters that a header cannot contain (RFC 9110, 5.5): control characters and characters outside Latin-1.
A regular expression for Arrow."""
UNFIT_IN_HEADERS: Final = rf"{UNFIT_CHARACTERS}|^[\x{{85}}\x{{a0}}]"
"""The same for a whole header: the HTTP library rejects one that starts with white space."""
_ATTR_CHARS: Final = (
    "!#$&+^`|"  # RFC 8187, 3.2.1: attr-char, except for those that `quote` does not encode anyway
)
_SECRET_HEADERS: Final = frozenset({"authorization", "cookie", "x-api-key", "api-key"})
_REFERENCE_START: Final = "${"


def _check_pattern(source: str) -> str:
    try:
        parse(source)
    except PlaceholderError as error:
        raise ValueError(f"{error} (character {error.position + 1})") from None
    return source


def _path(path: str) -> str:
    if re.match(r"[A-Za-z][\w+.-]*:|//", path):
        raise ValueError("a path is relative to the base URL and must not contain a host")
    if not path.isprintable() or "\\" in path or "#" in path:
        raise ValueError("a path must not contain line breaks, backslashes or #")
    if ".." in path.partition("?")[0].split("/"):
        raise ValueError("a path must not contain ..")
    return path


def _check_one_line(value: str) -> str:
    if not value.isprintable():
        raise ValueError("line breaks and control characters are not allowed")
    return value


def _check_latin(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        literal = "".join(part for part in parse(value).parts if isinstance(part, str))
        unfit = next((ch for ch in literal if ch > "\xff"), None)
        if unfit is not None:
            raise ValueError(f'{name} contains "{unfit}": headers can contain only Latin-1 characters')
    return headers


def _check_no_secrets(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if name.lower() in _SECRET_HEADERS and _REFERENCE_START not in value:
            raise ValueError(
                f"{name} contains a secret: use the authentication settings, or a stored secret as ${{name}}"
            )
    return headers


PathText = Annotated[
    str, Field(max_length=limits.HTTP_URL_CHARS), AfterValidator(_path), AfterValidator(_check_pattern)
]
_Text = Annotated[
    str,
    Field(max_length=limits.HTTP_HEADER_CHARS),
    AfterValidator(_check_one_line),
    AfterValidator(_check_pattern),
]
Headers = Annotated[
    dict[HeaderName, _Text],
    Field(max_length=limits.HTTP_HEADERS),
    AfterValidator(_check_no_secrets),
    AfterValidator(_check_latin),
]


def _check_fixed(headers: dict[str, str]) -> dict[str, str]:
    if any("{{" in value for value in headers.values()):
        raise ValueError("these headers are the same for every row and cannot contain {{field}}")
    return headers


FixedHeaders = Annotated[Headers, AfterValidator(_check_fixed)]


def _body(value: Any) -> Any:
    is_placeholder = (
        isinstance(value, str) and len(parse(value).parts) == 1 and bool(parse(value).placeholders)
    )
    if value is not None and not isinstance(value, dict | list) and not is_placeholder:
        raise ValueError("the body must be an object, an array, or the {{field}} whose value it is")
    for text in _strings(value):
        _check_pattern(text)
    if len(orjson.dumps(value)) > limits.HTTP_TEMPLATE_BYTES:
        raise ValueError(f"the body must have at most {limits.HTTP_TEMPLATE_BYTES:,} bytes")
    return value


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


class RequestTemplate(Settings):
    """The request for one row. Without a body it contains the row itself, without a path it uses the
    connection's path."""

    method: Literal["POST", "PUT", "PATCH", "DELETE", "GET"] = "POST"
    path: PathText | None = None
    headers: Headers = Field(default_factory=dict)
    header_encoding: HeaderEncoding = Field(
        "none",
        description="How row values are encoded in headers. none: unchanged; a push is rejected if a value has "
        "characters outside Latin-1 or line breaks. rfc8187: UTF-8''Z%C3%BCrich, for parameters such as "
        "filename*={{name}}. percent: Z%C3%BCrich.",
    )
    query_params: Annotated[dict[str, _Text], Field(max_length=limits.HTTP_HEADERS)] = Field(
        default_factory=dict
    )
    body: Annotated[JsonValue, AfterValidator(_body)] = None
    encoding: Literal["json", "form", "brackets"] = Field(
        "json",
        description="How the body is encoded. json: as JSON. form: as form data "
        "(application/x-www-form-urlencoded), with a repeated name for each element of an array. brackets: as form "
        "data with names such as items[0][price].",
    )

    def field_names(self, *, body: bool = True) -> set[str]:
        """Return the fields that it uses."""
        return {name for location, name in self.field_locations() if body or location != "body"}

    def field_locations(self) -> Iterator[tuple[str, str]]:
        """Yield each location that uses fields (`path`, `headers.X-Name`, `query_params.q`, `body`), with
        each field."""
        texts = [("path", self.path or "")]
        texts += [(f"headers.{name}", text) for name, text in self.headers.items()]
        texts += [(f"query_params.{name}", text) for name, text in self.query_params.items()]
        texts += [("body", text) for text in _strings(self.body)]
        yield from dict.fromkeys(
            (location, hole.name) for location, text in texts for hole in parse(text).placeholders
        )


@dataclass(frozen=True, slots=True)
class ComposedRequest:
    """A request without base URL and authentication."""

    path: str
    headers: dict[str, str]
    query: dict[str, str]
    body: str | bytes | None
    """JSON; bytes if it contains many rows."""


class Renderer:
    """Renders a template for rows."""

    def __init__(self, template: RequestTemplate, path: str) -> None:
        self._path = parse(template.path if template.path is not None else path)
        self._headers = {name: parse(text) for name, text in template.headers.items()}
        self._query = {name: parse(text) for name, text in template.query_params.items()}
        self._body, self._has_body = template.body, template.method != "GET"
        self._encoding = template.header_encoding

    def render_rows(self, batch: pa.RecordBatch) -> list[ComposedRequest]:
        """Return a request for each row. Raises `ConnectorError` (reason `unknown_field`)."""
        values, n = _Values(batch), batch.num_rows
        pieces = [
            [part] * n
            if isinstance(part, str)
            else [quote(text, safe="") for text in _texts(PlaceholderText((part,)), values, n)]
            for part in self._path.parts
        ]
        paths = ["".join(row) for row in zip(*pieces, strict=True)] if pieces else [""] * n
        headers = _rows_of(
            {name: column.to_pylist() for name, column in self.render_headers(batch).items()}, n
        )
        query = _rows_of({name: _texts(pattern, values, n) for name, pattern in self._query.items()}, n)
        bodies = self.render_bodies(batch) if self._has_body else [None] * n
        return [ComposedRequest(*parts) for parts in zip(paths, headers, query, bodies, strict=True)]

    def render_headers(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the value of each header in each row, as it is sent. Raises as `render_rows`."""
        values, n = _Values(batch), batch.num_rows
        return {name: self._header(pattern, values, n) for name, pattern in self._headers.items()}

    def _header(self, pattern: PlaceholderText, values: _Values, n: int) -> pa.Array:
        if self._encoding == "none" or not pattern.placeholders:
            # Surrounding white space is not part of a value (RFC 9110, 5.5).
            return pc.utf8_trim(_decoded(pattern.fill(values.column, n)), " \t")
        prefix, safe = ("UTF-8''", _ATTR_CHARS) if self._encoding == "rfc8187" else ("", "")
        pieces: list[str | pa.Array] = [
            part
            if isinstance(part, str)
            else pa.array(
                [prefix + quote(text, safe=safe) for text in _texts(PlaceholderText((part,)), values, n)],
                pa.string(),
            )
            for part in pattern.parts
        ]
        return pc.utf8_trim(pc.binary_join_element_wise(*pieces, ""), " \t")

    def render_bodies(self, batch: pa.RecordBatch) -> list[str]:
        """Return the JSON body of each row."""
        if not batch.num_rows:
            return []
        if self._body is None:
            return _to_list(_Values(batch).rows_json())
        pieces: list[str | pa.Array] = []
        for piece in _json_pieces(self._body, _Values(batch), batch.num_rows):
            if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
                pieces[-1] += piece
            else:
                pieces.append(piece)
        if all(isinstance(piece, str) for piece in pieces):
            return ["".join(pieces)] * batch.num_rows
        return _to_list(pc.binary_join_element_wise(*pieces, ""))


def value_in_header(batch: pa.RecordBatch, placeholder: Placeholder) -> pa.Array:
    """Return the text that one `{{field}}` produces in each row."""
    return _decoded(PlaceholderText((placeholder,)).fill(_Values(batch).column, batch.num_rows))


def has_field(batch: pa.RecordBatch, name: str) -> bool:
    """Return whether rows have a field with this name or path."""
    try:
        _Values(batch).column(name)
    except ConnectorError:
        return False
    return True


class _Values:
    """The columns of a batch, and their nested fields."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def column(self, name: str) -> pa.Array:
        """Return a field by its name, or by its path in a nested field."""
        names = self._batch.schema.names
        if name in names:
            return _decoded(self._batch.column(name))
        head, *rest = name.split(".")
        if head in names and rest:
            try:
                return _decoded(reduce(pc.struct_field, rest, self._batch.column(head)))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError, TypeError):
                pass
        message = f'The request uses "{name[:100]}", but the rows have no such field.'
        raise ConnectorError(
            message,
            reason="unknown_field",
            hint=f"Available fields: {', '.join(names[: limits.MAPPING_FIELDS_NAMED])}.",
        )

    def json(self, name: str) -> pa.Array:
        """Return a field as JSON. Columns that contain JSON text, such as lists of objects, are JSON already."""
        values = self.column(name)
        head, *rest = [name] if name in self._batch.schema.names else name.split(".")
        field = self._batch.schema.field(head)
        for part in rest:
            field = field.type.field(part)
        if is_json_text(field) and pa.types.is_string(values.type):
            return pc.fill_null(values, "null")
        return json_texts(values)

    def rows_json(self) -> pa.Array:
        """Return each row as JSON."""
        columns = [_decoded(values) for values in self._batch.columns]
        fields = [
            field.with_type(column.type) for field, column in zip(self._batch.schema, columns, strict=True)
        ]
        return json_texts(pa.StructArray.from_arrays(columns, fields=fields))


def _decoded(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _to_list(texts: pa.Array) -> list[str]:
    result: list[str] = texts.to_pylist()
    return result


def _texts(pattern: PlaceholderText, values: _Values, n: int) -> list[str]:
    return _to_list(_decoded(pattern.fill(values.column, n)))


def _rows_of(columns: Mapping[str, Sequence[str]], n: int) -> list[dict[str, str]]:
    if not columns:
        return [{}] * n
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _json_pieces(value: Any, values: _Values, n: int) -> Iterator[str | pa.Array]:
    """Yield the parts of a body: fixed JSON text, and the JSON text of values."""
    if isinstance(value, str):
        yield _json_of(parse(value), values, n)
    elif isinstance(value, dict | list):
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        yield opening
        for index, item in enumerate(value):
            yield "," if index else ""
            if isinstance(value, dict):
                yield _text_of(parse(item), values, n)
                yield ":"
                item = value[item]
            yield from _json_pieces(item, values, n)
        yield closing
    else:
        yield orjson.dumps(value).decode()


def _json_of(pattern: PlaceholderText, values: _Values, n: int) -> str | pa.Array:
    """Return a string of the body. A single placeholder keeps the type of its value."""
    if len(pattern.parts) == 1 and pattern.placeholders:
        hole = pattern.placeholders[0]
        if not hole.filters:
            return values.json(hole.name)
        if hole.is_json:
            return _decoded(pattern.fill(values.column, n))
    return _text_of(pattern, values, n)


def _text_of(pattern: PlaceholderText, values: _Values, n: int) -> str | pa.Array:
    if not pattern.placeholders:
        return orjson.dumps("".join(map(str, pattern.parts))).decode()
    return json_texts(_decoded(pattern.fill(values.column, n)))

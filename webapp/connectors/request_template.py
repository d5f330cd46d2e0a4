"""Request templates: method, path, headers, query and body with `{{field}}` in them, rendered for many rows at once.

A string of the body that is nothing but one `{{field}}` becomes the value itself: a number stays one, a nested field
becomes an object; with other text around it, it becomes text. In a path values are percent-encoded.
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
from webapp.connectors.http_auth import HeaderName
from webapp.engine.formats.nested import json_texts
from webapp.engine.placeholders import Hole, Pattern, PlaceholderError, parse

HeaderEncoding = Literal["none", "rfc8187", "percent"]
UNFIT_CHARACTERS: Final = r"[^\t -~\x{80}-\x{ff}]"
"""What a header cannot hold (RFC 9110, 5.5): control characters and what Latin-1 does not have. A regular expression
for Arrow."""
UNFIT_IN_HEADERS: Final = rf"{UNFIT_CHARACTERS}|^[\x{{85}}\x{{a0}}]"
"""The same for a whole header: the HTTP library rejects one that begins with white space."""
_ATTR_CHARS: Final = "!#$&+^`|"  # RFC 8187, 3.2.1: attr-char, besides what `quote` leaves as it is anyway
_SECRETIVE: Final = frozenset({"authorization", "cookie", "x-api-key", "api-key"})
_REFERENCE: Final = "${"


def _pattern(source: str) -> str:
    try:
        parse(source)
    except PlaceholderError as error:
        raise ValueError(f"{error} (character {error.position + 1})") from None
    return source


def _path(path: str) -> str:
    if re.match(r"[A-Za-z][\w+.-]*:|//", path):
        raise ValueError("a path is resolved against the base URL and names no host of its own")
    if not path.isprintable() or "\\" in path or "#" in path:
        raise ValueError("a path holds no line breaks, no backslashes and no #")
    if ".." in path.partition("?")[0].split("/"):
        raise ValueError("a path does not lead upwards")
    return path


def _one_line(value: str) -> str:
    if not value.isprintable():
        raise ValueError("this has no line breaks and no control characters")
    return value


def _latin(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        literal = "".join(part for part in parse(value).parts if isinstance(part, str))
        unfit = next((ch for ch in literal if ch > "\xff"), None)
        if unfit is not None:
            raise ValueError(f'{name} holds "{unfit}": a header holds characters of Latin-1 only')
    return headers


def _without_secrets(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if name.lower() in _SECRETIVE and _REFERENCE not in value:
            raise ValueError(
                f"{name} holds a secret: use the authentication, or a stored secret as ${{name}}"
            )
    return headers


PathText = Annotated[
    str, Field(max_length=limits.HTTP_URL_CHARS), AfterValidator(_path), AfterValidator(_pattern)
]
_Text = Annotated[
    str, Field(max_length=limits.HTTP_HEADER_CHARS), AfterValidator(_one_line), AfterValidator(_pattern)
]
Headers = Annotated[
    dict[HeaderName, _Text],
    Field(max_length=limits.HTTP_HEADERS),
    AfterValidator(_without_secrets),
    AfterValidator(_latin),
]


def _fixed(headers: dict[str, str]) -> dict[str, str]:
    if any("{{" in value for value in headers.values()):
        raise ValueError("these headers are the same for every row: {{field}} is not put in")
    return headers


FixedHeaders = Annotated[Headers, AfterValidator(_fixed)]


def _body(value: Any) -> Any:
    if value is not None and not isinstance(value, dict | list):
        raise ValueError("the body is an object or an array")
    for text in _strings(value):
        _pattern(text)
    if len(orjson.dumps(value)) > limits.HTTP_TEMPLATE_BYTES:
        raise ValueError(f"the body has at most {limits.HTTP_TEMPLATE_BYTES:,} bytes")
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
    """What is sent for one row. Without a body it is the row itself, without a path the connection's own."""

    method: Literal["POST", "PUT", "PATCH", "DELETE", "GET"] = "POST"
    path: PathText | None = None
    headers: Headers = Field(default_factory=dict)
    header_encoding: HeaderEncoding = Field(
        "none",
        description="How row values are written in headers. none: as they are; a push is rejected if a value has "
        "characters beyond Latin-1 or line breaks. rfc8187: UTF-8''Z%C3%BCrich, for parameters such as "
        "filename*={{name}}. percent: Z%C3%BCrich.",
    )
    query_params: Annotated[dict[str, _Text], Field(max_length=limits.HTTP_HEADERS)] = Field(
        default_factory=dict
    )
    body: Annotated[JsonValue, AfterValidator(_body)] = None

    def names(self, *, body: bool = True) -> set[str]:
        """The fields that it reads."""
        return {name for place, name in self.reads() if body or place != "body"}

    def reads(self) -> Iterator[tuple[str, str]]:
        """Each place that reads fields (`path`, `headers.X-Name`, `query_params.q`, `body`), with each of them."""
        texts = [("path", self.path or "")]
        texts += [(f"headers.{name}", text) for name, text in self.headers.items()]
        texts += [(f"query_params.{name}", text) for name, text in self.query_params.items()]
        texts += [("body", text) for text in _strings(self.body)]
        yield from dict.fromkeys((place, hole.name) for place, text in texts for hole in parse(text).holes)


@dataclass(frozen=True, slots=True)
class Made:
    """One request, without the base URL and without authentication."""

    path: str
    headers: dict[str, str]
    query: dict[str, str]
    body: str | bytes | None
    """JSON; bytes where it holds many rows."""


class Renderer:
    """A template for rows of some columns."""

    def __init__(self, template: RequestTemplate, path: str) -> None:
        self._path = parse(template.path if template.path is not None else path)
        self._headers = {name: parse(text) for name, text in template.headers.items()}
        self._query = {name: parse(text) for name, text in template.query_params.items()}
        self._body, self._sends = template.body, template.method != "GET"
        self._encoding = template.header_encoding

    def rows(self, batch: pa.RecordBatch) -> list[Made]:
        """A request for each row. Raises `ConnectorError` (reason `unknown_field`)."""
        values, n = _Values(batch), batch.num_rows
        paths = _paths(self._path, values, n)
        headers = _rows_of({name: column.to_pylist() for name, column in self.headers(batch).items()}, n)
        query = _rows_of({name: _texts(pattern, values, n) for name, pattern in self._query.items()}, n)
        bodies = self.bodies(batch) if self._sends else [None] * n
        return [Made(*one) for one in zip(paths, headers, query, bodies, strict=True)]

    def headers(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """The value of each header in each row, as it is sent. Raises as `rows`."""
        values, n = _Values(batch), batch.num_rows
        return {name: self._header(pattern, values, n) for name, pattern in self._headers.items()}

    def _header(self, pattern: Pattern, values: _Values, n: int) -> pa.Array:
        if self._encoding == "none" or not pattern.holes:
            # White space around a value is no part of it (RFC 9110, 5.5).
            return pc.utf8_trim(_plain(pattern.fill(values.column, n)), " \t")
        front, safe = ("UTF-8''", _ATTR_CHARS) if self._encoding == "rfc8187" else ("", "")
        pieces: list[str | pa.Array] = [
            part
            if isinstance(part, str)
            else pa.array(
                [front + quote(one, safe=safe) for one in _texts(Pattern((part,)), values, n)], pa.string()
            )
            for part in pattern.parts
        ]
        return pc.utf8_trim(pc.binary_join_element_wise(*pieces, ""), " \t")

    def bodies(self, batch: pa.RecordBatch) -> list[str]:
        """The JSON of each row alone."""
        if not batch.num_rows:
            return []
        if self._body is None:
            return _Values(batch).whole().to_pylist()
        pieces = _merged(_json_pieces(self._body, _Values(batch), batch.num_rows))
        if all(isinstance(piece, str) for piece in pieces):
            return ["".join(pieces)] * batch.num_rows
        return pc.binary_join_element_wise(*pieces, "").to_pylist()


def value_in_header(batch: pa.RecordBatch, hole: Hole) -> pa.Array:
    """What one `{{field}}` puts into a text in each row."""
    return _plain(Pattern((hole,)).fill(_Values(batch).column, batch.num_rows))


def has_field(batch: pa.RecordBatch, name: str) -> bool:
    """Whether rows have a field of that name or path."""
    try:
        _Values(batch).column(name)
    except ConnectorError:
        return False
    return True


class _Values:
    """The columns of a batch, and what lies in them."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def column(self, name: str) -> pa.Array:
        """A field by its name, or by its path in a nested one."""
        names = self._batch.schema.names
        if name in names:
            return _plain(self._batch.column(name))
        head, *rest = name.split(".")
        if head in names and rest:
            try:
                return _plain(reduce(pc.struct_field, rest, self._batch.column(head)))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError, TypeError):
                pass
        told = f'The request reads "{name[:100]}", and the rows have no such field.'
        raise ConnectorError(
            told, reason="unknown_field", hint=f"They have {', '.join(names[: limits.MAPPING_FIELDS_NAMED])}."
        )

    def whole(self) -> pa.Array:
        """Each row as JSON."""
        columns = [_plain(values) for values in self._batch.columns]
        fields = [field.with_type(one.type) for field, one in zip(self._batch.schema, columns, strict=True)]
        return json_texts(pa.StructArray.from_arrays(columns, fields=fields))


def _plain(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _texts(pattern: Pattern, values: _Values, n: int) -> list[str]:
    return _plain(pattern.fill(values.column, n)).to_pylist()


def _paths(pattern: Pattern, values: _Values, n: int) -> list[str]:
    """Values stand percent-encoded between what stands as it is."""
    pieces = [
        [part] * n
        if isinstance(part, str)
        else [quote(one, safe="") for one in _texts(Pattern((part,)), values, n)]
        for part in pattern.parts
    ]
    return ["".join(row) for row in zip(*pieces, strict=True)] if pieces else [""] * n


def _rows_of(columns: Mapping[str, Sequence[str]], n: int) -> list[dict[str, str]]:
    if not columns:
        return [{}] * n
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _json_pieces(value: Any, values: _Values, n: int) -> Iterator[str | pa.Array]:
    """A body as what stands between its values and the values, all of them JSON text."""
    if isinstance(value, str):
        yield _json_of(parse(value), values, n)
    elif isinstance(value, dict | list):
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        yield opening
        for place, item in enumerate(value):
            yield "," if place else ""
            if isinstance(value, dict):
                yield _text_of(parse(item), values, n)
                yield ":"
                item = value[item]
            yield from _json_pieces(item, values, n)
        yield closing
    else:
        yield orjson.dumps(value).decode()


def _json_of(pattern: Pattern, values: _Values, n: int) -> str | pa.Array:
    """One string of a body; a value that stands alone keeps its type."""
    if len(pattern.parts) == 1 and pattern.holes:
        hole = pattern.holes[0]
        if not hole.filters:
            return json_texts(values.column(hole.name))
        if hole.json:
            return _plain(pattern.fill(values.column, n))
    return _text_of(pattern, values, n)


def _text_of(pattern: Pattern, values: _Values, n: int) -> str | pa.Array:
    if not pattern.holes:
        return orjson.dumps("".join(map(str, pattern.parts))).decode()
    return json_texts(_plain(pattern.fill(values.column, n)))


def _merged(pieces: Iterator[str | pa.Array]) -> Sequence[str | pa.Array]:
    out: list[str | pa.Array] = []
    for piece in pieces:
        if isinstance(piece, str) and out and isinstance(out[-1], str):
            out[-1] += piece
        else:
            out.append(piece)
    return out

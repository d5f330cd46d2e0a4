"""Request input: JSON bodies, forms and query strings, each validated by one pydantic model that reports all errors.

An input is a subclass of `Input` with its keys. JSON is parsed strictly (the text "5" is not a number); forms and query
strings, where everything is text, leniently. Unknown keys are rejected with a "did you mean"; read-only keys that a
client sends back (`Input.read_only`) are dropped. A form names nested values by the same paths as errors:
`fields[3].options.min`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, ClassVar, Final, TypeVar

import orjson
from flask import Request
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from werkzeug.datastructures import MultiDict

from webapp import json_input, limits
from webapp.errors import ApiError, Fault, as_faults, did_you_mean, pydantic_message, validation_error
from webapp.web.forms.from_model import convert_form_values

FORM_TYPES: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
FORM_ONLY: Final = frozenset({"csrf_token", "_method", "_next"})
READ_ONLY: Final = frozenset(
    "id label version created_at updated_at deleted_at created_by workspace_id warnings".split()
)

M = TypeVar("M", bound=BaseModel)


class Input(json_input.Model):
    """A JSON body or form. Unknown keys are rejected, those in `read_only` are ignored."""

    model_config = ConfigDict(extra="forbid", strict=True, str_strip_whitespace=False)
    read_only: ClassVar[frozenset[str]] = READ_ONLY


class Query(BaseModel):
    """The query part of an address."""

    model_config = ConfigDict(extra="forbid")


class ListQuery(Query):
    """Query parameters of every list."""

    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=limits.PAGE_LIMIT_MAX)] = limits.PAGE_LIMIT_DEFAULT
    q: Annotated[str, Field(max_length=limits.MAX_QUERY_TEXT)] | None = None


_TIME_FORMAT: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _parse_time(value: Any) -> datetime:
    if not isinstance(value, str) or not _TIME_FORMAT.fullmatch(value):
        raise ValueError("Enter a time with a time zone, such as 2026-11-21T12:00:00Z")
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except OverflowError:
        raise ValueError("This date or time does not exist") from None


# A time of RFC 3339, always with its zone.
Timestamp = Annotated[
    datetime, BeforeValidator(_parse_time), WithJsonSchema({"type": "string", "format": "date-time"})
]


class Nothing(Input):
    """No body, or an empty object."""


def read_body(request: Request, model: type[M], max_bytes: int, *, forms: Collection[str] = FORM_TYPES) -> M:
    """Return the body of the request as `model`: JSON, or a form of one of the media types `forms`.

    Errors: payload_too_large, unsupported_media_type, invalid_request (no JSON), validation_error.
    """
    kind = request.mimetype
    if (request.content_length or 0) > max_bytes:
        raise ApiError("payload_too_large", details={"max_bytes": max_bytes})
    coding = request.headers.get("Content-Encoding", "identity").strip().casefold()
    if coding != "identity":
        text = "Send the body without compression. Content-Encoding is not supported."
        raise ApiError("unsupported_media_type", text, {"content_encoding": coding[:50]})
    if kind in forms:
        return parse(model, convert_form_values(model, form_values(request.form)), strict=False)
    raw = request.get_data()
    if len(raw) > max_bytes:
        raise ApiError("payload_too_large", details={"max_bytes": max_bytes})
    if not raw and (not kind or kind in FORM_TYPES):  # curl -X POST -d '' calls its empty body a form
        return parse(model, {})
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise ApiError(
            "unsupported_media_type",
            "Send the body as JSON, with the header Content-Type: application/json.",
            {"content_type": kind, "expected": ["application/json", *forms]},
        )
    value = read_json(raw) if raw else {}
    if len(raw) > limits.LARGE_JSON_BYTES and isinstance(value, dict):
        _check_keys(model, value)
    return parse(model, value)


def read_values(request: Request, model: type[BaseModel], *, forms: Collection[str]) -> Any:
    """Return the values of a body that `read_body` rejected."""
    if request.mimetype in forms:
        return convert_form_values(model, form_values(request.form))
    return read_json(request.get_data())


def read_json(raw: bytes) -> Any:
    """Parse JSON; the error `invalid_request` contains the position of a syntax error."""
    containers = raw.count(b"[") + raw.count(b"{")
    if containers > limits.MAX_JSON_CONTAINERS:
        for text in _JSON_TEXT.finditer(raw):  # characters in strings do not count
            containers -= raw.count(b"[", *text.span()) + raw.count(b"{", *text.span())
        if containers > limits.MAX_JSON_CONTAINERS:
            message = f"The body has more than {limits.MAX_JSON_CONTAINERS:,} arrays and objects."
            raise ApiError("invalid_request", message)
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ApiError(
            "invalid_request",
            f"The body is not JSON: {error.msg} (line {error.lineno}, column {error.colno}).",
            {"line": error.lineno, "column": error.colno},
        ) from None
    # Only bodies that may contain either are walked; most are excluded by a search in their bytes.
    if containers > limits.MAX_JSON_DEPTH or len(raw) > limits.LARGE_JSON_BYTES:
        _check_shape(value)
    if b"\\u0000" in raw:
        _check_texts(value)
    return value


_JSON_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.S)


def _check_shape(value: Any) -> None:
    """Raise `invalid_request` if a body is nested too deeply or has an object with too many keys."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limits.MAX_JSON_DEPTH):
        if not level:
            return
        if any(
            isinstance(container, dict) and len(container) > limits.MAX_JSON_ELEMENTS for container in level
        ):
            text = f"An object of the body has more than {limits.MAX_JSON_ELEMENTS:,} keys."
            raise ApiError("invalid_request", text)
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    if level:
        raise ApiError("invalid_request", f"The body is nested deeper than {limits.MAX_JSON_DEPTH} levels.")


def _check_texts(value: Any) -> None:
    """Raise `invalid_request` if a text in a body contains U+0000, which PostgreSQL cannot store."""
    if isinstance(value, str):
        if "\0" in value:
            raise ApiError("invalid_request", "The body must not contain the character U+0000.")
    elif isinstance(value, dict):
        for key, item in value.items():
            if "\0" in key:
                raise ApiError("invalid_request", "The body must not contain the character U+0000.")
            _check_texts(item)
    elif isinstance(value, list):
        for item in value:
            _check_texts(item)


def parse(model: type[M], value: Any, *, strict: bool | None = None) -> M:
    """Return a value as `model`. Raises one `validation_error` with all faults and their paths."""
    if not isinstance(value, Mapping):
        raise validation_error([Fault("", "wrong_type", "The body must be a JSON object.")])
    drop = _read_only(model) - model.model_fields.keys()
    if not drop.isdisjoint(value):
        value = {key: item for key, item in value.items() if key not in drop}
    value = json_input.canonicalize_enums(model, value)
    try:
        return model.model_validate(value, strict=strict)
    except ValidationError as error:
        if error.error_count() > limits.MAX_COUNTED_FAULTS:
            text = f"The body has {error.error_count():,} errors, which are too many to list."
            hint = "Check that this is the body for this URL and that its lists contain elements of the right type."
            raise validation_error([Fault("", "too_many", text, hint)]) from None
        more = getattr(model, "more_faults", None)  # values that a model validates later, without pydantic
        raise validation_error(pydantic_faults(model, error) + (more(value) if more else [])) from None


def _check_keys(model: type[BaseModel], value: Mapping[str, Any]) -> None:
    """Raise `validation_error` for a body with too many unknown keys for the list of pydantic's errors."""
    unknown = list(islice(_unknown_keys(model, value, ""), limits.MAX_COUNTED_FAULTS + 1))
    if len(unknown) > limits.MAX_COUNTED_FAULTS:
        text = f"The body has more than {limits.MAX_COUNTED_FAULTS:,} unknown keys."
        hint = f"Known keys: {', '.join(list(model.model_fields)[:40])}."
        first = [Fault(path, "unknown_key", "This key is unknown.") for path in unknown[:20]]
        raise validation_error([Fault("", "too_many", text, hint), *first])


def _read_only(model: type[BaseModel]) -> frozenset[str]:
    """Return the keys that a model accepts and ignores."""
    names: frozenset[str] = getattr(model, "read_only", frozenset())
    return names


def _unknown_keys(model: type[BaseModel], value: Any, path: str) -> Iterator[str]:
    """Yield the paths of keys that a model or its nested models do not declare. Skips unions of several models."""
    if not isinstance(value, Mapping) or model.model_config.get("extra") != "forbid":
        return
    by_key = {info.alias or name: info for name, info in model.model_fields.items()}
    read_only = _read_only(model)
    for key, item in value.items():
        info = by_key.get(key) or model.model_fields.get(key)
        if info is None:
            if key not in read_only:
                yield f"{path}{key}"[: limits.MAX_FAULT_PATH_CHARS]
            continue
        models = [part for part in _nested_annotations(info.annotation) if _is_model(part)]
        if len(models) == 1:
            for index, inner in enumerate(item) if isinstance(item, list) else ((None, item),):
                prefix = f"{path}{key}." if index is None else f"{path}{key}[{index}]."
                yield from _unknown_keys(models[0], inner, prefix)


def read_query(request: Request, model: type[M], *, lenient: bool) -> M:
    """Return the query as `model`. Error: invalid_request, for invalid or unknown parameters.

    `lenient` drops unknown parameters instead.
    """
    values = {key: request.args.getlist(key) for key in request.args}
    flat = {key: items if _is_list(model, key) else items[-1] for key, items in values.items()}
    if any("\0" in item for items in values.values() for item in items):
        raise ApiError("invalid_request", "The query must not contain the character U+0000.")
    if lenient:
        flat = {key: item for key, item in flat.items() if key in model.model_fields}
    try:
        return model.model_validate(json_input.canonicalize_enums(model, flat), strict=False)
    except ValidationError as error:
        found = [fault.as_dict() for fault in pydantic_faults(model, error)]
        raise ApiError(
            "invalid_request", f"{found[0]['path']}: {found[0]['message']}", {"fields": found}
        ) from None


def _is_list(model: type[BaseModel], key: str) -> bool:
    info = model.model_fields.get(key)
    return info is not None and "list" in str(info.annotation)


_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def form_values(form: MultiDict[str, str]) -> dict[str, Any]:
    """Return the values of a form nested by their names: `fields[0].name` -> {"fields": [{"name": ...}]}.

    A name that was sent more than once is a list. Empty texts are kept; the model decides what they mean.
    """
    root: dict[str, Any] = {}
    for name in form:
        if name in FORM_ONLY:
            continue
        texts = form.getlist(name)
        if any("\0" in text for text in texts):
            raise ApiError("invalid_request", "The form must not contain the character U+0000.")
        steps: list[str | int] = []
        if len(name) <= limits.MAX_FORM_NAME_CHARS:
            steps = [m[1] if m[1] is not None else int(m[2]) for m in _STEP.finditer(name)]
        if not steps or len(steps) > limits.MAX_JSON_DEPTH:
            raise ApiError("invalid_request", f"The form contains an invalid field name: {name[:80]!r}.")
        _set_at(root, steps, texts if len(texts) > 1 else texts[0])
    tree: dict[str, Any] = _indexes_to_lists(root)
    return tree


def _set_at(root: dict[Any, Any], steps: list[str | int], value: Any) -> None:
    for step in steps[:-1]:
        inner = root.setdefault(step, {})
        if not isinstance(inner, dict):
            raise ApiError(
                "invalid_request", "The form uses the same name for a value and for a group of values."
            )
        root = inner
    root[steps[-1]] = value


def _indexes_to_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _indexes_to_lists(item) for key, item in value.items()}
    if inner and all(isinstance(key, int) for key in inner):
        return [inner[key] for key in sorted(inner)]
    return {str(key): item for key, item in inner.items()}


_CODES: Final = {
    "missing": "missing",
    "extra_forbidden": "unknown_key",
    "literal_error": "not_allowed",
    "enum": "not_allowed",
    "greater_than": "out_of_range",
    "greater_than_equal": "out_of_range",
    "less_than": "out_of_range",
    "less_than_equal": "out_of_range",
    "finite_number": "out_of_range",
    "string_too_long": "too_long",
    "too_long": "too_long",
    "string_too_short": "too_short",
    "too_short": "too_short",
    "string_pattern_mismatch": "wrong_form",
    "value_error": "invalid",
    "assertion_error": "invalid",
}


def pydantic_faults(model: type[BaseModel], error: ValidationError) -> list[Fault]:
    """Convert errors of pydantic to faults, with stable codes, paths such as `a[0].b`, and hints for similar names."""
    out = []
    for item in error.errors(include_url=False, include_context=True)[: limits.MAX_FAULTS]:
        kind, loc = item["type"], item["loc"]
        code = _CODES.get(kind, "wrong_type" if "type" in kind or "parsing" in kind else "invalid")
        message = pydantic_message(item)
        hint = None
        if code == "unknown_key":
            message = f"Unknown key `{str(loc[-1])[: limits.MAX_NAME_CHARS]}`."
            hint = did_you_mean(str(loc[-1]), _keys_at(model, loc[:-1]))
        elif code == "not_allowed" and isinstance(item.get("input"), str):
            allowed = re.findall(r"'([^']*)'", str(item.get("ctx", {}).get("expected", "")))
            hint = did_you_mean(item["input"], allowed)
        out.append(Fault(format_path(loc), code, message, hint))
    return out


def format_path(loc: tuple[str | int, ...]) -> str:
    """Return the path of a location: ("fields", 3, "options", "min") -> `fields[3].options.min`."""
    out = ""
    for step in loc:
        out += f"[{step}]" if isinstance(step, int) else f".{step}" if out else str(step)
    return out[: limits.MAX_FAULT_PATH_CHARS]


def _keys_at(model: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """Return the keys that a model allows at a location."""
    current: Any = model
    for step in loc:
        if isinstance(step, int):
            continue
        info = current.model_fields.get(step) if _is_model(current) else None
        if info is None:
            return []
        current = next((part for part in _nested_annotations(info.annotation) if _is_model(part)), None)
    return list(current.model_fields) if _is_model(current) else []


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _nested_annotations(annotation: Any) -> list[Any]:
    inner = getattr(annotation, "__args__", ())
    return [annotation, *(part for arg in inner for part in _nested_annotations(arg))]


# Report all errors of a body together: those that the model of its keys finds, and those of what remains.


def merge_faults(
    error: ApiError, body: Any, model: type[BaseModel], check: Callable[[Any], Iterable[Fault] | None]
) -> ApiError:
    """Return the error of a body together with what is wrong with the rest of it.

    `error` is the `validation_error` for `body`. `check` gets the keys without errors as `model`, in which required
    keys may be None, and returns or raises the faults of these. Errors: not_found (what the address names), forbidden.
    """
    known = [Fault(**fault) for fault in error.details["fields"]]
    invalid_keys = {_key_of(fault.path) for fault in known}
    if not isinstance(body, Mapping) or "" in invalid_keys:
        return error
    rest = {
        key: value for key, value in body.items() if key not in invalid_keys and key in model.model_fields
    }
    try:
        more = list(check(parse(_without_required(model), rest, strict=False)) or ())
    except ApiError as other:
        if other.code == "forbidden" or (other.code == "not_found" and not other.path):
            raise
        if other.code != "validation_error" and not other.path:  # an error of the target
            return error
        more = as_faults(other)
    return validation_error(
        dict.fromkeys([*known, *(fault for fault in more if _key_of(fault.path) not in invalid_keys)])
    )


@functools.cache
def _without_required(model: type[BaseModel]) -> type[BaseModel]:
    """Return a model whose keys may all be missing."""
    required = {name: info.annotation for name, info in model.model_fields.items() if info.is_required()}
    keys: dict[str, Any] = {name: (kind | None, None) for name, kind in required.items()}  # type: ignore[operator]  # a type
    return create_model(model.__name__, __base__=model, **keys) if keys else model


def _key_of(path: str) -> str:
    """Return the key of the body that a path begins with."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]

"""What comes in: JSON bodies, forms and queries, each checked by one pydantic model, all faults at once.

An input is a class of `Input` with its keys. JSON is taken strictly (the text "5" is no number); a form and a
query, where everything is text, leniently. Unknown keys are refused by name with a "did you mean"; read-only
keys that a client sends back (`Input.read_only`) are dropped. A form names nested values by the same paths that
faults have: `fields[3].options.min`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final, TypeVar

import orjson
from flask import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema
from werkzeug.datastructures import MultiDict

from webapp import limits, whole
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.forms.filled import filled

FORM_TYPES: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
FORM_ONLY: Final = frozenset({"csrf_token", "_method", "_next"})
READ_ONLY: Final = frozenset(
    "id label version created_at updated_at deleted_at created_by workspace_id warnings".split()
)

M = TypeVar("M", bound=BaseModel)


class Input(whole.Model):
    """A JSON body or form. Keys it does not declare are refused, those of `read_only` ignored."""

    model_config = ConfigDict(extra="forbid", strict=True, str_strip_whitespace=False)
    read_only: ClassVar[frozenset[str]] = READ_ONLY


class Query(BaseModel):
    """The query part of an address."""

    model_config = ConfigDict(extra="forbid")


class ListQuery(Query):
    """What every list takes."""

    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=limits.PAGE_LIMIT_MAX)] = limits.PAGE_LIMIT_DEFAULT
    q: Annotated[str, Field(max_length=limits.MAX_QUERY_TEXT)] | None = None


_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _moment(value: Any) -> datetime:
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        raise ValueError("This is not a time with its zone, such as 2026-11-21T12:00:00Z")
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except OverflowError:
        raise ValueError("No calendar has this time") from None


# A time of RFC 3339, always with its zone.
Moment = Annotated[
    datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})
]


class Nothing(Input):
    """No body, or an empty object."""


def read_body(request: Request, model: type[M], max_bytes: int) -> M:
    """The request's body as `model`: JSON, or a form where a person's session allows one.

    Errors: payload_too_large, unsupported_media_type, invalid_request (no JSON), validation_error.
    """
    kind = request.mimetype
    if (request.content_length or 0) > max_bytes:
        raise ApiError("payload_too_large", details={"max_bytes": max_bytes})
    if kind in FORM_TYPES:
        return parse(model, filled(model, form_values(request.form)), strict=False)
    raw = request.get_data()
    if len(raw) > max_bytes:
        raise ApiError("payload_too_large", details={"max_bytes": max_bytes})
    if not kind and not raw:
        return parse(model, {})
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise ApiError(
            "unsupported_media_type",
            "Send the body as application/json.",
            {"content_type": kind, "expected": ["application/json"]},
        )
    return parse(model, read_json(raw) if raw else {})


def read_json(raw: bytes) -> Any:
    """JSON as Python values; `invalid_request` says where it breaks."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ApiError(
            "invalid_request",
            f"The body is not JSON: {error.msg} (line {error.lineno}, column {error.colno}).",
            {"line": error.lineno, "column": error.colno},
        ) from None
    # The walk is for the rare body that may hold either; most are cleared by looking at the bytes.
    if b"\\u0000" in raw or raw.count(b"[") + raw.count(b"{") > limits.MAX_JSON_DEPTH:
        _check_values(value, 0)
    return value


def _check_values(value: Any, depth: int) -> None:
    """No body may be nested without end, nor hold U+0000, which PostgreSQL cannot keep in a text."""
    if depth > limits.MAX_JSON_DEPTH:
        raise ApiError("invalid_request", f"The body is nested deeper than {limits.MAX_JSON_DEPTH} levels.")
    if isinstance(value, str):
        if "\0" in value:
            raise ApiError("invalid_request", "The body holds the character U+0000.")
    elif isinstance(value, dict):
        for key, item in value.items():
            if "\0" in key:
                raise ApiError("invalid_request", "The body holds the character U+0000.")
            _check_values(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_values(item, depth + 1)


def parse(model: type[M], value: Any, *, strict: bool | None = None) -> M:
    """A value as `model`, or one `validation_error` with every fault and its path."""
    if not isinstance(value, Mapping):
        raise validation_error([Fault("", "wrong_type", "The body must be a JSON object.")])
    drop = getattr(model, "read_only", frozenset()) - model.model_fields.keys()
    if not drop.isdisjoint(value):
        value = {key: item for key, item in value.items() if key not in drop}
    try:
        return model.model_validate(value, strict=strict)
    except ValidationError as error:
        more = getattr(model, "more_faults", None)  # what a model checks later, by other means than pydantic
        raise validation_error(faults(model, error) + (more(value) if more else [])) from None


def read_query(request: Request, model: type[M], *, lenient: bool) -> M:
    """The query as `model`; a bad or unknown parameter is `invalid_request`. `lenient` drops unknown ones."""
    values = {key: request.args.getlist(key) for key in request.args}
    flat = {key: items if _is_list(model, key) else items[-1] for key, items in values.items()}
    if any("\0" in item for items in values.values() for item in items):
        raise ApiError("invalid_request", "The query holds the character U+0000.")
    if lenient:
        flat = {key: item for key, item in flat.items() if key in model.model_fields}
    try:
        return model.model_validate(flat, strict=False)
    except ValidationError as error:
        found = [fault.as_dict() for fault in faults(model, error)]
        raise ApiError(
            "invalid_request", f"{found[0]['path']}: {found[0]['message']}", {"fields": found}
        ) from None


def _is_list(model: type[BaseModel], key: str) -> bool:
    info = model.model_fields.get(key)
    return info is not None and "list" in str(info.annotation)


_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def form_values(form: MultiDict[str, str]) -> dict[str, Any]:
    """A form's names as nested values: `fields[0].name` -> {"fields": [{"name": ...}]}.

    A name sent more than once is a list. Empty texts stay; a model says what "" means to it.
    """
    root: dict[str, Any] = {}
    for name in form:
        if name in FORM_ONLY:
            continue
        texts = form.getlist(name)
        if any("\0" in text for text in texts):
            raise ApiError("invalid_request", "The form holds the character U+0000.")
        steps: list[str | int] = [m[1] if m[1] is not None else int(m[2]) for m in _STEP.finditer(name)]
        if not steps or len(steps) > limits.MAX_JSON_DEPTH:
            raise ApiError("invalid_request", f"The form has a name that cannot be read: {name[:80]!r}.")
        _put(root, steps, texts if len(texts) > 1 else texts[0])
    return _lists(root)


def _put(root: dict[Any, Any], steps: list[str | int], value: Any) -> None:
    for step in steps[:-1]:
        inner = root.setdefault(step, {})
        if not isinstance(inner, dict):
            raise ApiError("invalid_request", "The form names one thing both as a value and as a group.")
        root = inner
    root[steps[-1]] = value


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _lists(item) for key, item in value.items()}
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


def faults(model: type[BaseModel], error: ValidationError) -> list[Fault]:
    """Pydantic's findings as ours: stable codes, paths as people write them, hints for near misses."""
    out = []
    for item in error.errors(include_url=False, include_context=True)[: limits.MAX_FAULTS]:
        kind, loc = item["type"], item["loc"]
        code = _CODES.get(kind, "wrong_type" if "type" in kind or "parsing" in kind else "invalid")
        message = item["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        hint = None
        if code == "unknown_key":
            message = f"There is no key `{loc[-1]}` here."
            hint = did_you_mean(str(loc[-1]), _keys_at(model, loc[:-1]))
        elif code == "missing":
            message = "This is needed."
        elif code == "not_allowed" and isinstance(item.get("input"), str):
            allowed = re.findall(r"'([^']*)'", str(item.get("ctx", {}).get("expected", "")))
            hint = did_you_mean(item["input"], allowed)
        out.append(Fault(path_text(loc), code, message.rstrip(".") + ".", hint))
    return out


def path_text(loc: tuple[str | int, ...]) -> str:
    """("fields", 3, "options", "min") -> `fields[3].options.min`."""
    out = ""
    for step in loc:
        out += f"[{step}]" if isinstance(step, int) else f".{step}" if out else str(step)
    return out


def _keys_at(model: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """The keys a model knows at a place inside it."""
    here: Any = model
    for step in loc:
        if isinstance(step, int):
            continue
        info = here.model_fields.get(step) if _is_model(here) else None
        if info is None:
            return []
        here = next((part for part in _parts(info.annotation) if _is_model(part)), None)
    return list(here.model_fields) if _is_model(here) else []


def _is_model(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, BaseModel)


def _parts(annotation: Any) -> list[Any]:
    inner = getattr(annotation, "__args__", ())
    return [annotation, *(part for arg in inner for part in _parts(arg))]

"""Errors as values: one table of stable codes, and the classes that carry them.

Clients match on the code (specification, section 7), so a code is never renamed or reused. Every code of the
service is in `CODES`; raising any other code is a bug and fails immediately.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final

CODES: Final[Mapping[str, tuple[int, str]]] = MappingProxyType(
    {
        # code: (HTTP status, default message)
        "invalid_request": (400, "The request is malformed."),
        "unsupported_version": (400, "Unknown Api-Version."),
        "unauthenticated": (401, "A valid API key is required."),
        "forbidden": (403, "You don't have permission for this."),
        "https_required": (403, "Use HTTPS. Plain HTTP is not supported."),
        "read_only_connection": (403, "This connection is read-only."),
        "target_not_allowed": (403, "This address is in a blocked network."),
        "not_found": (404, "Not found."),
        "method_not_allowed": (405, "This method is not supported here."),
        "request_timeout": (408, "The request was not received in time. Try again."),
        "conflict": (409, "The name is already in use."),
        "in_use": (409, "Other objects use this object."),
        "run_finished": (409, "The run has finished."),
        "idempotency_in_progress": (409, "A request with this Idempotency-Key is still in progress."),
        "version_conflict": (412, "The object has changed since it was read."),
        "payload_too_large": (413, "The body is too large."),
        "uri_too_long": (414, "The URL is too long."),
        "unsupported_media_type": (415, "This content type is not supported."),
        "expectation_failed": (417, "The Expect header is not supported."),
        "validation_error": (422, "The request is invalid."),
        "row_limit_exceeded": (422, "Too many rows for one request."),
        "idempotency_mismatch": (422, "This Idempotency-Key was used with a different request."),
        "driver_missing": (422, "The driver for this kind of connection is not installed."),
        "provider_missing": (422, "No AI provider is configured."),
        "rate_limited": (429, "Too many requests."),
        "leak_found": (422, "The output would contain an original value."),
        "quota_exceeded": (429, "The quota of the workspace is used up."),
        "headers_too_large": (431, "The headers are too many or too large."),
        "internal_error": (500, "Something went wrong on our side."),
        "not_implemented": (501, "Not supported."),
        "target_failed": (502, "The target rejected the request or failed."),
        "token_request_failed": (502, "The token endpoint rejected the request or failed."),
        "csrf_failed": (502, "The target rejected the CSRF token twice."),
        "unavailable": (503, "The service is unavailable. Try again."),
        "target_timeout": (504, "The target did not respond in time."),
    }
)

# Codes of errors that a call to the target of a connection can return. A request that reads gets no csrf_failed.
READ_TARGET_ERRORS: Final = (
    "target_failed",
    "target_timeout",
    "target_not_allowed",
    "token_request_failed",
    "driver_missing",
)
TARGET_ERRORS: Final = (*READ_TARGET_ERRORS, "csrf_failed")


_MAX_NAME_CHARS: Final = 200  # chosen: maximum length of a name that gets a hint; known names are shorter


@dataclass(frozen=True, slots=True)
class Fault:
    """One error of an input. `path`: for example `fields[3].options.min`; "" is the whole input."""

    path: str
    code: str
    message: str
    hint: str | None = None
    position: int | None = None
    """Position in a text (a formula), in characters from 1."""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form, with `hint` and `position` only if set."""
        out: dict[str, Any] = {"path": self.path, "code": self.code, "message": self.message}
        if self.hint:
            out["hint"] = self.hint
        if self.position is not None:
            out["position"] = self.position
        return out


# Messages for error types of pydantic, with the names of its context in braces.
_PYDANTIC_MESSAGES: Final = {
    **dict.fromkeys(("bool_type", "bool_parsing"), "Must be true or false."),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "Must be a whole number."),
    "int_parsing_size": "The number has too many digits.",
    **dict.fromkeys(("float_type", "float_parsing", "decimal_type", "decimal_parsing"), "Must be a number."),
    "finite_number": "Must be a finite number.",
    "multiple_of": "Must be a multiple of {multiple_of}.",
    "string_type": "Must be a string.",
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "Must be a list."),
    **dict.fromkeys(
        ("dict_type", "mapping_type", "model_type", "model_attributes_type"), "Must be an object."
    ),
    **dict.fromkeys(
        ("date_type", "date_parsing", "date_from_datetime_parsing", "date_from_datetime_inexact"),
        "Must be a date, such as 2024-05-31.",
    ),
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid"),
        "Must be a date and time, such as 2024-05-31T10:00:00Z.",
    ),
    **dict.fromkeys(("time_type", "time_parsing"), "Must be a time, such as 10:00:00."),
    "missing": "This field is required.",
    "literal_error": "Must be {expected}.",
    "enum": "Must be {expected}.",
    "greater_than": "Must be greater than {gt}.",
    "greater_than_equal": "Must be at least {ge}.",
    "less_than": "Must be less than {lt}.",
    "less_than_equal": "Must be at most {le}.",
    "string_too_short": "Must have at least {min_length} characters.",
    "string_too_long": "Must have at most {max_length} characters.",
    "too_short": "Must have at least {min_length} elements.",
    "too_long": "Must have at most {max_length} elements.",
    "string_pattern_mismatch": "Must match the pattern {pattern}.",
}
_ADDED_PREFIXES: Final = ("Value error, ", "Assertion failed, ")


def pydantic_message(item: Mapping[str, Any]) -> str:
    """Return the message of an error of pydantic in our words; that of a validator of ours as it was raised."""
    context = item.get("ctx", {})
    if item["type"] in ("string_too_short", "too_short") and context["min_length"] == 1:
        return "Must not be empty."
    if (template := _PYDANTIC_MESSAGES.get(item["type"])) is not None:
        return template.format_map({name: _in_words(value) for name, value in context.items()})
    message: str = item["msg"]
    for prefix in _ADDED_PREFIXES:
        message = message.removeprefix(prefix)
    return message.rstrip(".") + "."


def _in_words(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def pydantic_error_path(item: Mapping[str, Any], value: Any, prefix: str = "") -> str:
    """Return the path of an error of pydantic in the input `value`, such as `settings.retry.retry_on[0]`.

    Names that pydantic adds to the location, such as those of alternatives of a value, are left out.
    """
    path, current, steps = prefix, value, item["loc"]
    for index, step in enumerate(steps):
        known = (
            current.keys()
            if isinstance(current, Mapping)
            else range(len(current))
            if isinstance(current, list)
            else ()
        )
        if step in known:
            current = current[step]
        elif item["type"] != "missing" or index < len(steps) - 1:
            continue
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


def drop_other_union_branches(faults: Sequence[Fault]) -> list[Fault]:
    """Return errors of pydantic without those of alternatives that a value was not meant for: it reports the errors
    of all of them."""
    return [fault for fault in faults if not _is_of_other_union_branch(fault, faults)]


def _is_of_other_union_branch(fault: Fault, found: Sequence[Fault]) -> bool:
    def of_type(other: Fault) -> bool:
        return other.code.endswith("_type")

    return of_type(fault) and any(
        (candidate.path == fault.path and not of_type(candidate))
        or candidate.path.startswith((f"{fault.path}.", f"{fault.path}["))
        for candidate in found
    )


class ApiError(Exception):
    """An error with a code of the table. Raised by services, and converted to a response in one place.

    `details` is any JSON object; `status` overrides the table's only where the contract names two;
    `headers` are sent with the response (Retry-After).
    """

    def __init__(
        self,
        code: str,
        message: str | None = None,
        details: Mapping[str, Any] | None = None,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        table_status, table_message = CODES[code]
        self.code = code
        self.message = message or table_message
        self.details: dict[str, Any] = dict(details or {})
        self.status = status or table_status
        self.headers: dict[str, str] = dict(headers or {})
        self.path = ""
        """The key of the request body that caused it, if any."""
        super().__init__(f"{code}: {self.message}")

    def as_dict(self) -> dict[str, Any]:
        """`{"error": {"code", "message", "details"}}`: the only shape of an error (specification, section 7)."""
        return {"error": {"code": self.code, "message": self.message, "details": self.details}}


def validation_error(faults: Iterable[Any], message: str | None = None) -> ApiError:
    """Return all errors of an input as one 422. Accepts anything with `path`, `code`, `message` and `hint`."""
    fields = [
        Fault(
            str(f.path), str(f.code), str(f.message), getattr(f, "hint", None), getattr(f, "position", None)
        ).as_dict()
        for f in faults
    ]
    if message is None and fields:
        first = fields[0]
        message = f"{first['path']}: {first['message']}" if first["path"] else first["message"]
        if len(fields) > 1:
            message += f" (and {len(fields) - 1} more)"
    return ApiError("validation_error", message, {"fields": fields})


_GATHERED_CODES: Final = frozenset(
    {"validation_error", "not_found", "row_limit_exceeded", "read_only_connection"}
)


class ErrorCollector:
    """Errors of several checks of one request, raised together.

    A single error is raised unchanged; several become one `validation_error`. Errors of targets (5xx and similar) are
    raised only if the request itself is valid.
    """

    def __init__(self) -> None:
        self._errors: list[ApiError] = []
        self._target_error: ApiError | None = None

    def __bool__(self) -> bool:
        return bool(self._errors) or self._target_error is not None

    @contextmanager
    def check(self, path: str = "") -> Iterator[None]:
        """Collect an error of the block; `path` is the key of the missing object or the number of rows."""
        try:
            yield
        except ApiError as error:
            if error.code in _GATHERED_CODES:
                error.path = path
                self._errors.append(error)
            elif error.status >= 500 or error.code in ("target_not_allowed", "driver_missing"):
                self._target_error = self._target_error or error
            else:
                raise

    def add(self, faults: Iterable[Fault]) -> None:
        """Collect faults."""
        if found := list(faults):
            self._errors.append(validation_error(found))

    def combined_error(self, more: Iterable[Fault] = ()) -> ApiError | None:
        """Return the error to raise for the collected errors and `more` faults; None without any."""
        self.add(more)
        if len(self._errors) == 1:
            return self._errors[0]
        if not self._errors:
            return self._target_error
        return validation_error(dict.fromkeys(fault for error in self._errors for fault in as_faults(error)))

    def raise_all(self, more: Iterable[Fault] = ()) -> None:
        """Raise `error`, if there is one."""
        if (error := self.combined_error(more)) is not None:
            raise error from None


def as_faults(error: ApiError) -> list[Fault]:
    """Return an error as faults of the request."""
    if error.code == "validation_error":
        return [Fault(**field) for field in error.details["fields"]]
    code = f"unknown_{error.path.removesuffix('_id')}" if error.code == "not_found" else error.code
    return [Fault(error.path, code, error.message, error.details.get("hint"))]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return the question "Did you mean `x`?" if a known name is similar, else None. Ignores case.

    Takes quadratic time in the length of the name, so long names get no hint.
    """
    if len(name) > _MAX_NAME_CHARS:
        return None
    by_fold = {k.casefold(): k for k in known}
    matches = get_close_matches(name.casefold(), by_fold, n=1, cutoff=0.6)
    return f"Did you mean `{by_fold[matches[0]]}`?" if matches else None

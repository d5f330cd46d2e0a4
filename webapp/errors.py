"""Errors as values: one table of stable codes, and the two things that carry them.

Clients match on the code (specification, section 7), so a code is never renamed or reused. Every code of the
service stands in `CODES`; raising an unlisted one is a bug and fails at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final

CODES: Final[Mapping[str, tuple[int, str]]] = MappingProxyType(
    {
        # code: (HTTP status, message when the raiser has none of its own)
        "invalid_request": (400, "The request cannot be read."),
        "unsupported_version": (400, "This Api-Version does not exist."),
        "unauthenticated": (401, "A valid API key is needed."),
        "forbidden": (403, "This key or account may not do that."),
        "https_required": (403, "Plain HTTP is refused. Use https."),
        "read_only_connection": (403, "This connection is read-only."),
        "target_not_allowed": (403, "This address may not be reached from here."),
        "not_found": (404, "There is no such object."),
        "method_not_allowed": (405, "This method does not exist here."),
        "request_timeout": (408, "The request did not arrive in time. Send it again without pauses."),
        "conflict": (409, "The name is taken."),
        "in_use": (409, "Other objects use this one."),
        "run_finished": (409, "The run has ended."),
        "idempotency_in_progress": (409, "The first call with this Idempotency-Key has not ended."),
        "version_conflict": (412, "The object has changed since it was read."),
        "payload_too_large": (413, "The body is too large."),
        "uri_too_long": (414, "The address is too long."),
        "unsupported_media_type": (415, "This content type is not understood here."),
        "expectation_failed": (417, "What the Expect header asks for cannot be met."),
        "validation_error": (422, "The request has faults."),
        "row_limit_exceeded": (422, "That is more rows than one call may ask for."),
        "idempotency_mismatch": (422, "This Idempotency-Key was used with another request."),
        "driver_missing": (422, "The driver for this kind of connection is not installed."),
        "provider_missing": (422, "No AI provider is set up."),
        "rate_limited": (429, "Too many requests."),
        "leak_found": (422, "A real value would have left."),
        "quota_exceeded": (429, "What the workspace may use is used up."),
        "headers_too_large": (431, "The headers are too many or too large."),
        "internal_error": (500, "Something went wrong on our side."),
        "not_implemented": (501, "This is not understood here."),
        "target_failed": (502, "The target refused or failed."),
        "token_request_failed": (502, "The token endpoint refused or failed."),
        "csrf_failed": (502, "The target refused the CSRF token twice."),
        "unavailable": (503, "The service is not ready. Try again."),
        "target_timeout": (504, "The target did not answer in time."),
    }
)


_WORD_CHARS: Final = 200  # chosen: of a word that is compared with known ones; names are no longer


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of an input. `path` is as a person would write it: `fields[3].options.min`; "" is the whole."""

    path: str
    code: str
    message: str
    hint: str | None = None
    position: int | None = None
    """Where in a text (a formula) it is, in characters from 1."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form; `hint` and `position` only where there is one."""
        out: dict[str, Any] = {"path": self.path, "code": self.code, "message": self.message}
        if self.hint:
            out["hint"] = self.hint
        if self.position is not None:
            out["position"] = self.position
        return out


class ApiError(Exception):
    """A refusal with a code of the table. Raised by services; turned into an answer in one place.

    `details` is any JSON object; `status` overrides the table's only where the contract names two;
    `headers` go out with the answer (Retry-After).
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
        """The key of the body that it is about, where it is about one."""
        super().__init__(f"{code}: {self.message}")

    def as_dict(self) -> dict[str, Any]:
        """`{"error": {"code", "message", "details"}}`: the only shape of an error (specification, section 7)."""
        return {"error": {"code": self.code, "message": self.message, "details": self.details}}


def validation_error(faults: Iterable[Any], message: str | None = None) -> ApiError:
    """All faults at once as one 422. Takes anything with `path`, `code`, `message`, `hint` (the engine's too)."""
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


_GATHERED: Final = frozenset({"validation_error", "not_found", "row_limit_exceeded", "read_only_connection"})


class Gathered:
    """Errors of several checks of one request, raised together.

    An error alone is raised as it is; several become one `validation_error`. Errors of targets (5xx and their like)
    are raised where nothing is wrong with the request itself.
    """

    def __init__(self) -> None:
        self._errors: list[ApiError] = []
        self._of_target: ApiError | None = None

    def __bool__(self) -> bool:
        return bool(self._errors) or self._of_target is not None

    @contextmanager
    def check(self, path: str = "") -> Iterator[None]:
        """Keep an error of the block; `path` is what names the missing object or the number of rows."""
        try:
            yield
        except ApiError as error:
            if error.code in _GATHERED:
                error.path = path
                self._errors.append(error)
            elif error.status >= 500 or error.code in ("target_not_allowed", "driver_missing"):
                self._of_target = self._of_target or error
            else:
                raise

    def add(self, faults: Iterable[Fault]) -> None:
        """Keep faults."""
        if found := list(faults):
            self._errors.append(validation_error(found))

    def error(self, more: Iterable[Fault] = ()) -> ApiError | None:
        """What is to be raised for the errors and `more` faults; None where there are none."""
        self.add(more)
        if len(self._errors) == 1:
            return self._errors[0]
        if not self._errors:
            return self._of_target
        return validation_error(dict.fromkeys(one for error in self._errors for one in faults_of(error)))

    def raise_all(self, more: Iterable[Fault] = ()) -> None:
        """Raise `error`, if there is one."""
        if (error := self.error(more)) is not None:
            raise error from None


def faults_of(error: ApiError) -> list[Fault]:
    """Return an error as faults of the request."""
    if error.code == "validation_error":
        return [Fault(**one) for one in error.details["fields"]]
    code = f"unknown_{error.path.removesuffix('_id')}" if error.code == "not_found" else error.code
    return [Fault(error.path, code, error.message, error.details.get("hint"))]


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The question "Did you mean `x`?" where a known word is close, else None. Compares letters without case.

    Takes time with the square of the word's length, so long words have no hint.
    """
    if len(word) > _WORD_CHARS:
        return None
    by_fold = {k.casefold(): k for k in known}
    close = get_close_matches(word.casefold(), by_fold, n=1, cutoff=0.6)
    return f"Did you mean `{by_fold[close[0]]}`?" if close else None

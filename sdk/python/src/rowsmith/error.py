"""What goes wrong, as exceptions. Match on the class or on `code`, never on the message.

    try:
        client.generate_from_template_id("tpl_...", 10)
    except rowsmith.error.NotFound:
        ...
    except rowsmith.error.ServiceError as error:
        print(error.code, error.status, error.request_id)

Codes of the service stand in its reference. Codes that are made here, where the service did not answer:
`connection_failed`, `timeout`, `bad_answer`, `not_configured`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional


class ServiceError(Exception):
    """Every failure of a call.

    `code` is stable, `status` the HTTP status (0 where there was no answer), `details` what the service tells
    beside it, `request_id` what to quote when asking for help, `retry_after` seconds that the server asks to wait.
    """

    def __init__(
        self,
        code: str,
        status: int = 0,
        details: Optional[Mapping[str, Any]] = None,
        request_id: Optional[str] = None,
        message: str = "",
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(code, status, dict(details or {}), request_id, message, retry_after)
        self.code = code
        self.status = status
        self.details: dict[str, Any] = dict(details or {})
        self.request_id = request_id
        self.message = message
        self.retry_after = retry_after

    def __str__(self) -> str:
        told = f"{self.message or 'The call failed.'} ({self.code}"
        if self.status:
            told += f", status {self.status}"
        if self.request_id:
            told += f", request {self.request_id}"
        return told + ")"


class InvalidRequest(ServiceError):
    """400: the request cannot be read."""


class Unauthenticated(ServiceError):
    """401: no key, or one that is unknown, expired or revoked; `details["reason"]` says which."""


class Forbidden(ServiceError):
    """403: the key may not do that; `details["needs"]` says what it lacks."""


class NotFound(ServiceError):
    """404: there is no such object for this key."""


class Conflict(ServiceError):
    """409: a name is taken, an object is in use, a run has ended."""


class VersionConflict(ServiceError):
    """412: the object has changed since it was read (see `if_match`)."""


class TooLarge(ServiceError):
    """413: the body is larger than the service takes."""


class ValidationError(ServiceError):
    """422: the request has faults. `fields` has all of them, each with `path`, `code`, `message`, perhaps `hint`."""

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The faults; empty where the refusal is not about single fields."""
        found = self.details.get("fields")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def __str__(self) -> str:
        told = super().__str__()
        for fault in self.fields:
            hint = f" {fault['hint']}" if fault.get("hint") else ""
            told += f"\n  {fault.get('path') or 'the whole'}: {fault.get('message', '')}{hint}"
        return told


class RateLimited(ServiceError):
    """429: too many requests, or the rows of the hour are used up (`quota_exceeded`). See `retry_after`."""


class TargetError(ServiceError):
    """502 and 504 of a database or an API behind a connection, as the service met it."""


class ServerError(ServiceError):
    """Any other 5xx. Quote `request_id`."""


class BadAnswer(ServiceError):
    """The answer is not one of the service: HTML of a proxy, half a document, a redirect."""


class ConnectionFailed(ServiceError):
    """No answer. `sent` says whether the request may have reached the service and have been carried out."""

    sent: bool = False


class Timeout(ConnectionFailed):
    """No answer, or no end of it, in the time given."""


_BY_STATUS: dict[int, type[ServiceError]] = {
    400: InvalidRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: VersionConflict,
    413: TooLarge,
    422: ValidationError,
    429: RateLimited,
}
TARGET_CODES = frozenset({"target_failed", "token_request_failed", "csrf_failed", "target_timeout"})


def refusal(
    status: int, body: Any, request_id: Optional[str] = None, retry_after: Optional[float] = None
) -> ServiceError:
    """The exception for an answer of 4xx or 5xx; `body` is its JSON, anything else makes `bad_answer`."""
    told = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(told, Mapping) or not isinstance(told.get("code"), str):
        text = f"The answer has status {status} and is not the service's: {_glimpse(body)}"
        kind = _BY_STATUS.get(status, BadAnswer) if status in (401, 403, 404, 413, 429) else BadAnswer
        return kind("bad_answer", status, {}, request_id, text, retry_after)
    code, details = told["code"], told.get("details")
    if code in TARGET_CODES:
        made: type[ServiceError] = TargetError
    else:
        made = _BY_STATUS.get(status, ServerError if status >= 500 else ServiceError)
    known = dict(details) if isinstance(details, Mapping) else {}
    return made(
        code, status, known, request_id or known.get("request_id"), str(told.get("message", "")), retry_after
    )


def _glimpse(body: Any) -> str:
    text = " ".join(str(body).split())
    return repr(text[:100]) if text else "empty"

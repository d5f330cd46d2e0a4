"""Exceptions of the package. Match on the class or on `code`, never on the message.

    try:
        client.generate_from_template_id("tpl_...", 10)
    except rowsmith.error.NotFound:
        ...
    except rowsmith.error.ServiceError as error:
        print(error.code, error.status, error.request_id)

For the codes of the service, see its reference. The package itself uses these codes if there is no response from the
service: `connection_failed`, `timeout`, `bad_answer`, `not_configured`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional


class ServiceError(Exception):
    """Base class of all failed calls.

    `code` is stable. `status` is the HTTP status (0 without a response). `details` contains further
    information from the service. Quote `request_id` when you ask for help. `retry_after` is the number of
    seconds that the server asks you to wait.
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
        message = f"{self.message or 'The call failed.'} ({self.code}"
        if self.status:
            message += f", status {self.status}"
        if self.request_id:
            message += f", request {self.request_id}"
        return message + ")"


class InvalidRequest(ServiceError):
    """400: the request cannot be parsed."""


class Unauthenticated(ServiceError):
    """401: the key is missing, unknown, expired or revoked; see `details["reason"]`."""


class Forbidden(ServiceError):
    """403: the key lacks a permission; see `details["needs"]`."""


class NotFound(ServiceError):
    """404: the object does not exist for this key."""


class Conflict(ServiceError):
    """409: a name is taken, an object is in use, or a run has finished."""


class VersionConflict(ServiceError):
    """412: the object has changed since it was read (see `if_match`)."""


class TooLarge(ServiceError):
    """413: the body is larger than the service accepts."""


class ValidationError(ServiceError):
    """422: the request is invalid. `fields` contains all errors, each with `path`, `code`, `message` and an
    optional `hint`."""

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The errors of single fields; empty if the error does not concern single fields."""
        found = self.details.get("fields")
        return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []

    def __str__(self) -> str:
        told = super().__str__()
        for fault in self.fields:
            hint = f" {fault['hint']}" if fault.get("hint") else ""
            told += f"\n  {fault.get('path') or 'request'}: {fault.get('message', '')}{hint}"
        return told


class RateLimited(ServiceError):
    """429: too many requests, or the hourly row quota is used up (`quota_exceeded`). See `retry_after`."""


class TargetError(ServiceError):
    """502 or 504: a database or an API behind a connection failed."""


class ServerError(ServiceError):
    """Any other 5xx error. Quote `request_id`."""


class BadAnswer(ServiceError):
    """The response did not come from the service: a proxy's HTML page, an incomplete document, or a redirect."""


class ConnectionFailed(ServiceError):
    """There was no response. `sent` says whether the request may have reached the service and been processed."""

    sent: bool = False


class Timeout(ConnectionFailed):
    """There was no complete response within the time limit."""


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
    """Return the exception for a 4xx or 5xx response. `body` is its JSON; anything else results in
    `bad_answer`."""
    told = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(told, Mapping) or not isinstance(told.get("code"), str):
        text = f"The response has status {status} and is not from the service: {_glimpse(body)}"
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

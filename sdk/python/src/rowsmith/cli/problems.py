"""Errors as the shell shows them: one line, hints, and an exit status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Optional

from rowsmith.error import ConnectionFailed, ServiceError

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
CHANGES: Final = 2
NOT_FOUND: Final = 3
NOT_ALLOWED: Final = 4
CLASH: Final = 5
REFUSED: Final = 6
LIMIT: Final = 7
UNREACHABLE: Final = 8
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

EXITS: Final[tuple[tuple[int, str], ...]] = (
    (OK, "Success. For `templates plan`: there are no changes."),
    (FAILED, "Failure: a run or push that did not complete, rows that did not arrive, an error of the "
             "service or a target."),
    (USAGE, "Invalid arguments. For `templates plan` and `templates diff --exit-code`: there are changes."),
    (NOT_FOUND, "The object or the local file does not exist."),
    (NOT_ALLOWED, "The key is missing, invalid, or lacks a permission."),
    (CLASH, "The object has changed, its name is taken, it is in use, or it has already finished."),
    (REFUSED, "The request is invalid. All errors are listed."),
    (LIMIT, "A limit of the workspace is reached. Try again later."),
    (UNREACHABLE, "The service did not respond, or not within the time limit."),
    (INTERRUPTED, "Ctrl-C. Work that the service has started continues."),
    (BROKEN_PIPE, "The output pipe was closed, as by `| head`."),
)  # fmt: skip
"""Every exit status and its meaning."""

_BY_STATUS: Final = {
    400: REFUSED,
    401: NOT_ALLOWED,
    403: NOT_ALLOWED,
    404: NOT_FOUND,
    409: CLASH,
    412: CLASH,
    413: REFUSED,
    422: REFUSED,
    429: LIMIT,
}


class Problem(Exception):
    """An error on the client side. `hints` are additional lines."""

    def __init__(self, code: str, message: str, exit: int, hints: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.code, self.message, self.exit = code, message, exit
        self.hints = list(hints)


def usage(message: str, *hints: str) -> Problem:
    """Arguments that cannot be combined."""
    return Problem("usage", message, USAGE, hints)


def exit_of(error: ServiceError) -> int:
    """Return the exit status for a failed call."""
    if isinstance(error, ConnectionFailed):
        return UNREACHABLE
    if error.code == "not_configured":
        return NOT_ALLOWED
    return _BY_STATUS.get(error.status, FAILED)


def lines_of(error: ServiceError) -> list[str]:
    """Format a failed call as lines: code, message and request ID first, then each error with its path and
    hint."""
    request = f" (request {error.request_id})" if error.request_id else ""
    told = [f"{error.code}: {' '.join((error.message or 'The call failed.').split())}{request}"]
    fields = error.details.get("fields")
    for fault in fields if isinstance(fields, list) else ():
        if isinstance(fault, dict):
            hint = f" {fault['hint']}" if fault.get("hint") else ""
            told.append(f"  {fault.get('path') or 'request'}: {fault.get('message', '')}{hint}")
    told += [f"  {item}" for item in _more(error)]
    return told


def _more(error: ServiceError) -> list[str]:
    details, told = error.details, []
    if details.get("needs"):
        told.append(f"needs: {_flat(details['needs'])}")
    if details.get("used_by"):
        told.append(f"used by: {_flat(details['used_by'])}")
    if error.retry_after:
        told.append(f"Try again in {error.retry_after:.0f} s.")
    if error.code == "not_configured":
        told.append(
            "`rowsmith login` stores the address and the key. SERVICE_API_URL and SERVICE_API_KEY take precedence."
        )
    return told


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_flat(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_flat(item) for item in value)
    return str(value)


def as_json(error: Exception) -> dict[str, Any]:
    """Format a failed call as JSON, in the format of the service's errors."""
    if isinstance(error, ServiceError):
        told: dict[str, Any] = {"code": error.code, "message": error.message, "details": error.details}
        return {"error": {**told, "status": error.status, "request_id": error.request_id}}
    code: Optional[str] = getattr(error, "code", None)
    hints = getattr(error, "hints", [])
    return {"error": {"code": code or "failed", "message": str(error), "details": {"hints": hints}}}

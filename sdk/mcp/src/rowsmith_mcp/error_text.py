"""Errors of the service as text for a model: every error with its path and hint, and what to do next."""

from __future__ import annotations

from rowsmith.error import ServiceError, ValidationError
from rowsmith_mcp.limits import MAX_FAULTS

_NEXT = {
    "unauthenticated": "The API key was rejected; only the user can set another one.",
    "forbidden": (
        "This key lacks a permission. Do not look for a workaround; tell the user what is missing."),
    "not_found": "List the objects to see which IDs exist.",
    "version_conflict": "It was changed in the meantime: read it again, and change the current version.",
    "quota_exceeded": "The hourly row quota is used up.",
    "connection_failed": "Rowsmith did not respond.",
    "timeout": ("Rowsmith did not respond in time. The request may have been processed; check before "
               "you repeat it."),
}


def error_text(error: ServiceError) -> str:
    """Return one line about what happened, one line per error, what to do next, and the request ID."""
    lines = [f"{error.code}: {error.message or 'The call failed.'}"]
    faults = error.fields if isinstance(error, ValidationError) else []
    for fault in faults[:MAX_FAULTS]:
        hint = f" Hint: {fault['hint']}" if fault.get("hint") else ""
        code = f" ({fault['code']})" if fault.get("code") else ""
        lines.append(f"- {fault.get('path') or 'request'}{code}: {fault.get('message', '')}{hint}")
    if len(faults) > MAX_FAULTS:
        lines.append(f"- and {len(faults) - MAX_FAULTS} more errors")
    named = ("reason", "needs", "used_by")
    lines += [f"{name}: {error.details[name]}" for name in named if error.details.get(name)]
    if error.retry_after is not None:
        lines.append(f"Try again in {error.retry_after:g} seconds.")
    if error.code in _NEXT:
        lines.append(_NEXT[error.code])
    if error.request_id:
        lines.append(f"request: {error.request_id}")
    return "\n".join(lines)

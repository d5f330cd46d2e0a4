"""Failures of the service as text for a model: every fault with its place and its hint, and what to do next."""

from __future__ import annotations

from rowsmith.error import ServiceError, ValidationError
from rowsmith_mcp.bounds import MAX_FAULTS

_NEXT = {
    "unauthenticated": "The key of this server's user was refused; only that person can set another one.",
    "forbidden": "This key may not do that. Do not look for a way around it; tell the user what it lacks.",
    "not_found": "List the objects to see which ids there are.",
    "version_conflict": "It was changed meanwhile: read it again, and change what is there now.",
    "quota_exceeded": "The rows of this hour are used up.",
    "connection_failed": "Rowsmith did not answer.",
    "timeout": "Rowsmith did not answer in time. What was asked for may have been done; look before repeating it.",
}


def told(error: ServiceError) -> str:
    """One line of what happened, a line a fault, what to do next, and the request's id."""
    lines = [f"{error.code}: {error.message or 'The call failed.'}"]
    faults = error.fields if isinstance(error, ValidationError) else []
    for fault in faults[:MAX_FAULTS]:
        hint = f" Hint: {fault['hint']}" if fault.get("hint") else ""
        code = f" ({fault['code']})" if fault.get("code") else ""
        lines.append(f"- {fault.get('path') or 'the whole'}{code}: {fault.get('message', '')}{hint}")
    if len(faults) > MAX_FAULTS:
        lines.append(f"- and {len(faults) - MAX_FAULTS} more faults")
    named = ("reason", "needs", "used_by")
    lines += [f"{name}: {error.details[name]}" for name in named if error.details.get(name)]
    if error.retry_after is not None:
        lines.append(f"Try again in {error.retry_after:g} seconds.")
    if error.code in _NEXT:
        lines.append(_NEXT[error.code])
    if error.request_id:
        lines.append(f"request: {error.request_id}")
    return "\n".join(lines)

"""The command that generates all rows when a model has only seen the first ones. It does not contain the key."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

VARIABLE: Final = "SERVICE_API_KEY"
"""The shell variable with the key."""


def command(url: str, template_id: str, request: Mapping[str, Any], project: str = "") -> str:
    """Return a curl command that writes the rows of `request` (count, seed, format ...) to a file."""
    given = {name: value for name, value in request.items() if value not in (None, {}, "")}
    suffix = str(given.get("format", "json"))
    words = ["curl", "-fsS", f"{url}/templates/{template_id}/generate"]
    headers = ["-H", f'"Authorization: Bearer ${VARIABLE}"']
    if project:
        headers += ["-H", shlex.quote(f"X-Project-Id: {project}")]
    headers += ["-H", shlex.quote("Content-Type: application/json")]
    body = ["-d", shlex.quote(json.dumps(given, ensure_ascii=False)), "-o", f"rows.{suffix}"]
    return " ".join([*(shlex.quote(word) for word in words), *headers, *body])

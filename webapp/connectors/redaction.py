"""Secrets cut out of what a target says, however it writes them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

_CUT: Final = "********"
_LEAST: Final = 6  # characters of base64; fewer are found in every text


def without(text: str, secrets: Iterable[str]) -> str:
    """A text without the secrets that it repeats, be it as they are, URL-encoded, escaped as in JSON, or base64."""
    forms = {form for one in secrets if one for form in _forms(one)}
    for form in sorted(forms, key=len, reverse=True):
        text = re.sub(re.escape(form), _CUT, text, flags=re.IGNORECASE if "%" in form else 0)
    return text


def _forms(secret: str) -> list[str]:
    raw = secret.encode()
    found = [secret, quote(secret, safe=""), quote(secret), quote_plus(secret)]
    for ascii_only in (True, False):
        escaped = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        found += [escaped, escaped.replace("/", "\\/")]
    # Within a longer text base64 looks different by where the secret begins: what is sure of it, for each of three.
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        sure = coded[(shift * 8 + 5) // 6 : (shift * 8 + len(raw) * 8) // 6]
        if len(sure) >= _LEAST:
            found += [sure, sure.replace("+", "-").replace("/", "_")]
    return found

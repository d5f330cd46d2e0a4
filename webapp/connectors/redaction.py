"""Redact secrets in messages of targets and in output of programs, in all the ways they may be encoded."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

_MASK: Final = "********"
_MIN_CHARS: Final = 6  # characters of base64; shorter sequences occur in any text
_MIN_LINE_CHARS: Final = 8  # characters of a line of a secret; shorter lines ("}", "-----") occur in any text


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return a text with secrets redacted, whether plain, URL-encoded, escaped as in JSON, or in base64."""
    variants = {form for secret in secrets if secret for form in encoded_forms(secret)}
    for form in sorted(variants, key=len, reverse=True):
        text = re.sub(re.escape(form), _MASK, text, flags=re.IGNORECASE if "%" in form else 0)
    return text


class Redactor:
    """Redacts secrets in bytes. Each line of a multi-line secret is redacted on its own, too."""

    def __init__(self, secrets: Iterable[str], min_chars: int) -> None:
        long_secrets = {secret for secret in secrets if len(secret) >= min_chars}
        lines = {
            line
            for secret in long_secrets
            for line in secret.splitlines()
            if len(line) >= max(min_chars, _MIN_LINE_CHARS)
        }
        variants = {
            form.encode("utf-8", "surrogatepass")
            for item in long_secrets | lines
            for form in encoded_forms(item)
        }
        # Escapes such as %2F match in either case. Longer forms come first, so that nothing remains of them.
        parts = [
            b"(?i:%s)" % re.escape(form) if b"%" in form else re.escape(form)
            for form in sorted(variants, key=len, reverse=True)
        ]
        self._pattern = re.compile(b"|".join(parts)) if parts else None
        self.longest = max(map(len, variants), default=0)
        """Bytes of the longest form. Data that is at least this far from the end of the input can be redacted
        safely."""

    def redact(self, data: bytes) -> bytes:
        """Return the data with secrets redacted."""
        return self._pattern.sub(_MASK.encode(), data) if self._pattern is not None else data

    def split_position(self, data: bytes, at: int) -> int:
        """Return a position to split the data: `at`, or the end of a secret that contains it."""
        if self._pattern is not None:
            for match in self._pattern.finditer(data, max(0, at - self.longest)):
                if match.start() >= at:
                    break
                if match.end() > at:
                    return match.end()
        return at


def encoded_forms(secret: str) -> list[str]:
    """Return the ways to write a secret: plain, URL-encoded, escaped as in JSON, and in base64."""
    raw = secret.encode()
    result = [secret, quote(secret, safe=""), quote(secret), quote_plus(secret)]
    for ascii_only in (True, False):
        escaped = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        result += [escaped, escaped.replace("/", "\\/")]
    # In a longer text, the base64 form depends on the position of the secret modulo 3. Take the certain
    # characters of each.
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        certain = encoded[(shift * 8 + 5) // 6 : (shift * 8 + len(raw) * 8) // 6]
        if len(certain) >= _MIN_CHARS:
            result += [certain, certain.replace("+", "-").replace("/", "_")]
    return result

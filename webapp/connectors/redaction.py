"""Secrets cut out of what a target says, or a program prints, however it writes them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

_CUT: Final = "********"
_LEAST: Final = 6  # characters of base64; fewer are found in every text
_LINE: Final = 8  # characters of one line of a secret; shorter ones ("}", "-----") are found in every text


def without(text: str, secrets: Iterable[str]) -> str:
    """A text without the secrets that it repeats, be it as they are, URL-encoded, escaped as in JSON, or base64."""
    found = {form for one in secrets if one for form in forms(one)}
    for form in sorted(found, key=len, reverse=True):
        text = re.sub(re.escape(form), _CUT, text, flags=re.IGNORECASE if "%" in form else 0)
    return text


class Cutter:
    """Cuts some secrets out of bytes, again and again. Lines of a secret that has several are cut each by itself."""

    def __init__(self, secrets: Iterable[str], least: int) -> None:
        whole = {secret for secret in secrets if len(secret) >= least}
        lines = {line for secret in whole for line in secret.splitlines() if len(line) >= max(least, _LINE)}
        found = {form.encode("utf-8", "surrogatepass") for one in whole | lines for form in forms(one)}
        # Of an escape such as %2F either case is meant; longer forms first, so that no rest of one is left standing.
        parts = [
            b"(?i:%s)" % re.escape(form) if b"%" in form else re.escape(form)
            for form in sorted(found, key=len, reverse=True)
        ]
        self._found = re.compile(b"|".join(parts)) if parts else None
        self.longest = max(map(len, found), default=0)
        """Bytes of the longest form: a cut that is at least so far from the end of what is known is safe."""

    def cut(self, data: bytes) -> bytes:
        """Without the secrets."""
        return self._found.sub(_CUT.encode(), data) if self._found is not None else data

    def border(self, data: bytes, at: int) -> int:
        """Where to part some bytes, at a place or right behind the secret that the place lies in."""
        if self._found is not None:
            for match in self._found.finditer(data, max(0, at - self.longest)):
                if match.start() >= at:
                    break
                if match.end() > at:
                    return match.end()
        return at


def forms(secret: str) -> list[str]:
    """The ways in which a secret may be written: as it is, URL-encoded, escaped as in JSON, in base64."""
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

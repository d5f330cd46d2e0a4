"""What gateways of OData services do with tokens and cookies: rules for `EchoTarget.on`."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Literal

from tests.fakes.echo_target import WRITES, Answer, Seen, redirect

COOKIE = "sap-XSRF_cookie"


@dataclass
class Csrf:
    """A service below `root` that wants a token and the cookie it was given with.

    target.on("/sap*", Csrf("/sap", head="refused", slash="redirect"))
    """

    root: str = "/sap"
    head: Literal["", "refused", "empty", "not_found"] = ""
    """HEAD is answered like GET, by 405, without a token, or by 404."""
    slash: Literal["", "redirect", "not_found", "wanted"] = ""
    """The root with a slash at its end is redirected to, or not there; or the one without is not there."""
    cookies: bool = True
    """Without: no cookie is set, as where a proxy strips it; the token is worth nothing then."""
    tokens: bool = True
    """Without: nothing gives a token."""
    uses: int | None = None
    """A token is valid for this many write requests."""
    header: bool = True
    """A refusal carries `X-CSRF-Token: Required`; else only its text tells."""
    forbidden: bool = False
    """Every request that writes is refused with a 403 that has nothing to do with tokens."""
    metadata_401: bool = False
    """Only `$metadata` requires authentication."""
    given: list[str] = field(default_factory=list)
    used: dict[str, int] = field(default_factory=dict)
    refused: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, seen: Seen) -> Answer:
        with self._lock:
            if self.metadata_401 and seen.path.endswith("/$metadata"):
                return Answer(401, "Unauthorized", {"WWW-Authenticate": 'Basic realm="gateway"'})
            if seen.method in WRITES:
                return self._written(seen)
            return self._fetched(seen)

    def _fetched(self, seen: Seen) -> Answer:
        at_root, slashed = seen.path.rstrip("/") == self.root, seen.path.endswith("/")
        if seen.method == "HEAD" and self.head in ("refused", "not_found"):
            return Answer(405 if self.head == "refused" else 404, b"")
        if at_root and self.slash == "redirect" and not slashed:
            return redirect(f"{self.root}/", 301)
        if at_root and ((self.slash == "not_found" and slashed) or (self.slash == "wanted" and not slashed)):
            return Answer(404, {"error": {"message": "no such resource"}})
        headers: dict[str, str] = {}
        wants = seen.headers.get("x-csrf-token", "").lower() == "fetch"
        if wants and self.tokens and not (seen.method == "HEAD" and self.head == "empty"):
            token = f"csrf-{len(self.given) + 1}"
            self.given.append(token)
            headers["X-CSRF-Token"] = token
            if self.cookies:
                headers["Set-Cookie"] = f"{COOKIE}={token}; path=/; HttpOnly"
        return Answer(200, {"d": {"EntitySets": []}}, headers)

    def _written(self, seen: Seen) -> Answer:
        if self.forbidden:
            return Answer(403, {"error": {"code": "AUTH/1", "message": "No authorization for this entity"}})
        token = seen.headers.get("x-csrf-token", "")
        crumbs = dict(item.strip().partition("=")[::2] for item in seen.headers.get("cookie", "").split(";"))
        count = self.used.get(token, 0)
        good = (
            token in self.given and crumbs.get(COOKIE) == token and (self.uses is None or count < self.uses)
        )
        if not good:
            self.refused += 1
            return Answer(
                403, "CSRF token validation failed", {"X-CSRF-Token": "Required"} if self.header else {}
            )
        self.used[token] = count + 1
        return Answer(201, {"d": {"ok": True}})

"""A token endpoint (OAuth 2.0 client credentials) and a protected resource. It can send invalid responses and fail."""

from __future__ import annotations

import base64
import json
import ssl
from collections import Counter
from urllib.parse import parse_qsl, unquote_plus

from tests.fakes.echo_target import Answer, EchoTarget, Seen


class OAuthServer(EchoTarget):
    """`/token` gives tokens, `/guarded/*` wants one. Script `/token` with `on` for other answers, such as HTML."""

    def __init__(
        self,
        client_id: str = "client",
        client_secret: str = "s3cret/+ &=ü",
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(tls)
        self.client_id, self.client_secret = client_id, client_secret
        self.client_auth = "post"
        self.scope: str | None = None
        """Refuse other scopes."""
        self.expires_in: object = 3600
        """The lifetime in the response; None omits it."""
        self.uses: int | None = None
        """A token is revoked after this many uses, independent of its lifetime."""
        self.content_type = "application/json"
        self.given: list[str] = []
        self.used: Counter[str] = Counter()
        self.on("/token", self.token)
        self.on("/guarded/*", self.guarded)

    @property
    def token_url(self) -> str:
        return self.url("/token")

    def token(self, seen: Seen) -> Answer:
        """RFC 6749, 4.4."""
        if seen.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
            return _error("invalid_request", "the request is not form-encoded")
        form = dict(parse_qsl(seen.body.decode(), keep_blank_values=True, strict_parsing=True))
        if seen.method != "POST" or form.get("grant_type") != "client_credentials":
            return _error("unsupported_grant_type", "client_credentials it is")
        if self._who(seen, form) != (self.client_id, self.client_secret):
            return _error(
                "invalid_client", f"no such client, or not this secret: {form.get('client_secret')}", 401
            )
        if self.scope is not None and form.get("scope") != self.scope:
            return _error("invalid_scope", "not this one")
        self.given.append(f"token-{len(self.given) + 1}-{base64.urlsafe_b64encode(b'?' * 20).decode()}")
        answer = {"access_token": self.given[-1], "token_type": "bearer"}
        if self.expires_in is not None:
            answer["expires_in"] = self.expires_in
        return Answer(200, json.dumps(answer).encode(), {"Content-Type": self.content_type})

    def _who(self, seen: Seen, form: dict[str, str]) -> tuple[str | None, str | None]:
        if self.client_auth == "post":
            return form.get("client_id"), form.get("client_secret")
        kind, _, coded = seen.headers.get("authorization", "").partition(" ")
        if kind != "Basic" or "client_secret" in form:
            return None, None
        name, _, secret = base64.b64decode(coded).decode().partition(":")
        return unquote_plus(name), unquote_plus(secret)

    def revoke(self) -> None:
        """All tokens given so far are worth nothing any more."""
        for item in self.given:
            self.used[item] = 1_000_000

    def guarded(self, seen: Seen) -> Answer:
        """What wants a token."""
        token = seen.headers.get("authorization", "").removeprefix("Bearer ")
        most = 1_000_000 if self.uses is None else self.uses
        if token not in self.given or self.used[token] >= most:
            return Answer(
                401, {"error": "invalid_token"}, {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            )
        self.used[token] += 1
        return Answer(201 if seen.method == "POST" else 200, {"token": self.given.index(token) + 1})


def _error(word: str, said: str, status: int = 400) -> Answer:
    return Answer(status, {"error": word, "error_description": said})

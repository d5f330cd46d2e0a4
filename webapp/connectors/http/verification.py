"""Verification of targets over HTTP: connection, token, and the response to a harmless request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

import requests

from webapp import limits
from webapp.connectors.base import ConnectorError, Stage
from webapp.connectors.http.authentication import send_authenticated
from webapp.connectors.verification import run_stages
from webapp.net.session import NetError, Reply, Session, check_url
from webapp.net.urls import display_url

METHODS: Final = ("HEAD", "OPTIONS", "GET")
"""Tried in this order until one is supported (specification, section 4)."""
_INCONCLUSIVE: Final = frozenset({400, 404, 405, 406, 411, 415, 500, 501})  # another method may work
_CODES: Final = {
    "not_allowed": "target_not_allowed", "secret_host": "target_not_allowed", "timeout": "target_timeout",
}  # fmt: skip
_HINTS: Final = {
    "tls_failed": "Check the target's certificate, or turn off verification for a test system.",
    "redirected": "Enter the address that it redirects to.",
    "timeout": "Check whether a firewall blocks the connection.",
    "refused": "Check that the server is running and listens on this port.",
    "unresolved": "Check the spelling of the host.",
    "not_allowed": "The operator can allow this network with TARGET_NETWORKS.",
    "secret_host": "An admin can allow the host for this secret under Settings, Secrets.",
}


def from_net_error(error: NetError) -> ConnectorError:
    """Convert a network error."""
    return ConnectorError(
        error.message,
        code=_CODES.get(error.reason, "target_failed"),
        reason=error.reason,
        hint=_HINTS.get(error.reason, ""),
        transient=error.reason in ("refused", "timeout", "unreachable", "reset"),
    )


def verify(
    session: Session, url: str, auth: Any, headers: Mapping[str, str], timeout: float
) -> Iterator[Stage]:
    """Verify a target by its base URL. The last stage has the `response`. `auth` is a model of
    `http.authentication`."""
    verification = _Verification(session, url, auth, headers, timeout)
    steps = [("resolve", verification.resolve), ("connect", verification.connect)]
    if url.startswith("https:"):
        steps.append(("tls", verification.tls))
    steps += [
        ("auth", verification.auth),
        ("permission", verification.permission),
        ("sample", verification.sample),
    ]
    previous: Stage | None = None
    for stage in run_stages(steps):
        if previous is not None:
            yield previous
        previous = stage
    if previous is not None:
        yield replace(previous, response=verification.response())


class _Verification:
    """One verification. It sends one request, and each stage reports a part of the result."""

    def __init__(
        self, session: Session, url: str, auth: Any, headers: Mapping[str, str], timeout: float
    ) -> None:
        self._session, self._url, self._auth, self._headers = session, url, auth, headers
        self._timeout = min(timeout, limits.VERIFY_STEP_SECONDS)
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._is_sent = False
        self._method = ""
        self._reply: Reply | None = None
        self._error: NetError | ConnectorError | None = None

    def resolve(self) -> str:
        """Stage resolve."""
        try:
            check_url(self._url)
        except NetError as error:
            raise from_net_error(error) from None
        addresses = self._session.gate.addresses(self._host, self._port)
        return f"{self._host} resolves to {', '.join(addresses)}" if addresses != [self._host] else ""

    def connect(self) -> str:
        """Stage connect."""
        self._session.gate.connect(self._host, self._port, self._timeout).close()
        return ""

    def tls(self) -> str:
        """Stage tls."""
        self._send_request()
        if isinstance(self._error, NetError) and self._error.reason == "tls_failed":
            raise from_net_error(self._error)
        return ""

    def auth(self) -> str:
        """Stage auth: a token was issued, and the credentials are accepted."""
        self._send_request()
        if isinstance(self._error, ConnectorError):
            raise self._error
        if self._reply is not None and self._reply.status == 401:
            hint = "Check the credentials, and the kind of authentication that the target expects."
            raise ConnectorError(self._status_message(), reason="auth_failed", hint=hint)
        return "a token was issued" if self._auth.type.startswith("oauth2") else ""

    def permission(self) -> str:
        """Stage permission."""
        if self._reply is not None and self._reply.status == 403:
            hint = "The target accepts the credentials, but they have no permission for this."
            raise ConnectorError(self._status_message(), reason="forbidden", hint=hint)
        return ""

    def sample(self) -> str:
        """Stage sample: the response."""
        if isinstance(self._error, NetError):
            raise from_net_error(self._error)
        if self._reply is not None and self._reply.status >= 500:
            raise ConnectorError(
                self._status_message(),
                reason="unavailable",
                hint="The target has a problem. Try again later.",
            )
        return self._status_message()

    def response(self) -> dict[str, Any] | None:
        """Return the response for the report."""
        reply = self._reply
        if reply is None:
            return None
        return {
            "method": self._method,
            "url": display_url(reply.url),
            "status": reply.status,
            "content_type": reply.headers.get("Content-Type", ""),
            "body": reply.body.decode("utf-8", "replace")[: limits.HTTP_BODY_CHARS],
            "ms": reply.ms,
        }

    def _status_message(self) -> str:
        status = self._reply.status if self._reply is not None else 0
        return f"{self._method} {display_url(self._url)} returned {status}"

    def _send_request(self) -> None:
        if self._is_sent:
            return
        self._is_sent = True
        auth = self._auth.requests_auth(self._session)
        for self._method in METHODS:
            request = requests.Request(self._method, self._url, headers=dict(self._headers), auth=auth)
            try:
                self._reply = send_authenticated(
                    self._session,
                    request,
                    timeout_seconds=self._timeout,
                    max_bytes=limits.VERIFY_RESPONSE_BYTES,
                )
                self._error = None
            except (NetError, ConnectorError) as error:
                self._error = error
                if isinstance(error, ConnectorError) or error.reason not in ("reset", "bad_response"):
                    return
            else:
                if self._reply.status not in _INCONCLUSIVE:
                    return

"""The OpenID Connect provider that the operator configured: its metadata, keys and responses.

Metadata and keys are cached in the process for an hour. A signature by an unknown key triggers a refresh of the keys,
so that a provider can rotate them. Like the issuer, every URL in the metadata must use https, except on loopback.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

import orjson
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_token_request
from authlib.oidc.discovery import get_well_known_url
from flask import current_app
from joserfc.jwk import KeySet

from webapp import clock, limits
from webapp.config import Settings
from webapp.config.faults import is_loopback
from webapp.net.gate import Gate
from webapp.net.session import NetError, Reply, ask
from webapp.security import id_tokens
from webapp.security.id_tokens import TokenRefused

_KEY: Final = "rowsmith.oidc"
_ANYWHERE: Final = (
    "0.0.0.0/0",
    "::/0",
)  # the operator configured the host; metadata services of clouds stay blocked
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}


class Unreachable(Exception):
    """The provider does not answer, or not as one. The message is for the operator's log."""


def configured() -> bool:
    """Return whether users can sign in through the provider."""
    return bool(current_app.config["SETTINGS"].oidc_issuer)


def provider() -> Provider:
    """The provider of the application's settings."""
    found = current_app.extensions.get(_KEY)
    if found is None:
        found = current_app.extensions[_KEY] = Provider(current_app.config["SETTINGS"])
    return found


class Provider:
    """Thread-safe: two concurrent requests for the same data are both sent, and the later response is cached."""

    def __init__(self, settings: Settings) -> None:
        self.issuer, self.client_id = settings.oidc_issuer, settings.oidc_client_id
        self._secret = settings.oidc_client_secret
        self._gate = Gate(_ANYWHERE)
        self._lock = threading.Lock()
        self._metadata: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    # --- What it says of itself -------------------------------------------------------------------------------

    def metadata(self) -> dict[str, Any]:
        """Fetch the metadata (OpenID Connect Discovery 1.0, 4). Error: Unreachable if missing or of another issuer."""
        with self._lock:
            kept = self._metadata
        if kept is not None and time.monotonic() - kept[0] < limits.OIDC_KEPT_SECONDS:
            return kept[1]
        url = get_well_known_url(self.issuer, external=True)
        found = self._json(self._ask("GET", url, {"Accept": "application/json"}))
        if found.get("issuer") != self.issuer:  # 4.3: they MUST be the same
            raise Unreachable("its metadata name another issuer than OIDC_ISSUER")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            _must_be_safe(name, found.get(name))
        if found.get("userinfo_endpoint") is not None:
            _must_be_safe("userinfo_endpoint", found["userinfo_endpoint"])
        with self._lock:
            self._metadata = (time.monotonic(), found)
        return found

    def _key_set(self, *, again: bool = False) -> KeySet:
        with self._lock:
            kept = self._keys
        old = limits.OIDC_KEYS_AGAIN_SECONDS if again else limits.OIDC_KEPT_SECONDS
        if kept is not None and time.monotonic() - kept[0] < old:
            return kept[1]
        found = id_tokens.keys_of(self._json(self._ask("GET", self.metadata()["jwks_uri"], {})))
        with self._lock:
            self._keys = (time.monotonic(), found)
        return found

    # --- Claims about the user -----------------------------------------------------------------------------

    def claims(self, code: str, verifier: str, redirect_uri: str, nonce: str) -> dict[str, Any]:
        """Exchange a code for the identity of the user (Core 1.0, 3.1.3). Errors: Unreachable, TokenRefused."""
        answer = self._redeem(code, verifier, redirect_uri)
        token, access = answer.get("id_token"), answer.get("access_token")
        if not isinstance(token, str) or not isinstance(access, str):
            raise TokenRefused("its token endpoint gave no ID token")
        found = self._checked(token, access, nonce)
        return found if "email" in found else {**found, **self._userinfo(access, found["sub"])}

    def _redeem(self, code: str, verifier: str, redirect_uri: str) -> dict[str, Any]:
        metadata = self.metadata()
        body = prepare_token_request(
            "authorization_code", redirect_uri=redirect_uri, code=code, code_verifier=verifier
        )
        ways = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if "client_secret_basic" in ways:
            # RFC 6749, 2.3.1: both parts are form-encoded before they are joined. A blank as %20, which all decode.
            who = ClientAuth(
                quote(self.client_id, safe=""), quote(self._secret, safe=""), "client_secret_basic"
            )
        else:
            who = ClientAuth(self.client_id, self._secret, "client_secret_post")
        url, headers, body = who.prepare("POST", metadata["token_endpoint"], dict(_FORM), body)
        reply = self._ask("POST", url, headers, body)
        if reply.status != 200:
            raise TokenRefused(f"its token endpoint answered {reply.status} ({_word(reply)})")
        return self._json(reply)

    def _checked(self, token: str, access: str, nonce: str) -> dict[str, Any]:
        taken = id_tokens.algorithms(self.metadata().get("id_token_signing_alg_values_supported"))

        def read(keys: KeySet) -> dict[str, Any]:
            return id_tokens.claims_of(
                token,
                keys,
                issuer=self.issuer,
                client_id=self.client_id,
                nonce=nonce,
                access_token=access,
                taken=taken,
                now=clock.epoch(),
            )

        keys = self._key_set()
        try:
            return read(keys)
        except TokenRefused:
            fresh = self._key_set(again=True)
            if fresh is keys:
                raise
            return read(fresh)

    def _userinfo(self, access: str, subject: str) -> dict[str, Any]:
        """Return e-mail address and name from userinfo if the ID token has none (Core 1.0, 5.3 and 5.4); only for the
        same subject."""
        url = self.metadata().get("userinfo_endpoint")
        if url is None:
            return {}
        reply = self._ask("GET", url, {"Authorization": f"Bearer {access}", "Accept": "application/json"})
        found = self._json(reply) if reply.status == 200 else {}
        if found.get("sub") != subject:
            raise TokenRefused(
                f"its userinfo endpoint returned {reply.status}, or the claims of another user"
            )
        return {name: found[name] for name in ("email", "email_verified", "name") if name in found}

    # --- HTTP -------------------------------------------------------------------------------------------------

    def _ask(self, method: str, url: str, headers: Mapping[str, str], body: str | None = None) -> Reply:
        try:
            return ask(
                self._gate,
                method,
                url,
                headers=headers,
                body=body,
                timeout_seconds=limits.OIDC_TIMEOUT_SECONDS,
                max_bytes=limits.OIDC_ANSWER_BYTES,
            )
        except NetError as error:
            raise Unreachable(f"{error.reason}: {error.message}") from None

    def _json(self, reply: Reply) -> dict[str, Any]:
        try:
            found = orjson.loads(reply.body)
        except orjson.JSONDecodeError:
            found = None
        if reply.status != 200 or reply.truncated or not isinstance(found, dict):
            raise Unreachable(f"{urlsplit(reply.url).path} answered {reply.status}, and no JSON object")
        return found


def _word(reply: Reply) -> str:
    """Return the error code of an error response (RFC 6749, 5.2) if it contains only allowed characters."""
    try:
        word = orjson.loads(reply.body).get("error")
    except (orjson.JSONDecodeError, AttributeError):
        return "no JSON"
    return word if isinstance(word, str) and word.isidentifier() and len(word) < 60 else "no error code"


def _must_be_safe(name: str, url: object) -> None:
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    except ValueError:
        safe = False
    if not safe:
        raise Unreachable(f"the {name} of its metadata is missing, or no https address")

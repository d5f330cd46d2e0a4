"""Cache of OAuth 2.0 client-credentials tokens: one fetch for all threads, and for all processes that share a store.

A token is cached until 60 s before it expires (specification, sections 5 and 8), or for `limits.TOKEN_DEFAULT_SECONDS`
where the response has no usable `expires_in`. A token that a target rejects with 401 is dropped immediately.

Each process keeps its tokens in memory. A `TokenStore`, where one is set, shares them between processes.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import threading
import time
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote_plus

import orjson
import requests
from requests.auth import AuthBase

from webapp import clock, limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.redaction import redact
from webapp.net.session import NetError, Reply, Session, exchange
from webapp.net.urls import display_url

if TYPE_CHECKING:
    from webapp.connectors.http.authentication import ClientCredentials

_POLL_SECONDS: Final = (
    0.1  # seconds between checks whether the session was stopped, while waiting for another thread's token
)
_ERROR_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_TOKEN: Final = re.compile(r"[!-~]+")
_TRANSIENT_REASONS: Final = frozenset(
    {"timeout", "reset", "refused", "unreachable", "unresolved", "bad_response"}
)


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token that processes share, or why the last attempt to fetch one failed.

    `until` and `failed_at` are seconds since 1970. The token is used before `until`.
    """

    token: str = ""
    until: float = 0.0
    failed_at: float = 0.0
    failure: dict[str, Any] | None = None


class TokenStore(Protocol):
    """Tokens shared between processes. `key` identifies the credentials. No method raises when the store is down."""

    scope: str
    """What the tokens belong to. Tokens of different scopes are never mixed, even where their credentials are equal."""

    def load(self, key: str) -> StoredToken | None:
        """Return what is stored, None if there is nothing."""

    def save(self, key: str, entry: StoredToken) -> None:
        """Store a token, or a failure."""

    def drop(self, key: str, token: str) -> None:
        """Remove a token, unless another one has replaced it."""

    def fetch_lock(self, key: str, wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Hold the right to fetch: one process at a time has it. `wait` is called between attempts to get it, and may
        raise."""


class ParentToken:
    """A store for a child process: it receives at most one token from its parent, and returns its last one
    (`entry`)."""

    scope = "handed"

    def __init__(self, entry: StoredToken | None) -> None:
        # A failure from the parent applies to the whole child process, which does not try again.
        self.entry = replace(entry, failed_at=math.inf) if entry is not None and entry.failure else entry

    def load(self, key: str) -> StoredToken | None:
        """See `TokenStore.load`."""
        return self.entry

    def save(self, key: str, entry: StoredToken) -> None:
        """See `TokenStore.save`."""
        self.entry = entry

    def drop(self, key: str, token: str) -> None:
        """See `TokenStore.drop`."""
        self.entry = None

    @contextmanager
    def fetch_lock(self, key: str, wait: Callable[[], None]) -> Iterator[None]:
        """See `TokenStore.fetch_lock`."""
        yield


@dataclass(slots=True)
class _Entry:
    """The token of one set of credentials. The thread that fetches it holds `lock`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    token: str = ""
    expires_at: float = 0.0  # time.monotonic; the token is used before
    accepted: bool = True  # a target accepted this token, or the previous one
    rejected_at: float = -math.inf  # when a target rejected a fresh token after it had rejected another one
    failed_at: float = -math.inf
    failure: ConnectorError | None = None


class _Tokens:
    """The entries of this process by a digest of their settings. The least recently used one is removed
    first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def entry(self, key: str) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > limits.TOKENS:
                self._entries.popitem(last=False)
            return entry

    def current_tokens(self) -> list[str]:
        """Return the current tokens, which messages must not contain."""
        with self._lock:
            return [entry.token for entry in self._entries.values() if entry.token]

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()


tokens: Final = _Tokens()


class RenewableAuth(AuthBase):
    """Credentials that can be renewed."""

    @abstractmethod
    def discard(self) -> bool:
        """Drop the credentials of this thread's request after a 401. Returns False if no new ones can be
        fetched."""

    @abstractmethod
    def record_accepted(self) -> None:
        """Record that a response other than 401 was received."""

    @abstractmethod
    def known_tokens(self) -> list[str]:
        """Return the current token and the one that this thread sent last, which messages must not contain."""


class TokenAuth(RenewableAuth):
    """Sends the current token as `Authorization: Bearer`."""

    def __init__(
        self, settings: ClientCredentials, session: Session, store: TokenStore | None = None
    ) -> None:
        self._settings, self._session, self._store = settings, session, store
        digest = hashlib.sha256(settings.model_dump_json().encode() + repr(session.verify).encode())
        self._key = digest.hexdigest()
        self._entry = tokens.entry(f"{store.scope if store else ''} {self._key}")
        self._thread_local = (
            threading.local()
        )  # threads share this object, and each drops the token that it sent itself

    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        self._thread_local.token = self.token()
        r.headers["Authorization"] = f"Bearer {self._thread_local.token}"
        return r

    def token(self) -> str:
        """Return a valid token.

        Threads that need one at the same time share one fetch and its error, and so do processes that share a
        store. Raises ConnectorError (code `token_request_failed`, or `target_not_allowed` if the address is
        blocked).
        """
        started, since, entry = time.monotonic(), clock.epoch(), self._entry
        with self._locked():
            if entry.token and time.monotonic() < entry.expires_at:
                return entry.token
            if entry.failure is not None and entry.failed_at >= started:
                raise entry.failure
            if self._store is None:
                return self._fetch()
            if self._use_stored(self._store.load(self._key), since):
                return entry.token
            with self._store.fetch_lock(self._key, self._wait):
                if self._use_stored(self._store.load(self._key), since):
                    return entry.token
                return self._fetch()

    def get_stored_token(self) -> StoredToken:
        """Return a valid token with its expiry, or the failure to fetch one, for a child process."""
        try:
            token = self.token()
        except ConnectorError as error:
            return _failure(error)
        return StoredToken(token, clock.epoch() + max(self._entry.expires_at - time.monotonic(), 0.0))

    def save_returned_token(self, stored: StoredToken | None) -> None:
        """Save the token that a child process returned. None means that the target rejected the last token."""
        with self._locked():
            if stored is None or stored.token != self._entry.token:
                if self._store is not None and self._entry.token:
                    self._store.drop(self._key, self._entry.token)
                self._entry.token = ""
            if self._store is not None and stored is not None and stored.token:
                self._store.save(self._key, stored)

    def _use_stored(self, stored: StoredToken | None, since: float) -> bool:
        """Use the token that another process fetched. Raises its error if that is not older than `since`."""
        if stored is None:
            return False
        if stored.failure is not None:
            if stored.failed_at >= since:
                raise ConnectorError(**stored.failure)
            return False
        lifetime = stored.until - clock.epoch()
        if lifetime <= 0:
            return False
        self._entry.token, self._entry.expires_at = stored.token, time.monotonic() + lifetime
        self._entry.failure = None
        return True

    def _fetch(self) -> str:
        entry, store = self._entry, self._store
        try:
            entry.token, lifetime = _fetch_token(self._settings, self._session)
        except ConnectorError as error:
            if not self._session.stopped:  # a stopped session says nothing about the token endpoint
                entry.failure, entry.failed_at = error, time.monotonic()
                if store is not None:
                    store.save(self._key, _failure(error))
            raise
        entry.expires_at, entry.failure = time.monotonic() + lifetime, None
        if store is not None and lifetime > 0:
            store.save(self._key, StoredToken(entry.token, clock.epoch() + lifetime))
        return entry.token

    def _wait(self) -> None:
        """Wait for a moment. Raises NetError if the session was stopped."""
        if self._session.stopped:
            raise NetError("reset", "The request was stopped.")
        time.sleep(_POLL_SECONDS)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the entry's lock. Raises NetError if the session is stopped while it waits for the lock."""
        while not self._entry.lock.acquire(timeout=_POLL_SECONDS):
            if self._session.stopped:
                raise NetError("reset", "The request was stopped.")
        try:
            yield
        finally:
            self._entry.lock.release()

    def discard(self) -> bool:
        """See `RenewableAuth.discard`. If a target rejects fresh tokens too, no new one is fetched for some
        seconds."""
        entry, sent_token = self._entry, getattr(self._thread_local, "token", "")
        with self._locked():
            if entry.token != sent_token:
                return True  # another thread has already fetched a new one
            now = time.monotonic()
            if now - entry.rejected_at < limits.TOKEN_REFUSED_SECONDS:
                return False
            if not entry.accepted:
                entry.rejected_at, entry.accepted = now, True
                return False
            if self._store is not None:
                self._store.drop(self._key, entry.token)
            entry.token, entry.accepted = "", False
            return True

    def record_accepted(self) -> None:
        """See `RenewableAuth.record_accepted`."""
        self._entry.accepted, self._entry.rejected_at = True, -math.inf

    def known_tokens(self) -> list[str]:
        """See `RenewableAuth.known_tokens`."""
        return [item for item in {self._entry.token, getattr(self._thread_local, "token", "")} if item]


def _failure(error: ConnectorError) -> StoredToken:
    return StoredToken(failed_at=clock.epoch(), failure=error.to_json())


def _fetch_token(settings: ClientCredentials, session: Session) -> tuple[str, float]:
    """Fetch a new token. Returns it with the number of seconds for which it may be cached."""
    url = display_url(settings.token_url)
    try:
        with session.separate_session() as own:
            seconds, max_bytes = limits.TOKEN_SECONDS, limits.TOKEN_BYTES
            reply = exchange(
                own, _request(settings), timeout_seconds=seconds, max_bytes=max_bytes, follow=False
            )
    except NetError as error:
        if error.reason in ("not_allowed", "secret_host"):
            raise ConnectorError(error.message, code="target_not_allowed", reason=error.reason) from None
        raise _token_error(
            f"The token request failed: {error.message}",
            error.reason,
            "Check token_url and the network route to it.",
            error.reason in _TRANSIENT_REASONS,
        ) from None
    if 300 <= reply.status < 400:
        raise _token_error(
            f"The token endpoint {url} redirects, but credentials are not sent to another address.",
            "redirected",
            "Set token_url to the address that it redirects to.",
        )
    try:  # regardless of the content type
        parsed = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        parsed = None
    answer: dict[str, Any] | None = parsed if isinstance(parsed, dict) else None
    if reply.status != 200:
        raise _rejection_error(settings, reply, answer, url)
    if answer is None:
        raise _format_error(reply, url)
    token, kind = answer.get("access_token"), answer.get("token_type", "Bearer")
    if not isinstance(token, str) or not token:
        raise _token_error(
            f"The response of {url} has no access_token.",
            "no_access_token",
            "Check that token_url is the token endpoint.",
        )
    if len(token) > limits.TOKEN_CHARS or not _TOKEN.fullmatch(token):
        raise _token_error(
            f"The access_token of {url} cannot be sent in a header.",
            "no_access_token",
            "Contact its owner.",
        )
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise _token_error(
            f"The tokens of {url} are not bearer tokens.",
            "wrong_token_type",
            "Only bearer tokens can be sent.",
        )
    return token, _lifetime(answer.get("expires_in"))


def _request(settings: ClientCredentials) -> requests.Request:
    """Return the token request (RFC 6749, 4.4.2 and 2.3.1)."""
    form = {"grant_type": "client_credentials"}
    headers = {"Accept": "application/json"}
    if settings.client_auth == "post":
        form |= {"client_id": settings.client_id, "client_secret": settings.client_secret}
    else:
        pair = f"{quote_plus(settings.client_id)}:{quote_plus(settings.client_secret)}"
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    if settings.scope:
        form["scope"] = settings.scope
    return requests.Request("POST", settings.token_url, data=form, headers=headers)


def _token_error(
    message: str, reason: str, hint: str, transient: bool = False, **details: Any
) -> ConnectorError:
    return ConnectorError(
        message, code="token_request_failed", reason=reason, hint=hint, transient=transient, details=details
    )


def _rejection_error(
    settings: ClientCredentials, reply: Reply, answer: dict[str, Any] | None, url: str
) -> ConnectorError:
    """Return the error for a response without a token, by the error code of RFC 6749, 5.2."""
    error_code, description = (
        str((answer or {}).get("error", "")),
        (answer or {}).get("error_description", ""),
    )
    error_code = error_code if _ERROR_CODE.fullmatch(error_code) else ""
    if error_code == "invalid_client" or (reply.status == 401 and not error_code):
        message = "The token endpoint rejected the client credentials (invalid_client)."
        reason, hint = "invalid_client", (
            f"Check client_id and client_secret directly with {url}, and that it accepts "
            f"application/x-www-form-urlencoded. client_auth is {settings.client_auth}: some servers require "
            f"{'basic' if settings.client_auth == 'post' else 'post'}."
        )  # fmt: skip
    elif error_code == "invalid_scope":
        message, reason = "The token endpoint rejected this scope.", error_code
        hint = "Some identity providers require a scope of the form <resource>/.default."
    else:
        message = (
            f"The token endpoint {url} returned {reply.status}{f' ({error_code})' if error_code else ''}."
        )
        reason, hint = error_code or "failed", "Check token_url, and try the same request manually."
    if isinstance(description, str) and description:
        pair = f"{quote_plus(settings.client_id)}:{quote_plus(settings.client_secret)}"
        secrets = [*settings.secrets(), base64.b64encode(pair.encode()).decode()]
        text = redact(description, secrets)[: limits.PUSH_KEY_CHARS]
        message += f" Its message: {''.join(sign if sign.isprintable() else ' ' for sign in text)}"
    transient = reply.status == 429 or reply.status >= 500
    return _token_error(message, reason, hint, transient, status=reply.status)


def _format_error(reply: Reply, url: str) -> ConnectorError:
    kind = reply.headers.get("Content-Type", "").partition(";")[0].strip()
    kind = kind if re.fullmatch(r"[\w.+-]{1,40}/[\w.+-]{1,60}", kind) else "something else"
    if kind == "text/html" or reply.body.lstrip()[:1] == b"<":
        return _token_error(
            f"The token endpoint {url} returned a web page.",
            "wrong_content_type",
            "This looks like a sign-in page. Set token_url to the endpoint for programs.",
        )
    return _token_error(
        f"The token endpoint {url} returned {kind}, not a JSON object.",
        "wrong_content_type",
        "Check token_url: a token endpoint returns application/json.",
    )


def _lifetime(expires_in: Any) -> float:
    """Return for how many seconds a token is cached: 60 s less than its lifetime, or 0 if that is shorter.

    Some providers send the number as a string.
    """
    try:
        seconds = float(expires_in) if not isinstance(expires_in, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not math.isfinite(seconds) or seconds < 0:
        seconds = limits.TOKEN_DEFAULT_SECONDS
    return max(min(seconds, limits.TOKEN_MAX_SECONDS) - limits.TOKEN_EARLY_SECONDS, 0.0)

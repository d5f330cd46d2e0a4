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
from webapp.connectors.redaction import without
from webapp.net.session import NetError, Reply, Session, exchange
from webapp.net.urls import shown

if TYPE_CHECKING:
    from webapp.connectors.http.authentication import ClientCredentials

_TICK: Final = (
    0.1  # seconds between checks whether the session was stopped, while waiting for another thread's token
)
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_TOKEN: Final = re.compile(r"[!-~]+")
_PASSING: Final = frozenset({"timeout", "reset", "refused", "unreachable", "unresolved", "bad_response"})


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

    def fetching(self, key: str, wait: Callable[[], None]) -> AbstractContextManager[None]:
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
    def fetching(self, key: str, wait: Callable[[], None]) -> Iterator[None]:
        """See `TokenStore.fetching`."""
        yield


@dataclass(slots=True)
class _Entry:
    """The token of one set of credentials. The thread that fetches it holds `lock`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    token: str = ""
    until: float = 0.0  # time.monotonic; the token is used before
    accepted: bool = True  # a target accepted this token, or the previous one
    refused_at: float = -math.inf  # when a target rejected a fresh token after it had rejected another one
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

    def texts(self) -> list[str]:
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
    def drop(self) -> bool:
        """Drop the credentials of this thread's request after a 401. Returns False if no new ones can be
        fetched."""

    @abstractmethod
    def accepted(self) -> None:
        """Record that a response other than 401 was received."""

    @abstractmethod
    def fetched(self) -> list[str]:
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
        self._mine = (
            threading.local()
        )  # threads share this object, and each drops the token that it sent itself

    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        self._mine.token = self.token()
        r.headers["Authorization"] = f"Bearer {self._mine.token}"
        return r

    def token(self) -> str:
        """Return a valid token.

        Threads that need one at the same time share one fetch and its error, and so do processes that share a
        store. Raises ConnectorError (code `token_request_failed`, or `target_not_allowed` if the address is
        blocked).
        """
        asked, since, entry = time.monotonic(), clock.epoch(), self._entry
        with self._held():
            if entry.token and time.monotonic() < entry.until:
                return entry.token
            if entry.failure is not None and entry.failed_at >= asked:
                raise entry.failure
            if self._store is None:
                return self._fetch()
            if self._take(self._store.load(self._key), since):
                return entry.token
            with self._store.fetching(self._key, self._wait):
                if self._take(self._store.load(self._key), since):
                    return entry.token
                return self._fetch()

    def stored(self) -> StoredToken:
        """Return a valid token with its expiry, or the failure to fetch one, for a child process."""
        try:
            token = self.token()
        except ConnectorError as error:
            return _failure(error)
        return StoredToken(token, clock.epoch() + max(self._entry.until - time.monotonic(), 0.0))

    def keep(self, stored: StoredToken | None) -> None:
        """Save the token that a child process returned. None means that the target rejected the last token."""
        with self._held():
            if stored is None or stored.token != self._entry.token:
                if self._store is not None and self._entry.token:
                    self._store.drop(self._key, self._entry.token)
                self._entry.token = ""
            if self._store is not None and stored is not None and stored.token:
                self._store.save(self._key, stored)

    def _take(self, stored: StoredToken | None, since: float) -> bool:
        """Use the token that another process fetched. Raises its error if that is not older than `since`."""
        if stored is None:
            return False
        if stored.failure is not None:
            if stored.failed_at >= since:
                raise ConnectorError(**stored.failure)
            return False
        lasts = stored.until - clock.epoch()
        if lasts <= 0:
            return False
        self._entry.token, self._entry.until = stored.token, time.monotonic() + lasts
        self._entry.failure = None
        return True

    def _fetch(self) -> str:
        entry, store = self._entry, self._store
        try:
            entry.token, lasts = _fetched(self._settings, self._session)
        except ConnectorError as error:
            if not self._session.stopped:  # a stopped session says nothing about the token endpoint
                entry.failure, entry.failed_at = error, time.monotonic()
                if store is not None:
                    store.save(self._key, _failure(error))
            raise
        entry.until, entry.failure = time.monotonic() + lasts, None
        if store is not None and lasts > 0:
            store.save(self._key, StoredToken(entry.token, clock.epoch() + lasts))
        return entry.token

    def _wait(self) -> None:
        """Wait for a moment. Raises NetError if the session was stopped."""
        if self._session.stopped:
            raise NetError("reset", "The request was stopped.")
        time.sleep(_TICK)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """The entry's lock, for which a session that is stopped does not wait."""
        while not self._entry.lock.acquire(timeout=_TICK):
            if self._session.stopped:
                raise NetError("reset", "The request was stopped.")
        try:
            yield
        finally:
            self._entry.lock.release()

    def drop(self) -> bool:
        """See `RenewableAuth.drop`. If a target rejects fresh tokens too, no new one is fetched for some
        seconds."""
        entry, mine = self._entry, getattr(self._mine, "token", "")
        with self._held():
            if entry.token != mine:
                return True  # another thread has already fetched a new one
            now = time.monotonic()
            if now - entry.refused_at < limits.TOKEN_REFUSED_SECONDS:
                return False
            if not entry.accepted:
                entry.refused_at, entry.accepted = now, True
                return False
            if self._store is not None:
                self._store.drop(self._key, entry.token)
            entry.token, entry.accepted = "", False
            return True

    def accepted(self) -> None:
        """See `RenewableAuth.accepted`."""
        self._entry.accepted, self._entry.refused_at = True, -math.inf

    def fetched(self) -> list[str]:
        """See `RenewableAuth.fetched`."""
        return [one for one in {self._entry.token, getattr(self._mine, "token", "")} if one]


def _failure(error: ConnectorError) -> StoredToken:
    return StoredToken(failed_at=clock.epoch(), failure=error.to_json())


def _fetched(settings: ClientCredentials, session: Session) -> tuple[str, float]:
    """Fetch a new token. Returns it with the number of seconds for which it may be cached."""
    where = shown(settings.token_url)
    try:
        with session.beside() as own:
            seconds, most = limits.TOKEN_SECONDS, limits.TOKEN_BYTES
            reply = exchange(own, _request(settings), timeout_seconds=seconds, max_bytes=most, follow=False)
    except NetError as error:
        if error.reason in ("not_allowed", "secret_host"):
            raise ConnectorError(error.message, code="target_not_allowed", reason=error.reason) from None
        raise _failed(
            f"The token request failed: {error.message}",
            error.reason,
            "Check token_url and the network route to it.",
            error.reason in _PASSING,
        ) from None
    if 300 <= reply.status < 400:
        raise _failed(
            f"The token endpoint {where} redirects, but credentials are not sent to another address.",
            "redirected",
            "Set token_url to the address that it redirects to.",
        )
    try:  # regardless of the content type
        found = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        found = None
    answer: dict[str, Any] | None = found if isinstance(found, dict) else None
    if reply.status != 200:
        raise _refused(settings, reply, answer, where)
    if answer is None:
        raise _unreadable(reply, where)
    token, kind = answer.get("access_token"), answer.get("token_type", "Bearer")
    if not isinstance(token, str) or not token:
        raise _failed(
            f"The response of {where} has no access_token.",
            "no_access_token",
            "Check that token_url is the token endpoint.",
        )
    if len(token) > limits.TOKEN_CHARS or not _TOKEN.fullmatch(token):
        raise _failed(
            f"The access_token of {where} cannot be sent in a header.",
            "no_access_token",
            "Contact its owner.",
        )
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise _failed(
            f"The tokens of {where} are not bearer tokens.",
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


def _failed(message: str, reason: str, hint: str, transient: bool = False, **details: Any) -> ConnectorError:
    return ConnectorError(
        message, code="token_request_failed", reason=reason, hint=hint, transient=transient, details=details
    )


def _refused(
    settings: ClientCredentials, reply: Reply, answer: dict[str, Any] | None, where: str
) -> ConnectorError:
    """Return the error for a response without a token, by the error code of RFC 6749, 5.2."""
    word, said = str((answer or {}).get("error", "")), (answer or {}).get("error_description", "")
    word = word if _WORD.fullmatch(word) else ""
    if word == "invalid_client" or (reply.status == 401 and not word):
        message = "The token endpoint rejected the client credentials (invalid_client)."
        reason, hint = "invalid_client", (
            f"Check client_id and client_secret directly with {where}, and that it accepts "
            f"application/x-www-form-urlencoded. client_auth is {settings.client_auth}: some servers require "
            f"{'basic' if settings.client_auth == 'post' else 'post'}."
        )  # fmt: skip
    elif word == "invalid_scope":
        message, reason = "The token endpoint rejected this scope.", word
        hint = "Some identity providers require a scope of the form <resource>/.default."
    else:
        message = f"The token endpoint {where} returned {reply.status}{f' ({word})' if word else ''}."
        reason, hint = word or "failed", "Check token_url, and try the same request manually."
    if isinstance(said, str) and said:
        pair = f"{quote_plus(settings.client_id)}:{quote_plus(settings.client_secret)}"
        secrets = [*settings.secrets(), base64.b64encode(pair.encode()).decode()]
        kept = without(said, secrets)[: limits.PUSH_KEY_CHARS]
        message += f" Its message: {''.join(sign if sign.isprintable() else ' ' for sign in kept)}"
    passing = reply.status == 429 or reply.status >= 500
    return _failed(message, reason, hint, passing, status=reply.status)


def _unreadable(reply: Reply, where: str) -> ConnectorError:
    kind = reply.headers.get("Content-Type", "").partition(";")[0].strip()
    kind = kind if re.fullmatch(r"[\w.+-]{1,40}/[\w.+-]{1,60}", kind) else "something else"
    if kind == "text/html" or reply.body.lstrip()[:1] == b"<":
        return _failed(
            f"The token endpoint {where} returned a web page.",
            "wrong_content_type",
            "This looks like a sign-in page. Set token_url to the endpoint for programs.",
        )
    return _failed(
        f"The token endpoint {where} returned {kind}, not a JSON object.",
        "wrong_content_type",
        "Check token_url: a token endpoint returns application/json.",
    )


def _lifetime(expires_in: Any) -> float:
    """Return for how many seconds a token is cached: 60 s less than its lifetime, or 0 if that is shorter.

    Some providers send the number as a string.
    """
    try:
        lasts = float(expires_in) if not isinstance(expires_in, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        lasts = math.nan
    if not math.isfinite(lasts) or lasts < 0:
        lasts = limits.TOKEN_DEFAULT_SECONDS
    return max(min(lasts, limits.TOKEN_MOST_SECONDS) - limits.TOKEN_EARLY_SECONDS, 0.0)

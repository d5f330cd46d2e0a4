"""Read values from an API with parallel GET requests, within one time limit.

A response about its own path (not found, or not JSON) can count as a result. A response about the connection
(credentials, rate limit, server errors) never does, because results are cached and used again.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import orjson
import requests
from requests.auth import AuthBase

from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.http.authentication import send_authenticated
from webapp.connectors.http.channel import RowOutcome
from webapp.connectors.http.parallel import SenderThreads
from webapp.connectors.http.retry import RequestOutcome
from webapp.connectors.http.verification import from_net_error
from webapp.connectors.rest.sending import DOTS, over, url_of
from webapp.net.session import Reply, Session

if TYPE_CHECKING:
    from webapp.connectors.odata.connector import OdataConnector
    from webapp.connectors.rest.connector import RestConnector

_OF_THE_CONNECTION: Final = frozenset({401, 403, 407, 408, 429})
_BOM: Final = b"\xef\xbb\xbf"
_TYPE: Final = re.compile(r"[\w.+-]{1,40}/[\w.+-]{1,60}")
_TOLD: Final = {
    401: ("forbidden", "The target does not accept the credentials.", "Check the authentication of the connection."),
    403: ("forbidden", "The credentials are not allowed to read this.", "Use other credentials, or another path."),
    404: ("not_found", "Nothing was found at this path.", "Check the path against the base URL of the connection."),
    410: ("not_found", "The resource at this path no longer exists.", "Check the path against the base URL."),
    429: (
        "throttled",
        "The target currently accepts no more requests.",
        "Reduce rate_per_second or parallel of the connection, or request fewer rows.",
    ),
}  # fmt: skip
_OF_5XX: Final = ("unavailable", "The target has a problem.", "Check its log, or try again later.")
_OF_OTHERS: Final = ("rejected", "The target rejected the request.", "Try the same path manually.")
_WITHOUT: Final = " With on_error: blank or default, rows are generated without it."


@dataclass(frozen=True, slots=True)
class FetchedBody:
    """The result for one path."""

    body: str | None
    """JSON text; None for an empty response (204, or an empty body)."""
    trouble: str = ""
    """Why the response contains no value, such as `404 Not Found`; empty if it does."""


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """How paths are fetched."""

    until: float
    """The deadline for all paths, as `time.monotonic()`."""
    bears: bool = False
    """Whether a response without a value is stored as `FetchResult.trouble`; otherwise it is an error."""
    quiet: str | None = None
    """The name of all paths in messages, if their values and responses must not be shown."""


@dataclass(slots=True)
class Fetched:
    """Results by path. With an error, some may be missing."""

    found: dict[str, FetchedBody] = field(default_factory=dict)
    error: ConnectorError | None = None


@runtime_checkable
class FetchChannel(Protocol):
    """A channel that values can be fetched from (`Capabilities.fetch`)."""

    def fetch(self, paths: Sequence[str], manner: FetchOptions) -> Fetched:
        """Fetch each path, relative to the connection's URL, with its authentication, headers, retries and
        parallelism.

        Stops at the first error. Raises nothing that concerns the target.
        """


class Fetching:
    """Fetches paths over one connection. Created for one call."""

    def __init__(
        self,
        connector: RestConnector | OdataConnector,
        session: Session,
        auth: AuthBase,
        manner: FetchOptions,
        base: str,
    ) -> None:
        self._settings, self._redact, self._base = connector.settings, connector.redact, base
        self._session, self._auth, self._manner = session, auth, manner
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._bytes = 0
        self._found: dict[str, FetchedBody] = {}
        self._errors: dict[int, ConnectorError] = {}

    def all(self, paths: Sequence[str]) -> Fetched:
        """See `FetchChannel.fetch`."""
        settings = self._settings
        lanes = SenderThreads(self, settings.retry, settings.parallel, settings.rate_per_second)

        def one(place: int) -> RowOutcome:
            try:
                got = self._got(paths[place], lanes)
                with self._lock:
                    self._bytes += len(got.body or "")
                    if self._bytes > limits.FETCHED_JSON_BYTES:
                        raise too_large()
            except ConnectorError as error:
                self._errors[place] = error
                self._over.set()
                return RowOutcome(place, "failed")
            self._found[paths[place]] = got
            return RowOutcome(place, "delivered")

        try:
            lanes.run(len(paths), one, stop_at_failure=True)
        finally:
            lanes.close()
        error = self._errors[min(self._errors)] if self._errors else None
        if error is None and len(self._found) < len(paths):
            error = _late()
        return Fetched(self._found, error)

    # --- `SendControl`

    def raise_if_stopped(self) -> None:
        """See `SendControl.raise_if_stopped`."""
        if self._over.is_set() or self._session.stopped or time.monotonic() >= self._manner.until:
            raise _late()

    def wait(self, seconds: float) -> None:
        """See `SendControl.wait`."""
        if seconds >= self._manner.until - time.monotonic() or self._over.wait(seconds):
            raise _late()

    # --- Single paths

    def _got(self, path: str, lanes: SenderThreads) -> FetchedBody:
        if not DOTS.isdisjoint(path.partition("?")[0].split("/")):
            message = f"The path {self._shown(path)} contains `.` or `..` as a part."
            raise ConnectorError(message, reason="bad_path", hint="Remove . and .. from the values in it.")
        tried, _ = lanes.attempt(lambda: self._sent(path))
        if tried.reply is None:
            raise self._unanswered(tried)
        reply = tried.reply
        if reply.truncated:
            message = (
                f"The response to {self._shown(path)} is larger than {limits.HTTP_ANSWER_BYTES:,} bytes."
            )
            raise ConnectorError(message, reason="too_large", hint="Choose a path that returns less.")
        if not 200 <= reply.status < 300:
            status = f"{reply.status} {self._redact(reply.reason)[:50]}".rstrip()
            of_the_path = 400 <= reply.status < 500 and reply.status not in _OF_THE_CONNECTION
            if of_the_path and self._manner.bears:
                return FetchedBody(None, status)
            reason, meaning, hint = _TOLD.get(reply.status) or (
                _OF_5XX if reply.status >= 500 else _OF_OTHERS
            )
            raise ConnectorError(
                f"{self._shown(path)} returned {status}. {meaning}{self._saying(reply)}",
                reason=reason,
                hint=hint + (_WITHOUT if of_the_path else ""),
                details={"status": reply.status, "attempts": tried.attempts},
            )
        raw = reply.body.removeprefix(_BOM).strip()
        if not raw:
            return FetchedBody(None)
        try:
            orjson.loads(raw)
        except orjson.JSONDecodeError:
            kind = reply.headers.get("Content-Type", "").partition(";")[0].strip()
            kind = kind if _TYPE.fullmatch(kind) else "unknown"
            trouble = f"{reply.status}, and the response is not JSON ({kind})"
            if self._manner.bears:
                return FetchedBody(None, trouble)
            raise ConnectorError(
                f"{self._shown(path)} returned {trouble}.{self._saying(reply)}",
                reason="not_json",
                hint=f"This may be a web page or a sign-in form. Check the base URL and the path.{_WITHOUT}",
                details={"status": reply.status},
            ) from None
        return FetchedBody(raw.decode())

    def _sent(self, path: str) -> Reply:
        settings, left = self._settings, self._manner.until - time.monotonic()
        headers = over({"Accept": "application/json"}, settings.default_headers)
        request = requests.Request("GET", url_of(self._base, path), headers=headers, auth=self._auth)
        seconds = max(min(settings.retry.timeout_seconds, left), 0.001)
        return send_authenticated(
            self._session, request, timeout_seconds=seconds, max_bytes=limits.HTTP_ANSWER_BYTES
        )

    # --- Messages

    def _shown(self, path: str) -> str:
        said = self._redact(path) if self._manner.quiet is None else self._manner.quiet
        return f"GET {said[: limits.FETCHED_SAID_CHARS]}"

    def _saying(self, reply: Reply) -> str:
        """Return the beginning of a body; "" if it must not be shown."""
        if self._manner.quiet is not None:
            return ""
        text = self._redact(" ".join(reply.body[: limits.HTTP_BODY_CHARS].decode("utf-8", "replace").split()))
        text = "".join(sign if sign.isprintable() else " " for sign in text)[: limits.FETCHED_SAID_CHARS]
        return f" Its message: {text}" if text else ""

    def _unanswered(self, tried: RequestOutcome) -> ConnectorError:
        assert tried.error is not None
        if self._session.stopped or time.monotonic() >= self._manner.until:
            return _late()
        error = from_net_error(tried.error)
        # The message about a blocked address names only the host.
        if self._manner.quiet is not None and error.reason not in ("not_allowed", "secret_host"):
            error.message = f"{self._shown('')} got no response ({error.reason})."
        error.message = self._redact(error.message)
        error.args = (error.message,)
        error.details = {**error.details, "attempts": tried.attempts}
        return error


def too_large() -> ConnectorError:
    """Return the error for results that are too large to keep in memory."""
    message = f"The responses are larger than {limits.FETCHED_JSON_BYTES // limits.MB} MB in total."
    return ConnectorError(
        message, reason="too_large", hint="Request fewer rows, or choose a path that returns less."
    )


def _late() -> ConnectorError:
    message = f"Fetching took longer than {limits.FETCH_SECONDS:g} s."
    hint = "Request fewer rows, or increase parallel in the connection."
    return ConnectorError(message, code="target_timeout", reason="timeout", hint=hint)

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
from webapp.connectors.rest.sending import DOTS, join_url, merge_headers
from webapp.net.session import Reply, Session

if TYPE_CHECKING:
    from webapp.connectors.odata.connector import OdataConnector
    from webapp.connectors.rest.connector import RestConnector

_CONNECTION_STATUSES: Final = frozenset({401, 403, 407, 408, 429})
_BOM: Final = b"\xef\xbb\xbf"
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]{1,40}/[\w.+-]{1,60}")
_STATUS_ERRORS: Final = {
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
_SERVER_ERROR: Final = ("unavailable", "The target has a problem.", "Check its log, or try again later.")
_OTHER_ERROR: Final = ("rejected", "The target rejected the request.", "Try the same path manually.")
_ON_ERROR_HINT: Final = " With on_error: blank or default, rows are generated without it."


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

    deadline: float
    """The deadline for all paths, as `time.monotonic()`."""
    records_failures: bool = False
    """Whether a response without a value is stored as `FetchedBody.trouble`; otherwise it is an error."""
    quiet: str | None = None
    """The name of all paths in messages, if their values and responses must not be shown."""


@dataclass(slots=True)
class Fetched:
    """Results by path. With an error, some may be missing."""

    bodies: dict[str, FetchedBody] = field(default_factory=dict)
    error: ConnectorError | None = None


@runtime_checkable
class FetchChannel(Protocol):
    """A channel that values can be fetched from (`Capabilities.fetch`)."""

    def fetch(self, paths: Sequence[str], options: FetchOptions) -> Fetched:
        """Fetch each path, relative to the connection's URL, with its authentication, headers, retries and
        parallelism.

        Stops at the first error. Raises nothing that concerns the target.
        """


class Fetcher:
    """Fetches paths over one connection. Created for one call."""

    def __init__(
        self,
        connector: RestConnector | OdataConnector,
        session: Session,
        auth: AuthBase,
        options: FetchOptions,
        base: str,
    ) -> None:
        self._settings, self._redact, self._base = connector.settings, connector.redact, base
        self._session, self._auth, self._options = session, auth, options
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._bytes = 0
        self._bodies: dict[str, FetchedBody] = {}
        self._errors: dict[int, ConnectorError] = {}

    def fetch_all(self, paths: Sequence[str]) -> Fetched:
        """See `FetchChannel.fetch`."""
        settings = self._settings
        threads = SenderThreads(self, settings.retry, settings.parallel, settings.rate_per_second)

        def one(index: int) -> RowOutcome:
            try:
                fetched = self._fetch(paths[index], threads)
                with self._lock:
                    self._bytes += len(fetched.body or "")
                    if self._bytes > limits.FETCHED_JSON_BYTES:
                        raise too_large_error()
            except ConnectorError as error:
                self._errors[index] = error
                self._stopped.set()
                return RowOutcome(index, "failed")
            self._bodies[paths[index]] = fetched
            return RowOutcome(index, "delivered")

        try:
            threads.run(len(paths), one, stop_at_failure=True)
        finally:
            threads.close()
        error = self._errors[min(self._errors)] if self._errors else None
        if error is None and len(self._bodies) < len(paths):
            error = _timeout_error()
        return Fetched(self._bodies, error)

    # --- `SendControl`

    def raise_if_stopped(self) -> None:
        """See `SendControl.raise_if_stopped`."""
        if self._stopped.is_set() or self._session.stopped or time.monotonic() >= self._options.deadline:
            raise _timeout_error()

    def wait(self, seconds: float) -> None:
        """See `SendControl.wait`."""
        if seconds >= self._options.deadline - time.monotonic() or self._stopped.wait(seconds):
            raise _timeout_error()

    # --- Single paths

    def _fetch(self, path: str, threads: SenderThreads) -> FetchedBody:
        if not DOTS.isdisjoint(path.partition("?")[0].split("/")):
            message = f"The path {self._label(path)} contains `.` or `..` as a part."
            raise ConnectorError(message, reason="bad_path", hint="Remove . and .. from the values in it.")
        outcome, _ = threads.attempt(lambda: self._send(path))
        if outcome.reply is None:
            raise self._network_error(outcome)
        reply = outcome.reply
        if reply.truncated:
            message = (
                f"The response to {self._label(path)} is larger than {limits.HTTP_RESPONSE_BYTES:,} bytes."
            )
            raise ConnectorError(message, reason="too_large", hint="Choose a path that returns less.")
        if not 200 <= reply.status < 300:
            status = f"{reply.status} {self._redact(reply.reason)[:50]}".rstrip()
            is_about_path = 400 <= reply.status < 500 and reply.status not in _CONNECTION_STATUSES
            if is_about_path and self._options.records_failures:
                return FetchedBody(None, status)
            reason, meaning, hint = _STATUS_ERRORS.get(reply.status) or (
                _SERVER_ERROR if reply.status >= 500 else _OTHER_ERROR
            )
            raise ConnectorError(
                f"{self._label(path)} returned {status}. {meaning}{self._error_message(reply)}",
                reason=reason,
                hint=hint + (_ON_ERROR_HINT if is_about_path else ""),
                details={"status": reply.status, "attempts": outcome.attempts},
            )
        raw = reply.body.removeprefix(_BOM).strip()
        if not raw:
            return FetchedBody(None)
        try:
            orjson.loads(raw)
        except orjson.JSONDecodeError:
            kind = reply.headers.get("Content-Type", "").partition(";")[0].strip()
            kind = kind if _MEDIA_TYPE.fullmatch(kind) else "unknown"
            trouble = f"{reply.status}, and the response is not JSON ({kind})"
            if self._options.records_failures:
                return FetchedBody(None, trouble)
            raise ConnectorError(
                f"{self._label(path)} returned {trouble}.{self._error_message(reply)}",
                reason="not_json",
                hint=f"This may be a web page or a sign-in form. Check the base URL and the path.{_ON_ERROR_HINT}",
                details={"status": reply.status},
            ) from None
        return FetchedBody(raw.decode())

    def _send(self, path: str) -> Reply:
        settings, remaining = self._settings, self._options.deadline - time.monotonic()
        headers = merge_headers({"Accept": "application/json"}, settings.default_headers)
        request = requests.Request("GET", join_url(self._base, path), headers=headers, auth=self._auth)
        seconds = max(min(settings.retry.timeout_seconds, remaining), 0.001)
        return send_authenticated(
            self._session, request, timeout_seconds=seconds, max_bytes=limits.HTTP_RESPONSE_BYTES
        )

    # --- Messages

    def _label(self, path: str) -> str:
        text = self._redact(path) if self._options.quiet is None else self._options.quiet
        return f"GET {text[: limits.FETCHED_MESSAGE_CHARS]}"

    def _error_message(self, reply: Reply) -> str:
        """Return the beginning of a body; "" if it must not be shown."""
        if self._options.quiet is not None:
            return ""
        text = self._redact(" ".join(reply.body[: limits.HTTP_BODY_CHARS].decode("utf-8", "replace").split()))
        text = "".join(char if char.isprintable() else " " for char in text)[: limits.FETCHED_MESSAGE_CHARS]
        return f" Its message: {text}" if text else ""

    def _network_error(self, outcome: RequestOutcome) -> ConnectorError:
        assert outcome.error is not None
        if self._session.stopped or time.monotonic() >= self._options.deadline:
            return _timeout_error()
        error = from_net_error(outcome.error)
        # The message about a blocked address names only the host.
        if self._options.quiet is not None and error.reason not in ("not_allowed", "secret_host"):
            error.message = f"{self._label('')} got no response ({error.reason})."
        error.message = self._redact(error.message)
        error.args = (error.message,)
        error.details = {**error.details, "attempts": outcome.attempts}
        return error


def too_large_error() -> ConnectorError:
    """Return the error for results that are too large to keep in memory."""
    message = f"The responses are larger than {limits.FETCHED_JSON_BYTES // limits.MB} MB in total."
    return ConnectorError(
        message, reason="too_large", hint="Request fewer rows, or choose a path that returns less."
    )


def _timeout_error() -> ConnectorError:
    message = f"Fetching took longer than {limits.FETCH_SECONDS:g} s."
    hint = "Request fewer rows, or increase parallel in the connection."
    return ConnectorError(message, code="target_timeout", reason="timeout", hint=hint)

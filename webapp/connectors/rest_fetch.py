"""Reading values from an API: GET by GET, several at once, all within one time limit.

What an answer says about its own path (nothing there, or no JSON) may stand as an answer; what it says about the
connection (credentials, too many requests, trouble in the target) never does: it would be kept and used again.
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
from webapp.connectors.channel import Ended
from webapp.connectors.http_auth import authorised
from webapp.connectors.http_stages import of_net
from webapp.connectors.parallel import Lanes
from webapp.connectors.rest_sending import DOTS, over, url_of
from webapp.connectors.retry import Ended as Tried
from webapp.net.session import Reply, Session

if TYPE_CHECKING:
    from webapp.connectors.odata import OdataConnector
    from webapp.connectors.rest import RestConnector

_OF_THE_CONNECTION: Final = frozenset({401, 403, 407, 408, 429})
_BOM: Final = b"\xef\xbb\xbf"
_TYPE: Final = re.compile(r"[\w.+-]{1,40}/[\w.+-]{1,60}")
_TOLD: Final = {
    401: ("forbidden", "It does not accept the credentials.", "Verify the connection, and check its authentication."),
    403: ("forbidden", "The credentials may not read this.", "Use credentials that may, or another path."),
    404: ("not_found", "There is nothing at this path.", "Check the path against the base URL of the connection."),
    410: ("not_found", "What was at this path is gone.", "Check the path against the base URL of the connection."),
    429: (
        "throttled",
        "It takes no more requests for now.",
        "Set rate_per_second or parallel of the connection lower, or ask for fewer rows.",
    ),
}  # fmt: skip
_OF_5XX: Final = ("unavailable", "The target is in trouble.", "Look at its log, or try again later.")
_OF_OTHERS: Final = ("rejected", "It does not take this request.", "Try the same path by hand.")
_WITHOUT: Final = " With on_error: blank, or default, the rows go on without it."


@dataclass(frozen=True, slots=True)
class Got:
    """What was answered at one path."""

    body: str | None
    """JSON text; None where nothing was said (204, or an empty body)."""
    trouble: str = ""
    """Why the answer holds no value, such as `404 Not Found`; empty where it does."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How paths are asked for."""

    until: float
    """`time.monotonic()`: no longer than that in all."""
    bears: bool = False
    """An answer without a value stands as `Got.trouble`, else it is an error."""
    quiet: str | None = None
    """What messages call every path, without the values in it, where those or the answer may not be shown."""


@dataclass(slots=True)
class Fetched:
    """What came of some paths. With an error some of them may be missing."""

    found: dict[str, Got] = field(default_factory=dict)
    error: ConnectorError | None = None


@runtime_checkable
class Fetches(Protocol):
    """A channel that values can be read from (`Capabilities.fetch`)."""

    def fetch(self, paths: Sequence[str], manner: Manner) -> Fetched:
        """GET each path, resolved against the connection's own URL, with its authentication, headers and retries, as
        many at once as it allows; the first error ends it. Raises nothing that concerns the target."""


class Fetching:
    """Paths of one connection being read. Made for one call."""

    def __init__(
        self,
        connector: RestConnector | OdataConnector,
        session: Session,
        auth: AuthBase,
        manner: Manner,
        base: str,
    ) -> None:
        self._settings, self._hush, self._base = connector.settings, connector.hush, base
        self._session, self._auth, self._manner = session, auth, manner
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._bytes = 0
        self._found: dict[str, Got] = {}
        self._errors: dict[int, ConnectorError] = {}

    def all(self, paths: Sequence[str]) -> Fetched:
        """See `Fetches.fetch`."""
        settings = self._settings
        lanes = Lanes(self, settings.retry, settings.parallel, settings.rate_per_second)
        try:
            lanes.run(len(paths), lambda place: self._one(lanes, place, paths[place]), stop_at_failure=True)
        finally:
            lanes.close()
        error = self._errors[min(self._errors)] if self._errors else None
        if error is None and len(self._found) < len(paths):
            error = _late()
        return Fetched(self._found, error)

    # --- `Hand`

    def may_go(self) -> None:
        """See `Hand.may_go`."""
        if self._over.is_set() or self._session.stopped or time.monotonic() >= self._manner.until:
            raise _late()

    def wait(self, seconds: float) -> None:
        """See `Hand.wait`."""
        if seconds >= self._manner.until - time.monotonic() or self._over.wait(seconds):
            raise _late()

    # --- One path

    def _one(self, lanes: Lanes, place: int, path: str) -> Ended:
        try:
            got = self._got(path, lanes)
            self._count(got)
        except ConnectorError as error:
            self._errors[place] = error
            self._over.set()
            return Ended(place, "failed")
        self._found[path] = got
        return Ended(place, "delivered")

    def _got(self, path: str, lanes: Lanes) -> Got:
        if not DOTS.isdisjoint(path.partition("?")[0].split("/")):
            told = f"The path {self._shown(path)} leads upwards."
            raise ConnectorError(
                told, reason="bad_path", hint="Keep . and .. out of the values that stand in it."
            )
        tried, _ = lanes.attempt(lambda: self._sent(path))
        if tried.reply is None:
            raise self._unanswered(tried)
        reply = tried.reply
        if reply.truncated:
            told = f"The answer to {self._shown(path)} is larger than {limits.HTTP_ANSWER_BYTES:,} bytes."
            raise ConnectorError(told, reason="too_large", hint="Choose a path that answers less.")
        if not 200 <= reply.status < 300:
            return self._refused(path, reply, tried.attempts)
        raw = reply.body.removeprefix(_BOM).strip()
        if not raw:
            return Got(None)
        try:
            orjson.loads(raw)
        except orjson.JSONDecodeError:
            return self._unreadable(path, reply)
        return Got(raw.decode())

    def _sent(self, path: str) -> Reply:
        settings, left = self._settings, self._manner.until - time.monotonic()
        headers = over({"Accept": "application/json"}, settings.default_headers)
        request = requests.Request("GET", url_of(self._base, path), headers=headers, auth=self._auth)
        seconds = max(min(settings.retry.timeout_seconds, left), 0.001)
        return authorised(self._session, request, timeout_seconds=seconds, max_bytes=limits.HTTP_ANSWER_BYTES)

    def _count(self, got: Got) -> None:
        with self._lock:
            self._bytes += len(got.body or "")
            if self._bytes > limits.FETCHED_JSON_BYTES:
                raise too_large()

    # --- What is told

    def _shown(self, path: str) -> str:
        said = self._hush(path) if self._manner.quiet is None else self._manner.quiet
        return f"GET {said[: limits.FETCHED_SAID_CHARS]}"

    def _saying(self, reply: Reply) -> str:
        """The beginning of a body; nothing where it may not be shown."""
        if self._manner.quiet is not None:
            return ""
        text = self._hush(" ".join(reply.body[: limits.HTTP_BODY_CHARS].decode("utf-8", "replace").split()))
        text = "".join(sign if sign.isprintable() else " " for sign in text)[: limits.FETCHED_SAID_CHARS]
        return f" It says: {text}" if text else ""

    def _unanswered(self, tried: Tried) -> ConnectorError:
        assert tried.error is not None
        if self._session.stopped or time.monotonic() >= self._manner.until:
            return _late()
        error = of_net(tried.error)
        # That of a closed address names the host alone.
        if self._manner.quiet is not None and error.reason not in ("not_allowed", "secret_host"):
            error.message = f"{self._shown('')} was not answered ({error.reason})."
        error.message = self._hush(error.message)
        error.args = (error.message,)
        error.details = {**error.details, "attempts": tried.attempts}
        return error

    def _refused(self, path: str, reply: Reply, attempts: int) -> Got:
        status = f"{reply.status} {self._hush(reply.reason)[:50]}".rstrip()
        of_the_path = 400 <= reply.status < 500 and reply.status not in _OF_THE_CONNECTION
        if of_the_path and self._manner.bears:
            return Got(None, status)
        reason, meaning, hint = _TOLD.get(reply.status) or (_OF_5XX if reply.status >= 500 else _OF_OTHERS)
        raise ConnectorError(
            f"{self._shown(path)} was answered {status}. {meaning}{self._saying(reply)}",
            reason=reason,
            hint=hint + (_WITHOUT if of_the_path else ""),
            details={"status": reply.status, "attempts": attempts},
        )

    def _unreadable(self, path: str, reply: Reply) -> Got:
        kind = reply.headers.get("Content-Type", "").partition(";")[0].strip()
        trouble = (
            f"{reply.status}, and the answer is not JSON ({kind if _TYPE.fullmatch(kind) else 'unknown'})"
        )
        if self._manner.bears:
            return Got(None, trouble)
        raise ConnectorError(
            f"{self._shown(path)} was answered {trouble}.{self._saying(reply)}",
            reason="not_json",
            hint=f"A web page, or a form to sign in? Check the base URL and the path.{_WITHOUT}",
            details={"status": reply.status},
        )


def too_large() -> ConnectorError:
    """The answers to one question are more than can be kept at hand."""
    told = f"The answers are larger than {limits.FETCHED_JSON_BYTES // limits.MB} MB together."
    return ConnectorError(
        told, reason="too_large", hint="Ask for fewer rows, or choose a path that answers less."
    )


def _late() -> ConnectorError:
    told = f"Fetching took longer than {limits.FETCH_SECONDS:g} s."
    hint = "Ask for fewer rows, or let more requests go at once: parallel, in the connection."
    return ConnectorError(told, code="target_timeout", reason="timeout", hint=hint)

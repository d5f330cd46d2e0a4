"""A single call: a request with its attempts, and the response or the exception."""

from __future__ import annotations

import http.client
import platform
import socket
import ssl
import time
import uuid
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final, Optional, TypeVar

from rowsmith._version import __version__
from rowsmith.error import BadAnswer, ConnectionFailed, ServiceError, Timeout, refusal
from rowsmith.record import Record
from rowsmith.wire.address import Address, not_configured, path_of, query_of
from rowsmith.wire.answer import Answer
from rowsmith.wire.bodies import Body, Json
from rowsmith.wire.connections import Connections, OpenConnection
from rowsmith.wire.retry import Retries

AGENT: Final = f"rowsmith-python/{__version__} python/{platform.python_version()}"
_SAFE_TWICE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})  # RFC 9110, 9.2.2
T = TypeVar("T")


class Caller:
    """Makes calls to one service with one credential. Threads may share it.

    `silent_seconds` limits each wait for the server, `total_seconds` a call with all its attempts.
    """

    def __init__(
        self,
        address: Address,
        headers: Mapping[str, str],
        *,
        retries: Retries,
        silent_seconds: float = 300.0,
        connect_seconds: float = 10.0,
        total_seconds: Optional[float] = None,
        ca_file: Optional[str] = None,
    ) -> None:
        self.address = address
        self.retries = retries
        self.silent_seconds = silent_seconds
        self.total_seconds = total_seconds
        self._headers = {"User-Agent": AGENT, "Accept-Encoding": "identity", **headers}
        for name, value in self._headers.items():
            if not (value.isascii() and value.isprintable()):
                raise not_configured(
                    f"The value of the header {name} contains characters that headers cannot contain."
                )
        self.connections = Connections(address, connect_seconds=connect_seconds, ca_file=ca_file)

    def json(self, method: str, path: str, **how: Any) -> Any:
        """Return the JSON of the response: a `Record` for an object, None for 204. See `open`."""
        return self._attempts(method, path, _read_json, **how)

    def text(self, method: str, path: str, **how: Any) -> str:
        """Return the text of the response. See `open`."""
        return self._attempts(method, path, lambda answer: answer.read().decode("utf-8", "replace"), **how)

    def open(self, method: str, path: str, **how: Any) -> Answer:
        """Return the response before its body is read.

        `parts` are inserted into the path, `query` is appended, `json` or `body` is sent with `headers`.
        `idempotency_key`: True creates one that is used for all attempts. `repeatable`: the request is safe
        to repeat, if its method does not imply that. Raises ServiceError for every 4xx and 5xx response.
        """
        return self._attempts(method, path, lambda answer: answer, **how)

    def _attempts(
        self,
        method: str,
        path: str,
        read: Callable[[Answer], T],
        *,
        parts: Optional[Mapping[str, object]] = None,
        query: Optional[Mapping[str, object]] = None,
        json: Any = None,
        body: Optional[Body] = None,
        headers: Optional[Mapping[str, str]] = None,
        idempotency_key: Any = None,
        repeatable: Optional[bool] = None,
        silent_seconds: Optional[float] = None,
        retries: Optional[Retries] = None,
    ) -> T:
        sent = {**self._headers, **(headers or {})}
        if idempotency_key:
            sent["Idempotency-Key"] = uuid.uuid4().hex if idempotency_key is True else str(idempotency_key)
        if repeatable is None:
            repeatable = method in _SAFE_TWICE or bool(idempotency_key)
        content = body if body is not None else None if json is None else Json(json)
        target = path_of(path, parts or {}) + query_of(query or {})
        limit = silent_seconds or self.silent_seconds
        try:
            return self._run_with_retries(
                lambda silent: read(self._send(method, target, sent, content, min(silent, limit))),
                retries or self.retries,
                repeatable,
            )
        finally:
            if content is not None:
                content.close()

    def _run_with_retries(self, act: Callable[[float], T], retries: Retries, repeatable: bool) -> T:
        """Return the result of `act`, with retries. `act` gets the number of remaining seconds."""
        started_at = time.monotonic()
        attempt = 0
        while True:
            left = (
                float("inf")
                if self.total_seconds is None
                else self.total_seconds - (time.monotonic() - started_at)
            )
            try:
                return act(max(0.001, left))
            except ServiceError as error:
                wait = retries.wait(attempt, error, repeatable)
                elapsed = time.monotonic() - started_at
                if wait is None or (self.total_seconds is not None and elapsed + wait > self.total_seconds):
                    raise
            retries.sleep(wait)
            attempt += 1

    def _send(
        self, method: str, target: str, headers: Mapping[str, str], body: Optional[Body], silent: float
    ) -> Answer:
        connection = self._connect(silent)
        try:
            response = self._exchange(connection, method, target, headers, body)
        except BaseException:
            connection.http.close()
            raise
        answer = Answer(response, lambda reusable: self._release(connection, reusable))
        if answer.status < 300 or answer.status == 304:
            return answer
        raise _error_of(answer)

    def _connect(self, silent: float) -> OpenConnection:
        try:
            return self.connections.take(silent)
        except socket.timeout:
            raise Timeout("timeout", message=f"{self.address} did not accept the connection in time.") from None
        except ssl.SSLCertVerificationError as error:
            text = f"The certificate of {self.address} is not trusted: {error.verify_message}. See ca_file."
            raise ConnectionFailed("connection_failed", message=text) from error
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionFailed(
                "connection_failed", message=f"{self.address} cannot be reached: {error}"
            ) from error

    def _exchange(
        self, connection: OpenConnection, method: str, target: str, headers: Mapping[str, str], body: Optional[Body]
    ) -> http.client.HTTPResponse:
        sent = {**headers, **(body.headers if body else {})}
        if body is None and method in ("POST", "PUT", "PATCH"):
            sent["Content-Length"] = "0"
        if self.connections.proxy_authorization:
            sent["Proxy-Authorization"] = self.connections.proxy_authorization
        request_target = self.address.prefix + target
        if self.connections.absolute:
            request_target = f"{self.address.scheme}://{self.address.netloc}{request_target}"
        try:
            try:
                connection.http.request(method, request_target, body.pieces() if body else None, sent)
            except (BrokenPipeError, ConnectionResetError):
                connection.spoilt = True  # rejected before everything was sent; the response may contain the reason
            return connection.http.getresponse()
        except socket.timeout as error:
            failed: ConnectionFailed = Timeout("timeout", message="There was no response in time.")
            cause: Exception = error
        except (OSError, http.client.RemoteDisconnected) as error:
            failed = ConnectionFailed("connection_failed", message=f"The connection was lost: {error!r}")
            cause = error
        except http.client.HTTPException as error:
            raise BadAnswer("bad_answer", message=f"The response is not HTTP: {error!r}") from error
        failed.sent = True
        raise failed from cause

    def _release(self, connection: OpenConnection, reusable: bool) -> None:
        if reusable and not connection.spoilt:
            self.connections.give_back(connection)
        else:
            connection.http.close()


def _read_json(answer: Answer) -> Any:
    if answer.status == 204:
        answer.read()
        return None
    found = answer.json()
    return Record(found, dict(answer.headers.items()), answer.status) if isinstance(found, dict) else found


def _error_of(answer: Answer) -> ServiceError:
    retry_after = seconds(answer.headers.get("Retry-After"))
    if answer.status < 400:
        where = answer.headers.get("Location", "")
        answer.close()
        text = f"The response redirects to {where!r}, and the key is not sent there. Use that address instead."
        return BadAnswer("bad_answer", answer.status, {}, answer.request_id, text)
    try:
        body: Any = answer.json()
    except BadAnswer:
        body = answer.headers.get_content_type()
    except ConnectionFailed:
        body = "half an answer"
    return refusal(answer.status, body, answer.request_id, retry_after)


def seconds(text: Optional[str]) -> Optional[float]:
    """Return the seconds of a Retry-After header (RFC 9110, 10.2.3), or None if it is missing or invalid."""
    if not text:
        return None
    try:
        return max(0.0, float(int(text.strip())))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None

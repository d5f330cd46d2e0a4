"""HTTP requests to addresses in users' settings, the only place that opens HTTP sessions.

    with open_session(gate) as session:
        reply = exchange(session, requests.Request("POST", url, json=row, auth=auth), timeout_seconds=30,
        max_bytes=MB)

The address guard opens connections to the address that it checked. Proxies in the environment and .netrc are
ignored. The time limit applies to the whole request. Responses are read up to a limit. Credentials are only
sent to the origin (scheme, host, port) they were given for.
"""

from __future__ import annotations

import contextlib
import copy
import http.client
import logging
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import requests
from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from requests.certs import where  # type: ignore[attr-defined]  # the stubs leave it out
from requests.cookies import extract_cookies_to_jar
from requests.structures import CaseInsensitiveDict
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import DecodeError, HTTPError, ReadTimeoutError
from urllib3.util.ssl_ import create_urllib3_context
from urllib3.util.ssl_match_hostname import CertificateError

from webapp import limits
from webapp.net.gate import Gate, GateError
from webapp.net.urls import PORTS, display_url, origin, url_error

# Sockets for HTTP requests: opened by the address guard, with one deadline for the whole request, and abortable.


class InFlightRequest:
    """One request in one thread: its deadline, whether it may have been received, and how to abort it."""

    def __init__(self, gate: Gate, deadline: float) -> None:
        """`deadline` is a time of `time.monotonic`."""
        self.gate, self.deadline = gate, deadline
        self.arrived = False
        """Whether a byte of the request has been written, or is being written, to a connection."""
        self.stopped = False
        self._lock = threading.Lock()
        self._abort: Callable[[], object] | None = None

    def remaining(self) -> float:
        """Return the remaining seconds, more than 0. Raises TimeoutError, or ConnectionAbortedError if
        stopped."""
        if self.stopped:
            raise ConnectionAbortedError
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def set_abort(self, abort: Callable[[], object]) -> None:
        """Set the function that aborts the next operation. Raises ConnectionAbortedError if already stopped."""
        with self._lock:
            if not self.stopped:
                self._abort = abort
                return
        abort()
        raise ConnectionAbortedError

    def stop(self) -> None:
        """Abort the request immediately, from another thread."""
        with self._lock:
            self.stopped, cut = True, self._abort
        if cut is not None:
            cut()


_flight: ContextVar[InFlightRequest] = ContextVar(
    "flight"
)  # without one, no connection is opened: LookupError


@contextlib.contextmanager
def request_context(flight: InFlightRequest) -> Iterator[None]:
    """Set the request that this thread sends and receives in the block."""
    token = _flight.set(flight)
    try:
        yield
    finally:
        _flight.reset(token)


def _connect(flight: InFlightRequest, host: str, port: int) -> socket.socket:
    """Connect in a separate thread, because a resolver or an unresponsive host cannot be aborted otherwise."""
    future: Future[socket.socket] = Future()
    left = flight.remaining()

    def dial() -> None:
        sock, failed = None, None
        try:
            sock = flight.gate.connect(host, port, left)
        except BaseException as error:
            failed = error
        if not future.set_running_or_notify_cancel():
            if sock is not None:
                sock.close()
        elif sock is not None:
            future.set_result(sock)
        else:
            future.set_exception(failed)

    flight.set_abort(future.cancel)
    threading.Thread(target=dial, name="dial", daemon=True).start()
    try:
        return future.result(flight.remaining())
    except CancelledError:
        raise ConnectionAbortedError from None
    except TimeoutError:
        if not future.cancel() and future.exception() is None:
            future.result().close()
        raise GateError("timeout", f"{host}:{port} did not respond in time.") from None


class _Timed(socket.socket):
    """A socket that limits each operation to the remaining time of the whole request."""

    def abort(self) -> None:
        """Abort operations of other threads on this socket."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(
                self, socket.SHUT_RDWR
            )  # the TLS method would discard the keys of a reader

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self.settimeout(_flight.get().remaining())
        return super().recv_into(*args, **kwargs)

    def send(self, *args: Any, **kwargs: Any) -> int:
        self._before_sending()
        return super().send(*args, **kwargs)

    def sendall(self, *args: Any, **kwargs: Any) -> None:
        self._before_sending()
        return super().sendall(*args, **kwargs)

    def _before_sending(self) -> None:
        flight = _flight.get()
        self.settimeout(flight.remaining())
        flight.arrived = True


class _TimedTls(_Timed, ssl.SSLSocket):
    """The same over TLS."""

    def do_handshake(self, block: bool = False) -> None:
        flight = _flight.get()
        flight.set_abort(self.abort)
        self.settimeout(flight.remaining())
        super().do_handshake(block)


class _Guarded(HTTPConnection):
    """A connection that is opened by the address guard."""

    _last_used = 0.0

    def _new_conn(self) -> socket.socket:
        flight = _flight.get()
        sock = _Timed(fileno=_connect(flight, self._dns_host, self.port).detach())
        try:
            flight.set_abort(sock.abort)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(flight.remaining())
        except BaseException:
            sock.close()
            raise
        return sock

    @property
    def is_connected(self) -> bool:
        # Servers close idle connections. A request that collides with the closing may or may not have been
        # received.
        return time.monotonic() - self._last_used < limits.HTTP_IDLE_SECONDS and super().is_connected

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:
            assert isinstance(self.sock, _Timed)
            _flight.get().set_abort(self.sock.abort)
        super().request(*args, **kwargs)

    def getresponse(self) -> Any:
        response = super().getresponse()
        self._last_used = time.monotonic()
        return response


class _GuardedTls(_Guarded, HTTPSConnection):
    """The same over TLS. Server name and certificate are those of the host name, not of the address."""

    def connect(self) -> None:
        super().connect()
        self.is_verified = True  # otherwise urllib3 warns about each request if verification is turned off


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Guarded


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _GuardedTls


@lru_cache(maxsize=32)
def _context(verify: bool | str) -> ssl.SSLContext:
    """Return a TLS context. Raises OSError.

    `verify`: True verifies certificates with the public authorities and those of this system, False does not verify,
    and a string is a file, a folder or a PEM text with authorities.
    """
    context = create_urllib3_context()
    context.sslsocket_class = _TimedTls
    if verify is False:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    context.check_hostname, context.verify_mode = True, ssl.CERT_REQUIRED
    if verify is True:
        context.load_verify_locations(where())
        context.load_default_certs()
    elif verify.lstrip().startswith("-----"):
        context.load_verify_locations(cadata=verify)
    else:
        context.load_verify_locations(verify)
    return context


class GuardedAdapter(HTTPAdapter):
    """Connects requests to urllib3 with guarded connections. Only sends in `request_context`."""

    _POOLS: ClassVar[dict[str, Any]] = {"http": _Pool, "https": _TlsPool}

    def __init__(self, verify: bool | str, pool: int) -> None:
        """`pool`: connections that are kept open to each host; threads may open more.

        Raises OSError if the file of authorities cannot be read.
        """
        logging.getLogger("urllib3").setLevel(
            logging.CRITICAL
        )  # its messages contain whole URLs, including keys in queries
        self._tls = _context(verify)
        super().__init__(pool_connections=limits.HTTP_POOL_HOSTS, pool_maxsize=pool)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self._POOLS

    def build_connection_pool_key_attributes(
        self, request: PreparedRequest, verify: Any, cert: Any = None
    ) -> tuple[Any, Any]:  # two TypedDicts that the stubs keep to themselves
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {"ssl_context": self._tls} if host["scheme"] == "https" else {}

    def cert_verify(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: `_context` verifies certificates."""


_REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})
_METHOD_PRESERVING_STATUSES: Final = frozenset({307, 308})
_READING_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})  # methods whose response body is the result
_CONTROL_CHARS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_REQUEST_ERRORS: Final = (
    requests.RequestException,
    HTTPError,
    http.client.HTTPException,
    GateError,
    OSError,
    ValueError,
)


class NetError(Exception):
    """A request failed, or its response is not usable.

    `reason`: unresolved, not_allowed, secret_host, refused, unreachable, timeout, tls_failed, reset (also:
    stopped), too_large, redirected, bad_response, bad_url. `arrived`: the target may have received the
    request. Messages contain the origin and the path of a URL, but neither headers nor the query.
    """

    def __init__(self, reason: str, message: str, arrived: bool = False) -> None:
        self.reason, self.message, self.arrived = reason, message, arrived
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Reply:
    """A response."""

    status: int
    reason: str
    headers: CaseInsensitiveDict[str]
    body: bytes
    """Decompressed (gzip, deflate)."""
    truncated: bool
    """Whether `body` is incomplete: it was longer than the limit, or the response to a writing method was
    interrupted."""
    url: str
    """The URL after redirects. May contain an API key in its query."""
    ms: int
    """Duration of the whole request including redirects, except for its authentication."""


class Session(requests.Session):
    """Cookies and open connections for one connection of a user, for use by several threads.

    Created by `open_session`. Requests are only sent by `exchange`.
    """

    verify: bool | str

    def __init__(self, gate: Gate, verify_tls: bool | str, pool: int) -> None:
        super().__init__()
        self.gate, self.verify, self.trust_env = gate, verify_tls, False
        self.headers.update({"User-Agent": "Rowsmith", "Accept-Encoding": "gzip, deflate"})
        self.stopped = False
        self.jar = threading.Lock()
        """Held while reading or changing `cookies`."""
        self._lock = threading.Lock()
        self._flights: set[InFlightRequest] = set()
        self._child_sessions: list[Session] = []
        self.adapters.clear()
        adapter = GuardedAdapter(verify_tls, pool)
        for scheme in PORTS:
            self.mount(f"{scheme}://", adapter)

    def stop(self) -> None:
        """Abort all running requests from another thread, and reject further ones. They raise NetError
        (reason `reset`)."""
        with self._lock:
            self.stopped, flights, others = True, list(self._flights), list(self._child_sessions)
        for flight in flights:
            flight.stop()
        for other in others:
            other.stop()

    @contextmanager
    def separate_session(self) -> Iterator[Session]:
        """Open a session with separate cookies and connections, which is stopped together with this one."""
        with Session(self.gate, self.verify, 1) as other:
            with self._lock:
                self._child_sessions.append(other)
                other.stopped = self.stopped
            try:
                yield other
            finally:
                with self._lock:
                    self._child_sessions.remove(other)

    @contextmanager
    def _flying(self, flight: InFlightRequest) -> Iterator[None]:
        with self._lock:
            flight.stopped = self.stopped
            self._flights.add(flight)
        try:
            with request_context(flight):
                yield
        finally:
            with self._lock:
                self._flights.discard(flight)


def open_session(gate: Gate, *, verify_tls: bool | str = True, pool: int = limits.HTTP_POOL) -> Session:
    """Open a session whose connections are opened by `gate`.

    `verify_tls`: True verifies certificates with the public authorities and those of this system, False does
    not verify, and a string is a file, a folder or a PEM text with authorities. `pool`: connections that are
    kept open to one host. Raises OSError if the file cannot be read.
    """
    return Session(gate, verify_tls, pool)


def exchange(
    session: Session,
    request: requests.Request,
    *,
    timeout_seconds: float,
    max_bytes: int,
    follow: bool = True,
) -> Reply:
    """Send a request and read its response of any status. Raises NetError, and what `request.auth` raises.

    The time limit applies to everything except `request.auth`. GET and HEAD follow redirects, each checked by
    the address guard; another origin only gets the method, the URL and `Accept`. Other methods follow 307 and
    308 to the same origin; other redirects raise `redirected`. `follow=False` returns the redirect itself.
    The status of a writing method counts even if the rest of the response is missing: see `Reply.truncated`.
    """
    prepared = _prepare(session, request)
    started = time.monotonic()
    deadline, is_cross_origin = started + timeout_seconds, False
    for _ in range(limits.HTTP_HOPS + 1):
        gate = session.gate.without_secrets() if is_cross_origin else session.gate
        reply = _send(
            session, prepared, InFlightRequest(gate, deadline), max_bytes, keep_cookies=not is_cross_origin
        )
        location = reply.headers.get("Location") if follow and reply.status in _REDIRECT_STATUSES else None
        if location is None:
            return replace(reply, ms=round((time.monotonic() - started) * 1000))
        redirect_url = _redirect_target(prepared, reply, location)
        is_cross_origin = is_cross_origin or origin(redirect_url) != origin(reply.url)
        method = request.method.upper()
        if method not in ("GET", "HEAD") and (
            is_cross_origin or reply.status not in _METHOD_PRESERVING_STATUSES
        ):
            raise NetError(
                "redirected",
                f"{display_url(reply.url)} returned {reply.status} and redirects to {display_url(redirect_url)}: "
                f"{method} does not follow this redirect. Use the address that it leads to.",
                True,
            )
        if is_cross_origin:
            prepared = _cross_origin_request(session, request, prepared, redirect_url)
        else:  # the same request for another URL of the same origin
            next_request = copy.copy(request)
            next_request.url, next_request.params = redirect_url, {}
            prepared = _prepare(session, next_request)
    raise NetError(
        "redirected", f"{display_url(reply.url)} redirects more than {limits.HTTP_HOPS} times.", True
    )


def send_single(
    gate: Gate,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: str | bytes | None = None,
    timeout_seconds: float,
    max_bytes: int,
) -> Reply:
    """Send one request in its own session without following redirects, to an address that the operator
    configured.

    Raises NetError.
    """
    with open_session(gate, pool=1) as session:
        request = requests.Request(method, url, headers=dict(headers or {}), data=body)
        return exchange(session, request, timeout_seconds=timeout_seconds, max_bytes=max_bytes, follow=False)


def check_url(url: str) -> str:
    """Return a URL if it is allowed. Raises NetError (reason `bad_url`), whose message does not repeat it."""
    if message := url_error(url):
        raise NetError("bad_url", message)
    return url


# --- Requests -----------------------------------------------------------------------------------------------


def _prepare(session: Session, request: requests.Request) -> requests.PreparedRequest:
    """Return the request to send, with its authentication. Errors of `auth` are passed on."""
    check_url(request.url)
    auth, without_auth = request.auth or session.auth, copy.copy(request)
    without_auth.auth = _no_auth
    try:
        with session.jar:
            prepared = session.prepare_request(without_auth)
    except (requests.RequestException, ValueError):
        raise _invalid_request(request.url) from None
    if auth is not None:
        prepared.prepare_auth(auth, prepared.url or "")
    if any(_CONTROL_CHARS.search(str(value)) for value in prepared.headers.values()):
        raise _invalid_request(request.url)
    check_url(prepared.url or "")
    return prepared


def _invalid_request(url: str) -> NetError:
    return NetError("bad_url", f"{display_url(url)}: the request is invalid. Check the URL and the headers.")


def _no_auth(prepared: requests.PreparedRequest) -> requests.PreparedRequest:
    return prepared


def _cross_origin_request(
    session: Session, request: requests.Request, sent: requests.PreparedRequest, url: str
) -> requests.PreparedRequest:
    """Return a request to another origin, without anything that belongs to the connection.

    This includes keys that the target repeats in its Location header.
    """
    original_url = requests.Request("GET", request.url, params=request.params).prepare().url or ""
    own_params = set(parse_qsl(urlsplit(original_url).query, keep_blank_values=True))
    secret_params = [
        param
        for param in parse_qsl(urlsplit(sent.url or "").query, keep_blank_values=True)
        if param not in own_params
    ]
    names, values = {name for name, _ in secret_params}, {value for _, value in secret_params if value}
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    if any(name in names or value in values for name, value in query):
        remaining = [param for param in query if param[0] not in names and param[1] not in values]
        url = parts._replace(query=urlencode(remaining)).geturl()
    headers = {name: session.headers[name] for name in ("User-Agent", "Accept-Encoding")}
    headers["Accept"] = sent.headers.get("Accept", "*/*")
    try:
        return requests.Request(sent.method, url, headers=headers).prepare()
    except (requests.RequestException, ValueError):
        raise NetError(
            "redirected", f"{display_url(sent.url or '')} redirects to an invalid URL.", True
        ) from None


def _redirect_target(sent: requests.PreparedRequest, reply: Reply, location: str) -> str:
    """Return the target of a redirect. Raises NetError (reason `redirected`)."""
    try:
        # Header bytes are decoded as latin-1; non-ASCII characters are UTF-8 in practice.
        target = urljoin(sent.url or "", location.encode("latin-1").decode("utf-8", "replace"))
        return check_url(target)
    except (ValueError, NetError):
        raise NetError(
            "redirected",
            f"{display_url(reply.url)} returned {reply.status} and redirects to an address that is not allowed.",
            True,
        ) from None


# --- Responses ----------------------------------------------------------------------------------------------


def _send(
    session: Session,
    prepared: requests.PreparedRequest,
    flight: InFlightRequest,
    max_bytes: int,
    keep_cookies: bool,
) -> Reply:
    """Send one request without following redirects, and return its reply."""
    url = prepared.url or ""
    with session._flying(flight):
        try:
            response = session.get_adapter(url).send(prepared, stream=True, verify=session.verify)
        except _REQUEST_ERRORS as error:
            raise _net_error(error, flight, url) from None
        if keep_cookies:
            with session.jar:
                extract_cookies_to_jar(session.cookies, prepared, response.raw)  # type: ignore[no-untyped-call]  # the stubs give it no types
                cookies: list[Any] = list(session.cookies)  # Cookie, which the stubs take for its name
                for cookie in cookies[: -limits.HTTP_COOKIES]:
                    session.cookies.clear(cookie.domain, cookie.path, cookie.name)
        body = bytearray()
        try:
            truncated = _read_body(response.raw, body, max_bytes)
        except _REQUEST_ERRORS as error:
            response.raw.close()
            if prepared.method in _READING_METHODS:
                raise _net_error(error, flight, url) from None
            truncated = True
    return Reply(
        response.status_code, response.reason or "", response.headers, bytes(body), truncated, url, 0
    )


def _read_body(raw: Any, body: bytearray, max_bytes: int) -> bool:
    """Read a response into `body`, and return whether it is longer than `max_bytes`. Otherwise the connection
    is reused."""
    for part in raw.stream(limits.HTTP_READ_BYTES, decode_content=True):
        body += part[: max_bytes - len(body) + 1]
        if len(body) > max_bytes:
            del body[max_bytes:]
            raw.close()
            return True
    raw.release_conn()
    return False


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and its causes, which urllib3 and requests wrap in different ways."""
    found: list[BaseException] = []
    pending: list[Any] = [error]
    while pending:
        current = pending.pop()
        if isinstance(current, BaseException) and current not in found:
            found.append(current)
            pending += [
                current.__cause__,
                current.__context__,
                getattr(current, "reason", None),
                *current.args,
            ]
    return found


def _net_error(error: Exception, flight: InFlightRequest, url: str) -> NetError:
    """Describe a failed request without the library's message, which may contain headers and queries."""
    causes, address = _causes(error), display_url(url)

    def among(*kinds: type[BaseException]) -> Any:
        return next((cause for cause in causes if isinstance(cause, kinds)), None)

    if flight.stopped:
        return NetError("reset", f"{address}: the request was stopped.", flight.arrived)
    if gate_error := among(GateError):
        return NetError(gate_error.reason, gate_error.message, flight.arrived)
    if time.monotonic() >= flight.deadline or among(TimeoutError, ReadTimeoutError):
        return NetError("timeout", f"{address} did not respond in time.", flight.arrived)
    if among(ssl.SSLError, CertificateError) and not flight.arrived:
        return NetError(
            "tls_failed", f"{address}: {_tls_problem(among(ssl.SSLError, CertificateError))}", False
        )
    if among(http.client.LineTooLong) or "than 100 headers" in str(error):
        return NetError("too_large", f"{address} returned headers that are too long.", flight.arrived)
    if among(ConnectionError, http.client.IncompleteRead, ssl.SSLError):
        return NetError(
            "reset", f"{address} closed the connection before the response was complete.", flight.arrived
        )
    if among(DecodeError, http.client.HTTPException, HTTPError):
        return NetError("bad_response", f"{address} did not return a valid HTTP response.", flight.arrived)
    if flight.arrived:
        return NetError("bad_response", f"{address} did not return a valid HTTP response.", True)
    if among(OSError) and not among(ValueError):
        return NetError("unreachable", f"{address} could not be reached.", False)
    return NetError("bad_url", f"{address}: the request is invalid. Check the URL and the headers.", False)


def _tls_problem(error: ssl.SSLError | CertificateError) -> str:
    verify_message = getattr(error, "verify_message", "")
    if verify_message:
        return f"its certificate is not trusted: {verify_message}."
    if getattr(error, "reason", "") in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"):
        return "this port does not use TLS. Check whether the address must start with http://."
    return "a TLS connection could not be established."

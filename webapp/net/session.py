"""HTTP requests to addresses in users' settings, the only place that opens HTTP sessions.

    with open_session(gate) as session:
        reply = exchange(session, requests.Request("POST", url, json=row, auth=auth), timeout_seconds=30,
        max_bytes=MB)

The address guard opens connections to the address that it checked. Proxies in the environment and .netrc are
ignored. The time limit applies to the whole request. Responses are read up to a limit. Credentials are only
sent to the origin (scheme, host, port) they were given for.
"""

from __future__ import annotations

import copy
import http.client
import re
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import requests
from requests.cookies import extract_cookies_to_jar
from requests.structures import CaseInsensitiveDict
from urllib3.exceptions import DecodeError, HTTPError, ReadTimeoutError
from urllib3.util.ssl_match_hostname import CertificateError

from webapp import limits
from webapp.net.gate import Gate, GateError
from webapp.net.transport import Flight, GuardedAdapter, flying
from webapp.net.urls import PORTS, fault, origin, shown

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SAME_METHOD: Final = frozenset({307, 308})
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})  # methods whose response body is the result
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_FAULTS: Final = (
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
        self._flights: set[Flight] = set()
        self._others: list[Session] = []
        self.adapters.clear()
        adapter = GuardedAdapter(verify_tls, pool)
        for scheme in PORTS:
            self.mount(f"{scheme}://", adapter)

    def stop(self) -> None:
        """Abort all running requests from another thread, and reject further ones. They raise NetError
        (reason `reset`)."""
        with self._lock:
            self.stopped, flights, others = True, list(self._flights), list(self._others)
        for flight in flights:
            flight.stop()
        for other in others:
            other.stop()

    @contextmanager
    def beside(self) -> Iterator[Session]:
        """Open a session with separate cookies and connections, which is stopped together with this one."""
        with Session(self.gate, self.verify, 1) as other:
            with self._lock:
                self._others.append(other)
                other.stopped = self.stopped
            try:
                yield other
            finally:
                with self._lock:
                    self._others.remove(other)

    @contextmanager
    def _flying(self, flight: Flight) -> Iterator[None]:
        with self._lock:
            flight.stopped = self.stopped
            self._flights.add(flight)
        try:
            with flying(flight):
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
    prepared = _prepared(session, request)
    began = time.monotonic()
    until, bare = began + timeout_seconds, False
    for _ in range(limits.HTTP_HOPS + 1):
        gate = session.gate.without_secrets() if bare else session.gate
        reply = _sent(session, prepared, Flight(gate, until), max_bytes, keep_cookies=not bare)
        location = reply.headers.get("Location") if follow and reply.status in _REDIRECTS else None
        if location is None:
            return replace(reply, ms=round((time.monotonic() - began) * 1000))
        there = _target(prepared, reply, location)
        bare = bare or origin(there) != origin(reply.url)
        _must_follow(request.method, reply, there, bare)
        prepared = _bare(session, request, prepared, there) if bare else _again(session, request, there)
    raise NetError("redirected", f"{shown(reply.url)} redirects more than {limits.HTTP_HOPS} times.", True)


def ask(
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


def checked(url: str) -> str:
    """Return a URL if it is allowed. Raises NetError (reason `bad_url`), whose message does not repeat it."""
    if said := fault(url):
        raise NetError("bad_url", said)
    return url


# --- Requests -----------------------------------------------------------------------------------------------


def _prepared(session: Session, request: requests.Request) -> requests.PreparedRequest:
    """Return the request to send, with its authentication. Errors of `auth` are passed on."""
    checked(request.url)
    auth, plain = request.auth or session.auth, copy.copy(request)
    plain.auth = _no_auth
    try:
        with session.jar:
            made = session.prepare_request(plain)
    except (requests.RequestException, ValueError):
        raise _unwritable(request.url) from None
    if auth is not None:
        made.prepare_auth(auth, made.url or "")
    if any(_CONTROL.search(str(value)) for value in made.headers.values()):
        raise _unwritable(request.url)
    checked(made.url or "")
    return made


def _unwritable(url: str) -> NetError:
    return NetError("bad_url", f"{shown(url)}: the request is invalid. Check the URL and the headers.")


def _no_auth(made: requests.PreparedRequest) -> requests.PreparedRequest:
    return made


def _again(session: Session, request: requests.Request, url: str) -> requests.PreparedRequest:
    """Return the same request for another URL of the same origin."""
    same = copy.copy(request)
    same.url, same.params = url, {}
    return _prepared(session, same)


def _bare(
    session: Session, request: requests.Request, sent: requests.PreparedRequest, url: str
) -> requests.PreparedRequest:
    """Return a request to another origin, without anything that belongs to the connection.

    This includes keys that the target repeats in its Location header.
    """
    plain = requests.Request("GET", request.url, params=request.params).prepare().url or ""
    ours = set(parse_qsl(urlsplit(plain).query, keep_blank_values=True))
    secret = [
        one for one in parse_qsl(urlsplit(sent.url or "").query, keep_blank_values=True) if one not in ours
    ]
    names, values = {name for name, _ in secret}, {value for _, value in secret if value}
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    if any(name in names or value in values for name, value in query):
        kept = [one for one in query if one[0] not in names and one[1] not in values]
        url = parts._replace(query=urlencode(kept)).geturl()
    headers = {name: session.headers[name] for name in ("User-Agent", "Accept-Encoding")}
    headers["Accept"] = sent.headers.get("Accept", "*/*")
    try:
        return requests.Request(sent.method, url, headers=headers).prepare()
    except (requests.RequestException, ValueError):
        raise NetError("redirected", f"{shown(sent.url or '')} redirects to an invalid URL.", True) from None


def _target(sent: requests.PreparedRequest, reply: Reply, location: str) -> str:
    """Return the target of a redirect. Raises NetError (reason `redirected`)."""
    try:
        # Header bytes are decoded as latin-1; non-ASCII characters are UTF-8 in practice.
        there = urljoin(sent.url or "", location.encode("latin-1").decode("utf-8", "replace"))
        return checked(there)
    except (ValueError, NetError):
        raise NetError(
            "redirected",
            f"{shown(reply.url)} returned {reply.status} and redirects to an address that is not allowed.",
            True,
        ) from None


def _must_follow(method: str, reply: Reply, there: str, elsewhere: bool) -> None:
    if method.upper() in ("GET", "HEAD"):
        return
    if elsewhere or reply.status not in _SAME_METHOD:
        raise NetError(
            "redirected",
            f"{shown(reply.url)} returned {reply.status} and redirects to {shown(there)}: {method.upper()} does not "
            "follow this redirect. Use the address that it leads to.",
            True,
        )


# --- Responses ----------------------------------------------------------------------------------------------


def _sent(
    session: Session, prepared: requests.PreparedRequest, flight: Flight, max_bytes: int, keep_cookies: bool
) -> Reply:
    """Send one request without following redirects, and return its reply."""
    url = prepared.url or ""
    with session._flying(flight):
        try:
            response = session.get_adapter(url).send(prepared, stream=True, verify=session.verify)
        except _FAULTS as error:
            raise _told(error, flight, url) from None
        if keep_cookies:
            with session.jar:
                extract_cookies_to_jar(session.cookies, prepared, response.raw)  # type: ignore[no-untyped-call]  # the stubs give it no types
                cookies: list[Any] = list(session.cookies)  # Cookie, which the stubs take for its name
                for one in cookies[: -limits.HTTP_COOKIES]:
                    session.cookies.clear(one.domain, one.path, one.name)
        body = bytearray()
        try:
            truncated = _read(response.raw, body, max_bytes)
        except _FAULTS as error:
            response.raw.close()
            if prepared.method in _READS:
                raise _told(error, flight, url) from None
            truncated = True
    return Reply(
        response.status_code, response.reason or "", response.headers, bytes(body), truncated, url, 0
    )


def _read(raw: Any, body: bytearray, max_bytes: int) -> bool:
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
    left: list[Any] = [error]
    while left:
        one = left.pop()
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            left += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
    return found


def _told(error: Exception, flight: Flight, url: str) -> NetError:
    """Describe a failed request without the library's message, which may contain headers and queries."""
    causes, where = _causes(error), shown(url)

    def among(*kinds: type[BaseException]) -> Any:
        return next((caus for caus in causes if isinstance(caus, kinds)), None)

    if flight.stopped:
        return NetError("reset", f"{where}: the request was stopped.", flight.arrived)
    if closed := among(GateError):
        return NetError(closed.reason, closed.message, flight.arrived)
    if time.monotonic() >= flight.until or among(TimeoutError, ReadTimeoutError):
        return NetError("timeout", f"{where} did not respond in time.", flight.arrived)
    if among(ssl.SSLError, CertificateError) and not flight.arrived:
        return NetError("tls_failed", f"{where}: {_of_tls(among(ssl.SSLError, CertificateError))}", False)
    if among(http.client.LineTooLong) or "than 100 headers" in str(error):
        return NetError("too_large", f"{where} returned headers that are too long.", flight.arrived)
    if among(ConnectionError, http.client.IncompleteRead, ssl.SSLError):
        return NetError(
            "reset", f"{where} closed the connection before the response was complete.", flight.arrived
        )
    if among(DecodeError, http.client.HTTPException, HTTPError):
        return NetError("bad_response", f"{where} did not return a valid HTTP response.", flight.arrived)
    if flight.arrived:
        return NetError("bad_response", f"{where} did not return a valid HTTP response.", True)
    if among(OSError) and not among(ValueError):
        return NetError("unreachable", f"{where} could not be reached.", False)
    return NetError("bad_url", f"{where}: the request is invalid. Check the URL and the headers.", False)


def _of_tls(error: ssl.SSLError | CertificateError) -> str:
    verified = getattr(error, "verify_message", "")
    if verified:
        return f"its certificate is not trusted: {verified}."
    if getattr(error, "reason", "") in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"):
        return "this port does not use TLS. Check whether the address must start with http://."
    return "a TLS connection could not be established."

"""HTTP to wherever a user's settings lead: the only place that opens an HTTP session.

    with open_session(gate) as session:
        reply = exchange(session, requests.Request("POST", url, json=row, auth=auth), timeout_seconds=30, max_bytes=MB)

Connections are opened by the address guard to the address that it judged; the environment's proxies and .netrc count
for nothing; the time limit is one for the whole request; an answer is read up to a cap; credentials go to the origin
(scheme, host, port) that they were given for, and to no other.
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
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})  # of these the body of the answer is what was wanted
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
    """No answer, or none that counts.

    `reason`: unresolved, not_allowed, secret_host, refused, unreachable, timeout, tls_failed, reset (also: stopped),
    too_large, redirected, bad_response, bad_url. `arrived`: the target may have got the request. Messages name the
    origin and the path of a URL, and neither headers nor its query.
    """

    def __init__(self, reason: str, message: str, arrived: bool = False) -> None:
        self.reason, self.message, self.arrived = reason, message, arrived
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    status: int
    reason: str
    headers: CaseInsensitiveDict[str]
    body: bytes
    """Unpacked (gzip, deflate)."""
    truncated: bool
    """`body` is not all of it: it was longer than the cap, or, of a method that writes, broke off."""
    url: str
    """Where it came from, after redirects. May hold an API key in its query."""
    ms: int
    """Of the whole request, redirects included, without what its authentication took."""


class Session(requests.Session):
    """Cookies and open connections of one connection of a user's, for several threads. Made by `open_session`; its
    requests are sent by `exchange` alone."""

    def __init__(self, gate: Gate, verify_tls: bool | str, pool: int) -> None:
        super().__init__()
        self.gate, self.verify, self.trust_env = gate, verify_tls, False
        self.headers.update({"User-Agent": "Rowsmith", "Accept-Encoding": "gzip, deflate"})
        self.stopped = False
        self.jar = threading.Lock()
        """Held by whoever reads or changes `cookies`."""
        self._lock = threading.Lock()
        self._flights: set[Flight] = set()
        self._others: list[Session] = []
        self.adapters.clear()
        adapter = GuardedAdapter(verify_tls, pool)
        for scheme in PORTS:
            self.mount(f"{scheme}://", adapter)

    def stop(self) -> None:
        """Called from another thread: cut every request under way, which then raises NetError (reason `reset`), and
        refuse those to come. Returns at once."""
        with self._lock:
            self.stopped, flights, others = True, list(self._flights), list(self._others)
        for one in (*flights, *others):
            one.stop()

    @contextmanager
    def beside(self) -> Iterator[Session]:
        """A session of its own cookies and connections, which is stopped when this one is."""
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
    """A session whose connections are opened by `gate`.

    `verify_tls`: True checks certificates against the public authorities and those of this machine, a text against
    the authorities of that file or folder, or those in it as PEM, False not at all. `pool`: connections kept open to
    one host. Raises OSError where that file cannot be read.
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
    """Send a request and read its answer, of whatever status. Raises NetError, and what `request.auth` raises.

    The time limit is for all of it but what `request.auth` does. GET and HEAD follow redirects, each judged by the
    address guard; to another origin goes nothing of the request but its method, its URL and `Accept`. Other methods
    follow 307 and 308 to the same origin; anything else raises `redirected`. `follow=False` gives the redirect itself.
    The status of a method that writes counts even if the rest of the answer does not come: see `Reply.truncated`.
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
    """One request in a session of its own, redirects not followed: for what the operator, not a connection, leads to.
    Raises NetError."""
    with open_session(gate, pool=1) as session:
        request = requests.Request(method, url, headers=dict(headers or {}), data=body)
        return exchange(session, request, timeout_seconds=timeout_seconds, max_bytes=max_bytes, follow=False)


def checked(url: str) -> str:
    """A URL as it may be connected to. Raises NetError (reason `bad_url`), whose message does not repeat it."""
    if said := fault(url):
        raise NetError("bad_url", said)
    return url


# --- Requests -----------------------------------------------------------------------------------------------


def _prepared(session: Session, request: requests.Request) -> requests.PreparedRequest:
    """A request as it is sent, with its authentication. What `auth` raises passes through."""
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
    return NetError("bad_url", f"{shown(url)}: the request cannot be written. Check the URL and the headers.")


def _no_auth(made: requests.PreparedRequest) -> requests.PreparedRequest:
    return made


def _again(session: Session, request: requests.Request, url: str) -> requests.PreparedRequest:
    """The same request to another URL of its origin."""
    same = copy.copy(request)
    same.url, same.params = url, {}
    return _prepared(session, same)


def _bare(
    session: Session, request: requests.Request, sent: requests.PreparedRequest, url: str
) -> requests.PreparedRequest:
    """A request to another origin: nothing of the connection's goes there, nor a key that a target repeats in its
    Location."""
    plain = requests.Request("GET", request.url, params=request.params).prepare().url or ""
    ours = set(parse_qsl(urlsplit(plain).query, keep_blank_values=True))
    secret = [one for one in parse_qsl(urlsplit(sent.url).query, keep_blank_values=True) if one not in ours]
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
        raise NetError("redirected", f"{shown(sent.url or '')} redirects to what is no URL.", True) from None


def _target(sent: requests.PreparedRequest, reply: Reply, location: str) -> str:
    """Where a redirect leads. Raises NetError (reason `redirected`)."""
    try:
        # Header bytes come as latin-1; what is not ASCII is UTF-8 in practice.
        there = urljoin(sent.url or "", location.encode("latin-1").decode("utf-8", "replace"))
        return checked(there)
    except (ValueError, NetError):
        raise NetError(
            "redirected",
            f"{shown(reply.url)} answered {reply.status} and redirects to what may not be followed.",
            True,
        ) from None


def _must_follow(method: str, reply: Reply, there: str, elsewhere: bool) -> None:
    if method.upper() in ("GET", "HEAD"):
        return
    if elsewhere or reply.status not in _SAME_METHOD:
        raise NetError(
            "redirected",
            f"{shown(reply.url)} answered {reply.status} and redirects to {shown(there)}: {method.upper()} does not "
            "follow that. Use the address that it leads to.",
            True,
        )


# --- Answers ------------------------------------------------------------------------------------------------


def _sent(
    session: Session, prepared: requests.PreparedRequest, flight: Flight, max_bytes: int, keep_cookies: bool
) -> Reply:
    """One request and its answer, redirects not followed."""
    url = prepared.url or ""
    with session._flying(flight):
        try:
            response = session.get_adapter(url).send(prepared, stream=True, verify=session.verify)
        except _FAULTS as error:
            raise _told(error, flight, url) from None
        if keep_cookies:
            with session.jar:
                extract_cookies_to_jar(session.cookies, prepared, response.raw)
                for one in list(session.cookies)[: -limits.HTTP_COOKIES]:
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
    """Read an answer's body into `body`; tells whether it is longer than that. Its connection is kept where it is
    not."""
    for part in raw.stream(limits.HTTP_READ_BYTES, decode_content=True):
        body += part[: max_bytes - len(body) + 1]
        if len(body) > max_bytes:
            del body[max_bytes:]
            raw.close()
            return True
    raw.release_conn()
    return False


def _causes(error: BaseException) -> list[BaseException]:
    """An error and what lies behind it: urllib3 and requests wrap one in the other, each in its way."""
    found: list[BaseException] = []
    left: list[Any] = [error]
    while left:
        one = left.pop()
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            left += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
    return found


def _told(error: Exception, flight: Flight, url: str) -> NetError:
    """What went wrong, in our words: those of the libraries may hold headers and queries."""
    causes, where = _causes(error), shown(url)

    def among(*kinds: type[BaseException]) -> Any:
        return next((one for one in causes if isinstance(one, kinds)), None)

    if flight.stopped:
        return NetError("reset", f"{where}: the request was stopped.", flight.arrived)
    if closed := among(GateError):
        return NetError(closed.reason, closed.message, flight.arrived)
    if time.monotonic() >= flight.until or among(TimeoutError, ReadTimeoutError):
        return NetError("timeout", f"{where} did not answer in time.", flight.arrived)
    if among(ssl.SSLError, CertificateError) and not flight.arrived:
        return NetError("tls_failed", f"{where}: {_of_tls(among(ssl.SSLError, CertificateError))}", False)
    if among(http.client.LineTooLong) or "than 100 headers" in str(error):
        return NetError("too_large", f"{where} answered with headers that are too long.", flight.arrived)
    if among(ConnectionError, http.client.IncompleteRead, ssl.SSLError):
        return NetError(
            "reset", f"{where} closed the connection before its answer was whole.", flight.arrived
        )
    if among(DecodeError, http.client.HTTPException, HTTPError):
        return NetError("bad_response", f"{where} did not answer as HTTP servers do.", flight.arrived)
    if flight.arrived:
        return NetError("bad_response", f"{where} did not answer as HTTP servers do.", True)
    if among(OSError) and not among(ValueError):
        return NetError("unreachable", f"{where} cannot be reached.", False)
    return NetError(
        "bad_url", f"{where}: the request cannot be written. Check the URL and the headers.", False
    )


def _of_tls(error: ssl.SSLError | CertificateError) -> str:
    verified = getattr(error, "verify_message", "")
    if verified:
        return f"its certificate is not trusted: {verified}."
    if getattr(error, "reason", "") in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"):
        return "it does not speak TLS at this port. Should the address begin with http://?"
    return "no TLS connection could be agreed on."

"""Requests to one OData service: where it is, what every request carries, and cookies and CSRF token of one sender.

The CSRF token is the specification's (section 4, connection behaviour 5): fetched with `X-CSRF-Token: Fetch`, bound to
the cookies that came with it, used until the service wants another one. Each sender has its own pair, for a service
that lets tokens wear out, or keeps one per session, would else refuse what two senders send at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, urljoin, urlsplit

import requests

from webapp import limits
from webapp.connectors.http_auth import authorised
from webapp.net.gate import Gate
from webapp.net.session import NetError, Reply, Session, open_session

if TYPE_CHECKING:
    from webapp.connectors.odata import OdataSettings

HEADER: Final = "X-CSRF-Token"
CAUSES: Final = (
    "Causes: (1) the sign-in makes a new session with every request: use basic auth or a long-lived bearer token;"
    " (2) a proxy strips cookies: let it forward those of the service's session (SAP_SESSIONID_..., sap-usercontext);"
    " (3) the service root gives no token: set csrf.fetch_path and csrf.fetch_method to an address that gives one."
)


@dataclass
class CsrfFound:
    """What the senders of one push learn of where tokens are given."""

    place: tuple[str, str] | None = None
    """Method and URL that gave one."""
    none: bool = False
    """Nothing gave one."""


class Way:
    """The way to a service: shared by its senders."""

    def __init__(self, settings: OdataSettings, gate: Gate, hush: Callable[[str], str]) -> None:
        self.settings, self.gate, self.hush = settings, gate, hush
        parts = urlsplit(settings.service_url.strip())
        path = parts.path.removesuffix("$metadata").rstrip("/") + "/"
        self.root = f"{parts.scheme}://{parts.netloc}{path}"
        """With its slash, without query."""
        self.query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if settings.sap_client:
            self.query["sap-client"] = settings.sap_client
        if settings.language:
            self.query["sap-language"] = settings.language
        self.csrf = CsrfFound()

    def session(self) -> Session:
        """A session of its own cookies, its default headers set."""
        session = open_session(self.gate, verify_tls=self.settings.trust, pool=1)
        session.headers.update(self.settings.default_headers)
        return session

    def url(self, path: str) -> str:
        """An address relative to the root, or one that the service gave."""
        return urljoin(self.root, path) if "://" in path or path.startswith("/") else self.root + path

    def own(self, url: str) -> str:
        """An address that the service gave, as it is reached by us: behind a proxy it may name another host. Empty
        where it is none of the service's."""
        whole = self.url(url)
        found = urlsplit(whole).path.partition(urlsplit(self.root).path)
        if not whole.startswith(self.root) and found[1] and not found[0]:
            whole = self.root + found[2]
        return whole if whole.startswith(self.root) else ""

    def request(
        self, method: str, path: str, headers: dict[str, str] | None = None, data: bytes | None = None,
        params: dict[str, str] | None = None,
    ) -> requests.Request:  # fmt: skip
        """A request with the query options of every one; its auth is put in by the sender."""
        return requests.Request(
            method, self.url(path), headers=headers or {}, data=data, params={**self.query, **(params or {})}
        )


@dataclass
class Fetched:
    """How fetching a token went."""

    token: str = ""
    answer: Reply | None = None
    """An answer that ends the attempt: the service is not there (429, 5xx), or lets nobody in (401)."""
    cookies: bool = False
    tried: list[str] = field(default_factory=list)


class Sender:
    """Cookies and token of one sender: used by one thread at a time."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.session = way.session()
        self.auth = way.settings.auth.on_wire(self.session)
        self.fetched: Fetched | None = None

    def close(self) -> None:
        """Give the connections back."""
        self.session.close()

    def stop(self) -> None:
        """From another thread: cut what is under way."""
        self.session.stop()

    def read(self, request: requests.Request, seconds: float, most: int = limits.HTTP_ANSWER_BYTES) -> Reply:
        """Send a request that changes nothing. Raises NetError, ConnectorError."""
        request.auth = self.auth
        return authorised(self.session, request, timeout_seconds=seconds, max_bytes=most)

    def write(self, request: requests.Request, seconds: float, most: int = limits.HTTP_ANSWER_BYTES) -> Reply:
        """Send a request that changes something, with token and cookies; when the service refuses the token, once more
        with a fresh one. Raises NetError, ConnectorError. A second refusal is the answer: see `about_csrf`."""
        if self.way.settings.csrf == "off":
            return self.read(request, seconds, most)
        if self.fetched is None or self.fetched.answer is not None:
            self.fetched = self._before(seconds)
        if self.fetched.answer is not None:
            return self.fetched.answer
        reply = self._sent(request, seconds, most)
        if about_csrf(reply):
            self.session.cookies.clear()
            self.way.csrf.none = False
            self.fetched = self._before(seconds)
            if self.fetched.answer is not None:
                return self.fetched.answer
            reply = self._sent(request, seconds, most)
        return reply

    def _sent(self, request: requests.Request, seconds: float, most: int) -> Reply:
        assert self.fetched is not None
        if self.fetched.token:
            request.headers[HEADER] = self.fetched.token
        else:
            request.headers.pop(HEADER, None)
        request.headers.pop("Cookie", None)
        return self.read(request, seconds, most)

    def _before(self, seconds: float) -> Fetched:
        """A token, or why there is none. What goes wrong here leaves the row untouched."""
        try:
            return self.fetch(seconds)
        except NetError as error:
            raise NetError(error.reason, error.message, False) from None

    def fetch(self, seconds: float) -> Fetched:
        """Ask for a token. Raises NetError, ConnectorError."""
        found, csrf = Fetched(), self.way.csrf
        if csrf.none:
            return found
        for method, url in self._places():
            request = requests.Request(
                method, url, headers={HEADER: "Fetch", "Accept": "application/json"}, params=self.way.query
            )
            reply = self.read(request, seconds, limits.HTTP_ANSWER_BYTES)
            found.tried.append(f"{method} {urlsplit(url).path}: {reply.status}")
            token = reply.headers.get(HEADER, "").strip()
            if token and token.lower() not in ("required", "fetch"):
                csrf.place = (method, url)
                found.token, found.cookies = token, self._cookies()
                return found
            if method == "GET" and (reply.status == 401 or reply.status in self.way.settings.retry.retry_on):
                found.answer = reply
                return found
        csrf.none = True
        return found

    def _cookies(self) -> bool:
        """Whether there is a cookie that would be sent along: those for https alone are not, over http."""
        secure = self.way.root.startswith("https:")
        return any(secure or not one.secure for one in self.session.cookies)

    def _places(self) -> Iterator[tuple[str, str]]:
        """Where a token may be had, the likeliest first: where one was given, what the settings say, the service root
        with and without its slash, by HEAD and where that gives none by GET."""
        set_up = self.way.settings.csrf
        assert set_up != "off"
        urls = [self.way.root, self.way.root.rstrip("/")]
        methods = ["HEAD", "GET"]
        if set_up is not None:
            urls = [self.way.url(set_up.fetch_path)] if set_up.fetch_path else urls
            methods = list(dict.fromkeys([set_up.fetch_method, "GET"]))
        places = [(method, url) for url in urls for method in methods]
        known = self.way.csrf.place
        yield from ([known] if known else [])
        yield from (one for one in places if one != known)

    def explained(self) -> str:
        """What was seen of tokens and cookies, for people: after a second refusal."""
        found = self.fetched or Fetched()
        if not found.token:
            seen = f"No address gave a CSRF token ({'; '.join(found.tried) or 'none was asked'})"
        elif not found.cookies:
            seen = "A CSRF token was given, and no session cookie came with it that could be sent back"
            if len(self.session.cookies):
                seen += " (those that came are for https alone: write https in service_url)"
        else:
            seen = "A fresh CSRF token was sent with its session cookie"
        return f"csrf_failed: {seen}, and the service refuses the request for its CSRF token."


def about_csrf(reply: Reply) -> bool:
    """Whether a refusal is about the CSRF token, and not about rights."""
    if reply.status != 403:
        return False
    return reply.headers.get(HEADER, "").strip().lower() == "required" or b"csrf" in reply.body.lower()


def named(name: str) -> str:
    """An entity set's name in a URL."""
    return quote(name, safe="._-~")


def masked(request: requests.Request, way: Way, note: str) -> str:
    """The exact HTTP of a request, secrets cut: what a dry run shows."""
    auth: Any = way.settings.auth
    params = dict(request.params)
    headers: dict[str, str] = {}
    if auth.type == "basic":
        headers["Authorization"] = "Basic ********"
    elif auth.type in ("bearer", "oauth2-client-credentials"):
        headers["Authorization"] = "Bearer ********"
    elif auth.type == "api-key" and auth.where == "header":
        headers[auth.name] = "********"
    elif auth.type == "api-key":
        params[auth.name] = "********"
    made = requests.Request(request.method, request.url, params=params, data=request.data).prepare()
    parts = urlsplit(made.url or "")
    lines = [f"{request.method} {made.path_url} HTTP/1.1", f"Host: {parts.netloc}"]
    shown = {**way.settings.default_headers, **request.headers, **headers}
    if way.settings.csrf != "off" and note:
        shown[HEADER] = note
    lines += [f"{name}: {value}" for name, value in shown.items()]
    body = request.data.decode("utf-8", "replace") if request.data else ""
    return way.hush("\n".join([*lines, "", body]).rstrip("\n"))

"""Requests to an OData service: its URL, the parameters of every request, and cookies and CSRF token of each
client.

The OData CSRF token follows the specification (section 4, connection behaviour 5): it is fetched with
`X-CSRF-Token: Fetch`, is bound to the cookies that came with it, and is used until the service requires a new
one. Each client has its own pair, because a service whose tokens expire with use, or are bound to a session,
would otherwise reject parallel requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, urljoin, urlsplit

import requests

from webapp import limits
from webapp.connectors.http.authentication import send_authenticated
from webapp.net.gate import Gate
from webapp.net.session import NetError, Reply, Session, open_session

if TYPE_CHECKING:
    from webapp.connectors.odata.connector import OdataSettings

HEADER: Final = "X-CSRF-Token"
CAUSES: Final = (
    "Possible causes: (1) the sign-in creates a new session for every request: use basic auth or a long-lived bearer "
    "token;"
    " (2) a proxy removes cookies: configure it to forward the session cookies (SAP_SESSIONID_..., sap-usercontext);"
    " (3) the service root issues no token: set csrf.fetch_path and csrf.fetch_method to an address that issues one."
)


@dataclass
class CsrfSource:
    """Where the service issues CSRF tokens, shared by the clients of a push."""

    place: tuple[str, str] | None = None
    """Method and URL that issued a token."""
    none: bool = False
    """No address issued a token."""


class ServiceEndpoint:
    """URL and settings of a service, shared by its clients."""

    def __init__(self, settings: OdataSettings, gate: Gate, redact: Callable[[str], str]) -> None:
        self.settings, self.gate, self.redact = settings, gate, redact
        parts = urlsplit(settings.service_url.strip())
        path = parts.path.removesuffix("$metadata").rstrip("/") + "/"
        self.root = f"{parts.scheme}://{parts.netloc}{path}"
        """The service root, with a final slash and without the query."""
        self.query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if settings.sap_client:
            self.query["sap-client"] = settings.sap_client
        if settings.language:
            self.query["sap-language"] = settings.language
        self.csrf = CsrfSource()

    def session(self) -> Session:
        """Return a session with its own cookies and the default headers."""
        session = open_session(self.gate, verify_tls=self.settings.trust, pool=1)
        session.headers.update(self.settings.default_headers)
        return session

    def url(self, path: str) -> str:
        """Return an absolute URL for a path relative to the root, or for a URL from the service."""
        return urljoin(self.root, path) if "://" in path or path.startswith("/") else self.root + path

    def own(self, url: str) -> str:
        """Return a URL from the service as it can be reached from here.

        Behind a proxy, it may have another host. Empty if the URL does not belong to the service.
        """
        whole = self.url(url)
        found = urlsplit(whole).path.partition(urlsplit(self.root).path)
        if not whole.startswith(self.root) and found[1] and not found[0]:
            whole = self.root + found[2]
        return whole if whole.startswith(self.root) else ""

    def request(
        self, method: str, path: str, headers: dict[str, str] | None = None, data: bytes | None = None,
        params: dict[str, str] | None = None,
    ) -> requests.Request:  # fmt: skip
        """Return a request with the common query options. The client sets its authentication."""
        return requests.Request(
            method, self.url(path), headers=headers or {}, data=data, params={**self.query, **(params or {})}
        )


@dataclass
class Fetched:
    """The result of fetching a token."""

    token: str = ""
    answer: Reply | None = None
    """A response that ends the attempt: the service is unavailable (429, 5xx), or rejects the credentials
    (401)."""
    cookies: bool = False
    tried: list[str] = field(default_factory=list)


class ServiceClient:
    """Cookies and CSRF token of one thread."""

    def __init__(self, endpoint: ServiceEndpoint) -> None:
        self.endpoint = endpoint
        self.session = endpoint.session()
        self.auth = endpoint.settings.auth.requests_auth(self.session)
        self.fetched: Fetched | None = None

    def close(self) -> None:
        """Close the connections."""
        self.session.close()

    def stop(self) -> None:
        """Abort running requests from another thread."""
        self.session.stop()

    def read(self, request: requests.Request, seconds: float, most: int = limits.HTTP_ANSWER_BYTES) -> Reply:
        """Send a request that changes nothing. Raises NetError, ConnectorError."""
        request.auth = self.auth
        return send_authenticated(self.session, request, timeout_seconds=seconds, max_bytes=most)

    def write(self, request: requests.Request, seconds: float, most: int = limits.HTTP_ANSWER_BYTES) -> Reply:
        """Send a request that changes data, with token and cookies.

        If the service rejects the token, the request is repeated once with a new one. A second rejection is
        returned: see `is_csrf_rejection`. Raises NetError, ConnectorError.
        """
        if self.endpoint.settings.csrf == "off":
            return self.read(request, seconds, most)
        if self.fetched is None or self.fetched.answer is not None:
            self.fetched = self._before(seconds)
        if self.fetched.answer is not None:
            return self.fetched.answer
        reply = self._sent(request, seconds, most)
        if is_csrf_rejection(reply):
            self.session.cookies.clear()
            self.endpoint.csrf.none = False
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
        """Fetch a token before a row is sent. Errors leave the row untouched."""
        try:
            return self.fetch(seconds)
        except NetError as error:
            raise NetError(error.reason, error.message, False) from None

    def fetch(self, seconds: float) -> Fetched:
        """Fetch a token. Raises NetError, ConnectorError."""
        found, csrf = Fetched(), self.endpoint.csrf
        if csrf.none:
            return found
        for method, url in self._places():
            request = requests.Request(
                method,
                url,
                headers={HEADER: "Fetch", "Accept": "application/json"},
                params=self.endpoint.query,
            )
            reply = self.read(request, seconds, limits.HTTP_ANSWER_BYTES)
            found.tried.append(f"{method} {urlsplit(url).path}: {reply.status}")
            token = reply.headers.get(HEADER, "").strip()
            if token and token.lower() not in ("required", "fetch"):
                csrf.place = (method, url)
                found.token, found.cookies = token, self._cookies()
                return found
            if method == "GET" and (
                reply.status == 401 or reply.status in self.endpoint.settings.retry.retry_on
            ):
                found.answer = reply
                return found
        csrf.none = True
        return found

    def _cookies(self) -> bool:
        """Return whether a cookie would be sent back. Cookies marked as secure are not sent over http."""
        secure = self.endpoint.root.startswith("https:")
        return any(secure or not cookie.secure for cookie in self.session.cookies)

    def _places(self) -> Iterator[tuple[str, str]]:
        """Yield methods and URLs that may issue a token, the most likely first.

        These are the one that issued a token before, the one in the settings, and the service root with and
        without its slash, with HEAD and then GET.
        """
        set_up = self.endpoint.settings.csrf
        assert set_up != "off"
        urls = [self.endpoint.root, self.endpoint.root.rstrip("/")]
        methods = ["HEAD", "GET"]
        if set_up is not None:
            urls = [self.endpoint.url(set_up.fetch_path)] if set_up.fetch_path else urls
            methods = list(dict.fromkeys([set_up.fetch_method, "GET"]))
        places = [(method, url) for url in urls for method in methods]
        known = self.endpoint.csrf.place
        yield from ([known] if known else [])
        yield from (place for place in places if place != known)

    def describe_csrf(self) -> str:
        """Describe tokens and cookies after a second rejection, for users."""
        found = self.fetched or Fetched()
        if not found.token:
            seen = f"No address issued a CSRF token ({'; '.join(found.tried) or 'none was requested'})"
        elif not found.cookies:
            seen = "A CSRF token was issued, but without a session cookie that can be sent back"
            if len(self.session.cookies):
                seen += " (its cookies are only sent over https: use https in service_url)"
        else:
            seen = "A fresh CSRF token was sent with its session cookie"
        return f"csrf_failed: {seen}, and the service rejects the request because of its CSRF token."


def is_csrf_rejection(reply: Reply) -> bool:
    """Return whether a rejection concerns the CSRF token, and not permissions."""
    if reply.status != 403:
        return False
    return reply.headers.get(HEADER, "").strip().lower() == "required" or b"csrf" in reply.body.lower()


def named(name: str) -> str:
    """Return an entity set's name for a URL."""
    return quote(name, safe="._-~")


def masked(request: requests.Request, endpoint: ServiceEndpoint, note: str) -> str:
    """Return the exact HTTP request with secrets masked, for a dry run."""
    auth: Any = endpoint.settings.auth
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
    shown = {**endpoint.settings.default_headers, **request.headers, **headers}
    if endpoint.settings.csrf != "off" and note:
        shown[HEADER] = note
    lines += [f"{name}: {value}" for name, value in shown.items()]
    body = request.data.decode("utf-8", "replace") if request.data else ""
    return endpoint.redact("\n".join([*lines, "", body]).rstrip("\n"))

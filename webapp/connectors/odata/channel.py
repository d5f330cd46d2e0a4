"""A connection to an OData service: requests, responses, sending rows, and reading metadata and values.

**Requests.** The CSRF token follows the specification (section 4, connection behaviour 5): it is fetched with
`X-CSRF-Token: Fetch`, is bound to the cookies that came with it, and is used until the service requires a new one. Each
client has its own pair, because a service whose tokens expire with use, or are bound to a session, would otherwise
reject parallel requests.

**Rows** are sent to an entity set: POST (or $batch), PATCH or MERGE by key, DELETE by key. `$batch` sends many rows in
one request, with one changeset for each row, so that each row has its own outcome.

Sources: OData V2 "Batch Processing"; OData 4.01 Protocol, section 11.7.7 (Multipart Batch Format); RFC 2046, 5.1.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urljoin, urlsplit
from xml.etree.ElementTree import Element, ParseError

import pyarrow as pa
import requests
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring
from requests import Request
from requests.structures import CaseInsensitiveDict

from webapp import limits
from webapp.connectors.base import ConnectorError, WriteSpec
from webapp.connectors.column_values import ConversionError, hexed, plain
from webapp.connectors.http import retry as http_retry
from webapp.connectors.http.authentication import send_authenticated
from webapp.connectors.http.channel import LOCATION, Channel, RowOutcome, Rows, SendControl, Sender, State
from webapp.connectors.http.parallel import SenderThreads, SendingStopped
from webapp.connectors.http.retry import RequestOutcome
from webapp.connectors.http.verification import from_net_error
from webapp.connectors.odata import metadata
from webapp.connectors.odata.metadata import Service, Version
from webapp.connectors.odata.values import Shaper, instant, service_of
from webapp.connectors.rest.fetch import Fetched, Fetching, FetchOptions
from webapp.connectors.schema import Entity, Metadata
from webapp.net.gate import Gate
from webapp.net.session import NetError, Reply, Session, exchange, open_session
from webapp.net.urls import shown

if TYPE_CHECKING:
    from webapp.connectors.odata.connector import OdataConnector, OdataSettings


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
class FetchedToken:
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
        self.fetched: FetchedToken | None = None

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

    def _before(self, seconds: float) -> FetchedToken:
        """Fetch a token before a row is sent. Errors leave the row untouched."""
        try:
            return self.fetch(seconds)
        except NetError as error:
            raise NetError(error.reason, error.message, False) from None

    def fetch(self, seconds: float) -> FetchedToken:
        """Fetch a token. Raises NetError, ConnectorError.

        It may be issued by the address that issued one before, the one in the settings, or the service root with and
        without its slash, with HEAD and then GET.
        """
        found, csrf, set_up = FetchedToken(), self.endpoint.csrf, self.endpoint.settings.csrf
        if csrf.none:
            return found
        assert set_up != "off"
        urls = [self.endpoint.root, self.endpoint.root.rstrip("/")]
        methods = ["HEAD", "GET"]
        if set_up is not None:
            urls = [self.endpoint.url(set_up.fetch_path)] if set_up.fetch_path else urls
            methods = list(dict.fromkeys([set_up.fetch_method, "GET"]))
        places = [(method, url) for url in urls for method in methods]
        if known := csrf.place:
            places = [known, *(place for place in places if place != known)]
        for method, url in places:
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
                # Cookies marked as secure are not sent back over http.
                secure = self.endpoint.root.startswith("https:")
                found.token = token
                found.cookies = any(secure or not cookie.secure for cookie in self.session.cookies)
                return found
            if method == "GET" and (
                reply.status == 401 or reply.status in self.endpoint.settings.retry.retry_on
            ):
                found.answer = reply
                return found
        csrf.none = True
        return found

    def describe_csrf(self) -> str:
        """Describe tokens and cookies after a second rejection, for users."""
        found = self.fetched or FetchedToken()
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


# --- Responses ----------------------------------------------------------------------------------------------

_DEPTH: Final = 6  # chosen: errors inside errors
_DATE: Final = re.compile(r"/Date\((-?\d{1,16})([+-]\d{1,4})?\)/", re.ASCII)
_TYPED: Final = re.compile(
    r"(?:guid|datetimeoffset|datetime|time|duration|binary|X|[\w.]+)?'((?:[^']|'')*)'|([^']*)"
)
_PARTS: Final = re.compile(r"(?:([\w.]+)=)?((?:[\w.]*'(?:[^']|'')*')|[^,']*)(?:,|$)")
_TAG: Final = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
# Words in errors and their reasons, in order: codes of CAP and SAP, then messages of databases.
_MEANINGS: Final[Sequence[tuple[str, re.Pattern[str]]]] = tuple(
    (reason, re.compile(words, re.IGNORECASE))
    for reason, words in (
        ("not_null", r"not.null constraint|assert_mandatory|assert_not_null|cannot be null|must not be null"),
        ("unique", r"unique.constraint|already exist|duplicate (key|entr|record)|entity_already_exists"),
        (
            "foreign_key",
            r"foreign key constraint|assert_target|assert_reference_integrity|reference integrity",
        ),
        ("too_long", r"too long|exceeds the maximum length|maximum length of"),
        ("out_of_range", r"assert_enum|assert_range|out of range|allowed values"),
        ("wrong_type", r"assert_data_type|assert_format|is not a valid|invalid (value|format)"),
    )
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a service rejected a request. `read` says whether the error is in OData's format."""

    code: str
    message: str
    """Code, message, target and details in one text."""
    read: bool

    def meaning(self) -> str:
        """Return the `base.REASONS` entry for known words, or ""."""
        return next((reason for reason, words in _MEANINGS if self.read and words.search(self.message)), "")


def fault(body: bytes) -> Fault:
    """Parse an error body of V2 or V4 in JSON or XML. Any other body becomes text without tags."""
    text = body.decode("utf-8", "replace").strip()
    found: Any = None
    if text[:1] == "{":
        with suppress(ValueError, RecursionError):
            whole = json.loads(text)
            found = whole.get("error") or whole.get("odata.error")
    elif text[:1] == "<":
        with suppress(ParseError, DefusedXmlException, ValueError, LookupError):
            root = fromstring(body, forbid_dtd=True)
            if root.tag.endswith("}error") or root.tag == "error":
                found = _plain(root)
    if not isinstance(found, Mapping):
        plain = " ".join(_TAG.sub(" ", text).split()) if text[:1] == "<" else text
        return Fault("", plain[: limits.HTTP_BODY_CHARS], False)
    lines = list(dict.fromkeys(_lines(found)))
    return Fault(_word(found.get("code")), "; ".join(lines)[: limits.HTTP_BODY_CHARS], True)


def _plain(element: Element, depth: int = 0) -> Any:
    """Convert elements to the JSON of the same error."""
    if depth > _DEPTH or not len(element):
        return (element.text or "").strip()
    found: dict[str, Any] = {}
    for one in element:
        name, value = one.tag.rpartition("}")[2], _plain(one, depth + 1)
        if name in ("errordetail", "detail"):
            found.setdefault("errordetails", []).append(value)
        elif name == "errordetails" and isinstance(value, Mapping):
            found[name] = value.get("errordetails", [])
        else:
            found[name] = value
    return found


def _word(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("value", value.get("#text", ""))
    return str(value).strip() if isinstance(value, str | int) else ""


def _lines(error: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield `CODE: message (target)` for an error and its details."""
    message, code = _word(error.get("message")), _word(error.get("code"))
    target = _word(error.get("target")) or _word(error.get("propertyref"))
    if message or code:
        said = f"{code}: {message}" if code and message else code or message
        yield f"{said} ({target})" if target.strip("/") and not target.startswith("/#") else said
    if depth >= _DEPTH:
        return
    inner = error.get("innererror")
    details = [error.get("details"), error.get("errordetails")]
    if isinstance(inner, Mapping):
        details.append(inner.get("errordetails"))
        yield from _lines(inner, depth + 1)
    for some in details:
        for one in some if isinstance(some, list) else ():
            if isinstance(one, Mapping):
                yield from _lines(one, depth + 1)


# --- Keys ---------------------------------------------------------------------------------------------------


def values(body: bytes, version: Version) -> dict[str, Any]:
    """Return the properties of the created row, with dates of V2 as ISO text. Empty if the response contains
    none."""
    try:
        found = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return {}
    if isinstance(found, dict) and version == "v2":
        found = found.get("d", {})
        if isinstance(found, dict) and isinstance(found.get("results"), dict):
            found = found["results"]
    if not isinstance(found, dict):
        return {}
    return {
        name: _dated(value) if version == "v2" else value
        for name, value in found.items()
        if "@" not in name and name != "__metadata"
    }


def _dated(value: Any) -> Any:
    found = _DATE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=int(found[1]))  # noqa: DTZ001
    except OverflowError:
        return value
    return instant(moment.replace(tzinfo=dt.UTC) if found[2] else moment)


def key_of(location: str, names: Sequence[str]) -> dict[str, str]:
    """Return the key in `.../Orders(ID=guid'…',Item=2)` as text by name. An unnamed key belongs to the only
    name."""
    said = unquote(location.partition("?")[0].rstrip("/").rpartition("/")[2]) if location else ""
    if not said.endswith(")") or "(" not in said:
        # An apostrophe may contain a slash: search the whole URL for the parentheses.
        said = unquote(location)
    inner = said[said.find("(") + 1 : -1] if said.endswith(")") and "(" in said else ""
    found = {}
    for part in _PARTS.finditer(inner):
        name, value = part[1] or (names[0] if len(names) == 1 else ""), part[2]
        if name in names and value:
            found[name] = _unquoted(value)
    return found


def _unquoted(value: str) -> str:
    found = _TYPED.fullmatch(value)
    if found is not None and found[1] is not None:
        return found[1].replace("''", "'")
    bare = re.fullmatch(r"(-?\d+(?:\.\d+)?)[LlMmDdFf]", value)
    return bare[1] if bare else value


# --- Sending ------------------------------------------------------------------------------------------------

_ACCEPT: Final = {"Accept": "application/json"}
_VERSIONS: Final = {
    "v2": {"DataServiceVersion": "2.0", "MaxDataServiceVersion": "2.0"},
    "v4": {"OData-Version": "4.0", "OData-MaxVersion": "4.0"},
}

_ONCE_MORE: Final = "An earlier attempt of this row may have stored it."


@dataclass(frozen=True, slots=True)
class _Row:
    """The request for a row, or the error that prevents it."""

    index: int
    request: Request | None
    path: str = ""
    error: ConversionError | None = None


class OdataSender(Sender):
    """See `Sender`."""

    size = limits.HTTP_CHUNK_ROWS

    def __init__(
        self, endpoint: ServiceEndpoint, shaper: Shaper, writing: WriteSpec, control: SendControl
    ) -> None:
        self.endpoint, self.shaper, self.writing, self.settings = endpoint, shaper, writing, endpoint.settings
        self.repeatable = self.settings.idempotent or writing.mode == "update"
        self.capture = tuple(dict.fromkeys([*writing.capture, *self.settings.capture]))
        self._control = control
        self._threads = SenderThreads(
            control, self.settings.retry, self.settings.parallel, self.settings.rate_per_second
        )
        self._lock = threading.Lock()
        self._idle: list[ServiceClient] = []
        self._all: list[ServiceClient] = []
        self._answered = self._stopped = False
        key = set(shaper.kind.key)
        if writing.mode == "update" and set(writing.key_columns or key) != key:
            raise ConnectorError(
                "OData can update rows only by their key.",
                reason="unsupported",
                hint=f"Use {', '.join(shaper.kind.key) or 'an entity set that has a key'} as key columns.",
            )

    def close(self) -> None:
        """Stop the threads and close the connections."""
        self._threads.close()
        for one in self._all:
            one.close()

    def stop(self) -> None:
        """Abort running requests from another thread."""
        with self._lock:
            self._stopped, clients = True, list(self._all)
        for client in clients:
            client.stop()

    @contextmanager
    def _client(self) -> Iterator[ServiceClient]:
        """Yield a client for one thread. Cookies and token are not shared between threads."""
        with self._lock:
            client = self._idle.pop() if self._idle else None
            if client is None:
                client = ServiceClient(self.endpoint)
                self._all.append(client)
            if self._stopped:
                client.stop()
        try:
            yield client
        finally:
            with self._lock:
                self._idle.append(client)

    # --- interface

    def send(self, rows: Rows, stop_at_failure: bool = False) -> list[RowOutcome]:
        """See `Sender.send`."""
        made = self._made(rows)
        if self.settings.batch and self.writing.mode == "insert":
            return self._batched(made, stop_at_failure)
        return self._threads.run(len(made), lambda place: self._one(made[place]), stop_at_failure)

    def delete(self, rows: Rows) -> list[RowOutcome]:
        """See `ServiceClient.delete`. A row is found by its key, or by its captured Location (`@location`)."""
        made = []
        for index, values in enumerate(_values(rows, self.writing)):
            try:
                location = values.get(LOCATION)
                path = self.shaper.path(values) if location is None else self.endpoint.own(str(location))
                if not path:
                    raise ConversionError("wrong_type", f"{location} is not an address of this service")
                headers = {**_ACCEPT, **_VERSIONS[self.shaper.version]}
                made.append(_Row(index, self.endpoint.request("DELETE", path, headers), path))
            except ConversionError as error:
                made.append(_Row(index, None, error=error))
        return self._threads.run(len(made), lambda place: self._one(made[place]))

    def requests(self, rows: Rows) -> list[str]:
        """See `Sender.requests`."""
        note = "(fetched before the first row is sent)"
        texts = []
        for row in self._made(rows):
            if row.request is None:
                texts.append(self.endpoint.redact(f"Not sent: {row.error}"))
            elif self.settings.batch and self.writing.mode == "insert":
                texts.append(masked(self._batch([row], "batch", True), self.endpoint, note))
            else:
                texts.append(masked(row.request, self.endpoint, note))
        return texts

    # --- requests

    def _made(self, rows: Rows) -> list[_Row]:
        """Return the request of each row."""
        updating = self.writing.mode == "update"
        method = "POST" if not updating else "PATCH" if self.shaper.version == "v4" else "MERGE"
        made = []
        for index, values in enumerate(_values(rows, self.writing)):
            try:
                path = self.shaper.path(values) if updating else named(self.writing.entity.name)
                body = self.shaper.body(values, updating)
                headers = {
                    **_ACCEPT,
                    "Content-Type": "application/json" + (";IEEE754Compatible=true" if body.strings else ""),
                    **_VERSIONS[self.shaper.version],
                    "Idempotency-Key": rows.keys[index],
                    "X-Rowsmith-Row": str(rows.numbers[index]),
                }
                if method == "PATCH":  # without If-Match, it would create a missing row (OData 4.01, 11.4.4)
                    headers["If-Match"] = "*"
                made.append(_Row(index, self.endpoint.request(method, path, headers, body.text()), path))
            except ConversionError as error:
                made.append(_Row(index, None, error=error))
        return made

    # --- single rows

    def _one(self, row: _Row) -> RowOutcome:
        """Send a row. Raises `ConnectorError` if no row can be sent, and none has been."""
        if row.request is None:
            return _unsent(row)
        request, seconds = row.request, self.settings.retry.timeout_seconds
        with self._client() as client:
            tried, stopped = self._threads.attempt(lambda: self._written(client, request, seconds))
            return self._ended(row.index, tried, stopped, request.method, client)

    def _written(self, client: ServiceClient, request: Request, seconds: float) -> Reply:
        """One attempt. A service that wants an ETag for a change by key gets the one that fits every row."""
        reply = client.write(request, seconds)
        if request.method != "POST" and "If-Match" not in request.headers and _wants_etag(reply):
            request.headers["If-Match"] = "*"
            reply = client.write(request, seconds)
        return reply

    def _ended(
        self, index: int, tried: RequestOutcome, stopped: bool, method: str, client: ServiceClient
    ) -> RowOutcome:
        if tried.reply is not None:
            return self._answer(index, tried, tried.reply, stopped, method, client)
        ended = http_retry.ended(index, tried, stopped, self.endpoint.redact)
        if ended.reason == "unreachable" and ended.state == "failed" and not self._answered:
            assert tried.error is not None
            raise from_net_error(tried.error)
        return ended

    def _answer(
        self,
        index: int,
        tried: RequestOutcome,
        reply: Reply,
        stopped: bool,
        method: str,
        client: ServiceClient,
    ) -> RowOutcome:
        csrf = is_csrf_rejection(reply) and self.settings.csrf != "off"
        if csrf and not self._answered:
            raise ConnectorError(client.describe_csrf(), reason="csrf_failed", hint=CAUSES)
        self._answered = self._answered or not csrf
        if 200 <= reply.status < 300:
            return RowOutcome(
                index, "delivered", reply.status, tried.attempts, ms=tried.ms, keys=self._keys(reply)
            )
        found = fault(reply.body)
        reason = "csrf" if csrf else _reason(reply, found, method)
        message = found.message or reply.reason or f"Status {reply.status}"
        if csrf:
            message = f"{client.describe_csrf()} {CAUSES}"
        state: State = "failed"
        if reason == "unique" and (tried.unanswered or self.writing.again):
            state, message = "unknown", f"{message} {_ONCE_MORE}"
        if stopped and state == "failed":
            reason = "interrupted"
        text = self.endpoint.redact(message)[: limits.HTTP_BODY_CHARS]
        return RowOutcome(index, state, reply.status, tried.attempts, reason, text, tried.ms)

    def _keys(self, reply: Reply) -> dict[str, Any]:
        """Return the captured values, from the body, otherwise from the URL of the created row."""
        if not self.capture:
            return {}
        told = values(reply.body, self.shaper.version) if not reply.truncated else {}
        location = reply.headers.get("Location") or reply.headers.get("OData-EntityId") or ""
        in_key = key_of(location, self.shaper.kind.key)
        found: dict[str, Any] = {}
        for name in self.capture:
            if name == LOCATION:
                found |= {name: self.endpoint.own(location) or location} if location else {}
            elif (value := told.get(name, in_key.get(name))) is not None:
                found[name] = value
        return found

    # --- batches

    def _batch(self, rows: Sequence[_Row], boundary: str, onward: bool) -> Request:
        inner = [row.request for row in rows if row.request is not None]
        headers = {"Accept": "multipart/mixed", "Content-Type": f"multipart/mixed; boundary={boundary}"}
        headers |= _VERSIONS[self.shaper.version]
        if onward and self.shaper.version == "v4":
            headers["Prefer"] = "odata.continue-on-error"
        return self.endpoint.request(
            "POST", "$batch", headers, batch_body(inner, [row.path for row in rows], boundary)
        )

    def _batched(self, rows: Sequence[_Row], stop_at_failure: bool) -> list[RowOutcome]:
        """Send rows in one request, and those that the service skipped or that must be retried in further
        ones."""
        ended = {row.index: _unsent(row) for row in rows if row.request is None}
        pending = [row for row in rows if row.request is not None]
        answered: Counter[int] = Counter()
        with self._client() as client:
            while pending:
                try:
                    done, again = self._round(client, pending, answered, stop_at_failure)
                except SendingStopped:
                    break
                ended |= {one.index: one for one in done}
                if stop_at_failure and any(one.state != "delivered" for one in done):
                    break
                pending = again
                if any(answered[row.index] for row in again):
                    try:
                        self._control.wait(
                            self.settings.retry.wait_before(max(answered[row.index] for row in again))
                        )
                    except Exception:  # any exception that stops the push
                        text = "The push ended before the row was sent again."
                        ended |= {
                            row.index: RowOutcome(row.index, "failed", None, 1, "interrupted", text)
                            for row in again
                            if answered[row.index]
                        }
                        break
        found = sorted(ended.values(), key=lambda one: one.index)
        return [
            one for place, one in enumerate(found) if one.index == place
        ]  # the checks before a row that has not been started

    def _round(
        self, client: ServiceClient, pending: Sequence[_Row], answered: Counter[int], stop_at_failure: bool
    ) -> tuple[list[RowOutcome], list[_Row]]:
        """Send one request, and return the finished rows and the rows to send again.

        `responded` counts the responses for each row. Raises `SendingStopped` if nothing was sent.
        """
        retry = self.settings.retry
        request = self._batch(pending, f"batch_{secrets.token_hex(8)}", not stop_at_failure)
        tried, stopped = self._threads.attempt(
            lambda: client.write(request, retry.timeout_seconds, limits.ODATA_BATCH_BYTES)
        )
        if tried.reply is None or not http_retry.delivered(tried.reply):
            end = self._ended(0, tried, stopped, "POST", client)
            return [replace(end, index=row.index) for row in pending], []
        try:
            parts = batch_answers(tried.reply)
        except BadBatch as error:
            told = RowOutcome(
                0,
                "unknown",
                tried.reply.status,
                tried.attempts,
                "rejected",
                f"The response could not be read: {error}.",
                tried.ms,
            )
            return [replace(told, index=row.index) for row in pending], []
        done: list[RowOutcome] = []
        again: list[_Row] = []
        for row, part in zip(pending, parts, strict=False):
            answered[row.index] += 1
            if part.status in retry.retry_on and answered[row.index] <= retry.retries and not stopped:
                again.append(row)
            else:
                own = RequestOutcome(part, None, answered[row.index], False, tried.unanswered, tried.ms)
                done.append(self._answer(row.index, own, part, stopped, "POST", client))
        return done, [*again, *pending[len(parts) :]]


def _values(rows: Rows, writing: WriteSpec) -> Iterator[dict[str, Any]]:
    """Yield rows as Python values by column name."""
    types = {column.name: column.type for column in writing.columns}
    columns = []
    for name, array in zip(rows.batch.schema.names, rows.batch.columns, strict=True):
        values = plain(array)
        if pa.types.is_binary(values.type) and types.get(name, "text") not in ("binary", "uuid", "other"):
            values = hexed(values)
        columns.append(values.to_pylist())
    names = rows.batch.schema.names
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _unsent(row: _Row) -> RowOutcome:
    assert row.error is not None
    return RowOutcome(
        row.index, "failed", None, 1, row.error.reason, str(row.error)[: limits.HTTP_BODY_CHARS]
    )


def _wants_etag(reply: Reply) -> bool:
    """Return whether an ETag is required: 428 in RFC 6585; older services only say so in the message."""
    body = reply.body.lower()
    return reply.status == 428 or (reply.status in (400, 412) and (b"if-match" in body or b"etag" in body))


def _reason(reply: Reply, fault: Fault, method: str) -> str:
    """Return why a request was rejected: see `channel.HTTP_REASONS` and `base.REASONS`."""
    if reply.status in (401, 403):
        return "forbidden"
    if method != "POST" and reply.status in (404, 410):
        return "missing_row"
    if method == "PATCH" and reply.status == 412:
        return "missing_row"
    if reply.status == 429:
        return "throttled"
    found = fault.meaning()
    if reply.status >= 500:
        return found or ("rejected" if reply.status == 500 and fault.read else "unavailable")
    return found or "rejected"


_BOUNDARY: Final = re.compile(r'boundary="?([^";,\s]+)"?', re.IGNORECASE)
_STATUS: Final = re.compile(rb"HTTP/1\.\d (\d{3}) ?([^\r\n]*)\r?\n")
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")


class BadBatch(ValueError):
    """A batch response that cannot be parsed."""


def batch_body(inner: Sequence[Request], paths: Sequence[str], boundary: str) -> bytes:
    """The multipart body of some requests; `paths` are theirs, relative to the service root."""
    parts: list[bytes] = []
    for index, (one, path) in enumerate(zip(inner, paths, strict=True), 1):
        parts += [
            f"--{boundary}\r\nContent-Type: multipart/mixed; boundary={boundary}-{index}\r\n\r\n".encode(),
            batch_part(one, path, f"{boundary}-{index}", index),
            b"\r\n",
        ]
    return b"".join([*parts, f"--{boundary}--\r\n".encode()])


def batch_part(one: Request, path: str, boundary: str, number: int) -> bytes:
    """One changeset of one request."""
    data: bytes = one.data or b""
    headers = {**one.headers, "Content-Length": str(len(data))}
    lines = [
        f"--{boundary}", "Content-Type: application/http", "Content-Transfer-Encoding: binary",
        f"Content-ID: {number}", "", f"{one.method} {path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.items()), "", "",
    ]  # fmt: skip
    return "\r\n".join(lines).encode() + data + f"\r\n--{boundary}--\r\n".encode()


def batch_answers(reply: Reply) -> list[Reply]:
    """Return the responses in a batch response, in the order of the rows. Raises `BadBatch`."""
    if reply.truncated:
        raise BadBatch("the batch response is too long or was interrupted")
    found = _answers(reply.body, reply.headers.get("Content-Type", ""), reply, 0)
    if not found:
        raise BadBatch("the batch response contains no responses")
    return found


def _answers(content: bytes, kind: str, reply: Reply, depth: int) -> list[Reply]:
    found = _BOUNDARY.search(kind)
    if found is None or depth > 2:
        raise BadBatch(f"the batch response is {kind.partition(';')[0] or 'untyped'}, not multipart/mixed")
    mark = b"--" + found[1].encode("latin-1", "replace")
    pieces = re.split(rb"(?:^|\r?\n)" + re.escape(mark) + rb"(?=--|[ \t]*\r?\n)", content)
    out: list[Reply] = []
    for piece in pieces[1:]:
        if piece.startswith(b"--"):
            break
        head, inner = _split(piece.lstrip(b" \t").removeprefix(b"\r").removeprefix(b"\n"))
        inner_kind = head.get("Content-Type", "")
        if inner_kind.lower().startswith("multipart/"):
            out += _answers(inner, inner_kind, reply, depth + 1)
        else:
            out.append(_http(inner, reply))
    return out


def _http(text: bytes, reply: Reply) -> Reply:
    text = text.lstrip(b"\r\n")
    line = _STATUS.match(text)
    if line is None:
        raise BadBatch("a part of the batch response is not an HTTP response")
    headers, content = _split(text[line.end() :])
    length = headers.get("Content-Length", "")
    if length.isdigit():
        content = content[: int(length)]
    return Reply(int(line[1]), line[2].decode("latin-1"), headers, content, False, reply.url, reply.ms)


def _split(text: bytes) -> tuple[CaseInsensitiveDict[str], bytes]:
    """Split a part into headers and content. Either may be empty."""
    headers: CaseInsensitiveDict[str] = CaseInsensitiveDict()
    if text.startswith((b"\r\n", b"\n")):
        return headers, text.removeprefix(b"\r").removeprefix(b"\n")
    end = _HEAD_END.search(text)
    head, rest = (text[: end.start()], text[end.end() :]) if end else (text, b"")
    for line in head.decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip()] = value.strip()
    return headers, rest


# --- Channel ------------------------------------------------------------------------------------------------

_XML = {"Accept": "application/xml"}
_JSON = {"Accept": "application/json"}
_IEEE = "ieee754compatible=true"


class OdataChannel(Channel):
    """See `Channel`."""

    def __init__(self, connector: OdataConnector, seconds: float) -> None:
        self.connector, self.settings, self.seconds = connector, connector.settings, seconds
        self.endpoint = ServiceEndpoint(connector.settings, connector.gate, connector.redact)
        self._lock = threading.Lock()
        self._client: ServiceClient | None = None
        self._sendings: list[OdataSender] = []
        self._fetching: Session | None = None
        self._service: Service | None = None
        self._stopped = False
        self._last: Reply | None = None

    def close(self) -> None:
        """See `Link.close`."""
        with self._lock:
            client, self._client, sendings = self._client, None, list(self._sendings)
        for sending in sendings:
            sending.close()
        if client is not None:
            client.close()

    def cancel(self) -> None:
        """See `Link.cancel`."""
        with self._lock:
            self._stopped, client, sendings = True, self._client, list(self._sendings)
            fetching = self._fetching
        for one in sendings:
            one.stop()
        if client is not None:
            client.stop()
        if fetching is not None:
            fetching.stop()

    def _reader(self) -> ServiceClient:
        with self._lock:
            if self._client is None:
                self._client = ServiceClient(self.endpoint)
            if self._stopped:
                self._client.stop()
            return self._client

    def _get(
        self, path: str, headers: dict[str, str], params: dict[str, str] | None = None, most: int = 0
    ) -> Reply:
        request = self.endpoint.request("GET", path, dict(headers), params=params)
        self._last = self._reader().read(request, self.seconds, most or limits.HTTP_ANSWER_BYTES)
        return self._last

    # --- metadata

    def service(self) -> Service:
        """Return the service's model, which is read once from the uploaded document or fetched. Raises
        `ConnectorError`."""
        if self._service is None:
            document = self.connector.document
            found = metadata.read_safely(self._document() if document is None else document)
            if self.settings.odata_version != "auto":
                found.version = self.settings.odata_version
            self._service = found
        return self._service

    def _document(self) -> bytes:
        """Fetch `$metadata`. A 401 only for `$metadata` is a policy of the gateway (specification, section 4,
        behaviour 7)."""
        try:
            reply = self._get("$metadata", _XML, most=limits.ODATA_DOCUMENT_BYTES)
        except NetError as error:
            raise from_net_error(error) from None
        if reply.status == 200 and not reply.truncated:
            return reply.body
        if reply.truncated:
            most = limits.ODATA_DOCUMENT_BYTES // limits.MB
            raise metadata.bad_document(f"The $metadata document is larger than {most} MB.")
        said = self.connector.redact(fault(reply.body).message)[:200]
        if reply.status in (401, 403) and self._root_status() == 200:
            raise ConnectorError(
                f"$metadata returns {reply.status}, but the service root returns 200: the gateway treats metadata"
                " differently.",
                reason="metadata_refused",
                hint="Allow $metadata for the same account in the gateway, or upload the $metadata document, which is"
                " then used instead of fetching it.",
            )
        reason = (
            "auth_failed"
            if reply.status == 401
            else "no_permission"
            if reply.status == 403
            else "no_metadata"
        )
        raise ConnectorError(
            f"$metadata returned {reply.status}: {said or reply.reason}",
            reason=reason,
            hint="Check service_url: it is the parent address of $metadata, such as .../sap/opu/odata/sap/NAME/."
            if reason == "no_metadata"
            else "Check the user name, the password and the authorizations of this account.",
            transient=reply.status in self.settings.retry.retry_on,
        )

    def _root_status(self) -> int:
        try:
            return self._get("", _JSON).status
        except NetError:
            return 0

    def metadata(self) -> Metadata:
        """See `Link.metadata`."""
        return metadata.metadata(self.service())

    def entity(self, name: str) -> Entity | None:
        """See `Link.entity`: uses known metadata first, then the service."""
        known = self.connector.known
        if known is not None and self.connector.document is None:
            named_so = [entity for entity in known.entities if entity.name == name]
            if named_so:
                return named_so[0]
        service = self.service()
        found = service.sets.get(name)
        if found is None:
            alike = [one for one in service.sets if one.lower() == name.lower()]
            found = service.sets[alike[0]] if len(alike) == 1 else None
        return metadata.entity(service, found) if found is not None else None

    # --- reading values

    def fetch(self, paths: Sequence[str], manner: FetchOptions) -> Fetched:
        """See `rest.fetch.Fetches`: fetches paths below the service root, with the parameters of every
        request."""
        settings, endpoint = self.settings, self.endpoint
        base = f"{endpoint.root}?{urlencode(endpoint.query)}" if endpoint.query else endpoint.root
        with open_session(endpoint.gate, verify_tls=settings.trust, pool=settings.parallel) as session:
            with self._lock:
                self._fetching = session
                if self._stopped:
                    session.stop()
            try:
                return Fetching(
                    self.connector, session, settings.auth.requests_auth(session), manner, base
                ).all(paths)
            finally:
                with self._lock:
                    self._fetching = None

    # --- sending

    def sending(self, writing: WriteSpec, control: SendControl) -> OdataSender:
        """See `Channel.sending`."""
        if self.connector.read_only:
            raise ConnectorError(
                "This connection is read-only.", code="read_only_connection", reason="read_only"
            )
        if writing.mode not in self.connector.can.modes:
            raise ConnectorError(
                f"OData does not support {writing.mode}.",
                reason="unsupported",
                hint="Use insert, or update by key.",
            )
        try:
            service = self.service()
        except ConnectorError as error:
            if error.reason not in ("metadata_refused", "no_metadata", "no_permission"):
                raise
            # Without its metadata, the service is derived from the columns of the entity.
            version = self.settings.odata_version
            if version == "auto":
                known = self.connector.known
                version = "v2" if known is not None and known.version.endswith("V2") else "v4"
            service = service_of(writing.entity, version)
        if writing.entity.name not in service.sets:
            raise ConnectorError(
                f"The service has no entity set {writing.entity.name}.",
                reason="no_table",
                hint="Refresh the metadata.",
            )
        strings = _IEEE in self.settings.default_headers.get("Content-Type", "").lower()
        shaper = Shaper(service, service.sets[writing.entity.name], self.endpoint.root, strings)
        made = OdataSender(self.endpoint, shaper, writing, control)
        with self._lock:
            self._sendings.append(made)
        return made

    # --- verification

    def response(self) -> dict[str, Any] | None:
        """Return the last response, for the report of a verification."""
        reply = self._last
        if reply is None:
            return None
        text = reply.body[: limits.HTTP_BODY_CHARS].decode("utf-8", "replace")
        return {
            "method": "GET",
            "url": shown(reply.url),
            "status": reply.status,
            "content_type": reply.headers.get("Content-Type", ""),
            "body": self.connector.redact(text),
            "ms": reply.ms,
        }

    def greeted(self) -> str:
        """Run the stage `tls`. Raises NetError (reason `tls_failed`)."""
        if not self.endpoint.root.startswith("https:"):
            return "Without TLS: credentials and rows are sent unencrypted."
        session = self.endpoint.session()
        try:
            exchange(
                session, requests.Request("HEAD", self.endpoint.root), timeout_seconds=limits.TARGET_CONNECT_SECONDS,
                max_bytes=limits.HTTP_ANSWER_BYTES, follow=False,
            )  # fmt: skip
        except NetError as error:
            if error.reason != "reset":
                raise
        finally:
            session.close()
        return "The certificate is trusted."

    def let_in(self) -> str:
        """Run the stage `auth`."""
        reply = self._get("", _JSON)
        if reply.status == 401:
            raise ConnectorError(
                f"The service root returned 401: {fault(reply.body).message[:200] or reply.reason}",
                reason="auth_failed",
                hint="Check the kind of authentication, the account and its password or token.",
            )
        if reply.status < 300 and "html" in reply.headers.get("Content-Type", ""):
            raise ConnectorError(
                "The service root returned an HTML page, probably a login form.",
                reason="auth_failed",
                hint="Use an account that signs in without a browser: basic, a bearer token, or client credentials.",
            )
        return f"The service root returned {reply.status}."

    def permitted(self) -> str:
        """Run the stage `permission`: the metadata, and a CSRF token if the service issues one."""
        service = self.service()
        if not service.sets:
            raise ConnectorError(
                "The service has no entity sets.",
                reason="no_permission",
                hint="Check service_url, and the account's authorizations.",
            )
        origin = "uploaded document" if self.connector.document is not None else "$metadata"
        said = f"OData {service.version.upper()}, {len(service.sets)} entity sets ({origin})."
        if self.settings.csrf == "off":
            return said
        found = self._reader().fetch(self.seconds)
        return (
            f"{said} A CSRF token was issued ({found.tried[-1]})."
            if found.token
            else f"{said} No CSRF token was issued."
        )

    def sampled(self) -> str:
        """Run the stage `sample`. Skips sets that require a filter. The first set that returns rows is
        enough."""
        service, told = self.service(), ""
        sets = [one for one in service.sets.values() if one.terms.get("required-in-filter") is not True]
        for one in sets[:3]:
            reply = self._get(named(one.name), _JSON, {"$top": "1"})
            if reply.status < 300:
                return f"{one.name} returned rows."
            told = told or f"{one.name} returned {reply.status}: {fault(reply.body).message[:200]}"
        if not told:
            return "All entity sets require a filter: none was read."
        raise ConnectorError(
            told,
            reason="no_permission",
            hint="Check that the account can read the entity sets. Sending rows may still be possible.",
        )

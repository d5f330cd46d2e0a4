"""A connection to an OData service: requests, responses, sending rows, and reading metadata and values.

**Requests.** The OData CSRF token follows the specification (section 4, connection behaviour 5): it is fetched with
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
from webapp.connectors.column_values import ConversionError, to_hex, to_plain
from webapp.connectors.http import retry as http_retry
from webapp.connectors.http.authentication import send_authenticated
from webapp.connectors.http.channel import LOCATION, Channel, RowBatch, RowOutcome, SendControl, Sender, State
from webapp.connectors.http.parallel import SenderThreads, SendingStopped
from webapp.connectors.http.retry import RequestOutcome
from webapp.connectors.http.verification import from_net_error
from webapp.connectors.odata import metadata
from webapp.connectors.odata.metadata import Service, Version
from webapp.connectors.odata.values import BodyBuilder, format_instant, service_of
from webapp.connectors.rest.fetch import Fetched, Fetcher, FetchOptions
from webapp.connectors.schema import Entity, Metadata
from webapp.net.gate import Gate
from webapp.net.session import NetError, Reply, Session, exchange, open_session
from webapp.net.urls import display_url

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

    location: tuple[str, str] | None = None
    """Method and URL that issued a token."""
    is_absent: bool = False
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

    def local_url(self, url: str) -> str:
        """Return a URL from the service as it can be reached from here.

        Behind a proxy, it may have another host. Empty if the URL does not belong to the service.
        """
        absolute = self.url(url)
        parts = urlsplit(absolute).path.partition(urlsplit(self.root).path)
        if not absolute.startswith(self.root) and parts[1] and not parts[0]:
            absolute = self.root + parts[2]
        return absolute if absolute.startswith(self.root) else ""

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
    reply: Reply | None = None
    """A response that ends the attempt: the service is unavailable (429, 5xx), or rejects the credentials
    (401)."""
    cookies: bool = False
    attempted_urls: list[str] = field(default_factory=list)


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

    def read(
        self, request: requests.Request, seconds: float, max_bytes: int = limits.HTTP_RESPONSE_BYTES
    ) -> Reply:
        """Send a request that changes nothing. Raises NetError, ConnectorError."""
        request.auth = self.auth
        return send_authenticated(self.session, request, timeout_seconds=seconds, max_bytes=max_bytes)

    def write(
        self, request: requests.Request, seconds: float, max_bytes: int = limits.HTTP_RESPONSE_BYTES
    ) -> Reply:
        """Send a request that changes data, with token and cookies.

        If the service rejects the token, the request is repeated once with a new one. A second rejection is
        returned: see `is_csrf_rejection`. Raises NetError, ConnectorError.
        """
        if self.endpoint.settings.csrf == "off":
            return self.read(request, seconds, max_bytes)
        if self.fetched is None or self.fetched.reply is not None:
            self.fetched = self._fetch_token(seconds)
        if self.fetched.reply is not None:
            return self.fetched.reply
        reply = self._send(request, seconds, max_bytes)
        if is_csrf_rejection(reply):
            self.session.cookies.clear()
            self.endpoint.csrf.is_absent = False
            self.fetched = self._fetch_token(seconds)
            if self.fetched.reply is not None:
                return self.fetched.reply
            reply = self._send(request, seconds, max_bytes)
        return reply

    def _send(self, request: requests.Request, seconds: float, max_bytes: int) -> Reply:
        assert self.fetched is not None
        if self.fetched.token:
            request.headers[HEADER] = self.fetched.token
        else:
            request.headers.pop(HEADER, None)
        request.headers.pop("Cookie", None)
        return self.read(request, seconds, max_bytes)

    def _fetch_token(self, seconds: float) -> FetchedToken:
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
        result, csrf, settings = FetchedToken(), self.endpoint.csrf, self.endpoint.settings.csrf
        if csrf.is_absent:
            return result
        assert settings != "off"
        urls = [self.endpoint.root, self.endpoint.root.rstrip("/")]
        methods = ["HEAD", "GET"]
        if settings is not None:
            urls = [self.endpoint.url(settings.fetch_path)] if settings.fetch_path else urls
            methods = list(dict.fromkeys([settings.fetch_method, "GET"]))
        addresses = [(method, url) for url in urls for method in methods]
        if previous := csrf.location:
            addresses = [previous, *(address for address in addresses if address != previous)]
        for method, url in addresses:
            request = requests.Request(
                method,
                url,
                headers={HEADER: "Fetch", "Accept": "application/json"},
                params=self.endpoint.query,
            )
            reply = self.read(request, seconds, limits.HTTP_RESPONSE_BYTES)
            result.attempted_urls.append(f"{method} {urlsplit(url).path}: {reply.status}")
            token = reply.headers.get(HEADER, "").strip()
            if token and token.lower() not in ("required", "fetch"):
                csrf.location = (method, url)
                # Cookies marked as secure are not sent back over http.
                secure = self.endpoint.root.startswith("https:")
                result.token = token
                result.cookies = any(secure or not cookie.secure for cookie in self.session.cookies)
                return result
            if method == "GET" and (
                reply.status == 401 or reply.status in self.endpoint.settings.retry.retry_on
            ):
                result.reply = reply
                return result
        csrf.is_absent = True
        return result

    def describe_csrf(self) -> str:
        """Describe tokens and cookies after a second rejection, for users."""
        fetched = self.fetched or FetchedToken()
        if not fetched.token:
            finding = f"No address issued a CSRF token ({'; '.join(fetched.attempted_urls) or 'none was requested'})"
        elif not fetched.cookies:
            finding = "A CSRF token was issued, but without a session cookie that can be sent back"
            if len(self.session.cookies):
                finding += " (its cookies are only sent over https: use https in service_url)"
        else:
            finding = "A fresh CSRF token was sent with its session cookie"
        return f"csrf_failed: {finding}, and the service rejects the request because of its CSRF token."


def is_csrf_rejection(reply: Reply) -> bool:
    """Return whether a rejection concerns the CSRF token, and not permissions."""
    if reply.status != 403:
        return False
    return reply.headers.get(HEADER, "").strip().lower() == "required" or b"csrf" in reply.body.lower()


def encode_name(name: str) -> str:
    """Return an entity set's name for a URL."""
    return quote(name, safe="._-~")


def format_masked_request(request: requests.Request, endpoint: ServiceEndpoint, note: str) -> str:
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
    prepared = requests.Request(request.method, request.url, params=params, data=request.data).prepare()
    parts = urlsplit(prepared.url or "")
    lines = [f"{request.method} {prepared.path_url} HTTP/1.1", f"Host: {parts.netloc}"]
    all_headers = {**endpoint.settings.default_headers, **request.headers, **headers}
    if endpoint.settings.csrf != "off" and note:
        all_headers[HEADER] = note
    lines += [f"{name}: {value}" for name, value in all_headers.items()]
    body = request.data.decode("utf-8", "replace") if request.data else ""
    return endpoint.redact("\n".join([*lines, "", body]).rstrip("\n"))


# --- Responses ----------------------------------------------------------------------------------------------

_DEPTH: Final = 6  # chosen: errors inside errors
_DATE: Final = re.compile(r"/Date\((-?\d{1,16})([+-]\d{1,4})?\)/", re.ASCII)
_LITERAL: Final = re.compile(
    r"(?:guid|datetimeoffset|datetime|time|duration|binary|X|[\w.]+)?'((?:[^']|'')*)'|([^']*)"
)
_PARTS: Final = re.compile(r"(?:([\w.]+)=)?((?:[\w.]*'(?:[^']|'')*')|[^,']*)(?:,|$)")
_TAG: Final = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
# Words in errors and their reasons, in order: codes of CAP and SAP, then messages of databases.
_REASON_PATTERNS: Final[Sequence[tuple[str, re.Pattern[str]]]] = tuple(
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
class ServiceError:
    """Why a service rejected a request. `is_parsed` says whether the error is in OData's format."""

    code: str
    message: str
    """Code, message, target and details in one text."""
    is_parsed: bool

    def reason(self) -> str:
        """Return the `base.REASONS` entry for known words, or ""."""
        return next(
            (reason for reason, words in _REASON_PATTERNS if self.is_parsed and words.search(self.message)),
            "",
        )


def parse_service_error(body: bytes) -> ServiceError:
    """Parse an error body of V2 or V4 in JSON or XML. Any other body becomes text without tags."""
    text = body.decode("utf-8", "replace").strip()
    error: Any = None
    if text[:1] == "{":
        with suppress(ValueError, RecursionError):
            parsed = json.loads(text)
            error = parsed.get("error") or parsed.get("odata.error")
    elif text[:1] == "<":
        with suppress(ParseError, DefusedXmlException, ValueError, LookupError):
            root = fromstring(body, forbid_dtd=True)
            if root.tag.endswith("}error") or root.tag == "error":
                error = _to_json(root)
    if not isinstance(error, Mapping):
        stripped = " ".join(_TAG.sub(" ", text).split()) if text[:1] == "<" else text
        return ServiceError("", stripped[: limits.HTTP_BODY_CHARS], False)
    lines = list(dict.fromkeys(_lines(error)))
    return ServiceError(_text_of(error.get("code")), "; ".join(lines)[: limits.HTTP_BODY_CHARS], True)


def _to_json(element: Element, depth: int = 0) -> Any:
    """Convert elements to the JSON of the same error."""
    if depth > _DEPTH or not len(element):
        return (element.text or "").strip()
    result: dict[str, Any] = {}
    for child in element:
        name, value = child.tag.rpartition("}")[2], _to_json(child, depth + 1)
        if name in ("errordetail", "detail"):
            result.setdefault("errordetails", []).append(value)
        elif name == "errordetails" and isinstance(value, Mapping):
            result[name] = value.get("errordetails", [])
        else:
            result[name] = value
    return result


def _text_of(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("value", value.get("#text", ""))
    return str(value).strip() if isinstance(value, str | int) else ""


def _lines(error: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield `CODE: message (target)` for an error and its details."""
    message, code = _text_of(error.get("message")), _text_of(error.get("code"))
    target = _text_of(error.get("target")) or _text_of(error.get("propertyref"))
    if message or code:
        text = f"{code}: {message}" if code and message else code or message
        yield f"{text} ({target})" if target.strip("/") and not target.startswith("/#") else text
    if depth >= _DEPTH:
        return
    inner = error.get("innererror")
    details = [error.get("details"), error.get("errordetails")]
    if isinstance(inner, Mapping):
        details.append(inner.get("errordetails"))
        yield from _lines(inner, depth + 1)
    for group in details:
        for item in group if isinstance(group, list) else ():
            if isinstance(item, Mapping):
                yield from _lines(item, depth + 1)


# --- Keys ---------------------------------------------------------------------------------------------------


def created_values(body: bytes, version: Version) -> dict[str, Any]:
    """Return the properties of the created row, with dates of V2 as ISO text. Empty if the response contains
    none."""
    try:
        parsed = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return {}
    if isinstance(parsed, dict) and version == "v2":
        parsed = parsed.get("d", {})
        if isinstance(parsed, dict) and isinstance(parsed.get("results"), dict):
            parsed = parsed["results"]
    if not isinstance(parsed, dict):
        return {}
    return {
        name: _convert_date(value) if version == "v2" else value
        for name, value in parsed.items()
        if "@" not in name and name != "__metadata"
    }


def _convert_date(value: Any) -> Any:
    match = _DATE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=int(match[1]))  # noqa: DTZ001
    except OverflowError:
        return value
    return format_instant(moment.replace(tzinfo=dt.UTC) if match[2] else moment)


def parse_key(location: str, names: Sequence[str]) -> dict[str, str]:
    """Return the key in `.../Orders(ID=guid'…',Item=2)` as text by name. An unnamed key belongs to the only
    name."""
    segment = unquote(location.partition("?")[0].rstrip("/").rpartition("/")[2]) if location else ""
    if not segment.endswith(")") or "(" not in segment:
        # An apostrophe may contain a slash: search the whole URL for the parentheses.
        segment = unquote(location)
    inner = segment[segment.find("(") + 1 : -1] if segment.endswith(")") and "(" in segment else ""
    key = {}
    for part in _PARTS.finditer(inner):
        name, value = part[1] or (names[0] if len(names) == 1 else ""), part[2]
        if name in names and value:
            key[name] = _unquoted(value)
    return key


def _unquoted(value: str) -> str:
    match = _LITERAL.fullmatch(value)
    if match is not None and match[1] is not None:
        return match[1].replace("''", "'")
    number = re.fullmatch(r"(-?\d+(?:\.\d+)?)[LlMmDdFf]", value)
    return number[1] if number else value


# --- Sending ------------------------------------------------------------------------------------------------

_ACCEPT: Final = {"Accept": "application/json"}
_VERSIONS: Final = {
    "v2": {"DataServiceVersion": "2.0", "MaxDataServiceVersion": "2.0"},
    "v4": {"OData-Version": "4.0", "OData-MaxVersion": "4.0"},
}

_EARLIER_ATTEMPT: Final = "An earlier attempt of this row may have stored it."


@dataclass(frozen=True, slots=True)
class _Row:
    """The request for a row, or the error that prevents it."""

    index: int
    request: Request | None
    path: str = ""
    error: ConversionError | None = None


class OdataSender(Sender):
    """See `Sender`."""

    chunk_rows = limits.HTTP_CHUNK_ROWS

    def __init__(
        self, endpoint: ServiceEndpoint, shaper: BodyBuilder, spec: WriteSpec, control: SendControl
    ) -> None:
        self.endpoint, self.shaper, self.spec, self.settings = endpoint, shaper, spec, endpoint.settings
        self.is_idempotent = self.settings.idempotent or spec.mode == "update"
        self.capture = tuple(dict.fromkeys([*spec.capture, *self.settings.capture]))
        self._control = control
        self._threads = SenderThreads(
            control, self.settings.retry, self.settings.parallel, self.settings.rate_per_second
        )
        self._lock = threading.Lock()
        self._idle: list[ServiceClient] = []
        self._clients: list[ServiceClient] = []
        self._has_response = self._stopped = False
        key = set(shaper.kind.key)
        if spec.mode == "update" and set(spec.key_columns or key) != key:
            raise ConnectorError(
                "OData can update rows only by their key.",
                reason="unsupported",
                hint=f"Use {', '.join(shaper.kind.key) or 'an entity set that has a key'} as key columns.",
            )

    def close(self) -> None:
        """Stop the threads and close the connections."""
        self._threads.close()
        for client in self._clients:
            client.close()

    def stop(self) -> None:
        """Abort running requests from another thread."""
        with self._lock:
            self._stopped, clients = True, list(self._clients)
        for client in clients:
            client.stop()

    @contextmanager
    def _client(self) -> Iterator[ServiceClient]:
        """Yield a client for one thread. Cookies and token are not shared between threads."""
        with self._lock:
            client = self._idle.pop() if self._idle else None
            if client is None:
                client = ServiceClient(self.endpoint)
                self._clients.append(client)
            if self._stopped:
                client.stop()
        try:
            yield client
        finally:
            with self._lock:
                self._idle.append(client)

    # --- interface

    def send(self, rows: RowBatch, stop_at_failure: bool = False) -> list[RowOutcome]:
        """See `Sender.send`."""
        requests = self._requests(rows)
        if self.settings.batch and self.spec.mode == "insert":
            return self._send_batches(requests, stop_at_failure)
        return self._threads.run(
            len(requests), lambda index: self._send_row(requests[index]), stop_at_failure
        )

    def delete(self, rows: RowBatch) -> list[RowOutcome]:
        """See `Sender.delete`. A row is found by its key, or by its captured Location (`@location`)."""
        requests = []
        for index, values in enumerate(_row_values(rows, self.spec)):
            try:
                location = values.get(LOCATION)
                path = (
                    self.shaper.path(values) if location is None else self.endpoint.local_url(str(location))
                )
                if not path:
                    raise ConversionError("wrong_type", f"{location} is not an address of this service")
                headers = {**_ACCEPT, **_VERSIONS[self.shaper.version]}
                requests.append(_Row(index, self.endpoint.request("DELETE", path, headers), path))
            except ConversionError as error:
                requests.append(_Row(index, None, error=error))
        return self._threads.run(len(requests), lambda position: self._send_row(requests[position]))

    def requests(self, rows: RowBatch) -> list[str]:
        """See `Sender.requests`."""
        note = "(fetched before the first row is sent)"
        texts = []
        for row in self._requests(rows):
            if row.request is None:
                texts.append(self.endpoint.redact(f"Not sent: {row.error}"))
            elif self.settings.batch and self.spec.mode == "insert":
                texts.append(
                    format_masked_request(self._batch_request([row], "batch", True), self.endpoint, note)
                )
            else:
                texts.append(format_masked_request(row.request, self.endpoint, note))
        return texts

    # --- requests

    def _requests(self, rows: RowBatch) -> list[_Row]:
        """Return the request of each row."""
        is_update = self.spec.mode == "update"
        method = "POST" if not is_update else "PATCH" if self.shaper.version == "v4" else "MERGE"
        result = []
        for index, values in enumerate(_row_values(rows, self.spec)):
            try:
                path = self.shaper.path(values) if is_update else encode_name(self.spec.entity.name)
                body = self.shaper.body(values, is_update)
                headers = {
                    **_ACCEPT,
                    "Content-Type": "application/json" + (";IEEE754Compatible=true" if body.strings else ""),
                    **_VERSIONS[self.shaper.version],
                    "Idempotency-Key": rows.keys[index],
                    "X-Rowsmith-Row": str(rows.numbers[index]),
                }
                if method == "PATCH":  # without If-Match, it would create a missing row (OData 4.01, 11.4.4)
                    headers["If-Match"] = "*"
                result.append(_Row(index, self.endpoint.request(method, path, headers, body.text()), path))
            except ConversionError as error:
                result.append(_Row(index, None, error=error))
        return result

    # --- single rows

    def _send_row(self, row: _Row) -> RowOutcome:
        """Send a row. Raises `ConnectorError` if no row can be sent, and none has been."""
        if row.request is None:
            return _unsent_outcome(row)
        request, seconds = row.request, self.settings.retry.timeout_seconds
        with self._client() as client:
            outcome, stopped = self._threads.attempt(lambda: self._write(client, request, seconds))
            return self._row_outcome(row.index, outcome, stopped, request.method, client)

    def _write(self, client: ServiceClient, request: Request, seconds: float) -> Reply:
        """Make one attempt. If a service requires an ETag for a change by key, send the one that matches every row."""
        reply = client.write(request, seconds)
        if request.method != "POST" and "If-Match" not in request.headers and _requires_etag(reply):
            request.headers["If-Match"] = "*"
            reply = client.write(request, seconds)
        return reply

    def _row_outcome(
        self, index: int, outcome: RequestOutcome, stopped: bool, method: str, client: ServiceClient
    ) -> RowOutcome:
        if outcome.reply is not None:
            return self._reply_outcome(index, outcome, outcome.reply, stopped, method, client)
        row_outcome = http_retry.to_row_outcome(index, outcome, stopped, self.endpoint.redact)
        if row_outcome.reason == "unreachable" and row_outcome.state == "failed" and not self._has_response:
            assert outcome.error is not None
            raise from_net_error(outcome.error)
        return row_outcome

    def _reply_outcome(
        self,
        index: int,
        outcome: RequestOutcome,
        reply: Reply,
        stopped: bool,
        method: str,
        client: ServiceClient,
    ) -> RowOutcome:
        is_csrf = is_csrf_rejection(reply) and self.settings.csrf != "off"
        if is_csrf and not self._has_response:
            raise ConnectorError(client.describe_csrf(), reason="csrf_failed", hint=CAUSES)
        self._has_response = self._has_response or not is_csrf
        if 200 <= reply.status < 300:
            return RowOutcome(
                index, "delivered", reply.status, outcome.attempts, ms=outcome.ms, keys=self._keys(reply)
            )
        problem = parse_service_error(reply.body)
        reason = "csrf" if is_csrf else _reason(reply, problem, method)
        message = problem.message or reply.reason or f"Status {reply.status}"
        if is_csrf:
            message = f"{client.describe_csrf()} {CAUSES}"
        state: State = "failed"
        if reason == "unique" and (outcome.unanswered or self.spec.is_retry):
            state, message = "unknown", f"{message} {_EARLIER_ATTEMPT}"
        if stopped and state == "failed":
            reason = "interrupted"
        text = self.endpoint.redact(message)[: limits.HTTP_BODY_CHARS]
        return RowOutcome(index, state, reply.status, outcome.attempts, reason, text, outcome.ms)

    def _keys(self, reply: Reply) -> dict[str, Any]:
        """Return the captured values, from the body, otherwise from the URL of the created row."""
        if not self.capture:
            return {}
        properties = created_values(reply.body, self.shaper.version) if not reply.truncated else {}
        location = reply.headers.get("Location") or reply.headers.get("OData-EntityId") or ""
        in_key = parse_key(location, self.shaper.kind.key)
        captured: dict[str, Any] = {}
        for name in self.capture:
            if name == LOCATION:
                captured |= {name: self.endpoint.local_url(location) or location} if location else {}
            elif (value := properties.get(name, in_key.get(name))) is not None:
                captured[name] = value
        return captured

    # --- batches

    def _batch_request(self, rows: Sequence[_Row], boundary: str, continue_on_error: bool) -> Request:
        requests = [row.request for row in rows if row.request is not None]
        headers = {"Accept": "multipart/mixed", "Content-Type": f"multipart/mixed; boundary={boundary}"}
        headers |= _VERSIONS[self.shaper.version]
        if continue_on_error and self.shaper.version == "v4":
            headers["Prefer"] = "odata.continue-on-error"
        return self.endpoint.request(
            "POST", "$batch", headers, batch_body(requests, [row.path for row in rows], boundary)
        )

    def _send_batches(self, rows: Sequence[_Row], stop_at_failure: bool) -> list[RowOutcome]:
        """Send rows in one request, and those that the service skipped or that must be retried in further
        ones."""
        outcomes = {row.index: _unsent_outcome(row) for row in rows if row.request is None}
        pending = [row for row in rows if row.request is not None]
        responses: Counter[int] = Counter()
        with self._client() as client:
            while pending:
                try:
                    finished, to_retry = self._send_batch(client, pending, responses, stop_at_failure)
                except SendingStopped:
                    break
                outcomes |= {outcome.index: outcome for outcome in finished}
                if stop_at_failure and any(outcome.state != "delivered" for outcome in finished):
                    break
                pending = to_retry
                if any(responses[row.index] for row in to_retry):
                    try:
                        self._control.wait(
                            self.settings.retry.wait_before(max(responses[row.index] for row in to_retry))
                        )
                    except Exception:  # any exception that stops the push
                        text = "The push ended before the row was sent again."
                        outcomes |= {
                            row.index: RowOutcome(row.index, "failed", None, 1, "interrupted", text)
                            for row in to_retry
                            if responses[row.index]
                        }
                        break
        ordered = sorted(outcomes.values(), key=lambda outcome: outcome.index)
        return [
            outcome for index, outcome in enumerate(ordered) if outcome.index == index
        ]  # the checks before a row that has not been started

    def _send_batch(
        self, client: ServiceClient, pending: Sequence[_Row], responses: Counter[int], stop_at_failure: bool
    ) -> tuple[list[RowOutcome], list[_Row]]:
        """Send one request, and return the finished rows and the rows to send again.

        `responded` counts the responses for each row. Raises `SendingStopped` if nothing was sent.
        """
        retry = self.settings.retry
        request = self._batch_request(pending, f"batch_{secrets.token_hex(8)}", not stop_at_failure)
        outcome, stopped = self._threads.attempt(
            lambda: client.write(request, retry.timeout_seconds, limits.ODATA_BATCH_BYTES)
        )
        if outcome.reply is None or not http_retry.is_delivered(outcome.reply):
            failed = self._row_outcome(0, outcome, stopped, "POST", client)
            return [replace(failed, index=row.index) for row in pending], []
        try:
            parts = parse_batch_response(outcome.reply)
        except BatchResponseError as error:
            unreadable = RowOutcome(
                0,
                "unknown",
                outcome.reply.status,
                outcome.attempts,
                "rejected",
                f"The response could not be read: {error}.",
                outcome.ms,
            )
            return [replace(unreadable, index=row.index) for row in pending], []
        finished: list[RowOutcome] = []
        to_retry: list[_Row] = []
        for row, part in zip(pending, parts, strict=False):
            responses[row.index] += 1
            if part.status in retry.retry_on and responses[row.index] <= retry.retries and not stopped:
                to_retry.append(row)
            else:
                part_outcome = RequestOutcome(
                    part, None, responses[row.index], False, outcome.unanswered, outcome.ms
                )
                finished.append(self._reply_outcome(row.index, part_outcome, part, stopped, "POST", client))
        return finished, [*to_retry, *pending[len(parts) :]]


def _row_values(rows: RowBatch, spec: WriteSpec) -> Iterator[dict[str, Any]]:
    """Yield rows as Python values by column name."""
    types = {column.name: column.type for column in spec.columns}
    columns = []
    for name, array in zip(rows.batch.schema.names, rows.batch.columns, strict=True):
        values = to_plain(array)
        if pa.types.is_binary(values.type) and types.get(name, "text") not in ("binary", "uuid", "other"):
            values = to_hex(values)
        columns.append(values.to_pylist())
    names = rows.batch.schema.names
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _unsent_outcome(row: _Row) -> RowOutcome:
    assert row.error is not None
    return RowOutcome(
        row.index, "failed", None, 1, row.error.reason, str(row.error)[: limits.HTTP_BODY_CHARS]
    )


def _requires_etag(reply: Reply) -> bool:
    """Return whether an ETag is required: 428 in RFC 6585; older services only say so in the message."""
    body = reply.body.lower()
    return reply.status == 428 or (reply.status in (400, 412) and (b"if-match" in body or b"etag" in body))


def _reason(reply: Reply, fault: ServiceError, method: str) -> str:
    """Return why a request was rejected: see `channel.HTTP_REASONS` and `base.REASONS`."""
    if reply.status in (401, 403):
        return "forbidden"
    if method != "POST" and reply.status in (404, 410):
        return "missing_row"
    if method == "PATCH" and reply.status == 412:
        return "missing_row"
    if reply.status == 429:
        return "throttled"
    meaning = fault.reason()
    if reply.status >= 500:
        return meaning or ("rejected" if reply.status == 500 and fault.is_parsed else "unavailable")
    return meaning or "rejected"


_BOUNDARY: Final = re.compile(r'boundary="?([^";,\s]+)"?', re.IGNORECASE)
_STATUS: Final = re.compile(rb"HTTP/1\.\d (\d{3}) ?([^\r\n]*)\r?\n")
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")


class BatchResponseError(ValueError):
    """A batch response that cannot be parsed."""


def batch_body(inner: Sequence[Request], paths: Sequence[str], boundary: str) -> bytes:
    """Return the multipart body of requests. `paths` are their paths, relative to the service root."""
    parts: list[bytes] = []
    for index, (request, path) in enumerate(zip(inner, paths, strict=True), 1):
        parts += [
            f"--{boundary}\r\nContent-Type: multipart/mixed; boundary={boundary}-{index}\r\n\r\n".encode(),
            batch_changeset(request, path, f"{boundary}-{index}", index),
            b"\r\n",
        ]
    return b"".join([*parts, f"--{boundary}--\r\n".encode()])


def batch_changeset(request: Request, path: str, boundary: str, number: int) -> bytes:
    """Return the changeset of one request."""
    data: bytes = request.data or b""
    headers = {**request.headers, "Content-Length": str(len(data))}
    lines = [
        f"--{boundary}", "Content-Type: application/http", "Content-Transfer-Encoding: binary",
        f"Content-ID: {number}", "", f"{request.method} {path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.items()), "", "",
    ]  # fmt: skip
    return "\r\n".join(lines).encode() + data + f"\r\n--{boundary}--\r\n".encode()


def parse_batch_response(reply: Reply) -> list[Reply]:
    """Return the responses in a batch response, in the order of the rows. Raises `BatchResponseError`."""
    if reply.truncated:
        raise BatchResponseError("the batch response is too long or was interrupted")
    replies = _batch_replies(reply.body, reply.headers.get("Content-Type", ""), reply, 0)
    if not replies:
        raise BatchResponseError("the batch response contains no responses")
    return replies


def _batch_replies(content: bytes, kind: str, reply: Reply, depth: int) -> list[Reply]:
    match = _BOUNDARY.search(kind)
    if match is None or depth > 2:
        raise BatchResponseError(
            f"the batch response is {kind.partition(';')[0] or 'untyped'}, not multipart/mixed"
        )
    delimiter = b"--" + match[1].encode("latin-1", "replace")
    parts = re.split(rb"(?:^|\r?\n)" + re.escape(delimiter) + rb"(?=--|[ \t]*\r?\n)", content)
    replies: list[Reply] = []
    for part in parts[1:]:
        if part.startswith(b"--"):
            break
        head, inner = _split_headers(part.lstrip(b" \t").removeprefix(b"\r").removeprefix(b"\n"))
        inner_kind = head.get("Content-Type", "")
        if inner_kind.lower().startswith("multipart/"):
            replies += _batch_replies(inner, inner_kind, reply, depth + 1)
        else:
            replies.append(_parse_http(inner, reply))
    return replies


def _parse_http(text: bytes, reply: Reply) -> Reply:
    text = text.lstrip(b"\r\n")
    line = _STATUS.match(text)
    if line is None:
        raise BatchResponseError("a part of the batch response is not an HTTP response")
    headers, content = _split_headers(text[line.end() :])
    length = headers.get("Content-Length", "")
    if length.isdigit():
        content = content[: int(length)]
    return Reply(int(line[1]), line[2].decode("latin-1"), headers, content, False, reply.url, reply.ms)


def _split_headers(text: bytes) -> tuple[CaseInsensitiveDict[str], bytes]:
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
        self._senders: list[OdataSender] = []
        self._fetch_session: Session | None = None
        self._service: Service | None = None
        self._stopped = False
        self._last_reply: Reply | None = None

    def close(self) -> None:
        """See `Link.close`."""
        with self._lock:
            client, self._client, senders = self._client, None, list(self._senders)
        for sender in senders:
            sender.close()
        if client is not None:
            client.close()

    def cancel(self) -> None:
        """See `Link.cancel`."""
        with self._lock:
            self._stopped, client, senders = True, self._client, list(self._senders)
            fetch_session = self._fetch_session
        for sender in senders:
            sender.stop()
        if client is not None:
            client.stop()
        if fetch_session is not None:
            fetch_session.stop()

    def _reader(self) -> ServiceClient:
        with self._lock:
            if self._client is None:
                self._client = ServiceClient(self.endpoint)
            if self._stopped:
                self._client.stop()
            return self._client

    def _get(
        self, path: str, headers: dict[str, str], params: dict[str, str] | None = None, max_bytes: int = 0
    ) -> Reply:
        request = self.endpoint.request("GET", path, dict(headers), params=params)
        self._last_reply = self._reader().read(request, self.seconds, max_bytes or limits.HTTP_RESPONSE_BYTES)
        return self._last_reply

    # --- metadata

    def service(self) -> Service:
        """Return the service's model, which is read once from the uploaded document or fetched. Raises
        `ConnectorError`."""
        if self._service is None:
            document = self.connector.document
            result = metadata.read_safely(self._document() if document is None else document)
            if self.settings.odata_version != "auto":
                result.version = self.settings.odata_version
            self._service = result
        return self._service

    def _document(self) -> bytes:
        """Fetch `$metadata`. A 401 only for `$metadata` is a policy of the gateway (specification, section 4,
        behaviour 7)."""
        try:
            reply = self._get("$metadata", _XML, max_bytes=limits.ODATA_DOCUMENT_BYTES)
        except NetError as error:
            raise from_net_error(error) from None
        if reply.status == 200 and not reply.truncated:
            return reply.body
        if reply.truncated:
            limit_mb = limits.ODATA_DOCUMENT_BYTES // limits.MB
            raise metadata.bad_document_error(f"The $metadata document is larger than {limit_mb} MB.")
        detail = self.connector.redact(parse_service_error(reply.body).message)[:200]
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
            f"$metadata returned {reply.status}: {detail or reply.reason}",
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
        known = self.connector.cached_metadata
        if known is not None and self.connector.document is None:
            matches = [entity for entity in known.entities if entity.name == name]
            if matches:
                return matches[0]
        service = self.service()
        source = service.sets.get(name)
        if source is None:
            similar = [item for item in service.sets if item.lower() == name.lower()]
            source = service.sets[similar[0]] if len(similar) == 1 else None
        return metadata.entity(service, source) if source is not None else None

    # --- reading values

    def fetch(self, paths: Sequence[str], options: FetchOptions) -> Fetched:
        """See `rest.fetch.Fetches`: fetches paths below the service root, with the parameters of every
        request."""
        settings, endpoint = self.settings, self.endpoint
        base = f"{endpoint.root}?{urlencode(endpoint.query)}" if endpoint.query else endpoint.root
        with open_session(endpoint.gate, verify_tls=settings.trust, pool=settings.parallel) as session:
            with self._lock:
                self._fetch_session = session
                if self._stopped:
                    session.stop()
            try:
                return Fetcher(
                    self.connector, session, settings.auth.requests_auth(session), options, base
                ).fetch_all(paths)
            finally:
                with self._lock:
                    self._fetch_session = None

    # --- sending

    def create_sender(self, spec: WriteSpec, control: SendControl) -> OdataSender:
        """See `Channel.create_sender`."""
        if self.connector.read_only:
            raise ConnectorError(
                "This connection is read-only.", code="read_only_connection", reason="read_only"
            )
        if spec.mode not in self.connector.can.modes:
            raise ConnectorError(
                f"OData does not support {spec.mode}.",
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
                known = self.connector.cached_metadata
                version = "v2" if known is not None and known.version.endswith("V2") else "v4"
            service = service_of(spec.entity, version)
        if spec.entity.name not in service.sets:
            raise ConnectorError(
                f"The service has no entity set {spec.entity.name}.",
                reason="no_table",
                hint="Refresh the metadata.",
            )
        strings = _IEEE in self.settings.default_headers.get("Content-Type", "").lower()
        shaper = BodyBuilder(service, service.sets[spec.entity.name], self.endpoint.root, strings)
        sender = OdataSender(self.endpoint, shaper, spec, control)
        with self._lock:
            self._senders.append(sender)
        return sender

    # --- verification

    def response(self) -> dict[str, Any] | None:
        """Return the last response, for the report of a verification."""
        reply = self._last_reply
        if reply is None:
            return None
        text = reply.body[: limits.HTTP_BODY_CHARS].decode("utf-8", "replace")
        return {
            "method": "GET",
            "url": display_url(reply.url),
            "status": reply.status,
            "content_type": reply.headers.get("Content-Type", ""),
            "body": self.connector.redact(text),
            "ms": reply.ms,
        }

    def check_tls(self) -> str:
        """Run the stage `tls`. Raises NetError (reason `tls_failed`)."""
        if not self.endpoint.root.startswith("https:"):
            return "Without TLS: credentials and rows are sent unencrypted."
        session = self.endpoint.session()
        try:
            exchange(
                session, requests.Request("HEAD", self.endpoint.root), timeout_seconds=limits.TARGET_CONNECT_SECONDS,
                max_bytes=limits.HTTP_RESPONSE_BYTES, follow=False,
            )  # fmt: skip
        except NetError as error:
            if error.reason != "reset":
                raise
        finally:
            session.close()
        return "The certificate is trusted."

    def check_auth(self) -> str:
        """Run the stage `auth`."""
        reply = self._get("", _JSON)
        if reply.status == 401:
            raise ConnectorError(
                f"The service root returned 401: {parse_service_error(reply.body).message[:200] or reply.reason}",
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

    def check_permission(self) -> str:
        """Run the stage `permission`: the metadata, and a CSRF token if the service issues one."""
        service = self.service()
        if not service.sets:
            raise ConnectorError(
                "The service has no entity sets.",
                reason="no_permission",
                hint="Check service_url, and the account's authorizations.",
            )
        origin = "uploaded document" if self.connector.document is not None else "$metadata"
        message = f"OData {service.version.upper()}, {len(service.sets)} entity sets ({origin})."
        if self.settings.csrf == "off":
            return message
        fetched = self._reader().fetch(self.seconds)
        return (
            f"{message} A CSRF token was issued ({fetched.attempted_urls[-1]})."
            if fetched.token
            else f"{message} No CSRF token was issued."
        )

    def check_sample(self) -> str:
        """Run the stage `sample`. Skips sets that require a filter. The first set that returns rows is
        enough."""
        service, problem = self.service(), ""
        sets = [
            source for source in service.sets.values() if source.terms.get("required-in-filter") is not True
        ]
        for source in sets[:3]:
            reply = self._get(encode_name(source.name), _JSON, {"$top": "1"})
            if reply.status < 300:
                return f"{source.name} returned rows."
            problem = (
                problem
                or f"{source.name} returned {reply.status}: {parse_service_error(reply.body).message[:200]}"
            )
        if not problem:
            return "All entity sets require a filter: none was read."
        raise ConnectorError(
            problem,
            reason="no_permission",
            hint="Check that the account can read the entity sets. Sending rows may still be possible.",
        )

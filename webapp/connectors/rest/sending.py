"""Send rows as requests: one for each row, or one for many with the rows in an array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urljoin, urlsplit

import orjson
from requests import Request
from requests.auth import AuthBase

from webapp import limits
from webapp.connectors.base import ConnectorError, WriteSpec
from webapp.connectors.http.authentication import send_authenticated
from webapp.connectors.http.channel import LOCATION, RowOutcome, Rows, SendControl, Sender
from webapp.connectors.http.parallel import SenderThreads
from webapp.connectors.http.request_template import ComposedRequest, Renderer, RequestTemplate
from webapp.connectors.http.retry import ended
from webapp.connectors.http.tokens import RenewableAuth
from webapp.connectors.redaction import without
from webapp.engine import json_paths
from webapp.net.session import Reply, Session

if TYPE_CHECKING:
    from webapp.connectors.rest.connector import RestConnector

_REPEATABLE: Final = frozenset({"PUT", "DELETE", "GET"})  # RFC 9110, 9.2.2
MASK: Final = "********"
DOTS: Final = frozenset({".", ".."})
"""Path segments that HTTP clients remove (RFC 3986, 5.2.4)."""
_CUT_OFF: Final = "The response was truncated."


class RestSender(Sender):
    """Sends rows of one table to one path."""

    def __init__(
        self,
        connector: RestConnector,
        session: Session,
        auth: AuthBase,
        writing: WriteSpec,
        control: SendControl,
    ) -> None:
        self.settings = connector.settings
        self._own, self._session, self._auth, self._writing = connector.redact, session, auth, writing
        self.template: RequestTemplate = self.settings.request_template.model_copy(
            update={"path": writing.entity.name}
        )
        self._render = Renderer(self.template, "")
        self._batch = self.settings.push_mode == "batch"
        self._threads = SenderThreads(
            control, self.settings.retry, self.settings.parallel, self.settings.rate_per_second
        )
        self._captured = {
            name: json_paths.read(self.settings.capture[name])
            for name in writing.capture
            if name in self.settings.capture
        }
        self.together = self._batch
        # As many rows as allowed, with the same number for every thread.
        parallel = self.settings.parallel
        chunk = limits.HTTP_CHUNK_ROWS // parallel * parallel or limits.HTTP_CHUNK_ROWS
        self.size = (self.settings.batch_size or limits.HTTP_BATCH_ROWS) if self._batch else chunk
        self.repeatable = self.settings.idempotent or self.template.method in _REPEATABLE

    def close(self) -> None:
        """Stop the threads."""
        self._threads.close()

    def _redact(self, text: str) -> str:
        """Redact the secrets of the settings, and tokens that were fetched with them."""
        fetched = self._auth.fetched() if isinstance(self._auth, RenewableAuth) else []
        return without(self._own(text), fetched)

    # --- Sending ----------------------------------------------------------------------------------------------

    def send(self, rows: Rows, stop_at_failure: bool = False) -> list[RowOutcome]:
        """See `Sender.send`."""
        if self._batch:
            request = self._request(self._wrapped(rows), self._named(rows))
            told = self._threads.run(1, lambda place: self._tried(place, request, captures=False))
            return [replace(one, index=place) for one in told for place in range(len(rows.numbers))]
        made = self._render.rows(rows.batch)

        def one(place: int) -> RowOutcome:
            return self._tried(place, self._request(made[place], _row(rows, place)))

        return self._threads.run(len(made), one, stop_at_failure)

    def _wrapped(self, rows: Rows) -> ComposedRequest:
        """Return one request for all rows of a batch. Its path, query and headers use no fields."""
        first = self._render.rows(rows.batch.slice(0, 1))[0]
        key = self.settings.wrapper_key
        before, after = (f"{{{orjson.dumps(key).decode()}:[", "]}") if key else ("[", "]")
        # Written piece by piece into one buffer, which then is the body, so that nothing is in memory twice
        # for 100,000 rows.
        body = BytesIO()
        body.write(before.encode())
        for start in range(0, rows.batch.num_rows, limits.HTTP_PIECE_ROWS):
            some = self._render.bodies(rows.batch.slice(start, limits.HTTP_PIECE_ROWS))
            body.write(f"{',' if start else ''}{','.join(some)}".encode())
        body.write(after.encode())
        return ComposedRequest(first.path, first.headers, first.query, body.getvalue())

    def _named(self, rows: Rows) -> dict[str, str]:
        first, last = rows.numbers[0], rows.numbers[-1]
        return {"Idempotency-Key": f"{rows.keys[0]}-{last}", "X-Rowsmith-Row": f"{first}-{last}"}

    def _request(self, made: ComposedRequest, row: Mapping[str, str]) -> Request:
        encoding = self.template.encoding
        kind = "application/json" if encoding == "json" else "application/x-www-form-urlencoded"
        headers = {"Content-Type": kind, "Accept": "application/json"} | dict(row)
        headers = over(headers, self.settings.default_headers, made.headers)
        body = made.body.encode() if isinstance(made.body, str) else made.body
        if encoding != "json" and body is not None:
            body = form_data(orjson.loads(body), encoding == "brackets")
        return Request(
            self.template.method,
            url_of(self.settings.base_url, made.path),
            headers=headers,
            params=made.query,
            data=body,
            auth=self._auth,
        )

    def _tried(self, place: int, request: Request, captures: bool = True) -> RowOutcome:
        if DOTS.intersection(urlsplit(request.url).path.split("/")):
            told = "A value of this row would add . or .. as a part of the path."
            return RowOutcome(place, "failed", None, 1, "wrong_type", told)
        unfit = next((name for name, value in request.headers.items() if not _fits(value)), None)
        if unfit is not None:
            told = (
                f"The row's value for the header {unfit} contains a line break or characters outside Latin-1."
            )
            return RowOutcome(place, "failed", None, 1, "wrong_type", told)
        tried, stopped = self._threads.attempt(lambda: self._exchanged(request))
        again = self._writing.again
        if not captures:
            return ended(place, tried, stopped, self._redact, again=again)
        one = ended(place, tried, stopped, self._redact, self._keys, again)
        if one.state == "delivered" and tried.reply is not None and tried.reply.truncated:
            lacking = [name for name in self._captured if name not in one.keys]
            told = f"{_CUT_OFF} {', '.join(lacking)} could not be read." if lacking else _CUT_OFF
            one = replace(one, message=f"{one.message} {told}".lstrip())
        return one

    def _exchanged(self, request: Request) -> Reply:
        seconds = self.settings.retry.timeout_seconds
        return send_authenticated(
            self._session, request, timeout_seconds=seconds, max_bytes=limits.HTTP_ANSWER_BYTES
        )

    def _keys(self, reply: Reply) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        if LOCATION in self._writing.capture and (location := reply.headers.get("Location")):
            found[LOCATION] = urljoin(reply.url, location)
        if self._captured:
            try:
                body = orjson.loads(reply.body)
            except orjson.JSONDecodeError:
                return found
            found |= {
                name: value for name, path in self._captured.items() if (value := _at(path, body)) is not None
            }
        return found

    # --- Deleting
    # ---------------------------------------------------------------------------------------------

    def delete(self, rows: Rows) -> list[RowOutcome]:
        """See `Sender.delete`."""
        urls: list[str | None]
        if LOCATION in rows.batch.schema.names:
            own, found = self._origin, rows.batch.column(LOCATION).to_pylist()
            urls = [url if urlsplit(url)[:2] == own else None for url in found]
        elif self.settings.delete_path is not None:
            made = Renderer(RequestTemplate(path=self.settings.delete_path), "").rows(rows.batch)
            urls = [url_of(self.settings.base_url, row.path) for row in made]
        else:
            told = "The connection does not define how rows are deleted."
            raise ConnectorError(told, reason="unsupported", hint="Set delete_path.")

        def one(place: int) -> RowOutcome:
            if urls[place] is None:
                told = "The Location of this row is on another host and is not used."
                return RowOutcome(place, "failed", None, 1, "redirected", told)
            headers = over({"Accept": "application/json"}, self.settings.default_headers)
            request = Request("DELETE", urls[place], headers=headers, auth=self._auth)
            tried, stopped = self._threads.attempt(lambda: self._exchanged(request))
            if tried.reply is not None and tried.reply.status in (404, 410):
                if (
                    tried.unanswered or self._writing.again
                ):  # deleted by an earlier request whose response was lost
                    return RowOutcome(place, "delivered", tried.reply.status, tried.attempts, ms=tried.ms)
                told = "The row no longer exists in the target."
                return RowOutcome(
                    place, "failed", tried.reply.status, tried.attempts, "missing_row", told, tried.ms
                )
            return ended(place, tried, stopped, self._redact)

        return self._threads.run(len(urls), one)

    @cached_property
    def _origin(self) -> tuple[str, str]:
        return urlsplit(self.settings.base_url)[:2]

    # --- Dry run
    # ----------------------------------------------------------------------------------------------

    def requests(self, rows: Rows) -> list[str]:
        """See `Sender.requests`."""
        if not rows.numbers:
            return []
        if self._batch:
            return [self._shown(self._request(self._wrapped(rows), self._named(rows)))]
        made = self._render.rows(rows.batch)
        return [self._shown(self._request(one, _row(rows, place))) for place, one in enumerate(made)]

    def _shown(self, request: Request) -> str:
        headers, params = dict(request.headers), dict(request.params)
        auth = self.settings.auth
        if auth.type == "api-key" and auth.where == "query":
            params[auth.name] = MASK
        elif auth.type == "api-key":
            headers[auth.name] = MASK
        elif auth.type != "none":
            headers["Authorization"] = f"{'Basic' if auth.type == 'basic' else 'Bearer'} {MASK}"
        query = urlencode(params, safe="*")
        url = f"{request.url}{('&' if '?' in request.url else '?') + query if query else ''}"
        lines = [f"{request.method} {url}", *(f"{name}: {value}" for name, value in headers.items())]
        return self._redact("\n".join([*lines, "", (request.data or b"").decode()]).rstrip())


def url_of(base: str, path: str) -> str:
    """Append a path to a base URL. Both may have a query."""
    if path.strip("/") == "":
        return base
    front, question, query = base.partition("?")
    joined = f"{front.rstrip('/')}/{path.lstrip('/')}"
    return f"{joined}{'&' if '?' in joined else '?'}{query}" if question else joined


def _at(path: Any, body: Any) -> str | int | float | None:
    """Return the first match of a JSONPath if it is a plain value."""
    try:
        _, value = json_paths.first(path, body)
    except (
        ValueError,
        RecursionError,
    ):  # a filter compares incompatible values, or the response is nested too deeply
        return None
    return value if isinstance(value, str | int | float) else None


def _row(rows: Rows, place: int) -> dict[str, str]:
    return {"Idempotency-Key": rows.keys[place], "X-Rowsmith-Row": str(rows.numbers[place])}


def over(*headers: Mapping[str, str]) -> dict[str, str]:
    """Combine headers. Later ones override earlier ones, ignoring case."""
    found: dict[str, tuple[str, str]] = {}
    for header in headers:
        found |= {name.lower(): (name, value) for name, value in header.items()}
    return dict(found.values())


def _fits(value: str) -> bool:
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return not any(ch in value for ch in "\r\n\0")


def form_data(row: Any, brackets: bool) -> bytes:
    """Return an object as form data (application/x-www-form-urlencoded).

    An array repeats its name for each element, and an object is JSON (OpenAPI 3.0, 4.7.15.1.1: Support for
    x-www-form-urlencoded Request Bodies); with `brackets`, both are names such as `items[0][price]`. Null is left out.
    """
    pairs = (
        [pair for name, value in row.items() for pair in _pairs(name, value, brackets)]
        if isinstance(row, dict)
        else []
    )
    return urlencode(pairs).encode()


def _pairs(name: str, value: Any, brackets: bool) -> Iterator[tuple[str, str]]:
    if brackets and isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in inner:
            yield from _pairs(f"{name}[{key}]", one, True)
    elif isinstance(value, list):
        for one in value:
            yield from _pairs(name, orjson.dumps(one).decode() if isinstance(one, list) else one, False)
    elif isinstance(value, dict):
        yield name, orjson.dumps(value).decode()
    elif isinstance(value, bool):
        yield name, "true" if value else "false"
    elif value is not None:
        yield name, str(value)

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
from webapp.connectors.http.channel import LOCATION, RowBatch, RowOutcome, SendControl, Sender
from webapp.connectors.http.parallel import SenderThreads
from webapp.connectors.http.request_template import ComposedRequest, Renderer, RequestTemplate
from webapp.connectors.http.retry import to_row_outcome
from webapp.connectors.http.tokens import RenewableAuth
from webapp.connectors.redaction import redact
from webapp.engine import json_paths
from webapp.net.session import Reply, Session

if TYPE_CHECKING:
    from webapp.connectors.rest.connector import RestConnector

_REPEATABLE: Final = frozenset({"PUT", "DELETE", "GET"})  # RFC 9110, 9.2.2
MASK: Final = "********"
DOTS: Final = frozenset({".", ".."})
"""Path segments that HTTP clients remove (RFC 3986, 5.2.4)."""
_TRUNCATED: Final = "The response was truncated."


class RestSender(Sender):
    """Sends rows of one table to one path."""

    def __init__(
        self,
        connector: RestConnector,
        session: Session,
        auth: AuthBase,
        spec: WriteSpec,
        control: SendControl,
    ) -> None:
        self.settings = connector.settings
        self._redact_settings, self._session, self._auth, self._writing = (
            connector.redact,
            session,
            auth,
            spec,
        )
        self.template: RequestTemplate = self.settings.request_template.model_copy(
            update={"path": spec.entity.name}
        )
        self._render = Renderer(self.template, "")
        self._batch = self.settings.push_mode == "batch"
        self._threads = SenderThreads(
            control, self.settings.retry, self.settings.parallel, self.settings.rate_per_second
        )
        self._capture_paths = {
            name: json_paths.parse_path(self.settings.capture[name])
            for name in spec.capture
            if name in self.settings.capture
        }
        self.is_single_request = self._batch
        # As many rows as allowed, with the same number for every thread.
        parallel = self.settings.parallel
        chunk = limits.HTTP_CHUNK_ROWS // parallel * parallel or limits.HTTP_CHUNK_ROWS
        self.chunk_rows = (self.settings.batch_size or limits.HTTP_BATCH_ROWS) if self._batch else chunk
        self.is_idempotent = self.settings.idempotent or self.template.method in _REPEATABLE

    def close(self) -> None:
        """Stop the threads."""
        self._threads.close()

    def _redact(self, text: str) -> str:
        """Redact the secrets of the settings, and tokens that were fetched with them."""
        fetched = self._auth.known_tokens() if isinstance(self._auth, RenewableAuth) else []
        return redact(self._redact_settings(text), fetched)

    # --- Sending ----------------------------------------------------------------------------------------------

    def send(self, rows: RowBatch, stop_at_failure: bool = False) -> list[RowOutcome]:
        """See `Sender.send`."""
        if self._batch:
            request = self._request(self._batch_request(rows), self._batch_headers(rows))
            outcomes = self._threads.run(1, lambda index: self._send_row(index, request, captures=False))
            return [
                replace(outcome, index=index) for outcome in outcomes for index in range(len(rows.numbers))
            ]
        composed = self._render.render_rows(rows.batch)

        def one(index: int) -> RowOutcome:
            return self._send_row(index, self._request(composed[index], _row_headers(rows, index)))

        return self._threads.run(len(composed), one, stop_at_failure)

    def _batch_request(self, rows: RowBatch) -> ComposedRequest:
        """Return one request for all rows of a batch. Its path, query and headers use no fields."""
        first = self._render.render_rows(rows.batch.slice(0, 1))[0]
        key = self.settings.wrapper_key
        before, after = (f"{{{orjson.dumps(key).decode()}:[", "]}") if key else ("[", "]")
        # Written piece by piece into one buffer, which then is the body, so that nothing is in memory twice
        # for 100,000 rows.
        body = BytesIO()
        body.write(before.encode())
        for start in range(0, rows.batch.num_rows, limits.HTTP_BODY_ROWS):
            bodies = self._render.render_bodies(rows.batch.slice(start, limits.HTTP_BODY_ROWS))
            body.write(f"{',' if start else ''}{','.join(bodies)}".encode())
        body.write(after.encode())
        return ComposedRequest(first.path, first.headers, first.query, body.getvalue())

    def _batch_headers(self, rows: RowBatch) -> dict[str, str]:
        first, last = rows.numbers[0], rows.numbers[-1]
        return {"Idempotency-Key": f"{rows.keys[0]}-{last}", "X-Rowsmith-Row": f"{first}-{last}"}

    def _request(self, composed: ComposedRequest, row: Mapping[str, str]) -> Request:
        encoding = self.template.encoding
        kind = "application/json" if encoding == "json" else "application/x-www-form-urlencoded"
        headers = {"Content-Type": kind, "Accept": "application/json"} | dict(row)
        headers = merge_headers(headers, self.settings.default_headers, composed.headers)
        body = composed.body.encode() if isinstance(composed.body, str) else composed.body
        if encoding != "json" and body is not None:
            body = form_data(orjson.loads(body), encoding == "brackets")
        return Request(
            self.template.method,
            join_url(self.settings.base_url, composed.path),
            headers=headers,
            params=composed.query,
            data=body,
            auth=self._auth,
        )

    def _send_row(self, index: int, request: Request, captures: bool = True) -> RowOutcome:
        if DOTS.intersection(urlsplit(request.url).path.split("/")):
            message = "A value of this row would add . or .. as a part of the path."
            return RowOutcome(index, "failed", None, 1, "wrong_type", message)
        invalid = next((name for name, value in request.headers.items() if not _is_latin(value)), None)
        if invalid is not None:
            message = f"The row's value for the header {invalid} contains a line break or characters outside Latin-1."
            return RowOutcome(index, "failed", None, 1, "wrong_type", message)
        outcome, stopped = self._threads.attempt(lambda: self._send_request(request))
        again = self._writing.is_retry
        if not captures:
            return to_row_outcome(index, outcome, stopped, self._redact, again=again)
        row_outcome = to_row_outcome(index, outcome, stopped, self._redact, self._keys, again)
        if row_outcome.state == "delivered" and outcome.reply is not None and outcome.reply.truncated:
            missing = [name for name in self._capture_paths if name not in row_outcome.keys]
            message = f"{_TRUNCATED} {', '.join(missing)} could not be read." if missing else _TRUNCATED
            row_outcome = replace(row_outcome, message=f"{row_outcome.message} {message}".lstrip())
        return row_outcome

    def _send_request(self, request: Request) -> Reply:
        seconds = self.settings.retry.timeout_seconds
        return send_authenticated(
            self._session, request, timeout_seconds=seconds, max_bytes=limits.HTTP_RESPONSE_BYTES
        )

    def _keys(self, reply: Reply) -> Mapping[str, Any]:
        captured: dict[str, Any] = {}
        if LOCATION in self._writing.capture and (location := reply.headers.get("Location")):
            captured[LOCATION] = urljoin(reply.url, location)
        if self._capture_paths:
            try:
                body = orjson.loads(reply.body)
            except orjson.JSONDecodeError:
                return captured
            captured |= {
                name: value
                for name, path in self._capture_paths.items()
                if (value := _first_value(path, body)) is not None
            }
        return captured

    # --- Deleting
    # ---------------------------------------------------------------------------------------------

    def delete(self, rows: RowBatch) -> list[RowOutcome]:
        """See `Sender.delete`."""
        urls: list[str | None]
        if LOCATION in rows.batch.schema.names:
            origin, locations = self._origin, rows.batch.column(LOCATION).to_pylist()
            urls = [url if urlsplit(url)[:2] == origin else None for url in locations]
        elif self.settings.delete_path is not None:
            composed = Renderer(RequestTemplate(path=self.settings.delete_path), "").render_rows(rows.batch)
            urls = [join_url(self.settings.base_url, row.path) for row in composed]
        else:
            message = "The connection does not define how rows are deleted."
            raise ConnectorError(message, reason="unsupported", hint="Set delete_path.")

        def one(index: int) -> RowOutcome:
            if urls[index] is None:
                message = "The Location of this row is on another host and is not used."
                return RowOutcome(index, "failed", None, 1, "redirected", message)
            headers = merge_headers({"Accept": "application/json"}, self.settings.default_headers)
            request = Request("DELETE", urls[index], headers=headers, auth=self._auth)
            outcome, stopped = self._threads.attempt(lambda: self._send_request(request))
            if outcome.reply is not None and outcome.reply.status in (404, 410):
                if (
                    outcome.unanswered or self._writing.is_retry
                ):  # deleted by an earlier request whose response was lost
                    return RowOutcome(
                        index, "delivered", outcome.reply.status, outcome.attempts, ms=outcome.ms
                    )
                message = "The row no longer exists in the target."
                return RowOutcome(
                    index,
                    "failed",
                    outcome.reply.status,
                    outcome.attempts,
                    "missing_row",
                    message,
                    outcome.ms,
                )
            return to_row_outcome(index, outcome, stopped, self._redact)

        return self._threads.run(len(urls), one)

    @cached_property
    def _origin(self) -> tuple[str, str]:
        return urlsplit(self.settings.base_url)[:2]

    # --- Dry run
    # ----------------------------------------------------------------------------------------------

    def requests(self, rows: RowBatch) -> list[str]:
        """See `Sender.requests`."""
        if not rows.numbers:
            return []
        if self._batch:
            return [self._masked(self._request(self._batch_request(rows), self._batch_headers(rows)))]
        composed = self._render.render_rows(rows.batch)
        return [
            self._masked(self._request(request, _row_headers(rows, index)))
            for index, request in enumerate(composed)
        ]

    def _masked(self, request: Request) -> str:
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


def join_url(base: str, path: str) -> str:
    """Append a path to a base URL. Both may have a query."""
    if path.strip("/") == "":
        return base
    address, question, query = base.partition("?")
    joined = f"{address.rstrip('/')}/{path.lstrip('/')}"
    return f"{joined}{'&' if '?' in joined else '?'}{query}" if question else joined


def _first_value(path: Any, body: Any) -> str | int | float | None:
    """Return the first match of a JSONPath if it is a plain value."""
    try:
        _, value = json_paths.find_first(path, body)
    except (
        ValueError,
        RecursionError,
    ):  # a filter compares incompatible values, or the response is nested too deeply
        return None
    return value if isinstance(value, str | int | float) else None


def _row_headers(rows: RowBatch, index: int) -> dict[str, str]:
    return {"Idempotency-Key": rows.keys[index], "X-Rowsmith-Row": str(rows.numbers[index])}


def merge_headers(*headers: Mapping[str, str]) -> dict[str, str]:
    """Combine headers. Later ones override earlier ones, ignoring case."""
    combined: dict[str, tuple[str, str]] = {}
    for header in headers:
        combined |= {name.lower(): (name, value) for name, value in header.items()}
    return dict(combined.values())


def _is_latin(value: str) -> bool:
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
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _pairs(f"{name}[{key}]", item, True)
    elif isinstance(value, list):
        for item in value:
            yield from _pairs(name, orjson.dumps(item).decode() if isinstance(item, list) else item, False)
    elif isinstance(value, dict):
        yield name, orjson.dumps(value).decode()
    elif isinstance(value, bool):
        yield name, "true" if value else "false"
    elif value is not None:
        yield name, str(value)

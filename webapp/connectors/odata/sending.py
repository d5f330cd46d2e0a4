"""Send rows to an entity set: POST (or $batch), PATCH or MERGE by key, DELETE by key.

`$batch` sends many rows in one request, with one changeset for each row, so that each row has its own
outcome.

Sources: OData V2 "Batch Processing"; OData 4.01 Protocol, section 11.7.7 (Multipart Batch Format); RFC 2046,
5.1.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from requests import Request
from requests.structures import CaseInsensitiveDict

from webapp import limits
from webapp.connectors.arrow_values import hexed, plain
from webapp.connectors.base import ConnectorError, WriteSpec
from webapp.connectors.http import outcomes
from webapp.connectors.http.channel import LOCATION, RowOutcome, Rows, SendControl, Sender, State
from webapp.connectors.http.parallel import SenderThreads, SendingStopped
from webapp.connectors.http.retry import RequestOutcome
from webapp.connectors.http.verification import from_net_error
from webapp.connectors.odata import responses
from webapp.connectors.odata.client import (
    CAUSES,
    ServiceClient,
    ServiceEndpoint,
    is_csrf_rejection,
    masked,
    named,
)
from webapp.connectors.odata.values import Body, Shaper
from webapp.connectors.scalars import ConversionError
from webapp.net.session import Reply

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
        self, endpoint: ServiceEndpoint, shaper: Shaper, writing: WriteSpec, hand: SendControl
    ) -> None:
        self.endpoint, self.shaper, self.writing, self.settings = endpoint, shaper, writing, endpoint.settings
        self.repeatable = self.settings.idempotent or writing.mode == "update"
        self.capture = tuple(dict.fromkeys([*writing.capture, *self.settings.capture]))
        self._hand = hand
        self._threads = SenderThreads(
            hand, self.settings.retry, self.settings.parallel, self.settings.rate_per_second
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
        made = [self._deletion(index, values) for index, values in enumerate(_values(rows, self.writing))]
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
        return [self._row(rows, index, values) for index, values in enumerate(_values(rows, self.writing))]

    def _row(self, rows: Rows, index: int, values: Mapping[str, Any]) -> _Row:
        updating = self.writing.mode == "update"
        try:
            path = self.shaper.path(values) if updating else named(self.writing.entity.name)
            body = self.shaper.body(values, updating)
            method = "POST" if not updating else "PATCH" if self.shaper.version == "v4" else "MERGE"
            headers = {
                **self._headers(body),
                "Idempotency-Key": rows.keys[index],
                "X-Rowsmith-Row": str(rows.numbers[index]),
            }
            if method == "PATCH":
                headers["If-Match"] = "*"  # otherwise PATCH would create a missing row (OData 4.01, 11.4.4)
            return _Row(index, self.endpoint.request(method, path, headers, body.text()), path)
        except ConversionError as error:
            return _Row(index, None, error=error)

    def _headers(self, body: Body) -> dict[str, str]:
        kind = "application/json" + (";IEEE754Compatible=true" if body.strings else "")
        return {**_ACCEPT, "Content-Type": kind, **_VERSIONS[self.shaper.version]}

    def _deletion(self, index: int, values: Mapping[str, Any]) -> _Row:
        try:
            location = values.get(LOCATION)
            path = self.shaper.path(values) if location is None else self.endpoint.own(str(location))
            if not path:
                raise ConversionError("wrong_type", f"{location} is not an address of this service")
            headers = {**_ACCEPT, **_VERSIONS[self.shaper.version]}
            return _Row(index, self.endpoint.request("DELETE", path, headers), path)
        except ConversionError as error:
            return _Row(index, None, error=error)

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
        ended = outcomes.ended(index, tried, stopped, self.endpoint.redact)
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
        fault = responses.fault(reply.body)
        reason = "csrf" if csrf else _reason(reply, fault, method)
        message = fault.message or reply.reason or f"Status {reply.status}"
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
        told = responses.values(reply.body, self.shaper.version) if not reply.truncated else {}
        location = reply.headers.get("Location") or reply.headers.get("OData-EntityId") or ""
        in_key = responses.key_of(location, self.shaper.kind.key)
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
                if any(answered[row.index] for row in again) and not self._waited(again, answered):
                    ended |= {row.index: _interrupted(row.index) for row in again if answered[row.index]}
                    break
        found = sorted(ended.values(), key=lambda one: one.index)
        return [
            one for place, one in enumerate(found) if one.index == place
        ]  # the checks before a row that has not been started

    def _waited(self, again: Sequence[_Row], answered: Counter[int]) -> bool:
        """Wait before rows are sent again. Returns False if the push ended."""
        try:
            self._hand.wait(self.settings.retry.wait_before(max(answered[row.index] for row in again)))
        except Exception:  # any exception that stops the push
            return False
        return True

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
        if tried.reply is None or not outcomes.delivered(tried.reply):
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


def _interrupted(index: int) -> RowOutcome:
    text = "The push ended before the row was sent again."
    return RowOutcome(index, "failed", None, 1, "interrupted", text)


def _wants_etag(reply: Reply) -> bool:
    """Return whether an ETag is required: 428 in RFC 6585; older services only say so in the message."""
    body = reply.body.lower()
    return reply.status == 428 or (reply.status in (400, 412) and (b"if-match" in body or b"etag" in body))


def _reason(reply: Reply, fault: responses.Fault, method: str) -> str:
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

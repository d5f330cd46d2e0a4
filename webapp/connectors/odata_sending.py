"""Rows on their way to one entity set: a POST each (or a batch), PATCH or MERGE by key, DELETE by key."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import requests

from webapp import limits
from webapp.connectors import odata_answers, odata_batch, outcomes
from webapp.connectors.base import ConnectorError, Writing
from webapp.connectors.channel import LOCATION, Ended, Hand, Rows, Sending
from webapp.connectors.http_stages import of_net
from webapp.connectors.odata_values import Body, Shaper
from webapp.connectors.odata_way import CAUSES, Sender, Way, about_csrf, masked, named
from webapp.connectors.parallel import Lanes, Stopped
from webapp.connectors.retry import Ended as Tried
from webapp.connectors.scalars import Misfit
from webapp.connectors.sql_values import hexed, plain
from webapp.net.session import Reply

_ACCEPT: Final = {"Accept": "application/json"}
_VERSIONS: Final = {
    "v2": {"DataServiceVersion": "2.0", "MaxDataServiceVersion": "2.0"},
    "v4": {"OData-Version": "4.0", "OData-MaxVersion": "4.0"},
}

_ONCE_MORE: Final = "An earlier attempt of this row may have stored it."


@dataclass(frozen=True, slots=True)
class _Row:
    """One row as it is sent: its request, or why there is none."""

    index: int
    request: requests.Request | None
    path: str = ""
    misfit: Misfit | None = None


class OdataSending(Sending):
    """See `Sending`."""

    size = limits.HTTP_CHUNK_ROWS

    def __init__(self, way: Way, shaper: Shaper, writing: Writing, hand: Hand) -> None:
        self.way, self.shaper, self.writing, self.settings = way, shaper, writing, way.settings
        self.repeatable = self.settings.idempotent or writing.mode == "update"
        self.capture = tuple(dict.fromkeys([*writing.capture, *self.settings.capture]))
        self._hand = hand
        self._lanes = Lanes(hand, self.settings.retry, self.settings.parallel, self.settings.rate_per_second)
        self._lock = threading.Lock()
        self._idle: list[Sender] = []
        self._all: list[Sender] = []
        self._answered = self._stopped = False
        key = set(shaper.kind.key)
        if writing.mode == "update" and set(writing.key_columns or key) != key:
            raise ConnectorError(
                "OData updates rows by their key alone.",
                reason="unsupported",
                hint=f"Take {', '.join(shaper.kind.key) or 'an entity set that has a key'} as key columns.",
            )

    def close(self) -> None:
        """Give threads and connections back."""
        self._lanes.close()
        for one in self._all:
            one.close()

    def stop(self) -> None:
        """From another thread: cut what is under way."""
        with self._lock:
            self._stopped, senders = True, list(self._all)
        for one in senders:
            one.stop()

    @contextmanager
    def _sender(self) -> Iterator[Sender]:
        """A sender for one thread: cookies and token are not shared with another."""
        with self._lock:
            sender = self._idle.pop() if self._idle else None
            if sender is None:
                sender = Sender(self.way)
                self._all.append(sender)
            if self._stopped:
                sender.stop()
        try:
            yield sender
        finally:
            with self._lock:
                self._idle.append(sender)

    # --- the three things that are asked for

    def send(self, rows: Rows, stop_at_failure: bool = False) -> list[Ended]:
        """See `Sending.send`."""
        made = self._made(rows)
        if self.settings.batch and self.writing.mode == "insert":
            return self._batched(made, stop_at_failure)
        return self._lanes.run(len(made), lambda place: self._one(made[place]), stop_at_failure)

    def delete(self, rows: Rows) -> list[Ended]:
        """See `Sending.delete`. A row is found by its key, or by the Location that was captured (`@location`)."""
        made = [self._deletion(index, values) for index, values in enumerate(_values(rows, self.writing))]
        return self._lanes.run(len(made), lambda place: self._one(made[place]))

    def requests(self, rows: Rows) -> list[str]:
        """See `Sending.requests`."""
        note = "(fetched before the first row is sent)"
        texts = []
        for row in self._made(rows):
            if row.request is None:
                texts.append(self.way.hush(f"Not sent: {row.misfit}"))
            elif self.settings.batch and self.writing.mode == "insert":
                texts.append(masked(self._batch([row], "batch", True), self.way, note))
            else:
                texts.append(masked(row.request, self.way, note))
        return texts

    # --- requests

    def _made(self, rows: Rows) -> list[_Row]:
        """The request of each row."""
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
                headers["If-Match"] = "*"  # or a row that is not there would be made (OData 4.01, 11.4.4)
            return _Row(index, self.way.request(method, path, headers, body.text()), path)
        except Misfit as error:
            return _Row(index, None, misfit=error)

    def _headers(self, body: Body) -> dict[str, str]:
        kind = "application/json" + (";IEEE754Compatible=true" if body.strings else "")
        return {**_ACCEPT, "Content-Type": kind, **_VERSIONS[self.shaper.version]}

    def _deletion(self, index: int, values: Mapping[str, Any]) -> _Row:
        try:
            location = values.get(LOCATION)
            path = self.shaper.path(values) if location is None else self.way.own(str(location))
            if not path:
                raise Misfit("wrong_type", f"{location} is not an address of this service")
            headers = {**_ACCEPT, **_VERSIONS[self.shaper.version]}
            return _Row(index, self.way.request("DELETE", path, headers), path)
        except Misfit as error:
            return _Row(index, None, misfit=error)

    # --- one row

    def _one(self, row: _Row) -> Ended:
        """Send a row to its end. Raises `ConnectorError` where no row can get there, and none has."""
        if row.request is None:
            return _unsent(row)
        request, seconds = row.request, self.settings.retry.timeout_seconds
        with self._sender() as sender:
            tried, stopped = self._lanes.attempt(lambda: self._written(sender, request, seconds))
            return self._ended(row.index, tried, stopped, request.method, sender)

    def _written(self, sender: Sender, request: requests.Request, seconds: float) -> Reply:
        """One attempt. A service that wants an ETag for a change by key gets the one that fits every row."""
        reply = sender.write(request, seconds)
        if request.method != "POST" and "If-Match" not in request.headers and _wants_etag(reply):
            request.headers["If-Match"] = "*"
            reply = sender.write(request, seconds)
        return reply

    def _ended(self, index: int, tried: Tried, stopped: bool, method: str, sender: Sender) -> Ended:
        if tried.reply is not None:
            return self._answer(index, tried, tried.reply, stopped, method, sender)
        ended = outcomes.ended(index, tried, stopped, self.way.hush)
        if ended.reason == "unreachable" and ended.state == "failed" and not self._answered:
            assert tried.error is not None
            raise of_net(tried.error)
        return ended

    def _answer(
        self, index: int, tried: Tried, reply: Reply, stopped: bool, method: str, sender: Sender
    ) -> Ended:
        csrf = about_csrf(reply) and self.settings.csrf != "off"
        if csrf and not self._answered:
            raise ConnectorError(sender.explained(), reason="csrf_failed", hint=CAUSES)
        self._answered = self._answered or not csrf
        if 200 <= reply.status < 300:
            return Ended(
                index, "delivered", reply.status, tried.attempts, ms=tried.ms, keys=self._keys(reply)
            )
        fault = odata_answers.fault(reply.body)
        reason = "csrf" if csrf else _reason(reply, fault, method)
        message = fault.message or reply.reason or f"Status {reply.status}"
        if csrf:
            message = f"{sender.explained()} {CAUSES}"
        state = "failed"
        if reason == "unique" and (tried.unanswered or self.writing.again):
            state, message = "unknown", f"{message} {_ONCE_MORE}"
        if stopped and state == "failed":
            reason = "interrupted"
        text = self.way.hush(message)[: limits.HTTP_BODY_CHARS]
        return Ended(index, state, reply.status, tried.attempts, reason, text, tried.ms)

    def _keys(self, reply: Reply) -> dict[str, Any]:
        """What is to be captured: from the body, else from the address of what was made."""
        if not self.capture:
            return {}
        told = odata_answers.values(reply.body, self.shaper.version) if not reply.truncated else {}
        location = reply.headers.get("Location") or reply.headers.get("OData-EntityId") or ""
        in_key = odata_answers.key_of(location, self.shaper.kind.key)
        found: dict[str, Any] = {}
        for name in self.capture:
            if name == LOCATION:
                found |= {name: self.way.own(location) or location} if location else {}
            elif (value := told.get(name, in_key.get(name))) is not None:
                found[name] = value
        return found

    # --- batches

    def _batch(self, rows: Sequence[_Row], boundary: str, onward: bool) -> requests.Request:
        inner = [row.request for row in rows if row.request is not None]
        headers = {"Accept": "multipart/mixed", "Content-Type": f"multipart/mixed; boundary={boundary}"}
        headers |= _VERSIONS[self.shaper.version]
        if onward and self.shaper.version == "v4":
            headers["Prefer"] = "odata.continue-on-error"
        return self.way.request(
            "POST", "$batch", headers, odata_batch.body(inner, [row.path for row in rows], boundary)
        )

    def _batched(self, rows: Sequence[_Row], stop_at_failure: bool) -> list[Ended]:
        """Rows by one request; those that the service left undone or asks for again, by further ones."""
        ended = {row.index: _unsent(row) for row in rows if row.request is None}
        pending = [row for row in rows if row.request is not None]
        answered: Counter[int] = Counter()
        with self._sender() as sender:
            while pending:
                try:
                    done, again = self._round(sender, pending, answered, stop_at_failure)
                except Stopped:
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
        ]  # what comes before a row not begun

    def _waited(self, again: Sequence[_Row], answered: Counter[int]) -> bool:
        """Wait before rows are sent again. False where the push ended."""
        try:
            self._hand.wait(self.settings.retry.wait_before(max(answered[row.index] for row in again)))
        except Exception:  # whatever stops the push
            return False
        return True

    def _round(
        self, sender: Sender, pending: Sequence[_Row], answered: Counter[int], stop_at_failure: bool
    ) -> tuple[list[Ended], list[_Row]]:
        """One request: rows that have their end, and rows to be sent again. `answered`: how often each was. Raises
        `Stopped` where nothing was sent."""
        retry = self.settings.retry
        request = self._batch(pending, f"batch_{secrets.token_hex(8)}", not stop_at_failure)
        tried, stopped = self._lanes.attempt(
            lambda: sender.write(request, retry.timeout_seconds, limits.ODATA_BATCH_BYTES)
        )
        if tried.reply is None or not outcomes.delivered(tried.reply):
            end = self._ended(0, tried, stopped, "POST", sender)
            return [replace(end, index=row.index) for row in pending], []
        try:
            parts = odata_batch.answers(tried.reply)
        except odata_batch.BadBatch as error:
            told = Ended(
                0, "unknown", tried.reply.status, tried.attempts, "rejected", f"Not read: {error}.", tried.ms
            )
            return [replace(told, index=row.index) for row in pending], []
        done: list[Ended] = []
        again: list[_Row] = []
        for row, part in zip(pending, parts, strict=False):
            answered[row.index] += 1
            if part.status in retry.retry_on and answered[row.index] <= retry.retries and not stopped:
                again.append(row)
            else:
                own = Tried(part, None, answered[row.index], False, tried.unanswered, tried.ms)
                done.append(self._answer(row.index, own, part, stopped, "POST", sender))
        return done, [*again, *pending[len(parts) :]]


def _values(rows: Rows, writing: Writing) -> Iterator[dict[str, Any]]:
    """Rows as Python has them, by column."""
    types = {one.name: one.type for one in writing.columns}
    columns = []
    for name, array in zip(rows.batch.schema.names, rows.batch.columns, strict=True):
        values = plain(array)
        if pa.types.is_binary(values.type) and types.get(name, "text") not in ("binary", "uuid", "other"):
            values = hexed(values)
        columns.append(values.to_pylist())
    names = rows.batch.schema.names
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _unsent(row: _Row) -> Ended:
    assert row.misfit is not None
    return Ended(row.index, "failed", None, 1, row.misfit.reason, str(row.misfit)[: limits.HTTP_BODY_CHARS])


def _interrupted(index: int) -> Ended:
    text = "The push ended before this row was sent again."
    return Ended(index, "failed", None, 1, "interrupted", text)


def _wants_etag(reply: Reply) -> bool:
    """428 by RFC 6585; older services say it in words."""
    body = reply.body.lower()
    return reply.status == 428 or (reply.status in (400, 412) and (b"if-match" in body or b"etag" in body))


def _reason(reply: Reply, fault: odata_answers.Fault, method: str) -> str:
    """Why a request was refused: see `channel.HTTP_REASONS` and `base.REASONS`."""
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

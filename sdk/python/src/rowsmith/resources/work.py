"""Exports and pushes: background work that you can follow, wait for and cancel."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from rowsmith.error import BadAnswer
from rowsmith.follow import Follower, LogLine
from rowsmith.pages import Pages
from rowsmith.record import IfMatch
from rowsmith.resources.base import Key, Resource
from rowsmith.streams import ByteStream, PathLike, saved

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rowsmith import types

EXPORT = "/exports/{export_id}"
PUSH = "/pushes/{push_id}"


class Exports(Resource):
    """`api.exports`. Create an export with `api.templates.export` or `api.datasets.export`."""

    def list(
        self,
        *,
        q: Optional[str] = None,
        template_id: Optional[str] = None,
        dataset_id: Optional[str] = None,
        status: Optional[str] = None,
    ) -> Pages[types.ExportOut]:
        """List the exports of the project, newest first."""
        query = {"q": q, "template_id": template_id, "dataset_id": dataset_id, "status": status}
        return self._list("/exports", query)

    def get(self, export_id: str) -> types.ExportOut:
        """Return the current state of an export."""
        return self._get(EXPORT, export_id=export_id)

    def cancel(self, export_id: str, *, if_match: IfMatch = None) -> types.ExportOut:
        """Cancel an export. Raises Conflict if it has finished."""
        return self._delete(EXPORT, if_match, export_id=export_id)

    def follow(self, export_id: str, *, timeout: Optional[float] = None) -> Follower[dict[str, Any]]:
        """Follow its counts whenever they change, until it finishes."""
        return self._progress(EXPORT + "/events", timeout, export_id=export_id)

    def wait(self, export_id: str, *, timeout: Optional[float] = None) -> types.ExportOut:
        """Wait until the export has finished and return it, whatever its `status`. Raises Timeout after
        `timeout` seconds."""
        self.follow(export_id, timeout=timeout).wait()
        return self.get(export_id)

    def manifest(self, export_id: str) -> types.ManifestOut:
        """Return its rows, and the size, checksum and URL of each part. An export without parts has one part."""
        return self._get(EXPORT + "/manifest", export_id=export_id)

    def part(self, export_id: str, number: int) -> ByteStream:
        """Stream the file of one part; the first is 1."""
        parts = {"export_id": export_id, "number": number}
        return ByteStream(self._caller.open("GET", EXPORT + "/parts/{number}", parts=parts))

    def answers(self, export_id: str, format: str = "ndjson") -> ByteStream:
        """Return its injected invalid cells, their kinds and the original values, as `ndjson`, `csv` or
        `json`."""
        parts, query = {"export_id": export_id}, {"format": format}
        return ByteStream(self._caller.open("GET", EXPORT + "/answers", parts=parts, query=query))

    def retry(self, export_id: str, *, idempotency_key: Key = None) -> types.ExportOut:
        """Create the missing parts of a failed or cancelled export: a new export that keeps the finished
        parts."""
        return self._create(EXPORT + "/retry", None, idempotency_key, export_id=export_id)

    def stream(self, export_id: str) -> ByteStream:
        """Stream the file."""
        return ByteStream(self._caller.open("GET", EXPORT + "/download", parts={"export_id": export_id}))

    def download(self, export_id: str, path: PathLike) -> Path:
        """Write the file to `path` atomically, and check its SHA-256.

        After a broken connection the download is resumed.
        """
        parts = {"export_id": export_id}
        wanted = self.get(export_id)["sha256"]
        made = saved(
            lambda headers: self._caller.open("GET", EXPORT + "/download", parts=parts, headers=headers),
            path,
            self._caller.retries,
        )
        if wanted and _sha256(made) != wanted:
            made.unlink()
            raise BadAnswer(
                "bad_answer", message=f"The downloaded file does not match {export_id} and was removed."
            )
        return made


class Pushes(Resource):
    """`api.pushes`. Create a push with `api.templates.push`, `api.datasets.push` or the two methods here."""

    def to_database(
        self, *, idempotency_key: Key = None, **request: Unpack[types.ExportDbInput]
    ) -> types.PushOut:
        """Send `rows`, or rows of `template_id`, to a table. With up to 1,000 rows, waits until they are
        delivered."""
        return self._create("/export/db", request, idempotency_key)

    def to_endpoint(
        self, *, idempotency_key: Key = None, **request: Unpack[types.ExportRestInput]
    ) -> types.PushOut:
        """Send `rows`, or rows of `template_id`, to an endpoint. With up to 1,000 rows, waits until they are
        delivered."""
        return self._create("/export/rest", request, idempotency_key)

    def list(
        self,
        *,
        q: Optional[str] = None,
        template_id: Optional[str] = None,
        dataset_id: Optional[str] = None,
        connection_id: Optional[str] = None,
        of_id: Optional[str] = None,
        status: Optional[str] = None,
    ) -> Pages[types.PushOut]:
        """List the pushes of the project, newest first; `of_id` lists the retries and undos of a push."""
        query = {"q": q, "template_id": template_id, "dataset_id": dataset_id, "status": status}
        return self._list("/pushes", {**query, "connection_id": connection_id, "of_id": of_id})

    def get(self, push_id: str) -> types.PushOut:
        """Return the current state of a push."""
        return self._get(PUSH, push_id=push_id)

    def bad(self, push_id: str) -> dict[str, int]:
        """Return what happened to its injected invalid rows."""
        return self._get(PUSH + "/bad", push_id=push_id)

    def cancel(self, push_id: str, *, if_match: IfMatch = None) -> types.PushOut:
        """Cancel a push. Committed rows stay. Raises Conflict if it has finished."""
        return self._delete(PUSH, if_match, push_id=push_id)

    def follow(self, push_id: str, *, timeout: Optional[float] = None) -> Follower[dict[str, Any]]:
        """Follow its counts whenever they change, until it finishes."""
        return self._progress(PUSH + "/events", timeout, push_id=push_id)

    def wait(self, push_id: str, *, timeout: Optional[float] = None) -> types.PushOut:
        """Wait until the push has finished and return it: check `status` and `counts`. Raises Timeout after
        `timeout` seconds."""
        self.follow(push_id, timeout=timeout).wait()
        return self.get(push_id)

    def rows(
        self,
        push_id: str,
        *,
        state: Optional[str] = None,
        table: Optional[str] = None,
        values: Optional[bool] = None,
    ) -> Pages[types.RowOut]:
        """List the outcome of each row; `values` includes the generated values."""
        return self._list(PUSH + "/rows", {"state": state, "table": table, "values": values}, push_id=push_id)

    def log(self, push_id: str) -> str:
        """Return the log so far."""
        return self._text(PUSH + "/logs", push_id=push_id)

    def follow_log(
        self, push_id: str, *, after: int = 0, timeout: Optional[float] = None
    ) -> Follower[LogLine]:
        """Follow the log, starting after line number `after`, until the push finishes."""
        return self._log(PUSH + "/logs", after, timeout, push_id=push_id)

    def retry(
        self, push_id: str, *, idempotency_key: Key = None, **request: Unpack[types.RetryInput]
    ) -> types.PushOut:
        """Send the rows that did not arrive again, as a new push."""
        return self._create(PUSH + "/retry", request, idempotency_key, push_id=push_id)

    def undo(
        self, push_id: str, *, idempotency_key: Key = None, **request: Unpack[types.UndoInput]
    ) -> types.PushOut:
        """Delete the delivered rows by their keys, as a new push."""
        return self._create(PUSH + "/undo", request, idempotency_key, push_id=push_id)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        pieces: Iterable[bytes] = iter(lambda: file.read(1 << 20), b"")
        for piece in pieces:
            digest.update(piece)
    return digest.hexdigest()

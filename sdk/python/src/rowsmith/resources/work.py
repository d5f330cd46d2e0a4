"""Exports and pushes: long work, done by workers, that is followed, waited for and cancelled."""

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
    """`api.exports`. An export is made by `api.templates.export` and `api.datasets.export`."""

    def list(
        self,
        *,
        q: Optional[str] = None,
        template_id: Optional[str] = None,
        dataset_id: Optional[str] = None,
        status: Optional[str] = None,
    ) -> Pages[types.ExportOut]:
        """The exports of the project, newest first."""
        query = {"q": q, "template_id": template_id, "dataset_id": dataset_id, "status": status}
        return self._list("/exports", query)

    def get(self, export_id: str) -> types.ExportOut:
        """An export as it is now."""
        return self._get(EXPORT, export_id=export_id)  # type: ignore[no-any-return]

    def cancel(self, export_id: str, *, if_match: IfMatch = None) -> types.ExportOut:
        """Cancel an export. Conflict where it has ended."""
        return self._delete(EXPORT, if_match, export_id=export_id)  # type: ignore[no-any-return]

    def follow(self, export_id: str, *, timeout: Optional[float] = None) -> Follower[dict[str, Any]]:
        """Its counts whenever they change, until it ends."""
        return self._progress(EXPORT + "/events", timeout, export_id=export_id)

    def wait(self, export_id: str, *, timeout: Optional[float] = None) -> types.ExportOut:
        """The export once it has ended, however it did: look at `status`. Timeout after so many seconds."""
        self.follow(export_id, timeout=timeout).wait()
        return self.get(export_id)

    def manifest(self, export_id: str) -> types.ManifestOut:
        """What it is made of: its rows, and the size, checksum and address of each part; of one file, one part."""
        return self._get(EXPORT + "/manifest", export_id=export_id)  # type: ignore[no-any-return]

    def part(self, export_id: str, number: int) -> ByteStream:
        """The file of one part, from number 1 on, as it comes."""
        parts = {"export_id": export_id, "number": number}
        return ByteStream(self._caller.open("GET", EXPORT + "/parts/{number}", parts=parts))

    def answers(self, export_id: str, format: str = "ndjson") -> ByteStream:
        """Which of its cells are bad on purpose, of which kind, and the good values: `ndjson`, `csv` or `json`."""
        parts, query = {"export_id": export_id}, {"format": format}
        return ByteStream(self._caller.open("GET", EXPORT + "/answers", parts=parts, query=query))

    def retry(self, export_id: str, *, idempotency_key: Key = None) -> types.ExportOut:
        """Have the missing parts of one that failed or was cancelled made: a new export, which keeps the others."""
        return self._create(EXPORT + "/retry", None, idempotency_key, export_id=export_id)  # type: ignore[no-any-return]

    def stream(self, export_id: str) -> ByteStream:
        """The file, as it comes."""
        return ByteStream(self._caller.open("GET", EXPORT + "/download", parts={"export_id": export_id}))

    def download(self, export_id: str, path: PathLike) -> Path:
        """Write the file to `path`, where it appears when it is whole and its SHA-256 is that of the export.

        After a break of the connection the rest is asked for.
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
                "bad_answer", message=f"The file that came is not that of {export_id}; it was removed."
            )
        return made


class Pushes(Resource):
    """`api.pushes`. A push is made by `api.templates.push`, `api.datasets.push` and the two methods here."""

    def to_database(
        self, *, idempotency_key: Key = None, **request: Unpack[types.ExportDbInput]
    ) -> types.PushOut:
        """Send `rows`, or rows of `template_id`, into a table. Up to 1,000 rows it answers when they are there."""
        return self._create("/export/db", request, idempotency_key)  # type: ignore[no-any-return]

    def to_endpoint(
        self, *, idempotency_key: Key = None, **request: Unpack[types.ExportRestInput]
    ) -> types.PushOut:
        """Send `rows`, or rows of `template_id`, to an endpoint. Up to 1,000 rows it answers when they are there."""
        return self._create("/export/rest", request, idempotency_key)  # type: ignore[no-any-return]

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
        """The pushes of the project, newest first; `of_id`: the retries and undos of one."""
        query = {"q": q, "template_id": template_id, "dataset_id": dataset_id, "status": status}
        return self._list("/pushes", {**query, "connection_id": connection_id, "of_id": of_id})

    def get(self, push_id: str) -> types.PushOut:
        """A push as it is now."""
        return self._get(PUSH, push_id=push_id)  # type: ignore[no-any-return]

    def bad(self, push_id: str) -> dict[str, int]:
        """What became of its rows that were bad on purpose."""
        return self._get(PUSH + "/bad", push_id=push_id)  # type: ignore[no-any-return]

    def cancel(self, push_id: str, *, if_match: IfMatch = None) -> types.PushOut:
        """Cancel a push; what was committed stays. Conflict where it has ended."""
        return self._delete(PUSH, if_match, push_id=push_id)  # type: ignore[no-any-return]

    def follow(self, push_id: str, *, timeout: Optional[float] = None) -> Follower[dict[str, Any]]:
        """Its counts whenever they change, until it ends."""
        return self._progress(PUSH + "/events", timeout, push_id=push_id)

    def wait(self, push_id: str, *, timeout: Optional[float] = None) -> types.PushOut:
        """The push once it has ended, however it did: look at `status` and `counts`. Timeout after so many seconds."""
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
        """What became of each row; `values` makes the rows again."""
        return self._list(PUSH + "/rows", {"state": state, "table": table, "values": values}, push_id=push_id)

    def log(self, push_id: str) -> str:
        """The log so far."""
        return self._text(PUSH + "/logs", push_id=push_id)

    def follow_log(
        self, push_id: str, *, after: int = 0, timeout: Optional[float] = None
    ) -> Follower[LogLine]:
        """The lines of the log as they are written, those after number `after`, until the push ends."""
        return self._log(PUSH + "/logs", after, timeout, push_id=push_id)

    def retry(
        self, push_id: str, *, idempotency_key: Key = None, **request: Unpack[types.RetryInput]
    ) -> types.PushOut:
        """Send the rows that did not arrive once more: a push of its own."""
        return self._create(PUSH + "/retry", request, idempotency_key, push_id=push_id)  # type: ignore[no-any-return]

    def undo(
        self, push_id: str, *, idempotency_key: Key = None, **request: Unpack[types.UndoInput]
    ) -> types.PushOut:
        """Delete the rows that arrived, by their keys: a push of its own."""
        return self._create(PUSH + "/undo", request, idempotency_key, push_id=push_id)  # type: ignore[no-any-return]


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        pieces: Iterable[bytes] = iter(lambda: file.read(1 << 20), b"")
        for piece in pieces:
            digest.update(piece)
    return digest.hexdigest()

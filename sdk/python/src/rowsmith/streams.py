"""Streams of rows and files: read in pieces, resumed after a broken connection, saved atomically."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Optional, Union

from rowsmith.error import ConnectionFailed, ServiceError
from rowsmith.wire.answer import Answer
from rowsmith.wire.retry import Retries

PathLike = Union[str, "os.PathLike[str]"]
FORMATS = {
    ".json": "json",
    ".csv": "csv",
    ".sql": "sql",
    ".xlsx": "xlsx",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
}
"""The format of each file name extension."""


class ByteStream:
    """A file that is streamed in pieces. Read it to the end or close it, for example with `with`.

    If rows were generated, `seed`, `now` and `version` reproduce the same bytes.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.headers: dict[str, str] = dict(answer.headers.items())
        self.seed = answer.headers.get("X-Seed")
        self.now = answer.headers.get("X-Now")
        self.version = answer.headers.get("X-Template-Version")

    def __enter__(self) -> ByteStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        return self._answer.pieces()

    def read(self) -> bytes:
        """Return the whole content."""
        return self._answer.read()

    def close(self) -> None:
        """Stop reading and discard the rest."""
        self._answer.close()


Again = Callable[[Mapping[str, Any]], Answer]
"""Requests rows again, with these keys of the request changed."""


class RowStream:
    """An iterator over rows as dictionaries, in constant memory. Iterate it once.

    After a broken connection the missing rows are requested with the same seed and time, since a row's values
    depend on nothing else. `seed`, `now` and `version` are known with the first row.
    """

    def __init__(
        self, again: Again, retries: Retries, *, offset: int, total: Callable[[], Optional[int]]
    ) -> None:
        self.seed: Optional[str] = None
        self.now: Optional[str] = None
        self.version: Optional[str] = None
        self._pins: Optional[list[Optional[str]]] = None
        self._again, self._retries, self._offset, self._total = again, retries, offset, total
        self._seen = 0
        self._rows = self._iterate()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        return next(self._rows)

    def close(self) -> None:
        """Stop reading and discard the rest."""
        self._rows.close()

    def _iterate(self) -> Generator[dict[str, Any], None, None]:
        changes: dict[str, Any] = {}
        attempt = 0
        while True:
            try:
                with self._again(changes) as answer:
                    self._check_pins(answer)
                    for line in split_lines(answer.pieces()):
                        row = json.loads(line)
                        self._seen += 1
                        attempt = 0
                        yield row
                return
            except ConnectionFailed as error:
                wait = self._retries.wait(attempt, error, repeatable=True)
                total = None if wait is None else self._total()
                if wait is None or total is None:
                    raise
            if self._seen >= total:
                return  # everything except the end of the response had arrived
            changes = {"seed": self.seed, "now": self.now, "offset": self._offset + self._seen}
            changes = {key: value for key, value in changes.items() if value is not None}
            changes["count"] = total - self._seen
            self._retries.sleep(wait)
            attempt += 1

    def _check_pins(self, answer: Answer) -> None:
        names = ("X-Template-Version", "X-Vocabulary", "X-Engine")
        pins = [answer.headers.get(name) for name in names]
        if self._pins is not None and pins != self._pins:
            message = "The template was changed while its rows were read. Start again."
            raise ServiceError("version_conflict", 412, {}, answer.request_id, message)
        self._pins, self.version = pins, pins[0]
        self.seed, self.now = answer.headers.get("X-Seed"), answer.headers.get("X-Now")


def saved(open: Callable[[Mapping[str, str]], Answer], path: PathLike, retries: Retries) -> Path:
    """Write a response to a file atomically, replacing an existing file.

    `open` is called with headers: after a broken connection with a Range for the rest if the response
    supports ranges (RFC 9110, 14), otherwise without, from the start.
    """
    target = Path(path)
    with replacing(target) as file:
        _write_response(file, open, retries)
    return target


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """Open a new file that replaces `target` at the end of the block; after an error, it is deleted."""
    # The name is known before the file exists, so that Ctrl-C at any moment leaves nothing behind.
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def _write_response(file: Any, open: Callable[[Mapping[str, str]], Answer], retries: Retries) -> None:
    headers: dict[str, str] = {}
    attempt = 0
    while True:
        try:
            with open(headers) as answer:
                if answer.status != 206:
                    file.seek(0)
                    file.truncate()
                tag = answer.headers.get("ETag") or ""
                supports_ranges = answer.headers.get("Accept-Ranges") == "bytes" or answer.status == 206
                for piece in answer.pieces():
                    file.write(piece)
                    attempt = 0
            return
        except ConnectionFailed as error:
            wait = retries.wait(attempt, error, repeatable=True)
            if wait is None:
                raise
            if not file.tell():
                headers = {}
            elif supports_ranges and tag and not tag.startswith("W/"):
                headers = {"Range": f"bytes={file.tell()}-", "If-Range": tag}
        retries.sleep(wait)
        attempt += 1


def format_of(path: PathLike) -> str:
    """Return the format of a file name: `customers.csv` -> `csv`. Raise ValueError for an unknown extension."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"{suffix or 'no suffix'!r} does not indicate a format. Specify one of: {', '.join(FORMATS)}")
    return FORMATS[suffix]


def arrow_table(parquet: bytes) -> Any:
    """Return a Parquet file as pyarrow.Table. Raise ImportError if pyarrow is not installed."""
    import io

    import pyarrow.parquet

    return pyarrow.parquet.read_table(io.BytesIO(parquet))


def split_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield complete lines. The last line without a line end is only yielded if the stream ended properly."""
    rest: list[bytes] = []
    for piece in pieces:
        first, *lines = piece.split(b"\n")
        rest.append(first)
        if lines:
            yield from (line for line in (b"".join(rest), *lines[:-1]) if line.strip())
            rest = [lines[-1]]
    last = b"".join(rest)
    if last.strip():
        yield last

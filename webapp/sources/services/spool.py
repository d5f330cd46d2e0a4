"""Sources on the disk of the process that reads them: unnamed Arrow files, accessed through the page cache.

Rows are written to the file while they are read, so a source takes no more memory than one block. The file is unlinked
when it is opened, so the real data are deleted when the process exits for any reason. The latest sources stay open for
the next request, within `limits.SOURCE_CACHE_BYTES`.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Final

import pyarrow as pa

from webapp import limits
from webapp.engine.source_data import SourceTable
from webapp.errors import ApiError


def too_large() -> ApiError:
    """The error for a source beyond the limits."""
    text = f"A source may have {limits.SOURCE_ROWS:,} rows and {limits.SOURCE_BYTES // 2**30} GB; this one has more."
    hint = "Choose among its rows: by a condition, a query, or limit."
    return ApiError("payload_too_large", text, {"max_rows": limits.SOURCE_ROWS, "hint": hint})


@contextmanager
def unnamed() -> Iterator[IO[bytes]]:
    """Create a temporary file that no other process can open."""
    with tempfile.TemporaryFile() as file:
        yield file


class Spool:
    """A source being read into a file, and the file's bytes as long as this is open."""

    def __init__(self) -> None:
        self._file = tempfile.NamedTemporaryFile(prefix="rowsmith-source-")  # noqa: SIM115

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()  # and its name is gone; what is mapped stays

    def write(self, batches: Iterable[pa.RecordBatch], limit: int | None = None) -> None:
        """Take in the batches, which share a schema. Error: payload_too_large."""
        most = min(limit or limits.SOURCE_ROWS, limits.SOURCE_ROWS)
        _write(batches, self._file, most, limit is None)
        self._file.flush()

    def fill(self, pieces: Iterable[bytes]) -> None:
        """Take in the bytes of an Arrow file."""
        for piece in pieces:
            self._file.write(piece)
        self._file.flush()

    def bytes(self) -> Iterator[bytes]:
        """The number of bytes written."""
        self._file.seek(0)
        while piece := self._file.read(limits.STORAGE_CHUNK_BYTES):
            yield piece

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self._file.seek(0, os.SEEK_END)

    def sha256(self) -> str:
        """Of what was written, in hexadecimal."""
        digest = hashlib.sha256()
        for piece in self.bytes():
            digest.update(piece)
        return digest.hexdigest()

    def real(self, snapshot: str) -> SourceTable:
        """Return the source, mapped into memory. It is valid as long as it is referenced."""
        return SourceTable(pa.ipc.open_file(pa.memory_map(self._file.name)).read_all(), snapshot)


def _write(batches: Iterable[pa.RecordBatch], file: IO[bytes], most: int, refuse: bool) -> int:
    rows, writer = 0, None
    try:
        for batch in batches:
            if writer is None:
                writer = pa.ipc.new_file(pa.PythonFile(file, "w"), batch.schema)
            if rows + batch.num_rows > most and refuse:
                raise too_large()
            for start in range(0, batch.num_rows, limits.SOURCE_BLOCK_ROWS):
                piece = batch.slice(start, min(limits.SOURCE_BLOCK_ROWS, most - rows))
                if piece.num_rows:
                    writer.write_batch(piece)
                rows += piece.num_rows
            if file.tell() > limits.SOURCE_BYTES:
                raise too_large()
            if rows >= most and not refuse:
                break
        if writer is None:
            raise ApiError("validation_error", "The source has no columns.", {"fields": []})
    finally:
        if writer is not None:
            writer.close()
    return rows


class _Open:
    """Sources that are open in this process; the least recently used are closed first. Thread-safe:
    concurrent requests for one source read it once."""

    def __init__(self, most: int = limits.SOURCE_CACHE_BYTES) -> None:
        self._most, self._held = most, 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[SourceTable, int]] = OrderedDict()
        self._doing: dict[str, threading.Lock] = {}

    def get(self, key: str, make: Callable[[], SourceTable]) -> SourceTable:
        """Return the source with the key `key`, created by `make` if it is not open."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
            turn = self._doing.setdefault(key, threading.Lock())
        with turn:
            with self._lock:
                if key in self._kept:
                    return self._kept[key][0]
            try:
                made = make()
            finally:
                with self._lock:
                    self._doing.pop(key, None)
            self._put(key, made)
            return made

    def _put(self, key: str, made: SourceTable) -> None:
        size = made.table.nbytes
        with self._lock:
            if key in self._kept or size > self._most:
                return
            self._kept[key] = (made, size)
            self._held += size
            while self._held > self._most:
                self._held -= self._kept.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Let go of all of them."""
        with self._lock:
            self._kept.clear()
            self._held = 0


OPEN: Final = _Open()

"""File storage with four operations: put a stream, get a range as a stream, list, delete.

A local folder by default, S3 with STORAGE_URL. Keys are paths such as `exports/exp_01.../rows.csv`. A put is atomic:
the file is not visible until it is complete. The S3 client has its own threads, so a process must not use it before it
forks; it is created on first use.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from webapp import limits

if TYPE_CHECKING:
    from flask import Flask
    from obstore.store import ClientConfig

    from webapp.config import Settings

_NAME: Final = "rowsmith.storage"


class MissingError(Exception):
    """There is no file under this key."""


class StorageError(OSError):
    """The storage failed: it does not respond, rejects the credentials, is full, ..."""


@contextmanager
def _errors() -> Iterator[None]:
    """Raise the errors of the client as StorageError. The client is imported on first use: it takes 4 MB."""
    from obstore.exceptions import BaseError

    try:
        yield
    except BaseError as error:
        raise StorageError(str(error)) from error


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An existing file: its size in bytes, and the store's own tag of its content."""

    key: str
    size: int
    tag: str | None


class Storage:
    """One store. Thread-safe."""

    def __init__(self, create_store: Callable[[], Any]) -> None:
        self._create = create_store
        self._cached: tuple[int, Any] | None = None

    @property
    def _store(self) -> Any:
        if self._cached is None or self._cached[0] != os.getpid():
            self._cached = (os.getpid(), self._create())
        return self._cached[1]

    def put(self, key: str, chunks: Iterable[bytes | memoryview]) -> int:
        """Store a stream under a key, replacing its content. Return the number of bytes.

        If the stream raises an exception, nothing is stored and the exception is raised.
        """
        import obstore

        stream = _CountingStream(chunks)
        try:
            with _errors():
                obstore.put(
                    self._store,
                    check_key(key),
                    stream,
                    use_multipart=True,
                    chunk_size=limits.STORAGE_PART_BYTES,
                    max_concurrency=limits.STORAGE_PARTS_AT_ONCE,
                )
        except Exception as error:
            raise stream.error or error from None
        return stream.total

    def head(self, key: str) -> StoredFile:
        """Return the metadata of a file. Error: MissingError."""
        import obstore

        with _errors():
            try:
                meta = obstore.head(self._store, check_key(key))
            except FileNotFoundError:
                raise MissingError(key) from None
        return StoredFile(key, int(meta["size"]), meta.get("e_tag"))

    def get(self, key: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes from `start` up to, excluding, `end` (None: the end). Error: MissingError, immediately."""
        import obstore

        options: obstore.GetOptions = {}
        if end is not None:
            if end <= start:
                self.head(key)
                return iter(())
            options["range"] = (start, end)
        elif start:
            options["range"] = {"offset": start}
        with _errors():
            try:
                found = obstore.get(self._store, check_key(key), options=options)
            except FileNotFoundError:
                raise MissingError(key) from None
        return _pieces(found)

    def listing(self, folder: str) -> list[StoredFile]:
        """Return the files whose keys begin with `folder` and a slash, by key; few are expected."""
        import obstore

        with _errors():
            found = [meta for batch in obstore.list(self._store, prefix=check_key(folder)) for meta in batch]
        return sorted(
            (StoredFile(meta["path"], int(meta["size"]), meta.get("e_tag")) for meta in found),
            key=lambda item: item.key,
        )

    def walk(self) -> Iterator[StoredFile]:
        """Yield every file of the storage, in no particular order."""
        import obstore

        with _errors():
            for batch in obstore.list(self._store):
                for item in batch:
                    yield StoredFile(item["path"], int(item["size"]), item.get("e_tag"))

    def delete(self, key: str) -> None:
        """Remove a file, if it exists."""
        import obstore

        with _errors(), suppress(FileNotFoundError):
            obstore.delete(self._store, check_key(key))

    def is_usable(self) -> bool:
        """Return whether a file can currently be written, read and deleted."""
        key = f"health/{uuid.uuid4().hex}"
        self.put(key, [b"ok"])
        try:
            return b"".join(self.get(key)) == b"ok"
        finally:
            self.delete(key)


def _pieces(found: Any) -> Iterator[bytes]:
    with _errors():
        for piece in found.stream(min_chunk_size=limits.STORAGE_CHUNK_BYTES):
            yield bytes(piece)


class _CountingStream:
    """A stream that counts its bytes and remembers why it broke."""

    def __init__(self, chunks: Iterable[bytes | memoryview]) -> None:
        self._chunks = iter(chunks)
        self.total = 0
        self.error: BaseException | None = None

    def __iter__(self) -> _CountingStream:
        return self

    def __next__(self) -> bytes | memoryview:
        try:
            chunk = next(self._chunks)
        except StopIteration:
            raise
        except BaseException as error:
            self.error = error
            raise
        self.total += len(chunk)
        return chunk


def check_key(key: str) -> str:
    """Return the key if it is inside the storage; ValueError for `..`, an absolute path or control characters."""
    parts = key.split("/")
    if not key or any(part in ("", ".", "..") for part in parts) or "\\" in key or not key.isprintable():
        raise ValueError(f"not a storage key: {key!r}")
    return key


def from_url(url: str, s3_options: dict[str, str] | None = None) -> Storage:
    """Open `file:///folder` (created if missing) or `s3://bucket/prefix` with the AWS_* options."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Storage(lambda: _local_store(Path(unquote(parts.path))))
    return Storage(lambda: _s3(url, s3_options or {}))


def _local_store(folder: Path) -> Any:
    from obstore.store import LocalStore

    folder.mkdir(parents=True, exist_ok=True)
    return LocalStore(prefix=folder)


def _s3(url: str, options: dict[str, str]) -> Any:
    from obstore.store import S3Store

    settings = {name.removeprefix("AWS_").lower(): value for name, value in options.items()}
    config: Any = {"endpoint" if name == "endpoint_url" else name: value for name, value in settings.items()}
    client: ClientConfig = {"timeout": f"{limits.STORAGE_TIMEOUT_SECONDS}s"}
    if config.get("endpoint", "").startswith("http://"):
        client["allow_http"] = True
    # `config` is a TypedDict of obstore; the operator's settings bring the keys.
    return S3Store.from_url(url, config=config, client_options=client)


def init_app(app: Flask, settings: Settings) -> None:
    """Configure the application's storage; nothing is opened yet."""
    app.extensions[_NAME] = from_url(settings.storage_url, settings.s3_options)


def get_storage(app: Flask) -> Storage:
    """Return the application's storage."""
    store: Storage = app.extensions[_NAME]
    return store

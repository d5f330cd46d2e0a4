"""Request bodies: JSON, or the bytes of a file in pieces, directly or as part of a form. Each can be sent
again."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Final, Optional, Union

PIECE: Final = 64 * 1024
"""Number of bytes to read at a time."""
SPOOLED: Final = 1024 * 1024
"""Bytes of a stream of unknown size that are kept in memory; larger streams use a temporary file."""

Content = Union[str, bytes, "os.PathLike[str]", BinaryIO]
"""The content of a file: bytes, a text (as UTF-8), a path, or an open binary file from its current position."""


class Json:
    """A JSON document."""

    def __init__(self, data: Any) -> None:
        self._raw = json.dumps(data, ensure_ascii=False, allow_nan=False, default=_plain).encode()

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the body."""
        return {"Content-Type": "application/json", "Content-Length": str(len(self._raw))}

    def pieces(self) -> Iterator[bytes]:
        """Yield its bytes from the start."""
        yield self._raw

    def close(self) -> None:
        """Do nothing; there is nothing to release."""


class Source:
    """The bytes of a file, readable repeatedly, never completely in memory. `size` is in bytes."""

    def __init__(self, content: Content) -> None:
        self._raw: Optional[bytes] = None
        self._path: Optional[Path] = None
        self._file: Optional[BinaryIO] = None
        self._start = 0
        self._own = False
        if isinstance(content, (str, bytes)):
            self._raw = content.encode() if isinstance(content, str) else content
            self.size = len(self._raw)
        elif isinstance(content, os.PathLike):
            self._path = Path(content)
            self.size = self._path.stat().st_size
        else:
            self._own = not _seekable(content)
            self._file = _spooled(content) if self._own else content
            self._start = self._file.tell()
            self.size = self._file.seek(0, os.SEEK_END) - self._start

    @property
    def name(self) -> Optional[str]:
        """The file's own name, if it has one."""
        name = self._path or getattr(self._file, "name", None)
        return Path(name).name if isinstance(name, (str, Path)) else None

    def pieces(self) -> Iterator[bytes]:
        """Yield `size` bytes from the start. Raise ValueError if the file has become shorter."""
        if self._raw is not None:
            yield self._raw
        elif self._path is not None:
            with self._path.open("rb") as file:
                yield from self._read(file)
        elif self._file is not None:
            self._file.seek(self._start)
            yield from self._read(self._file)

    def close(self) -> None:
        """Close the temporary file, if there is one. The caller's file stays open."""
        if self._own and self._file is not None:
            self._file.close()

    def _read(self, file: BinaryIO) -> Iterator[bytes]:
        left = self.size
        while left:
            piece = file.read(min(PIECE, left))
            if not piece:
                raise ValueError("The file became shorter while it was being sent.")
            left -= len(piece)
            yield piece


class Raw:
    """A file as the whole body."""

    def __init__(self, content: Content, content_type: str = "application/octet-stream") -> None:
        self._source = Source(content)
        self._type = content_type

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the body."""
        return {"Content-Type": self._type, "Content-Length": str(self._source.size)}

    def pieces(self) -> Iterator[bytes]:
        """Yield its bytes from the start."""
        return self._source.pieces()

    def close(self) -> None:
        """Close the source; it cannot be sent again."""
        self._source.close()


class Form:
    """`multipart/form-data` (RFC 7578): fields, then one file. Every attempt sends the same bytes."""

    def __init__(
        self,
        fields: Mapping[str, str],
        file: Content,
        *,
        part: str = "file",
        file_name: str = "file",
        content_type: str = "application/octet-stream",
    ) -> None:
        self._source = Source(file)
        boundary = f"rowsmith-{uuid.uuid4().hex}"
        self._type = f"multipart/form-data; boundary={boundary}"
        head = ""
        for name, value in fields.items():
            head += (
                f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"\r\n\r\n{value}\r\n'
            )
        head += f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(part)}"'
        head += f'; filename="{_quoted(file_name)}"\r\nContent-Type: {_one_line(content_type)}\r\n\r\n'
        self._head = head.encode()
        self._tail = f"\r\n--{boundary}--\r\n".encode()

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the body."""
        size = len(self._head) + self._source.size + len(self._tail)
        return {"Content-Type": self._type, "Content-Length": str(size)}

    def pieces(self) -> Iterator[bytes]:
        """Yield its bytes from the start."""
        yield self._head
        yield from self._source.pieces()
        yield self._tail

    def close(self) -> None:
        """Close the source; it cannot be sent again."""
        self._source.close()


Body = Union[Json, Raw, Form]


def _plain(value: Any) -> Any:
    """Convert values that JSON does not support: fields, dates, decimals, paths."""
    for method in ("to_dict", "isoformat"):
        if hasattr(value, method):
            return getattr(value, method)()
    if isinstance(value, Decimal):  # a number if it has the same value, otherwise its digits
        number = float(value)
        return number if Decimal(repr(number)) == value else str(value)
    if isinstance(value, (uuid.UUID, os.PathLike)):
        return str(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be represented in JSON.")


def _seekable(file: BinaryIO) -> bool:
    try:
        return file.seekable()
    except AttributeError:
        return False


def _spooled(file: BinaryIO) -> BinaryIO:
    kept = tempfile.SpooledTemporaryFile(max_size=SPOOLED)  # noqa: SIM115  # closed together with the body
    while piece := file.read(PIECE):
        kept.write(piece)
    kept.seek(0)
    return kept  # type: ignore[return-value]  # a file in all that matters


def _quoted(name: str) -> str:
    """Quote a name as browsers do (HTML standard, multipart/form-data encoding)."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{text!r} is not a content type.")
    return text

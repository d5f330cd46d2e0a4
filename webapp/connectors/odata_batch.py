"""`$batch`: many rows in one request, one changeset a row, so that each row has its own end.

Sources: OData V2 "Batch Processing"; OData 4.01 Protocol, section 11.7.7 (Multipart Batch Format); RFC 2046, 5.1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import requests
from requests.structures import CaseInsensitiveDict

from webapp.net.session import Reply

_BOUNDARY: Final = re.compile(r'boundary="?([^";,\s]+)"?', re.IGNORECASE)
_STATUS: Final = re.compile(rb"HTTP/1\.\d (\d{3}) ?([^\r\n]*)\r?\n")
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")


class BadBatch(ValueError):
    """An answer to a batch that cannot be read."""


def body(inner: Sequence[requests.Request], paths: Sequence[str], boundary: str) -> bytes:
    """The multipart body of some requests; `paths` are theirs, relative to the service root."""
    parts: list[bytes] = []
    for index, (one, path) in enumerate(zip(inner, paths, strict=True), 1):
        parts += [
            f"--{boundary}\r\nContent-Type: multipart/mixed; boundary={boundary}-{index}\r\n\r\n".encode(),
            part(one, path, f"{boundary}-{index}", index),
            b"\r\n",
        ]
    return b"".join([*parts, f"--{boundary}--\r\n".encode()])


def part(one: requests.Request, path: str, boundary: str, number: int) -> bytes:
    """One changeset of one request."""
    data: bytes = one.data or b""
    headers = {**one.headers, "Content-Length": str(len(data))}
    lines = [
        f"--{boundary}", "Content-Type: application/http", "Content-Transfer-Encoding: binary",
        f"Content-ID: {number}", "", f"{one.method} {path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.items()), "", "",
    ]  # fmt: skip
    return "\r\n".join(lines).encode() + data + f"\r\n--{boundary}--\r\n".encode()


def answers(reply: Reply) -> list[Reply]:
    """The answers inside the answer to a batch, in the order of its rows. Raises `BadBatch`."""
    if reply.truncated:
        raise BadBatch("the answer to the batch is too long or broke off")
    found = _answers(reply.body, reply.headers.get("Content-Type", ""), reply, 0)
    if not found:
        raise BadBatch("the answer to the batch tells of no row")
    return found


def _answers(content: bytes, kind: str, reply: Reply, depth: int) -> list[Reply]:
    found = _BOUNDARY.search(kind)
    if found is None or depth > 2:
        raise BadBatch(
            f"the answer to the batch is {kind.partition(';')[0] or 'of no type'}, not multipart/mixed"
        )
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
        raise BadBatch("a part of the answer to the batch is no HTTP answer")
    headers, content = _split(text[line.end() :])
    length = headers.get("Content-Length", "")
    if length.isdigit():
        content = content[: int(length)]
    return Reply(int(line[1]), line[2].decode("latin-1"), headers, content, False, reply.url, reply.ms)


def _split(text: bytes) -> tuple[CaseInsensitiveDict[str], bytes]:
    """Headers and what follows them; a part may have no headers, or nothing behind them."""
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

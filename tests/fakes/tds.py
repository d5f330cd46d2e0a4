"""A SQL Server of one process, for the real driver: TDS 7.4 over TCP, with SQLite behind it.

Wire: [MS-TDS]. It takes PRELOGIN, LOGIN7, SQL batches and attention, and answers with LOGINACK, ENVCHANGE,
COLMETADATA, ROW, ERROR and DONE. What the statements mean is `tds_sql`'s.
"""

from __future__ import annotations

import itertools
import socket
import struct
import threading
from pathlib import Path
from typing import Any

from tests.fakes.tds_sql import Database, Refused

BATCH, RESPONSE, ATTENTION, LOGIN, PRELOGIN = 1, 4, 6, 0x10, 0x12
DONE, ERROR, LOGINACK, ENVCHANGE, COLMETADATA, ROW = 0xFD, 0xAA, 0xAD, 0xE3, 0x81, 0xD1
MORE, FAILED, COUNTED, STOPPED = 1, 2, 0x10, 0x20
PACKET = 4096


class Tds:
    """Listens on 127.0.0.1 at `port`. `accounts`: name to (password, may write)."""

    def __init__(self, folder: Path, accounts: dict[str, tuple[str, bool]]) -> None:
        self.folder, self.accounts = folder, accounts
        self.peers: dict[str, list[socket.socket]] = {}
        self.batches: list[str] = []
        self._numbers = itertools.count(1)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def stop(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()
        for thread in self._threads:
            thread.join(5)

    def cut(self) -> None:
        """End every connection."""
        for peer in itertools.chain(*self.peers.values()):
            try:
                peer.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listening.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(peer,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, peer: socket.socket) -> None:
        database: Database | None = None
        try:
            while True:
                kind, body = _message(peer)
                if kind == PRELOGIN:
                    _answer(peer, _prelogin())
                elif kind == LOGIN:
                    name, password = _account(body)
                    if self.accounts.get(name, (None,))[0] != password:
                        text = f"Login failed for user '{name}'."
                        _answer(peer, _error(18456, 14, text) + _done(FAILED))
                        return
                    self.peers.setdefault(name, []).append(peer)
                    database = Database(self.folder, self.accounts[name][1])
                    _answer(peer, _welcome())
                elif kind == ATTENTION:
                    _answer(peer, _done(STOPPED))
                elif kind == BATCH and database is not None:
                    size = struct.unpack_from("<I", body)[0]  # the headers before the text
                    text = body[size:].decode("utf-16-le")
                    self.batches.append(text)
                    _answer(peer, _results(database, text))
        except (OSError, EOFError):
            pass
        finally:
            if database is not None:
                database.close()
            peer.close()


def _message(peer: socket.socket) -> tuple[int, bytes]:
    body = b""
    while True:
        kind, status, size = struct.unpack(">BBH", _exactly(peer, 8)[:4])
        body += _exactly(peer, size - 8)
        if status & 1:
            return kind, body


def _exactly(peer: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = peer.recv(size - len(found))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)


def _answer(peer: socket.socket, body: bytes) -> None:
    room = PACKET - 8
    pieces = [body[at : at + room] for at in range(0, len(body), room)] or [b""]
    out = bytearray()
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        out += struct.pack(">BBHHBB", RESPONSE, last, len(piece) + 8, 0, (number + 1) % 256, 0) + piece
    peer.sendall(out)


def _prelogin() -> bytes:
    options = [(0, b"\x10\0\0\0\0\0"), (1, b"\x02"), (2, b"\0"), (3, b""), (4, b"\0")]  # encryption: not supported
    at, head, tail = 5 * len(options) + 1, b"", b""
    for token, value in options:
        head += struct.pack(">BHH", token, at + len(tail), len(value))
        tail += value
    return head + b"\xff" + tail


def _account(body: bytes) -> tuple[str, str]:
    def text(place: int, scrambled: bool = False) -> str:
        start, length = struct.unpack_from("<HH", body, place)
        found = body[start : start + 2 * length]
        if scrambled:
            found = bytes(((one ^ 0xA5) & 0x0F) << 4 | ((one ^ 0xA5) & 0xF0) >> 4 for one in found)
        return found.decode("utf-16-le")

    return text(40), text(44, scrambled=True)


def _short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode("utf-16-le")


def _token(kind: int, body: bytes) -> bytes:
    return struct.pack("<BH", kind, len(body)) + body


def _welcome() -> bytes:
    change = _token(ENVCHANGE, b"\x01" + _short("shop") + _short("master"))
    packet = _token(ENVCHANGE, b"\x04" + _short(str(PACKET)) + _short(str(PACKET)))
    ack = _token(LOGINACK, b"\x01\x74\x00\x00\x04" + _short("Microsoft SQL Server") + b"\x10\0\0\0")
    return change + ack + packet + _done(0)


def _error(number: int, severity: int, text: str) -> bytes:
    said = struct.pack("<H", len(text)) + text.encode("utf-16-le")
    body = struct.pack("<IBB", number, 1, severity) + said + _short("fake") + _short("") + struct.pack("<I", 1)
    return _token(ERROR, body)


def _done(status: int, count: int = 0) -> bytes:
    return struct.pack("<BHHQ", DONE, status, 0, count)


def _results(database: Database, text: str) -> bytes:
    out = b""
    try:
        for names, rows, count in database.batch(text):
            if names is not None:
                out += _table(names, rows)
            out += _done(MORE | COUNTED, count)
    except Refused as refused:
        return out + _error(refused.number, 16, str(refused)) + _done(FAILED)
    return out + _done(0)


def _table(names: list[str], rows: list[tuple[Any, ...]]) -> bytes:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    kinds = [_kind(values) for values in columns]
    out = struct.pack("<BH", COLMETADATA, len(names))
    for name, kind in zip(names, kinds, strict=True):
        out += struct.pack("<IH", 0, 1) + _TYPES[kind] + _short(name)
    parts = [out]
    for row in rows:
        parts.append(bytes([ROW]))
        parts += [_VALUES[kind](value) for kind, value in zip(kinds, row, strict=True)]
    return b"".join(parts)


def _kind(values: tuple[Any, ...]) -> str:
    found = {type(one) for one in values if one is not None}
    if found == {int}:
        return "int"
    if found and found <= {int, float}:
        return "float"
    return "bytes" if found == {bytes} else "text"


_TYPES = {
    "int": b"\x26\x08",
    "float": b"\x6d\x08",
    "bytes": b"\xa5\xff\xff",
    "text": b"\xe7\xff\xff\x09\x04\xd0\0\x34",  # nvarchar(max), SQL_Latin1_General_CP1_CI_AS
}


def _long(value: bytes | None) -> bytes:
    if value is None:
        return b"\xff" * 8
    chunk = struct.pack("<I", len(value)) + value if value else b""
    return struct.pack("<Q", len(value)) + chunk + b"\0\0\0\0"


_VALUES = {
    "int": lambda value: b"\0" if value is None else b"\x08" + struct.pack("<q", value),
    "float": lambda value: b"\0" if value is None else b"\x08" + struct.pack("<d", value),
    "bytes": _long,
    "text": lambda value: _long(None if value is None else str(value).encode("utf-16-le")),
}

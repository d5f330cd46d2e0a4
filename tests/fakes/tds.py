"""A SQL Server of one process, for the real driver: TDS 7.4 over TCP, with SQLite behind it.

Wire: [MS-TDS]. It takes PRELOGIN, LOGIN7, SQL batches and attention, and answers with LOGINACK, ENVCHANGE,
COLMETADATA, ROW, ERROR and DONE. What the statements mean is `tds_sql`'s.
"""

from __future__ import annotations

import socket
import ssl
import struct
from pathlib import Path
from typing import Any

from tests.fakes.listening import Listening, exactly
from tests.fakes.tds_sql import Database, Refused

BATCH, RESPONSE, ATTENTION, LOGIN, PRELOGIN = 1, 4, 6, 0x10, 0x12
DONE, ERROR, LOGINACK, ENVCHANGE, COLMETADATA, ROW = 0xFD, 0xAA, 0xAD, 0xE3, 0x81, 0xD1
MORE, FAILED, COUNTED, STOPPED = 1, 2, 0x10, 0x20
PACKET = 4096


class Tds(Listening):
    """`accounts`: name to (password, may write). `within`: TLS is spoken behind the first packets. `signed_in` are the
    accounts that were let in."""

    def __init__(
        self, folder: Path, accounts: dict[str, tuple[str, bool]], within: ssl.SSLContext | None = None
    ) -> None:
        self.folder, self.accounts, self.within = folder, accounts, within
        self.signed_in: list[str] = []
        self.batches: list[str] = []
        super().__init__()

    def talk(self, peer: socket.socket) -> None:
        database: Database | None = None
        way: socket.socket | Secured = peer
        try:
            while True:
                kind, body = _message(way)
                if kind == PRELOGIN:
                    _answer(way, _prelogin(encrypted=self.within is not None))
                    if self.within is not None:
                        way = Secured(peer, self.within)
                elif kind == LOGIN:
                    name, password = _account(body)
                    if self.accounts.get(name, (None,))[0] != password:
                        text = f"Login failed for user '{name}'."
                        _answer(way, _error(18456, 14, text) + _done(FAILED))
                        return
                    self.signed_in.append(name)
                    database = Database(self.folder, self.accounts[name][1])
                    _answer(way, _welcome())
                elif kind == ATTENTION:
                    _answer(way, _done(STOPPED))
                elif kind == BATCH and database is not None:
                    size = struct.unpack_from("<I", body)[0]  # the headers before the text
                    text = body[size:].decode("utf-16-le")
                    self.batches.append(text)
                    _answer(way, _results(database, text))
        finally:
            if database is not None:
                database.close()


class Secured:
    """TLS over a connection: its handshake travels in PRELOGIN packets, what follows does not ([MS-TDS] 3.2.5.1)."""

    def __init__(self, peer: socket.socket, context: ssl.SSLContext) -> None:
        self._peer, self._in, self._out = peer, ssl.MemoryBIO(), ssl.MemoryBIO()
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # later ones send more once the handshake is over
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._hand_over()
                self._in.write(_message(peer)[1])
            else:
                self._hand_over()
                return

    def _hand_over(self) -> None:
        if output := self._out.read():
            _answer(self._peer, output, PRELOGIN)

    def recv(self, size: int) -> bytes:
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                piece = self._peer.recv(PACKET)
                if not piece:
                    return b""
                self._in.write(piece)

    def sendall(self, told: bytes) -> None:
        self._tls.write(told)
        self._peer.sendall(self._out.read())


def _message(peer: socket.socket | Secured) -> tuple[int, bytes]:
    body = b""
    while True:
        kind, status, size = struct.unpack(">BBH", exactly(peer, 8)[:4])
        body += exactly(peer, size - 8)
        if status & 1:
            return kind, body


def _answer(peer: socket.socket | Secured, body: bytes, kind: int = RESPONSE) -> None:
    room = PACKET - 8
    pieces = [body[at : at + room] for at in range(0, len(body), room)] or [b""]
    out = bytearray()
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        out += struct.pack(">BBHHBB", kind, last, len(piece) + 8, 0, (number + 1) % 256, 0) + piece
    peer.sendall(out)


def _prelogin(encrypted: bool) -> bytes:
    how = b"\x03" if encrypted else b"\x02"  # ENCRYPT_REQ, ENCRYPT_NOT_SUP
    options = [(0, b"\x10\0\0\0\0\0"), (1, how), (2, b"\0"), (3, b""), (4, b"\0")]
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
            found = bytes(((item ^ 0xA5) & 0x0F) << 4 | ((item ^ 0xA5) & 0xF0) >> 4 for item in found)
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
    result = struct.pack("<H", len(text)) + text.encode("utf-16-le")
    body = (
        struct.pack("<IBB", number, 1, severity) + result + _short("fake") + _short("") + struct.pack("<I", 1)
    )
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
    found = {type(value) for value in values if value is not None}
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

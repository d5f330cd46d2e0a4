"""A virus scanner: clamd's INSTREAM, with one signature. tests/net/test_clamd.py asks it what it asks clamd itself."""

from __future__ import annotations

import socket
import struct

from tests.fakes.listening import Listening

# EICAR's harmless file that every scanner finds, turned round, so that none finds this one.
EICAR = b"*H+H$!ELIF-TSET-SURIVITNA-DRADNATS-RACIE$}7)CC7)^P(45XZP\\4[PA@%P!O5X"[::-1]
NAME = "Test.Eicar"
MOST = 2_000_000  # bytes of one stream: StreamMaxLength of clamd.conf(5)


class Clamd(Listening):
    """Speaks as clamd does, and with `mood` as one that has trouble: "silent", "odd", "cut"."""

    def __init__(self, mood: str = "") -> None:
        self.mood = mood
        super().__init__()

    def talk(self, peer: socket.socket) -> None:
        command = self._read(peer, len(b"zINSTREAM\0"))
        assert command == b"zINSTREAM\0", command
        stored = b""
        while length := struct.unpack("!I", self._read(peer, 4))[0]:
            stored += self._read(peer, length)
            if len(stored) > MOST:
                peer.sendall(b"INSTREAM size limit exceeded. ERROR\0")
                return
        if self.mood == "silent":
            peer.recv(1)
        answer = {"odd": b"PONG\0", "cut": b""}.get(self.mood)
        if answer is None:
            answer = f"stream: {NAME}.UNOFFICIAL FOUND\0".encode() if stored == EICAR else b"stream: OK\0"
        peer.sendall(answer)

    def _read(self, peer: socket.socket, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = peer.recv(size - len(found))
            if not piece:
                raise EOFError
            found += piece
        return found

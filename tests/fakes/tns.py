"""An Oracle listener for the real driver: it reads a CONNECT packet and sends a configured response.

Wire: TNS packets of a header of eight octets (length, type, flags), as python-oracledb's thin mode reads them.
"""

from __future__ import annotations

import ssl
import struct

from tests.fakes.listening import Listening, exactly

REFUSE, REDIRECT, DATA = 4, 5, 6
NO_SERVICE = b"(DESCRIPTION=(ERR=12514)(ERROR_STACK=(ERROR=(CODE=12514)(EMFI=4))))"


class Tns(Listening):
    """Redirects all clients to `onwards` (host, port), or rejects their service if it is None. `asked` are the received
    CONNECT packets."""

    def __init__(self, onwards: tuple[str, int] | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.onwards, self.asked = onwards, []
        super().__init__(tls)

    def talk(self, peer) -> None:
        (size,) = struct.unpack(">H", exactly(peer, 2))
        packet = exactly(peer, size - 2)
        length, start = struct.unpack_from(">HH", packet, 22)
        if start + length > size:  # a long text is sent in a separate packet
            (size,) = struct.unpack(">H", exactly(peer, 2))
            packet += exactly(peer, size - 2)
        self.asked.append(packet)
        if self.onwards is None:
            peer.sendall(_packet(REFUSE, struct.pack(">BBH", 0, 0, len(NO_SERVICE)) + NO_SERVICE))
            return
        to = "(ADDRESS=(PROTOCOL=tcp)(HOST={})(PORT={}))".format(*self.onwards).encode() + b"\0(DESCRIPTION=)"
        peer.sendall(_packet(REDIRECT, struct.pack(">H", len(to))) + _packet(DATA, b"\0\0" + to))
        peer.recv(1)


def _packet(kind: int, body: bytes) -> bytes:
    return struct.pack(">HHBBH", len(body) + 8, 0, kind, 0, 0) + body

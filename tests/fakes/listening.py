"""What the servers of this folder share: a port of 127.0.0.1, and a thread for each connection."""

from __future__ import annotations

import socket
import ssl
import threading
from abc import ABC, abstractmethod
from typing import Any


class Listening(ABC):
    """Listens on 127.0.0.1 at `port`; `peers` are the connections that came. With `tls`, each begins with a
    handshake."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.tls = tls
        self.peers: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @abstractmethod
    def talk(self, peer: socket.socket) -> None:
        """One connection to its end. `OSError` and `EOFError` end it, too."""

    def stop(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()
        for thread in self._threads:
            thread.join(5)

    def cut(self) -> None:
        """End every connection."""
        for peer in self.peers:
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
        try:
            if self.tls and peer.recv(1, socket.MSG_PEEK):
                peer = self.tls.wrap_socket(peer, server_side=True)
            self.peers.append(peer)
            self.talk(peer)
        except (OSError, EOFError):
            pass
        finally:
            peer.close()


def exactly(peer: Any, size: int) -> bytes:
    """Read exactly `size` octets. Raises EOFError if the connection ends before."""
    found = bytearray()
    while len(found) < size:
        piece = peer.recv(size - len(found))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)

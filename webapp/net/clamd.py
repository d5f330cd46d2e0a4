"""Virus scanner client, the only place that uses clamd's protocol (clamd(8), INSTREAM).

The operator configures the scanner, so the address guard does not apply.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Final

from webapp import limits
from webapp.config.values import Scanner

_ANSWER_BYTES: Final = 4_096
_CLEAN, _FOUND = "stream: OK", " FOUND"


class ScannerError(Exception):
    """The scanner returned no verdict. The message is for the log."""


class Scan:
    """The scan of one file. Created by `open_scan`."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._send(b"zINSTREAM\0")

    def feed(self, piece: bytes) -> None:
        """Send the next bytes of the file. Raises ScannerError."""
        if piece:  # a length of zero ends the stream
            self._send(struct.pack("!I", len(piece)) + piece)

    def verdict(self) -> str | None:
        """Return the name of the malware in the file, or None. Raises ScannerError."""
        self._send(struct.pack("!I", 0))
        answer = self._answer()
        if answer == _CLEAN:
            return None
        if answer.endswith(_FOUND):
            return answer.removeprefix("stream: ").removesuffix(_FOUND)
        raise ScannerError(f"it answered {answer or 'nothing'!r}")

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            answer = ""
            with suppress(
                ScannerError
            ):  # it says why it hangs up, if there is time: StreamMaxLength of clamd.conf
                answer = self._answer()
            raise ScannerError(answer or f"it closed the connection ({type(error).__name__})") from None

    def _answer(self) -> str:
        received = b""
        try:
            while (
                b"\0" not in received
                and len(received) < _ANSWER_BYTES
                and (piece := self._socket.recv(_ANSWER_BYTES))
            ):
                received += piece
        except OSError as error:
            raise ScannerError(f"it closed the connection ({type(error).__name__})") from None
        return received.partition(b"\0")[0].decode("utf-8", "replace")


@contextmanager
def open_scan(scanner: Scanner) -> Iterator[Scan]:
    """Start the scan of one file. Raises ScannerError."""
    with closing(_connect(scanner)) as sock:
        sock.settimeout(limits.SCANNER_SECONDS)
        yield Scan(sock)


def _connect(scanner: Scanner) -> socket.socket:
    try:
        if not scanner.path:
            return socket.create_connection((scanner.host, scanner.port), limits.SCANNER_CONNECT_SECONDS)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(limits.SCANNER_CONNECT_SECONDS)
            sock.connect(scanner.path)
        except OSError:
            sock.close()
            raise
        return sock
    except OSError as error:
        raise ScannerError(f"it could not be reached ({error.strerror or type(error).__name__})") from None

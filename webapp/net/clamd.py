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

    def __init__(self, door: socket.socket) -> None:
        self._door = door
        self._send(b"zINSTREAM\0")

    def feed(self, piece: bytes) -> None:
        """Send the next bytes of the file. Raises ScannerError."""
        if piece:  # a length of zero ends the stream
            self._send(struct.pack("!I", len(piece)) + piece)

    def verdict(self) -> str | None:
        """Return the name of the malware in the file, or None. Raises ScannerError."""
        self._send(struct.pack("!I", 0))
        told = self._answer()
        if told == _CLEAN:
            return None
        if told.endswith(_FOUND):
            return told.removeprefix("stream: ").removesuffix(_FOUND)
        raise ScannerError(f"it answered {told or 'nothing'!r}")

    def _send(self, data: bytes) -> None:
        try:
            self._door.sendall(data)
        except OSError as error:
            told = ""
            with suppress(
                ScannerError
            ):  # it says why it hangs up, if there is time: StreamMaxLength of clamd.conf
                told = self._answer()
            raise ScannerError(told or f"it closed the connection ({type(error).__name__})") from None

    def _answer(self) -> str:
        found = b""
        try:
            while (
                b"\0" not in found
                and len(found) < _ANSWER_BYTES
                and (piece := self._door.recv(_ANSWER_BYTES))
            ):
                found += piece
        except OSError as error:
            raise ScannerError(f"it closed the connection ({type(error).__name__})") from None
        return found.partition(b"\0")[0].decode("utf-8", "replace")


@contextmanager
def begun(where: Scanner) -> Iterator[Scan]:
    """Start the scan of one file. Raises ScannerError."""
    with closing(_connected(where)) as door:
        door.settimeout(limits.SCANNER_SECONDS)
        yield Scan(door)


def _connected(where: Scanner) -> socket.socket:
    try:
        if not where.path:
            return socket.create_connection((where.host, where.port), limits.SCANNER_CONNECT_SECONDS)
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            door.settimeout(limits.SCANNER_CONNECT_SECONDS)
            door.connect(where.path)
        except OSError:
            door.close()
            raise
        return door
    except OSError as error:
        raise ScannerError(f"it could not be reached ({error.strerror or type(error).__name__})") from None

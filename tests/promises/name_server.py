"""A DNS server on a separate loopback address, and a command that makes it the only one a product uses.

Names under `canary.test` resolve to internal addresses, on the first or on a later query. A custom /etc/resolv.conf
needs
a mount namespace and port 53, so the tests that need it are skipped for users who may have neither.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
ADDRESS: Final = f"127.77.0.{53 + _WORKER}"  # an address for each test process, since the port is always 53
ALLOWED: Final = "127.77.0.1"
A, CNAME, AAAA = 1, 5, 28
# Beginning of a name -> the addresses told the first time, and afterwards.
ZONE: Final = {
    "rebind": ([ALLOWED], ["127.0.0.1"]),
    "flips": ([ALLOWED], ["169.254.169.254"]),
    "both": ([ALLOWED, "127.0.0.1"], ["127.0.0.1", ALLOWED]),
    "inside": (["127.0.0.1"], ["127.0.0.1"]),
    "zero": (["0.0.0.0"], ["0.0.0.0"]),
    "private": (["10.0.0.1"], ["10.0.0.1"]),
    "metadata": (["169.254.169.254"], ["169.254.169.254"]),
    "cgnat": (["100.64.0.1"], ["100.64.0.1"]),
    "alias": (["localhost."], ["localhost."]),
    "good": ([ALLOWED], [ALLOWED]),
}


class NameServer:
    """Answers until it is closed. `asked` counts questions by name."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind((ADDRESS, 53))
        except PermissionError:
            self._socket.close()
            pytest.skip("port 53 is for root: names that change their mind need a name server")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        # On Linux, shutdown fails for an unconnected socket, but still wakes its reader.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                question, caller = self._socket.recvfrom(4096)
            except OSError:
                return
            if not question:
                return
            self._socket.sendto(self.answer(question), caller)

    def answer(self, question: bytes) -> bytes:
        """Answer one question with records that must not be cached (RFC 1035, 4.1)."""
        labels, place = [], 12
        while length := question[place]:
            labels.append(question[place + 1 : place + 1 + length].decode())
            place += length + 1
        kind = struct.unpack(">H", question[place + 1 : place + 3])[0]
        name = ".".join(labels).lower()
        found = []
        if name.endswith("canary.test") and kind == A:
            first, later = ZONE.get(name.partition(".")[0].partition("-")[0], ([], []))
            found = later if self.asked[name] else first
            self.asked[name] += 1
        answers = b"".join(_record(value) for value in found)
        flags = 0x8580 if found or name.endswith("canary.test") else 0x8583  # NXDOMAIN for all the rest
        head = question[:2] + struct.pack(">HHHHH", flags, 1, len(found), 0, 0)
        return head + question[12 : place + 5] + answers


def _record(value: str) -> bytes:
    if value.endswith("."):
        data = b"".join(bytes([len(part)]) + part.encode() for part in value.split(".")[:-1]) + b"\0"
        return struct.pack(">HHHIH", 0xC00C, CNAME, 1, 0, len(data)) + data
    return struct.pack(">HHHIH", 0xC00C, A, 1, 0, 4) + socket.inet_aton(value)


def command(folder: Path) -> tuple[str, ...]:
    """Return the prefix of a command that makes a product use only this DNS server."""
    resolver = folder / "resolv.conf"
    resolver.write_text(f"nameserver {ADDRESS}\noptions timeout:2 attempts:1\n")
    program = shutil.which("unshare")
    script = f'mount --bind {resolver} /etc/resolv.conf && exec "$@"'
    found = (program or "", "--mount", "sh", "-c", script, "sh")
    if program is None or subprocess.run([*found, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here: the product cannot use a separate DNS server")
    return found

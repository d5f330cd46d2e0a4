"""Ways to write addresses that are closed, and a canary that counts who comes."""

from __future__ import annotations

import socket
import threading

# This machine, as resolvers and the C library read it.
HERE = [
    "127.0.0.1", "127.1", "127.0.1", "127.0.0.2", "127.255.255.254", "2130706433", "0x7f000001", "0x7F.0.0.1",
    "0x7f.1", "017700000001", "0177.0.0.1", "0177.1", "127.000.000.001", "0x7f.0x0.0x0.0x1",
    "①②⑦.⓪.⓪.①", "127。0。0。1", "１２７.０.０.１", "localhost", "LOCALHOST", "localhost.", "a.localhost", "127.0.0.1.",
    "0.0.0.0", "0", "0x0", "00", "0.0", "0.0.0.1", "::1", "::", "0:0:0:0:0:0:0:1", "::0.0.0.1", "::ffff:127.0.0.1",
    "::ffff:7f00:1", "0:0:0:0:0:ffff:7f00:0001", "::ffff:0.0.0.0", "[::1]", "::1%lo", "127.0.0.1%lo", "127.0.0.1\0.org",
    "127.0.0.1\n", " 127.0.0.1", "", "127.0.0.1,8.8.8.8", "127.0.0.1#.example.org", "127.0.0.1/", "me@127.0.0.1",
    "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::127.0.0.1", "2002:7f00:1::",
    "2002:7f00:1::1", "2001:0:7f00:1::", "2001::80ff:fffe", "fe80::5efe:127.0.0.1", "fe80::1%lo", "fec0::1",
]  # fmt: skip
# Elsewhere, and no business of a connection's.
CLOSED = [
    "10.0.0.1", "10.1", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.1", "3232235521", "0xc0a80001",
    "100.64.0.1", "100.127.255.254", "169.254.1.1", "198.18.0.1", "192.0.0.1", "192.0.2.1", "198.51.100.1",
    "203.0.113.1", "192.88.99.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "fd00::1", "fc00::1",
    "fe80::1", "ff02::1", "2001:db8::1", "3fff::1", "5f00::1", "100::1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1",
    "64:ff9b::192.168.0.1", "2002:a00:1::1", "2002:c0a8:1::1",
]  # fmt: skip
METADATA = [
    "169.254.169.254", "169.254.170.2", "169.254.170.23", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376",
    "169.254.43518", "::ffff:169.254.169.254", "64:ff9b::169.254.169.254", "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "100.100.100.200", "192.0.0.192",
    "168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::168.63.129.16",
]  # fmt: skip


class Canary:
    """Listens on every address of this machine, and counts who comes."""

    def __init__(self) -> None:
        self.count = 0
        self._socket = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                came, _ = self._socket.accept()
            except OSError:
                return
            self.count += 1
            came.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

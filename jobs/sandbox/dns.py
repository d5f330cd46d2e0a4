"""DNS for the sandbox: forwards queries from port 53 of its loopback interface to the host's name servers,
and only to those."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ADDRESS: Final = "127.0.0.1"
PORT: Final = 53
_LARGEST: Final = 65_535
_MAX_PENDING: Final = 64  # unanswered queries; the oldest is dropped
_SECONDS: Final = 15.0
_MAX_BATCH: Final = 32  # queries accepted before other events are handled


@dataclass
class _Query:
    """A query that waits for its response."""

    client: tuple[str, int]
    outside: socket.socket
    until: float


class DnsProxy:
    """Forwards queries and responses. `register` and `forget` add and remove descriptors of the supervisor's
    poll."""

    def __init__(
        self,
        inside: socket.socket,
        resolvers: tuple[str, ...],
        register: Callable[[int], None],
        forget: Callable[[int], None],
    ) -> None:
        self._inside, self._resolvers = inside, resolvers
        self._register, self._forget = register, forget
        self._pending: dict[int, _Query] = {}
        self._server = 0
        self._last: tuple[tuple[str, int], bytes] | None = None
        inside.setblocking(False)
        register(inside.fileno())

    def ready(self, descriptor: int) -> bool:
        """Handle a descriptor that is ready. Return False if it belongs to another component."""
        if descriptor == self._inside.fileno():
            for _ in range(_MAX_BATCH):
                if not self._forward():
                    break
            return True
        query = self._pending.get(descriptor)
        if query is None:
            return False
        try:
            self._inside.sendto(query.outside.recv(_LARGEST), query.client)
        except OSError:
            pass  # the server or the client is gone; clients retry
        self._discard(descriptor)
        return True

    def tick(self) -> None:
        """Drop queries that timed out."""
        now = time.monotonic()
        for descriptor in [item for item, query in self._pending.items() if now > query.until]:
            self._discard(descriptor)

    def close(self) -> None:
        """Close everything except for the socket inside."""
        for descriptor in list(self._pending):
            self._discard(descriptor)
        self._forget(self._inside.fileno())

    def _forward(self) -> bool:
        try:
            notification, client = self._inside.recvfrom(_LARGEST)
        except OSError:
            return False
        if (client, notification[:2]) == self._last:
            self._server += 1  # repeated query: try the next server
        self._last = (client, notification[:2])
        server = self._resolvers[self._server % len(self._resolvers)]
        outside = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
        outside.setblocking(False)
        try:
            outside.connect((server, PORT))
            outside.send(notification)
        except OSError:
            outside.close()
            return True
        if len(self._pending) >= _MAX_PENDING:
            self._discard(next(iter(self._pending)))
        self._pending[outside.fileno()] = _Query(client, outside, time.monotonic() + _SECONDS)
        self._register(outside.fileno())
        return True

    def _discard(self, descriptor: int) -> None:
        self._forget(descriptor)
        self._pending.pop(descriptor).outside.close()


def of_host() -> tuple[tuple[str, ...], list[str]]:
    """Return the host's name servers, and the other lines of its /etc/resolv.conf."""
    try:
        lines = Path("/etc/resolv.conf").read_text().splitlines()
    except OSError:
        lines = []
    words = [line.split() for line in lines if line.split() and line[0] not in "#;"]
    servers = tuple(word[1].partition("%")[0] for word in words if word[0] == "nameserver" and len(word) > 1)
    other_lines = [" ".join(word) for word in words if word[0] in ("search", "domain", "options")]
    return servers[:3] or (ADDRESS,), other_lines


def files(
    user: int, home: str, api_host: str, api: list[str], other_lines: list[str], named: bool
) -> dict[str, bytes]:
    """Return the files of /etc for users and name resolution. `named`: whether DNS is available."""
    hosts = ["127.0.0.1 localhost scenario", "::1 localhost"]
    hosts += [f"{address} {api_host}" for address in api if address != api_host and api_host != "localhost"]
    resolv = [f"nameserver {ADDRESS}", *other_lines] if named else []
    made = {
        "passwd": [f"scenario:x:{user}:{user}:scenario:{home}:/bin/sh", "nobody:x:65534:65534::/:/bin/false"],
        "group": [f"scenario:x:{user}:", "nogroup:x:65534:"],
        "hosts": hosts,
        "resolv.conf": resolv,
        "nsswitch.conf": [
            "passwd: files",
            "group: files",
            "hosts: files dns",
            "services: files",
            "protocols: files",
        ],
    }
    return {f"/etc/{name}": ("\n".join(lines) + "\n").encode() for name, lines in made.items()}

"""Name service of a box: a socket at port 53 of its own loopback, served from outside, which leads to the host's name
servers and nowhere else."""

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
_AT_ONCE: Final = 64  # questions without an answer; the oldest is given up
_SECONDS: Final = 15.0
_ASKED_AT_ONCE: Final = 32  # questions taken before anything else has its turn


@dataclass
class _Asked:
    """A question on its way."""

    client: tuple[str, int]
    outside: socket.socket
    until: float


class Names:
    """Passes questions on and answers back. `register` and `forget` tell its warden what to wait for."""

    def __init__(
        self,
        inside: socket.socket,
        resolvers: tuple[str, ...],
        register: Callable[[int], None],
        forget: Callable[[int], None],
    ) -> None:
        self._inside, self._resolvers = inside, resolvers
        self._register, self._forget = register, forget
        self._asked: dict[int, _Asked] = {}
        self._turn = 0
        self._last: tuple[tuple[str, int], bytes] | None = None
        inside.setblocking(False)
        register(inside.fileno())

    def ready(self, descriptor: int) -> bool:
        """Deal with a descriptor that is ready. False if it is none of ours."""
        if descriptor == self._inside.fileno():
            for _ in range(_ASKED_AT_ONCE):
                if not self._ask():
                    break
            return True
        asked = self._asked.get(descriptor)
        if asked is None:
            return False
        try:
            self._inside.sendto(asked.outside.recv(_LARGEST), asked.client)
        except OSError:
            pass  # the server refuses, or nobody waits any more: who asked asks again
        self._drop(descriptor)
        return True

    def tick(self) -> None:
        """Give up questions nobody answered."""
        now = time.monotonic()
        for descriptor in [one for one, asked in self._asked.items() if now > asked.until]:
            self._drop(descriptor)

    def close(self) -> None:
        """Let go of everything but the socket inside."""
        for descriptor in list(self._asked):
            self._drop(descriptor)
        self._forget(self._inside.fileno())

    def _ask(self) -> bool:
        try:
            question, client = self._inside.recvfrom(_LARGEST)
        except OSError:
            return False
        if (client, question[:2]) == self._last:
            self._turn += 1  # asked again: the next server may know
        self._last = (client, question[:2])
        server = self._resolvers[self._turn % len(self._resolvers)]
        outside = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
        outside.setblocking(False)
        try:
            outside.connect((server, PORT))
            outside.send(question)
        except OSError:
            outside.close()
            return True
        if len(self._asked) >= _AT_ONCE:
            self._drop(next(iter(self._asked)))
        self._asked[outside.fileno()] = _Asked(client, outside, time.monotonic() + _SECONDS)
        self._register(outside.fileno())
        return True

    def _drop(self, descriptor: int) -> None:
        self._forget(descriptor)
        self._asked.pop(descriptor).outside.close()


def of_host() -> tuple[tuple[str, ...], list[str]]:
    """The host's name servers, and the other lines of its /etc/resolv.conf."""
    try:
        lines = Path("/etc/resolv.conf").read_text().splitlines()
    except OSError:
        lines = []
    words = [line.split() for line in lines if line.split() and line[0] not in "#;"]
    servers = tuple(one[1].partition("%")[0] for one in words if one[0] == "nameserver" and len(one) > 1)
    others = [" ".join(one) for one in words if one[0] in ("search", "domain", "options")]
    return servers[:3] or (ADDRESS,), others


def files(
    user: int, home: str, api_host: str, api: list[str], others: list[str], named: bool
) -> dict[str, bytes]:
    """The files of /etc that say who and where one is. `named`: names can be asked for."""
    hosts = ["127.0.0.1 localhost scenario", "::1 localhost"]
    hosts += [f"{address} {api_host}" for address in api if address != api_host and api_host != "localhost"]
    resolv = [f"nameserver {ADDRESS}", *others] if named else []
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

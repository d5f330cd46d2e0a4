"""What a box may reach, put together: its name service, its connections, and what is passed on without asking."""

from __future__ import annotations

import ipaddress
import select
import socket
from collections.abc import Callable
from typing import Any, Final

from jobs.sandbox import addresses, bubblewrap, names, relays
from jobs.sandbox.box import Box, Mode
from jobs.sandbox.cell import Cell
from jobs.sandbox.group import Group
from jobs.sandbox.names import Names
from jobs.sandbox.network import Connections
from jobs.sandbox.relays import Relays
from jobs.sandbox.shared import SharedConnections

_ASKING: Final = ("full", "api")


class Ways:
    """The ways out of one box. Before it starts: `serve`, what the last step inside binds, and `files` of its /etc.
    While it runs: `ready` and `tick`."""

    def __init__(self, box: Box, mode: Mode) -> None:
        self.box, self.mode = box, mode
        host, port = box.api
        self._api = _addresses(host, port) if box.network in _ASKING else []
        servers, others = names.of_host()
        self._resolvers = box.resolvers or servers
        self.serve: list[tuple[str, str, int]] = []
        self.memory: Callable[[], int] = lambda: 0
        """Bytes that the kernel holds for connections outside of the box."""
        if box.network == "full" and mode.name == "bubblewrap":
            self.serve.append(("datagram", names.ADDRESS, names.PORT))
        self.env: dict[str, str] = {}
        if box.network in _ASKING and mode.name == "bubblewrap" and not mode.notify:
            self.env = relays.variables(box)
            self.serve.append(("stream", relays.HOST, relays.PROXY_PORT))
            local = next((one for one in self._api if ipaddress.ip_address(one).is_loopback), None)
            self.serve += [("stream", local, port)] if local else []
        self._reach = addresses.Reach(box.networks, box.hidden)
        self._files = (host, self._api, others)
        self._parts: list[Any] = []

    def files(self, user: int | None) -> dict[str, bytes]:
        """Contents of files by their paths inside."""
        host, api, others = self._files
        return names.files(
            user or bubblewrap.INSIDE_USER, bubblewrap.HOME, host, api, others, self.box.network == "full"
        )

    def open(self, cell: Cell | Group, poll: select.poll) -> None:
        """The program runs: answer it. `poll` is what its warden waits at."""
        names_ = [one for one in cell.served if one.type == socket.SOCK_DGRAM]
        streams = [one for one in cell.served if one.type == socket.SOCK_STREAM]
        for one in names_:
            self._parts.append(
                Names(one, self._resolvers, lambda each: poll.register(each, select.POLLIN), poll.unregister)
            )
        if streams:  # the proxy first, then the way to the API, as they were asked for
            self._parts.append(
                Relays(
                    self.box, self._open_ways(), self._reach, [(one, one is streams[0]) for one in streams]
                )
            )
        if cell.listener is not None:
            connections = self._connections(cell, cell.listener, poll)
            self.memory = connections.memory
            self._parts.append(connections)
            poll.register(cell.listener, select.POLLIN)

    def _connections(self, cell: Cell | Group, listener: int, poll: select.poll) -> Connections:
        open_ways = self._open_ways()
        if isinstance(cell, Cell):
            resolver = (self._resolvers[0], names.PORT)
            return Connections(
                self.box, listener, open_ways, self._reach, resolver, poll.register, poll.unregister
            )
        if self.box.network == "full":  # asked under their own addresses
            open_ways |= {(addresses.plain(ipaddress.ip_address(one)), names.PORT) for one in self._resolvers}
        return SharedConnections(
            self.box,
            listener,
            open_ways,
            self._reach,
            poll.register,
            poll.unregister,
            cell.tree.leader,
            cell.home_path,
        )

    def _open_ways(self) -> set[tuple[addresses.Address, int]]:
        """What is reached whatever its address: the API."""
        return {(addresses.plain(ipaddress.ip_address(one)), self.box.api[1]) for one in self._api}

    def ready(self, descriptor: int) -> None:
        """Deal with a descriptor that is ready."""
        for part in self._parts:
            if part.ready(descriptor):
                return

    def tick(self) -> None:
        """Give up what takes too long."""
        for part in self._parts:
            part.tick()

    def close(self) -> None:
        """Let go of everything."""
        for part in self._parts:
            part.close()
        self._parts.clear()


def _addresses(host: str, port: int) -> list[str]:
    """The addresses of the API."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return list(dict.fromkeys(str(item[4][0]).partition("%")[0] for item in found))

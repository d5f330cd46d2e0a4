"""Ways out where the kernel cannot ask before a program connects: sockets of the box's own network that are served from
outside. One leads to the API, one is a proxy for HTTP, and everything else stays closed."""

from __future__ import annotations

import ipaddress
import select
import socket
import threading
from collections.abc import Set
from typing import Final

from jobs.sandbox import addresses
from jobs.sandbox.box import Box

HOST: Final = "127.0.0.1"
PROXY_PORT: Final = 3128
_AT_ONCE: Final = 64  # connections
_PIECE: Final = 65_536
_HEAD: Final = 32_768  # bytes of a request before its body
_SECONDS: Final = 30.0  # for a head to come, and for a connection to be made
_IDLE_SECONDS: Final = 900.0
_REFUSED: Final = b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def variables(box: Box) -> dict[str, str]:
    """What tells programs of the proxy."""
    if box.network == "none":
        return {}
    here = f"http://{HOST}:{PROXY_PORT}"
    named = {f"{kind}_proxy": here for kind in ("http", "https", "all")}
    return {
        **named,
        **{name.upper(): here for name in named},
        "no_proxy": "localhost,127.0.0.1",
        "NO_PROXY": "localhost,127.0.0.1",
    }


class Relays:
    """Serves the sockets of one box until it ends."""

    def __init__(
        self,
        box: Box,
        api: Set[tuple[addresses.Address, int]],
        reach: addresses.Reach,
        inside: list[tuple[socket.socket, bool]],
    ) -> None:
        self._box, self._api, self._allowed, self._inside = box, api, reach, inside
        self._living = threading.BoundedSemaphore(_AT_ONCE)
        self._ended = threading.Event()
        for one, proxy in inside:
            one.settimeout(None)
            threading.Thread(target=self._accept, args=(one, proxy), name="relay", daemon=True).start()

    def ready(self, _: int) -> bool:
        """None of the warden's descriptors is ours."""
        return False

    def tick(self) -> None:
        """Nothing: every thread has its own patience."""

    def close(self) -> None:
        """Take no more; what is open ends with the program's side."""
        self._ended.set()
        for one, _ in self._inside:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it was not connected, and the wait for the next has ended all the same

    def _accept(self, inside: socket.socket, proxy: bool) -> None:
        while not self._ended.is_set():
            try:
                client, _ = inside.accept()
            except OSError:
                return
            if not self._living.acquire(blocking=False):
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client, proxy), name="relay", daemon=True).start()

    def _serve(self, client: socket.socket, proxy: bool) -> None:
        try:
            with client:
                client.settimeout(_SECONDS)
                if proxy:
                    self._proxy(client)
                else:
                    with self._to_api() as outside:
                        pump(client, outside)
        except (OSError, ValueError):
            pass  # one side is gone
        finally:
            self._living.release()

    def _to_api(self) -> socket.socket:
        """To the first address of the API that answers."""
        error = OSError("no address")
        for *_, found in socket.getaddrinfo(*self._box.api, type=socket.SOCK_STREAM):
            try:
                return self._reach(str(found[0]), self._box.api[1])
            except OSError as fault:
                error = fault
        raise error

    def _reach(self, address: str, port: int) -> socket.socket:
        """Connect, to IPv4 loopback from the address by which the API knows programs."""
        local = addresses.plain(ipaddress.ip_address(address.partition("%")[0]))
        known = bool(self._box.api_source) and local.version == 4 and local.is_loopback
        return socket.create_connection(
            (address, port), _SECONDS, (self._box.api_source, 0) if known else None
        )

    def _proxy(self, client: socket.socket) -> None:
        """One request, and then whatever the two say to each other (RFC 9110, 7.6 and 9.3.6)."""
        head = b""
        while b"\r\n\r\n" not in head:
            part = client.recv(_PIECE)
            if not part or len(head) > _HEAD:
                return
            head += part
        line, _, rest = head.partition(b"\r\n")
        method, place, version = line.split(b" ", 2)
        tunnel = method == b"CONNECT"
        authority, path = place, b""
        if not tunnel:
            authority, slash, tail = place.removeprefix(b"http://").partition(b"/")
            path = slash + tail or b"/"
        outside = self._connect(authority.rpartition(b"@")[2].decode("ascii"), 443 if tunnel else 80)
        if outside is None:
            client.sendall(_REFUSED % b"403 Forbidden")
            return
        with outside:
            if tunnel:
                client.sendall(version + b" 200 Connection established\r\n\r\n")
            else:
                kept = [
                    one
                    for one in rest.split(b"\r\n")
                    if not one.lower().startswith((b"proxy-", b"connection:"))
                ]
                outside.sendall(
                    b" ".join((method, path, version)) + b"\r\nConnection: close\r\n" + b"\r\n".join(kept)
                )
            pump(client, outside)

    def _connect(self, authority: str, port: int) -> socket.socket | None:
        """To the first address that is open and answers; None where none is."""
        host, colon, tail = authority.rpartition(":")
        if colon and tail.isdigit():
            port = int(tail)
        else:
            host = authority
        for *_, found in socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM):
            address = addresses.plain(ipaddress.ip_address(str(found[0]).partition("%")[0]))
            allowed = self._box.network == "full" and self._allowed.allows(address, port)
            if allowed or (address, port) in self._api:
                try:
                    return self._reach(str(address), port)
                except OSError:
                    continue
        return None


def pump(one: socket.socket, other: socket.socket) -> None:
    """Pass on what each says to the other, until both have ended or nobody has spoken for long."""
    to = {one: other, other: one}
    for each in to:
        each.settimeout(_IDLE_SECONDS)
    open_ = set(to)
    while open_:
        ready, _, _ = select.select(list(open_), [], [], _IDLE_SECONDS)
        if not ready:
            return
        for source in ready:
            part = source.recv(_PIECE)
            if part:
                to[source].sendall(part)
            else:
                open_.discard(source)
                to[source].shutdown(socket.SHUT_WR)

"""Network access without seccomp notifications: sockets in the sandbox's network that are served from
outside. One leads to the API, one is an HTTP proxy, and everything else is blocked."""

from __future__ import annotations

import ipaddress
import select
import socket
import threading
from collections.abc import Set
from typing import Final

from jobs.sandbox import addresses
from jobs.sandbox.spec import SandboxSpec

HOST: Final = "127.0.0.1"
PROXY_PORT: Final = 3128
_AT_ONCE: Final = 64  # connections
_PIECE: Final = 65_536
_HEAD: Final = 32_768  # bytes of a request before its body
_SECONDS: Final = 30.0  # for a request's header, and for connecting
_IDLE_SECONDS: Final = 900.0
_DENIED: Final = b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def variables(spec: SandboxSpec) -> dict[str, str]:
    """Return the environment variables that configure the proxy."""
    if spec.network == "none":
        return {}
    here = f"http://{HOST}:{PROXY_PORT}"
    named = {f"{kind}_proxy": here for kind in ("http", "https", "all")}
    return {
        **named,
        **{name.upper(): here for name in named},
        "no_proxy": "localhost,127.0.0.1",
        "NO_PROXY": "localhost,127.0.0.1",
    }


class SocketProxy:
    """Serves the sockets of one sandbox until it ends."""

    def __init__(
        self,
        spec: SandboxSpec,
        api: Set[tuple[addresses.Address, int]],
        reach: addresses.Reach,
        inside: list[tuple[socket.socket, bool]],
    ) -> None:
        self._spec, self._api, self._allowed, self._inside = spec, api, reach, inside
        self._slots = threading.BoundedSemaphore(_AT_ONCE)
        self._stopped = threading.Event()
        for item, proxy in inside:
            item.settimeout(None)
            threading.Thread(target=self._accept, args=(item, proxy), name="relay", daemon=True).start()

    def ready(self, _: int) -> bool:
        """The supervisor polls none of these sockets."""
        return False

    def tick(self) -> None:
        """Threads have their own timeouts."""

    def close(self) -> None:
        """Accept no more connections. Open ones end with the program."""
        self._stopped.set()
        for item, _ in self._inside:
            try:
                item.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it was not connected, but accept() has returned

    def _accept(self, inside: socket.socket, proxy: bool) -> None:
        while not self._stopped.is_set():
            try:
                client, _ = inside.accept()
            except OSError:
                return
            if not self._slots.acquire(blocking=False):
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
            pass  # one side has closed the connection
        finally:
            self._slots.release()

    def _to_api(self) -> socket.socket:
        """Connect to the first address of the API that responds."""
        error = OSError("no address")
        for *_, found in socket.getaddrinfo(*self._spec.api, type=socket.SOCK_STREAM):
            try:
                return self._reach(str(found[0]), self._spec.api[1])
            except OSError as fault:
                error = fault
        raise error

    def _reach(self, address: str, port: int) -> socket.socket:
        """Connect. On IPv4 loopback, use the source address by which the API identifies programs."""
        local = addresses.plain(ipaddress.ip_address(address.partition("%")[0]))
        known = bool(self._spec.api_source) and local.version == 4 and local.is_loopback
        return socket.create_connection(
            (address, port), _SECONDS, (self._spec.api_source, 0) if known else None
        )

    def _proxy(self, client: socket.socket) -> None:
        """Serve one proxy request, then forward bytes in both directions (RFC 9110, 7.6 and 9.3.6)."""
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
            client.sendall(_DENIED % b"403 Forbidden")
            return
        with outside:
            if tunnel:
                client.sendall(version + b" 200 Connection established\r\n\r\n")
            else:
                kept = [
                    item
                    for item in rest.split(b"\r\n")
                    if not item.lower().startswith((b"proxy-", b"connection:"))
                ]
                outside.sendall(
                    b" ".join((method, path, version)) + b"\r\nConnection: close\r\n" + b"\r\n".join(kept)
                )
            pump(client, outside)

    def _connect(self, authority: str, port: int) -> socket.socket | None:
        """Connect to the first address that is allowed and responds, or return None."""
        host, colon, tail = authority.rpartition(":")
        if colon and tail.isdigit():
            port = int(tail)
        else:
            host = authority
        for *_, found in socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM):
            address = addresses.plain(ipaddress.ip_address(str(found[0]).partition("%")[0]))
            allowed = self._spec.network == "full" and self._allowed.allows(address, port)
            if allowed or (address, port) in self._api:
                try:
                    return self._reach(str(address), port)
                except OSError:
                    continue
        return None


def pump(one: socket.socket, other: socket.socket) -> None:
    """Forward bytes in both directions until both sides have ended or the connection is idle for too long."""
    to = {one: other, other: one}
    for item in to:
        item.settimeout(_IDLE_SECONDS)
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

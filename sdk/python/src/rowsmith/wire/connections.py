"""Connections that are kept and used again, by several threads and after a fork."""

from __future__ import annotations

import http.client
import os
import select
import socket
import ssl
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Final, Optional

from rowsmith.wire.address import Address, Proxy, proxy_for

IDLE_SECONDS: Final = 4.0
"""How long an unused connection is kept; servers and proxies close theirs after 5 s and more."""
KEPT: Final = 8
"""Unused connections that are kept at once."""


@dataclass
class Held:
    """An open connection. `spoilt`: a request was cut short on it, so that it cannot carry another."""

    http: http.client.HTTPConnection
    spoilt: bool = False


class Connections:
    """The connections to one address.

    `connect_seconds` bounds the making of one, `silent_seconds` every wait for the other side after that.
    Certificates are always checked, by the system's authorities or by those of `ca_file` alone.
    """

    def __init__(
        self, address: Address, *, connect_seconds: float = 10.0, ca_file: Optional[str] = None
    ) -> None:
        self.address = address
        self._connect_seconds = connect_seconds
        self._proxy: Optional[Proxy] = proxy_for(address)
        self._tls: Optional[ssl.SSLContext] = None
        if "https" in (address.scheme, self._proxy.address.scheme if self._proxy else ""):
            self._tls = ssl.create_default_context(cafile=ca_file)
            self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self._lock = threading.Lock()
        self._kept: list[tuple[float, Held]] = []
        self._process = os.getpid()
        weakref.finalize(self, _close_all, self._kept)  # for programs that do not close what they made

    @property
    def absolute(self) -> bool:
        """Whether requests name the whole address: to a proxy, for plain HTTP (RFC 9112, 3.2.2)."""
        return self._proxy is not None and self.address.scheme == "http"

    @property
    def proxy_authorization(self) -> Optional[str]:
        """What a proxy for plain HTTP wants in every request."""
        return self._proxy.authorization if self._proxy and self.absolute else None

    def take(self, silent_seconds: float) -> Held:
        """A connection to send one request over. OSError where none can be made."""
        held = self._unused()
        if held is None:
            held = Held(self._made())
            held.http.connect()
        assert held.http.sock is not None
        held.http.sock.settimeout(silent_seconds)
        return held

    def give_back(self, held: Held) -> None:
        """Keep it for the next request; its answer was read to the end."""
        with self._lock:
            if self._process == os.getpid() and len(self._kept) < KEPT and held.http.sock is not None:
                self._kept.append((time.monotonic(), held))
                return
        held.http.close()

    def close(self) -> None:
        """Close those that are unused."""
        with self._lock:
            _close_all(self._kept)

    def _unused(self) -> Optional[Held]:
        while True:
            with self._lock:
                if self._process != os.getpid():  # a fork: these sockets are the parent's
                    _close_all(self._kept)  # closing a copy does not end the parent's
                    self._process = os.getpid()
                if not self._kept:
                    return None
                since, held = self._kept.pop()
            if time.monotonic() - since < IDLE_SECONDS and not _hung_up(held.http.sock):
                return held
            held.http.close()

    def _made(self) -> http.client.HTTPConnection:
        address, proxy, seconds = self.address, self._proxy, self._connect_seconds
        where = proxy.address if proxy else address
        if self._tls is not None and (address.scheme == "https" or where.scheme == "https"):
            made: http.client.HTTPConnection = _Secured(where, address, self._tls, seconds)
        else:
            made = http.client.HTTPConnection(where.host, where.port, timeout=seconds)
        if proxy and address.scheme == "https":
            told = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
            made.set_tunnel(address.host, address.port, told)
        return made


class _Secured(http.client.HTTPConnection):
    """TLS to the service, through a proxy that may itself be reached by TLS or in plain."""

    def __init__(self, where: Address, service: Address, tls: ssl.SSLContext, seconds: float) -> None:
        super().__init__(where.host, where.port, timeout=seconds)
        self._where, self._service, self._context = where, service, tls

    def connect(self) -> None:
        self.sock = socket.create_connection((self.host, self.port), self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        through = self._where != self._service
        if through and self._where.scheme == "https":
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self._where.host)
        if through and self._service.scheme == "https":
            self._tunnel()  # type: ignore[attr-defined]
        if self._service.scheme == "https":
            # Python wraps TLS in TLS only over memory buffers; a proxy reached by TLS for an https service is rare.
            if isinstance(self.sock, ssl.SSLSocket):
                raise OSError("A proxy reached by https cannot carry https here; use its http address.")
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self._service.host)


def _close_all(kept: list[tuple[float, Held]]) -> None:
    while kept:
        kept.pop()[1].http.close()


def _hung_up(sock: Optional[socket.socket]) -> bool:
    """Whether the other side has closed it: something to read where nothing was asked is an end or a mistake."""
    if sock is None:
        return True
    try:
        if hasattr(select, "poll"):
            look = select.poll()
            look.register(sock, select.POLLIN)
            return bool(look.poll(0))
        return bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True

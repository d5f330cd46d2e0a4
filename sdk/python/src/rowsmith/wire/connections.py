"""A connection pool for several threads that also works after a fork."""

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
"""How long an idle connection is kept. Servers and proxies close theirs after 5 s or more."""
KEPT: Final = 8
"""Maximum number of idle connections."""


@dataclass
class OpenConnection:
    """An open connection. `spoilt`: a request on it was interrupted, so it cannot be reused."""

    http: http.client.HTTPConnection
    spoilt: bool = False


class Connections:
    """The connections to one address.

    `connect_seconds` limits opening a connection, `silent_seconds` every later wait for the server.
    Certificates are always verified, with the system's certificate authorities or only with those of
    `ca_file`.
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
        self._idle: list[tuple[float, OpenConnection]] = []
        self._process = os.getpid()
        weakref.finalize(self, _close_all, self._idle)  # for programs that do not close the client

    @property
    def absolute(self) -> bool:
        """Whether requests contain the absolute URL: for plain HTTP through a proxy (RFC 9112, 3.2.2)."""
        return self._proxy is not None and self.address.scheme == "http"

    @property
    def proxy_authorization(self) -> Optional[str]:
        """The Proxy-Authorization header that a proxy for plain HTTP requires in every request."""
        return self._proxy.authorization if self._proxy and self.absolute else None

    def take(self, silent_seconds: float) -> OpenConnection:
        """Return a connection for one request. Raise OSError if none can be opened."""
        held = self._take_idle()
        if held is None:
            held = OpenConnection(self._create())
            held.http.connect()
        assert held.http.sock is not None
        held.http.sock.settimeout(silent_seconds)
        return held

    def give_back(self, held: OpenConnection) -> None:
        """Keep a connection for the next request. Its response must have been read to the end."""
        with self._lock:
            if self._process == os.getpid() and len(self._idle) < KEPT and held.http.sock is not None:
                self._idle.append((time.monotonic(), held))
                return
        held.http.close()

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            _close_all(self._idle)

    def _take_idle(self) -> Optional[OpenConnection]:
        while True:
            with self._lock:
                if self._process != os.getpid():  # after a fork: these sockets belong to the parent
                    _close_all(self._idle)  # closing a copy does not close the parent's socket
                    self._process = os.getpid()
                if not self._idle:
                    return None
                since, connection = self._idle.pop()
            if time.monotonic() - since < IDLE_SECONDS and not _is_closed_by_server(connection.http.sock):
                return connection
            connection.http.close()

    def _create(self) -> http.client.HTTPConnection:
        address, proxy, seconds = self.address, self._proxy, self._connect_seconds
        where = proxy.address if proxy else address
        if self._tls is not None and (address.scheme == "https" or where.scheme == "https"):
            connection: http.client.HTTPConnection = _ProxiedConnection(where, address, self._tls, seconds)
        else:
            connection = http.client.HTTPConnection(where.host, where.port, timeout=seconds)
        if proxy and address.scheme == "https":
            tunnel_headers = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
            connection.set_tunnel(address.host, address.port, tunnel_headers)
        return connection


class _ProxiedConnection(http.client.HTTPConnection):
    """TLS to the service through a proxy, which itself may use TLS or plain HTTP."""

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
            self._tunnel()  # type: ignore[attr-defined]  # not in typeshed
        if self._service.scheme == "https":
            # Python supports TLS in TLS only over memory buffers. A TLS proxy for an https service is rare.
            if isinstance(self.sock, ssl.SSLSocket):
                raise OSError("An https proxy is not supported for https requests. Use its http address.")
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self._service.host)


def _close_all(kept: list[tuple[float, OpenConnection]]) -> None:
    while kept:
        kept.pop()[1].http.close()


def _is_closed_by_server(sock: Optional[socket.socket]) -> bool:
    """Return whether the server has closed the connection: readable data on an idle connection is an end or
    an error."""
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

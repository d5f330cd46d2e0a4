"""Sockets for HTTP requests: opened by the address guard, with one deadline for the whole request, and
abortable.

urllib3 applies time limits to each wait on a socket, so a target that sends a byte now and then is never too
slow. Every socket here therefore asks its `RequestContext` before each operation how much time is left for
the whole request.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, ClassVar

from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from requests.certs import where  # type: ignore[attr-defined]  # the stubs leave it out
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.ssl_ import create_urllib3_context

from webapp import limits
from webapp.net.gate import Gate, GateError


class Flight:
    """One request in one thread: its deadline, whether it may have been received, and how to abort it."""

    def __init__(self, gate: Gate, until: float) -> None:
        """`until` is a time of `time.monotonic`."""
        self.gate, self.until = gate, until
        self.arrived = False
        """Whether a byte of the request has been written, or is being written, to a connection."""
        self.stopped = False
        self._lock = threading.Lock()
        self._cut: Callable[[], object] | None = None

    def left(self) -> float:
        """Return the remaining seconds, more than 0. Raises TimeoutError, or ConnectionAbortedError if
        stopped."""
        if self.stopped:
            raise ConnectionAbortedError
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def hold(self, cut: Callable[[], object]) -> None:
        """Set the function that aborts the next operation. Raises ConnectionAbortedError if already stopped."""
        with self._lock:
            if not self.stopped:
                self._cut = cut
                return
        cut()
        raise ConnectionAbortedError

    def stop(self) -> None:
        """Abort the request immediately, from another thread."""
        with self._lock:
            self.stopped, cut = True, self._cut
        if cut is not None:
            cut()


_flight: ContextVar[Flight] = ContextVar("flight")  # without one, no connection is opened: LookupError


@contextlib.contextmanager
def flying(flight: Flight) -> Iterator[None]:
    """Set the request that this thread sends and receives in the block."""
    token = _flight.set(flight)
    try:
        yield
    finally:
        _flight.reset(token)


def _dialled(flight: Flight, host: str, port: int) -> socket.socket:
    """Connect in a separate thread, because a resolver or an unresponsive host cannot be aborted otherwise."""
    made: Future[socket.socket] = Future()
    left = flight.left()

    def dial() -> None:
        sock, failed = None, None
        try:
            sock = flight.gate.connect(host, port, left)
        except BaseException as error:
            failed = error
        if not made.set_running_or_notify_cancel():
            if sock is not None:
                sock.close()
        elif sock is not None:
            made.set_result(sock)
        else:
            made.set_exception(failed)

    flight.hold(made.cancel)
    threading.Thread(target=dial, name="dial", daemon=True).start()
    try:
        return made.result(flight.left())
    except CancelledError:
        raise ConnectionAbortedError from None
    except TimeoutError:
        if not made.cancel() and made.exception() is None:
            made.result().close()
        raise GateError("timeout", f"{host}:{port} did not respond in time.") from None


class _Timed(socket.socket):
    """A socket that limits each operation to the remaining time of the whole request."""

    def cut(self) -> None:
        """Abort operations of other threads on this socket."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(
                self, socket.SHUT_RDWR
            )  # the TLS method would discard the keys of a reader

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self.settimeout(_flight.get().left())
        return super().recv_into(*args, **kwargs)

    def send(self, *args: Any, **kwargs: Any) -> int:
        self._leave()
        return super().send(*args, **kwargs)

    def sendall(self, *args: Any, **kwargs: Any) -> None:
        self._leave()
        return super().sendall(*args, **kwargs)

    def _leave(self) -> None:
        flight = _flight.get()
        self.settimeout(flight.left())
        flight.arrived = True


class _TimedTls(_Timed, ssl.SSLSocket):
    """The same over TLS."""

    def do_handshake(self, block: bool = False) -> None:
        flight = _flight.get()
        flight.hold(self.cut)
        self.settimeout(flight.left())
        super().do_handshake(block)


class _Guarded(HTTPConnection):
    """A connection that is opened by the address guard."""

    _used = 0.0

    def _new_conn(self) -> socket.socket:
        flight = _flight.get()
        sock = _Timed(fileno=_dialled(flight, self._dns_host, self.port).detach())
        try:
            flight.hold(sock.cut)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(flight.left())
        except BaseException:
            sock.close()
            raise
        return sock

    @property
    def is_connected(self) -> bool:
        # Servers close idle connections. A request that collides with the closing may or may not have been
        # received.
        return time.monotonic() - self._used < limits.HTTP_IDLE_SECONDS and super().is_connected

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:
            assert isinstance(self.sock, _Timed)
            _flight.get().hold(self.sock.cut)
        super().request(*args, **kwargs)

    def getresponse(self) -> Any:
        response = super().getresponse()
        self._used = time.monotonic()
        return response


class _GuardedTls(_Guarded, HTTPSConnection):
    """The same over TLS. Server name and certificate are those of the host name, not of the address."""

    def connect(self) -> None:
        super().connect()
        self.is_verified = True  # otherwise urllib3 warns about each request if verification is turned off


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Guarded


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _GuardedTls


@lru_cache(maxsize=32)
def _context(verify: bool | str) -> ssl.SSLContext:
    """Return a TLS context. Raises OSError.

    `verify`: True verifies certificates with the public authorities and those of this system, False does not verify,
    and a string is a file, a folder or a PEM text with authorities.
    """
    context = create_urllib3_context()
    context.sslsocket_class = _TimedTls
    if verify is False:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    context.check_hostname, context.verify_mode = True, ssl.CERT_REQUIRED
    if verify is True:
        context.load_verify_locations(where())
        context.load_default_certs()
    elif verify.lstrip().startswith("-----"):
        context.load_verify_locations(cadata=verify)
    else:
        context.load_verify_locations(verify)
    return context


class GuardedAdapter(HTTPAdapter):
    """Connects requests to urllib3 with guarded connections. Only sends in `request_context`."""

    _POOLS: ClassVar[dict[str, Any]] = {"http": _Pool, "https": _TlsPool}

    def __init__(self, verify: bool | str, pool: int) -> None:
        """`pool`: connections that are kept open to each host; threads may open more.

        Raises OSError if the file of authorities cannot be read.
        """
        logging.getLogger("urllib3").setLevel(
            logging.CRITICAL
        )  # its messages contain whole URLs, including keys in queries
        self._tls = _context(verify)
        super().__init__(pool_connections=limits.HTTP_POOL_HOSTS, pool_maxsize=pool)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self._POOLS

    def build_connection_pool_key_attributes(
        self, request: PreparedRequest, verify: Any, cert: Any = None
    ) -> tuple[Any, Any]:  # two TypedDicts that the stubs keep to themselves
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {"ssl_context": self._tls} if host["scheme"] == "https" else {}

    def cert_verify(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: `_context` verifies certificates."""

"""How a request travels: sockets that the address guard opens, that keep one deadline, and that can be cut.

urllib3 knows a time limit for each wait on a socket; a target that sends a byte now and then is never late. So every
socket here asks its `Flight` before each operation how much time is left for the whole request.
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
from requests.certs import where
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.ssl_ import create_urllib3_context

from webapp import limits
from webapp.net.gate import Gate, GateError


class Flight:
    """One request on its way, in one thread: its deadline, whether it may have arrived, and how it is cut short."""

    def __init__(self, gate: Gate, until: float) -> None:
        """`until` is a moment of `time.monotonic`."""
        self.gate, self.until = gate, until
        self.arrived = False
        """A byte of the request has been, or is just being, written to a connection."""
        self.stopped = False
        self._lock = threading.Lock()
        self._cut: Callable[[], object] | None = None

    def left(self) -> float:
        """Seconds left, more than 0. Raises TimeoutError; ConnectionAbortedError when stopped."""
        if self.stopped:
            raise ConnectionAbortedError
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def hold(self, cut: Callable[[], object]) -> None:
        """Say what ends the wait that comes next. Raises ConnectionAbortedError when stopped already."""
        with self._lock:
            if not self.stopped:
                self._cut = cut
                return
        cut()
        raise ConnectionAbortedError

    def stop(self) -> None:
        """End the request at once, from another thread."""
        with self._lock:
            self.stopped, cut = True, self._cut
        if cut is not None:
            cut()


_flight: ContextVar[Flight] = ContextVar("flight")  # without one no connection is opened: LookupError


@contextlib.contextmanager
def flying(flight: Flight) -> Iterator[None]:
    """What this thread sends and reads meanwhile belongs to this request."""
    token = _flight.set(flight)
    try:
        yield
    finally:
        _flight.reset(token)


def _dialled(flight: Flight, host: str, port: int) -> socket.socket:
    """A connection, made in a thread of its own, for nothing else ends the wait for a resolver or a silent host."""
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
        raise GateError("timeout", f"{host}:{port} did not answer in time.") from None


class _Timed(socket.socket):
    """A socket whose every operation has the time that is left for the whole request."""

    def cut(self) -> None:
        """End whatever waits for this socket, in another thread."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self, socket.SHUT_RDWR)  # TLS's own would take the keys away from a reader

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
    """Likewise, by TLS."""

    def do_handshake(self, block: bool = False) -> None:
        flight = _flight.get()
        flight.hold(self.cut)
        self.settimeout(flight.left())
        super().do_handshake(block)


class _Guarded(HTTPConnection):
    """A connection that the address guard opens."""

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
        # Servers close idle connections; a request that meets the closing may have arrived, or may not.
        return time.monotonic() - self._used < limits.HTTP_IDLE_SECONDS and super().is_connected

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:
            _flight.get().hold(self.sock.cut)
        super().request(*args, **kwargs)

    def getresponse(self) -> Any:
        response = super().getresponse()
        self._used = time.monotonic()
        return response


class _GuardedTls(_Guarded, HTTPSConnection):
    """Likewise, by TLS: server name and certificate go by the name, not by the address."""

    def connect(self) -> None:
        super().connect()
        self.is_verified = (
            True  # or its owner wants no verification: urllib3 would warn of that at every request
        )


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Guarded


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _GuardedTls


@lru_cache(maxsize=32)
def _context(verify: bool | str) -> ssl.SSLContext:
    """`verify`: against the public authorities and those of this machine, not at all, or against a file's, a
    folder's or a certificate's as PEM text. Raises OSError."""
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
    """requests' way to urllib3, with our connections. Sends nothing outside of `flying`."""

    _POOLS: ClassVar[dict[str, Any]] = {"http": _Pool, "https": _TlsPool}

    def __init__(self, verify: bool | str, pool: int) -> None:
        """`pool`: connections kept open to each host; more are opened where more threads send. Raises OSError where
        the file of authorities cannot be read."""
        logging.getLogger("urllib3").setLevel(
            logging.CRITICAL
        )  # its lines hold whole URLs, keys in queries included
        self._tls = _context(verify)
        super().__init__(pool_connections=limits.HTTP_POOL_HOSTS, pool_maxsize=pool)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self._POOLS

    def build_connection_pool_key_attributes(
        self, request: PreparedRequest, verify: Any, cert: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {"ssl_context": self._tls} if host["scheme"] == "https" else {}

    def cert_verify(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: `_context` has it all."""

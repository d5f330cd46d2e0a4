"""The gunicorn worker: it assigns threads to connections, and formats errors for requests that the application never
sees.

Gunicorn itself rejects a request line that is too long, an invalid header, or an unknown transfer coding, with an HTML
page. `Worker` rejects them like the application. A body that is malformed or ends too early is detected only while the
application reads it; `Body` reports this to the application. `gunicorn.conf.py` selects the worker.
"""

from __future__ import annotations

import errno
import functools
import io
import select
import selectors
import threading
import time
from collections import Counter, defaultdict
from email.utils import formatdate
from http import HTTPStatus
from ssl import SSLError
from typing import Any, Final

import orjson
from gunicorn import glogging
from gunicorn.http import errors
from gunicorn.http import wsgi as gunicorn_wsgi
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, ThreadWorker

from webapp import limits
from webapp.access.models import NEWEST_VERSION
from webapp.client_connection import Channel, ClientTooSlow, Connection, State
from webapp.errors import ApiError
from webapp.net import addresses
from webapp.web import hooks, routing

_CHUNK_MESSAGE: Final = "A chunk of the body is malformed."
_PARSER_MESSAGES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (errors.InvalidRequestMethod, "The request method is invalid."),
    (errors.InvalidHTTPVersion, "This version of HTTP is not supported."),
    (errors.InvalidRequestLine, "The request line is malformed."),
    (errors.InvalidHeaderName, "A header of the request has a name that HTTP does not allow."),
    (errors.ObsoleteFolding, "A header of the request spans several lines."),
    (errors.InvalidHeader, "A header of the request is malformed, or two of them contradict each other."),
    (errors.InvalidChunkSize, _CHUNK_MESSAGE),
    (errors.InvalidChunkExtension, _CHUNK_MESSAGE),
    (errors.ChunkMissingTerminator, _CHUNK_MESSAGE),
)


_INCOMPLETE_MESSAGE: Final = "The body is incomplete."


class Logger(glogging.Logger):
    """gunicorn's log, through the log of the service: one format, and no secrets."""

    def setup(self, cfg: Any) -> None:
        """Pass all records to the root logger, which `process_log.configure` has set up."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class Worker(ThreadWorker):
    """gunicorn's threads, for requests that have arrived.

    A connection whose request, TLS handshake or answer is unfinished waits in the main thread's poller, without a
    thread. There it has a deadline, and each address a limit (`murder_pending`). Errors have the service's own shape.
    """

    wsgi: Any
    """The WSGI callable for each request."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Without idle connections, which are in gunicorn's `keepalived_conns`. The least recently active first.
        self.parked: dict[Connection, None] = {}
        self.queued: dict[Connection, None] = {}  # those of them that wait for a slot
        self.slots = BodySlots()
        self.proxies = addresses.Proxies(())
        self.next_sweep = 0.0
        self.accept_failed = 0.0

    def load_wsgi(self) -> None:
        """Load the application, and read which proxies it trusts."""
        super().load_wsgi()
        application: Any = self.wsgi
        self.proxies = addresses.Proxies(application.config["SETTINGS"].trusted_proxies)

    def handle_request(self, req: Any, conn: Connection) -> bool:
        """Respond to one request. Return whether the connection can stay open.

        Errors: OSError, StopIteration, ClientTooSlow."""
        response, environ = gunicorn_wsgi.create(
            req, conn.sock, conn.client, conn.server, self.cfg, response_class=Response
        )
        environ["wsgi.multithread"] = True
        if "HTTP_TRANSFER_ENCODING" in environ or "CONTENT_LENGTH" in environ:
            header_limits = (self.cfg.limit_request_fields, self.cfg.limit_request_field_size)
            response.body = environ["wsgi.input"] = Body(
                environ["wsgi.input"], environ.get("CONTENT_LENGTH"), header_limits
            )
        if not self.alive or len(self.keepalived_conns) >= self.max_keepalived:
            response.force_close()
        try:
            pieces = self.wsgi(environ, response.start_response)
            try:
                for piece in pieces:
                    response.write(piece)
                response.close()
            finally:
                if hasattr(pieces, "close"):
                    pieces.close()
        except OSError:
            raise
        except (Exception, SystemExit):
            if response.headers_sent:
                # A second response would corrupt the first. The client sees that it is incomplete.
                self.log.exception("Error handling request")
                conn.sock.close()
                raise StopIteration from None
            raise
        return not response.should_close()

    def accept(self, listener: Any) -> None:
        """Accept a connection. At the limit of connections, close some that wait."""
        if self.nr_conns >= self.worker_connections - 1:
            self.close_least_active()
        try:
            sock, client = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except (
            OSError
        ) as exc:  # most likely no file descriptor is left; gunicorn's own method would end the process
            if time.monotonic() - self.accept_failed > 1:
                self.accept_failed = time.monotonic()
                self.log.error("A connection could not be accepted: %s", exc)
            self.close_least_active()
            time.sleep(limits.WEB_ACCEPT_PAUSE_SECONDS)
            return
        self.nr_conns += 1
        self.enqueue_req(Connection(self.cfg, sock, client, listener.getsockname()))

    def handle(self, conn: Connection) -> None:
        """Respond to the requests of a connection that have arrived, and set `conn.state` to what it needs next.
        Runs in a thread.

        gunicorn returns a connection to its main thread after each response, which waits for the next request and
        passes it to a thread again: the interpreter's lock changes hands twice for each request of a client that sends
        many. The thread therefore waits a moment itself, while there are threads for all connections.
        """
        req, stays = None, False
        try:
            while True:
                if not conn.flush():
                    conn.state = State.WRITE
                    return
                if not conn.keep_alive:
                    conn.state = State.CLOSED
                    return
                if stays and not conn.started and self.has_spare_threads():
                    conn.sock.wait(select.POLLIN, limits.KEEPALIVE_WAIT_SECONDS)
                conn.state = conn.advance()
                if conn.state is not State.READY or not self.acquire_body_slot(conn):
                    return
                conn.sock.buffers = stays = True
                req = None
                req = next(conn.parser)
                conn.keep_alive = self.handle_request(req, conn) and _is_at_next_request(conn)
                self.release_body_slot(conn)
        except (StopIteration, errors.NoMoreData):
            self.log.debug("The client closed its connection.")
        except ClientTooSlow:
            self.log.info("A client received its answer too slowly, and the connection was closed.")
            conn.sock.outgoing.clear()
        except SSLError as exc:
            self.log.debug("TLS with a client failed: %s", exc)
            if exc.reason == "HTTP_REQUEST":
                self.handle_error(req, conn.sock, conn.client, exc)
        except OSError as exc:
            conn.sock.outgoing.clear()
            if exc.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN):
                self.log.exception("Socket error processing request.")
        except Exception as exc:
            self.handle_error(req, conn.sock, conn.client, exc)
        finally:
            self.release_body_slot(conn)
        conn.keep_alive = False
        conn.state = State.WRITE if conn.sock.outgoing else State.CLOSED

    def has_spare_threads(self) -> bool:
        """Return whether there are at least as many threads as connections that need one."""
        waiting = len(self.parked) + len(self.keepalived_conns)
        return bool(self.alive and self.nr_conns - waiting < self.cfg.threads)

    def acquire_body_slot(self, conn: Connection) -> bool:
        """Acquire a slot for the rest of a body that is too large to be read ahead. Return False if none is free."""
        if not conn.is_large:
            return True
        if not conn.has_slot and not self.slots.acquire(conn.address, limited=self.is_limited(conn)):
            conn.state = State.SLOT
            conn.deadline = time.monotonic() + limits.WEB_SLOT_SECONDS
            return False
        conn.has_slot = True
        conn.wait_for_body()
        return True

    def release_body_slot(self, conn: Connection) -> None:
        """Release the slot of a connection, if it has one."""
        if conn.has_slot:
            conn.has_slot = False
            self.slots.release(conn.address)

    def is_limited(self, conn: Connection) -> bool:
        """Return whether the limits per IP address apply: not to trusted proxies and socket files, which serve many
        clients."""
        return bool(conn.address) and not self.proxies.trusts(conn.client[0])

    def finish_request(self, conn: Connection, fs: Any) -> None:
        """Continue a connection that a thread has returned, depending on its state. Runs in the main thread."""
        if fs.cancelled() or fs.exception() is not None:
            self.drop(conn)
        elif conn.state is State.IDLE:
            conn.set_timeout()
            if not self.alive:
                conn.timeout = min(conn.timeout, time.monotonic() + STOP_KEEPALIVE_LINGER)
            self.keepalived_conns.append(conn)
            readable = functools.partial(self.on_client_socket_readable, conn)
            self.poller.register(conn.sock, selectors.EVENT_READ, readable)
        elif conn.state is State.CLOSED:
            self.linger(conn)
        else:
            self.park(conn)
            if time.monotonic() > conn.deadline:
                # `murder_pending` does not detect this while its events wake the main thread.
                self.reject(conn, _timeout_error(conn))
        if self.queued:
            self.assign_free_slots()

    def park(self, conn: Connection) -> None:
        """Let a connection wait for its client."""
        self.parked[conn] = None
        if conn.state is State.SLOT:
            self.queued[conn] = None
            return
        event = selectors.EVENT_WRITE if conn.state is State.WRITE else selectors.EVENT_READ
        self.poller.register(conn.sock, event, functools.partial(self.on_pending_socket_readable, conn))

    def unpark(self, conn: Connection) -> None:
        """Take a connection out of the poller."""
        del self.parked[conn]
        if conn.state is State.SLOT:
            del self.queued[conn]
        else:
            self.poller.unregister(conn.sock)

    def assign_free_slots(self) -> None:
        """Give free slots to connections that wait for one."""
        for conn in list(self.queued):
            if self.slots.acquire(conn.address, limited=self.is_limited(conn)):
                conn.has_slot = True
                self.unpark(conn)
                self.enqueue_req(conn)

    def on_client_socket_readable(self, conn: Connection, client: Any) -> None:
        """Hand an idle connection to a thread."""
        if conn in self.keepalived_conns:  # else an event before this one has closed it
            super().on_client_socket_readable(conn, client)

    def on_pending_socket_readable(self, conn: Connection, client: Any) -> None:
        """Hand a parked connection to a thread, or see whether the client has closed one that is closing."""
        if conn not in self.parked:  # an event before this one has closed it
            return
        if not conn.lingers:
            self.unpark(conn)
            self.enqueue_req(conn)
            return
        try:
            if conn.sock.receive() == b"":
                self.drop(conn)
        except OSError:
            self.drop(conn)

    def linger(self, conn: Connection) -> None:
        """Close a connection after its client has, or after WEB_LINGER_SECONDS (RFC 9112, section 9.6).

        Closing it with unread data would make the kernel discard the end of the response.
        """
        if conn.incoming.ended or conn.sock.handshaking or not conn.sock.shutdown_write():
            self.drop(conn)
            return
        conn.lingers, conn.state = True, State.READ
        conn.deadline = time.monotonic() + limits.WEB_LINGER_SECONDS
        self.park(conn)

    def drop(self, conn: Connection) -> None:
        """Close a connection."""
        if conn in self.parked:
            self.unpark(conn)
        self.nr_conns -= 1
        conn.close()

    def reject(self, conn: Connection, error: ApiError) -> None:
        """Respond to the unfinished request of a waiting connection with an error, and close it.

        If no part of a request has arrived, or a response is being sent, it is closed without a response.
        """
        if conn.lingers or conn.sock.handshaking or conn.sock.outgoing or not conn.has_begun:
            self.drop(conn)
            return
        self.unpark(conn)
        try:
            conn.sock.sendall(render_error_response(error, _request_id(None), secure=self.cfg.is_ssl))
        except OSError:
            conn.incoming.ended = True
        self.linger(conn)

    def murder_pending(self) -> None:
        """Close parked connections that are past their deadline or too many. gunicorn calls it after every event."""
        if self.nr_conns >= self.worker_connections:
            self.close_least_active()  # no connection is accepted until there is room
        now = time.monotonic()
        if now < self.next_sweep:
            return
        self.next_sweep = now + limits.WEB_SWEEP_SECONDS
        late, waiting, total_bytes = [], defaultdict(list), 0
        for conn in self.parked:
            stopping = (
                not self.alive and not conn.has_begun and now - (conn.started or 0) > STOP_KEEPALIVE_LINGER
            )
            if now > conn.deadline or (stopping and not conn.sock.outgoing):
                late.append(conn)
            elif not conn.lingers:
                waiting[conn.address].append(conn)
                total_bytes += conn.held_bytes
        excess = [
            conn
            for conns in waiting.values()
            if self.is_limited(conns[0])
            for conn in _excess_connections(conns, now)
        ]
        for conn in late:
            self.reject(conn, _timeout_error(conn))
        for conn in excess:
            self.reject(conn, _too_many_connections_error())
        if late or excess:
            self.log.info(
                "Unfinished requests closed: %d too late, %d too many of an address.", len(late), len(excess)
            )
        for conn in (
            sorted(self.parked, key=lambda conn: -conn.held_bytes)
            if total_bytes > limits.WEB_BUFFER_BYTES
            else ()
        ):
            total_bytes -= conn.held_bytes
            self.reject(conn, _no_body_slot_error())
            if total_bytes <= limits.WEB_BUFFER_BYTES:
                break

    def close_least_active(self) -> None:
        """Close connections that wait, the least recently active ones of the address that has most of them."""
        waiting = [*self.keepalived_conns, *self.parked]
        if not waiting:
            return
        [(address, _)] = Counter(conn.address for conn in waiting).most_common(1)
        for conn in [conn for conn in waiting if conn.address == address][: limits.WEB_CLOSED_CONNECTIONS]:
            if conn.state is State.IDLE:
                self.keepalived_conns.remove(conn)
                self.poller.unregister(conn.sock)
            self.drop(conn)

    def handle_error(self, req: Any, client: Channel, addr: Any, exc: BaseException) -> None:
        """Respond to a request that the application never received, or that failed outside it, then close."""
        error = parser_error_to_api_error(
            exc, self.cfg.limit_request_fields, self.cfg.limit_request_field_size
        )
        request_id = _request_id(req or getattr(exc, "req", None))
        if error.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            self.log.exception("request %s failed outside the application", request_id)
        else:
            # Only by kind: the line or header may contain a secret.
            address = addr[0] if isinstance(addr, tuple) and addr else "a socket"
            self.log.warning("request %s of %s rejected: %s", request_id, address, type(exc).__name__)
        response = render_error_response(error, request_id, secure=self.cfg.is_ssl)
        try:
            if client.handshaking:
                client.send_without_tls(response)
            else:
                client.buffers = True
                client.sendall(response)
        except OSError:
            self.log.debug("request %s: the error response could not be sent", request_id)


class BodySlots:
    """Slots for threads that wait for the rest of large bodies: `WEB_BODY_SLOTS`, with a limit per address."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        self._lock = threading.Lock()

    def acquire(self, address: str, *, limited: bool) -> bool:
        """Acquire a slot for an address. Return False if none is free."""
        with self._lock:
            if self._taken.total() >= limits.WEB_BODY_SLOTS:
                return False
            if limited and self._taken[address] >= limits.WEB_BODY_SLOTS_PER_ADDRESS:
                return False
            self._taken[address] += 1
            return True

    def release(self, address: str) -> None:
        """Release a slot."""
        with self._lock:
            self._taken[address] -= 1
            if not self._taken[address]:
                del self._taken[address]


def _is_at_next_request(conn: Connection) -> bool:
    try:
        return conn.next_request()
    except errors.ParseException:
        return False  # no second response if an unread body turns out to be malformed


def _excess_connections(conns: list[Connection], now: float) -> list[Connection]:
    """Return the unfinished requests of an address beyond its limit. New ones have a moment to arrive."""
    old = [conn for conn in conns if now - (conn.started or now) > limits.WEB_UNFINISHED_GRACE_SECONDS]
    return old[: max(0, len(conns) - limits.WEB_UNFINISHED_PER_ADDRESS)]


def _timeout_error(conn: Connection) -> ApiError:
    return _no_body_slot_error() if conn.state is State.SLOT else ApiError("request_timeout")


def _no_body_slot_error() -> ApiError:
    wait = limits.WEB_SLOT_RETRY_SECONDS
    return ApiError(
        "unavailable",
        "Too many large requests are being received. Try again in a moment.",
        {"retry_after": wait},
        headers={"Retry-After": str(wait)},
    )


def _too_many_connections_error() -> ApiError:
    limit, wait = limits.WEB_UNFINISHED_PER_ADDRESS, limits.WEB_SLOT_RETRY_SECONDS
    return ApiError(
        "rate_limited",
        f"Your address has more than {limit} unfinished requests. Send each request completely, then try again.",
        {"limit": limit, "retry_after": wait},
        headers={"Retry-After": str(wait)},
    )


class Response(gunicorn_wsgi.Response):
    """gunicorn's response, with its head in the same packet as the first part of its body.

    gunicorn sends them one after the other: two system calls, two packets, and a client that wakes up twice.
    """

    sock: Channel
    body: Body | None = None

    def start_response(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        """Also decide who sends the response: a small one does not keep the thread from its next request."""
        write = super().start_response(status, headers, exc_info)
        is_empty = self.req.method == "HEAD" or self.status_code in (
            HTTPStatus.NO_CONTENT,
            HTTPStatus.NOT_MODIFIED,
        )
        is_small = (
            self.response_length is not None and self.response_length <= limits.WEB_BUFFERED_RESPONSE_BYTES
        )
        self.sock.buffers = is_empty or is_small
        if self.sock.reads_on and (self.body is None or not self.body.is_read):
            self.force_close()  # the rest of a large body that is rejected is not received
        return write

    def default_headers(self) -> list[str]:
        """Return the status line and the first headers, without the name of the server software."""
        return [line for line in super().default_headers() if not line.startswith("Server:")]

    def write(self, arg: bytes) -> None:
        """Send a part of the body, the first one together with the head."""
        if self.headers_sent or len(arg) > limits.HEADERS_WITH_BODY_BYTES:
            super().write(arg)
            return
        with self.sock.corked():
            super().write(arg)


class Body(io.RawIOBase):
    """The body of a request, which informs the application if it is malformed or shorter than announced.

    `source` is gunicorn's body; `announced` the Content-Length, None for chunked bodies; `header_limits` are the
    maximum number and size of headers, for `parser_error_to_api_error`.
    """

    def __init__(self, source: Any, announced: str | None, header_limits: tuple[int, int]) -> None:
        self._source = source
        self._missing = int(announced or 0)
        self._header_limits = header_limits
        self._announced = announced is not None
        self.is_read = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into a buffer, and return their number. Errors: ApiError, as `parser_error_to_api_error`
        returns it."""
        try:
            data = self._source.read(len(buffer))
        except errors.ParseException as exc:
            raise parser_error_to_api_error(exc, *self._header_limits) from None
        except errors.NoMoreData:
            raise ApiError("invalid_request", _INCOMPLETE_MESSAGE) from None
        except ClientTooSlow:
            raise ApiError("request_timeout") from None
        self._missing -= len(data)
        if not data and self._missing > 0:
            raise ApiError("invalid_request", _INCOMPLETE_MESSAGE)
        self.is_read = not data or (self._announced and self._missing <= 0)
        buffer[: len(data)] = data
        return len(data)


def parser_error_to_api_error(exc: BaseException, max_headers: int, max_header_bytes: int) -> ApiError:
    """Convert an error of gunicorn to one of our errors. Errors that the client has not caused are `internal_error`."""
    service_errors = (
        errors.InvalidResponseHeader,
        errors.InvalidResponseHeaderName,
        errors.ConfigurationProblem,
    )
    if isinstance(exc, errors.LimitRequestLine):
        return ApiError("uri_too_long", details={"max_bytes": limits.MAX_REQUEST_LINE_BYTES})
    if isinstance(exc, errors.LimitRequestHeaders):
        details = {"max_headers": max_headers, "max_header_bytes": max_header_bytes}
        return ApiError("headers_too_large", details=details)
    if isinstance(exc, errors.UnsupportedTransferCoding):
        return ApiError("not_implemented", "This transfer coding is not supported. Use chunked, or none.")
    if isinstance(exc, errors.ExpectationFailed):
        return ApiError("expectation_failed")
    if isinstance(exc, SSLError):
        return ApiError("https_required")
    if isinstance(exc, errors.ParseException) and not isinstance(exc, service_errors):
        return ApiError(
            "invalid_request", next((text for kind, text in _PARSER_MESSAGES if isinstance(exc, kind)), None)
        )
    return ApiError("internal_error")


def render_error_response(error: ApiError, request_id: str, *, secure: bool) -> bytes:
    """Return an error as a complete HTTP/1.1 response."""
    if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        error.details["request_id"] = request_id
    body = orjson.dumps(error.as_dict())
    headers = [
        ("Date", formatdate(usegmt=True)),
        ("Connection", "close"),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        *error.headers.items(),
        *hooks.common_headers(request_id, NEWEST_VERSION, routing.uncounted_result(), secure=secure),
        *hooks.SECURITY_HEADERS,
    ]
    head = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"]
    head += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def _request_id(req: Any) -> str:
    """Return the client's request id if its headers were read and it is well formed, else a new one."""
    sent = [value for name, value in getattr(req, "headers", ()) if name == "X-REQUEST-ID"]
    return hooks.request_id(sent[-1] if sent else "")

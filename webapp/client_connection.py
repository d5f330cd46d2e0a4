"""A client's connection to the web server, read and written without occupying a thread.

A thread is assigned only after the request has arrived: all of its headers, and its whole body or the first
`WEB_BODY_AHEAD_BYTES`. Until then, the connection waits in the worker's poller, and `Connection.advance` reads
available data. The data is passed to gunicorn's parser byte by byte, unchanged. The headers are inspected here only to
decide when to start the parser, so a different interpretation of the end of a request cannot affect security.
"""

from __future__ import annotations

import ipaddress
import re
import select
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, Final

from gunicorn import sock as gunicorn_sock
from gunicorn.http.errors import LimitRequestHeaders
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import Unreader

from webapp import limits
from webapp.net import addresses

_RECEIVE_BYTES: Final = 64 * 1024
_SEND_BYTES: Final = 1024 * 1024
_WOULD_BLOCK: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_FRAMING: Final = re.compile(rb"\r\n(content-length|transfer-encoding):[ \t]*([^\r]*?)[ \t]*(?=\r)")
_BARE_LF: Final = re.compile(rb"(?<!\r)\n")
_EXPECT: Final = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)
_CHUNK_SIZE: Final = re.compile(rb"([0-9a-fA-F]+)(?:[ \t]*;[^\r\n]*)?")
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class ClientTooSlow(TimeoutError):
    """The client sends or receives too slowly for a thread to wait for it."""


class State(Enum):
    """What a connection waits for."""

    READY = "a request can be answered"
    IDLE = "the next request"
    READ = "more of a request, or of a TLS handshake"
    WRITE = "the client to receive what is still to be sent"
    SLOT = "a free slot for reading a large body"
    CLOSED = "nothing more"


class MinimumRate:
    """The minimum speed of a transfer: `min_bytes` in each window of `seconds`."""

    def __init__(self, min_bytes: int, seconds: float) -> None:
        self._min_bytes, self._seconds = min_bytes, seconds
        self._count = 0
        self.deadline = time.monotonic() + seconds

    def add(self, count: int) -> None:
        """Count transferred bytes. Enough of them start a new window."""
        self._count += count
        if self._count >= self._min_bytes:
            self._count = 0
            self.deadline = time.monotonic() + self._seconds


class Channel:
    """A non-blocking socket, with or without TLS. gunicorn sees it as the connection's socket.

    While `buffers` is set, data that the socket does not accept is kept in `outgoing` and sent by the poller;
    otherwise the thread waits until the socket has taken it. Error: ClientTooSlow, when the client receives too slowly.
    """

    def __init__(self, sock: socket.socket, cfg: Any) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._cfg = cfg
        self.handshaking: bool = cfg.is_ssl
        self.buffers = True
        self.reads_on = False  # the thread receives the rest of a large body
        self.outgoing = bytearray()
        self._poll: Any = None
        self._is_corked = False

    def fileno(self) -> int:
        """Return the file descriptor, for pollers."""
        return self._sock.fileno()

    def handshake(self) -> State:
        """Continue the TLS handshake as far as the client's data allows. Errors: OSError, ssl.SSLError."""
        sock = self._sock
        if not isinstance(sock, ssl.SSLSocket):
            sock = self._sock = gunicorn_sock.ssl_wrap_socket(sock, self._cfg)
        try:
            sock.do_handshake()
        except ssl.SSLWantReadError:
            return State.READ
        except ssl.SSLWantWriteError:
            return State.WRITE
        self.handshaking = False
        return State.READY

    def receive(self, size: int = _RECEIVE_BYTES) -> bytes | None:
        """Return data that has arrived; None if there is none, and b"" if the client has closed its side."""
        try:
            return self._sock.recv(size)
        except _WOULD_BLOCK:
            return None

    def wait(self, events: int, seconds: float) -> bool:
        """Wait until the socket is readable (select.POLLIN) or writable (POLLOUT). Return False after `seconds`."""
        if isinstance(self._sock, ssl.SSLSocket) and events & select.POLLIN and self._sock.pending():
            return True
        if self._poll is None:
            self._poll = select.poll()
        self._poll.register(self._sock, events)
        return bool(self._poll.poll(max(1000 * seconds, 0)))

    def send(self, data: bytes | memoryview) -> int:
        """Send as much of `data` as the socket takes now. Return the number of bytes."""
        try:
            return self._sock.send(data)
        except _WOULD_BLOCK:
            return 0

    def sendall(self, data: bytes) -> None:
        """Send `data`. While `buffers` is set, buffer what the socket does not accept."""
        if self._is_corked:
            self.outgoing += data
            return
        sent = 0 if self.outgoing else self.send(data)
        if sent == len(data):
            return
        with memoryview(data) as view:
            self.outgoing += view[sent:]
        if not self.buffers:
            self._flush_while_fast()

    @contextmanager
    def corked(self) -> Iterator[None]:
        """Collect what is sent within the block, and send it in one piece."""
        self._is_corked = True
        try:
            yield
        finally:
            self._is_corked = False
        self.flush()
        if self.outgoing and not self.buffers:
            self._flush_while_fast()

    def flush(self) -> int:
        """Send buffered data as far as the socket accepts it. Return the number of bytes."""
        count = 0
        while self.outgoing:
            with memoryview(self.outgoing) as view, view[:_SEND_BYTES] as part:
                sent = self.send(part)
            if not sent:
                break
            del self.outgoing[:sent]
            count += sent
        return count

    def _flush_while_fast(self) -> None:
        rate = MinimumRate(limits.WEB_SEND_WINDOW_BYTES, limits.WEB_SEND_WINDOW_SECONDS)
        while True:
            rate.add(self.flush())
            if not self.outgoing:
                return
            left = rate.deadline - time.monotonic()
            if left <= 0 or not self.wait(select.POLLOUT, left):
                raise ClientTooSlow

    def shutdown_write(self) -> bool:
        """Tell the client that nothing more will be sent. Return False if the connection is closed."""
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            return False
        return True

    def send_without_tls(self, data: bytes) -> None:
        """Send plain bytes to a client that does not use TLS, and close the socket."""
        with socket.socket(fileno=self._sock.detach()) as plain:
            plain.setblocking(False)
            self._sock = plain
            self.send(data)
            self.shutdown_write()

    def close(self) -> None:
        """Close the socket. Repeating it does nothing."""
        self.outgoing.clear()
        try:
            self._sock.close()
        except OSError:
            pass


class ReceivedData(Unreader):
    """The received data of a client, for gunicorn's parser.

    The parser gets the bytes that have arrived. It waits for more only while `waits` is set, that is, while a slot for
    a large body is taken; without it, `starved` says that the parser wanted more than had arrived.
    """

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel
        self.received = bytearray()
        self.head_end = 0  # position of the end of the headers in `received`; 0 if unknown
        self.ended = False  # the client has closed its side
        self.waits = False
        self.starved = False
        self.pace: MinimumRate | None = None

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Return the next piece for the parser: the head by itself, then the rest. Error: ClientTooSlow."""
        if self.received:
            end, self.head_end = self.head_end or len(self.received), 0
            data = bytes(self.received[:end])
            del self.received[:end]
            return data
        if self.ended:
            return b""
        if not self.waits or self.pace is None:
            self.starved = True
            return b""
        return self._wait_for_more(min(max(size_hint or 0, _RECEIVE_BYTES), _SEND_BYTES))

    def _wait_for_more(self, size: int) -> bytes:
        assert self.pace is not None
        while (data := self._channel.receive(size)) is None:
            left = self.pace.deadline - time.monotonic()
            if left <= 0 or not self._channel.wait(select.POLLIN, left):
                self.starved = True
                raise ClientTooSlow
        self.pace.add(len(data))
        self.ended = not data
        return data


class ChunkedBodyScanner:
    """Finds the end of a body in chunks as it arrives (RFC 9112, section 7.1)."""

    def __init__(self, start: int) -> None:
        self._position = start
        self._in_trailers = False

    def has_end(self, data: bytearray) -> bool:
        """Return whether the body ends in `data`, or is malformed there, which the parser then reports."""
        while not self._in_trailers:
            end = data.find(b"\r\n", self._position)
            if end < 0:
                return len(data) - self._position > limits.MAX_REQUEST_LINE_BYTES
            size = _CHUNK_SIZE.fullmatch(data, self._position, end)
            if size is None:
                return True
            length = int(size[1], 16)
            self._in_trailers = not length
            if not length:
                self._position = end + 2
                break
            after = end + 2 + length
            if len(data) < after + 2:
                return False
            if data[after : after + 2] != b"\r\n":
                return True
            self._position = after + 2
        if data[self._position : self._position + 2] == b"\r\n":
            return True
        return data.find(b"\r\n\r\n", self._position) >= 0 or bool(_BARE_LF.search(data, self._position))


class Connection:
    """A connection with its request in progress. gunicorn's ThreadWorker reads `sock`, `client`, `server`, `timeout`
    and `parser`, and calls `set_timeout` and `close`."""

    def __init__(self, cfg: Any, sock: socket.socket, client: Any, server: Any) -> None:
        self.cfg = cfg
        self.client = client
        self.server = server
        self.sock = Channel(sock, cfg)
        self.incoming = ReceivedData(self.sock)
        self.parser = RequestParser(cfg, (), client)
        self.parser.unreader = self.incoming
        self.address = client_address(client)
        self.timeout = 0.0
        self.state = State.READ
        self.keep_alive = True  # whether it stays open once everything is sent
        self.lingers = False  # closed by the server, which waits a moment for the client to do so
        self.has_slot = False
        self.sending: MinimumRate | None = None
        self.started: float | None = time.monotonic()
        self.deadline = self.started + limits.WEB_HEAD_SECONDS
        self._reset_request()

    def _start_head_timeout(self) -> None:
        """Start the time limit of a request if a part of it has arrived."""
        self.started = None
        if self.incoming.received:
            self.started = time.monotonic()
            self.deadline = self.started + limits.WEB_HEAD_SECONDS

    def _reset_request(self) -> None:
        self._searched = 0
        self._end: int | ChunkedBodyScanner = 0
        self._is_head_checked = False
        self.is_large = False

    @property
    def has_begun(self) -> bool:
        """Return whether a part of the current request has arrived."""
        return bool(self.incoming.received)

    @property
    def held_bytes(self) -> int:
        """Return the memory used by its data."""
        return len(self.incoming.received) + len(self.sock.outgoing)

    def flush(self) -> bool:
        """Send buffered data to the client. Return False while some of it is left."""
        if not self.sock.outgoing:
            return True
        if self.sending is None:
            self.sending = MinimumRate(limits.WEB_SEND_WINDOW_BYTES, limits.WEB_SEND_WINDOW_SECONDS)
            self.started = time.monotonic()
        self.sending.add(self.sock.flush())
        self.deadline = self.sending.deadline
        if self.sock.outgoing:
            return False
        self.sending = None
        self._start_head_timeout()
        return True

    def wait_for_body(self) -> None:
        """Let the parser wait for the rest of the body."""
        self.incoming.waits = self.sock.reads_on = True
        self.incoming.pace = MinimumRate(limits.WEB_BODY_WINDOW_BYTES, limits.WEB_BODY_WINDOW_SECONDS)

    def advance(self) -> State:
        """Read available data. Errors: LimitRequestHeaders, OSError, ssl.SSLError."""
        if self.sock.handshaking:
            state = self.sock.handshake()
            if state is not State.READY:
                return state
        incoming = self.incoming
        while not self._is_ready():
            data = self.sock.receive()
            if data is None:
                return State.READ if self.started is not None else State.IDLE
            if not data:
                incoming.ended = True
                return State.READY if incoming.received else State.CLOSED
            incoming.received += data
            if self.started is None:
                self._start_head_timeout()
            if incoming.pace is not None:
                incoming.pace.add(len(data))
                self.deadline = incoming.pace.deadline
        return State.READY

    def next_request(self) -> bool:
        """Prepare for the next request. Return False if the last body has not been read completely. Error:
        ParseException if that body is malformed."""
        incoming = self.incoming
        incoming.waits = self.sock.reads_on = False
        if not self.parser.finish_body() or incoming.starved:
            return False
        incoming.pace = None
        incoming.head_end = 0
        incoming.received[:0] = incoming.take_buffered()
        self._reset_request()
        self._start_head_timeout()
        return True

    def _is_ready(self) -> bool:
        """Return whether the parser can start: the request is complete, or it is certain that the parser rejects it."""
        received = self.incoming.received
        if not received:
            return False
        if not self._is_head_checked and not self._has_complete_head():
            return False
        if not self.incoming.head_end:
            return True  # rejected
        if isinstance(self._end, int):
            if len(received) >= self._end:
                return True
        elif self._end.has_end(received):
            return True
        if self.is_large or len(received) - self.incoming.head_end >= limits.WEB_BODY_AHEAD_BYTES:
            self.is_large = True
            return True
        return False

    def _has_complete_head(self) -> bool:
        received = self.incoming.received
        found = received.find(b"\r\n\r\n", self._searched)
        if found < 0:
            if len(received) > limits.MAX_HEADERS_BYTES:
                raise LimitRequestHeaders("all headers together")
            start = max(self._searched, 0)
            self._searched = max(0, len(received) - 3)
            line = limits.MAX_REQUEST_LINE_BYTES + 4
            rejected = bool(_BARE_LF.search(received, start)) or (
                len(received) > line and received.find(b"\n", 0, line) < 0
            )
            self._is_head_checked = rejected
            return rejected
        if found > limits.MAX_HEADERS_BYTES:
            raise LimitRequestHeaders("all headers together")
        self._is_head_checked = True
        self.incoming.head_end = found + 4
        self._read_framing()
        return True

    def _read_framing(self) -> None:
        """Determine from the headers where the body ends. Headers that the parser rejects have no body here."""
        incoming = self.incoming
        end = self._end = incoming.head_end
        head = bytes(incoming.received[:end]).lower()
        if b"\r\ncontent-length" not in head and b"\r\ntransfer-encoding" not in head:
            return
        framing = _FRAMING.findall(head)
        if len(framing) != 1:
            return
        name, value = framing[0]
        if name == b"transfer-encoding":
            if not value.endswith(b"chunked"):
                return
            self._end = ChunkedBodyScanner(end)
        elif value.isdigit() and len(value) <= 18:
            self._end = end + int(value)
            self.is_large = int(value) > limits.WEB_MAX_BODY_BYTES  # the application rejects it by its length
        else:
            return
        incoming.pace = MinimumRate(limits.WEB_BODY_WINDOW_BYTES, limits.WEB_BODY_WINDOW_SECONDS)
        self.deadline = incoming.pace.deadline
        if b"\r\nexpect:" in head:
            self._send_continue(head)

    def _send_continue(self, head: bytes) -> None:
        """Answer `Expect: 100-continue` of a body that is read ahead. gunicorn does it for a large one, once the
        application has the request and can reject it."""
        incoming, line = self.incoming, _EXPECT.search(head)
        if line is None:  # another expectation, which the parser rejects
            self._end = incoming.head_end
        elif isinstance(self._end, int) and self._end - incoming.head_end > limits.WEB_BODY_AHEAD_BYTES:
            self.is_large = True
        elif head.partition(b"\r\n")[0].endswith(b"http/1.1"):
            del incoming.received[line.start() : line.end()]
            length = line.end() - line.start()
            incoming.head_end -= length
            self._end = (
                self._end - length if isinstance(self._end, int) else ChunkedBodyScanner(incoming.head_end)
            )
            if (
                len(incoming.received) == incoming.head_end
            ):  # RFC 9110, 10.1.1: unneeded once the body arrives
                self.sock.sendall(_CONTINUE)

    def set_timeout(self) -> None:
        """Let the idle connection expire after gunicorn's `keepalive`."""
        self.timeout = time.monotonic() + self.cfg.keepalive

    def close(self, graceful: bool = False) -> None:
        """Close the socket."""
        self.sock.close()


def client_address(client: Any) -> str:
    """Return the key for the limits of a client: its IPv4 address, the /64 network of its IPv6 address, "" for a socket
    file."""
    if not isinstance(client, tuple):
        return ""
    address = addresses.parse(client[0])
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address or client[0])

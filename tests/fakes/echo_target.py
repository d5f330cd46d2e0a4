"""An HTTP(S) target that records every request, sends configured responses, and can simulate many quirks.

    with EchoTarget() as target:
        target.on("/rows", Answer(503), Answer(201))      # in this order; the last one repeats
        ...
        assert [one.body for one in target.calls("/rows")]

What is not scripted is echoed as JSON: 201 to a POST, 200 to the rest. Quirks of OData services are in `odata_rules`.
"""

from __future__ import annotations

import contextlib
import fnmatch
import gzip
import json
import socket
import socketserver
import ssl
import struct
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.client import responses
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

MB = 1024 * 1024
WRITES = ("POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class Seen:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Mapping[str, str]
    """By names in small letters; repeated ones joined by a comma."""
    body: bytes
    at: float
    """time.monotonic"""
    connection: int
    """Which connection it came by, from 1."""
    at_once: int
    """Requests in hand at that moment, this one included."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What is answered. `body`: bytes, a text, or what JSON can say."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    delay: float = 0
    """Seconds before the answer; ended by the target's own end."""
    cut: Literal["", "unread", "read", "head", "body"] = ""
    """Where the connection is reset: before the request's body is read, after it, within the answer's headers or
    body."""
    drip: float = 0
    """Seconds between two bytes of the answer's body."""
    drip_head: float = 0
    """The same for the headers."""
    length: int | None = None
    """A Content-Length of which the body knows nothing."""
    chunked: bool = False
    endless: bool = False
    """The body has no end."""
    gzip: bool = False
    bomb: int = 0
    """MB of zeros, packed."""
    raw: bytes | None = None
    """Sent instead of an HTTP answer."""
    close: bool = False


Rule = Answer | Callable[[Seen], Answer]


def redirect(to: str, status: int = 302) -> Answer:
    return Answer(status, b"elsewhere", {"Location": to})


def busy(after: str | int, status: int = 429) -> Answer:
    """`after`: seconds or an HTTP date."""
    return Answer(status, {"error": "slow down"}, {"Retry-After": str(after)})


class EchoTarget:
    """See the module. Uses background threads; stop it with `close`."""

    def __init__(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.host, self.tls = host, tls
        self.honours_keys = False
        """A second request with the same Idempotency-Key gets the answer of the first, and has no effect."""
        self._lock = threading.Lock()
        self._rules: list[tuple[str, str, list[Rule]]] = []
        self._stored: dict[str, Answer] = {}
        self._connections: dict[int, socket.socket] = {}
        self.closing = threading.Event()
        self.clear()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        server = type("Server", (_Server,), {"address_family": family})
        self._server = server((host, 0), _Handler)
        self._server.target = self
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def clear(self) -> None:
        """Forget what came."""
        self.seen: list[Seen] = []
        self.effects: list[Seen] = []
        """Write requests that it processed, with or without a response."""
        self.keys: Counter[str] = Counter()
        """How often an Idempotency-Key came."""
        self.opened = 0
        """Connections."""
        self.in_hand = 0

    def url(self, path: str = "/") -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    def on(self, path: str, *rules: Rule, method: str = "*") -> None:
        """Answer requests to a path (or a pattern: `/sap/*`) so, one after the other; the last one repeats. A later
        call goes before an earlier one."""
        self._rules.insert(0, (method, path, list(rules)))

    def calls(self, path: str = "*") -> list[Seen]:
        return [item for item in list(self.seen) if fnmatch.fnmatchcase(item.path, path)]

    @property
    def most_at_once(self) -> int:
        return max((item.at_once for item in self.seen), default=0)

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._connections.values()):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def __enter__(self) -> EchoTarget:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- called by the threads of connections

    def came(self, seen: Seen) -> Answer:
        """The answer to a request, which is recorded."""
        with self._lock:
            self.seen.append(seen)
            key = seen.headers.get("idempotency-key", "") if seen.method in WRITES else ""
            if key:
                self.keys[key] += 1
                if self.honours_keys and key in self._stored:
                    stored = self._stored[key]
                    return replace(stored, headers={**stored.headers, "Idempotent-Replayed": "true"})
            answer = self._ruled(seen)
            if seen.method in WRITES and answer.status < 300 and answer.cut != "unread":
                self.effects.append(seen)
                if key:
                    self._stored[key] = replace(answer, cut="", delay=0)
        return answer

    def _ruled(self, seen: Seen) -> Answer:
        for method, path, rules in self._rules:
            if method in ("*", seen.method) and fnmatch.fnmatchcase(seen.path, path):
                rule = rules.pop(0) if len(rules) > 1 else rules[0]
                return rule(seen) if callable(rule) else rule
        echo = {
            "method": seen.method, "path": seen.path, "query": seen.query, "headers": dict(seen.headers),
            "body": seen.body.decode("utf-8", "replace"),
        }  # fmt: skip
        return Answer(201 if seen.method == "POST" else 200, echo)

    def refuses_unread(self, path: str) -> bool:
        """Whether the next answer to that path is a reset before the body is read."""
        with self._lock:
            for _, pattern, rules in self._rules:
                if fnmatch.fnmatchcase(path, pattern):
                    return isinstance(rules[0], Answer) and rules[0].cut == "unread"
        return False


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 256
    target: EchoTarget

    def handle_error(self, *_: Any) -> None:
        """Clients may go away; what they saw is what the tests look at."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def setup(self) -> None:
        target = self.target = self.server.target
        with target._lock:
            target.opened += 1
            self.number = target.opened
        if target.tls is not None:
            self.request = target.tls.wrap_socket(self.request, server_side=True)
        target._connections[id(self)] = self.request
        super().setup()

    def finish(self) -> None:
        self.target._connections.pop(id(self), None)
        with contextlib.suppress(OSError):
            super().finish()
        self.request.close()

    def log_message(self, *_: Any) -> None:
        pass

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError, ssl.SSLError, ValueError):
            return super().handle_one_request()
        self.close_connection = True

    def _any(self) -> None:
        target = self.target
        with target._lock:
            target.in_hand += 1
            at_once = target.in_hand
        try:
            self._answer(self._seen(at_once))
        finally:
            with target._lock:
                target.in_hand -= 1

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _any  # noqa: N815

    def _seen(self, at_once: int) -> Answer:
        parts = urlsplit(self.path)
        unread = self.target.refuses_unread(parts.path)
        body = b"" if unread else self._body()
        headers: dict[str, str] = {}
        for name, value in self.headers.items():
            known = headers.get(name.lower())
            headers[name.lower()] = value if known is None else f"{known}, {value}"
        query = parse_qs(parts.query, keep_blank_values=True)
        return self.target.came(
            Seen(self.command, parts.path, query, headers, body, time.monotonic(), self.number, at_once)
        )

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, answer: Answer) -> None:
        if answer.delay:
            self.target.closing.wait(answer.delay)
        if answer.cut in ("unread", "read"):
            return self._reset()
        if answer.raw is not None:
            self.close_connection = True
            self.wfile.write(answer.raw)
            return self.wfile.flush()
        body, kind = _bytes(answer.body)
        if answer.gzip:
            body = gzip.compress(body)
        head = self._head(answer, body, kind)
        if answer.cut == "head":
            self._drip(head[:30], 0)
            return self._reset()
        self._drip(head, answer.drip_head)
        if self.command == "HEAD" or answer.status in (204, 304):
            return None
        if answer.endless:
            return self._endlessly()
        if answer.bomb:
            return self._explode(answer.bomb)
        if answer.cut == "body":
            self._drip(body[: len(body) // 2], 0)
            return self._reset()
        if answer.chunked:
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        return self._drip(body, answer.drip)

    def _head(self, answer: Answer, body: bytes, kind: str) -> bytes:
        headers: dict[str, Any] = {"Content-Type": kind, **answer.headers}
        if answer.gzip or answer.bomb:
            headers["Content-Encoding"] = "gzip"
        if answer.chunked:
            headers["Transfer-Encoding"] = "chunked"
        elif not (answer.endless or answer.bomb) and answer.status != 204:
            headers["Content-Length"] = str(len(body) if answer.length is None else answer.length)
        if answer.endless or answer.bomb or answer.close or answer.length is not None:
            headers["Connection"] = "close"
            self.close_connection = True
        lines = [f"HTTP/1.1 {answer.status} {responses.get(answer.status, 'Odd')}"]
        for name, value in headers.items():
            lines += [f"{name}: {item}" for item in ([value] if isinstance(value, str) else value)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8")

    def _drip(self, data: bytes, pause: float) -> None:
        for n in range(len(data)) if pause else (0,):
            self.wfile.write(data[n : n + 1] if pause else data)
            if pause:
                self.wfile.flush()
                if self.target.closing.wait(pause):
                    raise ConnectionAbortedError
        self.wfile.flush()

    def _endlessly(self) -> None:
        while not self.target.closing.is_set():
            self.wfile.write(b"x" * 65_536)

    def _explode(self, size: int) -> None:
        packer = zlib.compressobj(wbits=31)
        for _ in range(size):
            self.wfile.write(packer.compress(b"\0" * MB))
        self.wfile.write(packer.flush())
        self.wfile.flush()

    def _reset(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.rfile.close()
            self.connection.close()


def _bytes(body: Any) -> tuple[bytes, str]:
    if isinstance(body, bytes):
        return body, "application/octet-stream"
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    return json.dumps(body).encode(), "application/json"

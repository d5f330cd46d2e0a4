"""Scripts in Redis at the price of one small message: what every request asks goes this way.

redis-py's own way costs 90 us of processor time a call (pool, retry and metrics layers, one parse for each
element of an answer). Here each thread keeps one of redis-py's connections, packs the command and reads the answer
itself, and scripts answer with one text. Address, password, TLS, database and timeouts are those of the client; the
timeout of a plain socket is left to the kernel, since Python's own polls before every read and write, and each system
call lets go of the interpreter's lock.
"""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import struct
import threading
from typing import Any, Final

import redis
from redis.exceptions import NoScriptError

_SHORT: Final = 512  # bytes; the scripts answer with a few numbers


class Script:
    """A Lua script that answers with one text, its parts separated by blanks."""

    def __init__(self, source: str) -> None:
        self.source = source.encode()
        # How Redis names scripts; nothing depends on it being hard to forge.
        self.name = hashlib.sha1(self.source, usedforsecurity=False).hexdigest().encode()


class Wire:
    """Runs scripts on the Redis of a client, over one connection a thread."""

    def __init__(self, client: redis.Redis) -> None:
        self._pool = client.connection_pool
        self._local = threading.local()

    def run(self, script: Script, keys: list[str], args: list[str | int]) -> list[bytes]:
        """The parts of the script's answer. Raises redis.RedisError; a broken connection is renewed once."""
        tail = [b"%d" % len(keys), *(k.encode() for k in keys), *(str(a).encode() for a in args)]
        fresh = self._connection() is None
        try:
            answer = self._ask(script, tail)
        except (redis.ConnectionError, redis.TimeoutError):
            self._drop()
            if fresh:
                raise
            # Redis was restarted or an idle connection cut. Asked twice at worst, which counts once too often.
            answer = self._ask(script, tail)
        return answer.split(b" ")

    def _ask(self, script: Script, tail: list[bytes]) -> bytes:
        connection = self._connection() or self._connect()
        try:
            return _exchange(connection, _pack([b"EVALSHA", script.name, *tail]))
        except NoScriptError:
            return _exchange(connection, _pack([b"EVAL", script.source, *tail]))

    def _connection(self) -> Any:
        """This thread's connection, if it has one and it was made in this process."""
        held = getattr(self._local, "held", None)
        return held[1] if held is not None and held[0] == os.getpid() else None

    def _connect(self) -> Any:
        connection = self._pool.connection_class(**self._pool.connection_kwargs)
        connection.connect()
        _leave_timeout_to_kernel(connection._sock)
        self._local.held = (os.getpid(), connection)
        return connection

    def _drop(self) -> None:
        connection = self._connection()
        if connection is not None:
            connection.disconnect()
        self._local.held = None

    def close(self) -> None:
        """Close this thread's connection."""
        self._drop()


def _leave_timeout_to_kernel(sock: socket.socket) -> None:
    wait = sock.gettimeout()
    if not wait or isinstance(sock, ssl.SSLSocket):
        return
    span = struct.pack("ll", int(wait), int(wait % 1 * 1_000_000))  # struct timeval
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, span)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, span)
    sock.settimeout(None)


def _exchange(connection: Any, message: bytes) -> bytes:
    """Send a command, read the text that it answers with. Raises redis.RedisError."""
    sock = connection._sock
    if sock is None or isinstance(sock, ssl.SSLSocket):  # to be connected; has no short way
        connection.send_packed_command([message], check_health=False)
        return bytes(connection.read_response())
    try:
        sock.sendall(message)
        seen = sock.recv(_SHORT)
        while not _is_whole(seen):
            more = sock.recv(_SHORT)
            if not more:
                raise ConnectionError("the connection was closed")
            seen += more
    except OSError as error:
        connection.disconnect()  # an answer that comes late must not be taken for the next one's
        late = isinstance(error, BlockingIOError | TimeoutError)  # how the kernel, and Python, tell a timeout
        raise (redis.TimeoutError if late else redis.ConnectionError)(str(error)) from error
    head, _, text = seen.partition(b"\r\n")
    if head[:1] == b"-":
        raise connection._parser.parse_error(head[1:].decode(errors="replace"))
    return text[:-2]


def _is_whole(seen: bytes) -> bool:
    """Whether this is all of an answer, a text or an error. Raises OSError for what is neither."""
    head, _, text = seen.partition(b"\r\n")
    if head[:1] == b"$":
        return len(text) >= 2 and len(text) == int(head[1:]) + 2
    if head and head[:1] != b"-":
        raise ConnectionError("an answer that no script gives")
    return seen.endswith(b"\r\n")


def _pack(parts: list[bytes]) -> bytes:
    return b"*%d\r\n%b" % (len(parts), b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]))

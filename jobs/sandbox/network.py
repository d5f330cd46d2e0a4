"""Connections of a program, which lives in a network of its own that leads nowhere.

The kernel asks before it connects, binds or listens. What is of the box's own network is done with the caller's
socket; what lies outside and is open is connected here, on a socket of the host's network, which then takes the place
of the caller's. The address is our copy, and the socket our duplicate: who changes either meanwhile changes nothing.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Final

from jobs.sandbox import addresses, asking, filters
from jobs.sandbox.asking import Question
from jobs.sandbox.box import Box
from jobs.sandbox.kernel_memory import OutsideSockets

_SO_NETNS_COOKIE: Final = 71
_SO_COOKIE: Final = 57
_DNS: Final = 53
_IP_BIND_ADDRESS_NO_PORT: Final = (
    24  # the port is chosen when it connects, so that two connections may share it
)
# Options of the caller's socket that go over to the one that takes its place: (level, name, size).
_OPTIONS: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 4), (socket.SOL_SOCKET, socket.SO_LINGER, 8),
    (socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16), (socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16),
    (socket.SOL_SOCKET, socket.SO_OOBINLINE, 4), (socket.SOL_SOCKET, socket.SO_RCVLOWAT, 4),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 4), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 4),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 4), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
    (socket.IPPROTO_TCP, socket.TCP_SYNCNT, 4), (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 4),
    (socket.IPPROTO_TCP, socket.TCP_QUICKACK, 4),
)  # fmt: skip
_LISTEN: Final = "0A"  # TCP_LISTEN, in proc(5) net/tcp
_LONGEST_QUEUE: Final = 128  # connections that wait to be accepted; each may hold a full buffer


@dataclass
class Pending:
    """A connection that is being made. `made`: the socket; it takes the place of the caller's if `outside` is new."""

    question: Question
    made: socket.socket
    fresh: bool
    close_on_exec: bool
    blocking: bool
    until: float


class Connections:
    """Answers the questions of one box. `register` and `forget` tell its warden what to wait for."""

    def __init__(
        self,
        box: Box,
        listener: int,
        api: Set[tuple[addresses.Address, int]],
        reach: addresses.Reach,
        resolver: tuple[str, int] | None,
        register: Callable[[int, int], None],
        forget: Callable[[int], None],
    ) -> None:
        self.box, self.listener, self.api, self.resolver = box, listener, api, resolver
        self._allowed = reach
        self._register, self._forget = register, forget
        self._pending: dict[int, Pending] = {}
        self._own = _network_of(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), close=True)
        self._outside: set[int] = set()
        self.sockets = OutsideSockets()

    def ready(self, descriptor: int) -> bool:
        """Deal with a descriptor that is ready. False if it is none of ours."""
        if descriptor == self.listener:
            question = asking.receive(self.listener)
            if question is not None:
                self._answer(question)
            return True
        pending = self._pending.pop(descriptor, None)
        if pending is None:
            return False
        self._forget(descriptor)
        self._finish(pending, pending.made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        return True

    def tick(self) -> None:
        """Give up what has taken too long."""
        now = time.monotonic()
        for descriptor, pending in list(self._pending.items()):
            if now > pending.until or not asking.waits(self.listener, pending.question):
                del self._pending[descriptor]
                self._forget(descriptor)
                self._finish(pending, errno.EINPROGRESS)

    def close(self) -> None:
        """Let go of what is being made."""
        for descriptor, pending in self._pending.items():
            self._forget(descriptor)
            pending.made.close()
        self._pending.clear()
        self.sockets.close()

    def memory(self) -> int:
        """Bytes that the kernel holds for connections outside."""
        return self.sockets.measure()

    def _answer(self, question: Question) -> None:
        try:
            done = self._judge(question)
        except (OSError, StopIteration, ValueError) as error:
            done = getattr(error, "errno", None) or errno.EPERM
        if done is not None:
            asking.answer(self.listener, question, done)

    def _judge(self, question: Question) -> int | None:
        """Carry out what is asked: the error number, 0 for none; None where the answer is given elsewhere."""
        if question.number == filters.number("listen"):
            with asking.duplicate(question) as one:
                return (
                    errno.EINVAL if self._is_outside(one) else asking.call("listen", one, _backlog(question))
                )
        raw = asking.sockaddr(question)
        one = asking.duplicate(question)
        kept = False
        try:
            if not asking.waits(self.listener, question):
                return errno.EINTR
            if question.number == filters.number("bind"):
                return self._bind(question, one, raw)
            done = self._connect(question, one, raw)
            kept = done is None
            return done
        finally:
            if not kept or one.fileno() not in self._pending:
                one.close()

    def _bind(self, question: Question, one: socket.socket, raw: bytes) -> int | None:
        if one.family == socket.AF_UNIX and raw[2:3] not in (b"", b"\0"):
            # A path, which the kernel has to resolve as the caller. Nothing that it could be swapped for may listen.
            asking.answer(self.listener, question, carry_on=True)
            return None
        return errno.EINVAL if self._is_outside(one) else asking.call("bind", one, raw)

    def _connect(self, question: Question, one: socket.socket, raw: bytes) -> int | None:
        if len(raw) < 2:
            return errno.EINVAL
        if struct.unpack_from("=H", raw)[0] == socket.AF_UNSPEC:
            return asking.call("connect", one, raw)  # disconnects
        if one.family == socket.AF_UNIX:
            return self._connect_unix(question, one, raw)
        target = addresses.target(raw)
        if one.family not in (socket.AF_INET, socket.AF_INET6):
            return (
                asking.call("connect", one, raw) if one.family == filters.AF_NETLINK else errno.EAFNOSUPPORT
            )
        if target is None:
            return errno.EINVAL
        stream = one.type & 0xF == socket.SOCK_STREAM
        raw = self._led(target, raw) if stream else raw
        outside = self._is_outside(one)
        if raw is not target.raw:
            return self._go_out(question, one, raw, fresh=not outside)
        if self._is_given(target, stream):
            return self._go_out(question, one, raw, fresh=not outside, source=self._source(target))
        full = stream and self.box.network == "full"
        allowed = full and self._allowed.allows(target.address, target.port)
        # Loopback is the box's own, unless the operator has opened the host's and nothing listens there inside.
        if target.inside and not outside and not (allowed and not _listens(question.thread, target.port)):
            return self._wait_for(question, one, raw, fresh=False)
        if not allowed:
            return errno.EACCES
        return self._go_out(question, one, raw, fresh=not outside, source=self._source(target))

    def _connect_unix(self, question: Question, one: socket.socket, raw: bytes) -> int | None:
        path = raw[2:]
        if path[:1] in (b"", b"\0"):
            return self._wait_for(question, one, raw, fresh=False)  # a name of the box's own network
        file = asking.open_inside(question, path.partition(b"\0")[0])
        try:
            return self._reach(question, one, file)
        finally:
            os.close(file)

    def _reach(self, question: Question, one: socket.socket, file: int) -> int | None:
        """Connect to a unix socket that is open here."""
        there = struct.pack("=H", socket.AF_UNIX) + f"/proc/self/fd/{file}".encode() + b"\0"
        return self._wait_for(question, one, there, fresh=False)

    def _is_given(self, target: addresses.Target, stream: bool) -> bool:
        """Whether it is reached whatever its address."""
        return stream and (target.address, target.port) in self.api

    def _led(self, target: addresses.Target, raw: bytes) -> bytes:
        """Names are asked for inside at port 53 of loopback; by TCP that leads to the host's name server."""
        if self.resolver is None or target.port != _DNS or not target.inside or self.box.network != "full":
            return raw
        host, port = self.resolver
        family = struct.unpack_from("=H", raw)[0]
        if family == filters.AF_INET and ":" not in host:
            return struct.pack("=H", family) + struct.pack("!H", port) + socket.inet_aton(host) + bytes(8)
        if family == filters.AF_INET6:
            packed = addresses.ipaddress.ip_address(host)
            six = packed.packed if packed.version == 6 else b"\0" * 10 + b"\xff\xff" + packed.packed
            return struct.pack("=H", family) + struct.pack("!HI", port, 0) + six + bytes(4)
        return raw

    def _source(self, target: addresses.Target) -> str:
        """The address from which a service on the host's IPv4 loopback is called; "" for any."""
        return self.box.api_source if target.address.version == 4 and target.address.is_loopback else ""

    def _go_out(
        self, question: Question, one: socket.socket, raw: bytes, *, fresh: bool, source: str = ""
    ) -> int | None:
        """Connect outside, from the address `source`: on a new socket like the caller's, or on the caller's where that
        is one already."""
        if not fresh:
            if source and not _bind_to(one, source):
                return errno.EACCES
            return self._wait_for(question, one, raw, fresh=False)
        made = socket.socket(one.family, socket.SOCK_STREAM)
        try:
            if source and not _bind_to(made, source):
                made.close()
                return errno.EACCES
            _copy_options(one, made)
            done = self._wait_for(question, made, raw, fresh=True, caller=one)
        except BaseException:
            made.close()
            raise
        if made.fileno() not in self._pending:
            made.close()
        return done

    def _wait_for(
        self,
        question: Question,
        made: socket.socket,
        raw: bytes,
        *,
        fresh: bool,
        caller: socket.socket | None = None,
    ) -> int | None:
        """Connect without waiting here. Who waits for the connection is answered once it stands."""
        blocking = os.get_blocking((caller or made).fileno())
        os.set_blocking(made.fileno(), False)
        pending = Pending(question, made, fresh, asking.closes_on_exec(question), blocking, _until(made))
        error = asking.call("connect", made, raw)
        stream = made.type & 0xF == socket.SOCK_STREAM
        if error in (0, errno.EINPROGRESS) and stream and (fresh or self._is_outside(made)):
            self.sockets.add(made, raw, _cookie(made))
        if error == errno.EINPROGRESS and blocking:
            self._pending[made.fileno()] = pending
            self._register(made.fileno(), select.POLLOUT)
            return None
        return self._settle(pending, error)

    def _finish(self, pending: Pending, error: int) -> None:
        asking.answer(self.listener, pending.question, self._settle(pending, error))
        pending.made.close()

    def _settle(self, pending: Pending, error: int) -> int:
        """Put the socket in its place, where there is a connection or (who does not wait) there will be one."""
        if pending.blocking:
            os.set_blocking(pending.made.fileno(), True)
        fit = error == 0 or (error == errno.EINPROGRESS and not pending.blocking)
        if pending.fresh and fit:
            self._outside.add(_cookie(pending.made))
            if not asking.inject(
                self.listener, pending.question, pending.made.fileno(), close_on_exec=pending.close_on_exec
            ):
                return errno.EINTR
        return error

    def _is_outside(self, one: socket.socket) -> bool:
        """Whether a socket is of the host's network."""
        if self._own is not None:
            return one.family in (socket.AF_INET, socket.AF_INET6) and _network_of(one) == self._own
        return _cookie(one) in self._outside


def _bind_to(one: socket.socket, source: str) -> bool:
    """Give a socket this address, any port. False where it has another address already."""
    source = f"::ffff:{source}" if one.family == socket.AF_INET6 else source
    try:
        one.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
        one.bind((source, 0))
    except OSError:
        return one.getsockname()[0] == source
    return True


def _until(one: socket.socket) -> float:
    """When the caller's own limit ends the wait."""
    seconds, micro = struct.unpack("ll", one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16))
    given = seconds + micro / 1e6
    return time.monotonic() + given if given else float("inf")


def _listens(thread: int, port: int) -> bool:
    """Whether a socket listens at a port of the network that a thread is in."""
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{thread}/net/{name}") as file:
                rows = [line.split() for line in file][1:]
        except FileNotFoundError:
            continue  # no IPv6
        if any(row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == port for row in rows):
            return True
    return False


def _backlog(question: Question) -> int:
    return min(question.arguments[1] & 0x7FFFFFFF, _LONGEST_QUEUE)


def _copy_options(source: socket.socket, target: socket.socket) -> None:
    for level, name, size in _OPTIONS:
        try:
            value = source.getsockopt(level, name, size)
            if value != target.getsockopt(level, name, size):
                target.setsockopt(level, name, value)
        except OSError:
            pass  # an option that this kernel does not have


def _network_of(one: socket.socket, *, close: bool = False) -> int | None:
    """The cookie of the network a socket is of; None before Linux 5.14."""
    try:
        return struct.unpack("=Q", one.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8))[0]
    except OSError:
        return None
    finally:
        if close:
            one.close()


def _cookie(one: socket.socket) -> int:
    return struct.unpack("=Q", one.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8))[0]

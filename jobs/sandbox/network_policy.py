"""The network policy of a sandbox: which connections a program may make, and how they are made.

The program has its own network, without connections to the outside. The kernel notifies us (seccomp) before it
connects,
binds or listens. Connections within the sandbox's network use the program's socket. Allowed connections to
the outside are made here, on a socket of the host's network, which then replaces the program's socket. We use
our copy of the address and our duplicate of the socket, so changing either in the meantime has no effect.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jobs.sandbox import bubblewrap_process, network_access, seccomp
from jobs.sandbox.bubblewrap_process import BubblewrapProcess
from jobs.sandbox.landlock_process import LandlockProcess
from jobs.sandbox.network_access import DnsProxy, SocketProxy
from jobs.sandbox.process_tree import OutsideSockets, read_process
from jobs.sandbox.seccomp import Notification
from jobs.sandbox.spec import Mode, SandboxSpec

_SO_NETNS_COOKIE: Final = 71
_SO_COOKIE: Final = 57
_DNS: Final = 53
_IP_BIND_ADDRESS_NO_PORT: Final = 24  # choose the port when connecting, so that two connections may share it
# Options that are copied from the program's socket to its replacement: (level, name, size).
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
_MAX_BACKLOG: Final = 128  # connections that wait to be accepted; each may hold a full buffer


@dataclass
class PendingConnection:
    """A connection in progress. `socket` replaces the program's socket if `is_new_socket`."""

    notification: Notification
    socket: socket.socket
    is_new_socket: bool
    close_on_exec: bool
    is_blocking: bool
    deadline: float


class ConnectionPolicy:
    """Handles the seccomp notifications of one sandbox. `register` and `forget` add and remove descriptors of
    the supervisor's poll."""

    def __init__(
        self,
        spec: SandboxSpec,
        listener: int,
        api: Set[tuple[network_access.Address, int]],
        allowed: network_access.AllowedAddresses,
        resolver: tuple[str, int] | None,
        register: Callable[[int, int], None],
        forget: Callable[[int], None],
    ) -> None:
        self.spec, self.listener, self.api, self.resolver = spec, listener, api, resolver
        self._allowed = allowed
        self._register, self._forget = register, forget
        self._pending: dict[int, PendingConnection] = {}
        self._host_network = _network_cookie(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), close=True)
        self._outside: set[int] = set()
        self.sockets = OutsideSockets()

    def handle_ready(self, descriptor: int) -> bool:
        """Handle a descriptor that is ready. Return False if it belongs to another component."""
        if descriptor == self.listener:
            notification = seccomp.receive(self.listener)
            if notification is not None:
                try:
                    done = self._handle(notification)
                except (OSError, StopIteration, ValueError) as error:
                    done = getattr(error, "errno", None) or errno.EPERM
                if done is not None:
                    seccomp.respond(self.listener, notification, done)
            return True
        pending = self._pending.pop(descriptor, None)
        if pending is None:
            return False
        self._forget(descriptor)
        self._finish(pending, pending.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        return True

    def tick(self) -> None:
        """Drop connections that timed out."""
        now = time.monotonic()
        for descriptor, pending in list(self._pending.items()):
            if now > pending.deadline or not seccomp.is_pending(self.listener, pending.notification):
                del self._pending[descriptor]
                self._forget(descriptor)
                self._finish(pending, errno.EINPROGRESS)

    def close(self) -> None:
        """Close connections in progress."""
        for descriptor, pending in self._pending.items():
            self._forget(descriptor)
            pending.socket.close()
        self._pending.clear()
        self.sockets.close()

    def kernel_memory(self) -> int:
        """Return the bytes of kernel memory of connections to the outside."""
        return self.sockets.measure()

    def _handle(self, notification: Notification) -> int | None:
        """Handle a notification. Return the error number, 0 for success, or None if the response is sent
        elsewhere."""
        if notification.number == seccomp.call_number("listen"):
            with seccomp.duplicate(notification) as sock:
                if self._is_outside(sock):
                    return errno.EINVAL
                backlog = min(notification.arguments[1] & 0x7FFFFFFF, _MAX_BACKLOG)
                return seccomp.call_libc("listen", sock, backlog)
        raw = seccomp.sockaddr(notification)
        sock = seccomp.duplicate(notification)
        is_waiting = False
        try:
            if not seccomp.is_pending(self.listener, notification):
                return errno.EINTR
            if notification.number == seccomp.call_number("bind"):
                return self._bind(notification, sock, raw)
            done = self._connect(notification, sock, raw)
            is_waiting = done is None
            return done
        finally:
            if not is_waiting or sock.fileno() not in self._pending:
                sock.close()

    def _bind(self, notification: Notification, sock: socket.socket, raw: bytes) -> int | None:
        if sock.family == socket.AF_UNIX and raw[2:3] not in (b"", b"\0"):
            # The kernel must resolve the path as the caller. Nothing that could replace it is allowed to
            # listen.
            seccomp.respond(self.listener, notification, allow=True)
            return None
        return errno.EINVAL if self._is_outside(sock) else seccomp.call_libc("bind", sock, raw)

    def _connect(self, notification: Notification, sock: socket.socket, raw: bytes) -> int | None:
        if len(raw) < 2:
            return errno.EINVAL
        if struct.unpack_from("=H", raw)[0] == socket.AF_UNSPEC:
            return seccomp.call_libc("connect", sock, raw)  # disconnects
        if sock.family == socket.AF_UNIX:
            return self._connect_unix(notification, sock, raw)
        target = network_access.parse_sockaddr(raw)
        if sock.family not in (socket.AF_INET, socket.AF_INET6):
            return (
                seccomp.call_libc("connect", sock, raw)
                if sock.family == seccomp.AF_NETLINK
                else errno.EAFNOSUPPORT
            )
        if target is None:
            return errno.EINVAL
        stream = sock.type & 0xF == socket.SOCK_STREAM
        raw = self._redirect_dns(target, raw) if stream else raw
        outside = self._is_outside(sock)
        if raw is not target.raw:
            return self._connect_outside(notification, sock, raw, fresh=not outside)
        if self._is_always_allowed(target, stream):
            return self._connect_outside(
                notification, sock, raw, fresh=not outside, source=self._source_address(target)
            )
        full = stream and self.spec.network == "full"
        allowed = full and self._allowed.allows(target.address, target.port)
        # Loopback is the sandbox's own, unless the operator allows the host's and nothing listens on it
        # inside.
        if (
            target.is_inside_sandbox
            and not outside
            and not (allowed and not _is_listening(notification.thread, target.port))
        ):
            return self._start_connecting(notification, sock, raw, fresh=False)
        if not allowed:
            return errno.EACCES
        return self._connect_outside(
            notification, sock, raw, fresh=not outside, source=self._source_address(target)
        )

    def _connect_unix(self, notification: Notification, sock: socket.socket, raw: bytes) -> int | None:
        path = raw[2:]
        if path[:1] in (b"", b"\0"):
            return self._start_connecting(
                notification, sock, raw, fresh=False
            )  # a name of the box's own network
        file = seccomp.open_inside(notification, path.partition(b"\0")[0])
        try:
            return self._connect_to_open_file(notification, sock, file)
        finally:
            os.close(file)

    def _connect_to_open_file(self, notification: Notification, sock: socket.socket, file: int) -> int | None:
        """Connect to a unix socket that is open here."""
        address = struct.pack("=H", socket.AF_UNIX) + f"/proc/self/fd/{file}".encode() + b"\0"
        return self._start_connecting(notification, sock, address, fresh=False)

    def _is_always_allowed(self, target: network_access.SocketTarget, stream: bool) -> bool:
        """Whether connections to this address are always allowed."""
        return stream and (target.address, target.port) in self.api

    def _redirect_dns(self, target: network_access.SocketTarget, raw: bytes) -> bytes:
        """Redirect DNS over TCP, which goes to port 53 of loopback, to the host's name server."""
        if (
            self.resolver is None
            or target.port != _DNS
            or not target.is_inside_sandbox
            or self.spec.network != "full"
        ):
            return raw
        host, port = self.resolver
        family: int = struct.unpack_from("=H", raw)[0]
        if family == seccomp.AF_INET and ":" not in host:
            return struct.pack("=H", family) + struct.pack("!H", port) + socket.inet_aton(host) + bytes(8)
        if family == seccomp.AF_INET6:
            packed = ipaddress.ip_address(host)
            six = packed.packed if packed.version == 6 else b"\0" * 10 + b"\xff\xff" + packed.packed
            return struct.pack("=H", family) + struct.pack("!HI", port, 0) + six + bytes(4)
        return raw

    def _source_address(self, target: network_access.SocketTarget) -> str:
        """Return the source address for services on the host's IPv4 loopback; "" for any."""
        return self.spec.api_source if target.address.version == 4 and target.address.is_loopback else ""

    def _connect_outside(
        self, notification: Notification, sock: socket.socket, raw: bytes, *, fresh: bool, source: str = ""
    ) -> int | None:
        """Connect to the outside from the address `source`: on a new socket like the caller's, or on the
        caller's if it is outside already."""
        if not fresh:
            if source and not _bind_source(sock, source):
                return errno.EACCES
            return self._start_connecting(notification, sock, raw, fresh=False)
        outside = socket.socket(sock.family, socket.SOCK_STREAM)
        try:
            if source and not _bind_source(outside, source):
                outside.close()
                return errno.EACCES
            _copy_options(sock, outside)
            done = self._start_connecting(notification, outside, raw, fresh=True, caller=sock)
        except BaseException:
            outside.close()
            raise
        if outside.fileno() not in self._pending:
            outside.close()
        return done

    def _start_connecting(
        self,
        notification: Notification,
        connecting: socket.socket,
        raw: bytes,
        *,
        fresh: bool,
        caller: socket.socket | None = None,
    ) -> int | None:
        """Connect without blocking. A caller that waits gets its response when the connection is established."""
        blocking = os.get_blocking((caller or connecting).fileno())
        os.set_blocking(connecting.fileno(), False)
        close_on_exec = seccomp.closes_on_exec(notification)
        seconds, micro = struct.unpack("ll", connecting.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16))
        timeout = seconds + micro / 1e6  # the caller's own
        until = time.monotonic() + timeout if timeout else float("inf")
        pending = PendingConnection(notification, connecting, fresh, close_on_exec, blocking, until)
        error = seccomp.call_libc("connect", connecting, raw)
        stream = connecting.type & 0xF == socket.SOCK_STREAM
        if error in (0, errno.EINPROGRESS) and stream and (fresh or self._is_outside(connecting)):
            self.sockets.add(connecting, raw, _socket_cookie(connecting))
        if error == errno.EINPROGRESS and blocking:
            self._pending[connecting.fileno()] = pending
            self._register(connecting.fileno(), select.POLLOUT)
            return None
        return self._complete(pending, error)

    def _finish(self, pending: PendingConnection, error: int) -> None:
        seccomp.respond(self.listener, pending.notification, self._complete(pending, error))
        pending.socket.close()

    def _complete(self, pending: PendingConnection, error: int) -> int:
        """Install the socket if it is connected, or if the caller does not wait for the connection."""
        if pending.is_blocking:
            os.set_blocking(pending.socket.fileno(), True)
        is_usable = error == 0 or (error == errno.EINPROGRESS and not pending.is_blocking)
        if pending.is_new_socket and is_usable:
            self._outside.add(_socket_cookie(pending.socket))
            if not seccomp.inject_descriptor(
                self.listener,
                pending.notification,
                pending.socket.fileno(),
                close_on_exec=pending.close_on_exec,
            ):
                return errno.EINTR
        return error

    def _is_outside(self, sock: socket.socket) -> bool:
        """Whether a socket is in the host's network."""
        if self._host_network is not None:
            return (
                sock.family in (socket.AF_INET, socket.AF_INET6)
                and _network_cookie(sock) == self._host_network
            )
        return _socket_cookie(sock) in self._outside


def _bind_source(sock: socket.socket, source: str) -> bool:
    """Bind a socket to this address and any port. Return False if it is bound to another address."""
    source = f"::ffff:{source}" if sock.family == socket.AF_INET6 else source
    try:
        sock.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
        sock.bind((source, 0))
    except OSError:
        return bool(sock.getsockname()[0] == source)
    return True


def _is_listening(thread: int, port: int) -> bool:
    """Whether a socket listens on this port in the network of a thread."""
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{thread}/net/{name}") as file:
                rows = [line.split() for line in file][1:]
        except FileNotFoundError:
            continue  # no IPv6
        if any(row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == port for row in rows):
            return True
    return False


def _copy_options(source: socket.socket, target: socket.socket) -> None:
    for level, name, size in _OPTIONS:
        try:
            value = source.getsockopt(level, name, size)
            if value != target.getsockopt(level, name, size):
                target.setsockopt(level, name, value)
        except OSError:
            pass  # an option that this kernel does not have


def _network_cookie(sock: socket.socket, *, close: bool = False) -> int | None:
    """Return the cookie of a socket's network; None before Linux 5.14."""
    try:
        return _integer_option(sock, _SO_NETNS_COOKIE)
    except OSError:
        return None
    finally:
        if close:
            sock.close()


def _socket_cookie(sock: socket.socket) -> int:
    return _integer_option(sock, _SO_COOKIE)


def _integer_option(sock: socket.socket, option: int) -> int:
    """A socket option of 64 bits."""
    (number,) = struct.unpack("=Q", sock.getsockopt(socket.SOL_SOCKET, option, 8))
    return int(number)


class HostConnectionPolicy(ConnectionPolicy):
    """The policy for a program that shares the host's network and processes (Landlock).

    Its sockets are the host's: every connection is checked, and made with our copy of the address on the
    socket that was checked. It may listen only on paths in its home folder, and send signals only to its own
    group. `leader`: the pid of the group's leader; `home`: the folder for its unix sockets.
    """

    def __init__(
        self,
        spec: SandboxSpec,
        listener: int,
        always_allowed: Set[tuple[network_access.Address, int]],
        allowed: network_access.AllowedAddresses,
        register: Callable[[int, int], None],
        forget: Callable[[int], None],
        leader: int,
        home: Path,
    ) -> None:
        super().__init__(spec, listener, always_allowed, allowed, None, register, forget)
        self._leader, self._home = leader, home
        self._proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._signals = {seccomp.call_number(call) for call in ("kill", "tkill", "tgkill")}

    def close(self) -> None:
        """Let go of everything."""
        super().close()
        os.close(self._proc)

    def _handle(self, notification: Notification) -> int | None:
        if notification.number in self._signals:
            if self._is_own(notification.descriptor):
                seccomp.respond(
                    self.listener, notification, allow=True
                )  # its arguments are numbers, which cannot change
                return None
            return errno.EPERM
        return super()._handle(notification)

    def _is_own(self, pid: int) -> bool:
        """Whether a process, or a group as in kill(2), belongs to the program."""
        if pid <= 0:
            return pid in (0, -self._leader)
        found = read_process(self._proc, pid)
        return found is not None and found.group == self._leader and pid != self._leader

    def _is_always_allowed(self, target: network_access.SocketTarget, stream: bool) -> bool:
        return (target.address, target.port) in self.api and (
            stream or target.port == network_access.DNS_PORT
        )

    def _is_outside(self, sock: socket.socket) -> bool:
        return sock.family in (socket.AF_INET, socket.AF_INET6)

    def _bind(self, notification: Notification, sock: socket.socket, raw: bytes) -> int | None:
        if sock.family == socket.AF_UNIX:
            if raw[2:3] in (b"", b"\0"):
                return errno.EACCES  # an abstract name, which is the host's
            seccomp.respond(self.listener, notification, allow=True)  # Landlock checks the path
            return None
        # Connecting would choose any port and address, too. The address identifies callers of the API, so it
        # must be ours.
        target = network_access.parse_sockaddr(raw)
        return 0 if target is not None and target.port == 0 else errno.EACCES

    def _connect_unix(self, notification: Notification, sock: socket.socket, raw: bytes) -> int | None:
        path = raw[2:].partition(b"\0")[0]
        if not path:
            return errno.EACCES
        file = seccomp.open_inside(notification, path)
        try:
            found = Path(os.readlink(f"/proc/self/fd/{file}"))
            if not found.is_relative_to(self._home):
                return errno.EACCES
            return self._connect_to_open_file(notification, sock, file)
        finally:
            os.close(file)


_NETWORKS_WITH_API: Final = ("full", "api")


class NetworkPolicy:
    """Network access of one sandbox. Before the start: `sockets_to_serve`, the sockets that the launcher binds, and
    `files` of its /etc. While it runs: `handle_ready` and `tick`."""

    def __init__(self, spec: SandboxSpec, mode: Mode) -> None:
        self.spec, self.mode = spec, mode
        host, port = spec.api
        self._api: list[str] = []
        if spec.network in _NETWORKS_WITH_API:
            with suppress(OSError):
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                self._api = list(dict.fromkeys(str(item[4][0]).partition("%")[0] for item in found))
        servers, other_lines = network_access.host_dns()
        self._resolvers = spec.resolvers or servers
        self.sockets_to_serve: list[tuple[str, str, int]] = []
        self.kernel_memory: Callable[[], int] = lambda: 0
        """Return the bytes of kernel memory of connections outside of the sandbox."""
        if spec.network == "full" and mode.name == "bubblewrap":
            self.sockets_to_serve.append(("datagram", network_access.DNS_ADDRESS, network_access.DNS_PORT))
        self.env: dict[str, str] = {}
        if spec.network in _NETWORKS_WITH_API and mode.name == "bubblewrap" and not mode.notify:
            self.env = network_access.proxy_variables(spec)
            self.sockets_to_serve.append(("stream", network_access.PROXY_HOST, network_access.PROXY_PORT))
            local = next((item for item in self._api if ipaddress.ip_address(item).is_loopback), None)
            self.sockets_to_serve += [("stream", local, port)] if local else []
        self._allowed = network_access.AllowedAddresses(spec.networks, spec.hidden)
        self._files = (host, self._api, other_lines)
        self._components: list[Any] = []

    def files(self, user: int | None) -> dict[str, bytes]:
        """Return the contents of files by path."""
        host, api, other_lines = self._files
        return network_access.etc_files(
            user or bubblewrap_process.SANDBOX_USER_ID,
            bubblewrap_process.SANDBOX_HOME,
            host,
            api,
            other_lines,
            self.spec.network == "full",
        )

    def start(self, program: BubblewrapProcess | LandlockProcess, poll: select.poll) -> None:
        """Start to serve a running program. `poll` is the supervisor's."""
        names_ = [item for item in program.sockets if item.type == socket.SOCK_DGRAM]
        streams = [item for item in program.sockets if item.type == socket.SOCK_STREAM]
        for name in names_:
            self._components.append(
                DnsProxy(
                    name, self._resolvers, lambda each: poll.register(each, select.POLLIN), poll.unregister
                )
            )
        if streams:  # the proxy first, then the forwarder to the API, as in `sockets_to_serve`
            self._components.append(
                SocketProxy(
                    self.spec,
                    self._api_addresses(),
                    self._allowed,
                    [(stream, stream is streams[0]) for stream in streams],
                )
            )
        if program.listener is not None:
            connections = self._connection_policy(program, program.listener, poll)
            self.kernel_memory = connections.kernel_memory
            self._components.append(connections)
            poll.register(program.listener, select.POLLIN)

    def _connection_policy(
        self, program: BubblewrapProcess | LandlockProcess, listener: int, poll: select.poll
    ) -> ConnectionPolicy:
        always_allowed = self._api_addresses()
        if isinstance(program, BubblewrapProcess):
            resolver = (self._resolvers[0], network_access.DNS_PORT)
            return ConnectionPolicy(
                self.spec, listener, always_allowed, self._allowed, resolver, poll.register, poll.unregister
            )
        if self.spec.network == "full":  # name servers are contacted at their own addresses
            always_allowed |= {
                (network_access.unmap_ipv4(ipaddress.ip_address(item)), network_access.DNS_PORT)
                for item in self._resolvers
            }
        return HostConnectionPolicy(
            self.spec,
            listener,
            always_allowed,
            self._allowed,
            poll.register,
            poll.unregister,
            program.tree.leader,
            program.home_path,
        )

    def _api_addresses(self) -> set[tuple[network_access.Address, int]]:
        """Return the addresses that are always allowed: those of the API."""
        return {
            (network_access.unmap_ipv4(ipaddress.ip_address(item)), self.spec.api[1]) for item in self._api
        }

    def handle_ready(self, descriptor: int) -> None:
        """Handle a descriptor that is ready."""
        for part in self._components:
            if part.handle_ready(descriptor):
                return

    def tick(self) -> None:
        """Drop what timed out."""
        for part in self._components:
            part.tick()

    def close(self) -> None:
        """Close everything."""
        for part in self._components:
            part.close()
        self._components.clear()

"""What a program reaches of the network: the allowed addresses, DNS, and proxies.

A program may reach the public internet, and networks that the operator allows for programs. The rules are those of the
SSRF guard of connections, with two additions: cloud metadata services and the components of Rowsmith itself are always
blocked.

DNS queries are forwarded from port 53 of the sandbox's loopback interface to the host's name servers, and only to
those.

Without seccomp notifications, sockets in the sandbox's network are served from outside: one leads to the API, one is an
HTTP proxy, and everything else is blocked.
"""

from __future__ import annotations

import ipaddress
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobs.sandbox.seccomp import AF_INET, AF_INET6
from jobs.sandbox.spec import SandboxSpec

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Net = ipaddress.IPv4Network | ipaddress.IPv6Network

# Metadata services of clouds: link-local; Azure; AWS over IPv6; Alibaba; Oracle; Google over IPv6.
_METADATA: Final[tuple[Net, ...]] = tuple(
    ipaddress.ip_network(name)
    for name in (
        "169.254.0.0/16", "fe80::/10", "168.63.129.16/32", "fd00:ec2::/32", "100.100.100.200/32", "192.0.0.192/32",
        "fd20:ce::/32",
    )
)  # fmt: skip
# Tunnels: 6to4 and its relays (RFC 7526), Teredo (RFC 4380); documentation (RFC 9637).
_TUNNELS: Final[tuple[Net, ...]] = tuple(
    ipaddress.ip_network(name) for name in ("2002::/16", "192.88.99.0/24", "2001::/32", "3fff::/20")
)
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")  # the only range that IANA assigns
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: IPv4 addresses for IPv6-only machines
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")  # RFC 4291, 2.5.5.1


@dataclass(frozen=True)
class SocketTarget:
    """An IP address and port that a program passed. `raw`: the bytes of its struct sockaddr."""

    address: Address
    port: int
    raw: bytes

    @property
    def is_inside_sandbox(self) -> bool:
        """Whether it is in the sandbox's own network. The kernel treats the unspecified address as loopback."""
        return self.address.is_loopback or self.address.is_unspecified


def parse_sockaddr(raw: bytes) -> SocketTarget | None:
    """Parse a `struct sockaddr_in` or `sockaddr_in6`. Return None for other families and truncated ones."""
    if len(raw) < 8:
        return None
    family = struct.unpack_from("=H", raw)[0]
    port = struct.unpack_from("!H", raw, 2)[0]
    if family == AF_INET and len(raw) >= 16:
        return SocketTarget(ipaddress.IPv4Address(raw[4:8]), port, raw)
    if family == AF_INET6 and len(raw) >= 24:
        return SocketTarget(unmap_ipv4(ipaddress.IPv6Address(raw[8:24])), port, raw)
    return None


def unmap_ipv4(address: Address) -> Address:
    """Convert an IPv4-mapped IPv6 address to IPv4: the kernel treats them as the same."""
    return getattr(address, "ipv4_mapped", None) or address


def is_allowed(address: Address, allowed_networks: tuple[Net, ...]) -> bool:
    """Whether a program may reach an address. An IPv6 address that embeds an IPv4 address is allowed only if
    that is."""
    inner = _embedded_ipv4(address)
    if (
        address.is_unspecified
        or _is_in_any(address, _METADATA)
        or (inner is not None and not is_allowed(inner, allowed_networks))
    ):
        return False
    return _is_in_any(address, allowed_networks) or _is_public(address)


class AllowedAddresses:
    """The addresses that a program of network `full` may connect to.

    `networks` are allowed in addition to the public internet. `hidden` are the service's own components, each a host,
    an address or a network, with its port: they are blocked even in allowed networks. The port of a component on this
    machine is blocked at all addresses of the machine, because it may listen on each of them.
    """

    def __init__(self, networks: Iterable[str] = (), hidden: Iterable[tuple[str, int]] = ()) -> None:
        self._allowed_networks = tuple(ipaddress.ip_network(network) for network in networks)
        self._hidden: list[tuple[Net, int]] = []
        self._local_ports: set[int] = set()
        for host, port in hidden:
            found = _networks_of(host)
            self._hidden += [(item, port) for item in found]
            if any(item.num_addresses == 1 and is_on_this_machine(item.network_address) for item in found):
                self._local_ports.add(port)

    def allows(self, address: Address, port: int) -> bool:
        """Whether a program may connect to this address and port."""
        inner = _embedded_ipv4(address)
        if inner is not None and not self.allows(inner, port):
            return False
        if port in self._local_ports and is_on_this_machine(address):
            return False
        if not _is_public(address) and any(
            port == item and _is_in_any(address, (net,)) for net, item in self._hidden
        ):
            return False
        return is_allowed(address, self._allowed_networks)


def is_on_this_machine(address: Address) -> bool:
    """Whether connecting to an address reaches this machine: loopback, or an address of one of its
    interfaces."""
    if address.is_loopback or address.is_unspecified:
        return True
    with socket.socket(AF_INET if address.version == 4 else AF_INET6, socket.SOCK_STREAM) as sock:
        try:
            sock.bind((str(address), 0))
        except OSError:
            return False
    return True


def _networks_of(host: str) -> list[Net]:
    """Return a network as it is, or each address of a host. Empty if the host does not exist."""
    try:
        return [ipaddress.ip_network(host)]
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    texts = {str(item[4][0]).partition("%")[0] for item in found}
    return [ipaddress.ip_network(unmap_ipv4(ipaddress.ip_address(text))) for text in texts]


def _is_in_any(address: Address, networks: Iterable[Net]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _embedded_ipv4(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for (NAT64, IPv4-compatible, 6to4, Teredo); None for others."""
    if not isinstance(address, ipaddress.IPv6Address) or address.is_loopback or address.is_unspecified:
        return None
    if address in _NAT64 or address in _COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour or (address.teredo[1] if address.teredo else None)


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return _is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address not in _UNICAST:
            return False
    return address.is_global and not address.is_multicast and not _is_in_any(address, (*_TUNNELS, *_METADATA))


DNS_ADDRESS: Final = "127.0.0.1"
DNS_PORT: Final = 53
_LARGEST_DNS_MESSAGE: Final = 65_535
# --- DNS ----------------------------------------------------------------------------------------------------

_MAX_PENDING: Final = 64  # unanswered queries; the oldest is dropped
_DNS_SECONDS: Final = 15.0
_MAX_BATCH: Final = 32  # queries accepted before other events are handled


@dataclass
class _PendingQuery:
    """A query that waits for its response."""

    client: tuple[str, int]
    outside: socket.socket
    deadline: float


class DnsProxy:
    """Forwards queries and responses. `register` and `forget` add and remove descriptors of the supervisor's
    poll."""

    def __init__(
        self,
        inside: socket.socket,
        resolvers: tuple[str, ...],
        register: Callable[[int], None],
        forget: Callable[[int], None],
    ) -> None:
        self._inside, self._resolvers = inside, resolvers
        self._register, self._forget = register, forget
        self._pending: dict[int, _PendingQuery] = {}
        self._server = 0
        self._last: tuple[tuple[str, int], bytes] | None = None
        inside.setblocking(False)
        register(inside.fileno())

    def handle_ready(self, descriptor: int) -> bool:
        """Handle a descriptor that is ready. Return False if it belongs to another component."""
        if descriptor == self._inside.fileno():
            for _ in range(_MAX_BATCH):
                if not self._forward():
                    break
            return True
        query = self._pending.get(descriptor)
        if query is None:
            return False
        try:
            self._inside.sendto(query.outside.recv(_LARGEST_DNS_MESSAGE), query.client)
        except OSError:
            pass  # the server or the client is gone; clients retry
        self._discard(descriptor)
        return True

    def tick(self) -> None:
        """Drop queries that timed out."""
        now = time.monotonic()
        for descriptor in [item for item, query in self._pending.items() if now > query.deadline]:
            self._discard(descriptor)

    def close(self) -> None:
        """Close everything except for the socket inside."""
        for descriptor in list(self._pending):
            self._discard(descriptor)
        self._forget(self._inside.fileno())

    def _forward(self) -> bool:
        try:
            notification, client = self._inside.recvfrom(_LARGEST_DNS_MESSAGE)
        except OSError:
            return False
        if (client, notification[:2]) == self._last:
            self._server += 1  # repeated query: try the next server
        self._last = (client, notification[:2])
        server = self._resolvers[self._server % len(self._resolvers)]
        outside = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
        outside.setblocking(False)
        try:
            outside.connect((server, DNS_PORT))
            outside.send(notification)
        except OSError:
            outside.close()
            return True
        if len(self._pending) >= _MAX_PENDING:
            self._discard(next(iter(self._pending)))
        self._pending[outside.fileno()] = _PendingQuery(client, outside, time.monotonic() + _DNS_SECONDS)
        self._register(outside.fileno())
        return True

    def _discard(self, descriptor: int) -> None:
        self._forget(descriptor)
        self._pending.pop(descriptor).outside.close()


def host_dns() -> tuple[tuple[str, ...], list[str]]:
    """Return the host's name servers, and the other lines of its /etc/resolv.conf."""
    try:
        lines = Path("/etc/resolv.conf").read_text().splitlines()
    except OSError:
        lines = []
    words = [line.split() for line in lines if line.split() and line[0] not in "#;"]
    servers = tuple(
        parts[1].partition("%")[0] for parts in words if parts[0] == "nameserver" and len(parts) > 1
    )
    other_lines = [" ".join(parts) for parts in words if parts[0] in ("search", "domain", "options")]
    return servers[:3] or (DNS_ADDRESS,), other_lines


def etc_files(
    user: int, home: str, api_host: str, api: list[str], other_lines: list[str], named: bool
) -> dict[str, bytes]:
    """Return the files of /etc for users and name resolution. `named`: whether DNS is available."""
    hosts = ["127.0.0.1 localhost scenario", "::1 localhost"]
    hosts += [f"{address} {api_host}" for address in api if address != api_host and api_host != "localhost"]
    resolv = [f"nameserver {DNS_ADDRESS}", *other_lines] if named else []
    lines_by_file = {
        "passwd": [f"scenario:x:{user}:{user}:scenario:{home}:/bin/sh", "nobody:x:65534:65534::/:/bin/false"],
        "group": [f"scenario:x:{user}:", "nogroup:x:65534:"],
        "hosts": hosts,
        "resolv.conf": resolv,
        "nsswitch.conf": [
            "passwd: files",
            "group: files",
            "hosts: files dns",
            "services: files",
            "protocols: files",
        ],
    }
    return {f"/etc/{name}": ("\n".join(lines) + "\n").encode() for name, lines in lines_by_file.items()}


PROXY_HOST: Final = "127.0.0.1"
# --- Proxies ------------------------------------------------------------------------------------------------

PROXY_PORT: Final = 3128
_MAX_CONNECTIONS: Final = 64  # connections
_BUFFER_BYTES: Final = 65_536
_MAX_HEADER_BYTES: Final = 32_768  # bytes of a request before its body
_PROXY_SECONDS: Final = 30.0  # for a request's header, and for connecting
_IDLE_SECONDS: Final = 900.0
_DENIED: Final = b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def proxy_variables(spec: SandboxSpec) -> dict[str, str]:
    """Return the environment variables that configure the proxy."""
    if spec.network == "none":
        return {}
    proxy_url = f"http://{PROXY_HOST}:{PROXY_PORT}"
    lower_case = {f"{kind}_proxy": proxy_url for kind in ("http", "https", "all")}
    return {
        **lower_case,
        **{name.upper(): proxy_url for name in lower_case},
        "no_proxy": "localhost,127.0.0.1",
        "NO_PROXY": "localhost,127.0.0.1",
    }


class SocketProxy:
    """Serves the sockets of one sandbox until it ends."""

    def __init__(
        self,
        spec: SandboxSpec,
        api: Set[tuple[Address, int]],
        reach: AllowedAddresses,
        inside: list[tuple[socket.socket, bool]],
    ) -> None:
        self._spec, self._api, self._allowed, self._inside = spec, api, reach, inside
        self._slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        self._stopped = threading.Event()
        for item, proxy in inside:
            item.settimeout(None)
            threading.Thread(target=self._accept, args=(item, proxy), name="relay", daemon=True).start()

    def handle_ready(self, _: int) -> bool:
        """The supervisor polls none of these sockets."""
        return False

    def tick(self) -> None:
        """Threads have their own timeouts."""

    def close(self) -> None:
        """Accept no more connections. Open ones end with the program."""
        self._stopped.set()
        for item, _ in self._inside:
            try:
                item.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it was not connected, but accept() has returned

    def _accept(self, inside: socket.socket, is_proxy: bool) -> None:
        while not self._stopped.is_set():
            try:
                client, _ = inside.accept()
            except OSError:
                return
            if not self._slots.acquire(blocking=False):
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client, is_proxy), name="relay", daemon=True).start()

    def _serve(self, client: socket.socket, is_proxy: bool) -> None:
        try:
            with client:
                client.settimeout(_PROXY_SECONDS)
                if is_proxy:
                    self._serve_proxy_request(client)
                else:
                    with self._connect_to_api() as outside:
                        relay(client, outside)
        except (OSError, ValueError):
            pass  # one side has closed the connection
        finally:
            self._slots.release()

    def _connect_to_api(self) -> socket.socket:
        """Connect to the first address of the API that responds."""
        error = OSError("no address")
        for *_, found in socket.getaddrinfo(*self._spec.api, type=socket.SOCK_STREAM):
            try:
                return self._connect_with_source(str(found[0]), self._spec.api[1])
            except OSError as fault:
                error = fault
        raise error

    def _connect_with_source(self, address: str, port: int) -> socket.socket:
        """Connect. On IPv4 loopback, use the source address by which the API identifies programs."""
        local = unmap_ipv4(ipaddress.ip_address(address.partition("%")[0]))
        known = bool(self._spec.api_source) and local.version == 4 and local.is_loopback
        return socket.create_connection(
            (address, port), _PROXY_SECONDS, (self._spec.api_source, 0) if known else None
        )

    def _serve_proxy_request(self, client: socket.socket) -> None:
        """Serve one proxy request, then forward bytes in both directions (RFC 9110, 7.6 and 9.3.6)."""
        head = b""
        while b"\r\n\r\n" not in head:
            part = client.recv(_BUFFER_BYTES)
            if not part or len(head) > _MAX_HEADER_BYTES:
                return
            head += part
        line, _, rest = head.partition(b"\r\n")
        method, url, version = line.split(b" ", 2)
        tunnel = method == b"CONNECT"
        authority, path = url, b""
        if not tunnel:
            authority, slash, tail = url.removeprefix(b"http://").partition(b"/")
            path = slash + tail or b"/"
        outside = self._connect(authority.rpartition(b"@")[2].decode("ascii"), 443 if tunnel else 80)
        if outside is None:
            client.sendall(_DENIED % b"403 Forbidden")
            return
        with outside:
            if tunnel:
                client.sendall(version + b" 200 Connection established\r\n\r\n")
            else:
                headers = [
                    item
                    for item in rest.split(b"\r\n")
                    if not item.lower().startswith((b"proxy-", b"connection:"))
                ]
                outside.sendall(
                    b" ".join((method, path, version)) + b"\r\nConnection: close\r\n" + b"\r\n".join(headers)
                )
            relay(client, outside)

    def _connect(self, authority: str, port: int) -> socket.socket | None:
        """Connect to the first address that is allowed and responds, or return None."""
        host, colon, tail = authority.rpartition(":")
        if colon and tail.isdigit():
            port = int(tail)
        else:
            host = authority
        for *_, found in socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM):
            address = unmap_ipv4(ipaddress.ip_address(str(found[0]).partition("%")[0]))
            allowed = self._spec.network == "full" and self._allowed.allows(address, port)
            if allowed or (address, port) in self._api:
                try:
                    return self._connect_with_source(str(address), port)
                except OSError:
                    continue
        return None


def relay(first: socket.socket, second: socket.socket) -> None:
    """Forward bytes in both directions until both sides have ended or the connection is idle for too long."""
    to = {first: second, second: first}
    for item in to:
        item.settimeout(_IDLE_SECONDS)
    open_ = set(to)
    while open_:
        ready, _, _ = select.select(list(open_), [], [], _IDLE_SECONDS)
        if not ready:
            return
        for source in ready:
            part = source.recv(_BUFFER_BYTES)
            if part:
                to[source].sendall(part)
            else:
                open_.discard(source)
                to[source].shutdown(socket.SHUT_WR)

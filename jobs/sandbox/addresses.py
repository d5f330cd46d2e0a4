"""Decide which addresses a program may reach: the public internet, and networks that the operator allows for
programs.

The rules are those of the SSRF guard of connections, with two additions: cloud metadata services and the
components of Rowsmith itself are always blocked.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from jobs.sandbox.seccomp import AF_INET, AF_INET6

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
_DETOURS: Final[tuple[Net, ...]] = tuple(
    ipaddress.ip_network(name) for name in ("2002::/16", "192.88.99.0/24", "2001::/32", "3fff::/20")
)
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")  # the only range that IANA assigns
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: IPv4 addresses for IPv6-only machines
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")  # RFC 4291, 2.5.5.1


@dataclass(frozen=True)
class Target:
    """An IP address and port that a program passed. `raw`: the bytes of its struct sockaddr."""

    address: Address
    port: int
    raw: bytes

    @property
    def inside(self) -> bool:
        """Whether it is in the sandbox's own network. The kernel treats the unspecified address as loopback."""
        return self.address.is_loopback or self.address.is_unspecified


def target(raw: bytes) -> Target | None:
    """Parse a `struct sockaddr_in` or `sockaddr_in6`. Return None for other families and truncated ones."""
    if len(raw) < 8:
        return None
    family = struct.unpack_from("=H", raw)[0]
    port = struct.unpack_from("!H", raw, 2)[0]
    if family == AF_INET and len(raw) >= 16:
        return Target(ipaddress.IPv4Address(raw[4:8]), port, raw)
    if family == AF_INET6 and len(raw) >= 24:
        return Target(plain(ipaddress.IPv6Address(raw[8:24])), port, raw)
    return None


def plain(address: Address) -> Address:
    """Convert an IPv4-mapped IPv6 address to IPv4: the kernel treats them as the same."""
    return getattr(address, "ipv4_mapped", None) or address


def is_open(address: Address, opened: tuple[Net, ...]) -> bool:
    """Whether a program may reach an address. An IPv6 address that embeds an IPv4 address is allowed only if
    that is."""
    inner = _ipv4_in(address)
    if (
        address.is_unspecified
        or _is_in(address, _METADATA)
        or (inner is not None and not is_open(inner, opened))
    ):
        return False
    return _is_in(address, opened) or _is_public(address)


class Reach:
    """The addresses that a program of network `full` may connect to.

    `networks` are allowed in addition to the public internet. `hidden` are the service's own components, each a host,
    an address or a network, with its port: they are blocked even in allowed networks. The port of a component on this
    machine is blocked at all addresses of the machine, because it may listen on each of them.
    """

    def __init__(self, networks: Iterable[str] = (), hidden: Iterable[tuple[str, int]] = ()) -> None:
        self._opened = tuple(ipaddress.ip_network(network) for network in networks)
        self._hidden: list[tuple[Net, int]] = []
        self._here: set[int] = set()
        for host, port in hidden:
            found = _networks_of(host)
            self._hidden += [(item, port) for item in found]
            if any(item.num_addresses == 1 and is_of_this_machine(item.network_address) for item in found):
                self._here.add(port)

    def allows(self, address: Address, port: int) -> bool:
        """Whether a program may connect to this address and port."""
        inner = _ipv4_in(address)
        if inner is not None and not self.allows(inner, port):
            return False
        if port in self._here and is_of_this_machine(address):
            return False
        if not _is_public(address) and any(
            port == item and _is_in(address, (net,)) for net, item in self._hidden
        ):
            return False
        return is_open(address, self._opened)


def is_of_this_machine(address: Address) -> bool:
    """Whether connecting to an address reaches this machine: loopback, or an address of one of its
    interfaces."""
    if address.is_loopback or address.is_unspecified:
        return True
    with socket.socket(AF_INET if address.version == 4 else AF_INET6, socket.SOCK_STREAM) as one:
        try:
            one.bind((str(address), 0))
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
    return [ipaddress.ip_network(plain(ipaddress.ip_address(text))) for text in texts]


def _is_in(address: Address, networks: Iterable[Net]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _ipv4_in(address: Address) -> ipaddress.IPv4Address | None:
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
    return address.is_global and not address.is_multicast and not _is_in(address, (*_DETOURS, *_METADATA))

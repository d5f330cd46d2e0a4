"""Which addresses a program may reach: the public internet, and what the operator opens to programs.

The rules are those of the address guard of connections, with nothing of what is allowed to these.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from jobs.sandbox.filters import AF_INET, AF_INET6

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Net = ipaddress.IPv4Network | ipaddress.IPv6Network

# Where clouds tell their machines' credentials: link-local; Azure; AWS over IPv6; Alibaba; Oracle; Google over IPv6.
_METADATA: Final[tuple[Net, ...]] = tuple(
    ipaddress.ip_network(one)
    for one in (
        "169.254.0.0/16", "fe80::/10", "168.63.129.16/32", "fd00:ec2::/32", "100.100.100.200/32", "192.0.0.192/32",
        "fd20:ce::/32",
    )
)  # fmt: skip
# Ways to somewhere else: 6to4 and its relays (RFC 7526), Teredo (RFC 4380); documentation (RFC 9637).
_DETOURS: Final[tuple[Net, ...]] = tuple(
    ipaddress.ip_network(one) for one in ("2002::/16", "192.88.99.0/24", "2001::/32", "3fff::/20")
)
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")  # IANA gives out IPv6 from here alone
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: IPv4, for machines that have IPv6 alone


@dataclass(frozen=True)
class Target:
    """An address of the internet and its port, as a program gave it. `raw`: the bytes it came in."""

    address: Address
    port: int
    raw: bytes

    @property
    def inside(self) -> bool:
        """Whether it is of the box's own network; the kernel takes "any" for loopback."""
        return self.address.is_loopback or self.address.is_unspecified


def target(raw: bytes) -> Target | None:
    """What a `struct sockaddr_in` or `sockaddr_in6` says; None for other families and too short ones."""
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
    """IPv4 where it is that, written as IPv6: the kernel takes the two for the same."""
    return getattr(address, "ipv4_mapped", None) or address


def networks(given: Iterable[str]) -> tuple[Net, ...]:
    """Networks from their CIDR. ValueError if one is none."""
    return tuple(ipaddress.ip_network(one) for one in given)


def is_open(address: Address, opened: tuple[Net, ...]) -> bool:
    """Whether a program may reach an address. Metadata is closed even in a network that is opened, unless that network
    is (a part of) the metadata's own."""
    kept = next((one for one in _METADATA if address.version == one.version and address in one), None)
    named = [one for one in opened if address.version == one.version and address in one]
    if kept is not None:
        return any(one.prefixlen >= kept.prefixlen for one in named)
    return bool(named) or _is_public(address)


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            four = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
            return not any(four in one for one in _METADATA if one.version == 4) and _is_public(four)
        if address not in _UNICAST:
            return False
    closed = any(address.version == one.version and address in one for one in (*_DETOURS, *_METADATA))
    return address.is_global and not address.is_multicast and not closed

"""Where connections may lead: the address guard of everything that a user's settings make this service reach.

Names are resolved here and the connection is made to the address that was judged, so that a name which changes its
mind between the two reaches nothing. Loopback, private, link-local, metadata and other special networks are closed
unless the operator allows them (`TARGET_NETWORKS`).
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from webapp import limits
from webapp.net import hosts
from webapp.net.addresses import Address, Network

NOTHING: Final[Mapping[str, Sequence[str]]] = MappingProxyType({})

# Where clouds tell their machines' credentials: closed even inside a network that the operator opened, unless that
# network is (a part of) one of these. Link-local; Azure's WireServer; AWS over IPv6; Alibaba; Oracle; Google over IPv6.
_METADATA: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(one)
    for one in (
        "169.254.0.0/16", "fe80::/10", "168.63.129.16/32", "fd00:ec2::/32", "100.100.100.200/32", "192.0.0.192/32",
        "fd20:ce::/32",
    )
)  # fmt: skip
# IPv6 is given out to machines from here alone (IANA, "IPv6 Global Unicast Address Assignments"): site-local,
# IPv4-compatible, IPv4-translated and segment routing addresses lie outside.
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
# Inside it, or not special to the standard library, and yet a way to somewhere else: 6to4 and its relays (RFC 7526),
# Teredo (RFC 4380), documentation (RFC 9637).
_DETOURS: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(one) for one in ("2002::/16", "192.88.99.0/24", "2001::/32", "3fff::/20")
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: IPv4, for machines that have IPv6 alone
_IPV4: Final = 0xFFFFFFFF


class GateError(Exception):
    """The way is closed or not there. `reason`: not_allowed, secret_host, unresolved, refused, timeout, unreachable."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason, self.message = reason, message
        super().__init__(message)


class Gate:
    """Judges addresses. `allowed` are networks the operator opened beside the public internet.

    `secrets` are the secrets that a connection sends, by name, with the hosts that each may be sent to: no other host
    is connected to.
    """

    def __init__(self, allowed: Iterable[str] = (), secrets: Mapping[str, Sequence[str]] = NOTHING) -> None:
        self.allowed: tuple[Network, ...] = tuple(ipaddress.ip_network(one) for one in allowed)
        self.secrets = secrets

    def without_secrets(self) -> Gate:
        """The same for a request that carries nothing of the connection's."""
        return Gate(map(str, self.allowed)) if self.secrets else self

    def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host that may be reached, in the resolver's order. GateError when there are none."""
        if not host or not host.isprintable():  # the C library ends a name at its first NUL
            raise GateError("unresolved", "There is no host of that name.")
        for name, entries in self.secrets.items():
            if not hosts.allowed(entries, host, port):
                raise GateError("secret_host", f'The secret "{name}" may not be sent to {host}.')
        if self.secrets:
            host = hosts.normal(host)  # what was compared is what is resolved
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise GateError("unresolved", f"There is no host {host}.") from None
        seen = dict.fromkeys(str(item[4][0]).partition("%")[0] for item in found)
        fit = [one for one in seen if self.allows(ipaddress.ip_address(one))]
        if not fit:
            raise GateError("not_allowed", f"{host} lies in a network that may not be reached from here.")
        return fit[: limits.TARGET_ADDRESSES]

    def allows(self, address: Address) -> bool:
        """Whether an address may be reached."""
        address = getattr(address, "ipv4_mapped", None) or address  # the kernel takes the two for the same
        named = [one for one in self.allowed if address.version == one.version and address in one]
        kept = next((one for one in _METADATA if address.version == one.version and address in one), None)
        if kept is not None:
            return any(one.prefixlen >= kept.prefixlen for one in named)
        return bool(named) or _is_public(address)

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """A socket opened to the first of the host's addresses that answers, within `timeout` seconds for all of
        them. GateError when none does."""
        until = time.monotonic() + timeout
        reason, said = "unreachable", ""
        for address in self.addresses(host, port):
            left = until - time.monotonic()
            if left <= 0:
                break
            try:
                return socket.create_connection((address, port), left)
            except TimeoutError:
                reason, said = "timeout", f"{host}:{port} did not answer within {timeout:g} s."
            except ConnectionRefusedError:
                reason, said = "refused", f"Nobody listens on {host}:{port}."
            except OSError as error:
                reason, said = "unreachable", f"{host}:{port} cannot be reached: {error.strerror or error}."
        raise GateError(reason, said or f"{host}:{port} did not answer within {timeout:g} s.")


def _is_public(address: Address) -> bool:
    """Whether an address is on the public internet, and of one machine there."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return _is_public(ipaddress.IPv4Address(int(address) & _IPV4))
        if address not in _UNICAST:
            return False
    closed = any(address.version == one.version and address in one for one in (*_DETOURS, *_METADATA))
    return address.is_global and not address.is_multicast and not closed

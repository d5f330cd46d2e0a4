"""Address guard for all connections that users' settings lead to.

Names are resolved here, and the connection is opened to the address that was checked, so a name that changes
in between cannot bypass the check. Loopback, private, link-local, metadata and other special networks are
blocked unless the operator allows them (`TARGET_NETWORKS`).
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from webapp import limits
from webapp.net import urls
from webapp.net.addresses import Address, Network

NO_SECRETS: Final[Mapping[str, Sequence[str]]] = MappingProxyType({})

# Metadata services of cloud providers, which return credentials: blocked even inside an allowed network,
# unless the allowed network is one of these or a part of it. Link-local; Azure's WireServer; AWS over IPv6;
# Alibaba; Oracle; Google over IPv6.
_METADATA_NETWORKS: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(item)
    for item in (
        "169.254.0.0/16", "fe80::/10", "168.63.129.16/32", "fd00:ec2::/32", "100.100.100.200/32", "192.0.0.192/32",
        "fd20:ce::/32",
    )
)  # fmt: skip
# The only range from which IPv6 addresses are assigned (IANA, "IPv6 Global Unicast Address Assignments"). It
# excludes site-local, IPv4-compatible, IPv4-translated and segment routing addresses.
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
# Inside that range, or not special in the standard library, but leading elsewhere: 6to4 and its relays (RFC
# 7526), Teredo (RFC 4380), documentation (RFC 9637).
_TRANSITION_NETWORKS: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(item) for item in ("2002::/16", "192.88.99.0/24", "2001::/32", "3fff::/20")
)
_NAT64: Final = ipaddress.IPv6Network(
    "64:ff9b::/96"
)  # RFC 6052: IPv4 addresses for machines that only have IPv6
_IPV4: Final = 0xFFFFFFFF


class GateError(Exception):
    """A connection is not allowed or failed.

    `reason`: not_allowed, secret_host, unresolved, refused, timeout, unreachable.
    """

    def __init__(self, reason: str, message: str) -> None:
        self.reason, self.message = reason, message
        super().__init__(message)


class Gate:
    """Checks addresses.

    `allowed` are networks that the operator allows in addition to the public internet. `secrets` are the
    secrets that a connection sends, by name, with the hosts that each may be sent to; connections to other
    hosts are rejected.
    """

    def __init__(
        self, allowed: Iterable[str] = (), secrets: Mapping[str, Sequence[str]] = NO_SECRETS
    ) -> None:
        self.allowed: tuple[Network, ...] = tuple(ipaddress.ip_network(network) for network in allowed)
        self.secrets = secrets

    def without_secrets(self) -> Gate:
        """Return a gate for a request that contains no secrets of the connection."""
        return Gate(map(str, self.allowed)) if self.secrets else self

    def addresses(self, host: str, port: int) -> list[str]:
        """Return the allowed addresses of a host, in the resolver's order. Raises GateError if there are
        none."""
        if not host or not host.isprintable():  # the C library ends a name at the first NUL
            raise GateError("unresolved", "The host name is not valid.")
        for name, entries in self.secrets.items():
            if not urls.is_allowed(entries, host, port):
                raise GateError("secret_host", f'The secret "{name}" must not be sent to {host}.')
        if self.secrets:
            host = urls.normalize_host(host)  # resolve exactly the name that was compared
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise GateError("unresolved", f"The host {host} could not be resolved.") from None
        seen = dict.fromkeys(str(item[4][0]).partition("%")[0] for item in found)
        allowed = [address for address in seen if self.allows(ipaddress.ip_address(address))]
        if not allowed:
            raise GateError("not_allowed", f"{host} is in a network to which connections are not allowed.")
        return allowed[: limits.TARGET_ADDRESSES]

    def allows(self, address: Address) -> bool:
        """Return whether connections to an address are allowed."""
        address = getattr(address, "ipv4_mapped", None) or address  # the kernel treats both the same
        allowed_networks = [
            network for network in self.allowed if address.version == network.version and address in network
        ]
        metadata_network = next(
            (
                network
                for network in _METADATA_NETWORKS
                if address.version == network.version and address in network
            ),
            None,
        )
        if metadata_network is not None:
            return any(network.prefixlen >= metadata_network.prefixlen for network in allowed_networks)
        return bool(allowed_networks) or _is_public(address)

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """Return a socket to the first of the host's addresses that accepts a connection.

        `timeout` is in seconds for all addresses together. Raises GateError if none accepts.
        """
        deadline = time.monotonic() + timeout
        reason, message = "unreachable", ""
        for address in self.addresses(host, port):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            try:
                return socket.create_connection((address, port), left)
            except TimeoutError:
                reason, message = "timeout", f"{host}:{port} did not respond within {timeout:g} s."
            except ConnectionRefusedError:
                reason, message = "refused", f"No server is listening on {host}:{port}."
            except OSError as error:
                reason, message = (
                    "unreachable",
                    f"{host}:{port} could not be reached: {error.strerror or error}.",
                )
        raise GateError(reason, message or f"{host}:{port} did not respond within {timeout:g} s.")


def _is_public(address: Address) -> bool:
    """Return whether an address belongs to a single machine on the public internet."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return _is_public(ipaddress.IPv4Address(int(address) & _IPV4))
        if address not in _UNICAST:
            return False
    is_special = any(
        address.version == network.version and address in network
        for network in (*_TRANSITION_NETWORKS, *_METADATA_NETWORKS)
    )
    return address.is_global and not address.is_multicast and not is_special

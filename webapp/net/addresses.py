"""Determine the client address and the scheme of a request behind reverse proxies.

Forwarded headers are only trusted from peers in TRUSTED_PROXIES, and are evaluated from the right: each
trusted proxy vouches for the hop before it, and the first untrusted hop is the client. Headers of other peers
are ignored.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

# Programs of scenario runs call the API on loopback from this address (jobs/sandbox/network_policy.py binds their
# sockets to it), so that they can be distinguished from users and services on this machine. Any other address
# in 127.0.0.0/8 would do.
SCENARIO_RUN_ADDRESS: Final = "127.82.117.110"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a request. `forwarded`: it has forwarding headers that no trusted proxy vouches for."""

    address: str
    scheme: str
    forwarded: bool


class Proxies:
    """The trusted proxies: networks, and the word `unix` for peers that connect over a Unix socket."""

    def __init__(self, trusted: Iterable[str]) -> None:
        names = tuple(trusted)
        self._unix = "unix" in names
        self._networks: tuple[Network, ...] = tuple(ipaddress.ip_network(n) for n in names if n != "unix")

    def trusts(self, peer: str) -> bool:
        """Return whether a peer's forwarding headers are trusted. A peer over a Unix socket has no address.

        A scenario run's program is never trusted, even if its address is in a trusted network.
        """
        if not peer:
            return self._unix
        if is_scenario_run(peer):
            return False
        address = parse(peer)
        return address is not None and any(
            address.version == network.version and address in network for network in self._networks
        )

    def origin(self, peer: str, scheme: str, forwarded_for: str, forwarded_proto: str) -> Origin:
        """Return the client of a request, from the socket's peer and the X-Forwarded-For and -Proto headers."""
        if not self.trusts(peer):
            return Origin(_normalized(peer), scheme, bool(forwarded_for or forwarded_proto))
        client = peer
        for hop in reversed([part.strip() for part in forwarded_for.split(",") if part.strip()]):
            address = parse(hop)
            if address is None:
                break  # invalid: the hop that wrote it is the last known one
            client = str(address)
            if not self.trusts(client):
                break
        proto = forwarded_proto.split(",")[-1].strip().casefold()
        return Origin(_normalized(client), proto if proto in ("http", "https") else scheme, False)


@lru_cache(maxsize=4096)
def parse(text: str) -> Address | None:
    """Parse an address. IPv4-mapped addresses become IPv4, ports and brackets are removed. None if it is not
    an address."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


def _normalized(peer: str) -> str:
    address = parse(peer)
    return str(address) if address else peer


def is_scenario_run(peer: str) -> bool:
    """Return whether programs of scenario runs on this machine call the API from this address."""
    address = parse(peer)
    return address is not None and str(address) == SCENARIO_RUN_ADDRESS


def is_loopback(peer: str) -> bool:
    """Return whether an address is a loopback address."""
    address = parse(peer)
    return address is not None and address.is_loopback

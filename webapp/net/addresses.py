"""Whose address a request came from, and whether it came by TLS, when proxies stand before us.

Forwarded headers are believed only from peers named in TRUSTED_PROXIES, and read from the right: each trusted
hop vouches for the one before it, the first untrusted one is the client. Anybody else's headers are ignored.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

# Programs of runs call an API on loopback from this address (jobs/sandbox/network.py binds their sockets to it), so
# that they can be told apart from people and services of this machine. Any other of 127.0.0.0/8 would do.
RUNS: Final = "127.82.117.110"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request really came from. `forwarded`: it carried forwarding headers nobody vouches for."""

    address: str
    scheme: str
    forwarded: bool


class Proxies:
    """The trusted ones: networks, and the word `unix` for a peer that came by a socket file."""

    def __init__(self, trusted: Iterable[str]) -> None:
        names = tuple(trusted)
        self._unix = "unix" in names
        self._networks: tuple[Network, ...] = tuple(ipaddress.ip_network(n) for n in names if n != "unix")

    def trusts(self, peer: str) -> bool:
        """Whether a peer's forwarding headers count. A peer by a socket file has no address. A program of a run is
        never trusted, also where its address is in a trusted network."""
        if not peer:
            return self._unix
        if is_run(peer):
            return False
        address = parse(peer)
        return address is not None and any(
            address.version == network.version and address in network for network in self._networks
        )

    def origin(self, peer: str, scheme: str, forwarded_for: str, forwarded_proto: str) -> Origin:
        """The client of a request, from its socket's peer and its X-Forwarded-For and -Proto headers."""
        if not self.trusts(peer):
            return Origin(_plain(peer), scheme, bool(forwarded_for or forwarded_proto))
        client = peer
        for hop in reversed([part.strip() for part in forwarded_for.split(",") if part.strip()]):
            address = parse(hop)
            if address is None:
                break  # garbage: the hop that wrote it is the last one known
            client = str(address)
            if not self.trusts(client):
                break
        proto = forwarded_proto.split(",")[-1].strip().casefold()
        return Origin(_plain(client), proto if proto in ("http", "https") else scheme, False)


@lru_cache(maxsize=4096)
def parse(text: str) -> Address | None:
    """An address, IPv4-mapped ones as IPv4; a port or brackets are taken off. None for anything else."""
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


def _plain(peer: str) -> str:
    address = parse(peer)
    return str(address) if address else peer


def is_run(peer: str) -> bool:
    """Whether an address is the one from which programs of runs on this machine call the API."""
    address = parse(peer)
    return address is not None and str(address) == RUNS


def is_loopback(peer: str) -> bool:
    """Whether an address is this machine's own loopback."""
    address = parse(peer)
    return address is not None and address.is_loopback

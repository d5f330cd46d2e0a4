"""Where connections may lead: the address guard of everything that a user's settings make this service reach.

Names are resolved here and the connection is made to the address that was judged, so that a name which changes its
mind between the two reaches nothing. Loopback, private, link-local, metadata and other special networks are closed
unless the operator allows them (`TARGET_NETWORKS`).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

from webapp.net.addresses import Address, Network


class GateError(Exception):
    """The way is closed or not there. `reason`: not_allowed, unresolved, refused, timeout, unreachable."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason, self.message = reason, message
        super().__init__(message)


class Gate:
    """Judges addresses. `allowed` are networks the operator opened beside the public internet."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self.allowed: tuple[Network, ...] = tuple(ipaddress.ip_network(one) for one in allowed)

    def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host that may be reached, in the resolver's order. GateError when there are none."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise GateError("unresolved", f"There is no host {host}.") from None
        seen = dict.fromkeys(str(item[4][0]).partition("%")[0] for item in found)
        fit = [one for one in seen if self.allows(ipaddress.ip_address(one))]
        if not fit:
            raise GateError("not_allowed", f"{host} lies in a network that may not be reached from here.")
        return fit

    def allows(self, address: Address) -> bool:
        """Whether an address may be reached."""
        mapped = getattr(address, "ipv4_mapped", None)
        address = mapped or address
        if any(address.version == one.version and address in one for one in self.allowed):
            return True
        return address.is_global and not address.is_multicast

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """A socket opened to the first of the host's addresses that answers. GateError when none does."""
        reason, said = "unreachable", ""
        for address in self.addresses(host, port):
            try:
                return socket.create_connection((address, port), timeout)
            except TimeoutError:
                reason, said = "timeout", f"{host}:{port} did not answer within {timeout:g} s."
            except ConnectionRefusedError:
                reason, said = "refused", f"Nobody listens on {host}:{port}."
            except OSError as error:
                reason, said = "unreachable", f"{host}:{port} cannot be reached: {error.strerror or error}."
        raise GateError(reason, said)

"""Lists of hosts that a secret may be sent to: `api.example.com`, `*.example.com`, `10.0.0.5:8443`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

from webapp import limits

_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")


def normal(host: str) -> str:
    """Return a host as it is compared and resolved: ASCII, lower case, without a final dot.

    Raises ValueError if it is not a host.
    """
    host = host.strip("[]").removesuffix(".").lower()
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not host.isascii():
        try:
            host = host.encode("idna").decode().lower()
        except UnicodeError:
            raise ValueError("this is not a host name") from None
    if len(host) > limits.HOST_CHARS or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise ValueError("this is not a host name")
    return host


def checked(entry: str) -> str:
    """Return an entry of a list as it is stored. Raises ValueError with a message for users."""
    text = entry.strip()
    if "://" in text or "/" in text or "@" in text:
        raise ValueError("enter only the host, without https:// and without a path: api.example.com")
    host, port = _apart(text)
    if port and (not _PORT.fullmatch(port) or int(port) > 65_535):
        raise ValueError("a port is a number from 1 to 65535")
    star = host.startswith("*.")
    try:
        found = normal(host[2:] if star else host)
    except ValueError:
        raise ValueError("this is not a host: enter one such as api.example.com or *.example.com") from None
    if star and ("." not in found or _is_address(found)):
        raise ValueError("a wildcard must stand for the subdomains of a domain, such as *.example.com")
    shown = f"[{found}]" if ":" in found and port else found
    return f"{'*.' if star else ''}{shown}{':' + port if port else ''}"


def matches(entry: str, host: str, port: int) -> bool:
    """Return whether a stored entry matches a host and port. Without a port it matches all ports."""
    known, wanted = _apart(entry)
    if wanted and int(wanted) != port:
        return False
    try:
        found = normal(host)
    except ValueError:
        return False
    return found.endswith(known[1:]) if known.startswith("*.") else found == known


def allowed(entries: Iterable[str], host: str, port: int) -> bool:
    """Return whether an entry of a list matches a host and port."""
    return any(matches(entry, host, port) for entry in entries)


def _apart(text: str) -> tuple[str, str]:
    """Split host and port. IPv6 addresses are in brackets."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":")
    if text.count(":") > 1:  # an IPv6 address without a port
        return text, ""
    host, _, port = text.partition(":")
    return host, port


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

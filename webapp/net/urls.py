"""URLs that users enter: validate and display them; and lists of hosts that a secret may be sent to.

A list has entries such as `api.example.com`, `*.example.com`, `10.0.0.5:8443`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from webapp import limits

PORTS: Final = {"http": 80, "https": 443}
_NUMERIC_LABEL: Final = re.compile(
    r"[0-9]+|0[xX][0-9a-fA-F]*"
)  # WHATWG URL: a host that ends with a number is an IPv4 address

_FORBIDDEN_IN_HOSTS: Final = re.compile(
    r"[ \"%<>^`|,;()]|^\.|\.\."
)  # WHATWG URL, "forbidden domain code point", and empty labels
_BRACKETED: Final = re.compile(r"\[[^\]]+\](:[0-9]*)?")


def display_url(url: str) -> str:
    """Return a URL for messages and logs: without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "an invalid URL"
    return f"{parts.scheme}://{host}{parts.path}"[: limits.PUSH_KEY_CHARS]


def url_error(url: str) -> str:
    """Return why a URL is not allowed, without repeating it; "" if it is allowed."""
    if len(url) > limits.HTTP_URL_CHARS:
        return f"A URL must have at most {limits.HTTP_URL_CHARS} characters."
    if not url.isprintable() or url != url.strip() or "\\" in url:
        return "A URL must not contain line breaks, backslashes, or leading or trailing spaces."
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "This is not a valid URL. Check the host and the port."
    if parts.scheme not in PORTS:
        return "A URL must start with https:// or http://."
    if not host or port == 0:
        return "This URL has no host, or port 0."
    if "@" in parts.netloc:
        return "Enter the user and the password in the authentication settings, not in the URL."
    if _FORBIDDEN_IN_HOSTS.search(host) or ("[" in parts.netloc and not _BRACKETED.fullmatch(parts.netloc)):
        return "The host has characters that host names cannot have."
    last = host.rstrip(".").rpartition(".")[2]
    if _NUMERIC_LABEL.fullmatch(last) and ":" not in host:
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            return "Write an IPv4 address as four numbers, such as 192.0.2.1."
    return ""


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a valid URL, to which credentials are bound."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or PORTS[parts.scheme]


# --- Lists of hosts -----------------------------------------------------------------------------------------

_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")


def normalize_host(host: str) -> str:
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


def check_host_entry(entry: str) -> str:
    """Return an entry of a list as it is stored. Raises ValueError with a message for users."""
    text = entry.strip()
    if "://" in text or "/" in text or "@" in text:
        raise ValueError("enter only the host, without https:// and without a path: api.example.com")
    host, port = _split_port(text)
    if port and (not _PORT.fullmatch(port) or int(port) > 65_535):
        raise ValueError("a port is a number from 1 to 65535")
    is_wildcard = host.startswith("*.")
    try:
        found = normalize_host(host[2:] if is_wildcard else host)
    except ValueError:
        raise ValueError("this is not a host: enter one such as api.example.com or *.example.com") from None
    if is_wildcard and ("." not in found or _is_address(found)):
        raise ValueError("a wildcard can only stand for the subdomains of a domain, such as *.example.com")
    bracketed = f"[{found}]" if ":" in found and port else found
    return f"{'*.' if is_wildcard else ''}{bracketed}{':' + port if port else ''}"


def matches(entry: str, host: str, port: int) -> bool:
    """Return whether a stored entry matches a host and port. Without a port it matches all ports."""
    entry_host, entry_port = _split_port(entry)
    if entry_port and int(entry_port) != port:
        return False
    try:
        found = normalize_host(host)
    except ValueError:
        return False
    return found.endswith(entry_host[1:]) if entry_host.startswith("*.") else found == entry_host


def is_allowed(entries: Iterable[str], host: str, port: int) -> bool:
    """Return whether an entry of a list matches a host and port."""
    return any(matches(entry, host, port) for entry in entries)


def _split_port(text: str) -> tuple[str, str]:
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

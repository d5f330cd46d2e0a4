"""Validate and display URLs that users enter."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from webapp import limits

PORTS: Final = {"http": 80, "https": 443}
_NUMBER: Final = re.compile(
    r"[0-9]+|0[xX][0-9a-fA-F]*"
)  # WHATWG URL: a host that ends with a number is an IPv4 address

_NOT_IN_HOSTS: Final = re.compile(
    r"[ \"%<>^`|,;()]|^\.|\.\."
)  # WHATWG URL, "forbidden domain code point", and empty labels
_BRACKETED: Final = re.compile(r"\[[^\]]+\](:[0-9]*)?")


def shown(url: str) -> str:
    """Return a URL for messages and logs: without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "an invalid URL"
    return f"{parts.scheme}://{host}{parts.path}"[: limits.PUSH_KEY_CHARS]


def fault(url: str) -> str:
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
    if _NOT_IN_HOSTS.search(host) or ("[" in parts.netloc and not _BRACKETED.fullmatch(parts.netloc)):
        return "The host has characters that host names cannot have."
    last = host.rstrip(".").rpartition(".")[2]
    if _NUMBER.fullmatch(last) and ":" not in host:
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            return "Write an IPv4 address as four numbers, such as 192.0.2.1."
    return ""


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a valid URL, to which credentials are bound."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or PORTS[parts.scheme]

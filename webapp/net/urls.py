"""URLs that users give: which of them may be connected to, and how they are shown."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from webapp import limits

PORTS: Final = {"http": 80, "https": 443}
_NUMBER: Final = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")  # WHATWG URL: a host that ends so is an IPv4 address


def shown(url: str) -> str:
    """A URL for people and logs: without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "a URL that cannot be read"
    return f"{parts.scheme}://{host}{parts.path}"[: limits.PUSH_KEY_CHARS]


def fault(url: str) -> str:
    """Why a URL may not be connected to, in a sentence that does not repeat it; empty where it may."""
    if len(url) > limits.HTTP_URL_CHARS:
        return f"A URL has at most {limits.HTTP_URL_CHARS} characters."
    if not url.isprintable() or url != url.strip() or "\\" in url:
        return "A URL holds neither line breaks nor backslashes nor spaces around it."
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "This is no URL: check the host and the port."
    if parts.scheme not in PORTS:
        return "A URL begins with https:// or http://."
    if not host or port == 0:
        return "This URL names no host, or port 0."
    if "@" in parts.netloc:
        return "Put the user and the password into the authentication, not into the URL."
    last = host.rstrip(".").rpartition(".")[2]
    if _NUMBER.fullmatch(last) and ":" not in host:
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            return "Write an address as four numbers, like 192.0.2.1."
    return ""


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of a URL that has no `fault`: what credentials are given for."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or PORTS[parts.scheme]

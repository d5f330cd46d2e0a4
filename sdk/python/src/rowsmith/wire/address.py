"""The address of the service, and the proxy for it."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional
from urllib.parse import quote, unquote, urlencode, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]  # not in typeshed

from rowsmith.error import NotFound, ServiceError


@dataclass(frozen=True)
class Address:
    """An origin with an optional path prefix (`""` or `/rowsmith`)."""

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @property
    def netloc(self) -> str:
        """Host and port as in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = {"http": 80, "https": 443}[self.scheme]
        return host if self.port == usual else f"{host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether the host is this machine."""
        name = self.host.lower()
        if name == "localhost" or name.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.prefix}"


def parse(url: str) -> Address:
    """Parse a URL. Raise ServiceError `not_configured` if it is invalid or contains a password."""
    parts = urlsplit(url.strip())
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        raise not_configured(f"{url!r} is not a URL. Example: https://rowsmith.example.com")
    if parts.username is not None or parts.password is not None:
        raise not_configured(
            "The URL must not contain a user name or password. The key is sent separately."
        )
    if parts.query or parts.fragment:
        raise not_configured(f"{url!r} has a query or a fragment. Use the URL without them.")
    return Address(
        parts.scheme, parts.hostname, port or {"http": 80, "https": 443}[parts.scheme], parts.path.rstrip("/")
    )


def not_configured(message: str) -> ServiceError:
    """Return the error for a configuration problem, which is raised before anything is sent."""
    return ServiceError("not_configured", message=message)


@dataclass(frozen=True)
class Proxy:
    """A proxy and its credentials."""

    address: Address
    authorization: Optional[str] = None


def proxy_for(address: Address, proxies: Optional[Mapping[str, str]] = None) -> Optional[Proxy]:
    """Return the proxy of the environment (`http_proxy`, `https_proxy`, `no_proxy`), or None for a direct
    connection."""
    found = getproxies_environment() if proxies is None else dict(proxies)
    url = found.get(address.scheme) or found.get("all")
    if not url or proxy_bypass_environment(address.netloc, {"no": found.get("no", "")}):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise not_configured(f"The proxy in the environment is not supported: {parts.scheme}://...")
    where = Address(parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}[parts.scheme])
    if parts.username is None:
        return Proxy(where)
    told = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return Proxy(where, "Basic " + base64.b64encode(told).decode())


def path_of(template: str, parts: Mapping[str, object]) -> str:
    """Insert percent-encoded parts into a path: `/things/{id}`. A part whose name ends in `:path` keeps its
    slashes.

    Parts must not be empty, `.` or `..`, because a different path would be called.
    """
    out = template
    for name, value in parts.items():
        text = str(value)
        if name == "name" and "{name:path}" in out:
            pieces = text.split("/")
            made = "/".join(_part(name, piece) for piece in pieces)
            out = out.replace("{name:path}", made)
        else:
            out = out.replace("{" + name + "}", _part(name, text))
    return out


def _part(name: str, text: str) -> str:
    if text in ("", ".", ".."):
        raise NotFound("not_found", message=f"{text!r} is not a valid value of {name}.")
    return quote(text, safe="")


def query_of(query: Mapping[str, object]) -> str:
    """Return a query string such as `?a=b`, without None values; booleans become `true` and `false`."""
    told = [
        (name, str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in query.items()
        if value is not None
    ]
    return "?" + urlencode(told) if told else ""

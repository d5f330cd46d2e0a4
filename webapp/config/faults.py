"""Weak or contradictory settings: all are reported together at the start, each with a solution."""

from __future__ import annotations

import base64
import binascii
import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from webapp import limits
from webapp.config.values import mail_faults, oidc_faults

if TYPE_CHECKING:
    from webapp.config import Settings

DATABASE_SCHEMES: Final = ("sqlite", "postgresql", "postgresql+psycopg", "postgres")
REDIS_SCHEMES: Final = ("redis", "rediss", "unix")
STORAGE_SCHEMES: Final = ("file", "s3")


def is_loopback(host: str) -> bool:
    """Return whether a host name or address in a URL refers to this machine."""
    host = host.strip("[]").casefold()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def faults(s: Settings) -> list[str]:
    """Return the errors in the settings."""
    out = [*_key_faults(s), *_url_faults(s), *_tls_faults(s), *mail_faults(s), *_oidc_faults(s)]
    if s.hosts > 1:
        if s.is_sqlite:
            out.append(
                "DATABASE_URL is SQLite, which supports one machine only; ROWSMITH_HOSTS above 1 needs PostgreSQL."
            )
        if urlsplit(s.redis_url).scheme == "unix" or is_loopback(urlsplit(s.redis_url).hostname or ""):
            out.append(
                "REDIS_URL is on this machine; with ROWSMITH_HOSTS above 1 every machine must reach it."
            )
        if s.storage_url.startswith("file:"):
            out.append("STORAGE_URL is a local folder; with ROWSMITH_HOSTS above 1 it must be s3://.")
        if not s.public_url:
            out.append(
                "PUBLIC_URL is not set; with ROWSMITH_HOSTS above 1 no host's own address stands for all."
            )
    return out


def _oidc_faults(s: Settings) -> list[str]:
    try:
        host = urlsplit(s.oidc_issuer).hostname or ""
    except ValueError:
        host = ""
    return oidc_faults(s, is_loopback(host))


def _key_faults(s: Settings) -> list[str]:
    out = []
    least = limits.SECRET_KEY_MIN_CHARS
    if not s.secret_key:
        out.append(f"SECRET_KEY is not set: give at least {least} random characters.")
    elif len(s.secret_key) < least:
        out.append(f"SECRET_KEY has {len(s.secret_key)} characters; it must have at least {least}.")
    elif len(set(s.secret_key)) < 8:
        out.append("SECRET_KEY repeats a few characters; it must be random.")
    if s.metrics_token and len(s.metrics_token) < least:
        out.append(
            f"ROWSMITH_METRICS_TOKEN has {len(s.metrics_token)} characters; it must have at least {least}."
        )
    for number, key in enumerate(s.vault_keys, 1):
        if not _is_fernet_key(key):
            out.append(f"VAULT_KEYS: key {number} is not a Fernet key (32 bytes in URL-safe base64).")
    return out


def _is_fernet_key(text: str) -> bool:
    try:
        return len(base64.urlsafe_b64decode(text.encode())) == 32
    except (ValueError, binascii.Error):
        return False


def _url_faults(s: Settings) -> list[str]:
    out = []
    for name, url, schemes in (
        ("DATABASE_URL", s.database_url, DATABASE_SCHEMES),
        ("REDIS_URL", s.redis_url, REDIS_SCHEMES),
        ("STORAGE_URL", s.storage_url, STORAGE_SCHEMES),
    ):
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            out.append(f"{name} is not a URL.")
            continue
        if parts.scheme not in schemes:
            wanted = ", ".join(f"{scheme}://" for scheme in schemes)
            out.append(f"{name} must begin with one of {wanted}.")
        elif parts.scheme in ("postgresql", "postgresql+psycopg", "postgres") and not parts.path.strip("/"):
            out.append(f"{name} names no database.")
        elif parts.scheme == "s3" and not parts.netloc:
            out.append(f"{name} names no bucket.")
        elif parts.scheme == "file" and (parts.netloc not in ("", "localhost") or not parts.path):
            out.append(f"{name} must be file:// and an absolute path.")
    if s.database_url in ("sqlite://", "sqlite:///:memory:"):
        out.append("DATABASE_URL is SQLite in memory, which web and worker cannot share; name a file.")
    return out + _public_url_faults(s) + _origin_faults("RUN_API_URL", s.run_api_url)


def _origin_faults(name: str, url: str) -> list[str]:
    if not url:
        return []
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return [f"{name} is not a URL."]
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return [f"{name} must be http(s)://host."]
    if parts.path.strip("/") or parts.query or parts.fragment:
        return [f"{name} must be an origin, without a path."]
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        return [f"{name} is plain http; outside loopback only https is served."]
    return []


def _public_url_faults(s: Settings) -> list[str]:
    if found := _origin_faults("PUBLIC_URL", s.public_url):
        return found
    parts = urlsplit(s.public_url)
    if parts.scheme == "https" and not s.tls_cert and not s.trusted_proxies:
        return ["PUBLIC_URL is https, but neither TLS_CERT nor TRUSTED_PROXIES is set."]
    return []


def _tls_faults(s: Settings) -> list[str]:
    if bool(s.tls_cert) != bool(s.tls_key):
        there, missing = ("TLS_CERT", "TLS_KEY") if s.tls_cert else ("TLS_KEY", "TLS_CERT")
        return [f"{there} is set without {missing}; TLS needs both."]
    return [
        f"{name}: there is no file {path}."
        for name, path in (("TLS_CERT", s.tls_cert), ("TLS_KEY", s.tls_key))
        if path and not Path(path).is_file()
    ]

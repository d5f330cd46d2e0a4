"""Convert the text of a setting to its value, and check the settings together.

Each function that converts raises ValueError with a description of valid values. The checks find what is insecure or
contradictory: in general, of mail, and of OpenID Connect.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.utils import parseaddr
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from webapp import limits

if TYPE_CHECKING:
    from webapp.config import Settings


SANDBOXES: Final = ("auto", "bubblewrap", "landlock", "plain")
LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
LOG_FORMATS: Final = ("text", "json")
CLAMD_PORT: Final = 3310  # the TCPSocket of clamd.conf(5)


@dataclass(frozen=True, slots=True)
class Scanner:
    """The address of clamd: a socket in the file system, or (`path` "") a port of a host."""

    path: str
    host: str
    port: int


def plain(text: str) -> str:
    """Return the text unchanged."""
    return text


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of whole numbers within two bounds."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError(f"must be a whole number, not {text!r}") from None
        if not low <= number <= high:
            raise ValueError(f"must be from {low} to {high}, not {number}")
        return number

    return parse


def switch(text: str) -> bool:
    """Parse true or false, also written as 1, yes, on, 0, no, off."""
    value = text.strip().casefold()
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"must be true or false, not {text!r}")


def words(text: str) -> tuple[str, ...]:
    """Split a text at commas and whitespace."""
    return tuple(part for part in text.replace(",", " ").split() if part)


def networks(text: str, keyword: str = "unix") -> tuple[str, ...]:
    """Parse addresses and networks, or a keyword."""
    found = []
    for part in words(text):
        if part == keyword:
            found.append(part)
            continue
        try:
            found.append(str(ipaddress.ip_network(part)))
        except ValueError:
            raise ValueError(
                f"must list addresses, networks or the word {keyword}; {part!r} is invalid"
            ) from None
    return tuple(found)


def target_networks(text: str) -> tuple[str, ...]:
    """Parse networks, or the word none."""
    found = networks(text, "none")
    if "none" in found and len(found) > 1:
        raise ValueError("must be networks or the word none")
    return found


def sandbox(text: str) -> str:
    """Parse the sandbox of programs."""
    if text not in SANDBOXES:
        raise ValueError(f"must be one of {', '.join(SANDBOXES)}, not {text!r}")
    return text


def level(text: str) -> str:
    """Parse the log level."""
    if text.upper() not in LOG_LEVELS:
        raise ValueError(f"must be one of {', '.join(LOG_LEVELS)}, not {text!r}")
    return text.upper()


def one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    """Return a parser of one of several words, ignoring case."""

    def parse(text: str) -> str:
        if text.casefold() not in words:
            raise ValueError(f"must be one of {', '.join(words)}, not {text!r}")
        return text.casefold()

    return parse


def log_format(text: str) -> str:
    """Parse the format of log lines."""
    if text.casefold() not in LOG_FORMATS:
        raise ValueError(f"must be one of {', '.join(LOG_FORMATS)}, not {text!r}")
    return text.casefold()


def scanner(text: str) -> Scanner:
    """Parse the address of the virus scanner."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("is not a URL") from None
    is_valid = parts.scheme == "clamd" and bool(host) != bool(parts.path.strip("/"))
    if not is_valid or parts.query or parts.fragment or parts.username:
        raise ValueError("must be clamd://host:3310 or clamd:///run/clamav/clamd.ctl")
    return Scanner("" if host else parts.path, host, CLAMD_PORT if port is None else port)


# --- Mail ---------------------------------------------------------------------------------------------------

PORTS: Final = {
    "smtp": 587,
    "smtps": 465,
}  # RFC 6409: submission; RFC 8314: submission by TLS from the first byte
TLS: Final = ("on", "off")


@dataclass(frozen=True, slots=True)
class MailServer:
    """The mail server. `implicit`: TLS from the first byte, else STARTTLS if `tls` is set. `ca`: a PEM file of
    certificate authorities in addition to the system's, or ""."""

    host: str
    port: int
    user: str
    password: str
    implicit: bool
    tls: bool
    ca: str

    def __repr__(self) -> str:
        return f"MailServer({self.host}:{self.port})"  # the password must not be logged


def mail_server(url: str) -> MailServer:
    """Parse SMTP_URL. ValueError with a message that contains nothing of the URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("is not a URL.") from None
    if parts.scheme not in PORTS:
        raise ValueError("must begin with smtp:// or smtps://.")
    if not host:
        raise ValueError("has no host of a mail server.")
    if parts.path.strip("/") or parts.fragment:
        raise ValueError("must be smtp(s)://user:password@host:port, without a path.")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := set(options) - {"tls", "ca"}:
        raise ValueError(f"has an unknown option: {min(unknown)}. The options are tls and ca.")
    tls = options.get("tls", "on")
    if tls not in TLS:
        raise ValueError("has an option tls that is neither on nor off.")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if bool(user) != bool(password):
        raise ValueError("has a user without a password, or a password without a user.")
    if not f"{user}{password}".isprintable():
        raise ValueError("has a user or a password with characters that cannot be sent.")
    ca = options.get("ca", "")
    if tls == "off" and parts.scheme == "smtps":
        raise ValueError("is smtps:// with tls=off; use one or the other.")
    if tls == "off" and user:
        raise ValueError("has tls=off and a password, which would be sent unencrypted.")
    if tls == "off" and ca:
        raise ValueError("has tls=off and a file of certificate authorities; use one or the other.")
    if ca and not Path(ca).is_file():
        raise ValueError(f"has a file of certificate authorities that does not exist: {ca}.")
    number = PORTS[parts.scheme] if port is None else port
    return MailServer(host, number, user, password, parts.scheme == "smtps", tls == "on", ca)


def sender(text: str) -> Address:
    """Parse MAIL_FROM: an address, or `Name <address>`. ValueError with a message."""
    if not text.isprintable():
        raise ValueError("must be one line.")
    name, address = parseaddr(text)
    try:
        result = Address(display_name=name, addr_spec=address)
    except (ValueError, IndexError, HeaderParseError):
        raise ValueError("is not an address such as rowsmith@example.org.") from None
    if not result.username or not result.domain:
        raise ValueError("is not an address such as rowsmith@example.org.")
    return result


def mail_faults(s: Settings) -> list[str]:
    """Return the errors in the mail settings; none if mail is not configured."""
    result = [
        *_value_faults("SMTP_URL", mail_server, s.smtp_url),
        *_value_faults("MAIL_FROM", sender, s.mail_from),
    ]
    if bool(s.smtp_url) != bool(s.mail_from):
        present, missing = ("SMTP_URL", "MAIL_FROM") if s.smtp_url else ("MAIL_FROM", "SMTP_URL")
        result.append(f"{present} is set without {missing}; e-mail needs both.")
    if s.smtp_url and not s.vault_keys:
        result.append("SMTP_URL is set without VAULT_KEYS: waiting e-mails are stored encrypted.")
    if s.smtp_url and not s.public_url and not s.is_local:
        result.append("SMTP_URL is set without PUBLIC_URL, which links in e-mails begin with.")
    return result


def _value_faults(name: str, convert: Any, text: str) -> list[str]:
    if not text:
        return []
    try:
        convert(text)
    except ValueError as error:
        return [f"{name} {error}"]
    return []


# --- OpenID Connect -----------------------------------------------------------------------------------------

NEW_PEOPLE: Final = ("invited", "viewer", "editor")
SECOND_FACTOR: Final = ("ask", "trust")
_DOMAIN: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(\.(?!-)[a-z0-9-]{1,63})+")


def oidc_faults(s: Settings, is_loopback: bool) -> list[str]:
    """Return the errors of the settings; none without OpenID Connect. `is_loopback`: the issuer is local."""
    result = []
    required = {
        "OIDC_ISSUER": s.oidc_issuer,
        "OIDC_CLIENT_ID": s.oidc_client_id,
        "OIDC_CLIENT_SECRET": s.oidc_client_secret,
    }
    missing = [name for name, value in required.items() if not value]
    others = (s.oidc_domains, s.oidc_new_people != "invited", s.oidc_workspace, s.oidc_second_factor != "ask")
    if len(missing) == 3:
        return (
            ["OIDC_ISSUER is not set; without it, the other OIDC settings have no effect."]
            if any(others)
            else []
        )
    if missing:
        result.append(
            f"{missing[0]} is not set; sign-in by OpenID Connect needs OIDC_ISSUER, its client and its secret."
        )
    result += _issuer_faults(s.oidc_issuer, is_loopback) if s.oidc_issuer else []
    bad = [domain for domain in s.oidc_domains if not _DOMAIN.fullmatch(domain)]
    if bad:
        result.append(f"OIDC_DOMAINS must list domains such as example.org; {bad[0]!r} is not a domain.")
    if s.oidc_new_people != "invited" and not s.oidc_domains:
        result.append(
            "OIDC_NEW_PEOPLE accepts users without an invitation; set OIDC_DOMAINS to their domains."
        )
    if not s.public_url and not s.is_local:
        result.append(
            "OIDC_ISSUER is set without PUBLIC_URL, the address that the provider redirects users to."
        )
    return result


def _issuer_faults(url: str, is_loopback: bool) -> list[str]:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return ["OIDC_ISSUER is not a URL."]
    if (
        parts.scheme not in ("http", "https")
        or not host
        or parts.query
        or parts.fragment
        or "@" in parts.netloc
    ):
        return ["OIDC_ISSUER must be https://host or https://host/path, as in the provider's metadata."]
    if parts.scheme == "http" and not is_loopback:
        return ["OIDC_ISSUER is plain http; a provider outside loopback needs https."]
    if len(url) > limits.OIDC_ISSUER_CHARS:
        return [f"OIDC_ISSUER has more than {limits.OIDC_ISSUER_CHARS} characters."]
    return []


# --- Checks of all settings ---------------------------------------------------------------------------------

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
    try:
        issuer_host = urlsplit(s.oidc_issuer).hostname or ""
    except ValueError:
        issuer_host = ""
    result = [*_key_faults(s), *_url_faults(s), *_tls_faults(s), *mail_faults(s)]
    result += oidc_faults(s, is_loopback(issuer_host))
    if s.hosts > 1:
        if s.is_sqlite:
            result.append(
                "DATABASE_URL is SQLite, which supports one machine only; ROWSMITH_HOSTS above 1 needs PostgreSQL."
            )
        if urlsplit(s.redis_url).scheme == "unix" or is_loopback(urlsplit(s.redis_url).hostname or ""):
            result.append(
                "REDIS_URL is on this machine; with ROWSMITH_HOSTS above 1 every machine must reach it."
            )
        if s.storage_url.startswith("file:"):
            result.append("STORAGE_URL is a local folder; with ROWSMITH_HOSTS above 1 it must be s3://.")
        if not s.public_url:
            result.append(
                "PUBLIC_URL is not set; with ROWSMITH_HOSTS above 1, no single host's address is valid for all."
            )
    return result


def _key_faults(s: Settings) -> list[str]:
    result = []
    minimum = limits.SECRET_KEY_MIN_CHARS
    if not s.secret_key:
        result.append(f"SECRET_KEY is not set; it must have at least {minimum} random characters.")
    elif len(s.secret_key) < minimum:
        result.append(f"SECRET_KEY has {len(s.secret_key)} characters; it must have at least {minimum}.")
    elif len(set(s.secret_key)) < 8:
        result.append("SECRET_KEY repeats a few characters; it must be random.")
    if s.metrics_token and len(s.metrics_token) < minimum:
        result.append(
            f"ROWSMITH_METRICS_TOKEN has {len(s.metrics_token)} characters; it must have at least {minimum}."
        )
    for number, key in enumerate(s.vault_keys, 1):
        if not _is_fernet_key(key):
            result.append(f"VAULT_KEYS: key {number} is not a Fernet key (32 bytes in URL-safe base64).")
    return result


def _is_fernet_key(text: str) -> bool:
    try:
        return len(base64.urlsafe_b64decode(text.encode())) == 32
    except (ValueError, binascii.Error):
        return False


def _url_faults(s: Settings) -> list[str]:
    result = []
    for name, url, schemes in (
        ("DATABASE_URL", s.database_url, DATABASE_SCHEMES),
        ("REDIS_URL", s.redis_url, REDIS_SCHEMES),
        ("STORAGE_URL", s.storage_url, STORAGE_SCHEMES),
    ):
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            result.append(f"{name} is not a URL.")
            continue
        if parts.scheme not in schemes:
            prefixes = ", ".join(f"{scheme}://" for scheme in schemes)
            result.append(f"{name} must begin with one of {prefixes}.")
        elif parts.scheme in ("postgresql", "postgresql+psycopg", "postgres") and not parts.path.strip("/"):
            result.append(f"{name} has no database name.")
        elif parts.scheme == "s3" and not parts.netloc:
            result.append(f"{name} has no bucket name.")
        elif parts.scheme == "file" and (parts.netloc not in ("", "localhost") or not parts.path):
            result.append(f"{name} must be file:// and an absolute path.")
    if s.database_url in ("sqlite://", "sqlite:///:memory:"):
        result.append(
            "DATABASE_URL is SQLite in memory, which web and worker processes cannot share; use a file."
        )
    public = _origin_faults("PUBLIC_URL", s.public_url)
    if not public and urlsplit(s.public_url).scheme == "https" and not s.tls_cert and not s.trusted_proxies:
        public = ["PUBLIC_URL is https, but neither TLS_CERT nor TRUSTED_PROXIES is set."]
    return result + public + _origin_faults("RUN_API_URL", s.run_api_url)


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


def _tls_faults(s: Settings) -> list[str]:
    if bool(s.tls_cert) != bool(s.tls_key):
        present, missing = ("TLS_CERT", "TLS_KEY") if s.tls_cert else ("TLS_KEY", "TLS_CERT")
        return [f"{present} is set without {missing}; TLS needs both."]
    return [
        f"{name}: there is no file {path}."
        for name, path in (("TLS_CERT", s.tls_cert), ("TLS_KEY", s.tls_key))
        if path and not Path(path).is_file()
    ]

"""The mail server of SMTP_URL, and what is contradictory in the settings of mail."""

from __future__ import annotations

from dataclasses import dataclass
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.utils import parseaddr
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

if TYPE_CHECKING:
    from webapp.config import Settings

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
        return f"MailServer({self.host}:{self.port})"  # the password belongs in no log


def mail_server(url: str) -> MailServer:
    """SMTP_URL, taken apart. ValueError with a sentence that repeats nothing of it."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("is not a URL.") from None
    if parts.scheme not in PORTS:
        raise ValueError("must begin with smtp:// or smtps://.")
    if not host:
        raise ValueError("names no mail server.")
    if parts.path.strip("/") or parts.fragment:
        raise ValueError("must be smtp(s)://user:password@host:port, without a path.")
    wanted = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := set(wanted) - {"tls", "ca"}:
        raise ValueError(f"has an option that does not exist: {min(unknown)}. There are tls and ca.")
    tls = wanted.get("tls", "on")
    if tls not in TLS:
        raise ValueError("has an option tls that is neither on nor off.")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if bool(user) != bool(password):
        raise ValueError("has a user without a password, or a password without a user.")
    if not f"{user}{password}".isprintable():
        raise ValueError("has a user or a password with signs that cannot be sent.")
    _tls_faults(parts.scheme, tls, user, wanted.get("ca", ""))
    number = PORTS[parts.scheme] if port is None else port
    return MailServer(
        host, number, user, password, parts.scheme == "smtps", tls == "on", wanted.get("ca", "")
    )


def _tls_faults(scheme: str, tls: str, user: str, ca: str) -> None:
    if tls == "off" and scheme == "smtps":
        raise ValueError("is smtps:// and says tls=off; choose one.")
    if tls == "off" and user:
        raise ValueError("says tls=off and has a password, which would be sent in the open.")
    if tls == "off" and ca:
        raise ValueError("says tls=off and names a file of authorities; choose one.")
    if ca and not Path(ca).is_file():
        raise ValueError(f"names a file of authorities that is not there: {ca}.")


def sender(text: str) -> Address:
    """MAIL_FROM: an address, or `Name <address>`. ValueError with a sentence."""
    if not text.isprintable():
        raise ValueError("must be one line.")
    name, address = parseaddr(text)
    try:
        made = Address(display_name=name, addr_spec=address)
    except (ValueError, IndexError, HeaderParseError):
        raise ValueError("is not an address such as rowsmith@example.org.") from None
    if not made.username or not made.domain:
        raise ValueError("is not an address such as rowsmith@example.org.")
    return made


def mail_faults(s: Settings) -> list[str]:
    """Return the errors in the mail settings; none if mail is not configured."""
    out = [*_said("SMTP_URL", mail_server, s.smtp_url), *_said("MAIL_FROM", sender, s.mail_from)]
    if bool(s.smtp_url) != bool(s.mail_from):
        there, missing = ("SMTP_URL", "MAIL_FROM") if s.smtp_url else ("MAIL_FROM", "SMTP_URL")
        out.append(f"{there} is set without {missing}; mail needs both.")
    if s.smtp_url and not s.vault_keys:
        out.append("SMTP_URL is set without VAULT_KEYS: mails that wait are stored sealed.")
    if s.smtp_url and not s.public_url and not s.is_local:
        out.append("SMTP_URL is set without PUBLIC_URL, which the links in mails begin with.")
    return out


def _said(name: str, read: Any, text: str) -> list[str]:
    if not text:
        return []
    try:
        read(text)
    except ValueError as error:
        return [f"{name} {error}"]
    return []

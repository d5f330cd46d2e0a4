"""Check the OpenID Connect settings for insecure and contradictory values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from webapp import limits

if TYPE_CHECKING:
    from webapp.config import Settings

NEW_PEOPLE: Final = ("invited", "viewer", "editor")
SECOND_FACTOR: Final = ("ask", "trust")
_DOMAIN: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(\.(?!-)[a-z0-9-]{1,63})+")


def oidc_faults(s: Settings, is_loopback: bool) -> list[str]:
    """Return the errors of the settings; none without OpenID Connect. `is_loopback`: the issuer is local."""
    out = []
    given = {
        "OIDC_ISSUER": s.oidc_issuer,
        "OIDC_CLIENT_ID": s.oidc_client_id,
        "OIDC_CLIENT_SECRET": s.oidc_client_secret,
    }
    missing = [name for name, value in given.items() if not value]
    others = (s.oidc_domains, s.oidc_new_people != "invited", s.oidc_workspace, s.oidc_second_factor != "ask")
    if len(missing) == 3:
        return (
            ["OIDC_ISSUER is not set; without it the other OIDC settings mean nothing."]
            if any(others)
            else []
        )
    if missing:
        out.append(
            f"{missing[0]} is not set; sign-in by OpenID Connect needs OIDC_ISSUER, its client and its secret."
        )
    out += _issuer_faults(s.oidc_issuer, is_loopback) if s.oidc_issuer else []
    bad = [one for one in s.oidc_domains if not _DOMAIN.fullmatch(one)]
    if bad:
        out.append(f"OIDC_DOMAINS must list domains such as example.org; {bad[0]!r} is not a domain.")
    if s.oidc_new_people != "invited" and not s.oidc_domains:
        out.append("OIDC_NEW_PEOPLE accepts users without an invitation; set OIDC_DOMAINS to their domains.")
    if not s.public_url and not s.is_local:
        out.append(
            "OIDC_ISSUER is set without PUBLIC_URL, the address that the provider sends people back to."
        )
    return out


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
        return ["OIDC_ISSUER must be https://host or https://host/path, as the provider's metadata call it."]
    if parts.scheme == "http" and not is_loopback:
        return ["OIDC_ISSUER is plain http; a provider outside loopback needs https."]
    if len(url) > limits.OIDC_ISSUER_CHARS:
        return [f"OIDC_ISSUER has more than {limits.OIDC_ISSUER_CHARS} characters."]
    return []

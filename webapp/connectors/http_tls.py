"""What certificates a target over HTTPS may show."""

from __future__ import annotations

import ssl
from typing import Annotated

from pydantic import AfterValidator, Field

from webapp.connectors.base import Settings

PEM = "-----BEGIN CERTIFICATE-----"


def _certificate(text: str) -> str:
    if PEM not in text:
        raise ValueError(f"give the certificate as PEM text ({PEM})")
    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        raise ValueError("this is no certificate that can be read: copy all of its lines") from None
    return text


class TlsSettings(Settings):
    """`trust` is what `net.session.open_session` takes as `verify_tls`."""

    verify_tls: bool = Field(True, description="Off takes any certificate: for test systems.")
    ca_certificate: Annotated[str, Field(max_length=100_000), AfterValidator(_certificate)] | None = Field(
        None,
        description="Of the authority that signed the target's, where that is none of the public ones.",
        json_schema_extra={"multiline": True},
    )

    @property
    def trust(self) -> bool | str:
        """True: the public authorities, False: anybody, a text: that authority alone."""
        return (self.ca_certificate or True) if self.verify_tls else False


BINDS = frozenset({"verify_tls", "ca_certificate"})
"""Settings that decide who may get a secret."""

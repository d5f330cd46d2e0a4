"""TLS settings of targets over HTTPS."""

from __future__ import annotations

import ssl
from typing import Annotated

from pydantic import AfterValidator, Field

from webapp.connectors.base import Settings

PEM = "-----BEGIN CERTIFICATE-----"


def _certificate(text: str) -> str:
    if PEM not in text:
        raise ValueError(f"enter the certificate as PEM text ({PEM})")
    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        raise ValueError("this is not a valid certificate: copy all of its lines") from None
    return text


class TlsSettings(Settings):
    """`trust` is the argument `verify_tls` of `net.session.open_session`."""

    verify_tls: bool = Field(
        True, description="If off, any certificate is accepted. Use only for test systems."
    )
    ca_certificate: Annotated[str, Field(max_length=100_000), AfterValidator(_certificate)] | None = Field(
        None,
        description="Certificate of the authority that signed the target's certificate, unless it is a public one.",
        json_schema_extra={"multiline": True},
    )

    @property
    def trust(self) -> bool | str:
        """True: public authorities; False: no verification; a text: only this authority."""
        return (self.ca_certificate or True) if self.verify_tls else False


BINDS = frozenset({"verify_tls", "ca_certificate"})
"""Settings that affect who can receive a secret."""

"""ID tokens of OpenID Connect (Core 1.0, 3.1.3.7): whose signature, for whom, for which sign-in, until when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from authlib.oidc.core.claims import CodeIDToken
from joserfc import jwt
from joserfc.errors import ClaimError, JoseError
from joserfc.jwk import JWKRegistry, KeySet

from webapp import limits

# Signatures that only the provider can create. `none` means no signature, and with HS256 anyone with the public key
# could sign if the key were used as a shared secret.
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
_KINDS: Final = frozenset({"RSA", "EC", "OKP"})


class TokenRefused(Exception):
    """An invalid token. The message is for the log and contains nothing of the token."""


def algorithms(supported: object) -> Sequence[str]:
    """Return the algorithms that a provider uses and we accept; RS256 if it does not list any (Discovery 1.0, 3)."""
    named = supported if isinstance(supported, list) else ["RS256"]
    return [one for one in ALGORITHMS if one in named]


def keys_of(document: Mapping[str, Any]) -> KeySet:
    """Return the provider's public signature keys from its JWKS document. Other keys, and keys of unknown kinds, are
    ignored (RFC 7517, 5). Error: TokenRefused if none remains."""
    found = []
    named = document.get("keys")
    for data in named if isinstance(named, list) else ():
        if not isinstance(data, dict) or data.get("kty") not in _KINDS or data.get("use", "sig") != "sig":
            continue
        try:
            found.append(JWKRegistry.import_key(data))
        except (JoseError, ValueError, TypeError, KeyError):
            continue  # the others may do
    if not found:
        raise TokenRefused("it publishes no key that signatures could be checked by")
    return KeySet(found)


def claims_of(
    token: str,
    keys: KeySet,
    *,
    issuer: str,
    client_id: str,
    nonce: str,
    access_token: str,
    taken: Sequence[str],
    now: float,
) -> dict[str, Any]:
    """Return the verified claims of a token. `taken`: the accepted algorithms. Error: TokenRefused."""
    try:
        made = jwt.decode(token, keys, algorithms=list(taken))
        claims = CodeIDToken(
            made.claims,
            made.header,
            options={
                "iss": {"essential": True, "value": issuer},
                "aud": {"essential": True, "value": client_id},
                "sub": {"essential": True},
                "nonce": {"essential": True, "value": nonce},
            },
            params={"nonce": nonce, "client_id": client_id, "access_token": access_token},
        )
        claims.validate(now=int(now), leeway=limits.OIDC_LEEWAY_SECONDS)
    except (JoseError, ValueError, TypeError, KeyError) as error:
        raise TokenRefused(f"its ID token was rejected: {_brief(error)}") from None
    subject = claims["sub"]
    if (
        not isinstance(subject, str)
        or not 0 < len(subject) <= limits.OIDC_TEXT_CHARS
        or not subject.isprintable()
    ):
        raise TokenRefused("its ID token was rejected: the subject must have 1 to 255 characters")
    return dict(claims)


def _brief(error: Exception) -> str:
    """Return the kind of an error and the name of a claim; other messages may include contents of the token."""
    if isinstance(error, ClaimError):
        return str(error)
    return getattr(error, "error", "") or type(error).__name__

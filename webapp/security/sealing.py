"""Signing and encryption of small values with SECRET_KEY, each purpose with a derived key (HKDF)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

import orjson
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_MAC_BYTES: Final = 16


def derive(secret_key: str, purpose: str, extra: str = "") -> bytes:
    """32 bytes for one purpose. `extra` is a further secret that must be known (RFC 5869, HKDF-SHA256)."""
    kdf = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=purpose.encode())
    return kdf.derive(f"{secret_key}\0{extra}".encode("utf-8", "surrogateescape"))


def seal(key: bytes, data: bytes) -> bytes:
    """Encrypted and authenticated (Fernet)."""
    return Fernet(base64.urlsafe_b64encode(key)).encrypt(data)


def unseal(key: bytes, sealed: bytes) -> bytes | None:
    """What was sealed; None when the key is another or the bytes were changed."""
    try:
        return Fernet(base64.urlsafe_b64encode(key)).decrypt(sealed)
    except InvalidToken:
        return None


def sign(key: bytes, value: object) -> str:
    """A JSON value as URL-safe text that only `key` can have made. Readable, not secret."""
    data = orjson.dumps(value)
    mac = hmac.new(key, data, hashlib.sha256).digest()[:_MAC_BYTES]
    return base64.urlsafe_b64encode(mac + data).rstrip(b"=").decode()


def unsign(key: bytes, text: str) -> object | None:
    """The value of a signed text; None for anything we did not sign."""
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except ValueError:
        return None
    mac, data = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    if not hmac.compare_digest(mac, hmac.new(key, data, hashlib.sha256).digest()[:_MAC_BYTES]):
        return None
    value: object = orjson.loads(data)
    return value

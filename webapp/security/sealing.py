"""Sealing: small values with SECRET_KEY, and stored secrets with a ring of keys.

Small values are signed and encrypted with a key derived from SECRET_KEY for each purpose (HKDF).

Stored secrets are encrypted with a ring of Fernet keys: the newest encrypts, any of them can decrypt. The ring is
VAULT_KEYS. If it is in the `keys.env` of a data folder, a process that cannot decrypt a secret reads the file again, so
that a rotation needs no restart.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from collections.abc import Callable, Sequence
from typing import Final

import orjson
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_MAC_BYTES: Final = 16


def derive(secret_key: str, purpose: str, extra: str = "") -> bytes:
    """Return 32 bytes for one purpose. `extra` is a further secret that must be known (RFC 5869, HKDF-SHA256)."""
    kdf = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=purpose.encode())
    return kdf.derive(f"{secret_key}\0{extra}".encode("utf-8", "surrogateescape"))


def seal(key: bytes, data: bytes) -> bytes:
    """Encrypt and authenticate bytes (Fernet)."""
    return Fernet(base64.urlsafe_b64encode(key)).encrypt(data)


def unseal(key: bytes, sealed: bytes) -> bytes | None:
    """Decrypt bytes; None for another key or changed bytes."""
    try:
        return Fernet(base64.urlsafe_b64encode(key)).decrypt(sealed)
    except InvalidToken:
        return None


def sign(key: bytes, value: object) -> str:
    """Return a JSON value as signed URL-safe text, which only `key` can create. It is readable."""
    data = orjson.dumps(value)
    mac = hmac.new(key, data, hashlib.sha256).digest()[:_MAC_BYTES]
    return base64.urlsafe_b64encode(mac + data).rstrip(b"=").decode()


def unsign(key: bytes, text: str) -> object | None:
    """Return the value of a signed text; None for anything we did not sign."""
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except ValueError:
        return None
    mac, data = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    if not hmac.compare_digest(mac, hmac.new(key, data, hashlib.sha256).digest()[:_MAC_BYTES]):
        return None
    value: object = orjson.loads(data)
    return value


# --- Stored secrets -----------------------------------------------------------------------------------------


class VaultError(Exception):
    """A secret cannot be encrypted or decrypted. The message says what is missing, without the secret."""


class Vault:
    """The ring. Thread-safe; `load_keys` returns the current keys."""

    def __init__(self, keys: Sequence[str], load_keys: Callable[[], Sequence[str]] | None = None) -> None:
        self._load_keys = load_keys
        self._lock = threading.Lock()
        self._set_keys(keys)

    def _set_keys(self, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)
        self._ring = MultiFernet([Fernet(key.encode()) for key in keys]) if keys else None

    def reload(self) -> bool:
        """Read the current keys. Return whether they have changed."""
        if self._load_keys is None:
            return False
        with self._lock:
            keys = tuple(self._load_keys())
            if not keys or keys == self._keys:
                return False
            self._set_keys(keys)
            return True

    def seal(self, text: str) -> bytes:
        """Encrypt and authenticate a text with the newest key. VaultError without any key."""
        if self._ring is None and not self.reload():
            raise VaultError("No encryption key is configured. Set VAULT_KEYS.")
        assert self._ring is not None  # `reload` has found keys
        return self._ring.encrypt(text.encode())

    def open(self, sealed: bytes) -> str:
        """Decrypt a text. VaultError if no key of the ring can decrypt it."""
        for _ in range(2):
            ring = self._ring
            try:
                if ring is not None:
                    return ring.decrypt(sealed).decode()
            except InvalidToken:
                pass
            self.reload()
            if self._ring is ring:  # not what `reload` says: another thread may have been quicker
                break
        raise VaultError(
            "A stored secret cannot be decrypted with VAULT_KEYS: the key that encrypted it is missing."
        )

    def reencrypt(self, sealed: bytes) -> bytes | None:
        """Return the same secret encrypted with the newest key; None if it already is. VaultError as `open`."""
        text = self.open(sealed)
        try:
            Fernet(self._keys[0].encode()).decrypt(sealed)
        except InvalidToken:
            return self.seal(text)
        return None

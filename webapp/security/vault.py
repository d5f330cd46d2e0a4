"""Sealing of stored secrets: a ring of Fernet keys, the newest seals, all of them open.

The ring is VAULT_KEYS. If it is in the `keys.env` of a data folder, a process that meets a secret it cannot open reads
the file again, so that a rotation needs no restart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class VaultError(Exception):
    """A secret cannot be sealed or opened; the message says what is missing, and holds nothing of it."""


class Vault:
    """The ring. Safe over threads; `again` brings the keys as they are now."""

    def __init__(self, keys: Sequence[str], again: Callable[[], Sequence[str]] | None = None) -> None:
        self._again = again
        self._lock = threading.Lock()
        self._take(keys)

    def _take(self, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)
        self._ring = MultiFernet([Fernet(key.encode()) for key in keys]) if keys else None

    def renew(self) -> bool:
        """Read the keys as they are now. Returns whether they are others."""
        if self._again is None:
            return False
        with self._lock:
            keys = tuple(self._again())
            if not keys or keys == self._keys:
                return False
            self._take(keys)
            return True

    def seal(self, text: str) -> bytes:
        """Encrypted and authenticated by the newest key. VaultError without any key."""
        if self._ring is None and not self.renew():
            raise VaultError("No key for secrets is set; give VAULT_KEYS.")
        assert self._ring is not None  # `renew` has found keys
        return self._ring.encrypt(text.encode())

    def open(self, sealed: bytes) -> str:
        """What was sealed. VaultError when no key of the ring opens it."""
        for _ in range(2):
            ring = self._ring
            try:
                if ring is not None:
                    return ring.decrypt(sealed).decode()
            except InvalidToken:
                pass
            self.renew()
            if self._ring is ring:  # not what `renew` says: another thread may have been quicker
                break
        raise VaultError(
            "A stored secret cannot be opened with VAULT_KEYS; the key it was sealed with is missing."
        )

    def renewed(self, sealed: bytes) -> bytes | None:
        """The same secret sealed by the newest key; None if it is already. VaultError as `open`."""
        text = self.open(sealed)
        try:
            Fernet(self._keys[0].encode()).decrypt(sealed)
        except InvalidToken:
            return self.seal(text)
        return None

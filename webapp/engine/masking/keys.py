"""Keys of masking: the workspace's ring, and what is derived from it for one column."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

KEY_BYTES = 32
_WORD = np.dtype("<u8")


@dataclass(frozen=True, slots=True)
class Keys:
    """A workspace's ring. Old versions are kept, so that what was masked by one can be masked so again."""

    current: int
    keys: Mapping[int, bytes] = field(repr=False)
    """Version to `KEY_BYTES` secret bytes."""

    def derive(self, version: int, *purpose: str) -> bytes:
        """32 bytes for one purpose (HMAC-SHA256). KeyError without that version."""
        message = b"".join(len(one.encode()).to_bytes(4, "big") + one.encode() for one in purpose)
        return hmac.new(self.keys[version], message, hashlib.sha256).digest()


class Aes:
    """AES-256 on many blocks in one call, as a pseudo-random function (each block by itself). For one thread."""

    def __init__(self, key: bytes) -> None:
        self._encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 - single blocks, a PRF

    def __call__(self, blocks: np.ndarray) -> np.ndarray:
        """``uint64[n, 2]`` to ``uint64[n, 2]``, read-only."""
        made = (
            self._encryptor.update(np.ascontiguousarray(blocks, _WORD).data.cast("B")) if len(blocks) else b""
        )
        return np.frombuffer(made, _WORD).reshape(-1, 2)

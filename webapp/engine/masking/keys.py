"""Shared by all strategies of masking: keys, and columns of distinct values.

The keys are the workspace's ring, and what is derived from it for one column. Columns are masked by their distinct
values, once each; nulls stay, and texts are converted to bytes and numbers.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.lib.stride_tricks import sliding_window_view

KEY_BYTES = 32
_WORD = np.dtype("<u8")


@dataclass(frozen=True, slots=True)
class KeyRing:
    """A workspace's ring. Old versions are kept so that values can be masked in the same way again."""

    current: int
    keys: Mapping[int, bytes] = field(repr=False)
    """Version to `KEY_BYTES` secret bytes."""

    def derive(self, version: int, *purpose: str) -> bytes:
        """32 bytes for one purpose (HMAC-SHA256). KeyError without that version."""
        message = b"".join(len(item.encode()).to_bytes(4, "big") + item.encode() for item in purpose)
        return hmac.new(self.keys[version], message, hashlib.sha256).digest()


class Aes:
    """AES-256 on many blocks in one call, as a pseudo-random function (each block by itself). For one thread."""

    def __init__(self, key: bytes) -> None:
        self._encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 - single blocks, a PRF

    def __call__(self, blocks: np.ndarray) -> np.ndarray:
        """``uint64[n, 2]`` to ``uint64[n, 2]``, read-only."""
        encrypted = (
            self._encryptor.update(np.ascontiguousarray(blocks, _WORD).data.cast("B")) if len(blocks) else b""
        )
        return np.frombuffer(encrypted, _WORD).reshape(-1, 2)


# --- Columns ------------------------------------------------------------------------------------------------

_SAMPLE = 1024
_BLOCK = 16
_SLICE = 65_536
_BYTE_MASKS = np.tril(np.full((_BLOCK + 1, _BLOCK), 0xFF, np.uint8), -1)
"""Row k keeps the first k bytes of a block."""


def map_distinct(column: pa.Array, function: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """``column`` with ``function`` applied to its values: to each distinct one once where many repeat. ``function`` is
    given plain arrays without nulls and answers one of the same length; nulls stay."""
    if pa.types.is_dictionary(column.type):
        if column.dictionary.null_count or len(column.dictionary) > 2 * len(column):
            return map_distinct(column.dictionary_decode(), function)
        changed = function(column.dictionary)
        return pa.DictionaryArray.from_arrays(column.indices, changed, safe=False).dictionary_decode()
    if len(column) > _SAMPLE and has_repeated_values(column):
        return map_distinct(column.dictionary_encode(), function)
    if not column.null_count:
        return function(column)
    is_valid = column.is_valid()
    changed = function(column.filter(is_valid))
    place = np.cumsum(is_valid.to_numpy(zero_copy_only=False)) - 1
    return changed.take(pa.array(place, mask=~is_valid.to_numpy(zero_copy_only=False)))


def has_repeated_values(column: pa.Array) -> bool:
    """Return whether the first values repeat often enough that finding the distinct ones saves time."""
    return pc.count_distinct(column.slice(0, _SAMPLE)).as_py() < _SAMPLE // 2


def bytes_and_offsets(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of a string column without nulls (``uint8``), and the offsets of the values (``int64[n + 1]``,
    from 0)."""
    column = column.cast(pa.large_string()) if not pa.types.is_large_string(column.type) else column
    _, offsets, data = column.buffers()
    ends = (
        np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
        if len(column)
        else None
    )
    if ends is None or data is None:
        return np.zeros(0, np.uint8), np.zeros(len(column) + 1, np.int64)
    return np.frombuffer(data, np.uint8)[ends[0] : ends[-1]], ends - ends[0]


def strings_from_bytes(data: np.ndarray | bytes, ends: np.ndarray) -> pa.Array:
    """The reverse of `bytes_and_offsets`: ``string[n]``."""
    array = pa.Array.from_buffers(
        pa.large_string(),
        ends.size - 1,
        [None, pa.py_buffer(np.ascontiguousarray(ends, np.int64)), pa.py_buffer(data)],
    )
    return array.cast(pa.string())


def fixed_width_strings(letters: np.ndarray) -> pa.Array:
    """``uint8[n, width]`` of ASCII as ``string[n]``."""
    count, width = letters.shape
    return strings_from_bytes(np.ascontiguousarray(letters), np.arange(count + 1, dtype=np.int64) * width)


def mac(aes: Aes, column: pa.Array) -> np.ndarray:
    """``uint64[n, 2]``: 128 keyed bits of each text (string column without nulls): CBC-MAC with AES, the length in
    front, so that no text is the beginning of another."""
    data, ends = bytes_and_offsets(column)
    data = np.concatenate([data, np.zeros(_BLOCK, np.uint8)])
    result = np.empty((len(column), 2), np.uint64)
    for low in range(0, len(column), _SLICE):
        offsets = ends[low : low + _SLICE + 1]
        result[low : low + _SLICE] = _mac(aes, data, offsets[:-1], np.diff(offsets))
    return result


def _mac(aes: Aes, data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    windows = sliding_window_view(data, _BLOCK)
    first = np.zeros((starts.size, 2), np.uint64)
    first[:, 0] = lengths
    state = aes(first).copy()
    position, active = 0, np.flatnonzero(lengths > 0)
    while active.size:
        sizes = np.minimum(lengths[active] - position, _BLOCK)
        block = windows[starts[active] + position] & _BYTE_MASKS[sizes]
        state[active] = aes(state[active] ^ block.view(np.uint64))
        position += _BLOCK
        active = active[lengths[active] > position]
    return state


_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz234567", np.uint8)  # RFC 4648, section 6
_SHIFTS = np.arange(60, -1, -5, dtype=np.uint64)


def base32(words: np.ndarray) -> np.ndarray:
    """``uint64[n]`` as ``uint8[n, 13]`` letters and digits: all 64 bits."""
    return _LETTERS[(words[:, None] >> _SHIFTS) & np.uint64(31)]

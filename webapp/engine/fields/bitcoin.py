"""Bitcoin addresses with right checksums: in Bech32 and Bech32m (BIP 173 and 350), and in base 58 (BIP 13)."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp.engine.fields.base import FieldType, OptionsModel
from webapp.engine.fields.codes import text_of
from webapp.engine.fields.identity import words

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_UNBOUNDED = 1 << 62
_BECH32 = np.frombuffer(b"qpzry9x8gf2tvdw0s3jn54khce6mua7l", np.uint8)
_BASE58 = np.frombuffer(b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", np.uint8)
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_CHECK = 6
_PREFIX = {"mainnet": "bc", "testnet": "tb"}
_SEGWIT = {"p2wpkh": (0, 20, 1), "p2tr": (1, 32, 0x2BC830A3)}
"""Version, bytes of the program, and what the checksum's remainder must be."""
_LEGACY = {"p2pkh": {"mainnet": 0x00, "testnet": 0x6F}, "p2sh": {"mainnet": 0x05, "testnet": 0xC4}}
"""The first byte, by network."""
_HASH = 20
_LETTERS = 35
"""Letters of 25 bytes in base 58, at the most."""
_FIVE_LETTERS = np.uint64(58**5)


class BitcoinAddress(FieldType):
    """An address of random bits, of which nobody has the key. The first 64 bits are a one-to-one function of the row,
    so no two are alike."""

    name = "bitcoin_address"
    label = "Bitcoin address"
    category = "finance"
    description = "A Bitcoin address with a right checksum; nobody has its key."
    aliases = ("bitcoin", "btc address", "btc", "bitcoin wallet", "crypto address", "cryptocurrency address")
    example = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
    dtype = pa.string()

    class Options(OptionsModel):
        format: Literal["p2wpkh", "p2tr", "p2pkh", "p2sh"] = Field(
            "p2wpkh",
            description="bc1q…, bc1p…, 1… or 3…: pay to a witness key hash, Taproot, a key hash, a script.",
        )
        network: Literal["mainnet", "testnet"] = Field("mainnet", description="Whose beginning it has.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        segwit = _SEGWIT.get(options.format)
        if segwit is not None:
            self._code = _segwit(_PREFIX[options.network], *segwit)
        self.max_length = _LETTERS if segwit is None else self._code.width

    def fill(self, cells: Cells) -> pa.Array:
        if self.options.format in _SEGWIT:
            return self._code.text(cells)
        return _legacy(_LEGACY[self.options.format][self.options.network], cells)

    def space(self) -> int | None:
        # In base 58 capitals and small letters are different digits: addresses may differ in case alone.
        return _UNBOUNDED if self.options.format in _SEGWIT else None

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)

    def unique_hint(self) -> str:
        return "Addresses in base 58 may differ in case alone; take format p2wpkh or p2tr."


class _Segwit:
    """Addresses of one prefix and version. The checksum is linear, so each pair of letters has a share of it that a
    table holds."""

    def __init__(self, prefix: str, version: int, size: int, remainder: int) -> None:
        self._count = -(-size * 8 // 5)  # letters of the program
        self._size = size
        self.width = len(prefix) + 2 + self._count + _CHECK
        self._start = np.frombuffer((prefix + "1").encode() + bytes([_BECH32[version]]), np.uint8)
        ahead = [ord(ch) >> 5 for ch in prefix] + [0] + [ord(ch) & 31 for ch in prefix] + [version]
        self._base = np.uint32(_polymod([*ahead, *[0] * (self._count + _CHECK)]) ^ remainder)
        shares = [
            np.array([_polymod([value, *[0] * behind], 0) for value in range(32)], np.uint32)
            for behind in range(self._count + _CHECK - 1, _CHECK - 1, -1)
        ]
        shares += [np.zeros(32, np.uint32)] * (self._count % 2)
        self._pairs = [
            (one[:, None] ^ other).ravel() for one, other in zip(shares[::2], shares[1::2], strict=True)
        ]

    def text(self, cells: Cells) -> pa.Array:
        """``string[n]``: an address for each row."""
        values = self._values(cells)
        rest = np.full(cells.n, self._base, np.uint32)
        for place in range(0, self._count, 2):
            pair = values[:, place].astype(np.intp) << 5
            if place + 1 < self._count:
                pair |= values[:, place + 1]
            rest ^= self._pairs[place // 2].take(pair)
        out = np.empty((cells.n, self.width), np.uint8)
        start = len(self._start)
        out[:, :start] = self._start
        out[:, start : start + self._count] = _BECH32.take(values)
        for place in range(_CHECK):
            out[:, start + self._count + place] = _BECH32.take(
                (rest >> np.uint32(5 * (5 - place))) & np.uint32(31)
            )
        return text_of(out)

    def _values(self, cells: Cells) -> np.ndarray:
        """``uint8[n, letters]``: five random bits for each letter, the spare ones at the end nought."""
        drawn = words(cells, -(-self._size // 8)).astype(">u8")
        data = np.zeros((cells.n, -(-self._count // 8) * 5), np.uint8)
        data[:, : self._size] = np.ascontiguousarray(drawn.T).view(np.uint8)[:, : self._size]
        # Eight letters are five bytes: as one number of 40 bits.
        groups = data.reshape(cells.n, data.shape[1] // 5, 5)
        number = np.zeros(groups.shape[:2], np.uint64)
        for place in range(5):
            number = number << np.uint64(8) | groups[..., place]
        out = np.empty((*groups.shape[:2], 8), np.uint8)
        for place in range(8):
            out[..., place] = number >> np.uint64(35 - 5 * place) & np.uint64(31)
        return np.ascontiguousarray(out.reshape(cells.n, 8 * groups.shape[1])[:, : self._count])


@cache
def _segwit(prefix: str, version: int, size: int, remainder: int) -> _Segwit:
    return _Segwit(prefix, version, size, remainder)


def _polymod(values: list[int], start: int = 1) -> int:
    """The remainder of BIP 173's checksum after ``values``."""
    state = start
    for value in values:
        top = state >> 25
        state = (state & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_GENERATOR):
            if top >> bit & 1:
                state ^= generator
    return state


def _legacy(version: int, cells: Cells) -> pa.Array:
    """Addresses in base 58: a byte, 20 of a hash and 4 of its checksum."""
    body = np.empty((cells.n, 1 + _HASH), np.uint8)
    body[:, 0] = version
    body[:, 1:] = np.ascontiguousarray(words(cells, 3).T).view(np.uint8)[:, :_HASH]
    data = body.tobytes()
    sha256 = hashlib.sha256
    sums = b"".join(
        [sha256(sha256(data[at : at + 21]).digest()).digest()[:4] for at in range(0, len(data), 21)]
    )
    whole = np.zeros((cells.n, 28), np.uint8)
    whole[:, 3:24] = body
    whole[:, 24:] = np.frombuffer(sums, np.uint8).reshape(-1, 4)
    return _base58(whole)


def _base58(data: np.ndarray) -> pa.Array:
    """``string[n]``: numbers of 28 bytes (``uint8[n, 28]``, the first three nought) in base 58, with a 1 for each
    nought byte that leads the last 25."""
    limbs = data.view(">u4").astype(np.uint64)
    letters = np.empty((data.shape[0], _LETTERS), np.uint8)
    for place in range(_LETTERS // 5):
        rest = np.zeros(data.shape[0], np.uint64)
        for limb in range(limbs.shape[1]):
            value = rest << np.uint64(32) | limbs[:, limb]
            quotient = value // _FIVE_LETTERS
            rest = value - quotient * _FIVE_LETTERS
            limbs[:, limb] = quotient
        end = _LETTERS - 5 * place
        for back in range(5):
            quotient = rest // np.uint64(58)
            letters[:, end - 1 - back] = rest - quotient * np.uint64(58)
            rest = quotient
    nought = np.argmax(data[:, 3:] != 0, axis=1)
    lead = np.argmax(letters != 0, axis=1) - nought
    flat = _BASE58.take(letters)
    kept = np.arange(_LETTERS) >= lead[:, None]
    offsets = np.zeros(data.shape[0] + 1, np.int32)
    np.cumsum(_LETTERS - lead, out=offsets[1:])
    return pa.StringArray.from_buffers(data.shape[0], pa.py_buffer(offsets), pa.py_buffer(flat[kept]))

"""Identifiers that never repeat: UUID, ULID, NanoID, MongoDB ObjectId.

Each carries bits that are a one-to-one function of the row, so two rows of a column never share an identifier, at
any row number and with nothing kept in memory.
"""

from __future__ import annotations

from binascii import hexlify
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine import cells as cellular
from webapp.engine.fields import joining
from webapp.engine.fields.base import FieldType, OptionsModel

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_UNBOUNDED = 1 << 62
_NIBBLE = np.uint64(0xF)
_U12, _U16, _U24 = (np.uint64(n) for n in (12, 16, 24))
_TEN_BITS, _TWELVE_BITS = np.uint64(1023), np.uint64(4095)
_ULID_HIGH = np.arange(56, 5, -10, dtype=np.uint64)
_ULID_LOW = np.arange(50, -1, -10, dtype=np.uint64)
_NANO_SHIFTS = np.arange(0, 60, 12, dtype=np.uint64)
_NANO_UNIQUE = 14
_CLOCK = np.uint64((1 << 48) - 1)

# RFC 9562, sections 4.1, 5.4 and 5.7: version in the top nibble of the third group, variant 10 in the fourth.
_VERSION_4, _VERSION_7 = np.uint64(0x4000), np.uint64(0x7000)
_NOT_VERSION = np.uint64(0xFFFFFFFFFFFF0FFF)
_VARIANT, _NOT_VARIANT = np.uint64(1 << 63), np.uint64((1 << 62) - 1)

NANO_ALPHABET = "_-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class _Identifier(FieldType):
    category = "identity"
    dtype = pa.string()

    def space(self) -> int | None:
        return _UNBOUNDED

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)


class Uuid(_Identifier):
    """Version 4 (random) or 7 (ordered: now + row milliseconds, then random)."""

    name = "uuid"
    label = "UUID"
    description = "A universally unique identifier, random (version 4) or ordered by time (version 7)."
    aliases = ("guid", "uuid4", "uuid v4", "uuid7", "uuid v7", "uniqueidentifier", "unique id")
    example = "3f2b8c1e-7a4d-4e0b-9c5f-1d2e3a4b5c6d"
    max_length = 36

    class Options(OptionsModel):
        version: Literal[4, 7] = Field(4, description="4: random. 7: rises from row to row, starting at now.")
        primaryKey: bool = Field(  # noqa: N815 - the wire name of the published clients
            False,
            validation_alias=AliasChoices("primaryKey", "primary_key"),
            description="The key of the row: unique, and never blank.",
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.primary = options.primaryKey
        if options.primaryKey and field.common.percent_blank:
            text = "A primary key is never blank."
            compiler.fault(
                field, "percent_blank", "conflict", text, "Set percent_blank to 0, or take primaryKey away."
            )

    def prepare(self, env: Env) -> int:
        return _milliseconds(env)

    def fill(self, cells: Cells) -> pa.Array:
        return uuid_text(*(self._version_7(cells) if self.options.version == 7 else self._version_4(cells)))

    def _version_4(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        high, low = words(cells, 2)
        # The four bits that the version displaces go into the low half, which keeps all 64 of `high`.
        low &= ~_NIBBLE
        low |= (high >> _U12) & _NIBBLE
        high &= _NOT_VERSION
        high |= _VERSION_4
        return high, _with_variant(low)

    def _version_7(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        low, high = words(cells, 2)
        high &= np.uint64(0xFFC)
        high |= low >> np.uint64(62)
        high |= _VERSION_7
        high |= ((cells.rows + np.uint64(cells.state)) & _CLOCK) << _U16
        return high, _with_variant(low)


def _with_variant(low: np.ndarray) -> np.ndarray:
    low &= _NOT_VARIANT
    low |= _VARIANT
    return low


def _milliseconds(env: Env) -> int:
    return int(env.now.timestamp()) * 1000 + env.now.microsecond // 1000


class Ulid(_Identifier):
    """48 bits of now + row milliseconds and 80 random ones in Crockford's base 32 (the ULID specification)."""

    name = "ulid"
    label = "ULID"
    description = "A 26-character identifier that sorts by time."
    aliases = ("lexicographically sortable id",)
    example = "01JD6Z4Q8W3T5V7X9YABCDEFGH"
    max_length = 26

    def prepare(self, env: Env) -> int:
        return _milliseconds(env)

    def fill(self, cells: Cells) -> pa.Array:
        low, middle = words(cells, 2)
        # 130 bits: two zeros, 48 of the clock, 16 + 64 random; ten of them, two letters, at a time.
        middle &= np.uint64(0xFFFF)
        middle |= ((cells.rows + np.uint64(cells.state)) & _CLOCK) << _U16
        letters = np.empty((cells.n, 13), np.intp)
        letters[:, :6] = (middle[:, None] >> _ULID_HIGH) & _TEN_BITS
        letters[:, 6] = (low >> np.uint64(60)) | ((middle & np.uint64(63)) << np.uint64(4))
        letters[:, 7:] = (low[:, None] >> _ULID_LOW) & _TEN_BITS
        return texts(_pairs(CROCKFORD).take(letters), 26)


class NanoId(_Identifier):
    """URL-safe random letters. The first 11 carry the row; 14 are asked for where they must be unique, so that they
    also differ in databases that ignore case."""

    name = "nanoid"
    label = "NanoID"
    description = "A short URL-safe random identifier."
    aliases = ("nano id", "short id")
    example = "V1StGXR8_Z5jdHi6B-myT"

    class Options(OptionsModel):
        size: int = Field(21, ge=2, le=limits.MAX_PAD_DIGITS, description="Letters.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = options.size
        self._pairs = (options.size + 1) // 2

    def fill(self, cells: Cells) -> pa.Array:
        drawn = words(cells, -(-self._pairs // 5))
        letters = ((drawn.T[:, :, None] >> _NANO_SHIFTS) & _TWELVE_BITS).reshape(cells.n, 5 * drawn.shape[0])[
            :, : self._pairs
        ]
        if self._pairs > 5:
            # The four bits left over in the first word: with its five pairs they make all 64.
            letters[:, 5] &= np.uint64(0x3F)
            letters[:, 5] |= (drawn[0] >> np.uint64(60) << np.uint64(6)) | (
                drawn[1] & np.uint64(3)
            ) << np.uint64(10)
        spelled = _pairs(NANO_ALPHABET).take(letters.view(np.intp))
        if self.options.size % 2:
            spelled = np.ascontiguousarray(spelled.view(np.uint8)[:, : self.options.size])
        return texts(spelled, self.options.size)

    def space(self) -> int | None:
        return _UNBOUNDED if self.options.size >= _NANO_UNIQUE else None

    def unique_hint(self) -> str:
        return f"Set size to {_NANO_UNIQUE} or more, or use a random string."


class MongoObjectId(_Identifier):
    """As a driver makes them: 4 bytes of seconds, 5 random ones of the process, 3 of a counter (BSON ObjectId)."""

    name = "mongodb_objectid"
    label = "MongoDB ObjectId"
    description = "A 24-digit MongoDB ObjectId; it rises from row to row."
    aliases = ("objectid", "object id", "mongo id", "mongodb object id", "mongo objectid", "bson id")
    example = "673e8f9a1c2b3d4e5f6a7b8c"
    max_length = 24

    def prepare(self, env: Env) -> int:
        return int(env.now.timestamp())

    def fill(self, cells: Cells) -> pa.Array:
        start = int(cellular.derive(cells.key, 1))
        process, first = start >> 24, start & 0xFFFFFF
        count = cells.rows + np.uint64(first)
        parts = np.empty(cells.n, _OBJECT_ID)
        parts["second"] = (count >> _U24) + np.uint64(cells.state)
        parts["process"] = process >> 8 & 0xFFFFFFFF
        parts["rest"] = (count & np.uint64(0xFFFFFF)) | np.uint64((process & 0xFF) << 24)
        return texts(np.frombuffer(hexlify(parts.data), np.uint8), 24)


_OBJECT_ID = np.dtype([("second", ">u4"), ("process", ">u4"), ("rest", ">u4")])
_GROUPS = np.dtype(
    {
        "names": list("abcde"),
        "formats": ["V8", "V4", "V4", "V4", "V12"],
        "offsets": [0, 9, 14, 19, 24],
        "itemsize": 36,
    }
)
_DIGITS = np.dtype({"names": list("abcde"), "formats": ["V8", "V4", "V4", "V4", "V12"]})


def uuid_text(high: np.ndarray, low: np.ndarray) -> pa.Array:
    """``string[n]`` of UUIDs from their halves (``uint64[n]`` each), in lower case with hyphens."""
    if high.size <= joining.FEW_ROWS:
        pairs = zip(high.tolist(), low.tolist(), strict=True)
        return joining.few_texts([_hyphenated(f"{left:016x}", f"{right:016x}") for left, right in pairs])
    halves = np.empty((high.size, 2), ">u8")
    halves[:, 0], halves[:, 1] = high, low
    digits = np.frombuffer(hexlify(halves.data), _DIGITS)
    out = np.full(36 * high.size, ord("-"), np.uint8)
    grouped = out.view(_GROUPS)
    for group in "abcde":
        grouped[group] = digits[group]
    return texts(out, 36)


def _hyphenated(left: str, right: str) -> bytes:
    return f"{left[:8]}-{left[8:12]}-{left[12:]}-{right[:4]}-{right[4:]}".encode()


@cache
def _pairs(alphabet: str) -> np.ndarray:
    """``uint16[k * k]``: two letters of ``alphabet`` as they lie in memory."""
    return np.frombuffer("".join(a + b for a in alphabet for b in alphabet).encode(), "<u2")


def words(cells: Cells, count: int) -> np.ndarray:
    """``uint64[count, n]`` of random bits; the first word is a one-to-one function of the row."""
    return cellular.bits(joining.salted(int(cells.key), count), cells.rows)


def texts(letters: np.ndarray, width: int) -> pa.Array:
    """``string[n]`` from a contiguous array of ``n * width`` bytes of ASCII, whatever its item type."""
    n = letters.nbytes // width
    return pa.StringArray.from_buffers(n, pa.py_buffer(_offsets(n, width)), pa.py_buffer(letters))


def _offsets(n: int, width: int) -> np.ndarray:
    kept = _kept_offsets(width)
    return kept[: n + 1] if n < kept.size else np.arange(0, (n + 1) * width, width, dtype=np.int32)


@cache
def _kept_offsets(width: int) -> np.ndarray:
    return np.arange(0, (limits.BLOCK_ROWS + 1) * width, width, dtype=np.int32)

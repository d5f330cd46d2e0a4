"""Identifiers and secrets: UUID, ULID, NanoID, ObjectId, digests, password hashes, tokens, JWT, Bitcoin addresses.

Identifiers contain bits that are a one-to-one function of the row, so two rows of a column never share one, at any row
number and without memory. Digests and hashes are random in the form of their scheme: no text is known that has them.
Bitcoin addresses have valid checksums, in Bech32 and Bech32m (BIP 173 and 350) and in base 58 (BIP 13). JWTs (RFC 7519)
have a valid signature.
"""

from __future__ import annotations

import hashlib
import hmac
from binascii import hexlify
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import orjson
import pyarrow as pa
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine import random as engine_random
from webapp.engine import text_parts
from webapp.engine.types import joining
from webapp.engine.types.base import FieldType, OptionsModel
from webapp.engine.types.codes import (
    DIGITS,
    HEX,
    LOWER,
    UPPER,
    Code,
    CodePart,
    CodeType,
    Run,
    strings_from_matrix,
)

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


_UNIQUE_SPACE = 1 << 62
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

    def distinct_count(self) -> int | None:
        return _UNIQUE_SPACE

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)


class Uuid(_Identifier):
    """Version 4 (random) or 7 (ordered: now + row milliseconds, then random)."""

    name = "uuid"
    label = "UUID"
    description = "A universally unique identifier, random (version 4) or ordered by time (version 7)."
    aliases = ("guid", "uuid4", "uuid v4", "uuid7", "uuid v7", "uniqueidentifier", "unique id")
    example = "3f2b8c1e-7a4d-4e0b-9c5f-1d2e3a4b5c6d"
    max_length = 36

    class Options(OptionsModel):
        version: Literal[4, 7] = Field(
            4, description=("4: random. 7: ordered by time, increasing from row to row, starting at now.")
        )
        primaryKey: bool = Field(  # noqa: N815 - the wire name of the published clients
            False,
            validation_alias=AliasChoices("primaryKey", "primary_key"),
            description="Primary key: unique and never blank.",
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.is_primary_key = options.primaryKey
        if options.primaryKey and field.common.percent_blank:
            text = "A primary key cannot be blank."
            compiler.fault(
                field, "percent_blank", "conflict", text, "Set percent_blank to 0, or remove primaryKey."
            )

    def prepare(self, env: GenerationContext) -> int:
        return _milliseconds(env)

    def fill(self, context: ColumnContext) -> pa.Array:
        if self.options.version == 7:
            low, high = draw_words(context, 2)
            high &= np.uint64(0xFFC)
            high |= low >> np.uint64(62)
            high |= _VERSION_7
            high |= ((context.rows + np.uint64(context.state)) & _CLOCK) << _U16
        else:
            high, low = draw_words(context, 2)
            # The four bits that the version displaces go into the low half, which keeps all 64 of `high`.
            low &= ~_NIBBLE
            low |= (high >> _U12) & _NIBBLE
            high &= _NOT_VERSION
            high |= _VERSION_4
        low &= _NOT_VARIANT
        low |= _VARIANT
        return uuid_text(high, low)


def _milliseconds(env: GenerationContext) -> int:
    return int(env.now.timestamp()) * 1000 + env.now.microsecond // 1000


class Ulid(_Identifier):
    """48 bits of now + row milliseconds and 80 random ones in Crockford's base 32 (the ULID specification)."""

    name = "ulid"
    label = "ULID"
    description = "A 26-character identifier that sorts by time."
    aliases = ("lexicographically sortable id",)
    example = "01JD6Z4Q8W3T5V7X9YABCDEFGH"
    max_length = 26

    def prepare(self, env: GenerationContext) -> int:
        return _milliseconds(env)

    def fill(self, context: ColumnContext) -> pa.Array:
        low, middle = draw_words(context, 2)
        # 130 bits: two zeros, 48 of the clock, 16 + 64 random; ten of them, two letters, at a time.
        middle &= np.uint64(0xFFFF)
        middle |= ((context.rows + np.uint64(context.state)) & _CLOCK) << _U16
        letters = np.empty((context.n, 13), np.intp)
        letters[:, :6] = (middle[:, None] >> _ULID_HIGH) & _TEN_BITS
        letters[:, 6] = (low >> np.uint64(60)) | ((middle & np.uint64(63)) << np.uint64(4))
        letters[:, 7:] = (low[:, None] >> _ULID_LOW) & _TEN_BITS
        return ascii_strings(_pairs(CROCKFORD).take(letters), 26)


class NanoId(_Identifier):
    """URL-safe random letters. The first 11 carry the row; 14 are required where they must be unique, so that they
    also differ in databases that ignore case."""

    name = "nanoid"
    label = "NanoID"
    description = "A short URL-safe random identifier."
    aliases = ("nano id", "short id")
    example = "V1StGXR8_Z5jdHi6B-myT"

    class Options(OptionsModel):
        size: int = Field(21, ge=2, le=limits.MAX_PAD_DIGITS, description="Number of characters.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = options.size
        self._pairs = (options.size + 1) // 2

    def fill(self, context: ColumnContext) -> pa.Array:
        random_words = draw_words(context, -(-self._pairs // 5))
        letters = ((random_words.T[:, :, None] >> _NANO_SHIFTS) & _TWELVE_BITS).reshape(
            context.n, 5 * random_words.shape[0]
        )[:, : self._pairs]
        if self._pairs > 5:
            # The four bits left over in the first word: with its five pairs they make all 64.
            letters[:, 5] &= np.uint64(0x3F)
            letters[:, 5] |= (random_words[0] >> np.uint64(60) << np.uint64(6)) | (
                random_words[1] & np.uint64(3)
            ) << np.uint64(10)
        text_pairs = _pairs(NANO_ALPHABET).take(letters.view(np.intp))
        if self.options.size % 2:
            text_pairs = np.ascontiguousarray(text_pairs.view(np.uint8)[:, : self.options.size])
        return ascii_strings(text_pairs, self.options.size)

    def distinct_count(self) -> int | None:
        return _UNIQUE_SPACE if self.options.size >= _NANO_UNIQUE else None

    def unique_hint(self) -> str:
        return f"Set size to {_NANO_UNIQUE} or more, or use a random string."


class MongoObjectId(_Identifier):
    """As a driver creates them: 4 bytes of seconds, 5 random ones of the process, 3 of a counter (BSON ObjectId)."""

    name = "mongodb_objectid"
    label = "MongoDB ObjectId"
    description = "A 24-digit MongoDB ObjectId that increases from row to row."
    aliases = ("objectid", "object id", "mongo id", "mongodb object id", "mongo objectid", "bson id")
    example = "673e8f9a1c2b3d4e5f6a7b8c"
    max_length = 24

    def prepare(self, env: GenerationContext) -> int:
        return int(env.now.timestamp())

    def fill(self, context: ColumnContext) -> pa.Array:
        start = int(engine_random.derive(context.key, 1))
        process, first = start >> 24, start & 0xFFFFFF
        count = context.rows + np.uint64(first)
        parts = np.empty(context.n, _OBJECT_ID)
        parts["second"] = (count >> _U24) + np.uint64(context.state)
        parts["process"] = process >> 8 & 0xFFFFFFFF
        parts["rest"] = (count & np.uint64(0xFFFFFF)) | np.uint64((process & 0xFF) << 24)
        return ascii_strings(np.frombuffer(hexlify(parts.data), np.uint8), 24)


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
    if high.size <= text_parts.FEW_ROWS:
        pairs = zip(high.tolist(), low.tolist(), strict=True)
        return text_parts.string_array(
            [_hyphenated(f"{left:016x}", f"{right:016x}") for left, right in pairs]
        )
    halves = np.empty((high.size, 2), ">u8")
    halves[:, 0], halves[:, 1] = high, low
    digits = np.frombuffer(hexlify(halves.data), _DIGITS)
    out = np.full(36 * high.size, ord("-"), np.uint8)
    grouped = out.view(_GROUPS)
    for group in "abcde":
        grouped[group] = digits[group]
    return ascii_strings(out, 36)


def _hyphenated(left: str, right: str) -> bytes:
    return f"{left[:8]}-{left[8:12]}-{left[12:]}-{right[:4]}-{right[4:]}".encode()


@cache
def _pairs(alphabet: str) -> np.ndarray:
    """``uint16[k * k]``: two letters of ``alphabet`` as they are in memory."""
    return np.frombuffer("".join(a + b for a in alphabet for b in alphabet).encode(), "<u2")


def draw_words(context: ColumnContext, count: int) -> np.ndarray:
    """``uint64[count, n]`` of random bits; the first word is a one-to-one function of the row."""
    return engine_random.bits(joining.salted_keys(int(context.key), count), context.rows)


def ascii_strings(letters: np.ndarray, width: int) -> pa.Array:
    """Return ``string[n]`` from a contiguous array of ``n * width`` bytes of ASCII, of any item type."""
    n = letters.nbytes // width
    cached = _cached_offsets(width)
    offsets = cached[: n + 1] if n < cached.size else np.arange(0, (n + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(letters))


@cache
def _cached_offsets(width: int) -> np.ndarray:
    return np.arange(0, (limits.BLOCK_ROWS + 1) * width, width, dtype=np.int32)


_CASELESS_ALPHABET = DIGITS + LOWER
_ALPHABETS = {
    "alphanumeric": UPPER + LOWER + DIGITS,
    "urlsafe": UPPER + LOWER + DIGITS + "-_",
    "hex": HEX,
    "base32": UPPER + "234567",
}
_DISTINCT_LETTERS = 12
"""Alphabets of which 36 letters distinguish 2**62 texts, ignoring case."""


class _Digest(FieldType):
    """Random hexadecimal digits; the first sixteen are a one-to-one function of the row."""

    category = "internet"
    dtype = pa.string()
    size: ClassVar[int]
    """Bytes."""

    class Options(OptionsModel):
        case: Literal["lower", "upper"] = Field("lower", description="Case of the digits a to f.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = 2 * self.size

    def fill(self, context: ColumnContext) -> pa.Array:
        random_bytes = np.ascontiguousarray(draw_words(context, -(-self.size // 8)).T).view(np.uint8)
        digits = hexlify(np.ascontiguousarray(random_bytes[:, : self.size]).data)
        text = digits.upper() if self.options.case == "upper" else digits
        return ascii_strings(np.frombuffer(text, np.uint8), 2 * self.size)

    def distinct_count(self) -> int:
        return _UNIQUE_SPACE

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)


class Md5(_Digest):
    """128 random bits as an MD5 digest is printed."""

    name = "md5"
    label = "MD5"
    description = "An MD5 digest: 32 hexadecimal digits."
    aliases = ("md5 hash", "md5 sum", "md5sum", "digest", "hash", "etag")
    example = "9e107d9d372bb6826bd81d3542a419d6"
    size = 16


class Sha1(_Digest):
    """160 random bits as a SHA-1 digest is printed."""

    name = "sha1"
    label = "SHA-1"
    description = "A SHA-1 digest, such as a commit's: 40 hexadecimal digits."
    aliases = ("sha1 hash", "commit hash", "git hash", "git sha", "commit id", "git commit sha")
    example = "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"
    size = 20


class Sha256(_Digest):
    """256 random bits as a SHA-256 digest is printed."""

    name = "sha256"
    label = "SHA-256"
    description = "A SHA-256 digest: 64 hexadecimal digits."
    aliases = ("sha256 hash", "sha2", "checksum", "file hash", "transaction hash")
    example = "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592"
    size = 32


class _Secret(CodeType):
    """A code, and for unique values another one, whose first letters distinguish rows ignoring
    case."""

    category = "internet"
    _unique: Code | None = None

    def use_codes(self, key: Any, create_code: Any, compiler: Compiler) -> None:
        """``make(alphabet)`` returns the code whose distinguishing letters are from ``alphabet`` (None: the default
        one)."""
        self.use(compiler.vocabulary.cached((self.name, key), lambda: create_code(None)))
        if self.field.common.unique or self.field.common.unique_together:
            self._unique = compiler.vocabulary.cached(
                (self.name, key, "unique"), lambda: create_code(_CASELESS_ALPHABET)
            )

    def distinct_count(self) -> int | None:
        return (self._unique or self.code).capacity

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        code = self._unique
        assert code is not None  # set if the field is unique
        return code.text(code.draw_unique(context))


def _letters(alphabet: str, count: int, distinguishing: str | None) -> list[CodePart]:
    """``count`` letters of ``alphabet``, the first of them from ``distinguishing`` unless it is None."""
    if distinguishing is None or alphabet in (HEX, _ALPHABETS["base32"]):
        return [Run(alphabet, count)]
    first = min(count, _DISTINCT_LETTERS)
    return [Run(distinguishing, first), *([Run(alphabet, count - first)] if count > first else [])]


class Token(_Secret):
    """Random letters of an alphabet; they are independent of the other fields of the row."""

    name = "token"
    label = "Token"
    description = "A random token, such as for a session or a password reset link."
    aliases = ("access token", "session token", "refresh token", "bearer token", "csrf token", "nonce")
    example = "kR3vX0mQ8sT1bYw7Jd5cLz2nHf9gAe6u"

    class Options(OptionsModel):
        length: int = Field(32, ge=1, le=limits.MAX_CODE_CHARS, description="Length of the token.")
        alphabet: Literal["alphanumeric", "urlsafe", "hex", "base32"] = Field(
            "alphanumeric", description="Characters of the token. urlsafe also includes - and _."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        alphabet, length = _ALPHABETS[options.alphabet], options.length
        make = lambda distinguishing: Code(*_letters(alphabet, length, distinguishing))  # noqa: E731
        self.use_codes((options.alphabet, length), make, compiler)


class ApiKey(_Secret):
    """Random letters after a prefix."""

    name = "api_key"
    label = "API key"
    description = "An API key, such as key_test_4fX9…."
    aliases = ("apikey", "secret key", "client secret", "access key", "app key", "publishable key")
    example = "key_test_kR3vX0mQ8sT1bYw7Jd5cLz2n"

    class Options(OptionsModel):
        lead: str = Field(
            "key_test_",
            max_length=limits.MAX_AFFIX_CHARS,
            pattern=r"^[ -~]*$",
            description="Prefix of every key.",
            examples=["sk_sandbox_"],
        )
        length: int = Field(
            24, ge=1, le=limits.MAX_CODE_CHARS, description=("Number of characters after the prefix.")
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        lead, length = options.lead, options.length
        alphabet = _ALPHABETS["alphanumeric"]
        make = lambda distinguishing: Code(lead, *_letters(alphabet, length, distinguishing))  # noqa: E731
        self.use_codes((lead, length), make, compiler)


_CRYPT = "./" + DIGITS + UPPER + LOWER
_BCRYPT = "./" + UPPER + LOWER + DIGITS
_BASE64 = UPPER + LOWER + DIGITS + "+/"


def _base64(size: int, distinguishing: str | None, alphabet: str = _BASE64) -> list[CodePart]:
    """``size`` bytes in base 64 without padding: some bits of the last letter are zero."""
    full, rest = divmod(size * 8, 6)
    last = Run(alphabet[:: 1 << (6 - rest)]) if rest else None
    return [*_letters(alphabet, full, distinguishing), *([last] if last else [])]


def _bcrypt(cost: int, distinguishing: str | None) -> Code:
    return Code(f"$2b${cost:02d}$", *_base64(16, distinguishing, _BCRYPT), *_base64(23, None, _BCRYPT))


def _argon2id(cost: int, distinguishing: str | None) -> Code:
    return Code(
        f"$argon2id$v=19$m=65536,t={cost},p=4$", *_base64(16, distinguishing), "$", *_base64(32, None)
    )


def _pbkdf2(cost: int, distinguishing: str | None) -> Code:
    return Code(
        f"pbkdf2_sha256${cost}$",
        *_letters(_ALPHABETS["alphanumeric"], 22, distinguishing),
        "$",
        *_base64(32, None),
        "=",
    )


def _sha512_crypt(cost: int, distinguishing: str | None) -> Code:
    # 512 bits are 85 letters and two bits.
    rounds = "" if cost == 5000 else f"rounds={cost}$"
    return Code("$6$", rounds, *_letters(_CRYPT, 16, distinguishing), "$", Run(_CRYPT, 85), Run(_CRYPT[:4]))


_SCHEMES = {
    "bcrypt": (_bcrypt, 12, range(4, 32)),
    "argon2id": (_argon2id, 3, range(1, 1000)),
    "pbkdf2_sha256": (_pbkdf2, 600_000, range(1, 10_000_001)),
    "sha512_crypt": (_sha512_crypt, 5000, range(1000, 1_000_000_000)),
}
"""Scheme: (a function from cost to code, the default cost, the allowed costs)."""


class PasswordHash(_Secret):
    """A hash in the format of password stores, with random salt and digest: no password matches it."""

    name = "password_hash"
    label = "Password hash"
    description = "A password hash as stored in a database. No password matches it."
    aliases = (
        "bcrypt",
        "hashed password",
        "argon2",
        "crypt",
        "encrypted password",
        "password digest",
        "passwd hash",
    )
    example = "$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW"

    class Options(OptionsModel):
        algorithm: Literal["bcrypt", "argon2id", "pbkdf2_sha256", "sha512_crypt"] = Field(
            "bcrypt", description="Hash algorithm. pbkdf2_sha256 has Django's format."
        )
        cost: int | None = Field(
            None,
            ge=1,
            le=999_999_999,
            description="Cost factor in the hash. Defaults: bcrypt 12, argon2id 3, pbkdf2_sha256 600000, "
            "sha512_crypt 5000.",
            examples=[10],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        make, default, allowed = _SCHEMES[options.algorithm]
        cost = default if options.cost is None else options.cost
        if cost not in allowed:
            message = (
                f"The cost of {options.algorithm} must be from {allowed.start:,} to {allowed.stop - 1:,}."
            )
            compiler.fault(field, "options.cost", "out_of_range", message)
            return
        self.use_codes((options.algorithm, cost), lambda distinguishing: make(cost, distinguishing), compiler)


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
"""Maximum number of letters of 25 bytes in base 58."""
_FIVE_LETTERS = np.uint64(58**5)


class BitcoinAddress(FieldType):
    """An address of random bits, for which no key is known. The first 64 bits are a one-to-one function of the row,
    so all are different."""

    name = "bitcoin_address"
    label = "Bitcoin address"
    category = "finance"
    description = "A Bitcoin address with a valid checksum. No one has its private key."
    aliases = ("bitcoin", "btc address", "btc", "bitcoin wallet", "crypto address", "cryptocurrency address")
    example = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
    dtype = pa.string()

    class Options(OptionsModel):
        format: Literal["p2wpkh", "p2tr", "p2pkh", "p2sh"] = Field(
            "p2wpkh",
            description=(
                "Address type: witness key hash (bc1q…), Taproot (bc1p…), key hash (1…) or script (3…)."
            ),
        )
        network: Literal["mainnet", "testnet"] = Field(
            "mainnet", description=("Network, which determines the prefix.")
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        segwit = _SEGWIT.get(options.format)
        if segwit is not None:
            self._code = _segwit(_PREFIX[options.network], *segwit)
        self.max_length = _LETTERS if segwit is None else self._code.width

    def fill(self, context: ColumnContext) -> pa.Array:
        if self.options.format in _SEGWIT:
            return self._code.text(context)
        # A byte of the version, 20 of a hash and 4 of its checksum, in base 58
        body = np.empty((context.n, 1 + _HASH), np.uint8)
        body[:, 0] = _LEGACY[self.options.format][self.options.network]
        body[:, 1:] = np.ascontiguousarray(draw_words(context, 3).T).view(np.uint8)[:, :_HASH]
        data = body.tobytes()
        sha256 = hashlib.sha256
        sums = b"".join(
            [sha256(sha256(data[at : at + 21]).digest()).digest()[:4] for at in range(0, len(data), 21)]
        )
        padded = np.zeros((context.n, 28), np.uint8)
        padded[:, 3:24] = body
        padded[:, 24:] = np.frombuffer(sums, np.uint8).reshape(-1, 4)
        return _base58(padded)

    def distinct_count(self) -> int | None:
        # In base 58 capitals and small letters are different digits: addresses may differ only in case.
        return _UNIQUE_SPACE if self.options.format in _SEGWIT else None

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)

    def unique_hint(self) -> str:
        return "Base58 addresses may differ only in case: use the format p2wpkh or p2tr."


class _Segwit:
    """Addresses of one prefix and version. The checksum is linear, so a table has the contribution of each pair of
    letters."""

    def __init__(self, prefix: str, version: int, size: int, remainder: int) -> None:
        self._count = -(-size * 8 // 5)  # letters of the program
        self._size = size
        self.width = len(prefix) + 2 + self._count + _CHECK
        self._start = np.frombuffer((prefix + "1").encode() + bytes([_BECH32[version]]), np.uint8)
        prefix_values = [ord(ch) >> 5 for ch in prefix] + [0] + [ord(ch) & 31 for ch in prefix] + [version]
        self._base = np.uint32(_polymod([*prefix_values, *[0] * (self._count + _CHECK)]) ^ remainder)
        shares = [
            np.array([_polymod([value, *[0] * following], 0) for value in range(32)], np.uint32)
            for following in range(self._count + _CHECK - 1, _CHECK - 1, -1)
        ]
        shares += [np.zeros(32, np.uint32)] * (self._count % 2)
        self._pairs = [
            (share[:, None] ^ other).ravel() for share, other in zip(shares[::2], shares[1::2], strict=True)
        ]

    def text(self, context: ColumnContext) -> pa.Array:
        """``string[n]``: an address for each row."""
        values = self._values(context)
        rest = np.full(context.n, self._base, np.uint32)
        for place in range(0, self._count, 2):
            pair = values[:, place].astype(np.intp) << 5
            if place + 1 < self._count:
                pair |= values[:, place + 1]
            rest ^= self._pairs[place // 2].take(pair)
        out = np.empty((context.n, self.width), np.uint8)
        start = len(self._start)
        out[:, :start] = self._start
        out[:, start : start + self._count] = _BECH32.take(values)
        for place in range(_CHECK):
            out[:, start + self._count + place] = _BECH32.take(
                (rest >> np.uint32(5 * (5 - place))) & np.uint32(31)
            )
        return strings_from_matrix(out)

    def _values(self, context: ColumnContext) -> np.ndarray:
        """``uint8[n, letters]``: five random bits for each letter, the spare ones at the end zero."""
        random_words = draw_words(context, -(-self._size // 8)).astype(">u8")
        data = np.zeros((context.n, -(-self._count // 8) * 5), np.uint8)
        data[:, : self._size] = np.ascontiguousarray(random_words.T).view(np.uint8)[:, : self._size]
        # Eight letters are five bytes: as one number of 40 bits.
        groups = data.reshape(context.n, data.shape[1] // 5, 5)
        number = np.zeros(groups.shape[:2], np.uint64)
        for place in range(5):
            number = number << np.uint64(8) | groups[..., place]
        out = np.empty((*groups.shape[:2], 8), np.uint8)
        for place in range(8):
            out[..., place] = number >> np.uint64(35 - 5 * place) & np.uint64(31)
        return np.ascontiguousarray(out.reshape(context.n, 8 * groups.shape[1])[:, : self._count])


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


def _base58(data: np.ndarray) -> pa.Array:
    """``string[n]``: numbers of 28 bytes (``uint8[n, 28]``, the first three zero) in base 58, with a 1 for each leading
    zero byte of the last 25."""
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
    leading_zeros = np.argmax(data[:, 3:] != 0, axis=1)
    start = np.argmax(letters != 0, axis=1) - leading_zeros
    flat = _BASE58.take(letters)
    used = np.arange(_LETTERS) >= start[:, None]
    offsets = np.zeros(data.shape[0] + 1, np.int32)
    np.cumsum(_LETTERS - start, out=offsets[1:])
    return pa.StringArray.from_buffers(data.shape[0], pa.py_buffer(offsets), pa.py_buffer(flat[used]))


# RFC 7518, section 3.2: a key of 256 bits or more.
_SECRET = "rowsmith-secret-for-tests-of-256-bits"  # noqa: S105 - published, so that tests can check what it signs
_MIN_SECRET_CHARS = 32
_YEAR = 366 * 24 * 3600
_SUBJECT_DIGITS = 15
"""Digits of a subject, and a multiple of three: each letter of base 64 then depends on one or two digits."""
_SIGNATURE_CHARS = 43
_ALPHABET = np.frombuffer((UPPER + LOWER + DIGITS + "-_").encode(), np.uint8)


class Jwt(FieldType):
    """A JSON Web Token with a subject and the times of issue and expiry, signed by HMAC with SHA-256 under a secret
    that is known: the times depend on now, and anyone with the secret can verify it."""

    name = "jwt"
    label = "JWT"
    category = "internet"
    description = "A JSON Web Token, signed with HS256 and a secret that you choose, valid from now on."
    aliases = ("json web token", "id token", "jwt token", "signed token", "bearer jwt")
    example = (
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
        "eyJpYXQiOjE3Njk5MDM5NDAsImV4cCI6MTc2OTkwNzU0MCwic3ViIjoiMzQ2ODE4ODUxNjI3NDkzIn0."
        "-jhYTLgEGS3QxhNTeZDe50s2h2Fj35HRHc-8QnX70dM"
    )
    dtype = pa.string()

    class Options(OptionsModel):
        secret: str = Field(
            _SECRET,
            min_length=_MIN_SECRET_CHARS,
            max_length=limits.MAX_AFFIX_CHARS,
            description="Signing key: at least 32 characters. It is stored in plain text, so use a test key.",
            examples=["another-secret-for-tests-of-256-bits"],
        )
        issuer: str | None = Field(
            None, min_length=1, max_length=limits.MAX_NAME_CHARS, description="The iss claim. Default: none.",
            examples=["https://auth.example"],
        )  # fmt: skip
        expires_in: int = Field(
            3600, ge=1, le=10 * _YEAR, description="Seconds from now until the token expires."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._key = options.secret.encode()
        self.max_length = _layout(options.issuer, options.expires_in, 10**9).width + 1 + _SIGNATURE_CHARS + 8

    def prepare(self, env: GenerationContext) -> _JwtLayout:
        return _layout(self.options.issuer, self.options.expires_in, int(env.now.timestamp()))

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._sign(context.state, context.below(10**_SUBJECT_DIGITS))

    def distinct_count(self) -> int:
        return 10**_SUBJECT_DIGITS

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self._sign(context.state, context.permuted(10**_SUBJECT_DIGITS))

    def _sign(self, layout: _JwtLayout, subject: np.ndarray) -> pa.Array:
        message = layout.header_and_claims(subject)
        out = np.empty((subject.size, layout.width + 1 + _SIGNATURE_CHARS), np.uint8)
        out[:, : layout.width] = message
        out[:, layout.width] = ord(".")
        data, key, width = message.tobytes(), self._key, layout.width
        digests = b"".join(
            [hmac.digest(key, data[at : at + width], "sha256") for at in range(0, len(data), width)]
        )
        padded = np.zeros((subject.size, 33), np.uint8)
        padded[:, :32] = np.frombuffer(digests, np.uint8).reshape(-1, 32)
        out[:, layout.width + 1 :] = _base64url(padded)[:, :_SIGNATURE_CHARS]
        return strings_from_matrix(out)


class _JwtLayout:
    """Header and claims, of which only the subject differs from row to row."""

    def __init__(self, issuer: str | None, expires_in: int, now: int) -> None:
        claims = {"iat": now, "exp": now + expires_in} | ({"iss": issuer} if issuer is not None else {})
        head = _base64_text(orjson.dumps({"alg": "HS256", "typ": "JWT"}))
        claims_start = orjson.dumps(claims)[:-1] + b',"sub":"'
        # Blanks between claims mean nothing; with them the subject begins a group of three bytes.
        claims_start = b"{" + b" " * (-len(claims_start) % 3) + claims_start[1:]
        self._start = f"{head}.{_base64_text(claims_start)}"
        self._end = _base64_text(b'"}').rstrip("=")
        self._digits = Code(Run(DIGITS, _SUBJECT_DIGITS))
        self.width = len(self._start) + _SUBJECT_DIGITS // 3 * 4 + len(self._end)

    def header_and_claims(self, subject: np.ndarray) -> np.ndarray:
        """``uint8[n, width]``: header, full stop and claims."""
        out = np.empty((subject.size, self.width), np.uint8)
        first, last = len(self._start), self.width - len(self._end)
        out[:, :first] = np.frombuffer(self._start.encode(), np.uint8)
        out[:, first:last] = _base64url(self._digits.bytes([subject]))
        out[:, last:] = np.frombuffer(self._end.encode(), np.uint8)
        return out


@lru_cache(maxsize=64)
def _layout(issuer: str | None, expires_in: int, now: int) -> _JwtLayout:
    return _JwtLayout(issuer, expires_in, now)


def _base64url(data: np.ndarray) -> np.ndarray:
    """``uint8[n, k / 3 * 4]``: the rows of ``uint8[n, k]``, k a multiple of three, in base 64 for addresses."""
    first, second, third = data[:, 0::3], data[:, 1::3], data[:, 2::3]
    out = np.empty((data.shape[0], data.shape[1] // 3, 4), np.uint8)
    out[..., 0] = _ALPHABET.take(first >> 2)
    out[..., 1] = _ALPHABET.take((first & 3) << 4 | second >> 4)
    out[..., 2] = _ALPHABET.take((second & 15) << 2 | third >> 6)
    out[..., 3] = _ALPHABET.take(third & 63)
    return out.reshape(data.shape[0], data.shape[1] // 3 * 4)


def _base64_text(data: bytes) -> str:
    padded = data + bytes(-len(data) % 3)
    text = _base64url(np.frombuffer(padded, np.uint8)[None]).tobytes().decode()
    return text[: -(-len(data) * 8 // 6)]

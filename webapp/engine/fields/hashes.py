"""What programs keep and send instead of a secret: digests, hashed passwords, tokens and keys.

Digests and hashes are random in the form of their scheme: no text is known that they are of.
"""

from __future__ import annotations

from binascii import hexlify
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp import limits
from webapp.engine.fields.base import FieldType, OptionsModel
from webapp.engine.fields.code_parts import DIGITS, HEX, LOWER, UPPER, Part, Run
from webapp.engine.fields.codes import Code, CodeType
from webapp.engine.fields.identity import texts, words

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_UNBOUNDED = 1 << 62
_PLAIN = DIGITS + LOWER
_ALPHABETS = {
    "alphanumeric": UPPER + LOWER + DIGITS,
    "urlsafe": UPPER + LOWER + DIGITS + "-_",
    "hex": HEX,
    "base32": UPPER + "234567",
}
_APART = 12
"""Letters of which 36 each tell 2**62 texts apart, whatever their case."""


class _Digest(FieldType):
    """Random hexadecimal digits; the first sixteen are a one-to-one function of the row."""

    category = "internet"
    dtype = pa.string()
    size: ClassVar[int]
    """Bytes."""

    class Options(OptionsModel):
        case: Literal["lower", "upper"] = Field("lower", description="How the digits a to f are written.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = 2 * self.size

    def fill(self, cells: Cells) -> pa.Array:
        drawn = np.ascontiguousarray(words(cells, -(-self.size // 8)).T).view(np.uint8)
        digits = hexlify(np.ascontiguousarray(drawn[:, : self.size]).data)
        spelled = digits.upper() if self.options.case == "upper" else digits
        return texts(np.frombuffer(spelled, np.uint8), 2 * self.size)

    def space(self) -> int:
        return _UNBOUNDED

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)


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
    """A code, and for unique values another of its texts: one whose first letters tell rows apart whatever their
    case."""

    category = "internet"
    _unique: Code | None = None

    def use_both(self, key: Any, make: Any, compiler: Compiler) -> None:
        """``make(alphabet)`` answers the code whose telling letters are of ``alphabet`` (None: of its own)."""
        self.use(compiler.vocabulary.shared((self.name, key), lambda: make(None)))
        if self.field.common.unique:
            self._unique = compiler.vocabulary.shared((self.name, key, "unique"), lambda: make(_PLAIN))

    def space(self) -> int | None:
        return (self._unique or self.code).capacity

    def fill_unique(self, cells: Cells) -> pa.Array:
        code = self._unique
        assert code is not None  # made where the field is unique
        return code.text(code.draw_unique(cells))


def _letters(alphabet: str, count: int, telling: str | None) -> list[Part]:
    """``count`` letters of ``alphabet``, the first of them of ``telling`` where it is given."""
    if telling is None or alphabet in (HEX, _ALPHABETS["base32"]):
        return [Run(alphabet, count)]
    first = min(count, _APART)
    return [Run(telling, first), *([Run(alphabet, count - first)] if count > first else [])]


class Token(_Secret):
    """Random letters of an alphabet; in the other fields of the row nothing follows from them."""

    name = "token"
    label = "Token"
    description = "A random token, such as of a session or a link to reset a password."
    aliases = ("access token", "session token", "refresh token", "bearer token", "csrf token", "nonce")
    example = "kR3vX0mQ8sT1bYw7Jd5cLz2nHf9gAe6u"

    class Options(OptionsModel):
        length: int = Field(32, ge=1, le=limits.MAX_CODE_CHARS, description="How many letters.")
        alphabet: Literal["alphanumeric", "urlsafe", "hex", "base32"] = Field(
            "alphanumeric", description="What the letters are; urlsafe has - and _ too."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        alphabet, length = _ALPHABETS[options.alphabet], options.length
        make = lambda telling: Code(*_letters(alphabet, length, telling))  # noqa: E731
        self.use_both((options.alphabet, length), make, compiler)


class ApiKey(_Secret):
    """Random letters behind a word that says whose key it is."""

    name = "api_key"
    label = "API key"
    description = "A key for an API, such as key_test_4fX9…."
    aliases = ("apikey", "secret key", "client secret", "access key", "app key", "publishable key")
    example = "key_test_kR3vX0mQ8sT1bYw7Jd5cLz2n"

    class Options(OptionsModel):
        lead: str = Field(
            "key_test_",
            max_length=limits.MAX_AFFIX_CHARS,
            pattern=r"^[ -~]*$",
            description="What every key begins with.",
            examples=["sk_sandbox_"],
        )
        length: int = Field(24, ge=1, le=limits.MAX_CODE_CHARS, description="How many letters follow.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        lead, length = options.lead, options.length
        alphabet = _ALPHABETS["alphanumeric"]
        make = lambda telling: Code(lead, *_letters(alphabet, length, telling))  # noqa: E731
        self.use_both((lead, length), make, compiler)


_CRYPT = "./" + DIGITS + UPPER + LOWER
_BCRYPT = "./" + UPPER + LOWER + DIGITS
_BASE64 = UPPER + LOWER + DIGITS + "+/"


def _base64(size: int, telling: str | None, alphabet: str = _BASE64) -> list[Part]:
    """``size`` bytes in base 64 without padding: of the last letter some bits are nought."""
    full, rest = divmod(size * 8, 6)
    last = Run(alphabet[:: 1 << (6 - rest)]) if rest else None
    return [*_letters(alphabet, full, telling), *([last] if last else [])]


def _bcrypt(cost: int, telling: str | None) -> Code:
    return Code(f"$2b${cost:02d}$", *_base64(16, telling, _BCRYPT), *_base64(23, None, _BCRYPT))


def _argon2id(cost: int, telling: str | None) -> Code:
    return Code(f"$argon2id$v=19$m=65536,t={cost},p=4$", *_base64(16, telling), "$", *_base64(32, None))


def _pbkdf2(cost: int, telling: str | None) -> Code:
    return Code(
        f"pbkdf2_sha256${cost}$",
        *_letters(_ALPHABETS["alphanumeric"], 22, telling),
        "$",
        *_base64(32, None),
        "=",
    )


def _sha512_crypt(cost: int, telling: str | None) -> Code:
    # 512 bits are 85 letters and two bits.
    rounds = "" if cost == 5000 else f"rounds={cost}$"
    return Code("$6$", rounds, *_letters(_CRYPT, 16, telling), "$", Run(_CRYPT, 85), Run(_CRYPT[:4]))


_SCHEMES = {
    "bcrypt": (_bcrypt, 12, range(4, 32)),
    "argon2id": (_argon2id, 3, range(1, 1000)),
    "pbkdf2_sha256": (_pbkdf2, 600_000, range(1, 10_000_001)),
    "sha512_crypt": (_sha512_crypt, 5000, range(1000, 1_000_000_000)),
}
"""What makes a code of each scheme's cost, its usual cost, and those it knows."""


class PasswordHash(_Secret):
    """A hash in the form that password stores keep, of salt and digest at random: no password opens it."""

    name = "password_hash"
    label = "Password hash"
    description = "A hashed password as a database keeps it; no password fits it."
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
            "bcrypt", description="Whose form the hash has; pbkdf2_sha256 as Django writes it."
        )
        cost: int | None = Field(
            None,
            ge=1,
            le=999_999_999,
            description="Rounds as the hash names them: bcrypt 12, argon2id 3, pbkdf2_sha256 600000 and sha512_crypt "
            "5000 if left out.",
            examples=[10],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        make, usual, known = _SCHEMES[options.algorithm]
        cost = usual if options.cost is None else options.cost
        if cost not in known:
            message = f"{options.algorithm} has a cost of {known.start:,} to {known.stop - 1:,}."
            compiler.fault(field, "options.cost", "out_of_range", message)
            return
        self.use_both((options.algorithm, cost), lambda telling: make(cost, telling), compiler)

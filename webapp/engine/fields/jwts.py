"""Signed tokens (RFC 7519): what a program that checks signatures accepts."""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pyarrow as pa
from pydantic import Field

from webapp import limits
from webapp.engine.fields.base import FieldType, OptionsModel
from webapp.engine.fields.code_parts import DIGITS, LOWER, UPPER, Run
from webapp.engine.fields.codes import Code, text_of

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

# RFC 7518, section 3.2: a key of 256 bits or more.
_SECRET = "rowsmith-secret-for-tests-of-256-bits"  # noqa: S105 - published, so that tests can check what it signs
_LEAST_SECRET = 32
_YEAR = 366 * 24 * 3600
_SUBJECT = 15
"""Digits of a subject, and a multiple of three: each letter of base 64 then hangs on one digit or two."""
_SIGNED = 43
_ALPHABET = np.frombuffer((UPPER + LOWER + DIGITS + "-_").encode(), np.uint8)


class Jwt(FieldType):
    """A JSON Web Token with a subject and the times of issue and expiry, signed by HMAC with SHA-256 under a secret
    that is known: the times hang on now, and whoever has the secret can check it."""

    name = "jwt"
    label = "JWT"
    category = "internet"
    description = "A JSON Web Token, signed with HS256 under a secret of your own, valid from now on."
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
            min_length=_LEAST_SECRET,
            max_length=limits.MAX_AFFIX_CHARS,
            description="The key that signs: 32 characters or more. It is not hidden: take one for tests.",
            examples=["another-secret-for-tests-of-256-bits"],
        )
        issuer: str | None = Field(
            None, min_length=1, max_length=limits.MAX_NAME_CHARS, description="The claim iss; none if left out.",
            examples=["https://auth.example"],
        )  # fmt: skip
        expires_in: int = Field(
            3600, ge=1, le=10 * _YEAR, description="Seconds from the issue, which is now, to the expiry."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._key = options.secret.encode()
        self.max_length = _layout(options.issuer, options.expires_in, 10**9).width + 1 + _SIGNED + 8

    def prepare(self, env: Env) -> _Layout:
        return _layout(self.options.issuer, self.options.expires_in, int(env.now.timestamp()))

    def fill(self, cells: Cells) -> pa.Array:
        return self._signed(cells.state, cells.below(10**_SUBJECT))

    def space(self) -> int:
        return 10**_SUBJECT

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self._signed(cells.state, cells.permuted(10**_SUBJECT))

    def _signed(self, layout: _Layout, subject: np.ndarray) -> pa.Array:
        told = layout.spelled(subject)
        out = np.empty((subject.size, layout.width + 1 + _SIGNED), np.uint8)
        out[:, : layout.width] = told
        out[:, layout.width] = ord(".")
        data, key, width = told.tobytes(), self._key, layout.width
        digests = b"".join(
            [hmac.digest(key, data[at : at + width], "sha256") for at in range(0, len(data), width)]
        )
        padded = np.zeros((subject.size, 33), np.uint8)
        padded[:, :32] = np.frombuffer(digests, np.uint8).reshape(-1, 32)
        out[:, layout.width + 1 :] = _base64(padded)[:, :_SIGNED]
        return text_of(out)


class _Layout:
    """Header and claims, of which only the subject differs from row to row."""

    def __init__(self, issuer: str | None, expires_in: int, now: int) -> None:
        claims = {"iat": now, "exp": now + expires_in} | ({"iss": issuer} if issuer is not None else {})
        head = _base64_text(orjson.dumps({"alg": "HS256", "typ": "JWT"}))
        before = orjson.dumps(claims)[:-1] + b',"sub":"'
        # Blanks between claims mean nothing; with them the subject begins a group of three bytes.
        before = b"{" + b" " * (-len(before) % 3) + before[1:]
        self._start = f"{head}.{_base64_text(before)}"
        self._end = _base64_text(b'"}').rstrip("=")
        self._digits = Code(Run(DIGITS, _SUBJECT))
        self.width = len(self._start) + _SUBJECT // 3 * 4 + len(self._end)

    def spelled(self, subject: np.ndarray) -> np.ndarray:
        """``uint8[n, width]``: header, full stop and claims."""
        out = np.empty((subject.size, self.width), np.uint8)
        first, last = len(self._start), self.width - len(self._end)
        out[:, :first] = np.frombuffer(self._start.encode(), np.uint8)
        out[:, first:last] = _base64(self._digits.bytes([subject]))
        out[:, last:] = np.frombuffer(self._end.encode(), np.uint8)
        return out


@lru_cache(maxsize=64)
def _layout(issuer: str | None, expires_in: int, now: int) -> _Layout:
    return _Layout(issuer, expires_in, now)


def _base64(data: np.ndarray) -> np.ndarray:
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
    whole = _base64(np.frombuffer(padded, np.uint8)[None]).tobytes().decode()
    return whole[: -(-len(data) * 8 // 6)]

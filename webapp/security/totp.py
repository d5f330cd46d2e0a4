"""Codes of an authenticator (RFC 6238), the picture that hands its secret over, and recovery codes."""

from __future__ import annotations

import hashlib
import re
from typing import Final

import pyotp
import segno

from webapp import limits
from webapp.security.keys import Random

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32, which has no i, l, o and u
_GROUP: Final = 4
_BLANKS: Final = re.compile(r"[\s-]+")
_MISREAD: Final = str.maketrans("ilo", "110")


def new_secret() -> str:
    """A fresh secret, base 32."""
    return pyotp.random_base32(limits.TOTP_SECRET_CHARS)


def address(secret: str, account: str, issuer: str) -> str:
    """The `otpauth://` address that authenticators read."""
    return _totp(secret).provisioning_uri(name=account, issuer_name=issuer)


def picture(text: str) -> str:
    """A text as a QR code: an inline `<svg>` without style or script, dark on nothing, named for who cannot see it."""
    drawn = segno.make(text, micro=False, error="m")
    return str(
        drawn.svg_inline(
            border=0, svgclass="qr", lineclass=None, title="QR code for your authenticator", omitsize=True
        )
    )


def step_of(secret: str, code: str, now: float, drift: int) -> int | None:
    """Return the time step of a code: the current one or an adjacent one, up to `drift` steps away. None for an invalid
    code. Every candidate is compared in constant time. `now` is in seconds since 1970."""
    totp, present, found = _totp(secret), int(now) // limits.TOTP_STEP_SECONDS, None
    for step in range(present - drift, present + drift + 1):
        if pyotp.utils.strings_equal(totp.generate_otp(step), code):
            found = step
    return found


def _totp(secret: str) -> pyotp.TOTP:
    return pyotp.TOTP(secret, digits=limits.TOTP_DIGITS, interval=limits.TOTP_STEP_SECONDS)


def is_code(text: str) -> bool:
    """Whether a text is what an authenticator shows."""
    return len(text) == limits.TOTP_DIGITS and text.isascii() and text.isdigit()


def clean(text: str) -> str:
    """A code as typed, without the blanks and dashes that people set, in lower case."""
    return _BLANKS.sub("", text).casefold()


def new_recovery_code(random: Random) -> str:
    """A recovery code as it is shown: six groups of four signs, 120 bits. `random(n)` gives n bytes."""
    number = int.from_bytes(random(limits.RECOVERY_CODE_BYTES), "big")
    chars = ""
    for _ in range(limits.RECOVERY_CODE_BYTES * 8 // 5):
        number, digit = divmod(number, len(_ALPHABET))
        chars += _ALPHABET[digit]
    return "-".join(chars[at : at + _GROUP] for at in range(0, len(chars), _GROUP))


def recovery_hash(user_id: str, code: str) -> str:
    """What is stored of a recovery code: 120 random bits need one round of a hash. The person's id is the salt."""
    return hashlib.sha256(
        f"{user_id} {clean(code).translate(_MISREAD)}".encode("utf-8", "surrogateescape")
    ).hexdigest()

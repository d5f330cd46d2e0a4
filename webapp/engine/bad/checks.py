"""Breaking check digits: one character is changed, and the number stops being right."""

from __future__ import annotations

from typing import Final

from webapp.engine.fields.base import FieldType
from webapp.engine.fields.cards import CreditCardNumber
from webapp.engine.fields.code_parts import DIGITS, LOWER, UPPER
from webapp.engine.fields.codes import CodeType
from webapp.engine.fields.finance import Iban

_IBAN_CHECK: Final = 3  # the second of its two check digits (ISO 13616)


def place_of(made: FieldType) -> int | None:
    """Which character of the type's values to change, counted from 0 (-1: the last); None where they have no check
    digit.

    It is a check digit itself, and no other check counts it: each is a function of the characters that it checks, so
    any other digit there is wrong.
    """
    if isinstance(made, CodeType):
        return made.code.check_place
    if isinstance(made, Iban):
        return _IBAN_CHECK
    return -1 if isinstance(made, CreditCardNumber) else None


def broken(text: str, place: int, bits: int) -> str:
    """``text`` with another character of the same class at ``place``.

    Some numbers may be checked in a second way, by ISO 7064 MOD 97-10 over all of it (Dutch VAT numbers since 2020):
    a change that happens to pass that one is not made.
    """
    at = place % len(text)
    sign = text[at]
    alphabet = DIGITS if sign.isdigit() else UPPER if sign.isupper() else LOWER
    first = alphabet.index(sign) + 1 + bits % (len(alphabet) - 1)
    made = text[:at] + alphabet[first % len(alphabet)] + text[at + 1 :]
    if _passes_whole(made):
        # Two characters of one alphabet do not both pass, so the next one that is not the right one will do.
        steps = (alphabet[(first + step) % len(alphabet)] for step in (1, 2))
        made = text[:at] + next(other for other in steps if other != sign) + text[at + 1 :]
    return made


def _passes_whole(text: str) -> bool:
    digits = "".join(str(int(sign, 36)) for sign in text if sign.isascii() and sign.isalnum())
    return bool(digits) and int(digits) % 97 == 1

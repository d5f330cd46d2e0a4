"""Values of the wrong format, by field type: each looks like what it should be, and no validator takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from webapp.engine.fields.codes import CodeType

Misshape = Callable[[str, int], str]
"""What is made of a right text, by random bits."""


def _one_of(*ways: Misshape) -> Misshape:
    return lambda text, bits: ways[bits % len(ways)](text, bits // len(ways))


def fixed(*texts: str) -> Misshape:
    """One of ``texts``, whatever the value was."""
    return lambda text, bits: texts[bits % len(texts)]


def _no_at(text: str, bits: int) -> str:
    return text.replace("@", "", 1)


def _two_ats(text: str, bits: int) -> str:
    return text.replace("@", "@@", 1)


def _no_host(text: str, bits: int) -> str:
    return text.partition("@")[0] + "@"


def _no_scheme(text: str, bits: int) -> str:
    return text.replace("://", "//", 1).replace("http", "htp", 1)


def _blank_host(text: str, bits: int) -> str:
    return text.replace("://", ":// ", 1)


def _empty_label(text: str, bits: int) -> str:
    return text.replace(".", "..", 1) if "." in text else f".{text}"


def _hyphens(text: str, bits: int) -> str:
    return f"-{text}-"


def _beyond(text: str, bits: int) -> str:
    """The last number of a dotted one is larger than a byte."""
    return f"{text.rpartition('.')[0]}.{256 + bits % 700}"


def _short(text: str, bits: int) -> str:
    return text[:-1]


def _not_hex(text: str, bits: int) -> str:
    """One hexadecimal digit is none."""
    places = [at for at, sign in enumerate(text) if sign.isalnum()]
    at = places[bits % len(places)]
    return f"{text[:at]}g{text[at + 1 :]}"


def question_mark(text: str, bits: int) -> str:
    """One letter or digit is a question mark."""
    places = [at for at, sign in enumerate(text) if sign.isalnum()]
    if not places:
        return f"{text}?"
    at = places[bits % len(places)]
    return f"{text[:at]}?{text[at + 1 :]}"


DATES: Final = ("2026-13-45", "2026-02-30", "31/31/2026", "0000-00-00")
MOMENTS: Final = ("2026-13-45T25:61:61Z", "2026-02-30T10:00:00Z", "31/31/2026 24:99")
TIMES: Final = ("25:61:61", "24:99", "12:60:00")

_PHONE: Final = fixed("12", "+", "000", "phone", "+0")

_BY_NAME: Final[Mapping[str, Misshape]] = {
    **dict.fromkeys(("email", "safe_email", "company_email"), _one_of(_no_at, _two_ats, _no_host)),
    **dict.fromkeys(("url", "avatar", "image_url"), _one_of(_no_scheme, _blank_host)),
    **dict.fromkeys(("domain_name", "hostname"), _one_of(_empty_label, _hyphens)),
    **dict.fromkeys(("phone_number", "mobile"), _PHONE),
    **dict.fromkeys(("uuid", "mongodb_objectid"), _one_of(_not_hex, _short)),
    "ulid": _one_of(_short, question_mark),
    "ipv4": _one_of(_beyond, lambda text, bits: text.rpartition(".")[0]),
    "ipv6": _not_hex,
    "mac_address": _one_of(_not_hex, _short),
    "iban": question_mark,
    "credit_card_number": question_mark,
    "cvv": question_mark,
    "card_expiry": fixed("13/99", "00/00", "99-99"),
    **dict.fromkeys(("date", "date_of_birth", "business_day", "date_relative"), fixed(*DATES)),
    **dict.fromkeys(("datetime", "time_series"), fixed(*MOMENTS)),
    "time": fixed(*TIMES),
}


def of_type(name: str, kind: type) -> Misshape | None:
    """How texts of a type are misshaped; None where any text will do for the type."""
    found = _BY_NAME.get(name)
    if found is None and issubclass(kind, CodeType):
        return question_mark
    return found

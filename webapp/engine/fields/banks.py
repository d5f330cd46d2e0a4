"""Bank account numbers by country: the structures of the IBAN registry, with national check digits inside."""

from __future__ import annotations

import re
from functools import cache

from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.fields import checksums
from webapp.engine.fields.code_parts import DIGITS, UPPER, Check, Part, Pick, Run, width_of
from webapp.engine.fields.codes import Code

_PIECE = re.compile(r"(\d+)!([nac])")

COMMON = ("DE", "ES", "FR", "GB", "IT", "NL")
"""Countries of accounts where neither a country nor a locale says otherwise."""

_OTHER_BIC_COUNTRIES = ("AU", "CA", "CN", "HK", "IN", "JP", "KR", "MX", "NZ", "SG", "US", "ZA")


def countries(vocabulary: Vocabulary) -> tuple[str, ...]:
    """ISO codes of the countries that have IBANs, in alphabetical order."""
    return vocabulary.shared("iban countries", lambda: tuple(vocabulary.table("iban")["country"].to_pylist()))


def bic_countries(vocabulary: Vocabulary) -> tuple[str, ...]:
    """ISO codes of the countries that bank identifiers are made for: those of IBANs, and some large ones more."""
    return tuple(sorted({*countries(vocabulary), *_OTHER_BIC_COUNTRIES}))


def iban(vocabulary: Vocabulary, country: str, formatted: bool) -> Code:
    """The IBANs of one country, in groups of four where ``formatted``. Positions that the registry opens to digits
    and letters get digits, as banks do."""
    return vocabulary.shared(("iban", country, formatted), lambda: _iban(vocabulary, country, formatted))


def _iban(vocabulary: Vocabulary, country: str, formatted: bool) -> Code:
    table = vocabulary.table("iban")
    structure = dict(zip(table["country"].to_pylist(), table["structure"].to_pylist(), strict=True))[country]
    kinds = "".join(("a" if kind == "a" else "n") * int(count) for count, kind in _PIECE.findall(structure))
    parts: list[Part] = [country, checksums.iban(kinds)]
    inside, at = _inside(vocabulary, country), 4
    while at < len(kinds) + 4:
        part = inside.get(at)
        if part is None:
            end = min((place for place in inside if place > at), default=len(kinds) + 4)
            run = len(kinds[at - 4 : end - 4]) - len(kinds[at - 4 : end - 4].lstrip(kinds[at - 4]))
            part = Run(UPPER if kinds[at - 4] == "a" else DIGITS, run)
        parts.append(part)
        at += width_of(part)
    return Code(*parts, every=4 if formatted else 0)


def _inside(vocabulary: Vocabulary, country: str) -> dict[int, Part]:
    """What stands inside a country's numbers beside free characters, by position in the IBAN."""
    made = _schemes().get(country, {})
    if country == "BE":
        made = {4: Pick(tuple(vocabulary.words("belgian_bank").to_pylist())), **made}
    return made


def _from(first: int, *weights: int) -> list[int]:
    return [0] * first + list(weights)


def _spanish(rest: int) -> str:
    # 11 less the remainder; 10 is printed as 1 and 11 as 0.
    return str(rest if rest < 2 else 11 - rest)


def _icelandic_days() -> Pick:
    days = [f"{day:02d}{month:02d}" for month in range(1, 13) for day in range(1, 29)]
    return Pick(tuple(f"{day}{year:02d}" for year in range(30, 100) for day in days))


_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def _italian(position: int, character: str) -> int:
    # The letter before bank, branch and account: odd characters by a table, even ones as they are.
    if position < 5:
        return 0
    number = int(character) if character.isdigit() else ord(character) - 65
    return _ODD[number] if position % 2 else number


_POWERS = [pow(2, place, 11) for place in range(10)]
_CZECH = (6, 3, 7, 9, 10, 5, 8, 4, 2)
_PAYMENT = (9, 7, 3, 1)


@cache
def _schemes() -> dict[str, dict[int, Part]]:
    return {
        "AL": {11: checksums.weighted(_from(4, *_PAYMENT, *_PAYMENT[:3]), 10, checksums.complement(10))},
        "BE": {14: checksums.remainder_97(10, 4)},
        **{country: {13: checksums.weighted(_from(8, *_CZECH[4:]), 11, checksums.complement(11)),
                     23: checksums.weighted(_from(14, *_CZECH), 11, checksums.complement(11))}
           for country in ("CZ", "SK")},
        "EE": {19: checksums.weighted(_from(6, 7, *(1, 3, 7) * 4), 10, checksums.complement(10))},
        "ES": {12: checksums.weighted(_from(4, *_POWERS[2:]), 11, _spanish),
               13: checksums.weighted(_from(14, *_POWERS), 11, _spanish)},
        "FI": {17: checksums.luhn(13, 4)},
        "HU": {11: checksums.weighted(_from(4, *_PAYMENT, *_PAYMENT[:3]), 10, checksums.complement(10)),
               27: checksums.weighted(_from(12, *(_PAYMENT * 4)[:15]), 10, checksums.complement(10))},
        "IS": {16: _icelandic_days(), 25: "9",
               24: checksums.weighted(_from(16, 3, 2, 7, 6, 5, 4, 3, 2), 11, checksums.complement(11))},
        **{country: {4: Check(26, _italian, tuple(UPPER))} for country in ("IT", "SM")},
        "MU": {27: "MUR"},
        # Numbers with 0000 or 00 in front of the account are checked otherwise.
        "NO": {4: Run(DIGITS[1:]), 8: Pick(tuple(f"{pair:02d}" for pair in range(1, 100))),
               14: checksums.weighted(_from(4, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11, checksums.complement(11))},
        "PL": {11: checksums.weighted(_from(4, 3, 9, 7, 1, 3, 9, 7), 10, checksums.complement(10))},
        "SC": {28: "SCR"},
        # The key of a French RIB: bank, branch, account and key together are a multiple of 97.
        **{country: {width + 2: checksums.mod_97_10(width - 2, 4, 97)} for country, width in
           {"BI": 23, "DJ": 23, "FR": 23, "MC": 23, "MR": 23, "TN": 20}.items()},
        # ISO 7064 MOD 97-10 over the whole account number.
        **{country: {width + 2: checksums.mod_97_10(width - 2, 4)} for country, width in
           {"BA": 16, "ME": 18, "MK": 15, "PT": 21, "RS": 18, "SI": 15, "ST": 21, "TL": 19, "XK": 16}.items()},
    }  # fmt: skip

"""Numbers by which countries know their people, as the parts of a `Code`.

A date of birth inside a number is one from 1954 to 1999, which every scheme writes in its usual way.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from webapp.engine.fields import checksums, national
from webapp.engine.fields.checksums import complement, weighted
from webapp.engine.fields.code_parts import DIGITS, UPPER, Check, Gap, Machine, Pick, Run
from webapp.engine.fields.codes import Code
from webapp.engine.fields.national import Parts, digits, like, numbers

if TYPE_CHECKING:
    from webapp.engine.data.vocabulary import Vocabulary

_FIRST_DAY, _LAST_DAY = date(1954, 1, 1), date(1999, 12, 31)
_FIRST = Run(DIGITS[1:])
_CONSONANTS = "BCDFGHJKLMNPQRSTVWXYZ"


@cache
def _born(form: str, days: int = 0, months: int = 0) -> Pick:
    """Days of birth as ``form`` writes them; ``days`` or ``months`` are added for women where the number says so."""
    every = [_FIRST_DAY + timedelta(days=n) for n in range((_LAST_DAY - _FIRST_DAY).days + 1)]
    texts = []
    for more in (0, 1) if days or months else (0,):
        texts += [
            form.format(y=day.year % 100, m=day.month + more * months, d=day.day + more * days, year=day.year,
                        letter="ABCDEHLMPRST"[day.month - 1], short=day.year % 1000)
            for day in every
        ]  # fmt: skip
    return Pick(tuple(texts))


_YMD, _DMY = "{y:02d}{m:02d}{d:02d}", "{d:02d}{m:02d}{y:02d}"


def _or_zero(rest: int) -> str:
    return str(rest % 10)


def _complement_or_zero(rest: int) -> str:
    return str(-rest % 11 % 10)


def _twice() -> Check:
    """Estonia's and Lithuania's: a second row of weights where the first leaves ten, and 0 where that does too."""
    first, second, most = (1, 2, 3, 4, 5, 6, 7, 8, 9, 1), (3, 4, 5, 6, 7, 8, 9, 1, 2, 3), 101

    def value(position: int, character: str) -> int:
        digit = int(character)
        return digit * first[position] % 11 + most * (digit * second[position] % 11)

    def spelled(rest: int) -> str:
        one, other = rest % most % 11, rest // most % 11
        return str(one if one < 10 else other % 10)

    return Check(most * most, value, tuple(map(spelled, range(most * most))))


# Verhoeff, "Error Detecting Decimal Codes", 1969: the dihedral group of ten, and a permutation by place.
_ROTATED = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def _times(one: int, other: int) -> int:
    turned = -other if one >= 5 else other
    return (one % 5 + turned) % 5 + 5 * ((one >= 5) != (other >= 5))


def _verhoeff(width: int) -> Machine:
    """The check digit after ``width`` digits. A state is ten times the digits read, and their product."""

    def step(state: int, character: str) -> int:
        read, product = divmod(state, 10)
        digit = int(character)
        for _ in range((width - read) % 8):
            digit = _ROTATED[digit]
        return min(read + 1, width) * 10 + _times(digit, product)

    inverse = {product: next(n for n in range(10) if _times(n, product) == 0) for product in range(10)}
    return Machine(
        10 * (width + 1), 0, step, tuple(str(inverse[state % 10]) for state in range(10 * (width + 1)))
    )


def _portuguese(position: int, character: str) -> int:
    worth = checksums.worth(character)
    twice = 2 * worth - 9 * (2 * worth > 9)
    return twice if position % 2 == 0 else worth


_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def _italian(position: int, character: str) -> int:
    number = int(character) if character.isdigit() else ord(character) - ord("A")
    return _ODD[number] if position % 2 == 0 else number


_MEXICAN = "0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ"
_STATES = (
    "AS BC BS CC CH CL CM CS DF DG GR GT HG JC MC MN MS NE NL NT OC PL QR QT SL SP SR TC TL TS VZ YN ZS"
).split()


def _mexican(position: int, character: str) -> int:
    return _MEXICAN.index(character) * (18 - position)


def _thai(position: int, character: str) -> int:
    return (2 - position) * int(character) % 11


_DIFFERENT = Pick(tuple(f"{pair:02d}" for pair in range(100) if pair % 11))
"""Two digits that are not alike."""
_CZECH = lambda _: (_born(_YMD, months=50), Gap("/"), digits(3),  # noqa: E731
                    weighted([pow(10, 8 - place, 11) for place in range(9)], 11, _or_zero))  # fmt: skip
_BALTIC = lambda _: (Run("34"), _born(_YMD), digits(3), _twice())  # noqa: E731
_AREAS = tuple(f"{area:03d}" for area in range(1, 900) if area not in (78, 219, 457, 666))

SCHEMES: dict[str, tuple[str, Callable[[Vocabulary], Parts]]] = {
    "AR": ("DNI", lambda _: (Run("1234"), *like("#.###.###"))),
    "AT": ("VNR", lambda _: (_FIRST, digits(2), weighted((3, 7, 9, 0, 5, 8, 4, 2, 1, 6), 11, checksums.remainder),
                             Gap(" "), numbers(1, 28, 2), numbers(1, 12, 2), Run("56789"), Run(DIGITS))),
    "BE": ("NN", lambda _: (_born("{y:02d}{m:02d}{d:02d}"), Gap("-"), numbers(1, 997, 3), Gap("."),
                            weighted([pow(10, 8 - n, 97) for n in range(9)], 97, lambda rest: f"{97 - rest:02d}"))),
    "BG": ("EGN", lambda _: (_born(_YMD), digits(3), weighted((2, 4, 8, 5, 10, 9, 7, 3, 6), 11, _or_zero))),
    "CA": ("SIN", lambda _: (Run("1234567"), *like("##-###-##"), checksums.luhn(8))),
    "CH": ("AHV", lambda _: ("756", *like(".####.####.#"), checksums.gs1(12))),
    "CN": ("RIC", lambda _: (Pick(("110101", "110105", "110108", "120101", "310101", "310104")),
                             _born("{year}{m:02d}{d:02d}"), digits(3),
                             weighted([pow(2, 17 - place, 11) for place in range(17)], 11, "10X98765432"))),
    "CR": ("Cédula", lambda _: ("0", Run("1234567"), *like("-####-####"))),
    "CZ": ("Rodné číslo", _CZECH),
    "DK": ("CPR", lambda _: (_born(_DMY), Gap("-"), Run("0123"), digits(3))),
    "DO": ("Cédula", lambda _: (_FIRST, *like("##-#######-"), checksums.luhn(10))),
    "EC": ("CI", lambda _: (numbers(1, 24, 2), Run("012345"), digits(6), Gap("-"), checksums.luhn(9))),
    "EE": ("Isikukood", _BALTIC),
    "FI": ("HETU", lambda _: (_born(_DMY), Gap("-"), numbers(2, 899, 3),
                              weighted([pow(10, 8 - place, 31) for place in range(9)], 31,
                                       "0123456789ABCDEFHJKLMNPRSTUVWXY"))),
    "FR": ("NIR", lambda _: (Run("12"), _born("{y:02d}{m:02d}"), numbers(1, 19, 2), numbers(1, 989, 3),
                             numbers(1, 999, 3), Gap(" "),
                             weighted([pow(10, 12 - n, 97) for n in range(13)], 97, lambda rest: f"{97 - rest:02d}"))),
    "GB": ("NHS number", lambda _: ("999", Gap(" "), *like("### ###"),
                                    weighted((10, 9, 8, 7, 6, 5, 4, 3, 2), 11, complement(11)))),
    "GR": ("AMKA", lambda _: (_born(_DMY), digits(4), checksums.luhn(10))),
    "ID": ("NIK", lambda _: (Pick(("1271", "3171", "3273", "3374", "3578", "5171")), numbers(1, 20, 2),
                             _born(_DMY, days=40), numbers(1, 9999, 4))),
    "IL": ("Mispar Zehut", lambda _: (_FIRST, *like("#######-"), checksums.luhn(8))),
    "IN": ("Aadhaar", lambda _: (Run("23456789"), Run(DIGITS), digits(2), Gap(" "), Run(DIGITS), _DIFFERENT,
                                 Run(DIGITS), Gap(" "), digits(2), Run(DIGITS), _verhoeff(11))),
    "IS": ("Kennitala", lambda _: (_born(_DMY), Gap("-"), Run("23456789"), Run(DIGITS),
                                   weighted((3, 2, 7, 6, 5, 4, 3, 2), 11, complement(11)), "9")),
    "IT": ("Codice fiscale", lambda _: (Run(UPPER, 6), _born("{y:02d}{letter}{d:02d}", days=40), Pick((
        "H501", "F205", "L219", "D612", "A944", "G273", "F839", "D969", "C351", "A662")),
        Check(26, _italian, tuple(UPPER)))),
    "JP": ("My Number", lambda _: (*like("#### #### ###"),
                                   weighted((6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11, _complement_or_zero))),
    "KR": ("RRN", lambda _: (_born(_YMD), Gap("-"), Run("12"), numbers(0, 95, 2), digits(3),
                             weighted((2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), 11, lambda rest: str((11 - rest) % 10)))),
    "LT": ("Asmens kodas", _BALTIC),
    "LV": ("Personas kods", lambda _: ("32", *like("####-####"), weighted(
        (10, 5, 8, 4, 2, 1, 6, 3, 7, 9), 11, lambda rest: str((1 + rest) % 11 % 10)))),
    "MX": ("CURP", lambda _: (Run(_CONSONANTS), Run("AEIOU"), Run(_CONSONANTS, 2), _born(_YMD), Run("HM"),
                              Pick(tuple(_STATES)), Run(_CONSONANTS, 3), Run(DIGITS),
                              Check(10, _mexican, tuple(str(-rest % 10) for rest in range(10))))),
    "MY": ("NRIC", lambda _: (_born(_YMD), Gap("-"), numbers(1, 14, 2), Gap("-"), digits(4))),
    "PE": ("CUI", lambda _: (digits(8), Gap("-"), weighted((3, 2, 7, 6, 5, 4, 3, 2), 11, "65432110987"))),
    "PK": ("CNIC", lambda _: (Run("1234567"), *like("####-#######-"), _FIRST)),
    "PL": ("PESEL", lambda _: (_born(_YMD), digits(4), weighted((1, 3, 7, 9, 1, 3, 7, 9, 1, 3), 10, complement(10)))),
    "PT": ("CC", lambda _: (_FIRST, digits(7), Gap(" "), weighted((9, 8, 7, 6, 5, 4, 3, 2), 11, _complement_or_zero),
                            Gap(" "), Pick(("ZZ", "ZY", "ZX", "ZW", "ZV")),
                            Check(10, _portuguese, tuple(str(-rest % 10) for rest in range(10))))),
    "RO": ("CNP", lambda _: (Run("12"), _born(_YMD), numbers(1, 46, 2), numbers(1, 999, 3), weighted(
        (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9), 11, lambda rest: str(rest) if rest < 10 else "1"))),
    "SE": ("Personnummer", lambda _: (_born(_YMD), Gap("-"), digits(3), checksums.luhn(9))),
    "SI": ("EMŠO", lambda _: (_born("{d:02d}{m:02d}{short:03d}"), "50", digits(3),
                              weighted((7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11, _complement_or_zero))),
    "SK": ("Rodné číslo", _CZECH),
    "TH": ("PIN", lambda _: (Run("12345678"), *like("-####-#####-##-"),
                             Check(11, _thai, tuple(str((1 - rest) % 10) for rest in range(11))))),
    "TR": ("T.C. Kimlik", lambda _: (_FIRST, digits(8), weighted((3, 1, 3, 1, 3, 1, 3, 1, 3), 10, complement(10)),
                                     weighted([1] * 10, 10, _or_zero))),
    "US": ("SSN", lambda _: (Pick(_AREAS), Gap("-"), numbers(1, 99, 2), Gap("-"), numbers(1, 9999, 4))),
    "ZA": ("ID number", lambda _: (_born(_YMD), digits(4), "08", checksums.luhn(12))),
}  # fmt: skip
"""Country: (what its number is called, its parts)."""

_BY_TAX = {
    "BR": "CPF",
    "CL": "RUT",
    "DE": "Steuer-ID",
    "ES": "DNI",
    "HR": "OIB",
    "IE": "PPS",
    "NL": "BSN",
    "UA": "RNTRC",
}
"""Countries that know people by the number that their tax offices use."""

COUNTRIES = tuple(sorted([*SCHEMES, *_BY_TAX, "NO"]))


def number_name(country: str) -> str:
    """What ``country`` (of `COUNTRIES`) calls its number."""
    return "Fødselsnummer" if country == "NO" else _BY_TAX.get(country) or SCHEMES[country][0]


def national_id(vocabulary: Vocabulary, country: str) -> Code:
    """The numbers of ``country`` (of `COUNTRIES`)."""
    if country in _BY_TAX:
        return national.tax_number(vocabulary, country)
    if country == "NO":
        return vocabulary.shared("national id NO", NorwegianNumber)
    return vocabulary.shared(("national id", country), lambda: Code(*SCHEMES[country][1](vocabulary)))


class NorwegianNumber(Code):
    """Day of birth, three digits below 500, and two check digits, neither of which may come out as ten.

    By the day's share of both sums a number has some of the 500 it may go on with; each day uses as many of them as
    every day has.
    """

    def __init__(self) -> None:
        days = np.array([[int(sign) for sign in text] for text in _born(_DMY).texts])
        serials = np.array([[int(sign) for sign in f"{n:03d}"] for n in range(500)])
        first, second = np.array((3, 7, 6, 1, 8, 9, 4, 5, 2)), np.array((5, 4, 3, 2, 7, 6, 5, 4, 3))
        shares = days @ first[:6] % 11 * 11 + days @ second[:6] % 11
        endings: list[list[bytes]] = []
        for share in range(121):
            one = -(share // 11 + serials @ first[6:]) % 11
            two = -(share % 11 + serials @ second[6:] + 2 * one) % 11
            fits = np.flatnonzero((one < 10) & (two < 10))
            endings.append([b"%03d%d%d" % (n, one[n], two[n]) for n in fits])
        count = min(map(len, endings))
        kept = b"".join(ending for one in endings for ending in one[:count])
        self._endings = np.frombuffer(kept, np.uint8).reshape(121, count, 5)
        self._days, self._shares = (days + 48).astype(np.uint8), shares
        self._count = count
        self.width = 11
        self.sizes = [len(days) * count]
        self.space = self.sizes[0]

    def bytes(self, draws: list[np.ndarray]) -> np.ndarray:
        day, ending = np.divmod(draws[0].view(np.int64), self._count)
        out = np.empty((day.size, 11), np.uint8)
        out[:, :6] = self._days[day]
        out[:, 6:] = self._endings[self._shares[day], ending]
        return out

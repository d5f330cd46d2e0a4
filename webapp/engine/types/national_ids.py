"""National numbers of people as engine 2 has them: a day of birth and a sex in a number are those of the row.

A number is declared as the parts of a `Code`, as in ``government.py``. Parts that follow the person are `RowInput`:
their values are ``birth`` (days since `FIRST_DAY`), ``sex`` (0 for women, 1 for men) and ``person`` (both). Numbers
without such parts are those of ``government.py`` where it has them. Sources: the published descriptions that
python-stdnum cites for each country; tests compare every number with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import cache, partial, reduce
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from webapp.engine.types import codes, government
from webapp.engine.types.codes import (
    DIGITS,
    UPPER,
    Check,
    Code,
    Gap,
    Pick,
    RowInput,
    Run,
    complement,
    weighted,
)
from webapp.engine.types.government import Parts, digits, like, numbers

if TYPE_CHECKING:
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.types.person import People

FIRST_DAY: Final = date(1900, 1, 1)
_LAST_DAY: Final = date(2039, 12, 31)
DAYS: Final = (_LAST_DAY - FIRST_DAY).days + 1
"""Days of birth that numbers can have; people born earlier have numbers of the first day."""
BIRTH, SEX, PERSON = "birth", "sex", "person"
WOMAN, MAN = 0, 1


@cache
def _calendar() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Year, month and day of every day of birth, ``int64[days]``."""
    every = [FIRST_DAY + timedelta(days=n) for n in range(DAYS)]
    return tuple(np.array([getattr(day, part) for day in every]) for part in ("year", "month", "day"))  # type: ignore[return-value]


def _digit_columns(columns: Sequence[tuple[np.ndarray, int]]) -> np.ndarray:
    """Return numbers next to each other, each with a fixed number of digits, as ``uint8[n, width]``."""
    columns_of_digits = [
        column // 10**place % 10 for column, width in columns for place in range(width - 1, -1, -1)
    ]
    return np.ascontiguousarray(np.stack(columns_of_digits, axis=1).astype(np.uint8) + 48)


_LETTERS_OF_MONTHS = np.frombuffer(b"ABCDEHLMPRST", np.uint8)


def _birth(
    form: str,
    month: Callable[[np.ndarray, int], np.ndarray | int] | None = None,
    day: int = 0,
) -> RowInput:
    """Day of birth: in ``form`` y is a year of two digits, Y of four, Z of three, m, d and L (a letter) the month and
    the day. ``month(years, sex)`` is added to the month, ``day`` to the day of women."""
    depends_on_sex = day != 0 or (
        month is not None and bool(np.any(month(np.array([1980]), WOMAN) != month(np.array([1980]), MAN)))
    )
    pieces = []
    for sex in (WOMAN, MAN) if depends_on_sex else (MAN,):
        years, months, days = _calendar()
        months = months + (month(years, sex) if month is not None else 0)
        days = days + (day if sex == WOMAN else 0)
        columns_by_sign = {
            "y": (years % 100, 2),
            "Y": (years, 4),
            "Z": (years % 1000, 3),
            "m": (months, 2),
            "d": (days, 2),
        }
        columns = [
            _LETTERS_OF_MONTHS[_calendar()[1] - 1][:, None]
            if sign == "L"
            else _digit_columns([columns_by_sign[sign]])
            for sign in form
        ]
        pieces.append(np.concatenate(columns, axis=1))
    return RowInput(PERSON if depends_on_sex else BIRTH, np.ascontiguousarray(np.concatenate(pieces)))


def _texts(rows: Sequence[str]) -> np.ndarray:
    return np.ascontiguousarray(np.array([list(text.encode()) for text in rows], np.uint8))


def _by_sex(women: Sequence[str], men: Sequence[str]) -> RowInput:
    """One of some texts for women, and of as many for men."""
    if len(women) != len(men):
        raise ValueError("women and men must have the same number of texts")
    return RowInput(SEX, _texts([*women, *men]), len(women))


EVEN_WOMEN = ("02468", "13579")


def _parity(women: str = EVEN_WOMEN[0], men: str = EVEN_WOMEN[1]) -> RowInput:
    """A digit that shows the sex."""
    return _by_sex(women, men)


def _by_year(texts: Callable[[int], Sequence[str]], counts: bool = True) -> RowInput:
    """One of some texts that the year of birth has; each year has as many."""
    years = _calendar()[0]
    of_year = [list(texts(year)) for year in range(int(years[0]), int(years[-1]) + 1)]
    each = len(of_year[0])
    table = _texts([text for listed in of_year for text in listed]).reshape(len(of_year), each, -1)
    spellings = table[years - years[0]].reshape(len(years) * each, -1)
    return RowInput(BIRTH, np.ascontiguousarray(spellings), each, counts)


def _by_person(text: Callable[[int, int], str]) -> RowInput:
    """A text by year of birth and sex."""
    years = _calendar()[0]
    span = range(int(years[0]), int(years[-1]) + 1)
    tables = [_texts([text(year, sex) for year in span])[years - years[0]] for sex in (WOMAN, MAN)]
    return RowInput(PERSON, np.ascontiguousarray(np.concatenate(tables)))


def _century(signs: str = "3456") -> RowInput:
    """Men and women of the twentieth century, then of the twenty-first."""
    return _by_person(lambda year, sex: signs[(year >= 2000) * 2 + (sex == WOMAN)])


class BirthDateCode(Code):
    """Numbers with one format for people born before a day, and another one after it."""

    def __init__(self, day: date, before: Code, after: Code) -> None:
        self._day, self._before, self._after = (day - FIRST_DAY).days, before, after
        self.inputs = tuple(dict.fromkeys((BIRTH, *before.inputs, *after.inputs)))
        self.width = max(before.width, after.width)
        sizes = [code.sizes for code in (before, after)]
        if any(len(size) != 1 for size in sizes):
            raise ValueError("only numbers with a single random value are supported")
        self.sizes = [min(sizes[0][0], sizes[1][0])]
        self.space = self.sizes[0]

    @property
    def check_position(self) -> int | None:
        return (
            self._before.check_position if self._before.check_position == self._after.check_position else None
        )

    def text(self, draws: list[np.ndarray], inputs: Mapping[str, np.ndarray] | None = None) -> pa.Array:
        assert inputs is not None
        is_late = inputs[BIRTH] >= self._day
        pieces, order = [], []
        for code, rows in ((self._before, np.flatnonzero(~is_late)), (self._after, np.flatnonzero(is_late))):
            if rows.size:
                pieces.append(
                    code.text([draw[rows] for draw in draws], {k: v[rows] for k, v in inputs.items()})
                )
                order.append(rows)
        if not pieces:
            return pa.array([], pa.string())
        place = np.empty(is_late.size, np.int64)
        place[np.concatenate(order)] = np.arange(is_late.size)
        return pa.concat_arrays(pieces).take(pa.array(place))

    def bytes(self, draws: list[np.ndarray], inputs: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        raise TypeError("these numbers have different lengths")


class NorwegianNumber(Code):
    """Day of birth, three digits by century and sex, and two check digits, neither of which may come out as ten.

    By the day's share of both sums, the century and the sex a number has one of some endings; each has as many.
    """

    inputs = (BIRTH, SEX)
    check_position = 10

    def __init__(self) -> None:
        days = (_birth("dmy").spellings - 48).astype(np.int64)
        first, second = np.array((3, 7, 6, 1, 8, 9, 4, 5, 2)), np.array((5, 4, 3, 2, 7, 6, 5, 4, 3))
        self._shares = days @ first[:6] % 11 * 11 + days @ second[:6] % 11
        self._late = (_calendar()[0] >= 2000).astype(np.int64)
        endings: list[list[bytes]] = []
        for is_late in (0, 1):
            for sex in (WOMAN, MAN):
                serials = [n for n in range(is_late * 500, is_late * 500 + 500) if n % 2 == sex]
                serial_digits = np.array([[int(sign) for sign in f"{n:03d}"] for n in serials])
                for share in range(121):
                    one = -(share // 11 + serial_digits @ first[6:]) % 11
                    two = -(share % 11 + serial_digits @ second[6:] + 2 * one) % 11
                    valid = np.flatnonzero((one < 10) & (two < 10))
                    endings.append([b"%03d%d%d" % (serials[n], one[n], two[n]) for n in valid])
        self._count = min(map(len, endings))
        endings_text = b"".join(ending for listed in endings for ending in listed[: self._count])
        self._endings = np.frombuffer(endings_text, np.uint8).reshape(4 * 121, self._count, 5)
        self._days = (days + 48).astype(np.uint8)
        self.width = 11
        self.sizes = [self._count]
        self.space = self._count

    def bytes(self, draws: list[np.ndarray], inputs: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        assert inputs is not None
        day, sex = inputs[BIRTH], inputs[SEX]
        out = np.empty((day.size, 11), np.uint8)
        out[:, :6] = self._days[day]
        kind = (self._late[day] * 2 + sex) * 121 + self._shares[day]
        out[:, 6:] = self._endings[kind, draws[0].view(np.int64)]
        return out


def _belgian(late: bool) -> Code:
    base = 2_000_000_000 if late else 0
    serial = _by_sex([f"{n:03d}" for n in range(2, 998, 2)], [f"{n:03d}" for n in range(1, 997, 2)])
    check = weighted(
        [pow(10, 8 - n, 97) for n in range(9)], 97, lambda rest: f"{97 - (rest + base) % 97:02d}"
    )
    return Code(_birth("ymd"), Gap("-"), serial, Gap("."), check)


def _hungarian(late: bool) -> Code:
    weights = range(10, 0, -1) if late else range(1, 11)
    sign = _by_person(lambda year, sex: "1234"[(year >= 2000) * 2 + (sex == WOMAN)])
    return Code(
        sign,
        Gap("-"),
        _birth("ymd"),
        Gap("-"),
        digits(3),
        weighted(list(weights), 11, codes.remainder),
    )


def _czech(late: bool) -> Code:
    day = _birth("ymd", lambda years, sex: np.full_like(years, 50 * (sex == WOMAN)))
    if not late:
        return Code(day, Gap("/"), digits(3))
    check = weighted([pow(10, 8 - place, 11) for place in range(9)], 11, lambda rest: str(rest % 10))
    return Code(day, Gap("/"), digits(3), check)


def _former_yugoslavia(region: Sequence[str]) -> Parts:
    serial = _by_sex([f"{n:03d}" for n in range(500, 1000)], [f"{n:03d}" for n in range(500)])
    check = weighted((7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11, lambda rest: str(-rest % 11 % 10))
    return (_birth("dmZ"), Pick(tuple(region)), serial, check)


def _taiwanese(position: int, character: str) -> int:
    if position == 0:
        number = dict(zip("ABCDEFGHJKLMNPQRSTUVXYWZIO", range(10, 36), strict=True))[character]
        return number // 10 + number % 10 * 9
    return int(character) * (9 - position)


def _sri_lankan_day() -> RowInput:
    years = _calendar()[0]
    starts = np.searchsorted(years, years)
    # Numbers count 29 February in every year.
    of_year = np.arange(DAYS) - starts + 1
    leap = (years % 4 == 0) & ((years % 100 != 0) | (years % 400 == 0))
    of_year = of_year + ((of_year > 59) & ~leap)
    pieces = [_digit_columns([(years, 4), (of_year + 500 * (sex == WOMAN), 3)]) for sex in (WOMAN, MAN)]
    return RowInput(PERSON, np.ascontiguousarray(np.concatenate(pieces)))


def _albanian_decade(year: int) -> str:
    return "0123456789ABCDEFGHIJKLMNOPQRST"[(year - 1800) // 10] if year >= 1900 else "A"


def _fifty_for_women(years: np.ndarray, sex: int) -> np.ndarray:
    return np.full_like(years, 50 * (sex == WOMAN))


_MY_PLACES = tuple(f"{n:02d}" for n in range(1, 17))
_EG_PLACES = (
    "01",
    "02",
    "03",
    "04",
    "11",
    "12",
    "13",
    "14",
    "15",
    "16",
    "17",
    "18",
    "19",
    "21",
    "22",
    "23",
    "24",
    "25",
)
_VN_PLACES = ("001", "079", "031", "048", "092", "026", "038", "040", "056", "075", "089")

_ITALIAN_PLACES = Pick(("H501", "F205", "L219", "D612", "A944", "G273", "F839", "D969", "C351", "A662"))
_MEXICAN_CONSONANTS = "BCDFGHJLMNPRSTV"
_CURP_CHECK = Check(10, government.curp_weight, tuple(str(-rest % 10) for rest in range(10)))

PERSON_CODES: dict[str, tuple[str, Callable[[], Code]]] = {
    "AE": ("Emirates ID", lambda: Code("784", Gap("-"), _birth("Y"), Gap("-"), digits(7), Gap("-"), codes.luhn(14))),
    "AL": ("NID", lambda: Code(
        RowInput(BIRTH, _texts([_albanian_decade(y) + str(y % 10) for y in _calendar()[0].tolist()])),
        _birth("md", _fifty_for_women), digits(3), Run("ABCDEFGHIJKLMNOPQRSTUVW"))),
    "AM": ("PSN", lambda: Code(Run("123456789"), digits(9))),
    "AT": ("VNR", lambda: Code(Run("123456789"), digits(2),
                               weighted((3, 7, 9, 0, 5, 8, 4, 2, 1, 6), 11, codes.remainder), Gap(" "),
                               _birth("dmy"))),
    "AU": ("TFN", lambda: Code(*government.TAX["AU"][1](None))),  # type: ignore[arg-type]
    "AZ": ("FIN", lambda: Code(Run("123456789ABCDEFGHJKLMNPQRSTUVWXYZ"), Run("0123456789ABCDEFGHJKLMNPQRSTUVWXYZ", 6))),
    "BA": ("JMBG", lambda: Code(*_former_yugoslavia([f"{n}" for n in range(10, 20)]))),
    "BD": ("NID", lambda: Code(Run("123456789"), digits(9))),
    "BE": ("NN", lambda: BirthDateCode(date(2000, 1, 1), _belgian(False), _belgian(True))),
    "BG": ("EGN", lambda: Code(
        _birth("ymd", lambda years, _sex: np.where(years >= 2000, 40, 0)), digits(2), _parity("13579", "02468"),
        weighted((2, 4, 8, 5, 10, 9, 7, 3, 6), 11, lambda rest: str(rest % 10)))),
    "BH": ("CPR", lambda: Code(_birth("ym"), digits(5))),
    "CN": ("RIC", lambda: Code(
        Pick(("110101", "110105", "110108", "120101", "310101", "310104")),
        _birth("Ymd"), digits(2), _parity(),
        weighted([pow(2, 17 - place, 11) for place in range(17)], 11, "10X98765432"))),
    "CO": ("NUIP", lambda: Code("1", digits(9))),
    "CY": ("ID number", lambda: Code("00", Run("123456789"), digits(7))),
    "CZ": ("Rodné číslo", lambda: BirthDateCode(date(1954, 1, 1), _czech(False), _czech(True))),
    "DK": ("CPR", lambda: Code(_birth("dmy"), Gap("-"), _by_year(lambda y: "0123" if y < 2000 else "4567"), digits(2),
                               _parity())),
    "DZ": ("NIN", lambda: Code("1", digits(17))),
    "EE": ("Isikukood", lambda: Code(_century(), _birth("ymd"), digits(3), government.two_pass_check())),
    "EG": ("National ID", lambda: Code(
        _by_year(lambda y: ("2" if y < 2000 else "3",)), _birth("ymd"), Pick(_EG_PLACES), digits(3), _parity(),
        weighted((2, 7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11, lambda rest: str((11 - rest) % 10)))),
    "ET": ("FIN", lambda: Code(Run("23456789"), digits(11))),
    "FI": ("HETU", lambda: Code(
        _birth("dmy"), _by_year(lambda y: ("-" if y < 2000 else "A",), counts=False),
        _by_sex([f"{n:03d}" for n in range(2, 900, 2)], [f"{n:03d}" for n in range(3, 901, 2)]),
        weighted([pow(10, 8 - place, 31) for place in range(9)], 31, "0123456789ABCDEFHJKLMNPRSTUVWXY"))),
    "FR": ("NIR", lambda: Code(
        _by_sex("2", "1"), _birth("ym"), numbers(1, 19, 2), numbers(1, 989, 3), numbers(1, 999, 3), Gap(" "),
        weighted([pow(10, 12 - n, 97) for n in range(13)], 97, lambda rest: f"{97 - rest:02d}"))),
    "GE": ("Personal number", lambda: Code(Run("0123456"), digits(10))),
    "GH": ("Ghana Card", lambda: Code(Gap("GHA-"), Run("7"), digits(8), Gap("-"), Run(DIGITS))),
    "GR": ("AMKA", lambda: Code(_birth("dmy"), digits(3), _parity(), codes.luhn(10))),
    "HU": ("Személyi azonosító", lambda: BirthDateCode(date(1997, 1, 1), _hungarian(False), _hungarian(True))),
    "ID": ("NIK", lambda: Code(Pick(("1271", "3171", "3273", "3374", "3578", "5171")), numbers(1, 20, 2),
                               _birth("dmy", day=40), numbers(1, 9999, 4))),
    "IL": ("Mispar Zehut", lambda: Code(Run("123456789"), digits(7), codes.luhn(8))),
    "IR": ("Code melli", lambda: Code(digits(9), weighted(
        (10, 9, 8, 7, 6, 5, 4, 3, 2), 11, lambda rest: str(rest if rest < 2 else 11 - rest)))),
    "IS": ("Kennitala", lambda: Code(
        _birth("dmy"), Gap("-"), Run("23456789"), digits(1),
        weighted((3, 2, 7, 6, 5, 4, 3, 2), 11, complement(11)), _by_year(lambda y: ("9" if y < 2000 else "0",)))),
    "IT": ("Codice fiscale", lambda: Code(
        Run("BCDFGLMNPRSTVZ", 6), _birth("yLd", day=40), _ITALIAN_PLACES,
        Check(26, government.italian_weight, tuple(UPPER)))),
    "JO": ("National number", lambda: Code(Pick(("9", "2")), digits(9))),
    "KE": ("ID number", lambda: Code(Run("123"), digits(7))),
    "KR": ("RRN", lambda: Code(
        _birth("ymd"), Gap("-"), _by_person(lambda year, sex: "1234"[(year >= 2000) * 2 + (sex == WOMAN)]),
        numbers(0, 95, 2), digits(3),
        weighted((2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), 11, lambda rest: str((11 - rest) % 10)))),
    "LI": ("AHV", lambda: Code("756", *like(".####.####.#"), codes.gs1(12))),
    "LK": ("NIC", lambda: Code(_sri_lankan_day(), digits(5))),
    "LT": ("Asmens kodas", lambda: Code(_century(), _birth("ymd"), digits(3), government.two_pass_check())),
    "LU": ("Matricule", lambda: Code(_birth("Ymd"), digits(3), codes.luhn(11), digits(1))),
    "MK": ("JMBG", lambda: Code(*_former_yugoslavia(["41", "42", "43", "44", "45", "46", "47", "48", "49"]))),
    "MT": ("ID card", lambda: Code(digits(7), Pick(("M", "G", "A")))),
    "MX": ("CURP", lambda: Code(
        Run(_MEXICAN_CONSONANTS), Run("AEIOU"), Run(_MEXICAN_CONSONANTS, 2), _birth("ymd"), _by_sex("M", "H"),
        Pick(tuple(government.MEXICAN_STATES)), Run("BCDFGHJKLMNPQRSTVWXYZ", 3),
        _by_year(lambda y: "0123456789" if y < 2000 else "ABCDEFGHIJ"), _CURP_CHECK)),
    "MY": ("NRIC", lambda: Code(_birth("ymd"), Gap("-"), Pick(_MY_PLACES), Gap("-"), digits(3), _parity())),
    "NG": ("NIN", lambda: Code(Run("123456789"), digits(10))),
    "NO": ("Fødselsnummer", NorwegianNumber),
    "NP": ("Citizenship number", lambda: Code(numbers(1, 75, 2), Gap("-"), digits(2), Gap("-"), digits(2), Gap("-"),
                                              digits(5))),
    "NZ": ("IRD", lambda: Code(*government.TAX["NZ"][1](None))),  # type: ignore[arg-type]
    "PH": ("PhilSys number", lambda: Code(Run("123456789"), *like("###-####-####-####"))),
    "PK": ("CNIC", lambda: Code(Run("1234567"), *like("####-#######-"), _parity("2468", "1357"))),
    "PL": ("PESEL", lambda: Code(_birth("ymd", lambda years, _sex: np.where(years >= 2000, 20, 0)), digits(3),
                                 _parity(),
                                 weighted((1, 3, 7, 9, 1, 3, 7, 9, 1, 3), 10, complement(10)))),
    "PS": ("ID number", lambda: Code(Run("489"), digits(7), codes.luhn(8))),
    "RO": ("CNP", lambda: Code(
        _by_person(lambda year, sex: "1256"[(year >= 2000) * 2 + (sex == WOMAN)]), _birth("ymd"), numbers(1, 46, 2),
        numbers(1, 999, 3),
        weighted((2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9), 11, lambda rest: str(rest) if rest < 10 else "1"))),
    "RS": ("JMBG", lambda: Code(*_former_yugoslavia(["71", "72", "73", "74", "75", "76", "77", "78", "79"]))),
    "RU": ("SNILS", lambda: Code(
        Run("1"), *like("##-###-###"), Gap(" "),
        weighted((9, 8, 7, 6, 5, 4, 3, 2, 1), 101, lambda rest: f"{rest % 100:02d}"))),
    "SA": ("National ID", lambda: Code("1", digits(8), codes.luhn(9))),
    "SE": ("Personnummer", lambda: Code(_birth("ymd"), Gap("-"), digits(2), _parity(), codes.luhn(9))),
    "SI": ("EMŠO", lambda: Code(*_former_yugoslavia(["50"]))),
    "SK": ("Rodné číslo", lambda: BirthDateCode(date(1954, 1, 1), _czech(False), _czech(True))),
    "TW": ("ID number", lambda: Code(
        Run("ABCDEFGHJKMNOPQTUVWXZ"), _by_sex("2", "1"), digits(7),
        Check(10, _taiwanese, tuple(str(-rest % 10) for rest in range(10))))),
    "UA": ("RNTRC", lambda: Code(
        RowInput(BIRTH, _digit_columns([(np.arange(DAYS) + 1, 5)])), digits(3), _parity(), weighted(
        (-1, 5, 7, 9, 4, 6, 10, 5, 7), 11, lambda rest: str(rest % 10)))),
    "UZ": ("PINFL", lambda: Code(_century(), _birth("dmy"), digits(3), digits(3), weighted(
        (7, 3, 1, 7, 3, 1, 7, 3, 1, 7, 3, 1, 7), 10, lambda rest: str(rest)))),
    "VN": ("CCCD", lambda: Code(
        Pick(_VN_PLACES), _by_person(lambda year, sex: "0123"[(year >= 2000) * 2 + (sex == WOMAN)]), _birth("y"),
        digits(6))),
    "ZA": ("ID number", lambda: Code(
        _birth("ymd"), _by_sex([f"{n:04d}" for n in range(5000)], [f"{n:04d}" for n in range(5000, 10_000)]), "08",
        codes.luhn(12))),
}  # fmt: skip
"""Country: (what its number is called, the code)."""


def _armenian_day() -> RowInput:
    years, months, days = _calendar()
    pieces = [
        _digit_columns([(days + (50 if sex == WOMAN else 10), 2), (months, 2), (years % 100, 2)])
        for sex in (WOMAN, MAN)
    ]
    return RowInput(PERSON, np.ascontiguousarray(np.concatenate(pieces)))


ENGINE_3_CODES: dict[str, tuple[str, Callable[[], Code]]] = {
    "AM": ("PSN", lambda: Code(_armenian_day(), digits(4))),
}
"""Codes that replace those of `PERSON_CODES` from engine 3 on. Armenia's numbers are derived from sex and day, month
and year of birth (draft of the Law on the public services number, article 2). That 10 is added to the day for men and
50 for women is not from the law, and the check digit is random, since no formula is published."""

# --- Letters of the name ---

FAMILY, FIRST, FAMILY_CONSONANT, FIRST_CONSONANT = "family", "first", "family consonant", "first consonant"
_VOWELS = "AEIOU"
_PARTICLES = frozenset("DA DAS DE DEL DER DI DIE DD EL LA LAS LE LES LOS MAC MC VAN VON Y".split())
_COMMON_FIRST = frozenset(("MARIA", "MA", "JOSE", "J"))


def _letters(name: str) -> list[str]:
    """The words of a name, in capitals without accents."""
    normalized = unicodedata.normalize("NFKD", name.upper().replace("Ñ", "X"))
    words = re.split("[^A-Z]+", "".join(sign for sign in normalized if not unicodedata.combining(sign)))
    return [word for word in words if word]


def _italian_family(name: str) -> str:
    """Three letters: the consonants, then the vowels."""
    signs = "".join(_letters(name))
    return (re.sub("[AEIOU]", "", signs) + re.sub("[^AEIOU]", "", signs) + "XXX")[:3]


def _italian_first(name: str) -> str:
    """Like `_italian_family`, but of four or more consonants the second is left out."""
    consonants = re.sub("[AEIOU]", "", "".join(_letters(name)))
    return consonants[0] + consonants[2:4] if len(consonants) > 3 else _italian_family(name)


def _mexican_word(name: str) -> str:
    """The word that counts: not a particle, and not a María or José before another name."""
    words = [word for word in _letters(name) if word not in _PARTICLES] or ["X"]
    return words[1] if len(words) > 1 and words[0] in _COMMON_FIRST else words[0]


def _mexican_family(name: str) -> str:
    """The first letter, and the first vowel after it."""
    word = _mexican_word(name)
    return word[0] + next((sign for sign in word[1:] if sign in _VOWELS), "X")


def _mexican_consonant(name: str) -> str:
    """The first consonant after the first letter."""
    return next((sign for sign in _mexican_word(name)[1:] if sign not in _VOWELS), "X")


def _name_letters(value: str, width: int) -> RowInput:
    return RowInput(value, _texts(["".join(signs) for signs in product(UPPER, repeat=width)]))


NAME_CODES: dict[str, tuple[Callable[[], Code], dict[str, Callable[[str], str]]]] = {
    "IT": (lambda: _italian(_ITALIAN_PLACES), {FAMILY: _italian_family, FIRST: _italian_first}),
    "MX": (lambda: Code(
        _name_letters(FAMILY, 2), Run("FHRSVZ"), _name_letters(FIRST, 1), _birth("ymd"), _by_sex("M", "H"),
        Pick(tuple(government.MEXICAN_STATES)), _name_letters(FAMILY_CONSONANT, 1), Run("BCDFGHJKLMNPQRSTVWXYZ"),
        _name_letters(FIRST_CONSONANT, 1), _by_year(lambda y: "0123456789" if y < 2000 else "ABCDEFGHIJ"), _CURP_CHECK),
        {FAMILY: _mexican_family, FIRST: lambda name: _mexican_word(name)[0],
         FAMILY_CONSONANT: _mexican_consonant, FIRST_CONSONANT: _mexican_consonant}),
}  # fmt: skip
"""Countries whose numbers have letters of the name: the code, and which letters it has of the names of a person (DM
23 December 1976 for Italy; Instructivo normativo para la asignación de la CURP for Mexico). The second family name of
Mexicans, which rows do not have, begins with a letter that makes no word of the first four: the registry would change
one."""


def code_with_name(vocabulary: Vocabulary, country: str, unique: bool) -> Code:
    """The numbers of ``country`` (of `NAME_CODES`) with letters of the row's name. Of ``unique`` ones there are many
    for each day of birth, whatever the names are."""
    make = _italian_anywhere if unique and country == "IT" else NAME_CODES[country][0]
    return vocabulary.cached(("national id of the row's name", country, unique), make)


def _italian_anywhere() -> Code:
    """The municipalities' codes are a letter and three digits, nearly all of which exist."""
    return _italian(Run("ABCDEFGHIL"), Run(DIGITS, 3))


def _italian(*places: codes.CodePart) -> Code:
    return Code(
        _name_letters(FAMILY, 3), _name_letters(FIRST, 3), _birth("yLd", day=40), *places,
        Check(26, government.italian_weight, tuple(UPPER)),
    )  # fmt: skip


def name_letter_inputs(vocabulary: Vocabulary, country: str, people: People) -> dict[str, np.ndarray]:
    """The values that a code of `code_with_name` needs of the names of people, ``int64[n]`` each."""
    names = people.names
    values_by_name = {}
    for value, letters in NAME_CODES[country][1].items():
        pool, rows = (
            (names.last_roman, people.last) if value.startswith(FAMILY) else (names.first_roman, people.first)
        )
        key = ("letters of names", country, value, names.locale)
        values_by_name[value] = vocabulary.cached(key, partial(_letter_numbers, pool, letters)).take(
            rows.view(np.int64)
        )
    return values_by_name


def _letter_numbers(pool: pa.StringArray, letters: Callable[[str], str]) -> np.ndarray:
    """``int64[names]``: the letters of each name as a number with 26 digits."""
    return np.array(
        [
            reduce(lambda number, sign: number * 26 + ord(sign) - ord("A"), letters(name), 0)
            for name in pool.to_pylist()
        ],
        np.int64,
    )


COUNTRIES: Final = tuple(sorted({*PERSON_CODES, *government.COUNTRIES}))


def number_name(country: str) -> str:
    """Return the name of the number of ``country`` (of `COUNTRIES`)."""
    return PERSON_CODES[country][0] if country in PERSON_CODES else government.number_name(country)


def national_id(vocabulary: Vocabulary, country: str) -> Code:
    """The numbers of ``country`` (of `COUNTRIES`)."""
    if vocabulary.engine >= 3 and country in ENGINE_3_CODES:
        return vocabulary.cached(("national id of the row", country), ENGINE_3_CODES[country][1])
    if country in PERSON_CODES:
        return vocabulary.cached(("national id of the row", country), PERSON_CODES[country][1])
    return government.national_id(vocabulary, country)


def day_number(days: np.ndarray) -> np.ndarray:
    """``int64[n]``: days since 1970-01-01 as days since `FIRST_DAY`, the nearest that numbers can have."""
    return np.clip(days + (date(1970, 1, 1) - FIRST_DAY).days, 0, DAYS - 1)


def person_inputs(birth: np.ndarray, sex: np.ndarray) -> dict[str, np.ndarray]:
    """The values that codes need, for days of birth since `FIRST_DAY` and sexes, ``int64[n]`` each."""
    return {BIRTH: birth, SEX: sex, PERSON: sex * DAYS + birth}


UNIQUE_DAYS = range((date(1940, 1, 1) - FIRST_DAY).days, (date(2040, 1, 1) - FIRST_DAY).days)
"""Days of birth of unique numbers: a hundred years, so that two digits distinguish the years."""


def equal_day_counts(vocabulary: Vocabulary, country: str, code: Code) -> tuple[int, np.ndarray]:
    """Return how many of `UNIQUE_DAYS` have the same text in the numbers of a country at most (those of a month, if
    the number has only that), and the position of each day among those with the same text."""

    def make() -> tuple[int, np.ndarray]:
        days = np.array(UNIQUE_DAYS)
        given = dict.fromkeys(code.inputs, np.zeros(days.size, np.int64)) | person_inputs(
            days, np.zeros(days.size, np.int64)
        )
        texts = code.text([np.zeros(days.size, np.uint64) for _ in code.sizes], given)
        same = texts.dictionary_encode().indices.to_numpy()
        order = np.argsort(same, kind="stable")
        counts = np.bincount(same)
        place = np.empty(days.size, np.int64)
        place[order] = np.arange(days.size) - np.repeat(np.cumsum(counts) - counts, counts)
        return int(counts.max()), place.view(np.uint64)

    return vocabulary.cached(("days written alike", country), make)

"""Numbers that states issue: tax numbers, VAT numbers and personal numbers by country, with check digits.

A number is declared as the parts of a `Code`; gaps (and the country's letters) count in no check. The name of the
number in its country is given next to it. Dates of birth in a number are from 1954 to 1999, which every scheme writes
in its usual way.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import cache
from itertools import permutations, product
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from webapp.engine.types import codes
from webapp.engine.types.base import OptionsModel
from webapp.engine.types.codes import (
    DIGITS,
    UPPER,
    Check,
    CheckAutomaton,
    Code,
    CodePart,
    CodeType,
    Gap,
    Pick,
    Run,
    complement,
    remainder,
    weighted,
)

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec


Parts = tuple[CodePart, ...]

_FIRST = Run("123456789")
"""A digit that is not 0."""


def digits(count: int) -> Run:
    """Return a run of this many digits."""
    return Run(DIGITS, count)


def like(mask: str) -> Parts:
    """Digits where ``mask`` has #, gaps elsewhere."""
    pieces = re.findall(r"#+|[^#]+", mask)
    return tuple(Run(DIGITS, len(piece)) if piece[0] == "#" else Gap(piece) for piece in pieces)


def numbers(first: int, last: int, width: int) -> Pick:
    """Numbers from ``first`` to ``last``, with leading zeros up to ``width`` digits."""
    return Pick(tuple(f"{number:0{width}d}" for number in range(first, last + 1)))


def _pick_words(vocabulary: Vocabulary, name: str) -> Pick:
    return Pick(tuple(vocabulary.words(name).to_pylist()))


def _or_zero(rest: int) -> str:
    return str(rest % 10)


def _complement_or_zero(rest: int) -> str:
    return str(-rest % 11 % 10)


def _turkish(position: int, character: str) -> int:
    place = 9 - position
    digit = (int(character) + place) % 10
    return ((digit * 2**place) % 9 or 9) if digit else 0


def _austrian(position: int, character: str) -> int:
    return int("0246813579"[int(character)]) if position % 2 else int(character)


def _korean(position: int, character: str) -> int:
    digit = int(character)
    return digit * (1, 3, 7, 1, 3, 7, 1, 3, 5)[position] + (digit * 5 // 10 if position == 8 else 0)


_CHINESE = "0123456789ABCDEFGHJKLMNPQRTUWXY"
_CHINESE_WEIGHTS = (1, 3, 9, 27, 19, 26, 16, 17, 20, 29, 25, 13, 8, 24, 10, 30, 28)
_MEXICAN = "0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ "
_CYPRIOT = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
_IRISH = "WABCDEFGHIJKLMNOPQRSTUV"


def _chinese(position: int, character: str) -> int:
    return _CHINESE.index(character) * _CHINESE_WEIGHTS[position] if position < 17 else 0


def _chinese_body(position: int, character: str) -> int:
    weights = (3, 7, 9, 10, 5, 8, 4, 2)
    return int(character) * weights[position - 8] if 8 <= position < 16 else 0


def _mexican(position: int, character: str) -> int:
    # A company's number is read with a blank before it.
    return _MEXICAN.index(character) * (12 - position) + (13 * _MEXICAN.index(" ") if position == 0 else 0)


def cypriot_weight(position: int, character: str) -> int:
    """Return the value of a digit of a Cypriot tax number in the sum of its check letter."""
    return int(character) if position % 2 else _CYPRIOT[int(character)]


def _mexican_days() -> Pick:
    days = [f"{month:02d}{day:02d}" for month in range(1, 13) for day in range(1, 29)]
    return Pick(tuple(f"{year:02d}{day}" for year in range(100) for day in days))


_BULGARIAN = (_FIRST, digits(7), weighted((1, 2, 3, 4, 5, 6, 7, 8), 11, remainder))
_DANISH = (_FIRST, digits(6), weighted((2, 7, 6, 5, 4, 3, 2), 11, complement(11)))
_FINNISH = (digits(7), weighted((7, 9, 10, 5, 8, 4, 2), 11, complement(11)))
FRENCH_COMPANY = (_FIRST, digits(7), codes.luhn(8))
"""SIREN."""
_GREEK = (digits(8), weighted([pow(2, 8 - place) for place in range(8)], 11, _or_zero))
_HUNGARIAN = (_FIRST, digits(6), weighted((9, 7, 3, 1, 9, 7, 3), 10, complement(10)))
_IRISH_NUMBER = (digits(7), weighted((8, 7, 6, 5, 4, 3, 2), 23, _IRISH))
_ITALIAN = (Run("01"), digits(5), _FIRST, numbers(1, 100, 3), codes.luhn(10))
_LITHUANIAN = (_FIRST, digits(6), "1", weighted((1, 2, 3, 4, 5, 6, 7, 8), 11, remainder))
_DUTCH = (_FIRST, digits(7), weighted((9, 8, 7, 6, 5, 4, 3, 2), 11, remainder))
_NORWEGIAN = (Run("89"), digits(7), weighted((3, 2, 7, 6, 5, 4, 3, 2), 11, complement(11)))
_PORTUGUESE = (Run("1235"), digits(7), weighted((9, 8, 7, 6, 5, 4, 3, 2), 11, _complement_or_zero))
_POLISH_CHECK = weighted((6, 5, 7, 2, 3, 4, 5, 6, 7), 11, remainder)
_ROMANIAN = (_FIRST, digits(6), weighted([w * 10 for w in (3, 2, 1, 7, 5, 3, 2)], 11, _or_zero))
_SLOVAK = (_FIRST, digits(1), Run("234789"), digits(6),
           weighted([pow(10, 9 - place, 11) for place in range(9)], 11, complement(11)))  # fmt: skip
_SLOVENE_CHECK = weighted((8, 7, 6, 5, 4, 3, 2), 11, lambda rest: str((11 - rest) % 10) if rest else None)
_SLOVENE = (_FIRST, digits(6), _SLOVENE_CHECK)
_SWEDISH = (Pick(("556", "559", "716", "769", "802", "969")), digits(3))
_LATVIAN_CHECK = weighted((9, 1, 4, 8, 3, 10, 2, 5, 7, 6), 11, lambda rest: remainder((3 - rest) % 11))
_LATVIAN = ("40", digits(8), _LATVIAN_CHECK)
_CZECH_CHECK = weighted((8, 7, 6, 5, 4, 3, 2), 11, lambda rest: str((-rest % 11 or 1) % 10))
_CZECH = (Run("12345678"), digits(6), _CZECH_CHECK)
_LUXEMBOURGISH_CHECK = weighted(
    [pow(10, 5 - place, 89) for place in range(6)], 89, lambda rest: f"{rest:02d}"
)
_LUXEMBOURGISH = (_FIRST, digits(5), _LUXEMBOURGISH_CHECK)
_BELGIAN_CHECK = weighted([pow(10, 7 - place, 97) for place in range(8)], 97, lambda rest: f"{97 - rest:02d}")
_SWISS_CHECK = weighted((5, 4, 3, 2, 7, 6, 5, 4), 11, complement(11))
_BRITISH_CHECK = weighted((8, 7, 6, 5, 4, 3, 2), 97, lambda rest: f"{-rest % 97:02d}")
_MALTESE_CHECK = weighted((3, 4, 6, 7, 8, 9), 37, lambda rest: f"{-rest % 37:02d}")
_CHINESE_PLACES = ("110105", "310115", "320106", "330106", "420106", "440305", "510107", "610113")
_CHILEAN = weighted([8, 9, 4, 5, 6, 7, 8, 9], 11, "0123456789K")
_SPANISH_CHECK = weighted([pow(10, 7 - place, 23) for place in range(8)], 23, "TRWAGMYFPDXBNJZSQVHLCKE")
_FRENCH_CHECK = weighted([pow(10, 9 - place, 511) for place in range(10)], 511, lambda rest: f"{rest:03d}")
_AUSTRALIAN_CHECK = weighted((1, 4, 3, 7, 5, 8, 6, 9), 11, remainder)
_ARGENTINE_KINDS = Pick(("20", "23", "24", "27", "30", "33", "34"))
_ARGENTINE_CHECK = weighted((5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11, complement(11))
_COLOMBIAN_CHECK = weighted((41, 37, 29, 23, 19, 17, 13, 7, 3), 11, "01987654321")
_BRAZILIAN_CHECKS = (
    weighted((10, 9, 8, 7, 6, 5, 4, 3, 2), 11, _complement_or_zero),
    weighted((11, 10, 9, 8, 7, 6, 5, 4, 3, 2), 11, _complement_or_zero),
)

TAX: dict[str, tuple[str, Callable[[Vocabulary], Parts]]] = {
    "AR": ("CUIT", lambda _: (_ARGENTINE_KINDS, *like("-########-"), _ARGENTINE_CHECK)),
    "AU": ("TFN", lambda _: (_FIRST, *like("## ### ##"), _AUSTRALIAN_CHECK)),
    "BE": ("Enterprise number", lambda _: ("0", _FIRST, *like("##.###.#"), _BELGIAN_CHECK)),
    "BG": ("EIK", lambda _: _BULGARIAN),
    "BR": ("CPF", lambda _: (*like("###.###.###-"), *_BRAZILIAN_CHECKS)),
    "CA": ("Business number", lambda _: (_FIRST, digits(7), codes.luhn(8), Gap("RC0001"))),
    "CH": ("UID", lambda _: (Gap("CHE-"), *like("###.###.##"), _SWISS_CHECK)),
    "CL": ("RUT", lambda _: (Run("12"), *like("#.###.###-"), _CHILEAN)),
    "CN": ("USCC", lambda _: ("91", Pick(_CHINESE_PLACES), digits(8),
                    Check(11, _chinese_body, tuple("0X987654321")),
                    Check(31, _chinese, tuple(_CHINESE[-rest % 31] for rest in range(31))))),
    "CO": ("NIT", lambda _: (Run("89"), *like("##.###.###-"), _COLOMBIAN_CHECK)),
    "CZ": ("DIČ", lambda _: (Gap("CZ"), *_CZECH)),
    "DK": ("CVR", lambda _: _DANISH),
    "EE": ("Registrikood", lambda _: (Run("179"), digits(6), weighted((1, 2, 3, 4, 5, 6, 7), 11, remainder))),
    "ES": ("NIF", lambda _: (digits(8), _SPANISH_CHECK)),
    "FI": ("Y-tunnus", lambda _: (*_FINNISH[:1], Gap("-"), *_FINNISH[1:])),
    "FR": ("SPI", lambda _: (Run("0123"), digits(9), _FRENCH_CHECK)),
    "GB": ("UTR", lambda _: (
        weighted((0, 6, 7, 8, 9, 10, 5, 4, 3, 2), 11, lambda rest: "21987654321"[rest]), digits(9))),
    "GR": ("AFM", lambda _: _GREEK),
    "HR": ("OIB", lambda _: (digits(10), codes.mod_11_10())),
    "HU": ("Adószám", lambda _: (*_HUNGARIAN, Gap("-2-41"))),
    "IE": ("PPS", lambda _: _IRISH_NUMBER),
    "IN": ("PAN", lambda _: (Run(UPPER, 3), Pick(tuple("PCHFT")), Run(UPPER), numbers(1, 9999, 4), Run(UPPER))),
    "IT": ("Partita IVA", lambda _: _ITALIAN),
    "JP": ("Corporate number", lambda _: (weighted((0, *(2, 1) * 6), 9, lambda rest: str(9 - rest)), digits(12))),
    "KR": ("BRN", lambda _: (numbers(101, 999, 3), Gap("-"), numbers(1, 99, 2), Gap("-"), numbers(1, 9999, 4),
                   Check(10, _korean, tuple(str(-rest % 10) for rest in range(10))))),
    "LT": ("Įmonės kodas", lambda _: _LITHUANIAN),
    "LV": ("PVN", lambda _: _LATVIAN),
    "MX": ("RFC", lambda _: (Run(UPPER, 3), _mexican_days(), Run("123456789ABCDEFGHIJKLMNOPQRSTUV"),
                   Run("123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
                   Check(11, _mexican, tuple("0123456789A"[-rest % 11] for rest in range(11))))),
    "NL": ("BSN", lambda _: _DUTCH),
    "NO": ("Organisasjonsnummer", lambda _: _NORWEGIAN),
    "NZ": ("IRD", lambda _: ("1", Run("01234"), *like("#-###-##"),
                   weighted((3, 2, 7, 6, 5, 4, 3, 2), 11, complement(11)))),
    "PL": ("NIP", lambda _: (_FIRST, *like("##-###-##-#"), _POLISH_CHECK)),
    "PT": ("NIF", lambda _: _PORTUGUESE),
    "RO": ("CUI", lambda _: _ROMANIAN),
    "RU": ("INN", lambda _: (_FIRST, digits(8), weighted((2, 4, 10, 3, 5, 9, 4, 6, 8), 11, _or_zero))),
    "SE": ("Organisationsnummer", lambda _: (*_SWEDISH, *like("-###"), codes.luhn(9))),
    "SI": ("Davčna številka", lambda _: _SLOVENE),
    "SK": ("DIČ", lambda _: _SLOVAK),
    "TR": ("VKN", lambda _: (digits(9), Check(10, _turkish, tuple(str(-rest % 10) for rest in range(10))))),
    "UA": ("RNTRC", lambda _: (digits(9), weighted((-1, 5, 7, 9, 4, 6, 10, 5, 7), 11, _or_zero))),
    "AT": ("Abgabenkontonummer", lambda vocabulary: (
        _pick_words(vocabulary, "austrian_tax_office"), *like("#-###/##"),
        Check(10, _austrian, tuple(str(-rest % 10) for rest in range(10))))),
    "US": ("EIN", lambda vocabulary: (
        _pick_words(vocabulary, "employer_prefix"), *like("-#######"))),
}  # fmt: skip
"""Country: (the name of its number, its parts). For Germany see `tax_number`."""

VAT: dict[str, Callable[[], Parts]] = {
    "AT": lambda: (Gap("ATU"), digits(7), Check(10, _austrian, tuple(str((6 - rest) % 10) for rest in range(10)))),
    "BE": lambda: (Gap("BE"), "0", _FIRST, digits(6), _BELGIAN_CHECK),
    "BG": lambda: (Gap("BG"), *_BULGARIAN),
    "CH": lambda: (Gap("CHE-"), *like("###.###.##"), _SWISS_CHECK, Gap(" MWST")),
    "CY": lambda: (Gap("CY"), Run("03459"), digits(7), Check(26, cypriot_weight, tuple(UPPER))),
    "CZ": lambda: (Gap("CZ"), *_CZECH),
    "DE": lambda: (Gap("DE"), _FIRST, digits(7), codes.mod_11_10()),
    "DK": lambda: (Gap("DK"), *_DANISH),
    "EE": lambda: (Gap("EE"), digits(8), weighted((3, 7, 1, 3, 7, 1, 3, 7), 10, complement(10))),
    "ES": lambda: (Gap("ES"), Gap("B"), digits(7), codes.luhn(7)),
    "FI": lambda: (Gap("FI"), *_FINNISH),
    "FR": lambda: (Gap("FR"), weighted((0, 0, *(pow(10, 10 - place, 97) for place in range(9))), 97,
                                       lambda rest: f"{(rest + 12) % 97:02d}"),
                   _FIRST, digits(7), codes.luhn(8, 2)),
    "GB": lambda: (Gap("GB"), _FIRST, digits(6), _BRITISH_CHECK),
    "GR": lambda: (Gap("EL"), *_GREEK),
    "HR": lambda: (Gap("HR"), digits(10), codes.mod_11_10()),
    "HU": lambda: (Gap("HU"), *_HUNGARIAN),
    "IE": lambda: (Gap("IE"), *_IRISH_NUMBER),
    "IT": lambda: (Gap("IT"), *_ITALIAN),
    "LT": lambda: (Gap("LT"), *_LITHUANIAN),
    "LU": lambda: (Gap("LU"), *_LUXEMBOURGISH),
    "LV": lambda: (Gap("LV"), *_LATVIAN),
    "MT": lambda: (Gap("MT"), _FIRST, digits(5), _MALTESE_CHECK),
    "NL": lambda: (Gap("NL"), *_DUTCH, Gap("B01")),
    "NO": lambda: (Gap("NO "), *_NORWEGIAN, Gap("MVA")),
    "PL": lambda: (Gap("PL"), _FIRST, digits(8), _POLISH_CHECK),
    "PT": lambda: (Gap("PT"), *_PORTUGUESE),
    "RO": lambda: (Gap("RO"), *_ROMANIAN),
    "SE": lambda: (Gap("SE"), *_SWEDISH, digits(3), codes.luhn(9), Gap("01")),
    "SI": lambda: (Gap("SI"), *_SLOVENE),
    "SK": lambda: (Gap("SK"), *_SLOVAK),
}  # fmt: skip
"""Country: the parts of its VAT number."""

TAX_COUNTRIES = tuple(sorted([*TAX, "DE"]))
VAT_COUNTRIES = tuple(sorted(VAT))


def tax_name(country: str) -> str:
    """Return the name of the tax number of ``country`` (of `TAX_COUNTRIES`)."""
    return "Steuer-ID" if country == "DE" else TAX[country][0]


def tax_number(vocabulary: Vocabulary, country: str) -> Code:
    """The tax numbers of ``country`` (of `TAX_COUNTRIES`)."""
    if country == "DE":
        return vocabulary.cached("tax DE", GermanTaxNumber)
    return vocabulary.cached(("tax", country), lambda: Code(*TAX[country][1](vocabulary)))


def vat_number(vocabulary: Vocabulary, country: str) -> Code:
    """The VAT number of ``country`` (of `VAT_COUNTRIES`), with its prefix."""
    return vocabulary.cached(("vat", country), lambda: Code(*VAT[country]()))


class GermanTaxNumber(Code):
    """The German tax identification number: among its first ten digits one occurs twice and one is missing.

    The first five digits are any different ones, the first of them not 0; the next five are four of the other
    digits, one of them twice. Each number comes from one pair of choices.
    """

    check_position = 10

    def __init__(self) -> None:
        heads = np.array([head for head in permutations(range(10), 5) if head[0]], np.uint8)
        other = np.ones((len(heads), 10), bool)
        np.put_along_axis(other, heads.astype(np.int64), False, axis=1)
        self._heads = heads
        self._other_digits = np.nonzero(other)[1].reshape(-1, 5).astype(np.uint8)
        self._tails = np.array(
            [tail for tail in product(range(5), repeat=5) if len(set(tail)) == 4], np.uint8
        )
        self._machine = codes.mod_11_10()
        self._steps = np.array([[self._machine.step(s, d) for d in DIGITS] for s in range(11)], np.uint8)
        self._outputs = np.array([int(digit) for digit in self._machine.outputs], np.uint8)
        self.width = 11
        self.sizes = [len(heads) * len(self._tails)]
        self.space = self.sizes[0]

    def bytes(self, draws: list[np.ndarray], inputs: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        head, tail = np.divmod(draws[0].view(np.int64), len(self._tails))
        out = np.empty((head.size, 11), np.uint8)
        out[:, :5] = self._heads[head]
        out[:, 5:10] = self._other_digits[head[:, None], self._tails[tail]]
        state = np.full(head.size, self._machine.start, np.uint8)
        for column in range(10):
            state = self._steps[state, out[:, column]]
        out[:, 10] = self._outputs[state]
        out += 48
        return out


_AREAS = tuple(f"{area:03d}" for area in range(1, 900) if area != 666)
# Printed in advertisements and on sample cards; the Social Security Administration voided them.
_VOIDED_NUMBERS = ("078-05-1120", "219-09-9999", "457-55-5462")


class Ssn(CodeType):
    """US social security numbers: no area 000, 666 or 900 and above, no group 00, no serial 0000, none of the three
    that were voided after being printed (Social Security Administration, POMS RM 10201.035)."""

    name = "ssn"
    label = "SSN"
    category = "government"
    description = "A US social security number in a valid format."
    aliases = ("social security number", "social security", "us ssn", "ssn number")
    example = "523-47-8190"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(compiler.vocabulary.cached("ssn", _ssn))
        self._size = self.code.capacity - len(_VOIDED_NUMBERS)
        self._voided = compiler.vocabulary.cached("ssn void", _void_numbers)

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._text(context.below(self._size))

    def distinct_count(self) -> int:
        return self._size

    @classmethod
    def capacity(cls) -> int:
        return len(_AREAS) * 99 * 9_999 - len(_VOIDED_NUMBERS)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self._text(context.permuted(self._size))

    def _text(self, index: np.ndarray) -> pa.Array:
        for number in self._voided:
            index = index + (index >= number)
        return self.code.text([index])


def _ssn() -> Code:
    groups = tuple(f"{group:02d}" for group in range(1, 100))
    serials = tuple(f"{serial:04d}" for serial in range(1, 10_000))
    return Code(Pick(_AREAS), Gap("-"), Pick(groups), Gap("-"), Pick(serials))


def _void_numbers() -> tuple[np.uint64, ...]:
    """Places of the voided numbers among all, in rising order."""
    parts = [number.split("-") for number in _VOIDED_NUMBERS]
    places = [
        (_AREAS.index(area) * 99 + int(group) - 1) * 9_999 + int(serial) - 1 for area, group, serial in parts
    ]
    return tuple(np.uint64(place) for place in sorted(places))


class Ein(CodeType):
    """US employer identification numbers with a prefix that is in use."""

    name = "ein"
    label = "EIN"
    category = "government"
    description = "A US employer identification number."
    aliases = ("employer identification number", "fein", "federal tax id", "us tax id")
    example = "71-2501911"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(tax_number(compiler.vocabulary, "US"))


class _SingleCodeType(CodeType):
    category = "government"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(compiler.vocabulary.cached(self.name, self.create_code))

    @staticmethod
    @abstractmethod
    def create_code() -> Code:
        """The code of the type."""


class NhsNumber(_SingleCodeType):
    """Numbers of the National Health Service that begin with 999: which are reserved for tests."""

    name = "nhs_number"
    label = "NHS Number"
    description = "A number of the British National Health Service (NHS), from the range for tests."
    aliases = ("nhs", "nhs no")
    example = "999 713 8573"

    @staticmethod
    def create_code() -> Code:
        check = codes.weighted((10, 9, 8, 7, 6, 5, 4, 3, 2), 11, codes.complement(11))
        return Code("999", Gap(" "), Run(DIGITS, 3), Gap(" "), Run(DIGITS, 3), check)


class Siren(_SingleCodeType):
    """French company numbers."""

    name = "siren"
    label = "SIREN"
    description = "A French company number (SIREN), with a valid check digit."
    aliases = ("siren number",)
    example = "742471956"

    @staticmethod
    def create_code() -> Code:
        return Code(*FRENCH_COMPANY)


class Siret(_SingleCodeType):
    """French numbers of establishments: a SIREN, the establishment, and one more check digit."""

    name = "siret"
    label = "SIRET"
    description = "A French establishment number (SIRET), with valid check digits."
    aliases = ("siret number",)
    example = "74247195600017"

    @staticmethod
    def create_code() -> Code:
        return Code(*FRENCH_COMPANY, "00", Run(DIGITS, 2), codes.luhn(13))


_FIRST_DAY, _LAST_DAY = date(1954, 1, 1), date(1999, 12, 31)
_CONSONANTS = "BCDFGHJKLMNPQRSTVWXYZ"


@cache
def _birth(pattern: str, days: int = 0, months: int = 0) -> Pick:
    """Return days of birth in the format ``pattern``; ``days`` or ``months`` are added for women."""
    days_ = [_FIRST_DAY + timedelta(days=n) for n in range((_LAST_DAY - _FIRST_DAY).days + 1)]
    texts = []
    for is_woman in (0, 1) if days or months else (0,):
        texts += [
            pattern.format(y=day.year % 100, m=day.month + is_woman * months, d=day.day + is_woman * days,
                        year=day.year, letter="ABCDEHLMPRST"[day.month - 1], short=day.year % 1000)
            for day in days_
        ]  # fmt: skip
    return Pick(tuple(texts))


_YMD, _DMY = "{y:02d}{m:02d}{d:02d}", "{d:02d}{m:02d}{y:02d}"


def two_pass_check() -> Check:
    """Return the check of Estonia and Lithuania: a second row of weights if the first gives ten, and 0 if both do."""
    first_weights, second_weights, base = (1, 2, 3, 4, 5, 6, 7, 8, 9, 1), (3, 4, 5, 6, 7, 8, 9, 1, 2, 3), 101

    def value(position: int, character: str) -> int:
        digit = int(character)
        return digit * first_weights[position] % 11 + base * (digit * second_weights[position] % 11)

    def output(rest: int) -> str:
        first_digit, second_digit = rest % base % 11, rest // base % 11
        return str(first_digit if first_digit < 10 else second_digit % 10)

    return Check(base * base, value, tuple(map(output, range(base * base))))


# Verhoeff, "Error Detecting Decimal Codes", 1969: the dihedral group of ten, and a permutation by place.
_ROTATED = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def _dihedral_product(one: int, other: int) -> int:
    signed = -other if one >= 5 else other
    return (one % 5 + signed) % 5 + 5 * ((one >= 5) != (other >= 5))


def _verhoeff(width: int) -> CheckAutomaton:
    """The check digit after ``width`` digits. A state is ten times the digits read, and their product."""

    def step(state: int, character: str) -> int:
        read, product = divmod(state, 10)
        digit = int(character)
        for _ in range((width - read) % 8):
            digit = _ROTATED[digit]
        return min(read + 1, width) * 10 + _dihedral_product(digit, product)

    inverse = {
        product: next(n for n in range(10) if _dihedral_product(n, product) == 0) for product in range(10)
    }
    return CheckAutomaton(
        10 * (width + 1), 0, step, tuple(str(inverse[state % 10]) for state in range(10 * (width + 1)))
    )


def _portuguese(position: int, character: str) -> int:
    worth = codes.character_value(character)
    twice = 2 * worth - 9 * (2 * worth > 9)
    return twice if position % 2 == 0 else worth


_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def italian_weight(position: int, character: str) -> int:
    """Return the value of a character of a codice fiscale in the sum of its check letter."""
    number = int(character) if character.isdigit() else ord(character) - ord("A")
    return _ODD[number] if position % 2 == 0 else number


_CURP_CHARACTERS = "0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ"
MEXICAN_STATES = (
    "AS BC BS CC CH CL CM CS DF DG GR GT HG JC MC MN MS NE NL NT OC PL QR QT SL SP SR TC TL TS VZ YN ZS"
).split()


def curp_weight(position: int, character: str) -> int:
    """Return the value of a character of a CURP in the sum of its check digit."""
    return _CURP_CHARACTERS.index(character) * (18 - position)


def thai_weight(position: int, character: str) -> int:
    """Return the value of a digit of a Thai ID in the sum of its check digit."""
    return (2 - position) * int(character) % 11


_DIFFERENT_DIGITS = Pick(tuple(f"{pair:02d}" for pair in range(100) if pair % 11))
"""Two different digits."""
_CZECH_BIRTH_NUMBER = lambda _: (_birth(_YMD, months=50), Gap("/"), digits(3),  # noqa: E731
                    weighted([pow(10, 8 - place, 11) for place in range(9)], 11, _or_zero))  # fmt: skip
_BALTIC = lambda _: (Run("34"), _birth(_YMD), digits(3), two_pass_check())  # noqa: E731
_SSN_AREAS = tuple(f"{area:03d}" for area in range(1, 900) if area not in (78, 219, 457, 666))

SCHEMES: dict[str, tuple[str, Callable[[Vocabulary], Parts]]] = {
    "AR": ("DNI", lambda _: (Run("1234"), *like("#.###.###"))),
    "AT": ("VNR", lambda _: (_FIRST, digits(2), weighted((3, 7, 9, 0, 5, 8, 4, 2, 1, 6), 11, codes.remainder),
                             Gap(" "), numbers(1, 28, 2), numbers(1, 12, 2), Run("56789"), Run(DIGITS))),
    "BE": ("NN", lambda _: (_birth("{y:02d}{m:02d}{d:02d}"), Gap("-"), numbers(1, 997, 3), Gap("."),
                            weighted([pow(10, 8 - n, 97) for n in range(9)], 97, lambda rest: f"{97 - rest:02d}"))),
    "BG": ("EGN", lambda _: (_birth(_YMD), digits(3), weighted((2, 4, 8, 5, 10, 9, 7, 3, 6), 11, _or_zero))),
    "CA": ("SIN", lambda _: (Run("1234567"), *like("##-###-##"), codes.luhn(8))),
    "CH": ("AHV", lambda _: ("756", *like(".####.####.#"), codes.gs1(12))),
    "CN": ("RIC", lambda _: (Pick(("110101", "110105", "110108", "120101", "310101", "310104")),
                             _birth("{year}{m:02d}{d:02d}"), digits(3),
                             weighted([pow(2, 17 - place, 11) for place in range(17)], 11, "10X98765432"))),
    "CR": ("Cédula", lambda _: ("0", Run("1234567"), *like("-####-####"))),
    "CZ": ("Rodné číslo", _CZECH_BIRTH_NUMBER),
    "DK": ("CPR", lambda _: (_birth(_DMY), Gap("-"), Run("0123"), digits(3))),
    "DO": ("Cédula", lambda _: (_FIRST, *like("##-#######-"), codes.luhn(10))),
    "EC": ("CI", lambda _: (numbers(1, 24, 2), Run("012345"), digits(6), Gap("-"), codes.luhn(9))),
    "EE": ("Isikukood", _BALTIC),
    "FI": ("HETU", lambda _: (_birth(_DMY), Gap("-"), numbers(2, 899, 3),
                              weighted([pow(10, 8 - place, 31) for place in range(9)], 31,
                                       "0123456789ABCDEFHJKLMNPRSTUVWXY"))),
    "FR": ("NIR", lambda _: (Run("12"), _birth("{y:02d}{m:02d}"), numbers(1, 19, 2), numbers(1, 989, 3),
                             numbers(1, 999, 3), Gap(" "),
                             weighted([pow(10, 12 - n, 97) for n in range(13)], 97, lambda rest: f"{97 - rest:02d}"))),
    "GB": ("NHS number", lambda _: ("999", Gap(" "), *like("### ###"),
                                    weighted((10, 9, 8, 7, 6, 5, 4, 3, 2), 11, complement(11)))),
    "GR": ("AMKA", lambda _: (_birth(_DMY), digits(4), codes.luhn(10))),
    "ID": ("NIK", lambda _: (Pick(("1271", "3171", "3273", "3374", "3578", "5171")), numbers(1, 20, 2),
                             _birth(_DMY, days=40), numbers(1, 9999, 4))),
    "IL": ("Mispar Zehut", lambda _: (_FIRST, *like("#######-"), codes.luhn(8))),
    "IN": ("Aadhaar", lambda _: (Run("23456789"), Run(DIGITS), digits(2), Gap(" "), Run(DIGITS), _DIFFERENT_DIGITS,
                                 Run(DIGITS), Gap(" "), digits(2), Run(DIGITS), _verhoeff(11))),
    "IS": ("Kennitala", lambda _: (_birth(_DMY), Gap("-"), Run("23456789"), Run(DIGITS),
                                   weighted((3, 2, 7, 6, 5, 4, 3, 2), 11, complement(11)), "9")),
    "IT": ("Codice fiscale", lambda _: (Run(UPPER, 6), _birth("{y:02d}{letter}{d:02d}", days=40), Pick((
        "H501", "F205", "L219", "D612", "A944", "G273", "F839", "D969", "C351", "A662")),
        Check(26, italian_weight, tuple(UPPER)))),
    "JP": ("My Number", lambda _: (*like("#### #### ###"),
                                   weighted((6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11, _complement_or_zero))),
    "KR": ("RRN", lambda _: (_birth(_YMD), Gap("-"), Run("12"), numbers(0, 95, 2), digits(3),
                             weighted((2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), 11, lambda rest: str((11 - rest) % 10)))),
    "LT": ("Asmens kodas", _BALTIC),
    "LV": ("Personas kods", lambda _: ("32", *like("####-####"), weighted(
        (10, 5, 8, 4, 2, 1, 6, 3, 7, 9), 11, lambda rest: str((1 + rest) % 11 % 10)))),
    "MX": ("CURP", lambda _: (Run(_CONSONANTS), Run("AEIOU"), Run(_CONSONANTS, 2), _birth(_YMD), Run("HM"),
                              Pick(tuple(MEXICAN_STATES)), Run(_CONSONANTS, 3), Run(DIGITS),
                              Check(10, curp_weight, tuple(str(-rest % 10) for rest in range(10))))),
    "MY": ("NRIC", lambda _: (_birth(_YMD), Gap("-"), numbers(1, 14, 2), Gap("-"), digits(4))),
    "PE": ("CUI", lambda _: (digits(8), Gap("-"), weighted((3, 2, 7, 6, 5, 4, 3, 2), 11, "65432110987"))),
    "PK": ("CNIC", lambda _: (Run("1234567"), *like("####-#######-"), _FIRST)),
    "PL": ("PESEL", lambda _: (_birth(_YMD), digits(4), weighted((1, 3, 7, 9, 1, 3, 7, 9, 1, 3), 10, complement(10)))),
    "PT": ("CC", lambda _: (_FIRST, digits(7), Gap(" "), weighted((9, 8, 7, 6, 5, 4, 3, 2), 11, _complement_or_zero),
                            Gap(" "), Pick(("ZZ", "ZY", "ZX", "ZW", "ZV")),
                            Check(10, _portuguese, tuple(str(-rest % 10) for rest in range(10))))),
    "RO": ("CNP", lambda _: (Run("12"), _birth(_YMD), numbers(1, 46, 2), numbers(1, 999, 3), weighted(
        (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9), 11, lambda rest: str(rest) if rest < 10 else "1"))),
    "SE": ("Personnummer", lambda _: (_birth(_YMD), Gap("-"), digits(3), codes.luhn(9))),
    "SI": ("EMŠO", lambda _: (_birth("{d:02d}{m:02d}{short:03d}"), "50", digits(3),
                              weighted((7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11, _complement_or_zero))),
    "SK": ("Rodné číslo", _CZECH_BIRTH_NUMBER),
    "TH": ("PIN", lambda _: (Run("12345678"), *like("-####-#####-##-"),
                             Check(11, thai_weight, tuple(str((1 - rest) % 10) for rest in range(11))))),
    "TR": ("T.C. Kimlik", lambda _: (_FIRST, digits(8), weighted((3, 1, 3, 1, 3, 1, 3, 1, 3), 10, complement(10)),
                                     weighted([1] * 10, 10, _or_zero))),
    "US": ("SSN", lambda _: (Pick(_SSN_AREAS), Gap("-"), numbers(1, 99, 2), Gap("-"), numbers(1, 9999, 4))),
    "ZA": ("ID number", lambda _: (_birth(_YMD), digits(4), "08", codes.luhn(12))),
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
"""Countries that identify people by their tax number."""

COUNTRIES = tuple(sorted([*SCHEMES, *_BY_TAX, "NO"]))


def number_name(country: str) -> str:
    """Return the name of the number of ``country`` (of `COUNTRIES`)."""
    return "Fødselsnummer" if country == "NO" else _BY_TAX.get(country) or SCHEMES[country][0]


def national_id(vocabulary: Vocabulary, country: str) -> Code:
    """The numbers of ``country`` (of `COUNTRIES`)."""
    if country in _BY_TAX:
        return tax_number(vocabulary, country)
    if country == "NO":
        return vocabulary.cached("national id NO", NorwegianNumber)
    return vocabulary.cached(("national id", country), lambda: Code(*SCHEMES[country][1](vocabulary)))


class NorwegianNumber(Code):
    """Day of birth, three digits below 500, and two check digits, neither of which may come out as ten.

    By the day's share of both sums a number has some of 500 possible continuations; each day uses as many of them as
    every day has.
    """

    def __init__(self) -> None:
        days = np.array([[int(sign) for sign in text] for text in _birth(_DMY).texts])
        serials = np.array([[int(sign) for sign in f"{n:03d}"] for n in range(500)])
        first, second = np.array((3, 7, 6, 1, 8, 9, 4, 5, 2)), np.array((5, 4, 3, 2, 7, 6, 5, 4, 3))
        shares = days @ first[:6] % 11 * 11 + days @ second[:6] % 11
        endings: list[list[bytes]] = []
        for share in range(121):
            one = -(share // 11 + serials @ first[6:]) % 11
            two = -(share % 11 + serials @ second[6:] + 2 * one) % 11
            valid = np.flatnonzero((one < 10) & (two < 10))
            endings.append([b"%03d%d%d" % (n, one[n], two[n]) for n in valid])
        count = min(map(len, endings))
        endings_text = b"".join(ending for item in endings for ending in item[:count])
        self._endings = np.frombuffer(endings_text, np.uint8).reshape(121, count, 5)
        self._days, self._shares = (days + 48).astype(np.uint8), shares
        self._count = count
        self.width = 11
        self.sizes = [len(days) * count]
        self.space = self.sizes[0]

    def bytes(self, draws: list[np.ndarray], inputs: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        day, ending = np.divmod(draws[0].view(np.int64), self._count)
        out = np.empty((day.size, 11), np.uint8)
        out[:, :6] = self._days[day]
        out[:, 6:] = self._endings[self._shares[day], ending]
        return out

"""Tax and VAT numbers of the countries that engine 2 knows in addition to those of ``government.py``.

Where a country has no value added tax, its number for the tax that takes its place is given: sales tax, goods and
services tax, consumption tax. Sources: the published descriptions that python-stdnum cites for each country; tests
compare every number with it where it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.types import codes, government
from webapp.engine.types.codes import DIGITS, UPPER, Check, Code, Gap, Pick, Run, weighted
from webapp.engine.types.government import Parts, digits, like

_FIRST = Run("123456789")
_BASE_36 = DIGITS + UPPER


def _zero_for_ten(rest: int) -> str:
    return str(-rest % 11 % 10)


def _base_36(position: int, character: str) -> int:
    value = _BASE_36.index(character) * (2 if position % 2 else 1)
    return value // 36 + value % 36


def _taiwanese(position: int, character: str) -> int:
    product = int(character) * (1, 2, 1, 2, 1, 2, 4, 1)[position]
    return product // 10 + product % 10


CNPJ: Final[Parts] = (
    *like("##.###.###"), Gap("/"), "0001", Gap("-"),
    weighted((5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2), 11, _zero_for_ten),
    weighted((6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2), 11, _zero_for_ten),
)  # fmt: skip
_ABN = (
    weighted((0, 0, 3, 5, 7, 9, 11, 13, 15, 17, 19)[:11], 89, lambda rest: f"{11 + (-rest - 1) % 89:02d}"),
    *like(" ### ### ###"),
)
_PAN = (Run(UPPER, 3), Pick(("P", "C", "F", "H")), Run(UPPER), digits(3), Run("123456789"), Run(UPPER))
_GSTIN = (
    Pick(("01", "03", "06", "07", "08", "09", "10", "19", "21", "22", "23", "24", "27", "29", "32", "33", "36", "37")),
    *_PAN, Run("123456789"), "Z",
    Check(36, _base_36, tuple(_BASE_36[-rest % 36] for rest in range(36))),
)  # fmt: skip
_MACEDONIAN = ("40", digits(10), weighted((7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11, _zero_for_ten))
_SERBIAN = (_FIRST, digits(7), codes.mod_11_10())
_THAI = (
    "0", Gap("-"), digits(4), Gap("-"), digits(5), Gap("-"), digits(2), Gap("-"),
    Check(11, government._thai, tuple(str((1 - rest) % 10) for rest in range(11))),
)  # fmt: skip
_VIETNAMESE = (
    Pick(("01", "02", "03", "04", "05", "08", "10", "20", "30", "31", "36", "37", "40")), _FIRST, digits(6),
    weighted((31, 29, 23, 19, 17, 13, 7, 5, 3), 11, lambda rest: str(10 - rest) if rest else None),
)  # fmt: skip
_INDONESIAN = (
    Pick(("01", "02", "03")), *like(".###.###."), codes.luhn(8), Gap("-"), digits(3), Gap("."), "000",
)  # fmt: skip
_TAIWAN = (digits(7), Check(10, _taiwanese, tuple(str(-rest % 10) for rest in range(10))))
_AZERI = (_FIRST, digits(7), weighted((4, 1, 8, 6, 2, 7, 5, 3), 11, codes.remainder), Run("12"))
_ISRAELI = ("5", digits(7), codes.luhn(8))
_GHANAIAN = (
    Pick(("P", "C")), "00", digits(7),
    weighted((0, 1, 2, 3, 4, 5, 6, 7, 8, 9), 11, lambda rest: "X" if rest == 10 else str(rest)),
)  # fmt: skip
_JAPANESE = (weighted((0, *(2, 1) * 6), 9, lambda rest: str(9 - rest)), digits(12))
_CYPRIOT_BODY = (Run("03459"), digits(7), Check(26, government._cypriot, tuple(UPPER)))
_MALTESE_BODY = (_FIRST, digits(5), weighted((3, 4, 6, 7, 8, 9), 37, lambda rest: f"{-rest % 37:02d}"))
_RUSSIAN = (
    _FIRST, digits(8), weighted((2, 4, 10, 3, 5, 9, 4, 6, 8), 11, lambda rest: str(rest % 10)),
)  # fmt: skip

TAX: dict[str, tuple[str, Callable[[], Parts]]] = {
    "AE": ("TRN", lambda: ("100", digits(12))),
    "AL": ("NIPT", lambda: (Run("JKLM"), digits(8), Run(UPPER))),
    "AM": ("TIN", lambda: (Run("0123456789"), digits(7))),
    "AZ": ("VÖEN", lambda: _AZERI),
    "BA": ("JIB", lambda: ("4", digits(12))),
    "BD": ("TIN", lambda: (_FIRST, digits(11))),
    "BH": ("VAT account number", lambda: ("2", digits(14))),
    "CY": ("TIC", lambda: _CYPRIOT_BODY),
    "DZ": ("NIF", lambda: ("0", digits(14))),
    "EG": ("Tax registration number", lambda: like("###-###-###")),
    "ET": ("TIN", lambda: ("00", digits(8))),
    "GE": ("TIN", lambda: (Run("245"), digits(8))),
    "GH": ("TIN", lambda: _GHANAIAN),
    "ID": ("NPWP", lambda: _INDONESIAN),
    "IL": ("Company number", lambda: _ISRAELI),
    "IR": ("Economic code", lambda: ("10", digits(9))),
    "IS": ("Kennitala", lambda: (Pick(("41", "42", "45", "46", "50", "52", "55", "61", "63", "70")),
                                 Pick(("01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12")),
                                 Pick(("85", "90", "95", "98", "99")), Gap("-"), Run("23456789"), digits(1),
                                 weighted((3, 2, 7, 6, 5, 4, 3, 2), 11, codes.complement(11)), "9")),
    "JO": ("Tax number", lambda: (_FIRST, digits(7))),
    "KE": ("KRA PIN", lambda: (Run("AP"), digits(9), Run(UPPER))),
    "LI": ("PEID", lambda: (_FIRST, digits(7))),
    "LK": ("TIN", lambda: (Run("147"), digits(8))),
    "LU": ("Matricule", lambda: (Pick(("1998", "2003", "2008", "2011", "2014", "2017", "2019", "2021")), digits(7))),
    "MK": ("EDB", lambda: _MACEDONIAN),
    "MT": ("Tax number", lambda: _MALTESE_BODY),
    "MY": ("TIN", lambda: ("C", digits(10))),
    "NG": ("TIN", lambda: (_FIRST, digits(7), Gap("-"), "0001")),
    "NP": ("PAN", lambda: (Run("36"), digits(8))),
    "PH": ("TIN", lambda: (*like("###-###-###-"), "00000")),
    "PK": ("NTN", lambda: (_FIRST, digits(6), Gap("-"), digits(1))),
    "PS": ("Tax number", lambda: ("56", digits(7))),
    "RS": ("PIB", lambda: _SERBIAN),
    "SA": ("TIN", lambda: ("3", digits(9))),
    "TH": ("TIN", lambda: _THAI),
    "TW": ("UBN", lambda: _TAIWAN),
    "UZ": ("STIR", lambda: (Run("2345"), digits(8))),
    "VN": ("MST", lambda: _VIETNAMESE),
    "ZA": ("Tax reference number", lambda: ("9", digits(8), codes.luhn(9))),
}  # fmt: skip
"""Country: (what its number is called there, its parts)."""

VAT: dict[str, tuple[str, Callable[[Vocabulary], Parts]]] = {
    "AE": ("TRN", lambda _: ("100", digits(12))),
    "AL": ("NIPT", lambda _: (Run("JKLM"), digits(8), Run(UPPER))),
    "AM": ("VAT number", lambda _: (Run("0123456789"), digits(7), Gap("/"), "1")),
    "AR": ("CUIT", lambda words: government.TAX["AR"][1](words)),
    "AU": ("ABN (GST)", lambda _: _ABN),
    "AZ": ("VÖEN", lambda _: _AZERI),
    "BA": ("PDV number", lambda _: ("4", digits(11))),
    "BD": ("BIN", lambda _: ("00", digits(7), Gap("-"), "0", digits(3))),
    "BH": ("VAT account number", lambda _: ("2", digits(14))),
    "BR": ("CNPJ", lambda _: CNPJ),
    "CA": ("GST/HST account", lambda _: (_FIRST, digits(7), codes.luhn(8), "RT0001")),
    "CL": ("RUT", lambda words: government.TAX["CL"][1](words)),
    "CN": ("USCC", lambda words: government.TAX["CN"][1](words)),
    "CO": ("NIT", lambda words: government.TAX["CO"][1](words)),
    "DZ": ("NIF", lambda _: ("0", digits(14))),
    "EG": ("Tax registration number", lambda _: like("###-###-###")),
    "ET": ("VAT registration number", lambda _: (_FIRST, digits(9))),
    "GE": ("VAT number", lambda _: (Run("245"), digits(8))),
    "GH": ("TIN", lambda _: _GHANAIAN),
    "ID": ("NPWP", lambda _: _INDONESIAN),
    "IL": ("Osek murshe", lambda _: _ISRAELI),
    "IN": ("GSTIN", lambda _: _GSTIN),
    "IR": ("Economic code", lambda _: ("10", digits(9))),
    "IS": ("VSK", lambda _: (_FIRST, digits(5))),
    "JO": ("Tax number", lambda _: (_FIRST, digits(7))),
    "JP": ("Qualified invoice issuer number", lambda _: (Gap("T"), *_JAPANESE)),
    "KE": ("KRA PIN", lambda _: ("P", digits(9), Run(UPPER))),
    "KR": ("BRN", lambda words: government.TAX["KR"][1](words)),
    "LI": ("UID", lambda words: government.VAT["CH"]()),
    "LK": ("VAT number", lambda _: (Run("147"), digits(8), Gap("-"), "7000")),
    "MK": ("EDB", lambda _: (Gap("MK"), *_MACEDONIAN)),
    "MX": ("RFC", lambda words: government.TAX["MX"][1](words)),
    "MY": ("SST number", lambda _: (Run("WBJ"), digits(2), Gap("-"), digits(4), Gap("-"), digits(8))),
    "NG": ("TIN", lambda _: (_FIRST, digits(7), Gap("-"), "0001")),
    "NP": ("PAN", lambda _: (Run("36"), digits(8))),
    "NZ": ("GST number", lambda words: government.TAX["NZ"][1](words)),
    "PH": ("TIN", lambda _: (*like("###-###-###-"), "00000")),
    "PK": ("STRN", lambda _: ("32", digits(11))),
    "PS": ("Tax number", lambda _: ("56", digits(7))),
    "RS": ("PIB", lambda _: _SERBIAN),
    "RU": ("INN", lambda _: _RUSSIAN),
    "SA": ("VAT number", lambda _: ("3", digits(13), "3")),
    "TH": ("TIN", lambda _: _THAI),
    "TR": ("VKN", lambda words: government.TAX["TR"][1](words)),
    "TW": ("UBN", lambda _: _TAIWAN),
    "UA": ("IPN", lambda _: (_FIRST, digits(11))),
    "UZ": ("VAT number", lambda _: ("3", digits(11))),
    "VN": ("MST", lambda _: _VIETNAMESE),
    "ZA": ("VAT number", lambda _: ("4", digits(8), codes.luhn(9))),
}  # fmt: skip
"""Country: (what its number is called there, its parts)."""

TAX_COUNTRIES: Final = tuple(sorted({*government.TAX_COUNTRIES, *TAX}))
VAT_COUNTRIES: Final = tuple(sorted({*government.VAT_COUNTRIES, *VAT}))


def tax_name(country: str) -> str:
    """What ``country`` (of `TAX_COUNTRIES`) calls its number."""
    return TAX[country][0] if country in TAX else government.tax_name(country)


def tax_number(vocabulary: Vocabulary, country: str) -> Code:
    """The tax numbers of ``country`` (of `TAX_COUNTRIES`)."""
    if country in TAX:
        return vocabulary.shared(("tax", country), lambda: Code(*TAX[country][1]()))
    return government.tax_number(vocabulary, country)


def vat_number(vocabulary: Vocabulary, country: str) -> Code:
    """The VAT numbers of ``country`` (of `VAT_COUNTRIES`)."""
    if country in VAT:
        return vocabulary.shared(("vat", country), lambda: Code(*VAT[country][1](vocabulary)))
    return government.vat_number(vocabulary, country)

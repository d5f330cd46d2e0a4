"""Numbers of people: as python-stdnum wants them, in every country offered; papers in the form of each country."""

from __future__ import annotations

import importlib
import re

import numpy as np
import pytest
from stdnum.gb import nhs

from bench import truth
from tests.engine.types.made import assert_laws, bound, faults, table, values
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.random import RandomStream
from webapp.engine.types import documents, government, national_ids, plates

CHECKED_BY = {
    "AR": "ar.dni", "AT": "at.vnr", "BE": "be.nn", "BG": "bg.egn", "BR": "br.cpf", "CA": "ca.sin", "CH": "ch.ssn",
    "CL": "cl.rut", "CN": "cn.ric", "CR": "cr.cpf", "CZ": "cz.rc", "DE": "de.idnr", "DK": "dk.cpr", "DO": "do.cedula",
    "EC": "ec.ci", "EE": "ee.ik", "ES": "es.dni", "FI": "fi.hetu", "FR": "fr.nir", "GB": "gb.nhs", "GR": "gr.amka",
    "HR": "hr.oib", "ID": "id.nik", "IE": "ie.pps", "IL": "il.idnr", "IN": "in_.aadhaar", "IS": "is_.kennitala",
    "IT": "it.codicefiscale", "JP": "jp.in_", "KR": "kr.rrn", "LT": "lt.asmens", "LV": "lv.pvn", "MX": "mx.curp",
    "MY": "my.nric", "NL": "nl.bsn", "NO": "no.fodselsnummer", "PE": "pe.cui", "PK": "pk.cnic", "PL": "pl.pesel",
    "PT": "pt.cc", "RO": "ro.cnp", "SE": "se.personnummer", "SI": "si.emso", "SK": "sk.rc", "TH": "th.pin",
    "TR": "tr.tckimlik", "UA": "ua.rntrc", "US": "us.ssn", "ZA": "za.idnr",
}  # fmt: skip
CHECKS = set(government.COUNTRIES) - {"AR", "CR", "DK", "ID", "MY", "PK", "US"}
"""Countries whose numbers have a check digit."""


def made(country: str, unique: bool, count: int = 5_000) -> list[str]:
    code = government.national_id(vocabulary.open_default(), country)
    draws = RandomStream(np.uint64(7), np.arange(count, dtype=np.uint64))
    return code.text(code.draw_unique(draws) if unique else code.draw(draws)).to_pylist()


def test_every_country_offered_is_under_test():
    assert set(CHECKED_BY) == set(government.COUNTRIES)


@pytest.mark.parametrize("country", government.COUNTRIES)
def test_numbers_of_each_country_pass_python_stdnum(country):
    checker = importlib.import_module(f"stdnum.{CHECKED_BY[country]}")
    for unique in (False, True):
        numbers = made(country, unique)
        assert [number for number in numbers if not checker.is_valid(number)] == []
        assert len(set(numbers)) > 4_900
    assert len(set(numbers)) == 5_000


@pytest.mark.parametrize("country", sorted(CHECKS))
def test_any_other_check_digit_is_rejected(country):
    checker = importlib.import_module(f"stdnum.{CHECKED_BY[country]}")
    for number in made(country, False, 50):
        place = max(at for at, sign in enumerate(number) if sign.isalnum())
        if country == "IS":
            place -= 1  # the century follows the check digit
        if country == "AT":
            place = 3
        sign = number[place]
        other = str((int(sign) + 1) % 10) if sign.isdigit() else "A" if sign != "A" else "B"
        # Two check digits of Peru and of Belgium's century have a second spelling; those are not taken here.
        assert not checker.is_valid(number[:place] + other + number[place + 1 :]) or country == "BE"


def test_the_locale_sets_the_country_and_an_option_overrides_it():
    assert re.fullmatch(r"\d{11}", values("national_id", 1, locale="pl_PL")[0])
    assert re.fullmatch(
        r"\d{6}-\d{4}", values("national_id", 1, locale="pl_PL", options={"country": "SE"})[0]
    )
    assert re.fullmatch(r"\d{3}-\d\d-\d{4}", values("national_id", 1)[0])
    assert faults("national_id", {"country": "ZZ"}) == {"options.country": "unknown_country"}
    hungarian = values("national_id", 200, locale="hu_HU")
    assert all(re.fullmatch(r"[1-4]-\d{6}-\d{4}", number) for number in hungarian)


def test_british_numbers_are_of_the_range_for_tests():
    assert all(nhs.is_valid(number) and number.startswith("999 ") for number in made("GB", False, 500))


@pytest.mark.parametrize("country", documents.PASSPORT_COUNTRIES)
def test_passports_have_the_form_of_their_country(country):
    mask = documents._PASSPORTS[country]
    form = "".join({"#": r"\d", "@": "[A-Z]", "*": "[A-Z0-9]"}.get(sign, sign) for sign in mask)
    numbers = values("passport_number", 500, options={"country": country})
    assert all(re.fullmatch(form, number) for number in numbers)
    assert len(set(numbers)) > 490


KNOWN_PASSPORTS = {
    "US": r"[A-Z]\d{8}", "GB": r"\d{9}", "DE": r"C[CFGHJKLMNPRTVWXYZ0-9]{8}", "FR": r"\d{2}[A-Z]{2}\d{5}",
    "IN": r"[A-Z]\d{7}", "NL": r"[A-Z]{2}[A-Z0-9]{6}\d", "CN": r"E\d{8}", "JP": r"[A-Z]{2}\d{7}",
}  # fmt: skip


@pytest.mark.parametrize("country", KNOWN_PASSPORTS)
def test_well_known_passports_are_written_as_printed(country):
    numbers = values("passport_number", 300, options={"country": country})
    assert all(re.fullmatch(KNOWN_PASSPORTS[country], number) for number in numbers)


def test_licences_are_of_the_state_of_the_row():
    kinds = ("state_abbr", "driver_license")
    made = table(bound([{"name": kind, "type": kind} for kind in kinds], locale="en_US"), 0, 3_000)
    for state, number in zip(*(made[kind] for kind in kinds), strict=True):
        mask = documents._LICENSES[state]
        form = "".join({"#": r"\d", "@": "[A-Z]"}.get(sign, re.escape(sign)) for sign in mask)
        assert re.fullmatch(form, number), (state, number)
    elsewhere = table(bound([{"name": kind, "type": kind} for kind in kinds], locale="de_DE"), 0, 200)
    assert all(elsewhere["driver_license"])


def test_licences_are_of_the_state_asked_for_or_of_all():
    assert all(
        re.fullmatch(r"[A-Z]\d{7}", value) for value in values("driver_license", 300, options={"state": "ca"})
    )
    assert all(
        re.fullmatch(r"\d{3} \d{3} \d{3}", value)
        for value in values("driver_license", 300, options={"state": "NY"})
    )
    forms = {re.sub(r"\d", "9", re.sub("[A-Z]", "A", value)) for value in values("driver_license", 5_000)}
    masks = {re.sub("#", "9", re.sub("[A-Z@]", "A", mask)) for mask in documents._LICENSES.values()}
    assert forms == masks
    assert len(documents._LICENSES) == 51
    assert faults("driver_license", {"state": "ZZ"}) == {"options.state": "unknown_state"}
    assert faults("driver_license", unique=True) == {"unique": "not_unique"}


def test_medicare_ids_keep_to_the_published_form():
    letter, either = "[AC-HJKMNP-RT-Y]", "[0-9AC-HJKMNP-RT-Y]"
    form = rf"[1-9]{letter}{either}\d{letter}{either}\d{letter}{letter}\d\d"
    for number in values("medicare_id", 2_000):
        assert re.fullmatch(form, number.replace("-", "")), number
        assert [len(part) for part in number.split("-")] == [4, 3, 4]
    assert all(len(number) == 11 for number in values("medicare_id", 50, options={"formatted": False}))


WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
WORTH = {
    **{str(digit): digit for digit in range(10)},
    "A": 1, "B": 2, "C": 3, "D": 4, "E": 5, "F": 6, "G": 7, "H": 8, "J": 1, "K": 2, "L": 3, "M": 4, "N": 5, "P": 7,
    "R": 9, "S": 2, "T": 3, "U": 4, "V": 5, "W": 6, "X": 7, "Y": 8, "Z": 9,
}  # fmt: skip


def vin_is_valid(text: str) -> bool:
    if not re.fullmatch("[A-HJ-NPR-Z0-9]{17}", text):
        return False
    rest = sum(WORTH[sign] * weight for sign, weight in zip(text, WEIGHTS, strict=True)) % 11
    return text[8] == "0123456789X"[rest]


def test_the_check_here_knows_a_published_vin():
    assert vin_is_valid("1M8GDM9AXKP042788")
    assert vin_is_valid("11111111111111111")
    assert not vin_is_valid("1M8GDM9A1KP042788")


def test_vehicle_numbers_have_a_right_check_digit_and_year():
    numbers = values("vin", 5_000)
    assert all(vin_is_valid(number) for number in numbers)
    assert {number[9] for number in numbers} == set("ABCDEFGHJKLMNPRS")
    assert {number[9] for number in values("vin", 100, options={"year": 2021})} == {"M"}
    assert {number[9] for number in values("vin", 100, options={"year": 2005})} == {"5"}
    assert faults("vin", {"year": 1950}) == {"options.year": "greater_than_equal"}
    assert_laws("vin")


def form_of(country: str) -> str:
    """A regular expression for the plates of a country."""
    own = plates.PLATES[country]

    def pattern(mask: str) -> str:
        letters = f"[{own.letters}]"
        return "".join(
            {"#": r"\d", "@": letters, "%": "(?:1[2-9]|2[0-5]|6[2-9]|7[0-5])"}.get(sign, re.escape(sign))
            for sign in mask
        )

    body = "|".join(map(pattern, own.region_masks.values() or [own.mask]))
    heads = "|".join(re.escape(text) for texts in own.region_texts.values() for text in texts)
    return f"(?:{body})(?:{heads})" if own.is_region_last else f"(?:{heads})(?:{body})"


@pytest.mark.parametrize("country", plates.PLATE_COUNTRIES)
def test_plates_have_the_form_of_their_country(country):
    made = values("license_plate", 300, options={"country": country})
    assert all(re.fullmatch(form_of(country), plate) for plate in made)
    unique = values("license_plate", 300, options={"country": country}, unique=True)
    assert len(set(unique)) == 300


@pytest.mark.parametrize(
    ("country", "first", "last", "letters"),
    [
        ("IT", "Mario", "Rossi", ["RSS", "MRA"]),
        ("IT", "Gianfranco", "Fo", ["FOX", "GFR"]),
        ("IT", "Ada", "D'Angelo", ["DNG", "DAA"]),
        ("IT", "Niccolò", "Re", ["REX", "NCL"]),
        ("MX", "Juan", "García", ["GA", "J", "R", "N"]),
        ("MX", "María Fernanda", "de la Rosa", ["RO", "F", "S", "R"]),
        ("MX", "Eo", "Ñu", ["XU", "E", "X", "X"]),
    ],
)
def test_letters_of_names_are_those_that_registries_write(country, first, last, letters):
    spell = national_ids.NAME_CODES[country][1]
    found = [text(last if value.startswith("family") else first) for value, text in spell.items()]
    assert found == letters


@pytest.mark.parametrize(
    ("locale", "check", "begin"),
    [("it_IT", "it.codicefiscale", 6), ("es_MX", "mx.curp", 4)],
)
def test_numbers_with_letters_of_a_name_have_those_of_the_row(locale, check, begin):
    valid = importlib.import_module(f"stdnum.{check}").is_valid
    kinds = ("first_name", "last_name", "national_id", "date_of_birth")
    made = table(bound([{"name": kind, "type": kind} for kind in kinds], locale=locale), 0, 2_000)
    spell = national_ids.NAME_CODES[locale[-2:]][1]
    for first, last, number, born in zip(*(made[kind] for kind in kinds), strict=True):
        assert valid(number), number
        expected = spell["family"](last), spell["first"](first)
        assert (number[: len(expected[0])], number[begin - len(expected[1]) : begin]) == expected, (
            first,
            last,
        )
        assert number[begin : begin + 2] == f"{born.year % 100:02d}"
    alone = values("national_id", 200, locale=locale, unique=True)
    assert len(set(alone)) == 200
    assert all(map(valid, alone))


ROW = ("national id valid", "national id / birth", "national id / sex", "tax id / national id")


@pytest.mark.parametrize(
    "locale", ["pl_PL", "fr_FR", "it_IT", "es_MX", "zh_CN", "nb_NO", "fi_FI", "pt_BR", "ar_AE"]
)
def test_unique_numbers_are_those_of_the_row_s_person(locale):
    kinds = ("name", "national_id", "tax_id", "date_of_birth", "sex", "country_code")
    made = table(bound([{"name": kind, "type": kind, "unique": kind == "national_id"} for kind in kinds],
                       locale=locale), 0, 3_000)  # fmt: skip
    assert len(set(made["national_id"])) == 3_000
    rows = [dict(zip(kinds, values, strict=True)) for values in zip(*made.values(), strict=True)]
    for label in ROW:
        assert [found for row in rows if (found := truth.CHECKS[label][1](row))] == []


@pytest.mark.parametrize("locale", ["fr_FR", "ar_AE", "zh_TW", "it_IT"])
@pytest.mark.parametrize("beside", ["date_of_birth", "uuid"])
def test_many_unique_numbers_never_repeat_where_they_do_not_have_the_day(locale, beside):
    fields = [{"name": "x", "type": "national_id", "unique": True}, {"name": "y", "type": beside}]
    numbers = table(bound(fields, locale=locale), 0, 250_000)["x"]
    assert len(set(numbers)) == 250_000


def test_unique_numbers_keep_the_ages_that_were_asked_for():
    def made(low: int, high: int, **overrides) -> dict[str, list]:
        fields = [
            {"name": "x", "type": "national_id", "unique": True},
            {"name": "age", "type": "age", "options": {"min": low, "max": high}},
        ]
        return table(bound(fields, locale="pl_PL", **overrides), 0, 500)

    assert set(made(30, 31)["age"]) == {30, 31}
    assert set(made(6, 9)["age"]) == {6, 7, 8, 9}
    assert set(made(110, 112)["age"]) == {110, 111, 112}  # the numbers are then of other days
    with pytest.raises(SpecError, match=r"only .* exist"):
        bound([{"name": "x", "type": "national_id", "unique": True}, {"name": "a", "type": "age",
               "options": {"min": 30, "max": 30}}], locale="nb_NO").check(0, 100_000)  # fmt: skip


def test_a_unique_number_that_is_added_later_does_not_change_the_days_of_birth():
    saved = {"name": "born", "type": "date_of_birth", "id": "fld_" + "0" * 25 + "1", "group": "person"}
    added = {"name": "x", "type": "national_id", "id": "fld_" + "0" * 25 + "2", "unique": True}
    later = bound([saved, added], locale="pl_PL")
    assert table(later, 0, 100)["born"] == table(bound([saved], locale="pl_PL"), 0, 100)["born"]
    assert [fault.code for fault in later.warnings] == ["independent"]


def test_one_of_two_unique_numbers_of_a_person_determines_the_day_of_birth():
    fields = [
        {"name": "x", "type": "national_id", "unique": True, "group": "person", "options": {"country": "PL"}},
        {"name": "y", "type": "national_id", "unique": True, "group": "person", "options": {"country": "NO"}},
        {"name": "born", "type": "date_of_birth", "group": "person"},
    ]
    made = table(bound(fields), 0, 2_000)
    assert [f"{day:%d}" for day in made["born"]] == [number[4:6] for number in made["x"]]
    for name, check in (("x", "pl.pesel"), ("y", "no.fodselsnummer")):
        assert len(set(made[name])) == 2_000
        assert all(map(importlib.import_module(f"stdnum.{check}").is_valid, made[name]))


def test_a_day_of_birth_that_a_caller_sets_does_not_change_unique_numbers():
    fields = [
        {"name": "x", "type": "national_id", "unique": True},
        {"name": "y", "type": "date_of_birth"},
    ]
    source = bound(fields, locale="pl_PL", overrides={"y": "1980-05-05"})
    assert [fault.code for fault in source.warnings] == ["no_match"]
    assert len(set(table(source, 0, 100)["x"])) == 100


def test_every_region_of_a_country_whose_plates_name_one_has_texts_of_its_own():
    """Otherwise the plates of a row would name another region than its address."""
    states = vocabulary.open_default().table("states").to_pylist()
    found = {(state["country"], state["code"]) for state in states if plates.PLATES.get(state["country"])}
    named = {country for country in plates.PLATES if plates.PLATES[country].region_texts}
    missing = {
        (land, code) for land, code in found if land in named and code not in plates.PLATES[land].region_texts
    }
    assert missing == {("SI", "129")}  # Trbovlje has the plates of Ljubljana


@pytest.mark.parametrize("locale", ["ar_DZ", "fa_IR", "id_ID", "th_TH", "vi_VN", "en_NG"])
def test_plates_name_the_region_of_the_row(locale):
    fields = [
        {"name": name, "type": name, "options": {"locale": locale}}
        for name in ("state_abbr", "license_plate")
    ]
    made = table(bound(fields), 0, 3_000)
    own = plates.PLATES[locale[-2:]]
    known = [pair for pair in zip(made["state_abbr"], made["license_plate"], strict=True) if pair[0]]
    assert len({region for region, _ in known}) > 5
    for region, plate in known:
        heads = own.region_texts[region]
        assert plate.endswith(heads) if own.is_region_last else plate.startswith(heads), (region, plate)


def test_well_known_plates_are_written_as_printed():
    french = values("license_plate", 200, locale="fr_FR")
    assert all(re.fullmatch("[A-Z]{2}-[0-9]{3}-[A-Z]{2}", plate) for plate in french)
    british = values("license_plate", 200, locale="en_GB")
    assert all(re.fullmatch("[A-Z]{2}[0-9]{2} [A-Z]{3}", plate) for plate in british)


def test_flights_are_an_airline_and_a_number():
    assert all(re.fullmatch(r"[A-Z0-9]{2}[1-9]\d{0,3}", value) for value in values("flight_number", 2_000))
    assert all(
        re.fullmatch(r"[A-Z0-9]{2} \d+", value)
        for value in values("flight_number", 50, options={"separator": " "})
    )
    fields = [
        {"name": "airline", "type": "airline", "options": {"format": "iata"}},
        {"name": "x", "type": "flight_number"},
    ]
    made = table(bound(fields), 0, 1_000)
    assert all(number.startswith(code) for number, code in zip(made["x"], made["airline"], strict=True))
    assert_laws("flight_number")
    with pytest.raises(SpecError) as error:
        bound([fields[0], {**fields[1], "unique": True}])
    assert [(fault.path, fault.code) for fault in error.value.faults] == [("fields[1].unique", "not_unique")]


def test_model_years_end_with_this_one():
    years = values("car_year", 2_000)
    assert (min(years), max(years)) == (2001, 2026)
    assert set(values("car_year", 200, options={"min": 1990, "max": 1992})) == {1990, 1991, 1992}
    assert faults("car_year", {"min": 1999, "max": 1990}) == {"options.min": "min_above_max"}

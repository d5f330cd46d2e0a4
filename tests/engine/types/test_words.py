"""Types that take their words from lists and tables: what is listed, what agrees, what is refused."""

from __future__ import annotations

import math
from collections import Counter

import airportsdata
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from stdnum import iban

from tests.engine.facts import geonames
from tests.engine.types.made import assert_laws, bound, faults, table, values
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.invalid_data.injector import decode_dictionary
from webapp.engine.types.registry import BY_NAME
from webapp.engine.types.table_group import TableField
from webapp.engine.types.text import PhraseType
from webapp.engine.types.word_lists import ListType

OWN = [kind for kind in BY_NAME.values() if issubclass(kind, ListType | PhraseType | TableField)]
KINDS = [kind.name for kind in OWN]
IATA = airportsdata.load("IATA")


def rows(fields: list[dict], count: int, **how) -> list[dict]:
    generated = table(bound(fields, **how), 0, count)
    return [dict(zip(generated, row, strict=True)) for row in zip(*generated.values(), strict=True)]


def of(*kinds: str, **common) -> list[dict]:
    return [{"name": kind, "type": kind, **common} for kind in kinds]


def test_all_of_them_are_in_the_catalogue():
    assert {"buzzword", "naughty_string", "university", "skill", "industry", "tld", "animal", "plant"} <= set(
        KINDS
    )
    assert {"catch_phrase", "slogan", "app_name", "movie_title", "drug_name"} <= set(KINDS)
    assert {"car_make", "car_model", "airline", "icd10_code", "unit", "degree"} <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_depend_only_on_their_number(kind):
    assert_laws(kind)


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.name)
def test_the_catalogue_shows_the_number_of_distinct_values(kind):
    source = bound([{"name": "x", "type": kind.name}])
    assert source.plan.layer.columns["x"].type.distinct_count() == kind.capacity()
    blocks = source.blocks(0, 100_000)
    assert issubclass(kind, PhraseType) or any(
        kind.example in decode_dictionary(block[0]).to_pylist() for block in blocks
    )


@pytest.mark.parametrize(
    "kind", [kind for kind in OWN if issubclass(kind, PhraseType)], ids=lambda kind: kind.name
)
def test_no_two_choices_of_parts_read_the_same(kind):
    source = bound([{"name": "x", "type": kind.name, "unique": True}])
    generated = pa.chunked_array([decode_dictionary(block[0]) for block in source.blocks(0, kind.capacity())])
    assert pc.count_distinct(pc.utf8_lower(generated)).as_py() == kind.capacity()
    assert pc.index(generated, kind.example).as_py() >= 0


def test_awkward_strings_are_of_their_kind():
    everything = set(values("naughty_string", 20_000))
    parts = [
        set(values("naughty_string", 2_000, options={"kind": kind}))
        for kind in ("reserved", "number", "quoting", "whitespace", "unicode", "emoji", "injection", "long")
    ]
    assert sum(map(len, parts)) == len(everything)
    assert everything == set().union(*parts)
    assert {"", "\n", "1'; DROP TABLE users-- 1", "NaN", "null", "İstanbul"} <= everything
    assert not any(ord(ch) < 32 and ch not in "\t\n\r" for text in everything for ch in text)


def test_makes_and_models_of_cars_agree():
    known = {(row["make"], row["model"]) for row in vocabulary.open_default().table("car").to_pylist()}
    generated = rows(of("car_model", "car_make"), 5_000)
    assert {(row["car_make"], row["car_model"]) for row in generated} == known
    for unique in ("car_make", "car_model"):
        fields = [{**field, "unique": field["name"] == unique} for field in of("car_model", "car_make")]
        some = rows(fields, 59)
        assert len({row[unique] for row in some}) == 59
        assert {(row["car_make"], row["car_model"]) for row in some} <= known


def test_only_one_field_of_a_car_can_be_unique():
    with pytest.raises(SpecError) as error:
        bound(of("car_model", "car_make", unique=True))
    (fault,) = error.value.faults
    assert (fault.path, fault.code) == ("fields[1].unique", "not_unique")
    assert '"car_model"' in fault.hint


def test_a_car_follows_what_is_overridden():
    source = bound(of("car_make", "car_model"), overrides={"car_model": "Corolla"})
    assert set(table(source, 0, 50)["car_make"]) == {"Toyota"}
    source = bound(of("car_make", "car_model"), overrides={"car_make": "Trabant"})
    assert [fault.code for fault in source.warnings] == ["no_match"]


@pytest.mark.parametrize(
    ("kind", "formats"),
    [
        ("airline", ("name", "iata", "icao")),
        ("icd10_code", ("code", "name")),
        ("unit", ("name", "symbol", "quantity")),
        ("degree", ("name", "abbreviation", "level")),
    ],
)
def test_formats_of_one_thing_are_in_one_row(kind, formats):
    listed = vocabulary.open_default().table(BY_NAME[kind].table).to_pylist()
    known = {tuple(row[part] for part in formats) for row in listed}
    fields = [{"name": part, "type": kind, "options": {"format": part}} for part in formats]
    assert {tuple(row[part] for part in formats) for row in rows(fields, 6_000)} == known
    for part in formats:
        assert_laws(kind, {"format": part})


def test_codes_have_their_shape():
    table_of = vocabulary.open_default().table
    for row in table_of("airline").to_pylist():
        assert len(row["iata"]) == 2
        assert len(row["icao"]) == 3
        assert row["icao"].isupper()
    codes = Counter(row["code"] for row in table_of("diagnosis").to_pylist())
    assert max(codes.values()) == 1
    assert all(
        code[0].isupper() and code[1:3].isdigit() and (len(code) == 3 or code[3] == ".") for code in codes
    )


def test_airports_are_in_the_rows_country_and_near_its_city():
    kinds = of("airport_code", "airport_name", "city", "country_code", "latitude", "longitude")
    near = blank = 0
    for row in rows(kinds, 10_000):
        if row["airport_code"] is None:
            assert row["airport_name"] is None
            assert row["country_code"] not in {airport["country"] for airport in IATA.values()}
            blank += 1
            continue
        airport = IATA[row["airport_code"]]
        assert airport["country"] == row["country_code"]
        assert " ".join(airport["name"].split()) == row["airport_name"]
        north = (airport["lat"] - float(row["latitude"])) * 111
        east = (airport["lon"] - float(row["longitude"])) * 111 * math.cos(math.radians(airport["lat"]))
        near += math.hypot(north, east) < 70
    assert near > 7_000
    assert blank < 200
    icao = rows(
        [*of("airport_code"), {"name": "icao", "type": "airport_code", "options": {"format": "icao"}}], 50
    )
    assert all(row["airport_code"] is None or IATA[row["airport_code"]]["icao"] == row["icao"] for row in icao
               if row["icao"])  # fmt: skip


def test_a_city_follows_an_overridden_airport():
    source = bound(of("airport_code", "city", "country_code"), overrides={"airport_code": "LYS"})
    generated = table(source, 0, 100)
    assert set(generated["country_code"]) == {"FR"}
    assert "Lyon" in generated["city"]
    assert faults("airport_code", unique=True) == {"unique": "not_unique"}


def test_districts_speak_the_language_of_the_country():
    spoken = {"DE": "de_DE", "FR": "fr_FR", "JP": "ja_JP@roman", "BR": "pt_BR", "PL": "pl_PL", "US": "en_US"}
    for row in rows(of("district", "country_code"), 5_000):
        if row["country_code"] in spoken:
            locale = spoken[row["country_code"]]
            assert row["district"] in vocabulary.open_default().words("district", locale).to_pylist()
    assert "Altstadt" in values("district", 500, locale="de_AT")


def test_a_bank_agrees_with_its_iban_and_bic():
    banks = {(row["country"], row["name"]) for row in vocabulary.open_default().table("bank").to_pylist()}
    countries = Counter()
    for row in rows(of("iban", "bank_name", "bic"), 3_000):
        assert iban.is_valid(row["iban"])
        country = row["iban"][:2]
        assert row["bic"][4:6] == country
        assert (country, row["bank_name"]) in banks
        countries[country] += 1
    assert set(countries) == {"DE", "ES", "FR", "GB", "IT", "NL"}
    assert min(countries.values()) > 400
    expected = {"countryCode": ["PL", "AT"]}
    some = rows([{"name": "i", "type": "iban", "options": expected}, *of("bank_name")], 500)
    assert {(row["i"][:2], row["bank_name"]) for row in some} == {
        pair for pair in banks if pair[0] in ("PL", "AT")
    }
    assert {row["iban"][:2] for row in rows(of("iban", "bank_name"), 50, locale="de_CH")} == {"CH"}


def test_bank_codes_of_a_row_are_of_one_country():
    alone, both = values("iban", 50), rows(of("iban", "bic"), 50)
    assert {row["iban"][:2] == row["bic"][4:6] for row in both} == {True}
    assert len(set(alone)) == 50


def banks_of(country: str) -> set[str]:
    rows = vocabulary.open_default().table("bank").to_pylist()
    return {row["name"] for row in rows if row["country"] == country}


def test_contradicting_bank_options_are_rejected():
    assert faults("bank_name", {"country": "XX"}) == {"options.country": "unknown_country"}
    maltese = bound([{"name": "i", "type": "iban", "options": {"countryCode": "MT"}}, *of("bank_name")])
    assert set(table(maltese, 0, 50)["bank_name"]) <= banks_of("MT")
    with pytest.raises(SpecError) as error:
        bound(
            [
                {"name": "i", "type": "iban", "options": {"countryCode": "FR"}},
                {"name": "b", "type": "bank_name", "options": {"country": "DE"}},
            ]
        )
    assert [fault.code for fault in error.value.faults] == ["conflict"]


def test_unique_codes_of_banks_stay_unique_in_their_group():
    fields = [
        {**field, "group": "a bank", "unique": field["name"] == "iban"}
        for field in of("iban", "bank_name", "bic")
    ]
    generated = rows(fields, 5_000)
    assert len({row["iban"] for row in generated}) == 5_000
    assert all(row["iban"][:2] == row["bic"][4:6] for row in generated)
    named = rows(
        [{**field, "group": "a", "unique": field["name"] == "bank_name"} for field in of("bank_name", "bic")],
        200,
    )
    assert len({row["bank_name"] for row in named}) == 200


def test_a_bank_follows_what_is_overridden():
    fields = of("bank_name", "bic")
    assert {code[4:6] for code in table(bound(fields, overrides={"bank_name": "Sydbank"}), 0, 20)["bic"]} == {
        "DK"
    }
    names = table(bound(fields, overrides={"bic": "SOFVATK0"}), 0, 200)["bank_name"]
    assert "Erste Bank" in names
    source = bound(fields, overrides={"bank_name": "Bank of Nowhere"})
    assert [fault.code for fault in source.warnings] == ["no_match"]


def test_towns_of_universities_are_towns():
    towns = {name for country, name in geonames() if country in ("AU", "CA", "GB", "IE", "NZ", "US")}
    assert all(any(part in towns for part in _spans(text)) for text in values("university", 200))


def _spans(text: str) -> list[str]:
    words = text.split()
    return [
        " ".join(words[start:end]) for start in range(len(words)) for end in range(start + 1, len(words) + 1)
    ]

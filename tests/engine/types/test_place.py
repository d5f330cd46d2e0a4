"""Places: checked against libraries that the engine never asks while it makes rows."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from unicodedata import normalize
from zoneinfo import ZoneInfo

import phonenumbers
import pycountry
import pytest
import zipcodes

from tests.engine.facts import countries, geonames
from tests.engine.types.made import bound, faults, table, values
from webapp.engine.data.extract_4.tools import listed_by
from webapp.engine.errors import SpecError

PLACE = [
    "country",
    "country_code",
    "state",
    "state_abbr",
    "city",
    "zip_code",
    "latitude",
    "longitude",
    "time_zone",
    "street_name",
    "street_address",
    "address",
    "phone_number",
]

ZONES = {("CN", "Asia/Macau"): "Asia/Shanghai", ("ID", "Asia/Ho_Chi_Minh"): "Asia/Pontianak"}
"""Where GeoNames names a zone that the tz database does not have in that country."""


def fields(*kinds: str, **common) -> list[dict]:
    return [{"name": kind, "type": kind, **common} for kind in kinds or PLACE]


def rows(
    count: int, *kinds: str, locale: str | None = None, overrides: dict | None = None, start: int = 0
) -> list[dict]:
    generated = table(bound(fields(*kinds), locale=locale, overrides=overrides), start, count)
    return [dict(zip(generated, row, strict=True)) for row in zip(*generated.values(), strict=True)]


def well_formed(code: str, expression: str) -> bool:
    """Whether GeoNames' expression knows a code; it writes some countries' without the blank or the dash they use."""
    spellings = (code, re.sub("[ -]", "", code))
    return not expression or any(re.search(expression.strip(), spelling) for spelling in spellings)


def unaccented(name: str) -> str:
    return normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()


def near(row: dict, city: dict) -> bool:
    return (
        abs(float(row["latitude"]) - city["latitude"]) < 0.006
        and abs(float(row["longitude"]) - city["longitude"]) < 0.006
    )


CORRECTED = {
    (country, *entry.partition(">")[0].split("=")): entry.partition(">")[2]
    for country, entries in listed_by("corrections")["zone"].items()
    for entry in entries
}
"""The right zones of cities by country, name and the zone that the source has."""


def test_ten_thousand_places_of_the_world_never_contradict_themselves():
    regions = set()
    for row in rows(10_000):
        code = row["country_code"]
        country = countries()[code]
        assert row["country"] in {country["name"], "Netherlands", "Cape Verde"}
        (city, *others) = [city for city in geonames()[code, row["city"]] if near(row, city)]
        zone = CORRECTED.get((code, city["name"], city["timezone"]), city["timezone"])
        assert row["time_zone"] == ZONES.get((code, zone), zone)
        if not others:  # Bristol is in Tennessee and in Virginia
            regions.add((code, city["admin1code"], row["state"]))
        ZoneInfo(row["time_zone"])
        # Postal codes of these have five or six digits; the library's expressions are of other, older codes.
        assert code in ("EC", "HN", "MD", "MN", "NI", "VN") or well_formed(
            row["zip_code"], country["postalcoderegex"]
        ), row
        number = phonenumbers.parse(row["phone_number"])
        assert phonenumbers.is_valid_number_for_region(number, code)
        assert row["address"].startswith(f"{row['street_address']}, ")
        assert row["address"].endswith(f", {row['country']}")
        assert row["city"] in row["address"]
        assert row["zip_code"] in row["address"]
        assert row["street_name"] in row["street_address"]
    # One name for each division of GeoNames, and one division for each name.
    assert len({(code, division) for code, division, _ in regions}) == len(regions)
    assert len({(code, name) for code, _, name in regions}) == len(regions)


def test_ten_thousand_places_of_the_united_states_are_in_the_postal_register():
    known = {(city["zip_code"]): city for city in zipcodes.list_all()}
    area_codes = defaultdict(set)
    for entry in known.values():
        area_codes[entry["state"]].update(entry["area_codes"])
    for row in rows(10_000, locale="en_US"):
        entry = known[row["zip_code"]]
        assert entry["active"]
        assert unaccented(row["city"]) in {
            unaccented(name) for name in (entry["city"], *entry["acceptable_cities"])
        }
        assert (entry["state"], entry["timezone"]) == (row["state_abbr"], row["time_zone"])
        assert pycountry.subdivisions.get(code=f"US-{row['state_abbr']}").name == row["state"]
        assert row["phone_number"][3:6] in area_codes[row["state_abbr"]]
        assert row["address"] == (
            f"{row['street_address']}, {row['city']}, {row['state_abbr']} {row['zip_code']}, United States"
        )


@pytest.mark.parametrize(
    ("locale", "prefixes"),
    [
        (
            "fr_FR",
            {
                "Bretagne": ("22", "29", "35", "56"),
                "Corse": ("20",),
                "Île-de-France": ("75", "77", "78", "9"),
            },
        ),
        ("es_ES", {"Comunidad de Madrid": ("28",), "País Vasco": ("01", "20", "48")}),
        ("en_CA", {"Ontario": tuple("KLMNP"), "British Columbia": ("V",), "Quebec": tuple("GHJ")}),
        ("de_DE", {"Berlin": ("10", "12", "13"), "Hamburg": ("20", "22"), "Bayern": ("8", "9")}),
        ("en_AU", {"Queensland": ("4",), "Victoria": ("3",)}),
        ("sv_SE", {"Norrbottens län": ("94", "95", "96", "97", "98"), "Skåne län": ("2",)}),
        ("de_CH", {"Zürich": ("80", "81", "83", "84"), "Aargau": ("5",), "Basel-Stadt": ("40",)}),
        ("nl_NL", {"Limburg": ("58", "59", "6"), "Zeeland": ("43", "44", "45")}),
        ("id_ID", {"Bali": ("80", "81", "82"), "Jawa Timur": ("6",)}),
        ("en_ZA", {"Free State": ("9",), "Kwazulu-Natal": ("29", "3", "4")}),
        ("en_NZ", {"Canterbury": ("7", "8"), "Otago": ("9",)}),
    ],
)
def test_postal_codes_tell_the_region_where_the_country_orders_them_so(locale, prefixes):
    seen = defaultdict(set)
    for row in rows(4_000, "state", "zip_code", locale=locale):
        seen[row["state"]].add(row["zip_code"])
    for state, begin in prefixes.items():
        assert seen[state]
        assert all(code.startswith(begin) for code in seen[state]), state


@pytest.mark.parametrize(
    ("locale", "codes"),
    [
        ("de_DE", {"Leipzig": "04", "Köln": "50|51", "München": "8[01]", "Kiel": "24"}),
        (
            "en_GB",
            {
                "London": "[ENSW]|EC|NW|SE|SW|WC|BR|CR|DA|HA|IG|KT|RM|TW|UB",
                "Leeds": "LS",
                "Frome": "BA",
                "Wrexham": "LL|CH",
            },
        ),
        ("fr_FR", {"Lyon": "69", "Marseille": "13", "Toulouse": "31", "Strasbourg": "67"}),
        ("pl_PL", {"Kraków": "3[01]", "Gdańsk": "80", "Olsztyn": "1[01]"}),
        ("en_CA", {"Toronto": "M", "Vancouver": "V[567]", "Windsor": "N[89]"}),
        ("en_AU", {"Melbourne": "3[012]|8", "Perth": "6[01]", "Cairns": "48"}),
        ("ru_RU", {"Новосибирск": "630", "Казань": "42[01]", "Самара": "443", "Сочи": "354"}),
        ("id_ID", {"Medan": "20[1-3]", "Surabaya": "60[12]", "Bandung": "40", "Bogor": "16"}),
        ("es_CO", {"Cali": "760", "Palmira": "763", "Tumaco": "528", "Ipiales": "524"}),
    ],
)
def test_postal_codes_begin_like_those_near_the_city(locale, codes):
    seen = set()
    generated = rows(8_000, "city", "zip_code", locale=locale)
    for row in generated:
        if row["city"] in codes:
            seen.add(row["city"])
            assert re.match(codes[row["city"]], row["zip_code"]), row
    assert len(seen) >= 2


@pytest.mark.parametrize(
    ("locale", "form"), [("fa_IR", r"\d{10}"), ("he_IL", r"\d{7}"), ("vi_VN", r"\d{5}"), ("az_AZ", r"\d{4}")]
)
def test_postal_codes_have_the_length_of_the_country(locale, form):
    assert all(re.fullmatch(form, code) for code in values("zip_code", 500, of_template=locale))


def test_plates_name_their_region_as_the_country_does():
    plates = {
        "zu_ZA": {"WC": "CA ", "GP": ".* GP$", "KZN": ".* ZN$"},
        "vi_VN": {"HP": "15|16|34", "CT": "65|83|95", "HN": "29|3[0-3]|40"},
        "en_IN": {"TS": "TG", "TG": "TG", "KA": "KA"},
        "fa_IR": {"10": r".* ب \d{3} - (13|23|43|53|67)$"},
        "en_PK": {"PB": r"[A-Z]{3}-\d{3}$"},
    }
    for locale, regions in plates.items():
        seen = set()
        for row in rows(1_500, "state_abbr", "license_plate", locale=locale):
            if row["state_abbr"] in regions:
                seen.add(row["state_abbr"])
                assert re.match(regions[row["state_abbr"]], row["license_plate"]), row
        assert seen, locale


@pytest.mark.parametrize("locale", ["de_AT", "nl_NL", "pl_PL", "ja_JP", "en_GB", "uk_UA"])
def test_a_locale_asks_for_places_of_its_country(locale):
    generated = rows(300, locale=locale)
    assert {row["country_code"] for row in generated} == {locale[-2:]}
    assert len({row["city"] for row in generated}) > 30


def test_without_a_locale_places_are_all_over_the_world():
    counted = Counter(values("country", 5_000))
    assert len(counted) > 80
    assert counted.most_common(1)[0][1] < 1_000


def test_a_country_has_several_codes():
    group = [
        {"name": form, "type": "country_code", "options": {"format": form}, "group": "g"}
        for form in ("alpha2", "alpha3", "numeric")
    ]
    generated = table(bound(group), 0, 1_000)
    for alpha2, alpha3, numeric in zip(*generated.values(), strict=True):
        country = pycountry.countries.get(alpha_2=alpha2)
        assert (country.alpha_3, country.numeric) == (alpha3, numeric)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (
            {"country": "Spain"},
            {"country_code": {"ES"}, "time_zone": {"Europe/Madrid", "Atlantic/Canary", "Africa/Ceuta"}},
        ),
        ({"country_code": "jp"}, {"country": {"Japan"}, "time_zone": {"Asia/Tokyo"}}),
        ({"city": "Lyon"}, {"country": {"France"}, "state": {"Auvergne-Rhône-Alpes"}}),
        ({"state": "Texas"}, {"state_abbr": {"TX"}, "time_zone": {"America/Chicago", "America/Denver"}}),
        ({"time_zone": "Pacific/Auckland"}, {"country": {"New Zealand"}}),
        (
            {"zip_code": "10001"},
            {"city": {"New York", "Manhattan"}, "state_abbr": {"NY"}, "country_code": {"US"}},
        ),
        ({"zip_code": "SW1 1AA"}, {"country_code": {"GB"}}),
        ({"phone_number": "+47 400 00 000"}, {"country_code": {"NO"}}),
        ({"country": "FRA", "state": "Bretagne"}, {"state_abbr": {"BRE"}, "country_code": {"FR"}}),
    ],
)
def test_the_place_follows_what_is_fixed(overrides, expected):
    source = bound(fields(*PLACE), overrides=overrides)
    assert source.warnings == []
    generated = table(source, 0, 300)
    for name, allowed in expected.items():
        assert set(generated[name]) <= allowed, name
    if "zip_code" in overrides:
        assert all(overrides["zip_code"] in address for address in generated["address"])


def test_a_fixed_country_outweighs_the_locale():
    generated = rows(50, locale="de_DE", overrides={"country": "Spain"})
    assert {row["country_code"] for row in generated} == {"ES"}


@pytest.mark.parametrize(
    "overrides", [{"country": "Atlantis"}, {"city": "Xyzzy"}, {"zip_code": "??"}, {"latitude": 1.5}]
)
def test_no_place_fits_is_a_warning_and_leaves_the_rest_as_it_was(overrides):
    source = bound(fields(*PLACE), overrides=overrides)
    (name,) = overrides
    assert [(fault.path, fault.code) for fault in source.warnings] == [(f"overrides.{name}", "no_match")]
    generated, free = table(source, 0, 50), table(bound(fields(*PLACE)), 0, 50)
    assert all(generated[kind] == free[kind] for kind in PLACE if kind != name)


def test_fixed_values_that_fit_no_place_together_are_warned_of():
    source = bound(fields(*PLACE), overrides={"city": "Lyon", "country": "Spain"})
    assert {fault.path for fault in source.warnings} == {"overrides.city", "overrides.country"}


def test_a_country_without_divisions_or_codes_has_blanks_there_and_nothing_made_up():
    generated = rows(100, overrides={"country": "Hong Kong"})
    assert {row["state"] for row in generated} == {None}
    assert all(row["address"].endswith(f"{row['city']}, Hong Kong") for row in generated)
    assert all(phonenumbers.is_valid_number(phonenumbers.parse(row["phone_number"])) for row in generated)
    generated = rows(100, overrides={"country": "Panama"})
    assert all(re.fullmatch(r"\d{5}", row["zip_code"]) for row in generated)
    generated = rows(100, overrides={"country": "Ghana"})
    assert {row["zip_code"] for row in generated} == {None}


def test_a_single_field_generates_the_same_places_as_in_a_group():
    together = rows(200)
    for kind in PLACE:
        assert [row[kind] for row in rows(200, kind)] == [row[kind] for row in together]


def test_a_few_rows_are_drawn_like_many():
    assert rows(10, start=40) == rows(100)[40:50]
    assert rows(3, locale="fr_FR") == rows(100, locale="fr_FR")[:3]


@pytest.mark.parametrize(
    ("kind", "locale"), [("city", None), ("city", "de_DE"), ("country", None), ("state", "en_US")]
)
def test_a_unique_part_of_a_place_is_used_up_and_the_rest_follows(kind, locale):
    source = bound(
        [{"name": "x", "type": kind, "unique": True}, *fields("time_zone", "country_code")], locale=locale
    )
    space = source.plan.layer.columns["x"].type.distinct_count()
    source.check(0, space)
    generated = [table(source, start, min(8_192, space - start)) for start in range(0, space, 8_192)]
    found = [value for part in generated for value in part["x"]]
    assert len({value.casefold() for value in found}) == space
    if kind == "city":
        for part in generated:
            for city, zone, code in zip(*part.values(), strict=True):
                known = {place["timezone"] for place in geonames()[code, city]}
                known |= {CORRECTED.get((code, city, other), other) for other in known}
                assert zone in known | {ZONES.get((code, other), other) for other in known}
    with pytest.raises(SpecError):
        source.check(0, space + 1)


def test_only_one_part_of_a_place_can_be_unique():
    two = [{"name": kind, "type": kind, "unique": True} for kind in ("city", "country")]
    with pytest.raises(SpecError) as error:
        bound(two)
    (fault,) = error.value.faults
    assert (fault.path, fault.code) == ("fields[1].unique", "not_unique")
    assert '"city"' in fault.hint


def test_fixed_values_do_not_narrow_places_that_are_unique():
    source = bound(
        [{"name": "x", "type": "city", "unique": True}, *fields("country")], overrides={"country": "Spain"}
    )
    assert [fault.path for fault in source.warnings] == ["overrides.country"]


@pytest.mark.parametrize("kind", ["street_address", "address"])
def test_unique_addresses_of_a_country_never_repeat(kind):
    generated = values(kind, 30_000, unique=True, locale="fr_FR")
    assert len({address.casefold() for address in generated}) == 30_000
    assert faults(kind, unique=True) == {"unique": "not_unique"}


def test_an_address_may_be_street_and_number_only():
    short = [
        {"name": "a", "type": "address", "options": {"useFullAddress": False}},
        *fields("street_address"),
    ]
    generated = table(bound(short), 0, 200)
    assert generated["a"] == generated["street_address"]


def test_numbers_are_formatted_as_in_the_country():
    assert all(re.match(r"\d+ ", line) for line in values("street_address", 200, of_template="fr_FR"))
    assert all(re.search(r" \d+$", line) for line in values("street_address", 200, of_template="de_DE"))
    assert all(
        re.search(r"\D\d-\d+-\d+$", line) for line in values("street_address", 200, of_template="ja_JP")
    )


def test_four_digits_more_are_added_to_american_codes():
    plus = {"name": "z", "type": "zip_code", "options": {"format": "#####-####"}, "group": "g"}
    generated = table(
        bound([plus, {"name": "zip", "type": "zip_code", "group": "g"}], locale="en_US"), 0, 300
    )
    assert all(
        re.fullmatch(rf"{short}-\d{{4}}", long)
        for long, short in zip(generated["z"], generated["zip"], strict=True)
    )


def test_a_postal_pattern_is_filled_with_digits():
    assert all(
        re.fullmatch(r"X\d{2}/\d{3}", code) for code in values("zip_code", 300, options={"format": "X##/###"})
    )
    assert faults("zip_code", {"format": "none"}) == {"options.format": "string_pattern_mismatch"}
    assert len(set(values("zip_code", 1_000, options={"format": "###"}, unique=True))) == 1_000


def test_points_are_on_the_globe_and_differ_within_a_city():
    generated = rows(2_000, "latitude", "longitude", overrides=None)
    assert all(-90 <= row["latitude"] <= 90 and -180 <= row["longitude"] <= 180 for row in generated)
    lyon = table(bound(fields("city", "latitude", "longitude"), overrides={"city": "Lyon"}), 0, 100)
    assert len(set(lyon["latitude"])) > 80
    assert len(set(lyon["longitude"])) > 80

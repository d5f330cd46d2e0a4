"""Slugs, spelled letters, prices, numbers of papers, machines, bodies and finer parts of places."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal

import pytest

from tests.engine.types.made import assert_laws, bound, faults, table, values
from webapp.engine.types.registry import BY_NAME, find


def test_slugs_are_words_of_plain_letters():
    assert all(re.fullmatch("[a-z]+(-[a-z]+){2}", value) for value in values("slug", 1_000))
    assert all(
        re.fullmatch("[a-z]+(_[a-z]+){4}", value)
        for value in values("slug", 50, options={"count": 5, "separator": "_"})
    )
    assert_laws("slug")


def test_slugs_of_a_field_match_its_text():
    titles = ["Crème Brûlée & Co.", "  Straße 12b ", "It's -- here", "ÅNGSTRÖM", "…", "ﬁne ℡"]
    fields = [
        {"name": "title", "type": "list_sequential", "options": {"values": titles}},
        {"name": "slug", "type": "slug", "options": {"field": "title"}},
        {"name": "under", "type": "slug", "options": {"field": "title", "separator": "_"}},
        {"name": "number", "type": "row_number"},
        {"name": "plain", "type": "slug", "options": {"field": "number"}},
    ]
    generated = table(bound(fields), 0, 6)
    assert generated["slug"] == ["creme-brulee-co", "strasse-12b", "its-here", "angstrom", "", "fine-tel"]
    assert generated["under"][0] == "creme_brulee_co"
    assert generated["plain"][:2] == ["1", "2"]


def test_slugs_have_one_way_to_be_requested():
    assert faults("slug", {"field": "x"}) != {}
    other = {"name": "title", "type": "city"}
    with pytest.raises(Exception, match="count cannot be combined with field") as error:
        bound([other, {"name": "x", "type": "slug", "options": {"field": "title", "count": 2}}])
    assert error.value.faults[0].path == "fields[1].options.count"


NATO = "Alfa Bravo Charlie Delta Echo Foxtrot Golf Hotel India Juliett Kilo Lima Mike November Oscar Papa Quebec Romeo "
NATO += "Sierra Tango Uniform Victor Whiskey X-ray Yankee Zulu"


@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_letters_use_the_spelling_alphabet(count):
    generated = values("nato_phonetic", 2_000, options={"count": count})
    assert {word for item in generated for word in item.split(" ")} == set(NATO.split())
    assert {len(item.split(" ")) for item in generated} == {count}
    assert_laws("nato_phonetic", {"count": count})


def test_weights_are_kept_and_not_left_out():
    options = {"values": ["a", "b", "c"], "weights": [70, 25, 5]}
    counted = Counter(values("weighted_list", 20_000, options=options))
    assert abs(counted["a"] - 14_000) < 400
    assert abs(counted["c"] - 1_000) < 150
    assert faults("weighted_list", {"values": ["a"]}) == {"options.weights": "required"}
    assert faults("weighted_list", {"values": ["a", "b"], "weights": [1]}) == {
        "options.weights": "wrong_length"
    }


def test_template_strings_are_text_with_or_without_fields():
    fields = [
        {"name": "n", "type": "row_number"},
        {"name": "x", "type": "template_string", "options": {"value": "No. {{n}} of {{n * 2}}"}},
        {"name": "y", "type": "template_string", "options": {"template": "n + 1"}},
    ]
    generated = table(bound(fields), 0, 2)
    assert generated["x"] == ["No. 1 of 2", "No. 2 of 4"]
    assert generated["y"] == ["n + 1", "n + 1"]
    assert faults("template_string", {"value": "{{nobody}}"}) == {"options.value": "unknown_field"}


# --- Bodies -------------------------------------------------------------------------------------------------


def people(count: int = 20_000, **ages) -> dict[str, list]:
    fields = [
        {"name": "first", "type": "first_name"}, {"name": "sex", "type": "sex"},
        {"name": "cm", "type": "height", "group": "person"},
        {"name": "m", "type": "height", "options": {"unit": "m"}, "group": "person"},
        {"name": "inch", "type": "height", "options": {"unit": "in"}, "group": "person"},
        {"name": "feet", "type": "height", "options": {"unit": "ft"}, "group": "person"},
        {"name": "kg", "type": "weight", "group": "person"},
        {"name": "lb", "type": "weight", "options": {"unit": "lb"}, "group": "person"},
        {"name": "shirt", "type": "shirt_size"},
    ]  # fmt: skip
    if ages:
        fields.append({"name": "age", "type": "age", "options": ages})
    return table(bound(fields), 0, count)


def mean(numbers: list) -> float:
    return float(sum(numbers) / len(numbers))


def test_heights_are_those_of_women_and_men():
    result = people()
    women = [cm for cm, sex in zip(result["cm"], result["sex"], strict=True) if sex == "female"]
    men = [cm for cm, sex in zip(result["cm"], result["sex"], strict=True) if sex == "male"]
    assert abs(mean(women) - 163) < 0.5
    assert abs(mean(men) - 176.5) < 0.5
    assert min(women) >= 139
    assert max(men) <= 202
    spread = mean([(cm - mean(men)) ** 2 for cm in men]) ** 0.5
    assert abs(spread - 7.1) < 0.2


def test_one_person_has_one_height_and_weight_in_every_unit():
    result = people(5_000)
    for cm, metres, inch, feet, kg, lb in zip(
        *(result[n] for n in ("cm", "m", "inch", "feet", "kg", "lb")), strict=True
    ):
        assert metres == Decimal(cm) / 100
        assert abs(inch - cm / 2.54) < 0.8
        whole, rest = feet.rstrip('"').split("'")
        assert int(whole) * 12 + int(rest) == inch
        assert abs(float(lb) - float(kg) / 0.45359237) < 0.2


def test_weight_and_shirt_agree_with_the_height():
    result = people()
    masses = [float(kg) / (cm / 100) ** 2 for kg, cm in zip(result["kg"], result["cm"], strict=True)]
    assert min(masses) > 16
    assert max(masses) < 40
    assert abs(mean(masses) - 25.2) < 0.3
    order = ["XS", "S", "M", "L", "XL", "2XL", "3XL"]
    assert set(result["shirt"]) == set(order)
    heavy = sorted(zip(result["kg"], (order.index(item) for item in result["shirt"]), strict=True))
    assert [size for _, size in heavy] == sorted(size for _, size in heavy)


def test_children_are_as_tall_as_children():
    result = people(5_000, min=0, max=30)
    for low, high, least, most in ((0, 0, 45, 80), (5, 5, 88, 130), (10, 10, 112, 160), (18, 30, 139, 202)):
        heights = [cm for cm, age in zip(result["cm"], result["age"], strict=True) if low <= age <= high]
        assert heights
        assert least <= min(heights)
        assert max(heights) <= most


def test_blood_is_as_common_as_it_is():
    counted = Counter(values("blood_type", 50_000))
    assert set(counted) == {"O+", "O-", "A+", "A-", "B+", "B-", "AB+", "AB-"}
    assert abs(counted["O+"] - 19_000) < 600
    assert sorted(values("blood_type", 8, unique=True)) == sorted(counted)


@pytest.mark.parametrize(
    ("service", "form"),
    [
        ("at", "@{}"),
        ("plain", "{}"),
        ("matrix", "@{}:example.org"),
        ("skype", "live:{}"),
        ("mastodon", "@{}@example.org"),
    ],
)
def test_handles_are_the_persons_user_name(service, form):
    fields = [
        {"name": "user", "type": "username"},
        {"name": "x", "type": "messaging_handle", "options": {"service": service}},
    ]
    generated = table(bound(fields), 0, 500)
    assert generated["x"] == [form.format(user) for user in generated["user"]]
    assert_laws("messaging_handle", {"service": service})


# --- Places -------------------------------------------------------------------------------------------------

BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"


def geohash(latitude: Decimal, longitude: Decimal, precision: int) -> str:
    """The published algorithm: halve the ranges in turn."""
    ranges = [[Decimal(-180), Decimal(180)], [Decimal(-90), Decimal(90)]]
    bits = 0
    for bit in range(5 * precision):
        low, high = ranges[bit % 2]
        middle, value = (low + high) / 2, (longitude, latitude)[bit % 2]
        bits = bits << 1 | (value >= middle)
        ranges[bit % 2] = [middle, high] if value >= middle else [low, middle]
    return "".join(BASE32[bits >> 5 * (precision - 1 - n) & 31] for n in range(precision))


def test_the_arithmetic_here_is_the_published_one():
    assert geohash(Decimal("57.64911"), Decimal("10.40744"), 11) == "u4pruydqqvj"
    assert geohash(Decimal("-25.38262"), Decimal("-49.26561"), 8) == "6gkzwgjz"


@pytest.mark.parametrize("precision", [1, 5, 9, 12])
def test_geohashes_agree_with_latitude_and_longitude(precision):
    fields = [
        {"name": "lat", "type": "latitude"}, {"name": "lon", "type": "longitude"}, {"name": "city", "type": "city"},
        {"name": "x", "type": "geohash", "options": {"precision": precision}},
    ]  # fmt: skip
    generated = table(bound(fields), 0, 2_000)
    expected = [
        geohash(lat, lon, precision) for lat, lon in zip(generated["lat"], generated["lon"], strict=True)
    ]
    assert generated["x"] == expected


@pytest.mark.parametrize("locale", [None, "de_DE", "fr_FR", "en_US", "ja_JP"])
def test_house_numbers_are_those_of_the_street_address(locale):
    fields = [
        {"name": "line", "type": "street_address"}, {"name": "street", "type": "street_name"},
        {"name": "x", "type": "street_number"},
    ]  # fmt: skip
    generated = table(bound(fields, locale=locale), 0, 1_000)
    for line, street, number in zip(generated["line"], generated["street"], generated["x"], strict=True):
        assert line in (f"{number} {street}", f"{street} {number}", f"{street}{number}")


def test_second_lines_are_in_the_words_of_the_locale():
    assert all(
        re.fullmatch(r"(Apt\.|Suite|Unit|Floor) \d{1,3}", value) for value in values("address_line_2", 500)
    )
    german = values("address_line_2", 500, locale="de_AT")
    assert {item.split(" ")[0] for item in german} == {"Wohnung", "Etage", "App."}
    japanese = values("address_line_2", 500, locale="ja_JP")
    assert all(re.fullmatch(r"\d{1,3}(号室|階)", line) for line in japanese)
    assert faults("address_line_2", locale="yo_NG") == {"locale": "not_for_this_type"}
    source = bound([{"name": "x", "type": "address_line_2"}], locale="yo_NG")
    assert [fault.code for fault in source.warnings] == ["other_language"]
    assert_laws("address_line_2")


# --- Money and numbers of papers ------------------------------------------------------------------------------


def test_prices_have_the_requested_ending_and_reach_both_bounds():
    generated = values("price", 20_000)
    assert {int(item * 100) % 100 for item in generated} == {99, 95, 49, 0}
    assert (min(generated), max(generated)) == (Decimal("1.00"), Decimal("500.00"))
    few = {"min": 1.49, "max": 3.99, "endings": [99, 49]}
    every = sorted(values("price", 6, options=few, unique=True))
    assert every == [Decimal(item) for item in ("1.49", "1.99", "2.49", "2.99", "3.49", "3.99")]
    assert faults("price", few, unique=True) == {}
    assert min(values("price", 500, options={"min": 1.495, "max": 2})) == Decimal("1.95")
    assert values("price", 3, options={"min": 5, "max": 5, "endings": [0]}) == [Decimal(5)] * 3


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"min": 9, "max": 1}, {"options.min": "min_above_max"}),
        ({"min": 5, "max": 5, "endings": [99]}, {"options.endings": "too_narrow"}),
        ({"endings": [100, 99]}, {"options.endings[0]": "less_than_equal"}),
        ({"min": -1}, {"options.min": "out_of_range"}),
        ({"endings": []}, {"options.endings": "too_short"}),
    ],
)
def test_impossible_prices_are_rejected(options, expected):
    assert faults("price", options) == expected


def test_capacities_are_counted():
    for name in ("price", "port", "stock_symbol", "image_url", "semver", "flight_number", "nato_phonetic",
                 "address_line_2", "order_number", "duns", "car_year"):  # fmt: skip
        source = bound([{"name": "x", "type": name}])
        space = source.plan.layer.columns["x"].type.distinct_count_for(source.states["x"])
        assert BY_NAME[name].capacity() == space, name


def test_invoices_count_up_without_a_gap():
    generated = values("invoice_number", 3, start=8)
    assert generated == ["INV-2026-000009", "INV-2026-000010", "INV-2026-000011"]
    options = {"format": "RE-YY/MM-###", "start": 998}
    assert values("invoice_number", 4, options=options) == [
        "RE-26/01-998", "RE-26/01-999", "RE-26/01-1000", "RE-26/01-1001",
    ]  # fmt: skip
    assert faults("invoice_number", {"format": "INV"}) == {"options.format": "wrong_format"}
    assert faults("invoice_number", {"format": "#-#"}) == {"options.format": "wrong_format"}
    assert_laws("invoice_number", options)


def test_orders_are_of_their_mask():
    assert all(re.fullmatch(r"ORD-\d{8}", value) for value in values("order_number", 500))
    assert all(
        re.fullmatch(r"[A-Z]{2}-\d{6}", value)
        for value in values("order_number", 500, options={"format": "^^-######"})
    )
    assert all(re.fullmatch(r"\d\d-\d{3}-\d{4}", value) for value in values("duns", 100))
    assert all(re.fullmatch(r"\d{9}", value) for value in values("duns", 100, options={"formatted": False}))
    assert {len(value) for value in values("stock_symbol", 2_000)} == {3, 4}


# --- Machines -----------------------------------------------------------------------------------------------


def test_hosts_are_in_a_reserved_domain_or_the_requested_one():
    assert all(
        re.fullmatch(r"[a-z]+-\d\d\.[a-z]+\.example(\.(com|net|org))?", value)
        for value in values("hostname", 1_000)
    )
    own = values("hostname", 500, options={"domain": "Corp.Internal"})
    assert all(re.fullmatch(r"[a-z]+-\d\d\.corp\.internal", item) for item in own)
    assert faults("hostname", {"domain": "no domain!"}) == {"options.domain": "wrong_format"}
    assert faults("hostname", {"domain": "corp.internal"}, unique=True) == {}


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("any", 1, 65_535), ("system", 1, 1023), ("user", 1024, 49_151), ("dynamic", 49_152, 65_535)],
)
def test_ports_are_of_their_range(name, low, high):
    generated = values("port", 5_000, options={"range": name})
    assert low <= min(generated)
    assert max(generated) <= high
    assert max(generated) - min(generated) > (high - low) * 0.95
    assert_laws("port", {"range": name})


def test_paths_and_pictures():
    assert all(re.fullmatch(r"(/[\w]+)+/[\w]+-\d{4}\.\w+", value) for value in values("file_path", 500))
    windows = values("file_path", 500, options={"system": "windows", "extension": "csv"})
    assert all(re.fullmatch(r"([A-Z]:|\\\\\w+)(\\\w+)+\\\w+-\d{4}\.csv", window) for window in windows)
    generated = values("image_url", 500, options={"width": 32, "height": 16, "format": "png"})
    assert all(re.fullmatch(r"https://images\.example/32x16/\d{6}\.png", item) for item in generated)


def test_versions_and_bundles():
    semver = r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(alpha|beta|rc)\.[1-9])?"
    assert all(re.fullmatch(semver, value) and "-" not in value for value in values("semver", 1_000))
    early = values("semver", 1_000, options={"max_major": 0, "prerelease": True})
    assert all(re.fullmatch(semver, item) and item.startswith("0.") for item in early)
    assert any("-rc." in item for item in early)
    assert all(re.fullmatch(r"(com|io|org|net)\.[a-z]+\.[a-z]+", value) for value in values("bundle_id", 500))


ELSEWHERE = {
    # Mockaroo
    "Address Line 2": "address_line_2", "App Bundle ID": "bundle_id", "App Version": "semver",
    "Bitcoin Address": "bitcoin_address", "Car Model Year": "car_year", "Car VIN": "vin", "DUNS Number": "duns",
    "Dummy Image URL": "image_url", "JSON Array": "json", "MD5": "md5", "SHA1": "sha1", "SHA256": "sha256",
    "Medicare Beneficiary ID": "medicare_id", "Password Hash": "password_hash", "Repeating Element": "array",
    "Shirt Size": "shirt_size", "Stock Symbol": "stock_symbol", "Street Number": "street_number",
    # Faker
    "building_number": "street_number", "file_path": "file_path", "hostname": "hostname", "image_url": "image_url",
    "license_plate": "license_plate", "passport_number": "passport_number", "port_number": "port",
    "pricetag": "price", "pystr_format": "template_string", "random_elements": "weighted_list",
    "secondary_address": "address_line_2", "slug": "slug", "vin": "vin",
    # databases
    "jsonb": "json", "unitPrice": "price", "house_no": "street_number", "apiKey": "api_key", "commit_hash": "sha1",
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), ELSEWHERE.items())
def test_types_are_found_by_what_others_call_them(name, kind):
    assert find(name).name == kind

"""All attributes of one person are consistent."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.types.made import bound, faults, table
from webapp.engine import random, text_parts
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.random import RandomStream
from webapp.engine.types import joining

GENDERS = {
    "en_US": {"female": "Female", "male": "Male"},
    "cs_CZ": {"female": "Žena", "male": "Muž"},
    "ja_JP": {"female": "女性", "male": "男性"},
}
PERSON = ["first_name", "last_name", "name", "sex", "gender", "email", "username", "avatar", "middle_name"]


def fields(*kinds: str, **common) -> list[dict]:
    return [{"name": kind, "type": kind, **common} for kind in kinds]


def people(count: int, *kinds: str, start: int = 0, overrides: dict | None = None, **common) -> list[dict]:
    generated = table(bound(fields(*(kinds or PERSON), **common), overrides=overrides), start, count)
    return [dict(zip(generated, row, strict=True)) for row in zip(*generated.values(), strict=True)]


def plain_names(locale: str) -> dict[str, str]:
    spelled = vocabulary.open_default().table("romanized").to_pylist()
    return {row["word"]: row["ascii"] for row in spelled if row["locale"] == locale}


@pytest.mark.parametrize("locale", ["en_US", "cs_CZ", "ja_JP"])
def test_ten_thousand_people_never_contradict_themselves(locale):
    lists = vocabulary.open_default()
    first = {sex: set(lists.words(f"first_name_{sex}", locale).to_pylist()) for sex in ("female", "male")}
    last = {sex: set(lists.words(f"last_name_{sex}", locale).to_pylist()) for sex in ("female", "male")}
    spelled = plain_names(locale)
    for row in people(10_000, locale=None) if locale == "en_US" else localised(10_000, locale):
        assert row["first_name"] in first[row["sex"]]
        assert row["middle_name"] in first[row["sex"]]
        assert row["last_name"] in last[row["sex"]]
        assert row["gender"] == GENDERS[locale][row["sex"]]
        order = "{last_name}{first_name}" if locale == "ja_JP" else "{first_name} {last_name}"
        assert row["name"] == order.format(**row)
        assert row["email"].partition("@")[0] == row["username"]
        assert row["avatar"].endswith(f"seed={row['username']}")
        given, family = spelled[row["first_name"]], spelled[row["last_name"]]
        handle = row["username"].rstrip("0123456789")
        assert handle in {
            f"{given}.{family}",
            given + family,
            given[0] + family,
            f"{given}_{family}",
            f"{given[0]}.{family}",
        }


def localised(count: int, locale: str) -> list[dict]:
    generated = table(bound(fields(*PERSON), locale=locale), 0, count)
    return [dict(zip(generated, row, strict=True)) for row in zip(*generated.values(), strict=True)]


def test_both_sexes_are_as_frequent():
    counted = Counter(row["sex"] for row in people(10_000, "sex"))
    assert abs(counted["female"] - 5_000) < 4 * 50  # four standard deviations


def test_a_single_field_generates_the_same_people_as_in_a_group():
    together = people(300)
    for kind in PERSON:
        assert [row[kind] for row in people(300, kind)] == [row[kind] for row in together]


def test_a_few_rows_are_drawn_like_many():
    assert people(10, start=40) == people(100)[40:50]


def test_hungarian_names_start_with_the_family_name():
    rows = localised(100, "hu")
    assert all(row["name"] == f"{row['last_name']} {row['first_name']}" for row in rows)


def test_the_locale_of_one_field_is_that_of_its_person():
    generated = table(
        bound([{"name": "first", "type": "first_name", "locale": "ko_KR"}, *fields("last_name", "email")]),
        0,
        50,
    )
    korean = set(vocabulary.open_default().words("last_name_female", "ko_KR").to_pylist())
    assert set(generated["last_name"]) <= korean
    assert all(address.isascii() for address in generated["email"])


def test_two_locales_for_one_person_are_rejected():
    two = [
        {"name": "a", "type": "first_name", "locale": "de_DE"},
        {"name": "b", "type": "last_name", "locale": "fr_FR"},
    ]
    with pytest.raises(SpecError) as error:
        bound(two)
    assert [(fault.path, fault.code) for fault in error.value.faults] == [("fields[1].locale", "conflict")]
    bound([two[0], {**two[1], "group": "other"}])


def test_an_unknown_locale_of_a_field_is_rejected():
    assert faults("first_name", locale="tlh_KX") == {"locale": "unknown_locale"}


def test_a_requested_sex_applies_to_the_whole_person():
    generated = table(
        bound([{"name": "f", "type": "first_name", "options": {"sex": "female"}}, *fields("sex", "name")]),
        0,
        500,
    )
    assert set(generated["sex"]) == {"female"}
    assert all(name.startswith(first) for first, name in zip(generated["f"], generated["name"], strict=True))


def test_a_share_of_people_is_non_binary_when_asked():
    generated = table(bound([{"name": "g", "type": "gender", "options": {"nonbinary": 10}}]), 0, 10_000)["g"]
    assert abs(generated.count("Non-binary") - 1_000) < 4 * 30


def test_a_title_belongs_to_the_department():
    table_ = vocabulary.open_default().table("english_title").to_pylist()
    names = vocabulary.open_default().words("department").to_pylist()
    stored = {row["title"]: names[row["department"]] for row in table_}
    rows = people(2_000, "job_title", "department")
    assert all(stored[row["job_title"]] == row["department"] for row in rows)
    assert {row["department"] for row in rows} == set(names)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"first_name": "Anna"}, {"sex": "female", "gender": "Female", "first_name": "Anna"}),
        ({"sex": "male"}, {"gender": "Male"}),
        ({"gender": "Female"}, {"sex": "female"}),
        ({"last_name": "smith"}, {}),
        ({"name": "Mary Smith"}, {"first_name": "Mary", "last_name": "Smith", "sex": "female"}),
        ({"email": "mary.smith7@acme.test"}, {"name": "Mary Smith", "sex": "female"}),
    ],
)
def test_the_person_follows_what_is_fixed(overrides, expected):
    source = bound(fields(*PERSON), overrides=overrides)
    assert source.warnings == []
    generated = table(source, 0, 200)
    for name, value in expected.items():
        assert set(generated[name]) == {value}
    if "first_name" in overrides:
        assert all(address.startswith("a") for address in generated["email"])
        assert len(set(generated["email"])) > 100
    if "last_name" in overrides:
        assert all(name.endswith(" Smith") for name in generated["name"])
        assert all("smith" in address for address in generated["email"])


def test_a_fixed_title_fixes_the_department():
    generated = table(bound(fields("job_title", "department"), overrides={"job_title": "Paralegal"}), 0, 20)
    assert set(generated["department"]) == {"Legal"}


@pytest.mark.parametrize(
    "overrides", [{"first_name": "Zaphod"}, {"name": "Nobody"}, {"sex": "robot"}, {"email": "zzz@acme.test"}]
)
def test_fixed_values_that_no_one_matches_are_a_warning_and_change_nothing_else(overrides):
    source = bound(fields(*PERSON), overrides=overrides)
    (name,) = overrides
    assert [(fault.path, fault.code) for fault in source.warnings] == [(f"overrides.{name}", "no_match")]
    others = [kind for kind in PERSON if kind != name]
    generated, free = table(source, 0, 50), table(bound(fields(*PERSON)), 0, 50)
    assert [generated[kind] for kind in others] == [free[kind] for kind in others]


def test_fixed_values_that_no_one_matches_are_warned_about():
    source = bound(fields(*PERSON), overrides={"first_name": "Anna", "sex": "male"})
    assert {fault.path for fault in source.warnings} == {"overrides.first_name", "overrides.sex"}


@pytest.mark.parametrize("kind", ["email", "username", "avatar"])
def test_unique_addresses_never_repeat_and_keep_to_the_name(kind):
    generated = table(
        bound([*fields("first_name", "last_name"), {"name": "x", "type": kind, "unique": True}]), 0, 30_000
    )
    assert len({value.casefold() for value in generated["x"]}) == 30_000
    spelled = plain_names("en_US")
    for last, value in zip(generated["last_name"][:500], generated["x"], strict=False):
        assert spelled[last] in value


def test_unique_addresses_of_one_person_have_one_number():
    unique = [{"name": kind, "type": kind, "unique": True} for kind in ("email", "username")]
    generated = table(bound(unique), 8_990, 20)
    assert [address.partition("@")[0] for address in generated["email"]] == generated["username"]
    assert all(len("".join(filter(str.isdigit, name))) == 4 for name in generated["username"][:10])
    assert all(len("".join(filter(str.isdigit, name))) == 5 for name in generated["username"][10:])


@given(st.sets(st.integers(0, joining.SUFFIX_SPACE - 1), min_size=2, max_size=200), st.integers(0, 2**64 - 1))
def test_suffixes_of_any_rows_differ(rows, key):
    draws = RandomStream(np.uint64(key), np.array(sorted(rows), np.uint64))
    result = joining.unique_suffixes(draws)
    assert len(set(result.tolist())) == len(rows)
    one_by_one = [
        joining.unique_suffixes(RandomStream(draws.key, draws.rows[i : i + 1]))[0] for i in range(len(rows))
    ]
    assert result.tolist() == one_by_one


def test_suffixes_use_every_number_of_their_length():
    rows = np.arange(9_000, dtype=np.uint64)
    assert sorted(joining.unique_suffixes(RandomStream(np.uint64(5), rows)).tolist()) == list(
        range(1_000, 10_000)
    )


@pytest.mark.parametrize("locale", ["ja_JP", "zh_CN", "hu_HU", "pt_PT"])
def test_unique_names_use_up_every_pair_of_names_once(locale):
    source = bound([{"name": "x", "type": "name", "unique": True}], locale=locale)
    space = source.plan.layer.columns["x"].type.distinct_count()
    source.check(0, space)
    generated = [
        name
        for start in range(0, space, 8_192)
        for name in table(source, start, min(8_192, space - start))["x"]
    ]
    assert len({name.casefold() for name in generated}) == space
    with pytest.raises(SpecError) as error:
        source.check(1, space)
    assert f"{space:,} exist" in error.value.faults[0].message


@pytest.mark.parametrize("kind", ["name", "first_name", "last_name"])
def test_a_unique_name_in_a_group_of_a_person_is_rejected_with_advice(kind):
    with pytest.raises(SpecError) as error:
        bound([{"name": "x", "type": kind, "unique": True}, *fields("email")])
    (fault,) = error.value.faults
    assert (fault.path, fault.code) == ("fields[0].unique", "not_unique")
    assert "email" in fault.hint
    bound([{"name": "x", "type": kind, "unique": True, "group": "alone"}, *fields("email")])


def test_the_bits_of_few_rows_are_those_of_many():
    rows = np.arange(text_parts.FEW_ROWS, dtype=np.uint64)
    draws = RandomStream(random.key("s", "g"), rows)
    salted, single = joining.SaltedBits(draws, 4), joining.SaltedBits(draws, 0)
    for salt in range(4):
        assert salted.bits(salt).tolist() == single.bits(salt).tolist() == draws.bits(salt).tolist()


@pytest.mark.parametrize("start", [0, 8_990, 98_990, 99_998_990, 10**12])
def test_the_number_of_a_unique_address_is_written_whole(start):
    source = bound([{"name": "x", "type": "username", "unique": True}])
    generated = table(source, start, 40)["x"]
    key = source.keys["group:person:person"]
    numbers = joining.unique_suffixes(RandomStream(key, np.arange(start, start + 40, dtype=np.uint64)))
    assert ["".join(filter(str.isdigit, name)) for name in generated] == [str(number) for number in numbers]
    assert table(source, start, 5)["x"] == generated[:5]

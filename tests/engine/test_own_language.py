"""Rows of a locale are in its own script and language, and say so where they are not."""

from __future__ import annotations

import re
import unicodedata

import pytest
from babel import Locale

from bench import truth
from tests.engine.types.made import bound, table
from webapp.engine.data import vocabulary

WORDS = vocabulary.open_default()
ROWS = 200
PLACES = ("name", "city", "street_address", "address", "district", "country")
SCRIPTED = [locale for locale in WORDS.locales if WORDS.has_words("street", f"{locale}@own")]


def rows(locale: str | None, *fields: dict) -> dict[str, list]:
    return table(bound(list(fields), locale=locale), 0, ROWS)


def of(*kinds: str, **options: object) -> list[dict]:
    return [{"name": kind, "type": kind, "options": options} for kind in kinds]


def latin(texts: list[str]) -> bool:
    return all(unicodedata.name(ch, "").startswith("LATIN") for text in texts for ch in text if ch.isalpha())


def test_every_locale_of_faker_is_known():
    from faker.config import AVAILABLE_LOCALES

    unknown = [name for name in AVAILABLE_LOCALES if WORDS.resolve(name) is None]
    assert sorted(unknown) == ["la"]  # a language of no country
    assert len(WORDS.locales) > 100


@pytest.mark.parametrize("locale", SCRIPTED)
def test_names_and_places_are_in_the_script_of_the_locale(locale):
    columns = rows(locale, *of(*PLACES))
    scripts = truth.SCRIPTS[locale.partition("_")[0]]
    wrong = {
        name: next(text for text in texts if not truth._in_script(text, scripts))
        for name, texts in columns.items()
        if not all(truth._in_script(text, scripts) for text in texts)
    }
    assert wrong == {}


@pytest.mark.parametrize("locale", ["ja_JP", "ru_RU", "ar_EG", "th_TH", "hi_IN"])
def test_romanized_texts_are_in_latin_letters(locale):
    assert all(latin(texts) for texts in rows(locale, *of(*PLACES, romanized=True)).values())


@pytest.mark.parametrize(
    ("locale", "months", "days"),
    [
        ("de_DE", "format", "format"),
        ("ja_JP", "format", "format"),
        ("sw_KE", "format", "format"),
        ("vi_VN", "format", "format"),
        ("ru_RU", "stand-alone", "format"),
        ("fi_FI", "stand-alone", "stand-alone"),
    ],
)
def test_months_weekdays_and_countries_are_those_of_the_cldr(locale, months, days):
    """As they are written alone: Babel reads the forms of another language where CLDR has only one."""
    columns = rows(locale, *of("month", "weekday", "country"))
    cldr = Locale.parse(locale)
    assert set(columns["month"]) == set(cldr.months[months]["wide"].values())
    assert set(columns["weekday"]) == set(cldr.days[days]["wide"].values())
    assert set(columns["country"]) == {cldr.territories[locale[-2:]]}


def test_a_name_and_its_reading_are_of_one_person():
    readings = dict(
        zip(*(WORDS.table("kana")[name].to_pylist() for name in ("word", "katakana")), strict=True)
    )
    columns = rows(None, *of("first_name", "last_name", "name", "name_kana", "first_name_kana"))
    for first, last, name, kana, first_kana in zip(*columns.values(), strict=True):
        assert name == f"{last}{first}"
        assert kana == f"{readings[last]} {readings[first]}"
        assert first_kana == readings[first]


def test_a_name_may_stand_next_to_itself_in_latin_letters():
    roman = {"name": "roman", "type": "name", "options": {"romanized": True}}
    columns = rows("ru_RU", *of("name", "email"), roman)
    assert latin(columns["roman"])
    for text, mail in zip(columns["roman"], columns["email"], strict=True):
        assert mail.partition("@")[0].rstrip("0123456789")[-3:] == text.lower().replace("'", "")[-3:]


def test_a_locale_without_words_says_so():
    source = bound(of("industry", "product_name", "words", "month"), locale="yo_NG")
    assert [(fault.path, fault.code) for fault in source.warnings] == [
        ("fields[0]", "other_language"),
        ("fields[1]", "other_language"),
    ]


@pytest.mark.parametrize(
    ("locale", "blank"),
    [
        ("de_DE", set()),
        ("de_LI", {"state", "airport_code"}),
        ("ar_PS", {"state", "airport_code", "zip_code"}),
    ],
)
def test_a_country_without_values_of_a_type_says_so(locale, blank):
    source = bound(of("state", "airport_code", "zip_code"), locale=locale)
    names = ("state", "airport_code", "zip_code")
    assert {name for name, texts in table(source, 0, ROWS).items() if set(texts) == {None}} == blank
    assert [fault.path for fault in source.warnings] == [
        f"fields[{at}]" for at, name in enumerate(names) if name in blank
    ]
    assert {fault.code for fault in source.warnings} <= {"no_values"}


def test_a_unique_city_in_its_own_script_does_not_repeat():
    field = {"name": "city", "type": "city", "unique": True}
    texts = table(bound([field], locale="ja_JP"), 0, 700)["city"]
    assert len(set(texts)) == 700


@pytest.mark.parametrize(
    ("locale", "nationality", "product"),
    [("de_CH", "schweizerisch", "Velohelm"), ("ja_JP", "日本", "ソファ"), ("sw_KE", "Mkenya", "Sufuria")],
)
def test_nationalities_and_products_are_in_the_language_of_the_locale(locale, nationality, product):
    columns = rows(locale, *of("nationality", "product"))
    assert set(columns["nationality"]) == {nationality}
    assert product in columns["product"]


def test_a_nationality_of_another_country_is_english_and_says_so():
    phone = {"name": "phone_number", "type": "phone_number", "options": {"country": "France"}}
    source = bound([phone, *of("nationality")], locale="de_DE")
    assert set(table(source, 0, ROWS)["nationality"]) == {"French"}
    assert [(fault.path, fault.code) for fault in source.warnings] == [("fields[1]", "other_language")]


def test_a_thing_without_a_certain_word_is_left_out():
    columns = rows("mt_MT", *of("product"))
    assert "-" not in columns["product"]
    assert len(set(columns["product"])) > 20


def test_words_of_lists_are_in_one_script():
    mixed = re.compile(r"\b(?=\w*[A-Za-z])(?=\w*[\u0370-\u04ff])\w+")
    found = {
        (name, locale, word)
        for name, locales in WORDS.locales_by_name().items()
        for locale in locales
        for word in WORDS.words(name, locale).to_pylist()
        if mixed.search(word)
    }
    assert len(WORDS.locales_by_name()) > 10
    assert found == set()

"""Goods: a row is about one product, and article numbers have right check digits."""

from __future__ import annotations

import numpy as np
import pytest
from stdnum import ean, isbn, issn

from tests.engine.types.made import assert_laws, bound, table, values
from webapp.engine.data import vocabulary
from webapp.engine.types.commerce import EnglishCatalogue, LocalCatalogue, ProductSelection

FIELDS = [
    {"name": "product", "type": "product"},
    {"name": "title", "type": "Product Name"},
    {"name": "category", "type": "product_category"},
    {"name": "sku", "type": "sku"},
]


@pytest.mark.parametrize(
    "kind", ["product", "product_name", "product_category", "sku", "ean13", "ean8", "upc", "isbn", "issn"]
)
def test_rows_depend_only_on_their_number(kind):
    assert_laws(kind)


def contradictions(rows: dict[str, list]) -> list[tuple]:
    goods = EnglishCatalogue(vocabulary.open_default())
    names = goods.categories.to_pylist()
    category = {thing: names[goods.category[i]] for i, thing in enumerate(goods.products.to_pylist())}
    code = dict(zip(names, goods.codes, strict=True))
    return [
        row
        for row in zip(*(rows[field["name"]] for field in FIELDS), strict=True)
        if not (
            row[1].endswith(f" {row[0]}")
            and category[row[0]] == row[2]
            and row[3].startswith(f"{code[row[2]]}-")
        )
    ]


def test_ten_thousand_products_never_contradict_themselves():
    source = bound(FIELDS)
    assert contradictions(table(source, 0, 8192)) == []
    assert contradictions(table(source, 8192, 1808)) == []


@pytest.mark.parametrize(
    ("unique", "count"), [("title", 8192), ("product", 543), ("category", 20), ("sku", 8192)]
)
def test_a_unique_field_still_agrees_with_the_rest_of_its_product(unique, count):
    rows = table(bound([{**field, "unique": field["name"] == unique} for field in FIELDS]), 0, count)
    assert len(set(rows[unique])) == count
    assert contradictions(rows) == []


def test_product_names_go_past_a_million():
    assert bound(FIELDS).plan.layer.columns["title"].type.distinct_count() > 2_000_000


def test_fixed_values_narrow_the_product():
    source = bound(FIELDS, overrides={"category": "Furniture"})
    rows = table(source, 0, 500)
    assert contradictions(rows) == []
    assert source.warnings == []
    assert len(set(rows["product"])) > 10
    odd = bound(FIELDS, overrides={"category": "Spaceships"})
    assert [warning.code for warning in odd.warnings] == ["no_match"]


def test_skus_have_the_requested_length():
    assert {len(sku) for sku in values("sku", 50, options={"length": 9})} == {13}


def test_ten_thousand_article_numbers_of_each_kind_pass_python_stdnum():
    for kind in ("ean13", "ean8", "upc"):
        assert all(map(ean.is_valid, values(kind, 10_000)))
    assert all(map(isbn.is_valid, values("isbn", 10_000)))
    assert all(map(issn.is_valid, values("issn", 10_000)))


def test_article_numbers_come_from_unassigned_ranges():
    assert {number[0] for number in values("ean13", 200) + values("ean8", 200)} == {"2"}
    assert {number[0] for number in values("upc", 200)} == {"4"}


WORDS = vocabulary.open_default()
LANGUAGES = tuple(dict.fromkeys(WORDS.table("product_language")["name"].to_pylist()))
PARTLY = ("am", "ga", "gu", "mr", "mt", "ne", "or", "si", "sq", "sw", "ta")
"""Languages in which some of the things have no word that is certain."""


def names_in(language: str) -> dict[str, list[str]]:
    """Every name of each thing of a language."""
    goods = LocalCatalogue(WORDS, language)
    every = goods.pick(np.arange(goods.size, dtype=np.uint64), np.arange(len(goods.products)))
    names, things = goods.names(every).to_pylist(), goods.products.to_pylist()
    found: dict[str, list[str]] = {}
    for thing, name in zip(every.product.tolist(), names, strict=True):
        found.setdefault(things[thing], []).append(name)
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_products_of_a_language_are_many_and_distinct(language):
    found = names_in(language)
    names = [name for listed in found.values() for name in listed]
    assert len(found) == 70 or (language in PARTLY and 45 < len(found) < 70)
    assert len({name.casefold() for name in names}) == len(names) > (250 if language in PARTLY else 3_000)
    assert not [name for name in names if name != " ".join(name.split()) or set("@/_") & set(name)]


@pytest.mark.parametrize(
    ("language", "names"),
    [
        (
            "de",
            [
                "Moderner Sessel",
                "Moderne Wanduhr in Schwarz",
                "Modernes Sofa in Rot",
                "Biologischer Honig 500 g",
            ],
        ),
        ("nl", ["Klassieke fauteuil", "Klassiek bed in wit", "Biologische groene thee 100 g"]),
        (
            "fr",
            ["Chaise de bureau élégante coloris bleu", "Canapé élégant", "Huile d'olive artisanale 750 ml"],
        ),
        ("it", ["Cuffie moderne colore nero", "Pantaloni classici", "Miele biologico 250 g"]),
        ("pl", ["Nowoczesne łóżko", "Nowoczesna lampka biurkowa w kolorze białym", "Praktyczne spodnie"]),
        ("cs", ["Krásná sluchátka", "Odolné kalhoty v modré barvě", "Klasický hrnec"]),
        ("sv", ["Modernt matbord", "Moderna byxor i svart", "Ekologiskt kaffe 1 kg"]),
        ("fi", ["Tyylikkäät housut, musta", "Perinteinen saippua 100 g"]),
        ("ru", ["Современное кресло", "Простая кружка", "Натуральный мёд 500 г"]),
        ("bg", ["Модерно легло", "Здрави слушалки в черно"]),
        ("el", ["Μοντέρνος καναπές", "Μοντέρνο κρεβάτι σε λευκό", "Κλασικά ακουστικά"]),
        ("he", ["אוזניות מודרניות בצבע שחור", "שולחן אוכל קלאסי"]),
        ("ar", ["ساعة حائط حديثة بلون أسود", "سرير بسيط"]),
        ("ja", ["モダンな掛け時計 ブラック", "天然はちみつ 500g"]),
        ("zh", ["现代台灯（黑色）", "有机绿茶 250克"]),
    ],
)
def test_names_of_products_agree_with_the_thing(language, names):
    every = {name for listed in names_in(language).values() for name in listed}
    missing = [name for name in names if name not in every]
    assert missing == []


@pytest.mark.parametrize("language", ["de_DE", "pl_PL", "ja_JP", "ar_EG"])
def test_a_row_is_about_one_product_in_the_language_of_the_locale(language):
    source = bound(FIELDS, locale=language)
    goods = LocalCatalogue(WORDS, language[:2])
    things, categories = goods.products.to_pylist(), goods.categories.to_pylist()
    for product, title, category, sku in zip(*table(source, 0, 500).values(), strict=True):
        place = things.index(product)
        assert goods.is_name_of(np.int64(place), title)
        assert categories[goods.category[place]] == category
        assert sku.startswith(f"{goods.codes[goods.category[place]]}-")
    assert source.warnings == []


@pytest.mark.parametrize(
    ("unique", "count"), [("title", 3_590), ("product", 70), ("category", 10), ("sku", 500)]
)
def test_unique_products_of_a_language_do_not_repeat(unique, count):
    fields = [{**field, "unique": field["name"] == unique} for field in FIELDS]
    rows = table(bound(fields, locale="de_DE"), 0, count)
    assert len(set(rows[unique])) == count


def test_products_of_a_language_without_words_are_english_with_a_warning():
    source = bound(FIELDS, locale="yo_NG")
    assert [(fault.path, fault.code) for fault in source.warnings] == [
        (f"fields[{at}]", "other_language") for at in range(3)
    ]
    assert contradictions(table(source, 0, 100)) == []


def test_an_override_is_followed_by_the_product_in_another_language():
    rows = table(bound(FIELDS, locale="de_DE", overrides={"category": "Küche"}), 0, 50)
    assert set(rows["product"]) <= set(names_in("de"))
    assert all(text.startswith("KIT-") for text in rows["sku"])


def test_goods_are_places_of_things_and_epithets():
    goods = LocalCatalogue(WORDS, "de")
    first = ProductSelection(np.zeros(2, np.int64), np.arange(2))
    assert goods.names(first).to_pylist() == ["Sessel", "Sessel in Schwarz"]

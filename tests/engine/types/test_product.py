"""Goods: a row is about one product, and article numbers have right check digits."""

from __future__ import annotations

import pytest
from stdnum import ean, isbn, issn

from tests.engine.types.made import assert_laws, bound, table, values
from webapp.engine.data import vocabulary
from webapp.engine.types.commerce import Catalogue

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
    goods = Catalogue(vocabulary.default())
    names = goods.categories.to_pylist()
    category = {thing: names[goods.category[i]] for i, thing in enumerate(goods.things.to_pylist())}
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
    assert bound(FIELDS).plan.layer.columns["title"].type.space() > 2_000_000


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

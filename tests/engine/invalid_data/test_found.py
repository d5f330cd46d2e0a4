"""Validators that are not ours find the rows that the answer key names, and no others: every kind in every format."""

from __future__ import annotations

from functools import cache

import pytest

from tests.engine.invalid_data import shop
from webapp.engine.blocks import BoundPlan
from webapp.engine.invalid_data.settings import KINDS


@cache
def _bound() -> BoundPlan:
    return shop.world().bound("orders")


@cache
def _told() -> dict[str, set[int]]:
    found: dict[str, set[int]] = {name: set() for name in shop.FIELDS}
    for answer in shop.answers(_bound(), shop.ORDERS):
        assert answer["kind"] == shop.FIELDS[answer["field"]][2]
        found[answer["field"]].add(answer["row"])
    return found


@cache
def _found(kind: str) -> dict[str, set[int]]:
    bound = _bound()
    longest = {
        field.name: int(field.metadata[b"max_length"])
        for field in bound.schema
        if field.metadata and b"max_length" in field.metadata
    }
    parents = {row["id"] for row in shop.world().rows("customers", shop.CUSTOMERS)}
    rows = shop.read(kind, shop.file_of(bound, kind, shop.ORDERS))
    assert len(rows) == shop.ORDERS
    return shop.found_in(rows, kind, parents, longest)


def test_the_shop_has_every_kind():
    assert {bad for _, _, bad in shop.FIELDS.values()} == set(KINDS)


@pytest.mark.parametrize("kind", ["json", "ndjson", "csv", "sql", "xlsx", "parquet"])
@pytest.mark.parametrize("name", shop.FIELDS)
def test_validators_find_exactly_the_rows_of_the_answer_key(kind, name):
    result = _told()[name]
    assert len(result) >= shop.ORDERS * shop.RATE - 1  # a duplicate that has nothing to repeat is left out
    assert _found(kind)[name] == result

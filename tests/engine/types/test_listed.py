"""Types of the table of lists, patterns and numbers with check digits."""

from __future__ import annotations

import importlib

import pytest
from stdnum import luhn

from tests.engine.types.made import faults, values
from webapp.engine.types import listed

CHECKED = {
    "cnpj": "br.cnpj", "isin": "isin", "cusip": "cusip", "lei": "lei", "imei": "imei", "isbn_10": "isbn",
    "itin": "us.itin",
}  # fmt: skip
PATTERNS = [kind for kind in listed.TYPES if issubclass(kind, listed.PatternType)]


@pytest.mark.parametrize("name", sorted(CHECKED))
def test_numbers_pass_python_stdnum(name):
    module = importlib.import_module(f"stdnum.{CHECKED[name]}")
    generated = values(name, 300)
    assert [text for text in generated if not module.is_valid(text)] == []
    assert len(set(values(name, 300, unique=True))) == 300


def test_a_provider_number_passes_luhn_with_the_prefix_of_the_standard():
    generated = values("npi", 300)
    assert all(luhn.is_valid(f"80840{text}") and len(text) == 10 for text in generated)


def test_a_pattern_prints_its_fixed_text_and_numbers_of_the_width_that_it_names():
    assert listed.parse_pattern("a[[x|y]]-[[08-10]]!").pools[0].to_pylist() == ["ax", "ay"]
    assert listed.parse_pattern("a[[x|y]]-[[08-10]]!").pools[1].to_pylist() == ["-08!", "-09!", "-10!"]
    assert listed.parse_pattern("[[-1-1]]").pools[0].to_pylist() == ["-1", "0", "1"]


@pytest.mark.parametrize(
    ("pattern", "distinct"),
    [("[[a|b]]", True), ("[[a|A]]", False), ("[[a|ab]][[c|bc]]", False), ("[[a|ab]]-[[c|bc]]", True)],
)
def test_only_patterns_whose_values_differ_can_be_unique(pattern, distinct):
    assert listed.parse_pattern(pattern).is_distinct is distinct


def test_a_list_without_enough_differing_values_is_not_unique():
    assert faults("weather", unique=True) == {}
    assert faults("hacker_phrase", unique=True) == {"unique": "not_unique"}


@pytest.mark.parametrize("kind", PATTERNS, ids=lambda kind: kind.name)
def test_the_example_is_a_value_and_every_group_is_drawn_from(kind):
    pattern = listed.parse_pattern(kind.line.pattern)
    assert kind.example == "".join(pool[len(pool) // 2].as_py() for pool in pattern.pools)
    generated = values(kind.name, 400)
    few = [pool for pool in pattern.pools if len(pool) <= 20]
    assert all(any(text.as_py() in value for value in generated) for pool in few for text in pool)

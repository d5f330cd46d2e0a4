"""Companies."""

from __future__ import annotations

import pytest

from tests.engine.types.made import bound, table, values
from webapp.engine.data import vocabulary


@pytest.mark.parametrize("locale", ["en_US", "de_DE", "ja_JP"])
def test_a_company_is_named_after_people_in_the_words_of_its_country(locale):
    lists = vocabulary.open_default()
    family = tuple(lists.words("last_name_male", locale).to_pylist())
    forms = tuple(lists.words("company_form", locale).to_pylist())
    generated = values("company_name", 2_000, of_template=locale)
    assert all(name.startswith(family) and name.endswith((*forms, *family)) for name in generated)
    assert len(set(generated)) > (300 if locale == "ja_JP" else 1_500)


@pytest.mark.parametrize("locale", ["ja_JP", "ko_KR"])
def test_unique_companies_are_used_up(locale):
    source = bound([{"name": "x", "type": "company_name", "unique": True}], locale=locale)
    space = source.plan.layer.columns["x"].type.distinct_count()
    assert len(set(table(source, 0, space)["x"])) == space


def test_unique_companies_never_repeat():
    generated = values("company_name", 50_000, unique=True)
    assert len({name.casefold() for name in generated}) == 50_000

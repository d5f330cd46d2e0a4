"""The picker finds a type by what people call it elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from webapp.engine.types.registry import BY_NAME, find
from webapp.row_templates.services import catalogue

NAMES = [
    tuple(part.strip() for part in line.split("->"))
    for line in Path(__file__).with_name("found_names.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


def test_the_table_is_long_and_names_types_that_exist():
    assert len(NAMES) >= 250
    assert len({name for name, _ in NAMES}) > 230
    assert {kind for _, kind in NAMES} <= set(BY_NAME)


@pytest.mark.parametrize(("name", "kind"), NAMES)
def test_the_picker_puts_the_type_first(name, kind):
    assert catalogue.search(name)[0]["name"] == kind
    assert find(name) is BY_NAME[kind]

"""The catalogue is the registry, and is found by any of its names."""

from __future__ import annotations

import orjson
import pytest

from webapp.engine.types.registry import REGISTRY
from webapp.row_templates.services import catalogue

KEYS = {"name", "label", "category", "description", "aliases", "options_schema", "example", "capacity"}


def test_every_registered_type_is_listed_whole():
    entries = catalogue.search()
    assert [entry["name"] for entry in entries] == [kind.name for kind in REGISTRY]
    assert all(set(entry) == KEYS for entry in entries)
    assert orjson.loads(orjson.dumps(entries)) == entries


def test_options_are_described_as_a_json_schema():
    schema = next(entry for entry in catalogue.search() if entry["name"] == "sequence")["options_schema"]
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["properties"]["step"]["default"] == 1
    assert all("description" in option for option in schema["properties"].values())


@pytest.mark.parametrize("q", ["row number", "Row-Number", "ROWNUMBER", "auto increment", " row_number "])
def test_a_type_is_found_by_its_names_first(q):
    assert catalogue.search(q)[0]["name"] == "row_number"


def test_a_type_is_found_by_words_of_its_description():
    assert "sequence" in [entry["name"] for entry in catalogue.search("arithmetic step")]


def test_a_search_without_matches_finds_nothing():
    assert catalogue.search("zzzz qqqq") == []

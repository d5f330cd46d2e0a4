"""The catalogue is the registry, and is found by any of its names."""

from __future__ import annotations

import orjson
import pytest

from webapp.engine.types.registry import REGISTRY
from webapp.errors import ApiError
from webapp.row_templates.services import catalogue

KEYS = {
    "name", "label", "category", "description", "aliases", "options_schema", "example", "capacity", "lacks",
}  # fmt: skip


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


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        ("zip", "zip_code"),
        ("mail", "email"),
        ("phone", "phone_number"),
        ("postal", "zip_code"),
        ("emial", "email"),
        ("adress", "address"),
        ("frist name", "first_name"),
        ("birthdya", "date_of_birth"),
        ("comapny name", "company_name"),
        ("phone_numbr", "phone_number"),
    ],
)
def test_the_type_that_a_person_means_is_first(typed, kind):
    assert catalogue.search(typed)[0]["name"] == kind


def test_an_exact_name_is_before_its_beginning_and_a_mistyped_one_is_last():
    found = [entry["name"] for entry in catalogue.search("city")]
    assert found[0] == "city"
    assert catalogue.search("cit")[0]["name"] == "city"
    assert [entry["name"] for entry in catalogue.search("zipf")] == ["zipf", "zip_code"]


def test_short_words_are_not_corrected():
    assert "vat_id" not in [entry["name"] for entry in catalogue.search("vxt")]


def test_the_catalogue_says_what_a_locale_lacks():
    lacking = {
        entry["name"]: entry["lacks"] for entry in catalogue.with_missing_values(catalogue.entries(), "yo-ng")
    }
    assert (
        lacking["product_name"] == "Product Name: no words are available for yo_NG; English words are used."
    )
    assert lacking["month"] is None
    assert {"job_title", "color", "industry"} <= {name for name, text in lacking.items() if text}
    assert catalogue.missing_values("ar_PS")["zip_code"].endswith(
        "no values are available for PS, so the column is blank."
    )
    assert "product_name" not in catalogue.missing_values("de_DE")


def test_an_unknown_locale_of_the_catalogue_is_rejected():
    with pytest.raises(ApiError) as error:
        catalogue.with_missing_values([], "de_XX")
    assert error.value.code == "validation_error"
    assert error.value.details["fields"][0]["code"] == "unknown_locale"

"""The catalogue over REST."""

from __future__ import annotations

import pytest

from tests.views.speak import refused
from webapp.engine.types.registry import REGISTRY


@pytest.fixture
def victor(api, cast):
    return api(cast.victor)


@pytest.mark.parametrize("where", ["/field-types", "/fields"])
def test_all_types_are_listed_in_one_response(victor, where):
    found = victor.get(where).json
    assert [item["name"] for item in found["items"]] == [kind.name for kind in REGISTRY]
    assert (found["next_cursor"], found["total"]) == (None, len(REGISTRY))


@pytest.mark.parametrize("alias", ["E-Mail", "e mail", "email address", "EMAIL"])
def test_a_type_is_found_by_any_of_its_names(victor, alias):
    assert victor.get("/field-types", query_string={"q": alias}).json["items"][0]["name"] == "email"


def test_the_list_can_be_paged(victor):
    names, cursor = [], None
    while True:
        page = victor.get(
            "/field-types", query_string={"limit": 40, **({"cursor": cursor} if cursor else {})}
        ).json
        names += [item["name"] for item in page["items"]]
        assert page["total"] == len(REGISTRY)
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert names == [kind.name for kind in REGISTRY]


def test_a_cursor_holds_only_for_its_own_search(victor):
    cursor = victor.get("/field-types?limit=1").json["next_cursor"]
    refused(
        victor.get("/field-types", query_string={"limit": 1, "q": "a", "cursor": cursor}),
        400,
        "invalid_request",
    )
    refused(victor.get("/field-types?limit=0"), 400, "invalid_request")
    refused(victor.get("/field-types?limit=101"), 400, "invalid_request")


def test_the_functions_of_formulas_are_listed_with_their_examples(victor):
    from webapp.engine.formulas.functions import FUNCTIONS

    found = victor.get("/field-types").json["functions"]
    assert [one["name"] for one in found] == [one.name for one in FUNCTIONS]
    assert {"name", "family", "signature", "description", "example", "result", "aliases"} == set(found[0])
    some = victor.get("/field-types", query_string={"q": "accents"}).json["functions"]
    assert [one["name"] for one in some] == ["strip_accents", "ascii"]


def test_an_error_in_a_formula_has_its_position(victor):
    wrong = {"name": "r", "type": "formula", "options": {"expression": "1 + pric"}}
    answer = victor.post("/preview", json={"fields": [{"name": "price", "type": "number"}, wrong]})
    (fault,) = answer.json["error"]["details"]["fields"]
    assert (fault["path"], fault["code"], fault["position"]) == (
        "fields[1].options.expression",
        "unknown_field",
        5,
    )
    assert fault["hint"] == "Did you mean `price`?"


def test_the_types_say_what_a_locale_lacks(victor):
    found = victor.get("/field-types", query_string={"q": "product name", "locale": "yo_NG"}).json["items"]
    assert found[0]["lacks"] == "Product Name: no words are available for yo_NG; English words are used."
    assert victor.get("/field-types?q=product+name&locale=de_DE").json["items"][0]["lacks"] is None
    refused(victor.get("/field-types?locale=xx_XX"), 422, "validation_error")

"""5.0 is an integer, as in JSON Schema; 5.5, "5" and true are not."""

from __future__ import annotations

import pytest

from tests.views.speak import FIELDS, faults, make, refused
from webapp import json_input
from webapp.engine.types.registry import REGISTRY
from webapp.web import openapi

NONE = [5.5, "5", "5.0", True, [5]]


def test_a_whole_number_may_be_written_with_a_point(edith, path):
    ask = '{"seed": "s", "format": "sql", "count": 3%s, "offset": 2%s, "sql": {"rows_per_statement": 2%s}}'
    written = [
        edith.post(f"{path}/generate", data=ask % ((point,) * 3), content_type="application/json")
        for point in ("", ".0")
    ]
    assert [answer.status_code for answer in written] == [200, 200]
    assert written[0].data == written[1].data


def test_a_template_keeps_it_as_a_whole_number(edith):
    words = {"name": "w", "type": "words", "options": {"count": 4.0}}
    lines = {
        "name": "l",
        "type": "nested",
        "options": {"array": True, "count": {"min": 2.0, "max": 2.0}, "fields": [words]},
    }
    created = make(edith, quantity=7.0, fields=[words, lines])
    assert created["quantity"] == 7
    assert isinstance(created["quantity"], int)
    options = [field["options"] for field in created["fields"]]
    assert repr(options[0]) == "{'count': 4}"
    assert repr(options[1]["count"]) == "{'min': 2, 'max': 2}"


def test_limits_of_a_workspace_may_be_written_with_a_point(api, cast):
    answer = api(cast.olivia).patch("/workspace", json={"limits": {"rows_per_hour": 5_000.0}})
    assert answer.status_code == 200, answer.json


@pytest.mark.parametrize("value", NONE)
@pytest.mark.parametrize("key", ["count", "offset"])
def test_a_fraction_is_not_a_valid_count(edith, path, key, value):
    assert list(faults(edith.post(f"{path}/generate", json={key: value}))) == [key]


@pytest.mark.parametrize("value", NONE)
def test_a_fraction_is_not_a_valid_option(edith, value):
    for where, options in (("min", {"min": value}), ("alphabet", {"alphabet": "ab", "max": value})):
        field = {"name": "a", "type": "random_string", "options": options}
        found = faults(edith.post("/templates", json={"name": "T", "fields": [field]}))
        assert list(found) == [f"fields[0].options.{'max' if where == 'alphabet' else 'min'}"]


def test_a_fraction_is_not_a_valid_quantity(edith):
    for value in NONE:
        assert list(
            faults(edith.post("/templates", json={"name": "T", "fields": FIELDS, "quantity": value}))
        ) == ["quantity"]


def test_too_many_is_too_many_with_a_point_too(edith, path):
    refused(edith.post(f"{path}/generate", json={"count": 1e300}), 422, "row_limit_exceeded")
    assert faults(edith.post(f"{path}/generate", json={"count": 0.0})) == {"count": "out_of_range"}


def test_a_form_accepts_integers_in_digits(browser, cast, edith):
    page = browser(cast.edith)
    words = {"fields[0].name": "w", "fields[0].type": "words", "fields[0].options.count": "4"}
    lines = {
        "fields[1].name": "l",
        "fields[1].type": "nested",
        "fields[1].options.array": "true",
        "fields[1].options.count": "2",
    }
    inner = {"fields[1].options.fields[0].name": "i", "fields[1].options.fields[0].type": "sequence"}
    inner["fields[1].options.fields[0].options.pad"] = "6"
    form = {"name": "By form", "quantity": "5", **words, **lines, **inner}
    answer = page.submit("/templates", data=form)
    assert answer.status_code == 303, answer.text
    (saved,) = edith.get("/templates").json["items"]
    first, second = (field["options"] for field in saved["fields"])
    assert (first["count"], second["count"], second["fields"][0]["options"]["pad"]) == (4, 2, 6)
    assert page.submit("/templates", data={**form, "fields[0].options.count": "4.5"}).status_code == 422


def test_every_model_of_options_counts_this_way():
    assert [kind.name for kind in REGISTRY if not issubclass(kind.Options, json_input.ExactModel)] == []


def test_every_body_counts_this_way(app):
    bodies = {declaration.body for _, declaration in openapi.declared_routes(app)} - {None}
    assert [body.__name__ for body in bodies if not issubclass(body, json_input.Model)] == []

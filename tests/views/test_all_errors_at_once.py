"""Each response reports every error of a body: names, types and keys together with values."""

from __future__ import annotations

import pytest

FIELDS = [
    {"name": "a", "type": "number", "options": {"min": 5, "max": 1}},
    {"name": "b", "type": "no such type"},
    {"name": "a", "type": "date", "options": {"min": "2026-99-01"}},
    {"name": "c", "type": "number", "options": {"mni": 5}},
    {"name": "d", "type": "formula", "options": {"expression": "b +* 2"}},
    {"name": "e", "type": "derived", "options": {"value": "{{b}} {{c}} {{missing}}"}},
    {"name": "f", "type": "email", "nmae": "x", "options": {"domian": "x"}},
    {
        "name": "g",
        "type": "nested",
        "options": {
            "fields": [
                {"name": "x", "type": "no such type"},
                {"name": "y", "type": "regexp", "options": {"string": "("}},
            ]
        },
    },
]
EXPECTED = {
    ("fields[0].options.min", "min_above_max"),
    ("fields[1].type", "unknown_type"),
    ("fields[2].name", "duplicate"),
    ("fields[2].options.min", "bad_date"),
    ("fields[3].options.mni", "unknown_key"),
    ("fields[4].options.expression", "bad_formula"),
    ("fields[5].options.value", "unknown_field"),
    ("fields[6].nmae", "unknown_key"),
    ("fields[6].options.domian", "unknown_key"),
    ("fields[7].options.fields[0].type", "unknown_type"),
    ("fields[7].options.fields[1].options.string", "bad_expression"),
}


def errors_of(response) -> set[tuple[str, str]]:
    assert response.status_code == 422, response.text
    fields = response.json["error"]["details"]["fields"]
    found = {(field["path"], field["code"]) for field in fields}
    assert len(found) == len(fields)
    return found


@pytest.mark.parametrize(
    ("path", "body", "more"),
    [
        ("/templates", {"name": "t"}, set()),
        ("/templates", {"name": "t", "locale": "xx_YY"}, {("locale", "unknown_locale")}),
        (
            "/templates",
            {"name": "", "quantity": -1, "nope": 1},
            {("name", "too_short"), ("quantity", "out_of_range"), ("nope", "unknown_key")},
        ),
        ("/generate", {"count": 1}, set()),
        ("/generate", {"count": 0, "format": "x"}, {("count", "out_of_range"), ("format", "not_allowed")}),
        ("/preview", {}, set()),
    ],
)
def test_template_errors_are_reported_together(api, cast, path, body, more):
    response = api(cast.edith).post(path, json={**body, "fields": FIELDS})
    assert errors_of(response) == EXPECTED | more


def test_preview_of_a_saved_template_reports_draft_errors_together(api, cast):
    program = api(cast.edith)
    saved = program.post("/templates", json={"name": "t", "fields": [{"name": "n", "type": "row_number"}]})
    response = program.post(f"/templates/{saved.json['id']}/preview", json={"fields": FIELDS})
    assert errors_of(response) == EXPECTED


@pytest.mark.parametrize("path", ["/preview", "/templates"])
def test_a_field_that_reads_an_invalid_field_is_not_reported_and_an_unknown_template_is(api, cast, path):
    fields = [
        {"name": "a", "type": "no such type"},
        {"name": "b", "type": "derived", "options": {"value": "{{a}}"}},
        {"name": "r", "type": "reference", "options": {"template_id": "tpl_00000000000000000000000000"}},
    ]
    response = api(cast.edith).post(path, json={"name": "t", "fields": fields})
    assert errors_of(response) == {
        ("fields[0].type", "unknown_type"),
        ("fields[2].options.template_id", "unknown_template"),
    }


def test_connection_errors_are_reported_together(api, cast):
    body = {
        "name": "",
        "type": "rest",
        "settings": {"base_url": "not a URL", "retry": {"retries": -1}, "nope": 1},
    }
    found = errors_of(api(cast.edith).post("/connections", json=body))
    assert ("name", "too_short") in found
    assert {path for path, _ in found} >= {"settings.base_url", "settings.retry.retries", "settings.nope"}
    found = errors_of(api(cast.edith).post("/connections", json={"name": "", "type": "postgers"}))
    assert found == {("name", "too_short"), ("type", "unknown_type")}


def test_dataset_errors_are_reported_together(api, cast):
    program = api(cast.edith)
    saved = program.post(
        "/templates", json={"name": "t", "fields": [{"name": "n", "type": "row_number"}]}
    ).json["id"]
    tables = [
        {"template_id": "tpl_missing", "count": -1},
        {"template_id": saved},
        {"template_id": saved},
        {"count": 1},
    ]
    assert errors_of(program.post("/datasets", json={"name": "", "templates": tables, "nope": 1})) == {
        ("name", "too_short"),
        ("nope", "unknown_key"),
        ("templates[0].count", "out_of_range"),
        ("templates[0].template_id", "unknown_template"),
        ("templates[2].template_id", "duplicate"),
        ("templates[3].template_id", "missing"),
    }

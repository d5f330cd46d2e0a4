"""Invalid data over REST: configured for fields and templates, and shown in answer keys, previews and pages."""

from __future__ import annotations

import csv
import io

import orjson
import pytest

from tests.views.speak import faults, make, refused

AGE = {"name": "age", "type": "number", "options": {"min": 18, "max": 99}}
FIELDS = [
    {"name": "id", "type": "row_number"},
    {"name": "email", "type": "email"},
    {**AGE, "invalid": {"rate": 0.2, "kinds": ["wrong_type", "missing"]}},
]


@pytest.fixture
def bad(edith):
    return f"/templates/{make(edith, fields=FIELDS)['id']}"


def lines(answer):
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return [orjson.loads(line) for line in answer.data.splitlines()]


def wrong(row):
    return not isinstance(row["age"], int) or not 18 <= row["age"] <= 99


def test_a_template_keeps_what_it_says_of_bad_values(edith, bad):
    assert edith.get(bad).json["fields"][2]["invalid"] == {"rate": 0.2, "kinds": ["wrong_type", "missing"]}
    assert edith.get(bad).json["invalid"] is None
    changed = edith.patch(bad, json={"invalid": {"rate": 0.01}}).json
    assert (changed["invalid"], changed["version"]) == ({"rate": 0.01}, 2)
    assert edith.patch(bad, json={"quantity": 7}).json["invalid"] == {"rate": 0.01}
    assert edith.patch(bad, json={"invalid": None}).json["invalid"] is None
    assert edith.get(f"{bad}@v2/diff?to=4").json["template"]["invalid"] is not None


def test_impossible_options_are_rejected_by_path(edith, bad):
    text = {**AGE, "invalid": {"rate": 0.2, "kinds": ["bad_checksum"]}}
    answer = edith.patch(bad, json={"fields": [text]})
    assert faults(answer) == {"fields[0].invalid.kinds[0]": "not_for_this_type"}
    assert set(faults(edith.patch(bad, json={"invalid": {"rate": 2}}))) == {"invalid.rate"}
    assert set(faults(edith.patch(bad, json={"invalid": {"rate": 0.1, "kinds": ["orphan"]}}))) == {
        "invalid.kinds[0]"
    }


@pytest.mark.parametrize("offset", [0, 33])
def test_the_key_of_a_generate_names_exactly_its_bad_rows(edith, bad, offset):
    ask = {"count": 400, "seed": "s", "offset": offset}
    rows = edith.post(f"{bad}/generate", json=ask).json
    key = edith.post(f"{bad}/answers", json=ask)
    assert {item["row"] for item in key.json} == {number for number, row in enumerate(rows, 1) if wrong(row)}
    assert {item["kind"] for item in key.json} == {"wrong_type", "missing"}
    assert key.headers["X-Seed"] == "s"
    assert all(18 <= item["good"] <= 99 for item in key.json)


@pytest.mark.parametrize("format", ["json", "ndjson", "csv", "xlsx", "sql", "parquet"])
def test_the_key_has_the_requested_format(edith, bad, format):
    answer = edith.post(f"{bad}/answers", json={"count": 100, "seed": "s", "format": format})
    assert answer.status_code == 200
    assert f"-answers.{format}" in answer.headers["Content-Disposition"]
    assert len(answer.data) > 100


def test_a_key_needs_the_seed_and_spends_no_rows(edith, bad):
    assert faults(edith.post(f"{bad}/answers", json={"count": 10})) == {"seed": "required"}
    before = edith.get("/usage").json["rows"]["used"]
    edith.post(f"{bad}/answers", json={"count": 100, "seed": "s"})
    assert edith.get("/usage").json["rows"]["used"] == before
    refused(edith.post(f"{bad}/answers", json={"count": 10**9, "seed": "s"}), 422, "row_limit_exceeded")


@pytest.mark.parametrize("format", ["csv", "json"])
def test_an_export_carries_its_key(edith, bad, work, format):
    export = edith.post(f"{bad}/exports", json={"count": 3_000, "seed": "s", "format": format}).json
    assert export["answers_url"].endswith(f"/exports/{export['id']}/answers")
    work(export["id"])
    data = edith.get(f"/exports/{export['id']}/download").data
    if format == "json":
        found = {number for number, row in enumerate(orjson.loads(data), 1) if wrong(row)}
    else:
        rows = csv.DictReader(io.StringIO(data.decode(), newline=""))
        found = {number for number, row in enumerate(rows, 1) if not row["age"].isdecimal()}
    result = lines(edith.get(f"/exports/{export['id']}/answers"))
    assert {item["row"] for item in result} == found
    assert len(found) == 600
    spelled = edith.get(f"/exports/{export['id']}/answers?format=csv")
    assert spelled.headers["Content-Type"].startswith("text/csv")
    table = list(csv.DictReader(io.StringIO(spelled.get_data(as_text=True), newline="")))
    assert [{**item, "row": int(item["row"]), "good": int(item["good"])} for item in table] == result
    accepted = edith.get(f"/exports/{export['id']}/answers", headers={"Accept": "text/csv"})
    assert accepted.data == spelled.data


def test_an_export_without_bad_values_has_no_key(edith, path):
    export = edith.post(f"{path}/exports", json={"count": 10}).json
    assert export["answers_url"] is None
    assert edith.get(f"/exports/{export['id']}/answers").data == b""


def test_the_key_of_an_export_stays_when_its_template_changes(edith, bad):
    export = edith.post(f"{bad}/exports", json={"count": 500, "seed": "s"}).json
    before = edith.get(f"/exports/{export['id']}/answers").data
    edith.patch(bad, json={"fields": [AGE]})
    assert edith.get(f"/exports/{export['id']}/answers").data == before


def test_the_key_of_a_dataset_names_the_tables(edith, bad, path):
    tables = [{"template_id": item.rpartition("/")[2], "count": 200} for item in (bad, path)]
    dataset = edith.post("/datasets", json={"name": "D", "templates": tables, "seed": "s"}).json
    export = edith.post(f"/datasets/{dataset['id']}/exports", json={"format": "csv"}).json
    result = lines(edith.get(f"/exports/{export['id']}/answers"))
    names = {
        template["template_id"]: template["name"]
        for template in edith.get(f"/datasets/{dataset['id']}").json["templates"]
    }
    assert {item["table"] for item in result} == {names[bad.rpartition("/")[2]] or "T"}
    assert len(result) == 40


def test_a_preview_marks_its_invalid_cells(edith, bad):
    draft = {"fields": [{**AGE, "invalid": {"rate": 1, "kinds": ["wrong_type"]}}], "seed": "s"}
    created = edith.post("/preview", json=draft).json
    assert [(item["row"], item["field"], item["kind"]) for item in created["bad"]] == [
        (number, "age", "wrong_type") for number in (1, 2, 3)
    ]
    assert all(isinstance(row["age"], str) for row in created["rows"])
    assert "bad" not in edith.post(f"{bad}/preview", json={"fields": [AGE], "seed": "s"}).json


def test_a_draft_can_set_it_for_the_whole_template(edith):
    ask = {"fields": [AGE], "invalid": {"rate": 0.5, "kinds": ["missing"]}, "count": 100, "seed": "s"}
    rows = edith.post("/generate", json=ask).json
    assert sum(row["age"] is None for row in rows) == 50


def test_templates_without_bad_values_say_nothing_of_them(edith, path):
    assert all("invalid" not in field for field in edith.get(path).json["fields"])


def test_the_builder_describes_invalid_cells_in_words(edith, browser, cast):
    fields = [{**AGE, "invalid": {"rate": 1, "kinds": ["wrong_type"]}}]
    created = make(edith, fields=fields, invalid=None)
    page = browser(cast.edith).get(f"/templates/{created['id']}").get_data(as_text=True)
    assert page.count('title="Bad on purpose. The good value: ') == created["quantity"]
    assert ">wrong type</span>" in page


def test_the_page_of_an_export_offers_its_key(edith, bad, browser, cast):
    export = edith.post(f"{bad}/exports", json={"count": 10, "seed": "s"}).json
    page = browser(cast.edith).get(f"/exports/{export['id']}").get_data(as_text=True)
    assert f"/exports/{export['id']}/answers?format=csv" in page
    assert "Answer key" in page

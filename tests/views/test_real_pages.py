"""Real data by hand: a template's source in the builder, masked copies, masking keys."""

from __future__ import annotations

import io
import json
import re

import pytest
from werkzeug.datastructures import MultiDict

from tests.forms.in_html import controls
from tests.views.builder_page import HTMX, Editor, send
from tests.views.targets import sqlite_target
from tests.views.test_real_data import FIELDS, as_csv
from tests.views.uploading import send as upload
from webapp.sources.services import files

SECRET = re.compile(r"person\.\d+@corp|\+49 170 100")


@pytest.fixture
def edith(browser, cast):
    yield browser(cast.edith)
    files.SOURCE_CACHE.clear()


@pytest.fixture
def people(api, cast):
    """A template over a file of a thousand people, and its id."""
    program = api(cast.edith)
    upload(program, "people.csv", as_csv())
    body = {"name": "People", "fields": FIELDS, "source": {"file": "people.csv"}}
    return program.post("/templates", json=body).json["id"]


def test_the_builder_keeps_the_source_and_shows_no_real_values(edith, api, cast, people):
    page = Editor(edith, f"/templates/{people}")
    form = page.open("settings")
    assert (form["source.from"], form["source.file"]) == ("file", "people.csv")
    assert '<option value="phone">' in page.inspector
    assert not SECRET.search(page.text + page.inspector)
    page.inputs["source.limit"] = "5"
    assert page.save().status_code == 200
    assert api(cast.edith).get(f"/templates/{people}").json["source"] == {"file": "people.csv", "limit": 5}


def test_rows_are_generated_after_the_source_is_removed(edith, api, cast, people):
    page = Editor(edith, f"/templates/{people}")
    page.open("settings")
    page.inputs["source.from"] = ""
    page.press("set")
    page.open("mail")
    page.fill(column="")
    page.inputs.poplist(f"{page.keys['mail']}.column")
    assert page.save().status_code == 200, page.answer.text
    assert api(cast.edith).get(f"/templates/{people}").json["source"] is None


def test_later_rows_show_what_the_leak_check_saw(edith, people):
    page = Editor(edith, f"/templates/{people}")
    text = page.rows(offset="50")
    assert "Leak check of these rows" in text
    assert not SECRET.search(text)


def test_json_carries_source_and_invalid_data_both_ways(edith, people):
    page = Editor(edith, f"/templates/{people}")
    page.press("set")
    text = page.spec
    assert text["source"] == {"file": "people.csv"}
    text["source"] = {"file": "people.csv", "limit": 9}
    text["invalid"] = {"rate": 0.5, "kinds": ["missing"]}
    page.press("json", json=json.dumps(text))
    form = page.open("settings")
    assert form["source.limit"] == "9"
    assert (form["invalid.rate"], form.getlist("invalid.kinds")) == ("0.5", ["missing"])


def test_a_field_names_the_column_of_the_source(edith, api, cast, people):
    page = Editor(edith, f"/templates/{people}")
    page.open("id")
    page.fill(column="city")
    page.save()
    assert api(cast.edith).get(f"/templates/{people}").json["fields"][0]["column"] == "city"


def test_the_inspector_offers_the_column_and_whose_date_it_is(edith, people):
    page = Editor(edith, f"/templates/{people}")
    page.open("phone")
    key = page.keys["phone"]
    assert f'name="{key}.column"' in page.inspector
    person = re.search(rf'<select name="{key}.masking.person">(.*?)</select>', page.inspector)[1]
    assert re.findall(r'value="([^"]+)"', person) == ["id", "mail", "city", "note"]


def test_an_uploaded_file_becomes_the_source_without_replacing_another_file(edith, api, cast, people):
    answer = drop(edith, "/builder/source/upload", "people.csv", b"a,b\n1,2\n")
    assert 'value="people (2).csv"' in answer.text
    assert "2</span> columns" in answer.text
    assert 'value="people.csv"' in drop(edith, "/builder/source/upload", "people.csv", as_csv()).text
    assert "known file extension" in drop(edith, "/builder/source/upload", "people.exe", b"MZ").text


def drop(browser, path: str, name: str, content: bytes, **more: str):
    data = {"file": (io.BytesIO(content), name), **more}
    return browser.submit(path, data, headers=HTMX, content_type="multipart/form-data")


def test_the_card_of_a_source_shows_its_errors(edith, people):
    page = Editor(edith, f"/templates/{people}")
    page.open("settings")
    page.inputs["source.file"] = "nothing.csv"
    assert "There is no file" in send(edith, "/builder/source", page.inputs).text


# Masked copies


def proposal(browser, name: str = "people.csv", content: bytes | None = None) -> MultiDict[str, str]:
    more = {"source.from": "file"}
    page = drop(browser, "/templates/masked/look", name, as_csv() if content is None else content, **more)
    assert page.status_code == 200, page.text
    return controls(page.text, "copy")


def test_a_dropped_file_becomes_a_template_that_masks(edith, api, cast):
    form = proposal(edith)
    assert form.getlist("column") == ["id", "email", "phone", "city"]
    assert (form["c1.type"], form["c1.strategy"]) == ("email", "replace")
    assert form["c2.strategy"] == "format_preserve"
    answer = send(edith, "/templates/masked", form, headers={}, do="make")
    assert answer.status_code == 303
    program, where = api(cast.edith), answer.headers["Location"].rpartition("/")[2]
    result = program.get(f"/templates/{where}").json
    assert result["source"] == {"file": "people.csv"}
    assert [field["sensitive"] for field in result["fields"]] == [False, True, True, True]
    rows = program.post(f"/templates/{where}/generate", json={"seed": "s", "format": "csv"}).text
    assert len(rows.splitlines()) == 1_001
    assert not SECRET.search(rows)


def test_the_proposal_can_be_changed(edith, api, cast):
    form = proposal(edith)
    for key in ("c3.taken", "c1.sensitive"):
        del form[key]
    form["c2.strategy"] = "tokenize"
    where = (
        send(edith, "/templates/masked", form, headers={}, do="make").headers["Location"].rpartition("/")[2]
    )
    fields = api(cast.edith).get(f"/templates/{where}").json["fields"]
    assert [(field["name"], field["type"]) for field in fields] == [
        ("id", "source_column"),
        ("email", "source_column"),
        ("phone", "phone_number"),
    ]
    assert fields[2]["masking"] == {"strategy": "tokenize"}


def test_the_preview_of_a_copy_shows_real_and_masked_values_side_by_side(edith):
    form = proposal(edith)
    shown = send(edith, "/templates/masked", form, do="again").text
    assert "phone" in shown
    assert SECRET.search(shown), "the real values, for the user who may read the source"


def test_errors_of_a_copy_are_shown_at_their_columns(edith):
    form = proposal(edith, "patients.csv", b"id,born\n1,1980-01-02\n2,1990-02-03\n")
    assert form["c1.strategy"] == "shift"
    form["c1.person"] = ""
    page = send(edith, "/templates/masked", form, do="make")
    assert "Set person to the field that identifies the person" in page.text


@pytest.mark.parametrize(
    ("more", "rows"),
    [
        ({"source.from": "table", "source.table": "customers"}, 37),
        ({"source.from": "table", "source.table": "customers", "source.where": "id > 30"}, 7),
        ({"source.from": "table", "source.table": "customers", "source.limit": "20"}, 20),
        ({"source.from": "query", "source.query": "SELECT * FROM customers WHERE id < 6 ORDER BY id"}, 5),
    ],
    ids=["table", "filter", "limit", "query"],
)
def test_a_copy_of_a_connection_has_all_rows_by_default(app, edith, api, cast, more, rows):
    target = sqlite_target(app, cast)
    target.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 37) "
        "INSERT INTO customers SELECT i, 'person.' || i || '@corp.test', NULL, NULL FROM n"
    )
    requests = {"source.connection_id": target.connection_id, **more}
    form = controls(edith.submit("/templates/masked/look", requests).text, "copy")
    answer = send(edith, "/templates/masked", form, headers={}, do="make")
    where = answer.headers["Location"].rpartition("/")[2]
    assert api(cast.edith).get(f"/templates/{where}").json["quantity"] == rows


def test_a_copy_of_nothing_is_rejected(edith):
    assert (
        "Choose a file or a table first"
        in send(edith, "/templates/masked/look", {"source.from": "file"}).text
    )


# Masking keys


def test_the_page_of_keys_rotates_and_shows_no_key(browser, cast):
    adam = browser(cast.adam)
    assert "No key yet" in adam.get("/masking/keys").text
    assert adam.submit("/masking/keys/rotate", {}).status_code == 303
    page = adam.get("/masking/keys").text
    assert "Default" in page
    assert "Create version 2" in page


def test_the_page_of_keys_is_for_those_who_may_see_secrets(edith):
    assert edith.get("/masking/keys").status_code == 403


def test_rows_keep_their_keys_through_the_page(edith, people):
    assert len(Editor(edith, f"/templates/{people}").names) == len(FIELDS)

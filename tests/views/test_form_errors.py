"""Forms with files, of runs and of lists: each error is at its field, and what was typed is kept.

`tests/views/test_page_forms.py` has the forms of accounts and settings, `test_push_pages.py` that of pushes and
`test_builder.py` those of the builder.
"""

from __future__ import annotations

import io

import pytest
from lxml import html

from tests.views.forms import error_at

HTMX = {"HX-Request": "true"}
FORM = "multipart/form-data"


@pytest.fixture
def page(browser, cast):
    return browser(cast.edith)


def errors(text: str) -> list[str]:
    return [item.get("id") for item in html.fromstring(text).xpath("//*[contains(@id, '-err')]")]


def file(name: str, content: bytes = b"a,b\n1,2\n"):
    return (io.BytesIO(content), name)


# --- Uploads --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "control"),
    [
        ({}, "file"),
        ({"file": file("a\x07b.csv")}, "file"),
        ({"folder": "../up", "file": file("a.csv")}, "folder"),
        ({"folder": "in//side", "file": file("a.csv")}, "folder"),
        ({"folder": "x" * 256, "file": file("a.csv")}, "folder"),
    ],
)
def test_an_upload_shows_its_error_at_the_field(page, values, control):
    answer = page.submit("/workspace/files", {"folder": "inputs", **values}, content_type=FORM)
    assert answer.status_code == 422
    assert error_at(answer.text, control)
    assert errors(answer.text) == [f"{control}-err"]
    shown = html.fromstring(answer.text).get_element_by_id("folder").get("value")
    assert shown == values.get("folder", "inputs")
    assert page.get("/workspace/files").text.count("a.csv") == 0


def test_several_errors_of_an_upload_are_all_shown_and_linked(page):
    answer = page.submit("/workspace/files", {"folder": "../up"}, content_type=FORM)
    assert error_at(answer.text, "folder")
    links = html.fromstring(answer.text).xpath("//*[contains(@class, 'problems')]//a/@href")
    assert (
        error_at(answer.text, "file")
        == "The form does not contain a file. Choose a file, or drop it on the page."
    )
    assert links == ["#folder", "#file"]


# --- Imports --------------------------------------------------------------------------------------------------


@pytest.fixture
def template(page, api, cast):
    fields = [{"name": "id", "type": "row_number"}]
    return api(cast.edith).post("/templates", json={"name": "T", "fields": fields}).json["id"]


WRONG_IMPORTS = [
    ({"content": "", "format": "auto"}, "content", "Send a file or a text."),
    ({"content": "x", "format": "auto", "file": file("a.csv")}, "content", "Send either a file or a text."),
    ({"content": "a,b\n1,2", "format": "word"}, "format", "Select one of the listed options."),
]


@pytest.mark.parametrize(("values", "control", "text"), WRONG_IMPORTS)
@pytest.mark.parametrize("where", ["/import", "/templates/{template}/import"])
def test_an_import_shows_its_error_at_the_field(page, template, where, values, control, text):
    sent = {key: (file(value[1]) if isinstance(value, tuple) else value) for key, value in values.items()}
    answer = page.submit(where.format(template=template), sent, content_type=FORM)
    assert answer.status_code == 422
    assert error_at(answer.text, control).startswith(text)
    assert errors(answer.text) == [f"{control}-err"]
    area = html.fromstring(answer.text).get_element_by_id("content").text or ""
    assert area.strip() == values["content"]


@pytest.mark.parametrize(("values", "control", "text"), WRONG_IMPORTS[:1] + WRONG_IMPORTS[2:])
@pytest.mark.parametrize("where", ["/import", "/templates/{template}/import"])
def test_a_client_learns_which_field_of_an_import_is_wrong(page, template, where, values, control, text):
    answer = page.submit(where.format(template=template), values, content_type=FORM, headers=HTMX)
    assert answer.status_code == 422
    found = html.fromstring(f"<div>{answer.text}</div>")
    assert [
        (item.get("data-for"), item.text.startswith(text)) for item in found.xpath("//li[@data-for]")
    ] == [(control, True)]
    shown = html.fromstring(page.get(where.format(template=template)).text)
    assert shown.get_element_by_id("result").get("data-marks") == "#import"
    assert shown.get_element_by_id(control) is not None


def test_an_unknown_table_of_a_changed_schema_is_reported_at_its_field(page, template):
    sql = "CREATE TABLE one (id INT); CREATE TABLE two (id INT);"
    sent = {"content": sql, "format": "sql", "table": "three"}
    answer = page.submit(f"/templates/{template}/import", sent, content_type=FORM)
    assert answer.status_code == 422
    assert error_at(answer.text, "table")
    assert html.fromstring(answer.text).get_element_by_id("table").get("value") == "three"


# --- Runs -----------------------------------------------------------------------------------------------------


@pytest.fixture
def scenario(api, cast):
    return api(cast.edith).post("/scenarios", json={"name": "S", "code": "print(1)"}).json["id"]


WRONG_PARAMETERS = {
    "params[0].value": "nameless",
    "params[1].name": "1BAD",
    "params[1].value": "x",
    "params[2].name": "GOOD",
    "params[2].value": "kept",
}


@pytest.mark.parametrize("again", [False, True])
def test_errors_of_parameters_are_at_their_rows(page, api, cast, scenario, again):
    where = f"/scenarios/{scenario}/start"
    if again:
        first = api(cast.edith).post(f"/scenarios/{scenario}/run", json={}).json["id"]
        assert api(cast.edith).patch(f"/scenarios/{scenario}", json={"code": "print(2)"}).status_code == 200
        where = f"/scenarios/{scenario}/runs/{first}/again"
    before = api(cast.edith).get("/runs").json["total"]
    answer = page.submit(where, {**WRONG_PARAMETERS, "version": "same"})
    assert answer.status_code == 422
    found = html.fromstring(answer.text)
    assert errors(answer.text) == ["params[0].name-err", "params[1].name-err"]
    for number in (0, 1):
        control = found.get_element_by_id(f"params[{number}].name")
        assert (control.get("aria-invalid"), control.get("aria-describedby")) == (
            "true", f"params[{number}].name-err",
        )  # fmt: skip
    assert found.get_element_by_id("params[2].name").get("aria-invalid") is None
    assert found.get_element_by_id("params[2].value").text.strip() == "kept"
    links = found.xpath("//*[contains(@class, 'problems')]//a/@href")
    assert links == ["#params[0].name", "#params[1].name"]
    chosen = found.xpath("//select[@name='version']/option[@selected]/@value")
    assert chosen == (["same"] if again else [])
    assert api(cast.edith).get("/runs").json["total"] == before
    sent = {name: value for name, value in WRONG_PARAMETERS.items() if "[2]" in name}
    assert page.submit(where, sent).status_code == 303


# --- Filters of lists -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("rows_min", "many", "Enter a whole number."),
        ("rows_max", "-1", "Enter a number from 0"),
        ("since", "yesterday", ""),
        ("text", "x" * 10_000, "Enter at most"),
    ],
)
def test_an_invalid_filter_is_reported_at_its_field(browser, cast, name, value, text):
    olivia = browser(cast.olivia)
    answer = olivia.get("/audit", query_string={name: value, "q": "template"})
    assert answer.status_code == 400
    reported = error_at(answer.text, f"f-{name}")
    assert reported.startswith(text)
    assert reported
    assert errors(answer.text) == [f"f-{name}-err"]
    found = html.fromstring(answer.text)
    assert (found.get_element_by_id("f-q").get("value"), found.get_element_by_id(f"f-{name}").get("value")) == (
        "template", value,
    )  # fmt: skip
    assert [item.get("id") for item in found.xpath("//*[@autofocus]")] == [f"f-{name}"]
    if name != "text":
        assert found.xpath("//details[@open]//*[@id=$id]", id=f"f-{name}")


def test_a_filter_keeps_what_was_chosen(browser, cast):
    olivia = browser(cast.olivia)
    answer = olivia.get(
        f"/audit?since=2026-11-01T10:00&user_id={cast.edith.user_id}&rows_min=3&action=template.change"
    )
    found = html.fromstring(answer.text)
    assert answer.status_code == 200
    assert {item: found.get_element_by_id(f"f-{item}").get("value") for item in ("since", "rows_min", "action")} == {
        "since": "2026-11-01T10:00", "rows_min": "3", "action": "template.change",
    }  # fmt: skip
    assert found.xpath("//select[@id='f-user_id']/option[@selected]/@value") == [cast.edith.user_id]
    unknown = html.fromstring(olivia.get("/audit?user_id=usr_gone").text)
    assert unknown.xpath("//select[@id='f-user_id']/option[@selected]/@value") == ["usr_gone"]

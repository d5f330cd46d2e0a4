"""The template builder over plain HTTP: as a browser without script meets it, and the pieces it is sent by htmx."""

from __future__ import annotations

import gzip
import html
import re

import orjson
import pytest
from lxml import html as lxml_html
from werkzeug.datastructures import MultiDict

from tests.forms.in_html import controls
from tests.views.forms import error_at
from tests.views.test_pages import MOST_BYTES
from webapp import limits
from webapp.engine.types.registry import REGISTRY

TEN = "id,first_name,last_name,email,phone,city,country,price,created_at,notes"
HTMX = {"HX-Request": "true"}
FIELDS = [
    {"name": "id", "type": "row_number"},
    {"name": "n", "type": "number", "options": {"min": 1, "max": 9}},
]


@pytest.fixture
def edith(browser, cast):
    return browser(cast.edith)


@pytest.fixture
def saved(api, cast):
    return api(cast.edith).post("/templates", json={"name": "Orders", "fields": FIELDS}).json


def form_of(page) -> MultiDict[str, str]:
    return controls(page.text, "builder")


def keys_of(form) -> list[str]:
    return [row.split(" ")[0] for row in form.getlist("row")]


def key_of(form, name: str) -> str:
    return next(key for key in keys_of(form) if form[f"{key}.name"] == name)


def send(browser, path: str, form, headers=HTMX, **more: str):
    fields = {key: form.getlist(key) for key in form} if isinstance(form, MultiDict) else dict(form)
    return browser.submit(path, {**fields, **more}, headers=headers)


def press(browser, action: str, form, do: str, **headers):
    return send(browser, action, form, headers=headers, do=do)


# Without script


def test_a_template_is_created_by_a_plain_form(edith, api, cast):
    form = form_of(edith.get(f"/templates/new?names={TEN}"))
    form["name"] = "Customers"
    answer = press(edith, "/templates/new", form, "save")
    assert answer.status_code == 303
    made = api(cast.edith).get(answer.location).json
    assert [field["name"] for field in made["fields"]] == TEN.split(",")
    assert made["fields"][0]["id"] == form.getlist("row")[0].split(" ")[1]


def test_a_new_template_can_be_built_without_a_script(edith):
    form = form_of(edith.get("/templates/new?names=a,b"))
    form = form_of(press(edith, "/templates/new", form, "add"))
    form = form_of(press(edith, "/templates/new", form, f"up:{key_of(form, 'b')}"))
    form = form_of(press(edith, "/templates/new", form, f"duplicate:{key_of(form, 'a')}"))
    assert [form[f"{key}.name"] for key in keys_of(form)] == ["b", "a", "a_2", ""]


def test_a_row_opened_without_script_shows_every_option_and_keeps_the_input(edith):
    form = form_of(edith.get("/templates/new?names=quantity"))
    key = key_of(form, "quantity")
    form[f"{key}.o.min"] = "5"
    opened = form_of(press(edith, "/templates/new", form, f"open:{key}"))
    assert opened[f"{key}.o.min"] == "5"
    assert f"{key}.o.distribution" in opened
    closed = form_of(press(edith, "/templates/new", opened, f"close:{key}"))
    assert f"{key}.o.distribution" not in closed
    assert closed[f"{key}.o.min"] == "5"


def test_a_rejected_template_is_shown_again_with_errors_at_the_inputs(edith):
    form = form_of(edith.get("/templates/new?names=quantity"))
    form["name"], key = "Broken", key_of(form, "quantity")
    form[f"{key}.o.min"], form[f"{key}.o.max"] = "90", "10"
    answer = press(edith, "/templates/new", form, "save")
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.text
    assert form_of(answer)[f"{key}.o.max"] == "10"


def test_a_rejected_save_lists_the_errors_instead_of_rows(edith, saved):
    form = form_of(edith.get(f"/templates/{saved['id']}"))
    form[f"{key_of(form, 'n')}.o.min"] = "90"
    answer = press(edith, f"/templates/{saved['id']}/edit", form, "save", **HTMX)
    assert (answer.status_code, answer.headers["HX-Retarget"]) == (422, "#preview")
    assert "Not saved: one thing is wrong" in answer.text
    assert f'data-for="{key_of(form, "n")}.o.min"' in answer.text


def test_a_template_is_deleted_and_restored_without_script(edith, api, cast, saved):
    answer = edith.submit(f"/templates/{saved['id']}", method="DELETE", follow_redirects=True)
    assert "Template Orders deleted" in answer.text
    assert api(cast.edith).get(f"/templates/{saved['id']}").status_code == 404
    assert f'action="/templates/{saved["id"]}/restore"' in edith.get("/trash").text
    edith.submit(f"/templates/{saved['id']}/restore")
    assert api(cast.edith).get(f"/templates/{saved['id']}").json["name"] == "Orders"


# Saving


def test_saving_creates_the_next_version_and_confirms_it(edith, api, cast, saved):
    form = form_of(edith.get(f"/templates/{saved['id']}"))
    form["name"] = "Purchases"
    answer = press(edith, f"/templates/{saved['id']}/edit", form, "save", **HTMX)
    assert answer.headers["HX-Trigger"] == "saved"
    assert 'value="2" id="loaded-version"' in answer.text
    assert "<html" not in answer.text
    assert api(cast.edith).get(f"/templates/{saved['id']}").json["name"] == "Purchases"


def test_a_clash_shows_both_and_overwrites_nothing(edith, api, cast, saved):
    action = f"/templates/{saved['id']}/edit"
    form = form_of(edith.get(f"/templates/{saved['id']}"))
    api(cast.adam).patch(f"/templates/{saved['id']}", json={"quantity": 77})
    form["name"] = "Mine"
    answer = press(edith, action, form, "save", **HTMX)
    assert answer.status_code == 412
    assert answer.headers["HX-Retarget"] == "#clash"
    assert "quantity" in answer.text
    assert "Mine" in answer.text
    assert "Adam" in answer.text
    assert api(cast.edith).get(f"/templates/{saved['id']}").json["name"] == "Orders"
    again = press(edith, action, form, "save")  # without script the whole page, still on the old version
    assert (again.status_code, form_of(again)["version"]) == (412, "1")
    over = press(edith, action, form, "save-over:2")
    assert over.status_code == 303
    kept = api(cast.edith).get(f"/templates/{saved['id']}").json
    assert (kept["name"], kept["version"]) == ("Mine", 3)


def test_a_third_version_saved_in_the_meantime_is_not_overwritten_either(edith, api, cast, saved):
    form = form_of(edith.get(f"/templates/{saved['id']}"))
    for quantity in (2, 3):
        api(cast.adam).patch(f"/templates/{saved['id']}", json={"quantity": quantity})
    answer = press(edith, f"/templates/{saved['id']}/edit", form, "save-over:2")
    assert answer.status_code == 412


def test_both_sides_of_a_clash_can_be_kept(edith, api, cast, saved):
    form = form_of(edith.get(f"/templates/{saved['id']}"))
    answer = press(edith, f"/templates/{saved['id']}/edit", form, "copy")
    assert api(cast.edith).get(answer.location).json["name"] == "Orders (copy)"


def test_an_old_version_is_restored_as_a_new_one(edith, api, cast, saved):
    api(cast.edith).patch(f"/templates/{saved['id']}", json={"name": "Later"})
    listed = edith.get(f"/builder/{saved['id']}/versions", headers=HTMX)
    assert "v2" in listed.text
    edith.submit(f"/templates/{saved['id']}/versions/1/restore")
    assert api(cast.edith).get(f"/templates/{saved['id']}").json["version"] == 3


def test_two_versions_are_compared_cell_by_cell_at_one_seed(edith, api, cast, saved):
    fields = [{**saved["fields"][1], "options": {"min": 1000, "max": 2000}}]
    api(cast.edith).patch(f"/templates/{saved['id']}", json={"fields": fields})
    text = edith.get(f"/builder/{saved['id']}/diff/1?seed=s").text
    assert "<del>9</del>" in text
    assert "<ins>2000</ins>" in text
    assert "2 of 2 columns" in text


# Rows


def test_the_preview_of_a_draft_is_what_the_saved_template_makes(edith, api, cast):
    form = form_of(edith.get(f"/templates/new?names={TEN}"))
    form["name"], form["seed"] = "Same", "s"
    drawn = send(edith, "/builder/preview", form).text
    where = press(edith, "/templates/new", form, "save").location
    rows = api(cast.edith).post(f"{where}/preview", json={"seed": "s"}).json["rows"]
    shown = re.findall(r"<td[^>]*?(?:title=\"([^\"]*)\")?>([^<]*)</td>", drawn)
    texts = [full or text for full, text in shown]
    assert rows[0]["email"] in texts
    assert rows[2]["id"] in texts
    assert str(rows[1]["price"]) in texts


def test_an_error_in_a_draft_names_the_input(edith):
    form = form_of(edith.get("/templates/new?names=quantity"))
    key = key_of(form, "quantity")
    form[f"{key}.o.min"], form[f"{key}.o.max"] = "90", "10"
    answer = send(edith, "/builder/preview", form)
    assert answer.status_code == 200
    assert f'data-for="{key}.o.min"' in answer.text


def test_viewing_rows_only_counts_those_of_the_page(edith, api, cast, saved):
    form = form_of(edith.get(f"/templates/{saved['id']}"))
    used = api(cast.edith).get("/usage").json["rows"]["used"]
    for more in ({}, {"goto": "999990"}, {"offset": "50"}):
        grid = send(edith, "/builder/grid", form, count="1000000", **more)
        assert grid.status_code == 200
    assert "50,000,000" not in grid.text
    after = api(cast.edith).get("/usage").json["rows"]["used"]
    assert after - used == 3 * limits.GRID_PAGE_ROWS


def test_any_page_of_the_rows_is_the_one_generate_would_make(edith, api, cast, saved):
    form = form_of(edith.get(f"/templates/{saved['id']}"))
    form["seed"] = "s"
    grid = send(edith, "/builder/grid", form, count="1000", goto="990")
    assert "Rows 976 to 1,000 of 1,000" in grid.text
    ask = {"count": 25, "offset": 975, "seed": "s"}
    rows = api(cast.edith).post(f"/templates/{saved['id']}/generate", json=ask).json
    cells = re.findall(r'<td class="n">(\d+)</td>', grid.text)
    assert cells == [str(value) for row in rows for value in row.values()]


def test_export_of_the_grid_downloads_exactly_its_rows(edith):
    form = form_of(edith.get("/templates/new?names=id,first_name,email"))
    form["seed"] = "shown"
    grid = send(edith, "/builder/grid", form, count="60", goto="60")
    definition = html.unescape(re.search(r'name="definition" form="grid-export" value="([^"]+)"', grid.text)[1])
    shown = [html.unescape(cell) for cell in re.findall(r"<td[^>]*>([^<]*)</td>", grid.text)]
    csv = edith.submit("/builder/grid/export", {"definition": definition, "format": "csv"})
    assert (csv.status_code, csv.mimetype) == (200, "text/csv")
    lines = csv.text.splitlines()
    assert len(lines) == 61
    assert shown == [cell for line in lines[51:] for cell in line.split(",")]
    rows = edith.submit("/builder/grid/export", {"definition": definition, "format": "json"}).json
    assert [str(value) for row in rows[50:] for value in row.values()] == shown


@pytest.mark.parametrize("definition", ["", "[]", "{", '{"fields": []}'])
def test_export_of_the_grid_rejects_a_definition_that_is_not_one(edith, definition):
    answer = edith.submit("/builder/grid/export", {"definition": definition, "format": "csv"})
    assert answer.status_code in (400, 422)


def test_too_many_requested_rows_are_reported_on_the_page(browser, cast):
    mallory = browser(cast.mallory)
    form = form_of(mallory.get("/templates/new?names=a"))
    answer = send(mallory, "/builder/grid", form, count="-5")
    assert "count" in answer.text


# JSON, both ways


def test_json_and_fields_are_the_same_template(edith):
    form = form_of(edith.get(f"/templates/new?names={TEN}"))
    text = controls(send(edith, "/builder/json", form).text)["json"]
    answer = send(edith, "/builder/from-json", {"json": text})
    back = controls(answer.text)
    # The page folds the last of many rows (`~`); what the text brings is drawn whole.
    whole = [one.replace("~", "") for one in form.getlist("row")]
    assert [one.replace("~", "") for one in back.getlist("row")] == whole
    assert orjson.loads(text)["fields"][0]["id"] == back["row"].split(" ")[1]


@pytest.mark.parametrize(
    "text", ['{"fields": [', "7", '{"fields": 3}', '{"fields": [7]}', "null", '{"name": "no fields"}']
)
def test_json_that_is_not_a_template_does_not_change_the_fields(edith, text):
    answer = send(edith, "/builder/from-json", {"json": text})
    assert answer.status_code == 200
    assert 'class="err"' in answer.text
    assert "field-table" not in answer.text


def test_an_unknown_type_stays_visible_and_is_rejected_by_the_preview(edith):
    text = '{"fields": [{"name": "a", "type": "emial", "options": {"x": 1}}]}'
    form = controls(send(edith, "/builder/from-json", {"json": text}).text)
    assert form[f"{keys_of(form)[0]}.type"] == "emial"
    shown = send(edith, "/builder/preview", form).text
    assert "Did you mean `email`?" in shown
    assert f'data-for="{keys_of(form)[0]}.type"' in shown


# Rows of the form by script


def test_a_new_row_is_sent_by_itself(edith):
    form = form_of(edith.get(f"/templates/new?names={TEN}"))
    answer = press(edith, "/builder/rows", form, "add", **HTMX)
    assert answer.text.count("<tbody") == 1
    assert "data-fresh" in answer.text


def test_names_are_pasted_with_their_types(edith):
    form = form_of(edith.get("/templates/new?names=a"))
    form["names"] = "first_name\nwhen: datetime, `total`"
    back = controls(press(edith, "/builder/rows", form, "paste", **HTMX).text)
    assert [(back[f"{key}.name"], back[f"{key}.type"]) for key in keys_of(back)] == [
        ("first_name", "first_name"),
        ("when", "datetime"),
        ("total", "number"),
    ]


def test_another_type_redraws_its_row_with_its_options(edith):
    form = form_of(edith.get("/templates/new?names=a,b"))
    key = key_of(form, "a")
    back = controls(press(edith, "/builder/rows", form, f"type:{key}:regexp", **HTMX).text)
    assert keys_of(back) == [key]
    assert f"{key}.o.string" in back


def test_the_picker_lists_every_type_with_an_example_and_is_kept_by_the_browser(edith):
    answer = edith.get("/builder/types", headers=HTMX)
    assert answer.text.count(' id="t-') == len(REGISTRY)
    assert len(gzip.compress(answer.data)) < MOST_BYTES
    assert edith.get("/builder/types", headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304


# Export


def test_the_export_dialog_posts_what_generate_takes(edith, saved):
    html = edith.get(f"/builder/{saved['id']}/export?seed=s").text
    form = controls(html, "export-form")
    form["count"] = "3"
    answer = send(edith, f"/templates/{saved['id']}/generate", form, headers={})
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"] == 'attachment; filename="Orders.csv"'
    assert answer.text.splitlines()[0] == "id,n"
    assert answer.headers["X-Seed"] == "s"


def test_an_estimate_is_measured_and_spends_nothing(edith, api, cast, saved):
    used = api(cast.edith).get("/usage").json["rows"]["used"]
    form = {"template_id": saved["id"], "format": "csv", "count": "1000000", "seed": "", "csv.header": ""}
    text = send(edith, "/builder/estimate", form).text
    assert re.search(r"about <b>\d+(\.\d)? [kM]B</b>", text)
    assert api(cast.edith).get("/usage").json["rows"]["used"] == used


def test_an_export_in_the_background_leads_to_its_page(edith, saved):
    answer = edith.submit(f"/templates/{saved['id']}/exports", {"format": "xlsx", "count": "5", "seed": ""})
    assert answer.status_code == 303
    page = edith.get(answer.location)
    assert "waiting for a worker" in page.text
    assert "sse-connect" in page.text
    block = edith.get(answer.location, headers=HTMX)
    assert "<html" not in block.text
    assert "waiting for a worker" in block.text


WRONG_EXPORT = {
    "format": "csv", "count": "many", "seed": "s" * 201, "locale": "xx_XX", "csv.delimiter": "ab",
    "sql.rows_per_statement": "x",
}  # fmt: skip


@pytest.mark.parametrize("end", ["generate", "exports"])
def test_a_rejected_export_shows_each_error_at_its_field_and_keeps_the_input(edith, saved, end):
    answer = edith.submit(f"/templates/{saved['id']}/{end}", {**WRONG_EXPORT, "csv.header": "false"})
    assert answer.status_code == 422
    assert error_at(answer.text, "x-count") == "Enter a whole number."
    assert error_at(answer.text, "x-seed") == "Enter at most 200 characters. You entered 201."
    assert error_at(answer.text, "csv.delimiter")
    assert error_at(answer.text, "sql.rows_per_statement")
    assert error_at(answer.text, "csv.quote") == ""
    form = controls(answer.text, "export-form")
    assert {name: form[name] for name in ("count", "locale", "sql.rows_per_statement", "csv.header")} == {
        "count": "many", "locale": "xx_XX", "sql.rows_per_statement": "x", "csv.header": "false",
    }  # fmt: skip
    links = lxml_html.fromstring(answer.text).xpath("//*[contains(@class, 'problems')]//a/@href")
    assert links == ["#x-count", "#x-seed", "#csv.delimiter", "#sql.rows_per_statement"]


@pytest.mark.parametrize(
    ("name", "value", "control"),
    [
        ("count", "0", "x-count"),
        ("count", "100000000000", "x-count"),
        ("seed", "s" * 201, "x-seed"),
        ("locale", "xx_XX", "x-locale"),
        ("csv.delimiter", "ab", "csv.delimiter"),
        ("sql.table", "", ""),
    ],
)
def test_an_estimate_shows_which_field_each_error_belongs_to(edith, saved, name, value, control):
    form = {"template_id": saved["id"], "format": "csv", "count": "5", "seed": "", "locale": "", name: value}
    found = lxml_html.fromstring(f"<div>{send(edith, '/builder/estimate', form).text}</div>")
    assert found.xpath("//li/@data-for") == ([control] if control else [])
    assert bool(found.xpath("//*[@class='err']")) == bool(control)
    assert all(one.text_content().strip() for one in found.xpath("//li"))
    dialog = lxml_html.fromstring(edith.get(f"/builder/{saved['id']}/export").text)
    assert all(dialog.get_element_by_id(one) is not None for one in found.xpath("//li/@data-for"))


def test_a_rejected_export_in_the_background_leaves_the_dialog_and_marks_its_fields(edith, saved):
    answer = send(edith, f"/templates/{saved['id']}/exports", {"format": "csv", "count": "0"})
    assert (answer.status_code, answer.headers["HX-Retarget"], answer.headers["HX-Reswap"]) == (
        422, "#estimate", "innerHTML",
    )  # fmt: skip
    assert 'data-for="x-count"' in answer.text
    assert "<form" not in answer.text


# Rights


def test_a_viewer_reads_and_previews_but_is_offered_no_change(browser, cast, saved):
    victor = browser(cast.victor)
    page = victor.get(f"/templates/{saved['id']}")
    assert page.status_code == 200
    assert 'id="save"' not in page.text
    assert 'data-open="export"' not in page.text
    form = form_of(page)
    assert press(victor, f"/templates/{saved['id']}/edit", form, "save").status_code == 403


def test_a_stranger_finds_nothing(browser, cast, saved):
    mallory = browser(cast.mallory)
    assert mallory.get(f"/templates/{saved['id']}").status_code == 404
    form = {
        "template_id": saved["id"],
        "row": "a",
        "a.id": saved["fields"][0]["id"],
        "a.name": "x",
        "a.type": "uuid",
    }
    answer = send(mallory, "/builder/preview", form)
    assert "no such template" in answer.text

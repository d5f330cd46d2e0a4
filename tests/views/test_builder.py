"""The template builder over plain HTTP: as a browser without script meets it, and the pieces it is sent by htmx."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import time
from datetime import timedelta

import orjson
import pytest
from lxml import html as lxml_html

from tests.forms.in_html import controls
from tests.views.builder_page import HTMX, Editor, send
from tests.views.forms import error_at
from tests.views.test_pages import MOST_BYTES
from webapp import clock, limits
from webapp.builder import services as builder
from webapp.builder.models import DraftRevision, TemplateDraft
from webapp.engine.types.registry import REGISTRY
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db

TEN = "id,first_name,last_name,email,phone,city,country,price,created_at,notes"
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


def new(browser, names: str, **how) -> Editor:
    return Editor(browser, f"/templates/new?names={names}", **how)


def of(browser, saved, **how) -> Editor:
    return Editor(browser, f"/templates/{saved['id']}", **how)


# Without script


def test_a_template_is_created_by_a_plain_form(edith, api, cast):
    page = new(edith, TEN, headers={})
    page.inputs["name"] = "Customers"
    answer = page.save()
    assert answer.status_code == 303
    result = api(cast.edith).get(answer.location.partition("?")[0]).json
    assert [field["name"] for field in result["fields"]] == TEN.split(",")
    assert result["quantity"] == limits.BUILDER_QUANTITY


def test_a_template_can_be_built_without_a_script(edith):
    page = new(edith, "a,b", headers={})
    page.press("add", add_name="c")
    page.press("left:{b}")
    page.press("duplicate:{a}")
    assert page.names == ["b", "a", "a_2", "c"]
    page.press("remove:{a_2}")
    page.press("undo")
    assert page.names == ["b", "a", "a_2", "c"]


def test_a_field_of_a_new_template_is_opened_and_changed_by_links(edith):
    page = Editor(edith, "/templates/new?names=quantity&field=quantity", headers={})
    key = page.keys["quantity"]
    assert f"{key}.o.distribution" in page.inputs
    page.inputs[f"{key}.o.min"] = "5"
    page.press("set")
    assert page.spec["fields"][0]["options"]["min"] == 5
    assert page.inputs[f"{key}.o.min"] == "5"


def test_a_rejected_template_is_shown_again_with_errors_at_the_inputs(edith):
    page = Editor(edith, "/templates/new?names=quantity&field=quantity", headers={})
    page.inputs["name"], key = "Broken", page.keys["quantity"]
    page.inputs[f"{key}.o.min"], page.inputs[f"{key}.o.max"] = "90", "10"
    answer = page.save()
    assert answer.status_code == 422
    assert "1 field needs attention" in answer.text
    assert controls(answer.text, "builder")[f"{key}.o.max"] == "10"
    assert re.search(
        rf'id="{key}\.o\.min"[^>]*aria-invalid="true"|aria-invalid="true"[^>]*id="{key}\.o\.min"', answer.text
    )


def test_a_template_is_deleted_and_restored_without_script(edith, api, cast, saved):
    answer = edith.submit(f"/templates/{saved['id']}", method="DELETE", follow_redirects=True)
    assert "Template Orders deleted" in answer.text
    assert api(cast.edith).get(f"/templates/{saved['id']}").status_code == 404
    assert f'action="/templates/{saved["id"]}/restore"' in edith.get("/trash").text
    edith.submit(f"/templates/{saved['id']}/restore")
    assert api(cast.edith).get(f"/templates/{saved['id']}").json["name"] == "Orders"


# Drafts


def test_a_change_is_a_draft_of_its_user_and_the_template_stays(edith, browser, api, cast, saved):
    page = of(edith, saved)
    page.open("n")
    page.fill(name="number")
    assert "Unsaved changes" in page.press("set")
    assert of(edith, saved).names == ["id", "number"]
    assert of(browser(cast.adam), saved).names == ["id", "n"]
    assert api(cast.edith).get(f"/templates/{saved['id']}").json["fields"][1]["name"] == "n"


def test_a_new_template_is_a_draft_from_its_first_change_on(edith):
    page = new(edith, "a")
    text = page.press("add", add_name="email")
    assert page.answer.headers["HX-Replace-Url"] == f"/templates/new?draft={page.inputs['draft']}"
    assert "Unsaved changes" in text
    later = Editor(edith, f"/templates/new?draft={page.inputs['draft']}")
    assert later.names == ["a", "email"]
    assert f"draft={page.inputs['draft']}" in edith.get("/templates/new").text  # offered to continue


def test_a_draft_of_another_user_is_not_found(edith, browser, cast):
    page = new(edith, "a")
    page.press("add", add_name="b")
    assert browser(cast.adam).get(f"/templates/new?draft={page.inputs['draft']}").status_code == 404


def test_every_change_can_be_undone_and_redone(edith, saved):
    page = of(edith, saved)
    page.press("add", add_name="email")
    page.press("remove:{id}")
    page.press("duplicate:{n}")
    assert page.names == ["n", "n_2", "email"]
    for names in (["n", "email"], ["id", "n", "email"], ["id", "n"], ["id", "n"]):
        page.press("undo")
        assert page.names == names
    assert "Unsaved changes" not in page.text
    for names in (["id", "n", "email"], ["n", "email"], ["n", "n_2", "email"]):
        page.press("redo")
        assert page.names == names
    page.press("undo")
    page.press("add", add_name="city")  # what could be redone is gone
    page.press("redo")
    assert page.names == ["n", "email", "city"]


def test_undo_names_the_change(edith, saved):
    page = of(edith, saved)
    assert "Undo: add email (Ctrl+Z)" in page.press("add", add_name="email")
    assert "Undo: move email (Ctrl+Z)" in page.press("left:{email}")


def test_typing_in_one_input_is_one_step_of_undo(edith, saved, monkeypatch):
    page = of(edith, saved)
    page.open("n")
    for text in ("1", "12", "123"):
        page.fill(o_max=text)
        page.press("set", changed="max")
    page.press("undo")
    assert page.spec["fields"][1]["options"]["max"] == 9
    now = clock.now()
    page.press("redo")
    monkeypatch.setattr(clock, "now", lambda: now + timedelta(minutes=1))
    page.open("n")
    page.fill(o_max="1234")
    page.press("set", changed="max")
    page.press("undo")
    assert page.spec["fields"][1]["options"]["max"] == 123


def test_the_last_hundred_changes_are_kept(edith, app, monkeypatch):
    monkeypatch.setattr(limits, "DRAFT_REVISIONS", 3)
    page = new(edith, "a")
    for number in range(6):
        page.press("add", add_name=f"b{number}")
    for _ in range(6):
        page.press("undo")
    assert page.names == ["a", "b0", "b1", "b2"]
    with app.app_context():
        assert db.session.query(DraftRevision).count() == 4


def test_undo_still_works_after_saving(edith, api, cast, saved):
    page = of(edith, saved)
    page.press("add", add_name="email")
    page.save()
    page._changed()
    assert "Unsaved changes" not in page.text
    page.press("undo")
    assert page.names == ["id", "n"]
    assert "Unsaved changes" in page.text
    assert page.save().status_code == 200
    assert len(api(cast.edith).get(f"/templates/{saved['id']}").json["fields"]) == 2


def test_unsaved_changes_can_be_discarded(edith, app, saved):
    page = of(edith, saved)
    page.press("add", add_name="email")
    page.press("discard")
    assert page.answer.headers["HX-Redirect"] == f"/templates/{saved['id']}"
    assert of(edith, saved).names == ["id", "n"]
    with app.app_context():
        assert db.session.query(TemplateDraft).count() == 0


def test_a_draft_without_changes_gives_way_to_a_newer_version(edith, api, cast, saved):
    page = of(edith, saved)
    page.press("add", add_name="email")
    page.press("undo")
    fields = [*saved["fields"], {"name": "city", "type": "city"}]
    api(cast.adam).patch(f"/templates/{saved['id']}", json={"fields": fields})
    assert of(edith, saved).names == ["id", "n", "city"]


def test_a_request_that_only_reads_deletes_no_draft(edith, api, cast, app, saved):
    page = of(edith, saved)
    page.press("add", add_name="email")
    page.press("undo")
    api(cast.adam).patch(f"/templates/{saved['id']}", json={"quantity": 7})
    with app.app_context(), db.engine.connect() as other:
        other.exec_driver_sql("SELECT 1")  # begins a transaction that writes, as nobody else can now
        answer = send(
            edith, "/builder/explain", {**page.inputs, "loaded": "2"}, do=f"explain:{page.keys['n']}"
        )
        other.rollback()
        assert answer.status_code == 200
        assert db.session.query(TemplateDraft).count() == 1


def test_what_is_typed_is_stored_with_the_next_button(edith, saved):
    page = of(edith, saved)
    page.open("n")
    page.fill(name="amount", o_max="7")
    page.press("add", add_name="email")
    assert page.names == ["id", "amount", "email"]
    assert page.spec["fields"][1]["options"] == {"min": 1, "max": 7}


# Saving


def test_saving_creates_the_next_version_and_confirms_it(edith, api, cast, saved):
    page = of(edith, saved)
    page.inputs["name"] = "Purchases"
    answer = page.save()
    assert answer.status_code == 200
    assert "Saved as version 2" in answer.text
    assert 'name="loaded" value="2"' in answer.text
    assert "<html" not in answer.text
    assert api(cast.edith).get(f"/templates/{saved['id']}").json["name"] == "Purchases"


def test_saving_without_a_name_asks_for_it(edith):
    page = new(edith, "a")
    answer = page.save()
    assert answer.status_code == 422
    assert "Enter a name for the template." in answer.text
    assert orjson.loads(answer.headers["HX-Trigger-After-Settle"]) == {"refused": {"name": True}}


def test_a_rejected_save_opens_the_first_field_that_needs_attention(edith, saved):
    page = of(edith, saved)
    page.open("n")
    page.fill(o_min="90")
    page.press("set")
    page.open("id")
    answer = page.save()
    assert answer.status_code == 422
    assert "Not saved. 1 field needs attention" in answer.text
    assert f'data-key="{page.keys["n"]}"' in answer.text
    assert f'data-for="{page.keys["n"]}.o.min"' in answer.text


def test_a_clash_shows_both_and_overwrites_nothing(edith, api, cast, saved):
    page = of(edith, saved)
    page.inputs["name"] = "Mine"
    page.press("set")
    api(cast.adam).patch(f"/templates/{saved['id']}", json={"quantity": 77})
    answer = page.save()
    assert answer.status_code == 412
    assert answer.headers["HX-Retarget"] == "#clash"
    assert "quantity" in answer.text
    assert "Mine" in answer.text
    assert "Adam" in answer.text
    assert api(cast.edith).get(f"/templates/{saved['id']}").json["name"] == "Orders"
    page.headers = {}
    again = page.save()  # without script the whole page, still on the old version
    assert (again.status_code, controls(again.text, "builder")["loaded"]) == (412, "1")
    assert page.save("save-over:2").status_code == 303
    stored = api(cast.edith).get(f"/templates/{saved['id']}").json
    assert (stored["name"], stored["version"]) == ("Mine", 3)


def test_a_third_version_saved_in_the_meantime_is_not_overwritten_either(edith, api, cast, saved):
    page = of(edith, saved)
    page.press("add", add_name="email")
    for quantity in (2, 3):
        api(cast.adam).patch(f"/templates/{saved['id']}", json={"quantity": quantity})
    assert page.save("save-over:2").status_code == 412


def test_both_sides_of_a_clash_can_be_kept(edith, api, cast, saved):
    page = of(edith, saved, headers={})
    answer = page.save("copy")
    assert api(cast.edith).get(answer.location).json["name"] == "Orders (copy)"


def test_an_old_version_is_restored_as_a_new_one(edith, api, cast, saved):
    api(cast.edith).patch(f"/templates/{saved['id']}", json={"name": "Later"})
    assert "v2" in edith.get(f"/templates/{saved['id']}?view=versions").text
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


def test_the_rows_of_a_draft_are_those_of_the_saved_template(edith, api, cast):
    page = new(edith, TEN)
    page.inputs["name"], page.inputs["seed"] = "Same", "s"
    drawn = page.rows()
    where = page.save().headers["HX-Redirect"].partition("?")[0]
    rows = api(cast.edith).post(f"{where}/generate", json={"seed": "s", "count": limits.BUILDER_ROWS}).json
    for name in ("id", "email", "price", "city"):
        assert page.column(name, drawn) == [str(row[name]) for row in rows]


def test_a_field_with_an_error_shows_it_in_its_column_and_the_others_keep_their_rows(edith, saved):
    page = of(edith, saved)
    before = page.column("id")
    page.open("n")
    page.fill(o_min="90")
    text = page.press("set")
    assert 'class="errcell"' in text
    assert "larger than max" in text
    assert "1 field needs attention" in re.sub(r"<[^>]+>", "", text)
    assert page.column("id") == before


def test_a_field_that_reads_one_with_an_error_keeps_its_rows_or_says_what_it_waits_for(edith):
    fields = [
        {"name": "price", "type": "number", "options": {"min": 9, "max": 1}},
        {"name": "tax", "type": "formula", "options": {"expression": "price * 0.2"}},
        {"name": "bad", "type": "formula", "options": {"expression": "nothing + 1"}},
        {"name": "worse", "type": "formula", "options": {"expression": "upper(bad)"}},
        {"name": "id", "type": "row_number"},
    ]
    page = new(edith, "x")
    text = page.press("json", json=orjson.dumps({"fields": fields}).decode())
    assert page.names == ["price", "tax", "bad", "worse", "id"]
    assert re.sub(r"<[^>]+>", "", text).count("Needs attention") == 2
    assert ">50</td>" in text


def test_two_fields_with_one_name_keep_the_rows_of_the_first(edith):
    page = new(edith, "email,id")
    page.press("duplicate:{email}")
    page.fill(name="email")
    text = page.press("set")
    assert text.count("Needs attention") >= 1
    assert "@example" in text


def test_a_template_without_fields_says_what_to_do(edith):
    page = new(edith, "a")
    assert "No fields yet" in page.press("remove:{a}")


def test_the_first_rows_are_not_counted_and_later_ones_are(edith, api, cast, saved):
    page = of(edith, saved)
    used = api(cast.edith).get("/usage").json["rows"]["used"]
    page.rows()
    assert api(cast.edith).get("/usage").json["rows"]["used"] == used
    later = page.rows(offset="999950")
    assert api(cast.edith).get("/usage").json["rows"]["used"] == used + limits.BUILDER_ROWS
    ask = {"count": limits.BUILDER_ROWS, "offset": 999950, "seed": "sample"}
    rows = api(cast.edith).post(f"/templates/{saved['id']}/generate", json=ask).json
    assert page.column("n", later) == [str(row["n"]) for row in rows]


def test_a_page_of_many_fields_starts_with_its_list_and_stays_small(edith):
    names = ",".join(f"field_{number}" for number in range(limits.MAX_FIELDS))
    answer = edith.submit("/builder/change", {"do": "paste", "names": names, "start": ""}, headers={})
    page = edith.get(answer.location)
    assert page.text.count("data-line=") == limits.MAX_FIELDS
    grid = edith.get(f"{answer.location}&view=grid".replace("view=list&", ""))
    assert grid.text.count('class="colhead"') == limits.BUILDER_COLUMNS
    assert f"Columns 1–{limits.BUILDER_COLUMNS}" in grid.text


# Files


def test_a_file_is_downloaded_from_a_new_template_without_saving(edith, api, cast):
    page = new(edith, "id,first_name,email")
    shown = {name: page.column(name) for name in ("id", "first_name", "email")}
    answer = send(edith, "/builder/download", page.inputs, {}, format="csv", count="1000", file_name="people")
    assert (answer.status_code, answer.mimetype) == (200, "text/csv")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="people.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 1000
    assert [row["email"] for row in rows[: limits.BUILDER_ROWS]] == shown["email"]
    assert api(cast.edith).get("/templates").json["total"] == 0


def test_a_file_includes_unsaved_changes_and_leaves_fields_with_errors_empty(edith, saved):
    page = of(edith, saved)
    page.press("add", add_name="email")
    page.open("n")
    page.fill(o_min="90")
    answer = send(edith, "/builder/download", page.inputs, {}, format="json", count="3")
    assert [[row["id"], row["n"]] for row in answer.json] == [[1, None], [2, None], [3, None]]
    assert all("@" in row["email"] for row in answer.json)


def test_a_file_that_cannot_be_created_is_explained_on_the_page(edith):
    page = new(edith, "a")
    page.press("add", add_name="b")
    answer = send(edith, "/builder/download", page.inputs, {}, format="csv", count="-5")
    assert answer.status_code == 303
    assert "No file was created." in edith.get(answer.location).text


# Fields


def test_names_are_pasted_with_their_types(edith):
    page = new(edith, "a")
    page.press("paste", names="first_name\nwhen: datetime, `total`")
    assert [(field["name"], field["type"]) for field in page.spec["fields"][1:]] == [
        ("first_name", "first_name"),
        ("when", "datetime"),
        ("total", "number"),
    ]


def test_another_type_shows_its_options_and_keeps_the_id(edith):
    page = new(edith, "a,b")
    before = orjson.loads(page.inputs["start"])["fields"][0]["id"]
    page.press("type:{a}:regexp")
    assert f"{page.keys['a']}.o.string" in page.inputs
    assert page.spec["fields"][0]["id"] == before


def test_only_the_parameters_of_the_chosen_distribution_are_shown(edith):
    page = new(edith, "quantity")
    page.open("quantity")
    key = page.keys["quantity"]
    assert f"{key}.o.mean" not in page.inputs
    page.fill(o_distribution="normal")
    page.press(f"again:{key}")
    assert f"{key}.o.mean" in page.inputs
    page.fill(o_mean="5")
    page.press("set")
    page.fill(o_distribution="poisson")
    page.press(f"again:{key}")
    page.fill(o_distribution="zipf")
    page.press(f"again:{key}")
    assert "mean" not in page.spec["fields"][0]["options"]
    assert "Needs attention" not in page.text


def test_a_field_is_added_inside_another_and_keeps_its_place(edith):
    page = new(edith, "address")
    page.press("type:{address}:nested")
    page.press("inside:{address}")
    page.fill(name="city", type="city")
    page.press("set")
    page.inputs["view"] = "list"
    assert page.press("set").count("data-line=") == 2
    inner = page.spec["fields"][0]["options"]["fields"]
    assert [(item["name"], item["type"]) for item in inner] == [("city", "city")]
    page.open("address")
    page.fill(name="home")
    page.press("set")
    assert page.spec["fields"][0]["options"]["fields"] == inner


def test_several_fields_are_changed_together_in_the_list(edith):
    page = new(edith, "a,email,b,phone")
    keys = page.keys
    page.press("bulk-set:sensitive:on", pick=[keys["email"], keys["phone"]])
    assert [bool(field.get("sensitive")) for field in page.spec["fields"]] == [False, True, False, True]
    page.press("bulk-remove", pick=[keys["a"], keys["b"]])
    assert page.names == ["email", "phone"]
    page.press("undo")
    assert page.names == ["a", "email", "b", "phone"]


def test_the_name_of_a_new_field_suggests_types(edith):
    page = new(edith, "a")
    text = send(edith, "/builder/suggestions", page.inputs, add_name="phone").text
    assert text.index("Phone number") < text.index("All types")


@pytest.mark.parametrize(
    "text", ['{"fields": [', "7", '{"fields": 3}', '{"fields": [7]}', "null", '{"name": "no fields"}']
)
def test_json_that_is_not_a_template_does_not_change_the_fields(edith, saved, text):
    page = of(edith, saved)
    answer = send(edith, "/builder/change", page.inputs, do="json", json=text)
    assert answer.headers["HX-Retarget"] == "#json-state"
    assert 'class="err"' in answer.text
    assert of(edith, saved).names == ["id", "n"]


def test_an_unknown_type_stays_visible_and_is_an_error_of_its_field(edith):
    page = new(edith, "a")
    text = page.press("json", json='{"fields": [{"name": "a", "type": "emial", "options": {"x": 1}}]}')
    assert "Did you mean `email`?" in text
    assert page.open("a")[f"{page.keys['a']}.type"] == "emial"


@pytest.mark.parametrize("start", ["{", "7", '{"fields": 7}'])
def test_a_form_without_a_template_is_rejected(edith, start):
    assert edith.submit("/builder/change", {"do": "add", "start": start}, headers=HTMX).status_code == 400


def deep(levels: int) -> list[dict]:
    """A field in a field, and so on."""
    fields: list[dict] = [{"name": "a", "type": "number"}]
    for _ in range(levels):
        fields = [{"name": "a", "type": "object", "options": {"fields": fields}}]
    return fields


LARGE = {
    "many fields": [{"name": f"f{number}", "type": "number"} for number in range(501)],
    "many nested fields": [
        {"name": f"f{number}", "type": "object", "options": {"fields": deep(0) * 60}} for number in range(10)
    ],
    "deep fields": deep(100),
    "deep options": [
        {"name": "a", "type": "constant", "options": {"value": json.loads("[" * 300 + "]" * 300)}}
    ],
}


@pytest.mark.parametrize("path", ["change", "rows", "inspector", "explain", "tables", "download"])
@pytest.mark.parametrize("fields", LARGE.values(), ids=LARGE)
def test_a_draft_that_would_occupy_the_process_is_rejected(edith, path, fields):
    start = json.dumps({"name": "d", "fields": fields})
    answer = edith.submit(f"/builder/{path}", {"do": "add", "add_name": "b", "start": start}, headers=HTMX)
    assert answer.status_code == 422
    assert len(answer.data) < MOST_BYTES


@pytest.mark.parametrize("fields", LARGE.values(), ids=LARGE)
def test_json_of_a_draft_that_is_too_large_is_an_error_of_the_json(edith, saved, fields):
    page = of(edith, saved)
    answer = send(edith, "/builder/change", page.inputs, do="json", json=json.dumps({"fields": fields}))
    assert answer.headers["HX-Retarget"] == "#json-state"
    assert of(edith, saved).names == ["id", "n"]


@pytest.mark.parametrize("path", ["suggestions", "change"])
def test_a_new_field_with_a_name_of_a_megabyte_does_not_occupy_the_process(edith, path):
    form = {"do": "add", "start": "", "add_name": "x y " * 250_000}
    began = time.thread_time()
    answer = edith.submit(f"/builder/{path}", form, headers=HTMX)
    assert answer.status_code == 200
    assert time.thread_time() - began < 5  # it was minutes


def test_fields_that_have_their_errors_one_after_the_other_are_replaced_only_a_few_times():
    tried = 0

    def one_error(_body: dict) -> None:
        nonlocal tried
        tried += 1
        raise validation_error([Fault(f"fields[{tried}]", "row_too_large", "A row is too large.")])

    fields = [{"name": f"f{number}", "type": "number"} for number in range(500)]
    with pytest.raises(ApiError):
        builder.call_with_placeholders({"fields": fields}, "s", one_error, builder.DraftSample())
    assert 10 < tried < 50


def test_a_template_of_500_fields_is_a_draft_that_takes_no_more(edith):
    start = json.dumps({"name": "d", "fields": LARGE["many fields"][:500]})
    form = {"start": start, "add_name": "b"}
    assert edith.submit("/builder/change", {**form, "do": "set"}, headers=HTMX).status_code == 200
    assert edith.submit("/builder/change", {**form, "do": "add"}, headers=HTMX).status_code == 422


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
    answer = send(edith, f"/templates/{saved['id']}/generate", form, {})
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
    assert links == ["#x-count", "#x-seed", "#x-locale", "#csv.delimiter", "#sql.rows_per_statement"]


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
    assert all(item.text_content().strip() for item in found.xpath("//li"))
    dialog = lxml_html.fromstring(edith.get(f"/builder/{saved['id']}/export").text)
    assert all(dialog.get_element_by_id(item) is not None for item in found.xpath("//li/@data-for"))


def test_a_rejected_export_in_the_background_leaves_the_dialog_and_marks_its_fields(edith, saved):
    answer = send(edith, f"/templates/{saved['id']}/exports", {"format": "csv", "count": "0"})
    assert (answer.status_code, answer.headers["HX-Retarget"], answer.headers["HX-Reswap"]) == (
        422, "#estimate", "innerHTML",
    )  # fmt: skip
    assert 'data-for="x-count"' in answer.text
    assert "<form" not in answer.text


# Permissions


def test_a_viewer_reads_rows_but_is_offered_no_change(browser, cast, saved):
    page = of(browser(cast.victor), saved)
    assert page.answer.status_code == 200
    assert 'id="save"' not in page.text
    assert 'id="download"' not in page.text
    assert len(page.column("n")) == saved["quantity"] < limits.BUILDER_ROWS
    assert "disabled" in (page.open("n") and page.inspector)
    assert page.save().status_code == 403
    assert send(page.browser, "/builder/change", page.inputs, do="add").status_code == 403


def test_a_stranger_finds_nothing(browser, cast, saved):
    mallory = browser(cast.mallory)
    assert mallory.get(f"/templates/{saved['id']}").status_code == 404
    for path in ("change", "rows", "inspector", "explain", "download"):
        assert mallory.submit(f"/builder/{path}", {"template_id": saved["id"]}).status_code == 404

"""The pages of datasets, without a script: made, edited table by table, saved, compared, exported, deleted."""

from __future__ import annotations

import re

import pytest

from tests.forms.in_html import controls
from tests.views.speak import make
from webapp import limits
from webapp.datasets.models import Dataset
from webapp.extensions import db


@pytest.fixture
def person(browser, cast):
    return browser(cast.edith)


KEY = {"name": "id", "type": "row_number"}


@pytest.fixture
def two(edith):
    """Buyers, and what they bought."""
    buyers = make(edith, name="Buyers", quantity=7, fields=[KEY, {"name": "who", "type": "name"}])["id"]
    options = {"template_id": buyers, "field": "id", "cardinality": {"min": 1, "max": 9}}
    bought = make(
        edith, name="Bought", fields=[KEY, {"name": "buyer_id", "type": "reference", "options": options}]
    )
    return [buyers, bought["id"]]


@pytest.fixture
def shop(edith, two):
    tables = [{"template_id": two[0], "count": 20}, {"template_id": two[1]}]
    body = {"name": "Shop", "templates": tables, "seed": "s", "anchor": "2026-01-01T00:00:00Z"}
    return edith.post("/datasets", json=body).json


def form(ids, **more):
    given = {"name": "Shop", "seed": "s", "description": "", "anchor": ""}
    for at, one in enumerate(ids):
        given |= {
            f"templates[{at}].template_id": one,
            f"templates[{at}].count": "",
            f"templates[{at}].name": "",
        }
    return {**given, **more}


def held(answer) -> dict[str, str]:
    """What the form of a page holds."""
    return controls(answer.text, "dataset").to_dict()


def tables_of(answer) -> list[str]:
    found = held(answer)
    return [found[name] for name in sorted(found) if name.endswith(".template_id")]


def test_a_dataset_is_created_with_a_form(person, edith, two):
    page = person.get("/datasets/new")
    assert page.status_code == 200
    assert "Add the templates that belong together" in page.text
    added = person.submit("/datasets/new", {"name": "Shop", "do": "add", "add": two[1]})
    assert tables_of(added) == [two[1]]
    assert edith.get("/datasets").json["total"] == 0
    answer = person.submit("/datasets/new", form(two, **{"templates[0].count": "20"}))
    made = edith.get("/datasets").json["items"][0]
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/datasets/{made['id']}")
    told = [(one["template_id"], one["count"], one["name"]) for one in made["templates"]]
    assert (made["name"], made["anchor"], told) == ("Shop", None, [(two[0], 20, None), (two[1], None, None)])


def test_tables_are_moved_and_taken_out_before_anything_is_saved(person, edith, two, shop):
    path = f"/datasets/{shop['id']}/edit"
    assert tables_of(person.submit(path, form(two, do="down:0"))) == two[::-1]
    assert tables_of(person.submit(path, form(two, do="up:1"))) == two[::-1]
    assert tables_of(person.submit(path, form(two, do="up:0"))) == two
    assert tables_of(person.submit(path, form(two, do="remove:0"))) == [two[1]]
    assert tables_of(person.submit(path, form(two, do="remove:77"))) == two
    assert edith.get(f"/datasets/{shop['id']}").json == shop


def test_a_page_shows_tables_rows_and_relations(person, shop, two):
    text = person.get(f"/datasets/{shop['id']}").text
    assert '<svg width="' in text
    assert f'<a href="/templates/{two[0]}"><rect class="box"' in text
    assert ">20 rows</text>" in text
    assert "1 : 1..9" in text
    assert "<li>Bought.buyer_id refers to Buyers.id, 1 : 1..9</li>" in text
    assert text.count('<tr><th scope="row">') == 6
    assert "curl -sS" in text
    assert f"/datasets/{shop['id']}/exports" in text
    assert 'style="' not in text


def test_a_script_gets_only_the_part_that_changes(person, shop, two):
    answer = person.submit(
        f"/datasets/{shop['id']}/edit", form(two, do="draw"), headers={"HX-Request": "true"}
    )
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert "1 : 1..9" in answer.text


def test_saving_makes_a_version_and_keeps_what_was_not_touched(person, edith, two, shop):
    path = f"/datasets/{shop['id']}"
    answer = person.submit(f"{path}/edit", {**held(person.get(path)), "name": "Renamed", "do": "save"})
    assert (answer.status_code, answer.headers["Location"]) == (303, path)
    now = edith.get(path).json
    assert now == {**shop, "name": "Renamed", "version": 2, "updated_at": now["updated_at"]}
    assert "Saved as version 2" in person.get(path).text


def test_a_save_over_a_newer_version_asks_first(person, edith, two, shop):
    path = f"/datasets/{shop['id']}"
    edith.patch(path, json={"seed": "other"})
    answer = person.submit(f"{path}/edit", form(two, version="1", do="save"))
    assert answer.status_code == 412
    assert "Version 2 was saved while you edited version 1" in answer.text
    assert edith.get(path).json["version"] == 2
    over = person.submit(f"{path}/edit", form(two, version="1", do="save-over:2"))
    assert (over.status_code, edith.get(path).json["version"]) == (303, 3)


def test_errors_are_shown_and_the_input_is_kept(person, edith, two, shop):
    given = form(two, version="1", **{"templates[1].count": "0", "anchor": "soon", "seed": "typed"})
    answer = person.submit(f"/datasets/{shop['id']}/edit", given)
    assert answer.status_code == 422
    assert "<b>templates[1].count</b>" in answer.text
    assert "<b>anchor</b>" in answer.text
    assert held(answer)["seed"] == "typed"
    assert person.submit("/datasets/new", form([], name="Empty")).status_code == 422
    assert edith.get("/datasets").json["total"] == 1


def test_a_preview_that_fails_does_not_take_the_page_along(person, edith, shop, two):
    edith.delete(f"/templates/{two[1]}")
    text = person.get(f"/datasets/{shop['id']}").text
    assert "deleted template" in text
    assert "Buyers" in text
    narrow = [{"name": "bit", "type": "enum", "options": {"values": [0, 1]}, "unique": True}]
    wrong = make(edith, name="Narrow", fields=narrow, quantity=2)["id"]
    answer = person.submit(
        f"/datasets/{shop['id']}/edit", form([wrong], do="draw", **{"templates[0].count": "9"})
    )
    assert answer.status_code == 200
    assert "Narrow: fields[0].unique" in answer.text


def test_deleting_can_be_undone_from_the_next_page_and_from_the_trash(person, edith, shop):
    path = f"/datasets/{shop['id']}"
    answer = person.submit(f"{path}/edit", {"do": "delete", "name": "Shop"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/datasets")
    listed = person.get("/datasets").text
    assert "Dataset Shop deleted" in listed
    assert f'action="{path}/restore"' in listed
    assert f'action="{path}/restore"' in person.get("/trash").text
    assert person.submit(f"{path}/restore").status_code == 303
    assert edith.get(path).status_code == 200
    person.submit(path, method="DELETE")
    assert edith.get(path).status_code == 404


def test_versions_are_compared_and_restored(person, edith, two, shop):
    path = f"/datasets/{shop['id']}"
    edith.patch(path, json={"seed": "new", "templates": [{"template_id": two[0], "count": 9}]})
    text = person.get(path).text
    assert f'action="{path}/versions/1/restore"' in text
    shown = person.get(f"{path}@v1/diff").text
    assert "<b>Buyers</b> rows" in shown
    assert "<b>Bought</b> removed" in shown
    part = person.get(f"{path}@v1/diff", headers={"HX-Request": "true"}).text
    assert "<html" not in part
    assert "removed" in part
    person.submit(f"{path}/versions/1/restore")
    assert edith.get(path).json["seed"] == "s"


def test_an_export_is_requested_by_the_dialogs_form_and_shown(person, edith, shop):
    given = {
        "format": "sql",
        "seed": "s",
        "sql.dialect": "postgresql",
        "sql.create_table": "true",
        "csv.delimiter": ",",
    }
    answer = person.submit(f"/datasets/{shop['id']}/exports", given)
    assert answer.status_code == 303
    export = edith.get("/exports").json["items"][0]
    assert (export["format"], export["dataset_id"], export["seed"]) == ("sql", shop["id"], "s")
    text = person.get(answer.headers["Location"]).text
    assert f'<a href="/datasets/{shop["id"]}">Shop</a>, version 1' in text
    assert f"/datasets/{shop['id']}/exports" in text
    assert "Shop" in person.get("/activity?kind=export").text


def test_newer_template_versions_are_reported_and_applied(person, edith, two, shop):
    path = f"/datasets/{shop['id']}"
    assert "Use newer versions" not in person.get(path).text
    edith.patch(f"/templates/{two[0]}", json={"quantity": 8})
    assert "2 is newer" in person.get(path).text
    assert person.submit(f"{path}/refresh-references", form(two)).status_code == 303
    assert edith.get(path).json["templates"][0]["version"] == 2


def test_a_viewer_reads_and_is_offered_no_change(browser, cast, shop):
    victor = browser(cast.victor)
    text = victor.get(f"/datasets/{shop['id']}").text
    assert "1 : 1..9" in text
    assert 'value="save" id="save"' not in text
    assert 'data-open="export"' not in text
    assert "New dataset" not in victor.get("/datasets").text


def test_a_list_has_an_empty_state_and_a_search(person, shop, app):
    assert "Shop" in person.get("/datasets?q=sho").text
    assert "No dataset is called that" in person.get("/datasets?q=zebra").text
    with app.app_context():
        for one in db.session.scalars(db.select(Dataset)):
            db.session.delete(one)
        db.session.commit()
    text = person.get("/datasets").text
    assert "No datasets yet" in text
    assert 'href="/datasets/new"' in text


def test_markup_in_names_stays_text(person, edith, two):
    evil = "<script>alert(1)</script>'\""
    tables = [{"template_id": two[0], "name": evil}]
    made = edith.post(
        "/datasets", json={"name": evil, "description": evil, "templates": tables, "seed": evil}
    ).json
    for path in (f"/datasets/{made['id']}", "/datasets"):
        assert evil not in person.get(path).text


def test_fifty_tables_make_a_page(person, edith):
    ids = [make(edith, name=f"T{n}", fields=[KEY])["id"] for n in range(50)]
    made = edith.post(
        "/datasets", json={"name": "Many", "templates": [{"template_id": one} for one in ids]}
    ).json
    assert person.get(f"/datasets/{made['id']}").text.count('<rect class="box"') == 50


def test_of_many_templates_those_of_a_name_are_offered(person, edith, monkeypatch):
    monkeypatch.setattr(limits, "DATASET_CHOICES", 2)
    names = {make(edith, name=f"Table {n}")["id"]: f"Table {n}" for n in range(4)}
    page = person.get("/datasets/new").text
    assert len(re.findall(r'<option value="tpl_', page)) == 2
    assert 'name="find"' in page
    wanted = list(names)[3]
    found = person.submit("/datasets/new", {"name": "Shop", "do": "draw", "find": "table 3"})
    assert re.findall(r'<option value="(tpl_\w+)"', found.text) == [wanted]
    none = person.submit("/datasets/new", {"name": "Shop", "do": "draw", "find": "50%"})
    assert "No other template has this in its name." in none.text
    assert 'name="find"' in none.text

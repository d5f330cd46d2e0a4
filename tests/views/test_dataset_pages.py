"""The pages of datasets without JavaScript: created, edited, undone, compared, exported, deleted."""

from __future__ import annotations

import re

import pytest

from tests.forms.in_html import controls
from tests.views.speak import make
from webapp import limits
from webapp.datasets.models import Dataset
from webapp.extensions import db

KEY = {"name": "id", "type": "row_number"}
HTMX = {"HX-Request": "true"}


@pytest.fixture
def person(browser, cast):
    return browser(cast.edith)


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


@pytest.fixture
def path(shop):
    return f"/datasets/{shop['id']}"


@pytest.fixture
def change(person, path):
    """Send a change as the form of the page does, and return the response."""

    def send(**given):
        headers = given.pop("headers", {})
        return person.submit(
            f"{path}/edit", {key.replace("__", ":"): value for key, value in given.items()}, headers=headers
        )

    return send


def fields_of(edith, template_id):
    return {field["name"]: field for field in edith.get(f"/templates/{template_id}").json["fields"]}


def counts_of(edith, path):
    return [template["count"] for template in edith.get(path).json["templates"]]


# --- Creating ----------------------------------------------------------------------------------------------------


def test_a_dataset_is_created_with_the_templates_that_its_tables_reference(person, edith, two):
    page = person.get("/datasets/new")
    assert page.status_code == 200
    assert "Buyers" in page.text
    answer = person.submit("/datasets/new", {"name": " Shop ", "add": two[1], "parents": "1"})
    result = edith.get("/datasets").json["items"][0]
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/datasets/{result['id']}")
    assert (result["name"], [template["template_id"] for template in result["templates"]]) == ("Shop", two)


def test_a_new_dataset_needs_a_name_and_a_table_and_keeps_what_was_chosen(person, edith, two):
    answer = person.submit("/datasets/new", {"name": "", "add": two[0]})
    assert answer.status_code == 422
    assert "Enter a name." in answer.text
    assert re.search(rf'value="{two[0]}" checked', answer.text)
    assert "Choose at least one template." in person.submit("/datasets/new", {"name": "Shop"}).text
    assert edith.get("/datasets").json["total"] == 0


def test_templates_are_found_by_name_and_chosen_ones_stay(person, edith, monkeypatch):
    monkeypatch.setattr(limits, "DATASET_CHOICES", 2)
    ids = {f"Table {n}": make(edith, name=f"Table {n}")["id"] for n in range(4)}
    page = person.get("/datasets/new").text
    assert len(re.findall(r'name="add" value="tpl_', page)) == 2
    assert "Search by name" in page
    found = person.submit(
        "/datasets/new", {"name": "Shop", "do": "find", "find": "table 3", "add": ids["Table 0"]}
    )
    assert re.findall(r'name="add" value="(tpl_\w+)"', found.text) == [ids["Table 0"], ids["Table 3"]]
    assert "No template matches" in person.submit("/datasets/new", {"do": "find", "find": "50%"}).text


# --- What the page shows -----------------------------------------------------------------------------------------


def test_a_page_shows_tables_rows_relations_and_the_load_order(person, path, two):
    text = person.get(path).text
    assert "2 tables</b>, 120 rows" in text
    assert re.search(r'order: <span class="muted">Buyers, Bought</span>', text)
    assert re.search(rf'name="count:{two[0]}"[^>]* value="20"', text)
    assert re.search(rf'id="n-{two[1]}">100<', text)
    assert "rows, from Buyers" in text
    assert 'aria-label="Bought.buyer_id: 1 : 1..9 per row of Buyers. Edit"' in text
    assert 'style="' not in text


def test_row_counts_on_the_page_are_those_of_the_engine(person, edith, two):
    three = make(
        edith,
        name="Lines",
        fields=[
            KEY,
            _child("bought_id", two[1], {"min": 0, "max": 4, "distribution": "poisson", "mean": "1.5"}),
        ],
    )["id"]
    free = make(edith, name="Notes", quantity=33, fields=[KEY, _child("bought_id", two[1])])["id"]
    for counts in ([None, None, None, None], [13, None, None, 5], [1234, None, 2000, None]):
        tables = [
            {"template_id": item, "count": count}
            for item, count in zip([*two, three, free], counts, strict=True)
        ]
        created = edith.post("/datasets", json={"name": "Counts", "templates": tables}).json
        result = edith.post(f"/datasets/{created['id']}/preview", json={}).json["tables"]
        text = person.get(f"/datasets/{created['id']}?view=table").text
        for table in result:
            shown = re.search(
                rf'name="count:{table["template_id"]}"[^>]* value="([\d,]*)" placeholder="([\d,]+)"', text
            )
            assert (shown[1] or shown[2]).replace(",", "") == str(table["count"])


def _child(name, template_id, cardinality=None):
    return {
        "name": name,
        "type": "reference",
        "options": {"template_id": template_id, **({"cardinality": cardinality} if cardinality else {})},
    }


def test_a_table_opens_with_ten_rows_and_its_relations(person, path, two):
    text = person.get(f"{path}?table={two[1]}").text
    assert text.count('<tr><th scope="row">') == 10
    assert re.search(r'buyer_id <a class="tofk"[^>]*>.*Buyers</a>', text)
    assert "buyer_id → Buyers" in text
    part = person.get(f"{path}?table={two[1]}", headers={**HTMX, "HX-Target": "drawer"}).text
    assert "<html" not in part
    assert part.count('<tr><th scope="row">') == 10
    assert 'id="canvas"' not in part


def test_a_relation_opens_with_its_cardinality(person, path, two):
    text = person.get(f"{path}?table={two[1]}&relation=buyer_id").text
    assert re.search(r'value="range" checked', text)
    assert re.search(r'name="relation-most"[^>]* value="9"', text)
    assert "Average 5 per row of Buyers" in text


def test_an_unknown_table_or_relation_shows_the_page_without_a_drawer(person, path):
    for address in ("?table=tpl_none", "?table=x&relation=y", "?view=nothing&page=99&around=z"):
        answer = person.get(f"{path}{address}")
        assert answer.status_code == 200
        assert "dsbody" not in answer.text


def test_a_preview_that_fails_does_not_take_the_page_along(person, edith, path, two):
    edith.delete(f"/templates/{two[1]}")
    text = person.get(path).text
    assert "deleted template" in text
    assert "Buyers" in text
    assert "Restore it, or remove the table" in person.get(f"{path}?table={two[1]}").text
    narrow = [{"name": "bit", "type": "enum", "options": {"values": [0, 1]}, "unique": True}]
    wrong = make(edith, name="Narrow", fields=narrow, quantity=2)["id"]
    created = edith.post(
        "/datasets", json={"name": "N", "templates": [{"template_id": wrong, "count": 9}]}
    ).json
    answer = person.get(f"/datasets/{created['id']}?table={wrong}")
    assert answer.status_code == 200
    assert "Narrow: fields[0].unique" in answer.text


def test_markup_in_names_stays_text(person, edith, two):
    evil = "<script>alert(1)</script>'\""
    tables = [{"template_id": two[0], "name": evil}]
    created = edith.post(
        "/datasets", json={"name": evil, "description": evil, "templates": tables, "seed": evil}
    ).json
    for address in (
        f"/datasets/{created['id']}",
        f"/datasets/{created['id']}?table={two[0]}&q={evil}",
        "/datasets",
    ):
        assert evil not in person.get(address).text


def test_of_many_tables_some_are_shown_and_the_others_are_found(person, edith, monkeypatch):
    monkeypatch.setattr(limits, "DATASET_CARDS", 4)
    monkeypatch.setattr(limits, "DATASET_LINES", 5)
    parent = make(edith, name="Parent", fields=[KEY])["id"]
    ids = [parent] + [make(edith, name=f"T{n}", fields=[KEY, _child("p", parent)])["id"] for n in range(11)]
    created = edith.post(
        "/datasets", json={"name": "Many", "templates": [{"template_id": item} for item in ids]}
    ).json
    path = f"/datasets/{created['id']}"

    def cards(address):
        return re.findall(r'<article class="tcard[^>]* data-table="(\w+)"', person.get(path + address).text)

    assert len(cards("")) == 4
    assert set(cards("?page=1") + cards("?page=2") + cards("?page=3")) == set(ids)
    assert set(cards("?q=t10")) == {ids[11], parent}
    assert cards("?q=zebra") == []
    assert set(cards(f"?around={ids[5]}")) == {ids[5], parent}
    around = cards(f"?around={parent}")
    assert (len(around), parent in around) == (4, True)
    lines = re.findall(r'<tr id="t-(\w+)"', person.get(f"{path}?view=table&page=3").text)
    assert len(lines) == 2


# --- Values ------------------------------------------------------------------------------------------------------


def test_a_row_count_is_saved_by_itself_and_only_texts_are_replaced(change, edith, path, two):
    answer = change(do="set", version="1", **{f"count__{two[0]}": "1,000"}, headers=HTMX)
    assert answer.status_code == 200
    assert counts_of(edith, path) == [1000, None]
    assert re.search(rf'id="n-{two[1]}" hx-swap-oob="true">5,000<', answer.text)
    assert "6,000 rows" in answer.text
    assert "<input class" not in answer.text


def test_an_empty_count_follows_the_template_or_the_parents(change, edith, path, two):
    change(**{f"count__{two[1]}": "50"})
    assert counts_of(edith, path) == [20, 50]
    change(**{f"count__{two[0]}": "", f"count__{two[1]}": " "})
    assert counts_of(edith, path) == [None, None]


@pytest.mark.parametrize("text", ["0", "-3", "many", "1e3", "99999999999999", "٣"])
def test_an_invalid_count_is_reported_and_the_rest_is_saved(change, edith, path, two, text):
    answer = change(name="Renamed", **{f"count__{two[0]}": text}, headers=HTMX)
    assert answer.status_code == 422
    assert re.search(rf'id="e-count-{two[0]}"[^>]*>Enter a whole number', answer.text)
    data = edith.get(path).json
    assert (data["name"], data["templates"][0]["count"]) == ("Renamed", 20)


def test_without_javascript_the_page_shows_what_was_entered_with_its_error(change, two):
    answer = change(**{f"count__{two[0]}": "many"})
    assert answer.status_code == 422
    assert re.search(rf'name="count:{two[0]}"[^>]* value="many"[^>]* aria-invalid="true"', answer.text)


def test_settings_are_saved_and_errors_are_at_their_inputs(change, edith, path):
    change(seed="t", anchor="2027-02-03T04:05:06Z", description="For the load test")
    data = edith.get(path).json
    assert (data["seed"], data["anchor"], data["description"], data["version"]) == (
        "t",
        "2027-02-03T04:05:06Z",
        "For the load test",
        2,
    )
    answer = change(seed="u", anchor="soon", headers=HTMX)
    assert re.search(r'id="e-anchor"[^>]*>[^<]+<', answer.text)
    assert edith.get(path).json["seed"] == "u"
    change(anchor="", seed="")
    assert (edith.get(path).json["anchor"], edith.get(path).json["seed"]) == (None, "u")


def test_nothing_is_saved_if_nothing_changed(change, edith, path, two, shop):
    assert change(name="Shop", do="set", **{f"count__{two[0]}": "20", f"as__{two[1]}": ""}).status_code == 303
    assert edith.get(path).json == shop


def test_changes_of_another_person_are_kept_and_shown(change, edith, path, two):
    edith.patch(
        path,
        json={"templates": [{"template_id": two[0], "count": 20, "name": "people"}, {"template_id": two[1]}]},
    )
    answer = change(version="1", **{f"count__{two[0]}": "30"}, headers=HTMX)
    assert "Another user changed this dataset" in answer.text
    assert 'id="workspace"' in answer.text
    assert edith.get(path).json["templates"][0] == {
        "template_id": two[0],
        "count": 30,
        "name": "people",
        "version": 1,
    }


# --- Tables ------------------------------------------------------------------------------------------------------


def test_tables_are_added_moved_and_removed(change, edith, path, two):
    more = make(edith, name="More", fields=[KEY])["id"]
    change(do="add", add=more)
    assert [template["template_id"] for template in edith.get(path).json["templates"]] == [*two, more]
    change(do=f"up:{more}")
    change(do=f"down:{two[0]}")
    assert [template["template_id"] for template in edith.get(path).json["templates"]] == [
        more,
        two[0],
        two[1],
    ]
    assert "Table More removed" in change(do=f"remove:{more}", headers=HTMX).text
    assert [template["template_id"] for template in edith.get(path).json["templates"]] == two
    version = edith.get(path).json["version"]
    for verb in ("up:tpl_none", f"up:{two[0]}", "remove:tpl_none", f"add:{two[0]}", "nonsense"):
        change(do=verb)
    assert edith.get(path).json["version"] == version


def test_the_last_table_stays(change, edith, path, two):
    change(do=f"remove:{two[1]}")
    answer = change(do=f"remove:{two[0]}", headers=HTMX)
    assert answer.status_code == 422
    assert "at least one table" in answer.text
    assert len(edith.get(path).json["templates"]) == 1


def test_templates_that_can_be_added_are_listed(person, edith, path, two):
    other = make(edith, name="Other", fields=[KEY])["id"]
    text = person.get(f"{path}/choices").text
    assert re.findall(r'name="add" value="(tpl_\w+)"', text) == [other]
    assert "No other template matches" in person.get(f"{path}/choices?find=zebra").text


# --- Relations ---------------------------------------------------------------------------------------------------


def relation(two, **more):
    return {"table": two[1], "relation": "buyer_id", "do": "children", **more}


def test_a_cardinality_is_changed_on_its_line_and_counts_follow(change, edith, path, two):
    change(**relation(two, **{"relation-kind": "range", "relation-least": "2", "relation-most": "2"}))
    assert fields_of(edith, two[1])["buyer_id"]["options"]["cardinality"] == {"min": 2, "max": 2}
    assert edith.get(path).json["templates"][1]["version"] == 2
    assert [table["count"] for table in edith.post(f"{path}/preview", json={}).json["tables"]] == [20, 40]


def test_a_cardinality_becomes_any_number_and_the_row_count_stays(change, edith, path, two):
    change(**relation(two, **{"relation-kind": "any"}))
    assert "cardinality" not in {
        k: v for k, v in fields_of(edith, two[1])["buyer_id"]["options"].items() if v is not None
    }
    assert counts_of(edith, path) == [20, 100]
    change(**relation(two, **{"relation-kind": "range", "relation-least": "0", "relation-most": "3"}))
    assert counts_of(edith, path) == [20, None]


def test_at_most_one_row_per_parent(change, edith, two):
    change(**relation(two, **{"relation-kind": "one"}))
    assert fields_of(edith, two[1])["buyer_id"]["unique"] is True
    change(**relation(two, **{"relation-kind": "any"}))
    assert not fields_of(edith, two[1])["buyer_id"]["unique"]


def test_a_distribution_with_an_average(change, edith, two):
    value = {
        "relation-kind": "range",
        "relation-least": "0",
        "relation-most": "9",
        "relation-distribution": "poisson",
    }
    answer = change(**relation(two, **value), headers=HTMX)
    assert answer.status_code == 422
    assert answer.headers["HX-Retarget"] == "#drawer"
    assert "Enter the average" in answer.text
    change(**relation(two, **value, **{"relation-mean": "2.2"}))
    stored = fields_of(edith, two[1])["buyer_id"]["options"]["cardinality"]
    assert (stored["distribution"], float(stored["mean"])) == ("poisson", 2.2)


@pytest.mark.parametrize(
    ("least", "most"), [("", "3"), ("5", "2"), ("0", "0"), ("a", "b"), ("-1", "2"), ("1", "99999999")]
)
def test_an_invalid_cardinality_is_reported_and_keeps_what_was_typed(
    change, edith, path, two, shop, least, most
):
    answer = change(
        **relation(two, **{"relation-kind": "range", "relation-least": least, "relation-most": most}),
        headers=HTMX,
    )
    assert answer.status_code == 422
    assert re.search(r'id="e-relation-(least|most)" role="alert">[^<]+<', answer.text)
    assert re.search(rf'name="relation-most"[^>]* value="{most}"', answer.text)
    assert edith.get(path).json == shop


def test_a_relation_is_added_and_removed_from_the_diagram(change, edith, path, two):
    more = make(edith, name="Reviews", fields=[KEY])["id"]
    change(do="add", add=more)
    value = {"table": more, "relation-child": more, "relation-parent": two[0], "relation-kind": "any"}
    answer = change(do=f"relate:{more}", **value, headers=HTMX)
    assert "Reviews.buyer_id: 1 : n per row of Buyers" in answer.text
    assert fields_of(edith, more)["buyer_id"]["options"]["template_id"] == two[0]
    change(do=f"relate:{more}", **value)
    assert {"buyer_id", "buyer_id_2"} <= fields_of(edith, more).keys()
    change(do="unrelate", table=more, relation="buyer_id_2")
    assert "buyer_id_2" not in fields_of(edith, more)


def test_a_parent_is_also_named_by_its_name_and_an_unknown_one_is_reported(change, edith, two):
    value = {"table": two[0], "relation-child": two[0], "relation-kind": "any", "do": f"relate:{two[0]}"}
    result = change(**value, **{"relation-parent": "buyers", "relation-name": "boss_id"}, headers=HTMX)
    assert result.status_code == 200, re.findall(r'role="alert">([^<]+)<', result.text)
    assert fields_of(edith, two[0])["boss_id"]["options"]["template_id"] == "self"
    answer = change(**value, **{"relation-parent": "nobody"}, headers=HTMX)
    assert answer.status_code == 422
    assert "Choose two tables of this dataset." in answer.text


# --- Undo --------------------------------------------------------------------------------------------------------


def test_changes_are_undone_and_redone_in_order(change, edith, path, two):
    change(**{f"count__{two[0]}": "30"})
    change(do=f"remove:{two[1]}")
    change(name="Renamed")
    states = []
    for _ in range(4):
        change(do="undo")
        data = edith.get(path).json
        states.append((data["name"], len(data["templates"]), data["templates"][0]["count"]))
    assert states == [("Shop", 1, 30), ("Shop", 2, 30), ("Shop", 2, 20), ("Shop", 2, 20)]
    states = []
    for _ in range(4):
        change(do="redo")
        data = edith.get(path).json
        states.append((data["name"], len(data["templates"]), data["templates"][0]["count"]))
    assert states == [("Shop", 2, 30), ("Shop", 1, 30), ("Renamed", 1, 30), ("Renamed", 1, 30)]


def test_a_change_after_undo_ends_redo(person, change, path, two):
    change(**{f"count__{two[0]}": "30"})
    change(do="undo")
    assert re.search(r'id="redo" aria-label="Redo: Rows"', person.get(path).text)
    change(**{f"count__{two[0]}": "40"})
    text = person.get(path).text
    assert re.search(r'id="redo" disabled', text)
    assert re.search(r'id="undo" aria-label="Undo: Rows"', text)


def test_undoing_a_cardinality_restores_the_template(change, edith, path, two):
    change(**relation(two, **{"relation-kind": "range", "relation-least": "2", "relation-most": "2"}))
    change(do="undo")
    assert fields_of(edith, two[1])["buyer_id"]["options"]["cardinality"]["max"] == 9
    pinned = edith.get(path).json["templates"][1]["version"]
    assert pinned == edith.get(f"/templates/{two[1]}").json["version"]
    change(**{f"count__{two[0]}": "10"})
    assert fields_of(edith, two[1])["buyer_id"]["options"]["cardinality"]["max"] == 9
    change(do="undo")
    change(do="redo")
    assert counts_of(edith, path)[0] == 10


def test_undo_does_not_take_back_what_somebody_changed_in_the_template(change, edith, path, two):
    change(**relation(two, **{"relation-kind": "range", "relation-least": "2", "relation-most": "2"}))
    fields = edith.get(f"/templates/{two[1]}").json["fields"]
    edith.patch(f"/templates/{two[1]}", json={"fields": [*fields, {"name": "note", "type": "word"}]})
    change(do="undo")
    assert "note" in fields_of(edith, two[1])
    assert edith.get(path).json["templates"][1]["version"] == 1


def test_a_change_by_the_api_is_undone_too(change, edith, path):
    edith.patch(path, json={"seed": "other"})
    change(do="undo")
    assert edith.get(path).json["seed"] == "s"


def test_a_new_dataset_has_nothing_to_undo(person, change, edith, path, shop):
    assert re.search(r'id="undo" disabled', person.get(path).text)
    change(do="undo")
    change(do="redo")
    assert edith.get(path).json == shop


# --- Versions, deletion, lists -----------------------------------------------------------------------------------


def test_versions_are_compared_and_restored(person, edith, two, path):
    edith.patch(path, json={"seed": "new", "templates": [{"template_id": two[0], "count": 9}]})
    text = person.get(f"{path}?view=versions").text
    assert f'formaction="{path}/versions/1/restore"' in text
    shown = person.get(f"{path}@v1/diff").text
    assert "<b>Buyers</b> rows" in shown
    assert "<b>Bought</b> removed" in shown
    part = person.get(f"{path}@v1/diff", headers=HTMX).text
    assert "<html" not in part
    person.submit(f"{path}/versions/1/restore")
    assert edith.get(path).json["seed"] == "s"


def test_newer_template_versions_are_reported_and_applied(person, edith, two, path):
    assert "Use newer versions" not in person.get(path).text
    edith.patch(f"/templates/{two[0]}", json={"quantity": 8})
    assert "2 is newer" in person.get(f"{path}?view=table").text
    assert "Use newer versions" in person.get(path).text
    assert person.submit(f"{path}/refresh-references").status_code == 303
    assert edith.get(path).json["templates"][0]["version"] == 2


def test_deleting_can_be_undone_from_the_next_page_and_from_the_trash(person, edith, path):
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


def test_the_api_is_shown(person, path):
    text = person.get(f"{path}?view=api").text
    assert "curl -sS" in text
    assert f"{path}/exports" in text


def test_a_viewer_reads_and_is_offered_no_change(browser, cast, path, two):
    victor = browser(cast.victor)
    for address in ("", "?view=table", f"?table={two[1]}", f"?table={two[1]}&relation=buyer_id"):
        text = victor.get(path + address).text
        assert 'id="primary"' not in text
        assert "Add table" not in text
        assert 'value="children"' not in text
    assert "1 : 1..9" in victor.get(path).text
    assert "New dataset" not in victor.get("/datasets").text
    assert victor.submit(f"{path}/edit", {"do": "set", "name": "Mine"}).status_code == 403


def test_a_list_has_an_empty_state_and_a_search(person, shop, app):
    assert "Shop" in person.get("/datasets?q=sho").text
    assert "No dataset is called that" in person.get("/datasets?q=zebra").text
    with app.app_context():
        for item in db.session.scalars(db.select(Dataset)):
            db.session.delete(item)
        db.session.commit()
    text = person.get("/datasets").text
    assert "No datasets yet" in text
    assert 'href="/datasets/new"' in text


# --- Destination -------------------------------------------------------------------------------------------------


def test_an_export_is_requested_by_the_form_of_the_destination_and_shown(person, edith, shop, path):
    form = controls(person.get(f"{path}/destination").text, "file-form").to_dict()
    answer = person.submit(f"{path}/exports", {**form, "format": "sql", "sql.create_table": "true"})
    assert answer.status_code == 303
    export = edith.get("/exports").json["items"][0]
    assert (export["format"], export["dataset_id"], export["seed"]) == ("sql", shop["id"], "s")
    assert f'<a href="{path}">Shop</a>, version 1' in person.get(answer.headers["Location"]).text
    assert '<span class="clip">SQL</span>' in person.get(path).text  # the destination that was used last
    assert '<span class="clip">Parquet</span>' in person.get(f"{path}?to=parquet").text

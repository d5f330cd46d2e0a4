"""An export shows its pinned versions, which produce the same bytes again after other changes."""

from __future__ import annotations

import pytest

from jobs import exports
from tests.views.speak import make
from webapp.extensions import db
from webapp.row_templates.services import compiled_plans

PARENT = [
    {"name": "id", "type": "row_number"},
    {"name": "name", "type": "name"},
    {"name": "since", "type": "date", "options": {"min": "-30d", "max": "now"}},
]
OTHER_PARENT = [{**PARENT[0], "percent_blank": 0}, {"name": "name", "type": "color_name"}, PARENT[2]]


def child_of(parent_id: str) -> list[dict]:
    def reads(name: str) -> dict:
        return {"name": name, "type": "reference", "options": {"template_id": parent_id, "field": name}}

    return [
        {"name": "n", "type": "row_number"},
        {**reads("id"), "name": "parent_id"},
        {**reads("name"), "name": "parent_name"},
        {**reads("since"), "name": "parent_since"},
        {"name": "sold", "type": "datetime", "options": {"min": "-7d", "max": "now"}},
        {"name": "paid", "type": "number", "options": {"min": 0, "max": 9, "decimals": 2}},
    ]


@pytest.fixture
def parent(edith):
    return make(edith, name="Parents", fields=PARENT, quantity=50)["id"]


@pytest.fixture
def child(edith, parent):
    return make(edith, name="Children", fields=child_of(parent), quantity=400)["id"]


@pytest.fixture
def exported(edith, app):
    """The finished export of a request, and its file."""

    def make_it(path: str, body: dict):
        answer = edith.post(f"{path}/exports", json=body)
        assert answer.status_code == 201, answer.json
        with app.app_context():
            exports.run(answer.json["id"])
            db.session.remove()
        export = edith.get(f"/exports/{answer.json['id']}").json
        assert (export["status"], export["error"]) == ("completed", None)
        return export, edith.get(f"/exports/{export['id']}/download")

    return make_it


ASKS = [
    {"seed": "s"},
    {"format": "csv", "csv": {"delimiter": ";"}},
    {"seed": "s", "now": "2031-05-06T07:08:09Z", "format": "sql", "sql": {"dialect": "mysql"}},
    {"seed": "ü %", "offset": 9, "count": 3, "overrides": {"n": 4}, "locale": "de_DE", "format": "ndjson"},
]


@pytest.mark.parametrize("ask", ASKS)
def test_an_export_is_reproducible_from_its_pins_after_every_template_has_changed(
    edith, parent, child, exported, ask
):
    export, file = exported(f"/templates/{child}", {**ask, "rows": {parent: 30}})
    shown = export["pins"]
    assert shown["references"] == [{"template_id": parent, "version": 1, "rows": 30}]
    assert (
        edith.patch(f"/templates/{parent}", json={"fields": OTHER_PARENT, "quantity": 70}).status_code == 200
    )

    again = edith.post(f"/templates/{child}/generate", json=export["request"])
    assert again.data == file.data

    edith.post(f"/templates/{child}/refresh-references")
    changed = [{**field} for field in child_of(parent)[:-1]]
    edith.patch(f"/templates/{child}", json={"fields": changed, "anchor": "2020-01-01T00:00:00Z"})
    assert edith.post(f"/templates/{child}/generate", json=export["request"]).data != file.data
    number = shown["template_version"]
    assert edith.post(f"/templates/{child}/versions/{number}/restore").status_code == 200
    compiled_plans.CACHE.__init__()  # as in a process that knows nothing of it
    again = edith.post(f"/templates/{child}/generate", json=export["request"])
    assert again.data == file.data
    once_more, copy = exported(f"/templates/{child}", export["request"])
    assert (once_more["sha256"], copy.data) == (export["sha256"], file.data)
    assert {**once_more["pins"], "template_version": number} == shown


def test_an_export_shows_the_pins_that_its_file_and_generate_tell_in_headers(edith, parent, child, exported):
    export, file = exported(f"/templates/{child}", {"seed": "s"})
    same = edith.post(f"/templates/{child}/generate", json={"seed": "s"})
    shown = export["pins"]
    (one,) = shown["references"]
    result = {
        "X-Seed": shown["seed"],
        "X-Now": shown["now"],
        "X-Template-Version": str(shown["template_version"]),
        "X-Vocabulary": shown["vocabulary"],
        "X-Engine": str(shown["engine"]),
        "X-References": f"{one['template_id']}@v{one['version']}; rows={one['rows']}",
    }
    assert {name: file.headers[name] for name in result} == result
    assert {name: same.headers[name] for name in result} == result
    assert (export["seed"], export["now"]) == (shown["seed"], shown["now"])
    assert (shown["dataset_version"], shown["tables"], shown["locale"]) == (None, [], None)


@pytest.mark.parametrize("format", ["csv", "sql"])
@pytest.mark.parametrize("more", [{}, {"seed": "mine", "now": "2031-05-06T07:08:09Z"}])
def test_a_dataset_export_is_reproducible_from_its_pins(edith, parent, child, exported, format, more):
    tables = [{"template_id": child, "count": 60}, {"template_id": parent, "count": 20, "name": "People"}]
    dataset = edith.post("/datasets", json={"name": "Shop", "templates": tables, "seed": "s"}).json
    export, file = exported(f"/datasets/{dataset['id']}", {"format": format, **more})
    shown = export["pins"]
    assert shown["dataset_version"] == 1
    assert [(table["name"], table["template_version"], table["rows"]) for table in shown["tables"]] == [
        ("People", 1, 20),
        ("Children", 1, 60),
    ]
    assert shown["tables"][1]["references"] == [{"template_id": parent, "version": 1, "rows": 20}]
    assert shown["vocabulary"] == file.headers["X-Vocabulary"]
    assert (shown["seed"], shown["now"]) == (more.get("seed", "s"), more.get("now"))

    edith.patch(f"/templates/{parent}", json={"fields": OTHER_PARENT})
    edith.patch(f"/datasets/{dataset['id']}", json={"templates": [{"template_id": parent, "count": 5}]})
    assert edith.post(f"/datasets/{dataset['id']}/versions/1/restore").status_code == 200
    once_more, copy = exported(f"/datasets/{dataset['id']}", export["request"])
    assert (once_more["sha256"], copy.data) == (export["sha256"], file.data)
    assert {**once_more["pins"], "dataset_version": 1} == shown


def test_an_anchor_is_every_related_templates_own_and_a_now_is_for_all(edith):
    """With the template's anchor the parents have theirs; a `now` of the request is everybody's."""
    parent = make(edith, name="P", fields=PARENT, quantity=5, anchor="2020-01-31T00:00:00Z")["id"]
    child = make(edith, fields=child_of(parent), anchor="2030-01-31T00:00:00Z")["id"]

    def dates(**more) -> tuple[set[str], set[str]]:
        rows = edith.post(f"/templates/{child}/generate", json={"seed": "s", "count": 50, **more}).json
        return {row["parent_since"][:4] for row in rows}, {row["sold"][:4] for row in rows}

    assert dates() == ({"2020"}, {"2030"})
    assert dates(now="2030-01-31T00:00:00Z") == ({"2020"}, {"2030"})
    assert dates(now="2041-01-31T00:00:00Z") == ({"2041"}, {"2041"})


def test_nearly_every_foreign_key_changes_with_the_number_of_parents(edith, parent, child):
    def keys(rows: int) -> list[int]:
        ask = {"seed": "s", "count": 400, "rows": {parent: rows}}
        answer = edith.post(f"/templates/{child}/generate", json=ask)
        assert answer.headers["X-References"] == f"{parent}@v1; rows={rows}"
        return [row["parent_id"] for row in answer.json]

    fewer, more = keys(1_000), keys(1_500)
    assert keys(1_000) == fewer
    assert sum(item == other for item, other in zip(fewer, more, strict=True)) < 40


def test_an_exports_page_shows_its_pins_and_the_request_that_reproduces_it(
    browser, cast, edith, parent, child
):
    export = edith.post(f"/templates/{child}/exports", json={"seed": "s", "rows": {parent: 30}}).json
    page = browser(cast.edith).get(f"/exports/{export['id']}").text
    for result in (export["pins"]["vocabulary"], export["now"], f"{parent}</a>, version 1, 30 rows"):
        assert result in page
    for name in ("rows", "now", "seed"):
        assert f"&#34;{name}&#34;" in page

"""What the builder offers to pick: templates, their fields, groups, functions; and what it says of them."""

from __future__ import annotations

import re

import orjson
import pytest

from tests.forms.in_html import controls
from tests.views.targets import connection, shop, sqlite_target  # noqa: F401
from tests.views.test_builder import HTMX, form_of, key_of, keys_of, press, send
from webapp import limits

CUSTOMERS = [{"name": "id", "type": "row_number"}, {"name": "name", "type": "name"}]


@pytest.fixture
def edith(browser, cast):
    return browser(cast.edith)


@pytest.fixture
def customers(api, cast):
    body = {"name": "Customers", "quantity": 1000, "fields": CUSTOMERS}
    return api(cast.edith).post("/templates", json=body).json["id"]


def child(api, cast, parent: str, **options) -> dict:
    reference = {"name": "customer_id", "type": "reference", "options": {"template_id": parent, **options}}
    fields = [reference, {"name": "n", "type": "number", "options": {"min": 1, "max": 9}}]
    return api(cast.edith).post("/templates", json={"name": "Orders", "fields": fields}).json


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


def test_a_relation_is_described_with_a_link_to_the_other_template(edith, api, cast, customers):
    page = edith.get(f"/templates/{child(api, cast, customers)['id']}").text
    assert "one of 1,000 rows of Customers" in plain(page)
    assert f'href="/templates/{customers}"' in page
    page = edith.get(f"/templates/{child(api, cast, customers, cardinality={'min': 1, 'max': 9})['id']}").text
    assert "1 to 9 rows for each of 1,000 Customers: 5,000 rows" in plain(page)


def test_a_closed_row_has_its_own_template_and_the_others_come_in_one_list(edith, api, cast, customers):
    saved = child(api, cast, customers)
    form = form_of(edith.get(f"/templates/{saved['id']}"))
    key = key_of(form, "customer_id")
    assert form[f"{key}.o.template_id"] == customers
    lists = send(edith, "/builder/rest", form).text
    assert 'id="l-template-parent"' in lists
    assert f'<option value="{customers}">Customers</option>' in lists
    assert '<option value="self">This template</option>' in lists
    assert saved["id"] not in lists
    assert re.search(rf'id="l-field-{customers}">.*<option value="name">', lists)


def test_another_template_shows_its_own_fields_and_drops_unknown_names(edith, api, cast, customers):
    other = (
        api(cast.edith)
        .post("/templates", json={"name": "Shops", "fields": [{"name": "code", "type": "uuid"}]})
        .json
    )
    form = form_of(edith.get(f"/templates/{child(api, cast, customers, field='name')['id']}"))
    key = key_of(form, "customer_id")
    form[f"{key}.o.template_id"] = other["id"]
    row = press(edith, "/builder/rows", form, f"again:{key}", **HTMX).text
    assert controls(row)[f"{key}.o.field"] == ""
    assert '<option value="code">' in row
    assert '<option value="name"' not in row


def test_children_by_cardinality_come_first_where_totals_are_picked(edith, api, cast, customers):
    lines = child(api, cast, customers, cardinality=2)
    form = form_of(edith.get(f"/templates/{customers}?open=nothing"))
    key = key_of(form, "name")
    row = press(edith, "/builder/rows", form, f"type:{key}:aggregate", **HTMX).text
    others = re.findall(r"<option value=\"(tpl_\w+)\">([^<]*)", row)
    assert others[0] == (lines["id"], "Orders")
    assert not [name for _, name in others[1:] if "no cardinality" not in name]


def test_an_empty_cardinality_is_not_sent_and_a_single_number_is_exact(edith, api, cast, customers):
    saved = child(api, cast, customers)
    form = form_of(edith.get(f"/templates/{saved['id']}"))
    key = key_of(form, "customer_id")
    press(edith, f"/templates/{saved['id']}/edit", form, "save")
    assert "cardinality" not in api(cast.edith).get(f"/templates/{saved['id']}").json["fields"][0]["options"]
    form["version"], form[f"{key}.o.cardinality.min"] = "2", "4"
    press(edith, f"/templates/{saved['id']}/edit", form, "save")
    kept = api(cast.edith).get(f"/templates/{saved['id']}").json["fields"][0]["options"]
    assert (kept["cardinality"]["min"], kept["cardinality"]["max"]) == (4, 4)


# Connections


def drawn(edith, options: dict, kind: str = "foreign_key") -> tuple[str, str, dict]:
    """The page of a new template with one field that asks a connection: its rows, its key and its form."""
    text = orjson.dumps({"fields": [{"name": "x", "type": kind, "options": options}]}).decode()
    html = send(edith, "/builder/from-json", {"json": text}).text
    form = controls(html)
    return html, keys_of(form)[0], form


def offered(html: str, name: str) -> list[str]:
    return re.findall(
        r'<option value="([^"]*)"', re.search(rf'<select name="{re.escape(name)}".*?</select>', html)[0]
    )


def test_a_connection_its_tables_and_their_columns_are_picked_one_after_the_other(edith, api, cast, shop):
    html, key, form = drawn(edith, {})
    assert offered(html, f"{key}.o.connection_id") == [""]  # the others come in one list that rows share
    assert ">connection first<" in html
    told = send(edith, "/builder/preview", form).text
    assert all(f"{name} is required." in told for name in ("Connection", "Table", "Column"))
    lists = send(edith, "/builder/rest", form).text
    assert f'<option value="{shop.connection_id}">Shop (SQLite)</option>' in lists

    form[f"{key}.o.connection_id"] = shop.connection_id  # its tables were never read, so the target is queried
    row = press(edith, "/builder/rows", form, f"again:{key}", **HTMX).text
    assert offered(row, f"{key}.o.table") == ["", "customers", "orders"]
    form = controls(row)
    form[f"{key}.o.table"] = "orders"
    row = press(edith, "/builder/rows", form, f"again:{key}", **HTMX).text
    assert offered(row, f"{key}.o.column") == ["", "id", "customer_id", "amount"]
    form = controls(row)
    form |= {f"{key}.o.column": "amount", f"{key}.o.table": "customers"}
    row = press(edith, "/builder/rows", form, f"again:{key}", **HTMX).text
    assert controls(row)[f"{key}.o.column"] == ""  # customers have no amount


def test_the_selection_is_kept_in_a_row_without_choices(edith, api, cast, shop):
    options = {"connection_id": shop.connection_id, "table": "orders", "column": "id"}
    api(cast.edith).get(f"/connections/{shop.connection_id}/metadata")
    fields = [{"name": "order_id", "type": "foreign_key", "options": options}]
    saved = api(cast.edith).post("/templates", json={"name": "Lines", "fields": fields}).json
    page = edith.get(f"/templates/{saved['id']}")
    form = form_of(page)
    key = key_of(form, "order_id")
    assert {name: form[f"{key}.o.{name}"] for name in options} == options
    assert ">Shop (SQLite)</option>" in page.text
    lists = send(edith, "/builder/rest", form).text
    columns = re.search(rf'<datalist id="l-column-{shop.connection_id}-orders">(.*?)</datalist>', lists)[1]
    assert re.findall(r'value="([^"]*)"', columns) == ["id", "customer_id", "amount"]
    assert press(edith, f"/templates/{saved['id']}/edit", form, "save").status_code == 303
    assert api(cast.edith).get(f"/templates/{saved['id']}").json["fields"][0]["options"] == {
        **saved["fields"][0]["options"], **options,
    }  # fmt: skip
    whole = edith.get(f"/templates/{saved['id']}?open={saved['fields'][0]['id']}").text
    assert offered(whole, f"{key}.o.table") == ["", "customers", "orders"]
    assert f'<span>Connection</span><select name="{key}.o.connection_id"' in whole


def test_only_connections_that_take_queries_are_offered_where_one_is_written(edith, app, cast, shop):
    other = connection(app, cast, "mongodb", {"host": "127.0.0.1", "database": "shop"}, name="Papers")
    assert other in send(edith, "/builder/rest", drawn(edith, {})[2]).text
    lists = send(edith, "/builder/rest", drawn(edith, {}, "db_response")[2]).text
    assert shop.connection_id in lists
    assert other not in lists


def test_a_connection_that_is_gone_or_does_not_answer_leaves_boxes_to_type_in(edith, app, cast):
    silent = connection(
        app, cast, "postgresql", {"host": "127.0.0.1", "port": 1, "database": "x", "username": "x"}
    )
    html, key, form = drawn(edith, {"connection_id": silent, "table": "t", "column": "c"})
    assert re.search(rf'<input name="{key}.o.table" value="t"', html)
    row = press(edith, "/builder/rows", form, f"again:{key}", **HTMX).text
    assert controls(row)[f"{key}.o.column"] == "c"
    html, key, _ = drawn(edith, {"connection_id": "con_gone", "table": "t", "column": "c"})
    assert "con_gone (not found)" in html
    assert re.search(rf'<input name="{key}.o.column" value="c"', html)


def test_of_many_tables_a_box_searches(edith, app, cast, monkeypatch):
    monkeypatch.setattr(limits, "PICKED_TABLES", 3)
    many = sqlite_target(app, cast, "".join(f"CREATE TABLE t{n} (a, b);" for n in range(30)))
    _, key, form = drawn(edith, {"connection_id": many.connection_id})
    row = press(edith, "/builder/rows", form, f"again:{key}", **HTMX).text
    assert f'list="{key}.o.table-l"' in row
    form = controls(row)
    form[f"{key}.o.table"] = "t2"
    found = press(edith, "/builder/tables", form, f"tables:{key}", **HTMX).text
    assert re.findall(r'value="([^"]*)"', found) == ["t2", "t20", "t21"]
    row = press(edith, "/builder/rows", form, f"again:{key}", **HTMX).text
    assert offered(row, f"{key}.o.column") == ["", "a", "b"]


def test_tables_of_connections_without_access_are_not_returned(browser, api, cast, shop):
    api(cast.edith).get(f"/connections/{shop.connection_id}/metadata")
    mallory = browser(cast.mallory)
    html, key, form = drawn(mallory, {"connection_id": shop.connection_id})
    told = press(mallory, "/builder/tables", form, f"tables:{key}", **HTMX).text
    row = press(mallory, "/builder/rows", form, f"again:{key}", **HTMX).text
    assert not re.search("customers|Shop", told + row + html)


def test_fields_of_one_group_have_one_chip_and_others_none(edith):
    html = edith.get("/templates/new?names=first_name,email,price,city,country").text
    chips = re.findall(r'class="badge g(\d)" title="([^"]*)">([^<]*)', html)
    assert chips == [("1", "first_name, email", "person")] * 2 + [("2", "city, country", "place")] * 2


def test_a_group_is_selected_from_those_of_its_kind_or_a_new_one(edith):
    form = form_of(edith.get("/templates/new?names=first_name,email,city"))
    row = press(edith, "/builder/rows", form, f"open:{key_of(form, 'email')}", **HTMX).text
    listed = re.search(r'<datalist id="[^"]*group-l">(.*?)</datalist>', row)[1]
    assert re.findall(r'value="([^"]*)"', listed) == ["person", "person_2"]


def test_words_of_uniqueness_survive_the_form(edith, api, cast):
    fields = [
        {"name": name, "type": "number", "options": {"min": 1, "max": 9}, "unique": "slot"}
        for name in ("a", "b")
    ]
    saved = api(cast.edith).post("/templates", json={"name": "Slots", "fields": fields}).json
    form = form_of(edith.get(f"/templates/{saved['id']}"))
    assert press(edith, f"/templates/{saved['id']}/edit", form, "save").status_code == 303
    kept = api(cast.edith).get(f"/templates/{saved['id']}").json["fields"]
    assert [field["unique"] for field in kept] == ["slot", "slot"]


def test_thirty_fields_are_a_small_page_and_the_rest_comes_by_itself(edith, api, cast, customers):
    kinds = [
        "uuid",
        "first_name",
        "email",
        "phone",
        "city",
        "country",
        "number",
        "datetime",
        "boolean",
        "reference",
    ]
    options = {"reference": {"template_id": customers, "field": "name"}, "number": {"min": 1, "max": 90}}
    fields = [
        {"name": f"{kind}_{n}", "type": kind, "options": options.get(kind, {})}
        for n in range(3)
        for kind in kinds
    ]
    saved = api(cast.edith).post("/templates", json={"name": "Thirty", "fields": fields}).json
    page = edith.get(f"/templates/{saved['id']}")
    assert len(page.data) < 60_000
    form = form_of(page)
    text = controls(send(edith, "/builder/json", form).text)["json"]
    later = controls(send(edith, "/builder/rest", form).text)
    assert len(keys_of(later)) == len([row for row in form.getlist("row") if "~" in row]) > 0
    assert press(edith, f"/templates/{saved['id']}/edit", form, "save").status_code == 303
    after = api(cast.edith).get(f"/templates/{saved['id']}").json["fields"]
    assert after == saved["fields"]
    assert '"uuid_2"' in text


def test_a_link_opens_a_row(edith, api, cast, customers):
    saved = api(cast.edith).get(f"/templates/{customers}").json
    form = form_of(edith.get(f"/templates/{customers}?open={saved['fields'][1]['id']}"))
    assert f"{key_of(form, 'name')}.prefix" in form
    assert f"{key_of(form, 'id')}.prefix" not in form


def test_an_invalid_formula_is_shown_with_the_character_marked(edith):
    total = '{"name": "t", "type": "formula", "options": {"expression": "p * nix"}}'
    text = f'{{"fields": [{{"name": "p", "type": "number"}}, {total}]}}'
    drawn = controls(send(edith, "/builder/from-json", {"json": text}).text)
    answer = send(edith, "/builder/preview", drawn).text
    assert "p * <mark>n</mark>ix" in answer
    assert '<span aria-hidden="true">    ^</span>' in answer


def test_every_function_is_listed_with_an_example_and_kept_by_the_browser(edith):
    answer = edith.get("/builder/functions", headers=HTMX)
    assert 'data-insert="round("' in answer.text
    assert (
        edith.get("/builder/functions", headers={**HTMX, "If-None-Match": answer.headers["ETag"]}).status_code
        == 304
    )
    assert "<h1" in edith.get("/builder/functions").text


def test_a_version_is_a_page_with_its_fields_and_a_way_back(edith, api, cast, customers):
    api(cast.edith).patch(f"/templates/{customers}", json={"quantity": 7})
    page = edith.get(f"/templates/{customers}@v1").text
    assert "Version 1" in page
    assert f'action="/templates/{customers}/versions/1/restore"' in page
    assert f'href="/templates/{customers}@v1/diff"' in page
    assert "quantity" in edith.get(f"/templates/{customers}@v1/diff").text
    assert "versions/2/restore" not in edith.get(f"/templates/{customers}@v2").text
    edith.submit(f"/templates/{customers}/versions/1/restore")
    assert api(cast.edith).get(f"/templates/{customers}").json["quantity"] == 1000


def test_a_viewer_reads_a_version_and_cannot_restore_it(browser, api, cast, customers):
    api(cast.edith).patch(f"/templates/{customers}", json={"quantity": 7})
    assert "versions/1/restore" not in browser(cast.victor).get(f"/templates/{customers}@v1").text


def test_an_explanation_says_example_capacity_and_cost(edith):
    hidden = '{"name": "n", "type": "number", "hidden": true, "options": {"min": 1, "max": 9}}'
    text = f'{{"fields": [{hidden}, {{"name": "k", "type": "row_number"}}]}}'
    form = controls(send(edith, "/builder/from-json", {"json": text}).text)
    answer = plain(press(edith, "/builder/explain", form, f"explain:{keys_of(form)[0]}", **HTMX).text)
    assert re.search(r"Distinct 9 of 1,000 values; 9 there are", answer.replace("Distinct9", "Distinct 9"))
    assert re.search(r"about [\d.e-]+ s for 1,000,000 rows", answer)

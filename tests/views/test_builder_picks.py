"""What the builder offers to pick: templates, their fields, groups, functions; and what it says of them."""

from __future__ import annotations

import re

import orjson
import pytest

from tests.views.builder_page import HTMX, Editor, send
from tests.views.targets import connection, shop, sqlite_target  # noqa: F401
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


def offered(html: str, name: str) -> list[str]:
    return re.findall(
        r'<option value="([^"]*)"', re.search(rf'<select name="{re.escape(name)}".*?</select>', html)[0]
    )


def drawn(edith, options: dict, kind: str = "foreign_key") -> tuple[Editor, str]:
    """A new template with one field, which is in the inspector, and the key of the field."""
    page = Editor(edith, "/templates/new?names=x")
    page.press(
        "json", json=orjson.dumps({"fields": [{"name": "x", "type": kind, "options": options}]}).decode()
    )
    page.open("x")
    return page, page.keys["x"]


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


def test_a_relation_is_described_in_the_inspector(edith, api, cast, customers):
    page = Editor(edith, f"/templates/{child(api, cast, customers)['id']}")
    page.open("customer_id")
    assert "one of 1,000 rows of Customers" in plain(page.inspector)
    page = Editor(edith, f"/templates/{child(api, cast, customers, cardinality={'min': 1, 'max': 9})['id']}")
    page.open("customer_id")
    assert "1 to 9 rows for each of 1,000 Customers: 5,000 rows" in plain(page.inspector)


def test_templates_and_their_fields_are_offered(edith, api, cast, customers):
    saved = child(api, cast, customers)
    page = Editor(edith, f"/templates/{saved['id']}")
    form = page.open("customer_id")
    key = page.keys["customer_id"]
    assert form[f"{key}.o.template_id"] == customers
    assert offered(page.inspector, f"{key}.o.template_id")[:2] == ["", "self"]
    assert customers in offered(page.inspector, f"{key}.o.template_id")
    assert saved["id"] not in offered(page.inspector, f"{key}.o.template_id")
    assert offered(page.inspector, f"{key}.o.field") == ["", "id", "name"]


def test_another_template_shows_its_own_fields_and_drops_unknown_names(edith, api, cast, customers):
    body = {"name": "Shops", "fields": [{"name": "code", "type": "uuid"}]}
    other = api(cast.edith).post("/templates", json=body).json
    page = Editor(edith, f"/templates/{child(api, cast, customers, field='name')['id']}")
    page.open("customer_id")
    key = page.keys["customer_id"]
    page.fill(o_template_id=other["id"])
    text = page.press(f"again:{key}")
    assert page.inputs[f"{key}.o.field"] == ""
    assert offered(text, f"{key}.o.field") == ["", "code"]


def test_children_by_cardinality_come_first_where_totals_are_picked(edith, api, cast, customers):
    lines = child(api, cast, customers, cardinality=2)
    page = Editor(edith, f"/templates/{customers}")
    text = page.press("type:{name}:aggregate")
    others = re.findall(r"<option value=\"(tpl_\w+)\">([^<]*)", text)
    assert others[0] == (lines["id"], "Orders")
    assert not [name for _, name in others[1:] if "no cardinality" not in name]


def test_an_empty_cardinality_is_not_sent_and_a_single_number_is_exact(edith, api, cast, customers):
    saved = child(api, cast, customers)
    page = Editor(edith, f"/templates/{saved['id']}")
    page.open("customer_id")
    page.fill(name="customer")
    assert page.save().status_code == 200
    assert "cardinality" not in api(cast.edith).get(f"/templates/{saved['id']}").json["fields"][0]["options"]
    page._changed()
    page.fill(**{"o_cardinality.min": "4"})
    assert page.save().status_code == 200
    stored = api(cast.edith).get(f"/templates/{saved['id']}").json["fields"][0]["options"]
    assert (stored["cardinality"]["min"], stored["cardinality"]["max"]) == (4, 4)


# Connections


def test_a_connection_its_tables_and_their_columns_are_picked_one_after_the_other(edith, api, cast, shop):
    page, key = drawn(edith, {})
    assert offered(page.inspector, f"{key}.o.connection_id") == ["", shop.connection_id]
    assert ">connection first<" in page.inspector
    assert "Connection is required." in page.rows()
    page.fill(o_connection_id=shop.connection_id)  # its tables were never read, so the target is queried
    text = page.press(f"again:{key}")
    assert offered(text, f"{key}.o.table") == ["", "customers", "orders"]
    page.fill(o_table="orders")
    text = page.press(f"again:{key}")
    assert offered(text, f"{key}.o.column") == ["", "id", "customer_id", "amount"]
    page.fill(o_column="amount", o_table="customers")
    page.press(f"again:{key}")
    assert page.inputs[f"{key}.o.column"] == ""  # customers have no amount


def test_the_selection_of_a_saved_field_is_shown_and_kept(edith, api, cast, shop):
    options = {"connection_id": shop.connection_id, "table": "orders", "column": "id"}
    api(cast.edith).get(f"/connections/{shop.connection_id}/metadata")
    fields = [{"name": "order_id", "type": "foreign_key", "options": options}]
    saved = api(cast.edith).post("/templates", json={"name": "Lines", "fields": fields}).json
    page = Editor(edith, f"/templates/{saved['id']}")
    form, key = page.open("order_id"), page.keys["order_id"]
    assert {name: form[f"{key}.o.{name}"] for name in options} == options
    assert ">Shop (SQLite)</option>" in page.inspector
    assert offered(page.inspector, f"{key}.o.column") == ["id", "customer_id", "amount"]
    assert page.save().status_code == 200
    assert api(cast.edith).get(f"/templates/{saved['id']}").json["fields"][0]["options"] == {
        **saved["fields"][0]["options"], **options,
    }  # fmt: skip


def test_only_connections_that_take_queries_are_offered_where_one_is_written(edith, app, cast, shop):
    other = connection(app, cast, "mongodb", {"host": "127.0.0.1", "database": "shop"}, name="Papers")
    page, key = drawn(edith, {})
    assert other in offered(page.inspector, f"{key}.o.connection_id")
    page, key = drawn(edith, {}, "db_response")
    assert shop.connection_id in offered(page.inspector, f"{key}.o.connection_id")
    assert other not in offered(page.inspector, f"{key}.o.connection_id")


def test_a_connection_that_is_gone_or_does_not_answer_leaves_boxes_to_type_in(edith, app, cast):
    silent = connection(
        app, cast, "postgresql", {"host": "127.0.0.1", "port": 1, "database": "x", "username": "x"}
    )
    page, key = drawn(edith, {"connection_id": silent, "table": "t", "column": "c"})
    assert re.search(rf'<input name="{key}.o.table" value="t"', page.inspector)
    page.press(f"again:{key}")
    assert page.inputs[f"{key}.o.column"] == "c"
    page, key = drawn(edith, {"connection_id": "con_gone", "table": "t", "column": "c"})
    assert "con_gone (not found)" in page.inspector
    assert re.search(rf'<input name="{key}.o.column" value="c"', page.inspector)


def test_of_many_tables_a_box_searches(edith, app, cast, monkeypatch):
    monkeypatch.setattr(limits, "SELECT_TABLES", 3)
    many = sqlite_target(app, cast, "".join(f"CREATE TABLE t{n} (a, b);" for n in range(30)))
    page, key = drawn(edith, {"connection_id": many.connection_id})
    assert f'list="{key}.o.table-l"' in page.press(f"again:{key}")
    page.fill(o_table="t2")
    found = send(edith, "/builder/tables", page.inputs, do=f"tables:{key}").text
    assert re.findall(r'value="([^"]*)"', found) == ["t2", "t20", "t21"]
    assert offered(page.press(f"again:{key}"), f"{key}.o.column") == ["", "a", "b"]


def test_tables_of_connections_without_access_are_not_returned(browser, api, cast, shop):
    api(cast.edith).get(f"/connections/{shop.connection_id}/metadata")
    mallory = browser(cast.mallory)
    page, key = drawn(mallory, {"connection_id": shop.connection_id})
    text = send(mallory, "/builder/tables", page.inputs, do=f"tables:{key}").text
    assert not re.search("customers|Shop", text + page.press(f"again:{key}") + page.inspector)


# Groups and words


def test_neighbouring_fields_of_one_group_have_one_strip(edith):
    text = edith.get("/templates/new?names=first_name,email,price,city,country").text
    strips = re.findall(r'<td colspan="(\d)" class="g (\w+)">([^<]*)</td>', text)
    assert strips == [("2", "person", "One person"), ("2", "place", "One address")]


def test_a_group_is_selected_from_those_of_its_kind_or_a_new_one(edith):
    page = Editor(edith, "/templates/new?names=first_name,email,city")
    page.open("email")
    listed = re.search(r'<datalist id="[^"]*group-l">(.*?)</datalist>', page.inspector)[1]
    assert re.findall(r'value="([^"]*)"', listed) == ["person", "person_2"]


def test_words_of_uniqueness_survive_the_form(edith, api, cast):
    fields = [
        {"name": name, "type": "number", "options": {"min": 1, "max": 9}, "unique": "slot"}
        for name in ("a", "b")
    ]
    saved = api(cast.edith).post("/templates", json={"name": "Slots", "fields": fields}).json
    page = Editor(edith, f"/templates/{saved['id']}")
    page.open("a")
    page.fill(prefix="x")
    assert page.save().status_code == 200
    stored = api(cast.edith).get(f"/templates/{saved['id']}").json["fields"]
    assert [field["unique"] for field in stored] == ["slot", "slot"]


def test_opening_fields_changes_nothing(edith, api, cast, customers):
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
    page = Editor(edith, f"/templates/{saved['id']}")
    assert len(page.names) == 30
    for name in page.names[:10]:
        page.open(name)
        assert "Unsaved changes" not in page.press("set")
    assert api(cast.edith).get(f"/templates/{saved['id']}").json["fields"] == saved["fields"]


def test_a_link_opens_a_field(edith, api, cast, customers):
    key = Editor(edith, f"/templates/{customers}").keys["name"]
    page = Editor(edith, f"/templates/{customers}?field={key}")
    assert f"{key}.prefix" in page.inputs
    assert f"{page.keys['id']}.prefix" not in page.inputs


# Formulas


def test_an_invalid_formula_is_shown_with_the_character_marked(edith):
    total = {"name": "t", "type": "formula", "options": {"expression": "p * nix"}}
    page = Editor(edith, "/templates/new?names=x")
    page.press("json", json=orjson.dumps({"fields": [{"name": "p", "type": "number"}, total]}).decode())
    page.open("t")
    assert "p * <mark>n</mark>ix" in page.inspector
    assert '<span aria-hidden="true">    ^</span>' in page.inspector


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


def test_an_explanation_says_capacity_and_cost(edith):
    page = Editor(edith, "/templates/new?names=x")
    hidden = {"name": "n", "type": "city", "hidden": True}
    page.press("json", json=orjson.dumps({"fields": [hidden, {"name": "k", "type": "row_number"}]}).decode())
    answer = plain(send(edith, "/builder/explain", page.inputs, do=f"explain:{page.keys['n']}").text)
    assert re.search(r"Blank ?0.0 %", answer)
    assert re.search(r"Cost ?[\d.e-]+ s", answer)
    assert re.search(r"Distinct ?\d+", answer)

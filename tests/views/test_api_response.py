"""A template with values of an API, over the API and in the builder."""

from __future__ import annotations

import pytest

from tests.fakes.echo_target import Answer, EchoTarget
from tests.views.builder_page import Editor
from tests.views.speak import faults, make, rows_used
from tests.views.targets import connection, shop, sqlite_target  # noqa: F401
from tests.views.test_builder_picks import drawn, offered

PRICES = {"a": {"net": {"amount": 12.5}, "tags": ["x"]}, "b": {"net": {"amount": 3.25}, "tags": []}}


@pytest.fixture
def target():
    with EchoTarget() as result:
        result.on("/prices/*", lambda seen: Answer(200, PRICES[seen.path[-1]]))
        yield result


@pytest.fixture
def prices(app, cast, target):
    return connection(app, cast, "rest", {"base_url": target.url("/")}, name="Prices")


def fields(prices: str, kind: str = "api_response") -> list[dict]:
    def priced(name: str, extract: str) -> dict:
        options = {"connection_id": prices, "path": "/prices/{{sku}}", "extract": extract}
        return {"name": name, "type": kind, "options": options}

    skus = {"name": "sku", "type": "list_sequential", "options": {"values": ["a", "b"]}}
    return [skus, priced("price", "$.net.amount"), priced("tags", "$.tags")]


def test_a_template_with_values_of_an_api_is_kept_and_generated_in_any_format(api, cast, target, prices):
    edith = api(cast.edith)
    saved = make(edith, fields=fields(prices, "API Response"))
    assert [field["type"] for field in saved["fields"]] == ["list_sequential", "api_response", "api_response"]
    path = f"/templates/{saved['id']}"
    look = edith.post(f"{path}/preview", json={"seed": "s"}).json
    assert look["warnings"] == []
    assert (rows_used(edith), len(target.calls())) == (0, 2)
    created = edith.post(f"{path}/generate", json={"count": 4, "seed": "s"})
    rows = [{"sku": "a", "price": 12.5, "tags": ["x"]}, {"sku": "b", "price": 3.25, "tags": []}]
    assert created.json == rows * 2
    assert created.json[:3] == look["rows"]
    csv = edith.post(f"{path}/generate", json={"count": 4, "seed": "s"}, headers={"Accept": "text/csv"})
    assert csv.text.splitlines()[:2] == ["sku,price,tags", 'a,12.5,"[""x""]"']
    assert csv.headers["X-Snapshot"] == created.headers["X-Snapshot"]
    assert len(target.calls()) == 2


def test_a_missing_option_is_rejected_by_name(api, cast, prices):
    edith = api(cast.edith)
    (_, priced, _) = fields(prices)
    for option, value in (("metod", "GET"), ("on_error", "ignore"), ("extract", "$."), ("path", "")):
        values = {**priced, "options": {**priced["options"], option: value}}
        answer = edith.post("/templates", json={"name": "T", "fields": [values]})
        assert f"fields[0].options.{option}" in faults(answer)


def test_a_connection_in_use_says_by_which_template(api, cast, prices):
    edith = api(cast.edith)
    saved = make(edith, fields=fields(prices))
    answer = edith.delete(f"/connections/{prices}")
    assert answer.json["error"]["details"]["used_by"] == [
        {"type": "template", "id": saved["id"], "name": "T"}
    ]


def test_the_builder_offers_the_connections_that_have_paths(browser, cast, prices, shop):
    page, key = drawn(browser(cast.edith), {}, "api_response")
    assert f'<option value="{prices}">Prices (REST API)</option>' in page.inspector
    assert shop.connection_id not in offered(page.inspector, f"{key}.o.connection_id")


def test_the_builder_keeps_what_a_field_says(api, browser, cast, prices):
    saved = make(api(cast.edith), fields=fields(prices))
    page = Editor(browser(cast.edith), f"/templates/{saved['id']}")
    form, key = page.open("price"), page.keys["price"]
    assert form[f"{key}.o.path"] == "/prices/{{sku}}"
    page.fill(o_extract="$.tags[0]")
    assert page.save().status_code == 200
    options = api(cast.edith).get(f"/templates/{saved['id']}").json["fields"][1]["options"]
    assert options == {**saved["fields"][1]["options"], "extract": "$.tags[0]"}

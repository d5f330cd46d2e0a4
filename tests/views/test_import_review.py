"""The review of an import: source and generated values, types changed in place, and what is created from them."""

from __future__ import annotations

import io
import re

import pytest
from lxml import html

CSV = """full_name,country,code,amount
Jana Sommer,DE,K-10417,500.00
Piet de Wit,NL,K-10988,1500.50
Ana Prado,DE,K-11203,0.00
"""
SQL = """CREATE TABLE customers (id INT PRIMARY KEY, email VARCHAR(120) NOT NULL UNIQUE, city VARCHAR(40));
CREATE TABLE orders (id INT PRIMARY KEY, customer_id INT NOT NULL REFERENCES customers (id), x1 VARCHAR(9) NOT NULL);"""


@pytest.fixture
def page(browser, cast):
    return browser(cast.edith)


def review(page, **sent):
    answer = page.submit("/import", {"save": "false", **sent}, content_type="multipart/form-data")
    assert answer.status_code == 200, answer.text[:2000]
    return html.fromstring(answer.text)


def cells(row, label):
    return [item.text_content().strip() for item in row.xpath(f".//td[@data-label='{label}']//span")]


def test_each_column_shows_source_and_generated_values(page):
    shown = review(page, content=CSV)
    rows = {
        row.xpath(".//b")[0].text: row for row in shown.xpath("//table[contains(@class, 'review')]/tbody/tr")
    }
    assert list(rows) == ["full_name", "country", "code", "amount"]
    assert cells(rows["full_name"], "Source") == ["Jana Sommer", "Piet de Wit", "Ana Prado"]
    generated = cells(rows["full_name"], "Generated")
    assert len(generated) == 3
    assert all(re.fullmatch(r"\S+( \S+)+", item) for item in generated)
    assert rows["full_name"].get("class") == "c-high"
    assert shown.xpath("//button[@name='save'][@value='true']")[0].text_content().strip() == "Create template"


def test_a_chosen_type_is_created(page, edith):
    shown = review(page, content=SQL)
    names = {item.get("aria-label"): item.get("name") for item in shown.xpath("//input[@list='types']")}
    types = dict.fromkeys(names.values(), "")
    types[names["Field type of customers.city"]] = "Phone number"
    answer = page.submit(
        "/import", {"save": "true", "content": SQL, **types}, content_type="multipart/form-data"
    )
    assert answer.status_code == 201
    assert "Open dataset" in answer.text
    assert "save" not in html.fromstring(answer.text).xpath("//button/@name")
    templates = {item["name"]: item["id"] for item in edith.get("/templates").json["items"]}
    fields = {
        field["name"]: field["type"]
        for field in edith.get(f"/templates/{templates['customers']}").json["fields"]
    }
    assert (fields["city"], fields["email"]) == ("phone_number", "email")


def test_all_wrong_types_are_reported_at_once(edith):
    types = ["no such type", "", "reference"]
    answer = edith.post("/import", json={"content": SQL, "save": True, "types": types})
    faults = {field["path"]: field["code"] for field in answer.json["error"]["details"]["fields"]}
    assert faults == {"types[0]": "unknown_type", "types[2]": "not_possible"}


def test_a_reference_may_be_replaced(edith):
    created = edith.post(
        "/import", json={"content": SQL, "save": True, "types": ["", "", "", "", "Number"]}
    ).json
    orders = next(template for template in created["templates"] if template["name"] == "orders")
    assert next(field["type"] for field in orders["fields"] if field["name"] == "customer_id") == "number"


def test_a_file_need_not_be_sent_again_without_scripts(page):
    shown = review(page, file=(io.BytesIO(CSV.encode()), "people.csv"))
    assert shown.get_element_by_id("content").text.strip() == CSV.strip()
    assert shown.xpath("//input[@name='name']/@value") == ["people.csv"]


@pytest.mark.parametrize(
    ("kind", "expected"), [("Country", ""), ("nothing", "There is no such field type."), ("formula", "")]
)
def test_the_sample_of_one_column_is_a_fragment(page, kind, expected):
    answer = page.get(f"/import/sample?column=c&types[3]={kind}")
    assert answer.status_code == 200
    spans = html.fromstring(f"<td>{answer.text}</td>").xpath("//span")
    if expected:
        assert [span.text for span in spans] == [expected]
    else:
        assert len(spans) == (3 if kind == "Country" else 1)


def test_with_scripts_the_review_is_a_fragment_and_the_result_replaces_the_form(page):
    headers = {"HX-Request": "true"}
    shown = page.submit(
        "/import", {"save": "false", "content": CSV}, content_type="multipart/form-data", headers=headers
    )
    assert shown.status_code == 200
    assert "<form" not in shown.text
    assert "Nothing is created yet" in shown.text
    created = page.submit(
        "/import", {"save": "true", "content": CSV}, content_type="multipart/form-data", headers=headers
    )
    assert (created.status_code, created.headers["HX-Retarget"]) == (201, "#result")
    assert "Open template" in created.text

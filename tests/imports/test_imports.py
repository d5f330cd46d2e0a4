"""POST /import, what is kept of it, and changed schemas: through the service, as a program and as a person."""

from __future__ import annotations

import io

import pytest

from tests.cast import Browser

CSV = "id,email,status\n" + "".join(
    f"{n},p{n}@example.org,{'open' if n % 3 else 'done'}\n" for n in range(1, 41)
)
V1 = """CREATE TABLE customers (id INT PRIMARY KEY, email VARCHAR(120) NOT NULL UNIQUE, city VARCHAR(40), old INT);
CREATE TABLE orders (id INT PRIMARY KEY, customer_id INT NOT NULL REFERENCES customers (id), total DECIMAL(8,2));"""
V2 = """CREATE TABLE customers (id INT PRIMARY KEY, email VARCHAR(120) NOT NULL UNIQUE, phone VARCHAR(30), city INT);
CREATE TABLE orders (id INT PRIMARY KEY, customer_id INT NOT NULL REFERENCES customers (id), total DECIMAL(8,2));"""


def fields(template) -> dict[str, str]:
    """By name, the types of a template's fields."""
    return {field["name"]: field["type"] for field in template["fields"]}


@pytest.fixture
def customers(edith):
    """The template of the first version of a schema."""
    created = edith.post("/import", json={"content": V1}).json
    return next(template for template in created["templates"] if template["name"] == "customers")


def test_a_text_is_imported_and_its_rows_can_be_generated(edith):
    answer = edith.post("/import", json={"content": CSV, "name": "people.csv"})
    assert answer.status_code == 201
    result = answer.json["templates"][0]
    assert result["name"] == "people"
    assert fields(result) == {"id": "row_number", "email": "email", "status": "enum"}
    assert {row["state"] for row in answer.json["report"]} == {"green"}
    rows = edith.post(f"/templates/{result['id']}/generate", json={"count": 50, "seed": "s"}).json
    assert {row["status"] for row in rows} == {"open", "done"}


def test_a_file_is_imported_as_multipart(edith):
    sent = {"file": (io.BytesIO(CSV.encode()), "people.csv"), "format": "csv"}
    answer = edith.post("/import", data=sent, content_type="multipart/form-data")
    assert answer.status_code == 201, answer.text
    assert answer.json["templates"][0]["name"] == "people"


def test_a_file_of_the_workspace_is_imported_by_its_name(edith):
    sent = {"file": (io.BytesIO(CSV.encode()), "people.csv"), "name": "in/people.csv"}
    edith.post("/workspace/files", data=sent, content_type="multipart/form-data")
    answer = edith.post("/import", json={"file": "in/people.csv"})
    assert answer.json["templates"][0]["name"] == "people"


def test_a_check_against_nan_leaves_the_range_as_it_is(edith):
    table = "CREATE TABLE t (id INT PRIMARY KEY, amount NUMERIC(8, 2) NOT NULL CHECK (amount <> 'NaN'));"
    answer = edith.post("/import", json={"content": table})
    assert answer.status_code == 201, answer.text
    rows = edith.post(
        f"/templates/{answer.json['templates'][0]['id']}/generate", json={"count": 20, "seed": "s"}
    )
    assert all(isinstance(row["amount"], int | float) for row in rows.json)


def test_a_preview_saves_nothing(edith):
    answer = edith.post("/import", json={"content": V1, "save": False})
    assert answer.status_code == 200
    assert [template["id"] for template in answer.json["templates"]] == [None, None]
    link = next(field for field in answer.json["templates"][1]["fields"] if field["name"] == "customer_id")
    assert link["options"]["template_id"] == "customers"
    assert edith.get("/templates").json["total"] == 0


def test_an_unreadable_file_is_an_error_with_a_remedy(edith):
    answer = edith.post("/import", json={"content": "hello", "format": "json"})
    assert answer.status_code == 422
    (fault,) = answer.json["error"]["details"]["fields"]
    assert (fault["path"], fault["code"]) == ("content", "unreadable")
    assert fault["hint"]


@pytest.mark.parametrize("body", [{}, {"content": "a\n1\n", "file": "x.csv"}])
def test_one_thing_is_imported_at_a_time(edith, body):
    assert edith.post("/import", json=body).status_code == 422


def test_a_changed_schema_is_compared_column_by_column(edith, customers):
    answer = edith.post(f"/templates/{customers['id']}/import", json={"content": V2})
    assert answer.status_code == 200, answer.text
    assert {column["column"]: column["change"] for column in answer.json["columns"]} == {
        "phone": "added", "city": "changed", "old": "removed",
    }  # fmt: skip
    assert answer.json["accepted"] is None
    assert edith.get(f"/templates/{customers['id']}").json["version"] == 1


def test_only_accepted_columns_are_taken_over_and_the_others_differ_still(edith, customers):
    at = f"/templates/{customers['id']}/import"
    answer = edith.post(at, json={"content": V2, "accept": ["phone", "old"]})
    assert answer.json["accepted"] == ["phone", "old"]
    assert answer.json["template"]["version"] == 2
    assert list(fields(answer.json["template"])) == ["id", "email", "phone", "city"]
    assert fields(answer.json["template"])["city"] == "city"
    again = edith.post(at, json={"content": V2}).json
    assert [(column["column"], column["change"]) for column in again["columns"]] == [("city", "changed")]


def test_manual_changes_are_kept_if_the_schema_did_not_change_there(edith, customers):
    mine = edith.get(f"/templates/{customers['id']}").json["fields"]
    mine[2] = {**mine[2], "type": "constant", "options": {"value": "Rome"}}
    edith.patch(f"/templates/{customers['id']}", json={"fields": mine})
    found = edith.post(f"/templates/{customers['id']}/import", json={"content": V1}).json
    assert found["columns"] == []


def test_a_new_foreign_key_leads_to_the_template_of_its_table(edith):
    script = V1.replace("customer_id", "buyer")
    edith.post("/import", json={"content": script.replace(" REFERENCES customers (id)", "")})
    items = edith.get("/templates?q=orders").json["items"]
    found = edith.post(
        f"/templates/{items[0]['id']}/import", json={"content": script, "accept": ["buyer"]}
    ).json
    link = next(field for field in found["template"]["fields"] if field["name"] == "buyer")
    parent = edith.get("/templates?q=customers").json["items"][0]["id"]
    assert (link["type"], link["options"]["template_id"]) == ("reference", parent)


def test_a_column_named_as_a_table_stays_a_reference_when_the_schema_is_imported_again(edith):
    script = V1.replace(" REFERENCES customers (id)", "")
    edith.post("/import", json={"content": script})
    items = edith.get("/templates?q=orders").json["items"]
    assert edith.post(f"/templates/{items[0]['id']}/import", json={"content": script}).json["columns"] == []


def test_a_column_that_does_not_differ_cannot_be_accepted(edith, customers):
    answer = edith.post(f"/templates/{customers['id']}/import", json={"content": V2, "accept": ["phones"]})
    assert answer.status_code == 422
    assert "phone" in answer.json["error"]["details"]["fields"][0]["hint"]


def test_a_template_made_by_hand_can_be_compared_too(edith):
    created = edith.post(
        "/templates", json={"name": "customers", "fields": [{"name": "id", "type": "uuid"}]}
    ).json
    found = edith.post(f"/templates/{created['id']}/import", json={"content": V1}).json
    assert {column["column"] for column in found["columns"]} == {"id", "email", "city", "old"}


# --- The pages ---------------------------------------------------------------------------------------------


def test_the_page_makes_templates_without_script_and_shows_states_in_words(app, cast):
    browser = Browser(app, cast.edith)
    assert 'enctype="multipart/form-data"' in browser.get("/import").text
    page = browser.submit(
        "/import",
        data={"content": V1 + "CREATE TABLE g (p GEOMETRY NOT NULL);", "format": "auto", "save": "true"},
    )
    assert page.status_code == 201, page.text
    assert "Created 3 templates and the dataset" in page.text
    assert "No values can be generated for the type GEOMETRY" in page.text
    assert "Imported as text" in page.text


def test_the_page_looks_first_and_keeps_what_was_pasted(app, cast, edith):
    page = Browser(app, cast.edith).submit(
        "/import", data={"content": CSV, "format": "auto", "save": "false"}
    )
    assert page.status_code == 200
    assert "Review" in page.text
    assert "p1@example.org" in page.text
    assert edith.get("/templates").json["total"] == 0


def test_an_unreadable_file_is_reported_on_the_page(app, cast):
    page = Browser(app, cast.edith).submit("/import", data={"content": "{", "format": "json", "save": "true"})
    assert page.status_code == 422
    assert "The file is not valid JSON" in page.text


def test_a_template_shows_what_its_import_came_to_and_takes_a_changed_schema(app, cast, customers):
    browser = Browser(app, cast.edith)
    at = f"/templates/{customers['id']}"
    compared = browser.submit(f"{at}/import", data={"content": V2, "format": "auto"})
    assert 'name="accept" value="phone" checked' in compared.text
    taken = browser.submit(
        f"{at}/import?do=accept", data={"content": V2, "format": "auto", "accept": ["phone", "city"]}
    )
    assert "2 columns updated in version 2" in taken.text


LOOKUPS = """CREATE TABLE hs_country (cou_code CHAR(2) PRIMARY KEY, name VARCHAR(80) NOT NULL UNIQUE);
CREATE TABLE languages (lang CHAR(2) PRIMARY KEY, title VARCHAR(40));
CREATE TABLE currencies (id INT PRIMARY KEY, iso VARCHAR(3) UNIQUE, name VARCHAR(30) UNIQUE);
CREATE TABLE offices (id INT PRIMARY KEY, country CHAR(2) NOT NULL REFERENCES hs_country (cou_code));"""


def test_a_lookup_table_has_as_many_rows_as_there_are_such_values(edith):
    """A country has a real code, although 1,000 rows were requested and there are fewer countries."""
    answer = edith.post("/import", json={"content": LOOKUPS, "quantity": 1000})
    result = {template["name"]: template for template in answer.json["templates"]}
    assert fields(result["hs_country"]) == {"cou_code": "country_code", "name": "country"}
    assert fields(result["currencies"]) == {"id": "row_number", "iso": "currency_code", "name": "enum"}
    assert result["offices"]["quantity"] == 1000
    for name in ("hs_country", "languages", "currencies"):
        assert 20 < result[name]["quantity"] < 300
        rows = edith.post(f"/templates/{result[name]['id']}/generate", json={}).json
        assert len(rows) == result[name]["quantity"]
    assert all(len(row["name"]) <= 30 for row in rows)
    known, offices = (
        edith.post(f"/templates/{result[name]['id']}/generate", json={}).json
        for name in ("hs_country", "offices")
    )
    assert {row["country"] for row in offices} <= {row["cou_code"] for row in known}

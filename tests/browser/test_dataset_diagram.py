"""The diagram of a dataset is its editor: in a browser, by mouse and by keyboard, wide and narrow, light and dark, and
with a slow server."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from jobs import exports
from jobs.pushes import push as job
from tests.browser.conftest import NARROWEST
from tests.browser.looking import axe, faults_found_by_axe  # noqa: F401 - a fixture
from tests.cast import Program
from tests.views.speak import make
from tests.views.targets import sqlite_target
from webapp import limits
from webapp.extensions import db

KEY = {"name": "id", "type": "row_number"}
MIDDLE, LARGE = (1440, 900), (2560, 1440)
SLOW = 250  # milliseconds that each answer is delayed


@pytest.fixture
def program(app, cast):
    return Program(app, cast.edith.key)


@pytest.fixture
def shop(program):
    """Customers with one to five orders each, lines of the orders, and products that the lines choose freely."""
    customers = make(
        program, name="customers", quantity=5_000,
        fields=[KEY, {"name": "full_name", "type": "full_name"}, {"name": "email", "type": "email"}],
    )["id"]  # fmt: skip
    products = make(
        program, name="products", quantity=400, fields=[KEY, {"name": "price", "type": "number"}]
    )["id"]
    orders = make(
        program, name="orders",
        fields=[KEY, _reference("customer_id", customers, 1, 5), {"name": "ordered_at", "type": "datetime"}],
    )["id"]  # fmt: skip
    lines = make(
        program, name="order_lines",
        fields=[KEY, _reference("order_id", orders, 1, 6), _reference("product_id", products)],
    )["id"]  # fmt: skip
    ids = {"customers": customers, "products": products, "orders": orders, "lines": lines}
    body = {"name": "Shop", "seed": "s", "templates": [{"template_id": item} for item in ids.values()]}
    return {**program.post("/datasets", json=body).json, "ids": ids}


def _reference(name: str, template_id: str, least: int = 0, most: int = 0) -> dict[str, object]:
    options: dict[str, object] = {"template_id": template_id}
    if most:
        options["cardinality"] = {"min": least, "max": most}
    return {"name": name, "type": "reference", "options": options}


def opened(desk, cast, dataset, address="", size=MIDDLE, slow=0, **how) -> Page:
    """The page of a dataset; with `slow`, each answer of the server takes that many milliseconds longer."""
    page = desk(cast.edith, size, **how).page(f"/datasets/{dataset['id']}{address}")
    if slow:
        page.route("**/datasets/**", lambda route: (page.wait_for_timeout(slow), route.continue_()))
    return page


def card(page: Page, name: str) -> Locator:
    return page.locator(".tcard").filter(has=page.get_by_role("heading", name=name, exact=True))


def saved(page: Page, version: int) -> None:
    expect(page.locator("#state")).to_contain_text(f"v{version} · saved")


def picture(page: Page, name: str) -> None:
    """Take a picture if DATASET_PICTURES names a folder for it."""
    if folder := os.environ.get("DATASET_PICTURES"):
        page.wait_for_timeout(200)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def test_row_counts_are_saved_by_themselves_and_undone(desk, cast, shop, program):
    page = opened(desk, cast, shop)
    expect(page.locator("#summary")).to_contain_text(
        "4 tables, 72,900 rows, order: customers, products, orders"
    )
    picture(page, "diagram-light")
    count = page.get_by_label("Rows in customers")
    count.fill("1000")
    count.press("Enter")
    saved(page, 2)
    expect(card(page, "orders").locator(".calc")).to_have_text("3,000")
    expect(page.locator("#summary")).to_contain_text("14,900 rows")
    expect(count).to_be_focused()
    count.fill("many")
    count.press("Tab")
    expect(card(page, "customers").get_by_role("alert")).to_contain_text("Enter a whole number")
    expect(count).to_have_value("many")
    count.fill("7")
    saved(page, 3)  # without leaving the input
    expect(card(page, "customers").get_by_role("alert")).to_be_hidden()
    page.keyboard.press("Control+z")
    saved(page, 4)
    expect(page.get_by_label("Rows in customers")).to_have_value("1,000")
    page.get_by_role("button", name="Redo: Rows").click()
    saved(page, 5)
    expect(page.get_by_label("Rows in customers")).to_have_value("7")
    assert program.get(f"/datasets/{shop['id']}").json["templates"][0]["count"] == 7


def test_nothing_typed_is_lost_while_answers_are_slow(desk, cast, shop, program):
    page = opened(desk, cast, shop, slow=SLOW)
    customers, products = page.get_by_label("Rows in customers"), page.get_by_label("Rows in products")
    customers.click()
    page.keyboard.type("123", delay=30)
    page.keyboard.press("Tab")
    products.click()
    page.keyboard.type("456789", delay=150)  # goes on while the first change is saved
    page.get_by_role("textbox", name="Name of the dataset").click()
    page.keyboard.press("End")
    page.keyboard.type(" for the load test", delay=60)
    page.keyboard.press("Tab")
    expect(customers).to_have_value("123")
    expect(products).to_have_value("456789")
    expect(page.locator("#state")).to_contain_text("· saved", timeout=10_000)
    page.wait_for_function("!document.querySelector('.htmx-request')")
    products.fill("")
    products.press_sequentially("42", delay=20)
    page.get_by_role("button", name="Undo").click()  # redraws the diagram; what was typed is saved before
    customers.press_sequentially("9", delay=20)
    expect(customers).to_have_value(re.compile("^1239$|^9123$"))
    expect(page.locator("[data-saving]")).to_have_text("saved")
    page.reload()  # leaves nothing behind
    expect(page.get_by_label("Rows in customers")).to_have_value(re.compile("^1,239$|^9,123$"))
    data = program.get(f"/datasets/{shop['id']}").json
    assert data["name"] == "Shop for the load test"
    assert [template["count"] for template in data["templates"][:2]] in ([1239, 456_789], [9123, 456_789])


def test_a_table_opens_with_its_rows_by_keyboard(desk, cast, shop):
    page = opened(desk, cast, shop)
    name = page.get_by_role("link", name="customers", exact=True).first
    name.focus()
    page.keyboard.press("ArrowRight")
    expect(card(page, "orders").get_by_role("heading").get_by_role("link")).to_be_focused()
    page.keyboard.press("Enter")
    drawer = page.locator("#drawer")
    expect(drawer.get_by_role("heading", name="orders")).to_be_visible()
    expect(drawer.locator(".grid tbody tr")).to_have_count(10)
    expect(card(page, "orders")).to_have_class(re.compile("picked"))
    assert page.url.endswith(f"?table={shop['ids']['orders']}")
    picture(page, "drawer-light")
    drawer.locator("th").get_by_role("link", name="customers").click()
    expect(drawer.get_by_role("heading", name="customers")).to_be_visible()
    page.locator("#d-as").fill("people")
    page.keyboard.press("Enter")
    saved(page, 2)
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(page.locator(f"#o-{shop['ids']['customers']}")).to_be_focused()


def test_a_cardinality_is_edited_on_its_line(desk, cast, shop, program):
    page = opened(desk, cast, shop, color_scheme="dark")
    page.get_by_role("link", name="orders.customer_id: 1 : 1..5").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Average 3 per row of customers")).to_be_visible()
    picture(page, "relation-dark")
    page.get_by_label("At most", exact=True).fill("0")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#e-relation-most")).to_contain_text("Enter a whole number from 1")
    page.get_by_label("At least").fill("2")
    page.get_by_label("At most", exact=True).fill("2")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="orders.customer_id: 1 : 2 per row")).to_be_visible()
    expect(card(page, "orders").locator(".calc")).to_have_text("10,000")
    page.get_by_label("At most one").check()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("link", name="orders.customer_id: 1 : 0..1 per row")).to_be_visible()
    expect(page.get_by_label("Rows in orders")).to_have_value("10,000")
    page.get_by_role("button", name="Undo: Rows per parent").click()
    expect(page.get_by_role("link", name="orders.customer_id: 1 : 2 per row")).to_be_visible()


def test_tables_and_relations_are_added_and_removed(desk, cast, shop, program):
    make(program, name="reviews", fields=[KEY, {"name": "stars", "type": "number"}])
    page = opened(desk, cast, shop)
    page.get_by_role("link", name="Add table").click()
    dialog = page.get_by_role("dialog", name="Add tables")
    dialog.get_by_label("Find a template").press_sequentially("rev")
    dialog.get_by_label("reviews").check()
    dialog.get_by_role("button", name="Add tables").click()
    expect(card(page, "reviews")).to_be_visible()
    card(page, "reviews").get_by_role("heading").get_by_role("link").click()
    page.locator("#drawer summary", has_text="Add relation").click()
    page.get_by_label("Parent table").select_option(label="customers")
    page.get_by_label("From … to …").check()
    page.get_by_label("At most", exact=True).fill("4")
    page.locator("#relate").click()
    expect(
        page.get_by_role("link", name="reviews.customer_id: 1 : 1..4 per row of customers")
    ).to_be_visible()
    expect(card(page, "reviews").locator(".calc")).to_have_text("12,500")
    page.get_by_role("button", name="Remove relation").click()
    expect(page.get_by_role("link", name="reviews.customer_id")).to_have_count(0)
    page.get_by_role("button", name="Remove table").click()
    expect(page.get_by_text("Table reviews removed")).to_be_visible()
    expect(card(page, "reviews")).to_have_count(0)
    expect(page.locator("#drawer")).to_be_hidden()
    page.keyboard.press("Control+z")
    expect(card(page, "reviews")).to_be_visible()


def test_the_table_view_has_the_same_changes(desk, cast, shop):
    page = opened(desk, cast, shop, "?view=table", color_scheme="dark")
    page.get_by_label("Rows in orders").fill("9000")
    page.keyboard.press("Tab")
    saved(page, 2)
    expect(page.locator(f"#f-{shop['ids']['orders']}")).to_have_text("fixed")
    page.get_by_role("button", name="Move down: customers").click()
    expect(page.locator(".dstable tbody tr").first).to_contain_text("products")
    page.get_by_role("button", name="Remove: products").click()
    expect(page.locator(".dstable tbody tr")).to_have_count(3)
    page.get_by_role("link", name="customers 1 : 1..5").click()
    expect(page.locator("#drawer h2")).to_contain_text("orders to customers")
    picture(page, "table-dark")
    page.get_by_role("link", name="Diagram").click()
    expect(page.locator(".tcard")).to_have_count(3)


def test_lines_meet_the_fields_that_they_join(desk, cast, shop):
    page = opened(desk, cast, shop)
    found = page.evaluate(
        """() => [...document.querySelectorAll(".edges path.rel:nth-of-type(odd)")].map((path) => {
          const box = path.ownerSVGElement.getBoundingClientRect(), end = path.getPointAtLength(path.getTotalLength());
          const x = box.left + end.x, y = box.top + end.y;
          const near = [...document.querySelectorAll(".tcard li")].filter((row) => row.querySelector("a"))
            .map((row) => row.getBoundingClientRect())
            .map((row) => [Math.abs(row.top + row.height / 2 - y), Math.abs(row.left - x)]);
          return near.sort((one, other) => one[0] + one[1] - other[0] - other[1])[0];
        })"""
    )
    assert len(found) == 3
    assert all(down <= 2 and across <= 3 for down, across in found), found


def test_a_database_is_filled(desk, cast, app, program, shop):
    target = sqlite_target(
        app, cast, "CREATE TABLE customers (id INTEGER PRIMARY KEY, full_name TEXT, email TEXT);"
    )
    program.patch(f"/datasets/{shop['id']}", json={"templates": [
        {"template_id": item, "count": 5 if name in ("customers", "products") else None}
        for name, item in shop["ids"].items()
    ]})  # fmt: skip
    page = opened(desk, cast, shop)
    expect(page.get_by_role("button", name="Destination: Shop")).to_be_visible()
    page.get_by_role("link", name="Fill this database").click()
    dialog = page.get_by_role("dialog", name="Fill Shop")
    expect(dialog).to_contain_text("into 4 of 4 tables, parents first")
    expect(dialog.get_by_role("row", name=re.compile("customers"))).to_contain_text("2 columns match")
    expect(dialog.get_by_role("row", name=re.compile("order_lines"))).to_contain_text("Creates the table")
    picture(page, "fill-light")
    dialog.get_by_role("button", name="Fill 4 tables").click()
    page.wait_for_url("**/pushes/psh_*")
    with app.app_context():
        job.run(page.url.rsplit("/", 1)[1])
        db.session.remove()
    assert (target.count("customers"), target.count("orders")) == (5, 15)


def test_production_asks_for_its_name(desk, cast, app, program, shop):
    target = sqlite_target(app, cast, "CREATE TABLE customers (id INTEGER PRIMARY KEY);")
    program.patch(f"/connections/{target.connection_id}", json={"environment": "prod"})
    page = opened(desk, cast, shop)
    page.get_by_role("link", name="Fill this database").click()
    dialog = page.get_by_role("dialog", name=re.compile("Fill Shop"))
    dialog.get_by_label("Enter its name to confirm").fill("Sho")
    dialog.get_by_role("button", name="Fill 4 tables").click()
    expect(dialog.locator("#confirm-err")).to_be_visible()
    assert target.count("customers") == 0
    assert program.get("/pushes").json["total"] == 0


def test_a_file_is_chosen_as_the_destination_and_created(desk, cast, app, program, shop):
    program.patch(f"/datasets/{shop['id']}", json={"templates": [
        {"template_id": item, "count": 7 if name == "customers" else None} for name, item in shop["ids"].items()
    ]})  # fmt: skip
    page = opened(desk, cast, shop)
    page.get_by_role("button", name="Destination: Excel").click()
    dialog = page.get_by_role("dialog", name="Destination")
    dialog.locator(".formats label", has_text="SQL").click()
    picture(page, "destination-light")
    dialog.get_by_label("Create table").select_option("true")
    dialog.get_by_role("button", name="Create file").click()
    page.wait_for_url("**/exports/exp_*")
    with app.app_context():
        exports.run(page.url.rsplit("/", 1)[1])
        db.session.remove()
    with page.expect_download() as found:
        page.get_by_role("link", name="Download").click()
    assert found.value.suggested_filename == "Shop.sql"
    database = sqlite3.connect(":memory:")
    database.executescript(found.value.path().read_text())
    assert database.execute("SELECT count(DISTINCT customer_id), count(*) FROM orders").fetchone() == (7, 21)
    database.close()
    page.goto(f"{page.url.split('/exports')[0]}/datasets/{shop['id']}")
    page.get_by_role("button", name="Destination: SQL").click()  # the one that was used last
    dialog.locator(".formats label", has_text="Parquet").click()
    dialog.get_by_role("button", name="Use as destination").click()
    page.wait_for_url("**to=parquet*")
    expect(page.get_by_role("button", name="Destination: Parquet")).to_be_visible()


def test_many_tables_are_searched_while_answers_are_slow(desk, cast, program, monkeypatch):
    monkeypatch.setattr(limits, "DATASET_CARDS", 6)
    parent = make(program, name="countries", fields=[KEY])["id"]
    ids = [parent] + [
        make(program, name=f"table_{at:02}", fields=[KEY, _reference("country_id", parent)])["id"]
        for at in range(20)
    ]
    created = program.post(
        "/datasets", json={"name": "World", "templates": [{"template_id": item} for item in ids]}
    ).json
    page = opened(desk, cast, created, slow=SLOW)
    expect(page.locator(".tcard")).to_have_count(6)
    find = page.get_by_label("Find a table")
    find.click()
    page.keyboard.type("table_17", delay=120)
    expect(page.locator(".tcard")).to_have_count(2)
    expect(find).to_have_value("table_17")
    expect(find).to_be_focused()
    find.fill("")
    expect(page.locator(".tcard")).to_have_count(6)
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("#workspace")).to_contain_text("Page 2 of 4")
    page.locator(".beyond").first.click()
    expect(page.locator("#workspace")).to_contain_text("and related tables")
    expect(card(page, "countries")).to_be_visible()


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        (NARROWEST, "light"),
        (NARROWEST, "dark"),
        ((768, 900), "light"),
        (MIDDLE, "light"),
        (MIDDLE, "dark"),
        (LARGE, "dark"),
    ],
)
def test_the_page_fits_every_width_and_axe_finds_nothing(desk, cast, shop, axe, size, scheme):
    page = opened(
        desk, cast, shop, f"?table={shop['ids']['lines']}", size, color_scheme=scheme, bypass_csp=True
    )
    wide = "document.documentElement.scrollWidth"
    assert page.evaluate(wide) <= size[0]
    picture(page, f"width-{size[0]}-{scheme}")
    found = faults_found_by_axe(page, axe)
    page.goto(page.url.replace("table=", "relation=order_id&table="))
    found += faults_found_by_axe(page, axe)
    page.goto(page.url.split("?")[0] + "?view=table")
    assert page.evaluate(wide) <= size[0]
    found += faults_found_by_axe(page, axe)
    if size in (NARROWEST, MIDDLE):
        page.get_by_role("button", name="More", exact=True).click()
        page.get_by_role("button", name="Settings").click()
        found += faults_found_by_axe(page, axe)
        page.get_by_role("button", name="Done").click()
        page.get_by_role("button", name=re.compile("^Destination")).click()
        expect(page.locator("#file-form")).to_be_visible()
        found += faults_found_by_axe(page, axe)
    assert found == [], "\n".join(found)


def test_on_a_phone_the_diagram_is_a_list_and_the_drawer_a_sheet(desk, cast, shop):
    page = opened(desk, cast, shop, size=NARROWEST)
    expect(page.locator(".edges")).to_be_hidden()
    expect(page.locator(".tcard")).to_have_count(4)
    page.get_by_role("link", name="customers 1 : 1..5").click()
    expect(page.locator("#drawer h2")).to_contain_text("orders to customers")
    picture(page, "phone-relation")
    page.get_by_role("link", name="Close").click()
    expect(page.locator("#drawer")).to_be_hidden()
    page.get_by_label("Rows in products").fill("12")
    page.keyboard.press("Tab")
    expect(page.locator("#summary")).to_contain_text("72,512 rows")


def test_a_dataset_is_created_and_edited_without_javascript(desk, cast, shop, program):
    page = desk(cast.edith, java_script_enabled=False).page("/datasets/new")
    page.get_by_label("Name").fill("Plain")
    page.get_by_label(re.compile("^order_lines")).check()
    page.get_by_role("button", name="Create dataset").click()
    page.wait_for_url("**/datasets/dst_*")
    expect(page.locator(".tcard")).to_have_count(4)  # with the templates that it references
    page.get_by_label("Rows in customers").fill("11")
    page.get_by_role("button", name="Save changes").first.click()
    expect(card(page, "orders").locator(".calc")).to_have_text("33")
    card(page, "orders").get_by_role("heading").get_by_role("link").click()
    expect(page.locator("#drawer .grid tbody tr")).to_have_count(10)
    page.get_by_role("button", name="Remove table").click()
    expect(page.locator(".tcard")).to_have_count(3)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".tcard")).to_have_count(4)


def test_a_change_is_kept_while_the_server_cannot_be_reached(desk, cast, shop, program):
    browser = desk(cast.edith, MIDDLE)
    page = browser.page(f"/datasets/{shop['id']}")
    page.context.set_offline(True)
    page.get_by_label("Rows in customers").fill("77")
    page.keyboard.press("Tab")
    expect(page.locator("#state")).to_contain_text("not saved yet")
    page.context.set_offline(False)
    saved(page, 2)
    expect(page.get_by_label("Rows in customers")).to_have_value("77")
    assert browser.troubles
    browser.troubles.clear()  # the browser logs the request that failed

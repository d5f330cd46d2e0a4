"""A user builds a template in the browser with a preview of its rows."""

from __future__ import annotations

import re
import threading

import openpyxl
import pytest
from playwright.sync_api import expect

from jobs import exports
from tests.browser.builder import Builder
from webapp.extensions import db

TEN = ["id", "first_name", "last_name", "email", "phone", "city", "country", "price", "created_at", "status"]


@pytest.fixture
def ten(edith):
    """The builder with ten fields that are not saved."""
    return Builder(edith.page(f"/templates/new?names={','.join(TEN)}"))


@pytest.fixture
def saved(ten):
    ten.name("Customers")
    ten.save_new()
    return ten


def test_a_template_of_ten_fields_is_built_with_the_keyboard_only(edith):
    builder = Builder(edith.page("/templates"))
    keys = builder.page.keyboard
    builder.page.get_by_role("link", name="New template").focus()
    keys.press("Enter")
    builder.page.wait_for_url("**/templates/new")
    keys.type("Customers")  # the name has the focus
    builder.page.locator("[data-name]").first.focus()
    for number, name in enumerate(TEN):
        keys.press("Control+a")
        keys.type(name)
        if number < len(TEN) - 1:
            keys.press("Enter")  # to the next field, or to a new one
            expect(builder.page.locator("[data-name]").nth(number + 1)).to_be_focused()
    keys.press("Tab")
    expect(builder.row("status").locator(".pick")).to_have_text("Enum")  # a new field's type follows its name
    builder.previews(*TEN)
    keys.press("Control+s")
    builder.page.wait_for_url("**/templates/tpl_*")
    assert builder.names() == TEN


def test_rows_change_while_one_types(ten):
    before = ten.values()
    ten.row("first_name").locator("[data-name]").fill("first_names")
    ten.previews(*["first_names" if name == "first_name" else name for name in TEN])
    after = ten.values()
    assert after["first_names"] == before["first_name"]  # a rename changes no value
    ten.row("price").locator("input[name$='.o.min']").fill("5000")
    ten.row("price").locator("input[name$='.o.max']").fill("5001")
    expect(ten.preview.locator("tbody tr", has_text="price").locator("td").first).to_have_text(
        re.compile("^500")
    )
    assert ten.values()["email"] == before["email"]


def test_an_older_answer_never_replaces_a_newer_one(ten):
    slow = threading.Event()
    seen: list[str] = []

    def answer(route):
        seen.append(route.request.post_data)
        if len(seen) == 1:
            slow.wait(1.5)  # the first answer is held back until the second has come
        route.continue_()

    ten.page.route("**/builder/preview", answer)
    ten.page.locator("#seed").fill("first")
    ten.page.wait_for_timeout(600)
    ten.page.locator("#seed").fill("second")
    expect(ten.preview).to_contain_text("The seed second always produces")
    ten.page.wait_for_timeout(1_500)
    expect(ten.preview).to_contain_text("The seed second always produces")


def test_the_saved_template_makes_the_rows_of_the_draft(ten):
    before = ten.values()
    ten.name("Customers")
    ten.save_new()
    assert ten.values() == before


def test_an_error_is_shown_at_its_input_and_disappears_when_fixed(ten):
    price = ten.row("price")
    low, high = price.locator("input[name$='.o.min']"), price.locator("input[name$='.o.max']")
    low.fill("90")
    high.fill("10")
    expect(low).to_have_attribute("aria-invalid", "true")
    expect(price.locator(".errs")).to_contain_text("larger than max")
    high.fill("100")
    expect(low).not_to_have_attribute("aria-invalid", "true")
    expect(price.locator(".errs")).to_be_hidden()


def test_a_type_is_picked_by_searching_for_it(ten):
    ten.row("phone").locator(".pick").press("Enter")
    search = ten.page.get_by_label("Search types")
    expect(search).to_be_focused()
    expect(ten.page.locator("#t-phone_number")).to_have_attribute("aria-selected", "true")
    search.fill("bank account")
    search.press("ArrowDown")
    search.press("ArrowUp")
    search.fill("iban")
    expect(ten.page.locator("#t-iban")).to_have_attribute("aria-selected", "true")
    search.press("Enter")
    expect(ten.row("phone").locator(".pick")).to_have_text("IBAN")
    expect(ten.row("phone").locator(".pick")).to_be_focused()
    expect(ten.preview.locator("tbody tr", has_text="phone").locator("td").first).to_have_text(
        re.compile(r"^[A-Z]{2}\d\d")
    )


def test_the_best_match_is_first_also_with_a_typing_error(ten):
    ten.row("phone").locator(".pick").click()
    search, seen = ten.page.get_by_label("Search types"), ten.page.locator("#picker-list [role=option]:visible b")
    count = seen.count()
    for typed, first in (("zip", "Postal code"), ("mail", "E-mail"), ("emial", "E-mail"), ("cit", "City")):
        search.fill(typed)
        expect(seen.first).to_have_text(first)
        expect(ten.page.locator("#picker-list [aria-selected=true] b")).to_have_text(first)
    search.fill("")
    expect(seen).to_have_count(count)  # every type is back in its family
    expect(ten.page.locator("#t-phone_number")).to_have_attribute("aria-selected", "true")


def test_a_search_without_results_suggests_what_to_do(ten):
    ten.row("phone").locator(".pick").click()
    ten.page.get_by_label("Search types").fill("zzzz")
    expect(ten.page.locator("[data-none]")).to_be_visible()
    ten.page.keyboard.press("Escape")  # browsers empty a search first
    ten.page.keyboard.press("Escape")
    expect(ten.page.locator("#picker")).to_be_hidden()
    expect(ten.row("phone").locator(".pick")).to_have_text("Phone number")


def test_fields_move_by_buttons_keys_and_dragging_and_keep_their_values(ten):
    before = ten.values()
    ten.row("email").get_by_role("button", name="Move up").first.click()
    ten.row("email").locator("[data-name]").press("Alt+ArrowUp")
    order = ["id", "email", "first_name", "last_name", *TEN[4:]]
    ten.previews(*order)
    ten.row("status").locator(".grip").drag_to(
        ten.row("id").locator(".c-type"), target_position={"x": 20, "y": 2}
    )
    order = ["status", *[name for name in order if name != "status"]]
    ten.previews(*order)
    assert ten.values() == before
    ten.name("Moved")
    ten.save_new()
    assert ten.names() == order


def test_a_deleted_field_comes_back_where_it_was(ten):
    ten.row("city").get_by_role("button", name="Delete").first.click()
    ten.previews(*[name for name in TEN if name != "city"])
    expect(ten.row("country").locator("[data-name]")).to_be_focused()
    ten.page.get_by_role("button", name="Undo").click()
    ten.previews(*TEN)
    assert ten.names() == TEN


def test_fields_are_duplicated_inserted_and_pasted(ten):
    ten.row("price").get_by_role("button", name="Duplicate").first.click()
    ten.previews(*TEN[:8], "price_2", *TEN[8:])
    ten.row("id").hover()
    ten.row("id").get_by_role("button", name="Insert a field here").click()
    expect(ten.row("").locator("[data-name]")).to_be_focused()
    ten.page.keyboard.type("nick")
    ten.previews("id", "nick", *TEN[1:8], "price_2", *TEN[8:])
    ten.page.get_by_role("button", name="Paste names").click()
    ten.page.get_by_label("Names, one a line").fill("zip_code\nborn: date")
    ten.page.get_by_role("button", name="Add the fields").click()
    ten.previews("id", "nick", *TEN[1:8], "price_2", *TEN[8:], "zip_code", "born")
    expect(ten.row("born").locator(".pick")).to_have_text("Date")


def test_fields_are_put_inside_a_field(ten):
    ten.row("status").locator(".pick").click()
    ten.page.get_by_label("Search types").fill("nested")
    ten.page.keyboard.press("Enter")
    ten.row("status").get_by_role("button", name="Field inside").click()
    expect(ten.row("").locator("[data-name]")).to_be_focused()
    ten.page.keyboard.type("sku")
    ten.page.keyboard.press("Tab")
    ten.previews(*TEN[:9], "status.sku")
    ten.row("status").locator("[data-name]").press("Alt+ArrowUp")  # nested fields move with it
    ten.previews(*TEN[:8], "status.sku", "created_at")


def test_an_opened_row_shows_all_options_and_keeps_them_when_closed(ten):
    price = ten.row("price")
    price.get_by_role("button", name="More options").click()
    ten.row("price").get_by_label("Prefix").fill("EUR ")
    expect(ten.preview.locator("tbody tr", has_text="price").locator("td").first).to_have_text(
        re.compile("^EUR ")
    )
    ten.row("price").get_by_role("button", name="More options").click()
    expect(ten.row("price").locator(".c-opts .opts")).to_contain_text("prefix EUR")
    ten.name("Prefixed")
    ten.save_new()
    assert all(value.startswith("EUR ") for value in ten.values()["price"])


def test_json_and_fields_follow_each_other(ten):
    ten.tab("JSON")
    text = ten.page.locator("#json-text")
    expect(text).to_have_value(re.compile('"name": "first_name"'))
    text.fill(text.input_value().replace('"name": "first_name"', '"name": "given"'))
    expect(ten.page.locator("#json-state")).to_contain_text("10 fields")
    ten.tab("Fields")
    ten.previews(*["given" if name == "first_name" else name for name in TEN])
    ten.tab("JSON")
    expect(text).to_have_value(re.compile('"name": "given"'))
    text.fill("{")
    expect(ten.page.locator("#json-state .err")).to_contain_text("Line 1")
    ten.tab("Fields")
    assert len(ten.names()) == 10


def test_any_page_of_a_million_rows_is_a_moment_away(ten):
    ten.page.get_by_label("Rows", exact=True).fill("1000000")
    ten.page.get_by_role("button", name="Generate").click()
    expect(ten.page.locator("#grid")).to_contain_text("Rows 1 to 25 of 1,000,000")
    ten.page.get_by_label("Go to row").fill("999999")
    ten.page.keyboard.press("Enter")
    expect(ten.page.locator("#grid")).to_contain_text("Rows 999,976 to 1,000,000")
    ten.page.get_by_role("button", name="Earlier rows").click()
    expect(ten.page.locator("#grid")).to_contain_text("Rows 999,951 to 999,975")


def test_versions_are_compared_and_restored(saved):
    saved.row("city").get_by_role("button", name="Delete").first.click()
    saved.save(2)
    saved.tab("Versions")
    saved.page.locator("#versions tr", has_text="v1").get_by_role("button", name="Compare").click()
    expect(saved.page.locator("#diff")).to_contain_text("city removed")
    saved.page.locator("#versions tr", has_text="v1").get_by_role("button", name="Restore").click()
    expect(saved.page.locator("#saved .badge")).to_have_text("v3")
    assert saved.names() == TEN


def test_two_users_who_save_concurrently_see_both_versions(saved, desk, cast):
    other = Builder(desk(cast.adam).page(saved.page.url.removeprefix(saved.page.url.split("/templates")[0])))
    other.row("phone").get_by_role("button", name="Delete").first.click()
    other.save(2)
    saved.row("email").locator("[data-name]").fill("mail")
    saved.page.keyboard.press("Control+s")
    clash = saved.page.locator("#clash")
    expect(clash).to_contain_text("Version 2 was saved while you edited version 1")
    expect(clash).to_contain_text("phone removed")
    expect(clash).to_contain_text("mail")
    clash.get_by_role("button", name="Keep both").click()
    saved.page.wait_for_url("**/templates/tpl_*")
    expect(saved.page.get_by_label("Name of the template")).to_have_value("Customers (copy)")
    assert "mail" in saved.names()


def test_leaving_with_changes_is_asked_about_and_saving_ends_that(saved):
    asked = []
    saved.page.on("dialog", lambda dialog: asked.append(dialog.type))
    saved.row("email").locator("[data-name]").fill("emails")
    saved.save(2)
    saved.page.goto(saved.page.url)
    assert asked == []
    saved.row("emails").locator("[data-name]").fill("mails")
    saved.page.reload()
    assert asked == ["beforeunload"]


# Export


def test_an_exported_xlsx_opens_with_the_rows_of_the_preview(saved, tmp_path):
    shown = saved.values()
    saved.page.get_by_role("button", name="Export").click()
    dialog = saved.page.locator("#export")
    dialog.get_by_text("XLSX").click()
    dialog.get_by_label("Rows", exact=True).fill("250")
    expect(dialog.locator("#estimate")).to_contain_text(re.compile(r"about [\d.]+ kB"))
    with saved.page.expect_download() as download:
        dialog.get_by_role("button", name="Download").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name == "Customers.xlsx"
    book = openpyxl.load_workbook(path)
    rows = list(book.active.iter_rows(values_only=True))
    assert list(rows[0]) == TEN
    assert len(rows) == 251
    for column in ("id", "first_name", "email", "city", "status"):
        assert [row[TEN.index(column)] for row in rows[1:4]] == shown[column]


def test_an_export_in_the_background_is_followed_to_its_download(saved, app, tmp_path):
    saved.page.get_by_role("button", name="Export").click()
    dialog = saved.page.locator("#export")
    dialog.get_by_label("Rows", exact=True).fill("30000")
    dialog.get_by_role("button", name="In the background").click()
    saved.page.wait_for_url("**/exports/exp_*")
    expect(saved.page.locator("#work")).to_contain_text("waiting for a worker")
    with app.app_context():
        exports.run(saved.page.url.rsplit("/", 1)[1])
        db.session.remove()
    expect(saved.page.locator("#work")).to_contain_text("completed")
    with saved.page.expect_download() as download:
        saved.page.get_by_role("link", name="Download").click()
    download.value.save_as(tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text().count("\n") == 30_001


def test_a_rejected_export_does_not_change_the_dialog_and_the_page(saved):
    saved.row("email").locator("[data-name]").fill("emails")  # not saved
    saved.page.get_by_role("button", name="Export").click()
    dialog = saved.page.locator("#export")
    dialog.get_by_label("Seed").fill("kept")
    dialog.get_by_label("Locale").fill("xx_YY")
    expect(dialog.locator("#estimate .err")).to_be_visible()
    dialog.locator("#estimate").evaluate("node => node.replaceChildren()")  # as if nothing had been said yet
    dialog.get_by_role("button", name="In the background").click()
    expect(dialog.locator("#estimate .err")).to_contain_text("Locale")
    expect(dialog.get_by_label("Locale")).to_have_accessible_description(re.compile("xx_YY"))
    dialog.get_by_role("button", name="Download").click()
    expect(dialog.locator("#estimate .err")).to_be_visible()
    expect(dialog.get_by_label("Seed")).to_have_value("kept")
    assert "emails" in saved.names()


def test_errors_of_an_export_are_at_their_fields_until_they_are_corrected(saved):
    saved.page.get_by_role("button", name="Export").click()
    dialog = saved.page.locator("#export")
    rows, seed = dialog.get_by_label("Rows", exact=True), dialog.get_by_label("Seed")
    rows.fill("0")
    expect(rows).to_have_attribute("aria-invalid", "true")
    expect(rows).to_have_accessible_description(re.compile("1"))
    expect(dialog.locator(".field:has(#x-count) .err")).to_be_visible()
    expect(dialog.locator("#estimate")).to_contain_text("Correct this field: Rows.")
    assert seed.get_attribute("aria-invalid") is None
    dialog.get_by_role("button", name="In the background").click()
    expect(dialog.locator(".field:has(#x-count) .err")).to_have_count(1)
    rows.fill("5")
    expect(dialog.locator("#estimate")).to_contain_text("about")
    expect(dialog.locator(".field .err")).to_have_count(0)
    assert (rows.get_attribute("aria-invalid"), rows.get_attribute("aria-describedby")) == (None, None)
    assert "export" in saved.page.evaluate("document.querySelector('dialog[open]').id")


def test_an_export_in_the_background_asks_before_changes_are_left_behind(saved):
    asked = []
    saved.page.on("dialog", lambda dialog: asked.append(dialog.type))
    saved.row("email").locator("[data-name]").fill("emails")
    saved.page.get_by_role("button", name="Export").click()
    saved.page.locator("#export").get_by_role("button", name="In the background").click()
    saved.page.wait_for_url("**/exports/exp_*")
    assert asked == ["beforeunload"]


def test_an_export_is_cancelled_on_its_page(saved):
    saved.page.get_by_role("button", name="Export").click()
    saved.page.locator("#export").get_by_role("button", name="In the background").click()
    saved.page.wait_for_url("**/exports/exp_*")
    saved.page.get_by_role("button", name="Cancel").click()
    expect(saved.page.locator("#work")).to_contain_text("cancelled")

"""A user builds a template in the browser: rows are the canvas, and drafts save themselves."""

from __future__ import annotations

import csv
import re

import openpyxl
import pytest
from playwright.sync_api import expect

from jobs import exports
from tests.browser.builder import Builder
from tests.browser.conftest import NARROW
from tests.browser.looking import axe, faults_found_by_axe  # noqa: F401 - a fixture
from webapp.extensions import db

TEN = ["id", "first_name", "last_name", "email", "phone", "city", "country", "price", "created_at", "status"]

PASTES = """text => {
    const clipboardData = new DataTransfer(), how = { clipboardData, bubbles: true, cancelable: true };
    clipboardData.setData('text', text);
    document.querySelector('#add-name').dispatchEvent(new ClipboardEvent('paste', how));
}"""


@pytest.fixture
def ten(edith):
    """The builder with ten fields that are not saved."""
    return Builder(edith.page(f"/templates/new?names={','.join(TEN)}"))


@pytest.fixture
def saved(ten):
    ten.name("Customers")
    ten.save_new()
    return ten


def slow(page, milliseconds: int = 250) -> None:
    """Every answer of the server takes this long."""
    page.route("**/builder/**", lambda route: (page.wait_for_timeout(milliseconds), route.continue_()))


def test_a_thousand_customers_are_downloaded_in_three_clicks(edith):
    page = edith.page("/templates")
    clicks = []
    page.expose_function("clicked", lambda: clicks.append(1))
    page.add_init_script("addEventListener('click', () => window.clicked(), true)")
    page.reload()
    page.get_by_role("link", name="New template").first.click()
    page.get_by_role("link", name="Shop customers").click()
    with page.expect_download() as found:
        page.get_by_role("button", name="Download", exact=True).click()
    rows = list(csv.DictReader(found.value.path().read_text().splitlines()))
    assert found.value.suggested_filename == "customers.csv"
    assert len(rows) == 1000
    assert "@" in rows[0]["email"]
    assert len(clicks) == 3


def test_a_template_is_built_with_the_keyboard_only(edith):
    builder = Builder(edith.page("/templates/new?names=id"))
    keys = builder.page.keyboard
    keys.press("Alt+n")
    expect(builder.page.locator("#add-name")).to_be_focused()
    for name in TEN[1:]:
        keys.type(name)
        keys.press("Enter")  # adds the field and waits for the next name
    builder.shows(*TEN)
    keys.press("Escape")
    builder.head("status").focus()
    keys.press("ArrowLeft")
    expect(builder.head("created_at")).to_be_focused()
    keys.press("Home")
    expect(builder.head("id")).to_be_focused()
    keys.press("F2")
    expect(builder.inspector.get_by_label("Field name")).to_be_focused()
    keys.type("key")
    builder.shows("key", *TEN[1:])
    keys.press("Escape")
    expect(builder.head("key")).to_be_focused()
    builder.page.get_by_label("Name of the template").focus()
    keys.type("Customers")
    keys.press("Control+s")
    builder.page.wait_for_url("**/templates/tpl_*")
    builder.shows("key", *TEN[1:])


def test_the_grid_follows_what_is_typed(ten):
    before = ten.values()
    field = ten.open("first_name")
    field.get_by_label("Field name").fill("first_names")
    ten.shows(*["first_names" if name == "first_name" else name for name in TEN])
    after = ten.values()
    assert after["first_names"] == before["first_name"]  # a rename changes no value
    field = ten.open("price")
    field.get_by_label("Min", exact=True).fill("5000")
    field.get_by_label("Max", exact=True).fill("5001")
    expect(ten.cell("price")).to_have_text(re.compile("^500"))
    assert ten.values()["email"] == before["email"]


def test_nothing_typed_is_lost_when_answers_are_slow(ten):
    field = ten.open("price")
    slow(ten.page)
    low = field.get_by_label("Min", exact=True)
    low.press_sequentially("1234", delay=120)  # answers come between the keys
    field.get_by_label("Max", exact=True).press_sequentially("98765", delay=120)
    expect(ten.state).to_contain_text("Unsaved changes")
    field.locator("[data-pick]").click()
    ten.page.get_by_label("Search types").fill("number")
    ten.page.keyboard.press("Enter")  # another type draws the inspector again
    expect(ten.page.locator("#picker")).to_be_hidden()
    name = field.get_by_label("Field name")
    name.fill("")
    name.press_sequentially("amount_in_euros", delay=60)
    ten.shows(*["amount_in_euros" if name == "price" else name for name in TEN])
    expect(name).to_have_value("amount_in_euros")
    expect(name).to_be_focused()
    expect(field.get_by_label("Min", exact=True)).to_have_value("1234")
    expect(field.get_by_label("Max", exact=True)).to_have_value("98765")


def test_a_draft_saves_itself_and_is_continued(ten):
    ten.open("city").get_by_label("Field name").fill("town")
    expect(ten.state).to_contain_text("Unsaved changes")
    ten.page.goto(ten.page.url.split("?")[0])
    ten.page.get_by_role("link", name="Continue").click()
    ten.shows(*["town" if name == "city" else name for name in TEN])


def test_leaving_at_once_loses_nothing(saved):
    address = saved.page.url
    saved.open("city").get_by_label("Field name").fill("town")
    saved.page.goto("about:blank")  # before the change was sent
    for _ in range(20):  # the browser sends it after the page has gone
        saved.page.goto(address)
        if saved.page.locator(".colhead b", has_text="town").count():
            break
        saved.page.wait_for_timeout(250)
    expect(saved.page.locator(".colhead b", has_text="town")).to_be_visible()


def test_every_change_is_undone_and_redone_by_keyboard(saved):
    keys = saved.page.keyboard
    field = saved.open("city")
    field.get_by_label("Field name").fill("town")
    renamed = ["town" if name == "city" else name for name in TEN]
    saved.shows(*renamed)
    field.get_by_role("button", name="Move left").click()
    moved = [*TEN[:4], "town", "phone", *TEN[6:]]
    saved.shows(*moved)
    field.get_by_role("button", name="Delete").click()
    saved.shows(*[name for name in moved if name != "town"])
    for names in (moved, renamed, TEN):
        keys.press("Control+z")
        saved.shows(*names)
    expect(saved.state).not_to_contain_text("Unsaved")
    keys.press("Control+Shift+Z")
    saved.shows(*renamed)
    saved.page.reload()  # the steps are on the server
    keys.press("Control+z")
    saved.shows(*TEN)


def test_a_change_is_undone_past_a_save(saved):
    saved.open("city").get_by_label("Field name").fill("town")
    expect(saved.state).to_contain_text("Unsaved changes")
    saved.save(2)
    saved.page.keyboard.press("Escape")
    saved.page.keyboard.press("Control+z")
    saved.shows(*TEN)
    expect(saved.state).to_contain_text("Unsaved changes")
    saved.page.keyboard.press("Control+Shift+z")
    saved.shows(*["town" if name == "city" else name for name in TEN])
    saved.page.keyboard.press("Control+z")
    saved.shows(*TEN)
    saved.save(3)
    saved.page.reload()
    saved.shows(*TEN)


def test_a_reload_keeps_unsaved_changes(saved):
    saved.open("city").get_by_label("Field name").fill("town")
    saved.page.reload()  # before the change was sent
    saved.shows(*["town" if name == "city" else name for name in TEN])
    expect(saved.state).to_contain_text("Unsaved changes")


def test_escape_closes_the_picker_and_then_the_inspector(ten):
    field = ten.open("city")
    button = field.locator("[data-pick]")
    before = button.inner_text()
    button.press("Enter")
    search = ten.page.get_by_label("Search types")
    search.fill("uuid")
    expect(ten.page.locator("#t-uuid")).to_have_attribute("aria-selected", "true")
    ten.page.keyboard.press("Escape")
    expect(ten.page.locator("#picker")).to_be_hidden()
    expect(button).to_be_focused()
    expect(button).to_have_text(before)
    ten.page.keyboard.press("Escape")
    expect(field.locator(".insp")).to_have_count(0)
    expect(ten.page.locator(".colhead", has_text="city")).to_be_focused()


def test_enter_never_saves_and_the_focus_stays(saved):
    name = saved.open("city").get_by_label("Field name")
    name.fill("town")
    name.press("Enter")
    expect(saved.page.locator(".colhead b", has_text="town")).to_be_visible()
    expect(name).to_be_focused()
    expect(saved.state).to_contain_text("Unsaved changes")
    saved.page.locator("#main").focus()
    saved.page.keyboard.press("Tab")
    assert saved.page.evaluate("document.activeElement.value") != "save"
    assert saved.page.locator("button.sr").count() == 0


def test_an_error_is_shown_in_its_column_and_the_others_keep_their_rows(ten):
    emails = ten.values()["email"]
    field = ten.open("price")
    field.get_by_label("Min", exact=True).fill("90")
    field.get_by_label("Max", exact=True).fill("10")
    expect(ten.page.locator(".errcell")).to_contain_text("larger than max")
    expect(ten.page.locator(".heads .err")).to_have_count(1)
    expect(ten.page.locator("#issues")).to_contain_text("1 field needs attention")
    assert ten.page.locator(".cells tbody tr").nth(1).locator("td").nth(3).inner_text() == emails[1]
    ten.name("Customers")
    ten.open("city")
    ten.page.locator("#save").click()
    expect(ten.page.locator("#toasts")).to_contain_text("1 field needs attention")
    expect(field.get_by_label("Min", exact=True)).to_be_focused()
    field.get_by_label("Max", exact=True).fill("100")
    expect(ten.page.locator(".errcell")).to_have_count(0)
    expect(field.get_by_label("Min", exact=True)).not_to_have_attribute("aria-invalid", "true")


def test_a_file_has_what_is_on_the_screen(ten):
    ten.open("city").get_by_label("Field name").fill("town")
    with ten.page.expect_download() as found:
        ten.page.get_by_role("button", name="Download", exact=True).click()  # before the change was sent
    lines = found.value.path().read_text().splitlines()
    assert lines[0].split(",")[5] == "town"
    assert len(lines) == 1001
    ten.page.get_by_role("button", name="Download options").click()
    ten.page.get_by_label("Rows", exact=True).fill("7")
    with ten.page.expect_download() as found:
        ten.page.get_by_role("button", name="JSON One array").click()
    assert found.value.path().read_text().count('"town"') == 7


def test_a_type_is_picked_by_searching_for_it(ten):
    field = ten.open("phone")
    field.locator("[data-pick]").press("Enter")
    search = ten.page.get_by_label("Search types")
    expect(search).to_be_focused()
    expect(ten.page.locator("#t-phone_number")).to_have_attribute("aria-selected", "true")
    search.fill("bank account")
    search.press("ArrowDown")
    search.press("ArrowUp")
    search.fill("iban")
    expect(ten.page.locator("#t-iban")).to_have_attribute("aria-selected", "true")
    search.press("Enter")
    expect(field.locator("[data-pick]")).to_have_text("IBAN")
    expect(field.locator("[data-pick]")).to_be_focused()
    # Rows of countries without IBANs have an account number instead.
    expect(ten.cell("phone")).to_have_text(re.compile(r"^[A-Z0-9][A-Z0-9 -]{5,}$"))


def test_the_best_match_is_first_also_with_a_typing_error(ten):
    ten.open("phone").locator("[data-pick]").click()
    search, seen = (
        ten.page.get_by_label("Search types"),
        ten.page.locator("#picker-list [role=option]:visible b"),
    )
    expect(seen.first).to_be_visible()
    count = seen.count()
    for typed, first in (("zip", "Postal code"), ("mail", "E-mail"), ("emial", "E-mail"), ("cit", "City")):
        search.fill(typed)
        expect(seen.first).to_have_text(first)
        expect(ten.page.locator("#picker-list [aria-selected=true] b")).to_have_text(first)
    search.fill("")
    expect(seen).to_have_count(count)  # every type is back in its family
    expect(ten.page.locator("#t-phone_number")).to_have_attribute("aria-selected", "true")


def test_a_search_without_results_suggests_what_to_do(ten):
    field = ten.open("phone")
    field.locator("[data-pick]").click()
    ten.page.get_by_label("Search types").fill("zzzz")
    expect(ten.page.locator("[data-none]")).to_be_visible()
    ten.page.keyboard.press("Escape")
    expect(ten.page.locator("#picker")).to_be_hidden()
    expect(field.locator("[data-pick]")).to_have_text("Phone number")


def test_fields_move_by_buttons_and_keys_and_keep_their_values(ten):
    before = ten.values()
    ten.open("email").get_by_role("button", name="Move left").click()
    order = ["id", "first_name", "email", "last_name", *TEN[4:]]
    ten.shows(*order)
    ten.head("email").press("Alt+ArrowLeft")
    order = ["id", "email", "first_name", "last_name", *TEN[4:]]
    ten.shows(*order)
    expect(ten.head("email")).to_be_focused()
    assert ten.values() == before


def test_fields_are_duplicated_inserted_and_pasted(ten):
    ten.open("price").get_by_role("button", name="Duplicate").click()
    ten.shows(*TEN[:8], "price_2", *TEN[8:])
    ten.open("id").get_by_role("button", name="Insert").click()
    expect(ten.inspector.get_by_label("Field name")).to_be_focused()
    ten.page.keyboard.type("nick")
    ten.shows("id", "nick", *TEN[1:8], "price_2", *TEN[8:])
    ten.page.get_by_role("button", name="More", exact=True).click()
    ten.page.get_by_role("button", name="Paste field names").click()
    ten.page.get_by_label("One name per line").fill("zip_code\nborn: date")
    ten.page.get_by_role("button", name="Add fields").click()
    ten.shows("id", "nick", *TEN[1:8], "price_2", *TEN[8:], "zip_code", "born")
    expect(ten.head("born")).to_contain_text("Date")


def test_fields_are_put_inside_a_field(ten):
    field = ten.open("status")
    ten.pick("nested")
    field.get_by_role("button", name="Add a field inside").click()
    expect(field.get_by_label("Field name")).to_be_focused()
    ten.page.keyboard.type("sku")
    ten.pick("sku")
    expect(ten.cell("status")).to_contain_text('"sku"')
    field.get_by_role("link", name="Open status").click()
    expect(field.get_by_label("Field name")).to_have_value("status")
    expect(field.locator(".nested")).to_contain_text("sku")


def test_the_inspector_shows_the_distribution_and_only_its_parameters(ten):
    field = ten.open("price")
    ten.pick("number")
    expect(field.locator(".hist")).to_be_visible()
    expect(field.get_by_label("Mean", exact=True)).to_have_count(0)
    field.get_by_label("Distribution", exact=True).select_option("normal")
    expect(field.get_by_label("Mean", exact=True)).to_be_visible()
    expect(field.get_by_label("Alpha")).to_have_count(0)
    ten.part("Format")
    field.get_by_label("Prefix").fill("EUR ")
    expect(ten.cell("price")).to_have_text(re.compile("^EUR "))


def test_json_and_the_grid_are_two_views_of_one_draft(ten):
    ten.open("city").get_by_label("Field name").fill("town")
    expect(ten.state).to_contain_text("Unsaved")
    ten.view("JSON")
    text = ten.page.locator("#json-text")
    expect(text).to_have_value(re.compile('"town"'))
    text.fill(text.input_value().replace('"town"', '"place"'))
    expect(ten.page.locator("#undo")).to_have_attribute("title", re.compile("JSON"))
    text.fill("{")
    expect(ten.page.locator("#json-state .err")).to_contain_text("Line 1")
    ten.page.locator("#undo").click()
    expect(text).to_have_value(re.compile('"town"'))
    ten.page.locator("#redo").click()
    expect(text).to_have_value(re.compile('"place"'))
    text.fill(text.input_value().replace('"place"', '"spot"'))
    ten.view("Grid")  # before the edit was sent
    ten.shows(*["spot" if name == "city" else name for name in TEN])


@pytest.mark.parametrize("view", ["json", "api", "versions"])
def test_a_template_is_renamed_in_every_view(saved, view):
    saved.page.goto(f"{saved.page.url.split('?')[0]}?view={view}")
    saved.name("Clients")
    expect(saved.state).to_contain_text("Unsaved changes")
    saved.save(2)


def test_later_rows_of_a_million_are_a_moment_away(saved):
    settings = saved.settings()
    settings.get_by_label("Default number of rows").fill("1000000")
    expect(saved.page.locator("#status")).to_contain_text("of 1,000,000")
    saved.page.get_by_role("button", name="Later rows").click()
    expect(saved.page.locator("#status")).to_contain_text("Rows 51–100")
    saved.page.get_by_role("button", name="Earlier rows").click()
    expect(saved.page.locator("#status")).to_contain_text("Rows 1–50")


def test_the_list_of_many_fields_is_filtered_and_changed_together(edith):
    names = [f"{part}_{number}" for number in range(50) for part in ("city", "email", "total")]
    builder = Builder(edith.page("/templates/new?names=a"))
    builder.page.keyboard.press("Alt+n")
    builder.page.locator("#add-name").fill("x")
    builder.page.evaluate(PASTES, "\n".join(names))
    expect(builder.page.locator("#count")).to_have_text("151")
    builder.view("List")
    lines = builder.page.locator(".flist tbody tr:visible")
    builder.page.get_by_label("Filter fields").fill("email")
    expect(lines).to_have_count(50)
    expect(builder.page.locator("#filtered")).to_have_text("50 of 151 fields")
    builder.page.get_by_label("Select all fields that are shown").check()
    expect(builder.page.locator("#picked")).to_have_text("50 selected")
    builder.page.get_by_role("button", name="Sensitive").click()
    expect(builder.page.locator(".flist td.st", has_text="Sensitive")).to_have_count(50)
    expect(lines).to_have_count(50)  # the filter stays
    builder.page.get_by_label("Select all fields that are shown").check()
    builder.page.locator("#bulk").get_by_role("button", name="Delete").click()
    expect(builder.page.locator(".flist tbody tr")).to_have_count(101)
    builder.page.keyboard.press("Control+z")
    expect(builder.page.locator(".flist tbody tr")).to_have_count(151)


def test_versions_are_compared_and_restored(saved):
    saved.open("city").get_by_role("button", name="Delete").click()
    saved.shows(*[name for name in TEN if name != "city"])
    saved.save(2)
    saved.page.get_by_role("link", name="v2").click()
    lines = saved.page.locator("table tr", has_text="v1")
    lines.get_by_role("button", name="Compare").click()
    expect(saved.page.locator("#diff")).to_contain_text("city removed")
    lines.get_by_role("button", name="Restore").click()
    expect(saved.state).to_contain_text("v3")
    saved.shows(*TEN)


def test_two_users_who_save_concurrently_see_both_versions(saved, desk, cast):
    path = saved.page.url.partition("?")[0].removeprefix(saved.page.url.split("/templates")[0])
    saved.open("email").get_by_label("Field name").fill("mail")
    expect(saved.state).to_contain_text("Unsaved")
    other = Builder(desk(cast.adam).page(path))
    other.open("phone").get_by_role("button", name="Delete").click()
    other.shows(*[name for name in TEN if name != "phone"])
    other.save(2)
    saved.page.keyboard.press("Control+s")
    clash = saved.page.locator("#clash")
    expect(clash).to_contain_text("Version 2 was saved while you edited version 1")
    expect(clash).to_contain_text("phone removed")
    expect(clash).to_contain_text("mail")
    clash.get_by_role("button", name="Save mine as a copy").click()
    expect(saved.page.get_by_label("Name of the template")).to_have_value("Customers (copy)")
    saved.shows(*["mail" if name == "email" else name for name in TEN])


def test_the_builder_fits_a_phone(desk, cast):
    builder = Builder(desk(cast.edith, NARROW).page(f"/templates/new?names={','.join(TEN)}"))
    assert builder.page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    builder.open("first_name")
    assert builder.page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    builder.inspector.get_by_role("link", name="Close").click()
    expect(builder.inspector).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_builder(desk, cast, axe, scheme):
    window = desk(cast.edith, color_scheme=scheme, bypass_csp=True)
    builder = Builder(window.page(f"/templates/new?names={','.join(TEN)}"))
    found = faults_found_by_axe(builder.page, axe)
    field = builder.open("price")
    expect(field.locator(".stats")).to_be_visible()
    field.get_by_label("Min", exact=True).fill("90000")
    expect(builder.page.locator(".errcell")).to_be_visible()
    for part in ("Values", "Format", "Rules", "Privacy"):
        builder.part(part)
        found += faults_found_by_axe(builder.page, axe)
    builder.settings()
    found += faults_found_by_axe(builder.page, axe)
    for view in ("List", "JSON"):
        builder.view(view)
        found += faults_found_by_axe(builder.page, axe)
    assert found == []


# Export


def export_dialog(saved) -> None:
    saved.page.get_by_role("button", name="Download options").click()
    saved.page.get_by_role("link", name="All options").click()


def test_an_exported_xlsx_opens_with_the_rows_of_the_preview(saved, tmp_path):
    shown = saved.values()
    export_dialog(saved)
    dialog = saved.page.locator("#export")
    dialog.get_by_text("XLSX").click()
    dialog.get_by_label("Rows", exact=True).fill("250")
    expect(dialog.locator("#estimate")).to_contain_text(re.compile(r"about\s+[\d.]+ kB"))
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
        assert [str(row[TEN.index(column)]) for row in rows[1:4]] == shown[column]


def test_an_export_in_the_background_is_followed_to_its_download(saved, app, tmp_path):
    export_dialog(saved)
    dialog = saved.page.locator("#export")
    dialog.get_by_label("Rows", exact=True).fill("30000")
    dialog.get_by_role("button", name="Run in background").click()
    saved.page.wait_for_url("**/exports/exp_*")
    expect(saved.page.locator("#work")).to_contain_text("waiting for a worker")
    with app.app_context():
        exports.run(saved.page.url.rsplit("/", 1)[1])
        db.session.remove()
    expect(saved.page.locator("#work")).to_contain_text("Completed")
    with saved.page.expect_download() as download:
        saved.page.get_by_role("link", name="Download").click()
    download.value.save_as(tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text().count("\n") == 30_001


def test_a_rejected_export_does_not_change_the_dialog_and_the_page(saved):
    saved.open("email").get_by_label("Field name").fill("emails")  # not saved
    expect(saved.state).to_contain_text("Unsaved")
    export_dialog(saved)
    dialog = saved.page.locator("#export")
    dialog.get_by_label("Seed").fill("kept")
    dialog.get_by_label("Locale").fill("xx_YY")
    expect(dialog.locator("#estimate .err")).to_be_visible()
    dialog.locator("#estimate").evaluate("node => node.replaceChildren()")  # as if nothing had been said yet
    dialog.get_by_role("button", name="Run in background").click()
    expect(dialog.locator("#estimate .err")).to_contain_text("Locale")
    expect(dialog.get_by_label("Locale")).to_have_accessible_description(re.compile("xx_YY"))
    dialog.get_by_role("button", name="Download").click()
    expect(dialog.locator("#estimate .err")).to_be_visible()
    expect(dialog.get_by_label("Seed")).to_have_value("kept")
    assert "emails" in saved.names()


def test_errors_of_an_export_are_at_their_fields_until_they_are_corrected(saved):
    export_dialog(saved)
    dialog = saved.page.locator("#export")
    rows, seed = dialog.get_by_label("Rows", exact=True), dialog.get_by_label("Seed")
    rows.fill("0")
    expect(rows).to_have_attribute("aria-invalid", "true")
    expect(rows).to_have_accessible_description(re.compile("1"))
    expect(dialog.locator(".field:has(#x-count) .err")).to_be_visible()
    expect(dialog.locator("#estimate")).to_contain_text("Correct this field: Rows.")
    assert seed.get_attribute("aria-invalid") is None
    dialog.get_by_role("button", name="Run in background").click()
    expect(dialog.locator(".field:has(#x-count) .err")).to_have_count(1)
    rows.fill("5")
    expect(dialog.locator("#estimate")).to_contain_text("about")
    expect(dialog.locator(".field .err")).to_have_count(0)
    assert (rows.get_attribute("aria-invalid"), rows.get_attribute("aria-describedby")) == (None, None)
    assert "export" in saved.page.evaluate("document.querySelector('dialog[open]').id")


def test_an_export_is_cancelled_on_its_page(saved):
    export_dialog(saved)
    saved.page.locator("#export").get_by_role("button", name="Run in background").click()
    saved.page.wait_for_url("**/exports/exp_*")
    saved.page.get_by_role("button", name="Cancel").click()
    expect(saved.page.locator("#work")).to_contain_text("Cancelled")

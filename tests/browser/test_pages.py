"""Pages in a real browser: signing in, keys, themes, no script, hostile content, what opens on them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.builder import Builder
from tests.browser.looking import axe, faults_found_by_axe  # noqa: F401
from tests.pages import filled_with_payloads

FIELDS = [{"name": "id", "type": "uuid"}, {"name": "email", "type": "email"}]


@pytest.fixture
def template(api, cast):
    return api(cast.edith).post("/templates", json={"name": "Orders", "fields": FIELDS}).json


def test_a_one_time_link_signs_in_once(desk, cast):
    first = desk(cast.edith)  # came by a link
    page = first.page("/templates")
    expect(page.get_by_role("button", name="Your account: Edith")).to_be_visible()
    page.get_by_role("button", name="Your account: Edith").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")
    page.goto(f"{first.origin}/templates")
    page.wait_for_url("**/sign-in?next=%2Ftemplates")


def test_a_wrong_password_is_reported_and_the_right_one_opens_the_requested_page(desk, cast):
    page = desk().page("/usage")
    page.get_by_label("E-mail address").fill(cast.edith.email)
    page.get_by_label("Password").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Password")).to_have_accessible_description(re.compile("password is incorrect"))
    expect(page.get_by_label("Password")).to_be_focused()
    page.get_by_label("Password").fill("a horse of another colour")
    page.keyboard.press("Enter")
    page.wait_for_url("**/usage")


def test_letters_go_places_search_and_help_unless_turned_off(edith, template):
    page = edith.page("/usage")
    page.keyboard.type("gt")
    page.wait_for_url("**/templates")
    page.keyboard.press("/")
    expect(page.get_by_label("Search templates")).to_be_focused()
    page.keyboard.type("gk?")
    expect(page.locator("#list")).to_contain_text("No templates match")
    page.get_by_label("Search templates").fill("ord")
    expect(page.get_by_role("link", name="Orders", exact=True)).to_be_visible()
    expect(page.get_by_label("Search templates")).to_be_focused()  # a swap takes no focus away
    page.keyboard.press("Tab")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.goto(f"{edith.origin}/me")
    page.get_by_role("radiogroup", name="Keyboard shortcuts").get_by_label("Off").check()
    page.get_by_role("button", name="Save changes").click()
    page.keyboard.type("gt?")
    assert page.url.endswith("/me")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()


def test_the_theme_changes_immediately_and_stays(edith):
    page = edith.page("/templates")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Your account: Edith").click()
    page.get_by_role("button", name="Toggle dark mode").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.goto(f"{edith.origin}/usage")
    assert page.evaluate(ground) == dark
    page.get_by_role("button", name="Your account: Edith").click()
    page.get_by_role("button", name="Toggle dark mode").click()
    assert page.evaluate(ground) == light


def test_without_script_one_reads_signs_in_creates_and_deletes(desk, cast):
    plain = desk(cast.edith, java_script_enabled=False)
    page = plain.page("/templates")
    page.get_by_role("link", name="New template").click()
    page.get_by_label("Name of the template").fill("Plain")
    before = page.locator(".heads .colhead b").all_inner_texts()
    page.locator("#add-button").click()
    page.get_by_label("Name of the new field").fill("phone")
    page.locator("#adder").get_by_role("button", name="Add field").click()
    expect(page.locator(".heads .colhead b")).to_have_text([*before, "phone"])
    page.locator(".colhead", has_text="phone").click()
    page.get_by_label("Field name", exact=True).fill("mobile")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/templates/tpl_*")
    expect(page.locator(".heads .colhead b")).to_have_text([*before, "mobile"])
    page.goto(f"{plain.origin}/templates")
    page.get_by_role("link", name="Delete Plain").click()
    page.get_by_role("button", name="Delete Plain").click()
    expect(page.get_by_text("Template Plain deleted")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url("**/templates/tpl_*")
    page.goto(f"{plain.origin}/api-keys")
    page.get_by_text("New key").click()
    page.get_by_label("Name", exact=True).fill("plain key")
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_text(re.compile(r"^rws_\w+_\S+$")).first).to_be_visible()
    page.get_by_role("button", name="Revoke", exact=True).first.click()
    page.get_by_role("button", name="Revoke plain key").click()
    expect(page.get_by_text("revoked").first).to_be_visible()


def test_a_deleted_template_can_be_restored_from_the_toast_and_the_trash(edith, template):
    page = edith.page("/templates")
    page.get_by_role("link", name="Delete Orders").click()
    page.get_by_role("button", name="Delete Orders").click()
    expect(page.locator("#toasts")).to_contain_text("Template Orders deleted")
    page.goto(f"{edith.origin}/trash")
    page.get_by_role("button", name="Restore").click()
    page.wait_for_url(f"**/templates/{template['id']}")
    page.goto(f"{edith.origin}/templates")
    page.get_by_role("link", name="Delete Orders").click()
    page.get_by_role("button", name="Delete Orders").click()
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    page.wait_for_url(f"**/templates/{template['id']}")


def test_a_new_key_is_copied_and_works(edith, cast, api):
    edith.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = edith.page("/api-keys")
    page.get_by_text("New key").click()
    page.get_by_label("Name", exact=True).fill("nightly")
    page.get_by_label("read").check()
    page.get_by_label("Expires").select_option(label="In 30 days")
    page.get_by_role("button", name="Create key").click()
    page.get_by_role("button", name="Copy to the clipboard").first.click()
    key = page.evaluate("navigator.clipboard.readText()")
    assert api(key).get("/me").json["scopes"] == ["read"]
    expect(page.locator("tr", has_text="nightly")).to_contain_text("in 30 days")


def test_the_project_switch_changes_what_is_listed(edith, cast, template):
    page = edith.page("/templates")
    page.get_by_role("button", name="Project: Main").click()
    page.get_by_role("button", name="Side").click()
    expect(page.get_by_role("button", name="Project: Side")).to_be_visible()
    expect(page.locator("#list")).to_contain_text("No templates yet")


def test_stored_payloads_stay_inert_on_every_page(desk, cast, api):
    stored = filled_with_payloads(api(cast.olivia), cast)
    olivia = desk(cast.olivia)
    for path in ("/templates", "/exports", "/api-keys", "/projects", "/audit"):
        olivia.page(path).wait_for_load_state("networkidle")
    page = olivia.page(f"/templates/{stored['template']}")
    for view in ("json", "versions", "api", "list", "grid"):
        page.goto(f"{olivia.origin}/templates/{stored['template']}?view={view}")
        page.wait_for_load_state("networkidle")
    expect(page.locator("#table")).to_contain_text("alert(1)")
    page.get_by_role("button", name="More").click()
    page.get_by_role("link", name="Delete template").click()
    page.locator("#asked").get_by_role("button", name="Delete").click()  # its name is in a toast now
    expect(page.locator("#toasts")).to_contain_text("alert(1)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_what_opens(desk, cast, template, axe, scheme):
    olivia = desk(cast.olivia, color_scheme=scheme, bypass_csp=True)
    page = olivia.page(f"/templates/{template['id']}")
    builder = Builder(page)
    found = []
    for part in ("Values", "Format", "Rules", "Privacy"):
        builder.open("email", part)
        found += faults_found_by_axe(page, axe)
    builder.settings()
    found += faults_found_by_axe(page, axe)
    builder.open("email").locator("[data-pick]").click()
    expect(page.locator("#t-email")).to_have_attribute("aria-selected", "true")
    found += faults_found_by_axe(page, axe)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Download options").click()
    found += faults_found_by_axe(page, axe)
    page.get_by_role("link", name="All options").click()
    expect(page.locator("#estimate b").first).to_be_visible()
    found += faults_found_by_axe(page, axe)
    for view in ("list", "json", "versions", "api"):
        page.goto(f"{olivia.origin}/templates/{template['id']}?view={view}")
        page.wait_for_load_state("networkidle")
        found += faults_found_by_axe(page, axe)
    assert found == []

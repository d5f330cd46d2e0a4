"""The admin at a browser: roles, teams, leaving, moving, what uses what before deleting; also by keyboard."""

from __future__ import annotations

import re
from datetime import timedelta

import sqlalchemy as sa
from playwright.sync_api import expect

from tests.browser.conftest import NARROWEST
from tests.cast import PASSWORD
from webapp import clock
from webapp.access.models import BrowserSession
from webapp.extensions import db

ID = [{"name": "id", "type": "row_number"}]


def test_an_admin_gives_a_role_in_a_team_and_removes_members_with_their_keys(desk, cast):
    page = desk(cast.olivia).page("/members")
    page.get_by_role("button", name=f"Give {cast.edith.email} another role").click()
    edith = page.get_by_role("row").filter(has_text=cast.edith.email)
    edith.get_by_label("Access to").select_option(label="Team Red")
    edith.get_by_role("button", name="Add").click()
    expect(edith.get_by_role("button", name="Red: editor")).to_be_visible()
    edith.get_by_role("button", name=f"Remove {cast.edith.email}").click()
    page.get_by_role("button", name="Remove, and revoke the key").click()
    expect(page.locator("#toasts")).to_contain_text("Keys revoked: 1")
    expect(page.get_by_role("row").filter(has_text=cast.edith.email)).to_have_count(0)


def test_selected_templates_move_with_their_related_objects(desk, api, cast):
    olivia = desk(cast.olivia)
    program = api(cast.olivia)
    parent = program.post("/templates", json={"name": "Parents", "fields": ID}).json["id"]
    reference = {"name": "p", "type": "reference", "options": {"template_id": parent, "field": "id"}}
    program.post("/templates", json={"name": "Children", "fields": [*ID, reference]})
    page = olivia.page("/templates")
    page.get_by_label("Choose Parents").check()
    page.get_by_role("button", name="Move to").click()
    page.get_by_role("button", name="Side").click()
    expect(page.get_by_role("heading", name="Move to Side")).to_be_visible()
    expect(page.get_by_role("link", name="Children")).to_be_visible()
    page.get_by_role("button", name="Move it too").click()
    expect(page.locator("#toasts")).to_contain_text("2 objects moved to Side.")
    assert program.get(f"/templates/{parent}").json["project_id"] == cast.side


def test_with_the_keyboard_only_delete_lists_dependents_and_esc_cancels(desk, api, cast):
    olivia = desk(cast.olivia)
    program = api(cast.olivia)
    created = program.post("/templates", json={"name": "Used", "fields": ID}).json["id"]
    program.post("/datasets", json={"name": "Shop", "templates": [{"template_id": created}]})
    page = olivia.page("/templates")
    opener = page.get_by_role("link", name="Delete Used")
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("#asked")
    expect(dialog).to_contain_text("Shop")
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    expect(opener).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("Shop")
    dialog.get_by_role("button", name="Delete Used").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("Template Used deleted")
    page.goto(f"{olivia.origin}/trash")
    expect(page.get_by_role("row").filter(has_text="Used")).to_contain_text("Olivia")
    page.get_by_role("button", name="Restore Used").click()
    page.wait_for_url(re.compile(created))


def test_without_a_script_deleting_asks_on_a_separate_page(desk, api, cast):
    plain = desk(cast.olivia, java_script_enabled=False)
    api(cast.olivia).post("/templates", json={"name": "Plain", "fields": ID})
    page = plain.page("/templates")
    page.get_by_role("link", name="Delete Plain").click()
    expect(page.get_by_text("Not used anywhere.")).to_be_visible()
    page.get_by_role("button", name="Delete Plain").click()
    expect(page.locator("#toasts")).to_contain_text("Template Plain deleted")


def test_the_present_entry_of_the_settings_is_in_sight_on_a_narrow_screen(desk, cast):
    narrow = desk(cast.olivia, NARROWEST)
    for path in ("/me", "/members", "/audit"):
        page = narrow.page(path)
        here = page.locator(".side [aria-current=page]").bounding_box()
        assert here["x"] >= 0, path
        assert here["x"] + here["width"] <= NARROWEST[0], path
        page.close()


def test_a_browser_left_open_asks_for_the_password_before_it_signs_others_out(app, desk, cast):
    here, there = desk(cast.edith), desk(cast.edith)
    with app.app_context():
        db.session.execute(sa.update(BrowserSession).values(created_at=clock.now() - timedelta(hours=1)))
        db.session.commit()
    page = here.page("/me")
    page.get_by_role("button", name="Sign out all others").focus()
    page.keyboard.press("Enter")
    box = page.locator("#end-others-password")
    page.keyboard.press("Tab")
    expect(box).to_be_focused()
    box.press_sequentially("not the one")
    page.keyboard.press("Enter")
    again = page.locator("#again-password")
    expect(again).to_have_accessible_description(re.compile("This password is incorrect."))
    expect(again).to_be_focused()
    assert there.page("/templates").url.endswith("/templates")
    page.goto(f"{here.origin}/me")
    page.get_by_role("button", name=re.compile("^Sign out Chrom")).click()
    page.get_by_label("Your password").locator("visible=true").fill(PASSWORD)
    page.get_by_role("button", name="Sign out", exact=True).locator("visible=true").click()
    expect(page.locator("#toasts")).to_contain_text("The session has ended.")
    assert "/sign-in" in there.page("/templates").url

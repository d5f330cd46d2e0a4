"""In a browser: a webhook from its making to its deliveries, and word of work that ended while one looked elsewhere."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from tests.fakes.echo_target import Answer, EchoTarget
from tests.jobs.waiting import eventually
from webapp import clock
from webapp.exports.models import Export
from webapp.extensions import write_session

# Keeps what would be shown, and shows it.
RECORDER = """
window.told = [];
window.Notification = class extends window.Notification {
  constructor(title, how) { super(title, how); window.told.push(how.body); }
};
"""

HEARD = "async () => (await (await fetch('/notices?since=2020-01-01T00:00:00Z')).json()).items.length"


@pytest.fixture
def target():
    with EchoTarget() as made:
        made.on("/hook", Answer(204))
        yield made


def test_a_webhook_is_created_tested_and_disabled_by_keyboard_and_mouse(edith, target):
    page = edith.page("/webhooks")
    page.get_by_label("URL").fill(target.url("/hook"))
    page.get_by_label("Pushes: all").check()
    page.get_by_label("Description").fill("Nightly build")
    page.get_by_role("button", name="Create webhook").click()
    secret = page.locator(".made pre").inner_text()
    assert secret.startswith("whsec_")
    page.get_by_role("link", name="Nightly build").click()
    assert secret not in page.content()
    page.get_by_role("button", name="Send test").click()
    expect(page.locator(".toasts")).to_contain_text("The test was delivered")
    expect(page.locator("table")).to_contain_text("webhook.test")
    assert target.calls("/hook")[0].json["event"] == "webhook.test"
    page.get_by_role("button", name="Turn off").click()
    expect(page.get_by_role("button", name="Turn on")).to_be_visible()
    page.get_by_role("button", name="Rotate secret").click()
    assert page.locator(".made pre").inner_text() != secret


def made(app, cast, name, status="completed", **columns):
    """An export of Edith's that was started a minute ago, and has just ended unless it is running."""
    place = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
    now = clock.now()
    with app.app_context(), write_session() as session:
        session.add(
            Export(
                **place, format="csv", count=1, status=status, file_name=name, created_by=cast.edith.user_id,
                created_at=now - timedelta(minutes=1), started_at=now - timedelta(minutes=1),
                finished_at=None if status == "running" else now, noticed_at=now, **columns,
            )
        )  # fmt: skip


def test_only_the_user_who_started_it_is_notified_about_finished_work(app, cast, edith):
    edith.context.grant_permissions(["notifications"], origin=edith.origin)
    edith.context.add_init_script(RECORDER)
    page = edith.page("/me")
    requests = []
    page.on(
        "request",
        lambda item: requests.append(item.url) if item.url.partition("?")[0].endswith("/notices") else None,
    )
    page.clock.install()
    page.reload()
    page.clock.run_for(60_000)
    assert requests == [], "no page requested it"
    with page.expect_response("**/notices"):
        page.get_by_role("button", name="Notify me in this browser").click()
    expect(page.get_by_role("button", name="Notify me in this browser")).to_have_attribute(
        "aria-pressed", "true"
    )
    made(app, cast, "long.csv")
    eventually(lambda: page.evaluate(HEARD) == 1)
    page.clock.run_for(31_000)
    eventually(lambda: page.evaluate("window.told.length") == 1)
    assert page.evaluate("window.told") == ["Export long.csv is complete."]
    page.get_by_role("button", name="Notify me in this browser").click()
    count = len(requests)
    page.clock.run_for(120_000)
    assert len(requests) == count


def test_without_permission_for_notifications_the_title_of_a_hidden_tab_has_a_number(app, cast, edith):
    page = edith.page("/me")
    page.clock.install()
    page.reload()
    title = page.title()
    with page.expect_response("**/notices"):
        page.get_by_role("button", name="Notify me in this browser").click()
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    made(app, cast, "long.csv")
    eventually(lambda: page.evaluate(HEARD) == 1)
    page.clock.run_for(31_000)
    expect(page).to_have_title(f"(1) {title}")
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page).to_have_title(title)


def test_the_bell_shows_running_and_failed_work(app, cast, edith):
    """A dot for running work, another color for failures, and both in the list that it opens."""
    made(app, cast, "nightly.csv", status="running")
    page = edith.page("/templates")
    bell = page.locator(".bellbtn")
    expect(page.locator("[data-bell]")).to_be_visible()
    bell.click()
    now = page.locator("#now")
    expect(now).to_contain_text("nightly.csv")
    expect(bell).to_have_attribute("aria-label", "Jobs: 1 running, 0 with failures")
    page.keyboard.press("Escape")
    made(
        app,
        cast,
        "broken.csv",
        status="failed",
        error={"code": "internal_error", "message": "No disk.", "details": {}},
    )
    bell.focus()
    page.keyboard.press("Enter")
    expect(now).to_contain_text("broken.csv")
    expect(bell).to_have_attribute("aria-label", "Jobs: 1 running, 1 with failures")
    expect(page.locator("[data-bell].wrong")).to_be_visible()
    expect(now.get_by_role("link", name="broken.csv")).to_have_attribute("href", re.compile("/exports/exp_"))

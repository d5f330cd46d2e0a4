"""All pages: those that a GET of a route in the URL map renders, and those after an action."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Final

import sqlalchemy as sa
from flask import Flask
from playwright.sync_api import Page

from tests.promises.world import World
from tests.views.test_real_data import FIELDS, PEOPLE, as_csv
from tests.views.uploading import send as upload
from webapp import clock
from webapp.access.models import BrowserSession
from webapp.accounts.services import sign_in
from webapp.documentation import pages as documents
from webapp.extensions import db
from webapp.web.routing import declaration_of

# Routes that browsers may GET but that render no separate page, with the reason.
NO_PAGE: Final = {
    "/exports": "leads to activity",
    "/welcome": "only for accounts without a password: test_the_first_sign_in_asks_for_a_password",
    "/pushes": "leads to activity",
    "/runs": "leads to activity",
    "/profile": "leads to the profile",
    "/settings": "leads to the profile",
    "/files": "leads to the files",
    "/builder/<template_id>/diff/<int:number>": "a part of the builder: test_axe_finds_nothing_in_what_opens",
    "/builder/<template_id>/export": "a dialog of the builder: test_axe_finds_nothing_in_what_opens",
    "/builder/types": "the builder's picker: test_axe_finds_nothing_in_what_opens",
    "/connections/<connection_id>/targets": "a choice in the form of a push",
    "/datasets/<dataset_id>/fill": "a choice of connections: see `dataset_filled`",
    "/import/sample": "a column of the review of an import: see `import_report`",
    "/destinations": "search results in the form of a push",
    "/destinations/target": "a choice in the form of a push",
    "/exports/<export_id>/download": "a file, or the error page, which /nowhere shows",
    "/exports/<export_id>/parts/<int:number>": "a file, or the error page",
    "/field-types": "leads to the reference of field types",
    "/fields": "leads to the reference of field types",
    "/invitations/accept/<token>": "opened with a token that is good: see `valid_invitation`",
    "/me/sessions": "leads to one's account, which lists them",
    "/scenarios/<scenario_id>/runs/<run_id>/log": "lines of the page of a run",
    "/scenarios/<scenario_id>/runs/<run_id>/state": "a part of the page of a run",
    "/sign-in": "redirects signed-in users: see `sign_in_page`",
    "/sign-in/code": "only between password and code: test_a_second_factor_is_set_up_used_and_turned_off",
    "/sign-in/oidc": "leads to the provider",
    "/sign-in/oidc/callback": "leads to where one wanted to be",
    "/health/ready": "the error page without a worker, else JSON",
}
LISTS: Final = (
    "/templates", "/datasets", "/connections", "/endpoints", "/scenarios", "/activity", "/schedules", "/starters", "/",
    "/workspace/files", "/secrets", "/masking/keys", "/webhooks", "/api-keys", "/members", "/invitations",
    "/projects", "/teams", "/usage", "/audit", "/trash", "/workspace", "/status",
)  # fmt: skip
"""Lists that are also opened without content, and by a viewer."""


def walk(world: World) -> tuple[dict[str, str], dict[str, str]]:
    """Rule -> address of every page that a GET draws for an owner at a browser; rule -> what else of HTML it answers.

    KeyError for a rule that the access matrix has no case for, so there is nothing to ask for.
    """
    cases, browser = {}, world.person()
    for case in world.cases:
        if case.method == "GET":
            cases.setdefault(case.rule, case)
    whole, other = {}, {}
    for rule in world.app.url_map.iter_rules():
        declared = declaration_of(world.app, rule.endpoint)
        if "GET" not in rule.methods or declared is None or not declared.allows_browsers:
            continue
        address = cases[rule.rule].address(world.names)
        answer = browser.get(address, buffered=False)
        if answer.mimetype == "text/html":
            is_page = answer.status_code == 200 and "</html>" in answer.text
            (whole if is_page else other)[rule.rule] = address
        answer.close()
    return whole, other


def more_addresses(world: World) -> list[str]:
    """Pages of rules for which every object has a different page, and error pages."""
    found = [page.href for page in documents.all_pages().values()]
    found += ["/nowhere", "/templates/tpl_gone", "/docs/search?q=nothing-like-it", "/docs/search"]
    found += ["/connections/new?type=sqlite", "/connections/new?type=rest", "/connections/new?type=odata"]
    return [*found, "/templates/new?names=id,email,price,status", "/templates?q=nothing-like-it"]


def groups(app: Flask) -> list[str]:
    """Addresses of the API reference: every group's page, and that of its first operation."""
    with app.test_client() as client:
        document = client.get("/docs/api", headers={"Accept": "text/html"}).text
    pages = re.findall(r'href="(/docs/api/[^"#]+)"', document)
    operations = {page.rpartition("/")[0]: page for page in reversed(pages) if page.count("/") == 4}
    return sorted({page for page in pages if page.count("/") == 3} | set(operations.values()))


class Acts:
    """What one does on a page, so that it shows what is not there when it opens. Each leaves `page` there."""

    def __init__(self, world: World, origin: str) -> None:
        self.world, self.origin = world, origin
        self.program = world.program()

    @staticmethod
    def names() -> list[str]:
        """Of all of them."""
        return [name for name in vars(Acts) if not name.startswith("_") and name != "names"]

    def _at(self, page: Page, path: str) -> None:
        page.goto(f"{self.origin}{path}")

    def import_report(self, page: Page) -> None:
        self._at(page, "/import")
        page.fill(
            "#content",
            "CREATE TABLE a (id INT PRIMARY KEY, email VARCHAR(99), spot GEOMETRY, j JSON,"
            " status VARCHAR(9) CHECK (status IN ('x', 'y')))",
        )
        page.get_by_role("button", name="Review").click()
        page.locator("#result table").first.wait_for()

    def import_fault(self, page: Page) -> None:
        self._at(page, "/import")
        page.fill("#content", "nothing of any kind {{{")
        page.get_by_role("button", name="Review").click()
        page.locator("#result [role=alert], #result table").first.wait_for()

    def import_differences(self, page: Page) -> None:
        created = self.program.post(
            "/import", json={"content": "CREATE TABLE d (id INT, old INT, city TEXT)", "save": True}
        ).json
        self._at(page, f"/templates/{created['templates'][0]['id']}/import")
        page.fill("#content", "CREATE TABLE d (id INT, city INT, phone VARCHAR(30))")
        page.get_by_role("button", name="Compare").click()
        page.locator("#result table").wait_for()

    def masked_copy(self, page: Page) -> None:
        self._at(page, "/templates/masked")
        page.set_input_files(
            "#file", {"name": "looked.csv", "mimeType": "text/csv", "buffer": as_csv(PEOPLE[:20])}
        )
        page.get_by_role("button", name="Detect personal data").click()
        page.locator("#copy .copy-columns").wait_for()

    def _real(self) -> str:
        upload(self.program, "people.csv", as_csv())
        body = {"name": "People", "quantity": 200, "fields": FIELDS, "source": {"file": "people.csv"}}
        return self.program.post("/templates", json=body).json["id"]

    def builder_of_real_rows(self, page: Page) -> None:
        self._at(page, f"/templates/{self._real()}")
        page.locator(".cells td").first.wait_for()
        page.get_by_role("button", name="Later rows").click()
        page.get_by_text("Leak check of these rows").click()

    def builder_with_bad_values(self, page: Page) -> None:
        fields = [
            {"name": "id", "type": "row_number"},
            {"name": "n", "type": "number", "invalid": {"rate": 0.5, "kinds": ["missing", "out_of_range"]}},
        ]
        created = self.program.post("/templates", json={"name": "Spoilt", "fields": fields}).json["id"]
        self._at(page, f"/templates/{created}")
        page.locator(".colhead[data-field]").last.click()
        page.locator(".insp .stats").wait_for()
        page.locator(".parts label", has_text="Rules").click()

    def builder_settings(self, page: Page) -> None:
        self._at(page, f"/templates/{self._real()}?field=settings")
        page.locator("#source-card").wait_for()

    def builder_list(self, page: Page) -> None:
        self._at(page, f"/templates/{self.world.names['template']}?view=list")
        page.get_by_label("Select all fields that are shown").check()

    def leak_report(self, page: Page) -> None:
        from jobs import exports

        export = self.program.post(f"/templates/{self._real()}/exports", json={"seed": "s"}).json["id"]
        with self.world.app.app_context():
            exports.run(export)
            db.session.remove()
        self._at(page, f"/exports/{export}")
        page.get_by_role("region", name="Leak check").wait_for()

    def subset(self, page: Page) -> None:
        self._at(page, f"/connections/{_database(self.world)}")
        page.get_by_text("Create a subset with related rows").click()
        page.locator("#subset-table").wait_for()

    def delete_asks(self, page: Page) -> None:
        created = self.program.post(
            "/templates", json={"name": "Used", "fields": [{"name": "id", "type": "uuid"}]}
        ).json["id"]
        self.program.post("/datasets", json={"name": "Using", "templates": [{"template_id": created}]})
        self._at(page, "/templates?q=Used")
        page.get_by_role("link", name="Delete Used").first.click()
        page.locator("#asked h2, #asked h1").first.wait_for()

    def move_asks(self, page: Page) -> None:
        fields = [{"name": "id", "type": "row_number"}]
        parent = self.program.post("/templates", json={"name": "Movable", "fields": fields}).json["id"]
        refers = {"name": "p", "type": "reference", "options": {"template_id": parent, "field": "id"}}
        self.program.post("/templates", json={"name": "With it", "fields": [*fields, refers]})
        self._at(page, "/templates?q=Movable")
        page.get_by_label("Choose Movable").first.check()
        page.get_by_role("button", name="Move to").click()
        page.get_by_role("button", name="Side").click()
        page.get_by_role("heading", name="Move to Side").wait_for()

    def member_menu(self, page: Page) -> None:
        self._at(page, "/members")
        page.get_by_role("button", name="Remove adam@example.org").click()

    def invitation_made(self, page: Page) -> None:
        self._at(page, "/invitations")
        page.get_by_label("E-mail address").fill("new@example.org")
        page.get_by_role("button", name="Create link").click()
        page.locator("pre").first.wait_for()

    def key_made(self, page: Page) -> None:
        self._at(page, "/api-keys")
        page.get_by_text("New key").click()
        page.get_by_label("Name", exact=True).fill("nightly")
        page.get_by_role("button", name="Create key").click()
        page.locator(".made").wait_for()

    def webhook_made(self, page: Page) -> None:
        self._at(page, "/webhooks")
        page.get_by_text("New webhook").click()
        page.get_by_label("URL").fill("https://hooks.example.com/x")
        page.get_by_label("Pushes: all").check()
        page.get_by_role("button", name="Create webhook").click()
        page.locator(".made").wait_for()

    def masking_key_asks(self, page: Page) -> None:
        self._at(page, "/masking/keys")
        page.get_by_role("button", name="Rotate key").click()

    def workspace_end_refused(self, page: Page) -> None:
        self._at(page, "/workspace")
        page.locator("#confirm").fill("another name")
        page.locator(".danger-zone button").click()
        page.locator("#confirm-err").wait_for()

    def two_factor(self, page: Page) -> None:
        self._at(page, "/me/two-factor")
        page.get_by_role("button", name="Set up two-factor sign-in").click()
        page.locator(".qr").wait_for()

    def session_end_asks(self, page: Page) -> None:
        """A browser that signed in an hour ago, and a second session."""
        browser = self.world.person()
        with self.world.app.app_context():
            db.session.execute(sa.update(BrowserSession).values(created_at=clock.now() - timedelta(hours=1)))
            db.session.commit()
        self._at(page, "/me")
        page.get_by_role("button", name="Sign out all others").click()
        page.locator("#end-others-password").fill("not the one")
        page.locator("form:has(#end-others-password) button").click()
        page.locator("#sessions form [aria-invalid=true]").first.wait_for()
        page.get_by_role("button", name="Sign out all others").click()
        browser.submit("/sign-out")

    def type_picked_among_found(self, page: Page) -> None:
        self._at(page, f"/templates/{self.world.names['template']}")
        page.locator(".colhead[data-field]").first.click()
        page.locator("[data-pick]").click()
        page.locator("#t-number").wait_for()
        page.locator("#picker-q").press_sequentially("mail")

    def push_form_mapped(self, page: Page) -> None:
        names = self.world.names
        self._at(page, f"/templates/{names['push_template']}/push?connection_id={_database(self.world)}")
        page.locator("#target, [name=target]").first.wait_for()

    def dataset_filled(self, page: Page) -> None:
        names = self.world.names
        self._at(page, f"/datasets/{names['dataset']}/fill?connection_id={_database(self.world)}")
        page.locator("main table, main [role=alert]").first.wait_for()

    def keys_of_the_keyboard(self, page: Page) -> None:
        self._at(page, "/trash")
        page.keyboard.press("?")
        page.get_by_role("dialog", name="Keyboard shortcuts").wait_for()


def _database(world: World) -> str:
    """A connection to a database with two tables."""
    from tests.views.targets import sqlite_target

    return sqlite_target(world.app, world.cast, name="Looked at").connection_id


class Strangers:
    """Pages of those who are not signed in."""

    def __init__(self, world: World, origin: str) -> None:
        self.world, self.origin = world, origin

    def addresses(self) -> list[str]:
        """Where they may go."""
        invitation = f"/invitations/accept/{self.world.names['invitation_token']}"
        link = f"/sign-in/{self._link()}"
        return [
            "/sign-in",
            "/sign-in?problem=stopped",
            "/sign-in/unknown",
            link,
            invitation,
            "/docs",
            "/nowhere",
        ]

    def _link(self) -> str:
        from webapp.access.models import User

        with self.world.app.app_context():
            result = sign_in.create_link(db.session.get_one(User, self.world.cast.olivia.user_id))
            db.session.remove()
        return result.rsplit("/", 1)[-1]


def said(found: list[str]) -> str:
    """What was found, a line each, for the message of a test."""
    return json.dumps(found, indent=1)

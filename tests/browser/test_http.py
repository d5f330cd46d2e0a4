"""A person connects an API, makes an endpoint while watching its request, and sends rows there in the browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from jobs.pushes import push as job
from tests.browser.conftest import NARROWEST
from tests.browser.looking import axe, faults_found_by_axe  # noqa: F401 - a fixture
from tests.cast import Program
from tests.connectors.odata_documents import V2
from tests.fakes.echo_target import Answer, EchoTarget
from tests.views.speak import make
from tests.views.targets import CUSTOMERS, connection
from webapp.extensions import db


@pytest.fixture
def target():
    with EchoTarget() as result:
        yield result


@pytest.fixture
def program(app, cast):
    return Program(app, cast.edith.key)


@pytest.fixture
def template(program):
    return make(program, name="Customers", fields=CUSTOMERS)["id"]


@pytest.fixture
def rest(app, cast, target):
    auth = {"type": "bearer", "token": "very-secret-token"}
    settings = {"base_url": target.url("/api"), "push_path": "/people", "auth": auth, "retry": {"retries": 0}}
    return connection(app, cast, "rest", settings, name="API")


@pytest.fixture
def done(app):
    """Do what was ordered as a worker would."""

    def do(page):
        with app.app_context():
            job.run(page.url.rsplit("/", 1)[1])
            db.session.remove()

    return do


def test_a_rest_connection_form_shows_the_fields_of_its_authentication(edith, target):
    page = edith.page("/connections/new?type=rest")
    page.get_by_label("Base URL").fill(target.url("/api"))
    page.get_by_label("Authentication").focus()
    page.get_by_label("Authentication").select_option(label="user and password (Basic)")
    expect(page.get_by_label("Username")).to_be_visible()
    expect(page.get_by_label("Authentication")).to_be_focused()  # rendered again, it keeps the focus
    expect(page.get_by_label("Base URL")).to_have_value(target.url("/api"))
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Password").fill("pass")
    page.get_by_role("button", name="Test and save").click()
    expect(page.locator("#verification")).to_contain_text("verified")
    page.get_by_text("Response: 200").click()
    expect(page.locator("#verification")).to_contain_text(f"HEAD {target.url('/api')}")


def test_the_request_next_to_the_form_follows_the_input(edith, target, template):
    page = edith.page("/endpoints/new")
    page.get_by_label("Name", exact=True).fill("People")
    page.get_by_label("URL").fill(target.url("/people/{{id}}"))
    request = page.locator("#example pre")
    expect(request).to_contain_text(f"POST {target.url('/people/1')}")
    page.get_by_label("Method").select_option("PUT")
    page.get_by_label("Body").fill('{"mail": "{{E-Mail}}"}')
    expect(request).to_contain_text('{"mail":"')
    page.get_by_label("Body").fill('{"mail": "{{nobody}}"}')
    expect(page.locator("#example")).to_contain_text('uses "nobody"')
    page.get_by_label("Body").fill("")
    page.get_by_label("Authentication").select_option("bearer")
    page.get_by_label("Token").fill("very-secret-token")
    expect(request).to_contain_text("Authorization: Bearer ********")
    page.keyboard.press("Enter")
    page.wait_for_url("**/endpoints/end_*")
    assert target.calls() == []
    page.get_by_role("link", name="Delete People").click()
    page.get_by_role("button", name="Delete People").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="People")).to_be_visible()


def test_rows_are_tried_and_sent_to_a_path_and_troubles_are_explained(edith, target, template, rest, done):
    target.on("/api/people", Answer(422, "no such country"), Answer(cut="read"), Answer(201))
    page = edith.page(f"/templates/{template}/push?connection_id={rest}")
    expect(page.get_by_label("Path", exact=True)).to_have_value("/people")
    page.get_by_label("Rows", exact=True).fill("5")
    page.get_by_label("Parallel").fill("1")
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#dry pre")).to_have_count(3)
    expect(page.locator("#dry")).to_contain_text("Authorization: Bearer ********")
    assert target.calls() == []
    page.get_by_role("button", name="Push", exact=True).click()
    page.wait_for_url("**/pushes/psh_*")
    done(page)
    expect(page.locator("#work")).to_contain_text("Completed with 2 failures")
    page.reload()
    expect(page.locator("#work")).to_contain_text("What to do")
    expect(page.locator("#work")).to_contain_text("One row is unknown")
    expect(page.locator("#rows")).to_contain_text("422")
    assert len(target.calls()) == 5


def test_no_page_needs_a_script(desk, cast, target, template):
    page = desk(cast.edith, java_script_enabled=False).page("/connections/new?type=rest")
    page.get_by_label("Base URL").fill(target.url("/api"))
    page.get_by_label("Authentication").select_option("bearer")
    page.get_by_role("button", name="Show fields").click()
    page.get_by_label("Token").fill("very-secret-token")
    page.get_by_role("button", name="Test and save").click()
    expect(page.locator("#verification")).to_contain_text("verified")
    page.get_by_role("link", name="New endpoint").click()
    page.get_by_label("Name", exact=True).fill("On it")
    page.get_by_label("Path", exact=True).fill("/people/{{id}}")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#example")).to_contain_text(f"POST {target.url('/api/people/1')}")
    page.get_by_role("button", name="Create endpoint").click()
    expect(page.get_by_role("heading", name="On it")).to_be_visible()


@pytest.fixture
def paths(app, cast, program, template, rest, target):
    service = connection(app, cast, "odata", {"service_url": target.url("/erp")}, name="ERP")
    program.put(f"/connections/{service}/metadata-document", data=V2)
    endpoint = program.post("/endpoints", json={"name": "E", "url": target.url("/p/{{id}}")}).json["id"]
    push = program.post(f"/templates/{template}/push", json={"connection_id": rest, "count": 3}).json["id"]
    target.on("/api/people", Answer(422), Answer(cut="read"))
    with app.app_context():
        job.run(push)
        db.session.remove()
    return [
        "/connections/new?type=odata", f"/connections/{rest}", f"/connections/{rest}/edit", f"/connections/{service}",
        "/endpoints", "/endpoints/new", f"/endpoints/{endpoint}", f"/endpoints/{endpoint}/edit",
        f"/templates/{template}/push?connection_id={rest}",
        f"/templates/{template}/push?connection_id={service}&target=CustomerSet", f"/pushes/{push}",
    ]  # fmt: skip


def test_the_pages_fit_a_phone(desk, cast, paths):
    narrow = desk(cast.edith, NARROWEST)
    for path in paths:
        page = narrow.page(path)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROWEST[0], path
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_them(desk, cast, paths, axe, scheme):
    window, found = desk(cast.edith, color_scheme=scheme, bypass_csp=True), []
    page = window.page("/endpoints")
    for path in paths:
        page.goto(window.origin + path)
        page.wait_for_load_state("networkidle")
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true })")
        found += [(path, item) for item in faults_found_by_axe(page, axe)]
    assert found == []


def test_the_navigation_never_makes_the_page_wider(desk, cast):
    for width in (761, 900, 1021, 1161):
        page = desk(cast.edith, (width, 700)).page("/endpoints")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        expect(
            page.get_by_role("navigation", name="Connect").get_by_role("link", name="Files")
        ).to_be_visible()

"""A person writes a program in the browser, runs it, watches its log, and comes back to it; by keyboard too."""

from __future__ import annotations

import re
import threading

import pytest
from playwright.sync_api import expect
from sqlalchemy import select

from tests.browser.conftest import NARROWEST
from tests.browser.looking import axe, faults_found_by_axe  # noqa: F401
from tests.cast import Program
from tests.jobs.running import Running, running  # noqa: F401
from webapp.extensions import db
from webapp.scenarios.models import Run

SLOW = """
import sys, time
for n in range(1, 801):
    print("line", n, flush=n % 80 == 0)
    if n % 80 == 0: time.sleep(1)
"""
LOW = """() => {
    const log = document.getElementById('log');
    return log.scrollHeight - log.scrollTop - log.clientHeight < 12;
}"""
ENDLESS = """
import time
print("here I stay", flush=True)
while True: time.sleep(0.05)
"""


@pytest.fixture
def runner(running: Running):
    """Does queued runs in a thread as they come."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.05):
            with running.app.app_context():
                found = db.session.scalars(select(Run.id).where(Run.status == "queued")).all()
                db.session.remove()
            for run_id in found:
                running.do(run_id)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stop.set()
    thread.join(30)


@pytest.fixture
def saved(app, cast):
    """`saved(code)`: the address of a scenario with it."""
    program = Program(app, cast.edith.key)

    def make(code='print("hello")\n', name="Nightly"):
        return f"/scenarios/{program.post('/scenarios', json={'name': name, 'code': code}).json['id']}"

    return make


@pytest.fixture
def ran(running, saved):
    """`ran(code)`: the address of a run of it that has ended."""

    def make(code):
        path = saved(code)
        return f"{path}/runs/{running.do(running.again(path.rsplit('/', 1)[1])).id}"

    return make


def write(page, text):
    """Put a text into the editor, in place of what it holds."""
    page.locator(".CodeMirror-code").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)


def held(page):
    return page.evaluate("document.querySelector('.CodeMirror').CodeMirror.getValue()")


def test_a_program_is_written_run_and_followed_with_the_keyboard_only(edith, runner):
    page = edith.page("/templates")
    page.locator("body").press("g")
    page.keyboard.press("s")
    page.wait_for_url("**/scenarios")
    page.get_by_role("link", name="New scenario").first.press("Enter")
    page.wait_for_url("**/scenarios/new")
    expect(page.get_by_label("Name of the scenario")).to_be_focused()
    page.keyboard.type("By keyboard")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.CodeMirror') !== null"):
            break
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.type('for n in range(3):\nprint("row", n)', delay=5)
    assert (
        held(page) == 'for n in range(3):\n    print("row", n)'
    )  # indented, brackets and quotes closed once
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/runs/run_*")
    expect(page.locator("#work .badge")).to_have_text("Completed")
    expect(page.locator(".lines span")).to_have_text(["row 0", "row 1", "row 2"])
    expect(page.locator("#log-state")).to_have_text("End of log.")


def test_tab_indents_and_after_escape_leaves_the_editor(edith, saved):
    page = edith.page(saved("a = 1\n"))
    expect(page.locator("#code-keys")).to_contain_text("leaves the editor")
    page.locator(".CodeMirror-code").click()
    page.keyboard.press("Control+Home")
    page.keyboard.press("Tab")
    assert held(page) == "    a = 1\n"
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert held(page) == "    a = 1\n"
    assert page.evaluate("document.activeElement.closest('.CodeMirror')") is None


def test_names_of_the_sdk_are_completed_after_a_dot(edith, saved):
    page = edith.page(saved("from rowsmith import Client\n\nmine = Client()\n"))
    page.locator(".CodeMirror-code").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("rows = mine.")
    hints = page.locator(".CodeMirror-hints")
    expect(hints).to_contain_text("generate_from_template_id(template_id, quantity=…)")
    page.keyboard.type("export_to_d")
    expect(hints.locator("li")).to_have_count(1)
    page.keyboard.press("Enter")
    assert held(page).endswith("rows = mine.export_to_database")
    page.keyboard.type("\nEmailF")
    page.keyboard.press("Control+Space")
    expect(hints).to_contain_text("EmailField(")
    page.keyboard.press("Escape")
    page.keyboard.type('\nos.environ["SERVICE_API_U')
    page.keyboard.press("Control+Space")
    page.keyboard.press("Enter")
    assert 'os.environ["SERVICE_API_URL' in held(page)


def test_syntax_errors_are_marked_at_their_line_while_typing(edith, saved):
    page = edith.page(saved())
    write(page, "a = 1\nb = (\n")
    expect(page.locator("#findings")).to_contain_text("Syntax error")
    expect(page.locator(".CodeMirror .faulty")).to_have_count(1)
    page.locator("[data-goto]").first.click()
    assert page.evaluate("document.querySelector('.CodeMirror').CodeMirror.getCursor().line") == 1
    write(page, "a = 1\n")
    expect(page.locator(".CodeMirror .faulty")).to_have_count(0)


def test_saving_keeps_the_place_and_a_clash_shows_both(edith, saved, app, cast):
    path = saved()
    page = edith.page(path)
    write(page, "print('mine')")
    expect(page.locator("[data-dirty]")).to_be_visible()
    page.keyboard.press("Control+s")
    expect(page.locator("#save-result .badge").first).to_have_text("v2")
    expect(page.locator("[data-dirty]")).to_be_hidden()
    assert page.evaluate("document.activeElement.closest('.CodeMirror') !== null")
    Program(app, cast.edith.key).patch(path, json={"code": "print('theirs')\n"})
    write(page, "print('mine again')")
    page.keyboard.press("Control+s")
    expect(page.get_by_role("alert")).to_contain_text("Version 3 was saved while you edited version 2")
    expect(page.locator(".diff")).to_contain_text("theirs")
    page.get_by_role("button", name="Overwrite with my version").click()
    expect(page.locator("#save-result .badge").first).to_have_text("v4")
    assert Program(app, cast.edith.key).get(path).json["code"] == "print('mine again')"


def test_a_log_is_followed_until_one_scrolls_up_and_again_on_demand(edith, saved, runner):
    page = edith.page(saved(SLOW))
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/runs/run_*")
    expect(page.locator("#L80")).to_be_attached()
    expect(page.locator("#L160")).to_be_attached()
    page.wait_for_function(LOW)
    page.locator("#log").hover()
    page.mouse.wheel(0, -600)
    expect(page.get_by_role("button", name="Follow again")).to_be_visible()
    top = page.evaluate("document.getElementById('log').scrollTop")
    expect(page.locator("#L480")).to_be_attached()
    assert page.evaluate("document.getElementById('log').scrollTop") == pytest.approx(top, abs=2)
    page.get_by_role("button", name="Follow again").click()
    page.wait_for_function(LOW)
    expect(page.locator("#L800 span")).to_have_text("line 800")
    page.wait_for_function(LOW)
    expect(page.locator("#log-count")).to_have_text("800 lines")
    expect(page.locator("#work .badge")).to_have_text("Completed")


def test_a_run_is_cancelled_and_repeated_with_other_parameters(edith, saved, runner, app, cast):
    page = edith.page(saved(ENDLESS))
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/runs/run_*")
    expect(page.locator(".lines")).to_contain_text("here I stay")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.locator("#work .badge")).to_have_text("Cancelled", timeout=15_000)
    first = page.url
    Program(app, cast.edith.key).patch(
        re.search(r"/scenarios/\w+", first)[0], json={"code": "import os\nprint(os.environ['GREETING'])\n"}
    )
    page.reload()
    page.get_by_role("button", name="Run with…").click()
    page.get_by_label("Name of parameter 1").fill("GREETING")
    page.get_by_label("Value of parameter 1").fill("good evening")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(lambda url: url != first)
    expect(page.locator(".lines span")).to_have_text(["good evening"])


def test_a_line_of_a_long_log_is_linked_to_and_found_by_search(edith, ran):
    path = ran("for n in range(1, 12001): print('needle' if n == 6000 else 'hay', n)\n")
    page = edith.page(path)
    expect(page.locator("#L12000")).to_be_attached()
    assert page.locator(".lines li").count() <= 5000
    page.get_by_label("Search the log").fill("needle")
    expect(page.locator("#hits")).to_contain_text("1 line with")
    page.locator("#hits a").click()
    expect(page.locator("#L6000.at")).to_be_in_viewport()
    assert page.url.endswith(f"{path}#L6000")
    page.reload()
    expect(page.locator("#L6000.at")).to_be_in_viewport()
    page.get_by_role("link", name="Older lines").click()
    expect(page.locator("#L5600")).to_be_attached()
    page.locator("#L5950 a").click()
    assert page.url.endswith("#L5950")
    with page.expect_download() as found:
        page.get_by_role("link", name="Text").click()
    assert found.value.path().read_text().count("\n") == 12_000


def test_a_very_long_log_stays_light_while_it_is_followed(edith, saved, running):
    """All 100,000 lines come by; the page keeps the last some thousand and stays quick."""
    path = saved("for n in range(1, 100001): print('x', n)\n")
    run = running.again(path.rsplit("/", 1)[1])
    page = edith.page(f"{path}/runs/{run}")
    running.do(run)
    expect(page.locator("#L100000")).to_be_attached(timeout=60_000)
    assert page.locator(".lines li").count() <= 5000
    expect(page.locator("#log-count")).to_have_text("100,000 lines")


def test_payloads_stay_text_in_the_log_and_the_editor(edith, ran):
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    path = ran(f"print({evil!r})\n")
    page = edith.page(path)
    expect(page.locator(".lines span")).to_have_text([evil])
    page.get_by_label("Search the log").fill("script")
    expect(page.locator("#hits")).to_contain_text(evil)
    page.goto(edith.origin + path.partition("/runs")[0])
    expect(page.locator(".CodeMirror")).to_contain_text("onerror=alert(2)")
    page.locator(".CodeMirror-code").click()
    page.keyboard.press("Control+Space")
    expect(page.locator(".CodeMirror-hints")).to_be_visible()


def test_without_a_script_one_writes_runs_reads_and_deletes(desk, cast, runner):
    plain = desk(cast.edith, java_script_enabled=False)
    page = plain.page("/scenarios/new")
    page.get_by_label("Name of the scenario").fill("Plain")
    page.get_by_label("Program").fill("import os\nprint('plain', os.environ['N'])\n")
    page.get_by_text("Run parameters").click()
    page.get_by_label("Name of parameter 1").fill("N")
    page.get_by_label("Value of parameter 1").fill("5")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/runs/run_*")
    for _ in range(60):
        if "Completed" in page.locator("#work").inner_text():
            break
        page.wait_for_timeout(250)
        page.reload()
    expect(page.locator(".lines span")).to_have_text(["plain 5"])
    page.goto(f"{plain.origin}/scenarios")
    page.get_by_role("link", name="Delete Plain").click()
    page.get_by_role("button", name="Delete Plain").click()
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url("**/scenarios/scn_*")


def test_pages_fit_a_phone(desk, cast, ran):
    path = ran("print('x' * 500)\n")
    scenario = path.partition("/runs")[0]
    narrow = desk(cast.edith, NARROWEST)
    page = narrow.page("/scenarios")
    for where in (
        "/scenarios",
        "/scenarios/new",
        scenario,
        f"{scenario}/settings",
        f"{scenario}/runs",
        path,
        "/runs",
    ):
        page.goto(narrow.origin + where)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= NARROWEST[0], f"{where} is {wide} wide"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_pages_of_scenarios_and_runs(desk, cast, ran, axe, scheme, app):
    path = ran("import sys\nprint('hello')\nsys.exit(3)\n")
    scenario = path.partition("/runs")[0]
    Program(app, cast.edith.key).patch(scenario, json={"code": "print('other')\n"})
    olivia = desk(cast.olivia, color_scheme=scheme, bypass_csp=True)
    page, found = olivia.page(scenario), []
    parts = ("/settings", "/history", "@v1", "@v1/diff", "/runs", "")
    alone = ("/scenarios", "/scenarios/new", "/runs", path, f"{path}?q=hello")
    for where in (*alone, *(scenario + part for part in parts)):
        page.goto(olivia.origin + where)
        for part in page.locator("summary").all():
            part.click()
        found += faults_found_by_axe(page, axe)
    assert "\n".join(found) == ""

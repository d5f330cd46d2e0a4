"""Files in a browser: chosen or dropped, replaced only after a word, by keyboard, narrow, and without script."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NARROWEST, Desk

URL = "/workspace/files"
CUSTOMERS = {"name": "customers.csv", "mimeType": "text/csv", "buffer": b"id,name\n1,Ada\n2,Grace\n"}


def drop(page, *files: tuple[str, str]) -> None:
    """Drop files, each (name, content), as a person drops them from a folder."""
    page.evaluate(
        """(files) => {
            const data = new DataTransfer();
            files.forEach(([name, text]) => data.items.add(new File([text], name)));
            const how = { dataTransfer: data, bubbles: true, cancelable: true };
            document.body.dispatchEvent(new DragEvent("dragover", how));
            document.body.dispatchEvent(new DragEvent("drop", how));
        }""",
        [list(file) for file in files],
    )


def test_a_chosen_file_is_uploaded_listed_looked_at_and_deleted_with_undo(edith: Desk):
    page = edith.page(URL)
    expect(page.get_by_role("heading", name="No files yet")).to_be_visible()
    page.get_by_label("Folder (optional)").fill("inputs")
    page.get_by_label("Files to upload").set_input_files(CUSTOMERS)
    page.get_by_role("link", name="inputs", exact=True).click()
    page.get_by_role("link", name="customers.csv", exact=True).click()
    expect(page.get_by_role("heading", name="customers.csv")).to_be_visible()
    expect(page.get_by_role("cell", name="Grace")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "customers.csv"
    page.get_by_role("link", name=re.compile("^Delete")).click()
    page.get_by_role("button", name=re.compile("^Delete")).click()
    expect(page.get_by_text("customers.csv deleted")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="customers.csv", exact=True)).to_be_visible()


def test_dropped_files_are_uploaded_and_none_is_replaced_without_a_word(edith: Desk):
    page = edith.page(URL)
    drop(page, ("a.txt", "first"), ("b.json", '[{"n": 1}]'))
    expect(page.get_by_role("link", name="b.json", exact=True)).to_be_visible()
    drop(page, ("a.txt", "second"))
    expect(page.get_by_text("There is a file of this name.")).to_be_visible()
    page.get_by_role("link", name="a.txt", exact=True).click()
    expect(page.get_by_text("first")).to_be_visible()
    page.goto(edith.origin + URL)
    drop(page, ("a.txt", "second"))
    page.get_by_role("button", name="Replace it").click()
    expect(page.get_by_text("There is a file of this name.")).to_have_count(0)
    page.get_by_role("link", name="a.txt", exact=True).click()
    expect(page.get_by_text("second")).to_be_visible()


def test_a_rejected_file_shows_the_reason_and_can_be_dismissed(edith: Desk):
    page = edith.page(URL)
    page.get_by_label("Folder (optional)").fill("../up")
    drop(page, ("a.txt", "x"))
    expect(page.locator("#uploads")).to_contain_text("not allowed as the name")
    page.get_by_role("button", name="Dismiss").click()
    expect(page.locator("#uploads")).to_be_hidden()


def test_names_that_hold_scripts_are_text_everywhere(edith: Desk):
    page = edith.page(URL)
    drop(page, ("<img src=x onerror=alert(1)>.csv", "<script>alert(2)</script>,b\n<svg onload=alert(3)>,2\n"))
    page.get_by_role("link", name="<img src=x onerror=alert(1)>.csv", exact=True).click()
    expect(page.get_by_role("cell", name="<svg onload=alert(3)>")).to_be_visible()
    page.get_by_role("link", name=re.compile("^Delete")).click()
    page.get_by_role("button", name=re.compile("^Delete")).click()
    expect(page.get_by_text(re.compile("onerror.* deleted"))).to_be_visible()


def test_a_file_is_uploaded_and_deleted_without_script(desk: Callable[..., Desk], cast):
    one = desk(cast.edith, java_script_enabled=False)
    page = one.page(URL)
    page.get_by_label("Files to upload").set_input_files([CUSTOMERS, {**CUSTOMERS, "name": "more.csv"}])
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_text("2 files are stored")).to_be_visible()
    page.get_by_role("link", name="Delete more.csv").click()
    page.get_by_role("button", name="Delete more.csv").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="more.csv", exact=True)).to_be_visible()
    page.get_by_label("Folder (optional)").fill("a//b")
    page.get_by_label("Files to upload").set_input_files(CUSTOMERS)
    page.get_by_role("button", name="Upload", exact=True).click()
    error = page.locator("#folder-err")
    expect(error).to_contain_text("remove the double slash")
    expect(page.get_by_label("Folder (optional)")).to_have_accessible_description(re.compile("double slash"))


def test_the_page_works_by_keyboard(edith: Desk):
    page = edith.page(URL)
    drop(page, ("a.txt", "x"), ("b.txt", "yy"))
    expect(page.get_by_role("link", name="b.txt", exact=True)).to_be_visible()
    page.goto(edith.origin + URL)
    page.keyboard.press("/")
    page.keyboard.type("b.t")
    expect(page.get_by_role("link", name="a.txt", exact=True)).to_have_count(0)
    page.get_by_role("link", name="b.txt", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="b.txt")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_fit_the_narrowest_screen(desk: Callable[..., Desk], cast, scheme):
    one = desk(cast.edith, NARROWEST, color_scheme=scheme)
    page = one.page(URL)
    wide = ",".join(f"column_{n}" for n in range(30))
    drop(page, (f"{'long' * 40}.csv", f"{wide}\n{wide}\n"))
    page.get_by_role("link", name=re.compile("^longlong")).click()
    for path in (page.url, one.origin + URL):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROWEST[0]

"""A masked copy of a CSV made wholly in the browser: dropped, looked at, changed, made, generated and exported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.builder import Builder
from tests.browser.conftest import NARROWEST

NAMES = ("Anna Smith", "John Miller", "Mary Brown", "Peter Jones")
ROWS = [
    f"{n},person.{n}@corp{n % 7}.test,{NAMES[n % 4]},19{50 + n % 40}-0{1 + n % 9}-11,+49 170 {1_000_000 + 7 * n},{n}.5"
    for n in range(1, 201)
]
REAL = re.compile(r"person\.\d+@corp|\+49 170 100|Anna Smith|Mary Brown")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    result = tmp_path / "people.csv"
    result.write_text("id,email,full_name,born,phone,total\n" + "\n".join(ROWS) + "\n")
    return result


def plain(name: str) -> str:
    """A family name as addresses have it."""
    return re.sub(r"[^a-z]", "", name.lower())


def looked(page, file):
    page.set_input_files("#file", file)
    page.get_by_role("button", name="Detect personal data").click()
    page.get_by_role("heading", name="Columns").wait_for()


def test_a_dropped_file_becomes_a_masked_copy(desk, cast, file):
    page = desk(cast.edith).page("/templates/masked")
    looked(page, file)
    expect(page.get_by_label("email is personal")).to_be_checked()
    expect(page.get_by_label("Masking of email")).to_have_value("replace")
    expect(page.get_by_label("Masking of born")).to_have_value("shift")
    expect(page.get_by_label("Whose date born is")).to_have_value("id")
    expect(page.get_by_label("total is personal")).not_to_be_checked()
    source, masked = (
        page.locator(f"#preview td.{item}").all_inner_texts() for item in ("smp:not(.gen)", "gen")
    )
    assert REAL.search(" ".join(source)), "the values of the source are next to the masked ones"
    assert not REAL.search(" ".join(masked))
    addresses, names = (
        page.locator("#preview tr", has=page.get_by_role("rowheader", name=column, exact=True))
        .locator("td.gen span")
        .all_inner_texts()
        for column in ("email", "full_name")
    )
    assert len(names) == 3
    for address, name in zip(addresses, names, strict=True):
        assert plain(name.split()[-1]) in address, "the masked name and address are one person's"
    page.get_by_label("total is personal").check()
    page.get_by_label("Masking of total").select_option("redact")
    page.get_by_label("Masking of phone").select_option("tokenize")
    expect(page.locator("#preview")).to_contain_text("tok_")
    page.get_by_role("button", name="Create template").click()
    page.wait_for_url("**/templates/tpl_*")
    builder = Builder(page)
    builder.shows("id", "email", "full_name", "born", "phone", "total")
    assert not REAL.search(page.locator("#table").inner_text())
    expect(page.locator("#status")).to_contain_text("of 200")
    page.get_by_role("button", name="Later rows").click()
    page.get_by_text("Leak check of these rows").click()
    expect(page.locator(".leak-check")).to_contain_text("0 original values remain in their own row")
    builder.settings()
    expect(page.locator("[id='source.file']")).to_have_value("people.csv")
    with page.expect_download() as coming:
        page.locator("#download").click()
    text = Path(coming.value.path()).read_text()
    assert len(text.splitlines()) == 201, "a masked copy has all rows of its source"
    assert not REAL.search(text)


def test_the_source_of_a_template_is_changed_in_the_builder(desk, cast, file, tmp_path):
    other = tmp_path / "others.csv"
    other.write_text("key,mail\n" + "\n".join(f"K{n},other.{n}@corp.test" for n in range(9)))
    page = desk(cast.edith).page("/templates/new?names=key,mail")
    builder = Builder(page)
    builder.name("Others")
    builder.settings()
    page.locator("#source-card summary").click()
    page.locator("#source-card").get_by_label("File", exact=True).first.check()
    page.set_input_files("#source-upload", other)
    expect(page.locator("#source-says")).to_contain_text("2 columns")
    expect(page.locator("#table")).to_contain_text("corp.test")
    builder.open("mail", "Privacy").get_by_label("Sensitive").check()
    expect(page.locator("#table")).not_to_contain_text("corp.test")
    builder.save_new()
    builder.view("JSON")
    text = page.locator("#json-text")
    expect(text).to_have_value(re.compile(r'"file": "others.csv"'))
    text.fill(text.input_value().replace('"file": "others.csv"', '"file": "others.csv",\n    "limit": 2'))
    expect(builder.state).to_contain_text("Unsaved")
    builder.view("Grid")
    builder.settings()
    expect(page.locator("[id='source.limit']")).to_have_value("2")


def test_the_pages_of_masking_fit_a_phone_and_a_keyboard(desk, cast, file):
    page = desk(cast.adam, NARROWEST).page("/templates/masked")
    looked(page, file)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_label("email is personal").focus()
    page.keyboard.press("Space")
    expect(page.get_by_label("Masking of email")).to_have_count(0)
    expect(page.get_by_label("email is personal")).to_be_focused()
    page.goto(page.url.replace("/templates/masked", "/masking/keys"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_role("button", name="Rotate key").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name=re.compile("Create version")).press("Enter")
    expect(page.get_by_text("Default")).to_be_visible()

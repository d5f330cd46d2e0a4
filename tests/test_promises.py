"""docs/promises.md, docs/threat-model.md and docs/asvs*.md are kept honest: every test they name is there."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest

from webapp.cli import development
from webapp.paths import ROOT

PROMISES = 31
PAGES = ("docs/promises.md", "docs/threat-model.md", "docs/asvs.md", "docs/asvs-9.md")
_NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@lru_cache
def source(file: str) -> str:
    """Return the source of a test file; "" if it does not exist."""
    path = ROOT / file
    return path.read_text("utf-8") if path.is_file() else ""


def sections() -> dict[int, str]:
    """Return the text of the page about each promise."""
    text = (ROOT / PAGES[0]).read_text("utf-8")
    found = re.split(r"^### Promise (\d+)$", text, flags=re.MULTILINE)
    return {int(number): part for number, part in zip(found[1::2], found[2::2], strict=True)}


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_is_there(page):
    named = _NAMED.findall((ROOT / page).read_text("utf-8"))
    assert len(named) > 20
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not source(file) or (name and not re.search(rf"^def {name}\(", source(file), re.MULTILINE))
    ]
    assert missing == []


def test_every_promise_is_listed_once_with_its_tests_and_stacks():
    found = sections()
    assert list(found) == list(range(1, PROMISES + 1))
    for number, part in found.items():
        assert _NAMED.search(part), number
        assert "\nStacks: " in part, number


@pytest.mark.parametrize("number", range(1, PROMISES + 1))
def test_the_tests_of_a_promise_name_it(number):
    """In the test's name, or in the first words of its file."""
    result = False
    for file, name in _NAMED.findall(sections()[number]):
        head = source(file).split('"""')[1]
        numbers = [
            int(item)
            for words in re.findall(r"Promises? ([\d, and]+)", head)
            for item in re.findall(r"\d+", words)
        ]
        result = result or f"promise_{number:02d}_" in name or number in numbers
    assert result


def test_no_test_of_a_promise_is_left_out_of_the_page():
    text = (ROOT / PAGES[0]).read_text("utf-8")
    missing = [
        f"{path.relative_to(ROOT)}::{name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in re.findall(r"^def (test_promise_\d\d_\w+)\(", path.read_text("utf-8"), re.MULTILINE)
        if f"::{name}`" not in text
    ]
    assert missing == []


# OWASP ASVS 5.0.0: how many requirements of levels 1 and 2 each section has; those of level 3 come last in each.
STANDARD = {
    1: {1: 2, 2: 9, 3: 11, 4: 3, 5: 2},
    2: {1: 3, 2: 3, 3: 4, 4: 1},
    3: {2: 2, 3: 4, 4: 6, 5: 5, 7: 2},
    4: {1: 3, 2: 1, 3: 2, 4: 4},
    5: {1: 1, 2: 3, 3: 2, 4: 3},
    6: {1: 3, 2: 12, 3: 4, 4: 4, 5: 5, 6: 3, 8: 4},
    7: {1: 3, 2: 4, 3: 2, 4: 5, 5: 2, 6: 2},
    8: {1: 2, 2: 3, 3: 1, 4: 1},
    9: {1: 3, 2: 4},
    10: {1: 2, 2: 2, 3: 4, 4: 11, 5: 5, 6: 2, 7: 3},
    11: {1: 2, 2: 3, 3: 3, 4: 4, 5: 1, 6: 1},
    12: {1: 3, 2: 2, 3: 4},
    13: {1: 1, 2: 5, 3: 2, 4: 5},
    14: {1: 2, 2: 4, 3: 3},
    15: {1: 3, 2: 3, 3: 7},
    16: {1: 1, 2: 5, 3: 4, 4: 3, 5: 3},
    17: {1: 1, 2: 4, 3: 2},
}


def standard() -> str:
    """What is said of it: two pages."""
    return "".join((ROOT / page).read_text("utf-8") for page in PAGES[2:])


def test_every_requirement_of_the_standard_is_listed_once():
    """A line may tell of several."""
    expected = {
        f"{chapter}.{section}.{number}"
        for chapter, sections in STANDARD.items()
        for section, most in sections.items()
        for number in range(1, most + 1)
    }
    assert len(expected) == 253
    text = standard()
    assert [int(item) for item in re.findall(r"^## V(\d+) ", text, re.MULTILINE)] == list(STANDARD)
    lines = re.findall(r"^- \*\*([^*]+)\*\* (.+)$", text, re.MULTILINE)
    numbers = [item for ids, _ in lines for item in ids.split(", ")]
    assert len(numbers) == len(set(numbers))
    assert set(numbers) == expected
    for ids, result in lines:
        assert result.endswith("."), ids
        assert "tests/" in result or len(result) > 15, f"{ids} names no test and gives no reason"


def test_unmet_conditions_are_shown_at_the_top_too():
    text = standard()
    head, _, rest = text.partition("## V1 ")
    for words in ("**not met**", "**in part**"):
        below = {
            item
            for ids, result in re.findall(r"^- \*\*([^*]+)\*\* (.+)$", rest, re.MULTILINE)
            if words in result
            for item in ids.split(", ")
        }
        after = head.partition(words.replace("not", "Not") if "not" in words else words)[2]
        assert set(re.findall(r"\d+\.\d+\.\d+", re.split(r"[;]|\. ", after)[0])) == below, words


def test_tests_for_both_stacks_exist():
    for place in (*development.TESTS_ON_BOTH_STACKS, *development.LONG_TESTS):
        assert (ROOT / place).exists(), place

"""What keeps results of the MCP server small and free of keys; needs no package of the protocol."""

from __future__ import annotations

import importlib
import json
import sys
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp.paths import ROOT

sys.path.insert(0, str(ROOT / "sdk" / "mcp" / "src"))

truncation: ModuleType = importlib.import_module("rowsmith_mcp.truncation")
rest: ModuleType = importlib.import_module("rowsmith_mcp.rest")
KEY = "rws_KCkWBxAZJY2hAbCd_" + "a1" * 22
PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=60).map(lambda text: text * 20)
ROWS = st.lists(st.dictionaries(st.sampled_from("abc"), PLAIN), max_size=12)
VALUES = PLAIN | ROWS | st.dictionaries(st.sampled_from("xyz"), ROWS | PLAIN)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.sampled_from(["rows", "name", "more"]), VALUES), st.integers(1000, 8_000))
def test_no_answer_is_heavier_than_the_limit(answer: dict, limit: int):
    try:
        cut = truncation.fit_to_limit(answer, limit)
    except truncation.TooLarge:
        return
    assert truncation.size_of_result(cut) <= limit
    if truncation.size_of_result(answer) <= limit:
        assert cut == answer, "what fits is not touched"


def test_texts_are_shortened_before_rows_are_dropped_and_both_are_reported():
    rows = [{"n": n, "text": "x" * 2000} for n in range(50)]
    cut = truncation.fit_to_limit({"rows": rows})
    assert [row["n"] for row in cut["rows"]] == list(range(len(cut["rows"])))
    assert 0 < len(cut["rows"]) < 50
    assert cut["rows"][0]["text"].endswith("… (cut, 2000 characters)")
    assert any("long texts were shortened" in note for note in cut["notes"])
    assert f"rows: showing the first {len(cut['rows'])} of 50." in cut["notes"]


def test_the_answer_that_was_given_is_left_as_it_is():
    answer = {"rows": [{"text": "x" * 5000}] * 50, "notes": ["one"]}
    before = json.dumps(answer)
    assert truncation.fit_to_limit(answer)["notes"][0] == "one"
    assert json.dumps(answer) == before


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=3000), st.integers(10, 500))
def test_a_head_is_the_longest_beginning_that_has_room(text: str, room: int):
    found = truncation.head(text, room)
    assert text.startswith(found)
    assert len(json.dumps(found, ensure_ascii=False).encode()) <= room
    if found != text:
        longer = text[: len(found) + 1]
        assert len(json.dumps(longer, ensure_ascii=False).encode()) > room


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=200), max_size=40), st.integers(0, 20), st.integers(20, 2000))
def test_a_tail_is_the_last_lines_in_their_order(lines: list[str], count: int, room: int):
    found = truncation.tail(lines, count, room)
    assert len(found) <= count
    assert sum(len(json.dumps(line, ensure_ascii=False).encode()) for line in found) <= room
    if len(found) > 1:
        assert found == lines[-len(found) :]


@pytest.mark.parametrize(
    "value", [KEY, f"key {KEY}.", {"a": [KEY]}, {KEY: 1}, ("x", {"y": f"export K={KEY}"}), "the secret word"]
)
def test_no_key_is_in_a_result(value: object):
    result = json.dumps(truncation.without_keys({"value": value}, "the secret word"))
    assert KEY not in result
    assert "secret word" not in result
    assert truncation.HIDDEN in result


def test_a_column_that_is_not_a_key_is_kept():
    value = {"id": "tpl_01M8131GG5ZQAKHFVNEF239GPV", "n": 1, "text": "rws_ is how keys begin", "none": None}
    assert truncation.without_keys(value) == value


def test_the_command_for_all_rows_quotes_what_a_shell_would_read():
    line = rest.command("http://127.0.0.1:8000", "tpl_1", {"count": 9, "format": "csv", "seed": "it's $(x)"})
    assert '"Authorization: Bearer $SERVICE_API_KEY"' in line
    assert """it'"'"'s $(x)""" in line
    assert line.endswith("-o rows.csv")

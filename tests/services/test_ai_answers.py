"""Responses of a model: JSON is found in any surrounding text, and only valid values are used."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.generation.services import ai_values
from webapp.generation.services.ai_values import InvalidAnswerError, parse_rows, validate_value

TWO = {1: "a", 2: "b"}


@pytest.mark.parametrize(
    "text",
    [
        '{"rows": [{"id": 1, "value": "a"}, {"id": 2, "value": "b"}]}',
        'Sure!\n```json\n{"rows": [{"id": 1, "value": "a"}, {"id": 2, "value": "b"}]}\n```\nMore?',
        '[{"id": 2, "value": "b"}, {"id": 1, "value": "a"}]',
        '{"id": 1, "value": "a"}\n{"id": "2", "value": "b"}',
        '{"answer": {"items": [{"id": 1, "value": "a"}, {"id": 2, "value": "b"}]}}',
        '<think>{"id": 1, "value": "no"}</think>{"rows": [{"id": 1, "value": "a"}, {"id": 2, "value": "b"}]}',
        '[{"id": 1, "value": "a"}, {"id": 2, "value": "b"}, {"id": 1, "value": "c"}, {"id": 3, "value": "d"}]',
        '{"rows": [{"id": 1, "value": "a"}, {"id": 2, "value": "b"}, {"id": 3, "val',
        '["a", "b"]',
        '{"values": ["a", "b"]}',
    ],
)
def test_rows_are_found_by_their_ids_in_any_surrounding_text(text):
    assert parse_rows(text, 2) == TWO


@pytest.mark.parametrize(
    "text", ["", "no", "{{{{", '["a"]', '["a", "b", "c"]', '{"id": true, "value": "a"}', "<think>"]
)
def test_indistinguishable_documents_are_not_rows(text):
    assert parse_rows(text, 2) == {}


@given(st.text() | st.text('{}[]",:0123456789abc \\'))
def test_any_text_is_read_without_an_error(text):
    assert set(parse_rows(text, 3)) <= {1, 2, 3}


@pytest.mark.parametrize("text", ["[" * 500_000, "[1," * 200_000, '{"a":' * 200_000, '["' * 200_000])
def test_a_text_that_opens_and_never_closes_is_given_up(text):
    began = time.process_time()
    assert parse_rows(text, 3) == {}
    assert time.process_time() - began < 5


SAID = {"max_length": None, "decimals": 2, "choices": ("Gold", "Tin")}


@pytest.mark.parametrize(
    ("answer", "value", "result"),
    [
        ("text", "  a\nb\x00\x07 ", "a\nb"),
        ("text", "a\ud800b", "ab"),
        ("text", 12, "12"),
        ("choice", "gold.", "Gold"),
        ("choice", " Tin ", "Tin"),
        ("integer", 12.0, "12"),
        ("integer", " 12 ", "12"),
        ("decimal", 1.005, "1.00"),
        ("decimal", "-3", "-3.00"),
        ("boolean", True, "true"),
        ("boolean", "No", "false"),
        ("date", "2026-02-28", "2026-02-28"),
        ("date", "2026-02-28T10:00:00Z", "2026-02-28"),
    ],
)
def test_a_value_that_fits_is_taken_as_it_is_kept(answer, value, result):
    assert validate_value(value, {**SAID, "answer": answer}) == result


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        *((answer, value) for answer in ai_values._CHECKS for value in (None, {}, [], "")),
        ("text", "x" * 5_000),
        ("choice", "Silver"),
        ("integer", 1.5),
        ("integer", True),
        ("integer", 1 << 63),
        ("integer", "1e400000000"),
        ("decimal", "NaN"),
        ("decimal", float("inf")),
        ("decimal", "1e17"),
        ("boolean", 2),
        ("date", "2026-02-30"),
        ("date", "28.02.2026"),
    ],
)
def test_a_value_that_does_not_fit_is_rejected(answer, value):
    with pytest.raises(InvalidAnswerError):
        validate_value(value, {**SAID, "answer": answer})


def test_a_text_is_no_longer_than_the_field_says():
    text = {**SAID, "answer": "text", "max_length": 3}
    assert validate_value("abc", text) == "abc"
    with pytest.raises(InvalidAnswerError, match="longer than 3"):
        validate_value("abcd", text)

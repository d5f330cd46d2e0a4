"""Text types: whole words, the requested length and case, and values that match their masks and expressions."""

from __future__ import annotations

import re
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.test_random import chi_square
from tests.engine.types.made import assert_unique, bound, faults, values
from webapp.engine.data import vocabulary


def known(name: str, locale: str | None = None) -> set[str]:
    return set(vocabulary.open_default().words(name, locale).to_pylist())


@pytest.mark.parametrize("count", [1, 2, 3, 7, 200])
def test_words_have_the_requested_number(count):
    words = known("word")
    for text in values("words", 100, options={"count": count}):
        assert len(text.split(" ")) == count
        assert set(text.split(" ")) <= words


def test_words_speak_the_language_of_their_locale():
    german = known("word", "de_DE")
    assert german != known("word")
    assert {word for text in values("words", 500, locale="de_DE") for word in text.split()} <= german
    assert {word for text in values("words", 500, of_template="de_DE") for word in text.split()} <= german
    assert "locale" in faults("lorem", locale="de_DE")


def test_every_word_is_as_likely_at_every_place():
    words = sorted(known("word"))
    order = {word: i for i, word in enumerate(words)}
    found = [text.split(" ") for text in values("words", 60_000)]
    for place in range(3):
        counts = np.bincount([order[words[place]] for words in found], minlength=len(words))
        assert abs(chi_square(counts, 60_000 / len(words))) < 5


SENTENCE = r"[A-Z][A-Za-z]*(?: [A-Za-z]+){3,11}\."


@pytest.mark.parametrize("count", [1, 2, 5])
def test_sentences_start_with_a_capital_and_end_with_a_full_stop(count):
    pattern = re.compile(" ".join([SENTENCE] * count))
    found = values("sentences", 400, options={"count": count})
    assert [text for text in found if not pattern.fullmatch(text)] == []
    if count == 1:
        assert {text.count(" ") + 1 for text in found} == set(range(4, 13))


@pytest.mark.parametrize("count", [1, 3])
def test_paragraphs_have_two_to_five_sentences_and_an_empty_line_between(count):
    one = re.compile(f"{SENTENCE}(?: {SENTENCE}){{1,4}}")
    lengths = set()
    for text in values("paragraphs", 300, options={"count": count}):
        parts = text.split("\n\n")
        assert len(parts) == count
        assert all(one.fullmatch(part) for part in parts)
        lengths |= {part.count(".") for part in parts}
    assert lengths == {2, 3, 4, 5}


@pytest.mark.parametrize("name", ["lineCount", "line_count", "lines"])
def test_lorem_has_the_requested_number_of_lines(name):
    words = known("lorem")
    for text in values("lorem", 200, options={name: 4}):
        lines = text.split("\n")
        assert len(lines) == 4
        assert all(line.endswith(".") and line[0].isupper() for line in lines)
        assert {word.strip(".").lower() for line in lines for word in line.split()} <= words


def test_long_texts_are_generated_in_pieces_without_visible_boundaries():
    source = bound([{"name": "x", "type": "paragraphs", "options": {"count": 40}}])
    whole = source.block(0, 500)[0]
    assert source.block(333, 1)[0].equals(whole.slice(333, 1))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("words", {"count": 1}),
        ("words", {"count": 2}),
        ("words", {"count": 9}),
        ("sentences", {}),
        ("paragraphs", {}),
        ("lorem", {}),
    ],
)
def test_unique_text_never_repeats(kind, options):
    count = len(known("word")) if options == {"count": 1} else 5000
    assert_unique({"name": "x", "type": kind, "options": options}, count)


def test_a_random_string_keeps_to_its_length_and_letters():
    assert {len(text) for text in values("random_string", 100)} == {16}
    assert {len(text) for text in values("random_string", 500, options={"max": 3})} == {3}
    assert {len(text) for text in values("random_string", 500, options={"min": 20})} == {20}
    found = values("random_string", 3000, options={"min": 2, "max": 5, "alphabet": "aé😀"})
    assert {len(text) for text in found} == {2, 3, 4, 5}
    assert set("".join(found)) == set("aé😀")
    counts = np.unique(list("".join(values("random_string", 20_000))), return_counts=True)[1]
    assert counts.size == 62
    assert abs(chi_square(counts, 20_000 * 16 / 62)) < 4


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 12), st.integers(0, 12), st.text(min_size=1, max_size=8).filter(str.isprintable))
def test_any_alphabet_and_length_is_honoured(low, more, alphabet):
    options = {"min": low, "max": low + more, "alphabet": alphabet}
    for text in values("random_string", 40, options=options):
        assert low <= len(text) <= low + more
        assert set(text) <= set(alphabet)


def test_unique_strings_differ_even_where_case_is_ignored():
    assert_unique({"name": "x", "type": "random_string", "options": {"min": 3, "max": 3}}, 5000)
    found = values("random_string", 36**2, options={"min": 2, "max": 2}, unique=True)
    assert len({text.lower() for text in found}) == 36**2
    assert any(text != text.lower() for text in found)
    options = {"min": 1, "max": 2, "alphabet": "a b"}
    assert faults("random_string", options, unique=True) == {"unique": "not_unique"}


def test_a_random_string_rejects_min_over_max():
    assert faults("random_string", {"min": 5, "max": 4}) == {"options.min": "min_above_max"}
    assert faults("random_string", {"min": -1, "alphabet": ""}) == {
        "options.min": "greater_than_equal",
        "options.alphabet": "string_too_short",
    }


def test_an_expression_may_be_called_what_others_call_it():
    for name in ("string", "pattern", "regex"):
        assert all(
            re.fullmatch(r"[A-Z]{2}\d", text) for text in values("regexp", 50, options={name: r"[A-Z]{2}\d"})
        )


def test_an_impossible_expression_is_rejected_with_its_position():
    from webapp.engine.errors import SpecError

    with pytest.raises(SpecError) as error:
        bound([{"name": "x", "type": "regexp", "options": {"string": "ab(c"}}])
    (fault,) = error.value.faults
    assert (fault.path, fault.code) == ("fields[0].options.string", "bad_expression")
    assert "At character 3." in fault.hint


def test_an_ambiguous_expression_cannot_be_unique():
    assert faults("regexp", {"string": "(a|ab)(c|bc)"}, unique=True) == {"unique": "not_unique"}
    assert_unique({"name": "x", "type": "regexp", "options": {"string": "[a-f]{1,4}-[0-9]{2}"}}, 5000)


def test_a_mask_replaces_its_marks_and_keeps_the_rest():
    found = values("character_sequence", 2000, options={"mask": r"\#^^-##.@*\\"})
    assert all(re.fullmatch(r"#[A-Z]{2}-\d{2}\.[a-z][A-Za-z0-9]\\", text) for text in found)
    assert {text[-2] for text in found} == set(string.ascii_letters + string.digits)
    assert values("character_sequence", 1, options={"mask": "ab\\"}) == ["ab\\"]
    assert_unique({"name": "x", "type": "character_sequence", "options": {"mask": "@##"}}, 2600)


def test_an_emoji_is_one_character():
    found = set(values("emoji", 5000))
    assert len(found) > 500
    assert all(len(text) == 1 and ord(text) > 0x1F000 for text in found)

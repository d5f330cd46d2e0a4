"""Expressions make texts that match them, evenly, and never the same twice where that is promised."""

from __future__ import annotations

import re
import string
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from webapp import limits
from webapp.engine import random
from webapp.engine.regex import patterns
from webapp.engine.regex.parser import Node, parse
from webapp.engine.types.values import fold_text

KEY = random.key("seed", "regex")
ROWS = np.arange(3000, dtype=np.uint64)

EXPRESSIONS = [
    r"[A-Z]{3}-\d{4}",
    r"\d{3}-\d{2}-\d{4}",
    r"[a-z]{2,5}\d{1,3}",
    r"(foo|bar|b?az)+x",
    r"^(GB|DE)\d{2}[A-Z0-9]{10,20}$",
    r"(?i)abc[x-z]{2}",
    r"[äöüß]{3}-\d",
    r"\w+@\w+\.(com|org|net)",
    r"([A-Z]\d ){2,4}end",
    r"a*b*c*",
    r"",
    r"x{0}y?",
    r"(a|)",
    r"\+1 \(\d{3}\) \d{3}-\d{4}",
    r"[^a-z]{5}\S\D\W.",
    r"(?P<year>19|20)\d\d-(?:0[1-9]|1[0-2])",
    r"😀{1,3}a?",
    r"[]a-][^]a]x{,2}{b}",
    r"\x41\u00e9\U0001f600\0\n\t\\\.",
    r"(?i:ab)c(?#remark)d",
    r"^$|^a$",
    r"(((x|y){2}|z){1,2}w){0,2}",
]
each = pytest.mark.parametrize("source", EXPRESSIONS)


def draw(source: str, rows: np.ndarray = ROWS) -> list[str]:
    generated = patterns.compile_pattern(source).draw(KEY, rows)
    generated.validate(full=True)
    return generated.to_pylist()


def unique(source: str, count: int = 3000, start: int = 0) -> list[str]:
    pattern = patterns.compile_pattern(source)
    assert pattern.not_unique_reason() is None
    rows = np.arange(start, start + count, dtype=np.uint64)
    generated = pattern.unrank(KEY, rows, random.permutation(KEY, rows, pattern.distinct_count))
    generated.validate(full=True)
    return generated.to_pylist()


@each
def test_every_text_matches_its_expression(source):
    matches = re.compile(source)
    found = draw(source)
    assert [text for text in found if not matches.fullmatch(text)] == []
    assert max(map(len, found)) <= patterns.compile_pattern(source).max_length


@each
def test_a_text_depends_only_on_its_row(source):
    whole = draw(source)
    rows = ROWS[::-7]
    assert draw(source, rows) == whole[::-7]
    assert draw(source, ROWS[2995:]) == whole[2995:]
    assert draw(source, ROWS[:0]) == []


@each
def test_unique_texts_match_and_never_repeat(source):
    pattern = patterns.compile_pattern(source)
    if pattern.not_unique_reason() is not None:
        return
    count = min(pattern.distinct_count, 3000)
    found = unique(source, count)
    assert all(re.fullmatch(source, text) for text in found)
    assert len({fold_text(text) for text in found}) == count
    assert unique(source, 1, count - 1) == found[-1:]


def test_wide_texts_are_generated_in_pieces_without_visible_boundaries():
    source = r"\w{300,400}"
    rows = np.arange(8192, dtype=np.uint64)
    found = patterns.compile_pattern(source).draw(KEY, rows)
    assert found.take([0, 4000, 8191]).to_pylist() == draw(source, rows[[0, 4000, 8191]])


def test_all_values_of_a_small_domain_are_generated():
    assert sorted(unique(r"[ab]?\d", 30)) == sorted(a + d for a in ("", "a", "b") for d in string.digits)
    assert len(set(unique(r"(red|green|rose){1,2}", 12))) == 12


def test_a_space_beyond_64_bits_still_never_repeats():
    source = r"[a-z]{1,40}[0-9]{3,30}"
    pattern = patterns.compile_pattern(source)
    assert pattern.distinct_count == 2**62
    found = unique(source) + unique(source, 3000, 2**62 - 3000)
    assert len(set(found)) == 6000
    assert all(re.fullmatch(source, text) for text in found)


@pytest.mark.parametrize("source", [r"[a-z]\d{3}", r"(a|b|c){4}", r"x{0,9}"])
def test_choices_are_even(source):
    found = draw(source, np.arange(40_000, dtype=np.uint64))
    if source == "x{0,9}":
        counts = np.bincount([len(text) for text in found])
        groups = [counts]
    else:
        groups = [np.unique([text[i] for text in found], return_counts=True)[1] for i in range(len(found[0]))]
    for counts in groups:
        expected = 40_000 / counts.size
        assert abs(((counts - expected) ** 2 / expected).sum() - counts.size + 1) < 5 * np.sqrt(
            2 * counts.size
        )


@pytest.mark.parametrize(
    ("source", "position"),
    [
        ("ab(c", 2),
        ("ab)c", 2),
        ("x[z-a]", 2),
        ("x[a", 1),
        ("a{3,1}", 1),
        ("a{99999999999}", 1),
        ("*a", 0),
        ("a|*", 2),
        ("{2}", 0),
        ("a**", 2),
        ("a{2}{3}", 4),
        ("a++", 2),
        ("a(?=b)", 1),
        ("a(?!b)", 1),
        ("a(?<=b)", 1),
        ("(a)\\1", 3),
        ("(?P<n>a)(?P=n)", 8),
        ("(?>a)", 0),
        ("a\\b", 1),
        ("a\\", 1),
        ("a\\q", 1),
        ("a\\x4", 1),
        ("a\\ud800", 1),
        ("[a-\\d]", 1),
        ("x[^\\x00-\\xff]", 1),
        ("a^b", 1),
        ("a$b", 1),
        ("(^a){2}", 1),
        ("(?x)a", 0),
        ("a(?i)b", 1),
        ("(?P<1>a)", 0),
        ("ab{3000}", 1),
        ("a((b{50}){50})", 2),
        ("(" * 60, 50),
    ],
)
def test_impossible_texts_are_rejected_with_their_position(source, position):
    with pytest.raises(patterns.RegexError) as error:
        patterns.compile_pattern(source)
    assert error.value.position == position


def test_an_expression_that_is_too_long_is_rejected():
    with pytest.raises(patterns.RegexError):
        patterns.compile_pattern("a" * (limits.MAX_PATTERN_CHARS + 1))


@pytest.mark.parametrize(
    "source",
    [
        "(a|ab)(c|bc)",
        "(a|b|ab)*",
        "[a-z]{1,3}[a-z]{1,3}",
        "(a?){2}",
        "(x|X)",
        "(a|a)b",
        "[ab]*b?",
        ".{3}",
        "a ?",
    ],
)
def test_values_that_may_occur_twice_are_not_unique(source):
    assert patterns.compile_pattern(source).not_unique_reason()


@pytest.mark.parametrize(
    ("source", "space"),
    [
        (r"[A-Z]{3}-\d{4}", 26**3 * 10**4),
        (r"[a-z]{2,5}\d{1,3}", sum(26**n for n in range(2, 6)) * 1110),
        (r"(red|rose)\d", 20),
        (r"[Aa][Bb]", 1),
        (r"[eé]x", 1),
        (r"\d{1,3}[a-f]", 1110 * 6),
        (r"(a|bb){3}", 8),
    ],
)
def test_the_space_counts_texts_that_differ_in_more_than_case_and_accents(source, space):
    pattern = patterns.compile_pattern(source)
    assert pattern.not_unique_reason() is None
    assert pattern.distinct_count == space


CHARS = st.sampled_from(["a", "b", "c", "ab", "[ab]", "[a-c]", "\\d", "x", "(?:a|b)", "[B-D]"])
PIECES = st.recursive(
    CHARS,
    lambda inner: st.one_of(
        st.builds("({}|{})".format, inner, inner),
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(["?", "{2}", "{1,2}", "{0,2}", "{3}"])),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(PIECES)
def test_any_expression_makes_texts_that_match(source):
    matches = re.compile(source)
    assert all(matches.fullmatch(text) for text in draw(source, ROWS[:50]))


@settings(max_examples=150, deadline=None)
@given(PIECES)
def test_unambiguous_urls_are_accepted(source):
    tree: Node = parse(source)
    pattern = patterns.compile_pattern(source)
    assume(tree.count <= 3000)
    different = set(tree.texts())
    if pattern.not_unique_reason() is None:
        assert len(different) == tree.count == pattern.distinct_count
        found = unique(source, pattern.distinct_count)
        assert {fold_text(text) for text in found} == different
    if tree.prefix_free():
        ordered = sorted(different)
        assert not any(b.startswith(a) for a, b in pairwise(ordered))
    if tree.suffix_free():
        ordered = sorted(text[::-1] for text in different)
        assert not any(b.startswith(a) for a, b in pairwise(ordered))


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab01()[]{}|*+?^$.\\-,:<>=!iPdwsx "), max_size=12))
def test_any_input_is_parsed_like_re_or_rejected(source):
    try:
        pattern = patterns.compile_pattern(source)
    except patterns.RegexError as refused:
        position = refused.position
    else:
        position = None
    if position is not None:
        assert 0 <= position <= len(source)
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # re may one day read [[ and && differently
            matches = re.compile(source)
    except re.error:
        assert "(?<" in source  # a group named as in JavaScript, which re does not know
        return
    found = pattern.draw(KEY, ROWS[:30]).to_pylist()
    assert all(matches.fullmatch(text) for text in found)

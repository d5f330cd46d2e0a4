"""format_preserve: different values of the same format; each depends on exactly one original value."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stdnum import iban, luhn

from tests.engine.masking.speak import masked, masker
from webapp.engine.masking import MaskingError, has_content
from webapp.engine.masking.format_preserving import Permutation
from webapp.engine.masking.keys import Aes

FEW = settings(max_examples=60, deadline=None)
SCRIPTS = "azAZ09éÉßñøÅžŁłΣσςяЯ李洪홍مא๑א ナ-._ '"


@pytest.mark.parametrize(
    ("n", "b"), [(2, 0), (3, 0), (10, 0), (26, 0), (90, 0), (100, 10), (1000, 10), (12_345, 0)]
)
def test_it_is_a_permutation_that_leaves_no_number_where_it_is(n, b):
    numbers = np.arange(n, dtype=np.uint64)
    result = Permutation(Aes(b"k" * 32), n, 7, b).apply(numbers)
    assert sorted(result.tolist()) == list(range(n))
    assert (result != numbers).all()


def test_each_tweak_and_each_context_has_its_own_permutation():
    numbers, aes = np.arange(1000, dtype=np.uint64), Aes(b"k" * 32)
    tweaks = np.repeat(np.array([1, 2], np.uint64), 500)
    plain = Permutation(aes, 1000, 7).apply(numbers)
    tweaked = Permutation(aes, 1000, 7).apply(numbers, tweaks)
    other = Permutation(aes, 1000, 8).apply(numbers)
    assert (tweaked == plain).mean() < 0.02
    assert (other == plain).mean() < 0.02
    assert len(set(tweaked[:500].tolist())) == len(set(tweaked[500:].tolist())) == 500


def test_every_short_text_of_a_shape_comes_out_once():
    texts = [
        f"{a}{b}-{c}"
        for a in "abcdefghijklmnopqrstuvwxyz"
        for b in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        for c in range(10)
    ]
    result = masked("words", "format_preserve", texts)
    assert sorted(result) == sorted(texts)
    assert all(
        text[:2].lower() != other[:2].lower() and text[3] != other[3]
        for text, other in zip(texts, result, strict=True)
    )


def sort_of(character: str) -> str:
    return unicodedata.category(character)[0] if unicodedata.category(character)[0] in "LN" else character


@FEW
@given(st.lists(st.text(st.sampled_from(SCRIPTS), max_size=60), min_size=1, max_size=30, unique=True))
def test_texts_keep_their_shape_and_none_meets_another(texts):
    result = masked("words", "format_preserve", texts)
    assert len(set(result)) == len(texts)
    for real, other, tells in zip(texts, result, has_content(pa.array(texts)), strict=True):
        assert [sort_of(item) for item in real] == [sort_of(item) for item in other]
        assert [item.isupper() for item in real if item.isascii()] == [
            item.isupper() for item in other if item.isascii()
        ]
        assert (real.casefold() != other.casefold()) or not tells


@FEW
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=20, unique=True))
def test_any_text_at_all_can_be_masked(texts):
    result = masked("words", "format_preserve", texts)
    assert len(set(result)) == len(texts)
    assert [len(item) for item in result] == [len(text) for text in texts]


@FEW
@given(st.lists(st.emails(), min_size=1, max_size=20, unique=True))
def test_an_address_keeps_its_domain(addresses):
    result = masked("email", "format_preserve", addresses)
    assert len(set(result)) == len(addresses)
    for real, other in zip(addresses, result, strict=True):
        front, _, domain = real.rpartition("@")
        if has_content(pa.array([front]))[0]:
            assert other.rpartition("@")[2] == domain
            assert other.rpartition("@")[0].casefold() != front.casefold()


def test_an_invalid_url_is_masked_completely():
    (plain, odd, two) = masked("email", "format_preserve", ["anna", "--@host.org", "a@b@host.org"])
    assert re.fullmatch("[a-z]{4}", plain)
    assert re.fullmatch(r"--@[a-z]{4}\.[a-z]{3}", odd)
    assert odd != "--@host.org"
    assert re.fullmatch(r"[a-z]@[a-z]@host\.org", two)


@FEW
@given(st.lists(st.from_regex(r"[3-6][0-9]{12,18}", fullmatch=True), min_size=1, max_size=20, unique=True))
def test_a_card_keeps_its_prefix_and_is_as_right_as_it_was(cards):
    result = masked("credit_card_number", "format_preserve", cards)
    assert len(set(result)) == len(cards)
    for real, other in zip(cards, result, strict=True):
        assert other[:6] == real[:6]
        assert len(other) == len(real)
        assert other != real
        assert luhn.checksum(other) == luhn.checksum(real)


def test_cards_keep_their_hyphens():
    (result,) = masked("credit_card_number", "format_preserve", ["4111-1111-1111-1111"])
    assert re.fullmatch(r"4111-11\d\d-\d{4}-\d{4}", result)
    assert luhn.is_valid(result.replace("-", ""))


PHONES = [
    "+49 170 1234567",
    "+1 415 555 2671",
    "+353 1 234 5678",
    "0049 30 123456",
    "030 1234567",
    "415-555-2671",
]


def test_a_telephone_number_keeps_its_country():
    result = masked("phone_number", "format_preserve", PHONES)
    stored = ["+49 ", "+1 ", "+353 ", "0049 ", "03", "4"]
    assert all(item.startswith(front) for item, front in zip(result, stored, strict=True))
    assert all(
        re.sub(r"\d", "0", item) == re.sub(r"\d", "0", other)
        for item, other in zip(result, PHONES, strict=True)
    )
    assert not set(result) & set(PHONES)
    (short,) = masked("phone_number", "format_preserve", ["112"])
    assert re.fullmatch(r"\d{3}", short)
    assert short != "112"


@FEW
@given(st.lists(st.from_regex(r"(\+|00)?[0-9]{1,12}", fullmatch=True), min_size=1, max_size=40, unique=True))
def test_no_two_telephone_numbers_meet(numbers):
    result = masked("mobile", "format_preserve", numbers)
    assert len(set(result)) == len(numbers)
    assert not any(item == other for item, other in zip(result, numbers, strict=True))


def test_an_iban_stays_valid_and_a_wrong_one_stays_wrong():
    right = ["DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19"]
    wrong = ["DE88370400440532013000", "DE90370400440532013000"]
    result = masked("iban", "format_preserve", [*right, *wrong, "no iban"])
    assert [iban.is_valid(item, check_country=False) for item in result[:4]] == [True, True, False, False]
    assert [item[:2] for item in result[:4]] == ["DE", "GB", "DE", "DE"]
    assert len(set(result)) == 5


@pytest.mark.parametrize("values", [[], [""], ["no iban"]])
def test_a_column_without_ibans_is_masked_too(values):
    generated = masked("iban", "format_preserve", pa.array(values, pa.string()))
    assert [len(item) for item in generated] == [len(value) for value in values]


@FEW
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40, unique=True))
def test_whole_numbers_keep_sign_and_digits(numbers):
    result = masked("number", "format_preserve", pa.array(numbers, pa.int64()))
    assert len(set(result)) == len(numbers)
    for real, other in zip(numbers, result, strict=True):
        assert len(str(abs(real))) == len(str(abs(other)))
        assert (real < 0) == (other < 0)
        assert real != other


def test_numbers_of_few_bits_stay_within_them_and_decimals_keep_their_places():
    small = pa.array(range(256), pa.uint8())
    assert sorted(masked("number", "format_preserve", small)) == list(range(256))
    prices = [Decimal("12.50"), Decimal("-3.07"), None]
    result = masked("money", "format_preserve", pa.array(prices, pa.decimal128(10, 2)))
    assert result[2] is None
    assert result[1] < 0 < result[0] < 100
    assert result[0] != prices[0]


def test_an_unknown_format_is_rejected_on_upload():
    with pytest.raises(MaskingError) as result:
        masker("words", "format_preserve").mask(pa.array([datetime(2026, 1, 1, tzinfo=UTC)]))
    assert result.value.code == "not_for_this_type"
    with pytest.raises(MaskingError) as result:
        masker("number", "format_preserve").mask(pa.array([2**63], pa.uint64()))
    assert result.value.code == "too_large"


def test_a_space_between_digits_does_not_change_what_they_become():
    plain, spaced = masked("words", "format_preserve", ["491701234567", "49 170 1234567"])
    assert spaced.replace(" ", "") == plain

"""Texts of one width: what schemes are compiled to."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.engine.types.made import bound
from webapp.engine.random import RandomStream
from webapp.engine.types import codes as types_codes
from webapp.engine.types.codes import DIGITS, UPPER, Check, Code, Gap, Pick, Run, texts_by_code

ROWS = np.arange(1000, dtype=np.uint64)


def every(code: Code) -> list[str]:
    return code.text([np.arange(code.capacity, dtype=np.uint64)]).to_pylist()


def test_numbers_map_one_to_one_to_texts():
    code = Code("A", Run("01"), Pick(("xy", "zw", "uv")), Gap("-"), Run("abc", 3))
    result = every(code)
    assert len(result) == len(set(result)) == code.space == 2 * 3 * 27
    assert result[0] == "A0xy-aaa"
    assert result[-1] == "A1uv-ccc"


@pytest.mark.parametrize("width", range(1, 14))
def test_every_width_of_a_run_is_drawn_whole(width):
    code = Code(Run(DIGITS, width))
    assert code.space == 10**width
    last = [np.full(1, size - 1, np.uint64) for size in code.sizes]
    assert code.text(last).to_pylist() == ["9" * width]


def test_a_remainder_without_check_digit_never_comes_and_every_other_number_does():
    scheme = (Run(DIGITS, 4), types_codes.weighted((3, 2, 7, 6), 11, types_codes.complement(11)))
    code = Code(*scheme)
    assert code.space == 9000
    result = every(code)
    assert len(set(result)) == 9000
    assert all(
        sum(w * int(d) for w, d in zip((3, 2, 7, 6, 1), text, strict=True)) % 11 == 0 for text in result
    )


def test_checks_wait_for_the_checks_they_count():
    whole = Check(10, lambda position, ch: int(ch) if position else 0, tuple("0123456789"))
    inner = Check(10, lambda position, ch: int(ch) if position in (1, 2) else 0, tuple("0123456789"))
    for text in every(Code(whole, Run(DIGITS, 2), inner)):
        assert int(text[3]) == (int(text[1]) + int(text[2])) % 10
        assert int(text[0]) == sum(map(int, text[1:])) % 10


def test_two_checks_that_need_one_digit_are_rejected():
    one = types_codes.weighted((1,), 11, types_codes.remainder)
    with pytest.raises(ValueError, match="two checks"):
        Code(Run(DIGITS), one, one)


def test_blanks_after_every_few_characters_change_nothing_else():
    parts = ("DE", types_codes.iban("n" * 18), Run(DIGITS, 18))
    numbers = Code(*parts).draw(RandomStream(np.uint64(1), ROWS))
    grouped = Code(*parts, group_size=4).text(numbers).to_pylist()
    assert [text.replace(" ", "") for text in grouped] == Code(*parts).text(numbers).to_pylist()


def test_spaces_beyond_64_bits_take_several_draws():
    code = Code(Run(UPPER, 30))
    assert code.space == 26**30
    assert len(code.sizes) > 1
    assert len(set(code.text(code.draw_unique(RandomStream(np.uint64(1), ROWS))).to_pylist())) == ROWS.size


def test_draws_are_even():
    seen = Counter("".join(Code(Run(DIGITS, 7)).text([ROWS * np.uint64(9999)]).to_pylist()))
    assert len(seen) == 10
    code = Code(Run("abcde"))
    counts = Counter(
        code.text(code.draw(RandomStream(np.uint64(9), np.arange(50_000, dtype=np.uint64)))).to_pylist()
    )
    assert all(9_500 < count < 10_500 for count in counts.values())


def test_mixed_codes_keep_their_rows():
    codes = [Code("a", Run(DIGITS, 3)), Code("bb", Run(DIGITS, 5)), Code("c", Run(DIGITS))]
    source = RandomStream(np.uint64(4), ROWS)
    which = (ROWS % np.uint64(2)).view(np.int64)
    whole = [code.text(code.draw(source)).to_pylist() for code in codes]
    assert texts_by_code(codes, which, source).to_pylist() == [
        whole[w][row] for row, w in enumerate(which.tolist())
    ]


@pytest.mark.parametrize(
    "kind",
    ["account_number", "account_name", "aba_routing", "credit_card_number", "ssn", "hex_color", "rgb_color", "ipv4",
     "mac_address"],
)  # fmt: skip
def test_the_catalogue_counts_as_the_column_does(kind):
    generated = bound([{"name": "x", "type": kind}]).plan.layer.columns["x"].type
    assert generated.capacity() == generated.distinct_count()

"""Colours."""

from __future__ import annotations

import re

import pytest

from tests.engine.types.made import assert_laws, faults, values


@pytest.mark.parametrize(
    ("kind", "options"),
    [("color", {}), ("hex_color", {}), ("hex_color", {"case": "upper"}), ("rgb_color", {})],
)
def test_rows_depend_only_on_their_number(kind, options):
    assert_laws(kind, options)


def test_colors_are_written_as_css_reads_them():
    assert all(re.fullmatch("#[0-9a-f]{6}", text) for text in values("hex_color", 2000))
    assert all(
        re.fullmatch("#[0-9A-F]{6}", text) for text in values("hex_color", 2000, options={"case": "upper"})
    )
    for text in values("rgb_color", 2000):
        shares = re.fullmatch(r"rgb\((\d+), (\d+), (\d+)\)", text).groups()
        assert all(0 <= int(share) <= 255 for share in shares)


def test_every_share_of_every_color_occurs():
    texts = [text[4:-1].split(", ") for text in values("rgb_color", 8192)]
    assert all({int(text[place]) for text in texts} == set(range(256)) for place in range(3))


def test_color_names_speak_the_locales_language_where_it_has_some():
    assert "Blau" in values("color", 3000, locale="de_DE")
    assert "白" in values("color", 3000, locale="ja_JP")
    assert "Blue" in values("color", 3000, locale="yo_NG")
    assert faults("hex_color", locale="de_DE") == {"locale": "not_for_this_type"}

"""Texts brought to plain Latin letters: without accents, or as ASCII alone."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# Letters that no decomposition takes to ASCII.
_LETTERS = (
    ("ß", "ss"), ("æ", "ae"), ("Æ", "AE"), ("œ", "oe"), ("Œ", "OE"), ("ø", "o"), ("Ø", "O"), ("ł", "l"), ("Ł", "L"),
    ("đ", "d"), ("Đ", "D"), ("ı", "i"), ("þ", "th"), ("Þ", "Th"), ("ð", "d"), ("Ð", "D"),
)  # fmt: skip


def bare(texts: pa.Array) -> pa.Array:
    """Texts without accents; letters that have none to lose are spelled out: ß is ss."""
    foreign = pc.fill_null(pc.invert(pc.string_is_ascii(texts)), False)
    some = texts.filter(foreign)  # mostly few
    if not len(some):
        return texts
    for letter, plain in _LETTERS:
        some = pc.replace_substring(some, letter, plain)
    plainer = pc.replace_substring_regex(pc.utf8_normalize(some, "NFD"), r"\p{Mn}", "")
    return pc.replace_with_mask(texts, foreign, pc.utf8_normalize(plainer, "NFC"))


def to_ascii(texts: pa.Array) -> pa.Array:
    """Texts without accents, and without what is not ASCII then."""
    return pc.replace_substring_regex(bare(texts), r"[^\x00-\x7f]", "")

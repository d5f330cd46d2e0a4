"""Words to make running text of: each language's common ones, the classic filler, and pictures among letters."""

from __future__ import annotations

from webapp.engine.data.extract.locales import LOCALES
from webapp.engine.data.extract.tools import listed

# Unicode 6.0 to 8.0, one code point each, with pictures as their default presentation: old enough for every font.
_EMOJI_RANGES = (
    (0x1F600, 0x1F64F), (0x1F330, 0x1F335), (0x1F337, 0x1F37C), (0x1F380, 0x1F393), (0x1F3A0, 0x1F3C4),
    (0x1F3C6, 0x1F3CA), (0x1F3E0, 0x1F3F0), (0x1F400, 0x1F43E), (0x1F442, 0x1F44F), (0x1F451, 0x1F47B),
    (0x1F47D, 0x1F4F7), (0x1F4F9, 0x1F4FC), (0x1F500, 0x1F53D), (0x1F5FB, 0x1F5FF), (0x1F680, 0x1F6C5),
    (0x1F910, 0x1F918), (0x1F980, 0x1F984),
)  # fmt: skip


def words() -> dict[str, list[str]]:
    """Common words by locale, English for those without a list of their own."""
    found = {
        locale: _single(source) for locale in LOCALES if (source := listed("lorem", locale, "word_list"))
    }
    found[""] = found["en_US"]
    return found


def lorem() -> dict[str, list[str]]:
    """The words of Cicero's "de finibus" that printers fill pages with."""
    return {"": _single(listed("lorem", "la", "word_list"))}


def emoji() -> dict[str, list[str]]:
    """Single characters, the same everywhere."""
    return {"": [chr(code) for first, last in _EMOJI_RANGES for code in range(first, last + 1)]}


def _single(source: list[str]) -> list[str]:
    """Words of letters alone, so that a blank or a full stop always ends a word."""
    return [word for word in source if word.isalpha()]

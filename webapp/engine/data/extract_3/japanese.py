"""Japanese names with their reading, and readings in Hepburn's romanization and in katakana."""

from __future__ import annotations

from functools import cache

from webapp.engine.data.extract_3.tools import lines, provider

_HIRAGANA_FIRST, _HIRAGANA_LAST, _KATAKANA_SHIFT = "ぁ", "ゖ", 0x60
_SYLLABLES = dict(
    pair.split(":")
    for pair in (
        "あ:a い:i う:u え:e お:o か:ka き:ki く:ku け:ke こ:ko さ:sa し:shi す:su せ:se "
        "そ:so た:ta ち:chi つ:tsu て:te と:to な:na に:ni ぬ:nu ね:ne の:no は:ha ひ:hi ふ:fu "
        "へ:he ほ:ho ま:ma み:mi む:mu め:me も:mo や:ya ゆ:yu よ:yo ら:ra り:ri る:ru れ:re "
        "ろ:ro わ:wa を:o ん:n が:ga ぎ:gi ぐ:gu げ:ge ご:go ざ:za じ:ji ず:zu ぜ:ze ぞ:zo "
        "だ:da ぢ:ji づ:zu で:de ど:do ば:ba び:bi ぶ:bu べ:be ぼ:bo ぱ:pa ぴ:pi ぷ:pu ぺ:pe "
        "ぽ:po"
    ).split()
)


def pairs(which: str) -> list[tuple[str, str]]:
    """(name, reading in hiragana) of ``family``, ``female`` or ``male`` names."""
    for line in lines("japanese"):
        head, _, names = line.partition(": ")
        if head == which:
            found = (name.split("=") for name in names.split("|"))
            return [(name, reading) for name, reading in found]
    raise KeyError(which)


@cache
def readings() -> dict[str, str]:
    """{name: reading in hiragana}; of names with several readings the first."""
    found: dict[str, str] = {}
    for which in ("family", "female", "male"):
        for name, reading in pairs(which):
            found.setdefault(name, reading)
    source = provider("person", "ja_JP")
    for name, kana, _ in (
        *source.last_name_pairs,
        *source.first_name_female_pairs,
        *source.first_name_male_pairs,
    ):
        found.setdefault(name, hiragana(kana))
    return found


def hiragana(text: str) -> str:
    """Katakana as hiragana."""
    return "".join(chr(ord(ch) - _KATAKANA_SHIFT) if "ァ" <= ch <= "ヶ" else ch for ch in text)


def katakana(text: str) -> str:
    """Hiragana as katakana."""
    shifted = _HIRAGANA_FIRST, _HIRAGANA_LAST
    return "".join(chr(ord(ch) + _KATAKANA_SHIFT) if shifted[0] <= ch <= shifted[1] else ch for ch in text)


def hepburn(text: str) -> str:
    """Hiragana in Latin letters as passports have them: long vowels are not marked, and an ``ou`` is an ``o``."""
    made = ""
    doubled = False
    for ch in hiragana(text):
        if ch == "っ":
            doubled = True
            continue
        if ch in "ゃゅょ" and made:
            vowel = {"ゃ": "a", "ゅ": "u", "ょ": "o"}[ch]
            stem = made.removesuffix("i")
            made = stem + vowel if stem.endswith(("sh", "ch", "j")) else stem + "y" + vowel
            continue
        found = _SYLLABLES.get(ch, ch if ch.isascii() else "")
        if doubled and found:
            made += "t" if found.startswith("ch") else found[0]
        doubled = False
        if ch == "う" and made.endswith(("o", "u")):
            continue
        if ch == "お" and made.endswith("o"):
            continue
        made += found
    return made

"""Japanese names with their reading, and readings in Hepburn's romanization and in katakana."""

from __future__ import annotations

from functools import cache

from webapp.engine.data.extract_3.tools import lines, provider

_HIRAGANA_FIRST, _HIRAGANA_LAST, _KATAKANA_SHIFT = "ぁ", "ゖ", 0x60
_SYLLABLES = {
    kana: roman
    for kana, roman in zip(
        "あ い う え お か き く け こ さ し す せ そ た ち つ て と な に ぬ ね の は ひ ふ へ ほ ま み む め も や ゆ よ "
        "ら り る れ ろ わ を ん が ぎ ぐ げ ご ざ じ ず ぜ ぞ だ ぢ づ で ど ば び ぶ べ ぼ ぱ ぴ ぷ ぺ ぽ".split(),
        "a i u e o ka ki ku ke ko sa shi su se so ta chi tsu te to na ni nu ne no ha hi fu he ho ma mi mu me mo ya yu yo "
        "ra ri ru re ro wa o n ga gi gu ge go za ji zu ze zo da ji zu de do ba bi bu be bo pa pi pu pe po".split(),
        strict=True,
    )
}


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
    for name, kana, _ in (*source.last_name_pairs, *source.first_name_female_pairs, *source.first_name_male_pairs):
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

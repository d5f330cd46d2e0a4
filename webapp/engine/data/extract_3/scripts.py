"""Words of every script that a locale here is written in, in the letters a to z.

The scripts of the first extractor are read as it reads them. Those of India, Sri Lanka and Ethiopia follow the names
that Unicode gives their letters; the others have a table each. The result is for user names, e-mail addresses and
`romanized`: one spelling that readers recognise, not a scholarly transliteration.
"""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache

from webapp.engine.data.extract import romanize as first


def _table(text: str) -> dict[str, str]:
    return {pair[0]: pair[2:] for pair in text.split()}


# Official Georgian system of 2002.
_GEORGIAN = _table(
    "ა:a ბ:b გ:g დ:d ე:e ვ:v ზ:z თ:t ი:i კ:k ლ:l მ:m ნ:n ო:o პ:p ჟ:zh რ:r ს:s ტ:t უ:u ფ:p ქ:k ღ:gh ყ:q შ:sh ჩ:ch "
    "ც:ts ძ:dz წ:ts ჭ:ch ხ:kh ჯ:j ჰ:h"
)
# BGN/PCGN 1981, without apostrophes.
_ARMENIAN = _table(
    "ա:a բ:b գ:g դ:d ե:e զ:z է:e ը:y թ:t ժ:zh ի:i լ:l խ:kh ծ:ts կ:k հ:h ձ:dz ղ:gh ճ:ch մ:m յ:y ն:n շ:sh ո:o չ:ch պ:p "
    "ջ:j ռ:r ս:s վ:v տ:t ր:r ց:ts ւ:u փ:p ք:k օ:o ֆ:f և:ev"
)
_HEBREW = _table(
    "א:a ב:b ג:g ד:d ה:h ו:o ז:z ח:h ט:t י:i כ:k ך:k ל:l מ:m ם:m נ:n ן:n ס:s ע:a פ:p ף:f צ:tz ץ:tz ק:k ר:r ש:sh ת:t"
)
_ARABIC = _table(
    "ا:a أ:a إ:i آ:a ب:b ت:t ث:th ج:j ح:h خ:kh د:d ذ:dh ر:r ز:z س:s ش:sh ص:s ض:d ط:t ظ:z ع:a غ:gh ف:f ق:q ك:k ل:l م:m "
    "ن:n ه:h و:w ي:y ى:a ة:a ئ:y ؤ:w پ:p چ:ch ژ:zh گ:g ک:k ی:i ہ:h ھ:h ے:e ں:n ٹ:t ڈ:d ڑ:r ۃ:a ۂ:h ۀ:h"
)
_THAI = _table(
    "ก:k ข:kh ฃ:kh ค:kh ฅ:kh ฆ:kh ง:ng จ:ch ฉ:ch ช:ch ซ:s ฌ:ch ญ:y ฎ:d ฏ:t ฐ:th ฑ:th ฒ:th ณ:n ด:d ต:t ถ:th ท:th ธ:th "
    "น:n บ:b ป:p ผ:ph ฝ:f พ:ph ฟ:f ภ:ph ม:m ย:y ร:r ฤ:rue ล:l ว:w ศ:s ษ:s ส:s ห:h ฬ:l อ:o ฮ:h ะ:a ั:a า:a ำ:am ิ:i ี:i "
    "ึ:ue ื:ue ุ:u ู:u เ:e แ:ae โ:o ใ:ai ไ:ai"
)
_SERBIAN = _table(
    "а:a б:b в:v г:g д:d ђ:dj е:e ж:z з:z и:i ј:j к:k л:l љ:lj м:m н:n њ:nj о:o п:p р:r с:s т:t ћ:c у:u ф:f х:h ц:c "
    "ч:c џ:dz ш:s"
)
_MACEDONIAN = _SERBIAN | _table("ѓ:gj ѕ:dz ќ:kj ж:zh ч:ch ш:sh џ:dj")
_KAZAKH = first._RUSSIAN | _table("ә:a ғ:g қ:q ң:n ө:o ұ:u ү:u һ:h і:i")
_BRAHMIC = ("DEVANAGARI", "BENGALI", "GUJARATI", "TAMIL", "ORIYA")
_SINHALA = {
    "ක": "k", "ඛ": "kh", "ග": "g", "ඝ": "gh", "ඞ": "n", "ඟ": "ng", "ච": "ch", "ඡ": "ch", "ජ": "j", "ඣ": "jh", "ඤ": "n",
    "ඥ": "gn", "ට": "t", "ඨ": "t", "ඩ": "d", "ඪ": "d", "ණ": "n", "ඬ": "nd", "ත": "th", "ථ": "th", "ද": "d", "ධ": "dh",
    "න": "n", "ඳ": "nd", "ප": "p", "ඵ": "ph", "බ": "b", "භ": "bh", "ම": "m", "ඹ": "mb", "ය": "y", "ර": "r", "ල": "l",
    "ව": "w", "ශ": "sh", "ෂ": "sh", "ස": "s", "හ": "h", "ළ": "l", "ෆ": "f",
}  # fmt: skip
_SINHALA_VOWELS = {
    "අ": "a", "ආ": "a", "ඇ": "a", "ඈ": "a", "ඉ": "i", "ඊ": "i", "උ": "u", "ඌ": "u", "එ": "e", "ඒ": "e", "ඓ": "ai",
    "ඔ": "o",
    "ඕ": "o", "ඖ": "au",
}  # fmt: skip
_SINHALA_SIGNS = {
    "\u0dcf": "a", "\u0dd0": "a", "\u0dd1": "a", "\u0dd2": "i", "\u0dd3": "i", "\u0dd4": "u", "\u0dd6": "u",
    "\u0dd8": "ru", "\u0dd9": "e", "\u0dda": "e", "\u0ddb": "ai", "\u0ddc": "o", "\u0ddd": "o", "\u0dde": "au",
    "\u0dca": "",
}  # fmt: skip
_VIRAMA = "\u0dca"

_LATIN = {"ə": "a", "ʻ": "", "‘": "", "ŋ": "n", "ɛ": "e", "ɔ": "o"}


def spelled(word: str, locale: str) -> str:
    """``word`` in Latin letters, without accents; characters that no rule knows are left out."""
    language = locale.partition("_")[0]
    if language in ("ja", "zh"):
        return " ".join(_han(part, language) for part in word.split())
    script = _script(word)
    match script:
        case "GEORGIAN":
            return _mapped(word, _GEORGIAN)
        case "ARMENIAN":
            return _mapped(word.replace("ու", "u").replace("Ու", "U"), _ARMENIAN)
        case "HEBREW":
            return _vowelled(_units(word, _HEBREW), "a")
        case "ARABIC":
            return _vowelled(_units(_bare(word), _ARABIC), "a")
        case "THAI":
            return _thai(word)
        case "ETHIOPIC":
            return _named(word)
        case "SINHALA":
            return _sinhala(word)
        case "CYRILLIC" if language in ("sr", "mk", "kk"):
            return _mapped(word, {"sr": _SERBIAN, "mk": _MACEDONIAN, "kk": _KAZAKH}[language])
        case _ if script in _BRAHMIC:
            return _brahmic(word)
    plain = "".join(_LATIN.get(ch.lower(), ch) for ch in word)
    return first.spelled(plain, locale)


def letters(word: str, locale: str) -> str:
    """``word`` in the letters a to z alone; empty where nothing is left."""
    if word.isascii():
        return "".join(filter(str.isalpha, word.lower()))
    return "".join(ch for ch in spelled(word, locale).lower() if "a" <= ch <= "z")


def titled(word: str, locale: str) -> str:
    """``word`` in Latin letters, each part with a capital."""
    return " ".join(part[:1].upper() + part[1:] for part in spelled(word, locale).split())


@lru_cache(maxsize=1 << 12)
def _script_of(ch: str) -> str:
    return unicodedata.name(ch, "").split(" ")[0]


def _script(word: str) -> str:
    return next((_script_of(ch) for ch in word if not ch.isascii() and ch.isalpha()), "LATIN")


def _bare(word: str) -> str:
    return "".join(ch for ch in unicodedata.normalize("NFC", word) if not unicodedata.combining(ch))


def _mapped(word: str, table: dict[str, str]) -> str:
    made = []
    for ch in unicodedata.normalize("NFC", word):
        found = table.get(ch.lower())
        if found is None:
            found = ch if ch.isascii() else ""
        made.append(found.capitalize() if ch.isupper() and ch != ch.lower() else found)
    return "".join(made)


_VOWELS = "aeiou"


def _units(word: str, table: dict[str, str]) -> list[str]:
    return [table[ch] if ch in table else ch if ch.isascii() else "" for ch in word]


def _vowelled(units: list[str], between: str) -> str:
    """Letters of a script that leaves vowels out: ``between`` stands where two consonants meet, and a y or w between
    two consonants is the vowel that it stands for."""
    kept = [unit for unit in units if unit]
    made = ""
    for place, unit in enumerate(kept):
        before, after = kept[place - 1 : place], kept[place + 1 : place + 2]
        inside = bool(before and after and before[0][-1].isalpha() and after[0][0].isalpha())
        if unit in ("y", "w") and inside and made[-1] not in _VOWELS and after[0][0] not in _VOWELS:
            made += {"y": "i", "w": "u"}[unit]
            continue
        article = made.rpartition(" ")[2] == "al"
        if made[-1:].isalpha() and unit[0].isalpha() and made[-1] not in _VOWELS and unit[0] not in _VOWELS:
            made += "" if article else between
        made += unit
    return made


_LEADING = "เแโใไ"


def _thai(word: str) -> str:
    """Thai: vowels that are written before their consonant are spoken behind it."""
    turned = list(word)
    for place, ch in enumerate(turned[:-1]):
        if ch in _LEADING and word[place] == ch:
            turned[place], turned[place + 1] = turned[place + 1], ch
    return _vowelled(_units("".join(turned), _THAI), "o")


@cache
def _brahmic_letter(ch: str) -> tuple[str, str]:
    """(kind, letters) of a character: a consonant, a vowel, a vowel sign, a sign that ends a consonant, or none."""
    name = unicodedata.name(ch, "").split(" ", 1)[-1]
    if name.startswith("LETTER "):
        text = name.removeprefix("LETTER ").lower().replace("vocalic ", "").split(" ")[-1]
        text = {"aa": "a", "ii": "i", "uu": "u", "ee": "e", "oo": "o", "rra": "ra", "lla": "la", "nna": "na",
        "tta": "ta",
                "ttha": "tha", "dda": "da", "ddha": "dha", "ssa": "sha", "nnna": "na", "llla": "zha", "r": "ri",
                "nga": "nga", "nya": "nya", "ca": "cha", "cha": "chha", "rrra": "ra",
                "yya": "ya"}.get(text, text)  # fmt: skip
        is_vowel = text in ("a", "i", "u", "e", "o", "ai", "au", "ri") and not name.endswith((" RA", " RI"))
        return ("vowel", text) if is_vowel else ("consonant", text.removesuffix("a"))
    if name.startswith("VOWEL SIGN "):
        text = name.removeprefix("VOWEL SIGN ").lower().replace("vocalic ", "").split(" ")[-1]
        return "sign", {"aa": "a", "ii": "i", "uu": "u", "ee": "e", "oo": "o", "r": "ri"}.get(text, text)
    if name == "SIGN VIRAMA":
        return "end", ""
    if name in ("SIGN ANUSVARA", "SIGN CANDRABINDU"):
        return "nasal", "n"
    return "none", ""


def _brahmic(word: str) -> str:
    made = ""
    open_ = False  # the last consonant still has its own vowel
    parts = [(ch, *_brahmic_letter(ch)) for ch in unicodedata.normalize("NFC", word)]
    for ch, kind, text in parts:
        if kind == "consonant":
            made += ("a" if open_ else "") + text
            open_ = True
        elif kind in ("sign", "end"):
            made += text
            open_ = False
        elif kind in ("vowel", "nasal"):
            made += ("a" if open_ else "") + text
            open_ = False
        elif ch.isascii():
            made += ch  # the vowel at the end of a word is not spoken
            open_ = False
    return made


def _sinhala(word: str) -> str:
    made = ""
    open_ = False
    for ch in word:
        if ch in _SINHALA:
            made += ("a" if open_ else "") + _SINHALA[ch]
            open_ = True
        elif ch in _SINHALA_SIGNS:
            made += _SINHALA_SIGNS[ch]
            open_ = False
        elif ch in _SINHALA_VOWELS or ch == "\u0d82":
            made += ("a" if open_ else "") + _SINHALA_VOWELS.get(ch, "n")
            open_ = False
        elif ch.isascii():
            made += ("a" if open_ else "") + ch
            open_ = False
    return made + ("a" if open_ else "")


def _named(word: str) -> str:
    """Ethiopic, by the names of its syllables: the vowel that names write as A is an e or an a."""
    made = ""
    for ch in word:
        name = unicodedata.name(ch, "")
        if name.startswith("ETHIOPIC SYLLABLE "):
            text = name.removeprefix("ETHIOPIC SYLLABLE ").lower().split(" ")[-1]
            if text.endswith("aa"):
                text = text[:-1]
            elif text.endswith("a") and len(text) > 1:
                text = text[:-1] + "e"
            elif text.endswith("ee") or (text.endswith("e") and len(text) > 1):
                text = text[:-1]
            made += text.replace("pharyngeal", "a").replace("glottal", "a")
        elif ch.isascii():
            made += ch
    return made


@cache
def _pinyin() -> dict[str, str]:
    from webapp.engine.data.extract_3.tools import lines

    found = dict(first._PINYIN)
    for line in lines("pinyin"):
        sound, _, characters = line.partition(":")
        found.update(dict.fromkeys(characters.strip(), sound))
    return found


def _han(word: str, language: str) -> str:
    if language == "zh":
        table = _pinyin()
        return "".join(table.get(ch, ch if ch.isascii() else "") for ch in word)
    from webapp.engine.data.extract_3 import japanese

    return japanese.hepburn(japanese.readings().get(word, word))

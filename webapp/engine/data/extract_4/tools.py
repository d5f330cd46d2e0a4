"""Reading this folder's own lists; what cleans words is that of the extractors before."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from webapp.engine.data.extract import Words
from webapp.engine.data.extract_3.tools import unique, word_list

__all__ = ["corrected", "lines", "listed_by", "one_script", "spelled", "unique", "word_list"]

_LATIN = "AaBCcEeHIiJjKMOoPpSsTXxy"
_CYRILLIC = "АаВСсЕеНІіЈјКМОоРрЅѕТХху"
_TO_LATIN = str.maketrans(_CYRILLIC, _LATIN)
_TO_CYRILLIC = str.maketrans(_LATIN, _CYRILLIC)
_TO_GREEK = str.maketrans("ABEHIKMOoPTX", "ΑΒΕΗΙΚΜΟοΡΤΧ")
_OTHER_SCRIPTS = frozenset(
    "am ar bg bn el fa gu he hi hy ja ka kk ko mk mr ne or ru si sr ta th uk ur zh".split()
)
"""Languages that are not written in Latin letters."""
_MIXED = re.compile(r"\b(?=\w*[A-Za-z])(?=\w*[\u0370-\u04ff])\w+")
"""A word with letters of the Latin script and of the Greek or Cyrillic one."""


@cache
def lines(name: str) -> tuple[str, ...]:
    """The lines of a file of this folder, without comments and empty ones."""
    text = files(__package__).joinpath(f"{name}.txt").read_text("utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))


@cache
def listed_by(name: str) -> dict[str, dict[str, list[str]]]:
    """{list: {locale or language: words}} of the lines ``locale list: word|word`` of a file of this folder."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in lines(name):
        head, _, words = line.partition(": ")
        of, _, what = head.partition(" ")
        if of in found.setdefault(what, {}):
            raise ValueError(f"{name}.txt has {what} of {of} twice")
        found[what][of] = words.split("|")
    return found


def one_script(text: str, latin: bool) -> str:
    """Write a text in one script: the sources have words with letters of another one that look the same. If ``latin``,
    all of it is in the Latin script; otherwise words that have Latin and other letters get the others."""
    return text.translate(_TO_LATIN) if latin else _MIXED.sub(lambda found: _in_one(found[0]), text)


def _in_one(word: str) -> str:
    return word.translate(_TO_GREEK if any("\u0370" <= sign < "\u0400" for sign in word) else _TO_CYRILLIC)


def spelled(text: str, locale: str) -> str:
    """A word of a list of a locale in one script, and as `corrections.txt` spells it."""
    for entry in listed_by("corrections")["spelling"].get(locale.partition("@")[0], ()):
        wrong, _, right = entry.partition("=")
        text = text.replace(wrong, right)
    return one_script(text, locale.partition("_")[0] not in _OTHER_SCRIPTS)


def corrected(source: Callable[[], Words]) -> Callable[[], Words]:
    """The lists of a source with every word `spelled`."""

    def make() -> Words:
        return {locale: [spelled(word, locale) for word in words] for locale, words in source().items()}

    return make

"""Forms of address and what follows a name, by language and sex."""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from webapp.engine.fields.names import FEMALE, MALE

_ENGLISH = ("Ms.", "Mr.")
# For a woman and for a man; languages that address both alike have one form twice.
_TITLES = {
    "bg": ("г-жа", "г-н"), "cs": ("paní", "pan"), "da": ("Fru", "Hr."), "de": ("Frau", "Herr"), "el": ("Κα", "Κ."),
    "en": _ENGLISH, "es": ("Sra.", "Sr."), "et": ("Pr", "Hr"), "fi": ("Rouva", "Herra"), "fr": ("Mme", "M."),
    "hr": ("Gđa", "G."), "hu": ("Asszony", "Úr"), "it": ("Sig.ra", "Sig."), "ja": ("様", "様"), "ko": ("씨", "씨"),
    "lv": ("Kundze", "Kungs"), "nb": ("Fru", "Herr"), "nl": ("Mevr.", "Dhr."), "pl": ("Pani", "Pan"),
    "pt": ("Sra.", "Sr."), "ro": ("Dna.", "Dl."), "ru": ("г-жа", "г-н"), "sk": ("pani", "pán"), "sl": ("ga.", "g."),
    "sv": ("Fru", "Herr"), "tr": ("Bayan", "Bay"), "uk": ("пані", "пан"), "zh": ("女士", "先生"),
}  # fmt: skip
SUFFIXES = ("MD", "PhD", "DDS", "DVM", "Esq.", "Jr.", "Sr.", "II", "III", "IV")
OF_BOTH = 5
"""The first so many suffixes are borne by women and men; the others tell fathers and sons apart."""


@cache
def titles(locale: str) -> pa.Array:
    """The forms of ``locale``'s language, by sex; English ones where none are known."""
    return pa.array(_TITLES.get(locale.partition("_")[0], _ENGLISH))


@cache
def suffixes() -> pa.Array:
    """`SUFFIXES`, the same array at every call."""
    return pa.array(SUFFIXES)


def sexes_called(kind: str, text: str, locale: str) -> tuple[int, ...]:
    """The sexes that a title, or a suffix, fits; none where there is no such."""
    plain = text.lower().rstrip(".")
    if kind == "title":
        forms = titles(locale).to_pylist()
        return tuple(sex for sex in (FEMALE, MALE) if forms[sex].lower().rstrip(".") == plain)
    found = [place for place, suffix in enumerate(SUFFIXES) if suffix.lower().rstrip(".") == plain]
    if not found:
        return ()
    return (FEMALE, MALE) if found[0] < OF_BOTH else (MALE,)

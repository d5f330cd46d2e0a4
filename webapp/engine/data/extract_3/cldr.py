"""Names that the Unicode CLDR has in every language, as Babel brings them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pyarrow as pa
from babel import Locale

from webapp.engine.data.extract_3 import places
from webapp.engine.data.extract_3.locales import LOCALES

_BABEL = {
    "zh_CN": "zh_Hans_CN", "zh_TW": "zh_Hant_TW", "sr_RS": "sr_Cyrl_RS", "bs_BA": "bs_Latn_BA", "uz_UZ": "uz_Latn_UZ",
    "az_AZ": "az_Latn_AZ", "kk_KZ": "kk_Cyrl_KZ", "ha_NG": "ha", "tw_GH": "ak_GH",
}  # fmt: skip


@cache
def known(locale: str) -> Locale:
    """Babel's locale, or that of its language where it has none for the country."""
    from babel import UnknownLocaleError

    for name in (_BABEL.get(locale, locale), locale.partition("_")[0]):
        try:
            return Locale.parse(name)
        except UnknownLocaleError:
            continue
    return Locale.parse("en")


def _calendar(names: str, first: int, count: int) -> dict[str, dict[str, list[str]]]:
    made: dict[str, dict[str, list[str]]] = {"wide": {}, "abbreviated": {}}
    for locale in LOCALES:
        for width, found in made.items():
            texts = getattr(known(locale), names)["format"][width]
            found[locale] = [texts[first + at] for at in range(count)]
    return made


def months(width: str) -> pa.Table:
    """(locale, name): the months of each locale in turn."""
    return _by_locale(_calendar("months", 1, 12)[width])


def weekdays(width: str) -> pa.Table:
    """(locale, name): Monday to Sunday of each locale in turn."""
    return _by_locale(_calendar("days", 0, 7)[width])


def _by_locale(found: dict[str, list[str]]) -> pa.Table:
    return pa.table(
        {
            "locale": [locale for locale, names in found.items() for _ in names],
            "name": [name for names in found.values() for name in names],
        }
    )


def countries(language: str) -> Callable[[], pa.Table]:
    """A source of (name): the countries of `places.countries` in a locale's language; in English where it has none."""

    def make() -> pa.Table:
        names, english = known(language).territories, places.countries()
        codes, others = (english[column].to_pylist() for column in ("alpha2", "name"))
        return pa.table({"name": [names.get(code, other) for code, other in zip(codes, others, strict=True)]})

    return make


def languages() -> pa.Table:
    """(locale, code, name): the languages that countries have, in the language of each locale."""
    codes = sorted(set(_codes()))
    rows = [(locale, code, known(locale).languages.get(code)) for locale in LOCALES for code in codes]
    kept = [row for row in rows if row[2]]
    return pa.table({name: [row[at] for row in kept] for at, name in enumerate(("locale", "code", "name"))})


def _codes() -> list[str]:
    spoken = places.countries()["languages"].to_pylist()
    return [text.split(" ")[0].split("-")[0] for text in spoken if text] + ["en", "ti", "fil", "fr", "it"]

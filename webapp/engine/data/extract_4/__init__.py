"""The fourth extractor: rows follow the rules of engine 3.

The first three are frozen, as vocabularies that they built can be pinned. What they give is here unchanged where
nothing else is said: products, and lists of more languages, are new; given names that a language has for the other sex
only, and wrong time zones and points of some cities, are corrected.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from webapp.engine.data import extract_3
from webapp.engine.data.extract import Words
from webapp.engine.data.extract_3.locales import ALIASES, LOCALES
from webapp.engine.data.extract_4 import corrections, landlines, lists, postal, products
from webapp.engine.data.extract_4.tools import corrected, listed_by, word_list

__all__ = ["ALIASES", "LIBRARIES", "LOCALES", "TABLES", "WORDS", "word_list"]

LIBRARIES = extract_3.LIBRARIES
"""Distributions whose versions the lock lists."""
ENGINE = 3
"""Number of the engine whose rules the rows follow."""


def engine() -> pa.Table:
    """(number) in one row."""
    return pa.table({"number": pa.array([ENGINE], pa.int32())})


_WORDS: dict[str, Callable[[], Words]] = {
    **extract_3.WORDS,
    # people
    "first_name_female": corrections.first_names_female,
    "first_name_male": corrections.first_names_male,
    "job_title": lists.job_titles,
    "company_form": lists.company_forms,
    "university": lists.universities,
    "industry": lists.industries,
    # running text
    "word": lists.words,
    "color": lists.colors,
}
WORDS: dict[str, Callable[[], Words]] = {name: corrected(source) for name, source in _WORDS.items()}

TABLES: dict[str, Callable[[], pa.Table]] = {
    **extract_3.TABLES,
    "engine": engine,
    "local_department": lists.departments,
    "cities": corrections.cities,
    **{
        name: corrections.local_cities(name.partition("@")[2])
        for name in extract_3.TABLES
        if name.startswith("city@")
    },
    "postal_heads": postal.heads,
    "continent_name": lists.continents,
    **{f"month_{width}": lists.months(width) for width in ("wide", "abbreviated")},
    **{f"weekday_{width}": lists.weekdays(width) for width in ("wide", "abbreviated")},
    **{f"state@{locale}": lists.states(locale) for locale in listed_by("states")["state"]},
    "nationality_name": lists.nationalities,
    "bank": lists.banks,
    "romanized": corrections.romanized,
    "phone_heads": landlines.heads,
    "phone_tails": landlines.tails,
    **{f"product@{name}": products.things(name) for name in products.languages()},
    **{f"product_epithet@{name}": products.epithets(name) for name in products.languages()},
    "product_language": products.locales,
}

"""The third extractor: rows follow the rules of engine 2.

The first two are frozen, as vocabularies that they built can be pinned. What they give is here unchanged where nothing
else is said.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from webapp.engine.data import extract_2
from webapp.engine.data.extract import Words
from webapp.engine.data.extract_3 import airports, cldr, lists, own_places, people, places, streets
from webapp.engine.data.extract_3.locales import ALIASES, LOCALES
from webapp.engine.data.extract_3.tools import word_list

__all__ = ["ALIASES", "LIBRARIES", "LOCALES", "TABLES", "WORDS", "word_list"]

LIBRARIES = extract_2.LIBRARIES
"""Distributions whose versions the lock lists."""
ENGINE = 2
"""Number of the engine whose rules the rows follow."""


def engine() -> pa.Table:
    """(number) in one row."""
    return pa.table({"number": pa.array([ENGINE], pa.int32())})


WORDS: dict[str, Callable[[], Words]] = {
    **extract_2.WORDS,
    # people
    "first_name_female": people.first_names_female,
    "first_name_male": people.first_names_male,
    "last_name_female": people.last_names_female,
    "last_name_male": people.last_names_male,
    "job_title": lists.job_titles,
    "company_form": lists.company_forms,
    "university": lists.universities,
    "industry": lists.industries,
    # places
    "street": streets.streets,
    "district": lists.districts,
    # running text and the internet
    "word": lists.words,
    "color": lists.colors,
    "tld": lists.top_level,
}

TABLES: dict[str, Callable[[], pa.Table]] = {
    **extract_2.TABLES,
    "engine": engine,
    # people
    "romanized": people.romanized,
    "kana": people.kana,
    "gender": lists.positioned("gender"),
    "marital_status": lists.positioned("marital_status"),
    "local_department": lists.positioned("department"),
    # places
    "cities": places.cities,
    "states": places.states,
    "countries": places.countries,
    "time_zones": places.time_zones,
    "postal_heads": places.postal_heads,
    "postal_tails": places.postal_tails,
    "phone_heads": places.phone_heads,
    "phone_tails": places.phone_tails,
    "airports": airports.airports,
    "city_airports": airports.city_airports,
    "near_airports": airports.near_airports,
    "street_locales": lists.street_locales,
    "bank": lists.banks,
    # the Unicode CLDR
    "currency_name": lists.currency_names,
    "language_name": cldr.languages,
    **{f"month_{width}": partial(cldr.months, width) for width in ("wide", "abbreviated")},
    **{f"weekday_{width}": partial(cldr.weekdays, width) for width in ("wide", "abbreviated")},
    **{f"country@{locale}": cldr.countries(locale) for locale in LOCALES if not locale.startswith("en")},
    **{f"city@{locale}": own_places.cities(locale) for locale in own_places.localised()},
    **{f"state@{locale}": own_places.states(locale) for locale in own_places.scripted()},
}

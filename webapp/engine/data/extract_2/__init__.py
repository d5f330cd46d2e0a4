"""The second extractor: all that the first one takes out of the libraries, and lists for more field types.

The first is frozen, as a vocabulary that it built can be pinned. What it gives is here unchanged, but for job titles
in languages and countries that had none and fell back to English.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from webapp.engine.data import extract
from webapp.engine.data.extract import ALIASES, LOCALES, Words
from webapp.engine.data.extract_2 import airports, naughty, own
from webapp.engine.data.extract_2.tools import section

__all__ = ["ALIASES", "LIBRARIES", "LOCALES", "TABLES", "WORDS"]

LIBRARIES = (*extract.LIBRARIES, "airportsdata")
"""Distributions whose versions the lock lists."""


def _section(name: str) -> Words:
    return {"": section(name)}


WORDS: dict[str, Callable[[], Words]] = {
    **extract.WORDS,
    **{
        name: partial(_section, name)
        for name in (
            "animal", "app_head", "app_tail", "drug_name", "industry", "movie_head", "movie_tail", "plant", "skill",
            "slogan_head", "slogan_tail",
        )
    },
    **{name: partial(own.catch_phrase_part, name) for name in own.PHRASE_PARTS},
    "buzzword": own.buzzwords,
    "district": own.districts,
    "job_title": own.job_titles,
    "tld": own.top_level,
    "university": own.universities,
}  # fmt: skip

TABLES: dict[str, Callable[[], pa.Table]] = {
    **extract.TABLES,
    "airline": own.airlines,
    # city_airports has a row for each of the cities and points into near_airports, and that into airports
    "airports": airports.airports,
    "bank": own.banks,
    "car": own.cars,
    "city_airports": airports.city_airports,
    "degree": own.degrees,
    "diagnosis": own.diagnoses,
    "naughty_string": naughty.strings,
    "near_airports": airports.near_airports,
    "street_locales": own.street_locales,
    "unit": own.units,
}

"""The third extractor: rows follow the rules of engine 2.

The first two are frozen, as vocabularies that they built can be pinned. What they give is here unchanged where nothing
else is said.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from webapp.engine.data import extract_2
from webapp.engine.data.extract import Words
from webapp.engine.data.extract_3 import places
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
}

TABLES: dict[str, Callable[[], pa.Table]] = {
    **extract_2.TABLES,
    "engine": engine,
    "cities": places.cities,
    "states": places.states,
    "countries": places.countries,
    "time_zones": places.time_zones,
    "postal_heads": places.postal_heads,
    "postal_tails": places.postal_tails,
    "phone_heads": places.phone_heads,
    "phone_tails": places.phone_tails,
}

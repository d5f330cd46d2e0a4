"""The airports of a vocabulary, and which of them serve a city."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from webapp.engine.fields import joining
from webapp.engine.fields.geography import Range

if TYPE_CHECKING:
    from webapp.engine.data.vocabulary import Vocabulary


class Airports:
    """``columns`` are ``iata``, ``icao`` and ``name``, a row for each airport."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        table = vocabulary.table("airports")
        self.columns: dict[str, pa.StringArray] = {
            name: table[name].chunk(0) for name in ("iata", "icao", "name")
        }
        near = vocabulary.table("city_airports")
        self._of = Range(*(near[part].to_numpy().astype(np.uint64) for part in ("start", "count")))
        # One more at the end, for cities that begin there and have none.
        self._near = np.append(vocabulary.table("near_airports")["airport"].to_numpy().astype(np.int64), -1)
        self._complete = bool((self._of.count > 0).all())

    def pick(self, city: np.ndarray, random32: np.ndarray) -> np.ndarray:
        """``int64[n]``: rows of airports that serve cities; -1 where a country has none."""
        rows = self._near[self._of.pick(city, random32).view(np.int64)]
        return rows if self._complete else np.where(self._of.count[city] > 0, rows, -1)

    def cities_with(self, text: str) -> np.ndarray:
        """``int64[k]``: the cities that the airport of this code or name serves, in rising order."""
        rows = np.concatenate([joining.where(column, text) for column in self.columns.values()])
        owner = np.repeat(np.arange(self._of.count.size), self._of.count.astype(np.int64))
        return np.unique(owner[np.isin(self._near[:-1], rows)])


def airports_of(vocabulary: Vocabulary) -> Airports:
    """The airports of a vocabulary, made once a process."""
    return vocabulary.shared(("airports",), lambda: Airports(vocabulary))

"""Airports, and which of them serve a city: those near it in its own country."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from webapp.engine.data.extract import places
from webapp.engine.data.extract.places import DEGREE
from webapp.engine.data.extract.tools import clean

NEAR_METRES = 60_000
"""Airports within so many metres serve a city; where there is none so near, the nearest of the country does."""
MOST = 4
"""Airports of one city."""
_DEGREE_METRES = 111_195
_MANY = 2_000
"""Cities measured at a time: a table of distances to a country's airports has to fit into memory."""


@cache
def _rows() -> list[dict[str, Any]]:
    import airportsdata

    at = {code: row for row, code in enumerate(places.countries()["alpha2"].to_pylist())}
    found = [
        one
        for one in airportsdata.load("IATA").values()
        if one["country"] in at and clean(one["name"]) and len(one["iata"]) == 3
    ]
    found.sort(key=lambda one: (at[one["country"]], one["iata"]))
    return [
        {
            "iata": one["iata"],
            "icao": one["icao"],
            "name": clean(one["name"]),
            "country": at[one["country"]],
            "latitude": round(one["lat"] * DEGREE),
            "longitude": round(one["lon"] * DEGREE),
        }
        for one in found
    ]


def airports() -> pa.Table:
    """A row for each airport with an IATA code, by country and code: ``iata``, ``icao`` (empty where there is none),
    ``name``, ``country`` (a row of the countries), latitude and longitude in 1e-5 degrees."""
    whole = ("country", "latitude", "longitude")
    table = pa.Table.from_pylist(_rows())
    return table.cast(
        pa.schema(
            [pa.field(name, pa.int32() if name in whole else pa.string()) for name in table.column_names]
        )
    )


@cache
def _served() -> tuple[np.ndarray, np.ndarray]:
    """How many airports each city has, and their rows, city after city."""
    cities = places.cities()
    columns = ("country", "latitude", "longitude")
    country, *point = (cities[name].to_numpy().astype(np.int64) for name in columns)
    table = airports()
    theirs, *other = (table[name].to_numpy().astype(np.int64) for name in columns)
    rows = np.full((country.size, MOST), -1, np.int64)
    for number in np.unique(theirs).tolist():
        there = np.flatnonzero(theirs == number)
        every = np.flatnonzero(country == number)
        for start in range(0, every.size, _MANY):
            here = every[start : start + _MANY]
            apart = _metres(*(axis[here, None] for axis in point), *(axis[there] for axis in other))
            # The row breaks ties, so that the order is the same on every machine.
            nearest = np.argsort(apart * len(table) + there, axis=1)[:, :MOST]
            near = np.take_along_axis(apart, nearest, 1) <= NEAR_METRES
            near[:, 0] = True
            rows[here, : nearest.shape[1]] = np.where(near, there[nearest], -1)
    return (rows >= 0).sum(1), rows[rows >= 0]


def _metres(
    north: np.ndarray, east: np.ndarray, other_north: np.ndarray, other_east: np.ndarray
) -> np.ndarray:
    """About how far points lie apart, in whole metres: on a plane, which does within a few hundred kilometres. The
    width of a degree is taken from a table of whole degrees, so that no cosine decides a rounding."""
    width = _WIDTHS[np.abs(north) // DEGREE]
    turned = np.abs(east - other_east)
    across = np.minimum(turned, 360 * DEGREE - turned) * width // 1_000
    up = north - other_north
    square = up * up + across * across
    return np.floor(np.sqrt(square.astype(np.float64))).astype(np.int64) * _DEGREE_METRES // DEGREE


_WIDTHS = np.array([round(1_000 * float(np.cos(np.radians(degree)))) for degree in range(91)], np.int64)


def city_airports() -> pa.Table:
    """For each city the range ``start``, ``count`` of ``near_airports``; a count of 0: its country has none."""
    count, _ = _served()
    return pa.table(
        {"start": pa.array(np.cumsum(count) - count, pa.int32()), "count": pa.array(count, pa.int32())}
    )


def near_airports() -> pa.Table:
    """(airport): rows of ``airports``, those of each city beside each other, the nearest first."""
    return pa.table({"airport": pa.array(_served()[1], pa.int32())})

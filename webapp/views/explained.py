"""What the values of one field are like: how many differ, how they spread. Told from a sample, drawn as bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from webapp.views.rows_shown import cell

BARS: Final = 16
TOP: Final = 8
WORTH_TELLING: Final = 4  # how often the most common value comes, at least
HEIGHT: Final = 48  # of the tallest bar


def values_at(rows: Iterable[Any], path: Sequence[str]) -> Iterator[Any]:
    """The values under a path of names, through objects and into the elements of arrays."""
    for row in rows:
        if isinstance(row, list):
            yield from values_at(row, path)
        elif not path:
            yield row
        elif isinstance(row, Mapping) and path[0] in row:
            yield from values_at([row[path[0]]], path[1:])


def unhidden(fields: Sequence[Any]) -> list[Any]:
    """Field definitions, none of them hidden: a hidden field's values are looked at like any other's."""
    found = []
    for field in fields:
        options = field.get("options", {})
        if isinstance(options.get("fields"), list):
            options = {**options, "fields": unhidden(options["fields"])}
        found.append({**{key: value for key, value in field.items() if key != "hidden"}, "options": options})
    return found


def summary(values: Sequence[Any]) -> dict[str, Any]:
    """`{count, blank, distinct, example, numbers, bars, top}`.

    Numbers have `numbers` (least, mean, most) and a histogram in `bars`; values that repeat are in `top`, the most
    common first. Bars are `{height, title}`, heights 0 to `HEIGHT`.
    """
    held = [value for value in values if value is not None]
    counted = Counter(cell(value)["text"] for value in held)
    found: dict[str, Any] = {
        "count": len(values),
        "blank": len(values) - len(held),
        "distinct": len(counted),
        "example": cell(held[0])["text"] if held else "",
        "numbers": None,
        "bars": [],
        "top": [],
    }
    numbers = [value for value in held if isinstance(value, int | float) and not isinstance(value, bool)]
    if numbers and len(numbers) == len(held):
        found["numbers"] = (min(numbers), sum(numbers) / len(numbers), max(numbers))
        found["bars"] = _histogram(numbers)
    most = counted.most_common(1)[0][1] if counted else 0
    if most >= WORTH_TELLING:
        found["top"] = [
            {"text": text, "count": number, "width": round(100 * number / most)}
            for text, number in counted.most_common(TOP)
        ]
    return found


def _histogram(numbers: Sequence[float]) -> list[dict[str, Any]]:
    low, high = min(numbers), max(numbers)
    width = (high - low) / BARS or 1
    places = Counter(min(BARS - 1, int((number - low) / width)) for number in numbers)
    most = max(places.values())
    return [
        {
            "height": round(HEIGHT * places[place] / most),
            "title": f"{low + place * width:,.6g} to {low + (place + 1) * width:,.6g}: {places[place]}",
        }
        for place in range(BARS)
    ]

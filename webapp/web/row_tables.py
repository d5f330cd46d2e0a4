"""Rows of data as pages show them: cells with a kind and a text, side-on for previews, upright for grids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

Row = Mapping[str, Any]
_MOST: Final = 120  # characters of a cell; the rest is in its title


def cell(value: Any) -> dict[str, str]:
    """Return `{text, kind, full}`: kind is n (number), null, or ""; full is the complete text if it was shortened."""
    if value is None:
        return {"text": "null", "kind": "null", "full": ""}
    if isinstance(value, bool):
        return {"text": "true" if value else "false", "kind": "", "full": ""}
    if isinstance(value, int | float):
        return {"text": str(value), "kind": "n", "full": ""}
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    if len(text) > _MOST:
        return {"text": text[: _MOST - 1] + "…", "kind": "", "full": text[:2000]}
    return {"text": text, "kind": "", "full": ""}


def flat(row: Row, prefix: str = "") -> dict[str, Any]:
    """Objects inside a row as dotted columns, as CSV has them; arrays stay whole."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def columns(rows: Iterable[Row]) -> list[str]:
    """Every column of some flat rows; an object that is null in one of them does not hide its columns."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [name for name in names if not any(other.startswith(f"{name}.") for other in names)]


def side_on(rows: Sequence[Row], bad: Iterable[Row] = ()) -> dict[str, Any]:
    """`{numbers, columns: [{path, cells}]}`: a line for each column. `bad` is the answer key of the rows."""
    made = [flat(row) for row in rows]
    names, wrong = columns(made), _wrong(bad)
    lines = [
        {
            "path": name,
            "cells": [_marked(row, name, wrong.get((number, name))) for number, row in enumerate(made, 1)],
        }
        for name in names
    ]
    return {"numbers": list(range(1, len(made) + 1)), "columns": lines}


def upright(rows: Sequence[Row], first: int, bad: Iterable[Row] = ()) -> dict[str, Any]:
    """`{columns, rows: [{number, cells}], first, last}`. `bad` as for `side_on`."""
    made = [flat(row) for row in rows]
    names, wrong = columns(made), _wrong(bad)
    lines = [
        {
            "number": first + place,
            "cells": [_marked(row, name, wrong.get((place + 1, name))) for name in names],
        }
        for place, row in enumerate(made)
    ]
    return {"columns": names, "rows": lines, "first": first, "last": first + len(made) - 1}


def _wrong(bad: Iterable[Row]) -> dict[tuple[int, str], Row]:
    return {(one["row"], one["field"]): one for one in bad}


def _marked(row: Row, name: str, wrong: Row | None) -> dict[str, str]:
    """A cell. If it has injected invalid data, `bad` is the kind and `good` the original value."""
    made = cell(row.get(name))
    if wrong is None:
        return made
    good = cell(wrong["good"])
    return {**made, "bad": wrong["kind"].replace("_", " "), "good": good["full"] or good["text"]}


def compared(preview: Mapping[str, Any]) -> dict[str, Any]:
    """Two previews at one seed, a line for each column, cells that differ with both values."""
    before, after = ([flat(row) for row in preview[side]] for side in ("from", "to"))
    names = columns([*after, *before])
    lines = []
    for name in names:
        pairs = list(zip(before, after, strict=True))
        cells = []
        for old, new in pairs:
            same = name in old and name in new and old[name] == new[name]
            cells.append(
                {
                    "same": same,
                    "old": cell(old[name]) if name in old else None,
                    "new": cell(new[name]) if name in new else None,
                }
            )
        lines.append({"path": name, "cells": cells, "changed": not all(one["same"] for one in cells)})
    return {
        "numbers": list(range(1, len(after) + 1)),
        "columns": lines,
        "changed": sum(line["changed"] for line in lines),
    }

"""Rows of data as pages show them: cells with a kind and a text; transposed for previews, row by row for grids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

Row = Mapping[str, Any]
_MAX_CHARS: Final = 120  # characters of a cell; the rest is in its title


def cell(value: Any) -> dict[str, str]:
    """Return `{text, kind, full}`: kind is n (number), null, or ""; full is the complete text if it was shortened."""
    if value is None:
        return {"text": "null", "kind": "null", "full": ""}
    if isinstance(value, bool):
        return {"text": "true" if value else "false", "kind": "", "full": ""}
    if isinstance(value, int | float):
        return {"text": str(value), "kind": "n", "full": ""}
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    if len(text) > _MAX_CHARS:
        return {"text": text[: _MAX_CHARS - 1] + "…", "kind": "", "full": text[:2000]}
    return {"text": text, "kind": "", "full": ""}


def flatten(row: Row, prefix: str = "") -> dict[str, Any]:
    """Return a row with nested objects as dotted columns, as in CSV. Arrays are kept."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping) and value:
            found |= flatten(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def columns(rows: Iterable[Row]) -> list[str]:
    """Return all columns of flat rows. An object that is null in some rows does not hide its columns."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [name for name in names if not any(other.startswith(f"{name}.") for other in names)]


def transposed_table(rows: Sequence[Row], answer_key: Iterable[Row] = ()) -> dict[str, Any]:
    """Return `{numbers, columns: [{path, cells}]}`, a line for each column. `answer_key` is the answer key of the
    rows."""
    flat_rows = [flatten(row) for row in rows]
    names, bad_cells = columns(flat_rows), _by_cell(answer_key)
    lines = [
        {
            "path": name,
            "cells": [
                _cell_with_mark(row, name, bad_cells.get((number, name)))
                for number, row in enumerate(flat_rows, 1)
            ],
        }
        for name in names
    ]
    return {"numbers": list(range(1, len(flat_rows) + 1)), "columns": lines}


def row_table(rows: Sequence[Row], first: int, answer_key: Iterable[Row] = ()) -> dict[str, Any]:
    """Return `{columns, rows: [{number, cells}], first, last}`. `answer_key` as for `transposed_table`."""
    flat_rows = [flatten(row) for row in rows]
    names, bad_cells = columns(flat_rows), _by_cell(answer_key)
    lines = [
        {
            "number": first + index,
            "cells": [_cell_with_mark(row, name, bad_cells.get((index + 1, name))) for name in names],
        }
        for index, row in enumerate(flat_rows)
    ]
    return {"columns": names, "rows": lines, "first": first, "last": first + len(flat_rows) - 1}


def _by_cell(bad: Iterable[Row]) -> dict[tuple[int, str], Row]:
    return {(answer["row"], answer["field"]): answer for answer in bad}


def _cell_with_mark(row: Row, name: str, answer: Row | None) -> dict[str, str]:
    """Return a cell. If it has injected invalid data, `bad` is the kind and `good` the original value."""
    marked = cell(row.get(name))
    if answer is None:
        return marked
    good = cell(answer["good"])
    return {**marked, "bad": answer["kind"].replace("_", " "), "good": good["full"] or good["text"]}


def compared(preview: Mapping[str, Any]) -> dict[str, Any]:
    """Compare two previews with the same seed: a line for each column, and both values of each cell."""
    before, after = ([flatten(row) for row in preview[side]] for side in ("from", "to"))
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
        lines.append({"path": name, "cells": cells, "changed": not all(pair["same"] for pair in cells)})
    return {
        "numbers": list(range(1, len(after) + 1)),
        "columns": lines,
        "changed": sum(line["changed"] for line in lines),
    }

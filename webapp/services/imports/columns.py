"""Rows of texts as a table: the columns named, each read for what it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from webapp import limits
from webapp.connectors.shape import Entity
from webapp.services.imports.shapes import Problem, Read, Table, clean, named
from webapp.services.imports.values import Seen, seen


def table(name: str, heads: Sequence[Any], columns: Iterable[pa.Array], read: Read) -> Table:
    """A table of texts, one array a column; what goes beyond the limits is told in `read`."""
    names, told = named(heads)
    kept = names[: limits.MAX_FIELDS]
    beyond(name, names, read)
    found = [seen(one, texts) for one, texts in zip(kept, columns, strict=False)]
    made = of_seen(name, found)
    for column, text in told.items():
        if column in kept:
            made.note(column, text)
    return made


def beyond(name: str, names: Sequence[str], read: Read) -> None:
    """Tells of columns for which a template has no place."""
    text = f"A template has at most {limits.MAX_FIELDS} fields: left out."
    over = names[limits.MAX_FIELDS : limits.IMPORT_COLUMNS]
    read.problems += [Problem(name, one, text) for one in over]
    if len(names) > limits.IMPORT_COLUMNS:
        read.problems.append(
            Problem(name, "", f"It has {len(names):,} columns; the others are not named here.")
        )


def of_seen(name: str, found: Sequence[Seen]) -> Table:
    """A table of columns that were read."""
    called = clean(name) or "rows"
    made = Table(Entity(called, (called,), tuple(one.column for one in found)))
    sampled = [one for one in found if one.sample and one.ready is None]
    if sampled:
        size = max(len(one.sample) for one in sampled)
        made.sample = pa.RecordBatch.from_arrays(
            [pa.array(one.sample + [None] * (size - len(one.sample)), pa.string()) for one in sampled],
            names=[one.column.name for one in sampled],
        )
    for one in found:
        if one.ready is not None:
            made.ready[one.column.name] = one.ready
        elif not one.sample:
            made.note(one.column.name, "It has no value in the file; its name decided.")
    return made

"""Find errors in the requests of a push over HTTP before the push is accepted.

A request template may refer to fields that the rows do not have, and put values into headers that are not valid there.
A cell depends only on its row number, so the columns used in headers are generated for every row of the push.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.connectors.http.channel import Channel
from webapp.connectors.http.request_template import (
    UNFIT_CHARACTERS,
    UNFIT_IN_HEADERS,
    RequestTemplate,
    has_field,
    value_in_header,
)
from webapp.engine.budget import TooLarge
from webapp.engine.placeholders import Hole, parse
from webapp.errors import Fault, did_you_mean
from webapp.pushes.services import targets, value_checks
from webapp.pushes.services.planning import Planned
from webapp.pushes.services.rows import HIDDEN, TableRows
from webapp.pushes.services.targets import Destination

_ENCODE: Final = "Set header_encoding of the request template to percent or rfc8187, or use another field."
_SHOWN_CHARS: Final = 60  # chosen: of a value in a message


class Nobody:
    """A hand that holds nothing: nothing is sent."""

    def may_go(self) -> None:
        """Always."""

    def wait(self, seconds: float) -> None:
        """Placeholder that is never called."""


def add(destination: Destination, tables: Sequence[Planned]) -> None:
    """Add the faults of the requests that tables of a push would send to those of the tables. Errors: those of
    connections."""
    if not destination.can.by_row or not destination.settings_fit or not tables:
        return
    with targets.channel_of(destination) as channel:
        for place, one in enumerate(tables):
            one.faults += of_table(channel, one.rows(place), one.wanted.path, sound=not one.faults)


def of_table(channel: Channel, rows: TableRows, path: str = "", *, sound: bool = True) -> list[Fault]:
    """Return the errors in the requests of one table. `path` is a prefix for the paths of errors. If the table is not
    `sound`, its rows cannot be generated, and checks that need them are skipped."""
    template = channel.sending(rows.writing(channel), Nobody()).template
    if template is None:
        return []
    if not sound:
        return list(
            _unknown(template, rows.columns, lambda name: name.partition(".")[0] in rows.columns, path)
        )
    row = rows.batch(
        np.arange(rows.offset, rows.offset + min(1, rows.count), dtype=np.uint64), value_checks.NoKeys()
    )
    faults = list(_unknown(template, rows.columns, lambda name: has_field(row, name), path))
    if not faults and template.header_encoding == "none":
        faults = list(_headers(template, rows, row.schema, path))
    return faults


def _unknown(
    template: RequestTemplate, names: Sequence[str], known: Callable[[str], bool], path: str
) -> Iterator[Fault]:
    """Fields that a request reads and rows do not have."""
    for place, name in template.reads():
        if not known(name):
            text = f'The request reads "{name[:100]}", and the rows have no such field.'
            hint = (
                did_you_mean(name, names) or f"They have {', '.join(names[: limits.MAPPING_FIELDS_NAMED])}."
            )
            yield Fault(f"{path}request_template.{place}", "unknown_field", text, hint)


# --- Values in headers ------------------------------------------------------------------------------------------


def _headers(template: RequestTemplate, rows: TableRows, schema: pa.Schema, path: str) -> Iterator[Fault]:
    """The first row of each header whose value the header cannot hold."""
    asked: dict[str, list[Hole]] = {}
    for name, text in template.headers.items():
        holes = [hole for hole in parse(text).holes if not _is_plain(hole, rows, schema)]
        made = next((hole.name for hole in holes if _column(hole, rows) in rows.from_parent), None)
        if made is not None:
            message = f"The header {name} uses {made}, a key that the target creates while the rows are sent."
            yield _fault(path, name, f"{message} Its characters cannot be checked in advance.")
        elif holes:
            asked[name] = holes
    if asked and rows.count > limits.HTTP_HEADER_ROWS:
        for name, holes in asked.items():
            message = f"The header {name} reads {holes[0].name}, whose values cannot be checked in {rows.count:,} rows."
            yield _fault(path, name, f"{message} Up to {limits.HTTP_HEADER_ROWS:,} rows can be checked.")
        return
    for first, batch in _blocks(rows, {_column(hole, rows) for holes in asked.values() for hole in holes}):
        for name in list(asked):
            found = _first_unfit(batch, template.headers[name], asked[name])
            if found is not None:
                place, field, value = found
                shown = HIDDEN if _column_of(field, rows) in rows.sensitive else _shown(value)
                message = (
                    f"The header {name} cannot hold the value of {field} in row {first + place:,}: {shown}."
                )
                yield _fault(path, name, f"{message} {_reason(value)}")
                del asked[name]
        if not asked:
            return


def _fault(path: str, header: str, text: str) -> Fault:
    return Fault(f"{path}request_template.headers.{header}", "invalid_header_value", text, _ENCODE)


def _column(hole: Hole, rows: TableRows) -> str:
    return _column_of(hole.name, rows)


def _column_of(name: str, rows: TableRows) -> str:
    """The column that a field is in."""
    return name if name in rows.columns else name.partition(".")[0]


def _is_plain(hole: Hole, rows: TableRows, schema: pa.Schema) -> bool:
    """Return whether all values of a placeholder consist of digits and ASCII signs: numbers, dates, times, true and
    false."""
    dtype = schema.field(_column(hole, rows)).type
    if hole.filters or rows.spec.get("bad") or _column(hole, rows) in rows.from_parent:
        return False
    return bool(
        pa.types.is_integer(dtype)
        or pa.types.is_floating(dtype)
        or pa.types.is_decimal(dtype)
        or pa.types.is_boolean(dtype)
        or pa.types.is_temporal(dtype)
    )


def _blocks(rows: TableRows, columns: set[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The columns of all rows, by parts, each with the number of its first row, from 1."""
    at, step = 0, limits.BLOCK_ROWS
    names = [name for name in rows.columns if name in columns]
    while names and at < rows.count:
        some = np.arange(rows.offset + at, rows.offset + min(at + step, rows.count), dtype=np.uint64)
        try:
            batch = rows.batch(some, value_checks.NoKeys(), names)
        except TooLarge:
            if some.size < 2:
                raise
            step = max(1, some.size // limits.BLOCK_STEP)
            continue
        yield at + 1, batch
        at += some.size


def _first_unfit(batch: pa.RecordBatch, header: str, holes: Sequence[Hole]) -> tuple[int, str, str] | None:
    """The first row whose value does not fit a header: its place, the field and its value."""
    begins = header.lstrip(" \t").startswith("{{")  # only what the header begins with must not be white space
    found = []
    for at, hole in enumerate(holes):
        texts = pc.utf8_trim(value_in_header(batch, hole), " \t")
        pattern = UNFIT_IN_HEADERS if begins and at == 0 else UNFIT_CHARACTERS
        place = pc.index(pc.match_substring_regex(texts, pattern), pa.scalar(True)).as_py()
        if place >= 0:
            found.append((place, hole.name, texts[place].as_py()))
    return min(found, default=None)


def _shown(value: str) -> str:
    """Return a value for use in a message: in quotation marks, with control characters escaped."""
    cut = value if len(value) <= _SHOWN_CHARS else f"{value[:_SHOWN_CHARS]}…"
    return f'"{"".join(ch if ch.isprintable() else repr(ch)[1:-1] for ch in cut)}"'


def _reason(value: str) -> str:
    if any(ch > "\xff" for ch in value):
        return "It has characters beyond Latin-1."
    return "It has line breaks or other control characters."

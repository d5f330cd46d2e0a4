"""Dry runs of a push over HTTP: the exact requests, and values that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from webapp import limits
from webapp.connectors.http.channel import Channel, Rows
from webapp.pushes.services import targets, value_checks
from webapp.pushes.services.planning import Planned
from webapp.pushes.services.preparation import Prepared
from webapp.pushes.services.request_faults import Nobody


def dry_run(prepared: Prepared) -> dict[str, Any]:
    """Return `{requests, misfits, checked_rows, tables}`, with the HTTP requests of the first three rows of each table,
    credentials masked. Nothing is sent to the target. Errors: those of connections."""
    found, checked, tables = [], 0, []
    with targets.channel_of(prepared.destination) as channel:
        for place, one in enumerate(prepared.tables):
            sent = requests(prepared.push_id, channel, place, one)
            told, count = value_checks.check(
                one, one.rows(place), None, prepared.targets, prepared.connection.type
            )
            found += told
            checked += count
            told_of = {"name": one.spec["name"], "target": one.spec["target"]}
            tables.append({**told_of, "statements": None, "requests": sent})
    return {
        "statements": None,
        "requests": [text for one in tables for text in one["requests"]],
        "misfits": [one.as_json() for one in found],
        "checked_rows": checked,
        "tables": tables,
    }


def requests(push_id: str, channel: Channel, place: int, one: Planned) -> list[str]:
    """The HTTP of the first three rows of a table, as a push of that id would send them."""
    rows = one.rows(place)
    few = np.arange(rows.offset, rows.offset + min(limits.PREVIEW_ROWS, rows.count), dtype=np.uint64)
    numbers = list(range(1, len(few) + 1))
    table = f"{place}." if place else ""
    keys = [f"{push_id}-{table}{number}" for number in numbers]
    batch = rows.batch(few, value_checks.NoKeys())
    return channel.sending(rows.writing(channel), Nobody()).requests(Rows(batch, numbers, keys))

"""Limits and usage: what is left of the limits and when they reset, what was used by the hour and by the day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, Literal

from flask import Blueprint, Response, g
from pydantic import Field, create_model

from webapp import clock, quotas
from webapp.access.actors import Actor
from webapp.quotas import Gauge
from webapp.usage import services
from webapp.usage.services import UsageHistory, UsageSum
from webapp.web.inputs import Query, Timestamp
from webapp.web.responses import OptionalTime, Output, Time, reply
from webapp.web.routing import route

bp = Blueprint("usage", __name__)

RANGES: Final = {"24h": timedelta(hours=23), "7d": timedelta(days=6), "30d": timedelta(days=29)}
_SHADES: Final = 5  # shares with their own colour; the rest are combined
_WIDTH, _HEIGHT = 720, 120  # of a chart, in its own units


class _UsageQuery(Query):
    """`by` groups the usage (`key` and `person`: only for admins), in steps of an hour or a day. `from` is inclusive,
    `to` exclusive; `range` is a range that ends now."""

    by: Literal["project", "template", "key", "person"] | None = None
    step: Literal["hour", "day"] | None = None
    range: Literal["24h", "7d", "30d"] | None = None
    to: Timestamp | None = None


# `from` is a word of Python's own.
_FROM: Final[Any] = {"from": (Timestamp | None, None)}
UsageQuery = create_model("UsageQuery", __base__=_UsageQuery, __doc__=_UsageQuery.__doc__, **_FROM)


class RateOut(Output):
    """A limit and its current use.

    `next_at`: when the first part becomes available again; `resets_at`: when all of it is available, if nothing more is
    used.
    """

    limit: int
    used: int
    left: int
    window_seconds: int
    next_at: OptionalTime
    resets_at: OptionalTime


class StepOut(Output):
    """An hour or a day, identified by its start."""

    start: Time
    rows: int
    requests: int


class ShareOut(Output):
    """The usage of a project, template, key or user.

    `steps` are the periods with any usage. `id` is empty for usage that belongs to none, and for the last entry, which
    sums up all others.
    """

    id: str
    name: str
    rows: int
    requests: int
    steps: list[StepOut]


class UsageHistoryOut(Output):
    """The usage. Rows are counted rows minus returned ones; requests are accepted requests."""

    by: str | None
    step: Literal["hour", "day"]
    start: Time
    end: Time
    rows: int
    requests: int
    steps: list[StepOut]
    shares: list[ShareOut]


class FilesUsedOut(Output):
    """The file quota.

    `used_bytes`: existing files; `trash_bytes`: deleted files that can still be restored, the oldest of which are
    removed permanently when an upload needs their space; `uploading_bytes`: uploads in progress; `compat_bytes`: saved
    sets and key maps of the compatible API.
    """

    limit_bytes: int
    used_bytes: int
    trash_bytes: int
    uploading_bytes: int
    compat_bytes: int
    files: int
    trash_files: int


class SqliteUsedOut(Output):
    """The files of SQLite connections, including their journals."""

    limit_bytes: int
    used_bytes: int
    limit_files: int
    files: int


class ExportsUsedOut(Output):
    """The files of exports, including those in progress. The oldest are removed when a new one needs space."""

    limit_bytes: int
    used_bytes: int


class StorageOut(Output):
    """The used and the maximum storage of the workspace."""

    files: FilesUsedOut
    sqlite: SqliteUsedOut
    exports: ExportsUsedOut


class UsageOut(Output):
    """The limits, their current use, and the past usage."""

    plan: str
    requests: RateOut
    rows: RateOut
    rows_per_generation: int
    near: list[Literal["requests", "rows"]] = Field(description="limits of which 80 % are used")
    storage: StorageOut
    history: UsageHistoryOut


@route(bp, "/usage", scope="member", query=UsageQuery, returns=UsageOut)
def usage(actor: Actor, query: Any) -> Response:
    """Get the current use of the limits, when they reset, and the usage over time.

    Rows are exact and match the audit log. Requests are counted in Redis and stored every minute: if Redis is
    emptied, requests that were not stored yet are lost.
    """
    person = g.face == "person"
    start, end = getattr(query, "from"), query.to
    range_name = query.range or (("7d" if person else "24h") if start is None else None)
    if start is None and range_name is not None:
        start = (end or clock.now()) - RANGES[range_name]
    by: services.By | None = query.by or ("template" if person else None)
    found = services.history(actor, by=by, step=query.step, start=start, end=end)
    gauges = quotas.gauges(actor, g.rate_limit)
    data = {
        "plan": actor.plan,
        **{name: _gauge_data(gauge) for name, gauge in gauges.items()},
        "rows_per_generation": actor.limits.rows_per_generation,
        "near": [name for name, gauge in gauges.items() if gauge.near],
        "storage": services.storage(actor),
        "history": {
            "by": found.by,
            "step": found.step,
            "start": clock.to_text(found.start),
            "end": clock.to_text(found.end),
            "rows": found.sum.rows,
            "requests": found.sum.requests,
            "steps": _step_list(found.steps),
            "shares": [
                {
                    "id": share.id,
                    "name": share.name,
                    "rows": share.sum.rows,
                    "requests": share.sum.requests,
                    "steps": _step_list(share.steps),
                }
                for share in found.shares
            ],
        },
    }
    context: dict[str, Any] = {}
    if person:
        context = {"charts": [_chart(found, unit) for unit in ("rows", "requests")], "shades": _SHADES}
    return reply(data, template="usage.html", query=query, by=by, range=range_name, **context)


def _gauge_data(gauge: Gauge) -> dict[str, Any]:
    return {
        "limit": gauge.limit,
        "used": gauge.used,
        "left": gauge.left,
        "window_seconds": gauge.window_seconds,
        "next_at": clock.to_text(gauge.next_at),
        "resets_at": clock.to_text(gauge.resets_at),
    }


def _step_list(steps: dict[datetime, UsageSum]) -> list[dict[str, Any]]:
    return [
        {"start": clock.to_text(at), "rows": item.rows, "requests": item.requests}
        for at, item in sorted(steps.items())
    ]


# --- Charts -------------------------------------------------------------------------------------------------


def _chart(found: UsageHistory, unit: str) -> dict[str, Any]:
    """Return a bar chart with one bar per step, in which the largest shares are stacked."""
    maximum = max((getattr(step, unit) for step in found.steps.values()), default=0)
    bar_width = _WIDTH / max(1, len(found.steps))
    bars = []
    is_split = found.shares and not (unit == "requests" and found.by == "template")  # they belong to none
    for index, (at, sums) in enumerate(found.steps.items()):
        total = getattr(sums, unit)
        shown_values = [getattr(share.steps.get(at, UsageSum()), unit) for share in found.shares[:_SHADES]]
        values = [*shown_values, total - sum(shown_values)] if is_split else [total]
        parts, base = [], float(_HEIGHT)
        for shade, value in enumerate(values):  # bottom up
            # Rows that were returned in a later hour than they were counted make it negative.
            if value <= 0 or maximum <= 0:
                continue
            height = max(1.5, _HEIGHT * value / maximum)
            base -= height
            y = round(max(0.0, base), 2)
            parts.append({"shade": min(shade, _SHADES), "y": y, "height": round(height, 2)})
        bars.append(
            {
                "x": round(index * bar_width, 2),
                "width": round(max(1.0, bar_width - min(4.0, bar_width / 4)), 2),
                "at": at,
                "value": total,
                "parts": parts,
            }
        )
    return {
        "unit": unit,
        "most": maximum,
        "total": getattr(found.sum, unit),
        "bars": bars,
        "width": _WIDTH,
        "height": _HEIGHT,
        "every": max(1, round(len(bars) / 8)),  # so that the labels fit
    }

"""What an export's page shows beside the export itself: its pace, its parts, and the same by program."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from webapp import clock, limits
from webapp.engine.formats import FORMATS
from webapp.models import Export
from webapp.services import export_parts
from webapp.views import shell, snippets


def context(data: Mapping[str, Any], export: Export) -> dict[str, Any]:
    """`pace`, `parts` and `code` for the page of an export (and as JSON)."""
    return {"pace": pace(data), "parts": parts(export) if export.parts else None, "code": _code(data)}


def parts(export: Export, first: int = 1) -> dict[str, Any]:
    """One page of an export's parts: `{items, before, after}`; the last two are numbers that the pages before and after
    it begin with, None where there is none."""
    shown = [export_parts.as_json(part) for part in export_parts.some(export, first)]
    after = first + limits.PARTS_SHOWN
    return {
        "items": shown,
        "before": max(1, first - limits.PARTS_SHOWN) if first > 1 else None,
        "after": after if after <= (export.parts or 0) else None,
    }


def pace(data: Mapping[str, Any]) -> dict[str, Any]:
    """`{rate, left, took}`: rows a second so far, time left and time taken in words; None where unknown."""
    started, finished = (_moment(data[key]) for key in ("started_at", "finished_at"))
    if started is None:
        return {"rate": None, "left": None, "took": None}
    spent = ((finished or clock.now()) - started).total_seconds()
    rate = data["rows_done"] / spent if spent > 0 and data["rows_done"] else None
    left = shell.duration((data["count"] - data["rows_done"]) / rate) if rate and finished is None else None
    return {
        "rate": round(rate) if rate else None,
        "left": left,
        "took": shell.duration(spent) if finished else None,
    }


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _code(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    base = snippets.origin()
    ask = data["request"]
    made = []
    if data["template_id"]:
        made.append(
            ("Ask for it", snippets.curl("POST", f"{base}/templates/{data['template_id']}/exports", ask))
        )
    if data["dataset_id"]:
        made.append(
            ("Ask for it", snippets.curl("POST", f"{base}/datasets/{data['dataset_id']}/exports", ask))
        )
    made.append(("Follow it", snippets.curl("GET", f"{base}/exports/{data['id']}/events", more="-N")))
    if data["parts"]:
        manifest = snippets.curl("GET", f"{base}/exports/{data['id']}/manifest")
        made.append(("What it is made of: rows, size and checksum of each part", manifest))
    if data["answers_url"]:
        key = snippets.curl("GET", f"{base}/exports/{data['id']}/answers")
        made.append(("Which cells are bad on purpose, and their good values", key))
    if data["parts"] and not FORMATS[data["format"]].continues:
        part = snippets.curl("GET", f"{base}/exports/{data['id']}/parts/1", more="-OJ")
        made.append(("Download one part, a file of its own", part))
        return made
    download = snippets.curl(
        "GET", f"{base}/exports/{data['id']}/download", more=f"-C - -o {data['file_name']!r}"
    )
    made.append(("Download it; go on where it broke off", download))
    return made

"""What an export's page shows beside the export itself: its pace, and the same by program."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from webapp import clock
from webapp.views import shell, snippets


def context(data: Mapping[str, Any]) -> dict[str, Any]:
    """`pace` and `code` for the page of an export (as JSON)."""
    return {"pace": pace(data), "code": _code(data)}


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
    download = snippets.curl(
        "GET", f"{base}/exports/{data['id']}/download", more=f"-C - -o {data['file_name']!r}"
    )
    made.append(("Download it; go on where it broke off", download))
    return made

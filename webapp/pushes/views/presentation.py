"""Additional data for the pages of pushes: rates, chart, rows, log, repairs and code examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import orjson
from flask import g
from sqlalchemy import select

from webapp import limits, pagination
from webapp.access.actors import Actor
from webapp.connections.models import Connection, Endpoint
from webapp.connectors import KINDS
from webapp.connectors.http.channel import HTTP_REASONS
from webapp.datasets.models import Dataset
from webapp.errors import ApiError
from webapp.exports import views as exports_views
from webapp.extensions import db
from webapp.pushes.models import Push
from webapp.pushes.services import completion, pushes, retries
from webapp.pushes.services.ledger import read
from webapp.row_templates.models import Template
from webapp.web import snippets
from webapp.work.models import END_STATES

# The repair form of a push: convert the corrections that a user enters for failed rows to a retry request.

MAX_REPAIRED_COLUMNS: Final = 3  # chosen: columns that can be repaired in one step
REPAIR_OPTIONS: Final = (
    ("value", "a fixed value"),
    ("formula", "a formula"),
    ("field", "another field"),
    ("nothing", "nothing"),
)


def retry_body(push: Push, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form `{states, table, r: [{column, how, to}], confirm}` as the body of `POST /pushes/{id}/retry`.

    A fixed value goes to the field of its column where rows of a template are sent, else it is a formula.
    """
    states, confirm, table = (
        values.get("states") or [],
        values.get("confirm") or None,
        values.get("table") or None,
    )
    request_body: dict[str, Any] = {
        "states": [states] if isinstance(states, str) else states,
        "confirm": confirm,
        "mapping": {},
        "computed": {},
        "overrides": {},
    }
    lines = values.get("r")
    changed = (
        [line for line in lines if isinstance(line, dict) and line.get("column")]
        if isinstance(lines, list)
        else []
    )
    if table and (changed or len(push.tables) > 1):
        request_body["table"] = table
    names = {item["name"]: item for item in push.tables}
    columns = names.get(str(table), push.tables[0])["columns"]
    fields = {item["column"]: item.get("field") for item in columns}
    for item in changed:
        column, how, to = (str(item.get(key, "")) for key in ("column", "how", "to"))
        field = fields.get(column)
        if how == "value" and field and push.template_id:
            request_body["overrides"][field] = _parse_value(to)
        elif how == "value":
            request_body["computed"][column] = orjson.dumps(_parse_value(to)).decode()
        elif how == "formula":
            request_body["computed"][column] = to.strip() or "null"
        elif how == "field":
            request_body["mapping"][to] = column
        elif field:
            request_body["mapping"][field] = None
    return {key: value for key, value in request_body.items() if value}


def _parse_value(text: str) -> Any:
    """Convert user input: a number, true, false, null or a quoted text is parsed as JSON; anything else is a text."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return text if isinstance(found, dict | list) else found


def mappable_fields(push: Mapping[str, Any]) -> list[str]:
    """Return the fields that can be mapped to a column instead, as far as the push names them."""
    named = {
        column["field"]: None for table in push["tables"] for column in table["columns"] if column["field"]
    }
    return list({**named, **dict.fromkeys(push["request"].get("mapping") or {})})


STATES: Final = ("failed", "unknown", "delivered", "undone")
_LOG_LINES: Final = 12  # chosen: the last lines of the log
_WIDTH, _HEIGHT = 600, 90  # of the rate chart, in its own units


def context(
    actor: Actor, push: Push, data: Mapping[str, Any], lines: Sequence[read.LogLine] | None = None
) -> dict[str, Any]:
    """Return the context of a push's page; empty for API clients. `lines` are the last lines of its log, if they were
    read before the push."""
    if g.face != "person":
        return {}
    if lines is None:
        lines = last_log_lines(push.id)
    counts, total = data["counts"], data["counts"]["total"]
    connection = db.session.get(Connection, push.connection_id) if push.connection_id else None
    endpoint = db.session.get(Endpoint, push.endpoint_id) if push.endpoint_id else None
    state = "failed" if counts["failed"] or not counts["unknown"] else "unknown"
    found = read.rows(push.id, state=state, limit=limits.PAGE_LIMIT_DEFAULT + 1)
    ends = found[: limits.PAGE_LIMIT_DEFAULT]
    items = [item.as_json(push.tables) for item in ends]
    last = [ends[-1].table, ends[-1].row] if len(found) > len(ends) else None
    return {
        "pace": exports_views.pace({**data, "rows_done": total - counts["pending"], "count": total}),
        "chart": chart(data["progress"]),
        "state": state,
        "shown": items,
        "after": pagination.encode_cursor("push_rows", f"{push.id} {state} None", last) if last else None,
        "groups": retries.failure_groups(push) if counts["failed"] or counts["unknown"] else [],
        "by_table": read.counts_by_table(db.session(), push)
        if len(push.tables) > 1 and push.kind == "push"
        else [],
        "explained": explain_rows([*items, *(_unknown_rows(push) if state == "failed" else ())]),
        "stopped_by": explain_error(data["error"]),
        "http": connection is not None and KINDS[connection.type].can.by_row,
        "endpoint": endpoint if endpoint is not None and endpoint.deleted_at is None else None,
        "lines": lines,
        "related": pushes.listing(actor, of_id=push.id, limit=limits.PAGE_LIMIT_MAX).items,
        "of": db.session.get(Push, push.of_id) if push.of_id else None,
        "source": _source(push),
        "connection": connection if connection is not None and connection.deleted_at is None else None,
        "needs": connection.name if connection is not None and connection.environment == "prod" else None,
        "bad": _invalid_rows_report(push),
        "undo": _can_undo(push, data),
        "repairs": {
            "ways": REPAIR_OPTIONS,
            "lines": range(MAX_REPAIRED_COLUMNS),
            "fields": mappable_fields(data),
        },
        "code": code_examples(data),
    }


def repair_context(push: Push) -> dict[str, Any]:
    """Return the source of a push's rows, and the name to confirm if its connection is production."""
    connection = db.session.get(Connection, push.connection_id) if push.connection_id else None
    prod = connection is not None and connection.environment == "prod"
    return {"source": _source(push), "needs": connection.name if prod and connection else None}


def last_log_lines(push_id: str) -> list[read.LogLine]:
    """Return the last lines of a push's log. A page reads them before the push itself, so that no line of a running
    push is shown below the status "Queued"."""
    return read.last_log_lines(push_id, _LOG_LINES) if g.face == "person" else []


def _invalid_rows_report(push: Push) -> dict[str, int] | None:
    """Return the outcome of rows with injected invalid data; None for a push without them, or while it is running."""
    if push.kind != "push" or push.status not in END_STATES or not completion.has_invalid_rows(push):
        return None
    try:
        return completion.invalid_rows_report(push)
    except ApiError:  # its pinned versions no longer exist
        return None


def _unknown_rows(push: Push) -> list[dict[str, Any]]:
    """Return the first rows whose outcome is unknown."""
    if not push.unknown:
        return []
    found = read.rows(push.id, state="unknown", limit=limits.PAGE_LIMIT_DEFAULT)
    return [item.as_json(push.tables) for item in found]


def _source(push: Push) -> dict[str, str] | None:
    """Return the template or dataset of the rows, if it still exists."""
    row: Template | Dataset | None = None
    if push.template_id:
        row = db.session.get(Template, push.template_id)
    elif push.dataset_id:
        row = db.session.get(Dataset, push.dataset_id)
    if row is None or row.deleted_at is not None:
        return None
    kind = "template" if push.template_id else "dataset"
    return {"name": row.name, "href": f"/{kind}s/{row.id}", "kind": kind}


def _can_undo(push: Push, data: Mapping[str, Any]) -> bool:
    """Return whether the user can undo the push, that is, delete the delivered rows, or those of some tables."""
    inserted = all(table["mode"] == "insert" for table in push.tables)
    inserted = inserted and any(retries.can_find_rows(table) for table in push.tables)
    return bool(
        data["status"] in END_STATES and data["kind"] != "undo" and data["counts"]["delivered"] and inserted
    )


def chart(points: Sequence[Sequence[float]]) -> dict[str, Any] | None:
    """Return the rate over time as a line, `{width, height, line, area, most, seconds}`, or None with fewer than
    three points."""
    steps = [(float(at), float(done)) for at, done in points]
    rates = [
        (after[0], (after[1] - before[1]) / (after[0] - before[0]))
        for before, after in pairwise(steps)
        if after[0] > before[0]
    ]
    if len(rates) < 2:
        return None
    maximum, last = max(rate for _, rate in rates), rates[-1][0]
    if maximum <= 0 or last <= 0:
        return None
    spots = [
        f"{at / last * _WIDTH:.1f},{_HEIGHT - 2 - max(0.0, rate) / maximum * (_HEIGHT - 4):.1f}"
        for at, rate in rates
    ]
    line = "M0," + spots[0].partition(",")[2] + " L" + " L".join(spots)
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "line": line,
        "area": f"{line} L{_WIDTH},{_HEIGHT} L0,{_HEIGHT} Z",
        "most": round(maximum),
        "seconds": last,
    }


def connection_names(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the names of the connections of some pushes, by id."""
    ids = {item["connection_id"] for item in items if item["connection_id"]}
    rows = (
        db.session.execute(select(Connection.id, Connection.name).where(Connection.id.in_(ids)))
        if ids
        else ()
    )
    return {row[0]: row[1] for row in rows}


def code_examples(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return examples for the API."""
    base = snippets.origin()
    push_url = f"{base}/pushes/{data['id']}"
    defaults = {"mode": "insert", "on_error": "continue", "dry_run": False, "offset": 0}
    ask = {
        key: value
        for key, value in data["request"].items()
        if value not in (None, "", [], {}, False)
        and defaults.get(key) != value
        and key not in ("confirm", "rows")
    }
    examples = []
    if data["kind"] == "push" and (data["template_id"] or data["dataset_id"]):
        kind = "templates" if data["template_id"] else "datasets"
        url = f"{base}/{kind}/{data['template_id'] or data['dataset_id']}/push"
        examples.append(
            ("Push again with the same seed", snippets.curl("POST", url, {**ask, "seed": data["seed"]}))
        )
    if data["status"] not in END_STATES:
        examples.append(("Follow the progress", snippets.curl("GET", f"{push_url}/events", more="-N")))
    examples.append(
        ("List the failed rows", snippets.curl("GET", f"{push_url}/rows?state=failed&values=true"))
    )
    examples.append(("Retry the failed rows", snippets.curl("POST", f"{push_url}/retry", {})))
    return examples


def progress_bar(counts: Mapping[str, int]) -> list[tuple[str, float, float]]:
    """Return the parts of the progress bar: the outcome of rows, the position and the width of each part, in
    percent."""
    total, at, parts = max(1, counts["total"]), 0.0, []
    for name in ("delivered", "undone", "unknown", "failed"):
        wide = counts[name] * 100 / total
        if wide:
            wide = max(wide, 0.4)
            parts.append((name, round(at, 2), round(min(wide, 100 - at), 2)))
            at = min(100.0, at + wide)
    return parts


# Why requests of a push failed: one sentence about the meaning, one about the next step.


class Explanation(NamedTuple):
    """A reason in words."""

    reason: str
    meaning: str
    next: str


_EXPLANATIONS: Final[Mapping[str, tuple[str, str]]] = {
    "rejected": (
        "The target rejected the request. Its reason is in the message.",
        "Compare the values of the row with the message, change the field or the mapping, and retry the failed rows.",
    ),
    "forbidden": (
        "The target does not accept the credentials (401), or they do not allow this request (403).",
        "Test the connection. If it passes, ask the target's administrator for permission to create these objects.",
    ),
    "csrf": (
        "The target requires a CSRF token and rejected a new one. The token was issued without its cookie or at "
        "another URL, or a gateway removed one of the two.",
        "In the connection's CSRF settings, set the URL that issues the token, or turn CSRF off if the service needs "
        "none. Check whether a proxy removes cookies.",
    ),
    "throttled": (
        "The target received more requests than it allows and rejected the last attempt (429).",
        "Lower the number of parallel requests or the rate per second in the push's form, then retry the failed rows.",
    ),
    "unavailable": (
        "The target was overloaded or had an internal error at the last attempt (5xx).",
        "Wait until the target is available again, then retry the failed rows.",
    ),
    "redirected": (
        "The target redirected the request to another host, where credentials are not sent.",
        "Enter the URL of the redirect in the connection. Often https:// or a slash at the end is missing.",
    ),
    "timeout": (
        "The target did not respond in time. Rows with an unknown state may have been delivered.",
        "Look for one of these rows in the target. Then raise the time limit under Retry, and retry.",
    ),
    "reset": (
        "The connection was closed before the response. Rows with an unknown state may have been delivered.",
        "Look for one of these rows in the target, then retry. If it happens often, send fewer requests in parallel.",
    ),
    "unreachable": (
        "The target could not be reached, so none of these rows were delivered.",
        "Test the connection to see which stage fails, then retry the failed rows.",
    ),
    "no_token": (
        "The token endpoint did not issue a token, so these rows were not sent.",
        "Test the connection to check the token URL, client ID and client secret, then retry the failed rows.",
    ),
    "interrupted": (
        "The push ended while these rows waited for their next attempt.",
        "Retry the failed rows.",
    ),
}
_REASONS_BY_ERROR: Final = {
    "token_request_failed": "no_token",
    "target_timeout": "timeout",
    "csrf_failed": "csrf",
}
EXPLAINED_REASONS: Final = frozenset({*HTTP_REASONS, "no_token"})
"""Reasons that have an explanation; a test checks that none is missing."""


def explain(reason: str) -> Explanation | None:
    """Return the explanation of a reason; None for one that its own message explains."""
    found = _EXPLANATIONS.get(reason)
    return Explanation(reason, *found) if found else None


def explain_rows(items: Iterable[Mapping[str, Any]]) -> list[Explanation]:
    """Return the explanations for some rows, the most frequent first."""
    counts: dict[str, int] = {}
    for item in items:
        counts[item["code"]] = counts.get(item["code"], 0) + 1
    found = (explain(reason) for reason in sorted(counts, key=lambda count: -counts[count]))
    return [explanation for explanation in found if explanation is not None]


def explain_error(error: Mapping[str, Any] | None) -> Explanation | None:
    """Explain why a push failed."""
    if not error:
        return None
    reason = (error.get("details") or {}).get("reason", "")
    prefix = error["message"].partition(":")[0]  # pushes keep the reason before the message
    for name in (reason, prefix, error["code"]):
        if found := explain(_REASONS_BY_ERROR.get(name, name)):
            return found
    return None

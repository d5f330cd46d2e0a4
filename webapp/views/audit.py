"""The audit trail, for admins: by page as JSON, or whole as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import orjson
from flask import Blueprint, Response, current_app, request
from sqlalchemy import ColumnElement, Select, and_, or_

from webapp.extensions import reading
from webapp.models import AuditEntry
from webapp.services import paging, tenancy
from webapp.services.actors import Actor
from webapp.views.inputs import ListQuery, Moment
from webapp.views.outputs import Listed, Output, Time
from webapp.views.reply import reply
from webapp.views.routes import route

bp = Blueprint("audit", __name__)
JSON_LINES = "application/x-ndjson"
_BATCH = 500


class AuditQuery(ListQuery):
    """Which entries. `q` searches actions; `format=jsonl` gives all of them, oldest first, one a line."""

    action: str | None = None
    object_id: str | None = None
    user_id: str | None = None
    key_id: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    format: Literal["json", "jsonl"] = "json"


class AuditOut(Output):
    """One action."""

    id: str
    at: Time
    action: str
    object_type: str
    object_id: str
    project_id: str | None
    user_id: str | None
    key_id: str | None
    address: str
    request_id: str
    rows: int | None
    details: dict[str, Any]


@route(bp, "/audit", scope="admin", query=AuditQuery, returns=Listed(AuditOut), produces=[JSON_LINES])
def index(actor: Actor, query: AuditQuery) -> Response:
    """Read the audit trail."""
    statement = _chosen(actor, query)
    if query.format == "jsonl" or JSON_LINES in request.headers.get("Accept", ""):
        headers = {"Content-Disposition": 'attachment; filename="audit.jsonl"'}
        return Response(_lines(statement), mimetype=JSON_LINES, headers=headers)
    narrowed = query.model_dump_json(exclude={"cursor", "limit", "q", "format"})
    found = paging.page(
        statement,
        name="audit",
        identity=AuditEntry.id,
        order=AuditEntry.at,
        cursor=query.cursor,
        limit=query.limit,
        search=(query.q, AuditEntry.action),
        context=f"{actor.workspace_id} {narrowed}",
    )
    return reply(found.as_dict(AuditOut.of), template="audit.html", query=query)


def _chosen(actor: Actor, query: AuditQuery) -> Select[tuple[AuditEntry]]:
    statement = tenancy.listing(actor, AuditEntry, project=False)
    for name in ("action", "object_id", "user_id", "key_id"):
        if (value := getattr(query, name)) is not None:
            statement = statement.where(getattr(AuditEntry, name) == value)
    if query.since is not None:
        statement = statement.where(AuditEntry.at >= query.since)
    if query.until is not None:
        statement = statement.where(AuditEntry.at < query.until)
    return statement


def _after(last: AuditEntry) -> ColumnElement[bool]:
    return or_(AuditEntry.at > last.at, and_(AuditEntry.at == last.at, AuditEntry.id > last.id))


def _lines(statement: Select[tuple[AuditEntry]]) -> Iterator[bytes]:
    """All entries in batches, each read in a short transaction of its own."""
    app = current_app._get_current_object()  # type: ignore[attr-defined]

    def batches() -> Iterator[bytes]:
        chosen = statement.order_by(AuditEntry.at, AuditEntry.id).limit(_BATCH)
        rows: list[AuditEntry] = []
        while True:
            with app.app_context(), reading() as session:
                rows = list(session.scalars(chosen.where(_after(rows[-1])) if rows else chosen))
            if not rows:
                return
            yield b"".join(orjson.dumps(AuditOut.of(row)) + b"\n" for row in rows)

    return batches()

"""The audit trail, for admins: by page as JSON, or whole as JSON lines; and the seals that hold it together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import orjson
from flask import Blueprint, Response, g, request
from pydantic import Field, field_validator

from webapp import clock, limits, pagination
from webapp.accounts.actors import Actor
from webapp.accounts.models import Workspace
from webapp.accounts.services import tenancy
from webapp.audit.models import AuditSeal
from webapp.audit.services import seals as audit_seals
from webapp.audit.services import search
from webapp.audit.services.search import Wanted
from webapp.extensions import db
from webapp.web.inputs import ListQuery, Moment, Query
from webapp.web.responses import Listed, OptionalTime, Output, Time, reply
from webapp.web.routing import route

bp = Blueprint("audit", __name__)
JSON_LINES = "application/x-ndjson"


class AuditQuery(ListQuery):
    """Which entries. `q` searches actions, `text` the details; `kind` is that of the object; `format=jsonl` gives all
    of them, oldest first, one a line."""

    action: str | None = None
    kind: str | None = None
    object_id: str | None = None
    user_id: str | None = None
    key_id: str | None = None
    project_id: str | None = None
    address: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    rows_min: Annotated[int, Field(ge=0, le=limits.MAX_INTEGER)] | None = None
    rows_max: Annotated[int, Field(ge=0, le=limits.MAX_INTEGER)] | None = None
    text: Annotated[str, Field(max_length=limits.AUDIT_TEXT_CHARS)] | None = None
    format: Literal["json", "jsonl"] = "json"

    @field_validator("*", mode="before")
    @classmethod
    def _left_open(cls, value: Any) -> Any:
        """A form sends every filter, those left open as empty texts."""
        return None if value == "" else value

    @field_validator("since", "until", mode="before")
    @classmethod
    def _of_a_form(cls, value: Any) -> Any:
        """A form's times have neither seconds nor a zone: they are in UTC, as the page says."""
        return f"{value}:00Z" if isinstance(value, str) and len(value) == len("2026-11-21T12:00") else value

    @property
    def wanted(self) -> Wanted:
        """What is asked for, without page and format."""
        return Wanted(**{name: getattr(self, name) for name in Wanted.__slots__})

    @property
    def narrowed(self) -> dict[str, str]:
        """The filters that are set, as an address says them."""
        said = self.model_dump(mode="json", exclude={"cursor", "limit", "format"}, exclude_none=True)
        return {name: str(value) for name, value in said.items()}


class SealsQuery(Query):
    """A page of the seals."""

    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=limits.PAGE_LIMIT_MAX)] = limits.PAGE_LIMIT_DEFAULT


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


class SealOut(Output):
    """A seal: `hash` is what the next one goes on from; its entries are gone where `removed_at` says when."""

    number: int
    count: int
    first_id: str
    last_id: str
    last_at: Time
    previous: str
    hash: str
    sealed_at: Time
    removed_at: OptionalTime


@route(bp, "/audit", scope="admin", query=AuditQuery, returns=Listed(AuditOut), produces=[JSON_LINES])
def index(actor: Actor, query: AuditQuery) -> Response:
    """Read the audit trail.

    Filters are joined by "and". What no index finds (`text`, `q`, rows, a second filter) is looked for in the newest
    20,000 entries that the others leave: a page that ends there before it is full has `searched_until` and a cursor
    that goes on. `total` is exact where `total_exact` says so, else there are at least so many.
    """
    if query.format == "jsonl" or JSON_LINES in request.headers.get("Accept", ""):
        headers = {"Content-Disposition": 'attachment; filename="audit.jsonl"'}
        return Response(_lines(actor, query), mimetype=JSON_LINES, headers=headers)
    found = search.page(actor, query.wanted, query.cursor, query.limit)
    data = {
        "items": [AuditOut.of(one) for one in found.items],
        "next_cursor": found.next_cursor,
        "total": found.total,
        "total_exact": found.total_exact,
        "searched_until": clock.to_text(found.searched_until),
    }
    shown = _shown(actor, data["items"]) if g.face == "person" else {}
    return reply(data, template="audit.html", query=query, **shown)


def _shown(actor: Actor, items: list[dict[str, Any]]) -> dict[str, Any]:
    """What the page shows beside the entries: names, choices of the filters, and up to where the trail is sealed."""
    newest = tenancy.listing(actor, AuditSeal, project=False).order_by(AuditSeal.number.desc()).limit(1)
    kept = audit_seals.days_kept(db.session.get_one(Workspace, actor.workspace_id))
    choices = search.choices(actor)
    names = {**dict(choices["people"]), **search.names(actor.workspace_id, items)}
    return {"names": names, "seal": db.session.scalar(newest), "kept": kept, **choices}


@route(bp, "/audit/seals", scope="admin", query=SealsQuery, returns=Listed(SealOut))
def seals(actor: Actor, query: SealsQuery) -> Response:
    """List the seals of the audit trail, newest first.

    Keep `number` and `hash` of the newest one elsewhere from time to time: `./rowsmith audit verify --head` tells
    whether the trail still holds it.
    """
    found = pagination.page(
        tenancy.listing(actor, AuditSeal, project=False),
        name="audit_seals",
        identity=AuditSeal.number,
        cursor=query.cursor,
        limit=query.limit,
        context=actor.workspace_id,
    )
    return reply(found.as_dict(SealOut.of))


def _lines(actor: Actor, query: AuditQuery) -> Iterator[bytes]:
    batches = search.every(actor.workspace_id, query.wanted)
    return (b"".join(orjson.dumps(AuditOut.of(row)) + b"\n" for row in rows) for rows in batches)

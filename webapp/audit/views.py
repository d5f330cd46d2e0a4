"""The audit log, for admins: in pages as JSON, or complete as JSON lines; and its seals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import orjson
from flask import Blueprint, Response, g, request
from pydantic import Field, field_validator

from webapp import clock, limits, pagination
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.access.models import Workspace
from webapp.audit.models import AuditSeal
from webapp.audit.services import seals as audit_seals
from webapp.audit.services import search
from webapp.audit.services.search import EntryFilter
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.web.forms.page_form import Choices, Control, FormSpec
from webapp.web.inputs import ListQuery, Query, Timestamp
from webapp.web.responses import ListOf, OptionalTime, Output, Time, reply
from webapp.web.routing import route

bp = Blueprint("audit", __name__)
JSON_LINES = "application/x-ndjson"


class AuditQuery(ListQuery):
    """Filters of the entries. `q` searches the actions, `text` the details; `kind` is the kind of the object;
    `format=jsonl` returns all entries, oldest first, one per line."""

    action: str | None = None
    kind: str | None = None
    object_id: str | None = None
    user_id: str | None = None
    key_id: str | None = None
    project_id: str | None = None
    address: str | None = None
    since: Timestamp | None = None
    until: Timestamp | None = None
    rows_min: Annotated[int, Field(ge=0, le=limits.MAX_INTEGER)] | None = None
    rows_max: Annotated[int, Field(ge=0, le=limits.MAX_INTEGER)] | None = None
    text: Annotated[str, Field(max_length=limits.AUDIT_TEXT_CHARS)] | None = None
    format: Literal["json", "jsonl"] = "json"

    @field_validator("*", mode="before")
    @classmethod
    def _empty_as_none(cls, value: Any) -> Any:
        """Read an empty text as no filter: a form sends every filter."""
        return None if value == "" else value

    @field_validator("since", "until", mode="before")
    @classmethod
    def _form_time(cls, value: Any) -> Any:
        """Complete the time of a form, which has neither seconds nor a time zone: it is in UTC, as the page says."""
        return f"{value}:00Z" if isinstance(value, str) and len(value) == len("2026-11-21T12:00") else value

    @property
    def filters(self) -> EntryFilter:
        """Return the filters, without page and format."""
        return EntryFilter(**{name: getattr(self, name) for name in EntryFilter.__slots__})

    @property
    def narrowed(self) -> dict[str, str]:
        """Return the filters that are set, as parameters of a URL."""
        values = self.model_dump(mode="json", exclude={"cursor", "limit", "format"}, exclude_none=True)
        return {name: str(value) for name, value in values.items()}


_DATETIME_INPUT: Final = {"type": "datetime-local"}
_FILTERS: Final = FormSpec(
    AuditQuery,
    {
        "q": Control("Action contains", placeholder="template.change", attributes={"type": "search"}),
        "kind": Control("Kind of object"),
        "user_id": Control("Person"),
        "text": Control(
            "Details contain", type="text", placeholder="a name or a seed", attributes={"type": "search"}
        ),
        "key_id": Control("API key"),
        "project_id": Control("Project"),
        "object_id": Control("Object ID"),
        "address": Control("Address"),
        "since": Control("From (UTC)", attributes=_DATETIME_INPUT),
        "until": Control("Until (UTC)", attributes=_DATETIME_INPUT),
        "rows_min": Control("Rows, at least"),
        "rows_max": Control("Rows, at most"),
        "action": Control("Action is"),
    },
)
_MAIN_FILTERS: Final = ("q", "kind", "user_id", "text")
"""Filters that are always visible."""


def _filters(query: AuditQuery, context: Mapping[str, Any], error: ApiError | None = None) -> dict[str, Any]:
    """Return the form of the filters as `form`, and its controls as `first` and `more`."""
    data = query.model_dump(exclude_none=True)
    for name in ("since", "until"):
        if name in data:
            data[name] = f"{data[name]:%Y-%m-%dT%H:%M}"
    sent = request.args if error is not None else None
    choices: dict[str, Choices] = {}
    for name, key in (
        ("kind", "kinds"),
        ("user_id", "people"),
        ("key_id", "keys"),
        ("project_id", "projects"),
    ):
        listed = [("", "any"), *((str(value), str(text)) for value, text in context[key])]
        chosen = (sent or data).get(name)
        choices[name] = [*listed, *([(chosen, chosen)] if chosen and chosen not in dict(listed) else [])]
    without = [] if query.action or (sent and sent.get("action")) else ["action"]
    form = _FILTERS.render(data, sent=sent, error=error, id="f-", choices=choices, without=without)
    return {
        "form": form,
        "first": [field for field in form if field.name in _MAIN_FILTERS],
        "more": [field for field in form if field.name not in _MAIN_FILTERS],
    }


def _error_page(actor: Actor, error: ApiError) -> Response:
    """Return the page with the errors of invalid filters, and without entries."""
    data: dict[str, Any] = {
        "items": [],
        "next_cursor": None,
        "total": 0,
        "total_exact": True,
        "searched_until": None,
    }
    query, context = AuditQuery(), _page_context(actor, [])
    return reply(data, template="audit.html", query=query, **context, **_filters(query, context, error))


class SealsQuery(Query):
    """A page of the seals."""

    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=limits.PAGE_LIMIT_MAX)] = limits.PAGE_LIMIT_DEFAULT


class AuditOut(Output):
    """An audit entry."""

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
    """A seal. `hash` is the start of the next seal; if `removed_at` is set, its entries have been removed."""

    number: int
    count: int
    first_id: str
    last_id: str
    last_at: Time
    previous: str
    hash: str
    sealed_at: Time
    removed_at: OptionalTime


@route(
    bp,
    "/audit",
    scope="admin",
    query=AuditQuery,
    returns=ListOf(AuditOut),
    produces=[JSON_LINES],
    on_fault=_error_page,
)
def index(actor: Actor, query: AuditQuery) -> Response:
    """List the audit log.

    Filters are combined with "and". Filters without an index (`text`, `q`, rows, a second filter) search only the
    newest 20,000 entries that match the other filters. If a page is incomplete because of this, it has
    `searched_until` and a cursor with which the search continues. `total` is exact if `total_exact` is true;
    otherwise it is a lower bound.
    """
    if query.format == "jsonl" or JSON_LINES in request.headers.get("Accept", ""):
        headers = {"Content-Disposition": 'attachment; filename="audit.jsonl"'}
        batches = search.iter_entries(actor.workspace_id, query.filters)
        lines = (b"".join(orjson.dumps(AuditOut.from_row(row)) + b"\n" for row in rows) for rows in batches)
        return Response(lines, mimetype=JSON_LINES, headers=headers)
    found = search.page(actor, query.filters, query.cursor, query.limit)
    items = [AuditOut.from_row(item) for item in found.items]
    data = {
        "items": items,
        "next_cursor": found.next_cursor,
        "total": found.total,
        "total_exact": found.total_exact,
        "searched_until": clock.to_text(found.searched_until),
    }
    context = _page_context(actor, items) if g.face == "person" else {}
    if context:
        context |= _filters(query, context)
    return reply(data, template="audit.html", query=query, **context)


def _page_context(actor: Actor, items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the page shows in addition to the entries: names, filter choices, and the last seal."""
    newest = tenancy.listing(actor, AuditSeal, project=False).order_by(AuditSeal.number.desc()).limit(1)
    days = audit_seals.retention_days(db.session.get_one(Workspace, actor.workspace_id))
    choices = search.choices(actor)
    names = {**dict(choices["people"]), **search.names(actor.workspace_id, items)}
    return {"names": names, "seal": db.session.scalar(newest), "kept": days, **choices}


@route(bp, "/audit/seals", scope="admin", query=SealsQuery, returns=ListOf(SealOut))
def seals(actor: Actor, query: SealsQuery) -> Response:
    """List the seals of the audit log, newest first.

    Store `number` and `hash` of the newest one elsewhere from time to time: `./rowsmith audit verify --head`
    checks whether the log still contains it.
    """
    found = pagination.paginate(
        tenancy.listing(actor, AuditSeal, project=False),
        name="audit_seals",
        id_column=AuditSeal.number,
        cursor=query.cursor,
        limit=query.limit,
        context=actor.workspace_id,
    )
    return reply(found.as_dict(SealOut.from_row))

"""Pushes: rows that a worker sends to a connection."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from flask import Blueprint, Response, g, url_for
from pydantic import Field

from webapp import clock, limits, pagination
from webapp.access.actors import Actor
from webapp.errors import TARGET_ERRORS, ApiError, Fault
from webapp.extensions import db
from webapp.pushes.models import Push
from webapp.pushes.responses import BadRowsOut, DryRunOut, PlanOut, PushOut, RowOut
from webapp.pushes.schemas import DatasetPushInput, PushInput, RetryInput, SendingInput, UndoInput
from webapp.pushes.services import completion, preparation, pushes, retries
from webapp.pushes.services.ledger import read
from webapp.pushes.services.preparation import PreparedPush
from webapp.pushes.views import presentation
from webapp.web import events
from webapp.web.inputs import ListQuery, Query, merge_faults
from webapp.web.responses import ListOf, check_if_match, reply, see_other
from webapp.web.routing import route
from webapp.work import log_lines
from webapp.work.log_lines import LogLines

bp = Blueprint("pushes", __name__)

ERRORS = (*TARGET_ERRORS, "read_only_connection", "row_limit_exceeded", "quota_exceeded", "leak_found")

# Routes that queue a push; those of the second kind show with `dry_run` what would be sent.
_queueing_route = partial(route, methods=["POST"], scope="push", returns=PushOut, status=201, idempotent=True)
push_route = partial(_queueing_route, other_responses={200: DryRunOut}, errors=ERRORS)
_repeat_route = partial(_queueing_route, errors=(*ERRORS, "conflict"))


class PushQuery(ListQuery):
    """Which pushes. `q` searches targets; `of_id` finds the retries and undos of a push."""

    template_id: str | None = None
    dataset_id: str | None = None
    connection_id: str | None = None
    of_id: str | None = None
    status: str | None = None


class RowQuery(Query):
    """Which rows of a push, and whether with their values."""

    state: Literal["delivered", "failed", "unknown", "undone"] | None = None
    table: str | None = None
    values: bool = False
    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=limits.PAGE_LIMIT_MAX)] = limits.PAGE_LIMIT_DEFAULT


class LogQuery(Query):
    """Whether to keep the response open for further lines, as server-sent events."""

    follow: bool = False


def _add_template_faults(actor: Actor, error: ApiError, body: Any, template_id: str) -> ApiError:
    return merge_faults(
        error,
        body,
        PushInput,
        lambda ask: preparation.prepare_template(actor, template_id, ask, keep=False).faults(),
    )


def _add_dataset_faults(actor: Actor, error: ApiError, body: Any, dataset_id: str) -> ApiError:
    return merge_faults(
        error,
        body,
        DatasetPushInput,
        lambda ask: preparation.prepare_dataset(actor, dataset_id, ask).faults(),
    )


def add_retry_faults(actor: Actor, error: ApiError, body: Any, push_id: str) -> ApiError:
    """Return the error of a retry's body together with what is wrong with the rest of it. Errors: see
    `merge_faults`."""

    def check(ask: RetryInput) -> list[Fault]:
        retries.prepare_retry_tables(actor, push_id, ask)
        return []

    return merge_faults(error, body, RetryInput, check)


def queue_or_dry_run(
    actor: Actor, body: SendingInput, prepare: Callable[[], PreparedPush], action: str
) -> Response:
    """A push, or what it would send."""
    prepared = prepare()
    if body.dry_run:
        return reply(pushes.dry_run(prepared))
    return created_response(pushes.queue(actor, prepared, action))


def created_response(push: Push) -> Response:
    """Respond to the client that created the push."""
    where = url_for("pushes.show", push_id=push.id)
    return reply(pushes.as_json(push), status=201, redirect_to=where, headers={"Location": where})


@push_route(bp, "/templates/<template_id>/push", body=PushInput, more_faults=_add_template_faults)
def create(actor: Actor, template_id: str, body: PushInput) -> Response:
    """Send rows of a template in the background; with `dry_run`, return what would be sent and what does not fit."""
    return queue_or_dry_run(
        actor,
        body,
        lambda: preparation.prepare_template(actor, template_id, body, keep=not body.dry_run),
        "template.push",
    )


@route(
    bp,
    "/templates/<template_id>/push/plan",
    ["POST"],
    scope="push",
    body=PushInput,
    returns=PlanOut,
    reads=True,
    errors=ERRORS,
    more_faults=_add_template_faults,
)
def plan(actor: Actor, template_id: str, body: PushInput) -> Response:
    """Return the mapping of fields to columns, how it was found, and what may not fit. Nothing is sent."""
    dry_run = body.model_copy(update={"dry_run": True})
    return reply(pushes.plan(preparation.prepare_template(actor, template_id, dry_run, keep=False)))


@push_route(bp, "/datasets/<dataset_id>/push", body=DatasetPushInput, more_faults=_add_dataset_faults)
def create_of_dataset(actor: Actor, dataset_id: str, body: DatasetPushInput) -> Response:
    """Send all tables of a dataset in the background, parents first.

    Keys that the target generates are passed to the child rows.
    """
    return queue_or_dry_run(
        actor, body, lambda: preparation.prepare_dataset(actor, dataset_id, body), "dataset.push"
    )


@route(
    bp,
    "/datasets/<dataset_id>/push/plan",
    ["POST"],
    scope="push",
    body=DatasetPushInput,
    returns=PlanOut,
    reads=True,
    errors=ERRORS,
    more_faults=_add_dataset_faults,
)
def plan_of_dataset(actor: Actor, dataset_id: str, body: DatasetPushInput) -> Response:
    """Return the same as the plan of a template's push, for each table in the order of sending."""
    dry_run = body.model_copy(update={"dry_run": True})
    return reply(pushes.plan(preparation.prepare_dataset(actor, dataset_id, dry_run)))


@route(bp, "/pushes", scope="read", query=PushQuery, returns=ListOf(PushOut))
def index(actor: Actor, query: PushQuery) -> Response:
    """List the pushes of the project, newest first."""
    if g.face == "person":
        of = query.of_id or query.template_id or query.dataset_id or query.connection_id
        return see_other(url_for("activity.index", kind="push", q=query.q, of=of, days=0))
    page = pushes.listing(actor, **query.model_dump())
    return reply(page.as_dict(pushes.as_json))


@route(bp, "/pushes/<push_id>", scope="read", returns=PushOut)
def show(actor: Actor, push_id: str) -> Response:
    """Read a push."""
    lines = presentation.last_log_lines(push_id)
    push = pushes.get(actor, push_id)
    data = pushes.as_json(push)
    shown = presentation.context(actor, push, data, lines)
    return reply(data, template="pushes/show.html", block="work", send_etag=True, **shown)


@route(
    bp,
    "/pushes/<push_id>",
    ["DELETE"],
    scope="push",
    returns=PushOut,
    errors=("run_finished", "version_conflict"),
)
def cancel(actor: Actor, push_id: str) -> Response:
    """Cancel a push that has not finished. Committed rows stay."""
    push = pushes.get(actor, push_id, "push", lock=True)
    check_if_match(pushes.as_json(push))
    return reply(
        pushes.as_json(pushes.cancel(actor, push)), redirect_to=url_for("pushes.show", push_id=push_id)
    )


@route(
    bp,
    "/pushes/<push_id>/rows",
    scope="read",
    query=RowQuery,
    returns=ListOf(RowOut),
    errors=("validation_error", "unavailable"),
)
def rows(actor: Actor, push_id: str, query: RowQuery) -> Response:
    """List the outcome of each row, in the order of tables and rows;

    `values` includes the generated values, without sensitive ones.
    """
    push = pushes.get(actor, push_id)
    table_index = pushes.find_table_index(push, query.table)
    context = f"{push.id} {query.state} {table_index}"
    after = pagination.decode_cursor("push_rows", context, query.cursor) if query.cursor else [0, 0]
    found = read.rows(
        push.id, state=query.state, table=table_index, after=(after[0], after[1]), limit=query.limit + 1
    )
    ends, more = found[: query.limit], len(found) > query.limit
    items = [entry.as_json(push.tables) for entry in ends]
    if query.values:
        for item, values in zip(items, pushes.row_values(push, ends), strict=True):
            item["values"] = values
    cursor = pagination.encode_cursor("push_rows", context, [ends[-1].table, ends[-1].row]) if more else None
    total = read.count_rows(push, query.state)
    data = {"items": items, "next_cursor": cursor, "total": total}
    return reply(data, template="pushes/rows.html", block="rows", push=pushes.as_json(push), query=query)


@route(
    bp,
    "/pushes/<push_id>/logs",
    scope="read",
    query=LogQuery,
    produces=("text/plain", "text/event-stream"),
)
def logs(actor: Actor, push_id: str, query: LogQuery) -> Response:
    """Get the push's log as text, or with `follow` as server-sent events.

    The IDs of the events are the line numbers. The stream ends when the push finishes.
    """
    push = pushes.get(actor, push_id)
    db.session.remove()
    if query.follow:
        return events.follow_log(_Followed(push.id))
    text, after = "", 0
    while lines := read.log_lines(push.id, after, limits.PUSH_LINES):
        text += "".join(f"{clock.to_text(line.at)} {line.text}\n" for line in lines)
        after = lines[-1].number
    return Response(
        log_lines.escape_control_sequences(text), mimetype="text/plain"
    )  # errors of a target can contain any text


class _Followed:
    """A push as `log_hub` reads it."""

    channel = None

    def __init__(self, push_id: str) -> None:
        self.key = push_id

    def read_lines(self, after: int) -> list[LogLines]:
        """The next lines above a number."""
        found = read.log_lines(self.key, after)
        # Server-sent events: each line of a text with several lines gets its own data line.
        texts = ["\ndata: ".join(line.text.splitlines() or [""]) for line in found]
        return [LogLines(found[0].number, found[-1].number, texts)] if found else []

    def read_state(self) -> read.PushState | None:
        """Its state."""
        return read.state(self.key)

    def last_line_number(self, _state: events.JobState) -> int:
        """Its state contains no line number."""
        return 0


@route(bp, "/pushes/<push_id>/bad", scope="read", returns=BadRowsOut, errors=("unavailable",))
def bad(actor: Actor, push_id: str) -> Response:
    """Get the outcome of a push's injected invalid rows that have been processed.

    `taken` are rows that the target should have rejected; `good_refused` are rows that it should have
    accepted.
    """
    return reply(completion.invalid_rows_report(pushes.get(actor, push_id)))


@route(bp, "/pushes/<push_id>/events", scope="read", produces=("text/event-stream",))
def follow(actor: Actor, push_id: str) -> Response:
    """Follow a push's counts as server-sent events, until it finishes."""
    pushes.get(actor, push_id)
    db.session.remove()
    return events.follow_progress(lambda: read.state(push_id))


@_repeat_route(bp, "/pushes/<push_id>/retry", body=RetryInput, more_faults=add_retry_faults)
def retry(actor: Actor, push_id: str, body: RetryInput) -> Response:
    """Send the rows that did not arrive again.

    Also continues with rows that were never sent. Another mapping or fixed values can repair the rows.
    """
    return created_response(retries.retry(actor, push_id, body))


@_repeat_route(bp, "/pushes/<push_id>/undo", body=UndoInput)
def undo(actor: Actor, push_id: str, body: UndoInput) -> Response:
    """Delete the delivered rows by their keys, children first."""
    return created_response(retries.undo(actor, pushes.get(actor, push_id, "push"), body))

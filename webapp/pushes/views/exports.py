"""Rows to a target in one call, for programs: always a push, which small ones are waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response

from webapp import limits
from webapp.access.actors import Actor
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.pushes.schemas import ExportDbInput, ExportInput, ExportRestInput
from webapp.pushes.services import preparation, pushes
from webapp.pushes.services.ledger import read
from webapp.pushes.services.preparation import PreparedPush
from webapp.pushes.views.pushes import created_response, push_route
from webapp.web.inputs import merge_faults
from webapp.web.responses import reply

bp = Blueprint("exports_at_once", __name__)


def prepare(actor: Actor, body: ExportInput) -> PreparedPush:
    """Prepare a push of the rows in the request, or of rows of a template. Errors as of
    `preparation.prepare_template`."""
    if isinstance(body, ExportDbInput):
        body = body.model_copy(update={"target": body.table or body.target})
    ask = pushes.template_push_input(actor, body)
    if ask is None:
        return preparation.prepare_rows(actor, body)
    assert body.template_id is not None
    return preparation.prepare_template(
        actor, body.template_id, ask, keep=not body.dry_run, path="template_id"
    )


def _more_faults(model: type[ExportInput]) -> Callable[[Actor, ApiError, Any], ApiError]:
    """Return a function that adds further errors of a body with a valid structure."""
    return lambda actor, error, submitted: merge_faults(
        error, submitted, model, lambda body: prepare(actor, body).faults()
    )


@push_route(bp, "/export/db", body=ExportDbInput, more_faults=_more_faults(ExportDbInput))
def to_database(actor: Actor, body: ExportDbInput) -> Response:
    """Send given rows, or rows of a template, to a table.

    With up to 1,000 rows, the response is sent after they have been delivered.
    """
    return _send(actor, body)


@push_route(bp, "/export/rest", body=ExportRestInput, more_faults=_more_faults(ExportRestInput))
def to_endpoint(actor: Actor, body: ExportRestInput) -> Response:
    """Send given rows, or rows of a template, over HTTP.

    With up to 1,000 rows, the response is sent after they have been delivered.
    """
    return _send(actor, body)


def _send(actor: Actor, body: ExportInput) -> Response:
    planned = prepare(actor, body)
    if body.dry_run:
        return reply(pushes.dry_run(planned))
    push_id, total = planned.push_id, planned.total
    pushes.queue(actor, planned, "push.create" if body.rows is not None else "template.push")
    if total <= limits.EXPORT_DB_WAIT_ROWS:
        wait_until_finished(push_id)
    return created_response(pushes.get(actor, push_id))


def wait_until_finished(push_id: str) -> None:
    """Wait until a worker has finished the push, at most EXPORT_DB_WAIT_SECONDS, without holding a database session."""
    db.session.remove()
    until = time.monotonic() + limits.EXPORT_DB_WAIT_SECONDS
    while (state := read.state(push_id)) is not None and not state.is_final and time.monotonic() < until:
        time.sleep(limits.EXPORT_DB_POLL_SECONDS)

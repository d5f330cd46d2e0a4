"""Pushes send rows to a connection in a worker: create, dry-run, follow and cancel them.

A push stores its request and its pinned versions, so every worker generates the same rows. `request` is `{ask, quota}`:
the body as accepted, and the number of rows charged for it. The outcome of each row is in the ledger (`ledger`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import numpy as np

from webapp import clock, limits, pagination, quotas
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.audit.services import audit_log
from webapp.connections.services import inspection
from webapp.connectors.base import Session
from webapp.connectors.http.channel import Channel, RowBatch
from webapp.engine import processor_time
from webapp.errors import ApiError, ErrorCollector, Fault, did_you_mean
from webapp.extensions import db, redis_client
from webapp.generation.services import pins
from webapp.metering import stored_json
from webapp.pushes.models import Push
from webapp.pushes.schemas import ExportDbInput, ExportInput, PushInput
from webapp.pushes.services import completion, planning, targets, value_checks
from webapp.pushes.services import rows as pushes_rows
from webapp.pushes.services.ledger import read
from webapp.pushes.services.planning import TablePlan
from webapp.pushes.services.preparation import NoControl, PreparedPush
from webapp.row_templates.models import Template
from webapp.work import jobs_queue


def dry_run_requests(prepared: PreparedPush) -> dict[str, Any]:
    """Return `{requests, misfits, checked_rows, tables}`, with the HTTP requests of the first three rows of each table,
    credentials masked. Nothing is sent to the target. Errors: those of connections."""
    found, checked, tables = [], 0, []
    with targets.open_channel(prepared.destination) as channel:
        for table_index, table in enumerate(prepared.tables):
            sent = preview_requests(prepared.push_id, channel, table_index, table)
            mismatches, count = value_checks.check(
                table, table.rows(table_index), None, prepared.targets, prepared.connection.type
            )
            found += mismatches
            checked += count
            table_names = {"name": table.spec["name"], "target": table.spec["target"]}
            tables.append({**table_names, "statements": None, "requests": sent})
    return {
        "statements": None,
        "requests": [text for table in tables for text in table["requests"]],
        "misfits": [item.as_json() for item in found],
        "checked_rows": checked,
        "tables": tables,
    }


def preview_requests(push_id: str, channel: Channel, table_index: int, table_plan: TablePlan) -> list[str]:
    """Return the HTTP requests for the first three rows of a table, as a push with that id would send them."""
    rows = table_plan.rows(table_index)
    row_indexes = np.arange(rows.offset, rows.offset + min(limits.PREVIEW_ROWS, rows.count), dtype=np.uint64)
    numbers = list(range(1, len(row_indexes) + 1))
    key_prefix = f"{table_index}." if table_index else ""
    keys = [f"{push_id}-{key_prefix}{number}" for number in numbers]
    batch = rows.batch(row_indexes, value_checks.PlaceholderKeys())
    return channel.create_sender(rows.write_spec(channel), NoControl()).requests(
        RowBatch(batch, numbers, keys)
    )


# --- Pushes -------------------------------------------------------------------------------------------------

KIND: Final = "push"


def as_json(push: Push) -> dict[str, Any]:
    """Return a push as the API shows it. `tables` are in the order of sending; `progress` has the points of the rate
    chart."""
    first = push.tables[0]
    return {
        "id": push.id,
        "kind": push.kind,
        "of_id": push.of_id,
        "status": push.status,
        "counts": read.counts(push),
        "connection_id": push.connection_id,
        "endpoint_id": push.endpoint_id,
        "template_id": push.template_id,
        "template_version": push.template_version,
        "dataset_id": push.dataset_id,
        "dataset_version": push.dataset_version,
        "target": push.target,
        "mode": first["mode"],
        "tables": [_table_json(table) for table in push.tables],
        "skipped": push.request.get("skipped", []),
        "seed": push.pins["seed"],
        "now": push.pins["now"],
        "offset": first["offset"],
        "attempt": push.attempt,
        "progress": read.progress(push),
        "pins": pins.pins_as_json(push.pins),
        "request": {key: value for key, value in push.request["ask"].items() if key != "rows" or value},
        "leaks": push.leaks,
        "waiting": read.waiting_details(push.status, push.retry_at, push.waiting),
        "error": push.error,
        "project_id": push.project_id,
        "team_id": push.team_id,
        "created_by": push.created_by,
        "created_at": clock.to_text(push.created_at),
        "started_at": clock.to_text(push.started_at),
        "finished_at": clock.to_text(push.finished_at),
        "cancel_requested_at": clock.to_text(push.cancel_requested_at),
    }


def _table_json(table: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": table["name"],
        "template_id": table["template_id"],
        "template_version": table["version"],
        "target": table["target"],
        "count": table["count"],
        "note": table.get("note", ""),
        "offset": table["offset"],
        "mode": table["mode"],
        "key_columns": table["key_columns"],
        "columns": [
            {"column": each["column"], "field": each.get("field"), "formula": each.get("formula")}
            for each in table["columns"]
        ],
        "from_parent": {name: parent["table"] for name, parent in table["from_parent"].items()},
        "create": table["create"],
    }


# --- Creating a push --------------------------------------------------------------------------------------------


def _keep_undo_columns(prepared: PreparedPush) -> None:
    """Keep the columns by which an undo finds rows without a key only for tables that are empty: in others it could
    delete rows that this push did not send."""
    keyless = [
        table.spec
        for table in prepared.tables
        if not table.spec["key_columns"] and table.spec.get("undo_columns")
    ]
    row_counts: dict[str, int] = {}
    if keyless:
        with suppress(ApiError):
            names = [item["target"] for item in keyless]
            row_counts = inspection.count_rows(prepared.connection, names, limits.UNDO_COUNT_SECONDS)
    for item in keyless:
        if row_counts.get(item["target"]) != 0:
            del item["undo_columns"]


def queue(
    actor: Actor,
    prepared: PreparedPush,
    action: str,
    *,
    claim: Callable[[Push], None] | None = None,
    **columns: Any,
) -> Push:
    """Charge the rows of a push, save it with its audit entry, notify a worker and commit. `columns` are further
    columns of its row; `claim` is called in the transaction that saves it, and can end it with an exception.

    Errors: validation_error, row_limit_exceeded, quota_exceeded.
    """
    prepared.check()
    _check_first_rows(prepared)
    _keep_undo_columns(prepared)
    ask = prepared.body.model_dump(mode="json", exclude={"rows"} if prepared.uploaded_rows else None)
    ask["canary"] = getattr(prepared.body, "canary_rows", None)
    records = prepared.nested_record_count
    stored_json.reserve(actor, ask, prepared.pins)
    reservation = quotas.reserve_rows(actor, prepared.total + records, largest=prepared.largest_table_count)
    try:
        if prepared.uploaded_rows is not None:
            pushes_rows.store_rows(*prepared.uploaded_rows)
        push = Push(
            id=prepared.push_id,
            workspace_id=actor.workspace_id,
            connection_id=prepared.connection.id,
            endpoint_id=prepared.destination.endpoint.id if prepared.destination.endpoint else None,
            target=prepared.target[: limits.MAX_NAME_CHARS],
            total=prepared.total,
            tables=[table.spec for table in prepared.tables],
            request={
                "ask": ask,
                "records": records,
                "skipped": prepared.skipped,
                "quota": {"rows": reservation.rows, "second": reservation.second},
            },
            pins=prepared.pins,
            created_by=actor.user_id,
            key_id=actor.key_id,
            **{**prepared.push_columns, **columns},
        )
        db.session.add(push)
        db.session.flush()
        if claim is not None:
            claim(push)
        details = {
            "push": push.id,
            "connection": prepared.connection.id,
            "target": push.target,
            **prepared.audit_details,
        }
        details |= quotas.preview_records_details(records)
        audit_log.record(actor, action, prepared.audit_object, join=True, rows=push.total, **details)
        jobs_queue.enqueue_after_commit(db.session, redis_client(), KIND, push.id)
        db.session.commit()
    except BaseException:
        db.session.rollback()
        quotas.return_rows(reservation, reservation.rows)
        raise
    return push


def _check_first_rows(prepared: PreparedPush) -> None:
    """Generate one row of each table and discard it, so that errors are reported here and not by a worker."""
    for table_index, table in enumerate(prepared.tables):
        rows = table.rows(table_index)
        first = np.arange(rows.offset, rows.offset + min(1, rows.count), dtype=np.uint64)
        with processor_time.table_budget():
            rows.batch(first, value_checks.PlaceholderKeys())


# --- Checking before sending ------------------------------------------------------------------------------------


def plan(prepared: PreparedPush) -> dict[str, Any]:
    """Return the mapping of each table for display: the source of every column, and values that may not fit. Errors of
    the mapping are part of the result."""
    tables = []
    for table in prepared.tables:
        mismatches: dict[str, list[dict[str, Any]]] = {}
        for mismatch in value_checks.schema_mismatches(table):
            mismatches.setdefault(mismatch.column, []).append(mismatch.as_json())
        cells = [
            {
                **cell.as_json(),
                "misfits": mismatches.get(cell.column.name, []),
                "from_parent": table.spec["from_parent"].get(cell.column.name, {}).get("table"),
            }
            for cell in table.mapped.column_mappings
        ]
        tables.append(
            {
                "name": table.spec["name"],
                "target": table.spec["target"],
                "create": table.spec["create"],
                "mode": table.spec["mode"],
                "count": table.spec["count"],
                "note": table.spec.get("note", ""),
                "key_columns": table.spec["key_columns"],
                "capture": table.spec["capture"],
                "later": table.spec["later"],
                "unchecked": table.spec["unchecked"],
                "columns": cells,
                "fields": [
                    {
                        "name": each.name,
                        "type": str(each.dtype),
                        "label": each.label,
                        "sensitive": each.sensitive,
                    }
                    for each in table.request.maker.fields.values()
                    if not each.hidden
                ],
                "unused": table.mapped.unused,
                "faults": [fault.as_dict() for fault in table.faults],
            }
        )
    environment = prepared.connection.environment
    return {
        "connection_id": prepared.connection.id,
        "needs_confirmation": prepared.connection.name if environment == "prod" else None,
        "modes": list(prepared.can.modes),
        "create_table": prepared.can.create_table,
        "statements": prepared.can.sql,
        "total": prepared.total,
        "tables": tables,
        "skipped": prepared.skipped,
    }


def dry_run(prepared: PreparedPush) -> dict[str, Any]:
    """Return `{statements, misfits, checked_rows, tables}`: the statements of the first three rows of each table, and
    the values of the first rows that do not fit. Charges no rows and changes nothing at the target.

    Errors: validation_error with every fault of the mapping, those of connections.
    """
    prepared.check()
    db.session.remove()
    if prepared.can.by_row:
        return dry_run_requests(prepared)
    found, checked = [], 0
    tables: list[dict[str, Any]] = []
    with targets.open_session(prepared.connection) as session:
        for table_index, table in enumerate(prepared.tables):
            rows = table.rows(table_index)
            statements = _statements(table, rows, session)
            sent = [each for each in prepared.targets if each != table.spec["target"]]
            mismatches, count = value_checks.check(table, rows, session, sent, prepared.connection.type)
            found += mismatches
            checked += count
            tables.append(
                {"name": rows.name, "target": rows.target, "statements": statements, "requests": None}
            )
    return {
        "statements": [text for table in tables for text in table["statements"]],
        "requests": None,
        "misfits": [item.as_json() for item in found],
        "checked_rows": checked,
        "tables": tables,
    }


def _statements(table_plan: planning.TablePlan, rows: pushes_rows.TableRows, session: Session) -> list[str]:
    row_indexes = np.arange(rows.offset, rows.offset + min(limits.PREVIEW_ROWS, rows.count), dtype=np.uint64)
    if not table_plan.spec["create"]:
        target = session.target(rows.write_spec(session))
        return list(target.statements(rows.batch(row_indexes, value_checks.PlaceholderKeys())))
    columns, keys = rows.new_columns
    create_statement = session.create_statement(rows.target, columns, keys)
    writing = planning.new_table_write_spec(table_plan)
    return [
        create_statement,
        *session.target(writing).statements(rows.batch(row_indexes, value_checks.PlaceholderKeys())),
    ]


# --- Reading pushes ---------------------------------------------------------------------------------------------


def get(actor: Actor, push_id: str, scope: str = "read", *, lock: bool = False) -> Push:
    """Return a push. Errors: not_found, forbidden."""
    return tenancy.get(actor, Push, push_id, scope, lock=lock)


def listing(
    actor: Actor,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    q: str | None = None,
    template_id: str | None = None,
    dataset_id: str | None = None,
    connection_id: str | None = None,
    of_id: str | None = None,
    status: str | None = None,
) -> pagination.Page[Push]:
    """Return a page of the project's pushes, newest first. `q` searches targets."""
    filters = {
        "template_id": template_id,
        "dataset_id": dataset_id,
        "connection_id": connection_id,
        "of_id": of_id,
        "status": status,
    }
    statement = tenancy.listing(actor, Push)
    for name, value in filters.items():
        if value is not None:
            statement = statement.where(getattr(Push, name) == value)
    return pagination.paginate(
        statement,
        name="pushes",
        id_column=Push.id,
        cursor=cursor,
        limit=limit,
        search=(q, Push.target),
        context=f"{actor.project_id} {sorted(filters.items(), key=str)}",
        sizes=(Push.request, Push.pins, Push.tables, Push.leaks, Push.progress),
    )


def is_waiting(push: Push) -> bool:
    """Return whether a push waits for its target without a worker."""
    return push.status == "running" and push.retry_at is not None and push.lease_owner is None


def find_table_index(push: Push, name: str | None) -> int | None:
    """Return the position of a table by its name; None for no name. Error: invalid_request."""
    if name is None:
        return None
    names = [table["name"] for table in push.tables]
    if name not in names:
        message = f'This push has no table "{name[:100]}".'
        raise ApiError("invalid_request", message, {"hint": did_you_mean(name, names), "tables": names})
    return names.index(name)


def row_values(push: Push, results: list[read.RowResult]) -> list[dict[str, Any]]:
    """Return the values of some rows, generated again; keys generated by the target are null, sensitive values
    redacted."""
    tables = pushes_rows.load_tables(push)
    values_by_row: dict[tuple[int, int], dict[str, Any]] = {}
    for table_index in {item.table for item in results}:
        numbers = [item.row for item in results if item.table == table_index]
        rows = np.array(numbers, np.uint64) - np.uint64(1) + np.uint64(tables[table_index].first_row)
        objects = tables[table_index].masked_objects(rows, value_checks.PlaceholderKeys())
        values_by_row |= {
            (table_index, number): values for number, values in zip(numbers, objects, strict=True)
        }
    return [values_by_row[item.table, item.row] for item in results]


def cancel(actor: Actor, push: Push) -> Push:
    """Cancel a locked push; commits. A queued push ends immediately, a running push when its worker checks next. Error:
    run_finished for a push that has already ended."""
    if push.has_ended:
        raise ApiError("run_finished", "This push has already finished.", {"status": push.status})
    if push.cancel_requested_at is None:
        push.cancel_requested_at = clock.now()
        counts: dict[str, Any] = {**read.counts(push)}
        audit_log.record(actor, "push.cancel", push, join=True, **counts)
    if push.status == "queued" or is_waiting(push):
        push.status, push.finished_at, push.epoch = "cancelled", clock.now(), push.epoch + 1
    db.session.commit()
    completion.settle(push.id)
    return push


def template_push_input(actor: Actor, body: ExportInput) -> PushInput | None:
    """Prepare the push of a template for `/export/db` or `/export/rest`; None if the request contains rows. Error:
    validation_error, including errors of the destination."""
    faults = []
    if (body.rows is None) == (body.template_id is None):
        faults.append(Fault("rows", "missing", "Specify either rows or a template_id."))
    table = body.table if isinstance(body, ExportDbInput) else None
    if table is not None and body.target is not None and table != body.target:
        faults.append(
            Fault("table", "contradiction", "table and target are different. Specify only one of them.")
        )
    if isinstance(body, ExportDbInput) and table is None and body.target is None and body.rows is not None:
        faults.append(Fault("table", "missing", "table is required when rows is given."))
    if body.rows is not None and not body.rows:
        faults.append(Fault("rows", "too_short", "rows must contain at least one row."))
    if faults:
        gathered = ErrorCollector()
        gathered.add(faults)
        if body.template_id is not None:
            with gathered.check("template_id"):
                tenancy.get(actor, Template, body.template_id, "push")
        targets.resolve_destination(actor, body, gathered)
        gathered.raise_all()
    if body.rows is not None:
        return None
    settings = body.model_dump(exclude={"rows", "table", "template_id"}, exclude_unset=True)
    return PushInput(**{**settings, "target": table or body.target})

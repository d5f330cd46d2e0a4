"""Pushes: planned with a dry run, stored as a plan, and sent unchanged after the user has agreed."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from rowsmith import error
from rowsmith_mcp.limits import PAGE
from rowsmith_mcp.plans import Kind, Plan, Unknown
from rowsmith_mcp.registry import Registry, Work
from rowsmith_mcp.shapes import Listing, Planned, Push
from rowsmith_mcp.tools.parts import Cursor, Limit, Overrides, PushId, Seed, given, known, lean, listing, some

registry = Registry()
WHOLE = (
    "id", "status", "counts", "target", "mode", "connection_id", "endpoint_id", "template_id", "template_version",
    "dataset_id", "seed", "error", "created_at", "finished_at",
)  # fmt: skip
BRIEF = (
    "id",
    "status",
    "counts",
    "target",
    "connection_id",
    "endpoint_id",
    "template_id",
    "dataset_id",
    "created_at",
)
ROW = ("table", "row", "state", "attempts", "status_code", "code", "column", "message", "key")
COLUMN = ("column", "state", "field", "type", "nullable", "key", "skipped")
Name = dict[str, str | None]
NO_PLAN = (
    "There is no such plan: it does not exist, belongs to another key, or has expired. Create one with plan_push and "
    "show it to the user."
)


@registry.reads("Plan a push", outside=True, writing=True)
def plan_push(
    work: Work,
    template_id: Annotated[str, Field(
        description="ID of the template (tpl_...) whose rows are sent; or use dataset_id.")] = "",
    dataset_id: Annotated[str, Field(
        description="ID of the dataset (dst_...): all its tables, parents first.")] = "",
    connection_id: Annotated[str, Field(
        description="ID of the target connection (con_...); or use endpoint_id.")] = "",
    endpoint_id: Annotated[str, Field(description="ID of the endpoint (end_...): one request per row.")] = "",
    target: Annotated[
        str, Field(description="Table, entity set or path. Not for a dataset or endpoint.")
    ] = "",
    count: Annotated[
        int | None, Field(ge=1, description="Number of rows. Default: the template's quantity.")
    ] = None,
    seed: Seed = "",
    mapping: Annotated[
        Name | None, Field(description="{field: column, or null to leave it out}. Default: by name.")
    ] = None,
    mode: Literal["insert", "upsert", "update"] = "insert",
    key_columns: Annotated[list[str] | None, Field(description="For upsert and update.")] = None,
    create_table: Annotated[bool, Field(description="Create the table if it does not exist.")] = False,
    on_error: Literal["continue", "stop", "stop_when_all_fail"] = "continue",
    overrides: Overrides = None,
    target_by_table: Annotated[Name | None, Field(description="For a dataset: {table: target}.")] = None,
) -> Planned:
    """Dry run: return what a push would send for the first rows, possible problems, and a plan ID. Nothing is
    sent.

    Show the user the target, the number of rows and the problems. When they agree, call `push` with the plan
    ID. The plan is valid for ten minutes and is sent exactly as reviewed.
    """
    if bool(template_id) == bool(dataset_id):
        raise ToolError("Pass either template_id or dataset_id.")
    kind: Kind = "template" if template_id else "dataset"
    common = {
        **given(connection_id=connection_id, endpoint_id=endpoint_id),
        "seed": seed or secrets.token_hex(8),  # the reviewed rows are the ones that will be sent
        "mode": mode,
        "on_error": on_error,
        **given(create_table=create_table or None),
    }
    if kind == "template":
        more = given(
            target=target, count=count, mapping=mapping, key_columns=key_columns, overrides=overrides
        )
    else:
        _only_templates(
            target=target, count=count, mapping=mapping, key_columns=key_columns, overrides=overrides
        )
        more = given(targets=target_by_table)
    request = {**common, **more}
    return _create_plan(work, kind, template_id or dataset_id, request)


@registry.makes("Plan to fill a database")
def plan_fill(
    work: Work,
    connection_id: Annotated[str, Field(description="ID of a connection (con_...) to a database.")],
    rows: Annotated[int, Field(ge=1, description="Rows for each table.")] = 1_000,
    tables: Annotated[
        list[str] | None, Field(description="Names from get_connection_metadata. Default: all tables.")
    ] = None,
    row_counts: Annotated[
        Literal["equal", "proportional", "existing"],
        Field(description="The same number for each table, in proportion to their rows, or as many as they have."),
    ] = "equal",
    existing: Annotated[
        Literal["add", "use"],
        Field(description="Tables that have rows: add rows, or leave them and use their rows as parents."),
    ] = "add",
    seed: Seed = "",
) -> Planned:
    """Create templates for all tables of a database and a dataset of them, and return the plan of a push that fills
    the tables. No row is sent.

    Show the user the tables, the numbers of rows and the skipped tables. When they agree, call `push` with the plan
    ID.
    """
    result: Any = work.api.connections.fill(
        connection_id,
        dry_run=True,
        rows=rows,
        row_counts=row_counts,
        existing=existing,
        seed=seed or secrets.token_hex(8),
        **given(tables=tables),
    )
    request = {
        "connection_id": connection_id,
        "seed": result["seed"],
        "mode": "insert",
        "on_error": "continue",
        "targets": {table["table"]: table["table"] for table in result["tables"]},
        "skip_faulty_tables": True,
    }
    planned = _create_plan(work, "dataset", result["dataset_id"], request)
    return {**planned, "skipped": [lean(table) for table in result["skipped"]]}


@registry.changes("Execute a planned push", outside=True, idempotent=True)
def push(
    work: Work,
    plan_id: Annotated[str, Field(description="From plan_push or plan_fill.")],
    confirm: Annotated[bool, Field(description="true: the user saw the plan and agreed.")],
    connection_name: Annotated[
        str, Field(description="For a production connection: its name, as typed by the user.")
    ] = "",
) -> Push:
    """Send the rows of a plan, exactly as planned. Ask the user first; nothing else counts as agreement.

    Returns immediately; follow the push with get_push. Calling it twice with the same plan results in one
    push.
    """
    try:
        plan = work.context.plans.find(work.context.owner, plan_id)
    except Unknown:
        raise ToolError(NO_PLAN) from None
    if not confirm:
        raise ToolError("Nothing was sent. Show the user the plan; confirm=true says that they agreed.")
    if plan.confirm and connection_name != plan.confirm:
        message = "Ask the user for its name and pass it as connection_name."
        raise ToolError(f"Nothing was sent. This plan goes to a production connection: {message}")
    return some(_start_push(work, plan), WHOLE)  # type: ignore[return-value]


@registry.reads("List pushes")
def list_pushes(
    work: Work,
    template_id: str = "",
    connection_id: str = "",
    status: Literal["", "queued", "running", "completed", "failed", "cancelled", "timed_out"] = "",
    cursor: Cursor = "",
    limit: Limit = PAGE,
) -> Listing:
    """List the pushes of the project, newest first, with their counts."""
    query = given(template_id=template_id, connection_id=connection_id, status=status)
    return listing(work, "/pushes", BRIEF, cursor=cursor, limit=limit, **query)


@registry.reads("Status of a push")
def get_push(work: Work, push_id: PushId) -> Push:
    """Return a push with its counts: total, delivered, failed, unknown, pending. For failed rows, use
    list_push_rows."""
    return some(work.api.pushes.get(push_id), WHOLE)  # type: ignore[return-value]


@registry.reads("Rows of a push")
def list_push_rows(
    work: Work,
    push_id: PushId,
    state: Annotated[
        Literal["failed", "unknown", "delivered", "pending", "undone"], Field(
            description="Status of the rows.")
    ] = "failed",
    cursor: Cursor = "",
    limit: Limit = PAGE,
) -> Listing:
    """List rows of a push with a status, with the target's reason: row number, code, column, message."""
    path = f"/pushes/{known(push_id, 'psh')}/rows"
    return listing(work, path, ROW, cursor=cursor, limit=limit, state=state)


@registry.changes("Cancel a push", outside=True, idempotent=True)
def cancel_push(work: Work, push_id: PushId) -> Push:
    """Stop a queued or running push. Delivered rows stay."""
    return some(work.api.pushes.cancel(push_id), WHOLE)  # type: ignore[return-value]


def _only_templates(**arguments: Any) -> None:
    wrong = sorted(given(**arguments))
    if wrong:
        raise ToolError(f"A dataset defines {', '.join(wrong)} itself: leave that out.")


def _create_plan(work: Work, kind: Kind, of_id: str, request: dict[str, Any]) -> Planned:
    source: Any = work.api.templates if kind == "template" else work.api.datasets
    version = source.get(of_id)["version"]
    if kind == "template":
        dry = source.dry_run(of_id, **request)
    else:
        body = {**request, "dry_run": True}
        dry = work.api.request("POST", f"/datasets/{known(of_id, 'dst')}/push", json=body)
    mapped = source.push_plan(of_id, **request)
    production = mapped.get("needs_confirmation")
    plan = work.context.plans.keep(work.context.owner, kind, of_id, version, request, production or "")
    tables = [
        {**some(table, ("name", "target", "create", "mode", "count", "key_columns", "unused", "faults")),
         "columns": [lean(some(column, COLUMN)) for column in table["columns"]]}
        for table in mapped["tables"]
    ]  # fmt: skip
    what = " and ".join(f"{table['count']} rows to {table['target']}" for table in mapped["tables"])
    return {
        "plan_id": plan.id,
        "expires_in_seconds": int(work.context.plans.seconds),
        "sends": f"{mapped['total']} rows ({request['mode']}): {what}",
        "rows": mapped["total"],
        "seed": request["seed"],
        "template_version": version,
        "production_connection": production,
        "tables": tables,
        "statements": [
            line for table in dry["tables"] for line in table.get("statements") or table.get("requests") or []
        ],
        "misfits": [lean(item) for item in dry["misfits"]],
        "skipped": [lean(item) for item in mapped["skipped"]],
    }


def _start_push(work: Work, plan: Plan) -> Any:
    """Start the push. The plan's ID is its Idempotency-Key, so a second call returns the first push."""
    source: Any = work.api.templates if plan.kind == "template" else work.api.datasets
    now = source.get(plan.of_id)["version"]
    if now != plan.version:
        message = "Plan it again, and show the user the new plan."
        raise ToolError(f"Nothing was sent: the {plan.kind} was changed since it was planned. {message}")
    request = {**plan.request, **given(confirm=plan.confirm)}
    try:
        return source.push(plan.of_id, idempotency_key=plan.id, **request)
    except error.ConnectionFailed as failure:
        message = "Call push again with the same plan ID. It is sent only once, however often you call it."
        raise ToolError(
            f"Rowsmith did not answer ({failure.code}), and the push may have begun. {message}"
        ) from None

"""Rows to a database or to an endpoint in one call, which waits for the push of the ordinary API.

Programs also send INSERT statements (`/export/db`). A statement with only named columns and literal values becomes a
push, like rows that are sent in any other way. So no statement is executed, and no permission for it is needed.
Statements with anything else (an expression, a subquery, a second statement) are rejected.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from http import HTTPStatus
from typing import Any, Final

from flask import Response

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.audit.services import audit_log
from webapp.compat.views.routing import ROOT, PassThroughInput, call
from webapp.connections.models import Connection
from webapp.connections.services import access, connections
from webapp.connectors.base import ConnectorError, Session
from webapp.connectors.reader_process import ReaderProcess
from webapp.endpoints import services as endpoints
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.pushes.schemas import ExportDbInput, ExportInput, ExportRestInput
from webapp.pushes.services import pushes, targets
from webapp.pushes.services.ledger import read
from webapp.pushes.views.exports import prepare, wait_until_finished
from webapp.web import inputs
from webapp.web.inputs import merge_faults
from webapp.web.responses import reply

_SPACE: Final = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*+"
_NAME: Final = r'(?:[^\W\d][\w$#]*|"(?:[^"]|"")+"|`[^`]+`|\[[^\]]+\])'
_WHITESPACE_AND_COMMENTS: Final = re.compile(_SPACE, re.DOTALL)
_INSERT_HEAD: Final = re.compile(
    rf"INSERT\s+INTO\s+(?P<table>{_NAME}(?:\.{_NAME}){{0,2}}){_SPACE}"
    rf"\((?P<columns>{_SPACE}{_NAME}(?:{_SPACE},{_SPACE}{_NAME})*{_SPACE})\){_SPACE}VALUES",
    re.IGNORECASE | re.DOTALL,
)
_NAMES: Final = re.compile(_NAME)
_VALUE: Final = re.compile(
    r"(?P<text>[nN]?'(?:[^']|'')*')|(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])|"
    r"(?P<word>NULL|TRUE|FALSE)(?!\w)",
    re.IGNORECASE,
)
_BLANK: Final = frozenset(" \t\r\n\f\v-/")
_FRACTION: Final = re.compile(r"[.eE]")
_LITERALS: Final = {"NULL": None, "TRUE": True, "FALSE": False}


@dataclass(frozen=True, slots=True)
class Insert:
    """The rows of a plain INSERT, and the table they go into."""

    table: str
    rows: list[dict[str, Any]]


def statement_keyword(statement: str) -> str:
    """Return the kind of a statement, its first keyword: `SELECT`. Empty if it does not begin with a word."""
    start = _WHITESPACE_AND_COMMENTS.match(statement)
    found = re.match(r"[A-Za-z]+", statement[start.end() if start else 0 :])
    return found[0].upper() if found else ""


def parse_insert(statement: str, *, escapes: bool) -> Insert | None:
    """Return the rows of a plain INSERT; None for any other statement. `escapes`: the target reads a backslash in a
    text as the beginning of an escape (MySQL), so a text with one is not plain."""
    position = _skip_space(statement, 0)
    head = _INSERT_HEAD.match(statement, position)
    if head is None:
        return None
    columns = [_unquoted(match[0]) for match in _NAMES.finditer(head["columns"])]
    table = ".".join(_unquoted(match[0]) for match in _NAMES.finditer(head["table"]))
    rows: list[dict[str, Any]] = []
    position = head.end()
    while True:
        found = _parse_row(statement, _skip_space(statement, position), escapes)
        if found is None or len(found[0]) != len(columns):
            return None
        rows.append(dict(zip(columns, found[0], strict=True)))
        position = _skip_space(statement, found[1])
        if statement[position : position + 1] != ",":
            break
        position += 1
    if statement[position : position + 1] == ";":
        position = _skip_space(statement, position + 1)
    plain = position == len(statement) and len(set(columns)) == len(columns)
    return Insert(table, rows) if plain else None


def _parse_row(statement: str, position: int, escapes: bool) -> tuple[list[Any], int] | None:
    if statement[position : position + 1] != "(":
        return None
    values: list[Any] = []
    while True:
        position = _skip_space(statement, position + 1)
        found = _VALUE.match(statement, position)
        if found is None or (escapes and found["text"] and "\\" in found["text"]):
            return None
        if found["word"]:
            values.append(_LITERALS[found["word"].upper()])
        elif found["text"]:
            values.append(found["text"].lstrip("nN")[1:-1].replace("''", "'"))
        else:
            number = found["number"]
            values.append(float(number) if _FRACTION.search(number) else int(number))
        position = _skip_space(statement, found.end())
        separator = statement[position : position + 1]
        if separator == ")":
            return values, position + 1
        if separator != ",":
            return None


def _skip_space(statement: str, position: int) -> int:
    if statement[position : position + 1] not in _BLANK:  # most tokens are adjacent
        return position
    found = _WHITESPACE_AND_COMMENTS.match(statement, position)
    return found.end() if found else position


def _unquoted(name: str) -> str:
    if name[0] == '"':
        return name[1:-1].replace('""', '"')
    return name[1:-1] if name[0] in "`[" else name


# --- Routes -------------------------------------------------------------------------------------------------

_NOT_PLAIN_INSERT = (
    "Only admins can run statements. Other users can send rows: a plain INSERT with column names and literal values, "
    "or `table` and `rows`."
)
_RENAMED_KEYS = {"quantity": "count", "data": "rows", "payload": "rows", "table_name": "table"}


@call(f"{ROOT}/export/db", ["POST"], scope="push", body=PassThroughInput, idempotent=True)
def export_db(actor: Actor, body: PassThroughInput) -> Response:
    """Send rows to a table, or run a statement. The response is that of the hosted service's driver."""
    values = _native_push_values(body)
    if "query" not in values:
        return reply(_insert_result(_run_push(actor, _parse(actor, ExportDbInput, values))))
    statement = values.pop("query")
    found = tenancy.get(actor, Connection, str(values.get("connection_id") or ""), "push")
    if not isinstance(statement, str) or not statement.strip():
        raise validation_error([Fault("query", "missing", "Enter an SQL statement.")])
    plain = parse_insert(statement, escapes=found.type == "mysql")
    if plain is not None:
        # Every column that the statement names is written, also a key that a push by names leaves to the target.
        mapping = {column: column for column in plain.rows[0]}
        rows = {"table": plain.table, "rows": plain.rows}
        push_input = _parse(actor, ExportDbInput, {"on_error": "stop", "mapping": mapping, **values, **rows})
        return reply(_insert_result(_run_push(actor, push_input)))
    if statement_keyword(statement) in ("SELECT", "WITH"):
        return reply(_query_result(actor, found, statement))
    if not actor.can("admin"):
        raise ApiError("forbidden", _NOT_PLAIN_INSERT, actor.missing_permission("admin") or {})
    require_scope(actor, "admin")
    targets.require_writable(found)
    confirm = values.get("confirm")
    targets.require_confirmation(found, confirm if isinstance(confirm, str) else None)
    command = statement_keyword(statement)
    audit_log.record(actor, "connection.execute", found, join=True, command=command)
    db.session.commit()
    with _open_session(found) as session:
        session.execute(statement)
    return reply({"command": command, "rowCount": None, "rows": [], "fields": [], "oid": None})


@call(f"{ROOT}/export/rest", ["POST"], scope="push", body=PassThroughInput, idempotent=True)
def export_rest(actor: Actor, body: PassThroughInput) -> Response:
    """Send rows to an endpoint. The response has the form of the hosted service, and the push."""
    values = _native_push_values(body)
    push_input = _parse(actor, ExportRestInput, values)
    if push_input.endpoint_id is None and push_input.connection_id is None:
        hint = (
            "Create an endpoint (POST /endpoints) and send its id. Rows can only be sent to saved endpoints."
        )
        raise validation_error([Fault("endpointId", "missing", "This field is required.", hint)])
    push = _run_push(actor, push_input)
    found = read.rows(push["id"], limit=1)
    status = found[0].status_code if found and found[0].status_code else 200
    request: dict[str, Any] = {"method": "POST", "url": push_input.target or "", "headers": {}}
    if push_input.endpoint_id is not None:
        endpoint = endpoints.as_json(connections.get_endpoint(actor, push_input.endpoint_id, "push"))
        request |= {"method": endpoint["method"], "url": endpoint["url"] or endpoint["path"]}
    return reply(
        {
            "success": push["status"] == "completed",
            "request": request,
            "response": {
                "status": status, "statusText": HTTPStatus(status).phrase if status in _STATUS_CODES else "",
                "headers": {}, "body": None,
            },
            **_push_summary(push),
        }
    )  # fmt: skip


_STATUS_CODES = {status.value for status in HTTPStatus}


def _native_push_values(body: PassThroughInput) -> dict[str, Any]:
    values = body.native_values(**_RENAMED_KEYS)
    if isinstance(values.get("rows"), Mapping):
        values["rows"] = [values["rows"]]
    return {key: value for key, value in values.items() if key not in ("project_id", "team_id")}


def _parse(actor: Actor, model: type[ExportInput], values: dict[str, Any]) -> Any:
    """Return the request. Error: validation_error, with the errors of the rest of the push."""
    try:
        return inputs.parse(model, values)
    except ApiError as error:
        raise merge_faults(
            error, values, model, lambda push_input: prepare(actor, push_input).faults()
        ) from None


def _run_push(actor: Actor, push_input: ExportInput) -> dict[str, Any]:
    """Run the requested push; it may be unfinished after `EXPORT_DB_WAIT_SECONDS`. Error: target_failed with the first
    rows that did not arrive."""
    planned = prepare(actor, push_input)
    push_id = planned.push_id
    pushes.queue(actor, planned, "push.create" if push_input.rows is not None else "template.push")
    wait_until_finished(push_id)
    push = pushes.as_json(pushes.get(actor, push_id, "push"))
    bad = push["counts"]["failed"] + push["counts"]["unknown"]
    if bad or push["status"] in ("failed", "cancelled", "timed_out"):
        failed = [
            *read.rows(push_id, state="failed", limit=10),
            *read.rows(push_id, state="unknown", limit=10),
        ]
        rows = [item.as_json(push["tables"]) for item in failed]
        reason = rows[0]["message"] if rows else (push["error"] or {}).get("message", "The push failed.")
        details = {"push_id": push_id, "status": push["status"], "counts": push["counts"], "rows": rows}
        raise ApiError("target_failed", f"{bad or 'The'} rows did not arrive: {reason}", details)
    return push


def _push_summary(push: dict[str, Any]) -> dict[str, Any]:
    return {"pushId": push["id"], "status": push["status"], "counts": push["counts"]}


def _insert_result(push: dict[str, Any]) -> dict[str, Any]:
    return {
        "command": "INSERT", "rowCount": push["counts"]["delivered"], "rows": [], "fields": [], "oid": None,
        **_push_summary(push),
    }  # fmt: skip


# --- Statements ---------------------------------------------------------------------------------------------


def _query_result(actor: Actor, connection: Connection, statement: str) -> dict[str, Any]:
    """Return the rows of a read-only query."""
    audit_log.record(actor, "connection.query", connection, join=True)
    db.session.commit()
    limit = limits.FETCHED_ROWS
    with _open_session(connection) as session:
        batch = session.query(statement, {}, limit + 1)
    if batch.num_rows > limit:
        text = f"The query returns more than {limit:,} rows."
        raise ApiError(
            "target_failed", text, {"reason": "too_large", "hint": "Change it so that it returns fewer rows."}
        )
    rows = [{name: _json_value(value) for name, value in row.items()} for row in batch.to_pylist()]
    # Of the columns' types only the driver of one database knows more: the numbers of "nothing known".
    unknown = {"tableID": 0, "columnID": 0, "dataTypeID": 0, "dataTypeSize": -1, "dataTypeModifier": -1}
    fields = [{"name": name, **unknown, "format": "text"} for name in batch.schema.names]
    return {"command": "SELECT", "rowCount": len(rows), "rows": rows, "fields": fields, "oid": None}


@contextmanager
def _open_session(connection: Connection) -> Iterator[ReaderProcess | Session]:
    """Open the database of a connection. Its errors are raised as errors of the API, with secrets redacted."""
    redact = access.create_connector_and_redactor(connection)[1]
    try:
        with access.open_reader(connection, limits.TARGET_QUERY_SECONDS) as session:
            yield session
    except ConnectorError as error:
        error.message = redact(error.message)
        raise access.api_error(error) from None


def _json_value(value: Any) -> Any:
    """Return a value of a database as a JSON value."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value

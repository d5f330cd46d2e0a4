"""Inspect a target in a child process, so that a driver that hangs does not block the caller.

The child is forked from a server process that has already imported the driver (`webapp.fork_server`). It reads one
request as JSON from a socket (secrets are neither in its arguments nor in its environment) and writes lines of JSON:
its process id, `{"part": ...}` for each part of the answer, then `{"done": true}` or `{"error": {...}}`. It is killed
at the time limit; parts that it wrote before are used. It ends with the process that asks, and an alarm ends it if that
process cannot. Each process runs only a few children at the same time; further requests wait.
"""

from __future__ import annotations

import base64
import importlib
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final, NoReturn

import orjson
import pyarrow as pa

from webapp import limits
from webapp.connectors.base import STAGES, Connector, ConnectorError, Session
from webapp.connectors.http.channel import HttpConnector
from webapp.connectors.http.tokens import ParentToken, StoredToken, TokenAuth, TokenStore
from webapp.connectors.metadata_json import stage_to_json, to_json
from webapp.connectors.schema import Entity
from webapp.fork_server import ForkServer, die_with_parent, serve
from webapp.net.gate import Gate
from webapp.net.session import open_session

_slots = threading.BoundedSemaphore(limits.CHILD_PROCESSES)
server: Final = ForkServer("webapp.connectors.driver_process")


def stages(connector: Connector, seconds: float) -> list[dict[str, Any]]:
    """Verify a connection, and return the stages as JSON, up to the first that failed.

    A stage that exceeds the remaining time counts as failed. Never raises ConnectorError.
    """
    began = time.monotonic()
    results, error = _run_operation("stages", connector, seconds)
    if error is not None and all(result["ok"] for result in results):
        last = STAGES.index(results[-1]["name"]) + 1 if results else 0
        spent = round((time.monotonic() - began) * 1000) - sum(result["ms"] for result in results)
        results.append(
            {"name": STAGES[min(last, len(STAGES) - 1)], "ok": False, "code": error.reason,
             "message": error.message, "hint": error.hint, "ms": max(spent, 0), "response": None}
        )  # fmt: skip
    return results


def metadata(connector: Connector, seconds: float) -> dict[str, Any]:
    """Return the target's metadata, as `metadata_json.to_json` formats it. Raises ConnectorError."""
    parts, error = _run_operation("metadata", connector, seconds)
    if error is not None:
        raise error
    known: dict[str, Any] = parts[0]
    return known


def samples(
    connector: Connector, tables: Sequence[str], rows: int, seconds: float
) -> dict[str, pa.RecordBatch]:
    """Return the first rows of tables by table name, for those that could be read within the time limit.

    Raises ConnectorError if the connection itself failed.
    """
    parts, error = _run_operation("samples", connector, seconds, tables=list(tables), rows=rows)
    if error is not None and not parts:
        raise error
    batches = {}
    for part in parts:
        if part["name"] is not None:
            with pa.ipc.open_stream(base64.b64decode(part["rows"])) as stream:
                batches[part["name"]] = stream.read_next_batch()
    return batches


def counts(connector: Connector, tables: Sequence[str], seconds: float) -> dict[str, int]:
    """Return the numbers of rows of tables by table name, for those that could be counted within the time limit.

    Raises ConnectorError if the connection itself failed.
    """
    parts, error = _run_operation("counts", connector, seconds, tables=list(tables))
    if error is not None and not parts:
        raise error
    return {part["name"]: part["count"] for part in parts if part["name"] is not None}


def existing_values(
    connector: Connector, columns: Mapping[str, Mapping[str, Sequence[str]]], max_values: int, seconds: float
) -> dict[str, dict[str, Any]]:
    """Return what columns of tables contain, by table name, for those that could be read within the time limit.

    `columns` are by table `{"highest": names of integer columns, "values": names}`. The result has the same form:
    `highest` the highest integer by column (None: no row has one), `values` the first `max_values` values in their
    order. Raises ConnectorError if the connection itself failed.
    """
    tables = {table: {kind: list(names) for kind, names in kinds.items()} for table, kinds in columns.items()}
    parts, error = _run_operation("existing", connector, seconds, tables=tables, most=max_values)
    if error is not None and not parts:
        raise error
    return {part["name"]: part for part in parts if part["name"] is not None}


def _run_operation(
    operation: str, connector: Connector, seconds: float, **arguments: Any
) -> tuple[list[Any], ConnectorError | None]:
    """Run a child, and return the parts of its answer and the error that interrupted it, if any."""
    document = connector.document if isinstance(connector, HttpConnector) else None
    request = {
        "question": operation,
        **describe(connector),
        "seconds": seconds,
        "document": base64.b64encode(document).decode() if document is not None else None,
        **arguments,
    }
    credentials = connector.token_credentials if isinstance(connector, HttpConnector) else None
    auth: TokenAuth | None = None
    if credentials is not None:  # the token is fetched here, because tokens are shared between processes
        auth = credentials.requests_auth(open_session(connector.gate, verify_tls=connector.settings.trust))
        request["token"] = asdict(auth.get_stored_token())
    module = type(connector).__module__
    if not isinstance(connector, HttpConnector):
        module = f"{module.rpartition('.')[0]}.session"  # its import brings the driver
    if not _slots.acquire(timeout=limits.CHILD_QUEUE_SECONDS):
        return [], ConnectorError(
            "Too many connections are being inspected at the moment.",
            reason="busy",
            hint="Try again.",
            transient=True,
        )
    try:
        output, timed_out = _run_child(orjson.dumps(request), module, seconds)
    finally:
        _slots.release()
    if auth is not None:
        try:
            last_line = orjson.loads(output.splitlines()[-1])
        except (IndexError, orjson.JSONDecodeError):
            last_line = {}  # the child was killed
        if "token" in last_line:  # the one that the child used last; none if the target rejected it
            auth.save_returned_token(StoredToken(**last_line["token"]) if last_line["token"] else None)
    return _parse_output(output, timed_out, seconds)


def describe(connector: Connector) -> dict[str, Any]:
    """Return a description from which `create_connector` creates the same connector in a child process."""
    return {
        "kind": connector.kind,
        "settings": connector.settings.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "folder": connector.folder,
        "read_only": connector.read_only,
        "networks": [str(network) for network in connector.gate.allowed],
        "secrets": {name: list(entries) for name, entries in connector.gate.secrets.items()},
    }


def _run_child(request: bytes, module: str, seconds: float) -> tuple[bytes, bool]:
    """Run a child with a request, and return its output and whether the time limit was exceeded."""
    parent_socket, child_socket = socket.socketpair()
    with parent_socket:
        with child_socket:
            if not server.fork(module, [child_socket.fileno()]):
                return b"", False
        until = time.monotonic() + seconds
        output, child = bytearray(), 0
        try:
            parent_socket.settimeout(seconds)
            parent_socket.sendall(request)
            parent_socket.shutdown(socket.SHUT_WR)
            while (remaining := until - time.monotonic()) > 0:
                parent_socket.settimeout(remaining)
                data = parent_socket.recv(limits.MB)
                output += data
                if not child and b"\n" in output:
                    child = int(output[: output.index(b"\n")])
                if not data:
                    break
            timed_out = remaining <= 0
        except TimeoutError:
            timed_out = True
        except ConnectionError:  # the child was killed
            timed_out = False
        if timed_out and child:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
    return bytes(output).partition(b"\n")[2], timed_out


def _parse_output(output: bytes, timed_out: bool, seconds: float) -> tuple[list[Any], ConnectorError | None]:
    parts: list[Any] = []
    for line in output.splitlines():
        try:
            message = orjson.loads(line)
        except orjson.JSONDecodeError:
            break  # killed while it was writing a line
        if "done" in message:
            return parts, None
        if "error" in message:
            return parts, ConnectorError(message["error"].pop("message"), **message["error"])
        parts.append(message["part"])
    if timed_out:
        text = f"The target did not respond within {seconds:g} s."
        hint = "Check that the server is running and that no firewall blocks the connection."
        return parts, ConnectorError(text, code="target_timeout", reason="timeout", hint=hint, transient=True)
    text, hint = (
        "The driver process stopped without responding.",
        "Try again. If it happens again, the driver does not support this server.",
    )
    return parts, ConnectorError(text, reason="driver_failed", hint=hint)


# --- In the child -------------------------------------------------------------------------------------------


def create_connector(request: Mapping[str, Any]) -> Connector:
    """Create the connector of a request, in the child process."""
    from webapp.connectors import KINDS

    kind = KINDS[request["kind"]]
    settings = kind.Settings.model_validate_json(orjson.dumps(request["settings"]))
    return kind(
        settings, Gate(request["networks"], request["secrets"]), request["folder"], request["read_only"]
    )


def limit_memory() -> None:
    """Limit the memory of this process. A driver that exceeds the limit gets an error, or the process ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (limits.QUERY_MEMORY_BYTES,) * 2)


def handle_request(request: Mapping[str, Any], tokens: TokenStore) -> Iterator[Any]:
    """Yield the parts of the answer to a request. `tokens` has the OAuth token. Raises ConnectorError."""
    connector = create_connector(request)
    if not isinstance(connector, HttpConnector):
        limit_memory()
    if isinstance(connector, HttpConnector) and request["document"] is not None:
        connector.document = base64.b64decode(request["document"])
    if isinstance(connector, HttpConnector) and connector.token_credentials is not None:
        connector.token_credentials.share_tokens(tokens)
    if request["question"] == "stages":
        yield from (stage_to_json(stage) for stage in connector.stages())
        return
    with connector.open(min(request["seconds"], limits.TARGET_CONNECT_SECONDS)) as session:
        if request["question"] == "metadata":
            yield to_json(session.metadata())
            return
        if not isinstance(session, Session):
            return
        yield {"name": None}  # the connection is open
        many = len(request["tables"]) > _FEW_TABLES
        known = {item.name: item for item in session.metadata().entities} if many else {}
        for name in request["tables"]:
            try:
                entity = known.get(name) or session.entity(name)
                if entity is None:
                    continue
                if request["question"] == "counts":
                    yield {"name": name, "count": session.count(entity)}
                elif request["question"] == "existing":
                    yield {
                        "name": name,
                        **_existing(session, entity, request["tables"][name], request["most"]),
                    }
                else:
                    rows = session.sample(entity, request["rows"])
                    yield {"name": name, "rows": base64.b64encode(_to_ipc(rows)).decode()}
            except ConnectorError as error:
                if error.transient:
                    raise
                continue  # the account may not read this table


_FEW_TABLES: Final = 4  # chosen: the catalog of more tables is read as a whole, which takes as few queries


def _existing(
    session: Session, entity: Entity, columns: Mapping[str, Sequence[str]], limit: int
) -> dict[str, Any]:
    """Return what `existing_values` returns for a table."""
    highest = {column: session.max_value(entity, column) for column in columns["highest"]}
    values: dict[str, list[str]] = {}
    for column in columns["values"]:
        existing: list[Any] = []
        for batch in session.keys(entity, [column]):
            existing += batch.column(0).slice(0, limit - len(existing)).to_pylist()
            if len(existing) >= limit:
                break
        values[column] = [str(item) for item in existing if item is not None]
    return {"highest": highest, "values": values}


def _to_ipc(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def work(descriptor: int) -> NoReturn:
    """Read a request from a socket, write the answer to it, and exit."""
    die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # so that processes which a driver starts are killed with this one
    os.dup2(1, 2)  # what a driver prints is discarded: it may contain secrets
    try:
        with suppress(ConnectionError):  # the caller does not wait any longer
            _handle_request(socket.socket(fileno=descriptor))
    finally:
        os._exit(0)  # do not wait for threads of a driver; the caller reports a missing answer


def _handle_request(channel: socket.socket) -> None:
    channel.sendall(b"%d\n" % os.getpid())
    with channel.makefile("rb") as request:
        message = orjson.loads(request.read())
    # The kernel ends this process, because a driver may hold the interpreter lock.
    signal.setitimer(signal.ITIMER_REAL, message["seconds"] + limits.CHILD_GRACE_SECONDS)
    size = 0

    def say(line: Mapping[str, Any]) -> None:
        nonlocal size
        data = orjson.dumps(line) + b"\n"
        size += len(data)
        if size > limits.CHILD_RESPONSE_BYTES:
            mb = limits.CHILD_RESPONSE_BYTES // limits.MB
            raise ConnectorError(f"The target's response is larger than {mb:,} MB.", reason="too_large")
        channel.sendall(data)

    tokens = ParentToken(StoredToken(**message["token"]) if "token" in message else None)
    try:
        for part in handle_request(message, tokens):
            say({"part": part})
        last_line: dict[str, Any] = {"done": True}
    except MemoryError:
        mb = limits.QUERY_MEMORY_BYTES // limits.MB
        last_line = {
            "error": {"message": f"The response needs more than {mb:,} MB of memory.", "reason": "too_large"}
        }
    except ConnectorError as error:
        last_line = {"error": error.to_json()}
    size = 0
    say(last_line | {"token": asdict(tokens.entry) if tokens.entry else None})


if __name__ == "__main__":
    # Import the module by name, so that classes have the same identity everywhere.
    serve(socket.socket(fileno=0), importlib.import_module("webapp.connectors.driver_process").work)

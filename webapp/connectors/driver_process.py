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

_turns = threading.BoundedSemaphore(limits.APART_AT_ONCE)
server: Final = ForkServer("webapp.connectors.driver_process")


def stages(connector: Connector, seconds: float) -> list[dict[str, Any]]:
    """Verify a connection, and return the stages as JSON, up to the first that failed.

    A stage that exceeds the remaining time counts as failed. Never raises ConnectorError.
    """
    began = time.monotonic()
    found, ended = _asked("stages", connector, seconds)
    if ended is not None and all(one["ok"] for one in found):
        last = STAGES.index(found[-1]["name"]) + 1 if found else 0
        spent = round((time.monotonic() - began) * 1000) - sum(one["ms"] for one in found)
        found.append(
            {"name": STAGES[min(last, len(STAGES) - 1)], "ok": False, "code": ended.reason,
             "message": ended.message, "hint": ended.hint, "ms": max(spent, 0), "response": None}
        )  # fmt: skip
    return found


def metadata(connector: Connector, seconds: float) -> dict[str, Any]:
    """Return the target's metadata, as `metadata_json.to_json` formats it. Raises ConnectorError."""
    found, ended = _asked("metadata", connector, seconds)
    if ended is not None:
        raise ended
    known: dict[str, Any] = found[0]
    return known


def samples(
    connector: Connector, tables: Sequence[str], rows: int, seconds: float
) -> dict[str, pa.RecordBatch]:
    """Return the first rows of tables by table name, for those that could be read within the time limit.

    Raises ConnectorError if the connection itself failed.
    """
    found, ended = _asked("samples", connector, seconds, tables=list(tables), rows=rows)
    if ended is not None and not found:
        raise ended
    out = {}
    for one in found:
        if one["name"] is not None:
            with pa.ipc.open_stream(base64.b64decode(one["rows"])) as stream:
                out[one["name"]] = stream.read_next_batch()
    return out


def counts(connector: Connector, tables: Sequence[str], seconds: float) -> dict[str, int]:
    """Return the numbers of rows of tables by table name, for those that could be counted within the time limit.

    Raises ConnectorError if the connection itself failed.
    """
    found, ended = _asked("counts", connector, seconds, tables=list(tables))
    if ended is not None and not found:
        raise ended
    return {one["name"]: one["count"] for one in found if one["name"] is not None}


def existing_values(
    connector: Connector, columns: Mapping[str, Mapping[str, Sequence[str]]], most: int, seconds: float
) -> dict[str, dict[str, Any]]:
    """Return what columns of tables contain, by table name, for those that could be read within the time limit.

    `columns` are by table `{"highest": names of integer columns, "values": names}`. The result has the same form:
    `highest` the highest integer by column (None: no row has one), `values` the first `most` values in their order.
    Raises ConnectorError if the connection itself failed.
    """
    asked = {
        table: {kind: list(names) for kind, names in wanted.items()} for table, wanted in columns.items()
    }
    found, ended = _asked("existing", connector, seconds, tables=asked, most=most)
    if ended is not None and not found:
        raise ended
    return {one["name"]: one for one in found if one["name"] is not None}


def _asked(
    question: str, connector: Connector, seconds: float, **more: Any
) -> tuple[list[Any], ConnectorError | None]:
    """Run a child, and return the parts of its answer and the error that interrupted it, if any."""
    document = connector.document if isinstance(connector, HttpConnector) else None
    asked = {
        "question": question,
        **described(connector),
        "seconds": seconds,
        "document": base64.b64encode(document).decode() if document is not None else None,
        **more,
    }
    credentials = connector.token_credentials if isinstance(connector, HttpConnector) else None
    auth: TokenAuth | None = None
    if credentials is not None:  # the token is fetched here, because tokens are shared between processes
        auth = credentials.requests_auth(open_session(connector.gate, verify_tls=connector.settings.trust))
        asked["token"] = asdict(auth.stored())
    module = type(connector).__module__
    if not isinstance(connector, HttpConnector):
        module = f"{module.rpartition('.')[0]}.session"  # its import brings the driver
    if not _turns.acquire(timeout=limits.APART_TURN_SECONDS):
        return [], ConnectorError(
            "Too many connections are being inspected at the moment.",
            reason="busy",
            hint="Try again.",
            transient=True,
        )
    try:
        said, late = _carried_out(orjson.dumps(asked), module, seconds)
    finally:
        _turns.release()
    if auth is not None:
        try:
            ended = orjson.loads(said.splitlines()[-1])
        except (IndexError, orjson.JSONDecodeError):
            ended = {}  # the child was killed
        if "token" in ended:  # the one that the child used last; none if the target rejected it
            auth.keep(StoredToken(**ended["token"]) if ended["token"] else None)
    return _read(said, late, seconds)


def described(connector: Connector) -> dict[str, Any]:
    """Return a description from which `connector_of` creates the same connector in a child process."""
    return {
        "kind": connector.kind,
        "settings": connector.settings.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "folder": connector.folder,
        "read_only": connector.read_only,
        "networks": [str(one) for one in connector.gate.allowed],
        "secrets": {name: list(entries) for name, entries in connector.gate.secrets.items()},
    }


def _carried_out(asked: bytes, module: str, seconds: float) -> tuple[bytes, bool]:
    """Run a child with a request, and return its output and whether the time limit was exceeded."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            if not server.ask(module, [theirs.fileno()]):
                return b"", False
        until = time.monotonic() + seconds
        said, child = bytearray(), 0
        try:
            ours.settimeout(seconds)
            ours.sendall(asked)
            ours.shutdown(socket.SHUT_WR)
            while (left := until - time.monotonic()) > 0:
                ours.settimeout(left)
                piece = ours.recv(limits.MB)
                said += piece
                if not child and b"\n" in said:
                    child = int(said[: said.index(b"\n")])
                if not piece:
                    break
            late = left <= 0
        except TimeoutError:
            late = True
        except ConnectionError:  # the child was killed
            late = False
        if late and child:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
    return bytes(said).partition(b"\n")[2], late


def _read(said: bytes, late: bool, seconds: float) -> tuple[list[Any], ConnectorError | None]:
    parts: list[Any] = []
    for line in said.splitlines():
        try:
            one = orjson.loads(line)
        except orjson.JSONDecodeError:
            break  # killed while it was writing a line
        if "done" in one:
            return parts, None
        if "error" in one:
            return parts, ConnectorError(one["error"].pop("message"), **one["error"])
        parts.append(one["part"])
    if late:
        text = f"The target did not answer within {seconds:g} s."
        hint = "Check that the server is running and that no firewall blocks the connection."
        return parts, ConnectorError(text, code="target_timeout", reason="timeout", hint=hint, transient=True)
    text, hint = (
        "The driver stopped without an answer.",
        "Try again. If it happens again, the driver does not support this server.",
    )
    return parts, ConnectorError(text, reason="driver_failed", hint=hint)


# --- In the child -------------------------------------------------------------------------------------------


def connector_of(asked: Mapping[str, Any]) -> Connector:
    """Create the connector that `describe` described."""
    from webapp.connectors import KINDS

    kind = KINDS[asked["kind"]]
    settings = kind.Settings.model_validate_json(orjson.dumps(asked["settings"]))
    return kind(settings, Gate(asked["networks"], asked["secrets"]), asked["folder"], asked["read_only"])


def limit_memory() -> None:
    """Limit the memory of this process. A driver that exceeds the limit gets an error, or the process ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (limits.QUERY_MEMORY_BYTES,) * 2)


def answered(asked: Mapping[str, Any], tokens: TokenStore) -> Iterator[Any]:
    """Yield the parts of the answer to a request. `tokens` has the OAuth token. Raises ConnectorError."""
    connector = connector_of(asked)
    if not isinstance(connector, HttpConnector):
        limit_memory()
    if isinstance(connector, HttpConnector) and asked["document"] is not None:
        connector.document = base64.b64decode(asked["document"])
    if isinstance(connector, HttpConnector) and connector.token_credentials is not None:
        connector.token_credentials.share_tokens(tokens)
    if asked["question"] == "stages":
        yield from (stage_to_json(stage) for stage in connector.stages())
        return
    with connector.open(min(asked["seconds"], limits.TARGET_CONNECT_SECONDS)) as session:
        if asked["question"] == "metadata":
            yield to_json(session.metadata())
            return
        if not isinstance(session, Session):
            return
        yield {"name": None}  # the connection is open
        many = len(asked["tables"]) > _FEW_TABLES
        known = {one.name: one for one in session.metadata().entities} if many else {}
        for name in asked["tables"]:
            try:
                entity = known.get(name) or session.entity(name)
                if entity is None:
                    continue
                if asked["question"] == "counts":
                    yield {"name": name, "count": session.count(entity)}
                elif asked["question"] == "existing":
                    yield {"name": name, **_existing(session, entity, asked["tables"][name], asked["most"])}
                else:
                    rows = session.sample(entity, asked["rows"])
                    yield {"name": name, "rows": base64.b64encode(_packed(rows)).decode()}
            except ConnectorError as error:
                if error.transient:
                    raise
                continue  # the account may not read this table


_FEW_TABLES: Final = 4  # chosen: the catalog of more tables is read as a whole, which takes as few queries


def _existing(
    session: Session, entity: Entity, wanted: Mapping[str, Sequence[str]], most: int
) -> dict[str, Any]:
    """What `existing_values` returns for a table."""
    highest = {column: session.highest(entity, column) for column in wanted["highest"]}
    values: dict[str, list[str]] = {}
    for column in wanted["values"]:
        found: list[Any] = []
        for batch in session.keys(entity, [column]):
            found += batch.column(0).slice(0, most - len(found)).to_pylist()
            if len(found) >= most:
                break
        values[column] = [str(one) for one in found if one is not None]
    return {"highest": highest, "values": values}


def _packed(rows: pa.RecordBatch) -> bytes:
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
            _answer(socket.socket(fileno=descriptor))
    finally:
        os._exit(0)  # do not wait for threads of a driver; the caller reports a missing answer


def _answer(channel: socket.socket) -> None:
    channel.sendall(b"%d\n" % os.getpid())
    with channel.makefile("rb") as request:
        asked = orjson.loads(request.read())
    # The kernel ends this process, because a driver may hold the interpreter lock.
    signal.setitimer(signal.ITIMER_REAL, asked["seconds"] + limits.APART_GRACE_SECONDS)
    size = 0

    def say(line: Mapping[str, Any]) -> None:
        nonlocal size
        data = orjson.dumps(line) + b"\n"
        size += len(data)
        if size > limits.APART_ANSWER_BYTES:
            mb = limits.APART_ANSWER_BYTES // limits.MB
            raise ConnectorError(f"The target's answer is larger than {mb:,} MB.", reason="too_large")
        channel.sendall(data)

    tokens = ParentToken(StoredToken(**asked["token"]) if "token" in asked else None)
    try:
        for part in answered(asked, tokens):
            say({"part": part})
        ended: dict[str, Any] = {"done": True}
    except MemoryError:
        mb = limits.QUERY_MEMORY_BYTES // limits.MB
        ended = {
            "error": {"message": f"The answer needs more than {mb:,} MB of memory.", "reason": "too_large"}
        }
    except ConnectorError as error:
        ended = {"error": error.to_json()}
    size = 0
    say(ended | {"token": asdict(tokens.entry) if tokens.entry else None})


if __name__ == "__main__":
    # Import the module by name, so that classes have the same identity everywhere.
    serve(socket.socket(fileno=0), importlib.import_module("webapp.connectors.driver_process").work)

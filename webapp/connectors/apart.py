"""Asking a target from a process of its own, so that a driver that hangs holds nobody up.

A child, `python -m webapp.connectors.apart`, gets one question as JSON by its standard input (secrets are in neither
its arguments nor its environment) and answers by lines of JSON: `{"part": ...}` for each piece of the answer, then
`{"done": true}` or `{"error": {...}}`. After its time it is killed; what it said until then counts. It ends with the
process that asked, and the kernel ends it where neither it nor that process can. A few run at once in one process of
ours; more wait for their turn.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import orjson
import pyarrow as pa

from webapp import limits
from webapp.connectors.base import STAGES, Connector, ConnectorError, Session
from webapp.connectors.channel import HttpConnector
from webapp.connectors.http_token import HandedToken, StoredToken, TokenAuth, TokenStore
from webapp.connectors.wire import stage_to_json, to_json
from webapp.fork_server import SETTINGS
from webapp.net.gate import Gate
from webapp.net.session import open_session

_turns = threading.BoundedSemaphore(limits.APART_AT_ONCE)
# What the child gets of our environment: the way to Python, to libraries and to certificate authorities.
_PASSED_ON: Final = (
    "PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
_PR_SET_PDEATHSIG: Final = 1  # prctl(2)


def stages(connector: Connector, seconds: float) -> list[dict[str, Any]]:
    """Verify: the stages as JSON, ending with the first that failed. One that takes longer than the time left has
    failed. Never raises ConnectorError."""
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
    """What the target holds, as `wire.to_json` makes it. Raises ConnectorError."""
    found, ended = _asked("metadata", connector, seconds)
    if ended is not None:
        raise ended
    return found[0]


def samples(
    connector: Connector, tables: Sequence[str], rows: int, seconds: float
) -> dict[str, pa.RecordBatch]:
    """The first rows of some tables by their names, of as many as the time reaches and the account may read.
    Raises ConnectorError where there is not even a way to the target."""
    found, ended = _asked("samples", connector, seconds, tables=list(tables), rows=rows)
    if ended is not None and not found:
        raise ended
    out = {}
    for one in found:
        if one["name"] is not None:
            with pa.ipc.open_stream(base64.b64decode(one["rows"])) as stream:
                out[one["name"]] = stream.read_next_batch()
    return out


def _asked(
    question: str, connector: Connector, seconds: float, **more: Any
) -> tuple[list[Any], ConnectorError | None]:
    """The parts of an answer, and what ended it before it was whole."""
    asked = {
        "question": question,
        **described(connector),
        "seconds": seconds,
        "parent": os.getpid(),
        "document": _document(connector),
        **more,
    }
    auth = _token_auth(connector)
    if auth is not None:
        asked["token"] = asdict(auth.stored())
    if not _turns.acquire(timeout=limits.APART_TURN_SECONDS):
        return [], ConnectorError(
            "Too many targets are being asked at this moment.",
            reason="busy",
            hint="Try again.",
            transient=True,
        )
    try:
        said, late = _carried_out(orjson.dumps(asked), seconds)
    finally:
        _turns.release()
    if auth is not None:
        _keep_token(auth, said)
    return _read(said, late, seconds)


def described(connector: Connector) -> dict[str, Any]:
    """What `connector_of` makes the same connector of in a child process."""
    return {
        "kind": connector.kind,
        "settings": connector.settings.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "folder": connector.folder,
        "read_only": connector.read_only,
        "networks": [str(one) for one in connector.gate.allowed],
        "secrets": {name: list(entries) for name, entries in connector.gate.secrets.items()},
    }


def _token_auth(connector: Connector) -> TokenAuth | None:
    """The OAuth token that the child uses: it is fetched here, where it is shared with other processes."""
    credentials = connector.token_credentials if isinstance(connector, HttpConnector) else None
    if credentials is None:
        return None
    return credentials.on_wire(open_session(connector.gate, verify_tls=connector.settings.trust))


def _keep_token(auth: TokenAuth, said: bytes) -> None:
    """Keep the token that the child used last, or drop the one that the target rejected."""
    try:
        found = orjson.loads(said.splitlines()[-1])
    except (IndexError, orjson.JSONDecodeError):
        return  # the child was killed
    if "token" in found:
        auth.keep(StoredToken(**found["token"]) if found["token"] else None)


def _document(connector: Connector) -> str | None:
    found = connector.document if isinstance(connector, HttpConnector) else None
    return base64.b64encode(found).decode() if found is not None else None


def _carried_out(asked: bytes, seconds: float) -> tuple[bytes, bool]:
    """What a child says to a question, and whether its time was up."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    child = subprocess.Popen(
        [sys.executable, "-m", "webapp.connectors.apart"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=root,
        env={**{name: os.environ[name] for name in _PASSED_ON if name in os.environ}, **SETTINGS},
        start_new_session=True,
    )
    late = False
    try:
        return child.communicate(asked, timeout=seconds)[0], late
    except subprocess.TimeoutExpired:
        late = True
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    return child.communicate()[0], late


def _read(said: bytes, late: bool, seconds: float) -> tuple[list[Any], ConnectorError | None]:
    parts = []
    for line in said.splitlines():
        try:
            one = orjson.loads(line)
        except orjson.JSONDecodeError:
            break  # it was killed in the middle of a line
        if "done" in one:
            return parts, None
        if "error" in one:
            return parts, ConnectorError(one["error"].pop("message"), **one["error"])
        parts.append(one["part"])
    if late:
        text = f"The target did not answer within {seconds:g} s."
        hint = "Is the server up, and is there a firewall in between?"
        return parts, ConnectorError(text, code="target_timeout", reason="timeout", hint=hint, transient=True)
    text, hint = "The driver ended without an answer.", "If it stays so, the driver does not fit this server."
    return parts, ConnectorError(text, reason="driver_failed", hint=hint)


# --- In the child -------------------------------------------------------------------------------------------


def connector_of(asked: Mapping[str, Any]) -> Connector:
    """The connector that `described` describes."""
    from webapp.connectors import KINDS

    kind = KINDS[asked["kind"]]
    settings = kind.Settings.model_validate_json(orjson.dumps(asked["settings"]))
    return kind(settings, Gate(asked["networks"], asked["secrets"]), asked["folder"], asked["read_only"])


def limit_memory() -> None:
    """Limit the memory of this process. What a driver reserves beyond it raises an error, or ends the process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (limits.QUERY_MEMORY_BYTES,) * 2)


def error_to_json(error: ConnectorError) -> dict[str, Any]:
    """An error as the arguments that it is made of again."""
    return {
        name: getattr(error, name) for name in ("message", "code", "reason", "hint", "transient", "details")
    }


def answered(asked: Mapping[str, Any], tokens: TokenStore) -> Iterator[Any]:
    """The parts of what the child says to one question; `tokens` has the OAuth token. Raises ConnectorError."""
    connector = connector_of(asked)
    if not isinstance(connector, HttpConnector):
        limit_memory()
    if isinstance(connector, HttpConnector) and asked["document"] is not None:
        connector.document = base64.b64decode(asked["document"])
    if isinstance(connector, HttpConnector) and connector.token_credentials is not None:
        connector.token_credentials.share_tokens(tokens)
    if asked["question"] == "stages":
        yield from (stage_to_json(one) for one in connector.stages())
        return
    with connector.open(min(asked["seconds"], limits.TARGET_CONNECT_SECONDS)) as session:
        if asked["question"] == "metadata":
            yield to_json(session.metadata())
            return
        if not isinstance(session, Session):
            return
        yield {"name": None}  # the way is there
        for name in asked["tables"]:
            try:
                entity = session.entity(name)
                rows = session.sample(entity, asked["rows"]) if entity else None
            except ConnectorError as error:
                if error.transient:
                    raise
                continue  # a table that this account may not read
            if rows is not None:
                yield {"name": name, "rows": base64.b64encode(_packed(rows)).decode()}


def _packed(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return sink.getvalue().to_pybytes()


def main() -> None:
    """Read a question, write an answer."""
    asked = orjson.loads(sys.stdin.buffer.read())
    _bind(asked["parent"], asked["seconds"])
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a driver prints is no answer

    size = 0

    def say(line: Mapping[str, Any]) -> None:
        nonlocal size
        data = orjson.dumps(line) + b"\n"
        size += len(data)
        if size > limits.APART_ANSWER_BYTES:
            mb = limits.APART_ANSWER_BYTES // limits.MB
            raise ConnectorError(f"The answer of the target is larger than {mb:,} MB.", reason="too_large")
        out.write(data)
        out.flush()

    tokens = HandedToken(StoredToken(**asked["token"]) if "token" in asked else None)
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
        ended = {"error": error_to_json(error)}
    size = 0
    say(ended | {"token": asdict(tokens.entry) if tokens.entry else None})
    os._exit(0)  # a driver's threads are not waited for


def _bind(parent: int, seconds: float) -> None:
    """End with the process that asked, and a little after the time is up where that process is stopped: both are the
    kernel's to see to, for a driver may hold the interpreter."""
    signal.setitimer(signal.ITIMER_REAL, seconds + limits.APART_GRACE_SECONDS)
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)  # it went before the kernel was told


if __name__ == "__main__":
    main()

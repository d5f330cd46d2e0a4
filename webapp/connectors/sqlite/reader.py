"""Process that runs a user's query on a SQLite file.

SQLite runs inside the calling process, so a query could use up its memory or change state that all its
connections share (`PRAGMA hard_heap_limit`). This process runs one query, with limits on memory and files,
and exits. It is started by its path without site packages and uses only the standard library, so it starts in
about 20 ms.

It reads one request from standard input and writes frames to standard output: four bytes of length, then a
value in `marshal` format: `("names", [...])`, `("rows", [...])`, and finally `("end",)` or `("error", name,
message)`.
"""

from __future__ import annotations

import marshal
import resource
import signal
import sqlite3
import struct
import sys
import time
from collections.abc import Mapping
from typing import Any, BinaryIO, Final

# Statements that describe tables. All others are rejected: some affect every connection of the process, some
# reveal the path of the file, some write.
PRAGMAS: Final = frozenset(
    "application_id collation_list compile_options data_version encoding foreign_key_check "
    "foreign_key_list freelist_count function_list index_info index_list index_xinfo integrity_check "
    "page_count page_size quick_check schema_version table_info table_list table_xinfo user_version".split()
)
# Functions that access anything outside the database.
_FUNCTIONS: Final = frozenset({"load_extension", "fts3_tokenizer", "edit", "readfile", "writefile"})
# Tables that every connection has: this one shows the statements that the process itself has prepared.
_TABLES: Final = frozenset({"sqlite_stmt"})
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 20,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}


def authorize(action: int, first: Any, second: Any, *_: Any) -> int:
    """Decide about a part of a statement, as a callback of SQLite (sqlite3_set_authorizer)."""
    if action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA and str(first).lower() not in PRAGMAS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_READ and str(first).lower() in _TABLES:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and str(second).lower() in _FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def confine(connection: sqlite3.Connection, value_bytes: int) -> None:
    """Limit what a connection's statements may do, and the size of values."""
    for limit, value in {**_LIMITS, sqlite3.SQLITE_LIMIT_LENGTH: value_bytes}.items():
        connection.setlimit(limit, value)
    connection.set_authorizer(authorize)


_FRAME_BYTES: Final = 1_048_576


class TooLargeError(Exception):
    """A row or the whole result exceeds the caller's limit."""


def run(request: Mapping[str, Any], out: BinaryIO) -> None:
    """Run a request and write its frames."""
    resource.setrlimit(resource.RLIMIT_AS, (request["memory_bytes"],) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_bytes"],) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def say(*frame: Any) -> int:
        data = marshal.dumps(frame)
        if len(data) > request["row_bytes"]:
            raise TooLargeError(
                f"A row in the result is larger than {request['row_bytes'] // 1_048_576:,} MB."
            )
        out.write(struct.pack(">I", len(data)) + data)
        out.flush()
        return len(data)

    try:
        _query(request, say)
        say("end")
    except TooLargeError as error:
        say("error", "TOO_LARGE", str(error))
    except MemoryError:
        mb = request["memory_bytes"] // 1_048_576
        say("error", "TOO_LARGE", f"The query needs more than {mb:,} MB of memory.")
    except (sqlite3.Error, sqlite3.Warning) as error:
        name = getattr(error, "sqlite_errorname", None) or ""
        if name == "SQLITE_TOOBIG":
            mb = request["value_bytes"] // 1_048_576
            say("error", "TOO_LARGE", f"A value in the query is larger than {mb:,} MB.")
        else:
            say("error", name, str(error))


def _query(request: Mapping[str, Any], write_frame: Any) -> None:
    connection = sqlite3.connect(
        f"file:{request['path']}?mode=ro", uri=True, timeout=request["busy_seconds"], isolation_level=None
    )
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    confine(connection, request["value_bytes"])
    deadline = time.monotonic() + request["seconds"]

    def progress() -> bool:
        # One step of SQLite's machine is never interrupted: format('%.*c', 900000000, 'x') takes 20 s before it finds
        # its value too large. SIGPROF ends the process when a step takes more processor time than this.
        signal.setitimer(signal.ITIMER_PROF, request["step_seconds"])
        return bool(time.monotonic() > deadline)

    progress()
    connection.set_progress_handler(progress, request["steps"])
    cursor = connection.execute(request["statement"], request["values"])
    write_frame("names", [column[0] for column in cursor.description or ()])
    batch, total, remaining = 1, 0, request["rows"]
    while remaining is None or remaining > 0:
        rows = cursor.fetchmany(batch if remaining is None else min(batch, remaining))
        if not rows:
            return
        size = write_frame("rows", rows)
        total += size
        if remaining is not None:
            remaining -= len(rows)
            if total > request["answer_bytes"]:
                raise TooLargeError(f"The result is larger than {request['answer_bytes'] // 1_048_576:,} MB.")
        # Read as many rows as take about a megabyte: few large ones, or many small ones.
        batch = max(1, min(request["batch_rows"], 4 * batch, int(len(rows) * _FRAME_BYTES / size)))
        deadline = time.monotonic() + request["seconds"]  # the caller may have been slow to read


if __name__ == "__main__":
    run(marshal.loads(sys.stdin.buffer.read()), sys.stdout.buffer)  # noqa: S302 - from the process that started it

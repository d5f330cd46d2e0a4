"""What remains of a run: its log, its outputs, and its completion, whatever ended it.

A line is part of the log once it is in SQL. Redis only announces new lines, so emptying it loses nothing. Followers
resume (SSE) after the last line number they received.

The files in the output folder become files of the project under `outputs/<run id>/`. The folder was written by an
untrusted program. Only regular files are stored. Each is opened relative to the open folder, without following links;
the reason for every rejected entry is reported.

Completion writes the last log line and the row count, revokes the API key, adds the audit entry, and starts the next
run. `ERROR_MESSAGES` are the codes of a run's `error`. They describe how a program ended, not how a request failed, so
they are no codes of the API's errors; like those they are never renamed or reused.
"""

from __future__ import annotations

import logging
import os
import stat
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import redis
from sqlalchemy import Select, case, func, or_, select, update
from sqlalchemy.orm import Session

from webapp import clock, ids, limits
from webapp.access import actors
from webapp.access.models import ApiKey, Workspace
from webapp.audit.models import AuditEntry
from webapp.errors import ApiError
from webapp.extensions import db, read_session, redis_client, write_session
from webapp.files import names
from webapp.files import services as files
from webapp.files.models import WorkspaceFile
from webapp.files.services import media_type_of
from webapp.scenarios.models import Run, RunChunk
from webapp.security import keys
from webapp.work import jobs_queue
from webapp.work.log_lines import LogLines, escape_control_sequences
from webapp.work.models import END_STATES

log = logging.getLogger(__name__)

_CHUNKS_PER_QUERY: Final = 64  # chunks per query; a chunk has at most RUN_CHUNK_BYTES and a line


def read_chunks(run_id: str, after: int = 0) -> list[LogLines]:
    """Return the next chunks of a run's log with a number above `after`, in order. Uses a separate short read
    transaction."""
    statement = (
        select(RunChunk.first, RunChunk.last, RunChunk.text)
        .where(RunChunk.run_id == run_id, RunChunk.last > after)
        .order_by(RunChunk.first)
        .limit(_CHUNKS_PER_QUERY)
    )
    found, size = [], 0
    with read_session() as session:
        for first, last, text in session.execute(statement):
            lines = text.split("\n")
            found.append(LogLines(max(first, after + 1), last, lines[max(0, after + 1 - first) :]))
            size += len(text)
            if size >= limits.RUN_TEXT_BYTES:
                break
    return found


def read_log(run_id: str) -> Iterator[str]:
    """Yield the whole log in pieces, with line feeds, for a terminal: see `visible`."""
    after = 0
    while found := read_chunks(run_id, after):
        for piece in found:
            yield escape_control_sequences("\n".join(piece.lines)) + "\n"
        after = found[-1].last


def last_lines(run_id: str, limit: int) -> list[tuple[int, str]]:
    """Return the last lines with their numbers, in order. Uses a separate short read."""
    statement = (
        select(RunChunk.first, RunChunk.text)
        .where(RunChunk.run_id == run_id)
        .order_by(RunChunk.first.desc())
        .execution_options(yield_per=8)
    )
    found: deque[tuple[int, str]] = deque()
    with read_session() as session:
        for first, text in session.execute(statement):
            lines = list(enumerate(text.split("\n"), first))
            found.extendleft(reversed(lines[-(limit - len(found)) :]))
            if len(found) >= limit:
                break
    return list(found)


def append_lines(session: Session, run: Run, lines: Sequence[str], printed_at: datetime) -> None:
    """Append lines to a log, in the caller's transaction, which has locked the run's row."""
    if not lines:
        return
    joined = "\n".join(lines)
    first = run.line_count + 1
    run.line_count += len(lines)
    run.log_bytes += len(joined.encode()) + 1
    session.add(RunChunk(run_id=run.id, first=first, last=run.line_count, at=printed_at, text=joined))


# --- Notifying followers ---


def channel(run_id: str) -> str:
    """Return the Redis channel for new lines and state changes of a run."""
    return f"rowsmith:log:{run_id}"


def notify_followers(run_id: str) -> bool:
    """Notify followers. Return False if Redis is unavailable: followers then poll."""
    try:
        redis_client().publish(channel(run_id), b"")
    except redis.RedisError as error:
        log.debug("could not notify followers of %s: %s", run_id, error)
        return False
    return True


# --- Outputs ------------------------------------------------------------------------------------------------

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LINK_MESSAGE: Final = "Links are not followed."
_NOT_A_FILE: Final = "It is neither a file nor a folder."


@dataclass(slots=True)
class StoredOutputs:
    """The result of storing outputs: `files` in the format of the run ([{name, size, file_id}], where `name` is the
    full name of the workspace file), `rejected` with pairs of the name in the folder and the reason, and the total
    `bytes`."""

    files: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[tuple[str, str]] = field(default_factory=list)
    bytes: int = 0


def store_outputs(run: Run, folder: Path) -> StoredOutputs:
    """Store the files of a run's folder under `outputs/<run id>/`, ordered by name. Each is committed separately, and
    replaces a file from an earlier attempt.

    `db.session` must not have pending changes. Entries that cannot be stored are added to `refused` and do not
    affect the others: links, devices, invalid names, and files beyond the quota, RUN_OUTPUTS_BYTES or
    MAX_OUTPUT_FILES. If the storage fails, the remaining files are rejected for that reason. A missing folder
    counts as empty.
    """
    run_id, created_by = run.id, run.created_by
    actor = actors.system_actor(run.workspace_id, run.project_id, run.team_id)
    db.session.rollback()  # No transaction stays open during storage operations
    done = StoredOutputs()
    used_names: set[str] = set()
    try:
        root = os.open(folder, _DIRECTORY)
    except FileNotFoundError:
        return done
    except OSError as error:  # The program replaced it with a link or a file
        reason = os.strerror(error.errno or 0)
        _reject(done.rejected, folder.name, f"The output folder cannot be read: {reason}.")
        return done
    walk = _walk(root, "", done.rejected)
    try:
        for path, handle in walk:
            with os.fdopen(handle, "rb") as file:
                can_continue = _store(actor, run_id, created_by, path, file, used_names, done)
            if not can_continue:
                break
    finally:
        walk.close()
        os.close(root)
    return done


def _store(
    actor: actors.Actor,
    run_id: str,
    created_by: str | None,
    path: str,
    file: Any,
    used_names: set[str],
    done: StoredOutputs,
) -> bool:
    """Store one open file. Return False if storing further files would fail too."""
    path_text = _as_text(path)
    if len(done.files) >= limits.MAX_OUTPUT_FILES:
        _reject(
            done.rejected,
            path_text,
            f"A run can store at most {limits.MAX_OUTPUT_FILES:,} files: this file and all further files were skipped.",
        )
        return False
    name = f"{names.OUTPUTS_FOLDER}/{run_id}/{names.sanitize(path_text)}"
    name_faults = names.faults(name)
    if name_faults:
        _reject(done.rejected, path_text, " ".join(fault.message for fault in name_faults))
        return True
    if name in used_names:
        _reject(done.rejected, path_text, f"Another file of this run is already stored as `{name}`.")
        return True
    # The size in the storage: a sparse file occupies fewer bytes on the disk, and a hard-linked file counts once for
    # each name.
    size = os.fstat(file.fileno()).st_size
    if done.bytes + size > limits.RUN_OUTPUTS_BYTES:
        limit = limits.RUN_OUTPUTS_BYTES
        text = f"The outputs of a run can have at most {limit:,} bytes; "
        text += f"{done.bytes:,} are already stored, and this file has {size:,}."
        _reject(done.rejected, path_text, text)
        return True
    condition = files.visible_to(actor.workspace_id, actor.project_id) & (WorkspaceFile.name == name)
    try:
        replaces = db.session.scalar(select(WorkspaceFile.size).where(condition))
        files.check_quota(actor.workspace_id, size, replaces=replaces)
        db.session.rollback()
        stored = files.put(actor, size, _read_chunks_of_file(file, size), replaces=replaces)
        row, _ = files.save_file(
            actor, name, stored, content_type=media_type_of(name), run_id=run_id, created_by=created_by
        )
    except ApiError as error:
        db.session.rollback()
        _reject(done.rejected, path_text, error.message)
        return error.status < 500
    used_names.add(name)
    done.bytes += row.size
    done.files.append({"name": name, "size": row.size, "file_id": row.id})
    return True


def _read_chunks_of_file(file: Any, size: int) -> Iterator[bytes]:
    """Yield the content of a file, up to its size when it was listed."""
    remaining = size
    while remaining > 0 and (chunk := file.read(min(limits.STORAGE_CHUNK_BYTES, remaining))):
        remaining -= len(chunk)
        yield chunk


def _walk(directory: int, prefix: str, refused: list[tuple[str, str]]) -> Generator[tuple[str, int]]:
    """Yield every regular file under an open folder as (path, descriptor that the caller closes), by name."""
    with os.scandir(directory) as entries:
        found = sorted(entry.name for entry in entries)
    for name in found:
        path = prefix + name
        try:
            kind = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
            if stat.S_ISDIR(kind):
                if len(path) > limits.MAX_FILE_NAME_CHARS:
                    _reject(
                        refused, _as_text(path), "The path of this folder is too long to store files in it."
                    )
                    continue
                inner = os.open(name, _DIRECTORY, dir_fd=directory)
                try:
                    yield from _walk(inner, f"{path}/", refused)
                finally:
                    os.close(inner)
            elif stat.S_ISREG(kind):
                handle = os.open(name, _FILE, dir_fd=directory)
                if not stat.S_ISREG(os.fstat(handle).st_mode):  # It was replaced after it was listed
                    os.close(handle)
                    _reject(refused, _as_text(path), _NOT_A_FILE)
                    continue
                yield path, handle
            else:
                _reject(refused, _as_text(path), _LINK_MESSAGE if stat.S_ISLNK(kind) else _NOT_A_FILE)
        except OSError as error:
            _reject(refused, _as_text(path), f"The file cannot be read: {os.strerror(error.errno or 0)}.")


def _reject(refused: list[tuple[str, str]], path: str, reason: str) -> None:
    """Add a rejected entry; beyond MAX_FAULTS, report only that there are more."""
    if len(refused) < limits.MAX_FAULTS:
        refused.append((path, reason))
    elif len(refused) == limits.MAX_FAULTS:
        refused.append(("…", "Further files were not stored either."))


def _as_text(path: str) -> str:
    """Return a path as text, with bytes that are not UTF-8 replaced by U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


# --- Completion ---------------------------------------------------------------------------------------------

SCOPES: Final = ("read", "write", "generate", "push", "run")
API_VERSION: Final = "2026-11-21"  # the newest; a test compares it with what the views know


def issue_key(session: Session, run: Run, user_id: str, now: datetime) -> str:
    """Create a new API key for a run, in the caller's transaction, and return its text. An older key of the same run,
    which its first worker has released, is revoked. `user_id`: the user whose role it has."""
    revoke_key(session, run.id, now)
    text, handle, secret_hash = keys.new_key(os.urandom)
    seconds = run.settings["timeout_seconds"] + limits.RUN_KEY_MARGIN_SECONDS
    session.add(
        ApiKey(
            workspace_id=run.workspace_id,
            project_id=run.project_id,
            team_id=run.team_id,
            name=run.id,
            handle=handle,
            secret_hash=secret_hash,
            scopes=list(SCOPES),
            created_by=user_id,
            api_version=API_VERSION,
            expires_at=now + timedelta(seconds=seconds),
            run_id=run.id,
            writable_secrets=list(run.settings["writable_secrets"]),
        )
    )
    return text


def revoke_key(session: Session, run_id: str, now: datetime) -> None:
    """End the key of a run, in the caller's transaction. Doing it twice changes nothing."""
    session.execute(
        update(ApiKey)
        .where(ApiKey.run_id == run_id, ApiKey.revoked_at.is_(None))
        .values(revoked_at=now)
        .execution_options(synchronize_session=False)
    )


KIND: Final = "run"
_MAX_RUNS: Final = case(
    *((Workspace.plan == plan, most) for plan, most in limits.RUNS_AT_ONCE.items()),
    else_=1,
)


def may_start_condition(run_id: str) -> Callable[[Session], bool]:
    """Return the condition under which a worker may start a run: a free slot in its workspace."""

    def ask(session: Session) -> bool:
        run = session.execute(select(Run.workspace_id, Run.status).where(Run.id == run_id)).one_or_none()
        if run is None or run.status != "queued":
            return True  # a released run has its slot already; `take` checks the status of all others
        limit = session.scalar(
            select(_MAX_RUNS).where(Workspace.id == run.workspace_id).with_for_update(key_share=True)
        )
        running = session.scalar(
            select(func.count())
            .select_from(Run)
            .where(Run.workspace_id == run.workspace_id, Run.status == "running")
        )
        return (running or 0) < (limit or 0)

    return ask


def startable(statement: Select[Any]) -> Select[Any]:
    """Restrict a query to runs that are not queued behind others: the sweeper enqueues only those."""
    place = func.row_number().over(partition_by=Run.workspace_id, order_by=(Run.created_at, Run.id))
    queued = (
        select(Run.id, Run.workspace_id, place.label("place"))
        .where(Run.status == "queued", Run.cancel_requested_at.is_(None))
        .subquery()
    )
    running = (
        select(Run.workspace_id, func.count().label("runs"))
        .where(Run.status == "running")
        .group_by(Run.workspace_id)
        .subquery()
    )
    first = (
        select(queued.c.id)
        .join(Workspace, Workspace.id == queued.c.workspace_id)
        .outerjoin(running, running.c.workspace_id == queued.c.workspace_id)
        .where(queued.c.place <= _MAX_RUNS - func.coalesce(running.c.runs, 0))
    )
    return statement.where(or_(Run.status != "queued", Run.id.in_(first)))


def enqueue_next(client: redis.Redis, workspace_id: str) -> None:
    """Enqueue the workspace's runs that can start now and have no job yet. If Redis is down, the sweeper does it."""
    queued = select(Run.id).where(Run.workspace_id == workspace_id, Run.status == "queued")
    with read_session() as session:
        found = session.scalars(startable(queued).order_by(Run.created_at, Run.id)).all()
    if not found:
        return
    try:
        enqueued = jobs_queue.queued_ids(client, KIND)
    except redis.RedisError as error:
        log.warning("Redis is unavailable, %d run(s) are waiting: %s", len(found), error)
        return
    for run_id in found:
        if run_id not in enqueued:
            jobs_queue.enqueue(client, KIND, run_id)


ERROR_MESSAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "program_failed": "The program failed.",
        "time_limit": "The program exceeded its time limit.",
        "memory_limit": "The program exceeded the memory limit of a run.",
        "process_limit": "The program exceeded the process limit of a run.",
        "disk_limit": "The program exceeded the disk limit of a run.",
        "cpu_limit": "The program exceeded the CPU time limit of a run.",
        "log_limit": "The program's output exceeded the log size limit of a run.",
        "environment_failed": "The environment of the program could not be created.",
        "secret_missing": "A secret of the scenario does not exist.",
        "uploads_failed": "The workspace's files could not be loaded.",
        "maker_missing": "The user who started this run no longer exists or has lost access.",
        "program_missing": "The version of the scenario no longer exists.",
        "sandbox_missing": "This machine has no working sandbox.",
        "outputs_failed": "The output files could not be stored.",
        "worker_stopped": "The runner was stopped during the run. Runs are not repeated.",
        "worker_lost": "The runner was lost. Runs are not repeated.",
        "internal_error": "Something went wrong on our side.",
    }
)
# Actions that generate rows; a push of rows from the request does not.
_GENERATING_ACTIONS: Final = (
    "template.generate",
    "template.export",
    "dataset.export",
    "template.push",
    "dataset.push",
)
LOG_PREFIX: Final = "rowsmith: "  # prefix of log lines written by Rowsmith itself


def run_error(code: str, message: str | None = None, **details: Any) -> dict[str, Any]:
    """Return the `error` of a run."""
    return {"code": code, "message": message or ERROR_MESSAGES[code], "details": details}


def settle(run_id: str) -> None:
    """Complete a run: write the last log line if it is missing, wake followers, and start the next run of its
    workspace. Can be called repeatedly; does nothing while the run is running."""
    with write_session() as session:
        run = session.get(Run, run_id, with_for_update=True)
        if run is None or not run.has_ended:
            return
        record_end(session, run_id)
        workspace_id = run.workspace_id
    notify_followers(run_id)
    enqueue_next(redis_client(), workspace_id)


def pending() -> list[str]:
    """Return runs that have ended but are not completed; the sweeper completes them."""
    ended = select(Run.id).where(Run.closed_at.is_(None), Run.status.in_(END_STATES))
    with read_session() as session:
        return list(session.scalars(ended.limit(limits.SWEEP_BATCH)))


def record_end(session: Session, run_id: str) -> None:
    """Record the end of a run in the transaction that ends it: the log contains the reason unless the run was
    successful, the key is revoked, the rows are counted, and an audit entry is written. Does this once."""
    run = session.get_one(Run, run_id)
    if run.closed_at is not None:
        return
    now = clock.now()
    run.closed_at = now
    revoke_key(session, run_id, now)
    run.rows_generated = count_generated_rows(session, run)
    if run.status != "completed":
        outcome = {"timed_out": "stopped", "cancelled": "cancelled"}.get(run.status, "failed")
        why = f": {run.error['message']}" if run.error else ""
        append_lines(session, run, [" ".join(f"{LOG_PREFIX}{outcome}{why}".split())], now)
    # The audit entry counts no rows, because the program's own requests do.
    details = {
        "scenario": run.scenario_id,
        "version": run.scenario_version,
        "status": run.status,
        "exit_code": run.exit_code,
        "code": run.error["code"] if run.error else None,
        "rows_generated": run.rows_generated,
    }
    entry = AuditEntry(
        id=ids.new("aud"),
        at=clock.now(),
        workspace_id=run.workspace_id,
        action="run.end",
        object_type="run",
        object_id=run.id,
        project_id=run.project_id,
        user_id=run.created_by,
        key_id=run.key_id,
        details=details,
    )
    session.add(entry)


def count_generated_rows(session: Session, run: Run) -> int:
    """Return the number of rows that a run has generated so far, according to the audit log: generate requests, exports
    and pushes of templates and datasets that used its key."""
    if run.started_at is None:
        return 0
    own = select(ApiKey.id).where(ApiKey.run_id == run.id)
    counted = select(func.sum(AuditEntry.rows)).where(
        AuditEntry.workspace_id == run.workspace_id,
        AuditEntry.at >= run.started_at - timedelta(seconds=limits.LEASE_SECONDS),  # clocks differ a little
        AuditEntry.key_id.in_(own),
        AuditEntry.action.in_(_GENERATING_ACTIONS),
    )
    return int(session.scalar(counted) or 0)

"""Execute a push: read the ledger, resolve chunks in doubt, and continue with the rows that have no outcome.

A crash, a lost connection and a cancel are handled the same way: close the session, read the ledger again, and ask
the target in a new session whether the chunk in doubt was committed. Rows count as delivered only if the
target is known to have them.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy.exc import OperationalError

from jobs.lease import Cancelled, Interrupted, Lease, LeaseLost, Postponed, Released, leased
from jobs.pushes import http
from jobs.pushes import wait as pushes_wait
from jobs.pushes.failures import (
    first_failure_error,
    ledger_entries,
    row_keys,
    table_rejected_error,
    target_error,
)
from jobs.pushes.http import HttpSender, TargetUnavailable
from jobs.pushes.table import DatabaseSender, ManyRejectedError, generate_rows
from jobs.pushes.wait import PushWatcher
from webapp import clock, limits
from webapp.connections.models import Connection
from webapp.connections.services import connections, inspection
from webapp.connectors.base import ConnectionLost, ConnectorError, OpenConnection, RowError, Session
from webapp.connectors.http.channel import Channel
from webapp.connectors.schema import Entity
from webapp.connectors.sql import base as sql
from webapp.errors import ApiError
from webapp.extensions import read_session
from webapp.pushes.models import Push
from webapp.pushes.services import completion, planning
from webapp.pushes.services.ledger import read, write
from webapp.pushes.services.ledger.write import Chunk, LedgerEntry, LedgerWriter, next_row_numbers
from webapp.pushes.services.planning import PushJob
from webapp.pushes.services.rows import TableRows

log = logging.getLogger(__name__)

KIND = "push"
# Reasons that may be temporary.
UNAVAILABLE_REASONS = (
    "lost",
    "refused",
    "unreachable",
    "unresolved",
    "timeout",
    "starting",
    "too_many_connections",
)
_MIN_DELIVERED_SHARE = (
    0.2  # chosen: if a smaller share of a table's rows is delivered, no further rows are generated
)
_MAX_ROUNDS = 20  # chosen: how often further rows of a table replace rejected ones
_TRIAL_ROWS = 20  # chosen: rows that are sent to find the columns of a table that cause rejections
REPEATABLE_MODES = (
    "upsert",
    "update",
)  # modes whose chunks can safely be sent again when their outcome is unknown


def run(push_id: str) -> None:
    """Execute a push, or continue one whose worker was lost."""
    with leased(KIND, push_id, condition=lambda session: completion.is_due(session, push_id)) as work:
        work.on_finish = lambda session: completion.record_end(session, push_id)
        PushRunner(work).execute()
    completion.settle(push_id)


class PushRunner:
    """One attempt at one push."""

    def __init__(self, work: Lease) -> None:
        self.work = work
        self.ledger = LedgerWriter(work.id, work.transaction)
        self.watcher = PushWatcher(work, self._write_final_state)
        self._has_connected = False
        self._resent: Chunk | None = None

    def execute(self) -> None:
        """Run until the push ends or must stop. The ledger is complete then."""
        self.ledger.load()
        self.job = planning.load_push_job(self.work.id)
        before = self.ledger.push.waiting
        self._has_connected = bool(before and before["connected"])
        if self.ledger.push.retry_at is not None:
            self.work.save(retry_at=None)
        with self.watcher:
            try:
                self._run_with_retries()
            except Interrupted as reason:
                self._write_outcomes(reason)
                raise
            except ConnectorError as error:
                self._write_outcomes(None)
                raise target_error(error) from None
            except ApiError:
                self._write_outcomes(None)
                raise
            finally:
                self._close_session()
        # The leak check's results for the rows that this attempt generated.
        watches = [(table.name, table.maker.watch) for table in self.job.tables]
        seen = [
            {"table": name, "columns": watch.report(), "unmasked": list(watch.unmasked)}
            for name, watch in watches
            if watch is not None
        ]
        self.work.finish("completed", **({"leaks": seen} if seen else {}))

    def _run_with_retries(self) -> None:
        """Retry until the push is done. Wait for an unavailable target as long as the push allows. Other
        temporary errors are retried after PUSH_RECONNECT_SECONDS."""
        failures, last_processed = 0, -1
        while True:
            try:
                self._run_session()
            except (ConnectorError, OperationalError) as error:
                is_unavailable = self._is_target_unavailable(error)
                self._close_session()
                self.work.check()  # a statement that we cancelled ourselves is not an error of the target
                if not _is_temporary(error):
                    raise
                with contextlib.suppress(OperationalError):
                    self.ledger.load()
                processed = self._processed_count()
                if is_unavailable:
                    self._wait_for_target(error, processed)
                    continue
                failures, last_processed = (1 if processed > last_processed else failures + 1), processed
                if failures > len(limits.PUSH_RECONNECT_SECONDS):
                    self.ledger.log(f"{_message_of(error)} Gave up after {failures} failures in a row.")
                    if isinstance(error, OperationalError):
                        raise LeaseLost(self.work.id) from error  # our own database failed: the lease expires
                    raise
                wait = limits.PUSH_RECONNECT_SECONDS[failures - 1]
                self.ledger.log(f"{_message_of(error)} Retrying in {wait:g} s.")
                with contextlib.suppress(OperationalError):
                    self.ledger.flush()
                pushes_wait.wait(self.work, wait)
            else:
                return

    def _is_target_unavailable(self, error: ConnectorError | OperationalError) -> bool:
        """Whether the target is unavailable or has closed the connection. Over HTTP this includes a token
        endpoint that is unreachable or overloaded."""
        if not isinstance(error, ConnectorError):
            return False
        if self.job.capabilities.by_row:
            # Without a token no row can be sent, so an unavailable token endpoint pauses a push as the target
            # itself does.
            lacks_token = error.code == "token_request_failed" and error.transient
            return isinstance(error, TargetUnavailable) or lacks_token or error.reason in UNAVAILABLE_REASONS
        return isinstance(error, ConnectionLost) or (
            self.watcher.session is None and error.transient and _is_temporary(error)
        )

    def _wait_for_target(self, error: ConnectorError | OperationalError, processed: int) -> None:
        """Wait for the next attempt: short waits here, longer ones without a worker (`Postponed`). Raise
        `error` when the push has waited for its maximum time."""
        now, before = clock.now(), self.ledger.push.waiting
        if before is None or processed > before["ended"]:
            before = {"since": clock.to_text(now), "tries": 0}
        since = datetime.fromisoformat(before["since"])
        left = self.job.target_wait_seconds - (now - since).total_seconds()
        if left <= 0:
            self.ledger.log(
                f"{_message_of(error)} Gave up after waiting {self.job.target_wait_seconds:,} s for the target."
            )
            if isinstance(error, ConnectorError) and not error.hint:
                error.hint = "Resume the push when the target is available again."
            raise error
        tries = before["tries"] + 1
        wait = min(
            limits.PUSH_TARGET_RETRY_SECONDS[min(tries, len(limits.PUSH_TARGET_RETRY_SECONDS)) - 1], left
        )
        waiting = {
            "since": before["since"],
            "tries": tries,
            "ended": processed,
            "connected": self._has_connected,
            "reason": getattr(error, "reason", ""),
            "message": _message_of(error),
        }
        self.ledger.log(f"{_message_of(error)} Waiting for the target, next try in {wait:.0f} s.")
        retry_at = now + timedelta(seconds=wait)
        try:
            self.ledger.flush()
            if wait > limits.PUSH_WORKER_WAIT_SECONDS:
                raise Postponed(self.work.id, retry_at=retry_at, waiting=waiting)
            self.work.save(retry_at=retry_at, waiting=waiting)
            pushes_wait.wait(self.work, wait)
            self.work.save(retry_at=None)
        except OperationalError as own:
            raise LeaseLost(self.work.id) from own  # our own database is unavailable too: the lease expires

    def _processed_count(self) -> int:
        """Return the number of rows with an outcome in the ledger. Over HTTP, rows that the target did not answer are
        not counted."""
        return self.ledger.processed_count - (self.ledger.push.unknown if self.job.capabilities.by_row else 0)

    def _run_session(self) -> None:
        """Send all remaining rows in one session."""
        self.ledger.load()
        # What an earlier session may have sent: the current chunk, and the previous one, whose outcome is
        # written late.
        chunks_to_repeat = 2 if self._has_connected or self.work.epoch > 1 else 0
        try:
            session = self.watcher.session = self.job.open()
        except ConnectorError as error:
            # If an earlier connection succeeded, errors are treated as temporary, such as a restarting server or a
            # full pool.
            error.transient = error.transient or self._has_connected or self.ledger.processed_count > 0
            raise
        self._has_connected = True
        left = self.ledger.push.total - self.ledger.processed_count
        attempt = f"attempt {self.work.attempt}: " if self.work.attempt > 1 else ""
        names = ", ".join(table.name for table in self.job.tables)
        self.ledger.log(f"{attempt}connected; {left:,} rows left ({names})")
        self.ledger.flush()
        self._resolve_in_doubt(session)
        self._resolve_earlier_chunks(session)
        self._check_stop_conditions()
        if isinstance(session, Channel):
            table_indexes, undo = range(len(self.job.tables)), self.job.push.kind == "undo"
            for table_index in reversed(table_indexes) if undo else table_indexes:
                waiting = self.ledger.push.waiting
                probing = waiting is not None and self._processed_count() <= waiting["ended"]
                sender = HttpSender(
                    self.work, self.ledger, self.job, session, table_index, self._resent, probing=probing
                )
                sender.send_all()
            self.ledger.flush()
        elif isinstance(session, Session):
            self._send_to_database(session, chunks_to_repeat)

    def _send_to_database(self, session: Session, chunks_to_repeat: int) -> None:
        """Send all remaining rows to a database."""
        steps = PushSteps(self.work, self.ledger, self.job, session)
        table_indexes = range(len(self.job.tables))
        kind = self.job.push.kind
        cycles = [
            table_index for table_index in table_indexes if self.job.tables[table_index].deferred_columns
        ]
        if kind == "push":
            steps.run_statements("before_sql")
        if kind != "undo":
            steps.create_tables()
        if kind == "undo":
            for place in cycles:
                steps.clear_circular_keys(place)
        for place in reversed(table_indexes) if kind == "undo" else table_indexes:
            if kind == "undo":
                found_by, processed_range = (
                    self.job.tables[place].lookup_columns,
                    self.ledger.processed_range(place),
                )
                if not found_by or not len(next_row_numbers(self.job.push, place, processed_range, 1)):
                    continue  # the table may not exist
            if self.job.tables[place].references:
                self.ledger.flush()  # which parents were delivered is read from the ledger
            with self._suspended_foreign_keys(session, place):
                chunks_to_repeat -= self._send_table(session, place, chunks_to_repeat)
            if kind != "undo":
                steps.advance_sequences(place)
        self.ledger.flush()
        if kind != "undo":
            for place in cycles:
                steps.fill_deferred_columns(place)
        if kind == "push":
            steps.run_statements("after_sql")
        self.ledger.flush()

    def _send_table(self, session: Session, table_index: int, chunks_to_repeat: int) -> int:
        """Send the rows of one table and return the number of chunks. An error of the whole table ends only
        this table if there are others and the push continues after errors."""
        push = self.job.push
        # Whether columns may stay empty if the target rejects each row with their values: not those that a request
        # lists.
        trial = (
            push.kind == "push"
            and self.job.has_transactions
            and not self.job.canary_rows
            and bool(self.job.request_body.get("skip_faulty_tables"))
            and self.ledger.processed_range(table_index) is None
        )
        if trial:
            self._renumber_keys(session, table_index)
        while True:
            try:
                sender = DatabaseSender(
                    self.work,
                    self.ledger,
                    self.job,
                    session,
                    table_index,
                    max(0, chunks_to_repeat),
                    trial=trial,
                )
                if trial:
                    self._advance_sequences(session, sender.entity, self.job.tables[table_index])
                chunk_count = sender.send_all()
                while self._add_rows(table_index):
                    chunk_count += DatabaseSender(
                        self.work, self.ledger, self.job, session, table_index
                    ).send_all()
                return chunk_count
            except ManyRejectedError as rejected:
                trial = False
                if gone := self._empty_parent_message(session, table_index, rejected.failure):
                    self._fail_table(table_index, rejected.failure.code, rejected.failure.native, gone)
                    return 0
                self._leave_out_columns(session, table_index, rejected.failure)
            except ConnectorError as error:
                if not _is_permanent(error):
                    raise
                if self._drop_keys(table_index, error):
                    continue
                if not _fails_only_its_table(self.job, error):
                    raise
                self.work.check()  # a statement that a cancel stopped is not an error of the table
                self._fail_table(table_index, *_reason(error), error.message)
                return 0

    def _renumber_keys(self, session: Session, table_index: int) -> None:
        """Assign keys after those that the table has now: triggers of tables that were sent before may have inserted
        rows since the push was planned. Not if rows that were sent refer to the keys already."""
        table = self.job.tables[table_index]
        sent_tables = self.job.tables[:table_index]
        if any(
            item["table"] == table_index
            for rows in sent_tables
            for item in (*rows.references.values(), *rows.from_parent.values())
        ):
            return
        entity = table.entity(session)
        highest = {
            name: session.max_value(entity, name) or 0
            for name in table.numbered_columns
            if (column := entity.column(name)) is not None and column.generated == "identity"
        }
        now = max(highest.values(), default=0)
        if now <= max(table.numbered_columns.values(), default=0):
            return
        table.load_spec({**table.spec, "numbered": dict.fromkeys(table.numbered_columns, now)})
        self.job.push.tables = [entry.spec for entry in self.job.tables]
        self.work.save(tables=self.job.push.tables)

    def _advance_sequences(self, session: Session, entity: Entity, table: TableRows) -> None:
        """Move sequences behind the rows that a table has, whose keys were written without them."""
        for column in entity.fields:
            if column.generated != "identity" or column.type != "integer" or column.name in table.columns:
                continue
            try:
                moved = session.advance_sequence(
                    entity, column.name, partial(session.max_value, entity, column.name)
                )
            except ConnectorError as error:
                if isinstance(error, ConnectionLost) or _is_temporary(error):
                    raise
                continue  # the account may not move it
            if moved is not None:
                self.ledger.log(f"{table.name}, {column.name}: its sequence continues after {moved}")

    def _leave_out_columns(self, session: Session, table_index: int, failure: LedgerEntry) -> None:
        """Leave out the optional columns of a table because of whose values the target rejects rows: a trigger or a
        function may require values that the catalog does not show, and all rows of a parent may be rejected. Where the
        target rejects as many rows without them, only references to tables without delivered rows are left out."""
        table, push = self.job.tables[table_index], self.job.push
        spec, optional = table.spec, planning.optional_columns(table.entity(session), table)
        lost = table.undelivered_parents()
        omitted = [name for name in optional if name in lost]
        numbers = next_row_numbers(push, table_index, None, _TRIAL_ROWS)

        def count_rejected(without: list[str]) -> int:
            """Return how many of the rows the target rejects without some columns. All are rolled back."""
            table.load_spec(planning.remove_columns(spec, without))
            self.work.check()
            batch = generate_rows(self.job, table_index, numbers).batch
            orphans: int = len(numbers) - batch.num_rows
            if not batch.num_rows:
                return orphans
            target = session.target(table.write_spec(session))
            try:
                target.begin()
                return orphans + len(target.send(batch).failures)
            except ConnectorError as error:
                if isinstance(error, ConnectionLost) or _is_temporary(error):
                    raise
                return len(numbers)
            finally:
                target.rollback()

        fewest = count_rejected(optional) if optional else len(numbers)
        if fewest < count_rejected([]):
            omitted = optional
            for name in optional:
                candidate = [item for item in omitted if item != name]
                if count_rejected(candidate) <= fewest:
                    omitted = candidate
        table.load_spec(planning.remove_columns(spec, omitted))
        if omitted:
            listed = ", ".join(omitted)
            self.ledger.log(
                f"{table.name}: {listed} left empty, because rows were rejected: {failure.message}"
            )
            push.tables = [item.spec for item in self.job.tables]
            self.work.save(tables=push.tables)

    def _drop_keys(self, table_index: int, error: ConnectorError) -> bool:
        """Continue without the keys of a table and return True, if the target only cannot return them and no other
        table needs them. If the table is empty, an undo finds the rows by their values."""
        table, push = self.job.tables[table_index], self.job.push
        needed = any(
            item["table"] == table_index for entry in self.job.tables for item in entry.from_parent.values()
        )
        if error.details.get("sqlstate") != "0A000" or not table.captured_columns or needed:
            return False
        spec = {**table.spec, "capture": [], "key_columns": []}
        message = "the target returns no keys for inserted rows"
        with read_session() as session:
            connection = session.get_one(Connection, push.connection_id)
        if (
            inspection.count_rows(connection, [table.target], limits.UNDO_COUNT_SECONDS).get(table.target)
            != 0
        ):
            spec["undo_columns"] = []
            message += ", so this push cannot be undone there"
        self.ledger.log(f"{table.name}: {message}")
        push.tables = [
            spec if index == table_index else entry.spec for index, entry in enumerate(self.job.tables)
        ]
        self.work.save(tables=push.tables)
        table.load_spec(spec)
        return True

    def _add_rows(self, table_index: int) -> bool:
        """Add as many rows to a table as the target rejected, and return whether any were added.

        Only in a push that skips faulty tables, as a fill does. Not if few of the rows that were sent arrived, or if
        the template has no more rows.
        """
        push, table = self.job.push, self.job.tables[table_index]
        if (
            push.kind != "push"
            or not self.job.request_body.get("skip_faulty_tables")
            or not self.job.has_transactions
        ):
            return False
        if table.spec.get("bad"):  # its rows are supposed to be rejected
            return False
        self.ledger.flush()
        with read_session() as session:
            delivered = read.counts_by_table(session, self.ledger.push)[table_index].delivered
        requested, rounds = table.spec.get("asked", table.count), table.spec.get("rounds", 0)
        missing = requested - delivered
        count = table.count + missing
        if missing <= 0 or table.mode != "insert" or rounds == _MAX_ROUNDS:
            return False
        if delivered < _MIN_DELIVERED_SHARE * table.count or not table.maker.can_generate(
            table.offset, count
        ):
            return False
        table.load_spec({**table.spec, "asked": requested, "rounds": rounds + 1, "count": count})
        if table.delivered_rows is not None:
            table.delivered_rows.invalidate(table_index)
        push.tables = [item.spec for item in self.job.tables]
        self.work.save(tables=push.tables, total=self.ledger.push.total + missing)
        self.ledger.load()
        self.ledger.log(f"{table.name}: sending {missing:,} more rows, because the same number was rejected")
        return True

    def _empty_parent_message(self, session: Session, table_index: int, failure: LedgerEntry) -> str:
        """Return a message if a table's parent is empty although its rows were delivered; "" if none is."""
        table = self.job.tables[table_index]
        lost = table.undelivered_parents()
        for name, item in {**table.references, **table.from_parent}.items():
            parent = self.job.tables[item["table"]]
            if failure.code != "foreign_key" or name in lost or parent is table:
                continue
            if session.sample(parent.entity(session), 1).num_rows == 0:
                return (
                    f"{parent.name} is empty although its rows were written: the target removed them, for example "
                    f"a trigger at the commit because nothing referred to them yet. {failure.message}"
                )
        return ""

    def _fail_table(self, table_index: int, code: str, native: str, message: str) -> None:
        """Record all remaining rows of a table as failed, because of an error of the whole table."""
        table = self.job.tables[table_index]
        self.ledger.log(f"{table.name}: {code}: {message}; its remaining rows were skipped")
        processed_range = self.ledger.processed_range(table_index)
        while len(
            numbers := next_row_numbers(self.job.push, table_index, processed_range, limits.PUSH_CHUNK_ROWS)
        ):
            self.work.check()
            low, high = int(numbers.min()), int(numbers.max())
            text = message[: limits.PUSH_MESSAGE_CHARS]
            entries = [LedgerEntry(number, code, text, native[:40]) for number in numbers.tolist()]
            self.ledger.write_rejected_chunk(
                Chunk(table_index, low, high, len(entries), len(entries)), entries
            )
            processed_range = (low, high)

    @contextlib.contextmanager
    def _suspended_foreign_keys(self, session: Session, table_index: int) -> Iterator[None]:
        """Disable foreign key checks if a cycle of NOT NULL columns requires it, while its rows are written
        and while rows that they reference are deleted."""
        tables = self.job.tables
        undo = self.job.push.kind == "undo"
        closed = [table for table in tables if table.unchecked_columns]
        needed = table_index in {
            item.references[name]["table"] for item in closed for name in item.unchecked_columns
        }
        if not (tables[table_index].unchecked_columns or (undo and needed)):
            yield
            return
        self.ledger.log(
            f"{tables[table_index].name}: foreign key checks are disabled because of a circular reference"
        )
        with session.suspend_foreign_keys():
            yield

    def _check_stop_conditions(self) -> None:
        """End the push if a worker died after the row at which it had to stop."""
        push, processed = self.ledger.push, self.ledger.processed_count
        canary = 0 < processed <= self.job.canary_rows
        limit = limits.HTTP_SAME_FAILURES if self.job.capabilities.by_row else limits.PUSH_SAME_FAILURES
        all_failed = self.job.stops_when_all_fail and processed == push.failed >= limit
        if not push.failed or not (self.job.stops_on_error or canary or all_failed):
            return
        end = read.rows(self.work.id, state="failed", limit=1)[0]
        name = self.job.tables[end.table].name
        failure = LedgerEntry(end.row, end.code, end.message, end.native, end.column)
        raise (
            table_rejected_error(name, failure, processed)
            if all_failed
            else first_failure_error(name, failure, f"Row {end.row:,} of {name} was rejected")
        )

    # --- Chunks in doubt ---

    def _resolve_in_doubt(self, session: OpenConnection) -> None:
        """Ask the target whether a chunk was committed, and make sure that it can no longer change."""
        chunk = self.ledger.current_chunk
        if chunk is None:
            return
        table = self.job.tables[chunk.table]
        if isinstance(session, Session):
            is_committed = session.commit_outcome(table.entity(session), chunk.proof) if chunk.proof else None
            repeatable = table.mode in REPEATABLE_MODES or not self.job.has_transactions
            if is_committed is None and self.job.push.kind != "undo" and repeatable:
                is_committed = False
        else:
            is_committed = http.commit_outcome(chunk)
        which = f"{table.name}, rows {chunk.first:,} to {chunk.last:,}"
        self._resent = chunk if is_committed is False else None
        if is_committed:
            self.ledger.log(f"{which}: it was committed")
            self.ledger.mark_committed()
            self.ledger.flush()
        elif is_committed is False:
            message = "it was not committed; its rows are sent again"
            if isinstance(session, Channel):
                message = "its rows may have been sent; repeating them is safe, so they are sent again"
            self.ledger.log(f"{which}: {message}")
            self.ledger.discard_chunk()
        else:
            self.ledger.log(
                f"{which}: it cannot be determined whether its rows were delivered; they are reported as unknown"
            )
            with read_session() as own_session:
                numbers = read.row_numbers(own_session, self.job.push, chunk.table, chunk.first, chunk.last)
            batch = table.key_batch(_row_indexes(table, numbers), self.job.key_spool)
            positions = pa.array(range(len(numbers)), pa.int64())
            keys = row_keys(batch, table.key_columns, table.sensitive, positions)
            self.ledger.write_unknown_outcome(
                dict(zip(numbers.tolist(), keys, strict=True))
            )  # users can look for these rows

    def _resolve_earlier_chunks(self, session: OpenConnection) -> None:
        """Resolve chunks that were in doubt when an earlier push of these rows ended. Delivered rows are not
        sent again."""
        retry = self.job.push
        if retry.kind != "retry" or not isinstance(session, Session):
            return
        with read_session() as own_session:
            found = [
                (item.id, Chunk(**item.unsettled))
                for item in read.pushes_in_doubt(own_session, retry)
                if item.unsettled
            ]
        retry_body = self.job.request_body.get("again") or {}
        for push_id, chunk in found:
            is_committed = session.commit_outcome(self.job.tables[chunk.table].entity(session), chunk.proof)
            with self.work.transaction() as own_session:
                own_push, push = own_session.get_one(Push, retry.id), own_session.get_one(Push, push_id)
                if is_committed is not None:
                    count = write.resolve_chunk(own_session, push, chunk, is_committed, own_push)
                    message = f"{count:,} rows in doubt {'were' if is_committed else 'were not'} delivered"
                else:
                    if "unknown" not in retry_body.get("states", ("failed", "unknown")):
                        write.exclude_from_retry(own_session, push, chunk, own_push)
                    push.unsettled = None
                    message = "the target could not resolve rows in doubt"
            self.ledger.log(
                f"{self.job.tables[chunk.table].name}, rows {chunk.first:,} to {chunk.last:,}: {message}"
            )
        if found:
            self.ledger.flush()
            self.ledger.load()

    # --- Ending ---

    def _write_outcomes(self, reason: Interrupted | None) -> None:
        """Before the work ends: write outcomes, and resolve chunks in doubt if there is time."""
        self._close_session()
        if isinstance(reason, LeaseLost):
            return
        try:
            if self.ledger.has_chunk_in_doubt and not isinstance(reason, Released):
                with self.job.open() as session:
                    self._resolve_in_doubt(session)
        except (ConnectorError, ApiError, OperationalError) as error:
            self.ledger.log(f"{_message_of(error)} Chunks in doubt remain unresolved.")
        try:
            self.ledger.flush()
        except OperationalError as error:
            log.warning("%s: could not write the last log lines: %s", self.work.id, type(error).__name__)

    def _write_final_state(self, reason: Interrupted) -> None:
        """Write the end of a push whose session hangs. Called right before this process exits."""
        try:
            if isinstance(reason, LeaseLost):
                return
            if not self.ledger.has_chunk_in_doubt:
                self.ledger.flush()
            if isinstance(reason, Released):
                self.work.release()
            elif isinstance(reason, Cancelled):
                self.work.finish("cancelled")
                completion.settle(self.work.id)
        except Interrupted:
            return

    def _close_session(self) -> None:
        session, self.watcher.session = self.watcher.session, None
        if session is not None:
            session.close()


def _is_temporary(error: Exception) -> bool:
    """Whether a retry may succeed."""
    return not isinstance(error, ConnectorError) or error.transient or error.reason in UNAVAILABLE_REASONS


def _is_permanent(error: ConnectorError) -> bool:
    """Whether an error of the target will not pass by itself, and concerns neither the connection nor the account."""
    return not (
        isinstance(error, ConnectionLost) or _is_temporary(error) or error.code == "read_only_connection"
    )


def _reason(error: ConnectorError) -> tuple[str, str]:
    """Return the reason of an error as one of `base.REASONS`, and the target's own error code."""
    native = str(error.details.get("sqlstate") or "")
    return (sql.reason_of(native) if native else "refused"), native


def _fails_only_its_table(job: PushJob, error: ConnectorError) -> bool:
    """Whether an error while a table is sent ends that table, and the push continues with the others."""
    is_single = len(job.tables) == 1 or job.push.kind == "undo"
    return (
        _is_permanent(error) and not is_single and job.request_body.get("on_error", "continue") == "continue"
    )


def _message_of(error: Exception) -> str:
    return getattr(error, "message", "The database of Rowsmith is unavailable.")


class PushSteps:
    """The steps of one push in one session, before and after its rows: custom SQL, missing tables, sequences, circular
    foreign keys.

    Statements may not be repeatable. Each is recorded before it starts, and one that a lost worker had started is not
    run again.
    """

    def __init__(self, work: Lease, ledger: LedgerWriter, job: PushJob, session: Session) -> None:
        self.work, self.ledger, self.job, self.session = work, ledger, job, session

    def run_statements(self, which: str) -> None:
        """Run `before_sql` or `after_sql`, each statement once. Raises target_failed."""
        for index, statement in enumerate(self.job.request_body.get(which) or ()):
            name, label = f"{which}:{index}", f"{which}, statement {index + 1}"
            state = self.ledger.step_progress(name)
            if state == "done":
                continue
            if state == "begun":
                self.ledger.log(f"{label}: it may have run before and is not repeated")
            else:
                self.work.check()
                self.ledger.save_step_progress(name, "begun")
                try:
                    self.session.execute(statement)
                except ConnectionLost:
                    raise
                except ConnectorError as error:
                    self.work.check()  # a cancel also stops a statement
                    found = target_error(error, statement=label)
                    raise ApiError(found.code, f"{label}: {found.message}", found.details) from None
                self.ledger.log(f"{label}: done")
            self.ledger.save_step_progress(name, "done")

    def create_tables(self) -> None:
        """Create missing tables if the push requests it."""
        for table in self.job.tables:
            if not table.spec.get("create") or self.session.entity(table.target) is not None:
                continue
            columns, keys = table.new_columns
            self.ledger.log(f"{table.name}: {self.session.create(table.target, columns, keys)}")
            self.ledger.flush()
            with (
                self.work.transaction() as session
            ):  # the list of tables is read again when it is next needed
                connections.discard_metadata(session, self.job.push.connection_id)

    # --- Sequences of the target ---

    def advance_sequences(self, table_index: int) -> None:
        """Move sequences past the keys of the rows, so that the target's next inserts do not conflict. Safe
        to repeat."""
        table, name = self.job.tables[table_index], f"counter:{table_index}"
        if table.mode == "update" or self.ledger.step_progress(name):
            return
        writing = table.write_spec(self.session)
        counted = [
            item for item in writing.columns if item.type == "integer" and item.generated == "identity"
        ]
        if not counted:
            return
        self.ledger.flush()  # everything that was delivered is in the ledger
        for column in counted:
            message = f"{table.name}, {column.name}"
            try:
                highest = partial(self._highest, table, column.name)
                moved = self.session.advance_sequence(writing.entity, column.name, highest)
            except ConnectionLost:
                raise
            except ConnectorError as error:
                self.work.check()
                self.ledger.log(
                    f"{message}: its sequence could not be moved past these rows: {error.message}"
                )
                continue
            if moved is not None:
                self.ledger.log(f"{message}: its sequence continues after {moved}")
        self.ledger.save_step_progress(name, "done")

    def _highest(self, table: TableRows, column: str) -> int | None:
        """Return the highest value of a column among delivered rows, including those of earlier attempts and
        of the first push."""
        only = TableRows(table.index, {**table.spec, "key_columns": [column]}, table.maker)
        highest = None
        for first in range(1, table.count + 1, limits.PUSH_WINDOW_ROWS):
            self.work.check()
            with read_session() as session:
                original = read.original_push(session, self.job.push)
                last = first + limits.PUSH_WINDOW_ROWS - 1
                numbers = read.delivered_row_numbers(session, original, table.index, first, last)
            values = only.key_batch(_row_indexes(table, numbers), self.job.key_spool).column(0)
            try:
                found = pc.max(values.cast(pa.int64())).as_py()
            except pa.ArrowInvalid:
                return None  # text, which the target compares in its own collation
            highest = found if highest is None or (found is not None and found > highest) else highest
        return highest

    # --- Circular foreign keys ---

    def fill_deferred_columns(self, table_index: int) -> None:
        """Set the columns that were sent as NULL because their parents came later. Safe to repeat."""
        table, name = self.job.tables[table_index], f"later:{table_index}"
        continues = any(read.pending_spans(self.job.push, at) for at in range(len(self.job.tables)))
        target = self.session.target(table.deferred_write_spec(self.session))
        done = int(self.ledger.step_progress(name) or 0)
        while done < table.count:
            self.work.check()
            last = min(done + limits.PUSH_CHUNK_ROWS, table.count)
            with read_session() as session:
                # If the earlier push ended before this step, the rows that it delivered still have NULL.
                owner = read.original_push(session, self.job.push) if continues else self.job.push
                delivered = read.delivered_row_numbers(session, owner, table_index, done + 1, last)
                deleted = read.undone_row_numbers(session, owner, table_index, done + 1, last)
                numbers = np.setdiff1d(delivered, deleted, assume_unique=True)
            batch = table.deferred_batch(_row_indexes(table, numbers), self.job.key_spool)
            try:
                target.begin()
                failures = target.send(batch).failures
                target.commit()
            except ConnectorError as error:
                target.rollback()
                if not _fails_only_its_table(self.job, error):
                    raise
                self.work.check()  # a statement that a cancel stopped is not an error of the table
                code, native = _reason(error)
                failures = [
                    RowError(index, code, sql.shorten_message(error.message), native)
                    for index in range(len(numbers))
                ]
            entries = ledger_entries(
                failures,
                numbers.tolist(),
                batch,
                key_columns=table.key_columns,
                sensitive=table.sensitive,
                ms=0,
            )
            if entries:
                columns = ", ".join(table.deferred_columns)
                self.ledger.log(
                    f"{table.name}: {len(entries):,} rows were delivered without {columns}: {entries[0].message}"
                )
            done = last
            self.ledger.write_late_failures(table_index, entries, name, done)

    def clear_circular_keys(self, table_index: int) -> None:
        """Set the circular keys to NULL before their rows are deleted. Safe to repeat."""
        table, name = self.job.tables[table_index], f"loosen:{table_index}"
        target = self.session.target(table.deferred_write_spec(self.session))
        lowest = self.ledger.step_progress(name)
        while True:
            self.work.check()
            processed_range = (int(lowest), table.count) if lowest else None
            numbers = next_row_numbers(self.job.push, table_index, processed_range, limits.PUSH_CHUNK_ROWS)
            if not len(numbers):
                return
            keys = table.key_batch(_row_indexes(table, numbers), self.job.key_spool)
            columns = [*keys.columns, *(pa.nulls(len(numbers)) for _ in table.deferred_columns)]
            batch = pa.RecordBatch.from_arrays(columns, names=[*keys.schema.names, *table.deferred_columns])
            target.begin()
            target.send(batch)  # rows that do not exist are reported when they are to be deleted
            target.commit()
            lowest = int(numbers.min())
            self.ledger.save_step_progress(name, lowest)


def _row_indexes(table: TableRows, numbers: np.ndarray) -> np.ndarray:
    return (numbers - 1 + table.first_row).astype(np.uint64)

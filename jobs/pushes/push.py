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
from jobs.pushes.failures import bad_rows, keys_of, refusal, stopped, table_refused
from jobs.pushes.http import Caller, TargetUnavailable
from jobs.pushes.table import ManyRejected, Sender, generate_rows
from jobs.pushes.wait import Watch
from webapp import clock, limits
from webapp.connections.models import Connection
from webapp.connections.services import connections, inspection
from webapp.connectors.base import ConnectionLost, ConnectorError, Link, RowError, Session
from webapp.connectors.http.channel import Channel
from webapp.connectors.schema import Entity
from webapp.connectors.sql import base as sql
from webapp.errors import ApiError
from webapp.extensions import reading
from webapp.pushes.models import Push
from webapp.pushes.services import completion, planning
from webapp.pushes.services.ledger import read, write
from webapp.pushes.services.ledger.write import Bad, Book, Chunk, next_numbers
from webapp.pushes.services.planning import Order
from webapp.pushes.services.rows import TableRows

log = logging.getLogger(__name__)

KIND = "push"
# Reasons that may be temporary.
AWAY = ("lost", "refused", "unreachable", "unresolved", "timeout", "starting", "too_many_connections")
_MIN_DELIVERED_SHARE = (
    0.2  # chosen: if a smaller share of a table's rows is delivered, no further rows are generated
)
_MAX_ROUNDS = 20  # chosen: how often further rows of a table replace rejected ones
_TRIAL_ROWS = 20  # chosen: rows that are sent to find the columns of a table that cause rejections
REPEATABLE = ("upsert", "update")  # modes whose chunks can safely be sent again when their outcome is unknown


def run(push_id: str) -> None:
    """Execute a push, or continue one whose worker was lost."""
    with leased(KIND, push_id, may=lambda session: completion.is_due(session, push_id)) as work:
        work.on_finish = lambda session: completion.close(session, push_id)
        Runner(work).carry_out()
    completion.settle(push_id)


class Runner:
    """One attempt at one push."""

    def __init__(self, work: Lease) -> None:
        self.work = work
        self.book = Book(work.id, work.transaction)
        self.watch = Watch(work, self._write_end)
        self._has_connected = False
        self._resent: Chunk | None = None

    def carry_out(self) -> None:
        """Run until the push ends or must stop. The ledger is complete then."""
        self.book.load()
        self.order = planning.order(self.work.id)
        before = self.book.push.waiting
        self._has_connected = bool(before and before["connected"])
        if self.book.push.retry_at is not None:
            self.work.save(retry_at=None)
        with self.watch:
            try:
                self._run_with_retries()
            except Interrupted as reason:
                self._write_outcomes(reason)
                raise
            except ConnectorError as error:
                self._write_outcomes(None)
                raise refusal(error) from None
            except ApiError:
                self._write_outcomes(None)
                raise
            finally:
                self._close()
        # The leak check's results for the rows that this attempt generated.
        watches = [(table.name, table.maker.watch) for table in self.order.tables]
        seen = [
            {"table": name, "columns": watch.report(), "unmasked": list(watch.unmasked)}
            for name, watch in watches
            if watch is not None
        ]
        self.work.finish("completed", **({"leaks": seen} if seen else {}))

    def _run_with_retries(self) -> None:
        """Retry until the push is done. Wait for an unavailable target as long as the push allows. Other
        temporary errors are retried after PUSH_WAITS."""
        failures, reached = 0, -1
        while True:
            try:
                self._once()
            except (ConnectorError, OperationalError) as error:
                away = self._is_away(error)
                self._close()
                self.work.check()  # a statement that we cancelled ourselves is not an error of the target
                if not _is_temporary(error):
                    raise
                with contextlib.suppress(OperationalError):
                    self.book.load()
                ended = self._progress()
                if away:
                    self._wait_for_target(error, ended)
                    continue
                failures, reached = (1 if ended > reached else failures + 1), ended
                if failures > len(limits.PUSH_WAITS):
                    self.book.say(f"{_message_of(error)} Gave up after {failures} failures in a row.")
                    if isinstance(error, OperationalError):
                        raise LeaseLost(self.work.id) from error  # our own database failed: the lease expires
                    raise
                wait = limits.PUSH_WAITS[failures - 1]
                self.book.say(f"{_message_of(error)} Retrying in {wait:g} s.")
                with contextlib.suppress(OperationalError):
                    self.book.close()
                pushes_wait.wait(self.work, wait)
            else:
                return

    def _is_away(self, error: ConnectorError | OperationalError) -> bool:
        """Whether the target is unavailable or has closed the connection. Over HTTP this includes a token
        endpoint that is unreachable or overloaded."""
        if not isinstance(error, ConnectorError):
            return False
        if self.order.can.by_row:
            # Without a token no row can be sent, so an unavailable token endpoint pauses a push as the target
            # itself does.
            lacks_token = error.code == "token_request_failed" and error.transient
            return isinstance(error, TargetUnavailable) or lacks_token or error.reason in AWAY
        return isinstance(error, ConnectionLost) or (
            self.watch.session is None and error.transient and _is_temporary(error)
        )

    def _wait_for_target(self, error: ConnectorError | OperationalError, ended: int) -> None:
        """Wait for the next attempt: short waits here, longer ones without a worker (`Postponed`). Raise
        `error` when the push has waited for its maximum time."""
        now, before = clock.now(), self.book.push.waiting
        if before is None or ended > before["ended"]:
            before = {"since": clock.to_text(now), "tries": 0}
        since = datetime.fromisoformat(before["since"])
        left = self.order.wait_seconds - (now - since).total_seconds()
        if left <= 0:
            self.book.say(
                f"{_message_of(error)} Gave up after waiting {self.order.wait_seconds:,} s for the target."
            )
            if isinstance(error, ConnectorError) and not error.hint:
                error.hint = "Resume the push when the target is available again."
            raise error
        tries = before["tries"] + 1
        wait = min(limits.PUSH_TARGET_WAITS[min(tries, len(limits.PUSH_TARGET_WAITS)) - 1], left)
        waiting = {
            "since": before["since"],
            "tries": tries,
            "ended": ended,
            "connected": self._has_connected,
            "reason": getattr(error, "reason", ""),
            "message": _message_of(error),
        }
        self.book.say(f"{_message_of(error)} Waiting for the target, next try in {wait:.0f} s.")
        retry_at = now + timedelta(seconds=wait)
        try:
            self.book.close()
            if wait > limits.PUSH_HELD_SECONDS:
                raise Postponed(self.work.id, retry_at=retry_at, waiting=waiting)
            self.work.save(retry_at=retry_at, waiting=waiting)
            pushes_wait.wait(self.work, wait)
            self.work.save(retry_at=None)
        except OperationalError as own:
            raise LeaseLost(self.work.id) from own  # our own database is unavailable too: the lease expires

    def _progress(self) -> int:
        """Return the number of rows with an outcome in the ledger. Over HTTP, rows that the target did not answer are
        not counted."""
        return self.book.ended_rows - (self.book.push.unknown if self.order.can.by_row else 0)

    def _once(self) -> None:
        """Send all remaining rows in one session."""
        self.book.load()
        # What an earlier session may have sent: the current chunk, and the previous one, whose outcome is
        # written late.
        again = 2 if self._has_connected or self.work.epoch > 1 else 0
        try:
            session = self.watch.session = self.order.open()
        except ConnectorError as error:
            # If an earlier connection succeeded, errors are treated as temporary, such as a restarting server or a
            # full pool.
            error.transient = error.transient or self._has_connected or self.book.ended_rows > 0
            raise
        self._has_connected = True
        left = self.book.push.total - self.book.ended_rows
        attempt = f"attempt {self.work.attempt}: " if self.work.attempt > 1 else ""
        names = ", ".join(table.name for table in self.order.tables)
        self.book.say(f"{attempt}connected; {left:,} rows left ({names})")
        self.book.close()
        self._settle(session)
        self._settle_earlier(session)
        self._check_stop_conditions()
        if isinstance(session, Channel):
            places, undo = range(len(self.order.tables)), self.order.push.kind == "undo"
            for place in reversed(places) if undo else places:
                waiting = self.book.push.waiting
                probing = waiting is not None and self._progress() <= waiting["ended"]
                caller = Caller(
                    self.work, self.book, self.order, session, place, self._resent, probing=probing
                )
                caller.send_all()
            self.book.close()
        elif isinstance(session, Session):
            self._write(session, again)

    def _write(self, session: Session, again: int) -> None:
        """Send all remaining rows to a database."""
        steps = Steps(self.work, self.book, self.order, session)
        places = range(len(self.order.tables))
        kind = self.order.push.kind
        cycles = [place for place in places if self.order.tables[place].later]
        if kind == "push":
            steps.statements("before_sql")
        if kind != "undo":
            steps.create()
        if kind == "undo":
            for place in cycles:
                steps.loosen(place)
        for place in reversed(places) if kind == "undo" else places:
            if kind == "undo":
                found_by, reach = self.order.tables[place].found_by, self.book.reach(place)
                if not found_by or not len(next_numbers(self.order.push, place, reach, 1)):
                    continue  # the table may not exist
            if self.order.tables[place].references:
                self.book.close()  # which parents were delivered is read from the ledger
            with self._foreign_keys(session, place):
                again -= self._send_table(session, place, again)
            if kind != "undo":
                steps.advance(place)
        self.book.close()
        if kind != "undo":
            for place in cycles:
                steps.fill_later(place)
        if kind == "push":
            steps.statements("after_sql")
        self.book.close()

    def _send_table(self, session: Session, place: int, again: int) -> int:
        """Send the rows of one table and return the number of chunks. An error of the whole table ends only
        this table if there are others and the push continues after errors."""
        push = self.order.push
        # Whether columns may stay empty if the target rejects each row with their values: not those that a request
        # lists.
        trial = (
            push.kind == "push"
            and self.order.transactions
            and not self.order.canary
            and bool(self.order.body.get("skip_faulty_tables"))
            and self.book.reach(place) is None
        )
        if trial:
            self._renumber_keys(session, place)
        while True:
            try:
                sender = Sender(self.work, self.book, self.order, session, place, max(0, again), trial=trial)
                if trial:
                    self._advance_sequences(session, sender.entity, self.order.tables[place])
                sent = sender.send_all()
                while self._add_rows(place):
                    sent += Sender(self.work, self.book, self.order, session, place).send_all()
                return sent
            except ManyRejected as rejected:
                trial = False
                if gone := self._vanished_parent(session, place, rejected.bad):
                    self._fail_table(place, rejected.bad.code, rejected.bad.native, gone)
                    return 0
                self._leave_out_columns(session, place, rejected.bad)
            except ConnectorError as error:
                if not _is_permanent(error):
                    raise
                if self._drop_keys(place, error):
                    continue
                if not _ends_only_its_table(self.order, error):
                    raise
                self.work.check()  # a statement that a cancel stopped is not an error of the table
                self._fail_table(place, *_reason(error), error.message)
                return 0

    def _renumber_keys(self, session: Session, place: int) -> None:
        """Assign keys after those that the table has now: triggers of tables that were sent before may have inserted
        rows since the push was planned. Not if rows that were sent refer to the keys already."""
        table = self.order.tables[place]
        sent = self.order.tables[:place]
        if any(
            item["table"] == place
            for rows in sent
            for item in (*rows.references.values(), *rows.from_parent.values())
        ):
            return
        entity = table.entity(session)
        highest = {
            name: session.highest(entity, name) or 0
            for name in table.numbered
            if (column := entity.column(name)) is not None and column.generated == "identity"
        }
        now = max(highest.values(), default=0)
        if now <= max(table.numbered.values(), default=0):
            return
        table.use({**table.spec, "numbered": dict.fromkeys(table.numbered, now)})
        self.order.push.tables = [entry.spec for entry in self.order.tables]
        self.work.save(tables=self.order.push.tables)

    def _advance_sequences(self, session: Session, entity: Entity, table: TableRows) -> None:
        """Move sequences behind the rows that a table has, whose keys were written without them."""
        for column in entity.fields:
            if column.generated != "identity" or column.type != "integer" or column.name in table.columns:
                continue
            try:
                moved = session.advance(entity, column.name, partial(session.highest, entity, column.name))
            except ConnectorError as error:
                if isinstance(error, ConnectionLost) or _is_temporary(error):
                    raise
                continue  # the account may not move it
            if moved is not None:
                self.book.say(f"{table.name}, {column.name}: its sequence continues after {moved}")

    def _leave_out_columns(self, session: Session, place: int, bad: Bad) -> None:
        """Leave out the optional columns of a table because of whose values the target rejects rows: a trigger or a
        function may require values that the catalog does not show, and all rows of a parent may be rejected. Where the
        target rejects as many rows without them, only references to tables without delivered rows are left out."""
        table, push = self.order.tables[place], self.order.push
        spec, optional = table.spec, planning.optional_columns(table.entity(session), table)
        lost = table.lost_parents()
        omitted = [name for name in optional if name in lost]
        numbers = next_numbers(push, place, None, _TRIAL_ROWS)

        def rejected(without: list[str]) -> int:
            """Return how many of the rows the target rejects without some columns. All are rolled back."""
            table.use(planning.without_columns(spec, without))
            self.work.check()
            batch = generate_rows(self.order, place, numbers).batch
            orphans: int = len(numbers) - batch.num_rows
            if not batch.num_rows:
                return orphans
            target = session.target(table.writing(session))
            try:
                target.begin()
                return orphans + len(target.send(batch).failures)
            except ConnectorError as error:
                if isinstance(error, ConnectionLost) or _is_temporary(error):
                    raise
                return len(numbers)
            finally:
                target.rollback()

        fewest = rejected(optional) if optional else len(numbers)
        if fewest < rejected([]):
            omitted = optional
            for name in optional:
                candidate = [item for item in omitted if item != name]
                if rejected(candidate) <= fewest:
                    omitted = candidate
        table.use(planning.without_columns(spec, omitted))
        if omitted:
            listed = ", ".join(omitted)
            self.book.say(f"{table.name}: {listed} left empty, because rows were rejected: {bad.message}")
            push.tables = [item.spec for item in self.order.tables]
            self.work.save(tables=push.tables)

    def _drop_keys(self, place: int, error: ConnectorError) -> bool:
        """Continue without the keys of a table and return True, if the target only cannot return them and no other
        table needs them. If the table is empty, an undo finds the rows by their values."""
        table, push = self.order.tables[place], self.order.push
        needed = any(
            item["table"] == place for entry in self.order.tables for item in entry.from_parent.values()
        )
        if error.details.get("sqlstate") != "0A000" or not table.capture or needed:
            return False
        spec = {**table.spec, "capture": [], "key_columns": []}
        message = "the target returns no keys for inserted rows"
        with reading() as session:
            connection = session.get_one(Connection, push.connection_id)
        if inspection.counts(connection, [table.target], limits.UNDO_COUNT_SECONDS).get(table.target) != 0:
            spec["undo_columns"] = []
            message += ", so this push cannot be undone there"
        self.book.say(f"{table.name}: {message}")
        push.tables = [spec if at == place else entry.spec for at, entry in enumerate(self.order.tables)]
        self.work.save(tables=push.tables)
        table.use(spec)
        return True

    def _add_rows(self, place: int) -> bool:
        """Add as many rows to a table as the target rejected, and return whether any were added.

        Only in a push that skips faulty tables, as a fill does. Not if few of the rows that were sent arrived, or if
        the template has no more rows.
        """
        push, table = self.order.push, self.order.tables[place]
        if (
            push.kind != "push"
            or not self.order.body.get("skip_faulty_tables")
            or not self.order.transactions
        ):
            return False
        if table.spec.get("bad"):  # its rows are supposed to be rejected
            return False
        self.book.close()
        with reading() as session:
            delivered = read.by_table(session, self.book.push)[place].delivered
        requested, rounds = table.spec.get("asked", table.count), table.spec.get("rounds", 0)
        missing = requested - delivered
        count = table.count + missing
        if missing <= 0 or table.mode != "insert" or rounds == _MAX_ROUNDS:
            return False
        if delivered < _MIN_DELIVERED_SHARE * table.count or not table.maker.can_make(table.offset, count):
            return False
        table.use({**table.spec, "asked": requested, "rounds": rounds + 1, "count": count})
        if table.arrivals is not None:
            table.arrivals.forget(place)
        push.tables = [item.spec for item in self.order.tables]
        self.work.save(tables=push.tables, total=self.book.push.total + missing)
        self.book.load()
        self.book.say(f"{table.name}: sending {missing:,} more rows, because the same number was rejected")
        return True

    def _vanished_parent(self, session: Session, place: int, bad: Bad) -> str:
        """Return a message if a table's parent is empty although its rows were delivered; "" if none is."""
        table = self.order.tables[place]
        lost = table.lost_parents()
        for name, item in {**table.references, **table.from_parent}.items():
            parent = self.order.tables[item["table"]]
            if bad.code != "foreign_key" or name in lost or parent is table:
                continue
            if session.sample(parent.entity(session), 1).num_rows == 0:
                return (
                    f"{parent.name} is empty although its rows were written: the target removed them, for example "
                    f"a trigger at the commit because nothing referred to them yet. {bad.message}"
                )
        return ""

    def _fail_table(self, place: int, code: str, native: str, message: str) -> None:
        """Record all remaining rows of a table as failed, because of an error of the whole table."""
        table = self.order.tables[place]
        self.book.say(f"{table.name}: {code}: {message}; its remaining rows were skipped")
        reached = self.book.reach(place)
        while len(numbers := next_numbers(self.order.push, place, reached, limits.PUSH_CHUNK_ROWS)):
            self.work.check()
            low, high = int(numbers.min()), int(numbers.max())
            text = message[: limits.PUSH_MESSAGE_CHARS]
            bad = [Bad(number, code, text, native[:40]) for number in numbers.tolist()]
            self.book.refused(Chunk(place, low, high, len(bad), len(bad)), bad)
            reached = (low, high)

    @contextlib.contextmanager
    def _foreign_keys(self, session: Session, place: int) -> Iterator[None]:
        """Disable foreign key checks if a cycle of NOT NULL columns requires it, while its rows are written
        and while rows that they reference are deleted."""
        tables = self.order.tables
        undo = self.order.push.kind == "undo"
        closed = [table for table in tables if table.unchecked]
        needed = place in {item.references[name]["table"] for item in closed for name in item.unchecked}
        if not (tables[place].unchecked or (undo and needed)):
            yield
            return
        self.book.say(
            f"{tables[place].name}: foreign key checks are disabled because of a circular reference"
        )
        with session.suspended_foreign_keys():
            yield

    def _check_stop_conditions(self) -> None:
        """End the push if a worker died after the row at which it had to stop."""
        push, ended = self.book.push, self.book.ended_rows
        canary = 0 < ended <= self.order.canary
        limit = limits.HTTP_SAME_FAILURES if self.order.can.by_row else limits.PUSH_SAME_FAILURES
        all_failed = self.order.stops_when_all_fail and ended == push.failed >= limit
        if not push.failed or not (self.order.stops or canary or all_failed):
            return
        end = read.rows(self.work.id, state="failed", limit=1)[0]
        name = self.order.tables[end.table].name
        bad = Bad(end.row, end.code, end.message, end.native, end.column)
        raise (
            table_refused(name, bad, ended)
            if all_failed
            else stopped(name, bad, f"Row {end.row:,} of {name} was rejected")
        )

    # --- Chunks in doubt ---

    def _settle(self, session: Link) -> None:
        """Ask the target whether a chunk was committed, and make sure that it can no longer change."""
        chunk = self.book.doubt
        if chunk is None:
            return
        table = self.order.tables[chunk.table]
        if isinstance(session, Session):
            verdict = session.commit_outcome(table.entity(session), chunk.proof) if chunk.proof else None
            repeatable = table.mode in REPEATABLE or not self.order.transactions
            if verdict is None and self.order.push.kind != "undo" and repeatable:
                verdict = False
        else:
            verdict = http.settled(chunk)
        which = f"{table.name}, rows {chunk.first:,} to {chunk.last:,}"
        self._resent = chunk if verdict is False else None
        if verdict:
            self.book.say(f"{which}: it was committed")
            self.book.landed()
            self.book.close()
        elif verdict is False:
            message = "it was not committed; its rows are sent again"
            if isinstance(session, Channel):
                message = "its rows may have been sent; repeating them is safe, so they are sent again"
            self.book.say(f"{which}: {message}")
            self.book.retract()
        else:
            self.book.say(
                f"{which}: it cannot be determined whether its rows were delivered; they are reported as unknown"
            )
            with reading() as own:
                numbers = read.belonging(own, self.order.push, chunk.table, chunk.first, chunk.last)
            batch = table.key_batch(_row_indexes(table, numbers), self.order.spool)
            places = pa.array(range(len(numbers)), pa.int64())
            keys = keys_of(batch, table.key_columns, table.sensitive, places)
            self.book.unknown(dict(zip(numbers.tolist(), keys, strict=True)))  # users can look for these rows

    def _settle_earlier(self, session: Link) -> None:
        """Resolve chunks that were in doubt when an earlier push of these rows ended. Delivered rows are not
        sent again."""
        retry = self.order.push
        if retry.kind != "retry" or not isinstance(session, Session):
            return
        with reading() as own:
            found = [
                (item.id, Chunk(**item.unsettled)) for item in read.unsettled(own, retry) if item.unsettled
            ]
        again = self.order.body.get("again") or {}
        for push_id, chunk in found:
            arrived = session.commit_outcome(self.order.tables[chunk.table].entity(session), chunk.proof)
            with self.work.transaction() as own:
                own_push, push = own.get_one(Push, retry.id), own.get_one(Push, push_id)
                if arrived is not None:
                    count = write.settle(own, push, chunk, arrived, own_push)
                    message = f"{count:,} rows in doubt {'were' if arrived else 'were not'} delivered"
                else:
                    if "unknown" not in again.get("states", ("failed", "unknown")):
                        write.mark_unknown(own, push, chunk, own_push)
                    push.unsettled = None
                    message = "the target could not resolve rows in doubt"
            self.book.say(
                f"{self.order.tables[chunk.table].name}, rows {chunk.first:,} to {chunk.last:,}: {message}"
            )
        if found:
            self.book.close()
            self.book.load()

    # --- Ending ---

    def _write_outcomes(self, reason: Interrupted | None) -> None:
        """Before the work ends: write outcomes, and resolve chunks in doubt if there is time."""
        self._close()
        if isinstance(reason, LeaseLost):
            return
        try:
            if self.book.in_doubt and not isinstance(reason, Released):
                with self.order.open() as session:
                    self._settle(session)
        except (ConnectorError, ApiError, OperationalError) as error:
            self.book.say(f"{_message_of(error)} Chunks in doubt remain unresolved.")
        try:
            self.book.close()
        except OperationalError as error:
            log.warning("%s: could not write the last log lines: %s", self.work.id, type(error).__name__)

    def _write_end(self, reason: Interrupted) -> None:
        """Write the end of a push whose session hangs. Called right before this process exits."""
        try:
            if isinstance(reason, LeaseLost):
                return
            if not self.book.in_doubt:
                self.book.close()
            if isinstance(reason, Released):
                self.work.release()
            elif isinstance(reason, Cancelled):
                self.work.finish("cancelled")
                completion.settle(self.work.id)
        except Interrupted:
            return

    def _close(self) -> None:
        session, self.watch.session = self.watch.session, None
        if session is not None:
            session.close()


def _is_temporary(error: Exception) -> bool:
    """Whether a retry may succeed."""
    return not isinstance(error, ConnectorError) or error.transient or error.reason in AWAY


def _is_permanent(error: ConnectorError) -> bool:
    """Whether an error of the target will not pass by itself, and concerns neither the connection nor the account."""
    return not (
        isinstance(error, ConnectionLost) or _is_temporary(error) or error.code == "read_only_connection"
    )


def _reason(error: ConnectorError) -> tuple[str, str]:
    """Return the reason of an error as one of `base.REASONS`, and the target's own error code."""
    native = str(error.details.get("sqlstate") or "")
    return (sql.reason_of(native) if native else "refused"), native


def _ends_only_its_table(order: Order, error: ConnectorError) -> bool:
    """Whether an error while a table is sent ends that table, and the push continues with the others."""
    is_single = len(order.tables) == 1 or order.push.kind == "undo"
    return _is_permanent(error) and not is_single and order.body.get("on_error", "continue") == "continue"


def _message_of(error: Exception) -> str:
    return getattr(error, "message", "The database of Rowsmith is unavailable.")


class Steps:
    """The steps of one push in one session, before and after its rows: custom SQL, missing tables, sequences, circular
    foreign keys.

    Statements may not be repeatable. Each is recorded before it starts, and one that a lost worker had started is not
    run again.
    """

    def __init__(self, work: Lease, book: Book, order: Order, session: Session) -> None:
        self.work, self.book, self.order, self.session = work, book, order, session

    def statements(self, which: str) -> None:
        """Run `before_sql` or `after_sql`, each statement once. Raises target_failed."""
        for place, statement in enumerate(self.order.body.get(which) or ()):
            name, label = f"{which}:{place}", f"{which}, statement {place + 1}"
            state = self.book.step(name)
            if state == "done":
                continue
            if state == "begun":
                self.book.say(f"{label}: it may have run before and is not repeated")
            else:
                self.work.check()
                self.book.mark(name, "begun")
                try:
                    self.session.execute(statement)
                except ConnectionLost:
                    raise
                except ConnectorError as error:
                    self.work.check()  # a cancel also stops a statement
                    found = refusal(error, statement=label)
                    raise ApiError(found.code, f"{label}: {found.message}", found.details) from None
                self.book.say(f"{label}: done")
            self.book.mark(name, "done")

    def create(self) -> None:
        """Create missing tables if the push requests it."""
        for table in self.order.tables:
            if not table.spec.get("create") or self.session.entity(table.target) is not None:
                continue
            columns, keys = table.new_columns
            self.book.say(f"{table.name}: {self.session.create(table.target, columns, keys)}")
            self.book.close()
            with (
                self.work.transaction() as session
            ):  # the list of tables is read again when it is next needed
                connections.forget_tables(session, self.order.push.connection_id)

    # --- Sequences of the target ---

    def advance(self, place: int) -> None:
        """Move sequences past the keys of the rows, so that the target's next inserts do not conflict. Safe
        to repeat."""
        table, name = self.order.tables[place], f"counter:{place}"
        if table.mode == "update" or self.book.step(name):
            return
        writing = table.writing(self.session)
        counted = [
            item for item in writing.columns if item.type == "integer" and item.generated == "identity"
        ]
        if not counted:
            return
        self.book.close()  # everything that was delivered is in the ledger
        for column in counted:
            message = f"{table.name}, {column.name}"
            try:
                highest = partial(self._highest, table, column.name)
                moved = self.session.advance(writing.entity, column.name, highest)
            except ConnectionLost:
                raise
            except ConnectorError as error:
                self.work.check()
                self.book.say(f"{message}: its sequence could not be moved past these rows: {error.message}")
                continue
            if moved is not None:
                self.book.say(f"{message}: its sequence continues after {moved}")
        self.book.mark(name, "done")

    def _highest(self, table: TableRows, column: str) -> int | None:
        """Return the highest value of a column among delivered rows, including those of earlier attempts and
        of the first push."""
        only = TableRows(table.place, {**table.spec, "key_columns": [column]}, table.maker)
        highest = None
        for first in range(1, table.count + 1, limits.PUSH_WINDOW_ROWS):
            self.work.check()
            with reading() as session:
                original = read.first_of(session, self.order.push)
                last = first + limits.PUSH_WINDOW_ROWS - 1
                numbers = read.delivered(session, original, table.place, first, last)
            values = only.key_batch(_row_indexes(table, numbers), self.order.spool).column(0)
            try:
                found = pc.max(values.cast(pa.int64())).as_py()
            except pa.ArrowInvalid:
                return None  # text, which the target compares in its own collation
            highest = found if highest is None or (found is not None and found > highest) else highest
        return highest

    # --- Circular foreign keys ---

    def fill_later(self, place: int) -> None:
        """Set the columns that were sent as NULL because their parents came later. Safe to repeat."""
        table, name = self.order.tables[place], f"later:{place}"
        continues = any(read.pending_of(self.order.push, at) for at in range(len(self.order.tables)))
        target = self.session.target(table.later_writing(self.session))
        done = int(self.book.step(name) or 0)
        while done < table.count:
            self.work.check()
            last = min(done + limits.PUSH_CHUNK_ROWS, table.count)
            with reading() as session:
                # If the earlier push ended before this step, the rows that it delivered still have NULL.
                owner = read.first_of(session, self.order.push) if continues else self.order.push
                delivered = read.delivered(session, owner, place, done + 1, last)
                deleted = read.undone(session, owner, place, done + 1, last)
                numbers = np.setdiff1d(delivered, deleted, assume_unique=True)
            batch = table.later_batch(_row_indexes(table, numbers), self.order.spool)
            try:
                target.begin()
                failures = target.send(batch).failures
                target.commit()
            except ConnectorError as error:
                target.rollback()
                if not _ends_only_its_table(self.order, error):
                    raise
                self.work.check()  # a statement that a cancel stopped is not an error of the table
                code, native = _reason(error)
                failures = [
                    RowError(index, code, sql.shortened(error.message), native)
                    for index in range(len(numbers))
                ]
            bad = bad_rows(
                failures,
                numbers.tolist(),
                batch,
                key_columns=table.key_columns,
                sensitive=table.sensitive,
                ms=0,
            )
            if bad:
                columns = ", ".join(table.later)
                self.book.say(
                    f"{table.name}: {len(bad):,} rows were delivered without {columns}: {bad[0].message}"
                )
            done = last
            self.book.amend(place, bad, name, done)

    def loosen(self, place: int) -> None:
        """Set the circular keys to NULL before their rows are deleted. Safe to repeat."""
        table, name = self.order.tables[place], f"loosen:{place}"
        target = self.session.target(table.later_writing(self.session))
        lowest = self.book.step(name)
        while True:
            self.work.check()
            reach = (int(lowest), table.count) if lowest else None
            numbers = next_numbers(self.order.push, place, reach, limits.PUSH_CHUNK_ROWS)
            if not len(numbers):
                return
            keys = table.key_batch(_row_indexes(table, numbers), self.order.spool)
            columns = [*keys.columns, *(pa.nulls(len(numbers)) for _ in table.later)]
            batch = pa.RecordBatch.from_arrays(columns, names=[*keys.schema.names, *table.later])
            target.begin()
            target.send(batch)  # rows that do not exist are reported when they are to be deleted
            target.commit()
            lowest = int(numbers.min())
            self.book.mark(name, lowest)


def _row_indexes(table: TableRows, numbers: np.ndarray) -> np.ndarray:
    return (numbers - 1 + table.first).astype(np.uint64)

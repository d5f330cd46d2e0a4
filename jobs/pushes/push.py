"""Carrying out a push: whoever takes it up reads the ledger, settles what is in doubt, and goes on from there.

A crash, a lost connection and a cancel all take the same way: the session is closed, the ledger is read again, the
chunk whose commit is in doubt is asked about in a new session. The rows of a chunk are delivered in the ledger only
when the target is known to have them.
"""

from __future__ import annotations

import contextlib
import logging
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from sqlalchemy.exc import OperationalError

from jobs.lease import Cancelled, Fenced, HandBack, Interrupted, Lease, Postponed, leased
from jobs.pushes import http
from jobs.pushes import wait as pushes_wait
from jobs.pushes.failures import keys_of, refusal, stopped, table_refused
from jobs.pushes.http import Away, Caller
from jobs.pushes.steps import Steps
from jobs.pushes.table import Sender
from jobs.pushes.wait import Watch
from webapp import clock, limits
from webapp.connectors.base import ConnectorError, Link, Lost, Session
from webapp.connectors.channel import Channel
from webapp.errors import ApiError
from webapp.extensions import reading
from webapp.pushes.models import Push
from webapp.pushes.services import completion, planning
from webapp.pushes.services.ledger import read, write
from webapp.pushes.services.ledger.write import Bad, Book, Chunk, next_numbers

log = logging.getLogger(__name__)

KIND = "push"
# Reasons that may pass.
AWAY = ("lost", "refused", "unreachable", "unresolved", "timeout", "starting", "too_many_connections")
REPEATABLE = ("upsert", "update")  # modes whose chunks may be sent again when nobody can tell


def run(push_id: str) -> None:
    """Do one push, or go on with one that was lost."""
    with leased(KIND, push_id, may=lambda session: completion.is_due(session, push_id)) as work:
        work.closing = lambda session: completion.close(session, push_id)
        Runner(work).carry_out()
    completion.settle(push_id)


class Runner:
    """One attempt at one push."""

    def __init__(self, work: Lease) -> None:
        self.work = work
        self.book = Book(work.id, work.transaction)
        self.watch = Watch(work, self._stuck)
        self._was_open = False
        self._resent: Chunk | None = None

    def carry_out(self) -> None:
        """To the end, or until the work must not go on; then the ledger holds all that is known."""
        self.book.load()
        self.order = planning.order(self.work.id)
        before = self.book.push.waiting
        self._was_open = bool(before and before["connected"])
        if self.book.push.retry_at is not None:
            self.work.save(retry_at=None)
        with self.watch:
            try:
                self._persist()
            except Interrupted as reason:
                self._leave(reason)
                raise
            except ConnectorError as error:
                self._leave(None)
                raise refusal(error) from None
            except ApiError:
                self._leave(None)
                raise
            finally:
                self._close()
        seen = self._leaks()
        self.work.finish("completed", **({"leaks": seen} if seen else {}))

    def _leaks(self) -> list[dict[str, Any]]:
        """What the leak check saw of the rows that this attempt made."""
        tables = [(one.name, one.maker.watch) for one in self.order.tables]
        return [{"table": name, "columns": watch.report()} for name, watch in tables if watch is not None]

    def _persist(self) -> None:
        """Try until it is done. Wait for a target that is away as long as the push may wait; whatever else may
        pass is tried again after PUSH_WAITS."""
        failures, reached = 0, -1
        while True:
            try:
                self._once()
            except (ConnectorError, OperationalError) as error:
                away = self._is_away(error)
                self._close()
                self.work.check()  # a statement that we stopped ourselves is no fault of the target
                if not _may_pass(error):
                    raise
                ended = self._reread()
                if away:
                    self._wait_for_target(error, ended)
                    continue
                failures, reached = (1 if ended > reached else failures + 1), ended
                if failures > len(limits.PUSH_WAITS):
                    self.book.say(f"{_cause(error)} Given up after {failures} times in a row.")
                    if isinstance(error, OperationalError):
                        raise Fenced(self.work.id) from error  # of our own database: the lease runs out
                    raise
                wait = limits.PUSH_WAITS[failures - 1]
                self.book.say(f"{_cause(error)} Trying again in {wait:g} s.")
                with contextlib.suppress(OperationalError):
                    self.book.close()
                pushes_wait.wait(self.work, wait)
            else:
                return

    def _is_away(self, error: ConnectorError | OperationalError) -> bool:
        """Whether the target cannot be reached, has dropped the connection, or answers no request."""
        if not isinstance(error, ConnectorError):
            return False
        if self.order.can.by_row:
            return isinstance(error, Away) or (error.code != "token_request_failed" and error.reason in AWAY)
        return isinstance(error, Lost) or (
            self.watch.session is None and error.transient and _may_pass(error)
        )

    def _wait_for_target(self, error: ConnectorError | OperationalError, ended: int) -> None:
        """Wait until the target is tried again: short waits here, longer ones without a worker (`Postponed`). Raises
        `error` when the push has waited for its time."""
        now, before = clock.now(), self.book.push.waiting
        if before is None or ended > before["ended"]:
            before = {"since": clock.to_text(now), "tries": 0}
        since = datetime.fromisoformat(before["since"])
        left = self.order.wait_seconds - (now - since).total_seconds()
        if left <= 0:
            self.book.say(
                f"{_cause(error)} Gave up after waiting {self.order.wait_seconds:,} s for the target."
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
            "connected": self._was_open,
            "reason": getattr(error, "reason", ""),
            "message": _cause(error),
        }
        self.book.say(f"{_cause(error)} Waiting for the target, next try in {wait:.0f} s.")
        retry_at = now + timedelta(seconds=wait)
        try:
            self.book.close()
            if wait > limits.PUSH_HELD_SECONDS:
                raise Postponed(self.work.id, retry_at=retry_at, waiting=waiting)
            self.work.save(retry_at=retry_at, waiting=waiting)
            pushes_wait.wait(self.work, wait)
            self.work.save(retry_at=None)
        except OperationalError as own:
            raise Fenced(self.work.id) from own  # our own database is away, too: the lease runs out

    def _reread(self) -> int:
        """Rows that have their end, by the ledger as it is now, if our own database answers."""
        with contextlib.suppress(OperationalError):
            self.book.load()
        return self._progress()

    def _progress(self) -> int:
        """Rows that have their end. Over HTTP those that the target did not answer do not count."""
        return self.book.ended_rows - (self.book.push.unknown if self.order.can.by_row else 0)

    def _once(self) -> None:
        """All that is left to do, over one session."""
        self.book.load()
        # What an earlier session may have sent: the chunk in hand, and the one before, whose end is written late.
        again = 2 if self._was_open or self.work.epoch > 1 else 0
        session = self.watch.session = self._open()
        self._begin_line()
        self._settle(session)
        self._settle_earlier(session)
        self._heed()
        if isinstance(session, Channel):
            self._call(session)
        elif isinstance(session, Session):
            self._write(session, again)

    def _call(self, channel: Channel) -> None:
        """All that is left to do at a target that speaks HTTP."""
        places, undo = range(len(self.order.tables)), self.order.push.kind == "undo"
        for place in reversed(places) if undo else places:
            waiting = self.book.push.waiting
            probing = waiting is not None and self._progress() <= waiting["ended"]
            caller = Caller(self.work, self.book, self.order, channel, place, self._resent, probing=probing)
            caller.send_all()
        self.book.close()

    def _write(self, session: Session, again: int) -> None:
        """All that is left to do at a database."""
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
            if kind == "undo" and not len(next_numbers(self.order.push, place, self.book.reach(place), 1)):
                continue  # nothing of it arrived: its table need not be there
            again -= Sender(self.work, self.book, self.order, session, place, max(0, again)).send_all()
            if kind != "undo":
                steps.advance(place)
        self.book.close()
        if kind != "undo":
            for place in cycles:
                steps.fill_later(place)
        if kind == "push":
            steps.statements("after_sql")
        self.book.close()

    def _open(self) -> Link:
        """Connect. Where that went well before, whatever is in the way now may pass: a server that starts, a pool that
        is full."""
        try:
            session = self.order.open()
        except ConnectorError as error:
            error.transient = error.transient or self._was_open or self.book.ended_rows > 0
            raise
        self._was_open = True
        return session

    def _begin_line(self) -> None:
        left = self.book.push.total - self.book.ended_rows
        attempt = f"attempt {self.work.attempt}: " if self.work.attempt > 1 else ""
        names = ", ".join(table.name for table in self.order.tables)
        self.book.say(f"{attempt}connected; {left:,} rows to go ({names})")
        self.book.close()

    def _heed(self) -> None:
        """A worker that died after the row that was to be the last must not be followed by one that goes on."""
        push, ended = self.book.push, self.book.ended_rows
        canary = 0 < ended <= self.order.canary
        most = limits.HTTP_SAME_FAILURES if self.order.can.by_row else limits.PUSH_SAME_FAILURES
        alike = self.order.stops_when_all_fail and ended == push.failed >= most
        if not push.failed or not (self.order.stops or canary or alike):
            return
        end = read.rows(self.work.id, state="failed", limit=1)[0]
        name = self.order.tables[end.table].name
        bad = Bad(end.row, end.code, end.message, end.native, end.column)
        raise (
            table_refused(name, bad, ended)
            if alike
            else stopped(name, bad, f"Row {end.row:,} of {name} was refused")
        )

    # --- What is in doubt -------------------------------------------------------------------------------------

    def _settle(self, session: Link) -> None:
        """Ask what became of a chunk whose commit was under way, and see to it that it can change no more."""
        chunk = self.book.doubt
        if chunk is None:
            return
        verdict = self._verdict(session, chunk)
        which = f"{self.order.tables[chunk.table].name}, rows {chunk.first:,} to {chunk.last:,}"
        self._resent = chunk if verdict is False else None
        if verdict:
            self.book.say(f"{which}: the commit had taken place")
            self.book.landed()
            self.book.close()
        elif verdict is False:
            told = "the commit had not taken place; they are sent again"
            if isinstance(session, Channel):
                told = "some may have been sent; the target takes a row twice for one, so they are sent again"
            self.book.say(f"{which}: {told}")
            self.book.retract()
        else:
            self.book.say(f"{which}: nobody can tell whether they arrived; they are reported as unknown")
            self.book.unknown(self._keys(chunk))

    def _settle_earlier(self, session: Link) -> None:
        """Ask what became of chunks that were in doubt when an earlier push of these rows ended. Rows that had arrived
        are not sent again."""
        retry = self.order.push
        if retry.kind != "retry" or not isinstance(session, Session):
            return
        with reading() as own:
            found = [(one.id, Chunk(**one.unsettled)) for one in read.unsettled(own, retry) if one.unsettled]
        again = self.order.ask.get("again") or {}
        for push_id, chunk in found:
            arrived = session.settled(self.order.tables[chunk.table].entity(session), chunk.proof)
            with self.work.transaction() as own:
                mine, push = own.get_one(Push, retry.id), own.get_one(Push, push_id)
                if arrived is not None:
                    count = write.settle(own, push, chunk, arrived, mine)
                    told = f"{count:,} rows that were in doubt {'had' if arrived else 'had not'} arrived"
                else:
                    if "unknown" not in again.get("states", ("failed", "unknown")):
                        write.leave_unknown(own, push, chunk, mine)
                    push.unsettled = None
                    told = "the target cannot tell what became of rows in doubt"
            self.book.say(
                f"{self.order.tables[chunk.table].name}, rows {chunk.first:,} to {chunk.last:,}: {told}"
            )
        if found:
            self.book.close()
            self.book.load()

    def _verdict(self, session: Link, chunk: Chunk) -> bool | None:
        table = self.order.tables[chunk.table]
        if not isinstance(session, Session):
            return http.settled(chunk)
        told = session.settled(table.entity(session), chunk.proof) if chunk.proof else None
        if told is None and self.order.push.kind != "undo":
            safe = table.mode in REPEATABLE or not self.order.transactions
            return False if safe else None
        return told

    def _keys(self, chunk: Chunk) -> dict[int, object]:
        """The key values of a chunk's rows, so that a person can look for them."""
        table = self.order.tables[chunk.table]
        with reading() as session:
            numbers = read.belonging(session, self.order.push, chunk.table, chunk.first, chunk.last)
        batch = table.key_batch((numbers - 1 + table.first).astype("uint64"), self.order.spool)
        places = pa.array(range(len(numbers)), pa.int64())
        keys = keys_of(batch, table.key_columns, table.sensitive, places)
        return dict(zip(numbers.tolist(), keys, strict=True))

    # --- Leaving ----------------------------------------------------------------------------------------------

    def _leave(self, reason: Interrupted | None) -> None:
        """Before the work ends here: what landed is written, what is in doubt is asked about, if there is time."""
        self._close()
        if isinstance(reason, Fenced):
            return
        try:
            if self.book.in_doubt and not isinstance(reason, HandBack):
                with self.order.open() as session:
                    self._settle(session)
        except (ConnectorError, ApiError, OperationalError) as error:
            self.book.say(f"{_cause(error)} What is in doubt stays so.")
        try:
            self.book.close()
        except OperationalError as error:
            log.warning("%s: the last lines are lost: %s", self.work.id, type(error).__name__)

    def _stuck(self, reason: Interrupted) -> None:
        """Called beside a session that hangs for good, right before this process is ended."""
        try:
            if isinstance(reason, Fenced):
                return
            if not self.book.in_doubt:
                self.book.close()
            if isinstance(reason, HandBack):
                self.work.hand_back()
            elif isinstance(reason, Cancelled):
                self.work.finish("cancelled")
                completion.settle(self.work.id)
        except Interrupted:
            return

    def _close(self) -> None:
        session, self.watch.session = self.watch.session, None
        if session is not None:
            session.close()


def _may_pass(error: Exception) -> bool:
    """Whether the same may succeed a moment later."""
    return not isinstance(error, ConnectorError) or error.transient or error.reason in AWAY


def _cause(error: Exception) -> str:
    return getattr(error, "message", "Our own database did not answer.")

"""The steps of a push before and after its rows: custom SQL, missing tables, sequences, circular foreign
keys.

Statements may not be repeatable. Each is recorded before it starts, and one that a lost worker had started is
not run again.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.lease import Lease
from jobs.pushes.failures import bad_rows, refusal
from webapp import limits
from webapp.connectors.base import ConnectionLost, ConnectorError, Session
from webapp.errors import ApiError
from webapp.extensions import reading
from webapp.pushes.services.ledger import read
from webapp.pushes.services.ledger.write import Book, next_numbers
from webapp.pushes.services.planning import Order
from webapp.pushes.services.rows import TableRows


class Steps:
    """The steps of one push in one session."""

    def __init__(self, work: Lease, book: Book, order: Order, session: Session) -> None:
        self.work, self.book, self.order, self.session = work, book, order, session

    def statements(self, which: str) -> None:
        """Run `before_sql` or `after_sql`, each statement once. Raises target_failed."""
        for place, statement in enumerate(self.order.ask.get(which) or ()):
            name, told = f"{which}:{place}", f"{which}, statement {place + 1}"
            state = self.book.step(name)
            if state == "done":
                continue
            if state == "begun":
                self.book.say(f"{told}: it may have run before and is not repeated")
            else:
                self.work.check()
                self.book.mark(name, "begun")
                self._execute(statement, told)
                self.book.say(f"{told}: done")
            self.book.mark(name, "done")

    def _execute(self, statement: str, told: str) -> None:
        try:
            self.session.execute(statement)
        except ConnectionLost:
            raise
        except ConnectorError as error:
            self.work.check()  # a cancel also stops a statement
            found = refusal(error, statement=told)
            raise ApiError(found.code, f"{told}: {found.message}", found.details) from None

    def create(self) -> None:
        """Create missing tables if the push requests it."""
        for table in self.order.tables:
            if not table.spec.get("create") or self.session.entity(table.target) is not None:
                continue
            columns, keys = table.new_columns
            self.book.say(f"{table.name}: {self.session.create(table.target, columns, keys)}")
            self.book.close()

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
        most = None
        for first in range(1, table.count + 1, limits.PUSH_WINDOW_ROWS):
            self.work.check()
            with reading() as session:
                home = read.first_of(session, self.order.push)
                last = first + limits.PUSH_WINDOW_ROWS - 1
                numbers = read.delivered(session, home, table.place, first, last)
            values = only.key_batch(_rows(table, numbers), self.order.spool).column(0)
            try:
                found = pc.max(values.cast(pa.int64())).as_py()
            except pa.ArrowInvalid:
                return None  # text, which the target compares in its own collation
            most = found if most is None or (found is not None and found > most) else most
        return most

    # --- Circular foreign keys ---

    def fill_later(self, place: int) -> None:
        """Set the columns that were sent as NULL because their parents came later. Safe to repeat."""
        table, name = self.order.tables[place], f"later:{place}"
        goes_on = any(read.pending_of(self.order.push, at) for at in range(len(self.order.tables)))
        target = self.session.target(table.later_writing(self.session))
        done = int(self.book.step(name) or 0)
        while done < table.count:
            self.work.check()
            last = min(done + limits.PUSH_CHUNK_ROWS, table.count)
            with reading() as session:
                # If the earlier push ended before this step, the rows that it delivered still have NULL.
                whose = read.first_of(session, self.order.push) if goes_on else self.order.push
                there = read.delivered(session, whose, place, done + 1, last)
                gone = read.undone(session, whose, place, done + 1, last)
                numbers = np.setdiff1d(there, gone, assume_unique=True)
            batch = table.later_batch(_rows(table, numbers), self.order.spool)
            target.begin()
            failures = target.send(batch).failures
            target.commit()
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
        beyond = self.book.step(name)
        while True:
            self.work.check()
            reach = (int(beyond), table.count) if beyond else None
            numbers = next_numbers(self.order.push, place, reach, limits.PUSH_CHUNK_ROWS)
            if not len(numbers):
                return
            keys = table.key_batch(_rows(table, numbers), self.order.spool)
            columns = [*keys.columns, *(pa.nulls(len(numbers)) for _ in table.later)]
            batch = pa.RecordBatch.from_arrays(columns, names=[*keys.schema.names, *table.later])
            target.begin()
            target.send(batch)  # rows that do not exist are reported when they are to be deleted
            target.commit()
            beyond = int(numbers.min())
            self.book.mark(name, beyond)


def _rows(table: TableRows, numbers: np.ndarray) -> np.ndarray:
    return (numbers - 1 + table.first).astype(np.uint64)

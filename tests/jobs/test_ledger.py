"""The book of a push by itself: outcomes that are known after the commit, counts that hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.jobs.pushing import rows, table_spec
from webapp.extensions import read_session, write_session
from webapp.pushes.models import PushRow
from webapp.pushes.services.ledger import read
from webapp.pushes.services.ledger.write import Chunk, LedgerEntry, LedgerWriter, next_row_numbers


@pytest.fixture
def book(pushing):
    value = rows(100)
    result = LedgerWriter(pushing.push([(table_spec("people", value), value)]), write_session)
    result.load()
    return result


def counts(book) -> dict[str, int]:
    with read_session() as session:
        return read.counts(session.merge(book.push, load=False))


ENDS = [
    LedgerEntry(3, "http", "No.", attempts=3, status_code=500),
    LedgerEntry(4, "unknown", "No answer.", state="unknown", attempts=2),
    LedgerEntry(5, "", "", state="delivered", attempts=2, status_code=201),
]


def test_an_outcome_that_is_known_after_the_commit_is_written_with_the_next_chunk(book):
    chunk = Chunk(0, 1, 50, 50)
    book.write_intent(chunk, [])
    book.mark_committed(replace(chunk, last=10, rows=10, failed=1, unknown=1), ENDS)
    assert book.processed_range(0) == (1, 10), "the others of the chunk have no end yet"
    assert next_row_numbers(book.push, 0, book.processed_range(0), 5).tolist() == [11, 12, 13, 14, 15]
    book.write_intent(Chunk(0, 11, 20, 10), [])
    assert {name: n for name, n in counts(book).items() if n} == {
        "total": 100, "delivered": 8, "failed": 1, "unknown": 1, "pending": 90,
    }  # fmt: skip
    result = [row for row in read.rows(book.push_id, limit=20) if row.row in (2, 3, 4, 5)]
    assert [(item.state, item.attempts, item.status_code) for item in result] == [
        ("delivered", 1, None), ("failed", 3, 500), ("unknown", 2, None), ("delivered", 2, 201),
    ]  # fmt: skip
    book.mark_committed()
    book.flush()
    assert counts(book)["delivered"] == 18
    with read_session() as session:
        assert session.query(PushRow).count() == 3, "each is written once"


def test_a_chunk_of_which_nothing_took_place_leaves_no_trace(book):
    chunk = Chunk(0, 1, 50, 50)
    book.write_intent(chunk, [])
    book.mark_committed(replace(chunk, last=0, rows=0))
    assert book.processed_range(0) is None
    book.flush()
    assert counts(book)["pending"] == 100
    assert read.rows(book.push_id) == []


def test_information_about_a_retracted_chunk_is_discarded(book):
    chunk = Chunk(0, 1, 50, 50)
    book.write_intent(chunk, [])
    book.mark_committed(replace(chunk, failed=1, unknown=1), ENDS)
    book.discard_chunk()
    book.flush()
    assert counts(book)["pending"] == 100

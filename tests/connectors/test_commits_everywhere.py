"""A chunk is committed completely or not at all, and the outcome can be determined later, for every kind of target."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from tests.connectors.kinds import Col, Table
from tests.connectors.sending import deliver, target_of
from tests.jobs.waiting import eventually
from webapp.connectors.base import ConnectionLost, ConnectorError

ROWS = {"id": list(range(3_000)), "v": [f"text {row}" for row in range(3_000)]}
CHUNK = pa.record_batch(ROWS)


@pytest.fixture
def table(kind):
    kind.make(Table("kept", {"id": Col(key=True, null=False), "v": Col("text", length=30)}))
    return "kept"


def commit_outcome(kind, commit_token):
    """What a new session says of a chunk."""
    with kind.connector().open() as later:
        return later.commit_outcome(later.entity("kept"), commit_token)


@pytest.mark.needs("transactions")
def test_all_rows_are_visible_after_the_commit_and_none_before(kind, session, table):
    target = target_of(session, table, ["id", "v"])
    target.send(CHUNK)
    assert kind.rows(table, "id") == []
    target.commit()
    assert len(kind.rows(table, "id")) == 3_000


@pytest.mark.needs("transactions")
def test_a_chunk_rolled_back_is_not_there_and_the_next_one_is(kind, session, table):
    target = target_of(session, table, ["id", "v"])
    target.send(CHUNK)
    target.rollback()
    target.begin()
    target.send(CHUNK.slice(0, 2))
    target.commit()
    assert [row[0] for row in kind.rows(table, "id")] == [0, 1]


def test_chunk_after_chunk_is_sent_through_one_target(kind, session, table):
    target = target_of(session, table, ["id", "v"])
    for at in (0, 1_000, 2_000):
        target.begin()
        target.send(CHUNK.slice(at, 1_000))
        target.commit()
    assert [row[0] for row in kind.rows(table, "id")] == ROWS["id"]


def test_rolling_back_twice_and_closing_twice_is_harmless(kind, session, table):
    target = target_of(session, table, ["id", "v"])
    target.rollback()
    target.rollback()
    session.close()
    session.close()


@pytest.mark.needs("cut")
@pytest.mark.parametrize("how", [{}, {"mode": "upsert", "key_columns": ("id",)}])
def test_a_connection_cut_in_mid_chunk_is_lost_and_leaves_nothing(kind, session, table, how):
    target = target_of(session, table, ["id", "v"], **how)
    target.send(CHUNK.slice(0, 1_500))
    kind.cut(session)
    with pytest.raises(ConnectionLost):
        target.send(CHUNK.slice(1_500))
    target.rollback()
    assert kind.rows(table, "id") == []


@pytest.mark.needs("cut")
def test_a_commit_on_a_cut_connection_is_lost_and_settled_as_not_done(kind, session, table):
    target = target_of(session, table, ["id", "v"])
    target.send(CHUNK)
    commit_token = target.commit_token()
    kind.cut(session)
    with pytest.raises(ConnectionLost):
        target.commit()
    assert commit_outcome(kind, commit_token) is False
    assert kind.rows(table, "id") == []


@pytest.mark.needs("cut")
def test_looking_around_on_a_cut_connection_is_lost(kind, session, table):
    kind.cut(session)
    with pytest.raises(ConnectionLost):
        session.metadata()


@pytest.mark.needs("transactions")
def test_a_committed_chunk_is_settled_as_done(kind, session, table):
    target = target_of(session, table, ["id", "v"])
    target.send(CHUNK)
    commit_token = target.commit_token()
    assert commit_token
    target.commit()
    assert commit_outcome(kind, commit_token) is True
    session.close()
    assert commit_outcome(kind, commit_token) is True


@pytest.mark.needs("transactions")
def test_a_chunk_whose_session_ended_before_the_commit_is_settled_as_not_done(kind, session, table):
    target = target_of(session, table, ["id", "v"])
    target.send(CHUNK)
    commit_token = target.commit_token()
    session.close()
    assert commit_outcome(kind, commit_token) is False
    assert kind.rows(table, "id") == []


@pytest.mark.needs("transactions", "held")
def test_settling_ends_a_session_that_still_holds_its_chunk_open(kind, session, table):
    target = target_of(session, table, ["id", "v"])
    target.send(CHUNK)
    commit_token = target.commit_token()
    assert commit_outcome(kind, commit_token) is False
    with pytest.raises(ConnectorError):
        target.commit()
    assert kind.rows(table, "id") == []


@pytest.mark.needs("transactions")
def test_the_same_chunk_goes_through_after_it_was_settled_as_not_done(kind, session, table):
    target = target_of(session, table, ["id", "v"])
    target.send(CHUNK)
    commit_token = target.commit_token()
    session.close()
    with kind.connector().open() as later:
        assert later.commit_outcome(later.entity(table), commit_token) is False
        assert deliver(later, table, ROWS).failures == []
    assert len(kind.rows(table, "id")) == 3_000


@pytest.mark.needs("transactions")
def test_a_chunk_with_only_rejected_rows_is_settled_without_doubt_or_not_at_all(kind, session, table):
    deliver(session, table, {"id": [1], "v": ["a"]})
    target = target_of(session, table, ["id", "v"])
    target.send(pa.record_batch({"id": [1, 1], "v": ["b", "c"]}))
    commit_token = target.commit_token()
    target.commit()
    assert commit_outcome(kind, commit_token) in (True, None)


def test_a_proof_of_another_kind_settles_nothing(kind, session, table):
    assert session.commit_outcome(session.entity(table), {}) is None


@pytest.mark.needs("cut")
def test_a_statement_that_waits_is_stopped_from_another_thread(kind, session, table):
    with kind.connector().open() as holder:
        stored = target_of(holder, table, ["id", "v"])
        stored.send(CHUNK.slice(0, 1))
        outcome = []

        def wait():
            try:
                target_of(session, table, ["id", "v"]).send(CHUNK.slice(0, 1))
            except ConnectorError as error:
                outcome.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()

        def stopped():
            session.cancel()
            waiting.join(0.1)
            return not waiting.is_alive()

        eventually(stopped)
        assert len(outcome) == 1
        stored.rollback()


@pytest.mark.needs("permission")
def test_missing_permission_is_reported_without_blaming_a_row(kind, table):
    with kind.stranger().open() as stranger, pytest.raises(ConnectorError) as caught:
        target_of(stranger, table, ["id", "v"]).send(CHUNK)
    assert caught.value.reason == "no_permission"
    assert kind.rows(table, "id") == []


def test_a_read_only_connection_reads_and_does_not_write(kind, session, table):
    deliver(session, table, {"id": [1], "v": ["a"]})
    with kind.connector(read_only=True).open() as reader:
        assert reader.sample(reader.entity(table), 5).num_rows == 1
        for write in (
            lambda: target_of(reader, table, ["id", "v"]),
            lambda: reader.execute("DELETE FROM kept"),
            lambda: reader.create("other", reader.entity(table).fields, ()),
        ):
            with pytest.raises(ConnectorError) as caught:
                write()
            assert caught.value.code == "read_only_connection"
    assert kind.rows(table, "id", "v") == [(1, "a")]

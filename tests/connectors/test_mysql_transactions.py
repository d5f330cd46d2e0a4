"""What is special to transactions of MySQL and MariaDB, and to keys that the server counts."""

from __future__ import annotations

import threading
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.connectors import mysql_sessions
from tests.connectors.mysql_sessions import target_as_mysql
from tests.connectors.sending import deliver, reasons, target_of
from webapp.connectors.base import ConnectionLost, ConnectorError

kind = mysql_sessions.kind


# --- transactions -------------------------------------------------------------------------------------------


def test_a_table_without_transactions_is_not_written_to(kind, session):
    kind.run("CREATE TABLE old (n INT) ENGINE = MyISAM")
    with pytest.raises(ConnectorError) as error:
        target_of(session, "old", ["n"])
    assert error.value.reason == "unsupported"
    assert "InnoDB" in error.value.hint


def test_ddl_does_not_commit_an_open_chunk(kind, session):
    kind.run("CREATE TABLE t (n INT PRIMARY KEY)")
    target = target_of(session, "t", ["n"])
    target.send(pa.record_batch({"n": [1]}))
    with pytest.raises(ConnectorError) as error:
        session.execute("CREATE TABLE other (n INT)")
    assert error.value.reason == "busy"
    target.rollback()
    assert kind.rows("t", "n") == []


def test_of_two_chunks_in_a_deadlock_one_is_retried(kind, session):
    kind.run("CREATE TABLE t (n INT PRIMARY KEY, v INT)")
    deliver(session, "t", {"n": [1, 2], "v": [0, 0]})
    how = {"mode": "update", "key_columns": ("n",)}
    with kind.connector().open() as other:
        one, two = target_of(session, "t", ["n", "v"], **how), target_of(other, "t", ["n", "v"], **how)
        one.send(pa.record_batch({"n": [1], "v": [1]}))
        two.send(pa.record_batch({"n": [2], "v": [2]}))
        found: list[ConnectorError] = []

        def crossing(target, row):
            try:
                target.send(pa.record_batch({"n": [row], "v": [9]}))
            except ConnectorError as error:
                found.append(error)
                target.rollback()

        waiting = threading.Thread(target=crossing, args=(one, 2))
        waiting.start()
        crossing(two, 1)
        waiting.join()
        assert [(error.reason, error.transient) for error in found] == [("conflict", True)]


def test_a_chunk_whose_keys_the_server_counts_has_a_proof(kind, session):
    kind.run("CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")
    target = target_of(session, "counted", ["v"])
    target.send(pa.record_batch({"v": [5, 5]}))
    commit_token = target.commit_token()
    target.commit()
    with kind.connector().open() as later:
        assert later.commit_outcome(later.entity("counted"), commit_token) is True


def test_a_chunk_without_distinguishing_rows_has_no_commit_token(kind, session):
    kind.run("CREATE TABLE heap (v INT)")
    target = target_of(session, "heap", ["v"])
    target.send(pa.record_batch({"v": [5]}))
    assert target.commit_token() == {}
    target.rollback()
    assert session.commit_outcome(session.entity("heap"), {}) is None


def test_settling_kills_the_old_connection_before_it_answers(kind, session):
    kind.run("CREATE TABLE t (n INT PRIMARY KEY)")
    target = target_of(session, "t", ["n"])
    target.send(pa.record_batch({"n": range(100)}))
    commit_token = target.commit_token()
    with kind.connector().open() as later:
        assert later.commit_outcome(later.entity("t"), commit_token) is False
    with pytest.raises(ConnectionLost):
        target.commit()
    assert kind.rows("t", "n") == []


def test_settling_does_not_kill_a_connection_that_was_given_the_old_number(kind, session):
    kind.run("CREATE TABLE t (n INT PRIMARY KEY)")
    target = target_of(session, "t", ["n"])
    target.send(pa.record_batch({"n": [1]}))
    commit_token = target.commit_token()
    target.commit()
    with kind.connector().open() as later:
        assert (
            later.commit_outcome(later.entity("t"), {**commit_token, "from": ["root", "elsewhere:1"]}) is True
        )
    assert session.sample(session.entity("t"), 1).num_rows == 1


def test_a_key_that_is_kept_otherwise_than_it_was_sent_is_no_proof(kind, session):
    kind.run("CREATE TABLE rounded (v DECIMAL(9, 1) PRIMARY KEY)")
    target = target_of(session, "rounded", ["v"])
    assert target.send(pa.record_batch({"v": [Decimal("1.26")]})).failures == []
    assert target.commit_token() == {}
    target.rollback()


def test_a_chunk_of_which_nothing_went_through_is_settled_as_done(kind, session):
    kind.run("CREATE TABLE t (n INT PRIMARY KEY)")
    deliver(session, "t", {"n": [1]})
    target = target_of(session, "t", ["n"])
    assert len(target.send(pa.record_batch({"n": [1, 1]})).failures) == 2
    commit_token = target.commit_token()
    with kind.connector().open() as later:
        assert later.commit_outcome(later.entity("t"), commit_token) is True


def test_an_admins_statement_does_not_loosen_the_session(kind, session):
    kind.run("CREATE TABLE t (n INT PRIMARY KEY, v VARCHAR(2))")
    for statement in ("SET sql_mode = ''", "USE mysql", "START TRANSACTION", "SET time_zone = '+05:00'"):
        session.execute(statement)
    assert reasons(deliver(session, "t", {"n": [1], "v": ["too long"]})) == {0: "too_long"}


# --- captured keys, counted from the first one --------------------------------------------------------------


def test_keys_are_counted_from_the_first_where_the_server_does_not_return_them(kind, session, monkeypatch):
    kind.run("CREATE TABLE made (id INT AUTO_INCREMENT PRIMARY KEY, v INT UNIQUE)")
    kind.run("INSERT INTO made (v) VALUES (-1)")
    session.execute("SET SESSION auto_increment_increment = 3")
    target = target_as_mysql(session, monkeypatch, "made", ["v"], capture=("id",))
    values = [*range(200), 7, *range(300, 400)]
    sent = target.send(pa.record_batch({"v": values}))
    target.commit()
    assert reasons(sent) == {200: "unique"}
    there = {v: id for id, v in kind.rows("made", "id", "v")}
    assert sent.keys["id"].to_pylist() == [None if row == 200 else there[v] for row, v in enumerate(values)]


def test_values_that_mysql_cannot_return_are_rejected_immediately(kind, session, monkeypatch):
    kind.run("CREATE TABLE made (id INT AUTO_INCREMENT PRIMARY KEY, v INT, at TIMESTAMP DEFAULT NOW())")
    with pytest.raises(ConnectorError) as error:
        target_as_mysql(session, monkeypatch, "made", ["v"], capture=("id", "at"))
    assert error.value.reason == "unsupported"

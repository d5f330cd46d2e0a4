"""A worker that dies on its way into a target without transactions: MongoDB, with keys of the rows' own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bson import Int64, ObjectId

from tests.connectors.kind_mongodb import MongodbKind
from tests.jobs.pushing import Pushing, rows, table_spec
from tests.jobs.test_push import bad, counts
from tests.jobs.test_push_crash import Died, lose
from webapp import limits
from webapp.connectors.base import ConnectionLost
from webapp.connectors.mongodb.connector import MongodbConnector
from webapp.pushes.services import planning

pytestmark = pytest.mark.usefixtures("small_chunks")


@pytest.fixture
def kind(tmp_path):
    result = MongodbKind(tmp_path)
    result.start()
    try:
        yield result
    finally:
        result.stop()


@pytest.fixture
def pushing(app, kind, monkeypatch):
    result = Pushing(app, monkeypatch)
    result.connect = lambda: kind.connector().open()
    with result.connect() as session:
        session.create("people", [], ())
    monkeypatch.setattr(
        planning,
        "load_push_job",
        lambda push_id: replace(result.order(push_id), capabilities=MongodbConnector.can),
    )
    return result


@pytest.fixture
def dies(pushing):
    """`dies(2, "send", 30)`: in the second chunk from now, once 30 of its rows are written, or before its `commit`."""
    connect = pushing.connect

    def arrange(chunk: int, step: str, arrived: int = 0, how: type[BaseException] = Died) -> None:
        done = [0]

        def opened():
            session = connect()
            make = session.target

            def target(writing):
                created = make(writing)
                real = getattr(created, step)

                def dying(*batch):
                    done[0] += 1
                    if done[0] != chunk:
                        return real(*batch)
                    if arrived:
                        real(*(item.slice(0, arrived) for item in batch))
                    raise how("died")

                setattr(created, step, dying)
                return created

            session.target = target
            return session

        pushing.connect = opened

    return arrange


def own_keys(count: int):
    value = rows(count).rename_columns(["_id", "name"])
    return [(table_spec("people", value, key_columns=["_id"]), value)]


def ours(count: int):
    value = rows(count)
    columns = [{"column": "_id", "object_id": "psh_1:0"}, {"column": "name", "field": "name"}]
    return [(table_spec("people", value, key_columns=["_id"], columns=columns), value)]


@pytest.mark.parametrize("tables", [own_keys, ours])
@pytest.mark.parametrize(("step", "arrived"), [("send", 30), ("send", 100), ("commit", 0)])
def test_rows_of_a_chunk_cut_off_are_delivered_once_and_none_is_called_failed(
    pushing, kind, dies, tables, step, arrived
):
    push_id = pushing.push(tables(300))
    dies(2, step, arrived)
    with pytest.raises(Died):
        pushing.do(push_id)
    assert len(kind.documents("people")) == 50 + (arrived or 100)
    lose(push_id)
    done = pushing.do(push_id)
    assert (done.status, counts(done), done.attempt) == ("completed", (300, 0, 0), 2)
    names = [document["name"] for document in kind.documents("people")]
    assert sorted(names) == sorted(f"name {number}" for number in range(1, 301))
    assert {type(document["_id"]) for document in kind.documents("people")} == {
        ObjectId if tables is ours else Int64
    }


def test_a_connection_lost_in_mid_chunk_fails_no_row(pushing, kind, dies, monkeypatch):
    monkeypatch.setattr(limits, "PUSH_RECONNECT_SECONDS", (0.0, 0.0, 0.0))
    push_id = pushing.push(own_keys(300))
    dies(2, "send", 30, ConnectionLost)
    done = pushing.do(push_id)
    assert (done.status, counts(done), done.attempt) == ("completed", (300, 0, 0), 1)
    assert len(kind.documents("people")) == 300


def test_another_document_with_the_same_key_is_rejected_in_a_repeated_chunk_too(pushing, kind, dies):
    push_id = pushing.push(own_keys(300))
    dies(2, "send", 30)
    with pytest.raises(Died):
        pushing.do(push_id)
    with kind.connector().open() as session:
        session.database["people"].update_one({"_id": 60}, {"$set": {"name": "somebody"}})
    lose(push_id)
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (299, 1, 0))
    assert bad(pushing, push_id) == [(60, "unique")]


def test_only_what_was_in_hand_is_taken_for_sent_before(pushing, kind, dies):
    push_id = pushing.push(own_keys(300))
    dies(2, "send", 30)
    with pytest.raises(Died):
        pushing.do(push_id)
    with kind.connector().open() as session:  # written by another client, equal up to the last value
        session.database["people"].insert_one({"_id": 200, "name": "name 200"})
    lose(push_id)
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (299, 1, 0))
    assert bad(pushing, push_id) == [(200, "unique")]


def test_irreversible_rows_are_reported_as_delivered_if_the_first_rejected_row_ends_the_push(pushing, kind):
    with kind.connector().open() as session:
        session.database["people"].insert_one({"_id": 20, "name": "somebody"})
    done = pushing.do(pushing.push(own_keys(300), ask={"on_error": "stop"}))
    assert (done.status, counts(done)) == ("failed", (49, 1, 0))
    assert len(kind.documents("people")) == 1 + done.delivered

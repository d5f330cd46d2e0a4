"""A worker that dies around a commit, a target that cannot say what became of it.

Promise 4 of docs/promises.md.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from jobs import sweeper
from jobs.pushes import push
from tests.jobs.pushing import rows, table_spec
from tests.jobs.test_push import bad, counts, people
from webapp import clock, limits
from webapp.connectors.base import ConnectionLost
from webapp.connectors.postgresql.session import PostgresqlTarget
from webapp.connectors.sqlite.session import SqliteTarget
from webapp.extensions import write_session
from webapp.pushes.models import Push
from webapp.pushes.services.ledger import read

pytestmark = pytest.mark.usefixtures("small_chunks")


class Died(BaseException):
    """The effect of a kill: an exception that no code handles."""


@pytest.fixture
def dies(pushing):
    """`dies(3, after=True)`: the process dies around the third commit from now; `how` is raised."""
    connect = pushing.connect

    def arrange(commit: int, *, after: bool, how: type[BaseException] = Died) -> None:
        done = [0]

        def opened():
            session = connect()
            make = session.target

            def target(writing):
                created = make(writing)
                real = created.commit

                def dying() -> None:
                    done[0] += 1
                    if done[0] != commit:
                        real()
                        return
                    if after:
                        real()
                    session.close()
                    raise how("died")

                created.commit = dying
                return created

            session.target = target
            return session

        pushing.connect = opened

    yield arrange
    pushing.connect = connect


def lose(push_id: str) -> None:
    with write_session() as session:
        past = clock.now() - timedelta(seconds=1)
        session.execute(sa.update(Push).where(Push.id == push_id).values(lease_until=past))


@pytest.mark.parametrize("after", [True, False])
def test_row_is_not_sent_twice_after_worker_dies_around_a_commit(pushing, ask, dies, after):
    push_id = pushing.push(people(500, age=lambda i: 95 if i == 120 else 30))
    dies(3, after=after)
    with pytest.raises(Died):
        pushing.do(push_id)
    left = pushing.read(push_id)
    assert (left.status, left.delivered, left.intent["chunk"]["first"]) == ("running", 150 - 1, 151)
    lose(push_id)
    done = pushing.do(push_id)
    assert (done.status, counts(done), done.attempt) == ("completed", (499, 1, 0), 2)
    assert ask("SELECT count(*), count(DISTINCT id) FROM people") == [(499, 499)]
    verdict = "it was committed" if after else "it was not committed"
    assert any(verdict in line.text for line in read.log_lines(push_id))


def test_a_connection_lost_at_a_commit_is_settled_over_a_new_one(pushing, ask, dies, monkeypatch):
    monkeypatch.setattr(limits, "PUSH_RECONNECT_SECONDS", (0.0, 0.0, 0.0))
    push_id = pushing.push(people(500))
    dies(2, after=True, how=ConnectionLost)
    done = pushing.do(push_id)
    assert (done.status, counts(done), done.attempt) == ("completed", (500, 0, 0), 1)


def test_rows_without_a_way_to_query_the_outcome_are_unknown_at_most_one_chunk_with_their_keys(
    pushing, ask, dies, monkeypatch, target
):
    push_id = pushing.push(people(500))
    dies(3, after=True)
    with pytest.raises(Died):
        pushing.do(push_id)
    lose(push_id)
    silent(monkeypatch, pushing)
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (400, 0, 100))
    result = read.rows(push_id, state="unknown", limit=200)
    assert [item.row for item in result] == list(range(151, 251))
    assert result[0].key == {"id": 151}


def silent(monkeypatch, pushing) -> None:
    """The target cannot say what became of a transaction."""
    with pushing.connect() as session:
        monkeypatch.setattr(type(session), "commit_outcome", lambda *_: None)


def test_an_upsert_without_a_way_to_query_the_outcome_is_sent_again(pushing, ask, dies, monkeypatch):
    value = rows(500, age=lambda i: 30)
    push_id = pushing.push([(table_spec("people", value, mode="upsert"), value)])
    dies(3, after=True)
    with pytest.raises(Died):
        pushing.do(push_id)
    lose(push_id)
    silent(monkeypatch, pushing)
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (500, 0, 0))
    assert ask("SELECT count(*) FROM people") == [(500,)]


def test_captured_keys_of_a_chunk_outlive_the_death_of_its_worker(pushing, ask, dies):
    parents, children = rows(230).drop_columns(["id"]), rows(230, boss=lambda i: i - 1).drop_columns(["id"])
    refer = {"boss": {"table": 0, "column": "id", "field": "boss"}}
    tables = [
        (table_spec("staff", parents, capture=["id"]), parents),
        (table_spec("staff", children, capture=["id"], from_parent=refer), children),
    ]
    push_id = pushing.push(tables, parents={"boss": "boss"})
    dies(2, after=True)
    with pytest.raises(Died):
        pushing.do(push_id)
    lose(push_id)
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (460, 0, 0))
    assert ask("SELECT count(*) FROM staff c JOIN staff p ON c.boss = p.id WHERE c.name = p.name") == [(230,)]


def test_a_push_whose_workers_are_lost_three_times_fails_with_a_line_and_no_row_made_up(
    pushing, ask, dies, client
):
    push_id = pushing.push(people(500))
    connect = pushing.connect
    for commit in (2, 1, 1):
        pushing.connect = connect
        dies(commit, after=False)
        with pytest.raises(Died):
            pushing.do(push_id)
        lose(push_id)
    assert sweeper.sweep(client, clock.now())["failed"] == 1
    ended = pushing.read(push_id)
    assert (ended.status, ended.error["code"], counts(ended)) == ("failed", "worker_lost", (50, 0, 100))
    assert "lost 3 times" in read.log_lines(push_id)[-1].text
    assert ask("SELECT count(*) FROM people") == [(50,)]


def test_a_deferred_constraint_names_its_row_by_halves(pushing, ask, target, postgres_only):
    with target[1].begin() as connection:
        connection.exec_driver_sql("ALTER TABLE people ADD UNIQUE (name) DEFERRABLE INITIALLY DEFERRED")
    push_id = pushing.push(people(300, name=lambda i: "same" if i in (60, 260) else f"name {i}"))
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (299, 1, 0))
    assert bad(pushing, push_id) == [(260, "unique")]
    assert ask("SELECT count(*) FROM people") == [(299,)]


def test_rows_that_violate_a_deferred_constraint_are_found_without_a_commit_for_each(
    pushing, ask, target, postgres_only, monkeypatch
):
    with target[1].begin() as connection:
        connection.exec_driver_sql("CREATE TABLE levels (n int PRIMARY KEY)")
        connection.exec_driver_sql("INSERT INTO levels VALUES (30)")
        connection.exec_driver_sql(
            "ALTER TABLE people ADD FOREIGN KEY (age) REFERENCES levels DEFERRABLE INITIALLY DEFERRED"
        )
    push_id = pushing.push(people(400, age=lambda i: 31 if i % 2 else 30))
    commits, real = [], PostgresqlTarget.commit

    def commit(target):
        commits.append(1)
        real(target)

    monkeypatch.setattr(PostgresqlTarget, "commit", commit)
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (200, 200, 0))
    assert {code for _, code in bad(pushing, push_id)} == {"foreign_key"}
    assert [number for number, _ in bad(pushing, push_id)] == list(range(1, 400, 2))
    assert ask("SELECT count(*) FROM people") == [(200,)]
    assert len(commits) < 20


def boss(number: int) -> int | None:
    """Of each twenty rows, one refers to a row that does not exist, the next to that one, and one to a later row."""
    if number == 1 or number % 20 == 3:
        return None
    return number + {0: 100_000, 2: 1}.get(number % 20, -1)


def test_rows_that_refer_to_missing_rows_of_their_own_table_are_found_without_a_commit_for_each(
    pushing, ask, target, monkeypatch
):
    with target[1].begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE ranks (id bigint PRIMARY KEY, name varchar(60) NOT NULL, age int, "
            "boss bigint REFERENCES ranks (id) DEFERRABLE INITIALLY DEFERRED)"
        )
    push_id = pushing.push(people(400, "ranks", boss=boss))
    commits = []
    for kind in (PostgresqlTarget, SqliteTarget):
        monkeypatch.setattr(
            kind, "commit", lambda target, real=kind.commit: commits.append(1) or real(target)
        )
    done = pushing.do(push_id)
    wrong = [number for number in range(2, 401) if number % 20 in (0, 1)]
    assert [number for number, _ in bad(pushing, push_id)] == wrong
    assert {code for _, code in bad(pushing, push_id)} == {"foreign_key"}
    assert (done.status, counts(done)) == ("completed", (400 - len(wrong), len(wrong), 0))
    assert ask("SELECT count(*), count(boss) FROM ranks") == [(361, 340)]
    assert len(commits) < 20


def test_a_row_whose_parent_is_rejected_for_another_reason_is_rejected_too(pushing, ask, target):
    with target[1].begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE ranks (id bigint PRIMARY KEY, name varchar(60) NOT NULL, age int CHECK (age < 90), "
            "boss bigint REFERENCES ranks (id) DEFERRABLE INITIALLY DEFERRED)"
        )
    value = {"age": lambda i: 95 if i == 10 else 30, "boss": lambda i: 10 if i in (5, 11) else None}
    push_id = pushing.push(people(40, "ranks", **value))
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (37, 3, 0))
    assert bad(pushing, push_id) == [(5, "foreign_key"), (10, "check"), (11, "foreign_key")]
    assert ask("SELECT count(*) FROM ranks") == [(37,)]


@pytest.fixture
def postgres_only(target):
    if target[0].startswith("sqlite"):
        pytest.skip("SQLite has no deferred unique constraints")


def test_the_ledger_is_the_truth_when_our_own_database_fails_for_a_moment(pushing, ask, monkeypatch):
    monkeypatch.setattr(limits, "PUSH_RECONNECT_SECONDS", (0.0, 0.0, 0.0))
    push_id = pushing.push(people(500))
    real, calls = push.LedgerWriter.write_intent, []

    def failing(book, chunk, failed):
        calls.append(1)
        if len(calls) == 3:
            raise sa.exc.OperationalError("UPDATE", {}, Exception("away"))
        real(book, chunk, failed)

    monkeypatch.setattr(push.LedgerWriter, "write_intent", failing)
    done = pushing.do(push_id)
    assert (done.status, counts(done)) == ("completed", (500, 0, 0))
    assert ask("SELECT count(*) FROM people") == [(500,)]


@pytest.mark.parametrize("wish", [{"on_error": "stop"}, {"canary": 50}])
def test_a_stopped_push_does_not_continue_after_its_worker_died(pushing, ask, monkeypatch, wish):
    push_id = pushing.push(people(500, age=lambda i: 95 if i == 20 else 30), ask=wish)

    def died(*_):
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(push.DatabaseSender, "_check_stop_conditions", died)
        with pytest.raises(Died):
            pushing.do(push_id)
    lose(push_id)
    done = pushing.do(push_id)
    assert (done.status, done.failed) == ("failed", 1)
    assert "Row 20 of people was rejected" in done.error["message"]
    assert ask("SELECT count(*) FROM people") == [(done.delivered,)]
    assert done.delivered < 50


def test_our_own_database_away_for_long_ends_no_push(pushing, ask, monkeypatch):
    monkeypatch.setattr(limits, "PUSH_RECONNECT_SECONDS", (0.0, 0.0, 0.0))
    push_id = pushing.push(people(500))

    def failing(*_):
        raise sa.exc.OperationalError("UPDATE", {}, Exception("away"))

    with monkeypatch.context() as patched:
        patched.setattr(push.LedgerWriter, "write_intent", failing)
        assert pushing.do(push_id).status == "running", "its lease runs out"
    lose(push_id)
    done = pushing.do(push_id)
    assert (done.status, counts(done), done.attempt) == ("completed", (500, 0, 0), 2)

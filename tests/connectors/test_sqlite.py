"""What only SQLite has: a file in the workspace's folder, out of which nothing leads."""

from __future__ import annotations

import sqlite3

import pyarrow as pa
import pytest
from pydantic import ValidationError

from tests.connectors.kinds import GATE
from tests.connectors.sending import deliver, reasons, target_of
from webapp.connectors.base import ConnectorError
from webapp.connectors.schema import Column
from webapp.connectors.sqlite.connector import SqliteConnector

Settings = SqliteConnector.Settings


@pytest.fixture
def connector(tmp_path):
    return SqliteConnector(Settings(file="shop.db"), GATE, folder=str(tmp_path / "space"))


@pytest.fixture
def session(connector):
    with connector.open() as found:
        yield found


def test_a_missing_file_is_created(connector, tmp_path):
    assert all(stage.ok for stage in connector.stages())
    assert [path.name for path in (tmp_path / "space").iterdir()] == ["shop.db"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../x.db",
        "a/b.db",
        "/etc/passwd",
        "..",
        ".hidden",
        "a\\b",
        "a\0b",
        "x:y",
        "a.db-wal",
        " a",
        "a\n",
        "-a",
    ],
)
def test_names_that_leave_the_workspace_are_rejected(name):
    for value in ({"file": name}, {"connection_string": f"sqlite:///{name}"}):
        with pytest.raises(ValidationError):
            Settings(**value)


def test_a_url_names_a_file_of_the_folder_too():
    assert Settings(connection_string="sqlite:///my shop.db").name == "my shop.db"


def test_a_link_out_of_the_folder_is_not_followed(connector, tmp_path):
    (tmp_path / "space").mkdir()
    (tmp_path / "secret.db").touch()
    (tmp_path / "space" / "shop.db").symlink_to(tmp_path / "secret.db")
    (stage,) = connector.stages()
    assert (stage.name, stage.code) == ("resolve", "bad_settings")
    with pytest.raises(ConnectorError):
        connector.open()


def test_a_file_that_is_not_a_database_is_reported(connector, tmp_path):
    (tmp_path / "space").mkdir()
    (tmp_path / "space" / "shop.db").write_text("plain words, and many of them" * 100)
    assert list(connector.stages())[-1].code == "not_sqlite"


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH DATABASE '{outside}' AS other",
        "VACUUM INTO '{outside}'",
        "PRAGMA temp_store_directory = '/etc'",
        "PRAGMA query_only = OFF",
        "PRAGMA max_page_count = 1000000000",
        "SELECT load_extension('x')",
    ],
)
def test_no_statement_leads_out_of_the_file(session, tmp_path, statement):
    outside = tmp_path / "outside.db"
    with pytest.raises(ConnectorError):
        session.execute(statement.format(outside=outside))
    with pytest.raises(ConnectorError):
        session.query(statement.format(outside=outside), {}, 1)
    assert not outside.exists()


def test_a_file_grows_only_so_far(connector, monkeypatch):
    monkeypatch.setattr("webapp.limits.SQLITE_FILE_BYTES", 200_000)
    with connector.open() as session:
        session.create("big", [Column("v", "text", "")], [])
        with pytest.raises(ConnectorError) as caught:
            deliver(session, "big", {"v": ["x" * 10_000] * 100})
    assert caught.value.reason == "full"


def test_a_writing_statement_in_a_query_is_rejected(session):
    session.create("t", [Column("a", "integer", "")], [])
    for text in (
        "INSERT INTO t VALUES (1)",
        "DROP TABLE t",
        "PRAGMA user_version = 5",
        "SELECT 1; DROP TABLE t",
    ):
        with pytest.raises(ConnectorError):
            session.query(text, {}, 5)
    assert session.query("SELECT count(*) AS n FROM t", {}, 5).to_pylist() == [{"n": 0}]


def test_queries_run_under_a_time_limit(session, monkeypatch):
    monkeypatch.setattr("webapp.limits.TARGET_QUERY_SECONDS", 0.1)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with pytest.raises(ConnectorError) as caught:
        session.query(endless, {}, 1)
    assert caught.value.reason == "timeout"
    assert session.query("SELECT 1 AS one", {}, 1).to_pylist() == [{"one": 1}]


def test_triggers_reject_and_skip_row_by_row(session):
    session.create("t", [Column("n", "integer", "")], [])
    session.execute(
        "CREATE TRIGGER judge BEFORE INSERT ON t BEGIN SELECT RAISE(ABORT, 'not so') WHERE NEW.n = 3;"
        " SELECT RAISE(IGNORE) WHERE NEW.n = 5; END"
    )
    sent = deliver(session, "t", {"n": list(range(8))})
    assert reasons(sent) == {3: "refused", 5: "refused"}
    assert sent.failures[0].message == "not so"


def test_a_trigger_that_rolls_everything_back_blames_no_row(session):
    session.create("t", [Column("n", "integer", "")], [])
    session.execute(
        "CREATE TRIGGER out BEFORE INSERT ON t WHEN NEW.n = 3 BEGIN SELECT RAISE(ROLLBACK, 'all'); END"
    )
    with pytest.raises(ConnectorError) as caught:
        deliver(session, "t", {"n": list(range(8))})
    assert caught.value.reason == "rolled_back"
    assert session.sample(session.entity("t"), 10).num_rows == 0


def test_a_deferred_foreign_key_rejects_the_commit(session):
    session.execute("CREATE TABLE p (id INTEGER PRIMARY KEY)")
    session.execute("CREATE TABLE c (id INT REFERENCES p DEFERRABLE INITIALLY DEFERRED)")
    target = target_of(session, "c", ["id"])
    assert target.send(pa.record_batch({"id": [1]})).failures == []
    commit_token = target.commit_token()
    with pytest.raises(ConnectorError) as caught:
        target.commit()
    assert caught.value.reason == "deferred"
    assert session.commit_outcome(session.entity("c"), commit_token) is False


def test_only_rows_whose_parents_are_missing_are_rejected_before_the_commit(session):
    session.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, p INT REFERENCES t DEFERRABLE INITIALLY DEFERRED)"
    )
    target = target_of(session, "t", ["id", "p"])
    assert target.check_constraints_immediately()
    assert not target.check_constraints_immediately()
    # Rows 1 and 2 have no parent. Row 5 exists, because the second row with this key is valid.
    found = target.send(pa.record_batch({"id": [1, 2, 5, 5, 6, 7], "p": [9, 1, 9, None, 5, 7]})).failures
    assert [(error.index, error.reason) for error in found] == [
        (0, "foreign_key"),
        (1, "foreign_key"),
        (2, "foreign_key"),
    ]
    target.commit()
    assert [tuple(row) for row in session.connection.execute("SELECT id, p FROM t")] == [
        (5, None),
        (6, 5),
        (7, 7),
    ]


def test_a_row_may_refer_to_a_key_that_sqlite_assigns(session):
    session.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, p INT REFERENCES t DEFERRABLE INITIALLY DEFERRED)"
    )
    target = target_of(session, "t", ["p"])
    target.check_constraints_immediately()
    found = target.send(pa.record_batch({"p": [2, None, 1, 9]})).failures
    assert [(error.index, error.reason) for error in found] == [(3, "foreign_key")]
    target.commit()


def test_tables_without_rowids_and_deleted_rows_are_settled_too(session):
    session.execute("CREATE TABLE w (a TEXT, b INT, PRIMARY KEY (a, b)) WITHOUT ROWID")
    entity = session.entity("w")
    assert (entity.keys, entity.column("a").nullable) == (("a", "b"), False)
    for action in ("send", "delete"):
        for commit in (False, True):
            target = target_of(session, "w", ["a", "b"], key_columns=("a", "b"))
            assert getattr(target, action)(pa.record_batch({"a": ["x"], "b": [1]})).failures == []
            commit_token = target.commit_token()
            (target.commit if commit else target.rollback)()
            assert session.commit_outcome(entity, commit_token) is commit


def test_a_row_of_the_same_number_written_by_another_is_no_proof(session, connector):
    session.create("t", [Column("v", "text", "")], [])
    target = target_of(session, "t", ["v"])
    target.send(pa.record_batch({"v": ["mine"]}))
    commit_token = target.commit_token()
    target.rollback()
    with connector.open() as other:
        deliver(other, "t", {"v": ["theirs"]})
    assert session.commit_outcome(session.entity("t"), commit_token) is False


def test_a_file_locked_by_another_writer_is_still_in_doubt(connector, session, monkeypatch):
    session.create("t", [Column("v", "text", "")], [])
    target = target_of(session, "t", ["v"])
    target.send(pa.record_batch({"v": ["a"]}))
    with connector.open(timeout=0.1) as other:
        assert other.commit_outcome(other.entity("t"), target.commit_token()) is None
        with pytest.raises(ConnectorError) as caught:
            target_of(other, "t", ["v"])
        assert (caught.value.reason, caught.value.transient) == ("locked", True)
    target.commit()


def test_the_catalog_reads_what_people_declare(session):
    session.execute("CREATE TABLE kinds (id INTEGER PRIMARY KEY, code CHAR(3))")
    session.execute(
        """CREATE TABLE t (id INTEGER PRIMARY KEY, k INT REFERENCES kinds, a VARCHAR (12) CHECK (length(a) > 2),
        d NUMERIC(9, 2) DEFAULT 1.5, e AS (d * 2), f, g BOOLEAN NOT NULL, -- CHECK (no
        CHECK (d > 0 AND a <> ')'), UNIQUE (a, d))"""
    )
    entity = session.entity("t")
    found = {column.name: column for column in entity.fields}
    assert {name: column.type for name, column in found.items()} == {
        "id": "integer", "k": "integer", "a": "text", "d": "decimal", "e": "other", "f": "other", "g": "boolean",
    }  # fmt: skip
    assert (found["id"].generated, found["e"].generated, found["a"].max_length) == (
        "identity",
        "computed",
        12,
    )
    assert entity.relations[0].entity_columns == ("id",)
    assert entity.checks == ("length(a) > 2", "d > 0 AND a <> ')'")
    assert entity.uniques == (("a", "d"),)


def test_a_number_that_is_too_large_fails_without_affecting_others(session):
    session.create("t", [Column("n", "integer", "")], [])
    sent = deliver(session, "t", {"n": pa.array([1, 2**64 - 1], pa.uint64())})
    assert reasons(sent) in ({}, {1: "out_of_range"})


def test_documents_of_another_program_are_sampled_unchanged(session, tmp_path):
    other = sqlite3.connect(tmp_path / "space" / "shop.db")
    other.execute("CREATE TABLE seen (a INT, b DATE, c BLOB, d BOOLEAN)")
    other.execute("INSERT INTO seen VALUES (1, '2024-01-31', x'00ff', 1), ('one', 'soon', 'text', NULL)")
    other.commit()
    other.close()
    rows = session.sample(session.entity("seen"), 5).to_pylist()
    assert [row["a"] for row in rows] == ["1", "one"]
    assert [row["b"] for row in rows] == ["2024-01-31", "soon"]
    assert [row["d"] for row in rows] == [True, None]

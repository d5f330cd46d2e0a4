"""Promise 28. No query, filter or source of a user writes: the attacks that did, against real servers."""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar

import pytest

from tests.connectors.kinds import Kind
from webapp.connectors import sql
from webapp.connectors.base import ConnectorError, Session
from webapp.connectors.statement_session import StatementSession
from webapp.engine.formats.sql_dialects import DIALECTS

# Each leaves a read-only transaction where more than one statement is carried out.
STACKED = (
    "select 13; delete from victim",
    "select 13; commit; delete from victim; commit",
    "select 13; commit; begin read write; delete from victim; commit",
    "select 13; rollback; start transaction; delete from victim; commit",
    "select 13;\n--\ncommit;/* */begin;delete from victim;commit",
    "select 13 limit 1; set session characteristics as transaction read write; commit; delete from victim",
    "commit; delete from victim",
    "with gone as (delete from victim returning id) select * from gone",
    "do $$ begin delete from victim; end $$",
    "call wipe()",
    "explain analyze delete from victim",
    "insert into victim values (9) returning id",
    "select * from victim for update; delete from victim",
    "select 1 into outfile '/tmp/rowsmith-attack'",
    "select 1; prepare p as delete from victim; commit; execute p",
)
FILTERS = (
    "1=1); delete from victim; select 1 from victim where (1=1",
    "1=1); commit; begin read write; delete from victim; commit; select 1 from victim where (1=1",
    "1=1) union select 1; commit; delete from victim --",
    "id in (select 1)) or (1=1",
    "(1=1",
    "1=1; delete from victim",
    "id = 'x",
    "1=1 /* open",
)


@pytest.fixture
def victim(kind: Kind) -> None:
    if kind.name in ("mongodb", "mssql"):
        pytest.skip("no server of this kind that takes SQL; see the tests of statements below")
    kind.run("CREATE TABLE victim (id int NOT NULL, PRIMARY KEY (id))")
    for number in (1, 2):
        kind.run(f"INSERT INTO victim (id) VALUES ({number})")


def rows_left(kind: Kind) -> int:
    return int(kind.run("SELECT count(*) FROM victim")[0][0])


def read(session: Session, text: str) -> None:
    for ask in (lambda: session.query(text, {}, 5), lambda: list(session.stream(text))):
        with suppress(ConnectorError):
            ask()


@pytest.mark.parametrize("read_only", [True, False])
def test_stacked_statements_do_not_write(kind, victim, read_only):
    for text in STACKED:
        with kind.connector(read_only=read_only).open() as session:
            read(session, text)
            read(session, "SELECT id FROM victim")
        assert rows_left(kind) == 2, text


def test_filters_do_not_leave_their_parentheses(kind, victim):
    for where in FILTERS:
        with kind.connector(read_only=True).open() as session:
            entity = session.entity("victim")
            with pytest.raises(ConnectorError) as caught:
                list(session.keys(entity, ["id"], where))
            assert caught.value.reason == "bad_query", where
        assert rows_left(kind) == 2, where


@pytest.mark.parametrize(
    "where", ["id > 0", "(id = 1 or id = 2) -- both", "id in (1, 2) and ')' <> '('", "id > 0 /* ) ; */"]
)
def test_honest_filters_are_read(kind, victim, where):
    with kind.connector(read_only=True).open() as session:
        batches = list(session.keys(session.entity("victim"), ["id"], where))
    assert sorted(value for batch in batches for value in batch.column(0).to_pylist()) == [1, 2]


def test_functions_do_not_leave_read_only_mode(kind, victim):
    if kind.name != "postgresql":
        pytest.skip("functions of PostgreSQL")
    kind.run(
        "CREATE FUNCTION wipe() RETURNS int LANGUAGE plpgsql AS $$ BEGIN DELETE FROM victim; RETURN 1; END $$"
    )
    for text in (
        "select wipe()",
        "select set_config('transaction_read_only', 'off', false), wipe()",
        "select set_config('default_transaction_read_only', 'off', false)",
        "select nextval('own')",
        "select query_to_xml('delete from victim', true, true, '')",
    ):
        with kind.connector(read_only=True).open() as session:
            read(session, text)
            with pytest.raises(ConnectorError):
                session.execute("DELETE FROM victim")
        assert rows_left(kind) == 2, text


def test_statements_before_and_after_a_push_are_one_statement_each(kind, victim):
    if kind.name != "postgresql":
        pytest.skip("the driver of other kinds takes one statement")
    with kind.connector().open() as session, pytest.raises(ConnectorError):
        session.execute("delete from victim where id = 1; delete from victim")
    assert rows_left(kind) == 2


@pytest.mark.parametrize(
    "text",
    [
        *STACKED,
        "select 1 commit delete from victim",
        "select 1 updatetext t.c 0x1 0 0 'x'",
        "select 1 receive * from queue1",
        "select 1 end conversation 'x'",
        "select 1 exec sp_executesql N'delete'",
        "select 1 /* /* */ delete from victim */",
        "select '--' delete from victim --'",
    ],
)
def test_stacked_statements_of_sql_server_oracle_and_db2_are_rejected_before_they_are_sent(text):
    class Recording:
        sent: ClassVar[list[str]] = []

        def __getattr__(self, name):
            return lambda text, *_: self.sent.append(text) or ([], [])

    class Unserved(StatementSession):
        dialect = DIALECTS["mssql"]

        def entities(self, like=""):
            return []

        def another(self):
            return self.link

        def target(self, writing):
            raise AssertionError

        def reading(self, link, text, values):
            return link.ask(text)

    session = Unserved(Recording(), "", "", True)
    for ask in (lambda: session.query(text, {}, 1), lambda: list(session.stream(text))):
        with pytest.raises(ConnectorError):
            ask()
    assert Recording.sent == []


@pytest.mark.parametrize("dialect", ["postgresql", "mysql", "mssql", "oracle", "db2", "sqlite"])
@pytest.mark.parametrize("where", FILTERS)
def test_filters_of_every_dialect_are_one_expression(dialect, where):
    with pytest.raises(ConnectorError):
        sql.checked_condition(dialect, where)


@pytest.mark.parametrize(
    "text",
    [
        "select id from victim into outfile '{path}'",
        "select id into /* x */ outfile '{path}' from victim",
        "select id into # x\n dumpfile '{path}' from victim limit 1",
        "select id from victim /*!into outfile '{path}'*/",
    ],
)
def test_queries_write_no_file_of_a_mysql_server(kind, victim, tmp_path_factory, text):
    if kind.name != "mysql":
        pytest.skip("files of MySQL")
    tmp_path = tmp_path_factory.mktemp("open")
    tmp_path.chmod(0o777)
    with kind.connector(read_only=True).open() as session, pytest.raises(ConnectorError) as caught:
        session.query(text.format(path=tmp_path / "stolen"), {}, 5)
    assert caught.value.reason == "bad_query"
    assert list(tmp_path.iterdir()) == []


def test_comments_that_mysql_executes_are_rejected():
    for where in ("1=1 /*! or 1=1 */", "1=1 /*M!100100 into outfile 'x' */"):
        with pytest.raises(ConnectorError):
            sql.checked_condition("mysql", where)

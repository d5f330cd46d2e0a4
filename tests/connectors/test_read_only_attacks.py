"""Promise 28. No query, filter or source of a user writes: the attacks that did, against real servers."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from tests.connectors.kind_mssql import MssqlKind
from tests.connectors.kinds import Col, Kind, Table
from tests.jobs.waiting import eventually
from webapp import limits
from webapp.connections.services.access import time_limited
from webapp.connectors.base import ConnectorError, Session
from webapp.connectors.reader_process import ReaderProcess
from webapp.connectors.schema import Column, Entity
from webapp.connectors.sql import base as sql
from webapp.connectors.sql.statements import StatementSession
from webapp.engine.formats.sql_dialects import DIALECTS

# Each one ends the read-only transaction if more than one statement is executed.
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


# What servers of the kind would carry out, and the texts that hide it.
HIDDEN = {
    "mssql": [
        "select 1 commit delete from victim",
        "select 1 updatetext t.c 0x1 0 0 'x'",
        "select 1 receive * from queue1",
        "select 1 end conversation 'x'",
        "select 1 exec sp_executesql N'delete'",
        "select 1 /* /* */ delete from victim */",
        "select '--' delete from victim --'",
        "select 1 drop table victim",
        "select 1drop table victim",
        "select 1e0delete from victim",
        "select 1edelete from victim",
        "select 0x1fupdate victim set id = 2",
        "select 1.delete from victim",
        "select $1delete from victim",
        "select 1 exec xp_cmdshell 'dir'",
        "select 1\u00a0exec\u3000xp_cmdshell 'dir'",
        "select * into copy from victim",
        "select * from openrowset('SQLNCLI', 'x', 'delete from victim')",
        "select * from openquery(other, 'delete from victim')",
        "select * from opendatasource('SQLNCLI', 'x').db.dbo.victim",
        "select next value for counted",
        "select next /* */ value for counted",
        "select * from victim with (tablockx, holdlock)",
        "select 1 /* /* */ ' */ delete from victim --'",
        "select 1 -- \r ' \n delete from victim --'",
        "select 1 -- \u2028 delete from victim",
        "select [a]]'] from victim delete from victim --'",
        "select [a'] from victim delete from victim --'",
        "select \"a'\" from victim delete from victim --'",
        "select 1 \uff44\uff45\uff4c\uff45\uff54\uff45 from victim",
        "select 1\u200bdelete from victim",
        "select 1\u00b2delete from victim",
        "select 1\x00delete from victim",
        "select 1 waitfor delay '1:00'",
        "select 1 shutdown",
        "select 1 revert",
        "select 1 if 1=1 print 'x'",
        "with x as (select 1 n) delete from victim",
        "select 1 open symmetric key k decryption by password = 'x'",
        "{call wipe}",
        "exec wipe",
        "values (1)",
    ],
    "oracle": [
        "select * from victim for update",
        "select * from victim where 1=1for update",
        "with function f return number is pragma autonomous_transaction; begin delete from victim; commit; end;"
        " select f from dual",
        "with function f return number is begin return 1; end; select f from dual",
        "with /* */ procedure p is begin null; end; select 1 from dual",
        "select q'[']', 1 from dual for update of id --']' from dual",
        "select q'[']' from dual for update --'",
        "select nq'{'}', 1 from dual for update --'",
        "select Q'!'!' from dual for update --'",
        "select q'''' from dual for update --'",
        "select 1 /* /* */ from victim for update --*/",
        "select counted.nextval from dual",
        "select * from external ((n number) type oracle_loader location ('x'))",
        "select '\u2019 from dual for update --' from dual",
        "begin delete from victim; end;",
        "lock table victim in exclusive mode",
    ],
    "db2": [
        "select id from final table (insert into victim values (9))",
        "select id from old table (delete from victim)",
        "select id from new table (update victim set id = 3)",
        "with x as (select id from final table (insert into victim values (9))) select * from x",
        "select id from victim for update of id",
        "select id from victim with rs use and keep exclusive locks",
        "select 1 /* /* */ ' */ from final table (delete from victim) --'",
        "select nextval for counted from sysibm.sysdummy1",
        "select next value for counted from sysibm.sysdummy1",
        "values 1",
        "call wipe()",
    ],
}


class Recording:
    """A link that takes down what is sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def query(self, text, *_):
        self.sent.append(text)
        return ["n"], []

    def run(self, text):
        self.sent.append(text)
        return 0

    def stream(self, text):
        self.sent.append(text)
        yield ["n"], [(1,)]

    def close(self):
        pass


def unserved(kind: str) -> tuple[StatementSession, list[str]]:
    """A session of a kind that has no server here, and what it sends."""
    link = Recording()

    class Unserved(StatementSession):
        dialect = DIALECTS[kind]

        def entities(self, like=""):
            return [Entity("t", ("t",), (Column("id", "integer", "int"),))]

        def open_another(self):
            return link

        def begin_read_only(self, link):
            pass

        def target(self, writing):
            raise AssertionError

        def query_and_roll_back(self, link, text, values, limit):
            return link.query(text)

    return Unserved(link, "", "", True), link.sent


@pytest.mark.parametrize(
    ("kind_name", "text"), [(name, text) for name, texts in HIDDEN.items() for text in (*STACKED, *texts)]
)
def test_statements_that_write_are_rejected_before_they_are_sent(kind_name, text):
    session, sent = unserved(kind_name)
    for ask in (lambda: session.query(text, {}, 1), lambda: list(session.stream(text))):
        with pytest.raises(ConnectorError) as caught:
            ask()
        assert caught.value.reason == "bad_query"
    assert sent == []


@pytest.mark.parametrize(
    ("kind_name", "text"),
    [(name, text) for name, texts in HIDDEN.items() for text in texts if "select" in text],
)
def test_conditions_that_write_are_rejected_before_they_are_sent(kind_name, text):
    session, sent = unserved(kind_name)
    with pytest.raises(ConnectorError):
        list(session.keys(session.entities()[0], ["id"], f"1 in ({text})"))
    assert sent == []


READS = {
    "mssql": [
        "select id, [delete], \"update\", 'drop table x; --', N'it''s' from victim",
        "select top 5 * from dbo.t with (nolock) where a.b = 1.5e-3 and x = 0x1F and y = .5 order by 1",
        "with x as (select 1 as n union all select n + 1 from x where n < 5) select * from x",
        "(select 1) union (select 2)",
        "select /* delete ; drop */ 1 -- update",
        "select updated_at, deleted, created, set_id, end_date, case when 1=1 then 1 end from t",
        "select a from t order by a offset 5 rows fetch next 5 rows only",
        "select gr\u00f6\u00dfe, \u5217 from t where n = 'O\u2019Brien'",
        "select a -- first\r\n, b from t",
        "select @@version, $1.50, 1E5",
    ],
    "oracle": [
        "select q'[it's; delete]', nq'{x}', 'y' from dual",
        "select \"update\" from t where d = date '2024-01-01' and n = 1.5f",
        "with x as (select 1 n from dual) select * from x where id = :1 and n in (:2, :3)",
        "select /*+ parallel(4) */ q, nq from t /* delete */ -- drop",
    ],
    "db2": [
        "select id from t where x = X'1F' and n = 'it''s' with ur",
        "select id from t fetch first 5 rows only",
        "with x (n) as (values 1) select n from x where n = ?",
        "select arr[1] from t /* delete */",
    ],
}


@pytest.mark.parametrize(
    ("kind_name", "text"), [(name, text) for name, texts in READS.items() for text in texts]
)
def test_queries_that_read_are_sent(kind_name, text):
    session, sent = unserved(kind_name)
    session.query(text, {}, 1)
    list(session.stream(text))
    assert sent == [text, text]


@pytest.mark.parametrize("kind_name", ["mssql", "oracle", "db2"])
@pytest.mark.parametrize(
    "where",
    [*FILTERS, "1=1 /* /* */ ) union select 1 from other where (1=1 -- */", "1 = 1 exec wipe", "1=(1delete)"],
)
def test_filters_of_kinds_without_a_server_are_one_expression(kind_name, where):
    session, sent = unserved(kind_name)
    with pytest.raises(ConnectorError):
        list(session.keys(session.entities()[0], ["id"], where))
    assert sent == []


def test_streams_of_sql_server_run_in_a_transaction_that_is_undone(tmp_path):
    if reason := MssqlKind.unavailable():
        pytest.skip(reason)
    server = MssqlKind(tmp_path)
    server.start()
    try:
        server.make(Table("t", {"id": Col(key=True, null=False)}))
        with server.connector(read_only=True).open() as session:
            list(session.stream("select id from t"))
        sent = [batch.strip() for batch in server.server.batches]
        assert "BEGIN TRANSACTION" in sent[: sent.index("select id from t")], sent
    finally:
        server.stop()


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


POSTGRESQL_FUNCTIONS = {
    "leave_read_only_mode": "select set_config('transaction_read_only', 'off', false), wipe()",
    "leave_read_only_mode_for_the_next": "select set_config('default_transaction_read_only', 'off', false)",
    "take_another_role": "select set_config('role', 'pg_monitor', false)",
    "end_the_time_limit": "select set_config('statement_timeout', '0', false)",
    "take_the_next_value_of_a_sequence": "select nextval('counted')",
    "set_a_sequence": "select setval('counted', 77)",
    "notify": "select pg_notify('rowsmith_attack', 'x')",
    "keep_an_advisory_lock": "select pg_advisory_lock(4711), pg_advisory_lock(n) from generate_series(1, 100) n",
    "make_a_large_object": "select lo_create(4711), lo_from_bytea(4712, 'x')",
    "write_by_xml": "select query_to_xml('delete from victim', true, true, '')",
    "write_by_a_cursor": "select * from cursor_to_xml('victim', 1, true, true, '')",
    "characteristics": "set session characteristics as transaction read write",
    "copy_to_a_program": "copy victim to program 'touch /tmp/rowsmith-attack'",
    "explain_analyze": "explain analyze delete from victim",
    "explain_analyze_in_brackets": "(explain analyze delete from victim)",
    "select_into": "select * into copied from victim",
    "select_into_a_temporary_table": "select * into temporary copied from victim",
    "table": "table victim; delete from victim",
    "lock": "select * from victim for update",
    "close_the_cursor": "select 1; close all",
}


@pytest.mark.parametrize("name", POSTGRESQL_FUNCTIONS)
@pytest.mark.parametrize("read_only", [True, False])
def test_functions_of_postgresql_leave_nothing_behind(kind, victim, name, read_only):
    if kind.name != "postgresql":
        pytest.skip("of PostgreSQL")
    kind.run("CREATE SEQUENCE counted")
    kind.run("LISTEN rowsmith_attack")
    kind.run(
        "CREATE FUNCTION wipe() RETURNS int LANGUAGE plpgsql AS $$ BEGIN DELETE FROM victim; RETURN 1; END $$"
    )
    with kind.connector(read_only=read_only).open() as session:
        read(session, POSTGRESQL_FUNCTIONS[name])
        read(session, "select wipe()")
        found = session.query(
            "select current_setting('statement_timeout') t, current_user = session_user u,"
            " current_setting('transaction_read_only') r",
            {},
            1,
        )
        assert found.to_pylist() == [{"t": "30s", "u": True, "r": "on"}]
        backend = session.connection.info.backend_pid
    assert rows_left(kind) == 2
    assert kind.run("SELECT is_called FROM counted") == [(False,)]
    assert (
        kind.run(f"SELECT 1 FROM pg_tables WHERE tablename = 'copied' AND schemaname = '{kind.place}'") == []
    )
    assert kind.run("SELECT 1 FROM pg_largeobject_metadata WHERE oid IN (4711, 4712)") == []
    assert list(kind.own.notifies(timeout=0)) == []
    eventually(
        lambda: kind.run(f"SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = {backend}") == []
    )


MYSQL_FUNCTIONS = {
    "a_function_that_writes": "select wipe()",
    "a_function_that_writes_in_a_condition": "select 1 from victim where wipe() = 1",
    "into_a_variable": "select id from victim limit 1 into @found",
    "for_update": "select * from victim for update",
    "handler": "handler victim open",
    "set_statement": "set statement max_statement_time = 0 for select sleep(60)",
    "set_statement_hidden": "/* */ set statement tx_read_only = 0 for select wipe()",
    "next_value": "select nextval(counted)",
    "next_value_of": "select next value for counted",
    "set_value": "select setval(counted, 77)",
    "analyze": "analyze delete from victim",
    "explain": "explain delete from victim",
    "with_delete": "with x as (select 1) delete from victim",
    "call": "call wipe_all()",
    "prepare": "prepare p from 'delete from victim'",
    "execute_immediate": "execute immediate 'delete from victim'",
    "start_transaction": "start transaction read write",
    "select_into_table": "create table copied select * from victim",
    "begin_not_atomic": "begin not atomic delete from victim; end",
    "values_returning": "insert into victim values (9) returning id",
    "lock": "lock tables victim write",
    "get_lock": "select get_lock('rowsmith_attack', 1)",
}


@pytest.mark.parametrize("name", MYSQL_FUNCTIONS)
@pytest.mark.parametrize("read_only", [True, False])
def test_functions_of_mysql_leave_nothing_behind(kind, victim, name, read_only):
    if kind.name != "mysql":
        pytest.skip("of MySQL")
    kind.run("CREATE FUNCTION wipe() RETURNS int MODIFIES SQL DATA BEGIN DELETE FROM victim; RETURN 1; END")
    kind.run("CREATE PROCEDURE wipe_all() DELETE FROM victim")
    sequences = "maria" in str(kind.run("SELECT VERSION()")).lower()
    if sequences:
        kind.run("CREATE SEQUENCE counted")
    with kind.connector(read_only=read_only).open() as session:
        read(session, MYSQL_FUNCTIONS[name])
        read(session, "select wipe()")
    assert rows_left(kind) == 2
    if sequences:
        assert kind.run("SELECT next_not_cached_value FROM counted") in ([(1,)], ((1,),))
    assert not kind.run("SHOW TABLES LIKE 'copied'")
    eventually(lambda: kind.run("SELECT IS_FREE_LOCK('rowsmith_attack')")[0][0] == 1)


@pytest.mark.parametrize("ask", ["query", "reader"])
def test_functions_that_take_long_are_ended(kind, victim, monkeypatch, ask):
    texts = {
        "postgresql": ["select pg_sleep(60)", "select count(*) from generate_series(1, 100000000000) n"],
        "mysql": ["select sleep(60), 1 from victim", "select benchmark(100000000000, md5('x'))"],
    }
    if kind.name not in texts:
        pytest.skip("of PostgreSQL and MySQL")
    monkeypatch.setattr(limits, "TARGET_QUERY_SECONDS", 1.0)
    for text in texts[kind.name]:
        began = time.monotonic()
        if ask == "query":
            with kind.connector(read_only=True).open() as session, suppress(ConnectorError):
                session.query(text, {}, 1)
        else:
            # A killed sleep of MariaDB is no error.
            reader = ReaderProcess(kind.connector(read_only=True))
            with reader, suppress(ConnectorError), time_limited(reader, 1.0, 1.0):
                reader.query(text, {}, 1)
        running = (
            f"SELECT 1 FROM pg_stat_activity WHERE query LIKE '%{text}%' AND state = 'active'"
            " AND pid <> pg_backend_pid()"
            if kind.name == "postgresql"
            else "SELECT 1 FROM information_schema.processlist WHERE info LIKE '"
            + text.replace("'", "''")
            + "%' AND id <> connection_id()"
        )
        assert time.monotonic() - began < 20
        eventually(lambda: not kind.run(running))  # noqa: B023

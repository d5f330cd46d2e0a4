"""What only SQL Server has: its connection strings, IDENTITY_INSERT, statements of up to 1,000 rows."""

from __future__ import annotations

import datetime as dt
import socket
from decimal import Decimal
from typing import ClassVar

import pyarrow as pa
import pytest

from tests.connectors.kind_mssql import MssqlKind
from tests.connectors.kinds import GATE, Col, Table
from tests.connectors.one_kind import only
from tests.connectors.sending import deliver, reasons, target_of
from tests.fakes.certificates import Authority
from webapp.connectors.base import ConnectorError, WriteSpec
from webapp.connectors.schema import Column, Entity
from webapp.connectors.sqlserver.connector import MssqlConnector
from webapp.connectors.sqlserver.session import MssqlTarget
from webapp.net.gate import Gate

kind = only(MssqlKind)


def test_no_statement_has_more_than_a_thousand_rows(kind, session):
    kind.make(Table("many", {"id": Col(key=True, null=False)}))
    deliver(session, "many", {"id": list(range(2_500))})
    inserts = [text for text in kind.server.batches if "INSERT INTO" in text]
    assert [text.count("(") - 1 for text in inserts] == [1_000, 1_000, 500]


def test_numbers_are_given_where_the_server_would_count(kind, session):
    kind.make(Table("made", {"id": Col(identity=True, key=True, null=False), "v": Col()}))
    deliver(session, "made", {"id": [7, 9], "v": [1, 2]})
    assert kind.rows("made", "id", "v") == [(7, 1), (9, 2)]
    result = [text for text in kind.server.batches if "IDENTITY_INSERT" in text]
    assert [text.rstrip("; ").rpartition(" ")[2] for text in result] == ["ON", "OFF"]


def test_values_are_judged_before_the_server_would_end_the_transaction(kind, session):
    kind.make(
        Table(
            "typed", {"n": Col(key=True, null=False), "v": Col("uuid"), "d": Col("date"), "a": Col("decimal")}
        )
    )
    rows = {"n": [1, 2, 3, 4], "v": ["x", None, None, None], "d": [None, "2021-02-30", None, None]}
    rows["a"] = [None, None, "1" * 11, "1.5"]
    assert reasons(deliver(session, "typed", rows)) == {0: "wrong_type", 1: "wrong_type", 2: "out_of_range"}
    assert [text for text in kind.server.batches if "2021-02-30" in text] == []
    assert kind.rows("typed", "n") == [(4,)]


def test_a_merge_casts_values_to_types_that_cut_nothing():
    columns = (
        Column("id", "integer", "bigint", key=True, unique=True),
        Column("name", "text", "nvarchar(5)", max_length=5),
        Column("at", "timestamp", "datetime2(6)"),
    )
    entity = Entity("t", ("dbo", "t"), columns, keys=("id",))

    class Link:
        requests: ClassVar = []

        def run(self, text):
            return 0

        def query(self, text, values=()):
            self.requests.append(text)
            return ["r", "c0"], [(0, 1)]

    target = MssqlTarget(Link(), WriteSpec(entity, columns, "upsert", ("id",), ("id",)))
    target.begin()
    at = pa.array([dt.datetime(2024, 1, 31, 1, 2, 3)], pa.timestamp("us"))  # noqa: DTZ001
    target.send(pa.record_batch({"id": [1], "name": ["it's"], "at": at}))
    assert Link.requests == [
        "SAVE TRANSACTION rowsmith; DECLARE @done TABLE (r int NOT NULL, c0 bigint NULL); MERGE INTO [dbo].[t] "
        "WITH (HOLDLOCK) AS t USING (SELECT [rowsmith row], CAST([id] AS bigint) AS [id], "
        "CAST([name] AS nvarchar(max)) AS [name], CAST([at] AS datetime2(6)) AS [at] "
        "FROM (VALUES (0,1,N'it''s','2024-01-31T01:02:03')) AS v ([rowsmith row], [id], [name], [at])) AS s "
        "ON (t.[id] = s.[id]) WHEN MATCHED THEN UPDATE SET t.[name] = s.[name], t.[at] = s.[at] "
        "WHEN NOT MATCHED THEN INSERT ([id], [name], [at]) VALUES (s.[id], s.[name], s.[at]) "
        "OUTPUT s.[rowsmith row], inserted.[id] INTO @done; SELECT * FROM @done;"
    ]


def test_an_upsert_by_something_other_than_a_key_is_rejected(kind, session):
    kind.make(Table("kept", {"id": Col(key=True, null=False), "v": Col("text")}))
    with pytest.raises(ConnectorError) as caught:
        target_of(session, "kept", ["id", "v"], mode="upsert", key_columns=("v",))
    assert caught.value.reason == "unsupported"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 DELETE FROM kept",
        "SELECT * INTO other FROM kept",
        "WITH x AS (SELECT 1 AS n) DELETE FROM kept",
        "SELECT 1 /* */ EXEC sp_who",
        "SELECT 1; SELECT 2",
    ],
)
def test_a_query_that_does_more_than_read_is_never_sent(kind, session, query):
    before = len(kind.server.batches)
    with pytest.raises(ConnectorError) as caught:
        session.query(query, {}, 1)
    assert caught.value.reason == "bad_query"
    assert len(kind.server.batches) == before


def test_words_of_sql_in_quotes_are_no_statements(kind, session):
    kind.make(Table("kept", {"id": Col(key=True, null=False), "delete": Col("text")}))
    deliver(session, "kept", {"id": [1], "delete": ["update; drop"]})
    found = session.query("SELECT [delete] FROM kept WHERE [delete] = 'update; drop' -- insert", {}, 5)
    assert found.column(0).to_pylist() == ["update; drop"]


def test_values_of_every_type_are_read_back(kind, session):
    kind.make(Table("seen", {"id": Col(key=True, null=False), "f": Col("float"), "b": Col("binary")}))
    deliver(session, "seen", {"id": [1, 2], "f": [1.5, None], "b": pa.array([b"\0\xff", None])})
    assert session.sample(session.entity("seen"), 5).to_pydict() == {
        "id": [1, 2], "f": [1.5, None], "b": [b"\0\xff", None],
    }  # fmt: skip


# --- Connecting


def stage_of(connector):
    return list(connector.stages())[-1]


def test_a_wrong_password_is_reported_at_its_stage(kind):
    stage = stage_of(kind.connector(account=("writer", "wrong")))
    assert (stage.name, stage.code) == ("auth", "auth_failed")


def test_a_closed_network_is_never_reached(kind):
    connector = kind.connector()
    connector.gate = Gate()
    stage = stage_of(connector)
    assert (stage.name, stage.code) == ("resolve", "not_allowed")
    with pytest.raises(ConnectorError) as caught:
        connector.open()
    assert caught.value.code == "target_not_allowed"
    assert kind.server.peers == []


def test_a_refused_connection_is_reported_at_its_stage():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    stage = stage_of(MssqlConnector(MssqlConnector.Settings(host="127.0.0.1", port=port), GATE))
    assert (stage.name, stage.code) == ("connect", "refused")


@pytest.mark.parametrize(
    "text",
    [
        "mssql://sa:p%40ss@db.example:1444/shop?encrypt=no",
        "Server=tcp:db.example,1444;Database=shop;User Id=sa;Password=p@ss;Encrypt=False",
        "DRIVER={ODBC Driver 18};SERVER=db.example,1444;DATABASE=shop;UID=sa;PWD={p@ss};Encrypt=no;",
        "jdbc:sqlserver://db.example:1444;databaseName=shop;user=sa;password=p@ss;encrypt=false",
    ],
)
def test_a_connection_string_is_read(text):
    params = MssqlConnector(MssqlConnector.Settings(connection_string=text), GATE).connect_options()
    assert params == ("db.example", 1444, "shop", "sa", "p@ss", "disable")


@pytest.mark.parametrize(
    ("more", "tls"),
    [
        ("Encrypt=True", "verify-full"),
        ("Encrypt=yes;TrustServerCertificate=no", "verify-full"),
        ("Encrypt=Mandatory;TrustServerCertificate=True", "require"),
        ("TrustServerCertificate=True", "require"),
        ("Encrypt=optional", "disable"),
        ("Application Name=x", "require"),
    ],
)
def test_a_string_that_promises_a_verified_certificate_keeps_its_word(more, tls):
    settings = MssqlConnector.Settings(connection_string=f"Server=db.example;{more}")
    assert MssqlConnector(settings, GATE).connect_options().tls == tls


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("mssql://h/shop?encrypted=no", "Did you mean encrypt?"),
        ("Server=h;Encrypt=strict", "Use yes or no. TDS 8.0 is not supported."),
        ("Server=h;Integrated Security=SSPI", "Supported options: server"),
    ],
)
def test_unknown_options_are_rejected_with_a_suggestion(text, hint):
    with pytest.raises(ConnectorError) as caught:
        MssqlConnector(MssqlConnector.Settings(connection_string=text), GATE).connect_options()
    assert caught.value.reason == "bad_settings"
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("name", "trusted", "tls", "code"),
    [
        ("localhost", True, "verify-full", ""),
        ("other.example", True, "verify-full", "tls_failed"),
        ("localhost", False, "verify-full", "tls_failed"),
        ("other.example", False, "require", ""),
    ],
)
def test_a_certificate_is_verified_as_the_mode_says(kind, tmp_path, name, trusted, tls, code):
    authority = Authority(tmp_path)
    kind.server.within = authority.server(name)
    more = {"ca_certificate": authority.file.read_text()} if trusted else {}
    settings = kind.connector().settings.model_copy(update={"host": "localhost", "tls": tls, **more})
    stage = stage_of(MssqlConnector(settings, GATE))
    assert (stage.name, stage.code) == ("auth" if code else "sample", code)
    assert kind.server.signed_in == ([] if code else ["writer"])


def test_a_server_without_tls_is_reported_if_tls_is_required(kind):
    for tls in ("require", "verify-full"):
        settings = kind.connector().settings.model_copy(update={"tls": tls})
        assert stage_of(MssqlConnector(settings, GATE)).code in ("tls_failed", "refused")
    assert kind.server.signed_in == []


@pytest.mark.parametrize("text", ["mssql://u:p@ss@h:x/shop", "hello", "Server=host\\named", "Database=only"])
def test_a_connection_string_without_a_host_is_rejected(text):
    with pytest.raises(ConnectorError) as caught:
        MssqlConnector(MssqlConnector.Settings(connection_string=text), GATE).connect_options()
    assert caught.value.reason == "bad_settings"
    assert "p@ss" not in caught.value.message


def test_decimals_beyond_their_column_are_reported_before_sending(kind, session):
    kind.make(Table("wide", {"n": Col(key=True, null=False), "v": Col("decimal", precision=5, scale=2)}))
    values = pa.array([Decimal("999.99"), Decimal("1000.00")])
    assert reasons(deliver(session, "wide", {"n": [1, 2], "v": values})) == {1: "out_of_range"}

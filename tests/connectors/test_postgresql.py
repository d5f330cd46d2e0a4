"""What only PostgreSQL has: its types, its triggers, its transactions' numbers, its catalog."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import psycopg
import pyarrow as pa
import pytest

from tests.connectors.kind_postgresql import URL, PostgresqlKind
from tests.connectors.kinds import GATE
from tests.connectors.one_kind import only
from tests.connectors.sending import deliver, reasons, target_of
from webapp.connectors.base import ConnectorError, WriteSpec
from webapp.connectors.postgresql.connector import PostgresqlConnector
from webapp.connectors.schema import Column

kind = only(PostgresqlKind)


def columns(session, table):
    return {column.name: column for column in session.entity(table).fields}


# --- types ---


def test_metadata_describe_each_column(kind, session):
    kind.run("CREATE TYPE mood AS ENUM ('sad', 'ok''ish', 'happy')")
    kind.run("CREATE DOMAIN plate AS varchar(8) NOT NULL")
    kind.run("CREATE DOMAIN german AS plate")
    kind.run(
        """CREATE TABLE every (
          small smallint, whole int GENERATED ALWAYS AS IDENTITY, old serial, n numeric, p numeric(7, -2), r real,
          c char(3), v varchar, label name, d plate, g german, m mood, moods mood[], grid int[][], at timestamptz(3),
          t time, i interval, j json, b bytea, u uuid DEFAULT gen_random_uuid(), x int GENERATED ALWAYS AS (1) STORED,
          ip inet)"""
    )
    kind.run("COMMENT ON TABLE every IS 'All of them'; COMMENT ON COLUMN every.c IS 'three'")
    found = columns(session, "every")
    shapes = {name: (column.type, column.bits) for name, column in found.items() if column.type == "integer"}
    assert shapes == {
        "small": ("integer", 16),
        "whole": ("integer", 32),
        "old": ("integer", 32),
        "x": ("integer", 32),
    }
    kinds = {name: found[name].type for name in ("n", "r", "m", "moods", "at", "t", "i", "j", "b", "u", "ip")}
    assert kinds == {
        "n": "decimal", "r": "float", "m": "enum", "moods": "array", "at": "timestamptz", "t": "time",
        "i": "interval", "j": "json", "b": "binary", "u": "uuid", "ip": "other",
    }  # fmt: skip
    assert [found[name].generated for name in ("whole", "old", "x", "u")] == [
        "identity",
        "identity",
        "computed",
        "",
    ]
    assert (found["p"].precision, found["p"].scale, found["n"].precision) == (7, -2, None)
    assert [found[name].max_length for name in ("c", "v", "label", "d", "g")] == [3, None, 63, 8, 8]
    assert [found[name].nullable for name in ("d", "g", "v")] == [False, False, True]
    assert found["d"].type == "text"
    assert found["m"].choices == ("sad", "ok'ish", "happy")
    assert (found["moods"].items, found["grid"].items) == ("enum", "integer")
    assert (session.entity("every").comment, found["c"].comment) == ("All of them", "three")
    assert found["u"].default == "gen_random_uuid()"


def test_metadata_contain_composite_keys_indexes_views_and_other_schemas(kind, session):
    other = f"{kind.place}_b"
    try:
        kind.run(
            f"CREATE SCHEMA {other}; CREATE TABLE {other}.parent (a int, b int, c int, PRIMARY KEY (b, a))"
        )
        kind.run(
            f"CREATE TABLE child (x int, y int, z text, w text, FOREIGN KEY (x, y) REFERENCES {other}.parent (b, a));"
            "CREATE UNIQUE INDEX ON child (z, w); CREATE UNIQUE INDEX ON child (w) WHERE x > 0;"
            "CREATE UNIQUE INDEX ON child (lower(z)); CREATE UNIQUE INDEX ON child (x) INCLUDE (y);"
            "CREATE VIEW seen AS SELECT x FROM child;"
            "CREATE TABLE parts (id int) PARTITION BY RANGE (id); CREATE TABLE part1 PARTITION OF parts DEFAULT"
        )
        entities = {entity.name: entity for entity in session.metadata().entities}
        assert [name for name in entities if "." not in name] == ["child", "parts", "seen"]
        parent = entities[f"{other}.parent"]
        assert (parent.keys, parent.parts) == (("b", "a"), (other, "parent"))
        (relation,) = entities["child"].relations
        assert (relation.columns, relation.entity, relation.entity_columns) == (
            ("x", "y"), f"{other}.parent", ("b", "a"),
        )  # fmt: skip
        assert set(entities["child"].uniques) == {("z", "w"), ("x",)}
        assert entities["seen"].kind == "view"
        assert session.entity(f"{other}.parent") == parent
        assert session.entity(f"{other}.PARENT") == parent
    finally:
        kind.run(f"DROP SCHEMA {other} CASCADE")


def test_values_of_custom_types_arrive(kind, session):
    kind.run("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    kind.run(
        "CREATE TABLE own (n int PRIMARY KEY, m mood, i interval, a int[], g text[], d date[], b bytea[], h numeric)"
    )
    rows = {
        "n": [1, 2],
        "m": ["happy", None],
        "i": ["P1DT2H", None],
        "a": pa.array([[1, None, -3], []], pa.list_(pa.int64())),
        "g": pa.array([[["a", "b"], ["c", None]], None], pa.list_(pa.list_(pa.string()))),
        "d": pa.array([[dt.date(2024, 1, 31)], None], pa.list_(pa.date32())),
        "b": pa.array([[b"\0\xff"], None], pa.list_(pa.binary())),
        "h": pa.array([float("nan"), float("inf")]),
    }
    assert reasons(deliver(session, "own", rows)) == {}
    first, second = kind.rows("own")
    assert first[:-1] == (
        1, "happy", dt.timedelta(days=1, hours=2), [1, None, -3], [["a", "b"], ["c", None]], [dt.date(2024, 1, 31)],
        [b"\0\xff"],
    )  # fmt: skip
    assert first[-1].is_nan()
    assert second[1:] == (None, None, [], None, None, None, Decimal("Infinity"))


def test_unsupported_texts_fail_without_affecting_others(kind, session):
    kind.run("CREATE TABLE odd (n int, v text, w timestamp)")
    rows = {
        "n": [1, 2, 3, 4],
        "v": ["a", "b\0c", None, "d"],
        "w": pa.array([0, 0, 2**60, None], pa.timestamp("us")),
    }
    assert reasons(deliver(session, "odd", rows)) == {1: "wrong_type", 2: "out_of_range"}
    assert kind.rows("odd", "n") == [(1,), (4,)]
    pooled = {"n": [5, 6], "v": pa.array(["x\0", "y"]).dictionary_encode()}
    sent = deliver(session, "odd", pooled, mode="update", key_columns=("n",))
    assert reasons(sent) == {0: "wrong_type", 1: "missing_row"}


def test_an_identity_that_is_always_made_takes_values_all_the_same(kind, session):
    kind.run("CREATE TABLE made (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text)")
    deliver(session, "made", {"id": [7], "v": ["a"]})
    deliver(
        session, "made", {"id": [7, 8], "v": ["b", "c"]}, mode="upsert", key_columns=("id",), capture=("id",)
    )
    entity = session.entity("made")
    (statement,) = session.target(WriteSpec(entity, entity.fields)).statements(
        pa.record_batch({"id": [9], "v": ["d"]})
    )
    session.execute(statement)
    assert kind.rows("made") == [(7, "b"), (8, "c"), (9, "d")]


def test_dates_beyond_arrows_reach_are_read_as_text(kind, session):
    kind.run("CREATE TABLE far (n int, d date, t timestamptz, v numeric)")
    kind.run("INSERT INTO far VALUES (1, 'infinity', '20000-01-01 00:00+00', repeat('9', 50)::numeric)")
    (row,) = session.sample(session.entity("far"), 5).to_pylist()
    assert row == {"n": 1, "d": "infinity", "t": "20000-01-01 00:00:00+00", "v": "9" * 50}


def test_samples_keep_what_values_are(kind, session):
    kind.run("CREATE TABLE seen (a numeric(8,2), b bool, c bytea, d timestamptz, e int[], f float8)")
    kind.run("INSERT INTO seen VALUES (1.5, true, '\\x00ff', '2024-01-31 12:00+02', '{1,2}', 0.1)")
    (row,) = session.sample(session.entity("seen"), 5).to_pylist()
    assert row == {
        "a": Decimal("1.50"), "b": True, "c": b"\0\xff", "d": dt.datetime(2024, 1, 31, 10, tzinfo=dt.UTC),
        "e": "{1,2}", "f": 0.1,
    }  # fmt: skip


# --- refusals ---


def test_a_trigger_that_raises_is_a_refusal_of_its_row(kind, session):
    kind.run("CREATE TABLE judged (n int)")
    kind.run(
        "CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF NEW.n % 50 = 7 THEN RAISE EXCEPTION 'not % here', NEW.n; END IF; RETURN NEW; END $$"
    )
    for when in ("BEFORE", "AFTER"):
        kind.run(f"CREATE TRIGGER judged {when} INSERT ON judged FOR EACH ROW EXECUTE FUNCTION judge()")
        sent = deliver(session, "judged", {"n": list(range(120))})
        assert reasons(sent) == {7: "refused", 57: "refused", 107: "refused"}, when
        assert sent.failures[1].message.startswith("The function judge() rejects it: not 57 here")
        kind.run("DROP TRIGGER judged ON judged")


def test_a_row_that_a_trigger_leaves_out_is_not_counted_as_delivered(kind, session):
    kind.run("CREATE TABLE skipped (id serial, n int)")
    kind.run(
        "CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN IF NEW.n = 5 THEN RETURN NULL; END IF; RETURN NEW; END $$;"
        "CREATE TRIGGER skipped BEFORE INSERT ON skipped FOR EACH ROW EXECUTE FUNCTION skip()"
    )
    for how in ({}, {"capture": ("id",)}):
        assert reasons(deliver(session, "skipped", {"n": list(range(20))}, **how)) == {5: "refused"}
    assert len(kind.rows("skipped")) == 38


def test_a_trigger_that_fails_on_another_table_blames_the_row_that_set_it_off(kind, session):
    kind.run("CREATE TABLE allowed (code int PRIMARY KEY); INSERT INTO allowed VALUES (1), (2)")
    kind.run("CREATE TABLE log (code int REFERENCES allowed); CREATE TABLE main (code int, real int)")
    kind.run(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO log VALUES (NEW.real); RETURN NEW; END $$;"
        "CREATE TRIGGER note AFTER INSERT ON main FOR EACH ROW EXECUTE FUNCTION note()"
    )
    sent = deliver(session, "main", {"code": [3, 1, 2], "real": [1, 3, 2]})
    assert reasons(sent) == {1: "foreign_key"}
    assert kind.rows("main") == [(2, 2), (3, 1)]


def test_composite_and_text_keys_are_found_by_their_values(kind, session):
    kind.run(
        "CREATE TABLE parent (a int, b text, PRIMARY KEY (a, b)); INSERT INTO parent VALUES (1, 'x, y'), (2, 'z')"
    )
    kind.run("CREATE TABLE child (a int, b text, FOREIGN KEY (a, b) REFERENCES parent)")
    rows = {"a": [1, 1, 2, 2, None], "b": ["x, y", "z", "z", "(q)=(r)", "x"]}
    assert reasons(deliver(session, "child", rows)) == {1: "foreign_key", 3: "foreign_key"}


def test_a_deferred_constraint_rejects_the_commit_and_nothing_is_written(kind, session):
    kind.run("CREATE TABLE parent (id int PRIMARY KEY)")
    kind.run("CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
    target = target_of(session, "child", ["id"])
    assert target.send(pa.record_batch({"id": [1]})).failures == []
    commit_token = target.commit_token()
    with pytest.raises(ConnectorError) as caught:
        target.commit()
    assert caught.value.reason == "deferred"
    assert session.commit_outcome(session.entity("child"), commit_token) is False
    target.begin()
    target.rollback()
    assert kind.rows("child") == []


def test_a_table_that_lost_a_column_blames_no_row(kind, session):
    kind.run("CREATE TABLE changed (a int, b int)")
    target = target_of(session, "changed", ["a", "b"])
    target.rollback()
    kind.run("ALTER TABLE changed DROP COLUMN b")
    target.begin()
    with pytest.raises(ConnectorError) as caught:
        target.send(pa.record_batch({"a": [1], "b": [2]}))
    assert (caught.value.reason, caught.value.details["sqlstate"]) == ("no_column", "42703")


def test_a_rolled_back_chunk_leaves_a_staged_target_usable(kind, session):
    kind.run("CREATE TABLE kept (id int PRIMARY KEY, v text)")
    target = target_of(session, "kept", ["id", "v"], mode="upsert", key_columns=("id",))
    for values in (["a", "b"], ["c", "d"]):
        target.send(pa.record_batch({"id": [1, 2], "v": values}))  # twice in one transaction
    target.rollback()
    target.begin()
    target.send(pa.record_batch({"id": [1, 2], "v": ["e", "f"]}))
    target.commit()
    assert kind.rows("kept") == [(1, "e"), (2, "f")]


# --- settling ---


def test_a_proof_that_this_server_knows_nothing_of_settles_nothing(kind, session):
    kind.run("CREATE TABLE kept (id int)")
    entity = session.entity("kept")
    for xid in (2**62, 3):
        assert session.commit_outcome(entity, {"xid": xid, "pid": 1, "started": ""}) in (None, True)
    assert session.commit_outcome(entity, {"xid": 2**62, "pid": 1, "started": ""}) is None


def test_without_the_right_to_end_the_old_session_nothing_is_settled(kind, session, monkeypatch):
    kind.run("CREATE TABLE kept (id int)")
    target = target_of(session, "kept", ["id"])
    target.send(pa.record_batch({"id": [1]}))
    with kind.stranger().open() as stranger:
        monkeypatch.setattr("webapp.limits.TARGET_SETTLE_SECONDS", 0.2)
        assert stranger.commit_outcome(stranger.entity("kept"), target.commit_token()) is None
    target.commit()
    assert kind.rows("kept") == [(1,)]


def test_checks_of_domains_are_checks_of_their_columns(kind, session):
    kind.run("CREATE DOMAIN digest AS bytea CHECK (VALUE IS NULL OR octet_length(VALUE) = 20)")
    kind.run("CREATE DOMAIN word AS text CHECK (VALUE IN ('VALUE', 'x'))")
    kind.run("CREATE DOMAIN short_word AS word CHECK (length(VALUE) < 9)")
    kind.run('CREATE TABLE t (id int, "a b" digest, c short_word)')
    assert set(session.entity("t").checks) == {
        '"a b" IS NULL OR octet_length("a b") = 20',
        "\"c\" = ANY (ARRAY['VALUE'::text, 'x'::text])",
        'length("c"::text) < 9',
    }


# --- size ---


def test_hundreds_of_tables_take_eight_queries(kind, session, monkeypatch):
    kind.run(
        "DO $$ BEGIN FOR n IN 1..300 LOOP EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY, code varchar(9) UNIQUE,"
        " up int, amount numeric(9,2) DEFAULT 0 CHECK (amount >= 0))', n);"
        " IF n > 1 THEN EXECUTE format('ALTER TABLE t%s ADD FOREIGN KEY (up) REFERENCES t%s', n, n - 1); END IF;"
        " END LOOP; END $$"
    )
    requests = []
    real = session.connection.execute
    monkeypatch.setattr(
        session.connection, "execute", lambda *result: requests.append(result[0]) or real(*result)
    )
    own = [entity for entity in session.metadata().entities if "." not in entity.name]
    assert sum("SELECT" in str(statement) for statement in requests) == 8
    assert len(own) == 300
    assert all(entity.keys == ("id",) and len(entity.fields) == 4 for entity in own)
    assert sum(len(entity.relations) for entity in own) == 299


def test_queries_run_under_a_time_limit(kind, session, monkeypatch):
    monkeypatch.setattr("webapp.connectors.postgresql.session.limits.TARGET_QUERY_SECONDS", 0.2)
    with pytest.raises(ConnectorError) as caught:
        session.query("SELECT pg_sleep(30)", {}, 1)
    assert (caught.value.code, caught.value.reason) == ("target_timeout", "timeout")
    assert session.query("SELECT 1 AS one", {}, 1).to_pylist() == [{"one": 1}]


def test_values_of_any_type_are_parameters_of_a_query(session):
    values = {
        "i": 2**40,
        "d": dt.date(2024, 1, 31),
        "n": Decimal("1.50"),
        "t": "x",
        "b": True,
        "nothing": None,
    }
    query = (
        "SELECT {{i}}::bigint AS i, {{d}}::date AS d, {{n}}::numeric AS n, {{t | upper}}::text AS t, "
        "{{b}}::bool AS b"
    )
    (row,) = session.query(query, values, 5).to_pylist()
    assert row == {"i": 2**40, "d": dt.date(2024, 1, 31), "n": Decimal("1.50"), "t": "X", "b": True}


def test_a_made_table_has_arrays_and_intervals(kind, session):
    result = [Column("a", "array", "", items="text"), Column("i", "interval", ""), Column("b", "binary", "")]
    session.create("made", result, [])
    assert [(column.type, column.declared) for column in session.entity("made").fields] == [
        ("array", "text[]"), ("interval", "interval"), ("binary", "bytea"),
    ]  # fmt: skip


def test_a_session_never_sees_the_operators_own_password_file(kind, monkeypatch, tmp_path):
    seen = {}
    real = psycopg.connect

    def connect(**told):
        seen.update(told)
        return real(**told)

    monkeypatch.setattr(psycopg, "connect", connect)
    PostgresqlConnector(PostgresqlConnector.Settings(connection_string=URL), GATE).open().close()
    assert seen["hostaddr"] == "127.0.0.1"
    assert seen["passfile"]

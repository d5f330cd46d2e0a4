"""What only MongoDB has: documents within documents, keys of ours, chunks that are sent again."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from bson import Binary, Decimal128, Int64, ObjectId
from pydantic import ValidationError

from tests.connectors.kind_mongodb import MongodbKind
from tests.connectors.kinds import GATE, Col, Table
from tests.connectors.one_kind import only
from tests.connectors.sending import deliver, reasons
from tests.jobs.waiting import eventually
from webapp.connectors.base import ConnectionLost, ConnectorError, WriteSpec
from webapp.connectors.mongodb.connector import MongodbConnector
from webapp.connectors.schema import Column
from webapp.net.gate import Gate

IDS = [f"aaaaaaaaaaaa{row:012x}" for row in range(3_000)]
ROWS = {"_id": IDS, "v": [f"text {row}" for row in range(3_000)]}


kind = only(MongodbKind)


def target(session, table, columns, **how):
    entity = session.entity(table)
    fields = tuple(entity.column(name) or Column(name, "other", "") for name in columns)
    return session.target(WriteSpec(entity, fields, **how))


def test_a_chunk_cut_off_on_its_way_is_there_once_after_it_was_sent_again(kind, session):
    session.create("kept", [], ())
    kind.server.after_writes = 1
    with pytest.raises(ConnectionLost):
        target(session, "kept", ["_id", "v"]).send(pa.record_batch(ROWS))
    assert len(kind.documents("kept")) == 3_000
    with kind.connector().open() as later:
        assert target(later, "kept", ["_id", "v"]).send(pa.record_batch(ROWS)).failures == []
    assert [document["_id"] for document in kind.documents("kept")] == [ObjectId(item) for item in IDS]


def test_an_existing_document_of_another_writer_with_the_same_key_is_a_duplicate(kind, session):
    session.create("kept", [], ())
    target(session, "kept", ["_id", "v"]).send(pa.record_batch({"_id": IDS[:2], "v": ["other", "text 1"]}))
    sent = target(session, "kept", ["_id", "v"]).send(
        pa.record_batch({name: ROWS[name][:3] for name in ROWS})
    )
    assert reasons(sent) == {0: "unique"}


def test_a_key_that_is_twice_in_a_chunk_is_a_duplicate(kind, session):
    session.create("kept", [], ())
    rows = pa.record_batch({"_id": [IDS[0], IDS[1], IDS[0]], "v": ["a", "b", "a"]})
    for _ in range(2):
        assert reasons(target(session, "kept", ["_id", "v"]).send(rows)) == {2: "unique"}


def test_keys_of_the_templates_own_are_no_proof_of_an_earlier_attempt(kind, session):
    session.create("kept", [], ())
    rows = pa.record_batch({"_id": [1, 2], "v": ["a", "b"]})
    assert reasons(target(session, "kept", ["_id", "v"]).send(rows)) == {}
    assert reasons(target(session, "kept", ["_id", "v"]).send(rows)) == {0: "unique", 1: "unique"}


def test_rows_that_are_sent_again_are_delivered_where_the_same_document_is_there(kind, session):
    session.create("kept", [], ())
    rows = pa.record_batch({"_id": [1, 2, 3], "v": ["a", "b", "c"]})
    target(session, "kept", ["_id", "v"]).send(rows.slice(0, 2))
    session.database["kept"].update_one({"_id": 2}, {"$set": {"v": "other"}})
    assert reasons(target(session, "kept", ["_id", "v"], is_retry=True).send(rows)) == {1: "unique"}
    assert [(document["_id"], document["v"]) for document in kind.documents("kept")] == [
        (1, "a"),
        (2, "other"),
        (3, "c"),
    ]


def test_a_document_with_documents_within_is_known_again(kind, session):
    session.create("kept", [], ())
    moment = dt.datetime(2026, 11, 21, 12, 30, tzinfo=dt.UTC)
    deep = {
        "at": moment,
        "sum": Decimal("1.50"),
        "lines": [{"n": 1, "w": 0.5}, {"n": 2, "w": None}],
        "day": dt.date(2026, 1, 2),
    }
    rows = pa.record_batch({"_id": pa.array([{"a": 1}, {"a": 2}]), "v": pa.array([deep, None])})
    target(session, "kept", ["_id", "v"]).send(rows)
    assert reasons(target(session, "kept", ["_id", "v"], is_retry=True).send(rows)) == {}
    changed = pa.record_batch({"_id": rows["_id"], "v": pa.array([{**deep, "sum": Decimal("1.51")}, None])})
    assert reasons(target(session, "kept", ["_id", "v"], is_retry=True).send(changed)) == {0: "unique"}


def test_keys_that_were_generated_here_are_returned(kind, session):
    session.create("made", [], ())
    sent = target(session, "made", ["v"], capture=("_id",)).send(pa.record_batch({"v": [1, 2]}))
    assert sent.keys["_id"].to_pylist() == [str(document["_id"]) for document in kind.documents("made")]


def test_json_text_becomes_documents_within_the_document(kind, session):
    kind.make(Table("deep", {"n": Col(), "v": Col("json"), "w": Col("array")}))
    values = {"n": [1, 2, 3], "v": ['{"a": {"b": [1, 2.5]}}', "{", None], "w": ["[1]", "[]", '{"a": 1}']}
    assert reasons(deliver(session, "deep", values)) == {1: "wrong_type", 2: "wrong_type"}
    assert [(document["v"], document["w"]) for document in kind.documents("deep")] == [
        ({"a": {"b": [1, 2.5]}}, [1])
    ]


def test_nested_columns_become_documents_in_any_collection(kind, session):
    session.create("deep", [], ())
    batch = pa.record_batch({"at": pa.array([{"city": "Ulm", "no": 5}]), "tags": pa.array([["a", "b"]])})
    target(session, "deep", ["at", "tags"]).send(batch)
    (found,) = kind.documents("deep")
    assert (found["at"], found["tags"]) == ({"city": "Ulm", "no": 5}, ["a", "b"])


def test_a_name_with_a_dot_leads_into_a_document(kind, session):
    session.create("deep", [], ())
    rows = pa.record_batch({"_id": [1], "at.city": ["Ulm"], "at.no": [5]})
    target(session, "deep", rows.schema.names).send(rows)
    assert kind.documents("deep") == [{"_id": 1, "at": {"city": "Ulm", "no": 5}}]
    change = pa.record_batch({"_id": [1], "at.city": ["Bonn"]})
    target(session, "deep", change.schema.names, mode="update", key_columns=("_id",)).send(change)
    assert kind.documents("deep") == [{"_id": 1, "at": {"city": "Bonn", "no": 5}}]
    for names in (["at", "at.city"], ["$set"], ["a..b"]):
        with pytest.raises(ConnectorError) as caught:
            target(session, "deep", names)
        assert caught.value.reason == "bad_name"


def test_values_keep_their_types_in_unknown_fields(kind, session):
    session.create("typed", [], ())
    batch = pa.record_batch(
        {
            "d": pa.array([Decimal("1.50")]),
            "i": pa.array([2**63], pa.uint64()),
            "t": pa.array(["[1]"]),
            "b": pa.array([b"\0"]),
        }
    )
    target(session, "typed", batch.schema.names).send(batch)
    (found,) = kind.documents("typed")
    assert found["d"] == Decimal128("1.50")
    assert (found["i"], found["t"], found["b"]) == (Decimal128(str(2**63)), "[1]", b"\0")


def test_values_within_documents_keep_their_types(kind, session):
    session.create("typed", [], ())
    deep = pa.struct(
        [("n", pa.int64()), ("d", pa.decimal128(5, 2)), ("day", pa.date32()), ("tags", pa.list_(pa.int64()))]
    )
    result = pa.field("j", pa.string(), metadata={b"json": b"1"})
    schema = pa.schema([("o", deep), result, ("n", pa.int64()), ("plain", pa.string())])
    value = {"n": 1, "d": Decimal("1.50"), "day": dt.date(2026, 1, 2), "tags": [7]}
    batch = pa.record_batch([pa.array([value], deep), ['{"a": [1]}'], [5], ['{"a": 1}']], schema=schema)
    target(session, "typed", batch.schema.names).send(batch)
    (found,) = kind.documents("typed")
    assert found["o"] == {
        "n": 1, "d": Decimal128("1.50"), "day": dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "tags": [7],
    }  # fmt: skip
    assert [type(item) for item in (found["n"], found["o"]["n"], found["o"]["tags"][0])] == [Int64] * 3
    assert (found["j"], found["plain"]) == ({"a": [1]}, '{"a": 1}')


def test_numbers_beyond_all_bson_types_are_reported_row_by_row(kind, session):
    kind.make(Table("wide", {"n": Col(), "v": Col("decimal"), "w": Col()}))
    rows = {"n": [1, 2, 3], "v": ["1" * 35, "1.5", "x"], "w": ["1", str(2**63), "1"]}
    assert reasons(deliver(session, "wide", rows)) == {0: "out_of_range", 1: "out_of_range", 2: "wrong_type"}


def test_a_document_that_is_too_large_is_reported_and_the_others_are_written(kind, session):
    session.create("large", [], ())
    rows = pa.record_batch({"n": [1, 2, 3], "v": ["a", "b" * (16 * 1024 * 1024), "c"]})
    assert reasons(target(session, "large", ["n", "v"]).send(rows)) == {1: "too_long"}
    assert [document["n"] for document in kind.documents("large")] == [1, 3]


def test_fields_of_a_collection_are_those_of_its_documents(kind, session):
    session.create("seen", [], ())
    some = Binary.from_uuid(uuid.UUID("0f8fad5b-d9cb-469f-a165-70867728950e"))
    session.database["seen"].insert_one({"_id": 1, "a": "x", "u": some, "n": 1, "o": {"p": 1}, "l": [1]})
    session.database["seen"].insert_one({"_id": 2, "a": 5, "n": Decimal128("1.5")})
    found = {column.name: column.type for column in session.entity("seen").fields}
    assert found == {"_id": "integer", "a": "other", "u": "uuid", "n": "decimal", "o": "json", "l": "array"}
    assert deliver(session, "seen", {"_id": [3], "u": [str(some.as_uuid())]}).failures == []
    assert session.database["seen"].find_one({"_id": 3})["u"] == some


def test_keys_are_those_for_which_a_json_condition_holds(kind, session):
    kind.make(Table("some", {"id": Col(key=True, null=False), "v": Col("text")}))
    deliver(session, "some", {"id": [1, 2, 3], "v": ["a", "b", "a"]})
    entity = session.entity("some")
    (batch,) = session.keys(entity, ["id"], '{"v": "a", "id": {"$gt": 1}}')
    assert batch.column(0).to_pylist() == [3]
    for wrong in ("v = 'a'", "[1]", '{"$nobody": 1}'):
        with pytest.raises(ConnectorError) as caught:
            list(session.keys(entity, ["id"], wrong))
        assert caught.value.reason == "bad_query"


def test_statements_are_those_of_the_shell(kind, session):
    kind.make(Table("told", {"id": Col(key=True, null=False), "v": Col("text")}))
    rows = pa.record_batch({"id": [1], "v": ["it's"]})
    assert target(session, "told", ["id", "v"]).statements(rows) == [
        """db.getCollection("told").insertOne(EJSON.deserialize({"id": 1, "v": "it's"}))"""
    ]
    changed = target(session, "told", ["id", "v"], mode="upsert", key_columns=("id",)).statements(rows)
    assert changed == [
        'db.getCollection("told").updateOne(EJSON.deserialize({"id": 1}), '
        """EJSON.deserialize({"$set": {"v": "it's"}}), {upsert: true})"""
    ]


def test_a_collection_that_is_there_is_not_made_again(kind, session):
    assert "createIndex" in session.create("made", [], ("id",))
    assert session.entity("made").column("_id").generated == "identity"
    for name, reason in (("made", "exists"), ("a$b", "bad_name"), ("a" * 121, "bad_name")):
        with pytest.raises(ConnectorError) as caught:
            session.create(name, [], ())
        assert caught.value.reason == reason


def test_a_wait_is_ended_from_another_thread(kind, session):
    outcome = []

    def wait():
        try:
            session.metadata()
        except ConnectorError as error:
            outcome.append(error)

    with kind.server._lock:
        waiting = threading.Thread(target=wait)
        waiting.start()

        def stopped():
            session.cancel()
            waiting.join(0.1)
            return not waiting.is_alive()

        eventually(stopped)
    assert isinstance(outcome[0], ConnectionLost)


# --- Connecting


def stage_of(connector):
    return list(connector.stages())[-1]


def test_a_wrong_password_is_reported_at_its_stage(kind):
    stage = stage_of(kind.connector(account=("writer", "wrong")))
    assert (stage.name, stage.code) == ("auth", "auth_failed")


def test_an_account_without_write_permission_is_reported(kind):
    assert (stage_of(kind.stranger()).name, stage_of(kind.stranger()).code) == ("permission", "no_permission")


def test_a_closed_network_is_never_reached(kind):
    connector = kind.connector()
    connector.gate = Gate()
    stage = stage_of(connector)
    assert (stage.name, stage.code) == ("resolve", "not_allowed")
    with pytest.raises(ConnectorError) as caught:
        connector.open()
    assert caught.value.code == "target_not_allowed"
    assert kind.server.peers == []


def test_an_address_that_changes_after_it_was_judged_is_judged_again(kind):
    class Turning(Gate):
        turned = False

        def allows(self, address):
            before, self.turned = self.turned, True
            return not before

    connector = kind.connector()
    connector.gate = Turning(["127.0.0.0/8"])
    with pytest.raises(ConnectorError) as caught:
        connector.open(timeout=1)
    assert caught.value.code == "target_not_allowed"
    assert kind.server.peers == []


def test_a_refused_connection_is_reported_at_its_stage(kind):
    connector = kind.connector()
    kind.server.stop()
    stage = stage_of(connector)
    assert (stage.name, stage.code) == ("connect", "refused")
    kind.start()


def test_a_server_without_tls_is_reported_at_its_stage(kind, monkeypatch):
    monkeypatch.setattr("webapp.limits.TARGET_CONNECT_SECONDS", 1.0)
    settings = kind.connector().settings.model_copy(update={"tls": "verify-full"})
    stage = stage_of(MongodbConnector(settings, GATE))
    assert (stage.name, stage.code) == ("tls", "tls_failed")


@pytest.mark.parametrize(
    ("text", "tls"),
    [
        ("mongodb://u:p%40@a.example:27018,b.example/shop?replicaSet=rs&tls=true", "verify-full"),
        (
            "mongodb://u:p%40@a.example:27018,b.example/shop?replicaset=rs&ssl=true&tlsInsecure=true",
            "require",
        ),
    ],
)
def test_a_connection_string_is_read(text, tls):
    params = MongodbConnector(MongodbConnector.Settings(connection_string=text), GATE).connect_options()
    assert (params.hosts, params.database) == ((("a.example", 27018), ("b.example", 27017)), "shop")
    assert (params.username, params.password, params.tls, params.options) == (
        "u",
        "p@",
        tls,
        {"replicaSet": "rs"},
    )


@pytest.mark.parametrize(
    "text",
    [
        "mongodb://h/shop?tlsCAFile=/etc/passwd",
        "mongodb://h/shop?authMechanism=MONGODB-AWS",
        "mongodb://h/shop?authMechanism=GSSAPI",
        "mongodb://%2Ftmp%2Fmongodb-27017.sock/shop",
        "mongodb://h/?replicaSet=rs",
        "http://h/shop",
        "mongodb://u:p@ss@h/shop",
    ],
)
def test_a_connection_string_with_a_redirection_is_rejected(text):
    with pytest.raises(ConnectorError) as caught:
        MongodbConnector(MongodbConnector.Settings(connection_string=text), GATE).connect_options()
    assert caught.value.reason == "bad_settings"
    assert "p@ss" not in caught.value.message


@pytest.mark.parametrize(
    "options", [{"tlsCAFile": "/etc/passwd"}, {"retryWrites": "perhaps"}, {"proxyHost": "h"}]
)
def test_options_that_may_not_be_set_are_named(options):
    with pytest.raises(ValidationError) as caught:
        MongodbConnector.Settings(host="h", options=options)
    assert next(iter(options)) in str(caught.value)

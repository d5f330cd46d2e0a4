"""For every kind, metadata match the created tables, and queries run in constant memory."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.connectors.kinds import Col, Table
from tests.connectors.sending import deliver
from webapp.connectors.base import STAGES, ConnectorError
from webapp.connectors.schema import Column


def test_every_stage_of_a_verification_goes_well(kind):
    stages = list(kind.connector().stages())
    assert [(stage.name, stage.ok) for stage in stages] == [(stage.name, True) for stage in stages]
    assert [stage.name for stage in stages] == [
        name for name in STAGES if name in {item.name for item in stages}
    ]
    assert all(stage.message and not stage.code for stage in stages)


def test_an_empty_database_has_no_tables(kind, session):
    own = [entity for entity in session.metadata().entities if "." not in entity.name]
    assert own == []


@pytest.fixture
def tables(kind):
    kind.make(Table("parents", {"a": Col(key=True, null=False), "b": Col(key=True, null=False)}))
    kind.make(Table("kinds", {"id": Col(key=True, null=False)}))
    kind.make(
        Table(
            "orders",
            {
                "id": Col(key=True, null=False),
                "code": Col("text", length=7, null=False, unique=True),
                "note": Col("text"),
                "amount": Col("decimal", precision=9, scale=3, least=0),
                "at": Col("timestamp"),
                "kind": Col(refers=("kinds", "id")),
            },
        )
    )
    return None


@pytest.mark.needs("keys")
def test_keys_are_those_of_the_table_in_their_order(session, tables):
    assert session.entity("parents").keys == ("a", "b")
    assert session.entity("orders").keys == ("id",)
    assert session.entity("orders").column("id").key


def test_columns_tell_their_types_lengths_and_whether_they_may_be_empty(kind, session, tables):
    found = {
        column.name: column for column in session.entity("orders").fields if column.name not in kind.added
    }
    assert list(found) == ["id", "code", "note", "amount", "at", "kind"]
    assert [found[name].type for name in ("id", "code", "note", "amount", "at")] == [
        kind.told(type) for type in ("integer", "text", "text", "decimal", "timestamp")
    ]
    assert found["code"].max_length == 7
    if "precision" not in kind.lacks:
        assert (found["amount"].precision, found["amount"].scale) == (9, 3)
    assert [found[name].nullable for name in ("id", "code", "note")] == [False, False, True]
    assert (found["code"].unique, found["note"].unique) == (True, False)
    assert all(column.declared for column in found.values())


@pytest.mark.needs("foreign_key")
def test_foreign_keys_contain_their_target(session, tables):
    (relation,) = session.entity("orders").relations
    assert (relation.columns, relation.entity, relation.entity_columns) == (("kind",), "kinds", ("id",))


@pytest.mark.needs("unique", "keys")
def test_unique_columns_are_reported(session, tables):
    assert session.entity("orders").uniques == (("code",),)


@pytest.mark.needs("check")
def test_check_constraints_are_reported(session, tables):
    (check,) = session.entity("orders").checks
    assert "amount" in check
    assert ">=" in check


@pytest.mark.needs("identity")
def test_columns_that_the_target_counts_are_marked(kind, session):
    kind.make(Table("made", {"id": Col(identity=True, key=True, null=False), "v": Col()}))
    found = session.entity("made").column("id")
    assert (found.generated, found.required) == ("identity", False)


@pytest.mark.needs("defaults")
def test_a_column_with_a_default_is_not_required(kind, session):
    kind.make(Table("made", {"id": Col(key=True, null=False), "v": Col(null=False, default="7")}))
    found = session.entity("made").column("v")
    assert "7" in found.default
    assert not found.required
    assert session.entity("made").column("id").required


def test_one_table_looked_up_is_what_the_whole_list_has(session, tables):
    every = {entity.name: entity for entity in session.metadata().entities if "." not in entity.name}
    assert sorted(every) == ["kinds", "orders", "parents"]
    assert [session.entity(name) for name in every] == list(every.values())


def test_a_missing_table_is_not_found(session, tables):
    assert session.entity("nowhere") is None
    assert session.entity("") is None


def test_a_table_is_found_in_letters_of_another_case(session, tables):
    assert session.entity("ORDERS").name == "orders"


def test_many_tables_take_no_more_queries_than_one(kind, session):
    for number in range(30):
        kind.make(Table(f"t{number:03}", {"id": Col(key=True, null=False), "v": Col("text", length=10)}))
    own = [entity for entity in session.metadata().entities if "." not in entity.name]
    assert [entity.name for entity in own] == [f"t{number:03}" for number in range(30)]
    assert all(entity.column("id").unique for entity in own)


def test_keys_come_in_order_and_in_batches(kind, session):
    kind.make(Table("many", {"id": Col(key=True, null=False), "v": Col()}))
    count = 25_000
    deliver(session, "many", {"id": list(range(count, 0, -1)), "v": [row % 3 for row in range(count)]})
    batches = list(session.keys(session.entity("many"), ["id"]))
    assert [key for batch in batches for key in batch.column(0).to_pylist()] == list(range(1, count + 1))
    assert len(batches) > 1


@pytest.mark.needs("defaults")
def test_keys_are_those_for_which_the_condition_holds(kind, session):
    kind.make(Table("some", {"id": Col(key=True, null=False), "v": Col("text")}))
    deliver(session, "some", {"id": [1, 2, 3], "v": ["a", "100%", "a"]})
    entity = session.entity("some")
    (batch,) = session.keys(entity, ["id"], "v = 'a' -- only these")
    assert batch.column(0).to_pylist() == [1, 3]
    with pytest.raises(ConnectorError):
        list(session.keys(entity, ["id"], "1 = 1); DELETE FROM some; --"))
    assert len(kind.rows("some", "id")) == 3


def test_known_returns_which_combinations_exist(kind, session):
    kind.make(Table("pairs", {"a": Col(key=True, null=False), "b": Col("text")}))
    deliver(session, "pairs", {"a": [1, 2, 3], "b": ["x", "y'", None]})
    entity = session.entity("pairs")
    expected = pa.record_batch({"a": [1, 1, 2, 3], "b": ["x", "y'", "y'", None]})
    assert session.contains(entity, ["a", "b"], expected).to_pylist() == [True, False, True, False]
    texts = pa.record_batch({"a": ["2", "two", None]})
    assert session.contains(entity, ["a"], texts).to_pylist() == [True, False, False]


def test_a_sample_has_every_column_and_at_most_the_requested_rows(kind, session):
    kind.make(Table("seen", {"id": Col(key=True, null=False), "v": Col("text"), "w": Col("date")}))
    deliver(session, "seen", {"id": list(range(10)), "v": ["é"] * 10, "w": pa.array([0] * 10, pa.date32())})
    batch = session.sample(session.entity("seen"), 4)
    assert (batch.schema.names, batch.num_rows) == ([*kind.added, "id", "v", "w"], 4)


@pytest.mark.needs("create")
def test_a_table_made_of_columns_takes_their_values(kind, session):
    columns = [
        Column("id", "integer", "", nullable=False),
        Column("Name of it", "text", "", nullable=False, max_length=20),
        Column("price", "decimal", "", precision=9, scale=2),
        Column("born", "date", ""),
        Column("at", "timestamp", ""),
        Column("flag", "boolean", ""),
        Column("data", "json", ""),
        Column("code", "uuid", ""),
    ]
    statement = session.create("made", columns, ["id"])
    assert statement == session.create_statement("made", columns, ["id"])
    entity = session.entity("made")
    assert entity.keys == ("id",)
    assert [column.name for column in entity.fields] == [column.name for column in columns]
    rows = {
        "id": [1], "Name of it": ["a"], "price": ["1.50"], "born": ["2024-01-31"], "at": ["2024-01-31 01:02:03"],
        "flag": [True], "data": ['{"a": 1}'], "code": ["0f8fad5b-d9cb-469f-a165-70867728950e"],
    }  # fmt: skip
    assert deliver(session, "made", rows).failures == []


@pytest.mark.needs("create")
def test_a_table_that_is_there_is_not_made_again(kind, session, tables):
    with pytest.raises(ConnectorError) as caught:
        session.create("orders", [Column("id", "integer", "")], [])
    assert caught.value.reason == "exists"


@pytest.mark.needs("create")
def test_a_name_that_is_too_long_is_rejected_before_the_target_truncates_it(kind, session):
    with pytest.raises(ConnectorError) as caught:
        session.create("a" * (kind.connector().can.name_chars + 1), [Column("id", "integer", "")], [])
    assert caught.value.reason == "bad_name"


@pytest.mark.needs("create")
def test_a_query_takes_values_as_parameters_and_changes_nothing(kind, session):
    kind.make(Table("asked", {"id": Col(key=True, null=False), "v": Col("text")}))
    evil = "x'; DELETE FROM asked; --"
    deliver(session, "asked", {"id": [1, 2], "v": [evil, "100%"]})
    query = "SELECT id AS found FROM asked WHERE v = {{v}} AND id < {{n}} AND '100%' = '100%';"
    assert session.query(query, {"v": evil, "n": 5}, 10).to_pylist() == [{"found": 1}]
    assert session.query("SELECT id AS found FROM asked WHERE v = '{{v}}'", {"v": "100%"}, 10).num_rows == 1
    assert session.query("SELECT id FROM asked", {}, 1).num_rows == 1
    for bad in ("DELETE FROM asked", "SELECT 1; DELETE FROM asked", "SELECT {{nobody}}", "SELECT {{"):
        with pytest.raises(ConnectorError):
            session.query(bad, {}, 10)
    assert len(kind.rows("asked", "id")) == 2


@pytest.mark.needs("create")
def test_statements_for_people_do_what_sending_does(kind, session):
    columns = {"id": Col(key=True, null=False), "v": Col("text"), "w": Col("date"), "f": Col("boolean")}
    for name in ("sent", "said"):
        kind.make(Table(name, columns))
    rows = {
        "id": [1, 2], "v": ["it's \\ ü\n", None], "w": pa.array([0, None], pa.date32()), "f": [True, None],
    }  # fmt: skip
    for mode, how in (
        ("insert", {}),
        ("upsert", {"key_columns": ("id",)}),
        ("update", {"key_columns": ("id",)}),
    ):
        batch = {**rows, "v": [f"{mode} it's \\ ü\n", None]}
        deliver(session, "sent", batch, mode=mode, **how)
        entity = session.entity("said")
        from webapp.connectors.base import WriteSpec

        target = session.target(WriteSpec(entity, entity.fields, mode, **how))
        statements = target.statements(pa.record_batch(batch))
        assert len(statements) == 2
        for statement in statements:
            session.execute(statement)
        assert kind.rows("said") == kind.rows("sent")


def test_closing_the_listing_of_keys_early_leaves_the_session_usable(kind, session):
    kind.make(Table("many", {"id": Col(key=True, null=False)}))
    deliver(session, "many", {"id": list(range(15_000))})
    listing = session.keys(session.entity("many"), ["id"])
    next(listing)
    listing.close()
    assert session.sample(session.entity("many"), 1).num_rows == 1


def test_keys_are_in_the_requested_order(kind, session):
    kind.make(Table("pairs", {"id": Col(key=True, null=False), "v": Col()}))
    deliver(session, "pairs", {"id": [1, 2, 3], "v": [30, 10, 20]})
    (batch,) = session.keys(session.entity("pairs"), ["id", "v"], order=["v"])
    assert batch.column(0).to_pylist() == [2, 3, 1]

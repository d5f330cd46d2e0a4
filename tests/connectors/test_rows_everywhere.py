"""Rows sent to every kind of target: accepted rows arrive, and rejected rows are reported without affecting others."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tests.connectors.kinds import Col, Table
from tests.connectors.sending import deliver, reasons, target_of

TEXTS = [
    "plain", "", None, " ", " edge ", "\t", "comma, semicolon; | pipe", 'quote " and ""', "apostrophe ' and ''",
    "line\nline", "line\r\nline", "\r", "back\\slash", "ends in \\", "\\.", "NULL", "\\N", "null", "<b>&amp;</b>",
    "é ñ ß ﬀ", "😀 emoji 👩‍👧", "مرحبا", "\u2028", "\ufeff", "\x01\x1f\x7f", "a" * 500,
    "$(x) ${x} &x :x ? %s %(a)s {{x}}",
    "a;\n\nb--c/*", "00123", "1e5", "true", "{a,b}", "(1)", "0", "\x1a",
]  # fmt: skip
UTC = dt.UTC
VALUES = {
    "integer": (pa.int64(), [0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63), None]),
    "decimal": (pa.decimal128(38, 2), [Decimal(text) for text in ("0.00", "-0.01", "9999999999.99", "-1.50")] + [None]),
    "float": (pa.float64(), [0.0, 1.5, -2.25, 0.1, 1e20, 1e-7, None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "date": (
        pa.date32(),
        [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1899, 12, 31), dt.date(9999, 12, 31), None],
    ),
    "timestamp": (
        pa.timestamp("us"),
        [dt.datetime(2024, 1, 31, 1, 2, 3), dt.datetime(2000, 1, 1, 12, 0, 0, 500_000), None],  # noqa: DTZ001
    ),
    "timestamptz": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 1, 31, 23, 59, 59, tzinfo=UTC), dt.datetime(2024, 7, 1, 0, 0, 0, 1000, tzinfo=UTC), None],
    ),
    "text": (pa.string(), TEXTS),
    "binary": (pa.binary(), [b"", b"\0\x01\xff\\'\"\n", bytes(range(256)), None]),
    "json": (pa.string(), ['{"a": [1, 2, {"b": "é\\n\\"\\\\"}], "c": null}', "[]", '"text"', None]),
    "uuid": (pa.string(), ["0f8fad5b-d9cb-469f-a165-70867728950e", None]),
}  # fmt: skip


@pytest.mark.parametrize("type", VALUES)
@pytest.mark.parametrize("rows", [7, 200])
def test_values_of_every_type_come_back_as_they_were_sent(kind, session, type, rows):
    arrow, inputs = VALUES[type]
    values = [inputs[row % len(inputs)] for row in range(max(rows, len(inputs)))]
    kind.make(Table("round", {"n": Col(key=True, null=False), "v": Col(type)}))
    sent = deliver(session, "round", {"n": range(len(values)), "v": pa.array(values, arrow)})
    assert reasons(sent) == {}
    got = kind.rows("round", "n", "v")
    assert [row[1] for row in got] == [kind.kept(type, value) for value in values]


def test_dictionaries_are_written_as_their_values(kind, session):
    kind.make(Table("pooled", {"n": Col(key=True, null=False), "v": Col("text")}))
    values = pa.array(["é", None, "a\tb"] * 50).dictionary_encode()
    deliver(session, "pooled", {"n": range(150), "v": values})
    assert [row[1] for row in kind.rows("pooled", "n", "v")] == ["é", None, "a\tb"] * 50


@pytest.mark.needs("arrays")
def test_arrays_arrive_item_by_item(kind, session):
    kind.make(Table("listed", {"n": Col(key=True, null=False), "v": Col("array")}))
    values = [["a", 'b"\\,{}', None, "NULL", "", "é\n\t"], [], None]
    deliver(session, "listed", {"n": range(3), "v": pa.array(values, pa.list_(pa.string()))})
    assert [row[1] for row in kind.rows("listed", "n", "v")] == values


def test_numbers_without_a_fraction_fit_integers_in_any_format(kind, session):
    kind.make(Table("whole", {"n": Col(key=True, null=False), "v": Col()}))
    deliver(session, "whole", {"n": range(2), "v": pa.array([3.0, None])})
    deliver(session, "whole", {"n": [2], "v": pa.array([Decimal("4.00")])})
    assert [row[1] for row in kind.rows("whole", "n", "v")] == [3, None, 4]


def shop(kind):
    """A table that refuses for five reasons, as far as the kind has them, and its parent."""
    kind.make(Table("parents", {"id": Col(key=True, null=False)}))
    kind.make(
        Table(
            "orders",
            {
                "id": Col(key=True, null=False),
                "code": Col("text", length=20, unique=True),
                "parent": Col(refers=("parents", "id")),
                "amount": Col("decimal", least=0),
                "name": Col("text", length=20, null=False),
            },
        )
    )


SPOILT = {
    "unique": ("code", "code 3"),
    "foreign_key": ("parent", 99),
    "check": ("amount", Decimal("-1.00")),
    "not_null": ("name", None),
    "too_long": ("name", "a name of 21 letters."),
}


def orders(count, spoilt=()):
    """Good rows but for those of `spoilt`: (row, column, value)."""
    rows = {
        "id": list(range(count)),
        "code": [f"code {row}" for row in range(count)],
        "parent": [row % 2 for row in range(count)],
        "amount": [Decimal(row).quantize(Decimal("0.01")) for row in range(count)],
        "name": [f"name {row}" for row in range(count)],
    }
    for row, column, value in spoilt:
        rows[column][row] = value
    types = {"amount": pa.decimal128(38, 2)}
    return {name: pa.array(values, types.get(name)) for name, values in rows.items()}


@pytest.mark.parametrize("fault", [pytest.param(name, marks=pytest.mark.needs(name)) for name in SPOILT])
@pytest.mark.parametrize("count", [40, 2_500])
def test_a_rejected_row_in_the_middle_is_reported_and_the_others_are_written(kind, session, fault, count):
    shop(kind)
    deliver(session, "parents", {"id": [0, 1]})
    bad = [7, count // 2, count - 1]
    column, value = SPOILT[fault]
    sent = deliver(session, "orders", orders(count, [(row, column, value) for row in bad]))
    assert reasons(sent) == dict.fromkeys(bad, fault)
    assert [row[0] for row in kind.rows("orders", "id")] == [row for row in range(count) if row not in bad]
    assert all(failure.message and failure.native for failure in sent.failures)


def test_rows_rejected_for_different_reasons_in_one_chunk_are_distinguished(kind, session):
    shop(kind)
    deliver(session, "parents", {"id": [0, 1]})
    faults = [name for name in SPOILT if name not in kind.lacks]
    bad = {10 * place + 5: fault for place, fault in enumerate(faults)}
    sent = deliver(session, "orders", orders(100, [(row, *SPOILT[fault]) for row, fault in bad.items()]))
    assert reasons(sent) == bad
    assert len(kind.rows("orders", "id")) == 100 - len(bad)


@pytest.mark.needs("unique")
def test_of_two_rows_of_one_key_the_first_goes_through(kind, session):
    shop(kind)
    deliver(session, "parents", {"id": [0, 1]})
    sent = deliver(session, "orders", orders(5, [(4, "code", "code 1"), (2, "code", "code 1")]))
    assert reasons(sent) == {2: "unique", 4: "unique"}
    assert [row[0] for row in kind.rows("orders", "id")] == [0, 1, 3]


def test_a_chunk_with_only_rejected_rows_does_not_change_the_table(kind, session):
    kind.make(Table("keys", {"id": Col(key=True, null=False)}))
    deliver(session, "keys", {"id": [1]})
    assert reasons(deliver(session, "keys", {"id": [1, 1, 1]})) == dict.fromkeys(range(3), "unique")
    assert kind.rows("keys", "id") == [(1,)]


@pytest.mark.needs("types")
def test_a_text_that_is_no_number_is_a_wrong_type(kind, session):
    kind.make(Table("typed", {"n": Col(key=True, null=False), "v": Col()}))
    sent = deliver(session, "typed", {"n": [1, 2, 3], "v": ["10", "ten", "30"]})
    assert reasons(sent) == {1: "wrong_type"}
    assert kind.rows("typed", "n", "v") == [(1, 10), (3, 30)]


NAMES = [
    "order", "select", "MixedCase", "with space", 'quo"ted', "back`tick", "per%cent", "dot.ted", "semi;colon",
    "ünïcode", "a" * 60, "%s", "apo'strophe", "[bracket]",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_tables_and_columns_of_any_name_are_written_to(kind, session, name):
    if name in kind.other_names:
        pytest.skip(f"{name} means something else to {kind.name}")
    kind.make(Table(name, {"id": Col(key=True, null=False), name: Col("text")}))
    entity = session.entity(name)
    assert entity is not None
    assert [column.name for column in entity.fields] == [*kind.added, "id", name]
    deliver(session, entity.name, {"id": [1, 2], name: ["a", "b"]})
    deliver(session, entity.name, {"id": [2, 3], name: ["c", "d"]}, mode="upsert", key_columns=("id",))
    deliver(session, entity.name, {"id": [1], name: ["e"]}, mode="update", key_columns=("id",))
    assert kind.rows(name, "id", name) == [(1, "e"), (2, "c"), (3, "d")]
    assert session.sample(entity, 1).num_rows == 1
    found = session.contains(entity, [name], pa.record_batch({name: ["c", "nobody"]}))
    assert found.to_pylist() == [True, False]


def test_an_empty_batch_is_sent_and_nothing_happens(kind, session):
    kind.make(Table("none", {"id": Col(key=True, null=False)}))
    target = target_of(session, "none", ["id"])
    assert target.send(pa.record_batch({"id": pa.array([], pa.int64())})).failures == []
    target.commit()
    assert kind.rows("none", "id") == []


def test_an_empty_table_can_be_looked_at(kind, session):
    kind.make(Table("none", {"id": Col(key=True, null=False), "v": Col("text")}))
    entity = session.entity("none")
    assert session.sample(entity, 10).num_rows == 0
    assert sum(batch.num_rows for batch in session.keys(entity, ["id"])) == 0
    assert session.contains(entity, ["id"], pa.record_batch({"id": [1]})).to_pylist() == [False]


@pytest.mark.needs("identity")
def test_captured_keys_are_in_the_order_of_their_rows(kind, session):
    code = Col("text", length=20, unique=True)
    kind.make(Table("made", {"id": Col(identity=True, key=True, null=False), "code": code}))
    order = np.random.default_rng(7).permutation(5_000)
    codes = [f"code {number}" for number in order]
    codes[4_000] = codes[10]
    sent = deliver(session, "made", {"code": codes}, capture=("id",))
    assert reasons(sent) == {4_000: "unique"}
    keys = sent.keys["id"].to_pylist()
    found = {code: key for code, key in zip(codes, keys, strict=True) if key is not None}
    assert found == {code: number for number, code in kind.rows("made", "id", "code")}
    assert sent.keys["id"][4_000].as_py() is None


@pytest.mark.needs("identity")
def test_keys_are_captured_for_rows_that_are_otherwise_equal(kind, session):
    kind.make(Table("made", {"id": Col(identity=True, key=True, null=False), "v": Col()}))
    sent = deliver(session, "made", {"v": [5, 5, 5]}, capture=("id",))
    assert sent.keys["id"].to_pylist() == [number for number, _ in kind.rows("made", "id", "v")]


def test_an_upsert_changes_what_is_there_and_adds_the_rest(kind, session):
    kind.make(Table("kept", {"id": Col(key=True, null=False), "v": Col("text"), "other": Col()}))
    deliver(session, "kept", {"id": [1, 2], "v": ["a", "b"], "other": [1, 2]})
    sent = deliver(session, "kept", {"id": [2, 3], "v": ["B", "C"]}, mode="upsert", key_columns=("id",))
    assert reasons(sent) == {}
    assert kind.rows("kept", "id", "v", "other") == [(1, "a", 1), (2, "B", 2), (3, "C", None)]


def test_of_two_upserts_of_one_key_the_last_holds(kind, session):
    kind.make(Table("kept", {"id": Col(key=True, null=False), "v": Col("text")}))
    rows = {"id": [1, 2, 1, 1], "v": ["a", "b", "c", "d"]}
    assert reasons(deliver(session, "kept", rows, mode="upsert", key_columns=("id",))) == {}
    assert kind.rows("kept", "id", "v") == [(1, "d"), (2, "b")]


def test_an_update_changes_rows_and_reports_missing_ones(kind, session):
    kind.make(Table("kept", {"id": Col(key=True, null=False), "v": Col("text"), "w": Col("text")}))
    deliver(session, "kept", {"id": [1, 2, 3], "v": ["a", "b", "c"], "w": ["x", "y", "z"]})
    rows = {"id": [2, 9, 3, 2], "v": ["first", "nobody", "C", "second"]}
    sent = deliver(session, "kept", rows, mode="update", key_columns=("id",))
    assert reasons(sent) == {1: "missing_row"}
    assert kind.rows("kept", "id", "v", "w") == [(1, "a", "x"), (2, "second", "y"), (3, "C", "z")]


def test_an_update_that_changes_nothing_finds_its_row_all_the_same(kind, session):
    kind.make(Table("kept", {"id": Col(key=True, null=False), "v": Col("text")}))
    deliver(session, "kept", {"id": [1], "v": ["a"]})
    assert (
        reasons(deliver(session, "kept", {"id": [1], "v": ["a"]}, mode="update", key_columns=("id",))) == {}
    )


@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("check", "not_null")]
)
@pytest.mark.parametrize("mode", ["upsert", "update"])
def test_rejected_changes_are_reported_row_by_row(kind, session, mode, fault):
    shop(kind)
    deliver(session, "parents", {"id": [0, 1]})
    deliver(session, "orders", orders(30))
    column, value = SPOILT[fault]
    spoilt = orders(30, [(20, column, value)])
    assert reasons(deliver(session, "orders", spoilt, mode=mode, key_columns=("id",))) == {20: fault}


def test_deleting_removes_rows_by_their_keys_and_reports_missing_ones(kind, session):
    kind.make(Table("kept", {"id": Col(key=True, null=False), "v": Col("text")}))
    deliver(session, "kept", {"id": [1, 2, 3], "v": ["a", "b", "c"]})
    target = target_of(session, "kept", ["id"], key_columns=("id",))
    sent = target.delete(pa.record_batch({"id": [3, 7, 1]}))
    target.commit()
    assert reasons(sent) == {1: "missing_row"}
    assert kind.rows("kept", "id") == [(2,)]


@pytest.mark.needs("foreign_key")
def test_a_row_that_others_refer_to_is_not_deleted(kind, session):
    shop(kind)
    deliver(session, "parents", {"id": [0, 1, 2]})
    deliver(session, "orders", orders(1))
    target = target_of(session, "parents", ["id"], key_columns=("id",))
    sent = target.delete(pa.record_batch({"id": [0, 1, 2]}))
    target.commit()
    assert reasons(sent) == {0: "foreign_key"}
    assert kind.rows("parents", "id") == [(0,)]


def test_a_batch_that_was_prepared_waits_while_others_are_prepared_and_sent(kind, session):
    kind.make(Table("ahead", {"id": Col(key=True, null=False), "name": Col("text")}))
    target = target_of(session, "ahead", ["id", "name"])
    batches = [
        pa.record_batch({"id": range(at, at + 100), "name": [f"name number {at + i}" for i in range(100)]})
        for at in (0, 100, 200)
    ]
    first, second = target.prepare(batches[0]), target.prepare(batches[1])
    assert first().failures == []
    third = target.prepare(batches[2])
    assert second().failures == []
    assert third().failures == []
    target.commit()
    assert [tuple(row) for row in kind.rows("ahead", "id", "name")] == [
        (i, f"name number {i}") for i in range(300)
    ]

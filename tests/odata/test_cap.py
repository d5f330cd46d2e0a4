"""Against a real OData server, in V4 and V2: nothing is lost, nothing doubled, and every value arrives."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from webapp.connectors.base import ConnectorError, WriteSpec
from webapp.connectors.http.channel import RowBatch, RowOutcome
from webapp.connectors.odata.connector import OdataConnector
from webapp.connectors.schema import Relation

ROWS = 1_000
versions = pytest.mark.parametrize("version", ["v4", "v2"])


class SendControl:
    """A push that is never stopped."""

    def raise_if_stopped(self) -> None:
        pass

    def wait(self, seconds: float) -> None:
        pass


def push(
    made: OdataConnector,
    values: list[dict[str, Any]],
    entity: str = "Orders",
    delete: bool = False,
    **more: Any,
) -> list[RowOutcome]:
    ended: list[RowOutcome] = []
    with made.open() as channel:
        found = channel.entity(entity)
        names = list(dict.fromkeys(name for row in values for name in row))
        sending = channel.create_sender(
            WriteSpec(found, tuple(found.column(name) for name in names), **more), SendControl()
        )
        for start in range(0, len(values), sending.chunk_rows):
            part = values[start : start + sending.chunk_rows]
            numbers = range(start + 1, start + 1 + len(part))
            rows = RowBatch(pa.RecordBatch.from_pylist(part), list(numbers), [f"key-{n}" for n in numbers])
            some = sending.delete(rows) if delete else sending.send(rows)
            ended += some
    return ended


def orders(count: int) -> list[dict[str, Any]]:
    return [
        {
            "number": f"N{n}", "total": Decimal(n) / 8, "status": "open", "shipOn": dt.date(2026, 1, 1),
            "Items": [{"position": place, "product": f"P{place}", "price": place * 1.25} for place in (1, 2)],
        }
        for n in range(1, count + 1)
    ]  # fmt: skip


def states(ended: list[RowOutcome]) -> Counter[tuple[str, str]]:
    return Counter((outcome.state, outcome.reason) for outcome in ended)


@versions
@pytest.mark.parametrize("batch", [False, True], ids=["single", "batch"])
def test_a_thousand_rows_with_their_children_arrive_once_while_tokens_wear_out(server, version, batch):
    server.become(expire_after=5 if batch else 50)
    result = server.connector(version, batch=batch)
    ended = push(result, orders(ROWS), capture=("ID",))
    stored = server.holds()
    assert states(ended) == {("delivered", ""): ROWS}
    assert (stored["Orders"], stored["numbers"], stored["Items"]) == (ROWS, ROWS, 2 * ROWS)
    assert stored["refused"] > 0  # tokens did wear out
    assert {row["ID"] for row in server.rows("Orders?$select=ID")} == {
        outcome.keys["ID"] for outcome in ended
    }


@versions
@pytest.mark.parametrize("rules", [{"head": False}, {"expire_after": 1}, {"csrf": False}], ids=str)
def test_no_row_is_lost_with_any_behaviour_of_the_gateway(server, version, rules):
    server.become(**rules)
    assert states(push(server.connector(version), orders(40))) == {("delivered", ""): 40}
    assert server.holds()["numbers"] == server.holds()["Orders"] == 40


@versions
def test_every_value_arrives_as_it_was_sent(server, version):
    row = {
        "number": "N1", "status": "shipped", "total": Decimal("123456789012.345"), "units": 2**53 + 1,
        "weight": 1.5, "urgent": True, "placedAt": dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "stampedAt": dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC), "shipOn": dt.date(2026, 2, 3),
        "opensAt": dt.time(10, 11, 12), "photo": b"\xff\xef\x00", "customer_ID": "Ä'/1",
    }  # fmt: skip
    assert states(push(server.connector(version), [row])) == {("delivered", ""): 1}
    (stored,) = server.rows("Orders")
    assert {name: stored[name] for name in row} == {
        "number": "N1", "status": "shipped", "total": "123456789012.345", "units": str(2**53 + 1), "weight": 1.5,
        "urgent": True, "placedAt": "2026-01-02T03:04:05Z", "stampedAt": "2026-01-02T03:04:05.678Z",
        "shipOn": "2026-02-03", "opensAt": "10:11:12", "photo": "_-8A", "customer_ID": "Ä'/1",
    }  # fmt: skip


@versions
def test_a_key_of_the_server_is_brought_back(server, version):
    ended = push(server.connector(version), [{"title": "a"}, {"title": "b"}], "Tickets", capture=("number",))
    assert {outcome.keys["number"] for outcome in ended} == {row["number"] for row in server.rows("Tickets")}


@versions
def test_rows_are_changed_and_deleted_by_a_key_that_needs_quoting(server, version):
    result = server.connector(version)
    keys = [{"product": "O'Neil & Söhne/1", "plant": 1}, {"product": "50% + 1?#", "plant": 2}]
    assert states(push(result, [{**key, "amount": 1} for key in keys], "Stocks")) == {("delivered", ""): 2}
    changed = [{**key, "amount": Decimal("2.5")} for key in keys]
    how = {"mode": "update", "key_columns": ("product", "plant")}
    assert states(push(result, changed, "Stocks", **how)) == {("delivered", ""): 2}
    assert {row["amount"] for row in server.rows("Stocks")} == {"2.500"}
    gone = push(result, keys, "Stocks", delete=True, key_columns=("product", "plant"))
    assert states(gone) == {("delivered", ""): 2}
    again = push(result, keys, "Stocks", delete=True, key_columns=("product", "plant"))
    assert states(again) == {("failed", "missing_row"): 2}
    assert server.holds()["Stocks"] == 0


@versions
def test_an_update_makes_no_row(server, version):
    ended = push(
        server.connector(version), [{"product": "x", "plant": 1, "amount": 1}], "Stocks", mode="update",
        key_columns=("product", "plant"),
    )  # fmt: skip
    assert states(ended) == {("failed", "missing_row"): 1}
    assert server.holds()["Stocks"] == 0


@versions
@pytest.mark.parametrize("batch", [False, True], ids=["single", "batch"])
def test_a_rejected_row_has_a_reason_and_the_others_arrive(server, version, batch):
    result = server.connector(version, batch=batch)
    values = [
        {"number": "1", "status": "open"},
        {"number": "2", "status": "lost"},
        {"number": "3", "status": "open"},
    ]
    ended = push(result, values)
    assert [outcome.state for outcome in ended] == ["delivered", "failed", "delivered"]
    assert (ended[1].reason, ended[1].status_code) == ("out_of_range", 400)
    assert "open, shipped, cancelled" in ended[1].message
    assert server.holds()["Orders"] == 2


@versions
def test_a_refusal_of_rights_is_no_matter_of_tokens(server, version):
    server.become(forbid=True)
    ended = push(server.connector(version, parallel=1), orders(1))
    assert states(ended) == {("failed", "forbidden"): 1}
    assert ended[0].message == "NOT_YOURS: No authorization for Orders."
    assert server.holds()["writes"] == 1


@versions
def test_a_token_that_is_never_good_is_explained(server, version):
    server.become(sessions=False)
    with pytest.raises(ConnectorError) as caught:
        push(server.connector(version), orders(5))
    assert caught.value.reason == "csrf_failed"
    assert server.holds()["Orders"] == 0


@versions
def test_a_root_without_token_is_helped_by_the_fetch_path(server, version):
    server.become(root=False)
    result = server.connector(version, csrf={"fetch_path": "Customers", "fetch_method": "GET"})
    assert states(push(result, orders(5))) == {("delivered", ""): 5}


@versions
def test_closed_metadata_is_diagnosed_and_an_uploaded_document_used_instead(server, version):
    with server.connector(version).open() as channel:
        document = channel._document()
    server.become(metadata=401)
    result = server.connector(version)
    assert [(stage.name, stage.code) for stage in result.stages()][-1] == ("permission", "metadata_refused")
    result.document = document
    assert all(stage.ok for stage in result.stages())
    assert states(push(result, orders(3))) == {("delivered", ""): 3}


@versions
def test_the_metadata_describe_the_model(server, version):
    with server.connector(version).open() as channel:
        found = {entity.name: entity for entity in channel.metadata().entities}
    assert set(found) == {"Customers", "Orders", "Items", "Stocks", "Tickets"}
    result = found["Orders"]
    assert result.keys == ("ID",)
    assert result.column("ID").generated == "identity"
    assert result.column("touchedAt").generated == "computed"
    assert result.column("status").choices == ("open", "shipped", "cancelled")
    assert (result.column("total").precision, result.column("total").scale) == (15, 3)
    assert result.column("number").comment == "Order number"
    assert result.column("Items").declared == "Navigation(Items)"
    assert result.relations == (Relation("customer", ("customer_ID",), "Customers", ("ID",)),)
    assert found["Tickets"].column("number").generated == "identity"
    assert found["Stocks"].keys == ("product", "plant")

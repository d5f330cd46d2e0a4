"""The worker with a real OData server: every row has an outcome in the ledger, and exists once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.jobs.pushing import Pushing, rows, table_spec
from webapp.connectors.odata.connector import OdataConnector
from webapp.pushes.services import planning

ROWS = 1_000


@pytest.fixture
def pushing(app, monkeypatch):
    result = Pushing(app, monkeypatch)
    monkeypatch.setattr(
        planning,
        "load_push_job",
        lambda push_id: replace(result.order(push_id), capabilities=OdataConnector.can),
    )
    return result


@pytest.mark.parametrize("version", ["v4", "v2"])
def test_a_push_of_a_thousand_orders_with_items_is_delivered_once_and_undone(pushing, server, version):
    server.become(expire_after=50)
    pushing.connect = lambda: server.connector(version).open()
    value = rows(ROWS, Items=lambda i: [{"position": 1, "price": i / 4}, {"position": 2, "price": 1.0}])
    columns = [{"column": "number", "field": "name"}, {"column": "Items", "field": "Items"}]
    spec = table_spec("Orders", value, columns=columns, key_columns=["ID"], capture=["ID"])
    push = pushing.push([(spec, value)])
    done = pushing.do(push)
    stored = server.holds()
    assert (done.status, done.delivered, done.failed, done.unknown) == ("completed", ROWS, 0, 0)
    assert (stored["Orders"], stored["numbers"], stored["Items"]) == (ROWS, ROWS, 2 * ROWS)
    undone = pushing.do(pushing.undo(push))
    assert (undone.status, undone.delivered) == ("completed", ROWS)
    assert server.holds()["Orders"] == 0

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
    made = Pushing(app, monkeypatch)
    monkeypatch.setattr(
        planning, "order", lambda push_id: replace(made.order(push_id), can=OdataConnector.can)
    )
    return made


@pytest.mark.parametrize("version", ["v4", "v2"])
def test_a_push_of_a_thousand_orders_with_items_is_delivered_once_and_undone(pushing, server, version):
    server.become(expire_after=50)
    pushing.connect = lambda: server.connector(version).open()
    given = rows(ROWS, Items=lambda i: [{"position": 1, "price": i / 4}, {"position": 2, "price": 1.0}])
    columns = [{"column": "number", "field": "name"}, {"column": "Items", "field": "Items"}]
    spec = table_spec("Orders", given, columns=columns, key_columns=["ID"], capture=["ID"])
    push = pushing.push([(spec, given)])
    done = pushing.do(push)
    held = server.holds()
    assert (done.status, done.delivered, done.failed, done.unknown) == ("completed", ROWS, 0, 0)
    assert (held["Orders"], held["numbers"], held["Items"]) == (ROWS, ROWS, 2 * ROWS)
    undone = pushing.do(pushing.undo(push))
    assert (undone.status, undone.delivered) == ("completed", ROWS)
    assert server.holds()["Orders"] == 0

"""Accepting pushes: the tables of a connection are read once for many requests, and kept."""

from __future__ import annotations

import threading

import pytest

from tests.views.speak import make
from tests.views.targets import CUSTOMERS, shop  # noqa: F401
from webapp.connectors import driver_process, metadata_json


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def reads(monkeypatch):
    """How often the tables of a target were read, by the settings they were read with."""
    real, found = driver_process.metadata, []

    def counted(connector, seconds):
        found.append(connector.settings)
        return real(connector, seconds)

    monkeypatch.setattr(driver_process, "metadata", counted)
    return found


def ask(edith, shop, **body):
    path = f"/templates/{make(edith, name='Customers', fields=CUSTOMERS)['id']}/push"
    return path, {"connection_id": shop.connection_id, "count": 5, "target": "customers", **body}


def test_pushes_requested_at_the_same_time_share_one_read_of_the_tables(api, cast, edith, shop, reads):
    path, body = ask(edith, shop)
    answers, start = [], threading.Barrier(8)

    def push(number: int) -> None:
        mine = api(cast.edith)
        start.wait()
        answers.append(mine.post(path, json={**body, "offset": 5 * number}).status_code)

    threads = [threading.Thread(target=push, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [201] * 8
    assert len(reads) == 1


def test_known_tables_are_parsed_once_and_again_after_a_refresh(edith, shop, reads, monkeypatch):
    path, body = ask(edith, shop)
    assert edith.post(path, json=body).status_code == 201
    real, parsed = metadata_json.from_json, []
    monkeypatch.setattr(metadata_json, "from_json", lambda stored: parsed.append(1) or real(stored))
    for number in range(1, 4):
        assert edith.post(path, json={**body, "offset": 5 * number}).status_code == 201
    assert len(parsed) <= 1
    shop.execute("ALTER TABLE customers ADD COLUMN phone VARCHAR(20)")
    assert edith.get(f"/connections/{shop.connection_id}/metadata?refresh=true").status_code == 200
    plan = edith.post(f"{path}/plan", json=body).json["tables"][0]
    assert "phone" in [column["column"] for column in plan["columns"]]
    assert len(reads) == 2


def test_a_push_that_creates_its_table_reads_no_other_table(edith, shop, reads):
    path, body = ask(edith, shop, target="fresh", create_table=True)
    answer = edith.post(path, json=body)
    assert answer.status_code == 201, answer.json
    assert answer.json["tables"][0]["create"] is True
    assert edith.post(path, json={**body, "target": "customers"}).json["tables"][0]["create"] is False
    assert reads == []


def test_a_table_that_was_dropped_is_created_although_it_is_known(edith, shop, reads):
    path, body = ask(edith, shop)
    assert edith.post(path, json=body).status_code == 201
    shop.execute("DROP TABLE customers")
    answer = edith.post(path, json={**body, "create_table": True})
    assert answer.json["tables"][0]["create"] is True, answer.json

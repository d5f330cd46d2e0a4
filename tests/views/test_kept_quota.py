"""Promise 31. What a workspace keeps of other things than files: rows read from connections, and metadata documents.
Neither fills the disk."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.views.targets import sqlite_target
from webapp import clock, limits, storage
from webapp.extensions import db
from webapp.files.models import StorageHold
from webapp.operations.purge import pinned_files
from webapp.sources.services import kept_answers

DOCUMENT = (
    '{"openapi": "3.0.0", "info": {"title": "T%s", "version": "1"}, "servers": [{"url": "http://127.0.0.1:9/"}],'
    ' "paths": {"/rows": {"post": {"operationId": "rows", "responses": {"200": {"description": "ok"}}, "requestBody":'
    ' {"content": {"application/json": {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}}}}}}}'
)


@pytest.fixture
def template(app, cast, edith):
    shop = sqlite_target(app, cast, "create table t (a text); insert into t values ('x'), ('y');")
    query = "select hex(randomblob(2000)) as a from t"
    body = {
        "name": "T",
        "fields": [{"name": "a", "type": "source_column"}],
        "source": {"connection_id": shop.connection_id, "query": query},
    }
    created = edith.post("/templates", json=body)
    assert created.status_code == 201, created.text
    return created.json["id"]


def test_rows_of_connections_do_not_fill_the_disk(app, edith, template, monkeypatch):
    monkeypatch.setattr(limits, "FETCHED_FILES_BYTES", 50_000)
    seen = [edith.post(f"/templates/{template}/exports", json={"format": "csv"}) for _ in range(12)]
    codes = [item.status_code for item in seen]
    assert codes[0] == 201
    assert codes[-1] == 429
    assert seen[-1].json["error"]["code"] == "quota_exceeded"
    assert sum(item.size for item in storage.get_storage(app).listing("sources")) <= 50_000
    with app.app_context():
        for item in seen:
            if item.status_code == 201:
                edith.delete(f"/exports/{item.json['id']}")
        kept_answers.purge(clock.now() + timedelta(days=40), pinned_files)
        assert db.session.scalar(sa.select(sa.func.count()).select_from(StorageHold)) == 0
        db.session.remove()
    assert storage.get_storage(app).listing("sources") == []
    assert edith.post(f"/templates/{template}/exports", json={"format": "csv"}).status_code == 201


def test_replaced_documents_do_not_fill_the_disk(app, edith, monkeypatch):
    monkeypatch.setattr(limits, "MAX_DOCUMENTS", 2)
    result = []
    for name in "abc":
        body = {"name": name, "type": "openapi", "settings": {"base_url": "http://127.0.0.1:9/"}}
        result.append(edith.post("/connections", json=body).json["id"])

    def put(connection_id, number):
        url = f"/connections/{connection_id}/metadata-document"
        return edith.put(url, data=DOCUMENT % number, content_type="application/json")

    for number in range(5):
        assert put(result[0], number).status_code == 200
    stored = [item.key for item in storage.get_storage(app).listing("connections") if "document" in item.key]
    assert len(stored) == 1
    assert put(result[1], 1).status_code == 200
    over = put(result[2], 1)
    assert (over.status_code, over.json["error"]["code"]) == (429, "quota_exceeded")
    assert edith.delete(f"/connections/{result[0]}/metadata-document").status_code == 200
    assert put(result[2], 1).status_code == 200
    assert (
        len([item for item in storage.get_storage(app).listing("connections") if "document" in item.key]) == 2
    )

"""The way from a template to a file, on PostgreSQL as on SQLite."""

from __future__ import annotations

import pytest

from jobs import exports
from tests.cast import Program, gather
from tests.conftest import settings_for
from tests.views.speak import FIELDS, make, refused
from webapp import create_app
from webapp.audit.services import audit_log
from webapp.extensions import db, redis_client


@pytest.fixture
def served(postgres_url, shared_redis, tmp_path):
    """An application on PostgreSQL with everybody in it, and a program of Edith's."""
    app = create_app(settings_for(postgres_url, shared_redis, tmp_path))
    with app.app_context():
        redis_client().flushdb()
        db.create_all()
        cast = gather()
        db.session.remove()
    yield app, Program(app, cast.edith.key)
    audit_log.close(app)
    with app.app_context():
        db.session.remove()
        db.engine.dispose()
        redis_client().close()


def test_templates_rows_and_files_are_the_same_on_postgresql(served):
    app, edith = served
    made = make(edith, name="Ünïcode 🙂", description="x" * 10_000)
    path = f"/templates/{made['id']}"
    assert edith.get(path).json == made
    assert (
        edith.patch(path, json={"quantity": 5}, headers={"If-Match": edith.get(path).headers["ETag"]}).json[
            "version"
        ]
        == 2
    )
    assert edith.get(f"{path}@v1").json == made
    assert edith.get("/templates?q=ünï").json["total"] == 1
    assert [one["version"] for one in edith.get(f"{path}/versions").json["items"]] == [2, 1]
    assert list(made["fields"][1]["options"]) == list(FIELDS[1]["options"])
    ask = {"count": 3_000, "seed": "s", "format": "csv"}
    rows = edith.post(f"{path}/generate", json=ask).data
    assert rows.count(b"\n") == 3_001
    assert edith.post(f"{path}/generate", json=ask).data == rows
    export = edith.post(f"{path}/exports", json=ask).json
    with app.app_context():
        exports.run(export["id"])
        db.session.remove()
    assert edith.get(f"/exports/{export['id']}/download").data == rows
    assert edith.get("/usage").json["rows"]["used"] == 9_000
    assert edith.delete(path).json["deleted_at"]
    refused(edith.post(f"{path}/generate"), 404, "not_found")
    assert edith.post(f"{path}/restore").status_code == 200


def test_addresses_that_no_database_can_keep_are_404(served):
    _, edith = served
    for wrong in ("%00", "tpl_%00", "x" * 5_000, "%F0%9F%99%82"):
        refused(edith.get(f"/templates/{wrong}"), 404, "not_found")
        refused(edith.post(f"/templates/{wrong}/generate"), 404, "not_found")
        refused(edith.get(f"/exports/{wrong}"), 404, "not_found")

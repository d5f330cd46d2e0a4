"""The way from a template to a file, on PostgreSQL as on SQLite."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import select

from jobs import exports
from jobs.lease import acquire
from tests.cast import Program, gather
from tests.conftest import settings_for
from tests.views.speak import FIELDS, make, refused
from webapp import clock, create_app
from webapp.audit.services import audit_log
from webapp.exports import services as exports_services
from webapp.exports.models import Export, ExportPart
from webapp.extensions import db, read_session, redis_client, write_session


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
    created = make(edith, name="Ünïcode 🙂", description="x" * 10_000)
    path = f"/templates/{created['id']}"
    assert edith.get(path).json == created
    assert (
        edith.patch(path, json={"quantity": 5}, headers={"If-Match": edith.get(path).headers["ETag"]}).json[
            "version"
        ]
        == 2
    )
    assert edith.get(f"{path}@v1").json == created
    assert edith.get("/templates?q=ünï").json["total"] == 1
    assert [item["version"] for item in edith.get(f"{path}/versions").json["items"]] == [2, 1]
    assert list(created["fields"][1]["options"]) == list(FIELDS[1]["options"])
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


def test_a_worker_saves_and_ends_a_part_while_its_export_is_locked(served):
    """A cancel holds the export and then wants the parts: a worker that holds a part must not wait for the export.
    On SQLite there is one lock for all rows."""
    app, edith = served
    ask = {"count": 320_000, "seed": "s", "format": "csv", "part_rows": 40_000}
    export = edith.post(f"/templates/{make(edith)['id']}/exports", json=ask).json
    with app.app_context(), read_session() as session:
        part_id = session.scalar(
            select(ExportPart.id).where(ExportPart.export_id == export["id"], ExportPart.number == 1)
        )
    with app.app_context():
        work = acquire(
            exports_services.PART_KIND, part_id, clock.now, exports_services.part_start_condition(part_id)
        )

    def write() -> None:
        with app.app_context():
            work.save(rows_done=1)
            work.finish("cancelled")

    writer = threading.Thread(target=write)
    with app.app_context(), write_session() as session:
        session.get(Export, export["id"], with_for_update=True)
        writer.start()
        writer.join(10)
        waits = writer.is_alive()
    writer.join()
    assert not waits
    with app.app_context(), read_session() as session:
        assert session.get_one(ExportPart, part_id).status == "cancelled"

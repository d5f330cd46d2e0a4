"""Many tables that refer to one another do not occupy a processor: each template is compiled with those that it
reaches."""

from __future__ import annotations

import sqlalchemy as sa

from webapp import limits
from webapp.extensions import db


def chain(count: int) -> str:
    tables = ["create table t0 (id int primary key);"]
    tables += [
        f"create table t{n} (id int primary key, up int references t{n - 1} (id));" for n in range(1, count)
    ]
    return "\n".join(tables)


def test_a_template_at_the_end_of_a_chain_of_references_is_saved_with_a_few_queries(app, edith):
    created = edith.post("/import", json={"format": "sql", "content": chain(20)})
    assert (created.status_code, len(created.json["templates"])) == (201, 20)
    parent = created.json["templates"][-1]["id"]
    seen: list[str] = []
    with app.app_context():
        engine = db.engine

    def note(_connection, _cursor, statement, *_):
        seen.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    fields = [{"name": "up", "type": "reference", "options": {"template_id": parent}}]
    child = edith.post("/templates", json={"name": "child", "fields": fields})
    sa.event.remove(engine, "before_cursor_execute", note)
    assert child.status_code == 201, child.json
    specs = [text for text in seen if text.startswith("SELECT") and "template_versions.spec" in text]
    assert 1 <= len(specs) <= 6
    shown = edith.post(f"/templates/{child.json['id']}/preview", json={})
    assert (shown.status_code, len(shown.json["rows"])) == (200, 3)


def test_an_import_whose_tables_take_too_long_is_rejected_and_creates_nothing(edith, monkeypatch):
    monkeypatch.setattr(limits, "TABLES_SECONDS", 0.0)
    refused = edith.post("/import", json={"format": "sql", "content": chain(5)})
    assert (refused.status_code, refused.json["error"]["code"]) == (422, "validation_error")
    assert refused.json["error"]["details"]["fields"][0]["code"] == "too_slow"
    assert edith.get("/templates").json["items"] == []

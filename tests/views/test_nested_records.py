"""Records in arrays count toward the hourly quota, wherever rows leave the service: nesting is no way around it."""

from __future__ import annotations

import pytest

from tests.views.targets import sqlite_target, work  # noqa: F401
from webapp import limits, quotas
from webapp.access.models import Workspace
from webapp.extensions import db


def nested(size: int) -> dict[str, object]:
    fields = [{"name": "a", "type": "row_number"}]
    return {"name": "people", "type": "nested", "options": {"array": True, "count": size, "fields": fields}}


@pytest.fixture(autouse=True)
def thousand_rows(app, cast):
    """A thousand rows per hour."""
    with app.app_context():
        db.session.get(Workspace, cast.acme).own_limits = {"rows_per_hour": 1_000}
        db.session.commit()


@pytest.fixture
def used(app, cast):
    """Returns the rows of the workspace that were used in the last hour."""

    def read() -> int:
        with app.app_context():
            return quotas.rows_used(cast.acme, 1_000)

    return read


def preview(edith, size: int):
    return edith.post("/preview", json={"fields": [nested(size)]})


def test_records_nested_in_generated_rows_count_toward_the_quota(edith, used):
    requests = {"count": 2, "fields": [nested(300)]}
    assert edith.post("/generate", json=requests).status_code == 200
    assert used() == 602
    refused = edith.post("/generate", json=requests)
    assert (refused.status_code, refused.json["error"]["code"]) == (429, "quota_exceeded")
    assert refused.json["error"]["details"]["requested"] == 602


def test_records_nested_in_previews_count_toward_a_quota_of_their_own(edith, used):
    shown = [preview(edith, 110) for _ in range(4)]
    assert [answer.status_code for answer in shown] == [200, 200, 200, 429]
    error = shown[-1].json["error"]
    assert (error["code"], error["details"]["used"], error["details"]["requested"]) == (
        "quota_exceeded",
        990,
        330,
    )
    assert int(shown[-1].headers["Retry-After"]) > 0
    assert used() == 0  # the rows per hour are untouched
    assert preview(edith, 33).status_code == 200  # a few records are always shown


def test_a_preview_shows_fewer_rows_instead_of_more_than_10_000_records(edith, monkeypatch):
    monkeypatch.setattr(limits, "PREVIEW_RECORDS", 700)
    answer = preview(edith, 300)
    assert len(answer.json["rows"]) == 2
    assert answer.json["warnings"][0]["code"] == "preview_cut"


def test_records_nested_in_all_tables_of_a_dataset_preview_count_together(edith):
    templates = [
        edith.post("/templates", json={"name": f"t{n}", "fields": [nested(33)]}).json["id"] for n in range(4)
    ]
    tables = [{"template_id": template, "count": 3} for template in templates]
    dataset = edith.post("/datasets", json={"name": "d", "templates": tables}).json["id"]
    shown = [edith.post(f"/datasets/{dataset}/preview", json={}) for _ in range(3)]
    assert [answer.status_code for answer in shown] == [200, 200, 429], shown[0].json
    # The first two tables of the third preview are counted.
    assert shown[-1].json["error"]["details"]["used"] == (4 + 4 + 2) * 99


def test_records_nested_in_exports_count_toward_the_quota(edith, used):
    template = edith.post("/templates", json={"name": "t", "fields": [nested(300)]}).json["id"]
    path, request = f"/templates/{template}/exports", {"count": 2, "format": "json"}
    assert edith.post(path, json=request).status_code == 201
    assert used() == 602
    refused = edith.post(path, json=request)
    assert (refused.status_code, refused.json["error"]["code"]) == (429, "quota_exceeded")


@pytest.fixture
def push(app, cast, edith):
    """Pushes rows with records, as JSON text, into a table. Returns the answer."""
    shop = sqlite_target(app, cast, "CREATE TABLE orders (people TEXT)")
    created = edith.post("/templates", json={"name": "t", "fields": [nested(300)]}).json["id"]

    def ask(count: int):
        body = {"connection_id": shop.connection_id, "target": "orders", "count": count}
        return edith.post(f"/templates/{created}/push", json=body)

    return ask


def test_records_nested_in_pushed_rows_count_toward_the_quota(edith, used, push, work):
    sent = push(2)
    assert sent.status_code == 201, sent.json
    assert used() == 602
    refused = push(2)
    assert (refused.status_code, refused.json["error"]["code"]) == (429, "quota_exceeded")
    assert refused.json["error"]["details"]["requested"] == 602
    work(sent.json["id"])
    done = edith.get(f"/pushes/{sent.json['id']}").json
    assert (done["status"], done["counts"]["delivered"]) == ("completed", 2)
    assert used() == 602  # rows that were sent stay counted


def test_a_cancelled_push_returns_its_rows_with_their_records(edith, used, push):
    sent = push(3)
    assert used() == 903
    assert edith.delete(f"/pushes/{sent.json['id']}").status_code == 200
    assert used() == 0
    assert push(2).status_code == 201

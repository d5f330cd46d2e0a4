"""The JSON that a workspace keeps in the database is limited: every change of a template is a version."""

from __future__ import annotations

import pytest

from webapp import limits
from webapp.extensions import redis_client
from webapp.usage.services import stored_json


@pytest.fixture
def little(monkeypatch):
    """A limit of 100 kB, on every plan."""
    monkeypatch.setattr(limits, "STORED_JSON_BYTES", dict.fromkeys(limits.STORED_JSON_BYTES, 100_000))


def template(size: int) -> dict:
    return {"name": "t", "fields": [{"name": "a", "type": "constant", "options": {"value": "x" * size}}]}


def refused(answer) -> dict:
    assert (answer.status_code, answer.json["error"]["code"]) == (429, "quota_exceeded"), answer.text
    return answer.json["error"]["details"]


def test_versions_of_a_template_count(edith, little):
    made = edith.post("/templates", json=template(30_000)).json["id"]
    assert edith.patch(f"/templates/{made}", json=template(30_001)).status_code == 200
    assert edith.patch(f"/templates/{made}", json=template(30_002)).status_code == 200
    details = refused(edith.patch(f"/templates/{made}", json=template(30_003)))
    assert details["limit_bytes"] == 100_000
    assert 90_000 < details["used_bytes"] < 100_000
    assert edith.get(f"/templates/{made}").json["version"] == 3
    assert refused(edith.post("/scenarios", json={"name": "s", "code": "#" * 30_000}))
    assert edith.post("/templates", json=template(10)).status_code == 201


def test_requests_of_exports_count(edith, little):
    made = edith.post("/templates", json=template(10)).json["id"]
    body = {"count": 1, "overrides": {"a": "y" * 60_000}}
    assert edith.post(f"/templates/{made}/exports", json=body).status_code == 201
    refused(edith.post(f"/templates/{made}/exports", json=body))


def test_another_workspace_has_its_own(edith, api, cast, little):
    edith.post("/templates", json=template(90_000))
    refused(edith.post("/templates", json=template(90_000)))
    assert api(cast.mallory).post("/templates", json=template(90_000)).status_code == 201


def test_the_count_is_that_of_the_database(app, cast, edith, little):
    made = edith.post("/templates", json=template(40_000)).json["id"]
    edith.post(f"/templates/{made}/exports", json={"count": 1, "overrides": {"a": "y" * 10_000}})
    with app.app_context():
        name = f"rowsmith:stored-json:{{{cast.acme}}}"
        counted = int(redis_client().get(name))
        assert abs(stored_json.stored(cast.acme) - counted) < 2_000
        redis_client().set(name, 10**9)
    # What is counted too much, such as what was removed since, is read anew.
    assert edith.post("/templates", json=template(10)).status_code == 201

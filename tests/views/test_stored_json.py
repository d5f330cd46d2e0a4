"""The JSON that a workspace keeps in the database is limited: every change of a template is a version."""

from __future__ import annotations

import orjson
import pytest
from sqlalchemy import func, select

from webapp import limits
from webapp.builder.models import DraftRevision, TemplateDraft
from webapp.extensions import db, redis_client
from webapp.metering import stored_json


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
    created = edith.post("/templates", json=template(30_000)).json["id"]
    assert edith.patch(f"/templates/{created}", json=template(30_001)).status_code == 200
    assert edith.patch(f"/templates/{created}", json=template(30_002)).status_code == 200
    details = refused(edith.patch(f"/templates/{created}", json=template(30_003)))
    assert details["limit_bytes"] == 100_000
    assert 90_000 < details["used_bytes"] < 100_000
    assert edith.get(f"/templates/{created}").json["version"] == 3
    assert refused(edith.post("/scenarios", json={"name": "s", "code": "#" * 30_000}))
    assert edith.post("/templates", json=template(10)).status_code == 201


def test_requests_of_exports_count(edith, little):
    created = edith.post("/templates", json=template(10)).json["id"]
    body = {"count": 1, "overrides": {"a": "y" * 60_000}}
    assert edith.post(f"/templates/{created}/exports", json=body).status_code == 201
    refused(edith.post(f"/templates/{created}/exports", json=body))


def test_variables_of_scenarios_and_parameters_of_runs_count(edith, little):
    variables = {f"A{number}": "y" * 10_000 for number in range(4)}
    created = edith.post("/scenarios", json={"name": "s", "code": "print(1)", "env": variables})
    assert created.status_code == 201
    at = f"/scenarios/{created.json['id']}"
    refused(
        edith.post(
            "/scenarios", json={"name": "t", "code": "print(1)", "env": {**variables, "B": "y" * 30_000}}
        )
    )
    refused(edith.patch(at, json={"env": {**variables, "B": "y" * 30_000}}))
    # A run keeps the variables that its scenario had.
    assert edith.post(f"{at}/run", json={"params": {"P": "z" * 1_000}}).status_code == 201
    refused(edith.post(f"{at}/run", json={"params": {"P": "z" * 25_000}}))


def test_answers_that_are_kept_for_an_idempotency_key_count(edith, little):
    columns = ",".join(f"c{number}" for number in range(500))
    body = {"format": "csv", "content": f"{columns}\n{','.join(['1'] * 500)}", "save": False}
    answers = [
        edith.post("/import", json=body, headers={"Idempotency-Key": f"k{number}"}) for number in range(9)
    ]
    assert answers[0].status_code == 200
    refused(answers[-1])
    assert sum(len(answer.data) for answer in answers if answer.status_code == 200) < 250_000
    assert edith.post("/import", json=body).status_code == 200  # nothing is kept of it


def test_a_count_that_has_expired_is_read_from_the_database(app, cast, edith, little):
    edith.post("/templates", json=template(60_000))
    with app.app_context():
        redis_client().delete(f"rowsmith:stored-json:{{{cast.acme}}}")
        stored_json.add(cast.acme, 10)
    refused(edith.post("/templates", json=template(60_000)))


def test_another_workspace_has_its_own(edith, api, cast, little):
    edith.post("/templates", json=template(90_000))
    refused(edith.post("/templates", json=template(90_000)))
    assert api(cast.mallory).post("/templates", json=template(90_000)).status_code == 201


def test_the_count_is_that_of_the_database(app, cast, edith, little):
    created = edith.post("/templates", json=template(40_000)).json["id"]
    edith.post(f"/templates/{created}/exports", json={"count": 1, "overrides": {"a": "y" * 10_000}})
    with app.app_context():
        name = f"rowsmith:stored-json:{{{cast.acme}}}"
        counted = int(redis_client().get(name))
        assert abs(stored_json.stored_bytes(cast.acme) - counted) < 2_000
        redis_client().set(name, 10**9)
    # A total that is too high, for example after a removal, is recalculated.
    assert edith.post("/templates", json=template(10)).status_code == 201


@pytest.fixture
def draft(browser, cast):
    """Changes a draft of a new template to one of a size; `begun` is the address of an earlier answer."""
    edith = browser(cast.edith)

    def change(size: int, begun: str = ""):
        form = {"do": "json", "draft": begun} if begun else {"do": "json", "start": ""}
        form["json"] = orjson.dumps(template(size)).decode()
        return edith.submit("/builder/change", form)

    return change


def draft_of(answer) -> str:
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"].partition("draft=")[2].partition("&")[0]


def test_revisions_of_drafts_count(app, cast, edith, draft, little):
    begun = draft_of(draft(40_000))
    assert draft(40_001, begun).status_code == 303
    assert draft(40_002, begun).status_code == 429
    assert draft(40_002).status_code == 429  # another draft
    refused(edith.post("/templates", json=template(40_000)))
    with app.app_context():
        assert 80_000 < stored_json.stored_bytes(cast.acme) < 100_000


def test_large_drafts_keep_fewer_revisions(app, draft, monkeypatch):
    monkeypatch.setattr(limits, "DRAFT_BYTES", 100_000)
    begun = draft_of(draft(30_000))
    for more in range(1, 10):
        assert draft(30_000 + more, begun).status_code == 303
    with app.app_context():
        numbers = db.session.scalars(select(DraftRevision.number).order_by(DraftRevision.number)).all()
        db.session.remove()
    assert numbers == [7, 8, 9, 10]


def test_a_user_has_at_most_so_many_drafts(app, draft, monkeypatch):
    monkeypatch.setattr(limits, "MAX_DRAFTS", 3)
    begun = [draft_of(draft(number)) for number in range(1, 6)]
    with app.app_context():
        left = set(db.session.scalars(select(TemplateDraft.id)))
        revisions = db.session.scalar(select(func.count(DraftRevision.draft_id.distinct())))
        db.session.remove()
    assert left == set(begun[2:])
    assert revisions == 3


KEEPS = [
    ("post", "/templates"),
    ("patch", "/templates/{template_id}"),
    ("put", "/templates/{template_id}"),
    ("post", "/templates/{template_id}/versions/{number}/restore"),
    ("post", "/templates/{template_id}/refresh-references"),
    ("post", "/templates/{template_id}/import"),
    ("post", "/templates/{template_id}/exports"),
    ("post", "/templates/{template_id}/push"),
    ("post", "/datasets"),
    ("patch", "/datasets/{dataset_id}"),
    ("put", "/datasets/{dataset_id}"),
    ("post", "/datasets/{dataset_id}/versions/{number}/restore"),
    ("post", "/datasets/{dataset_id}/refresh-references"),
    ("post", "/datasets/{dataset_id}/exports"),
    ("post", "/datasets/{dataset_id}/push"),
    ("post", "/scenarios"),
    ("put", "/scenarios/{scenario_id}"),
    ("patch", "/scenarios/{scenario_id}"),
    ("post", "/scenarios/{scenario_id}/versions/{number}/restore"),
    ("post", "/scenarios/{scenario_id}/refresh-requirements"),
    ("post", "/import"),
    ("post", "/connections/{connection_id}/templates"),
    ("post", "/export/db"),
]


def test_the_openapi_document_names_the_error_on_every_route_that_stores(edith):
    paths = edith.get("/openapi.json").json["paths"]
    result = {
        (method, path): paths[path][method]["responses"]["429"]["description"] for method, path in KEEPS
    }
    assert [route for route, text in result.items() if "`quota_exceeded`" not in text] == []

"""Templates from the entity sets of a service, whichever of them are picked."""

from __future__ import annotations

import pytest

from tests.connectors.odata_documents import V2, V4
from tests.views.targets import connection
from webapp.connectors.odata import metadata

DOCUMENTS = {"v2": V2, "v4": V4}
SETS = [(name, entity.name) for name, document in DOCUMENTS.items() for entity in
        metadata.metadata(metadata.read(document)).entities]  # fmt: skip


@pytest.fixture
def service(app, cast, edith):
    """Makes a connection to a service that is not there, but for its document."""

    def make(document: bytes) -> str:
        result = connection(app, cast, "odata", {"service_url": "http://127.0.0.1:9/erp"})
        assert edith.put(f"/connections/{result}/metadata-document", data=document).status_code == 200
        return result

    return make


@pytest.mark.parametrize(("document", "picked"), SETS)
def test_every_entity_set_alone_becomes_a_template_that_generates_rows(edith, service, document, picked):
    created = edith.post(
        f"/connections/{service(DOCUMENTS[document])}/templates", json={"entities": [picked]}
    )
    assert created.status_code == 201, created.text
    rows = edith.post(f"/templates/{created.json['templates'][0]['id']}/generate", json={"count": 5})
    assert rows.status_code == 200, rows.text
    assert len(rows.json) == 5


def test_a_constraint_to_a_set_that_was_not_picked_is_reported_and_leaves_a_value_of_the_type(edith, service):
    created = edith.post(f"/connections/{service(V2)}/templates", json={"entities": ["OrderSet"]}).json
    row = next(item for item in created["report"] if item["column"] == "Customer")
    assert (row["state"], row["confidence"]) == ("yellow", "check")
    assert "CustomerSet, which is not part of this import" in row["reason"]
    field = next(item for item in created["templates"][0]["fields"] if item["name"] == "Customer")
    assert field["type"] not in ("reference", "foreign_key")
    rows = edith.post(f"/templates/{created['templates'][0]['id']}/generate", json={"count": 20}).json
    assert all(len(item["Customer"]) <= 8 for item in rows)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_all_entity_sets_together_are_linked_and_generate_rows(edith, service, document):
    picked = [name for of, name in SETS if of == document]
    created = edith.post(
        f"/connections/{service(DOCUMENTS[document])}/templates", json={"entities": picked}
    ).json
    assert "reference" in {field["type"] for template in created["templates"] for field in template["fields"]}
    for template in created["templates"]:
        rows = edith.post(f"/templates/{template['id']}/generate", json={"count": 5})
        assert rows.status_code == 200, rows.text

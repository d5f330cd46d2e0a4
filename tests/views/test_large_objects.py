"""Lists of large objects: the size of a page is limited; objects in lists without pages are limited when saved."""

from __future__ import annotations

import pytest

from webapp import limits, pagination


@pytest.fixture
def narrow(monkeypatch):
    """Pages of 10 kB."""
    monkeypatch.setattr(limits, "PAGE_BYTES", 10_000)


def template(name: str, size: int) -> dict:
    return {"name": name, "fields": [{"name": "a", "type": "constant", "options": {"value": "x" * size}}]}


def reference(template_id: str) -> dict:
    return {"name": "r", "type": "reference", "options": {"template_id": template_id, "field": "a"}}


def all_of(client, path: str) -> tuple[list[str], list[int]]:
    """The names on all pages of a list, and how many items each page has."""
    names, counts, cursor = [], [], None
    while True:
        page = client.get(path, query_string={"limit": 100, **({"cursor": cursor} if cursor else {})}).json
        names += [item["name"] for item in page["items"]]
        counts.append(len(page["items"]))
        cursor = page["next_cursor"]
        if cursor is None:
            return names, counts


def test_a_page_of_templates_ends_where_they_are_large(edith, narrow):
    for number, size in enumerate((100, 4_000, 4_000, 20_000, 100, 100)):
        assert edith.post("/templates", json=template(f"t{number}", size)).status_code == 201
    names, counts = all_of(edith, "/templates")
    assert names == ["t5", "t4", "t3", "t2", "t1", "t0"]
    assert counts == [2, 1, 3]
    assert edith.get("/templates?limit=100").json["total"] == 6


def test_a_page_of_versions_ends_where_they_are_large(edith, narrow):
    created = edith.post("/templates", json=template("t", 6_000)).json["id"]
    for size in (6_001, 7_000):
        edith.patch(f"/templates/{created}", json=template("t", size))
    assert all_of(edith, f"/templates/{created}/versions")[1] == [1, 1, 1]
    assert edith.get(f"/templates/{created}@v1").status_code == 200


@pytest.mark.parametrize(
    "path", ["/exports", "/connections", "/endpoints", "/pushes", "/runs", "/datasets", "/scenarios"]
)
def test_lists_ask_for_the_size_of_what_can_be_large(edith, monkeypatch, path):
    requests = []
    fitting = pagination._count_fitting_rows
    monkeypatch.setattr(
        pagination, "_count_fitting_rows", lambda *value: requests.append(value) or fitting(*value)
    )
    assert edith.get(path).status_code == 200
    assert requests


def test_a_page_of_exports_ends_where_their_requests_are_large(edith, narrow):
    created = edith.post("/templates", json=template("t", 10)).json["id"]
    for _ in range(3):
        body = {"count": 1, "overrides": {"a": "y" * 8_000}}
        assert edith.post(f"/templates/{created}/exports", json=body).status_code == 201
    page = edith.get("/exports?limit=100").json
    assert len(page["items"]) == 1
    assert page["next_cursor"]


def test_lists_without_pages_hold_no_more_than_a_page_of_bytes(edith, narrow):
    for number in range(4):
        edith.post("/templates", json=template(f"t{number}", 6_000))
    assert [item["name"] for item in edith.get("/compat/templates").json] == ["t3", "t2"]


def test_a_folder_is_renamed_with_all_that_is_in_it(edith, narrow):
    folder = edith.post("/compat/templateFolders", json={"name": "HR"}).json["id"]
    for number in range(4):
        edith.post("/templates", json=template(f"HR/t{number}", 6_000))
    assert edith.put(f"/compat/templateFolders/{folder}", json={"name": "People"}).status_code == 200
    assert all(name.startswith("People/") for name in all_of(edith, "/templates")[0])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/compat/customDataTypes", {"name": "t", "fieldConfig": {"x": "y" * 20_000}}),
        ("/compat/plans/save", {"title": "t", "targets": ["y" * 20_000]}),
        (
            "/compat/masking-policies",
            {"name": "t", "fields": [{"field": "f", "strategy": "hash", "note": "y" * 9_000}] * 3},
        ),
    ],
)
def test_an_object_of_the_compatible_api_has_a_size(edith, monkeypatch, path, body):
    monkeypatch.setattr(limits, "MAX_COMPAT_BYTES", 10_000)
    answer = edith.post(path, json=body)
    assert (answer.status_code, answer.json["error"]["code"]) == (400, "invalid_request")
    assert answer.json["error"]["details"]["limit_bytes"] == 10_000


def test_the_objects_of_one_kind_share_a_quota(edith, monkeypatch):
    monkeypatch.setattr(limits, "MAX_COMPAT_LIST_BYTES", 30_000)
    sent = {"fieldConfig": {"x": "y" * 12_000}}
    first = edith.post("/compat/customDataTypes", json={"name": "a", **sent}).json["id"]
    assert edith.post("/compat/customDataTypes", json={"name": "b", **sent}).status_code == 200
    answer = edith.post("/compat/customDataTypes", json={"name": "c", **sent})
    assert (answer.status_code, answer.json["error"]["code"]) == (429, "quota_exceeded")
    larger = {"fieldConfig": {"x": "y" * 25_000}}
    assert (
        edith.put(f"/compat/customDataTypes/{first}", json=larger).json["error"]["code"] == "quota_exceeded"
    )
    assert edith.put(f"/compat/customDataTypes/{first}", json={"fieldConfig": {}}).status_code == 200
    assert edith.post("/compat/plans/save", json={"title": "t", "targets": ["y" * 12_000]}).status_code == 200


@pytest.fixture
def related(edith) -> list[str]:
    """Three templates of 4 kB, each of which refers to the one before."""
    result: list[str] = []
    for number in range(3):
        body = template(f"t{number}", 4_000)
        if result:
            body["fields"].append(reference(result[-1]))
        result.append(edith.post("/templates", json=body).json["id"])
    return result


def test_templates_of_a_dataset_are_read_up_to_a_size(edith, related, monkeypatch):
    tables = {"name": "d", "templates": [{"template_id": item} for item in related]}
    created = edith.post("/datasets", json=tables).json["id"]
    assert edith.post(f"/datasets/{created}/preview", json={}).status_code == 200
    monkeypatch.setattr(limits, "RELATED_BYTES", 10_000)
    for answer in (
        edith.post(f"/datasets/{created}/preview", json={}),
        edith.post(f"/datasets/{created}/exports", json={"format": "csv"}),
        edith.post("/datasets", json=tables),
    ):
        assert (answer.status_code, answer.json["error"]["details"]["fields"][0]["code"]) == (
            422,
            "too_large",
        )


def test_templates_that_relations_reach_are_read_up_to_a_size(edith, related, monkeypatch):
    monkeypatch.setattr(limits, "RELATED_BYTES", 7_000)
    body = template("t", 10)
    body["fields"].append(reference(related[-1]))
    answer = edith.post("/preview", json=body)
    assert (answer.status_code, answer.json["error"]["details"]["fields"][0]["code"]) == (422, "too_large")
    monkeypatch.setattr(limits, "RELATED_BYTES", 20_000)
    assert edith.post("/preview", json=body).status_code == 200

"""References to connections of a team that the caller is not in: rejected when they are saved, in the same words as
references to nothing; and what deletions say of them."""

from __future__ import annotations

import pytest

from tests.views.speak import make

NOWHERE = "con_01M7Y5BT16VAMSDNZ2PWHH1947"


@pytest.fixture
def theirs(tessa):
    body = {"name": "Blue's", "type": "sqlite", "settings": {"file": "aaa.db"}}
    return tessa.post("/connections", json=body).json["id"]


def bodies(connection_id: str) -> dict[str, tuple[dict, str]]:
    query = {"connection_id": connection_id, "query": "select 1 as q"}
    column = {"name": "q", "type": "source_column"}
    nested = {
        "name": "n",
        "type": "object",
        "options": {"fields": [{"name": "q", "type": "db_response", "options": query}]},
    }
    keys = {"connection_id": connection_id, "table": "t", "column": "id"}
    first = "fields[0].options.connection_id"
    return {
        "db_response": ({"fields": [{"name": "q", "type": "db_response", "options": query}]}, first),
        "nested": ({"fields": [nested]}, "fields[0].options.fields[0].options.connection_id"),
        "foreign_key": ({"fields": [{"name": "k", "type": "foreign_key", "options": keys}]}, first),
        "api_response": (
            {"fields": [{"name": "a", "type": "api_response", "options": {
                "connection_id": connection_id, "path": "/", "extract": "$"}}]},
            first,
        ),
        "source": (
            {"fields": [column], "source": {"connection_id": connection_id, "table": "t"}},
            "source.connection_id",
        ),
    }  # fmt: skip


@pytest.mark.parametrize("kind", bodies(""))
def test_a_template_may_not_name_a_connection_of_another_team(rita, tessa, theirs, kind):
    body, path = bodies(theirs)[kind]
    answer = rita.post("/templates", json={"name": "T", **body})
    assert answer.status_code == 422, answer.text
    (fault,) = answer.json["error"]["details"]["fields"]
    assert (fault["path"], fault["code"]) == (path, "unknown_connection")
    nothing, _ = bodies(NOWHERE)[kind]
    other = rita.post("/templates", json={"name": "T", **nothing})
    assert other.text.replace(NOWHERE, theirs) == answer.text, "whether it exists is not told"
    assert tessa.post("/templates", json={"name": "T", **body}).status_code == 201
    mine = make(rita)["id"]
    assert rita.patch(f"/templates/{mine}", json=body).status_code == 422


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("/endpoints", {"name": "E", "method": "POST", "path": "/x"}),
        ("/templates/{template}/push", {"count": 1, "target": "t"}),
        ("/export/db", {"table": "t", "rows": [{"a": 1}]}),
    ],
)
def test_no_other_object_names_a_connection_of_another_team(rita, theirs, url, body):
    url = url.format(template=make(rita)["id"])
    mine = rita.post(url, json={**body, "connection_id": theirs})
    other = rita.post(url, json={**body, "connection_id": NOWHERE})
    assert mine.status_code == other.status_code in (404, 422)
    assert mine.text.replace(theirs, NOWHERE) == other.text


def test_an_old_reference_of_another_team_does_not_keep_a_connection_from_being_deleted(
    app, api, cast, rita, tessa, theirs
):
    body, _ = bodies(theirs)["db_response"]
    template = api(cast.edith, **{"X-Project-Id": cast.red_project}).post(
        "/templates", json={"name": "Red's", **body}
    )
    assert template.status_code == 201, template.text
    used = tessa.get(f"/used-by/{theirs}").json
    assert [(item["name"], item["blocks"]) for item in used["items"]] == [(None, False)]
    changed = rita.patch(f"/templates/{template.json['id']}", json={"description": "still editable"})
    assert changed.status_code == 200, changed.text
    assert tessa.delete(f"/connections/{theirs}").status_code == 200


def test_a_reference_of_the_same_team_keeps_it_and_is_named(tessa, theirs):
    body, _ = bodies(theirs)["db_response"]
    tessa.post("/templates", json={"name": "Ours", **body})
    answer = tessa.delete(f"/connections/{theirs}")
    assert answer.status_code == 409
    assert [item["name"] for item in answer.json["error"]["details"]["used_by"]] == ["Ours"]
    assert answer.json["error"]["message"] == 'template "Ours" uses this connection.'

"""What entries tell of a change: old and new, short, and no secret."""

from __future__ import annotations

import pytest

from webapp import limits
from webapp.audit.services.audit_log import changes_between

SECRET = "hunter2-canary"


@pytest.fixture
def last(api, cast):
    """The newest entry of an action."""

    def find(action):
        return api(cast.adam).get(f"/audit?action={action}&limit=1").json["items"][0]["details"]

    return find


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, {"b": {"from": 2, "to": 3}}),
        ({"a": None}, {"a": "x"}, {"a": {"from": None, "to": "x"}}),
        ({"a": "x"}, {"a": "x", "version": 4}, {}),
        ({"h": {"x": "1", "y": "2"}}, {"h": {"x": "1", "y": "3", "z": ""}}, {"h": {"changed": ["y", "z"]}}),
        ({"code": "a\nb"}, {"code": "a\nb\nc"}, {"code": {"lines": {"from": 2, "to": 3}}}),
        (
            {"fields": [{"id": "1", "name": "a"}, {"id": "2", "name": "b"}, {"id": "3", "name": "c"}]},
            {"fields": [{"id": "3", "name": "c"}, {"id": "1", "name": "A"}, {"id": "4", "name": "d"}]},
            {"fields": {"added": ["d"], "removed": ["b"], "changed": ["A"], "moved": ["c", "A"]}},
        ),
    ],
)
def test_only_changes_are_reported(before, after, expected):
    assert changes_between(before, after) == expected


def test_long_values_are_cut():
    result = changes_between({"a": ""}, {"a": "x" * 10_000})
    assert len(result["a"]["to"]) == limits.AUDIT_VALUE_CHARS


def test_a_secret_that_was_sent_again_is_recorded_as_changed_and_masked():
    shown = {
        "password": "********",
        "auth": {"type": "bearer", "token": "********"},
        "url": "db://u:********@h",
    }
    assert changes_between(shown, shown, {"password": "********", "auth": {"token": "********"}}) == {}
    sent = {"password": SECRET, "auth": {"type": "bearer", "token": SECRET}, "url": f"db://u:{SECRET}@h"}
    result = changes_between(shown, shown, sent)
    assert result == {
        "password": {"from": "********", "to": "********"},
        "auth": {"changed": ["token"]},
        "url": {"from": "********", "to": "********"},
    }


def test_a_template_lists_its_fields_and_versions(api, cast, last):
    edith = api(cast.edith)
    fields = [{"name": "a", "type": "uuid"}]
    created = edith.post("/templates", json={"name": "A", "fields": fields}).json
    edith.patch(
        f"/templates/{created['id']}",
        json={"name": "B", "fields": [*created["fields"], {"name": "b", "type": "uuid"}]},
    )
    result = last("template.change")
    assert result["version"] == 2
    assert result["changes"] == {"name": {"from": "A", "to": "B"}, "fields": {"added": ["b"]}}


def test_a_project_and_a_workspace_tell_old_and_new(api, cast, last):
    api(cast.adam).patch(f"/projects/{cast.side}", json={"name": "Aside"})
    assert last("project.change")["changes"] == {"name": {"from": "Side", "to": "Aside"}}
    api(cast.adam).patch("/workspace", json={"name": "Acme Ltd"})
    assert last("workspace.change")["changes"] == {"name": {"from": "Acme", "to": "Acme Ltd"}}


def test_the_changes_of_a_connection_are_recorded_without_secrets(api, cast, last):
    edith = api(cast.edith)
    settings = {"base_url": "https://api.example.org", "auth": {"type": "bearer", "token": SECRET}}
    created = edith.post(
        "/endpoints",
        json={"name": "E", "method": "POST", "url": "https://api.example.org/x", "auth": settings["auth"]},
    )
    assert created.status_code == 201, created.text
    changed = edith.patch(
        f"/endpoints/{created.json['id']}",
        json={"name": "F", "auth": {"type": "bearer", "token": SECRET + "2"}, "headers": {"X-A": "1"}},
    )
    assert changed.status_code == 200, changed.text
    result = last("endpoint.change")["changes"]
    assert result == {
        "name": {"from": "E", "to": "F"},
        "auth": {"changed": ["token"]},
        "headers": {"changed": ["X-A"]},
    }
    assert SECRET not in api(cast.adam).get("/audit?format=jsonl").text

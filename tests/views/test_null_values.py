"""A null as the value of any key of a change is applied or rejected; it never ends in an internal error."""

from __future__ import annotations

import pytest

from webapp.web.routing import declaration_of

MAKING = {
    "/templates": {"name": "a", "fields": [{"name": "n", "type": "row_number"}]},
    "/connections": {"name": "a", "type": "sqlite", "settings": {"file": "a.db"}},
    "/endpoints": {"name": "a", "method": "POST", "url": "https://api.example.org/x"},
    "/scenarios": {"name": "a", "code": "print(1)"},
    "/webhooks": {"url": "https://ci.example.org/x", "events": ["push.*"]},
    "/projects": {"name": "a"},
    "/teams": {"name": "a"},
}


@pytest.fixture
def addresses(api, cast):
    """The address of an object by the rule of the route that changes it."""
    program = api(cast.olivia)
    result = {}
    for at, body in MAKING.items():
        answer = program.post(at, json=body)
        assert answer.status_code == 201, answer.json
        result[at] = f"{at}/{answer.json['id']}"
    template = result["/templates"].rpartition("/")[2]
    dataset = program.post("/datasets", json={"name": "a", "templates": [{"template_id": template}]}).json
    result["/datasets"] = f"/datasets/{dataset['id']}"
    schedule = {"name": "a", "cron": "0 2 * * *", "kind": "export", "template_id": template}
    answer = program.post("/schedules", json=schedule)
    assert answer.status_code == 201, answer.json
    result["/schedules"] = f"/schedules/{answer.json['id']}"
    result["/members"] = f"/members/{program.get('/members').json['items'][-1]['id']}"
    return result


def test_null_in_any_key_of_a_change_is_no_internal_error(app, api, cast, addresses):
    program, tried, bad = api(cast.olivia), 0, []
    for rule in app.url_map.iter_rules():
        declared = declaration_of(app, rule.endpoint)
        if "PATCH" not in (rule.methods or ()) or declared is None or declared.body is None:
            continue
        at = addresses.get("/" + rule.rule.split("/")[1], rule.rule if "<" not in rule.rule else None)
        if rule.rule.startswith("/compat") or at is None:
            continue
        tried += 1
        keys = list(declared.body.model_fields)
        for body in [{key: None} for key in keys] + [dict.fromkeys(keys)]:
            answer = program.patch(at, json=body)
            if answer.status_code >= 500:
                bad.append((at, body))
    assert tried >= 12
    assert bad == []
